//! What became of data files: rewritten without somebody's calls, or past their retention. The control chain says so;
//! readers go by it.

mod expire;
mod request;
mod rewrite;
mod select;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub use expire::{Expired, Expiry, KeptFile, expire};
pub use request::{Erased, ErasedFile, Request, erase};
pub use select::{Selection, UNIT};

use crate::chain::Tail;
use crate::control::{Control, Entry};
use crate::entry::{FileKind, FileRef};
use crate::error::LedgerError;
use crate::names::Chain;
use crate::redaction::Treatment;

/// Files that one control entry names at most: an erasure of many is several entries, so that none grows without
/// bound and a race costs little.
pub(crate) const MAX_FILES: usize = 256;

/// What became of a file at one control entry.
#[derive(Clone, Debug)]
struct Step {
    seq: u64,
    old: FileRef,
    new: Option<FileRef>,
    erased: u64,
    tools: BTreeMap<String, u64>,
    expired: bool,
}

/// What stands in the place of a file that a chunk names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The file to read; `None`: nothing is left of it.
    pub file: Option<FileRef>,
    /// Rows that were erased.
    pub erased: u64,
    /// Rows that expired.
    pub expired: u64,
    /// The erased rows by tool, of a calls file; `None`: an entry of an older build does not say it.
    pub tools: Option<BTreeMap<String, u64>>,
}

impl Standing {
    /// How many rows of a tool are gone at most; exactly so many where the entries say it.
    pub fn gone_of(&self, tool: &str) -> u64 {
        match &self.tools {
            // A file expires whole.
            Some(tools) if self.expired == 0 => tools.get(tool).copied().unwrap_or_default(),
            _ => self.erased.saturating_add(self.expired),
        }
    }
}

/// What is gone of a record, for whoever checks or reads it whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Gone {
    /// Calls that were erased.
    pub erased_calls: u64,
    /// Dead letters that were erased.
    pub erased_dead: u64,
    /// Calls in files that expired.
    pub expired_calls: u64,
    /// Dead letters in files that expired.
    pub expired_dead: u64,
}

impl Gone {
    /// Adds what became of one file.
    pub fn add(&mut self, kind: FileKind, standing: &Standing) {
        let (erased, expired) = match kind {
            FileKind::Calls => (&mut self.erased_calls, &mut self.expired_calls),
            FileKind::Dead => (&mut self.erased_dead, &mut self.expired_dead),
            FileKind::Results => return,
        };
        *erased += standing.erased;
        *expired += standing.expired;
    }

    /// Nothing is.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let said: Vec<String> = [
            (self.erased_calls, "call", "erased"),
            (self.erased_dead, "dead letter", "erased"),
            (self.expired_calls, "call", "expired"),
            (self.expired_dead, "dead letter", "expired"),
        ]
        .iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, what, how)| format!("{n} {what}{} {how}", if *n == 1 { "" } else { "s" }))
        .collect();
        f.write_str(&said.join(", "))
    }
}

/// Which files are superseded, and what erasures have to know of redactions: folded from the whole control chain.
#[derive(Clone, Debug, Default)]
pub struct Superseded {
    by_path: HashMap<String, Step>,
    twice: Vec<(u64, String)>,
    hides_ids: bool,
    keys: BTreeSet<String>,
}

impl Superseded {
    /// Takes in the next control entry.
    pub fn push(&mut self, entry: &Entry<Control>) {
        let seq = entry.seq;
        match &entry.body {
            Control::Erase { files, .. } => files.iter().for_each(|file| {
                let (old, new, tools) = (file.old.clone(), file.new.clone(), file.tools.clone());
                self.step(Step { seq, old, new, erased: file.erased, tools, expired: false });
            }),
            Control::Expire { files, .. } => files.iter().for_each(|file| {
                let (old, tools) = (file.clone(), BTreeMap::new());
                self.step(Step { seq, old, new: None, erased: file.rows, tools, expired: true });
            }),
            Control::Redact { redaction: Some(redaction), .. } => {
                self.keys.insert(redaction.key.clone());
                self.hides_ids |= redaction
                    .rules
                    .iter()
                    .any(|rule| rule.action == Treatment::Hash && rule.pointer.starts_with("/envelope/"));
            }
            _ => {}
        }
    }

