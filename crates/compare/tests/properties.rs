//! What holds of every comparison: total on arbitrary JSON, reflexive, deterministic, no refusal without a discrepancy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::cell::Cell;

use lastcall_compare::{ComparisonResult, PairConfig, PreparedPair, Reason, compare};
use lastcall_contract::{Contract, Definition};
use lastcall_event::{Preset, Record, decode};
use proptest::prelude::*;
use serde_json::{Value, json};

const NAMES: [&str; 6] = ["a", "b", "order_id", "orderId", "x~/y", ""];

/// JSON texts, some of them broken or odd on purpose.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5i64..20).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-100i32..100).prop_map(|n| json!(f64::from(n) / 4.0)),
        prop_oneof![
            Just("red"),
            Just("RED"),
            Just("green"),
            Just("2026-06-01"),
            Just(""),
            Just("a b"),
            Just("12")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((0..NAMES.len(), inner), 0..4).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(i, v)| (NAMES[i].to_owned(), v)).collect())
            }),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!({"type": "string"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": "integer", "minimum": 0, "maximum": 9})),
        Just(json!({"type": "number", "multipleOf": 0.5})),
        Just(json!({"type": "boolean", "default": false})),
        Just(json!({"enum": ["red", "green", 1, null]})),
        Just(json!({"enum": ["RED"], "default": "RED"})),
        Just(json!({"const": "red"})),
        Just(json!({"type": "string", "maxLength": 3, "pattern": "^[a-z]*$"})),
        Just(json!({"type": "string", "format": "date"})),
        Just(json!({"type": "string", "pattern": "^(\\w+\\s?)*\\1$"})),
        Just(json!({"$ref": "#/$defs/shared"})),
        Just(json!(true)),
        Just(json!({"not": {"type": "null"}})),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            (prop::collection::vec((0..NAMES.len(), inner.clone()), 0..4), any::<u8>(), 0u8..5).prop_map(
                |(pairs, required, open)| {
                    let required: Vec<&str> = pairs
                        .iter()
                        .filter(|(i, _)| required & (1 << i) != 0)
                        .map(|(i, _)| NAMES[*i])
                        .collect();
                    let properties: serde_json::Map<String, Value> =
                        pairs.iter().map(|(i, v)| (NAMES[*i].to_owned(), v.clone())).collect();
                    let mut schema = json!({"type": "object", "properties": properties});
                    if !required.is_empty() {
                        schema["required"] =
                            json!(required.iter().collect::<std::collections::BTreeSet<_>>());
                    }
                    match open {
                        0 => schema["additionalProperties"] = json!(false),
                        1 => schema["additionalProperties"] = json!({"type": "string"}),
                        2 => schema["unevaluatedProperties"] = json!(false),
                        3 => schema["patternProperties"] = json!({"^a": {"type": "integer"}}),
                        _ => {}
                    }
                    schema
                }
            ),
            inner.clone().prop_map(|s| json!({"type": "array", "items": s, "maxItems": 3})),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|s| json!({"anyOf": s})),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|s| json!({"oneOf": s})),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(i, t, e)| json!({"if": i, "then": t, "else": e})),
            (inner.clone(), inner).prop_map(|(a, b)| json!({"allOf": [a, b]})),
        ]
    })
}

/// Two tools whose arguments mostly have the same schemas: what a changed definition looks like.
fn pair_of_schemas() -> impl Strategy<Value = (Value, Value)> {
    let property = (0..NAMES.len(), schema(), prop::option::weighted(0.3, schema()), 0u8..8);
    (prop::collection::vec(property, 1..5), 0u8..4).prop_map(|(properties, close)| {
        let (mut old, mut new) = (json!({"type": "object"}), json!({"type": "object"}));
        for (name, first, second, kind) in properties {
            let name = NAMES[name];
            old["properties"][name] = first.clone();
            match kind {
                0 => {} // removed
                1 => {
                    new["properties"][name] = first;
                    new["required"] = json!([name]);
                }
                _ => new["properties"][name] = second.unwrap_or(first),
            }
        }
        if close == 0 {
            new["additionalProperties"] = json!(false);
        }
        (old, new)
    })
}

