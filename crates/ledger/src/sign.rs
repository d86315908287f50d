//! Signatures of heads: Ed25519 over the digest of an index entry. A signature is a file beside the entry, written once.

use bytes::Bytes;
use lastcall_contract::Digest;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use crate::chain::Read;
use crate::error::LedgerError;
use crate::index::{IndexBody, index_entry};
use crate::ledger::{Ledger, fill_random, hex};
use crate::names;
use crate::store;

/// The version of signatures and of kept heads. A newer one is refused with a message.
pub const SIGNATURE_FORMAT: u32 = 1;

/// What a file with a private key begins with; 64 hex digits follow, the seed of RFC 8032.
const PRIVATE: &str = "ed25519-private:";
/// What a public key begins with as text; 64 hex digits follow.
const PUBLIC: &str = "ed25519-public:";

/// A key that heads are signed with. It is never shown: it has no `Debug` and no text.
pub struct SigningKey(Ed25519KeyPair);

/// The key that a signature is held against.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

/// `<seq>.sig` beside an index entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadSignature {
    /// [`SIGNATURE_FORMAT`].
    pub format: u32,
    /// The key that it was made with.
    pub public_key: PublicKey,
    /// Ed25519 over [`message`], 128 hex digits.
    pub signature: String,
}

/// A head as `lastcall ledger head --format json` prints it, to be kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptHead {
    /// Digest of an index entry.
    pub head: Digest,
    /// Its sequence number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The ledger's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// Its signature, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<HeadSignature>,
}

impl KeptHead {
    /// Whether what was kept fits itself, the ledger and the key; the error says what does not.
    ///
    /// # Errors
    /// It is of another ledger, or its signature is none of it, or not with this key.
    pub fn check(&self, ledger_id: &str, keys: &[PublicKey]) -> Result<(), String> {
        if self.ledger.as_ref().is_some_and(|id| id != ledger_id) {
            return Err(format!("the head {} was kept of another ledger: it names another id", self.head));
        }
        let Some(signature) = &self.signature else { return Ok(()) };
        if signature.format > SIGNATURE_FORMAT {
            return Err(format!(
                "the signature of the head {} has format {}, this build reads {SIGNATURE_FORMAT}; take a newer lastcall",
                self.head, signature.format
            ));
        }
        if !self.seq.is_some_and(|seq| signature.signs(ledger_id, seq, &self.head)) {
            return Err(format!(
                "the signature that was kept with the head {} is none of it: one of the two was altered where it was kept",
                self.head
            ));
        }
        if keys.is_empty() || keys.contains(&signature.public_key) {
            return Ok(());
        }
        let given: Vec<String> = keys.iter().map(PublicKey::fingerprint).collect();
        Err(format!(
            "the head {} was kept with a signature of the key {}, and not of {}; if that key gave way to another, give both: \
             --public-key may be repeated",
            self.head,
            signature.public_key.fingerprint(),
            given.join(" or ")
        ))
    }
}

/// The bytes that are signed: no signature of anything else can be taken for one of a head.
pub fn message(ledger_id: &str, seq: u64, head: &Digest) -> Vec<u8> {
    format!("lastcall ledger head, version 1\nledger {ledger_id}\nindex entry {seq}\n{head}\n").into_bytes()
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 || !digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut bytes = [0u8; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl SigningKey {
    /// A new key, and the text of the file that keeps it.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn generate() -> Result<(Self, String), LedgerError> {
        let mut seed = [0u8; 32];
        fill_random(&mut seed)?;
        let text = format!("{PRIVATE}{}\n", hex(&seed));
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed);
        Ok((Self(pair.map_err(|e| LedgerError::unreadable("a new key", e))?), text))
    }

    /// Reads the text of a key's file; the error says what is wrong with it, and never shows it.
    ///
    /// # Errors
    /// It is no private key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with(PUBLIC) {
            return Err("it holds a public key; to sign give the private one, the file without `.pub`".into());
        }
        let no_key = "it holds no key to sign with; `lastcall ledger keygen FILE` makes one";
        let seed: [u8; 32] = text.strip_prefix(PRIVATE).and_then(from_hex).ok_or(no_key)?;
        Ed25519KeyPair::from_seed_unchecked(&seed).map(Self).map_err(|_| no_key.to_owned())
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0u8; 32];
        bytes.iter_mut().zip(self.0.public_key().as_ref()).for_each(|(to, from)| *to = *from);
        PublicKey(bytes)
    }

    /// Signs a head.
    pub fn sign(&self, ledger_id: &str, seq: u64, head: &Digest) -> HeadSignature {
        let signature = hex(self.0.sign(&message(ledger_id, seq, head)).as_ref());
        HeadSignature { format: SIGNATURE_FORMAT, public_key: self.public(), signature }
    }
}

