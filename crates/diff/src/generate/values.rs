//! Values for a schema. Never checked here: see the caller.

use std::cell::Cell;

use serde_json::{Map, Number, Value};

use super::Rng;
use super::schema::{merge, resolve, strings, take_list};
use super::text::{format_text, pattern_text, readable, word};

/// Nesting up to which optional values are built.
pub(super) const MAX_DEPTH: usize = 12;
/// `$ref`s that are followed at one place.
pub(super) const MAX_REFS: usize = 32;
/// Texts of many kinds of characters.
const GUESSES: [&str; 6] = ["Passw0rd!x", "abc123", "A1b2C3d4", "a", "2026-06-01", "x.y"];
/// Schemas that one value may visit.
const BUDGET: u32 = 2_000;

/// Makes values for one schema document.
#[derive(Clone, Debug)]
pub struct Generator<'a> {
    root: &'a Value,
    /// Probability with which an optional property is carried.
    optional: f64,
    /// Schemas that may still be visited: what bounds the work on a hostile document.
    budget: Cell<u32>,
    visited: Cell<u64>,
}

impl<'a> Generator<'a> {
    /// For this document; `$ref` is resolved in it.
    pub fn new(root: &'a Value) -> Self {
        Self { root, optional: 0.5, budget: Cell::new(BUDGET), visited: Cell::new(0) }
    }

    /// The same, with another probability for optional properties.
    pub fn with_optional(self, optional: f64) -> Self {
        Self { optional, ..self }
    }

    /// Schemas that were looked at so far, each counted with the members that it lists.
    pub fn visited(&self) -> u64 {
        self.visited.get()
    }

    /// A value for the document's own schema, unchecked. `None`: this generator cannot build one.
    pub fn value(&self, rng: &mut Rng) -> Option<Value> {
        self.at(self.root, "", rng, 0)
    }

    /// A value for a subschema of the document. `name` is the property's name, used to make it readable.
    pub fn at(&self, schema: &Value, name: &str, rng: &mut Rng, depth: usize) -> Option<Value> {
        if depth > 2 * MAX_DEPTH {
            return None; // an argument that requires itself
        }
        let flat = match schema {
            Value::Bool(true) => return Some(Value::String(word(rng))),
            Value::Object(_) => self.flatten(schema, rng, 0)?,
            _ => return None,
        };
        if let Some(value) = flat.get("const") {
            return Some(value.clone());
        }
        if let Some(values) = flat.get("enum").and_then(Value::as_array) {
            return rng.pick(values).cloned();
        }
        let kind = self.kind(&flat, rng);
        match kind.as_str() {
            "object" => self.object(&flat, rng, depth),
            "array" => self.array(&flat, name, rng, depth),
            "string" => self.string(&flat, name, rng),
            "integer" => number(&flat, rng, true),
            "number" => number(&flat, rng, false),
            "boolean" => Some(Value::Bool(rng.chance(0.5))),
            "null" => Some(Value::Null),
            _ => None,
        }
    }

    /// One type of those that are allowed; `null` seldom, where there is another.
    fn kind(&self, flat: &Map<String, Value>, rng: &mut Rng) -> String {
        let of_type = |t: &Value| t.as_str().map(str::to_ascii_lowercase);
        match flat.get("type") {
            Some(Value::Array(list)) => {
                let mut kinds: Vec<String> = list.iter().filter_map(of_type).collect();
                if kinds.len() > 1 && !rng.chance(0.1) {
                    kinds.retain(|k| k != "null");
                }
                rng.pick(&kinds).cloned().unwrap_or_default()
            }
            Some(one) => of_type(one).unwrap_or_default(),
            None => {
                let has = |keys: &[&str]| keys.iter().any(|k| flat.contains_key(*k));
                if has(&[
                    "properties",
                    "required",
                    "additionalProperties",
                    "patternProperties",
                    "minProperties",
                ]) {
                    "object"
                } else if has(&["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]) {
                    "array"
                } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
                    "number"
                } else {
                    "string"
                }
                .to_owned()
            }
        }
    }

    /// The schema with `$ref` followed, `allOf` merged and one branch of `anyOf` and `oneOf` taken.
    fn flatten(&self, schema: &Value, rng: &mut Rng, depth: usize) -> Option<Map<String, Value>> {
        self.budget.set(self.budget.get().checked_sub(1)?);
        let members = schema.get("properties").and_then(Value::as_object).map_or(0, Map::len);
        self.visited.set(self.visited.get() + 1 + members as u64);
        if depth > MAX_REFS {
            return None;
        }
        let mut flat = match schema {
            Value::Object(map) => map.clone(),
            Value::Bool(true) => return Some(Map::new()),
            _ => return None,
        };
        if let Some(Value::String(target)) = flat.remove("$ref") {
            let found = resolve(self.root, &target)?;
            let base = self.flatten(found, rng, depth + 1)?;
            merge(&mut flat, base);
        }
        for part in take_list(&mut flat, "allOf") {
            let part = self.flatten(&part, rng, depth + 1)?;
            merge(&mut flat, part);
        }
        for key in ["anyOf", "oneOf"] {
            let branches = take_list(&mut flat, key);
            if !branches.is_empty() {
                let mut order: Vec<&Value> = branches.iter().collect();
                rng.shuffle(&mut order);
                if let [first, second, ..] = order.as_mut_slice()
                    && first.get("type").and_then(Value::as_str) == Some("null")
                    && !rng.chance(0.1)
                {
                    std::mem::swap(first, second);
                }
                let branch = order.into_iter().find_map(|b| self.flatten(b, rng, depth + 1))?;
                merge(&mut flat, branch);
            }
        }
        Some(flat)
    }

