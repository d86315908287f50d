//! Compaction: folds what is closed into day files and daily facts, and appends one index entry that names them.

use std::collections::{BTreeMap, BTreeSet};

use lastcall_compare::COMPARATOR_VERSION;
use lastcall_contract::Digest;
use lastcall_event::{Day, Timestamp};

use crate::chain::{self, Append, Read};
use crate::entry::Build;
use crate::error::LedgerError;
use crate::index::cut::{cut, days_of, newest_days, open_days, planted};
use crate::index::facts::put;
use crate::index::groups::{Goal, Groups};
use crate::index::limits::CompactLimits;
use crate::index::sink::Compactor;
use crate::index::{
    ControlAt, DailyFacts, DayEntry, Folded, INDEX_FORMAT, IndexBody, PartitionAt, ToolAt, find_days,
};
use crate::ledger::{Ledger, PartitionChain};
use crate::names::Chain;
use crate::sign::PublicKey;
use crate::window::{Gathering, Record, Start, Subject, Windows, read_rows};

/// How often another writer may be faster.
const ATTEMPTS: usize = 64;

/// What compaction added.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Compacted {
    /// Index entries that were appended.
    pub entries: u64,
    /// The newest index entry. In JSON as in a kept head: `seq`, and its digest is `head`.
    #[serde(rename = "seq", skip_serializing_if = "Option::is_none")]
    pub head: Option<u64>,
    /// Its digest.
    #[serde(rename = "head", skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Entries of partition chains that were folded.
    pub folded: u64,
    /// Days of a tool under an epoch that were written or revised.
    pub days: u64,
    /// Those that had been written before.
    pub revised: u64,
    /// Day files that were written.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How often another writer was faster.
    pub lost: u64,
}

/// Folds everything that is closed, until nothing is new. `each` is told what is done, for a progress bar.
///
/// # Errors
/// Something of the record is missing, altered or unreadable: nothing is folded that could not be read.
pub fn compact(ledger: &Ledger, each: &mut dyn FnMut(&str)) -> Result<Compacted, LedgerError> {
    compact_within(ledger, CompactLimits::default(), each)
}

/// The same within other limits.
///
/// # Errors
/// As [`compact`].
pub fn compact_within(
    ledger: &Ledger,
    limits: CompactLimits,
    each: &mut dyn FnMut(&str),
) -> Result<Compacted, LedgerError> {
    compact_as(ledger, limits, None, each)
}

/// The same; `signer` is the key that new entries will be signed with.
pub(crate) fn compact_as(
    ledger: &Ledger,
    limits: CompactLimits,
    signer: Option<PublicKey>,
    each: &mut dyn FnMut(&str),
) -> Result<Compacted, LedgerError> {
    let mut done = Compacted::default();
    loop {
        let head = ledger.head()?;
        (done.head, done.digest) =
            (head.as_ref().map(|h| h.entry.seq), head.as_ref().map(|h| h.digest.clone()));
        let Some(step) = Step::prepare(ledger, head, limits)? else { return Ok(done) };
        each(&format!("{} entries to fold", step.folds()));
        let (body, counts) = step.body(limits, each)?;
        let body = IndexBody { signer, ..body };
        let tail = step.record.head.as_ref().map(Read::tail);
        let (now, floor) = step.times();
        match chain::append(
            &**ledger.store(),
            &Chain::Index,
            tail.as_ref(),
            ledger.writer(),
            now,
            floor,
            &body,
        )? {
            Append::Won(_) => {
                done.entries += 1;
                done.folded += counts.folded;
                done.days += counts.days;
                done.revised += counts.revised;
                done.files += counts.files;
                done.rows += counts.rows;
                done.bytes += counts.bytes;
            }
            // What was written for this entry is garbage: its seq names other files. Read again, check again.
            Append::Lost => {
                done.lost += 1;
                if done.lost >= ATTEMPTS as u64 {
                    return Err(LedgerError::Contended("index".to_owned()));
                }
            }
        }
    }
}

