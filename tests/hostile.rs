//! Definitions that were made to catch `lint --fix`, `diff` and `synth` out, through the real binary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use lastcall_tests::{Answer, answer, lastcall};
use serde_json::{Map, Value, json};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, line: &str) -> Answer {
        answer(lastcall().current_dir(self.dir.path()).args(line.split_whitespace()))
    }

    /// The text after `lint --fix`, which a second run leaves as it is.
    fn mended(&self, text: &str) -> String {
        let path = self.file("d.json", text);
        let said = self.run("lint --fix d.json");
        assert!(said.code != 2, "{text}: {}", said.err);
        let once = std::fs::read_to_string(&path).unwrap();
        let again = self.run("lint --fix d.json");
        assert!(!again.err.contains("\nmended") && !again.err.starts_with("mended"), "{}", again.err);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), once, "a second run changes nothing");
        once
    }

    fn diff(&self, old: &Value, new: &Value) -> Value {
        self.file("old.json", old.to_string());
        self.file("new.json", new.to_string());
        let said = self.run("diff old.json new.json --format json");
        serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {} {}", said.out, said.err))
    }

    fn synth(&self, schema: &Value) -> (Vec<Value>, Answer) {
        self.file("s.json", schema.to_string());
        let said = self.run("synth s.json");
        let calls = said.out.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["arguments"].clone());
        (calls.collect(), said)
    }
}

fn mcp(schema: Value) -> Value {
    json!({"name": "t", "description": "Does it.", "inputSchema": schema})
}

fn changes(report: &Value) -> Vec<Value> {
    let tools = report["tools"].as_array().unwrap();
    let diffs = tools.iter().flat_map(|t| t["diffs"].as_array().unwrap());
    diffs.flat_map(|d| d["changes"].as_array().unwrap().clone()).collect()
}

#[test]
fn values_that_only_read_alike_stay() {
    let place = Place::new();
    let text = |list: &str| {
        format!(
            "{{\"name\":\"t\",\"inputSchema\":{{\"type\":\"object\",\"properties\":{{\"a\":{{\"enum\":[{list}]}}}}}}}}"
        )
    };
    let distinct = text("100000000000000000000001,100000000000000000000002,0.10000000000000000001,0.1");
    assert_eq!(place.mended(&distinct), distinct);
    let twice = text("100000000000000000000001,100000000000000000000002,100000000000000000000001,7,7");
    assert_eq!(place.mended(&twice), text("100000000000000000000001,100000000000000000000002,7"));
}

#[test]
fn what_is_closed_can_still_be_called() {
    let place = Place::new();
    let strict = |schema: Value| json!({"name": "t", "strict": true, "input_schema": schema}).to_string();
    let part =
        |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    for schema in [
        json!({"type": "object", "allOf": [part("a"), part("b")]}),
        json!({"type": "object", "properties": {"a": {"type": "object"}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [part("b"), part("c")]}),
        json!({"$ref": "#/$defs/x", "type": "object", "properties": {"a": {"type": "string"}}, "$defs": {"x": part("b")}}),
        json!({"type": "object", "properties": {"a": {"allOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"}]}},
            "$defs": {"x": part("b"), "y": part("c")}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "not": {"properties": {"b": {"type": "string"}}, "required": ["b"]}}),
    ] {
        let text = strict(schema);
        assert_eq!(place.mended(&text), text, "nothing is closed");
    }
    // alternatives that stand alone, and nested objects, are closed each by itself
    let text =
        strict(json!({"type": "object", "properties": {"a": {"anyOf": [part("b"), {"type": "null"}]}}}));
    assert_eq!(place.mended(&text).matches("\"additionalProperties\":false").count(), 2);
}

