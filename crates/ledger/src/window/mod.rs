//! From the ledger to the plain facts that a verdict rests on. It reads and never writes, and it never decides.
//!
//! What an index entry folded is taken from the daily facts; what follows is read from the chains. Either way the
//! same code adds up the same rows, so the facts are the same to the byte wherever the cut lies.

mod ends;
mod facts;
mod gathering;
mod pass;
mod plants;
mod problem;
mod record;
mod rows;
mod subject;

pub use facts::{Older, Sighting, WindowDay, WindowFacts};
pub(crate) use gathering::{Gathering, Start};
pub(crate) use pass::{Chunks, EachChunk, Pass, PlacedRow, Rows, read_days, read_rows};
pub use plants::{Expect, PlantList, PlantedCall, call_key};
pub use problem::{pair_facts, problem_of};
pub use record::Record;
pub(crate) use record::Windows;
pub use subject::Subject;
