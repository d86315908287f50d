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
use crate::names::Chain;
use crate::position::Partition;

/// Takes every place of a chain in turn.
type EachEntry<'a, 'b, B> =
    dyn FnMut(&mut Verifier<'b>, u64, Option<Read<B>>) -> Result<(), LedgerError> + 'a;

impl<'b> Verifier<'b> {
    /// The last entry of a chain that stands now; `None`: it has no first one.
    pub(super) fn bound(&self, chain: &Chain) -> Result<Option<u64>, LedgerError> {
        let store = &**self.ledger.store();
        match store.get(&chain.entry_path(0))? {
            Some(_) => chain::last_standing(store, chain, 0).map(Some),
            // The first one may be what is missing.
            None => {
                let behind = chain::behind_a_hole(store, chain, 0, 0)?;
                behind.map(|seq| chain::last_standing(store, chain, seq)).transpose()
            }
        }
    }

    /// Reads a chain up to `bound` and reports what does not join. `each` is given every entry, and `None` for one that
    /// is missing or cannot be read.
    pub(super) fn stream<B: DeserializeOwned>(
        &mut self,
        chain: &Chain,
        bound: Option<u64>,
        each: &mut EachEntry<'_, 'b, B>,
    ) -> Result<(), LedgerError> {
        let store = self.ledger.store().clone();
        let mut before: Option<Tail> = None;
        for seq in 0..length(bound) {
            let path = chain.entry_path(seq);
            self.tell(&path);
            self.done += 1;
            let record = Some(format!("{chain} entry {seq}"));
            let Some(bytes) = store.get(&path)? else {
                self.missing(&path, record, "the entry is missing, and others stand behind it");
                before = None;
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
            before = Some(Tail { seq, digest, at });
            each(self, seq, read)?;
        }
        let next = length(bound);
        if let Some(behind) = chain::behind_a_hole(&*store, chain, next, next)? {
            let what = format!("the entry is missing, and entry {behind} stands behind it");
            self.missing(&chain.entry_path(next), Some(format!("{chain} entry {next}")), &what);
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
            while number < known {
                let chain = Chain::partition(&source, Partition(number));
                let bound = self.bound(&chain)?;
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
