//! What a made call shows. Two independent validations and the comparator have to agree before a call is used.

use lastcall_compare::{Category, ComparisonResult, PairConfig, PreparedPair, compare};
use lastcall_contract::{Contract, validator_for};
use lastcall_event::{Preset, Record, decode};
use serde_json::{Value, json};

use super::make::Traffic;

/// Judges arguments for one pair.
pub struct Judge {
    pair: PreparedPair,
    current: jsonschema::Validator,
    candidate: jsonschema::Validator,
    output: Option<jsonschema::Validator>,
    tool_id: String,
}

impl Judge {
    /// Prepares the pair.
    pub fn new(traffic: &Traffic) -> anyhow::Result<Self> {
        let contract = |id: &str, definition: &lastcall_contract::Definition| {
            Contract::new(id.to_owned(), definition.clone())
        };
        let current = contract(&traffic.current_id, &traffic.current);
        let candidate = contract(&traffic.candidate_id, &traffic.candidate);
        let output = traffic.current.output_schema.as_ref();
        Ok(Self {
            pair: PreparedPair::new(&current, &candidate, &PairConfig::default())?,
            current: validator_for(&traffic.current.input_schema, traffic.current.draft)?,
            candidate: validator_for(&traffic.candidate.input_schema, traffic.candidate.draft)?,
            output: output.map(|schema| validator_for(schema, traffic.current.draft)).transpose()?,
            tool_id: traffic.tool_id.clone(),
        })
    }

    /// Both take it, and there is no difference, not even an info.
    pub fn agrees(&self, arguments: &Value) -> bool {
        self.current.is_valid(arguments)
            && self.candidate.is_valid(arguments)
            && self.compared(arguments) == Some((ComparisonResult::Agreed, Vec::new()))
    }

    /// Current takes it, and it shows this category: `alone`, or beside others.
    pub fn shows(&self, arguments: &Value, category: Category, alone: bool) -> bool {
        if !self.current.is_valid(arguments) {
            return false;
        }
        match self.compared(arguments) {
            Some((_, found)) => found.contains(&category) && (!alone || found.len() == 1),
            None => false,
        }
    }

    /// The candidate's schema takes it.
    pub fn candidate_accepts(&self, arguments: &Value) -> bool {
        self.candidate.is_valid(arguments)
    }

    /// Current's output schema takes it.
    pub fn output_accepts(&self, result: &Value) -> bool {
        self.output.as_ref().is_none_or(|schema| schema.is_valid(result))
    }

    /// The comparator's word on an executed call with these arguments.
    fn compared(&self, arguments: &Value) -> Option<(ComparisonResult, Vec<Category>)> {
        let event = json!({
            "type": "tool_call", "schema_version": 1, "call_id": "made", "ts": "2026-01-01T00:00:00Z",
            "tool_id": self.tool_id, "contract_id": self.pair.current_id(), "arguments": arguments,
            "outcome": {"status": "ok", "executed": true}
        })
        .to_string();
        let decoded = decode(event.as_bytes(), Preset::Native).ok()?;
        let Record::Call(call) = decoded.record else { return None };
        let comparison = compare(&self.pair, &call);
        Some((comparison.result, comparison.discrepancies.iter().map(|d| d.category).collect()))
    }
}
