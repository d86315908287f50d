//! A document as a map sees it: exact JSON text, read only as deep as a path goes, or what another format was turned into.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::decode::{DecodeError, fail, masked};
use crate::record::Text;

/// The keys that paths go through.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Tree>);

impl Tree {
    pub(super) fn add(&mut self, path: &[String]) {
        if let Some((first, rest)) = path.split_first() {
            self.0.entry(first.clone()).or_default().add(rest);
        }
    }

    pub(super) fn below(&self, key: &str) -> Option<&Tree> {
        self.0.get(key)
    }
}

/// A value of a document.
#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    /// Exact JSON text, as it arrived.
    Json(&'a str),
    /// A text.
    Text(Cow<'a, str>),
    /// JSON text that was rebuilt from another form.
    Made(String),
    /// An object whose members are known as far as a path asks for them; `raw` is its exact text, where it has one.
    Object { raw: Option<&'a str>, members: Vec<(Cow<'a, str>, Node<'a>)> },
}

/// What a path found.
#[derive(Clone, Debug)]
pub(super) struct Got<'a> {
    /// A text, or the text of a JSON value.
    pub(super) text: Cow<'a, str>,
    pub(super) is_json: bool,
    /// It was rebuilt from another form.
    pub(super) made: bool,
}

impl<'a> Got<'a> {
    pub(super) fn of(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), is_json: false, made: false }
    }

    /// A text, or the literal of a number or a truth value; `None` for lists and objects.
    pub(super) fn scalar(&self) -> Option<&str> {
        let nested = self.is_json && self.text.starts_with(['{', '[']);
        (!nested).then_some(&*self.text)
    }
}

/// Reads the members of an object that the tree asks for.
struct Members<'t>(&'t Tree);

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut out: Self::Value = Vec::new();
        while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
            if self.0.below(&key).is_none() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if out.iter().any(|(known, _)| *known == key) {
                return Err(serde::de::Error::custom("duplicate field"));
            }
            let value = map.next_value()?;
            out.push((key, value));
        }
        Ok(out)
    }
}

/// Reads a JSON text as deep as the tree goes.
pub(super) fn expand<'a>(raw: &'a str, tree: &Tree) -> Result<Node<'a>, DecodeError> {
    if tree.0.is_empty() || !raw.starts_with('{') {
        return Ok(Node::Json(raw));
    }
    let mut reader = serde_json::Deserializer::from_str(raw);
    let members = Members(tree).deserialize(&mut reader).or_else(|error| match error.classify() {
        serde_json::error::Category::Data => fail("bad_field", masked(&error)),
        _ => fail("not_json", masked(&error)),
    })?;
    let expanded = members.into_iter().map(|(key, value)| {
        let below = tree.below(&key).cloned().unwrap_or_default();
        Ok((key, expand(value.get(), &below)?))
    });
    Ok(Node::Object { raw: Some(raw), members: expanded.collect::<Result<_, DecodeError>>()? })
}

impl<'a> Node<'a> {
    /// What stands at a path; nothing and `null` are the same.
    pub(super) fn get(&self, path: &[String]) -> Option<Got<'a>> {
        let Some((step, rest)) = path.split_first() else { return self.value() };
        match self {
            Self::Object { members, .. } => {
                members.iter().find(|(key, _)| **key == **step).and_then(|(_, node)| node.get(rest))
            }
            Self::Json(raw) if raw.starts_with('[') => {
                let items: Vec<&'a RawValue> = serde_json::from_str(raw).ok()?;
                Node::Json(items.get(step.parse::<usize>().ok()?)?.get()).get(rest)
            }
            // below a list, and below what was rebuilt
            Self::Json(raw) => below(raw, path),
            Self::Made(text) => below(text, path).map(|got| Got {
                text: Cow::Owned(got.text.into_owned()),
                is_json: got.is_json,
                made: true,
            }),
            Self::Text(_) => None,
        }
    }

    fn value(&self) -> Option<Got<'a>> {
        match self {
            Self::Json(raw) | Self::Object { raw: Some(raw), .. } => json(raw),
            Self::Text(text) => Some(Got::of(text.clone())),
            Self::Made(text) => {
                (text != "null").then(|| Got { text: Cow::Owned(text.clone()), is_json: true, made: true })
            }
            Self::Object { raw: None, .. } => None,
        }
    }
}

fn below<'x>(raw: &'x str, path: &[String]) -> Option<Got<'x>> {
    let mut tree = Tree::default();
    tree.add(path);
    match expand(raw, &tree).ok()? {
        object @ Node::Object { .. } => object.get(path),
        Node::Json(list) if list.starts_with('[') => Node::Json(list).get(path),
        _ => None,
    }
}

fn json(raw: &str) -> Option<Got<'_>> {
    match raw.as_bytes().first()? {
        b'"' => match serde_json::from_str::<Text<'_>>(raw) {
            Ok(Text(text)) => Some(Got::of(text)),
            // half of a character: no text, so it stays what it is
            Err(_) => Some(Got { text: Cow::Borrowed(raw), is_json: true, made: false }),
        },
        b'n' => None,
        _ => Some(Got { text: Cow::Borrowed(raw), is_json: true, made: false }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_exact_texts() {
        let text = r#"{"a":{"b":[{"c": 1.00},2]},"t":"x\n","n":null,"big":12345678901234567890,"skipped":{"a":1,"a":2}}"#;
        let path = |p: &str| p.split('/').skip(1).map(str::to_owned).collect::<Vec<_>>();
        let mut tree = Tree::default();
        for p in ["/a/b/0/c", "/t", "/n", "/big", "/a"] {
            tree.add(&path(p));
        }
        let node = expand(text, &tree).unwrap();
        let got = |p: &str| node.get(&path(p)).map(|g| (g.text.into_owned(), g.is_json));
        assert_eq!(got("/a/b/0/c"), Some(("1.00".to_owned(), true)));
        assert_eq!(got("/a"), Some((r#"{"b":[{"c": 1.00},2]}"#.to_owned(), true)));
        assert_eq!(got("/t"), Some(("x\n".to_owned(), false)));
        assert_eq!(got("/big"), Some(("12345678901234567890".to_owned(), true)));
        assert_eq!((got("/n"), got("/none"), got("/t/deeper"), got("/a/b/7")), (None, None, None, None));
        let twice = expand(r#"{"t":1,"t":2}"#, &tree).unwrap_err();
        assert_eq!(twice.code, "bad_field");
    }
}
