//! Real calls of real definitions, against themselves and against changes of known effect. What is affected is decided
//! by `oracle`, which shares nothing with the comparator. Skips with a message when the data folder is absent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod oracle;

use std::collections::BTreeMap;

use lastcall_compare::{
    Comparison, ComparisonResult, PairConfig, PreparedPair, Reason, Severity, Trees, compare, parse_arguments,
};
use lastcall_contract::{Contract, Definition, validator_for, validator_of};
use lastcall_diff::{Aim, Rename, Rng, agreeing, showing};
use lastcall_event::{Day, Preset, Record, Timestamp, decode};
use lastcall_ledger::Ledger;
use lastcall_ledger::entry::Balance;
use lastcall_ledger::tally::Sums;
use lastcall_tests::{observe, run};
use oracle::{Projection, RealCall, breaks_a_format, calls, data_folder, lines, projections};
use serde_json::{Value, json};

const DAYS: i64 = 14;
const DAY_MS: i64 = 86_400_000;

/// The folder, or a message and nothing.
macro_rules! data_or_skip {
    () => {
        match data_folder() {
            Some(folder) => folder,
            None => {
                eprintln!("SKIPPED: no data folder; set LASTCALL_DATA to the folder that holds calls.jsonl");
                return;
            }
        }
    };
}

/// The calls by definition, and the definitions.
struct Input {
    calls: Vec<RealCall>,
    schemas: BTreeMap<String, Value>,
}

impl Input {
    fn read(folder: &std::path::Path) -> Self {
        let schemas = lines(folder, "schemas.jsonl")
            .into_iter()
            .map(|v| (v["schema_ref"].as_str().unwrap().to_owned(), v))
            .collect();
        Self { calls: calls(folder), schemas }
    }

    /// (number of the definition, definition, its calls), in the order of `schema_ref`.
    fn by_definition(&self) -> Vec<(usize, &Value, Vec<&RealCall>)> {
        let mut by: BTreeMap<&str, Vec<&RealCall>> = BTreeMap::new();
        for call in &self.calls {
            by.entry(&call.schema_ref).or_default().push(call);
        }
        by.into_iter().enumerate().map(|(n, (name, calls))| (n, &self.schemas[name], calls)).collect()
    }

    /// The event of a call: spread over fourteen days in the order of the file, executed where a result exists.
    fn event(&self, call: &RealCall, tool_id: &str) -> String {
        let start = Day::parse("2026-06-01").unwrap().start().0;
        let ts = Timestamp(start + call.line as i64 * DAYS * DAY_MS / self.calls.len() as i64);
        let status = match call.is_error {
            Some(false) => "ok",
            Some(true) => "business_error",
            None => "unknown",
        };
        let mut outcome = json!({"status": status});
        if call.has_result {
            outcome["executed"] = json!(true);
        }
        json!({
            "type": "tool_call", "schema_version": 1, "call_id": format!("real-{:05}", call.line), "ts": ts,
            "tool_id": tool_id, "contract_id": format!("{tool_id}@1"), "arguments": call.arguments,
            "fidelity": "raw", "outcome": outcome,
            "envelope": {"session_id": call.session, "model": call.model, "agent_id": "data"}
        })
        .to_string()
    }
}

fn tool_id(n: usize) -> String {
    format!("real.tool-{n:04}")
}

fn definition(value: &Value, parameters: &Value) -> Definition {
    let document = json!({
        "name": value["name"], "description": value["description"].as_str().unwrap_or(""), "inputSchema": parameters
    });
    Definition::from_value(&document).unwrap_or_else(|e| panic!("{}: {e}", value["schema_ref"]))
}

fn contract(n: usize, version: u32, value: &Value, parameters: &Value) -> Contract {
    Contract::new(format!("{}@{version}", tool_id(n)), definition(value, parameters))
}

fn compared(pair: &PreparedPair, event: &str) -> Comparison {
    let decoded = decode(event.as_bytes(), Preset::Native).unwrap();
    let Record::Call(call) = decoded.record else { panic!("a call was written") };
    let first = compare(pair, &call);
    assert_eq!(first, compare(pair, &call), "not deterministic");
    first
}

/// The differences that make a disagreement, as (field, category).
fn disagreement(comparison: &Comparison) -> Vec<(String, &'static str)> {
    comparison
        .discrepancies
        .iter()
        .filter(|d| d.severity >= Severity::Warn)
        .map(|d| (d.field.clone(), d.category.as_str()))
        .collect()
}

fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[test]
fn a_contract_against_itself_is_silent() {
    let input = Input::read(&data_or_skip!());
    let mut results: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut uncompiled = 0;
    for (n, value, calls) in input.by_definition() {
        if calls.iter().any(|c| c.valid.is_none()) {
            // The data's own validator could not compile the schema. Either reading of it is honest; none may be
            // called agreement without a validator.
            uncompiled += calls.len();
            continue;
        }
        let old = contract(n, 1, value, &value["parameters"]);
        let new = contract(n, 2, value, &value["parameters"]);
        let pair = PreparedPair::new(&old, &new, &PairConfig::default())
            .unwrap_or_else(|e| panic!("{}: {e}", value["schema_ref"]));
        assert!(pair.places().is_empty(), "{}: no place changed", value["schema_ref"]);
        for call in calls {
            let comparison = compared(&pair, &input.event(call, &tool_id(n)));
            assert_eq!(comparison.discrepancies, vec![], "line {}", call.line);
            let format = call.valid == Some(true) && breaks_a_format(&value["parameters"], &call.arguments);
            let kind = match (call.valid.unwrap(), format) {
                (false, _) => "breaks its schema",
                (true, true) => "breaks a format of its schema",
                (true, false) => "keeps its schema",
            };
            let key = (
                format!("{kind}, {}", if call.has_result { "has a result" } else { "has none" }),
                format!(
                    "{}{}",
                    comparison.result.as_str(),
                    comparison.reason.map_or(String::new(), |r| format!(" ({})", r.as_str()))
                ),
            );
            *results.entry(key).or_default() += 1;
            match (call.valid.unwrap() && !format, call.has_result) {
                (false, true) => assert_eq!(
                    (comparison.result, comparison.reason),
                    (ComparisonResult::BothRejected, Some(Reason::BothUnenforced)),
                    "line {}",
                    call.line
                ),
                (false, false) => assert_eq!(
                    (comparison.result, comparison.reason),
                    (ComparisonResult::BothRejected, None),
                    "line {}",
                    call.line
                ),
                (true, _) => assert_eq!(comparison.result, ComparisonResult::Agreed, "line {}", call.line),
            }
        }
    }
    println!("{} calls, {} definitions", input.calls.len(), input.schemas.len());
    for ((call, result), n) in &results {
        println!("  {n:5}  {call}: {result}");
    }
    println!("  {uncompiled:5}  calls of definitions whose schema the data's validator did not compile");
    let of =
        |kind: &str| -> usize { results.iter().filter(|((call, _), _)| call == kind).map(|(_, n)| n).sum() };
    let broken = (of("breaks its schema, has a result"), of("breaks its schema, has none"));
    assert_eq!(broken, (42, 16), "the 58 calls that break their own schema");
    let total: usize = results.values().sum();
    assert_eq!(total + uncompiled, input.calls.len(), "every call is somewhere");
}

/// The tree that the comparator reads is serde_json's value, and every schema says the same of both: of the calls made
/// under it, and of others' (with LASTCALL_PROVE=1 of every call).
#[test]
fn trees_are_judged_as_values() {
    let input = Input::read(&data_or_skip!());
    let step = if std::env::var_os("LASTCALL_PROVE").is_some() { 1 } else { 97 };
    let texts: Vec<String> = input.calls.iter().map(|c| c.arguments.to_string()).collect();
    let both: Vec<_> = texts
        .iter()
        .map(|text| (parse_arguments(text).ok(), serde_json::from_str::<Value>(text).unwrap()))
        .collect();
    let (mut accepted, mut refused) = (0, 0);
    for (n, value, calls) in input.by_definition() {
        if calls.iter().any(|c| c.valid.is_none()) {
            continue;
        }
        let definition = definition(value, &value["parameters"]);
        let (trees, _) = validator_of::<Trees>(&definition.input_schema, definition.draft).unwrap();
        let values = validator_for(&definition.input_schema, definition.draft).unwrap();
        let own = calls.iter().map(|c| c.line);
        for line in own.chain((n % step..both.len()).step_by(step)) {
            let (Some(parsed), value) = &both[line] else { continue };
            assert_eq!(parsed.value(), value, "line {line}");
            let valid = values.is_valid(value);
            assert_eq!(trees.is_valid(&parsed.tree), valid, "line {line} {}", definition.name);
            *if valid { &mut accepted } else { &mut refused } += 1;
        }
    }
    assert!(accepted > 4_000 && refused > 10_000, "{accepted} {refused}");
}