#[test]
fn fixes_of_every_tool_and_to_the_end() {
    let place = Place::new();
    let list = place.mended(
        "{\"tools\":[{\"name\":\"t\",\"inputSchema\":{}},{\"name\":\"u\",\"inputSchema\":{\"x\":1}}]}",
    );
    assert_eq!(
        list,
        "{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\": \"object\"}},{\"name\":\"u\",\"inputSchema\":{\"x\":1,\"type\":\"object\"}}]}"
    );
    for text in [
        "{\"type\":\"function\",\"name\":\"t\",\"strict\":true,\"parameters\":{}}",
        "{\"name\":\"t\",\"strict\":true,\"input_schema\":{\"properties\":{\"a\":{\"exampel\":1}}}}",
    ] {
        assert!(place.mended(text).contains("object"));
    }
    // two misspellings of one keyword stay for a person, and stop nothing else
    let text = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"descripton\":\"x\",\"desciption\":\"y\"},\
        \"b\":{\"type\":\"string\",\"descripton\":\"z\",\"enum\":[\"p\",\"p\"]}}}}";
    let after = place.mended(text);
    assert_eq!(
        after,
        text.replace("\"descripton\":\"z\",\"enum\":[\"p\",\"p\"]", "\"description\":\"z\",\"enum\":[\"p\"]")
    );
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_stays_one() {
    let place = Place::new();
    let target = place.file("target.json", "{\"name\":\"t\",\"inputSchema\":{}}");
    let link = place.dir.path().join("link.json");
    std::os::unix::fs::symlink("target.json", &link).unwrap();
    let said = place.run("lint --fix link.json");
    assert!(link.is_symlink(), "{}", said.err);
    assert!(std::fs::read_to_string(target).unwrap().contains("\"type\": \"object\""), "{}", said.err);
}

#[test]
fn texts_as_editors_write_them() {
    let place = Place::new();
    let tool = mcp(json!({"type": "object", "properties": {"a": {"type": "string", "descripton": "x"}}}))
        .to_string();
    place.file("mark.json", format!("\u{feff}{tool}"));
    place.file("plain.json", &tool);
    for line in [
        "lint mark.json",
        "diff mark.json plain.json",
        "synth mark.json",
        "contract add mark.json --registry r",
    ] {
        let said = place.run(line);
        assert!(said.code != 2, "{line}: {}", said.err);
    }
    let contract = place.run("contract show t@1.0.0 --registry r --format json");
    let other = place.run("contract add plain.json --registry s");
    let digest = serde_json::from_str::<Value>(&contract.out).unwrap()["digest"].as_str().unwrap().to_owned();
    assert!(
        other.out.contains(&digest),
        "the mark is no part of the definition: {} {}",
        other.out,
        contract.out
    );
    let said = place.run("lint --fix mark.json");
    let after = std::fs::read_to_string(place.dir.path().join("mark.json")).unwrap();
    assert!(
        after.starts_with("\u{feff}{") && after.contains("\"description\":\"x\""),
        "{after} {}",
        said.err
    );

    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(tool.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    place.file("wide.json", &wide);
    place.file("wide.jsonl", &wide);
    for line in ["lint wide.json", "try plain.json plain.json wide.jsonl"] {
        let said = place.run(line);
        let told = format!("{}{}", said.out, said.err);
        assert!(said.code >= 2 && told.contains("UTF-16") && told.contains("UTF-8"), "{line}: {told}");
    }
    place.file("large.json", "{\"name\":\"t\",\"inputSchema\":{\"properties\":{\"a\":{\"minimum\":1e400}}}}");
    let said = place.run("lint large.json");
    assert!(said.code == 2 && said.err.contains("1.8e308") && !said.err.contains("not JSON"), "{}", said.err);
}

#[test]
fn text_that_the_model_reads_is_told_wherever_it_stands() {
    let place = Place::new();
    let property = |schema: Value| mcp(json!({"type": "object", "properties": {"p": schema}}));
    let old7 = |more: Value| {
        let mut p = json!({"$ref": "#/definitions/d"});
        p.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        mcp(
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"p": p},
            "definitions": {"d": {"type": "string"}}}),
        )
    };
    let consts =
        |a: &str, b: &str| property(json!({"oneOf": [{"const": 1, "title": a}, {"const": 2, "title": b}]}));
    let text = |key: &str, note: &str| property(json!({key: {"type": "string", "description": note}}));
    let dependent = |note: &str| {
        mcp(json!({"type": "object", "properties": {"a": {"type": "string"}},
            "dependentSchemas": {"a": {"properties": {"b": {"type": "string", "description": note}}}}}))
    };
    for (old, new) in [
        (consts("low", "high"), consts("high", "low")),
        (text("contains", "One."), text("contains", "Another.")),
        (text("propertyNames", "One."), text("propertyNames", "Another.")),
        (dependent("One."), dependent("Another.")),
        (old7(json!({"description": "One."})), old7(json!({"description": "Another."}))),
        (old7(json!({"default": "a"})), old7(json!({"default": "b"}))),
    ] {
        let report = place.diff(&old, &new);
        let told = changes(&report);
        assert!(
            told.iter().all(|c| c["class"] == "usually_compatible" && c["model_visible"] == true),
            "{told:#?}"
        );
        assert!(!told.is_empty() && report["model_visible"] == true, "{old} {report}");
    }
    // listed in another order the texts are the same ones
    let a = property(json!({"oneOf": [{"const": 1, "title": "a"}, {"const": 2, "title": "b"}]}));
    let b = property(json!({"oneOf": [{"const": 2, "title": "b"}, {"const": 1, "title": "a"}]}));
    assert!(changes(&place.diff(&a, &b)).iter().all(|c| c["kind"] != "title_changed"));
}

