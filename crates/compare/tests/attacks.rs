//! What a hostile review found, each as the smallest pair and call; expected from comparison.md, not from the code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::time::Instant;

use lastcall_compare::{Comparison, PairConfig, PreparedPair, compare};
use lastcall_contract::{Contract, Definition};
use lastcall_event::{Preset, Record, decode};
use serde_json::{Value, json};

fn run(old: &Value, new: &Value, call: Value, config: &PairConfig) -> Comparison {
    let side = |schema: &Value, id: &str| {
        let (input, output) = match schema.get("in") {
            Some(input) => (input.clone(), schema.get("out").cloned()),
            None => (schema.clone(), None),
        };
        let mut document = json!({"name": "t", "inputSchema": input});
        if let Some(output) = output {
            document["outputSchema"] = output;
        }
        Contract::new(id, Definition::from_value(&document).expect("a definition"))
    };
    let pair = PreparedPair::new(&side(old, "t@1"), &side(new, "t@2"), config).expect("the pair prepares");
    let mut event = json!({"type": "mirrored_call", "schema_version": 1, "call_id": "c", "ts": "2026-06-01T00:00:00Z",
        "tool_id": "t", "contract_id": "t@1", "outcome": {"status": "ok", "executed": true}});
    let call = if call.get("arguments").is_some() || call.get("arguments_text").is_some() {
        call
    } else {
        json!({ "arguments": call })
    };
    for (key, value) in call.as_object().unwrap() {
        event[key] = value.clone();
    }
    if call.get("candidates").is_none() {
        event["type"] = json!("tool_call");
    }
    let text = event.to_string();
    let Record::Call(call) = decode(text.as_bytes(), Preset::Native).unwrap().record else { panic!() };
    compare(&pair, &call)
}

