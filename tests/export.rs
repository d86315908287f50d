//! An export: the same verdict to the byte on a folder that holds one tool's record alone, nothing written to it, every
//! alteration found; and the lines of `ledger show`, checked by the script of the guide.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use lastcall_event::Day;
use lastcall_ledger::export::export;
use lastcall_ledger::store::{Bytes, Created, MemoryStore, Store, StoreError};
use lastcall_ledger::verify::{Asked, Outcome, verify};
use lastcall_ledger::{Ledger, LedgerError};
use lastcall_tests::tamper::{self, Came};
use lastcall_tests::{Answer, answer, lastcall};
use serde_json::Value;
use tempfile::TempDir;

type Files = BTreeMap<String, Vec<u8>>;

/// Every file below a folder, by its path in it.
fn files(folder: &Path) -> Files {
    let mut out = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                out.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    out
}

struct Bench(TempDir);

impl Bench {
    /// A ledger with two tools, two sources, repeats, a late call, a planted call, a recorded verdict and an open day.
    fn new(clock: &str) -> Self {
        let bench = Self(TempDir::new().unwrap());
        for tool in ["search", "send"] {
            let schema = |units: &str| {
                format!(
                    r#"{{"name":"{tool}","description":"x","inputSchema":{{"type":"object","properties":{{"q":{{"type":"string"}},"unit":{{"type":"string","enum":[{units}]}}}},"required":["q"]}}}}"#
                )
            };
            bench.write(&format!("{tool}-old.json"), &schema(r#""c","f","k""#));
            bench.write(&format!("{tool}-new.json"), &schema(r#""c","f""#));
        }
        bench.write("policy.yaml", "burn_in: {tier: T1, profile: article, min_calls: 10}");
        bench.ok(&["ledger", "init", "led", "--clock", clock]);
        for tool in ["search", "send"] {
            let (old, new) = (format!("{tool}-old.json"), format!("{tool}-new.json"));
            bench.ok(&["plan", "observe", &old, &new, "--versions", "1", "2"]);
        }
        if clock == "system" {
            bench.ok(&["plan", "register", "search", "--policy", "policy.yaml"]);
            bench.write("calls.jsonl", &calls(3, 6, 1, "a"));
            bench.ok(&["run", "calls.jsonl"]);
            return bench;
        }
        bench.ok(&["plan", "register", "search", "--policy", "policy.yaml", "--from", "2026-06-01"]);
        bench.write("sample.json", r#"{"arguments":{"q":"x","unit":"c"},"ts":"2026-06-03T10:00:00Z"}"#);
        bench.ok(&["plan", "plant", "search", "--sample", "sample.json", "--to", "plants.jsonl"]);
        bench.write("calls.jsonl", &calls(6, 6, 1, "a"));
        bench.ok(&["run", "calls.jsonl", "--chunk-records", "11"]);
        bench.run(&["decide", "search"]);
        bench.ok(&["ledger", "compact", "led"]);
        let late = calls(7, 3, 0, "a") + &call("search", 1, "late", "k") + &calls(1, 2, 0, "z");
        bench.write("more.jsonl", &late);
        bench.ok(&["run", "more.jsonl", "--chunk-records", "9"]);
        bench.ok(&["run", "plants.jsonl", "--final"]);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, args: &[&str]) -> Answer {
        answer(lastcall().args(args).current_dir(self.0.path()).env("LASTCALL_LEDGER", "led"))
    }

    fn ok(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}{}", said.out, said.err);
        said.out
    }

    fn decide(&self, ledger: &str, tool: &str, question: &str) -> (i32, String) {
        let asked = ["decide", tool, "--ledger", ledger, "--for", question, "--format", "json", "--dry-run"];
        let said = self.run(&asked);
        assert!(!said.out.is_empty(), "{}", said.err);
        (said.code, said.out)
    }

    fn verify(&self, ledger: &str) -> (i32, Value) {
        let said = self.run(&["ledger", "verify", ledger, "--format", "json"]);
        let report =
            serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}{}", said.out, said.err));
        (said.code, report)
    }
}

fn call(tool: &str, day: i32, id: &str, unit: &str) -> String {
    let day = Day::parse("2026-06-01").unwrap().plus(day);
    format!(
        r#"{{"type":"tool_call","schema_version":1,"call_id":"{tool}-{id}","ts":"{day}T10:00:00Z","tool_id":"{tool}","contract_id":"{tool}@1","arguments":{{"q":"secret of {tool}","unit":"{unit}"}},"outcome":{{"status":"ok"}},"envelope":{{"session_id":"s-{id}"}}}}"#
    ) + "\n"
}

/// Days of calls of both tools, each ended by a clock record; the first `k` of a day with a value that is refused.
fn calls(days: i32, n: usize, k: usize, prefix: &str) -> String {
    let mut out = String::new();
    for day in 0..days {
        for i in 0..n {
            let unit = if i < k { "k" } else { "c" };
            for tool in ["search", "send"] {
                out += &call(tool, day, &format!("{prefix}{day}-{i}"), unit);
            }
        }
        let end = Day::parse("2026-06-01").unwrap().plus(day + 1);
        writeln!(out, r#"{{"type":"clock","schema_version":1,"ts":"{end}T02:00:00Z"}}"#).unwrap();
    }
    out
}

/// On the export the verdict is the source's, to the byte, for every question; nobody writes to it; a second export has
/// the same bytes; what a recorded decision adds to the source is in the next one.
#[test]
fn the_verdict_is_the_same_to_the_byte() {
    let mut verdicts = 0;
    for clock in ["simulated", "system"] {
        let bench = Bench::new(clock);
        let tools: &[&str] = if clock == "system" { &["search"] } else { &["search", "send"] };
        for tool in tools {
            let told: Vec<_> =
                ["cutover", "retire", "delete"].map(|question| bench.decide("led", tool, question)).into();
            for with in [false, true] {
                let dir = format!("{tool}-{with}");
                let mut args = vec!["ledger", "export", "led", tool, &dir];
                args.extend(with.then_some("--with-arguments"));
                let said = bench.ok(&args);
                assert!(said.contains("other tools' names and counts"), "{said}");
                let before = files(&bench.path(&dir));
                assert!(!before.keys().any(|p| p.starts_with("results/") || p.starts_with("dead/")));
                assert_eq!(before.keys().any(|p| p.starts_with("calls/")), with);
                // Alone: the folder is moved to where nothing else is.
                let alone = TempDir::new().unwrap();
                std::fs::rename(bench.path(&dir), alone.path().join("export")).unwrap();
                let alone = alone.path().join("export").display().to_string();
                for (question, told) in ["cutover", "retire", "delete"].iter().zip(&told) {
                    assert_eq!(bench.decide(&alone, tool, question), *told, "{tool} {question}");
                    verdicts += 1;
                }
                let recorded = bench.run(&["decide", tool, "--ledger", &alone, "--format", "json"]);
                assert_eq!((recorded.code, &recorded.out), (told[0].0, &told[0].1));
                assert!(recorded.err.contains("is not recorded in it"), "{}", recorded.err);
                let (code, report) = bench.verify(&alone);
                assert_eq!((code, &report["outcome"]), (3, &"cannot_check".into()), "{report:#}");
                assert_eq!(report["export"]["intact"], true);
                let findings = report["findings"].as_array().unwrap();
                assert!(
                    findings.iter().all(|f| f["outcome"] == "cannot_check") && findings.len() <= 4,
                    "{report:#}"
                );
                let text = bench.run(&["ledger", "verify", &alone]);
                assert!(text.out.contains("everything that was exported is intact"), "{}", text.out);
                assert_eq!(before, files(Path::new(&alone)), "nobody wrote to it");
                let again = format!("{dir}-again");
                args[4] = &again;
                bench.ok(&args);
                assert_eq!(before, files(&bench.path(&again)), "a second export has the same bytes");
                let raw = before.iter().filter(|(path, _)| !path.starts_with("calls/"));
                for (path, bytes) in raw {
                    let text = String::from_utf8_lossy(bytes);
                    assert!(!text.contains("secret of"), "{path} holds a value");
                }
            }
        }
        // A verdict that is recorded on the source changes nothing that it says, here and there.
        bench.run(&["decide", "search"]);
        bench.ok(&["ledger", "export", "led", "search", "recorded"]);
        assert_eq!(bench.decide("led", "search", "cutover"), bench.decide("recorded", "search", "cutover"));
        verdicts += 1;
    }
    println!("{verdicts} of {verdicts} verdicts on exports: the source's to the byte");
}

/// Whatever appends is refused with the next step; other tools, filled folders and half exports get a clear answer.
#[test]
fn nothing_is_written_to_an_export() {
    let bench = Bench::new("simulated");
    bench.ok(&["ledger", "export", "led", "search", "exp", "--with-arguments"]);
    let before = files(&bench.path("exp"));
    bench.write("one.jsonl", &call("search", 1, "one", "c"));
    let commands: [&[&str]; 11] = [
        &["run", "one.jsonl", "--ledger", "exp"],
        &["ledger", "source", "exp", "x.jsonl", "--role", "tool-calls"],
        &["ledger", "erase", "exp", "--call-id", "search-a1-1"],
        &["ledger", "expire", "exp", "--before", "2026-06-03"],
        &["ledger", "gc", "exp", "--delete"],
        &[
            "ledger",
            "redact",
            "exp",
            "calls.jsonl",
            "--redact",
            "/arguments/q=drop",
            "--redaction-key",
            "key",
        ],
        &[
            "plan",
            "register",
            "search",
            "--policy",
            "policy.yaml",
            "--from",
            "2026-06-20",
            "--ledger",
            "exp",
            "--replace",
        ],
        &["plan", "register", "send", "--policy", "policy.yaml", "--from", "2026-06-20", "--ledger", "exp"],
        &["plan", "observe", "send-old.json", "send-new.json", "--versions", "1", "3", "--ledger", "exp"],
        &["plan", "plant", "search", "--sample", "sample.json", "--to", "p.jsonl", "--ledger", "exp"],
        &["ledger", "export", "exp", "search", "exp2"],
    ];
    let mut refused = 0;
    for command in commands {
        let said = bench.run(command);
        assert!(
            said.code != 0 && said.err.contains("export"),
            "{command:?}: {} {}{}",
            said.code,
            said.out,
            said.err
        );
        assert_eq!(before, files(&bench.path("exp")), "{command:?} wrote");
        refused += 1;
    }
    println!("{refused} of {} writing commands are refused", commands.len());
    let compact = bench.ok(&["ledger", "compact", "exp"]);
    assert!(compact.starts_with("nothing new"), "{compact}");

    let refused = |args: &[&str], needle: &str| {
        let said = bench.run(args);
        assert!(
            said.code == 2 && said.err.contains(needle),
            "{args:?}: {} {}{}",
            said.code,
            said.out,
            said.err
        );
    };
    let all = bench.run(&["decide", "--all", "--ledger", "exp", "--dry-run"]);
    assert!(all.out.contains("search") && !all.out.contains("send"), "{}{}", all.out, all.err);
    refused(
        &["decide", "send", "--ledger", "exp"],
        "is an export of `search`: what `send` rests on was left behind",
    );
    refused(&["status", "send", "--ledger", "exp"], "ask the ledger that it came from");
    refused(&["ledger", "show", "exp", "send", "--jsonl"], "ask the ledger that it came from");
    refused(&["ledger", "export", "led", "search", "exp"], "new or an empty folder");
    refused(&["ledger", "export", "led", "serch", "new"], "registered or observed");
    assert_eq!(before, files(&bench.path("exp")));

    // Stopped: without its last file it is no ledger, and nobody takes it for one.
    std::fs::remove_file(bench.path("exp/ledger.json")).unwrap();
    refused(&["ledger", "verify", "exp"], "is not a ledger");
    refused(&["decide", "search", "--ledger", "exp"], "is not a ledger");
    refused(&["ledger", "export", "led", "search", "exp"], "new or an empty folder");
    // A day file that is gone is named, and there is no verdict.
    bench.ok(&["ledger", "export", "led", "search", "lost"]);
    for path in files(&bench.path("lost")).keys().filter(|p| p.starts_with("objects/")) {
        std::fs::remove_file(bench.path("lost").join(path)).unwrap();
    }
    let said = bench.run(&["decide", "search", "--ledger", "lost"]);
    assert!(said.code == 4 && said.err.contains("objects/"), "{} {}{}", said.code, said.out, said.err);
}

/// The tool's calls alone, each proven; erased ones are gone from the next export, and counted; commands that read calls
/// work.
#[test]
fn calls_come_with_their_proof() {
    let bench = Bench::new("simulated");
    let export = |dir: &str| -> Value {
        let said =
            bench.ok(&["ledger", "export", "led", "search", dir, "--with-arguments", "--format", "json"]);
        serde_json::from_str(&said).unwrap()
    };
    let first = export("one");
    let calls = first["calls"]["calls"].as_u64().unwrap();
    assert!(calls > 20 && first["calls"]["gone"] == 0, "{first:#}");
    let tried = |dir: &str| bench.run(&["try", "search-old.json", "search-new.json", "--ledger", dir]);
    assert!(tried("one").err.is_empty() || tried("one").code < 2, "{}", tried("one").err);
    let listed = bench.run(&["ledger", "files", "one", "--kind", "calls"]);
    assert!(
        listed.out.lines().count() > 1 && listed.out.lines().all(|l| l.contains("calls/")),
        "{}",
        listed.out
    );
    let shown = bench.run(&["decide", "search", "--ledger", "one", "--show-values", "--format", "json"]);
    let verdict: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(verdict["categories"][0]["example"]["value"], "\"k\"", "{}{}", shown.out, shown.err);
    bench.ok(&["ledger", "export", "led", "search", "bare"]);
    let shown = bench.run(&["decide", "search", "--ledger", "bare", "--show-values", "--explain"]);
    assert!(shown.out.contains("(left behind by the export;"), "{}{}", shown.out, shown.err);
    assert_eq!(shown.code, bench.decide("bare", "search", "cutover").0, "{}", shown.err);
    assert!(tried("bare").code != 0 && tried("bare").err.contains("left behind"), "{}", tried("bare").err);

    bench.ok(&["ledger", "erase", "led", "--session", "s-a2-3", "--reason", "T-1"]);
    let second = export("two");
    assert_eq!(second["calls"]["gone"], 1, "{second:#}");
    assert_eq!(second["calls"]["calls"].as_u64().unwrap(), calls - 1);
    let (code, report) = bench.verify("two");
    assert_eq!((code, &report["export"]["intact"]), (3, &true.into()), "{report:#}");
    assert_eq!(
        (&report["export"]["calls"], &report["export"]["calls_gone"]),
        (&(calls - 1).into(), &1.into())
    );
    assert_eq!(bench.decide("led", "search", "cutover"), bench.decide("two", "search", "cutover"));
    println!("{} of {calls} calls proven after an erasure, 1 gone", calls - 1);
    // What expired was not left behind: there was nothing to leave.
    bench.ok(&["ledger", "expire", "led", "--before", "2026-06-07"]);
    for with in [false, true] {
        let dir = format!("expired-{with}");
        let mut args = vec!["ledger", "export", "led", "search", &dir, "--format", "json"];
        args.extend(with.then_some("--with-arguments"));
        let said: Value = serde_json::from_str(&bench.ok(&args)).unwrap();
        let stands = bench.ok(&["ledger", "files", "led", "--kind", "calls"]).lines().count() as u64;
        let there = bench.ok(&["ledger", "files", &dir, "--kind", "calls"]).lines().count() as u64;
        assert_eq!(said["left"]["calls"], stands - there, "{said:#}");
        let (_, report) = bench.verify(&dir);
        assert_eq!(report["export"]["left"], said["left"], "{report:#}");
        assert_eq!(report["export"]["intact"], true);
    }
}

/// Signed on the way or not: an untouched export is intact, whatever is asked of it that it cannot show.
#[test]
fn an_untouched_export_is_intact_whatever_is_asked() {
    let bench = Bench::new("simulated");
    bench.ok(&["ledger", "keygen", "head.key"]);
    bench.ok(&["ledger", "compact", "led", "--key", "head.key"]);
    bench.write("a.jsonl", &calls(8, 1, 0, "y"));
    bench.ok(&["run", "a.jsonl"]);
    let said = bench.run(&["ledger", "export", "led", "search", "bare"]);
    assert!(
        said.code == 0 && said.err.contains("`lastcall ledger head led --key FILE` signs it"),
        "{}",
        said.err
    );
    let ask = |dir: &str, more: &[&str]| {
        let said = bench.run(&[&["ledger", "verify", dir, "--format", "json"], more].concat());
        let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.err));
        (said.code, report)
    };
    let key = ["--public-key", "head.key.pub"];
    let (code, report) = ask("bare", &key);
    assert_eq!((code, &report["outcome"]), (3, &"unsigned".into()), "{report:#}");
    assert_eq!(report["export"]["intact"], true, "{report:#}");
    assert_eq!(ask("bare", &["--exported"]).0, 0);
    assert_eq!(ask("bare", &["--exported", "--public-key", "head.key.pub"]).0, 3);
    bench.write("b.jsonl", &calls(9, 1, 0, "x"));
    bench.ok(&["run", "b.jsonl"]);
    let said = bench.run(&["ledger", "export", "led", "search", "signed", "--key", "head.key"]);
    assert!(
        said.code == 0 && said.err.is_empty() && said.out.contains("signed with the key"),
        "{}",
        said.err
    );
    let (code, report) = ask("signed", &[&key[..], &["--exported"]].concat());
    assert_eq!((code, &report["outcome"]), (0, &"intact".into()), "{report:#}");
    assert_eq!(ask("signed", &key).0, 3);
    assert_eq!(ask("led", &key).0, 0, "the ledger is signed too");
    let none = bench.run(&["ledger", "verify", "led", "--exported"]);
    assert!(none.code == 2 && none.err.contains("is no export"), "{}", none.err);
    // A head that is newer than the export says nothing against it.
    bench.write("c.jsonl", &calls(10, 1, 0, "w"));
    bench.ok(&["run", "c.jsonl"]);
    bench.ok(&["ledger", "compact", "led"]);
    let newer = bench.ok(&["ledger", "head", "led", "--format", "json"]);
    let digest = bench.ok(&["ledger", "head", "led"]);
    bench.write("newer.json", &newer);
    for (head, says) in
        [("newer.json", "newer than this export"), (digest.trim(), "newer than the export, or")]
    {
        let (code, report) = ask("signed", &["--head", head]);
        assert_eq!((code, &report["outcome"]), (3, &"cannot_check".into()), "{report:#}");
        assert_eq!(report["export"]["intact"], true, "{report:#}");
        assert!(report["findings"].to_string().contains(says), "{report:#}");
        assert_eq!(ask("signed", &["--exported", "--head", head]).0, 3);
    }
    // A byte of it is: then neither flag helps.
    let day = files(&bench.path("signed")).keys().find(|p| p.starts_with("days/")).unwrap().clone();
    let mut bytes = std::fs::read(bench.path("signed").join(&day)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(bench.path("signed").join(&day), bytes).unwrap();
    let (code, report) = ask("signed", &["--exported", "--head", "newer.json"]);
    assert_eq!((code, &report["export"]["intact"]), (1, &false.into()), "{report:#}");
    // The ledger itself, cut off behind a kept head, is truncated as ever.
    let last = newer.split("\"seq\":").nth(1).unwrap().split(',').next().unwrap().parse::<u64>().unwrap();
    std::fs::remove_file(bench.path(&format!("led/chains/index/{last:020}.json"))).unwrap();
    let (code, report) = ask("led", &["--head", "newer.json"]);
    assert_eq!((code, &report["outcome"]), (1, &"truncated".into()), "{report:#}");
}

/// Nothing is made for an export that is refused, and none goes where the ledger is.
#[test]
fn a_refused_export_leaves_nothing() {
    let bench = Bench::new("simulated");
    let before = files(&bench.path("led"));
    for (tool, dir, says) in [
        ("nosuch", "x1", "registered or observed"),
        ("search", "led/sub", "lies in the ledger"),
        ("search", "led/calls/deep/x", "lies in the ledger"),
        ("search", "led", "lies in the ledger"),
    ] {
        let said = bench.run(&["ledger", "export", "led", tool, dir]);
        assert!(said.code == 2 && said.err.contains(says), "{dir}: {} {}", said.code, said.err);
        assert!(dir == "led" || !bench.path(dir).exists(), "{dir}");
    }
    assert_eq!(before, files(&bench.path("led")));
    // Two at once into one folder: the second finds the first's claim.
    let ledger = Ledger::open(&bench.path("led")).unwrap();
    let target = MemoryStore::default();
    let mut second = None;
    export(&ledger, "search", &target, true, &mut |what| {
        if what.starts_with("days/") && second.is_none() {
            second = Some(export(&ledger, "search", &target, false, &mut |_| {}));
        }
    })
    .unwrap();
    let refused = second.unwrap().unwrap_err().to_string();
    assert!(refused.contains("that somebody writes now"), "{refused}");
    let alone = MemoryStore::default();
    export(&ledger, "search", &alone, true, &mut |_| {}).unwrap();
    assert_eq!(target.list("calls").unwrap(), alone.list("calls").unwrap());
    assert_eq!(target.get("export.json").unwrap(), alone.get("export.json").unwrap());
}

fn load(files: &Files) -> MemoryStore {
    let store = MemoryStore::default();
    files.iter().for_each(|(path, bytes)| store.overwrite(path, Bytes::from(bytes.clone())));
    store
}

/// What a reader of the folder is told: everything that does not fit but for what was left behind; empty: intact.
fn told(files: &Files) -> Vec<String> {
    let ledger = match Ledger::open_in(Arc::new(load(files)), "export") {
        Ok(ledger) => ledger,
        Err(error @ LedgerError::Store(_)) => panic!("{error}"),
        Err(error) => return vec![error.to_string()],
    };
    let report = verify(&ledger, &mut |_| {}).unwrap();
    if report.export.as_ref().is_some_and(|export| export.intact) {
        assert_eq!(report.outcome, Outcome::CannotCheck);
        return Vec::new();
    }
    assert!(report.outcome != Outcome::Intact, "an export is never said to be a whole ledger");
    let findings = report.findings.iter();
    findings.map(|f| format!("{}: {} {:?} {}", f.outcome.as_str(), f.place, f.record, f.what)).collect()
}

/// Every file of an export, in both forms, with a byte flipped at its start, middle and end, cut, emptied, taken away,
/// exchanged with its neighbour; and with its mark written anew to fit.
#[test]
fn every_alteration_of_an_export_is_found() {
    let bench = Bench::new("simulated");
    bench.ok(&["ledger", "erase", "led", "--session", "s-a2-3", "--reason", "T-1"]);
    let (mut found, mut named) = (0, 0);
    let mut missed = Vec::new();
    for with in [false, true] {
        let dir = format!("exp-{with}");
        let mut args = vec!["ledger", "export", "led", "search", &dir];
        args.extend(with.then_some("--with-arguments"));
        bench.ok(&args);
        let whole = files(&bench.path(&dir));
        assert_eq!(told(&whole), Vec::<String>::new());
        let paths: Vec<&String> = whole.keys().collect();
        for (i, path) in paths.iter().enumerate() {
            let bytes = &whole[*path];
            let flipped = |at: usize| {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1;
                bytes
            };
            let next = paths[(i + 1) % paths.len()];
            let mut variants: Vec<(&str, Files)> = Vec::new();
            let mut vary = |what: &'static str, to: Option<Vec<u8>>| {
                let mut files = whole.clone();
                match to {
                    Some(bytes) => files.insert((*path).clone(), bytes),
                    None => files.remove(*path),
                };
                variants.push((what, files));
            };
            vary("start", Some(flipped(0)));
            vary("middle", Some(flipped(bytes.len() / 2)));
            vary("end", Some(flipped(bytes.len() - 1)));
            vary("cut", Some(bytes[..bytes.len() / 2].to_vec()));
            vary("emptied", Some(Vec::new()));
            vary("longer", Some([&bytes[..], b" "].concat()));
            vary("gone", None);
            let mut swapped = whole.clone();
            swapped.insert((*path).clone(), whole[next].clone());
            swapped.insert(next.clone(), bytes.clone());
            if whole[next] != *bytes {
                variants.push(("swapped", swapped));
            }
            for (what, mut files) in variants {
                for lies in [false, true] {
                    // The mark's own lists are made to fit: nothing may rest on them.
                    if lies && (*path == "export.json" || *path == "ledger.json" || !relist(&mut files)) {
                        continue;
                    }
                    let said = told(&files);
                    if said.is_empty() {
                        // Bytes of a calls file that no column reads: its rows are proven one by one, all else by the mark.
                        let padding =
                            lies && path.starts_with("calls/") && !matches!(what, "gone" | "emptied" | "cut");
                        if !padding {
                            missed.push(format!("{what} {path} (mark written anew: {lies})"));
                        }
                    } else {
                        found += 1;
                        named += u64::from(
                            said.iter().any(|s| s.contains(path.as_str()) || s.contains(next.as_str())),
                        );
                    }
                }
            }
        }
        // Another tool, another form, another file.
        let mark: Value = serde_json::from_slice(&whole["export.json"]).unwrap();
        for (key, value) in
            [("tool", "send".into()), ("tool", "other".into()), ("with_arguments", Value::Bool(!with))]
        {
            let mut mark = mark.clone();
            mark[key] = value;
            let mut files = whole.clone();
            files.insert("export.json".to_owned(), serde_json_canonical(&mark));
            if told(&files).is_empty() {
                missed.push(format!("export.json says another {key}"));
            }
            found += 1;
        }
        let mut files = whole.clone();
        files.insert("results/x.parquet".to_owned(), b"x".to_vec());
        assert!(told(&files).iter().any(|s| s.contains("results/x.parquet")));
    }
    println!(
        "{found} of {} alterations of exports are found, {named} with the file",
        found + missed.len() as u64
    );
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The tampering that is enumerated for ledgers, over exported folders: everything is found and named.
#[test]
fn tampering_as_enumerated_for_ledgers_is_found() {
    let bench = Bench::new("simulated");
    bench.ok(&["ledger", "erase", "led", "--session", "s-a2-3", "--reason", "T-1"]);
    for with in [false, true] {
        let dir = format!("exp-{with}");
        let mut args = vec!["ledger", "export", "led", "search", &dir];
        args.extend(with.then_some("--with-arguments"));
        bench.ok(&args);
        let files = Arc::new(tamper::load(&bench.path(&dir)));
        let mut mutations = tamper::of_files(&files, &tamper::belonging(&files));
        mutations.extend(tamper::of_chains(&files));
        let came = tamper::try_all(&files, &mutations, &Asked::default());
        let odd: Vec<_> = mutations.iter().zip(&came).filter(|(_, came)| **came != Came::Named).collect();
        let said: Vec<_> =
            odd.iter().map(|(m, came)| format!("{}: {}: {came:?}", m.category, m.what)).collect();
        println!("with arguments {with}: {} of {} named", mutations.len() - odd.len(), mutations.len());
        assert!(odd.is_empty(), "{said:#?}");
    }
}

/// A target that dies at a write.
struct Dying {
    inner: MemoryStore,
    left: AtomicUsize,
}

impl Store for Dying {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        if self.left.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_err() {
            return Err(StoreError::Failed { path: path.to_owned(), what: "died".to_owned() });
        }
        self.inner.create(path, bytes)
    }
    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        assert_eq!(path, "export.json", "an export only creates, but for its own claim");
        if self.left.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_err() {
            return Err(StoreError::Failed { path: path.to_owned(), what: "died".to_owned() });
        }
        self.inner.put(path, bytes)
    }
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(path)
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.inner.list(prefix)
    }
    fn delete(&self, path: &str) -> Result<(), StoreError> {
        panic!("{path}: an export removes nothing")
    }
}

