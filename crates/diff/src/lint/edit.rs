//! Small changes of a JSON text that leave every other byte as it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// One change; pointers are into the text before any change.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// One member more, at the end of an object.
    Insert {
        /// The object.
        pointer: String,
        /// The new key.
        key: String,
        /// Its value.
        value: Value,
    },
    /// Another value.
    Replace {
        /// The value that goes.
        pointer: String,
        /// What comes.
        value: Value,
    },
    /// Another key for the same value.
    Rename {
        /// The member.
        pointer: String,
        /// The new key.
        key: String,
    },
    /// One item less. Never the first of its list.
    Remove {
        /// The item.
        pointer: String,
    },
}

impl Edit {
    /// The same edit where the document that it speaks of stands at `prefix` of another one.
    pub(super) fn below(mut self, prefix: &str) -> Self {
        match &mut self {
            Self::Insert { pointer, .. }
            | Self::Replace { pointer, .. }
            | Self::Rename { pointer, .. }
            | Self::Remove { pointer } => pointer.insert_str(0, prefix),
        }
        self
    }
}

/// Where a value stands: its bytes, those of its key, and its last member.
#[derive(Clone, Debug, Default)]
struct Span {
    start: usize,
    end: usize,
    key: Option<(usize, usize)>,
    last: Option<String>,
}

