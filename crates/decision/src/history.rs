//! What stands beside a verdict on a page, and is no part of its document: daily categories, and earlier windows day by
//! day. The document of a record stays the same to the byte, whatever pages come to show.

use std::collections::BTreeMap;

use lastcall_event::Day;

use crate::verdict::Verdict;

/// Calls by `category/severity`, each at its worst there, by UTC day.
pub type DailyCategories = BTreeMap<Day, BTreeMap<String, u64>>;

/// What a page draws beside one verdict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// What was found on each day of the window.
    pub categories: DailyCategories,
    /// Earlier windows of the same tool, in control order.
    pub past: Vec<PastWindow>,
}

/// One earlier window, as the record keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct PastWindow {
    /// Sequence number of its registration: [`crate::EarlierWindow`] has the same.
    pub registration: u64,
    /// The UTC day on which it was ended, if it was.
    pub ended_on: Option<Day>,
    /// The last verdict that was recorded in it, if one was and can be read.
    pub last: Option<Verdict>,
}
