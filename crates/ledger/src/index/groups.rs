//! Rows of one tool under one epoch on one day, gathered until they are written as a day file.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::interleave::interleave_record_batch;
use arrow_select::take::take_record_batch;
use lastcall_compare::ComparisonResult;
use lastcall_contract::Digest;
use lastcall_decision::{DayTally, Tally};
use lastcall_event::Day;

use crate::error::LedgerError;
use crate::index::dayfile::{self, More};
use crate::index::{CohortDay, DayEntry, DayFile, DayRow, for_each_day_row};
use crate::ledger::{Ledger, random_hex};
use crate::names;
use crate::rows::ResultRow;
use crate::window::{Pass, PlacedRow, Sighting};

/// The call keys that are planted, by tool, each with the first entry that committed it.
pub(crate) type PlantedKeys = HashMap<String, HashMap<[u8; 16], u64>>;

/// A row that waits to be written.
struct Item {
    row: ResultRow,
    source: Arc<str>,
    control: u64,
    repeats: u64,
    part: usize,
    at: usize,
}

/// One day of a tool under one epoch.
#[derive(Default)]
struct Group {
    tool: String,
    current: String,
    candidate: String,
    parts: Vec<RecordBatch>,
    items: Vec<Item>,
    files: Vec<DayFile>,
    tally: DayTally,
    cohorts: BTreeMap<Option<String>, CohortDay>,
    sessions: HashMap<Option<[u8; 16]>, (u64, u64)>,
}

/// What becomes of the gathered rows.
pub(crate) enum Goal {
    /// Day files, named for the index entry with this sequence number.
    Files(u64),
    /// They are held against the days that the index names.
    Check(Check),
}

/// Days as the index names them, and what does not fit.
#[derive(Default)]
pub(crate) struct Check {
    /// By tool, day and epoch; those that were found are taken out.
    pub(crate) named: BTreeMap<(String, Day, Digest), DayEntry>,
    /// Place and what.
    pub(crate) wrong: Vec<(String, String)>,
}

/// Every group that the rows at hand belong to.
pub(crate) struct Groups<'a> {
    ledger: &'a Ledger,
    into: Goal,
    planted: PlantedKeys,
    groups: BTreeMap<(Day, String), Group>,
    /// Days that are written, with their tools.
    pub(crate) written: Vec<(String, DayEntry)>,
    /// Planted calls that were seen, by tool.
    pub(crate) sightings: BTreeMap<String, BTreeSet<Sighting>>,
}

impl<'a> Groups<'a> {
    /// With the calls that are planted.
    pub(crate) fn new(ledger: &'a Ledger, into: Goal, planted: PlantedKeys) -> Self {
        let (groups, written, sightings) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        Self { ledger, into, planted, groups, written, sightings }
    }

    /// What did not fit; days that are named and have no row are left.
    pub(crate) fn into_check(self) -> Check {
        match self.into {
            Goal::Check(check) => check,
            Goal::Files(_) => Check::default(),
        }
    }

    /// Takes rows of a batch, with where they stand in it and how often they came.
    pub(crate) fn take(
        &mut self,
        source: &str,
        control: u64,
        batch: &RecordBatch,
        rows: Vec<PlacedRow>,
    ) -> Result<(), LedgerError> {
        let source: Arc<str> = source.into();
        let mut of_group: BTreeMap<(Day, String), Vec<PlacedRow>> = BTreeMap::new();
        for row in rows {
            of_group.entry((row.1.day, row.1.epoch.clone())).or_default().push(row);
        }
        for (key, rows) in of_group {
            let group = self.groups.entry(key).or_default();
            if let Some((_, first, _)) = rows.first().filter(|_| group.tool.is_empty()) {
                group.tool.clone_from(&first.tool_id);
                group.current.clone_from(&first.current);
                group.candidate.clone_from(&first.candidate);
            }
            let number = group.parts.len();
            // Only who writes files needs the columns: of small chunks they are many times the rows.
            if matches!(self.into, Goal::Files(_)) {
                let at = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
                let indices: UInt32Array = rows.iter().map(|(i, _, _)| at(*i)).collect();
                group.parts.push(take_record_batch(batch, &indices).map_err(odd)?);
            }
            group.items.extend(rows.into_iter().enumerate().map(|(at, (_, row, repeats))| Item {
                row,
                source: source.clone(),
                control,
                repeats,
                part: number,
                at,
            }));
        }
        Ok(())
    }

