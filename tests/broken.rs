//! What a second hostile review of the record found, each through the real binary: files that are gone, replaced or odd.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::PathBuf;

use lastcall_tests::{Answer, answer, lastcall};
use serde_json::{Value, json};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    /// A ledger `led` that observes tool `t`, with calls over five days, one chunk for each of `chunks` runs.
    fn new(chunks: u32) -> Self {
        let place = Self::empty();
        for n in 0..chunks {
            place.more(n);
        }
        place
    }

    fn empty() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        let tool = |title: &str| {
            let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            json!({"name": "t", "title": title, "inputSchema": schema}).to_string()
        };
        place.write("old.json", tool("T"));
        place.write("new.json", tool("U"));
        place.write("policy.yaml", "burn_in: {tier: T1, profile: article}\n");
        place.ok("ledger init led --clock simulated");
        place.ok("plan observe old.json new.json --tool t --ledger led");
        place.ok("plan register t --policy policy.yaml --from 2026-06-01 --ledger led");
        place
    }

    fn more(&self, n: u32) {
        let mut calls: Vec<Value> = (0..20).map(|k| call(n / 3 + 1, n * 100 + k)).collect();
        let day = n / 3 + 1;
        calls.push(json!({"type": "clock", "schema_version": 1, "ts": format!("2026-06-{day:02}T11:{:02}:00Z", n % 60)}));
        let before = std::fs::read_to_string(self.path("calls.jsonl")).unwrap_or_default();
        let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
        self.write("calls.jsonl", before + &lines);
        self.ok("run --ledger led calls.jsonl");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn entry(&self, chain: &str, seq: u64) -> PathBuf {
        self.path(&format!("led/chains/{chain}/{seq:020}.json"))
    }

    fn run(&self, line: &str) -> Answer {
        answer(lastcall().current_dir(self.dir.path()).args(line.split_whitespace()))
    }

    fn ok(&self, line: &str) -> Answer {
        let said = self.run(line);
        assert_eq!(said.code, 0, "{line}: {} {}", said.out, said.err);
        said
    }

    /// What verify found, and its exit code.
    fn verify(&self) -> (i32, Value) {
        let said = self.run("ledger verify led --format json");
        let report = serde_json::from_str(&said.out);
        (said.code, report.unwrap_or_else(|e| panic!("{e}: {} {}", said.out, said.err)))
    }

    /// The command refuses and names a place.
    fn refuses(&self, line: &str, named: &str) {
        let said = self.run(line);
        let text = said.out + &said.err;
        assert!(said.code > 1 && text.contains(named), "{line}: {} {text}", said.code);
    }
}

fn call(day: u32, n: u32) -> Value {
    json!({"type": "tool_call", "schema_version": 1, "call_id": format!("c{n}"),
        "ts": format!("2026-06-{day:02}T10:00:00Z"), "tool_id": "t", "contract_id": "t@1", "arguments": {"a": "x"},
        "outcome": {"status": "ok"}})
}

/// Whether a finding of this outcome names this place.
fn finds(report: &Value, outcome: &str, place: &str) -> bool {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().any(|f| f["outcome"] == outcome && f["place"].as_str().unwrap().contains(place))
}

