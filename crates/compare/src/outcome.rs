//! How two calls ended: status, error class and code, top-level keys and their JSON types. Never bodies.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use lastcall_diff::{escape, join};
use lastcall_event::{Candidate, Json, Outcome, Status, Text};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::category::Category;
use crate::literal::members;
use crate::parse::parse_value;
use crate::refusal::{Judgement, judge};
use crate::side::Side;

/// How much of an outcome a suppression shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Status class and output schema (dry run, sandbox).
    Status,
    /// Also error class and code, keys and types (replica, snapshot).
    Full,
}

/// What is looked at of one side's outcome.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub status: Status,
    pub class: Option<&'a str>,
    pub code: Option<&'a str>,
    pub result: Json<'a>,
    pub keys: Option<&'a [Text<'a>]>,
    pub partial: bool,
}

impl<'a> Ended<'a> {
    pub fn of_production(outcome: &'a Outcome<'a>) -> Self {
        Self {
            status: outcome.status,
            class: outcome.error_class.as_deref(),
            code: outcome.error_code.as_deref(),
            result: outcome.result,
            keys: outcome.result_keys.as_deref(),
            partial: outcome.partial == Some(true),
        }
    }

    pub fn of_candidate(candidate: &'a Candidate<'a>) -> Self {
        Self {
            status: candidate.status,
            class: candidate.error_class.as_deref(),
            code: candidate.error_code.as_deref(),
            result: candidate.result,
            keys: candidate.result_keys.as_deref(),
            partial: candidate.partial == Some(true),
        }
    }
}

/// Differences between two outcomes, as (field, category).
pub(crate) fn compare_outcomes(
    current: Ended<'_>,
    candidate: Ended<'_>,
    depth: Depth,
) -> Vec<(String, Category)> {
    let whole = |category| vec![(String::new(), category)];
    let (a, b) = (current.status, candidate.status);
    if b == Status::PlatformError && a != Status::PlatformError {
        return whole(Category::CandidateError);
    }
    if a == Status::Unknown || b == Status::Unknown {
        return Vec::new();
    }
    match (a == Status::Ok, b == Status::Ok) {
        (true, false) => whole(Category::OutcomeStatusChanged),
        (false, true) => whole(Category::OutcomeRecovered),
        (false, false) => {
            let differs = |x: Option<&str>, y: Option<&str>| matches!((x, y), (Some(x), Some(y)) if x != y);
            let changed =
                a != b || differs(current.class, candidate.class) || differs(current.code, candidate.code);
            if depth == Depth::Full && changed { whole(Category::OutcomeErrorChanged) } else { Vec::new() }
        }
        (true, true) if depth == Depth::Full && !current.partial && !candidate.partial => {
            compare_results(current, candidate)
        }
        (true, true) => Vec::new(),
    }
}

fn compare_results(current: Ended<'_>, candidate: Ended<'_>) -> Vec<(String, Category)> {
    if let (Some(a), Some(b)) = (current.result.get(), candidate.result.get())
        && a == b
    {
        return Vec::new();
    }
    let (Some(a), Some(b)) = (Shape::of(current), Shape::of(candidate)) else { return Vec::new() };
    let mut out = Vec::new();
    match (a, b) {
        (Shape::Keys { list: x, keys: a }, Shape::Keys { list: y, keys: b }) => {
            if x != y {
                return vec![(String::new(), Category::OutcomeTypeChanged)];
            }
            for (key, types) in &a {
                let field = || format!("/{}", escape(key));
                match b.get(key) {
                    None => out.push((field(), Category::OutcomeKeyRemoved)),
                    Some(other) if !types.is_empty() && !other.is_empty() && types.is_disjoint(other) => {
                        out.push((field(), Category::OutcomeTypeChanged));
                    }
                    Some(_) => {}
                }
            }
            for key in b.keys().filter(|k| !a.contains_key(*k)) {
                out.push((format!("/{}", escape(key)), Category::OutcomeKeyAdded));
            }
        }
        (Shape::Other(x), Shape::Other(y)) if x == y => {}
        (Shape::EmptyList, Shape::EmptyList | Shape::Keys { list: true, .. } | Shape::Other("array"))
        | (Shape::Keys { list: true, .. } | Shape::Other("array"), Shape::EmptyList) => {}
        _ => out.push((String::new(), Category::OutcomeTypeChanged)),
    }
    out
}

/// What is looked at of a result.
#[derive(Debug, PartialEq)]
enum Shape<'a> {
    /// An object, or a list of objects taken as the union of its elements: key → JSON types.
    Keys { list: bool, keys: BTreeMap<Cow<'a, str>, BTreeSet<&'static str>> },
    /// A list without elements: its elements are unknown.
    EmptyList,
    /// Anything else: its JSON type.
    Other(&'static str),
}

