//! What is wrong with a record, in a verdict's words; and what verdicts say of pairs and registrations.

use lastcall_decision::{
    CheckResult, EarlierWindow, PairFacts, Plan, PlanFacts, Problem, Profile, ReasonCode, RegistrationFacts,
};

use crate::control::Pair;
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::state::{ControlState, Registration};

/// A ledger's error as a problem of a verdict.
pub fn problem_of(error: &LedgerError) -> Problem {
    let reason = match error.is_altered() {
        true => ReasonCode::RecordAltered,
        false => ReasonCode::RecordIncomplete,
    };
    let said = error.to_string();
    let mut chars = said.chars();
    let mut text: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    if !text.ends_with('.') {
        text.push('.');
    }
    Problem { result: CheckResult::Error, reason, text, next: Some("lastcall ledger verify DIR".to_owned()) }
}

pub(super) fn plan_of(ledger: &Ledger, r: &Registration) -> Result<PlanFacts, Problem> {
    let bytes = ledger.object(&r.plan).map_err(|e| problem_of(&e))?;
    let values = Plan::from_object(&bytes).map_err(|e| Problem {
        result: CheckResult::Error,
        reason: ReasonCode::PlanUnreadable,
        text: format!("The plan of registration {} cannot be read by this build: {e}.", r.seq),
        next: Some("take the lastcall that registered it, or register again".to_owned()),
    })?;
    if values.profile != Profile::Article {
        return Err(Problem {
            result: CheckResult::Error,
            reason: ReasonCode::PlanUnreadable,
            text: format!("The plan of registration {} asks for a profile that this build lacks.", r.seq),
            next: Some(
                "take the lastcall that registered it, or register a plan with `profile: article`".to_owned(),
            ),
        });
    }
    Ok(PlanFacts { digest: r.plan.clone(), values })
}

/// A pair as verdicts show it.
pub fn pair_facts(pair: &Pair) -> PairFacts {
    PairFacts {
        current: pair.current.clone(),
        current_digest: pair.current_digest.clone(),
        candidate: pair.candidate.clone(),
        candidate_digest: pair.candidate_digest.clone(),
        config_digest: pair.config_digest.clone(),
        epoch: pair.epoch.clone(),
        comparator: pair.comparator,
    }
}

pub(super) fn registration_facts(r: &Registration) -> RegistrationFacts {
    RegistrationFacts {
        seq: r.seq,
        at: r.at,
        by: r.by.clone(),
        scored_from: r.scored_from,
        sources: r.sources.clone(),
        cohort: r.cohort.clone(),
        ended: r.end.as_ref().map(|e| e.reason.clone()),
    }
}

pub(super) fn earlier(control: &ControlState, tool: &str, now: Option<&Registration>) -> Vec<EarlierWindow> {
    let before = |r: &&Registration| r.pair.tool_id == tool && now.is_some_and(|n| r.seq < n.seq);
    let window = |r: &Registration| EarlierWindow {
        registration: r.seq,
        candidate: r.pair.candidate.clone(),
        scored_from: r.scored_from,
        plan: r.plan.clone(),
        ended: r.end.as_ref().map_or_else(|| "not ended".to_owned(), |e| e.reason.clone()),
        verdict: control.verdicts.iter().rev().find(|v| v.registration == r.seq).map(|v| v.verdict.clone()),
    };
    control.registrations.iter().filter(before).map(window).collect()
}
