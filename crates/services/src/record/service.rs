//! Starts the threads of `lastcall-record`, and ends them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lastcall_ledger::Ledger;
use lastcall_ledger::control::SourceKind;
use lastcall_ledger::entry::Balance;
use lastcall_record::{Limits, RedactionKey};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};

use super::Telemetry;
use super::assign::Assigner;
use super::follower::Follower;
use super::reader::{Context, Desk, Reader};
use super::worker::{Recorded, Worker};
use super::{Stop, commits};
use crate::kafka::ends::Ends;
use crate::kafka::pulse::Pulse;
use crate::kafka::topic::Observer;
use crate::kafka::{From, Settings};

/// Committers a process: appends of different partitions go on beside each other.
const COMMITTERS: usize = 4;

/// How the service is started.
#[derive(Clone)]
pub struct Options {
    /// Brokers and librdkafka's settings.
    pub settings: Settings,
    /// The consumer group.
    pub group: String,
    /// For static membership.
    pub instance: Option<String>,
    /// The sources to record; all topics of the ledger if there is none.
    pub sources: Vec<String>,
    /// Where a source begins that nobody has recorded.
    pub from: Option<From>,
    /// Why a range that the topic no longer has may be passed over.
    pub accept_gap: Option<String>,
    /// The key of the ledger's redactions.
    pub key: Option<RedactionKey>,
    /// End when everything that was there is recorded.
    pub once: bool,
    /// When chunks close.
    pub limits: Limits,
    /// Bytes that open chunks may hold together.
    pub budget: usize,
    /// Workers.
    pub workers: usize,
    /// Between two looks at the ends of partitions and at the control chain.
    pub look: Duration,
    /// Told of everything.
    pub telemetry: Arc<Telemetry>,
    /// Commit the group's offsets, for lag tools.
    pub hints: bool,
}

/// What a run added.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Chunks appended.
    pub chunks: u64,
    /// Heartbeats appended.
    pub heartbeats: u64,
    /// The balanced counts of what was added.
    pub balance: Balance,
    /// Of it: dead letters by reason.
    pub dead_reasons: BTreeMap<String, u64>,
    /// Of it: comparisons by result.
    pub results: BTreeMap<&'static str, u64>,
    /// Appends that another recorder won.
    pub lost: u64,
    /// Assignments and revocations.
    pub rebalances: u64,
    /// Partitions at the end.
    pub partitions: usize,
}

impl Summary {
    pub(super) fn add(&mut self, recorded: &Recorded) {
        let Some(added) = &recorded.chunk else {
            self.heartbeats += 1;
            return;
        };
        self.chunks += 1;
        self.balance.add(&added.balance);
        for (reason, count) in &added.dead_reasons {
            *self.dead_reasons.entry(reason.clone()).or_default() += count;
        }
        for (result, count) in &added.results {
            *self.results.entry(result).or_default() += count;
        }
    }
}

/// Records until it is stopped, or, once, until everything that was there is recorded.
///
/// # Errors
/// What ended it; nothing that was appended is lost by it.
pub fn run(ledger: &Ledger, options: &Options, stop: &AtomicBool, say: fn(&str)) -> Result<Summary, Stop> {
    ledger.probe()?;
    let follower = Arc::new(Follower::start(ledger, options.key.clone())?);
    let observer = Arc::new(Observer::new(options.settings.plain())?);
    let topics = topics(&follower, &observer, options)?;
    let cluster = observer.cluster();
    let session = Duration::from_millis(options.settings.session_ms());
    let pulse = Arc::new(Pulse::new(session.mul_f64(0.8)));
    let (to_reader, workers) = channel();
    let (jobs, todo) = channel();
    let todo = Mutex::new(todo);
    let (seen, ends) = channel();
    let (stop_ends, stopped) = channel::<()>();
    let keys = Arc::new(Mutex::new(Vec::new()));
    let number = options.workers.max(1);

    std::thread::scope(|scope| {
        let mut desks = Vec::new();
        for _ in 0..number {
            let (own, inbox) = channel();
            let queued = Arc::new(AtomicUsize::new(0));
            desks.push(Desk { inbox: own.clone(), queued: queued.clone() });
            let worker = Worker {
                inbox,
                own,
                commits: jobs.clone(),
                reader: to_reader.clone(),
                follower: follower.clone(),
                limits: options.limits,
                budget: options.budget / number,
                queued,
                pulse: pulse.clone(),
                simulated: ledger.is_simulated(),
            };
            scope.spawn(move || worker.run());
        }
        drop((jobs, to_reader));
        for _ in 0..COMMITTERS {
            scope.spawn(|| commits::run(ledger, &pulse, &options.telemetry, &todo));
        }
        let (outside, owned, followed) = (observer.clone(), keys.clone(), follower.clone());
        scope.spawn(move || {
            let ends = Ends { observer: &outside, owned: &owned, beside: &[], every: options.look };
            // An idle partition opens its next chunk under what the control chain says then; what cannot be read is said where
            // it is needed.
            let refresh = || drop(followed.refresh());
            ends.run(refresh, &seen, &stopped);
        });
        let assigner = Assigner {
            ledger: ledger.clone(),
            follower: follower.clone(),
            observer: observer.clone(),
            cluster,
            from: options.from,
            accept_gap: options.accept_gap.clone(),
        };
        let context = Context::new(assigner, desks, keys.clone(), options.telemetry.clone());
        let config = options.settings.consumer(&options.group, options.instance.as_deref());
        let consumer = BaseConsumer::from_config_and_context(&config, context)?;
        consumer.subscribe(&topics.iter().map(String::as_str).collect::<Vec<_>>())?;
        let reader = Reader {
            consumer,
            workers,
            ends,
            pulse: pulse.clone(),
            once: options.once,
            hints: options.hints,
            summary: Summary::default(),
            say,
        };
        let done = reader.run(stop);
        drop(stop_ends);
        done
    })
}

/// The topics to be read: registered, and there.
pub(super) fn topics(
    follower: &Follower,
    observer: &Observer,
    options: &Options,
) -> Result<Vec<String>, Stop> {
    let current = follower.now();
    let mut topics = Vec::new();
    for name in &options.sources {
        match current.source(name) {
            Some(source) if source.kind == SourceKind::Topic => topics.push(name.clone()),
            Some(_) => {
                return Err(Stop::Usage(format!(
                    "source `{name}` is no topic: `lastcall run` records files"
                )));
            }
            None => {
                return Err(Stop::Usage(format!(
                    "source `{name}` is not registered: `lastcall ledger source LEDGER {name} --kind topic --role \
                     mirrored-calls` does so"
                )));
            }
        }
    }
    if options.sources.is_empty() {
        let of_topics = current.sources().filter(|source| source.kind == SourceKind::Topic);
        topics.extend(of_topics.map(|source| source.name.clone()));
    }
    if topics.is_empty() {
        return Err(Stop::Usage(
            "the ledger has no source that is a topic: `lastcall ledger source LEDGER TOPIC --kind topic --role \
             mirrored-calls` registers one"
                .to_owned(),
        ));
    }
    for topic in &topics {
        let asked = observer.partitions(topic);
        let count = asked.map_err(|error| Stop::Kafka { what: format!("topic {topic}"), error })?;
        if count.is_none() {
            return Err(Stop::Topic(format!(
                "there is no topic `{topic}` at {}, or this client may not see it. Make it, or record others alone with --source",
                options.settings.brokers()
            )));
        }
    }
    Ok(topics)
}
