//! The newest index entry, computed again from the chains: what it says of them while they are read, and then its days
//! and windows from the rows.

use std::collections::{BTreeMap, BTreeSet};

use lastcall_event::Day;

use super::{Outcome, Verifier};
use crate::chain::{self, Read};
use crate::days::{closes, merged};
use crate::entry::PartitionBody;
use crate::error::LedgerError;
use crate::index::cut::{newest_days, open_days, planted};
use crate::index::groups::{Check, Goal, Groups};
use crate::index::sink::Compactor;
use crate::index::{
    ClosedThrough, Current, DailyFacts, DayEntry, Folded, IndexBody, OpenDay, each_day, read_facts,
};
use crate::ledger::{Ledger, LedgerClock, PartitionChain};
use crate::names::Chain;
use crate::position::Partition;
use crate::state::ControlState;
use crate::window::{
    Chunks, EachChunk, Gathering, Record, Start, Subject, WindowDay, WindowFacts, Windows, read_days,
    read_rows,
};

/// Rows that are held in memory at once.
const BUDGET: u64 = 100_000;

/// What the newest index entry says, held against the chains while they are read.
pub(super) struct Recount {
    newest: Read<IndexBody>,
    control: ControlState,
    clock: LedgerClock,
    parts: Vec<Part>,
    /// Where in `parts` the chain that is read now stands; `None`: the index does not know it.
    at: Option<usize>,
    tools: BTreeMap<String, Day>,
    lost: Option<Day>,
    open: BTreeMap<Day, (u64, u64)>,
}

/// One partition. Of an entry two numbers are kept.
struct Part {
    /// Without entries: its tail as the index says, and every closing up to there one by one.
    chain: PartitionChain,
    /// Whether its tail is where the index says that it stands.
    fits: bool,
    /// How far it is folded, computed again.
    folded: Option<Folded>,
    closed: Vec<ClosedThrough>,
    /// Per folded entry: the first and the last day of its results.
    days: Vec<(Day, Day)>,
}

impl Recount {
    pub(super) fn new(newest: Read<IndexBody>, control: ControlState, clock: LedgerClock) -> Self {
        let (tools, open) = (BTreeMap::new(), BTreeMap::new());
        Self { newest, control, clock, parts: Vec::new(), at: None, tools, lost: None, open }
    }

    /// The next chain is read.
    pub(super) fn begin(&mut self, source: &str, partition: Partition) {
        self.at = None;
        if let Some(at) = self.newest.entry.body.partition(source, partition) {
            let known = Folded {
                tail: at.tail.clone(),
                progress: at.progress.clone(),
                control: at.control.clone(),
                newest: None,
                closed: Vec::new(),
            };
            let (source, entries) = (source.to_owned(), Vec::new());
            let chain = PartitionChain { source, partition, folded: Some(known), entries };
            let (closed, days) = (Vec::new(), Vec::new());
            self.parts.push(Part { chain, fits: false, folded: None, closed, days });
            self.at = self.parts.len().checked_sub(1);
        }
    }

    /// The next entry of that chain.
    pub(super) fn take(&mut self, read: &Read<PartitionBody>) {
        let Some(part) = self.at.and_then(|at| self.parts.get_mut(at)) else { return };
        let Some(at) = self.newest.entry.body.partition(&part.chain.source, part.chain.partition) else {
            return;
        };
        let (seq, body) = (read.entry.seq, &read.entry.body);
        if seq > at.tail.seq {
            return;
        }
        let lateness = self.control.sources.get(&at.source).map_or(0, |source| source.lateness_ms);
        part.closed.extend(closes(part.closed.last(), &read.entry, lateness, self.clock));
        let is_folded = at.folded.as_ref().is_some_and(|folded| seq <= folded.tail.seq);
        let mut newest = part.folded.as_ref().and_then(|folded| folded.newest);
        if let Some(chunk) = body.chunk() {
            if is_folded {
                newest = newest.max(chunk.newest);
                let (tools, lost) = newest_days(std::iter::once(chunk));
                for (tool, day) in tools {
                    let newest = self.tools.entry(tool).or_insert(day);
                    *newest = (*newest).max(day);
                }
                self.lost = self.lost.max(lost);
            } else {
                for OpenDay { day, calls, entries } in open_days(std::iter::once(read)) {
                    let sum = self.open.entry(day).or_default();
                    *sum = (sum.0.saturating_add(calls), sum.1.saturating_add(entries));
                }
            }
        }
        if is_folded {
            let days = body.chunk().into_iter().flat_map(|chunk| chunk.tallies.iter().map(|t| t.day));
            let none = (Day(i32::MAX), Day(i32::MIN));
            part.days.push(days.fold(none, |(first, last), day| (first.min(day), last.max(day))));
            part.folded = Some(Folded {
                tail: read.tail(),
                progress: body.progress().clone(),
                control: body.control().clone(),
                newest,
                closed: merged(&part.closed),
            });
        }
        if seq == at.tail.seq {
            part.fits = *body.progress() == at.progress && *body.control() == at.control;
        }
    }
}

