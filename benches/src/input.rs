//! The input: mirrored calls made from the real calls, over the real definitions in their real proportions, of about
//! 1.5 kB each; and a ledger in which every pair is observed. Seeded, made once and kept.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use lastcall_compare::{COMPARATOR_VERSION, PairConfig, config_bytes, config_digest, epoch_digest};
use lastcall_contract::{Contract, Definition};
use lastcall_ledger::control::{Control, Pair};
use lastcall_ledger::{Ledger, LedgerClock};
use serde_json::{Value, json};

/// What was made.
pub struct Made {
    /// Events.
    pub events: u64,
    /// Bytes of an event on average.
    pub mean: u64,
    /// Pairs observed.
    pub pairs: usize,
    /// The events.
    pub events_file: PathBuf,
    /// Tool → schema, for the peer.
    pub contracts_file: PathBuf,
    /// The ledger before any run.
    pub ledger: PathBuf,
}

struct Rng(u64);

impl Rng {
    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

const WORDS: [&str; 16] = [
    "alpha", "order", "flight", "report", "invoice", "ticket", "summary", "weather", "customer", "stock",
    "record", "result", "region", "price", "note", "index",
];

fn words(rng: &mut Rng, n: usize) -> String {
    (0..n).map(|_| WORDS[rng.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
}

/// Makes it, or takes what an earlier call made.
pub fn make(data: &Path, dir: &Path, count: u64) -> Result<Made> {
    let read = |name: &str| std::fs::read_to_string(data.join(name)).with_context(|| name.to_owned());
    let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
    for line in read("schemas.jsonl")?.lines() {
        let value: Value = serde_json::from_str(line)?;
        schemas.insert(value["schema_ref"].as_str().unwrap_or_default().to_owned(), value);
    }
    let mut tools: BTreeMap<String, (String, Contract, Contract)> = BTreeMap::new();
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut usable: Vec<(String, Value)> = Vec::new();
    for line in read("calls.jsonl")?.lines() {
        let call: Value = serde_json::from_str(line)?;
        let reference = call["schema_ref"].as_str().unwrap_or_default().to_owned();
        if call["valid_against_schema"].is_null() {
            continue;
        }
        if !tools.contains_key(&reference) {
            let Some(schema) = schemas.get(&reference) else { continue };
            let document = json!({"name": call["tool"], "description": schema["description"],
                "inputSchema": schema["parameters"]});
            let Ok(definition) = Definition::from_value(&document) else { continue };
            let name = call["tool"].as_str().unwrap_or("tool").to_owned();
            let nth = names.entry(name.clone()).or_default();
            *nth += 1;
            let id = if *nth == 1 { name } else { format!("{name}.{nth}") };
            let mut changed = document.clone();
            changed["inputSchema"]["properties"]["lastcall_bench_note"] = json!({"type": "string"});
            let Ok(candidate) = Definition::from_value(&changed) else { continue };
            let old = Contract::new(format!("{id}@1"), definition);
            let new = Contract::new(format!("{id}@2"), candidate);
            tools.insert(reference.clone(), (id, old, new));
        }
        usable.push((reference, call["arguments"].clone()));
    }
    let events_file = dir.join(format!("events2-{count}.jsonl"));
    if !events_file.exists() {
        events(&events_file, &tools, &usable, count)?;
    }
    let contracts_file = dir.join("contracts.json");
    let table: serde_json::Map<String, Value> = tools
        .values()
        .map(|(id, old, new)| (id.clone(), json!([old.definition.input_schema, new.definition.input_schema])))
        .collect();
    std::fs::write(&contracts_file, Value::Object(table).to_string())?;
    let ledger = dir.join("ledger");
    let pairs = observe(&ledger, &tools)?;
    let size = std::fs::metadata(&events_file)?.len();
    Ok(Made { events: count, mean: size / count, pairs, events_file, contracts_file, ledger })
}

fn events(
    path: &Path,
    tools: &BTreeMap<String, (String, Contract, Contract)>,
    usable: &[(String, Value)],
    count: u64,
) -> Result<()> {
    let partial = path.with_extension("partial");
    let mut out = BufWriter::new(std::fs::File::create(&partial)?);
    let mut rng = Rng(7);
    let start = 1_780_272_000_000i64; // 2026-06-01T00:00:00Z
    for i in 0..count {
        let (reference, arguments) = &usable[(i % usable.len() as u64) as usize];
        let Some((id, ..)) = tools.get(reference) else { continue };
        let mut used = arguments.clone();
        if rng.below(50) == 0
            && let Some(members) = used.as_object_mut()
        {
            let key = members.keys().next().cloned();
            match key {
                Some(key) if rng.below(2) == 0 => drop(members.remove(&key)),
                _ => drop(members.insert(format!("extra_{}", words(&mut rng, 1)), json!(words(&mut rng, 2)))),
            }
        }
        let items: Vec<Value> = (0..2 + rng.below(3))
            .map(|_| {
                json!({"id": rng.below(1_000_000), "title": words(&mut rng, 3), "score": rng.below(10_000) as f64 / 1e4,
                    "active": rng.below(2) == 0})
            })
            .collect();
        let notes = 4 + rng.below(12);
        let result =
            json!({"ok": true, "total": rng.below(500), "items": items, "note": words(&mut rng, notes)});
        let mut theirs = result.clone();
        if rng.below(10) == 0 {
            theirs["total"] = json!(rng.below(500));
        }
        let at = start + (i as i64 * 14 * 86_400_000) / count as i64;
        let status = if rng.below(100) == 0 { "business_error" } else { "ok" };
        let ts = lastcall_event::Timestamp(at).to_string();
        let event = json!({"type": "mirrored_call", "schema_version": 1,
            "call_id": format!("{:016x}{:016x}", rng.next(), rng.next()), "ts": ts, "tool_id": id,
            "contract_id": format!("{id}@1"), "arguments": arguments, "fidelity": "raw",
            "outcome": {"status": "ok", "executed": true, "result": result, "latency_ms": rng.below(400)},
            "envelope": {"agent_id": format!("agent-{}", (i % usable.len() as u64) % 7 + rng.below(2) as u64), "model": "m-large",
                "session_id": format!("s-{:07}", i / 3), "run_id": format!("run-{:08}", i / 20), "cohort": "eu"},
            "upstream": {"from": i, "to": i + 1},
            "candidates": [{"contract_id": format!("{id}@2"), "input": "raw", "executed": true, "status": status,
                "arguments": used, "result": theirs, "suppression": "replica", "latency_ms": rng.below(400)}]});
        writeln!(out, "{event}")?;
    }
    out.into_inner()?.sync_all()?;
    std::fs::rename(partial, path)?;
    Ok(())
}

fn observe(dir: &Path, tools: &BTreeMap<String, (String, Contract, Contract)>) -> Result<usize> {
    let mark = dir.join("made");
    if mark.exists() {
        return Ok(tools.len());
    }
    let _ = std::fs::remove_dir_all(dir);
    let ledger = Ledger::init(dir, LedgerClock::System)?;
    let config = PairConfig::default();
    let config_object = ledger.put_object(&config_bytes(&config))?;
    for (id, old, new) in tools.values() {
        let current_digest = ledger.put_object(old.definition.verbatim.as_bytes())?;
        let candidate_digest = ledger.put_object(new.definition.verbatim.as_bytes())?;
        anyhow::ensure!(config_object == config_digest(&config), "the configuration's digest");
        let pair = Pair {
            tool_id: id.clone(),
            current: old.id.clone(),
            current_digest,
            candidate: new.id.clone(),
            candidate_digest,
            config_digest: config_object.clone(),
            epoch: epoch_digest(old, new, &config),
            comparator: COMPARATOR_VERSION,
        };
        ledger.append_control(Control::Observe { pair })?;
    }
    std::fs::write(mark, b"")?;
    Ok(tools.len())
}
