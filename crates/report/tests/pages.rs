//! The pages and texts: everything that a reader needs is there, nothing is loaded, nothing from a record runs.
//!
//! `REPORT_SAMPLES=folder cargo test -p lastcall-report` writes the sample pages, to be looked at.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;

use lastcall_contract::Digest;
use lastcall_decision::{
    CategoryFacts, CheckResult, DayCounts, EarlierWindow, Example, FieldCount, PairFacts, Place, Plan,
    PlanFacts, PlantedFacts, Problem, ReasonCode, RegistrationFacts, Tail, Verdict, WindowInput, decide,
};
use lastcall_event::{Day, Timestamp};
use lastcall_report::{
    Style, TRY_FORMAT, TryCaller, TryCategory, TryDay, TryExample, TryFinding, TryReport, burn_in,
    fleet_page, fleet_text, to_json, try_page, try_text, verdict_page, verdict_text,
};

const FROM: Day = Day(20_605); // 2026-06-01

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// (agreed, disagreed, blocks, unresolved) a day.
fn input(tool: &str, days: &[(u64, u64, u64, u64)], closed: usize) -> WindowInput {
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

fn category(
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

fn ready() -> WindowInput {
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
    out.normalization = BTreeMap::from([("number".to_owned(), 412), ("whitespace".to_owned(), 38)]);
    out
}

fn not_ready() -> WindowInput {
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

fn insufficient() -> WindowInput {
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

fn error() -> WindowInput {
    let mut out = ready();
    out.tool_id = "orders.create".to_owned();
    out.problems = vec![Problem {
        result: CheckResult::Error,
        reason: ReasonCode::RecordAltered,
        text: "The entry chains/calls/0/00000000000000000061.json is not the one that its successor names."
            .to_owned(),
        next: Some("lastcall ledger verify DIR".to_owned()),
    }];
    out
}

fn empty() -> WindowInput {
    let mut out = input("close_account", &[], 0);
    out.planted = PlantedFacts::default();
    out
}

fn trial() -> TryReport {
    let days =
        vec![TryDay { day: FROM, compared: 494, disagreed: 60, refused: 52, blocks: 49, unresolved: 8 }];
    let plan = Plan::parse("burn_in: {tier: T3, profile: article}", "p.yaml").unwrap();
    TryReport {
        format: TRY_FORMAT,
        tool: "refund_payment".to_owned(),
        old: "refund_payment@1.4.0".to_owned(),
        new: "refund_payment@2.0.0".to_owned(),
        source: "calls.jsonl".to_owned(),
        calls: 1000,
        other_calls: 12,
        agreed: 871,
        disagreed: 117,
        refused: 103,
        changed: 14,
        both_rejected: 4,
        unresolved: 8,
        reasons: BTreeMap::from([("not_json".to_owned(), 8)]),
        categories: vec![
            TryCategory {
                category: "required_added".to_owned(),
                severity: "block".to_owned(),
                pointer: "/reason_code".to_owned(),
                keyword: Some("required".to_owned()),
                location: Some("/inputSchema/required".to_owned()),
                calls: 71,
                refused: 71,
                ..TryCategory::default()
            },
            TryCategory {
                category: "optional_renamed".to_owned(),
                severity: "warn".to_owned(),
                pointer: "/memo".to_owned(),
                note: Some("likely `note` now".to_owned()),
                calls: 14,
                ..TryCategory::default()
            },
        ],
        callers: vec![TryCaller {
            agent: Some("support-bot".to_owned()),
            prompt_version: Some("p7".to_owned()),
            calls: 800,
            refused: 97,
            changed: 14,
            ..TryCaller::default()
        }],
        days: days.clone(),
        worst: vec![TryExample {
            call_id: "call_01".to_owned(),
            place: "calls.jsonl:17".to_owned(),
            agent: Some("support-bot".to_owned()),
            day: Some(FROM),
            findings: vec![TryFinding {
                category: "required_added".to_owned(),
                severity: "block".to_owned(),
                pointer: "/reason_code".to_owned(),
                refused: true,
                ..TryFinding::default()
            }],
            ..TryExample::default()
        }],
        burn_in: Some(burn_in(&plan, &days)),
        notes: vec!["arguments only".to_owned()],
        ..TryReport::default()
    }
}

fn samples() -> Vec<(&'static str, Verdict)> {
    vec![
        ("ready", decide(&ready())),
        ("not-ready", decide(&not_ready())),
        ("insufficient", decide(&insufficient())),
        ("error", decide(&error())),
        ("empty", decide(&empty())),
    ]
}

fn pages() -> Vec<(String, String)> {
    let verdicts: Vec<Verdict> = samples().into_iter().map(|(_, v)| v).collect();
    let mut out: Vec<(String, String)> =
        samples().iter().map(|(name, v)| ((*name).to_owned(), verdict_page(v))).collect();
    out.push(("fleet".to_owned(), fleet_page("Five tools", &verdicts)));
    out.push(("fleet-empty".to_owned(), fleet_page("No tools", &[])));
    out.push(("try".to_owned(), try_page(&trial())));
    out.push(("try-empty".to_owned(), try_page(&TryReport::default())));
    out
}

#[test]
fn samples_answer_as_their_names_say() {
    let said: Vec<&str> = samples().iter().map(|(_, v)| v.verdict.as_str()).collect();
    assert_eq!(said, ["READY", "NOT_READY", "INSUFFICIENT", "ERROR", "INSUFFICIENT"]);
}

#[test]
fn pages_load_nothing_and_run_nothing() {
    for (name, page) in pages() {
        if let Some(folder) = std::env::var_os("REPORT_SAMPLES") {
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.html")), &page).unwrap();
        }
        for wrong in [
            "<script",
            "<link",
            "<img",
            "<iframe",
            "<object",
            "src=",
            "http:",
            "https:",
            "@import",
            "javascript:",
        ] {
            assert!(!page.contains(wrong), "{name} has {wrong}");
        }
        assert!(
            !page.contains("url(") || page.matches("url(").count() == page.matches("url(#").count(),
            "{name}"
        );
        assert!(page.contains("default-src 'none'"), "{name}");
        assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{name}");
        let hrefs =
            page.match_indices("href=\"").map(|(i, _)| &page[i + 6..]).all(|rest| rest.starts_with('#'));
        assert!(hrefs, "{name} links outside");
    }
}

#[test]
fn every_chart_has_a_title_a_description_and_a_table_beside_it() {
    for (name, v) in samples().iter().filter(|(n, _)| *n != "empty") {
        let page = verdict_page(v);
        let charts = page.matches("<svg viewBox").count();
        assert_eq!(charts, 1, "{name}");
        assert!(page.contains("role=\"img\" aria-labelledby=\"v-t v-d\""), "{name}");
        assert!(page.contains("<title id=\"v-t\">") && page.contains("<desc id=\"v-d\">"), "{name}");
        for day in &v.days {
            assert!(page.contains(&format!("<td class=\"nowrap\">{}</td>", day.day)), "{name} {}", day.day);
        }
    }
}

#[test]
fn ids_of_a_fleet_page_are_unique_and_its_links_lead_somewhere() {
    let verdicts: Vec<Verdict> = samples().into_iter().map(|(_, v)| v).collect();
    let page = fleet_page("Five tools", &verdicts);
    let ids: Vec<&str> =
        page.match_indices(" id=\"").map(|(i, _)| page[i + 5..].split('"').next().unwrap()).collect();
    let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(ids.len(), unique.len());
    for (i, _) in page.match_indices("href=\"#") {
        let target = page[i + 7..].split('"').next().unwrap();
        assert!(ids.contains(&target), "{target}");
    }
}

const HOSTILE: &str = "</title><script>alert(1)</script>\"'&\u{1b}[31m";

fn hostile() -> WindowInput {
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

#[test]
fn whatever_a_record_says_stays_text() {
    let v = decide(&hostile());
    for page in [verdict_page(&v), fleet_page(HOSTILE, std::slice::from_ref(&v))] {
        assert!(!page.contains("<script"), "unescaped");
        assert!(page.contains("&lt;script&gt;"));
    }
    let mut t = trial();
    t.tool = HOSTILE.to_owned();
    t.old = HOSTILE.to_owned();
    t.source = HOSTILE.to_owned();
    t.notes = vec![HOSTILE.to_owned()];
    let burn_in = t.burn_in.as_mut().unwrap();
    burn_in.says = HOSTILE.to_owned();
    burn_in.checks[0].value = HOSTILE.to_owned();
    t.worst[0].findings[0].value = Some(HOSTILE.to_owned());
    t.worst[0].findings[0].severity = HOSTILE.to_owned();
    t.categories[0].note = Some(HOSTILE.to_owned());
    t.categories[0].severity = HOSTILE.to_owned();
    t.callers[0].agent = Some(HOSTILE.to_owned());
    t.callers[0].prompt_version = Some(HOSTILE.to_owned());
    t.worst[0].model = Some(HOSTILE.to_owned());
    assert!(!try_page(&t).contains("<script"));
    for text in [
        verdict_text(&v, true, Style::default()),
        fleet_text(&[v], Style::default()),
        try_text(&t, Style::default()),
    ] {
        assert!(!text.contains('\u{1b}'), "an escape code reached the terminal");
    }
}

#[test]
fn text_is_short_unless_asked() {
    for (name, v) in samples() {
        let short = verdict_text(&v, false, Style::default());
        assert!(short.lines().count() <= 14, "{name}:\n{short}");
        let long = verdict_text(&v, true, Style::default());
        assert!(long.starts_with(short.lines().next().unwrap()));
        for needed in ["Checks", "Days (UTC)", "Not claimed", "Compute it again"] {
            assert!(long.contains(needed), "{name} lacks {needed}");
        }
        insta::assert_snapshot!(format!("text_{name}"), short);
    }
    insta::assert_snapshot!(
        "text_not-ready_explained",
        verdict_text(&decide(&not_ready()), true, Style::default())
    );
    let verdicts: Vec<Verdict> = samples().into_iter().map(|(_, v)| v).collect();
    insta::assert_snapshot!("fleet", fleet_text(&verdicts, Style::default()));
    insta::assert_snapshot!("try", try_text(&trial(), Style::default()));
}

#[test]
fn colour_only_adds_escape_codes() {
    let v = decide(&not_ready());
    let plain = verdict_text(&v, true, Style::default());
    let mut colored = verdict_text(&v, true, Style { color: true });
    assert!(colored.contains('\u{1b}'));
    while let Some(start) = colored.find('\u{1b}') {
        let end = colored[start..].find('m').unwrap();
        colored.replace_range(start..=start + end, "");
    }
    assert_eq!(colored, plain);
}

#[test]
fn values_are_shown_only_where_they_were_put_in() {
    let mut input = not_ready();
    assert!(!verdict_page(&decide(&input)).contains("value <code>"));
    input.categories[0].example.value = Some("\"secret-4711\"".to_owned());
    assert!(verdict_page(&decide(&input)).contains("secret-4711"));
}

#[test]
fn json_is_the_document() {
    let v = decide(&ready());
    let back: Verdict = serde_json::from_str(&to_json(&v).unwrap()).unwrap();
    assert_eq!(back, v);
}
