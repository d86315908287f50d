//! What ends a service, and with which exit code.

use lastcall_ledger::LedgerError;
use lastcall_ledger::store::StoreError;
use lastcall_record::registry::FolderError;
use lastcall_record::{PairError, RecordError, RunError};
use rdkafka::error::KafkaError;

/// What ends a service.
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
    /// The topic does not fit what was written before.
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

impl From<FolderError> for Stop {
    fn from(error: FolderError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<KafkaError> for Stop {
    fn from(error: KafkaError) -> Self {
        Self::Kafka { what: "the broker".to_owned(), error }
    }
}

impl Stop {
    /// The exit code of a process that it ends.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Ledger(error) if error.is_of_record() => 4,
            Self::Ledger(LedgerError::Store(StoreError::Away { .. } | StoreError::Ambiguous { .. })) => 75,
            Self::Topic(_) | Self::Record(_) | Self::Pair(_) | Self::Thread(_) => 4,
            // A setting that librdkafka refuses does not become right by waiting.
            Self::Kafka { error: KafkaError::ClientConfig(..) | KafkaError::Subscription(_), .. } => 2,
            Self::Kafka { .. } | Self::Away(_) => 75,
            Self::Ledger(_) | Self::Usage(_) => 2,
        }
    }
}
