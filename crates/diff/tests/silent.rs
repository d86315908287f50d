//! What is lost or means something else without a refusal is told, however it is written and however far down it is.

#![allow(clippy::unwrap_used)]

use lastcall_contract::Draft;
use lastcall_diff::{ChangeKind as Kind, Class, ContractDiff, DiffOptions, Direction, diff_schemas};
use serde_json::{Map, Value, json};

fn told(old: &Value, new: &Value, recorded: &[Value]) -> ContractDiff {
    let options = DiffOptions { recorded, ..DiffOptions::default() };
    diff_schemas(old, new, Draft::Draft202012, Direction::Input, &options).unwrap()
}

fn object(properties: Value, more: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    schema
}

/// The pair tells this kind, and is not let through.
fn tells(name: &str, kind: Kind, old: &Value, new: &Value) {
    let diff = told(old, new, &[]);
    let all: Vec<_> = diff.changes.iter().map(|c| (c.kind, c.class, &c.pointer)).collect();
    assert!(diff.changes.iter().any(|c| c.kind == kind && c.class >= Class::HighRisk), "{name}: {all:?}");
    assert!(diff.class >= Class::HighRisk, "{name}: {}", diff.class);
    assert_eq!(told(old, old, &[]).changes, [], "{name}: the old one with itself");
}

fn text() -> Value {
    json!({"type": "string"})
}

fn default(value: &str) -> Value {
    json!({"type": "string", "default": value})
}

#[test]
fn conditions_and_dependencies() {
    let both = |wrap: &dyn Fn(Value) -> Value, name: &str| {
        let (x, y) =
            (wrap(json!({"y": default("a"), "z": text()})), wrap(json!({"y": default("b"), "z": text()})));
        tells(name, Kind::DefaultChanged, &x, &y);
        tells(name, Kind::PropertyDropped, &x, &wrap(json!({"z": text()})));
    };
    let when = json!({"properties": {"k": {"const": "a"}}, "required": ["k"]});
    for key in ["then", "else"] {
        both(&|p| object(json!({"k": text()}), json!({"if": when, key: {"properties": p}})), key);
    }
    both(
        &|p| object(json!({"k": text()}), json!({"if": {"properties": p}, "then": {"maxProperties": 9}})),
        "if",
    );
    both(
        &|p| object(json!({"k": text()}), json!({"dependentSchemas": {"k": {"properties": p}}})),
        "dependentSchemas",
    );
    both(
        &|p| {
            object(
                json!({"l": {"type": "array", "contains": {"type": "object", "properties": p}}}),
                json!({}),
            )
        },
        "contains",
    );
    both(
        &|p| object(json!({"k": text()}), json!({"anyOf": [{"properties": p}, {"required": ["k"]}]})),
        "anyOf",
    );
    let defined = |p: Value| {
        object(
            json!({"k": text()}),
            json!({"anyOf": [{"$ref": "#/$defs/A"}, {"required": ["k"]}], "$defs": {"A": {"properties": p}}}),
        )
    };
    both(&defined, "anyOf of a reference");
    let then = |p: Value| {
        object(
            json!({"k": text()}),
            json!({"if": when, "then": {"$ref": "#/$defs/A"}, "$defs": {"A": {"properties": p}}}),
        )
    };
    both(&then, "then of a reference");
}

#[test]
fn an_alternative_a_condition_or_a_pattern_that_goes_as_a_whole() {
    let y = json!({"properties": {"y": text()}});
    let k = json!({"properties": {"k": {"const": "a"}}, "required": ["k"]});
    let plain = object(json!({"k": text()}), json!({}));
    tells("then", Kind::PropertyDropped, &object(json!({"k": text()}), json!({"if": k, "then": y})), &plain);
    tells(
        "dependentSchemas",
        Kind::PropertyDropped,
        &object(json!({"k": text()}), json!({"dependentSchemas": {"k": y}})),
        &plain,
    );
    let any = |list: Value| object(json!({"k": text()}), json!({"anyOf": list}));
    tells("anyOf", Kind::PropertyDropped, &any(json!([y, k, {"required": ["k"]}])), &any(json!([k, true])));
    let inner = |schema: Value| object(json!({"m": schema}), json!({}));
    let patterns = |table: Value| inner(json!({"type": "object", "patternProperties": table}));
    tells("pattern", Kind::PropertyDropped, &patterns(json!({"^x": text()})), &patterns(json!({})));
    tells(
        "pattern",
        Kind::PropertyDropped,
        &patterns(json!({"^x": text()})),
        &patterns(json!({"^x_": text()})),
    );
}

