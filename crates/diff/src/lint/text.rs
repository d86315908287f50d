//! What the model reads: names and descriptions.

use std::collections::HashMap;

use lastcall_contract::{SideEffect, Source};
use serde_json::Value;

use super::nodes::{Node, Read, Role};
use super::provider::name_fits;
use super::rules::RuleId as R;
use super::words::{CHANGES, PERMISSIONS, QUANTITIES, UNITS, VAGUE, folded, is_english, speaks_of, words};
use super::{Known, Report, listed};

pub(super) fn check(read: &Read<'_>, known: &Known, report: &mut Report<'_>) {
    tool(read, known, report);
    for node in &read.nodes {
        if node.name().is_some() {
            argument(read, node, report);
        }
        siblings(node, report);
    }
    absence(read, report);
    ranges(read, report);
}

fn tool(read: &Read<'_>, known: &Known, report: &mut Report<'_>) {
    let definition = read.definition;
    let named = definition.source != Source::JsonSchema;
    let at = |key: &str| format!("{}/{key}", read.body);
    let description = definition.description.as_deref().unwrap_or_default().trim();
    let of_schema = read.doc.root().get("description").and_then(Value::as_str).unwrap_or_default().trim();
    let description = if description.is_empty() { of_schema } else { description };
    if description.is_empty() {
        report.add(
            R::ToolDescriptionMissing,
            read.body,
            format!("the tool `{}` has no description", definition.name),
        );
    } else if is_english(description)
        && (words(description).len() < 3 || folded(description) == folded(&definition.name))
    {
        let place = if named { at("description") } else { "/description".to_owned() };
        let message = "the description of the tool says little more than its name";
        report.add(R::ToolDescriptionThin, &place, message);
    }
    let name_words = words(&definition.name);
    if named && name_words.iter().any(|w| is_version(w)) {
        let message = format!("the tool name `{}` carries a version", definition.name);
        report.add(R::VersionInName, &at("name"), message);
    }
    if named && name_fits(definition.source, &definition.name) == Some(false) {
        let message = format!("{} refuses the tool name `{}`", definition.source, definition.name);
        report.add(R::ToolNameRefused, &at("name"), message);
    } else if named && name_fits(Source::OpenaiChat, &definition.name) == Some(false) {
        let message = format!("OpenAI and Anthropic refuse the tool name `{}`", definition.name);
        report.add(R::ToolNameNotPortable, &at("name"), message);
    }
    let hint = |key: &str| definition.annotations.as_ref().and_then(|a| a.get(key)).and_then(Value::as_bool);
    let changes = match known.side_effect {
        Some(effect) => effect != SideEffect::Read,
        None => match hint("readOnlyHint") {
            Some(read_only) => !read_only,
            None => name_words.first().is_some_and(|w| CHANGES.contains(&w.as_str())),
        },
    };
    let texts = read.nodes.iter().filter_map(|n| n.text("description"));
    let spoken = texts.chain([description]).any(|text| speaks_of(text, PERMISSIONS));
    if changes && !spoken && (description.is_empty() || is_english(description)) {
        let message = format!("`{}` changes the world and does not say who may use it", definition.name);
        report.add(R::PermissionUnstated, read.body, message);
    }
}

/// `v2`, `old`, `legacy` …
fn is_version(word: &str) -> bool {
    let numbered =
        word.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    numbered || matches!(word, "old" | "legacy" | "deprecated" | "obsolete")
}