    fn object(&self, flat: &Map<String, Value>, rng: &mut Rng, depth: usize) -> Option<Value> {
        let mut out = Map::new();
        let empty = Map::new();
        let properties = flat.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required: Vec<&str> = strings(flat.get("required"));
        for (name, schema) in properties {
            let wanted = required.contains(&name.as_str());
            if wanted || (depth < MAX_DEPTH && rng.chance(self.optional)) {
                match self.at(schema, name, rng, depth + 1) {
                    Some(value) => {
                        out.insert(name.clone(), value);
                    }
                    None if wanted => return None,
                    None => {}
                }
            }
        }
        let additional = flat.get("additionalProperties");
        for name in required {
            if !out.contains_key(name) {
                let value = match additional {
                    Some(Value::Bool(false)) => return None,
                    Some(schema @ Value::Object(_)) => self.at(schema, name, rng, depth + 1)?,
                    _ => Value::String(word(rng)),
                };
                out.insert(name.to_owned(), value);
            }
        }
        let least = flat.get("minProperties").and_then(Value::as_u64).unwrap_or(0) as usize;
        for (name, schema) in properties {
            if out.len() >= least {
                break;
            }
            if !out.contains_key(name)
                && let Some(value) = self.at(schema, name, rng, depth + 1)
            {
                out.insert(name.clone(), value);
            }
        }
        let mut more = 0;
        while out.len() < least.min(64) && more < 128 {
            let Some((name, schema)) = self.open_key(flat, more, rng, depth) else { break };
            more += 1;
            let value = match schema {
                Some(schema @ Value::Object(_)) => self.at(schema, "", rng, depth + 1)?,
                _ => Value::String(word(rng)),
            };
            out.entry(name).or_insert(value);
        }
        if let Some(most) = flat.get("maxProperties").and_then(Value::as_u64) {
            let required = strings(flat.get("required"));
            let spare: Vec<String> =
                out.keys().filter(|k| !required.contains(&k.as_str())).cloned().collect();
            for name in spare {
                if out.len() as u64 > most {
                    out.remove(&name);
                }
            }
        }
        Some(Value::Object(out))
    }

