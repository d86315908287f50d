//! Containment against the published suite, and as properties over random schemas. Every witness is judged by `boon`, which
//! shares no code with the prover; every proof is attacked with random values.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod oracle;
#[path = "oracle/random.rs"]
mod random;

use std::path::PathBuf;

use lastcall_contract::Draft;
use lastcall_diff::{Answer, Generator, Model, Operand, Options, Rng, contains, declared_by, is_witness};
use oracle::Oracle;
use serde_json::{Value, json};

const DRAFT: Draft = Draft::Draft202012;

fn operand(schema: &Value) -> Option<Operand> {
    Operand::with_formats(schema, DRAFT, false).ok()
}

fn open(sub: &Operand, sup: &Operand) -> Answer {
    contains(sub, sup, Model::Open, &Options::default())
}

fn ask(sub: &Value, sup: &Value) -> Answer {
    open(&operand(sub).unwrap(), &operand(sup).unwrap())
}

fn assert_proven(sub: Value, sup: Value) {
    assert_eq!(ask(&sub, &sup), Answer::Proven, "{sub} in {sup}");
}

fn assert_refuted(sub: Value, sup: Value) -> Value {
    match ask(&sub, &sup) {
        Answer::Refuted(witness) => {
            let of = |s: &Value| Oracle::new(s, DRAFT, false).unwrap();
            assert!(of(&sub).accepts(&witness.value) && !of(&sup).accepts(&witness.value), "{witness:?}");
            witness.value
        }
        other => panic!("{sub} in {sup}: {other:?}"),
    }
}

/// At least 98 of 100 contained ones proven, 99 of 100 others refuted, no answer wrong but where the suite is: there the
/// oracle has to side with the answer.
#[test]
fn the_published_suite() {
    let folder = std::env::var_os("LASTCALL_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let Ok(text) = std::fs::read(folder.join("containment_draft2020_12.json")) else {
        eprintln!("SKIPPED: no data folder; set LASTCALL_DATA to the folder that holds calls.jsonl");
        return;
    };
    let document: Value = serde_json::from_slice(&text).unwrap();
    let (mut yes, mut proven, mut no, mut refuted, mut mislabelled) = (0, 0, 0, 0, 0);
    for case in document["cases"].as_array().unwrap().iter().filter(|c| c["optional"] != json!(true)) {
        for (label, sub, sup) in [("old_subset_new", "old", "new"), ("new_subset_old", "new", "old")] {
            let Some(contained) = case["expect"][label].as_bool() else { continue };
            *(if contained { &mut yes } else { &mut no }) += 1;
            let (sub, sup) = (&case[sub], &case[sup]);
            let (Some(of_sub), Some(of_sup)) = (operand(sub), operand(sup)) else { continue };
            let oracle = |schema: &Value| Oracle::new(schema, DRAFT, false).unwrap();
            match (open(&of_sub, &of_sup), contained) {
                (Answer::Proven, true) => proven += 1,
                (Answer::Refuted(_), false) => refuted += 1,
                (Answer::Refuted(witness), true) => {
                    assert!(oracle(sub).accepts(&witness.value), "{}: {witness:?}", case["id"]);
                    assert!(!oracle(sup).accepts(&witness.value), "{}: {witness:?}", case["id"]);
                    mislabelled += 1;
                }
                (Answer::Proven, false) => {
                    assert!(oracle(sup).accepts(&sub["const"]), "{}", case["id"]);
                    mislabelled += 1;
                }
                (Answer::Unknown { .. }, _) => {}
            }
        }
    }
    println!("{proven} of {yes} proven, {refuted} of {no} refuted, {mislabelled} labels refuted");
    assert_eq!((yes, no), (2_419, 1_004), "every question was asked");
    assert!(proven * 100 >= yes * 98 && refuted * 100 >= no * 99);
    assert!(mislabelled <= 24, "new disagreements with the suite: look at each");
}