#[test]
fn what_only_moved_is_not_lost() {
    let k = json!({"properties": {"k": {"const": "a"}}, "required": ["k"]});
    let inside = object(json!({"k": text()}), json!({"if": k, "then": {"properties": {"y": text()}}}));
    let outside = object(json!({"k": text(), "y": text()}), json!({"if": k, "then": {"minProperties": 1}}));
    let patterns =
        |table: Value| object(json!({"m": {"type": "object", "patternProperties": table}}), json!({}));
    for (old, new) in [
        (inside, outside),
        (patterns(json!({"^x_": text()})), patterns(json!({"^x": text()}))),
        (
            patterns(json!({"^x_": text()})),
            object(json!({"m": {"type": "object", "additionalProperties": text()}}), json!({})),
        ),
    ] {
        let diff = told(&old, &new, &[]);
        assert!(diff.changes.iter().all(|c| c.kind != Kind::PropertyDropped), "{:?}", diff.changes);
    }
}

/// `levels` definitions, one named by the other; the last is this schema.
fn chain(levels: usize, step: &dyn Fn(String) -> Value, last: Value) -> Value {
    let mut table: Map<String, Value> =
        (0..levels).map(|n| (format!("d{n}"), step(format!("#/$defs/d{}", n + 1)))).collect();
    table.insert(format!("d{levels}"), last);
    object(json!({"a": {"$ref": "#/$defs/d0"}}), json!({"$defs": table}))
}

#[test]
fn at_the_end_of_a_long_chain() {
    let reference = |to: String| json!({"$ref": to});
    let nested = |to: String| json!({"type": "object", "properties": {"n": {"$ref": to}}});
    let both = |p: Value| json!({"type": "object", "properties": p});
    let (old, new) = (both(json!({"x": text(), "y": text()})), both(json!({"x": text()})));
    tells(
        "40 hops",
        Kind::DefaultChanged,
        &chain(40, &reference, default("a")),
        &chain(40, &reference, default("b")),
    );
    tells("40 hops", Kind::PropertyDropped, &chain(40, &reference, old), &chain(40, &reference, new));
    let stacked = |value: &str| {
        let mut schema = default(value);
        for _ in 0..40 {
            schema = json!({"allOf": [schema]});
        }
        object(json!({"a": schema}), json!({}))
    };
    tells("allOf", Kind::DefaultChanged, &stacked("a"), &stacked("b"));
    let (old, new) = (chain(150, &nested, default("a")), chain(150, &nested, default("b")));
    let diff = told(&old, &new, &[]);
    assert!(diff.changes.iter().any(|c| c.kind == Kind::CutOff), "{:?}", diff.changes);
    assert!(diff.class >= Class::NeedsReview && !diff.proven(), "{}", diff.class);
}

#[test]
fn more_changes_than_are_told() {
    let many = |default: u32| {
        let table: Map<String, Value> =
            (0..4_200).map(|n| (format!("p{n}"), json!({"description": format!("{default}")}))).collect();
        let mut table = table;
        table.insert("z".to_owned(), json!({"default": default}));
        object(table.into(), json!({}))
    };
    let diff = told(&many(1), &many(2), &[]);
    assert!(diff.class >= Class::NeedsReview && !diff.proven(), "{}", diff.class);
    assert!(diff.changes.iter().any(|c| c.kind == Kind::CutOff));
}

