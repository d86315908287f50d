//! Holds a head that was kept elsewhere against the index chain.

use lastcall_contract::Digest;

use crate::chain;
use crate::error::LedgerError;
use crate::index::IndexBody;
use crate::ledger::Ledger;
use crate::names::Chain;

/// The sequence number of the index entry whose digest a head is; `None`: none that stands has it.
///
/// An index entry names its predecessor's digest and the tails of all chains, and verify holds both against what stands:
/// so an entry that is found here proves everything before it, and nothing of what came after.
///
/// # Errors
/// The store failed, or the index chain does not join.
pub(crate) fn find_head(ledger: &Ledger, head: &Digest) -> Result<Option<u64>, LedgerError> {
    let entries = chain::read_from::<IndexBody>(&**ledger.store(), &Chain::Index, None)?;
    Ok(entries.iter().find(|read| read.digest == *head).map(|read| read.entry.seq))
}
