//! Numbers that reading changes: integers beyond 64 bits and decimals with more digits than a double holds.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::document::MAX_DEPTH;
use crate::error::escape;
use crate::number::{Decimal, is_precise};

/// The numbers of a JSON text that are not what they were after reading, since a number is read as an integer of 64 bits
/// or as a double: JSON Pointer → the literal as it is written. Empty for what is no JSON.
pub fn rounded_numbers(text: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    if has_long_number(text) {
        read(text.trim(), &mut String::new(), 0, &mut out);
    }
    out
}

/// A number of at most 15 digits and no exponent comes through. Digits in texts count too, which only costs time.
fn has_long_number(text: &str) -> bool {
    let mut digits = 0;
    text.bytes().any(|byte| {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'.' => {}
            b'e' | b'E' if digits > 0 => return true,
            _ => digits = 0,
        }
        digits > 15
    })
}

fn read(text: &str, at: &mut String, level: usize, out: &mut BTreeMap<String, String>) {
    if level > MAX_DEPTH {
        return;
    }
    let length = at.len();
    let mut below = |token: &str, raw: &RawValue, out: &mut BTreeMap<String, String>| {
        at.push('/');
        at.push_str(token);
        read(raw.get(), at, level + 1, out);
        at.truncate(length);
    };
    match text.bytes().next() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
            members.iter().for_each(|(key, raw)| below(&escape(key), raw, out));
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
            items.iter().enumerate().for_each(|(i, raw)| below(&i.to_string(), raw, out));
        }
        Some(b'-' | b'0'..=b'9') if is_rounded(text) => {
            out.insert(at.clone(), text.to_owned());
        }
        _ => {}
    }
}

fn is_rounded(literal: &str) -> bool {
    if literal.parse::<i64>().is_ok() || literal.parse::<u64>().is_ok() || is_precise(literal) {
        return false;
    }
    // A double may hold more than its shortest decimal says: 2^64 is one.
    let exact = literal.parse::<f64>().ok().filter(|double| double.is_finite());
    exact.is_none_or(|double| !Decimal::same(literal, &format!("{double:.0}")))
}

#[cfg(test)]
mod tests {
    use super::rounded_numbers;

    #[test]
    fn what_reading_changes() {
        let text = r#"{"a": {"minimum": 18446744073709551617, "maximum": 18446744073709551616},
            "b": [9007199254740993, 0.1, 1e300, -9223372036854775809, 0.10000000000000000001, 1e400, 1.5],
            "c/d": "18446744073709551617", "e": 123456789012345678901234567890}"#;
        let found: Vec<(String, String)> = rounded_numbers(text).into_iter().collect();
        let expected = [
            ("/a/minimum", "18446744073709551617"),
            ("/b/3", "-9223372036854775809"),
            ("/b/4", "0.10000000000000000001"),
            ("/b/5", "1e400"),
            ("/e", "123456789012345678901234567890"),
        ];
        assert_eq!(found, expected.map(|(at, literal)| (at.to_owned(), literal.to_owned())));
        assert!(rounded_numbers(r#"{"minimum": 1.5, "n": "e"}"#).is_empty());
        assert!(rounded_numbers("{\"a\": 18446744073709551617").is_empty(), "no JSON");
    }
}
