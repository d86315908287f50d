//! One recorder's process: the product's state machine and committer, step by step.

use std::sync::Arc;

use lastcall_event::{Preset, Timestamp};
use lastcall_ledger::Ledger;
use lastcall_ledger::chain::Append;
use lastcall_ledger::control::SourceKind;
use lastcall_ledger::entry::{ControlRef, PartitionBody};
use lastcall_ledger::position::{NextOffset, Offset, Partition};
use lastcall_ledger::state::ControlState;
use lastcall_record::{Action, Commit, Committer, Incoming, Input, Limits, Recorder, Spec};
use lastcall_tests::chance::Rng;
use lastcall_tests::stand_in::config;

use crate::judge::says;
use crate::steps::{Step, hit};
use crate::store::{Faults, FaultyStore};
use crate::world::World;

pub struct Up {
    pub ledger: Ledger,
    control: ControlState,
    pub recorder: Recorder,
    pending: Option<Box<Commit>>,
    pub cursor: usize,
    store: Arc<FaultyStore>,
}

impl World {
    /// Starts a process. `None`: it died on the way.
    pub fn start(&mut self, percent: u64) -> Option<Box<Up>> {
        let faults = Faults { rng: Rng(self.rng.next()), percent, late: self.late.clone() };
        let (reached, beside) = (self.reached.clone(), self.beside.clone());
        let store = Arc::new(FaultyStore::recorder(reached, self.broken, faults, beside));
        let ledger = Ledger::open_in(store.clone(), "sim").ok()?;
        let control = ledger.control().ok()?;
        let limits = Limits {
            records: 1 + self.rng.below(14),
            age_ms: 1000 + self.rng.below(20_000) as i64,
            ..Limits::default()
        };
        let spec = Spec {
            source: self.source.clone(),
            partition: Partition(0),
            preset: Preset::Native,
            dense: self.dense,
            simulated: self.simulated,
            lateness_ms: 3_600_000,
        };
        let recorder = Recorder::new(spec, limits, config(&control, says), self.rng.salts());
        let mut up = Box::new(Up { ledger, control, recorder, pending: None, cursor: 0, store });
        self.assign(&mut up).then_some(up)
    }

    /// Reads the tail (beginning the partition if nobody has), then catches up with the control chain. `false`: died.
    fn assign(&mut self, up: &mut Up) -> bool {
        let now = Timestamp(self.now);
        let store = up.store.clone();
        let committer = Committer::new(&*store, &self.source, Partition(0), up.ledger.writer());
        let assigned = match committer.assigned() {
            Ok(Some(assigned)) => assigned,
            Ok(None) => {
                if self.rng.chance(30) {
                    drop(self.start(0));
                }
                let tail = up.control.tail().unwrap();
                let named = ControlRef { seq: tail.seq, digest: tail.digest };
                match committer.begin(SourceKind::File, "x", &named, tail.at, now) {
                    Ok(Append::Won(_)) => {}
                    Ok(Append::Lost) => hit(Step::genesis_lost),
                    Err(_) => return false,
                }
                match committer.assigned() {
                    Ok(Some(assigned)) => assigned,
                    _ => return false,
                }
            }
            Err(_) => return false,
        };
        if up.control.tail().unwrap().seq < assigned.control.seq {
            hit(Step::behind_control);
        }
        match up.ledger.follow_control(&mut up.control) {
            Ok(true) => {
                let config = Box::new(config(&up.control, says));
                up.recorder.step(Input::Configured(config), now).unwrap();
            }
            Ok(false) => {}
            Err(_) => return false,
        }
        let next = assigned.progress.next.0;
        up.cursor = self.records.iter().position(|r| r.offset >= next).unwrap_or(self.records.len());
        // Delivery may begin earlier than asked.
        up.cursor = up.cursor.saturating_sub(self.rng.below(3) as usize);
        up.pending = None;
        let (tail, progress) = (assigned.tail, assigned.progress);
        up.recorder.step(Input::Assigned { tail, progress }, now).unwrap();
        true
    }

