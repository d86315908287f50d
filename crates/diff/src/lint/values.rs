//! Values and bounds: enums, defaults, examples, required names, contradictions, dead branches.

use std::collections::{BTreeSet, HashMap};

use lastcall_contract::validator_for;
use serde_json::{Map, Value};

use super::edit::Edit;
use super::nodes::{Node, Read, Role};
use super::rules::{RuleId as R, Severity};
use super::words::folded;
use super::{Report, shown};
use crate::places::same_but_for_text;
use crate::synth::part;

pub(super) fn check(read: &Read<'_>, report: &mut Report<'_>) {
    for node in &read.nodes {
        listed(read, node, report);
        samples(read, node, report);
        required(read, node, report);
        contradiction(read, node, report);
        branches(read, node, report);
        absence(read, node, report);
    }
}

/// Whether the node's own schema accepts a value; `None` where it cannot be compiled alone.
fn test(read: &Read<'_>, node: &Node<'_>, without: Option<&str>) -> Option<jsonschema::Validator> {
    if !refers(node.value) {
        // it speaks for itself: the rest of the document is not compiled again for each node
        let mut alone = node.map.clone();
        if let Some(key) = without {
            alone.remove(key);
        }
        return validator_for(&Value::Object(alone), read.draft).ok();
    }
    let mut root = read.doc.root().clone();
    if let Some(key) = without {
        root.pointer_mut(&node.inside)?.as_object_mut()?.remove(key);
    }
    validator_for(&part(&root, read.draft, &node.inside), read.draft).ok()
}

/// Whether a reference, or a name that one may lead to, stands somewhere in it.
fn refers(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, v)| {
            matches!(key.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef" | "$id" | "id" | "$schema")
                || refers(v)
        }),
        Value::Array(list) => list.iter().any(refers),
        _ => false,
    }
}

fn listed(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    let Some(Value::Array(values)) = node.map.get("enum") else { return };
    let at = format!("{}/enum", node.pointer);
    let mut edits = Vec::new();
    let mut repeated = None;
    let mut seen: HashMap<&Value, Vec<usize>> = HashMap::new();
    for (n, value) in values.iter().enumerate() {
        let before = seen.entry(value).or_default();
        let place = |n: usize| format!("{at}/{n}");
        // more numbers that read as one than this are not held side by side: such a value stays
        if before.iter().take(64).any(|other| read.written_alike(&place(*other), &place(n))) {
            edits.push(Edit::Remove { pointer: place(n) });
            repeated.get_or_insert(value);
        } else {
            before.push(n);
        }
    }
    if let Some(value) = repeated {
        report.add(R::EnumRepeated, &at, format!("the enum lists {} twice", shown(value))).edits = edits;
    }
    let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    // the first of each spelling, by its letters
    let mut spelt: HashMap<String, &str> = HashMap::new();
    let twins = texts.iter().find_map(|text| {
        let key = folded(text);
        if key.is_empty() {
            return None;
        }
        let plain = |t: &str| t.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
        let other = *spelt.entry(key).or_insert(text);
        (other != *text && plain(text) && plain(other)).then_some((other, *text))
    });
    if let Some((one, two)) = twins {
        let message = format!("the enum values `{one}` and `{two}` differ in spelling only");
        report.add(R::EnumCaseTwins, &at, message);
    }
    if let Some(validator) = test(read, node, Some("enum")) {
        for (n, value) in values.iter().enumerate() {
            if !validator.is_valid(value) {
                let message = format!("the enum value {} is refused by the schema beside it", shown(value));
                report.add(R::EnumValueRefused, &format!("{at}/{n}"), message);
            }
        }
        if !values.iter().any(|v| validator.is_valid(v)) {
            never(read, node, report, "none of the enum's values is valid");
        }
    }
}

