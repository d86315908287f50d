//! The JSON Schema of maps, from the same lists of names that the reader knows.

use serde_json::{Map, Value, json};

use super::map::{CALL, ENVELOPE, OUTCOME};

/// The published schema of a map, for editors that check TOML by JSON Schema. JSON Schema 2020-12.
pub fn map_schema() -> Value {
    let table = |names: &[&str]| -> Value {
        let fields: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({ "$ref": "#/$defs/field" }))).collect();
        json!({ "type": "object", "properties": fields, "additionalProperties": false })
    };
    let mut call = table(&CALL);
    call["required"] = json!(["call_id", "ts", "tool_id", "arguments"]);
    let path = json!({
        "type": "string", "pattern": "^/",
        "description": "A JSON Pointer into the document, such as /tool/name."
    });
    let scalar = json!({ "type": ["string", "integer", "boolean"] });
    let conditions = json!({
        "type": "object", "minProperties": 1, "propertyNames": { "pattern": "^/" },
        "additionalProperties": { "anyOf": [
            { "$ref": "#/$defs/scalar" },
            { "type": "array", "items": { "$ref": "#/$defs/scalar" } },
            { "type": "object", "properties": { "exists": { "type": "boolean" } }, "required": ["exists"],
              "additionalProperties": false },
        ] },
        "description": "All of it must hold: a place and what stands there; * in a text stands for anything."
    });
    let one = json!({
        "type": "object",
        "properties": {
            "path": { "$ref": "#/$defs/path" },
            "const": { "description": "A text, or any JSON." },
            "join": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/field" },
                "description": "Parts of an id, percent-encoded and joined with /; all must be there." },
            "since": { "$ref": "#/$defs/path" },
            "until": { "$ref": "#/$defs/path" },
            "values": { "type": "object", "additionalProperties": { "$ref": "#/$defs/scalar" },
                "description": "Theirs to ours; * stands for anything, letter case does not count." },
            "otherwise": { "$ref": "#/$defs/scalar" },
            "format": { "type": "string",
                "description": "rfc3339, unix_s, unix_ms, unix_us, unix_ns, or a strftime pattern." },
            "text": { "const": "json", "description": "A text that holds JSON is taken for it." },
        },
        "oneOf": [
            { "required": ["path"] }, { "required": ["const"] }, { "required": ["join"] },
            { "required": ["since", "until"] },
        ],
        "additionalProperties": false
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "map",
        "description": "Where other people's records hold a tool call (TOML; `lastcall run --preset map --map FILE`).",
        "type": "object",
        "properties": {
            "format": { "const": 1 },
            "input": { "enum": ["json", "otlp-json", "otlp-proto", "cloudevents"] },
            "each": { "$ref": "#/$defs/path" },
            "native": { "$ref": "#/$defs/path" },
            "when": { "anyOf": [{ "$ref": "#/$defs/conditions" },
                { "type": "array", "items": { "$ref": "#/$defs/conditions" } }] },
            "call": call,
            "outcome": table(&OUTCOME),
            "envelope": table(&ENVELOPE),
        },
        "required": ["format", "call"],
        "additionalProperties": false,
        "$defs": {
            "path": path,
            "scalar": scalar,
            "conditions": conditions,
            "one": { "anyOf": [{ "$ref": "#/$defs/path" }, one] },
            "field": { "anyOf": [{ "$ref": "#/$defs/one" },
                { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/one" } }] },
        }
    })
}
