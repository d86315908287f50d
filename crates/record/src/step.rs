//! What goes into a recorder's step, and what comes out of it. Types alone.

use bytes::Bytes;
use lastcall_event::source::Header;
use lastcall_event::{Preset, Timestamp};
use lastcall_ledger::LedgerError;
use lastcall_ledger::chain::{Append, Tail};
use lastcall_ledger::entry::{ControlRef, FileKind, PartitionBody, Progress};
use lastcall_ledger::position::{NextOffset, Offset, Partition};

use crate::judge::Judge;
use crate::redact::Redactor;

/// What is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The source's name.
    pub source: String,
    /// The partition.
    pub partition: Partition,
    /// How its messages are read.
    pub preset: Preset,
    /// Offsets join without gaps, as the lines of a file do; in a topic compaction and markers leave gaps.
    pub dense: bool,
    /// The ledger's time comes from `clock` records.
    pub simulated: bool,
    /// Milliseconds after its end for which a day stays open.
    pub lateness_ms: i64,
}

/// When a chunk closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that it holds in memory: encoded pages and what is not encoded yet.
    pub bytes: usize,
    /// Milliseconds since its first record.
    pub age_ms: i64,
    /// Cells of its tallies.
    pub cells: usize,
    /// Records; for tests that cut the input anywhere.
    pub records: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 32 << 20, age_ms: 300_000, cells: 50_000, records: u64::MAX }
    }
}

/// The configuration under which records are processed: one control entry, and what it says.
pub struct Config {
    /// The control entry.
    pub control: ControlRef,
    /// Its time.
    pub at: Timestamp,
    /// The pairs that are compared.
    pub judge: Box<dyn Judge>,
    /// What of the records is not kept.
    pub redactor: Option<Redactor>,
}

/// One record as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Where it stands.
    pub offset: Offset,
    /// Where the next one stands.
    pub next: NextOffset,
    /// Its bytes, without a line's end; of one that is too long the first part.
    pub bytes: &'a [u8],
    /// Its key and headers, where the stream has them; maps may read them, and they are not stored.
    pub key: Option<&'a [u8]>,
    /// See [`Self::key`].
    pub headers: &'a [Header<'a>],
    /// How many bytes it has.
    pub length: u64,
    /// It is longer than the limit: `bytes` is a part.
    pub too_long: bool,
    /// The input ends within it, and nothing will follow.
    pub cut_off: bool,
    /// XXH3-128 of the text before `next`, for files.
    pub prefix: Option<u128>,
    /// Its message's time, where the stream has one.
    pub time: Option<Timestamp>,
}

/// What happens to a partition.
pub enum Input<'a> {
    /// The partition is ours, and stands here.
    Assigned {
        /// Its chain's tail.
        tail: Tail,
        /// What the tail says.
        progress: Progress,
    },
    /// One record.
    Record(Incoming<'a>),
    /// Everything before `next` was delivered.
    Barrier {
        /// The position.
        next: NextOffset,
        /// XXH3-128 of the text before it, for files.
        prefix: Option<u128>,
        /// Everything up to this moment was delivered; `None`: not at the end.
        read_through: Option<Timestamp>,
        /// Nothing will ever follow.
        is_final: bool,
    },
    /// The source has this many partitions now.
    Partitions(i32),
    /// Time passed.
    Tick,
    /// Close what is open, however small: the end of the input, or of the process.
    Close,
    /// The control chain grew.
    Configured(Box<Config>),
    /// The answer to a [`Commit`].
    Appended(Append),
    /// The partition is not ours any more: what is open is dropped.
    Lost,
}

/// What is to be done.
#[derive(Debug)]
pub enum Action {
    /// Write the files, then append the entry, then answer with [`Input::Appended`].
    Commit(Box<Commit>),
    /// Another writer was faster: what was in flight is dropped; read the tail and answer [`Input::Assigned`].
    Reassign,
}

/// Files and the entry that names them.
#[derive(Debug)]
pub struct Commit {
    /// The entry goes after this one.
    pub previous: Tail,
    /// The entry's body.
    pub body: PartitionBody,
    /// The files, each with its path.
    pub files: Vec<(String, Bytes)>,
    /// The writer's clock.
    pub now: Timestamp,
    /// The time of the control entry that the body names.
    pub floor: Timestamp,
}

impl Commit {
    /// The files' bytes by kind, as the body names them.
    pub fn into_files(self) -> Vec<(FileKind, Bytes)> {
        let kinds =
            self.body.chunk().map(|chunk| chunk.files.iter().map(|file| file.kind)).into_iter().flatten();
        kinds.zip(self.files).map(|(kind, (_, bytes))| (kind, bytes)).collect()
    }
}

/// Why the recorder stops.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A record came before the partition was assigned, or an answer that nobody waits for.
    #[error("the recorder of {0} was driven out of order: {1}")]
    OutOfOrder(String, &'static str),
    /// A record is missing.
    #[error(
        "{source_name}/{partition}: expected offset {expected}, got {found}: records in between were lost"
    )]
    Hole {
        /// The source.
        source_name: String,
        /// The partition.
        partition: i32,
        /// Where reading should have gone on.
        expected: i64,
        /// Where it did.
        found: i64,
    },
    /// Encoding failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// No randomness.
    #[error("the system's random source failed: {0}")]
    Random(String),
}

/// Fills a slice with random bytes.
pub type Random = Box<dyn FnMut(&mut [u8]) -> Result<(), String> + Send>;
