//! The ledger's own summary: what every chain had come to at one moment, so that reading goes on from there.
//!
//! An entry of the index chain names the tails of all chains, the folded control state, the open days and, per tool,
//! its newest daily facts. Its digest is the ledger's head. Everything in it can be computed again from the other
//! chains; it saves reading, and decides nothing.

mod body;
mod compact;
pub(crate) mod cut;
mod dayfile;
mod facts;
pub(crate) mod groups;
mod limits;
mod read;
mod signed;
pub(crate) mod sink;

pub(crate) use body::entries;
pub use body::{
    ClosedThrough, ControlAt, Folded, INDEX_FORMAT, IndexBody, OpenDay, PartitionAt, Tails, ToolAt, head,
    index_entry,
};
pub(crate) use compact::compact_as;
pub use compact::{Compacted, compact, compact_within};
pub use dayfile::{DayRow, for_each_day_row};
pub(crate) use dayfile::{for_each_day_batch, read_day_file};
pub use facts::{
    CohortDay, DailyFacts, DayEntry, DayFile, OlderDays, Previous, each_day, each_named_day, find_days,
    read_facts, read_older,
};
pub use limits::CompactLimits;
pub use read::{Current, PartitionEnd};
pub use signed::compact_signed;
