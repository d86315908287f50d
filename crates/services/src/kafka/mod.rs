//! What every service needs of Kafka: settings, membership of a group, what a topic looks like from outside.

pub mod ends;
pub mod member;
pub mod producer;
pub mod pulse;
pub mod settings;
pub mod topic;

use std::fmt;
use std::sync::Arc;

pub use settings::Settings;

/// One partition of one topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The topic; of a ledger the source of the same name.
    pub source: Arc<str>,
    /// The partition.
    pub partition: i32,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.partition)
    }
}

/// Where reading begins that nobody has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// At the first record that is still there.
    Earliest,
    /// At the end: what was written before is left out.
    Latest,
    /// At this offset, in every partition.
    Offset(i64),
}

impl From {
    /// The offset in a partition that holds `bounds`.
    pub fn within(self, bounds: topic::Bounds) -> i64 {
        match self {
            Self::Earliest => bounds.low,
            Self::Latest => bounds.high,
            Self::Offset(offset) => offset.clamp(bounds.low, bounds.high),
        }
    }

    /// Reads `earliest`, `latest` or an offset.
    ///
    /// # Errors
    /// It is none of them.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            _ => text.parse().map(Self::Offset).map_err(|_| "earliest, latest, or an offset".to_owned()),
        }
    }
}
