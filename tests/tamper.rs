//! Tampering, enumerated: a ledger with everything that a ledger can have is made by the real binary, every way to change
//! its directory is tried, and verify has to find each one and name what was changed. What it cannot find without a head
//! that is kept elsewhere (an end that is cut off or written anew and fits) it has to say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lastcall_ledger::sign::{KeptHead, PublicKey};
use lastcall_ledger::store::Bytes;
use lastcall_ledger::verify::{Asked, Outcome};
use lastcall_tests::lastcall;
use lastcall_tests::tamper::{
    Belonging, Came, Changes, Files, Mutation, belonging, chains, forge, load, of_chains, of_files, try_all,
    verified, write,
};
use serde_json::{Value, json};

// ---------------------------------------------------------------------------------------------------- a ledger

struct Rich {
    dir: tempfile::TempDir,
    files: Arc<Files>,
    belonging: Belonging,
    head: KeptHead,
    key: PublicKey,
}

fn run(dir: &Path, args: &[&str]) -> (i32, String) {
    let done = lastcall().current_dir(dir).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (done.status.code().unwrap_or(-1), text)
}

fn ok(dir: &Path, args: &[&str]) -> String {
    let (code, text) = run(dir, args);
    assert_eq!(code, 0, "{args:?}: {text}");
    text
}

fn call(source: &str, day: u32, n: u32) -> Value {
    json!({"type": "tool_call", "schema_version": 1, "call_id": format!("{source}{day}/{n}"),
        "ts": format!("2026-06-{day:02}T{:02}:00:00Z", 8 + n), "tool_id": if n == 3 { "u" } else { "t" },
        "contract_id": if n == 3 { "u@1" } else { "t@1" },
        "arguments": {"a": if n == 2 { "a long one" } else { "x" }}, "outcome": {"status": "ok"},
        "envelope": {"agent_id": "agent", "session_id": format!("s{n}")}})
}

fn append(path: &Path, lines: &[String]) {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    std::fs::write(path, before + &lines.join("\n") + "\n").unwrap();
}

fn day(source: &str, day: u32) -> Vec<String> {
    (0..4).map(|n| call(source, day, n).to_string()).collect()
}

fn clock(day: u32) -> String {
    json!({"type": "clock", "schema_version": 1, "ts": format!("2026-06-{day:02}T02:00:00Z")}).to_string()
}

/// Two sources, two tools, chunks of four records, dead letters, a plant, verdicts, an erasure, an expiry, a late call that
/// revises a day, three index entries, each signed.
fn made() -> Rich {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    for tool in ["t", "u"] {
        let text = |a: Value, b: &str| json!({"name": tool, "inputSchema": {"type": "object", "properties": {"a": a, "b": {"type": b}}}});
        let (old, new) = (json!({"type": "string"}), json!({"type": "string", "maxLength": 5}));
        std::fs::write(dir.join(format!("{tool}-old.json")), text(old, "integer").to_string()).unwrap();
        std::fs::write(dir.join(format!("{tool}-new.json")), text(new, "string").to_string()).unwrap();
    }
    std::fs::write(dir.join("policy.yaml"), "burn_in: {tier: T1, profile: article}\n").unwrap();
    std::fs::write(dir.join("sample.json"), call("p", 2, 0).to_string()).unwrap();
    ok(dir, &["ledger", "init", "led", "--clock", "simulated"]);
    ok(dir, &["ledger", "keygen", "head.key"]);
    for source in ["a.jsonl", "b.jsonl"] {
        ok(dir, &["ledger", "source", "led", source, "--role", "tool-calls"]);
    }
    for tool in ["t", "u"] {
        let (old, new) = (format!("{tool}-old.json"), format!("{tool}-new.json"));
        ok(dir, &["plan", "observe", &old, &new, "--tool", tool, "--ledger", "led"]);
    }
    let register =
        ["plan", "register", "t", "--policy", "policy.yaml", "--from", "2026-06-01", "--ledger", "led"];
    ok(dir, &register);
    let record = |source: &str| {
        ok(dir, &["run", "--ledger", "led", "--chunk-records", "4", source]);
    };
    let (a, b) = (dir.join("a.jsonl"), dir.join("b.jsonl"));
    append(&a, &day("a", 1));
    append(&a, &["{\"type\": \"tool_call\", broken".to_owned(), "no record at all".to_owned()]);
    append(&b, &day("b", 1));
    ok(dir, &["plan", "plant", "t", "--sample", "sample.json", "--to", "a.jsonl", "--ledger", "led"]);
    for path in [&a, &b] {
        append(path, &day(if path == &a { "a" } else { "b" }, 2));
        append(path, &[clock(3)]);
    }
    record("a.jsonl");
    record("b.jsonl");
    ok(dir, &["ledger", "compact", "led", "--key", "head.key"]);
    run(dir, &["decide", "t", "--ledger", "led"]);
    // A late call of the first day, and a third day.
    append(&a, &[call("late", 1, 1).to_string()]);
    append(&a, &day("a", 3));
    append(&b, &day("b", 3));
    append(&a, &[clock(4)]);
    append(&b, &[clock(4)]);
    record("a.jsonl");
    record("b.jsonl");
    ok(dir, &["ledger", "compact", "led", "--key", "head.key"]);
    ok(dir, &["ledger", "erase", "led", "--call-id", "b3/1", "--reason", "T-1"]);
    ok(dir, &["ledger", "expire", "led", "--before", "2026-06-02"]);
    run(dir, &["decide", "t", "--ledger", "led"]);
    ok(dir, &["ledger", "compact", "led", "--key", "head.key"]);
    // What a run that was killed leaves behind.
    std::fs::write(dir.join("led/results/b.jsonl-0-00000000000000000001-0123456789abcdef.parquet"), "left")
        .unwrap();
    let head = ok(dir, &["ledger", "head", "led", "--format", "json"]);
    let files = load(&dir.join("led"));
    Rich {
        belonging: belonging(&files),
        files: Arc::new(files),
        head: serde_json::from_str(&head).unwrap(),
        key: PublicKey::parse(&std::fs::read_to_string(dir.join("head.key.pub")).unwrap()).unwrap(),
        dir: temp,
    }
}

