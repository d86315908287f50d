//! Reading on from the newest index entry: what it spares, and what follows it.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::chain::{self, Read, Tail};
use crate::control::Entry;
use crate::entry::{Chunk, ControlRef, PartitionBody, Progress};
use crate::error::LedgerError;
use crate::index::{IndexBody, PartitionAt};
use crate::ledger::{Ledger, PartitionChain, check_following};
use crate::names::{self, Chain};
use crate::position::{Offset, Partition};
use crate::state::ControlState;

/// Where a partition chain ends.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionEnd {
    /// The source's name.
    pub source: String,
    /// The partition.
    pub partition: Partition,
    /// The chain's tail.
    pub tail: Tail,
    /// Where the partition stands.
    pub progress: Progress,
    /// The control entry that the tail names.
    pub control: ControlRef,
}

impl PartitionEnd {
    /// From the tail's entry.
    pub fn of(source: &str, partition: Partition, read: &Read<PartitionBody>) -> Self {
        Self {
            source: source.to_owned(),
            partition,
            tail: read.tail(),
            progress: read.entry.body.progress().clone(),
            control: read.entry.body.control().clone(),
        }
    }
}

impl From<&PartitionAt> for PartitionEnd {
    fn from(at: &PartitionAt) -> Self {
        Self {
            source: at.source.clone(),
            partition: at.partition,
            tail: at.tail.clone(),
            progress: at.progress.clone(),
            control: at.control.clone(),
        }
    }
}

/// The ledger as it stands: the newest index entry, the control chain, and of every partition chain what follows the
/// last entry that is folded.
#[derive(Clone, Debug)]
pub struct Current {
    /// The newest index entry.
    pub head: Option<Read<IndexBody>>,
    /// The control chain.
    pub control: ControlState,
    /// The partition chains.
    pub chains: Vec<PartitionChain>,
}

impl Ledger {
    /// The control chain as it stands: the fold that the newest index entry names, and the entries behind it.
    pub fn control_now(&self) -> Result<ControlState, LedgerError> {
        self.control_since(self.head()?.as_ref())
    }

    /// The same, from an index entry that is known (`None`: from the genesis).
    pub fn control_since(&self, head: Option<&Read<IndexBody>>) -> Result<ControlState, LedgerError> {
        let mut state = match head {
            Some(head) => self.folded_control(head)?,
            None => ControlState::default(),
        };
        self.follow_control(&mut state)?;
        Ok(state)
    }

    fn folded_control(&self, head: &Read<IndexBody>) -> Result<ControlState, LedgerError> {
        let at = &head.entry.body.control;
        let bytes = self.object(&at.state)?;
        let place = names::object_path(&at.state);
        let state: ControlState =
            serde_json::from_slice(&bytes).map_err(|e| LedgerError::unreadable(&place, e))?;
        let base = state.base.as_ref();
        if base.is_none_or(|base| base.tail != at.tail || base.ledger_id != self.meta().id) {
            let place = Chain::Index.entry_path(head.entry.seq);
            return Err(LedgerError::altered(
                &place,
                "the control state that it names is not that of its tail",
            ));
        }
        if base.is_some_and(|base| base.clock != self.meta().clock) {
            let what = "its `clock` is not the one that the ledger's genesis states";
            return Err(LedgerError::altered(names::META, what));
        }
        Ok(state)
    }

