//! What is counted of the calls of one tool. Bounded: hostile names share a row.

use std::collections::BTreeMap;

use lastcall_compare::{Comparison, ComparisonResult, Discrepancy, Severity, parse_call};
use lastcall_decision::Plan;
use lastcall_event::{CallRecord, Day, Fidelity, NO_TIME};
use lastcall_report::{
    TRY_FORMAT, TryCaller, TryCategory, TryDay, TryExample, TryFinding, TryReport, burn_in,
};

/// Rows of each table beyond which new names share one.
const MAX_ROWS: usize = 5_000;
/// The shared row.
const OTHERS: &str = "(others)";

/// How much of each call is shown.
#[derive(Clone, Copy, Debug)]
pub struct Showing {
    /// How many of the worst calls are kept.
    pub examples: usize,
    /// Whether the values of arguments are.
    pub values: bool,
}

/// Everything that is counted for one tool id of the calls.
#[derive(Default)]
pub struct Counts {
    /// Calls.
    pub calls: u64,
    refused: u64,
    results: [u64; 5],
    reasons: BTreeMap<String, u64>,
    categories: BTreeMap<(String, String), TryCategory>,
    callers: BTreeMap<Caller, TryCaller>,
    days: BTreeMap<Day, TryDay>,
    rules: BTreeMap<String, u64>,
    worst: Vec<(Rank, TryExample)>,
    outcomes: u64,
    reconstructed: u64,
    undated: u64,
    far_days: u64,
}

/// Agent, prompt version, model.
type Caller = [Option<String>; 3];
/// How bad a call is: refused, then the worst severity, then the number of differences.
type Rank = (bool, Severity, usize);

/// The pair and the calls, as they are told.
#[derive(Default)]
pub struct Told {
    /// Tool, as the old definition names it.
    pub tool: String,
    /// The old definition.
    pub old: String,
    /// The new one.
    pub new: String,
    /// Where the calls came from.
    pub source: String,
    /// The epoch.
    pub epoch: String,
    /// Calls of other tools.
    pub other_calls: u64,
    /// Calls of the tool under another contract.
    pub other_contract: u64,
    /// Repeats of a call id.
    pub repeats: u64,
    /// The output schema is another one.
    pub output_changed: bool,
    /// Records that could not be decoded.
    pub undecodable: u64,
    /// Remarks so far.
    pub notes: Vec<String>,
}

impl Counts {
    /// Counts one call.
    pub fn add(&mut self, showing: Showing, call: &CallRecord<'_>, got: &Comparison, place: &str) {
        self.calls += 1;
        if let Some(n) = self.results.get_mut(got.result as usize) {
            *n += 1;
        }
        self.outcomes += u64::from(got.evidence.outcome);
        self.reconstructed += u64::from(call.fidelity == Fidelity::Reconstructed);
        if let Some(reason) = got.reason {
            *self.reasons.entry(reason.as_str().to_owned()).or_default() += 1;
        }
        for rule in &got.rules {
            *self.rules.entry((*rule).to_owned()).or_default() += 1;
        }
        let disagreed = got.result == ComparisonResult::Disagreed;
        let refused = disagreed && got.refused();
        self.refused += u64::from(refused);
        for d in &got.discrepancies {
            self.category(d);
        }
        self.caller(call, refused, disagreed && !refused);
        let day = (call.ts != NO_TIME).then(|| call.ts.day());
        match day {
            Some(day) => self.day(day, got, refused),
            None => self.undated += 1,
        }
        if disagreed {
            self.keep_worst(showing, call, got, place, day);
        }
    }

    fn category(&mut self, d: &Discrepancy) {
        let mut key = (d.category.as_str().to_owned(), without_indices(&d.field));
        if self.categories.len() >= MAX_ROWS && !self.categories.contains_key(&key) {
            key.1 = OTHERS.to_owned();
        }
        let row = self.categories.entry(key).or_insert_with_key(|key| TryCategory {
            category: key.0.clone(),
            severity: d.severity.as_str().to_owned(),
            pointer: key.1.clone(),
            keyword: d.keyword.clone(),
            location: d.location.clone(),
            note: d.note.clone(),
            ..TryCategory::default()
        });
        row.calls += 1;
        row.refused += u64::from(d.refused);
    }

    fn caller(&mut self, call: &CallRecord<'_>, refused: bool, changed: bool) {
        let e = &call.envelope;
        let owned = |name: Option<&str>| name.map(str::to_owned);
        let mut key =
            [owned(e.agent_id.as_deref()), owned(e.prompt_version.as_deref()), owned(e.model.as_deref())];
        if key.iter().all(Option::is_none) {
            return;
        }
        if self.callers.len() >= MAX_ROWS && !self.callers.contains_key(&key) {
            key = [Some(OTHERS.to_owned()), None, None];
        }
        let row = self.callers.entry(key).or_insert_with_key(|[agent, prompt_version, model]| TryCaller {
            agent: agent.clone(),
            prompt_version: prompt_version.clone(),
            model: model.clone(),
            ..TryCaller::default()
        });
        row.calls += 1;
        row.refused += u64::from(refused);
        row.changed += u64::from(changed);
    }

