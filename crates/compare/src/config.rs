//! How a pair is compared: renames, normalization, severity map, adapter. Part of the epoch, so fixed before scoring.

use std::collections::BTreeMap;

use lastcall_contract::Decimal;
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
    /// Places at which the candidate counts in another unit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<Unit>,
    /// What the two runtimes do with arguments before they act on them.
    #[serde(skip_serializing_if = "Runtimes::is_empty")]
    pub runtimes: Runtimes,
}

/// A place at which the candidate counts in another unit under the same name. No value shows that; it is seen only
/// where it is declared, and then the same number is another quantity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Pointer, as current names the place.
    pub field: String,
    /// The candidate's number is current's times this: a decimal above 0, such as `1000` or `0.01`.
    pub factor: Factor,
}

/// A decimal above 0, written as a number or as text: `0.01`. Kept as it was written, since a double is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Factor(pub String);

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl serde::de::Visitor<'_> for V {
            type Value = Factor;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a decimal above 0")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Factor, E> {
                Ok(Factor(text.to_owned()))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Factor, E> {
                Ok(Factor(number.to_string()))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Factor, E> {
                Ok(Factor(number.to_string()))
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Factor, E> {
                Ok(Factor(number.to_string()))
            }
        }
        deserializer.deserialize_any(V)
    }
}

/// What is declared of both runtimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Runtimes {
    /// Of current's.
    #[serde(skip_serializing_if = "Runtime::is_empty")]
    pub current: Runtime,
    /// Of the candidate's.
    #[serde(skip_serializing_if = "Runtime::is_empty")]
    pub candidate: Runtime,
}

impl Runtimes {
    /// Nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a runtime declares that it does between validation and effect. It says which arguments a side acts on; it
/// never excuses a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Runtime {
    /// It puts declared defaults where an argument is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fills_defaults: bool,
    /// It takes an argument that is left out as null.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub absent_is_null: bool,
    /// It turns a scalar into the declared type: `"5"` into 5, `"true"` into true, 5 into `"5"`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub coerces: bool,
}

impl Runtime {
    /// Nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Normalization {
    /// Nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What does not hold together: pointer into the declaration, and what to do.
    pub fn problems(&self) -> Vec<(String, String)> {
        let lists = [
            ("verbatim", &self.verbatim),
            ("enum_case", &self.enum_case),
            ("unordered", &self.unordered),
            ("absent_is_null", &self.absent_is_null),
            ("numeric_strings", &self.numeric_strings),
            ("dates", &self.dates),
            ("currency", &self.currency),
        ];
        let mut out = Vec::new();
        for (name, list) in lists {
            for (i, pointer) in list.iter().enumerate().filter(|(_, p)| !is_pointer(p)) {
                out.push((format!("/{name}/{i}"), wants_pointer(pointer)));
            }
        }
        for (i, unit) in self.units.iter().enumerate() {
            if !is_pointer(&unit.field) {
                out.push((format!("/units/{i}/field"), wants_pointer(&unit.field)));
            }
            let factor = unit.factor.0.as_str();
            let positive = !factor.starts_with('-') && Decimal::parse(factor).is_some_and(|d| !d.is_zero());
            if !positive {
                out.push((
                    format!("/units/{i}/factor"),
                    format!("`{}` is no decimal above 0; write for instance 1000 or 0.01", short(factor)),
                ));
            }
        }
        out
    }
}

fn is_pointer(text: &str) -> bool {
    text.starts_with('/')
}

fn wants_pointer(text: &str) -> String {
    format!("`{}` is no JSON Pointer; write for instance /customer or /lines/*/sku", short(text))
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
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
                if !is_pointer(pointer) {
                    out.push((format!("/renames/{i}/{key}"), wants_pointer(pointer)));
                }
            }
        }
        let declared = self.normalization.problems().into_iter();
        out.extend(declared.map(|(at, what)| (format!("/normalization{at}"), what)));
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
