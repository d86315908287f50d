//! Ledgers of every format that was ever written are read, and newer ones are refused by name.
//!
//! `tests/golden/format-1` was written once by the build that had this format (`tests/golden/make.sh`), and is never made
//! again: a later build has to find it intact, and to give the same verdict to the byte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};

use lastcall_tests::{Answer, answer, lastcall};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/format-1")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

/// A copy of the golden folder: `ledger`, `head.json`, `head.key.pub`, `verdict.json`.
fn copied() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy(&golden(), dir.path());
    dir
}

fn run(dir: &Path, args: &[&str]) -> Answer {
    answer(lastcall().current_dir(dir).args(args))
}

#[test]
fn a_ledger_of_format_1_is_intact_and_gives_the_same_verdict() {
    let dir = copied();
    let dir = dir.path();
    let done =
        run(dir, &["ledger", "verify", "ledger", "--head", "head.json", "--public-key", "head.key.pub"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(done.out.contains("intact, 1 call erased") && done.out.contains("2 signatures"), "{}", done.out);
    let kept = std::fs::read_to_string(dir.join("head.json")).unwrap();
    assert_eq!(run(dir, &["ledger", "head", "ledger", "--format", "json"]).out, kept);
    let verdict = run(dir, &["decide", "t", "--ledger", "ledger", "--format", "json", "--dry-run"]);
    assert_eq!(verdict.out, std::fs::read_to_string(dir.join("verdict.json")).unwrap(), "{}", verdict.err);
    let status = run(dir, &["status", "--ledger", "ledger"]);
    assert_eq!(status.code, 0, "{}", status.err);
    // It can be gone on with.
    let line = r#"{"type":"clock","schema_version":1,"ts":"2026-06-04T02:00:00Z"}"#;
    std::fs::write(dir.join("more.jsonl"), format!("{line}\n")).unwrap();
    for args in [&["run", "--ledger", "ledger", "more.jsonl"][..], &["ledger", "compact", "ledger"]] {
        let done = run(dir, args);
        assert_eq!(done.code, 0, "{args:?}: {}", done.err);
    }
    assert_eq!(run(dir, &["ledger", "verify", "ledger", "--head", "head.json"]).code, 0);
}

/// Every command that opens a ledger.
const COMMANDS: [&[&str]; 17] = [
    &["run", "--ledger", "ledger", "calls.jsonl"],
    &["decide", "t", "--ledger", "ledger"],
    &["decide", "--all", "--ledger", "ledger"],
    &["status", "--ledger", "ledger"],
    &["plan", "observe", "old.json", "new.json", "--tool", "t", "--ledger", "ledger"],
    &["plan", "register", "t", "--policy", "policy.yaml", "--ledger", "ledger"],
    &["plan", "show", "t", "--ledger", "ledger"],
    &["plan", "plant", "t", "--sample", "sample.json", "--to", "calls.jsonl", "--ledger", "ledger"],
    &["ledger", "source", "ledger", "x.jsonl", "--role", "tool-calls"],
    &["ledger", "redact", "ledger", "calls.jsonl"],
    &["ledger", "verify", "ledger"],
    &["ledger", "compact", "ledger"],
    &["ledger", "head", "ledger"],
    &["ledger", "files", "ledger"],
    &["ledger", "erase", "ledger", "--call-id", "c1/0", "--dry-run"],
    &["ledger", "expire", "ledger", "--before", "2026-06-02", "--dry-run"],
    &["ledger", "gc", "ledger"],
];

#[test]
fn a_newer_ledger_is_refused_by_every_command() {
    let dir = copied();
    let dir = dir.path();
    let tool = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
    let files = [("old.json", tool), ("new.json", tool), ("calls.jsonl", ""), ("sample.json", "{}")];
    for (name, text) in files.into_iter().chain([("policy.yaml", "burn_in: {tier: T1, profile: article}\n")])
    {
        std::fs::write(dir.join(name), text).unwrap();
    }
    let meta = dir.join("ledger/ledger.json");
    let text = std::fs::read_to_string(&meta).unwrap();
    std::fs::write(&meta, text.replace("\"format\":1", "\"format\":2")).unwrap();
    for args in COMMANDS {
        let done = run(dir, args);
        let said = format!("{}{}", done.out, done.err);
        assert_eq!(done.code, 2, "{args:?}: {said}");
        for word in ["ledger.json", "format is 2", "reads 1", "take a newer lastcall"] {
            assert!(said.contains(word), "{args:?}: {word}: {said}");
        }
    }
    println!("{} of {} commands refuse a newer ledger", COMMANDS.len(), COMMANDS.len());
}

/// The index, daily facts and signatures have formats of their own: what reads them says so, and verify cannot check.
#[test]
fn newer_parts_are_named() {
    let newest = "chains/index/00000000000000000001";
    for (path, marks) in
        [(format!("{newest}.json"), "\"format\":1"), (format!("{newest}.sig"), "\"format\":1")]
    {
        let dir = copied();
        let dir = dir.path();
        let file = dir.join("ledger").join(&path);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replacen(marks, "\"format\":2", 1)).unwrap();
        let done = run(dir, &["ledger", "verify", "ledger"]);
        let said = format!("{}{}", done.out, done.err);
        assert!(done.code == 1 || done.code == 3, "{path}: {said}");
        for word in [path.as_str(), "format is 2", "reads 1", "take a newer lastcall"] {
            assert!(said.contains(word), "{path}: {word}: {said}");
        }
        let commands: &[&[&str]] = match path.ends_with(".json") {
            true => &[
                &["decide", "t", "--ledger", "ledger"],
                &["status", "--ledger", "ledger"],
                &["ledger", "compact", "ledger"],
                &["ledger", "head", "ledger"],
            ],
            false => &[&["ledger", "head", "ledger", "--format", "json"]],
        };
        for args in commands {
            let done = run(dir, args);
            let said = format!("{}{}", done.out, done.err);
            assert!(
                [2, 4].contains(&done.code) && said.contains(&path) && said.contains("take a newer lastcall"),
                "{args:?}: {said}"
            );
        }
    }
}
