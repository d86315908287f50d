//! What a hostile review of the record found, each through the real binary: wrong READY most of all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;

use lastcall_tests::lastcall;
use serde_json::{Value, json};

struct Setup {
    dir: tempfile::TempDir,
}

impl Setup {
    fn new(clock: &str, calls: &[Value]) -> Self {
        let setup = Self { dir: tempfile::tempdir().unwrap() };
        let tool = |extra: &str| json!({"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}, extra: {"type": "string"}}}});
        std::fs::write(setup.path("old.json"), tool("b").to_string()).unwrap();
        std::fs::write(
            setup.path("new.json"),
            tool("b").to_string().replace("\"t\"", "\"t\", \"title\": \"T\""),
        )
        .unwrap();
        std::fs::write(setup.path("policy.yaml"), "burn_in: {tier: T1, profile: article}\n").unwrap();
        let lines: Vec<String> = calls.iter().map(Value::to_string).collect();
        std::fs::write(setup.path("calls.jsonl"), lines.join("\n") + "\n").unwrap();
        setup.ok(&["ledger", "init", "led", "--clock", clock]);
        setup.ok(&["plan", "observe", "old.json", "new.json", "--tool", "t", "--ledger", "led"]);
        setup
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, args: &[&str]) -> (i32, String) {
        let done = lastcall().current_dir(self.dir.path()).args(args).output().unwrap();
        let text =
            String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        (done.status.code().unwrap_or(-1), text)
    }

    fn ok(&self, args: &[&str]) -> String {
        let (code, text) = self.run(args);
        assert_eq!(code, 0, "{args:?}: {text}");
        text
    }

    fn register(&self, from: &str) {
        self.ok(&["plan", "register", "t", "--policy", "policy.yaml", "--from", from, "--ledger", "led"]);
    }
}

fn call(day: u32, n: u32) -> Value {
    json!({"type": "tool_call", "schema_version": 1, "call_id": format!("c{day}/{n}"),
        "ts": format!("2026-06-{day:02}T10:00:00Z"), "tool_id": "t", "contract_id": "t@1", "arguments": {"a": "x"},
        "outcome": {"status": "ok"}})
}

/// Five clean days of a hundred calls: READY under T1.
fn clean() -> Vec<Value> {
    let mut calls: Vec<Value> = (1..=5).flat_map(|day| (0..100).map(move |n| call(day, n))).collect();
    calls.push(json!({"type": "clock", "schema_version": 1, "ts": "2026-06-06T02:00:00Z"}));
    calls
}

fn ready() -> Setup {
    let s = Setup::new("simulated", &clean());
    s.register("2026-06-01");
    s.ok(&["run", "--ledger", "led", "calls.jsonl"]);
    s
}

#[test]
fn the_clean_window_is_ready_with_final_too() {
    let s = ready();
    let (code, text) = s.run(&["decide", "t", "--ledger", "led"]);
    assert!(code == 0 && text.contains("READY") && text.contains("SIMULATED"), "{text}");
    let s = Setup::new("simulated", &clean());
    s.register("2026-06-01");
    s.ok(&["run", "--ledger", "led", "--final", "calls.jsonl"]);
    let (code, text) = s.run(&["decide", "t", "--ledger", "led"]);
    assert_eq!(code, 0, "a day that has only begun is no day of the record: {text}");
    std::fs::write(
        s.path("calls.jsonl"),
        std::fs::read_to_string(s.path("calls.jsonl")).unwrap() + &call(5, 999).to_string() + "\n",
    )
    .unwrap();
    let (code, text) = s.run(&["run", "--ledger", "led", "calls.jsonl"]);
    assert!(code == 2 && text.contains("--final"), "{code} {text}");
}

#[test]
fn simulated_time_cannot_be_passed_off_as_real() {
    let s = ready();
    let path = s.path("led/ledger.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("simulated", "system")).unwrap();
    assert_eq!(s.run(&["decide", "t", "--ledger", "led"]).0, 4);
    assert_eq!(s.run(&["ledger", "verify", "led"]).0, 1);
}

#[test]
fn a_rewritten_rule_is_seen() {
    let s = ready();
    let control = s.path("led/chains/control");
    let mut entries: Vec<_> = std::fs::read_dir(&control).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    let at =
        entries.iter().position(|p| std::fs::read_to_string(p).unwrap().contains("\"register\"")).unwrap();
    let mut previous: Option<String> = None;
    for path in &entries[at..] {
        let mut entry: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        match &previous {
            None => entry["body"]["scored_from"] = json!("2026-06-02"),
            Some(digest) => entry["previous"] = json!(digest),
        }
        let text = entry.to_string();
        std::fs::write(path, &text).unwrap();
        previous = Some(lastcall_contract::Digest::of(text.as_bytes()).to_string());
    }
    let (code, text) = s.run(&["decide", "t", "--ledger", "led"]);
    assert!(code == 4 && text.contains("rewritten"), "{code} {text}");
    assert_eq!(s.run(&["run", "--ledger", "led", "calls.jsonl"]).0, 4);
    assert_eq!(s.run(&["ledger", "verify", "led"]).0, 1);
}

#[test]
fn no_day_closes_before_it_is_over() {
    let soon = |days: i64| {
        let at = chrono::Utc::now() + chrono::Duration::days(days);
        at.format("%Y-%m-%d").to_string()
    };
    let calls: Vec<Value> = (1..=5)
        .flat_map(|day| (0..100).map(move |n| (day, n)))
        .map(|(day, n)| {
            let mut call = call(1, n);
            call["call_id"] = json!(format!("f{day}/{n}"));
            call["ts"] = json!(format!("{}T10:00:00Z", soon(day)));
            call
        })
        .collect();
    let s = Setup::new("system", &calls);
    s.register(&soon(1));
    s.ok(&["run", "--ledger", "led", "--final", "calls.jsonl"]);
    let (code, text) = s.run(&["decide", "t", "--ledger", "led"]);
    assert_eq!(code, 3, "{text}");
}

#[test]
fn hostile_times_ids_and_counts_become_dead_or_are_survived() {
    let mut calls = clean();
    let mut odd = call(5, 500);
    odd["ts"] = json!("9999-12-31T23:59:59-05:00");
    calls.push(odd);
    for (key, value) in [("tool_id", "t\u{1b}[31m".to_owned()), ("call_id", "x".repeat(2000))] {
        let mut odd = call(5, 501);
        odd[key] = json!(value);
        calls.push(odd);
    }
    let interval = json!({"from": "2026-05-01T00:00:00Z", "to": "2026-05-01T01:00:00Z"});
    for _ in 0..3 {
        calls.push(json!({"type": "loss", "schema_version": 1, "tool_id": "t", "count": u64::MAX, "interval": interval}));
        calls.push(json!({"type": "coverage", "schema_version": 1, "tool_id": "t", "hour": "2026-06-01T00:00:00Z", "count": u64::MAX}));
    }
    let s = Setup::new("simulated", &calls);
    s.register("2026-06-01");
    let text = s.ok(&["run", "--ledger", "led", "calls.jsonl"]);
    assert!(text.contains("3 dead"), "{text}");
    s.ok(&["ledger", "verify", "led"]);
    let (code, text) = s.run(&["decide", "t", "--ledger", "led"]);
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn what_was_lost_in_the_window_is_unresolved_on_each_of_its_days() {
    let mut calls = clean();
    let interval = json!({"from": "2026-05-31T23:00:00Z", "to": "2026-06-05T23:00:00Z"});
    calls.insert(
        0,
        json!({"type": "loss", "schema_version": 1, "tool_id": "t", "count": 100, "interval": interval}),
    );
    let s = Setup::new("simulated", &calls);
    s.register("2026-06-01");
    s.ok(&["run", "--ledger", "led", "calls.jsonl"]);
    let (_, text) = s.run(&["decide", "t", "--ledger", "led", "--format", "json"]);
    assert!(text.matches("\"unresolved\": 100").count() >= 5, "{text}");
}

#[test]
fn another_definition_or_missing_mirror_rows_are_insufficient() {
    let mut calls = clean();
    for call in &mut calls {
        if call["type"] == "tool_call" {
            call["contract_digest"] = json!(format!("sha256:{}", "0".repeat(64)));
        }
    }
    let s = Setup::new("simulated", &calls);
    s.register("2026-06-01");
    s.ok(&["run", "--ledger", "led", "calls.jsonl"]);
    let (code, text) = s.run(&["decide", "t", "--ledger", "led"]);
    assert!(code == 3 && text.contains("another definition"), "{code} {text}");

    let mut position = 0;
    let mirrored: Vec<Value> = clean()
        .into_iter()
        .map(|mut call| {
            if call["type"] == "tool_call" {
                call["type"] = json!("mirrored_call");
                call["candidates"] = json!([{"contract_id": "t@2", "status": "not_run"}]);
                call["upstream"] =
                    json!({"from": position, "to": position + 1, "through": "2026-06-06T02:00:00Z"});
                position += 50;
            }
            call
        })
        .collect();
    let s = Setup::new("simulated", &mirrored);
    s.register("2026-06-01");
    s.ok(&["run", "--ledger", "led", "calls.jsonl"]);
    let (code, text) = s.run(&["decide", "t", "--ledger", "led"]);
    assert!(code == 3 && text.contains("upstream positions"), "{code} {text}");
}

#[test]
fn an_altered_definition_is_an_error_and_a_pipe_is_refused() {
    let s = ready();
    let objects = s.path("led/objects");
    for entry in std::fs::read_dir(&objects).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("\"title\"") {
            std::fs::write(&path, text.replace("\"T\"", "\"U\"")).unwrap();
        }
    }
    assert_eq!(s.run(&["decide", "t", "--ledger", "led"]).0, 4);
    if Path::new("/dev/null").exists() {
        let s = ready();
        let (code, text) = s.run(&["run", "--ledger", "led", "/dev/null"]);
        assert!(code == 2 && text.contains("no regular file"), "{code} {text}");
    }
}

#[test]
fn calls_are_found_inside_messages() {
    let s = Setup::new("simulated", &[]);
    let strict =
        json!({"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}});
    std::fs::write(s.path("strict.json"), strict.to_string()).unwrap();
    let args = json!({"a": "x"});
    let text = args.to_string();
    let lines = [
        json!({"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "t", "arguments": text}}]}),
        json!({"choices": [{"message": {"tool_calls": [{"id": "2", "function": {"name": "t", "arguments": text}}]}}]}),
        json!({"output": [{"type": "reasoning"}, {"type": "function_call", "call_id": "3", "name": "t", "arguments": text}]}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "4", "name": "t", "input": args}]}),
        json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "t", "args": args}}]}}]}),
        json!({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [{"function": {"name": "t", "arguments": text}}]}]}),
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t", "arguments": args}}),
        json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "t"}}),
        json!({"jsonrpc": "2.0", "id": 9, "method": "prompts/get", "params": {"name": "t", "arguments": args}}),
        json!({"type": "function", "function": {"name": "t", "arguments": text}, "timestamp": 1780272000}),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(s.path("log.jsonl"), lines.join("\n")).unwrap();
    let (code, out) = s.run(&["try", "old.json", "strict.json", "log.jsonl", "--format", "json"]);
    let start = out.find('{').unwrap();
    let report: Value =
        serde_json::Deserializer::from_str(&out[start..]).into_iter().next().unwrap().unwrap();
    assert_eq!(code, 1);
    assert_eq!((report["calls"].as_u64(), report["refused"].as_u64()), (Some(9), Some(8)), "{out}");
    assert_eq!(report["undecodable"], 0);
    assert_eq!(report["days"][0]["day"], "2026-06-01");
}