fn found(comparison: &Comparison) -> Vec<String> {
    comparison
        .discrepancies
        .iter()
        .map(|d| format!("{} {}{}", d.category, d.field, if d.refused { " refused" } else { "" }))
        .collect()
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn nothing_is_lost_in_silence() {
    let s = json!({"type": "string"});
    let ab = object(json!({"a": s, "b": s}));
    let a = object(json!({"a": s}));
    let with_ref = |default: &str| json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d"}}, "$defs": {"d": {"type": "string", "default": default}}});
    let all_of = |default: &str| object(json!({"a": {"allOf": [{"type": "string", "default": default}]}}));
    let list = |items: Value| object(json!({"l": items}));
    let branches = |name: &str, first: Value, second: Value| {
        object(json!({name: {"oneOf": [
            {"type": "object", "properties": {"k": {"const": "p"}, "a": first}, "required": ["k"]},
            {"type": "object", "properties": {"k": {"const": "q"}, "b": second}, "required": ["k"]}]}}))
    };
    let mut moved = branches("enum", s.clone(), s.clone());
    let alternatives = moved["properties"]["enum"]["oneOf"].as_array_mut().unwrap();
    alternatives[0]["properties"].as_object_mut().unwrap().remove("a");
    alternatives[1]["properties"]["a"] = s.clone();
    let mut deep_old = ab.clone();
    let mut deep_new = a.clone();
    let mut deep_call = json!({"b": "q"});
    for _ in 0..30 {
        deep_old = object(json!({ "n": deep_old }));
        deep_new = object(json!({ "n": deep_new }));
        deep_call = json!({ "n": deep_call });
    }
    let deep_field = format!("optional_value_lost {}/b", "/n".repeat(30));
    let draft7 = |beside: Option<Value>, target: Value| {
        let mut n = json!({"$ref": "#/definitions/d"});
        if let Some(beside) = beside {
            n["properties"] = beside;
        }
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"n": n},
            "definitions": {"d": target}})
    };
    let cases: Vec<(&str, Value, Value, Value, Vec<&str>)> = vec![
        ("a default behind $ref", with_ref("x"), with_ref("y"), json!({}), vec!["default_changed /a"]),
        ("a default in allOf", all_of("x"), all_of("y"), json!({}), vec!["default_changed /a"]),
        (
            "items that lose their schema",
            list(json!({"type": "array", "items": object(json!({"b": s}))})),
            list(json!({"type": "array"})),
            json!({"l": [{"b": "q"}]}),
            vec!["optional_value_lost /l/0/b"],
        ),
        (
            "open keys that lose their schema",
            json!({"type": "object", "additionalProperties": object(json!({"b": s}))}),
            json!({"type": "object"}),
            json!({"x": {"b": "q"}}),
            vec!["optional_value_lost /x/b"],
        ),
        (
            "a tuple in front of the items",
            list(json!({"type": "array", "items": ab})),
            list(json!({"type": "array", "prefixItems": [a], "items": ab})),
            json!({"l": [{"b": "q"}]}),
            vec!["optional_value_lost /l/0/b"],
        ),
        ("thirty levels down", deep_old, deep_new, deep_call, vec![deep_field.as_str()]),
        (
            "an argument that is named enum",
            branches("enum", s.clone(), s.clone()),
            moved,
            json!({"enum": {"k": "p", "a": "x"}}),
            vec!["optional_value_lost /enum/a"],
        ),
        (
            "unevaluatedItems",
            object(json!({"k": {"type": "array", "unevaluatedItems": ab}})),
            object(json!({"k": {"type": "array", "unevaluatedItems": a}})),
            json!({"k": [{"b": "q"}]}),
            vec!["optional_value_lost /k/0/b"],
        ),
        (
            "what stands beside a $ref in draft-07",
            draft7(None, ab.clone()),
            draft7(Some(json!({"b": s})), a.clone()),
            json!({"n": {"b": "x"}}),
            vec!["optional_value_lost /n/b"],
        ),
        (
            "a loss below a parent that is refused for its size",
            object(json!({"n": ab})),
            object(json!({"n": {"type": "object", "properties": {"a": s}, "minProperties": 3}})),
            json!({"n": {"b": "q"}}),
            vec!["range_tightened /n refused", "optional_value_lost /n/b"],
        ),
        (
            "a closed object that declares nothing",
            object(json!({"b": s})),
            json!({"type": "object", "additionalProperties": false}),
            json!({"b": "x", "z": 1}),
            vec!["optional_refused /b refused", "undeclared_refused /z refused"],
        ),
        (
            "an argument that is named dependentRequired",
            object(json!({"dependentRequired": object(json!({"b": s}))})),
            object(
                json!({"dependentRequired": {"type": "object", "properties": {"b": s}, "required": ["b"]}}),
            ),
            json!({"dependentRequired": {}}),
            vec!["required_added /dependentRequired/b refused"],
        ),
        (
            "an argument that is named *",
            object(json!({"*": {"type": "string", "description": "d"}, "b": s})),
            object(json!({"star": {"type": "string", "description": "d"}})),
            json!({"b": "x"}),
            vec!["optional_value_lost /b"],
        ),
    ];
    for (what, old, new, call, want) in cases {
        assert_eq!(found(&run(&old, &new, call, &PairConfig::default())), want, "{what}");
    }
}

#[test]
fn renames_hold_at_every_use_of_a_shared_definition() {
    let doc = |name: &str| {
        let n = json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d"}, "y": {"$ref": "#/$defs/d"}},
            "$defs": {"d": {"type": "object", "properties": {"n": n}}}})
    };
    let call = json!({"x": {"n": {"zip_code": "1"}}, "y": {"n": {"zip_code": "2"}}});
    let got = run(&doc("zip_code"), &doc("zipCode"), call, &PairConfig::default());
    assert_eq!(
        found(&got),
        ["required_renamed /x/n/zip_code refused", "required_renamed /y/n/zip_code refused"]
    );
}

#[test]
fn edits_without_meaning_are_the_same_reason() {
    let v = |schema: Value| object(json!({ "v": schema }));
    for (old, new, call) in [
        (json!({"enum": ["a", "b"]}), json!({"enum": ["b", "a"]}), json!({"v": "c"})),
        (json!({"type": ["string", "null"]}), json!({"type": ["null", "string"]}), json!({"v": 1})),
        (json!({"type": "string"}), json!({"type": ["string"]}), json!({"v": 1})),
        (json!({"minimum": 10}), json!({"minimum": 10.0}), json!({"v": 1})),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "string", "description": "other"}, {"type": "null"}]}),
            json!({"v": 1}),
        ),
    ] {
        let got = run(&v(old.clone()), &v(new.clone()), call, &PairConfig::default());
        assert_eq!(got.reason.map(|r| r.as_str()), Some("both_unenforced"), "{old} {new}: {got:?}");
    }
}

