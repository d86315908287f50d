//! What was recorded: chains of small entries, Parquet files, and the reading of both.
//!
//! Everything rests on one primitive, [`chain::append`]. The code is written against [`store::Store`] and never knows
//! where the bytes lie; it decides nothing about calls.

mod calls;
mod calm;
pub mod chain;
pub mod control;
pub mod days;
mod dead;
mod direct;
pub mod entry;
pub mod erasure;
mod error;
pub mod export;
mod files;
pub mod gc;
pub mod index;
mod ledger;
pub mod named;
pub mod names;
mod pages;
pub mod position;
pub mod redaction;
mod results;
pub mod rows;
mod runs;
pub mod show;
pub mod sign;
pub mod state;
pub mod store;
pub mod tally;
pub mod verify;
pub mod window;
pub mod wire;

pub use calls::{CallRef, CallsWriter, commitment};
pub use calm::calmly;
pub use dead::{DeadRef, DeadWriter};
pub use error::LedgerError;
pub use files::FileBytes;
pub use ledger::{Ledger, LedgerClock, Meta, PartitionChain, fill_random, hex, random_hex, system_now};
pub use results::{ResultRef, ResultsWriter};
