//! Calls into the ledger: the recorder's state machine, files and standard input.
//!
//! [`Recorder`] is pure: bytes, clock and randomness are passed in, and what is to be written comes out as actions.
//! [`Committer`] writes: files first, then the entry. [`run`] drives both over a file or standard input.

mod commit;
mod judge;
pub mod lines;
mod mapped;
pub mod plant;
pub mod recompare;
mod recorder;
mod redact;
pub mod registry;
mod run;
mod step;
mod tallies;

pub use commit::{Assigned, Committer};
pub use judge::{Judge, Judged, PairError, Pairs};
pub use mapped::{Names, decoder, map_text};
pub use recorder::{Recorder, beginning};
pub use redact::{MARK, RedactionKey, Redactor};
pub use run::{RunError, RunOptions, Stage, Summary, run_file, run_stdin};
pub use step::{Action, Commit, Config, Incoming, Input, Limits, Random, RecordError, Spec};