    /// Every row of the pass was given: writes its files; after the last pass over a day the day is written.
    pub(crate) fn end(&mut self, pass: &Pass) -> Result<(), LedgerError> {
        let last = pass.bucket.saturating_add(1) == pass.buckets;
        let mut done = Vec::new();
        let none = HashMap::new();
        for ((day, epoch), group) in &mut self.groups {
            if !pass.days.contains(day) {
                continue;
            }
            let Some(digest) = Digest::parse(epoch) else {
                return Err(LedgerError::unreadable("a results row", "an epoch is not a digest"));
            };
            let planted = self.planted.get(&group.tool).unwrap_or(&none);
            let rows = group.settle(*day, &digest, planted);
            let seen = match &mut self.into {
                Goal::Files(seq) => group.write(self.ledger, *seq, *day, &digest, rows)?,
                Goal::Check(check) => check.rows(self.ledger, pass, group, *day, &digest, rows)?,
            };
            self.sightings.entry(group.tool.clone()).or_default().extend(seen);
            if last {
                done.push((*day, epoch.clone(), digest));
            }
        }
        for (day, epoch, digest) in done {
            if let Some(group) = self.groups.remove(&(day, epoch)) {
                let tool = group.tool.clone();
                match &mut self.into {
                    Goal::Files(seq) => self.written.push((tool, group.entry(*seq, day, digest))),
                    Goal::Check(check) => check.day(tool, group.entry(0, day, digest)),
                }
            }
        }
        Ok(())
    }
}

fn odd(e: impl std::fmt::Display) -> LedgerError {
    LedgerError::unreadable("a results row", e)
}

/// Rows that say the same of a call stand together, the earliest first.
fn order(a: &Item, b: &Item) -> Ordering {
    same(a, b).then_with(|| a.row.position.cmp(&b.row.position))
}

/// Everything about a row but its position, time, commitment and how the candidate fared: two rows that agree in it are
/// one call that came twice.
fn same(a: &Item, b: &Item) -> Ordering {
    let (x, y) = (&a.row, &b.row);
    x.call_key
        .cmp(&y.call_key)
        .then_with(|| a.source.cmp(&b.source))
        .then_with(|| a.control.cmp(&b.control))
        .then_with(|| x.cohort.cmp(&y.cohort))
        .then_with(|| x.agent.cmp(&y.agent))
        .then_with(|| x.session_key.cmp(&y.session_key))
        .then_with(|| x.result.cmp(&y.result))
        .then_with(|| x.reason.map(|r| r.as_str()).cmp(&y.reason.map(|r| r.as_str())))
        .then_with(|| x.severity.cmp(&y.severity))
        .then_with(|| x.refused.cmp(&y.refused))
        .then_with(|| crate::wire::fidelity(x.fidelity).cmp(crate::wire::fidelity(y.fidelity)))
        .then_with(|| evidence(x).cmp(&evidence(y)))
        .then_with(|| x.rules.cmp(&y.rules))
        .then_with(|| x.places_touched.cmp(&y.places_touched))
        .then_with(|| x.places_disagreed.cmp(&y.places_disagreed))
        .then_with(|| x.discrepancies.cmp(&y.discrepancies))
}

fn evidence(row: &ResultRow) -> [bool; 3] {
    [row.evidence.validation, row.evidence.arguments, row.evidence.outcome]
}

/// The rows of a pass after repeats are taken out, and what was decided about each.
#[derive(Default)]
struct Settled {
    items: Vec<Item>,
    parts: Vec<RecordBatch>,
    more: More,
    sightings: Vec<Sighting>,
}

impl Group {
    /// Takes out repeats, finds the row that counts for each call, and counts it.
    fn settle(&mut self, day: Day, epoch: &Digest, planted: &HashMap<[u8; 16], u64>) -> Settled {
        let mut items = std::mem::take(&mut self.items);
        let parts = std::mem::take(&mut self.parts);
        items.sort_by(order);
        items.dedup_by(|later, kept| {
            let repeats = same(later, kept) == Ordering::Equal;
            if repeats {
                kept.repeats += later.repeats;
            }
            repeats
        });
        let is_planted =
            |item: &Item| planted.get(&item.row.call_key).is_some_and(|committed| item.control >= *committed);
        let mut tally = Tally::default();
        let mut sightings = Vec::new();
        for item in &items {
            if is_planted(item) {
                sightings.push(sighting(item, epoch));
            } else {
                tally.count(&item.row.as_tally_row(&item.source, item.control, true), item.repeats);
            }
        }
        items.sort_by(|a, b| (&a.source, a.row.position).cmp(&(&b.source, b.row.position)));
        let mut more = More::default();
        for item in &items {
            let planted = is_planted(item);
            let place = tally.counted(item.row.day, item.row.call_key);
            let at = &item.row.position;
            let counted = !planted
                && place.is_some_and(|p| {
                    (p.source.as_str(), p.partition, p.offset, p.index)
                        == (&*item.source, at.partition, at.offset, at.index)
                });
            if counted {
                self.count(&item.row);
            }
            more.source.push(item.source.clone());
            more.control.push(i64::try_from(item.control).unwrap_or(i64::MAX));
            more.repeats.push(i64::try_from(item.repeats).unwrap_or(i64::MAX));
            more.planted.push(planted);
            more.counted.push(counted);
        }
        if let Some(found) = tally.take_days().remove(&day) {
            self.tally.add(&found);
        }
        Settled { items, parts, more, sightings }
    }

