//! Arguments that the call carries and the candidate does not declare any more, and defaults that differ where the
//! call leaves an argument out. Reported in accepted and in refused calls alike.

use lastcall_diff::join;
use serde_json::Value;

use crate::pair::PreparedPair;
use crate::side::{default_of, requires};

/// Findings of one call that are kept: a hostile call has no more.
const MAX_FOUND: usize = 1000;

/// One finding of the search.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// Carried, declared by current, not by the candidate.
    Gone { field: String, required: bool, was_default: bool },
    /// Left out, declared by both, and the default differs, appeared or vanished.
    Default { field: String },
}

/// Searches a call's arguments.
pub(crate) fn search(pair: &PreparedPair, arguments: &Value) -> Vec<Found> {
    let mut out = Vec::new();
    if pair.searches {
        let (old, new) = (&pair.current, &pair.candidate);
        let current = old.applying(&[old.doc.root()], arguments);
        let candidate = new.applying(&[new.doc.root()], arguments);
        walk(pair, arguments, &current, &candidate, "", &mut out);
    }
    out
}

fn walk(
    pair: &PreparedPair,
    value: &Value,
    current: &[&Value],
    candidate: &[&Value],
    pointer: &str,
    out: &mut Vec<Found>,
) {
    if current.is_empty() || out.len() >= MAX_FOUND {
        return; // current says nothing here: nothing can be lost
    }
    let (old, new) = (&pair.current, &pair.candidate);
    match value {
        Value::Object(members) => {
            for (key, child) in members {
                let field = join(pointer, key);
                if old.declares(current, key) && !new.declares(candidate, key) {
                    let nodes = old.applying(&old.member(current, key), child);
                    let was_default = default_of(&nodes).is_some_and(|d| same_value(d, child));
                    out.push(Found::Gone { field, required: requires(current, key), was_default });
                    continue;
                }
                let (o, n) = (old.member(current, key), new.member(candidate, key));
                walk(pair, child, &old.applying(&o, child), &new.applying(&n, child), &field, out);
            }
            for node in current {
                let Some(Value::Object(table)) = node.get("properties") else { continue };
                for (key, _) in table.iter().filter(|(k, _)| !members.contains_key(*k)) {
                    let named = |nodes: &[&Value]| {
                        nodes
                            .iter()
                            .any(|n| n.get("properties").is_some_and(|p| p.get(key.as_str()).is_some()))
                    };
                    if !named(candidate) {
                        continue;
                    }
                    let (o, n) = (old.member(current, key), new.member(candidate, key));
                    let same =
                        match (default_of(&conjuncts(&old.doc, &o)), default_of(&conjuncts(&new.doc, &n))) {
                            (None, None) => true,
                            (Some(a), Some(b)) => same_value(a, b),
                            _ => false,
                        };
                    if !same {
                        out.push(Found::Default { field: join(pointer, key) });
                    }
                }
            }
        }
        Value::Array(items) => {
            for (i, child) in items.iter().enumerate() {
                let (o, n) = (old.item(current, i), new.item(candidate, i));
                let field = join(pointer, &i.to_string());
                walk(pair, child, &old.applying(&o, child), &new.applying(&n, child), &field, out);
            }
        }
        _ => {}
    }
}

fn conjuncts<'a>(doc: &'a lastcall_diff::SchemaDoc, nodes: &[&'a Value]) -> Vec<&'a Value> {
    let mut out = Vec::new();
    nodes.iter().for_each(|n| doc.conjuncts(n, &mut out));
    out
}

/// Equal in JSON, numbers by value.
pub(crate) fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            x == y || (x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64()
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(v, w)| same_value(v, w))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, v)| y.get(k).is_some_and(|w| same_value(v, w)))
        }
        _ => a == b,
    }
}

/// The default among nodes and what applies with them.
pub(crate) fn conjuncts_default<'a>(
    doc: &'a lastcall_diff::SchemaDoc,
    nodes: &[&'a Value],
) -> Option<&'a Value> {
    default_of(&conjuncts(doc, nodes))
}
