//! Verdicts as Markdown and JUnit: snapshots, everything of a verdict in every format, and nothing from outside that breaks
//! out. Two parsers that are not ours read the formats back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod samples;

use insta::assert_snapshot;
use lastcall_decision::{
    Answer, Check, CheckResult, History, Problem, ReasonCode, Verdict, WindowInput, decide,
};
use lastcall_report::{
    MARKDOWN_LIMIT, Style, fleet_markdown, fleet_page, to_json, verdict_markdown, verdict_page, verdict_text,
    verdicts_junit,
};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};
use roxmltree::{Document, Node};
use samples::{forty, hostile, inputs, insufficient, not_ready, ready, samples};

#[test]
fn markdown_snapshots() {
    for (name, v) in samples() {
        assert_snapshot!(format!("markdown_{name}"), verdict_markdown(&v));
    }
    let verdicts: Vec<Verdict> = samples().into_iter().map(|(_, v)| v).collect();
    let fleet = fleet_markdown(&verdicts);
    assert_snapshot!("markdown_fleet", fleet.split("\n### ").next().unwrap());
    assert_eq!(fleet_markdown(&[]), "### lastcall decide: no tool is registered yet\n");
}

#[test]
fn junit_snapshot() {
    let verdicts: Vec<Verdict> = samples().into_iter().map(|(_, v)| v).collect();
    assert_snapshot!("junit", verdicts_junit(&verdicts).unwrap());
}

fn element<'a>(node: Node<'a, 'a>, name: &str) -> Vec<Node<'a, 'a>> {
    node.children().filter(|n| n.has_tag_name(name)).collect()
}

/// Holds a report against the Jenkins flavour of JUnit: which elements there are, in which order, and that every count is
/// the count of what is there. Answers (suite, case, what it came to).
fn cases(xml: &str) -> Vec<(String, String, &'static str)> {
    let document = Document::parse(xml).unwrap();
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    let elements = |n: Node<'_, '_>| -> Vec<String> {
        n.children().filter(Node::is_element).map(|c| c.tag_name().name().to_owned()).collect()
    };
    let number = |n: Node<'_, '_>, name: &str| n.attribute(name).unwrap().parse::<usize>().unwrap();
    let (mut out, mut sums) = (Vec::new(), [0; 4]);
    for suite in root.children().filter(Node::is_element) {
        assert_eq!(suite.tag_name().name(), "testsuite");
        let mut order = elements(suite);
        order.dedup();
        assert!(order == ["properties", "testcase"] || order == ["testcase"], "{order:?}");
        let mut counts = [0; 4];
        for case in element(suite, "testcase") {
            assert!(case.attribute("classname").is_some_and(|c| !c.is_empty()));
            let inside = elements(case);
            let came = match inside.first().map(String::as_str) {
                None | Some("system-out") => "passed",
                Some("failure") => "failed",
                Some("error") => "error",
                Some("skipped") => "skipped",
                Some(other) => panic!("<{other}> in a case"),
            };
            let rest = if came == "passed" { &inside[..] } else { &inside[1..] };
            assert!(rest.is_empty() || rest == ["system-out"], "{inside:?}");
            if let Some(status) = case.first_element_child().filter(|n| n.tag_name().name() != "system-out") {
                assert!(status.attribute("message").is_some() && status.attribute("type").is_some());
            }
            counts[0] += 1;
            counts[1] += usize::from(came == "failed");
            counts[2] += usize::from(came == "error");
            counts[3] += usize::from(came == "skipped");
            let name = |n: Node<'_, '_>| n.attribute("name").unwrap().to_owned();
            out.push((name(suite), name(case), came));
        }
        for (i, name) in ["tests", "failures", "errors", "skipped"].iter().enumerate() {
            assert_eq!(number(suite, name), counts[i], "{name}");
            sums[i] += counts[i];
        }
    }
    for (i, name) in ["tests", "failures", "errors", "skipped"].iter().enumerate() {
        assert_eq!(number(root, name), sums[i], "{name} of all");
    }
    out
}

#[test]
fn junit_is_read_back_by_another_parser() {
    let verdicts: Vec<Verdict> = samples().into_iter().map(|(_, v)| v).collect();
    let cases = cases(&verdicts_junit(&verdicts).unwrap());
    let wanted: usize = verdicts.iter().map(|v| 1 + v.checks.len() + v.problems.len()).sum();
    assert_eq!(cases.len(), wanted);
    for v in &verdicts {
        let came = |name: &str| cases.iter().find(|(s, c, _)| *s == v.tool_id && c == name).unwrap().2;
        // unknown is never good news
        let verdict = match v.verdict {
            Answer::Ready => "passed",
            Answer::NotReady | Answer::Insufficient => "failed",
            Answer::Error => "error",
        };
        assert_eq!(came("verdict"), verdict);
        for c in &v.checks {
            let wanted = match c.result {
                CheckResult::Pass => "passed",
                CheckResult::Fail => "failed",
                CheckResult::Error => "error",
                CheckResult::Insufficient | CheckResult::Unknown => "skipped",
            };
            assert_eq!(came(&c.id), wanted, "{} of {}", c.id, v.tool_id);
        }
    }
    assert!(cases.iter().any(|(_, c, came)| c == "record_altered" && *came == "error"));
}

