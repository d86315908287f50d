//! OTLP traces as the OpenTelemetry Collector writes them: a batch of resources, scopes and spans a message. Each span is a
//! document of its own:
//!
//! ```text
//! /name /kind /traceId /spanId /parentSpanId /startTimeUnixNano /endTimeUnixNano /status/code /status/message
//! /attributes/KEY /resource/KEY /scope/name /scope/version /scope/attributes/KEY
//! ```
//!
//! A key may hold dots; in a path only `/` and `~` need escaping. A string attribute is a text; what OTLP holds in a form
//! of its own (a list, a map, a number) is rebuilt as JSON, and arguments made so are `reconstructed`.

mod any;
pub(super) mod json;
pub(super) mod proto;

use std::borrow::Cow;

use super::node::{Node, Tree};

use any::Any;

type Members<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

/// The attributes that a map asks for. A key that stands twice is an error: which one is it?
fn attributes<'a>(
    given: impl Iterator<Item = (Cow<'a, str>, Any<'a>)>,
    tree: Option<&Tree>,
) -> Result<Members<'a>, &'static str> {
    let mut out: Members<'a> = Vec::new();
    let Some(tree) = tree else { return Ok(out) };
    for (key, value) in given {
        if tree.below(&key).is_none() {
            continue;
        }
        if out.iter().any(|(known, _)| *known == key) {
            return Err("an attribute that the map reads stands twice");
        }
        if let Some(node) = value.node()? {
            out.push((key, node));
        }
    }
    Ok(out)
}

/// A span's document, put together.
struct Span<'a> {
    members: Members<'a>,
}

impl<'a> Span<'a> {
    fn new() -> Self {
        Self { members: Vec::new() }
    }

    fn text(&mut self, key: &'static str, text: impl Into<Cow<'a, str>>) {
        let text = text.into();
        if !text.is_empty() {
            self.members.push((Cow::Borrowed(key), Node::Text(text)));
        }
    }

    fn object(&mut self, key: &'static str, members: Members<'a>) {
        self.members.push((Cow::Borrowed(key), Node::Object { raw: None, members }));
    }

    fn node(self) -> Node<'a> {
        Node::Object { raw: None, members: self.members }
    }
}