fn samples(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    let default = node.map.get("default");
    let examples = node.map.get("examples").and_then(Value::as_array);
    let single = node.map.get("example");
    if default.is_none() && examples.is_none() && single.is_none() {
        return;
    }
    let Some(validator) = test(read, node, None) else { return };
    if let Some(value) = default.filter(|v| !validator.is_valid(v)) {
        // SDKs write null for "no default"
        let found = report.add(
            R::DefaultRefused,
            &format!("{}/default", node.pointer),
            format!("the default {} is refused by its own schema", shown(value)),
        );
        if value.is_null() {
            found.severity = Severity::Warning;
        }
    }
    let all = examples.into_iter().flatten().enumerate().map(|(n, v)| (format!("examples/{n}"), v));
    for (place, value) in all.chain(single.map(|v| ("example".to_owned(), v))) {
        if !validator.is_valid(value) {
            report.add(
                R::ExampleRefused,
                &format!("{}/{place}", node.pointer),
                format!("the example {} is refused by its own schema", shown(value)),
            );
        }
    }
}

/// The nodes that speak of the same value as this one, above it: a branch speaks of what its parent declares.
fn declares(read: &Read<'_>, node: &Node<'_>, name: &str) -> (bool, bool) {
    let (mut declared, mut closed) = (false, false);
    let mut at = Some(node);
    while let Some(here) = at {
        let all = read.together(here.value);
        for map in all.iter().filter_map(|v| v.as_object()) {
            let table = |key: &str| map.get(key).and_then(Value::as_object);
            declared |= table("properties").is_some_and(|t| t.contains_key(name))
                || table("patternProperties").is_some_and(|t| !t.is_empty())
                || ["additionalProperties", "unevaluatedProperties"]
                    .iter()
                    .any(|k| map.get(*k).is_some_and(Value::is_object))
                || ["anyOf", "oneOf", "then", "else"].iter().any(|k| inside(map, k, name));
            closed |= map.get("additionalProperties") == Some(&Value::Bool(false));
        }
        at = match here.role {
            Role::Branch | Role::Part => here.parent.and_then(|p| read.nodes.get(p)),
            _ => None,
        };
    }
    (declared, closed)
}

