//! `lastcall-record`: trace events from topics into the ledger, each exactly once.
//!
//! ```text
//! broker ─► reader (one thread, polls, never waits) ─► workers (recorders) ─► committers ─► ledger
//!              ▲  │ assigns at the chains' tails            │
//!              └──┴── lost races, positions ◄───────────────┘
//! ```

pub mod assign;
pub mod commits;
pub mod dry;
pub mod follower;
pub mod metrics;
pub mod plant;
pub mod probe;
mod reader;
pub mod replay;
mod service;
pub mod worker;

pub use metrics::{Appended, TABLE, Telemetry};
pub use service::{Options, Summary, run};

use crate::Stop;
use crate::kafka::Key;
