//! The command line as an interface: help with examples, exit codes, what bad input is told, standard input, colour.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use lastcall_tests::{Answer, answer, lastcall};
use serde_json::{Value, json};

/// A folder in which commands run, so that no path of the machine stands in their words.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        let definition = |most: u32| {
            json!({"name": "search_issues", "inputSchema": {"type": "object", "required": ["query"], "properties": {
                "query": {"type": "string"}, "per_page": {"type": "integer", "maximum": most}}}})
        };
        place.file("old.json", definition(100).to_string());
        place.file("new.json", definition(50).to_string());
        let call = |n: u32, arguments: Value| {
            json!({"type": "tool_call", "schema_version": 1, "call_id": format!("c{n}"), "ts": "2026-06-01T08:00:00Z",
                "tool_id": "search_issues", "contract_id": "search_issues@1", "arguments": arguments,
                "outcome": {"status": "ok"}, "envelope": {"session_id": format!("s{n}")}})
            .to_string()
                + "\n"
        };
        place.file(
            "fine.jsonl",
            call(1, json!({"query": "dns"})) + &call(2, json!({"query": "ui", "per_page": 50})),
        );
        place.file(
            "bites.jsonl",
            call(1, json!({"query": "dns"})) + &call(2, json!({"query": "ui", "per_page": 51})),
        );
        place.file("empty.jsonl", "");
        place.file("empty.json", "");
        place.file("cut.jsonl", call(1, json!({"query": "dns"})) + "{\"type\": \"tool_call\", \"schema_ver");
        place.file("binary.jsonl", [0xff_u8, 0xfe, 0, 10, 0x80, 10]);
        place.file(
            "version.jsonl",
            call(1, json!({"query": "dns"})).replace("\"schema_version\":1", "\"schema_version\":2"),
        );
        place.file("broken.json", "{\"name\": \"x\"");
        std::fs::create_dir(place.dir.path().join("folder")).unwrap();
        assert_eq!(place.run("ledger init led").code, 0);
        place
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.dir.path().join(name), content).unwrap();
    }

    fn command(&self, line: &str) -> std::process::Command {
        let mut command = lastcall();
        command.current_dir(self.dir.path()).args(line.split_whitespace());
        command
    }

    fn run(&self, line: &str) -> Answer {
        answer(&mut self.command(line))
    }

    /// Exit code and messages of each line, as a person sees them. Standard output is left out where it is long.
    fn transcript(&self, lines: &[&str]) -> String {
        let mut out = String::new();
        for line in lines {
            let said = self.run(line);
            out.push_str(&format!("$ lastcall {line}\n"));
            for text in [&said.out, &said.err] {
                out.extend(text.lines().take(6).map(|l| format!("  {l}").trim_end().to_owned() + "\n"));
            }
            out.push_str(&format!("  = {}\n", said.code));
        }
        out
    }
}

/// Every command and subcommand, by walking the help.
fn commands() -> Vec<String> {
    let mut found = vec![];
    let mut open = vec![String::new()];
    while let Some(command) = open.pop() {
        let help = answer(lastcall().args(command.split_whitespace()).arg("--help"));
        assert_eq!(help.code, 0, "{command} --help");
        let mut listed =
            help.out.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
        for line in &mut listed {
            // Wrapped descriptions are indented further than the names.
            if line.starts_with("  ") && !line.starts_with("   ") {
                let name = line.split_whitespace().next().unwrap();
                if name != "help" {
                    open.push(format!("{command} {name}").trim().to_owned());
                }
            }
        }
        if !command.is_empty() {
            found.push(command);
        }
    }
    found.sort();
    found
}

#[test]
fn every_command_helps_with_an_example() {
    let commands = commands();
    let names: BTreeSet<&str> = commands.iter().map(String::as_str).collect();
    for wanted in [
        "try",
        "run",
        "decide",
        "status",
        "simulate",
        "demo",
        "plan observe",
        "ledger verify",
        "contract add",
    ] {
        assert!(names.contains(wanted), "{wanted} is missing in {names:?}");
    }
    let mut without = Vec::new();
    for command in &commands {
        let help = answer(lastcall().args(command.split_whitespace()).arg("--help")).out;
        let example = help.split_once("Example").is_some_and(|(_, rest)| rest.contains("lastcall "));
        if !example && !matches!(command.as_str(), "completions" | "man") {
            without.push(command);
        }
    }
    assert!(without.is_empty(), "--help without an example: {without:?}");
}

