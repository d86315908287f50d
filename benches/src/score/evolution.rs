//! 451 real changes of one tool: what the diff says of them, held against oracles of its own that share no code with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use lastcall_contract::{Contract, Definition, validator_for};
use lastcall_diff::{ChangeKind as Kind, Class, ContractDiff, DiffOptions, FactAnswer, Side, diff_contracts};
use serde_json::{Map, Value, json};

use crate::oracle::Oracle;

/// What the reference counted over one source's schema changes.
#[derive(Default)]
struct Counts {
    pairs: u64,
    text: u64,
    widening: u64,
    broken: u64,
    drops: u64,
    none: u64,
    review: u64,
    renamed: u64,
}

/// Prints the counts by source and gives the figures. An oracle that is contradicted is an error.
pub fn score(data: &Path) -> Result<Map<String, Value>> {
    let text = std::fs::read_to_string(data.join("evolution.jsonl"))?;
    let mut by_source: BTreeMap<String, Counts> = BTreeMap::new();
    let (mut definitions, mut reflexive, mut witnesses, mut rewrites, mut quiet) =
        (0u64, 0u64, 0u64, 0u64, 0u64);
    let mut wrong: Vec<String> = Vec::new();
    let mut times: Vec<u64> = Vec::new();
    let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
    for (n, line) in text.lines().enumerate() {
        let row: Value = serde_json::from_str(line)?;
        let id = format!("line {} {}", n + 1, row["tool"].as_str().unwrap_or_default());
        let (old, new) = (contract(&row["old"])?, contract(&row["new"])?);
        for one in [&old, &new] {
            definitions += 1;
            let same = diff_contracts(one, one, &DiffOptions::default())?;
            if same.changes.is_empty() && same.class == Class::Compatible && same.proven() {
                reflexive += 1;
            } else {
                wrong.push(format!("{id}: not reflexive"));
            }
        }
        let start = Instant::now();
        let diff = diff_contracts(&old, &new, &DiffOptions::default())?;
        times.push(start.elapsed().as_micros() as u64);
        *classes.entry(diff.class.as_str()).or_default() += 1;
        let (a, b) = (&row["old"]["parameters"], &row["new"]["parameters"]);
        let schema_class =
            diff.changes.iter().filter(|c| c.side == Side::Input).map(|c| c.class).max().unwrap_or_default();
        let drops = diff.changes.iter().any(|c| c.kind == Kind::PropertyDropped);
        let counts = by_source.entry(row["source"].as_str().unwrap_or_default().to_owned()).or_default();
        counts.renamed += u64::from(row["old"]["name"] != row["new"]["name"]);
        if a != b {
            counts.pairs += 1;
            let only_text = bare(a, false) == bare(b, false);
            match (diff.input.declared.answer, diff.input.same_values()) {
                _ if only_text => counts.text += 1,
                (FactAnswer::Refuted, _) => counts.broken += 1,
                (FactAnswer::Unknown, _) => counts.review += 1,
                _ if drops => counts.drops += 1,
                (FactAnswer::Proven, true) => counts.none += 1,
                (FactAnswer::Proven, false) => counts.widening += 1,
            }
            if only_text && schema_class > Class::HighRisk {
                wrong.push(format!("{id}: text alone is {schema_class}"));
            }
            if only_adds(a, b) && schema_class > Class::UsuallyCompatible {
                let told: Vec<&str> = diff.changes.iter().map(|c| c.sentence.as_str()).collect();
                wrong.push(format!("{id}: optional arguments added, and it is {schema_class}: {told:?}"));
            }
            if !only_text && declared_shape(a) == declared_shape(b) {
                rewrites += 1;
                let kept = schema_class <= Class::UsuallyCompatible
                    || diff.input.declared.answer == FactAnswer::Refuted;
                quiet += u64::from(kept);
            }
        }
        for name in lost(a, b) {
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            let named = |c: &lastcall_diff::Change| {
                c.pointer == pointer && matches!(c.kind, Kind::PropertyDropped | Kind::PropertyRemoved)
            };
            if !diff.changes.iter().any(named) {
                wrong.push(format!("{id}: the lost argument {name} is not named"));
            }
        }
        witnesses += witnessed(&id, &old, &new, &diff, &mut wrong)?;
        if std::env::var_os("LASTCALL_SCORE_VERBOSE").is_some() && schema_class >= Class::NeedsReview {
            for change in diff.changes.iter().filter(|c| c.class >= Class::NeedsReview) {
                println!("  {id}: {} {}", change.class, change.sentence);
            }
        }
    }
    println!("  {:<34} schema changes  text  widening  breaks  drops  same  review  tools renamed", "source");
    for (source, c) in &by_source {
        println!(
            "  {source:<34} {:>14} {:>5} {:>9} {:>7} {:>6} {:>5} {:>7} {:>14}",
            c.pairs, c.text, c.widening, c.broken, c.drops, c.none, c.review, c.renamed
        );
    }
    println!(
        "  (reference, 164 schema changes of a larger github set: 46 text, 81 widening, 22 breaks, 10 drops, 5 none)"
    );
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    let max_ms = times.last().copied().unwrap_or_default() as f64 / 1_000.0;
    println!("  classes of the whole definitions: {classes:?}");
    println!(
        "  reflexive {reflexive} of {definitions}; breaking changes with a checked witness: {witnesses}"
    );
    println!("  rewrites of the same declared shape: {quiet} of {rewrites} quiet or witnessed");
    println!("  a pair: median {} us, 99 % {} us, longest {max_ms:.1} ms", at(50), at(99));
    if !wrong.is_empty() {
        bail!("evolution: {} contradictions:\n{}", wrong.len(), wrong.join("\n"));
    }
    let sum = |f: fn(&Counts) -> u64| by_source.values().map(f).sum::<u64>();
    Ok(Map::from_iter([(
        "evolution".to_owned(),
        json!({
            "pairs": times.len(), "definitions": definitions, "reflexive": reflexive, "classes": classes,
            "schema_changes": sum(|c| c.pairs), "text_only": sum(|c| c.text), "widening": sum(|c| c.widening),
            "breaking": sum(|c| c.broken), "silent_drops": sum(|c| c.drops), "same_values": sum(|c| c.none),
            "unknown": sum(|c| c.review), "witnesses": witnesses, "rewrites": rewrites, "rewrites_quiet": quiet,
            "p50_us": at(50), "p99_us": at(99), "max_ms": max_ms,
        }),
    )]))
}