/// One index entry to be.
struct Step {
    record: Record,
    seq: u64,
    /// Per chain of the record: how many of its entries are folded.
    cuts: Vec<usize>,
}

impl Step {
    /// Reads the ledger; `None`: the newest index entry says all of it.
    fn prepare(
        ledger: &Ledger,
        head: Option<Read<IndexBody>>,
        limits: CompactLimits,
    ) -> Result<Option<Self>, LedgerError> {
        let control = ledger.control_since(head.as_ref())?;
        let current = ledger.read_on(head, control, limits.step)?;
        let record = Record::of(ledger.clone(), current)?;
        let seq = record.head.as_ref().map_or(0, |head| head.entry.seq.saturating_add(1));
        let clock = ledger.meta().clock;
        let cuts: Vec<usize> =
            record.chains.iter().map(|chain| cut(chain, &record.control, clock, limits.behind)).collect();
        let step = Self { record, seq, cuts };
        Ok(step.is_new().then_some(step))
    }

    fn is_new(&self) -> bool {
        let Some(head) = self.record.head.as_ref().map(|head| &head.entry.body) else { return true };
        let known = head.tails();
        let stands = |chain: &Chain, tail: Option<chain::Tail>| known.get(chain) == tail.as_ref();
        !stands(&Chain::Control, self.record.control.tail())
            || self.record.chains.iter().any(|c| !stands(&c.chain(), c.tail()))
            || self.cuts.iter().any(|cut| *cut > 0)
    }

    fn folds(&self) -> usize {
        self.cuts.iter().sum()
    }

    /// The writer's clock, and the time that the entry may not be before.
    fn times(&self) -> (Timestamp, Option<Timestamp>) {
        let tails = self.record.chains.iter().filter_map(PartitionChain::tail).map(|tail| tail.at);
        let floor = tails.chain(self.record.control.tail().map(|tail| tail.at)).max();
        (self.record.ledger.system_now().or(floor).unwrap_or_default(), floor)
    }

    /// The chains as far as they are folded now.
    fn folding(&self) -> Vec<PartitionChain> {
        let cut = |(chain, cut): (&PartitionChain, &usize)| PartitionChain {
            entries: chain.entries.iter().take(*cut).cloned().collect(),
            ..chain.clone_without_entries()
        };
        self.record.chains.iter().zip(&self.cuts).map(cut).collect()
    }

    fn body(
        &self,
        limits: CompactLimits,
        each: &mut dyn FnMut(&str),
    ) -> Result<(IndexBody, Compacted), LedgerError> {
        let record = &self.record;
        let folding = self.folding();
        let mut counts = Compacted { folded: self.folds() as u64, ..Compacted::default() };
        let (tools, lost_through) = self.tools(&folding, limits, &mut counts, each)?;
        let (state, tail) = (record.control.fold(), record.control.tail());
        let (Some(state), Some(tail)) = (state, tail) else {
            return Err(LedgerError::Missing { place: Chain::Control.entry_path(0) });
        };
        let control = ControlAt { tail, state: put(&record.ledger, &state)? };
        let mut partitions = Vec::new();
        for (chain, folded) in record.chains.iter().zip(&folding) {
            partitions.extend(self.partition(chain, folded));
        }
        let build = Build { lastcall: env!("CARGO_PKG_VERSION").to_owned(), comparator: COMPARATOR_VERSION };
        let format = INDEX_FORMAT;
        let chains = record.chains.iter().zip(&self.cuts);
        let rest = chains.flat_map(|(chain, cut)| chain.entries.iter().skip(*cut));
        let body = IndexBody {
            format,
            control,
            partitions,
            open: open_days(rest),
            tools,
            lost_through,
            signer: None,
            build,
        };
        if let Some(chain) = record.head.as_ref().and_then(|head| body.falls_behind(&head.entry.body)) {
            let what = format!("the tail of chain {chain} would fall; the chain was cut");
            return Err(LedgerError::altered(&Chain::Index.entry_path(self.seq), what));
        }
        Ok((body, counts))
    }

