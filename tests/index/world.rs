//! The world of one seed: a ledger that grows, with repeats, late calls, plants, and windows that begin and end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lastcall_compare::{Category, ComparisonResult, Severity};
use lastcall_contract::Digest;
use lastcall_decision::{Plan, canonical_json};
use lastcall_event::{Day, Preset, Timestamp};
use lastcall_ledger::control::{Control, Pair, Role, SourceKind};
use lastcall_ledger::index::{compact, each_named_day, for_each_day_row};
use lastcall_ledger::position::Partition;
use lastcall_ledger::store::MemoryStore;
use lastcall_ledger::window::{PlantList, PlantedCall};
use lastcall_ledger::{Ledger, LedgerClock};
use lastcall_record::{Config, Limits, Recorder, Spec};
use lastcall_tests::answers::same_answers;
use lastcall_tests::chance::Rng;
use lastcall_tests::stand_in::{config, pair};

use crate::feed::says;

pub const FIRST: i32 = 20_605;
pub const DAY_MS: i64 = 86_400_000;
pub const TOOLS: [&str; 3] = ["search", "refund", "send"];

pub struct Stream {
    pub source: String,
    pub partition: Partition,
    pub partitions: i32,
    pub recorder: Recorder,
    pub committer_writer: String,
    pub next: i64,
    pub begun: bool,
    pub ended: bool,
}

pub struct World {
    pub rng: Rng,
    pub store: MemoryStore,
    pub ledger: Ledger,
    pub simulated: bool,
    pub now: i64,
    pub object: Digest,
    pub streams: Vec<Stream>,
    pub planted: Vec<(String, String)>,
    pub verdicts: u64,
    pub said: BTreeMap<&'static str, u64>,
}

pub fn configured(ledger: &Ledger) -> Config {
    config(&ledger.control().unwrap(), says)
}

impl World {
    pub fn new(seed: u64) -> Self {
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

    pub fn add_source(&mut self, n: u64) {
        let source = format!("calls-{n}.jsonl");
        let role = if self.rng.chance(90) { Role::ToolCalls } else { Role::MirroredCalls };
        self.ledger
            .append_control(Control::Source {
                name: source.clone(),
                role,
                source_kind: SourceKind::File,
                preset: Preset::Native,
                lateness_ms: 3_600_000,
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
            let random = self.rng.salts();
            self.streams.push(Stream {
                source: source.clone(),
                partition: Partition(number),
                partitions,
                recorder: Recorder::new(spec, limits, configured(&self.ledger), random),
                committer_writer: format!("w{n}{number}"),
                next: 0,
                begun: false,
                ended: false,
            });
        }
    }

    pub fn pair(&mut self) -> Pair {
        let tool = *self.rng.pick(&TOOLS);
        let candidate = format!("{tool}@{}", self.rng.pick(&["v2", "v3x"]));
        pair(tool, &candidate, &self.object)
    }

    pub fn observe(&mut self) {
        let pair = self.pair();
        if self.rng.chance(15) {
            let (tool_id, candidate) = (pair.tool_id, pair.candidate);
            self.ledger.append_control(Control::Unobserve { tool_id, candidate }).unwrap();
        } else {
            self.ledger.append_control(Control::Observe { pair }).unwrap();
        }
    }

    pub fn day_now(&self) -> i32 {
        Timestamp(self.now).day().0
    }

    pub fn register(&mut self) {
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

    pub fn end_window(&mut self) {
        let control = self.ledger.control_now().unwrap();
        let open: Vec<u64> =
            control.registrations.iter().filter(|r| r.end.is_none()).map(|r| r.seq).collect();
        if !open.is_empty() {
            let registration = *self.rng.pick(&open);
            let reason = "ended".to_owned();
            self.ledger.append_control(Control::EndWindow { registration, reason }).unwrap();
        }
    }

    pub fn plant(&mut self) {
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

    pub fn hit(&mut self, what: &'static str) {
        *self.said.entry(what).or_default() += 1;
    }

    pub fn step(&mut self) {
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
            96 if self.rng.chance(20) => self.export(),
            _ => self.check(),
        }
    }

    pub fn record_verdict(&mut self) {
        let control = self.ledger.control_now().unwrap();
        let Some(r) = control.registrations.last() else { return };
        let verdict = (*self.rng.pick(&["READY", "INSUFFICIENT"])).to_owned();
        let document = serde_json::json!({
            "verdict": verdict, "registration": {"seq": r.seq}, "tails": [], "n": self.rng.below(3),
        });
        let document = self.ledger.put_object(document.to_string().as_bytes()).unwrap();
        let entry = Control::Verdict { registration: r.seq, verdict, closed_through: None, document };
        self.ledger.append_control(entry).unwrap();
    }

    /// What is read from the index on is what is read from the genesis.
    pub fn check(&mut self) {
        let open = || Ledger::open_in(Arc::new(self.store.clone()), "memory").unwrap();
        self.verdicts += same_answers(open, 1 + self.rng.below(50));
    }

    /// The day files say of themselves what the daily facts say of them; each call counts once.
    pub fn check_days(&self) {
        let Some(head) = self.ledger.head().unwrap() else { return };
        let mut entries = Vec::new();
        each_named_day(&self.ledger, &head.entry.body, |tool, entry, newest| {
            if newest {
                entries.push((tool.to_owned(), entry.clone()));
            }
        })
        .unwrap();
        for (tool, entry) in entries {
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

/// Runs one seed: how many verdicts were compared, and what happened how often.
pub fn run(seed: u64) -> (u64, BTreeMap<&'static str, u64>) {
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
    world.export();
    let report = lastcall_ledger::verify::verify(&world.ledger, &mut |_| {}).unwrap();
    assert_eq!(report.outcome, lastcall_ledger::verify::Outcome::Intact, "{:?}", report.findings);
    (world.verdicts, world.said)
}
