//! What is fed in, and by which recorders.

use lastcall_compare::{Category, Comparison, ComparisonResult, Reason, Severity};
use lastcall_contract::Digest;
use lastcall_event::{CallRecord, Timestamp};
use lastcall_ledger::chain::Append;
use lastcall_ledger::control::SourceKind;
use lastcall_ledger::position::{NextOffset, Offset};
use lastcall_record::{Action, Committer, Incoming, Input};
use lastcall_tests::chance::Rng;
use lastcall_tests::stand_in::{agreement, discrepancy};

use crate::world::{DAY_MS, TOOLS, World, configured};

/// What the stand-in for the comparator says: a function of what the call says of itself, and of the candidate.
fn verdict_of(variant: u64, candidate: &str) -> Comparison {
    let mut rng = Rng(variant.wrapping_mul(0x1000_0000_01b3) ^ candidate.len() as u64);
    let field = format!("/{}", rng.below(7));
    let mut c = agreement(rng.chance(50), rng.chance(40));
    if rng.chance(20) {
        c.rules.push("nfc");
    }
    match rng.below(8) {
        0 => c.discrepancies = vec![discrepancy(Category::ArgumentAdded, Severity::Info, false, &field)],
        1 => {
            c.result = ComparisonResult::Disagreed;
            c.discrepancies = vec![
                discrepancy(Category::TypeChanged, Severity::Block, true, &field),
                discrepancy(Category::RangeTightened, Severity::Warn, false, "/n"),
            ];
        }
        2 => {
            c.result = ComparisonResult::Disagreed;
            c.discrepancies = vec![discrepancy(Category::ArgumentChanged, Severity::Warn, false, &field)];
        }
        3 => (c.result, c.reason) = (ComparisonResult::Unresolved, Some(Reason::Undecided)),
        4 => (c.result, c.reason) = (ComparisonResult::Excluded, Some(Reason::Widened)),
        _ => {}
    }
    c
}

/// The same, as recorders ask.
pub fn says(call: &CallRecord<'_>, candidate: &str) -> Comparison {
    let arguments: serde_json::Value = serde_json::from_str(call.arguments.get().unwrap()).unwrap();
    verdict_of(arguments["v"].as_u64().unwrap(), candidate)
}

impl World {
    pub fn call(&mut self) -> String {
        let (tool, id) = match self.rng.chance(8) && !self.planted.is_empty() {
            true => self.rng.pick(&self.planted).clone(),
            false => ((*self.rng.pick(&TOOLS)).to_owned(), format!("c{}", self.rng.below(30))),
        };
        // Mostly of today; some are late, some of the days to come.
        let back = match self.rng.below(20) {
            0 => -1,
            1..4 => self.rng.below(6) as i32,
            4 => self.rng.below(20) as i32,
            _ => 0,
        };
        let ts = (i64::from(self.day_now() - back)) * DAY_MS + self.rng.below(DAY_MS as u64) as i64;
        let mut envelope = serde_json::Map::new();
        if self.rng.chance(50) {
            envelope.insert("cohort".to_owned(), (*self.rng.pick(&["eu", "us"])).into());
        }
        if self.rng.chance(60) {
            envelope.insert("session_id".to_owned(), format!("s{}", self.rng.below(9)).into());
        }
        let mut call = serde_json::json!({
            "type": "tool_call", "schema_version": 1, "call_id": id, "ts": Timestamp(ts).to_string(),
            "tool_id": tool, "arguments": {"v": self.rng.below(40)}, "outcome": {"status": "ok"},
            "envelope": envelope,
        });
        match self.rng.below(10) {
            0 => {}
            1 => call["contract_id"] = format!("{tool}@v9").into(),
            2 => {
                call["contract_id"] = format!("{tool}@v1").into();
                call["contract_digest"] = Digest::of(b"another").as_str().into();
            }
            _ => call["contract_id"] = format!("{tool}@v1").into(),
        }
        call.to_string()
    }