fn rich() -> &'static Rich {
    static RICH: OnceLock<Rich> = OnceLock::new();
    RICH.get_or_init(made)
}

impl Rich {
    fn with_key(&self) -> Asked {
        Asked { keys: vec![self.key], ..Asked::default() }
    }
    fn with_head(&self) -> Asked {
        Asked { heads: vec![self.head.clone()], ..Asked::default() }
    }
}

/// By category: how many there were, and what did not come as it has to.
fn tell(
    mutations: &[Mutation],
    came: &[Came],
    wanted: impl Fn(&Came) -> bool,
) -> BTreeMap<String, (usize, usize)> {
    let mut figures: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (mutation, came) in mutations.iter().zip(came) {
        let (all, right) = figures.entry(mutation.category.to_owned()).or_default();
        *all += 1;
        if wanted(came) {
            *right += 1
        } else {
            wrong.push(format!("{}: {}: {came:?}", mutation.category, mutation.what))
        };
    }
    for (category, (all, right)) in &figures {
        println!("{category}: {right} of {all}");
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), mutations.len(), wrong.join("\n"));
    figures
}

fn figures_of(name: &str, figures: &BTreeMap<String, (usize, usize)>) {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _lock = LOCK.lock();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/figures");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("tamper.json");
    let read = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let mut all = read.filter(Value::is_object).unwrap_or_else(|| json!({}));
    let of = |(all, right): &(usize, usize)| json!({"tried": all, "as_promised": right});
    all[name] = figures.iter().map(|(k, v)| (k.clone(), of(v))).collect::<serde_json::Map<_, _>>().into();
    std::fs::write(path, serde_json::to_string_pretty(&all).unwrap() + "\n").unwrap();
}

// ---------------------------------------------------------------------------------------------------- tests

#[test]
fn the_ledger_has_everything_and_is_intact() {
    let rich = rich();
    let report = verified(&rich.files, Changes::new(), &rich.with_key()).unwrap();
    assert_eq!(report.outcome, Outcome::Intact, "{:#?}", report.findings);
    assert_eq!(report.signatures, 3);
    assert!(report.gone.erased_calls == 1 && report.gone.expired_calls > 0 && report.gone.expired_dead == 2);
    let kind = |path: &String| {
        let entry: Value = serde_json::from_slice(&rich.files[path]).unwrap();
        entry["body"]["kind"].as_str().map(str::to_owned)
    };
    let kinds: BTreeSet<String> = chains(&rich.files).values().flatten().filter_map(kind).collect();
    for kind in ["genesis", "source", "observe", "register", "plant", "verdict", "erase", "expire", "chunk"] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    let revised = rich.files.keys().filter(|p| p.starts_with("days/2026-06-01/t/")).count();
    assert_eq!(revised, 2, "the first day was revised");
    println!(
        "{} files, {} of them in the record, {} superseded, {} orphans, {} bytes",
        rich.files.len(),
        rich.belonging.named.len(),
        rich.belonging.superseded.len(),
        rich.belonging.orphans.len(),
        rich.files.values().map(Bytes::len).sum::<usize>()
    );
}

