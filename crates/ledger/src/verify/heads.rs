//! Heads that were kept elsewhere, and signatures: what they prove, and what nobody can exclude.

use lastcall_contract::Digest;

use super::{Outcome, Signed, Verifier, length};
use crate::chain::Read;
use crate::error::LedgerError;
use crate::index::{IndexBody, index_entry};
use crate::names::{self, Chain};
use crate::sign::{PublicKey, read_signature};

/// What was found of heads and signatures.
pub(super) struct Heads {
    /// Per head that was kept elsewhere: the index entry.
    found: Vec<Option<u64>>,
    /// Entries of the index chain.
    entries: u64,
    /// Findings about what was asked, and not about what stands there: a signature with the given key, a head that is newer
    /// than the export.
    pub(super) apart: usize,
}

impl Heads {
    pub(super) fn new(kept: usize) -> Self {
        Self { found: vec![None; kept], entries: 0, apart: 0 }
    }
}

impl Verifier<'_> {
    /// An index entry may be a head that was kept elsewhere.
    pub(super) fn is_head(&mut self, seq: u64, digest: &Digest) {
        for (head, found) in self.asked.heads.iter().zip(&mut self.heads.found) {
            if head.head == *digest {
                *found = Some(seq);
            }
        }
    }

    /// The signature beside an index entry.
    pub(super) fn signature(&mut self, seq: u64, read: &Read<IndexBody>) -> Result<(), LedgerError> {
        let path = names::signature_path(seq);
        let record = Some(format!("of index entry {seq}"));
        let meant = read.entry.body.signer;
        let Some(bytes) = self.ledger.store().get(&path)? else {
            if let Some(signer) = meant {
                let what = format!(
                    "the signature is missing: the entry says that it is signed with the key {}",
                    signer.fingerprint()
                );
                self.find(Outcome::Unsigned, &path, record, what);
            }
            return Ok(());
        };
        let signature = match read_signature(&path, &bytes) {
            Ok(signature) => signature,
            Err(error) => return self.find_error(&path, record, error),
        };
        if !signature.signs(&self.ledger.meta().id, seq, &read.digest) {
            let what = format!(
                "it is not a signature of {}: one of the two was altered",
                Chain::Index.entry_path(seq)
            );
            self.find(Outcome::Altered, &path, record, what);
            return Ok(());
        }
        let key = signature.public_key;
        if let Some(signer) = meant.filter(|signer| *signer != key) {
            let what = format!(
                "it was made with the key {}, and the entry names the key {}",
                key.fingerprint(),
                signer.fingerprint()
            );
            self.find(Outcome::Unsigned, &path, record, what);
        }
        self.report.signatures += 1;
        let trusted = self.asked.keys.contains(&key);
        if trusted || !self.report.signed.as_ref().is_some_and(|signed| signed.trusted) {
            self.report.signed = Some(Signed { seq, public_key: key, trusted });
        }
        Ok(())
    }

    /// The index chain was read to its fixed tail: signatures behind its end, and what a key asks for.
    pub(super) fn signatures(&mut self, bound: Option<u64>) -> Result<(), LedgerError> {
        let next = length(bound);
        self.heads.entries = next;
        let store = self.ledger.store().clone();
        for seq in [next, next.saturating_add(1)] {
            let path = names::signature_path(seq);
            // The signature is asked for first: where the chain has grown meanwhile, its entry stands.
            if store.get(&path)?.is_some() && store.get(&Chain::Index.entry_path(seq))?.is_none() {
                let what = format!("it is missing, and its signature stands ({path})");
                self.find(Outcome::Truncated, &Chain::Index.entry_path(seq), None, what);
            }
        }
        let keys = self.asked.keys.iter().map(PublicKey::fingerprint).collect::<Vec<_>>().join(" or ");
        if keys.is_empty() {
            return Ok(());
        }
        let trusted = self.report.signed.as_ref().filter(|signed| signed.trusted).map(|signed| signed.seq);
        let Some(last) = bound else {
            let what = format!(
                "there is no index entry that could be signed; `lastcall ledger compact {} --key FILE` writes one",
                self.ledger.place()
            );
            self.find(Outcome::Unsigned, &Chain::Index.to_string(), None, what);
            return Ok(());
        };
        if trusted == Some(last) {
            return Ok(());
        }
        let other = self.report.signed.as_ref().filter(|signed| signed.seq == last && !signed.trusted);
        let how = match other {
            Some(signed) => format!("it was made with another key, {}", signed.public_key.fingerprint()),
            None => "there is no signature that fits".to_owned(),
        };
        let up_to = match trusted {
            Some(seq) => format!("; the last one with that key is of index entry {seq}"),
            None => "; no index entry is signed with that key".to_owned(),
        };
        let what = format!("the newest index entry is not signed with the key {keys}: {how}{up_to}");
        self.heads.apart += 1;
        self.find(
            Outcome::Unsigned,
            &names::signature_path(last),
            Some(format!("of index entry {last}")),
            what,
        );
        Ok(())
    }

    /// Whether every head that was kept elsewhere stands in the index; and what cannot be excluded.
    pub(super) fn heads_found(&mut self) -> Result<(), LedgerError> {
        // A head that is newer than the tail that was fixed.
        let mut seq = self.heads.entries;
        while self.heads.found.iter().any(Option::is_none) {
            let Ok(Some(read)) = index_entry(&**self.ledger.store(), seq) else { break };
            self.is_head(seq, &read.digest);
            seq = seq.saturating_add(1);
        }
        let heads: Vec<_> = self.asked.heads.iter().cloned().zip(self.heads.found.clone()).collect();
        for (head, found) in heads {
            let record = Some(format!("the head {}", head.head));
            match (found, head.seq) {
                (Some(seq), None) => self.report.heads.push(seq),
                (Some(seq), Some(said)) if seq == said => self.report.heads.push(seq),
                (Some(seq), Some(said)) => {
                    let what = format!(
                        "the head that was kept elsewhere is said to be index entry {said}, and is {seq}"
                    );
                    self.find(Outcome::Altered, &Chain::Index.entry_path(seq), record, what);
                }
                (None, Some(said)) if said >= self.heads.entries && self.ledger.export().is_some() => {
                    let what = format!(
                        "the head that was kept elsewhere is index entry {said}, newer than this export, which is as of index \
                         entry {}: it cannot be checked here, only in the ledger that it came from or in a newer export",
                        self.heads.entries.saturating_sub(1)
                    );
                    self.heads.apart += 1;
                    self.find(Outcome::CannotCheck, &Chain::Index.entry_path(said), record, what);
                }
                (None, None) if self.ledger.export().is_some() => {
                    let what = format!(
                        "no index entry up to {}, as of which this is an export, has the digest of the head that was kept \
                         elsewhere: it is newer than the export, or entries were written anew; a head that was kept with its \
                         number (`lastcall ledger head --format json`) tells the two apart",
                        self.heads.entries.saturating_sub(1)
                    );
                    self.heads.apart += 1;
                    self.find(Outcome::CannotCheck, &Chain::Index.to_string(), record, what);
                }
                (None, Some(said)) if said >= self.heads.entries => {
                    let what = "it is missing, and it is the head that was kept elsewhere";
                    self.find(Outcome::Truncated, &Chain::Index.entry_path(said), record, what);
                }
                (None, said) => {
                    let place = said.map_or(Chain::Index.to_string(), |seq| Chain::Index.entry_path(seq));
                    let what = "no index entry has the digest of the head that was kept elsewhere: since it was kept, \
                                entries were removed or written anew (or it is the head of another ledger)";
                    self.find(Outcome::Altered, &place, record, what);
                }
            }
        }
        self.report.not_excluded = self.not_excluded();
        Ok(())
    }

    fn not_excluded(&self) -> String {
        let mut said: Vec<String> = Vec::new();
        let signed = self.report.signed.as_ref();
        if let Some(seq) = self.report.heads.iter().max() {
            let several = match self.report.heads.len() {
                1 => format!("The head that was kept elsewhere is index entry {seq}"),
                n => format!(
                    "The {n} heads that were kept elsewhere are of one chain, the newest is index entry {seq}"
                ),
            };
            said.push(format!(
                "{several}: up to the tails that it names nothing was removed or written anew. Of what came after them \
                 that cannot be excluded without a newer head."
            ));
        }
        match signed {
            Some(signed) if signed.trusted => said.push(format!(
                "Index entry {} is signed with the key {}: nobody without that key has written anew what it names. That a \
                 newer end was removed cannot be excluded by a signature, only by a head that is kept elsewhere.",
                signed.seq,
                signed.public_key.fingerprint()
            )),
            Some(signed) => said.push(format!(
                "Index entry {} is signed with the key {}; whose that is only --public-key can say.",
                signed.seq,
                signed.public_key.fingerprint()
            )),
            None => {}
        }
        if self.report.heads.is_empty() && !signed.is_some_and(|signed| signed.trusted) {
            said.insert(0, super::NOT_EXCLUDED.to_owned());
        }
        said.join(" ")
    }
}
