//! The world of one seed: a store, a source, recorders that come and go, and the processes beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lastcall_contract::Digest;
use lastcall_decision::Plan;
use lastcall_event::{Day, Preset, Timestamp};
use lastcall_ledger::control::{Control, Role, SourceKind};
use lastcall_ledger::erasure::{Selection, erase, expire};
use lastcall_ledger::gc::{Why, gc};
use lastcall_ledger::index::{CompactLimits, compact_within};
use lastcall_ledger::store::{Created, MemoryStore, Store};
use lastcall_ledger::{Ledger, LedgerClock, LedgerError};
use lastcall_record::Input;
use lastcall_tests::answers::same_answers;
use lastcall_tests::chance::Rng;
use lastcall_tests::stand_in::pair;

use crate::hands::{Beside, Done, HANDS, Hand, Task, Turns, expiry, request};
use crate::index::copy_of;
use crate::input::{Call, FIRST_DAY, Made, TOOLS, make_records};
use crate::recorder::Up;
use crate::steps::{Step, hit};
use crate::store::{Broken, Faults, FaultyStore, Late, Under, Who};

pub struct World {
    pub rng: Rng,
    pub dense: bool,
    pub simulated: bool,
    pub source: String,
    pub records: Vec<Made>,
    pub end: i64,
    /// The truth.
    pub store: Under,
    /// The same, as processes reach it.
    pub reached: Under,
    pub owner: Ledger,
    object: Digest,
    plan: Digest,
    /// Compared (tool, candidate) after each control entry, kept by the test itself: the oracle's configuration.
    pub compared: Vec<BTreeSet<(String, String)>>,
    observed: BTreeSet<(String, String)>,
    windows: BTreeMap<u64, (String, String)>,
    pub now: i64,
    pub late: Late,
    pub broken: Option<Broken>,
    writers: Vec<Option<Box<Up>>>,
    hands: Vec<Option<Hand>>,
    pub beside: Arc<Beside>,
    /// Whose calls somebody asked to erase.
    asked_ids: BTreeSet<u64>,
    asked_sessions: BTreeSet<u64>,
    /// The last day before which somebody let files expire.
    pub asked_before: Option<Day>,
    /// Whether that was asked for again at the end.
    pub expired_again: bool,
    /// Whether garbage was removed at the end.
    pub collected: bool,
}

impl World {
    pub fn new(seed: u64, broken: Option<Broken>) -> Self {
        let store = Under::Memory(MemoryStore::default());
        Self::over(store.clone(), store, seed, broken)
    }

    pub fn over(store: Under, reached: Under, seed: u64, broken: Option<Broken>) -> Self {
        let mut rng = Rng(seed);
        let (dense, simulated) = (rng.chance(50), rng.chance(40));
        if simulated {
            hit(Step::simulated);
        }
        let clock = if simulated { LedgerClock::Simulated } else { LedgerClock::System };
        let owner = Ledger::init_in(Arc::new(store.clone()), clock, "sim").unwrap();
        let object = owner.put_object(b"{}").unwrap();
        let text = "burn_in:\n  profile: article\n  tier: T1\n  ceiling: 0.2\n  counted_days: 1\n  max_scored_days: 3\n  \
             min_calls: 2\n  decay: {days: 1}\n";
        let plan = Plan::parse(text, "release-policy.yaml").unwrap();
        let plan = owner.put_object(&plan.canonical().unwrap()).unwrap();
        let source = "src é/1".to_owned();
        let records = make_records(&mut rng, dense);
        let beyond = if !dense && rng.chance(50) { 1 + rng.below(3) as i64 } else { 0 };
        let end = records.last().map_or(0, |r| r.next) + beyond;
        let writers = (0..1 + rng.below(3)).map(|_| None).collect();
        let mut world = Self {
            rng,
            dense,
            simulated,
            source: source.clone(),
            records,
            end,
            store,
            reached,
            owner,
            object,
            plan,
            compared: vec![BTreeSet::new()],
            observed: BTreeSet::new(),
            windows: BTreeMap::new(),
            now: i64::from(FIRST_DAY) * 86_400_000,
            late: Late::default(),
            broken,
            writers,
            hands: HANDS.iter().map(|_| None).collect(),
            beside: Arc::default(),
            asked_ids: BTreeSet::new(),
            asked_sessions: BTreeSet::new(),
            asked_before: None,
            expired_again: false,
            collected: false,
        };
        world.append_control(Control::Source {
            name: source,
            role: Role::ToolCalls,
            source_kind: if dense { SourceKind::File } else { SourceKind::Topic },
            preset: Preset::Native,
            lateness_ms: 3_600_000,
        });
        world.change_pairs();
        world
    }

    /// Whether somebody asked to erase a call.
    pub fn is_asked(&self, call: &Call) -> bool {
        self.asked_ids.contains(&call.id) || call.session.is_some_and(|s| self.asked_sessions.contains(&s))
    }

