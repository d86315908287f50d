//! Files and their oddities: what was recorded is what stands in the file, whatever happened in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use lastcall_event::Day;
use lastcall_ledger::days::{DayStates, ReadThrough};
use lastcall_ledger::position::Partition;
use lastcall_ledger::verify::{Outcome, verify};
use lastcall_ledger::{Ledger, LedgerClock};
use lastcall_record::lines::LineReader;
use lastcall_record::{RunError, RunOptions, Summary, run_file};

fn call(id: usize) -> String {
    format!(
        r#"{{"type":"tool_call","schema_version":1,"call_id":"c{id}","ts":"2026-06-0{}T10:00:00Z","tool_id":"t","arguments":{{"n":{id}}},"outcome":{{"status":"ok"}}}}"#,
        1 + id % 3
    )
}

struct Setup {
    _dir: tempfile::TempDir,
    ledger: Ledger,
    file: PathBuf,
}

fn setup(text: &[u8]) -> Setup {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::init(&dir.path().join("ledger"), LedgerClock::System).unwrap();
    let file = dir.path().join("calls.jsonl");
    fs::write(&file, text).unwrap();
    Setup { _dir: dir, ledger, file }
}

fn run(setup: &Setup, options: &RunOptions) -> Result<Summary, RunError> {
    run_file(&setup.ledger, &setup.file, options, &mut |_| {})
}

fn plain(setup: &Setup) -> Summary {
    run(setup, &RunOptions::default()).unwrap()
}

/// (offset, call id) of every recorded call, and (offset, bytes, reason) of every dead letter.
type Recorded = (Vec<(i64, String)>, Vec<(i64, Vec<u8>, String)>);

fn recorded(setup: &Setup, source: &str) -> Recorded {
    let chain = setup.ledger.partition(source, Partition(0)).unwrap();
    let (mut calls, mut dead) = (Vec::new(), Vec::new());
    for (_, chunk) in chain.chunks() {
        setup.ledger.for_each_call(chunk, |row| calls.push((row.position.offset, row.call_id))).unwrap();
        setup
            .ledger
            .for_each_dead(chunk, |row| dead.push((row.position.offset, row.bytes, row.reason)))
            .unwrap();
    }
    let report = verify(&setup.ledger, &mut |_| {}).unwrap();
    assert_eq!(report.outcome, Outcome::Intact, "{:?}", report.findings);
    (calls, dead)
}

fn append(path: &Path, text: &[u8]) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text).unwrap();
}

fn lines(range: std::ops::Range<usize>) -> String {
    range.map(|id| call(id) + "\n").collect()
}

fn offsets(text: &str) -> Vec<(i64, String)> {
    let mut at = 0;
    text.lines()
        .enumerate()
        .map(|(id, line)| {
            let here = (at, format!("c{id}"));
            at += line.len() as i64 + 1;
            here
        })
        .collect()
}

#[test]
fn a_second_run_adds_nothing_and_a_grown_file_only_what_is_new() {
    let s = setup(lines(0..5).as_bytes());
    let first = plain(&s);
    assert!(first.registered && first.balance.calls == 5 && first.chunks == 1);
    let second = plain(&s);
    assert!(second.is_empty() && !second.registered);
    append(&s.file, lines(5..9).as_bytes());
    let third = plain(&s);
    assert_eq!((third.balance.calls, third.from), (4, lines(0..5).len() as i64));
    assert_eq!(recorded(&s, "calls.jsonl").0, offsets(&lines(0..9)));
}

#[test]
fn a_replaced_or_shortened_file_is_refused_by_name() {
    let s = setup(lines(0..5).as_bytes());
    plain(&s);
    fs::write(&s.file, lines(0..3)).unwrap();
    let error = run(&s, &RunOptions::default()).unwrap_err();
    assert!(matches!(error, RunError::Replaced { .. }), "{error}");
    assert!(error.to_string().contains("calls.jsonl") && error.to_string().contains("--source"), "{error}");
    let mut other = lines(0..5).replace("\"n\":1", "\"n\":7");
    other.push_str(&lines(5..6));
    fs::write(&s.file, &other).unwrap();
    assert!(matches!(run(&s, &RunOptions::default()), Err(RunError::Replaced { .. })));
    // Under a name of its own it is a source like any other.
    let named = RunOptions { source: Some("other".to_owned()), ..RunOptions::default() };
    assert_eq!(run(&s, &named).unwrap().balance.calls, 6);
    assert_eq!(recorded(&s, "calls.jsonl").0.len(), 5);
}