#[test]
fn exactly_the_affected_calls_disagree() {
    let input = Input::read(&data_or_skip!());
    // kind -> (projections, calls compared, affected)
    let mut figures: BTreeMap<&'static str, (usize, usize, usize)> = BTreeMap::new();
    let (mut with_calls, mut broken) = (0, 0);
    for (n, value, all) in input.by_definition() {
        let parameters = &value["parameters"];
        if all.iter().any(|c| c.valid.is_none()) {
            continue;
        }
        let keeps = |c: &RealCall| c.valid == Some(true) && !breaks_a_format(parameters, &c.arguments);
        let calls: Vec<&RealCall> = all.iter().copied().filter(|c| keeps(c)).collect();
        broken += all.len() - calls.len();
        with_calls += usize::from(!calls.is_empty());
        let arguments: Vec<&Value> = calls.iter().map(|c| &c.arguments).collect();
        let old = contract(n, 1, value, parameters);
        for projection in projections(parameters, &arguments) {
            let new = contract(n, 2, value, &projection.apply(parameters));
            let mut config = PairConfig::default();
            if let Projection::RenameDeclared { from, to } = &projection {
                config.renames = vec![Rename { from: pointer(from), to: pointer(to) }];
            }
            let pair = PreparedPair::new(&old, &new, &config)
                .unwrap_or_else(|e| panic!("{} {projection:?}: {e}", value["schema_ref"]));
            let wanted = vec![(pointer(projection.argument()), projection.category(parameters))];
            let mut tally: BTreeMap<ComparisonResult, usize> = BTreeMap::new();
            let figure = figures.entry(projection.kind()).or_default();
            figure.0 += 1;
            for call in &calls {
                let comparison = compared(&pair, &input.event(call, &tool_id(n)));
                *tally.entry(comparison.result).or_default() += 1;
                figure.1 += 1;
                let at =
                    || format!("line {}, {projection:?} of {}: {comparison:?}", call.line, call.schema_ref);
                if projection.affects(&call.arguments) {
                    figure.2 += 1;
                    assert_eq!(comparison.result, ComparisonResult::Disagreed, "{}", at());
                    assert_eq!(disagreement(&comparison), wanted, "{}", at());
                    assert!(!comparison.disagreed_at.is_empty(), "no changed place is named, {}", at());
                } else {
                    assert_eq!(comparison.result, ComparisonResult::Agreed, "{}", at());
                    assert!(comparison.disagreed_at.is_empty(), "{}", at());
                }
            }
            assert_eq!(tally.values().sum::<usize>(), calls.len(), "every call has one result");
        }
    }
    println!(
        "{with_calls} definitions with calls; {broken} calls that break their own schema or its formats are left to another test"
    );
    println!("  change                projections   calls compared   affected");
    for (kind, (projections, compared, affected)) in &figures {
        println!("  {kind:<22} {projections:>10} {compared:>16} {affected:>10}");
        assert!(*affected > 100, "{kind}: the data gives too few affected calls to prove anything");
    }
    assert_eq!(figures.len(), 6, "every kind of change was tried");
}