    fn append_control(&mut self, control: Control) {
        let (seq, _) = self.owner.append_control(control.clone()).unwrap();
        // What others appended meanwhile changes no pair.
        while self.compared.len() < seq as usize {
            self.compared.push(self.compared.last().unwrap().clone());
        }
        match control {
            Control::Observe { pair } => {
                self.observed.insert((pair.tool_id, pair.candidate));
            }
            Control::Unobserve { tool_id, candidate } => {
                self.observed.remove(&(tool_id, candidate));
            }
            Control::Register { pair, .. } => {
                self.windows.insert(seq, (pair.tool_id, pair.candidate));
            }
            Control::EndWindow { registration, .. } => {
                self.windows.remove(&registration);
            }
            _ => {}
        }
        self.compared.push(self.observed.iter().chain(self.windows.values()).cloned().collect());
    }

    /// Erasures and expiries stand in the control chain and change no pair.
    fn follow(&mut self) {
        let entries = self.owner.control().unwrap().entries.len();
        while self.compared.len() < entries {
            self.compared.push(self.compared.last().unwrap().clone());
        }
    }

    fn change_pairs(&mut self) {
        let tool = *self.rng.pick(&TOOLS);
        let candidate = format!("{tool}@{}", self.rng.pick(&["v2", "v3x"]));
        let open = self.windows.keys().next().copied();
        match (self.rng.below(10), open) {
            (0 | 1, _) => {
                let tool_id = tool.to_owned();
                self.append_control(Control::Unobserve { tool_id, candidate });
            }
            (2, Some(registration)) => {
                self.append_control(Control::EndWindow { registration, reason: "ended".to_owned() });
            }
            (3 | 4, _) => {
                hit(Step::registered);
                let scored_from = Day(FIRST_DAY + self.rng.below(3) as i32);
                let cohort = self.rng.chance(25).then(|| "eu".to_owned());
                self.append_control(Control::Register {
                    plan: self.plan.clone(),
                    pair: pair(tool, &candidate, &self.object),
                    scored_from,
                    sources: vec!["*".to_owned()],
                    cohort,
                    by: None,
                    trial: None,
                    diff: None,
                });
            }
            _ => self.append_control(Control::Observe { pair: pair(tool, &candidate, &self.object) }),
        }
    }

    pub fn land_late(&mut self) {
        let landing = std::mem::take(&mut *self.late.lock().unwrap());
        for (path, bytes) in landing {
            match self.store.create(&path, &bytes).unwrap() {
                Created::Yes => hit(Step::ambiguous_late_landed),
                Created::Exists => hit(Step::ambiguous_late_refused),
            }
        }
    }

    // ------------------------------------------------------------------------------------------ beside the recorders

    /// Something to do, and a note of what was asked for.
    fn task(&mut self, who: Who) -> Task {
        match who {
            Who::Compactor => Task::Compact(CompactLimits {
                step: 1 + self.rng.below(12) as usize,
                behind: *self.rng.pick(&[0, 1, 3, 1024]),
                rows: 4 + self.rng.below(60),
                days: 1 + self.rng.below(9) as usize,
            }),
            Who::Eraser => {
                let mut selection = Selection::default();
                if self.rng.chance(30) {
                    let session = self.rng.below(5);
                    self.asked_sessions.insert(session);
                    selection.sessions.insert(format!("s{session}"));
                } else {
                    for _ in 0..1 + self.rng.below(3) {
                        let id = self.rng.below(self.records.len() as u64);
                        self.asked_ids.insert(id);
                        selection.call_ids.insert(format!("c{id}"));
                    }
                }
                Task::Erase(selection)
            }
            Who::Expirer => {
                let before = Day(FIRST_DAY + *self.rng.pick(&[0, 1, 1, 1, 2]));
                self.asked_before = self.asked_before.max(Some(before));
                Task::Expire(before)
            }
            Who::Collector => Task::Collect,
            Who::Recorder => unreachable!("recorders stand elsewhere"),
        }
    }

    fn begin_hand(&mut self, at: usize, percent: u64) {
        let who = HANDS[at];
        let task = self.task(who);
        let faults = Faults { rng: Rng(self.rng.next()), percent, late: self.late.clone() };
        let turns = Arc::new(Turns::default());
        let store = FaultyStore::hand(self.reached.clone(), who, self.broken, faults, turns);
        self.hands[at] = Some(Hand::begin(Arc::new(store), task, &self.beside));
    }

    /// Lets one of the processes beside the recorders go on, or begins it.
    fn hand(&mut self, percent: u64) {
        let at = self.rng.below(HANDS.len() as u64) as usize;
        let Some(hand) = &self.hands[at] else { return self.begin_hand(at, percent) };
        if hand.go_on(1 + self.rng.below(40)) {
            self.end_hand(at);
        }
    }

    fn end_hand(&mut self, at: usize) {
        let Some(hand) = self.hands[at].take() else { return };
        let (done, hurt) = hand.end();
        match done {
            Ok(done) => note(HANDS[at], &done),
            Err(LedgerError::Refused(why)) if why.contains("future") => {}
            // Only what was done to it may stop it: never what others do beside it.
            Err(error) => assert!(hurt || self.broken.is_some(), "{:?}: {error}", HANDS[at]),
        }
        self.follow();
    }

