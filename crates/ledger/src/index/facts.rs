//! Daily facts: what a tool's days came to, and where their compacted rows lie. Objects, one the successor of another.

use std::collections::{BTreeMap, BTreeSet};

use lastcall_contract::Digest;
use lastcall_decision::DayCounts;
use lastcall_event::Day;
use serde::{Deserialize, Serialize};

use crate::error::LedgerError;
use crate::index::{INDEX_FORMAT, IndexBody};
use crate::ledger::Ledger;
use crate::names;
use crate::window::{Sighting, WindowFacts};

/// What an index entry keeps of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DailyFacts {
    /// [`INDEX_FORMAT`].
    pub format: u32,
    /// The tool.
    pub tool: String,
    /// Older days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// Its days under each epoch, ascending by day and epoch. A day that stands here and further back was revised.
    pub days: Vec<DayEntry>,
    /// Planted and synthetic calls that came back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planted: Vec<Sighting>,
    /// Its windows, and its observed pairs without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowFacts>,
}

/// An object of older days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// Its digest.
    pub digest: Digest,
    /// The last day in it, or behind it.
    pub through: Day,
}

/// One day of a tool under one epoch: every source and cohort, planted calls left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DayEntry {
    /// The UTC day.
    pub day: Day,
    /// The epoch.
    pub epoch: Digest,
    /// Current contract id.
    pub current: String,
    /// Candidate contract id.
    pub candidate: String,
    /// The index entry that wrote it: a late call makes the next revision.
    pub revision: u64,
    /// Its compacted rows; several files hold disjoint sets of calls.
    pub files: Vec<DayFile>,
    /// What its calls come to. D is `disagreed` of `agreed + disagreed`.
    pub counts: DayCounts,
    /// Calls by `category/severity`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub categories: BTreeMap<String, u64>,
    /// The same calls by cohort.
    pub cohorts: Vec<CohortDay>,
    /// Sessions with compared calls on this UTC day: `[n, k, how many]`, by n compared calls of which k disagree. Calls
    /// without session, run and trace are one unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<(u64, u64, u64)>,
}

/// A file of compacted rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayFile {
    /// Its path in the ledger.
    pub path: String,
    /// SHA-256 of its bytes.
    pub sha256: Digest,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
}

/// A day's calls of one cohort, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CohortDay {
    /// The cohort; `None`: calls that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort: Option<String>,
    /// Calls.
    pub calls: u64,
    /// Compared calls.
    pub n: u64,
    /// Disagreements.
    pub k: u64,
    /// Disagreements with a block.
    pub blocks: u64,
    /// Unresolved calls.
    pub unresolved: u64,
}

/// Older days on their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OlderDays {
    /// [`INDEX_FORMAT`].
    pub format: u32,
    /// The tool.
    pub tool: String,
    /// Days before these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// The days, ascending by day and epoch.
    pub days: Vec<DayEntry>,
}