/// A verdict with a check of every result and every reason code, some as problems.
fn everything() -> Verdict {
    let mut v = decide(&not_ready());
    let results = [
        CheckResult::Pass,
        CheckResult::Fail,
        CheckResult::Insufficient,
        CheckResult::Error,
        CheckResult::Unknown,
    ];
    v.checks.clear();
    for (i, code) in ReasonCode::ALL.iter().enumerate() {
        let result = results[i % results.len()];
        if i % 7 == 6 {
            let text = format!("problem text {i}.");
            v.problems.push(Problem { result, reason: *code, text, next: Some(format!("problem next {i}")) });
        } else {
            let mut check: Check = decide(&ready()).checks.swap_remove(0);
            (check.id, check.result, check.reason) = (format!("check_id_{i}"), result, *code);
            (check.value, check.threshold) = (format!("value {i}"), format!("threshold {i}"));
            check.next = Some(format!("check next {i}"));
            v.checks.push(check);
        }
    }
    v
}

fn formats(v: &Verdict) -> Vec<(&'static str, String)> {
    vec![
        ("text", verdict_text(v, true, Style::default())),
        ("json", to_json(v).unwrap()),
        ("html", verdict_page(v, &History::default())),
        ("fleet html", fleet_page("One", std::slice::from_ref(v), &[])),
        ("markdown", verdict_markdown(v).replace('\\', "")),
        ("junit", verdicts_junit(std::slice::from_ref(v)).unwrap()),
    ]
}

#[test]
fn every_check_and_every_reason_code_is_in_every_format() {
    let mut all: Vec<Verdict> = samples().into_iter().map(|(_, v)| v).collect();
    all.extend(forty().iter().map(decide));
    all.push(everything());
    for v in &all {
        for (format, text) in formats(v) {
            for c in &v.checks {
                let value = c.value.replace('<', "&lt;").replace('>', "&gt;");
                let told = text.contains(&c.value) || text.contains(&value);
                let missing = [
                    (text.contains(&c.id), "id"),
                    (text.contains(c.reason.as_str()), "reason"),
                    (told, "value"),
                ];
                let missing: Vec<&str> =
                    missing.iter().filter(|(there, _)| !there).map(|(_, what)| *what).collect();
                assert!(missing.is_empty(), "{format} lacks {missing:?}: {c:?}");
            }
            for p in &v.problems {
                assert!(text.contains(p.reason.as_str()), "{format}: {p:?}");
            }
            for wanted in [v.verdict.as_str(), v.tool_id.as_str()] {
                assert!(
                    text.contains(wanted) || text.contains(&wanted.replace('_', " ")),
                    "{format}: {wanted}"
                );
            }
        }
    }
}

#[test]
fn json_is_what_its_schema_says() {
    let schema = serde_json::from_str(&Verdict::schema_text().unwrap()).unwrap();
    let validator = lastcall_contract::validator_for(&schema, lastcall_contract::Draft::Draft202012).unwrap();
    let mut all: Vec<Verdict> = samples().into_iter().map(|(_, v)| v).collect();
    all.extend([everything(), decide(&hostile())]);
    for v in &all {
        let value: serde_json::Value = serde_json::from_str(&to_json(v).unwrap()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    // a near miss: the schema refuses what the type refuses
    let mut wrong: serde_json::Value = serde_json::from_str(&to_json(&all[0]).unwrap()).unwrap();
    wrong["verdict"] = "MAYBE".into();
    assert!(!validator.is_valid(&wrong));
}

/// What a document is made of, without its words: tags in order, links and raw HTML with what they say.
fn skeleton(markdown: &str) -> Vec<String> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_MATH;
    let mut out = Vec::new();
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Text(_) | Event::SoftBreak => {}
            Event::Code(_) => out.push("code".to_owned()),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                out.push(format!("link {dest_url}"))
            }
            // the counts in the summary are ours
            Event::Html(html) if html.starts_with("<details><summary>Days: ") => out.push("days".to_owned()),
            other => out.push(format!("{other:?}")),
        }
    }
    out
}

