//! What a comparison says.

use serde::{Deserialize, Serialize};

use crate::category::{Category, Severity};

/// The result of one mirrored call under one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonResult {
    /// Compared, and no difference of warn or block.
    Agreed,
    /// Compared, and at least one difference of warn or block.
    Disagreed,
    /// Neither contract accepts the call.
    BothRejected,
    /// Left out of D by a rule, counted.
    Excluded,
    /// Nobody can say: counted against the candidate in D_worst.
    Unresolved,
}

impl ComparisonResult {
    /// Every result.
    pub const ALL: [Self; 5] =
        [Self::Agreed, Self::Disagreed, Self::BothRejected, Self::Excluded, Self::Unresolved];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::Disagreed => "disagreed",
            Self::BothRejected => "both_rejected",
            Self::Excluded => "excluded",
            Self::Unresolved => "unresolved",
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == name)
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// Why a call was both rejected, excluded or unresolved.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Reason { $($(#[$doc])* $variant,)* }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }

            /// Reads a name.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Reason::$variant),)* _ => None }
            }
        }
    };
}

reasons! {
    /// The argument text is not JSON.
    NotJson = "not_json";
    /// The arguments are JSON, but no object.
    NotObject = "not_object";
    /// A key stands twice in one object.
    DuplicateKeys = "duplicate_keys";
    /// More than 128 levels.
    TooDeep = "too_deep";
    /// A number that no double can hold.
    NumberOutOfRange = "number_out_of_range";
    /// The producer normalized the arguments before recording them.
    Normalized = "normalized";
    /// The producer did not record the arguments.
    NotCaptured = "not_captured";
    /// The call was made under one of the tool's contracts, and nobody knows which.
    ContractUnknown = "contract_unknown";
    /// A validator gave up (a regular expression out of budget).
    Undecided = "undecided";
    /// Validation would see another number than the call carries.
    NumberPrecision = "number_precision";
    /// Production executed against its own schema, and the candidate refuses for the same reason.
    BothUnenforced = "both_unenforced";
    /// Current refuses, the candidate accepts.
    Widened = "widened";
    /// Current differs from itself on the same replica.
    Unstable = "unstable";
    /// The plan's sampling left it out.
    SampledOut = "sampled_out";
    /// The mirror stopped waiting.
    TimedOut = "timed_out";
    /// The mirror left it out under load.
    Shed = "shed";
    /// The candidate could not be reached.
    Unavailable = "unavailable";
    /// The candidate was rate limited.
    RateLimited = "rate_limited";
    /// The candidate's own time-out.
    Timeout = "timeout";
    /// The mirrored call has no row for this candidate.
    NoCandidate = "no_candidate";
    /// The call's time and its message's time are too far apart.
    Clock = "clock";
    /// A call of a scored day, recorded before the registration was seen.
    NotObserved = "not_observed";
    /// An interceptor had to drop it.
    Lost = "lost";
}

/// One difference in one mirrored call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Discrepancy {
    /// JSON Pointer into the arguments or the result.
    pub field: String,
    /// What kind of difference.
    pub category: Category,
    /// Under the severity map of the epoch.
    pub severity: Severity,
    /// The call was refused for it.
    pub refused: bool,
    /// The schema keyword, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// JSON Pointer into the candidate's schema (current's, where the candidate has nothing there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// What else is known: the likely new name of an argument, for example. Never a value of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Which levels of evidence a comparison rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Both schemas were asked.
    pub validation: bool,
    /// Effective arguments of both sides were compared.
    pub arguments: bool,
    /// The outcome was observed on both sides.
    pub outcome: bool,
}

/// What one call shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The result.
    pub result: ComparisonResult,
    /// Why, for `both_rejected`, `excluded` and `unresolved`.
    pub reason: Option<Reason>,
    /// Differences, sorted by field, then category.
    pub discrepancies: Vec<Discrepancy>,
    /// What the comparison rests on.
    pub evidence: Evidence,
    /// Normalization rules that turned a difference into agreement, each once, sorted.
    pub rules: Vec<&'static str>,
    /// Changed places of the pair (indices into `PreparedPair::places`) that the call touched, ascending.
    pub touched: Vec<u16>,
    /// Those of them at which it disagreed.
    pub disagreed_at: Vec<u16>,
}

impl Comparison {
    /// Nothing was found out, for a reason.
    pub fn unresolved(reason: Reason) -> Self {
        Self {
            result: ComparisonResult::Unresolved,
            reason: Some(reason),
            discrepancies: Vec::new(),
            evidence: Evidence::default(),
            rules: Vec::new(),
            touched: Vec::new(),
            disagreed_at: Vec::new(),
        }
    }

    /// The worst severity, if there is any discrepancy.
    pub fn severity(&self) -> Option<Severity> {
        self.discrepancies.iter().map(|d| d.severity).max()
    }

    /// Whether the candidate refused the call.
    pub fn refused(&self) -> bool {
        self.discrepancies.iter().any(|d| d.refused)
    }
}
