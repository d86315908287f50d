//! What one message of the upstream topic becomes in the output: rows for its calls, copies of what is no call, nothing for
//! what is no record. Pure.

use std::collections::BTreeSet;

use lastcall_contract::Registry;
use lastcall_event::source::{Decoder, Header, Item, Message};
use lastcall_event::{Preset, Record, Timestamp, decode, decode_text, text};
use lastcall_record::Names;

use crate::kafka::member::Outer;

/// One thing that a message becomes, in the message's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A call, as the text of a record of [`Reading::stored`].
    Call(String),
    /// A record that is copied as it is.
    Copy {
        /// Its bytes.
        bytes: Vec<u8>,
        /// What it is.
        kind: Kind,
        /// Of a clock record: its time.
        clock: Option<Timestamp>,
    },
}

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Call counts of a producer.
    Coverage,
    /// What an interceptor dropped.
    Loss,
    /// A simulated ledger's time.
    Clock,
    /// What cannot be decoded, to become a dead letter.
    Dead,
}

impl Kind {
    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Coverage => "coverage",
            Self::Loss => "loss",
            Self::Clock => "clock",
            Self::Dead => "dead",
        }
    }
}

/// How the messages of the upstream topic are read.
pub struct Reading {
    preset: Preset,
    decoder: Option<Decoder>,
    names: Names,
}

impl Reading {
    /// With a preset, and its map where it has one. Tools are known by the registry's names: where a record names no
    /// contract, it is the tool's one contract that is no candidate.
    pub fn new(
        preset: Preset,
        decoder: Option<Decoder>,
        registry: &Registry,
        candidates: &BTreeSet<String>,
    ) -> Self {
        let mut names = Names::default();
        for tool in registry.tools() {
            for version in &tool.versions {
                if !candidates.contains(&version.contract.id) {
                    names.add(&version.contract.definition.name, &tool.tool_id, &version.contract.id);
                }
            }
        }
        Self { preset, decoder, names }
    }

    /// How the text of [`Part::Call`] is read.
    pub fn stored(&self) -> Preset {
        self.preset.stored()
    }

    /// Whether keys and headers may be read.
    pub fn is_mapped(&self) -> bool {
        self.decoder.is_some()
    }

    /// What a message becomes; nothing of a tombstone or of what a map says is no call.
    pub fn parts(&self, value: &[u8], outer: Option<&Outer>) -> Vec<Part> {
        if value.iter().all(u8::is_ascii_whitespace) {
            return Vec::new();
        }
        let Some(decoder) = &self.decoder else {
            return self.one(value, self.preset).into_iter().collect();
        };
        let headers: Vec<Header<'_>> = outer
            .iter()
            .flat_map(|outer| &outer.headers)
            .map(|(name, value)| Header { name, value })
            .collect();
        let key = outer.and_then(|outer| outer.key.as_deref());
        let message = Message { key, headers: &headers, value };
        let each = |item: Item<'_>| match item {
            Item::Record { text, made_of, .. } => match decode_text(&text, Preset::Native) {
                Ok(_) => self.one(text.as_bytes(), Preset::Native),
                Err(_) => Some(dead(&made_of)),
            },
            Item::Other => None,
            Item::Dead { bytes, .. } => Some(dead(&bytes)),
        };
        decoder.decode(&message, &self.names).into_iter().filter_map(each).collect()
    }

    fn one(&self, value: &[u8], preset: Preset) -> Option<Part> {
        let read = text(value).and_then(|text| Ok((text, decode_text(text, preset)?.record)));
        let copy = |kind, clock| Some(Part::Copy { bytes: value.to_vec(), kind, clock });
        match read {
            Ok((text, Record::Call(_))) => Some(Part::Call(text.to_owned())),
            // Another mirror's positions mean nothing in this topic.
            Ok((_, Record::Coverage(row))) if row.upstream.is_some() => None,
            Ok((_, Record::Coverage(_))) => copy(Kind::Coverage, None),
            Ok((_, Record::Loss(_))) => copy(Kind::Loss, None),
            Ok((_, Record::Clock(at))) => copy(Kind::Clock, Some(at)),
            Err(_) => Some(dead(value)),
        }
    }
}

/// Passed on byte for byte. What is dead under the upstream's preset must not come alive under the output's, which is
/// native: such a one goes as a JSON string.
fn dead(bytes: &[u8]) -> Part {
    let alive = decode(bytes, Preset::Native).is_ok();
    let quoted = || serde_json::to_vec(&String::from_utf8_lossy(bytes)).unwrap_or_default();
    let bytes = if alive { quoted() } else { bytes.to_vec() };
    Part::Copy { bytes, kind: Kind::Dead, clock: None }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use lastcall_contract::RegistryFiles;
    use lastcall_event::source::Map;

    use super::*;

    const CALL: &str = r#"{"type":"tool_call","schema_version":1,"call_id":"c","ts":"2026-06-01T00:00:00Z","tool_id":"t","arguments":{},"outcome":{"status":"ok"}}"#;

    fn reading(preset: Preset) -> Reading {
        let registry = Registry::read(&RegistryFiles::new()).unwrap();
        let decoder = Map::text_of(preset).map(|text| Decoder::new(Map::parse(text).unwrap()));
        Reading::new(preset, decoder, &registry, &BTreeSet::new())
    }

    fn kinds(reading: &Reading, value: &str) -> Vec<Option<Kind>> {
        let kind = |part: Part| match part {
            Part::Call(_) => None,
            Part::Copy { kind, .. } => Some(kind),
        };
        reading.parts(value.as_bytes(), None).into_iter().map(kind).collect()
    }

    #[test]
    fn each_record_becomes_what_it_is() {
        let native = reading(Preset::Native);
        assert_eq!(native.parts(CALL.as_bytes(), None), [Part::Call(CALL.to_owned())]);
        let mirrored = CALL.replace("tool_call\"", "mirrored_call\"");
        assert_eq!(kinds(&native, &mirrored), [None], "replayed like a call");
        let clock = r#"{"type":"clock","schema_version":1,"ts":"2026-06-01T00:00:00Z"}"#;
        let Some(Part::Copy { bytes, clock: Some(_), .. }) = native.parts(clock.as_bytes(), None).pop()
        else {
            panic!("a clock")
        };
        assert_eq!(bytes, clock.as_bytes());
        let covered =
            r#"{"type":"coverage","schema_version":1,"tool_id":"t","hour":"2026-06-01T00:00:00Z","count":3}"#;
        assert_eq!(kinds(&native, covered), [Some(Kind::Coverage)]);
        let foreign = r#"{"type":"coverage","schema_version":1,"upstream":{"from":1,"to":9}}"#;
        assert_eq!(kinds(&native, foreign), [], "another mirror's positions");
        for blank in ["", " ", "\n"] {
            assert_eq!(kinds(&native, blank), []);
        }
        assert_eq!(native.parts(b"\xff{", None), [dead(b"\xff{")]);
        let Part::Copy { bytes, .. } = dead(b"\xff{") else { panic!("a copy") };
        assert_eq!(bytes, b"\xff{");
    }

    #[test]
    fn what_is_dead_upstream_stays_dead_downstream() {
        for preset in [Preset::Interceptor, Preset::OtlpJson, Preset::CloudEvents] {
            let parts = reading(preset).parts(CALL.as_bytes(), None);
            let [Part::Copy { bytes, kind: Kind::Dead, .. }] = parts.as_slice() else {
                panic!("{preset:?}: {parts:?}")
            };
            assert!(decode(bytes, Preset::Native).is_err(), "{preset:?}");
        }
    }
}
