//! Renames that are evident: an equal subschema, and a near name or the same description, and only one such pair.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::doc::SchemaDoc;
use crate::near::names_are_near;
use crate::places::{properties, same_but_for_text};
use crate::pointer::join;

/// An argument that lives under another name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// Pointer of the old name; `*` stands for any list index.
    pub from: String,
    /// Pointer of the new name.
    pub to: String,
}

const MAX_DEPTH: usize = 16;

/// Inferred renames, in the order of the old names. They explain; they never lower a severity (invariant 11).
pub fn inferred_renames(current: &SchemaDoc, candidate: &SchemaDoc) -> Vec<Rename> {
    let mut out = Vec::new();
    let mut seen = BTreeSet::new();
    walk(current, candidate, &[current.root()], &[candidate.root()], "", 0, &mut seen, &mut out);
    out
}

#[allow(clippy::too_many_arguments)] // a recursion over two documents; a struct would hold the same eight
fn walk<'a>(
    current: &'a SchemaDoc,
    candidate: &'a SchemaDoc,
    old: &[&'a Value],
    new: &[&'a Value],
    pointer: &str,
    depth: usize,
    seen: &mut BTreeSet<(usize, usize)>,
    out: &mut Vec<Rename>,
) {
    let (Some(first_old), Some(first_new)) = (old.first(), new.first()) else { return };
    let id = |v: &Value| std::ptr::from_ref(v).addr();
    if depth > MAX_DEPTH || !seen.insert((id(first_old), id(first_new))) {
        return;
    }
    let (mut o, mut n) = (Vec::new(), Vec::new());
    old.iter().for_each(|node| current.conjuncts(node, &mut o));
    new.iter().for_each(|node| candidate.conjuncts(node, &mut n));
    let (old_props, new_props) = (properties(&o), properties(&n));
    let gone: Vec<&str> = old_props.keys().copied().filter(|k| !new_props.contains_key(k)).collect();
    let come: Vec<&str> = new_props.keys().copied().filter(|k| !old_props.contains_key(k)).collect();
    let fits = |from: &str, to: &str| -> bool {
        let (Some(a), Some(b)) = (old_props.get(from), new_props.get(to)) else { return false };
        let equal = a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same_but_for_text(x, y));
        let text = |nodes: &[&Value]| nodes.iter().find_map(|v| v.get("description")?.as_str().map(str::to_owned));
        let same_text = text(a).is_some_and(|t| !t.is_empty() && Some(t) == text(b));
        equal && (names_are_near(from, to) || same_text)
    };
    for from in &gone {
        let targets: Vec<&&str> = come.iter().filter(|to| fits(from, to)).collect();
        if let [to] = targets[..] {
            if gone.iter().filter(|other| fits(other, to)).count() == 1 {
                out.push(Rename { from: join(pointer, from), to: join(pointer, to) });
            }
        }
    }
    for (name, a) in &old_props {
        if let Some(b) = new_props.get(name) {
            walk(current, candidate, a, b, &join(pointer, name), depth + 1, seen, out);
        }
    }
    for key in ["items", "additionalProperties"] {
        let find =
            |nodes: &[&'a Value]| nodes.iter().filter_map(|v| v.get(key)).filter(|v| v.is_object()).collect::<Vec<_>>();
        walk(current, candidate, &find(&o), &find(&n), &join(pointer, "*"), depth + 1, seen, out);
    }
}
