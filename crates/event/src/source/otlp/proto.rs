//! OTLP in protobuf, read level by level: a length-delimited field is taken as bytes, so that what is broken in one span
//! stays there. The messages are those of opentelemetry-proto 1.x, with the fields that a document has.

use std::borrow::Cow;

use prost::Message as _;
use prost::bytes::Bytes;

use crate::decode::{DecodeError, fail};

use super::super::apply::Sink;
use super::super::node::Tree;
use super::any::Any;
use super::{Members, Span, attributes};

/// Of `TracesData` and `ExportTraceServiceRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct Batch {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    resource_spans: Vec<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResourceSpans {
    #[prost(bytes = "bytes", tag = "1")]
    resource: Bytes,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    scope_spans: Vec<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resource {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    attributes: Vec<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ScopeSpans {
    #[prost(bytes = "bytes", tag = "1")]
    scope: Bytes,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    spans: Vec<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    attributes: Vec<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SpanProto {
    #[prost(bytes = "bytes", tag = "1")]
    trace_id: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    span_id: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    parent_span_id: Bytes,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(bytes = "bytes", repeated, tag = "9")]
    attributes: Vec<Bytes>,
    #[prost(message, optional, tag = "15")]
    status: Option<StatusProto>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusProto {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

/// The key alone: what the map does not ask for is not read.
#[derive(Clone, PartialEq, prost::Message)]
struct Key {
    #[prost(string, tag = "1")]
    key: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    List(List),
    #[prost(message, tag = "6")]
    Map(Pairs),
    #[prost(bytes = "vec", tag = "7")]
    Bytes(Vec<u8>),
}

#[derive(Clone, PartialEq, prost::Message)]
struct List {
    #[prost(message, repeated, tag = "1")]
    values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Pairs {
    #[prost(message, repeated, tag = "1")]
    values: Vec<KeyValue>,
}

impl AnyValue {
    fn any(self) -> Any<'static> {
        match self.value {
            None => Any::Empty,
            Some(Value::Text(text)) => Any::Text(Cow::Owned(text)),
            Some(Value::Bool(b)) => Any::Bool(b),
            Some(Value::Int(n)) => Any::Int(n),
            Some(Value::Double(n)) => Any::Double(n),
            Some(Value::List(list)) => Any::List(list.values.into_iter().map(Self::any).collect()),
            Some(Value::Map(map)) => Any::Map(map.values.into_iter().map(KeyValue::pair).collect()),
            Some(Value::Bytes(bytes)) => Any::Bytes(bytes),
        }
    }
}

impl KeyValue {
    fn pair(self) -> (Cow<'static, str>, Any<'static>) {
        (Cow::Owned(self.key), self.value.unwrap_or_default().any())
    }
}

fn message<M: prost::Message + Default>(bytes: &[u8], what: &str) -> Result<M, DecodeError> {
    M::decode(bytes).or_else(|_| {
        fail("not_protobuf", format!("{what} is not the protobuf of OTLP traces, or is cut off"))
    })
}

/// Reads a batch. What is broken becomes dead by itself: a span, or a resource or scope with all that is in it.
pub(in super::super) fn read<'a>(bytes: &'a [u8], sink: &mut Sink<'_, 'a>) -> Result<(), DecodeError> {
    if bytes.is_empty() {
        return Ok(()); // an empty batch
    }
    if bytes.trim_ascii_start().starts_with(b"{")
        && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
    {
        return fail("not_protobuf", "JSON; for OTLP in JSON name preset otlp-json");
    }
    let batch: Batch = message(bytes, "the message")?;
    for resource in batch.resource_spans {
        if let Err(error) = of_resource(&resource, sink) {
            sink.dead(Cow::Owned(resource.to_vec()), error);
        }
    }
    Ok(())
}

fn of_resource(bytes: &Bytes, sink: &mut Sink<'_, '_>) -> Result<(), DecodeError> {
    let wire = ResourceSpans::decode(bytes.clone())
        .or_else(|_| fail("not_protobuf", "a resource's spans cannot be read"))?;
    let given: Resource = message(&wire.resource, "a resource")?;
    let resource = pairs(&given.attributes, sink.map.tree.below("resource"))?;
    for scope in wire.scope_spans {
        if let Err(error) = of_scope(&scope, &resource, sink) {
            sink.dead(Cow::Owned(scope.to_vec()), error);
        }
    }
    Ok(())
}

fn of_scope(bytes: &Bytes, resource: &Members<'static>, sink: &mut Sink<'_, '_>) -> Result<(), DecodeError> {
    let wire = ScopeSpans::decode(bytes.clone())
        .or_else(|_| fail("not_protobuf", "a scope's spans cannot be read"))?;
    let given: Scope = message(&wire.scope, "a scope")?;
    let tree = sink.map.tree.below("scope").and_then(|tree| tree.below("attributes"));
    let mut scope = Span::new();
    scope.text("name", given.name);
    scope.text("version", given.version);
    scope.object("attributes", pairs(&given.attributes, tree)?);
    for span in wire.spans {
        match of_span(&span, resource, &scope.members, &sink.map.tree) {
            Ok(node) => sink.document(&node.node(), Cow::Owned(span.to_vec())),
            Err(error) => sink.dead(Cow::Owned(span.to_vec()), error),
        }
    }
    Ok(())
}

fn pairs(given: &[Bytes], tree: Option<&Tree>) -> Result<Members<'static>, DecodeError> {
    let Some(asked) = tree else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for bytes in given {
        let Key { key } = message(bytes, "an attribute")?;
        if asked.below(&key).is_some() {
            out.push(message::<KeyValue>(bytes, "an attribute")?.pair());
        }
    }
    attributes(out.into_iter(), tree).or_else(|what| fail("bad_field", what))
}

fn of_span(
    bytes: &Bytes,
    resource: &Members<'static>,
    scope: &Members<'static>,
    tree: &Tree,
) -> Result<Span<'static>, DecodeError> {
    let wire = SpanProto::decode(bytes.clone())
        .or_else(|_| fail("not_protobuf", "the span is not the protobuf of one, or is cut off"))?;
    let mut span = Span::new();
    span.text("traceId", id(&wire.trace_id, 16, "trace_id")?);
    span.text("spanId", id(&wire.span_id, 8, "span_id")?);
    span.text("parentSpanId", id(&wire.parent_span_id, 8, "parent_span_id")?);
    span.text("name", wire.name);
    span.text("kind", wire.kind.to_string());
    span.text("startTimeUnixNano", wire.start_time_unix_nano.to_string());
    span.text("endTimeUnixNano", wire.end_time_unix_nano.to_string());
    let mut status = Span::new();
    if let Some(given) = wire.status {
        status.text("message", given.message);
        status.text("code", given.code.to_string());
    }
    span.object("status", status.members);
    span.object("attributes", pairs(&wire.attributes, tree.below("attributes"))?);
    span.object("resource", resource.clone());
    span.object("scope", scope.clone());
    Ok(span)
}

/// An id in hexadecimal; all zeros are the id of nothing.
fn id(bytes: &[u8], length: usize, field: &str) -> Result<String, DecodeError> {
    use std::fmt::Write as _;
    if bytes.iter().all(|b| *b == 0) {
        return Ok(String::new());
    }
    if bytes.len() != length {
        return fail("bad_field", format!("`{field}` has not {length} bytes"));
    }
    let mut out = String::with_capacity(length * 2);
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    Ok(out)
}
