//! The window of one partition: calls are replayed beside each other and answered in order. Two tasks: the intake decodes
//! what was polled and starts replays as the budget allows; the other sends rows in order and hears of their
//! acknowledgements.

mod emit;
mod intake;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use lastcall_event::Timestamp;
use lastcall_mirror::{Mirror, Stand};
use rdkafka::error::KafkaError;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, channel, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinHandle};

use super::Telemetry;
use super::mark::Mark;
use super::output::Output;
use super::parts::Reading;
use super::start::Start;
use crate::Stop;
use crate::kafka::Key;
use crate::kafka::member::Outer;
use crate::kafka::pulse::Pulse;
use emit::Emit;
use intake::Intake;

/// Entries of one window at once.
const WINDOW: usize = 1024;
/// Between two looks at whether the partition is idle.
const TICK: Duration = Duration::from_millis(500);
/// No moment.
const NEVER: i64 = i64::MIN;

/// A message as it was polled.
pub struct Message {
    /// Its offset.
    pub offset: i64,
    /// Its time.
    pub time: Option<Timestamp>,
    /// Its value; a tombstone has none.
    pub value: Vec<u8>,
    /// Key and headers, where a map may read them.
    pub outer: Option<Outer>,
}

impl Message {
    /// Bytes that it holds in memory, about.
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.value.len() + self.outer.as_ref().map_or(0, Outer::bytes)
    }
}

/// What a lane is told.
pub enum ToLane {
    /// A message.
    Message(Message),
    /// Everything before `next` was handed over, and that was everything at a moment.
    Barrier {
        /// The position.
        next: i64,
        /// The moment.
        at: Timestamp,
    },
    /// Nothing more comes.
    Close,
}

/// What all lanes share.
pub struct Shared {
    /// The candidates.
    pub mirror: Arc<Mirror>,
    /// How messages are read.
    pub reading: Reading,
    /// The output.
    pub output: Output,
    /// KiB that may be taken.
    pub budget: Arc<Semaphore>,
    /// KiB there are.
    pub total: u32,
    /// Whether this process still speaks to its group.
    pub pulse: Arc<Pulse>,
    /// Told of everything.
    pub telemetry: Arc<Telemetry>,
    /// An idle partition says how far it is mirrored this often at most.
    pub heartbeat: Duration,
    /// What ends the process.
    pub failed: Sender<Stop>,
    /// Clock records move time: the ledger is a simulated one.
    pub simulated: bool,
    /// No further calls are started.
    pub draining: AtomicBool,
}

/// A lane as the reader sees it. Its work ends with it.
pub struct Lane {
    /// What it is told.
    pub inbox: UnboundedSender<ToLane>,
    /// Bytes in its inbox.
    pub queued: Arc<AtomicUsize>,
    /// Acknowledged up to this upstream offset.
    pub done: Arc<AtomicI64>,
    /// Everything is acknowledged, and nothing more comes.
    pub closed: Arc<AtomicBool>,
    open: Arc<AtomicUsize>,
    shared: Arc<Shared>,
    tasks: [AbortHandle; 2],
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        let open = i64::try_from(self.open.load(Ordering::SeqCst)).unwrap_or_default();
        self.shared.telemetry.own().in_flight.dec_by(open);
    }
}

/// What both tasks of a lane know.
#[derive(Clone)]
struct Common {
    shared: Arc<Shared>,
    key: Key,
    generation: u64,
    /// Everything up to this moment is acknowledged.
    through: Arc<AtomicI64>,
    /// The latest moment that a message states.
    shown: Arc<AtomicI64>,
    /// Messages in the window or without an acknowledgement.
    open: Arc<AtomicUsize>,
}

impl Common {
    fn through(&self) -> Option<Timestamp> {
        let at = self.through.load(Ordering::SeqCst);
        (at != NEVER).then_some(Timestamp(at))
    }

    fn settled(&self, at: Timestamp) {
        self.through.fetch_max(at.0, Ordering::SeqCst);
        self.shared.telemetry.through(&self.key, at);
    }

    fn stop(&self, error: KafkaError, next: i64) -> Stop {
        let what = format!(
            "a message before upstream offset {next} into partition {} of the output; nothing was passed over, a start goes \
             on before it",
            self.key.partition
        );
        Stop::Kafka { what, error }
    }
}

/// A call that is replayed; dropped with its entry.
struct Replay(JoinHandle<Option<(Built, OwnedSemaphorePermit)>>);

impl Drop for Replay {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A row that is ready.
struct Built {
    text: String,
    through: Option<Timestamp>,
}

enum What {
    Row(Replay),
    Plain(Vec<u8>, &'static str),
    Cover(Stand),
}

/// What takes its turn.
enum Entry {
    Out {
        what: What,
        mark: Mark,
        time: Option<Timestamp>,
        clock: Option<Timestamp>,
        permit: Option<OwnedSemaphorePermit>,
    },
    Barrier {
        next: i64,
        at: Timestamp,
    },
}

impl Lane {
    /// Starts a partition's work.
    pub fn start(shared: &Arc<Shared>, runtime: &Handle, key: Key, generation: u64, start: &Start) -> Self {
        let (inbox, told) = unbounded_channel();
        let (turn, window) = channel(WINDOW);
        let queued = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(AtomicI64::new(start.mark.resume));
        let closed = Arc::new(AtomicBool::new(false));
        let common = Common {
            shared: shared.clone(),
            key,
            generation,
            through: Arc::new(AtomicI64::new(NEVER)),
            shown: Arc::new(AtomicI64::new(NEVER)),
            open: Arc::new(AtomicUsize::new(0)),
        };
        let (fresh, open) = (start.fresh, common.open.clone());
        let intake = Intake::new(common.clone(), start.mark, queued.clone(), turn);
        let emit = Emit::new(common, start.mark, done.clone(), closed.clone());
        let tasks = [
            runtime.spawn(async move { intake.run(told, fresh).await }).abort_handle(),
            runtime.spawn(async move { emit.run(window).await }).abort_handle(),
        ];
        Self { inbox, queued, done, closed, open, shared: shared.clone(), tasks }
    }

    /// Whether its work ended.
    pub fn is_finished(&self) -> bool {
        self.tasks.iter().all(AbortHandle::is_finished)
    }
}

fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX)
}

impl Shared {
    /// Tells how much of the budget is taken.
    fn held(&self) {
        let free = i64::try_from(self.budget.available_permits()).unwrap_or_default();
        self.telemetry.own().held_bytes.set((i64::from(self.total) - free).max(0) * 1024);
    }
}
