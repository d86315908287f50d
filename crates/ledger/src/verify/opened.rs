//! Opening a ledger of which `ledger.json` or `export.json` cannot be read any more, so that the rest can be checked.

use std::sync::Arc;

use super::lenient::Lenient;
use super::{Finding, Outcome};
use crate::chain;
use crate::control::Control;
use crate::error::LedgerError;
use crate::export::{self, MARK, Mark};
use crate::ledger::{FORMAT, Ledger, LedgerClock, Meta};
use crate::names::{self, Chain};
use crate::store::Store;

/// A ledger that is to be verified.
pub struct Opened {
    /// The ledger.
    pub ledger: Ledger,
    /// What was found of the files at its root.
    pub(super) findings: Vec<Finding>,
    /// The id that the control chain's genesis states.
    pub genesis: Option<String>,
}

impl Opened {
    /// Opens what stands in a store, whatever became of the files at its root.
    ///
    /// # Errors
    /// It is no ledger, a newer build wrote it, or the store failed.
    pub fn in_store(store: Arc<dyn Store>, place: &str) -> Result<Self, LedgerError> {
        let genesis = genesis(store.clone());
        let id = genesis.as_ref().map(|meta| meta.id.clone());
        let error = match Ledger::open_in(store.clone(), place) {
            Ok(ledger) => return Ok(Self { ledger, findings: Vec::new(), genesis: id }),
            Err(error) => error,
        };
        // Without a control chain it may be anything.
        let Some(stated) = genesis else { return Err(error) };
        let mut findings = Vec::new();
        let lenient = Lenient::new(store.clone());
        let meta = match lenient.get(names::META)? {
            // A folder without it is no ledger: an export that was stopped, say.
            None if matches!(error, LedgerError::NotALedger(_)) => return Err(error),
            None => stated,
            Some(bytes) => match (serde_json::from_slice::<Meta>(&bytes), newer(&bytes)) {
                (_, true) => return Err(error),
                (Ok(meta), _) if meta.format == FORMAT => meta,
                (Ok(_), _) => {
                    findings.push(finding(
                        Outcome::Altered,
                        names::META,
                        "no lastcall wrote a ledger of that format",
                    ));
                    stated
                }
                (Err(e), _) => {
                    findings.push(cut_or_altered(names::META, &e));
                    stated
                }
            },
        };
        let mut mark = match export::read_mark(&lenient) {
            Ok(mark) => mark,
            Err(LedgerError::Altered { what, .. }) => {
                findings.push(finding(Outcome::Altered, MARK, &what));
                Some(Mark::unknown())
            }
            Err(error) => return Err(error),
        };
        lenient.say(&mut findings);
        if findings.iter().any(|finding| finding.place == MARK) {
            mark = Some(Mark::unknown());
        }
        if findings.is_empty() {
            return Err(error);
        }
        Ok(Self { ledger: Ledger::with(store, meta, place, mark)?, findings, genesis: id })
    }
}

fn finding(outcome: Outcome, place: &str, what: &str) -> Finding {
    Finding { outcome, place: place.to_owned(), record: None, what: what.to_owned() }
}

fn cut_or_altered(place: &str, error: &serde_json::Error) -> Finding {
    match error.is_eof() {
        true => finding(Outcome::Truncated, place, "it is cut off"),
        false => finding(Outcome::Altered, place, &format!("it cannot be read any more: {error}")),
    }
}

/// Whether a newer build wrote a ledger's description.
fn newer(bytes: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    serde_json::from_slice::<Format>(bytes).is_ok_and(|said| said.format > FORMAT)
}

/// What the control chain's genesis states of the ledger.
fn genesis(store: Arc<dyn Store>) -> Option<Meta> {
    let read = chain::read_entry::<Control>(&*store, &Chain::Control, 0).ok()??;
    match read.entry.body {
        Control::Genesis { ledger_id, clock } => Some(Meta { format: FORMAT, id: ledger_id, clock }),
        _ => Some(Meta { format: FORMAT, id: String::new(), clock: LedgerClock::System }),
    }
}
