//! The services: the same engine as the embedded run, around topics.
//!
//! Threads are few and each has one work: one polls the broker and never waits for anything else, the others work on what
//! it read. What was written says where reading goes on, of the recorder the ledger's chains, of the mirror its output; a
//! group's offsets are written for lag tools and never read.

pub mod checked;
pub mod kafka;
pub mod mirror;
pub mod process;
pub mod record;
mod stop;
pub mod telemetry;

pub use stop::Stop;
