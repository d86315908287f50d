//! `lastcall diff` through the real binary: every format, exit codes, what bad input is told, batches, determinism.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use insta::assert_snapshot;
use lastcall_contract::{Draft, validator_for};
use lastcall_tests::{Answer, answer, lastcall};
use serde_json::{Value, json};

struct Place {
    dir: tempfile::TempDir,
}

fn tool(name: &str, properties: Value, required: Value) -> Value {
    json!({"name": name, "description": format!("Does {name}."),
        "inputSchema": {"type": "object", "properties": properties, "required": required}})
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        let search = |most: u32| {
            tool(
                "search",
                json!({"query": {"type": "string"}, "per_page": {"type": "integer", "maximum": most}}),
                json!(["query"]),
            )
        };
        place.json("old.json", &search(100));
        place.json("new.json", &search(50));
        place.json("wider.json", &search(200));
        let mut text = search(100);
        text["description"] = json!("Searches issues.");
        place.json("text.json", &text);
        let lost = tool("search", json!({"query": {"type": "string"}}), json!(["query"]));
        place.json("lost.json", &lost);
        let refund = |name: &str, field: &str, schema: Value| {
            tool(name, json!({"order_id": {"type": "string"}, field: schema}), json!(["order_id", field]))
        };
        let bad = json!({"name": "bad", "inputSchema": {"type": "objekt"}});
        let lookup = tool("lookup", json!({"q": {"type": "string"}}), json!([]));
        place.json(
            "surface-old.json",
            &json!({"tools": [
            refund("refund", "reason", json!({"type": "string"})), lookup, bad, search(100)]}),
        );
        place.json(
            "surface-new.json",
            &json!({"tools": [
            refund("create_refund", "reason_code", json!({"type": "string", "enum": ["damaged", "late"]})),
            lookup, tool("bad", json!({}), json!([])), search(50)]}),
        );
        place.json("bare-old.json", &json!({"type": "integer", "minimum": 0}));
        place.json("bare-new.json", &json!({"type": "integer", "minimum": 5}));
        place
    }

    fn json(&self, name: &str, value: &Value) {
        self.file(name, serde_json::to_string_pretty(value).unwrap());
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    fn command(&self, line: &str) -> std::process::Command {
        let mut command = lastcall();
        command.current_dir(self.dir.path()).env_remove("GITHUB_STEP_SUMMARY").args(line.split_whitespace());
        command
    }

    fn run(&self, line: &str) -> Answer {
        answer(&mut self.command(line))
    }

    fn parsed(&self, line: &str) -> Value {
        serde_json::from_str(&self.run(line).out).unwrap()
    }
}

