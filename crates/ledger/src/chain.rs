//! The one primitive: create-if-absent of the next entry. And reading a chain while checking that it joins.

use bytes::Bytes;
use lastcall_contract::Digest;
use lastcall_event::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::control::Entry;
use crate::error::LedgerError;
use crate::names::{self, Chain};
use crate::store::{self, Store};

/// How many names are looked at in one go: a page of an object store's listing.
const PAGE: usize = 1000;

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
    if at.0 < 0 || Timestamp::parse(&at.to_string()) != Some(at) {
        return Err(LedgerError::Refused(format!(
            "the clock says {at}, and nothing was written: an entry of such a time could not be read again. Set this machine's \
             clock right"
        )));
    }
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
    let entry: Entry<B> = serde_json::from_slice(&bytes).map_err(|e| no_entry(&path, &bytes, &e))?;
    if entry.seq != seq {
        return Err(LedgerError::altered(&path, format!("the entry says seq {}", entry.seq)));
    }
    Ok(Some(Read { entry, digest: Digest::of(&bytes) }))
}

/// What every build writes around every body.
#[derive(Deserialize)]
struct Around {
    #[serde(rename = "seq")]
    _seq: u64,
    #[serde(rename = "previous")]
    _previous: Option<Digest>,
    #[serde(rename = "writer")]
    _writer: String,
    #[serde(rename = "at")]
    _at: Timestamp,
}

/// Bytes that are no entry of this build: a newer build may write other bodies, but never half an entry.
fn no_entry(path: &str, bytes: &[u8], error: &serde_json::Error) -> LedgerError {
    match serde_json::from_slice::<Around>(bytes) {
        Ok(_) => LedgerError::Entry { place: path.to_owned(), what: error.to_string() },
        Err(_) => {
            LedgerError::altered(path, format!("it is no entry ({error}): it was cut off, or written over"))
        }
    }
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
    while entries.len() < limit {
        let seq = before.as_ref().map_or(0, |tail| tail.seq.saturating_add(1));
        let Some(read) = read_entry::<B>(store, chain, seq)? else {
            // Nothing behind it: the end. Otherwise it came meanwhile, or it is an error.
            match standing_after(store, chain, before.as_ref().map(|tail| tail.seq))? {
                Some(_) => continue,
                None => break,
            }
        };
        joins(chain, before.as_ref(), &read)?;
        before = Some(read.tail());
        entries.push(read);
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

/// The numbers of the entries that stand behind one (`None`: behind nothing), ascending, no more than so many. One look
/// at the names, whatever is missing between them.
pub(crate) fn listed(
    store: &dyn Store,
    chain: &Chain,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<u64>, LedgerError> {
    let name = after.map(|seq| chain.entry_name(seq)).unwrap_or_default();
    let names = store.list_after(&chain.folder(), &name, limit)?;
    Ok(names.iter().filter_map(|name| names::parse_entry_name(name)).collect())
}

/// How far the entries behind one (`None`: behind nothing) stand without a hole, by one look at the names; `None`: none
/// stands there. Never beyond [`PAGE`] entries.
///
/// # Errors
/// An entry is missing, and another one stands behind it.
fn standing_after(store: &dyn Store, chain: &Chain, after: Option<u64>) -> Result<Option<u64>, LedgerError> {
    let mut last = after;
    for seq in listed(store, chain, after, PAGE)? {
        let next = last.map_or(0, |last| last.saturating_add(1));
        // A folder that grows while it is listed may show an entry and not the one before it.
        for missing in next..seq {
            if store.get(&chain.entry_path(missing))?.is_none() {
                return Err(hole(chain, missing, seq));
            }
        }
        last = Some(seq);
    }
    Ok(last.filter(|_| last != after))
}

/// An entry is missing, and another one stands behind it.
fn hole(chain: &Chain, missing: u64, behind: u64) -> LedgerError {
    LedgerError::Missing { place: format!("{} (entry {behind} stands behind it)", chain.entry_path(missing)) }
}

/// The last entry: found from one look at the names, and by galloping where there are many, so that its cost does not
/// grow with the chain.
pub fn read_tail<B: DeserializeOwned>(
    store: &dyn Store,
    chain: &Chain,
) -> Result<Option<Read<B>>, LedgerError> {
    last_after(store, chain, None)?.map(|seq| read_last(store, chain, seq)).transpose()
}

/// The last entry behind one that is known; `None`: the known one is the last.
pub fn read_tail_after<B: DeserializeOwned>(
    store: &dyn Store,
    chain: &Chain,
    known: &Tail,
) -> Result<Option<Read<B>>, LedgerError> {
    let Some(last) = last_after(store, chain, Some(known.seq))? else { return Ok(None) };
    let read = read_last::<B>(store, chain, last)?;
    if last == known.seq.saturating_add(1) {
        joins(chain, Some(known), &read)?;
    }
    Ok(Some(read))
}

/// The last entry that stands behind one (`None`: behind nothing); an error where another one stands behind a hole. Of more
/// than [`PAGE`] entries those that galloping steps over are not looked at: `read_from` and verify find a hole between them.
fn last_after(store: &dyn Store, chain: &Chain, after: Option<u64>) -> Result<Option<u64>, LedgerError> {
    let mut last = None;
    let mut from = after;
    while let Some(seq) = standing_after(store, chain, from)? {
        let full = seq - from.map_or(0, |from| from) >= PAGE as u64 - 1;
        last = Some(seq);
        if !full {
            break;
        }
        let far = gallop(store, chain, seq)?;
        (last, from) = (Some(far), Some(far));
    }
    Ok(last)
}

/// The last entry that stands, whatever is missing before it.
pub(crate) fn last_standing(store: &dyn Store, chain: &Chain) -> Result<Option<u64>, LedgerError> {
    let low = match store.get(&chain.entry_path(0))? {
        Some(_) => Some(gallop(store, chain, 0)?),
        None => None,
    };
    Ok(listed(store, chain, low, usize::MAX)?.last().copied().or(low))
}

/// The last entry without a hole that galloping finds, from one that stands.
fn gallop(store: &dyn Store, chain: &Chain, from: u64) -> Result<u64, LedgerError> {
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
