//! Keys, signed heads, heads that are kept elsewhere, through the real binary; and verify beside somebody who appends.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastcall_compare::PairConfig;
use lastcall_contract::{Contract, Definition, Pick};
use lastcall_ledger::index::compact;
use lastcall_ledger::store::MemoryStore;
use lastcall_ledger::verify::{Outcome, verify};
use lastcall_ledger::{Ledger, LedgerClock};
use lastcall_record::{Limits, RunOptions, run_file};
use lastcall_tests::{Answer, answer, lastcall, observe};
use serde_json::{Value, json};

struct Setup {
    dir: tempfile::TempDir,
}

impl Setup {
    /// A ledger with one source and one index entry.
    fn new() -> Self {
        let setup = Self { dir: tempfile::tempdir().unwrap() };
        setup.ok(&["ledger", "init", "led"]);
        setup.ok(&["ledger", "source", "led", "a.jsonl", "--role", "tool-calls"]);
        setup.ok(&["ledger", "keygen", "head.key"]);
        setup
    }
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    fn run(&self, args: &[&str]) -> Answer {
        answer(lastcall().current_dir(self.dir.path()).args(args))
    }
    fn ok(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.code, 0, "{args:?}: {}{}", done.out, done.err);
        done.out
    }
    fn refused(&self, args: &[&str], words: &[&str]) {
        let done = self.run(args);
        assert_eq!(done.code, 2, "{args:?}: {}{}", done.out, done.err);
        words.iter().for_each(|word| assert!(done.err.contains(word), "{args:?}: {word}: {}", done.err));
    }
    fn source(&self, name: &str) {
        self.ok(&["ledger", "source", "led", name, "--role", "tool-calls"]);
    }
}

