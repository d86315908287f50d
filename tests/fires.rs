//! Every category and every reason fires once through the real binary, and its near miss stays silent. One readable
//! file a category in `scenarios/`, one a reason in `scenarios/reasons/`.
//!
//! A file: `old` and `new` are input schemas (or `{inputSchema, outputSchema}`), `fires` and `near_miss` are calls:
//! `arguments` or `arguments_text`, `outcome` (default: executed, ok, unless stated), and for a mirrored call
//! `candidate`. A near miss may have another `old` or `new`, says why it is silent, and gives `result` where the call
//! does not simply agree.
//!
//! `scenarios/behaviours/`: one file a named behaviour, with lists `fires` and `near_misses`. Each call states all that
//! it shows: `result`, `shows` (a line each: severity, category, place, `refused`, what else is told; `*` for an index)
//! and `rules` (normalization rules that turned a difference into agreement); or the `error` that is told. `config` is
//! the pair's configuration, `normalization` the text of the registry's normalization.yaml.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};

use lastcall_compare::{Category, Reason, Severity};
use lastcall_tests::{Answer, run};
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
    for key in ["arguments", "arguments_text", "fidelity", "candidates", "contract_id"] {
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

/// `lastcall try` on one call.
fn answered(scenario: &Value, call: &Value) -> Answer {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, value: &Value| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("{value}\n")).unwrap();
        path.into_os_string()
    };
    let of = |key: &str| call.get(key).or_else(|| scenario.get(key));
    let side = |key: &str| definition(of(key).unwrap());
    let calls = write("calls.jsonl", &event(call));
    let mut args: Vec<std::ffi::OsString> = vec!["try".into()];
    match of("normalization") {
        Some(text) => {
            let tool = dir.path().join(TOOL);
            write(&format!("{TOOL}/schemas/v1.json"), &side("old"));
            write(&format!("{TOOL}/schemas/v2.json"), &side("new"));
            std::fs::write(tool.join("tool.yaml"), format!("tool_id: {TOOL}\n")).unwrap();
            if text != "" {
                std::fs::write(tool.join("normalization.yaml"), text.as_str().unwrap()).unwrap();
            }
            args.extend([format!("{TOOL}@1").into(), format!("{TOOL}@2").into(), calls]);
            args.extend(["--registry".into(), dir.path().as_os_str().to_owned()]);
        }
        None => args.extend([write("old.json", &side("old")), write("new.json", &side("new")), calls]),
    }
    args.extend(["--format".into(), "json".into()]);
    if let Some(config) = of("config") {
        args.extend(["--config".into(), write("config.json", config)]);
    }
    run(&args)
}

/// Exit code and report of `lastcall try` on one call.
fn tried(scenario: &Value, call: &Value) -> (i32, Value) {
    let answer = answered(scenario, call);
    let report = serde_json::from_str(&answer.out).unwrap_or_else(|e| {
        panic!("{e}: exit {}\nstdout: {}\nstderr: {}", answer.code, answer.out, answer.err)
    });
    (answer.code, report)
}

/// What the report shows, one line each: `block type_changed at /id, refused: what else is known`.
fn shown(report: &Value) -> Vec<String> {
    let rows = report["categories"].as_array().unwrap();
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            let refused = if row["refused"] == json!(0) { "" } else { ", refused" };
            let note = row["note"].as_str().map_or(String::new(), |note| format!(": {note}"));
            format!("{} {} at {}{refused}{note}", text("severity"), text("category"), text("pointer"))
        })
        .collect();
    lines.sort();
    lines
}

fn listed(call: &Value, key: &str) -> Vec<String> {
    let list = call.get(key).and_then(Value::as_array);
    let mut list: Vec<String> = list.into_iter().flatten().map(|v| v.as_str().unwrap().to_owned()).collect();
    list.sort();
    list
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

/// The behaviours of part 2's comparator, each with a file.
const BEHAVIOURS: [&str; 19] = [
    "absent_is_null",
    "coerces",
    "currency",
    "dates",
    "enum_case",
    "fills_defaults",
    "mcp_results",
    "nested_places",
    "normalization_file",
    "numeric_strings",
    "property_names",
    "rename_declared",
    "rename_inferred",
    "unevaluated_items",
    "unevaluated_properties",
    "union_best_branch",
    "units",
    "unordered",
    "verbatim",
];

#[test]
fn each_behaviour_shows_what_its_file_states() {
    let mut failures = Vec::new();
    for name in BEHAVIOURS {
        let scenario = scenario(&folder().join("behaviours").join(format!("{name}.yaml")));
        assert!(scenario["says"].is_string(), "{name}: says what it is about");
        for list in ["fires", "near_misses"] {
            let calls = scenario[list].as_array().unwrap_or_else(|| panic!("{name} has no {list}"));
            assert!(!calls.is_empty(), "{name}: {list}");
            for call in calls {
                let says =
                    call["says"].as_str().unwrap_or_else(|| panic!("{name}: a call says what it shows"));
                let answer = answered(&scenario, call);
                if let Some(error) = call.get("error") {
                    let error = error.as_str().unwrap();
                    if answer.code != 2 || !answer.err.contains(error) || !answer.out.is_empty() {
                        failures.push(format!(
                            "{name}, {says}\n  want {error}\n  got  {} {}",
                            answer.code, answer.err
                        ));
                    }
                    continue;
                }
                let Ok(report) = serde_json::from_str::<Value>(&answer.out) else {
                    failures.push(format!("{name}, {says}\n  exit {}: {}", answer.code, answer.err));
                    continue;
                };
                let rules: Vec<String> = report
                    .get("rules")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(|r| r.keys().cloned())
                    .collect();
                let got = (result(&report), shown(&report), rules, answer.code);
                let stated = call["result"].as_str().unwrap_or_default();
                let want = (stated, listed(call, "shows"), listed(call, "rules"), exit_code(stated));
                if got != want {
                    failures.push(format!("{name}, {says}\n  want {want:?}\n  got  {got:?}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} calls failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn no_scenario_is_left_over() {
    let known: Vec<&str> = Category::ALL.iter().map(|c| c.as_str()).collect();
    let reasons: Vec<&str> = Reason::ALL.iter().map(|r| r.as_str()).collect();
    let behaviours = BEHAVIOURS.to_vec();
    let all =
        [(folder(), known), (folder().join("reasons"), reasons), (folder().join("behaviours"), behaviours)];
    for (folder, names) in all {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "yaml") {
                let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
                assert!(names.contains(&stem.as_str()), "{} is of no category or reason", path.display());
            }
        }
    }
}
