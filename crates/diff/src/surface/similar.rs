//! How alike two tools are: names, descriptions, arguments.

use std::collections::BTreeSet;

use lastcall_contract::Definition;
use serde_json::Value;

use crate::doc::SchemaDoc;
use crate::near::names_are_near;
use crate::places::{properties, same_but_for_text};
use crate::rules::words_of_name;

/// From here two left-over tools are taken for one, of 100.
const ENOUGH: u32 = 45;
/// Words that say nothing about what a tool does.
const SMALL: [&str; 14] =
    ["a", "an", "the", "of", "for", "to", "in", "on", "and", "or", "by", "with", "from", "that"];

/// The likeness of two tools in percent and in words; `None` below the threshold.
pub(super) fn similarity(old: &Definition, new: &Definition) -> Option<(u32, String)> {
    let same_schema = same_but_for_text(&old.input_schema, &new.input_schema);
    let near = names_are_near(&old.name, &new.name);
    let names = shared(&words(&old.name), &words(&new.name));
    let text = |d: &Definition| d.description.as_deref().map(prose).unwrap_or_default();
    let (x, y) = (text(old), text(new));
    let told = shared(&x, &y);
    let (a, b) = (argument_names(old), argument_names(new));
    let arguments = match (a.is_empty(), b.is_empty()) {
        (true, true) => None,
        _ => Some(arguments(&a, &b)),
    };
    let by_name = if near { 100 } else { names };
    let score = match arguments {
        Some(arguments) if same_schema => (arguments * 5 + told * 2 + by_name * 3) / 10,
        Some(arguments) => (arguments * 5 + told * 3 + by_name * 2) / 10,
        None => (told + by_name) / 2,
    };
    if score < ENOUGH || (by_name == 0 && told < 50) {
        return None;
    }
    let mut evidence = Vec::new();
    if same_schema && arguments.is_some() {
        evidence.push("same arguments".to_owned());
    } else if let Some(n) = arguments.filter(|n| *n >= 30) {
        evidence.push(format!("{n} % of the arguments alike"));
    }
    if near {
        evidence.push("near name".to_owned());
    } else if names > 0 {
        evidence.push("words of the name in common".to_owned());
    }
    if told >= 50 {
        evidence.push("similar description".to_owned());
    }
    Some((score, evidence.join(", ")))
}

/// Why an old tool looks like a part of the new one: its arguments are all there, the names share a word, and the new
/// tool has an enum that the old one has not and that names the part.
pub(super) fn merged_into(old: &Definition, new: &Definition) -> Option<String> {
    let (a, b) = (argument_names(old), argument_names(new));
    let kept = a.iter().filter(|x| b.iter().any(|y| x == &y || same_name(x, y))).count();
    if a.is_empty() || kept * 5 < a.len() * 4 {
        return None;
    }
    let (old_words, new_words) = (words(&old.name), words(&new.name));
    let root = |w: &str| w.trim_end_matches('s').to_owned();
    let common =
        |x: &BTreeSet<String>, y: &BTreeSet<String>| x.iter().any(|w| y.iter().any(|v| root(w) == root(v)));
    if !common(&old_words, &new_words) {
        return None;
    }
    let doc = SchemaDoc::of_draft(new.input_schema.clone(), new.draft);
    let mut nodes = Vec::new();
    doc.conjuncts(doc.root(), &mut nodes);
    for (name, schemas) in properties(&nodes).into_iter().filter(|(name, _)| !a.contains(*name)) {
        for value in
            schemas.iter().filter_map(|s| s.get("enum")?.as_array()).flatten().filter_map(Value::as_str)
        {
            if common(&words(value), &old_words) {
                return Some(format!("all arguments are there, and `{name}` names the part (`{value}`)"));
            }
        }
    }
    None
}

fn words(name: &str) -> BTreeSet<String> {
    words_of_name(name).into_iter().filter(|w| !SMALL.contains(&w.as_str())).collect()
}

fn prose(text: &str) -> BTreeSet<String> {
    let all = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    all.filter(|w| !w.is_empty() && !SMALL.contains(&w.as_str())).collect()
}

fn argument_names(definition: &Definition) -> BTreeSet<String> {
    let doc = SchemaDoc::of_draft(definition.input_schema.clone(), definition.draft);
    let mut nodes = Vec::new();
    doc.conjuncts(doc.root(), &mut nodes);
    properties(&nodes).into_keys().map(str::to_owned).collect()
}

fn same_name(a: &str, b: &str) -> bool {
    words(a) == words(b)
}

/// Words in common, in percent of all.
fn shared(a: &BTreeSet<String>, b: &BTreeSet<String>) -> u32 {
    let all = a.union(b).count();
    let percent = (a.intersection(b).count() * 100).checked_div(all).unwrap_or(0);
    u32::try_from(percent).unwrap_or(0)
}

/// Arguments in common, in percent of all; a near name counts half.
fn arguments(a: &BTreeSet<String>, b: &BTreeSet<String>) -> u32 {
    let equal = a.intersection(b).count();
    let left =
        |x: &BTreeSet<String>, y: &BTreeSet<String>| -> Vec<String> { x.difference(y).cloned().collect() };
    let (gone, mut come) = (left(a, b), left(b, a));
    let (gone_all, come_all) = (gone.len(), come.len());
    let mut near = 0;
    for name in &gone {
        if let Some(at) = come.iter().position(|other| names_are_near(name, other)) {
            come.remove(at);
            near += 1;
        }
    }
    let all = equal + near + (gone_all - near) + (come_all - near);
    let percent = ((equal * 2 + near) * 50).checked_div(all).unwrap_or(0);
    u32::try_from(percent).unwrap_or(0)
}