    fn partition(&self, chain: &PartitionChain, folded: &PartitionChain) -> Option<PartitionAt> {
        let tail = chain.tail()?;
        let last = chain.entries.last().map(|read| read.entry.body.control().clone());
        let control = last.or_else(|| chain.folded.as_ref().map(|folded| folded.control.clone()))?;
        let folded = match folded.entries.last() {
            None => chain.folded.clone(),
            Some(read) => Some(Folded {
                tail: read.tail(),
                progress: read.entry.body.progress().clone(),
                control: read.entry.body.control().clone(),
                newest: folded.newest(),
                closed: days_of(folded, &self.record.control, self.record.ledger.meta().clock).folded(),
            }),
        };
        Some(PartitionAt {
            source: chain.source.clone(),
            partition: chain.partition,
            tail,
            progress: chain.progress()?.clone(),
            control,
            folded,
        })
    }

    /// What the entry says of every tool, and the last day on which calls of unknown tools were lost.
    fn tools(
        &self,
        folding: &[PartitionChain],
        limits: CompactLimits,
        counts: &mut Compacted,
        each: &mut dyn FnMut(&str),
    ) -> Result<(BTreeMap<String, ToolAt>, Option<Day>), LedgerError> {
        let record = &self.record;
        let head = record.head.as_ref().map(|head| &head.entry.body);
        let mut tools = head.map(|head| head.tools.clone()).unwrap_or_default();
        let mut lost_through = head.and_then(|head| head.lost_through);
        let (touched, lost) = newest_days(folding.iter().flat_map(PartitionChain::chunks).map(|(_, c)| c));
        for (tool, day) in &touched {
            let at = tools.entry(tool.clone()).or_default();
            at.newest = at.newest.max(Some(*day));
        }
        // Nobody knows whose calls were lost: every tool's facts change.
        let all = lost.is_some();
        lost_through = lost_through.max(lost);
        let kept = record.control.kept_subjects();
        let mut facts: BTreeMap<String, DailyFacts> = BTreeMap::new();
        for tool in tools.keys().map(String::as_str).chain(kept.iter().map(|s| s.tool_id.as_str())) {
            if facts.contains_key(tool) {
                continue;
            }
            let known = record.facts_of(tool)?;
            let mine = || kept.iter().filter(|s| s.tool_id == tool);
            let windows = known.as_ref().map_or(&[][..], |facts| &facts.windows);
            let same = windows.len() == mine().filter(|s| s.key().is_some()).count()
                && mine().all(|s| {
                    let key = s.key();
                    windows.iter().any(|w| Some((w.registration, &w.epoch)) == key && w.since == s.since)
                });
            if all || touched.contains_key(tool) || !same {
                facts.insert(tool.to_owned(), known.unwrap_or_else(|| DailyFacts::new(tool)));
            }
        }
        let subjects: Vec<Subject> = kept.into_iter().filter(|s| facts.contains_key(&s.tool_id)).collect();
        each(&format!("{} tools", facts.len()));
        self.fold(folding, &subjects, &mut facts, limits, counts)?;
        for (tool, facts) in facts {
            let empty = facts.windows.is_empty() && facts.days.is_empty() && facts.previous.is_none();
            let at = tools.entry(tool).or_default();
            at.facts = if empty { None } else { Some(put(&record.ledger, &facts)?) };
        }
        Ok((tools, lost_through))
    }

