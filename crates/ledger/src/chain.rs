//! The one primitive: create-if-absent of the next entry. And reading a chain while checking that it joins.

use bytes::Bytes;
use lastcall_contract::Digest;
use lastcall_event::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::control::Entry;
use crate::error::LedgerError;
use crate::names::Chain;
use crate::store::{self, Store};

/// The last entry of a chain, as far as a successor needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Its sequence number.
    pub seq: u64,
    /// Digest of its bytes.
    pub digest: Digest,
    /// Its time.
    pub at: Timestamp,
}

/// What came of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Append {
    /// The entry stands, and is the tail.
    Won(Tail),
    /// Another entry stands in its place: read the tail, check again, and only then retry.
    Lost,
}

/// An entry that was read, with the digest of its exact bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Read<B> {
    /// The entry.
    pub entry: Entry<B>,
    /// Digest of its bytes.
    pub digest: Digest,
}

impl<B> Read<B> {
    /// What a successor needs to know of it.
    pub fn tail(&self) -> Tail {
        Tail { seq: self.entry.seq, digest: self.digest.clone(), at: self.entry.at }
    }
}

/// Appends one entry after `previous` (`None`: the first). `now` is the writer's clock, `floor` the `at` of the
/// control entry that the body names: the entry's time is the latest of these and the predecessor's.
pub fn append<B: Serialize>(
    store: &dyn Store,
    chain: &Chain,
    previous: Option<&Tail>,
    writer: &str,
    now: Timestamp,
    floor: Option<Timestamp>,
    body: &B,
) -> Result<Append, LedgerError> {
    let seq = previous.map_or(0, |tail| tail.seq.saturating_add(1));
    let at = [Some(now), floor, previous.map(|tail| tail.at)].into_iter().flatten().max().unwrap_or(now);
    let entry = Entry {
        seq,
        previous: previous.map(|tail| tail.digest.clone()),
        writer: writer.to_owned(),
        at,
        body,
    };
    let path = chain.entry_path(seq);
    let bytes = serde_json::to_vec(&entry).map_err(|e| LedgerError::unreadable(&path, e))?;
    let bytes = Bytes::from(bytes);
    // Ours, if an earlier answer was lost: the writer's id and the file names make the bytes unique.
    if store::settle(store, &path, &bytes)? {
        Ok(Append::Won(Tail { seq, digest: Digest::of(&bytes), at }))
    } else {
        Ok(Append::Lost)
    }
}

/// Reads one entry; `None` where none stands.
pub fn read_entry<B: DeserializeOwned>(
    store: &dyn Store,
    chain: &Chain,
    seq: u64,
) -> Result<Option<Read<B>>, LedgerError> {
    let path = chain.entry_path(seq);
    let Some(bytes) = store.get(&path)? else { return Ok(None) };
    let entry: Entry<B> = serde_json::from_slice(&bytes).map_err(|e| {
        LedgerError::unreadable(&path, format!("{e}; it was altered (`lastcall ledger verify` says), or written by a newer lastcall: take that one"))
    })?;
    if entry.seq != seq {
        return Err(LedgerError::altered(&path, format!("the entry says seq {}", entry.seq)));
    }
    Ok(Some(Read { entry, digest: Digest::of(&bytes) }))
}

/// The entries from `seq` on, `before` being the one in front of it; checks that each names its predecessor's
/// digest and that time never runs backwards. Ends at the first place where none stands.
pub fn read_from<B: DeserializeOwned>(
    store: &dyn Store,
    chain: &Chain,
    before: Option<&Tail>,
) -> Result<Vec<Read<B>>, LedgerError> {
    read_some(store, chain, before, usize::MAX)
}

/// The same, but no more than so many entries; only at the chain's end a hole is looked for.
pub fn read_some<B: DeserializeOwned>(
    store: &dyn Store,
    chain: &Chain,
    before: Option<&Tail>,
    limit: usize,
) -> Result<Vec<Read<B>>, LedgerError> {
    let mut entries: Vec<Read<B>> = Vec::new();
    let mut before = before.cloned();
    loop {
        if entries.len() >= limit {
            return Ok(entries);
        }
        let seq = before.as_ref().map_or(0, |tail| tail.seq.saturating_add(1));
        let Some(read) = read_entry::<B>(store, chain, seq)? else { break };
        joins(chain, before.as_ref(), &read)?;
        before = Some(read.tail());
        entries.push(read);
    }
    let next = before.as_ref().map_or(0, |tail| tail.seq.saturating_add(1));
    if let Some(behind) = behind_a_hole(store, chain, next, entries.len() as u64)? {
        return Err(LedgerError::Missing {
            place: format!("{} (entry {behind} stands behind it)", chain.entry_path(next)),
        });
    }
    Ok(entries)
}

