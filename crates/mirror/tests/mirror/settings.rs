use lastcall_mirror::{BREAKER_KEYS, CANDIDATE_KEYS, LIMIT_KEYS, RERUN_KEYS, Settings, TOOL_KEYS};

use crate::common::*;

fn errors(text: &str) -> String {
    Settings::parse_with(text, "mirror.toml", &|_| None).unwrap_err().to_string()
}

#[test]
fn what_is_stated_holds_over_the_defaults() {
    let text = "brokers = \"b:9092\"\n[defaults]\nconcurrency = 4\nrate = 10\ntimeout = \"250ms\"\n\
        breaker = {failures = 3}\nmax_answer = \"64KiB\"\n[tools.a]\nconcurrency = 8\nmax_age = \"2h\"\n\
        breaker = {pause = \"5s\"}\nsample = 0.5\nretries = 0\non = false\n";
    let settings = Settings::parse(text, "mirror.toml").unwrap();
    let (a, other) = (settings.limits("a"), settings.limits("b"));
    assert_eq!(
        format!("{a:?}"),
        "Limits { on: false, concurrency: 8, rate: Some(10.0), timeout: 250ms, sample: 0.5, max_age: Some(7200s), \
         retries: 0, breaker: Breaker { failures: 3, pause: 5s }, max_answer: 65536 }"
    );
    assert_eq!((other.concurrency, other.on, other.breaker.failures), (4, true, 3));
    assert_eq!(settings.tools().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn everything_that_is_wrong_is_said_with_its_line() {
    let text = r#"brokers = "b"
[defaults]
concurency = 3
rate = 0
timeout = "10 parsecs"
sample = 1.5
breaker = {failures = 0, paus = "1s"}
max_answer = "1GiB"
on = "yes"
[tools.a]
candidate = []
candidates = [{http = "http://h/"}, {contract = "a@1", sandbox = "x"}, {contract = "a@1", suppression = "dryrun", http = "ftp://h/"},
  {contract = "a@1", suppression = "replica", http = "http://u:p@h/", mcp = "http://h/"},
  {contract = "a@1", suppression = "replica", http = "http://h/", mcp = "http://h/"},
  {contract = "a@1", suppression = "replica", http = "http://h/", env = {A = "1"}},
  {contract = "a@1", headers = {A = "1"}},
  {contract = "a@1", suppression = "replica", command = "run it"},
  {contract = "a@1", suppression = "replica", http = "http://h/", headers = {A = "$MISSING", "b c" = "x", Host = "h"}}]
rerun = {share = 0.1}
"#;
    let lines: Vec<String> =
        errors(text).lines().map(|l| l.trim_start_matches("mirror.toml:").to_owned()).collect();
    let expected = [
        "3: unknown key `concurency` in [defaults]. Perhaps `concurrency` was meant; known are on, concurrency, rate, timeout, sample, max_age, retries, breaker, max_answer.",
        "7: unknown key `paus` in `defaults.breaker`. Perhaps `pause` was meant; known are failures, pause.",
        "7: `defaults.breaker.failures` is out of bounds, or no whole number. Write a whole number from 1 to 1000000.",
        "8: `defaults.max_answer` is no such size. Write bytes, or \"64KiB\" or \"1MiB\", from 64 to 67108864.",
        "9: `defaults.on` is neither true nor false. Write one of them.",
        "4: `defaults.rate` is no such number. Write calls a second, above 0 and at most 1000000.",
        "6: `defaults.sample` is no such number. Write a share from 0 to 1.",
        "5: `defaults.timeout` is no such duration. Write it as \"500ms\", \"10s\", \"5m\" or \"1h\", from 1ms to 3600s.",
        "11: unknown key `candidate` in [tools.\"a\"]. Perhaps `candidates` was meant; known are candidates, rerun, on, concurrency, rate, timeout, sample, max_age, retries, breaker, max_answer.",
        "12: a candidate in `tools.\"a\".candidates` without `contract`. Say which contract it is: contract = \"TOOL@VERSION\".",
        "12: unknown key `sandbox` in `tools.\"a\".candidates`. Known are contract, suppression, http, mcp, mcp_command, command, stub, name, headers, env.",
        "12: unknown suppression in `tools.\"a\".candidates`. Perhaps `dry_run` was meant; known are replica, snapshot, dry_run, sandbox, stub, not_executed.",
        "12: `tools.\"a\".candidates.http` is no http or https address. Write one.",
        "13: `tools.\"a\".candidates.http` carries a user or a password. Put it into `headers`, from the environment: { Authorization = \"Basic $NAME\" }.",
        "14: `tools.\"a\".candidates` says more than one of http, mcp. Keep one.",
        "15: `tools.\"a\".candidates.env` means nothing beside `http`. Remove it.",
        "16: `tools.\"a\".candidates.headers` without anything that is asked. Add one of http, mcp, mcp_command, command, stub.",
        "17: `tools.\"a\".candidates.command` is no list of a program and its arguments. Write it as [\"program\", \"argument\"]; no shell reads it.",
        "18: `tools.\"a\".candidates.headers.A` needs the environment variable `MISSING`, which is not set. Set it for this process; `$$` means a dollar sign.",
        "18: `tools.\"a\".candidates.headers.Host` is no possible name. Write another.",
        "18: `tools.\"a\".candidates.headers.b c` is no possible name. Write another.",
        "19: `tools.\"a\".rerun` says not where the current version runs. Add one of http, mcp, mcp_command, command.",
    ];
    for (line, expected) in lines.iter().zip(expected) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), expected.len());
    assert!(errors("[defaults\n").starts_with("mirror.toml:1: no TOML: "));
    assert!(errors("tools = 3").contains("mirror.toml:1: `tools` is no table"));
}

