//! What one entry of the index chain says.

use std::collections::BTreeMap;

use lastcall_contract::Digest;
use lastcall_event::{Day, Timestamp};
use serde::{Deserialize, Serialize};

use crate::chain::{self, Read, Tail};
use crate::entry::{Build, ControlRef, Progress};
use crate::error::LedgerError;
use crate::names::Chain;
use crate::position::Partition;
use crate::sign::PublicKey;
use crate::store::Store;

/// The version of index entries and of the objects that they name. A newer one is refused with a message.
pub const INDEX_FORMAT: u32 = 1;

/// The tail of every chain that an index entry covers, without the index chain itself.
pub type Tails = BTreeMap<Chain, Tail>;

/// One entry of the index chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexBody {
    /// [`INDEX_FORMAT`].
    pub format: u32,
    /// The control chain.
    pub control: ControlAt,
    /// Every partition chain that has a genesis, by source and partition.
    pub partitions: Vec<PartitionAt>,
    /// Days on which calls lie that are not folded yet, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenDay>,
    /// Every tool with a call, a pair or a window.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ToolAt>,
    /// The last day on which calls of unknown tools were lost, among what is folded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_through: Option<Day>,
    /// The key that its writer was about to sign it with: without that signature something is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<PublicKey>,
    /// Who wrote it.
    pub build: Build,
}

/// The control chain as an index entry found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlAt {
    /// Its tail.
    pub tail: Tail,
    /// Digest of the folded state up to that tail, an object.
    pub state: Digest,
}

/// A partition chain as an index entry found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionAt {
    /// The source's name.
    pub source: String,
    /// The partition.
    pub partition: Partition,
    /// The chain's tail.
    pub tail: Tail,
    /// Where the partition stands after the tail.
    pub progress: Progress,
    /// The control entry that the tail names.
    pub control: ControlRef,
    /// The last entry whose rows are in day files, and whose counts are in the daily facts; what follows it is read
    /// from the chain. `None`: nothing is folded yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<Folded>,
}

/// How far a partition is folded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folded {
    /// The entry.
    pub tail: Tail,
    /// Where the partition stood after it.
    pub progress: Progress,
    /// The control entry that it names.
    pub control: ControlRef,
    /// Latest time of a call so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
    /// Which days the entries so far had closed, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<ClosedThrough>,
}

/// Every day up to `through` was closed by entry `seq` at the latest, when the source had so many partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedThrough {
    /// The last day.
    pub through: Day,
    /// The entry that closed it.
    pub seq: u64,
    /// The source's partitions there.
    pub partitions: i32,
}

/// A tool as an index entry found it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAt {
    /// Digest of its newest daily facts, an object; `None`: no pair of it was ever compared or observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Digest>,
    /// The last day of which something is folded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Day>,
}

/// A day on which calls lie that are not folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenDay {
    /// The day.
    pub day: Day,
    /// Calls, compared or not.
    pub calls: u64,
    /// Entries that hold them.
    pub entries: u64,
}

impl PartitionAt {
    /// The chain.
    pub fn chain(&self) -> Chain {
        Chain::partition(&self.source, self.partition)
    }
}

impl IndexBody {
    /// The tail of every chain that it covers.
    pub fn tails(&self) -> Tails {
        let control = (Chain::Control, self.control.tail.clone());
        let partitions = self.partitions.iter().map(|p| (p.chain(), p.tail.clone()));
        std::iter::once(control).chain(partitions).collect()
    }

    /// What it says of one partition.
    pub fn partition(&self, source: &str, partition: Partition) -> Option<&PartitionAt> {
        let key = |p: &PartitionAt| (p.source.as_str(), p.partition).cmp(&(source, partition));
        self.partitions.binary_search_by(key).ok().and_then(|at| self.partitions.get(at))
    }

    /// A chain whose tail it would let fall behind an earlier entry of the index chain, if there is one.
    pub fn falls_behind(&self, earlier: &Self) -> Option<Chain> {
        let now = self.tails();
        let falls = |(chain, was): &(Chain, Tail)| match now.get(chain) {
            None => true,
            Some(is) => is.seq < was.seq || (is.seq == was.seq && is.digest != was.digest),
        };
        let tails = earlier.tails().into_iter().find(falls).map(|(chain, _)| chain);
        tails.or_else(|| {
            let folded = |p: &PartitionAt| p.folded.as_ref().map(|f| f.tail.seq);
            let back = |was: &&PartitionAt| {
                self.partition(&was.source, was.partition).is_some_and(|is| folded(is) < folded(was))
            };
            earlier.partitions.iter().find(back).map(PartitionAt::chain)
        })
    }

    /// Refuses what a newer build wrote.
    pub(crate) fn known(self, seq: u64) -> Result<Self, LedgerError> {
        if self.format == INDEX_FORMAT {
            return Ok(self);
        }
        let what =
            format!("its format is {}, this build reads {INDEX_FORMAT}; take a newer lastcall", self.format);
        Err(LedgerError::unreadable(&Chain::Index.entry_path(seq), what))
    }
}

