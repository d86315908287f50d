//! Schema Registry framing: a zero byte and a schema id of four bytes before the value; before protobuf also the indexes
//! of the message's type. Neither JSON nor protobuf begins with a zero byte, so that it is told without being asked.

use crate::decode::{DecodeError, fail};

use super::map::Input;
use super::{Message, text_of};

/// A value without its frame.
pub(super) struct Framed<'a> {
    pub(super) value: &'a [u8],
    /// The schema's id in its registry.
    pub(super) id: Option<u32>,
}

/// The most message indexes that a type may have: nested types of a schema file.
const MAX_INDEXES: u64 = 1_000;

pub(super) fn strip<'a>(message: &Message<'a>, input: Input) -> Result<Framed<'a>, DecodeError> {
    let value = message.value;
    if value.starts_with(b"Obj\x01") || value.starts_with(b"\xc3\x01") {
        return fail("avro", "an Avro object; this build reads no Avro: produce JSON or protobuf");
    }
    let [0, a, b, c, d, rest @ ..] = value else { return Ok(Framed { value, id: None }) };
    let id = u32::from_be_bytes([*a, *b, *c, *d]);
    if input == Input::OtlpProto {
        let value = indexes(rest).ok_or_else(|| DecodeError {
            code: "bad_framing",
            message: format!(
                "Schema Registry framing (schema {id}) without the message indexes that stand before protobuf"
            ),
        })?;
        return Ok(Framed { value, id: Some(id) });
    }
    let is_json = text_of(rest).is_ok_and(|text| text.trim_start().starts_with(['{', '[']));
    if !is_json {
        return fail(
            "avro",
            format!(
                "behind Schema Registry framing (schema {id}) stands no JSON: Avro most likely, which this build does \
                 not read; produce with the JSON Schema serializer, or OTLP as protobuf"
            ),
        );
    }
    Ok(Framed { value: rest, id: Some(id) })
}

/// What follows the message indexes: a count and that many numbers, zigzag varints; 0 stands for the list `[0]`.
fn indexes(bytes: &[u8]) -> Option<&[u8]> {
    let (count, mut rest) = varint(bytes)?;
    let count = count >> 1;
    if count > MAX_INDEXES {
        return None;
    }
    for _ in 0..count {
        (_, rest) = varint(rest)?;
    }
    Some(rest)
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}
