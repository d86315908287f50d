//! Content digests: `sha256:` and 64 hex digits, and over which bytes a definition's digest is taken.
//! Never a digest over a form that two different definitions could share.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written `sha256:<64 hex digits>`. Reading anything else fails.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest(Arc<str>);

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

/// Over which bytes a definition's digest was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DigestBasis {
    /// The definition in RFC 8785 form: key order, whitespace and the spelling of a number do not matter.
    Canonical,
    /// The raw bytes of the definition, because it has a number beyond 2^53 in size, which RFC 8785 would round.
    RawBytes,
}

impl DigestBasis {
    /// `canonical` or `raw_bytes`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Canonical => "canonical",
            Self::RawBytes => "raw_bytes",
        }
    }
}

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(71);
        text.push_str("sha256:");
        for byte in Sha256::digest(bytes) {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
        }
        Self(text.into())
    }

    /// The digest of a JSON document: over RFC 8785, or over `raw` (its exact text) when a number in it is beyond
    /// 2^53, because RFC 8785 writes numbers as IEEE doubles and would make two different integers one.
    pub fn of_document(document: &Value, raw: &str) -> (Self, DigestBasis) {
        if has_unsafe_number(document) {
            return (Self::of(raw.as_bytes()), DigestBasis::RawBytes);
        }
        match serde_json_canonicalizer::to_vec(document) {
            Ok(bytes) => (Self::of(&bytes), DigestBasis::Canonical),
            // Not reached for a parsed document; the raw bytes are a correct basis in any case.
            Err(_) => (Self::of(raw.as_bytes()), DigestBasis::RawBytes),
        }
    }

    /// Reads `sha256:…`; anything else is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let fits = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        fits.then(|| Self(text.into()))
    }

    /// The whole text, `sha256:…`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The 64 hex digits alone.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or_default()
    }

    /// The first twelve hex digits: for people, never for deciding.
    pub fn short(&self) -> &str {
        self.hex().get(..12).unwrap_or_default()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| "a digest is `sha256:` and 64 lower-case hex digits".to_owned())
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.as_str().to_owned()
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// 2^53: the last integer up to which every integer is an IEEE double of its own.
const SAFE: u64 = 1 << 53;

/// Whether a number anywhere is beyond 2^53 in size. A number that was written as an integer beyond 64 bits has become
/// a double by now, so doubles count too: `1e30` then falls under the stricter basis, which is harmless.
fn has_unsafe_number(value: &Value) -> bool {
    match value {
        Value::Number(n) => {
            if let Some(i) = n.as_i64() {
                i.unsigned_abs() > SAFE
            } else if let Some(u) = n.as_u64() {
                u > SAFE
            } else {
                n.as_f64().is_none_or(|f| f.abs() > 9_007_199_254_740_992.0)
            }
        }
        Value::Array(items) => items.iter().any(has_unsafe_number),
        Value::Object(map) => map.values().any(has_unsafe_number),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}