#[test]
fn random_pairs() {
    let rounds = if std::env::var_os("LASTCALL_PROVE").is_some() { 40_000 } else { 2_500 };
    let mut rng = Rng::new(20_261);
    let (mut asked, mut proven, mut refuted, mut reflexive) = (0, 0, 0, 0);
    for _ in 0..rounds {
        let depth = 1 + rng.below(3) as u32;
        let a = random::schema(&mut rng, depth);
        let b = if rng.chance(0.6) { random::mutate(&a, &mut rng) } else { random::schema(&mut rng, 2) };
        let (Some(of_a), Some(of_b)) = (operand(&a), operand(&b)) else { continue };
        let (Some(boon_a), Some(boon_b)) = (Oracle::new(&a, DRAFT, false), Oracle::new(&b, DRAFT, false))
        else {
            continue;
        };
        asked += 1;
        assert_eq!(open(&of_a, &of_a), Answer::Proven, "reflexive: {a}");
        // The same meaning with other text.
        let rewritten = json!({"allOf": [a.clone(), true], "title": "again"});
        if !a.to_string().contains("$ref")
            && let Some(rewritten) = operand(&rewritten)
        {
            reflexive += 1;
            assert_eq!(open(&of_a, &rewritten), Answer::Proven, "{a}");
            assert_eq!(open(&rewritten, &of_a), Answer::Proven, "{a}");
        }
        let answer = open(&of_a, &of_b);
        assert_eq!(answer, open(&of_a, &of_b), "deterministic: {a} {b}");
        match answer {
            Answer::Refuted(witness) => {
                refuted += 1;
                assert!(boon_a.accepts(&witness.value), "{a} must accept {}", witness.value);
                assert!(!boon_b.accepts(&witness.value), "{b} must refuse {}", witness.value);
                assert!(is_witness(&of_a, &of_b, Model::Open, &witness.value));
            }
            Answer::Proven => {
                proven += 1;
                for i in 0..60 {
                    let value = match i % 3 {
                        0 => Generator::new(&a).value(&mut rng).unwrap_or(Value::Null),
                        _ => random::value(&mut rng, 2),
                    };
                    assert!(!boon_a.accepts(&value) || boon_b.accepts(&value), "{a} in {b}: {value}");
                }
            }
            Answer::Unknown { .. } => {}
        }
        // What is proven of every value is not refuted by a declared one.
        let declared = contains(&of_a, &of_b, Model::Declared, &Options::default());
        if let Answer::Refuted(witness) = &declared {
            assert!(declared_by(&of_a, &witness.value), "{a} in {b}: {witness:?}");
            assert_ne!(open(&of_a, &of_b), Answer::Proven, "{a} in {b}");
        }
    }
    println!("{asked} pairs, {proven} proven, {refuted} refuted, {reflexive} rewritten");
    assert!(proven * 10 > asked && refuted * 10 > asked * 3, "the vocabulary meets");
    assert!((proven + refuted) * 100 >= asked * 95, "{} of {asked} unknown", asked - proven - refuted);
}

#[test]
fn what_callers_send_and_what_they_could_send() {
    let old = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    let new = json!({"type": "object", "properties": {"q": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["q"]});
    let (of_old, of_new) = (operand(&old).unwrap(), operand(&new).unwrap());
    assert_eq!(contains(&of_old, &of_new, Model::Declared, &Options::default()), Answer::Proven);
    let Answer::Refuted(witness) = open(&of_old, &of_new) else { panic!() };
    assert!(witness.value.get("limit").is_some() && witness.keyword == "type" && witness.pointer == "/limit");
    // A nested place that says nothing about members is free; the root is not.
    let free = operand(&json!({"type": "object", "properties": {"filter": {"type": "object"}}})).unwrap();
    assert!(declared_by(&free, &json!({"filter": {"anything": 1}})));
    assert!(!declared_by(&free, &json!({"other": 1})));
    assert!(!declared_by(&of_old, &json!({"q": "x", "limit": 1})));
}

#[test]
fn recorded_values_come_first_and_stay_as_they_are() {
    let old = operand(&json!({"type": "object", "properties": {"n": {"type": "integer"}}})).unwrap();
    let new =
        operand(&json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}})).unwrap();
    let recorded = [json!({"n": 3}), json!({"n": 4711})];
    let options = Options { recorded: &recorded, ..Options::default() };
    let Answer::Refuted(witness) = contains(&old, &new, Model::Declared, &options) else { panic!() };
    assert_eq!(witness.value, recorded[1]);
    assert_eq!((witness.keyword.as_str(), witness.pointer.as_str()), ("maximum", "/n"));
}

