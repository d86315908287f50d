//! Retention: whole files that are old enough. The entry says so; the files go with the next `gc`.

use lastcall_event::Day;

use super::MAX_FILES;
use crate::control::Control;
use crate::entry::{FileKind, FileRef};
use crate::error::LedgerError;
use crate::ledger::Ledger;

/// What is to expire.
#[derive(Clone, Debug)]
pub struct Expiry {
    /// Everything before this UTC day.
    pub before: Day,
    /// Calls, dead letters or both. Results have no values and are never removed.
    pub kinds: Vec<FileKind>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// A file that holds something old beside something that is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// The file.
    pub file: FileRef,
    /// The day of its newest call: the file can go when the retention has passed that.
    pub newest: Day,
}

/// What expired, or would.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Control entries appended.
    pub entries: Vec<u64>,
    /// The files.
    pub files: Vec<FileRef>,
    /// Files with older calls that have to wait for their newest one.
    pub kept: Vec<KeptFile>,
}

impl Expired {
    /// Rows of files of this kind.
    pub fn rows(&self, kind: FileKind) -> u64 {
        self.files.iter().filter(|f| f.kind == kind).map(|f| f.rows).sum()
    }
}

enum Stop {
    Nothing,
    Ledger(LedgerError),
}

impl From<LedgerError> for Stop {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

/// Lets whole files expire. A calls file is old enough when it was recorded before the day, or when its newest call
/// is from before it: a call that claims to come from the future keeps nothing alive. A dead file goes by the day on
/// which it was recorded.
///
/// # Errors
/// The ledger cannot be read or written; what was not appended did not happen.
pub fn expire(ledger: &Ledger, expiry: &Expiry) -> Result<Expired, LedgerError> {
    ledger.refuse_export()?;
    if let Some(now) = ledger.now()?
        && expiry.before > now.day()
    {
        let whose = if ledger.is_simulated() { "the ledger's own clock" } else { "this machine's clock" };
        let what = format!(
            "{} lies in the future: by {whose} today is {}, UTC, which is the latest day that can be given; what is recorded \
             today has not passed any retention",
            expiry.before,
            now.day()
        );
        return Err(LedgerError::Refused(what));
    }
    let mut done = Expired::default();
    if expiry.dry_run {
        (done.files, done.kept) = old(ledger, expiry)?;
        return Ok(done);
    }
    loop {
        let mut last = Vec::new();
        let appended = ledger.append_control_with(|_| {
            let (mut files, kept) = old(ledger, expiry)?;
            files.truncate(MAX_FILES);
            (last, done.kept) = (files.clone(), kept);
            if files.is_empty() {
                return Err(Stop::Nothing);
            }
            Ok(Control::Expire { before: expiry.before, files })
        });
        match appended {
            Ok((seq, _)) => {
                done.entries.push(seq);
                done.files.append(&mut last);
            }
            Err(Stop::Nothing) => return Ok(done),
            Err(Stop::Ledger(error)) => return Err(error),
        }
    }
}

/// The files that are old enough, and those that hold something old and are not.
fn old(ledger: &Ledger, expiry: &Expiry) -> Result<(Vec<FileRef>, Vec<KeptFile>), LedgerError> {
    let superseded = ledger.superseded()?;
    let (mut files, mut kept) = (Vec::new(), Vec::new());
    for chain in ledger.partitions()? {
        for read in &chain.entries {
            let Some(chunk) = read.entry.body.chunk() else { continue };
            let recorded = read.entry.at.day();
            for named in chunk.files.iter().filter(|f| expiry.kinds.contains(&f.kind)) {
                let Some(file) = superseded.standing(named)?.file else { continue };
                let newest = chunk.newest.map(|t| t.day()).filter(|_| named.kind == FileKind::Calls);
                let oldest = chunk.oldest.map(|t| t.day()).filter(|_| named.kind == FileKind::Calls);
                if recorded < expiry.before || newest.is_some_and(|day| day < expiry.before) {
                    files.push(file);
                } else if let (Some(newest), Some(true)) = (newest, oldest.map(|day| day < expiry.before)) {
                    kept.push(KeptFile { file, newest: newest.min(recorded) });
                }
            }
        }
    }
    Ok((files, kept))
}
