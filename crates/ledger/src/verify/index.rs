//! Holds the index against the chains, and the days against the chunks. One entry point, [`check_index`].

use std::collections::{BTreeMap, BTreeSet, HashSet};

use lastcall_contract::Digest;
use lastcall_event::Day;

use crate::chain::{self, Read, Tail};
use crate::entry::PartitionBody;
use crate::error::LedgerError;
use crate::index::cut::{days_of, newest_days, open_days, planted};
use crate::index::groups::{Check, Goal, Groups};
use crate::index::sink::Compactor;
use crate::index::{
    Current, DailyFacts, DayEntry, Folded, IndexBody, each_day, index_entry, read_day_file, read_facts,
};
use crate::ledger::{Ledger, PartitionChain};
use crate::names::{self, Chain};
use crate::state::ControlState;
use crate::store::Store;
use crate::verify::{ChainEnd, Finding, Outcome};
use crate::window::{Gathering, Record, Start, Subject, WindowDay, WindowFacts, Windows, read_rows};

/// Rows that are held in memory at once.
const BUDGET: u64 = 200_000;

/// What was checked of the index, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexCheck {
    /// Everything that does not fit.
    pub findings: Vec<Finding>,
    /// The index chain; `None` in a ledger that was never compacted.
    pub chain: Option<ChainEnd>,
    /// Index entries read.
    pub entries: u64,
    /// Day files read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
    /// Objects read.
    pub objects: u64,
}

/// Checks every index entry: that it joins, that the tails that it names stand in the chains and never fall, that the
/// objects and day files that it names are there. The newest is computed again from the chains, day by day, and held
/// against what it says. `each` is told every path before it is read.
///
/// # Errors
/// The store failed.
pub fn check_index(ledger: &Ledger, each: &mut dyn FnMut(&str)) -> Result<IndexCheck, LedgerError> {
    let mut checker =
        Checker { ledger, out: IndexCheck::default(), each, objects: HashSet::new(), files: HashSet::new() };
    let newest = checker.chain()?;
    if let Some(newest) = newest
        && checker.out.findings.is_empty()
    {
        let place = Chain::Index.entry_path(newest.entry.seq);
        match checker.recompute(&newest) {
            Ok(()) => {}
            Err(LedgerError::Store(error)) => return Err(error.into()),
            Err(error) => {
                let what = format!("it cannot be held against the chains: {error}");
                checker.find(Outcome::CannotCheck, &place, what);
            }
        }
    }
    Ok(checker.out)
}

struct Checker<'a> {
    ledger: &'a Ledger,
    out: IndexCheck,
    each: &'a mut dyn FnMut(&str),
    objects: HashSet<Digest>,
    files: HashSet<String>,
}

