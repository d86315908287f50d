//! From rows to tallies: each call once, with its worst row, in whatever order the rows are read.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use lastcall_compare::{Category, ComparisonResult, Discrepancy, Reason, Severity};
use lastcall_event::{Day, Fidelity};

use super::{DayCounts, DayTally, Expectation, Place, PlantedFacts, Row, Tallied};

/// One call after its rows were merged: the worst of them.
struct Call {
    said: Said,
    rank: u8,
    place: Place,
    default_severity: Option<Severity>,
    outcome: bool,
    reconstructed: bool,
    rules: Box<[String]>,
    /// Rows that say the same as this one, itself included.
    same: u64,
    /// Rows that say otherwise.
    others: Vec<(Said, u64)>,
}

/// The fields of a row that decide: two rows of a call that differ in them conflict.
#[derive(Clone, PartialEq)]
struct Said {
    result: ComparisonResult,
    reason: Option<Reason>,
    severity: Option<Severity>,
    refused: bool,
    discrepancies: Box<[Discrepancy]>,
}

/// Collects rows.
#[derive(Default)]
pub struct Tally {
    calls: HashMap<(Day, [u8; 16]), Call>,
    rows: BTreeMap<Day, u64>,
    expected: HashMap<[u8; 16], Planted>,
}

struct Planted {
    committed: u64,
    expect: Option<(Category, Severity)>,
    seen: bool,
    missed: bool,
}

/// The order in which a conflict's worst row is found: disagreed with block or refused, disagreed, unresolved,
/// both_rejected, excluded, agreed.
fn rank(result: ComparisonResult, severity: Option<Severity>, refused: bool) -> u8 {
    match result {
        ComparisonResult::Disagreed if refused || severity == Some(Severity::Block) => 5,
        ComparisonResult::Disagreed => 4,
        ComparisonResult::Unresolved => 3,
        ComparisonResult::BothRejected => 2,
        ComparisonResult::Excluded => 1,
        ComparisonResult::Agreed => 0,
    }
}

impl Call {
    fn of(row: &Row<'_>) -> Self {
        let (result, reason) = match row.observed {
            true => (row.result, row.reason),
            false => (ComparisonResult::Unresolved, Some(Reason::NotObserved)),
        };
        let compared = matches!(result, ComparisonResult::Agreed | ComparisonResult::Disagreed);
        Self {
            rank: rank(result, row.severity, row.refused),
            said: Said {
                result,
                reason,
                severity: row.severity,
                refused: row.refused,
                discrepancies: if compared { row.discrepancies.into() } else { Box::default() },
            },
            place: row.place.clone(),
            default_severity: row.discrepancies.iter().map(|d| d.category.default_severity()).max(),
            outcome: compared && row.evidence.outcome,
            reconstructed: compared && row.fidelity == Fidelity::Reconstructed,
            rules: if compared { row.rules.into() } else { Box::default() },
            same: 0,
            others: Vec::new(),
        }
    }

    /// Worse (a block before a refusal that is only a warning), or as bad and earlier in the ledger: the same answer in
    /// whatever order rows are read.
    fn wins_over(&self, other: &Self) -> bool {
        (self.rank, self.said.severity, self.said.refused, &other.place)
            > (other.rank, other.said.severity, other.said.refused, &self.place)
    }

    /// Takes in another row of the same call, `times` times.
    fn merge(&mut self, mut row: Self, times: u64) {
        let wins = row.wins_over(self);
        if row.said == self.said {
            row.same = self.same + times;
            row.others = std::mem::take(&mut self.others);
            if wins {
                *self = row;
            } else {
                (self.same, self.others) = (row.same, row.others);
            }
            return;
        }
        let known = self.others.iter().position(|(said, _)| *said == row.said);
        if !wins {
            match known.and_then(|at| self.others.get_mut(at)) {
                Some((_, n)) => *n += times,
                None => self.others.push((row.said, times)),
            }
            return;
        }
        let before = known.map_or(0, |at| self.others.swap_remove(at).1);
        row.others = std::mem::take(&mut self.others);
        row.others.push((self.said.clone(), self.same));
        row.same = before + times;
        *self = row;
    }
}

impl Tally {
    /// An empty tally. Calls with an expected key never enter the counts.
    pub fn new(expected: impl IntoIterator<Item = Expectation>) -> Self {
        let expected = expected
            .into_iter()
            .map(|e| {
                (e.call_key, Planted { committed: e.committed, expect: e.expect, seen: false, missed: false })
            })
            .collect();
        Self { expected, ..Self::default() }
    }

