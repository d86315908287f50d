//! From a window's facts to its verdict. Pure: plain data in, the document out.

use std::collections::BTreeMap;

use lastcall_event::Day;

use crate::plan::{Plan, Profile};
use crate::ratio::{grouped, percent_of, rate_of};
use crate::reason::ReasonCode;
use crate::rule::{Judged, ScoredDay, five_checks};
use crate::tally::{CategoryFacts, DayCounts, Outside, PlantedFacts};
use crate::verdict::{
    Answer, Check, CheckResult, DayLine, DayState, EarlierWindow, EvidenceCounts, Flag, PairFacts, PlanFacts,
    Problem, Question, RegistrationFacts, Sensitivity, Tail, Totals, VERDICT_FORMAT, Verdict, Window,
};

/// Everything that a verdict rests on, as plain data. Whoever fills it (the ledger's reader, a simulation, a test)
/// gets the same answer for the same facts.
#[derive(Clone, Debug, Default)]
pub struct WindowInput {
    /// Tool.
    pub tool_id: String,
    /// The pair; `None`: none is observed.
    pub pair: Option<PairFacts>,
    /// The registration; `None`: nothing is scored.
    pub registration: Option<RegistrationFacts>,
    /// The registered plan; `None`: see `problems`.
    pub plan: Option<PlanFacts>,
    /// Counts of the window's days on which a call lies, closed or not, and of those close behind it; without a
    /// registration of every day.
    pub days: BTreeMap<Day, DayCounts>,
    /// Calls of other days that were recorded while the window stood.
    pub outside: Outside,
    /// Every scored day up to this one is closed.
    pub closed_through: Option<Day>,
    /// Why the next one is not.
    pub open_because: Option<String>,
    /// Categories over the closed scored days.
    pub categories: Vec<CategoryFacts>,
    /// Normalization rules over the closed scored days.
    pub normalization: BTreeMap<String, u64>,
    /// Planted faults.
    pub planted: PlantedFacts,
    /// Calls that production made on the closed scored days, where that is known.
    pub production_calls: Option<u64>,
    /// Earlier registrations.
    pub earlier_windows: Vec<EarlierWindow>,
    /// The chains that were read.
    pub tails: Vec<Tail>,
    /// The ledger takes its time from its input.
    pub simulated: bool,
    /// Calls that were recorded when their day was closed already; they count on their own day.
    pub late: u64,
    /// What was wrong with the record.
    pub problems: Vec<Problem>,
}

/// Days behind a window's last scored day that a verdict still lists.
pub const DAYS_BEYOND: i32 = 7;

/// The closed scored days of a window, the first to the last, silent ones with zero counts.
pub fn closed_days(plan: &Plan, scored_from: Day, closed_through: Option<Day>) -> Vec<Day> {
    let to = scored_from.plus(i32::try_from(plan.max_scored_days).unwrap_or(i32::MAX) - 1);
    let Some(last) = closed_through.map(|c| c.min(to)) else { return Vec::new() };
    (scored_from.0..=last.0).map(Day).collect()
}

/// Answers `cutover`: may new calls go to the candidate?
pub fn decide(input: &WindowInput) -> Verdict {
    let mut out = blank(input, Question::Cutover);
    let (Some(registration), Some(plan)) = (&input.registration, &input.plan) else {
        if input.registration.is_none() {
            out.problems.push(not_registered(&input.tool_id));
        }
        return conclude(out);
    };
    let plan = &plan.values;
    let closed = closed_days(plan, registration.scored_from, input.closed_through);
    let counts = |day: &Day| input.days.get(day).cloned().unwrap_or_default();
    let scored: Vec<ScoredDay> = closed.iter().map(|d| scored_day(*d, &counts(d))).collect();
    let judged = Judged { plan, days: &scored, scored_from: registration.scored_from };

    out.problems.extend(unbalanced(&input.days));
    if let Some(why) = &registration.ended {
        out.problems.push(Problem {
            result: CheckResult::Insufficient,
            reason: ReasonCode::WindowEnded,
            text: format!("The window of registration {} was ended: {why}.", registration.seq),
            next: Some(format!("register again: lastcall plan register {} …", input.tool_id)),
        });
    }
    out.checks = five_checks(&judged);
    out.window = Some(Window {
        scored_from: registration.scored_from,
        scored_to: judged.scored_to(),
        closed_through: closed.last().copied(),
        counted_from: judged.counted().first().map(|d| d.day),
        open_because: input.open_because.clone(),
        earliest_ready: judged.earliest_ready(),
    });
    fill_days(&mut out, input, &judged, &closed);
    fill_sensitivity(&mut out, input, &judged);
    out.flags = flags(&out);
    conclude(out)
}

