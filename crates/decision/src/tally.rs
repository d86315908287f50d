//! From result rows to deduplicated counts per UTC day, categories and planted faults. Never looks at a clock and
//! never decides.

use std::collections::{BTreeMap, HashMap};

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

/// One call after its rows were merged: the worst of them.
struct Call {
    rank: u8,
    result: ComparisonResult,
    reason: Option<Reason>,
    place: Place,
    severity: Option<Severity>,
    default_severity: Option<Severity>,
    refused: bool,
    outcome: bool,
    reconstructed: bool,
    discrepancies: Box<[Discrepancy]>,
    rules: Box<[String]>,
}

/// Collects rows.
#[derive(Default)]
pub struct Tally {
    calls: HashMap<(Day, [u8; 16]), Call>,
    rows: BTreeMap<Day, (u64, u64, u64)>,
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
            result,
            reason,
            place: row.place.clone(),
            severity: row.severity,
            default_severity: row.discrepancies.iter().map(|d| d.category.default_severity()).max(),
            refused: row.refused,
            outcome: compared && row.evidence.outcome,
            reconstructed: compared && row.fidelity == Fidelity::Reconstructed,
            discrepancies: if compared { row.discrepancies.into() } else { Box::default() },
            rules: if compared { row.rules.into() } else { Box::default() },
        }
    }

    /// Whether two rows of one call say the same, on the fields that decide.
    fn same(&self, other: &Self) -> bool {
        self.result == other.result
            && self.reason == other.reason
            && self.severity == other.severity
            && self.refused == other.refused
            && self.discrepancies == other.discrepancies
    }

    /// Worse (a block before a refusal that is only a warning), or as bad and earlier in the ledger: the same answer in
    /// whatever order rows are read.
    fn wins_over(&self, other: &Self) -> bool {
        (self.rank, self.severity, self.refused, &other.place)
            > (other.rank, other.severity, other.refused, &self.place)
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
        if let Some(planted) = self.expected.get_mut(&row.call_key).filter(|p| row.control >= p.committed) {
            planted.seen = true;
            if let Some((category, severity)) = planted.expect {
                let found =
                    row.discrepancies.iter().any(|d| d.category == category && d.severity == severity);
                planted.missed |= !found;
            }
            return;
        }
        let (calls, duplicates, conflicts) = self.rows.entry(row.day).or_default();
        *calls += 1;
        let call = Call::of(row);
        match self.calls.entry((row.day, row.call_key)) {
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(call);
            }
            std::collections::hash_map::Entry::Occupied(mut slot) => {
                *duplicates += 1;
                *conflicts += u64::from(!call.same(slot.get()));
                if call.wins_over(slot.get()) {
                    slot.insert(call);
                }
            }
        }
    }

    /// The counts of every day, and the categories over the days from `first` to `last` (`None`: no day is closed).
    pub fn finish(self, first: Day, last: Option<Day>) -> Tallied {
        let mut out = Tallied::default();
        for (day, (calls, duplicate, conflicts)) in self.rows {
            out.days.insert(day, DayCounts { calls, duplicate, conflicts, ..DayCounts::default() });
        }
        let mut categories: BTreeMap<Category, Gathered> = BTreeMap::new();
        for ((day, _), call) in &self.calls {
            count(out.days.entry(*day).or_default(), call);
            if *day < first || last.is_none_or(|last| *day > last) {
                continue;
            }
            for rule in &call.rules {
                *out.rules.entry(rule.clone()).or_default() += 1;
            }
            gather(&mut categories, *day, call);
        }
        out.categories = categories.into_iter().filter_map(|(c, g)| g.finish(c)).collect();
        out.categories.sort_by(|a, b| {
            (b.block, b.warn, b.info)
                .cmp(&(a.block, a.warn, a.info))
                .then_with(|| a.category.cmp(&b.category))
        });
        for planted in self.expected.values() {
            let p = &mut out.planted;
            let Some((category, severity)) = planted.expect else {
                p.synthetic += u64::from(planted.seen);
                continue;
            };
            p.committed += 1;
            p.seen += u64::from(planted.seen);
            if planted.missed {
                p.missed += 1;
                *p.missed_as.entry(format!("{category}/{severity}")).or_default() += 1;
            }
        }
        out
    }
}

