//! How a pair is compared: renames, normalization, severity map, adapter. Part of the epoch, so fixed before scoring.

use std::collections::BTreeMap;

use lastcall_diff::{Pattern, Rename};
use lastcall_event::Timestamp;
use serde::{Deserialize, Serialize};

use crate::category::{Category, Severity};

/// The configuration of a pair. Pointers may use `*` for any list index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PairConfig {
    /// Declared renames.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub renames: Vec<Rename>,
    /// Declared equivalences.
    #[serde(skip_serializing_if = "Normalization::is_empty")]
    pub normalization: Normalization,
    /// Severities that differ from the defaults, and waivers.
    #[serde(skip_serializing_if = "SeverityMap::is_empty")]
    pub map: SeverityMap,
    /// What the declared adapter maps, for candidates that are fed adapted input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter: Option<AdapterMap>,
}

/// Declared equivalences, each a list of pointers (`normalization.yaml`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Normalization {
    /// Strings compared to the byte.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verbatim: Vec<String>,
    /// Enums whose letter case does not matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enum_case: Vec<String>,
    /// Lists whose order does not matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unordered: Vec<String>,
    /// null and absent are the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent_is_null: Vec<String>,
    /// A numeric string is its number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numeric_strings: Vec<String>,
    /// RFC 3339 times that name the same instant are equal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dates: Vec<String>,
    /// An ISO 4217 code before or after a decimal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub currency: Vec<String>,
}

impl Normalization {
    /// Nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Severities that differ from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeverityMap {
    /// Per category.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub severities: BTreeMap<Category, Severity>,
    /// For one pointer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waivers: Vec<Waiver>,
}

impl SeverityMap {
    /// The defaults.
    pub fn is_empty(&self) -> bool {
        self.severities.is_empty() && self.waivers.is_empty()
    }
}

/// One category at one place, with another severity until a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// Pointer.
    pub field: String,
    /// Category.
    pub category: Category,
    /// Severity instead.
    pub severity: Severity,
    /// Why.
    pub reason: String,
    /// Who: two people for a block.
    pub by: Vec<String>,
    /// Held against the call's own time.
    pub until: Timestamp,
}

/// What an adapter maps (the adapter itself comes with the adapters).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdapterMap {
    /// Moved arguments.
    pub rename: Vec<Rename>,
    /// By pointer of the new name: old value → new value.
    pub enums: BTreeMap<String, BTreeMap<String, String>>,
    /// Arguments that are left out.
    pub drop: Vec<Drop>,
}

/// An argument that an adapter leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drop {
    /// Pointer.
    pub field: String,
    /// Declared as a loss.
    #[serde(default)]
    pub lossy: bool,
}

impl PairConfig {
    /// What does not hold together: pointer into the configuration, and what to do.
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        for (i, rename) in self.renames.iter().enumerate() {
            for (key, pointer) in [("from", &rename.from), ("to", &rename.to)] {
                if !pointer.starts_with('/') {
                    out.push((
                        format!("/renames/{i}/{key}"),
                        "write a JSON Pointer, such as /customer".to_owned(),
                    ));
                }
            }
        }
        for (i, waiver) in self.map.waivers.iter().enumerate() {
            let at = format!("/map/waivers/{i}");
            let people: std::collections::BTreeSet<&str> =
                waiver.by.iter().map(|p| p.trim()).filter(|p| !p.is_empty()).collect();
            let asks = if waiver.category.default_severity() == Severity::Block { 2 } else { 1 };
            if people.len() < asks {
                out.push((
                    format!("{at}/by"),
                    format!("a waiver of {} needs {asks} different people in `by`", waiver.category),
                ));
            }
            if waiver.reason.trim().is_empty() {
                out.push((format!("{at}/reason"), "say why".to_owned()));
            }
        }
        out
    }
}

/// A list of patterns that is usually empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns(Vec<Pattern>);

impl Patterns {
    pub(crate) fn new(pointers: &[String]) -> Self {
        Self(pointers.iter().map(|p| Pattern::new(p)).collect())
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn has(&self, pointer: &str) -> bool {
        !self.0.is_empty() && self.0.iter().any(|p| p.matches(pointer))
    }
}