#[test]
fn every_change_of_a_file_is_found_and_named() {
    let rich = rich();
    let mutations = of_files(&rich.files, &rich.belonging);
    let came = try_all(&rich.files, &mutations, &rich.with_key());
    figures_of("files", &tell(&mutations, &came, |came| *came == Came::Named));
}

#[test]
fn every_change_of_a_chain_is_found_and_named() {
    let rich = rich();
    let mutations = of_chains(&rich.files);
    let came = try_all(&rich.files, &mutations, &rich.with_key());
    figures_of("chains", &tell(&mutations, &came, |came| *came == Came::Named));
}

/// What nothing names belongs to no record: to change it is no tampering, and changes no answer.
#[test]
fn what_is_not_named_is_not_the_record() {
    let rich = rich();
    let loose: Vec<&String> = rich.belonging.orphans.iter().chain(rich.belonging.superseded.keys()).collect();
    assert!(rich.belonging.orphans.len() == 1 && loose.len() > 2);
    for path in &loose {
        for bytes in [Some(Bytes::from_static(b"altered")), None] {
            let report = verified(&rich.files, Changes::from([((*path).clone(), bytes)]), &rich.with_key());
            assert_eq!(report.unwrap().outcome, Outcome::Intact, "{path}");
        }
    }
    println!("{} files that no entry names, or no longer: altered and removed, no tampering", loose.len());
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Consistent forgeries: by whoever may write everything, and can compute every digest.
fn forgeries(rich: &Rich) -> Vec<Mutation> {
    let mut out = Vec::new();
    let mut add = |category, path: &str, bytes: Bytes| {
        let changes = forge(&rich.files, path, bytes);
        let named = changes.keys().cloned().collect();
        out.push(Mutation { category, what: path.to_owned(), changes, named });
    };
    for path in chains(&rich.files).into_values().flatten() {
        let entry = text(&rich.files[&path]);
        let at = entry.find("\"writer\":\"").unwrap() + 10;
        let digit = if entry[at..].starts_with('0') { "1" } else { "0" };
        let mut other = entry.clone();
        other.replace_range(at..=at, digit);
        add("rewritten from an entry on", &path, other.into());
    }
    let objects = || rich.files.iter().filter(|(path, _)| path.starts_with("objects/"));
    for (path, bytes) in objects() {
        let object = text(bytes);
        for (category, mark, from, to) in [
            ("edited plan, re-addressed", "{\"calendar\"", "\"ceiling\":0.02", "\"ceiling\":0.20"),
            ("edited verdict, re-addressed", "\"not_claimed\"", "\"verdict\":\"", "\"verdict\":\"X"),
            ("edited contract, re-addressed", "\"inputSchema\"", "integer", "number"),
        ] {
            if object.contains(mark) && object.contains(from) {
                add(category, path, object.replacen(from, to, 1).into());
            }
        }
    }
    for path in rich.belonging.named.iter().filter(|path| path.ends_with(".parquet")) {
        let bytes = rich.files[path].to_vec();
        // The name of the program that wrote it stands in the footer.
        let at = bytes.windows(9).rposition(|w| w == b"lastcall ").unwrap() + 9;
        let mut other = bytes.clone();
        other[at] = b'9';
        add("rewritten file, re-addressed", path, other.into());
    }
    out
}

#[test]
fn a_consistent_forgery_is_found_with_a_head_or_a_key_and_said_without() {
    let rich = rich();
    let forgeries = forgeries(rich);
    let categories: BTreeSet<&str> = forgeries.iter().map(|m| m.category).collect();
    assert_eq!(categories.len(), 5, "{categories:?}");
    for m in &forgeries {
        assert!(
            m.changes.keys().any(|p| p.starts_with("chains/index/")),
            "{}: the index is written anew",
            m.what
        );
    }
    println!("without a head and a key:");
    let came = try_all(&rich.files, &forgeries, &Asked::default());
    figures_of("forged_without", &tell(&forgeries, &came, |c| matches!(c, Came::NotExcluded | Came::Named)));
    let said = came.iter().filter(|came| **came == Came::NotExcluded).count();
    println!("{said} of {} said to be not excluded, the rest found", came.len());
    assert!(said > 30, "a forgery that fits shows nowhere");
    println!("with a head that was kept elsewhere:");
    let came = try_all(&rich.files, &forgeries, &rich.with_head());
    figures_of("forged_with_head", &tell(&forgeries, &came, |came| *came == Came::Named));
    println!("with the signer's public key:");
    let came = try_all(&rich.files, &forgeries, &rich.with_key());
    figures_of("forged_with_key", &tell(&forgeries, &came, |came| *came == Came::Named));
}

/// The end of the index is cut off with its signatures, and what was recorded since with it.
#[test]
fn an_end_that_is_cut_off_everywhere_shows_against_a_kept_head_alone() {
    let rich = rich();
    let mut cuts = Vec::new();
    for left in 0..3usize {
        let mut changes = Changes::new();
        for path in rich.files.keys().filter(|p| p.starts_with("chains/index/")) {
            let name = path.rsplit('/').next().unwrap();
            if name.split('.').next().unwrap().parse::<usize>().unwrap() >= left {
                changes.insert(path.clone(), None);
            }
        }
        let named = changes.keys().cloned().collect();
        let what = format!("{left} index entries are left");
        cuts.push(Mutation { category: "end cut off everywhere", what, changes, named });
    }
    let came = try_all(&rich.files, &cuts, &Asked::default());
    tell(&cuts, &came, |came| *came == Came::NotExcluded);
    let came = try_all(&rich.files, &cuts, &rich.with_head());
    figures_of("cut_with_head", &tell(&cuts, &came, |came| *came == Came::Named));
    for cut in &cuts {
        let report = verified(&rich.files, cut.changes.clone(), &rich.with_key()).unwrap();
        let said = report.not_excluded.contains("removed cannot be excluded by a signature");
        assert!(said || report.outcome == Outcome::Unsigned, "{}: {report:?}", cut.what);
    }
}

/// What was appended after the newest index entry: no head names it, and the report says so.
#[test]
fn what_came_after_the_newest_head_is_said_to_be_open() {
    let rich = rich();
    let dir = tempfile::tempdir().unwrap();
    copy(&rich.files, &dir.path().join("led"));
    ok(dir.path(), &["ledger", "source", "led", "c.jsonl", "--role", "tool-calls"]);
    let files = Arc::new(load(&dir.path().join("led")));
    let tail = chains(&files)["chains/control"].last().unwrap().clone();
    let entry = text(&files[&tail]).replace("c.jsonl", "d.jsonl");
    for changes in
        [Changes::from([(tail.clone(), Some(entry.into()))]), Changes::from([(tail.clone(), None)])]
    {
        let asked = Asked { heads: vec![rich.head.clone()], keys: vec![rich.key], ..Asked::default() };
        let report = verified(&files, changes, &asked).unwrap();
        assert_eq!(report.outcome, Outcome::Intact, "{:?}", report.findings);
        assert!(report.not_excluded.contains("Of what came after them"), "{}", report.not_excluded);
    }
}

fn copy(files: &Files, to: &Path) {
    write(to, &files.iter().map(|(path, bytes)| (path.clone(), Some(bytes.clone()))).collect());
}

/// One of each category through the real binary: exit code, and the name in what it prints.
#[test]
fn the_command_finds_one_of_each() {
    let rich = rich();
    let pristine = rich.dir.path().join("led");
    let key = rich.dir.path().join("head.key.pub");
    let key = key.to_str().unwrap();
    let mut mutations = of_files(&rich.files, &rich.belonging);
    mutations.extend(of_chains(&rich.files));
    let mut seen: BTreeMap<&str, Vec<&Mutation>> = BTreeMap::new();
    for mutation in &mutations {
        let of = seen.entry(mutation.category).or_default();
        // The first, and one from further on: another kind of file.
        if of.is_empty() || (of.len() == 1 && mutation.named.iter().all(|p| !of[0].named.contains(p))) {
            of.push(mutation);
        }
    }
    let (code, out) = run(rich.dir.path(), &["ledger", "verify", "led", "--public-key", key]);
    assert!(code == 0 && out.contains("intact"), "{out}");
    let tried: Vec<&Mutation> = seen.into_values().flatten().collect();
    for mutation in &tried {
        let dir = tempfile::tempdir().unwrap();
        let led: PathBuf = dir.path().join("led");
        copy(&load(&pristine), &led);
        write(&led, &mutation.changes);
        let (code, out) = run(dir.path(), &["ledger", "verify", "led", "--public-key", key]);
        assert!(
            code == 1 || code == 3 || (code == 2 && out.contains("ledger.json")),
            "{}: {code} {out}",
            mutation.what
        );
        assert!(mutation.named.iter().any(|path| out.contains(path)), "{}: {out}", mutation.what);
    }
    println!("{} of {} found and named by the command", tried.len(), tried.len());
}
