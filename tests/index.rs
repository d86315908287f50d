//! The index changes no answer: from one seed a ledger grows, with repeats, late calls, plants, windows that begin and
//! end, and compactions in between that race, crash and fold in steps of any size. Whatever the cut, every verdict
//! that reads from the index on is the verdict computed from the genesis, to the byte.
//!
//! `LASTCALL_SIM_SEEDS` says how many seeds (a hundredth of it), `LASTCALL_SIM_SEED` runs one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use lastcall_compare::{Category, Comparison, ComparisonResult, Discrepancy, Evidence, Reason, Severity};
use lastcall_contract::Digest;
use lastcall_decision::{
    DayCounts, Plan, Question, WindowInput, canonical_json, decide, decide_after_cutover,
};
use lastcall_event::{CallRecord, Day, Preset, Timestamp};
use lastcall_ledger::chain::Append;
use lastcall_ledger::control::{Control, Pair, Role, SourceKind};
use lastcall_ledger::entry::ControlRef;
use lastcall_ledger::index::{
    CompactLimits, compact, compact_within, each_day, for_each_day_row, read_facts,
};
use lastcall_ledger::position::{NextOffset, Offset, Partition};
use lastcall_ledger::store::{Bytes, Created, MemoryStore, Store, StoreError};
use lastcall_ledger::window::{PlantList, PlantedCall, Record};
use lastcall_ledger::{Ledger, LedgerClock};
use lastcall_record::{Action, Committer, Config, Incoming, Input, Judge, Judged, Limits, Recorder, Spec};

// ---------------------------------------------------------------------------------------------------- chance

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

// ---------------------------------------------------------------------------------------------------- store

/// A compactor's view of the store: another one may be faster just before its append, and it may die at any write.
struct Racing {
    inner: MemoryStore,
    /// Runs just before the next index entry is created.
    rival: Mutex<Option<(Ledger, CompactLimits)>>,
    /// Writes until it dies; negative: never.
    left: AtomicI64,
    raced: AtomicBool,
}

impl Racing {
    fn write(&self, path: &str) -> Result<(), StoreError> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.left.store(0, Ordering::Relaxed);
            return Err(StoreError::Failed { path: path.to_owned(), what: "crashed".to_owned() });
        }
        Ok(())
    }
}

impl Store for Racing {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        self.write(path)?;
        if path.starts_with("chains/index/")
            && let Some((rival, limits)) = self.rival.lock().unwrap().take()
        {
            compact_within(&rival, limits, &mut |_| {}).unwrap();
            self.raced.store(true, Ordering::Relaxed);
        }
        self.inner.create(path, bytes)
    }
    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.write(path)?;
        assert!(self.inner.get(path)?.is_none(), "a data file was written over: {path}");
        self.inner.put(path, bytes)
    }
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(path)
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.inner.list(prefix)
    }
    fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.inner.delete(path)
    }
}

// ---------------------------------------------------------------------------------------------------- judge

const FIRST: i32 = 20_605;
const DAY_MS: i64 = 86_400_000;
const TOOLS: [&str; 3] = ["search", "refund", "send"];

/// What the stand-in for the comparator says: a function of what the call says of itself, and of the candidate.
fn verdict_of(variant: u64, candidate: &str) -> Comparison {
    let mut rng = Rng(variant.wrapping_mul(0x1000_0000_01b3) ^ candidate.len() as u64);
    let one = |category: Category, severity: Severity, refused: bool, field: &str| Discrepancy {
        field: field.to_owned(),
        category,
        severity,
        refused,
        keyword: refused.then(|| "type".to_owned()),
        location: None,
        note: None,
    };
    let field = format!("/{}", rng.below(7));
    let mut c = Comparison {
        result: ComparisonResult::Agreed,
        reason: None,
        discrepancies: Vec::new(),
        evidence: Evidence { validation: true, arguments: rng.chance(50), outcome: rng.chance(40) },
        rules: if rng.chance(20) { vec!["nfc"] } else { Vec::new() },
        touched: Vec::new(),
        disagreed_at: Vec::new(),
    };
    match rng.below(8) {
        0 => c.discrepancies = vec![one(Category::ArgumentAdded, Severity::Info, false, &field)],
        1 => {
            c.result = ComparisonResult::Disagreed;
            c.discrepancies = vec![
                one(Category::TypeChanged, Severity::Block, true, &field),
                one(Category::RangeTightened, Severity::Warn, false, "/n"),
            ];
        }
        2 => {
            c.result = ComparisonResult::Disagreed;
            c.discrepancies = vec![one(Category::ArgumentChanged, Severity::Warn, false, &field)];
        }
        3 => (c.result, c.reason) = (ComparisonResult::Unresolved, Some(Reason::Undecided)),
        4 => (c.result, c.reason) = (ComparisonResult::Excluded, Some(Reason::Widened)),
        _ => {}
    }
    c
}

