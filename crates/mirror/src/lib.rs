//! Running a production call against a candidate, with its effect suppressed.
//!
//! What may be run is decided by types: a tool that reads is run on a replica or a snapshot, a tool that writes in a dry
//! run, a sandbox or against a stub, and for a tool that sends there is no executor.

mod answer;
mod breaker;
mod builder;
mod counts;
mod gate;
mod mirror;
mod plan;
mod probe;
mod row;
mod settings;
pub mod suppress;
mod target;
mod tool;

pub use answer::{Answer, Replayed};
pub use counts::{CLASSES, CandidateCounts};
pub use mirror::Mirror;
pub use probe::Probed;
pub use row::{Stand, coverage, row};
pub use settings::{
    BREAKER_KEYS, Breaker, CANDIDATE_KEYS, LIMIT_KEYS, Limits, RERUN_KEYS, Settings, SettingsError, TOOL_KEYS,
};
