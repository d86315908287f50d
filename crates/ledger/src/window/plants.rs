//! Calls that were committed to the control chain before they were produced.

use lastcall_compare::{Category, Severity};
use lastcall_contract::Digest;
use lastcall_decision::{CheckResult, Expectation, Problem, ReasonCode};
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;
use crate::state::Plant;
use crate::window::problem_of;

/// What a planted fault has to come back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Category.
    pub category: Category,
    /// Severity.
    pub severity: Severity,
}

/// One call of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlantedCall {
    /// Its id.
    pub call_id: String,
    /// What is expected; absent: a synthetic call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

/// The object that a `plant` entry names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlantList {
    /// The calls.
    pub calls: Vec<PlantedCall>,
}

impl PlantList {
    /// Reads the list that an entry names.
    ///
    /// # Errors
    /// A problem that makes the verdict ERROR: the list is gone, altered or no list.
    pub fn read(ledger: &Ledger, plant: &Plant) -> Result<Self, Problem> {
        let bytes = ledger.object(&plant.list).map_err(|e| problem_of(&e))?;
        let list: Self = serde_json::from_slice(&bytes).map_err(|e| Problem {
            result: CheckResult::Error,
            reason: ReasonCode::RecordIncomplete,
            text: format!("The list of planted calls of control entry {} cannot be read: {e}.", plant.seq),
            next: Some("lastcall ledger verify DIR".to_owned()),
        })?;
        Ok(list)
    }

    /// What a tally has to look for; `committed` is the entry's sequence number.
    pub fn expectations(self, committed: u64) -> impl Iterator<Item = Expectation> {
        self.calls.into_iter().map(move |c| Expectation {
            committed,
            call_key: call_key(&c.call_id),
            expect: c.expect.map(|e| (e.category, e.severity)),
        })
    }
}

/// First 16 bytes of SHA-256 over the call id.
pub fn call_key(call_id: &str) -> [u8; 16] {
    let digest = Digest::of(call_id.as_bytes());
    let hex = digest.hex();
    std::array::from_fn(|i| {
        hex.get(2 * i..2 * i + 2).and_then(|h| u8::from_str_radix(h, 16).ok()).unwrap_or(0)
    })
}