    pub fn take(&mut self, up: &mut Up, actions: Vec<Action>) -> bool {
        for action in actions {
            match action {
                Action::Commit(commit) => {
                    assert!(up.pending.is_none(), "two appends in flight");
                    up.pending = Some(commit);
                }
                Action::Reassign => return self.assign(up),
            }
        }
        true
    }

    /// Carries out what is in flight. `false`: died.
    pub fn finish(&mut self, up: &mut Up) -> bool {
        let Some(commit) = up.pending.take() else { return true };
        let store = up.store.clone();
        let committer = Committer::new(&*store, &self.source, Partition(0), up.ledger.writer());
        let Ok(answer) = committer.commit(&commit) else { return false };
        match &answer {
            Append::Lost => {
                hit(Step::race_lost);
                if up.recorder.next().is_some_and(|n| n != commit.body.progress().next) {
                    hit(Step::race_lost_with_open);
                }
            }
            Append::Won(_) if matches!(commit.body, PartitionBody::Heartbeat { .. }) => hit(Step::heartbeat),
            Append::Won(_) => {}
        }
        let actions = up.recorder.step(Input::Appended(answer), Timestamp(self.now)).unwrap();
        self.take(up, actions)
    }

    pub fn deliver(&mut self, up: &mut Up) -> bool {
        let Some(record) = self.records.get(up.cursor).cloned() else { return true };
        up.cursor += 1;
        let before = up.recorder.repeated();
        let input = Input::Record(Incoming {
            offset: Offset(record.offset),
            next: NextOffset(record.next),
            bytes: &record.bytes,
            length: record.bytes.len() as u64,
            too_long: false,
            prefix: None,
            time: None,
        });
        let actions = up.recorder.step(input, Timestamp(self.now)).unwrap();
        if up.recorder.repeated() > before {
            hit(Step::passed_over);
        }
        if !actions.is_empty() {
            hit(Step::closed_by_records);
        }
        self.take(up, actions)
    }

    /// Tells the recorder where delivery stands.
    pub fn barrier(&mut self, up: &mut Up, is_final: bool) -> bool {
        let Some(next) = up.recorder.next() else { return true };
        let at_end = up.cursor >= self.records.len();
        let position = if at_end && !self.dense { NextOffset(next.0.max(self.end)) } else { next };
        if position != next {
            hit(Step::gap_at_end);
        }
        let through = at_end.then_some(Timestamp(self.now));
        let input = Input::Barrier { next: position, prefix: None, read_through: through, is_final };
        let actions = up.recorder.step(input, Timestamp(self.now)).unwrap();
        self.take(up, actions)
    }

    pub fn step(&mut self, up: &mut Up) -> bool {
        let now = Timestamp(self.now);
        let open = !up.recorder.is_idle();
        match self.rng.below(100) {
            0..50 => self.deliver(up),
            50..70 => self.finish(up),
            70..75 => {
                if up.cursor > 0 && self.rng.chance(50) {
                    hit(Step::delivered_twice);
                    up.cursor -= 1;
                }
                self.deliver(up)
            }
            75..82 => self.barrier(up, false),
            82..87 => {
                let actions = up.recorder.step(Input::Tick, now).unwrap();
                if !actions.is_empty() {
                    hit(Step::closed_by_age);
                }
                self.take(up, actions)
            }
            87..90 => {
                let actions = up.recorder.step(Input::Close, now).unwrap();
                if !actions.is_empty() {
                    hit(Step::closed_by_end);
                }
                self.take(up, actions)
            }
            90..95 => match up.ledger.follow_control(&mut up.control) {
                Ok(false) => true,
                Ok(true) => {
                    if open {
                        hit(Step::configured_open);
                    }
                    let config = Box::new(config(&up.control, says));
                    let actions = up.recorder.step(Input::Configured(config), now).unwrap();
                    self.take(up, actions)
                }
                Err(_) => false,
            },
            95..97 => {
                if open {
                    hit(Step::revoked_open);
                }
                if up.pending.is_some() {
                    hit(Step::revoked_in_flight);
                }
                up.recorder.step(Input::Lost, now).unwrap();
                self.assign(up)
            }
            _ => {
                hit(if up.pending.is_some() { Step::crash_in_flight } else { Step::crash_idle });
                false
            }
        }
    }
}
