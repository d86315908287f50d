//! The places that a candidate restricts, drops, re-defaults or adds: what the decision asks exposure for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::doc::SchemaDoc;
use crate::pointer::{Pattern, join, join_name};

/// What happened at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// No longer declared.
    PropertyRemoved,
    /// Newly declared: pure addition.
    PropertyAdded,
    /// Newly required.
    RequiredAdded,
    /// Fewer types.
    TypeNarrowed,
    /// One value fewer (in `detail`), or values listed where none were.
    EnumValueRemoved,
    /// A bound appeared or changed (keyword in `detail`).
    BoundTightened,
    /// Another declared default, or one that appeared or vanished.
    DefaultChanged,
    /// Undeclared arguments are refused now.
    ObjectClosed,
    /// anyOf, oneOf, not, if/then/else or dependent*: changed as a whole.
    BranchChanged,
}

/// One changed place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Instance pointer; `*` stands for any list index or open key.
    pub pointer: String,
    /// What happened.
    pub kind: PlaceKind,
    /// The enum value or the keyword, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Place {
    /// Pure additions need synthetic calls or cases, not traffic.
    pub fn is_addition(&self) -> bool {
        self.kind == PlaceKind::PropertyAdded
    }

    /// The pointer as a pattern.
    pub fn pattern(&self) -> Pattern {
        Pattern::new(&self.pointer)
    }
}

const MAX_PLACES: usize = 4096;
const MAX_DEPTH: usize = 128;
const MAX_NODES: usize = 100_000;
/// How often a pair of nodes may stand on one path.
const UNROLLED: usize = 3;
const BOUNDS: [&str; 16] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "contains",
    "propertyNames",
];
const BRANCHES: [&str; 9] =
    ["anyOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"];

/// The changed places of a pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedPlaces {
    /// Sorted, each once.
    pub places: Vec<Place>,
    /// There are more: the schemas change at more than 4,096 places, or go on beyond what is walked through.
    pub cut: bool,
}

/// Every changed place, up to a limit.
pub fn changed_places(current: &SchemaDoc, candidate: &SchemaDoc) -> ChangedPlaces {
    let mut walk = Walk {
        current,
        candidate,
        places: BTreeMap::new(),
        stack: Vec::new(),
        budget: MAX_NODES,
        cut: false,
    };
    walk.node(&[current.root()], &[candidate.root()], "", 0);
    ChangedPlaces { places: walk.places.into_values().collect(), cut: walk.cut }
}

struct Walk<'a> {
    current: &'a SchemaDoc,
    candidate: &'a SchemaDoc,
    places: BTreeMap<(String, PlaceKind, Option<String>), Place>,
    /// Pairs of node sets on the way here: a recursive schema is unrolled a few times, then cut.
    stack: Vec<(Vec<usize>, Vec<usize>)>,
    /// Nodes that may still be looked at.
    budget: usize,
    /// Something was left out.
    cut: bool,
}

/// Whether `new` is `old` with optional properties added and text changed, and nothing else: then no argument of a
/// call can be lost or re-defaulted, and accepted calls need no search.
pub fn only_adds(old: &Value, new: &Value) -> bool {
    adds(old, new, false)
}

/// `in_table`: the keys are property names.
fn adds(old: &Value, new: &Value, in_table: bool) -> bool {
    match (old, new) {
        (Value::Object(x), Value::Object(y)) => {
            let text = |k: &str| !in_table && TEXT.contains(&k);
            let kept = x.iter().filter(|(k, _)| !text(k)).all(|(k, v)| {
                y.get(k).is_some_and(|w| {
                    let data = !in_table && matches!(k.as_str(), "enum" | "const" | "default");
                    if data { v == w } else { adds(v, w, !in_table && k == "properties") }
                })
            });
            let new_keys = y.keys().filter(|k| !text(k) && !x.contains_key(*k)).count();
            kept && (new_keys == 0 || in_table)
        }
        _ => old == new,
    }
}

const TEXT: [&str; 5] = ["title", "description", "examples", "$comment", "deprecated"];

/// Text and examples apart, do the nodes say the same?
pub fn same_but_for_text(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let shown = |k: &&String, v: &Value| !TEXT.contains(&k.as_str()) || v.is_object();
            x.iter().filter(|(k, v)| shown(k, v)).count() == y.iter().filter(|(k, v)| shown(k, v)).count()
                && x.iter()
                    .filter(|(k, v)| shown(k, v))
                    .all(|(k, v)| y.get(k).is_some_and(|w| same_but_for_text(v, w)))
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(v, w)| same_but_for_text(v, w))
        }
        _ => a == b,
    }
}

