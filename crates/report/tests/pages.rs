//! The pages and texts: everything that a reader needs is there, nothing is loaded, nothing from a record runs.
//!
//! `REPORT_SAMPLES=folder cargo test -p lastcall-report` writes the sample pages, to be looked at.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod samples;

use std::collections::{BTreeMap, BTreeSet};

use lastcall_decision::{CeilingBasis, History, Plan, Verdict, WindowInput, decide};
use lastcall_report::{
    Style, TRY_FORMAT, TryCaller, TryCategory, TryDay, TryExample, TryFinding, TryReport, board, burn_in,
    fleet_page, fleet_text, to_json, try_page, try_text, verdict_page, verdict_text,
};
use samples::{FROM, HOSTILE, forty, history, hostile, inputs, not_ready, ready, samples};

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

/// Pages with inputs, the way a command makes them.
fn shown(inputs: &[WindowInput]) -> (Vec<Verdict>, Vec<History>) {
    (inputs.iter().map(decide).collect(), inputs.iter().map(history).collect())
}

fn sample_fleet() -> (Vec<Verdict>, Vec<History>) {
    let inputs: Vec<WindowInput> = inputs().into_iter().map(|(_, input)| input).collect();
    shown(&inputs)
}

fn pages() -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = inputs()
        .iter()
        .map(|(name, input)| ((*name).to_owned(), verdict_page(&decide(input), &history(input))))
        .collect();
    let (verdicts, histories) = sample_fleet();
    out.push(("fleet".to_owned(), fleet_page("Five tools", &verdicts, &histories)));
    out.push(("fleet-empty".to_owned(), fleet_page("No tools", &[], &[])));
    let (verdicts, histories) = shown(&forty());
    for page in board("Forty tools", &verdicts, &histories) {
        out.push((format!("board/{}", page.path.trim_end_matches(".html")), page.html));
    }
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
            let file = std::path::Path::new(&folder).join(format!("{name}.html"));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, &page).unwrap();
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
        for href in attributes(&page, "href") {
            let within = href.starts_with('#') || href.starts_with("tools/") || href == "../index.html";
            assert!(within && !href.contains("..") | (href == "../index.html"), "{name} links to {href}");
        }
    }
}

/// The values of an attribute, in order.
fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let mark = format!(" {name}=\"");
    page.match_indices(&mark).map(|(i, _)| page[i + mark.len()..].split('"').next().unwrap()).collect()
}

#[test]
fn every_chart_has_a_title_a_description_and_a_table_beside_it() {
    for (name, input) in inputs().iter().filter(|(n, _)| *n != "empty") {
        let v = decide(input);
        let page = verdict_page(&v, &history(input));
        assert!(page.contains("role=\"img\" aria-labelledby=\"v-t v-d\""), "{name}");
        assert!(page.contains("<title id=\"v-t\">") && page.contains("<desc id=\"v-d\">"), "{name}");
        for day in &v.days {
            assert!(page.contains(&format!("<td class=\"nowrap\">{}</td>", day.day)), "{name} {}", day.day);
        }
        // one strip a category, each with words, and the same figures below
        assert_eq!(page.matches("preserveAspectRatio").count(), v.categories.len(), "{name}");
        assert_eq!(page.contains("The same by day as a table"), !v.categories.is_empty(), "{name}");
    }
    // every picture says what it shows, or is hidden from those who cannot see it
    for (name, page) in pages() {
        for (i, _) in page.match_indices("<svg") {
            let tag = page[i..].split('>').next().unwrap();
            let told = tag.contains("aria-label") && tag.contains("role=\"img\"");
            assert!(told || tag.contains("aria-hidden=\"true\""), "{name}: {tag}");
        }
    }
}

#[test]
fn ids_of_a_fleet_page_are_unique_and_its_links_lead_somewhere() {
    let (verdicts, histories) = sample_fleet();
    let page = fleet_page("Five tools", &verdicts, &histories);
    let ids = attributes(&page, "id");
    let unique: BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(ids.len(), unique.len());
    let links = attributes(&page, "href");
    assert_eq!(links.len(), 5);
    for link in links {
        assert!(ids.contains(&&link[1..]), "{link}");
    }
}