#[test]
fn shared_definitions_are_not_walked_without_end() {
    let levels = |last: &Value| {
        let double =
            |to: String| json!({"type": "object", "properties": {"l": {"$ref": to}, "r": {"$ref": to}}});
        chain(60, &double, last.clone())
    };
    let diff = told(&levels(&default("a")), &levels(&default("b")), &[]);
    let defaults = diff.changes.iter().filter(|c| c.kind == Kind::DefaultChanged).count();
    assert!((1..=128).contains(&defaults) && diff.class == Class::HighRisk, "{defaults} {}", diff.class);
    let same =
        told(&levels(&default("a")), &levels(&json!({"type": "string", "default": "a", "title": "t"})), &[]);
    assert_eq!(same.class, Class::UsuallyCompatible);
}

#[test]
fn recorded_calls_that_are_refused_are_a_risk() {
    let old = object(json!({"a": text()}), json!({}));
    let new = object(json!({"a": text()}), json!({"additionalProperties": false}));
    let calls = [json!({"a": "x"}), json!({"a": "x", "trace": 1}), json!({"trace": 2})];
    assert_eq!(told(&old, &new, &calls[..1]).class, Class::UsuallyCompatible);
    let diff = told(&old, &new, &calls);
    assert_eq!((diff.class, diff.recorded_refused), (Class::HighRisk, 2));
    assert!(
        diff.changes[0].sentence.contains("2 of the 3 recorded calls are refused"),
        "{}",
        diff.changes[0].sentence
    );
    let least = object(json!({"a": text()}), json!({"propertyNames": {"maxLength": 3}}));
    let diff = told(&old, &least, &calls);
    assert!(diff.class >= Class::HighRisk, "{}", diff.class);
}

#[test]
fn a_format_that_no_validator_checks_is_named() {
    let of = |format: &str| object(json!({"a": {"type": "integer", "format": format}}), json!({}));
    for (old, new, class) in [
        ("int64", "int32", Class::HighRisk),
        ("int32", "int64", Class::UsuallyCompatible),
        ("foo", "bar", Class::UsuallyCompatible),
    ] {
        let diff = told(&of(old), &of(new), &[]);
        let change = diff.changes.iter().find(|c| c.kind == Kind::FormatChanged).unwrap();
        assert_eq!((diff.class, change.class, change.model_visible), (class, class, true), "{old} to {new}");
        assert!(change.sentence.contains(old) && change.sentence.contains(new), "{}", change.sentence);
    }
}

#[test]
fn one_number_written_twice_is_no_other_default() {
    let of = |value: Value| object(json!({"a": {"type": "number", "default": value}}), json!({}));
    for (old, new) in [(json!(1), json!(1.0)), (json!([1, {"x": 0}]), json!([1.0, {"x": 0.0}]))] {
        let diff = told(&of(old), &of(new), &[]);
        assert!(diff.class == Class::Compatible, "{:?}", diff.changes);
    }
    assert_eq!(told(&of(json!(1)), &of(json!(1.5)), &[]).class, Class::HighRisk);
    assert_eq!(told(&of(json!(true)), &of(json!(1)), &[]).class, Class::HighRisk);
}

#[test]
fn many_values_of_one_list_are_one_change_each_way() {
    let of = |names: std::ops::Range<u32>| {
        let list: Vec<String> = names.map(|n| format!("v{n}")).collect();
        object(json!({"a": {"enum": list}}), json!({}))
    };
    let diff = told(&of(0..2_000), &of(1_000..3_000), &[]);
    let all: Vec<_> = diff.changes.iter().map(|c| (c.kind, c.class)).collect();
    assert_eq!(diff.changes.len(), 2, "{all:?}");
    assert_eq!(all[0], (Kind::EnumValueRemoved, Class::Breaking));
    assert!(
        diff.changes[0].sentence.contains("1000 values") && diff.changes[0].sentence.contains("994 more")
    );
    assert!(diff.changes[0].old.as_ref().unwrap().as_array().unwrap().len() <= 20);
}
