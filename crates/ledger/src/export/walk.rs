//! One chain, entry by entry, without holding it.

use bytes::Bytes;
use lastcall_contract::Digest;
use serde::de::DeserializeOwned;

use crate::chain::Tail;
use crate::control::Entry;
use crate::error::LedgerError;
use crate::names::Chain;
use crate::store::Store;

/// Gives every entry of a chain up to a tail to `each`, with its path and its bytes, and checks that they join and end in
/// that tail.
///
/// # Errors
/// One is missing, altered or unreadable, or `each` failed.
pub(crate) fn each_entry<B: DeserializeOwned>(
    store: &dyn Store,
    chain: &Chain,
    tail: &Tail,
    mut each: impl FnMut(&str, &Bytes, Entry<B>) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    let mut before: Option<Digest> = None;
    for seq in 0..=tail.seq {
        let path = chain.entry_path(seq);
        let Some(bytes) = store.get(&path)? else { return Err(LedgerError::Missing { place: path }) };
        let entry: Entry<B> =
            serde_json::from_slice(&bytes).map_err(|e| LedgerError::unreadable(&path, e))?;
        if entry.seq != seq || entry.previous != before {
            let what = "it does not name the digest of the entry before it: one of the two was altered";
            return Err(LedgerError::altered(&path, what));
        }
        before = Some(Digest::of(&bytes));
        each(&path, &bytes, entry)?;
    }
    if before.as_ref() != Some(&tail.digest) {
        let what = "it is not the entry that the index names";
        return Err(LedgerError::altered(&chain.entry_path(tail.seq), what));
    }
    Ok(())
}
