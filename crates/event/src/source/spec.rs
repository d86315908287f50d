//! Where one field's value comes from: a path, a constant, or several tried in turn.

use std::fmt::Write as _;

use serde_json::value::RawValue;
use toml::Value;

use crate::decode::{DecodeError, fail};

use super::map::{MapError, wrong};
use super::moment::Format;
use super::node::{Got, Node, Tree};

/// Alternatives; the first that gives something holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Spec(Vec<Alternative>);

#[derive(Clone, Debug)]
struct Alternative {
    origin: Origin,
    /// (pattern, value), the most precise pattern first.
    values: Vec<(String, String)>,
    otherwise: Option<String>,
    format: Format,
    /// A text that holds a JSON object or list is taken for it.
    text_is_json: bool,
}

#[derive(Clone, Debug)]
enum Origin {
    Path(Vec<String>),
    Constant(Got<'static>),
    /// Parts, percent-encoded, joined with `/`.
    Join(Vec<Spec>),
    /// Milliseconds from one time to another.
    Between(Vec<String>, Vec<String>),
}

/// The steps of a JSON Pointer.
pub(super) fn path(text: &str, at: &str) -> Result<Vec<String>, MapError> {
    let Some(rest) = text.strip_prefix('/') else {
        return wrong(
            at,
            format!(
                "`{text}` is no path: a path is a JSON Pointer such as /tool/name; a constant is {{ const = … }}"
            ),
        );
    };
    Ok(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

/// Whether a text fits a pattern, in which `*` stands for anything. Letter case does not count.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(found) => rest = rest.get(found + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn string(value: &Value, at: &str) -> Result<String, MapError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(n) => Ok(n.to_string()),
        Value::Boolean(b) => Ok(b.to_string()),
        _ => wrong(at, "a text is expected here"),
    }
}

impl Spec {
    /// Reads a path, a table, or a list of these.
    pub(super) fn parse(value: &Value, at: &str) -> Result<Self, MapError> {
        let items = match value {
            Value::Array(items) if items.is_empty() => return wrong(at, "the list is empty"),
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let read = items.iter().enumerate().map(|(index, item)| {
            let at = if items.len() > 1 { format!("{at}[{index}]") } else { at.to_owned() };
            Alternative::parse(item, &at)
        });
        Ok(Self(read.collect::<Result<_, _>>()?))
    }

    /// Every value that it can give by itself: constants and the right sides of `values`.
    pub(super) fn stated(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|a| {
            let constant = match &a.origin {
                Origin::Constant(got) => Some(&*got.text),
                _ => None,
            };
            a.values.iter().map(|(_, v)| v.as_str()).chain(a.otherwise.as_deref()).chain(constant)
        })
    }

    /// Adds every path that it looks at.
    pub(super) fn add_paths(&self, tree: &mut Tree) {
        for alternative in &self.0 {
            match &alternative.origin {
                Origin::Path(path) => tree.add(path),
                Origin::Between(from, to) => {
                    tree.add(from);
                    tree.add(to);
                }
                Origin::Join(parts) => parts.iter().for_each(|part| part.add_paths(tree)),
                Origin::Constant(_) => {}
            }
        }
    }

    /// The value, and how it writes times.
    pub(super) fn get<'a>(&self, node: &Node<'a>) -> Option<(Got<'a>, &Format)> {
        self.0.iter().find_map(|alternative| Some((alternative.get(node)?, &alternative.format)))
    }

    /// A text that is not empty; numbers and truth values are taken by their literals.
    pub(super) fn text(&self, node: &Node<'_>, field: &str) -> Result<Option<String>, DecodeError> {
        let Some((got, _)) = self.get(node) else { return Ok(None) };
        match got.scalar() {
            Some("") => Ok(None),
            Some(text) => Ok(Some(text.to_owned())),
            None => fail("bad_field", format!("what the map names for `{field}` is no text")),
        }
    }
}

