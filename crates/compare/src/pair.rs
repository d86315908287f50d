//! A pair of contracts, prepared once: nothing is compiled per call.

use lastcall_contract::{Contract, Decimal, Digest};
use lastcall_diff::{Pattern, Place, PlaceKind, Rename, changed_places, inferred_renames, only_adds};
use serde_json::{Value, json};

use crate::COMPARATOR_VERSION;
use crate::category::{Category, Severity};
use crate::config::{AdapterMap, PairConfig, Patterns, Runtimes, Waiver};
use crate::side::Side;

/// Why a pair cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A schema does not compile.
    #[error("contract {contract}: its {part} cannot be used: {message}")]
    Schema {
        /// Contract id.
        contract: String,
        /// `input schema` or `output schema`.
        part: &'static str,
        /// What is wrong, where, and what to do.
        message: String,
    },
    /// The configuration does not hold together.
    #[error("pair configuration, {pointer}: {message}")]
    Config {
        /// Pointer into the configuration.
        pointer: String,
        /// What to do.
        message: String,
    },
}

/// A declared or evident rename, as patterns.
pub(crate) struct PreparedRename {
    pub from: Pattern,
    pub to: Pattern,
    /// Why it is likely; `None` where it is declared.
    pub evidence: Option<&'static str>,
}

pub(crate) struct PreparedNormalization {
    pub verbatim: Patterns,
    pub enum_case: Patterns,
    pub unordered: Patterns,
    pub absent_is_null: Patterns,
    pub numeric_strings: Patterns,
    pub dates: Patterns,
    pub currency: Patterns,
    /// Place → what the candidate's number is times current's.
    pub units: Vec<(Pattern, Decimal)>,
    pub runtimes: Runtimes,
}

impl PreparedNormalization {
    /// The factor between the units at a place.
    pub fn factor(&self, pointer: &str) -> Option<&Decimal> {
        self.units.iter().find(|(at, _)| at.matches(pointer)).map(|(_, factor)| factor)
    }
}

/// A changed place with its pattern and, for an enum value, the value.
pub(crate) struct PreparedPlace {
    pub pattern: Pattern,
    pub kind: PlaceKind,
    pub value: Option<Value>,
}

/// A (current, candidate) pair under one configuration.
pub struct PreparedPair {
    pub(crate) current: Side,
    pub(crate) candidate: Side,
    pub(crate) renames: Vec<PreparedRename>,
    pub(crate) normalization: PreparedNormalization,
    pub(crate) adapter: Option<AdapterMap>,
    pub(crate) places: Vec<PreparedPlace>,
    /// The schemas differ by more than additions and text, or the candidate fills defaults: accepted calls have to be
    /// searched too.
    pub(crate) searches: bool,
    severities: Vec<Severity>,
    waivers: Vec<(Pattern, Waiver)>,
    public_places: Vec<Place>,
    places_cut: bool,
    epoch: Digest,
}