fn argument(read: &Read<'_>, node: &Node<'_>, report: &mut Report<'_>) {
    let Some(name) = node.name() else { return };
    let description = read.description(node.value);
    let at = node.pointer.clone();
    if description.is_empty() {
        report.add(R::ArgumentDescriptionMissing, &at, format!("`{name}` has no description"));
    } else if folded(description) == folded(name) || folded(description) == format!("the{}", folded(name)) {
        report.add(
            R::DescriptionRepeatsName,
            &format!("{at}/description"),
            format!("the description of `{name}` is its name again"),
        );
    }
    let own = words(name);
    if own.iter().any(|w| is_version(w)) {
        report.add(R::VersionInName, &at, format!("`{name}` carries a version in its name"));
    }
    let vague = own.len() == 1 && own.first().is_some_and(|w| VAGUE.contains(&w.as_str()));
    let thin = description.is_empty() || (is_english(description) && words(description).len() < 3);
    if vague && thin {
        report.add(R::VagueName, &at, format!("`{name}` says nothing about what it holds"));
    }
    let types = read.types(node.value);
    let number = read.typed(node.value) && types.contains("integer") && !types.contains("string");
    let judged = description.is_empty() || is_english(description);
    if number && judged && own.iter().any(|w| QUANTITIES.contains(&w.as_str())) {
        let signs = ['%', '$', '€', '£', '¥', '°'];
        let stated = own.iter().any(|w| UNITS.contains(&w.as_str()))
            || speaks_of(description, UNITS)
            || description.contains(signs)
            || node.map.keys().any(|k| k.trim_start_matches("x-") == "unit")
            || page_size(&own);
        if !stated {
            report.add(R::UnitUnstated, &at, format!("`{name}` is a quantity without a unit"));
        }
    }
    let optional = !read.is_required(node);
    let has_default = read.together(node.value).iter().any(|v| v.get("default").is_some());
    if optional && !has_default && default_in_words(description) {
        report.add(
            R::DefaultOnlyInText,
            &at,
            format!("the description of `{name}` names a default that the schema does not state"),
        );
    }
    let deprecated = node.map.get("deprecated") == Some(&Value::Bool(true))
        || (is_english(description) && words(description).first().is_some_and(|w| w == "deprecated"));
    if deprecated {
        let parent = node.parent.and_then(|p| read.nodes.get(p));
        let others = parent.map(|p| read.properties(p.value)).unwrap_or_default();
        let told = words(description).windows(2).any(|w| w[0] == "no" && w[1] == "replacement")
            || others.iter().any(|(other, _)| *other != name && description.contains(other));
        if !told {
            report.add(
                R::DeprecatedWithoutSuccessor,
                &at,
                format!("`{name}` is deprecated, and nothing says what replaces it"),
            );
        }
    }
    codes(node, name, description, report);
}

/// `page_size`, `batch_size` and the like count things.
fn page_size(own: &[String]) -> bool {
    let counted =
        ["page", "batch", "sample", "group", "party", "pool", "chunk", "window", "font", "family", "team"];
    own.iter().any(|w| w == "size") && own.iter().any(|w| counted.contains(&w.as_str()))
}

/// "default is", "defaults to", "default: …".
fn default_in_words(description: &str) -> bool {
    let all = words(description);
    all.windows(2).any(|w| {
        (w[0] == "defaults" && w[1] == "to") || (w[0] == "default" && matches!(w[1].as_str(), "is" | "value"))
    }) || description.to_ascii_lowercase().contains("default:")
}

/// An enum of short codes.
fn codes(node: &Node<'_>, name: &str, description: &str, report: &mut Report<'_>) {
    let Some(Value::Array(values)) = node.map.get("enum") else { return };
    let short = |v: &Value| match v {
        Value::String(s) => s.chars().count() <= 3,
        Value::Number(_) => true,
        _ => false,
    };
    let plain: Vec<&Value> = values.iter().filter(|v| !v.is_null()).collect();
    if plain.len() < 2 || !plain.iter().all(|v| short(v)) {
        return;
    }
    let told = words(description);
    let mentioned = plain
        .iter()
        .filter(|v| {
            let text = v.as_str().map_or_else(|| v.to_string(), str::to_owned).to_lowercase();
            told.contains(&text) || (!text.chars().all(char::is_alphanumeric) && description.contains(&text))
        })
        .count();
    let words_as_values = plain.iter().all(|v| {
        matches!(v.as_str(), Some(s) if matches!(s.to_ascii_lowercase().as_str(),
            "asc" | "yes" | "no" | "on" | "off" | "all" | "any" | "low" | "new" | "and" | "or" | "min" | "max" | "day" | "url"
            | "get" | "put" | "usd" | "eur" | "gbp" | "jpy" | "cny" | "pdf" | "csv" | "xml" | "png" | "jpg" | "sms"))
    });
    if mentioned * 2 < plain.len() && !words_as_values {
        report.add(
            R::EnumUnexplained,
            &format!("{}/enum", node.pointer),
            format!("the values of `{name}` are codes, and the description does not say what they mean"),
        );
    }
}

