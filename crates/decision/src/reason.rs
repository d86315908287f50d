//! Reason codes: what a check or a problem says, in one stable word each. A code's word never changes its meaning.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! reason_codes {
    ($($variant:ident = $name:literal, $text:literal;)*) => {
        /// A stable reason code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ReasonCode { $(#[doc = $text] $variant,)* }

        impl ReasonCode {
            /// Every code.
            pub const ALL: &'static [ReasonCode] = &[$(ReasonCode::$variant,)*];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self { $(ReasonCode::$variant => $name,)* }
            }

            /// What it means.
            pub fn text(self) -> &'static str {
                match self { $(ReasonCode::$variant => $text,)* }
            }
        }
    };
}

reason_codes! {
    CeilingHeld = "ceiling_held", "D stayed below the ceiling on every counted day.";
    CeilingReached = "ceiling_reached", "D reached or passed the ceiling on a counted day.";
    CeilingSilentDay = "ceiling_silent_day", "A counted day has no compared call, so its D is unknown.";
    MinCallsReached = "min_calls_reached", "The closed scored days have enough compared calls.";
    MinCallsShort = "min_calls_short", "The closed scored days have too few compared calls.";
    FinalDayBlockFree = "final_day_block_free", "The final closed day has no block.";
    FinalDayBlocked = "final_day_blocked", "The final closed day has a block.";
    FinalDaySilent = "final_day_silent", "The final closed day has no compared call.";
    DecayHeld = "decay_held", "D stayed below the stated fraction of the ceiling on each of the last days.";
    DecayReached = "decay_reached", "D reached the stated fraction of the ceiling on one of the last days.";
    DecaySilentDay = "decay_silent_day", "One of the last days has no compared call, so its D is unknown.";
    DecayDaysShort = "decay_days_short", "Fewer days are closed than decay looks at.";
    DaysReached = "days_reached", "Enough days are closed, each with a compared call.";
    DaysShort = "days_short", "Too few scored days are closed.";
    DaysSilent = "days_silent", "A counted day has no compared call.";
    NoClosedDay = "no_closed_day", "No scored day is closed yet.";
    NotRegistered = "not_registered", "The rule was not fixed before the evidence: no plan is registered.";
    WindowEnded = "window_ended", "The registration's window was ended, and no later one scores.";
    DependentsUnknown = "dependents_unknown", "Nobody has reported who can still come back with the old contract.";
    CutoverMissing = "cutover_missing", "The cutover to the candidate is not recorded.";
    RetirementMissing = "retirement_missing", "The old contract's retirement is not recorded.";
    Unbalanced = "unbalanced", "The calls of a day do not add up to its results.";
    RecordAltered = "record_altered", "The ledger does not agree with its own digests.";
    RecordIncomplete = "record_incomplete", "A part of the ledger that the verdict needs cannot be read.";
    PlanUnreadable = "plan_unreadable", "The registered plan cannot be read, or asks for a profile that this build lacks.";
}

impl std::fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