/// Answers `retire` or `delete`: INSUFFICIENT, with what is missing. Dependents are not reported to this build.
pub fn decide_after_cutover(input: &WindowInput, question: Question) -> Verdict {
    let mut out = blank(input, question);
    out.flags = flags(&out);
    let missing = |id: &str, reason: ReasonCode, what: &str, next: &str| Check {
        id: id.to_owned(),
        result: CheckResult::Insufficient,
        reason,
        value: "not recorded".to_owned(),
        threshold: what.to_owned(),
        formula: "an entry of the control chain".to_owned(),
        text: reason.text().to_owned(),
        next: Some(next.to_owned()),
    };
    let later = "this build records neither cutovers nor dependents; until one does, keep the old version";
    out.checks.push(missing(
        "cutover",
        ReasonCode::CutoverMissing,
        "the cutover, and its confirmation closed",
        later,
    ));
    out.checks.push(missing(
        "dependents",
        ReasonCode::DependentsUnknown,
        "no run, checkpoint, queue, archive or adapter use of the old contract; a restore drill that did not find it",
        "runs, checkpoints, delayed and dead-letter queues and adapter uses have to be reported",
    ));
    if question == Question::Delete {
        out.checks.push(missing(
            "retired",
            ReasonCode::RetirementMissing,
            "retired, out of provider requests, and one rollback window passed",
            later,
        ));
    }
    conclude(out)
}

fn blank(input: &WindowInput, question: Question) -> Verdict {
    Verdict {
        format: VERDICT_FORMAT,
        tool_id: input.tool_id.clone(),
        question,
        verdict: Answer::Error,
        profile: input.plan.as_ref().map_or(Profile::Article, |p| p.values.profile),
        headline: String::new(),
        flags: Vec::new(),
        next: None,
        checks: Vec::new(),
        problems: input.problems.clone(),
        pair: input.pair.clone(),
        registration: input.registration.clone(),
        plan: input.plan.clone(),
        window: None,
        totals: totals(&[], input),
        days: Vec::new(),
        calls_outside: 0,
        production_calls: input.production_calls,
        categories: input.categories.clone(),
        normalization: input.normalization.clone(),
        evidence: EvidenceCounts::default(),
        sensitivity: Vec::new(),
        planted: input.planted.clone(),
        earlier_windows: input.earlier_windows.clone(),
        tails: input.tails.clone(),
        simulated: input.simulated,
        late: input.late,
        not_claimed: not_claimed(question),
        recompute: format!(
            "lastcall decide {} --ledger DIR --for {} --dry-run --format json",
            input.tool_id,
            question.as_str()
        ),
    }
}

fn not_registered(tool: &str) -> Problem {
    Problem {
        result: CheckResult::Insufficient,
        reason: ReasonCode::NotRegistered,
        text: format!("No plan is registered for `{tool}`, so nothing is scored."),
        next: Some(format!("lastcall plan register {tool} --policy release-policy.yaml --ledger DIR")),
    }
}

fn scored_day(day: Day, c: &DayCounts) -> ScoredDay {
    ScoredDay { day, n: c.compared(), k: c.disagreed, u: c.unresolved, blocks: c.blocks }
}

