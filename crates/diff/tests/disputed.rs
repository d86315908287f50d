//! What correct validators read differently is never shown as a witness: numbers that doubles cannot hold, and keywords
//! with two readings. Another witness is looked for; where there is none the answer is unknown, with the reason.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod oracle;

use lastcall_contract::Draft;
use lastcall_diff::{Answer, Model, Operand, Options, contains, is_witness};
use oracle::Oracle;
use serde_json::{Value, json};

const NEW: Draft = Draft::Draft202012;

fn operand(schema: &Value, draft: Draft) -> Operand {
    Operand::with_formats(schema, draft, false).unwrap()
}

fn ask(sub: &Value, sup: &Value, draft: Draft) -> Answer {
    contains(&operand(sub, draft), &operand(sup, draft), Model::Open, &Options::default())
}

/// The reason of an unknown answer.
fn unknown(sub: &Value, sup: &Value, draft: Draft) -> String {
    match ask(sub, sup, draft) {
        Answer::Unknown { why } => why,
        other => panic!("{sub} in {sup}: {other:?}"),
    }
}

/// The witness, which the other validator confirms.
fn refuted(sub: &Value, sup: &Value, draft: Draft) -> Value {
    let Answer::Refuted(witness) = ask(sub, sup, draft) else { panic!("{sub} in {sup}") };
    let oracle = |schema: &Value| Oracle::new(schema, draft, false).unwrap();
    assert!(oracle(sub).accepts(&witness.value), "{sub} accepts {}", witness.value);
    assert!(!oracle(sup).accepts(&witness.value), "{sup} refuses {}", witness.value);
    witness.value
}

fn proven(sub: &Value, sup: &Value, draft: Draft) {
    assert_eq!(ask(sub, sup, draft), Answer::Proven, "{sub} in {sup}");
}

/// 2^53 and 2^53 + 1 are one double: no number tells these bounds apart for every validator.
#[test]
fn bounds_that_are_one_double() {
    let least = |n: u64| json!({"type": "integer", "minimum": n});
    proven(&least(9_007_199_254_740_993), &least(9_007_199_254_740_992), NEW);
    let why = unknown(&least(9_007_199_254_740_992), &least(9_007_199_254_740_993), NEW);
    assert!(why.contains("double"), "{why}");
    // A value that is offered as a witness is refused for the same reason.
    let (a, b) = (operand(&least(9_007_199_254_740_992), NEW), operand(&least(9_007_199_254_740_993), NEW));
    assert!(!is_witness(&a, &b, Model::Open, &json!(9_007_199_254_740_992u64)));
    // An upper bound, and an interval that only decimals find empty.
    let most = |n: i64| json!({"type": "integer", "maximum": n});
    proven(&most(-9_007_199_254_740_993), &most(-9_007_199_254_740_992), NEW);
    unknown(&most(-9_007_199_254_740_992), &most(-9_007_199_254_740_993), NEW);
    let empty =
        json!({"type": "number", "minimum": 9_007_199_254_740_993u64, "maximum": 9_007_199_254_740_992u64});
    unknown(&empty, &json!(false), NEW);
}

/// Between the bounds is a number that doubles hold, or far beyond them.
#[test]
fn another_witness_is_found() {
    let least = |n: u64| json!({"type": "integer", "minimum": n});
    refuted(&least(9_007_199_254_740_993), &least(9_007_199_254_740_997), NEW);
    // Only what lies beyond the double of the bound will do.
    let near = (1u64 << 60) + 1;
    let not = |n: u64| json!({"not": {"enum": [n]}});
    let sub = json!({"allOf": [least(near), not(near)]});
    let value = refuted(&sub, &least(near + 1_000), NEW);
    assert!(value.as_u64().unwrap() >= (1 << 60) + 129, "{value}");
    refuted(&json!({"maximum": near + 1_000}), &json!({"maximum": near}), NEW);
    refuted(&json!({"type": "integer"}), &json!({"maximum": near}), NEW);
    refuted(&json!({"type": "integer"}), &json!({"not": {"minimum": u64::MAX}}), NEW);
}

