//! What arrives: calls, mirrored calls, coverage and clocks, and how each wire format is read.
//!
//! Pure: bytes in, records out. Arguments and results stay the exact text that arrived ([`RawValue`]); nothing is
//! parsed here that the comparison does not need.

mod decode;
mod place;
mod provider;
mod record;
mod schema;
pub mod source;
mod time;

pub use decode::{DecodeError, Decoded, Preset, decode, decode_text, text};
pub use place::Place;
pub use provider::{NO_TIME, calls_in};
pub use record::{
    CallRecord, Candidate, CandidateInput, Clock, Coverage, Envelope, Fidelity, Interval, Json, Loss,
    Outcome, Record, Status, Suppression, Text, Upstream,
};
pub use schema::event_schemas;
pub use serde_json::value::RawValue;
pub use time::{Day, Timestamp};