fn contract(tool: &Value) -> Result<Contract> {
    let mut document =
        json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["parameters"]});
    for (from, to) in [("annotations", "annotations"), ("title", "title"), ("output_schema", "outputSchema")]
    {
        if let Some(value) = tool.get(from).filter(|v| !v.is_null()) {
            document[to] = value.clone();
        }
    }
    let definition = Definition::from_value(&document).context("a definition of the data cannot be read")?;
    Ok(Contract::new(definition.name.clone(), definition))
}

/// Every breaking change has a call that the old schema takes and the new one refuses, for two validators that share no
/// code.
fn witnessed(
    id: &str,
    old: &Contract,
    new: &Contract,
    diff: &ContractDiff,
    wrong: &mut Vec<String>,
) -> Result<u64> {
    let (a, b) = (&old.definition, &new.definition);
    let (before, after) =
        (validator_for(&a.input_schema, a.draft)?, validator_for(&b.input_schema, b.draft)?);
    let second =
        |d: &Definition| Oracle::new(&d.input_schema, d.draft, true).context("the oracle takes no schema");
    let (second_before, second_after) = (second(a)?, second(b)?);
    let mut checked = 0;
    for change in diff.changes.iter().filter(|c| c.class == Class::Breaking) {
        let Some(value) = change.witness.as_ref().and_then(|call| call.value.as_ref()) else {
            wrong.push(format!("{id}: breaking without a witness: {}", change.sentence));
            continue;
        };
        let refused = match change.kind {
            Kind::ToolRenamed => a.name != b.name,
            _ => !after.is_valid(value) && !second_after.accepts(value),
        };
        if before.is_valid(value) && second_before.accepts(value) && refused {
            checked += 1;
        } else {
            wrong.push(format!("{id}: no witness: {value}"));
        }
    }
    Ok(checked)
}

/// The schema without text and without what no validator reads.
fn bare(node: &Value, in_table: bool) -> Value {
    const TEXT: [&str; 6] = ["title", "description", "examples", "$comment", "deprecated", "$schema"];
    match node {
        Value::Object(map) => {
            let kept = map.iter().filter(|(k, _)| in_table || !TEXT.contains(&k.as_str()));
            Value::Object(kept.map(|(k, v)| (k.clone(), bare(v, !in_table && k == "properties"))).collect())
        }
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let mut sorted = items.clone();
            sorted.sort_by_key(Value::to_string);
            Value::Array(sorted)
        }
        Value::Array(items) => Value::Array(items.iter().map(|v| bare(v, false)).collect()),
        other => other.clone(),
    }
}

/// Whether `new` is `old` and optional arguments beside, nothing else.
fn only_adds(old: &Value, new: &Value) -> bool {
    let (mut a, mut b) = (bare(old, false), bare(new, false));
    let take = |v: &mut Value| {
        let map = v.as_object_mut();
        map.and_then(|m| m.remove("properties")).and_then(|p| p.as_object().cloned()).unwrap_or_default()
    };
    let (x, y) = (take(&mut a), take(&mut b));
    a == b && y.len() > x.len() && x.iter().all(|(k, v)| y.get(k) == Some(v))
}

/// Names and types of the arguments and what is required: what a rewrite by a generator keeps.
fn declared_shape(schema: &Value) -> Value {
    let types =
        |p: &Map<String, Value>| p.iter().map(|(k, v)| (k.clone(), v["type"].clone())).collect::<Map<_, _>>();
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    required.sort_by_key(Value::to_string);
    json!([schema["properties"].as_object().map(types), required])
}

/// Arguments that are declared no more.
fn lost<'a>(old: &'a Value, new: &Value) -> Vec<&'a String> {
    let declared = |name: &String| new["properties"].get(name).is_some();
    old["properties"].as_object().into_iter().flat_map(|p| p.keys()).filter(|name| !declared(name)).collect()
}
