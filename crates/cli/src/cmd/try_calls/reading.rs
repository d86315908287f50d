//! How the records of a trial's files are read: as the user says, else as each line looks.

use lastcall_event::Preset;
use lastcall_event::source::{Decoder, Input, sniff};

use super::super::preset::decoder;

/// The preset that was named, or none, with the decoders that go with it.
pub struct Reading {
    preset: Option<Preset>,
    named: Option<Decoder>,
    /// For lines whose preset nobody named.
    otlp: Option<Decoder>,
    cloudevents: Option<Decoder>,
}

impl Reading {
    /// By a preset and a user's map.
    ///
    /// # Errors
    /// The map is none.
    pub fn of(preset: Option<Preset>, map: Option<&str>) -> anyhow::Result<Self> {
        let found = |one: Preset| if preset.is_none() { decoder(one, None) } else { Ok(None) };
        Ok(Self {
            preset,
            named: decoder(preset.unwrap_or_default(), map)?,
            otlp: found(Preset::OtlpJson)?,
            cloudevents: found(Preset::CloudEvents)?,
        })
    }

    /// Whether files hold messages with their lengths before them, not lines.
    pub fn is_framed(&self) -> bool {
        self.named.as_ref().is_some_and(|decoder| decoder.map().input() == Input::OtlpProto)
    }

    /// What reads this message, where it goes through a map.
    pub fn decoder(&self, bytes: &[u8]) -> Option<&Decoder> {
        if self.preset.is_some() {
            return self.named.as_ref();
        }
        match sniff(bytes)? {
            Preset::OtlpJson => self.otlp.as_ref(),
            _ => self.cloudevents.as_ref(),
        }
    }

    /// How this line is read otherwise.
    pub fn preset(&self, bytes: &[u8]) -> Preset {
        self.preset.unwrap_or_else(|| Preset::sniff(bytes))
    }
}
