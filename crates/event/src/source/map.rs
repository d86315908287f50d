//! A map: which documents are calls, and where a call's fields stand in them. Written in TOML, by a user or by this build.

use toml::{Table, Value};

use crate::decode::Preset;

use super::node::{Node, Tree};
use super::spec::{Spec, fits, path};

/// How a message is cut into documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// One JSON text a message, or a list in it (`each`).
    Json,
    /// OTLP traces in JSON: one document a span.
    OtlpJson,
    /// OTLP traces in protobuf: one document a span.
    OtlpProto,
    /// A CloudEvent, structured or binary.
    CloudEvents,
}

const INPUTS: [(&str, Input); 4] = [
    ("json", Input::Json),
    ("otlp-json", Input::OtlpJson),
    ("otlp-proto", Input::OtlpProto),
    ("cloudevents", Input::CloudEvents),
];

/// What is wrong with a map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}; see schemas/map.schema.json and the guide's chapter on connecting", if .at.is_empty() { String::new() } else { format!("`{}`: ", .at) })]
pub struct MapError {
    /// The key's path in the file.
    pub at: String,
    /// What is wrong.
    pub message: String,
}

pub(super) fn wrong<T>(at: &str, message: impl Into<String>) -> Result<T, MapError> {
    Err(MapError { at: at.to_owned(), message: message.into() })
}

/// What a condition asks of one place.
#[derive(Clone, Debug)]
enum Asked {
    OneOf(Vec<String>),
    Exists(bool),
}

/// Fields of the outcome.
pub(super) const OUTCOME: [&str; 7] =
    ["status", "executed", "error_code", "error_class", "result", "partial", "latency_ms"];
/// Fields of the envelope that are texts.
pub(super) const ENVELOPE: [&str; 15] = [
    "agent_id",
    "agent_version",
    "prompt_version",
    "model",
    "delegation",
    "run_id",
    "tool_call_id",
    "session_id",
    "cohort",
    "trace_id",
    "span_id",
    "policy_version",
    "policy_decision",
    "policy_reason",
    "side_effect_outcome",
];
/// Fields of the call itself.
pub(super) const CALL: [&str; 8] = [
    "call_id",
    "ts",
    "tool_id",
    "contract_id",
    "contract_version",
    "contract_digest",
    "arguments",
    "fidelity",
];
const NEEDED: [&str; 4] = ["call_id", "ts", "tool_id", "arguments"];
const STATUSES: [&str; 8] = [
    "ok",
    "invalid_arguments",
    "business_error",
    "permission_denied",
    "rate_limited",
    "timeout",
    "platform_error",
    "unknown",
];
const FIDELITIES: [&str; 4] = ["raw", "reconstructed", "normalized", "not_captured"];
/// The largest map: 256 KiB.
const MAX_BYTES: usize = 256 << 10;

