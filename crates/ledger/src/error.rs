//! What can go wrong with a ledger: each error names the place and the next step.

use crate::store::StoreError;

/// An error of reading or writing a ledger.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// There is no `ledger.json` there.
    #[error("{0} is not a ledger: it has no ledger.json; make one with `lastcall ledger init`")]
    NotALedger(String),
    /// There is one already.
    #[error("{0} is a ledger already; nothing was changed")]
    AlreadyALedger(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record is not what was written: a chain does not join, or a digest differs.
    #[error("the record was altered: {place}: {what}; run `lastcall ledger verify` for all of it")]
    Altered {
        /// The path.
        place: String,
        /// What does not fit.
        what: String,
    },
    /// Something that an entry names, or that stands before another entry, is missing.
    #[error("the record is incomplete: {place} is missing; restore it, or see `lastcall ledger verify`")]
    Missing {
        /// The path.
        place: String,
    },
    /// An export does not hold it.
    #[error(
        "{place} is not in this export of `{tool}`: it was left behind, or lost (`lastcall ledger verify` says which); \
         the ledger that it came from has it"
    )]
    LeftBehind {
        /// The path.
        place: String,
        /// The tool whose export it is.
        tool: String,
    },
    /// An entry of a chain that this build cannot read.
    #[error("{place} cannot be read: {what}; it was altered, or written by a newer lastcall: take that one")]
    Entry {
        /// The path.
        place: String,
        /// Why.
        what: String,
    },
    /// It cannot be read by this build.
    #[error("{place} cannot be read: {what}")]
    Unreadable {
        /// The path.
        place: String,
        /// Why.
        what: String,
    },
    /// The change was refused; the text says why and what to do.
    #[error("{0}")]
    Refused(String),
    /// Others kept winning the next place in the chain.
    #[error("the chain {0} grew faster than this command could append; try again")]
    Contended(String),
}

impl LedgerError {
    /// Whether it says that the record itself does not stand as it was written, or cannot be read: exit code 4.
    pub fn is_of_record(&self) -> bool {
        matches!(self, Self::Altered { .. } | Self::Missing { .. } | Self::Entry { .. })
    }

    /// Whether it says that the record itself was altered.
    pub fn is_altered(&self) -> bool {
        matches!(self, Self::Altered { .. })
    }

    pub(crate) fn unreadable(place: &str, what: impl std::fmt::Display) -> Self {
        Self::Unreadable { place: place.to_owned(), what: what.to_string() }
    }

    /// Something is not what its digest or its neighbours say.
    pub fn altered(place: &str, what: impl Into<String>) -> Self {
        Self::Altered { place: place.to_owned(), what: what.into() }
    }
}
