//! Compaction by somebody who signs heads.

use super::compact::{Compacted, compact_as};
use super::limits::CompactLimits;
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::sign::{SigningKey, sign_head};

/// As [`super::compact()`], and signs the newest index entry, new or not. New entries say that they will be signed: a
/// signature that is missing then shows.
///
/// # Errors
/// As [`super::compact()`]; or the newest entry is signed with another key.
pub fn compact_signed(
    ledger: &Ledger,
    key: &SigningKey,
    each: &mut dyn FnMut(&str),
) -> Result<Compacted, LedgerError> {
    let done = compact_as(ledger, CompactLimits::default(), Some(key.public()), each)?;
    sign_head(ledger, key)?;
    Ok(done)
}