/// An entry that was cut off or written over is an altered record (4), wherever it is read; one with a body that a newer build
/// might have written cannot be computed with (4 as well), and verify does not call it altered.
#[test]
fn an_entry_that_is_none_ends_a_run_with_4() {
    for (chain, seq) in [("control", 0), ("control", 2), ("calls.jsonl/0", 0), ("calls.jsonl/0", 1)] {
        let place = Place::new(1);
        let path = place.entry(chain, seq);
        let whole = std::fs::read(&path).unwrap();
        let text = String::from_utf8(whole.clone()).unwrap();
        let half = &whole[..whole.len() / 2];
        for bytes in [
            half,
            &whole[..whole.len() - 1],
            b"",
            b"\xff\xfe",
            b"{}",
            text.replace("\"seq\"", "\"sec\"").as_bytes(),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let said = place.run("run --ledger led calls.jsonl");
            assert_eq!(said.code, 4, "{chain}/{seq}: {} {}", said.out, said.err);
            assert!(said.err.contains(chain) && said.err.contains("altered"), "{}", said.err);
            let (code, report) = place.verify();
            let found = finds(&report, "altered", chain) || finds(&report, "truncated", chain);
            assert!(code == 1 && found, "{chain}/{seq}: {code} {report}");
        }
        std::fs::write(&path, &whole).unwrap();
        place.ok("run --ledger led calls.jsonl");
    }
    let place = Place::new(1);
    let path = place.entry("calls.jsonl/0", 1);
    let later = std::fs::read_to_string(&path).unwrap().replace("\"kind\":\"chunk\"", "\"kind\":\"later\"");
    std::fs::write(&path, later).unwrap();
    let said = place.run("run --ledger led calls.jsonl");
    assert!(said.code == 4 && said.err.contains("newer lastcall"), "{} {}", said.code, said.err);
    let (code, report) = place.verify();
    assert!(code == 3 && finds(&report, "cannot_check", "calls.jsonl/0"), "{code} {report}");
}

#[test]
fn what_stands_behind_a_hole_is_found_wherever_it_stands() {
    let name = |seq: u64| format!("{seq:020}.json");
    for (gone, first) in
        [(vec![9, 10, 11, 13], 9), (vec![12, 13], 12), (vec![0], 0), (vec![1, 2, 3, 4, 5], 1)]
    {
        let place = Place::new(14);
        let chain = "calls.jsonl/0";
        assert!(place.entry(chain, 14).is_file() && !place.entry(chain, 15).is_file());
        for seq in gone {
            std::fs::remove_file(place.entry(chain, seq)).unwrap();
        }
        let (code, report) = place.verify();
        assert!(code == 3 && finds(&report, "incomplete", &name(first)), "{code} {report}");
        let before = std::fs::read_dir(place.path("led/chains/calls.jsonl/0")).unwrap().count();
        place.refuses("decide t --ledger led", &name(first));
        place.refuses("status --ledger led", &name(first));
        place.refuses("ledger compact led", &name(first));
        place.refuses("ledger export led t out", &name(first));
        place.refuses("run --ledger led calls.jsonl", &name(first));
        assert_eq!(std::fs::read_dir(place.path("led/chains/calls.jsonl/0")).unwrap().count(), before);
    }
    // Of the control chain; and a stray entry, however far away.
    for stray in [99, u64::MAX] {
        let place = Place::new(2);
        let last = (0..).find(|seq| !place.entry("control", *seq).is_file()).unwrap();
        std::fs::copy(place.entry("control", 1), place.entry("control", stray)).unwrap();
        let (code, report) = place.verify();
        assert!(code == 1 || code == 3, "{report}");
        assert!(finds(&report, "incomplete", &name(last)), "{report}");
        place.refuses("decide t --ledger led", &name(last));
        place.refuses("run --ledger led calls.jsonl", &name(last));
    }
}

