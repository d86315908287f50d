//! The key of a ledger's redactions, and what it makes of values.

use hmac::{Hmac, KeyInit, Mac};
use lastcall_ledger::hex;
use sha2::Sha256;

/// In front of every hash that stands in a value's place.
pub const MARK: &str = "hmac:";
/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// The key of one ledger's redactions. It is made from a secret that lives outside the ledger: whoever has the ledger
/// alone cannot try out values, however few there are. It is never printed.
#[derive(Clone)]
pub struct RedactionKey([u8; 32]);

impl std::fmt::Debug for RedactionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedactionKey({})", self.fingerprint())
    }
}

impl RedactionKey {
    /// The key of a ledger, from a secret of 64 hex digits. Two ledgers under one secret have two keys, so that nobody
    /// can join them by their hashes.
    ///
    /// # Errors
    /// The secret has another shape. The text does not repeat it.
    pub fn of(secret: &str, ledger_id: &str) -> Result<Self, String> {
        let digits = secret.trim().as_bytes();
        let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let bytes: Option<Vec<u8>> = digits
            .chunks(2)
            .map(|pair| match pair {
                [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
                _ => None,
            })
            .collect();
        match bytes {
            Some(bytes) if bytes.len() == KEY_BYTES => {
                Ok(Self(mac(&bytes, &[b"lastcall redaction 1\0", ledger_id.as_bytes()])))
            }
            _ => Err("a redaction key is 64 hex digits".to_owned()),
        }
    }

    /// What tells keys apart, and stands in the control chain: 16 hex digits that say nothing about the key.
    pub fn fingerprint(&self) -> String {
        hex(mac(&self.0, &[b"fingerprint"]).first_chunk::<8>().map_or(&[], |b| b))
    }

    /// What stands in the place of a text.
    pub fn of_text(&self, text: &str) -> String {
        self.hidden(&[b"text\0", text.as_bytes()])
    }

    /// What stands in the place of bytes that no rule can be applied to.
    pub(super) fn of_bytes(&self, bytes: &[u8]) -> String {
        self.hidden(&[b"bytes\0", bytes])
    }

    /// What is kept of a hash over the text as it arrived: without the key it would let somebody who has the rest of a
    /// record try out what was hidden.
    pub fn of_hash(&self, hash: u128) -> String {
        self.hidden(&[b"hash\0", &hash.to_be_bytes()])
    }

    pub(super) fn hidden(&self, parts: &[&[u8]]) -> String {
        let digest = mac(&self.0, parts);
        format!("{MARK}{}", hex(digest.first_chunk::<16>().map_or(&[], |b| b)))
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // A key of any length is accepted.
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mut mac) => {
            parts.iter().for_each(|part| mac.update(part));
            mac.finalize().into_bytes().into()
        }
        Err(_) => [0; 32],
    }
}
