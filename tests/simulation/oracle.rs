//! What the record must say, from what was fed in: one pass, with the configuration that each range names.

use std::collections::{BTreeMap, BTreeSet};

use lastcall_compare::{Comparison, ComparisonResult, Severity};
use lastcall_contract::Digest;
use lastcall_event::{Day, Timestamp};
use lastcall_ledger::entry::{Chunk, FileKind, PartitionBody};
use lastcall_ledger::position::{Offset, Partition};
use lastcall_ledger::store::Store;
use lastcall_tests::stand_in::epoch_of;

use crate::input::{Kind, Made};
use crate::judge::verdict_of;
use crate::steps::{Step, hit};
use crate::world::World;

type RowKey = (i64, String);

/// One row that the days must count.
pub struct Expected {
    pub tool: &'static str,
    pub candidate: String,
    pub day: Day,
    pub id: u64,
    pub result: ComparisonResult,
}

/// What the record says so far, and what it must say.
#[derive(Default)]
struct Sums {
    rows: BTreeMap<RowKey, ComparisonResult>,
    expected_rows: BTreeMap<RowKey, ComparisonResult>,
    expected: Vec<Expected>,
    calls: BTreeMap<String, u64>,
    tally: BTreeMap<String, u64>,
    expected_tally: BTreeMap<String, u64>,
    seen_calls: Vec<i64>,
    seen_dead: Vec<i64>,
    /// Calls and dead letters that have to be gone.
    gone_calls: BTreeSet<i64>,
    gone_dead: BTreeSet<i64>,
    /// Rows that the control chain says are gone.
    told_gone: u64,
    /// Files that entries name, or the control chain puts in their place, by the number in their name.
    named: BTreeMap<String, u64>,
    read: u64,
    others: [u64; 4],
}

/// Holds the partition's chain and its files against the input; the rows that the days must count.
pub fn check(world: &World) -> Vec<Expected> {
    let ledger = &world.owner;
    let chain = ledger.partition(&world.source, Partition(0)).unwrap();
    let control = ledger.control().unwrap();
    let mut sums = Sums::default();
    let (mut next, mut control_seq, mut at) = (0i64, 0u64, Timestamp(i64::MIN));
    for (seq, entry) in chain.entries.iter().enumerate() {
        let named_control = entry.entry.body.control();
        assert_eq!(entry.entry.seq, seq as u64);
        assert!(named_control.seq >= control_seq, "the control entry falls");
        assert!(entry.entry.at >= at, "time falls");
        let there = &control.entries[named_control.seq as usize];
        assert_eq!(there.digest, named_control.digest);
        assert!(entry.entry.at >= there.entry.at, "an entry is older than the control entry that it names");
        (control_seq, at) = (named_control.seq, entry.entry.at);
        let PartitionBody::Chunk(chunk) = &entry.entry.body else {
            assert_eq!(entry.entry.body.progress().next.0, next);
            continue;
        };
        assert_eq!(chunk.range.first.0, next, "hole or overlap");
        assert!(chunk.range.next.0 > next, "an empty chunk");
        next = chunk.range.next.0;
        let inside: Vec<&Made> =
            world.records.iter().filter(|r| chunk.range.contains(Offset(r.offset))).collect();
        sums.gone(world, &inside, at.day());
        sums.files(world, seq as u64, chunk);
        sums.counts(chunk);
        sums.must(&inside, &world.compared[control_seq as usize]);
    }
    sums.settle(world, next);
    let tails = (chain.entries.len() as u64, control.entries.len() as u64);
    check_garbage(world, &sums.named, tails);
    sums.expected
}

impl Sums {
    /// Notes which calls and dead letters of a chunk somebody asked to take out: by id, by session, or by age. A calls
    /// file is old enough by its newest call, or by the day of recording; a dead file by the latter alone.
    fn gone(&mut self, world: &World, inside: &[&Made], recorded: Day) {
        let old = |day: Day| world.expired_again && world.asked_before.is_some_and(|before| day < before);
        let newest = inside.iter().filter_map(|r| r.call()).map(|call| Day(call.day)).max();
        let expired = old(recorded) || newest.is_some_and(old);
        for record in inside {
            match &record.kind {
                Kind::Call(call) if expired || world.is_asked(call) => self.gone_calls.insert(record.offset),
                Kind::Dead if old(recorded) => self.gone_dead.insert(record.offset),
                _ => false,
            };
        }
    }