#[test]
fn an_explained_place_does_not_swallow_another_value() {
    let config: PairConfig =
        serde_json::from_value(json!({"renames": [{"from": "/zip_code", "to": "/zipCode"}],
        "map": {"severities": {"optional_renamed": "info", "default_changed": "info"}}}))
        .unwrap();
    let (old, new) =
        (object(json!({"zip_code": {"type": "string"}})), object(json!({"zipCode": {"type": "string"}})));
    let used = |arguments: Value| {
        json!({"arguments": {"zip_code": "a"}, "candidates": [{"contract_id": "t@2", "executed": true, "status": "ok",
            "suppression": "replica", "arguments": arguments}]})
    };
    let silent = run(&old, &new, used(json!({"zipCode": "a"})), &config);
    assert_eq!(found(&silent), ["optional_renamed /zip_code"]);
    assert_eq!(
        found(&run(&old, &new, used(json!({"zipCode": "OTHER"})), &config)),
        ["argument_changed /zipCode", "optional_renamed /zip_code"]
    );
    assert_eq!(
        found(&run(&old, &new, used(json!({})), &config)),
        ["argument_dropped /zipCode", "optional_renamed /zip_code"]
    );
}

#[test]
fn results_numbers_lists_and_folding() {
    let any = json!({"type": "object"});
    let result = |ours: Value, theirs: Value| {
        json!({"arguments": {}, "outcome": {"status": "ok", "executed": true, "result": ours}, "candidates": [{
            "contract_id": "t@2", "executed": true, "status": "ok", "suppression": "replica", "result": theirs}]})
    };
    let plain = PairConfig::default();
    for (ours, theirs) in [(json!({"a": 1}), json!([])), (json!([]), json!({"a": 1}))] {
        assert_eq!(found(&run(&any, &any, result(ours, theirs), &plain)), ["outcome_type_changed "]);
    }
    assert!(found(&run(&any, &any, result(json!([]), json!([{"a": 1}])), &plain)).is_empty());
    let typed =
        json!({"in": any, "out": {"type": "array", "items": object(json!({"a": {"type": "integer"}}))}});
    let got = run(&typed, &typed, result(json!([{"a": 1}]), json!([{"a": "x"}])), &plain);
    assert_eq!(found(&got), ["outcome_type_changed /a"], "one cause, one discrepancy");

    for schema in
        [json!({"not": {"const": 9007199254740992u64}}), json!({"contains": {"const": 9007199254740992u64}})]
    {
        let inside = if schema.get("not").is_some() { "9007199254740992.5" } else { "[9007199254740992.5]" };
        let call = json!({"arguments_text": format!("{{\"v\":{inside}}}")});
        let got = run(&object(json!({"v": {}})), &object(json!({ "v": schema })), call, &plain);
        assert_eq!(got.reason.map(|r| r.as_str()), Some("number_precision"), "{got:?}");
    }

    let reported = |ours: Value, theirs: Value| {
        json!({"arguments": ours, "candidates": [{"contract_id": "t@2", "executed": true, "status": "ok",
            "suppression": "replica", "arguments": theirs}]})
    };
    let both =
        object(json!({"v": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}));
    assert!(found(&run(&both, &both, reported(json!({"v": ["5"]}), json!({"v": [5]})), &plain)).is_empty());
    let text = object(json!({"v": {"allOf": [{"type": ["string", "number"]}, {"type": "string"}]}}));
    let got = run(&text, &object(json!({"v": {}})), reported(json!({"v": "5"}), json!({"v": 5})), &plain);
    assert_eq!(found(&got), ["argument_changed /v"]);

    let many: Vec<u32> = (0..600).collect();
    let turned: Vec<u32> = (0..600).rev().collect();
    let call = reported(json!({ "v": many }), json!({ "v": turned }));
    assert_eq!(found(&run(&any, &any, call.clone(), &plain)), ["argument_changed /v"]);
    let unordered: PairConfig =
        serde_json::from_value(json!({"normalization": {"unordered": ["/v"]}})).unwrap();
    assert!(found(&run(&any, &any, call, &unordered)).is_empty());
    let call = reported(json!({"v": ["\u{e9}", "a"]}), json!({"v": ["a", "e\u{301}"]}));
    assert!(found(&run(&any, &any, call, &unordered)).is_empty());

    let folding: PairConfig =
        serde_json::from_value(json!({"normalization": {"enum_case": ["/o/k", "/o/s"]}})).unwrap();
    let union = object(json!({"o": {"oneOf": [
        {"properties": {"k": {"const": "p"}, "s": {"enum": ["x"]}}, "required": ["k"]},
        {"properties": {"k": {"const": "q"}}, "required": ["k"]}]}}));
    let got = run(&object(json!({"o": {}})), &union, json!({"o": {"k": "P", "s": "X"}}), &folding);
    assert!(found(&got).is_empty(), "{got:?}");
    assert_eq!(got.rules, ["enum_case"]);
}

