//! Laws of the diff over made pairs: reflexive, dual in direction, deterministic, and text never breaks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod oracle;

use lastcall_contract::Draft;
use lastcall_diff::{
    Backing, ChangeKind as Kind, Class, ContractDiff, DiffOptions, Direction, FactAnswer, Rng, Side,
    diff_schemas,
};
use oracle::Oracle;
use serde_json::{Map, Value, json};

const PAIRS: u64 = 250;

/// A schema of an argument list: nested objects, lists, alternatives, bounds, text.
fn schema(rng: &mut Rng, depth: u32) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    let kind = if depth == 0 { 0 } else { rng.below(7) };
    match kind {
        0 => {
            let mut properties = Map::new();
            let mut required = Vec::new();
            for name in ["a", "b", "c", "title"] {
                if rng.chance(0.6) {
                    let below = if depth < 2 { schema(rng, depth + 1) } else { json!({"type": "string"}) };
                    properties.insert(name.to_owned(), below);
                    if rng.chance(0.3) {
                        required.push(name);
                    }
                }
            }
            put("type", json!("object"));
            put("properties", Value::Object(properties));
            put("required", json!(required));
            if rng.chance(0.3) {
                put("additionalProperties", json!(rng.chance(0.3)));
            }
        }
        1 => {
            put("type", json!(["string", "null"]));
            if rng.chance(0.4) {
                put("maxLength", json!(rng.below(9)));
            }
        }
        2 => {
            put("type", json!(if rng.chance(0.5) { "integer" } else { "number" }));
            if rng.chance(0.5) {
                put("minimum", json!(rng.below(5)));
            }
        }
        3 => {
            let values: Vec<&str> = ["x", "y", "Y", "z"].into_iter().filter(|_| rng.chance(0.6)).collect();
            put("enum", if values.is_empty() { json!(["x"]) } else { json!(values) });
        }
        4 => {
            put("type", json!("array"));
            put(
                "items",
                if rng.chance(0.5) { json!({"type": "string"}) } else { json!({"type": "integer"}) },
            );
            put("uniqueItems", json!(rng.chance(0.3)));
        }
        5 => {
            put(
                "anyOf",
                json!([{"type": "string"}, {"type": if rng.chance(0.5) { "null" } else { "integer" }}]),
            );
        }
        _ => {
            put("type", json!("string"));
            if rng.chance(0.3) {
                put("default", json!("x"));
            }
        }
    }
    if rng.chance(0.4) {
        put("description", json!(["in seconds", "in minutes", "some text"][rng.below(3) as usize]));
    }
    Value::Object(out)
}

fn pairs() -> impl Iterator<Item = (Value, Value)> {
    let pairs = if std::env::var_os("LASTCALL_PROVE").is_some() { PAIRS * 40 } else { PAIRS };
    (0..pairs).map(|seed| {
        let mut rng = Rng::new(seed);
        (schema(&mut rng, 0), schema(&mut rng, 0))
    })
}

fn diff(old: &Value, new: &Value, direction: Direction) -> ContractDiff {
    diff_schemas(old, new, Draft::Draft202012, direction, &DiffOptions::default()).unwrap()
}

#[test]
fn nothing_changed_is_nothing_told() {
    for (schema, _) in pairs() {
        for direction in [Direction::Input, Direction::Output] {
            let diff = diff(&schema, &schema, direction);
            assert!(
                diff.changes.is_empty() && diff.class == Class::Compatible && diff.proven(),
                "{schema}: {diff:?}"
            );
        }
    }
}

#[test]
fn one_pair_gives_one_diff() {
    for (old, new) in pairs().take(60) {
        assert_eq!(diff(&old, &new, Direction::Input), diff(&old, &new, Direction::Input), "{old} {new}");
    }
}

/// Widening a kind from one side is narrowing it from the other.
fn dual(kind: Kind, had_old: bool) -> Kind {
    match kind {
        Kind::PropertyAdded => Kind::PropertyRemoved,
        Kind::PropertyRemoved | Kind::PropertyDropped => Kind::PropertyAdded,
        Kind::RequiredAdded if !had_old => Kind::PropertyRemoved,
        Kind::RequiredAdded => Kind::RequiredRemoved,
        Kind::RequiredRemoved => Kind::RequiredAdded,
        Kind::TypeWidened => Kind::TypeNarrowed,
        Kind::TypeNarrowed => Kind::TypeWidened,
        Kind::NullAllowed => Kind::NullRefused,
        Kind::NullRefused => Kind::NullAllowed,
        Kind::EnumAdded => Kind::EnumDropped,
        Kind::EnumDropped => Kind::EnumAdded,
        Kind::EnumValueAdded => Kind::EnumValueRemoved,
        Kind::EnumValueRemoved => Kind::EnumValueAdded,
        Kind::RangeTightened => Kind::RangeLoosened,
        Kind::RangeLoosened => Kind::RangeTightened,
        Kind::SizeTightened => Kind::SizeLoosened,
        Kind::SizeLoosened => Kind::SizeTightened,
        Kind::UniqueRequired => Kind::UniqueDropped,
        Kind::UniqueDropped => Kind::UniqueRequired,
        Kind::ObjectClosed => Kind::ObjectOpened,
        Kind::ObjectOpened => Kind::ObjectClosed,
        Kind::DefaultAdded => Kind::DefaultRemoved,
        Kind::DefaultRemoved => Kind::DefaultAdded,
        other => other,
    }
}

