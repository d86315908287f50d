//! The rule of profile `article`: five checks over the closed scored days (decision.md section 2). Counts only;
//! nothing is rounded before it is compared.

use lastcall_event::Day;

use crate::plan::{CeilingBasis, Plan};
use crate::ratio::{Ratio, grouped, percent_of};
use crate::reason::ReasonCode;
use crate::verdict::{Check, CheckResult};

/// One closed scored day as the rule sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoredDay {
    /// UTC day.
    pub day: Day,
    /// Compared calls.
    pub n: u64,
    /// Disagreements.
    pub k: u64,
    /// Unresolved calls.
    pub u: u64,
    /// Disagreements with a difference of severity block.
    pub blocks: u64,
}

/// The days that a rule judges, and where its window ends.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// Plan.
    pub plan: &'a Plan,
    /// Closed scored days, ascending, without holes.
    pub days: &'a [ScoredDay],
    /// First scored day.
    pub scored_from: Day,
}

/// The ids of the five checks, in their order.
pub const CHECK_IDS: [&str; 5] = ["ceiling", "min_calls", "final_block_free", "decay", "days"];

impl<'a> Judged<'a> {
    /// The last day that the plan scores.
    pub fn scored_to(&self) -> Day {
        self.scored_from.plus(days_i32(self.plan.max_scored_days) - 1)
    }

    /// The trailing counted days; fewer, if fewer are closed.
    pub fn counted(&self) -> &'a [ScoredDay] {
        last(self.days, self.plan.counted_days)
    }

    /// Compared calls of all closed scored days.
    pub fn compared(&self) -> u64 {
        self.days.iter().map(|d| d.n).sum()
    }

    /// The last closed day, or the day before the first.
    fn closed_through(&self) -> Day {
        self.days.last().map_or(self.scored_from.plus(-1), |d| d.day)
    }

    /// Whether `k` of day `d` is below `ceiling` in the plan's basis.
    fn below(&self, ceiling: Ratio, d: &ScoredDay) -> bool {
        match self.plan.ceiling_basis {
            CeilingBasis::Day => ceiling.exceeds(d.k, d.n),
            CeilingBasis::Window => ceiling.exceeds(d.k, self.compared()),
        }
    }

    /// What a day shows in the plan's basis.
    fn shown(&self, d: &ScoredDay) -> String {
        match self.plan.ceiling_basis {
            CeilingBasis::Day => {
                format!("{} on {} ({} of {})", percent_of(d.k, d.n), d.day, grouped(d.k), grouped(d.n))
            }
            CeilingBasis::Window => format!("{} on {}", grouped(d.k), d.day),
        }
    }

    fn threshold(&self, ceiling: Ratio) -> String {
        match self.plan.ceiling_basis {
            CeilingBasis::Day => format!("< {}", ceiling.percent()),
            CeilingBasis::Window => {
                let n = self.compared();
                format!("< {} ({} of {})", ceiling.of(n), ceiling.percent(), grouped(n))
            }
        }
    }

    /// When `day` leaves the last `width` closed days: how many more closed days, and up to which.
    fn leaves(&self, day: Day, width: u32) -> (i32, Day) {
        let gone = day.plus(days_i32(width));
        (gone.0.saturating_sub(self.closed_through().0), gone)
    }

    /// "… leaves the counted days after 4 more closed days, on 2026-06-12", or that the window ends before.
    fn next_after(&self, day: Day, width: u32, which: &str, condition: &str) -> String {
        let (more, gone) = self.leaves(day, width);
        if gone > self.scored_to() {
            return format!(
                "the window scores no day after {}, and {day} is among {which} until {}; mend the candidate and \
                 register again",
                self.scored_to(),
                gone.plus(-1)
            );
        }
        format!("{day} leaves {which} after {}, when {gone} is closed, {condition}", more_days(more))
    }

    /// The first day whose close could make every check pass, if every call agrees until then. `None`: not within
    /// the window, or no call has been compared from which a rate could be taken.
    pub fn earliest_ready(&self) -> Option<Day> {
        let closed = self.closed_through();
        let mut day = self.scored_from.plus(days_i32(self.plan.counted_days) - 1).max(closed);
        let bad = |d: &&ScoredDay| d.n == 0 || !self.below(self.plan.ceiling, d);
        if let Some(d) = self.counted().iter().rev().find(bad) {
            day = day.max(d.day.plus(days_i32(self.plan.counted_days)));
        }
        let decay = self.plan.decay_ceiling();
        let bad = |d: &&ScoredDay| d.n == 0 || !self.below(decay, d);
        if let Some(d) = last(self.days, self.plan.decay.days).iter().rev().find(bad) {
            day = day.max(d.day.plus(days_i32(self.plan.decay.days)));
        }
        if self.days.last().is_some_and(|d| d.blocks > 0 || d.n == 0) {
            day = day.max(closed.plus(1));
        }
        if self.compared() < self.plan.min_calls {
            day = day.max(closed.plus(i32::try_from(self.days_for_calls()?).ok()?));
        }
        (day <= self.scored_to()).then_some(day)
    }

    /// Days that the missing calls take at the present rate.
    fn days_for_calls(&self) -> Option<u64> {
        let (n, days) = (self.compared(), self.days.len() as u64);
        let missing = self.plan.min_calls.saturating_sub(n);
        (n > 0).then(|| {
            u64::try_from((u128::from(missing) * u128::from(days)).div_ceil(u128::from(n)))
                .unwrap_or(u64::MAX)
        })
    }
}

