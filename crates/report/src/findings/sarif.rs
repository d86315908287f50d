//! SARIF 2.1.0 (OASIS): a few structures, the parts that code scanning services show. Results are cut at what they take,
//! the worst kept, and the cut is said.

use std::collections::BTreeMap;

use lastcall_contract::Digest;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Finding, Findings, Outcome, Region};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// GitHub takes 25,000 results a run and shows 5,000 of them (its documentation of SARIF support).
const MAX_RESULTS: usize = 5_000;

/// Everything that a path may not carry in a URI (RFC 3986 `pchar` and `/`).
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b':');

/// The findings as a SARIF log with one run, pretty-printed, with a newline at its end.
///
/// # Errors
/// The serializer's own.
pub fn sarif(all: &Findings) -> Result<String, serde_json::Error> {
    let all = &all.plain();
    let index: BTreeMap<&str, usize> =
        all.rules.iter().enumerate().map(|(n, r)| (r.id.as_str(), n)).collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let sorted = all.worst_first();
    let results: Vec<Value> = sorted
        .iter()
        .take(MAX_RESULTS)
        .map(|finding| result(finding, index.get(finding.rule.as_str()).copied(), &mut seen))
        .collect();
    let mut notifications: Vec<Value> = Vec::new();
    for subject in &all.subjects {
        if let Outcome::CouldNotRun { message } = &subject.outcome {
            let text = format!("{}: {message}", subject.name);
            let place = (!subject.file.is_empty()).then(|| location(&subject.file, "", None));
            let mut notification = json!({"level": "error", "message": {"text": text}});
            if let (Some(place), Some(map)) = (place, notification.as_object_mut()) {
                map.insert("locations".to_owned(), json!([place]));
            }
            notifications.push(notification);
        }
    }
    let ran = notifications.is_empty();
    if sorted.len() > results.len() {
        let text = format!("{} more findings are left out; the worst are kept", sorted.len() - results.len());
        notifications.push(json!({"level": "warning", "message": {"text": text}}));
    }
    let rules: Vec<Value> = all
        .rules
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.summary},
                "fullDescription": {"text": rule.help},
                "help": {"text": rule.help},
                "defaultConfiguration": {"level": rule.level.as_str()},
            })
        })
        .collect();
    let log = Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: [json!({
            "tool": {"driver": {
                "name": "Lastcall",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "automationDetails": {"id": format!("lastcall/{}/", all.command)},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": ran, "toolExecutionNotifications": notifications}],
            "results": results,
        })],
    };
    crate::to_json(&log)
}

#[derive(Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Value; 1],
}

fn result(finding: &Finding, rule: Option<usize>, seen: &mut BTreeMap<String, usize>) -> Value {
    // without the line: a fingerprint survives edits elsewhere in the file
    let what =
        [&finding.rule, &finding.subject, &finding.file, &finding.pointer].map(String::as_str).join("\u{0}");
    let nth = seen.entry(what.clone()).or_insert(0);
    let fingerprint = Digest::of(format!("{what}\u{0}{nth}").as_bytes());
    *nth += 1;
    let mut out = json!({
        "ruleId": finding.rule,
        "level": finding.level.as_str(),
        "message": {"text": finding.full_message()},
        "partialFingerprints": {"lastcall/v1": fingerprint.hex()},
    });
    if let Some(map) = out.as_object_mut() {
        if let Some(rule) = rule {
            map.insert("ruleIndex".to_owned(), rule.into());
        }
        if !finding.file.is_empty() {
            map.insert(
                "locations".to_owned(),
                json!([location(&finding.file, &finding.pointer, finding.region)]),
            );
        }
        map.insert("properties".to_owned(), json!({"subject": finding.subject}));
    }
    out
}

fn location(file: &str, pointer: &str, region: Option<Region>) -> Value {
    let absolute = file.starts_with('/');
    let path = utf8_percent_encode(file.strip_prefix("./").unwrap_or(file), PATH);
    let artifact = if absolute {
        json!({"uri": format!("file://{path}")})
    } else {
        json!({"uri": path.to_string(), "uriBaseId": "%SRCROOT%"})
    };
    let mut physical = json!({"artifactLocation": artifact});
    if let (Some(r), Some(map)) = (region, physical.as_object_mut()) {
        let region = json!({"startLine": r.line, "startColumn": r.column, "endLine": r.end_line, "endColumn": r.end_column});
        map.insert("region".to_owned(), region);
    }
    let mut out = json!({"physicalLocation": physical});
    if let (false, Some(map)) = (pointer.is_empty(), out.as_object_mut()) {
        map.insert("logicalLocations".to_owned(), json!([{"fullyQualifiedName": pointer}]));
    }
    out
}
