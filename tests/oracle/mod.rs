//! The oracle of the real-input tests: what a projected change of a definition does to a call, decided with a few
//! lines of plain serde_json. It shares nothing with the comparator: no validator, no diff, no pointer code.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

/// One real call.
pub struct RealCall {
    /// Line in the file, from 0.
    pub line: usize,
    /// The definition it was made under.
    pub schema_ref: String,
    /// The arguments.
    pub arguments: Value,
    /// There is a result, so production executed it.
    pub has_result: bool,
    /// The producer's error flag.
    pub is_error: Option<bool>,
    /// The session, where known.
    pub session: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// What the data set's own validation says; `None` where the schema does not compile.
    pub valid: Option<bool>,
}

/// The folder of the data, if it is there.
pub fn data_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("LASTCALL_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    folder.join("calls.jsonl").is_file().then_some(folder)
}

/// Reads a file of JSON Lines.
pub fn lines(folder: &std::path::Path, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    text.lines().filter(|l| !l.is_empty()).map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// Reads the calls.
pub fn calls(folder: &std::path::Path) -> Vec<RealCall> {
    let text = |v: &Value, key: &str| v[key].as_str().map(str::to_owned);
    lines(folder, "calls.jsonl")
        .into_iter()
        .enumerate()
        .map(|(line, v)| RealCall {
            line,
            schema_ref: text(&v, "schema_ref").unwrap(),
            has_result: !v["result"].is_null(),
            is_error: v["is_error"].as_bool(),
            session: text(&v, "session"),
            model: text(&v, "model"),
            valid: v["valid_against_schema"].as_bool(),
            arguments: v["arguments"].clone(),
        })
        .collect()
}

/// A change of one definition at one top-level argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    /// The argument has another name, and the pair declares the rename.
    RenameDeclared { from: String, to: String },
    /// The argument has another name, and nobody declares it.
    Rename { from: String, to: String },
    /// One value of its enum is gone.
    RemoveEnumValue { argument: String, value: Value },
    /// It is required now.
    Require { argument: String },
    /// It has another type.
    Retype { argument: String, to: &'static str },
    /// It may have at most so many characters.
    Narrow { argument: String, max: usize },
}

impl Projection {
    /// The kind, for the table of figures.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RenameDeclared { .. } => "rename (declared)",
            Self::Rename { .. } => "rename",
            Self::RemoveEnumValue { .. } => "remove an enum value",
            Self::Require { .. } => "require",
            Self::Retype { .. } => "retype",
            Self::Narrow { .. } => "narrow a length",
        }
    }

    /// The argument as the current contract names it.
    pub fn argument(&self) -> &str {
        match self {
            Self::RenameDeclared { from, .. } | Self::Rename { from, .. } => from,
            Self::RemoveEnumValue { argument, .. }
            | Self::Require { argument }
            | Self::Retype { argument, .. }
            | Self::Narrow { argument, .. } => argument,
        }
    }

    /// Whether the candidate disagrees on a call that the current schema accepts.
    pub fn affects(&self, arguments: &Value) -> bool {
        let value = arguments.get(self.argument());
        match self {
            Self::RenameDeclared { .. } | Self::Rename { .. } => value.is_some(),
            Self::RemoveEnumValue { value: removed, .. } => value == Some(removed),
            Self::Require { .. } => value.is_none(),
            Self::Retype { to, .. } => value.is_some_and(|v| !has_type(v, to)),
            Self::Narrow { max, .. } => {
                value.and_then(Value::as_str).is_some_and(|text| text.chars().count() > *max)
            }
        }
    }

    /// The categories that an affected call has to show, all at the argument (a required one that was renamed without
    /// anybody's word may also show the new name as missing: see `also`).
    pub fn category(&self, parameters: &Value) -> &'static str {
        let required = is_required(parameters, self.argument());
        let closed = parameters["additionalProperties"] == json!(false);
        match self {
            Self::RenameDeclared { .. } if required => "required_renamed",
            Self::RenameDeclared { .. } => "optional_renamed",
            Self::Rename { .. } if required => "required_renamed",
            Self::Rename { .. } if closed => "optional_refused",
            Self::Rename { .. } => "optional_renamed",
            Self::RemoveEnumValue { .. } => "enum_value_removed",
            Self::Require { .. } => "required_added",
            Self::Retype { .. } => "type_changed",
            Self::Narrow { .. } => "range_tightened",
        }
    }

    /// The changed schema.
    pub fn apply(&self, parameters: &Value) -> Value {
        let mut out = parameters.clone();
        let name = self.argument().to_owned();
        match self {
            Self::RenameDeclared { to, .. } | Self::Rename { to, .. } => {
                let properties = out["properties"].as_object_mut().unwrap();
                let schema = properties.remove(&name).unwrap();
                properties.insert(to.clone(), schema);
                if let Some(required) = out.get_mut("required").and_then(Value::as_array_mut) {
                    for entry in required {
                        if entry.as_str() == Some(&name) {
                            *entry = json!(to);
                        }
                    }
                }
            }
            Self::RemoveEnumValue { value, .. } => {
                out["properties"][&name]["enum"].as_array_mut().unwrap().retain(|v| v != value);
            }
            Self::Require { .. } => match out.get_mut("required").and_then(Value::as_array_mut) {
                Some(required) => required.push(json!(name)),
                None => out["required"] = json!([name]),
            },
            Self::Retype { to, .. } => {
                let old = out["properties"][&name].as_object().unwrap().clone();
                let kept = |key: &str| old.get(key).map(|v| (key.to_owned(), v.clone()));
                let mut schema: Map<String, Value> =
                    ["description", "title", "default"].into_iter().filter_map(kept).collect();
                schema.insert("type".to_owned(), json!(to));
                out["properties"][&name] = Value::Object(schema);
            }
            Self::Narrow { max, .. } => out["properties"][&name]["maxLength"] = json!(max),
        }
        out
    }
}