impl<'a> Shape<'a> {
    /// `None`: nothing that can be compared (no result, opaque text).
    fn of(ended: Ended<'a>) -> Option<Self> {
        if let Some(text) = ended.result.get() {
            return match unwrapped(text)? {
                Cow::Borrowed(text) => Self::of_text(text),
                Cow::Owned(text) => Shape::of_text(&text).map(Shape::into_owned),
            };
        }
        let keys = ended.keys?.iter().map(|k| (Cow::Borrowed(&**k), BTreeSet::new())).collect();
        Some(Self::Keys { list: false, keys })
    }

    fn of_text(text: &'a str) -> Option<Self> {
        match json_type(text) {
            "object" => {
                let keys =
                    members(text)?.into_iter().map(|(k, v)| (k, [json_type(v.get())].into())).collect();
                Some(Self::Keys { list: false, keys })
            }
            "array" => {
                let items: Vec<&'a RawValue> = serde_json::from_str(text).ok()?;
                if items.is_empty() {
                    return Some(Self::EmptyList);
                }
                let mut union: BTreeMap<Cow<'a, str>, BTreeSet<&'static str>> = BTreeMap::new();
                for item in &items {
                    let Some(element) =
                        (json_type(item.get()) == "object").then(|| members(item.get())).flatten()
                    else {
                        return Some(Self::Other("array"));
                    };
                    for (key, value) in element {
                        union.entry(key).or_default().insert(json_type(value.get()));
                    }
                }
                Some(Self::Keys { list: true, keys: union })
            }
            other => Some(Self::Other(other)),
        }
    }

    fn into_owned<'b>(self) -> Shape<'b> {
        match self {
            Self::Keys { list, keys } => Shape::Keys {
                list,
                keys: keys.into_iter().map(|(k, v)| (Cow::Owned(k.into_owned()), v)).collect(),
            },
            Self::EmptyList => Shape::EmptyList,
            Self::Other(name) => Shape::Other(name),
        }
    }
}

fn json_type(text: &str) -> &'static str {
    match text.trim_start().bytes().next() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    }
}

/// MCP results: `structuredContent`, else a single text block that is JSON, else `None` (opaque). Anything that is no
/// MCP result is itself.
fn unwrapped(text: &str) -> Option<Cow<'_, str>> {
    if json_type(text) != "object"
        || !(text.contains("\"content\"") || text.contains("\"structuredContent\""))
    {
        return Some(Cow::Borrowed(text));
    }
    let top = members(text)?;
    const MCP: [&str; 4] = ["content", "structuredContent", "isError", "_meta"];
    let is_list = |raw: Option<&&RawValue>| raw.is_some_and(|v| json_type(v.get()) == "array");
    let is_mcp = top.keys().all(|k| MCP.contains(&k.as_ref()))
        && (top.contains_key("structuredContent") || is_list(top.get("content")));
    if !is_mcp {
        return Some(Cow::Borrowed(text));
    }
    if let Some(structured) = top.get("structuredContent") {
        return Some(Cow::Borrowed(structured.get()));
    }
    let blocks: Vec<Value> = serde_json::from_str(top.get("content")?.get()).ok()?;
    let [block] = blocks.as_slice() else { return None };
    if block.get("type")?.as_str()? != "text" {
        return None;
    }
    let inner = block.get("text")?.as_str()?;
    let inner_type = json_type(inner);
    let is_json =
        matches!(inner_type, "object" | "array") && serde_json::from_str::<&RawValue>(inner).is_ok();
    is_json.then(|| Cow::Owned(inner.to_owned()))
}

/// Places where a result violates the side's own output schema.
pub(crate) fn broken_output(side: &Side, ended: Ended<'_>) -> Vec<(String, String, String)> {
    let Some((doc, schema)) = &side.output else { return Vec::new() };
    if ended.status != Status::Ok || ended.partial {
        return Vec::new();
    }
    let Some(text) = ended.result.get().and_then(unwrapped) else { return Vec::new() };
    let Ok(parsed) = parse_value(&text) else { return Vec::new() };
    if schema.accepts(&parsed.tree) {
        return Vec::new();
    }
    match judge(schema, doc, &[], parsed.value()) {
        Judgement::Refused(complaints) => {
            complaints.into_iter().map(|c| (c.field, c.keyword, c.location)).collect()
        }
        Judgement::Accepted | Judgement::Undecided => Vec::new(),
    }
}

/// Whether current's output schema declares the key and does not require it.
pub(crate) fn optional_key(side: &Side, field: &str) -> bool {
    let Some((doc, _)) = &side.output else { return false };
    let mut nodes = Vec::new();
    doc.conjuncts(doc.root(), &mut nodes);
    let list: Vec<&Value> = nodes.iter().filter_map(|n| n.get("items")).collect();
    list.into_iter().for_each(|n| doc.conjuncts(n, &mut nodes));
    let declared = nodes.iter().filter_map(|n| n.get("properties")?.as_object());
    let is_declared = declared.flat_map(|t| t.keys()).any(|k| join("", k) == field);
    let required = nodes.iter().filter_map(|n| n.get("required")?.as_array()).flatten();
    is_declared && !required.filter_map(Value::as_str).any(|k| join("", k) == field)
}
