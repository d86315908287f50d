//! What demands a major beyond the changes themselves, and what only the owner can answer (**testing**, change table).

use serde_json::Value;

use super::words::dotted;
use crate::change::{Change, ChangeKind as Kind, Side};
use crate::class::Class;
use crate::report::ToolFacts;

/// Domains in which a risky change moves money or rights.
const MONEY: [&str; 8] =
    ["payments", "payment", "refunds", "billing", "funds", "money", "orders", "invoices"];
const RIGHTS: [&str; 6] = ["permissions", "permission", "security", "access", "policies", "identity"];
const MAX_QUESTIONS: usize = 12;

/// Why a major is demanded of a change that is at least high risk.
pub(super) fn major(class: Class, old: &ToolFacts, new: &ToolFacts) -> Vec<String> {
    if class < Class::HighRisk {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut consumers: Vec<&str> = old.consumers.iter().chain(&new.consumers).map(String::as_str).collect();
    consumers.sort_unstable();
    consumers.dedup();
    if consumers.len() > 1 {
        out.push(format!("{} agents share the tool: {}", consumers.len(), consumers.join(", ")));
    }
    for domain in old.domains.iter().chain(&new.domains) {
        let word = domain.to_lowercase();
        let reason = if MONEY.contains(&word.as_str()) {
            format!("the tool moves funds (`{domain}`)")
        } else if RIGHTS.contains(&word.as_str()) {
            format!("the tool touches permissions (`{domain}`)")
        } else {
            continue;
        };
        if !out.contains(&reason) {
            out.push(reason);
        }
    }
    if old.historical_sessions || new.historical_sessions {
        out.push("sessions that still hold calls of the old contract may come back".to_owned());
    }
    out
}

/// Semantics under the same name: a machine sees the words change, not the meaning.
pub(super) fn questions(changes: &[Change]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for change in changes {
        let noun = if change.side == Side::Output { "result field" } else { "argument" };
        let it = format!("the {noun} `{}`", dotted(&change.pointer));
        let whole = change.pointer.is_empty() || change.side == Side::Definition;
        let question = match change.kind {
            Kind::DescriptionChanged if !reworded(change) => continue,
            Kind::DescriptionChanged if whole => {
                "Does the tool still do the same? Its description changed.".to_owned()
            }
            Kind::DescriptionChanged => format!("Does {it} still mean the same? Its description changed."),
            Kind::TypeChanged => format!("Does {it} still mean the same? Its type changed."),
            Kind::UnitChanged => format!("Do callers know that the unit of {it} changed?"),
            Kind::DefaultRemoved | Kind::DefaultChanged | Kind::DefaultAdded => {
                format!("What does a call without {it} mean now? Its default changed.")
            }
            Kind::PropertyDropped => format!("Does the tool still use {it}? It is no longer declared."),
            Kind::FormatChanged | Kind::PatternChanged => {
                format!("Does {it} still name the same thing? What it may look like changed.")
            }
            _ => continue,
        };
        if !out.contains(&question) && out.len() < MAX_QUESTIONS {
            out.push(question);
        }
    }
    out
}

/// More than spaces, case and punctuation changed.
fn reworded(change: &Change) -> bool {
    let words = |v: &Option<Value>| -> Vec<String> {
        let text = v.as_ref().and_then(Value::as_str).unwrap_or_default();
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
        words.map(str::to_lowercase).collect()
    };
    change.old.is_some() && words(&change.old) != words(&change.new)
}
