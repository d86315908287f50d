//! Keywords: unknown ones, those of other drafts and of OpenAPI, and those without effect.

use lastcall_contract::{Draft, Source};
use serde_json::{Value, json};

use super::Report;
use super::edit::Edit;
use super::nodes::{Node, Read, Role};
use super::rules::RuleId as R;

/// Every keyword of draft-04 to 2020-12.
const KNOWN: [&str; 67] = [
    "$schema",
    "$id",
    "id",
    "$ref",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "type",
    "enum",
    "const",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "maxItems",
    "minItems",
    "uniqueItems",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "required",
    "minProperties",
    "maxProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "extends",
    "propertyOrdering",
    "cache_control",
    "unit",
];

const OPENAPI: [&str; 6] = ["nullable", "example", "discriminator", "xml", "externalDocs", "x-nullable"];

/// Keywords that speak of one type only.
const OF_TYPE: [(&str, &[&str]); 4] = [
    ("string", &["minLength", "maxLength", "pattern"]),
    ("integer", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ("array", &["minItems", "maxItems", "uniqueItems", "items", "prefixItems", "contains"]),
    (
        "object",
        &[
            "properties",
            "required",
            "additionalProperties",
            "minProperties",
            "maxProperties",
            "patternProperties",
            "propertyNames",
        ],
    ),
];

pub(super) fn check(read: &Read<'_>, report: &mut Report<'_>) {
    let translated = read.definition.source == Source::Gemini && read.schema_at.ends_with("/parameters");
    for node in &read.nodes {
        for (key, value) in node.map {
            unknown(node, key, value, translated, report);
            if let Some(why) = other_draft(read.draft, key) {
                let message = format!("`{key}` {why}");
                report.add(R::KeywordOtherDraft, &format!("{}/{key}", node.pointer), message);
            }
        }
        without_effect(read, node, report);
        declared(read, node, report);
    }
    open_objects(read, report);
}

/// Objects that take what they do not declare: one finding for all of them.
fn open_objects(read: &Read<'_>, report: &mut Report<'_>) {
    let open = |node: &&Node<'_>| {
        let all = read.together(node.value);
        let has = |key: &str| all.iter().any(|v| v.get(key).is_some());
        let whole = !matches!(node.role, Role::Branch | Role::Part);
        whole
            && node.map.contains_key("properties")
            && !has("additionalProperties")
            && !has("unevaluatedProperties")
    };
    let mut objects = read.nodes.iter().filter(open);
    if let Some(first) = objects.next() {
        let what = first.name().map_or_else(|| "the call".to_owned(), |name| format!("`{name}`"));
        let message = match objects.count() {
            0 => format!("{what} takes arguments that it does not declare"),
            1 => format!("{what} and one more object take arguments that they do not declare"),
            n => format!("{what} and {n} more objects take arguments that they do not declare"),
        };
        report.add(R::ExtraFieldsAllowed, &first.pointer, message);
    }
}

fn unknown(node: &Node<'_>, key: &str, value: &Value, translated: bool, report: &mut Report<'_>) {
    let at = format!("{}/{}", node.pointer, crate::pointer::escape(key));
    // OpenAPI's subset is what a translated schema was written in
    if OPENAPI.contains(&key) && !translated {
        let message = format!("`{key}` belongs to OpenAPI and is ignored here");
        let found = report.add(R::KeywordOpenapi, &at, message);
        if key == "example" && !node.map.contains_key("examples") {
            found.edits = vec![
                Edit::Rename { pointer: at.clone(), key: "examples".to_owned() },
                Edit::Replace { pointer: at, value: json!([value]) },
            ];
        }
        return;
    }
    if KNOWN.contains(&key) || key.starts_with("x-") || OPENAPI.contains(&key) {
        return;
    }
    match nearest(key) {
        Some(near) => {
            let found = report.add(
                R::KeywordUnknown,
                &at,
                format!("`{key}` is no keyword; perhaps `{near}` was meant"),
            );
            // what only models read changes no verdict on a call
            let text = matches!(near, "title" | "description") && value.is_string();
            let same = |other: &String| !KNOWN.contains(&other.as_str()) && nearest(other) == Some(near);
            // of two misspellings nobody knows which one counts
            if text && !node.map.contains_key(near) && node.map.keys().filter(|k| same(k)).count() == 1 {
                found.edits = vec![Edit::Rename { pointer: at, key: near.to_owned() }];
            }
        }
        None => {
            report.add(R::KeywordForeign, &at, format!("`{key}` is no keyword of JSON Schema"));
        }
    }
}