struct FakeJudge(Vec<Pair>);

impl Judge for FakeJudge {
    fn pairs(&self) -> &[Pair] {
        &self.0
    }
    fn judge(&self, call: &CallRecord<'_>, out: &mut Vec<Judged>) {
        let arguments: serde_json::Value = serde_json::from_str(call.arguments.get().unwrap()).unwrap();
        for (pair, p) in self.0.iter().enumerate() {
            if p.tool_id == *call.tool_id && call.contract_id.as_ref().is_none_or(|c| **c == *p.current) {
                let variant = arguments["v"].as_u64().unwrap();
                out.push(Judged { pair, comparison: verdict_of(variant, &p.candidate) });
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------------- world

struct Stream {
    source: String,
    partition: Partition,
    partitions: i32,
    recorder: Recorder,
    committer_writer: String,
    next: i64,
    begun: bool,
    ended: bool,
}

struct World {
    rng: Rng,
    store: MemoryStore,
    ledger: Ledger,
    simulated: bool,
    now: i64,
    object: Digest,
    streams: Vec<Stream>,
    planted: Vec<(String, String)>,
    verdicts: u64,
    said: BTreeMap<&'static str, u64>,
}

fn config(ledger: &Ledger) -> Config {
    let control = ledger.control().unwrap();
    let tail = control.tail().unwrap();
    let named = ControlRef { seq: tail.seq, digest: tail.digest };
    let judge = Box::new(FakeJudge(control.active_pairs()));
    Config { control: named, at: tail.at, judge, redactor: None }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let simulated = rng.chance(60);
        let store = MemoryStore::default();
        let clock = if simulated { LedgerClock::Simulated } else { LedgerClock::System };
        let ledger = Ledger::init_in(Arc::new(store.clone()), clock, "memory").unwrap();
        let object = ledger.put_object(b"{}").unwrap();
        let mut world = Self {
            rng,
            store,
            ledger,
            simulated,
            now: i64::from(FIRST) * DAY_MS,
            object,
            streams: Vec::new(),
            planted: Vec::new(),
            verdicts: 0,
            said: BTreeMap::new(),
        };
        for n in 0..1 + world.rng.below(2) {
            world.add_source(n);
        }
        for _ in 0..1 + world.rng.below(3) {
            world.observe();
        }
        world
    }

    fn add_source(&mut self, n: u64) {
        let source = format!("calls-{n}.jsonl");
        let role = if self.rng.chance(90) { Role::ToolCalls } else { Role::MirroredCalls };
        self.ledger
            .append_control(Control::Source {
                name: source.clone(),
                role,
                source_kind: SourceKind::File,
                preset: Preset::Native,
                lateness_ms: 3_600_000,
                map: None,
            })
            .unwrap();
        let partitions = 1 + self.rng.below(2) as i32;
        for number in 0..partitions {
            let spec = Spec {
                source: source.clone(),
                partition: Partition(number),
                preset: Preset::Native,
                dense: true,
                simulated: self.simulated,
                lateness_ms: 3_600_000,
            };
            let limits = Limits { records: 1 + self.rng.below(6), age_ms: i64::MAX, ..Limits::default() };
            let mut salts = Rng(self.rng.next());
            let random = Box::new(move |to: &mut [u8]| {
                to.iter_mut().for_each(|b| *b = salts.next() as u8);
                Ok(())
            });
            self.streams.push(Stream {
                source: source.clone(),
                partition: Partition(number),
                partitions,
                recorder: Recorder::new(spec, limits, config(&self.ledger), random),
                committer_writer: format!("w{n}{number}"),
                next: 0,
                begun: false,
                ended: false,
            });
        }
    }

    fn pair(&mut self) -> Pair {
        let tool = (*self.rng.pick(&TOOLS)).to_owned();
        let candidate = format!("{tool}@{}", self.rng.pick(&["v2", "v3x"]));
        Pair {
            current: format!("{tool}@v1"),
            current_digest: self.object.clone(),
            candidate_digest: self.object.clone(),
            config_digest: self.object.clone(),
            epoch: Digest::of(format!("{tool} {candidate}").as_bytes()),
            comparator: 1,
            tool_id: tool,
            candidate,
        }
    }

    fn observe(&mut self) {
        let pair = self.pair();
        if self.rng.chance(15) {
            let (tool_id, candidate) = (pair.tool_id, pair.candidate);
            self.ledger.append_control(Control::Unobserve { tool_id, candidate }).unwrap();
        } else {
            self.ledger.append_control(Control::Observe { pair }).unwrap();
        }
    }

    fn day_now(&self) -> i32 {
        Timestamp(self.now).day().0
    }

    fn register(&mut self) {
        let control = self.ledger.control_now().unwrap();
        if control.observed.is_empty() {
            return;
        }
        let pair = self.rng.pick(&control.observed).pair.clone();
        let cohort = self.rng.chance(25).then(|| "eu".to_owned());
        let text = format!(
            "burn_in:\n  profile: article\n  tier: T1\n  ceiling: 0.2\n  counted_days: {}\n  max_scored_days: {}\n  min_calls: {}\n  decay: {{days: 1}}\n",
            1 + self.rng.below(3),
            3 + self.rng.below(4),
            1 + self.rng.below(20)
        );
        let mut plan = Plan::parse(&text, "release-policy.yaml").unwrap();
        plan.cohort.clone_from(&cohort);
        let plan = self.ledger.put_object(&plan.canonical().unwrap()).unwrap();
        let open = control
            .registrations
            .iter()
            .find(|r| r.end.is_none() && r.pair.tool_id == pair.tool_id && r.cohort == cohort);
        if let Some(r) = open
            && self.rng.chance(85)
        {
            let reason = "replaced by a new registration".to_owned();
            self.ledger.append_control(Control::EndWindow { registration: r.seq, reason }).unwrap();
        }
        let from = self.day_now() + *self.rng.pick(&[1, 1, 1, 1, 0, -1, 2]);
        let sources = if self.rng.chance(80) { "*" } else { "calls-0.jsonl" };
        self.ledger
            .append_control(Control::Register {
                plan,
                pair,
                scored_from: Day(from),
                sources: vec![sources.to_owned()],
                cohort,
                by: None,
                trial: None,
                diff: None,
            })
            .unwrap();
    }

    fn end_window(&mut self) {
        let control = self.ledger.control_now().unwrap();
        let open: Vec<u64> =
            control.registrations.iter().filter(|r| r.end.is_none()).map(|r| r.seq).collect();
        if !open.is_empty() {
            let registration = *self.rng.pick(&open);
            let reason = "ended".to_owned();
            self.ledger.append_control(Control::EndWindow { registration, reason }).unwrap();
        }
    }

    fn plant(&mut self) {
        let control = self.ledger.control_now().unwrap();
        if control.observed.is_empty() {
            return;
        }
        let pair = self.rng.pick(&control.observed).pair.clone();
        let mut list = PlantList::default();
        for _ in 0..1 + self.rng.below(2) {
            let fresh = format!("plant-{}", self.rng.next());
            let mut known = self.planted.iter().filter(|(tool, _)| *tool == pair.tool_id).map(|(_, id)| id);
            // Now and then an id that is planted already, or that of an ordinary call.
            let call_id = match self.rng.below(12) {
                0 => known.next_back().cloned().unwrap_or(fresh),
                1 => format!("c{}", self.rng.below(30)),
                _ => fresh,
            };
            let expect = self.rng.chance(70).then_some(lastcall_ledger::window::Expect {
                category: Category::TypeChanged,
                severity: Severity::Block,
            });
            self.planted.push((pair.tool_id.clone(), call_id.clone()));
            list.calls.push(PlantedCall { call_id, expect });
        }
        let count = list.calls.len() as u64;
        let list = self.ledger.put_object(&canonical_json(&list).unwrap()).unwrap();
        let (tool_id, candidate) = (pair.tool_id, pair.candidate);
        self.ledger.append_control(Control::Plant { tool_id, candidate, list, count }).unwrap();
    }

    fn call(&mut self) -> String {
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

    fn line(&mut self) -> String {
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
    fn deliver(&mut self, index: usize, line: &str) {
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
            key: None,
            headers: &[],
            cut_off: false,
            prefix: None,
            time: None,
        });
        let actions = stream.recorder.step(input, now).unwrap();
        self.act(index, actions);
    }

    fn begin(&mut self, index: usize) {
        if self.streams[index].begun {
            return;
        }
        let now = Timestamp(self.now);
        let stream = &mut self.streams[index];
        stream.begun = true;
        let committer =
            Committer::new(&self.store, &stream.source, stream.partition, &stream.committer_writer);
        let named = config(&self.ledger);
        committer.begin(SourceKind::File, "x", &named.control, named.at, now).unwrap();
        let mut assigned = committer.assigned().unwrap().unwrap();
        // Later entries say how many partitions there are; the genesis does not know.
        assigned.progress.partitions = stream.partitions;
        let (tail, progress) = (assigned.tail, assigned.progress);
        stream.recorder.step(Input::Configured(Box::new(named)), now).unwrap();
        stream.recorder.step(Input::Assigned { tail, progress }, now).unwrap();
    }

    fn act(&mut self, index: usize, mut actions: Vec<Action>) {
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
    fn settle(&mut self, index: usize, is_final: bool) {
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
            let input = Input::Configured(Box::new(config(&self.ledger)));
            let actions = self.streams[index].recorder.step(input, now).unwrap();
            self.act(index, actions);
        }
    }

    fn limits(&mut self) -> CompactLimits {
        CompactLimits {
            step: 1 + self.rng.below(12) as usize,
            behind: self.rng.below(30) as usize,
            rows: 1 + self.rng.below(40),
            days: 1 + self.rng.below(9) as usize,
        }
    }

    fn hit(&mut self, what: &'static str) {
        *self.said.entry(what).or_default() += 1;
    }

    fn compact(&mut self) {
        let limits = self.limits();
        let racing = Arc::new(Racing {
            inner: self.store.clone(),
            rival: Mutex::new(None),
            left: AtomicI64::new(-1),
            raced: AtomicBool::new(false),
        });
        if self.rng.chance(30) {
            let rival = Ledger::open_in(Arc::new(self.store.clone()), "memory").unwrap();
            *racing.rival.lock().unwrap() = Some((rival, self.limits()));
        }
        let dies = self.rng.chance(25);
        if dies {
            racing.left.store(self.rng.below(12) as i64, Ordering::Relaxed);
        }
        let ledger = Ledger::open_in(racing.clone(), "memory").unwrap();
        match compact_within(&ledger, limits, &mut |_| {}) {
            Ok(done) => {
                if racing.raced.load(Ordering::Relaxed) && done.lost > 0 {
                    self.hit("a compactor lost");
                }
                if done.revised > 0 {
                    self.hit("a day was revised");
                }
                if done.folded > 0 {
                    self.hit("entries were folded");
                }
                let again = compact_within(&ledger, limits, &mut |_| {}).unwrap();
                assert_eq!((again.entries, again.files), (0, 0), "nothing was new");
            }
            Err(error) => {
                assert!(dies, "{error}");
                self.hit("a compactor died");
            }
        }
    }

    fn time_passes(&mut self) {
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

    fn step(&mut self) {
        let index = self.rng.below(self.streams.len() as u64) as usize;
        match self.rng.below(100) {
            0..60 => {
                let line = self.line();
                self.deliver(index, &line);
            }
            60..68 => self.settle(index, false),
            68..76 => self.time_passes(),
            76..79 => self.observe(),
            79..83 => self.register(),
            83 => self.end_window(),
            84 => self.plant(),
            85 => {
                let count = self.streams.iter().map(|s| &s.source).collect::<BTreeSet<_>>().len() as u64;
                if count < 3 {
                    self.add_source(count);
                }
            }
            86 if self.rng.chance(30) => self.settle(index, true),
            87..94 => self.compact(),
            94..96 => self.record_verdict(),
            _ => self.check(),
        }
    }

    fn record_verdict(&mut self) {
        let control = self.ledger.control_now().unwrap();
        let Some(r) = control.registrations.last() else { return };
        let document = self.ledger.put_object(format!("{{\"n\":{}}}", self.rng.below(3)).as_bytes()).unwrap();
        let entry = Control::Verdict {
            registration: r.seq,
            verdict: (*self.rng.pick(&["READY", "INSUFFICIENT"])).to_owned(),
            closed_through: None,
            document,
        };
        self.ledger.append_control(entry).unwrap();
    }

    /// What is read from the index on is what is read from the genesis.
    fn check(&mut self) {
        let open = || Ledger::open_in(Arc::new(self.store.clone()), "memory").unwrap();
        let now = Record::read(open()).unwrap().with_budget(1 + self.rng.below(50));
        let whole = Record::from_genesis(open()).unwrap();
        let subjects = whole.subjects();
        assert_eq!(now.subjects(), subjects);
        assert_eq!(open().control_now().unwrap().fold(), open().control().unwrap().fold());
        assert_eq!(open().now().unwrap().is_none(), whole_clock(&whole).is_none() && self.simulated);
        if self.simulated {
            assert_eq!(open().now().unwrap(), whole_clock(&whole));
        }
        let (mut a, mut b) = (now.gather(&subjects).unwrap(), whole.gather(&subjects).unwrap());
        a.iter_mut().chain(&mut b).for_each(sum_days);
        for (a, b) in a.iter().zip(&b) {
            assert_eq!(format!("{a:#?}"), format!("{b:#?}"));
            for question in [Question::Cutover, Question::Retire] {
                let answer = |input| match question {
                    Question::Cutover => decide(input),
                    other => decide_after_cutover(input, other),
                };
                assert_eq!(canonical_json(&answer(a)).unwrap(), canonical_json(&answer(b)).unwrap());
            }
            self.verdicts += 1;
        }
    }

    /// The day files say of themselves what the daily facts say of them; each call counts once.
    fn check_days(&self) {
        let Some(head) = self.ledger.head().unwrap() else { return };
        for (tool, at) in &head.entry.body.tools {
            let Some(digest) = &at.facts else { continue };
            let facts = read_facts(&self.ledger, digest, tool).unwrap();
            let mut entries = Vec::new();
            let each = |e: &lastcall_ledger::index::DayEntry, newest: bool| {
                if newest {
                    entries.push(e.clone());
                }
            };
            each_day(&self.ledger, &facts, each, |_| {}).unwrap();
            for entry in entries {
                let (mut n, mut k, mut rows, mut seen) = (0, 0, 0, BTreeSet::new());
                for_each_day_row(&self.ledger, &entry, &mut |_, _| true, &mut |row| {
                    assert_eq!((row.row.day, row.row.epoch.as_str()), (entry.day, entry.epoch.as_str()));
                    if !row.planted {
                        rows += row.repeats;
                    }
                    if row.counted {
                        assert!(seen.insert(row.row.call_key), "a call counts twice");
                        n += u64::from(row.row.result == ComparisonResult::Agreed);
                        k += u64::from(row.row.result == ComparisonResult::Disagreed);
                    }
                })
                .unwrap();
                let c = &entry.counts;
                assert_eq!((n, k, rows), (c.agreed, c.disagreed, c.calls), "{tool} {}", entry.day);
                assert_eq!(entry.cohorts.iter().map(|c| c.k).sum::<u64>(), k);
                assert_eq!(entry.units.iter().map(|(_, k, many)| k * many).sum::<u64>(), k);
            }
        }
    }
}

/// Without a registration nothing but the sum of all days is shown, and old days are kept as a sum.
fn sum_days(input: &mut WindowInput) {
    if input.registration.is_none() && !input.days.is_empty() {
        let mut sum = DayCounts::default();
        input.days.values().for_each(|counts| sum.add(counts));
        input.days = BTreeMap::from([(Day(0), sum)]);
    }
}

fn whole_clock(record: &Record) -> Option<Timestamp> {
    record.chains.iter().map(|c| c.progress().and_then(|p| p.clock)).min().flatten()
}

fn run(seed: u64) -> (u64, BTreeMap<&'static str, u64>) {
    let mut world = World::new(seed);
    for _ in 0..60 + world.rng.below(200) {
        world.step();
    }
    for index in 0..world.streams.len() {
        let is_final = world.rng.below(3) == 0;
        world.settle(index, is_final);
    }
    world.check();
    compact(&world.ledger, &mut |_| {}).unwrap();
    world.check();
    world.check_days();
    let report = lastcall_ledger::verify::verify(&world.ledger, &mut |_| {}).unwrap();
    assert_eq!(report.outcome, lastcall_ledger::verify::Outcome::Intact, "{:?}", report.findings);
    (world.verdicts, world.said)
}

#[test]
fn the_index_changes_no_answer() {
    let seeds: Vec<u64> = match std::env::var("LASTCALL_SIM_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => {
            let seeds = std::env::var("LASTCALL_SIM_SEEDS").ok().and_then(|n| n.parse().ok());
            (0..(seeds.unwrap_or(3000u64) / 100).max(10)).collect()
        }
    };
    let one = seeds.len() == 1;
    let (mut verdicts, mut said) = (0, BTreeMap::new());
    for seed in seeds {
        let done = std::panic::catch_unwind(|| run(seed));
        let Ok((n, hits)) = done else { panic!("LASTCALL_SIM_SEED={seed} fails") };
        verdicts += n;
        for (what, n) in hits {
            *said.entry(what).or_insert(0) += n;
        }
    }
    println!("{verdicts} verdicts from the index and from the genesis: the same to the byte; {said:?}");
    if !one {
        for what in ["a compactor lost", "a compactor died", "a day was revised", "entries were folded"] {
            assert!(said.get(what).is_some_and(|n| *n > 0), "never happened: {what}");
        }
    }
}

/// The command on a whole ledger: the same bytes before and after, nothing to do the second time, and verify holds
/// the days against the chunks.
#[test]
fn the_command_changes_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let dir = out.join("ledger").display().to_string();
    let demo = lastcall_tests::run(&["demo", "--out", &out.display().to_string()]);
    assert_eq!(demo.code, 0, "{}", demo.err);
    let asked = ["decide", "--all", "--ledger", &dir, "--dry-run", "--explain", "--format", "json"];
    let told = ["status", "--ledger", &dir, "--format", "json"];
    let before = (lastcall_tests::run(&asked), lastcall_tests::run(&told));
    let compact = ["ledger", "compact", &dir, "--format", "json"];
    let first = lastcall_tests::run(&compact);
    assert_eq!(first.code, 0, "{}", first.err);
    let done: serde_json::Value = serde_json::from_str(&first.out).unwrap();
    assert!(done["days"].as_u64().unwrap() > 0 && done["entries"] == 1, "{done}");
    let second = lastcall_tests::run(&["ledger", "compact", &dir]);
    assert!(second.out.starts_with("nothing new since the last time"), "{}", second.out);
    let after = (lastcall_tests::run(&asked), lastcall_tests::run(&told));
    assert_eq!((before.0.out, before.0.code), (after.0.out, after.0.code));
    assert_eq!(before.1.out, after.1.out);
    let verified = lastcall_tests::run(&["ledger", "verify", &dir]);
    assert_eq!(verified.code, 0, "{}", verified.out);
    // A day file with another byte, and a summary with another count, are found and named.
    let day = files_below(&out.join("ledger/days")).remove(0);
    let mut bytes = std::fs::read(&day).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&day, &bytes).unwrap();
    let found = lastcall_tests::run(&["ledger", "verify", &dir]);
    assert_eq!(found.code, 1, "{}", found.out);
    assert!(found.out.contains("days/") && found.out.contains("altered"), "{}", found.out);
    bytes[middle] ^= 1;
    std::fs::write(&day, &bytes).unwrap();
    let index = out.join("ledger/chains/index/00000000000000000000.json");
    let text = std::fs::read_to_string(&index).unwrap();
    type Change = fn(&mut serde_json::Value);
    let changes: [Change; 5] = [
        |body| body["partitions"][0]["folded"]["newest"] = "2026-01-01T00:00:00.000Z".into(),
        |body| body["partitions"][0]["progress"]["next"] = 1.into(),
        |body| body["control"]["tail"]["digest"] = Digest::of(b"another").as_str().into(),
        |body| body["open"] = serde_json::json!([{"day": "2026-01-01", "calls": 1, "entries": 1}]),
        |body| {
            let tools = body["tools"].as_object_mut().unwrap();
            tools.values_mut().for_each(|tool| tool["newest"] = "2026-01-01".into());
        },
    ];
    for change in changes {
        let mut entry: serde_json::Value = serde_json::from_str(&text).unwrap();
        change(&mut entry["body"]);
        std::fs::write(&index, entry.to_string()).unwrap();
        let found = lastcall_tests::run(&["ledger", "verify", &dir]);
        assert_eq!(found.code, 1, "{}", found.out);
    }
    std::fs::write(&index, text).unwrap();
    assert_eq!(lastcall_tests::run(&["ledger", "verify", &dir]).code, 0);
}

/// A head that was kept elsewhere: an end that was taken away shows, what grew since does not.
#[test]
fn a_head_kept_elsewhere_shows_an_end_that_was_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let at = |path: &std::path::Path| path.display().to_string();
    let demo = lastcall_tests::run(&["demo", "--out", &at(&out)]);
    assert_eq!(demo.code, 0, "{}", demo.err);
    let (whole, cut) = (out.join("ledger"), folder.path().join("cut"));
    let head = |dir: &std::path::Path| lastcall_tests::run(&["ledger", "head", &at(dir)]);
    let none = head(&whole);
    assert!(none.code == 3 && none.err.contains("ledger compact"), "{}", none.err);

