//! What verify finds, what an append answers, what a chain refuses. Everything in memory but the local store's own test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lastcall_compare::{Comparison, ComparisonResult, Evidence};
use lastcall_contract::Digest;
use lastcall_event::{Fidelity, Preset, Record, Timestamp};
use lastcall_ledger::chain::{Append, append, read_from, read_tail};
use lastcall_ledger::control::{Control, Pair, Role, SourceKind};
use lastcall_ledger::entry::{
    Balance, Build, Chunk, ControlRef, FileKind, FileRef, Fingerprint, PartitionBody, Progress,
};
use lastcall_ledger::named::NamedCounts;
use lastcall_ledger::names::{Chain, data_path};
use lastcall_ledger::position::{NextOffset, Partition, Range};
use lastcall_ledger::rows::Position;
use lastcall_ledger::store::{Bytes, Created, LocalStore, MemoryStore, Store, StoreError};
use lastcall_ledger::tally::{CallCount, Counts, Tally};
use lastcall_ledger::verify::{Outcome, Verification, verify};
use lastcall_ledger::{CallRef, CallsWriter, Ledger, LedgerClock, LedgerError, ResultRef, ResultsWriter};

const TS: &str = "2026-06-01T10:00:00Z";

fn progress(next: i64) -> Progress {
    Progress {
        next: NextOffset(next),
        partitions: 1,
        fingerprint: Fingerprint::default(),
        read_through: None,
        is_final: false,
        clock: None,
        upstream: None,
        coverage_through: None,
    }
}

fn build() -> Build {
    Build { lastcall: "test".to_owned(), comparator: 1 }
}

fn epoch() -> Digest {
    Digest::of(b"epoch")
}

fn agreed() -> Comparison {
    Comparison {
        result: ComparisonResult::Agreed,
        reason: None,
        discrepancies: Vec::new(),
        evidence: Evidence { validation: true, arguments: false, outcome: false },
        rules: Vec::new(),
        touched: Vec::new(),
        disagreed_at: Vec::new(),
    }
}

/// A ledger of one source with three chunks of two calls each, written by hand.
struct Made {
    store: MemoryStore,
    ledger: Ledger,
    chain: Chain,
}

fn made() -> Made {
    let store = MemoryStore::default();
    let ledger = Ledger::init_in(Arc::new(store.clone()), LedgerClock::System, "memory").unwrap();
    let object = ledger.put_object(b"{}").unwrap();
    let source = Control::Source {
        name: "s".to_owned(),
        role: Role::ToolCalls,
        source_kind: SourceKind::File,
        preset: Preset::Native,
        lateness_ms: 0,
        map: None,
    };
    ledger.append_control(source).unwrap();
    let pair = Pair {
        tool_id: "t".to_owned(),
        current: "t@1".to_owned(),
        current_digest: object.clone(),
        candidate: "t@2".to_owned(),
        candidate_digest: object.clone(),
        config_digest: object,
        epoch: epoch(),
        comparator: 1,
    };
    let (seq, digest) = ledger.append_control(Control::Observe { pair }).unwrap();
    let control = ControlRef { seq, digest };
    let chain = Chain::partition("s", Partition(0));
    let genesis = PartitionBody::Genesis {
        source: "s".to_owned(),
        partition: 0,
        source_kind: SourceKind::File,
        location: "s".to_owned(),
        control: control.clone(),
        progress: progress(0),
        build: build(),
    };
    let now = lastcall_ledger::system_now();
    let Append::Won(mut tail) = append(&store, &chain, None, "w", now, None, &genesis).unwrap() else {
        panic!()
    };
    for n in 0..3i64 {
        let body = PartitionBody::Chunk(Box::new(chunk(&store, n * 20, tail.seq + 1, &control)));
        let Append::Won(next) = append(&store, &chain, Some(&tail), "w", now, None, &body).unwrap() else {
            panic!()
        };
        tail = next;
    }
    Made { store, ledger, chain }
}