#[test]
fn packed_files_are_read_by_their_uncompressed_offsets() {
    let text = lines(0..300);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let mut packed = gzip.finish().unwrap();
    // A second member behind the first, as log rotation makes them.
    let more = lines(300..310);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(more.as_bytes()).unwrap();
    packed.extend(gzip.finish().unwrap());
    let whole = lines(0..310);
    for packed in [packed, zstd::encode_all(whole.as_bytes(), 3).unwrap()] {
        let s = setup(&packed);
        assert_eq!(plain(&s).balance.calls, 310);
        assert_eq!(recorded(&s, "calls.jsonl").0, offsets(&whole));
        assert!(plain(&s).is_empty());
    }
}

#[test]
fn a_damaged_archive_is_an_error_and_not_the_end_of_the_file() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(lines(0..300).as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    let s = setup(&packed[..packed.len() - 20]);
    let error = run(&s, &RunOptions::default()).unwrap_err();
    assert!(error.to_string().contains("uncompressed"), "{error}");
}

#[test]
fn line_ends_marks_and_blanks() {
    let text = format!("\u{feff}{}\r\n\r\n  \n{}\r\n", call(0), call(1));
    let s = setup(text.as_bytes());
    let b = plain(&s).balance;
    assert_eq!((b.read, b.calls, b.blank, b.dead, b.other), (4, 2, 2, 0, 2));
    let second = text.find(&call(1)).unwrap() as i64;
    assert_eq!(recorded(&s, "calls.jsonl").0, [(0, "c0".to_owned()), (second, "c1".to_owned())]);
}

#[test]
fn a_last_line_without_an_end_waits_unless_final() {
    let text = lines(0..2) + &call(2);
    let s = setup(text.as_bytes());
    let first = plain(&s);
    assert_eq!((first.balance.calls, first.waiting), (2, call(2).len() as u64));
    assert!(plain(&s).is_empty());
    // It was not read to its end: no time closes.
    let chain = s.ledger.partition("calls.jsonl", Partition(0)).unwrap();
    assert_eq!(chain.progress().unwrap().read_through, None);
    append(&s.file, b"\n");
    assert_eq!(plain(&s).balance.calls, 1);
    append(&s.file, call(3).as_bytes());
    let last = run(&s, &RunOptions { is_final: true, ..RunOptions::default() }).unwrap();
    assert_eq!((last.balance.calls, last.waiting, last.is_final), (1, 0, true));
    assert_eq!(recorded(&s, "calls.jsonl").0, offsets(&(lines(0..3) + &call(3))));
    assert!(run(&s, &RunOptions { is_final: true, ..RunOptions::default() }).unwrap().is_empty());
}

#[test]
fn an_empty_file_is_a_source_that_was_read() {
    let s = setup(b"");
    let first = plain(&s);
    assert_eq!((first.chunks, first.heartbeats), (0, 1));
    assert!(plain(&s).is_empty());
    assert_eq!(run(&s, &RunOptions { is_final: true, ..RunOptions::default() }).unwrap().heartbeats, 1);
    assert_eq!(recorded(&s, "calls.jsonl"), (Vec::new(), Vec::new()));
}

#[test]
fn what_cannot_be_decoded_is_kept_to_the_byte() {
    let odd: [&[u8]; 4] =
        [b"{\"type\":", b"\xff\xfe", b"[1]", b"{\"type\":\"tool_call\",\"schema_version\":1}"];
    let mut text = Vec::new();
    for line in odd {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    let s = setup(&text);
    let summary = plain(&s);
    assert_eq!((summary.balance.dead, summary.balance.read), (4, 4));
    let kept: Vec<Vec<u8>> = recorded(&s, "calls.jsonl").1.into_iter().map(|(_, bytes, _)| bytes).collect();
    assert_eq!(kept, odd);
    assert_eq!(
        summary.dead_reasons.keys().collect::<Vec<_>>(),
        ["missing_field", "not_a_record", "not_json", "not_utf8"]
    );
}

#[test]
fn a_line_beyond_the_limit_is_a_dead_letter_and_reading_goes_on() {
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(5000));
    let text = format!("{}\n{long}\n{}\n", call(0), call(1));
    let s = setup(text.as_bytes());
    let options = RunOptions { line_limit: Some(1000), ..RunOptions::default() };
    let summary = run(&s, &options).unwrap();
    assert_eq!((summary.balance.calls, summary.balance.dead, summary.balance.read), (2, 1, 3));
    assert!(run(&s, &options).unwrap().is_empty());
    let (calls, dead) = recorded(&s, "calls.jsonl");
    assert_eq!(calls[1].0, text.find(&call(1)).unwrap() as i64);
    let (offset, bytes, reason) = &dead[0];
    assert_eq!((*offset, reason.as_str()), (call(0).len() as i64 + 1, "too_long"));
    assert!(long.as_bytes().starts_with(bytes) && bytes.len() >= 1000);
    // Exactly at the limit a line is whole, with either end.
    for end in ["\n", "\r\n"] {
        let mut reader = LineReader::new(std::io::Cursor::new(format!("{}{end}z\n", "y".repeat(1000))), None)
            .unwrap()
            .with_limit(1000);
        let line = reader.next_line().unwrap().unwrap();
        assert!(!line.too_long && line.bytes.len() == 1000);
        let next = line.next.0;
        assert_eq!(reader.next_line().unwrap().unwrap().offset.0, next);
    }
}