#[test]
fn exit_codes_are_an_interface() {
    let place = Place::new();
    for (line, code) in [
        ("try old.json new.json fine.jsonl", 0),
        ("try old.json new.json bites.jsonl", 1),
        ("try old.json new.json empty.jsonl", 3),
        ("try old.json new.json cut.jsonl", 3),
        ("try old.json new.json missing.jsonl", 2),
        ("run --ledger led fine.jsonl", 0),
        ("run --ledger led fine.jsonl", 0),
        ("run --ledger nowhere fine.jsonl", 2),
        ("ledger verify led", 0),
        ("ledger init led", 2),
        ("status --ledger led", 0),
        ("decide search_issues --ledger led", 2),
        ("plan observe old.json new.json --versions 1 2 --ledger led", 0),
        ("decide search_issues --ledger led", 3),
        ("decide --all --ledger led", 3),
        ("frobnicate", 2),
        ("--version", 0),
    ] {
        let said = place.run(line);
        assert_eq!(said.code, code, "lastcall {line}: {}{}", said.out, said.err);
    }
    let chain = place.dir.path().join("led/chains/control/00000000000000000001.json");
    let altered = std::fs::read_to_string(&chain).unwrap().replace("fine.jsonl", "fine.jsonX");
    std::fs::write(&chain, altered).unwrap();
    let said = place.run("ledger verify led");
    assert_eq!(said.code, 1, "an altered record: {}{}", said.out, said.err);
    let said = place.run("decide search_issues --ledger led");
    assert_eq!(said.code, 4, "nothing is decided on an altered record: {}{}", said.out, said.err);
}