#[test]
fn a_key_is_made_once_and_shown_never() {
    let s = Setup::new();
    let secret = std::fs::read_to_string(s.path("head.key")).unwrap();
    let mode = std::fs::metadata(s.path("head.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    s.refused(&["ledger", "keygen", "head.key"], &["stands there already"]);
    std::fs::remove_file(s.path("head.key.pub")).unwrap();
    s.refused(&["ledger", "keygen", "head.key"], &["never written over"]);
    assert_eq!(std::fs::read_to_string(s.path("head.key")).unwrap(), secret);
    let told = s.ok(&["ledger", "keygen", "other.key"]);
    let public = std::fs::read_to_string(s.path("other.key.pub")).unwrap();
    assert!(told.contains(public.trim()) && told.contains("fingerprint: "), "{told}");
    let digits = std::fs::read_to_string(s.path("other.key")).unwrap();
    assert!(!told.contains(digits.trim().split(':').next_back().unwrap()), "the private key was printed");
}

#[test]
fn a_key_that_is_none_or_that_others_can_read_is_refused() {
    let s = Setup::new();
    std::fs::write(s.path("redaction.key"), "0".repeat(64) + "\n").unwrap();
    s.refused(&["ledger", "compact", "led", "--key", "redaction.key"], &["redaction.key", "keygen"]);
    s.refused(&["ledger", "compact", "led", "--key", "head.key.pub"], &["public key", "without `.pub`"]);
    s.refused(&["ledger", "compact", "led", "--key", "nowhere"], &["nowhere", "keygen"]);
    s.refused(&["ledger", "verify", "led", "--public-key", "head.key"], &["private key"]);
    let secret = std::fs::read_to_string(s.path("head.key")).unwrap();
    // A private key in the place of a head is repeated by nobody, whatever stands around it.
    let bare = secret.trim().rsplit(':').next().unwrap();
    for given in [secret.trim(), bare, &format!("ed25519-private:{}", &bare[..40])] {
        let said = s.run(&["ledger", "verify", "led", "--head", given]);
        assert_eq!(said.code, 2, "{}{}", said.out, said.err);
        assert!(said.err.contains("looks like a private key"), "{}", said.err);
        assert!(!format!("{}{}", said.out, said.err).contains(&bare[..16]), "{}", said.err);
    }
    s.refused(&["ledger", "verify", "led", "--public-key", "nowhere"], &["neither a public key nor a file"]);
    std::fs::set_permissions(s.path("head.key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    s.refused(&["ledger", "compact", "led", "--key", "head.key"], &["mode 644", "chmod 600"]);
    std::fs::set_permissions(s.path("head.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::copy(s.path("head.key"), s.path("led/head.key")).unwrap();
    s.refused(&["ledger", "compact", "led", "--key", "led/head.key"], &["lies in the ledger"]);
    assert!(!s.path("led/chains/index").exists(), "nothing was compacted");
}

#[test]
fn a_head_is_signed_once_and_held_against_the_key() {
    let s = Setup::new();
    s.ok(&["ledger", "keygen", "other.key"]);
    let unsigned = s.run(&["ledger", "verify", "led", "--public-key", "head.key.pub"]);
    assert!(
        unsigned.code == 3 && unsigned.out.contains("no index entry that could be signed"),
        "{}",
        unsigned.out
    );
    s.ok(&["ledger", "compact", "led"]);
    let unsigned = s.run(&["ledger", "verify", "led", "--public-key", "head.key.pub", "--format", "json"]);
    let report: Value = serde_json::from_str(&unsigned.out).unwrap();
    assert!(unsigned.code == 3 && report["outcome"] == "unsigned", "{report}");
    assert_eq!(
        s.run(&["ledger", "verify", "led"]).code,
        0,
        "without a key the lack of a signature is no failure"
    );

    let digest = s.ok(&["ledger", "head", "led", "--key", "head.key"]);
    assert_eq!(
        digest,
        s.ok(&["ledger", "head", "led", "--key", "head.key"]),
        "signing again changes nothing"
    );
    let kept: Value = serde_json::from_str(&s.ok(&["ledger", "head", "led", "--format", "json"])).unwrap();
    assert!(kept["head"] == digest.trim() && kept["seq"] == 0 && kept["signature"]["format"] == 1, "{kept}");
    let key = std::fs::read_to_string(s.path("head.key.pub")).unwrap();
    assert_eq!(kept["signature"]["public_key"], key.trim());
    let text = s.ok(&["ledger", "verify", "led", "--public-key", "head.key.pub"]);
    assert!(text.contains("1 signature checked") && text.contains("nobody without that key"), "{text}");
    s.ok(&["ledger", "verify", "led", "--public-key", key.trim()]);
    let text = s.ok(&["ledger", "verify", "led"]);
    assert!(text.contains("whose that is only --public-key can say"), "{text}");
    let other = s.run(&["ledger", "verify", "led", "--public-key", "other.key.pub"]);
    assert!(other.code == 3 && other.out.contains("made with another key"), "{}", other.out);
    let command = "`lastcall ledger compact led --key FILE`";
    s.refused(
        &["ledger", "head", "led", "--key", "other.key"],
        &["signed already", "never replaced", command],
    );
    // A key that gave way to another: both are given, and one of them has to fit.
    let both = ["--public-key", "other.key.pub", "--public-key", "head.key.pub"];
    s.ok(&[&["ledger", "verify", "led"], &both[..]].concat());

    // A signature that was announced and is taken away shows without any key.
    s.source("b.jsonl");
    s.ok(&["ledger", "compact", "led", "--key", "head.key"]);
    let signature = s.path("led/chains/index/00000000000000000001.sig");
    std::fs::remove_file(&signature).unwrap();
    let gone = s.run(&["ledger", "verify", "led"]);
    assert!(
        gone.code == 3 && gone.out.contains("unsigned: chains/index/00000000000000000001.sig"),
        "{}",
        gone.out
    );
    s.source("c.jsonl");
    s.ok(&["ledger", "compact", "led", "--key", "head.key"]);
    assert!(signature.exists(), "who was stopped before signing is made good by the next one");
    s.ok(&["ledger", "verify", "led", "--public-key", "head.key.pub"]);
}

#[test]
fn heads_that_were_kept_hold_the_ledger_to_its_past() {
    let s = Setup::new();
    let keep = |name: &str, args: &[&str]| std::fs::write(s.path(name), s.ok(args)).unwrap();
    s.ok(&["ledger", "compact", "led", "--key", "head.key"]);
    keep("first", &["ledger", "head", "led"]);
    s.source("b.jsonl");
    s.ok(&["ledger", "compact", "led", "--key", "head.key"]);
    keep("second.json", &["ledger", "head", "led", "--format", "json"]);
    let both = ["ledger", "verify", "led", "--head", "first", "--head", "second.json"];
    let text = s.ok(&both);
    assert!(
        text.contains("2 heads that were kept elsewhere are of one chain") && text.contains("index entry 1"),
        "{text}"
    );

    // One a line, in either form; and what `compact` prints is a head too.
    let first = std::fs::read_to_string(s.path("first")).unwrap();
    let second = std::fs::read_to_string(s.path("second.json")).unwrap();
    std::fs::write(s.path("all"), format!("{first}\n{second}")).unwrap();
    let text = s.ok(&["ledger", "verify", "led", "--head", "all"]);
    assert!(text.contains("2 heads that were kept elsewhere"), "{text}");
    keep("compacted.json", &["ledger", "compact", "led", "--format", "json"]);
    let compacted: Value = serde_json::from_slice(&std::fs::read(s.path("compacted.json")).unwrap()).unwrap();
    let kept: Value = serde_json::from_str(&second).unwrap();
    assert!(compacted["head"] == kept["head"] && compacted["seq"] == kept["seq"], "{compacted}");
    s.ok(&["ledger", "verify", "led", "--head", "compacted.json"]);

    // Cut off with all signatures: the first head still stands, the second does not.
    for name in ["00000000000000000001.json", "00000000000000000001.sig"] {
        std::fs::remove_file(s.path("led/chains/index").join(name)).unwrap();
    }
    assert_eq!(s.run(&["ledger", "verify", "led", "--head", "first"]).code, 0);
    let cut = s.run(&both);
    assert!(
        cut.code == 1 && cut.out.contains("truncated: chains/index/00000000000000000001.json"),
        "{}",
        cut.out
    );

    // What was kept is checked too.
    let mut kept: Value = serde_json::from_slice(&std::fs::read(s.path("second.json")).unwrap()).unwrap();
    let with = |kept: &Value| std::fs::write(s.path("odd.json"), kept.to_string()).unwrap();
    let odd = ["ledger", "verify", "led", "--head", "odd.json"];
    let seq = kept["seq"].take();
    kept["seq"] = json!(0);
    with(&kept);
    s.refused(&odd, &["altered where it was kept"]);
    kept["seq"] = seq;
    kept["ledger"] = json!("0".repeat(32));
    with(&kept);
    s.refused(&odd, &["of another ledger"]);
    std::fs::write(s.path("odd.json"), "no head").unwrap();
    s.refused(&odd, &["line 1 of the file is no head", "64 hex digits"]);
    std::fs::write(s.path("odd.json"), "\n").unwrap();
    s.refused(&odd, &["the file is empty"]);
    s.refused(&["ledger", "verify", "led", "--head", "nowhere"], &["no such file"]);
    s.refused(&["ledger", "verify", "led", "--head", "/dev/zero"], &["no regular file"]);
    s.ok(&["ledger", "keygen", "other.key"]);
    let other = ["ledger", "verify", "led", "--head", "second.json", "--public-key", "other.key.pub"];
    s.refused(&other, &["was kept with a signature of the key"]);
}

#[test]
fn a_key_is_made_outside_of_ledgers_and_whole_or_not_at_all() {
    let s = Setup::new();
    s.refused(&["ledger", "keygen", "led/k"], &["lies in the ledger", "elsewhere"]);
    s.refused(&["ledger", "keygen", "led/calls/../k"], &["cannot write"]);
    s.refused(&["ledger", "keygen", "s3://bucket/k"], &["never in a bucket"]);
    std::fs::create_dir(s.path("k.pub")).unwrap();
    s.refused(&["ledger", "keygen", "k"], &["k.pub stands there already"]);
    assert!(!s.path("k").exists() && !s.path("led/k").exists());
}

/// The guide's own check of a signature, with nothing of ours.
#[test]
fn the_guide_checks_a_signature_with_openssl() {
    let s = Setup::new();
    s.ok(&["ledger", "compact", "led", "--key", "head.key"]);
    std::fs::write(s.path("kept.json"), s.ok(&["ledger", "head", "led", "--format", "json"])).unwrap();
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/kept.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let script =
        guide.split("```sh\n").find(|block| block.contains("openssl")).unwrap().split("```").next().unwrap();
    let check = || {
        let done = std::process::Command::new("sh")
            .arg("-c")
            .arg(script)
            .current_dir(s.dir.path())
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        (done.status.success(), said)
    };
    let (whole, said) = check();
    if said.contains("not found") {
        println!("SKIPPED: no openssl or python3 here: {said}");
        return;
    }
    assert!(whole && said.contains("Verified Successfully"), "{said}");
    let kept = std::fs::read_to_string(s.path("kept.json")).unwrap();
    std::fs::write(s.path("kept.json"), kept.replacen("\"seq\":0", "\"seq\":1", 1)).unwrap();
    let (whole, said) = check();
    assert!(!whole, "{said}");
}

fn record(ledger: &Ledger, path: &Path, from: u32, to: u32) {
    let line = |n: u32| {
        format!(
            r#"{{"type":"tool_call","schema_version":1,"call_id":"c{n}","ts":"2026-06-0{}T10:00:00Z","tool_id":"t","contract_id":"t@1","arguments":{{}},"outcome":{{"status":"ok"}}}}"#,
            1 + n / 20
        )
    };
    let mut lines: Vec<String> = (from..to).map(line).collect();
    lines.push(format!(r#"{{"type":"clock","schema_version":1,"ts":"2026-06-0{}T03:00:00Z"}}"#, 2 + to / 20));
    let before = std::fs::read_to_string(path).unwrap_or_default();
    std::fs::write(path, before + &lines.join("\n") + "\n").unwrap();
    let limits = Limits { records: 5, ..Limits::default() };
    run_file(ledger, path, &RunOptions { limits, ..RunOptions::default() }, &mut |_| {}).unwrap();
}

/// Whatever somebody appends at whatever moment of a verify is neither reported nor counted.
#[test]
fn what_is_appended_meanwhile_is_not_reported() {
    let dir = tempfile::tempdir().unwrap();
    let contract = |id: &str| {
        let text = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
        Contract::new(id, Definition::from_text(id, text, Pick::default()).unwrap())
    };
    let (mut at, mut tried, mut grown) = (0, 0, 0);
    loop {
        let store = MemoryStore::default();
        let ledger = Ledger::init_in(Arc::new(store.clone()), LedgerClock::Simulated, "memory").unwrap();
        observe(&ledger, &contract("t@1"), &contract("t@2"), &PairConfig::default());
        let calls = dir.path().join(format!("{at}.jsonl"));
        record(&ledger, &calls, 0, 40);
        compact(&ledger, &mut |_| {}).unwrap();
        let mut step = 0;
        let mut came = false;
        let report = verify(&ledger, &mut |_| {
            if step == at {
                came = true;
                record(&ledger, &calls, 40, 60);
                compact(&ledger, &mut |_| {}).unwrap();
            }
            step += 1;
        })
        .unwrap();
        assert_eq!(report.outcome, Outcome::Intact, "at step {at}: {:?}", report.findings);
        if !came {
            break;
        }
        tried += 1;
        grown += usize::from(report.chains.iter().any(|chain| chain.grew));
        at += 1;
    }
    assert!(tried > 20 && grown > tried / 2, "{grown} of {tried}");
    println!("{tried} of {tried} moments at which somebody appended and compacted: intact");
}