/// Whether an entry names its predecessor.
pub fn joins<B>(chain: &Chain, before: Option<&Tail>, read: &Read<B>) -> Result<(), LedgerError> {
    let path = chain.entry_path(read.entry.seq);
    if read.entry.previous.as_ref() != before.map(|tail| &tail.digest) {
        let what = "it does not name the digest of the entry before it: one of the two was altered";
        return Err(LedgerError::altered(&path, what));
    }
    match before {
        Some(tail) if read.entry.at < tail.at => {
            Err(LedgerError::altered(&path, "its time is before that of the entry before it"))
        }
        _ => Ok(()),
    }
}

/// An entry behind the first empty place, if there is one within a doubling of what was read before it.
pub fn behind_a_hole(
    store: &dyn Store,
    chain: &Chain,
    empty: u64,
    read: u64,
) -> Result<Option<u64>, LedgerError> {
    let mut step = 1u64;
    while step <= read.max(2) {
        let seq = empty.saturating_add(step);
        if store.get(&chain.entry_path(seq))?.is_some() {
            // The chain may have grown since the place was found empty.
            let grown = store.get(&chain.entry_path(empty))?.is_some();
            return Ok((!grown).then_some(seq));
        }
        step = step.saturating_mul(2);
    }
    Ok(None)
}

/// The last entry: found by galloping, so that its cost does not grow with the chain.
pub fn read_tail<B: DeserializeOwned>(
    store: &dyn Store,
    chain: &Chain,
) -> Result<Option<Read<B>>, LedgerError> {
    if store.get(&chain.entry_path(0))?.is_none() {
        return match behind_a_hole(store, chain, 0, 0)? {
            Some(_) => Err(LedgerError::Missing { place: chain.entry_path(0) }),
            None => Ok(None),
        };
    }
    let low = gallop(store, chain, 0)?;
    read_last(store, chain, low).map(Some)
}

/// The last entry behind one that is known, found by galloping from there; `None`: the known one is the last.
pub fn read_tail_after<B: DeserializeOwned>(
    store: &dyn Store,
    chain: &Chain,
    known: &Tail,
) -> Result<Option<Read<B>>, LedgerError> {
    let low = gallop(store, chain, known.seq)?;
    if low == known.seq {
        return Ok(None);
    }
    let read = read_last::<B>(store, chain, low)?;
    if low == known.seq.saturating_add(1) {
        joins(chain, Some(known), &read)?;
    }
    Ok(Some(read))
}

/// The last entry that stands, from one that does; an error where another one stands behind it.
fn gallop(store: &dyn Store, chain: &Chain, from: u64) -> Result<u64, LedgerError> {
    let low = last_standing(store, chain, from)?;
    // Two that stand do not prove that all between do: `read_from` and verify find holes further inside; nobody appends
    // behind one that shows here.
    let high = low.saturating_add(1);
    if behind_a_hole(store, chain, high, high - from)?.is_some() {
        return Err(LedgerError::Missing { place: chain.entry_path(high) });
    }
    Ok(low)
}

/// The last entry that stands, from one that does, whatever stands behind it.
pub(crate) fn last_standing(store: &dyn Store, chain: &Chain, from: u64) -> Result<u64, LedgerError> {
    let stands = |seq: u64| -> Result<bool, LedgerError> { Ok(store.get(&chain.entry_path(seq))?.is_some()) };
    let (mut low, mut step) = (from, 1u64);
    while stands(low.saturating_add(step))? {
        low = low.saturating_add(step);
        step = step.saturating_mul(2);
    }
    let mut high = low.saturating_add(step);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if stands(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// An entry that stands, after making sure that it names the one before it.
fn read_last<B: DeserializeOwned>(
    store: &dyn Store,
    chain: &Chain,
    seq: u64,
) -> Result<Read<B>, LedgerError> {
    let Some(read) = read_entry::<B>(store, chain, seq)? else {
        return Err(LedgerError::Missing { place: chain.entry_path(seq) });
    };
    if let Some(before) = seq.checked_sub(1) {
        let path = chain.entry_path(before);
        let Some(bytes) = store.get(&path)? else { return Err(LedgerError::Missing { place: path }) };
        if read.entry.previous.as_ref() != Some(&Digest::of(&bytes)) {
            let what = "the entry after it does not name its digest: one of the two was altered";
            return Err(LedgerError::altered(&path, what));
        }
    }
    Ok(read)
}
