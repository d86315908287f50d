//! Schemas that accept either of two versions' shapes: a migration hidden inside one contract.

use serde_json::Value;

use super::Report;
use super::nodes::{Node, Read};
use super::rules::RuleId as R;
use super::words::{folded, words};
use crate::near::names_are_near;
use crate::places::same_but_for_text;

pub(super) fn check(read: &Read<'_>, report: &mut Report<'_>) {
    for node in &read.nodes {
        types(read, node, report);
        for key in ["anyOf", "oneOf"] {
            union(read, node, key, report);
        }
        names(read, node, report);
    }
}

/// A list of types of different kinds.
fn types(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    let Some(Value::Array(list)) = node.map.get("type") else { return };
    let mut kinds: Vec<&str> = list.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect();
    if kinds.contains(&"number") {
        kinds.retain(|k| *k != "integer");
    }
    if kinds.len() < 2 || read.listed(node.value).is_some() {
        return;
    }
    either_type(&kinds, node, "type", report);
}

fn either_type(kinds: &[&str], node: &Node<'_>, key: &str, report: &mut Report<'_>) {
    let at = format!("{}/{key}", node.pointer);
    let what = node.name().map_or_else(|| "a value".to_owned(), |n| format!("`{n}`"));
    if kinds.len() == 2 && kinds.contains(&"array") && !kinds.contains(&"object") {
        report.add(R::OneOrMany, &at, format!("{what} is one value or a list of them"));
    } else {
        report.add(R::TypeOrType, &at, format!("{what} is of either of these types: {}", kinds.join(", ")));
    }
}

fn union(read: &Read<'_>, node: &Node<'_>, key: &str, report: &mut Report<'_>) {
    let Some(Value::Array(list)) = node.map.get(key) else { return };
    let at = format!("{}/{key}", node.pointer);
    let what = node.name().map_or_else(|| "the call".to_owned(), |n| format!("`{n}`"));
    let branches: Vec<&Value> =
        list.iter().filter(|b| b.get("type").and_then(Value::as_str) != Some("null")).collect();
    if branches.len() < 2 {
        return;
    }
    // branches that only require: either of two names
    let bare = branches.iter().all(|b| {
        b.as_object().is_some_and(|m| m.contains_key("required") && m.keys().all(|k| k == "required"))
    });
    if bare {
        let only = |b: &&Value| match b.get("required").and_then(Value::as_array).map(Vec::as_slice) {
            Some([one]) => one.as_str().map(str::to_owned),
            _ => None,
        };
        if let (Some(a), Some(b)) = (branches.first().and_then(only), branches.get(1).and_then(only))
            && names_are_near(&a, &b)
            && branches.len() == 2
        {
            report.add(
                R::EitherName,
                &at,
                format!("either `{a}` or `{b}` is required: an old and a new name?"),
            );
        }
        return;
    }
    let objects: Vec<&Value> = branches.iter().copied().filter(|b| !read.properties(b).is_empty()).collect();
    if objects.len() >= 2 {
        let told_apart = read.properties(objects[0]).iter().any(|(name, _)| {
            let values: Vec<Option<Vec<&Value>>> = objects
                .iter()
                .map(|b| read.properties(b).iter().find(|(n, _)| n == name).and_then(|(_, v)| read.listed(v)))
                .collect();
            values.iter().enumerate().all(|(n, v)| {
                v.as_ref().is_some_and(|v| {
                    values.iter().take(n).flatten().all(|other| v.iter().all(|x| !other.contains(x)))
                })
            })
        });
        if !told_apart {
            report.add(
                R::EitherShape,
                &at,
                format!("{what} has one of {} shapes, and no field says which", objects.len()),
            );
        }
        return;
    }
    let listed = branches.iter().find(|b| read.listed(b).is_some_and(|v| v.iter().any(|x| x.is_string())));
    let free = branches.iter().find(|b| {
        let t = read.types(b);
        read.typed(b)
            && t.contains("string")
            && read.listed(b).is_none()
            && !["pattern", "format"].iter().any(|k| b.get(*k).is_some())
    });
    if listed.is_some() && free.is_some() {
        report.add(R::TextOrEnum, &at, format!("{what} is an enum or any text: the enum checks nothing"));
        return;
    }
    let mut kinds: Vec<&str> = Vec::new();
    for branch in &branches {
        let own = read.types(branch);
        let typed = read.typed(branch) && read.listed(branch).is_none();
        for kind in own.iter().filter(|t| **t != "null" && !(**t == "integer" && own.contains("number"))) {
            if typed && !kinds.contains(kind) {
                kinds.push(kind);
            }
        }
    }
    if kinds.contains(&"number") {
        kinds.retain(|k| *k != "integer");
    }
    if kinds.len() >= 2 && kinds.len() <= 4 {
        either_type(&kinds, node, key, report);
    }
}

/// Two optional arguments of which one is the other's old name.
fn names(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    let Some(Value::Object(table)) = node.map.get("properties") else { return };
    if table.len() > 200 {
        return;
    }
    let required = read.required(node.value);
    let optional: Vec<(&String, &Value)> =
        table.iter().filter(|(n, _)| !required.contains(&n.as_str())).collect();
    for (n, (old, a)) in optional.iter().enumerate() {
        for (new, b) in optional.iter().skip(n + 1) {
            if folded(old) == folded(new) {
                continue; // another rule's
            }
            let (text_a, text_b) = (read.description(a), read.description(b));
            let same =
                same_but_for_text(a, b) && names_are_near(old, new) && !text_a.is_empty() && text_a == text_b;
            let speaks = |text: &str, other: &str| {
                let hints = [
                    "alias",
                    "deprecated",
                    "legacy",
                    "renamed",
                    "instead",
                    "replaces",
                    "formerly",
                    "synonym",
                ];
                let own = words(text);
                let names_other = own.windows(words(other).len().max(1)).any(|w| w == words(other));
                names_other && own.iter().any(|w| hints.contains(&w.as_str()))
            };
            if same || speaks(text_a, new) || speaks(text_b, old) {
                report.add(
                    R::EitherName,
                    &format!("{}/properties/{}", node.pointer, crate::pointer::escape(new)),
                    format!("`{old}` and `{new}` are one argument under two names"),
                );
            }
        }
    }
}
