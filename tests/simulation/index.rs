//! What the index must say: the days, held against the input; and the whole of it, computed again from the genesis.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lastcall_compare::ComparisonResult;
use lastcall_contract::Digest;
use lastcall_event::Day;
use lastcall_ledger::Ledger;
use lastcall_ledger::index::{
    CompactLimits, DayEntry, DayRow, IndexBody, compact_within, each_named_day, for_each_day_row,
    index_entry, read_facts,
};
use lastcall_ledger::store::{MemoryStore, Store};
use lastcall_ledger::verify::{Outcome, verify};
use lastcall_tests::stand_in::epoch_of;

use crate::oracle::Expected;
use crate::steps::{Step, hit};
use crate::world::World;

type Days = BTreeMap<(String, Day, Digest), (DayEntry, Vec<DayRow>)>;

/// The days that an index entry names, with their rows; where the entry and its files say so is left out.
fn days_of(ledger: &Ledger, body: &IndexBody) -> Days {
    let mut entries = Vec::new();
    each_named_day(ledger, body, |tool, entry, newest| {
        if newest {
            entries.push((tool.to_owned(), entry.clone()));
        }
    })
    .unwrap();
    let mut days = Days::new();
    for (tool, entry) in entries {
        let mut rows = Vec::new();
        for_each_day_row(ledger, &entry, &mut |_, _| true, &mut |row| rows.push(row.clone())).unwrap();
        rows.sort_by(|a, b| (&a.source, a.row.position).cmp(&(&b.source, b.row.position)));
        let key = (tool, entry.day, entry.epoch.clone());
        let entry = DayEntry { revision: 0, files: Vec::new(), ..entry };
        assert!(days.insert(key, (entry, rows)).is_none(), "a day has two newest revisions");
    }
    days
}

/// Holds the newest index entry against the input and against a computation from the genesis; every file that any
/// index entry names stands. `thorough`: verify finds nothing either.
pub fn check(world: &mut World, expected: &[Expected], thorough: bool) {
    let ledger = world.owner.clone();
    let head = ledger.head().unwrap().expect("it was compacted").entry;
    let days = days_of(&ledger, &head.body);
    check_days(&days, expected);
    check_files(world, &ledger, head.seq);

    let copy = copy_of(&world.store);
    for path in copy.list("chains/index").unwrap() {
        copy.delete(&path).unwrap();
    }
    let copy = Ledger::open_in(Arc::new(copy), "again").unwrap();
    compact_within(&copy, CompactLimits { behind: 0, ..CompactLimits::default() }, &mut |_| {}).unwrap();
    let newly = copy.head().unwrap().expect("it was compacted").entry.body;
    assert_eq!(days_of(&copy, &newly), days, "days computed from the genesis are other ones");
    assert_eq!(without_facts(&newly), without_facts(&head.body), "an index from the genesis is another one");
    assert_eq!(planted(&copy, &newly), planted(&ledger, &head.body));
    world.same_answers();
    if thorough {
        let report = verify(&ledger, &mut |_| {}).unwrap();
        assert_eq!(report.outcome, Outcome::Intact, "{:?}", report.findings);
    }
}

/// Everything but what earlier compactions may have chosen: how the daily facts are cut into objects. And a tool that was
/// observed for a while and never called is known only to whoever folded in that time.
fn without_facts(body: &IndexBody) -> IndexBody {
    let mut body = body.clone();
    body.tools.retain(|_, tool| tool.newest.is_some());
    body.tools.values_mut().for_each(|tool| tool.facts = None);
    body
}

fn planted(ledger: &Ledger, body: &IndexBody) -> usize {
    let facts = body.tools.iter().filter_map(|(tool, at)| Some((tool, at.facts.as_ref()?)));
    facts.map(|(tool, digest)| read_facts(ledger, digest, tool).unwrap().planted.len()).sum()
}

/// A ledger's files in memory.
pub fn copy_of(store: &dyn Store) -> MemoryStore {
    let copy = MemoryStore::default();
    let folders = ["chains", "objects", "calls", "results", "dead", "days"];
    let paths = folders.iter().flat_map(|folder| store.list(folder).unwrap());
    for path in paths.chain(["ledger.json".to_owned()]) {
        let bytes = store.get(&path).unwrap().expect("it is listed");
        copy.put(&path, &bytes).unwrap();
    }
    copy
}

/// Each call of a day counts once, as a clean pass says.
fn check_days(days: &Days, expected: &[Expected]) {
    type Said = (u64, BTreeMap<u64, ComparisonResult>);
    let mut must: BTreeMap<(String, Day, Digest), Said> = BTreeMap::new();
    for row in expected {
        let key = (row.tool.to_owned(), row.day, epoch_of(row.tool, &row.candidate));
        let said = must.entry(key).or_default();
        said.0 += 1;
        said.1.insert(row.id, row.result);
    }
    assert_eq!(days.keys().collect::<Vec<_>>(), must.keys().collect::<Vec<_>>(), "days");
    for (key, (entry, rows)) in days {
        let (calls, said) = &must[key];
        let count = |result| said.values().filter(|r| **r == result).count() as u64;
        let c = &entry.counts;
        assert_eq!((c.calls, c.duplicate), (*calls, calls - said.len() as u64), "{key:?}");
        assert_eq!(c.agreed, count(ComparisonResult::Agreed), "{key:?}");
        assert_eq!(c.disagreed, count(ComparisonResult::Disagreed), "{key:?}");
        assert_eq!(rows.iter().filter(|row| row.counted).count(), said.len(), "{key:?}");
        assert_eq!(rows.iter().map(|row| row.repeats).sum::<u64>(), *calls, "{key:?}");
    }
}

/// Nothing that an index entry names was removed, however old; what none names is garbage.
fn check_files(world: &World, ledger: &Ledger, head: u64) {
    let mut named: BTreeSet<String> = BTreeSet::new();
    for seq in 0..=head {
        let body = index_entry(&world.store, seq).unwrap().expect("the chain has no hole").entry.body;
        each_named_day(ledger, &body, |_, entry, _| {
            named.extend(entry.files.iter().map(|file| file.path.clone()));
        })
        .unwrap();
    }
    let there: BTreeSet<String> = world.store.list("days").unwrap().into_iter().collect();
    assert!(named.is_subset(&there), "removed: {:?}", named.difference(&there));
    for path in there.difference(&named) {
        hit(Step::garbage_day);
        let seq: u64 = path.rsplit('/').next().unwrap().split('-').next().unwrap().parse().unwrap();
        assert!(seq <= head + 1, "{path} is ahead of the index");
        assert!(!world.collected || seq > head, "gc left {path}");
    }
}
