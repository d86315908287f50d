//! `lastcall synth` over real definitions. Validity is judged by a second validator (boon), and what there is to cover is
//! counted by an oracle of plain serde_json that shares nothing with the synthesis. Skips with a message when the data
//! folder is absent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};

use lastcall_contract::Draft;
use lastcall_diff::synth::{Synthesis, synthesize};
use lastcall_tests::{answer, data_lines, lastcall};
use serde_json::{Value, json};

/// A thing to cover: (pointer with `*` for items, kind, detail).
type Wanted = (String, &'static str, String);

/// The oracle: what a schema asks for, and what a call shows. References, `allOf` and `anyOf`/`oneOf` at any place.
struct Oracle<'a> {
    root: &'a Value,
    wanted: BTreeSet<Wanted>,
    /// The nodes on the way here: a recursive schema is asked about once.
    stack: Vec<*const Value>,
}

impl<'a> Oracle<'a> {
    fn behind(&self, mut node: &'a Value) -> &'a Value {
        for _ in 0..16 {
            match node
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|r| self.root.pointer(r.strip_prefix('#')?))
            {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }

    /// Collects what is asked (`value` is `None`) or what a value shows.
    fn visit(&mut self, node: &'a Value, at: &str, value: Option<&Value>, depth: usize) {
        let node = self.behind(node);
        if depth > 8 || !node.is_object() || self.stack.contains(&std::ptr::from_ref(node)) {
            return;
        }
        self.stack.push(std::ptr::from_ref(node));
        let asks = value.is_none();
        let mut add = |kind, detail: String, shown: bool| {
            if asks || shown {
                self.wanted.insert((at.to_owned(), kind, detail));
            }
        };
        let types: Vec<&str> = match &node["type"] {
            Value::String(t) => vec![t],
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let listed: Option<Vec<&Value>> = node["enum"]
            .as_array()
            .map(|l| l.iter().collect())
            .or_else(|| node.get("const").map(|c| vec![c]));
        for one in listed.iter().flatten() {
            add("value", one.to_string(), value == Some(*one));
        }
        if listed.is_none() {
            if types.contains(&"null") {
                add("null", String::new(), value == Some(&Value::Null));
            }
            if types.contains(&"boolean") {
                for one in [true, false] {
                    add("value", one.to_string(), value == Some(&Value::from(one)));
                }
            }
            for (key, kind) in [
                ("minLength", "length"),
                ("maxLength", "length"),
                ("minItems", "items"),
                ("maxItems", "items"),
            ] {
                if let Some(n) = node[key].as_u64() {
                    let size = match value {
                        Some(Value::String(s)) if kind == "length" => Some(s.chars().count() as u64),
                        Some(Value::Array(l)) if kind == "items" => Some(l.len() as u64),
                        _ => None,
                    };
                    add(key_name(key), n.to_string(), size == Some(n));
                }
            }
            let whole = types.contains(&"integer") && !types.contains(&"number");
            for (key, up) in
                [("minimum", 1.0), ("maximum", -1.0), ("exclusiveMinimum", 1.0), ("exclusiveMaximum", -1.0)]
            {
                if let Some(bound) = node[key].as_f64() {
                    let open = key.starts_with("exclusive");
                    let first = |step: f64| {
                        let mut k = if up > 0.0 { (bound / step).ceil() } else { (bound / step).floor() };
                        if open && k * step == bound {
                            k += up;
                        }
                        k * step
                    };
                    let step = node["multipleOf"].as_f64().or(whole.then_some(1.0));
                    let near = |n: f64| match step {
                        Some(step) => (n - first(step)).abs() < 1e-9 * bound.abs().max(1.0),
                        None if open => {
                            (n - bound) * up > 0.0 && (n - bound).abs() <= 0.011 * bound.abs().max(1.0)
                        }
                        None => n == bound,
                    };
                    add(key_name(key), bound.to_string(), value.and_then(Value::as_f64).is_some_and(near));
                }
            }
        }
        let required: Vec<&str> =
            node["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, schema) in node["properties"].as_object().into_iter().flatten() {
            let below = format!("{at}/{name}");
            let child = value.map(|v| v.get(name));
            if asks || child.flatten().is_some() {
                self.wanted.insert((below.clone(), "carried", String::new()));
            }
            let left_out = value.is_some_and(|v| v.is_object() && v.get(name).is_none());
            if !required.contains(&name.as_str()) && (asks || left_out) {
                self.wanted.insert((below.clone(), "omitted", String::new()));
            }
            match child {
                None => self.visit(schema, &below, None, depth + 1),
                Some(Some(value)) => self.visit(schema, &below, Some(value), depth + 1),
                Some(None) => {}
            }
        }
        if node["items"].is_object() {
            let below = format!("{at}/*");
            match value {
                None => self.visit(&node["items"], &below, None, depth + 1),
                Some(value) => {
                    for value in value.as_array().into_iter().flatten() {
                        self.visit(&node["items"], &below, Some(value), depth + 1);
                    }
                }
            }
        }
        for part in node["allOf"].as_array().into_iter().flatten() {
            self.visit(part, at, value, depth + 1);
        }
        for key in ["anyOf", "oneOf"] {
            for (n, branch) in node[key].as_array().into_iter().flatten().enumerate() {
                let taken = value.is_none_or(|v| accepts(self.root, branch, v));
                if taken {
                    self.wanted.insert((at.to_owned(), "branch", format!("{key} {n}")));
                    self.visit(branch, at, value, depth + 1);
                }
            }
        }
        self.stack.pop();
    }
}

fn key_name(key: &str) -> &'static str {
    match key {
        "minLength" => "minLength",
        "maxLength" => "maxLength",
        "minItems" => "minItems",
        "maxItems" => "maxItems",
        "minimum" => "minimum",
        "maximum" => "maximum",
        "exclusiveMinimum" => "exclusiveMinimum",
        _ => "exclusiveMaximum",
    }
}

/// A second validator's word on a branch, with the definitions of the whole beside it.
fn accepts(root: &Value, branch: &Value, value: &Value) -> bool {
    let mut alone = branch.clone();
    for key in ["$defs", "definitions"] {
        if let (Some(table), Some(map)) = (root.get(key), alone.as_object_mut()) {
            map.insert(key.to_owned(), table.clone());
        }
    }
    Second::new(&alone).is_some_and(|second| second.accepts(value))
}

/// boon, which shares no code with the validator that the synthesis uses.
struct Second {
    schemas: boon::Schemas,
    index: boon::SchemaIndex,
}

impl Second {
    fn new(schema: &Value) -> Option<Self> {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.enable_format_assertions();
        compiler.add_resource("mem:///schema.json", schema.clone()).ok()?;
        let index = compiler.compile("mem:///schema.json", &mut schemas).ok()?;
        Some(Self { schemas, index })
    }

    fn accepts(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }
}

fn check(schema: &Value, made: &Synthesis, name: &str) -> (usize, usize, bool) {
    let second = Second::new(schema);
    for goal in 0..made.goals.len() {
        let shown = made.calls.iter().any(|c| c.covers.contains(&goal));
        let told = made.unreached.iter().any(|u| u.goal == goal);
        assert!(shown != told, "{name}: {}: covered {shown}, given up {told}", made.goals[goal]);
    }
    let mut asked = Oracle { root: schema, wanted: BTreeSet::new(), stack: Vec::new() };
    asked.visit(schema, "", None, 0);
    let mut shown = Oracle { root: schema, wanted: BTreeSet::new(), stack: Vec::new() };
    for call in &made.calls {
        if let Some(second) = &second {
            assert!(
                second.accepts(&call.arguments),
                "{name}: {} is refused by the second validator",
                call.arguments
            );
        }
        shown.visit(schema, "", Some(&call.arguments), 0);
    }
    let covered = asked.wanted.intersection(&shown.wanted).count();
    // what the oracle misses has to stand among the goals that were given up, at that place
    for (at, kind, detail) in asked.wanted.difference(&shown.wanted) {
        let told = made.unreached.iter().any(|u| {
            let at_goal = &made.goals[u.goal].pointer;
            at == at_goal || at.starts_with(&format!("{at_goal}/"))
        });
        assert!(told, "{name}: nobody says why {at} {kind} {detail} is not covered: {:?}", made.unreached);
    }
    (asked.wanted.len(), covered, second.is_some())
}

/// The guide's sample of unreached goals is what is printed.
#[test]
fn the_guide_shows_what_is_not_reached() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/synth.md")).unwrap();
    let shown = page.split("```text\nn: ").nth(1).unwrap().split("```").next().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("n.json");
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}}});
    std::fs::write(&file, json!({"name": "n", "inputSchema": schema}).to_string()).unwrap();
    let said = answer(lastcall().arg("synth").arg(&file));
    assert_eq!((said.code, said.err), (3, format!("n: {shown}")));
}

