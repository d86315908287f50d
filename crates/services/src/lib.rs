//! The services: the same engine as the embedded run, around topics.
//!
//! Threads are few and each has one work: one polls the broker and never waits for anything else, workers feed the
//! recorders, committers write. The ledger's chains say where reading goes on; a group's offsets are written for lag
//! tools and never read.

pub mod kafka;
pub mod record;
pub mod telemetry;