/// Days whose calls are not the sum of their results (invariant 3).
fn unbalanced(days: &BTreeMap<Day, DayCounts>) -> Vec<Problem> {
    let wrong = days.iter().filter(|(_, c)| c.calls != c.accounted() || c.blocks > c.disagreed);
    wrong
        .map(|(day, c)| Problem {
            result: CheckResult::Error,
            reason: ReasonCode::Unbalanced,
            text: format!("{day} has {} calls, and its results sum to {}.", c.calls, c.accounted()),
            next: Some("lastcall ledger verify DIR".to_owned()),
        })
        .collect()
}

fn totals(closed: &[Day], input: &WindowInput) -> Totals {
    let mut counts = DayCounts::default();
    for day in closed {
        if let Some(c) = input.days.get(day) {
            counts.add(c);
        }
    }
    let n = counts.compared();
    Totals {
        days: closed.len() as u64,
        compared: n,
        d: rate_of(counts.disagreed, n),
        d_worst: rate_of(counts.disagreed + counts.unresolved, n + counts.unresolved),
        counts,
    }
}

fn fill_days(out: &mut Verdict, input: &WindowInput, judged: &Judged<'_>, closed: &[Day]) {
    out.totals = totals(closed, input);
    out.evidence = EvidenceCounts {
        compared: out.totals.compared,
        outcome: out.totals.counts.outcomes,
        reconstructed: out.totals.counts.reconstructed,
    };
    let from = judged.scored_from;
    let counted_from = judged.counted().first().map(|d| d.day);
    let last_call = input.days.keys().next_back().copied().max(input.outside.last);
    // Days far beyond the window are counted, not listed.
    let until = closed.last().copied().max(last_call).map(|d| d.min(judged.scored_to().plus(DAYS_BEYOND)));
    for day in (from.0..=until.map_or(from.0 - 1, |d| d.0)).map(Day) {
        let counts = input.days.get(&day).cloned().unwrap_or_default();
        let state = match day {
            d if d > judged.scored_to() => DayState::Beyond,
            d if closed.last().is_none_or(|last| d > *last) => DayState::Open,
            d if counted_from.is_some_and(|c| d >= c) => DayState::Counted,
            _ => DayState::Scored,
        };
        if state == DayState::Beyond && counts.calls == 0 {
            continue;
        }
        let n = counts.compared();
        out.days.push(DayLine {
            day,
            state,
            compared: n,
            d: rate_of(counts.disagreed, n),
            d_worst: rate_of(counts.disagreed + counts.unresolved, n + counts.unresolved),
            counts,
        });
    }
    let inside = |d: &Day| *d >= from && *d <= judged.scored_to();
    let near: u64 = input.days.iter().filter(|(d, _)| !inside(d)).map(|(_, c)| c.calls).sum();
    out.calls_outside = near.saturating_add(input.outside.calls);
}

/// The verdict under other readings of the same days: the checks again, on other counts.
fn fill_sensitivity(out: &mut Verdict, input: &WindowInput, judged: &Judged<'_>) {
    let mut again = |id: &str, text: &str, change: &dyn Fn(&DayCounts, ScoredDay) -> ScoredDay| {
        let days: Vec<ScoredDay> =
            judged.days.iter().map(|d| input.days.get(&d.day).map_or(*d, |c| change(c, *d))).collect();
        if days == judged.days {
            return;
        }
        let checks = five_checks(&Judged { plan: judged.plan, days: &days, scored_from: judged.scored_from });
        let verdict = answer(&checks, &out.problems);
        out.sensitivity.push(Sensitivity { id: id.to_owned(), text: text.to_owned(), verdict });
    };
    again("d_worst", "every unresolved call counted as a disagreement", &|c, d| ScoredDay {
        n: d.n + c.unresolved,
        k: d.k + c.unresolved,
        ..d
    });
    again(
        "without_normalization",
        "every call that agrees only after a normalization rule counted as a disagreement",
        &|c, d| ScoredDay { k: d.k + c.agreed_by_rule, ..d },
    );
    again("default_map", "every category at its default severity", &|c, d| ScoredDay {
        k: c.disagreed_by_default,
        blocks: c.blocks_by_default,
        ..d
    });
}

