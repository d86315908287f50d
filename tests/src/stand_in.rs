//! A comparator that says what a test wants it to say, and what ledgers are made of that are compared by it.

use lastcall_compare::{Category, Comparison, ComparisonResult, Discrepancy, Evidence, Severity};
use lastcall_contract::Digest;
use lastcall_event::CallRecord;
use lastcall_ledger::control::Pair;
use lastcall_ledger::entry::ControlRef;
use lastcall_ledger::state::ControlState;
use lastcall_record::{Config, Judge, Judged};

/// Says of a call what its function says of call and candidate.
pub struct StandIn {
    pairs: Vec<Pair>,
    says: fn(&CallRecord<'_>, &str) -> Comparison,
}

impl Judge for StandIn {
    fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    fn judge(&self, call: &CallRecord<'_>, out: &mut Vec<Judged>) {
        for (pair, p) in self.pairs.iter().enumerate() {
            if p.tool_id == *call.tool_id && call.contract_id.as_ref().is_none_or(|c| **c == *p.current) {
                out.push(Judged { pair, comparison: (self.says)(call, &p.candidate) });
            }
        }
    }
}

/// A recorder's configuration at a state of the control chain.
pub fn config(control: &ControlState, says: fn(&CallRecord<'_>, &str) -> Comparison) -> Config {
    let tail = control.tail().unwrap();
    let named = ControlRef { seq: tail.seq, digest: tail.digest };
    let judge = Box::new(StandIn { pairs: control.active_pairs(), says });
    Config { control: named, at: tail.at, judge, redactor: None }
}

/// The epoch of a pair of a tool with a candidate.
pub fn epoch_of(tool: &str, candidate: &str) -> Digest {
    Digest::of(format!("{tool} {candidate}").as_bytes())
}

/// A pair of a tool's first version with a candidate; every object it names is the same.
pub fn pair(tool: &str, candidate: &str, object: &Digest) -> Pair {
    Pair {
        current: format!("{tool}@v1"),
        current_digest: object.clone(),
        candidate_digest: object.clone(),
        config_digest: object.clone(),
        epoch: epoch_of(tool, candidate),
        comparator: 1,
        tool_id: tool.to_owned(),
        candidate: candidate.to_owned(),
    }
}

/// One difference.
pub fn discrepancy(category: Category, severity: Severity, refused: bool, field: &str) -> Discrepancy {
    Discrepancy {
        field: field.to_owned(),
        category,
        severity,
        refused,
        keyword: refused.then(|| "type".to_owned()),
        location: None,
        note: None,
    }
}

/// An agreement on this evidence.
pub fn agreement(arguments: bool, outcome: bool) -> Comparison {
    Comparison {
        result: ComparisonResult::Agreed,
        reason: None,
        discrepancies: Vec::new(),
        evidence: Evidence { validation: true, arguments, outcome },
        rules: Vec::new(),
        touched: Vec::new(),
        disagreed_at: Vec::new(),
    }
}