#[test]
fn the_class_comes_first() {
    let place = Place::new();
    assert_snapshot!(place.run("diff old.json new.json").out, @r#"
    BREAKING  search  [the model reads it]
    The argument `per_page` takes less: `maximum` went from `100` to `50`.
    old.json → new.json

    What is known
      calls with declared arguments  a call is refused
      calls with any arguments       a call is refused

    What changed
      breaking: The argument `per_page` takes less: `maximum` went from `100` to `50`.
        range_tightened, input /per_page, schema /properties/per_page/maximum, backed by witness
        100 → 50
        fix: Take the old values too for a version, or adapt calls of the old contract

    A call that is refused now
      {"name":"search","arguments":{"per_page":51,"query":""}}
        refused at `/per_page` by `maximum` (`/properties/per_page/maximum`); found by the proof

    asks for: version step major; publish a new major version, or run old and new side by side
    next: `lastcall try old.json new.json CALLS` shows which recorded calls it meets; publish it beside the old version, and let `lastcall decide` say when the old one can go
    "#);
    assert_snapshot!(place.run("diff surface-old.json surface-new.json").out, @r#"
    BREAKING  4 tools
    1 changed, 1 renamed, 1 unreadable of 4 tools; the worst is breaking.
    surface-old.json → surface-new.json

      breaking      refund → create_refund  probably renamed  4 changes
      breaking      search                  kept              1 change
      needs review  bad                     cannot be read    0 changes
      1 unchanged tool

    BREAKING  refund → create_refund  [the model reads it]
      `refund` is probably `create_refund` now: 75 % of the arguments alike, near name, similar description

    What is known
      calls with declared arguments  a call is refused
      calls with any arguments       a call is refused

    What changed
      breaking: The tool `refund` is called `create_refund` now: a call by the old name finds no tool.
        tool_renamed, definition /name, backed by witness
        "refund" → "create_refund"
        fix: Keep `refund` as an alias, or let an adapter route it to `create_refund`
      breaking: A new required argument `reason_code` was added: one of `damaged`, `late`; `reason` was probably its old name (near name, both strings).
        required_added, input /reason_code, schema /properties/reason_code (new), backed by witness
        nothing → {"enum":["damaged","late"],"type":"string"}
        fix: Leave `reason_code` optional for a version, or fill it in an adapter for calls of the old contract
      high risk: The argument `reason` is no longer declared but still accepted: its value is lost without an error; `reason_code` is probably its new name (near name, both strings).
        property_dropped, input /reason, schema /properties/reason (old), backed by rule
        {"type":"string"} → nothing
        fix: Rename `reason` to `reason_code` in an adapter
      usually compatible: The description of the tool changed.
        description_changed, definition /description, backed by rule
        "Does refund." → "Does create_refund."

    Refused now, a call each
      {"name":"refund","arguments":{"order_id":"O-43432","reason":"delta raven cedar"}}
        no tool has this name any more; made from the schema
      {"name":"refund","arguments":{"order_id":"","reason":""}}
        refused by `required` (`/required`); found by the proof

    Ask the owner
      - Does the tool still use the argument `reason`? It is no longer declared.
      - Does the tool still do the same? Its description changed.

    BREAKING  search  [the model reads it]

    What is known
      calls with declared arguments  a call is refused
      calls with any arguments       a call is refused

    What changed
      breaking: The argument `per_page` takes less: `maximum` went from `100` to `50`.
        range_tightened, input /per_page, schema /properties/per_page/maximum, backed by witness
        100 → 50
        fix: Take the old values too for a version, or adapt calls of the old contract

    A call that is refused now
      {"name":"search","arguments":{"per_page":51,"query":""}}
        refused at `/per_page` by `maximum` (`/properties/per_page/maximum`); found by the proof

    NEEDS REVIEW  bad
      old `bad`: surface-old.json at /tools/2/inputSchema/type: "objekt" is not a JSON Schema type. Types are array, boolean, integer, null, number, object, string, in lower case.

    asks for: version step major; publish a new major version, or run old and new side by side
    next: `lastcall try` shows which recorded calls it meets; publish it beside the old version, and let `lastcall decide` say when the old one can go
    "#);
    assert!(!place.run("diff old.json new.json").out.contains('\u{1b}'), "no colour where nobody looks");
}

#[test]
fn exit_codes_are_an_interface() {
    let place = Place::new();
    for (line, code) in [
        ("diff old.json old.json", 0),
        ("diff old.json wider.json", 0),
        ("diff old.json text.json", 0),
        ("diff old.json new.json", 1),
        ("diff old.json lost.json", 1),
        ("diff surface-old.json surface-new.json", 1),
        ("diff surface-new.json surface-new.json", 0),
        ("diff surface-old.json surface-old.json", 2),
        ("diff surface-old.json surface-new.json --tool lookup", 0),
        ("diff old.json surface-new.json --tool search", 1),
        ("diff bare-old.json bare-new.json", 1),
        ("diff bare-new.json bare-old.json", 0),
        ("diff bare-old.json bare-new.json --direction output", 0),
        ("diff bare-new.json bare-old.json --direction output", 1),
    ] {
        for format in ["text", "json", "markdown", "sarif", "junit", "github"] {
            let said = place.run(&format!("{line} --format {format}"));
            assert_eq!(said.code, code, "{line} --format {format}: {}", said.err);
        }
    }
}

#[test]
fn bad_input_is_told_what_to_do() {
    let place = Place::new();
    place.file("empty", "");
    place.file("cut.json", "{\"name\": \"x\"");
    place.file("list.json", "{\"tools\": []}");
    place.json("openapi.json", &json!({"openapi": "3.1.0", "paths": {"/a": {}}}));
    place.file("none.json", "{\"tools\": [{\"type\": \"web_search\", \"name\": \"w\"}]}");
    place.file("binary.json", [0xff_u8, 0xfe, 0, 1]);
    place.file("deep.json", "[".repeat(10_000) + &"]".repeat(10_000));
    place.file("deep-schema.json", format!("{}true{}", "{\"not\":".repeat(10_000), "}".repeat(10_000)));
    place.json(
        "invalid.json",
        &json!({"name": "x", "inputSchema": {"type": "object", "properties": {"a": {"type": "text"}}}}),
    );
    place.json(
        "outside.json",
        &json!({"name": "x", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "other.json"}}}}),
    );
    std::fs::create_dir(place.dir.path().join("folder")).unwrap();
    let mut told = String::new();
    for line in [
        "diff absent.json new.json",
        "diff old.json empty",
        "diff old.json cut.json",
        "diff old.json openapi.json",
        "diff surface-old.json list.json --tool x",
        "diff bare-old.json surface-new.json",
        "diff old.json binary.json",
        "diff old.json deep.json",
        "diff deep-schema.json bare-new.json",
        "diff old.json invalid.json",
        "diff old.json outside.json",
        "diff old.json folder",
        "diff search@1.0.0 search@2.0.0 --registry absent",
        "diff nowhere:old.json new.json",
        "diff surface-old.json surface-new.json --tool serch",
        "diff old.json new.json --calls absent.jsonl",
        "diff old.json new.json --require-bump",
        "diff old.json",
        "diff - -",
        "diff --batch absent.jsonl",
    ] {
        let said = place.run(line);
        assert_eq!(said.code, 2, "{line}: {} {}", said.out, said.err);
        assert!(said.out.is_empty(), "{line}: {}", said.out);
        told.push_str(&format!("$ lastcall {line}\n"));
        // what git and the parser of flags say further is theirs
        let own = said.err.lines().take_while(|l| !l.is_empty()).map(|l| l.split("git says").next().unwrap());
        told.extend(own.map(|l| format!("  {l}").trim_end().to_owned() + "\n"));
    }
    assert_snapshot!(told, @r#"
    $ lastcall diff absent.json new.json
      error: the old side: cannot read absent.json. Give a file, tool_id@version of a registry (--registry DIR), or REV:PATH or REV:tool_id@version of git
    $ lastcall diff old.json empty
      error: empty: not JSON: EOF while parsing a value at line 1 column 0. Correct the file.
    $ lastcall diff old.json cut.json
      error: cut.json: not JSON: EOF while parsing an object at line 1 column 12. Correct the file.
    $ lastcall diff old.json openapi.json
      error: openapi.json: neither a tool nor a JSON Schema; its keys are `openapi`, `paths`. Give a tool (MCP `inputSchema`, OpenAI or Gemini `parameters`, Anthropic `input_schema`), a list of tools (an array, `tools`, `functionDeclarations`, a JSON-RPC `result`), or a JSON Schema.
    $ lastcall diff surface-old.json list.json --tool x
      error: surface-old.json: no tool x; there is bad, lookup, refund, search
    $ lastcall diff bare-old.json surface-new.json
      error: bare-old.json is a bare schema, and surface-new.json is a list of 4 tools: name the tool with --tool
    $ lastcall diff old.json binary.json
      error: binary.json: UTF-16, not UTF-8; save the file as UTF-8
        because: invalid utf-8 sequence of 1 bytes from index 0
    $ lastcall diff old.json deep.json
      error: deep.json: nested deeper than 96. Flatten the schema with `$defs` and `$ref`.
    $ lastcall diff deep-schema.json bare-new.json
      error: deep-schema.json: nested deeper than 96. Flatten the schema with `$defs` and `$ref`.
    $ lastcall diff old.json invalid.json
      error: invalid.json at /inputSchema/properties/a/type: "text" is not a JSON Schema type. Types are array, boolean, integer, null, number, object, string, in lower case.
    $ lastcall diff old.json outside.json
      error: outside.json at /inputSchema/properties/a/$ref: `$ref` leaves the document: `other.json`. Copy the schema under `$defs` and refer to it as `#/$defs/NAME`; nothing is fetched.
    $ lastcall diff old.json folder
      error: the new side: folder is a folder; give a file, or tool_id@version of a registry
    $ lastcall diff search@1.0.0 search@2.0.0 --registry absent
      error: absent: no such folder. Name the registry with --registry DIR or LASTCALL_REGISTRY; `lastcall contract add FILE` begins a new one
    $ lastcall diff nowhere:old.json new.json
      error: nowhere:old.json: no such file, and
    $ lastcall diff surface-old.json surface-new.json --tool serch
      error: surface-old.json: no tool serch; there is bad, lookup, refund, search
    $ lastcall diff old.json new.json --calls absent.jsonl
      error: cannot read absent.jsonl
        because: No such file or directory (os error 2)
    $ lastcall diff old.json new.json --require-bump
      error: --require-bump needs two contract ids, tool_id@version: a file has no version number
    $ lastcall diff old.json
      error: the following required arguments were not provided:
        <NEW>
    $ lastcall diff - -
      error: standard input can be one side only
    $ lastcall diff --batch absent.jsonl
      error: cannot read absent.jsonl
        because: No such file or directory (os error 2)
    "#);
    // a tool without a schema of its own is a tool of a surface that cannot be read, not the end
    let said = place.run("diff none.json surface-new.json");
    assert!(said.out.contains("cannot be read"), "{} {}", said.out, said.err);
}

