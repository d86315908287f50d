//! The arguments of a call, parsed once: a tree for validation, and what a tree would hide.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::fmt;

use lastcall_contract::is_precise;
use lastcall_event::Text;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use crate::tree::{Members, Tree};
use crate::types::Reason;

/// Levels of nesting that are still looked at (comparison.md section 8, Limits).
pub const MAX_LEVELS: usize = 128;

/// Parsed arguments.
#[derive(Clone, Debug)]
pub struct Parsed<'a> {
    /// The object, as doubles and 64-bit integers.
    pub tree: Tree<'a>,
    /// There is a number whose literal has to be looked at.
    pub inexact: bool,
    value: OnceCell<Value>,
}

impl Parsed<'_> {
    /// The same as a `Value`, made when it is first asked for.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| self.tree.to_value())
    }
}

/// Parses the text of an argument object.
///
/// # Errors
/// `not_json`, `not_object`, `duplicate_keys`, `too_deep` or `number_out_of_range`.
pub fn parse_arguments(text: &str) -> Result<Parsed<'_>, Reason> {
    let parsed = parse_value(text)?;
    if matches!(parsed.tree, Tree::Object(_)) { Ok(parsed) } else { Err(Reason::NotObject) }
}

/// Parses any JSON text under the same limits.
///
/// # Errors
/// As [`parse_arguments`], `not_object` aside.
pub fn parse_value(text: &str) -> Result<Parsed<'_>, Reason> {
    let state = State { reason: Cell::new(None), inexact: Cell::new(false) };
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let tree = Seed { state: &state, level: 0 }.deserialize(&mut reader);
    let tree = tree.and_then(|tree| reader.end().map(|()| tree));
    match tree {
        Ok(tree) => {
            let inexact = state.inexact.get() && has_imprecise(text);
            Ok(Parsed { tree, inexact, value: OnceCell::new() })
        }
        Err(error) => Err(state.reason.get().unwrap_or_else(|| {
            if error.to_string().starts_with("number out of range") {
                Reason::NumberOutOfRange
            } else {
                Reason::NotJson
            }
        })),
    }
}

struct State {
    reason: Cell<Option<Reason>>,
    inexact: Cell<bool>,
}

#[derive(Clone, Copy)]
struct Seed<'s> {
    state: &'s State,
    level: usize,
}

impl Seed<'_> {
    fn stop<E: Error>(self, reason: Reason) -> E {
        if self.state.reason.get().is_none() {
            self.state.reason.set(Some(reason));
        }
        E::custom(reason.as_str())
    }

    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.level >= MAX_LEVELS {
            return Err(self.stop(Reason::TooDeep));
        }
        Ok(Self { level: self.level + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Tree<'de>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Tree<'de>, D::Error> {
        d.deserialize_any(self)
    }
}

const EXACT: u64 = 1 << 53;
/// So many names of an object are compared with each other; more are looked up.
const FEW: usize = 16;

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }
    fn visit_bool<E>(self, v: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(v))
    }
    fn visit_u64<E>(self, v: u64) -> Result<Tree<'de>, E> {
        if v > EXACT {
            self.state.inexact.set(true);
        }
        Ok(Tree::Number(v.into()))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Tree<'de>, E> {
        if v.unsigned_abs() > EXACT {
            self.state.inexact.set(true);
        }
        Ok(Tree::Number(v.into()))
    }
    fn visit_f64<E: Error>(self, v: f64) -> Result<Tree<'de>, E> {
        self.state.inexact.set(true);
        Number::from_f64(v).map(Tree::Number).ok_or_else(|| self.stop(Reason::NumberOutOfRange))
    }
    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Borrowed(v)))
    }
    fn visit_str<E>(self, v: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(v.to_owned())))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree<'de>, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
        let inner = self.deeper()?;
        let mut members: Vec<(Cow<'de, str>, Tree<'de>)> = Vec::new();
        let mut names: HashSet<Cow<'de, str>> = HashSet::new();
        while let Some(Text(name)) = map.next_key()? {
            let value = map.next_value_seed(inner)?;
            let twice = if members.len() < FEW {
                members.iter().any(|(known, _)| *known == name)
            } else {
                if names.is_empty() {
                    names.extend(members.iter().map(|(known, _)| known.clone()));
                }
                !names.insert(name.clone())
            };
            if twice {
                return Err(self.stop(Reason::DuplicateKeys));
            }
            members.push((name, value));
        }
        Ok(Tree::Object(Members::new(members)))
    }
}

/// Whether the text, which is JSON, has a number literal that is not its double's shortest decimal.
fn has_imprecise(text: &str) -> bool {
    let mut found = false;
    each_number(text, |literal| found |= !is_precise(literal));
    found
}

/// Calls `see` with each number literal of a valid JSON text.
fn each_number(text: &str, mut see: impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        match byte {
            b'"' => {
                i += 1;
                while let Some(&inside) = bytes.get(i) {
                    match inside {
                        b'\\' => i += 2,
                        b'"' => break,
                        _ => i += 1,
                    }
                }
                i += 1;
            }
            b'-' | b'0'..=b'9' => {
                let start = i;
                while bytes
                    .get(i)
                    .is_some_and(|b| matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                {
                    i += 1;
                }
                see(text.get(start..i).unwrap_or_default());
            }
            _ => i += 1,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_kept_apart() {
        let deep = |n: usize| format!("{{\"a\":{}1{}}}", "[".repeat(n), "]".repeat(n));
        let many = |n: usize| {
            format!(
                "{{{},\"\\u006b1\":0}}",
                (0..n).map(|i| format!("\"k{i}\":{i}")).collect::<Vec<_>>().join(",")
            )
        };
        for (text, want) in [
            ("{\"a\":", Reason::NotJson),
            ("{} {}", Reason::NotJson),
            ("", Reason::NotJson),
            ("[1]", Reason::NotObject),
            ("null", Reason::NotObject),
            ("{\"a\":1,\"a\":1}", Reason::DuplicateKeys),
            ("{\"a\":{\"b\":1,\"\\u0062\":2}}", Reason::DuplicateKeys),
            (&many(17), Reason::DuplicateKeys),
            (&many(3), Reason::DuplicateKeys),
            ("{\"a\":1e400}", Reason::NumberOutOfRange),
            ("{\"a\":-1e999}", Reason::NumberOutOfRange),
        ] {
            assert_eq!(parse_arguments(text).err(), Some(want), "{text}");
        }
        assert_eq!(parse_arguments(&deep(128)).err(), Some(Reason::TooDeep));
        assert!(parse_arguments(&deep(127)).is_ok(), "128 levels with the object");
        assert_eq!(parse_arguments(&deep(100_000)).err(), Some(Reason::TooDeep), "no stack overflow");
    }

    #[test]
    fn inexact_numbers_are_noticed() {
        for (text, want) in [
            ("{\"a\":19.90,\"b\":\"9007199254740993\"}", false),
            ("{\"a\":9007199254740993}", true),
            ("{\"a\\\"1\":[0.1000000000000000055]}", true),
            ("{\"a\":123456789012345678901234567890}", true),
        ] {
            assert_eq!(parse_arguments(text).unwrap().inexact, want, "{text}");
        }
    }
}