impl PreparedPair {
    /// Prepares a pair.
    ///
    /// # Errors
    /// A schema that does not compile, or a configuration that does not hold together.
    pub fn new(current: &Contract, candidate: &Contract, config: &PairConfig) -> Result<Self, PrepareError> {
        if let Some((pointer, message)) = config.problems().into_iter().next() {
            return Err(PrepareError::Config { pointer, message });
        }
        let (old, new) = (Side::prepare(current)?, Side::prepare(candidate)?);
        let changed = changed_places(&old.doc, &new.doc);
        let (public_places, places_cut) = (changed.places, changed.cut);
        let declared = config.renames.iter().map(|r| (r, None));
        let inferred = inferred_renames(&old.doc, &new.doc);
        let known = |r: &Rename| config.renames.iter().any(|d| d.from == r.from || d.to == r.to);
        let inferred = inferred.iter().filter(|r| !known(&r.rename)).map(|r| (&r.rename, Some(r.evidence)));
        let renames = declared
            .chain(inferred)
            .map(|(r, evidence)| PreparedRename {
                from: Pattern::new(&r.from),
                to: Pattern::new(&r.to),
                evidence,
            })
            .collect();
        let n = &config.normalization;
        let searches = !only_adds(old.doc.root(), new.doc.root()) || n.runtimes.candidate.fills_defaults;
        Ok(Self {
            epoch: epoch_digest(current, candidate, config),
            places: public_places
                .iter()
                .map(|p| PreparedPlace {
                    pattern: p.pattern(),
                    kind: p.kind,
                    value: match p.kind {
                        PlaceKind::EnumValueRemoved => {
                            p.detail.as_deref().and_then(|d| serde_json::from_str(d).ok())
                        }
                        _ => None,
                    },
                })
                .collect(),
            normalization: PreparedNormalization {
                verbatim: Patterns::new(&n.verbatim),
                enum_case: Patterns::new(&n.enum_case),
                unordered: Patterns::new(&n.unordered),
                absent_is_null: Patterns::new(&n.absent_is_null),
                numeric_strings: Patterns::new(&n.numeric_strings),
                dates: Patterns::new(&n.dates),
                currency: Patterns::new(&n.currency),
                // against itself a contract has one unit
                units: n
                    .units
                    .iter()
                    .filter(|_| current.digest != candidate.digest)
                    .filter_map(|u| Some((Pattern::new(&u.field), Decimal::parse(&u.factor.0)?)))
                    .collect(),
                runtimes: n.runtimes,
            },
            adapter: config.adapter.clone(),
            severities: Category::ALL
                .iter()
                .map(|c| config.map.severities.get(c).copied().unwrap_or(c.default_severity()))
                .collect(),
            waivers: config.map.waivers.iter().map(|w| (Pattern::new(&w.field), w.clone())).collect(),
            current: old,
            candidate: new,
            renames,
            searches,
            public_places,
            places_cut,
        })
    }

    /// The current contract's id.
    pub fn current_id(&self) -> &str {
        &self.current.id
    }

    /// The candidate's id.
    pub fn candidate_id(&self) -> &str {
        &self.candidate.id
    }

    /// The changed places, by index as in [`crate::Comparison::touched`].
    pub fn places(&self) -> &[Place] {
        &self.public_places
    }

    /// Whether the schemas change at more places than [`Self::places`] has: what lies beyond has no exposure.
    pub fn places_cut(&self) -> bool {
        self.places_cut
    }

    /// The digest of the epoch that this pair, configuration and comparator make.
    pub fn epoch(&self) -> &Digest {
        &self.epoch
    }

    /// The severity of a discrepancy under the map: a refused one is never below warn.
    pub(crate) fn severity(
        &self,
        category: Category,
        field: &str,
        refused: bool,
        at: lastcall_event::Timestamp,
    ) -> Severity {
        let mapped = self.severities.get(category as usize).copied().unwrap_or(category.default_severity());
        let waived = self
            .waivers
            .iter()
            .find(|(pattern, w)| w.category == category && at <= w.until && pattern.matches(field))
            .map_or(mapped, |(_, w)| w.severity);
        if refused { waived.max(Severity::Warn) } else { waived }
    }
}

/// The epoch: both definitions, the configuration and the comparator version, as RFC 8785 JSON, SHA-256.
///
/// The ids are in it: two tools with one and the same definition have two epochs, and are counted apart.
pub fn epoch_digest(current: &Contract, candidate: &Contract, config: &PairConfig) -> Digest {
    let body = json!({
        "current": [current.id, current.digest.as_str()],
        "candidate": [candidate.id, candidate.digest.as_str()],
        "config": config_digest(config).as_str(),
        "comparator": COMPARATOR_VERSION,
    });
    Digest::of(&canonical(&body))
}

/// The digest of a configuration: SHA-256 over [`config_bytes`].
pub fn config_digest(config: &PairConfig) -> Digest {
    Digest::of(&config_bytes(config))
}

/// A configuration as RFC 8785 JSON: the object that the ledger keeps.
pub fn config_bytes(config: &PairConfig) -> Vec<u8> {
    serde_json::to_value(config).map(|v| canonical(&v)).unwrap_or_default()
}

fn canonical(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes())
}