/// Whether a branch declares a name.
fn inside(map: &Map<String, Value>, key: &str, name: &str) -> bool {
    let branches = match map.get(key) {
        Some(Value::Array(list)) => list.iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    branches
        .iter()
        .any(|b| b.get("$ref").is_some() || b.get("properties").is_some_and(|p| p.get(name).is_some()))
}

fn required(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    let Some(Value::Array(names)) = node.map.get("required") else { return };
    if matches!(node.role, Role::Definition) && !node.map.contains_key("properties") {
        return; // a mixin: what it goes with is not known here
    }
    for (n, name) in names.iter().enumerate().filter_map(|(n, v)| Some((n, v.as_str()?))) {
        let (declared, closed) = declares(read, node, name);
        if !declared {
            let message = format!("`{name}` is required and not declared");
            let found = report.add(R::RequiredUndeclared, &format!("{}/required/{n}", node.pointer), message);
            if !closed {
                found.severity = Severity::Warning;
            }
        }
    }
}

fn never(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>, why: &str) {
    let optional = node.role != Role::Root && !read.is_required(node);
    let found = report.add(R::NeverAccepts, &node.pointer, format!("no value can be valid here: {why}"));
    if optional {
        found.severity = Severity::Warning;
    }
}

/// Bounds that cross, types that exclude each other, `false`.
fn contradiction(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    let all = read.together(node.value);
    let types = read.types(node.value);
    if types.is_empty() {
        never(read, node, report, "the types beside each other exclude each other");
        return;
    }
    let strictest = |key: &str, largest: bool| {
        let stated = all.iter().filter_map(|v| v.get(key)?.as_f64());
        if largest { stated.reduce(f64::max) } else { stated.reduce(f64::min) }
    };
    let only = |kind: &str| {
        read.typed(node.value) && types.iter().all(|t| *t == kind || (*t == "integer" && kind == "number"))
    };
    for (low, high, kind) in [
        ("minLength", "maxLength", "string"),
        ("minItems", "maxItems", "array"),
        ("minProperties", "maxProperties", "object"),
    ] {
        if let (Some(l), Some(h)) = (strictest(low, true), strictest(high, false))
            && l > h
            && only(kind)
        {
            never(read, node, report, &format!("`{low}` {l} is above `{high}` {h}"));
        }
    }
    if only("number") {
        let low = strictest("minimum", true).map(|n| (n, false));
        let above = strictest("exclusiveMinimum", true).map(|n| (n, true));
        let high = strictest("maximum", false).map(|n| (n, false));
        let below = strictest("exclusiveMaximum", false).map(|n| (n, true));
        for (l, open_low) in low.into_iter().chain(above) {
            for (h, open_high) in high.into_iter().chain(below) {
                let whole = types.len() == 1 && types.contains("integer");
                let first = if open_low { (l.floor() + 1.0).max(l.ceil()) } else { l.ceil() };
                let last = if open_high { (h.ceil() - 1.0).min(h.floor()) } else { h.floor() };
                let empty = l > h || (l == h && (open_low || open_high)) || (whole && first > last);
                if empty {
                    never(read, node, report, &format!("no number lies between {l} and {h}"));
                    return;
                }
            }
        }
    }
    if let Some(Value::Object(table)) = node.map.get("properties") {
        let names = read.required(node.value);
        for name in table.iter().filter(|(_, v)| **v == Value::Bool(false)).map(|(name, _)| name) {
            if names.contains(&name.as_str()) {
                never(read, node, report, &format!("`{name}` is required and its schema is `false`"));
            }
        }
    }
    let nothing = |v: &Value| v.as_object().is_some_and(Map::is_empty) || *v == Value::Bool(true);
    if node.map.get("not").is_some_and(nothing) {
        never(read, node, report, "`not` refuses everything");
    }
}

fn branches(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(list)) = node.map.get(key) else { continue };
        let beside: Option<BTreeSet<&str>> = node.map.get("type").map(|_| {
            let mut own = node.map.clone();
            own.retain(|k, _| k == "type");
            let own = Value::Object(own);
            crate::places::types(&[&own])
        });
        for (n, branch) in list.iter().enumerate() {
            let at = format!("{}/{key}/{n}", node.pointer);
            if let Some(other) = list.iter().take(n).position(|o| same_but_for_text(o, branch)) {
                report.add(R::BranchRepeated, &at, format!("branch {n} of `{key}` is branch {other} again"));
            }
            let own = read.types(branch);
            let apart = beside.as_ref().is_some_and(|types| own.is_disjoint(types)) && !own.is_empty();
            if apart {
                let message = format!("branch {n} of `{key}` allows none of the types beside it");
                report.add(R::BranchUnreachable, &at, message);
            }
        }
    }
}

/// Defaults of required arguments, and two ways to say nothing.
fn absence(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    let Some(name) = node.name() else { return };
    let needed = read.is_required(node);
    if needed && node.map.contains_key("default") && read.definition.strict != Some(true) {
        let message = format!("`{name}` is required, so its default is never used");
        report.add(R::RequiredWithDefault, &format!("{}/default", node.pointer), message);
    }
    let nullable = (read.typed(node.value) && read.types(node.value).contains("null"))
        || ["anyOf", "oneOf"].iter().any(|k| {
            node.map.get(*k).and_then(Value::as_array).is_some_and(|list| {
                list.iter().any(|b| b.get("type").and_then(Value::as_str) == Some("null"))
            })
        });
    let text = read.description(node.value).to_lowercase();
    if !needed && nullable && !text.contains("null") {
        let message = format!("`{name}` may be left out and may be null");
        report.add(R::TwoWaysToOmit, &node.pointer, message);
    }
}