    fn step(&mut self, step: Step) {
        // Whoever appended second had to see the first: two that supersede one file are no race, but an alteration.
        if self.by_path.contains_key(&step.old.path) {
            self.twice.push((step.seq, step.old.path));
        } else {
            self.by_path.insert(step.old.path.clone(), step);
        }
    }

    /// Whether some source at some time had hashes in the place of ids by which erasures are asked for.
    pub fn hides_ids(&self) -> bool {
        self.hides_ids
    }

    /// Fingerprints of the keys that some source's hashes were ever made with.
    pub fn keys(&self) -> &BTreeSet<String> {
        &self.keys
    }

    /// The control entry that superseded a file, and what stands in its place.
    pub fn by(&self, path: &str) -> Option<(u64, Option<&FileRef>)> {
        self.by_path.get(path).map(|step| (step.seq, step.new.as_ref()))
    }

    /// Every file that was written in the place of another, with its control entry.
    pub fn written(&self) -> impl Iterator<Item = (u64, &FileRef)> {
        self.by_path.values().filter_map(|step| Some((step.seq, step.new.as_ref()?)))
    }

    /// The files that control entries supersede: (entry, path).
    pub fn replaced(&self) -> impl Iterator<Item = (u64, &str)> {
        self.by_path.values().map(|step| (step.seq, step.old.path.as_str()))
    }

    /// Control entries that supersede a file which another one superseded before: (entry, path).
    pub fn twice(&self) -> &[(u64, String)] {
        &self.twice
    }

    /// What stands in the place of a file that a chunk names.
    ///
    /// # Errors
    /// A control entry supersedes a file of this path that is not this one, or its counts do not fit.
    pub fn standing(&self, named: &FileRef) -> Result<Standing, LedgerError> {
        let (mut file, mut erased, mut expired) = (named.clone(), 0u64, 0u64);
        let mut tools = Some(BTreeMap::<String, u64>::new());
        let mut last = None;
        while let Some(step) = self.by_path.get(&file.path) {
            let place = || Chain::Control.entry_path(step.seq);
            let left = step.new.as_ref().map_or(0, |new| new.rows);
            if step.old != file || last >= Some(step.seq) {
                let what = format!("it supersedes another file than the {} that the record names", file.path);
                return Err(LedgerError::altered(&place(), what));
            }
            let kind = step.new.as_ref().is_none_or(|new| new.kind == file.kind && new.rows > 0);
            let by_tool = step.tools.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
            let counted = step.tools.is_empty() || by_tool == step.erased && file.kind == FileKind::Calls;
            if !kind || !counted || left.checked_add(step.erased) != Some(file.rows) || step.erased == 0 {
                let what = format!("its counts do not fit the {} rows of {}", file.rows, file.path);
                return Err(LedgerError::altered(&place(), what));
            }
            let sum = if step.expired { &mut expired } else { &mut erased };
            *sum = sum.saturating_add(step.erased);
            tools = tools.filter(|_| step.expired || !step.tools.is_empty());
            for (tool, n) in &step.tools {
                let of = tools.as_mut().map(|tools| tools.entry(tool.clone()).or_default());
                of.into_iter().for_each(|of| *of = of.saturating_add(*n));
            }
            last = Some(step.seq);
            match &step.new {
                Some(new) => file = new.clone(),
                None => return Ok(Standing { file: None, erased, expired, tools }),
            }
        }
        Ok(Standing { file: Some(file), erased, expired, tools })
    }
}

/// [`Superseded`] up to an entry of the control chain.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub(crate) tail: Option<Tail>,
    pub(crate) superseded: Arc<Superseded>,
}
