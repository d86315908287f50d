//! What one call shows: `compare(&PreparedPair, &CallRecord) -> Comparison`.
//!
//! Pure, total and deterministic. Everything that can be is prepared once per pair; nothing is compiled per call.

mod category;
mod types;

pub use category::{Category, Severity};
pub use types::{Comparison, ComparisonResult, Discrepancy, Evidence, Reason};

/// Raised only when the snapshot corpus changes an answer; part of every epoch.
pub const COMPARATOR_VERSION: u32 = 1;
