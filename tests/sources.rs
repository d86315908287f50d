//! Sources that people have, through the real binary: what SDKs and exporters emitted, recorded and tried.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use lastcall_compare::PairConfig;
use lastcall_contract::{Contract, Definition, Pick};
use lastcall_event::source::{Decoder, Item, Map, Message, Nobody};
use lastcall_event::{Preset, decode};
use lastcall_ledger::Ledger;
use lastcall_ledger::rows::CallRow;
use lastcall_tests::content::content;
use lastcall_tests::services::python::{Environment, environment};
use lastcall_tests::{answer, lastcall, observe};
use serde_json::{Value, json};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sources")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The tool that the fixtures call: models know it as lookup_order. The candidate takes one piece at most.
fn definition(maximum: Option<u64>) -> Value {
    let mut quantity = json!({"type": "integer"});
    if let Some(maximum) = maximum {
        quantity["maximum"] = json!(maximum);
    }
    json!({"name": "lookup_order", "inputSchema": {"type": "object", "required": ["order_id"], "properties": {
        "order_id": {"type": "string"}, "quantity": quantity, "exact": {"type": "number"},
        "include": {"type": "array"}, "deep": {"type": "object"}}}})
}

struct Place(tempfile::TempDir);

impl Place {
    /// A ledger `led` in which the pair is observed, the two definitions, and these files.
    fn with(files: &[(&str, &[u8])]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, bytes) in files {
            std::fs::write(place.path(name), bytes).unwrap();
        }
        std::fs::write(place.path("old.json"), definition(None).to_string()).unwrap();
        std::fs::write(place.path("new.json"), definition(Some(1)).to_string()).unwrap();
        place.ok("ledger init led");
        let contract = |version: u32, maximum| {
            let id = format!("orders.lookup@{version}");
            let text = definition(maximum).to_string();
            Contract::new(&id, Definition::from_text(&id, &text, Pick::default()).unwrap())
        };
        observe(&place.ledger(), &contract(1, None), &contract(2, Some(1)), &PairConfig::default());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn ledger(&self) -> Ledger {
        Ledger::open(&self.path("led")).unwrap()
    }

    fn run(&self, line: &str) -> (i32, String, String) {
        let got = answer(lastcall().args(line.split(' ')).current_dir(self.0.path()));
        (got.code, got.out, got.err)
    }

    fn ok(&self, line: &str) -> String {
        let (code, out, err) = self.run(line);
        assert_eq!(code, 0, "lastcall {line}: {err}");
        out
    }

    fn summary(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("run --ledger led --format json {line}"))).unwrap()
    }

    fn calls(&self) -> Vec<CallRow> {
        let (ledger, mut out) = (self.ledger(), Vec::new());
        for chain in ledger.partitions().unwrap() {
            for (_, chunk) in chain.chunks() {
                ledger.for_each_call(chunk, |row| out.push(row)).unwrap();
            }
        }
        out
    }

    fn intact(&self) {
        assert!(self.ok("ledger verify led").contains("intact"));
    }
}

/// Two batches of seven spans each; see emit_otlp.py. Worked out by hand from what it emits and the two definitions.
const EXPECTED: &str = r#"{"agreed": 4, "disagreed": 2, "both_rejected": 2, "excluded": 0, "unresolved": 2}"#;

fn holds(summary: &Value) {
    let balance = &summary["balance"];
    let count = |name: &str| balance[name].as_u64().unwrap_or(0);
    assert_eq!((count("read"), count("calls"), count("dead"), count("other")), (14, 10, 0, 4), "{balance}");
    assert_eq!((count("not_calls"), count("by_name"), count("several")), (4, 10, 0), "{balance}");
    let tool = &summary["tools"]["orders.lookup"];
    let wanted: Value = serde_json::from_str(EXPECTED).unwrap();
    for (result, n) in wanted.as_object().unwrap() {
        assert_eq!(tool["results"][result].as_u64().unwrap_or(0), n.as_u64().unwrap(), "{result}: {tool:#}");
    }
    assert_eq!(tool["results"]["reasons"]["not_captured"], json!(2));
    assert_eq!(tool["results"]["fidelity"], json!({"raw": 4, "reconstructed": 4, "not_captured": 2}));
}