fn chunk(store: &MemoryStore, first: i64, seq: u64, control: &ControlRef) -> Chunk {
    let (mut calls, mut results) = (CallsWriter::default(), ResultsWriter::default());
    for offset in [first, first + 10] {
        let text = format!(
            r#"{{"type":"tool_call","schema_version":1,"call_id":"c{offset}","ts":"{TS}","tool_id":"t","arguments":{{}},"outcome":{{"status":"ok"}}}}"#
        );
        let decoded = lastcall_event::decode(text.as_bytes(), Preset::Native).unwrap();
        let Record::Call(call) = &decoded.record else { panic!() };
        let position = Position { partition: 0, offset, index: 0 };
        let preset = Preset::Native;
        let row = CallRef {
            position,
            call_key: &[1; 16],
            ts: call.ts,
            call,
            preset,
            record: &text,
            salt: &[7; 16],
        };
        let commitment = calls.append(&row).unwrap();
        // an independent reading of schemas/parquet.md: SHA-256 over salt and record
        assert_eq!(
            Digest::of(&[&[7; 16], text.as_bytes()].concat()).hex(),
            lastcall_ledger::hex(&commitment)
        );
        let comparison = agreed();
        let row = ResultRef {
            position,
            ts: call.ts,
            call_key: &[1; 16],
            pair: 0,
            tool_id: "t",
            current: "t@1",
            candidate: "t@2",
            epoch: epoch().as_str().to_owned().leak(),
            session_key: None,
            agent: None,
            cohort: None,
            comparison: &comparison,
            fidelity: Fidelity::Raw,
            suppression: None,
            candidate_status: None,
            commitment: &commitment,
        };
        results.append(&row).unwrap();
    }
    let mut files = Vec::new();
    for (kind, file) in [(FileKind::Calls, calls.finish()), (FileKind::Results, results.finish())] {
        let file = file.unwrap().unwrap();
        let path = data_path(kind.as_str(), "s", Partition(0), seq, "00");
        store.put(&path, &file.bytes).unwrap();
        files.push(FileRef {
            kind,
            path,
            sha256: file.sha256,
            bytes: file.bytes.len() as u64,
            rows: file.rows,
        });
    }
    let day = Timestamp::parse(TS).unwrap().day();
    let one = |(name, n): (&'static str, u64)| NamedCounts::from_iter([(name, n)]);
    let counts = Counts {
        agreed: 2,
        evidence: one(("validation", 2)),
        fidelity: one(("raw", 2)),
        ..Counts::default()
    };
    Chunk {
        range: Range { first: NextOffset(first), next: NextOffset(first + 20) },
        control: control.clone(),
        progress: progress(first + 20),
        files,
        balance: Balance { read: 2, calls: 2, ..Balance::default() },
        unknown_fields: 0,
        dead_reasons: BTreeMap::new(),
        calls: vec![CallCount {
            day,
            tool: "t".into(),
            contract: None,
            cohort: None,
            agent: None,
            calls: 2,
            digest_mismatch: 0,
        }],
        tallies: vec![Tally { day, tool: "t".into(), epoch: epoch(), cohort: None, agent: None, counts }],
        exposure: Vec::new(),
        coverage: Vec::new(),
        losses: Vec::new(),
        oldest: None,
        newest: None,
        build: build(),
    }
}

fn checked(made: &Made) -> Verification {
    verify(&made.ledger, &mut |_| {}).unwrap()
}

/// Writes an entry anew with a changed text, and every later one with the digests that then follow.
fn rewrite(made: &Made, from: u64, change: impl Fn(&str) -> String) {
    let mut seq = from;
    let mut previous: Option<Digest> = None;
    while let Some(bytes) = made.store.get(&made.chain.entry_path(seq)).unwrap() {
        let as_written: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let mut text = serde_json_canonicalizer::to_string(&as_written).unwrap();
        if seq == from {
            let changed = change(&text);
            assert_ne!(changed, text, "nothing was changed");
            text = changed;
        }
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        if let Some(previous) = &previous {
            value["previous"] = previous.as_str().into();
        }
        let bytes = Bytes::from(serde_json_canonicalizer::to_vec(&value).unwrap());
        previous = Some(Digest::of(&bytes));
        made.store.overwrite(&made.chain.entry_path(seq), bytes);
        seq += 1;
    }
}

#[test]
fn an_untouched_record_is_intact() {
    let report = checked(&made());
    assert_eq!(report.outcome, Outcome::Intact, "{:?}", report.findings);
    assert_eq!((report.entries, report.files, report.rows, report.objects), (7, 6, 12, 1));
    assert!(report.not_excluded.contains("head"));
}

#[test]
fn one_flipped_bit_anywhere_is_found() {
    let paths: Vec<String> = ["chains", "calls", "results", "objects"]
        .iter()
        .flat_map(|folder| made().store.list(folder).unwrap())
        .collect();
    assert_eq!(paths.len(), 7 + 6 + 1);
    for path in paths {
        let m = made();
        // Ids and nonces are random, so the path of the object and of the entries are the only stable ones: all are.
        let bytes = m.store.get(&path).unwrap().unwrap_or_else(|| panic!("{path}"));
        // The last entry of a chain is vouched for by nobody but a head that is kept elsewhere.
        if path.ends_with("0/00000000000000000003.json")
            || path.ends_with("control/00000000000000000002.json")
        {
            continue;
        }
        for at in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 2] {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 1;
            m.store.overwrite(&path, Bytes::from(bytes));
            let report = checked(&m);
            assert_ne!(report.outcome, Outcome::Intact, "{path} byte {at}");
            assert!(
                report.outcome == Outcome::Altered || path.starts_with("chains"),
                "{path}: {:?}",
                report.findings
            );
        }
    }
}