#[test]
fn a_chain_that_nothing_registers_is_looked_at() {
    let place = Place::new(2);
    place.write("more.jsonl", format!("{}\n", call(1, 9999)));
    place.ok("run --ledger led more.jsonl");
    let last = (0..).find(|seq| !place.entry("control", *seq).is_file()).unwrap() - 1;
    let entry = std::fs::read_to_string(place.entry("control", last)).unwrap();
    assert!(entry.contains("more.jsonl"), "{entry}");
    std::fs::remove_file(place.entry("control", last)).unwrap();
    let name = format!("control/{last:020}.json");
    let (code, report) = place.verify();
    assert!(code == 1 && finds(&report, "truncated", &name), "{code} {report}");
    for line in
        ["run --ledger led more.jsonl", "run --ledger led calls.jsonl --source x", "decide t --ledger led"]
    {
        place.refuses(line, &name);
    }
    assert!(!place.entry("control", last).is_file());
    // Another ledger's chain.
    let place = Place::new(2);
    std::fs::create_dir_all(place.path("led/chains/strange")).unwrap();
    place.ok("ledger verify led");
    std::fs::rename(place.path("led/chains/calls.jsonl"), place.path("led/chains/other.jsonl")).unwrap();
    let (code, report) = place.verify();
    assert!(code == 1 && finds(&report, "altered", "chains/other.jsonl/0"), "{code} {report}");
    let place = Place::new(2);
    let chains = place.path("led/chains/calls.jsonl");
    std::fs::create_dir(chains.join("7")).unwrap();
    std::fs::copy(place.entry("calls.jsonl/0", 0), place.entry("calls.jsonl/7", 0)).unwrap();
    let (code, report) = place.verify();
    assert!(code == 1 && finds(&report, "altered", "chains/calls.jsonl/7"), "{code} {report}");
}

#[test]
fn what_cannot_be_read_is_a_finding_and_the_rest_is_checked() {
    let calls = |place: &Place| {
        let mut found: Vec<PathBuf> =
            std::fs::read_dir(place.path("led/calls")).unwrap().map(|e| e.unwrap().path()).collect();
        found.sort();
        found.remove(0)
    };
    let named = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    for what in ["folder", "loop", "pipe"] {
        for entry in [false, true] {
            let place = Place::new(4);
            let path = if entry { place.entry("calls.jsonl/0", 4) } else { calls(&place) };
            std::fs::remove_file(&path).unwrap();
            match what {
                "folder" => std::fs::create_dir(&path).unwrap(),
                #[cfg(unix)]
                "loop" => std::os::unix::fs::symlink(&path, &path).unwrap(),
                _ => {
                    let made = std::process::Command::new("mkfifo").arg(&path).status();
                    if !made.is_ok_and(|done| done.success()) {
                        continue;
                    }
                }
            }
            let other = place.entry("calls.jsonl/0", 2);
            let text = std::fs::read_to_string(&other).unwrap().replace("\"agreed\":20", "\"agreed\":21");
            std::fs::write(&other, text).unwrap();
            let (code, report) = place.verify();
            let outcome = if what == "loop" { "cannot_check" } else { "altered" };
            assert!(code == 1 && finds(&report, outcome, &named(&path)), "{what} {report}");
            assert!(finds(&report, "altered", "calls.jsonl/0/"), "{report}");
        }
    }
    // The path in the last entry: no entry behind it holds it.
    let place = Place::new(2);
    let last = place.entry("calls.jsonl/0", 2);
    let text = std::fs::read_to_string(&last).unwrap().replace("\"results/", "\"results//");
    std::fs::write(&last, text).unwrap();
    let (code, report) = place.verify();
    assert!(code == 1 && finds(&report, "altered", "results//"), "{report}");
}