impl Checker<'_> {
    fn find(&mut self, outcome: Outcome, place: &str, what: impl Into<String>) {
        self.out.findings.push(Finding { outcome, place: place.to_owned(), record: None, what: what.into() });
    }

    fn find_error(&mut self, place: &str, error: LedgerError) -> Result<(), LedgerError> {
        match error {
            LedgerError::Altered { place, what } => self.find(Outcome::Altered, &place, what),
            LedgerError::Missing { place } => self.find(Outcome::Incomplete, &place, "it is missing"),
            LedgerError::Store(error) => return Err(error.into()),
            other => self.find(Outcome::CannotCheck, place, other.to_string()),
        }
        Ok(())
    }

    /// Every entry of the index chain, and what it names. The newest one, if it can be read.
    fn chain(&mut self) -> Result<Option<Read<IndexBody>>, LedgerError> {
        let store: &dyn Store = &**self.ledger.store();
        let mut before: Option<Read<IndexBody>> = None;
        let mut tail: Option<Tail> = None;
        let mut seq = 0u64;
        loop {
            let path = Chain::Index.entry_path(seq);
            (self.each)(&path);
            let Some(bytes) = store.get(&path)? else { break };
            self.out.entries += 1;
            match index_entry(store, seq) {
                Ok(Some(read)) => {
                    if let Err(error) = chain::joins(&Chain::Index, tail.as_ref(), &read) {
                        self.find_error(&path, error)?;
                    }
                    if let Some(chain) =
                        before.as_ref().and_then(|b| read.entry.body.falls_behind(&b.entry.body))
                    {
                        let what = format!("the tail of chain {chain} falls");
                        self.find(Outcome::Altered, &path, what);
                    }
                    self.entry(&path, &read.entry.body)?;
                    tail = Some(read.tail());
                    before = Some(read);
                }
                Ok(None) => break,
                Err(error) => {
                    self.unreadable(&path, &bytes, error)?;
                    let at = tail.as_ref().map_or_else(Default::default, |tail| tail.at);
                    tail = Some(Tail { seq, digest: Digest::of(&bytes), at });
                    before = None;
                }
            }
            seq = seq.saturating_add(1);
        }
        if let Some(behind) = chain::behind_a_hole(store, &Chain::Index, seq, seq)? {
            let what = format!("it is missing, and entry {behind} stands behind it");
            self.find(Outcome::Incomplete, &Chain::Index.entry_path(seq), what);
        }
        if seq > 0 {
            let digest = tail.map(|tail| tail.digest);
            self.out.chain = Some(ChainEnd { chain: "index".to_owned(), entries: seq, tail: digest });
        }
        Ok(before)
    }

    fn unreadable(&mut self, path: &str, bytes: &[u8], error: LedgerError) -> Result<(), LedgerError> {
        if matches!(error, LedgerError::Altered { .. } | LedgerError::Store(_)) {
            return self.find_error(path, error);
        }
        let (outcome, what) = match serde_json::from_slice::<serde_json::Value>(bytes) {
            Err(e) if e.is_eof() => (Outcome::Truncated, "the entry is cut off".to_owned()),
            Err(e) => (Outcome::Altered, format!("it is not an entry: {e}")),
            Ok(_) => (Outcome::CannotCheck, error.to_string()),
        };
        self.find(outcome, path, what);
        Ok(())
    }

    /// What one entry names: tails, objects, day files.
    fn entry(&mut self, path: &str, body: &IndexBody) -> Result<(), LedgerError> {
        for (chain, tail) in body.tails() {
            let place = chain.entry_path(tail.seq);
            let what = match self.ledger.store().get(&place)? {
                Some(bytes) if Digest::of(&bytes) == tail.digest => continue,
                Some(_) => (Outcome::Altered, "it is not the entry that the index names"),
                None => (Outcome::Truncated, "it is missing, and the index names it"),
            };
            self.find(what.0, &place, format!("{} ({path})", what.1));
        }
        self.object(&body.control.state)?;
        for (tool, at) in &body.tools {
            let Some(digest) = &at.facts else { continue };
            if !self.object(digest)? {
                continue;
            }
            if let Err(error) = self.facts(digest, tool) {
                self.find_error(&names::object_path(digest), error)?;
            }
        }
        Ok(())
    }

    /// Whether it was not looked at before and is what its name says.
    fn object(&mut self, digest: &Digest) -> Result<bool, LedgerError> {
        if !self.objects.insert(digest.clone()) {
            return Ok(false);
        }
        let path = names::object_path(digest);
        (self.each)(&path);
        self.out.objects += 1;
        match self.ledger.object(digest) {
            Ok(_) => Ok(true),
            Err(error) => self.find_error(&path, error).map(|()| false),
        }
    }

    /// The day files that a tool's daily facts name, old revisions too.
    fn facts(&mut self, digest: &Digest, tool: &str) -> Result<(), LedgerError> {
        let facts = read_facts(self.ledger, digest, tool)?;
        let mut days: Vec<DayEntry> = Vec::new();
        let mut objects: Vec<Digest> = Vec::new();
        each_day(
            self.ledger,
            &facts,
            |entry, _| days.push(entry.clone()),
            |object| objects.push(object.clone()),
        )?;
        for object in objects {
            self.object(&object)?;
        }
        for file in days.iter().flat_map(|entry| &entry.files) {
            if !self.files.insert(file.path.clone()) {
                continue;
            }
            (self.each)(&file.path);
            self.out.files += 1;
            match read_day_file(self.ledger, file) {
                Ok(rows) if rows == file.rows => {
                    self.out.rows += rows;
                    self.out.bytes += file.bytes;
                }
                Ok(rows) => {
                    let what = format!("it has {rows} rows, the daily facts say {}", file.rows);
                    self.find(Outcome::Altered, &file.path, what);
                }
                Err(error) => self.find_error(&file.path, error)?,
            }
        }
        Ok(())
    }

    /// The newest entry, computed again from the genesis of every chain.
    fn recompute(&mut self, newest: &Read<IndexBody>) -> Result<(), LedgerError> {
        let body = &newest.entry.body;
        let place = Chain::Index.entry_path(newest.entry.seq);
        let Current { control, chains, .. } = self.ledger.from_genesis()?;
        let control = until(control, body.control.tail.seq);
        let bytes = control.fold().map(|fold| serde_json::to_vec(&fold)).transpose();
        let bytes = bytes.map_err(|e| LedgerError::unreadable(&place, e))?;
        if bytes.map(|bytes| Digest::of(&bytes)).as_ref() != Some(&body.control.state) {
            self.find(Outcome::Altered, &place, "its control state is not what the control chain folds to");
        }
        let mut cut: Vec<PartitionChain> = Vec::new();
        let mut rest: Vec<&Read<PartitionBody>> = Vec::new();
        for chain in &chains {
            let at = body.partition(&chain.source, chain.partition);
            let Some(at) = at else { continue };
            let there = chain.entries.iter().find(|read| read.entry.seq == at.tail.seq);
            let fits = there.is_some_and(|read| {
                *read.entry.body.progress() == at.progress && *read.entry.body.control() == at.control
            });
            let folded = at.folded.as_ref().map(|folded| folded.tail.seq);
            let open =
                |read: &&Read<PartitionBody>| Some(read.entry.seq) > folded && read.entry.seq <= at.tail.seq;
            rest.extend(chain.entries.iter().filter(open));
            let mut chain = chain.clone();
            chain.entries.retain(|read| Some(read.entry.seq) <= folded);
            if !fits || folded_of(&chain, &control, self.ledger) != at.folded {
                let what = format!("what it says of {}/{} is not so", at.source, at.partition.0);
                self.find(Outcome::Altered, &place, what);
            }
            cut.push(chain);
        }
        let (newest, lost) = newest_days(cut.iter().flat_map(PartitionChain::chunks).map(|(_, chunk)| chunk));
        let same = newest.iter().all(|(tool, day)| body.tools.get(tool).and_then(|t| t.newest) == Some(*day))
            && body.tools.iter().all(|(tool, at)| at.newest == newest.get(tool).copied());
        if !same || lost != body.lost_through || open_days(rest.into_iter()) != body.open {
            self.find(Outcome::Altered, &place, "the days that it names are not those of the chunks");
        }
        let record = Record::of(self.ledger.clone(), Current { head: None, control, chains })?;
        self.days(&place, body, &record, &cut)
    }

    /// The days and windows of the newest entry against the folded chunks.
    fn days(
        &mut self,
        place: &str,
        body: &IndexBody,
        record: &Record,
        cut: &[PartitionChain],
    ) -> Result<(), LedgerError> {
        let mut facts: BTreeMap<String, DailyFacts> = BTreeMap::new();
        let mut check = Check::default();
        for (tool, at) in &body.tools {
            let Some(digest) = &at.facts else { continue };
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
        let subjects = record.control.kept_subjects();
        let begin = |(i, subject): (usize, &Subject)| (i, subject.clone());
        let subjects: Vec<(usize, Subject)> = subjects.iter().enumerate().map(begin).collect();
        let windows =
            subjects.iter().map(|(i, s)| (*i, Gathering::new(record, s, Start::Nothing, &[]))).collect();
        let tools: BTreeSet<&str> = body.tools.keys().map(String::as_str).collect();
        let groups = Groups::new(self.ledger, Goal::Check(check), planted(record, &tools)?);
        let mut sink = Compactor::new(Windows::new(windows), groups);
        read_rows(self.ledger, cut, &[], BUDGET, &mut sink)?;
        let (windows, groups) = sink.done()?;
        let sightings = groups.sightings.clone();
        let check = groups.into_check();
        for (at, what) in check.wrong {
            let at = if at.is_empty() { place.to_owned() } else { at };
            self.find(Outcome::Altered, &at, what);
        }
        for (tool, day, epoch) in check.named.keys() {
            let what = format!("no chunk has a row of {day} of `{tool}` under epoch {}", epoch.short());
            self.find(Outcome::Altered, place, what);
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
                self.find(Outcome::Altered, place, what);
            }
        }
        for (tool, facts) in &facts {
            let seen = sightings.get(tool).into_iter().flatten();
            if !seen.eq(facts.planted.iter()) {
                let what =
                    format!("the planted calls that it keeps of `{tool}` are not those that came back");
                self.find(Outcome::Altered, place, what);
            }
        }
        Ok(())
    }
}

/// The control chain up to an entry.
fn until(control: ControlState, seq: u64) -> ControlState {
    let mut cut = ControlState::default();
    control.entries.into_iter().filter(|read| read.entry.seq <= seq).for_each(|read| cut.push(read));
    cut
}

fn folded_of(chain: &PartitionChain, control: &ControlState, ledger: &Ledger) -> Option<Folded> {
    let last = chain.entries.last()?;
    Some(Folded {
        tail: last.tail(),
        progress: last.entry.body.progress().clone(),
        control: last.entry.body.control().clone(),
        newest: chain.newest(),
        closed: days_of(chain, control, ledger.meta().clock).folded(),
    })
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