impl PublicKey {
    /// Reads a public key: `ed25519-public:` and 64 hex digits, or the digits alone.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with(PRIVATE) {
            return Err(
                "it holds a private key, which belongs to the signer alone; give the file `.pub`".into()
            );
        }
        from_hex(text.strip_prefix(PUBLIC).unwrap_or(text)).map(Self).ok_or_else(|| {
            format!(
                "it holds no public key: `{PUBLIC}` and 64 hex digits, as `lastcall ledger keygen` writes it"
            )
        })
    }

    /// What people compare: the first 32 hex digits of the key's SHA-256, in groups of four.
    pub fn fingerprint(&self) -> String {
        let digest = Digest::of(&self.0);
        let digits = digest.hex().get(..32).unwrap_or_default();
        let mut out = String::with_capacity(39);
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && i % 4 == 0 {
                out.push(' ');
            }
            out.push(digit);
        }
        out
    }
}

impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{PUBLIC}{}", hex(&self.0))
    }
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for PublicKey {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let key = text.strip_prefix(PUBLIC).and_then(from_hex).map(Self);
        key.ok_or_else(|| serde::de::Error::custom(format!("`{PUBLIC}` and 64 hex digits were expected")))
    }
}

impl HeadSignature {
    /// Whether it signs this head of this ledger.
    pub fn signs(&self, ledger_id: &str, seq: u64, head: &Digest) -> bool {
        let Some(signature) = from_hex::<64>(&self.signature) else { return false };
        let key = UnparsedPublicKey::new(&ED25519, &self.public_key.0[..]);
        key.verify(&message(ledger_id, seq, head), &signature).is_ok()
    }
}

/// The bytes of a signature's file.
fn bytes_of(signature: &HeadSignature, path: &str) -> Result<Bytes, LedgerError> {
    serde_json::to_vec(signature).map(Bytes::from).map_err(|e| LedgerError::unreadable(path, e))
}

/// The signature of an index entry, as it stands; whether it is right nobody has looked at. `None`: there is none.
///
/// # Errors
/// It is no signature, or of a newer format.
pub fn signature_of(ledger: &Ledger, seq: u64) -> Result<Option<HeadSignature>, LedgerError> {
    let path = names::signature_path(seq);
    ledger.store().get(&path)?.map(|bytes| read_signature(&path, &bytes)).transpose()
}

/// Reads the bytes of a signature's file.
pub(crate) fn read_signature(path: &str, bytes: &[u8]) -> Result<HeadSignature, LedgerError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    match serde_json::from_slice::<Format>(bytes) {
        Ok(Format { format }) if format > SIGNATURE_FORMAT => {
            let what =
                format!("its format is {format}, this build reads {SIGNATURE_FORMAT}; take a newer lastcall");
            Err(LedgerError::unreadable(path, what))
        }
        Ok(Format { format }) if format == SIGNATURE_FORMAT => {
            let signature = serde_json::from_slice(bytes)
                .map_err(|e| LedgerError::altered(path, format!("it is no signature: {e}")))?;
            match bytes_of(&signature, path)? == bytes {
                true => Ok(signature),
                false => Err(LedgerError::altered(path, "it is not written as a signature is written")),
            }
        }
        Ok(_) => Err(LedgerError::altered(path, "it is no signature: no format has that number")),
        Err(e) => Err(LedgerError::altered(path, format!("it is no signature: {e}"))),
    }
}

