//! JSON with its number literals kept: what equality is decided on, since a double would merge large integers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lastcall_contract::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;

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
        Self::read(text.trim_matches([' ', '\t', '\r', '\n']), 0)
    }

    fn read(text: &'a str, level: usize) -> Option<Self> {
        if level > MAX_LEVELS {
            return None;
        }
        Some(match text.bytes().next()? {
            b'{' => {
                let members: BTreeMap<Cow<'a, str>, &'a RawValue> = members(text)?;
                let mut out = BTreeMap::new();
                for (key, raw) in members {
                    out.insert(key, Self::read(raw.get(), level + 1)?);
                }
                Self::Object(out)
            }
            b'[' => {
                let items: Vec<&'a RawValue> = serde_json::from_str(text).ok()?;
                Self::List(
                    items.into_iter().map(|raw| Self::read(raw.get(), level + 1)).collect::<Option<_>>()?,
                )
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

    /// A text that two values share if they are equal: numbers by decimal value, strings as `text` makes them.
    pub fn key(&self, text: &impl Fn(&str) -> String) -> String {
        let mut out = String::new();
        self.write_key(text, &mut out);
        out
    }

    fn write_key(&self, text: &impl Fn(&str) -> String, out: &mut String) {
        match self {
            Self::Null => out.push('n'),
            Self::Bool(b) => out.push(if *b { 't' } else { 'f' }),
            Self::Number(literal) => match Decimal::parse(literal) {
                Some(decimal) => out.push_str(&format!("{decimal:?}")),
                None => out.push_str(literal),
            },
            Self::Text(string) => out.push_str(&format!("{:?}", text(string))),
            Self::List(items) => {
                out.push('[');
                items.iter().for_each(|v| {
                    v.write_key(text, out);
                    out.push(',');
                });
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                members.iter().for_each(|(k, v)| {
                    out.push_str(&format!("{k:?}:"));
                    v.write_key(text, out);
                    out.push(',');
                });
                out.push('}');
            }
        }
    }

    /// The value at a pointer.
    pub fn at(&self, pointer: &str) -> Option<&Self> {
        lastcall_diff::tokens(pointer).try_fold(self, |value, token| match value {
            Self::Object(members) => members.get(token.as_str()),
            Self::List(items) => items.get(token.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// Takes the value at a pointer out; only through objects.
    pub fn take(&mut self, pointer: &str) -> Option<Self> {
        let path: Vec<String> = lastcall_diff::tokens(pointer).collect();
        let (last, up) = path.split_last()?;
        let mut value = self;
        for token in up {
            let Self::Object(members) = value else { return None };
            value = members.get_mut(token.as_str())?;
        }
        let Self::Object(members) = value else { return None };
        members.remove(last.as_str())
    }

    /// Puts a value at a pointer, making the objects on the way.
    pub fn put(&mut self, pointer: &str, new: Self) {
        let path: Vec<String> = lastcall_diff::tokens(pointer).collect();
        let Some((last, up)) = path.split_last() else { return };
        let mut value = self;
        for token in up {
            let Self::Object(members) = value else { return };
            value = members.entry(Cow::Owned(token.clone())).or_insert_with(|| Self::Object(BTreeMap::new()));
        }
        if let Self::Object(members) = value {
            members.insert(Cow::Owned(last.clone()), new);
        }
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
