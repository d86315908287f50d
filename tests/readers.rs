//! DuckDB and Polars read what a ledger holds, and come to the same D as `decide`: the scripts of `examples/readers`,
//! which are what the guide shows to users, over a ledger that the real binary wrote.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lastcall_tests::services::python::{Environment, environment};
use lastcall_tests::{answer, lastcall, run};
use serde_json::Value;

const READERS: Environment =
    Environment { name: "readers-duckdb-2.0.1-polars-2.1.0", packages: &["duckdb==2.0.1", "polars==2.1.0"] };

/// Disagreed and compared calls by tool and day.
type Daily = BTreeMap<(String, String), (u64, u64)>;

struct Place {
    folder: tempfile::TempDir,
    python: PathBuf,
}

impl Place {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn lastcall(&self, line: &str) -> String {
        let answer = answer(lastcall().args(line.split(' ')).current_dir(self.folder.path()));
        assert!(matches!(answer.code, 0 | 1 | 3), "lastcall {line}: {}\n{}", answer.code, answer.err);
        answer.out
    }

    /// A script of the examples, with this on its standard input.
    fn script(&self, name: &str, args: &[&str], input: &str) -> Vec<Value> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/readers").join(name);
        let mut child = Command::new(&self.python)
            .arg(script)
            .args(args)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    /// What `decide` says of every tool's days.
    fn decided(&self) -> Daily {
        let verdicts: Value =
            serde_json::from_str(&self.lastcall("decide --all --ledger led --format json")).unwrap();
        let mut daily = Daily::new();
        for verdict in verdicts.as_array().unwrap() {
            for day in verdict["days"].as_array().unwrap() {
                let key = (verdict["tool_id"].as_str().unwrap().into(), day["day"].as_str().unwrap().into());
                let disagreed = day["disagreed"].as_u64().unwrap();
                daily.insert(key, (disagreed, day["compared"].as_u64().unwrap()));
            }
        }
        daily
    }
}

fn daily(lines: Vec<Value>) -> Daily {
    let count = |line: &Value, name: &str| line[name].as_u64().unwrap();
    lines
        .iter()
        .map(|line| {
            let key = (line["tool_id"].as_str().unwrap().into(), line["day"].as_str().unwrap().into());
            (key, (count(line, "disagreed"), count(line, "compared")))
        })
        .collect()
}

/// A list that is empty, and a question that is none, get a sentence and no traceback.
#[test]
fn readers_say_what_is_missing() {
    let Some(python) = environment(READERS, "DuckDB and Polars do not read the ledger") else { return };
    for reader in ["daily_d_duckdb.py", "daily_d_polars.py"] {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/readers").join(reader);
        for (args, says) in [
            (&[][..], "results, days or commitments"),
            (&["weeks"], "results, days or commitments"),
            (&["days"], "the list of days is empty"),
            (&["results"], "the list of results is empty"),
            (&["commitments", "/dev/null"], "takes two files"),
            (&["commitments", "/dev/null", "/dev/null"], "the list of calls is empty"),
        ] {
            let done = Command::new(&python).arg(&script).args(args).stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(!done.status.success() && said.contains(says), "{reader} {args:?}: {said}");
            assert!(!said.contains("Traceback"), "{said}");
        }
    }
}

/// The demo's calls, some of them twice, and some again with arguments that the candidate refuses.
fn repeated(calls: &str) -> String {
    let mut lines = Vec::new();
    for (number, line) in calls.lines().enumerate() {
        lines.push(line.to_owned());
        let Ok(mut record) = serde_json::from_str::<Value>(line) else { continue };
        if record["type"] != "mirrored_call" {
            continue;
        }
        if number % 7 == 0 {
            lines.push(line.to_owned());
        }
        if number % 31 == 0 {
            record["arguments"] = serde_json::json!({ "unheard_of": number });
            lines.push(record.to_string());
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn duckdb_and_polars_come_to_the_same_daily_rates() {
    let Some(python) = environment(READERS, "DuckDB and Polars do not read the ledger") else { return };
    let place = Place { folder: tempfile::tempdir().unwrap(), python };
    let demo = run(&["demo", "--open", "no", "--out", &place.path("demo")]);
    assert_eq!(demo.code, 0, "{}", demo.err);
    let calls = std::fs::read_to_string(place.path("demo/calls.jsonl")).unwrap();
    std::fs::write(place.path("calls.jsonl"), repeated(&calls)).unwrap();
    place.lastcall("ledger init led --clock simulated");
    let registry = "--registry demo/agent-tools --ledger led";
    for tool in ["orders.lookup", "refund.create_request", "sms.send"] {
        place.lastcall(&format!("plan observe {tool}@1.0.0 {tool}@2.0.0 {registry}"));
        place.lastcall(&format!("plan register {tool} --from 2026-06-01 {registry}"));
    }
    place.lastcall("run --ledger led --chunk-records 1000 calls.jsonl");
    place.lastcall("ledger compact led");

    let decided = place.decided();
    let (k, n) = decided.values().fold((0, 0), |(k, n), (dk, dn)| (k + dk, n + dn));
    assert_eq!(decided.len(), 3 * 14, "three tools over fourteen days");
    assert!(k > 0 && k < n, "{k} of {n}: both kinds of rows are there");
    let list = |kind: &str| place.lastcall(&format!("ledger files led --kind {kind}"));
    let (results, days) = (list("results"), list("days"));
    assert!(results.lines().count() > 1 && days.lines().count() >= 42, "{results}{days}");
    for (name, lines) in [("calls.list", list("calls")), ("results.list", results.clone())] {
        std::fs::write(place.path(name), lines).unwrap();
    }
    for reader in ["daily_d_duckdb.py", "daily_d_polars.py"] {
        assert_eq!(daily(place.script(reader, &["results"], &results)), decided, "{reader} over results");
        assert_eq!(daily(place.script(reader, &["days"], &days)), decided, "{reader} over days");
        let opened = place.script(reader, &["commitments", "calls.list", "results.list"], "");
        let count = |name: &str| opened[0][name].as_u64().unwrap();
        assert!(count("calls") > 5_000 && count("opened") == count("calls"), "{reader}: {opened:?}");
        println!(
            "{reader}: D of {} days of 3 tools equal from results and from days ({k} of {n} disagreed), {} of {} \
             commitments opened",
            decided.len(),
            count("opened"),
            count("calls"),
        );
    }
}
