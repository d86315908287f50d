//! One chain, read once from its first entry to a tail that was fixed before.

use lastcall_contract::Digest;
use lastcall_event::Timestamp;
use serde::de::DeserializeOwned;

use super::{ChainEnd, Outcome, Verifier, length};
use crate::chain::{self, Read, Tail};
use crate::control::Entry;
use crate::entry::{ControlRef, PartitionBody, Progress};
use crate::error::LedgerError;
use crate::ledger::breaks_after;
use crate::names::{self, Chain};
use crate::position::Partition;

/// Takes every place of a chain in turn.
type EachEntry<'a, 'b, B> =
    dyn FnMut(&mut Verifier<'b>, u64, Option<Read<B>>) -> Result<(), LedgerError> + 'a;

impl<'b> Verifier<'b> {
    /// The last entry of a chain that stands now, whatever is missing before it; `None`: there is none.
    pub(super) fn bound(&self, chain: &Chain) -> Result<Option<u64>, LedgerError> {
        chain::last_standing(&**self.ledger.store(), chain)
    }

    /// Reads a chain up to `bound` and reports what does not join. `each` is given every entry, and `None` for one that
    /// cannot be read and for the first of those that are missing.
    pub(super) fn stream<B: DeserializeOwned>(
        &mut self,
        chain: &Chain,
        bound: Option<u64>,
        each: &mut EachEntry<'_, 'b, B>,
    ) -> Result<(), LedgerError> {
        let store = self.ledger.store().clone();
        let mut before: Option<Tail> = None;
        let (mut place, next) = (0, length(bound));
        while place < next {
            let seq = place;
            place += 1;
            let path = chain.entry_path(seq);
            self.tell(&path);
            self.done += 1;
            let record = Some(format!("{chain} entry {seq}"));
            let Some(bytes) = store.get(&path)? else {
                let behind = chain::listed(&*store, chain, Some(seq), 1)?.first().map_or(next, |seq| *seq);
                let what = match behind - place {
                    0 => format!("the entry is missing, and entry {behind} stands behind it"),
                    1 => format!(
                        "the entry and the one after it are missing, and entry {behind} stands behind them"
                    ),
                    more => format!(
                        "the entry and {more} after it are missing, and entry {behind} stands behind them"
                    ),
                };
                self.missing(&path, record, &what);
                (before, place) = (None, behind);
                each(self, seq, None)?;
                continue;
            };
            self.report.entries += 1;
            let digest = Digest::of(&bytes);
            self.referred(chain, seq, Some(&digest));
            let read = self.entry::<B>(&path, record.clone(), &bytes, digest.clone());
            if let Some(read) = &read {
                self.joins(chain, seq, before.as_ref(), read);
            }
            let at = read.as_ref().map_or(Timestamp(i64::MIN), |read| read.entry.at);
            if self.newest.as_ref().is_none_or(|(newest, _)| at > *newest) {
                self.newest = Some((at, path.clone()));
            }
            before = Some(Tail { seq, digest, at });
            each(self, seq, read)?;
        }
        let tail = before.map(|tail| tail.digest);
        let end = ChainEnd { chain: chain.to_string(), entries: next, tail, grew: false };
        if next > 0 || *chain != Chain::Index {
            self.report.chains.push(end);
        }
        Ok(())
    }

    /// Reads the bytes of an entry; says what they are if they are none.
    fn entry<B: DeserializeOwned>(
        &mut self,
        path: &str,
        record: Option<String>,
        bytes: &[u8],
        digest: Digest,
    ) -> Option<Read<B>> {
        match serde_json::from_slice::<Entry<B>>(bytes) {
            Ok(entry) => return Some(Read { entry, digest }),
            Err(error) if error.is_eof() => {
                self.find(Outcome::Truncated, path, record, "the entry is cut off");
            }
            Err(error) => {
                let shaped = serde_json::from_slice::<Entry<serde_json::Value>>(bytes).is_ok();
                let (outcome, what) = if shaped {
                    let what = format!(
                        "this build does not know its body ({error}): it was altered, or a newer lastcall wrote it and \
                         can check it"
                    );
                    (Outcome::CannotCheck, what)
                } else {
                    (Outcome::Altered, format!("it is not an entry: {error}"))
                };
                self.find(outcome, path, record, what);
            }
        }
        None
    }

    fn joins<B>(&mut self, chain: &Chain, seq: u64, before: Option<&Tail>, read: &Read<B>) {
        let path = chain.entry_path(seq);
        let record = Some(format!("{chain} entry {seq}"));
        let entry = &read.entry;
        if entry.seq != seq {
            let what = format!("the entry says that it is entry {}", entry.seq);
            return self.find(Outcome::Altered, &path, record, what);
        }
        match before {
            // What is missing in front of it was said.
            None if seq > 0 => {}
            _ if entry.previous.as_ref() != before.map(|tail| &tail.digest) => {
                let other = seq.checked_sub(1).map(|seq| format!(" ({})", chain.entry_path(seq)));
                let what = format!(
                    "it does not name the digest of the entry before it{}: one of the two was altered",
                    other.unwrap_or_default()
                );
                self.find(Outcome::Altered, &path, record, what);
            }
            Some(tail) if entry.at < tail.at => {
                self.find(Outcome::Altered, &path, record, "its time is before that of the entry before it");
            }
            _ => {}
        }
    }

    /// The partitions of every source, each with its tail.
    pub(super) fn partition_bounds(&mut self) -> Result<Vec<(String, Partition, Option<u64>)>, LedgerError> {
        let mut out = Vec::new();
        let sources: Vec<String> = self.control.state.sources.keys().cloned().collect();
        for source in sources {
            let (mut number, mut known) = (0, 1);
            loop {
                let chain = Chain::partition(&source, Partition(number));
                let bound = self.bound(&chain)?;
                // One that was added may stand there before an entry of an earlier one knows of it.
                if bound.is_none() && number >= known {
                    break;
                }
                if let Some(seq) = bound
                    && let Some(bytes) = self.ledger.store().get(&chain.entry_path(seq))?
                    && let Ok(entry) = serde_json::from_slice::<Entry<PartitionBody>>(&bytes)
                {
                    known = known.max(entry.body.progress().partitions);
                }
                out.push((source.clone(), Partition(number), bound));
                number += 1;
            }
            self.control.partitions.insert(source, (known, known));
        }
        Ok(out)
    }

    /// Partitions that only entries before a tail that cannot be read know of.
    pub(super) fn later_partitions(&mut self) -> Result<(), LedgerError> {
        let later: Vec<(String, i32, i32)> = self
            .control
            .partitions
            .iter()
            .filter(|(_, (fixed, known))| known > fixed)
            .map(|(source, (fixed, known))| (source.clone(), *fixed, *known))
            .collect();
        for (source, fixed, known) in later {
            for number in (fixed..known).map(Partition) {
                let bound = self.bound(&Chain::partition(&source, number))?;
                self.partition(&source, number, bound)?;
            }
        }
        Ok(())
    }

    /// Chains that stand there and that nothing registers: what registered them is gone, or they are another ledger's.
    pub(super) fn foreign_chains(&mut self) -> Result<(), LedgerError> {
        let store = self.ledger.store().clone();
        for source in store.folders(names::CHAINS)? {
            if source == "control" || source == "index" {
                continue;
            }
            for partition in store.folders(&format!("{}/{source}", names::CHAINS))? {
                let place = format!("{}/{source}/{partition}", names::CHAINS);
                let chain = Chain::of_folder(&source, &partition);
                let known = match &chain {
                    Some(Chain::Partition { source, partition }) => {
                        self.control.partitions.get(source).is_some_and(|(_, known)| partition.0 < *known)
                    }
                    _ => false,
                };
                if known {
                    continue;
                }
                let Some(path) = store.list(&place)?.into_iter().next() else { continue };
                let bytes = store.get(&path)?.unwrap_or_default();
                match serde_json::from_slice::<Entry<PartitionBody>>(&bytes) {
                    Ok(entry) => self.foreign_chain(chain.as_ref(), &path, &entry)?,
                    Err(error) => {
                        let what = format!("nothing registers this chain, and it cannot be read: {error}");
                        self.find(Outcome::CannotCheck, &path, None, what);
                    }
                }
            }
        }
        Ok(())
    }

    fn foreign_chain(
        &mut self,
        chain: Option<&Chain>,
        path: &str,
        entry: &Entry<PartitionBody>,
    ) -> Result<(), LedgerError> {
        let named = entry.body.control();
        let found = self.report.findings.len();
        self.names_control(path, named, entry.at)?;
        let said = self.report.findings.len() > found || self.control.complained.contains(&named.seq);
        // Behind the tail that was fixed: the source was registered since, or has more partitions since.
        let since = named.seq >= self.control.read() || chain.is_some_and(|chain| self.grew_since(chain));
        if !said && !since {
            let what = "nothing registers this chain: no entry of the control chain has its source, or no entry of its \
                        source has so many partitions";
            self.find(Outcome::Altered, path, None, what);
        }
        Ok(())
    }

    /// Whether the source has got more partitions than it had when its tails were fixed.
    fn grew_since(&self, chain: &Chain) -> bool {
        let Chain::Partition { source, partition } = chain else { return false };
        let numbers = || self.ledger.partition_numbers(source);
        self.control.state.sources.contains_key(source)
            && numbers().is_ok_and(|known| known.contains(partition))
    }

    /// One partition chain and the files of its chunks.
    pub(super) fn partition(
        &mut self,
        source: &str,
        partition: Partition,
        bound: Option<u64>,
    ) -> Result<(), LedgerError> {
        let chain = Chain::partition(source, partition);
        let mut before: Option<(u64, Progress, u64)> = None;
        if let Some(export) = &mut self.export {
            source.clone_into(&mut export.source);
        }
        if let Some(recount) = &mut self.recount {
            recount.begin(source, partition);
        }
        self.stream::<PartitionBody>(&chain, bound, &mut |this, seq, read| {
            let Some(read) = read else { return Ok(()) };
            let body = &read.entry.body;
            let path = chain.entry_path(seq);
            let record = format!("{chain} entry {seq}");
            // After an unreadable entry the next one cannot be held against its predecessor.
            let last = before.as_ref().filter(|(s, ..)| s.saturating_add(1) == seq);
            if (last.is_some() || seq == 0)
                && let Some(what) =
                    breaks_after(last.map(|(_, progress, control)| (progress, *control)), body)
            {
                this.find(Outcome::Altered, &path, Some(record.clone()), what);
            }
            this.names_control(&path, body.control(), read.entry.at)?;
            if let PartitionBody::Genesis { source: named, partition: number, .. } = body
                && (named != source || *number != partition.0)
            {
                let what = format!("it is the genesis of {named}/{number}");
                this.find(Outcome::Altered, &path, Some(record.clone()), what);
            }
            if let Some((_, known)) = this.control.partitions.get_mut(source) {
                *known = (*known).max(body.progress().partitions);
            }
            if let Some(chunk) = body.chunk() {
                match this.ledger.export() {
                    Some(_) => this.exported_chunk(&record, partition, chunk)?,
                    None => this.chunk(&path, &record, partition, chunk)?,
                }
            }
            if let Some(recount) = &mut this.recount {
                recount.take(&read);
            }
            before = Some((seq, body.progress().clone(), body.control().seq));
            Ok(())
        })
    }

    /// The control entry that a partition's entry names.
    fn names_control(&mut self, by: &str, named: &ControlRef, at: Timestamp) -> Result<(), LedgerError> {
        let path = Chain::Control.entry_path(named.seq);
        let there = match self.control.entry(named.seq) {
            Some(there) => there.cloned(),
            // It came after the tail of the control chain was fixed, or it was cut off.
            None => match self.ledger.store().get(&path)? {
                Some(bytes) if Digest::of(&bytes) == named.digest => return Ok(()),
                Some(bytes) => Some((Digest::of(&bytes), Timestamp(i64::MIN))),
                None => None,
            },
        };
        let (outcome, what) = match there {
            Some((digest, since)) if digest == named.digest && at >= since => return Ok(()),
            Some((digest, _)) if digest == named.digest => {
                (Outcome::Altered, format!("its time is after that of {by}, which names it"))
            }
            Some(_) => {
                (Outcome::Altered, format!("it is not the entry that {by} names: one of the two was altered"))
            }
            None => (Outcome::Truncated, format!("it is missing, and {by} names it")),
        };
        // Every later entry names it too: it is said once.
        if self.control.complained.insert(named.seq) {
            self.find(outcome, &path, Some(format!("control entry {}", named.seq)), what);
        }
        Ok(())
    }

    /// Which chains have grown since their tails were fixed.
    pub(super) fn grown(&mut self) -> Result<(), LedgerError> {
        for at in 0..self.report.chains.len() {
            let Some(end) = self.report.chains.get(at) else { break };
            let Some(chain) = Chain::parse(&end.chain) else { continue };
            let grew = self.ledger.store().get(&chain.entry_path(end.entries))?.is_some();
            if let Some(end) = self.report.chains.get_mut(at) {
                end.grew = grew;
            }
        }
        Ok(())
    }
}
