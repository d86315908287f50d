//! From a pair to a verdict with the real binary: what is fixed beforehand, what counts, exit codes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;
use std::path::Path;

use lastcall_event::Day;
use lastcall_tests::lastcall;
use serde_json::{Value, json};
use tempfile::TempDir;

const OLD: &str = r#"{"name":"search","description":"Search.","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"unit":{"type":"string","enum":["c","f","k"]}},"required":["q"]}}"#;
const NEW: &str = r#"{"name":"search","description":"Search.","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"unit":{"type":"string","enum":["c","f"]}},"required":["q"]}}"#;
const SECRET: &str = "k";

struct Bench {
    dir: TempDir,
}

/// Exit code, standard output, standard error.
type Said = (i32, String, String);

impl Bench {
    fn new(clock: &str) -> Self {
        let bench = Self { dir: TempDir::new().unwrap() };
        bench.write("old.json", OLD);
        bench.write("new.json", NEW);
        bench.write("policy.yaml", "burn_in: {tier: T1, profile: article, min_calls: 100}");
        bench.ok(&["ledger", "init", "led", "--clock", clock]);
        bench
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn run(&self, args: &[&str]) -> Said {
        let done =
            lastcall().args(args).current_dir(self.path()).env("LASTCALL_LEDGER", "led").output().unwrap();
        let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
        (done.status.code().unwrap(), text(&done.stdout), text(&done.stderr))
    }

    fn ok(&self, args: &[&str]) -> String {
        let (code, out, err) = self.run(args);
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        out
    }

    fn observe(&self) {
        self.ok(&["plan", "observe", "old.json", "new.json", "--versions", "1", "2"]);
    }

    fn register(&self) {
        self.ok(&["plan", "register", "search", "--policy", "policy.yaml", "--from", "2026-06-01"]);
    }

    fn decide(&self) -> (i32, Value) {
        let (code, out, err) = self.run(&["decide", "search", "--format", "json", "--dry-run"]);
        (code, serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}")))
    }

    fn control_entries(&self) -> usize {
        std::fs::read_dir(self.path().join("led/chains/control")).unwrap().count()
    }
}

/// `days` days of `n` calls from 2026-06-01, the first `k` of each with a value that the candidate refuses, each day
/// ended by a clock record.
fn calls(days: i32, n: usize, k: usize, prefix: &str) -> String {
    let first = Day::parse("2026-06-01").unwrap();
    let mut out = String::new();
    for day in (0..days).map(|d| first.plus(d)) {
        for i in 0..n {
            let unit = if i < k { SECRET } else { "c" };
            let call = json!({
                "type": "tool_call", "schema_version": 1, "call_id": format!("{prefix}-{day}-{i}"),
                "ts": format!("{day}T10:{:02}:{:02}Z", i / 60 % 60, i % 60), "tool_id": "search",
                "contract_id": "search@1", "arguments": {"q": "x", "unit": unit}, "outcome": {"status": "ok"},
                "envelope": {"agent_id": "a", "session_id": format!("s{i}")}
            });
            writeln!(out, "{call}").unwrap();
        }
        let clock = json!({"type": "clock", "schema_version": 1, "ts": format!("{}T01:00:00Z", day.plus(1))});
        writeln!(out, "{clock}").unwrap();
    }
    out
}

fn check<'a>(verdict: &'a Value, id: &str) -> &'a str {
    let checks = verdict["checks"].as_array().unwrap();
    checks.iter().find(|c| c["id"] == id).and_then(|c| c["result"].as_str()).unwrap()
}

#[test]
fn ready_not_ready_insufficient_and_error_by_their_exit_codes() {
    for (days, n, k, code, answer) in [
        (6, 40, 0, 0, "READY"),
        (6, 40, 2, 1, "NOT_READY"),
        (6, 10, 0, 3, "INSUFFICIENT"),
        (4, 40, 0, 3, "INSUFFICIENT"),
    ] {
        let bench = Bench::new("simulated");
        bench.observe();
        bench.register();
        bench.write("calls.jsonl", &calls(days, n, k, "c"));
        bench.ok(&["run", "calls.jsonl"]);
        let (exit, verdict) = bench.decide();
        assert_eq!((exit, verdict["verdict"].as_str().unwrap()), (code, answer), "{verdict:#}");
        assert_eq!(verdict["totals"]["calls"], days as u64 * n as u64);
        assert_eq!(verdict["totals"]["days"], days);
        assert!(verdict["flags"].as_array().unwrap().iter().any(|f| f["text"] == "SIMULATED"));
        let (all, ..) = bench.run(&["decide", "--all"]);
        assert_eq!(all, code);
    }
}

