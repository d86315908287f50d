//! What a burn-in over a trial's days would have said: the rule's own checks, asked in the conditional.

use lastcall_decision::{CeilingBasis, CheckResult, Judged, Plan, ScoredDay, five_checks};
use lastcall_event::Day;

use crate::trial::{TryBurnIn, TryCheck, TryDay, TryScoredDay};

/// Holds the days of a trial against a plan, as if it had been registered before the first of them. `days` ascend; a
/// day between them without a call is a silent day, and days after the plan's `max_scored_days`-th are not scored.
pub fn burn_in(plan: &Plan, days: &[TryDay]) -> TryBurnIn {
    let mut out = TryBurnIn {
        tier: plan.tier.as_str().to_owned(),
        ceiling: plan.ceiling.percent(),
        min_calls: plan.min_calls,
        ..TryBurnIn::default()
    };
    let Some(first) = days.first() else {
        out.says = "These calls carry no time, so nothing can be said of days.".to_owned();
        return out;
    };
    let scored = scored_days(plan, first.day, days);
    let judged = Judged { plan, days: &scored, scored_from: first.day };
    out.compared = judged.compared();
    let against = |d: &ScoredDay| match plan.ceiling_basis {
        CeilingBasis::Day => d.n,
        CeilingBasis::Window => judged.compared(),
    };
    out.days = scored
        .iter()
        .map(|d| TryScoredDay {
            day: d.day,
            compared: d.n,
            disagreed: d.k,
            below: (d.n > 0).then(|| plan.ceiling.exceeds(d.k, against(d))),
        })
        .collect();
    let checks = five_checks(&judged);
    let with = |result: CheckResult| -> Vec<&str> {
        checks.iter().filter(|c| c.result == result).map(|c| c.id.as_str()).collect()
    };
    let (failed, passed) = (with(CheckResult::Fail), with(CheckResult::Pass));
    let lacked: Vec<&str> = checks
        .iter()
        .map(|c| c.id.as_str())
        .filter(|id| !failed.contains(id) && !passed.contains(id))
        .collect();
    let last = scored.last().map_or(first.day, |d| d.day);
    let window = format!("A {} burn-in from {} to {last}", out.tier, first.day);
    out.says = if !failed.is_empty() {
        format!("{window} would have failed: {}.", failed.join(", "))
    } else if !lacked.is_empty() {
        format!("{window} would have lacked evidence: {}.", lacked.join(", "))
    } else {
        format!("{window} would have passed its checks. That is no verdict: nothing was fixed beforehand.")
    };
    if let Some(after) = days.iter().rev().find(|d| d.day > last) {
        out.says.push_str(&format!(
            " It scores {} days, so nothing up to {} counts.",
            scored.len(),
            after.day
        ));
    }
    let silent = scored.iter().filter(|d| d.n == 0).count();
    out.checks = checks
        .into_iter()
        .map(|mut c| {
            if c.id == "days" && silent > 0 {
                // every day of a trial is closed; what may lack is calls on it
                c.value = format!("{} of {} days with a call", scored.len() - silent, scored.len());
            }
            c
        })
        .map(|c| TryCheck {
            would_have: match c.result {
                CheckResult::Pass => "passed",
                CheckResult::Fail => "failed",
                CheckResult::Insufficient | CheckResult::Error | CheckResult::Unknown => "lacked",
            }
            .to_owned(),
            id: c.id,
            value: c.value,
            threshold: c.threshold,
            text: c.text,
        })
        .collect();
    out
}

fn scored_days(plan: &Plan, from: Day, days: &[TryDay]) -> Vec<ScoredDay> {
    let mut out = Vec::new();
    let mut next = days.iter().peekable();
    let mut day = from;
    while next.peek().is_some() && out.len() < plan.max_scored_days as usize {
        let here = next.next_if(|d| d.day == day);
        out.push(ScoredDay {
            day,
            n: here.map_or(0, |d| d.compared),
            k: here.map_or(0, |d| d.disagreed),
            u: here.map_or(0, |d| d.unresolved),
            blocks: here.map_or(0, |d| d.blocks),
        });
        day = day.plus(1);
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const FROM: Day = Day(20_605); // 2026-06-01

    fn plan(tier: &str) -> Plan {
        Plan::parse(&format!("burn_in: {{tier: {tier}, profile: article}}"), "p.yaml").unwrap()
    }

    fn day(offset: i32, compared: u64, disagreed: u64, blocks: u64) -> TryDay {
        TryDay { day: FROM.plus(offset), compared, disagreed, refused: blocks, blocks, unresolved: 0 }
    }

    #[test]
    fn the_conditional_of_each_answer() {
        // T1: B 2 %, 5 counted days, 400 calls
        let clean: Vec<TryDay> = (0..5).map(|i| day(i, 100, 0, 0)).collect();
        let said = burn_in(&plan("T1"), &clean);
        assert!(said.says.contains("would have passed"), "{}", said.says);
        assert!(said.checks.iter().all(|c| c.would_have == "passed"), "{said:?}");

        let mut broken = clean.clone();
        broken[4] = day(4, 100, 2, 1);
        let said = burn_in(&plan("T1"), &broken);
        assert!(said.says.contains("would have failed: ceiling, final_block_free, decay"), "{}", said.says);
        assert_eq!(said.days.iter().map(|d| d.below).collect::<Vec<_>>()[3..], [Some(true), Some(false)]);

        let said = burn_in(&plan("T1"), &clean[..3]);
        assert!(said.says.contains("would have lacked evidence: min_calls, days"), "{}", said.says);
        assert!(burn_in(&plan("T1"), &[]).says.contains("no time"));
    }

    #[test]
    fn holes_are_silent_days_and_the_window_ends() {
        let said = burn_in(&plan("T1"), &[day(0, 300, 0, 0), day(2, 300, 0, 0)]);
        assert_eq!(said.days.iter().map(|d| d.below).collect::<Vec<_>>(), [Some(true), None, Some(true)]);
        assert!(said.says.contains("would have lacked evidence"), "{}", said.says);
        let days = said.checks.iter().find(|c| c.id == "days").unwrap();
        assert_eq!((days.would_have.as_str(), days.value.as_str()), ("lacked", "2 of 3 days with a call"));
        // T1 scores at most 28 days; a clock that is far off makes no list of a million days
        let said = burn_in(&plan("T1"), &[day(0, 300, 0, 0), day(1_000_000, 300, 300, 300)]);
        assert_eq!(said.days.len(), 28);
        assert_eq!(said.compared, 300);
        assert!(said.says.contains("It scores 28 days"), "{}", said.says);
    }
}
