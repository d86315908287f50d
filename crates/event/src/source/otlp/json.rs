//! OTLP in JSON: lowerCamelCase, ids in hexadecimal, 64-bit numbers as strings.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decode::{DecodeError, fail, parse};
use crate::record::{Json, Text};

use super::super::apply::Sink;
use super::super::node::Tree;
use super::super::text_of;
use super::any::{KeyValueWire, Number, Object};
use super::{Members, Span, attributes};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BatchWire<'a> {
    #[serde(borrow, default)]
    resource_spans: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    resource_logs: Json<'a>,
    #[serde(borrow, default)]
    resource_metrics: Json<'a>,
    #[serde(borrow, default)]
    resource_profiles: Json<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpansWire<'a> {
    #[serde(borrow, default)]
    resource: Option<Object<AttributesWire<'a>>>,
    #[serde(borrow, default)]
    scope_spans: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct ScopeSpansWire<'a> {
    #[serde(borrow, default)]
    scope: Option<Object<ScopeWire<'a>>>,
    #[serde(borrow, default)]
    spans: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
struct AttributesWire<'a> {
    #[serde(borrow, default)]
    attributes: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct ScopeWire<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    version: Text<'a>,
    #[serde(borrow, default)]
    attributes: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpanWire<'a> {
    #[serde(borrow, default)]
    trace_id: Text<'a>,
    #[serde(borrow, default)]
    span_id: Text<'a>,
    #[serde(borrow, default)]
    parent_span_id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    kind: Json<'a>,
    #[serde(borrow, default)]
    start_time_unix_nano: Number<'a>,
    #[serde(borrow, default)]
    end_time_unix_nano: Number<'a>,
    #[serde(borrow, default)]
    attributes: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<Object<StatusWire<'a>>>,
}

#[derive(Deserialize)]
struct StatusWire<'a> {
    #[serde(borrow, default)]
    message: Text<'a>,
    #[serde(borrow, default)]
    code: Json<'a>,
}

/// What the spans of a scope share.
struct Around<'a> {
    resource: Members<'a>,
    scope: Members<'a>,
}

/// Reads a batch. What is broken becomes dead by itself: a span, or a resource or scope with all that is in it.
pub(in super::super) fn read<'a>(bytes: &'a [u8], sink: &mut Sink<'_, 'a>) -> Result<(), DecodeError> {
    let Object(batch): Object<BatchWire<'a>> = parse(text_of(bytes)?)?;
    let Some(resources) = batch.resource_spans else {
        let other = [batch.resource_logs, batch.resource_metrics, batch.resource_profiles];
        let empty = bytes.iter().filter(|b| !b.is_ascii_whitespace()).eq(b"{}");
        if empty || other.iter().any(|part| !part.is_none()) {
            return Ok(());
        }
        return fail(
            "missing_field",
            "an OTLP batch of traces needs `resourceSpans`; for another producer's records name its preset",
        );
    };
    for resource in resources {
        if let Err(error) = of_resource(resource, sink) {
            sink.dead(Cow::Borrowed(resource.get().as_bytes()), error);
        }
    }
    Ok(())
}

fn of_resource<'a>(raw: &'a RawValue, sink: &mut Sink<'_, 'a>) -> Result<(), DecodeError> {
    let Object(wire): Object<ResourceSpansWire<'a>> = parse(raw.get())?;
    let tree = sink.map.tree.below("resource");
    let resource = pairs(wire.resource.unwrap_or_default().0.attributes, tree)?;
    for scope in wire.scope_spans.unwrap_or_default() {
        if let Err(error) = of_scope(scope, &resource, sink) {
            sink.dead(Cow::Borrowed(scope.get().as_bytes()), error);
        }
    }
    Ok(())
}

