//! Where a window's chains end, which of its days are closed, and what makes its record incomplete.

use lastcall_decision::{CheckResult, Plan, Problem, ReasonCode, Tail};
use lastcall_event::{Day, Timestamp};

use crate::days::{DayState, DayStates, ReadThrough};
use crate::ledger::PartitionChain;
use crate::state::Registration;
use crate::window::Record;

/// The chains of a window's sources.
pub(super) fn chains<'a>(
    record: &'a Record,
    sources: &'a [String],
) -> impl Iterator<Item = &'a PartitionChain> + Clone {
    record.chains.iter().filter(|c| sources.contains(&c.source))
}

/// The days of a window's sources.
pub(super) fn states(record: &Record, sources: &[String]) -> DayStates {
    let names: Vec<&str> = sources.iter().map(String::as_str).collect();
    DayStates::new(&record.control, &record.chains, &names, record.ledger.meta().clock)
}

/// The ends of the chains that the verdict reads. Verdict entries rest on the record and are no part of it, so the
/// same record gives the same document however often it was decided on.
pub(super) fn tails(record: &Record, sources: &[String]) -> Vec<Tail> {
    let control = record.control.evidence();
    let mut out: Vec<Tail> = control
        .map(|r| Tail { chain: "control".to_owned(), seq: r.seq, digest: r.digest })
        .into_iter()
        .collect();
    let mut partitions: Vec<Tail> = chains(record, sources)
        .filter_map(|c| {
            let tail = c.tail()?;
            let chain = format!("{}/{}", c.source, c.partition.0);
            Some(Tail { chain, seq: tail.seq, digest: tail.digest })
        })
        .collect();
    partitions.sort();
    out.extend(partitions);
    out
}

/// What makes the record of a window incomplete: upstream positions that the mirror left out, calls made under another
/// definition than the fixed one, calls that two roles bring twice.
pub(super) fn incomplete(
    record: &Record,
    sources: &[String],
    r: &Registration,
    mismatch: u64,
) -> Vec<Problem> {
    let mut out = Vec::new();
    let mut problem = |text: String, next: &str| {
        out.push(Problem {
            result: CheckResult::Insufficient,
            reason: ReasonCode::RecordIncomplete,
            text,
            next: Some(next.to_owned()),
        });
    };
    for chain in chains(record, sources) {
        let missing = chain.progress().and_then(|p| p.upstream).map_or(0, |u| u.missing);
        if missing > 0 {
            let text = format!(
                "{}/{}: {missing} upstream positions are in no mirrored row: nobody knows what was called there.",
                chain.source, chain.partition.0
            );
            problem(text, "find what the mirror dropped, and register again");
        }
    }
    if mismatch > 0 {
        let text = format!(
            "{mismatch} calls state a contract digest that is not the one of {}: they were made under another definition.",
            r.pair.current
        );
        problem(text, "observe the definition that production uses, and register again");
    }
    let roles: Vec<_> =
        sources.iter().filter_map(|s| record.control.sources.get(s)).map(|s| s.role).collect();
    if roles.iter().any(|role| Some(role) != roles.first()) {
        let text = "The window reads tool-calls and mirrored-calls sources: the same calls may count twice."
            .to_owned();
        problem(text, "register again with the sources of one role: --source NAME");
    }
    out
}

/// The last closed scored day, and why the next one is open.
pub(super) fn closed_through(
    record: &Record,
    sources: &[String],
    states: &DayStates,
    r: &Registration,
    plan: &Plan,
) -> (Option<Day>, Option<String>) {
    let end = end_of_record(record, sources, states);
    let scored_to =
        r.scored_from.plus(i32::try_from(plan.max_scored_days).unwrap_or(i32::MAX).saturating_sub(1));
    let mut last = None;
    for day in (r.scored_from.0..=scored_to.0).map(Day) {
        if end.is_some_and(|end| day > end) {
            return (
                last,
                Some(format!("the record ends on {}, and nothing will follow", end.unwrap_or(day))),
            );
        }
        match states.state(day) {
            DayState::Closed => last = Some(day),
            DayState::Open(why) => {
                let why: Vec<String> = why.iter().take(3).map(ToString::to_string).collect();
                return (last, Some(why.join("; ")));
            }
        }
    }
    (last, None)
}

/// Where every source said that nothing will ever follow, all later days are closed too; they are no days of the
/// record, which ends with its last call or clock. `None`: more may follow.
fn end_of_record(record: &Record, sources: &[String], states: &DayStates) -> Option<Day> {
    let all_final = !states.partitions.is_empty()
        && states.partitions.iter().all(|p| p.read_through() == ReadThrough::ForEver);
    if !all_final {
        return None;
    }
    let mut last: Option<Timestamp> = None;
    for chain in chains(record, sources) {
        last = last.max(chain.newest());
        if record.ledger.is_simulated() {
            // The day before the clock's own, which has only begun: it is one of the record if a call lies on it.
            let before = |clock: Timestamp| clock.day().plus(-1).start();
            last = last.max(chain.progress().and_then(|p| p.clock).map(before));
        }
    }
    last.map(Timestamp::day)
}
