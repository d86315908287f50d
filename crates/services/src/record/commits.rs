//! Committers: a few threads that write files and append entries, one append in flight a partition.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use lastcall_ledger::Ledger;
use lastcall_ledger::chain::Append;
use lastcall_ledger::position::Partition;
use lastcall_record::{Commit, Committer};

use super::worker::{Added, Recorded, ToWorker};
use super::{Appended, Telemetry};
use super::{Key, Stop};
use crate::kafka::pulse::Pulse;

/// Something to be written.
pub struct Job {
    /// The partition.
    pub key: Key,
    /// Of which assignment.
    pub generation: u64,
    /// The files and the entry.
    pub commit: Box<Commit>,
    /// Who waits for the answer.
    pub answer: Sender<ToWorker>,
}

/// Writes jobs until there are none any more. One of an assignment that is over is not written: its worker drops it.
pub fn run(ledger: &Ledger, pulse: &Pulse, telemetry: &Telemetry, jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { key, generation, commit, answer }) = job else { return };
        if !pulse.allows(generation) {
            continue;
        }
        let store = ledger.store();
        let committer = Committer::new(&**store, &key.source, Partition(key.partition), ledger.writer());
        let recorded = Recorded {
            next: commit.body.progress().next.0,
            chunk: commit.body.chunk().map(|chunk| Box::new(Added::of(chunk))),
        };
        let begun = Instant::now();
        // A folder that was moved or unmounted is not made anew: what would be written there is no ledger.
        let done = ledger.still_there().and_then(|()| committer.commit(&commit)).map_err(Stop::from);
        if let Ok(answer) = &done {
            let won = matches!(answer, Append::Won(_));
            telemetry.appended(
                &key,
                &Appended {
                    won,
                    recorded: won.then_some(recorded.next),
                    seconds: begun.elapsed().as_secs_f64(),
                    body: Some(&commit.body),
                    bytes: commit.files.iter().map(|(_, bytes)| bytes.len() as u64).sum(),
                },
            );
        }
        let _ = answer.send(ToWorker::Appended { key, generation, answer: done, recorded });
    }
}
