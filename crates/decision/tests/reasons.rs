//! Every reason code has a snapshot: its own text, and what a verdict that carries it says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};

use lastcall_contract::Digest;
use lastcall_decision::{
    CheckResult, DayCounts, PairFacts, Plan, PlanFacts, Problem, Question, ReasonCode, RegistrationFacts,
    Verdict, WindowInput, decide, decide_after_cutover,
};
use lastcall_event::{Day, Timestamp};

const FROM: Day = Day(20_605); // 2026-06-01

/// A window of T2 under article; each day is (compared, disagreed, blocks).
fn window(days: &[(u64, u64, u64)]) -> WindowInput {
    let plan = Plan::parse("burn_in: {tier: T2, profile: article}", "p.yaml").unwrap();
    let digest = |t: &str| Digest::of(t.as_bytes());
    let counts = |&(n, k, blocks): &(u64, u64, u64)| DayCounts {
        calls: n,
        agreed: n - k,
        disagreed: k,
        blocks,
        disagreed_by_default: k,
        blocks_by_default: blocks,
        outcomes: n,
        ..DayCounts::default()
    };
    WindowInput {
        tool_id: "refund_payment".to_owned(),
        pair: Some(PairFacts {
            current: "refund_payment@1.4.0".to_owned(),
            current_digest: digest("1"),
            candidate: "refund_payment@2.0.0".to_owned(),
            candidate_digest: digest("2"),
            config_digest: digest("{}"),
            epoch: digest("e"),
            comparator: 1,
        }),
        registration: Some(RegistrationFacts {
            seq: 4,
            at: Timestamp(FROM.start().0 - 3_600_000),
            by: Some("ana".to_owned()),
            scored_from: FROM,
            sources: vec!["calls".to_owned()],
            cohort: None,
            ended: None,
        }),
        plan: Some(PlanFacts { digest: plan.digest().unwrap(), values: plan }),
        days: days
            .iter()
            .enumerate()
            .map(|(i, d)| (FROM.plus(i32::try_from(i).unwrap()), counts(d)))
            .collect(),
        closed_through: (!days.is_empty()).then(|| FROM.plus(i32::try_from(days.len()).unwrap() - 1)),
        ..WindowInput::default()
    }
}

fn problem(result: CheckResult, reason: ReasonCode, text: &str) -> Problem {
    Problem { result, reason, text: text.to_owned(), next: Some("lastcall ledger verify DIR".to_owned()) }
}

fn scenarios() -> Vec<(&'static str, Verdict)> {
    let clean = [(500, 0, 0); 8];
    let changed = |at: usize, day: (u64, u64, u64)| {
        let mut days = clean;
        days[at] = day;
        window(&days)
    };
    let mut ended = window(&clean);
    ended.registration.as_mut().unwrap().ended = Some("the candidate changed".to_owned());
    let mut unregistered = window(&clean);
    unregistered.registration = None;
    let mut unbalanced = window(&clean);
    unbalanced.days.get_mut(&FROM).unwrap().calls = 501;
    let with = |p: Problem| {
        let mut input = window(&clean);
        input.problems = vec![p];
        input
    };
    let mut unreadable = with(problem(
        CheckResult::Error,
        ReasonCode::PlanUnreadable,
        "The plan of registration 4 is no plan of this build.",
    ));
    unreadable.plan = None;
    let altered = with(problem(
        CheckResult::Error,
        ReasonCode::RecordAltered,
        "The entry chains/calls/0/3 does not have its digest.",
    ));
    let incomplete = with(problem(
        CheckResult::Error,
        ReasonCode::RecordIncomplete,
        "The file results/a.parquet is absent.",
    ));
    let full: Vec<(u64, u64, u64)> =
        (0..28).map(|i| if i > 25 { (500, 20, 2) } else { (500, 0, 0) }).collect();
    vec![
        ("clean", decide(&window(&clean))),
        ("ceiling reached", decide(&changed(4, (500, 5, 0)))),
        ("silent counted day", decide(&changed(3, (0, 0, 0)))),
        ("silent last day", decide(&changed(7, (0, 0, 0)))),
        ("block on the last day", decide(&changed(7, (500, 1, 1)))),
        ("half of the ceiling", decide(&changed(6, (1000, 5, 0)))),
        ("too few calls", decide(&window(&[(61, 0, 0); 8]))),
        ("two days", decide(&window(&[(500, 0, 0); 2]))),
        ("no day", decide(&window(&[]))),
        ("the window is full", decide(&window(&full))),
        ("the window was ended", decide(&ended)),
        ("no plan", decide(&unregistered)),
        ("unbalanced", decide(&unbalanced)),
        ("plan unreadable", decide(&unreadable)),
        ("altered", decide(&altered)),
        ("incomplete", decide(&incomplete)),
        ("retire", decide_after_cutover(&window(&clean), Question::Retire)),
        ("delete", decide_after_cutover(&window(&clean), Question::Delete)),
    ]
}