impl DailyFacts {
    /// Of a tool of which nothing is known.
    pub(crate) fn new(tool: &str) -> Self {
        Self {
            format: INDEX_FORMAT,
            tool: tool.to_owned(),
            previous: None,
            days: Vec::new(),
            planted: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Puts new and revised days in; more than `kept` of them are handed to an object of their own, a third at a time.
    pub(crate) fn revise(
        &mut self,
        ledger: &Ledger,
        days: Vec<DayEntry>,
        kept: usize,
    ) -> Result<(), LedgerError> {
        let key = |e: &DayEntry| (e.day, e.epoch.clone());
        let revised: BTreeSet<(Day, Digest)> = days.iter().map(key).collect();
        self.days.retain(|e| !revised.contains(&key(e)));
        self.days.extend(days);
        self.days.sort_by(|a, b| (a.day, &a.epoch).cmp(&(b.day, &b.epoch)));
        while self.days.len() > kept.max(1) {
            let sealed: Vec<DayEntry> = self.days.drain(..kept.max(1).div_ceil(3)).collect();
            let through = sealed.iter().map(|e| e.day).max();
            let through = through.max(self.previous.as_ref().map(|p| p.through)).unwrap_or_default();
            let older = OlderDays {
                format: INDEX_FORMAT,
                tool: self.tool.clone(),
                previous: self.previous.take(),
                days: sealed,
            };
            let digest = put(ledger, &older)?;
            self.previous = Some(Previous { digest, through });
        }
        Ok(())
    }
}

/// Stores a value as an object.
pub(crate) fn put<T: Serialize>(ledger: &Ledger, value: &T) -> Result<Digest, LedgerError> {
    let bytes = serde_json::to_vec(value).map_err(|e| LedgerError::unreadable("daily facts", e))?;
    ledger.put_object(&bytes)
}

/// The newest daily facts of a tool.
pub fn read_facts(ledger: &Ledger, digest: &Digest, tool: &str) -> Result<DailyFacts, LedgerError> {
    let facts: DailyFacts = parse(ledger, digest)?;
    known(digest, facts.format, &facts.tool, tool)?;
    Ok(facts)
}

/// An object of older days.
pub fn read_older(ledger: &Ledger, digest: &Digest, tool: &str) -> Result<OlderDays, LedgerError> {
    let older: OlderDays = parse(ledger, digest)?;
    known(digest, older.format, &older.tool, tool)?;
    Ok(older)
}

fn parse<T: serde::de::DeserializeOwned>(ledger: &Ledger, digest: &Digest) -> Result<T, LedgerError> {
    let bytes = ledger.object(digest)?;
    let place = names::object_path(digest);
    serde_json::from_slice(&bytes)
        .map_err(|e| LedgerError::unreadable(&place, format!("it holds no daily facts of this build: {e}")))
}

fn known(digest: &Digest, format: u32, said: &str, tool: &str) -> Result<(), LedgerError> {
    let place = names::object_path(digest);
    if format != INDEX_FORMAT {
        let what = format!("its format is {format}, this build reads {INDEX_FORMAT}; take a newer lastcall");
        return Err(LedgerError::unreadable(&place, what));
    }
    if said != tool {
        return Err(LedgerError::altered(&place, format!("it holds the days of `{said}`, not of `{tool}`")));
    }
    Ok(())
}

/// The newest revision of each of these days, where there is one.
pub fn find_days(
    ledger: &Ledger,
    facts: &DailyFacts,
    mut wanted: BTreeSet<(Day, Digest)>,
) -> Result<Vec<DayEntry>, LedgerError> {
    let mut out = Vec::new();
    let mut take = |days: &[DayEntry], wanted: &mut BTreeSet<(Day, Digest)>| {
        out.extend(days.iter().filter(|e| wanted.remove(&(e.day, e.epoch.clone()))).cloned());
    };
    take(&facts.days, &mut wanted);
    let mut previous = facts.previous.clone();
    while let Some(older) = previous.take() {
        if wanted.first().is_none_or(|(day, _)| *day > older.through) {
            break;
        }
        let read = read_older(ledger, &older.digest, &facts.tool)?;
        take(&read.days, &mut wanted);
        previous = read.previous;
    }
    Ok(out)
}

/// Calls `each` with every day of a tool, the newest revision alone, and with every object on the way.
pub fn each_day(
    ledger: &Ledger,
    facts: &DailyFacts,
    mut each: impl FnMut(&DayEntry, bool),
    mut object: impl FnMut(&Digest),
) -> Result<(), LedgerError> {
    let mut seen: BTreeSet<(Day, Digest)> = BTreeSet::new();
    facts.days.iter().for_each(|e| each(e, seen.insert((e.day, e.epoch.clone()))));
    let mut previous = facts.previous.clone();
    while let Some(older) = previous.take() {
        object(&older.digest);
        let read = read_older(ledger, &older.digest, &facts.tool)?;
        read.days.iter().for_each(|e| each(e, seen.insert((e.day, e.epoch.clone()))));
        previous = read.previous;
    }
    Ok(())
}

/// Calls `each` with every day of every tool that an index entry names, and whether it is the newest revision; in an
/// export of its tool alone.
pub fn each_named_day(
    ledger: &Ledger,
    body: &IndexBody,
    mut each: impl FnMut(&str, &DayEntry, bool),
) -> Result<(), LedgerError> {
    for (tool, at) in &body.tools {
        let Some(digest) = &at.facts else { continue };
        if ledger.export().is_some_and(|mark| mark.tool != *tool) {
            continue;
        }
        let facts = read_facts(ledger, digest, tool)?;
        each_day(ledger, &facts, |entry, newest| each(tool, entry, newest), |_| {})?;
    }
    Ok(())
}
