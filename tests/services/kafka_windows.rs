//! Windows that open while recorders run: what was recorded under the registration is scored, and nothing else.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use lastcall_compare::PairConfig;
use lastcall_ledger::{Ledger, LedgerClock};
use lastcall_tests::services::broker::Broker;
use lastcall_tests::{answer, lastcall, observe};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::topic::{
    OLD, Running, TOPIC, WIDE, call_at, contract, intact, prepare, record, recorded, send, until,
};
use lastcall_event::{Day, Timestamp};

const DAY: &str = "2026-06-01";
const PARTITIONS: usize = 2;

fn morning() -> Timestamp {
    Timestamp(i64::from(Day::parse(DAY).unwrap().0) * 86_400_000 + 10 * 3_600_000)
}

fn calls(from: usize, count: usize) -> Vec<Vec<String>> {
    let of = |partition: usize| {
        let numbers = (from..from + count).filter(move |number| number % PARTITIONS == partition);
        numbers.map(|number| call_at(number, morning()).to_string()).collect()
    };
    (0..PARTITIONS).map(of).collect()
}

fn put(broker: &Broker, values: Vec<Vec<String>>) {
    for (partition, values) in values.into_iter().enumerate() {
        send(broker, i32::try_from(partition).unwrap(), values);
    }
}

/// A window over a candidate that is observed, and then registered, while two groups of recorders race, one of them behind. The
/// day is one that may be stated: the ledger's time comes from the topic, and has not begun.
#[test]
fn a_candidate_that_is_registered_while_recorders_run_is_scored_from_that_entry_on() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, i32::try_from(PARTITIONS).unwrap(), &[]);
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("led");
    let ledger = Ledger::init(&place, LedgerClock::Simulated).unwrap();
    prepare(&ledger);
    let path = place.to_str().unwrap();
    let policy = folder.path().join("policy.yaml");
    std::fs::write(&policy, "burn_in: {tier: T1, profile: article, min_calls: 100}").unwrap();
    let register = |candidate: &str| {
        let mut command = lastcall();
        command.args(["plan", "register", "search", "--from", DAY, "--ledger", path, "--no-try"]);
        let said = answer(command.args(["--candidate", candidate, "--policy"]).arg(&policy));
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
        ledger.control().unwrap().entries.last().unwrap().entry.seq
    };
    let started = |name: &str, group: &str| {
        let mut command: Command = record(&broker, path, &["--listen", "127.0.0.1:0", "--group", group]);
        Running::start(command.args(["--chunk-age", "1", "--chunk-records", "25"]), folder.path(), name)
    };
    let phase = |from: usize, count: usize| {
        put(&broker, calls(from, count));
        until("a part is recorded", || recorded(&ledger).balance.calls == (from + count) as u64);
    };
    let (lagging, other) = (started("a", "g1"), started("b", "g2"));
    phase(0, 200);
    lagging.signal("STOP");
    // A new candidate is observed: its results begin here, and none of them is evidence.
    observe(&ledger, &contract(OLD, 1), &contract(WIDE, 3), &PairConfig::default());
    let observed = ledger.control().unwrap().entries.last().unwrap().entry.seq;
    std::thread::sleep(Duration::from_secs(3));
    phase(200, 200);
    let registered = register("search@3");
    std::thread::sleep(Duration::from_secs(3));
    phase(400, 200);
    // The one that was behind wakes up with what it had read before either entry.
    lagging.signal("CONT");
    phase(600, 200);
    let clock = json!({"type": "clock", "schema_version": 1, "ts": "2026-06-02T06:00:00Z"}).to_string();
    put(&broker, vec![vec![clock]; PARTITIONS]);
    until("its day is over", || recorded(&ledger).balance.clock == PARTITIONS as u64);
    for one in [lagging, other] {
        one.signal("TERM");
        let (code, said) = one.ends();
        assert_eq!(code, Some(0), "{said}");
    }
    let mut under = BTreeMap::<&str, u64>::new();
    for partition in ledger.partitions().unwrap() {
        let mut last = 0;
        for (_, chunk) in partition.chunks() {
            assert!(chunk.control.seq >= last, "a recorder that was behind wrote after one that was not");
            last = chunk.control.seq;
            let mut rows = BTreeMap::<_, u64>::new();
            ledger
                .for_each_result(chunk, |row| *rows.entry((row.candidate, row.epoch)).or_default() += 1)
                .unwrap();
            let seen = last >= observed;
            assert_eq!(
                rows.len(),
                if chunk.balance.calls == 0 { 0 } else { 1 + usize::from(seen) },
                "{rows:?}"
            );
            assert!(rows.values().all(|count| *count == chunk.balance.calls), "{rows:?}");
            let name = match () {
                () if last >= registered => "registered",
                () if seen => "observed",
                () => "before",
            };
            *under.entry(name).or_default() += chunk.balance.calls;
        }
    }
    assert_eq!(under, BTreeMap::from([("before", 200), ("observed", 200), ("registered", 400)]));
    let said =
        answer(lastcall().args(["decide", "search", "--format", "json", "--dry-run", "--ledger", path]));
    let verdict: Value = serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.err));
    let totals = &verdict["totals"];
    assert_eq!(verdict["pair"]["candidate"], "search@3", "{verdict:#}");
    assert_eq!((&totals["calls"], &totals["compared"]), (&json!(800), &json!(400)), "{verdict:#}");
    assert_eq!(totals["reasons"], json!({"not_observed": 400}), "{verdict:#}");
    intact(path);
}
