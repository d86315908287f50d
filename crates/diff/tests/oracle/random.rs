//! Random small schemas and values over one small vocabulary, so that pairs of them meet often; and mutations of schemas.

#![allow(clippy::unwrap_used)]

use lastcall_diff::Rng;
use serde_json::{Map, Value, json};

const NAMES: [&str; 4] = ["a", "b", "c", "dd"];
const PATTERNS: [&str; 8] = ["^a", "b$", "^[a-c]$", "^[a-z]+$", "", "^$", "d", r"^\w{1,2}$"];

fn pick<T: Clone>(rng: &mut Rng, items: &[T]) -> T {
    rng.pick(items).cloned().unwrap()
}

/// A value of the vocabulary.
pub fn value(rng: &mut Rng, depth: u32) -> Value {
    match rng.below(if depth == 0 { 8 } else { 11 }) {
        0 => Value::Null,
        1 => json!(rng.chance(0.5)),
        2 | 3 => json!(rng.below(9) as i64 - 3),
        4 => json!((rng.below(17) as f64 - 8.0) / 4.0),
        5..=7 => json!(pick(rng, &["", "a", "b", "ab", "dd", "c", "A1", "é", "abcd"])),
        8 => (0..rng.below(4)).map(|_| value(rng, depth - 1)).collect(),
        _ => Value::Object(
            (0..rng.below(4)).map(|_| (pick(rng, &NAMES).to_owned(), value(rng, depth - 1))).collect(),
        ),
    }
}

/// A schema; references lead to `#`, `#/$defs/x` and `#/$defs/y`, below a member or an item only.
pub fn schema(rng: &mut Rng, depth: u32) -> Value {
    let mut root = node(rng, depth, false);
    if root.to_string().contains("#/$defs/") {
        if let Some(map) = root.as_object_mut() {
            map.insert("$defs".into(), json!({"x": node(rng, 1, false), "y": node(rng, 1, true)}));
        } else {
            root = json!({"$defs": {"x": true, "y": true}});
        }
    }
    root
}

/// `below`: the value is a part of another, so that a reference may lead back.
fn node(rng: &mut Rng, depth: u32, below: bool) -> Value {
    if depth == 0 {
        return match rng.below(8) {
            0 => json!(rng.chance(0.7)),
            1 if below => json!({"$ref": pick(rng, &["#", "#/$defs/x", "#/$defs/y"])}),
            _ => leaf(rng),
        };
    }
    let mut map = match leaf(rng) {
        Value::Object(map) if rng.chance(0.5) => map,
        _ => Map::new(),
    };
    for _ in 0..1 + rng.below(3) {
        keyword(rng, depth - 1, below, &mut map);
    }
    Value::Object(map)
}

fn leaf(rng: &mut Rng) -> Value {
    let count = |rng: &mut Rng| rng.below(4);
    match rng.below(14) {
        0 | 1 => {
            json!({"type": pick(rng, &["string", "integer", "number", "object", "array", "null", "boolean"])})
        }
        2 => json!({"type": [pick(rng, &["string", "integer"]), pick(rng, &["object", "array", "null"])]}),
        3 => json!({"enum": (0..1 + rng.below(3)).map(|_| value(rng, 1)).collect::<Vec<_>>()}),
        4 => json!({"const": value(rng, 1)}),
        5 => json!({"minimum": rng.below(6) as i64 - 3, "maximum": rng.below(6) as i64}),
        6 => json!({"exclusiveMinimum": (rng.below(9) as f64 - 4.0) / 2.0}),
        7 => json!({"exclusiveMaximum": (rng.below(9) as f64 - 2.0) / 2.0}),
        8 => {
            json!({"multipleOf": pick(rng, &[json!(1), json!(2), json!(3), json!(0.5), json!(1.5), json!(0.25)])})
        }
        9 => json!({"minLength": count(rng), "maxLength": count(rng)}),
        10 => json!({"pattern": pick(rng, &PATTERNS)}),
        11 => json!({"minItems": count(rng), "uniqueItems": rng.chance(0.5)}),
        12 => json!({"maxProperties": count(rng), "minProperties": count(rng)}),
        _ => json!({"required": [pick(rng, &NAMES)]}),
    }
}

