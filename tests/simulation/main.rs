//! The simulation: from one seed it crashes recorders at every step, makes answers ambiguous, delivers twice, lets
//! writers race, moves clocks and the control chain; beside them two processes compact, two erase, one lets files expire
//! and one removes garbage, each stopped, killed and answered unclearly at every step of its own path. Then it holds
//! the record, its files and its index against what the seed fed in.
//!
//! The recorder, the committer and the ledger are the product's; the store, the comparator and the oracle are not.
//! `LASTCALL_SIM_SEEDS` says how many seeds run in memory (600; below 1,500 not everything needs to have happened),
//! `LASTCALL_SIM_SEED` runs one; `LASTCALL_DISK_SEEDS` how many in a folder (10), `LASTCALL_S3_SEEDS` how many over a
//! bucket behind a bad network (2).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bucket;
mod hands;
mod index;
mod input;
mod judge;
mod oracle;
mod recorder;
mod steps;
mod store;
mod world;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lastcall_ledger::store::LocalStore;
use lastcall_tests::chance::number;

use crate::steps::COUNTED;
use crate::store::{Broken, Under};
use crate::world::World;

/// Below so many seeds not everything needs to have happened.
const ENOUGH: u64 = 1500;

fn one(seed: u64, broken: Option<Broken>) {
    run(World::new(seed, broken), seed.is_multiple_of(8));
}

fn run(mut world: World, thorough: bool) {
    world.run();
    check(world, thorough);
}

fn check(mut world: World, thorough: bool) {
    let expected = oracle::check(&world);
    index::check(&mut world, &expected, thorough);
}

#[test]
fn whatever_happens_the_record_is_what_was_fed_in() {
    let alone = number("LASTCALL_SIM_SEED", u64::MAX);
    if alone != u64::MAX {
        return one(alone, None);
    }
    let seeds = number("LASTCALL_SIM_SEEDS", 600);
    let next = AtomicU64::new(0);
    let failed: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                COUNTED.set(true);
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds || failed.lock().unwrap().len() >= 5 {
                        return;
                    }
                    if std::panic::catch_unwind(|| one(seed, None)).is_err() {
                        println!("seed {seed} fails: LASTCALL_SIM_SEED={seed} runs it alone");
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    println!("{seeds} seeds");
    let never = steps::print();
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "seeds that fail: {failed:?}");
    assert!(never.is_empty() || seeds < ENOUGH, "never happened: {never:?}");
}

/// The same in a folder, with every write synced.
#[test]
fn on_a_disk_it_is_what_was_fed_in_too() {
    let (first, seeds) = (number("LASTCALL_SEED", 0), number("LASTCALL_DISK_SEEDS", 10));
    for seed in first..first + seeds {
        let folder = tempfile::tempdir().unwrap();
        let store = Under::Real(Arc::new(LocalStore::open(folder.path()).unwrap()));
        run(World::over(store.clone(), store, seed, None), true);
    }
    println!("{seeds} of {seeds} seeds in a folder");
}

/// The simulation can fail: a store that breaks its promise is found out within a few seeds.
#[test]
fn a_store_that_breaks_its_promise_is_found_out() {
    for broken in [Broken::CreateOverwrites, Broken::CreateSaysYes, Broken::PutLoses] {
        let found = (0..300u64).find(|seed| std::panic::catch_unwind(|| one(*seed, Some(broken))).is_err());
        assert!(found.is_some(), "{broken:?} goes unnoticed");
        println!("{broken:?}: found with seed {}", found.unwrap_or_default());
    }
}
