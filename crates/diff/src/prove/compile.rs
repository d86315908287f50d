//! From the text of a schema to what it means.

mod checks;
mod evaluated;
mod keywords;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::index::{Index, Place};
use super::ir::{self, Check, Link, N, Types};

/// Nesting of schemas, references included, beyond which nothing is modelled.
const MAX_DEPTH: usize = 120;
/// Schemas that are compiled for one document, at most: a dynamic reference compiles one text several times.
const MAX_NODES: usize = 20_000;

/// Compiles the places of one document.
pub(super) struct Compiler<'a> {
    pub index: &'a Index<'a>,
    pub formats: bool,
    /// Resources entered on the way here, the outermost first. Empty where nothing depends on it.
    scope: Vec<usize>,
    known: HashMap<(usize, usize, Vec<usize>), Slot>,
    checks: HashMap<String, Check>,
    document: Option<u128>,
    depth: usize,
    left: usize,
    /// Targets of references back: alive as long as this list is kept.
    kept: Vec<N>,
    /// Something is not modelled.
    pub gaps: bool,
    /// A keyword occurs that validators read in two ways: which, and what to write instead.
    pub contested: Option<&'static str>,
}

#[derive(Clone)]
enum Slot {
    /// Being compiled: a reference back to it.
    Open(N),
    Done(N),
}

impl<'a> Compiler<'a> {
    pub fn new(index: &'a Index<'a>, formats: bool) -> Self {
        Self {
            index,
            formats,
            scope: Vec::new(),
            known: HashMap::new(),
            checks: HashMap::new(),
            document: None,
            depth: 0,
            left: MAX_NODES,
            kept: Vec::new(),
            gaps: false,
            contested: None,
        }
    }

    /// The targets of references back; whoever uses the nodes keeps them.
    pub fn into_kept(self) -> Vec<N> {
        self.kept
    }

    /// Sets the target of a reference back.
    pub fn keep(&mut self, link: &Arc<Link>, target: &N) {
        // Nobody else holds it: nothing refers back.
        if Arc::strong_count(link) > 1 {
            link.set(target);
            self.kept.push(target.clone());
        }
    }

    /// What the schema at a place means.
    pub fn schema(&mut self, place: Place<'a>) -> N {
        let map = match place.node {
            Value::Bool(value) => return ir::truth(*value),
            Value::Object(map) => map,
            _ => return self.unknown(place, "not a schema"),
        };
        if self.depth >= MAX_DEPTH || self.left == 0 {
            return self.unknown(place, "too large");
        }
        let entered = self.index.dynamic && !self.scope.contains(&place.resource);
        if entered {
            self.scope.push(place.resource);
        }
        let key = (place.address(), place.resource, self.scope.clone());
        let node = match self.known.get(&key) {
            Some(Slot::Open(node) | Slot::Done(node)) => node.clone(),
            None => {
                self.left -= 1;
                self.depth += 1;
                let link = Arc::new(Link::default());
                let id = self.identity(place, "link");
                self.known.insert(key.clone(), Slot::Open(ir::link(id, link.clone())));
                let node = self.object(place, map);
                self.keep(&link, &node);
                self.known.insert(key, Slot::Done(node.clone()));
                self.depth -= 1;
                node
            }
        };
        if entered {
            self.scope.pop();
        }
        node
    }

    /// What the schema under a key of `place` means.
    fn child(&mut self, place: Place<'a>, node: &'a Value) -> N {
        self.schema(self.index.below(place, node))
    }

    fn object(&mut self, place: Place<'a>, map: &'a Map<String, Value>) -> N {
        let other_draft = map.get("$schema").is_some_and(|_| {
            lastcall_contract::Draft::of_schema(place.node, self.index.draft).ok() != Some(self.index.draft)
        });
        if other_draft {
            return self.unknown(place, "another draft inside");
        }
        let mut parts = Vec::new();
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            parts.push(self.reference(place, self.index.resolve(place, reference), reference));
            if self.index.ref_stands_alone() {
                return ir::and(parts);
            }
        }
        if let Some(target) = self.dynamic_target(place, map) {
            parts.push(match target {
                Some(target) => self.schema(target),
                None => self.unknown(place, "dynamic reference"),
            });
        }
        self.keywords(place, map, &mut parts);
        ir::and(parts)
    }

    /// The target of `$dynamicRef` or `$recursiveRef`, where there is one; `Some(None)`: it is not known.
    fn dynamic_target(&self, place: Place<'a>, map: &'a Map<String, Value>) -> Option<Option<Place<'a>>> {
        use lastcall_contract::Draft::{Draft201909, Draft202012};
        if self.index.draft == Draft202012 {
            let reference = map.get("$dynamicRef")?.as_str()?;
            return Some(self.index.resolve_dynamic(place, reference, &self.scope));
        }
        (self.index.draft == Draft201909 && map.contains_key("$recursiveRef"))
            .then(|| self.index.resolve_recursive())
    }

    fn reference(&mut self, place: Place<'a>, target: Option<Place<'a>>, reference: &str) -> N {
        match target {
            Some(target) => self.schema(target),
            // Outside the document only meta-schemas are known to the validator, each by its URI. A dynamic anchor of
            // this document could reach into one.
            None if reference.starts_with("http") && !self.index.has_dynamic_anchors() => ir::opaque(
                ir::identity(&["external", reference, &self.formats.to_string()]),
                checks::keyword(self.index.draft, "$ref", &Value::String(reference.to_owned()), self.formats),
            ),
            None => self.unknown(place, "reference"),
        }
    }

    /// A node about which nothing is known but that it is this one.
    fn unknown(&mut self, place: Place<'a>, why: &str) -> N {
        self.gaps = true;
        ir::opaque(self.identity(place, why), Arc::new(|_| None))
    }

    /// What validators read in two ways, see [`ir::contested`]. `why` names the keyword and what to write instead.
    pub fn contested(&mut self, strict: &N, lax: &N, why: &'static str) -> N {
        if strict.id == lax.id {
            return strict.clone();
        }
        self.contested = Some(why);
        ir::contested(strict, lax)
    }

    /// The identity of a place of this document on the way on which it was reached.
    fn identity(&mut self, place: Place<'a>, tag: &str) -> u128 {
        let document = self.document();
        let at = match self.index.number(place) {
            Some(number) => number.to_string(),
            None => place.node.to_string(),
        };
        let way = format!("{document} {} {:?} {}", place.resource, self.scope, self.formats);
        ir::identity(&[tag, &way, &at])
    }

    /// The identity of the document.
    pub fn document(&mut self) -> u128 {
        *self
            .document
            .get_or_insert_with(|| ir::identity(&[&self.index.root.to_string(), self.index.draft.as_str()]))
    }

    /// A check of strings by a pattern, made once.
    pub fn pattern_check(&mut self, pattern: &str) -> Check {
        if let Some(check) = self.checks.get(pattern) {
            return check.clone();
        }
        let check = checks::pattern(pattern);
        self.checks.insert(pattern.to_owned(), check.clone());
        check
    }

    /// A keyword that only speaks of strings and is not modelled further.
    fn about_strings(&self, id: &[&str], check: Check) -> N {
        ir::or(vec![ir::of_types(Types::STRING.not()), ir::opaque(ir::identity(id), check)])
    }
}