/// A known keyword at a distance of at most two edits, one in short words; neighbours that changed places are one.
fn nearest(key: &str) -> Option<&'static str> {
    let given: Vec<char> = key.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).collect();
    if given.len() < 4 || given.len() > 32 {
        return None;
    }
    let limit = if given.len() < 7 { 1 } else { 2 };
    KNOWN
        .iter()
        .filter(|known| !known.starts_with('$'))
        .map(|known| {
            let own: Vec<char> = known.chars().flat_map(char::to_lowercase).collect();
            (crate::near::typing_distance(&given, &own), *known)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, known)| known)
}

/// Why a keyword does not count under this draft.
fn other_draft(draft: Draft, key: &str) -> Option<String> {
    let old = matches!(draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7);
    let since = |from: &str| Some(format!("comes from {from} and is ignored in {draft}"));
    match key {
        "additionalItems" if draft == Draft::Draft202012 => since("an older draft"),
        "dependencies" if !old => since("an older draft"),
        "$recursiveRef" if draft != Draft::Draft201909 => since("2019-09"),
        "prefixItems" | "$dynamicRef" if draft != Draft::Draft202012 => since("2020-12"),
        "unevaluatedProperties"
        | "unevaluatedItems"
        | "dependentRequired"
        | "dependentSchemas"
        | "minContains"
        | "maxContains"
            if old =>
        {
            since("2019-09")
        }
        "if" | "then" | "else" if matches!(draft, Draft::Draft4 | Draft::Draft6) => since("draft-07"),
        "const" | "contains" | "propertyNames" if draft == Draft::Draft4 => since("draft-06"),
        _ => None,
    }
}

fn without_effect(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    let mut idle: Vec<(&str, String)> = Vec::new();
    if node.map.get("type").is_some() {
        let types = read.types(node.value);
        for (kind, keys) in OF_TYPE {
            if types.contains(kind) {
                continue;
            }
            idle.extend(
                keys.iter()
                    .filter(|k| node.map.contains_key(**k))
                    .map(|k| (*k, format!("speaks of {kind}s"))),
            );
        }
    }
    for (key, needs) in
        [("then", "if"), ("else", "if"), ("minContains", "contains"), ("maxContains", "contains")]
    {
        if node.map.contains_key(key) && !node.map.contains_key(needs) {
            idle.push((key, format!("needs `{needs}` beside it")));
        }
    }
    let alone = matches!(read.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7);
    if alone && node.map.contains_key("$ref") {
        let text =
            ["$ref", "$schema", "$id", "id", "$comment", "title", "description", "definitions", "$defs"];
        idle.extend(
            node.map
                .keys()
                .filter(|k| !text.contains(&k.as_str()) && KNOWN.contains(&k.as_str()))
                .map(|k| (k.as_str(), format!("stands beside `$ref`, which counts alone in {}", read.draft))),
        );
    }
    for (key, why) in idle {
        let message = format!("`{key}` {why} and has no effect here");
        report.add(R::KeywordWithoutEffect, &format!("{}/{key}", node.pointer), message);
    }
}

/// Types, items, members.
fn declared(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    let all = read.together(node.value);
    let says = |keys: &[&str]| all.iter().any(|v| keys.iter().any(|k| v.get(*k).is_some()));
    let typed =
        says(&["type", "enum", "const", "anyOf", "oneOf", "not", "if", "$dynamicRef", "$recursiveRef"]);
    if let Some(name) = node.name()
        && !typed
        && !says(&["properties", "items"])
    {
        report.add(R::TypeMissing, &node.pointer, format!("`{name}` has no type: anything is valid"));
    }
    let only = |kind: &str| {
        let types = read.types(node.value);
        read.typed(node.value) && types.contains(kind) && types.iter().all(|t| *t == kind || *t == "null")
    };
    let listed = says(&["enum", "const"]);
    let own_type = node.map.contains_key("type");
    if own_type
        && only("array")
        && !says(&["items", "prefixItems", "contains", "unevaluatedItems"])
        && !listed
    {
        let message = "a list that does not say what its items are";
        report.add(R::ItemsMissing, &node.pointer, message);
    }
    let members = [
        "properties",
        "patternProperties",
        "additionalProperties",
        "anyOf",
        "oneOf",
        "unevaluatedProperties",
    ];
    let inner = matches!(node.role, Role::Property(_) | Role::Member);
    if own_type && inner && only("object") && !says(&members) && !listed {
        report.add(R::ObjectFreeForm, &node.pointer, "an object that does not say what is in it");
    }
    if node.role == Role::Root && !read.typed(node.value) {
        let found = report.add(R::RootNotObject, &node.pointer, "the root does not say that it is an object");
        if !node.map.contains_key("$ref") {
            found.edits = vec![Edit::Insert {
                pointer: node.pointer.clone(),
                key: "type".to_owned(),
                value: json!("object"),
            }];
        }
    }
}
