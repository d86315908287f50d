//! What a schema says of one place, in one form: references and `allOf` followed, `anyOf [X, null]` and lists of
//! constants unfolded, so that equal forms are equal.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use crate::doc::SchemaDoc;
use crate::places::types;
use crate::pointer::escape;

/// Where every node of a document stands, by its address.
pub(super) struct Locations<'a> {
    parents: HashMap<usize, (usize, Step<'a>)>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

pub(super) fn address(node: &Value) -> usize {
    std::ptr::from_ref(node).addr()
}

impl<'a> Locations<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let mut parents = HashMap::new();
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            let mut add = |child: &'a Value, step| {
                parents.insert(address(child), (address(node), step));
                stack.push(child);
            };
            match node {
                Value::Object(map) => map.iter().for_each(|(key, child)| add(child, Step::Key(key))),
                Value::Array(items) => {
                    items.iter().enumerate().for_each(|(i, child)| add(child, Step::Index(i)));
                }
                _ => {}
            }
        }
        Self { parents }
    }

    /// JSON Pointer of a node of the document.
    pub(super) fn of(&self, node: &Value) -> String {
        let mut steps = Vec::new();
        let mut at = address(node);
        while let Some((parent, step)) = self.parents.get(&at) {
            steps.push(*step);
            at = *parent;
        }
        let mut out = String::new();
        for step in steps.into_iter().rev() {
            out.push('/');
            match step {
                Step::Key(key) => out.push_str(&escape(key)),
                Step::Index(i) => out.push_str(&i.to_string()),
            }
        }
        out
    }
}

/// Keywords that list alternatives or conditions for the same value.
pub(super) const BRANCHES: [&str; 9] =
    ["anyOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"];

/// The nodes that speak of one place.
pub(super) struct View<'a> {
    /// What always applies: references and `allOf` followed.
    outer: Vec<&'a Value>,
    /// What applies unless the value is `null`.
    inner: Vec<&'a Value>,
    /// Whether `null` is accepted beside `inner`.
    wrapped: bool,
    /// (node, keyword) that were unfolded and say nothing more.
    used: Vec<(usize, &'static str)>,
    /// Values listed by alternatives of constants.
    listed: Vec<Vec<&'a Value>>,
}

impl<'a> View<'a> {
    pub(super) fn of(doc: &'a SchemaDoc, start: &[&'a Value]) -> Self {
        let mut view = Self {
            outer: Vec::new(),
            inner: Vec::new(),
            wrapped: false,
            used: Vec::new(),
            listed: Vec::new(),
        };
        start.iter().for_each(|node| doc.conjuncts(node, &mut view.outer));
        let mut i = 0;
        while let Some(node) = view.outer.get(i).copied() {
            i += 1;
            for key in ["anyOf", "oneOf"] {
                let Some(branches) = node.get(key).and_then(Value::as_array) else { continue };
                if let Some(values) = constants(branches) {
                    view.listed.push(values);
                    view.used.push((address(node), key));
                    continue;
                }
                match branches.as_slice() {
                    [one] => {
                        view.used.push((address(node), key));
                        doc.conjuncts(one, &mut view.outer);
                    }
                    [a, b] if !view.wrapped && (is_null(a) != is_null(b)) => {
                        view.used.push((address(node), key));
                        view.wrapped = true;
                        doc.conjuncts(if is_null(a) { b } else { a }, &mut view.inner);
                    }
                    _ => {}
                }
            }
        }
        let mut i = 0;
        while let Some(node) = view.inner.get(i).copied() {
            i += 1;
            for key in ["anyOf", "oneOf"] {
                if let Some(values) = node.get(key).and_then(Value::as_array).and_then(|b| constants(b)) {
                    view.listed.push(values);
                    view.used.push((address(node), key));
                }
            }
        }
        view
    }

    /// Every node, the place's own first.
    pub(super) fn nodes(&self) -> Vec<&'a Value> {
        self.outer.iter().chain(&self.inner).copied().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outer.is_empty()
    }

    /// The nodes that carry a keyword, with its value; unfolded ones left out.
    pub(super) fn get(&self, key: &str) -> Vec<(&'a Value, &'a Value)> {
        let all = self.outer.iter().chain(&self.inner);
        all.filter(|node| !self.used.iter().any(|(at, k)| *at == address(node) && *k == key))
            .filter_map(|node| Some((*node, node.get(key)?)))
            .collect()
    }

    /// The first value of a keyword.
    pub(super) fn first(&self, key: &str) -> Option<&'a Value> {
        self.outer.iter().chain(&self.inner).find_map(|node| node.get(key))
    }

    /// Whether anything says which types are accepted: `type`, or listed values.
    pub(super) fn states_types(&self) -> bool {
        self.outer.iter().chain(&self.inner).any(|node| node.get("type").is_some())
    }

    /// Accepted types, `null` apart; `integer` is part of `number`.
    pub(super) fn types(&self) -> BTreeSet<&'static str> {
        let mut stated = types(&self.outer);
        let inner = types(&self.inner);
        stated.retain(|t| inner.contains(t));
        if let Some(values) = self.allowed() {
            stated.retain(|t| values.iter().any(|v| type_of(v) == *t));
        }
        stated.remove("null");
        stated
    }

    /// Whether `null` is accepted as far as types and listed values say.
    pub(super) fn null(&self) -> bool {
        let inner = self.wrapped || types(&self.inner).contains("null");
        let lists = |nodes: &[&Value]| {
            nodes.iter().all(|node| {
                let in_enum = node.get("enum").and_then(Value::as_array);
                in_enum.is_none_or(|l| l.contains(&Value::Null))
                    && node.get("const").is_none_or(Value::is_null)
            })
        };
        types(&self.outer).contains("null")
            && inner
            && lists(&self.outer)
            && (self.wrapped || lists(&self.inner))
            && self.listed.iter().all(|l| self.wrapped || l.iter().any(|v| v.is_null()))
    }

    /// The listed values, `null` apart; `None` where any value is accepted.
    pub(super) fn allowed(&self) -> Option<Vec<&'a Value>> {
        let mut left: Option<Vec<&'a Value>> = None;
        let mut meet = |values: Vec<&'a Value>| {
            left = Some(match left.take() {
                None => values,
                Some(old) => {
                    let values: HashSet<&Value> = values.into_iter().collect();
                    old.into_iter().filter(|v| values.contains(v)).collect()
                }
            });
        };
        for node in self.outer.iter().chain(&self.inner) {
            if let Some(list) = node.get("enum").and_then(Value::as_array) {
                meet(list.iter().collect());
            }
            if let Some(one) = node.get("const") {
                meet(vec![one]);
            }
        }
        self.listed.iter().for_each(|list| meet(list.clone()));
        let mut values = left?;
        values.retain(|v| !v.is_null());
        Some(values)
    }

    /// Declared properties.
    pub(super) fn properties(&self) -> BTreeMap<&'a str, Vec<&'a Value>> {
        crate::places::properties(&self.nodes())
    }

    /// Required names.
    pub(super) fn required(&self) -> BTreeSet<&'a str> {
        crate::places::required(&self.nodes())
    }

    /// Whether undeclared properties are refused.
    pub(super) fn closed(&self) -> bool {
        let shut = |key| self.get(key).iter().any(|(_, v)| **v == Value::Bool(false));
        shut("additionalProperties") || shut("unevaluatedProperties")
    }

    /// Whether an alternative of this place declares the property.
    pub(super) fn branch_declares(&self, doc: &'a SchemaDoc, name: &str) -> bool {
        branches_declare(doc, &self.nodes(), name)
    }
}