fn count(day: &mut DayCounts, call: &Call) {
    match call.result {
        ComparisonResult::Agreed => {
            day.agreed += 1;
            day.agreed_by_rule += u64::from(!call.rules.is_empty());
        }
        ComparisonResult::Disagreed => {
            day.disagreed += 1;
            day.blocks += u64::from(call.severity == Some(Severity::Block));
            day.refused += u64::from(call.refused);
        }
        ComparisonResult::BothRejected => day.both_rejected += 1,
        ComparisonResult::Excluded => day.excluded += 1,
        ComparisonResult::Unresolved => day.unresolved += 1,
    }
    if matches!(call.result, ComparisonResult::Agreed | ComparisonResult::Disagreed) {
        day.outcomes += u64::from(call.outcome);
        day.reconstructed += u64::from(call.reconstructed);
        // A row without discrepancies keeps its own severity: nothing is known of a default.
        let by_default = call.default_severity.or(call.severity).unwrap_or(Severity::Info);
        let disagreed = by_default >= Severity::Warn || call.refused;
        day.disagreed_by_default += u64::from(disagreed);
        day.blocks_by_default += u64::from(by_default == Severity::Block);
    } else if let Some(reason) = call.reason {
        *day.reasons.entry(reason.as_str().to_owned()).or_default() += 1;
    }
}

/// A category while its calls are gathered.
#[derive(Default)]
struct Gathered {
    by_severity: BTreeMap<Severity, u64>,
    refused: u64,
    span: Option<(Day, Day)>,
    fields: BTreeMap<String, u64>,
    example: Option<(Severity, bool, Example)>,
}

fn gather(categories: &mut BTreeMap<Category, Gathered>, day: Day, call: &Call) {
    let mut worst: BTreeMap<Category, (Severity, bool)> = BTreeMap::new();
    let mut fields: Vec<(Category, &str)> = Vec::new();
    for d in &call.discrepancies {
        let entry = worst.entry(d.category).or_insert((d.severity, d.refused));
        *entry = (entry.0.max(d.severity), entry.1 | d.refused);
        fields.push((d.category, d.field.as_str()));
        let gathered = categories.entry(d.category).or_default();
        let better = gathered.example.as_ref().is_none_or(|(severity, refused, e)| {
            (d.severity, d.refused, (e.day, &e.place, &e.pointer))
                > (*severity, *refused, (day, &call.place, &d.field))
        });
        if better {
            let example = Example {
                pointer: d.field.clone(),
                keyword: d.keyword.clone(),
                location: d.location.clone(),
                note: d.note.clone(),
                day,
                place: call.place.clone(),
                value: None,
            };
            gathered.example = Some((d.severity, d.refused, example));
        }
    }
    fields.sort_unstable();
    fields.dedup();
    for (category, field) in fields {
        *categories.entry(category).or_default().fields.entry(field.to_owned()).or_default() += 1;
    }
    for (category, (severity, refused)) in worst {
        let gathered = categories.entry(category).or_default();
        *gathered.by_severity.entry(severity).or_default() += 1;
        gathered.refused += u64::from(refused);
        gathered.span = Some(match gathered.span {
            Some((first, last)) => (first.min(day), last.max(day)),
            None => (day, day),
        });
    }
}

impl Gathered {
    fn finish(self, category: Category) -> Option<CategoryFacts> {
        let (first_seen, last_seen) = self.span?;
        let (_, _, example) = self.example?;
        let distinct_fields = self.fields.len() as u64;
        let mut fields: Vec<FieldCount> =
            self.fields.into_iter().map(|(pointer, calls)| FieldCount { pointer, calls }).collect();
        fields.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.pointer.cmp(&b.pointer)));
        fields.truncate(5);
        let of = |s: Severity| self.by_severity.get(&s).copied().unwrap_or_default();
        Some(CategoryFacts {
            category: category.as_str().to_owned(),
            block: of(Severity::Block),
            warn: of(Severity::Warn),
            info: of(Severity::Info),
            refused: self.refused,
            first_seen,
            last_seen,
            fields,
            distinct_fields,
            example,
        })
    }
}