#[test]
fn json_is_what_its_schema_says() {
    let place = Place::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas/diff.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let validator = validator_for(&schema, Draft::Draft202012).unwrap();
    for line in [
        "old.json new.json",
        "old.json lost.json",
        "surface-old.json surface-new.json",
        "bare-old.json bare-new.json",
    ] {
        let document = place.parsed(&format!("diff {line} --format json"));
        let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{line}: {errors:?}");
        assert_eq!(document["schema_version"], 1);
    }
    let document = place.parsed("diff old.json new.json --format json");
    let change = &document["tools"][0]["diffs"][0]["changes"][0];
    assert_eq!((&change["kind"], &change["pointer"]), (&json!("range_tightened"), &json!("/per_page")));
    assert!(change["witness"]["value"]["per_page"].as_i64().unwrap() > 50, "{change}");
}

/// What SARIF 2.1.0 asks of a log, and that a region is the text it claims to be.
#[test]
fn sarif_points_at_the_text() {
    let place = Place::new();
    let log = place.parsed("diff surface-old.json surface-new.json --format sarif");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let location = &result["locations"][0];
        let file = location["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
        let region = &location["physicalLocation"]["region"];
        let number = |key: &str| usize::try_from(region[key].as_u64().unwrap()).unwrap();
        assert_eq!(number("startLine"), number("endLine"));
        let line: Vec<char> =
            place.text(file).lines().nth(number("startLine") - 1).unwrap().chars().collect();
        let marked: String = line[number("startColumn") - 1..number("endColumn") - 1].iter().collect();
        let pointer = location["logicalLocations"][0]["fullyQualifiedName"].as_str().unwrap();
        let named: Vec<&str> = pointer.split('/').filter(|t| t.parse::<usize>().is_err()).collect();
        assert!(
            named.iter().rev().take(2).any(|t| marked.starts_with(&format!("\"{t}\""))),
            "{pointer}: {marked}"
        );
    }
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false, "one tool cannot be read");
    assert!(
        invocation["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap().contains("objekt")
    );
}