    let ok = |args: &[&str]| {
        let said = lastcall_tests::run(args);
        assert_eq!(said.code, 0, "{args:?}: {}{}", said.out, said.err);
        said.out
    };
    ok(&["ledger", "compact", &at(&whole)]);
    let first = head(&whole).out.trim().to_owned();
    for file in files_below(&whole) {
        let copy = cut.join(file.strip_prefix(&whole).unwrap());
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(&file, copy).unwrap();
    }
    ok(&["ledger", "source", &at(&whole), "other.jsonl", "--role", "tool-calls"]);
    ok(&["ledger", "compact", &at(&whole)]);
    let second = head(&whole).out.trim().to_owned();
    assert_ne!(first, second);

    let verify = |dir: &std::path::Path, head: &str| {
        lastcall_tests::run(&["ledger", "verify", &at(dir), "--head", head])
    };
    for (head, entry) in [(&first, "index entry 0"), (&second, "index entry 1")] {
        let said = verify(&whole, head);
        assert!(said.code == 0 && said.out.contains(entry), "{}", said.out);
    }
    let alone = ok(&["ledger", "verify", &at(&cut)]);
    assert!(alone.contains("cannot be excluded"), "{alone}");
    assert_eq!(verify(&cut, &first).code, 0);
    let said = verify(&cut, &second);
    assert!(
        said.code == 1 && said.out.contains("removed or written anew") && said.out.contains(&second),
        "{}",
        said.out
    );
    let said = verify(&cut, "abc");
    assert!(said.code == 2 && said.err.contains("64 hex digits"), "{}", said.err);
}

fn files_below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
