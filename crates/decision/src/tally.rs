//! What rows come to: deduplicated counts per UTC day, categories, planted faults. Never looks at a clock and never
//! decides.

mod day;
mod fold;

pub use day::DayTally;
pub use fold::Tally;

use std::collections::BTreeMap;

use lastcall_compare::{Category, ComparisonResult, Discrepancy, Evidence, Reason, Severity};
use lastcall_event::{Day, Fidelity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a row stands in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// Source.
    pub source: String,
    /// Partition.
    pub partition: i32,
    /// Offset (of a file: the byte offset).
    pub offset: i64,
    /// Index in the message.
    pub index: i32,
}

/// One result row as the tally needs it. Rows of other pairs and epochs are left out by the caller.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Where it stands.
    pub place: Place,
    /// UTC day of the call.
    pub day: Day,
    /// Key of the call id.
    pub call_key: [u8; 16],
    /// Sequence number of the control entry under which it was recorded.
    pub control: u64,
    /// Recorded under the registration: false makes it unresolved (`not_observed`).
    pub observed: bool,
    /// Result.
    pub result: ComparisonResult,
    /// Why.
    pub reason: Option<Reason>,
    /// Worst severity among the discrepancies.
    pub severity: Option<Severity>,
    /// The candidate refused the call.
    pub refused: bool,
    /// Fidelity of the arguments.
    pub fidelity: Fidelity,
    /// Levels of evidence.
    pub evidence: Evidence,
    /// Differences.
    pub discrepancies: &'a [Discrepancy],
    /// Normalization rules that turned a difference into agreement.
    pub rules: &'a [String],
}

/// Counts of one UTC day, after duplicates are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DayCounts {
    /// Rows of the day, counted as they came.
    pub calls: u64,
    /// Compared, no difference of warn or block.
    pub agreed: u64,
    /// Compared, a difference of warn or block.
    pub disagreed: u64,
    /// Refused by both.
    pub both_rejected: u64,
    /// Left out by a rule.
    pub excluded: u64,
    /// Nobody can say.
    pub unresolved: u64,
    /// Repeats of a call that is counted once.
    pub duplicate: u64,
    /// Repeats that did not say the same as the call's other rows (the worst one counts).
    pub conflicts: u64,
    /// Disagreements with a difference of severity block.
    pub blocks: u64,
    /// Disagreements on which the candidate refused the call.
    pub refused: u64,
    /// Compared calls whose outcome was observed on both sides.
    pub outcomes: u64,
    /// Compared calls whose arguments were rebuilt from another form.
    pub reconstructed: u64,
    /// Agreed calls that agree only after a normalization rule.
    pub agreed_by_rule: u64,
    /// Disagreements, had every category its default severity.
    pub disagreed_by_default: u64,
    /// Blocks, had every category its default severity.
    pub blocks_by_default: u64,
    /// Calls by reason, of those both rejected, excluded or unresolved.
    pub reasons: BTreeMap<String, u64>,
}

impl DayCounts {
    /// Compared calls: agreed and disagreed.
    pub fn compared(&self) -> u64 {
        self.agreed.saturating_add(self.disagreed)
    }

    /// The right side of the balance (invariant 3), which has to equal `calls`.
    pub fn accounted(&self) -> u64 {
        [self.disagreed, self.both_rejected, self.excluded, self.unresolved, self.duplicate]
            .into_iter()
            .fold(self.agreed, u64::saturating_add)
    }

    /// Adds another day's counts.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.agreed = self.agreed.saturating_add(other.agreed);
        self.disagreed = self.disagreed.saturating_add(other.disagreed);
        self.both_rejected = self.both_rejected.saturating_add(other.both_rejected);
        self.excluded = self.excluded.saturating_add(other.excluded);
        self.unresolved = self.unresolved.saturating_add(other.unresolved);
        self.duplicate = self.duplicate.saturating_add(other.duplicate);
        self.conflicts = self.conflicts.saturating_add(other.conflicts);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.refused = self.refused.saturating_add(other.refused);
        self.outcomes = self.outcomes.saturating_add(other.outcomes);
        self.reconstructed = self.reconstructed.saturating_add(other.reconstructed);
        self.agreed_by_rule = self.agreed_by_rule.saturating_add(other.agreed_by_rule);
        self.disagreed_by_default = self.disagreed_by_default.saturating_add(other.disagreed_by_default);
        self.blocks_by_default = self.blocks_by_default.saturating_add(other.blocks_by_default);
        for (reason, n) in &other.reasons {
            let sum = self.reasons.entry(reason.clone()).or_default();
            *sum = sum.saturating_add(*n);
        }
    }

    /// Adds calls of the day of which nothing but their number is known, for a reason of
    /// [`lastcall_compare::Reason`].
    pub fn add_unresolved(&mut self, calls: u64, reason: &str) {
        if calls > 0 {
            self.calls = self.calls.saturating_add(calls);
            self.unresolved = self.unresolved.saturating_add(calls);
            let sum = self.reasons.entry(reason.to_owned()).or_default();
            *sum = sum.saturating_add(calls);
        }
    }
}