#[test]
fn an_unreadable_tool_hides_no_other() {
    let place = Place::new();
    for format in ["text", "json", "markdown", "sarif", "junit", "github"] {
        let out = place.run(&format!("diff surface-old.json surface-new.json --format {format}")).out;
        for word in ["objekt", "create_refund", "per_page"] {
            assert!(out.contains(word), "{format} does not say {word}:\n{out}");
        }
    }
    assert_snapshot!(place.run("diff old.json new.json --format junit").out, @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="lastcall diff" tests="1" skipped="0" failures="1" errors="0">
        <testsuite name="lastcall diff" tests="1" skipped="0" errors="0" failures="1">
            <testcase name="search" classname="new.json">
                <failure message="Breaking: The argument `per_page` takes less: `maximum` went from `100` to `50`." type="breaking">error range_tightened at /inputSchema/properties/per_page/maximum: The argument `per_page` takes less: `maximum` went from `100` to `50`. A call that breaks: `{&quot;name&quot;:&quot;search&quot;,&quot;arguments&quot;:{&quot;per_page&quot;:51,&quot;query&quot;:&quot;&quot;}}`, refused at `/per_page` by `maximum` (`/properties/per_page/maximum`). Take the old values too for a version, or adapt calls of the old contract.
    </failure>
            </testcase>
        </testsuite>
    </testsuites>
    "#);
    assert_snapshot!(place.run("diff old.json new.json --format github").out, @r#"::error file=new.json,line=6,endLine=6,col=9,endColumn=22,title=search%3A range_tightened::The argument `per_page` takes less: `maximum` went from `100` to `50`. A call that breaks: `{"name":"search","arguments":{"per_page":51,"query":""}}`, refused at `/per_page` by `maximum` (`/properties/per_page/maximum`). Take the old values too for a version, or adapt calls of the old contract."#);
    assert_snapshot!(place.run("diff old.json new.json --format markdown").out, @r#"
    ### lastcall diff: breaking

    The argument `per_page` takes less: `maximum` went from `100` to `50`.

    `old.json` → `new.json`

    **Asks for**: version step major; publish a new major version, or run old and new side by side.

    **Next**: `lastcall try old.json new.json CALLS` shows which recorded calls it meets; publish it beside the old version, and let `lastcall decide` say when the old one can go.

    - **breaking**: The argument `per_page` takes less: `maximum` went from `100` to `50`. input `/per_page` `100 → 50` (`range_tightened`, backed by witness) Take the old values too for a version, or adapt calls of the old contract

    Refused now, found by the proof (refused at `/per_page` by `maximum` (`/properties/per_page/maximum`)):

    ```json
    {"name":"search","arguments":{"per_page":51,"query":""}}
    ```

    - calls with declared arguments: a call is refused
    - calls with any arguments: a call is refused
    "#);
}

#[test]
fn a_step_summary_is_appended_and_kept_below_the_cap() {
    let place = Place::new();
    let summary = place.dir.path().join("summary.md");
    place.file("summary.md", "before\n");
    let run = || {
        answer(place.command("diff old.json new.json --format github").env("GITHUB_STEP_SUMMARY", &summary))
    };
    assert_eq!(run().code, 1);
    let text = place.text("summary.md");
    assert!(text.starts_with("before\n### lastcall diff: breaking"), "{text}");
    place.file("summary.md", "x".repeat(1024 * 1024 - 200));
    assert_eq!(run().code, 1);
    let text = place.text("summary.md");
    assert!(text.len() <= 1024 * 1024 && text.ends_with("more lines\n"), "{}", &text[text.len() - 100..]);
}

#[test]
fn the_same_question_has_the_same_answer() {
    let place = Place::new();
    for format in ["text", "json", "markdown", "sarif", "junit", "github"] {
        let line = format!("diff surface-old.json surface-new.json --format {format}");
        assert_eq!(place.run(&line).out, place.run(&line).out, "{format}");
    }
    let said = place.run("diff old.json new.json --out out.txt");
    assert!(said.out.is_empty() && said.err.contains("wrote out.txt"), "{}", said.err);
    assert_eq!(place.text("out.txt"), place.run("diff old.json new.json").out);
}

#[test]
fn recorded_calls_come_first() {
    let place = Place::new();
    let call =
        |name: &str, arguments: Value| json!({"name": name, "arguments": arguments}).to_string() + "\n";
    let calls = call("search", json!({"query": "a", "per_page": 20}))
        + &call("search", json!({"query": "b", "per_page": 77}))
        + &call("lookup", json!({"q": "x"}))
        + &call("search", json!({"query": "c", "per_page": 88}));
    place.file("calls.jsonl", &calls);
    let document = place.parsed("diff old.json new.json --calls calls.jsonl --format json");
    let diff = &document["tools"][0]["diffs"][0];
    assert_eq!((&diff["recorded"], &diff["recorded_refused"]), (&json!(3), &json!(2)));
    let witness = &diff["changes"][0]["witness"];
    assert_eq!(witness["from"], "recorded", "{witness}");
    assert_eq!((&witness["place"], witness.get("value")), (&json!("calls.jsonl:2"), None), "{witness}");
    let shown = place.parsed("diff old.json new.json --calls calls.jsonl --show-values --format json");
    assert_eq!(shown["tools"][0]["diffs"][0]["changes"][0]["witness"]["value"]["per_page"], 77);
    assert_eq!(diff["changes"][0]["recorded_refused"], 2);
    let surface = place.parsed("diff surface-old.json surface-new.json --calls calls.jsonl --format json");
    let refused = surface["tools"].as_array().unwrap().iter().find(|t| t["new_name"] == "search").unwrap();
    assert_eq!(refused["diffs"][0]["recorded_refused"], 2);
    place.file("other.jsonl", call("list", json!({})));
    let said = place.run("diff old.json new.json --calls other.jsonl");
    assert!(
        said.code == 2 && said.err.contains("no call of search") && said.err.contains("--tool"),
        "{}",
        said.err
    );
}

/// A report may stand in a public log: what was really sent is in none unless it is asked for.
#[test]
fn values_of_recorded_calls_are_shown_only_where_that_is_asked_for() {
    let place = Place::new();
    let call = |id: &str, arguments: Value| {
        json!({"id": id, "type": "function", "function": {"name": "search", "arguments": arguments.to_string()}})
            .to_string()
            + "\n"
    };
    let secret = "maria@example.org";
    place.file(
        "calls.jsonl",
        call("c1", json!({"query": "a", "per_page": 2}))
            + &call("c2", json!({"query": secret, "per_page": 77})),
    );
    // an argument that nobody declared, refused since the object was closed
    let mut closed = tool("search", json!({"query": {"type": "string"}}), json!(["query"]));
    place.json("open.json", &closed);
    closed["inputSchema"]["additionalProperties"] = json!(false);
    place.json("closed.json", &closed);
    place.file("undeclared.jsonl", call("c3", json!({"query": "a", "note": secret})));
    place.json(
        "list-old.json",
        &json!({"tools": [serde_json::from_str::<Value>(&place.text("old.json")).unwrap()]}),
    );
    place.json(
        "list-new.json",
        &json!({"tools": [serde_json::from_str::<Value>(&place.text("new.json")).unwrap()]}),
    );
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas/diff.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let validator = validator_for(&schema, Draft::Draft202012).unwrap();
    for pair in [
        "old.json new.json --calls calls.jsonl",
        "list-old.json list-new.json --calls calls.jsonl",
        "open.json closed.json --calls undeclared.jsonl",
    ] {
        for format in [
            "--format text",
            "--format json",
            "--format markdown",
            "--format sarif",
            "--format junit",
            "--format github",
            "--changelog",
        ] {
            let said = place.run(&format!("diff {pair} {format}"));
            assert_eq!(said.code, 1, "{pair} {format}: {}", said.err);
            assert!(
                !said.out.contains(secret) && !said.err.contains(secret),
                "{pair} {format}: {}",
                said.out
            );
            let named = said.out.contains("calls.jsonl:2, call_id c2")
                || said.out.contains("calls.jsonl%3A2, call_id c2")
                || said.out.contains("undeclared.jsonl:1, call_id c3");
            assert!(
                named || (pair.starts_with("open") && format != "--format json"),
                "{pair} {format}: {}",
                said.out
            );
        }
        let document = place.parsed(&format!("diff {pair} --format json"));
        let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{pair}: {errors:?}");
        let shown = place.run(&format!("diff {pair} --format json --show-values"));
        assert!(shown.out.contains(secret), "{pair}: {}", shown.out);
    }
    let text = place.run("diff old.json new.json --calls calls.jsonl").out;
    assert!(
        text.contains(
            "  calls.jsonl:2, call_id c2\n    refused at `/per_page` by `maximum` \
             (`/properties/per_page/maximum`); a recorded call; its values are shown with --show-values\n"
        ),
        "{text}"
    );
}

/// One call that several things refuse is printed once, with all of them.
#[test]
fn a_call_is_printed_once() {
    let place = Place::new();
    let one = |name: &str, field: &str| tool(name, json!({field: {"type": "string"}}), json!([field]));
    place.json("a.json", &one("refund", "reason"));
    let mut b = one("create_refund", "reason_code");
    b["inputSchema"]["required"] = json!(["reason_code"]);
    place.json("b.json", &b);
    for name in ["a.json b.json", "surface-old.json surface-new.json"] {
        let out = place.run(&format!("diff {name}")).out;
        let calls: Vec<&str> = out.lines().filter(|line| line.starts_with("  {\"name\"")).collect();
        let distinct: std::collections::BTreeSet<&&str> = calls.iter().collect();
        assert!(!calls.is_empty() && calls.len() == distinct.len(), "{out}");
    }
}

/// What a type alone tells is not told again by its keywords.
#[test]
fn keywords_of_a_type_that_went_are_silent() {
    let place = Place::new();
    let of = |schema: Value| tool("search", json!({"labels": schema}), json!([]));
    place.json(
        "list.json",
        &of(json!({"type": "array", "maxItems": 5, "uniqueItems": true, "items": {"type": "string"}})),
    );
    place.json("text.json", &of(json!({"type": "string", "maxLength": 9, "pattern": "^a"})));
    place.json("longer.json", &of(json!({"type": "array", "maxItems": 9, "items": {"type": "integer"}})));
    let kinds = |line: &str| -> Vec<String> {
        let document = place.parsed(&format!("diff {line} --format json"));
        let changes = document["tools"][0]["diffs"][0]["changes"].as_array().unwrap();
        changes.iter().map(|c| c["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds("list.json text.json"), ["type_changed"]);
    assert_eq!(kinds("text.json list.json"), ["type_changed"]);
    let mut within = kinds("list.json longer.json");
    within.sort();
    assert_eq!(within, ["size_loosened", "type_changed", "unique_dropped"]);
}

#[test]
fn a_batch_answers_line_by_line() {
    let place = Place::new();
    let old: Value = serde_json::from_str(&place.text("old.json")).unwrap();
    let new: Value = serde_json::from_str(&place.text("new.json")).unwrap();
    let lines = [
        json!({"id": "tools", "old": old, "new": new}).to_string(),
        "{\"id\": \"cut\", ".to_owned(),
        json!({"id": 3, "old": {"type": "integer"}, "new": {"type": "number"}}).to_string(),
        json!({"id": "invalid", "old": {"type": "objekt"}, "new": true}).to_string(),
        json!({"id": "absent", "old": true}).to_string(),
        String::new(),
        json!({"old": true, "new": {"const": 1}}).to_string(),
        format!(
            "{{\"id\": \"deep\", \"old\": {}true{}, \"new\": true}}",
            "{\"not\":".repeat(10_000),
            "}".repeat(10_000)
        ),
        json!({"id": "same", "old": new, "new": new}).to_string(),
    ];
    place.file("pairs.jsonl", lines.join("\n"));
    let said = place.run("diff --batch pairs.jsonl");
    assert_eq!(said.code, 1, "{}", said.err);
    let answers: Vec<Value> = said.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let brief: Vec<String> = answers
        .iter()
        .map(|a| match a.get("error") {
            Some(error) => format!(
                "{} line {}: {}",
                a["id"],
                a["line"],
                error.as_str().unwrap().chars().take(90).collect::<String>()
            ),
            None => {
                let keys: Vec<&str> = a.as_object().unwrap().keys().map(String::as_str).collect();
                assert_eq!(keys, ["bump", "changes", "class", "id", "proven", "witness"]);
                format!(
                    "{} {} {} proven {} witness {}",
                    a["id"],
                    a["class"],
                    a["bump"],
                    a["proven"],
                    !a["witness"].is_null()
                )
            }
        })
        .collect();
    assert_snapshot!(brief.join("\n"), @r#"
    "tools" "breaking" "major" proven false witness true
    null line 2: not JSON: EOF while parsing a value at line 1 column 14
    3 "compatible" "minor" proven true witness false
    "invalid" line 4: the old schema of the arguments: /type: "objekt" is not a JSON Schema type. Types are arra
    "absent" line 5: no `new` in this line
    null "breaking" "major" proven false witness true
    null line 8: not JSON: recursion limit exceeded at line 1 column 905
    "same" "compatible" "none" proven true witness false
    "#);
    assert_eq!(said.out, place.run("diff --batch pairs.jsonl").out);
    // from standard input to a file
    let mut command = place.command("diff --batch - --out answers.jsonl");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.join("\n").as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(place.text("answers.jsonl"), said.out);
    // only unanswered lines; nothing at all
    place.file("broken.jsonl", "{\n");
    assert_eq!(place.run("diff --batch broken.jsonl").code, 2);
    place.file("fine.jsonl", format!("{}\n", lines[2]));
    assert_eq!(place.run("diff --batch fine.jsonl").code, 0);
    place.file("nothing.jsonl", "\n");
    assert!(place.run("diff --batch nothing.jsonl").err.contains("no line in it"));
}

/// What one direction refuses, the other refuses with the sides changed.
#[test]
fn the_directions_mirror_each_other() {
    let place = Place::new();
    let schemas = [
        json!({"type": "integer", "minimum": 0}),
        json!({"type": "integer", "minimum": 5}),
        json!({"type": ["integer", "null"]}),
        json!({"enum": ["a", "b"]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}),
    ];
    let pairs = |swapped: bool| -> String {
        let mut out = String::new();
        for a in &schemas {
            for b in &schemas {
                let (old, new) = if swapped { (b, a) } else { (a, b) };
                out.push_str(&(json!({"old": old, "new": new}).to_string() + "\n"));
            }
        }
        out
    };
    place.file("input.jsonl", pairs(false));
    place.file("output.jsonl", pairs(true));
    let facts = |line: &str| -> Vec<(Value, bool)> {
        let out = place.run(line).out;
        let parsed = out.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
        parsed.map(|a| (a["proven"].clone(), a["class"] == "breaking")).collect()
    };
    let (input, output) =
        (facts("diff --batch input.jsonl"), facts("diff --batch output.jsonl --direction output"));
    assert_eq!(input.len(), 36);
    assert_eq!(input, output);
    assert!(
        input.iter().any(|(_, breaks)| *breaks) && input.iter().any(|(proven, _)| *proven == json!(true))
    );
}

#[test]
fn versions_of_a_registry() {
    let place = Place::new();
    for (file, version) in [
        ("old.json", "1.0.0"),
        ("wider.json", "1.0.1"),
        ("wider.json", "1.1.0"),
        ("new.json", "1.2.0"),
        ("new.json", "2.0.0"),
    ] {
        let line = format!(
            "contract add {file} --tool-id search --version {version} --registry reg --side-effect read --risk low"
        );
        assert_eq!(place.run(&line).code, 0);
    }
    let registry = "--registry reg --require-bump";
    for (old, new, code, says) in [
        ("1.0.0", "1.0.1", 1, "publish it as 1.1.0 or later"),
        ("1.0.0", "1.1.0", 0, "is a minor step"),
        ("1.0.0", "1.2.0", 1, "publish it as 2.0.0 or later"),
        ("1.0.0", "2.0.0", 0, "is a major step"),
        ("2.0.0", "1.0.0", 1, "is not after"),
        ("1.0.1", "1.1.0", 0, "ask for no step"),
    ] {
        let said = place.run(&format!("diff search@{old} search@{new} {registry}"));
        assert!(said.code == code && said.err.contains(says), "{old} {new}: {} {}", said.code, said.err);
    }
    let said = place.run("diff search@1.0.0 search@1.0.0 --registry reg --require-bump");
    assert!(
        said.code == 0 && said.err.contains("1.0.0 is the same version, and the changes ask for no step"),
        "{}",
        said.err
    );
    let document = place.parsed(&format!("diff search@1.0.0 search@1.2.0 {registry} --format json"));
    let step = &document["version_step"];
    assert_eq!(
        (&step["made"], &step["asked"], &step["enough"]),
        (&json!("minor"), &json!("major"), &json!(false))
    );
    assert_eq!(step["least"], "2.0.0");
    let junit = |new: &str| place.run(&format!("diff search@1.0.0 search@{new} {registry} --format junit"));
    let said = junit("1.2.0");
    assert!(said.code == 1 && said.out.contains("type=\"version_step_too_small\""), "{}", said.out);
    let said = junit("2.0.0");
    assert!(
        said.code == 0 && said.out.contains("name=\"version step\"") && !said.out.contains("<failure"),
        "{}",
        said.out
    );
    let said = place.run(&format!("diff search@1.0.0 search@2.0.0 {registry} --format github"));
    assert!(
        said.code == 0 && said.out.contains("::warning ") && !said.out.contains("::error"),
        "{}",
        said.out
    );
    let log = place.parsed(&format!("diff search@1.0.0 search@1.2.0 {registry} --format sarif"));
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(
        results.iter().any(|r| r["ruleId"] == "version_step_too_small" && r["level"] == "error"),
        "{log}"
    );
    assert!(
        place
            .run(&format!("diff search@1.0.0 search@1.2.0 {registry} --format markdown"))
            .out
            .contains("**Version**: ")
    );
    let said = place.run("contract add wider.json --tool-id search --version 3.1 --registry reg2");
    assert!(said.code == 0 && said.err.contains("warning: 3.1 is no X.Y.Z"), "{}", said.err);
    assert_snapshot!(place.run("diff search@1.0.0 search@2.0.0 --registry reg --changelog").out, @r#"
    ## 2.0.0

    Risk: breaking. Publish a new major version, or run old and new side by side.

    - **breaking**: The argument `per_page` takes less: `maximum` went from `100` to `50`. Take the old values too for a version, or adapt calls of the old contract.

    Refused from now on, for instance: `{"name":"search","arguments":{"per_page":51,"query":""}}`
    "#);
    let said = place.run("diff search@1.0.0 search@2.0.0 --registry reg").out;
    assert!(said.contains("`lastcall try search@1.0.0 search@2.0.0 CALLS --registry reg` shows"), "{said}");
    let log = place.parsed("diff search@1.0.0 search@2.0.0 --registry reg --format sarif");
    let location = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "reg/search/schemas/v2.0.0.json", "{location}");
}

#[test]
fn a_file_as_a_commit_has_it() {
    let place = Place::new();
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(place.dir.path()).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        assert!(command.args(words).output().expect("git starts").status.success(), "git {words:?}");
    };
    place.file("sub/tool.json", place.text("old.json"));
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "first"]);
    place.file("sub/tool.json", place.text("new.json"));
    assert_eq!(place.run("diff HEAD:sub/tool.json sub/tool.json").code, 1);
    assert_eq!(place.run("diff HEAD:sub/tool.json old.json").code, 0);
    let said = place.run("diff HEAD:absent.json sub/tool.json");
    assert!(said.code == 2 && said.err.contains("git says"), "{}", said.err);
}

/// Documents that hold a tool where it is not looked for. Read as a schema they accept everything.
#[test]
fn another_shape_is_no_schema() {
    let place = Place::new();
    let schema = |kind: &str| json!({"type": "object", "properties": {"a": {"type": kind}}});
    let mcp = |kind: &str| json!({"name": "t", "inputSchema": schema(kind)});
    type Shape<'a> = (&'a str, Box<dyn Fn(&str) -> Value + 'a>);
    let shapes: Vec<Shape<'_>> = vec![
        ("functions", Box::new(|k| json!({"functions": [{"name": "t", "parameters": schema(k)}]}))),
        ("tool", Box::new(|k| json!({"tool": mcp(k)}))),
        ("definition", Box::new(|k| json!({"definition": mcp(k)}))),
        ("toolSpec", Box::new(|k| json!({"toolSpec": {"name": "t", "inputSchema": {"json": schema(k)}}}))),
        ("toolConfig", Box::new(|k| json!({"toolConfig": {"tools": [mcp(k)]}}))),
        ("Tools", Box::new(|k| json!({"Tools": [mcp(k)]}))),
        ("t", Box::new(|k| json!({"t": {"inputSchema": schema(k)}}))),
        ("schema", Box::new(|k| json!({"schema": schema(k)}))),
        ("openapi", Box::new(|k| json!({"openapi": "3.1.0", "components": {"schemas": {"A": schema(k)}}}))),
        (
            "tool",
            Box::new(|k| json!({"$schema": "https://example.org/tool", "description": "d", "tool": mcp(k)})),
        ),
        (
            "JSON-RPC error",
            Box::new(|k| json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": k}})),
        ),
    ];
    let mut lines = String::new();
    for (key, shape) in &shapes {
        place.json("o.json", &shape("string"));
        place.json("n.json", &shape("integer"));
        let said = place.run("diff o.json n.json");
        assert!(
            said.code == 2 && said.out.is_empty() && said.err.contains(key),
            "{key}: {} {}",
            said.code,
            said.err
        );
        lines.push_str(&format!("{}\n", json!({"id": key, "old": shape("string"), "new": shape("integer")})));
    }
    place.file("shapes.jsonl", &lines);
    let said = place.run("diff --batch shapes.jsonl");
    assert_eq!(said.code, 2, "{}", said.out);
    for (line, (key, _)) in said.out.lines().zip(&shapes) {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert!(answer["error"].as_str().is_some_and(|e| e.contains(key)), "{line}");
    }
    assert_eq!(said.out.lines().count(), shapes.len());
    // every wrapping that a file may have is read in a line too, and says the same
    for wrapped in [
        |tool: Value| json!({"tools": [tool]}),
        |tool: Value| json!([tool]),
        |tool: Value| json!({"result": {"tools": [tool]}}),
        |tool: Value| json!({"functionDeclarations": [{"name": "t", "parameters": tool["inputSchema"]}]}),
        |tool: Value| tool,
    ] {
        let question = json!({"old": wrapped(mcp("string")), "new": wrapped(mcp("integer"))});
        place.file("one.jsonl", format!("{question}\n"));
        assert_eq!(place.parsed("diff --batch one.jsonl")["class"], "breaking", "{question}");
        place.json("o.json", &question["old"]);
        place.json("n.json", &question["new"]);
        assert_eq!(place.parsed("diff o.json n.json --format json")["class"], "breaking", "{question}");
    }
    let two =
        json!({"old": {"tools": [mcp("string"), {"name": "u", "inputSchema": {}}]}, "new": mcp("string")});
    place.file("two.jsonl", format!("{two}\n"));
    let said = place.run("diff --batch two.jsonl");
    assert!(said.code == 2 && said.out.contains("2 tools: `t`, `u`"), "{}", said.out);
    // what is a schema stays one
    for schema in [
        json!({}),
        json!(true),
        json!(false),
        json!({"$defs": {}}),
        json!({"title": "x", "x-y": 1}),
        json!({"type": "string", "own": 1}),
    ] {
        place.json("o.json", &schema);
        assert_eq!(place.run("diff o.json o.json").code, 0, "{schema}");
        place.file("one.jsonl", format!("{}\n", json!({"old": schema, "new": schema})));
        assert_eq!(place.run("diff --batch one.jsonl").code, 0, "{schema}");
    }
}

/// Readers disagree about which of two equal keys counts: a line is refused as a file is.
#[test]
fn a_key_twice_in_a_line() {
    let place = Place::new();
    let lines = [
        r#"{"id":"a","old":{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"integer"}}},"new":{}}"#,
        r#"{"id":"b","old":{"type":"string"},"new":{"type":"string"},"old":{"type":"integer"}}"#,
        r#"{"id":"c","id":"d","old":{},"new":{}}"#,
        r#"{"id":"e","old":{},"new":{}}"#,
    ];
    place.file("twice.jsonl", lines.join("\n"));
    let said = place.run("diff --batch twice.jsonl");
    assert_eq!(said.code, 2);
    let answers: Vec<Value> = said.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for (n, (id, pointer)) in [(json!("a"), "/old/properties/a"), (json!("b"), "/old"), (Value::Null, "/id")]
        .into_iter()
        .enumerate()
    {
        let error = answers[n]["error"].as_str().unwrap();
        assert!(error.contains(&format!("at {pointer}: this key stands twice")), "{error}");
        assert_eq!((&answers[n]["id"], &answers[n]["line"]), (&id, &json!(n + 1)));
    }
    assert_eq!(answers[3]["class"], "compatible");
}

#[test]
fn a_tool_that_stands_twice_is_told_and_hides_no_other() {
    let place = Place::new();
    let t = |kind: &str| tool("t", json!({"a": {"type": kind}}), json!([]));
    let other = |most: u32| tool("other", json!({"n": {"type": "integer", "maximum": most}}), json!([]));
    place.json("once.json", &json!({"tools": [t("string"), other(9), other_named("x"), other_named("y")]}));
    let twice = json!({"tools": [t("string"), other(9), other_named("x"), t("integer"), other_named("y")]});
    place.json("twice.json", &twice);
    for line in ["once.json twice.json", "twice.json once.json", "twice.json twice.json"] {
        let said = place.run(&format!("diff {line}"));
        assert_eq!(said.code, 2, "{line}: {}", said.out);
        assert!(said.out.contains("twice.json: `t` stands twice, at /tools/0 and /tools/3"), "{}", said.out);
    }
    let said = place.run("diff once.json twice.json --tool t");
    assert!(said.code == 2 && said.err.contains("`t` stands twice"), "{}", said.err);
    assert_eq!(place.run("diff once.json twice.json --tool other").code, 0);
    let mut worse = twice;
    worse["tools"][1] = other(5);
    place.json("worse.json", &worse);
    let said = place.run("diff once.json worse.json");
    assert!(said.code == 1 && said.out.contains("`maximum` went from") && said.out.contains("stands twice"));
}

fn other_named(name: &str) -> Value {
    tool(name, json!({}), json!([]))
}

#[test]
fn an_empty_list_has_no_tool() {
    let place = Place::new();
    for (name, empty) in [
        ("e1.json", json!({"tools": []})),
        ("e2.json", json!([])),
        ("e3.json", json!({"result": {"tools": []}})),
    ] {
        place.json(name, &empty);
        let gone = place.run(&format!("diff surface-new.json {name} --format json"));
        let document: Value = serde_json::from_str(&gone.out).unwrap();
        let status = |d: &Value| -> Vec<Value> {
            d["tools"].as_array().unwrap().iter().map(|t| t["status"].clone()).collect()
        };
        assert_eq!((gone.code, &document["class"]), (1, &json!("breaking")), "{name}: {}", gone.err);
        assert_eq!(status(&document), vec![json!("removed"); 4]);
        let come = place.run(&format!("diff {name} surface-new.json --format json"));
        assert_eq!(come.code, 0, "{name}: {}", come.err);
        assert_eq!(status(&serde_json::from_str(&come.out).unwrap()), vec![json!("added"); 4]);
        for format in ["text", "json", "markdown", "sarif", "junit", "github"] {
            assert_eq!(
                place.run(&format!("diff {name} e1.json --format {format}")).code.min(2),
                0,
                "{format}"
            );
            if name == "e1.json" {
                break;
            }
        }
    }
    assert_eq!(place.run("diff old.json e1.json").code, 1, "a tool alone against an empty list");
    assert!(place.run("diff surface-new.json e1.json --tool search").err.contains("it has none"));
}

/// Names steer no terminal, no log and no reader's eye, in no format and no message, and XML stays XML.
#[test]
fn names_are_shown_safely() {
    let place = Place::new();
    let nasty = "\u{1b}]0;x\u{7}\u{0}\u{9b}31m\u{202e}\u{2028}\u{2066}\u{feff}\u{ffff}\u{fffe}\u{85}";
    let harmful = |text: &str| {
        text.chars().find(|c| (c.is_control() && *c != '\n') || nasty.contains(*c) && !"]0;x31m".contains(*c))
    };
    let surface = |kind: &str, last: &str| {
        let mut inner = serde_json::Map::new();
        inner.insert(format!("arg{nasty}"), json!({"type": kind, "description": nasty}));
        let visible = "t\u{202e}\u{2028}\u{ffff}";
        json!({"tools": [
            {"name": visible, "description": nasty, "inputSchema": {"type": "object", "properties": inner}},
            {"name": format!("a{nasty}"), "inputSchema": {"type": "object"}},
            {"name": "x\n::error file=x::pwn", "inputSchema": {"type": "object"}},
            tool(last, json!({"q": {"type": "string"}, "r": {"type": "string"}}), json!(["q"])),
        ]})
    };
    place.json("o.json", &surface("integer", "::error ::pwn"));
    place.json("n.json", &surface("string", "::error ::pwned"));
    place.file("pairs.jsonl", {
        let side = |kind: &str| surface(kind, "z")["tools"][0].clone();
        let bad = json!({"id": nasty, "old": {"name": nasty}, "new": {nasty: 1}});
        format!("{}\n{bad}\n", json!({"id": nasty, "old": side("integer"), "new": side("string")}))
    });
    let mut lines: Vec<String> = ["text", "json", "markdown", "sarif", "junit", "github"]
        .iter()
        .map(|format| format!("diff o.json n.json --format {format}"))
        .collect();
    for line in [
        "diff o.json n.json --changelog",
        "diff o.json n.json --tool nosuch",
        "diff --batch pairs.jsonl",
        "lint o.json",
        "lint o.json --format json",
        "lint o.json --format sarif",
        "lint o.json --format junit",
        "lint o.json --format github",
        "lint o.json --format markdown",
        "synth o.json",
        "synth o.json --tool t\u{202e}\u{2028}\u{ffff}",
        "synth o.json --tool t\u{202e}\u{2028}\u{ffff} --goals",
        "try o.json n.json pairs.jsonl",
        "try o.json n.json pairs.jsonl --tool t\u{202e}\u{2028}\u{ffff}",
        "affected --since x\u{202e}",
    ] {
        lines.push(line.to_owned());
    }
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = lastcall();
        let said =
            answer(command.current_dir(place.dir.path()).env_remove("GITHUB_STEP_SUMMARY").args(&words));
        for text in [&said.out, &said.err] {
            assert_eq!(harmful(text), None, "{line}: {text:?}");
            let command = text
                .lines()
                .find(|l| l.trim_start().starts_with("::") && l.contains("pwn") && !l.contains("title="));
            assert_eq!(command, None, "{line}");
        }
        assert!(!(said.out.is_empty() && said.err.is_empty()), "{line}");
        if words.contains(&"json") || words.contains(&"sarif") {
            serde_json::from_str::<Value>(&said.out).unwrap();
        }
    }
    // the value is the same for a program
    let document = place.parsed("diff o.json n.json --format json");
    let names: Vec<&str> =
        document["tools"].as_array().unwrap().iter().filter_map(|t| t["new_name"].as_str()).collect();
    assert!(names.contains(&"t\u{202e}\u{2028}\u{ffff}"), "{names:?}");
}

/// Error codes stand in tool.yaml: what a commit says of them against what stands there now.
#[test]
fn error_codes_of_a_commit_and_of_now() {
    let place = Place::new();
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(place.dir.path()).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        assert!(command.args(words).output().expect("git starts").status.success(), "git {words:?}");
    };
    let add =
        "contract add old.json --tool-id search --version 1.0.0 --registry reg --side-effect read --risk low";
    assert_eq!(place.run(add).code, 0);
    let yaml = place.text("reg/search/tool.yaml");
    let with = |errors: &str| place.file("reg/search/tool.yaml", format!("{}\n{errors}", yaml.trim_end()));
    with(
        "errors:\n  - {code: rate_limited, category: retry_later, retryable: true}\n  - {code: gone, category: failed}\n",
    );
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "first"]);
    let same = place.run("diff HEAD:search@1.0.0 search@1.0.0 --registry reg");
    assert_eq!(same.code, 0, "{} {}", same.out, same.err);
    with(
        "errors:\n  - {code: rate_limited, category: failed, retryable: false}\n  - {code: fresh, category: failed}\n",
    );
    let said = place.run("diff HEAD:search@1.0.0 search@1.0.0 --registry reg --format json");
    assert_eq!(said.code, 1, "{} {}", said.out, said.err);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    let mut kinds: Vec<&str> = document["tools"][0]["diffs"][0]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["error_added", "error_category_changed", "error_removed", "error_retry_changed"]);
    assert_eq!(document["old"], "HEAD:search@1.0.0");
    let said = place.run("diff HEAD:search@1.0.0 search@1.0.0 --registry reg");
    assert!(said.out.contains("`lastcall try` shows"), "try reads no commit: {}", said.out);
    for line in ["HEAD:search@9.0.0", "nowhere:search@1.0.0", "HEAD:absent@1.0.0"] {
        let said = place.run(&format!("diff {line} search@1.0.0 --registry reg"));
        assert!(said.code == 2 && said.err.starts_with("error: "), "{line}: {} {}", said.code, said.err);
    }
}

