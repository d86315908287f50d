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
mod ends;
pub mod follower;
pub mod plant;
pub mod probe;
pub mod pulse;
mod reader;
pub mod replay;
mod service;
pub mod worker;

use std::fmt;
use std::sync::Arc;

use lastcall_ledger::LedgerError;
use lastcall_ledger::store::StoreError;
use lastcall_record::{PairError, RecordError, RunError};
use rdkafka::error::KafkaError;

pub use service::{Options, Summary, run};

/// One partition of one source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The source: a topic.
    pub source: Arc<str>,
    /// The partition.
    pub partition: i32,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.partition)
    }
}

/// What ends the service.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A pair that this build cannot compare.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// A recorder.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The topic does not fit what was recorded.
    #[error("{0}")]
    Topic(String),
    /// The broker.
    #[error("{what}: {}", crate::kafka::settings::said(error))]
    Kafka {
        /// What was asked.
        what: String,
        /// What librdkafka says.
        error: KafkaError,
    },
    /// Something does not answer.
    #[error("{0}")]
    Away(String),
    /// How the service was started.
    #[error("{0}")]
    Usage(String),
    /// A thread ended that should not have.
    #[error("{0} ended; this is a defect, please report it")]
    Thread(&'static str),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Ledger(error) => Self::Ledger(error),
            other => Self::Usage(other.to_string()),
        }
    }
}

impl Stop {
    /// The exit code of a process that it ends.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Ledger(LedgerError::Altered { .. } | LedgerError::Missing { .. }) => 4,
            Self::Ledger(LedgerError::Store(StoreError::Away { .. } | StoreError::Ambiguous { .. })) => 75,
            Self::Topic(_) | Self::Record(_) | Self::Pair(_) | Self::Thread(_) => 4,
            // A setting that librdkafka refuses does not become right by waiting.
            Self::Kafka { error: KafkaError::ClientConfig(..) | KafkaError::Subscription(_), .. } => 2,
            Self::Kafka { .. } | Self::Away(_) => 75,
            Self::Ledger(_) | Self::Usage(_) => 2,
        }
    }
}

impl From<KafkaError> for Stop {
    fn from(error: KafkaError) -> Self {
        Self::Kafka { what: "the broker".to_owned(), error }
    }
}
