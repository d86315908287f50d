//! An export: what it has to hold is derived from its chains, its index and the tool, and nothing that its mark lists is
//! believed. What was left behind is counted, and cannot be checked; everything else is checked as in a ledger.
//!
//! Without chunk results the days are held against the entries: the rows of the day files, each as often as it came, have
//! to come to the tallies that the chunks' entries state.

use std::collections::{BTreeMap, BTreeSet};

use lastcall_contract::Digest;
use serde::Serialize;

use super::counted::count;
use super::{Outcome, Verifier};
use crate::chain::Read;
use crate::entry::{Chunk, FileKind, FileRef};
use crate::erasure::Standing;
use crate::error::LedgerError;
use crate::export::held::{self, Held, Left, is_entry, is_signature};
use crate::export::{Arguments, FOLDERS, MARK, Mark, check_row, digests, listed};
use crate::index::{IndexBody, for_each_day_row, index_entry};
use crate::names::Chain;
use crate::position::Partition;
use crate::tally::{Counts, TallyKey};

/// What verify says of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportCheck {
    /// The tool.
    pub tool: String,
    /// The id of the ledger that it came from.
    pub ledger: String,
    /// The index entry as of which it is.
    pub index: u64,
    /// Whether the tool's calls have to be in it.
    pub with_arguments: bool,
    /// Whether everything that was exported is there, as it was written.
    pub intact: bool,
    /// What was left behind, and cannot be checked here.
    pub left: Left,
    /// Calls that are there, each proven by its commitment.
    pub calls: u64,
    /// Calls that a day names and that are not there, in files of which calls were erased or that expired.
    pub calls_gone: u64,
    /// So many of these may have been taken out of the export instead: the erasure, of an older build, does not say of which
    /// tool the calls were.
    #[serde(skip_serializing_if = "is_zero")]
    pub calls_unsaid: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What is known of the export that is verified.
pub(super) struct Export {
    mark: Mark,
    head: Read<IndexBody>,
    held: Held,
    arguments: Arguments,
    /// The source whose chain is read.
    pub(super) source: String,
    left: Left,
    calls: u64,
    gone: u64,
    unsaid: u64,
    /// Calls files that may stand there.
    paths: BTreeSet<String>,
    /// What the chunks' entries state of the tool.
    told: BTreeMap<TallyKey, Counts>,
}

impl Export {
    pub(super) fn is_of(&self, tool: &str) -> bool {
        self.mark.tool == tool
    }

    pub(super) fn holds(&self, digest: &Digest) -> bool {
        self.held.objects.contains(digest)
    }

    pub(super) fn held(&self) -> &Held {
        &self.held
    }
}

