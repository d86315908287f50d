//! Checks everything that the record says against itself. Reads only, repairs nothing, never stops at the first find.
//!
//! Every chain is read once, from its first entry to the tail that it had when verify began; of an entry nothing is kept
//! but what a later check needs. Rows are checked file by file.

mod chains;
mod control;
mod counted;
mod export;
mod files;
mod heads;
mod index;
mod lenient;
mod opened;
mod recount;
mod references;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use export::ExportCheck;
use lastcall_contract::Digest;
use lastcall_event::Timestamp;
pub use opened::Opened;
use serde::Serialize;

use crate::erasure::{Gone, Superseded};
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::names;
use crate::sign::{KeptHead, PublicKey};

/// What verify answers. The order is that of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Something is not what was written.
    Altered,
    /// Something was cut off.
    Truncated,
    /// Something that the record names is missing.
    Incomplete,
    /// A signature that has to stand there does not.
    Unsigned,
    /// Something could not be read or is unknown to this build.
    CannotCheck,
    /// Everything fits.
    Intact,
}

impl Outcome {
    /// Its name in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Altered => "altered",
            Self::Truncated => "truncated",
            Self::Incomplete => "incomplete",
            Self::Unsigned => "unsigned",
            Self::CannotCheck => "cannot check",
            Self::Intact => "intact",
        }
    }
}

/// One thing that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Of which kind.
    pub outcome: Outcome,
    /// The path in the ledger.
    pub place: String,
    /// The chain and entry, or the row, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// What does not fit.
    pub what: String,
}

/// A chain's length and tail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainEnd {
    /// The chain.
    pub chain: String,
    /// Its entries, when verify began: what came later was not looked at.
    pub entries: u64,
    /// Digest of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<Digest>,
    /// It has grown since.
    #[serde(skip_serializing_if = "crate::entry::is_false")]
    pub grew: bool,
}

/// A signature that stands in the ledger and fits its index entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signed {
    /// The index entry.
    pub seq: u64,
    /// The key that it was made with.
    pub public_key: PublicKey,
    /// Whether it is the key that verify was given; without one nobody knows whose it is.
    pub trusted: bool,
}

/// What was checked, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The worst of the findings.
    pub outcome: Outcome,
    /// Everything that does not fit.
    pub findings: Vec<Finding>,
    /// The chains.
    pub chains: Vec<ChainEnd>,
    /// Entries read.
    pub entries: u64,
    /// Data files read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
    /// Objects read.
    pub objects: u64,
    /// Signatures that fit their index entries.
    pub signatures: u64,
    /// The newest of them; with a key that verify was given, the newest by that key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
    /// The index entries whose digests the kept heads are, in the order in which they were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heads: Vec<u64>,
    /// What was erased and what expired, as the control chain says.
    pub gone: Gone,
    /// Of an export: what was left behind, and whether the rest is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<ExportCheck>,
    /// The newest entry lies in the future of this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Ahead>,
    /// What cannot be excluded whatever the outcome.
    pub not_excluded: String,
}

/// An entry that is newer than now: its writer's clock was ahead, or this machine's is behind. No alteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ahead {
    /// The entry.
    pub place: String,
    /// Its time; no later entry is older.
    pub at: Timestamp,
    /// What this machine's clock says.
    pub now: Timestamp,
}

impl Ahead {
    /// The newest entry, if it is; `None` in a simulated ledger.
    pub(crate) fn of(ledger: &Ledger, at: Timestamp, place: String) -> Option<Self> {
        let now = ledger.system_now()?;
        (at.0 > now.0.saturating_add(APART_MS)).then_some(Self { place, at, now })
    }
}

impl std::fmt::Display for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "The newest entry, {}, is of {}, and this machine's clock says {}: one of the two clocks is wrong. No later entry \
             has an earlier time, so days close by that clock.",
            self.place, self.at, self.now
        )
    }
}