#[test]
fn real_changes_prepare_and_compare_generated_calls() {
    let folder = data_or_skip!();
    let mut errors: BTreeMap<String, usize> = BTreeMap::new();
    let mut results: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut pairs, mut calls, mut none, mut shown) = (0, 0, 0, 0);
    for (i, line) in lines(&folder, "evolution.jsonl").iter().enumerate() {
        pairs += 1;
        let side = |key: &str, version: u32| {
            let mut document = line[key].clone();
            let object = document.as_object_mut().unwrap();
            for (from, to) in [("parameters", "inputSchema"), ("output_schema", "outputSchema")] {
                if let Some(schema) = object.remove(from) {
                    object.insert(to.to_owned(), schema);
                }
            }
            Definition::from_value(&document).map(|d| Contract::new(format!("evolved.t{i}@{version}"), d))
        };
        let (old, new) = match (side("old", 1), side("new", 2)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(e), _) | (_, Err(e)) => {
                *errors.entry(format!("definition: {e}")).or_default() += 1;
                continue;
            }
        };
        let pair = match PreparedPair::new(&old, &new, &PairConfig::default()) {
            Ok(pair) => pair,
            Err(e) => {
                *errors.entry(format!("pair: {e}")).or_default() += 1;
                continue;
            }
        };
        let (a, b) = (&old.definition.input_schema, &new.definition.input_schema);
        let accepts = validator_for(a, old.definition.draft).unwrap();
        let refuses = validator_for(b, new.definition.draft).unwrap();
        let mut rng = Rng::new(i as u64);
        let mut arguments = Vec::new();
        for _ in 0..4 {
            let made = lastcall_diff::valid(a, &mut rng, &mut |v| accepts.is_valid(v));
            none += usize::from(made.is_none());
            arguments.extend(made);
        }
        arguments.extend(agreeing(a, b, &mut rng, &mut |v| accepts.is_valid(v) && refuses.is_valid(v)));
        for aim in Aim::ALL {
            let base = arguments.first().cloned();
            let refused = &mut |v: &Value| accepts.is_valid(v) && !refuses.is_valid(v);
            let made = showing(a, b, aim, base.as_ref(), &mut rng, refused);
            shown += usize::from(made.is_some());
            arguments.extend(made);
        }
        for made in arguments {
            calls += 1;
            let event = json!({"type": "tool_call", "schema_version": 1, "call_id": "g", "ts": "2026-06-01T00:00:00Z",
                "tool_id": format!("evolved.t{i}"), "arguments": made, "outcome": {"status": "ok"}})
            .to_string();
            let comparison = compared(&pair, &event);
            *results.entry(comparison.result.as_str()).or_default() += 1;
            // The two validators are the oracle here: a call that the old accepts and the new refuses disagrees, and
            // a call that both accept is compared.
            let wanted = if refuses.is_valid(&made) {
                [ComparisonResult::Agreed, ComparisonResult::Disagreed]
            } else {
                [ComparisonResult::Disagreed; 2]
            };
            assert!(wanted.contains(&comparison.result), "pair {i}: {comparison:?} for {made}");
            assert_eq!(comparison.refused(), !refuses.is_valid(&made), "pair {i}: {comparison:?} for {made}");
        }
    }
    println!(
        "{pairs} real changes, {calls} generated calls ({shown} refused by the new), {none} not generated"
    );
    println!("  results {results:?}");
    for (error, n) in &errors {
        println!("  {n} x {error}");
    }
    let failed: usize = errors.values().sum();
    assert!(failed <= pairs / 50, "{failed} of {pairs} real definitions were refused: {errors:?}");
    assert!(calls > pairs, "too few calls were generated");
}