    /// Writes the rows as one file; answers with the planted calls among them.
    fn write(
        &mut self,
        ledger: &Ledger,
        seq: u64,
        day: Day,
        epoch: &Digest,
        rows: Settled,
    ) -> Result<Vec<Sighting>, LedgerError> {
        if rows.items.is_empty() {
            return Ok(Vec::new());
        }
        let batches: Vec<&RecordBatch> = rows.parts.iter().collect();
        let places: Vec<(usize, usize)> = rows.items.iter().map(|item| (item.part, item.at)).collect();
        let batch = interleave_record_batch(&batches, &places).map_err(odd)?;
        if let Some(file) = dayfile::write(&batch, rows.more)? {
            let path = names::day_path(day, &self.tool, epoch, seq, &random_hex(8)?);
            ledger.store().put(&path, &file.bytes)?;
            let bytes = file.bytes.len() as u64;
            self.files.push(DayFile { path, sha256: file.sha256, bytes, rows: file.rows });
        }
        Ok(rows.sightings)
    }

    /// Counts a call, once.
    fn count(&mut self, row: &ResultRow) {
        let cohort = self.cohorts.entry(row.cohort.clone()).or_default();
        cohort.calls += 1;
        match row.result {
            ComparisonResult::Agreed | ComparisonResult::Disagreed => {
                let disagreed = u64::from(row.result == ComparisonResult::Disagreed);
                cohort.n += 1;
                cohort.k += disagreed;
                cohort.blocks +=
                    u64::from(disagreed == 1 && row.severity == Some(lastcall_compare::Severity::Block));
                let unit = self.sessions.entry(row.session_key).or_default();
                unit.0 += 1;
                unit.1 += disagreed;
            }
            ComparisonResult::Unresolved => cohort.unresolved += 1,
            ComparisonResult::BothRejected | ComparisonResult::Excluded => {}
        }
    }

    fn entry(self, seq: u64, day: Day, epoch: Digest) -> DayEntry {
        let mut units: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for unit in self.sessions.into_values() {
            *units.entry(unit).or_default() += 1;
        }
        DayEntry {
            day,
            epoch,
            current: self.current,
            candidate: self.candidate,
            revision: seq,
            files: self.files,
            categories: self.tally.by_category(),
            counts: self.tally.counts,
            cohorts: self.cohorts.into_iter().map(|(cohort, day)| CohortDay { cohort, ..day }).collect(),
            units: units.into_iter().map(|((n, k), many)| (n, k, many)).collect(),
        }
    }
}

impl Check {
    /// Holds the rows of a pass against those of the day's files.
    fn rows(
        &mut self,
        ledger: &Ledger,
        pass: &Pass,
        group: &Group,
        day: Day,
        epoch: &Digest,
        rows: Settled,
    ) -> Result<Vec<Sighting>, LedgerError> {
        let Some(named) = self.named.get(&(group.tool.clone(), day, epoch.clone())) else {
            return Ok(rows.sightings);
        };
        let mut there: Vec<DayRow> = Vec::new();
        for_each_day_row(ledger, named, &mut |day, key| pass.holds(day, key), &mut |row| {
            there.push(row.clone())
        })?;
        there.sort_by(|a, b| (&a.source, a.row.position).cmp(&(&b.source, b.row.position)));
        let same = there.len() == rows.items.len()
            && there.iter().zip(&rows.items).enumerate().all(|(i, (there, item))| {
                there.row == item.row
                    && *there.source == *item.source
                    && (there.control, there.repeats) == (item.control, item.repeats)
                    && rows.more.planted.get(i) == Some(&there.planted)
                    && rows.more.counted.get(i) == Some(&there.counted)
            });
        if !same {
            let place = named.files.first().map_or_else(|| group.tool.clone(), |file| file.path.clone());
            self.wrong.push((place, "its rows are not what the chunks' results come to".to_owned()));
        }
        Ok(rows.sightings)
    }

    /// Holds a day against what the index says of it.
    fn day(&mut self, tool: String, found: DayEntry) {
        let Some(named) = self.named.remove(&(tool.clone(), found.day, found.epoch.clone())) else {
            let what = format!("{} of `{tool}` under epoch {} is not in it", found.day, found.epoch.short());
            self.wrong.push((String::new(), what));
            return;
        };
        let found = DayEntry { revision: named.revision, files: named.files.clone(), ..found };
        if found != named {
            let what = format!(
                "what it says of {} of `{tool}` under epoch {} is not what the chunks' results come to",
                found.day,
                found.epoch.short()
            );
            self.wrong.push((String::new(), what));
        }
    }
}

fn sighting(item: &Item, epoch: &Digest) -> Sighting {
    Sighting {
        call_key: item.row.key_text(),
        epoch: epoch.clone(),
        source: item.source.to_string(),
        cohort: item.row.cohort.clone(),
        control: item.control,
        found: item.row.found(),
    }
}