    /// Adds one row of the pair under its epoch.
    pub fn add(&mut self, row: &Row<'_>) {
        if !self.plant(row.call_key, row.control, || {
            row.discrepancies.iter().map(|d| (d.category, d.severity)).collect()
        }) {
            self.count(row, 1);
        }
    }

    /// Takes note of a planted or synthetic call that came back; whether it is one. `found` is what it came back with.
    pub fn plant(
        &mut self,
        call_key: [u8; 16],
        control: u64,
        found: impl FnOnce() -> Vec<(Category, Severity)>,
    ) -> bool {
        let Some(planted) = self.expected.get_mut(&call_key).filter(|p| control >= p.committed) else {
            return false;
        };
        planted.seen = true;
        if let Some(expected) = planted.expect {
            planted.missed |= !found().contains(&expected);
        }
        true
    }

    /// Counts a row that is no planted call, as if it had come so many times.
    pub fn count(&mut self, row: &Row<'_>, times: u64) {
        if times == 0 {
            return;
        }
        *self.rows.entry(row.day).or_default() += times;
        let call = Call::of(row);
        match self.calls.entry((row.day, row.call_key)) {
            Entry::Vacant(slot) => {
                slot.insert(Call { same: times, ..call });
            }
            Entry::Occupied(mut slot) => slot.get_mut().merge(call, times),
        }
    }

    /// Where the row stands that counts for a call.
    pub fn counted(&self, day: Day, call_key: [u8; 16]) -> Option<&Place> {
        self.calls.get(&(day, call_key)).map(|call| &call.place)
    }

    /// The tallies of the days that were gathered so far. Planted calls stay; a row that comes later for one of these
    /// days is not held against the calls that are taken out here.
    pub fn take_days(&mut self) -> BTreeMap<Day, DayTally> {
        let mut out: BTreeMap<Day, DayTally> = BTreeMap::new();
        for (day, calls) in std::mem::take(&mut self.rows) {
            let counts = DayCounts { calls, ..DayCounts::default() };
            out.insert(day, DayTally { counts, ..DayTally::default() });
        }
        for ((day, _), call) in std::mem::take(&mut self.calls) {
            let tally = out.entry(day).or_default();
            count(&mut tally.counts, &call);
            for rule in &call.rules {
                *tally.rules.entry(rule.clone()).or_default() += 1;
            }
            tally.gather(day, &call.place, &call.said.discrepancies);
        }
        out
    }

    /// What became of planted faults and synthetic calls so far.
    pub fn planted(&self) -> PlantedFacts {
        let mut out = PlantedFacts::default();
        for planted in self.expected.values() {
            let Some((category, severity)) = planted.expect else {
                out.synthetic += u64::from(planted.seen);
                continue;
            };
            out.committed += 1;
            out.seen += u64::from(planted.seen);
            if planted.missed {
                out.missed += 1;
                *out.missed_as.entry(format!("{category}/{severity}")).or_default() += 1;
            }
        }
        out
    }

    /// The counts of every day, and the categories over the days from `first` to `last` (`None`: no day is closed).
    pub fn finish(mut self, first: Day, last: Option<Day>) -> Tallied {
        let days = self.take_days();
        Tallied::of(days.iter().map(|(day, tally)| (*day, tally)), first, last, self.planted())
    }
}

fn count(day: &mut DayCounts, call: &Call) {
    let said = &call.said;
    let conflicts: u64 = call.others.iter().map(|(_, n)| n).sum();
    day.conflicts += conflicts;
    day.duplicate += (call.same + conflicts).saturating_sub(1);
    match said.result {
        ComparisonResult::Agreed => {
            day.agreed += 1;
            day.agreed_by_rule += u64::from(!call.rules.is_empty());
        }
        ComparisonResult::Disagreed => {
            day.disagreed += 1;
            day.blocks += u64::from(said.severity == Some(Severity::Block));
            day.refused += u64::from(said.refused);
        }
        ComparisonResult::BothRejected => day.both_rejected += 1,
        ComparisonResult::Excluded => day.excluded += 1,
        ComparisonResult::Unresolved => day.unresolved += 1,
    }
    if matches!(said.result, ComparisonResult::Agreed | ComparisonResult::Disagreed) {
        day.outcomes += u64::from(call.outcome);
        day.reconstructed += u64::from(call.reconstructed);
        // A row without discrepancies keeps its own severity: nothing is known of a default.
        let by_default = call.default_severity.or(said.severity).unwrap_or(Severity::Info);
        let disagreed = by_default >= Severity::Warn || said.refused;
        day.disagreed_by_default += u64::from(disagreed);
        day.blocks_by_default += u64::from(by_default == Severity::Block);
    } else if let Some(reason) = said.reason {
        *day.reasons.entry(reason.as_str().to_owned()).or_default() += 1;
    }
}
