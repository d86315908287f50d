//! Findings in the machine formats: places in the text held against the parser, nothing from a definition becomes markup
//! or a command, and the structure that each format asks for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;

use insta::assert_snapshot;
use lastcall_report::findings::{
    Finding, Findings, Level, Outcome, Rule, Subject, code, github, junit, markdown, markdown_text, prose,
    regions, sarif, within,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The text of a region on one line.
fn slice(text: &str, line: usize, from: usize, to: usize) -> String {
    text.split('\n').nth(line - 1).unwrap().chars().skip(from - 1).take(to - from).collect()
}

/// Every pointer of a document.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(key, child)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            pointers(child, &format!("{at}/{key}"), out);
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, child)| pointers(child, &format!("{at}/{n}"), out));
        }
        _ => {}
    }
}

/// What the parser says of each marked stretch: its key is the pointer's last token, its value the pointer's value.
fn holds(text: &str) {
    let value: Value = serde_json::from_str(text).unwrap();
    let mut all = Vec::new();
    pointers(&value, "", &mut all);
    let asked: Vec<&str> = all.iter().map(String::as_str).collect();
    for (pointer, region) in asked.iter().zip(regions(text, &asked)) {
        let wanted = value.pointer(pointer).unwrap();
        let (parent, last) = pointer.rsplit_once('/').unwrap_or(("", ""));
        let member = !pointer.is_empty() && value.pointer(parent).unwrap().is_object();
        assert!(region.line == region.end_line && region.column < region.end_column, "{pointer}: {region:?}");
        let got = slice(text, region.line, region.column, region.end_column);
        if member {
            let mut stream = serde_json::Deserializer::from_str(&got).into_iter::<String>();
            let key = stream.next().unwrap().unwrap_or_else(|e| panic!("{pointer} marks {got:?}: {e}"));
            assert_eq!(key, last.replace("~1", "/").replace("~0", "~"), "{pointer}");
            let rest = got[stream.byte_offset()..].trim_start();
            if let Some(rest) = rest.strip_prefix(':') {
                assert_eq!(&serde_json::from_str::<Value>(rest).unwrap(), wanted, "{pointer}");
            } else {
                assert!(
                    rest.is_empty() && !wanted.is_null() && text.contains('\n'),
                    "{pointer} marks {got:?}"
                );
            }
        } else if got.len() > 1 || !"{[".contains(&got) {
            assert_eq!(&serde_json::from_str::<Value>(&got).unwrap(), wanted, "{pointer}");
        }
    }
}

fn documents() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("a/b".to_owned()),
        Just("~".to_owned()),
        Just(String::new()),
        "[a\"\\\\é{\\[,:😀]{0,4}"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a\"\\\\é,:{}\n]{0,5}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>()))
        ]
    })
}

proptest! {
    #[test]
    fn places_are_what_the_parser_says(document in documents(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) };
        holds(&text.unwrap());
    }

    /// Whatever the text and the pointer: an answer, no panic.
    #[test]
    fn any_text_gets_an_answer(text in "[\\[\\]{}\",:a\\\\ é\n]{0,40}", pointer in "(/[0a~]{0,2}){0,4}") {
        prop_assert_eq!(regions(&text, &[&pointer]).len(), 1);
    }

    /// A command is one line, whatever is in it.
    #[test]
    fn an_annotation_is_one_line(message in "[\\PC&&[^\u{2028}\u{2029}]]{0,9}[\r\n%:,]{0,3}[\\PC&&[^\u{2028}\u{2029}]]{0,9}", file in "[a,:%\r\n]{0,6}") {
        let mut all = sample();
        all.subjects.clear();
        all.findings.truncate(1);
        all.findings[0].message = message.clone();
        all.findings[0].file = file;
        let text = github(&all);
        prop_assert_eq!(text.split(['\n', '\r']).count(), 2, "{:?}", text);
        let data = text.trim_end().split_once("::").unwrap().1.split_once("::").unwrap().1.to_owned();
        let back = data.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%");
        prop_assert!(back.starts_with(message.trim_end()), "{:?} {:?}", back, message);
    }
}

#[test]
fn odd_spacing_and_absent_places() {
    let text = "\n {\"a\" :\t{ \"b\"\n:\n[ 1 ,{\"c\":null}\n] }\r\n}";
    let at = |pointer: &str| {
        let r = regions(text, &[pointer])[0];
        (r.line, r.column, slice(text, r.line, r.column, r.end_column))
    };
    assert_eq!(at("/a/b/1/c"), (4, 7, "\"c\":null".to_owned()));
    assert_eq!(at("/a/b/1"), (4, 6, "{\"c\":null}".to_owned()));
    assert_eq!(at("/a/b"), (2, 11, "\"b\"".to_owned()));
    assert_eq!(at("/a/b/1/none/below"), at("/a/b/1"), "the nearest parent");
    assert_eq!(at("/x"), (2, 2, "{".to_owned()));
    assert_eq!(at(&"/a".repeat(100_000)).0, 2, "a pointer deeper than any document");
}

