//! What one call shows: `compare(&PreparedPair, &CallRecord) -> Comparison`.
//!
//! Pure, total and deterministic. Everything that can be is prepared once per pair; nothing is compiled per call.

mod arguments;
mod category;
mod checked;
mod compare;
mod config;
mod declared;
mod exposure;
mod literal;
mod outcome;
mod pair;
mod parse;
mod refusal;
mod side;
mod tree;
mod types;

pub use category::{Category, Severity};
pub use compare::{ParsedCall, compare, compare_parsed, parse_call};
pub use config::{
    AdapterMap, Drop, Factor, Normalization, PairConfig, Runtime, Runtimes, SeverityMap, Unit, Waiver,
};
pub use pair::{PrepareError, PreparedPair, config_bytes, config_digest, epoch_digest};
pub use parse::{MAX_LEVELS, Parsed, parse_arguments};
pub use tree::{Members, Tree, Trees};
pub use types::{Comparison, ComparisonResult, Discrepancy, Evidence, Reason};

/// Raised only when the snapshot corpus changes an answer; part of every epoch.
pub const COMPARATOR_VERSION: u32 = 1;
