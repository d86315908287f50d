//! The categories of difference and their default severities (comparison.md section 3).

use serde::{Deserialize, Serialize};

/// How much a discrepancy weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Reported, never a disagreement.
    Info,
    /// A disagreement.
    Warn,
    /// A disagreement that alone holds the final days.
    Block,
}

impl Severity {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Block => "block",
        }
    }
}

macro_rules! categories {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $severity:ident;)*) => {
        /// What kind of difference a discrepancy is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Category { $($(#[$doc])* #[serde(rename = $name)] $variant,)* }

        impl Category {
            /// Every category, in the order of the table.
            pub const ALL: &'static [Category] = &[$(Category::$variant,)*];

            /// The name on the wire and in every report.
            pub fn as_str(self) -> &'static str {
                match self { $(Category::$variant => $name,)* }
            }

            /// The severity under the default map.
            pub fn default_severity(self) -> Severity {
                match self { $(Category::$variant => Severity::$severity,)* }
            }

            /// Reads a name.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Category::$variant),)* _ => None }
            }
        }
    };
}

categories! {
    /// An argument that current requires is no longer declared by the candidate.
    RequiredRemoved = "required_removed", Block;
    /// The candidate requires an argument which the call does not carry.
    RequiredAdded = "required_added", Block;
    /// The value's type is not accepted there any more.
    TypeChanged = "type_changed", Block;
    /// The value is no longer among the allowed ones.
    EnumValueRemoved = "enum_value_removed", Block;
    /// A bound, length, pattern, format, count or uniqueness refuses the value.
    RangeTightened = "range_tightened", Warn;
    /// An optional argument lives under another name.
    OptionalRenamed = "optional_renamed", Warn;
    /// An optional argument is not declared any more, passes, and its value was the default.
    OptionalRemoved = "optional_removed", Info;
    /// The same, and its value was not the default.
    OptionalValueLost = "optional_value_lost", Warn;
    /// A required argument lives under another name.
    RequiredRenamed = "required_renamed", Block;
    /// Required now, null allowed, and the call omits it.
    RequiredNullableAdded = "required_nullable_added", Block;
    /// An optional argument refused by a closed object.
    OptionalRefused = "optional_refused", Block;
    /// An argument that neither declares, refused since the candidate closed the object.
    UndeclaredRefused = "undeclared_refused", Block;
    /// null was accepted.
    NullRefused = "null_refused", Block;
    /// Allowed in another letter case, and folding is not declared.
    EnumCaseChanged = "enum_case_changed", Block;
    /// Production executed the call against its own schema; the candidate refuses it for another reason there.
    UnenforcedRefused = "unenforced_refused", Block;
    /// Left out, and the declared default differs, appeared or vanished.
    DefaultChanged = "default_changed", Warn;
    /// anyOf, oneOf, not, if/then/else, dependent*: no branch explains it.
    CombinationRefused = "combination_refused", Block;
    /// Any other keyword.
    RefusedOther = "refused_other", Block;
    /// The candidate executed what its own schema refuses, or the reverse.
    SchemaRuntimeMismatch = "schema_runtime_mismatch", Warn;
    /// The declared adapter gave no output, or lost something that it does not declare.
    AdapterFailed = "adapter_failed", Block;
    /// The declared adapter lost something that it declares.
    AdapterLossy = "adapter_lossy", Info;
    /// The candidate used another value.
    ArgumentChanged = "argument_changed", Warn;
    /// The candidate did not use the argument.
    ArgumentDropped = "argument_dropped", Warn;
    /// The candidate used an argument that the call does not carry.
    ArgumentAdded = "argument_added", Info;
    /// The candidate answered `platform_error` where production did not.
    CandidateError = "candidate_error", Block;
    /// ok became a failure other than `platform_error`.
    OutcomeStatusChanged = "outcome_status_changed", Block;
    /// An error became ok.
    OutcomeRecovered = "outcome_recovered", Warn;
    /// Both failed, with another status, class or code.
    OutcomeErrorChanged = "outcome_error_changed", Warn;
    /// A top-level key of the current result is missing.
    OutcomeKeyRemoved = "outcome_key_removed", Block;
    /// The same, declared optional.
    OutcomeOptionalKeyRemoved = "outcome_optional_key_removed", Warn;
    /// The same key has another JSON type.
    OutcomeTypeChanged = "outcome_type_changed", Warn;
    /// A key that the current result does not have.
    OutcomeKeyAdded = "outcome_key_added", Info;
    /// The candidate's result violates its own output schema.
    OutputSchemaBroken = "output_schema_broken", Block;
}

impl std::fmt::Display for Category {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
