//! `make fuzz`: pairs of random and of mutated real schemas, for LASTCALL_FUZZ_SECONDS (600). It looks for panics, for
//! witnesses that another validator does not confirm, and for proofs that a random value refutes for both validators; it
//! prints every one and writes `target/figures/fuzz.json`. Exit 1 where there was one. Values that refute a proof for the
//! other validator alone are printed and counted apart: it reads an integer beyond 2^53 exactly beside an integer and as a
//! double beside a double. One thread; LASTCALL_FUZZ_SEED starts elsewhere.

#[path = "../../../crates/diff/tests/oracle/mod.rs"]
mod oracle;
#[path = "../../../crates/diff/tests/oracle/random.rs"]
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use lastcall_contract::Draft;
use lastcall_diff::{Answer, Generator, Model, Operand, Options, Rng, contains};
use oracle::Oracle;
use serde_json::{Value, json};

/// Random values with which every proof is attacked.
const ATTACKS: usize = 40;

/// What happened.
#[derive(Default)]
struct Counts {
    pairs: u64,
    proven: u64,
    refuted: u64,
    unknown: u64,
    not_asked: u64,
    panics: u64,
    unsound: u64,
    /// Values that refute a proof for the other validator alone.
    disputed: u64,
    unconfirmed: u64,
    not_reflexive: u64,
    slowest_ms: f64,
}

fn main() -> Result<()> {
    let number = |name: &str, default: u64| -> u64 {
        std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
    };
    let (seconds, seed) = (number("LASTCALL_FUZZ_SECONDS", 600), number("LASTCALL_FUZZ_SEED", 1));
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let data = std::env::var_os("LASTCALL_DATA").map_or(root.join("../shared/data"), PathBuf::from);
    let real = real_schemas(&data);
    println!("fuzz: {} real schemas to mutate, {seconds} s, seed {seed}", real.len());
    let start = Instant::now();
    let mut counts = Counts::default();
    let mut rng = Rng::new(seed);
    while start.elapsed() < Duration::from_secs(seconds) {
        let (a, b) = pair(&real, &mut rng);
        let judged = catch_unwind(AssertUnwindSafe(|| judge(&a, &b, &mut rng, &mut counts)));
        if judged.is_err() {
            counts.panics += 1;
            println!("PANIC\n  a {a}\n  b {b}");
        }
    }
    let figures = json!({
        "seconds": seconds,
        "seed": seed,
        "pairs": counts.pairs,
        "pairs_per_s": (counts.pairs as f64 / start.elapsed().as_secs_f64()).round(),
        "proven": counts.proven,
        "refuted": counts.refuted,
        "unknown": counts.unknown,
        "not_asked": counts.not_asked,
        "panics": counts.panics,
        "unsound": counts.unsound,
        "unconfirmed": counts.unconfirmed,
        "disputed": counts.disputed,
        "not_reflexive": counts.not_reflexive,
        "slowest_ms": counts.slowest_ms,
    });
    println!("{figures:#}");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    std::fs::create_dir_all(target.join("figures"))?;
    std::fs::write(target.join("figures/fuzz.json"), format!("{figures:#}\n"))?;
    let wrong = counts.panics + counts.unsound + counts.unconfirmed + counts.not_reflexive;
    println!("fuzz: {} pairs, {wrong} panics and wrong answers", counts.pairs);
    if wrong > 0 {
        bail!("a panic or a wrong answer: see above");
    }
    Ok(())
}

/// Schemas of the containment suite and of real tools; none where the data is absent.
fn real_schemas(data: &Path) -> Vec<Value> {
    let mut out = Vec::new();
    if let Ok(text) = std::fs::read(data.join("containment_draft2020_12.json"))
        && let Ok(document) = serde_json::from_slice::<Value>(&text)
    {
        for case in document["cases"].as_array().into_iter().flatten() {
            out.extend([&case["old"], &case["new"]].into_iter().filter(|s| s.is_object()).cloned());
        }
    }
    if let Ok(text) = std::fs::read_to_string(data.join("evolution.jsonl")) {
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            out.extend([&line["old"], &line["new"]].into_iter().map(|d| d["parameters"].clone()));
        }
    }
    out.retain(|schema| schema.to_string().len() < 20_000);
    out
}

fn pair(real: &[Value], rng: &mut Rng) -> (Value, Value) {
    let a = match rng.pick(real) {
        Some(schema) if rng.chance(0.4) => schema.clone(),
        _ => {
            let depth = 1 + rng.below(3) as u32;
            random::schema(rng, depth)
        }
    };
    let mut a = if rng.chance(0.3) { random::mutate(&a, rng) } else { a };
    if rng.chance(0.1) {
        harden(&mut a, rng, 0);
    }
    let b = match rng.below(5) {
        0 => random::schema(rng, 2),
        1 => rng.pick(real).cloned().unwrap_or(Value::Bool(true)),
        2 => random::mutate(&random::mutate(&a, rng), rng),
        _ => random::mutate(&a, rng),
    };
    if rng.chance(0.5) { (a, b) } else { (b, a) }
}