#[test]
fn what_callers_send_one_way_is_what_readers_get_the_other() {
    for (old, new) in pairs() {
        let (sent, read) = (diff(&old, &new, Direction::Input), diff(&new, &old, Direction::Output));
        let facts = read.output.unwrap();
        assert_eq!(sent.input, facts, "{old} {new}");
        let breaks = |d: &[lastcall_diff::Change]| d.iter().any(|c| c.class == Class::Breaking);
        assert_eq!(breaks(&sent.changes), breaks(&read.changes), "{old} {new}");
        let key = |kind: Kind, pointer: &str, old: &Option<Value>, new: &Option<Value>| {
            (kind, pointer.to_owned(), json!(old).to_string(), json!(new).to_string())
        };
        let mut a: Vec<_> = sent
            .changes
            .iter()
            .map(|c| key(dual(c.kind, c.old.is_some()), &c.pointer, &c.new, &c.old))
            .collect();
        let mut b: Vec<_> = read.changes.iter().map(|c| key(c.kind, &c.pointer, &c.old, &c.new)).collect();
        a.sort();
        b.sort();
        assert_eq!(a, b, "{old} {new}");
        assert!(read.changes.iter().all(|c| c.side == Side::Output));
    }
}

/// Two validators that share no code say the same.
fn takes(schema: &Value, value: &Value) -> bool {
    let ours = lastcall_contract::validator_for(schema, Draft::Draft202012).unwrap().is_valid(value);
    let other = Oracle::new(schema, Draft::Draft202012, true).unwrap().accepts(value);
    assert_eq!(ours, other, "{schema} {value}");
    ours
}

#[test]
fn a_class_is_backed_by_what_it_says() {
    let (mut broken, mut fine) = (0, 0);
    for (old, new) in pairs() {
        let diff = diff(&old, &new, Direction::Input);
        for change in &diff.changes {
            let call = change.witness.as_ref();
            assert_eq!(change.class == Class::Breaking, call.is_some(), "{change:?}");
            if let Some(call) = call {
                let value = call.value.as_ref().unwrap();
                assert!(takes(&old, value) && !takes(&new, value), "{old} {new} {change:?}");
            }
            assert!(change.class != Class::Compatible || change.backed_by == Backing::Proof, "{change:?}");
        }
        match diff.input.declared.answer {
            FactAnswer::Proven => assert!(diff.class < Class::NeedsReview, "{old} {new} {diff:?}"),
            FactAnswer::Refuted => assert_eq!(diff.class, Class::Breaking, "{old} {new} {diff:?}"),
            FactAnswer::Unknown => assert!(diff.class >= Class::NeedsReview, "{old} {new} {diff:?}"),
        }
        broken += u32::from(diff.class == Class::Breaking);
        fine += u32::from(diff.class <= Class::HighRisk);
    }
    assert!(broken > 20 && fine > 5, "the pairs show both: {broken} {fine}");
}

#[test]
fn text_never_breaks() {
    let texts = ["title", "description", "examples", "deprecated"];
    for (mut schema, _) in pairs() {
        let old = schema.clone();
        let mut rng = Rng::new(schema.to_string().len() as u64);
        reword(&mut schema, &texts, &mut rng);
        let diff = diff(&old, &schema, Direction::Input);
        assert!(diff.class <= Class::HighRisk && diff.proven(), "{old} {schema} {diff:?}");
        let seen = |c: &lastcall_diff::Change| {
            matches!(
                c.kind,
                Kind::TitleChanged
                    | Kind::DescriptionChanged
                    | Kind::ExamplesChanged
                    | Kind::DeprecationChanged
                    | Kind::UnitChanged
            ) && c.model_visible
        };
        assert!(diff.changes.iter().all(seen), "{diff:?}");
        assert_eq!(diff.changes.is_empty(), old == schema);
    }
}

fn reword(node: &mut Value, texts: &[&str], rng: &mut Rng) {
    let Some(map) = node.as_object_mut() else { return };
    for (key, child) in map.iter_mut() {
        match key.as_str() {
            "properties" => child.as_object_mut().unwrap().values_mut().for_each(|v| reword(v, texts, rng)),
            "items" => reword(child, texts, rng),
            _ => {}
        }
    }
    for key in texts {
        if rng.chance(0.2) {
            let value = match *key {
                "examples" => json!(["e"]),
                "deprecated" => json!(true),
                _ => json!("other words"),
            };
            map.insert((*key).to_owned(), value);
        }
    }
}

#[test]
fn listed_objects_are_declared() {
    let old = json!({"const": {"kind": "old"}});
    let diff = diff(&old, &json!({"const": {"kind": "new"}}), Direction::Input);
    assert_eq!((diff.class, diff.input.declared.answer), (Class::Breaking, FactAnswer::Refuted), "{diff:?}");
}
