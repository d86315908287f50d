//! Commands that write to one registry at the same time, or were killed while they wrote: nothing that was reported is lost.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use lastcall_tests::{Answer, answer, lastcall};
use serde_json::json;

fn definition(name: &str, note: &str) -> String {
    json!({"name": name, "description": note, "inputSchema": {"type": "object"}}).to_string()
}

fn contract(dir: &Path, line: &str) -> Command {
    let mut command = lastcall();
    command.current_dir(dir).arg("contract").args(line.split_whitespace()).args(["--registry", "r"]);
    command
}

fn run(dir: &Path, line: &str) -> Answer {
    answer(&mut contract(dir, line))
}

/// All at once; those that ended with 0.
fn at_once(dir: &Path, lines: &[String]) -> Vec<String> {
    let start = |line: &String| -> Child {
        contract(dir, line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = lines.iter().map(start).collect();
    let done = children.into_iter().map(|child| child.wait_with_output().unwrap());
    done.filter(|done| done.status.success()).map(|done| String::from_utf8(done.stdout).unwrap()).collect()
}

/// Id and digest of every contract of the registry.
fn listed(dir: &Path) -> Vec<(String, String)> {
    let said = run(dir, "list --format json");
    assert_eq!(said.code, 0, "{}", said.err);
    let list: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    list["contracts"].as_array().unwrap().iter().map(|c| (text(&c["id"]), text(&c["digest"]))).collect()
}

/// Every contract that a command reported is there, with the digest that it reported.
fn kept(dir: &Path, reported: &[String]) {
    let listed = listed(dir);
    for line in reported {
        let mut words = line.split_whitespace();
        let (id, digest) = (words.next().unwrap(), words.next().unwrap());
        assert!(listed.iter().any(|(i, d)| i == id && d == digest), "{id} {digest} is lost: {listed:?}");
    }
}

#[test]
fn commands_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // the registry itself begins with them
    let adds: Vec<String> = (0..10)
        .map(|i| {
            std::fs::write(dir.join(format!("t{i}.json")), definition(&format!("t{i}"), "First.")).unwrap();
            format!("add t{i}.json")
        })
        .collect();
    let reported = at_once(dir, &adds);
    assert_eq!(reported.len(), 10);
    kept(dir, &reported);

    let freezes: Vec<String> = (0..10).map(|i| format!("freeze t{i}@1.0.0")).collect();
    assert_eq!(at_once(dir, &freezes).len(), 10);
    let lock = std::fs::read_to_string(dir.join("r/registry.lock")).unwrap();
    assert_eq!(lock.lines().filter(|l| !l.starts_with('#')).count(), 10, "{lock}");

    // versions of one tool
    let versions: Vec<String> = (1..9)
        .map(|i| {
            std::fs::write(dir.join(format!("v{i}.json")), definition("t0", &format!("Version {i}.")))
                .unwrap();
            format!("add v{i}.json --tool-id t0 --version 1.{i}.0")
        })
        .collect();
    let reported = at_once(dir, &versions);
    assert_eq!(reported.len(), 8);
    kept(dir, &reported);

    // one version in several forms: one of them is published
    let same: Vec<String> =
        (1..7).map(|i| format!("add v{i}.json --tool-id t1 --version 2.0.0 --name t0")).collect();
    let reported = at_once(dir, &same);
    assert_eq!(reported.len(), 1, "{reported:?}");
    kept(dir, &reported);

    // corrections
    let corrections: Vec<String> = (1..7).map(|i| format!("correct t2@1.0.0 v{i}.json --name t0")).collect();
    let reported = at_once(dir, &corrections);
    assert!(!reported.is_empty());
    kept(dir, &reported);
    assert_eq!(run(dir, "freeze --all").code, 0);

    let hidden = |dir: &Path| -> Vec<String> {
        let all = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        all.filter(|name| name.starts_with('.')).collect()
    };
    assert_eq!(hidden(&dir.join("r")), Vec::<String>::new(), "the lock leaves nothing");
    // what a writer left that was killed
    std::fs::write(dir.join("r/.registry.lock.4194999"), "half").unwrap();
    std::fs::write(dir.join("r/.registry.lock.bak"), "the user's own").unwrap();
    std::fs::write(dir.join("n.json"), definition("n", "New.")).unwrap();
    assert_eq!(run(dir, "add n.json").code, 0);
    assert_eq!(run(dir, "freeze n@1.0.0").code, 0);
    assert_eq!(hidden(&dir.join("r")), [".registry.lock.bak"]);
}

#[test]
fn a_refused_definition_begins_no_registry() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("broken.json"), "{").unwrap();
    assert_eq!(run(dir.path(), "add broken.json").code, 2);
    assert!(!dir.path().join("r").exists());
}

#[test]
fn what_is_there_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("t.json"), definition("t", "First.")).unwrap();
    std::fs::write(dir.join("u.json"), definition("t", "Second.")).unwrap();
    assert_eq!(run(dir, "add t.json").code, 0);
    // a schema that no version names, of another content
    let orphan = dir.join("r/t/schemas/v1.1.0.json");
    std::fs::write(&orphan, definition("t", "Somebody's.")).unwrap();
    let said = run(dir, "add u.json --version 1.1.0");
    assert!(
        said.code == 2 && said.err.contains("t/schemas/v1.1.0.json: this file is there already"),
        "{}",
        said.err
    );
    assert_eq!(std::fs::read_to_string(&orphan).unwrap(), definition("t", "Somebody's."));
    // the same content is what an interrupted command left
    std::fs::write(&orphan, definition("t", "Second.")).unwrap();
    assert_eq!(run(dir, "add u.json --version 1.1.0").code, 0);

    // line ends stay as they are
    let tool = dir.join("r/t/tool.yaml");
    let crlf = std::fs::read_to_string(&tool).unwrap().replace('\n', "\r\n");
    std::fs::write(&tool, &crlf).unwrap();
    std::fs::write(dir.join("w.json"), definition("t", "Third.")).unwrap();
    let said = run(dir, "correct t@1.1.0 w.json");
    assert_eq!(said.code, 0, "{}", said.err);
    let after = std::fs::read_to_string(&tool).unwrap();
    assert!(after.starts_with(&crlf), "{after:?}");
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_in_a_registry_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::create_dir_all(dir.join("r/t")).unwrap();
    std::fs::write(dir.join("shared.yaml"), "tool_id: t\n").unwrap();
    std::os::unix::fs::symlink("../../shared.yaml", dir.join("r/t/tool.yaml")).unwrap();
    std::fs::write(dir.join("t.json"), definition("t", "First.")).unwrap();
    let said = run(dir, "add t.json");
    assert!(said.code == 2 && said.err.contains("symbolic link"), "{}", said.err);
    assert!(dir.join("r/t/tool.yaml").is_symlink());
    assert_eq!(std::fs::read_to_string(dir.join("shared.yaml")).unwrap(), "tool_id: t\n");
}
