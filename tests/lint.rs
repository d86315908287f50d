//! `lastcall lint` through the real binary: every rule fires and has a near miss; the checklists; `--fix`; formats; real
//! definitions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lastcall_contract::Definition;
use lastcall_diff::lint::{
    CHECKLISTS, Covered, Known, List, Profile, RULES, Rule, Severity, apply, lint_definition,
};
use lastcall_tests::{Answer, answer, data_lines, lastcall};
use serde_json::{Value, json};

fn text_of(folder: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

const TOOL: &str = "tool_id: orders.find\nrisk_level: high\nside_effect: write\ndomains: [orders]\n\
    consumers: [clerk_agent]\nerrors: [{code: gone, category: business, retryable: false}]\n\
    compatibility: {compatible_with: [1.0.x]}\n";

/// The definition that the registry of the rows has in both versions.
fn base() -> Value {
    json!({"name": "find_orders", "description": "Finds the orders of one customer; any role may.", "inputSchema": {
        "type": "object", "required": ["customer"], "properties": {"customer": {"type": "string"},
        "day": {"type": "string"}, "state": {"enum": ["open", "closed"]}, "per_page": {"type": "integer", "default": 10}}},
        "outputSchema": {"type": "object", "properties": {"orders": {"type": "array", "items": {"type": "object",
        "properties": {"id": {"type": "string"}}}}}}})
}

fn write(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A registry without a fault, frozen.
fn registry(dir: &Path) {
    write(dir, "orders.find/tool.yaml", TOOL);
    write(dir, "orders.find/owner.yaml", "owner: shop\napprovers: [a.b]\n");
    write(dir, "orders.find/changelog.md", "# 1.1.0\nText.\n# 1.0.0\nFirst.\n");
    write(dir, "orders.find/schemas/v1.0.0.json", &base().to_string());
    let mut newer = base();
    newer["description"] = json!("Finds the orders of one customer. Any role may.");
    write(dir, "orders.find/schemas/v1.1.0.json", &newer.to_string());
    let frozen = answer(lastcall().args(["contract", "freeze", "--all", "--registry"]).arg(dir));
    assert_eq!(frozen.code, 0, "{}", frozen.err);
}

/// Writes what a row describes; answers the path to lint.
fn lay_out(dir: &Path, row: &Value) -> PathBuf {
    let file = dir.join("tool.json");
    let tool = |schema: Value| json!({"name": "find_orders", "description": "Finds the orders of one customer.", "inputSchema": schema});
    let (key, given) = row.as_object().unwrap().iter().next().unwrap();
    let newest = "orders.find/schemas/v1.1.0.json";
    match key.as_str() {
        "property" => {
            std::fs::write(&file, tool(json!({"type": "object", "properties": given})).to_string()).unwrap()
        }
        "schema" => std::fs::write(&file, tool(given.clone()).to_string()).unwrap(),
        "tool" => std::fs::write(&file, given.to_string()).unwrap(),
        "registry" => {
            registry(dir);
            for (name, text) in given.as_object().unwrap() {
                match text.as_str() {
                    Some(text) => write(dir, name, text),
                    None => std::fs::remove_file(dir.join(name)).unwrap(),
                }
            }
        }
        "edit" => {
            registry(dir);
            let mut text = TOOL.to_owned();
            for (old, new) in given.as_object().unwrap() {
                assert!(text.contains(old), "the row edits nothing: {old}");
                text = text.replace(old, new.as_str().unwrap());
            }
            write(dir, "orders.find/tool.yaml", &text);
        }
        "change" => {
            registry(dir);
            let mut newer = base();
            for (key, value) in given.as_object().unwrap() {
                newer["inputSchema"][key] = value.clone();
            }
            write(dir, newest, &newer.to_string());
        }
        "result" => {
            registry(dir);
            let mut newer = base();
            newer["outputSchema"] = given.clone();
            write(dir, newest, &newer.to_string());
        }
        other => panic!("a row with `{other}`"),
    }
    if file.is_file() { file } else { dir.to_owned() }
}

fn lint(path: &Path, args: &[&str]) -> Answer {
    answer(lastcall().arg("lint").arg(path).args(args))
}

fn findings(answer: &Answer) -> Vec<Value> {
    let report: Value =
        serde_json::from_str(&answer.out).unwrap_or_else(|e| panic!("{e}: {} {}", answer.out, answer.err));
    report["findings"].as_array().unwrap().clone()
}

#[test]
fn every_rule_fires_and_has_a_near_miss() {
    let rows: Vec<Value> = serde_saphyr::from_str(&text_of("cases", "lint.yaml")).unwrap();
    let named: Vec<&str> = rows.iter().map(|r| r["rule"].as_str().unwrap()).collect();
    let all: Vec<&str> = RULES.iter().map(|r| r.name).collect();
    assert_eq!(named, all, "a row for each rule, in the order of the rules");
    let mut wrong = Vec::new();
    for row in &rows {
        let rule = row["rule"].as_str().unwrap();
        for (side, fires) in [("fires", true), ("silent", false)] {
            let dir = tempfile::tempdir().unwrap();
            let path = lay_out(dir.path(), &row[side]);
            let more: Vec<&str> =
                row["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let args = [&["--only", rule, "--format", "json", "--fail-on", "note"], &more[..]].concat();
            let said = lint(&path, &args);
            let found = findings(&said);
            if found.is_empty() == fires || said.code != i32::from(fires) {
                wrong.push(format!("{rule}: {side}: exit {}, {found:?} {}", said.code, said.err));
            }
            for one in &found {
                let place = one["line"].as_u64().is_some_and(|l| l > 0) || one["file"] == "";
                assert!(one["rule"] == rule && place, "{rule}: {one}");
                let level = Rule::find(rule).unwrap().severity.as_str();
                let order = ["note", "warning", "error"];
                let rank = |s: &str| order.iter().position(|o| *o == s).unwrap();
                assert!(
                    rank(one["severity"].as_str().unwrap()) <= rank(level),
                    "{rule}: worse than its rule"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The lines of both checklists, counted in their source where it is there, each with what answers it.
#[test]
fn the_checklists_are_answered_line_by_line() {
    let count = |list| CHECKLISTS.iter().filter(|ask| ask.list == list).count();
    let mut stated = (7, 8);
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/seeds/tool-contract-testing.txt");
    if let Ok(text) = std::fs::read_to_string(seed) {
        let section = |head: &str| {
            text.lines()
                .skip_while(|l| l.trim() != head)
                .skip(1)
                .skip_while(|l| l.trim().is_empty())
                .take_while(|l| l.starts_with('•'))
                .count()
        };
        stated = (section("Tool Definition Check"), section("Compatibility Check"));
    } else {
        eprintln!("the checklists' source is not here: their lengths are taken as known");
    }
    assert_eq!((count(List::Definition), count(List::Compatibility)), stated);
    for ask in &CHECKLISTS {
        let rules = ask.rules();
        assert!(!rules.is_empty(), "{}", ask.question);
        if let Covered::Ask(_) = ask.covered {
            let text = rules.iter().map(|r| r.summary).collect::<String>();
            assert!(
                text.contains("ask the owner") || text.contains("ask the record"),
                "{}: {text}",
                ask.question
            );
        }
    }
}

#[test]
fn the_guide_lists_every_rule_and_line() {
    let page = text_of("../docs/src", "lint.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|l| l.starts_with("| LC"))
        .map(|l| l.trim_matches('|').split('|').map(|c| c.trim().trim_matches('`')).collect())
        .collect();
    let wanted: Vec<Vec<&str>> = RULES
        .iter()
        .map(|r| {
            vec![
                r.id,
                r.name,
                r.severity.as_str(),
                if r.fixable { "yes" } else { "" },
                r.summary.trim_matches('`'),
            ]
        })
        .collect();
    if let Some(missing) = wanted.iter().find(|row| !rows.contains(row)) {
        for row in &wanted {
            println!("| {} | `{}` | {} | {} | {} |", row[0], row[1], row[2], row[3], row[4]);
        }
        panic!("docs/src/lint.md has no row {missing:?}; the whole table is printed above");
    }
    assert_eq!(rows.len(), wanted.len(), "a row too many");
    for ask in &CHECKLISTS {
        let names: Vec<String> = ask.rules().iter().map(|r| format!("`{}`", r.name)).collect();
        let line = format!("| {} | {} |", ask.question, names.join(", "));
        assert!(page.contains(&line), "docs/src/lint.md has no row {line}");
    }
}

/// What the guide shows is what the command prints.
#[test]
fn the_guide_shows_real_output() {
    let page = text_of("../docs/src", "lint.md");
    let shown = page.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let said = answer(lastcall().current_dir(root).args(["lint", "examples/first-look/old.json"]));
    assert_eq!((said.out.as_str(), said.code), (shown, 0));
}

const FIXABLE: &str = "{\n  \"type\": \"function\",\n  \"name\": \"f\",\n  \"strict\": true,\n  \"parameters\": {\n    \
    \"properties\": {\n      \"a\": {\"type\": \"string\",  \"enum\": [\"x\", \"y\",  \"x\"], \"descripton\": \"An é.\"},\n      \
    \"b\": {\"type\":\"integer\",\"example\":3}\n    },\n    \"required\": [\"a\", \"b\"]\n  }\n}\n";

#[test]
fn fix_changes_what_it_must_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.json");
    std::fs::write(&path, FIXABLE).unwrap();
    let dry = lint(&path, &["--fix", "--dry-run"]);
    assert!(dry.err.contains("would mend 5 findings"), "{}", dry.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), FIXABLE);
    let fixed = lint(&path, &["--fix", "--format", "json"]);
    assert!(fixed.err.contains("mended 5 findings"), "{}", fixed.err);
    let after = std::fs::read_to_string(&path).unwrap();
    let wanted = FIXABLE
        .replace("\"y\",  \"x\"]", "\"y\"]")
        .replace("descripton", "description")
        .replace("\"example\":3", "\"examples\":[3]")
        .replace(
            "[\"a\", \"b\"]\n",
            "[\"a\", \"b\"],\n    \"type\": \"object\",\n    \"additionalProperties\": false\n",
        );
    assert_eq!(after, wanted);
    assert!(findings(&fixed).iter().all(|f| {
        !["enum-repeated", "root-not-object", "openai-strict-open"].contains(&f["rule"].as_str().unwrap())
    }));
    let again = lint(&path, &["--fix"]);
    assert!(!again.err.contains("mended"), "idempotent: {}", again.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
}

#[test]
fn a_misspelling_by_two_neighbours_is_mended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.json");
    let text = "{\"name\": \"f\", \"inputSchema\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\", \"tilte\": \"A\"}}}}";
    std::fs::write(&path, text).unwrap();
    assert!(lint(&path, &["--fix"]).err.contains("mended 1 finding"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text.replace("tilte", "title"));
}

#[cfg(unix)]
#[test]
fn fix_keeps_the_mode_and_leaves_a_read_only_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    for mode in [0o600, 0o755, 0o444] {
        let path = dir.path().join(format!("{mode:o}.json"));
        std::fs::write(&path, FIXABLE).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let said = lint(&path, &["--fix"]);
        let after = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(after, mode, "{mode:o} became {after:o}");
        let untouched = std::fs::read_to_string(&path).unwrap() == FIXABLE;
        assert_eq!(untouched, mode == 0o444, "{mode:o}: {}", said.err);
        assert_eq!(said.err.contains("is read-only"), mode == 0o444, "{}", said.err);
    }
}

/// Both are refused by the provider itself.
#[test]
fn provider_subsets_know_type_lists_and_one_of() {
    let dir = tempfile::tempdir().unwrap();
    let path = lay_out(
        dir.path(),
        &json!({"property": {"a": {"type": ["string", "null"]}, "b": {"type": "string"}}}),
    );
    let found = findings(&lint(&path, &["--provider", "gemini", "--only", "LC059", "--format", "json"]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["pointer"], "/inputSchema/properties/a/type");
    assert!(found[0]["message"].as_str().unwrap().contains("nullable: true"), "{found:?}");
    let strict = json!({"type": "function", "name": "f", "strict": true, "parameters": {"type": "object",
        "additionalProperties": false, "required": ["a", "b"], "properties": {
        "a": {"oneOf": [{"type": "string"}, {"type": "integer"}]}, "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}});
    std::fs::write(&path, strict.to_string()).unwrap();
    let found = findings(&lint(&path, &["--only", "LC053", "--format", "json"]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["pointer"], "/parameters/properties/a/oneOf");
    assert!(answer(lastcall().args(["lint", "--explain", "LC053"])).out.contains("`oneOf`"));
}

#[test]
fn an_unreadable_file_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let good = lay_out(dir.path(), &json!({"property": {"n": {"type": "integer", "default": "x"}}}));
    let clean = dir.path().join("clean.json");
    std::fs::write(&clean, base().to_string()).unwrap();
    std::fs::write(dir.path().join("bad.json"), "{").unwrap();
    let run = |files: &[&Path], more: &[&str]| {
        answer(lastcall().current_dir(dir.path()).arg("lint").args(files).args(more))
    };
    let (bad, absent) = (Path::new("bad.json"), Path::new("absent.json"));
    let said = run(&[&clean, bad, absent, &good], &[]);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert!(
        said.out.contains("default-refused") && said.out.contains("2 files could not be read"),
        "{}",
        said.out
    );
    assert!(said.err.contains("bad.json") && said.err.contains("absent.json"), "{}", said.err);
    assert_eq!(run(&[bad, &clean], &[]).code, 2, "nothing that counts, and one file unknown");
    assert_eq!(run(&[bad], &[]).code, 2);
    let document: Value = serde_json::from_str(&run(&[bad, &good], &["--format", "json"]).out).unwrap();
    assert_eq!(document["unread"][0]["file"], "bad.json");
    assert!(run(&[bad, &good], &["--format", "junit"]).out.contains("could_not_run"));
}

#[test]
fn a_frozen_contract_is_never_mended() {
    let dir = tempfile::tempdir().unwrap();
    registry(dir.path());
    let file = dir.path().join("orders.find/schemas/v1.1.0.json");
    let text = base().to_string().replace("\"closed\"", "\"closed\",\"open\"");
    std::fs::write(&file, &text).unwrap();
    std::fs::remove_file(dir.path().join("registry.lock")).unwrap();
    assert_eq!(
        answer(lastcall().args(["contract", "freeze", "--all", "--registry"]).arg(dir.path())).code,
        0
    );
    for path in [file.as_path(), dir.path()] {
        let said = lint(path, &["--fix"]);
        let registry = dir.path().canonicalize().unwrap().display().to_string();
        let shown = if path == dir.path() { dir.path().display().to_string() } else { registry };
        let hint = format!("`lastcall contract correct orders.find@1.1.0 FILE --registry {shown}`");
        assert!(said.err.contains(&hint), "{}", said.err);
        assert!(!said.out.contains("--fix can mend"), "{}", said.out);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    std::fs::remove_file(dir.path().join("registry.lock")).unwrap();
    let said = lint(dir.path(), &["--fix"]);
    assert!(said.err.contains("mended 1 finding in"), "{}", said.err);
    assert_ne!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn an_owner_may_allow_a_rule_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    registry(dir.path());
    let count = |rule: &str| {
        findings(&lint(dir.path(), &["--format", "json"])).iter().filter(|f| f["rule"] == rule).count()
    };
    assert!(count("default-unstated") > 0);
    write(
        dir.path(),
        "orders.find/tool.yaml",
        &format!("{TOOL}lint:\n  allow:\n    - default-unstated: the runtime documents it\n"),
    );
    assert_eq!(count("default-unstated"), 0);
    assert!(lint(dir.path(), &[]).out.contains("allowed by tool.yaml"));
    write(
        dir.path(),
        "orders.find/tool.yaml",
        &format!("{TOOL}lint:\n  allow:\n    - default-unstated: ''\n    - nonsense: why\n"),
    );
    assert_eq!(count("registry-broken"), 1, "no reason");
    write(dir.path(), "orders.find/tool.yaml", &format!("{TOOL}lint:\n  allow:\n    - nonsense: why\n"));
    assert_eq!(count("registry-broken"), 1, "no such rule");
}

#[test]
fn exit_codes_and_formats() {
    let dir = tempfile::tempdir().unwrap();
    let path = lay_out(dir.path(), &json!({"property": {"n": {"type": "integer", "default": "x"}}}));
    assert_eq!(lint(&path, &[]).code, 1);
    assert_eq!(lint(&path, &["--skip", "LC023"]).code, 0);
    assert_eq!(lint(&path, &["--skip", "LC004,default-refused"]).code, 0);
    assert_eq!(lint(&path, &["--skip", "default-refused", "--fail-on", "warning"]).code, 1);
    assert_eq!(lint(Path::new("not-there.json"), &[]).code, 2);
    assert_eq!(lint(&path, &["--only", "nonsense"]).code, 2);
    assert_eq!(answer(lastcall().arg("lint")).code, 2);
    let explained = answer(lastcall().args(["lint", "--explain", "lc006"]));
    assert!(
        explained.code == 0 && explained.out.starts_with("LC006 unit-unstated (warning, text)"),
        "{}",
        explained.out
    );
    let listed = answer(lastcall().args(["lint", "--rules"]));
    assert!(RULES.iter().all(|r| listed.out.contains(r.name)));
    let sarif: Value = serde_json::from_str(&lint(&path, &["--format", "sarif"]).out).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().any(|r| r["ruleId"] == "default-refused" && r["level"] == "error"), "{results:?}");
    for (format, wanted) in [
        ("text", "error   1:"),
        ("markdown", "| error | `default-refused`"),
        ("junit", "<failure"),
        ("github", "::error file="),
    ] {
        let said = lint(&path, &["--format", format]);
        assert!(said.code == 1 && said.out.contains(wanted), "{format}: {}", said.out);
    }
}

/// No panic, figures for each rule, and no warning that most real definitions get: such a rule cries wolf.
#[test]
fn real_definitions_are_linted_without_crying_wolf() {
    let Some(definitions_of) = data_lines("schemas.jsonl") else { return };
    let known = Known { registered: true, ..Known::default() };
    let strict = Known { registered: true, profiles: Profile::ALL.to_vec(), ..Known::default() };
    let mut by_rule: BTreeMap<&str, (usize, Severity)> = BTreeMap::new();
    let (mut definitions, mut fixed, mut refused) = (0, 0, 0);
    for value in definitions_of {
        let document = json!({"name": value["name"], "description": value["description"], "inputSchema": value["parameters"]});
        let text = serde_json::to_string_pretty(&document).unwrap();
        let Ok(definition) = Definition::from_text("d", &text, Default::default()) else {
            refused += 1;
            continue;
        };
        definitions += 1;
        let found = lint_definition(&definition, &known);
        let _ = lint_definition(&definition, &strict);
        let mut seen: Vec<&str> = found.iter().map(|f| f.rule.name).collect();
        seen.dedup();
        for name in seen {
            let worst = found.iter().filter(|f| f.rule.name == name).map(|f| f.severity).max().unwrap();
            let entry = by_rule.entry(name).or_insert((0, worst));
            *entry = (entry.0 + 1, entry.1.max(worst));
        }
        let edits: Vec<_> = found.iter().flat_map(|f| f.edits.clone()).collect();
        if !edits.is_empty() {
            fixed += 1;
            let after = apply(&text, &edits).unwrap();
            let mended = Definition::from_text("d", &after, Default::default()).unwrap();
            let left = lint_definition(&mended, &known);
            assert!(left.iter().all(|f| f.edits.is_empty()), "{}: idempotent", value["schema_ref"]);
            assert_eq!(
                untouched(&definition.document),
                untouched(&mended.document),
                "{}",
                value["schema_ref"]
            );
        }
    }
    println!("lint: {definitions} definitions ({refused} cannot be read), {fixed} mended");
    let mut rows: Vec<_> = by_rule.iter().collect();
    rows.sort_by_key(|(_, (n, _))| std::cmp::Reverse(*n));
    for (name, (n, severity)) in rows {
        println!(
            "  {:<7} {name:<30} {n:>5}  {:.1} %",
            severity.as_str(),
            100.0 * *n as f64 / definitions as f64
        );
        assert!(
            *severity == Severity::Note || n * 2 < definitions,
            "{name} cries wolf: {n} of {definitions}"
        );
    }
    assert!(definitions > 1900);
}

/// A schema without what a fix may touch.
fn untouched(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(k, _)| !matches!(k.as_str(), "example" | "examples" | "additionalProperties"))
                .filter(|(k, v)| *k != "type" || *v != "object")
                .filter(|(k, v)| !(v.is_string() && (k.starts_with("desc") || k.starts_with("tit"))))
                .map(|(k, v)| (k.clone(), untouched(v)))
                .collect(),
        ),
        Value::Array(list) => {
            let mut out: Vec<Value> = Vec::new();
            for value in list.iter().map(untouched) {
                if !out.contains(&value) {
                    out.push(value);
                }
            }
            Value::Array(out)
        }
        other => other.clone(),
    }
}