/// The changes whose effect on these calls is known: for each declared argument with a plain type, what the calls make
/// possible. `calls` are the arguments of calls that the schema accepts.
pub fn projections(parameters: &Value, calls: &[&Value]) -> Vec<Projection> {
    let mut out = Vec::new();
    let Some(properties) = parameters.get("properties").and_then(Value::as_object) else { return out };
    let mut of_kind = |candidate: Projection| {
        // One change of each kind is enough for a definition: one that parts its calls, where there is one.
        let share = |p: &Projection| calls.iter().filter(|c| p.affects(c)).count();
        let parts = |p: &Projection| share(p) < calls.len();
        match out.iter_mut().find(|p: &&mut Projection| p.kind() == candidate.kind()) {
            Some(known) if share(&candidate) > 0 && !parts(known) && parts(&candidate) => *known = candidate,
            Some(_) => {}
            None if share(&candidate) > 0 => out.push(candidate),
            None => {}
        }
    };
    for (name, schema) in properties {
        let Some(kind) = schema.get("type").and_then(Value::as_str) else { continue };
        let to = format!("{name}_v2");
        if !properties.contains_key(&to) && !calls.iter().any(|c| c.get(&to).is_some()) {
            of_kind(Projection::RenameDeclared { from: name.clone(), to: to.clone() });
            of_kind(Projection::Rename { from: name.clone(), to });
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            for value in values {
                let near = |v: &Value| {
                    v != value
                        && v.as_str().zip(value.as_str()).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b))
                };
                if values.len() > 1 && !values.iter().any(near) {
                    of_kind(Projection::RemoveEnumValue { argument: name.clone(), value: value.clone() });
                }
            }
        }
        if !is_required(parameters, name) && kind != "null" {
            of_kind(Projection::Require { argument: name.clone() });
        }
        let other = if kind == "string" { "integer" } else { "string" };
        of_kind(Projection::Retype { argument: name.clone(), to: other });
        if kind == "string" && schema.get("enum").is_none() && schema.get("maxLength").is_none() {
            let mut lengths: Vec<usize> =
                calls.iter().filter_map(|c| c.get(name)?.as_str()).map(|t| t.chars().count()).collect();
            lengths.sort_unstable();
            if let Some(middle) = lengths.get(lengths.len() / 2).filter(|n| **n > 0) {
                // Some calls lie above the middle, or all do, by one character.
                let max = if lengths.last() > Some(middle) { *middle } else { middle - 1 };
                of_kind(Projection::Narrow { argument: name.clone(), max });
            }
        }
    }
    out
}

fn is_required(parameters: &Value, name: &str) -> bool {
    parameters["required"].as_array().is_some_and(|r| r.iter().any(|n| n.as_str() == Some(name)))
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0),
        _ => panic!("the projections use string and integer only"),
    }
}

/// Whether a string in the value breaks a `date`, `time` or `date-time` that its schema asks for. The data's own
/// validation ignored `format`; Lastcall asserts it on both sides (comparison.md section 8).
pub fn breaks_a_format(schema: &Value, value: &Value) -> bool {
    match value {
        Value::String(text) => match schema["format"].as_str() {
            Some("date") => !is_date(text),
            Some("time") => !is_time(text),
            Some("date-time") => match text.split_once(['T', 't']) {
                Some((date, time)) => !is_date(date) || !is_time(time),
                None => true,
            },
            _ => false,
        },
        Value::Array(items) => items.iter().any(|item| breaks_a_format(&schema["items"], item)),
        Value::Object(object) => {
            object.iter().any(|(name, inner)| breaks_a_format(&schema["properties"][name], inner))
        }
        _ => false,
    }
}

fn shaped(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(c, s)| if s == b'9' { c.is_ascii_digit() } else { c == s })
}

fn is_date(text: &str) -> bool {
    shaped(text, "9999-99-99")
}

/// RFC 3339 asks for seconds and for a zone.
fn is_time(text: &str) -> bool {
    let Some(clock) = text.get(..8) else { return false };
    let rest = text[8..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    shaped(clock, "99:99:99")
        && (rest.eq_ignore_ascii_case("z") || shaped(rest, "+99:99") || shaped(rest, "-99:99"))
}
