//! Renames that are evident: an equal subschema, and a near name or the same description, and only one such pair.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::doc::SchemaDoc;
use crate::near::names_are_near;
use crate::places::{properties, same_but_for_text};
use crate::pointer::{join, join_name};

/// An argument that lives under another name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// Pointer of the old name; `*` stands for any list index.
    pub from: String,
    /// Pointer of the new name.
    pub to: String,
}

/// A rename that nobody declared, and why it is likely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferredRename {
    /// The two names.
    pub rename: Rename,
    /// What speaks for it, beside the equal subschema: `near name`, `same description`, or both.
    pub evidence: &'static str,
}

const MAX_DEPTH: usize = 16;
/// Beyond so many pairs of names in one object nothing is inferred: a guess is not worth that time.
const MAX_PAIRS: usize = 10_000;
const MAX_NODES: usize = 20_000;
/// How often a pair of nodes may stand on one path.
const UNROLLED: usize = 3;

/// Inferred renames, in the order of the old names. They explain; they never lower a severity (invariant 11).
pub fn inferred_renames(current: &SchemaDoc, candidate: &SchemaDoc) -> Vec<InferredRename> {
    let mut walk = Walk { current, candidate, stack: Vec::new(), budget: MAX_NODES, out: Vec::new() };
    walk.node(&[current.root()], &[candidate.root()], "");
    walk.out
}

struct Walk<'a> {
    current: &'a SchemaDoc,
    candidate: &'a SchemaDoc,
    stack: Vec<(usize, usize)>,
    budget: usize,
    out: Vec<InferredRename>,
}

impl<'a> Walk<'a> {
    fn node(&mut self, old: &[&'a Value], new: &[&'a Value], pointer: &str) {
        let (Some(first_old), Some(first_new)) = (old.first(), new.first()) else { return };
        let id = |v: &Value| std::ptr::from_ref(v).addr();
        let here = (id(first_old), id(first_new));
        let repeats = self.stack.iter().filter(|on| **on == here).count();
        if self.stack.len() > MAX_DEPTH || repeats >= UNROLLED || self.budget == 0 {
            return;
        }
        self.budget -= 1;
        self.stack.push(here);
        let (mut o, mut n) = (Vec::new(), Vec::new());
        old.iter().for_each(|node| self.current.conjuncts(node, &mut o));
        new.iter().for_each(|node| self.candidate.conjuncts(node, &mut n));
        let (old_props, new_props) = (properties(&o), properties(&n));
        let gone: Vec<&str> = old_props.keys().copied().filter(|k| !new_props.contains_key(k)).collect();
        let come: Vec<&str> = new_props.keys().copied().filter(|k| !old_props.contains_key(k)).collect();
        let evidence = |from: &str, to: &str| -> Option<&'static str> {
            let (a, b) = (old_props.get(from)?, new_props.get(to)?);
            let equal = a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same_but_for_text(x, y));
            let text = |nodes: &[&Value]| {
                nodes.iter().find_map(|v| v.get("description")?.as_str().map(str::to_owned))
            };
            let same_text = text(a).is_some_and(|t| !t.is_empty() && Some(t) == text(b));
            if !equal {
                return None;
            }
            match (names_are_near(from, to), same_text) {
                (true, true) => Some("near name, same description"),
                (true, false) => Some("near name"),
                (false, true) => Some("same description"),
                (false, false) => None,
            }
        };
        let worth_it = gone.len().saturating_mul(come.len()) <= MAX_PAIRS;
        for from in gone.iter().filter(|_| worth_it) {
            let targets: Vec<(&str, &'static str)> =
                come.iter().filter_map(|to| Some((*to, evidence(from, to)?))).collect();
            if let [(to, evidence_of)] = targets[..]
                && gone.iter().filter(|other| evidence(other, to).is_some()).count() == 1
            {
                let rename = Rename { from: join_name(pointer, from), to: join_name(pointer, to) };
                self.out.push(InferredRename { rename, evidence: evidence_of });
            }
        }
        for (name, a) in &old_props {
            if let Some(b) = new_props.get(name) {
                self.node(a, b, &join_name(pointer, name));
            }
        }
        for key in ["items", "additionalProperties"] {
            let find = |nodes: &[&'a Value]| {
                nodes.iter().filter_map(|v| v.get(key)).filter(|v| v.is_object()).collect::<Vec<_>>()
            };
            self.node(&find(&o), &find(&n), &join(pointer, "*"));
        }
        self.stack.pop();
    }
}
