//! The recorder's hands: reads where a partition stands, writes files, appends entries. Decides nothing.

use lastcall_compare::COMPARATOR_VERSION;
use lastcall_event::Timestamp;
use lastcall_ledger::LedgerError;
use lastcall_ledger::chain::{self, Append, Tail};
use lastcall_ledger::control::SourceKind;
use lastcall_ledger::entry::{Build, ControlRef, PartitionBody, Progress};
use lastcall_ledger::index::PartitionEnd;
use lastcall_ledger::names::Chain;
use lastcall_ledger::position::{NextOffset, Partition};
use lastcall_ledger::store::Store;

use crate::recorder::beginning;
use crate::step::Commit;

/// Where a partition stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Assigned {
    /// Its chain's tail.
    pub tail: Tail,
    /// What the tail says.
    pub progress: Progress,
    /// The control entry that the tail names: nobody records under an older one.
    pub control: ControlRef,
}

/// Writes what one partition's recorder asks for.
pub struct Committer<'a> {
    store: &'a dyn Store,
    source: String,
    partition: Partition,
    chain: Chain,
    writer: String,
    known: Option<PartitionEnd>,
}

impl<'a> Committer<'a> {
    /// For one partition of one source, under a writer's random id.
    pub fn new(store: &'a dyn Store, source: &str, partition: Partition, writer: &str) -> Self {
        let chain = Chain::partition(source, partition);
        Self { store, source: source.to_owned(), partition, chain, writer: writer.to_owned(), known: None }
    }

    /// Looks for the tail from where the index says that the chain ended.
    #[must_use]
    pub fn knowing(self, known: Option<PartitionEnd>) -> Self {
        Self { known, ..self }
    }

    /// Reads where the partition stands; `None`: nobody has begun it.
    pub fn assigned(&self) -> Result<Option<Assigned>, LedgerError> {
        let read = match &self.known {
            Some(known) => chain::read_tail_after::<PartitionBody>(self.store, &self.chain, &known.tail)?,
            None => chain::read_tail::<PartitionBody>(self.store, &self.chain)?,
        };
        let end = read.map(|read| PartitionEnd::of(&self.source, self.partition, &read));
        let assigned =
            |end: PartitionEnd| Assigned { tail: end.tail, progress: end.progress, control: end.control };
        Ok(end.or_else(|| self.known.clone()).map(assigned))
    }

    /// Begins the partition. Whoever wins, [`Self::assigned`] then says where it stands.
    pub fn begin(
        &self,
        kind: SourceKind,
        location: &str,
        control: &ControlRef,
        floor: Timestamp,
        now: Timestamp,
    ) -> Result<Append, LedgerError> {
        self.begin_at(kind, location, control, floor, now, beginning(NextOffset(0), 1))
    }

    /// As [`Self::begin`], at a position of its own: a partition of a topic.
    pub fn begin_at(
        &self,
        kind: SourceKind,
        location: &str,
        control: &ControlRef,
        floor: Timestamp,
        now: Timestamp,
        progress: Progress,
    ) -> Result<Append, LedgerError> {
        let body = PartitionBody::Genesis {
            source: self.source.clone(),
            partition: self.partition.0,
            source_kind: kind,
            location: location.to_owned(),
            control: control.clone(),
            progress,
            build: Build { lastcall: env!("CARGO_PKG_VERSION").to_owned(), comparator: COMPARATOR_VERSION },
        };
        chain::append(self.store, &self.chain, None, &self.writer, now, Some(floor), &body)
    }

    /// Writes the files, each durable before the next, and then appends the entry that names them.
    pub fn commit(&self, commit: &Commit) -> Result<Append, LedgerError> {
        for (path, bytes) in &commit.files {
            self.store.put(path, bytes)?;
        }
        chain::append(
            self.store,
            &self.chain,
            Some(&commit.previous),
            &self.writer,
            commit.now,
            Some(commit.floor),
            &commit.body,
        )
    }
}