fn keyword(rng: &mut Rng, depth: u32, below: bool, map: &mut Map<String, Value>) {
    let list = |rng: &mut Rng, below: bool| -> Value {
        (0..1 + rng.below(3)).map(|_| node(rng, depth, below)).collect()
    };
    let table = |rng: &mut Rng, keys: &[&str], below: bool| -> Value {
        Value::Object(
            (0..1 + rng.below(3)).map(|_| (pick(rng, keys).to_owned(), node(rng, depth, below))).collect(),
        )
    };
    let (key, value) = match rng.below(24) {
        0..=2 => ("properties", table(rng, &NAMES, true)),
        3 => ("patternProperties", table(rng, &PATTERNS, true)),
        4 | 5 => ("additionalProperties", node(rng, depth.min(1), true)),
        6 => ("required", json!([pick(rng, &NAMES[..2]), pick(rng, &NAMES[2..])])),
        7 => ("propertyNames", node(rng, depth, true)),
        8 => ("dependentRequired", json!({pick(rng, &NAMES): [pick(rng, &NAMES)]})),
        9 => ("dependentSchemas", table(rng, &NAMES, below)),
        10 => ("items", node(rng, depth, true)),
        11 => ("prefixItems", list(rng, true)),
        12 => {
            map.insert("minContains".into(), json!(rng.below(3)));
            if rng.chance(0.5) {
                map.insert("maxContains".into(), json!(rng.below(3)));
            }
            ("contains", node(rng, depth, true))
        }
        13 => ("maxItems", json!(rng.below(4))),
        14 => ("allOf", list(rng, below)),
        15 | 16 => ("anyOf", list(rng, below)),
        17 => ("oneOf", list(rng, below)),
        18 => ("not", node(rng, depth, below)),
        19 => {
            map.insert("then".into(), node(rng, depth, below));
            map.insert("else".into(), node(rng, depth, below));
            ("if", node(rng, depth, below))
        }
        20 => ("unevaluatedProperties", node(rng, 0, true)),
        21 => ("unevaluatedItems", node(rng, 0, true)),
        22 => ("contains", node(rng, depth, true)),
        _ => ("type", json!(pick(rng, &["object", "array"]))),
    };
    map.insert(key.into(), value);
}

/// The schema with one part changed: something taken out, put in or replaced.
pub fn mutate(schema: &Value, rng: &mut Rng) -> Value {
    let mut out = schema.clone();
    change(&mut out, rng, 0);
    out
}

fn change(at: &mut Value, rng: &mut Rng, depth: u32) {
    match at {
        Value::Object(map) if !map.is_empty() => {
            let keys: Vec<String> = map.keys().cloned().collect();
            let key = pick(rng, &keys);
            match rng.below(if depth > 12 { 3 } else { 9 }) {
                0 => _ = map.remove(&key),
                1 => keyword(rng, 1, false, map),
                2 => _ = map.insert(key, value(rng, 1)),
                _ => change(map.get_mut(&key).unwrap(), rng, depth + 1),
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let i = rng.below(list.len() as u64) as usize;
            match rng.below(4) {
                0 => _ = list.remove(i),
                1 => list.push(value(rng, 0)),
                _ => change(&mut list[i], rng, depth + 1),
            }
        }
        Value::Number(number) => {
            *at = json!(number.as_i64().unwrap_or(1).saturating_add(rng.below(3) as i64 - 1))
        }
        Value::Bool(flag) => *at = json!(!*flag),
        _ => *at = if rng.chance(0.5) { leaf(rng) } else { value(rng, 1) },
    }
}