/// Where each code occurs: scenario → the sentence and what would change it.
fn said() -> BTreeMap<ReasonCode, Vec<String>> {
    let mut out: BTreeMap<ReasonCode, Vec<String>> = BTreeMap::new();
    for (name, verdict) in scenarios() {
        for c in &verdict.checks {
            let next = c.next.as_deref().unwrap_or("–");
            let line = format!(
                "[{name}] {} {}: {}\n  value {} | threshold {}\n  next: {next}",
                c.id,
                c.result.as_str(),
                c.text,
                c.value,
                c.threshold
            );
            out.entry(c.reason).or_default().push(line);
        }
        for p in &verdict.problems {
            let next = p.next.as_deref().unwrap_or("–");
            out.entry(p.reason).or_default().push(format!(
                "[{name}] {}: {}\n  next: {next}",
                p.result.as_str(),
                p.text
            ));
        }
    }
    out
}

#[test]
fn each_reason_code_has_a_snapshot_of_its_text() {
    let said = said();
    let reached: BTreeSet<ReasonCode> = said.keys().copied().collect();
    let all: BTreeSet<ReasonCode> = ReasonCode::ALL.iter().copied().collect();
    assert_eq!(reached, all, "a code that no scenario reaches has no snapshot");
    for code in ReasonCode::ALL {
        let lines = &said[code];
        let shown = format!("{code}: {}\n\n{}\n", code.text(), lines[..lines.len().min(3)].join("\n"));
        insta::assert_snapshot!(format!("reason_{code}"), shown);
    }
}

#[test]
fn codes_are_words_of_their_own() {
    let words: BTreeSet<&str> = ReasonCode::ALL.iter().map(|c| c.as_str()).collect();
    assert_eq!(words.len(), ReasonCode::ALL.len());
    for code in ReasonCode::ALL {
        assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{code}\""));
        assert!(code.text().ends_with('.') && code.text().len() < 110, "{code}");
    }
}

#[test]
fn headlines_and_what_comes_next() {
    let lines: Vec<String> = scenarios()
        .iter()
        .map(|(name, v)| {
            let next = v.next.as_deref().unwrap_or("–");
            let earliest =
                v.window.as_ref().and_then(|w| w.earliest_ready).map_or("–".to_owned(), |d| d.to_string());
            format!("[{name}] {} {}\n  next: {next}\n  earliest: {earliest}", v.verdict, v.headline)
        })
        .collect();
    insta::assert_snapshot!("headlines", lines.join("\n"));
}

/// ERROR before NOT_READY before INSUFFICIENT before READY; READY only if every check passes.
#[test]
fn the_answer_is_the_worst_of_its_parts() {
    for (name, v) in scenarios() {
        let results: Vec<CheckResult> =
            v.checks.iter().map(|c| c.result).chain(v.problems.iter().map(|p| p.result)).collect();
        let has = |r: CheckResult| results.contains(&r);
        let wanted = if has(CheckResult::Error) {
            "ERROR"
        } else if has(CheckResult::Fail) {
            "NOT_READY"
        } else if has(CheckResult::Insufficient) || results.is_empty() {
            "INSUFFICIENT"
        } else {
            "READY"
        };
        assert_eq!(v.verdict.as_str(), wanted, "{name}");
    }
}

/// Every document fits the published schema, and a document without its verdict does not.
#[test]
fn documents_fit_the_published_schema() {
    let schema: serde_json::Value = serde_json::from_str(&Verdict::schema_text().unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, v) in scenarios() {
        let mut document = serde_json::to_value(&v).unwrap();
        let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        document.as_object_mut().unwrap().remove("verdict");
        assert!(!validator.is_valid(&document));
    }
}

/// The document round-trips and is the same bytes each time.
#[test]
fn the_document_round_trips() {
    for (name, v) in scenarios() {
        let text = serde_json::to_string(&v).unwrap();
        let back: Verdict = serde_json::from_str(&text).unwrap();
        assert_eq!(back, v, "{name}");
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }
}

/// `earliest_ready` is right: clean days appended up to it make the verdict READY, one fewer does not.
#[test]
fn the_earliest_day_is_the_earliest() {
    for (name, v) in scenarios() {
        let Some(earliest) = v.window.as_ref().and_then(|w| w.earliest_ready) else { continue };
        if !v.problems.is_empty() || v.totals.days == 0 {
            continue;
        }
        let days: Vec<(u64, u64, u64)> =
            v.days.iter().map(|d| (d.compared, d.counts.disagreed, d.counts.blocks)).collect();
        let rate = v.totals.compared / v.totals.days;
        let until = |last: Day| {
            let mut days = days.clone();
            while FROM.plus(i32::try_from(days.len()).unwrap()) <= last {
                days.push((rate, 0, 0));
            }
            decide(&window(&days)).verdict.as_str()
        };
        assert_eq!(until(earliest), "READY", "{name} on {earliest}");
        if earliest.0 >= FROM.0 + i32::try_from(days.len()).unwrap() {
            assert_ne!(until(earliest.plus(-1)), "READY", "{name} the day before {earliest}");
        }
    }
}
