//! An erasure: files rewritten under the next control entry, and the entry that says so. Whoever loses that place reads
//! again what stands, and rewrites anew; what was written for a lost place is garbage.

use std::collections::{BTreeSet, HashMap};

use super::MAX_FILES;
use super::rewrite::Picker;
use super::select::Selection;
use crate::control::{Control, Replaced};
use crate::entry::{FileKind, FileRef};
use crate::error::LedgerError;
use crate::gc;
use crate::ledger::{Ledger, random_hex};
use crate::names;
use crate::state::ControlState;

/// The longest reason, in bytes.
const MAX_REASON: usize = 200;
/// Calls of one request at most: their ids are looked for in dead letters.
const MAX_CALLS: usize = 1_000_000;
/// Bytes that one entry's files are rewritten to at most, about: what a lost race costs.
const MAX_BYTES: u64 = 1 << 30;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Whose calls, under every form in which an id may stand.
    pub selection: Selection,
    /// How many ids were asked for; it stands in the entry.
    pub asked: u64,
    /// Why: stands in the entry. Must not hold an id.
    pub reason: Option<String>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// One file from which rows are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasedFile {
    /// The file that held them.
    pub old: FileRef,
    /// What stands in its place; `None`: no row is left, or this was a dry run.
    pub new: Option<FileRef>,
    /// Rows taken out.
    pub erased: u64,
}

/// What was done, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Control entries appended.
    pub entries: Vec<u64>,
    /// The files.
    pub files: Vec<ErasedFile>,
    /// Objects that name one of the ids: they stay, since entries name them by digest.
    pub objects: Vec<String>,
    /// Chunks that were looked through.
    pub chunks: u64,
    /// Files that hold something of it and that no entry names, with how much: of runs that were stopped, or that are in
    /// flight. They are no part of the record; `gc` removes them.
    pub unnamed: Vec<(String, u64)>,
    /// Calls of the record that have expired: nobody can say whose they were.
    pub expired: u64,
    /// Dead letters that stand.
    pub dead: u64,
    /// Call ids that were asked for and that no call has.
    pub unknown: Vec<String>,
}

impl Erased {
    /// Rows taken out of files of this kind.
    pub fn rows(&self, kind: FileKind) -> u64 {
        self.files.iter().filter(|f| f.old.kind == kind).map(|f| f.erased).sum()
    }
}

enum Stop {
    /// No file holds what is to be erased.
    Nothing,
    Ledger(LedgerError),
}

impl From<LedgerError> for Stop {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

/// Erases calls and dead letters. Done again it finds nothing more, unless more was recorded in between.
///
/// # Errors
/// The selection is empty, the reason names an id, or the ledger cannot be read or written; what was not appended did
/// not happen.
pub fn erase(ledger: &Ledger, request: &Request) -> Result<Erased, LedgerError> {
    ledger.refuse_export()?;
    let selection = &request.selection;
    if selection.is_empty() || selection.ids().any(str::is_empty) {
        let what = "nothing to erase: name call ids, sessions or agents, none of them empty";
        return Err(LedgerError::Refused(what.to_owned()));
    }
    let picker = Picker::new(selection)?;
    if let Some(reason) = &request.reason {
        if reason.len() > MAX_REASON || reason.chars().any(char::is_control) {
            let what = "the reason is at most 200 bytes of plain text: a ticket's number, for example";
            return Err(LedgerError::Refused(what.to_owned()));
        }
        if selection.ids().any(|id| reason.contains(id)) {
            let what =
                "the reason names an id that is to be erased, and it would stand in the record for ever";
            return Err(LedgerError::Refused(what.to_owned()));
        }
    }
    let (seen, call_ids, done) = (HashMap::new(), BTreeSet::new(), Erased::default());
    let mut work = Work { ledger, picker, request, seen, call_ids, done };
    if request.dry_run {
        let files = work.candidates()?;
        work.done.files =
            files.into_iter().map(|(old, erased)| ErasedFile { old, new: None, erased }).collect();
    } else {
        while work.batch()? {}
    }
    work.objects()?;
    work.unnamed()?;
    work.done.unknown =
        selection.call_ids.iter().filter(|id| !work.call_ids.contains(*id)).cloned().collect();
    Ok(work.done)
}

struct Work<'a> {
    ledger: &'a Ledger,
    picker: Picker<'a>,
    request: &'a Request,
    /// Files that were looked through, with how much of it they hold. Files never change.
    seen: HashMap<String, (FileKind, u64)>,
    /// The ids of the calls that are erased, whatever they were asked by: dead letters may name them.
    call_ids: BTreeSet<String>,
    done: Erased,
}

