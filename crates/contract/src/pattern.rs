//! Patterns that ECMA-262 takes and the engines here do not: which construct it is, and what to write instead.

use serde_json::Value;

use crate::error::{DefinitionErrorKind as Kind, SchemaError, escape, shown};

/// A pattern that cannot be used: what in it, and what to write instead.
pub(crate) fn unusable(pattern: &str, pointer: String) -> SchemaError {
    let text = shown(&Value::from(pattern).to_string());
    let (message, next) = match not_taken(pattern) {
        Some((construct, instead)) => (
            format!("{text} uses `{construct}`, which ECMA-262 has and the pattern engine here has not"),
            format!("Write {}, which means the same everywhere", quoted(&instead)),
        ),
        None => (
            format!("{text} is not a regular expression that can be used here"),
            "Write it as ECMA-262, without delimiters".to_owned(),
        ),
    };
    SchemaError { pointer, kind: Kind::InvalidSchema, message, next }
}

fn quoted(instead: &str) -> String {
    if instead.contains(' ') { instead.to_owned() } else { format!("`{instead}`") }
}

/// Where a pattern first stands in a document.
pub(crate) fn place_of(pattern: &str, schema: &Value) -> Option<String> {
    let mut stack = vec![(schema, String::new())];
    while let Some((value, at)) = stack.pop() {
        match value {
            Value::Object(map) => {
                if map.get("pattern").and_then(Value::as_str) == Some(pattern) {
                    return Some(format!("{at}/pattern"));
                }
                if map.get("patternProperties").is_some_and(|table| table.get(pattern).is_some()) {
                    return Some(format!("{at}/patternProperties/{}", escape(pattern)));
                }
                stack.extend(map.iter().rev().map(|(key, value)| (value, format!("{at}/{}", escape(key)))));
            }
            Value::Array(items) => {
                stack.extend(items.iter().enumerate().rev().map(|(i, value)| (value, format!("{at}/{i}"))));
            }
            _ => {}
        }
    }
    None
}

/// The first construct of a pattern that the engines here do not take, and a spelling of it that they, and ECMA-262, do.
/// `None` where none is known.
fn not_taken(pattern: &str) -> Option<(String, String)> {
    let mut rest = pattern;
    let mut in_class = false;
    loop {
        let mut chars = rest.chars();
        match (chars.next()?, in_class) {
            ('[', false) => {
                if rest.starts_with("[^]") {
                    return said("[^]", r"[\s\S]");
                }
                if rest.starts_with("[]") {
                    return said("[]", r"[^\s\S]");
                }
                in_class = true;
            }
            (']', true) => in_class = false,
            ('\\', _) => {
                let escaped = chars.next()?;
                let digit = chars.clone().next().is_some_and(|c| c.is_ascii_digit());
                match escaped {
                    '0' if !digit => return said(r"\0", r"\x00"),
                    'b' if in_class => {
                        return said(r"\b", r"\x08").map(|(c, i)| (format!("{c} in a class"), i));
                    }
                    'u' => {
                        if let Some(pair) = surrogates(rest) {
                            return Some(pair);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        rest = chars.as_str();
    }
}

fn said(construct: &str, instead: &str) -> Option<(String, String)> {
    Some((construct.to_owned(), instead.to_owned()))
}

/// Two halves of a character beyond U+FFFF.
fn surrogates(rest: &str) -> Option<(String, String)> {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?, 16).ok();
    let (high, low) = (rest.get(..6)?, rest.get(6..12)?);
    let character = char::decode_utf16([unit(high)?, unit(low)?]).next()?.ok()?;
    Some((format!("{high}{low}"), format!("the character {character} itself")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::not_taken;

    #[test]
    fn what_to_write_instead() {
        let instead = |pattern: &str| not_taken(pattern).unwrap().1;
        assert_eq!(instead("^[^]+$"), r"[\s\S]");
        assert_eq!(instead("a|[]"), r"[^\s\S]");
        assert_eq!(instead(r"\\\0"), r"\x00");
        assert_eq!(instead(r"[^\0]"), r"\x00");
        assert_eq!(instead(r"[a\b]"), r"\x08");
        assert_eq!(instead(r"^\uD83D\uDE00$"), "the character 😀 itself");
        // A word boundary, an escaped bracket, a character of the basic plane.
        for plain in [r"\bword\b", r"\[]", r"[\]^]", r"\u00e9", "[a-z]{2}", "", "\\"] {
            assert_eq!(not_taken(plain), None, "{plain}");
        }
    }
}