    /// Adds the folding chunks to the facts of the tools, and writes their days.
    fn fold(
        &self,
        folding: &[PartitionChain],
        subjects: &[Subject],
        facts: &mut BTreeMap<String, DailyFacts>,
        limits: CompactLimits,
        counts: &mut Compacted,
    ) -> Result<(), LedgerError> {
        let record = &self.record;
        let mut windows: Vec<(usize, Gathering<'_>)> = Vec::new();
        let mut behind: Vec<usize> = Vec::new();
        for (i, subject) in subjects.iter().enumerate() {
            let known = facts.get(&subject.tool_id);
            match record.start(subject, known) {
                Some(start) => {
                    let sightings = known.map_or(&[][..], |facts| &facts.planted);
                    windows.push((i, Gathering::new(record, subject, start, sightings)));
                }
                None => behind.push(i),
            }
        }
        let mut again: Vec<(String, DayEntry)> = Vec::new();
        for (tool, facts) in facts.iter() {
            let mut wanted: BTreeSet<(Day, Digest)> = BTreeSet::new();
            for (_, chunk) in folding.iter().flat_map(PartitionChain::chunks) {
                let ours = chunk.tallies.iter().filter(|t| *t.tool == **tool);
                wanted.extend(ours.map(|t| (t.day, t.epoch.clone())));
            }
            again.extend(find_days(&record.ledger, facts, wanted)?.into_iter().map(|e| (tool.clone(), e)));
        }
        counts.revised = again.len() as u64;
        let tools: BTreeSet<&str> = facts.keys().map(String::as_str).collect();
        let groups = Groups::new(&record.ledger, Goal::Files(self.seq), planted(record, &tools)?);
        let mut sink = Compactor::new(Windows::new(windows), groups);
        read_rows(&record.ledger, &mut { folding }, &again, limits.rows, &mut sink)?;
        let (windows, groups) = sink.done()?;
        let mut kept: Vec<Option<Gathering<'_>>> = subjects.iter().map(|_| None).collect();
        for (i, window) in windows.windows {
            if let Some(slot) = kept.get_mut(i) {
                *slot = Some(window);
            }
        }
        let whole = if behind.is_empty() { None } else { Some(self.whole(folding)?) };
        if let Some((whole, chains)) = &whole {
            let asked = behind.iter().filter_map(|i| Some((*i, subjects.get(*i)?)));
            let begin = |(i, subject)| (i, Gathering::new(whole, subject, Start::Nothing, &[]));
            let mut sink = Windows::new(asked.map(begin).collect());
            read_rows(&whole.ledger, &mut chains.as_slice(), &[], limits.rows, &mut sink)?;
            for (i, window) in sink.windows {
                if let Some(slot) = kept.get_mut(i) {
                    *slot = Some(window);
                }
            }
        }
        for facts in facts.values_mut() {
            facts.windows.clear();
        }
        for window in kept.into_iter().flatten() {
            let tool = window.subject.tool_id.clone();
            if let (Some(facts), Some(kept)) = (facts.get_mut(&tool), window.into_facts(limits.days)) {
                facts.windows.push(kept);
            }
        }
        let mut written: BTreeMap<String, Vec<DayEntry>> = BTreeMap::new();
        for (tool, entry) in groups.written {
            counts.days += 1;
            counts.files += entry.files.len() as u64;
            counts.rows += entry.files.iter().map(|f| f.rows).sum::<u64>();
            counts.bytes += entry.files.iter().map(|f| f.bytes).sum::<u64>();
            written.entry(tool).or_default().push(entry);
        }
        for (tool, seen) in groups.sightings {
            if let Some(facts) = facts.get_mut(&tool) {
                facts.planted.extend(seen);
                facts.planted.sort();
                facts.planted.dedup();
            }
        }
        for (tool, days) in written {
            if let Some(facts) = facts.get_mut(&tool) {
                facts.revise(&record.ledger, days, limits.days)?;
            }
        }
        Ok(())
    }

    /// The record from its genesis, cut where the folding ends.
    fn whole(&self, folding: &[PartitionChain]) -> Result<(Record, Vec<PartitionChain>), LedgerError> {
        let whole = Record::from_genesis(self.record.ledger.clone())?;
        let mut chains = Vec::new();
        for chain in &whole.chains {
            let end = folding.iter().find(|c| c.source == chain.source && c.partition == chain.partition);
            let Some(tail) = end.and_then(PartitionChain::tail) else { continue };
            let mut cut = chain.clone();
            cut.entries.retain(|read| read.entry.seq <= tail.seq);
            chains.push(cut);
        }
        Ok((whole, chains))
    }
}