/// One entry of the index chain; `None` where none stands.
pub fn index_entry(store: &dyn Store, seq: u64) -> Result<Option<Read<IndexBody>>, LedgerError> {
    chain::read_entry::<IndexBody>(store, &Chain::Index, seq)?.map(known).transpose()
}

/// The newest entry of the index chain, whose digest is the ledger's head; `None` in a ledger that was never
/// compacted.
pub fn head(store: &dyn Store) -> Result<Option<Read<IndexBody>>, LedgerError> {
    chain::read_tail::<IndexBody>(store, &Chain::Index)?.map(known).transpose()
}

/// The whole index chain, in order; checks that it joins.
pub(crate) fn entries(store: &dyn Store) -> Result<Vec<Read<IndexBody>>, LedgerError> {
    chain::read_from::<IndexBody>(store, &Chain::Index, None)?.into_iter().map(known).collect()
}

fn known(mut read: Read<IndexBody>) -> Result<Read<IndexBody>, LedgerError> {
    read.entry.body = read.entry.body.known(read.entry.seq)?;
    Ok(read)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::position::NextOffset;
    use crate::store::MemoryStore;

    fn tail(seq: u64, what: &str) -> Tail {
        Tail { seq, digest: Digest::of(what.as_bytes()), at: Timestamp(1_780_000_000_000) }
    }

    fn body(seq: u64) -> IndexBody {
        let control = ControlRef { seq: 2, digest: Digest::of(b"c") };
        let progress: Progress = serde_json::from_str(
            r#"{"next":120,"partitions":1,"fingerprint":{},"clock":"2026-06-03T00:00:00.000Z"}"#,
        )
        .unwrap();
        IndexBody {
            format: INDEX_FORMAT,
            control: ControlAt { tail: tail(2, "c"), state: Digest::of(b"state") },
            partitions: vec![PartitionAt {
                source: "orders.jsonl".to_owned(),
                partition: Partition(0),
                tail: tail(seq, "p"),
                progress: progress.clone(),
                control: control.clone(),
                folded: Some(Folded {
                    tail: tail(seq.min(3), "f"),
                    progress: Progress { next: NextOffset(80), ..progress },
                    control,
                    newest: Some(Timestamp(1_780_000_000_001)),
                    closed: vec![ClosedThrough { through: Day(20_605), seq: 3, partitions: 1 }],
                }),
            }],
            open: vec![OpenDay { day: Day(20_606), calls: 7, entries: 2 }],
            tools: BTreeMap::from([(
                "search".to_owned(),
                ToolAt { facts: Some(Digest::of(b"facts")), newest: Some(Day(20_605)) },
            )]),
            lost_through: None,
            signer: None,
            build: Build { lastcall: "0.1.0".to_owned(), comparator: 1 },
        }
    }

    #[test]
    fn an_entry_keeps_its_bytes() {
        let store = MemoryStore::default();
        let none = head(&store).unwrap();
        assert!(none.is_none());
        let mut previous = None;
        for seq in [4, 5, 9] {
            let now = Timestamp(1_780_000_000_000);
            let done =
                chain::append(&store, &Chain::Index, previous.as_ref(), "w", now, None, &body(seq)).unwrap();
            let chain::Append::Won(tail) = done else { unreachable!("nobody else writes") };
            previous = Some(tail);
        }
        let read = head(&store).unwrap().unwrap();
        assert_eq!(read.entry.body, body(9));
        assert_eq!(Some(read.tail()), previous);
        let bytes = store.get(&Chain::Index.entry_path(2)).unwrap().unwrap();
        assert_eq!(serde_json::to_vec(&read.entry).unwrap(), bytes, "read and written again");
        assert_eq!(index_entry(&store, 1).unwrap().unwrap().entry.body, body(5));
        assert!(index_entry(&store, 3).unwrap().is_none());
        assert_eq!(
            read.entry.body.tails().get(&Chain::partition("orders.jsonl", Partition(0))).unwrap().seq,
            9
        );
    }

    #[test]
    fn no_tail_falls() {
        let chain = Chain::partition("orders.jsonl", Partition(0));
        assert_eq!(body(5).falls_behind(&body(4)), None);
        assert_eq!(body(4).falls_behind(&body(4)), None);
        assert_eq!(body(4).falls_behind(&body(5)), Some(chain.clone()));
        let mut other = body(4);
        other.partitions[0].tail.digest = Digest::of(b"another entry");
        assert_eq!(other.falls_behind(&body(4)), Some(chain.clone()));
        other = body(4);
        other.partitions[0].folded = None;
        assert_eq!(other.falls_behind(&body(4)), Some(chain.clone()));
        other.partitions.clear();
        assert_eq!(other.falls_behind(&body(4)), Some(chain));
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let store = MemoryStore::default();
        let newer = IndexBody { format: INDEX_FORMAT + 1, ..body(4) };
        chain::append(&store, &Chain::Index, None, "w", Timestamp(0), None, &newer).unwrap();
        let said = head(&store).unwrap_err().to_string();
        assert!(said.contains("chains/index/") && said.contains("take a newer lastcall"), "{said}");
    }
}