/// Says only where two skeletons part.
fn same(got: &[String], wanted: &[String]) -> Result<(), String> {
    let at = got.iter().zip(wanted).position(|(a, b)| a != b).unwrap_or(got.len().min(wanted.len()));
    match got == wanted {
        true => Ok(()),
        false => Err(format!("at {at}: {:?}, wanted {:?}", got.get(at), wanted.get(at))),
    }
}

/// The same verdict with another name wherever a name from outside stands.
fn named(name: &str) -> Verdict {
    let mut input: WindowInput = not_ready();
    input.tool_id = name.to_owned();
    let pair = input.pair.as_mut().unwrap();
    (pair.current, pair.candidate) = (name.to_owned(), name.to_owned());
    let r = input.registration.as_mut().unwrap();
    (r.cohort, r.ended) = (Some(name.to_owned()), Some(name.to_owned()));
    for c in &mut input.categories {
        c.category = name.to_owned();
        c.fields[0].pointer = format!("/{name}");
    }
    input.problems = vec![Problem {
        result: CheckResult::Error,
        reason: ReasonCode::RecordAltered,
        text: name.to_owned(),
        next: Some(name.to_owned()),
    }];
    decide(&input)
}

const ODD: [&str; 16] = [
    "`",
    "``` \n```",
    "|a|b|\n|-|-|\n",
    "</details><img src=x onerror=alert(1)>",
    "\n\n# head\n\n- list\n1. list\n> quote\n\n---\n",
    "[link](javascript:alert(1)) ![x](y) <https://e.example> [^1]",
    "*a* **b** _c_ __d__ ~~e~~ $f$",
    "@all #1 GH-1 a@b.example",
    "\\",
    "a\\|b",
    "a\\",
    "|",
    "&lt;b&gt; &amp; &#35;",
    "- [ ] task",
    "\u{202e}\u{1b}[31m\u{0}",
    "==\n--\n\tcode",
];

#[test]
fn a_name_breaks_out_of_no_format() {
    let wanted = skeleton(&verdict_markdown(&named("tool")));
    assert!(wanted.len() > 200, "{wanted:?}");
    let fleet = skeleton(&fleet_markdown(&[named("tool"), decide(&insufficient())]));
    for odd in ODD {
        let v = named(odd);
        assert_eq!(same(&skeleton(&verdict_markdown(&v)), &wanted), Ok(()), "{odd:?}");
        let said = skeleton(&fleet_markdown(&[v.clone(), decide(&insufficient())]));
        assert_eq!(same(&said, &fleet), Ok(()), "{odd:?}");
        let cases = cases(&verdicts_junit(&[v.clone()]).unwrap());
        assert_eq!(cases.len(), 1 + v.checks.len() + v.problems.len());
    }
    for text in [verdict_markdown(&decide(&hostile())), verdicts_junit(&[decide(&hostile())]).unwrap()] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }
}

#[test]
fn no_address_becomes_a_link_by_itself_and_no_name_a_mention() {
    let text = verdict_markdown(&named("https://evil.example www.evil.example @octocat"));
    // outside of code spans, where neither is anything
    let mut prose = String::new();
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        if let Event::Text(t) = event {
            prose.push_str(&t);
        }
    }
    assert!(prose.contains("evil.example"));
    for wrong in ["https://", "www.evil", "@octocat"] {
        assert!(!prose.contains(wrong), "{wrong}");
    }
}

#[test]
fn markdown_keeps_to_what_github_takes() {
    let many: Vec<Verdict> = forty().iter().cycle().take(400).map(decide).collect();
    let text = fleet_markdown(&many);
    assert!(text.len() <= MARKDOWN_LIMIT, "{}", text.len());
    assert!(
        text.contains("… 200 more tools\n") && text.contains("more tools are not told in full"),
        "{text}"
    );
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count(), "none is cut open");
    let long = named(&"`|<&*".repeat(40_000));
    for text in [verdict_markdown(&long), fleet_markdown(&[long.clone()])] {
        assert!(text.len() <= MARKDOWN_LIMIT, "{}", text.len());
        assert!(text.contains("record_altered"), "the answer is told first");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_name_the_document_stays_the_same(name in "[`|*_<>&\\\\\\[\\]()#@!~$:/\n\t a1.-]{1,24}") {
        let (got, wanted) = (skeleton(&verdict_markdown(&named(&name))), skeleton(&verdict_markdown(&named("tool"))));
        prop_assert_eq!(same(&got, &wanted), Ok(()));
    }
}

#[test]
fn samples_cover_every_answer() {
    let mut said: Vec<u8> = inputs().iter().map(|(_, i)| decide(i).verdict.rank()).collect();
    said.sort_unstable();
    said.dedup();
    assert_eq!(said, [0, 1, 2, 3]);
}
