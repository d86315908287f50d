//! JSON with its number literals kept: what equality is decided on, since a double would merge large integers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::number::Decimal;
use crate::parse::MAX_LEVELS;

/// A JSON value whose numbers are their literals. A key given twice keeps its last value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Literal<'a>>),
    Object(BTreeMap<Cow<'a, str>, Literal<'a>>),
}

#[derive(Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Literal<'a> {
    /// Reads a JSON text; `None` where it is none, or deeper than [`MAX_LEVELS`].
    pub fn parse(text: &'a str) -> Option<Self> {
        Self::at(text.trim_matches([' ', '\t', '\r', '\n']), 0)
    }

    fn at(text: &'a str, level: usize) -> Option<Self> {
        if level > MAX_LEVELS {
            return None;
        }
        Some(match text.bytes().next()? {
            b'{' => {
                let members: BTreeMap<Cow<'a, str>, &'a RawValue> = members(text)?;
                let mut out = BTreeMap::new();
                for (key, raw) in members {
                    out.insert(key, Self::at(raw.get(), level + 1)?);
                }
                Self::Object(out)
            }
            b'[' => {
                let items: Vec<&'a RawValue> = serde_json::from_str(text).ok()?;
                Self::List(items.into_iter().map(|raw| Self::at(raw.get(), level + 1)).collect::<Option<_>>()?)
            }
            b'"' => Self::Text(serde_json::from_str::<Borrowed<'a>>(text).ok()?.0),
            b't' | b'f' => Self::Bool(serde_json::from_str(text).ok()?),
            b'n' => serde_json::from_str::<()>(text).ok().map(|()| Self::Null)?,
            _ => {
                let _: &RawValue = serde_json::from_str(text).ok()?;
                Self::Number(text)
            }
        })
    }

    /// Equal with numbers by decimal value; nothing else is folded.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => Decimal::same(a, b),
            (Self::List(a), Self::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.same(y)),
            (Self::Object(a), Self::Object(b)) => {
                a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| v.same(w)))
            }
            _ => self == other,
        }
    }
}

/// The members of an object, each as its text, one level deep.
pub(crate) fn members(text: &str) -> Option<BTreeMap<Cow<'_, str>, &RawValue>> {
    struct V;
    impl<'de> serde::de::Visitor<'de> for V {
        type Value = BTreeMap<Cow<'de, str>, &'de RawValue>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut out = BTreeMap::new();
            while let Some(key) = map.next_key::<Borrowed<'de>>()? {
                out.insert(key.0, map.next_value::<&'de RawValue>()?);
            }
            Ok(out)
        }
    }
    serde::Deserializer::deserialize_map(&mut serde_json::Deserializer::from_str(text), V).ok()
}
