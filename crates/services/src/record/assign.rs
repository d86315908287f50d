//! Where a partition goes on: at its chain's tail, nowhere else. What the topic says must fit.

use std::sync::Arc;

use lastcall_event::Timestamp;
use lastcall_ledger::Ledger;
use lastcall_ledger::chain::{self, Append};
use lastcall_ledger::control::SourceKind;
use lastcall_ledger::entry::{Build, LastRecord, PartitionBody};
use lastcall_ledger::names::Chain;
use lastcall_ledger::position::{NextOffset, Partition, Range};
use lastcall_ledger::state::SourceInfo;
use lastcall_record::{Assigned, Committer, beginning};

use super::Stop;
use super::follower::Follower;
use crate::kafka::From;
use crate::kafka::topic::{Bounds, Observer, patiently};

/// What a partition's recorder starts with.
pub struct Start {
    /// Where its chain ends.
    pub assigned: Assigned,
    /// Where reading begins: at the last record that was recorded, to be recognized, else at the next one.
    pub read_from: i64,
    /// The last record, if it is still there.
    pub last: Option<LastRecord>,
    /// The topic is known not to be compacted.
    pub keeps_all: bool,
}

/// Finds out where partitions go on.
pub struct Assigner {
    /// The ledger.
    pub ledger: Ledger,
    /// The control chain.
    pub follower: Arc<Follower>,
    /// The topic from outside.
    pub observer: Arc<Observer>,
    /// The cluster's id.
    pub cluster: Option<String>,
    /// For a first deployment.
    pub from: Option<From>,
    /// Why a range that the topic no longer has may be passed over; `None`: it may not.
    pub accept_gap: Option<String>,
}

impl Assigner {
    /// Where one partition goes on, beginning it if nobody has.
    ///
    /// # Errors
    /// The ledger or the topic cannot be read, or they do not fit: with the next step.
    pub fn start(&self, source: &SourceInfo, partition: i32, partitions: i32) -> Result<Start, Stop> {
        let store = self.ledger.store().clone();
        let committer = Committer::new(&*store, &source.name, Partition(partition), self.ledger.writer());
        let mut assigned = match committer.assigned()? {
            Some(assigned) => assigned,
            None => self.begin(&committer, source, partition, partitions)?,
        };
        self.follower.reach(&assigned.control)?;
        let bounds = patiently(|| self.observer.bounds(&source.name, partition))?;
        self.fits(source, partition, &assigned, bounds)?;
        if assigned.progress.next.0 < bounds.low {
            assigned = self.gap(source, partition, &assigned, bounds.low)?;
        }
        assigned.progress.partitions = assigned.progress.partitions.max(partitions);
        let next = assigned.progress.next.0;
        let last = assigned.progress.fingerprint.last.clone();
        let last = last.filter(|last| bounds.low <= last.offset.0 && last.offset.0 < next);
        let read_from = last.as_ref().map_or(next, |last| last.offset.0);
        let keeps_all = last.is_some() && self.observer.is_compacted(&source.name) == Some(false);
        Ok(Start { assigned, read_from, last, keeps_all })
    }

    /// Whether what the topic holds is what the record goes on with.
    ///
    /// # Errors
    /// Another cluster, a topic that was made again, or records that are gone and that nobody said may be.
    pub fn fits(
        &self,
        source: &SourceInfo,
        partition: i32,
        assigned: &Assigned,
        bounds: Bounds,
    ) -> Result<(), Stop> {
        self.same_cluster(source, assigned)?;
        let next = assigned.progress.next.0;
        if next > bounds.high {
            return Err(Stop::Topic(format!(
                "{}/{partition}: recording goes on at offset {next}, and the topic ends at {}: it was deleted and made \
                 again, or this is another cluster. Its new records are another source: give the topic another name, \
                 or record it into another ledger",
                source.name, bounds.high
            )));
        }
        if next < bounds.low && self.accept_gap.is_none() {
            return Err(Stop::Topic(format!(
                "{}/{partition}: recording goes on at offset {next}, and the topic begins at {}: {} records are gone \
                 (retention). To accept that, and have the record say so, start with --accept-gap \"WHY\"",
                source.name,
                bounds.low,
                bounds.low.saturating_sub(next)
            )));
        }
        Ok(())
    }