fn days_i32(days: u32) -> i32 {
    i32::try_from(days).unwrap_or(i32::MAX)
}

fn last<T>(all: &[T], width: u32) -> &[T] {
    let from = all.len().saturating_sub(width as usize);
    all.get(from..).unwrap_or_default()
}

fn more_days(n: i32) -> String {
    if n == 1 { "1 more closed day".to_owned() } else { format!("{n} more closed days") }
}

fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// The worst of these days: the largest k/n (k alone in basis window); the latest among equals.
fn worst<'d>(judged: &Judged<'_>, days: &'d [ScoredDay]) -> Option<&'d ScoredDay> {
    let by_day = judged.plan.ceiling_basis == CeilingBasis::Day;
    days.iter().filter(|d| d.n > 0).max_by(|a, b| {
        let cross = |x: &ScoredDay, y: &ScoredDay| u128::from(x.k) * if by_day { u128::from(y.n) } else { 1 };
        cross(a, b).cmp(&cross(b, a)).then(a.day.cmp(&b.day))
    })
}

/// Judges the closed scored days: `ceiling`, `min_calls`, `final_block_free`, `decay`, `days`, in this order.
pub fn five_checks(judged: &Judged<'_>) -> Vec<Check> {
    vec![ceiling(judged), min_calls(judged), final_block_free(judged), decay(judged), days(judged)]
}

/// A check before its result is known.
fn check(id: &str, threshold: String, formula: String) -> Check {
    Check {
        id: id.to_owned(),
        result: CheckResult::Insufficient,
        reason: ReasonCode::NoClosedDay,
        value: "no closed day".to_owned(),
        threshold,
        formula,
        text: ReasonCode::NoClosedDay.text().to_owned(),
        next: None,
    }
}

fn first_close(judged: &Judged<'_>) -> String {
    format!("the first scored day, {}, has to close", judged.scored_from)
}

fn settle(mut check: Check, result: CheckResult, reason: ReasonCode, value: String, text: String) -> Check {
    check.result = result;
    check.reason = reason;
    check.value = value;
    check.text = text;
    check
}

fn ceiling(judged: &Judged<'_>) -> Check {
    let plan = judged.plan;
    let formula = match plan.ceiling_basis {
        CeilingBasis::Day => format!(
            "D = disagreed / (agreed + disagreed); D < B = {} on each of the last {}",
            plan.ceiling.percent(),
            plural(u64::from(plan.counted_days), "closed day", "closed days")
        ),
        CeilingBasis::Window => format!(
            "disagreed < B x compared calls of all closed scored days, B = {}, on each of the last {}",
            plan.ceiling.percent(),
            plural(u64::from(plan.counted_days), "closed day", "closed days")
        ),
    };
    let mut out = check("ceiling", judged.threshold(plan.ceiling), formula);
    let counted = judged.counted();
    if counted.is_empty() {
        out.next = Some(first_close(judged));
        return out;
    }
    let failing: Vec<&ScoredDay> =
        counted.iter().filter(|d| d.n > 0 && !judged.below(plan.ceiling, d)).collect();
    let value = worst(judged, counted).map_or_else(|| "no compared call".to_owned(), |d| judged.shown(d));
    if let Some(latest) = failing.last() {
        let text = format!(
            "D is not below the ceiling on {} of {}; the worst is {value}.",
            grouped(failing.len() as u64),
            plural(counted.len() as u64, "counted day", "counted days")
        );
        out.next = Some(judged.next_after(
            latest.day,
            plan.counted_days,
            "the counted days",
            "if D is below the ceiling on each of them",
        ));
        return settle(out, CheckResult::Fail, ReasonCode::CeilingReached, value, text);
    }
    if let Some(silent) = counted.iter().rev().find(|d| d.n == 0) {
        let value = format!("no compared call on {}", silent.day);
        let text = format!("{} has no compared call, so its D is unknown.", silent.day);
        out.next = Some(judged.next_after(
            silent.day,
            plan.counted_days,
            "the counted days",
            "if each of them has a compared call",
        ));
        return settle(out, CheckResult::Insufficient, ReasonCode::CeilingSilentDay, value, text);
    }
    let text = format!(
        "D is below the ceiling on {}; the worst is {value}.",
        if counted.len() == 1 {
            "the one counted day".to_owned()
        } else {
            format!("all {} counted days", counted.len())
        }
    );
    settle(out, CheckResult::Pass, ReasonCode::CeilingHeld, value, text)
}