#[test]
fn arguments_are_objects() {
    let place = Place::new();
    let of = |kind: Value| mcp(json!({"type": kind, "properties": {"a": {"type": "string"}}}));
    for (old, new) in
        [(json!(["object", "null"]), json!("object")), (json!("object"), json!(["object", "null"]))]
    {
        let report = place.diff(&of(old), &of(new));
        assert_eq!(report["class"], "compatible", "{report}");
    }
}

#[test]
fn words_agree_with_the_class() {
    let place = Place::new();
    let of = |schema: Value| mcp(json!({"type": "object", "properties": {"a": schema}}));
    let old = of(json!({"enum": ["x", "y"]}));
    let new = of(json!({"enum": ["x", "y"], "maxLength": 1}));
    let told = changes(&place.diff(&old, &new));
    for change in &told {
        let sentence = change["sentence"].as_str().unwrap();
        assert!(change["class"] == "compatible" && !sentence.contains("takes less"), "{sentence}");
    }
}

#[test]
fn a_merge_is_told_as_one() {
    let place = Place::new();
    let tool = |name: &str, note: &str, properties: Value| json!({"name": name, "description": note, "inputSchema": {"type": "object", "properties": properties}});
    let (id, amount) = (json!({"type": "string"}), json!({"type": "integer"}));
    let old = json!({"tools": [
        tool("create_refund", "Creates a refund of an order.", json!({"order_id": id, "amount": amount})),
        tool("cancel_refund", "Cancels it.", json!({"order_id": id}))]});
    let new = json!({"tools": [tool("refund", "Creates or cancels a refund of an order.",
        json!({"order_id": id, "amount": amount, "action": {"enum": ["create", "cancel"]}}))]});
    let report = place.diff(&old, &new);
    assert_eq!(report["tools"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["tools"][0]["status"], "merged");
}

#[test]
fn a_release_is_after_its_candidates() {
    let place = Place::new();
    place.file("a.json", mcp(json!({"type": "object"})).to_string());
    place.file("b.json", mcp(json!({"type": "object", "required": ["x"]})).to_string());
    for (file, version) in [("a.json", "2.0.0-rc.1"), ("b.json", "2.0.0")] {
        assert_eq!(place.run(&format!("contract add {file} --registry r --version {version}")).code, 0);
    }
    let said = place.run("diff t@2.0.0-rc.1 t@2.0.0 --registry r --require-bump");
    assert!(said.code == 0 && said.err.contains("2.0.0 is a major step from 2.0.0-rc.1"), "{}", said.err);
    let back = place.run("diff t@2.0.0 t@2.0.0-rc.1 --registry r --require-bump");
    assert!(back.err.contains("2.0.0-rc.1 is not after 2.0.0"), "{}", back.err);
}

#[test]
fn calls_keep_to_numbers_that_no_double_holds() {
    let place = Place::new();
    place.file("s.json", "{\"type\":\"object\",\"properties\":{\"c\":{\"type\":\"integer\",\"maximum\":-9223372036854775809},\"d\":{\"type\":\"string\"}}}");
    let said = place.run("synth s.json");
    assert!(!said.out.contains("9.22") && !said.out.contains("9223372036854775808"), "{}", said.out);
    assert!(
        said.code == 3 && said.err.contains("beyond 64 bits") && said.out.contains("\"d\""),
        "{}",
        said.err
    );
}

#[test]
fn a_call_is_found_where_there_is_one() {
    let place = Place::new();
    for schema in [
        json!({"type": "object", "propertyNames": {"pattern": "^[a-z]{3}$"}, "minProperties": 3, "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "required": ["x/y", ""], "additionalProperties": {}}),
        json!({"anyOf": [{}, true, {}], "minimum": 1e300, "maximum": 3}),
        json!({"type": "object", "minProperties": 2, "additionalProperties": false, "patternProperties": {"^k[0-9]$": {"type": "null"}}}),
    ] {
        let (calls, said) = place.synth(&schema);
        assert!(!calls.is_empty() && calls.iter().all(Value::is_object), "{schema}: {}", said.err);
    }
}

/// Definitions that refer to one another, all to all.
fn knot(k: usize, bound: bool) -> Value {
    let each = |q: usize| (q.to_string(), json!({"$ref": format!("#/$defs/n{q}")}));
    let mut defs: Map<String, Value> = (0..k)
        .map(|i| {
            (
                format!("n{i}"),
                json!({"type": "object", "properties": (0..k).map(each).collect::<Map<_, _>>()}),
            )
        })
        .collect();
    if bound {
        defs[&format!("n{}", k - 1)]["maxProperties"] = json!(k - 1);
    }
    mcp(json!({"type": "object", "properties": {"r": {"$ref": "#/$defs/n0"}}, "$defs": defs}))
}

/// A guard against what never ends, not a time that is measured: these take seconds, and took minutes or had no end.
const LONG: Duration = Duration::from_secs(300);

fn ends(place: &Place, line: &str) -> Answer {
    let started = Instant::now();
    let said = place.run(line);
    println!("{line}: {} ms", started.elapsed().as_millis());
    assert!(started.elapsed() < LONG, "{line}");
    said
}

#[test]
fn definitions_that_refer_to_each_other_come_to_an_end() {
    let place = Place::new();
    for k in [6, 8] {
        place.file("old.json", knot(k, true).to_string());
        place.file("new.json", knot(k, false).to_string());
        let said = ends(&place, "diff old.json new.json --format json");
        let report: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(report["class"], "compatible", "k {k}");
        let synth = ends(&place, "synth new.json");
        assert!(!synth.out.is_empty(), "{}", synth.err);
        ends(&place, "lint new.json");
    }
}

#[test]
fn large_definitions_come_to_an_end() {
    let place = Place::new();
    let strings = |n: usize, most: usize| {
        let each = (0..n).map(|i| (format!("property_{i}"), json!({"type": "string", "maxLength": most})));
        mcp(json!({"type": "object", "properties": each.collect::<Map<_, _>>()}))
    };
    place.file("many.json", strings(2_000, 9).to_string());
    let said = ends(&place, "synth many.json");
    assert!(!said.out.is_empty() && said.err.contains("so large"), "{}", said.err);
    place.file("old.json", strings(2_000, 9).to_string());
    place.file("new.json", strings(2_000, 8).to_string());
    assert_eq!(ends(&place, "diff old.json new.json").code, 1);
    ends(&place, "lint old.json");
    let values: Vec<String> = (0..30_000).map(|i| format!("value_{i}")).collect();
    place
        .file("enum.json", mcp(json!({"type": "object", "properties": {"a": {"enum": values}}})).to_string());
    ends(&place, "lint enum.json");
    // more than a definition may have, also as a bare schema
    let huge = json!({"type": "object", "description": "x".repeat(1 << 20)}).to_string();
    place.file("huge.json", huge);
    let said = ends(&place, "diff huge.json huge.json");
    assert!(said.code == 2 && said.err.contains("more than 1048576"), "{}", said.err);
}
