//! Numbers that neither 64 bits nor a double hold: two schemas that differ in them alone are never "the same".

#![allow(clippy::unwrap_used, missing_docs)]

use lastcall_contract::{Contract, Definition, Pick};
use lastcall_diff::{ChangeKind as Kind, Class, ContractDiff, DiffOptions, FactAnswer, diff_contracts};

fn contract(arguments: &str) -> Contract {
    let text = format!(
        "{{\"name\": \"t\", \"description\": \"d\", \"inputSchema\": {{\"type\": \"object\", \"properties\": {arguments}}}}}"
    );
    Contract::new("t", Definition::from_text("t.json", &text, Pick::default()).unwrap())
}

fn diff(old: &str, new: &str) -> ContractDiff {
    diff_contracts(&contract(old), &contract(new), &DiffOptions::default()).unwrap()
}

fn bound(literal: &str) -> String {
    format!("{{\"a\": {{\"type\": \"integer\", \"minimum\": {literal}}}}}")
}

#[test]
fn bounds_beyond_64_bits_are_told_apart() {
    let both = [
        ("18446744073709551617", "18446744073709551618"),
        ("18446744073709551618", "18446744073709551617"),
        ("-9223372036854775809", "-9223372036854775810"),
        ("123456789012345678901234567890", "123456789012345678901234567891"),
        ("0.1", "0.10000000000000000001"),
    ];
    for (old, new) in both {
        let diff = diff(&bound(old), &bound(new));
        assert_eq!(diff.class, Class::NeedsReview, "{old} {new}: {}", diff.sentence);
        assert_eq!(diff.input.declared.answer, FactAnswer::Unknown);
        let change = diff.changes.iter().find(|c| c.kind == Kind::KeywordChanged).unwrap();
        assert_eq!(
            (change.pointer.as_str(), change.old_location.as_deref()),
            ("/a", Some("/properties/a/minimum"))
        );
        assert!(change.sentence.contains(old) && change.sentence.contains(new), "{}", change.sentence);
    }
    // The same number in another spelling, and one that is only kept.
    for (old, new) in [("18446744073709551617", "18446744073709551617.0"), ("1e20", "100000000000000000000")]
    {
        let diff = diff(&bound(old), &bound(new));
        assert_eq!(diff.class, Class::Compatible, "{old} {new}: {}", diff.sentence);
    }
}

/// Within 64 bits the integers are read exactly: one way is proven, the other is not told apart by a double.
#[test]
fn bounds_that_are_one_double() {
    let (low, high) = (bound("9007199254740992"), bound("9007199254740993"));
    assert_eq!(diff(&high, &low).class, Class::Compatible);
    let tightened = diff(&low, &high);
    assert_eq!(tightened.class, Class::NeedsReview);
    assert!(tightened.input.declared.why.unwrap().contains("double"));
    assert!(tightened.changes.iter().any(|c| c.kind == Kind::RangeTightened));
}

#[test]
fn a_bound_that_moved_is_not_taken_for_the_same() {
    let old = "{\"a\": {\"minimum\": 18446744073709551617, \"type\": \"integer\"}}";
    let moved = "{\"a\": {\"type\": \"integer\", \"allOf\": [{\"minimum\": 18446744073709551619}]}}";
    let diff = diff(old, moved);
    assert_eq!(diff.input.declared.answer, FactAnswer::Unknown);
    assert!(diff.class >= Class::NeedsReview, "{}", diff.sentence);
}

#[test]
fn no_witness_rests_on_a_rounded_number() {
    let old = "{\"a\": {\"const\": 18446744073709551617}}";
    let new = "{\"a\": {\"const\": 5}}";
    let told = diff(old, new);
    // 2^64 is what the constant was read as; it is not the constant.
    let witnesses = told.changes.iter().filter_map(|c| c.witness.as_ref());
    assert!(
        witnesses
            .filter_map(|w| w.value.as_ref())
            .map(ToString::to_string)
            .all(|w| !w.contains("1844674407370955")),
        "{told:?}"
    );
}

#[test]
fn defaults_and_examples() {
    let with =
        |key: &str, literal: &str| format!("{{\"a\": {{\"type\": \"number\", \"{key}\": {literal}}}}}");
    let (a, b) = ("18446744073709551617", "18446744073709551618");
    let told = diff(&with("default", a), &with("default", b));
    assert_eq!((told.class, told.input.declared.answer), (Class::HighRisk, FactAnswer::Proven));
    assert!(told.changes.iter().any(|c| c.kind == Kind::DefaultChanged && c.pointer == "/a"));
}
