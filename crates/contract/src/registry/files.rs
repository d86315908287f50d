//! The YAML of a registry as it stands in the files: `tool.yaml`, the flat entry, `owner.yaml`. Unknown keys are
//! refused with the nearest known one. Never fills in a default; that is the reader's.

use serde::{Deserialize, Serialize};
use serde_saphyr::{Error, Spanned};

use super::Problem;
use crate::error::{nearest, shown};

/// How much harm a wrong call can do. Missing means `critical`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskLevel {
    /// Low.
    Low,
    /// Medium.
    Medium,
    /// High.
    High,
    /// Critical; also what a missing `risk_level` means.
    Critical,
}

/// What a call does to the world. Missing means `send`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// Reads only.
    Read,
    /// Changes state that can be looked at or undone.
    Write,
    /// Leaves the house: a message, a payment. Never executed by the mirror; also what a missing `side_effect` means.
    Send,
}

impl RiskLevel {
    /// `low` … `critical`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High, Self::Critical].into_iter().find(|r| r.as_str() == text)
    }
}

impl SideEffect {
    /// `read`, `write` or `send`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Send => "send",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Read, Self::Write, Self::Send].into_iter().find(|s| s.as_str() == text)
    }
}

/// One error that a tool can answer with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorCode {
    /// The code, as the tool returns it.
    pub code: String,
    /// Its class, for instance `business`, `permission`, `rate_limit`, `platform`.
    #[serde(default)]
    pub category: Option<String>,
    /// Whether the same call may be tried again.
    #[serde(default)]
    pub retryable: Option<bool>,
}

/// What the owner claims about compatibility. Checked by the diff, not believed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compatibility {
    /// Version patterns such as `2.0.x`.
    #[serde(default)]
    pub compatible_with: Vec<String>,
    /// Version patterns that are deprecated.
    #[serde(default)]
    pub deprecated_versions: Vec<String>,
}

/// `tool.yaml`, in both forms: with `versions`, and flat with one `version` and its `schema_file`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolFile {
    #[serde(default)]
    pub tool_id: Option<Spanned<String>>,
    #[serde(default)]
    pub risk_level: Option<Spanned<RiskLevel>>,
    #[serde(default)]
    pub side_effect: Option<Spanned<SideEffect>>,
    #[serde(default)]
    pub runtime: Option<Spanned<String>>,
    #[serde(default)]
    pub owner: Option<Spanned<String>>,
    #[serde(default)]
    pub domains: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    pub consumers: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    pub errors: Option<Spanned<Vec<ErrorCode>>>,
    #[serde(default)]
    pub versions: Option<Vec<VersionEntry>>,
    #[serde(default)]
    pub version: Option<Spanned<String>>,
    #[serde(default)]
    pub schema_file: Option<Spanned<String>>,
    #[serde(default)]
    pub changelog: Option<Spanned<String>>,
    #[serde(default)]
    pub compatibility: Option<Spanned<Compatibility>>,
    #[serde(default)]
    pub lint: Option<LintFile>,
}

/// What the owner says about lint: rules that do not apply, each with its reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LintFile {
    #[serde(default)]
    pub allow: Vec<std::collections::BTreeMap<String, String>>,
}

/// One version in `versions`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VersionEntry {
    pub version: Spanned<String>,
    #[serde(default)]
    pub schema: Option<Spanned<String>>,
    #[serde(default)]
    pub source: Option<Spanned<String>>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub deprecated: Option<bool>,
    #[serde(default)]
    pub corrects: Option<Spanned<String>>,
    #[serde(default)]
    pub aliases: Vec<Spanned<String>>,
}

/// `owner.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnerFile {
    pub owner: Spanned<String>,
    #[serde(default)]
    pub contact: Option<String>,
    #[serde(default)]
    pub approvers: Vec<String>,
}

/// Reads one YAML file; an error carries line and column.
pub(super) fn read<'de, T: Deserialize<'de>>(path: &str, text: &'de str) -> Result<T, Problem> {
    serde_saphyr::from_str(text).map_err(|error| problem(path, &error))
}

fn problem(path: &str, error: &Error) -> Problem {
    let place = match error.location() {
        Some(at) => format!("{path}:{}:{}", at.line(), at.column()),
        None => path.to_owned(),
    };
    let known = |wrong: &str, expected: &[&'static str]| match nearest(wrong, expected) {
        Some(near) => format!("Perhaps `{near}` was meant; known are {}", expected.join(", ")),
        None => format!("Known are {}", expected.join(", ")),
    };
    match error.without_snippet() {
        Error::SerdeUnknownField { field, expected, .. } => {
            Problem::new(place, format!("unknown key `{}`", shown(field)), known(field, expected))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            Problem::new(place, format!("unknown value `{}`", shown(variant)), known(variant, expected))
        }
        Error::SerdeMissingField { field, .. } => {
            Problem::new(place, format!("`{field}` is missing"), "Add it".to_owned())
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map(shown).unwrap_or_default();
            Problem::new(place, format!("key `{key}` stands here twice"), "Remove one".to_owned())
        }
        other => {
            let text = other.to_string();
            let first = text.lines().next().unwrap_or_default();
            Problem::new(
                place,
                format!("not the YAML that is expected: {first}"),
                "Correct that line".to_owned(),
            )
        }
    }
}