impl Verifier<'_> {
    /// What the newest index entry says against what was read. Of a record with findings it says nothing more: the rows
    /// of files that were altered come to something else.
    pub(super) fn recounted(&mut self) -> Result<(), LedgerError> {
        let Some(recount) = self.recount.take() else { return Ok(()) };
        if self.report.findings.iter().any(|f| f.outcome != Outcome::Unsigned) {
            return Ok(());
        }
        let place = Chain::Index.entry_path(recount.newest.entry.seq);
        match self.recompute(&place, recount) {
            Ok(()) => {}
            Err(LedgerError::Store(error)) => return Err(error.into()),
            Err(error) => {
                let what = format!("it cannot be held against the chains: {error}");
                self.find(Outcome::CannotCheck, &place, None, what);
            }
        }
        Ok(())
    }

    fn recompute(&mut self, place: &str, recount: Recount) -> Result<(), LedgerError> {
        let Recount { newest, control, parts, tools, lost, open, .. } = recount;
        let body = &newest.entry.body;
        let wrong = |this: &mut Self, what: &str| this.find(Outcome::Altered, place, None, what);
        let bytes = serde_json::to_vec(&control).map_err(|e| LedgerError::unreadable(place, e))?;
        if lastcall_contract::Digest::of(&bytes) != body.control.state {
            wrong(self, "its control state is not what the control chain folds to");
        }
        for at in &body.partitions {
            let part =
                parts.iter().find(|p| p.chain.source == at.source && p.chain.partition == at.partition);
            if !part.is_some_and(|part| part.fits && part.folded == at.folded) {
                wrong(self, &format!("what it says of {}/{} is not so", at.source, at.partition.0));
            }
        }
        let same = tools.iter().all(|(tool, day)| body.tools.get(tool).and_then(|t| t.newest) == Some(*day))
            && body.tools.iter().all(|(tool, at)| at.newest == tools.get(tool).copied());
        let open: Vec<OpenDay> =
            open.into_iter().map(|(day, (calls, entries))| OpenDay { day, calls, entries }).collect();
        if !same || lost != body.lost_through || open != body.open {
            wrong(self, "the days that it names are not those of the chunks");
        }
        let mut chains = Vec::new();
        let mut folded = Vec::new();
        for mut part in parts {
            if let Some(known) = &mut part.chain.folded {
                known.closed = part.closed;
            }
            folded.push((part.chain.clone(), part.days));
            chains.push(part.chain);
        }
        let record = Record::of(self.ledger.clone(), Current { head: None, control, chains })?;
        self.days(place, body, &record, folded)
    }

    /// The days and windows of the newest entry against the folded chunks.
    fn days(
        &mut self,
        place: &str,
        body: &IndexBody,
        record: &Record,
        folded: Vec<(PartitionChain, Vec<(Day, Day)>)>,
    ) -> Result<(), LedgerError> {
        let mut facts: BTreeMap<String, DailyFacts> = BTreeMap::new();
        let mut check = Check::default();
        for (tool, at) in &body.tools {
            let Some(digest) = at.facts.as_ref().filter(|_| self.recounts(tool)) else { continue };
            let of_tool = read_facts(self.ledger, digest, tool)?;
            let each = |entry: &DayEntry, newest: bool| {
                if newest {
                    let key = (tool.clone(), entry.day, entry.epoch.clone());
                    check.named.insert(key, entry.clone());
                }
            };
            each_day(self.ledger, &of_tool, each, |_| {})?;
            facts.insert(tool.clone(), of_tool);
        }
        let mut subjects = record.control.kept_subjects();
        subjects.retain(|s| self.recounts(&s.tool_id));
        let begin = |(i, subject): (usize, &Subject)| (i, subject.clone());
        let subjects: Vec<(usize, Subject)> = subjects.iter().enumerate().map(begin).collect();
        let windows =
            subjects.iter().map(|(i, s)| (*i, Gathering::new(record, s, Start::Nothing, &[]))).collect();
        let tools: BTreeSet<&str> =
            body.tools.keys().map(String::as_str).filter(|tool| self.recounts(tool)).collect();
        let groups = Groups::new(self.ledger, Goal::Check(check), planted(record, &tools)?);
        let mut sink = Compactor::new(Windows::new(windows), groups);
        let ledger = self.ledger.clone();
        // An export has no chunk results: its day files stand for them.
        let exported = self.export.as_ref().map(|export| export.held().newest.clone());
        {
            let mut again = Again { ledger: &ledger, folded, tell: &mut |path: &str| self.again(path) };
            match exported {
                Some(days) => read_days(&ledger, &mut again, &days, BUDGET, &mut sink)?,
                None => read_rows(&ledger, &mut again, &[], BUDGET, &mut sink)?,
            }
        }
        let (windows, groups) = sink.done()?;
        self.exported_rows(place)?;
        let sightings = groups.sightings.clone();
        let check = groups.into_check();
        for (at, what) in check.wrong {
            let at = if at.is_empty() { place.to_owned() } else { at };
            self.find(Outcome::Altered, &at, None, what);
        }
        for (tool, day, epoch) in check.named.keys() {
            let what = format!("no chunk has a row of {day} of `{tool}` under epoch {}", epoch.short());
            self.find(Outcome::Altered, place, None, what);
        }
        for (_, window) in windows.windows {
            let tool = window.subject.tool_id.clone();
            let Some(found) = window.into_facts(usize::MAX) else { continue };
            let kept = facts.get(&tool).and_then(|facts| {
                facts
                    .windows
                    .iter()
                    .find(|w| (w.registration, &w.epoch) == (found.registration, &found.epoch))
            });
            if !kept.is_some_and(|kept| same_window(kept, &found)) {
                let what = format!("what it keeps of a window of `{tool}` is not what the chunks come to");
                self.find(Outcome::Altered, place, None, what);
            }
        }
        for (tool, facts) in &facts {
            let seen = sightings.get(tool).into_iter().flatten();
            if !seen.eq(facts.planted.iter()) {
                let what =
                    format!("the planted calls that it keeps of `{tool}` are not those that came back");
                self.find(Outcome::Altered, place, None, what);
            }
        }
        Ok(())
    }

    /// Whether a tool's days can be added up here: in an export only its own.
    fn recounts(&self, tool: &str) -> bool {
        self.export.as_ref().is_none_or(|export| export.is_of(tool))
    }

    fn again(&mut self, path: &str) {
        self.done = self.done.saturating_add(1);
        self.tell(path);
    }
}