fn min_calls(judged: &Judged<'_>) -> Check {
    let plan = judged.plan;
    let n = judged.compared();
    let out = check(
        "min_calls",
        format!("≥ {}", grouped(plan.min_calls)),
        "agreed + disagreed over all closed scored days".to_owned(),
    );
    let value = grouped(n);
    if n >= plan.min_calls {
        let text = format!(
            "{} where {} are asked.",
            plural(n, "compared call", "compared calls"),
            grouped(plan.min_calls)
        );
        return settle(out, CheckResult::Pass, ReasonCode::MinCallsReached, value, text);
    }
    let missing = plan.min_calls - n;
    let text = format!(
        "{} where {} are asked.",
        plural(n, "compared call", "compared calls"),
        grouped(plan.min_calls)
    );
    let mut out = settle(out, CheckResult::Insufficient, ReasonCode::MinCallsShort, value, text);
    let needs = format!("needs {}", plural(missing, "more compared call", "more compared calls"));
    out.next = Some(match judged.days_for_calls() {
        None => format!("{needs}; none has been compared yet"),
        Some(days) => {
            let about = plural(days, "day", "days");
            let left = judged.scored_to().0.saturating_sub(judged.closed_through().0);
            let fits = i64::try_from(days).is_ok_and(|d| d <= i64::from(left));
            let end = match fits {
                true => String::new(),
                false => format!(
                    "; the window scores {} only, so a longer one has to be registered",
                    more_left(left)
                ),
            };
            format!("{needs}, about {about} at the present rate{end}")
        }
    });
    out
}

fn more_left(left: i32) -> String {
    match left {
        i32::MIN..=0 => "no more days".to_owned(),
        1 => "1 more day".to_owned(),
        n => format!("{n} more days"),
    }
}

fn final_block_free(judged: &Judged<'_>) -> Check {
    let mut out = check(
        "final_block_free",
        "0 blocks".to_owned(),
        "disagreements with a difference of severity block on the final closed day".to_owned(),
    );
    let Some(day) = judged.days.last() else {
        out.next = Some(first_close(judged));
        return out;
    };
    let next = || {
        let next = day.day.plus(1);
        Some(match next <= judged.scored_to() {
            true => format!("a later closed day without a block, {next} at the earliest"),
            false => {
                format!("{} was the last day of the window; mend the candidate and register again", day.day)
            }
        })
    };
    let value = format!("{} on {}", plural(day.blocks, "block", "blocks"), day.day);
    if day.n == 0 {
        out.next = next();
        let text = format!("{} is the final closed day and has no compared call.", day.day);
        return settle(
            out,
            CheckResult::Insufficient,
            ReasonCode::FinalDaySilent,
            "no compared call".to_owned(),
            text,
        );
    }
    if day.blocks > 0 {
        out.next = next();
        let text = format!(
            "{}, the final closed day, has {} among {}.",
            day.day,
            plural(day.blocks, "block", "blocks"),
            plural(day.n, "compared call", "compared calls")
        );
        return settle(out, CheckResult::Fail, ReasonCode::FinalDayBlocked, value, text);
    }
    let text = format!(
        "No block among the {} of {}, the final closed day.",
        plural(day.n, "compared call", "compared calls"),
        day.day
    );
    settle(out, CheckResult::Pass, ReasonCode::FinalDayBlockFree, value, text)
}

