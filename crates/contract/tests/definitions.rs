#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! Definitions of every provider, and the digest.

use insta::assert_snapshot;
use lastcall_contract::{
    Contract, Definition, DefinitionErrorKind as Kind, Digest, DigestBasis, Document, Draft, Pick, Source,
    validator_for,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn args() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}}, "required": ["city"]})
}

fn read(document: &Value) -> Definition {
    Definition::from_text("f.json", &document.to_string(), Pick::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(document: &Value, pick: Pick<'_>) -> (Kind, String) {
    let error = Definition::from_text("f.json", &document.to_string(), pick).expect_err("has to be refused");
    (error.kind, error.to_string())
}

#[test]
fn each_provider() {
    let rows = [
        (
            json!({"name": "forecast", "title": "Forecast", "description": "d", "inputSchema": args(), "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}, "_meta": {"a": 1}}),
            Source::Mcp,
            "",
        ),
        (
            json!({"type": "function", "function": {"name": "forecast", "description": "d", "strict": true, "parameters": args()}}),
            Source::OpenaiChat,
            "",
        ),
        (
            json!({"type": "function", "name": "forecast", "description": "d", "strict": true, "parameters": args()}),
            Source::OpenaiResponses,
            "",
        ),
        (
            json!({"name": "forecast", "description": "d", "input_schema": args(), "cache_control": {"type": "ephemeral"}}),
            Source::Anthropic,
            "",
        ),
        (
            json!({"name": "forecast", "description": "d", "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}, "days": {"type": "INTEGER", "nullable": true}}, "required": ["city"]}}),
            Source::Gemini,
            "",
        ),
        (json!({"name": "forecast", "description": "d", "parametersJsonSchema": args()}), Source::Gemini, ""),
        (json!({"name": "forecast", "description": "d", "parameters": args()}), Source::Neutral, ""),
        // The wrappings.
        (
            json!({"tools": [{"name": "forecast", "description": "d", "inputSchema": args()}]}),
            Source::Mcp,
            "/tools/0",
        ),
        (
            json!({"jsonrpc": "2.0", "id": 3, "result": {"tools": [{"name": "forecast", "description": "d", "inputSchema": args()}]}}),
            Source::Mcp,
            "/result/tools/0",
        ),
        (json!([{"name": "forecast", "description": "d", "input_schema": args()}]), Source::Anthropic, "/0"),
        (
            json!({"functionDeclarations": [{"name": "forecast", "description": "d", "parameters": args()}]}),
            Source::Gemini,
            "/functionDeclarations/0",
        ),
        (
            json!({"tools": [{"functionDeclarations": [{"name": "forecast", "description": "d", "parametersJsonSchema": args()}]}]}),
            Source::Gemini,
            "/tools/0/functionDeclarations/0",
        ),
        (
            json!({"model": "m", "tools": [{"type": "function", "name": "forecast", "description": "d", "parameters": args()}]}),
            Source::OpenaiResponses,
            "/tools/0",
        ),
    ];
    for (document, source, pointer) in rows {
        let definition = read(&document);
        assert_eq!((definition.source, definition.pointer.as_str()), (source, pointer), "{document}");
        assert_eq!(definition.name, "forecast");
        assert_eq!(definition.description.as_deref(), Some("d"));
        assert_eq!(definition.draft, Draft::Draft202012);
        assert_eq!(definition.strict, document.to_string().contains("strict").then_some(true));
        // The document is kept as it was given.
        assert_eq!(Some(&definition.document), document.pointer(pointer));
        assert_eq!(serde_json::from_str::<Value>(&definition.verbatim).unwrap(), definition.document);
        // Whatever the shape, the same calls are accepted.
        let validator = validator_for(&definition.input_schema, definition.draft).unwrap();
        assert!(validator.is_valid(&json!({"city": "Oslo", "days": null})), "{document}");
        assert!(
            !validator.is_valid(&json!({"city": 5})) && !validator.is_valid(&json!({"days": 1})),
            "{document}"
        );
    }
}

#[test]
fn a_tool_without_arguments() {
    for document in [
        json!({"type": "function", "function": {"name": "now"}}),
        json!({"type": "function", "name": "now", "parameters": null, "strict": null}),
    ] {
        let definition = read(&document);
        assert!(validator_for(&definition.input_schema, definition.draft).unwrap().is_valid(&json!({})));
    }
    let bare = json!({"name": "now", "description": "Gemini lets the parameters out"});
    assert_eq!(refused(&bare, Pick::default()).0, Kind::NotADefinition);
    let gemini = Pick { source: Some(Source::Gemini), name: None };
    assert_eq!(Definition::from_text("f", &bare.to_string(), gemini).unwrap().source, Source::Gemini);
}

#[test]
fn gemini_is_translated_and_names_are_left_alone() {
    let definition = read(&json!({"name": "t", "parameters": {"type": "OBJECT",
        "properties": {
            "nullable": {"type": "STRING", "description": "an argument of that name"},
            "type": {"type": "STRING", "enum": ["STRING", "a"], "nullable": true},
            "list": {"type": "ARRAY", "items": {"type": "NUMBER"}, "minItems": "1", "max_items": "3"},
            "either": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": true},
            "any": {"type": "TYPE_UNSPECIFIED"}},
        "required": ["type"], "propertyOrdering": ["type"]}}));
    assert_eq!(
        definition.input_schema,
        json!({"type": "object",
        "properties": {
            "nullable": {"type": "string", "description": "an argument of that name"},
            "type": {"type": ["string", "null"], "enum": ["STRING", "a", null]},
            "list": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 3},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "any": {}},
        "required": ["type"], "propertyOrdering": ["type"]})
    );
    // The other two keys are JSON Schema already and taken as they are.
    let taken = json!({"type": "object", "properties": {"a": {"type": "string", "nullable": true}}});
    assert_eq!(read(&json!({"name": "t", "parametersJsonSchema": taken})).input_schema, taken);
}

#[test]
fn refusals() {
    let none = Pick::default();
    let two = json!({"tools": [{"name": "search_a", "inputSchema": {"type": "object"}}, {"name": "search_b", "inputSchema": {"type": "string"}}]});
    let text: Vec<String> = [
        refused(&json!({"inputSchema": {"type": "object"}}), none),
        refused(&json!({"tools": [{"name": " ", "inputSchema": {"type": "object"}}]}), none),
        refused(&json!({"type": "function", "function": {"parameters": {}}}), none),
        refused(&json!({"name": 5, "input_schema": {"type": "object"}}), none),
        refused(&json!({"name": "package", "version": "1.0.0"}), none),
        refused(&json!({"hello": 1}), none),
        refused(&json!("tool"), none),
        refused(&json!({"tools": []}), none),
        refused(&json!({"type": "web_search", "name": "web"}), none),
        refused(&json!({"type": "object", "properties": {}}), none),
        refused(&json!({"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}}), none),
        refused(
            &json!({"name": "a", "inputSchema": {"type": "object"}, "parameters": {"type": "object"}}),
            none,
        ),
        refused(
            &json!({"name": "a", "inputSchema": {"type": "object"}}),
            Pick { source: Some(Source::Anthropic), name: None },
        ),
        refused(&two, none),
        refused(&two, Pick { name: Some("serch_a"), source: None }),
        refused(&two, Pick { name: Some("search_b"), source: None }),
        refused(
            &json!({"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "strin"}}),
            none,
        ),
    ]
    .into_iter()
    .map(|(_, text)| text)
    .collect();
    assert_snapshot!(text.join("\n"), @r#"
    f.json: a tool without a name. Add `"name"`: what models call it.
    f.json at /tools/0/name: an empty name. Give the tool the name that models call.
    f.json at /function: a tool without a name. Add `"name"`: what models call it.
    f.json at /name: the name is a number. Write it as a string.
    f.json: `package` has no schema of its arguments. Give an MCP tool (`inputSchema`), an OpenAI function (`parameters`), an Anthropic tool (`input_schema`), a Gemini function declaration, or a JSON Schema with a name.
    f.json: not a tool definition. Give an MCP tool (`inputSchema`), an OpenAI function (`parameters`), an Anthropic tool (`input_schema`), a Gemini function declaration, or a JSON Schema with a name.
    f.json: a tool definition is an object, this is a string. Give an MCP tool (`inputSchema`), an OpenAI function (`parameters`), an Anthropic tool (`input_schema`), a Gemini function declaration, or a JSON Schema with a name.
    f.json: no tool in this document. Give it at least one definition.
    f.json: `web` is a built-in tool of type `web_search`: it has no schema that callers fill. Give an MCP tool (`inputSchema`), an OpenAI function (`parameters`), an Anthropic tool (`input_schema`), a Gemini function declaration, or a JSON Schema with a name.
    f.json: a JSON Schema without a name. Give the tool's name beside it.
    f.json at /error: a JSON-RPC error, not a list of tools: {"code":-32601,"message":"Method not found"}. Ask the server again.
    f.json: both `inputSchema` and `parameters`. Keep the one that the model was given.
    f.json: this has the shape of mcp, not of anthropic. Leave the source out, or state the right one.
    f.json: 2 tools in this document: `search_a`, `search_b`. Say which one by its name.
    f.json: no tool `serch_a`; there is `search_a`, `search_b`. Perhaps `search_a` was meant.
    f.json at /tools/1/inputSchema/type: this schema cannot accept an object, and the arguments of a call are an object. Set `"type": "object"` and put the arguments under `properties`.
    f.json at /outputSchema/type: "strin" is not a JSON Schema type. Types are array, boolean, integer, null, number, object, string, in lower case.
    "#);
    // A broken neighbour does not stand in the way of the tool that is wanted.
    assert_eq!(
        Definition::from_text("f", &two.to_string(), Pick { name: Some("search_a"), source: None })
            .unwrap()
            .name,
        "search_a"
    );
    let results = Document::parse("f", &two.to_string()).unwrap().definitions(None);
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn texts_that_are_no_document() {
    let say =
        |text: &str| Definition::from_text("f.json", text, Pick::default()).expect_err("refused").to_string();
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let rows = [
        say(""),
        say("{\"name\": \"a\""),
        say("{\"name\": \"a\", \"name\": \"b\", \"inputSchema\": {}}"),
        say("{\"tools\": [{\"name\": \"a\", \"inputSchema\": {\"properties\": {\"x\": {}, \"x\": {}}}}]}"),
        say(&deep),
        say("{\"a\": 1e400}"),
    ];
    assert_snapshot!(rows.join("\n"), @r#"
    f.json: not JSON: EOF while parsing a value at line 1 column 0. Correct the file.
    f.json: not JSON: EOF while parsing an object at line 1 column 12. Correct the file.
    f.json at /name: this key stands twice in its object, and readers disagree about which one counts. Remove one of them.
    f.json at /tools/0/inputSchema/properties/x: this key stands twice in its object, and readers disagree about which one counts. Remove one of them.
    f.json: nested deeper than 96. Flatten the schema with `$defs` and `$ref`.
    f.json: a number beyond 1.8e308 at line 1 column 11: valid JSON, and more than a double holds. Write a smaller number, or leave the bound out.
    "#);
    let big =
        format!("{{\"name\": \"a\", \"description\": \"{}\", \"inputSchema\": {{}}}}", "x".repeat(2 << 20));
    assert_eq!(Definition::from_text("f", &big, Pick::default()).unwrap_err().kind, Kind::TooBig);
    assert_eq!(Document::parse("f", &" ".repeat(17 << 20)).unwrap_err().kind, Kind::TooBig);
}

#[test]
fn a_bare_schema_takes_the_name_that_it_is_given() {
    let schema = json!({"type": "object", "title": "Args", "properties": {"name": {"type": "string"}}});
    let definition =
        Definition::from_text("f", &schema.to_string(), Pick { name: Some("t"), source: None }).unwrap();
    assert_eq!(
        (definition.name.as_str(), definition.source, definition.title),
        ("t", Source::JsonSchema, None)
    );
    assert_eq!(definition.input_schema, schema);
}

fn contract(text: &str) -> Contract {
    Contract::new("t@1", Definition::from_text("f", text, Pick::default()).unwrap())
}

#[test]
fn integers_beyond_2_53_are_told_apart_by_the_raw_bytes() {
    let with = |n: &str| contract(&format!("{{\"name\":\"t\",\"inputSchema\":{{\"maximum\":{n}}}}}"));
    let (a, b) = (with("9007199254740993"), with("9007199254740992"));
    assert_eq!((a.basis, b.basis), (DigestBasis::RawBytes, DigestBasis::Canonical));
    assert_ne!(a.digest, b.digest);
    for n in ["-9007199254740993", "18446744073709551615", "123456789012345678901234567890"] {
        assert_eq!(with(n).basis, DigestBasis::RawBytes, "{n}");
    }
    assert_ne!(with("123456789012345678901234567890").digest, with("123456789012345678901234567891").digest);
    // The canonical basis does not see how a number is written.
    assert_eq!(with("1.0").digest, with("1").digest);
}

#[test]
fn the_digest_is_the_sha_256_of_rfc_8785() {
    // Computed by hand: keys sorted, no whitespace; `printf … | sha256sum`.
    let found = contract("{ \"name\": \"t\", \"inputSchema\": {\"type\": \"object\"} }").digest;
    assert_eq!(found, Digest::of(b"{\"inputSchema\":{\"type\":\"object\"},\"name\":\"t\"}"));
    let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(Digest::of(b"").as_str(), empty);
    assert!(serde_json::from_str::<Digest>("\"sha256:short\"").is_err());
    assert_eq!(serde_json::to_string(&Digest::parse(empty).unwrap()).unwrap(), format!("\"{empty}\""));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        (-1e6f64..1e6).prop_map(Value::from),
        "[a-zé\u{1f600}\"\\\\]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z$]{1,4}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Writes a value with members in the reverse order and whitespace everywhere.
fn scrambled(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[ {} ]", items.iter().map(scrambled).collect::<Vec<_>>().join(" ,\n"))
        }
        Value::Object(map) => {
            let members: Vec<String> = map
                .iter()
                .rev()
                .map(|(k, v)| format!("{} :\t{}", Value::from(k.as_str()), scrambled(v)))
                .collect();
            format!("{{\n{} }}", members.join(" , "))
        }
        other => other.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_digest_sees_content_only(extra in value()) {
        let document = json!({"name": "t", "inputSchema": {"type": "object"}, "_meta": extra});
        let (plain, odd) = (contract(&document.to_string()), contract(&scrambled(&document)));
        prop_assert_eq!(plain.digest, odd.digest);
    }

    #[test]
    fn the_digest_sees_all_content(a in value(), b in value()) {
        let of = |extra: &Value| contract(&json!({"name": "t", "inputSchema": {"type": "object"}, "_meta": extra}).to_string()).digest;
        // 1 and 1.0 are one number; serde_json tells them apart.
        let number = |v: &Value| serde_json::from_str::<Value>(&v.to_string().replace(".0", "")).unwrap();
        prop_assert_eq!(of(&a) == of(&b), number(&a) == number(&b));
    }

    #[test]
    fn reading_is_total(document in value(), text in "(?s).{0,80}") {
        for text in [document.to_string(), text, json!({"name": "t", "inputSchema": document, "type": "function"}).to_string(), json!({"name": "t", "parameters": {"type": "OBJECT", "properties": document}}).to_string()] {
            if let Ok(read) = Document::parse("f", &text) {
                for source in [None, Some(Source::Gemini), Some(Source::JsonSchema)] {
                    let _ = read.definitions(source);
                }
            }
        }
    }
}

/// The pointers lead from the document to the schemas that were read.
#[test]
fn schemas_stand_where_the_pointers_say() {
    for document in [
        json!({"name": "f", "inputSchema": args(), "outputSchema": {"type": "object"}}),
        json!({"type": "function", "function": {"name": "f", "parameters": args()}}),
        json!({"type": "function", "name": "f", "parameters": args()}),
        json!({"name": "f", "input_schema": args()}),
        json!({"name": "f", "parametersJsonSchema": args(), "responseJsonSchema": {"type": "string"}}),
    ] {
        let d = read(&document);
        assert_eq!(d.document.pointer(&d.input_pointer()), Some(&d.input_schema), "{document}");
        let output = d.output_pointer().and_then(|at| d.document.pointer(&at));
        assert_eq!(output, d.output_schema.as_ref(), "{document}");
    }
    let bare =
        Definition::from_text("f", &args().to_string(), Pick { name: Some("f"), source: None }).unwrap();
    assert_eq!(bare.input_pointer(), "");
}
