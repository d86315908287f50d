//! Who compares: the pairs of a control state, prepared once, behind a trait that the simulation can stand in for.

use ahash::AHashMap as HashMap;

use lastcall_compare::{Comparison, PairConfig, PrepareError, PreparedPair, compare_parsed, parse_call};
use lastcall_contract::{Contract, Definition, DefinitionError, Digest, Pick};
use lastcall_event::CallRecord;
use lastcall_event::source::{Nobody, Resolve};
use lastcall_ledger::control::Pair;
use lastcall_ledger::{Ledger, LedgerError};

use crate::mapped::Names;

/// What one pair says of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Index into [`Judge::pairs`].
    pub pair: usize,
    /// What it says.
    pub comparison: Comparison,
}

/// Compares calls under the pairs of one configuration. Pure and deterministic.
pub trait Judge: Send {
    /// The pairs, in an order that does not change.
    fn pairs(&self) -> &[Pair];

    /// Adds what each pair of the call's tool and contract says.
    fn judge(&self, call: &CallRecord<'_>, out: &mut Vec<Judged>);

    /// Knows the tools of the pairs by name, for records that name no contract.
    fn tools(&self) -> &dyn Resolve {
        &Nobody
    }

    /// Whether a digest that a call states is that of the pair's current contract.
    fn is_current(&self, pair: usize, stated: &str) -> bool {
        self.pairs().get(pair).is_some_and(|p| p.current_digest.as_str() == stated)
    }
}

/// Several recorders share one judge.
impl<J: Judge + Sync> Judge for std::sync::Arc<J> {
    fn pairs(&self) -> &[Pair] {
        (**self).pairs()
    }

    fn judge(&self, call: &CallRecord<'_>, out: &mut Vec<Judged>) {
        (**self).judge(call, out);
    }

    fn tools(&self) -> &dyn Resolve {
        (**self).tools()
    }

    fn is_current(&self, pair: usize, stated: &str) -> bool {
        (**self).is_current(pair, stated)
    }
}

/// Why a pair of the control chain cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// An object is missing or altered.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A definition in the ledger is not one.
    #[error("{contract} in the ledger: {error}")]
    Definition {
        /// Contract id.
        contract: String,
        /// What is wrong.
        error: Box<DefinitionError>,
    },
    /// An object is not the text that it should be.
    #[error("{what} of {contract} in the ledger cannot be read: {message}")]
    Object {
        /// Contract id.
        contract: String,
        /// Which object.
        what: &'static str,
        /// Why.
        message: String,
    },
    /// It cannot be prepared.
    #[error("{current} against {candidate}: {error}")]
    Prepare {
        /// Current contract id.
        current: String,
        /// Candidate contract id.
        candidate: String,
        /// Why.
        error: PrepareError,
    },
    /// The epoch is not the one that definitions and configuration make.
    #[error(
        "{current} against {candidate}: the control chain's epoch is not that of the definitions and the configuration \
         in the ledger; observe the pair again (`lastcall plan observe`)"
    )]
    Epoch {
        /// Current contract id.
        current: String,
        /// Candidate contract id.
        candidate: String,
    },
    /// Another comparator fixed the epoch.
    #[error(
        "{current} against {candidate} was fixed with comparator version {theirs}, this build has {ours}: use that \
         build, or end the window (`lastcall plan`) and observe the pair again"
    )]
    Comparator {
        /// Current contract id.
        current: String,
        /// Candidate contract id.
        candidate: String,
        /// The epoch's version.
        theirs: u32,
        /// This build's.
        ours: u32,
    },
}

/// The pairs of a control state, prepared.
pub struct Pairs {
    pairs: Vec<Pair>,
    prepared: Vec<PreparedPair>,
    digests: Vec<Digest>,
    by_tool: HashMap<String, Vec<usize>>,
    names: Names,
}

impl Pairs {
    /// Reads definitions and configurations from the ledger and prepares every pair.
    pub fn prepare(ledger: &Ledger, pairs: Vec<Pair>) -> Result<Self, PairError> {
        let mut prepared = Vec::with_capacity(pairs.len());
        let mut digests = Vec::with_capacity(pairs.len());
        let mut by_tool: HashMap<String, Vec<usize>> = HashMap::new();
        let mut known = Names::default();
        for (index, pair) in pairs.iter().enumerate() {
            let names = || (pair.current.clone(), pair.candidate.clone());
            if pair.comparator != lastcall_compare::COMPARATOR_VERSION {
                let (current, candidate) = names();
                let (theirs, ours) = (pair.comparator, lastcall_compare::COMPARATOR_VERSION);
                return Err(PairError::Comparator { current, candidate, theirs, ours });
            }
            let current = contract(ledger, &pair.current, &pair.current_digest)?;
            let candidate = contract(ledger, &pair.candidate, &pair.candidate_digest)?;
            let bytes = ledger.object(&pair.config_digest)?;
            let config: PairConfig = serde_json::from_slice(&bytes).map_err(|e| PairError::Object {
                contract: pair.candidate.clone(),
                what: "the pair configuration",
                message: e.to_string(),
            })?;
            digests.push(current.digest.clone());
            known.add(&current.definition.name, &pair.tool_id, &pair.current);
            let ready = PreparedPair::new(&current, &candidate, &config).map_err(|error| {
                let (current, candidate) = names();
                PairError::Prepare { current, candidate, error }
            })?;
            if *ready.epoch() != pair.epoch {
                let (current, candidate) = names();
                return Err(PairError::Epoch { current, candidate });
            }
            prepared.push(ready);
            by_tool.entry(pair.tool_id.clone()).or_default().push(index);
        }
        Ok(Self { pairs, prepared, digests, by_tool, names: known })
    }
}

fn contract(ledger: &Ledger, id: &str, digest: &Digest) -> Result<Contract, PairError> {
    let bytes = ledger.object(digest)?;
    let text = String::from_utf8(bytes).map_err(|e| PairError::Object {
        contract: id.to_owned(),
        what: "the definition",
        message: e.to_string(),
    })?;
    // A bare schema has no name: the tool's id is its name.
    let named = Pick { name: Some(id.split('@').next().unwrap_or(id)), source: None };
    let definition = Definition::from_text(id, &text, Pick::default())
        .or_else(|error| Definition::from_text(id, &text, named).map_err(|_| error))
        .map_err(|error| PairError::Definition { contract: id.to_owned(), error: Box::new(error) })?;
    Ok(Contract::new(id, definition))
}

impl Judge for Pairs {
    fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    fn judge(&self, call: &CallRecord<'_>, out: &mut Vec<Judged>) {
        let Some(indices) = self.by_tool.get(&*call.tool_id) else { return };
        let mut parsed = None;
        for index in indices {
            let (Some(pair), Some(prepared)) = (self.pairs.get(*index), self.prepared.get(*index)) else {
                continue;
            };
            // A call under another contract says nothing about this pair.
            if call.contract_id.as_ref().is_some_and(|id| **id != *pair.current)
                && !call.contract_is_unknown()
            {
                continue;
            }
            let parsed = parsed.get_or_insert_with(|| parse_call(call));
            out.push(Judged { pair: *index, comparison: compare_parsed(prepared, call, parsed) });
        }
    }

    fn tools(&self) -> &dyn Resolve {
        &self.names
    }

    fn is_current(&self, pair: usize, stated: &str) -> bool {
        self.digests.get(pair).is_some_and(|d| d.as_str() == stated)
            || self.pairs.get(pair).is_some_and(|p| p.current_digest.as_str() == stated)
    }
}
