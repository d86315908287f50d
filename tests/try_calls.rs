//! `lastcall try` through the real binary: a file, a folder, a ledger; callers, days, what a burn-in would have said;
//! what `plan register` stores of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use lastcall_tests::{Answer, answer, lastcall};
use serde_json::{Value, json};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        for (name, most) in [("old.json", 100), ("new.json", 50), ("closed.json", 0)] {
            let definition = json!({"name": "search_issues", "inputSchema": {"type": "object", "required": ["query"],
                "properties": {"query": {"type": "string"}, "per_page": {"type": "integer", "maximum": most}}}});
            place.file(name, definition.to_string());
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn run(&self, line: &str) -> Answer {
        answer(lastcall().current_dir(self.dir.path()).args(line.split_whitespace()))
    }

    /// Exit code and document of `try old.json new.json` with these arguments.
    fn tried(&self, rest: &str) -> (i32, Value) {
        let said = self.run(&format!("try old.json new.json {rest} --format json"));
        let document = serde_json::from_str(&said.out)
            .unwrap_or_else(|e| panic!("{e}: exit {}\n{}\n{}", said.code, said.out, said.err));
        (said.code, document)
    }
}

/// A call of day `day` of June 2026; `per_page` above 50 is what the new definition refuses.
fn call(n: usize, day: usize, per_page: usize) -> String {
    let agent = ["triage", "support"][n % 2];
    json!({"type": "tool_call", "schema_version": 1, "call_id": format!("c{n}"),
        "ts": format!("2026-06-{day:02}T08:00:00Z"), "tool_id": "search_issues", "contract_id": "search_issues@1",
        "arguments": {"query": "dns", "per_page": per_page}, "outcome": {"status": "ok"},
        "envelope": {"session_id": format!("s{n}"), "agent_id": agent, "prompt_version": format!("p{}", n % 3),
            "model": "m1"}})
    .to_string()
        + "\n"
}

