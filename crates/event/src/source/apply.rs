//! A document under a map: one call as the text of Lastcall's own record, or other, or dead.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::value::RawValue;

use crate::decode::{DecodeError, fail, parse, status_of};
use crate::record::{CallRecord, Status};

use super::map::Map;
use super::node::{Node, expand};
use super::spec::Spec;
use super::{Found, Item, Resolve, Resolved, text_of};

/// Takes a message's documents one after another.
pub(super) struct Sink<'s, 'a> {
    pub(super) map: &'s Map,
    pub(super) tools: &'s dyn Resolve,
    pub(super) schema_id: Option<u32>,
    pub(super) out: &'s mut Vec<Item<'a>>,
}

impl<'a> Sink<'_, 'a> {
    /// One JSON text: a document, or the list of them that the map names.
    pub(super) fn json(&mut self, bytes: &'a [u8]) -> Result<(), DecodeError> {
        let raw: &'a RawValue = parse(text_of(bytes)?)?;
        let Some(each) = &self.map.each else {
            self.raw(raw.get());
            return Ok(());
        };
        let mut inner = raw.get();
        for step in each {
            let mut tree = super::node::Tree::default();
            tree.add(std::slice::from_ref(step));
            inner = match expand(inner, &tree)? {
                Node::Object { members, .. } => match members.into_iter().next() {
                    Some((_, Node::Json(text))) => text,
                    _ => {
                        return fail(
                            "missing_field",
                            "the list that the map names under `each` is not there",
                        );
                    }
                },
                _ => return fail("missing_field", "the list that the map names under `each` is not there"),
            };
        }
        let items: Vec<&'a RawValue> = match serde_json::from_str(inner) {
            Ok(items) => items,
            Err(_) => return fail("bad_field", "what the map names under `each` is no list"),
        };
        for item in items {
            self.raw(item.get());
        }
        Ok(())
    }

    fn raw(&mut self, text: &'a str) {
        let bytes = Cow::Borrowed(text.as_bytes());
        if !text.starts_with('{') {
            return self.dead(
                bytes,
                DecodeError {
                    code: "not_a_record",
                    message: "a record is a JSON object; for a list of them name it in the map with `each`"
                        .to_owned(),
                },
            );
        }
        match expand(text, &self.map.tree) {
            Ok(node) => self.document(&node, bytes),
            Err(error) => self.dead(bytes, error),
        }
    }

    /// One document; `bytes` is what it was made of.
    pub(super) fn document(&mut self, node: &Node<'a>, bytes: Cow<'a, [u8]>) {
        if let Some(text) = self.native(node) {
            self.out.push(Item::Record { text, made_of: bytes, contract: None });
        } else if !self.map.takes(node) {
            self.out.push(Item::Other);
        } else {
            match compose(self.map, node, self.tools, self.schema_id) {
                Ok((text, contract)) => {
                    self.out.push(Item::Record { text: Cow::Owned(text), made_of: bytes, contract });
                }
                Err(error) => self.dead(bytes, error),
            }
        }
    }

    /// A record of Lastcall's own inside the document, where the map names a place for one.
    fn native(&self, node: &Node<'a>) -> Option<Cow<'a, str>> {
        let path = self.map.native.as_ref()?;
        let mark: Vec<String> = path.iter().cloned().chain(["schema_version".to_owned()]).collect();
        node.get(&mark)?;
        Some(node.get(path)?.text)
    }

    pub(super) fn dead(&mut self, bytes: Cow<'a, [u8]>, error: DecodeError) {
        self.out.push(Item::Dead { bytes, error });
    }
}

/// Writes the members of one object.
struct Members(String);

impl Members {
    fn new() -> Self {
        Self("{".to_owned())
    }

    fn key(&mut self, key: &str) -> &mut String {
        let comma = if self.0.len() > 1 { "," } else { "" };
        let _ = write!(self.0, "{comma}\"{key}\":");
        &mut self.0
    }

    fn raw(&mut self, key: &str, json: &str) {
        self.key(key).push_str(json);
    }