/// Whether one of these nodes or an alternative of theirs declares the property.
pub(super) fn branches_declare<'a>(doc: &'a SchemaDoc, nodes: &[&'a Value], name: &str) -> bool {
    let mut stack: Vec<&'a Value> = nodes.to_vec();
    let mut seen = BTreeSet::new();
    while let Some(node) = stack.pop() {
        if !seen.insert(address(node)) {
            continue;
        }
        if node.get("properties").and_then(|p| p.get(name)).is_some() {
            return true;
        }
        stack.extend(doc.reference(node));
        for key in ["allOf", "anyOf", "oneOf"] {
            stack.extend(node.get(key).and_then(Value::as_array).into_iter().flatten());
        }
        stack.extend(["if", "then", "else"].into_iter().filter_map(|key| node.get(key)));
        for key in ["dependentSchemas", "dependencies"] {
            stack.extend(node.get(key).and_then(Value::as_object).into_iter().flat_map(|m| m.values()));
        }
    }
    false
}

/// The type of a value, in JSON Schema's words.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|f| f.fract() == 0.0) => {
            "integer"
        }
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A schema that accepts `null` and nothing else.
fn is_null(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    map.get("type").is_some_and(|t| t == "null" || *t == serde_json::json!(["null"]))
        || map.get("const").is_some_and(Value::is_null)
        || map.get("enum").and_then(Value::as_array).is_some_and(|l| l.len() == 1 && l[0].is_null())
}

/// The values of alternatives that are all constants.
fn constants(branches: &[Value]) -> Option<Vec<&Value>> {
    let mut values = Vec::new();
    for branch in branches {
        let map = branch.as_object()?;
        let plain = map.keys().all(|k| {
            matches!(k.as_str(), "const" | "enum" | "type" | "title" | "description" | "deprecated")
        });
        match (plain, map.get("const"), map.get("enum").and_then(Value::as_array)) {
            (true, Some(one), None) => values.push(one),
            (true, None, Some(list)) => values.extend(list),
            _ => return None,
        }
    }
    let mut seen: HashSet<&Value> = HashSet::new();
    let once: Vec<&Value> = values.into_iter().filter(|value| seen.insert(value)).collect();
    (!once.is_empty()).then_some(once)
}
