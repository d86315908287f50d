//! Other people's records: one decoder with field maps. A message goes in as it came from a topic or a file; the records
//! in it come out as Lastcall's own, each as its text, or as other, or as dead.
//!
//! Two steps: the input cuts a message into documents (one JSON text, the spans of an OTLP batch, a CloudEvent), and the
//! [`Map`] says where in a document a call's fields stand. A named preset is an input and a map that ships with the build.

mod apply;
mod cloudevents;
mod framing;
mod map;
mod moment;
mod node;
mod otlp;
mod schema;
mod spec;

use std::borrow::Cow;

use crate::decode::{DecodeError, Preset, fail};

pub use map::{Input, Map, MapError};
pub use schema::map_schema;

/// One header of a message.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its bytes.
    pub value: &'a [u8],
}

/// A message as a topic carries it; of a file's record only the value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    /// The key. No preset reads it so far.
    pub key: Option<&'a [u8]>,
    /// The headers, in their order.
    pub headers: &'a [Header<'a>],
    /// The value.
    pub value: &'a [u8],
}

impl<'a> Message<'a> {
    /// A message that is nothing but a value.
    pub fn of(value: &'a [u8]) -> Self {
        Self { value, ..Self::default() }
    }

    fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value)
    }
}

/// One record of a message, in the message's order. Its place in the list is its index in the message.
#[derive(Clone, Debug)]
pub enum Item<'a> {
    /// One of Lastcall's own records.
    Record {
        /// Its text, to be read with [`Preset::Native`].
        text: Cow<'a, str>,
        /// What it was made of, byte for byte: kept if the text turns out not to be a record.
        made_of: Cow<'a, [u8]>,
        /// How its contract was found, where the record names none.
        contract: Option<Found>,
    },
    /// It is no call, and the map says so; also a message that holds nothing.
    Other,
    /// It cannot be decoded.
    Dead {
        /// Its bytes.
        bytes: Cow<'a, [u8]>,
        /// Why.
        error: DecodeError,
    },
}

/// How the contract of a record that names none was found: by the tool's name, among the pairs that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The name fits one contract.
    One,
    /// The name fits several contracts, or several tools: such a call is unresolved.
    Several,
    /// The name fits nothing that is compared: such a call is counted, and compared with nothing.
    Nothing,
}

/// What a tool's name means among the contracts that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Resolved {
    /// Nothing.
    #[default]
    Nothing,
    /// One tool's one current contract.
    One {
        /// The tool's id.
        tool_id: String,
        /// The contract's id.
        contract_id: String,
    },
    /// One tool, of which several contracts are current in different pairs.
    Contracts {
        /// The tool's id.
        tool_id: String,
    },
    /// Several tools that are given to models under this name.
    Tools,
}

/// Knows tools by their ids and by the names under which models call them.
pub trait Resolve {
    /// What a name means.
    fn resolve(&self, name: &str) -> Resolved;
}

/// Knows no tool.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Resolve for Nobody {
    fn resolve(&self, _: &str) -> Resolved {
        Resolved::Nothing
    }
}

/// Reads the messages of one source.
#[derive(Clone, Debug)]
pub struct Decoder {
    map: Map,
}

impl Decoder {
    /// With a map.
    pub fn new(map: Map) -> Self {
        Self { map }
    }

    /// The map.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The records of a message; never empty, never fails: what cannot be read is dead.
    pub fn decode<'a>(&self, message: &Message<'a>, tools: &dyn Resolve) -> Vec<Item<'a>> {
        let mut out = Vec::new();
        let found = framing::strip(message, self.map.input()).and_then(|framed| {
            let mut sink = apply::Sink { map: &self.map, tools, schema_id: framed.id, out: &mut out };
            match self.map.input() {
                Input::Json => sink.json(framed.value),
                Input::OtlpJson => otlp::json::read(framed.value, &mut sink),
                Input::OtlpProto => otlp::proto::read(framed.value, &mut sink),
                Input::CloudEvents => cloudevents::read(message, framed.value, &mut sink),
            }
        });
        if let Err(error) = found {
            out.push(Item::Dead { bytes: Cow::Borrowed(message.value), error });
        }
        if out.is_empty() {
            out.push(Item::Other);
        }
        out
    }
}

/// Which mapped preset a line has by its first field, for files whose preset nobody named.
pub fn sniff(bytes: &[u8]) -> Option<Preset> {
    let text = bytes.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start();
    if text.starts_with(b"\"resourceSpans\"") {
        return Some(Preset::OtlpJson);
    }
    let head = text.get(..text.len().min(4096))?;
    let marked = head.windows(13).any(|w| w == b"\"specversion\"");
    (marked && cloudevents::is_one(bytes)).then_some(Preset::CloudEvents)
}

/// The text of a value, which is not empty.
fn text_of(bytes: &[u8]) -> Result<&str, DecodeError> {
    let text = crate::decode::text(bytes)?;
    if text.trim().is_empty() {
        return fail("not_json", "the message is empty; a tombstone, or a producer that sends nothing");
    }
    Ok(text)
}