impl Work<'_> {
    /// The files that now stand and hold something of it, dead letters first: they are found by the ids of calls, so
    /// those have to stand until the dead letters are gone, whoever is killed in between.
    ///
    /// What is superseded is read after the state under which the entry will stand, so it may be newer, never older; if
    /// it is newer, that place is taken, and all of this is done again.
    fn candidates(&mut self) -> Result<Vec<(FileRef, u64)>, LedgerError> {
        loop {
            match self.standing() {
                Err(error) if self.is_overtaken(&error)? => {}
                done => return done,
            }
        }
    }

    /// Whether a file is missing because another one superseded it, and `gc` removed it, since it was found to stand.
    fn is_overtaken(&self, error: &LedgerError) -> Result<bool, LedgerError> {
        let LedgerError::Missing { place } = error else { return Ok(false) };
        Ok(self.ledger.superseded()?.by(place).is_some())
    }

    fn standing(&mut self) -> Result<Vec<(FileRef, u64)>, LedgerError> {
        let (mut files, mut chunks) = (Vec::new(), 0);
        let superseded = self.ledger.superseded()?;
        let (mut expired, mut dead) = (0, 0);
        for chain in self.ledger.partitions()? {
            for (_, chunk) in chain.chunks() {
                chunks += 1;
                for file in chunk.files.iter().filter(|f| f.kind != FileKind::Results) {
                    let standing = superseded.standing(file)?;
                    match file.kind {
                        FileKind::Dead => dead += standing.file.as_ref().map_or(0, |file| file.rows),
                        _ => expired += standing.expired,
                    }
                    files.extend(standing.file);
                }
            }
        }
        (self.done.chunks, self.done.expired, self.done.dead) = (chunks, expired, dead);
        let known = self.call_ids.len();
        for file in files.iter().filter(|f| f.kind == FileKind::Calls) {
            self.look(file)?;
        }
        if self.call_ids.len() > known {
            self.picker.look_for(&self.call_ids)?;
            self.seen.retain(|_, (kind, _)| *kind != FileKind::Dead);
        }
        for file in files.iter().filter(|f| f.kind == FileKind::Dead) {
            self.look(file)?;
        }
        let held = |file: FileRef| {
            let n = self.seen.get(&file.path).map_or(0, |(_, n)| *n);
            (n > 0).then_some((file, n))
        };
        let mut files: Vec<(FileRef, u64)> = files.into_iter().filter_map(held).collect();
        files.sort_by_key(|(file, _)| file.kind != FileKind::Dead);
        Ok(files)
    }

    fn look(&mut self, file: &FileRef) -> Result<(), LedgerError> {
        if self.seen.contains_key(&file.path) {
            return Ok(());
        }
        let bytes = self.ledger.file(file)?;
        let ids = &mut self.call_ids;
        let found = self.picker.count(file.kind, &file.path, bytes, &mut |id| {
            ids.insert(id.to_owned());
        })?;
        if self.call_ids.len() > MAX_CALLS {
            let what =
                format!("these are more than {MAX_CALLS} calls: ask for fewer at once, or let files expire");
            return Err(LedgerError::Refused(what));
        }
        self.seen.insert(file.path.clone(), (file.kind, found));
        Ok(())
    }

    /// One entry's worth of files; `false`: nothing was left to erase.
    fn batch(&mut self) -> Result<bool, LedgerError> {
        let mut last: Vec<Replaced> = Vec::new();
        let ledger = self.ledger;
        let appended = ledger.append_control_with(|state| {
            last = self.rewrite(state)?;
            if last.is_empty() {
                return Err(Stop::Nothing);
            }
            Ok(Control::Erase {
                ids: self.request.asked,
                files: last.clone(),
                reason: self.request.reason.clone(),
            })
        });
        match appended {
            Ok((seq, _)) => {
                self.done.entries.push(seq);
                let told = |f: Replaced| ErasedFile { old: f.old, new: f.new, erased: f.erased };
                self.done.files.extend(last.into_iter().map(told));
                Ok(true)
            }
            Err(Stop::Nothing) => Ok(false),
            Err(Stop::Ledger(error)) => Err(error),
        }
    }

    /// Writes what is to stand in the place of the files that hold something, under the entry after `state`'s last.
    fn rewrite(&mut self, state: &ControlState) -> Result<Vec<Replaced>, LedgerError> {
        loop {
            match self.rewrite_standing(state) {
                Err(error) if self.is_overtaken(&error)? => {}
                done => return done,
            }
        }
    }

    fn rewrite_standing(&mut self, state: &ControlState) -> Result<Vec<Replaced>, LedgerError> {
        let seq = state.tail().map_or(0, |tail| tail.seq.saturating_add(1));
        let (mut files, mut written) = (Vec::new(), 0);
        for (old, _) in self.candidates()? {
            if files.len() >= MAX_FILES || written >= MAX_BYTES {
                break;
            }
            let made = self.picker.rewrite(old.kind, &old.path, self.ledger.file(&old)?)?;
            let new = match made.file {
                None => None,
                Some(file) => {
                    let path = names::replaced_path(old.kind.as_str(), seq, &random_hex(8)?);
                    self.ledger.store().put(&path, &file.bytes)?;
                    let (bytes, rows) = (file.bytes.len() as u64, file.rows);
                    written += bytes;
                    Some(FileRef { kind: old.kind, path, sha256: file.sha256, bytes, rows })
                }
            };
            files.push(Replaced { old, new, erased: made.erased, tools: made.tools });
        }
        Ok(files)
    }

    /// Files that no entry names, and that hold something of it.
    fn unnamed(&mut self) -> Result<(), LedgerError> {
        for (kind, path) in gc::unnamed(self.ledger)? {
            // Gone meanwhile, or named by now and looked through the next time.
            let Some(bytes) = self.ledger.store().get(&path)? else { continue };
            // One that cannot be read may hold anything: it is named too.
            let rows = self.picker.count(kind, &path, bytes, &mut |_| {}).unwrap_or(u64::MAX);
            if rows > 0 {
                self.done.unnamed.push((path, rows));
            }
        }
        Ok(())
    }

    /// Objects that name one of the ids.
    fn objects(&mut self) -> Result<(), LedgerError> {
        // Only what may hold ids: names of sources, tools and agents in other objects are no such thing.
        let mut held = BTreeSet::new();
        for read in self.ledger.control()?.entries {
            match read.entry.body {
                Control::Plant { list, .. } => drop(held.insert(list)),
                Control::Register { trial: Some(trial), .. } => drop(held.insert(trial)),
                _ => {}
            }
        }
        for digest in held {
            let path = names::object_path(&digest);
            let Some(bytes) = self.ledger.store().get(&path)? else { continue };
            if self.picker.finds(&bytes) {
                self.done.objects.push(path);
            }
        }
        self.done.objects.sort();
        Ok(())
    }
}