    fn same_cluster(&self, source: &SourceInfo, assigned: &Assigned) -> Result<(), Stop> {
        match (&assigned.progress.fingerprint.cluster, &self.cluster) {
            (Some(recorded), Some(here)) if recorded != here => Err(Stop::Topic(format!(
                "source `{}` was recorded from cluster {recorded}, and this is cluster {here}: offsets of one mean \
                 nothing on the other. Record it as another source",
                source.name
            ))),
            _ => Ok(()),
        }
    }

    /// Whether a partition was there when the source was begun: then it begins where the source does. The chains that were
    /// begun first say how many there were.
    fn is_of_the_first(&self, source: &str, partition: i32) -> Result<bool, Stop> {
        let store = self.ledger.store();
        let mut first = i32::MAX;
        for number in self.ledger.partition_numbers(source)? {
            let genesis = chain::read_entry::<PartitionBody>(&**store, &Chain::partition(source, number), 0)?;
            first = first.min(genesis.map_or(i32::MAX, |read| read.entry.body.progress().partitions));
        }
        Ok(partition < first)
    }

    /// The partition's genesis. One that was added to a source begins with its first record; a source that nobody has
    /// begun begins where it was told to.
    fn begin(
        &self,
        committer: &Committer<'_>,
        source: &SourceInfo,
        partition: i32,
        partitions: i32,
    ) -> Result<Assigned, Stop> {
        let bounds = patiently(|| self.observer.bounds(&source.name, partition))?;
        let first = self.is_of_the_first(&source.name, partition)?;
        let next = match (self.from, first) {
            (_, false) => bounds.low,
            (Some(from), true) => from.within(bounds),
            (None, true) => {
                return Err(Stop::Usage(format!(
                    "source `{}` was never recorded: say where it begins, with --from earliest (its partition \
                     {partition} holds offsets {} to {}), --from latest or --from OFFSET",
                    source.name, bounds.low, bounds.high
                )));
            }
        };
        let current = self.follower.refresh()?;
        let mut progress = beginning(NextOffset(next), partitions);
        progress.fingerprint.cluster.clone_from(&self.cluster);
        let now = self.ledger.system_now().unwrap_or_else(|| current.at());
        let cluster = self.cluster.as_deref().unwrap_or("a cluster without an id");
        let location = format!("{cluster}/{}", source.name);
        committer.begin_at(SourceKind::Topic, &location, current.control(), current.at(), now, progress)?;
        let place = || Chain::partition(&source.name, Partition(partition)).entry_path(0);
        committer.assigned()?.ok_or_else(|| lastcall_ledger::LedgerError::Missing { place: place() }.into())
    }

    /// A range that retention took before it was recorded: passed over only if a person accepted it.
    fn gap(
        &self,
        source: &SourceInfo,
        partition: i32,
        assigned: &Assigned,
        low: i64,
    ) -> Result<Assigned, Stop> {
        let next = assigned.progress.next;
        let reason = self.accept_gap.clone().unwrap_or_default();
        let current = self.follower.refresh()?;
        let mut progress = assigned.progress.clone();
        progress.next = NextOffset(low);
        progress.fingerprint.last = None;
        let body = PartitionBody::Gap {
            range: Range { first: next, next: NextOffset(low) },
            reason,
            control: current.control().clone(),
            progress,
            build: Build {
                lastcall: env!("CARGO_PKG_VERSION").to_owned(),
                comparator: lastcall_compare::COMPARATOR_VERSION,
            },
        };
        let chain = Chain::partition(&source.name, Partition(partition));
        let now: Timestamp = self.ledger.system_now().unwrap_or(assigned.tail.at);
        let store = self.ledger.store();
        let answer = chain::append(
            &**store,
            &chain,
            Some(&assigned.tail),
            self.ledger.writer(),
            now,
            Some(current.at()),
            &body,
        )?;
        let committer = Committer::new(&**store, &source.name, Partition(partition), self.ledger.writer());
        match (answer, committer.assigned()?) {
            (Append::Won(_), Some(assigned)) => Ok(assigned),
            // Another recorder was faster: it said so, or has gone on already.
            (Append::Lost, Some(assigned)) if assigned.progress.next.0 >= low => Ok(assigned),
            _ => Err(Stop::Topic(format!(
                "{}/{partition}: another recorder was faster; start again",
                source.name
            ))),
        }
    }
}