#[test]
fn what_is_missing_or_cut_off_is_named() {
    let m = made();
    let file = m.store.list("results").unwrap()[1].clone();
    let bytes = m.store.remove(&file).unwrap();
    let report = checked(&m);
    assert_eq!(report.outcome, Outcome::Incomplete);
    assert_eq!((report.findings.len(), report.findings[0].place.as_str()), (1, file.as_str()));
    assert_eq!(report.findings[0].record.as_deref(), Some("s/0 entry 2"));
    m.store.overwrite(&file, bytes.slice(..bytes.len() - 1));
    assert_eq!(checked(&m).outcome, Outcome::Truncated);
    m.store.overwrite(&file, bytes);
    assert_eq!(checked(&m).outcome, Outcome::Intact);
    // An entry in the middle.
    let entry = m.chain.entry_path(2);
    let bytes = m.store.remove(&entry).unwrap();
    let report = checked(&m);
    assert_eq!(report.outcome, Outcome::Incomplete);
    assert_eq!(report.findings[0].place, entry);
    assert!(matches!(m.ledger.partition("s", Partition(0)), Err(LedgerError::Missing { .. })));
    assert!(read_tail::<PartitionBody>(&m.store, &m.chain).is_err());
    m.store.overwrite(&entry, bytes.slice(..bytes.len() / 2));
    assert_eq!(checked(&m).findings[0].outcome, Outcome::Truncated);
    m.store.overwrite(&entry, bytes);
    // The control chain ends before the entry that the chunks name.
    m.store.remove(&Chain::Control.entry_path(2)).unwrap();
    let report = checked(&m);
    assert_eq!(report.outcome, Outcome::Truncated);
    assert!(
        report.findings.len() == 1
            && report.findings[0].place == Chain::Control.entry_path(2)
            && report.findings[0].what.contains("it is missing, and chains/s/0/"),
        "{:?}",
        report.findings
    );
}