fn decay(judged: &Judged<'_>) -> Check {
    let plan = judged.plan;
    let limit = plan.decay_ceiling();
    let mut out = check(
        "decay",
        judged.threshold(limit),
        format!(
            "the ceiling's measure on each of the last {}, below {} of B",
            plural(u64::from(plan.decay.days), "closed day", "closed days"),
            plan.decay.fraction.percent()
        ),
    );
    let days = last(judged.days, plan.decay.days);
    if days.is_empty() {
        out.next = Some(first_close(judged));
        return out;
    }
    let value = worst(judged, days).map_or_else(|| "no compared call".to_owned(), |d| judged.shown(d));
    let failing: Vec<&ScoredDay> = days.iter().filter(|d| d.n > 0 && !judged.below(limit, d)).collect();
    if let Some(latest) = failing.last() {
        let text = format!(
            "D is not below {} of the ceiling on {} of the last {}; the worst is {value}.",
            plan.decay.fraction.percent(),
            failing.len(),
            plural(days.len() as u64, "closed day", "closed days")
        );
        let which = format!("the last {}", plural(u64::from(plan.decay.days), "day", "days"));
        out.next = Some(judged.next_after(
            latest.day,
            plan.decay.days,
            &which,
            "if D stays below that on each of them",
        ));
        return settle(out, CheckResult::Fail, ReasonCode::DecayReached, value, text);
    }
    if let Some(silent) = days.iter().rev().find(|d| d.n == 0) {
        let value = format!("no compared call on {}", silent.day);
        let text = format!("{} has no compared call, so its D is unknown.", silent.day);
        let which = format!("the last {}", plural(u64::from(plan.decay.days), "day", "days"));
        out.next = Some(judged.next_after(
            silent.day,
            plan.decay.days,
            &which,
            "if each of them has a compared call",
        ));
        return settle(out, CheckResult::Insufficient, ReasonCode::DecaySilentDay, value, text);
    }
    let missing = days_i32(plan.decay.days) - days_i32(u32::try_from(days.len()).unwrap_or(u32::MAX));
    if missing > 0 {
        let text = format!(
            "{} closed where decay looks at {}.",
            if days.len() == 1 { "1 day is".to_owned() } else { format!("{} days are", days.len()) },
            plan.decay.days
        );
        out.next = Some(format!("needs {}", more_days(missing)));
        return settle(out, CheckResult::Insufficient, ReasonCode::DecayDaysShort, value, text);
    }
    let text = format!(
        "D is below {} of the ceiling on each of the last {}; the worst is {value}.",
        plan.decay.fraction.percent(),
        plural(days.len() as u64, "closed day", "closed days")
    );
    settle(out, CheckResult::Pass, ReasonCode::DecayHeld, value, text)
}

fn days(judged: &Judged<'_>) -> Check {
    let plan = judged.plan;
    let mut out = check(
        "days",
        plural(u64::from(plan.counted_days), "closed day", "closed days"),
        "the trailing closed days, each with a compared call".to_owned(),
    );
    let counted = judged.counted();
    if counted.is_empty() {
        out.next = Some(first_close(judged));
        return out;
    }
    let value = plural(counted.len() as u64, "closed day", "closed days");
    if let Some(silent) = counted.iter().rev().find(|d| d.n == 0) {
        let text = format!("{} is a counted day without a compared call.", silent.day);
        out.next = Some(judged.next_after(
            silent.day,
            plan.counted_days,
            "the counted days",
            "if each of them has a compared call",
        ));
        return settle(out, CheckResult::Insufficient, ReasonCode::DaysSilent, value, text);
    }
    let missing = days_i32(plan.counted_days) - days_i32(u32::try_from(counted.len()).unwrap_or(u32::MAX));
    if missing > 0 {
        let text = format!(
            "{} closed where {} are counted.",
            if counted.len() == 1 { "1 day is".to_owned() } else { format!("{} days are", counted.len()) },
            plan.counted_days
        );
        out.next =
            Some(format!("needs {}, up to {}", more_days(missing), judged.closed_through().plus(missing)));
        return settle(out, CheckResult::Insufficient, ReasonCode::DaysShort, value, text);
    }
    let first = counted.first().map_or(judged.scored_from, |d| d.day);
    let text = format!("{first} to {} are closed, each with a compared call.", judged.closed_through());
    settle(out, CheckResult::Pass, ReasonCode::DaysReached, value, text)
}
