//! kill -9 of the real `lastcall run` at twenty random moments, the same command again each time: the ledger equals
//! that of one clean run, in its rows by position (without salt, commitment and file names) and in its summed tallies.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use lastcall_compare::PairConfig;
use lastcall_contract::{Contract, Definition, Pick};
use lastcall_diff::Rng;
use lastcall_ledger::Ledger;
use lastcall_ledger::entry::FileKind;
use lastcall_tests::content::Content;
use lastcall_tests::{lastcall, observe, run};

const KILLS: usize = 20;

fn content(dir: &Path) -> Content {
    lastcall_tests::content::content(&Ledger::open(dir).unwrap())
}

/// (entries of partition chains, data files that no entry names)
fn state(dir: &Path) -> (usize, usize) {
    let ledger = Ledger::open(dir).unwrap();
    let mut named = BTreeSet::new();
    let mut entries = 0;
    for partition in ledger.partitions().unwrap() {
        entries += partition.chunks().count();
        for (_, chunk) in partition.chunks() {
            named.extend(chunk.files.iter().map(|f| f.path.clone()));
        }
    }
    let mut loose = 0;
    for kind in [FileKind::Calls, FileKind::Results, FileKind::Dead] {
        let mut folders = vec![dir.join(kind.as_str())];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let relative = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                    loose += usize::from(!named.contains(&relative));
                }
            }
        }
    }
    (entries, loose)
}

/// A folder with a simulated file and a way to make ledgers.
struct Setup {
    dir: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let setup = Self { dir: tempfile::tempdir().unwrap() };
        let (calls, pair) = (setup.path("calls.jsonl"), setup.path("pair"));
        ok(&["simulate", "--scenario", "worked-example", "--out", &calls, "--definitions", &pair]);
        // A few lines that become dead letters, in the middle and at the end of the file.
        let text = std::fs::read_to_string(&calls).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        for at in [500, 9_000, 20_000] {
            lines.insert(at, "{\"type\": \"tool_call\", broken");
        }
        std::fs::write(&calls, lines.join("\n") + "\n").unwrap();
        setup
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn ledger(&self, name: &str) -> PathBuf {
        let ledger = self.path(name);
        ok(&["ledger", "init", &ledger, "--clock", "simulated"]);
        let contract = |file: &str, version: u32| {
            let text = std::fs::read_to_string(format!("{}/{file}", self.path("pair"))).unwrap();
            let definition = Definition::from_text(file, &text, Pick::default()).unwrap();
            Contract::new(format!("shop.place_order@{version}"), definition)
        };
        let opened = Ledger::open(Path::new(&ledger)).unwrap();
        observe(&opened, &contract("old.json", 1), &contract("new.json", 2), &PairConfig::default());
        PathBuf::from(ledger)
    }

    fn command(&self, ledger: &Path) -> std::process::Command {
        let mut command = lastcall();
        command
            .args(["run", "--ledger"])
            .arg(ledger)
            .args(["--chunk-records", "400"])
            .arg(self.path("calls.jsonl"));
        command
    }
}

fn ok(args: &[&str]) {
    let answer = run(args);
    assert_eq!(answer.code, 0, "lastcall {}: {}{}", args.join(" "), answer.out, answer.err);
}

#[test]
fn a_killed_run_goes_on_where_it_stopped() {
    let setup = Setup::new();
    let clean = setup.ledger("clean");
    let begun = Instant::now();
    assert!(setup.command(&clean).stderr(Stdio::null()).status().unwrap().success());
    let whole = begun.elapsed();
    let wanted = content(&clean);
    assert_eq!(wanted.balance.dead, 3);
    assert_eq!(wanted.balance.calls, 40_000);
    assert_eq!(wanted.results.len(), 40_000, "one row a call and pair");

    let seed = std::env::var("LASTCALL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| {
        u64::from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos())
    });
    println!("a clean run takes {whole:.2?}; LASTCALL_SEED={seed} repeats these moments");
    let mut rng = Rng::new(seed);
    let torn = setup.ledger("torn");
    let (mut before, mut between, mut after, mut finished) = (0, 0, 0, 0);
    for _ in 0..KILLS {
        let (entries_then, loose_then) = state(&torn);
        let mut child = setup.command(&torn).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        // Up to a tenth of the whole run: so that twenty of them spread over it.
        let most = u64::try_from(whole.as_micros()).unwrap() / 10;
        std::thread::sleep(Duration::from_micros(rng.below(most.max(1))));
        let early = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        let (entries, loose) = state(&torn);
        assert!(entries >= entries_then, "an entry is never taken back");
        match (early, loose > loose_then, entries > entries_then) {
            (true, ..) => finished += 1,
            (_, true, _) => between += 1,
            (_, _, true) => after += 1,
            _ => before += 1,
        }
    }
    println!(
        "{KILLS} kills: {before} before the first commit, {between} between files and entry, {after} after a commit, \
         {finished} came too late"
    );
    let answer = setup.command(&torn).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    assert!(before + between + after >= KILLS / 2, "too few kills landed inside a run");
    assert!(after + between > 0, "no kill landed after work had begun");

    let got = content(&torn);
    assert_eq!(got.balance, wanted.balance);
    assert_eq!(got.covered, wanted.covered);
    assert!(got.sums == wanted.sums, "summed tallies differ");
    assert_eq!(got.dead, wanted.dead);
    assert!(got.calls == wanted.calls, "call rows differ");
    assert!(got.results == wanted.results, "result rows differ");

    let (entries, _) = state(&torn);
    let again = setup.command(&torn).output().unwrap();
    assert!(again.status.success());
    assert_eq!(state(&torn).0, entries, "the same file again adds nothing");
    let verify = run(&["ledger", "verify", torn.to_str().unwrap()]);
    assert_eq!(verify.code, 0, "{}{}", verify.out, verify.err);
}
