//! The comparison of one call, in the order of comparison.md section 8: parse, fidelity, candidate not observed,
//! validator gave up, number precision, acceptance; then arguments and outcome.

use std::collections::BTreeMap;

use lastcall_contract::is_precise;
use lastcall_diff::{escape, join, tokens};
use lastcall_event::{CallRecord, Candidate, CandidateInput, Fidelity, Status, Suppression};
use serde_json::Value;

use crate::arguments::ArgumentComparison;
use crate::category::{Category, Severity};
use crate::declared::{Found, conjuncts_default, search};
use crate::exposure::exposure;
use crate::literal::Literal;
use crate::outcome::{Depth, Ended, broken_output, compare_outcomes, optional_key};
use crate::pair::PreparedPair;
use crate::parse::{Parsed, parse_arguments};
use crate::refusal::{Cause, Complaint, Judgement, judge_input, judge_value};
use crate::side::{Side, names_null, requires};
use crate::types::{Comparison, ComparisonResult, Discrepancy, Evidence, Reason};

/// The arguments of a call, parsed once for all its pairs.
pub type ParsedCall<'a> = Result<Parsed<'a>, Reason>;

/// Parses a call's arguments: the exact string where there is one, else the value's text.
///
/// # Errors
/// The reason why they are no argument object.
pub fn parse_call<'a>(call: &'a CallRecord<'_>) -> ParsedCall<'a> {
    parse_arguments(argument_text(call))
}

fn argument_text<'a>(call: &'a CallRecord<'_>) -> &'a str {
    match &call.arguments_text {
        Some(text) => text,
        None => call.arguments.get().unwrap_or_default(),
    }
}

/// What one call shows under one pair. Total, deterministic.
pub fn compare(pair: &PreparedPair, call: &CallRecord<'_>) -> Comparison {
    compare_parsed(pair, call, &parse_call(call))
}

/// As [`compare`], with arguments that were parsed before.
pub fn compare_parsed(pair: &PreparedPair, call: &CallRecord<'_>, parsed: &ParsedCall<'_>) -> Comparison {
    let parsed = match parsed {
        Ok(parsed) => parsed,
        // `arguments` is null then, which is no object
        Err(_) if call.fidelity == Fidelity::NotCaptured => {
            return ended(ComparisonResult::Unresolved, Reason::NotCaptured, Evidence::default());
        }
        Err(reason) => {
            let refused = call.outcome.status == Status::InvalidArguments;
            let result = if refused { ComparisonResult::BothRejected } else { ComparisonResult::Unresolved };
            return ended(result, *reason, Evidence::default());
        }
    };
    if call.fidelity == Fidelity::Normalized {
        return ended(ComparisonResult::Unresolved, Reason::Normalized, Evidence::default());
    }
    if call.fidelity == Fidelity::NotCaptured {
        return ended(ComparisonResult::Unresolved, Reason::NotCaptured, Evidence::default());
    }
    if call.contract_is_unknown() {
        return ended(ComparisonResult::Unresolved, Reason::ContractUnknown, Evidence::default());
    }
    let row = call.candidates.iter().find(|c| *c.contract_id == *pair.candidate.id);
    if row.is_none() && (call.mirrored || !call.candidates.is_empty()) {
        return ended(ComparisonResult::Unresolved, Reason::NoCandidate, Evidence::default());
    }
    if let Some((result, reason)) = row.and_then(not_observed) {
        return ended(result, reason, Evidence::default());
    }
    Work { pair, call, parsed, row, adapted: None }.run()
}

fn ended(result: ComparisonResult, reason: Reason, evidence: Evidence) -> Comparison {
    Comparison {
        result,
        reason: Some(reason),
        discrepancies: Vec::new(),
        evidence,
        rules: Vec::new(),
        touched: Vec::new(),
        disagreed_at: Vec::new(),
    }
}

fn not_observed(candidate: &Candidate<'_>) -> Option<(ComparisonResult, Reason)> {
    let unresolved = |reason| Some((ComparisonResult::Unresolved, reason));
    match candidate.status {
        Status::TimedOut => unresolved(Reason::TimedOut),
        Status::Shed => unresolved(Reason::Shed),
        Status::Unavailable => unresolved(Reason::Unavailable),
        Status::RateLimited => unresolved(Reason::RateLimited),
        Status::Timeout => unresolved(Reason::Timeout),
        Status::SampledOut => Some((ComparisonResult::Excluded, Reason::SampledOut)),
        _ => None,
    }
}

