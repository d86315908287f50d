//! From what passed to the topic: one thread, the only one that speaks with Kafka.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender as Jobs, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext, PurgeConfig};
use serde_json::json;

use crate::call::{Job, moment, records};
use crate::held::{DAY, Held, Losses, Lost, MILLISECOND, Room};

const TICK: Duration = Duration::from_millis(50);

/// What a message stands for until the broker has answered.
enum Sent {
    Call { tool: String, at: i64, room: Arc<Room> },
    Loss(Losses),
}

/// What came of what was sent.
struct Answers {
    held: Arc<Held>,
    reporting: AtomicU64,
    complained: Mutex<Option<Instant>>,
}

impl Answers {
    fn complain(&self, what: &dyn std::fmt::Display) {
        let mut last = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|at| at.elapsed() > Duration::from_secs(10)) {
            *last = Some(Instant::now());
            eprintln!("tool-gateway: {what}; calls go on, what has no room is counted");
        }
    }

    fn settle(&self, sent: Sent, written: bool) {
        match sent {
            Sent::Call { tool, at, room } => {
                if !written {
                    self.held.lose(Some(&tool), at);
                }
                drop(room);
            }
            Sent::Loss(losses) => {
                self.reporting.fetch_sub(1, Ordering::AcqRel);
                if !written {
                    self.held.give_back(losses);
                }
            }
        }
    }
}

struct Context(Arc<Answers>);

impl ClientContext for Context {
    fn error(&self, error: KafkaError, _: &str) {
        self.0.complain(&error);
    }
    fn log(&self, _: rdkafka::config::RDKafkaLogLevel, _: &str, _: &str) {}
}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<Sent>;
    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<Sent>) {
        self.0.settle(*sent, result.is_ok());
    }
}

/// The thread that writes.
pub struct Sender {
    jobs: Jobs<Job>,
    thread: JoinHandle<u64>,
    deadline: Arc<Mutex<Option<Instant>>>,
}

impl Sender {
    /// Starts it. Connects in the background.
    ///
    /// # Errors
    /// librdkafka does not take the settings.
    pub fn start(brokers: &str, topic: String, more: &[(String, String)], held: &Arc<Held>) -> Result<Self> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", brokers)
            .set("client.id", "tool-gateway")
            .set("enable.idempotence", "true")
            // Nothing times out: what was taken is written, however long the broker is away.
            .set("message.timeout.ms", "0")
            .set("linger.ms", "20")
            .set("compression.type", "zstd")
            .set("partitioner", "murmur2_random")
            .set("reconnect.backoff.max.ms", "2000")
            .set("message.max.bytes", "20000000")
            // The limits of `Held` are the ones that bind.
            .set("queue.buffering.max.messages", "0")
            .set("queue.buffering.max.kbytes", "2097151");
        for (key, value) in more {
            config.set(key, value);
        }
        let answers = Arc::new(Answers {
            held: held.clone(),
            reporting: AtomicU64::new(0),
            complained: Mutex::default(),
        });
        let producer = BaseProducer::from_config_and_context(&config, Context(answers.clone()))
            .context("settings of Kafka")?;
        let (jobs, taken) = channel();
        let deadline = Arc::new(Mutex::new(None));
        let writer = Writer { producer, topic, answers, deadline: deadline.clone() };
        let thread = std::thread::Builder::new().name("sender".into()).spawn(move || writer.run(&taken))?;
        Ok(Self { jobs, thread, deadline })
    }

    /// Where calls are handed over.
    pub fn jobs(&self) -> Jobs<Job> {
        self.jobs.clone()
    }

    /// Writes what is held, for so long at most; how many calls are lost without a record of it.
    pub fn finish(self, within: Duration) -> u64 {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + within);
        drop(self.jobs);
        self.thread.join().unwrap_or_default()
    }
}

struct Writer {
    producer: BaseProducer<Context>,
    topic: String,
    answers: Arc<Answers>,
    deadline: Arc<Mutex<Option<Instant>>>,
}

impl Writer {
    fn past(&self) -> bool {
        self.deadline.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at <= Instant::now())
    }

    fn ending(&self) -> bool {
        self.deadline.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn run(&self, jobs: &Receiver<Job>) -> u64 {
        let (held, mut last) = (&self.answers.held, None);
        loop {
            match jobs.recv_timeout(TICK) {
                Ok(job) => self.job(job),
                Err(RecvTimeoutError::Timeout) if !self.ending() => {}
                // Whoever still holds an end of it (a connection that does not end) has had its time.
                Err(_) => break,
            }
            self.producer.poll(Duration::ZERO);
            self.report(&mut last);
        }
        let open =
            || held.records() > 0 || held.has_losses() || self.answers.reporting.load(Ordering::Acquire) > 0;
        while open() && !self.past() {
            self.producer.poll(TICK);
            self.report(&mut last);
        }
        self.producer.purge(PurgeConfig::default().queue().inflight());
        let _ = self.producer.flush(Duration::from_secs(1));
        held.losses().values().map(|lost| lost.count).sum()
    }

    fn job(&self, job: Job) {
        let Ok(records) = records(&job) else {
            self.answers.held.lose(job.source.tool(), job.at);
            return;
        };
        for record in records {
            let sent = Sent::Call { tool: record.tool, at: job.at, room: job.room.clone() };
            self.produce(&record.key, &record.value, sent);
        }
    }

    fn produce(&self, key: &str, value: &str, sent: Sent) {
        let mut message = BaseRecord::with_opaque_to(&self.topic, Box::new(sent)).key(key).payload(value);
        loop {
            match self.producer.send(message) {
                Ok(()) => return,
                Err((error, back))
                    if error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull) && !self.past() =>
                {
                    self.producer.poll(TICK);
                    message = back;
                }
                Err((error, back)) => {
                    self.answers.complain(&error);
                    self.answers.settle(*back.delivery_opaque, false);
                    return;
                }
            }
        }
    }

    /// Counts add up while the last ones are on their way, and for a second at least.
    fn report(&self, last: &mut Option<Instant>) {
        let (answers, held) = (&self.answers, &self.answers.held);
        let due = self.ending() || last.is_none_or(|at| at.elapsed() >= Duration::from_secs(1));
        if !due || answers.reporting.load(Ordering::Acquire) > 0 || !held.has_losses() {
            return;
        }
        *last = Some(Instant::now());
        for (key, lost) in held.losses() {
            let (tool, Lost { count, first, last }) = (key.0.clone(), lost);
            // It ends before midnight, so that it is of one day for every reader.
            let end = (last + MILLISECOND).min((key.1 + 1) * DAY - MILLISECOND).max(first);
            let mut row = json!({
                "type": "loss", "schema_version": 1, "count": count,
                "interval": {"from": moment(first), "to": moment(end)}
            });
            if let (Some(tool), Some(row)) = (&tool, row.as_object_mut()) {
                row.insert("tool_id".into(), tool.as_str().into());
            }
            answers.reporting.fetch_add(1, Ordering::AcqRel);
            self.produce(
                tool.as_deref().unwrap_or_default(),
                &row.to_string(),
                Sent::Loss([(key, lost)].into()),
            );
        }
    }
}