#[test]
fn what_the_library_alone_does_not_answer() {
    // Recursion at the root, on both sides, with different text.
    let tree = |more: Value| json!({"type": "object", "properties": {"left": {"$ref": "#"}, "more": more}});
    assert_proven(tree(json!({"const": 1})), tree(json!({"type": "integer"})));
    assert_refuted(tree(json!({"type": "number"})), tree(json!({"type": "integer"})));
    let list = json!({"$ref": "#/$defs/l", "$defs": {"l": {"anyOf": [{"type": "null"},
        {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/$defs/l"}}}]}}});
    let unrolled = json!({"$defs": {"l": {"anyOf": [{"type": "null"}, {"type": "object", "required": ["next"],
        "properties": {"next": {"anyOf": [{"type": "null"}, {"type": "object", "required": ["next"],
        "properties": {"next": {"$ref": "#/$defs/l"}}}]}}}]}}, "$ref": "#/$defs/l"});
    assert_proven(list.clone(), unrolled.clone());
    assert_proven(unrolled, list);
    // Never satisfied, so contained in everything.
    assert_proven(
        json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}),
        json!(false),
    );
    // Patterns as languages.
    assert_proven(json!({"type": "string", "pattern": "^[a-f0-9]{8}$"}), json!({"pattern": "^[0-9a-z]+$"}));
    assert_refuted(json!({"type": "string", "pattern": "^[a-z]+$"}), json!({"pattern": "^[a-y]+$"}));
    assert_proven(json!({"pattern": "^.{1,5}$"}), json!({"maxLength": 5}));
    // Closed objects and patterns of names.
    assert_proven(
        json!({"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": false}),
        json!({"type": "object", "additionalProperties": {"type": "number"}, "propertyNames": {"pattern": "-"}}),
    );
    // unevaluatedProperties through branches.
    let or = json!({"type": "object", "anyOf": [{"properties": {"a": true}, "required": ["a"]},
        {"properties": {"b": true}, "required": ["b"]}], "unevaluatedProperties": false});
    assert_proven(or.clone(), json!({"maxProperties": 2, "minProperties": 1}));
    assert_refuted(or, json!({"maxProperties": 1}));
    // Nullable forms.
    assert_proven(
        json!({"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 3}]}),
        json!({"type": ["string", "null"], "maxLength": 3}),
    );
    assert_proven(
        json!({"type": ["string", "null"], "maxLength": 3}),
        json!({"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 3}]}),
    );
    assert_proven(
        json!({"type": "integer", "multipleOf": 6, "minimum": 1}),
        json!({"multipleOf": 0.5, "exclusiveMinimum": 0.5}),
    );
    assert_proven(
        json!({"type": "array", "items": {"type": "boolean"}, "uniqueItems": true}),
        json!({"maxItems": 2}),
    );
}

#[test]
fn drafts_meet() {
    let of = |schema: Value, draft| Operand::new(&schema, draft).unwrap();
    let pair = |items: Value| json!({"type": "array", "items": items, "additionalItems": false});
    let old = of(pair(json!([{"type": "string"}, {"type": "integer"}])), Draft::Draft7);
    let new = of(
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false}),
        Draft::Draft202012,
    );
    assert_eq!(open(&old, &new), Answer::Proven);
    assert!(matches!(open(&new, &old), Answer::Refuted(_)));
    // Draft-04 does not take 1.0 for an integer.
    let written = of(json!({"type": "integer"}), Draft::Draft4);
    let meant = of(json!({"type": "integer"}), Draft::Draft202012);
    assert_eq!(open(&written, &meant), Answer::Proven);
    assert_ne!(open(&meant, &written), Answer::Proven);
    // Beside a $ref nothing counts up to draft-07.
    let beside = json!({"$ref": "#/definitions/s", "maxLength": 2, "definitions": {"s": {"type": "string"}}});
    let plain = of(json!({"type": "string"}), Draft::Draft7);
    assert_eq!(open(&plain, &of(beside.clone(), Draft::Draft7)), Answer::Proven);
    assert!(matches!(open(&plain, &of(beside, Draft::Draft202012)), Answer::Refuted(_)));
}

#[test]
fn hostile_schemas_end_without_a_panic() {
    let mut deep = json!({"type": "string"});
    for _ in 0..10_000 {
        let inner = serde_json::Map::from_iter([("a".to_owned(), deep)]);
        deep = Value::Object(serde_json::Map::from_iter([("properties".to_owned(), Value::Object(inner))]));
    }
    assert!(Operand::new(&deep, DRAFT).is_err());
    std::mem::forget(deep); // its own drop would recurse
    let mut nested = json!({"type": "string"});
    for i in 0..180 {
        nested = if i % 2 == 0 { json!({"allOf": [nested]}) } else { json!({"items": nested}) };
    }
    let wide: Vec<Value> = (0..20_000).map(Value::from).collect();
    let defs: serde_json::Map<String, Value> = (0..2_000)
        .map(|i| {
            (format!("d{i}"), json!({"properties": {"n": {"$ref": format!("#/$defs/d{}", (i + 1) % 2_000)}}}))
        })
        .collect();
    let branches = |n: i64| (0..n).map(|i| json!({"properties": {"k": {"const": i}}})).collect::<Vec<_>>();
    let schemas = [
        nested,
        json!({"enum": wide}),
        json!({"not": {"enum": wide}}),
        json!({"$defs": defs, "$ref": "#/$defs/d0"}),
        json!({"pattern": r"^(\w+\s?)*\1$"}),
        json!({"pattern": "^(a+)+$"}),
        json!({"pattern": "^(.{0,1000}){0,1000}$"}),
        json!({"pattern": r"^\p{L}{1,200}\P{L}*(\w|\d){3,900}$"}),
        json!({"oneOf": branches(200)}),
        json!({"anyOf": branches(300), "not": {"oneOf": branches(60)}}),
        json!({"allOf": (0..40).map(|i| json!({"anyOf": [{"required": [format!("p{i}")]}, {"required": [format!("q{i}")]}]}))
            .collect::<Vec<_>>()}),
        json!({"minItems": 4_000_000_000u64, "uniqueItems": true, "contains": {"minimum": 1}, "minContains": 9}),
        json!({"minimum": -1e308, "maximum": 1e308, "multipleOf": 1e-300}),
        json!({"minLength": 18_446_744_073_709_551_615u64}),
        json!({"patternProperties": (0..12).map(|i| (format!("^{i}"), json!({"type": "string"})))
            .collect::<serde_json::Map<_, _>>(), "minProperties": 5}),
        json!({"prefixItems": (0..300).map(|i| json!({"const": i})).collect::<Vec<_>>(), "items": false}),
        json!(false),
        json!(true),
    ];
    let operands: Vec<Operand> = schemas.iter().filter_map(|s| Operand::new(s, DRAFT).ok()).collect();
    assert!(operands.len() >= schemas.len() - 3, "most are schemas: {}", operands.len());
    for a in &operands {
        for b in &operands {
            let start = std::time::Instant::now();
            let _ = open(a, b);
            let took = start.elapsed();
            if took.as_millis() > 400 {
                println!("{took:?} {:.80} in {:.80}", a.schema().to_string(), b.schema().to_string());
            }
        }
    }
}
