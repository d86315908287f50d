#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! What a schema must be, one row per fault, and that nothing hostile is accepted or crashes.

use insta::assert_snapshot;
use lastcall_contract::{Definition, DefinitionErrorKind as Kind, Draft, Pick, validator_for};
use serde_json::{Value, json};

fn mcp(schema: &Value) -> String {
    json!({"name": "t", "inputSchema": schema}).to_string()
}

fn refused(schema: &Value) -> (Kind, String) {
    let error =
        Definition::from_text("t.json", &mcp(schema), Pick::default()).expect_err("has to be refused");
    (error.kind, error.to_string())
}

fn accepted(schema: &Value) {
    if let Err(error) = Definition::from_text("t.json", &mcp(schema), Pick::default()) {
        panic!("{error}\n{schema}");
    }
}

#[test]
fn messages() {
    let rows = [
        json!({"type": "object", "properties": {"a/b": {"type": "objekt"}}}),
        json!({"type": "object", "properties": {"a": {"type": "string", "required": true}}}),
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(["}}}),
        json!({"type": "object", "patternProperties": {"([": {}}}),
        json!({"type": "object", "properties": {"a": {"minLength": -1}}}),
        json!({"type": "object", "required": ["a", 5]}),
        json!({"type": "object", "$schema": "https://example.com/mine"}),
        json!({"type": "object", "$schema": 7}),
        json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json#/x"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/gone"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#gone"}}}),
        json!({"type": "string"}),
        json!(true),
        json!({"type": "object", "allOf": [{"$ref": "#"}]}),
    ];
    let text: Vec<String> = rows.iter().map(|row| refused(row).1).collect();
    assert_snapshot!(text.join("\n"), @r#"
    t.json at /inputSchema/properties/a~1b/type: "objekt" is not a JSON Schema type. Types are array, boolean, integer, null, number, object, string, in lower case.
    t.json at /inputSchema/properties/a/required: `required` is a list of property names beside `properties`, not a flag inside one. Move the name into the `required` list of the enclosing object.
    t.json at /inputSchema/properties/a/pattern: "([" is not a regular expression that can be used here. Write it as ECMA-262, without delimiters.
    t.json at /inputSchema/patternProperties/([: "([" is not a regular expression that can be used here. Write it as ECMA-262, without delimiters.
    t.json at /inputSchema/properties/a/minLength: -1 is less than the minimum of 0. Correct the schema at that place.
    t.json at /inputSchema/required/1: 5 is not of type "string". Correct the schema at that place.
    t.json at /inputSchema/$schema: unknown draft `https://example.com/mine`. Known are draft-04, draft-06, draft-07, 2019-09 and 2020-12, for instance `https://json-schema.org/draft/2020-12/schema`; without `$schema` the source decides.
    t.json at /inputSchema/$schema: unknown draft `7`. Known are draft-04, draft-06, draft-07, 2019-09 and 2020-12, for instance `https://json-schema.org/draft/2020-12/schema`; without `$schema` the source decides.
    t.json at /inputSchema/properties/a/$ref: `$ref` leaves the document: `https://example.com/a.json#/x`. Copy the schema under `$defs` and refer to it as `#/$defs/NAME`; nothing is fetched.
    t.json at /inputSchema/properties/a/$ref: `$ref` points to nothing: `#/$defs/gone`. Define it under `$defs` or correct the name.
    t.json at /inputSchema/properties/a/$ref: `$ref` points to nothing: `#gone`. Define that `$anchor` or correct the name.
    t.json at /inputSchema/type: this schema cannot accept an object, and the arguments of a call are an object. Set `"type": "object"` and put the arguments under `properties`.
    t.json at /inputSchema: a schema is an object, this is a boolean. Write `{"type": "object", "properties": {…}}`.
    t.json at /inputSchema: this schema refers to itself for the same value, without end. A schema may refer to itself below `properties`, `items` and the like only.
    "#);
}

#[test]
fn references_inside_are_fine() {
    accepted(
        &json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}),
    );
    accepted(
        &json!({"type": "object", "properties": {"a": {"$ref": "#x"}}, "$defs": {"a": {"$anchor": "x"}}}),
    );
    accepted(
        &json!({"type": "object", "properties": {"a": {"$dynamicRef": "#x"}}, "$defs": {"a": {"$dynamicAnchor": "x"}}}),
    );
    accepted(
        &json!({"$id": "https://e.com/a", "type": "object", "properties": {"a": {"$ref": "https://e.com/a#/$defs/a"}}, "$defs": {"a": {}}}),
    );
    accepted(
        &json!({"$id": "https://e.com/a", "type": "object", "properties": {"a": {"$ref": "b"}}, "$defs": {"b": {"$id": "b"}}}),
    );
    accepted(
        &json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/A", "definitions": {"A": {"type": "object"}}}),
    );
    // A tree: the reference goes below `properties`.
    accepted(
        &json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}),
    );
    // Names that look like keywords are names under `properties`, and data under `const` and `enum`.
    accepted(
        &json!({"type": "object", "properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}}),
    );
    accepted(&json!({"type": "object", "properties": {"a": {"const": {"$ref": "https://example.com/x"}}}}));
    accepted(
        &json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a~1b%25"}}, "$defs": {"a/b%": {}}}),
    );
}

#[test]
fn references_that_leave_are_refused() {
    let rows = [
        json!({"type": "object", "properties": {"a": {"$ref": "other.json"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}),
        json!({"type": "object", "properties": {"a": {"$dynamicRef": "https://e.com/x#y"}}}),
        // The library knows the meta-schemas by heart; the document still does not contain them.
        json!({"type": "object", "properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "http://json-schema.org/draft-07/schema#"}}}),
        // The same through a base: `$id` moves what a relative reference means.
        json!({"$id": "https://e.com/dir/a", "type": "object", "properties": {"a": {"$ref": "b#/x"}}}),
        json!({"type": "object", "properties": {"a": {"$id": "https://e.com/in", "$ref": "out"}}}),
        // `#` inside an embedded resource is that resource, so this anchor is not there.
        json!({"type": "object", "$defs": {"x": {"$anchor": "x"}}, "properties": {"a": {"$ref": "https://e.com/#x"}}}),
        // Reached only through a pointer into a keyword that is none.
        json!({"type": "object", "x-hidden": {"$ref": "https://e.com/x"}, "properties": {"a": {"$ref": "#/x-hidden"}}}),
        json!({"type": "object", "if": {"not": {"items": {"anyOf": [{"$ref": "urn:x:y"}]}}}}),
    ];
    for row in &rows {
        assert_eq!(refused(row).0, Kind::ExternalRef, "{row}");
    }
    // An identifier that shadows a meta-schema.
    let shadow =
        json!({"type": "object", "$defs": {"m": {"$id": "https://json-schema.org/draft/2020-12/schema"}}});
    assert_eq!(refused(&shadow).0, Kind::InvalidSchema);
    let embedded =
        json!({"type": "object", "$defs": {"m": {"$id": "https://e.com/m", "$schema": "https://e.com/own"}}});
    assert_eq!(refused(&embedded).0, Kind::UnknownDraft);
}

#[test]
fn endless_and_exploding_schemas_are_refused() {
    for row in [
        json!({"type": "object", "$ref": "#"}),
        json!({"type": "object", "not": {"$ref": "#"}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
        json!({"type": "object", "$dynamicAnchor": "n", "allOf": [{"$dynamicRef": "#n"}]}),
    ] {
        assert_eq!(refused(&row).0, Kind::InvalidSchema, "{row}");
    }
    let mut defs = serde_json::Map::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        defs.insert(format!("d{n}"), json!({"allOf": [next.clone(), next]}));
    }
    defs.insert("d40".to_owned(), json!({}));
    let row = json!({"type": "object", "$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}});
    assert_eq!(refused(&row).0, Kind::TooDeep);
}

#[test]
fn long_chains_are_refused_and_allowed_ones_fit_on_a_small_stack() {
    let chain = |length: usize| {
        let mut defs: serde_json::Map<String, Value> =
            (0..length).map(|n| (format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}))).collect();
        defs.insert(format!("d{length}"), json!({"type": "string"}));
        json!({"type": "object", "$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}})
    };
    assert_eq!(refused(&chain(20_000)).0, Kind::TooDeep);
    let small = std::thread::Builder::new().stack_size(512 << 10);
    let handle = small.spawn(move || {
        let schema = chain(190);
        accepted(&schema);
        let validator = validator_for(&schema, Draft::Draft202012).unwrap();
        (validator.is_valid(&json!({"a": "x"})), validator.is_valid(&json!({"a": 1})))
    });
    assert_eq!(handle.unwrap().join().unwrap(), (true, false));
}

#[test]
fn roots() {
    for row in [
        json!({"type": "string"}),
        json!({"type": ["string", "null"]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "array"}}}),
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        json!({"enum": ["a", "b"]}),
        json!({"allOf": [{"type": "object"}, {"type": "string"}]}),
        json!(false),
        json!([]),
        json!("object"),
    ] {
        assert_eq!(refused(&row).0, Kind::NotAnObjectSchema, "{row}");
    }
    for row in [
        json!({}),
        json!({"type": ["object", "null"]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}),
        json!({"anyOf": [{"type": "object"}, {"type": "null"}]}),
        json!({"properties": {"a": {"type": "string"}}}),
    ] {
        accepted(&row);
    }
}

#[test]
fn drafts() {
    for (uri, draft) in [
        ("http://json-schema.org/draft-04/schema#", Draft::Draft4),
        ("http://json-schema.org/draft-06/schema", Draft::Draft6),
        ("https://json-schema.org/draft-07/schema#", Draft::Draft7),
        ("https://json-schema.org/draft/2019-09/schema", Draft::Draft201909),
        ("https://json-schema.org/draft/2020-12/schema", Draft::Draft202012),
    ] {
        let text = mcp(&json!({"$schema": uri, "type": "object"}));
        assert_eq!(Definition::from_text("t", &text, Pick::default()).unwrap().draft, draft);
    }
    // Input and output may differ.
    let text = json!({"name": "t", "inputSchema": {"type": "object"},
        "outputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}});
    let read = Definition::from_value(&text).unwrap();
    assert_eq!((read.draft, read.output_draft), (Draft::Draft202012, Draft::Draft7));
}

#[test]
fn formats_are_asserted_under_every_draft() {
    for draft in [Draft::Draft4, Draft::Draft6, Draft::Draft7, Draft::Draft201909, Draft::Draft202012] {
        let validator = validator_for(&json!({"format": "date"}), draft).unwrap();
        assert!(validator.is_valid(&json!("2026-02-28")), "{draft}");
        assert!(!validator.is_valid(&json!("2026-02-30")), "{draft}");
    }
}

#[test]
fn patterns_that_need_it_run_on_the_other_engine() {
    use jsonschema::json::SerdeJson;
    use lastcall_contract::{PatternEngine, validator_of};
    let engine =
        |pattern: &str| validator_of::<SerdeJson>(&json!({"pattern": pattern}), Draft::Draft202012).unwrap();
    assert_eq!(engine("^[a-z]+$").1, PatternEngine::Linear);
    let (validator, used) = engine("^(?!admin)[a-z]+$");
    assert_eq!(used, PatternEngine::Backtracking);
    assert!(validator.is_valid(&json!("user")) && !validator.is_valid(&json!("admin")));
}

/// ECMA-262 has them, the engines do not: the message names the place and what to write, and that compiles.
#[test]
fn patterns_of_ecma_262_that_do_not_compile() {
    for (pattern, instead) in [
        ("^[^]*$", r"`[\s\S]`"),
        ("^[]$", r"`[^\s\S]`"),
        (r"a\0b", r"`\x00`"),
        (r"[\b]", r"`\x08`"),
        (r"^\uD83D\uDE00$", "the character 😀 itself"),
    ] {
        let under = |pattern: &str| {
            let text = json!({"type": "string", "pattern": pattern});
            json!({"type": "object", "properties": {"a/b": {"$ref": "#/$defs/t"}}, "$defs": {"t": text}})
        };
        let (_, message) = refused(&under(pattern));
        assert!(message.contains("/inputSchema/$defs/t/pattern") && message.contains(instead), "{message}");
        let names = json!({"type": "object", "patternProperties": {pattern: {"type": "string"}}});
        let (_, message) = refused(&names);
        let key = pattern.replace('~', "~0").replace('/', "~1");
        assert!(message.contains(&format!("/inputSchema/patternProperties/{key}")), "{message}");
        assert!(message.contains(instead), "{message}");
    }
    for written in [r"^[\s\S]*$", r"^[^\s\S]$", r"a\x00b", r"[\x08]", "^😀$"] {
        let schema = json!({"type": "object", "properties": {"a": {"pattern": written}}});
        assert!(lastcall_contract::check_schema(&schema, Draft::Draft202012).is_ok(), "{written}");
        assert!(validator_for(&schema, Draft::Draft202012).is_ok(), "{written}");
    }
}