/// Clocks may be apart by so many milliseconds before it is said.
const APART_MS: i64 = 5 * 60 * 1000;

/// Said by every verification as long as no head is kept elsewhere and no signature is held against a key.
pub const NOT_EXCLUDED: &str = "Without a head that is kept elsewhere it cannot be excluded that whole entries at the \
     end of a chain were removed or written anew.";

/// What verify is given beside the ledger.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Heads that were kept elsewhere: each has to stand in the index.
    pub heads: Vec<KeptHead>,
    /// The keys with one of which the newest index entry has to be signed: several where a key gave way to another.
    pub keys: Vec<PublicKey>,
    /// Of an export: only what was exported counts, and what was left behind is no finding.
    pub exported: bool,
}

/// How far verify has come.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// What is read next.
    pub path: &'a str,
    /// Entries that were read.
    pub done: u64,
    /// Entries that there are. Those whose rows are added up again count twice.
    pub total: u64,
}

struct Verifier<'a> {
    ledger: &'a Ledger,
    /// The store under it.
    store: Arc<lenient::Lenient>,
    /// The latest time of an entry, and the entry.
    newest: Option<(Timestamp, String)>,
    asked: &'a Asked,
    each: &'a mut dyn FnMut(Step<'_>),
    done: u64,
    total: u64,
    report: Verification,
    control: control::Seen,
    references: references::References,
    superseded: Superseded,
    /// What is known of the export that is verified; `None`: it is a ledger, or what the export holds is not known.
    export: Option<export::Export>,
    /// Files that control entries supersede, and that no chunk has named so far.
    unnamed: HashSet<String>,
    /// Objects that were looked at.
    objects: HashSet<Digest>,
    /// What is computed again of the newest index entry.
    recount: Option<recount::Recount>,
    heads: heads::Heads,
    /// Day files that were read: several index entries name one.
    day_files: HashMap<String, Digest>,
}