    fn text(&mut self, key: &str, text: &str) {
        let text = serde_json::to_string(text).unwrap_or_default();
        self.raw(key, &text);
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn is_empty(&self) -> bool {
        self.0.len() <= 1
    }
}

fn missing<T>(field: &str) -> Result<T, DecodeError> {
    fail("missing_field", format!("nothing stands where the map looks for `{field}`"))
}

fn compose(
    map: &Map,
    node: &Node<'_>,
    tools: &dyn Resolve,
    schema_id: Option<u32>,
) -> Result<(String, Option<Found>), DecodeError> {
    let spec = |name: &str| map.call.iter().find(|(field, _)| *field == name).map(|(_, spec)| spec);
    let text = |name: &str| spec(name).map_or(Ok(None), |spec| spec.text(node, name));
    let need = |name: &str| text(name).and_then(|got| got.map_or_else(|| missing(name), Ok));

    let mut out = Members::new();
    out.text("type", "tool_call");
    out.raw("schema_version", "1");
    out.text("call_id", &need("call_id")?);
    out.text("ts", &time(spec("ts"), node)?);
    let name = need("tool_id")?;
    let stated = match text("contract_id")? {
        Some(id) => Some(Stated::Id(id)),
        None => text("contract_version")?.map(Stated::Version),
    };
    let (tool_id, contract_id, found) = contract(&name, stated, tools);
    out.text("tool_id", &tool_id);
    if let Some(id) = &contract_id {
        out.text("contract_id", id);
    }
    if let Some(digest) = text("contract_digest")? {
        out.text("contract_digest", &digest);
    }
    let fidelity = match spec("arguments").and_then(|spec| spec.get(node)) {
        None => {
            out.raw("arguments", "null");
            "not_captured".to_owned()
        }
        Some((got, _)) => {
            if got.is_json {
                out.raw("arguments", &got.text);
            } else {
                out.text("arguments_text", &got.text);
            }
            let said = text("fidelity")?;
            said.unwrap_or_else(|| if got.made { "reconstructed" } else { "raw" }.to_owned())
        }
    };
    out.text("fidelity", &fidelity);
    let text = outcome(&map.outcome, node)?;
    out.raw("outcome", &text);
    let text = envelope(&map.envelope, node)?;
    if text.len() > 2 {
        out.raw("envelope", &text);
    }
    let text = origin(&name, &tool_id, found, schema_id);
    if text.len() > 2 {
        out.raw("origin", &text);
    }
    Ok((out.end(), found))
}

fn time(spec: Option<&Spec>, node: &Node<'_>) -> Result<String, DecodeError> {
    let Some((got, format)) = spec.and_then(|spec| spec.get(node)) else { return missing("ts") };
    let read = got.scalar().ok_or("is no text and no number").and_then(|text| format.read(text));
    read.map(|at| at.to_string())
        .or_else(|what| fail("bad_field", format!("what the map names for `ts` {what}")))
}

enum Stated {
    Id(String),
    Version(String),
}

/// The tool's id, the contract's id, and how the latter was found where the record names none.
fn contract(
    name: &str,
    stated: Option<Stated>,
    tools: &dyn Resolve,
) -> (String, Option<String>, Option<Found>) {
    let resolved = tools.resolve(name);
    let known = match &resolved {
        Resolved::One { tool_id, .. } | Resolved::Contracts { tool_id } => Some(tool_id.clone()),
        Resolved::Nothing | Resolved::Tools => None,
    };
    let tool_id = known.unwrap_or_else(|| name.to_owned());
    match (stated, resolved) {
        (Some(Stated::Version(version)), _) => {
            let id = format!("{tool_id}@{version}");
            (tool_id, Some(id), None)
        }
        (Some(Stated::Id(id)), _) => {
            // the producer knows the tool by the id that stands in its contract
            let of_id = id.rsplit_once('@').map(|(tool, _)| tool.to_owned());
            (of_id.filter(|tool| !tool.is_empty()).unwrap_or(tool_id), Some(id), None)
        }
        (None, Resolved::One { contract_id, .. }) => (tool_id, Some(contract_id), Some(Found::One)),
        (None, Resolved::Contracts { .. }) => {
            let unknown = format!("{tool_id}{}", CallRecord::UNKNOWN_CONTRACT);
            (tool_id, Some(unknown), Some(Found::Several))
        }
        (None, Resolved::Tools) => (tool_id, None, Some(Found::Several)),
        (None, Resolved::Nothing) => (tool_id, None, Some(Found::Nothing)),
    }
}

/// What the record does not say itself: the name that was resolved, and the schema's id.
fn origin(name: &str, tool_id: &str, found: Option<Found>, schema_id: Option<u32>) -> String {
    let mut out = Members::new();
    if name != tool_id {
        out.text("tool_name", name);
    }
    match found {
        Some(Found::One) => out.text("contract", "by_name"),
        Some(Found::Several) => out.text("contract", "several"),
        Some(Found::Nothing) | None => {}
    }
    if let Some(id) = schema_id {
        out.raw("schema_id", &id.to_string());
    }
    out.end()
}

fn outcome(fields: &[(&'static str, Spec)], node: &Node<'_>) -> Result<String, DecodeError> {
    let mut out = Members::new();
    let mut status = Status::Unknown;
    for (name, spec) in fields {
        if *name == "result" {
            let Some((got, _)) = spec.get(node) else { continue };
            if got.is_json {
                out.raw(name, &got.text)
            } else {
                out.text(name, &got.text)
            }
            continue;
        }
        let Some(text) = spec.text(node, name)? else { continue };
        match *name {
            "status" => status = status_of(&text),
            "executed" | "partial" => match text.as_str() {
                "true" | "1" => out.raw(name, "true"),
                "false" | "0" => out.raw(name, "false"),
                _ => {
                    return fail(
                        "bad_field",
                        format!("what the map names for `{name}` is neither true nor false"),
                    );
                }
            },
            "latency_ms" => match text.parse::<f64>() {
                Ok(ms) if ms.is_finite() => {
                    let ms = serde_json::to_string(&ms).unwrap_or_default();
                    out.raw(name, &ms);
                }
                _ => return fail("bad_field", "what the map names for `latency_ms` is no number"),
            },
            _ => out.text(name, &text),
        }
    }
    // the last five are of candidates only
    let of_call = !matches!(
        status,
        Status::TimedOut | Status::Shed | Status::Unavailable | Status::SampledOut | Status::NotRun
    );
    out.text("status", if of_call { status.as_str() } else { Status::Unknown.as_str() });
    Ok(out.end())
}

fn envelope(fields: &[(&'static str, Spec)], node: &Node<'_>) -> Result<String, DecodeError> {
    let mut out = Members::new();
    for (name, spec) in fields {
        if *name != "delegation" {
            if let Some(text) = spec.text(node, name)? {
                out.text(name, &text);
            }
            continue;
        }
        let Some((got, _)) = spec.get(node) else { continue };
        let list = if got.is_json {
            serde_json::from_str::<Vec<String>>(&got.text)
                .or_else(|_| fail("bad_field", "what the map names for `delegation` is no list of texts"))?
        } else {
            vec![got.text.into_owned()]
        };
        let json = serde_json::to_string(&list).unwrap_or_default();
        out.raw(name, &json);
    }
    if out.is_empty() { Ok("{}".to_owned()) } else { Ok(out.end()) }
}