/// Numbers that validators read differently, or that lie beside such.
const HARD: [f64; 9] =
    [0.1, 0.3, 0.7, 0.01, 1e-7, 0.300_000_000_000_000_04, 1e15, 1e300, 18_446_744_073_709_551_616.0];
const LARGE: [i64; 6] = [
    9_007_199_254_740_991,
    9_007_199_254_740_992,
    9_007_199_254_740_993,
    -9_007_199_254_740_993,
    i64::MAX,
    1_152_921_504_606_846_977,
];

fn hard(rng: &mut Rng, positive: bool) -> Value {
    let large = rng.pick(&LARGE).copied().unwrap_or_default();
    if rng.chance(0.5) { json!(rng.pick(&HARD)) } else { json!(if positive { large.abs() } else { large }) }
}

/// Puts hard numbers where the schema speaks of numbers.
fn harden(at: &mut Value, rng: &mut Rng, depth: u32) {
    const KEYS: [&str; 7] =
        ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const", "enum"];
    match at {
        Value::Object(map) if depth < 20 => {
            let speaks =
                map.iter().any(|(k, v)| KEYS.contains(&k.as_str()) || v == "number" || v == "integer");
            if let Some(key) = rng.pick(&KEYS).copied().filter(|_| speaks && rng.chance(0.6)) {
                let value = match key {
                    "enum" => json!([hard(rng, false), hard(rng, false)]),
                    key => hard(rng, key == "multipleOf"),
                };
                map.insert(key.to_owned(), value);
            }
            map.values_mut().for_each(|below| harden(below, rng, depth + 1));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| harden(item, rng, depth + 1)),
        _ => {}
    }
}

/// Mostly the newest; two schemas of one pair may differ in it.
fn draft(rng: &mut Rng) -> Draft {
    match rng.below(10) {
        0 => Draft::Draft7,
        1 => Draft::Draft201909,
        2 => Draft::Draft6,
        _ => Draft::Draft202012,
    }
}

fn judge(a: &Value, b: &Value, rng: &mut Rng, counts: &mut Counts) {
    let (draft_a, draft_b) = (draft(rng), draft(rng));
    // The other validator asserts formats and content in older drafts, whatever it is told.
    let asserted = |schema: &Value, draft: Draft| {
        let text = schema.to_string();
        matches!(draft, Draft::Draft6 | Draft::Draft7)
            && (text.contains("format") || text.contains("content"))
    };
    if asserted(a, draft_a) || asserted(b, draft_b) {
        counts.not_asked += 1;
        return;
    }
    let operand = |schema: &Value, draft| Operand::with_formats(schema, draft, false).ok();
    let (Some(of_a), Some(of_b)) = (operand(a, draft_a), operand(b, draft_b)) else {
        counts.not_asked += 1;
        return;
    };
    let (Some(boon_a), Some(boon_b)) = (Oracle::new(a, draft_a, false), Oracle::new(b, draft_b, false))
    else {
        counts.not_asked += 1;
        return;
    };
    let start = Instant::now();
    let answer = contains(&of_a, &of_b, Model::Open, &Options::default());
    let took = start.elapsed().as_secs_f64() * 1e3;
    if took > counts.slowest_ms {
        counts.slowest_ms = took;
        println!("slowest: {took:.1} ms\n  a {a}\n  b {b}");
    }
    counts.pairs += 1;
    if contains(&of_a, &of_a, Model::Declared, &Options::default()) != Answer::Proven {
        counts.not_reflexive += 1;
        println!("NOT REFLEXIVE\n  a {a}");
    }
    match answer {
        Answer::Unknown { .. } => counts.unknown += 1,
        Answer::Refuted(witness) => {
            counts.refuted += 1;
            if !boon_a.accepts(&witness.value) || boon_b.accepts(&witness.value) {
                counts.unconfirmed += 1;
                println!("UNCONFIRMED {}\n  a {draft_a} {a}\n  b {draft_b} {b}", witness.value);
            }
        }
        Answer::Proven => {
            counts.proven += 1;
            for i in 0..ATTACKS {
                let value = match i % 4 {
                    0 => Generator::new(a).value(rng).unwrap_or(Value::Null),
                    1 => random::mutate(&Generator::new(a).value(rng).unwrap_or(Value::Null), rng),
                    _ => random::value(rng, 2),
                };
                if !boon_a.accepts(&value) || boon_b.accepts(&value) {
                    continue;
                }
                // As a witness, a value refutes a proof where two validators agree on it.
                let agreed = of_a.accepts(&value) && !of_b.accepts(&value);
                *(if agreed { &mut counts.unsound } else { &mut counts.disputed }) += 1;
                let word = if agreed { "UNSOUND" } else { "DISPUTED" };
                println!("{word} {value}\n  a {draft_a} {a}\n  b {draft_b} {b}");
                break;
            }
        }
    }
}