    /// Every file that stands is whole, and is named once.
    fn files(&mut self, world: &World, seq: u64, chunk: &Chunk) {
        let ledger = &world.owner;
        for file in &chunk.files {
            assert!(self.named.insert(file.path.clone(), seq).is_none(), "{} is named twice", file.path);
            let standing = ledger.standing(file).unwrap();
            self.told_gone += standing.erased + standing.expired;
            if let Some(standing) = standing.file {
                let bytes = world.store.get(&standing.path).unwrap();
                let bytes = bytes.unwrap_or_else(|| panic!("{} is missing", standing.path));
                assert_eq!(bytes.len() as u64, standing.bytes);
                assert_eq!(Digest::of(&bytes), standing.sha256);
                if standing != *file {
                    let seq: u64 = standing.path.rsplit('-').nth(1).unwrap().parse().unwrap();
                    assert!(self.named.insert(standing.path.clone(), seq).is_none());
                }
            }
            assert!(file.rows > 0 && file.kind.as_str() == file.path.split('/').next().unwrap());
        }
        let mut salts = BTreeMap::new();
        ledger
            .for_each_call(chunk, |row| {
                self.seen_calls.push(row.position.offset);
                salts.insert(row.position.offset, row.commitment());
            })
            .unwrap();
        ledger.for_each_dead(chunk, |row| self.seen_dead.push(row.position.offset)).unwrap();
        ledger
            .for_each_result(chunk, |row| {
                if let Some(commitment) = salts.get(&row.position.offset) {
                    assert_eq!(*commitment, row.commitment, "a commitment is not that of its call");
                }
                let key = (row.position.offset, row.candidate.clone());
                assert!(self.rows.insert(key, row.result).is_none(), "a row stands twice");
            })
            .unwrap();
    }

    /// What the entry counts.
    fn counts(&mut self, chunk: &Chunk) {
        let b = &chunk.balance;
        assert_eq!(b.read, b.calls + b.dead + b.other);
        self.read += b.read;
        for (sum, n) in self.others.iter_mut().zip([b.blank, b.clock, b.coverage, b.loss]) {
            *sum += n;
        }
        for count in &chunk.calls {
            *self.calls.entry(format!("{:?}", count.key())).or_default() += count.calls;
        }
        for t in &chunk.tallies {
            let c = &t.counts;
            let head = format!("{} {} {} {:?} {:?}", t.day, t.tool, t.epoch, t.cohort, t.agent);
            let mut add = |name: &str, n: u64| {
                if n > 0 {
                    *self.tally.entry(format!("{head} {name}")).or_default() += n;
                }
            };
            add("agreed", c.agreed);
            add("disagreed", c.disagreed);
            add("excluded", c.excluded);
            add("unresolved", c.unresolved);
            add("both_rejected", c.both_rejected);
            add("block", c.block_or_refused);
            for map in [&c.categories, &c.reasons, &c.evidence, &c.rules] {
                map.iter().for_each(|(k, n)| add(k, n));
            }
            assert_eq!(c.fidelity.get("raw"), Some(c.rows()));
        }
        for e in &chunk.exposure {
            let head = format!("{} {} place {}", e.day, e.epoch, e.place);
            *self.tally.entry(format!("{head} touched")).or_default() += e.touched;
            *self.tally.entry(format!("{head} disagreed")).or_default() += e.disagreed;
        }
    }

    /// What a clean pass over the chunk's records comes to.
    fn must(&mut self, inside: &[&Made], compared: &BTreeSet<(String, String)>) {
        for (record, call) in inside.iter().filter_map(|r| Some((r, r.call()?))) {
            for (_, candidate) in compared.iter().filter(|(tool, _)| tool == call.tool) {
                if call.contract.is_some_and(|c| c != "v1") {
                    continue;
                }
                let said = verdict_of(call.id, candidate);
                self.expected_rows.insert((record.offset, candidate.clone()), said.result);
                let (day, id, result) = (Day(call.day), call.id, said.result);
                self.expected.push(Expected {
                    tool: call.tool,
                    candidate: candidate.clone(),
                    day,
                    id,
                    result,
                });
                let owned = |text: &Option<&str>| text.map(str::to_owned);
                let epoch = epoch_of(call.tool, candidate);
                let (cohort, agent) = (owned(&call.cohort), owned(&call.agent));
                let head = format!("{day} {} {epoch} {cohort:?} {agent:?}", call.tool);
                expect(&mut self.expected_tally, &head, &format!("{day} {epoch}"), &said);
            }
        }
    }