impl<'a> Walk<'a> {
    fn add(&mut self, pointer: &str, kind: PlaceKind, detail: Option<String>) {
        let key = (pointer.to_owned(), kind, detail.clone());
        if self.places.len() >= MAX_PLACES {
            self.cut |= !self.places.contains_key(&key);
            return;
        }
        self.places.insert(key, Place { pointer: pointer.to_owned(), kind, detail });
    }

    fn node(&mut self, old: &[&'a Value], new: &[&'a Value], pointer: &str, depth: usize) {
        if old.is_empty() {
            return;
        }
        if depth > MAX_DEPTH || self.budget == 0 {
            self.cut = true;
            return;
        }
        self.budget -= 1;
        let (mut o, mut n) = (Vec::new(), Vec::new());
        old.iter().for_each(|node| self.current.conjuncts(node, &mut o));
        new.iter().for_each(|node| self.candidate.conjuncts(node, &mut n));
        let ids = |nodes: &[&Value]| nodes.iter().map(|v| std::ptr::from_ref(*v).addr()).collect::<Vec<_>>();
        let here = (ids(&o), ids(&n));
        if self.stack.iter().filter(|on| **on == here).count() >= UNROLLED {
            return;
        }
        self.stack.push(here);
        self.values(&o, &n, pointer);
        self.members(&o, &n, pointer, depth);
        self.stack.pop();
    }

    /// Types, enums, bounds and branches of one place.
    fn values(&mut self, o: &[&'a Value], n: &[&'a Value], pointer: &str) {
        let (old_types, new_types) = (types(o), types(n));
        if !old_types.is_subset(&new_types) {
            self.add(pointer, PlaceKind::TypeNarrowed, None);
        }
        match (allowed(o), allowed(n)) {
            (Some(old), Some(new)) => {
                for value in old.iter().filter(|v| !new.contains(v)) {
                    self.add(pointer, PlaceKind::EnumValueRemoved, Some(value.to_string()));
                }
            }
            (None, Some(_)) => self.add(pointer, PlaceKind::EnumValueRemoved, None),
            _ => {}
        }
        for key in BOUNDS {
            let texts = |nodes: &[&Value]| {
                nodes.iter().filter_map(|v| v.get(key)).map(Value::to_string).collect::<BTreeSet<_>>()
            };
            let (old, new) = (texts(o), texts(n));
            if !new.is_subset(&old) && !only_loosens(key, o, n) {
                self.add(pointer, PlaceKind::BoundTightened, Some(key.to_owned()));
            }
        }
        for key in BRANCHES {
            let find = |nodes: &[&'a Value]| nodes.iter().filter_map(|v| v.get(key)).collect::<Vec<_>>();
            let (old, new) = (find(o), find(n));
            let same = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| same_but_for_text(a, b));
            if !same {
                self.add(pointer, PlaceKind::BranchChanged, Some(key.to_owned()));
            }
        }
    }

    /// Properties, open keys and items of one place.
    fn members(&mut self, o: &[&'a Value], n: &[&'a Value], pointer: &str, depth: usize) {
        let (old_props, new_props) = (properties(o), properties(n));
        let (old_required, new_required) = (required(o), required(n));
        for (name, old) in &old_props {
            let at = join_name(pointer, name);
            match new_props.get(name) {
                None if matched_by_pattern(n, name) => {}
                None => self.add(&at, PlaceKind::PropertyRemoved, None),
                Some(new) => {
                    let default = |doc: &'a SchemaDoc, nodes: &[&'a Value]| {
                        let mut all = Vec::new();
                        nodes.iter().for_each(|node| doc.conjuncts(node, &mut all));
                        all.into_iter().find_map(|v| v.get("default"))
                    };
                    if default(self.current, old) != default(self.candidate, new) {
                        self.add(&at, PlaceKind::DefaultChanged, None);
                    }
                    self.node(old, new, &at, depth + 1);
                }
            }
        }
        for name in new_props.keys().filter(|name| !old_props.contains_key(*name)) {
            self.add(&join_name(pointer, name), PlaceKind::PropertyAdded, None);
        }
        for name in new_required.difference(&old_required) {
            self.add(&join_name(pointer, name), PlaceKind::RequiredAdded, None);
        }
        if closed(n) && !closed(o) {
            self.add(pointer, PlaceKind::ObjectClosed, None);
        }
        for key in
            ["items", "additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems"]
        {
            let find = |nodes: &[&'a Value]| {
                nodes.iter().filter_map(|v| v.get(key)).filter(|v| v.is_object()).collect::<Vec<_>>()
            };
            let (old, new) = (find(o), find(n));
            if old.is_empty() && !new.is_empty() {
                self.add(&join(pointer, "*"), PlaceKind::BoundTightened, Some(key.to_owned()));
            }
            self.node(&old, &new, &join(pointer, "*"), depth + 1);
        }
        let tuple = |nodes: &[&'a Value], i: usize| -> Vec<&'a Value> {
            let list =
                |v: &'a Value| v.get("prefixItems").or_else(|| v.get("items")).and_then(Value::as_array);
            nodes.iter().filter_map(|v| list(v)).filter_map(|l| l.get(i)).collect()
        };
        for i in 0.. {
            let (old, new) = (tuple(o, i), tuple(n, i));
            if (old.is_empty() && new.is_empty()) || i > 1024 {
                self.cut |= i > 1024;
                break;
            }
            let at = join(pointer, &i.to_string());
            if old.is_empty() {
                self.add(&at, PlaceKind::BoundTightened, Some("prefixItems".to_owned()));
            }
            self.node(&old, &new, &at, depth + 1);
        }
        let patterns = |nodes: &[&'a Value]| {
            let mut map: BTreeMap<&str, Vec<&'a Value>> = BTreeMap::new();
            for table in nodes.iter().filter_map(|v| v.get("patternProperties")).filter_map(Value::as_object)
            {
                table.iter().for_each(|(k, v)| map.entry(k).or_default().push(v));
            }
            map
        };
        let (old, new) = (patterns(o), patterns(n));
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            self.add(&join(pointer, "*"), PlaceKind::PropertyRemoved, Some((*key).to_owned()));
        }
        for (key, new) in &new {
            match old.get(key) {
                Some(old) => self.node(old, new, &join(pointer, "*"), depth + 1),
                None => {
                    self.add(
                        &join(pointer, "*"),
                        PlaceKind::BoundTightened,
                        Some("patternProperties".to_owned()),
                    );
                }
            }
        }
    }
}

