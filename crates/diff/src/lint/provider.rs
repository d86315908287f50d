//! What providers demand of a definition: strict modes and subsets ([`Profile`]).

use std::collections::HashSet;

use lastcall_contract::Source;
use serde_json::{Value, json};

use super::edit::Edit;
use super::nodes::{Read, Role};
use super::rules::RuleId as R;
use super::{Report, listed};
use crate::profile::Profile;

/// Whether a provider takes this tool name; `None` where it says nothing about names.
pub(super) fn name_fits(source: Source, name: &str) -> Option<bool> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match source {
        Source::OpenaiChat | Source::OpenaiResponses | Source::Anthropic => {
            Some(!name.is_empty() && name.len() <= 64 && name.chars().all(plain))
        }
        Source::Gemini => Some(
            name.len() <= 128
                && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| plain(c) || matches!(c, '.' | ':')),
        ),
        Source::Mcp | Source::Neutral | Source::JsonSchema => None,
    }
}

pub(super) fn check(read: &Read<'_>, asked: &[Profile], report: &mut Report<'_>) {
    let definition = read.definition;
    let openai = matches!(definition.source, Source::OpenaiChat | Source::OpenaiResponses);
    let strict = definition.strict == Some(true);
    let subset = definition.source == Source::Gemini && read.schema_at.ends_with("/parameters");
    for profile in Profile::ALL {
        let own = match profile {
            Profile::OpenaiStrict => strict && (openai || definition.source == Source::Neutral),
            Profile::AnthropicStrict => strict && definition.source == Source::Anthropic,
            Profile::Gemini => subset,
        };
        if own || asked.contains(&profile) {
            match profile {
                Profile::OpenaiStrict => openai_strict(read, own, report),
                Profile::AnthropicStrict => anthropic_strict(read, own, report),
                Profile::Gemini => gemini(read, own, report),
            }
        }
    }
    if openai && definition.strict.is_none() {
        let message = format!("`{}` does not say whether it is strict", definition.name);
        report.add(R::StrictUnstated, read.body, message);
    }
}

/// Keywords that speak of an object's members.
const OF_MEMBERS: [&str; 4] = ["properties", "patternProperties", "required", "propertyNames"];

/// Keywords whose schemas speak of the same value.
const BESIDE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// The nodes that cannot be closed by themselves, by address: another one speaks of members of the same object, and each
/// would refuse what the other declares.
fn entangled(read: &Read<'_>) -> HashSet<usize> {
    let speaks = |v: &Value| OF_MEMBERS.iter().any(|key| v.get(*key).is_some());
    let mut all = HashSet::new();
    for node in &read.nodes {
        let parted =
            BESIDE.iter().any(|key| node.map.contains_key(*key)) || read.doc.reference(node.value).is_some();
        if !parted && node.role != Role::Part {
            continue;
        }
        let group = beside(read, node.value);
        // alternatives alone, each of them looked at by itself
        let only = |key: &str| {
            node.map.contains_key(key) && BESIDE.iter().all(|k| *k == key || !node.map.contains_key(*k))
        };
        let union = (only("anyOf") || only("oneOf"))
            && !speaks(node.value)
            && read.doc.reference(node.value).is_none();
        let several = group.iter().filter(|v| speaks(v)).count() > 1 && !union;
        if several || node.role == Role::Part {
            all.extend(group.into_iter().map(address));
        }
    }
    all
}

