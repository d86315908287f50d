//! What an index entry keeps of one window, so that its verdict needs no old row.

use std::collections::BTreeMap;

use lastcall_compare::{Category, Severity};
use lastcall_contract::Digest;
use lastcall_decision::{DayTally, Outside, Ratio};
use lastcall_event::Day;
use serde::{Deserialize, Serialize};

use crate::entry::is_zero;

/// One window, or one observed pair without a registration, up to what an index entry folded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowFacts {
    /// Sequence number of the registration; `None`: the pair is only observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<u64>,
    /// The epoch: pair, configuration, comparator.
    pub epoch: Digest,
    /// Current contract id.
    pub current: String,
    /// Candidate contract id.
    pub candidate: String,
    /// The comparator version of the epoch.
    pub comparator: u32,
    /// Only this cohort's calls count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort: Option<String>,
    /// Digest of the plan, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Digest>,
    /// B, where the plan can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ratio>,
    /// The control entry from which on calls count.
    pub since: u64,
    /// The days that are kept one by one: the window's, and some behind it. `None`: every day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<(Day, Day)>,
    /// What these days come to.
    pub days: BTreeMap<Day, WindowDay>,
    /// Without a registration: older days, added up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older: Option<Older>,
    /// Calls of other days.
    pub outside: Outside,
    /// Calls, from the first scored day on, that state another contract digest than the pair's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mismatch: u64,
    /// Results, from the first scored day on, that were recorded when their day was closed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u64,
}

/// One day of a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowDay {
    /// Its rows, after duplicates are removed.
    pub tally: DayTally,
    /// Calls without a row: nobody observed the pair.
    #[serde(skip_serializing_if = "is_zero")]
    pub unobserved: u64,
    /// Calls that interceptors dropped.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Calls that production counted, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<u64>,
}

impl WindowDay {
    /// Adds another day.
    pub(crate) fn add(&mut self, more: &Self) {
        self.tally.add(&more.tally);
        self.unobserved = self.unobserved.saturating_add(more.unobserved);
        self.lost = self.lost.saturating_add(more.lost);
        if let Some(n) = more.coverage {
            self.coverage = Some(self.coverage.unwrap_or(0).saturating_add(n));
        }
    }
}

/// Days that are no longer kept one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Older {
    /// The last of them.
    pub through: Day,
    /// Their sum.
    pub sum: WindowDay,
}

/// A planted or synthetic call that came back. Neither enters D; what is expected of it stands in its list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sighting {
    /// Key of the call id (32 hex digits).
    pub call_key: String,
    /// Under which epoch.
    pub epoch: Digest,
    /// In which source.
    pub source: String,
    /// With which cohort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort: Option<String>,
    /// The control entry under which it was recorded.
    pub control: u64,
    /// What it came back with.
    pub found: Vec<(Category, Severity)>,
}