/// Names beside each other.
fn siblings(node: &Node<'_>, report: &mut Report<'_>) {
    let Some(Value::Object(table)) = node.map.get("properties") else { return };
    let names: Vec<&String> = table.keys().collect();
    let mut spelt: HashMap<String, &String> = HashMap::new();
    for name in names.iter().copied() {
        let key = folded(name);
        let other = if key.is_empty() { name } else { *spelt.entry(key).or_insert(name) };
        if other != name {
            report.add(
                R::NamesDifferInSpelling,
                &format!("{}/properties/{}", node.pointer, crate::pointer::escape(name)),
                format!("`{other}` and `{name}` differ in spelling only"),
            );
        }
    }
    let snake = names.iter().find(|n| n.contains('_') && !n.chars().any(char::is_uppercase));
    let camel = names
        .iter()
        .find(|n| !n.contains('_') && n.starts_with(char::is_lowercase) && n.chars().any(char::is_uppercase));
    if let (Some(snake), Some(camel)) = (snake, camel) {
        report.add(
            R::NameStylesMixed,
            &format!("{}/properties", node.pointer),
            format!("`{snake}` and `{camel}` follow two styles"),
        );
    }
}

/// Optional arguments of the call whose absence has no stated meaning.
fn absence(read: &Read<'_>, report: &mut Report<'_>) {
    let said = [
        "default",
        "defaults",
        "omit",
        "omitted",
        "absent",
        "unless",
        "otherwise",
        "empty",
        "missing",
        "without",
    ];
    let required = read.required(read.doc.root());
    let silent: Vec<&str> = read
        .properties(read.doc.root())
        .into_iter()
        .filter(|(name, value)| {
            let text = read.description(value);
            let stated =
                read.together(value).iter().any(|v| v.get("default").is_some() || v.get("const").is_some());
            let phrase = text.to_lowercase();
            let told = speaks_of(text, &said)
                || ["if not ", "if none", "not provided", "null means", "left out"]
                    .iter()
                    .any(|p| phrase.contains(p));
            !required.contains(name) && !stated && !told && (text.is_empty() || is_english(text))
        })
        .map(|(name, _)| name)
        .collect();
    if !silent.is_empty() {
        report.add(
            R::DefaultUnstated,
            &format!("{}/properties", read.schema_at),
            format!("nothing says what the absence of {} means", listed(&silent)),
        );
    }
}

/// Numbers without limits.
fn ranges(read: &Read<'_>, report: &mut Report<'_>) {
    let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"];
    let open: Vec<&str> = read
        .nodes
        .iter()
        .filter_map(|node| {
            let name = node.name()?;
            let all = read.together(node.value);
            let stated = all.iter().any(|v| bounds.iter().any(|b| v.get(*b).is_some()));
            let types = read.types(node.value);
            let number = read.typed(node.value) && types.contains("integer") && !types.contains("string");
            let text = read.description(node.value);
            let told = text.chars().any(|c| c.is_ascii_digit())
                || speaks_of(
                    text,
                    &["maximum", "minimum", "max", "min", "most", "least", "between", "positive"],
                );
            let judged = text.is_empty() || is_english(text);
            (number && !stated && !told && judged && node.role != Role::Root).then_some(name)
        })
        .collect();
    if !open.is_empty() {
        report.add(
            R::RangeUnstated,
            &format!("{}/properties", read.schema_at),
            format!("nothing says how small or large {} may be", listed(&open)),
        );
    }
}
