//! Every category and every reason fires once through the real binary, and its near miss stays silent. One readable
//! file a category in `scenarios/`, one a reason in `scenarios/reasons/`.
//!
//! A file: `old` and `new` are input schemas (or `{inputSchema, outputSchema}`), `fires` and `near_miss` are calls:
//! `arguments` or `arguments_text`, `outcome` (default: executed, ok, unless stated), and for a mirrored call
//! `candidate`. A near miss may have another `old` or `new`, says why it is silent, and gives `result` where the call
//! does not simply agree.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};

use lastcall_compare::{Category, Reason, Severity};
use lastcall_tests::run;
use serde_json::{Value, json};

const TOOL: &str = "scenario_tool";

/// Reasons that no file of calls can reach, and why.
const NOT_FROM_A_FILE: [(&str, &str); 4] = [
    ("unstable", "needs a re-run on the mirror's replica, which comes with the mirror"),
    ("clock", "compares with the message's own time, which lines of a file do not have"),
    ("not_observed", "is found when a ledger is decided, not when a call is compared"),
    ("lost", "is a count in a loss record, not a call"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

fn scenario(path: &Path) -> Value {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|e| panic!("{}: {e}; every category and reason needs a scenario", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn definition(side: &Value) -> Value {
    match side.get("inputSchema") {
        Some(_) => {
            let mut document = side.clone();
            document["name"] = json!(TOOL);
            document
        }
        None => json!({"name": TOOL, "inputSchema": side}),
    }
}

fn event(call: &Value) -> Value {
    let mut event = json!({
        "type": "tool_call", "schema_version": 1, "call_id": "scenario/1", "ts": "2026-06-01T09:30:00Z",
        "tool_id": TOOL, "contract_id": format!("{TOOL}@1"),
        "outcome": call.get("outcome").cloned().unwrap_or(json!({"status": "ok", "executed": true}))
    });
    for key in ["arguments", "arguments_text", "fidelity", "candidates"] {
        if let Some(value) = call.get(key) {
            event[key] = value.clone();
        }
    }
    if let Some(candidate) = call.get("candidate") {
        let mut row = candidate.clone();
        row["contract_id"] = json!(format!("{TOOL}@2"));
        event["candidates"] = json!([row]);
    }
    if event.get("candidates").is_some() {
        event["type"] = json!("mirrored_call");
    }
    event
}

/// `lastcall try` on one call: exit code and report.
fn tried(scenario: &Value, call: &Value) -> (i32, Value) {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, value: &Value| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("{value}\n")).unwrap();
        path.into_os_string()
    };
    let side = |key: &str| definition(call.get(key).unwrap_or(&scenario[key]));
    let mut args: Vec<std::ffi::OsString> = vec![
        "try".into(),
        write("old.json", &side("old")),
        write("new.json", &side("new")),
        write("calls.jsonl", &event(call)),
        "--format".into(),
        "json".into(),
    ];
    if let Some(config) = scenario.get("config") {
        args.extend(["--config".into(), write("config.json", config)]);
    }
    let answer = run(&args);
    let report = serde_json::from_str(&answer.out).unwrap_or_else(|e| {
        panic!("{e}: exit {}\nstdout: {}\nstderr: {}", answer.code, answer.out, answer.err)
    });
    (answer.code, report)
}

/// The one result that the report counts.
fn result(report: &Value) -> &'static str {
    let results = ["agreed", "disagreed", "both_rejected", "excluded", "unresolved"];
    let counted: Vec<&str> = results.into_iter().filter(|r| report[*r] == json!(1)).collect();
    assert_eq!(report["calls"], json!(1), "{report:#}");
    match counted.as_slice() {
        [one] => results.into_iter().find(|r| r == one).unwrap(),
        other => panic!("one call has one result, not {other:?}: {report:#}"),
    }
}

fn found(report: &Value) -> Vec<(String, String, String)> {
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    let rows = report["categories"].as_array().unwrap();
    rows.iter().map(|r| (text(&r["category"]), text(&r["pointer"]), text(&r["severity"]))).collect()
}

fn exit_code(result: &str) -> i32 {
    match result {
        "agreed" => 0,
        "disagreed" => 1,
        _ => 3,
    }
}

#[test]
fn each_category_fires_once_and_its_near_miss_is_silent() {
    let mut failures = Vec::new();
    for category in Category::ALL {
        let name = category.as_str();
        if name.starts_with("adapter_") {
            continue;
        }
        let outcome = std::panic::catch_unwind(|| {
            let scenario = scenario(&folder().join(format!("{name}.yaml")));
            let severity = category.default_severity();

            let (code, report) = tried(&scenario, &scenario["fires"]);
            let wanted = (
                name.to_owned(),
                scenario["field"].as_str().unwrap().to_owned(),
                severity.as_str().to_owned(),
            );
            assert_eq!(found(&report), vec![wanted], "{name} has to fire, alone: {report:#}");
            let expected = if severity >= Severity::Warn { "disagreed" } else { "agreed" };
            assert_eq!(
                scenario.get("result").map_or(expected, |r| r.as_str().unwrap()),
                expected,
                "{name}: the file"
            );
            assert_eq!((result(&report), code), (expected, exit_code(expected)), "{name}");

            let near = &scenario["near_miss"];
            assert!(near["says"].is_string(), "{name}: a near miss says why it is silent");
            let (_, report) = tried(&scenario, near);
            let fired = found(&report);
            assert!(fired.iter().all(|(c, ..)| c != name), "{name}: the near miss fires: {report:#}");
            match near.get("result").and_then(Value::as_str) {
                Some(stated) => assert_eq!(result(&report), stated, "{name}, near miss: {report:#}"),
                None if scenario["result"] == json!("agreed") => {}
                None => assert_eq!(result(&report), "agreed", "{name}, near miss: {report:#}"),
            }
        });
        if let Err(panic) = outcome {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            failures.push(format!("{name}: {text}"));
        }
    }
    assert!(failures.is_empty(), "{} categories failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn each_reason_fires_once_and_its_near_miss_is_silent() {
    let mut failures = Vec::new();
    for reason in Reason::ALL {
        let name = reason.as_str();
        let path = folder().join("reasons").join(format!("{name}.yaml"));
        if NOT_FROM_A_FILE.iter().any(|(known, _)| *known == name) {
            assert!(!path.exists(), "{name} has a scenario: take it off the list");
            continue;
        }
        let outcome = std::panic::catch_unwind(|| {
            let scenario = scenario(&path);
            let (code, report) = tried(&scenario, &scenario["fires"]);
            assert_eq!(report["reasons"], json!({name: 1}), "{name}: {report:#}");
            let expected = scenario["result"].as_str().unwrap();
            assert_eq!((result(&report), code), (expected, exit_code(expected)), "{name}: {report:#}");
            assert_eq!(found(&report), vec![], "{name}: a call that is not compared has no discrepancy");

            let (code, report) = tried(&scenario, &scenario["near_miss"]);
            assert!(report.get("reasons").is_none_or(|r| r == &json!({})), "{name}, near miss: {report:#}");
            assert_eq!((result(&report), code), ("agreed", 0), "{name}, near miss: {report:#}");
        });
        if let Err(panic) = outcome {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            failures.push(format!("{name}: {text}"));
        }
    }
    assert!(failures.is_empty(), "{} reasons failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn no_scenario_is_left_over() {
    let known: Vec<&str> = Category::ALL.iter().map(|c| c.as_str()).collect();
    let reasons: Vec<&str> = Reason::ALL.iter().map(|r| r.as_str()).collect();
    for (folder, names) in [(folder(), known), (folder().join("reasons"), reasons)] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "yaml") {
                let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
                assert!(names.contains(&stem.as_str()), "{} is of no category or reason", path.display());
            }
        }
    }
}