fn contract(id: &str, root: &Value) -> Option<Contract> {
    let mut input = root.clone();
    input["$defs"] = json!({"shared": {"type": "string", "minLength": 1}});
    let definition = json!({"name": "t", "inputSchema": input, "outputSchema": root_output(root)});
    Some(Contract::new(id, Definition::from_value(&definition).ok()?))
}

fn root_output(root: &Value) -> Value {
    json!({"type": "object", "properties": {"r": root}, "$defs": {"shared": {"type": "string"}}})
}

#[derive(Clone, Debug)]
struct Call {
    arguments: String,
    outcome: Value,
    candidate: Option<Value>,
}

fn call() -> impl Strategy<Value = Call> {
    const STATUS: [&str; 8] = [
        "ok",
        "invalid_arguments",
        "business_error",
        "permission_denied",
        "rate_limited",
        "timeout",
        "platform_error",
        "unknown",
    ];
    const CANDIDATE: [&str; 13] = [
        "ok",
        "invalid_arguments",
        "business_error",
        "permission_denied",
        "rate_limited",
        "timeout",
        "platform_error",
        "unknown",
        "timed_out",
        "shed",
        "unavailable",
        "sampled_out",
        "not_run",
    ];
    const SUPPRESSION: [&str; 6] = ["replica", "snapshot", "dry_run", "sandbox", "stub", "not_executed"];
    let arguments = prop_oneof![
        8 => prop::collection::vec((0..NAMES.len(), json_value()), 0..5).prop_map(|pairs| {
            Value::Object(pairs.into_iter().map(|(i, v)| (NAMES[i].to_owned(), v)).collect()).to_string()
        }),
        1 => json_value().prop_map(|v| v.to_string()),
        1 => prop_oneof![
            Just("{".to_owned()), Just(String::new()), Just("{\"a\":1,\"a\":2}".to_owned()),
            Just("{\"a\":1e999}".to_owned()), Just("{\"a\":9007199254740993}".to_owned()),
            Just(format!("{{\"a\":{}{}}}", "[".repeat(400), "]".repeat(400))),
        ],
    ];
    let candidate = prop::option::of((
        0..CANDIDATE.len(),
        0..SUPPRESSION.len(),
        prop::option::of(any::<bool>()),
        prop::option::of(json_value()),
        prop::option::of(json_value()),
    ));
    (arguments, 0..STATUS.len(), prop::option::of(any::<bool>()), prop::option::of(json_value()), candidate)
        .prop_map(|(arguments, status, executed, result, candidate)| {
            let mut outcome = json!({"status": STATUS[status]});
            if let Some(executed) = executed {
                outcome["executed"] = json!(executed);
            }
            if let Some(result) = result {
                outcome["result"] = json!({"r": result});
            }
            let candidate = candidate.map(|(status, suppression, executed, result, arguments)| {
                let mut row = json!({"contract_id": "t@2", "status": CANDIDATE[status],
                    "suppression": SUPPRESSION[suppression]});
                if let Some(executed) = executed {
                    row["executed"] = json!(executed);
                }
                if let Some(result) = result {
                    row["result"] = json!({"r": result});
                }
                if let Some(arguments) = arguments {
                    row["arguments"] = arguments;
                }
                row
            });
            Call { arguments, outcome, candidate }
        })
}

fn event(call: &Call) -> String {
    let mut event = json!({"type": "mirrored_call", "schema_version": 1, "call_id": "c", "ts": "2026-06-01T00:00:00Z",
        "tool_id": "t", "contract_id": "t@1", "arguments_text": call.arguments, "outcome": call.outcome});
    match &call.candidate {
        Some(candidate) => event["candidates"] = json!([candidate]),
        None => event["type"] = json!("tool_call"),
    }
    event.to_string()
}

