//! The model of declared values: what callers send. A node that holds of a value when each of its object members is
//! declared where the schema speaks of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lastcall_contract::Draft;
use serde_json::Value;

use super::compile::Compiler;
use super::index::{Index, Place};
use super::ir::{self, Link, N};

/// Sets of places that are looked at; beyond, everything counts as declared.
const MAX_SETS: usize = 2_000;
const MAX_DEPTH: usize = 100;
/// Subschemas that speak of one value.
const MAX_SPEAKING: usize = 300;

type Key = (Vec<usize>, bool);

/// Builds the node of one document.
pub(super) struct Declared<'a, 'c> {
    index: &'a Index<'a>,
    compiler: &'c mut Compiler<'a>,
    known: HashMap<Key, N>,
    depth: usize,
}

impl<'a, 'c> Declared<'a, 'c> {
    pub fn new(compiler: &'c mut Compiler<'a>) -> Self {
        Self { index: compiler.index, compiler, known: HashMap::new(), depth: 0 }
    }

    /// Of the whole document.
    pub fn whole(&mut self) -> N {
        self.set(vec![self.index.root_place()], true)
    }

    /// Of a value of which these schemas speak. The root declares only what it lists; elsewhere a schema that says
    /// nothing about members declares all of them.
    fn set(&mut self, places: Vec<Place<'a>>, root: bool) -> N {
        let mut speaking = Vec::new();
        let whole = places.into_iter().all(|place| self.speaking(place, &mut speaking, 0));
        if !whole || speaking.is_empty() || self.depth >= MAX_DEPTH || self.known.len() >= MAX_SETS {
            return ir::truth(true);
        }
        let mut key: Vec<usize> = speaking.iter().map(Place::address).collect();
        key.sort_unstable();
        let key = (key, root);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let link = Arc::new(Link::default());
        let numbers: Vec<_> = speaking.iter().filter_map(|place| self.index.number(*place)).collect();
        let text = format!("{numbers:?} {root} {:?}", self.compiler.document());
        self.known.insert(key.clone(), ir::link(ir::identity(&["declared", &text]), link.clone()));
        self.depth += 1;
        let parts = ir::and(vec![self.members(&speaking, root), self.items(&speaking)]);
        let node = ir::or(vec![listed(&speaking), parts]);
        self.depth -= 1;
        self.compiler.keep(&link, &node);
        self.known.insert(key, node.clone());
        node
    }

    fn members(&mut self, speaking: &[Place<'a>], root: bool) -> N {
        let says = |key: &str| speaking.iter().any(|p| p.node.get(key).is_some_and(Value::is_object));
        let open =
            !root && !["properties", "patternProperties", "additionalProperties"].into_iter().any(says);
        if open {
            return ir::truth(true);
        }
        let table = |place: &Place<'a>, key: &str| -> Vec<(&'a str, Place<'a>)> {
            let entries = place.node.get(key).and_then(Value::as_object).into_iter().flatten();
            entries.map(|(name, node)| (name.as_str(), self.index.below(*place, node))).collect()
        };
        let rest_of = |place: &Place<'a>| -> Vec<Place<'a>> {
            ["additionalProperties", "unevaluatedProperties"]
                .into_iter()
                .filter_map(|key| place.node.get(key))
                .filter(|node| node.is_object())
                .map(|node| self.index.below(*place, node))
                .collect()
        };
        let mut names: BTreeMap<&str, Vec<Place<'a>>> = BTreeMap::new();
        let mut patterns: BTreeMap<&str, Vec<Place<'a>>> = BTreeMap::new();
        let mut rest = Vec::new();
        for place in speaking {
            table(place, "properties").into_iter().for_each(|(name, _)| _ = names.entry(name).or_default());
            for (pattern, below) in table(place, "patternProperties") {
                patterns.entry(pattern).or_default().push(below);
            }
            rest.extend(rest_of(place));
        }
        let checks: Vec<_> = patterns.keys().map(|p| (*p, self.compiler.pattern_check(p))).collect();
        let matches = |pattern: &str, name: &str| {
            let check = checks.iter().find(|(p, _)| *p == pattern);
            check.is_some_and(|(_, check)| check(&Value::from(name)) != Some(false))
        };
        // Several may speak of one member; then what they declare adds up, which separate entries could not say.
        let overlap = patterns.len() > 1 || names.keys().any(|n| patterns.keys().any(|p| matches(p, n)));
        for (name, below) in &mut names {
            for place in speaking {
                let before = below.len();
                let own = place.node.get("properties").and_then(|table| table.get(*name));
                below.extend(own.map(|node| self.index.below(*place, node)));
                let matching =
                    table(place, "patternProperties").into_iter().filter(|(p, _)| matches(p, name));
                below.extend(matching.map(|(_, p)| p));
                if below.len() == before {
                    below.extend(rest_of(place));
                }
            }
        }
        let names =
            names.into_iter().map(|(name, below)| (Arc::from(name), self.set(below, false))).collect();
        let patterns = patterns
            .into_iter()
            .zip(&checks)
            .map(|((pattern, below), (_, check))| {
                let node = if overlap { ir::truth(true) } else { self.set(below, false) };
                (Arc::from(pattern), node, check.clone())
            })
            .collect();
        let rest = if rest.is_empty() { ir::truth(false) } else { self.set(rest, false) };
        ir::members(names, patterns, rest)
    }