#[test]
fn days_close_by_the_time_of_reading_or_for_ever() {
    let s = setup(lines(0..6).as_bytes());
    plain(&s);
    let days = |s: &Setup| -> DayStates { s.ledger.days(&["calls.jsonl"]).unwrap() };
    let first = Day::parse("2026-06-01").unwrap();
    let far = Day::parse("2199-01-01").unwrap();
    let now = lastcall_ledger::system_now();
    assert_eq!(days(&s).is_closed(first), now.0 >= first.end().0 + 3_600_000);
    assert!(!days(&s).is_closed(far) && !days(&s).is_closed(now.day()));
    run(&s, &RunOptions { is_final: true, ..RunOptions::default() }).unwrap();
    // for ever, but no day before it is over
    assert!(!days(&s).is_closed(far) && !days(&s).is_closed(now.day()));
    assert!(days(&s).is_closed(now.day().plus(-1)));
    assert_eq!(days(&s).partitions[0].read_through(), ReadThrough::ForEver);
    assert!(!s.ledger.days(&["nobody"]).unwrap().is_closed(first));
}

#[test]
fn a_simulated_ledger_takes_its_time_from_clock_records() {
    let clock = |ts: &str| format!(r#"{{"type":"clock","schema_version":1,"ts":"{ts}"}}"#) + "\n";
    let text = lines(0..1) + &clock("2026-06-02T00:59:59Z");
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::init(&dir.path().join("ledger"), LedgerClock::Simulated).unwrap();
    let file = dir.path().join("calls.jsonl");
    fs::write(&file, &text).unwrap();
    let s = Setup { _dir: dir, ledger, file };
    assert_eq!(s.ledger.now().unwrap(), None);
    plain(&s);
    let day = Day::parse("2026-06-01").unwrap();
    let closed = |s: &Setup| s.ledger.days(&["calls.jsonl"]).unwrap().is_closed(day);
    // The day's end plus one hour of lateness is one second away.
    assert!(!closed(&s));
    append(&s.file, clock("2026-06-02T01:00:00Z").as_bytes());
    plain(&s);
    assert!(closed(&s) && !s.ledger.days(&["calls.jsonl"]).unwrap().is_closed(day.plus(1)));
    // A late call changes nothing about the day; its accounting day is the next one, which is open.
    append(&s.file, (call(3) + "\n").as_bytes());
    plain(&s);
    assert!(closed(&s));
    let days = s.ledger.days(&["calls.jsonl"]).unwrap();
    let p = days.partition("calls.jsonl", Partition(0)).unwrap();
    assert!(p.is_late(3, day) && !p.is_late(2, day) && !p.is_late(3, day.plus(1)));
    assert_eq!(p.accounting_day(3, day), day.plus(1));
    assert_eq!(p.accounting_day(2, day), day);
    assert_eq!(s.ledger.now().unwrap().map(|t| t.to_string()).as_deref(), Some("2026-06-02T01:00:00.000Z"));
}

#[test]
fn odd_names_stay_in_their_folders() {
    let s = setup(lines(0..2).as_bytes());
    for name in ["../../x", "a/b", "é ü", ".hidden", "100%", "a-b-1"] {
        let options = RunOptions { source: Some(name.to_owned()), ..RunOptions::default() };
        assert_eq!(run(&s, &options).unwrap().balance.calls, 2, "{name}");
        assert!(run(&s, &options).unwrap().is_empty(), "{name}");
        assert_eq!(recorded(&s, name).0.len(), 2);
    }
    assert!(run(&s, &RunOptions { source: Some("control".to_owned()), ..RunOptions::default() }).is_err());
}
