//! What `decide` writes: a folder of pages, Markdown and JUnit, from a real record.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use lastcall_tests::services::python::{Environment, environment};
use lastcall_tests::{Answer, answer, lastcall};
use tempfile::TempDir;

const PARSER: Environment = Environment { name: "junitparser-5.0.3", packages: &["junitparser==5.0.3"] };

/// The demo's record: three tools, READY, NOT_READY and INSUFFICIENT.
fn demo() -> TempDir {
    let dir = TempDir::new().unwrap();
    let made = answer(lastcall().current_dir(dir.path()).args(["demo", "--out", "d"]));
    assert_eq!(made.code, 0, "{}{}", made.out, made.err);
    dir
}

fn decide(dir: &Path, args: &[&str]) -> Answer {
    let mut command = lastcall();
    command
        .current_dir(dir)
        .env("LASTCALL_LEDGER", "d/ledger")
        .env_remove("GITHUB_STEP_SUMMARY")
        .arg("decide");
    answer(command.args(args))
}

fn links(page: &str) -> Vec<&str> {
    page.split(" href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn a_board_is_a_folder_whose_links_lead_somewhere() {
    let dir = demo();
    let dir = dir.path();
    for _ in 0..2 {
        let said = decide(dir, &["--all", "--format", "html", "--out", "board/"]);
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(
            said.out.starts_with("verdict ") && said.err.contains("written: board/index.html"),
            "{}",
            said.err
        );
        let index = read(dir.join("board/index.html"));
        let mut found = BTreeSet::new();
        for link in links(&index) {
            let page = read(dir.join("board").join(link));
            assert_eq!(links(&page), ["../index.html"]);
            assert!(page.contains("Differences over time") || link.contains("sms.send"), "{link}");
            found.insert(link.to_owned());
        }
        let files = std::fs::read_dir(dir.join("board/tools")).unwrap();
        let files: BTreeSet<String> =
            files.map(|f| format!("tools/{}", f.unwrap().file_name().into_string().unwrap())).collect();
        assert_eq!((files, found.len()), (found, 3), "no page without a link, nothing half written");
    }
    // the same folder without its slash, now that it is there; and what cannot be a folder
    assert_eq!(decide(dir, &["--all", "--format", "html", "--out", "board"]).code, 1);
    let entries = || std::fs::read_dir(dir.join("d/ledger/chains/control")).unwrap().count();
    let before = entries();
    for args in
        [&["--all", "--format", "junit"][..], &["orders.lookup", "--format", "html", "--for", "cutover"]]
    {
        let said = decide(dir, &[args, &["--out", "board/"]].concat());
        assert!(said.code == 2 && said.err.contains("is a folder: name a file"), "{}", said.err);
    }
    assert_eq!(entries(), before, "nothing is recorded where nothing is answered");
    let one = decide(dir, &["--all", "--format", "html", "--out", "one.html"]);
    assert_eq!(one.code, 1, "{}", one.err);
    assert!(links(&read(dir.join("one.html"))).iter().all(|l| l.starts_with("#t")));
}

#[test]
fn markdown_goes_to_standard_output_and_to_the_steps_summary() {
    let dir = demo();
    let dir = dir.path();
    let summary = dir.join("summary.md");
    std::fs::write(&summary, "before\n").unwrap();
    let mut command = lastcall();
    command.current_dir(dir).env("LASTCALL_LEDGER", "d/ledger").env("GITHUB_STEP_SUMMARY", &summary);
    let said = answer(command.args(["decide", "--all", "--format", "markdown"]));
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(
        said.out.starts_with("### lastcall decide: 1 NOT READY, 1 INSUFFICIENT, 1 READY\n"),
        "{}",
        said.out
    );
    assert!(said.out.contains("| `ceiling` |") && said.out.contains("`min_calls_short`"));
    assert_eq!(read(summary), format!("before\n{}", said.out));
    let one = decide(dir, &["orders.lookup", "--format", "markdown", "--out", "one.md"]);
    assert_eq!(one.code, 0, "{}", one.err);
    assert!(one.out.starts_with("READY  orders.lookup"), "{}", one.out);
    assert!(read(dir.join("one.md")).starts_with("### ✅ `orders.lookup`: READY\n"));
}

/// Another reader of JUnit than ours: Python's junitparser, from the package registry.
const READ_BACK: &str = r"
import sys
from junitparser import Error, Failure, JUnitXml, Skipped
for suite in JUnitXml.fromstring(sys.stdin.read()):
    for case in suite:
        came = [type(r).__name__ for r in case.result] or ['Passed']
        print(suite.name, case.name, *came)
";

#[test]
fn junit_is_read_by_a_library_of_others() {
    let dir = demo();
    let said = decide(dir.path(), &["--all", "--format", "junit"]);
    assert_eq!(said.code, 1, "{}", said.err);
    let Some(python) = environment(PARSER, "JUnit is not read by a library of others") else { return };
    let file = dir.path().join("verdicts.xml");
    std::fs::write(&file, &said.out).unwrap();
    let done = Command::new(python)
        .args(["-c", READ_BACK])
        .stdin(std::fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let told = String::from_utf8(done.stdout).unwrap();
    for wanted in [
        "orders.lookup verdict Passed",
        "orders.lookup ceiling Passed",
        "refund.create_request verdict Failure",
        "refund.create_request ceiling Failure",
        "refund.create_request min_calls Passed",
        "sms.send verdict Failure",
        "sms.send min_calls Skipped",
    ] {
        assert!(told.lines().any(|l| l == wanted), "{wanted}:\n{told}");
    }
    assert_eq!(told.lines().count(), 3 * 6);
}

/// Pages are drawn from the same facts before and after compaction, and an earlier window is read back from its verdict.
#[test]
fn differences_over_time_and_earlier_windows_survive_compaction() {
    let dir = demo();
    let dir = dir.path();
    let tool = "refund.create_request";
    let strips = |page: &str| {
        let start = page.find("<table class=\"strips\">").expect("strips");
        page[start..start + page[start..].find("</table>").unwrap()].to_owned()
    };
    let before = decide(dir, &[tool, "--format", "html"]).out;
    assert!(strips(&before).contains("class=\"s-block\"") && !before.contains("class=\"mark\""));
    let compacted = answer(lastcall().current_dir(dir).args(["ledger", "compact", "d/ledger"]));
    assert_eq!(compacted.code, 0, "{}", compacted.err);
    let after = decide(dir, &[tool, "--format", "html"]).out;
    assert_eq!(strips(&before), strips(&after));
    // the plan is replaced: the fourteen days stand behind the mark of the new window
    let register = ["plan", "register", tool, "--from", "2026-06-15", "--replace"];
    let places = ["--registry", "d/agent-tools", "--ledger", "d/ledger"];
    let done = answer(lastcall().current_dir(dir).args(register).args(places));
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let call = r#"{"type":"tool_call","schema_version":1,"call_id":"new-1","ts":"2026-06-15T10:00:00Z","tool_id":"refund.create_request","contract_id":"refund.create_request@1.0.0","arguments":{},"outcome":{"status":"ok"}}"#;
    std::fs::write(dir.join("more.jsonl"), format!("{call}\n")).unwrap();
    let done = answer(lastcall().current_dir(dir).args(["run", "more.jsonl", "--ledger", "d/ledger"]));
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let page = decide(dir, &[tool, "--format", "html"]).out;
    assert!(page.contains("<h2>Earlier windows</h2>") && page.contains("class=\"mark\""), "{page}");
    assert!(page.contains("2026-06-14: "), "a day of the earlier window");
}
