//! Counts that stand in chunk entries. They add up: the sum over any cut of the input is the same.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use lastcall_compare::{Category, ComparisonResult, Severity};
use lastcall_contract::Digest;
use lastcall_event::Day;
use serde::{Deserialize, Serialize};

use crate::entry::is_zero;
use crate::named::{Name, NamedCounts};

/// Calls by (day, tool, contract, cohort, agent): every call, compared or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCount {
    /// UTC day of the calls' own time.
    pub day: Day,
    /// Tool.
    pub tool: Name,
    /// The contract that production used, as far as stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Name>,
    /// Cohort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort: Option<Name>,
    /// Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    /// How many.
    pub calls: u64,
    /// Those whose contract digest is not the one of an active pair with that contract id.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub digest_mismatch: u64,
}

/// The key of a [`CallCount`].
pub type CallKey = (Day, String, Option<String>, Option<String>, Option<String>);

impl CallCount {
    /// The order of keys, without making one.
    pub fn by_key(&self, other: &Self) -> Ordering {
        (self.day, &self.tool, &self.contract, &self.cohort, &self.agent).cmp(&(
            other.day,
            &other.tool,
            &other.contract,
            &other.cohort,
            &other.agent,
        ))
    }

    /// Its key.
    pub fn key(&self) -> CallKey {
        let owned = |name: &Option<Name>| name.as_deref().map(str::to_owned);
        (self.day, self.tool.to_string(), owned(&self.contract), owned(&self.cohort), owned(&self.agent))
    }
}

/// Results by (day, tool, epoch, cohort, agent), before duplicates are taken out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// UTC day of the calls' own time.
    pub day: Day,
    /// Tool.
    pub tool: Name,
    /// Epoch: pair, configuration, comparator.
    pub epoch: Digest,
    /// Cohort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort: Option<Name>,
    /// Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// The key of a [`Tally`].
pub type TallyKey = (Day, String, Digest, Option<String>, Option<String>);

impl Tally {
    /// The order of keys, without making one.
    pub fn by_key(&self, other: &Self) -> Ordering {
        (self.day, &self.tool, &self.epoch, &self.cohort, &self.agent).cmp(&(
            other.day,
            &other.tool,
            &other.epoch,
            &other.cohort,
            &other.agent,
        ))
    }

    /// Its key.
    pub fn key(&self) -> TallyKey {
        let owned = |name: &Option<Name>| name.as_deref().map(str::to_owned);
        (self.day, self.tool.to_string(), self.epoch.clone(), owned(&self.cohort), owned(&self.agent))
    }
}

/// Counts of comparisons. Each is a number of rows, that is of (call, pair).
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// No difference of warn or block.
    #[serde(skip_serializing_if = "is_zero")]
    pub agreed: u64,
    /// At least one.
    #[serde(skip_serializing_if = "is_zero")]
    pub disagreed: u64,
    /// Neither accepts.
    #[serde(skip_serializing_if = "is_zero")]
    pub both_rejected: u64,
    /// Left out by a rule.
    #[serde(skip_serializing_if = "is_zero")]
    pub excluded: u64,
    /// Nobody can say.
    #[serde(skip_serializing_if = "is_zero")]
    pub unresolved: u64,
    /// Disagreed, with a block or refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub block_or_refused: u64,
    /// Rows with at least one discrepancy of (category, severity), whatever the result. Key `category/severity`.
    #[serde(skip_serializing_if = "NamedCounts::is_empty")]
    pub categories: NamedCounts,
    /// Rows by reason.
    #[serde(skip_serializing_if = "NamedCounts::is_empty")]
    pub reasons: NamedCounts,
    /// Compared rows (agreed and disagreed) by level of evidence: `validation`, `arguments`, `outcome`.
    #[serde(skip_serializing_if = "NamedCounts::is_empty")]
    pub evidence: NamedCounts,
    /// Rows by fidelity: `raw`, `reconstructed`, `normalized`.
    #[serde(skip_serializing_if = "NamedCounts::is_empty")]
    pub fidelity: NamedCounts,
    /// Rows by normalization rule that turned a difference into agreement.
    #[serde(skip_serializing_if = "NamedCounts::is_empty")]
    pub rules: NamedCounts,
}

impl Counts {
    /// The rows by result.
    pub fn by_result(&self) -> [(ComparisonResult, u64); 5] {
        [
            (ComparisonResult::Agreed, self.agreed),
            (ComparisonResult::Disagreed, self.disagreed),
            (ComparisonResult::BothRejected, self.both_rejected),
            (ComparisonResult::Excluded, self.excluded),
            (ComparisonResult::Unresolved, self.unresolved),
        ]
    }

    /// The rows: the five results.
    pub fn rows(&self) -> u64 {
        self.agreed + self.disagreed + self.both_rejected + self.excluded + self.unresolved
    }

    /// Compared: agreed and disagreed.
    pub fn compared(&self) -> u64 {
        self.agreed + self.disagreed
    }

    /// Adds another's counts.
    pub fn add(&mut self, more: &Self) {
        self.agreed += more.agreed;
        self.disagreed += more.disagreed;
        self.both_rejected += more.both_rejected;
        self.excluded += more.excluded;
        self.unresolved += more.unresolved;
        self.block_or_refused += more.block_or_refused;
        for (mine, theirs) in [
            (&mut self.categories, &more.categories),
            (&mut self.reasons, &more.reasons),
            (&mut self.evidence, &more.evidence),
            (&mut self.fidelity, &more.fidelity),
            (&mut self.rules, &more.rules),
        ] {
            mine.add_all(theirs);
        }
    }
}

/// The key of a category count.
pub fn category_key(category: Category, severity: Severity) -> String {
    format!("{}/{}", category.as_str(), severity.as_str())
}

/// Reads the key of a category count.
pub fn parse_category_key(key: &str) -> Option<(Category, Severity)> {
    let (category, severity) = key.split_once('/')?;
    let severity =
        [Severity::Info, Severity::Warn, Severity::Block].into_iter().find(|s| s.as_str() == severity)?;
    Some((Category::parse(category)?, severity))
}

/// How many compared rows touched a changed place, and how many disagreed there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    /// UTC day.
    pub day: Day,
    /// Epoch: it fixes the pair, and so the list of places.
    pub epoch: Digest,
    /// Index of the place in the pair's list of places.
    pub place: u16,
    /// Compared rows that touched it.
    pub touched: u64,
    /// Compared rows that disagreed there.
    pub disagreed: u64,
}

/// The sums over many chunks.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sums {
    /// Calls and digest mismatches.
    pub calls: BTreeMap<CallKey, (u64, u64)>,
    /// Results.
    pub tallies: BTreeMap<TallyKey, Counts>,
    /// (touched, disagreed) by (day, epoch, place).
    pub exposure: BTreeMap<(Day, Digest, u16), (u64, u64)>,
}

impl Sums {
    /// Adds what one chunk counted.
    pub fn add(&mut self, chunk: &crate::entry::Chunk) {
        for count in &chunk.calls {
            let sum = self.calls.entry(count.key()).or_default();
            sum.0 += count.calls;
            sum.1 += count.digest_mismatch;
        }
        for tally in &chunk.tallies {
            self.tallies.entry(tally.key()).or_default().add(&tally.counts);
        }
        for e in &chunk.exposure {
            let sum = self.exposure.entry((e.day, e.epoch.clone(), e.place)).or_default();
            sum.0 += e.touched;
            sum.1 += e.disagreed;
        }
    }
}
