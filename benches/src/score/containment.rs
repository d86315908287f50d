//! The containment test suite, asked in both directions where the truth is known.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use lastcall_contract::Draft;
use lastcall_diff::{Answer, Model, Operand, Options, contains};
use serde_json::{Map, Value, json};

use crate::oracle::Oracle;

/// Counts of one family and truth.
#[derive(Default)]
struct Row {
    questions: u64,
    proven: u64,
    refuted: u64,
    unknown: u64,
    /// The answer contradicts the label, and the oracle sides with the answer.
    mislabelled: u64,
    wrong: u64,
}

/// Asks every question. Time is that of preparing both schemas and answering, in one thread.
pub fn score(data: &Path) -> Result<Map<String, Value>> {
    let text = std::fs::read(data.join("containment_draft2020_12.json"))?;
    let document: Value = serde_json::from_slice(&text)?;
    let cases = document["cases"].as_array().context("no cases")?;
    let mut rows: BTreeMap<(String, bool), Row> = BTreeMap::new();
    let mut times: Vec<u64> = Vec::new();
    let mut slowest = (0, String::new());
    let verbose = std::env::var_os("LASTCALL_SCORE_VERBOSE").is_some();
    for case in cases.iter().filter(|c| c["optional"] != json!(true)) {
        for (truth, sub, sup) in [("old_subset_new", "old", "new"), ("new_subset_old", "new", "old")] {
            let Some(truth) = case["expect"][truth].as_bool() else { continue };
            let start = Instant::now();
            let answer = ask(&case[sub], &case[sup]);
            let took = start.elapsed().as_micros() as u64;
            times.push(took);
            let id = case["id"].as_str().unwrap_or_default();
            if took > slowest.0 {
                slowest = (took, id.to_owned());
            }
            let row =
                rows.entry((case["family"].as_str().unwrap_or_default().to_owned(), truth)).or_default();
            row.questions += 1;
            let note = match (&answer, truth) {
                (Answer::Proven, true) => {
                    row.proven += 1;
                    continue;
                }
                (Answer::Refuted(_), false) => {
                    row.refuted += 1;
                    continue;
                }
                (Answer::Unknown { why }, _) => {
                    row.unknown += 1;
                    format!("unknown: {why}")
                }
                (Answer::Proven | Answer::Refuted(_), _)
                    if oracle_agrees(&case[sub], &case[sup], &answer) =>
                {
                    row.mislabelled += 1;
                    format!("the label is wrong: {answer:?}")
                }
                (Answer::Proven | Answer::Refuted(_), _) => {
                    row.wrong += 1;
                    format!("WRONG: {answer:?}")
                }
            };
            if verbose || note.starts_with("WRONG") {
                println!("{id} {sub}⊆{sup} truth {truth}: {note}");
            }
        }
    }
    println!(
        "{:14} {:>9} {:>9} {:>7} {:>7} {:>7} {:>11} {:>6}",
        "family", "label", "questions", "proven", "refuted", "unknown", "mislabelled", "wrong"
    );
    for ((family, truth), row) in &rows {
        let truth = if *truth { "contained" } else { "not" };
        println!(
            "{family:14} {truth:>9} {:>9} {:>7} {:>7} {:>7} {:>11} {:>6}",
            row.questions, row.proven, row.refuted, row.unknown, row.mislabelled, row.wrong
        );
    }
    let sum = |truth: bool, of: fn(&Row) -> u64| -> u64 {
        rows.iter().filter(|((_, t), _)| *t == truth).map(|(_, row)| of(row)).sum()
    };
    let (contained, not_contained) = (sum(true, |r| r.questions), sum(false, |r| r.questions));
    times.sort_unstable();
    let quantile = |q: f64| times.get(((times.len() as f64 * q) as usize).min(times.len() - 1)).copied();
    let share = |part: u64, whole: u64| ((part as f64 / whole.max(1) as f64) * 1e4).round() / 1e4;
    let figures = json!({
        "questions": contained + not_contained,
        "contained": contained,
        "not_contained": not_contained,
        "unsound": sum(true, |r| r.wrong) + sum(false, |r| r.wrong),
        "proven_share": share(sum(true, |r| r.proven), contained),
        "refuted_share": share(sum(false, |r| r.refuted), not_contained),
        "mislabelled": sum(true, |r| r.mislabelled) + sum(false, |r| r.mislabelled),
        "unknown": sum(true, |r| r.unknown) + sum(false, |r| r.unknown),
        "p50_us": quantile(0.5),
        "p99_us": quantile(0.99),
        "max_ms": slowest.0 as f64 / 1e3,
    });
    println!("{figures:#}\nslowest: {}", slowest.1);
    match figures {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

/// Whether another validator shows that the label cannot be right: it confirms the witness, or it accepts the only value
/// that the smaller schema has.
fn oracle_agrees(sub: &Value, sup: &Value, answer: &Answer) -> bool {
    let oracle = |schema: &Value| Oracle::new(schema, Draft::Draft202012, false);
    let (Some(of_sub), Some(of_sup)) = (oracle(sub), oracle(sup)) else { return false };
    match (answer, sub.get("const")) {
        (Answer::Refuted(witness), _) => of_sub.accepts(&witness.value) && !of_sup.accepts(&witness.value),
        (Answer::Proven, Some(only)) => of_sup.accepts(only),
        _ => false,
    }
}

/// The suite is about sets of values, with `format` as an annotation.
fn ask(sub: &Value, sup: &Value) -> Answer {
    let prepare = |schema: &Value| Operand::with_formats(schema, Draft::Draft202012, false);
    match (prepare(sub), prepare(sup)) {
        (Ok(sub), Ok(sup)) => contains(&sub, &sup, Model::Open, &Options::default()),
        (Err(error), _) | (_, Err(error)) => Answer::Unknown { why: error.to_string() },
    }
}
