//! Starts the threads of `lastcall-mirror`, and ends them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lastcall_mirror::Mirror;
use rdkafka::config::FromClientConfigAndContext as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;

use super::Telemetry;
use super::lane::Shared;
use super::output::Output;
use super::owned::Context;
use super::parts::Reading;
use super::reader::Reader;
use super::reload::Watch;
use super::start::{Counts, Starter};
use crate::Stop;
use crate::kafka::ends::Ends;
use crate::kafka::pulse::Pulse;
use crate::kafka::topic::Observer;
use crate::kafka::{From, Settings};

/// How the service is started.
pub struct Options {
    /// Brokers and librdkafka's settings.
    pub settings: Settings,
    /// The consumer group.
    pub group: String,
    /// For static membership.
    pub instance: Option<String>,
    /// The topic that is read.
    pub upstream: String,
    /// The topic that is written.
    pub output: String,
    /// Where a first deployment begins.
    pub from: Option<From>,
    /// The file of the configuration, which is looked at again, and its text at the start.
    pub file: (PathBuf, String),
    /// End when everything that was there is mirrored.
    pub once: bool,
    /// Bytes of what waits, is under way, or is not acknowledged.
    pub memory: usize,
    /// An idle partition says how far it is mirrored this often at most.
    pub heartbeat: Duration,
    /// Between two looks at the ends of partitions.
    pub look: Duration,
    /// Told of everything.
    pub telemetry: Arc<Telemetry>,
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Messages that the broker acknowledged, by kind.
    pub messages: BTreeMap<&'static str, u64>,
    /// Partitions at the end.
    pub partitions: usize,
    /// Assignments and revocations.
    pub rebalances: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |kind: &str| self.messages.get(kind).copied().unwrap_or_default();
        write!(
            f,
            "wrote {} rows, {} coverage, {} loss, {} clock, {} dead; {} rebalances, {} partitions at the end",
            of("call"),
            of("coverage"),
            of("loss"),
            of("clock"),
            of("dead"),
            self.rebalances,
            self.partitions,
        )
    }
}

impl Options {
    pub(super) fn starter(&self, observer: &Arc<Observer>) -> Starter {
        Starter {
            settings: self.settings.clone(),
            group: self.group.clone(),
            observer: observer.clone(),
            upstream: self.upstream.clone(),
            output: self.output.clone(),
            from: self.from,
        }
    }
}

/// Mirrors until it is stopped, or, once, until everything that was there is mirrored and acknowledged.
///
/// # Errors
/// What ended it; nothing that was acknowledged is lost by it.
pub fn run(
    mirror: Arc<Mirror>,
    reading: Reading,
    options: &Options,
    stop: &AtomicBool,
    say: fn(&str),
) -> Result<Summary, Stop> {
    let observer = Arc::new(Observer::new(options.settings.plain())?);
    let starter = options.starter(&observer);
    let count = starter.partitions()?;
    let output = Output::new(&options.settings, &observer, &options.output)?;
    let session = Duration::from_millis(options.settings.session_ms());
    let pulse = Arc::new(Pulse::new(session.mul_f64(0.8)));
    let (failed, fails) = channel();
    // A quarter may wait to be looked at, the rest is for calls and rows.
    let total = u32::try_from(options.memory / 1024 * 3 / 4).unwrap_or(u32::MAX >> 4).max(1);
    options.telemetry.own().candidates(&mirror);
    let shared = Arc::new(Shared {
        mirror,
        reading,
        output,
        budget: Arc::new(Semaphore::new(total as usize)),
        total,
        pulse,
        telemetry: options.telemetry.clone(),
        heartbeat: options.heartbeat,
        failed,
        draining: AtomicBool::new(false),
    });
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .thread_name("lane")
        .build()
        .map_err(|error| Stop::Away(format!("the runtime of the lanes: {error}")))?;
    let keys = Arc::new(Mutex::new(Vec::new()));
    let (seen, ends) = channel();
    let (stop_ends, stopped) = channel::<()>();
    let (stop_watch, unwatched) = channel::<()>();
    let done = std::thread::scope(|scope| {
        let beside = [Arc::from(options.output.as_str())];
        let owned = keys.clone();
        scope.spawn(move || {
            let ends = Ends { observer: &observer, owned: &owned, beside: &beside, every: options.look };
            ends.run(|| (), &seen, &stopped);
        });
        let (path, text) = &options.file;
        let watch = Watch { path, shared: shared.clone(), say };
        scope.spawn(move || watch.run(text.clone(), &unwatched));
        let context = Context::new(starter, shared.clone(), runtime.handle().clone(), keys.clone(), say);
        let config = options.settings.consumer(&options.group, options.instance.as_deref());
        let consumer = BaseConsumer::from_config_and_context(&config, context)?;
        consumer.subscribe(&[&options.upstream])?;
        let reader = Reader {
            consumer,
            ends,
            failed: fails,
            once: options.once,
            waiting: options.memory / 4,
            counts: Counts::new(&options.upstream, &options.output, count),
        };
        let done = reader.run(stop);
        drop((stop_ends, stop_watch));
        done
    });
    // Candidates that do not answer do not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}
