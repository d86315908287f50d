//! What the record proves: plans, tallies, the rule, the verdict.
//!
//! Pure: no file, no clock, no socket. Counts in, a document out; the same facts give the same bytes anywhere.

mod decide;
mod near;
mod plan;
mod ratio;
mod reason;
mod rule;
mod tally;
mod verdict;

pub use decide::{DAYS_BEYOND, WindowInput, closed_days, decide, decide_after_cutover};
pub use near::nearest;
pub use plan::{
    Calendar, CeilingBasis, Decay, Fallback, FinalBlockFree, InFlight, Plan, PlanError, Profile, Required,
    SampleBy, Sampling, Span, Tier,
};
pub use ratio::{Ratio, grouped, percent_of, rate_of};
pub use reason::ReasonCode;
pub use rule::{CHECK_IDS, Judged, ScoredDay, five_checks};
pub use tally::{
    CategoryFacts, DayCounts, DayTally, Example, Expectation, FieldCount, Outside, Place, PlantedFacts, Row,
    Tallied, Tally,
};
pub use verdict::{
    Answer, Check, CheckResult, DayLine, DayState, EarlierWindow, EvidenceCounts, Flag, PairFacts, PlanFacts,
    Problem, Question, RegistrationFacts, Sensitivity, Tail, Totals, VERDICT_FORMAT, Verdict, Window,
};

/// A value as RFC 8785 JSON: the bytes under whose digest the ledger keeps it.
///
/// # Errors
/// The value has no JSON form.
pub fn canonical_json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    serde_json_canonicalizer::to_vec(value)
}