    /// Whether the control entry that an entry names stands in the chain; one that only the fold was read of is read.
    pub fn check_control(&self, state: &ControlState, named: &ControlRef) -> Result<bool, LedgerError> {
        if !state.is_folded(named.seq) {
            return Ok(state.agrees(named));
        }
        match self.control_entry(named) {
            Ok(_) => Ok(true),
            Err(LedgerError::Altered { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Where every partition chain ends, found by galloping from the tails that an index entry names.
    pub fn ends(
        &self,
        control: &ControlState,
        head: Option<&IndexBody>,
    ) -> Result<Vec<PartitionEnd>, LedgerError> {
        self.check_sources(control)?;
        let mut ends = Vec::new();
        for source in control.sources.keys() {
            each_partition(|partition| {
                let at = head.and_then(|head| head.partition(source, partition));
                let end = self.end(source, partition, at)?;
                let known = end.as_ref().map(|end| end.progress.partitions);
                ends.extend(end);
                Ok(known)
            })?;
        }
        Ok(ends)
    }

    /// Where one partition chain ends; `None` without a genesis.
    pub fn end(
        &self,
        source: &str,
        partition: Partition,
        at: Option<&PartitionAt>,
    ) -> Result<Option<PartitionEnd>, LedgerError> {
        let chain = Chain::partition(source, partition);
        let store = &**self.store();
        let Some(at) = at else {
            let read = chain::read_tail::<PartitionBody>(store, &chain)?;
            return Ok(read.map(|read| PartitionEnd::of(source, partition, &read)));
        };
        // A final source takes nothing more.
        let read = match at.progress.is_final {
            true => None,
            false => chain::read_tail_after::<PartitionBody>(store, &chain, &at.tail)?,
        };
        Ok(Some(read.map_or_else(|| at.into(), |read| PartitionEnd::of(source, partition, &read))))
    }

    /// The chunk that recorded a position, found by halving the chain: the entries' positions ascend.
    pub fn chunk_at(
        &self,
        source: &str,
        partition: Partition,
        offset: Offset,
    ) -> Result<Option<Chunk>, LedgerError> {
        let head = self.head()?;
        let at = head.as_ref().and_then(|head| head.entry.body.partition(source, partition));
        let Some(end) = self.end(source, partition, at)? else { return Ok(None) };
        let chain = Chain::partition(source, partition);
        let read = |seq: u64| {
            let read = chain::read_entry::<PartitionBody>(&**self.store(), &chain, seq)?;
            read.ok_or_else(|| LedgerError::Missing { place: chain.entry_path(seq) })
        };
        // The first entry that ends behind the position.
        let (mut low, mut high) = (0, end.tail.seq);
        while low < high {
            let middle = low + (high - low) / 2;
            if read(middle)?.entry.body.progress().next.0 > offset.0 {
                high = middle
            } else {
                low = middle + 1
            }
        }
        Ok(match read(low)?.entry.body {
            PartitionBody::Chunk(chunk) if chunk.range.contains(offset) => Some(*chunk),
            _ => None,
        })
    }

    /// The ledger as it stands, read from the newest index entry on.
    pub fn current(&self) -> Result<Current, LedgerError> {
        let head = self.head()?;
        let control = self.control_since(head.as_ref())?;
        self.read_on(head, control, usize::MAX)
    }

    /// The same without any index entry: every chain from its genesis.
    pub fn from_genesis(&self) -> Result<Current, LedgerError> {
        self.read_on(None, self.control()?, usize::MAX)
    }

    /// Refuses a record in which a chain stands that the control chain does not name: the entries that registered its source
    /// are gone, and what it holds would be left out unseen.
    pub fn check_sources(&self, control: &ControlState) -> Result<(), LedgerError> {
        let known: HashSet<String> = control.sources.keys().map(|name| names::encode(name)).collect();
        let mut control = Cow::Borrowed(control);
        for folder in self.store().folders(names::CHAINS)? {
            if folder == "control" || folder == "index" || known.contains(&folder) {
                continue;
            }
            // It may have been registered since the control chain was read.
            self.follow_control(control.to_mut())?;
            if control.sources.keys().any(|name| names::encode(name) == folder) {
                continue;
            }
            let place = format!("{}/{folder}", names::CHAINS);
            let Some(path) = self.store().list(&place)?.into_iter().next() else { continue };
            let bytes = self.store().get(&path)?.unwrap_or_default();
            let named = serde_json::from_slice::<Entry<PartitionBody>>(&bytes).ok();
            let named = named.map(|entry| entry.body.control().seq);
            return Err(match named.filter(|seq| control.tail().is_none_or(|tail| tail.seq < *seq)) {
                Some(seq) => {
                    let control = Chain::Control.entry_path(seq);
                    LedgerError::Missing { place: format!("{control} (which {path} names)") }
                }
                None => LedgerError::altered(&place, "no entry of the control chain registers this source"),
            });
        }
        Ok(())
    }

    /// Every partition chain from what is folded on, no more than `limit` entries beyond the tail that is known.
    pub(crate) fn read_on(
        &self,
        head: Option<Read<IndexBody>>,
        mut control: ControlState,
        limit: usize,
    ) -> Result<Current, LedgerError> {
        let mut chains = Vec::new();
        for source in control.sources.keys() {
            each_partition(|partition| {
                let at = head.as_ref().and_then(|head| head.entry.body.partition(source, partition));
                let chain = self.chain_since(source, partition, at, limit)?;
                let known = chain.progress().map(|progress| progress.partitions);
                chains.extend(chain.tail().is_some().then_some(chain));
                Ok(known)
            })?;
        }
        self.check_sources(&control)?;
        // Entries may name a control entry that came meanwhile.
        self.follow_control(&mut control)?;
        Ok(Current { head, control, chains })
    }

    fn chain_since(
        &self,
        source: &str,
        partition: Partition,
        at: Option<&PartitionAt>,
        limit: usize,
    ) -> Result<PartitionChain, LedgerError> {
        let chain = Chain::partition(source, partition);
        let folded = at.and_then(|at| at.folded.clone());
        let before = folded.as_ref().map(|folded| &folded.tail);
        let known = at.map_or(0, |at| at.tail.seq.saturating_add(1));
        let read = known.saturating_sub(before.map_or(0, |tail| tail.seq.saturating_add(1)));
        let within = usize::try_from(read).unwrap_or(usize::MAX);
        // A final source takes nothing more.
        let limit = match at.is_some_and(|at| at.progress.is_final) {
            true => within,
            false => within.saturating_add(limit),
        };
        let entries = chain::read_some::<PartitionBody>(&**self.store(), &chain, before, limit)?;
        if let Some(at) = at {
            follows_index(&chain, at, &entries)?;
        }
        check_following(&chain, folded.as_ref().map(|f| (&f.progress, f.control.seq)), &entries)?;
        Ok(PartitionChain { source: source.to_owned(), partition, folded, entries })
    }
}

/// Calls `each` for every partition of a source; it answers with the partition count that it found there, `None` where
/// there is no genesis. One beyond the count is asked for too: a partition that was added may begin before an entry of an
/// earlier one knows of it.
fn each_partition(
    mut each: impl FnMut(Partition) -> Result<Option<i32>, LedgerError>,
) -> Result<(), LedgerError> {
    let (mut number, mut known) = (0, 1);
    loop {
        match each(Partition(number))? {
            Some(count) => known = known.max(count),
            None if number >= known => return Ok(()),
            None => {}
        }
        number += 1;
    }
}

/// The tail that an index entry names has to stand in the chain.
fn follows_index(
    chain: &Chain,
    at: &PartitionAt,
    entries: &[Read<PartitionBody>],
) -> Result<(), LedgerError> {
    if at.folded.as_ref().is_some_and(|folded| folded.tail == at.tail) {
        return Ok(());
    }
    let path = chain.entry_path(at.tail.seq);
    match entries.iter().find(|read| read.entry.seq == at.tail.seq) {
        Some(read) if read.digest == at.tail.digest => Ok(()),
        Some(_) => Err(LedgerError::altered(&path, "it is not the entry that the index names")),
        None => Err(LedgerError::Missing { place: path }),
    }
}
