//! CloudEvents 1.0: structured (one JSON text) and binary (attributes in headers `ce_…`, the data in the value).

use std::borrow::Cow;

use base64::Engine as _;
use serde_json::value::RawValue;

use crate::decode::{DecodeError, fail, parse};

use super::apply::Sink;
use super::node::{Node, Tree, expand};
use super::{Item, Message, text_of};

/// Whether this is a structured event: a JSON object with `specversion` at its top.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Mark<'a> {
        #[serde(borrow)]
        specversion: Option<&'a RawValue>,
    }
    serde_json::from_slice::<Mark<'_>>(bytes).is_ok_and(|mark| mark.specversion.is_some())
}

/// `value` is the message's value without a frame.
pub(super) fn read<'a>(
    message: &Message<'a>,
    value: &'a [u8],
    sink: &mut Sink<'_, 'a>,
) -> Result<(), DecodeError> {
    let kind = message.header("content-type").unwrap_or_default().to_ascii_lowercase();
    if kind.starts_with(b"application/cloudevents") {
        if kind.starts_with(b"application/cloudevents-batch") {
            return fail(
                "bad_field",
                "a batch of CloudEvents; the Kafka binding has none: send one event a message",
            );
        }
        if !kind.starts_with(b"application/cloudevents+json") {
            return fail(
                "avro",
                "a structured CloudEvent that is not JSON; this build reads application/cloudevents+json",
            );
        }
        return structured(value, sink);
    }
    match message.header("ce_specversion") {
        Some(_) => binary(message, value, &kind, sink),
        None => structured(value, sink),
    }
}

fn structured<'a>(value: &'a [u8], sink: &mut Sink<'_, 'a>) -> Result<(), DecodeError> {
    let raw: &'a RawValue = parse(text_of(value)?)?;
    let mut tree = Tree::default();
    tree.add(&["specversion".to_owned()]);
    tree.add(&["data_base64".to_owned()]);
    let head = expand(raw.get(), &tree)?;
    if !matches!(head, Node::Object { .. }) {
        return fail("not_a_record", "a CloudEvent is a JSON object");
    }
    version(head.get(&["specversion".to_owned()]))?;
    let Some(packed) = head.get(&["data_base64".to_owned()]) else {
        let node = expand(raw.get(), &sink.map.tree)?;
        sink.document(&node, Cow::Borrowed(value));
        return Ok(());
    };
    // The same event with its data as `data`; what comes out of it is copied, since that text is ours alone.
    let text = unpacked(raw.get(), &packed.text)?;
    let mut out = Vec::new();
    let mut inner = Sink { map: sink.map, tools: sink.tools, schema_id: sink.schema_id, out: &mut out };
    let node = expand(&text, &sink.map.tree)?;
    inner.document(&node, Cow::Borrowed(&[]));
    for item in out {
        sink.out.push(match item {
            Item::Record { text, contract, .. } => {
                Item::Record { text: Cow::Owned(text.into_owned()), made_of: Cow::Borrowed(value), contract }
            }
            Item::Other => Item::Other,
            Item::Dead { error, .. } => Item::Dead { bytes: Cow::Borrowed(value), error },
        });
    }
    Ok(())
}

/// An event whose data is base64, with its data as JSON, or as a text where it is none.
fn unpacked(raw: &str, packed: &str) -> Result<String, DecodeError> {
    let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(packed) else {
        return fail("bad_field", "`data_base64` is no base64");
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return fail("avro", "the event's data is binary; this build reads JSON data alone");
    };
    let data = match serde_json::from_str::<&RawValue>(&text) {
        Ok(json) => json.get().to_owned(),
        Err(_) => serde_json::to_string(&text).unwrap_or_default(),
    };
    Ok(format!("{{\"data\":{data},{}", raw.strip_prefix('{').unwrap_or_default()))
}

fn version(got: Option<super::node::Got<'_>>) -> Result<(), DecodeError> {
    match got.as_ref().map(|got| &*got.text) {
        Some("1.0") => Ok(()),
        Some(_) => fail("unknown_version", "`specversion` is not 1.0, the one that this build reads"),
        None => fail(
            "missing_field",
            "a CloudEvent needs `specversion`; for another producer's records name its preset",
        ),
    }
}

fn binary<'a>(
    message: &Message<'a>,
    value: &'a [u8],
    kind: &[u8],
    sink: &mut Sink<'_, 'a>,
) -> Result<(), DecodeError> {
    let mut members: Vec<(Cow<'a, str>, Node<'a>)> = Vec::new();
    for header in message.headers {
        let Some(name) =
            header.name.get(..3).filter(|p| p.eq_ignore_ascii_case("ce_")).and(header.name.get(3..))
        else {
            continue;
        };
        let Ok(text) = std::str::from_utf8(header.value) else {
            return fail("not_utf8", "a `ce_` header is not UTF-8");
        };
        if members.iter().any(|(known, _)| known == name) {
            return fail("bad_field", "a `ce_` header stands twice");
        }
        members.push((Cow::Borrowed(name), Node::Text(Cow::Borrowed(text))));
    }
    let mark = members.iter().find(|(key, _)| key == "specversion").and_then(|(_, node)| node.get(&[]));
    version(mark)?;
    let is_json = kind.is_empty() || kind.windows(4).any(|w| w == b"json");
    let is_text = kind.starts_with(b"text/");
    if !is_json && !is_text {
        return fail(
            "avro",
            "the event's content type is neither JSON nor text; this build reads no Avro and no protobuf data",
        );
    }
    if !value.is_empty() {
        let text = text_of(value)?;
        let node = if is_json {
            let raw: &'a RawValue = parse(text)?;
            let below = sink.map.tree.below("data").cloned().unwrap_or_default();
            expand(raw.get(), &below)?
        } else {
            Node::Text(Cow::Borrowed(text))
        };
        members.push((Cow::Borrowed("data"), node));
    }
    sink.document(&Node::Object { raw: None, members }, Cow::Borrowed(value));
    Ok(())
}