/// A link as a browser resolves it to a file.
fn target(href: &str) -> String {
    percent_encoding::percent_decode_str(href).decode_utf8().unwrap().into_owned()
}

#[test]
fn a_board_links_to_every_page_and_back_whatever_the_names_are() {
    let long = "n".repeat(400);
    let names = [
        "a",
        "A",
        "index",
        "..",
        ".",
        "",
        "a/b",
        "../../etc/passwd",
        "a%2Fb",
        "é ü",
        "con",
        HOSTILE,
        &long,
        "a",
    ];
    let inputs: Vec<WindowInput> = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let mut input = if i % 2 == 0 { ready() } else { not_ready() };
            input.tool_id = (*name).to_owned();
            let r = input.registration.as_mut().unwrap();
            r.cohort = (i == 13).then(|| "a/../b".to_owned());
            input
        })
        .collect();
    let (verdicts, histories) = shown(&inputs);
    let pages = board("Odd names", &verdicts, &histories);
    assert_eq!(pages.len(), names.len() + 1);
    assert_eq!(pages.last().unwrap().path, "index.html");
    let paths: BTreeSet<String> = pages.iter().map(|p| p.path.to_lowercase()).collect();
    assert_eq!(paths.len(), pages.len(), "no page writes over another, on any file system");
    for page in &pages[..names.len()] {
        let file = page.path.strip_prefix("tools/").unwrap();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.%@~".contains(&b);
        assert!(file.bytes().all(plain) && !file.starts_with('.') && file.len() <= 200, "{file}");
        assert!(page.html.contains("<nav><a href=\"../index.html\">"), "{file}");
    }
    let links: BTreeSet<String> =
        attributes(&pages.last().unwrap().html, "href").into_iter().map(target).collect();
    let there: BTreeSet<String> = pages[..names.len()].iter().map(|p| p.path.clone()).collect();
    assert_eq!(links, there);
}

#[test]
fn the_heat_map_says_each_day_by_height_and_in_words() {
    let (verdicts, histories) = sample_fleet();
    let page = fleet_page("Five tools", &verdicts, &histories);
    let strips: Vec<&str> =
        attributes(&page, "aria-label").into_iter().filter(|l| l.contains(" days: ")).collect();
    let told = |start: &str| strips.iter().any(|s| s.starts_with(start));
    // NOT_READY: nine days of the earlier window, fifteen of this one
    assert!(told("24 days: 22 at or above B, 1 no compared call, 1 not closed or not scored"), "{strips:?}");
    assert!(
        told(
            "14 days: 1 at or above B, 2 below B, not below its decay fraction, 10 below the decay fraction, 1 no disagreement"
        ),
        "{strips:?}"
    );
    for class in ["h-over", "h-day", "h-none", "h-silent", "h-open", "mark-fill"] {
        assert!(page.contains(&format!("class=\"{class}\"")), "{class}");
    }
    // forty tools: forty rows, each with its strip, and none so wide that it would take two lines
    let (verdicts, histories) = shown(&forty());
    let index = board("Forty tools", &verdicts, &histories).pop().unwrap().html;
    assert_eq!(index.matches("<th scope=\"row\">").count(), 40);
    assert_eq!(index.matches("<svg class=\"heat\"").count(), 39, "a tool that is only observed has no day");
    assert!(index.len() < 700_000, "{}", index.len());
}

#[test]
fn earlier_windows_stand_in_the_chart_and_in_a_table() {
    let input = not_ready();
    let (v, beside) = (decide(&input), history(&input));
    let page = verdict_page(&v, &beside);
    assert_eq!(page.matches("class=\"mark\"").count(), 2);
    assert!(page.contains(">registration 2<") && page.contains(">registration 4<"), "{page}");
    assert!(page.contains("the candidate changed") && page.contains(", 2026-05-20"));
    assert!(page.contains("refund_payment@2.0.0-rc1"));
    // what is not known of it is not drawn, and the table stays
    let bare = verdict_page(&v, &History::default());
    assert!(!bare.contains("class=\"mark\"") && bare.contains("refund_payment@2.0.0-rc1"));
    // another measure has no place on the same axis
    let mut other = beside;
    let plan = other.past[0].last.as_mut().unwrap().plan.as_mut().unwrap();
    plan.values.ceiling_basis = CeilingBasis::Window;
    assert!(!verdict_page(&v, &other).contains("class=\"mark\""));
}