/// A map, checked.
#[derive(Clone, Debug)]
pub struct Map {
    input: Input,
    pub(super) each: Option<Vec<String>>,
    pub(super) native: Option<Vec<String>>,
    when: Vec<Vec<(Vec<String>, Asked)>>,
    pub(super) call: Vec<(&'static str, Spec)>,
    pub(super) outcome: Vec<(&'static str, Spec)>,
    pub(super) envelope: Vec<(&'static str, Spec)>,
    /// Every path that is looked at.
    pub(super) tree: Tree,
}

impl Map {
    /// The text of a named preset's map; `None`: the preset has none, or its map is the user's.
    pub fn text_of(preset: Preset) -> Option<&'static str> {
        match preset {
            Preset::OtlpJson => Some(include_str!("presets/otlp-json.toml")),
            Preset::OtlpProto => Some(include_str!("presets/otlp-proto.toml")),
            Preset::CloudEvents => Some(include_str!("presets/cloudevents.toml")),
            Preset::Native | Preset::Interceptor | Preset::Provider | Preset::Map => None,
        }
    }

    /// Reads a map.
    ///
    /// # Errors
    /// It is no TOML, or says something that a map cannot mean; with the place.
    pub fn parse(text: &str) -> Result<Self, MapError> {
        if text.len() > MAX_BYTES {
            return wrong("", format!("the map is larger than {} KiB", MAX_BYTES >> 10));
        }
        let table: Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                let error: toml::de::Error = error;
                let place = error.span().map(|span| {
                    let line = text.get(..span.start).map_or(0, |before| before.matches('\n').count()) + 1;
                    format!("line {line}: ")
                });
                return wrong("", format!("{}{}", place.unwrap_or_default(), error.message()));
            }
        };
        let mut map = Self {
            input: Input::Json,
            each: None,
            native: None,
            when: Vec::new(),
            call: Vec::new(),
            outcome: Vec::new(),
            envelope: Vec::new(),
            tree: Tree::default(),
        };
        if table.get("format").and_then(Value::as_integer) != Some(1) {
            return wrong("format", "a map begins with `format = 1`, the only format that this build reads");
        }
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("format", _) => {}
                ("input", value) => {
                    let known = INPUTS.iter().find(|(name, _)| Some(*name) == value.as_str());
                    let Some((_, input)) = known else {
                        return wrong("input", "is one of json, otlp-json, otlp-proto, cloudevents");
                    };
                    map.input = *input;
                }
                ("each", Value::String(text)) => map.each = Some(path(text, "each")?),
                ("native", Value::String(text)) => map.native = Some(path(text, "native")?),
                ("when", Value::Table(one)) => map.when.push(conditions(one)?),
                ("when", Value::Array(several)) => {
                    for one in several {
                        let Value::Table(one) = one else { return wrong("when", "a list of tables") };
                        map.when.push(conditions(one)?);
                    }
                }
                ("call", Value::Table(fields)) => map.call = specs("call", &CALL, fields)?,
                ("outcome", Value::Table(fields)) => map.outcome = specs("outcome", &OUTCOME, fields)?,
                ("envelope", Value::Table(fields)) => map.envelope = specs("envelope", &ENVELOPE, fields)?,
                ("each" | "native", _) => return wrong(key, "a path is expected"),
                ("when" | "call" | "outcome" | "envelope", _) => return wrong(key, "a table is expected"),
                _ => {
                    return wrong(
                        key,
                        "is not known; known are format, input, each, native, when, call, outcome, envelope",
                    );
                }
            }
        }
        map.check()?;
        map.gather();
        Ok(map)
    }

    fn check(&self) -> Result<(), MapError> {
        if self.each.is_some() && self.input != Input::Json {
            return wrong(
                "each",
                "is for input json alone; the other inputs say themselves what is in a message",
            );
        }
        for name in NEEDED {
            if !self.call.iter().any(|(field, _)| *field == name) {
                return wrong(&format!("call.{name}"), "is needed");
            }
        }
        for (fields, name, known) in
            [(&self.outcome, "status", STATUSES.as_slice()), (&self.call, "fidelity", FIDELITIES.as_slice())]
        {
            let stated =
                fields.iter().filter(|(field, _)| *field == name).flat_map(|(_, spec)| spec.stated());
            for value in stated {
                if !known.contains(&value) {
                    return wrong(name, format!("`{value}` is not one of {}", known.join(", ")));
                }
            }
        }
        Ok(())
    }

    fn gather(&mut self) {
        let mut tree = Tree::default();
        for (_, spec) in self.call.iter().chain(&self.outcome).chain(&self.envelope) {
            spec.add_paths(&mut tree);
        }
        for (path, _) in self.when.iter().flatten() {
            tree.add(path);
        }
        if let Some(native) = &self.native {
            let mark: Vec<String> = native.iter().cloned().chain(["schema_version".to_owned()]).collect();
            tree.add(&mark);
        }
        self.tree = tree;
    }

    /// How a message is cut into documents.
    pub fn input(&self) -> Input {
        self.input
    }

    /// Whether a document is a call.
    pub(super) fn takes(&self, node: &Node<'_>) -> bool {
        let holds = |(path, asked): &(Vec<String>, Asked)| {
            let got = node.get(path);
            match asked {
                Asked::Exists(wanted) => got.is_some() == *wanted,
                Asked::OneOf(patterns) => got
                    .as_ref()
                    .and_then(|got| got.scalar())
                    .is_some_and(|text| patterns.iter().any(|pattern| fits(pattern, text))),
            }
        };
        self.when.is_empty() || self.when.iter().any(|all| all.iter().all(holds))
    }
}

fn conditions(table: &Table) -> Result<Vec<(Vec<String>, Asked)>, MapError> {
    let mut out = Vec::new();
    for (key, value) in table {
        let at = format!("when.{key}");
        let text = |value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            Value::Integer(n) => Ok(n.to_string()),
            Value::Boolean(b) => Ok(b.to_string()),
            _ => wrong(&at, "a text, a list of texts, or { exists = true }"),
        };
        let asked = match value {
            Value::Array(items) => Asked::OneOf(items.iter().map(text).collect::<Result<_, _>>()?),
            Value::Table(asked) => match (asked.len(), asked.get("exists").and_then(Value::as_bool)) {
                (1, Some(exists)) => Asked::Exists(exists),
                _ => return wrong(&at, "only { exists = true } or { exists = false } is known"),
            },
            one => Asked::OneOf(vec![text(one)?]),
        };
        out.push((path(key, &at)?, asked));
    }
    if out.is_empty() {
        return wrong("when", "an empty table takes everything; leave it out");
    }
    Ok(out)
}

fn specs(table: &str, known: &[&'static str], fields: &Table) -> Result<Vec<(&'static str, Spec)>, MapError> {
    let mut out = Vec::new();
    for (key, value) in fields {
        let at = format!("{table}.{key}");
        match known.iter().find(|name| **name == key.as_str()) {
            Some(name) => out.push((*name, Spec::parse(value, &at)?)),
            None => return wrong(&at, format!("is not known; known are {}", known.join(", "))),
        }
    }
    // in the order in which records write them
    out.sort_by_key(|(name, _)| known.iter().position(|k| k == name));
    Ok(out)
}