#[test]
fn real_definitions_are_covered() {
    let Some(definitions_of) = data_lines("schemas.jsonl") else { return };
    let (mut definitions, mut goals, mut covered, mut calls, mut most, mut judged) = (0, 0, 0, 0, 0, 0);
    let (mut own, mut given_up) = (0, 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let started = std::time::Instant::now();
    for value in &definitions_of {
        let schema = &value["parameters"];
        let name = value["schema_ref"].as_str().unwrap();
        let Ok(made) = synthesize(schema, Draft::Draft202012, 7) else { continue };
        definitions += 1;
        own += made.goals.len();
        given_up += made.unreached.len();
        for unreached in &made.unreached {
            *reasons.entry(unreached.reason.chars().take(60).collect()).or_default() += 1;
        }
        let (asked, shown, second) = check(schema, &made, name);
        goals += asked;
        covered += shown;
        judged += usize::from(second);
        calls += made.calls.len();
        most = most.max(made.calls.len());
    }
    println!(
        "synth: {definitions} definitions in {} ms, {judged} judged by a second validator; the oracle counts {goals} \
         goals, {covered} covered ({:.2} %); own count {own}, given up {given_up}; {calls} calls, {:.1} a definition, at \
         most {most}",
        started.elapsed().as_millis(),
        100.0 * covered as f64 / goals as f64,
        calls as f64 / definitions as f64
    );
    println!("reasons: {reasons:?}");
    assert!(definitions > 2000 && goals > definitions * 5, "the oracle looked at real definitions");
    assert!(judged * 100 >= definitions * 95, "the second validator judged {judged} of {definitions}");
    assert!(covered * 1000 >= goals * 990, "{covered} of {goals}");
}

/// What goes in one place must come out at the other: try finds every call, run takes every event.
#[test]
fn the_calls_are_read_by_try_and_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let definition = json!({"name": "search", "description": "Search.", "inputSchema": {"type": "object",
        "required": ["q"], "properties": {"q": {"type": "string"}, "sort": {"enum": ["new", "old"]},
        "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 100}}}});
    let narrower = definition.to_string().replace("100", "50").replace("\"new\",", "");
    std::fs::write(path("old.json"), definition.to_string()).unwrap();
    std::fs::write(path("new.json"), narrower).unwrap();
    let made = answer(lastcall().args(["synth", &path("old.json")]));
    assert_eq!((made.code, made.err.trim()), (0, "search: 4 calls cover 11 of 11 goals"), "{}", made.out);
    std::fs::write(path("calls.jsonl"), &made.out).unwrap();
    let tried = answer(lastcall().args([
        "try",
        &path("old.json"),
        &path("new.json"),
        &path("calls.jsonl"),
        "--format",
        "json",
    ]));
    assert_eq!(tried.code, 1, "{}", tried.err);
    let report: Value = serde_json::from_str(&tried.out).unwrap();
    assert_eq!(report["calls"], made.out.lines().count());
    let hit: BTreeSet<&str> =
        report["categories"].as_array().unwrap().iter().filter_map(|c| c["category"].as_str()).collect();
    assert!(hit.contains("enum_value_removed") && hit.contains("range_tightened"), "{hit:?}");

    let events = answer(lastcall().args(["synth", &path("old.json"), "--format", "events", "--seed", "3"]));
    assert_eq!(events.code, 0, "{}", events.err);
    std::fs::write(path("events.jsonl"), &events.out).unwrap();
    let tried = answer(lastcall().args([
        "try",
        &path("old.json"),
        &path("old.json"),
        &path("events.jsonl"),
        "--format",
        "json",
    ]));
    let report: Value = serde_json::from_str(&tried.out).unwrap();
    assert_eq!((&report["calls"], &report["undecodable"]), (&json!(events.out.lines().count()), &json!(0)));
    let again = answer(lastcall().args(["synth", &path("old.json"), "--format", "events", "--seed", "3"]));
    assert_eq!(events.out, again.out, "one seed, one answer");

    let goals = answer(lastcall().args(["synth", &path("old.json"), "--goals"]));
    assert!(goals.out.contains("/sort value \"old\"  call"), "{}", goals.out);
    std::fs::write(
        path("never.json"),
        r#"{"name": "n", "inputSchema": {"type": "object", "properties": {
        "a": {"type": "integer", "minimum": 3, "maximum": 2}}}}"#,
    )
    .unwrap();
    let never = answer(lastcall().args(["synth", &path("never.json")]));
    assert_eq!(never.code, 3);
    assert!(
        never.err.contains("not reached: /a minimum 3: no number lies between the bounds there"),
        "{}",
        never.err
    );
}
