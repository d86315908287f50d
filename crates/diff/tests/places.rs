//! Changed places are told up to a limit, and the limit is told.

#![allow(clippy::unwrap_used, missing_docs)]

use lastcall_diff::{PlaceKind, SchemaDoc, changed_places};
use serde_json::{Map, Value, json};

fn with(arguments: usize) -> SchemaDoc {
    let all: Map<String, Value> =
        (0..arguments).map(|i| (format!("a{i}"), json!({"type": "string"}))).collect();
    SchemaDoc::new(json!({"type": "object", "properties": all}))
}

#[test]
fn a_cut_is_stated() {
    let whole = changed_places(&with(4_096), &with(0));
    assert_eq!((whole.places.len(), whole.cut), (4_096, false));
    assert!(whole.places.iter().all(|p| p.kind == PlaceKind::PropertyRemoved));
    let more = changed_places(&with(4_097), &with(0));
    assert_eq!((more.places.len(), more.cut), (4_096, true));
    // Many arguments that stay are no changed places.
    let same = changed_places(&with(6_000), &with(6_000));
    assert_eq!((same.places.len(), same.cut), (0, false));
}

#[test]
fn what_lies_too_deep_is_stated() {
    let nested = |levels: usize, inner: Value| {
        (0..levels).fold(inner, |below, _| json!({"type": "object", "properties": {"a": below}}))
    };
    let (old, new) = (nested(150, json!({"type": "string"})), nested(150, json!({"type": "integer"})));
    let found = changed_places(&SchemaDoc::new(old), &SchemaDoc::new(new));
    assert!(found.places.is_empty() && found.cut);
    let (old, new) = (nested(50, json!({"type": "string"})), nested(50, json!({"type": "integer"})));
    let found = changed_places(&SchemaDoc::new(old), &SchemaDoc::new(new));
    assert_eq!((found.places.len(), found.cut), (1, false));
}
