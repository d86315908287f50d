//! Whose calls are erased: by call id, session or agent; and where raw bytes name one of them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use aho_corasick::AhoCorasick;
use serde_json::Value;

use crate::error::LedgerError;

/// Said wherever sessions are asked for.
pub const UNIT: &str =
    "the session id of a call, where it has none its run id, where it has neither its trace id";

/// Ids whose calls are to be erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Call ids.
    pub call_ids: BTreeSet<String>,
    /// Sessions: the session id of a call, else its run id, else its trace id.
    pub sessions: BTreeSet<String>,
    /// Agents.
    pub agents: BTreeSet<String>,
}

impl Selection {
    /// Nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many ids.
    pub fn len(&self) -> usize {
        self.call_ids.len() + self.sessions.len() + self.agents.len()
    }

    /// Whether a call is one of those. `unit`: its session, else run, else trace.
    pub fn picks(&self, call_id: &str, unit: Option<&str>, agent: Option<&str>) -> bool {
        self.call_ids.contains(call_id)
            || unit.is_some_and(|unit| self.sessions.contains(unit))
            || agent.is_some_and(|agent| self.agents.contains(agent))
    }

    /// Every id.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        [&self.call_ids, &self.sessions, &self.agents].into_iter().flatten().map(String::as_str)
    }
}

/// Finds ids in raw bytes.
pub(crate) struct Finder {
    /// Ids of word characters alone: looked up word by word, however many they are.
    words: HashSet<String>,
    others: AhoCorasick,
}

/// What may stand inside an id that is a word.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

impl Finder {
    /// For every id: as it is, and as JSON writes it.
    pub(crate) fn new<'a>(ids: impl Iterator<Item = &'a str>) -> Result<Self, LedgerError> {
        let mut words = HashSet::new();
        let mut others: BTreeSet<String> = BTreeSet::new();
        for id in ids.filter(|id| !id.is_empty()) {
            if id.bytes().all(is_word) {
                words.insert(id.to_owned());
                continue;
            }
            others.insert(id.to_owned());
            let quoted = Value::from(id).to_string();
            others.insert(quoted.trim_matches('"').to_owned());
            // Some writers escape every slash.
            others.insert(id.replace('/', "\\/"));
        }
        let others = AhoCorasick::new(others).map_err(|e| LedgerError::unreadable("the ids to erase", e))?;
        Ok(Self { words, others })
    }

    /// Whether the bytes name one of the ids: as a whole word, so that `c1` is not found in `c12`; also where it is written
    /// with JSON's escapes, whatever else the bytes are, and in a text of JSON within a text.
    pub(crate) fn finds(&self, bytes: &[u8]) -> bool {
        let mut text = Cow::Borrowed(bytes);
        for _ in 0..LEVELS {
            if self.stands_in(&text) {
                return true;
            }
            if !text.contains(&b'\\') {
                return false;
            }
            text = Cow::Owned(unescaped(&text));
        }
        self.stands_in(&text)
    }

    fn stands_in(&self, bytes: &[u8]) -> bool {
        let known = |word: &[u8]| std::str::from_utf8(word).is_ok_and(|word| self.words.contains(word));
        if !self.words.is_empty() && bytes.split(|b| !is_word(*b)).any(known) {
            return true;
        }
        let word = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|b| is_word(*b));
        self.others
            .find_overlapping_iter(bytes)
            .any(|m| !word(m.start().checked_sub(1)) && !word(Some(m.end())))
    }
}

/// How often a text within a text is looked into.
const LEVELS: usize = 8;

/// The bytes with every escape of JSON read, wherever it stands: the bytes may be cut off, or no JSON at all.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let unit = |at: usize| {
        let digits = bytes.get(at..)?.strip_prefix(b"\\u")?.get(..4)?;
        let digits = std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        let next = bytes.get(at + 1).copied().filter(|_| byte == b'\\');
        let read = match next {
            None => byte,
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b' | b'f') => b' ',
            Some(other @ (b'"' | b'\\' | b'/')) => other,
            Some(_) => {
                let Some(first) = unit(at) else {
                    out.push(byte);
                    at += 1;
                    continue;
                };
                let pair = unit(at + 6)
                    .filter(|second| (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(second));
                let units: Vec<u16> = std::iter::once(first).chain(pair).collect();
                out.extend_from_slice(String::from_utf16_lossy(&units).as_bytes());
                at += 6 * units.len();
                continue;
            }
        };
        out.push(read);
        at += if next.is_some() { 2 } else { 1 };
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_as_a_word_however_json_writes_it() {
        let ids = ["c1", "run/7/a b", "größe", "x\"y"].map(str::to_owned);
        let selection = Selection { call_ids: ids.into(), ..Selection::default() };
        let finder = Finder::new(selection.ids()).unwrap();
        for text in [
            r#"{"call_id":"c1","#,
            r#"{"call_id":"c1"#,
            "c1",
            r#"["\u0063\u0031"]"#,
            r#"{"run\/7\/a b":1}"#,
            r#"{"id":"gr\u00f6\u00dfe"}"#,
            r#"id=größe;"#,
            r#"{"id":"x\"y"}"#,
            r#"{"id":"x\u0022y"}"#,
            "\u{e9}c1\u{e9}",
            r#"{"call_id":"\u0063\u0031","n":1e999}"#,
            r#"{"call_id":"\u0063\u0031"#,
            r#"{"call_id":"x","call_id":"\u0063\u0031"}"#,
            r#"{"lone":"\ud800","call_id":"\u00631"}"#,
            r#"{"arguments_text":"{\"id\":\"\\u00631\"}","n":1e999}"#,
            r#"{"text":"\nc1\n","n":1e999}"#,
            r#"{"id":"gr\u00F6\u00dfe" cut"#,
            &format!("{}{}", "[".repeat(300), r#""\u0063\u0031""#),
        ] {
            assert!(finder.finds(text.as_bytes()), "{text}");
        }
        for text in [
            r#"{"call_id":"c12"}"#,
            "xc1",
            "c1-2",
            "c_1",
            "",
            r#"["\u0063\u0032"]"#,
            r#"\u00"#,
            r#"\uc1uu"#,
            "\\",
        ] {
            assert!(!finder.finds(text.as_bytes()), "{text}");
        }
        let agents = Selection { agents: ["a".to_owned()].into(), ..Selection::default() };
        assert!(agents.picks("c9", None, Some("a")) && !agents.picks("a", Some("a"), None));
    }
}