fn of_scope<'a>(
    raw: &'a RawValue,
    resource: &Members<'a>,
    sink: &mut Sink<'_, 'a>,
) -> Result<(), DecodeError> {
    let Object(wire): Object<ScopeSpansWire<'a>> = parse(raw.get())?;
    let Object(given) = wire.scope.unwrap_or_default();
    let tree = sink.map.tree.below("scope").and_then(|tree| tree.below("attributes"));
    let mut scope = Span::new();
    scope.text("name", given.name.0);
    scope.text("version", given.version.0);
    scope.object("attributes", pairs(given.attributes, tree)?);
    let around = Around { resource: resource.clone(), scope: scope.members };
    for span in wire.spans.unwrap_or_default() {
        match of_span(span.get(), &around, &sink.map.tree) {
            Ok(node) => sink.document(&node.node(), Cow::Borrowed(span.get().as_bytes())),
            Err(error) => sink.dead(Cow::Borrowed(span.get().as_bytes()), error),
        }
    }
    Ok(())
}

/// Attributes that the map asks for; the others are not even read.
fn pairs<'a>(given: Vec<&'a RawValue>, tree: Option<&Tree>) -> Result<Members<'a>, DecodeError> {
    let Some(asked) = tree else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for raw in given {
        #[derive(Deserialize)]
        struct KeyWire<'a> {
            #[serde(borrow, default)]
            key: Text<'a>,
        }
        let Object(KeyWire { key }) = parse(raw.get())?;
        if asked.below(&key).is_some() {
            let Object(wire): Object<KeyValueWire<'a>> = parse(raw.get())?;
            out.push(wire.pair().or_else(|what| fail("bad_field", format!("attribute: {what}")))?);
        }
    }
    attributes(out.into_iter(), tree).or_else(|what| fail("bad_field", what))
}

fn of_span<'a>(raw: &'a str, around: &Around<'a>, tree: &Tree) -> Result<Span<'a>, DecodeError> {
    let Object(wire): Object<SpanWire<'a>> = parse(raw)?;
    let mut span = Span::new();
    span.text("traceId", id(wire.trace_id, 32, "traceId")?);
    span.text("spanId", id(wire.span_id, 16, "spanId")?);
    span.text("parentSpanId", id(wire.parent_span_id, 16, "parentSpanId")?);
    span.text("name", wire.name.0);
    span.text("kind", enumerated(wire.kind, "SPAN_KIND_", &KINDS));
    span.text("startTimeUnixNano", wire.start_time_unix_nano.0);
    span.text("endTimeUnixNano", wire.end_time_unix_nano.0);
    let mut status = Span::new();
    if let Some(Object(given)) = wire.status {
        status.text("message", given.message.0);
        status.text("code", enumerated(given.code, "STATUS_CODE_", &CODES));
    }
    span.object("status", status.members);
    span.object("attributes", pairs(wire.attributes, tree.below("attributes"))?);
    span.object("resource", around.resource.clone());
    span.object("scope", around.scope.clone());
    Ok(span)
}

const KINDS: [&str; 6] = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"];
const CODES: [&str; 3] = ["UNSET", "OK", "ERROR"];

/// An enumeration as its number: OTLP writes numbers, the general JSON form of protobuf writes names.
fn enumerated(given: Json<'_>, prefix: &str, names: &[&str]) -> String {
    let raw = given.get().unwrap_or_default();
    let name = raw.trim_matches('"');
    let named = name.strip_prefix(prefix).and_then(|name| names.iter().position(|n| *n == name));
    named.map_or_else(|| name.to_owned(), |number| number.to_string())
}

/// An id in hexadecimal, in small letters; all zeros are the id of nothing.
fn id<'a>(given: Text<'a>, digits: usize, field: &str) -> Result<Cow<'a, str>, DecodeError> {
    let text = given.0;
    if text.is_empty() || text.bytes().all(|b| b == b'0') {
        return Ok(Cow::Borrowed(""));
    }
    if text.len() != digits || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return fail(
            "bad_field",
            format!(
                "`{field}` is not {digits} hexadecimal digits; OTLP's JSON has ids in hexadecimal, not in base64"
            ),
        );
    }
    Ok(if text.bytes().any(|b| b.is_ascii_uppercase()) { Cow::Owned(text.to_lowercase()) } else { text })
}
