//! How much a change asks of those who rely on a contract: class, version bump, handling, and what backs the class.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of a change, mildest first: the class of a whole is the greatest of its parts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Proven: every value that callers send today is taken tomorrow, and means the same.
    #[default]
    Compatible,
    /// No value is refused, but what the model or a reader sees is another: text, examples, added result fields.
    UsuallyCompatible,
    /// No declared value is refused, but something is lost or means something else: a silent drop, another default, a
    /// unit; or recorded calls with undeclared arguments are refused.
    HighRisk,
    /// Neither proven nor refuted. Never read as compatible.
    NeedsReview,
    /// A call over declared arguments is refused; the call is attached.
    Breaking,
}

impl Class {
    /// Every class, mildest first.
    pub const ALL: [Self; 5] =
        [Self::Compatible, Self::UsuallyCompatible, Self::HighRisk, Self::NeedsReview, Self::Breaking];

    /// The word, snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::UsuallyCompatible => "usually_compatible",
            Self::HighRisk => "high_risk",
            Self::NeedsReview => "needs_review",
            Self::Breaking => "breaking",
        }
    }

    /// Whether a gate passes it: `compatible` and `usually_compatible` do.
    pub fn passes(self) -> bool {
        self <= Self::UsuallyCompatible
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The version step that a change asks for, smallest first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Bump {
    /// Nothing changed.
    #[default]
    None,
    /// Text alone, or the same values written otherwise.
    Patch,
    /// Additions and wider values.
    Minor,
    /// Breaking, unknown, or risky in a tool that several agents, funds, permissions or old sessions hang on.
    Major,
}

impl Bump {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::None, Self::Patch, Self::Minor, Self::Major].into_iter().find(|b| b.as_str() == text)
    }
}

impl std::fmt::Display for Bump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What to do with a change before it goes live (the change table of **testing**), mildest first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Handling {
    /// It can go live directly.
    #[default]
    GoLive,
    /// Recorded calls and cases are replayed first, and the result gates the release.
    Replay,
    /// A new major version, or old and new side by side.
    DualTrack,
}

impl Handling {
    /// The word, snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GoLive => "go_live",
            Self::Replay => "replay",
            Self::DualTrack => "dual_track",
        }
    }

    /// What it asks for, as an instruction.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::GoLive => "can go live directly",
            Self::Replay => "replay recorded calls and cases first",
            Self::DualTrack => "publish a new major version, or run old and new side by side",
        }
    }
}

impl std::fmt::Display for Handling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the class of a change rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backing {
    /// It is proven that no declared value is refused.
    Proof,
    /// A call that the old contract takes and the new one refuses, attached.
    Witness,
    /// A rule: no validator sees the change.
    Rule,
    /// Nothing: neither a proof nor a call was found.
    Nothing,
}

impl Backing {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proof => "proof",
            Self::Witness => "witness",
            Self::Rule => "rule",
            Self::Nothing => "nothing",
        }
    }
}

impl std::fmt::Display for Backing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_class_wins_and_unknown_never_passes() {
        assert_eq!(Class::ALL.into_iter().max(), Some(Class::Breaking));
        assert!(Class::NeedsReview > Class::HighRisk && !Class::NeedsReview.passes());
        assert!(Class::ALL.is_sorted());
        assert_eq!(Bump::parse("major"), Some(Bump::Major));
    }
}
