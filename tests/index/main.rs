//! The index changes no answer: from one seed a ledger grows, with repeats, late calls, plants, windows that begin and
//! end, and compactions in between that race, crash and fold in steps of any size. Whatever the cut, every verdict
//! that reads from the index on is the verdict computed from the genesis, to the byte.
//!
//! `LASTCALL_SIM_SEEDS` says how many seeds (a hundredth of it, at least 30), `LASTCALL_SIM_SEED` runs one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod exported;
mod feed;
mod racing;
mod world;

use std::collections::BTreeMap;

use lastcall_contract::Digest;

use crate::world::run;

#[test]
fn the_index_changes_no_answer() {
    let seeds: Vec<u64> = match std::env::var("LASTCALL_SIM_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => {
            let seeds = std::env::var("LASTCALL_SIM_SEEDS").ok().and_then(|n| n.parse().ok());
            (0..(seeds.unwrap_or(2000u64) / 100).max(30)).collect()
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
        for what in [
            "an export",
            "a call in an export proven",
            "a compactor lost",
            "a compactor died",
            "a day was revised",
            "entries were folded",
        ] {
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

/// What a compactor that lost or died has left is garbage once its index entry stands, and is never listed.
#[test]
fn day_files_that_nobody_names_go_with_gc() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let dir = out.join("ledger").display().to_string();
    assert_eq!(lastcall_tests::run(&["demo", "--out", &out.display().to_string()]).code, 0);
    let ok = |args: &[&str]| {
        let said = lastcall_tests::run(args);
        assert_eq!(said.code, 0, "{args:?}: {}{}", said.out, said.err);
        said.out
    };
    assert_eq!(ok(&["ledger", "files", &dir, "--kind", "days"]), "");
    ok(&["ledger", "compact", &dir]);
    let listed = || -> Vec<std::path::PathBuf> {
        let mut paths: Vec<_> =
            ok(&["ledger", "files", &dir, "--kind", "days"]).lines().map(Into::into).collect();
        paths.sort();
        paths
    };
    let days = files_below(&out.join("ledger/days"));
    assert!(!days.is_empty());
    assert_eq!(listed(), days);
    let all = ok(&["ledger", "files", &dir, "--format", "json"]);
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    let kinds = all["files"].as_array().unwrap().iter().filter(|file| file["kind"] == "days").count();
    assert_eq!(kinds, days.len());

    // Of a compactor that lost the place, of one that may still win the next, and of nobody.
    let nonce = "0123456789abcdef";
    let lost = days[0].with_file_name(format!("{:020}-{nonce}.parquet", 0));
    let begun = days[0].with_file_name(format!("{:020}-{nonce}.parquet", 1));
    let strange = days[0].with_file_name("notes.txt");
    for path in [&lost, &begun, &strange] {
        std::fs::copy(&days[0], path).unwrap();
    }
    assert_eq!(listed(), days);
    let dry = ok(&["ledger", "gc", &dir]);
    let named = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let told = |out: &str, path: &std::path::Path, what: &str| {
        out.lines().any(|line| line.contains(&named(path)) && line.contains(what))
    };
    assert!(told(&dry, &lost, "chains/index/00000000000000000000.json stands and does not name it"), "{dry}");
    assert!(told(&dry, &begun, "may be in flight") && told(&dry, &strange, "no lastcall wrote it"), "{dry}");
    assert!(dry.contains("1 file could be removed") && lost.exists(), "{dry}");
    let done = ok(&["ledger", "gc", &dir, "--delete"]);
    assert!(
        done.contains("1 file removed") && !lost.exists() && begun.exists() && strange.exists(),
        "{done}"
    );
    assert_eq!(listed(), days);
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