#[test]
fn an_altered_record_is_an_error() {
    let bench = Bench::new("simulated");
    bench.observe();
    bench.register();
    bench.write("calls.jsonl", &calls(6, 40, 0, "c"));
    bench.ok(&["run", "calls.jsonl"]);
    let results = bench.path().join("led/results");
    let file = std::fs::read_dir(results).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let (code, verdict) = bench.decide();
    assert_eq!((code, verdict["verdict"].as_str().unwrap()), (4, "ERROR"));
    assert_eq!(verdict["problems"][0]["reason"], "record_altered");
    for args in [&["status"][..], &["status", "search"], &["status", "--format", "json"]] {
        let (code, out, _) = bench.run(args);
        assert!(code == 4 && out.contains("ERROR"), "{args:?}: {code} {out}");
    }
}

#[test]
fn the_same_record_gives_the_same_bytes_and_is_recorded_once() {
    let bench = Bench::new("simulated");
    bench.observe();
    bench.register();
    bench.write("calls.jsonl", &calls(6, 40, 0, "c"));
    bench.ok(&["run", "calls.jsonl"]);
    let before = bench.control_entries();
    let (_, first, _) = bench.run(&["decide", "search", "--format", "json"]);
    assert_eq!(bench.control_entries(), before + 1);
    let (_, second, _) = bench.run(&["decide", "search", "--format", "json"]);
    assert_eq!(first, second);
    assert_eq!(bench.control_entries(), before + 1, "the same verdict is recorded once");
    // A repeat of the whole file under another name changes nothing but the count of duplicates.
    bench.write("again.jsonl", &calls(6, 40, 0, "c"));
    bench.ok(&["run", "again.jsonl"]);
    let (code, verdict) = bench.decide();
    assert_eq!(code, 0);
    assert_eq!((&verdict["totals"]["compared"], &verdict["totals"]["duplicate"]), (&json!(240), &json!(240)));
}

/// Invariant 5: only what was recorded under the registration is scored.
#[test]
fn what_was_recorded_before_the_registration_is_unresolved() {
    for observed in [true, false] {
        let bench = Bench::new("simulated");
        // Before the first clock record a stated day may be scored, so the calls come before their registration.
        let early = calls(3, 40, 0, "c")
            .lines()
            .filter(|l| !l.contains("\"clock\""))
            .fold(String::new(), |a, l| a + l + "\n");
        bench.write("early.jsonl", &early);
        if observed {
            bench.observe();
        }
        bench.ok(&["run", "early.jsonl", "--final"]);
        if !observed {
            bench.observe();
        }
        bench.register();
        bench.write("rest.jsonl", &calls(6, 40, 0, "d"));
        bench.ok(&["run", "rest.jsonl"]);
        let (_, verdict) = bench.decide();
        let totals = &verdict["totals"];
        assert_eq!(totals["unresolved"], 120, "observed before: {observed}");
        assert_eq!(totals["reasons"]["not_observed"], 120);
        assert_eq!((&totals["compared"], &totals["calls"]), (&json!(240), &json!(360)));
    }
}

#[test]
fn a_past_day_and_a_second_window_are_refused() {
    let bench = Bench::new("system");
    bench.observe();
    let (code, _, err) =
        bench.run(&["plan", "register", "search", "--policy", "policy.yaml", "--from", "2020-06-01"]);
    assert_eq!(code, 2);
    assert!(err.contains("what has begun cannot be scored") && err.contains("lastcall try"), "{err}");
    bench.ok(&["plan", "register", "search", "--policy", "policy.yaml"]);
    let (code, _, err) = bench.run(&["plan", "register", "search", "--policy", "policy.yaml"]);
    assert_eq!(code, 2);
    assert!(err.contains("one window at a time"), "{err}");
    bench.ok(&["plan", "register", "search", "--policy", "policy.yaml", "--replace"]);
    let (code, verdict) = bench.decide();
    assert_eq!(code, 3);
    assert_eq!(verdict["earlier_windows"][0]["ended"], "replaced by a new registration");
}