impl Alternative {
    fn parse(value: &Value, at: &str) -> Result<Self, MapError> {
        let plain = |origin| Self {
            origin,
            values: Vec::new(),
            otherwise: None,
            format: Format::default(),
            text_is_json: false,
        };
        let table = match value {
            Value::String(text) => return Ok(plain(Origin::Path(path(text, at)?))),
            Value::Table(table) => table,
            _ => {
                return wrong(
                    at,
                    "a path, a table ({ path = … }, { const = … }, { join = … }) or a list of these",
                );
            }
        };
        let origin = match (table.get("path"), table.get("const"), table.get("join"), table.get("since")) {
            (Some(text), None, None, None) => Origin::Path(path(&string(text, at)?, at)?),
            (None, Some(constant), None, None) => Origin::Constant(constant_of(constant, at)?),
            (None, None, Some(Value::Array(parts)), None) if !parts.is_empty() => {
                let parts = parts.iter().map(|part| Spec::parse(part, at));
                Origin::Join(parts.collect::<Result<_, _>>()?)
            }
            (None, None, None, Some(since)) => {
                let Some(until) = table.get("until") else { return wrong(at, "`since` needs `until`") };
                Origin::Between(path(&string(since, at)?, at)?, path(&string(until, at)?, at)?)
            }
            _ => return wrong(at, "exactly one of `path`, `const`, `join` (a list) and `since` is needed"),
        };
        let mut out = plain(origin);
        for (key, value) in table {
            let at = format!("{at}.{key}");
            match key.as_str() {
                "path" | "const" | "join" | "since" | "until" => {}
                "values" => {
                    let Value::Table(values) = value else {
                        return wrong(&at, "a table is expected: { theirs = \"ours\" }");
                    };
                    for (pattern, value) in values {
                        out.values.push((pattern.clone(), string(value, &at)?));
                    }
                    let loose = |pattern: &str| (pattern.contains('*'), std::cmp::Reverse(pattern.len()));
                    out.values.sort_by(|a, b| (loose(&a.0), &a.0).cmp(&(loose(&b.0), &b.0)));
                }
                "otherwise" => out.otherwise = Some(string(value, &at)?),
                "format" => {
                    out.format = Format::parse(&string(value, &at)?).or_else(|what| wrong(&at, what))?;
                }
                "text" => match value.as_str() {
                    Some("json") => out.text_is_json = true,
                    _ => return wrong(&at, "only \"json\" is known: a text that holds JSON is taken for it"),
                },
                _ => {
                    return wrong(
                        &at,
                        "is not known; known are path, const, join, since, until, values, otherwise, format, text",
                    );
                }
            }
        }
        if out.otherwise.is_some() && out.values.is_empty() {
            return wrong(
                at,
                "`otherwise` goes with `values`; for an absent field give a list whose last item is a constant",
            );
        }
        Ok(out)
    }

    fn get<'a>(&self, node: &Node<'a>) -> Option<Got<'a>> {
        let got = match &self.origin {
            Origin::Path(path) => node.get(path)?,
            Origin::Constant(got) => got.clone(),
            Origin::Join(parts) => {
                let mut joined = String::new();
                for (index, part) in parts.iter().enumerate() {
                    let (got, _) = part.get(node)?;
                    let text = got.scalar().filter(|text| !text.is_empty())?;
                    if index > 0 {
                        joined.push('/');
                    }
                    encode(text, &mut joined);
                }
                Got::of(joined)
            }
            Origin::Between(from, to) => {
                let at = |path: &[String]| self.format.read(node.get(path)?.scalar()?).ok();
                let (from, to) = (at(from)?, at(to)?);
                let ms = to.0.checked_sub(from.0).filter(|ms| *ms >= 0)?;
                Got { is_json: true, ..Got::of(ms.to_string()) }
            }
        };
        if !self.values.is_empty() {
            let text = got.scalar().unwrap_or_default();
            let found = self.values.iter().find(|(pattern, _)| fits(pattern, text)).map(|(_, value)| value);
            return found.or(self.otherwise.as_ref()).map(|value| Got::of(value.clone()));
        }
        if self.text_is_json
            && !got.is_json
            && got.text.trim_start().starts_with(['{', '['])
            && let Ok(raw) = serde_json::from_str::<&RawValue>(&got.text)
        {
            let text = raw.get().to_owned();
            return Some(Got { is_json: true, made: got.made, ..Got::of(text) });
        }
        Some(got)
    }
}

/// A constant: a text, or anything else as JSON.
fn constant_of(value: &Value, at: &str) -> Result<Got<'static>, MapError> {
    if let Value::String(text) = value {
        return Ok(Got::of(text.clone()));
    }
    match serde_json::to_string(value) {
        Ok(text) => Ok(Got { is_json: true, ..Got::of(text) }),
        Err(_) => wrong(at, "this constant has no JSON"),
    }
}

/// A part of an id: whatever would make two ids one is percent-encoded.
fn encode(text: &str, to: &mut String) {
    for c in text.chars() {
        if matches!(c, '%' | '/' | ' ') || c.is_control() {
            let mut buffer = [0; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                let _ = write!(to, "%{byte:02X}");
            }
        } else {
            to.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_a_whole() {
        for (pattern, text, wanted) in [
            ("ok", "OK", true),
            ("ok", "okay", false),
            ("*timeout*", "ReadTimeoutError", true),
            ("*timeout", "timeout_", false),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, text), wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn parts_of_an_id_stay_apart() {
        let mut out = String::new();
        encode("a/b %é\n", &mut out);
        assert_eq!(out, "a%2Fb%20%25é%0A");
    }
}