/// The same through the real binary: one file with every call, the most used definitions observed against themselves
/// and against one change each, the results read back from the ledger.
#[test]
fn the_ledger_of_a_real_run_says_the_same() {
    const DEFINITIONS: usize = 120;
    let input = Input::read(&data_or_skip!());
    let dir = tempfile::tempdir().unwrap();
    let (file, place) = (dir.path().join("calls.jsonl"), dir.path().join("ledger"));
    let mut by_use: Vec<_> = input.by_definition();
    let tool_of: BTreeMap<String, usize> =
        by_use.iter().map(|(n, value, _)| (value["schema_ref"].as_str().unwrap().to_owned(), *n)).collect();
    let events: Vec<String> = input
        .calls
        .iter()
        .map(|call| input.event(call, &tool_id(tool_of[&call.schema_ref])) + "\n")
        .collect();
    std::fs::write(&file, events.concat()).unwrap();

    let init = run(&["ledger", "init", place.to_str().unwrap()]);
    assert_eq!(init.code, 0, "{}", init.err);
    let ledger = Ledger::open(&place).unwrap();
    by_use.retain(|(_, _, calls)| calls.iter().all(|c| c.valid.is_some()));
    by_use.sort_by_key(|(n, _, calls)| (std::cmp::Reverse(calls.len()), *n));
    by_use.truncate(DEFINITIONS);

    // candidate contract -> what a call of it has to say: (result, reason, differences)
    type Said = (ComparisonResult, Option<Reason>, Vec<(String, &'static str)>);
    let mut wanted: BTreeMap<(String, String), Said> = BTreeMap::new();
    let (mut pairs, mut affected) = (0, 0);
    for (n, value, calls) in &by_use {
        let parameters = &value["parameters"];
        let keeps = |c: &RealCall| c.valid == Some(true) && !breaks_a_format(parameters, &c.arguments);
        let old = contract(*n, 1, value, parameters);
        observe(&ledger, &old, &contract(*n, 2, value, parameters), &PairConfig::default());
        let clean: Vec<&Value> = calls.iter().filter(|c| keeps(c)).map(|c| &c.arguments).collect();
        let all = projections(parameters, &clean);
        // Kinds in turn, so that the file sees all of them.
        let projection = all.get(n % all.len().max(1));
        if let Some(projection) = projection {
            let mut config = PairConfig::default();
            if let Projection::RenameDeclared { from, to } = projection {
                config.renames = vec![Rename { from: pointer(from), to: pointer(to) }];
            }
            observe(&ledger, &old, &contract(*n, 3, value, &projection.apply(parameters)), &config);
        }
        pairs += 1 + usize::from(projection.is_some());
        for call in calls {
            let key = |version: u32| (format!("real-{:05}", call.line), format!("{}@{version}", tool_id(*n)));
            let own = match (keeps(call), call.has_result) {
                (true, _) => (ComparisonResult::Agreed, None, vec![]),
                (false, true) => (ComparisonResult::BothRejected, Some(Reason::BothUnenforced), vec![]),
                (false, false) => (ComparisonResult::BothRejected, None, vec![]),
            };
            wanted.insert(key(2), own);
            if let Some(projection) = projection.filter(|_| keeps(call)) {
                let said = if projection.affects(&call.arguments) {
                    affected += 1;
                    let at = (pointer(projection.argument()), projection.category(parameters));
                    (ComparisonResult::Disagreed, None, vec![at])
                } else {
                    (ComparisonResult::Agreed, None, vec![])
                };
                wanted.insert(key(3), said);
            }
        }
    }

    let command =
        ["run", "--ledger", place.to_str().unwrap(), "--chunk-records", "1500", file.to_str().unwrap()];
    let first = run(&command);
    assert_eq!(first.code, 0, "{}", first.err);

    let mut keys = BTreeMap::new();
    let mut rows: BTreeMap<([u8; 16], String), Said> = BTreeMap::new();
    let (mut balance, mut sums) = (Balance::default(), Sums::default());
    let mut chunks = 0;
    for partition in ledger.partitions().unwrap() {
        for (_, chunk) in partition.chunks() {
            chunks += 1;
            assert!(chunk.balance.holds());
            balance.add(&chunk.balance);
            sums.add(chunk);
            ledger.for_each_call(chunk, |row| drop(keys.insert(row.call_key, row.call_id))).unwrap();
            ledger
                .for_each_result(chunk, |row| {
                    let differences = row.discrepancies.iter().filter(|d| d.severity >= Severity::Warn);
                    let differences = differences.map(|d| (d.field.clone(), d.category.as_str())).collect();
                    let twice =
                        rows.insert((row.call_key, row.candidate), (row.result, row.reason, differences));
                    assert!(twice.is_none(), "a call has one row for a candidate");
                })
                .unwrap();
        }
    }
    assert_eq!(
        (balance.read, balance.calls, balance.dead),
        (input.calls.len() as u64, input.calls.len() as u64, 0)
    );
    let counted: u64 = sums.calls.values().map(|(calls, _)| calls).sum();
    assert_eq!(counted, input.calls.len() as u64, "calls by day and tool");
    let days: std::collections::BTreeSet<Day> = sums.calls.keys().map(|key| key.0).collect();
    assert_eq!(days.len(), DAYS as usize);
    let compared: u64 = sums.tallies.values().map(|counts| counts.rows()).sum();
    assert_eq!(compared, rows.len() as u64, "the tallies count every row");

    let mut checked = 0;
    for ((key, candidate), said) in &rows {
        // Calls that break their schema are only stated against themselves.
        if let Some(expected) = wanted.get(&(keys[key].clone(), candidate.clone())) {
            assert_eq!(said, expected, "{} against {candidate}", keys[key]);
            checked += 1;
        }
    }
    if checked != wanted.len() {
        let there: std::collections::BTreeSet<(String, String)> =
            rows.keys().map(|(key, candidate)| (keys[key].clone(), candidate.clone())).collect();
        let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, candidate) in wanted.keys().filter(|key| !there.contains(key)) {
            *missing.entry(candidate).or_default() += 1;
        }
        panic!("rows are missing for {missing:?}");
    }
    println!(
        "{} calls in {chunks} chunks, {pairs} pairs observed, {} rows, {checked} of them stated by the oracle, \
         {affected} affected",
        input.calls.len(),
        rows.len()
    );

    let again = run(&command);
    assert_eq!(again.code, 0, "{}", again.err);
    let chunks_now: usize = ledger.partitions().unwrap().iter().map(|p| p.chunks().count()).sum();
    assert_eq!(chunks_now, chunks, "a second run over the same file adds nothing");
    let verified = run(&["ledger", "verify", place.to_str().unwrap()]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}