/// Every node that may speak of the same value as this one, itself included.
fn beside<'a>(read: &Read<'a>, value: &'a Value) -> Vec<&'a Value> {
    let (mut out, mut seen, mut open) = (Vec::new(), HashSet::new(), vec![value]);
    while let Some(node) = open.pop() {
        if !node.is_object() || !seen.insert(address(node)) {
            continue;
        }
        out.push(node);
        open.extend(read.doc.reference(node));
        for (key, child) in BESIDE.iter().filter_map(|key| Some((*key, node.get(*key)?))) {
            match child {
                Value::Array(list) => open.extend(list),
                Value::Object(table) if key.starts_with("depend") => open.extend(table.values()),
                one => open.push(one),
            }
        }
    }
    out
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// Objects of a schema that lack `additionalProperties: false`. The change is safe only where strict mode is on already:
/// the provider refuses the definition without it.
/// An object that lists no properties takes any, and one that shares its value with others is not closed by itself: closed,
/// both would take nothing.
fn open_objects(read: &Read<'_>, rule: R, own: bool, report: &mut Report<'_>) {
    let entangled = if own { entangled(read) } else { HashSet::new() };
    for node in &read.nodes {
        let object = node.map.contains_key("properties")
            || node.map.get("type").is_some_and(|t| {
                t == "object" || t.as_array().is_some_and(|l| l.iter().any(|t| t == "object"))
            });
        if !object || node.map.get("additionalProperties") == Some(&Value::Bool(false)) {
            continue;
        }
        let what = node.name().map_or_else(|| "an object".to_owned(), |n| format!("`{n}`"));
        let message = format!("{what} does not forbid further arguments");
        let found = report.add(rule, &node.pointer, message);
        let listed = node.map.contains_key("properties") && !node.map.contains_key("patternProperties");
        let said =
            node.map.contains_key("additionalProperties") || node.map.contains_key("unevaluatedProperties");
        if own && listed && !said && !entangled.contains(&address(node.value)) {
            found.edits = vec![Edit::Insert {
                pointer: node.pointer.clone(),
                key: "additionalProperties".to_owned(),
                value: json!(false),
            }];
        }
    }
}

fn openai_strict(read: &Read<'_>, own: bool, report: &mut Report<'_>) {
    open_objects(read, R::OpenaiStrictOpen, own, report);
    let root = read.doc.root();
    if root.get("type").and_then(Value::as_str) != Some("object") || root.get("anyOf").is_some() {
        report.add(R::OpenaiStrictRoot, &read.schema_at, "the root is not a plain object");
    }
    let (mut properties, mut values, mut names, mut deepest) = (0usize, 0usize, 0usize, 0usize);
    for node in &read.nodes {
        if let Some(Value::Object(table)) = node.map.get("properties") {
            let required = read.required(node.value);
            let missing: Vec<&str> =
                table.keys().map(String::as_str).filter(|n| !required.contains(n)).collect();
            if !missing.is_empty() {
                let message = format!("not in `required`: {}", listed(&missing));
                report.add(R::OpenaiStrictOptional, &format!("{}/properties", node.pointer), message);
            }
            properties += table.len();
            names += table.keys().map(|k| k.chars().count()).sum::<usize>();
            let level =
                node.inside.matches("/properties/").count() + node.inside.matches("/items").count() + 1;
            deepest = deepest.max(level);
        }
        if let Some(Value::Array(list)) = node.map.get("enum") {
            values += list.len();
            names += list.iter().filter_map(Value::as_str).map(|s| s.chars().count()).sum::<usize>();
        }
    }
    outside(read, Profile::OpenaiStrict, R::OpenaiStrictKeyword, report);
    for (count, most, what) in [
        (properties, 5_000, "properties"),
        (deepest, 10, "levels of objects"),
        (values, 1_000, "enum values"),
        (names, 120_000, "characters of names and values"),
    ] {
        if count > most {
            report.add(R::OpenaiStrictLimit, &read.schema_at, format!("{count} {what}, more than {most}"));
        }
    }
}

fn anthropic_strict(read: &Read<'_>, own: bool, report: &mut Report<'_>) {
    open_objects(read, R::AnthropicStrictOpen, own, report);
    outside(read, Profile::AnthropicStrict, R::AnthropicStrictKeyword, report);
    for (n, node) in read.nodes.iter().enumerate() {
        if let Some(target) = read.doc.reference(node.value)
            && contains(read, target, n)
        {
            let message = "the schema refers to itself, which strict mode does not take";
            report.add(R::AnthropicStrictRecursion, &format!("{}/$ref", node.pointer), message);
        }
    }
}

/// Whether the node lies inside the target, directly or through references.
fn contains(read: &Read<'_>, target: &Value, node: usize) -> bool {
    let place = |v: &Value| read.nodes.iter().position(|n| std::ptr::eq(n.value, v));
    let mut seen = vec![false; read.nodes.len()];
    let mut open: Vec<usize> = place(target).into_iter().collect();
    while let Some(at) = open.pop() {
        if at == node {
            return true;
        }
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        open.extend(read.nodes.iter().enumerate().filter(|(_, n)| n.parent == Some(at)).map(|(i, _)| i));
        if let Some(next) = read.nodes.get(at).and_then(|n| read.doc.reference(n.value)).and_then(place) {
            open.push(next);
        }
    }
    false
}

fn gemini(read: &Read<'_>, own: bool, report: &mut Report<'_>) {
    for node in &read.nodes {
        for (key, _) in node.map.iter().filter(|(k, v)| !Profile::Gemini.takes(k, v)) {
            // a definition of another provider is translated by its client, which drops the draft
            if !own && key == "$schema" {
                continue;
            }
            let null =
                node.map.get("type").and_then(Value::as_array).is_some_and(|t| t.iter().any(|t| t == "null"));
            let what = match key.as_str() {
                "type" if null => "a list of types, `null` among them (write `nullable: true`), is",
                "type" => "a list of types is",
                _ => &format!("`{key}` is"),
            };
            report.add(
                R::GeminiKeyword,
                &format!("{}/{}", node.pointer, crate::pointer::escape(key)),
                format!("{what} outside the subset that Gemini's `parameters` takes"),
            );
        }
    }
}

/// Keywords that a strict mode does not take.
fn outside(read: &Read<'_>, profile: Profile, rule: R, report: &mut Report<'_>) {
    for node in &read.nodes {
        for (key, _) in node.map.iter().filter(|(k, v)| !profile.takes(k, v)) {
            let message = match key.as_str() {
                "minItems" => "`minItems` may be 0 or 1 in strict mode".to_owned(),
                _ => format!("`{key}` is outside the strict subset"),
            };
            report.add(rule, &format!("{}/{key}", node.pointer), message);
        }
    }
}
