//! Bodies of the partition chains: genesis, chunk, gap, heartbeat.

use std::collections::BTreeMap;

use lastcall_contract::Digest;
use lastcall_event::{Day, Timestamp};
use serde::{Deserialize, Serialize};

use crate::control::SourceKind;
use crate::position::{NextOffset, Offset, Range};
use crate::tally::{CallCount, Exposure, Tally};

/// A control entry that another entry names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ControlRef {
    /// Its sequence number.
    pub seq: u64,
    /// Digest of its bytes.
    pub digest: Digest,
}

/// How the next reader knows that it reads the same stream.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The cluster's id, for a topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// XXH3-128 (32 hex digits) over the first `next` bytes of the uncompressed text, for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The last record that was processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRecord>,
}

/// The last record of a chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRecord {
    /// Its offset.
    pub offset: Offset,
    /// Its message's time, where the stream has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// XXH3-128 (32 hex digits) over its bytes, without the line's end.
    pub hash: String,
}

/// Where a partition stands after an entry. Carried along, so that the tail alone says how to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Everything before was processed.
    pub next: NextOffset,
    /// How many partitions the source had.
    pub partitions: i32,
    /// What was read, to be recognized.
    pub fingerprint: Fingerprint,
    /// Everything up to this moment of ledger time had been read; `None`: never at the end so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_through: Option<Timestamp>,
    /// Nothing will ever follow (`--final`).
    #[serde(default, rename = "final", skip_serializing_if = "is_false")]
    pub is_final: bool,
    /// In a simulated ledger: the latest clock record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Timestamp>,
    /// Of mirrored calls: how far upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamProgress>,
    /// Of a producer's own counts: complete up to here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage_through: Option<Timestamp>,
}

/// How far the mirror's upstream positions were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamProgress {
    /// The first upstream position seen.
    pub from: i64,
    /// One past the last.
    pub to: i64,
    /// How far in time the mirror knew its upstream complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Timestamp>,
    /// Upstream positions that no row stood for, so far.
    pub missing: u64,
}

/// A file of the ledger, as its entry names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// What it holds.
    pub kind: FileKind,
    /// Its path in the ledger.
    pub path: String,
    /// SHA-256 of its bytes.
    pub sha256: Digest,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
}

/// What a data file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// Raw arguments, outcomes, envelopes. Personal data.
    Calls,
    /// One row per (call, pair). No values.
    Results,
    /// What could not be decoded. Personal data.
    Dead,
}

impl FileKind {
    /// Every kind, in the order in which files are written.
    pub const ALL: [Self; 3] = [Self::Calls, Self::Results, Self::Dead];

    /// Its folder, and its name in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Results => "results",
            Self::Dead => "dead",
        }
    }
}

/// `read = calls + dead + other` (invariant 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Balance {
    /// Records read.
    pub read: u64,
    /// Calls, mirrored or not.
    pub calls: u64,
    /// What could not be decoded.
    pub dead: u64,
    /// Everything else: `blank + coverage + loss + clock + not_calls`.
    pub other: u64,
    /// Blank lines.
    pub blank: u64,
    /// Coverage rows.
    pub coverage: u64,
    /// Loss rows.
    pub loss: u64,
    /// Clock records.
    pub clock: u64,
    /// Of mapped sources: records that are no calls, and messages that hold no record.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_calls: u64,
    /// Of the calls: those that name no contract, and whose tool's name fits one that is compared.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub by_name: u64,
    /// Of the calls: those that name no contract, and whose tool's name fits several: unresolved.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub several: u64,
}

impl Balance {
    /// Whether both sums hold.
    pub fn holds(&self) -> bool {
        let sum = |parts: &[u64]| parts.iter().try_fold(0u64, |a, b| a.checked_add(*b));
        sum(&[self.calls, self.dead, self.other]) == Some(self.read)
            && sum(&[self.blank, self.coverage, self.loss, self.clock, self.not_calls]) == Some(self.other)
            && sum(&[self.by_name, self.several]).is_some_and(|named| named <= self.calls)
    }

    /// Adds another's counts.
    pub fn add(&mut self, more: &Self) {
        self.read += more.read;
        self.calls += more.calls;
        self.dead += more.dead;
        self.other += more.other;
        self.blank += more.blank;
        self.coverage += more.coverage;
        self.loss += more.loss;
        self.clock += more.clock;
        self.not_calls += more.not_calls;
        self.by_name += more.by_name;
        self.several += more.several;
    }
}

/// A producer's own count of one tool's calls in one hour.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CoverageCount {
    /// Tool.
    pub tool: String,
    /// Start of the hour.
    pub hour: Timestamp,
    /// Calls.
    pub count: u64,
}