#[test]
fn files_at_the_root_are_held_byte_by_byte() {
    let place = Place::new(2);
    place.ok("ledger keygen head.key");
    place.ok("ledger compact led --key head.key");
    place.ok("ledger verify led");
    let head = place.ok("ledger head led --format json").out;
    place.write("head.json", &head);
    let path = place.path("led/ledger.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    let id = serde_json::from_str::<Value>(&whole).unwrap()["id"].as_str().unwrap().to_owned();
    let other = id.replace(|c: char| c.is_ascii_digit(), "f");
    for (text, outcome) in [
        (whole.clone() + "\n", "altered"),
        (whole.replacen('{', "{\"note\":1,", 1), "altered"),
        (whole[..whole.len() / 2].to_owned(), "truncated"),
        (whole.replace(&id, &other), "altered"),
        (whole.replace("\"format\":1", "\"format\":0"), "altered"),
    ] {
        std::fs::write(&path, &text).unwrap();
        for line in ["ledger verify led --format json", "ledger verify led --format json --head head.json"] {
            let said = place.run(line);
            let report: Value =
                serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e} {text}: {}", said.err));
            assert!(said.code == 1 && finds(&report, outcome, "ledger.json"), "{text}: {report}");
            assert!(report["entries"].as_u64().unwrap() > 5, "{report}");
        }
    }
    std::fs::write(&path, whole).unwrap();
    place.ok("ledger verify led --head head.json");
    let signature = place.path(&format!("led/chains/index/{:020}.sig", 0));
    let bytes = std::fs::read(&signature).unwrap();
    std::fs::write(&signature, [bytes.as_slice(), b" "].concat()).unwrap();
    let (code, report) = place.verify();
    assert!(code == 1 && finds(&report, "altered", ".sig"), "{report}");
    std::fs::write(&signature, bytes).unwrap();
    // The mark of an export.
    place.ok("ledger export led t exp");
    let mark = place.path("exp/export.json");
    let text = std::fs::read_to_string(&mark).unwrap();
    std::fs::write(&mark, &text[..text.len() / 2]).unwrap();
    let said = place.run("ledger verify exp --format json");
    let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.err));
    assert!(said.code == 1 && finds(&report, "altered", "export.json"), "{report}");
    assert!(report["findings"].as_array().unwrap().len() == 1, "{report}");
    for path in [mark, place.path("exp/ledger.json")] {
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let said = place.run("ledger verify exp --format json");
        let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.err));
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(said.code == 1 && finds(&report, "altered", name), "{report}");
    }
}

#[test]
fn a_name_forges_no_line() {
    let place = Place::new(2);
    let name = "x\nintact: 99 entries checked";
    for args in [
        vec!["run", "--ledger", "led", "calls.jsonl", "--source", name],
        vec!["ledger", "source", "led", "\u{1b}[2Kx", "--role", "tool-calls"],
        vec!["ledger", "source", "led", "x\u{202e}y", "--role", "tool-calls"],
    ] {
        let said = answer(lastcall().current_dir(place.dir.path()).args(&args));
        assert!(said.code == 2 && said.err.contains("control characters"), "{args:?} {}", said.err);
        assert!(!said.err.contains('\u{1b}') && !said.err.contains("\nintact"), "{}", said.err);
    }
    // One that an older build registered.
    let ledger = lastcall_ledger::Ledger::open(&place.path("led")).unwrap();
    let source = lastcall_ledger::control::Control::Source {
        name: name.to_owned(),
        role: lastcall_ledger::control::Role::ToolCalls,
        source_kind: lastcall_ledger::control::SourceKind::File,
        preset: lastcall_event::Preset::Native,
        lateness_ms: 0,
        map: None,
    };
    ledger.append_control(source).unwrap();
    for line in ["ledger verify led", "ledger show led"] {
        let said = place.ok(line);
        assert!(!said.out.contains("\nintact: 99"), "{}", said.out);
    }
}

/// `status` reads the chains' ends anyway: that one lies in the future is said there too.
#[test]
fn status_warns_of_an_entry_that_lies_in_the_future() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("led");
    let place = path.to_str().unwrap();
    let ledger = lastcall_ledger::Ledger::init(&path, lastcall_ledger::LedgerClock::System).unwrap();
    let status = |args: &[&str]| answer(lastcall().args(["status", "--ledger", place]).args(args));
    let append = |at: i64| {
        let tail = ledger.control().unwrap().tail().unwrap();
        let body = lastcall_ledger::control::Control::Redact { source: "x".to_owned(), redaction: None };
        let (chain, now) = (lastcall_ledger::names::Chain::Control, lastcall_event::Timestamp(at));
        lastcall_ledger::chain::append(&**ledger.store(), &chain, Some(&tail), "w", now, None, &body)
            .unwrap();
    };
    append(lastcall_ledger::system_now().0 + 120_000);
    let near = status(&[]);
    assert!(near.code == 0 && near.err.is_empty(), "clocks may be two minutes apart: {}", near.err);
    append(lastcall_ledger::system_now().0 + 86_400_000);
    for args in [&[][..], &["--format", "json"]] {
        let said = status(args);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.err.starts_with("warning: The newest entry, chains/control/"), "{}", said.err);
        assert!(!said.out.contains("warning"), "{}", said.out);
    }
}