struct Work<'w, 'c> {
    pair: &'w PreparedPair,
    call: &'w CallRecord<'c>,
    parsed: &'w Parsed<'w>,
    row: Option<&'w Candidate<'c>>,
    /// What the adapter made of the arguments, parsed.
    adapted: Option<Parsed<'w>>,
}

/// A difference before the severity map.
struct Finding {
    field: String,
    category: Category,
    refused: bool,
    keyword: Option<String>,
    location: Option<String>,
    note: Option<String>,
}

impl Finding {
    fn plain(field: String, category: Category) -> Self {
        Self { field, category, refused: false, keyword: None, location: None, note: None }
    }
}

impl<'w> Work<'w, '_> {
    fn run(mut self) -> Comparison {
        let mut findings = Vec::new();
        if let Some(row) = self.row.filter(|r| r.input == CandidateInput::Adapted)
            && let Some(done) = self.adapt(row, &mut findings)
        {
            return done;
        }
        let evidence = Evidence { validation: true, ..Evidence::default() };
        let (old, new) = (&self.pair.current, &self.pair.candidate);
        let current = judge_input(old, self.parsed);
        let mut candidate = judge_input(new, self.adapted.as_ref().unwrap_or(self.parsed));
        if matches!(current, Judgement::Undecided) || matches!(candidate, Judgement::Undecided) {
            return ended(ComparisonResult::Unresolved, Reason::Undecided, evidence);
        }
        let inexact = self.adapted.as_ref().map_or(self.parsed.inexact, |p| p.inexact || self.parsed.inexact);
        if inexact && self.imprecise_where_it_matters() {
            return ended(ComparisonResult::Unresolved, Reason::NumberPrecision, evidence);
        }
        let mut rules = Vec::new();
        if matches!(candidate, Judgement::Refused(_))
            && let Some(folded) = self.folded(self.input())
        {
            // judged anew, so that a union is explained by the branch that the folded value fits
            candidate = judge_value(new, &folded);
            rules.push("enum_case");
        }
        let own = complaints(current);
        let theirs = complaints(candidate);

        let outcome = &self.call.outcome;
        let executed = outcome.status != Status::InvalidArguments && outcome.was_executed();
        let current_accepts = executed || (outcome.status != Status::InvalidArguments && own.is_empty());
        let (candidate_ran, candidate_refused_by_run) = self.candidate_ran();
        let candidate_accepts = !candidate_refused_by_run && (candidate_ran || theirs.is_empty());
        let unenforced = executed && !own.is_empty();

        match (current_accepts, candidate_accepts) {
            (false, false) => {
                return Comparison {
                    reason: None,
                    ..ended(ComparisonResult::BothRejected, Reason::Widened, evidence)
                };
            }
            (false, true) => return ended(ComparisonResult::Excluded, Reason::Widened, evidence),
            (true, false) => {
                if unenforced
                    && !candidate_refused_by_run
                    && theirs.iter().all(|c| own.iter().any(|o| o.same_as(c)))
                {
                    return ended(ComparisonResult::BothRejected, Reason::BothUnenforced, evidence);
                }
                self.refused(&own, &theirs, unenforced, candidate_refused_by_run, &mut findings);
            }
            (true, true) => {
                let found = self.searched();
                for item in &found {
                    match item {
                        Found::NullDefault => rules.push("absent_is_null"),
                        // what the candidate reports that it used says more
                        Found::Filled { field }
                            if self.row.is_none_or(|row| row.arguments.get().is_none()) =>
                        {
                            findings.push(Finding::plain(field.clone(), Category::ArgumentAdded));
                        }
                        _ => {}
                    }
                }
                self.resolve(found, Vec::new(), &mut findings);
                if candidate_ran {
                    for complaint in theirs.iter().filter(|c| !own.iter().any(|o| o.same_as(c))) {
                        findings.push(Finding {
                            keyword: Some(complaint.keyword.clone()),
                            location: Some(complaint.location.clone()),
                            ..Finding::plain(complaint.field.clone(), Category::SchemaRuntimeMismatch)
                        });
                    }
                }
            }
        }
        let mut evidence = evidence;
        let both_accept = current_accepts && candidate_accepts;
        if both_accept && self.adapted.is_none() {
            match self.row.and_then(|row| row.arguments.get()) {
                Some(theirs) => {
                    evidence.arguments = true;
                    self.arguments(theirs, &mut findings, &mut rules);
                }
                None => self.by_declaration(&mut findings),
            }
        }
        if both_accept && let Some(row) = self.row {
            match self.outcome(row, &mut findings, &mut evidence) {
                Ok(()) => {}
                Err(reason) => return ended(ComparisonResult::Excluded, reason, evidence),
            }
        }
        self.finish(findings, rules, evidence)
    }

    /// Whether the candidate ran the call under suppression, and whether it ran and refused.
    fn candidate_ran(&self) -> (bool, bool) {
        let Some(row) = self.row else { return (false, false) };
        let can_run = !matches!(row.suppression, Suppression::Stub | Suppression::NotExecuted);
        let executed = row.executed.unwrap_or(matches!(row.status, Status::Ok | Status::BusinessError));
        let refused = can_run && row.status == Status::InvalidArguments;
        (can_run && executed && !refused, refused)
    }

    // ---- refusals -------------------------------------------------------------------------------------------

    fn refused(
        &self,
        own: &[Complaint],
        theirs: &[Complaint],
        unenforced: bool,
        by_run: bool,
        findings: &mut Vec<Finding>,
    ) {
        if theirs.is_empty() {
            findings.push(Finding {
                refused: true,
                ..Finding::plain(String::new(), Category::SchemaRuntimeMismatch)
            });
            let found = self.searched();
            self.resolve(found, Vec::new(), findings);
            return;
        }
        let mut by_field: BTreeMap<&str, Vec<&Complaint>> = BTreeMap::new();
        for complaint in theirs {
            let shared = unenforced && own.iter().any(|o| o.same_as(complaint));
            if !shared || by_run {
                by_field.entry(&complaint.field).or_default().push(complaint);
            }
        }
        let mut refusals = Vec::new();
        for (field, mut list) in by_field {
            list.sort_by_key(|c| c.cause);
            let Some(first) = list.first() else { continue };
            let there = unenforced && (by_run || own.iter().any(|o| o.field == field));
            let category = if there { Category::UnenforcedRefused } else { self.category(first) };
            refusals.push(Finding {
                refused: true,
                keyword: Some(first.keyword.clone()),
                location: Some(first.location.clone()),
                ..Finding::plain(field.to_owned(), category)
            });
        }
        let found = self.searched();
        self.resolve(found, refusals, findings);
    }

    fn category(&self, complaint: &Complaint) -> Category {
        let value = self.input().pointer(&complaint.field);
        match complaint.cause {
            Cause::Missing => {
                let (new, path) = (&self.pair.candidate, tokens(&complaint.field).collect::<Vec<_>>());
                let nullable = path.split_last().is_some_and(|(last, up)| {
                    let parent = new.at(self.input(), up);
                    let nodes = new.member(&parent, last);
                    names_null(&new.doc, &nodes)
                });
                if nullable { Category::RequiredNullableAdded } else { Category::RequiredAdded }
            }
            Cause::Closed => match self.current_declares(&complaint.field) {
                Some(true) => Category::RequiredRemoved,
                Some(false) => Category::OptionalRefused,
                None => Category::UndeclaredRefused,
            },
            Cause::Type if value == Some(&Value::Null) => Category::NullRefused,
            Cause::Type => Category::TypeChanged,
            Cause::Enum => {
                let folded = value.and_then(Value::as_str).map(str::to_lowercase);
                let other_case = folded.is_some_and(|v| {
                    complaint.allowed.iter().filter_map(Value::as_str).any(|a| a.to_lowercase() == v)
                });
                match value {
                    Some(Value::Null) => Category::NullRefused,
                    _ if other_case => Category::EnumCaseChanged,
                    _ => Category::EnumValueRemoved,
                }
            }
            Cause::Range => Category::RangeTightened,
            Cause::Combination => Category::CombinationRefused,
            Cause::Other => Category::RefusedOther,
        }
    }

    fn input(&self) -> &Value {
        self.adapted.as_ref().unwrap_or(self.parsed).value()
    }

    /// Whether current declares the argument at this pointer, and requires it.
    fn current_declares(&self, field: &str) -> Option<bool> {
        let path: Vec<String> = tokens(field).collect();
        let (last, up) = path.split_last()?;
        let current = &self.pair.current;
        let nodes = current.at(self.parsed.value(), up);
        current.declares(&nodes, last).then(|| requires(&nodes, last))
    }

    /// The input with the letter case that the candidate lists, where folding is declared; `None`: nothing folds.
    fn folded(&self, input: &Value) -> Option<Value> {
        let folding = &self.pair.normalization.enum_case;
        if folding.is_empty() {
            return None;
        }
        let mut out = input.clone();
        let mut changed = false;
        strings_of(input, "", &mut |pointer, text| {
            if !folding.has(pointer) {
                return;
            }
            let path: Vec<String> = tokens(pointer).collect();
            let nodes = self.pair.candidate.anything_at(input, &path);
            let listed = nodes.iter().filter_map(|n| n.get("enum")?.as_array()).flatten();
            let allowed: Vec<&str> =
                listed.chain(nodes.iter().filter_map(|n| n.get("const"))).filter_map(Value::as_str).collect();
            let lower = text.to_lowercase();
            let fit = allowed.iter().find(|a| a.to_lowercase() == lower).filter(|_| !allowed.contains(&text));
            if let (Some(fit), Some(place)) = (fit, out.pointer_mut(pointer)) {
                *place = Value::from(*fit);
                changed = true;
            }
        });
        changed.then_some(out)
    }

    // ---- removed, renamed, lost, re-defaulted ---------------------------------------------------------------

    /// An adapter's mapping is what moved the arguments: nothing is searched behind it.
    fn searched(&self) -> Vec<Found> {
        if self.adapted.is_some() || !self.pair.searches {
            return Vec::new();
        }
        search(self.pair, self.parsed.value())
    }

    /// One cause, one discrepancy: joins what the search found with what the schema refused.
    fn resolve(&self, found: Vec<Found>, mut refusals: Vec<Finding>, findings: &mut Vec<Finding>) {
        // a closed object hides from the search only what the walk could not reach
        let mut gone: Vec<(String, bool, bool)> = Vec::new();
        for item in found {
            match item {
                Found::Gone { field, required, was_default } => gone.push((field, required, was_default)),
                Found::Default { field } => {
                    if !refusals.iter().any(|r| r.field == field) {
                        findings.push(Finding::plain(field, Category::DefaultChanged));
                    }
                }
                Found::Filled { .. } | Found::NullDefault => {} // say what an accepted call is taken for
            }
        }
        for refusal in &refusals {
            let closed = matches!(refusal.category, Category::RequiredRemoved | Category::OptionalRefused);
            if closed && !gone.iter().any(|(field, ..)| *field == refusal.field) {
                gone.push((refusal.field.clone(), refusal.category == Category::RequiredRemoved, false));
            }
        }
        for (field, required, was_default) in gone {
            let below = |r: &Finding| {
                let whole = matches!(
                    r.category,
                    Category::TypeChanged
                        | Category::NullRefused
                        | Category::EnumValueRemoved
                        | Category::EnumCaseChanged
                        | Category::RequiredRemoved
                        | Category::OptionalRefused
                        | Category::UndeclaredRefused
                );
                whole && field.strip_prefix(r.field.as_str()).is_some_and(|rest| rest.starts_with('/'))
            };
            if refusals.iter().any(below) {
                continue; // its parent is refused as a whole: one cause
            }
            let closed = refusals.iter().position(|r| r.field == field);
            let rename = self.rename_of(&field);
            let missing = rename.as_ref().and_then(|(to, _)| {
                refusals.iter().position(|r| {
                    r.field == *to
                        && matches!(r.category, Category::RequiredAdded | Category::RequiredNullableAdded)
                })
            });
            let refused = closed.is_some() || missing.is_some();
            let note = |to: &str, evidence: Option<&str>| {
                Some(match evidence {
                    None => format!("renamed to {to}"),
                    Some(evidence) => format!("likely renamed to {to}: equal schema, {evidence}"),
                })
            };
            match rename {
                Some((to, evidence)) if required || evidence.is_none() => {
                    let category =
                        if required { Category::RequiredRenamed } else { Category::OptionalRenamed };
                    let cause = closed.or(missing).and_then(|i| refusals.get(i));
                    let (keyword, location) =
                        cause.map_or((None, None), |c| (c.keyword.clone(), c.location.clone()));
                    findings.push(Finding {
                        refused,
                        keyword,
                        location,
                        note: note(&to, evidence),
                        ..Finding::plain(field.clone(), category)
                    });
                    refusals.retain(|r| r.field != field && !(missing.is_some() && r.field == to));
                }
                Some((to, evidence)) => match closed.and_then(|i| refusals.get_mut(i)) {
                    Some(refusal) => refusal.note = note(&to, evidence),
                    None => findings.push(Finding {
                        note: note(&to, evidence),
                        ..Finding::plain(field, Category::OptionalRenamed)
                    }),
                },
                None if closed.is_some() => {}
                None => {
                    let category = match (required, was_default) {
                        (true, _) => Category::RequiredRemoved,
                        (false, true) => Category::OptionalRemoved,
                        (false, false) => Category::OptionalValueLost,
                    };
                    findings.push(Finding::plain(field, category));
                }
            }
        }
        findings.append(&mut refusals);
    }

    /// Where the argument lives now, if a rename says so and the call does not carry the new name; and the evidence of
    /// a rename that is not declared.
    fn rename_of(&self, field: &str) -> Option<(String, Option<&'static str>)> {
        self.pair.renames.iter().find(|r| r.from.matches(field)).and_then(|r| {
            let to = r.to.fill(field);
            self.parsed.value().pointer(&to).is_none().then_some((to, r.evidence))
        })
    }

    // ---- arguments and outcome ------------------------------------------------------------------------------

    /// What the candidate says that it used.
    fn arguments(&self, theirs: &str, findings: &mut Vec<Finding>, rules: &mut Vec<&'static str>) {
        let ours = argument_text(self.call);
        if ours == theirs && self.pair.normalization.units.is_empty() {
            return;
        }
        let (Some(a), Some(b)) = (Literal::parse(ours), Literal::parse(theirs)) else {
            findings.push(Finding::plain(String::new(), Category::ArgumentChanged));
            return;
        };
        let mut explained: Vec<String> = findings
            .iter()
            .filter(|f| f.category != Category::DefaultChanged)
            .map(|f| f.field.clone())
            .collect();
        let (mut moved, mut lost) = (Vec::new(), Vec::new());
        for finding in findings.iter() {
            match finding.category {
                // a rename explains the move, not another value
                Category::OptionalRenamed | Category::RequiredRenamed => {
                    let Some((to, _)) = self.rename_of(&finding.field) else { continue };
                    match (a.at(&finding.field), b.at(&to), b.at(&finding.field)) {
                        (Some(ours), Some(theirs), _) => {
                            moved.push((ours, theirs, finding.field.clone(), to.clone()))
                        }
                        (Some(_), None, None) => lost.push((to.clone(), Category::ArgumentDropped)),
                        _ => {}
                    }
                    explained.push(to);
                }
                // another default explains that default, not another value
                Category::DefaultChanged => {
                    let path: Vec<String> = tokens(&finding.field).collect();
                    let new = &self.pair.candidate;
                    let default = conjuncts_default(&new.doc, &new.at(self.parsed.value(), &path))
                        .map(Value::to_string);
                    let default = default.as_deref().and_then(Literal::parse);
                    if default.is_some_and(|d| b.at(&finding.field).is_some_and(|v| v.same(&d))) {
                        explained.push(finding.field.clone());
                    }
                }
                _ => {}
            }
        }
        let mut comparison = ArgumentComparison::new(self.pair, self.parsed.value(), &explained);
        comparison.compare(&a, &b);
        for (ours, theirs, from, to) in moved {
            comparison.moved(ours, theirs, &from, &to);
        }
        let ArgumentComparison { found, rules: used, .. } = comparison;
        findings
            .extend(lost.into_iter().chain(found).map(|(field, category)| Finding::plain(field, category)));
        rules.extend(used);
    }

    /// What is known of the candidate's arguments without a report: its input, read in its units.
    fn by_declaration(&self, findings: &mut Vec<Finding>) {
        if self.pair.normalization.units.is_empty() {
            return;
        }
        let Some(ours) = Literal::parse(argument_text(self.call)) else { return };
        let explained: Vec<String> = findings.iter().map(|f| f.field.clone()).collect();
        let mut comparison = ArgumentComparison::new(self.pair, self.parsed.value(), &explained);
        comparison.units(&ours, &ours, "");
        let found = comparison.found.into_iter();
        findings.extend(found.map(|(field, category)| Finding {
            note: Some("the candidate counts in another unit".to_owned()),
            ..Finding::plain(field, category)
        }));
    }

    fn outcome(
        &self,
        row: &Candidate<'_>,
        findings: &mut Vec<Finding>,
        evidence: &mut Evidence,
    ) -> Result<(), Reason> {
        let depth = match row.suppression {
            Suppression::Replica | Suppression::Snapshot => Depth::Full,
            Suppression::DryRun | Suppression::Sandbox => Depth::Status,
            Suppression::Stub | Suppression::NotExecuted => return Ok(()),
        };
        if row.status == Status::NotRun {
            return Ok(());
        }
        let production = Ended::of_production(&self.call.outcome);
        let candidate = Ended::of_candidate(row);
        let mut base = production;
        if let Some(rerun) = self.call.current_rerun.as_ref().filter(|r| not_observed(r).is_none()) {
            let again = Ended::of_candidate(rerun);
            let noise = compare_outcomes(production, again, Depth::Full);
            if noise.iter().any(|(_, c)| c.default_severity() > Severity::Info) {
                return Err(Reason::Unstable);
            }
            base = again;
        }
        evidence.outcome = base.status != Status::Unknown && candidate.status != Status::Unknown;
        let mut named = Vec::new();
        for (field, category) in compare_outcomes(base, candidate, depth) {
            let category = match category {
                Category::OutcomeKeyRemoved if optional_key(&self.pair.current, &field) => {
                    Category::OutcomeOptionalKeyRemoved
                }
                other => other,
            };
            named.push(field.clone());
            findings.push(Finding::plain(field, category));
        }
        for (field, keyword, location) in broken_output(&self.pair.candidate, candidate) {
            // in a list of objects the other categories name /key, as if the union of its elements were one object
            let of_union = tokens(&field).skip(1).map(|t| format!("/{}", escape(&t))).collect::<String>();
            let in_list = field.split('/').nth(1).is_some_and(|t| t.parse::<usize>().is_ok());
            let is_named = named.contains(&field) || (in_list && named.contains(&of_union));
            if !is_named {
                findings.push(Finding {
                    keyword: Some(keyword),
                    location: Some(location),
                    ..Finding::plain(field, Category::OutputSchemaBroken)
                });
            }
        }
        Ok(())
    }

    // ---- adapters -------------------------------------------------------------------------------------------

    /// With `input: adapted` the candidate's arguments are what the adapter made.
    fn adapt(&mut self, row: &'w Candidate<'_>, findings: &mut Vec<Finding>) -> Option<Comparison> {
        let failed = |this: &Self| {
            let finding = Finding { refused: true, ..Finding::plain(String::new(), Category::AdapterFailed) };
            Some(this.finish(vec![finding], Vec::new(), Evidence { validation: true, ..Evidence::default() }))
        };
        let made = row.arguments.get();
        let Some(made) = made.filter(|_| row.error_class.as_deref() != Some("adapter_failed")) else {
            return failed(self);
        };
        let Ok(adapted) = parse_arguments(made) else { return failed(self) };
        let map = self.pair.adapter.clone().unwrap_or_default();
        let (Some(mut expected), Some(theirs)) =
            (Literal::parse(argument_text(self.call)), Literal::parse(made))
        else {
            return failed(self);
        };
        for drop in &map.drop {
            if expected.take(&drop.field).is_some() {
                let category = if drop.lossy { Category::AdapterLossy } else { Category::AdapterFailed };
                findings.push(Finding::plain(drop.field.clone(), category));
            }
        }
        let mut origin: BTreeMap<&str, &str> = BTreeMap::new();
        for rename in &map.rename {
            if let Some(value) = expected.take(&rename.from) {
                expected.put(&rename.to, value);
                origin.insert(&rename.to, &rename.from);
            }
        }
        for (pointer, table) in &map.enums {
            let now = match expected.at(pointer) {
                Some(Literal::Text(text)) => table.get(text.as_ref()),
                _ => None,
            };
            if let Some(now) = now {
                expected.put(pointer, Literal::Text(now.as_str().into()));
            }
        }
        let mut lost = Vec::new();
        missing_leaves(&expected, Some(&theirs), "", &mut lost);
        for field in lost {
            let from = origin.iter().find_map(|(to, from)| {
                let rest = field.strip_prefix(to)?;
                (rest.is_empty() || rest.starts_with('/')).then(|| format!("{from}{rest}"))
            });
            findings.push(Finding::plain(from.unwrap_or(field), Category::AdapterFailed));
        }
        self.adapted = Some(adapted);
        None
    }

    // ---- number precision -----------------------------------------------------------------------------------

    /// A literal that is not its double's shortest decimal, at a place where a numeric keyword, enum or const applies.
    fn imprecise_where_it_matters(&self) -> bool {
        let mut places = Vec::new();
        let mut texts = vec![argument_text(self.call)];
        texts.extend(self.row.filter(|_| self.adapted.is_some()).and_then(|r| r.arguments.get()));
        for text in texts {
            match Literal::parse(text) {
                Some(tree) => imprecise_places(&tree, "", &mut places),
                None => return true,
            }
        }
        places.iter().any(|at| {
            let path: Vec<String> = tokens(at).collect();
            let asks = |side: &Side, value: &Value| {
                (0..=path.len()).any(|n| {
                    let Some(up) = path.get(..n) else { return false };
                    let nodes = side.anything_at(value, up);
                    let keys: &[&str] = if n == path.len() {
                        &[
                            "minimum",
                            "maximum",
                            "exclusiveMinimum",
                            "exclusiveMaximum",
                            "multipleOf",
                            "enum",
                            "const",
                        ]
                    } else {
                        &["enum", "const", "uniqueItems"]
                    };
                    nodes.iter().any(|node| keys.iter().any(|k| node.get(*k).is_some()))
                })
            };
            asks(&self.pair.current, self.parsed.value()) || asks(&self.pair.candidate, self.input())
        })
    }

    // ---- the end --------------------------------------------------------------------------------------------

    fn finish(&self, findings: Vec<Finding>, rules: Vec<&'static str>, evidence: Evidence) -> Comparison {
        let mut discrepancies: Vec<Discrepancy> = findings
            .into_iter()
            .map(|f| Discrepancy {
                severity: self.pair.severity(f.category, &f.field, f.refused, self.call.ts),
                field: f.field,
                category: f.category,
                refused: f.refused,
                keyword: f.keyword.filter(|k| !k.is_empty()),
                location: f.location,
                note: f.note,
            })
            .collect();
        discrepancies.sort();
        discrepancies.dedup_by(|a, b| a.field == b.field && a.category == b.category);
        let disagreed = discrepancies.iter().any(|d| d.severity >= Severity::Warn);
        let (touched, disagreed_at) = exposure(self.pair, &self.parsed.tree, &discrepancies);
        let mut rules = rules;
        rules.sort_unstable();
        rules.dedup();
        Comparison {
            result: if disagreed { ComparisonResult::Disagreed } else { ComparisonResult::Agreed },
            reason: None,
            discrepancies,
            evidence,
            rules,
            touched,
            disagreed_at,
        }
    }
}