/// Calls that an interceptor had to drop.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LossCount {
    /// Tool; `None`: the interceptor does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// From when.
    pub from: Timestamp,
    /// To when.
    pub to: Timestamp,
    /// Calls.
    pub count: u64,
}

impl LossCount {
    /// The days on which the calls may have been lost: nobody knows on which of them, so they count on each, as what is
    /// unknown does. The interval is half-open: one that ends at midnight is of the day before. No more than 401.
    pub fn days(&self) -> impl DoubleEndedIterator<Item = Day> {
        let last = Timestamp(self.to.0.saturating_sub(1));
        let (from, to) = (self.from.day().0, last.day().0);
        (from..=to.max(from).min(from.saturating_add(400))).map(Day)
    }
}

/// Who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Version of Lastcall.
    pub lastcall: String,
    /// Version of the comparator.
    pub comparator: u32,
}

/// Everything that was processed between two positions of one partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// The positions.
    #[serde(flatten)]
    pub range: Range,
    /// The control entry under which the first record was processed: the configuration of the whole chunk.
    pub control: ControlRef,
    /// Where the partition stands after it; its `next` is the range's.
    pub progress: Progress,
    /// Its files; one that would have no rows is not written.
    pub files: Vec<FileRef>,
    /// The balanced counts.
    pub balance: Balance,
    /// Fields of records that the build did not know.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_fields: u64,
    /// Dead letters by reason code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dead_reasons: BTreeMap<String, u64>,
    /// Calls by (day, tool, contract, cohort, agent).
    pub calls: Vec<CallCount>,
    /// Results by (day, tool, epoch, cohort, agent).
    pub tallies: Vec<Tally>,
    /// Changed places touched, by (day, epoch, place).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exposure: Vec<Exposure>,
    /// A producer's own counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<CoverageCount>,
    /// What interceptors dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<LossCount>,
    /// Earliest time of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// Latest time of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
    /// Who wrote it.
    pub build: Build,
}

/// One entry of a partition chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PartitionBody {
    /// The first entry.
    Genesis {
        /// The source's name.
        source: String,
        /// The partition.
        partition: i32,
        /// Kind of stream.
        source_kind: SourceKind,
        /// Where it was found: a file's name, or cluster and topic.
        location: String,
        /// The control entry that was current.
        control: ControlRef,
        /// Where reading begins.
        progress: Progress,
        /// Who wrote it.
        build: Build,
    },
    /// What was recorded of a range.
    Chunk(Box<Chunk>),
    /// A range that was lost for good, accepted by a person.
    Gap {
        /// The positions.
        #[serde(flatten)]
        range: Range,
        /// Why.
        reason: String,
        /// The control entry that was current.
        control: ControlRef,
        /// Where the partition stands after it.
        progress: Progress,
        /// Who wrote it.
        build: Build,
    },
    /// Nothing new up to a moment: closes days of an idle partition.
    Heartbeat {
        /// The control entry that was current.
        control: ControlRef,
        /// Where the partition stands.
        progress: Progress,
        /// Who wrote it.
        build: Build,
    },
}

impl PartitionBody {
    /// Where the partition stands after the entry.
    pub fn progress(&self) -> &Progress {
        match self {
            Self::Chunk(chunk) => &chunk.progress,
            Self::Genesis { progress, .. }
            | Self::Gap { progress, .. }
            | Self::Heartbeat { progress, .. } => progress,
        }
    }

    /// The control entry that it names.
    pub fn control(&self) -> &ControlRef {
        match self {
            Self::Chunk(chunk) => &chunk.control,
            Self::Genesis { control, .. } | Self::Gap { control, .. } | Self::Heartbeat { control, .. } => {
                control
            }
        }
    }

    /// The chunk, if it is one.
    pub fn chunk(&self) -> Option<&Chunk> {
        match self {
            Self::Chunk(chunk) => Some(chunk),
            _ => None,
        }
    }
}

pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

pub(crate) fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_losses_ends_before_its_end() {
        let at = |text: &str| Timestamp::parse(text).unwrap_or_default();
        let days = |from: &str, to: &str| {
            let loss = LossCount { tool: None, from: at(from), to: at(to), count: 1 };
            loss.days().map(|day| day.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(days("2026-06-01T23:00:00Z", "2026-06-02T00:00:00Z"), ["2026-06-01"]);
        assert_eq!(days("2026-06-01T23:00:00Z", "2026-06-02T00:00:00.001Z"), ["2026-06-01", "2026-06-02"]);
        assert_eq!(
            days("2026-06-02T00:00:00Z", "2026-06-02T00:00:00Z"),
            ["2026-06-02"],
            "an empty one counts too"
        );
        assert_eq!(
            days("2026-06-02T00:00:00Z", "2026-06-01T00:00:00Z"),
            ["2026-06-02"],
            "so does one backwards"
        );
    }
}
