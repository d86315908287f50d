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
    /// The same, between null and none, where absent is declared to be null.
    NullDefault,
    /// Left out, new in the candidate, whose runtime declares that it fills the default in.
    Filled { field: String },
}

/// Searches a call's arguments; for pairs with `searches` alone.
pub(crate) fn search(pair: &PreparedPair, arguments: &Value) -> Vec<Found> {
    let mut out = Vec::new();
    let (old, new) = (&pair.current, &pair.candidate);
    let current = old.applying(&[old.doc.root()], arguments);
    let candidate = new.applying(&[new.doc.root()], arguments);
    walk(pair, arguments, &current, &candidate, "", &mut out);
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
                    let old_default = default_of(&conjuncts(&old.doc, &o));
                    let new_default = default_of(&conjuncts(&new.doc, &n));
                    let same = match (old_default, new_default) {
                        (None, None) => true,
                        (Some(a), Some(b)) => same_value(a, b),
                        _ => false,
                    };
                    if !same {
                        let field = join(pointer, key);
                        let (a, b) = (old_default, new_default);
                        let null = is_null(pair, &field, a, b);
                        out.push(if null { Found::NullDefault } else { Found::Default { field } });
                    }
                }
            }
            if pair.normalization.runtimes.candidate.fills_defaults {
                filled(pair, members, current, candidate, pointer, out);
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

/// Whether a default turned from null into none or back, and the side without one declares that it takes absent for
/// null.
fn is_null(pair: &PreparedPair, field: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
    let n = &pair.normalization;
    match (old, new) {
        (Some(Value::Null), None) => n.runtimes.candidate.absent_is_null || n.absent_is_null.has(field),
        (None, Some(Value::Null)) => n.runtimes.current.absent_is_null || n.absent_is_null.has(field),
        _ => false,
    }
}

/// New arguments with a default that the call leaves out.
fn filled(
    pair: &PreparedPair,
    members: &serde_json::Map<String, Value>,
    current: &[&Value],
    candidate: &[&Value],
    pointer: &str,
    out: &mut Vec<Found>,
) {
    let (old, new) = (&pair.current, &pair.candidate);
    for node in candidate {
        let Some(Value::Object(table)) = node.get("properties") else { continue };
        for key in table.keys().filter(|k| !members.contains_key(*k) && !old.declares(current, k)) {
            if default_of(&conjuncts(&new.doc, &new.member(candidate, key))).is_some() {
                out.push(Found::Filled { field: join(pointer, key) });
            }
        }
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