#[test]
fn a_clock_that_cannot_be_is_named() {
    let store = lastcall_ledger::store::MemoryStore::default();
    let ledger = lastcall_ledger::Ledger::init_in(
        std::sync::Arc::new(store.clone()),
        lastcall_ledger::LedgerClock::System,
        "memory",
    )
    .unwrap();
    let tail = ledger.control().unwrap().tail().unwrap();
    let body = lastcall_ledger::control::Control::Redact { source: "x".to_owned(), redaction: None };
    let append = |now: i64| {
        let chain = lastcall_ledger::names::Chain::Control;
        let now = lastcall_event::Timestamp(now);
        lastcall_ledger::chain::append(&store, &chain, Some(&tail), "w", now, None, &body)
    };
    for odd in [1_001_819_000_000_000, i64::MAX, 253_402_300_800_000] {
        let said = append(odd).unwrap_err().to_string();
        assert!(said.contains("clock right"), "{said}");
    }
    // A day ahead is read again, and told.
    append(lastcall_ledger::system_now().0 + 86_400_000).unwrap();
    let report = lastcall_ledger::verify::verify(&ledger, &mut |_| {}).unwrap();
    assert!(report.ahead.is_some_and(|ahead| ahead.place.contains("control")));
    let negative = lastcall_ledger::chain::append(
        &store,
        &lastcall_ledger::names::Chain::Index,
        None,
        "w",
        lastcall_event::Timestamp(-1),
        None,
        &body,
    );
    assert!(negative.unwrap_err().to_string().contains("clock"));
}

/// A run that was killed between a file and its entry leaves data that no entry names.
#[test]
fn what_a_killed_run_left_is_named_and_can_go() {
    let place = Place::new(2);
    let files = |kind: &str| -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = std::fs::read_dir(place.path(&format!("led/{kind}")))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        found.sort();
        found
    };
    let whole = files("calls");
    let left =
        whole[1].file_name().unwrap().to_str().unwrap().replace(&format!("{:020}", 2), &format!("{:020}", 3));
    std::fs::copy(&whole[1], place.path("led/calls").join(&left)).unwrap();
    place.ok("ledger erase led --call-id c105");
    let said = place.ok("ledger erase led --call-id c105").out;
    assert!(
        said.contains(&left) && said.contains("1 row of it") && said.contains("--no-recorder-runs"),
        "{said}"
    );
    place.ok("ledger gc led --delete");
    let said = place.ok("ledger gc led").out;
    assert!(said.contains("may hold personal data") && !said.contains("no garbage"), "{said}");
    assert_eq!(files("calls").len(), 3);
    place.ok("ledger gc led --delete --no-recorder-runs");
    assert_eq!(files("calls").len(), 2);
    place.ok("ledger verify led");
    assert!(place.ok("ledger gc led").out.contains("no garbage"));
}

/// Sessions are known by calls: when those have expired, their dead letters are not found by one.
#[test]
fn what_expiry_takes_from_erasure_is_said() {
    let place = Place::new(1);
    let mut call = call(1, 77);
    call["envelope"] = json!({"session_id": "s-1"});
    let dead = json!({"type": "tool_call", "call_id": "c77"});
    place.write("more.jsonl", format!("{call}\n{dead}\n"));
    place.ok("run --ledger led more.jsonl");
    let said = place.ok("ledger expire led --before 2026-07-01 --kind calls").out;
    assert!(said.contains("can no longer be erased by session"), "{said}");
    let said = place.ok("ledger erase led --session s-1").out;
    assert!(said.contains("calls have expired") && said.contains("--kind dead"), "{said}");
    assert!(!place.ok("ledger erase led --call-id c77").out.contains("calls have expired"));
}
