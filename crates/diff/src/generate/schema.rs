//! Reading a schema document: references, what applies together, properties, required.

use serde_json::{Map, Value};

use super::values::MAX_REFS;

/// The subschema that `#/…` names in the document; anything that leaves the document is `None`.
pub(super) fn resolve<'v>(root: &'v Value, target: &str) -> Option<&'v Value> {
    let pointer = target.strip_prefix('#')?;
    root.pointer(&pointer.replace("%24", "$").replace("%25", "%"))
}

/// The schema behind `$ref`s.
pub(super) fn behind<'v>(root: &'v Value, schema: &'v Value) -> &'v Value {
    let mut at = schema;
    for _ in 0..MAX_REFS {
        match at.get("$ref").and_then(Value::as_str).and_then(|target| resolve(root, target)) {
            Some(next) => at = next,
            None => break,
        }
    }
    at
}

/// The schemas that apply together at one place: itself and the parts of `allOf`.
pub(super) fn together<'v>(root: &'v Value, schema: &'v Value, depth: usize, out: &mut Vec<&'v Value>) {
    let schema = behind(root, schema);
    out.push(schema);
    if depth < 8 && out.len() < 64 {
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            together(root, part, depth + 1, out);
        }
    }
}

/// Declared properties, with `$ref` followed, in the order of their names.
pub(super) fn properties_of(root: &Value, schema: &Value) -> Vec<(String, Value)> {
    let mut parts = Vec::new();
    together(root, schema, 0, &mut parts);
    let mut out: Vec<(String, Value)> = Vec::new();
    for part in parts {
        for (name, sub) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if !out.iter().any(|(n, _)| n == name) {
                out.push((name.clone(), behind(root, sub).clone()));
            }
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

pub(super) fn property(root: &Value, schema: &Value, name: &str) -> Option<Value> {
    let mut parts = Vec::new();
    together(root, schema, 0, &mut parts);
    parts.iter().find_map(|part| part.get("properties")?.get(name)).map(|sub| behind(root, sub).clone())
}

pub(super) fn required_of(root: &Value, schema: &Value) -> Vec<String> {
    let mut parts = Vec::new();
    together(root, schema, 0, &mut parts);
    parts.iter().flat_map(|part| strings(part.get("required"))).map(str::to_owned).collect()
}

pub(super) fn items_of(root: &Value, schema: &Value) -> Option<Value> {
    let items = behind(root, schema).get("items")?;
    items.is_object().then(|| behind(root, items).clone())
}

pub(super) fn strings(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).map(|l| l.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

pub(super) fn take_list(map: &mut Map<String, Value>, key: &str) -> Vec<Value> {
    match map.remove(key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// What applies besides, merged in: properties and required are united, the stricter bound wins where both have one,
/// anything else stays as it is.
pub(super) fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (key.as_str(), into.get_mut(&key)) {
            (_, None) => {
                into.insert(key, value);
            }
            ("properties", Some(Value::Object(mine))) => {
                if let Value::Object(more) = value {
                    for (name, sub) in more {
                        match mine.get_mut(&name) {
                            Some(Value::Object(a)) => {
                                if let Value::Object(b) = sub {
                                    merge(a, b);
                                }
                            }
                            Some(_) => {}
                            None => {
                                mine.insert(name, sub);
                            }
                        }
                    }
                }
            }
            ("required", Some(Value::Array(mine))) => {
                if let Value::Array(more) = value {
                    mine.extend(more);
                }
            }
            ("minimum" | "minLength" | "minItems" | "minProperties" | "exclusiveMinimum", Some(mine))
                if value.as_f64() > mine.as_f64() =>
            {
                *mine = value;
            }
            ("maximum" | "maxLength" | "maxItems" | "maxProperties" | "exclusiveMaximum", Some(mine))
                if value.as_f64() < mine.as_f64() =>
            {
                *mine = value;
            }
            ("enum", Some(Value::Array(mine))) => {
                if let Value::Array(other) = value {
                    mine.retain(|v| other.contains(v));
                }
            }
            _ => {}
        }
    }
}
