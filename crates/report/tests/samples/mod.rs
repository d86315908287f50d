//! Verdicts that pages, Markdown and JUnit are tried on.

#![allow(dead_code)]

use std::collections::BTreeMap;

use lastcall_contract::Digest;
use lastcall_decision::{
    CategoryFacts, CheckResult, DailyCategories, DayCounts, EarlierWindow, Example, FieldCount, History,
    PairFacts, PastWindow, Place, Plan, PlanFacts, PlantedFacts, Problem, ReasonCode, RegistrationFacts,
    Tail, Verdict, WindowInput, decide,
};
use lastcall_event::{Day, Timestamp};

pub const FROM: Day = Day(20_605); // 2026-06-01

pub fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// (agreed, disagreed, blocks, unresolved) a day.
pub fn input(tool: &str, days: &[(u64, u64, u64, u64)], closed: usize) -> WindowInput {
    let plan = Plan::parse("burn_in: {tier: T2, profile: article}", "p.yaml").unwrap();
    let counts = |&(agreed, k, blocks, u): &(u64, u64, u64, u64)| DayCounts {
        calls: agreed + k + u + 3,
        agreed,
        disagreed: k,
        unresolved: u,
        duplicate: 3,
        blocks,
        refused: blocks,
        disagreed_by_default: k,
        blocks_by_default: blocks,
        outcomes: agreed / 2,
        ..DayCounts::default()
    };
    WindowInput {
        tool_id: tool.to_owned(),
        pair: Some(PairFacts {
            current: format!("{tool}@1.4.0"),
            current_digest: digest("1"),
            candidate: format!("{tool}@2.0.0"),
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
            .map(|(i, d)| (FROM.plus(i as i32), counts(d)))
            .filter(|(_, c)| c.calls > 3)
            .collect(),
        closed_through: closed.checked_sub(1).map(|n| FROM.plus(n as i32)),
        planted: PlantedFacts { committed: 3, seen: 3, ..PlantedFacts::default() },
        tails: vec![
            Tail { chain: "control".to_owned(), seq: 9, digest: digest("c") },
            Tail { chain: "calls/0".to_owned(), seq: 61, digest: digest("p") },
        ],
        ..WindowInput::default()
    }
}

pub fn category(
    name: &str,
    counts: (u64, u64, u64),
    refused: u64,
    pointer: &str,
    keyword: &str,
) -> CategoryFacts {
    let (block, warn, info) = counts;
    CategoryFacts {
        category: name.to_owned(),
        block,
        warn,
        info,
        refused,
        first_seen: FROM.plus(1),
        last_seen: FROM.plus(12),
        fields: vec![FieldCount { pointer: pointer.to_owned(), calls: block + warn + info }],
        distinct_fields: 1,
        example: Example {
            pointer: pointer.to_owned(),
            keyword: Some(keyword.to_owned()),
            location: Some(format!("/inputSchema/properties{pointer}/{keyword}")),
            note: None,
            day: FROM.plus(1),
            place: Place { source: "calls".to_owned(), partition: 0, offset: 48_213, index: 0 },
            value: None,
        },
    }
}

pub fn ready() -> WindowInput {
    let days: Vec<(u64, u64, u64, u64)> = [9, 7, 6, 4, 3, 3, 2, 2, 1, 2, 1, 1, 0, 1]
        .iter()
        .enumerate()
        .map(|(i, k)| (880 + 23 * (i as u64 % 5), *k, 0, 2))
        .collect();
    let mut out = input("search_policy", &days, 14);
    out.categories = vec![
        category("default_changed", (0, 31, 0), 0, "/limit", "default"),
        category("optional_removed", (0, 0, 118), 0, "/verbose", "properties"),
    ];
    by_day(&mut out);
    out.normalization = BTreeMap::from([("number".to_owned(), 412), ("whitespace".to_owned(), 38)]);
    out
}

pub fn not_ready() -> WindowInput {
    let days = [
        (391, 22, 20, 0),
        (402, 19, 18, 0),
        (388, 25, 21, 1),
        (410, 20, 17, 0),
        (397, 18, 18, 0),
        (0, 0, 0, 0),
        (405, 24, 21, 0),
        (399, 21, 19, 3),
        (412, 17, 15, 0),
        (380, 26, 24, 0),
        (404, 20, 18, 0),
        (393, 23, 22, 0),
        (409, 18, 16, 0),
        (398, 21, 19, 0),
        (120, 8, 7, 0),
    ];
    let mut out = input("refund_payment", &days, 14);
    out.categories = vec![
        category("required_added", (171, 0, 0), 171, "/reason_code", "required"),
        category("enum_value_removed", (96, 0, 0), 96, "/method", "enum"),
        category("range_tightened", (0, 12, 0), 12, "/note", "maxLength"),
        category("outcome_key_added", (0, 0, 240), 0, "/receipt_url", ""),
    ];
    by_day(&mut out);
    out.simulated = true;
    out.planted.missed = 1;
    out.earlier_windows = vec![EarlierWindow {
        registration: 2,
        candidate: "refund_payment@2.0.0-rc1".to_owned(),
        scored_from: FROM.plus(-20),
        plan: digest("p1"),
        ended: "the candidate changed".to_owned(),
        verdict: Some("NOT_READY".to_owned()),
    }];
    out
}

pub fn insufficient() -> WindowInput {
    let days = [
        (3, 0, 0, 0),
        (5, 0, 0, 0),
        (0, 0, 0, 0),
        (4, 0, 0, 0),
        (6, 0, 0, 0),
        (2, 0, 0, 0),
        (3, 0, 0, 1),
        (4, 0, 0, 0),
        (5, 0, 0, 0),
        (1, 0, 0, 0),
    ];
    let mut out = input("send_sms", &days, 9);
    for c in out.days.values_mut() {
        c.outcomes = 0;
    }
    out.open_because = Some("calls/0 is read through 2026-06-10T09:00:00.000Z".to_owned());
    out
}

pub fn error() -> WindowInput {
    let mut out = ready();
    out.tool_id = "orders.create".to_owned();
    let pair = out.pair.as_mut().unwrap();
    (pair.current, pair.candidate) = ("orders.create@1.4.0".to_owned(), "orders.create@2.0.0".to_owned());
    out.problems = vec![Problem {
        result: CheckResult::Error,
        reason: ReasonCode::RecordAltered,
        text: "The entry chains/calls/0/00000000000000000061.json is not the one that its successor names."
            .to_owned(),
        next: Some("lastcall ledger verify DIR".to_owned()),
    }];
    out
}

pub fn empty() -> WindowInput {
    let mut out = input("close_account", &[], 0);
    out.planted = PlantedFacts::default();
    out
}

/// Spreads the calls of each category over its days, the same way every time.
pub fn by_day(input: &mut WindowInput) {
    let mut out = DailyCategories::new();
    let days: Vec<Day> = input.days.keys().copied().collect();
    for (c, facts) in input.categories.iter().enumerate() {
        for (severity, n) in [("block", facts.block), ("warn", facts.warn), ("info", facts.info)] {
            let last = (days.len() as u64).min(n);
            for (i, day) in days.iter().enumerate().take(last as usize) {
                let share = (n / last).saturating_sub((i as u64 + c as u64) % 3).max(1);
                let found = out.entry(*day).or_default();
                found.insert(format!("{}/{severity}", facts.category), share);
            }
        }
    }
    input.daily_categories = out;
}

/// A window before `input`'s with its own candidate.
pub fn past(input: &WindowInput, candidate: &str, from: Day, days: &[(u64, u64, u64, u64)]) -> PastWindow {
    let mut before = self::input(&input.tool_id, days, days.len());
    before.days = before.days.into_iter().map(|(day, c)| (from.plus(day.0 - FROM.0), c)).collect();
    before.closed_through = Some(from.plus(days.len() as i32 - 1));
    before.pair.as_mut().unwrap().candidate = candidate.to_owned();
    let r = before.registration.as_mut().unwrap();
    (r.seq, r.scored_from) = (2, from);
    PastWindow {
        registration: 2,
        ended_on: Some(from.plus(days.len() as i32 - 1)),
        last: Some(decide(&before)),
    }
}

/// What stands beside the verdict on these facts.
pub fn history(input: &WindowInput) -> History {
    let mut history = History { categories: input.daily_categories.clone(), past: Vec::new() };
    if let Some(w) = input.earlier_windows.first() {
        let days: Vec<(u64, u64, u64, u64)> =
            (0..9).map(|i| (300 + 7 * i, 30 - 2 * i, 28 - 2 * i, 0)).collect();
        history.past.push(past(input, &w.candidate, w.scored_from, &days));
    }
    history
}

/// Forty tools in every state, some younger than others.
pub fn forty() -> Vec<WindowInput> {
    let names = ["orders", "refunds", "search", "calendar", "crm", "files", "mail", "billing"];
    let verbs = ["lookup", "create", "update", "cancel", "list"];
    let mut out = Vec::new();
    for (i, (name, verb)) in names.iter().flat_map(|n| verbs.iter().map(move |v| (n, v))).enumerate() {
        let i = i as u64;
        let n = 9 + i * 7 % 20;
        let days: Vec<(u64, u64, u64, u64)> = (0..n)
            .map(|d| {
                let calls = 90 + (i * 131 + d * 17) % 900;
                let bad = match i % 6 {
                    0 => calls / 40 + d % 3,
                    1 => (n - d) * calls / 2000,
                    2 => 0,
                    3 => u64::from(d % 5 == 0),
                    4 => calls * 3 / 400,
                    _ => (n - d) / 4,
                };
                if i % 7 == 3 && d % 4 == 1 {
                    (0, 0, 0, 0)
                } else {
                    (calls, bad, bad / 2, u64::from(d % 9 == 0))
                }
            })
            .collect();
        let mut one = input(&format!("{name}.{verb}"), &days, n as usize - usize::from(i % 4 == 0));
        let back = FROM.plus(20 - n as i32);
        one.days = one.days.into_iter().map(|(d, c)| (back.plus(d.0 - FROM.0), c)).collect();
        one.closed_through = one.closed_through.map(|d| back.plus(d.0 - FROM.0));
        one.registration.as_mut().unwrap().scored_from = back;
        if i == 17 {
            one.problems = error().problems;
        }
        if i == 23 {
            (one.registration, one.plan) = (None, None);
        }
        out.push(one);
    }
    out
}

/// The inputs by name.
pub fn inputs() -> Vec<(&'static str, WindowInput)> {
    vec![
        ("ready", ready()),
        ("not-ready", not_ready()),
        ("insufficient", insufficient()),
        ("error", error()),
        ("empty", empty()),
    ]
}

/// The verdicts by name.
pub fn samples() -> Vec<(&'static str, Verdict)> {
    inputs().iter().map(|(name, input)| (*name, decide(input))).collect()
}

pub const HOSTILE: &str = "</title><script>alert(1)</script>\"'&\u{1b}[31m\u{202e}";

pub fn hostile() -> WindowInput {
    let mut out = not_ready();
    out.tool_id = HOSTILE.to_owned();
    let pair = out.pair.as_mut().unwrap();
    pair.current = HOSTILE.to_owned();
    pair.candidate = HOSTILE.to_owned();
    let r = out.registration.as_mut().unwrap();
    r.by = Some(HOSTILE.to_owned());
    r.cohort = Some(HOSTILE.to_owned());
    r.sources = vec![HOSTILE.to_owned()];
    r.ended = Some(HOSTILE.to_owned());
    for c in &mut out.categories {
        c.category = HOSTILE.to_owned();
        c.example.pointer = HOSTILE.to_owned();
        c.example.keyword = Some(HOSTILE.to_owned());
        c.example.location = Some(HOSTILE.to_owned());
        c.example.note = Some(HOSTILE.to_owned());
        c.example.value = Some(HOSTILE.to_owned());
        c.example.place.source = HOSTILE.to_owned();
        c.fields[0].pointer = HOSTILE.to_owned();
    }
    by_day(&mut out);
    out.normalization = BTreeMap::from([(HOSTILE.to_owned(), 1)]);
    out.earlier_windows[0].ended = HOSTILE.to_owned();
    out.earlier_windows[0].verdict = Some(HOSTILE.to_owned());
    out.tails[0].chain = HOSTILE.to_owned();
    out.planted.missed_as = BTreeMap::from([(HOSTILE.to_owned(), 1)]);
    out.problems = vec![Problem {
        result: CheckResult::Error,
        reason: ReasonCode::RecordAltered,
        text: HOSTILE.to_owned(),
        next: Some(HOSTILE.to_owned()),
    }];
    out
}
