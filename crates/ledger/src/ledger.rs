//! One ledger: opening it, its control chain, its objects, its partition chains and their rows. Blocking.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use lastcall_contract::Digest;
use lastcall_event::Timestamp;
use serde::{Deserialize, Serialize};

use crate::chain::{self, Append, Read, Tail};
use crate::control::{Control, Entry};
use crate::days::DayStates;
use crate::entry::{Chunk, ControlRef, FileKind, FileRef, PartitionBody, Progress};
use crate::erasure::{Followed, Standing, Superseded};
use crate::error::LedgerError;
use crate::export::{self, Mark, Sealed};
use crate::index::{self, Folded, IndexBody};
use crate::names::{self, Chain};
use crate::position::Partition;
use crate::rows::{CallRow, DeadRow, ResultRow};
use crate::state::ControlState;
use crate::store::{self, LocalStore, Location, Store};
use crate::{calls, dead, files, results};

/// How often an append to the control chain is tried when others append at the same time.
const CONTROL_ATTEMPTS: usize = 64;
/// The layout of this build.
pub(crate) const FORMAT: u32 = 1;

/// Where a ledger's time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerClock {
    /// The system's clock.
    #[default]
    System,
    /// `clock` records in the input. Verdicts say SIMULATED.
    Simulated,
}

/// `ledger.json`: written once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The layout's version.
    pub format: u32,
    /// Random id (32 hex digits).
    pub id: String,
    /// Where time comes from.
    pub clock: LedgerClock,
}

/// One partition chain, read and checked from its genesis.
#[derive(Clone, Debug)]
pub struct PartitionChain {
    /// The source's name.
    pub source: String,
    /// The partition.
    pub partition: Partition,
    /// What an index entry says of the entries that were not read; `None`: they begin with the genesis.
    pub folded: Option<Folded>,
    /// Its entries, in order; the hashes join.
    pub entries: Vec<Read<PartitionBody>>,
}

impl PartitionChain {
    /// The chunks, with the sequence numbers of their entries.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, &Chunk)> {
        self.entries.iter().filter_map(|read| Some((read.entry.seq, read.entry.body.chunk()?)))
    }

    /// Where the partition stands; `None` without a genesis.
    pub fn progress(&self) -> Option<&Progress> {
        let last = self.entries.last().map(|read| read.entry.body.progress());
        last.or_else(|| self.folded.as_ref().map(|folded| &folded.progress))
    }

    /// Its tail.
    pub fn tail(&self) -> Option<Tail> {
        let last = self.entries.last().map(Read::tail);
        last.or_else(|| self.folded.as_ref().map(|folded| folded.tail.clone()))
    }

    /// Latest time of a call.
    pub fn newest(&self) -> Option<Timestamp> {
        let folded = self.folded.as_ref().and_then(|folded| folded.newest);
        folded.max(self.chunks().filter_map(|(_, chunk)| chunk.newest).max())
    }

    /// The same chain of which no entry was read.
    pub(crate) fn clone_without_entries(&self) -> Self {
        Self {
            source: self.source.clone(),
            partition: self.partition,
            folded: self.folded.clone(),
            entries: Vec::new(),
        }
    }

    /// The chain's name.
    pub fn chain(&self) -> Chain {
        Chain::partition(&self.source, self.partition)
    }
}

/// A ledger, open for reading and appending.
#[derive(Clone)]
pub struct Ledger {
    store: Arc<dyn Store>,
    meta: Meta,
    writer: String,
    place: String,
    /// What it is an export of.
    export: Option<Arc<Mark>>,
    followed: Arc<Mutex<Followed>>,
}

/// Random bytes as lower-case hex digits.
pub fn random_hex(bytes: usize) -> Result<String, LedgerError> {
    let mut random = vec![0u8; bytes];
    fill_random(&mut random)?;
    Ok(hex(&random))
}

/// Fills a slice with random bytes from the system.
pub fn fill_random(to: &mut [u8]) -> Result<(), LedgerError> {
    getrandom::fill(to).map_err(|e| LedgerError::unreadable("the system's random source", e))
}

/// Bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or('0');
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}

impl Ledger {
    /// Makes a ledger in a folder; the folder is made if it is absent.
    pub fn init(path: &Path, clock: LedgerClock) -> Result<Self, LedgerError> {
        let shown = path.display().to_string();
        std::fs::create_dir_all(path).map_err(|e| LedgerError::unreadable(&shown, e))?;
        Self::init_in(Arc::new(LocalStore::open(path)?), clock, &shown)
    }

    /// Makes a ledger in a store.
    pub fn init_in(store: Arc<dyn Store>, clock: LedgerClock, place: &str) -> Result<Self, LedgerError> {
        let meta = Meta { format: FORMAT, id: random_hex(16)?, clock };
        let bytes = serde_json_canonicalizer::to_vec(&meta).map_err(|e| LedgerError::unreadable(place, e))?;
        // The id is random: the same bytes are this call's own.
        if !store::settle(&*store, names::META, &Bytes::from(bytes))? {
            return Err(LedgerError::AlreadyALedger(place.to_owned()));
        }
        let ledger = Self::over(store, meta, place)?;
        ledger.ensure_genesis()?;
        Ok(ledger)
    }

    /// Opens a ledger in a folder.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let shown = path.display().to_string();
        if !path.is_dir() {
            return Err(LedgerError::NotALedger(shown));
        }
        Self::open_in(Arc::new(LocalStore::open(path)?), &shown)
    }

    /// Makes a ledger at a place: a folder, which is made if it is absent, or a prefix in a bucket.
    pub fn init_at(place: &Location, clock: LedgerClock) -> Result<Self, LedgerError> {
        match place {
            Location::Folder(folder) => Self::init(folder, clock),
            Location::Bucket { .. } => Self::init_in(store::open(place)?, clock, &place.to_string()),
        }
    }

    /// Opens the ledger at a place: a folder, or a prefix in a bucket.
    pub fn open_at(place: &Location) -> Result<Self, LedgerError> {
        match place {
            Location::Folder(folder) => Self::open(folder),
            Location::Bucket { .. } => Self::open_in(store::open(place)?, &place.to_string()),
        }
    }

    /// Opens a ledger in a store.
    pub fn open_in(store: Arc<dyn Store>, place: &str) -> Result<Self, LedgerError> {
        let Some(bytes) = store.get(names::META)? else {
            return Err(LedgerError::NotALedger(place.to_owned()));
        };
        let meta: Meta =
            serde_json::from_slice(&bytes).map_err(|e| LedgerError::unreadable(names::META, e))?;
        if meta.format != FORMAT {
            let next = if meta.format > FORMAT { "take a newer lastcall" } else { "no lastcall wrote that" };
            let what = format!("its format is {}, this build reads {FORMAT}; {next}", meta.format);
            return Err(LedgerError::unreadable(names::META, what));
        }
        let mark = export::read_mark(&*store)?;
        Self::with(store, meta, place, mark)
    }

    /// Over a store, with what is known of the files at its root.
    pub(crate) fn with(
        store: Arc<dyn Store>,
        meta: Meta,
        place: &str,
        mark: Option<Mark>,
    ) -> Result<Self, LedgerError> {
        let Some(mark) = mark else { return Self::over(store, meta, place) };
        let store = Arc::new(Sealed::new(store, &mark.tool));
        Ok(Self { export: Some(Arc::new(mark)), ..Self::over(store, meta, place)? })
    }

    /// The same ledger, read through another store.
    pub(crate) fn through(&self, store: Arc<dyn Store>) -> Self {
        Self { store, followed: Arc::default(), ..self.clone() }
    }

    fn over(store: Arc<dyn Store>, meta: Meta, place: &str) -> Result<Self, LedgerError> {
        let (writer, place) = (random_hex(16)?, place.to_owned());
        Ok(Self { store, meta, writer, place, export: None, followed: Arc::default() })
    }

    /// What it is an export of; `None`: it is the ledger itself.
    pub fn export(&self) -> Option<&Mark> {
        self.export.as_deref()
    }

    /// Refuses what would change it, where it is an export.
    pub(crate) fn refuse_export(&self) -> Result<(), LedgerError> {
        let Some(mark) = &self.export else { return Ok(()) };
        Err(LedgerError::Refused(format!(
            "{} is an export of `{}`, and nothing in an export is changed; give the command the ledger that it came from",
            self.place, mark.tool
        )))
    }

    /// In an export, what is missing may have been left behind.
    fn left_behind(&self, error: LedgerError) -> LedgerError {
        match (error, &self.export) {
            (LedgerError::Missing { place }, Some(mark)) => {
                LedgerError::LeftBehind { place, tool: mark.tool.clone() }
            }
            (error, _) => error,
        }
    }

    /// The ledger's description.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Whether its time comes from the input.
    pub fn is_simulated(&self) -> bool {
        self.meta.clock == LedgerClock::Simulated
    }

    /// Where it lies, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The store under it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Checks that its place can be written safely, before a command works for long; see [`Store::probe`].
    pub fn probe(&self) -> Result<(), LedgerError> {
        Ok(self.store.probe()?)
    }

    /// Whether its place still holds it.
    ///
    /// # Errors
    /// It was moved or removed, or cannot be reached.
    pub fn still_there(&self) -> Result<(), LedgerError> {
        match self.store.get(names::META)? {
            Some(_) => Ok(()),
            None => Err(LedgerError::Missing { place: format!("{}/{}", self.place, names::META) }),
        }
    }

    /// This process's random writer id.
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// The system's clock; `None` in a simulated ledger, whose time the input brings.
    pub fn system_now(&self) -> Option<Timestamp> {
        (!self.is_simulated()).then(system_now)
    }

    /// The ledger's time: the system's clock, or in a simulated ledger the smallest of the partitions' last clock
    /// records (`None` before every partition has one).
    pub fn now(&self) -> Result<Option<Timestamp>, LedgerError> {
        if let Some(now) = self.system_now() {
            return Ok(Some(now));
        }
        let head = self.head()?;
        let control = self.control_since(head.as_ref())?;
        let ends = self.ends(&control, head.as_ref().map(|head| &head.entry.body))?;
        let clocks = ends.iter().map(|end| end.progress.clock);
        Ok(clocks.min().flatten())
    }

    /// The newest entry of the index chain: its digest is the ledger's head. `None`: never compacted.
    pub fn head(&self) -> Result<Option<Read<IndexBody>>, LedgerError> {
        index::head(&*self.store)
    }

    /// The control chain, read and checked from its genesis.
    pub fn control(&self) -> Result<ControlState, LedgerError> {
        let mut state = ControlState::default();
        self.follow_control(&mut state)?;
        Ok(state)
    }

    /// Takes in the control entries that were appended since; whether there were any.
    pub fn follow_control(&self, state: &mut ControlState) -> Result<bool, LedgerError> {
        let read = chain::read_from::<Control>(&*self.store, &Chain::Control, state.tail().as_ref())?;
        let grown = !read.is_empty();
        for entry in read {
            let first = state.tail().is_none();
            match &entry.entry.body {
                Control::Genesis { ledger_id, clock } if first && *ledger_id == self.meta.id => {
                    let agrees = *clock == self.meta.clock;
                    let what = "its `clock` is not the one that the ledger's genesis states";
                    agrees.then_some(()).ok_or_else(|| LedgerError::altered(names::META, what))?;
                }
                Control::Genesis { .. } => {
                    let place = Chain::Control.entry_path(entry.entry.seq);
                    return Err(LedgerError::altered(&place, "it is the genesis of another ledger"));
                }
                _ if first => {
                    let place = Chain::Control.entry_path(0);
                    return Err(LedgerError::altered(&place, "a control chain begins with its genesis"));
                }
                _ => {}
            }
            state.push(entry);
        }
        Ok(grown)
    }

    /// The same for a state that this process follows already: one look at the next place, and none for a hole where nothing
    /// stands there, so that it may be asked again and again.
    pub fn poll_control(&self, state: &mut ControlState) -> Result<bool, LedgerError> {
        let next = state.tail().map_or(0, |tail| tail.seq.saturating_add(1));
        match self.store.get(&Chain::Control.entry_path(next))? {
            Some(_) => self.follow_control(state),
            None => Ok(false),
        }
    }

    fn ensure_genesis(&self) -> Result<(), LedgerError> {
        let body = Control::Genesis { ledger_id: self.meta.id.clone(), clock: self.meta.clock };
        let now = self.system_now().unwrap_or_default();
        chain::append(&*self.store, &Chain::Control, None, &self.writer, now, None, &body)?;
        Ok(())
    }

    /// Appends one entry that needs no precondition.
    pub fn append_control(&self, control: Control) -> Result<(u64, Digest), LedgerError> {
        self.append_control_with(|_| Ok::<_, LedgerError>(control.clone()))
    }

    /// Appends the entry that `make` builds from the current state. Whenever another writer was faster, `make` is
    /// asked again with the state that then holds: its checks are the entry's preconditions.
    pub fn append_control_with<E: From<LedgerError>>(
        &self,
        mut make: impl FnMut(&ControlState) -> Result<Control, E>,
    ) -> Result<(u64, Digest), E> {
        let mut state = self.control_now()?;
        if state.tail().is_none() {
            // `init` was stopped between ledger.json and the genesis.
            self.ensure_genesis()?;
            self.follow_control(&mut state)?;
        }
        for _ in 0..CONTROL_ATTEMPTS {
            let body = make(&state)?;
            let now = self.now()?.unwrap_or_default();
            let tail = state.tail();
            match chain::append(&*self.store, &Chain::Control, tail.as_ref(), &self.writer, now, None, &body)?
            {
                Append::Won(tail) => return Ok((tail.seq, tail.digest)),
                Append::Lost => {
                    self.follow_control(&mut state)?;
                }
            }
        }
        Err(LedgerError::Contended("control".to_owned()).into())
    }

    /// Stores an object under its digest; storing it again changes nothing.
    pub fn put_object(&self, bytes: &[u8]) -> Result<Digest, LedgerError> {
        let digest = Digest::of(bytes);
        let path = names::object_path(&digest);
        if !store::settle(&*self.store, &path, &Bytes::copy_from_slice(bytes))? {
            return Err(LedgerError::altered(&path, "its SHA-256 is not its name"));
        }
        Ok(digest)
    }

    /// An object; its digest is checked.
    pub fn object(&self, digest: &Digest) -> Result<Vec<u8>, LedgerError> {
        let path = names::object_path(digest);
        let Some(bytes) = self.store.get(&path)? else {
            return Err(self.left_behind(LedgerError::Missing { place: path }));
        };
        if Digest::of(&bytes) != *digest {
            return Err(LedgerError::altered(&path, "its SHA-256 is not its name"));
        }
        Ok(bytes.to_vec())
    }

    /// The partitions of a source that have a genesis, found from their entries' partition counts, and beyond: those that
    /// were added and that no earlier partition's entry knows of yet.
    pub fn partition_numbers(&self, source: &str) -> Result<Vec<Partition>, LedgerError> {
        let mut found = Vec::new();
        let mut known = 1;
        let mut number = 0;
        loop {
            let partition = Partition(number);
            if let Some(tail) =
                chain::read_tail::<PartitionBody>(&*self.store, &Chain::partition(source, partition))?
            {
                known = known.max(tail.entry.body.progress().partitions);
                found.push(partition);
            } else if number >= known {
                return Ok(found);
            }
            number += 1;
        }
    }

    /// One partition chain, read and checked from its genesis; no entries where there is none.
    pub fn partition(&self, source: &str, partition: Partition) -> Result<PartitionChain, LedgerError> {
        let chain = Chain::partition(source, partition);
        let entries = chain::read_from::<PartitionBody>(&*self.store, &chain, None)?;
        check_partition(&chain, &entries)?;
        Ok(PartitionChain { source: source.to_owned(), partition, folded: None, entries })
    }

    /// Every partition chain of every registered source, read and checked.
    pub fn partitions(&self) -> Result<Vec<PartitionChain>, LedgerError> {
        let control = self.control()?;
        let mut chains = Vec::new();
        for source in control.sources.keys() {
            for partition in self.partition_numbers(source)? {
                chains.push(self.partition(source, partition)?);
            }
        }
        Ok(chains)
    }

    /// Which days are closed in these sources, and why not.
    pub fn days(&self, sources: &[&str]) -> Result<DayStates, LedgerError> {
        let control = self.control()?;
        let chains = self.partitions()?;
        Ok(DayStates::new(&control, &chains, sources, self.meta.clock))
    }

    /// The bytes of a data file; length and digest are checked.
    pub fn file(&self, file: &FileRef) -> Result<Bytes, LedgerError> {
        files::checked(&*self.store, file).map_err(|error| self.left_behind(error))
    }

    /// Calls `each` with every row of the chunk's results; the file's digest is checked before the first.
    pub fn for_each_result(&self, chunk: &Chunk, mut each: impl FnMut(ResultRow)) -> Result<(), LedgerError> {
        for file in chunk.files.iter().filter(|f| f.kind == FileKind::Results) {
            results::for_each_row(&file.path, self.file(file)?, |row| {
                each(row);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Calls `each` with every call of the chunk that was not erased and did not expire. Personal data.
    pub fn for_each_call(&self, chunk: &Chunk, mut each: impl FnMut(CallRow)) -> Result<(), LedgerError> {
        for file in chunk.files.iter().filter(|f| f.kind == FileKind::Calls) {
            let Some((file, bytes)) = self.calls_bytes(file)? else { continue };
            calls::for_each_row(&file.path, bytes, |row| {
                each(row);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Calls `each` with every dead letter of the chunk that was not erased and did not expire. Personal data.
    pub fn for_each_dead(&self, chunk: &Chunk, mut each: impl FnMut(DeadRow)) -> Result<(), LedgerError> {
        for file in chunk.files.iter().filter(|f| f.kind == FileKind::Dead) {
            let Some((file, bytes)) = self.standing_bytes(file)? else { continue };
            dead::for_each_row(&file.path, bytes, |row| {
                each(row);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Which files are superseded by now: erasures and expiries up to the control chain's tail.
    pub fn superseded(&self) -> Result<Arc<Superseded>, LedgerError> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let seq = followed.tail.as_ref().map_or(0, |tail| tail.seq.saturating_add(1));
            let Some(read) = chain::read_entry::<Control>(&*self.store, &Chain::Control, seq)? else { break };
            chain::joins(&Chain::Control, followed.tail.as_ref(), &read)?;
            Arc::make_mut(&mut followed.superseded).push(&read.entry);
            followed.tail = Some(read.tail());
        }
        Ok(followed.superseded.clone())
    }

    /// What stands in the place of a file that a chunk names, and how many of its rows were erased or expired.
    pub fn standing(&self, named: &FileRef) -> Result<Standing, LedgerError> {
        self.superseded()?.standing(named)
    }

    /// The calls that are left of a file that a chunk names. In an export those of its tool, under that file's name: their
    /// commitments prove them, which `verify` checks.
    fn calls_bytes(&self, named: &FileRef) -> Result<Option<(FileRef, Bytes)>, LedgerError> {
        let Some(mark) = &self.export else { return self.standing_bytes(named) };
        if !mark.with_arguments {
            return Err(self.left_behind(LedgerError::Missing { place: named.path.clone() }));
        }
        self.exported_calls(named)
    }

    /// In an export with arguments: the file with its tool's calls that stands under the name of one that a chunk names;
    /// `None`: there is none. Length and digest are those of the file that stands there, its rows are not counted.
    pub fn exported_calls(&self, named: &FileRef) -> Result<Option<(FileRef, Bytes)>, LedgerError> {
        let Some(bytes) = self.store.get(&named.path)? else { return Ok(None) };
        let (sha256, length) = (Digest::of(&bytes), bytes.len() as u64);
        let said = self.export.as_ref().and_then(|mark| mark.calls_sha256.get(&named.path));
        if said != Some(&sha256) {
            let what = format!(
                "its SHA-256 is not the one that {} states: one of the two was altered",
                export::MARK
            );
            return Err(LedgerError::altered(&named.path, what));
        }
        Ok(Some((FileRef { sha256, bytes: length, ..named.clone() }, bytes)))
    }

    /// The file that stands in the place of one that a chunk names, with its bytes; `None`: nothing is left.
    pub(crate) fn standing_bytes(&self, named: &FileRef) -> Result<Option<(FileRef, Bytes)>, LedgerError> {
        let mut standing = self.standing(named)?;
        loop {
            let Some(file) = standing.file else { return Ok(None) };
            match self.file(&file) {
                Ok(bytes) => return Ok(Some((file, bytes))),
                // Erased and removed since we looked.
                Err(LedgerError::Missing { place }) => {
                    standing = self.standing(named)?;
                    if standing.file.as_ref() == Some(&file) {
                        return Err(LedgerError::Missing { place });
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A control entry that an entry names, if its digest is the one named.
    pub fn control_entry(&self, named: &ControlRef) -> Result<Entry<Control>, LedgerError> {
        let path = Chain::Control.entry_path(named.seq);
        match chain::read_entry::<Control>(&*self.store, &Chain::Control, named.seq)? {
            Some(read) if read.digest == named.digest => Ok(read.entry),
            Some(_) => Err(LedgerError::altered(&path, "an entry names it by another digest")),
            None => Err(LedgerError::Missing { place: path }),
        }
    }
}

/// The system's clock in UTC milliseconds.
pub fn system_now() -> Timestamp {
    let since = |at: Duration| i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    // A clock that stands before 1970 is no reason to end here: what cannot be written says so.
    Timestamp(match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => since(after),
        Err(before) => since(before.duration()).saturating_neg(),
    })
}

/// What holds along a partition chain besides the hashes: a genesis first, ranges that join, sums that balance,
/// control entries that never fall.
pub(crate) fn check_partition(chain: &Chain, entries: &[Read<PartitionBody>]) -> Result<(), LedgerError> {
    check_following(chain, None, entries)
}

/// The same, behind entries that were not read: where the last of them stood, and which control entry it named.
pub(crate) fn check_following(
    chain: &Chain,
    before: Option<(&Progress, u64)>,
    entries: &[Read<PartitionBody>],
) -> Result<(), LedgerError> {
    let mut before = before;
    for read in entries {
        let body = &read.entry.body;
        if let Some(what) = breaks_after(before, body) {
            return Err(LedgerError::altered(&chain.entry_path(read.entry.seq), what));
        }
        before = Some((body.progress(), body.control().seq));
    }
    Ok(())
}

/// Why an entry cannot follow another, of which it is known where the partition stood and which control entry it named.
pub(crate) fn breaks_after(before: Option<(&Progress, u64)>, body: &PartitionBody) -> Option<&'static str> {
    let is_genesis = matches!(body, PartitionBody::Genesis { .. });
    let Some((was, control)) = before else {
        return (!is_genesis).then_some("a partition chain begins with its genesis");
    };
    if is_genesis {
        return Some("a second genesis");
    }
    let is = body.progress();
    let range = match body {
        PartitionBody::Chunk(chunk) => Some(&chunk.range),
        PartitionBody::Gap { range, .. } => Some(range),
        _ => None,
    };
    match range {
        Some(range) if !range.follows(was.next) => {
            return Some("its range does not begin where the last one ended");
        }
        Some(range) if range.next != is.next => {
            return Some("its range does not end where it says the partition stands");
        }
        None if is.next != was.next => return Some("it moves the position without a range"),
        _ => {}
    }
    if body.control().seq < control {
        return Some("it names an older control entry than the one before it");
    }
    if is.read_through < was.read_through || is.clock < was.clock || (was.is_final && !is.is_final) {
        return Some("its time runs backwards");
    }
    match body.chunk() {
        Some(chunk) if !chunk.balance.holds() => Some("read is not calls + dead + other"),
        _ => None,
    }
}
