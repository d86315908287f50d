//! A runtime that fills defaults before it validates: what counts is whether the filled call is accepted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod oracle;

use lastcall_contract::Draft;
use lastcall_diff::{Class, ContractDiff, DiffOptions, Direction, FactAnswer, Rng, diff_schemas};
use oracle::Oracle;
use serde_json::{Map, Value, json};

fn diff(old: &Value, new: &Value) -> ContractDiff {
    let options = DiffOptions { fills_defaults: true, ..DiffOptions::default() };
    diff_schemas(old, new, Draft::Draft202012, Direction::Input, &options).unwrap()
}

/// Old tools take `a` only; new ones have this instead.
fn pair(a: &Value, b: &Value, more: &Value) -> (Value, Value) {
    let old = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut new = json!({"type": "object", "properties": {"a": a}});
    if !b.is_null() {
        new["properties"]["b"] = b.clone();
    }
    new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    (old, new)
}

#[test]
fn a_filled_call_that_is_refused_breaks() {
    let text = json!({"type": "string"});
    let number = json!({"type": "string", "default": 5});
    let required = json!({"required": ["b"]});
    let optional = json!({});
    let good = json!({"type": "string", "default": "x"});
    let rows = [
        (&text, number.clone(), required.clone()),
        (&text, number.clone(), optional.clone()),
        (&number, Value::Null, optional.clone()),
        (&text, json!({"enum": ["p", "q"], "default": "x"}), required.clone()),
        (&text, json!({"type": "string", "default": null}), required),
        (&text, json!({"allOf": [{"type": "string"}, {"default": 5}]}), json!({"required": ["b"]})),
        (&text, good.clone(), json!({"required": ["b"], "maxProperties": 1})),
        (&text, good.clone(), json!({"required": ["b"], "not": {"required": ["a", "b"]}})),
        (&text, good.clone(), json!({"required": ["b"], "propertyNames": {"maxLength": 0}})),
        (&text, good, json!({"dependentRequired": {"b": ["a"]}})),
    ];
    for (a, b, more) in rows {
        let (old, new) = pair(a, &b, &more);
        let diff = diff(&old, &new);
        assert_eq!(
            (diff.class, diff.input.declared.answer),
            (Class::Breaking, FactAnswer::Refuted),
            "{new}: {diff:?}"
        );
        let worst = &diff.changes[0];
        assert!(worst.witness.is_some(), "{new}: {diff:?}");
    }
}

#[test]
fn a_default_that_its_own_schema_refuses_is_told_by_itself() {
    let (old, new) = pair(&json!({"type": "string"}), &json!({"type": "string", "default": 5}), &json!({}));
    let told = diff(&old, &new);
    assert!(told.notes.iter().any(|note| note.contains('5') && note.contains("`b`")), "{told:?}");
    // It did not change: no call is refused that was not refused before.
    assert!(diff(&new, &new).class == Class::Compatible);
    let mut worded = new.clone();
    worded["properties"]["b"]["description"] = json!("words");
    assert!(diff(&new, &worded).class < Class::NeedsReview);
}

#[test]
fn a_filled_call_that_is_accepted_is_a_risk_and_no_break() {
    let good = json!({"type": "string", "default": "x"});
    for more in [
        json!({"required": ["b"]}),
        json!({"required": ["b"], "maxProperties": 9, "additionalProperties": false}),
        json!({"required": ["b"], "dependentRequired": {"a": ["b"]}}),
    ] {
        let (mut old, new) = pair(&json!({"type": "string"}), &good, &more);
        old["additionalProperties"] = json!(false);
        let diff = diff(&old, &new);
        let proven = diff.input.declared.answer == FactAnswer::Proven;
        assert!(diff.class == Class::HighRisk && proven, "{new}: {diff:?}");
    }
    // Where the parent is there, and through a reference.
    let nested = |required: Value| {
        json!({"type": "object", "properties": {"o": {"$ref": "#/$defs/o"}}, "additionalProperties": false,
        "$defs": {"o": {"type": "object", "properties": {"p": {"type": "integer", "default": 1}}, "required": required}}})
    };
    assert_eq!(diff(&nested(json!([])), &nested(json!(["p"]))).input.declared.answer, FactAnswer::Proven);
    // A default that is no longer filled is missed.
    let (_, with) = pair(&json!({"type": "string"}), &good, &json!({"required": ["b"]}));
    let mut without = with.clone();
    without["properties"]["b"].as_object_mut().unwrap().remove("default");
    assert_eq!(diff(&with, &without).class, Class::Breaking);
}

