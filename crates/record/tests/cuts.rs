//! Any cut of the input into chunks and runs gives the same rows by position and the same summed tallies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::sync::Arc;

use lastcall_compare::{COMPARATOR_VERSION, PairConfig, PreparedPair, config_bytes};
use lastcall_contract::{Contract, Definition, Pick};
use lastcall_ledger::control::{Control, Pair};
use lastcall_ledger::entry::Balance;
use lastcall_ledger::position::Partition;
use lastcall_ledger::rows::{CallRow, DeadRow, ResultRow};
use lastcall_ledger::store::MemoryStore;
use lastcall_ledger::tally::Sums;
use lastcall_ledger::{Ledger, LedgerClock};
use lastcall_record::{Limits, RunOptions, run_file};
use proptest::prelude::*;

const OLD: &str = r#"{"name":"refund","description":"d","inputSchema":{"type":"object","properties":{
    "order":{"type":"string"},"reason":{"type":"string","enum":["late","broken","other"]},"amount":{"type":"number"}},
    "required":["order"]}}"#;
const NEW: &str = r#"{"name":"refund","description":"d","inputSchema":{"type":"object","properties":{
    "order":{"type":"string"},"reason":{"type":"string","enum":["late","broken"]},"amount":{"type":"number","maximum":50}},
    "required":["order","amount"]}}"#;

fn contract(id: &str, text: &str) -> Contract {
    Contract::new(id, Definition::from_text(id, text, Pick::default()).unwrap())
}

fn ledger() -> Ledger {
    let ledger = Ledger::init_in(Arc::new(MemoryStore::default()), LedgerClock::System, "memory").unwrap();
    let config = PairConfig::default();
    let prepared =
        PreparedPair::new(&contract("refund@1", OLD), &contract("refund@2", NEW), &config).unwrap();
    let pair = Pair {
        tool_id: "refund".to_owned(),
        current: "refund@1".to_owned(),
        current_digest: ledger.put_object(OLD.as_bytes()).unwrap(),
        candidate: "refund@2".to_owned(),
        candidate_digest: ledger.put_object(NEW.as_bytes()).unwrap(),
        config_digest: ledger.put_object(&config_bytes(&config)).unwrap(),
        epoch: prepared.epoch().clone(),
        comparator: COMPARATOR_VERSION,
    };
    ledger.append_control(Control::Observe { pair }).unwrap();
    ledger
}

fn line() -> impl Strategy<Value = String> {
    let call = (0..3u8, 0..40u32, 0..4u8, prop::option::of(0..100u32), 0..3u8, any::<bool>()).prop_map(
        |(tool, id, reason, amount, agent, crlf)| {
            let tool = ["refund", "refund", "search"][tool as usize];
            let mut arguments = serde_json::json!({ "order": format!("o{id}") });
            if let Some(reason) = [None, Some("late"), Some("other"), Some("LATE")][reason as usize] {
                arguments["reason"] = reason.into();
            }
            if let Some(amount) = amount {
                arguments["amount"] = amount.into();
            }
            let call = serde_json::json!({
                "type": "tool_call", "schema_version": 1, "call_id": format!("c{id}"), "tool_id": tool,
                "ts": format!("2026-06-{:02}T0{}:00:00Z", 1 + id % 4, id % 10), "contract_id": format!("{tool}@1"),
                "arguments": arguments, "outcome": {"status": "ok", "result": {"done": true}}, "odd": 1,
                "envelope": {"agent_id": format!("agent{agent}"), "session_id": format!("s{}", id / 3)},
            });
            format!("{call}{}", if crlf { "\r" } else { "" })
        },
    );
    prop_oneof![
        8 => call,
        1 => Just(String::new()),
        1 => Just("{\"type\":".to_owned()),
        1 => Just(r#"{"type":"clock","schema_version":1,"ts":"2026-06-05T00:00:00Z"}"#.to_owned()),
        1 => Just(r#"{"type":"coverage","schema_version":1,"tool_id":"refund","hour":"2026-06-01T00:00:00Z","count":4}"#.to_owned()),
    ]
}

#[derive(Debug, PartialEq)]
struct Recorded {
    calls: Vec<CallRow>,
    results: Vec<ResultRow>,
    dead: Vec<DeadRow>,
    sums: Sums,
    balance: Balance,
    coverage: Vec<String>,
}

fn recorded(ledger: &Ledger) -> Recorded {
    let chain = ledger.partition("calls", Partition(0)).unwrap();
    let mut r = Recorded {
        calls: Vec::new(),
        results: Vec::new(),
        dead: Vec::new(),
        sums: Sums::default(),
        balance: Balance::default(),
        coverage: Vec::new(),
    };
    for (_, chunk) in chain.chunks() {
        ledger.for_each_call(chunk, |row| r.calls.push(CallRow { salt: [0; 16], ..row })).unwrap();
        ledger
            .for_each_result(chunk, |row| r.results.push(ResultRow { commitment: [0; 32], ..row }))
            .unwrap();
        ledger.for_each_dead(chunk, |row| r.dead.push(DeadRow { received: None, ..row })).unwrap();
        r.sums.add(chunk);
        r.balance.add(&chunk.balance);
        r.coverage.extend(chunk.coverage.iter().map(|c| format!("{c:?}")));
    }
    r
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_equals_one_pass(
        lines in prop::collection::vec(line(), 0..60),
        cuts in prop::collection::vec((0.0..1.0f64, 1..20u64), 0..6),
    ) {
        let text = lines.iter().map(|l| l.clone() + "\n").collect::<String>();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("calls");
        let run = |ledger: &Ledger, records: u64| {
            let limits = Limits { records, ..Limits::default() };
            run_file(ledger, &file, &RunOptions { limits, ..RunOptions::default() }, &mut |_| {}).unwrap()
        };
        fs::write(&file, &text).unwrap();
        let whole = ledger();
        run(&whole, u64::MAX);
        let expected = recorded(&whole);
        // The file grows by arbitrary bytes, even in the middle of a line; each run cuts its chunks differently.
        let mut cuts = cuts;
        cuts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let cut = ledger();
        for (share, records) in cuts {
            fs::write(&file, &text.as_bytes()[..(text.len() as f64 * share) as usize]).unwrap();
            run(&cut, records);
        }
        fs::write(&file, &text).unwrap();
        run(&cut, 7);
        prop_assert_eq!(recorded(&cut), expected);
    }
}