#[test]
fn adapters_map_nested_places() {
    let any = json!({"type": "object"});
    let config = |map: Value| serde_json::from_value::<PairConfig>(json!({ "adapter": map })).unwrap();
    let call = |ours: Value, made: Value| {
        json!({"arguments": ours, "candidates": [{"contract_id": "t@2", "input": "adapted", "executed": true,
            "status": "ok", "suppression": "replica", "arguments": made}]})
    };
    let rename = config(json!({"rename": [{"from": "/x", "to": "/n/x"}]}));
    assert_eq!(
        found(&run(&any, &any, call(json!({"x": "v"}), json!({"n": {}})), &rename)),
        ["adapter_failed /x"]
    );
    assert!(found(&run(&any, &any, call(json!({"x": "v"}), json!({"n": {"x": "v"}})), &rename)).is_empty());
    let lossy = config(json!({"drop": [{"field": "/n/y", "lossy": true}]}));
    let got = run(&any, &any, call(json!({"n": {"x": 1, "y": 2}}), json!({"n": {"x": 1}})), &lossy);
    assert_eq!(found(&got), ["adapter_lossy /n/y"]);
}

/// Bounds on work, not on time: each of these took minutes before; a generous limit tells minutes from moments.
#[test]
fn hostile_sizes_end() {
    let start = Instant::now();
    let f = json!({"anyOf": [
        {"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/f"}}}, "required": ["and"], "additionalProperties": false},
        {"type": "object", "properties": {"or": {"type": "array", "items": {"$ref": "#/$defs/f"}}, "and": {"type": "array", "items": {"$ref": "#/$defs/f"}}}, "required": ["and"], "additionalProperties": false},
        {"type": "string"}]});
    let recursive = json!({"type": "object", "properties": {"f": {"$ref": "#/$defs/f"}}, "$defs": {"f": f}});
    let mut value = json!(5);
    for _ in 0..40 {
        value = json!({"and": [value]});
    }
    let got = run(&recursive, &recursive, json!({ "f": value }), &PairConfig::default());
    assert_eq!(got.reason.map(|r| r.as_str()), Some("both_unenforced"));

    let open = object(json!({"l": {"type": "array", "items": {"type": "object"}}}));
    let closed =
        object(json!({"l": {"type": "array", "items": {"type": "object", "additionalProperties": false}}}));
    let items: Vec<Value> = (0..60_000).map(|_| json!({"b": ""})).collect();
    let got = run(&open, &closed, json!({ "l": items }), &PairConfig::default());
    assert!(got.refused() && got.discrepancies.len() <= 1000);

    let many = |prefix: &str| {
        let table: serde_json::Map<String, Value> =
            (0..4000).map(|i| (format!("{prefix}{i}"), json!({"type": "string"}))).collect();
        object(Value::Object(table))
    };
    let got = run(&many("p"), &many("q"), json!({"p7": "x"}), &PairConfig::default());
    assert_eq!(found(&got), ["optional_value_lost /p7"]);
    assert!(start.elapsed().as_secs() < 240, "{:?}", start.elapsed());
}