/// The folded chunks, read again from the store whenever they are needed.
struct Again<'a> {
    ledger: &'a Ledger,
    folded: Vec<(PartitionChain, Vec<(Day, Day)>)>,
    tell: &'a mut dyn FnMut(&str),
}

impl Chunks for Again<'_> {
    fn each(&mut self, days: Option<&BTreeSet<Day>>, each: &mut EachChunk<'_>) -> Result<(), LedgerError> {
        for (i, (chain, of_entries)) in self.folded.iter().enumerate() {
            let name = chain.chain();
            for (seq, (first, last)) in (0u64..).zip(of_entries) {
                let wanted = match days {
                    Some(days) => first <= last && days.range(*first..=*last).next().is_some(),
                    None => true,
                };
                if !wanted {
                    continue;
                }
                if days.is_some() {
                    (self.tell)(&name.entry_path(seq));
                }
                let read = chain::read_entry::<PartitionBody>(&**self.ledger.store(), &name, seq)?;
                let read = read.ok_or_else(|| LedgerError::Missing { place: name.entry_path(seq) })?;
                if let Some(chunk) = read.entry.body.chunk() {
                    each(i, chain, seq, chunk)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether two windows say the same; older days that one of them only has as a sum are added up in the other.
fn same_window(kept: &WindowFacts, found: &WindowFacts) -> bool {
    let mut found = found.clone();
    if let Some(older) = &kept.older {
        let mut sum = WindowDay::default();
        let (mut days, mut last) = (BTreeMap::new(), None::<Day>);
        for (day, of_day) in std::mem::take(&mut found.days) {
            if day <= older.through && !kept.days.contains_key(&day) {
                sum.add(&of_day);
                last = Some(day);
            } else {
                days.insert(day, of_day);
            }
        }
        if last != Some(older.through) || sum != older.sum {
            return false;
        }
        found.days = days;
        found.older = kept.older.clone();
    }
    found == *kept
}