/// Real definitions, line by line (skipped without the data).
#[test]
fn places_in_real_definitions() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/schemas.jsonl");
    let Ok(text) = std::fs::read_to_string(file) else {
        println!("skipped: {file} is not there");
        return;
    };
    for line in text.lines().step_by(16) {
        holds(line);
        holds(&serde_json::to_string_pretty(&serde_json::from_str::<Value>(line).unwrap()).unwrap());
    }
}

fn sample() -> Findings {
    let rule = |id: &str, level| Rule {
        id: id.to_owned(),
        summary: format!("Rule {id}"),
        help: format!("Why {id} matters."),
        level,
    };
    let finding = |rule: &str, level, pointer: &str, message: &str, fix: Option<&str>| Finding {
        rule: rule.to_owned(),
        level,
        subject: "refund".to_owned(),
        file: "tools/new file.json".to_owned(),
        pointer: pointer.to_owned(),
        region: None,
        message: message.to_owned(),
        fix: fix.map(str::to_owned),
    };
    let mut all = Findings {
        command: "diff".to_owned(),
        headline: "1 of 3 tools breaks, 1 could not be checked.".to_owned(),
        subjects: vec![
            Subject {
                name: "refund".to_owned(),
                file: "tools/new file.json".to_owned(),
                outcome: Outcome::Failed {
                    kind: "breaking".to_owned(),
                    message: "`reason` <is> gone".to_owned(),
                },
            },
            Subject { name: "lookup".to_owned(), file: String::new(), outcome: Outcome::Passed },
            Subject {
                name: "odd".to_owned(),
                file: "tools/odd.json".to_owned(),
                outcome: Outcome::CouldNotRun { message: "not JSON. Correct the file.".to_owned() },
            },
        ],
        rules: vec![rule("required_added", Level::Error), rule("text_changed", Level::Note)],
        findings: vec![
            finding(
                "text_changed",
                Level::Note,
                "/inputSchema/properties/id",
                "The text of `id` changed",
                None,
            ),
            finding(
                "required_added",
                Level::Error,
                "/inputSchema/required/0",
                "`id` is required now: {\"note\": \"50 %\"}",
                Some("Give it a default"),
            ),
        ],
    };
    let text = "{\"name\": \"refund\",\n \"inputSchema\": {\n  \"properties\": {\"id\": {}},\n  \"required\": [\"id\"]}}";
    all.locate(&BTreeMap::from([("tools/new file.json".to_owned(), text.to_owned())]));
    all
}

