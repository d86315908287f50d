//! Formats: which of them a validator checks, and which a reader narrows although no validator does.

use serde_json::Value;

use crate::class::Class;

/// Formats that the validators assert.
const CHECKED: [&str; 19] = [
    "date",
    "date-time",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uri-template",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// Numeric formats of OpenAPI's format registry: the smallest and the largest value as powers of two (`-2^a ..= 2^b`),
/// and the bits of a whole number that are kept.
const NUMERIC: [(&str, u32, u32, u32); 10] = [
    ("int8", 7, 7, 7),
    ("uint8", 0, 8, 8),
    ("int16", 15, 15, 15),
    ("uint16", 0, 16, 16),
    ("int32", 31, 31, 31),
    ("uint32", 0, 32, 32),
    ("int64", 63, 63, 63),
    ("uint64", 0, 64, 64),
    ("float", 128, 128, 24),
    ("double", 1024, 1024, 53),
];

/// The least class of a format that changed although no value is refused. `None`: the proof says all.
pub(super) fn least(old: Option<&Value>, new: Option<&Value>) -> Option<Class> {
    let name = |side: Option<&Value>| side.and_then(Value::as_str).map(str::to_owned);
    let (old, new) = (name(old), name(new));
    let checked = |side: &Option<String>| side.as_deref().is_none_or(|f| CHECKED.contains(&f));
    if checked(&old) && checked(&new) {
        return None;
    }
    let numeric = |side: &Option<String>| {
        side.as_deref().and_then(|f| NUMERIC.iter().find(|(name, ..)| *name == f)).copied()
    };
    // Without a format, whole numbers of 64 bits are what callers may send.
    let before = numeric(&old).or(old.is_none().then_some(("", 63, 63, 63)));
    let narrows = match (before, numeric(&new)) {
        (Some((_, low, high, bits)), Some((_, new_low, new_high, new_bits))) => {
            new_low < low || new_high < high || new_bits < bits
        }
        _ => false,
    };
    Some(if narrows { Class::HighRisk } else { Class::UsuallyCompatible })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_that_fit_no_more_are_a_risk_and_names_alone_are_not() {
        let asked = |old: &str, new: &str| least(Some(&json!(old)), Some(&json!(new)));
        assert_eq!(asked("int64", "int32"), Some(Class::HighRisk));
        assert_eq!(asked("int32", "uint32"), Some(Class::HighRisk));
        assert_eq!(asked("double", "float"), Some(Class::HighRisk));
        assert_eq!(asked("int64", "double"), Some(Class::HighRisk), "whole numbers above 2^53");
        assert_eq!(asked("int32", "int64"), Some(Class::UsuallyCompatible));
        assert_eq!(asked("foo", "bar"), Some(Class::UsuallyCompatible));
        assert_eq!(asked("uri", "uri-reference"), None);
        assert_eq!(least(None, Some(&json!("int32"))), Some(Class::HighRisk));
        assert_eq!(least(Some(&json!("int32")), None), Some(Class::UsuallyCompatible));
    }
}
