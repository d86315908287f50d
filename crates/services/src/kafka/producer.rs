//! Records into a topic, each answered by the broker before it counts as written.

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};
use rdkafka::util::Timeout;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lastcall_event::Timestamp;
use rdkafka::ClientContext;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;

use super::Settings;

const FLUSH: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Delivered(Mutex<(u64, Option<KafkaError>)>);

struct Context(Arc<Delivered>);

impl ClientContext for Context {
    fn error(&self, _: KafkaError, _: &str) {}
}

impl ProducerContext for Context {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let mut told = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(_) => told.0 += 1,
            Err((error, _)) => {
                told.1.get_or_insert_with(|| error.clone());
            }
        }
    }
}

/// An idempotent producer.
pub struct Producer {
    client: ThreadedProducer<Context>,
    delivered: Arc<Delivered>,
}

/// A record to be written.
pub struct Outgoing<'a> {
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: &'a [u8],
    /// Its time; none: now.
    pub time: Option<Timestamp>,
    /// A header: name and value.
    pub header: Option<(&'a str, &'a str)>,
}

impl Producer {
    /// Connects when it is first used.
    ///
    /// # Errors
    /// librdkafka does not take the settings.
    pub fn new(settings: &Settings) -> Result<Self, KafkaError> {
        let mut config = settings.plain();
        config.set("enable.idempotence", "true").set("compression.type", "zstd").set("linger.ms", "20");
        let delivered = Arc::new(Delivered::default());
        let client = ThreadedProducer::from_config_and_context(&config, Context(delivered.clone()))?;
        Ok(Self { client, delivered })
    }

    /// Hands a record over; waits while the queue is full.
    ///
    /// # Errors
    /// librdkafka does not take it.
    pub fn send(&self, topic: &str, record: &Outgoing<'_>) -> Result<(), KafkaError> {
        let mut out: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic).payload(record.value);
        if let Some(key) = record.key {
            out = out.key(key);
        }
        if let Some(time) = record.time {
            out = out.timestamp(time.0);
        }
        if let Some((key, value)) = record.header {
            out = out.headers(OwnedHeaders::new().insert(Header { key, value: Some(value) }));
        }
        loop {
            match self.client.send(out) {
                Ok(()) => return Ok(()),
                Err((error, back))
                    if error.rdkafka_error_code() == Some(rdkafka::error::RDKafkaErrorCode::QueueFull) =>
                {
                    std::thread::sleep(Duration::from_millis(20));
                    out = back;
                }
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// Waits until the broker has answered for every record; how many it has.
    ///
    /// # Errors
    /// It has not taken one of them, or does not answer.
    pub fn finish(self) -> Result<u64, KafkaError> {
        self.client.flush(Timeout::After(FLUSH))?;
        let told = self.delivered.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &told.1 {
            Some(error) => Err(error.clone()),
            None => Ok(told.0),
        }
    }
}