/// `count` calls over `days` days, every `every`-th refused.
fn calls(count: usize, days: usize, every: usize) -> String {
    (0..count).map(|n| call(n, 1 + n * days / count, if n % every == every - 1 { 51 } else { 50 })).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

#[test]
fn a_folder_is_read_to_its_depths_and_each_file_is_named() {
    let place = Place::new();
    place.file("traces/a.jsonl", call(1, 1, 50));
    place.file("traces/2026/b.ndjson.gz", gzip(&call(2, 2, 51)));
    place.file("traces/2026/06/c.jsonl.zst", zstd::encode_all(call(3, 3, 50).as_bytes(), 1).unwrap());
    // one indented list, and one indented call
    let list: Vec<Value> = [4, 5].iter().map(|n| serde_json::from_str(&call(*n, 4, 51)).unwrap()).collect();
    place.file("traces/d.json", serde_json::to_string_pretty(&list).unwrap());
    let one: Value = serde_json::from_str(&call(6, 5, 50)).unwrap();
    place.file("traces/e.json.gz", gzip(&serde_json::to_string_pretty(&one).unwrap()));
    place.file("traces/readme.txt", "not calls");
    let (code, all) = place.tried("traces");
    assert_eq!((code, &all["calls"], &all["refused"]), (1, &json!(6), &json!(3)), "{all:#}");
    let places: Vec<&str> =
        all["worst"].as_array().unwrap().iter().map(|w| w["place"].as_str().unwrap()).collect();
    assert_eq!(places.len(), 3);
    assert!(places.iter().any(|p| p.ends_with("traces/2026/b.ndjson.gz:1")), "{places:?}");
    assert!(places.iter().any(|p| p.ends_with("traces/d.json:2")), "{places:?}");

    // a damaged archive and a record that is none are told with their files, and hide nothing of the others
    let whole = gzip(&calls(500, 1, 600));
    place.file("traces/broken.jsonl.gz", &whole[..whole.len() / 2]);
    place.file("traces/odd.json", "[{\"name\": 1},\n {\"nam");
    let (code, all) = place.tried("traces");
    assert_eq!((code, &all["refused"]), (1, &json!(3)));
    let notes = all["notes"].to_string();
    assert!(notes.contains("traces/broken.jsonl.gz could not be read to its end: after byte"), "{notes}");
    assert!(notes.contains("traces/odd.json:"), "{notes}");
    assert!(all["undecodable"].as_u64().unwrap() >= 2, "{all:#}");

    place.file("damaged/a.jsonl.gz", &whole[..30]);
    place.file("damaged/b.jsonl.gz", &whole[..30]);
    let said = place.run("try old.json new.json damaged");
    assert_eq!(said.code, 2);
    assert!(said.err.contains("none of 2 files can be read; the first: damaged/a.jsonl.gz"), "{}", said.err);
    place.file("nothing/readme.txt", "");
    let said = place.run("try old.json new.json nothing");
    assert_eq!(said.code, 2);
    assert!(said.err.contains("nothing: no .jsonl, .ndjson or .json file in this folder"), "{}", said.err);
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_in_a_circle_ends() {
    let place = Place::new();
    place.file("traces/a.jsonl", call(1, 1, 50));
    std::os::unix::fs::symlink(place.path("traces"), place.path("traces/again")).unwrap();
    assert_eq!(place.tried("traces").1["calls"], json!(1));
}

#[test]
fn callers_days_and_examples_add_up() {
    let place = Place::new();
    place.file("calls.jsonl", calls(1000, 10, 10));
    let began = std::time::Instant::now();
    let (code, all) = place.tried("calls.jsonl --tier T2");
    let took = began.elapsed();
    assert!(took.as_secs_f64() < 2.0, "a thousand calls took {took:?}");
    assert_eq!((code, &all["calls"], &all["refused"]), (1, &json!(1000), &json!(100)));
    let rows = |key: &str| all[key].as_array().unwrap().clone();
    let sum = |rows: &[Value], key: &str| rows.iter().map(|r| r[key].as_u64().unwrap()).sum::<u64>();
    let callers = rows("callers");
    // every tenth call is refused, so n is odd there: agent support, and each prompt version
    assert_eq!(callers.len(), 6, "two agents with three prompt versions: {callers:#?}");
    assert_eq!((sum(&callers, "calls"), sum(&callers, "refused")), (1000, 100));
    let support = callers.iter().filter(|c| c["agent"] == "support").map(|c| c["refused"].as_u64().unwrap());
    assert_eq!(support.sum::<u64>(), 100);
    assert!(callers.iter().all(|c| c["model"] == "m1" && c["prompt_version"].is_string()));
    let days = rows("days");
    assert_eq!(days.len(), 10);
    assert!(days.iter().all(|d| d["compared"] == json!(100) && d["disagreed"] == json!(10)), "{days:#?}");
    assert_eq!(rows("worst").len(), 5);
    assert_eq!(place.tried("calls.jsonl --examples 2").1["worst"].as_array().unwrap().len(), 2);

    let schema: Value = serde_json::from_str(include_str!("../schemas/try.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for document in [&all, &place.tried("calls.jsonl").1] {
        let errors: Vec<String> = validator.iter_errors(document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

/// However clean the calls, the answer is in the conditional: the words of a verdict are never said.
#[test]
fn a_trial_is_never_a_verdict() {
    let place = Place::new();
    for (name, text) in [
        ("clean.jsonl", calls(900, 7, 1000)),
        ("bad.jsonl", calls(900, 7, 3)),
        ("few.jsonl", calls(20, 2, 30)),
        ("undated.jsonl", "{\"name\": \"search_issues\", \"arguments\": {\"query\": \"a\"}}\n".to_owned()),
        ("none.jsonl", String::new()),
    ] {
        place.file(name, text);
    }
    for (name, words) in [
        ("clean.jsonl", "would have passed its checks. That is no verdict"),
        ("bad.jsonl", "would have failed: ceiling, decay."),
        ("few.jsonl", "would have lacked evidence: min_calls, decay, days."),
        ("undated.jsonl", "carry no time"),
        ("none.jsonl", "carry no time"),
    ] {
        for format in ["text", "json", "html"] {
            let said = place.run(&format!("try old.json new.json {name} --tier t2 --format {format}"));
            assert!(said.out.contains(words), "{name} {format}: {}{}", said.out, said.err);
            for part in [&said.out, &said.err] {
                assert!(!part.contains("READY"), "{name} {format}: {part}");
            }
        }
    }
    // each day's D against B: the seven days of T2, one call in nine hundred refused
    place.file("one.jsonl", calls(899, 7, 1000) + &call(900, 7, 51));
    let (_, all) = place.tried("one.jsonl --tier T2");
    let below: Vec<&Value> = all["burn_in"]["days"].as_array().unwrap().iter().map(|d| &d["below"]).collect();
    assert_eq!(below, [true; 7].map(Value::from).iter().collect::<Vec<_>>(), "1 of 129 is 0.78 %");
    assert_eq!(all["burn_in"]["checks"][3]["id"], "decay");
    assert_eq!(all["burn_in"]["checks"][3]["would_have"], "failed", "not below half of B on the last day");
    assert!(place.tried("one.jsonl").1.get("burn_in").is_none(), "only where it was asked for");
}

/// A ledger with two files of calls, the pair observed; the second file repeats the first.
fn archived(place: &Place, new: &str, text: &str) {
    place.file("calls.jsonl", text);
    for line in [
        "ledger init led".to_owned(),
        format!("plan observe old.json {new} --versions 1 2 --ledger led"),
        "run --ledger led calls.jsonl".to_owned(),
    ] {
        let said = place.run(&line);
        assert_eq!(said.code, 0, "{line}: {}{}", said.out, said.err);
    }
}

#[test]
fn a_ledgers_archive_says_what_its_file_says() {
    let place = Place::new();
    let mut text = calls(300, 5, 10);
    text.push_str(&call(7, 1, 51)); // a repeat of a call id within its day
    text.push_str(&call(1001, 3, 51).replace("search_issues", "other_tool"));
    text.push_str(&call(1002, 3, 51).replace("search_issues@1", "search_issues@0"));
    archived(&place, "new.json", &text);
    place.file("same.jsonl", calls(300, 5, 10));
    let (code, from_file) = place.tried("same.jsonl");
    let (ledger_code, from_ledger) = place.tried("--ledger led");
    assert_eq!(code, ledger_code);
    for key in ["refused", "categories", "agreed"] {
        // definitions from files have no contract id of their own, so the call under @0 counts too
        let (a, b) = (&from_file[key], &from_ledger[key]);
        match key {
            "refused" => assert_eq!(a.as_u64().unwrap() + 1, b.as_u64().unwrap()),
            "agreed" => assert_eq!(a, b),
            _ => assert_eq!(a[0]["pointer"], b[0]["pointer"]),
        }
    }
    assert_eq!(from_ledger["other_calls"], json!(1));
    let notes = from_ledger["notes"].to_string();
    assert!(notes.contains("1 repeat of a call id was left out"), "{notes}");
    // the very file that was recorded leaves the same out
    let (_, recorded) = place.tried("calls.jsonl");
    for key in ["calls", "refused", "agreed", "repeats", "other_calls", "other_contract", "notes"] {
        assert_eq!(recorded[key], from_ledger[key], "{key}");
    }
    assert!(from_ledger["worst"][0]["place"].as_str().unwrap().contains("/0@"), "{from_ledger:#}");

    // planted faults are none of the traffic
    let fault: Value = serde_json::from_str(&call(1, 5, 51)).unwrap();
    let fault = json!({"call": fault, "expect": {"category": "range_tightened", "severity": "warn"}});
    place.file("faults.jsonl", format!("{fault}\n"));
    let said = place.run("plan plant search_issues --ledger led --calls faults.jsonl --to calls.jsonl");
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(place.run("run --ledger led calls.jsonl").code, 0);
    let (_, again) = place.tried("--ledger led");
    assert_eq!((&again["calls"], &again["refused"]), (&from_ledger["calls"], &from_ledger["refused"]));
    assert!(again["notes"].to_string().contains("1 planted call was left out"), "{again:#}");
}

/// The pair as contracts of a registry: search_issues@1.0.0 and @2.0.0.
fn registered(place: &Place) {
    for (file, version) in [("old.json", "1.0.0"), ("new.json", "2.0.0")] {
        let said =
            place.run(&format!("contract add {file} --version {version} --registry reg --side-effect read"));
        assert_eq!(said.code, 0, "{}", said.err);
    }
}

#[test]
fn a_file_leaves_out_what_a_ledger_leaves_out() {
    let place = Place::new();
    registered(&place);
    let own = |line: String| line.replace("search_issues@1", "search_issues@1.0.0");
    let mut text: String = (0..20).map(|n| own(call(n, 1, if n < 4 { 51 } else { 50 }))).collect();
    text.push_str(&own(call(3, 1, 51)));
    text.push_str(&own(call(3, 1, 51)));
    text.push_str(&own(call(5, 1, 51)));
    text.push_str(&own(call(5, 2, 50))); // another day is another call
    (30..33).for_each(|n| text.push_str(&call(n, 1, 51))); // under search_issues@1
    text.push_str(&call(40, 1, 51).replace("search_issues", "another_tool"));
    place.file("calls.jsonl", &text);
    place.file("new2.json", std::fs::read_to_string(place.path("new.json")).unwrap());
    for new in ["search_issues@2.0.0", "new2.json"] {
        let said = place.run(&format!("try search_issues@1.0.0 {new} calls.jsonl --registry reg"));
        assert!(said.out.starts_with("4 of 21 calls would be refused"), "{new}: {}{}", said.out, said.err);
        let beside = "Beside these: 3 of another contract, 3 repeats of call ids, 1 of other tools.";
        assert!(said.out.contains(beside), "{new}: {}", said.out);
        for note in [
            "3 calls name another contract than search_issues@1.0.0 and were left out",
            "3 repeats of 2 call ids were left out",
        ] {
            assert!(said.out.contains(note), "{new}: {}", said.out);
        }
    }
    // definitions from files have no id, so every contract counts
    assert_eq!(place.tried("calls.jsonl").1["calls"], json!(24));

    // `diff --calls` counts the same calls
    let said = place.run("diff search_issues@1.0.0 search_issues@2.0.0 --registry reg --calls calls.jsonl");
    assert!(said.out.contains("4 of 21 refused"), "{}{}", said.out, said.err);
    assert!(said.err.contains("3 repeats of 2 call ids were left out"), "{}", said.err);
    assert!(said.err.contains("3 calls name another contract than search_issues@1.0.0"), "{}", said.err);

    // what `plan register --try` stores leaves the same out
    for line in [
        "ledger init led",
        "plan observe search_issues@1.0.0 search_issues@2.0.0 --registry reg --ledger led",
    ] {
        assert_eq!(place.run(line).code, 0, "{line}");
    }
    place.file("policy.yaml", "burn_in: {tier: T1, profile: article}\n");
    let said = place.run("plan register search_issues --policy policy.yaml --ledger led --try calls.jsonl");
    assert!(said.out.contains("tried before: 4 of 21 calls would be refused"), "{}{}", said.out, said.err);
    let stored = place.run("plan show search_issues --ledger led --trial --format json");
    let stored: Value = serde_json::from_str(&stored.out).unwrap();
    assert_eq!((&stored["repeats"], &stored["other_contract"]), (&json!(3), &json!(3)));
    assert_eq!(place.run("plan show search_issues --ledger led --format text").code, 2);
}

/// An agent's log repeats the whole conversation in each line: a call is one call. Calls without an id are all their own.
#[test]
fn a_history_in_each_line_counts_a_call_once() {
    let place = Place::new();
    let one = |id: &str, per_page: u32| {
        json!({"id": id, "type": "function", "function": {"name": "search_issues",
            "arguments": json!({"query": "a", "per_page": per_page}).to_string()}})
    };
    let line = |calls: &[Value]| {
        json!({"messages": [{"role": "assistant", "tool_calls": calls}]}).to_string() + "\n"
    };
    let (a, b, c) = (one("a", 51), one("b", 50), one("c", 50));
    let log = line(std::slice::from_ref(&a)) + &line(&[a.clone(), b.clone()]) + &line(&[a, b, c]);
    place.file("log.jsonl", log);
    let (_, all) = place.tried("log.jsonl");
    assert_eq!((&all["calls"], &all["refused"], &all["repeats"]), (&json!(3), &json!(1), &json!(3)));
    assert!(all["notes"].to_string().contains("3 repeats of 2 call ids were left out"), "{all:#}");
    let nameless =
        json!({"name": "search_issues", "arguments": {"query": "a", "per_page": 51}}).to_string() + "\n";
    place.file("nameless.jsonl", nameless.repeat(5));
    let (_, all) = place.tried("nameless.jsonl");
    assert_eq!((&all["calls"], &all["refused"], &all["repeats"]), (&json!(5), &json!(5), &json!(0)));
}

/// What callers receive may break though every argument fits, and no call shows that.
#[test]
fn a_change_of_the_output_schema_is_never_no_difference() {
    let place = Place::new();
    for (name, kind) in [("out-old.json", "string"), ("out-new.json", "integer")] {
        let definition = json!({"name": "search_issues", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object", "required": ["id"], "properties": {"id": {"type": kind}}}});
        place.file(name, definition.to_string());
    }
    place.file("calls.jsonl", calls(30, 2, 1000));
    let line = "try out-old.json out-new.json calls.jsonl";
    for format in ["text", "json", "html"] {
        let said = place.run(&format!("{line} --format {format}"));
        assert_eq!(said.code, 0);
        assert!(
            said.out.contains("also changed: the output schema; see `lastcall diff`"),
            "{format}: {}",
            said.out
        );
        assert!(
            !said.out.contains("No difference was found") && !said.out.contains("NO CALL AFFECTED"),
            "{format}"
        );
    }
    let said = place.run(line).out;
    let headline = "None of 30 calls would be refused or changed. The output schema changed: `lastcall diff` says what that breaks.";
    assert!(said.starts_with(headline), "{said}");
    let page = place.run("try old.json old.json calls.jsonl --format html").out;
    assert!(page.contains("NO CALL AFFECTED") && page.contains("No difference was found"), "nothing changed");
}

/// The first word of the page: red only where a call would be refused, green only where everything was judged.
#[test]
fn the_page_says_no_more_than_is_known() {
    let place = Place::new();
    let with_default = |value: u32| {
        json!({"name": "search_issues", "inputSchema": {"type": "object",
            "properties": {"query": {"type": "string"}, "per_page": {"type": "integer", "default": value}}}})
        .to_string()
    };
    place.file("ten.json", with_default(10));
    place.file("twenty.json", with_default(20));
    let plain = "{\"name\": \"search_issues\", \"arguments\": {\"query\": \"a\"}}\n";
    place.file("plain.jsonl", plain);
    place.file("broken.jsonl", plain.to_owned() + "{\"name\": 1}\nnonsense\n");
    place.file("empty.jsonl", "");
    for (line, word) in [
        ("ten.json twenty.json plain.jsonl", "WOULD CHANGE"),
        ("ten.json ten.json plain.jsonl", "NO CALL AFFECTED"),
        ("ten.json ten.json broken.jsonl", "NOT ALL JUDGED"),
        ("ten.json ten.json empty.jsonl", "NO CALLS"),
    ] {
        let page = place.run(&format!("try {line} --format html")).out;
        assert!(page.contains(word) && !page.contains("WOULD BREAK"), "{line}: {word}");
    }
    let page = place.run("try ten.json ten.json broken.jsonl --format html").out;
    assert!(page.contains("<dd>2<small>2 of them could not be read"), "{page}");
    assert!(page.contains("Beside these: 2 could not be read."), "{page}");
}

#[test]
fn days_that_lack_calls_say_so() {
    let place = Place::new();
    place.file("calls.jsonl", call(1, 1, 50) + &call(2, 5, 50));
    let (_, all) = place.tried("calls.jsonl --tier T1");
    let days = all["burn_in"]["checks"].as_array().unwrap().iter().find(|c| c["id"] == "days").unwrap();
    assert_eq!((&days["would_have"], &days["value"]), (&json!("lacked"), &json!("2 of 5 days with a call")));
}

#[test]
fn a_registration_keeps_what_was_tried_before() {
    let place = Place::new();
    archived(&place, "new.json", &calls(300, 5, 10));
    let policy = "burn_in: {tier: T1, profile: article}\n";
    place.file("policy.yaml", policy);
    let register = "plan register search_issues --policy policy.yaml --ledger led";
    let said = place.run(&format!("{register} --dry-run"));
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("tried before: 30 of 300 calls would be refused, 0 changed."), "{}", said.out);
    assert!(place.run("plan show search_issues --ledger led --trial").err.contains("nothing is registered"));

    let said = place.run(register);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("tried before: 30 of 300"), "{}", said.out);
    assert!(said.out.contains("next: lastcall run --ledger led calls.jsonl"), "{}", said.out);
    assert!(
        said.out.contains("A T1 burn-in from 2026-06-01 to 2026-06-05 would have failed: ceiling"),
        "{}",
        said.out
    );
    assert!(!said.err.contains("warning"), "{}", said.err);
    let shown = place.run("plan show search_issues --ledger led --trial");
    assert_eq!(shown.code, 0);
    assert!(shown.out.starts_with("30 of 300 calls would be refused"), "{}", shown.out);
    assert!(!shown.out.contains("READY") && !said.out.contains("READY"));
    let verified = place.run("ledger verify led");
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);

    // the stored document is an object that the chain names: taking it away shows
    let state = std::fs::read_dir(place.path("led/chains/control")).unwrap();
    let entries: Vec<Value> = state
        .map(|e| serde_json::from_slice(&std::fs::read(e.unwrap().path()).unwrap()).unwrap())
        .filter(|e: &Value| e["body"]["kind"] == "register")
        .collect();
    let diff = entries[0]["body"]["diff"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    let diff: Value =
        serde_json::from_slice(&std::fs::read(find(&place.path("led/objects"), &diff)).unwrap()).unwrap();
    assert_eq!((&diff["class"], &diff["old"]), (&json!("breaking"), &json!("search_issues@1")), "{diff:#}");
    let digest = entries[0]["body"]["trial"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    let object = find(&place.path("led/objects"), &digest);
    let stored: Value = serde_json::from_slice(&std::fs::read(&object).unwrap()).unwrap();
    assert_eq!((&stored["calls"], &stored["refused"]), (&json!(300), &json!(30)));
    let findings = stored["worst"].as_array().unwrap().iter().flat_map(|w| w["findings"].as_array().unwrap());
    assert!(findings.map(|f| f.get("value")).all(|v| v.is_none()), "no value of a call is stored");
    std::fs::remove_file(object).unwrap();
    assert_eq!(place.run("ledger verify led").code, 3);
}

fn find(folder: &Path, digest: &str) -> PathBuf {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().replace(['/', '-', ':'], "").contains(digest) {
                return path;
            }
        }
    }
    panic!("no object {digest}")
}

#[test]
fn a_window_that_cannot_pass_is_told_at_its_registration() {
    let place = Place::new();
    archived(&place, "closed.json", &calls(40, 4, 50));
    place.file("policy.yaml", "burn_in: {tier: T1, profile: article}\n");
    let register = "plan register search_issues --policy policy.yaml --ledger led";
    let said = place.run(register);
    assert_eq!(said.code, 0, "it is the team's decision: {}{}", said.out, said.err);
    assert!(
        said.err.contains("warning: none of the 40 calls that were tried would agree (40 disagree"),
        "{}",
        said.err
    );

    // other calls than the archived ones, or none
    place.file("good.jsonl", calls(10, 2, 50).replace("\"per_page\":50", "\"per_page\":0"));
    let said = place.run(&format!("{register} --replace --try good.jsonl"));
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("None of 10 calls would be refused or changed. (good.jsonl)"), "{}", said.out);
    assert!(!said.err.contains("warning"), "{}", said.err);
    let said = place.run(&format!("{register} --replace --try missing.jsonl"));
    assert_eq!(said.code, 2);
    assert!(said.err.contains("cannot read missing.jsonl"), "{}", said.err);
    let said = place.run(&format!("{register} --replace --no-try"));
    assert_eq!(said.code, 0);
    assert!(!said.out.contains("tried before") && !said.err.contains("warning"));
    let said = place.run("plan show search_issues --ledger led --trial");
    assert_eq!(said.code, 2);
    assert!(said.err.contains("no calls were tried at registration"), "{}", said.err);
}

#[test]
fn what_cannot_be_tried_is_told() {
    let place = Place::new();
    place.file("calls.jsonl", calls(10, 2, 5));
    place.file("not-a-ledger/x", "");
    place.file("foo.json", "{\"foo\": 1}");
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    place.file("three.json", json!([tool("a"), tool("b"), tool("c")]).to_string());
    registered(&place);
    assert_eq!(place.run("ledger init led").code, 0);
    for (line, code, words) in [
        ("try old.json new.json", 2, "<CALLS>"),
        ("try old.json new.json calls.jsonl --tier T9", 2, "T1, T2, T3, T4, T5"),
        ("try old.json new.json calls.jsonl --ledger led", 2, "cannot be used with"),
        ("try old.json new.json --ledger nowhere", 2, "nowhere"),
        ("try old.json new.json --ledger not-a-ledger", 2, "not-a-ledger"),
        ("try old.json new.json calls.jsonl --tool search_tickets", 2, "the calls are of: search_issues"),
        ("try old.json nowhere.json calls.jsonl", 2, "the new definition: cannot read nowhere.json"),
        ("try foo.json new.json calls.jsonl", 2, "foo.json: "),
        ("try three.json new.json calls.jsonl", 2, "Name one with `--tool NAME`"),
        ("try search_issues@9.9.9 new.json calls.jsonl --registry reg", 2, "contract list --registry reg`"),
        ("synth foo.json", 2, "foo.json: "),
        ("synth three.json", 2, "Name one with `--tool NAME`"),
        ("plan observe three.json new.json --versions 1 2 --ledger led", 2, "Name one with `--tool NAME`"),
        ("contract add three.json --registry reg", 2, "Name one with `--name NAME`"),
        ("lint foo.json", 1, ""),
        (
            "plan register search_issues --registry reg --ledger led",
            2,
            "reg/search_issues/release-policy.yaml is absent",
        ),
        ("plan register nothing --registry reg --ledger led", 2, "the registry reg has no tool `nothing`"),
    ] {
        let said = place.run(line);
        assert_eq!(said.code, code, "{line}: {}{}", said.out, said.err);
        assert!(said.err.contains(words), "{line}: {}", said.err);
        assert!(
            !said.err.contains("there is ``") && !said.out.contains("there is ``"),
            "{line}: {}",
            said.err
        );
    }
    // names that nobody would have thought of are bounded, not believed
    let many: String = (0..7000)
        .map(|n| {
            call(n, 1, 50)
                .replace("\"per_page\"", &format!("\"x{n}\""))
                .replace("\"triage\"", &format!("\"a{n}\""))
        })
        .collect();
    place.file("many.jsonl", many);
    place.file(
        "sealed.json",
        std::fs::read_to_string(place.path("new.json"))
            .unwrap()
            .replace("\"type\":\"object\"", "\"additionalProperties\":false,\"type\":\"object\""),
    );
    let said = place.run("try old.json sealed.json many.jsonl --format json");
    let all: Value = serde_json::from_str(&said.out).unwrap();
    for table in ["categories", "callers"] {
        let rows = all[table].as_array().unwrap();
        assert!(rows.len() <= 5001, "{table}: {}", rows.len());
    }
    let sum: u64 = all["callers"].as_array().unwrap().iter().map(|c| c["calls"].as_u64().unwrap()).sum();
    assert_eq!(sum, 7000);
}