/// 0.3 is a multiple of 0.1 as a decimal, and none for a validator that divides doubles.
#[test]
fn multiples_of_decimals() {
    let tenth = json!({"multipleOf": 0.1});
    assert!(unknown(&json!({"const": 0.3}), &tenth, NEW).contains("multipleOf"));
    assert_eq!(refuted(&json!({"enum": [0.3, 0.35]}), &tenth, NEW), json!(0.35));
    unknown(&json!({"enum": [0.3]}), &json!({"not": tenth}), NEW);
    proven(&json!({"const": 0.4}), &tenth, NEW);
    // A proof holds under both readings: 0.3 itself is disputed.
    assert!(unknown(&json!({"multipleOf": 0.3}), &tenth, NEW).contains("multipleOf"));
    proven(&json!({"multipleOf": 1.5}), &json!({"multipleOf": 0.5}), NEW);
    proven(&json!({"type": "integer"}), &json!({"multipleOf": 0.01}), NEW);
    let value = refuted(&json!({"multipleOf": 0.1, "minimum": 0.3}), &json!({"multipleOf": 0.2}), NEW);
    assert_ne!(value, json!(0.3));
    refuted(&json!({"multipleOf": 0.01}), &json!({"multipleOf": 0.05}), NEW);
}

#[test]
fn equal_as_doubles() {
    let (a, b) = (9_007_199_254_740_993u64, 9_007_199_254_740_992u64);
    unknown(&json!({"const": a}), &json!({"const": b}), NEW);
    unknown(&json!({"const": {"id": [a]}}), &json!({"enum": [{"id": [b]}, 1]}), NEW);
    proven(&json!({"const": a}), &json!({"enum": [b, a]}), NEW);
    assert_eq!(refuted(&json!({"enum": [a, 7]}), &json!({"const": b}), NEW), json!(7));
    // A list whose items are one number for some validators.
    unknown(&json!({"const": [a, b]}), &json!({"uniqueItems": true}), NEW);
    unknown(&json!({"const": [a, b]}), &json!({"not": {"uniqueItems": true}}), NEW);
    refuted(&json!({"const": [b, b]}), &json!({"uniqueItems": true}), NEW);
    // What decides is elsewhere.
    let beside =
        |n: u64| json!({"properties": {"id": {"const": n}, "x": {"type": "integer"}}, "required": ["x"]});
    let value = refuted(&json!({"required": ["x"], "properties": {"id": {"const": a}}}), &beside(b), NEW);
    assert!(value.is_object(), "{value}");
}

/// Draft 2019-09 says of `unevaluatedItems` that `items`, `additionalItems` and in-place schemas evaluate; 2020-12 adds
/// `contains`. Some validators do the latter in both.
#[test]
fn contains_beside_unevaluated_items() {
    let old = Draft::Draft201909;
    let closed = json!({"contains": {"type": "string"}, "unevaluatedItems": {"type": "integer"}});
    // Only what both readings say.
    let why = unknown(&json!({"const": ["a", 1]}), &closed, old);
    assert!(why.contains("`contains`"), "{why}");
    unknown(&closed, &json!({"not": {"const": ["a", 1]}}), old);
    proven(&json!({"const": ["a", 1]}), &closed, NEW);
    proven(&closed, &closed, old);
    assert_eq!(refuted(&json!({"const": [null, "a"]}), &closed, old), json!([null, "a"]));
    refuted(&json!({"type": "array", "items": {"type": "integer"}}), &closed, old);
    // Under both readings every item of such a list is one of these; no list satisfies the strict one.
    proven(&closed, &json!({"items": {"type": ["string", "integer"]}}), old);
    // Behind a branch, and with items that are evaluated anyway.
    let branch = json!({"anyOf": [{"contains": {"const": "a"}}, {"minItems": 2}], "unevaluatedItems": false});
    unknown(&json!({"const": ["a"]}), &branch, old);
    refuted(&json!({"const": ["b", "c"]}), &branch, old);
    let all = json!({"items": true, "contains": {"const": 1}, "unevaluatedItems": false});
    proven(&json!({"const": [1, 2]}), &all, old);
}

/// Draft-04 calls 1.0 no integer; many of its validators do.
#[test]
fn an_integer_with_a_fraction_of_zero() {
    let (old, whole) = (Draft::Draft4, json!({"type": "integer"}));
    let ones = json!({"type": "number", "multipleOf": 1});
    assert!(unknown(&ones, &whole, old).contains("draft-04"));
    proven(&whole, &ones, old);
    proven(&json!({"enum": [1, 2]}), &whole, old);
    refuted(&json!({"type": "number"}), &whole, old);
}
