//! A topic from outside: its partitions, and where each begins and ends.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use tokio::runtime::Builder;

/// How long one question to the brokers may take.
pub const ASK: Duration = Duration::from_secs(10);

/// Asks again while the brokers are away, for about a minute: a broker that is started again is no reason to end.
///
/// # Errors
/// They stay away, or answer with another error.
pub fn patiently<T>(mut ask: impl FnMut() -> Result<T, KafkaError>) -> Result<T, KafkaError> {
    use rdkafka::error::RDKafkaErrorCode as Code;
    for _ in 0..5 {
        match ask() {
            Err(error)
                if matches!(
                    error.rdkafka_error_code(),
                    Some(
                        Code::BrokerTransportFailure
                            | Code::AllBrokersDown
                            | Code::OperationTimedOut
                            | Code::RequestTimedOut
                            | Code::LeaderNotAvailable
                            | Code::NotLeaderForPartition
                    )
                ) =>
            {
                std::thread::sleep(Duration::from_secs(1));
            }
            answer => return answer,
        }
    }
    ask()
}

/// A client that asks and does not consume. It sees uncommitted records: its high watermark is the true end, also
/// behind an open transaction, which a reader of committed records cannot see.
pub struct Observer {
    client: BaseConsumer,
    config: ClientConfig,
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
        Ok(Self { client: config.create()?, config })
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

    /// One of a topic's settings; `None`: the broker does not say.
    pub fn setting(&self, topic: &str, name: &str) -> Option<String> {
        let admin: AdminClient<DefaultClientContext> = self.config.create().ok()?;
        let runtime = Builder::new_current_thread().enable_time().build().ok()?;
        let options = AdminOptions::new().request_timeout(Some(ASK));
        let asked = [ResourceSpecifier::Topic(topic)];
        let said = runtime.block_on(admin.describe_configs(&asked, &options)).ok()?;
        let entry = said.into_iter().next()?.ok()?;
        entry.entry_map().get(name).and_then(|entry| entry.value.clone())
    }

    /// Whether a topic is compacted; `None`: the broker does not say.
    pub fn is_compacted(&self, topic: &str) -> Option<bool> {
        let policy = self.setting(topic, "cleanup.policy")?;
        Some(policy.split(',').any(|word| word.trim() == "compact"))
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
