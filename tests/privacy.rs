//! What is kept, with the real command: redaction before anything is written, erasure, expiry and garbage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use lastcall_tests::{Answer, answer, lastcall};
use serde_json::{Value, json};

struct Place {
    dir: tempfile::TempDir,
}

fn call(n: usize, email: &str) -> String {
    json!({
        "type": "tool_call", "schema_version": 1, "call_id": format!("call-{n}"), "ts": "2020-06-01T08:00:00Z",
        "tool_id": "search", "contract_id": "search@1", "arguments": {"query": "dns", "email": email},
        "outcome": {"status": "ok"}, "envelope": {"session_id": format!("session-{}", n / 2), "agent_id": "helper"},
    })
    .to_string()
        + "\n"
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        let text: String = (0..8).map(|n| call(n, &format!("person{n}@example.com"))).collect();
        let cut = "{\"type\":\"tool_call\",\"call_id\":\"call-3\",\"arguments\":{\"email\":\"person3@exam\n";
        place.file("calls.jsonl", text + cut);
        assert_eq!(place.run("ledger init led").code, 0);
        place
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.dir.path().join(name), content).unwrap();
    }

    fn run(&self, line: &str) -> Answer {
        answer(
            lastcall()
                .env_remove("LASTCALL_REDACTION_KEY")
                .current_dir(self.dir.path())
                .args(line.split_whitespace()),
        )
    }

    fn ok(&self, line: &str) -> String {
        let answer = self.run(line);
        assert_eq!(answer.code, 0, "{line}: {}{}", answer.out, answer.err);
        answer.out
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(line)).unwrap()
    }

    fn piped(&self, line: &str, input: &str) -> Answer {
        let mut child = lastcall()
            .current_dir(self.dir.path())
            .args(line.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        Answer {
            code: done.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&done.stdout).into_owned(),
            err: String::from_utf8_lossy(&done.stderr).into_owned(),
        }
    }

    /// The files of the ledger that hold these bytes.
    fn holding(&self, word: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.dir.path().join("led")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if std::fs::read(&path).unwrap().windows(word.len()).any(|w| w == word.as_bytes()) {
                    found.push(path.strip_prefix(self.dir.path()).unwrap().display().to_string());
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn calls_are_erased_and_the_record_says_so() {
    let place = Place::new();
    place.ok("run --ledger led calls.jsonl --chunk-records 3");
    assert!(!place.holding("person3@exam").is_empty() && !place.holding("call-3").is_empty());
    let before = place.ok("ledger files led --kind calls");
    let dry = place.ok("ledger erase led --call-id call-3 --session session-3 --dry-run");
    assert!(dry.contains("3 calls and 1 dead letter in 3 files would be erased"), "{dry}");
    assert_eq!(place.ok("ledger files led --kind calls"), before);
    let out = place.ok("ledger erase led --call-id call-3 --session session-3 --reason TICKET-7");
    assert!(out.contains("3 calls and 1 dead letter in 3 files are erased (control entry "), "{out}");
    assert!(out.contains("ledger gc led --delete"), "{out}");
    let verified = place.ok("ledger verify led");
    assert!(verified.contains("intact, 3 calls erased, 1 dead letter erased: "), "{verified}");
    let dry = place.ok("ledger gc led");
    assert!(dry.contains("3 files could be removed") && dry.contains("Nothing was changed"), "{dry}");
    assert!(!place.holding("person3@exam").is_empty(), "gc is dry by default");
    let removed = place.ok("ledger gc led --delete");
    assert!(removed.contains("3 files removed"), "{removed}");
    for word in ["person3@exam", "call-3", "person6@", "person7@", "session-3"] {
        assert!(place.holding(word).is_empty(), "{word} is in {:?}", place.holding(word));
    }
    assert!(place.ok("ledger verify led").contains("intact, 3 calls erased"));
    assert_ne!(place.ok("ledger files led --kind calls"), before);
    for line in place.ok("ledger files led").lines() {
        assert!(Path::new(&place.dir.path().join(line)).is_file(), "{line}");
    }
    let nothing = place.ok("ledger erase led --call-id call-3");
    assert!(nothing.contains("nothing of it is in the 3 chunks"), "{nothing}");
    assert!(nothing.contains("no call of this ledger has 1 call id: call-3"), "{nothing}");
    // The recorder goes on where it stood, and the archive says what it cannot try any more.
    let more = std::fs::read_to_string(place.dir.path().join("calls.jsonl")).unwrap() + &call(20, "x@y.z");
    place.file("calls.jsonl", more);
    place.ok("run --ledger led calls.jsonl");
    assert!(place.ok("ledger verify led").contains("intact, 3 calls erased"));
}

#[test]
fn ids_come_from_a_file_or_standard_input() {
    let place = Place::new();
    place.ok("run --ledger led calls.jsonl");
    let done = place.piped("ledger erase led --call-ids - --format json", "call-1\ncall-2\n\nunknown\n");
    assert_eq!(done.code, 0, "{}", done.err);
    let done: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&done["calls"], &done["dead"]), (&json!(2), &json!(0)));
    assert_eq!(done["call_ids_not_found"], json!(["unknown"]));
    let entry = done["control_entries"][0].as_u64().unwrap();
    let text = std::fs::read_to_string(place.dir.path().join(format!("led/chains/control/{entry:020}.json")))
        .unwrap();
    assert!(text.contains("\"ids\":3") && !text.contains("call-1"), "{text}");
    place.file("ids.txt", "\u{feff}session-2 \r\n");
    let out = place.ok("ledger erase led --sessions ids.txt --agent nobody");
    assert!(out.contains("2 calls and 0 dead letters"), "{out}");
    let none = place.run("ledger erase led");
    assert!(none.code == 2 && none.err.contains("nothing to erase"), "{}", none.err);
    let said = place.run("ledger erase led --call-id call-5 --reason because-of-call-5");
    assert!(said.code == 2 && said.err.contains("would stand in the record"), "{}", said.err);
    let twice = place.run("ledger erase led --call-ids - --sessions -");
    assert!(twice.code == 2 && twice.err.contains("read once"), "{}", twice.err);
    let all = place.ok("ledger erase led --agent helper");
    assert!(all.contains("4 calls"), "{all}");
    assert!(place.ok("ledger verify led").contains("intact, 8 calls erased"));
    // The agent's name stays in the counts: an agent is no person, and the guide says so.
    assert!(!place.holding("helper").is_empty());
}