#[test]
fn annotations() {
    assert_snapshot!(github(&sample()), @r#"
    ::error file=tools/odd.json,title=odd%3A could not be checked::not JSON. Correct the file.
    ::error file=tools/new file.json,line=4,endLine=4,col=16,endColumn=20,title=refund%3A required_added::`id` is required now: {"note": "50 %25"} Give it a default.
    ::notice file=tools/new file.json,line=3,endLine=3,col=18,endColumn=26,title=refund%3A text_changed::The text of `id` changed.
    "#);
}

#[test]
fn junit_counts_what_was_checked() {
    assert_snapshot!(junit(&sample()).unwrap(), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="lastcall diff" tests="3" skipped="0" failures="1" errors="1">
        <testsuite name="lastcall diff" tests="3" skipped="0" errors="1" failures="1">
            <testcase name="refund" classname="tools/new file.json">
                <failure message="`reason` &lt;is&gt; gone" type="breaking">error required_added at /inputSchema/required/0: `id` is required now: {&quot;note&quot;: &quot;50 %&quot;} Give it a default.
    note text_changed at /inputSchema/properties/id: The text of `id` changed.
    </failure>
            </testcase>
            <testcase name="lookup" classname="lastcall diff"/>
            <testcase name="odd" classname="tools/odd.json">
                <error message="not JSON. Correct the file." type="could_not_run"/>
            </testcase>
        </testsuite>
    </testsuites>
    "#);
    let mut odd = sample();
    odd.subjects[0].name = "a\u{1b}[31m<b>&\"\u{0}".to_owned();
    let xml = junit(&odd).unwrap();
    assert!(!xml.contains('\u{1b}') && !xml.contains('\u{0}') && xml.contains("&lt;b&gt;&amp;"), "{xml}");
    // every character that XML 1.0 does not allow (its production 2, Char), in every text
    let forbidden: Vec<char> = (0..0x11_0000)
        .filter(|c| !matches!(c, 0x9 | 0xa | 0xd | 0x20..=0xd7ff | 0xe000..=0xfffd | 0x1_0000..=0x10_ffff))
        .filter_map(char::from_u32)
        .collect();
    assert_eq!(forbidden.len(), 29 + 2);
    let text: String = forbidden.iter().collect();
    for subject in &mut odd.subjects {
        subject.name.push_str(&text);
        subject.file.push_str(&text);
        match &mut subject.outcome {
            Outcome::Passed => {}
            Outcome::Failed { message, .. } | Outcome::CouldNotRun { message } => message.push_str(&text),
        }
    }
    for finding in &mut odd.findings {
        finding.subject.push_str(&text);
        finding.message.push_str(&text);
        finding.pointer.push_str(&text);
    }
    let xml = junit(&odd).unwrap();
    assert!(!xml.contains(&*forbidden) && xml.contains("\\uffff"), "{xml}");
}

#[test]
fn a_table_in_markdown() {
    assert_snapshot!(markdown(&sample()), @r#"
    ### lastcall diff

    1 of 3 tools breaks, 1 could not be checked.

    **`odd` could not be checked**: not JSON. Correct the file.

    | | rule | where | what |
    | --- | --- | --- | --- |
    | error | `required_added` | `tools/new file.json:4` `/inputSchema/required/0` | `refund`: `id` is required now: {"note": "50 %"} Give it a default. |
    | note | `text_changed` | `tools/new file.json:3` `/inputSchema/properties/id` | `refund`: The text of `id` changed. |
    "#);
}

#[test]
fn nothing_becomes_markup() {
    assert_eq!(
        markdown_text("a|b <img> @all *x* #1\n_y_"),
        "a\\|b \\<img\\> @\u{200b}all \\*x\\* \\#1 \\_y\\_"
    );
    assert_eq!(code("a`b``c"), "```a`b``c```");
    assert_eq!(code("`x"), "`` `x ``");
    assert_eq!(prose("`a|b` is *gone*, `c"), "`a|b` is \\*gone\\*, \\`c");
    let mut all = sample();
    all.findings[1].message = "a | b".to_owned();
    all.findings[1].pointer = "/x|y".to_owned();
    let table = markdown(&all);
    let row = table.lines().find(|l| l.starts_with("| error")).unwrap();
    assert_eq!(row.replace("\\|", "").matches('|').count(), 5, "{row}");
}

#[test]
fn a_document_is_cut_at_whole_lines() {
    let long: String = (0..100).map(|n| format!("line {n}\n")).collect();
    let cut = within(&long, 200);
    assert!(cut.len() <= 200 && cut.starts_with("line 0\n"), "{cut}");
    let kept = cut.lines().filter(|l| l.starts_with("line ")).count();
    assert!(cut.ends_with(&format!("… {} more lines\n", 100 - kept)), "{cut}");
    assert_eq!(within("short\n", 200), "short\n");
    assert!(within(&long, 10).len() <= 10);
}

#[test]
fn sarif_has_what_a_scanner_needs() {
    let text = sarif(&sample()).unwrap();
    let log: Value = serde_json::from_str(&text).unwrap();
    let run = &log["runs"][0];
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 2);
    assert_eq!(run["invocations"][0]["executionSuccessful"], false, "one tool could not be checked");
    let results = run["results"].as_array().unwrap();
    assert_eq!(
        results[0],
        json!({
            "ruleId": "required_added",
            "ruleIndex": 0,
            "level": "error",
            "message": {"text": "`id` is required now: {\"note\": \"50 %\"} Give it a default."},
            "partialFingerprints": {"lastcall/v1": results[0]["partialFingerprints"]["lastcall/v1"]},
            "properties": {"subject": "refund"},
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": {"uri": "tools/new%20file.json", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 4, "startColumn": 16, "endLine": 4, "endColumn": 20}
                },
                "logicalLocations": [{"fullyQualifiedName": "/inputSchema/required/0"}]
            }]
        })
    );
    // a fingerprint stays when the lines move, and no two are the same
    let mut moved = sample();
    moved.findings.iter_mut().for_each(|f| f.region = None);
    moved.findings.push(moved.findings[0].clone());
    let again: Value = serde_json::from_str(&sarif(&moved).unwrap()).unwrap();
    let prints = |log: &Value| -> Vec<String> {
        log["runs"][0]["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["partialFingerprints"].to_string())
            .collect()
    };
    assert_eq!(prints(&log)[..], prints(&again)[..2]);
    assert_ne!(prints(&again)[1], prints(&again)[2]);
}

#[test]
fn the_worst_are_kept() {
    let mut all = sample();
    let note = all.findings[0].clone();
    all.findings = vec![note; 6_000];
    all.findings.push(sample().findings[1].clone());
    let log: Value = serde_json::from_str(&sarif(&all).unwrap()).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["level"]), (5_000, &json!("error")));
    assert!(log.to_string().contains("1001 more findings are left out"));
}