#[test]
fn toolsets_are_surfaces() {
    let place = Place::new();
    place.json("lookup.json", &tool("lookup", json!({"q": {"type": "string"}}), json!([])));
    for (file, id, version) in
        [("old.json", "search", "1.0.0"), ("new.json", "search", "2.0.0"), ("lookup.json", "lookup", "1.0.0")]
    {
        let line = format!(
            "contract add {file} --tool-id {id} --version {version} --registry reg --side-effect read --risk low"
        );
        assert_eq!(place.run(&line).code, 0);
    }
    let set = |name: &str, contracts: &str| {
        place.file(
            &format!("reg/toolsets/{name}.yaml"),
            format!("toolset_id: {name}\ncontracts: {contracts}\n"),
        );
    };
    set("summer", "[search@1.0.0, lookup@1.0.0]");
    set("autumn", "{search: 2.0.0, lookup: 1.0.0}");
    set("small", "[lookup@1.0.0]");
    set("unknown", "[nosuch@1.0.0]");
    set("both", "[search@1.0.0, search@2.0.0]");
    place.file("reg/toolsets/other.yaml", "a: 1\n");
    let diff = |old: &str, new: &str, more: &str| {
        place.run(&format!("diff reg/toolsets/{old}.yaml reg/toolsets/{new}.yaml --registry reg {more}"))
    };
    let said = diff("summer", "autumn", "--format json");
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &document["old"], &document["new"]), (1, &json!("summer"), &json!("autumn")));
    let of = |name: &str| {
        document["tools"].as_array().unwrap().iter().find(|t| t["new_name"] == name).unwrap()["class"].clone()
    };
    assert_eq!((of("search"), of("lookup")), (json!("breaking"), json!("compatible")));
    assert_eq!(diff("autumn", "autumn", "").code, 0);
    let gone = diff("summer", "small", "");
    assert!(gone.code == 1 && gone.out.contains("The tool `search` was removed"), "{}", gone.out);
    for (name, why) in [("unknown", "nosuch@1.0.0"), ("both", "are of one tool"), ("other", "not a toolset")]
    {
        let said = diff("summer", name, "");
        assert!(said.code == 2 && said.err.contains(why), "{name}: {} {}", said.code, said.err);
    }
}