    fn items(&mut self, speaking: &[Place<'a>]) -> N {
        let listed = |place: &Place<'a>| -> &'a [Value] {
            let key = if self.index.draft == Draft::Draft202012 { "prefixItems" } else { "items" };
            place.node.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
        };
        let positions = speaking.iter().map(|place| listed(place).len()).max().unwrap_or(0).min(200);
        let mut nodes = Vec::new();
        for at in 0..=positions {
            let mut below = Vec::new();
            for place in speaking {
                match listed(place).get(at) {
                    Some(node) => below.push(self.index.below(*place, node)),
                    None => {
                        let keys = ["items", "additionalItems", "unevaluatedItems", "contains"];
                        let found = keys.into_iter().filter_map(|key| place.node.get(key));
                        below.extend(found.filter(|n| n.is_object()).map(|n| self.index.below(*place, n)));
                    }
                }
            }
            nodes.push(self.set(below, false));
        }
        let rest = nodes.pop().unwrap_or_else(|| ir::truth(true));
        ir::items(nodes, rest)
    }

    /// The schema and every subschema that may speak of the same value. `false`: there are too many.
    fn speaking(&self, place: Place<'a>, out: &mut Vec<Place<'a>>, depth: usize) -> bool {
        let Value::Object(map) = place.node else { return true };
        if out.iter().any(|p| p.address() == place.address()) {
            return true;
        }
        if depth > 64 || out.len() >= MAX_SPEAKING {
            return false;
        }
        out.push(place);
        let target = match (map.get("$ref"), map.get("$dynamicRef")) {
            (Some(Value::String(reference)), _) => self.index.resolve(place, reference),
            (_, Some(Value::String(reference))) => self.index.resolve_dynamic(place, reference, &[]),
            _ if map.contains_key("$recursiveRef") => self.index.resolve_recursive(),
            _ => None,
        };
        if target.is_some_and(|target| !self.speaking(target, out, depth + 1)) {
            return false;
        }
        let lists =
            ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| map.get(key)?.as_array()).flatten();
        let single = ["if", "then", "else"].into_iter().filter_map(|key| map.get(key));
        let tables =
            ["dependentSchemas", "dependencies"].into_iter().filter_map(|key| map.get(key)?.as_object());
        let mut all = lists.chain(single).chain(tables.flat_map(|table| table.values()));
        all.all(|node| self.speaking(self.index.below(place, node), out, depth + 1))
    }
}

/// Whole values that are listed are what callers send, member for member. They declare no member of any other value.
fn listed(speaking: &[Place<'_>]) -> N {
    let mut values = Vec::new();
    for place in speaking {
        values.extend(place.node.get("const"));
        values.extend(place.node.get("enum").and_then(Value::as_array).into_iter().flatten());
    }
    let values: Vec<Value> = values.into_iter().filter(|v| v.is_object() || v.is_array()).cloned().collect();
    ir::of_values(&values)
}
