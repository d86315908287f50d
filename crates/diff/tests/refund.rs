//! The known answer: a refund tool is renamed, its free-text reason becomes a code, a note is added.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{contract, surface};
use lastcall_diff::{
    Bump, ChangeKind as Kind, Class, DiffOptions, Handling, ToolFacts, ToolStatus, diff_contracts,
    diff_surfaces,
};
use serde_json::{Value, json};

fn pair() -> (Value, Value) {
    let tool = |name: &str, description: &str, properties: Value, required: Value| {
        json!({"type": "function", "name": name, "description": description, "strict": true, "parameters":
            {"type": "object", "properties": properties, "required": required, "additionalProperties": false}})
    };
    let text = || json!({"type": "string"});
    let codes = json!({"type": "string", "enum": ["broken", "late", "twice"]});
    (
        tool(
            "refund_order",
            "Refund an order",
            json!({"order_id": text(), "reason": text()}),
            json!(["order_id", "reason"]),
        ),
        tool(
            "request_refund",
            "Ask for the refund of an order",
            json!({"order_id": text(), "reason_code": codes, "note": text()}),
            json!(["order_id", "reason_code"]),
        ),
    )
}

#[test]
fn said_in_words_that_its_author_would_use() {
    let (old, new) = pair();
    let diff = diff_contracts(&contract(&old), &contract(&new), &DiffOptions::default()).unwrap();
    let told: Vec<&str> = diff.changes.iter().map(|c| c.sentence.as_str()).collect();
    assert_eq!(
        told,
        [
            "The tool `refund_order` is called `request_refund` now: a call by the old name finds no tool.",
            "The argument `reason` was removed, and a call that still sends it is refused; `reason_code` is probably \
             its new name (near name, both strings).",
            "A new required argument `reason_code` was added: one of `broken`, `late`, `twice`; `reason` was \
             probably its old name (near name, both strings).",
            "The schema no longer fits OpenAI's strict mode: `note` is not in `required`.",
            "The description of the tool changed.",
            "A new optional argument `note` was added: string.",
        ]
    );
    assert_eq!((diff.class, diff.bump, diff.handling), (Class::Breaking, Bump::Major, Handling::DualTrack));
    assert!(diff.model_visible && !diff.proven());
    assert!(!diff.questions.is_empty(), "the owner is asked whether the tool still does the same");
}

#[test]
fn with_the_call_that_breaks() {
    let (old, new) = pair();
    let recorded = [json!({"order_id": "O-1", "reason": "came late"})];
    let options = DiffOptions { recorded: &recorded, ..DiffOptions::default() };
    let diff = diff_contracts(&contract(&old), &contract(&new), &options).unwrap();
    for kind in [Kind::PropertyRemoved, Kind::RequiredAdded] {
        let change = diff.changes.iter().find(|c| c.kind == kind).unwrap();
        let call = change.witness.as_ref().unwrap();
        assert_eq!(call.name.as_deref(), Some("refund_order"));
        let mut keys: Vec<&String> = call.value.as_ref().unwrap().as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(keys, ["order_id", "reason"], "{kind}: a whole call of the old tool");
        assert_eq!(change.recorded_refused, Some(1), "{kind}");
        let rename = change.rename.as_ref().unwrap();
        assert_eq!((rename.from.as_str(), rename.to.as_str()), ("/reason", "/reason_code"));
    }
    assert_eq!((diff.recorded, diff.recorded_refused), (1, 1));
    assert_eq!(
        diff.input.declared.witness.as_ref().unwrap().value.as_ref(),
        recorded.first(),
        "a recorded call is tried first"
    );
}

#[test]
fn on_a_surface_it_is_one_tool_and_not_two() {
    let (old, new) = pair();
    let other = json!({"name": "list_orders", "parameters": {"type": "object", "properties": {"page": {"type": "integer"}}}});
    let diff = diff_surfaces(
        &surface(&json!([old, other])),
        &surface(&json!([new, other])),
        &DiffOptions::default(),
    );
    let told: Vec<_> = diff.tools.iter().map(|t| (t.status, t.old_names.clone(), t.class)).collect();
    assert_eq!(
        told,
        [
            (ToolStatus::Kept, vec!["list_orders".to_owned()], Class::Compatible),
            (ToolStatus::Renamed, vec!["refund_order".to_owned()], Class::Breaking),
        ]
    );
    assert_eq!(diff.class, Class::Breaking);
}

#[test]
fn funds_and_shared_tools_demand_a_major_of_what_is_only_risky() {
    let tool = |default: u32| json!({"name": "t", "parameters": {"type": "object", "properties": {"n": {"type": "integer", "default": default}}}});
    let (old, new) = (contract(&tool(1)), contract(&tool(2)));
    let bump = |facts: ToolFacts| {
        let options = DiffOptions { new: facts, ..DiffOptions::default() };
        let diff = diff_contracts(&old, &new, &options).unwrap();
        assert_eq!(diff.class, Class::HighRisk);
        (diff.bump, diff.major_because.len())
    };
    assert_eq!(bump(ToolFacts::default()), (Bump::Minor, 0));
    let consumers = vec!["sales".to_owned(), "service".to_owned()];
    assert_eq!(bump(ToolFacts { consumers, ..ToolFacts::default() }), (Bump::Major, 1));
    assert_eq!(
        bump(ToolFacts { consumers: vec!["one".to_owned()], ..ToolFacts::default() }),
        (Bump::Minor, 0)
    );
    assert_eq!(
        bump(ToolFacts { domains: vec!["payments".to_owned()], ..ToolFacts::default() }),
        (Bump::Major, 1)
    );
    assert_eq!(
        bump(ToolFacts { domains: vec!["permissions".to_owned()], ..ToolFacts::default() }),
        (Bump::Major, 1)
    );
    assert_eq!(bump(ToolFacts { historical_sessions: true, ..ToolFacts::default() }), (Bump::Major, 1));
}

#[test]
fn a_default_that_the_runtime_fills_is_a_risk_and_no_break() {
    let tool = |required: Value| {
        let properties = json!({"a": {"type": "string"}, "unit": {"type": "string", "default": "kg"}});
        json!({"name": "t", "parameters": {"type": "object", "properties": properties, "required": required}})
    };
    let (old, new) = (contract(&tool(json!(["a"]))), contract(&tool(json!(["a", "unit"]))));
    let class = |fills_defaults| {
        diff_contracts(&old, &new, &DiffOptions { fills_defaults, ..DiffOptions::default() }).unwrap().class
    };
    assert_eq!((class(false), class(true)), (Class::Breaking, Class::HighRisk));
}