#[test]
fn files_expire_by_age() {
    let place = Place::new();
    place.ok("run --ledger led calls.jsonl");
    let out = place.ok("ledger expire led --older-than 30d --dry-run --format json");
    let dry: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&dry["calls"], &dry["dead"]), (&json!(8), &json!(0)), "{dry}");
    let out = place.ok("ledger expire led --before 2020-06-02 --kind calls");
    assert!(out.contains("8 calls and 0 dead letters in 1 file from before 2020-06-02 are expired"), "{out}");
    place.ok("ledger gc led --delete");
    assert!(place.holding("person1@").is_empty());
    assert!(!place.holding("person3@exam").is_empty(), "the dead letter was recorded today");
    assert!(place.ok("ledger verify led").contains("intact, 8 calls expired: "));
    assert!(place.ok("ledger files led --kind calls").is_empty());
    for (line, says) in [
        ("ledger expire led", "--before <DAY>|--older-than <DAYS>"),
        ("ledger expire led --before soon", "no day"),
        ("ledger expire led --older-than 90", "write 90d"),
        ("ledger expire led --before 2199-01-01", "by this machine's clock today is "),
    ] {
        let answer = place.run(line);
        assert!(answer.code == 2 && answer.err.contains(says), "{line}: {}", answer.err);
    }
}

