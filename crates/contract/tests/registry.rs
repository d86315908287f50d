#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! The registry through its public functions: layouts, contradictions, ids, add → freeze → change → error.

use insta::assert_snapshot;
use lastcall_contract::registry::{
    LOCK_FILE, Request, is_tool_id, is_version, version_fits, version_order, wants_file,
};
use lastcall_contract::{Registry, RegistryFiles, RiskLevel, SideEffect, Source};
use proptest::prelude::*;

const V1: &str = r#"{"name": "lookup_order", "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}}}"#;
const V2: &str = r#"{"name": "lookup_order", "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}}}"#;

fn files(list: &[(&str, &str)]) -> RegistryFiles {
    list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn problems(list: &[(&str, &str)]) -> String {
    Registry::read(&files(list)).expect_err("has to be refused").to_string()
}

fn apply(files: &mut RegistryFiles, request: &Request<'_>) -> String {
    let addition = Registry::plan_addition(files, request).unwrap_or_else(|e| panic!("{e}"));
    for write in &addition.writes {
        files.insert(write.path.clone(), write.text.clone());
    }
    addition.contract.id
}

#[test]
fn the_folder_layout() {
    let registry = Registry::read(&files(&[
        ("orders.lookup/tool.yaml", "tool_id: orders.lookup\nrisk_level: low\nside_effect: read\ndomains: [orders]\n\
            errors: [{code: gone, category: business, retryable: false}]\n\
            versions:\n  - {version: 1.0.0, schema: schemas/v1.0.0.json, source: mcp, aliases: [order_tool.v1]}\n  - {version: 1.10.0, schema: schemas/v1.10.0.json}\n  - {version: 1.9.0, schema: schemas/v1.10.0.json, deprecated: true}\n"),
        ("orders.lookup/schemas/v1.0.0.json", V1),
        ("orders.lookup/schemas/v1.10.0.json", V2),
        ("orders.lookup/schemas/v9.json", V2),
        ("orders.lookup/release-policy.yaml", "burn_in: {tier: T1}\n"),
        ("orders.lookup/owner.yaml", "owner: order-platform\napprovers: [a, b]\n"),
    ])).unwrap();
    let tool = registry.tool("orders.lookup").unwrap();
    assert_eq!((tool.risk_level, tool.side_effect), (RiskLevel::Low, SideEffect::Read));
    assert_eq!(tool.owner.as_deref(), Some("order-platform"));
    assert_eq!(tool.release_policy.as_deref(), Some("burn_in: {tier: T1}\n"));
    let order: Vec<&str> = tool.versions.iter().map(|v| v.version.as_str()).collect();
    assert_eq!(order, ["1.0.0", "1.9.0", "1.10.0"]);
    for id in ["orders.lookup@1.0.0", "order_tool.v1", "orders.lookup.v1.0.0"] {
        assert_eq!(registry.contract(id).unwrap().id, "orders.lookup@1.0.0", "{id}");
    }
    assert_snapshot!(registry.resolve("orders.lookup.v1").unwrap_err(), @"registry: `orders.lookup.v1` fits several contracts: orders.lookup@1.0.0, orders.lookup@1.9.0, orders.lookup@1.10.0. Say which one.");
    assert_snapshot!(registry.resolve("orders.lokup@1.0.0").unwrap_err(), @"registry: no contract `orders.lokup@1.0.0`. Perhaps `orders.lookup@1.0.0` was meant.");
    assert_snapshot!(registry.resolve("orders.lookup").unwrap_err(), @"registry: no contract `orders.lookup`. It is a tool; its contracts are orders.lookup@1.0.0, orders.lookup@1.9.0, orders.lookup@1.10.0.");
    assert_snapshot!(registry.notes().join("\n"), @"orders.lookup/schemas/v9.json is in no `versions` of orders.lookup/tool.yaml and is not read");
}

#[test]
fn missing_facts_are_the_strictest_and_versions_follow_the_files() {
    let registry = Registry::read(&files(&[
        ("t/tool.yaml", "runtime: http\n"),
        ("t/schemas/v1.json", V1),
        ("t/schemas/v2.json", V2),
    ]))
    .unwrap();
    let tool = registry.tool("t").unwrap();
    assert_eq!((tool.risk_level, tool.side_effect), (RiskLevel::Critical, SideEffect::Send));
    assert_eq!(registry.contract("t.v1").unwrap().id, "t@1");
    assert_eq!(tool.versions.len(), 2);
}

#[test]
fn the_flat_entry_of_the_article() {
    let flat = "tool_id: refund.create_request\nversion: 2.1.0\nowner: payment-platform\nruntime: internal-http\n\
        schema_file: schemas/refund.create_request.v2.1.0.json\nchangelog: docs/tools/refund.create_request/changelog.md\n\
        compatibility:\n  compatible_with:\n    - 2.0.x\n  deprecated_versions:\n    - 1.x\nrisk_level: high\n";
    // In the registry's root, and inside the tool's folder.
    for (yaml, schema) in [
        ("refund.yaml", "schemas/refund.create_request.v2.1.0.json"),
        (
            "refund.create_request/tool.yaml",
            "refund.create_request/schemas/refund.create_request.v2.1.0.json",
        ),
    ] {
        let registry =
            Registry::read(&files(&[(yaml, flat), (schema, V1)])).unwrap_or_else(|e| panic!("{e}"));
        let tool = registry.tool("refund.create_request").unwrap();
        assert_eq!(tool.versions[0].version, "2.1.0");
        assert_eq!(tool.compatibility.compatible_with, ["2.0.x"]);
        assert_eq!(tool.owner.as_deref(), Some("payment-platform"));
        assert_eq!(registry.contract("refund.create_request.v2").unwrap().id, "refund.create_request@2.1.0");
    }
}

#[test]
fn two_flat_entries_of_one_tool_are_two_versions_and_may_not_disagree() {
    let one = "tool_id: t\nversion: 1.0.0\nschema_file: a.json\nrisk_level: low\n";
    let two = "tool_id: t\nversion: 2.0.0\nschema_file: b.json\nrisk_level: low\ncompatibility: {deprecated_versions: [1.x]}\n";
    let registry =
        Registry::read(&files(&[("a.yaml", one), ("b.yaml", two), ("a.json", V1), ("b.json", V2)])).unwrap();
    let tool = registry.tool("t").unwrap();
    assert_eq!(tool.versions.iter().map(|v| v.deprecated).collect::<Vec<_>>(), [true, false]);
    let two = two.replace("risk_level: low", "risk_level: high");
    assert_snapshot!(problems(&[("a.yaml", one), ("b.yaml", &two), ("a.json", V1), ("b.json", V2)]), @"b.yaml:4: `risk_level` contradicts a.yaml:4. Keep the fact in one of the two places.");
}

#[test]
fn every_problem_names_its_place_and_the_next_step() {
    assert_snapshot!(problems(&[
        ("a/tool.yaml", "tool_id: a\nrisk_levl: low\n"),
        ("b/tool.yaml", "tool_id: other\n"),
        ("c/tool.yaml", "tool_id: c\nside_effect: raed\n"),
        ("d/tool.yaml", "tool_id: d\nowner: x\nversions: [{version: '1'}]\n"),
        ("d/owner.yaml", "owner: y\n"),
        ("d/schemas/v1.json", V1),
        ("e/tool.yaml", "versions:\n  - version: '1'\n    schema: ../d/schemas/v1.json\n  - version: '2'\n    schema: schemas/v2.json\n  - version: 1/2\n"),
        ("f/tool.yaml", "versions:\n  - version: '1'\n    schema: v.json\n  - version: '1'\n    schema: w.json\n"),
        ("f/v.json", V1),
        ("f/w.json", V2),
        ("g/schemas/v1.json", V1),
        ("h/tool.yaml", "tool_id: h\ntool_id: h\n"),
        ("i/tool.yaml", "versions: []\n"),
        ("j/tool.yaml", "versions: [{version: '1', source: mpc}]\n"),
        ("j/schemas/v1.json", V1),
        ("k/tool.yaml", "tool_id: k\n"),
        ("k/schemas/v1.json", r#"{"inputSchema": {"type": "object"}}"#),
        ("l.yaml", "tool_id: ../x\nversion: '1'\nschema_file: a.json\n"),
        ("m/tool.yaml", "tool_id: [\n"),
        ("n/tool.yaml", "versions: [{version: '1', deprecated: false}]\ncompatibility: {deprecated_versions: ['*']}\n"),
        ("n/schemas/v1.json", V1),
        (LOCK_FILE, "a@1 sha256:xyz\n"),
    ]), @r#"
    a/tool.yaml:2:1: unknown key `risk_levl`. Perhaps `risk_level` was meant; known are tool_id, risk_level, side_effect, runtime, owner, domains, consumers, errors, versions, version, schema_file, changelog, compatibility, lint.
    b/tool.yaml:1: `tool_id` is `other` but the folder is `b`. Rename one of the two: a tool's folder has its id.
    c/tool.yaml:2:14: unknown value `raed`. Known are read, write, send.
    d/owner.yaml:1: `owner` contradicts d/tool.yaml:2. Keep the fact in one of the two places.
    e/tool.yaml:3: the schema file `../d/schemas/v1.json` of version 1 is no path inside the registry. Write it relative to this file, with `/` and without `..`.
    e/tool.yaml:5: the schema file `schemas/v2.json` of version 2 does not exist. Restore the file or correct the path.
    e/tool.yaml:6: `1/2` cannot be a version. Write for instance 2.1.0: letters, digits, `.`, `-`, `+`, beginning with a letter or digit.
    f/tool.yaml:4: version 1 is also stated at f/tool.yaml:2. Keep one entry for each version.
    h/tool.yaml:2:1: key `tool_id` stands here twice. Remove one.
    j/tool.yaml:1: unknown source `mpc`. Known are mcp, openai_chat, openai_responses, anthropic, gemini, neutral, json_schema.
    l.yaml:1: `../x` cannot be a tool id. Use letters, digits, `.`, `_` and `-`, at most 128, and no two dots in a row.
    m/tool.yaml:1:10: not the YAML that is expected: expected string scalar at line 1, column 10. Correct that line.
    g/: there are schemas here but no tool.yaml. Write g/tool.yaml, or use `lastcall contract add`.
    i/tool.yaml: tool `i` has no version. Add one: `lastcall contract add FILE --tool-id i --version 1.0.0`.
    k/schemas/v1.json: a tool without a name. Add `"name"`: what models call it.
    n/tool.yaml:1: version 1 is `deprecated: false`, but `deprecated_versions` covers it. Correct one of the two.
    registry.lock:1: `a@1 sha256:xyz` is not `ID sha256:…`. Restore the file from version control; after a merge keep both sides' lines.
    "#);
}

#[test]
fn add_freeze_change_error() {
    let mut files = RegistryFiles::new();
    let base = Request { file: "in.json", text: V1, tool_id: Some("orders.lookup"), ..Request::default() };
    let first =
        Request { side_effect: Some(SideEffect::Read), risk_level: Some(RiskLevel::Low), ..base.clone() };
    assert_eq!(apply(&mut files, &first), "orders.lookup@1.0.0");
    assert_eq!(files["orders.lookup/schemas/v1.0.0.json"], V1);
    // The same again writes nothing.
    let again = Registry::plan_addition(&files, &Request { version: Some("1.0.0"), ..base.clone() }).unwrap();
    assert!(again.writes.is_empty());
    assert_snapshot!(Registry::plan_addition(&files, &base).unwrap_err(), @"in.json: `orders.lookup` is in the registry already, newest version 1.0.0. Say which version this is: `--version X.Y.Z`.");

    let registry = Registry::read_checked(&files).unwrap();
    let (lock, new) = registry.freeze(&["orders.lookup@1.0.0"]).unwrap();
    assert_eq!(new, ["orders.lookup@1.0.0"]);
    files.insert(LOCK_FILE.to_owned(), lock.to_text());
    assert!(Registry::read_checked(&files).unwrap().drift().is_empty());

    let changed = Request { text: V2, version: Some("1.0.0"), ..base.clone() };
    assert_snapshot!(Registry::plan_addition(&files, &changed).unwrap_err(), @"orders.lookup/schemas/v1.0.0.json: orders.lookup@1.0.0 is frozen as sha256:46efc0c92f0306c3115cdf7c935593cb31c6b3ffbbbba0125c88b8c96ff2ebc4 and this definition is sha256:1ffc5d52afc4af5ee0b2471f74f7f4dbb3938ac1a46c80f1cc33da6c683c1081. Publish it as a new version: `--version NEW`.");
    let other_risk =
        Request { text: V2, version: Some("2.0.0"), risk_level: Some(RiskLevel::High), ..base.clone() };
    assert_snapshot!(Registry::plan_addition(&files, &other_risk).unwrap_err(), @"orders.lookup/tool.yaml: `risk_level` is `low` here, and `high` was asked for. Change the file if the fact has changed.");

    // Spelling alone is no change; a changed type is.
    let spelled = V1.replace(": ", ":   ");
    files.insert("orders.lookup/schemas/v1.0.0.json".to_owned(), spelled);
    Registry::read_checked(&files).unwrap();
    files.insert("orders.lookup/schemas/v1.0.0.json".to_owned(), V2.to_owned());
    assert_snapshot!(Registry::read_checked(&files).unwrap_err(), @"orders.lookup/schemas/v1.0.0.json: contract orders.lookup@1.0.0 is frozen as sha256:46efc0c92f0306c3115cdf7c935593cb31c6b3ffbbbba0125c88b8c96ff2ebc4 but this file is now sha256:1ffc5d52afc4af5ee0b2471f74f7f4dbb3938ac1a46c80f1cc33da6c683c1081. Restore the file, and publish the change as a new version: `lastcall contract add FILE --version NEW`.");
    assert!(registry.freeze(&["gone@1"]).is_err());
    let drifted = Registry::read(&files).unwrap();
    assert!(drifted.freeze(&[]).is_err(), "freezing goes over no drift");

    // A frozen contract that is gone.
    files.insert("orders.lookup/schemas/v1.0.0.json".to_owned(), V1.to_owned());
    let version = Request { text: V2, version: Some("2.0.0"), ..base };
    assert_eq!(apply(&mut files, &version), "orders.lookup@2.0.0");
    files.remove("orders.lookup/schemas/v1.0.0.json");
    let tool = files["orders.lookup/tool.yaml"].replace("1.0.0", "2.0.0");
    let only_second = tool.rsplit_once("  - version").map(|(head, _)| head.to_owned()).unwrap();
    files.insert("orders.lookup/tool.yaml".to_owned(), only_second);
    assert_snapshot!(Registry::read_checked(&files).unwrap_err(), @"registry.lock: contract orders.lookup@1.0.0 is frozen as sha256:46efc0c92f0306c3115cdf7c935593cb31c6b3ffbbbba0125c88b8c96ff2ebc4 but the registry no longer has it. Restore its file and its entry in `versions`; to stop using it, mark it `deprecated: true`.");
}

#[test]
fn adding_keeps_comments_and_the_form_of_the_list() {
    for tool in [
        "# mine\nversions:\n- version: 1.0.0 # first\n\n# after\nruntime: http\n",
        "versions:\n    -   version: 1.0.0\n        aliases: [x.v1]\n\n",
        "runtime: http # no list\n",
        "---\n# mine\nversions:\n  - {version: 1.0.0}",
    ] {
        let mut files = files(&[("t/tool.yaml", tool), ("t/schemas/v1.0.0.json", V1)]);
        let request = Request {
            file: "x",
            text: V2,
            tool_id: Some("t"),
            version: Some("1.1.0"),
            side_effect: Some(SideEffect::Read),
            ..Request::default()
        };
        apply(&mut files, &request);
        let after = &files["t/tool.yaml"];
        for line in tool.lines() {
            assert!(after.contains(line), "{line:?} was lost:\n{after}");
        }
        let registry = Registry::read(&files).unwrap();
        assert_eq!(registry.tool("t").unwrap().versions.len(), 2, "{after}");
        assert_eq!(registry.tool("t").unwrap().side_effect, SideEffect::Read);
    }
    let files = files(&[("t/tool.yaml", "versions: [{version: 1.0.0}]\n"), ("t/schemas/v1.0.0.json", V1)]);
    let request =
        Request { file: "x", text: V2, tool_id: Some("t"), version: Some("1.1.0"), ..Request::default() };
    assert_snapshot!(Registry::plan_addition(&files, &request).unwrap_err(), @r#"t/tool.yaml: `versions` is not written as a list with one `- ` a version. Write the file t/schemas/v1.1.0.json and add `{version: "1.1.0", schema: schemas/v1.1.0.json, source: mcp}` there by hand."#);
}

#[test]
fn adding_one_tool_of_a_list_keeps_its_exact_text() {
    let list =
        format!("{{\"tools\": [ {{\"name\":\"a\",\"inputSchema\":{{\"type\":\"object\"}}}} ,\n {V1} ]}}");
    let mut files = RegistryFiles::new();
    let request = Request { file: "list", text: &list, name: Some("lookup_order"), ..Request::default() };
    assert_eq!(apply(&mut files, &request), "lookup_order@1.0.0");
    assert_eq!(files["lookup_order/schemas/v1.0.0.json"], V1);
    let bare = Request {
        file: "s",
        text: r#"{"type":"object"}"#,
        name: Some("plain"),
        source: Some(Source::JsonSchema),
        ..Request::default()
    };
    assert_eq!(apply(&mut files, &bare), "plain@1.0.0");
    assert_eq!(Registry::read(&files).unwrap().contract("plain@1.0.0").unwrap().definition.name, "plain");
}

#[test]
fn the_examples_are_whole_and_frozen() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agent-tools");
    let mut files = RegistryFiles::new();
    let mut stack = vec![root.clone()];
    while let Some(folder) = stack.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                stack.push(path);
            } else {
                let relative = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
                files.insert(relative, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let registry = Registry::read_checked(&files).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(registry.contracts().count(), 6);
    assert!(registry.contracts().all(|c| registry.lock().get(&c.id) == Some(&c.digest)), "all frozen");
    assert_eq!(files[LOCK_FILE], registry.lock().to_text(), "the lock is what `freeze` writes");
    assert!(registry.notes().is_empty());
    for tool in registry.tools() {
        assert!(tool.stated == (true, true) && tool.release_policy.is_some() && tool.owner.is_some());
    }
    assert_eq!(registry.contract("refund_tool.v2").unwrap().id, "refund.create_request@2.0.0");
}

#[test]
fn names_cannot_leave_their_folder() {
    for bad in [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "a..b",
        ".a",
        "a.",
        "C:x",
        "a b",
        "a@1",
        "ä",
        "a\0",
        "toolsets",
        &"a".repeat(129),
    ] {
        assert!(!is_tool_id(bad), "{bad:?}");
        let request = Request { file: "x", text: V1, tool_id: Some(bad), ..Request::default() };
        assert!(Registry::plan_addition(&RegistryFiles::new(), &request).is_err(), "{bad:?}");
    }
    for bad in ["", "..", "1/2", "-1", "1..2", "1@2"] {
        assert!(!is_version(bad), "{bad:?}");
        let request = Request { file: "x", text: V1, version: Some(bad), ..Request::default() };
        assert!(Registry::plan_addition(&RegistryFiles::new(), &request).is_err(), "{bad:?}");
    }
    assert!(is_tool_id("refund.create_request") && is_version("2.1.0-rc.1+b5"));
    assert!(
        wants_file("contracts/tool.yaml")
            && !wants_file("t/contracts/golden/a.yaml")
            && !wants_file(".git/config.json")
    );
}

#[test]
fn version_patterns_and_order() {
    for (pattern, version, fits) in [
        ("2.0.x", "2.0.7", true),
        ("2.0.x", "2.1.0", false),
        ("1.x", "1.9.9", true),
        ("1.x", "10.0.0", false),
        ("*", "3", true),
        ("2.1.0", "2.1.0", true),
        ("2.1", "2.1.0", false),
    ] {
        assert_eq!(version_fits(pattern, version), fits, "{pattern} {version}");
    }
    let sorted = ["1.0.0-rc.1", "1.0.0-rc.2", "1.0.0", "1.2.0", "1.10.0", "2.0.0"];
    let mut shuffled = ["2.0.0", "1.10.0", "1.0.0", "1.2.0", "1.0.0-rc.2", "1.0.0-rc.1"];
    shuffled.sort_by(|a, b| version_order(a, b));
    assert_eq!(shuffled, sorted);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn reading_is_total(text in "(?s).{0,200}", path in "[a-z./]{1,20}") {
        let _ = Registry::read(&files(&[("t/tool.yaml", &text), (LOCK_FILE, &text), (&path, &text), ("t/schemas/v1.json", &text)]));
    }

    #[test]
    fn order_of_versions_is_total(a in "[0-9a-z.+-]{1,8}", b in "[0-9a-z.+-]{1,8}", c in "[0-9a-z.+-]{1,8}") {
        use std::cmp::Ordering;
        prop_assert_eq!(version_order(&a, &b), version_order(&b, &a).reverse());
        if version_order(&a, &b) != Ordering::Greater && version_order(&b, &c) != Ordering::Greater {
            prop_assert_ne!(version_order(&a, &c), Ordering::Greater);
        }
    }
}
