//! Garbage: data files that provably no entry names, or will ever name, and those that an erasure superseded. Nothing
//! else is ever removed.
//!
//! The name of a data file carries its chain and sequence number, and only the entry of that number may name it. So a
//! file is garbage when that entry stands and does not name it: entries never change. A file whose entry does not stand
//! yet may be in flight, and stays; so does whatever has another name. A file of a compacted day is named by the daily
//! facts that its index entry names; an older revision of a day stays, since an older index entry names it.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::chain::Read;
use crate::entry::FileKind;
use crate::error::LedgerError;
use crate::index::{self, IndexBody};
use crate::ledger::Ledger;
use crate::names::{self, Chain};
use crate::position::Partition;

/// Why a file may be removed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Why {
    /// The entry of its sequence number stands, and does not name it: its writer was killed, or lost the place.
    NotNamed {
        /// The entry.
        entry: String,
    },
    /// The entry of its sequence number never came, and nobody is left who could append it.
    Stopped {
        /// The entry.
        entry: String,
    },
    /// A control entry says that it was erased or that it expired.
    Superseded {
        /// The control entry.
        seq: u64,
    },
}

/// A file that may be removed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Garbage {
    /// Its path.
    pub path: String,
    /// Why.
    #[serde(flatten)]
    pub why: Why,
}

/// A file that no entry names and that stays.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Left {
    /// Its path.
    pub path: String,
    /// Why it stays.
    pub why: String,
    /// It holds calls or dead letters: they may be somebody's, and no erasure and no expiry reaches them.
    pub personal: bool,
}

impl Left {
    fn new(path: String, why: String) -> Self {
        let personal = PERSONAL.iter().any(|kind| path.starts_with(&format!("{}/", kind.as_str())));
        Self { path, why, personal }
    }
}

/// The kinds of files that hold personal data.
const PERSONAL: [FileKind; 2] = [FileKind::Calls, FileKind::Dead];

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Collected {
    /// What may be removed, or was.
    pub garbage: Vec<Garbage>,
    /// What no entry names and stays.
    pub left: Vec<Left>,
    /// Files that belong to the record.
    pub kept: u64,
    /// Whether the garbage was removed.
    pub deleted: bool,
}

/// Looks for garbage; with `delete` it is removed. `each` is told every path before it goes.
///
/// # Errors
/// A chain is altered or incomplete: from such a record nothing is removed. Or the store failed; then what was removed
/// is removed, and the rest is found the next time.
pub fn gc(ledger: &Ledger, delete: bool, each: &mut dyn FnMut(&str)) -> Result<Collected, LedgerError> {
    gc_with(ledger, delete, false, each)
}

/// The same; `alone`: nobody records, erases or lets expire, and nobody who was stopped there goes on, so that nothing is
/// in flight.
///
/// # Errors
/// As [`gc`].
pub fn gc_with(
    ledger: &Ledger,
    delete: bool,
    alone: bool,
    each: &mut dyn FnMut(&str),
) -> Result<Collected, LedgerError> {
    ledger.refuse_export()?;
    // The folders before the chains: what is appended in between is then seen as named.
    let mut paths = Vec::new();
    for kind in FileKind::ALL {
        paths.extend(ledger.store().list(kind.as_str())?);
    }
    let day_files = ledger.store().list("days")?;
    let record = Known::read(ledger)?;
    let superseded = ledger.superseded()?;
    let mut found = Collected { deleted: delete, ..Collected::default() };
    for path in paths {
        if let Some((seq, mut stands)) = superseded.by(&path) {
            while let Some((_, next)) = stands.and_then(|file| superseded.by(&file.path)) {
                stands = next;
            }
            // What stands in its place has to be whole before the old one goes.
            match stands.map(|file| ledger.file(file)).transpose() {
                Ok(_) => found.garbage.push(Garbage { path, why: Why::Superseded { seq } }),
                Err(error) => {
                    let why = format!("control entry {seq} puts another in its place, but {error}");
                    found.left.push(Left::new(path, why));
                }
            }
            continue;
        }
        match record.sort(&path) {
            Sorted::Named => found.kept += 1,
            Sorted::Garbage(entry) => found.garbage.push(Garbage { path, why: Why::NotNamed { entry } }),
            Sorted::InFlight(entry) if alone => {
                found.garbage.push(Garbage { path, why: Why::Stopped { entry } });
            }
            Sorted::InFlight(_) => found.left.push(Left::new(path, IN_FLIGHT.to_owned())),
            Sorted::Left(why) => found.left.push(Left::new(path, why.to_owned())),
        }
    }
    let mut days = Days::read(ledger)?;
    for path in day_files {
        match days.sort(ledger, &path)? {
            Sorted::Named => found.kept += 1,
            Sorted::Garbage(entry) => found.garbage.push(Garbage { path, why: Why::NotNamed { entry } }),
            Sorted::InFlight(_) => found.left.push(Left::new(path, IN_FLIGHT.to_owned())),
            Sorted::Left(why) => found.left.push(Left::new(path, why.to_owned())),
        }
    }
    if delete {
        for garbage in &found.garbage {
            each(&garbage.path);
            ledger.store().delete(&garbage.path)?;
        }
    }
    Ok(found)
}

