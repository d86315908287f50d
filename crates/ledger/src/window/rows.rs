//! A row of results as a tally takes it.

use lastcall_compare::{Category, Severity};
use lastcall_decision::{Place, Row};

use crate::ledger::hex;
use crate::rows::ResultRow;

impl ResultRow {
    /// The categories and severities that it was found to differ in, sorted, each once.
    pub(crate) fn found(&self) -> Vec<(Category, Severity)> {
        let mut found: Vec<_> = self.discrepancies.iter().map(|d| (d.category, d.severity)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The row as a tally takes it.
    pub(crate) fn as_tally_row(&self, source: &str, control: u64, observed: bool) -> Row<'_> {
        Row {
            place: Place {
                source: source.to_owned(),
                partition: self.position.partition,
                offset: self.position.offset,
                index: self.position.index,
            },
            day: self.day,
            call_key: self.call_key,
            control,
            observed,
            result: self.result,
            reason: self.reason,
            severity: self.severity,
            refused: self.refused,
            fidelity: self.fidelity,
            evidence: self.evidence,
            discrepancies: &self.discrepancies,
            rules: &self.rules,
        }
    }

    /// The key of the call as text.
    pub(crate) fn key_text(&self) -> String {
        hex(&self.call_key)
    }
}