#[test]
fn what_the_registry_does_not_know_is_said_with_what_is_near() {
    let wrong = |text: &str| try_mirror(text).unwrap_err().to_string();
    assert_eq!(
        wrong("[tools.\"t.raed\"]\n"),
        "mirror.toml:1: the registry has no tool `t.raed`. Perhaps `t.read` was meant."
    );
    assert!(
        wrong("[tools.\"t.read\"]\ncandidates = [{contract = \"t.read@3\"}]")
            .contains("no contract `t.read@3`")
    );
    assert_eq!(
        wrong("[tools.\"t.read\"]\ncandidates = [{contract = \"t.write@2\"}]"),
        "mirror.toml:2: `t.write@2` is a contract of `t.write`, not of `t.read`. Name one of `t.read`, or move it there."
    );
    assert!(
        wrong("[tools.\"t.read\"]\ncandidates = [{contract = \"t.read@2\"}, {contract = \"t.read@2\"}]")
            .contains("stands here twice")
    );
    assert!(wrong(&one("t.read", "suppression = \"replica\"")).contains("says not what is asked"));
    assert!(
        wrong(&one("t.read", "http = \"http://h/\""))
            .contains("without `suppression`: its side effect is `read`")
    );
    let rerun = "[tools.\"t.write\"]\nrerun = {suppression = \"sandbox\", http = \"http://h/\"}\n";
    assert!(wrong(rerun).contains("only tools that read are run again"));
    // a contract by an alias or a short form is the contract
    assert!(try_mirror("[tools.\"t.read\"]\ncandidates = [{contract = \"t.read.v2\"}]").is_ok());
}

#[test]
fn no_print_holds_a_secret() {
    let text = one(
        "t.read",
        "suppression = \"replica\", http = \"http://h/?key=s3cret\", headers = {A = \"x $TOKEN\", B = \"${TOKEN}y$$\"}",
    ) + &one(
        "t.put",
        "suppression = \"sandbox\", command = [\"run\", \"--key=s3cret\"], env = {A = \"$TOKEN\"}",
    );
    let settings = settings(&text);
    let mirror = lastcall_mirror::Mirror::new(&registry(), &settings).unwrap();
    for print in [format!("{settings:?}"), format!("{settings:#?}"), format!("{mirror:?}")] {
        assert!(print.contains("http://h/") && print.contains("***"), "{print}");
        assert!(!print.contains("s3cret"), "{print}");
    }
    let error =
        errors("[tools.a]\ncandidates = [{contract = \"a@1\", headers = {A = \"s3cret$X\"}, http = 3}]\n");
    assert!(!error.contains("s3cret"), "{error}");
}

#[test]
fn the_reference_names_every_key() {
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/mirror-settings.md");
    let text = std::fs::read_to_string(book).unwrap();
    let keys =
        LIMIT_KEYS.iter().chain(&TOOL_KEYS).chain(&CANDIDATE_KEYS).chain(&RERUN_KEYS).chain(&BREAKER_KEYS);
    for key in keys {
        assert!(text.contains(&format!("`{key}`")), "docs/src/mirror-settings.md says nothing of `{key}`");
    }
    for class in lastcall_mirror::CLASSES {
        let named =
            class.replace("5xx", "503").replace("4xx", "404").replace("3xx", "302").replace("other", "304");
        assert!(
            text.contains(class) || text.contains(&named),
            "docs/src/mirror-settings.md says nothing of {class}"
        );
    }
}