#[test]
fn bad_calls_are_told_apart() {
    let place = Place::new();
    let transcript = place.transcript(&[
        "try old.json new.json empty.jsonl",
        "try old.json new.json cut.jsonl",
        "try old.json new.json binary.jsonl",
        "try old.json new.json version.jsonl",
        "try old.json new.json missing.jsonl",
        "try old.json new.json folder",
    ]);
    insta::assert_snapshot!(transcript, @r###"
    $ lastcall try old.json new.json empty.jsonl
      No call of search_issues was found.
      old.json → new.json, calls from empty.jsonl
      = 3
    $ lastcall try old.json new.json cut.jsonl
      None of 1 call would be refused or changed.
      old.json → new.json, calls from cut.jsonl
      Beside these: 1 could not be read.

      By day
        day (UTC)   compared  disagreed        D  refused
      = 3
    $ lastcall try old.json new.json binary.jsonl
      No call of search_issues was found.
      old.json → new.json, calls from binary.jsonl
      Beside these: 2 could not be read.

      Notes
        could not be decoded (not_utf8): 2; the first: binary.jsonl:1: UTF-16 text, by its byte order mark; events are UTF-8 JSON: save the file as UTF-8
      = 3
    $ lastcall try old.json new.json version.jsonl
      No call of search_issues was found.
      old.json → new.json, calls from version.jsonl
      Beside these: 1 could not be read.

      Notes
        could not be decoded (unknown_version): 1; the first: version.jsonl:1: schema_version 2 is not known to this build; it reads 1
      = 3
    $ lastcall try old.json new.json missing.jsonl
      error: cannot read missing.jsonl
        because: No such file or directory (os error 2)
      = 2
    $ lastcall try old.json new.json folder
      error: folder: no .jsonl, .ndjson or .json file in this folder (plain, .gz or .zst)
      = 2
    "###);
}

#[test]
fn bad_definitions_are_told_apart() {
    let place = Place::new();
    let transcript = place.transcript(&[
        "try missing.json new.json fine.jsonl",
        "try broken.json new.json fine.jsonl",
        "try empty.json new.json fine.jsonl",
        "try folder new.json fine.jsonl",
        "try search_issues@1 new.json fine.jsonl",
    ]);
    insta::assert_snapshot!(transcript, @r###"
    $ lastcall try missing.json new.json fine.jsonl
      error: the old definition: cannot read missing.json; give a file or tool_id@version
        because: No such file or directory (os error 2)
      = 2
    $ lastcall try broken.json new.json fine.jsonl
      error: broken.json: not JSON: EOF while parsing an object at line 1 column 12. Correct the file.
      = 2
    $ lastcall try empty.json new.json fine.jsonl
      error: empty.json: not JSON: EOF while parsing a value at line 1 column 0. Correct the file.
      = 2
    $ lastcall try folder new.json fine.jsonl
      error: the old definition: cannot read folder; give a file or tool_id@version
        because: Is a directory (os error 21)
      = 2
    $ lastcall try search_issues@1 new.json fine.jsonl
      error: agent-tools: no such folder. Name the registry with --registry DIR or LASTCALL_REGISTRY; `lastcall contract add FILE` begins a new one
      = 2
    "###);
}

#[test]
fn bad_input_of_a_run_is_kept_and_counted() {
    let place = Place::new();
    let transcript = place.transcript(&[
        "run --ledger led empty.jsonl",
        "run --ledger led cut.jsonl",
        "run --ledger led binary.jsonl",
        "run --ledger led version.jsonl",
        "run --ledger led missing.jsonl",
        "run --ledger led folder",
        "run --ledger nowhere fine.jsonl",
    ]);
    insta::assert_snapshot!(transcript, @r###"
    $ lastcall run --ledger led empty.jsonl
      source `empty.jsonl` is new
      nothing new: source `empty.jsonl` is recorded up to byte 0; noted that it was read to its end
      = 0
    $ lastcall run --ledger led cut.jsonl
      source `cut.jsonl` is new
      read 1: 1 calls, 0 dead, 0 other, in 1 chunk
        tool                calls         agreed      disagreed  both_rejected       excluded     unresolved
        search_issues           1              0              0              0              0              0
        1 tool with no observed pair: counted, not compared (lastcall plan observe)
      the last line (33 bytes) has no end yet and waits for it; --final takes it as it is
      = 0
    $ lastcall run --ledger led binary.jsonl
      source `binary.jsonl` is new
      read 2: 0 calls, 2 dead, 0 other, in 1 chunk
        dead: 2 not_utf8 (lastcall ledger files led --kind dead)
        the first: at byte 0: UTF-16 text, by its byte order mark; events are UTF-8 JSON: save the file as UTF-8
      warning: every record is dead: nothing of this source is in the record
      = 0
    $ lastcall run --ledger led version.jsonl
      source `version.jsonl` is new
      read 1: 0 calls, 1 dead, 0 other, in 1 chunk
        dead: 1 unknown_version (lastcall ledger files led --kind dead)
        the first: at byte 0: schema_version 2 is not known to this build; it reads 1
      warning: the only record is dead: nothing of this source is in the record
      = 0
    $ lastcall run --ledger led missing.jsonl
      error: missing.jsonl: No such file or directory (os error 2)
      = 2
    $ lastcall run --ledger led folder
      error: folder: it is a folder; name a file
      = 2
    $ lastcall run --ledger nowhere fine.jsonl
      error: nowhere is not a ledger: it has no ledger.json; make one with `lastcall ledger init`
      = 2
    "###);
}

/// Lines for `try` in a `run`: the first is named with what it lacks, and what they are for.
#[test]
fn lines_of_a_provider_are_told_to_be_for_try() {
    let place = Place::new();
    let line = "{\"name\": \"search_issues\", \"arguments\": {\"query\": \"a\"}}\n";
    place.file("lines.jsonl", line.repeat(3));
    let said = place.run("run --ledger led lines.jsonl");
    assert_eq!(said.code, 0);
    for words in [
        "dead: 3 missing_field",
        "the first: at byte 0: a record needs `type`",
        "are for `lastcall try`; `run` needs tool_call events",
        "a file of another name",
        "warning: every record is dead",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
}

#[test]
fn unknown_names_are_told_what_there_is() {
    let place = Place::new();
    assert_eq!(
        place.run("contract add old.json --version 1 --registry reg --side-effect read --risk low").code,
        0
    );
    let transcript = place.transcript(&[
        "contract show search_issue@1 --registry reg",
        "plan observe search_issues@1 search_issues@9 --registry reg --ledger led",
        "plan register search_issues --ledger led",
        "decide search_issues --ledger led",
        "simulate old.json new.json --rate required_added=2",
        "simulate old.json new.json --rate null_refused=0.5",
        "simulate old.json new.json --rate outcome_recovered=0.5",
    ]);
    insta::assert_snapshot!(transcript, @r###"
    $ lastcall contract show search_issue@1 --registry reg
      error: registry: no contract `search_issue@1`. Perhaps `search_issues@1` was meant.
      = 2
    $ lastcall plan observe search_issues@1 search_issues@9 --registry reg --ledger led
      error: registry: no contract `search_issues@9`. Perhaps `search_issues@1` was meant.
      = 2
    $ lastcall plan register search_issues --ledger led
      error: there is no plan: give --policy release-policy.yaml, or --registry DIR with one beside the tool
      = 2
    $ lastcall decide search_issues --ledger led
      error: no tool `search_issues` is registered or observed; begin with `lastcall plan observe OLD NEW`
      = 2
    $ lastcall simulate old.json new.json --rate required_added=2
      error: invalid value 'required_added=2' for '--rate <CATEGORY=SHARE>': 2: a share lies between 0 and 1

      For more information, try '--help'.
      = 2
    $ lastcall simulate old.json new.json --rate null_refused=0.5
      error: no call was found that search_issues@1 takes and that shows null_refused under search_issues@2: look at what changed with `lastcall try`, and name a category of this pair
      = 2
    $ lastcall simulate old.json new.json --rate outcome_recovered=0.5
      error: outcome_recovered is seen in outcomes: it needs --mirrored
      = 2
    "###);
}

#[test]
fn calls_come_from_standard_input() {
    let place = Place::new();
    let calls = std::fs::read(place.dir.path().join("bites.jsonl")).unwrap();
    let feed = |line: &str| {
        let mut command = place.command(line);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&calls).unwrap();
        let done = child.wait_with_output().unwrap();
        (
            done.status.code().unwrap(),
            String::from_utf8(done.stdout).unwrap() + &String::from_utf8_lossy(&done.stderr),
        )
    };
    let (code, report) = feed("try old.json new.json - --format json");
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((code, &report["calls"], &report["refused"]), (1, &json!(2), &json!(1)));

    let (code, summary) = feed("run --ledger led --source piped --format json -");
    let summary: Value = serde_json::from_str(&summary).unwrap_or_else(|e| panic!("{e}: {summary}"));
    assert_eq!((code, &summary["balance"]["calls"]), (0, &json!(2)), "{summary:#}");
    let (code, again) = feed("run --ledger led --source piped -");
    assert_eq!(code, 2, "every standard input is a new source, one name is one stream: {again}");
}

#[test]
fn no_colour_where_nobody_asks_for_it() {
    let place = Place::new();
    for line in ["try old.json new.json bites.jsonl", "--help", "decide nothing --ledger led"] {
        for no_color in [Some("1"), None] {
            let mut command = place.command(line);
            match no_color {
                Some(value) => command.env("NO_COLOR", value),
                None => command.env_remove("NO_COLOR"),
            };
            let said = answer(&mut command);
            assert!(
                !said.out.contains('\u{1b}') && !said.err.contains('\u{1b}'),
                "{line}: {said_out:?}",
                said_out = said.out
            );
        }
    }
}

#[test]
fn a_simulation_is_the_same_for_the_same_seed() {
    let place = Place::new();
    let make = |seed: u32, more: &str| {
        place.run(&format!("simulate old.json new.json --days 3 --calls-per-day 40 --rate range_tightened=0.1 --seed {seed} {more}"))
    };
    let (first, second, other) = (make(7, ""), make(7, ""), make(8, ""));
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(first.out == second.out, "the same seed gives the same bytes");
    assert_ne!(first.out, other.out);
    insta::assert_snapshot!(first.err, @r###"
    tool           calls that show                  calls
    search_issues  nothing                            108
    search_issues  range_tightened                     12
    120 calls, 75 clock records
    "###);

    for more in [
        "",
        "--mirrored",
        "--mirrored --side-effect send",
        "--mirrored --side-effect write --outcomes ok=0.8,business_error=0.2",
    ] {
        place.file("made.jsonl", make(7, more).out);
        let said = place.run("try old.json new.json made.jsonl --format json");
        let report: Value = serde_json::from_str(&said.out).unwrap();
        // 10 % of 40 calls on each of 3 days, whatever the mirror did.
        let found = ["calls", "disagreed", "refused", "unresolved"].map(|k| report[k].as_u64().unwrap());
        assert_eq!(found, [120, 12, 12, 0], "{more}: {report:#}");
        assert!(
            report["days"].as_array().unwrap().iter().all(|d| d["disagreed"] == json!(4)),
            "{more}: {report:#}"
        );
    }
}

#[test]
fn the_demo_keeps_its_promises_anywhere() {
    let place = Place::new();
    let said = place.run("demo --out shown");
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let table: String =
        said.out.lines().skip_while(|l| !l.starts_with("$ lastcall decide")).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(table, @r###"
    $ lastcall decide --all --ledger shown/ledger
    verdict       tool                   candidate                     closed  calls        D  why
    READY         orders.lookup          orders.lookup@2.0.0          14 days  4,480  0.647 %  every check passes
    NOT_READY     refund.create_request  refund.create_request@2.0.0  14 days  1,260  7.540 %  ceiling_reached
    INSUFFICIENT  sms.send               sms.send@2.0.0               14 days    168  0.000 %  min_calls_short

    report:  shown/report.html
    verdict: shown/verdict.json
    ledger:  shown/ledger
    next:    lastcall decide refund.create_request --ledger shown/ledger --explain
    "###);
    let shown = place.dir.path().join("shown");
    for file in
        ["report.html", "verdict.json", "calls.jsonl", "ledger/ledger.json", "agent-tools/registry.lock"]
    {
        assert!(shown.join(file).is_file(), "{file}");
    }
    let verdicts: Value =
        serde_json::from_str(&std::fs::read_to_string(shown.join("verdict.json")).unwrap()).unwrap();
    assert_eq!(verdicts.as_array().unwrap().len(), 3);
    assert_eq!(place.run("ledger verify shown/ledger").code, 0);
    assert_eq!(place.run("demo --out shown").code, 0, "it replaces what it made");
    place.file("folder/mine.txt", "mine");
    assert_eq!(place.run("demo --out folder").code, 2, "it replaces nothing else");
    assert!(Path::new(&place.dir.path().join("folder/mine.txt")).is_file());
}

/// The worked example: 40,000 calls over 14 days. Read as counts it passes; read as daily rates it fails.
#[test]
fn the_worked_example_has_two_readings() {
    let place = Place::new();
    assert_eq!(place.run("simulate --scenario worked-example --out worked.jsonl --definitions pair").code, 0);
    for (basis, verdict, code) in [("window", "READY", 0), ("day", "NOT_READY", 1)] {
        place.file(
            "policy.yaml",
            format!("burn_in: {{tier: T2, profile: article, ceiling_basis: {basis}}}\n"),
        );
        for line in [
            format!("ledger init {basis} --clock simulated"),
            format!(
                "plan observe pair/old.json pair/new.json --tool shop.place_order --versions 1 2 --ledger {basis}"
            ),
            format!("plan register shop.place_order --policy policy.yaml --from 2026-06-01 --ledger {basis}"),
            format!("run --ledger {basis} worked.jsonl"),
        ] {
            let said = place.run(&line);
            assert_eq!(said.code, 0, "{line}: {}{}", said.out, said.err);
        }
        let said = place.run(&format!("decide shop.place_order --ledger {basis} --format json"));
        let answered: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}{}", said.out, said.err));
        assert_eq!((answered["verdict"].as_str(), said.code), (Some(verdict), code), "{basis}: {answered:#}");
    }
}