/// The files with calls or dead letters that no entry names: of runs that were stopped, or that are in flight.
pub(crate) fn unnamed(ledger: &Ledger) -> Result<Vec<(FileKind, String)>, LedgerError> {
    let mut paths = Vec::new();
    for kind in PERSONAL {
        paths.extend(ledger.store().list(kind.as_str())?.into_iter().map(|path| (kind, path)));
    }
    let record = Known::read(ledger)?;
    let superseded = ledger.superseded()?;
    paths.retain(|(_, path)| superseded.by(path).is_none() && !record.named.contains(path));
    Ok(paths)
}

enum Sorted {
    Named,
    Garbage(String),
    /// The entry of its number does not stand yet.
    InFlight(String),
    Left(&'static str),
}

const NO_SUCH_NAME: &str = "its name is not that of a data file: no lastcall wrote it";
const IN_FLIGHT: &str = "the entry of its number does not stand yet: it may be in flight";

/// What the index names.
struct Days {
    entries: Vec<Read<IndexBody>>,
    named: HashSet<String>,
    /// Entries whose own days are in `named`.
    seen: HashSet<u64>,
}

impl Days {
    /// Reads the index chain, and the days that its newest entry names.
    fn read(ledger: &Ledger) -> Result<Self, LedgerError> {
        let entries = index::entries(&**ledger.store())?;
        let mut days = Self { entries, named: HashSet::new(), seen: HashSet::new() };
        if let Some(newest) = days.entries.len().checked_sub(1) {
            days.take_in(ledger, newest)?;
        }
        Ok(days)
    }

    fn take_in(&mut self, ledger: &Ledger, at: usize) -> Result<(), LedgerError> {
        let Some(read) = self.entries.get(at).filter(|read| self.seen.insert(read.entry.seq)) else {
            return Ok(());
        };
        let named = &mut self.named;
        index::each_named_day(ledger, &read.entry.body, |_, entry, _| {
            named.extend(entry.files.iter().map(|f| f.path.clone()));
        })
    }

    fn sort(&mut self, ledger: &Ledger, path: &str) -> Result<Sorted, LedgerError> {
        if self.named.contains(path) {
            return Ok(Sorted::Named);
        }
        let Some(seq) = names::parse_day_path(path) else { return Ok(Sorted::Left(NO_SUCH_NAME)) };
        let Some(at) = usize::try_from(seq).ok().filter(|at| *at < self.entries.len()) else {
            return Ok(Sorted::InFlight(Chain::Index.entry_path(seq)));
        };
        // A revision that the newest entry does not name any more, or garbage: its own entry says which.
        self.take_in(ledger, at)?;
        Ok(match self.named.contains(path) {
            true => Sorted::Named,
            false => Sorted::Garbage(Chain::Index.entry_path(seq)),
        })
    }
}

/// What the chains name.
struct Known {
    /// Every file that an entry names.
    named: HashSet<String>,
    /// The last sequence number of each partition chain, by the source's name as it stands in paths.
    tails: HashMap<(String, Partition), (Chain, u64)>,
    control: u64,
    sources: BTreeMap<String, String>,
}

impl Known {
    fn read(ledger: &Ledger) -> Result<Self, LedgerError> {
        let (mut named, mut tails) = (HashSet::new(), HashMap::new());
        for chain in ledger.partitions()? {
            for (_, chunk) in chain.chunks() {
                named.extend(chunk.files.iter().map(|f| f.path.clone()));
            }
            // Judged is against the whole chain: a part of it would make garbage of what the rest names.
            let whole = chain.entries.iter().zip(0u64..).all(|(read, seq)| read.entry.seq == seq);
            if !whole {
                return Err(LedgerError::Missing { place: chain.chain().entry_path(0) });
            }
            if let Some(tail) = chain.tail() {
                tails.insert((names::encode(&chain.source), chain.partition), (chain.chain(), tail.seq));
            }
        }
        // After the partitions: a control entry that is not seen here leaves its files in flight.
        let control = ledger.control()?;
        named.extend(ledger.superseded()?.written().map(|(_, file)| file.path.clone()));
        let sources = control.sources.keys().map(|name| (names::encode(name), name.clone())).collect();
        let control = control.tail().map_or(0, |tail| tail.seq);
        Ok(Self { named, tails, control, sources })
    }

    fn sort(&self, path: &str) -> Sorted {
        if self.named.contains(path) {
            return Sorted::Named;
        }
        let Some(name) = names::parse_data_path(path) else {
            return Sorted::Left(NO_SUCH_NAME);
        };
        let Some((source, partition)) = name.chain else {
            return match name.seq <= self.control {
                true => Sorted::Garbage(Chain::Control.entry_path(name.seq)),
                false => Sorted::InFlight(Chain::Control.entry_path(name.seq)),
            };
        };
        match self.tails.get(&(source.to_owned(), partition)) {
            Some((chain, tail)) if name.seq <= *tail => Sorted::Garbage(chain.entry_path(name.seq)),
            Some((chain, _)) => Sorted::InFlight(chain.entry_path(name.seq)),
            None if !self.sources.contains_key(source) => {
                Sorted::Left("its source is not registered in this ledger")
            }
            None => Sorted::InFlight(format!("entry {} of {source}/{}", name.seq, partition.0)),
        }
    }
}