    fn day(&mut self, day: Day, got: &Comparison, refused: bool) {
        if self.days.len() >= MAX_ROWS && !self.days.contains_key(&day) {
            self.far_days += 1;
            return;
        }
        let row = self.days.entry(day).or_insert(TryDay {
            day,
            compared: 0,
            disagreed: 0,
            refused: 0,
            blocks: 0,
            unresolved: 0,
        });
        let disagreed = got.result == ComparisonResult::Disagreed;
        row.compared += u64::from(disagreed || got.result == ComparisonResult::Agreed);
        row.disagreed += u64::from(disagreed);
        row.refused += u64::from(refused);
        row.blocks += u64::from(disagreed && got.severity() == Some(Severity::Block));
        row.unresolved += u64::from(got.result == ComparisonResult::Unresolved);
    }

    fn keep_worst(
        &mut self,
        showing: Showing,
        call: &CallRecord<'_>,
        got: &Comparison,
        place: &str,
        day: Option<Day>,
    ) {
        let rank = (got.refused(), got.severity().unwrap_or(Severity::Info), got.discrepancies.len());
        if self.worst.len() >= showing.examples && self.worst.last().is_none_or(|(least, _)| *least >= rank) {
            return;
        }
        let arguments = parse_call(call).ok().filter(|_| showing.values);
        let finding = |d: &Discrepancy| TryFinding {
            category: d.category.as_str().to_owned(),
            severity: d.severity.as_str().to_owned(),
            pointer: d.field.clone(),
            refused: d.refused,
            keyword: d.keyword.clone(),
            location: d.location.clone(),
            note: d.note.clone(),
            value: arguments.as_ref().and_then(|p| p.value().pointer(&d.field)).map(ToString::to_string),
        };
        let example = TryExample {
            call_id: call.call_id.to_string(),
            place: place.to_owned(),
            agent: call.envelope.agent_id.as_deref().map(str::to_owned),
            prompt_version: call.envelope.prompt_version.as_deref().map(str::to_owned),
            model: call.envelope.model.as_deref().map(str::to_owned),
            day,
            findings: got.discrepancies.iter().map(finding).collect(),
        };
        let at = self.worst.partition_point(|(other, _)| *other >= rank);
        self.worst.insert(at, (rank, example));
        self.worst.truncate(showing.examples);
    }

    /// The document.
    pub fn report(self, told: Told, plan: Option<&Plan>) -> TryReport {
        let mut notes = told.notes;
        let result = |r: ComparisonResult| self.results.get(r as usize).copied().unwrap_or(0);
        let disagreed = result(ComparisonResult::Disagreed);
        if self.calls > 0 && self.outcomes == 0 {
            notes.push(
                "arguments only: no outcome was compared, since no candidate ran these calls".to_owned(),
            );
        }
        for (n, what) in [
            (self.reconstructed, "calls have reconstructed arguments"),
            (if self.days.is_empty() { 0 } else { self.undated }, "calls carry no time and are on no day"),
            (self.far_days, "calls lie on further days than are listed"),
        ] {
            if n > 0 {
                notes.push(format!("{n} {what}"));
            }
        }
        let mut categories: Vec<TryCategory> = self.categories.into_values().collect();
        let severity = |c: &TryCategory| ["block", "warn", "info"].iter().position(|s| *s == c.severity);
        categories.sort_by(|a, b| {
            severity(a).cmp(&severity(b)).then(b.calls.cmp(&a.calls)).then(a.pointer.cmp(&b.pointer))
        });
        let mut callers: Vec<TryCaller> = self.callers.into_values().collect();
        callers.sort_by(|a, b| {
            (b.refused + b.changed).cmp(&(a.refused + a.changed)).then(b.calls.cmp(&a.calls))
        });
        let days: Vec<TryDay> = self.days.into_values().collect();
        TryReport {
            format: TRY_FORMAT,
            epoch: told.epoch,
            tool: told.tool,
            old: told.old,
            new: told.new,
            source: told.source,
            calls: self.calls,
            other_calls: told.other_calls,
            other_contract: told.other_contract,
            repeats: told.repeats,
            output_changed: told.output_changed,
            undecodable: told.undecodable,
            agreed: result(ComparisonResult::Agreed),
            disagreed,
            refused: self.refused,
            changed: disagreed - self.refused,
            both_rejected: result(ComparisonResult::BothRejected),
            excluded: result(ComparisonResult::Excluded),
            unresolved: result(ComparisonResult::Unresolved),
            reasons: self.reasons,
            categories,
            callers,
            burn_in: plan.map(|plan| burn_in(plan, &days)),
            days,
            worst: self.worst.into_iter().map(|(_, example)| example).collect(),
            rules: self.rules,
            notes,
        }
    }
}

/// A pointer with `*` for list indices, so that one cause is one row.
fn without_indices(pointer: &str) -> String {
    let token = |t: &str| {
        if !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()) { "*".to_owned() } else { t.to_owned() }
    };
    pointer.split('/').map(token).collect::<Vec<_>>().join("/")
}
