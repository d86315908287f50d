//! The 40 cases of `cases/decision-cases.jsonl` under profile `article`: days, the five checks, the verdict.
//! Their expected answers come from an independent oracle; nothing here is shared with it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;

use lastcall_compare::{ComparisonResult, Evidence, Reason, Severity};
use lastcall_decision::{
    Answer, CHECK_IDS, Expectation, PairFacts, Place, Plan, PlanFacts, RegistrationFacts, Row, Tally,
    Verdict, WindowInput, closed_days, decide,
};
use lastcall_event::{Day, Fidelity, Timestamp};
use serde_json::{Value, json};

/// Cases held to be wrong, with the reason. A case stands here, marked, instead of being changed.
const HELD_TO_BE_WRONG: &[(&str, &str)] = &[];

/// One comparison, expanded from a row or a group.
#[derive(Clone)]
struct Call {
    id: String,
    day: Day,
    result: ComparisonResult,
    reason: Option<Reason>,
    severity: Option<Severity>,
    refused: bool,
}

fn cases() -> (Value, Vec<Value>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/decision-cases.jsonl");
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines =
        text.lines().filter(|l| !l.trim().is_empty()).map(|l| serde_json::from_str::<Value>(l).unwrap());
    let header = lines.next().unwrap();
    (header, lines.collect())
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn day(text: &str) -> Day {
    Day::parse(text).unwrap()
}

fn severity_of(value: &Value, result: ComparisonResult) -> Option<Severity> {
    match text(value, "severity") {
        Some("none") => None,
        Some("info") => Some(Severity::Info),
        Some("warn") => Some(Severity::Warn),
        Some("block") => Some(Severity::Block),
        Some(other) => panic!("severity {other}"),
        None => (result == ComparisonResult::Disagreed).then_some(Severity::Warn),
    }
}

fn result_of(value: &Value) -> ComparisonResult {
    ComparisonResult::parse(text(value, "result").unwrap_or("agreed")).unwrap()
}

/// A row as it stands.
fn row(value: &Value) -> Call {
    let result = result_of(value);
    Call {
        id: text(value, "call_id").unwrap().to_owned(),
        day: day(text(value, "day").unwrap()),
        result,
        reason: text(value, "reason").map(|r| Reason::parse(r).unwrap()),
        severity: severity_of(value, result),
        refused: value.get("refused").and_then(Value::as_bool).unwrap_or(false),
    }
}

/// A group: `sessions` sessions of `n` calls on each day, the first `k` of each disagreeing.
fn group(value: &Value, index: usize) -> Vec<Call> {
    let name = text(value, "name").map_or_else(|| format!("g{index}"), str::to_owned);
    let days = match value.get("days") {
        Some(days) => {
            let first = day(days[0].as_str().unwrap());
            let last = day(days[1].as_str().unwrap());
            (first.0..=last.0).map(Day).collect()
        }
        None => vec![day(text(value, "day").unwrap())],
    };
    let number = |key: &str, default: u64| value.get(key).and_then(Value::as_u64).unwrap_or(default);
    let (sessions, n, k) = (number("sessions", 1), number("n", 1), number("k", 0));
    let mut out = Vec::new();
    for day in days {
        for session in 0..sessions {
            for call in 0..n {
                let disagreed = call < k;
                let result = if disagreed { ComparisonResult::Disagreed } else { result_of(value) };
                out.push(Call {
                    id: format!("{name}/{day}/{session}/{call}"),
                    day,
                    result,
                    reason: text(value, "reason").map(|r| Reason::parse(r).unwrap()),
                    severity: disagreed.then(|| severity_of(value, result)).flatten(),
                    refused: disagreed && value.get("refused").and_then(Value::as_bool).unwrap_or(false),
                });
            }
        }
    }
    out
}

fn calls(case: &Value) -> Vec<Call> {
    let list = case["comparisons"].as_array().unwrap();
    let expand = |(i, v): (usize, &Value)| match v.get("call_id") {
        Some(_) => vec![row(v)],
        None => group(v, i),
    };
    list.iter().enumerate().flat_map(expand).collect()
}

fn key(id: &str) -> [u8; 16] {
    let digest = digest(id);
    std::array::from_fn(|i| u8::from_str_radix(&digest.hex()[2 * i..2 * i + 2], 16).unwrap())
}

fn digest(text: &str) -> lastcall_contract::Digest {
    lastcall_contract::Digest::of(text.as_bytes())
}

fn plan_of(case: &Value) -> Plan {
    let mut plan = case["plan"].clone();
    plan.as_object_mut().unwrap().insert("profile".to_owned(), json!("article"));
    // A plan file is YAML, and JSON is YAML.
    Plan::parse(&json!({ "burn_in": plan }).to_string(), "release-policy.yaml").unwrap()
}

fn judge(case: &Value, calls: &[Call]) -> Verdict {
    let plan = plan_of(case);
    let scored_from = day(text(&case["window"], "scored_from").unwrap());
    let closed_through = text(&case["window"], "closed_through").map(day);
    let mut tally = Tally::new(std::iter::empty::<Expectation>());
    for (i, call) in calls.iter().enumerate() {
        tally.add(&Row {
            place: Place { source: "s".to_owned(), partition: 0, offset: i as i64, index: 0 },
            day: call.day,
            call_key: key(&call.id),
            control: 3,
            observed: true,
            result: call.result,
            reason: call.reason,
            severity: call.severity,
            refused: call.refused,
            fidelity: Fidelity::Raw,
            evidence: Evidence { validation: true, arguments: true, outcome: true },
            discrepancies: &[],
            rules: &[],
        });
    }
    let last = closed_days(&plan, scored_from, closed_through).last().copied();
    let mut tallied = tally.finish(scored_from, last);
    if let Some(planted) = case.get("planted") {
        tallied.planted.seen = planted["seen"].as_u64().unwrap();
        tallied.planted.missed = planted["missed"].as_u64().unwrap();
    }
    decide(&WindowInput {
        tool_id: "tool".to_owned(),
        pair: Some(PairFacts {
            current: "tool@1".to_owned(),
            current_digest: digest("1"),
            candidate: "tool@2".to_owned(),
            candidate_digest: digest("2"),
            config_digest: digest("{}"),
            epoch: digest("epoch"),
            comparator: 1,
        }),
        registration: Some(RegistrationFacts {
            seq: 3,
            at: Timestamp(0),
            by: None,
            scored_from,
            sources: vec!["s".to_owned()],
            cohort: None,
            ended: None,
        }),
        plan: Some(PlanFacts { digest: plan.digest().unwrap(), values: plan }),
        days: tallied.days,
        closed_through,
        planted: tallied.planted,
        production_calls: case.get("production_calls").and_then(Value::as_u64),
        ..WindowInput::default()
    })
}

/// What the verdict says, in the shape of a case's `expect`.
fn said(verdict: &Verdict) -> Value {
    let counted: Vec<Value> = verdict
        .days
        .iter()
        .filter(|d| d.state == lastcall_decision::DayState::Counted)
        .map(|d| {
            let (n, k, u) = (d.compared, d.counts.disagreed, d.counts.unresolved);
            json!({"day": d.day.to_string(), "n": n, "k": k, "u": u})
        })
        .collect();
    let checks: BTreeMap<&str, &str> =
        verdict.checks.iter().map(|c| (c.id.as_str(), c.result.as_str())).collect();
    let total = json!({"n": verdict.totals.compared, "k": verdict.totals.counts.disagreed});
    json!({"counted": counted, "total": total, "checks": checks, "verdict": verdict.verdict.as_str()})
}

fn wanted(expect: &Value) -> Value {
    let keep = |v: &Value, keys: &[&str]| {
        let kept = keys.iter().map(|k| ((*k).to_owned(), v[*k].clone()));
        Value::Object(kept.collect())
    };
    let counted: Vec<Value> =
        expect["counted"].as_array().unwrap().iter().map(|d| keep(d, &["day", "n", "k", "u"])).collect();
    json!({
        "counted": counted,
        "total": keep(&expect["total"], &["n", "k"]),
        "checks": expect["checks"]["article"],
        "verdict": expect["verdict"]["article"],
    })
}

fn near(ours: Option<f64>, theirs: &Value) -> bool {
    match (ours, theirs.as_f64()) {
        (None, None) => theirs.is_null(),
        (Some(a), Some(b)) => (a - b).abs() < 1e-8,
        _ => false,
    }
}

#[test]
fn every_case_is_answered_as_expected() {
    let (header, cases) = cases();
    assert!(header["header"].as_str().unwrap().contains("format 1"));
    assert_eq!(cases.len(), 40);
    let mut wrong = Vec::new();
    for case in &cases {
        let id = text(case, "id").unwrap();
        let verdict = judge(case, &calls(case));
        let expect = &case["expect"];
        let (ours, theirs) = (said(&verdict), wanted(expect));
        let counted = verdict.days.iter().filter(|d| d.state == lastcall_decision::DayState::Counted);
        let rates = counted.zip(expect["counted"].as_array().unwrap()).all(|(d, e)| near(d.d, &e["d"]));
        let rates = rates && near(verdict.totals.d, &expect["total"]["d"]);
        let ids: Vec<&str> = verdict.checks.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids, CHECK_IDS, "{id}");
        let agrees = ours == theirs && rates;
        match HELD_TO_BE_WRONG.iter().find(|(held, _)| *held == id) {
            Some((_, reason)) => assert!(!agrees, "{id} is held to be wrong ({reason}), and yet it agrees"),
            None if !agrees => wrong.push(format!("{id}:\n  ours   {ours}\n  wanted {theirs}")),
            None => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// The order in which rows are read, and repeats of them, change nothing but the count of duplicates.
#[test]
fn order_and_repeats_do_not_matter() {
    let (_, cases) = cases();
    for case in cases.iter().filter(|c| {
        ["d02-ceiling-exactly-b", "d13-worked-window-block", "d23-worse-repeat"]
            .contains(&text(c, "id").unwrap())
    }) {
        let calls = calls(case);
        let once = judge(case, &calls);
        let mut twice: Vec<Call> = calls.iter().rev().cloned().collect();
        twice.extend(calls.iter().step_by(7).cloned());
        let again = judge(case, &twice);
        assert_eq!(said(&once), said(&again));
        let repeats = calls.len().div_ceil(7) as u64;
        assert_eq!(again.totals.counts.duplicate, once.totals.counts.duplicate + repeats);
        assert_eq!(again.totals.counts.calls, again.totals.counts.accounted());
    }
}

/// Both readings of the article's worked example, with its figures.
#[test]
fn the_worked_example_in_both_readings() {
    let (_, cases) = cases();
    let find = |id: &str| cases.iter().find(|c| text(c, "id") == Some(id)).unwrap();

    let by_day = judge(find("d11-worked-day"), &calls(find("d11-worked-day")));
    assert_eq!(by_day.verdict, Answer::NotReady);
    assert_eq!((by_day.totals.compared, by_day.totals.counts.disagreed), (40_000, 2_430));
    assert_eq!(by_day.totals.d, Some(0.06075));
    let ceiling = by_day.check("ceiling").unwrap();
    assert_eq!(ceiling.value, "3.850 % on 2026-06-08 (110 of 2,857)");
    assert_eq!(ceiling.threshold, "< 1 %");
    let last = by_day.days.last().unwrap();
    assert_eq!((last.counts.disagreed, last.d), (30, Some(0.01050053)));
    let counts: Vec<u64> = by_day.days.iter().map(|d| d.counts.disagreed).collect();
    assert_eq!(counts, [410, 380, 350, 300, 220, 180, 140, 110, 90, 70, 60, 50, 40, 30]);

    let by_window = judge(find("d12-worked-window"), &calls(find("d12-worked-window")));
    assert_eq!(by_window.verdict, Answer::Ready);
    assert_eq!(by_window.check("ceiling").unwrap().threshold, "< 400 (1 % of 40,000)");
    assert_eq!(by_window.check("ceiling").unwrap().value, "110 on 2026-06-08");
    assert_eq!(by_window.check("decay").unwrap().threshold, "< 200 (0.5 % of 40,000)");
    assert_eq!(by_window.check("decay").unwrap().value, "50 on 2026-06-12");

    let blocked = judge(find("d13-worked-window-block"), &calls(find("d13-worked-window-block")));
    assert_eq!(blocked.verdict, Answer::NotReady);
    let failing: Vec<&str> =
        blocked.checks.iter().filter(|c| c.result.as_str() == "fail").map(|c| c.id.as_str()).collect();
    assert_eq!(failing, ["final_block_free"]);
}

/// A plan that this build cannot judge is refused, and so is what no profile but article allows.
#[test]
fn strict_plans_are_refused() {
    let (_, cases) = cases();
    for case in &cases {
        let mut plan = case["plan"].clone();
        plan.as_object_mut().unwrap().insert("profile".to_owned(), json!("strict"));
        let refused = Plan::parse(&json!({ "burn_in": plan }).to_string(), "p.yaml").unwrap_err();
        assert!(refused.message.contains("profile: article"), "{refused}");
        let by_window = case["plan"].get("ceiling_basis").is_some();
        assert_eq!(refused.message.contains("ceiling_basis"), by_window, "{refused}");
        if case["expect"]["verdict"]["strict"] == "REFUSED" {
            assert!(by_window);
        }
    }
}