    fn settle(&mut self, world: &World, next: i64) {
        self.tally.retain(|_, n| *n > 0);
        assert_eq!(self.tally, self.expected_tally, "tallies");
        assert_eq!(self.rows, self.expected_rows, "rows");
        let offsets = |wanted: fn(&Kind) -> bool| -> Vec<i64> {
            world.records.iter().filter(|r| wanted(&r.kind)).map(|r| r.offset).collect()
        };
        let mut calls = offsets(|k| matches!(k, Kind::Call(_)));
        let mut dead = offsets(|k| matches!(k, Kind::Dead));
        let all = (calls.len() + dead.len()) as u64;
        let there: BTreeSet<i64> = self.seen_calls.iter().chain(&self.seen_dead).copied().collect();
        if world.asked_before.is_some() && !world.expired_again {
            // Whether it was refused every time or only the last time is not known here.
            calls.retain(|offset| there.contains(offset));
            dead.retain(|offset| there.contains(offset));
        }
        calls.retain(|offset| !self.gone_calls.contains(offset));
        dead.retain(|offset| !self.gone_dead.contains(offset));
        assert_eq!(self.seen_calls, calls, "every call once, in order, but those that were to go");
        assert_eq!(self.seen_dead, dead, "every dead letter once, in order, but those that were to go");
        assert_eq!(self.told_gone, all - there.len() as u64, "rows that the control chain says are gone");
        let count = |wanted: fn(&Kind) -> bool| offsets(wanted).len() as u64;
        let others = [
            count(|k| matches!(k, Kind::Blank)),
            count(|k| matches!(k, Kind::Clock)),
            count(|k| matches!(k, Kind::Coverage)),
            count(|k| matches!(k, Kind::Loss)),
        ];
        assert_eq!(self.others, others);
        assert_eq!(self.read, world.records.len() as u64, "every record in exactly one chunk");
        assert!(next >= world.records.last().unwrap().next && next <= world.end, "{next} of {}", world.end);
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for call in world.records.iter().filter_map(Made::call) {
            let owned = |text: &Option<&str>| text.map(str::to_owned);
            let contract = call.contract.map(|v| format!("{}@{v}", call.tool));
            let key =
                (Day(call.day), call.tool.to_owned(), contract, owned(&call.cohort), owned(&call.agent));
            *expected.entry(format!("{key:?}")).or_default() += 1;
        }
        assert_eq!(self.calls, expected, "call counts");
    }
}

/// Garbage is exactly what no entry names, and its name says so; after `gc` only what may be in flight is left of it.
fn check_garbage(world: &World, named: &BTreeMap<String, u64>, (tail, control): (u64, u64)) {
    for kind in FileKind::ALL {
        for path in world.store.list(kind.as_str()).unwrap() {
            let seq: u64 = path.rsplit('-').nth(1).unwrap().parse().unwrap();
            match named.get(&path) {
                Some(by) => assert_eq!(*by, seq, "{path}"),
                None => {
                    hit(Step::garbage);
                    let tail = if path.contains("/control-") { control } else { tail };
                    assert!(seq <= tail, "{path} is ahead of its chain");
                    assert!(!world.collected || seq == tail, "gc left {path}");
                }
            }
        }
    }
}

/// Adds what one row counts for, said once more in the oracle's own words.
fn expect(tally: &mut BTreeMap<String, u64>, head: &str, places: &str, said: &Comparison) {
    let compared = matches!(said.result, ComparisonResult::Agreed | ComparisonResult::Disagreed);
    let mut names: BTreeSet<String> = BTreeSet::new();
    names.insert(format!("{head} {}", said.result.as_str()));
    if let Some(reason) = said.reason {
        names.insert(format!("{head} {}", reason.as_str()));
    }
    for d in &said.discrepancies {
        names.insert(format!("{head} {}/{}", d.category, d.severity));
        if said.result == ComparisonResult::Disagreed && (d.refused || d.severity == Severity::Block) {
            names.insert(format!("{head} block"));
        }
    }
    for rule in &said.rules {
        names.insert(format!("{head} {rule}"));
    }
    if compared {
        let e = said.evidence;
        for (on, name) in [(e.validation, "validation"), (e.arguments, "arguments"), (e.outcome, "outcome")] {
            if on {
                names.insert(format!("{head} {name}"));
            }
        }
        names.extend(said.touched.iter().map(|p| format!("{places} place {p} touched")));
        names.extend(said.disagreed_at.iter().map(|p| format!("{places} place {p} disagreed")));
    }
    for name in names {
        *tally.entry(name).or_default() += 1;
    }
}
