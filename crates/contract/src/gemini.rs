//! Gemini's subset of OpenAPI 3.0 as plain JSON Schema: upper-case types, `nullable`, numbers written as strings,
//! the SDK's snake-case spellings. Never touches a name of a property or a value of an `enum`.

use serde_json::{Map, Value, json};

const TYPES: [(&str, &str); 7] = [
    ("STRING", "string"),
    ("NUMBER", "number"),
    ("INTEGER", "integer"),
    ("BOOLEAN", "boolean"),
    ("ARRAY", "array"),
    ("OBJECT", "object"),
    ("NULL", "null"),
];

/// Spellings of the SDK for Python, and the two keywords that Gemini writes without `$`.
const SPELLINGS: [(&str, &str); 14] = [
    ("any_of", "anyOf"),
    ("additional_properties", "additionalProperties"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("min_properties", "minProperties"),
    ("max_properties", "maxProperties"),
    ("prefix_items", "prefixItems"),
    ("property_ordering", "propertyOrdering"),
    ("unique_items", "uniqueItems"),
    ("defs", "$defs"),
    ("ref", "$ref"),
    ("one_of", "oneOf"),
];

/// Whole numbers that the protocol carries as strings.
const COUNTS: [&str; 6] =
    ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];

/// Whether a schema is written in the subset: an upper-case type anywhere.
pub(crate) fn is_subset(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    let upper = map
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(|t| t == "TYPE_UNSPECIFIED" || TYPES.iter().any(|(theirs, _)| *theirs == t));
    let below = |key: &str| match map.get(key) {
        Some(Value::Array(items)) => items.iter().any(is_subset),
        Some(Value::Object(members)) if key == "properties" => members.values().any(is_subset),
        Some(value) => is_subset(value),
        None => false,
    };
    upper || ["properties", "items", "anyOf", "any_of"].into_iter().any(below)
}

/// The same schema as plain JSON Schema. What is not the subset's own stays as it is, so that the meta-schema judges it.
pub(crate) fn translate(schema: &Value) -> Value {
    let Some(map) = schema.as_object() else { return schema.clone() };
    let mut out = Map::new();
    for (key, value) in map {
        let key = SPELLINGS.iter().find(|(theirs, _)| theirs == key).map_or(key.as_str(), |(_, ours)| *ours);
        let value = match (key, value) {
            ("nullable", _) => continue,
            ("type", Value::String(t)) if t == "TYPE_UNSPECIFIED" => continue,
            ("type", Value::String(t)) => {
                let plain =
                    TYPES.iter().find(|(theirs, _)| theirs == t).map_or(t.as_str(), |(_, ours)| *ours);
                json!(plain)
            }
            ("properties" | "$defs", Value::Object(members)) => Value::Object(
                members.iter().map(|(name, member)| (name.clone(), translate(member))).collect(),
            ),
            ("items" | "additionalProperties", _) => translate(value),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(items)) => {
                Value::Array(items.iter().map(translate).collect())
            }
            (count, Value::String(digits)) if COUNTS.contains(&count) => {
                digits.parse::<u64>().map_or_else(|_| value.clone(), Value::from)
            }
            _ => value.clone(),
        };
        out.insert(key.to_owned(), value);
    }
    if map.get("nullable") == Some(&Value::Bool(true)) {
        allow_null(&mut out);
    }
    Value::Object(out)
}

/// `nullable: true` in JSON Schema's words.
fn allow_null(out: &mut Map<String, Value>) {
    match out.get_mut("type") {
        Some(Value::String(t)) if t != "null" => {
            let both = json!([t.clone(), "null"]);
            out.insert("type".to_owned(), both);
        }
        _ => {}
    }
    if let Some(Value::Array(values)) = out.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(Value::Array(branches)) = out.get_mut("anyOf") {
        branches.push(json!({"type": "null"}));
    }
}