    /// They come to their end, or are killed where they stand.
    fn end_hands(&mut self) {
        for at in 0..self.hands.len() {
            if self.rng.chance(50) {
                self.end_hand(at);
            }
        }
        self.hands.iter_mut().for_each(|hand| *hand = None);
    }

    // ----------------------------------------------------------------------------------------------------------- run

    pub fn run(&mut self) {
        let percent = *self.rng.pick(&[0, 5, 15, 30]);
        // What is done beside dies less often, or it would never come far.
        let beside = percent / 2;
        for _ in 0..30 + self.rng.below(120) {
            self.now += self.rng.below(5_000) as i64;
            match self.rng.below(40) {
                0 => {
                    hit(Step::clock_back);
                    self.now -= self.rng.below(100_000_000) as i64;
                }
                1 => self.now += self.rng.below(100_000_000) as i64,
                2 => {
                    hit(Step::control_grew);
                    self.change_pairs();
                }
                3..6 => self.land_late(),
                6..24 => self.hand(beside),
                _ => {}
            }
            let index = self.rng.below(self.writers.len() as u64) as usize;
            self.writers[index] = match self.writers[index].take() {
                None => self.start(percent),
                Some(mut up) => self.step(&mut up).then_some(up),
            };
        }
        self.finish_all();
    }

    /// Everything that runs dies; late answers land; sound processes go on to the end.
    fn finish_all(&mut self) {
        self.writers.clear();
        self.end_hands();
        self.land_late();
        let mut up = self.start(0).expect("nothing fails any more");
        while up.cursor < self.records.len() {
            assert!(self.deliver(&mut up) && self.finish(&mut up));
        }
        assert!(self.barrier(&mut up, true) && self.finish(&mut up));
        let actions = up.recorder.step(Input::Close, Timestamp(self.now)).unwrap();
        assert!(self.take(&mut up, actions) && self.finish(&mut up) && self.finish(&mut up));
        assert!(up.recorder.is_idle(), "something is left open");
        if self.broken.is_none() && self.rng.chance(20) {
            self.same_answers();
        }
        // What was asked for and came afterwards, or died on the way, goes with the same request again.
        let selection = Selection {
            call_ids: self.asked_ids.iter().map(|id| format!("c{id}")).collect(),
            sessions: self.asked_sessions.iter().map(|session| format!("s{session}")).collect(),
            ..Selection::default()
        };
        if !selection.is_empty() && !erase(&self.owner, &request(&selection)).unwrap().entries.is_empty() {
            hit(Step::erased_later);
        }
        if let Some(before) = self.asked_before {
            self.expired_again = match expire(&self.owner, &expiry(before)) {
                Ok(_) => true,
                Err(LedgerError::Refused(_)) => false,
                Err(error) => panic!("{error}"),
            };
        }
        self.follow();
        // Everything is folded, and what the folds so far left open is taken in.
        let limits = CompactLimits { behind: 0, ..CompactLimits::default() };
        compact_within(&self.owner, limits, &mut |_| {}).unwrap();
        self.collected = self.rng.chance(50);
        if self.collected {
            note(Who::Collector, &Done::Collected(gc(&self.owner, true, &mut |_| {}).unwrap()));
        }
    }

    /// What came of it, to be looked at without the network.
    pub fn bring_home(&mut self) {
        self.store = Under::Memory(copy_of(&self.store));
        self.owner = Ledger::open_in(Arc::new(self.store.clone()), "sim").unwrap();
    }

    /// What is read from the index on is what is read from the genesis.
    pub fn same_answers(&mut self) -> u64 {
        let open = || Ledger::open_in(Arc::new(self.store.clone()), "sim").unwrap();
        same_answers(open, 1 + self.rng.below(50))
    }
}

/// Counts what a process did.
fn note(who: Who, done: &Done) {
    let when = |happened: bool, step: Step| {
        if happened {
            hit(step);
        }
    };
    match done {
        Done::Compacted(done) => {
            when(done.folded > 0, Step::folded);
            when(done.revised > 0, Step::revised);
            when(done.lost > 0, Step::compaction_lost);
        }
        Done::Erased(done, by_session) => {
            let step = if *by_session { Step::erased_session } else { Step::erased };
            when(!done.entries.is_empty(), step);
        }
        Done::Expired(done) => when(!done.entries.is_empty(), Step::expired),
        Done::Collected(found) => {
            assert_eq!(who, Who::Collector);
            let superseded = |why: &Why| matches!(why, Why::Superseded { .. });
            when(found.garbage.iter().any(|g| !superseded(&g.why)), Step::collected);
            when(found.garbage.iter().any(|g| g.path.starts_with("days/")), Step::collected_day);
            when(found.garbage.iter().any(|g| superseded(&g.why)), Step::collected_superseded);
            when(!found.left.is_empty(), Step::left_in_flight);
        }
    }
}