impl Verifier<'_> {
    /// Reads what the folder is an export of, and derives what it has to hold; nothing where it is a ledger itself.
    pub(super) fn export_begins(&mut self, newest: Option<u64>) -> Result<(), LedgerError> {
        let Some(mark) = self.ledger.export().cloned() else { return Ok(()) };
        let bytes = self.ledger.store().get(MARK)?;
        if mark.is_unknown() {
            return Ok(());
        }
        let wrong = |this: &mut Self, what: &str| this.find(Outcome::Altered, MARK, None, what);
        if bytes != Some(mark.bytes()?) {
            wrong(self, "it is not written as an export writes it");
        }
        if mark.ledger != self.ledger.meta().id {
            wrong(self, "it names another ledger than ledger.json");
        }
        let place = Chain::Index.entry_path(mark.index.seq);
        let head = match index_entry(&**self.ledger.store(), mark.index.seq) {
            Ok(Some(head)) if head.digest == mark.index.digest => head,
            Ok(Some(_)) => {
                let what = format!("it is not the entry that {MARK} names: one of the two was altered");
                self.find(Outcome::Altered, &place, None, what);
                return Ok(());
            }
            Ok(None) => {
                let what = format!("it is missing, and {MARK} names it");
                self.find(Outcome::Truncated, &place, None, what);
                return Ok(());
            }
            Err(LedgerError::Store(error)) => return Err(error.into()),
            // Said where the chain is read.
            Err(_) => return Ok(()),
        };
        if newest > Some(mark.index.seq) {
            wrong(self, "the index goes on behind the entry that it names: one of the two was altered");
        }
        if head.entry.at != mark.at {
            wrong(self, "its time is not that of the index entry that it names");
        }
        let mut held = match held::named(self.ledger, &mark.tool, &head) {
            Ok(held) => held,
            Err(LedgerError::Store(error)) => return Err(error.into()),
            Err(_) => return Ok(()),
        };
        // What cannot be read of them is said where the index is read.
        if let Err(LedgerError::Store(error)) = held.read_facts(self.ledger, &head.entry.body) {
            return Err(error.into());
        }
        let arguments = Arguments::new(self.ledger, &held);
        self.export = Some(Export {
            left: held.left,
            mark,
            head,
            held,
            arguments,
            source: String::new(),
            calls: 0,
            gone: 0,
            unsaid: 0,
            paths: BTreeSet::new(),
            told: BTreeMap::new(),
        });
        Ok(())
    }

    /// Whether an object is no part of the export that is verified.
    pub(super) fn is_left_behind(&self, digest: &Digest) -> bool {
        self.ledger.export().is_some() && self.export.as_ref().is_none_or(|export| !export.holds(digest))
    }

    /// A chunk of an export: its files were left behind, but for the calls of the tool.
    pub(super) fn exported_chunk(
        &mut self,
        record: &str,
        partition: Partition,
        chunk: &Chunk,
    ) -> Result<(), LedgerError> {
        if let Some(export) = &mut self.export {
            export.left.chunk(chunk, &self.superseded);
        }
        for named in &chunk.files {
            self.unnamed.remove(&named.path);
            let standing = match self.superseded.standing(named) {
                Ok(standing) => standing,
                Err(error) => {
                    self.find_error(&named.path, Some(record.to_owned()), error)?;
                    continue;
                }
            };
            self.report.gone.add(named.kind, &standing);
            if named.kind == FileKind::Calls {
                self.exported_calls(record, partition, chunk, named, &standing)?;
            }
        }
        let Some(export) = &mut self.export else { return Ok(()) };
        for tally in chunk.tallies.iter().filter(|t| *t.tool == *export.mark.tool) {
            export.told.entry(tally.key()).or_default().add(&tally.counts);
        }
        Ok(())
    }

    /// The tool's calls of one chunk: each is what its result commits to, and none is missing that was not erased.
    fn exported_calls(
        &mut self,
        record: &str,
        partition: Partition,
        chunk: &Chunk,
        named: &FileRef,
        standing: &Standing,
    ) -> Result<(), LedgerError> {
        let Some(export) = self.export.as_mut().filter(|export| export.mark.with_arguments) else {
            return Ok(());
        };
        let path = &named.path;
        let proven = match export.arguments.of_chunk(&export.source, partition.0, chunk) {
            Ok(proven) => proven,
            // A day file cannot be read: that is said where the index is read, before this.
            Err(LedgerError::Store(error)) => return Err(error.into()),
            Err(_) => return Ok(()),
        };
        if proven.is_empty() {
            return Ok(());
        }
        export.paths.insert(path.clone());
        let tool = export.mark.tool.clone();
        let said = export.mark.calls_sha256.get(path).cloned();
        self.tell(path);
        let record = Some(record.to_owned());
        let mut found = 0u64;
        if let Some(bytes) = self.ledger.store().get(path)? {
            // Before it is parsed: nothing in it can be trusted.
            if said.is_none_or(|said| said != Digest::of(&bytes)) {
                let what =
                    format!("its SHA-256 is not the one that {MARK} states: one of the two was altered");
                self.find(Outcome::Altered, path, record, what);
                return Ok(());
            }
            self.report.files += 1;
            self.report.bytes += bytes.len() as u64;
            let mut last = None;
            let read = crate::calls::for_each_row(path, bytes, |row| {
                let ascends = last.is_none_or(|before| before < row.position);
                last = Some(row.position);
                let commitment = proven.get(&row.position).filter(|_| ascends && row.tool_id == tool);
                if commitment != Some(&row.commitment()) {
                    let what = format!(
                        "the row at offset {} is not what a result of `{tool}` commits to",
                        row.position.offset
                    );
                    return Err(LedgerError::altered(path, what));
                }
                found += 1;
                check_row(path, &row)
            });
            if let Err(error) = read {
                return self.find_error(path, record, error);
            }
            self.report.rows += found;
            if let Some(export) = &mut self.export {
                export.left.take_calls();
            }
        }
        let missing = (proven.len() as u64).saturating_sub(found);
        if let Some(export) = &mut self.export {
            export.calls += found;
            export.gone += missing;
            export.unsaid += if standing.tools.is_none() && standing.expired == 0 { missing } else { 0 };
        }
        let gone = standing.gone_of(&tool);
        if missing > gone {
            let what =
                format!("{missing} calls are missing, and {gone} of their file were erased or expired");
            self.missing(path, record, &what);
        }
        Ok(())
    }

    /// The rows of the day files against the tallies of the entries.
    pub(super) fn exported_rows(&mut self, place: &str) -> Result<(), LedgerError> {
        let Some(export) = &self.export else { return Ok(()) };
        let mut rows: BTreeMap<TallyKey, Counts> = BTreeMap::new();
        let mut odd: Option<String> = None;
        for entry in &export.held.newest {
            for_each_day_row(self.ledger, entry, &mut |_, _| true, &mut |row| {
                let own = row.row.day == entry.day && row.row.epoch == entry.epoch.as_str();
                if !own || row.row.tool_id != export.mark.tool || row.row.day != row.row.ts.day() {
                    odd.get_or_insert_with(|| {
                        entry.files.first().map_or(String::new(), |file| file.path.clone())
                    });
                }
                let (cohort, agent) = (row.row.cohort.clone(), row.row.agent.clone());
                let key = (row.row.day, row.row.tool_id.clone(), entry.epoch.clone(), cohort, agent);
                count(rows.entry(key).or_default(), &row.row, row.repeats);
            })?;
        }
        let same = rows == export.told;
        if let Some(path) = odd {
            self.find(Outcome::Altered, &path, None, "it holds a row of another day, tool or epoch");
        }
        if !same {
            self.find(
                Outcome::Altered,
                place,
                None,
                "the rows of its days are not those that the chunks' entries count",
            );
        }
        Ok(())
    }

    /// Files that do not belong there, the mark's own lists, and what was left behind.
    pub(super) fn export_ends(&mut self) -> Result<(), LedgerError> {
        let Some(export) = self.export.take() else {
            if self.ledger.export().is_some() && self.report.findings.is_empty() {
                self.find(
                    Outcome::CannotCheck,
                    MARK,
                    None,
                    "what the export holds cannot be derived from its chains",
                );
            }
            return Ok(());
        };
        let Export { mark, head, held, left, .. } = &export;
        let subjects = self.control.state.subjects();
        if !subjects.iter().any(|s| s.tool_id == mark.tool) {
            let what =
                format!("it names `{}`, and no pair of that tool was ever registered or observed", mark.tool);
            self.find(Outcome::Altered, MARK, None, what);
        }
        let body = &head.entry.body;
        let tails = body.tails();
        let belongs = |path: &str| {
            tails.iter().any(|(chain, tail)| is_entry(path, chain, tail.seq))
                || is_entry(path, &Chain::Index, head.entry.seq)
                || is_signature(path, head.entry.seq)
                || held.has(path)
                || export.paths.contains(path)
        };
        let mut there: BTreeMap<String, BTreeMap<String, (Digest, u64)>> = BTreeMap::new();
        for folder in FOLDERS {
            for path in self.ledger.store().list(folder)? {
                self.tell(&path);
                if !belongs(&path) {
                    let what =
                        format!("it is no part of an export of `{}`: it was put there later", mark.tool);
                    self.find(Outcome::Altered, &path, None, what);
                } else if let Some(bytes) = self.ledger.store().get(&path)? {
                    let file = (Digest::of(&bytes), bytes.len() as u64);
                    there.entry(folder.to_owned()).or_default().insert(path, file);
                }
            }
        }
        let calls = digests(there.get("calls"));
        let there: BTreeMap<_, _> =
            there.iter().map(|(folder, files)| (folder.clone(), listed(files))).collect();
        let about = self.report.findings.iter().filter(|f| f.outcome != Outcome::Unsigned).count();
        let apart = self.report.findings.iter().filter(|f| f.outcome == Outcome::CannotCheck).count();
        let fine = about == 0 || about == apart && apart <= self.heads.apart;
        let fine = fine && {
            let other = |path: &&String| calls.get(*path) != mark.calls_sha256.get(*path);
            let odd: BTreeSet<String> =
                calls.keys().chain(mark.calls_sha256.keys()).filter(other).cloned().collect();
            for path in &odd {
                let what =
                    format!("its SHA-256 is not the one that {MARK} states: one of the two was altered");
                self.find(Outcome::Altered, path, None, what);
            }
            odd.is_empty()
        };
        if fine && there != mark.copied {
            let differs = |folder: &&&str| there.get(**folder) != mark.copied.get(**folder);
            let folder = FOLDERS.iter().find(differs).copied().unwrap_or_default();
            let what =
                format!("what it lists of {folder}/ is not what stands there: one of the two was altered");
            self.find(Outcome::Altered, MARK, None, what);
        }
        let intact = self.report.findings.len() == self.heads.apart;
        self.report.export = Some(ExportCheck {
            tool: mark.tool.clone(),
            ledger: mark.ledger.clone(),
            index: mark.index.seq,
            with_arguments: mark.with_arguments,
            intact,
            left: *left,
            calls: export.calls,
            calls_gone: export.gone,
            calls_unsaid: export.unsaid,
        });
        if self.asked.exported {
            return Ok(());
        }
        for (folder, files, why) in left.each(mark.with_arguments) {
            let s = if files == 1 { "" } else { "s" };
            let what = format!("left behind by the export: {files} file{s} with {why}");
            self.find(Outcome::CannotCheck, folder, None, what);
        }
        Ok(())
    }
}