/// Makes the changes. `None`: the text is no JSON, or a pointer leads nowhere.
pub fn apply(text: &str, edits: &[Edit]) -> Option<String> {
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut scan = Scan { bytes: text.as_bytes(), at: mark, spans: BTreeMap::new() };
    scan.value(String::new(), None, 0)?;
    let mut changes: Vec<(usize, usize, String)> = Vec::new();
    let mut seen = BTreeSet::new();
    for edit in edits {
        let change = match edit {
            Edit::Insert { pointer, key, value } => {
                if !seen.insert((pointer.clone(), key.clone())) {
                    continue; // two rules asked for the same
                }
                insertion(text, &scan.spans, pointer, key, value)?
            }
            Edit::Replace { pointer, value } => {
                let span = scan.spans.get(pointer)?;
                (span.start, span.end, value.to_string())
            }
            Edit::Rename { pointer, key } => {
                let (start, end) = scan.spans.get(pointer)?.key?;
                (start, end, Value::from(key.as_str()).to_string())
            }
            Edit::Remove { pointer } => {
                let (list, n) = pointer.rsplit_once('/')?;
                let before = n.parse::<usize>().ok()?.checked_sub(1)?;
                let before = scan.spans.get(&format!("{list}/{before}"))?;
                (before.end, scan.spans.get(pointer)?.end, String::new())
            }
        };
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    changes.sort_by_key(|(start, _, _)| *start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, new) in changes {
        out.push_str(text.get(at..start)?);
        out.push_str(&new);
        at = end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// A member more, laid out as the last member is.
fn insertion(
    text: &str,
    spans: &BTreeMap<String, Span>,
    pointer: &str,
    key: &str,
    value: &Value,
) -> Option<(usize, usize, String)> {
    let object = spans.get(pointer).filter(|span| text.as_bytes().get(span.start) == Some(&b'{'))?;
    let key = Value::from(key).to_string();
    let Some(last) = object.last.as_ref().and_then(|name| spans.get(name)) else {
        return Some((object.start, object.end, format!("{{{key}: {value}}}")));
    };
    let (key_start, key_end) = last.key?;
    let colon = text.get(key_end..last.start)?;
    let line_start = text.get(..key_start)?.rfind('\n').map_or(0, |n| n + 1);
    let lead = text.get(line_start..key_start)?;
    let own_line = line_start > object.start && lead.chars().all(char::is_whitespace);
    let separator = if own_line {
        let newline = if text.get(..line_start)?.ends_with("\r\n") { "\r\n" } else { "\n" };
        format!(",{newline}{lead}")
    } else if colon.ends_with(' ') {
        ", ".to_owned()
    } else {
        ",".to_owned()
    };
    Some((last.end, last.end, format!("{separator}{key}{colon}{value}")))
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    spans: BTreeMap<String, Span>,
}

impl Scan<'_> {
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.space();
        (*self.bytes.get(self.at)? == byte).then(|| self.at += 1)
    }

    /// A string; answers its bytes with the quotes.
    fn text(&mut self) -> Option<(usize, usize)> {
        self.space();
        let start = self.at;
        self.take(b'"')?;
        loop {
            match self.bytes.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Some((start, self.at));
                }
                _ => self.at += 1,
            }
        }
    }

    fn value(&mut self, pointer: String, key: Option<(usize, usize)>, depth: usize) -> Option<()> {
        if depth > 128 {
            return None;
        }
        self.space();
        let start = self.at;
        let mut last = None;
        match *self.bytes.get(self.at)? {
            b'{' => {
                self.at += 1;
                self.space();
                while self.bytes.get(self.at) != Some(&b'}') {
                    let (from, to) = self.text()?;
                    let raw = std::str::from_utf8(self.bytes.get(from..to)?).ok()?;
                    let name: String = serde_json::from_str(raw).ok()?;
                    let below = crate::pointer::join(&pointer, &name);
                    self.take(b':')?;
                    self.value(below.clone(), Some((from, to)), depth + 1)?;
                    last = Some(below);
                    if self.take(b',').is_none() {
                        break;
                    }
                    self.space();
                }
                self.take(b'}')?;
            }
            b'[' => {
                self.at += 1;
                self.space();
                let mut n = 0;
                while self.bytes.get(self.at) != Some(&b']') {
                    self.value(format!("{pointer}/{n}"), None, depth + 1)?;
                    n += 1;
                    if self.take(b',').is_none() {
                        break;
                    }
                    self.space();
                }
                self.take(b']')?;
            }
            b'"' => {
                self.text()?;
            }
            _ => {
                while self.bytes.get(self.at).is_some_and(|b| !b" \t\r\n,]}".contains(b)) {
                    self.at += 1;
                }
            }
        }
        self.spans.insert(pointer, Span { start, end: self.at, key, last });
        Some(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_rest_of_the_text_stays() {
        let text = "{\n  \"a\": {\n    \"b\" : [1,  2, 1],\n    \"c/d\": \"é\\\"\"\n  }, \"e\":{}\n}\n";
        let edits = [
            Edit::Insert { pointer: "/a".into(), key: "n".into(), value: json!(false) },
            Edit::Remove { pointer: "/a/b/2".into() },
            Edit::Rename { pointer: "/a/c~1d".into(), key: "x".into() },
            Edit::Insert { pointer: "/e".into(), key: "k".into(), value: json!(1) },
            Edit::Replace { pointer: "/a/b/0".into(), value: json!([7]) },
        ];
        assert_eq!(
            apply(text, &edits).unwrap(),
            "{\n  \"a\": {\n    \"b\" : [[7],  2],\n    \"x\": \"é\\\"\",\n    \"n\": false\n  }, \"e\":{\"k\": 1}\n}\n"
        );
        assert_eq!(apply("{\"a\":1}", &edits[..1]), None);
        assert_eq!(apply("{\"a\"", &[]), None);
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i32>().prop_map(Value::from), "[a-z\"~/é]{0,4}".prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z~/é]{0,3}", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// serde_json is the oracle: the text after the change parses to the value after the change.
        #[test]
        fn a_change_of_the_text_is_that_change_of_the_value(inner in tree(), pretty in any::<bool>(), new in tree()) {
            let mut value = json!({"top": inner, "other": {"x": [1]}});
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let edits = [
                Edit::Replace { pointer: "/top".into(), value: new.clone() },
                Edit::Insert { pointer: "/other".into(), key: "y\"".into(), value: new.clone() },
            ];
            value["top"] = new.clone();
            value["other"]["y\""] = new;
            prop_assert_eq!(serde_json::from_str::<Value>(&apply(&text, &edits).unwrap()).unwrap(), value);
        }
    }
}