#[test]
fn a_redaction_holds_before_anything_is_written() {
    let place = Place::new();
    let rules = "--redact /arguments/email=hash --redaction-key secret.key";
    for (line, says) in [
        (
            "ledger source led calls.jsonl --role tool-calls --redact /call_id=hash --redaction-key k",
            "must stay",
        ),
        ("ledger source led calls.jsonl --role tool-calls --redact email --redaction-key k", "no rule"),
        ("ledger source led calls.jsonl --role tool-calls --redact /arguments/email=hash", "--redaction-key"),
        (
            "ledger source led calls.jsonl --role tool-calls --redact /arguments/email=hash --redaction-key led/k",
            "lies in the ledger",
        ),
    ] {
        let answer = place.run(line);
        assert!(answer.code == 2 && answer.err.contains(says), "{line}: {}", answer.err);
    }
    let none = place.run("ledger redact led calls.jsonl");
    assert!(none.code == 2 && none.err.contains("no source `calls.jsonl`"), "{}", none.err);
    std::fs::remove_file(place.dir.path().join("led/k")).unwrap_or_default();
    place.ok(&format!("ledger source led calls.jsonl --role tool-calls {rules}"));
    let secret = std::fs::read_to_string(place.dir.path().join("secret.key")).unwrap();
    assert_eq!(secret.trim().len(), 64);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(place.dir.path().join("secret.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
    let without = place.run("run --ledger led calls.jsonl");
    assert!(without.code == 2 && without.err.contains("--redaction-key"), "{}", without.err);
    place.ok("run --ledger led calls.jsonl --redaction-key secret.key");
    for n in 0..8 {
        assert!(place.holding(&format!("person{n}@exam")).is_empty(), "person{n}");
    }
    assert!(place.holding(secret.trim()).is_empty());
    assert!(place.ok("ledger verify led").starts_with("chain control"));
    let shown = place.ok("ledger redact led calls.jsonl");
    assert!(shown.contains("/arguments/email=hash") && !shown.contains(secret.trim()), "{shown}");
    // More rules in a file; ids that are hidden are found with the key alone.
    place.file(
        "rules.yaml",
        "redact:\n  - {pointer: /arguments/email, action: drop}\n  - {pointer: /envelope/session_id, action: hash}\n",
    );
    place.ok("ledger redact led calls.jsonl --redaction rules.yaml --redaction-key secret.key");
    let more = std::fs::read_to_string(place.dir.path().join("calls.jsonl")).unwrap()
        + &call(40, "late@example.com");
    place.file("calls.jsonl", more);
    place.ok("run --ledger led calls.jsonl --redaction-key secret.key");
    assert!(place.holding("session-20").is_empty() && place.holding("late@").is_empty());
    let blind = place.run("ledger erase led --session session-20");
    assert!(blind.code == 2 && blind.err.contains("--redaction-key"), "{}", blind.err);
    let done = place.json("ledger erase led --session session-20 --redaction-key secret.key --format json");
    assert_eq!(done["calls"], 1);
    // A file with a mistake says where.
    place.file("odd.yaml", "redact:\n  - {pointer: /arguments/email, action: mask}\n");
    let odd = place.run("ledger redact led calls.jsonl --redaction odd.yaml --redaction-key secret.key");
    assert!(odd.code == 2 && odd.err.contains("odd.yaml"), "{}", odd.err);
    place.ok("ledger redact led calls.jsonl --none");
    assert_eq!(place.ok("ledger redact led calls.jsonl"), "source `calls.jsonl` is kept whole\n");
}

/// A key that is given in the place of its file's name is not repeated anywhere.
#[test]
fn a_key_is_not_shown_in_a_message() {
    let place = Place::new();
    place.ok("ledger keygen head.key");
    let read = |name: &str| std::fs::read_to_string(place.dir.path().join(name)).unwrap().trim().to_owned();
    let signing = read("head.key");
    let redaction = "ab".repeat(32);
    for line in [
        format!("ledger compact led --key {signing}"),
        format!("ledger head led --key {signing}"),
        format!("ledger verify led --public-key {signing}"),
        format!("ledger export led search out --key {signing}"),
        format!("run --ledger led calls.jsonl --redact /arguments/email=hash --redaction-key {redaction}"),
        format!("run --ledger led calls.jsonl --redaction-key {redaction}"),
        format!("ledger erase led --session x --redaction-key {redaction}"),
    ] {
        let said = place.run(&line);
        assert_eq!(said.code, 2, "{line}: {}", said.out);
        let digits = line.split([' ', ':']).next_back().unwrap();
        assert!(!said.err.contains(&digits[..16]) && said.err.contains("key"), "{line}: {}", said.err);
    }
    assert!(!place.dir.path().join(&redaction).exists());
}

/// With a second key `erase` would find only what one of them hid.
#[test]
fn a_ledger_has_one_redaction_key() {
    let place = Place::new();
    std::fs::copy(place.dir.path().join("calls.jsonl"), place.dir.path().join("more.jsonl")).unwrap();
    std::fs::copy(place.dir.path().join("calls.jsonl"), place.dir.path().join("whole.jsonl")).unwrap();
    let hide = "--redact /envelope/session_id=hash --redaction-key";
    place.ok(&format!("run --ledger led calls.jsonl {hide} one.key"));
    place.ok("run --ledger led whole.jsonl");
    let shown = place.ok("ledger redact led calls.jsonl");
    let known = shown.split("key ").nth(1).unwrap().split(':').next().unwrap().to_owned();
    place.file("two.key", format!("{}\n", "5e".repeat(32)));
    let open = place.run(&format!("run --ledger led more.jsonl {hide} two.key"));
    assert!(open.code == 2 && open.err.contains("chmod 600 two.key"), "{}", open.err);
    #[cfg(unix)]
    std::fs::set_permissions(
        place.dir.path().join("two.key"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let entries = || std::fs::read_dir(place.dir.path().join("led/chains/control")).unwrap().count();
    let stood = entries();
    let refused = |said: &str| {
        for command in [
            "run --ledger led more.jsonl",
            "ledger source led more.jsonl --role tool-calls",
            "ledger redact led whole.jsonl",
        ] {
            for (key, why) in [("two.key", "a ledger has one key"), ("mistyped.key", "none was made")] {
                let answer = place.run(&format!("{command} {hide} {key}"));
                assert_eq!(answer.code, 2, "{said}: {command} {key}: {}", answer.out);
                assert!(answer.err.contains(why) && answer.err.contains(&known), "{command}: {}", answer.err);
                assert!(!answer.err.contains("bytes differ"), "{}", answer.err);
            }
        }
        assert!(!place.dir.path().join("mistyped.key").exists());
    };
    refused("while it holds");
    let other = place.run("run --ledger led calls.jsonl --redaction-key two.key");
    assert!(other.code == 2 && other.err.contains(&known), "{}", other.err);
    assert!(!other.err.contains("differ"), "{}", other.err);
    for ids in ["--session session-1", "--call-id call-1"] {
        let erase = place.run(&format!("ledger erase led {ids} --redaction-key two.key"));
        assert!(erase.code == 2 && erase.err.contains(&known), "{}", erase.err);
    }
    assert_eq!(entries(), stood);
    // One that was taken away again counts too, also where an index entry spares reading it.
    place.ok("ledger redact led calls.jsonl --none");
    refused("taken away");
    let needs = place.run("run --ledger led calls.jsonl");
    assert!(needs.code == 2 && needs.err.contains("is kept whole again"), "{}", needs.err);
    place.ok("ledger compact led");
    refused("folded");
    place.ok(&format!("run --ledger led more.jsonl {hide} one.key"));
    let done = place.json("ledger erase led --session session-1 --redaction-key one.key --format json");
    assert_eq!(done["calls"], 6, "of three sources");
}

#[test]
fn given_rules_add_to_those_that_stand() {
    let place = Place::new();
    let key = "--redaction-key k";
    place.ok(&format!("run --ledger led calls.jsonl --redact /arguments/email=hash {key}"));
    let out = place.ok(&format!(
        "ledger redact led calls.jsonl --redact /arguments/phone=drop --redact /arguments/email=drop {key}"
    ));
    assert!(out.contains("from now on (control entry "), "{out}");
    assert!(out.ends_with("  /arguments/email=drop (was hash)\n  /arguments/phone=drop (new)\n"), "{out}");
    let out = place.ok(&format!("ledger redact led calls.jsonl --redact /arguments/phone=drop {key}"));
    assert!(out.contains("redacted so already"), "{out}");
    let out = place.ok(&format!("ledger redact led calls.jsonl --redact /arguments/phone=keep {key}"));
    assert!(out.ends_with("  /arguments/email=drop\ntaken away: /arguments/phone=drop\n"), "{out}");
    let out = place.ok("ledger redact led calls.jsonl --none");
    assert!(out.ends_with("taken away: /arguments/email=drop\n"), "{out}");
    assert_eq!(place.ok("ledger redact led calls.jsonl"), "source `calls.jsonl` is kept whole\n");
    let none = place.run("ledger redact led cals.jsonl");
    assert!(none.code == 2 && none.err.contains("it has calls.jsonl"), "{}", none.err);
}

#[test]
fn writes_that_were_cut_off_are_garbage_after_a_day() {
    let place = Place::new();
    place.ok("run --ledger led calls.jsonl");
    let staged = "led/calls/calls.jsonl-0-00000000000000000002-0123456789abcdef.parquet#1";
    place.file(staged, "half of somebody's calls");
    assert!(place.ok("ledger gc led --delete").contains("begun in the last day"));
    assert!(!place.holding("somebody's").is_empty());
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 3600);
    let file = std::fs::File::options().append(true).open(place.dir.path().join(staged)).unwrap();
    file.set_modified(old).unwrap();
    drop(file);
    assert!(place.ok("ledger gc led").contains("cut off more than a day ago"));
    place.ok("ledger gc led --delete");
    assert!(place.holding("somebody's").is_empty());
}

/// What a trial says of an archive under redaction: what is hidden is not known to pass.
#[test]
fn a_redacted_call_is_not_known_to_pass() {
    let place = Place::new();
    place.file("old.json", r#"{"name":"search","inputSchema":{"type":"object"}}"#);
    place.file("new.json", r#"{"name":"search","inputSchema":{"type":"object"},"description":"d"}"#);
    place.ok("run --ledger led calls.jsonl --redact /arguments/email=drop --redaction-key secret.key");
    let tried = place.run("try old.json new.json --ledger led");
    assert_eq!(tried.code, 3, "{}{}", tried.out, tried.err);
    assert!(tried.out.contains("8 calls were left out: the source's redaction hides"), "{}", tried.out);
    let plain = Place::new();
    plain.file("old.json", r#"{"name":"search","inputSchema":{"type":"object"}}"#);
    plain.file("new.json", r#"{"name":"search","inputSchema":{"type":"object"},"description":"d"}"#);
    plain.ok("run --ledger led calls.jsonl");
    plain.ok("ledger erase led --call-id call-0");
    let tried = plain.run("try old.json new.json --ledger led");
    assert!(tried.code == 0 && tried.out.contains("1 call of this ledger"), "{}{}", tried.out, tried.err);
}