/// ERROR before NOT_READY before INSUFFICIENT before READY.
fn answer(checks: &[Check], problems: &[Problem]) -> Answer {
    let results: Vec<CheckResult> =
        checks.iter().map(|c| c.result).chain(problems.iter().map(|p| p.result)).collect();
    if results.contains(&CheckResult::Error) {
        Answer::Error
    } else if results.contains(&CheckResult::Fail) {
        Answer::NotReady
    } else if results.is_empty() || results.iter().any(|r| *r != CheckResult::Pass) {
        Answer::Insufficient
    } else {
        Answer::Ready
    }
}

fn flags(out: &Verdict) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut flag = |id: &str, text: String| flags.push(Flag { id: id.to_owned(), text });
    if out.simulated {
        flag("simulated", "SIMULATED".to_owned());
    }
    let n = out.totals.compared;
    if n > 0 && out.evidence.outcome == 0 {
        flag("arguments_only", "arguments only".to_owned());
    }
    if out.evidence.reconstructed > 0 {
        let share = percent_of(out.evidence.reconstructed, n);
        flag("reconstructed", format!("{share} of the compared calls rebuilt from another form"));
    }
    if out.totals.counts.unresolved > 0 {
        flag("unresolved", format!("{} unresolved", grouped(out.totals.counts.unresolved)));
    }
    if out.late > 0 {
        flag("late", format!("{} late", grouped(out.late)));
    }
    if out.planted.missed > 0 {
        flag(
            "planted_missed",
            format!("{} of {} planted faults missed", out.planted.missed, out.planted.seen),
        );
    }
    if let Some(s) = out.sensitivity.iter().find(|s| s.id == "default_map") {
        flag("map_lowered", format!("own severity map; {} under the defaults", s.verdict));
    }
    flags
}

fn conclude(mut out: Verdict) -> Verdict {
    if out.flags.is_empty() {
        out.flags = flags(&out); // an answer without a window or with an error is marked too
    }
    out.verdict = answer(&out.checks, &out.problems);
    let wanted = match out.verdict {
        Answer::Error => CheckResult::Error,
        Answer::NotReady => CheckResult::Fail,
        _ => CheckResult::Insufficient,
    };
    let problem = out.problems.iter().find(|p| p.result == wanted);
    let check = out.leading_check();
    let what = problem.map(|p| p.text.clone()).or_else(|| check.map(|c| c.text.clone())).unwrap_or_default();
    let candidate = out.pair.as_ref().map_or("the candidate", |p| p.candidate.as_str());
    let headline = match (out.verdict, out.question) {
        (Answer::Ready, _) => format!(
            "{candidate} may take over: all {} checks pass, over {} and {}.",
            out.checks.len(),
            counted_of(out.totals.days, "closed day"),
            counted_of(out.totals.compared, "compared call"),
        ),
        (Answer::NotReady, _) => format!("{candidate} must not take over yet. {}", what),
        (Answer::Insufficient, Question::Cutover) => {
            format!("Nobody can say yet whether {candidate} may take over. {}", what)
        }
        (Answer::Insufficient, _) => format!("Nobody can say yet. {}", what),
        (Answer::Error, _) => format!("No verdict could be computed. {}", what),
    };
    let next = problem
        .and_then(|p| p.next.clone())
        .or_else(|| check.and_then(|c| c.next.as_ref().map(|n| format!("{}: {n}", c.id))));
    out.headline = headline;
    out.next = next;
    out
}

fn counted_of(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

fn not_claimed(question: Question) -> Vec<String> {
    let mut out = vec![
        "That tomorrow's calls will be like these: a new agent, prompt, model or season can send others.",
        "Anything about arguments, values and branches that no call of the window touched.",
        "That the true rate is below the ceiling: profile article compares counts, and bounds neither the chance of a \
         lucky run nor how looking again every day adds to it.",
        "That either contract is right: a disagreement says that they differ, not which one is wrong.",
        "That the model would call the candidate alike: these calls were made from the current contract's text.",
    ];
    if question == Question::Cutover {
        out.push("That the old version may be switched off: runs, checkpoints and queues may still come back with it.");
    }
    out.into_iter().map(str::to_owned).collect()
}