    /// The name of a member that no property declares, and the schema of its value.
    fn open_key<'v>(
        &self,
        flat: &'v Map<String, Value>,
        n: usize,
        rng: &mut Rng,
        depth: usize,
    ) -> Option<(String, Option<&'v Value>)> {
        let additional = flat.get("additionalProperties");
        if additional == Some(&Value::Bool(false)) {
            let patterns: Vec<(&String, &Value)> =
                flat.get("patternProperties")?.as_object()?.iter().collect();
            let (pattern, schema) = rng.pick(&patterns).copied()?;
            return Some((pattern_text(pattern, rng)?, Some(schema)));
        }
        let name = match flat.get("propertyNames").filter(|names| names.is_object()) {
            Some(names) => {
                let text = serde_json::json!({"allOf": [{"type": "string"}, names]});
                self.at(&text, "", rng, depth + 1)?.as_str()?.to_owned()
            }
            None => format!("key_{n}"),
        };
        Some((name, additional))
    }

    fn array(&self, flat: &Map<String, Value>, name: &str, rng: &mut Rng, depth: usize) -> Option<Value> {
        let least = flat.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(256);
        let most =
            flat.get("maxItems").and_then(Value::as_u64).unwrap_or(least + 3).max(least).min(least + 3);
        let deep = depth >= MAX_DEPTH;
        let mut length = if deep { least } else { least + rng.below(most - least + 1) };
        let mut prefix: Vec<&Value> = Vec::new();
        let mut items = flat.get("items");
        if let Some(list) = flat.get("prefixItems").and_then(Value::as_array) {
            prefix = list.iter().collect();
        } else if let Some(Value::Array(list)) = items {
            prefix = list.iter().collect();
            items = flat.get("additionalItems");
        }
        if !deep {
            length = length.max((prefix.len() as u64).min(most));
        }
        if length as usize > prefix.len() && items == Some(&Value::Bool(false)) {
            length = prefix.len() as u64;
        }
        let unique = flat.get("uniqueItems").and_then(Value::as_bool).unwrap_or(false);
        let anything = Value::Bool(true);
        let mut out: Vec<Value> = Vec::new();
        for i in 0..length as usize {
            let schema = prefix.get(i).copied().or(items).unwrap_or(&anything);
            for _ in 0..12 {
                let value = self.at(schema, name, rng, depth + 1)?;
                if !unique || !out.contains(&value) {
                    out.push(value);
                    break;
                }
            }
        }
        (out.len() as u64 >= least).then_some(Value::Array(out))
    }

    fn string(&self, flat: &Map<String, Value>, name: &str, rng: &mut Rng) -> Option<Value> {
        let least = flat.get("minLength").and_then(Value::as_u64).unwrap_or(0) as usize;
        let most = flat.get("maxLength").and_then(Value::as_u64).map(|n| n as usize);
        if least > 100_000 || most.is_some_and(|m| m < least) {
            return None;
        }
        let mut known: Vec<&Value> =
            flat.get("examples").and_then(Value::as_array).map(|l| l.iter().collect()).unwrap_or_default();
        known.extend(flat.get("example"));
        known.retain(|v| v.is_string());
        if let Some(pattern) = flat.get("pattern").and_then(Value::as_str) {
            for _ in 0..20 {
                if let Some(text) = pattern_text(pattern, rng)
                    && text.chars().count() >= least
                    && most.is_none_or(|m| text.chars().count() <= m)
                {
                    return Some(Value::String(text));
                }
            }
            let lengths = least..=most.unwrap_or(least + 24).min(least + 24);
            if let Some(text) = lengths.into_iter().find_map(|n| crate::synth::of_length(pattern, n, rng)) {
                return Some(Value::String(text));
            }
            known.extend(flat.get("default").filter(|v| v.is_string()));
            // an expression that is not understood: texts that often pass one
            let mut guess = || rng.pick(&GUESSES).map(|text| Value::from(*text));
            return if known.is_empty() { guess() } else { rng.pick(&known).map(|v| (*v).clone()) };
        }
        if let Some(format) = flat.get("format").and_then(Value::as_str)
            && let Some(text) = format_text(format, rng)
        {
            return Some(Value::String(text));
        }
        if !known.is_empty() && rng.chance(0.5) {
            return rng.pick(&known).map(|v| (*v).clone());
        }
        let mut text = readable(name, rng);
        while text.chars().count() < least {
            text.push(' ');
            text.push_str(&word(rng));
        }
        if let Some(most) = most {
            text = text.chars().take(most).collect();
            // A cut may leave a blank at the end; white space is folded by the comparison, so replace it.
            if text.ends_with(' ') {
                text.pop();
                text.push('x');
            }
        }
        Some(Value::String(text))
    }
}

fn number(flat: &Map<String, Value>, rng: &mut Rng, whole: bool) -> Option<Value> {
    let get = |key: &str| flat.get(key).and_then(Value::as_f64);
    // Draft-04 writes exclusiveMinimum: true beside minimum; as_f64 of a bool is None, and the flag shifts the bound.
    let flag = |key: &str| flat.get(key).and_then(Value::as_bool).unwrap_or(false);
    let mut low = get("minimum").map(|m| if flag("exclusiveMinimum") { m + 1.0 } else { m });
    let mut high = get("maximum").map(|m| if flag("exclusiveMaximum") { m - 1.0 } else { m });
    if let Some(above) = get("exclusiveMinimum") {
        low = Some(low.map_or(above + 1.0, |l| l.max(above + 1.0)));
    }
    if let Some(below) = get("exclusiveMaximum") {
        high = Some(high.map_or(below - 1.0, |h| h.min(below - 1.0)));
    }
    let factor = get("multipleOf").filter(|f| *f > 0.0);
    let (low, high) = match (low, high) {
        (Some(l), Some(h)) => (l, h),
        (Some(l), None) => (l, l + 1000.0),
        (None, Some(h)) => (h - 1000.0, h),
        (None, None) => (1.0, 1000.0),
    };
    if let Some(factor) = factor {
        let first = (low / factor).ceil();
        let last = (high / factor).floor();
        if last < first {
            return None;
        }
        let steps = (last - first).min(1_000_000.0) as u64;
        return exact((first + rng.below(steps + 1) as f64) * factor);
    }
    let (first, last) = (low.ceil(), high.floor());
    if first <= last {
        let steps = (last - first).min(1_000_000.0) as u64;
        let base = first + rng.below(steps + 1) as f64;
        if !whole && rng.chance(0.3) {
            let cents = base + 0.25 * rng.below(4) as f64;
            if cents <= high {
                return exact(cents);
            }
        }
        return exact(base);
    }
    // No integer lies between: open bounds close to each other.
    if whole {
        return None;
    }
    exact((get("minimum").or(get("exclusiveMinimum"))? + get("maximum").or(get("exclusiveMaximum"))?) / 2.0)
}

/// A number whose text is its double's shortest form; whole numbers are written without a point.
fn exact(value: f64) -> Option<Value> {
    if value.fract() == 0.0 && value.abs() < 9.0e15 {
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}