/// Checks a ledger. `each` is told everything before it is read, for a progress bar.
///
/// # Errors
/// The store failed.
pub fn verify(ledger: &Ledger, each: &mut dyn FnMut(Step<'_>)) -> Result<Verification, LedgerError> {
    verify_with(ledger, &Asked::default(), each)
}

/// The same with heads that were kept elsewhere, and a key that the newest head has to be signed with.
///
/// # Errors
/// The store failed.
pub fn verify_with(
    ledger: &Ledger,
    asked: &Asked,
    each: &mut dyn FnMut(Step<'_>),
) -> Result<Verification, LedgerError> {
    verify_found(ledger, Vec::new(), asked, each)
}

/// The same of a ledger of which the files at its root may be broken.
///
/// # Errors
/// The store failed.
pub fn verify_opened(
    opened: Opened,
    asked: &Asked,
    each: &mut dyn FnMut(Step<'_>),
) -> Result<Verification, LedgerError> {
    verify_found(&opened.ledger, opened.findings, asked, each)
}

fn verify_found(
    ledger: &Ledger,
    findings: Vec<Finding>,
    asked: &Asked,
    each: &mut dyn FnMut(Step<'_>),
) -> Result<Verification, LedgerError> {
    let report = Verification {
        outcome: Outcome::Intact,
        findings,
        chains: Vec::new(),
        entries: 0,
        files: 0,
        bytes: 0,
        rows: 0,
        objects: 0,
        signatures: 0,
        signed: None,
        heads: Vec::new(),
        gone: Gone::default(),
        export: None,
        ahead: None,
        not_excluded: NOT_EXCLUDED.to_owned(),
    };
    let store = Arc::new(lenient::Lenient::new(ledger.store().clone()));
    let ledger = &ledger.through(store.clone());
    let mut verifier = Verifier {
        ledger,
        store: store.clone(),
        newest: None,
        asked,
        each,
        done: 0,
        total: 0,
        report,
        control: control::Seen::default(),
        references: references::References::default(),
        superseded: Superseded::default(),
        export: None,
        unnamed: HashSet::new(),
        objects: HashSet::new(),
        recount: None,
        heads: heads::Heads::new(asked.heads.len()),
        day_files: HashMap::new(),
    };
    verifier.run()?;
    let mut report = verifier.report;
    store.say(&mut report.findings);
    report.outcome = report.findings.iter().map(|f| f.outcome).min().unwrap_or(Outcome::Intact);
    Ok(report)
}

impl Verifier<'_> {
    /// The tails are fixed in an order in which nothing that one chain names of another is behind the other's tail: the
    /// index first, then the control chain, then the partitions. What a partition names of the control chain beyond its
    /// fixed tail came meanwhile, and is looked up.
    fn run(&mut self) -> Result<(), LedgerError> {
        self.description()?;
        let index = self.index_bound()?;
        self.export_begins(index)?;
        let control = self.bound(&names::Chain::Control)?;
        self.total = length(index).saturating_add(length(control));
        self.control_chain(control)?;
        let partitions = self.partition_bounds()?;
        let entries = partitions.iter().map(|(_, _, bound)| length(*bound));
        self.total = entries.fold(self.total, u64::saturating_add);
        self.index_chain(index)?;
        for (source, partition, bound) in partitions {
            self.partition(&source, partition, bound)?;
        }
        self.later_partitions()?;
        self.foreign_chains()?;
        self.left_over()?;
        self.erasures();
        self.recounted()?;
        self.heads_found()?;
        self.grown()?;
        self.store.say(&mut self.report.findings);
        self.export_ends()?;
        self.report.ahead = self.newest.take().and_then(|(at, place)| Ahead::of(self.ledger, at, place));
        Ok(())
    }

    /// `ledger.json` is written once, and byte for byte as it is written.
    fn description(&mut self) -> Result<(), LedgerError> {
        let meta = serde_json_canonicalizer::to_vec(self.ledger.meta())
            .map_err(|e| LedgerError::unreadable(names::META, e))?;
        let there = self.ledger.store().get(names::META)?;
        let said = self.report.findings.iter().any(|finding| finding.place == names::META);
        if !said && there.is_some_and(|bytes| *bytes != *meta) {
            self.find(Outcome::Altered, names::META, None, "it is not written as a ledger writes it");
        }
        Ok(())
    }

    fn find(&mut self, outcome: Outcome, place: &str, record: Option<String>, what: impl Into<String>) {
        self.report.findings.push(Finding { outcome, place: place.to_owned(), record, what: what.into() });
    }

    /// Something that the record names is not there.
    fn missing(&mut self, place: &str, record: Option<String>, what: &str) {
        self.find(Outcome::Incomplete, place, record, what);
    }

    /// Sorts an error of reading into a finding.
    ///
    /// # Errors
    /// The store failed: that is no finding about the record.
    fn find_error(
        &mut self,
        place: &str,
        record: Option<String>,
        error: LedgerError,
    ) -> Result<(), LedgerError> {
        match error {
            LedgerError::Altered { place, what } => self.find(Outcome::Altered, &place, record, what),
            LedgerError::Missing { place } | LedgerError::LeftBehind { place, .. } => {
                self.missing(&place, record, "it is missing")
            }
            LedgerError::Store(error) => return Err(error.into()),
            LedgerError::Entry { ref place, .. } => {
                let place = place.clone();
                self.find(Outcome::CannotCheck, &place, record, error.to_string());
            }
            LedgerError::Unreadable { place, what } => self.find(Outcome::CannotCheck, &place, record, what),
            other => self.find(Outcome::CannotCheck, place, record, other.to_string()),
        }
        Ok(())
    }

    /// Tells what is read next.
    fn tell(&mut self, path: &str) {
        (self.each)(Step { path, done: self.done.min(self.total), total: self.total });
    }
}

/// How many entries a chain with this last one has.
fn length(bound: Option<u64>) -> u64 {
    bound.map_or(0, |last| last.saturating_add(1))
}