fn cases() -> ProptestConfig {
    let prove = std::env::var_os("LASTCALL_PROVE").is_some();
    ProptestConfig {
        cases: if prove { 20_000 } else { 3_000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[test]
fn total_deterministic_and_no_silent_refusal() {
    let (compared, refused, disagreed) = (Cell::new(0u32), Cell::new(0u32), Cell::new(0u32));
    proptest!(cases(), |((old, new) in pair_of_schemas(), calls in prop::collection::vec(call(), 6))| {
        let (Some(a), Some(b)) = (contract("t@1", &old), contract("t@2", &new)) else { return Ok(()) };
        let Ok(pair) = PreparedPair::new(&a, &b, &PairConfig::default()) else { return Ok(()) };
        for call in &calls {
            let text = event(call);
            let decoded = decode(text.as_bytes(), Preset::Native).expect("our own event decodes");
            let Record::Call(record) = decoded.record else { panic!("a call") };
            let got = compare(&pair, &record);
            compared.set(compared.get() + 1);
            prop_assert_eq!(&got, &compare(&pair, &record));
            let differs = got.discrepancies.iter().any(|d| d.severity > lastcall_compare::Severity::Info);
            prop_assert_eq!(got.result == ComparisonResult::Disagreed, differs, "{:?}", got);
            if matches!(got.result, ComparisonResult::Unresolved | ComparisonResult::Excluded) {
                prop_assert!(got.reason.is_some());
            }
            // Independently: accepted by current, refused by the candidate's schema alone, nothing run.
            let Ok(value) = serde_json::from_str::<Value>(&call.arguments) else { continue };
            let accepts = |c: &Contract| {
                jsonschema::options().with_draft(jsonschema::Draft::Draft202012).should_validate_formats(true)
                    .build(&c.definition.input_schema).unwrap().is_valid(&value)
            };
            let plain = call.candidate.is_none() && call.outcome["status"] == "ok" && value.is_object();
            let unsure = matches!(got.reason, Some(Reason::Undecided | Reason::NumberPrecision | Reason::DuplicateKeys
                | Reason::TooDeep | Reason::NumberOutOfRange));
            if plain && !unsure && accepts(&a) && !accepts(&b) {
                refused.set(refused.get() + 1);
                prop_assert_eq!(got.result, ComparisonResult::Disagreed);
                prop_assert!(got.refused(), "{:?}", got);
            }
            disagreed.set(disagreed.get() + u32::from(differs));
        }
    });
    println!(
        "properties: {} comparisons, {} disagreements, {} plain refusals, each with a discrepancy",
        compared.get(),
        disagreed.get(),
        refused.get()
    );
    assert!(refused.get() > 100, "too few refusals to mean anything");
}

/// Everything that can be declared, except what is declared to excuse a refusal (the letter case of enums).
fn everything() -> PairConfig {
    let places: Vec<String> =
        ["/a", "/b", "/order_id", "/orderId", "/a/*", "/*/b", "/*"].map(str::to_owned).to_vec();
    let flags = json!({"fills_defaults": true, "absent_is_null": true, "coerces": true});
    let config = json!({"normalization": {
        "verbatim": ["/a"], "unordered": places, "absent_is_null": places, "numeric_strings": places,
        "dates": places, "currency": places, "units": [{"field": "/b", "factor": 10}, {"field": "/a/*", "factor": "0.5"}],
        "runtimes": {"current": flags, "candidate": flags}}});
    serde_json::from_value(config).unwrap()
}

/// The same thing in another form: what declarations are about.
fn turned(value: &mut Value) {
    match value {
        Value::Array(items) => items.reverse(),
        Value::Number(_) => *value = json!(value.to_string()),
        Value::String(text) => match text.parse::<i64>() {
            Ok(number) => *value = json!(number),
            Err(_) => text.push(' '),
        },
        _ => {}
    }
}

#[test]
fn what_is_declared_never_excuses_a_refusal() {
    let (seen, folded) = (Cell::new(0u32), Cell::new(0u32));
    proptest!(cases(), |((old, new) in pair_of_schemas(), mut calls in prop::collection::vec(call(), 6))| {
        for call in calls.iter_mut().filter(|c| c.arguments.starts_with('{')) {
            // a candidate that reports nearly what it was given
            let Ok(mut near) = serde_json::from_str::<Value>(&call.arguments) else { continue };
            near.as_object_mut().unwrap().retain(|_, v| !v.is_null());
            near.as_object_mut().unwrap().values_mut().for_each(turned);
            if let Some(candidate) = &mut call.candidate {
                candidate["arguments"] = near;
            }
        }
        let (Some(a), Some(b)) = (contract("t@1", &old), contract("t@2", &new)) else { return Ok(()) };
        let Ok(plain) = PreparedPair::new(&a, &b, &PairConfig::default()) else { return Ok(()) };
        let declared = PreparedPair::new(&a, &b, &everything()).unwrap();
        prop_assert_ne!(plain.epoch(), declared.epoch());
        for call in &calls {
            let text = event(call);
            let Record::Call(record) = decode(text.as_bytes(), Preset::Native).unwrap().record else { panic!() };
            let (without, with) = (compare(&plain, &record), compare(&declared, &record));
            let refusals = |c: &lastcall_compare::Comparison| -> Vec<lastcall_compare::Discrepancy> {
                c.discrepancies.iter().filter(|d| d.refused).cloned().collect()
            };
            prop_assert_eq!(refusals(&without), refusals(&with));
            seen.set(seen.get() + u32::from(with.refused()));
            let compared = [ComparisonResult::Agreed, ComparisonResult::Disagreed];
            prop_assert_eq!(compared.contains(&without.result), compared.contains(&with.result));
            if without.result == ComparisonResult::Disagreed && with.result == ComparisonResult::Agreed {
                folded.set(folded.get() + 1);
                prop_assert!(!with.rules.is_empty(), "a fold without its name: {:?} {:?}", without, with);
            }
        }
    });
    assert!(seen.get() > 100 && folded.get() > 0, "{} refusals, {} folded", seen.get(), folded.get());
}

#[test]
fn a_contract_against_itself_is_silent() {
    for config in [PairConfig::default(), everything()] {
        against_itself(&config);
    }
}

fn against_itself(config: &PairConfig) {
    let (calls_seen, agreed) = (Cell::new(0u32), Cell::new(0u32));
    proptest!(cases(), |((schema, _) in pair_of_schemas(), calls in prop::collection::vec(call(), 6))| {
        let (Some(a), Some(b)) = (contract("t@1", &schema), contract("t@2", &schema)) else { return Ok(()) };
        let Ok(pair) = PreparedPair::new(&a, &b, config) else { return Ok(()) };
        prop_assert!(pair.places().is_empty(), "{:?}", pair.places());
        for call in &calls {
            let mut call = call.clone();
            // a candidate that says what it used may say anything: that is its own difference
            if let Some(candidate) = &mut call.candidate {
                candidate.as_object_mut().unwrap().remove("arguments");
                if candidate["status"] == "invalid_arguments" { continue }
            }
            let text = event(&call);
            let Record::Call(record) = decode(text.as_bytes(), Preset::Native).unwrap().record else { panic!() };
            let got = compare(&pair, &record);
            calls_seen.set(calls_seen.get() + 1);
            agreed.set(agreed.get() + u32::from(got.result == ComparisonResult::Agreed));
            let about_arguments = got.discrepancies.iter().filter(|d| {
                !d.category.as_str().starts_with("outcome_") && d.category.as_str() != "candidate_error"
                    && d.category.as_str() != "output_schema_broken"
            });
            prop_assert_eq!(about_arguments.count(), 0, "{:?}", got);
        }
    });
    println!(
        "properties: {} calls under a contract against itself, {} agreed",
        calls_seen.get(),
        agreed.get()
    );
    assert!(agreed.get() > 100);
}
