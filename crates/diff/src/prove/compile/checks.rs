//! Checks of a value by the validation library, for what the prover does not model: patterns, formats, content.

use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use lastcall_contract::{Draft, PatternEngine, validator_with_formats};
use serde_json::{Map, Value};

use crate::prove::ir::Check;
use crate::prove::witness::gave_up;

/// Formats that the validation library asserts, and the first draft in which it does. Others are annotations.
const FORMATS: [(&str, Draft); 18] = [
    ("date", Draft::Draft4),
    ("date-time", Draft::Draft4),
    ("duration", Draft::Draft201909),
    ("email", Draft::Draft4),
    ("hostname", Draft::Draft4),
    ("ipv4", Draft::Draft4),
    ("ipv6", Draft::Draft4),
    ("iri", Draft::Draft7),
    ("iri-reference", Draft::Draft7),
    ("json-pointer", Draft::Draft6),
    ("regex", Draft::Draft4),
    ("relative-json-pointer", Draft::Draft7),
    ("time", Draft::Draft4),
    ("uri", Draft::Draft4),
    ("uri-reference", Draft::Draft6),
    ("uri-template", Draft::Draft6),
    ("uuid", Draft::Draft201909),
    // Not a format of JSON Schema: keeps the table honest in its test.
    ("", Draft::Draft202012),
];

/// Whether the format is asserted under this draft.
pub(super) fn asserts_format(name: &str, draft: Draft) -> bool {
    FORMATS.iter().any(|(known, first)| !known.is_empty() && *known == name && rank(*first) <= rank(draft))
}

fn rank(draft: Draft) -> u8 {
    match draft {
        Draft::Draft4 => 4,
        Draft::Draft6 => 6,
        Draft::Draft7 => 7,
        Draft::Draft201909 => 19,
        Draft::Draft202012 => 20,
    }
}

/// A check of one keyword, compiled when it is first needed.
pub(super) fn keyword(draft: Draft, name: &str, value: &Value, formats: bool) -> Check {
    let schema = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
    let validator: OnceLock<Option<(Validator, PatternEngine)>> = OnceLock::new();
    Arc::new(move |value| {
        let made = validator.get_or_init(|| validator_with_formats(&schema, draft, formats).ok());
        let (validator, engine) = made.as_ref()?;
        let accepted = validator.is_valid(value);
        let unsure = !accepted
            && *engine == PatternEngine::Backtracking
            && validator.iter_errors(value).any(|error| gave_up(&error));
        (!unsure).then_some(accepted)
    })
}

/// A check of strings by a pattern.
pub(super) fn pattern(pattern: &str) -> Check {
    keyword(Draft::Draft202012, "pattern", &Value::String(pattern.to_owned()), false)
}