/// Calls `see` with each string and its pointer.
fn strings_of(value: &Value, pointer: &str, see: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => see(pointer, text),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, v)| strings_of(v, &join(pointer, &i.to_string()), see));
        }
        Value::Object(members) => members.iter().for_each(|(k, v)| strings_of(v, &join(pointer, k), see)),
        _ => {}
    }
}

/// Pointers of what `expected` has and `got` lacks or has otherwise; lists as a whole.
fn missing_leaves(expected: &Literal<'_>, got: Option<&Literal<'_>>, pointer: &str, out: &mut Vec<String>) {
    match (expected, got) {
        (Literal::Object(x), Some(Literal::Object(y))) => {
            x.iter().for_each(|(k, v)| missing_leaves(v, y.get(k), &join(pointer, k), out));
        }
        (_, Some(got)) if expected.same(got) => {}
        _ => out.push(pointer.to_owned()),
    }
}

fn imprecise_places(tree: &Literal<'_>, pointer: &str, out: &mut Vec<String>) {
    match tree {
        Literal::Number(literal) if !is_precise(literal) => out.push(pointer.to_owned()),
        Literal::List(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(i, v)| imprecise_places(v, &join(pointer, &i.to_string()), out));
        }
        Literal::Object(members) => {
            members.iter().for_each(|(k, v)| imprecise_places(v, &join(pointer, k), out));
        }
        _ => {}
    }
}

fn complaints(judgement: Judgement) -> Vec<Complaint> {
    match judgement {
        Judgement::Refused(list) => list,
        Judgement::Accepted | Judgement::Undecided => Vec::new(),
    }
}