/// Signs the newest index entry, and those before it that were meant to be signed with this key and were not, since
/// whoever wrote them was stopped. Signing again changes nothing. `None`: there is no index entry.
///
/// # Errors
/// The newest entry is signed with another key already, or something that stands there is no signature.
pub fn sign_head(
    ledger: &Ledger,
    key: &SigningKey,
) -> Result<Option<(Read<IndexBody>, HeadSignature)>, LedgerError> {
    let Some(head) = ledger.head()? else { return Ok(None) };
    let signature = put(ledger, key, &head)?;
    let mut seq = head.entry.seq;
    while let Some(before) = seq.checked_sub(1) {
        let Some(read) = index_entry(&**ledger.store(), before)? else { break };
        if read.entry.body.signer != Some(key.public()) || signature_of(ledger, before)?.is_some() {
            break;
        }
        put(ledger, key, &read)?;
        seq = before;
    }
    Ok(Some((head, signature)))
}

fn put(ledger: &Ledger, key: &SigningKey, head: &Read<IndexBody>) -> Result<HeadSignature, LedgerError> {
    let seq = head.entry.seq;
    let path = names::signature_path(seq);
    let signature = key.sign(&ledger.meta().id, seq, &head.digest);
    // Ed25519 is deterministic: the same key makes the same bytes, whoever was first.
    if store::settle(&**ledger.store(), &path, &bytes_of(&signature, &path)?)? {
        return Ok(signature);
    }
    let Some(there) = signature_of(ledger, seq)? else {
        return Err(LedgerError::Missing { place: path });
    };
    if there.public_key != key.public() && there.signs(&ledger.meta().id, seq, &head.digest) {
        return Err(LedgerError::Refused(format!(
            "index entry {seq} is signed already, with the key {}, and a signature is never replaced; the next index \
             entry can be signed with yours: `lastcall ledger compact {} --key FILE` once something new was recorded",
            there.public_key.fingerprint(),
            ledger.place()
        )));
    }
    Err(LedgerError::altered(&path, "it is not a signature of its index entry"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, test 1: the seed and its public key.
    #[test]
    fn a_seed_has_the_public_key_of_the_rfc() {
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let key = SigningKey::parse(&format!("{PRIVATE}{seed}\n")).unwrap();
        assert_eq!(key.public(), PublicKey::parse(public).unwrap());
        assert_eq!(key.public().to_string(), format!("{PUBLIC}{public}"));
        let empty = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b\
                     d25bf5f0595bbe24655141438e7a100b";
        assert_eq!(hex(key.0.sign(b"").as_ref()), empty);
    }

    #[test]
    fn a_signature_is_of_one_ledger_one_entry_and_one_digest() {
        let (key, text) = SigningKey::generate().unwrap();
        let (other, _) = SigningKey::generate().unwrap();
        let again = SigningKey::parse(&text).unwrap();
        assert!(again.public() == key.public() && key.public() != other.public());
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let signed = key.sign("id", 7, &a);
        assert!(signed.signs("id", 7, &a));
        assert!(!signed.signs("id", 7, &b) && !signed.signs("id", 8, &a) && !signed.signs("ie", 7, &a));
        let forged = HeadSignature { public_key: other.public(), ..signed.clone() };
        assert!(!forged.signs("id", 7, &a));
        let bytes = bytes_of(&signed, "x").unwrap();
        assert_eq!(read_signature("x", &bytes).unwrap(), signed);
        let newer = String::from_utf8(bytes.to_vec()).unwrap().replace("\"format\":1", "\"format\":2");
        let said = read_signature("x", newer.as_bytes()).unwrap_err().to_string();
        assert!(said.contains("take a newer lastcall"), "{said}");
    }

    #[test]
    fn a_wrong_key_is_named_and_not_shown() {
        let (key, text) = SigningKey::generate().unwrap();
        let public = key.public().to_string();
        let said = |text: &str| SigningKey::parse(text).err().unwrap();
        assert!(said(&public).contains("public key"));
        let digits = text.trim().strip_prefix(PRIVATE).unwrap();
        for wrong in [digits, "", "ed25519-private:00", "-----BEGIN PRIVATE KEY-----"] {
            assert!(said(wrong).contains("keygen") && (wrong.is_empty() || !said(wrong).contains(wrong)));
        }
        let said = PublicKey::parse(&text).unwrap_err();
        assert!(said.contains("private key") && !said.contains(digits), "{said}");
        assert!(PublicKey::parse("abc").unwrap_err().contains("64 hex digits"));
    }
}