#[test]
fn plans_that_cannot_be_judged_are_refused() {
    let bench = Bench::new("simulated");
    bench.observe();
    for (policy, needle) in [
        ("burn_in: {tier: T2, profile: strict}", "strict.yaml:1:30: `profile: strict` is not in this build"),
        ("burn_in: {tier: T2}", "the default, where `profile` is left out"),
        (
            "burn_in: {profile: article, celing: 0.1}",
            "strict.yaml:1:29: unknown key `celing`; did you mean `ceiling`?",
        ),
    ] {
        bench.write("strict.yaml", policy);
        let before = bench.control_entries();
        let (code, _, err) =
            bench.run(&["plan", "register", "search", "--policy", "strict.yaml", "--from", "2026-06-01"]);
        assert_eq!(code, 2);
        assert!(err.contains(needle), "{err}");
        assert_eq!(bench.control_entries(), before);
    }
    let (code, _, err) =
        bench.run(&["plan", "register", "serch", "--policy", "policy.yaml", "--from", "2026-06-01"]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean `search`?"), "{err}");
}

#[test]
fn planted_faults_come_back_and_never_enter_d() {
    let bench = Bench::new("simulated");
    bench.observe();
    bench.register();
    bench.write("sample.json", r#"{"arguments":{"q":"x","unit":"c"},"ts":"2026-06-03T10:00:00Z"}"#);
    bench.ok(&["plan", "plant", "search", "--sample", "sample.json", "--to", "plants.jsonl"]);
    bench.write("calls.jsonl", &calls(6, 40, 0, "c"));
    bench.ok(&["run", "calls.jsonl"]);
    bench.ok(&["run", "plants.jsonl", "--final"]);
    let (code, verdict) = bench.decide();
    assert_eq!(code, 0, "{verdict:#}");
    let planted = &verdict["planted"];
    assert_eq!(
        (&planted["committed"], &planted["seen"], &planted["missed"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert_eq!(verdict["totals"]["calls"], 240);
    // What this build would not report is not planted.
    bench.write(
        "wrong.jsonl",
        r#"{"call":{"arguments":{"q":"x"},"ts":"2026-06-03T10:00:00Z"},"expect":{"category":"type_changed","severity":"block"}}"#,
    );
    let before = bench.control_entries();
    let (code, _, err) =
        bench.run(&["plan", "plant", "search", "--calls", "wrong.jsonl", "--to", "plants.jsonl"]);
    assert_eq!(code, 2);
    assert!(err.contains("expected to be type_changed/block"), "{err}");
    assert_eq!(bench.control_entries(), before);
}

#[test]
fn values_are_shown_only_when_asked_and_never_recorded() {
    let bench = Bench::new("simulated");
    bench.observe();
    bench.register();
    bench.write("calls.jsonl", &calls(6, 40, 2, "c"));
    bench.ok(&["run", "calls.jsonl"]);
    let (_, out, _) = bench.run(&["decide", "search", "--format", "json"]);
    let hidden: Value = serde_json::from_str(&out).unwrap();
    assert!(hidden["categories"][0]["example"].get("value").is_none());
    let (_, out, _) = bench.run(&["decide", "search", "--format", "json", "--show-values"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["categories"][0]["example"]["value"], format!("\"{SECRET}\""));
    let (_, page, _) = bench.run(&["decide", "search", "--format", "html"]);
    assert!(page.starts_with("<!DOCTYPE html>") && !page.contains("value <code>"));
}

#[test]
fn retire_and_delete_say_what_is_missing() {
    let bench = Bench::new("simulated");
    bench.observe();
    bench.register();
    bench.write("calls.jsonl", &calls(6, 40, 0, "c"));
    bench.ok(&["run", "calls.jsonl"]);
    for question in ["retire", "delete"] {
        let (code, out, _) = bench.run(&["decide", "search", "--for", question, "--format", "json"]);
        assert_eq!(code, 3);
        let verdict: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(check(&verdict, "dependents"), "insufficient");
    }
}

#[test]
fn status_is_one_line_a_tool() {
    let bench = Bench::new("simulated");
    for i in 0..40 {
        let name = format!("tool{i:02}");
        let versions = ["plan", "observe", "old.json", "new.json", "--tool", &name, "--versions", "1", "2"];
        bench.write("old.json", &OLD.replace("\"search\"", &format!("\"{name}\"")));
        bench.write("new.json", &NEW.replace("\"search\"", &format!("\"{name}\"")));
        bench.ok(&versions);
    }
    let out = bench.ok(&["status"]);
    assert_eq!(out.lines().count(), 41);
    assert!(out.lines().skip(1).all(|l| l.starts_with("tool") && l.contains("observed")), "{out}");
}
