//! Entries that verdicts and index entries name by their digests.

use std::collections::BTreeMap;

use lastcall_contract::Digest;

use super::{Outcome, Verifier};
use crate::error::LedgerError;
use crate::names::Chain;

/// Who names an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The verdict of a control entry.
    Verdict(u64),
    /// An index entry.
    Index(u64),
}

impl std::fmt::Display for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Verdict(seq) => write!(f, "the verdict of control entry {seq}"),
            Self::Index(seq) => write!(f, "{}", Chain::Index.entry_path(*seq)),
        }
    }
}

/// By chain and sequence number: who names which digest. As many as verdicts and index entries name, whatever the
/// chains' length.
#[derive(Default)]
pub(super) struct References(BTreeMap<Chain, BTreeMap<u64, Vec<(Digest, By)>>>);

impl Verifier<'_> {
    /// An entry is named; it is looked at when its chain is read. Of the control chain, which was read, at the end.
    pub(super) fn refer(&mut self, chain: Chain, seq: u64, digest: Digest, by: By) {
        let named = self.references.0.entry(chain).or_default().entry(seq).or_default();
        // The next index entries name the same tail of a chain that rests.
        if !named.iter().any(|(known, _)| *known == digest) {
            named.push((digest, by));
        }
    }

    /// What stands at a place; `None`: nothing does.
    pub(super) fn referred(&mut self, chain: &Chain, seq: u64, there: Option<&Digest>) {
        let Some(named) = self.references.0.get_mut(chain).and_then(|of| of.remove(&seq)) else { return };
        let place = chain.entry_path(seq);
        for (digest, by) in named {
            let (outcome, what) = match there {
                Some(there) if *there == digest => continue,
                Some(_) => (
                    Outcome::Altered,
                    format!("it is not the entry that {by} names: one of the two was altered"),
                ),
                None => (Outcome::Truncated, format!("it is missing, and {by} names it")),
            };
            self.find(outcome, &place, Some(format!("{chain} entry {seq}")), what);
        }
    }

    /// What was named and not read: of the control chain, of chains that no source has, of what was cut off, of what came
    /// meanwhile.
    pub(super) fn left_over(&mut self) -> Result<(), LedgerError> {
        let left: Vec<(Chain, u64)> = self
            .references
            .0
            .iter()
            .flat_map(|(chain, named)| named.keys().map(|seq| (chain.clone(), *seq)))
            .collect();
        for (chain, seq) in left {
            let known = match chain {
                Chain::Control => {
                    self.control.entry(seq).map(|there| there.map(|(digest, _)| digest.clone()))
                }
                _ => None,
            };
            let there = match known {
                Some(there) => there,
                None => self.ledger.store().get(&chain.entry_path(seq))?.map(|bytes| Digest::of(&bytes)),
            };
            self.referred(&chain, seq, there.as_ref());
        }
        Ok(())
    }
}