/// An object with defaults, good and bad, and keywords that count or forbid members.
fn schema(rng: &mut Rng, depth: u32) -> Value {
    let mut properties = Map::new();
    for name in ["a", "b", "c"] {
        if rng.chance(0.6) {
            let mut node = match rng.below(if depth == 0 { 4 } else { 3 }) {
                0 => json!({"type": "string"}),
                1 => json!({"type": "integer", "minimum": 1}),
                2 => json!({"enum": ["x", 1]}),
                _ => schema(rng, depth + 1),
            };
            if rng.chance(0.6) {
                node["default"] =
                    [json!("x"), json!(1), json!({}), json!({"a": 1})][rng.below(4) as usize].clone();
            }
            properties.insert(name.to_owned(), node);
        }
    }
    let mut out = json!({"type": "object", "properties": properties});
    let mut put = |key: &str, value: Value| _ = out.as_object_mut().unwrap().insert(key.to_owned(), value);
    let name = ["a", "b", "c"][rng.below(3) as usize];
    if rng.chance(0.5) {
        put("required", json!([name]));
    }
    match rng.below(9) {
        0 => put("maxProperties", json!(rng.below(3))),
        1 => put("minProperties", json!(rng.below(4))),
        2 => put("not", json!({"required": [name], "minProperties": 2})),
        3 => put("additionalProperties", json!(false)),
        4 => put("anyOf", json!([{"required": [name]}, {"maxProperties": 1}])),
        5 => put("propertyNames", json!({"pattern": "^[ab]$"})),
        6 => put("patternProperties", json!({"^[ab]": {"type": "string"}})),
        _ => {}
    }
    out
}

/// What AJV's `useDefaults` does to an object, read from the schema alone.
fn filled(schema: &Value, value: &Value) -> Value {
    let mut out = value.clone();
    let (Some(table), Some(map)) = (schema.get("properties").and_then(Value::as_object), out.as_object_mut())
    else {
        return out;
    };
    for (name, node) in table {
        if let Some(default) = node.get("default") {
            map.entry(name.clone()).or_insert_with(|| default.clone());
        }
        if let Some(member) = map.get_mut(name) {
            *member = filled(node, member);
        }
    }
    out
}

fn values(rng: &mut Rng) -> Value {
    let mut map = Map::new();
    for name in ["a", "b", "c"] {
        if rng.chance(0.5) {
            let options = [json!("x"), json!(1), json!({}), json!({"a": "x"}), json!({"b": 1, "c": "x"})];
            map.insert(name.to_owned(), options[rng.below(5) as usize].clone());
        }
    }
    Value::Object(map)
}

#[test]
fn answers_hold_of_filled_calls() {
    let (mut proven, mut refuted, mut unknown) = (0, 0, 0);
    let pairs = if std::env::var_os("LASTCALL_PROVE").is_some() { 6_000 } else { 200 };
    for seed in 0..pairs {
        let mut rng = Rng::new(seed);
        let old = schema(&mut rng, 0);
        let new = if rng.chance(0.3) { schema(&mut rng, 0) } else { changed(&old, &mut rng) };
        let told = diff(&old, &new);
        let oracle = |schema: &Value| Oracle::new(schema, Draft::Draft202012, true).unwrap();
        let (before, after) = (oracle(&old), oracle(&new));
        let breaks = |v: &Value| before.accepts(&filled(&old, v)) && !after.accepts(&filled(&new, v));
        for change in &told.changes {
            if let Some(call) = &change.witness {
                assert!(breaks(call.value.as_ref().unwrap()), "{old} {new} {change:?}");
            }
        }
        match told.input.open.answer {
            FactAnswer::Proven => {
                proven += 1;
                for _ in 0..300 {
                    let value = values(&mut rng);
                    assert!(!breaks(&value), "{old} {new} {value}");
                }
            }
            FactAnswer::Refuted => refuted += 1,
            FactAnswer::Unknown => unknown += 1,
        }
        assert!(told.input.declared.answer != FactAnswer::Unknown || told.class >= Class::NeedsReview);
    }
    assert!(proven > 10 && refuted > 10 && unknown < pairs / 4, "{proven} {refuted} {unknown}");
}

/// One more default, or one less, or one more required name.
fn changed(old: &Value, rng: &mut Rng) -> Value {
    let mut new = old.clone();
    let name = ["a", "b", "c"][rng.below(3) as usize];
    match rng.below(3) {
        0 => new["properties"][name] = json!({"enum": ["x", 1], "default": "x"}),
        1 => new["required"] = json!([name]),
        _ => {
            if let Some(node) = new["properties"].get_mut(name) {
                node["default"] = json!("x");
            }
        }
    }
    new
}