/// Stopped at any write, what stands at the target is no ledger, and the next export there is refused.
#[test]
fn a_stopped_export_is_no_ledger() {
    let bench = Bench::new("simulated");
    let ledger = Ledger::open(&bench.path("led")).unwrap();
    let (mut stopped, mut writes) = (0, 0);
    loop {
        let target = Dying { inner: MemoryStore::default(), left: AtomicUsize::new(writes) };
        let done = export(&ledger, "search", &target, true, &mut |_| {});
        let opened = Ledger::open_in(Arc::new(target.inner.clone()), "export");
        if done.is_ok() {
            assert!(opened.is_ok());
            break;
        }
        assert!(matches!(opened, Err(LedgerError::NotALedger(_))), "after {writes} writes");
        if writes > 0 {
            let again = export(&ledger, "search", &target.inner, true, &mut |_| {}).unwrap_err().to_string();
            assert!(again.contains("part of an export that was stopped"), "{again}");
        }
        stopped += 1;
        writes += 1;
    }
    println!("stopped after each of {stopped} writes: never a ledger");
}

/// Members in the order of their names, without spaces: what serde_json writes of a `Value`.
fn serde_json_canonical(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

/// Writes the lists of the mark anew, so that they fit the folder; false where there is none to write.
fn relist(files: &mut Files) -> bool {
    use sha2::Digest as _;
    let Some(mut mark) = files.get("export.json").and_then(|b| serde_json::from_slice::<Value>(b).ok())
    else {
        return false;
    };
    let hex = |bytes: &[u8]| lastcall_ledger::hex(&sha2::Sha256::digest(bytes));
    let mut copied = serde_json::Map::new();
    for folder in ["calls", "chains", "days", "objects"] {
        let within: Vec<_> =
            files.iter().filter(|(path, _)| path.starts_with(&format!("{folder}/"))).collect();
        if within.is_empty() {
            continue;
        }
        let lines: String = within.iter().map(|(path, bytes)| format!("{}  {path}\n", hex(bytes))).collect();
        let bytes: usize = within.iter().map(|(_, bytes)| bytes.len()).sum();
        let sha256 = format!("sha256:{}", hex(lines.as_bytes()));
        copied.insert(
            folder.into(),
            serde_json::json!({ "files": within.len(), "bytes": bytes, "sha256": sha256 }),
        );
    }
    mark["copied"] = copied.into();
    if mark["with_arguments"] == true {
        let calls = files.iter().filter(|(path, _)| path.starts_with("calls/"));
        mark["calls_sha256"] =
            calls.map(|(path, b)| (path.clone(), Value::from(format!("sha256:{}", hex(b))))).collect();
    }
    files.insert("export.json".to_owned(), serde_json_canonical(&mark));
    true
}

/// The script of the guide checks every line and every batch; a changed, a lost and an exchanged line show.
#[test]
fn the_guides_script_checks_the_lines() {
    let bench = Bench::new("simulated");
    bench.ok(&["ledger", "export", "led", "search", "exp"]);
    let show = |args: &[&str]| bench.ok(&[&["ledger", "show"], args].concat());
    let text = show(&["led", "search", "--jsonl", "--batch", "10"]);
    assert_eq!(
        text,
        show(&["exp", "search", "--jsonl", "--batch", "10"]),
        "the export shows what the ledger shows"
    );
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let results: Vec<&Value> = lines.iter().filter(|l| l["batch"].is_null()).collect();
    assert!(
        lines.iter().filter(|l| !l["batch"].is_null()).count() > 2 && lines.last().unwrap()["last"] == true
    );
    let differing = results.iter().find(|l| l["result"] == "disagreed").unwrap();
    for key in ["trace_id", "tool_id", "current_version", "candidate_version", "day", "hash"] {
        assert!(differing[key].is_string(), "{key}: {differing}");
    }
    assert_eq!((&differing["current_version"], &differing["tool_id"]), (&"1".into(), &"search".into()));
    assert_eq!(differing["discrepancies"][0]["category"], "enum_value_removed");
    assert_eq!(differing["discrepancies"][0].as_object().unwrap().len(), 3, "field, category, severity");
    assert!(!text.contains("secret of"));
    // Filters take a part of the same lines.
    let of_day = show(&["led", "search", "--jsonl", "--day", "2026-06-02"]);
    let days = |text: &str| text.lines().filter(|l| l.contains("\"day\":\"2026-06-02\"")).count();
    assert_eq!(days(&of_day), days(&text));
    assert_eq!(of_day.lines().count(), days(&of_day) + 1);
    let two = show(&["led", "--jsonl", "--category", "enum_value_removed", "--limit", "2"]);
    assert_eq!(two.lines().count(), 3);
    let listed = bench.run(&["ledger", "show", "led", "--jsonl", "--category", "?"]);
    assert!(listed.code == 2 && listed.err.contains("enum_value_removed, "), "{}", listed.err);
    let wrong = bench.run(&["ledger", "show", "led", "--jsonl", "--category", "enum_value_remove"]);
    assert!(wrong.code == 2 && wrong.err.contains("did you mean `enum_value_removed`?"), "{}", wrong.err);
    let summary = show(&["exp"]);
    assert!(summary.contains("an export of `search`") && !summary.contains("\nsend"), "{summary}");
    assert!(show(&["led"]).contains("\nsend"), "{}", show(&["led"]));
    assert!(show(&["led"]).contains("2026-06-08T02:00:00.000Z"), "read through: {}", show(&["led"]));
    bench.ok(&["ledger", "init", "young"]);
    assert!(show(&["young"]).contains("next: `lastcall ledger compact young`"), "{}", show(&["young"]));

    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/kept.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let script = guide.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    bench.write("check.py", script);
    let python = |text: &str| {
        let child = Command::new("python3")
            .arg(bench.path("check.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { return None };
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Some(child.wait_with_output().unwrap())
    };
    let Some(done) = python(&text) else {
        println!("SKIPPED: no python3 here");
        return;
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let of: Vec<&str> = text.lines().collect();
    let mut found = 0;
    let mut tried = 0;
    for i in 0..of.len() {
        let mut changed: Vec<Vec<String>> = Vec::new();
        let own = || of.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
        let mut without = own();
        without.remove(i);
        changed.push(without);
        let mut other = own();
        other[i] = other[i].replacen("2026-06", "2026-05", 1).replacen("\"lines\":", "\"lines\":1", 1);
        changed.push(other);
        if i + 1 < of.len() {
            let mut swapped = own();
            swapped.swap(i, i + 1);
            changed.push(swapped);
        }
        if i % 7 != 0 && i + 2 < of.len() {
            continue; // one start of Python a try: a part of the lines
        }
        for lines in changed {
            tried += 1;
            found += usize::from(!python(&(lines.join("\n") + "\n")).unwrap().status.success());
        }
    }
    assert_eq!(found, tried);
    println!("{} lines checked by the guide's script; {found} of {tried} changes found", of.len());
}

/// Between builds: what the debug build and the release build say of a ledger and of its export is the same, to the byte.
#[test]
fn debug_and_release_say_the_same() {
    let name = format!("lastcall{}", std::env::consts::EXE_SUFFIX);
    let beside =
        lastcall_tests::binary().parent().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
    let given = |key: &str, profile: &str| {
        std::env::var_os(key).map_or_else(|| beside.join(profile).join(&name), PathBuf::from)
    };
    let (debug, release) = (given("LASTCALL_BIN_DEBUG", "debug"), given("LASTCALL_BIN_RELEASE", "release"));
    for (bin, profile) in [(&debug, "debug"), (&release, "release")] {
        if !bin.is_file() {
            println!("SKIPPED: no {profile} build here; `make prove` makes both");
            return;
        }
    }
    let bench = Bench::new("simulated");
    let say = |bin: &Path, args: &[&str]| {
        let mut command = Command::new(bin);
        command.args(args).current_dir(bench.0.path()).env("NO_COLOR", "1").env_remove("LASTCALL_LEDGER");
        let said = answer(&mut command);
        assert!(said.code != 2, "{args:?}: {}", said.err);
        (said.code, said.out)
    };
    for (bin, dir) in [(&debug, "by-debug"), (&release, "by-release")] {
        say(bin, &["ledger", "export", "led", "search", dir, "--with-arguments"]);
    }
    assert_eq!(files(&bench.path("by-debug")), files(&bench.path("by-release")), "the exports");
    let mut same = 0;
    for ledger in ["led", "by-debug", "by-release"] {
        for question in ["cutover", "retire", "delete"] {
            let args =
                ["decide", "search", "--ledger", ledger, "--for", question, "--format", "json", "--dry-run"];
            assert_eq!(say(&debug, &args), say(&release, &args));
            same += 1;
        }
        for args in [["ledger", "verify", ledger, "--format=json"], ["ledger", "show", ledger, "--jsonl"]] {
            assert_eq!(say(&debug, &args), say(&release, &args));
            same += 1;
        }
    }
    println!("{same} of {same} answers of the debug and the release build are the same bytes");
}

/// A target during whose first data something else happens.
struct Meanwhile {
    inner: MemoryStore,
    then: std::sync::Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Store for Meanwhile {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        if let Some(then) = self.then.lock().unwrap().take() {
            then();
        }
        self.inner.create(path, bytes)
    }
    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.inner.put(path, bytes)
    }
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(path)
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.inner.list(prefix)
    }
    fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.inner.delete(path)
    }
}

/// What was copied may be what had to go, and its chains end before the erasure.
#[test]
fn an_export_beside_an_erasure_is_refused() {
    let bench = Arc::new(Bench::new("simulated"));
    let ledger = Ledger::open(&bench.path("led")).unwrap();
    for (with_arguments, session) in [(true, "s-a1-1"), (false, "s-a1-2")] {
        let beside = bench.clone();
        let then = move || drop(beside.ok(&["ledger", "erase", "led", "--session", session]));
        let target =
            Meanwhile { inner: MemoryStore::default(), then: std::sync::Mutex::new(Some(Box::new(then))) };
        let done = export(&ledger, "search", &target, with_arguments, &mut |_| {});
        if !with_arguments {
            done.unwrap();
            continue;
        }
        assert!(done.unwrap_err().to_string().contains("export again"));
        assert!(Ledger::open_in(Arc::new(target.inner.clone()), "export").is_err());
    }
}

/// A calls file of an export is held against its digest before anything in it is believed: one changed byte is one
/// finding.
#[test]
fn one_changed_byte_of_an_export_is_found_and_breaks_nothing() {
    let bench = Bench::new("simulated");
    bench.ok(&["ledger", "export", "led", "search", "exp", "--with-arguments"]);
    let files = Arc::new(tamper::load(&bench.path("exp")));
    let mut rng = lastcall_tests::chance::Rng(7);
    let parquet: Vec<&String> = files.keys().filter(|path| path.ends_with(".parquet")).collect();
    for _ in 0..400 {
        let path = parquet[rng.below(parquet.len() as u64) as usize];
        let mut bytes = files[path].to_vec();
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << rng.below(8);
        let changes = [(path.clone(), Some(bytes.into()))].into();
        let report = tamper::verified(&files, changes, &Asked::default()).unwrap();
        assert_eq!(report.outcome, Outcome::Altered, "{path} {at}");
        assert!(report.findings.iter().any(|f| f.place == *path), "{path} {at}: {:?}", report.findings);
    }
}

/// Where another tool's calls of the same file were erased, none of the exported tool's can go with them.
#[test]
fn no_call_is_taken_out_under_another_tools_erasure() {
    let bench = Bench::new("simulated");
    for (path, bytes) in files(&bench.path("led")) {
        let to = bench.path("twin").join(path);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
    bench.ok(&["ledger", "erase", "led", "--call-id", "send-a2-3"]);
    bench.ok(&["ledger", "erase", "twin", "--call-id", "search-a2-3"]);
    bench.ok(&["ledger", "export", "led", "search", "one", "--with-arguments"]);
    bench.ok(&["ledger", "export", "twin", "search", "two", "--with-arguments"]);
    let (code, report) = bench.verify("one");
    assert!(
        code == 3 && report["export"]["intact"] == true && report["export"]["calls_gone"] == 0,
        "{report:#}"
    );
    let (_, report) = bench.verify("two");
    assert!(report["export"]["intact"] == true && report["export"]["calls_gone"] == 1, "{report:#}");
    assert!(report["export"]["calls_unsaid"].is_null(), "{report:#}");
    // The other's calls, and a mark that fits them.
    let mark = |dir: &str| -> Value {
        serde_json::from_slice(&std::fs::read(bench.path(dir).join("export.json")).unwrap()).unwrap()
    };
    let (mut one, two) = (mark("one"), mark("two"));
    one["calls_sha256"] = two["calls_sha256"].clone();
    one["copied"]["calls"] = two["copied"]["calls"].clone();
    for path in two["calls_sha256"].as_object().unwrap().keys() {
        std::fs::copy(bench.path("two").join(path), bench.path("one").join(path)).unwrap();
    }
    std::fs::write(bench.path("one/export.json"), serde_json_canonical(&one)).unwrap();
    let (code, report) = bench.verify("one");
    assert!(code == 3 && report["export"]["intact"] == false, "{report:#}");
    let findings = report["findings"].as_array().unwrap();
    let found = |f: &Value| {
        f["outcome"] == "incomplete" && f["what"].as_str().unwrap().contains("1 calls are missing")
    };
    assert!(findings.iter().any(found), "{report:#}");
}
