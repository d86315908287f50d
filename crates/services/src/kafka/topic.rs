//! A topic from outside: its partitions, and where each begins and ends.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;

/// How long one question to the brokers may take.
pub const ASK: Duration = Duration::from_secs(10);

/// A client that asks and does not consume. It sees uncommitted records: its high watermark is the true end, also
/// behind an open transaction, which a reader of committed records cannot see.
pub struct Observer {
    client: BaseConsumer,
}

/// The offsets of one partition: `[low, high)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first offset that is still there.
    pub low: i64,
    /// The offset that the next record will have.
    pub high: i64,
}

impl Observer {
    /// Connects when it is first asked.
    ///
    /// # Errors
    /// librdkafka does not take the settings.
    pub fn new(mut config: ClientConfig) -> Result<Self, KafkaError> {
        config.set("isolation.level", "read_uncommitted");
        Ok(Self { client: config.create()? })
    }

    /// The cluster's id.
    pub fn cluster(&self) -> Option<String> {
        self.client.client().fetch_cluster_id(ASK)
    }

    /// How many partitions a topic has; `None`: there is no such topic.
    ///
    /// # Errors
    /// No broker answers.
    pub fn partitions(&self, topic: &str) -> Result<Option<i32>, KafkaError> {
        let metadata = self.client.fetch_metadata(Some(topic), ASK)?;
        let found = metadata.topics().iter().find(|t| t.name() == topic && t.error().is_none());
        Ok(found.map(|t| i32::try_from(t.partitions().len()).unwrap_or(i32::MAX)).filter(|n| *n > 0))
    }

    /// Where a partition begins and ends now.
    ///
    /// # Errors
    /// Its leader does not answer.
    pub fn bounds(&self, topic: &str, partition: i32) -> Result<Bounds, KafkaError> {
        let (low, high) = self.client.fetch_watermarks(topic, partition, ASK)?;
        Ok(Bounds { low, high })
    }
}
