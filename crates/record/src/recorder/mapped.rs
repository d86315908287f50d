//! A message of a mapped source: many records at one offset, told apart by their index.

use lastcall_event::source::{Decoder, Found, Item, Message};
use lastcall_event::{Preset, Record, Timestamp, decode_text};
use lastcall_ledger::rows::Position;

use super::Recorder;
use crate::step::RecordError;

impl Recorder {
    /// Takes in what a message holds; how many records that were. `position` is the message's.
    pub(super) fn mapped(
        &mut self,
        decoder: &Decoder,
        position: Position,
        message: &Message<'_>,
        received: Option<Timestamp>,
    ) -> Result<u64, RecordError> {
        let items = decoder.decode(message, self.config.judge.tools());
        for (index, item) in items.iter().enumerate() {
            let position = Position { index: i32::try_from(index).unwrap_or(i32::MAX), ..position };
            match item {
                Item::Other => self.count(|b| {
                    b.other += 1;
                    b.not_calls += 1;
                }),
                Item::Dead { bytes, error } => {
                    let length = bytes.len() as u64;
                    self.dead(position, bytes, length, error.code, &error.message, received)?;
                }
                Item::Record { text, made_of, contract } => {
                    self.made(position, text, made_of, *contract, received)?;
                }
            }
        }
        Ok(items.len() as u64)
    }

    /// A record that a map made: read, redacted and stored as one of Lastcall's own.
    fn made(
        &mut self,
        position: Position,
        text: &str,
        made_of: &[u8],
        contract: Option<Found>,
        received: Option<Timestamp>,
    ) -> Result<(), RecordError> {
        let length = made_of.len() as u64;
        let decoded = match decode_text(text, Preset::Native) {
            Ok(decoded) => decoded,
            Err(error) => return self.dead(position, made_of, length, error.code, &error.message, received),
        };
        let redacted = self.redacted(&decoded.record, text);
        match &redacted {
            None => self.decoded(position, &decoded.record, None, text)?,
            Some(text) => match decode_text(text, Preset::Native).map(|decoded| decoded.record) {
                Ok(Record::Call(stored)) => self.decoded(position, &decoded.record, Some(&stored), text)?,
                _ => {
                    let message = "what is left of it under the source's redaction cannot be read";
                    return self.dead(position, made_of, length, "not_redacted", message, received);
                }
            },
        }
        match contract {
            Some(Found::One) => self.count(|b| b.by_name += 1),
            Some(Found::Several) => self.count(|b| b.several += 1),
            Some(Found::Nothing) | None => {}
        }
        Ok(())
    }
}
