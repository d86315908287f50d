//! What is declared beside values that are listed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lastcall_contract::Draft;
use lastcall_diff::{Class, DiffOptions, Direction, FactAnswer, Operand, declared_by, diff_schemas};
use serde_json::{Value, json};

fn with(branch: &Value, more: bool) -> Value {
    let mut object = json!({"type": "object", "properties": {"x": {"type": "string"}}});
    if more {
        object["properties"]["y"] = json!({"type": "integer"});
    }
    json!({"type": "object", "properties": {"mode": {"anyOf": [object, branch]}}})
}

/// What stands among the alternatives and lists values.
fn listings() -> Vec<Value> {
    vec![
        json!({"const": "auto"}),
        json!({"const": null}),
        json!({"enum": ["auto", 1]}),
        json!({"type": "string", "enum": ["auto"]}),
        json!({"enum": [{"z": 1}]}),
        json!({"const": [{"z": 1}]}),
    ]
}

#[test]
fn a_listing_declares_nothing_of_other_values() {
    for branch in listings() {
        let diff = diff_schemas(
            &with(&branch, false),
            &with(&branch, true),
            Draft::Draft202012,
            Direction::Input,
            &DiffOptions::default(),
        )
        .unwrap();
        assert_eq!(
            (diff.class, diff.input.declared.answer),
            (Class::Compatible, FactAnswer::Proven),
            "{branch}: {diff:?}"
        );
    }
}

#[test]
fn nor_at_the_root_nor_in_a_condition() {
    let pairs = [
        json!({"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"enum": ["x"]}]}),
        json!({"type": "object", "properties": {"a": {}}, "if": {"const": {"a": 1}}, "then": {"maxProperties": 3}}),
    ];
    for old in pairs {
        let mut new = old.clone();
        new["properties"]["y"] = json!({"type": "integer"});
        let options = DiffOptions::default();
        let diff = diff_schemas(&old, &new, Draft::Draft202012, Direction::Input, &options).unwrap();
        assert!(diff.class <= Class::UsuallyCompatible, "{old}: {diff:?}");
        assert_ne!(diff.input.declared.answer, FactAnswer::Refuted, "{old}");
    }
}

#[test]
fn a_listed_value_is_declared_whole_and_only_it() {
    let schema = json!({"type": "object", "properties": {"mode": {"anyOf": [
        {"type": "object", "properties": {"x": {"type": "string"}}},
        {"enum": [{"z": 1, "deep": {"w": [2]}}]},
    ]}}});
    let operand = Operand::new(&schema, Draft::Draft202012).unwrap();
    let declared = |mode: Value| declared_by(&operand, &json!({"mode": mode}));
    assert!(declared(json!({"z": 1.0, "deep": {"w": [2]}})) && declared(json!({"x": "s"})));
    assert!(declared(json!("auto")) && declared(json!({})));
    for mode in [json!({"z": 2}), json!({"z": 1}), json!({"x": "s", "z": 1}), json!({"y": null})] {
        assert!(!declared(mode.clone()), "{mode}");
    }
    // And the prover finds it.
    let mut new = schema.clone();
    new["properties"]["mode"]["anyOf"][1] = json!({"enum": ["other"]});
    new["properties"]["mode"]["anyOf"][0]["additionalProperties"] = json!(false);
    let diff =
        diff_schemas(&schema, &new, Draft::Draft202012, Direction::Input, &DiffOptions::default()).unwrap();
    assert_eq!((diff.class, diff.input.declared.answer), (Class::Breaking, FactAnswer::Refuted), "{diff:?}");
}

#[test]
fn what_validators_read_differently_is_not_known() {
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let mut new = object.clone();
    new["dependencies"] = json!({"a": ["b"]});
    let class = |old: &Value, new: &Value, draft| {
        let diff = diff_schemas(old, new, draft, Direction::Input, &DiffOptions::default()).unwrap();
        (
            diff.class,
            diff.input.declared.answer,
            diff.input.declared.why.is_some_and(|w| w.contains("dependencies")),
        )
    };
    let modern = Draft::Draft202012;
    assert_eq!(class(&object, &new, modern), (Class::NeedsReview, FactAnswer::Unknown, true));
    assert_eq!(class(&object, &new, Draft::Draft7), (Class::Breaking, FactAnswer::Refuted, false));
    // Either reading refuses, or accepts.
    let mut both = new.clone();
    both["required"] = json!(["a"]);
    assert_eq!(class(&object, &both, modern).1, FactAnswer::Refuted);
    assert_eq!(class(&new, &object, modern).1, FactAnswer::Proven);
    let mut more = new.clone();
    more["properties"]["c"] = json!({});
    assert_eq!(class(&new, &more, modern).1, FactAnswer::Proven);
}