#[test]
fn a_collectors_batches_are_recorded_span_by_span_from_json_and_protobuf() {
    let json = Place::with(&[("traces.jsonl", &fixture("otlp.jsonl"))]);
    let proto = Place::with(&[("traces.pb", &fixture("otlp.framed.pb"))]);
    holds(&json.summary("traces.jsonl --preset otlp-json"));
    holds(&proto.summary("traces.pb --preset otlp-proto"));
    let mut records: Vec<Vec<(i32, String)>> = Vec::new();
    for place in [&json, &proto] {
        place.intact();
        let calls = place.calls();
        let positions: BTreeSet<(i64, i32)> =
            calls.iter().map(|c| (c.position.offset, c.position.index)).collect();
        assert_eq!(positions.len(), 10, "each record has a position of its own");
        assert_eq!(
            positions.iter().map(|(offset, _)| offset).collect::<BTreeSet<_>>().len(),
            2,
            "two messages"
        );
        assert!(calls.iter().all(|c| c.preset == Preset::Native && c.decode().is_ok()));
        assert!(calls.iter().all(|c| c.contract_id.as_deref() == Some("orders.lookup@1")));
        assert!(calls.iter().all(|c| c.record.contains(r#""contract":"by_name""#)));
        records.push(calls.into_iter().map(|c| (c.position.index, c.record)).collect());
        // what was recorded is tried again from the archive
        let (code, out, err) =
            place.run("try old.json new.json --ledger led --tool orders.lookup --format json");
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
        assert_eq!(
            (code, &report["disagreed"], &report["unresolved"]),
            (1, &json!(2), &json!(2)),
            "{report:#}"
        );
    }
    assert_eq!(records[0], records[1], "the same records, byte for byte");
    println!("{} of 10 calls are the same record from both encodings", records[0].len());

    // read again: nothing is recorded twice, and the map that was registered is the one that reads
    let again = json.summary("traces.jsonl");
    assert_eq!((again["balance"]["read"].clone(), content(&json.ledger()).balance.calls), (json!(0), 10));
    let mut grown = fixture("otlp.framed.pb");
    grown.extend(&fixture("otlp.framed.pb")[..2000]);
    std::fs::write(proto.path("traces.pb"), &grown).unwrap();
    let waiting = proto.summary("traces.pb");
    assert_eq!((&waiting["balance"]["read"], &waiting["waiting_bytes"]), (&json!(0), &json!(1996)));
    let ended = proto.summary("traces.pb --final");
    assert_eq!(ended["dead_reasons"], json!({"cut_off": 1}));
    proto.intact();
}

#[test]
fn a_trial_reads_every_source() {
    let place = Place::with(&[
        ("traces.jsonl", &fixture("otlp.jsonl")),
        ("traces.pb", &fixture("otlp.framed.pb")),
        ("events.jsonl", &fixture("cloudevents.jsonl")),
    ]);
    let tried = |line: &str| -> Value {
        let (code, out, err) = place.run(&format!("try old.json new.json --format json {line}"));
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{line}: {err}"));
        assert_eq!(code, 1, "{line}: {report:#}");
        let count = |name: &str| report[name].clone();
        let names = ["calls", "agreed", "disagreed", "both_rejected", "unresolved", "undecodable"];
        json!(names.map(count))
    };
    let wanted = json!([10, 4, 2, 2, 2, 0]);
    assert_eq!(tried("traces.jsonl --preset otlp-json"), wanted);
    assert_eq!(tried("traces.jsonl"), wanted, "told by its first field");
    assert_eq!(tried("traces.pb --preset otlp-proto"), wanted);
    assert_eq!(tried("events.jsonl --preset cloudevents"), json!([3, 1, 2, 0, 0, 0]));
    assert_eq!(tried("events.jsonl"), json!([3, 1, 2, 0, 0, 0]));
}

#[test]
fn one_broken_span_is_dead_at_its_index_and_the_rest_counts() {
    let text = String::from_utf8(fixture("otlp.jsonl")).unwrap();
    let mut batch: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    batch["resourceSpans"][0]["scopeSpans"][0]["spans"][2]["startTimeUnixNano"] = json!("0");
    let kept = batch["resourceSpans"][0]["scopeSpans"][0]["spans"][2].clone();
    let place = Place::with(&[("traces.jsonl", format!("{batch}\nnot json\n").as_bytes())]);
    let summary = place.summary("traces.jsonl --preset otlp-json");
    let balance = &summary["balance"];
    assert_eq!(
        [&balance["read"], &balance["calls"], &balance["dead"], &balance["other"]],
        [&json!(8), &json!(4), &json!(2), &json!(2)]
    );
    assert_eq!(summary["dead_reasons"], json!({"bad_field": 1, "not_json": 1}));
    assert!(summary["first_dead"].as_str().unwrap().starts_with("at byte 0, record 3 in it:"), "{summary:#}");
    let ledger = place.ledger();
    let mut dead = Vec::new();
    for chain in ledger.partitions().unwrap() {
        for (_, chunk) in chain.chunks() {
            ledger.for_each_dead(chunk, |row| dead.push(row)).unwrap();
        }
    }
    assert_eq!((dead[0].position.offset, dead[0].position.index), (0, 2));
    assert_eq!(
        serde_json::from_slice::<Value>(&dead[0].bytes).unwrap(),
        kept,
        "byte for byte what the span was"
    );
    place.intact();
}

const MAP: &str = r#"format = 1
[when]
"/event" = "tool.finished"
[call]
call_id = "/id"
ts = { path = "/at", format = "unix_ms" }
tool_id = "/tool"
arguments = "/input"
[outcome]
status = { path = "/state", values = { "done" = "ok" }, otherwise = "unknown" }
[envelope]
agent_id = "/agent"
"#;

fn audit(lines: usize) -> String {
    (0..lines)
        .map(|i| {
            let input = json!({"order_id": format!("A-{i}"), "quantity": i % 3});
            let event = if i % 5 == 4 { "message" } else { "tool.finished" };
            let at = 1_780_306_200_000u64 + i as u64;
            json!({"event": event, "id": format!("c{i}"), "at": at, "tool": "lookup_order", "input": input,
                "state": "done", "agent": "ana@example.com"})
            .to_string()
                + "\n"
        })
        .collect()
}

#[test]
fn a_users_map_reads_their_own_records() {
    let place = Place::with(&[("audit.jsonl", audit(50).as_bytes()), ("audit.toml", MAP.as_bytes())]);
    let summary = place.summary("audit.jsonl --map audit.toml");
    let results = &summary["tools"]["orders.lookup"]["results"];
    // 40 calls; of i in 0..50 without i % 5 == 4 those with i % 3 == 2 ask for two pieces
    let two = (0..50).filter(|i| i % 5 != 4 && i % 3 == 2).count();
    assert_eq!(
        (&summary["balance"]["calls"], &summary["balance"]["not_calls"], &results["disagreed"]),
        (&json!(40), &json!(10), &json!(two))
    );
    place.intact();
    // the map is part of the record: another one is refused, the same one and none are taken
    std::fs::write(place.path("other.toml"), format!("{MAP}# changed\n")).unwrap();
    let (code, _, err) = place.run("run --ledger led audit.jsonl --map other.toml");
    assert!(code == 2 && err.contains("another map"), "{code} {err}");
    std::fs::write(place.path("audit.jsonl"), audit(60)).unwrap();
    assert_eq!(place.summary("audit.jsonl --map audit.toml")["balance"]["read"], json!(10));
    std::fs::remove_file(place.path("audit.toml")).unwrap();
    std::fs::write(place.path("audit.jsonl"), audit(70)).unwrap();
    assert_eq!(place.summary("audit.jsonl")["balance"]["read"], json!(10));
    place.intact();

    for (line, wanted) in [
        ("run --ledger led x.jsonl --preset map", "name its file with --map"),
        ("run --ledger led audit.jsonl --map other.toml --preset otlp-json", "preset map alone"),
        ("ledger source led y --role tool-calls --map none.toml", "cannot read the map none.toml"),
        ("try old.json new.json audit.jsonl --map old.json", "old.json"),
    ] {
        let (code, _, err) = place.run(line);
        assert!(code == 2 && err.contains(wanted), "{line}: {code} {err}");
    }
    let map = place.ledger().control().unwrap().sources["audit.jsonl"].map.clone().unwrap();
    place.ok("ledger source led y.jsonl --role tool-calls --map other.toml");
    place.ok("ledger source led z --role tool-calls --preset otlp-proto --kind topic");
    // without its map nobody can say how the source was read, and nobody reads on
    let object = place.path("led").join(lastcall_ledger::names::object_path(&map));
    std::fs::remove_file(&object).unwrap_or_else(|e| panic!("{}: {e}", object.display()));
    std::fs::write(place.path("audit.jsonl"), audit(80)).unwrap();
    assert_eq!(place.run("run --ledger led audit.jsonl").0, 4);
    let (code, out, _) = place.run("ledger verify led");
    assert!(code == 3 && out.contains("the object is missing"), "{out}");
}

#[test]
fn a_redaction_of_a_mapped_source_goes_by_the_names_of_lastcalls_own_record() {
    let place = Place::with(&[("audit.jsonl", audit(10).as_bytes()), ("audit.toml", MAP.as_bytes())]);
    place.ok("run --ledger led audit.jsonl --map audit.toml --redact /arguments/order_id=hash --redact \
         /envelope/agent_id=hash --redaction-key key");
    let calls = place.calls();
    assert_eq!(calls.len(), 8);
    for call in &calls {
        assert!(!call.record.contains("A-") && !call.record.contains("ana@"), "{}", call.record);
        assert!(call.decode().is_ok() && call.is_redacted());
    }
    place.intact();
}

/// A name that fits two contracts is no licence to compare under either.
#[test]
fn a_call_whose_contract_is_one_of_several_is_unresolved() {
    let place = Place::with(&[("audit.jsonl", audit(5).as_bytes()), ("audit.toml", MAP.as_bytes())]);
    let contract = |version: u32, maximum| {
        let id = format!("orders.lookup@{version}");
        let text = definition(maximum).to_string();
        Contract::new(&id, Definition::from_text(&id, &text, Pick::default()).unwrap())
    };
    observe(&place.ledger(), &contract(3, Some(9)), &contract(4, Some(8)), &PairConfig::default());
    let summary = place.summary("audit.jsonl --map audit.toml");
    let results = &summary["tools"]["orders.lookup"]["results"];
    assert_eq!(summary["balance"]["several"], json!(4));
    assert_eq!((&results["unresolved"], &results["reasons"]), (&json!(8), &json!({"contract_unknown": 8})));
    assert_eq!(results["agreed"].as_u64().unwrap_or(0) + results["disagreed"].as_u64().unwrap_or(0), 0);
    place.intact();
}

const SDKS: Environment = Environment {
    name: "sources-otel-1.45.2-cloudevents-2.2.0-confluent-2.16.1",
    packages: &[
        "opentelemetry-sdk==1.45.2",
        "opentelemetry-exporter-otlp-proto-http==1.45.2",
        "cloudevents==2.2.0",
        "confluent-kafka[avro,json,protobuf,schemaregistry]==2.16.1",
    ],
};

/// What the committed messages mean, without what differs from run to run (ids, times, latencies).
fn meaning(folder: &Path) -> Vec<Value> {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let map = |preset| Decoder::new(Map::parse(Map::text_of(preset).unwrap()).unwrap());
    let mut out = Vec::new();
    let mut add = |decoder: &Decoder, value: &[u8]| {
        for item in decoder.decode(&Message::of(value), &Nobody) {
            out.push(match item {
                Item::Other => json!("other"),
                Item::Dead { error, .. } => json!(format!("dead: {}", error.code)),
                Item::Record { text, .. } => {
                    decode(text.as_bytes(), Preset::Native).unwrap();
                    let mut value: Value = serde_json::from_str(&text).unwrap();
                    for pointer in
                        ["/call_id", "/ts", "/outcome/latency_ms", "/envelope/trace_id", "/envelope/span_id"]
                    {
                        if let Some(place) = value.pointer_mut(pointer) {
                            *place = Value::Null;
                        }
                    }
                    value
                }
            });
        }
    };
    for name in ["otlp.pb", "otlp-text.pb", "registry-proto.bin"] {
        add(&map(Preset::OtlpProto), &read(name));
    }
    for line in read("cloudevents.jsonl").split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        add(&map(Preset::CloudEvents), line);
    }
    let own = Decoder::new(
        Map::parse("format = 1\n[call]\ncall_id = \"/id\"\nts = \"/at\"\ntool_id = \"/tool\"\narguments = \"/input\"\n")
            .unwrap(),
    );
    for name in ["registry-json.bin", "registry-avro.bin"] {
        add(&own, &read(name));
    }
    out
}

/// The SDKs of today emit what the committed messages say. Skips, and says so, where they cannot be installed.
#[test]
fn the_sdks_emit_what_the_fixtures_say() {
    let Some(python) = environment(SDKS, "messages of the SDKs of today") else { return };
    let folder = tempfile::tempdir().unwrap();
    for script in ["emit_otlp.py", "emit_cloudevents.py", "emit_registry.py"] {
        let done = Command::new(&python).arg(fixtures().join(script)).arg(folder.path()).output().unwrap();
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let (now, then) = (meaning(folder.path()), meaning(&fixtures()));
    assert_eq!(now, then);
    println!("{} of {} records mean what the fixtures mean", now.len(), then.len());
}

/// The Collector's own marshaler writes what the committed lines say. Skips, and says so, without Go or its modules.
#[test]
fn the_collector_writes_what_the_fixtures_say() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["otlp.pb", "otlp-text.pb"] {
        std::fs::copy(fixtures().join(name), folder.path().join(name)).unwrap();
    }
    let done = Command::new("go")
        .args(["run", "."])
        .arg(folder.path())
        .current_dir(fixtures().join("collector"))
        .env("GOFLAGS", "-mod=mod")
        .output();
    match done {
        Ok(done) if done.status.success() => {
            for name in ["otlp.jsonl", "otlp.framed.pb"] {
                assert!(std::fs::read(folder.path().join(name)).unwrap() == fixture(name), "{name}");
            }
            println!("2 of 2 files are what the Collector writes");
        }
        Ok(done) => {
            let why = String::from_utf8_lossy(&done.stderr);
            let required = std::env::var_os("LASTCALL_SERVICES").is_some_and(|v| v == "required");
            assert!(!required, "{why}");
            eprintln!(
                "SKIPPED: the Collector's marshaler does not build here: {}",
                why.lines().next().unwrap_or("")
            );
        }
        Err(error) => eprintln!("SKIPPED: no Go: {error}"),
    }
}
