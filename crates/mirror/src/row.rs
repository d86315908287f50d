//! Rows of `mirrored-calls`, as text.

use std::fmt::Write;

use lastcall_event::{CallRecord, RawValue, Timestamp};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::answer::{Answer, Replayed};

/// Which upstream positions a row stands for: `[from, to)`, and how far in time the upstream is known complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stand {
    /// First upstream position.
    pub from: i64,
    /// One past the last.
    pub to: i64,
    /// Everything up to this moment was mirrored.
    pub through: Option<Timestamp>,
}

/// Fields of a record that a row says itself.
const OWN: [&str; 4] = ["type", "upstream", "candidates", "current_rerun"];

/// The mirrored row of a call. `record` is the call's own text: of preset native it is kept, field by field, as it came
/// (but for `type`, `upstream`, `candidates` and `current_rerun`); else the row is written from `call`.
///
/// A `record` that is no JSON object is not kept: the row is then written from `call`.
pub fn row(record: Option<&str>, call: &CallRecord<'_>, stand: Stand, replayed: &Replayed) -> String {
    let fields = record.and_then(|text| serde_json::from_str::<Fields<'_>>(text).ok());
    let mut out = String::with_capacity(record.map_or(1024, str::len) + replayed.bytes() + 256);
    out.push_str(r#"{"type":"mirrored_call""#);
    match &fields {
        Some(fields) => {
            for (key, value) in fields.0.iter().filter(|(key, _)| !is_own(key.get())) {
                out.push(',');
                out.push_str(key.get());
                out.push(':');
                out.push_str(value.get());
            }
        }
        None => written(&mut out, call),
    }
    upstream(&mut out, stand);
    if !replayed.candidates.is_empty() {
        out.push_str(r#","candidates":["#);
        for (n, answer) in replayed.candidates.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            candidate(&mut out, answer);
        }
        out.push(']');
    }
    if let Some(answer) = &replayed.current_rerun {
        out.push_str(r#","current_rerun":"#);
        candidate(&mut out, answer);
    }
    out.push('}');
    out
}

/// The row of a partition without a call: how far it was mirrored.
pub fn coverage(stand: Stand) -> String {
    let mut out = r#"{"type":"coverage","schema_version":1"#.to_owned();
    upstream(&mut out, stand);
    out.push('}');
    out
}

/// The fields of an object, each with its exact text, in their order.
struct Fields<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut out = Vec::with_capacity(16);
                while let Some(entry) = map.next_entry()? {
                    out.push(entry);
                }
                Ok(Fields(out))
            }
        }
        d.deserialize_map(V)
    }
}

/// Whether a key, as it stands in the text, is one of [`OWN`].
fn is_own(key: &str) -> bool {
    if !key.contains('\\') {
        return OWN.contains(&key.trim_matches('"'));
    }
    serde_json::from_str::<String>(key).is_ok_and(|key| OWN.contains(&key.as_str()))
}

fn written(out: &mut String, call: &CallRecord<'_>) {
    let call = CallRecord { upstream: None, candidates: Vec::new(), current_rerun: None, ..call.clone() };
    out.push_str(r#","schema_version":1"#);
    // strings, numbers and texts that were JSON: it cannot fail
    let text = serde_json::to_string(&call).unwrap_or_default();
    if let Some(fields) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        out.push(',');
        out.push_str(fields);
    }
}

fn upstream(out: &mut String, stand: Stand) {
    let _ = write!(out, r#","upstream":{{"from":{},"to":{}"#, stand.from, stand.to);
    if let Some(through) = stand.through {
        let _ = write!(out, r#","through":"{through}""#);
    }
    out.push('}');
}

fn candidate(out: &mut String, answer: &Answer) {
    out.push_str(r#"{"contract_id":"#);
    string(out, &answer.contract);
    out.push_str(r#","input":"raw""#);
    if let Some(executed) = answer.executed {
        let _ = write!(out, r#","executed":{executed}"#);
    }
    let _ = write!(out, r#","status":"{}""#, answer.status.as_str());
    let texts =
        [("error_code", answer.error_code.as_deref()), ("error_class", answer.error_class.as_deref())];
    for (key, text) in texts {
        if let Some(text) = text {
            let _ = write!(out, r#","{key}":"#);
            string(out, text);
        }
    }
    for (key, json) in [("arguments", &answer.arguments), ("result", &answer.result)] {
        if let Some(json) = json {
            let _ = write!(out, r#","{key}":{json}"#);
        }
    }
    if let Some(partial) = answer.partial {
        let _ = write!(out, r#","partial":{partial}"#);
    }
    let _ = write!(out, r#","suppression":"{}""#, suppression(answer.suppression));
    if let Some(ms) = answer.latency_ms.filter(|ms| ms.is_finite()) {
        let _ = write!(out, r#","latency_ms":{ms:.3}"#);
    }
    out.push('}');
}

fn suppression(suppression: lastcall_event::Suppression) -> &'static str {
    use lastcall_event::Suppression as S;
    match suppression {
        S::Replica => "replica",
        S::Snapshot => "snapshot",
        S::DryRun => "dry_run",
        S::Sandbox => "sandbox",
        S::Stub => "stub",
        S::NotExecuted => "not_executed",
    }
}

/// A JSON string.
pub(crate) fn string(out: &mut String, text: &str) {
    let plain = text.bytes().all(|b| b >= b' ' && b != b'"' && b != b'\\');
    if plain {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}