#[test]
fn phases_mark_where_the_tool_stands() {
    let now = |input: &WindowInput| {
        let page = verdict_page(&decide(input), &History::default());
        let at = page.find("aria-current=\"step\">").unwrap();
        page[at..].split(['>', '<']).nth(1).unwrap().to_owned()
    };
    let mut input = ready();
    assert_eq!(now(&input), "scored");
    input.registration.as_mut().unwrap().ended = Some("the candidate changed".to_owned());
    assert_eq!(now(&input), "scored, window ended");
    (input.registration, input.plan) = (None, None);
    assert_eq!(now(&input), "observed");
}

#[test]
fn pages_hold_without_a_day_and_with_four_hundred() {
    let mut input = ready();
    let days: Vec<(u64, u64, u64, u64)> = (0..400).map(|i| (500 + i % 90, i % 8, i % 8 / 2, i % 2)).collect();
    let mut many = samples::input("search_policy", &days, 400);
    many.plan.as_mut().unwrap().values.max_scored_days = 400;
    many.categories = input.categories.clone();
    samples::by_day(&mut many);
    let v = decide(&many);
    assert_eq!(v.days.len(), 400);
    let page = verdict_page(&v, &history(&many));
    assert!(page.contains("viewBox=\"0 0 1000.0 236.0\""), "the chart does not grow with its days");
    let svg = &page[page.find("<svg viewBox").unwrap()..];
    let svg = &svg[..svg.find("</svg>").unwrap()];
    let labels = svg.matches("text-anchor=\"middle\"").count();
    assert!((8..=24).contains(&labels), "{labels} days are named");
    let index = board("Many days", &[v], &[history(&many)]).pop().unwrap().html;
    assert!(index.contains("56 days: "), "the last days");
    // so many problems are told as far as a reader goes on, and by their reasons
    let problem = samples::error().problems.remove(0);
    input.problems = vec![problem; 100];
    let page_of_problems = verdict_page(&decide(&input), &History::default());
    assert_eq!(page_of_problems.matches("is not the one that its successor names.").count(), 20 + 1);
    assert!(page_of_problems.contains("80 more: <code>record_altered</code>"));
    input.problems.clear();
    if let Some(folder) = std::env::var_os("REPORT_SAMPLES") {
        std::fs::write(std::path::Path::new(&folder).join("many-days.html"), &page).unwrap();
    }
    input.days.clear();
    input.closed_through = None;
    let v = decide(&input);
    assert!(verdict_page(&v, &history(&input)).contains("No scored day has a call yet."));
    assert!(fleet_page("None", &[v], &[]).contains("search_policy"));
}

#[test]
fn whatever_a_record_says_stays_text() {
    let v = decide(&hostile());
    let mut beside = history(&hostile());
    beside.past[0].last = Some(v.clone());
    let each = std::slice::from_ref(&v);
    let mut made = vec![verdict_page(&v, &beside), fleet_page(HOSTILE, each, std::slice::from_ref(&beside))];
    made.extend(board(HOSTILE, each, &[beside]).into_iter().map(|p| p.html));
    for page in made {
        assert!(!page.contains(['\u{1b}', '\u{202e}']), "a page turns the direction of writing");
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
    assert!(!verdict_page(&decide(&input), &history(&input)).contains("value <code>"));
    input.categories[0].example.value = Some("\"secret-4711\"".to_owned());
    assert!(verdict_page(&decide(&input), &history(&input)).contains("secret-4711"));
}

#[test]
fn json_is_the_document() {
    let v = decide(&ready());
    let back: Verdict = serde_json::from_str(&to_json(&v).unwrap()).unwrap();
    assert_eq!(back, v);
}