#[test]
fn entries_that_were_written_anew_still_have_to_fit_their_files() {
    type Change = fn(&str) -> String;
    let cases: [(&str, Change); 6] = [
        ("tallies", |t| t.replace("\"agreed\":2", "\"agreed\":1,\"disagreed\":1")),
        ("call counts", |t| t.replace("\"calls\":2,\"day\"", "\"calls\":3,\"day\"")),
        ("calls + dead + other", |t| t.replace("\"read\":2", "\"read\":3")),
        ("begin where", |t| t.replace("\"first\":0", "\"first\":1")),
        ("rows", |t| t.replace("\"rows\":2", "\"rows\":3")),
        ("00000000000000000001.json names: one of the two", |t| {
            let start = "\"control\":{\"digest\":\"sha256:";
            let at = t.find(start).unwrap() + start.len();
            let digit = if t.as_bytes()[at] == b'0' { "1" } else { "0" };
            format!("{}{digit}{}", &t[..at], &t[at + 1..])
        }),
    ];
    for (what, change) in cases {
        let m = made();
        rewrite(&m, 1, change);
        let report = checked(&m);
        assert_eq!(report.outcome, Outcome::Altered, "{what}");
        assert!(report.findings.iter().any(|f| f.what.contains(what)), "{what}: {:?}", report.findings);
    }
}

#[test]
fn reading_stops_at_an_altered_chain() {
    let m = made();
    let path = m.chain.entry_path(1);
    let text = String::from_utf8(m.store.get(&path).unwrap().unwrap().to_vec()).unwrap();
    m.store.overwrite(&path, Bytes::from(text.replace("\"agreed\":2", "\"agreed\":9")));
    let error = m.ledger.partition("s", Partition(0)).unwrap_err();
    assert!(error.is_altered() && error.to_string().contains(&m.chain.entry_path(2)), "{error}");
    assert!(m.ledger.partitions().unwrap_err().is_altered());
}

/// A store whose first answers to a create are lost.
struct Lossy {
    inner: MemoryStore,
    lost: AtomicUsize,
    takes_effect: bool,
    rival: Option<Bytes>,
}