/// One call that shows a category. No value: the call stands at `place`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Example {
    /// Pointer into the arguments or the result.
    pub pointer: String,
    /// Schema keyword, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// Pointer into the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// What else is known, never a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// UTC day of the call.
    #[schemars(with = "String")]
    pub day: Day,
    /// Where the call stands in the ledger.
    pub place: Place,
    /// The value at the pointer as JSON text; only where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// How often a category occurs at one pointer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldCount {
    /// Pointer.
    pub pointer: String,
    /// Calls.
    pub calls: u64,
}

/// One category over the closed scored days. A call counts once, at its worst severity there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryFacts {
    /// The category's name.
    pub category: String,
    /// Calls with severity block.
    pub block: u64,
    /// Calls with severity warn.
    pub warn: u64,
    /// Calls with severity info (no disagreement).
    pub info: u64,
    /// Calls that the candidate refused for it.
    pub refused: u64,
    /// First day.
    #[schemars(with = "String")]
    pub first_seen: Day,
    /// Last day.
    #[schemars(with = "String")]
    pub last_seen: Day,
    /// The pointers with the most calls, at most five.
    pub fields: Vec<FieldCount>,
    /// How many different pointers.
    pub distinct_fields: u64,
    /// The worst call, the earliest among equals.
    pub example: Example,
}

impl CategoryFacts {
    /// Calls of every severity.
    pub fn calls(&self) -> u64 {
        self.block + self.warn + self.info
    }
}

/// A call that was committed to the control chain before it was produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Sequence number of the control entry that committed it: a call recorded before is an ordinary one.
    pub committed: u64,
    /// Key of the call id.
    pub call_key: [u8; 16],
    /// The planted fault's category and severity; `None`: a synthetic call, of which nothing is expected.
    pub expect: Option<(Category, Severity)>,
}

/// What became of planted faults and synthetic calls. Neither enters D.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlantedFacts {
    /// Planted faults in the control chain.
    pub committed: u64,
    /// Those that came back.
    pub seen: u64,
    /// Those that came back without the expected category and severity.
    pub missed: u64,
    /// What was expected of those that were missed, `category/severity`, with how often.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missed_as: BTreeMap<String, u64>,
    /// Synthetic calls that came back.
    pub synthetic: u64,
}

/// Calls that lie on no day of the window, and were recorded while it stood: counted, never judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// How many.
    pub calls: u64,
    /// The last day on which one lies.
    pub last: Option<Day>,
}

impl Outside {
    /// Adds calls of a day.
    pub fn add(&mut self, day: Day, calls: u64) {
        if calls > 0 {
            self.calls = self.calls.saturating_add(calls);
            self.last = self.last.max(Some(day));
        }
    }
}

/// What a tally found.
#[derive(Clone, Debug, Default)]
pub struct Tallied {
    /// Every day on which a call lies, scored or not.
    pub days: BTreeMap<Day, DayCounts>,
    /// Categories over the days that were asked for, most blocks first.
    pub categories: Vec<CategoryFacts>,
    /// Normalization rules over those days: calls on which each turned a difference into agreement.
    pub rules: BTreeMap<String, u64>,
    /// Planted faults.
    pub planted: PlantedFacts,
}

impl Tallied {
    /// From the tallies of days: the counts of each, and categories and rules over those from `first` to `last`
    /// (`None`: no day is closed).
    pub fn of<'a>(
        days: impl IntoIterator<Item = (Day, &'a DayTally)>,
        first: Day,
        last: Option<Day>,
        planted: PlantedFacts,
    ) -> Self {
        let mut sum = DayTally::default();
        let mut out = Self { planted, ..Self::default() };
        for (day, tally) in days {
            out.days.insert(day, tally.counts.clone());
            if day >= first && last.is_some_and(|last| day <= last) {
                sum.add_findings(tally);
            }
        }
        out.categories = sum.category_facts();
        out.rules = sum.rules;
        out
    }
}
