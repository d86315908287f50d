//! The control chain as the recorders see it: sources, pairs, redactions. Read again every few seconds, and before a chunk
//! opens; whoever is behind catches up first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lastcall_event::Timestamp;
use lastcall_event::source::Decoder;
use lastcall_ledger::control::Pair;
use lastcall_ledger::entry::ControlRef;
use lastcall_ledger::redaction::Redaction;
use lastcall_ledger::state::{ControlState, SourceInfo};
use lastcall_ledger::{Ledger, LedgerError, names};
use lastcall_record::{Config, Judge as _, Pairs, RedactionKey, Redactor};

use super::Stop;

/// What the control chain said at one of its entries.
pub struct Configuration {
    control: ControlRef,
    at: Timestamp,
    pairs: Arc<Pairs>,
    sources: BTreeMap<String, SourceInfo>,
    redactions: BTreeMap<String, Redaction>,
}

impl Configuration {
    /// The control entry.
    pub fn control(&self) -> &ControlRef {
        &self.control
    }

    /// Its time.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// How many pairs are compared.
    pub fn pairs(&self) -> usize {
        self.pairs.pairs().len()
    }

    /// What of a source is not kept.
    pub fn redaction(&self, source: &str) -> Option<&Redaction> {
        self.redactions.get(source)
    }

    /// A registered source.
    pub fn source(&self, name: &str) -> Option<&SourceInfo> {
        self.sources.get(name)
    }

    /// All of them, by name.
    pub fn sources(&self) -> impl Iterator<Item = &SourceInfo> {
        self.sources.values()
    }
}

struct State {
    control: ControlState,
    active: Vec<Pair>,
    current: Arc<Configuration>,
}

/// Follows the control chain for all threads.
pub struct Follower {
    ledger: Ledger,
    key: Option<RedactionKey>,
    state: Mutex<State>,
}

impl Follower {
    /// Reads the control chain and prepares its pairs.
    ///
    /// # Errors
    /// The store, an object, a pair that this build cannot compare.
    pub fn start(ledger: &Ledger, key: Option<RedactionKey>) -> Result<Self, Stop> {
        let control = ledger.control_now()?;
        if let Some(key) = &key {
            ledger.check_redaction_key(&control, &key.fingerprint())?;
        }
        let active = control.active_pairs();
        let pairs = Arc::new(Pairs::prepare(ledger, active.clone())?);
        let current = Arc::new(snapshot(&control, pairs)?);
        Ok(Self { ledger: ledger.clone(), key, state: Mutex::new(State { control, active, current }) })
    }

    /// What is known now, without asking.
    pub fn now(&self) -> Arc<Configuration> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).current.clone()
    }

    /// Looks for new entries first.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn refresh(&self) -> Result<Arc<Configuration>, Stop> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ledger.follow_control(&mut state.control)? {
            let active = state.control.active_pairs();
            let pairs = if active == state.active {
                state.current.pairs.clone()
            } else {
                Arc::new(Pairs::prepare(&self.ledger, active.clone())?)
            };
            state.current = Arc::new(snapshot(&state.control, pairs)?);
            state.active = active;
        }
        Ok(state.current.clone())
    }

    /// Makes sure that an entry which a chain names is one of ours, catching up if it is newer.
    ///
    /// # Errors
    /// It is missing or another one.
    pub fn reach(&self, named: &ControlRef) -> Result<Arc<Configuration>, Stop> {
        let current = self.refresh()?;
        let place = || names::Chain::Control.entry_path(named.seq);
        if current.control.seq < named.seq {
            return Err(LedgerError::Missing { place: place() }.into());
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.ledger.check_control(&state.control, named)? {
            return Err(LedgerError::altered(&place(), "it is not the entry that the record names").into());
        }
        Ok(current)
    }

    /// What reads a source's messages, if they go through a map.
    ///
    /// # Errors
    /// The map is missing, altered, or none that this build can read.
    pub fn decoder(&self, source: &SourceInfo) -> Result<Option<Decoder>, Stop> {
        Ok(lastcall_record::decoder(&self.ledger, source)?)
    }

    /// The configuration of one source's recorders.
    ///
    /// # Errors
    /// Its redaction cannot be applied.
    pub fn config(&self, current: &Configuration, source: &SourceInfo) -> Result<Config, Stop> {
        let redactor = match (current.redactions.get(&source.name), &self.key) {
            (None, _) => None,
            (Some(redaction), Some(key)) => Redactor::new(redaction, source.preset, key.clone())?,
            (Some(_), None) => {
                return Err(Stop::Usage(format!(
                    "source `{}` has a redaction, and nothing of it is recorded without the key: name its file with \
                     --redaction-key or LASTCALL_REDACTION_KEY",
                    source.name
                )));
            }
        };
        Ok(Config {
            control: current.control.clone(),
            at: current.at,
            judge: Box::new(current.pairs.clone()),
            redactor,
        })
    }
}

fn snapshot(control: &ControlState, pairs: Arc<Pairs>) -> Result<Configuration, Stop> {
    let tail =
        control.tail().ok_or_else(|| LedgerError::Missing { place: names::Chain::Control.entry_path(0) })?;
    Ok(Configuration {
        control: ControlRef { seq: tail.seq, digest: tail.digest },
        at: tail.at,
        pairs,
        sources: control.sources.clone(),
        redactions: control.redactions.clone(),
    })
}