impl Store for Lossy {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        if self.lost.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
            if let Some(rival) = &self.rival {
                self.inner.create(path, rival)?;
            } else if self.takes_effect {
                self.inner.create(path, bytes)?;
            }
            return Err(StoreError::Ambiguous { path: path.to_owned(), what: "lost".to_owned() });
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

#[test]
fn an_ambiguous_append_is_settled_by_reading_the_slot() {
    let body = Control::Genesis { ledger_id: "x".to_owned(), clock: LedgerClock::System };
    for (takes_effect, rival, won) in
        [(true, None, true), (false, None, true), (false, Some(Bytes::from("{}")), false)]
    {
        let store = Lossy { inner: MemoryStore::default(), lost: AtomicUsize::new(3), takes_effect, rival };
        let answer = append(&store, &Chain::Control, None, "w", Timestamp(1), None, &body).unwrap();
        assert_eq!(matches!(answer, Append::Won(_)), won);
        assert_eq!(store.inner.list("chains").unwrap().len(), 1);
    }
    // Never an answer: an error, not a guess.
    let never = Lossy {
        inner: MemoryStore::default(),
        lost: AtomicUsize::new(1000),
        takes_effect: false,
        rival: None,
    };
    assert!(append(&never, &Chain::Control, None, "w", Timestamp(1), None, &body).is_err());
}

#[test]
fn the_second_of_two_appends_loses_and_time_never_falls() {
    let store = MemoryStore::default();
    let body = |id: &str| Control::Genesis { ledger_id: id.to_owned(), clock: LedgerClock::System };
    let Append::Won(tail) =
        append(&store, &Chain::Control, None, "a", Timestamp(50), None, &body("1")).unwrap()
    else {
        panic!()
    };
    assert_eq!(
        append(&store, &Chain::Control, None, "b", Timestamp(60), None, &body("2")).unwrap(),
        Append::Lost
    );
    let Append::Won(second) =
        append(&store, &Chain::Control, Some(&tail), "a", Timestamp(10), Some(Timestamp(70)), &body("3"))
            .unwrap()
    else {
        panic!()
    };
    assert_eq!((second.seq, second.at), (1, Timestamp(70)));
    let Append::Won(third) =
        append(&store, &Chain::Control, Some(&second), "a", Timestamp(5), None, &body("4")).unwrap()
    else {
        panic!()
    };
    assert_eq!(third.at, Timestamp(70));
    let read = read_from::<Control>(&store, &Chain::Control, None).unwrap();
    assert_eq!(read.len(), 3);
    assert_eq!(read_tail::<Control>(&store, &Chain::Control).unwrap().unwrap().tail(), third);
}

#[test]
fn tails_are_found_whatever_the_length() {
    let store = MemoryStore::default();
    let mut tail = None;
    for n in 0..70u64 {
        let found = read_tail::<Control>(&store, &Chain::Control).unwrap().map(|read| read.entry.seq);
        assert_eq!(found, n.checked_sub(1));
        let body = Control::Genesis { ledger_id: n.to_string(), clock: LedgerClock::System };
        let Append::Won(won) =
            append(&store, &Chain::Control, tail.as_ref(), "a", Timestamp(1), None, &body).unwrap()
        else {
            panic!()
        };
        tail = Some(won);
    }
}

#[test]
fn preconditions_are_asked_again_whenever_another_writer_was_faster() {
    let store = MemoryStore::default();
    let a = Ledger::init_in(Arc::new(store.clone()), LedgerClock::System, "memory").unwrap();
    let b = Ledger::open_in(Arc::new(store), "memory").unwrap();
    let source = |name: &str| Control::Source {
        name: name.to_owned(),
        role: Role::ToolCalls,
        source_kind: SourceKind::File,
        preset: Preset::Native,
        lateness_ms: 0,
        map: None,
    };
    let mut asked = 0;
    let refused = a.append_control_with(|state| {
        asked += 1;
        if state.sources.contains_key("s") {
            return Err(LedgerError::Refused("there is one".to_owned()));
        }
        // Meanwhile the other one registers it.
        b.append_control(source("s"))?;
        Ok(source("s"))
    });
    assert!(matches!(refused, Err(LedgerError::Refused(_))));
    assert_eq!((asked, a.control().unwrap().entries.len()), (2, 2));
}

#[test]
fn objects_are_checked_when_they_are_read() {
    let m = made();
    let digest = m.ledger.put_object(b"text").unwrap();
    assert_eq!(m.ledger.put_object(b"text").unwrap(), digest);
    assert_eq!(m.ledger.object(&digest).unwrap(), b"text");
    m.store.overwrite(&format!("objects/{}", digest.hex()), Bytes::from("other"));
    assert!(m.ledger.object(&digest).unwrap_err().is_altered());
    assert!(matches!(m.ledger.object(&Digest::of(b"nothing")), Err(LedgerError::Missing { .. })));
}

#[test]
fn the_local_store_creates_once_and_keeps_odd_names() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::open(dir.path()).unwrap();
    let path = "chains/a%2Fb%20%C3%A9/0/1.json";
    assert_eq!(store.get(path).unwrap(), None);
    assert_eq!(store.create(path, &Bytes::from("1")).unwrap(), Created::Yes);
    assert_eq!(store.create(path, &Bytes::from("2")).unwrap(), Created::Exists);
    assert_eq!(store.get(path).unwrap().as_deref(), Some(b"1".as_slice()));
    assert_eq!(store.list("chains").unwrap(), [path]);
    assert!(dir.path().join(path).is_file(), "the file's name is the encoded one");
    assert!(store.get("../x").is_err());
    store.delete(path).unwrap();
    store.delete(path).unwrap();
    assert_eq!(store.get(path).unwrap(), None);
    assert_eq!(store.create(path, &Bytes::from("3")).unwrap(), Created::Yes, "the place is free again");
    assert!(store.delete("../x").is_err());
    assert!(matches!(Ledger::open(dir.path()), Err(LedgerError::NotALedger(_))));
    Ledger::init(dir.path(), LedgerClock::System).unwrap();
    assert!(matches!(Ledger::init(dir.path(), LedgerClock::System), Err(LedgerError::AlreadyALedger(_))));
    assert!(Ledger::open(&dir.path().join("absent")).is_err());
}
