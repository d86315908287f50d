//! The output: an idempotent producer that keeps order and leaves no gap. Each message counts once the broker has
//! acknowledged it.

use std::time::Duration;

use lastcall_event::Timestamp;
use lastcall_ledger::system_now;
use rdkafka::ClientContext;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, ProducerContext, ThreadedProducer};
use tokio::sync::mpsc::UnboundedSender;

use super::mark::{HEADER, Mark};
use crate::Stop;
use crate::kafka::Settings;
use crate::kafka::topic::Observer;

/// What the broker takes where it does not say.
const MAX_BYTES: usize = 1_048_588;
/// For the header, and what frames a message.
const FRAME: usize = 512;

/// The broker's answer to one message: its number, and why it is not there.
pub type Delivered = (u64, Result<(), KafkaError>);

struct Receipt {
    number: u64,
    to: UnboundedSender<Delivered>,
}

struct Context;

impl ClientContext for Context {
    fn error(&self, _: KafkaError, _: &str) {
        // Comes back with the messages that it is about.
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<Receipt>;

    fn delivery(&self, result: &DeliveryResult<'_>, receipt: Box<Receipt>) {
        let answer = result.as_ref().map(|_| ()).map_err(|(error, _)| error.clone());
        // Whoever gave it away may have lost its partition.
        let _ = receipt.to.send((receipt.number, answer));
    }
}

/// Writes to the output topic.
pub struct Output {
    client: ThreadedProducer<Context>,
    topic: String,
    /// A value may have this many bytes.
    pub max_bytes: usize,
}

/// One message.
pub struct Outgoing<'a> {
    /// The partition.
    pub partition: i32,
    /// The value.
    pub value: &'a [u8],
    /// Where the partition stands after it.
    pub mark: Mark,
    /// The time of the upstream message.
    pub time: Option<Timestamp>,
}

impl Output {
    /// Connects when it is first used.
    ///
    /// # Errors
    /// The topic is compacted, or librdkafka does not take the settings.
    pub fn new(settings: &Settings, observer: &Observer, topic: &str) -> Result<Self, Stop> {
        if observer.is_compacted(topic) == Some(true) {
            return Err(Stop::Topic(format!(
                "topic `{topic}` is compacted, and would lose rows: set its cleanup.policy to delete"
            )));
        }
        let max_bytes = observer.setting(topic, "max.message.bytes").and_then(|text| text.parse().ok());
        let max_bytes: usize = max_bytes.unwrap_or(MAX_BYTES);
        let mut config = settings.plain();
        config
            .set("enable.idempotence", "true")
            // A message that the broker refuses ends the process: one that came after it would hide it.
            .set("enable.gapless.guarantee", "true")
            .set("message.timeout.ms", "0")
            .set("message.max.bytes", max_bytes.clamp(1_000, 1_000_000_000).to_string())
            .set("batch.size", max_bytes.clamp(1_000, 256 << 10).to_string())
            .set("queue.buffering.max.kbytes", "65536")
            .set("compression.type", "zstd")
            .set("linger.ms", "5");
        let client = ThreadedProducer::from_config_and_context(&config, Context)
            .map_err(|error| Stop::Kafka { what: "the settings".to_owned(), error })?;
        Ok(Self { client, topic: topic.to_owned(), max_bytes: max_bytes.saturating_sub(FRAME) })
    }

    /// Hands a message over; the answer comes with its number. A time that lies ahead is now: the broker would refuse it.
    ///
    /// # Errors
    /// librdkafka does not take it.
    pub async fn send(
        &self,
        number: u64,
        message: &Outgoing<'_>,
        to: &UnboundedSender<Delivered>,
    ) -> Result<(), KafkaError> {
        let mark = message.mark.to_string();
        let headers = OwnedHeaders::new().insert(Header { key: HEADER, value: Some(&mark) });
        let receipt = Box::new(Receipt { number, to: to.clone() });
        let mut record: BaseRecord<'_, (), [u8], Box<Receipt>> =
            BaseRecord::with_opaque_to(&self.topic, receipt)
                .payload(message.value)
                .partition(message.partition)
                .headers(headers);
        if let Some(time) = message.time.filter(|time| time.0 >= 0) {
            record = record.timestamp(time.min(system_now()).0);
        }
        loop {
            match self.client.send(record) {
                Ok(()) => return Ok(()),
                Err((error, back)) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull) => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    record = back;
                }
                Err((error, _)) => return Err(error),
            }
        }
    }
}