/// A numeric bound that only widens is no restriction.
fn only_loosens(key: &str, o: &[&Value], n: &[&Value]) -> bool {
    let find = |nodes: &[&Value]| nodes.iter().filter_map(|v| v.get(key)?.as_f64()).collect::<Vec<_>>();
    let (old, new) = (find(o), find(n));
    let (Some(old), Some(new)) = (old.first(), new.first()) else { return false };
    if find(o).len() > 1 || find(n).len() > 1 {
        return false;
    }
    match key {
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => new <= old,
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => new >= old,
        _ => false,
    }
}

pub(crate) fn types(nodes: &[&Value]) -> BTreeSet<&'static str> {
    const ALL: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let mut left: BTreeSet<&'static str> = ALL.into_iter().collect();
    for stated in nodes.iter().filter_map(|v| v.get("type")) {
        let names: Vec<&str> = match stated {
            Value::String(name) => vec![name],
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            _ => continue,
        };
        left.retain(|t| names.contains(t) || (*t == "integer" && names.contains(&"number")));
    }
    left
}

pub(crate) fn allowed<'a>(nodes: &[&'a Value]) -> Option<Vec<&'a Value>> {
    let mut left: Option<Vec<&'a Value>> = None;
    for node in nodes {
        let stated: Option<Vec<&Value>> = match (node.get("enum"), node.get("const")) {
            (Some(Value::Array(list)), _) => Some(list.iter().collect()),
            (_, Some(value)) => Some(vec![value]),
            _ => None,
        };
        if let Some(stated) = stated {
            left = Some(match left {
                None => stated,
                Some(left) => left.into_iter().filter(|v| stated.contains(v)).collect(),
            });
        }
    }
    left
}

pub(crate) fn properties<'a>(nodes: &[&'a Value]) -> BTreeMap<&'a str, Vec<&'a Value>> {
    let mut map: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for table in nodes.iter().filter_map(|v| v.get("properties")).filter_map(Value::as_object) {
        table.iter().for_each(|(name, node)| map.entry(name).or_default().push(node));
    }
    map
}

pub(crate) fn required<'a>(nodes: &[&'a Value]) -> BTreeSet<&'a str> {
    let lists = nodes.iter().filter_map(|v| v.get("required")).filter_map(Value::as_array);
    lists.flatten().filter_map(Value::as_str).collect()
}

fn closed(nodes: &[&Value]) -> bool {
    let shut = |v: &&Value| {
        v.get("additionalProperties") == Some(&Value::Bool(false))
            || v.get("unevaluatedProperties") == Some(&Value::Bool(false))
    };
    nodes.iter().any(shut)
}

/// Whether a pattern of these nodes may cover the name. Only tells removed from kept; the comparison itself asks a
/// compiled expression.
pub(crate) fn matched_by_pattern(nodes: &[&Value], name: &str) -> bool {
    let tables = nodes.iter().filter_map(|v| v.get("patternProperties")).filter_map(Value::as_object);
    tables.flat_map(|t| t.keys()).any(|pattern| {
        let plain = pattern.trim_start_matches('^').trim_end_matches('$');
        let literal = plain.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        !literal || name.contains(plain)
    })
}
