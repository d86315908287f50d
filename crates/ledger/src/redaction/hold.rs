//! A ledger's redactions: which hold, and under which key. A ledger has one key, or whoever is asked to erase somebody
//! would find only what one of them hid.

use std::collections::BTreeSet;

use super::Redaction;
use crate::control::Control;
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::state::ControlState;

/// What became of a source's redaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// The control entry; `None`: it stands so already.
    pub seq: Option<u64>,
    /// What held before.
    pub before: Option<Redaction>,
    /// What holds now.
    pub after: Option<Redaction>,
}

impl Ledger {
    /// Fixes what of a source's records is not kept from now on; `None`: everything is. Answers the control entry, and
    /// nothing where it already stands so. Recorders close their chunk and go on under the new rules.
    ///
    /// # Errors
    /// A rule is refused, or the ledger's hashes are made with another key.
    pub fn redact(&self, source: &str, redaction: Option<Redaction>) -> Result<Option<u64>, LedgerError> {
        self.redact_with(source, |_| redaction.clone()).map(|done| done.seq)
    }

    /// As [`Ledger::redact`], with what comes of the redaction that stands.
    ///
    /// # Errors
    /// As there.
    pub fn redact_with(
        &self,
        source: &str,
        mut make: impl FnMut(Option<&Redaction>) -> Option<Redaction>,
    ) -> Result<Redacted, LedgerError> {
        enum Stop {
            Same,
            Ledger(LedgerError),
        }
        impl From<LedgerError> for Stop {
            fn from(error: LedgerError) -> Self {
                Self::Ledger(error)
            }
        }
        let (mut before, mut after) = (None, None);
        let done = self.append_control_with(|state| {
            before = state.redactions.get(source).cloned();
            after = make(before.as_ref());
            if let Some(redaction) = &after {
                self.check_redaction_key(state, &redaction.key)?;
            }
            if before == after {
                return Err(Stop::Same);
            }
            if let (Some(redaction), Some(info)) = (&after, state.sources.get(source)) {
                redaction.check(info.preset)?;
            }
            Ok(Control::Redact { source: source.to_owned(), redaction: after.clone() })
        });
        match done {
            Ok((seq, _)) => Ok(Redacted { seq: Some(seq), before, after }),
            Err(Stop::Same) => Ok(Redacted { seq: None, before, after }),
            Err(Stop::Ledger(error)) => Err(error),
        }
    }

    /// Fingerprints of the keys that hashes of this ledger were ever made with: one, but for ledgers of builds that let
    /// in several.
    ///
    /// # Errors
    /// The control chain cannot be read.
    pub fn redaction_keys(&self) -> Result<BTreeSet<String>, LedgerError> {
        Ok(self.superseded()?.keys().clone())
    }

    /// Refuses a key that is not the ledger's; where none is known yet, any may be.
    ///
    /// # Errors
    /// It is another key, or the control chain cannot be read.
    pub fn check_redaction_key(&self, state: &ControlState, fingerprint: &str) -> Result<(), LedgerError> {
        if state.redactions.values().any(|r| r.key == fingerprint) {
            return Ok(());
        }
        // What was taken away again stands in no fold.
        let keys = self.redaction_keys()?;
        if keys.is_empty() || keys.contains(fingerprint) {
            return Ok(());
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        Err(LedgerError::Refused(format!(
            "the redaction key is {fingerprint}, and the hashes of this ledger are made with {}; a ledger has one key: give \
             the key that they began with",
            keys.join(" and ")
        )))
    }
}