    pub fn line(&mut self) -> String {
        let at = Timestamp(self.now);
        match self.rng.below(40) {
            0 => format!(
                r#"{{"type":"coverage","schema_version":1,"tool_id":"search","hour":"{at}","count":{}}}"#,
                self.rng.below(9)
            ),
            1 => {
                let from = Timestamp(self.now - self.rng.below(3) as i64 * DAY_MS);
                let tool = if self.rng.chance(50) { r#""tool_id":"refund","# } else { "" };
                format!(
                    r#"{{"type":"loss","schema_version":1,{tool}"count":2,"interval":{{"from":"{from}","to":"{at}"}}}}"#
                )
            }
            _ => self.call(),
        }
    }

    /// Lets a stream take one line.
    pub fn deliver(&mut self, index: usize, line: &str) {
        let now = Timestamp(self.now);
        self.begin(index);
        let stream = &mut self.streams[index];
        if stream.ended {
            return;
        }
        let (offset, next) = (stream.next, stream.next + line.len() as i64 + 1);
        stream.next = next;
        let input = Input::Record(Incoming {
            offset: Offset(offset),
            next: NextOffset(next),
            bytes: line.as_bytes(),
            length: line.len() as u64,
            too_long: false,
            prefix: None,
            time: None,
        });
        let actions = stream.recorder.step(input, now).unwrap();
        self.act(index, actions);
    }

    pub fn begin(&mut self, index: usize) {
        if self.streams[index].begun {
            return;
        }
        let now = Timestamp(self.now);
        let stream = &mut self.streams[index];
        stream.begun = true;
        let committer =
            Committer::new(&self.store, &stream.source, stream.partition, &stream.committer_writer);
        let named = configured(&self.ledger);
        committer.begin(SourceKind::File, "x", &named.control, named.at, now).unwrap();
        let mut assigned = committer.assigned().unwrap().unwrap();
        // Later entries say how many partitions there are; the genesis does not know.
        assigned.progress.partitions = stream.partitions;
        let (tail, progress) = (assigned.tail, assigned.progress);
        stream.recorder.step(Input::Configured(Box::new(named)), now).unwrap();
        stream.recorder.step(Input::Assigned { tail, progress }, now).unwrap();
    }

    pub fn act(&mut self, index: usize, mut actions: Vec<Action>) {
        while let Some(action) = actions.pop() {
            let Action::Commit(commit) = action else { panic!("nobody else writes") };
            let stream = &mut self.streams[index];
            let committer =
                Committer::new(&self.store, &stream.source, stream.partition, &stream.committer_writer);
            let answer = committer.commit(&commit).unwrap();
            assert!(matches!(answer, Append::Won(_)));
            actions.extend(stream.recorder.step(Input::Appended(answer), Timestamp(self.now)).unwrap());
        }
    }

    /// Ends a stream's chunk, says how far it was read, and catches up with the control chain.
    pub fn settle(&mut self, index: usize, is_final: bool) {
        self.begin(index);
        if self.streams[index].ended {
            return;
        }
        let now = Timestamp(self.now);
        let stream = &mut self.streams[index];
        let next = stream.recorder.next().unwrap();
        let barrier = Input::Barrier { next, prefix: None, read_through: Some(now), is_final };
        let mut actions = stream.recorder.step(barrier, now).unwrap();
        actions.extend(stream.recorder.step(Input::Close, now).unwrap());
        stream.ended = is_final;
        self.act(index, actions);
        if !is_final {
            let input = Input::Configured(Box::new(configured(&self.ledger)));
            let actions = self.streams[index].recorder.step(input, now).unwrap();
            self.act(index, actions);
        }
    }

    pub fn time_passes(&mut self) {
        self.now += self.rng.below(20 * 3_600_000) as i64;
        if self.simulated {
            for index in 0..self.streams.len() {
                if self.rng.chance(90) {
                    let at = Timestamp(self.now);
                    self.deliver(index, &format!(r#"{{"type":"clock","schema_version":1,"ts":"{at}"}}"#));
                }
            }
        }
    }
}