#[test]
fn numbers_that_no_double_holds() {
    let place = Place::new();
    let bound = |literal: &str| {
        let argument = format!("{{\"type\": \"integer\", \"minimum\": {literal}}}");
        format!(
            "{{\"name\": \"t\", \"description\": \"d\", \"inputSchema\": {{\"type\": \"object\", \
             \"properties\": {{\"id\": {argument}}}}}}}"
        )
    };
    for (old, new) in [
        ("9007199254740992", "9007199254740993"),
        ("18446744073709551617", "18446744073709551618"),
        ("123456789012345678901234567890", "123456789012345678901234567891"),
    ] {
        place.file("low.json", bound(old));
        place.file("high.json", bound(new));
        let told = place.run("diff low.json high.json --format json");
        let report: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!(report["class"], "needs_review", "{old} {new}");
        assert_ne!(told.code, 0, "{old} {new}");
        assert!(told.out.contains(old) && told.out.contains(new), "{}", told.out);
        assert!(
            !told.out.contains("\"witness\""),
            "nothing that another validator would dispute: {}",
            told.out
        );
    }
}

#[test]
fn a_pattern_that_no_engine_compiles() {
    let place = Place::new();
    let with = |pattern: &str| tool("t", json!({"a": {"type": "string", "pattern": pattern}}), json!([]));
    place.json("before.json", &with("^a$"));
    place.json("after.json", &with("^[^]+$"));
    let told = place.run("diff before.json after.json");
    assert_eq!(told.code, 2, "{}", told.err);
    for part in ["after.json", "/inputSchema/properties/a/pattern", "`[^]`", "[\\s\\S]"] {
        assert!(told.err.contains(part), "{part}: {}", told.err);
    }
}

/// Exposure is counted for so many places only; that is said, not silent.
#[test]
fn more_changed_places_than_are_told_apart() {
    let place = Place::new();
    let many = |n: usize| {
        let all = (0..n).map(|i| (format!("a{i}"), json!({"type": "string"})));
        tool("t", Value::Object(all.collect()), json!([]))
    };
    place.json("many.json", &many(4_200));
    place.json("few.json", &many(0));
    let line = "plan observe many.json few.json --tool t --versions 1.0.0 2.0.0 --dry-run --ledger none";
    let told = place.run(line);
    assert!(told.out.contains("more than 4096 changed places"), "{} {}", told.out, told.err);
    assert!(told.err.contains("exposure is counted for the first 4096"), "{}", told.err);
    place.json("many.json", &many(40));
    let told = place.run(line);
    assert!(told.out.contains(": 40 changed places"), "{}", told.out);
}
