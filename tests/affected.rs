//! `lastcall affected` against git's own list of changed files, and `contract correct`, through the real binary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use lastcall_tests::{Answer, answer, lastcall};
use serde_json::{Value, json};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    /// A registry with three tools, a toolset and cases, in a folder of its own below the repository's root.
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        for tool in ["lookup", "refund", "send"] {
            place.definition("in.json", tool, 100);
            let said = place.run(&format!(
                "contract add in.json --registry reg --tool-id {tool} --side-effect read --risk low"
            ));
            assert_eq!(said.code, 0, "{}", said.err);
        }
        place.file("reg/refund/contracts/golden/whole.yaml", "case_id: whole\n");
        place.file("reg/refund/contracts/regression/old_prompt.yaml", "case_id: old\n");
        place.file("reg/lookup/contracts/golden/found.yaml", "case_id: found\n");
        place.file(
            "reg/toolsets/support.yaml",
            "toolset_id: support-1\ncontracts: [refund@1.0.0, lookup@1.0.0]\n",
        );
        place.file("reg/toolsets/night.yaml", "toolset_id: night-1\ncontracts: {send: 1.0.0}\n");
        place.file("README.md", "not of the registry\n");
        for words in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "first"]] {
            place.git(words);
        }
        place
    }

    fn definition(&self, file: &str, tool: &str, most: u32) {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": most}}});
        self.file(file, &json!({"name": tool, "inputSchema": schema}).to_string());
    }

    fn file(&self, name: &str, content: &str) {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn git(&self, words: &[&str]) -> String {
        let done = Command::new("git")
            .current_dir(self.dir.path())
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
            .args(words)
            .output()
            .expect("git starts");
        assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn run(&self, line: &str) -> Answer {
        answer(lastcall().current_dir(self.dir.path()).args(line.split_whitespace()))
    }

    fn affected(&self, since: &str) -> Value {
        let said = self.run(&format!("affected --since {since} --registry reg --format json"));
        assert_eq!(said.code, 0, "{}", said.err);
        serde_json::from_str(&said.out).unwrap()
    }

    /// Folders of tools with a changed file, by git: the tools that are touched.
    fn touched_by_git(&self) -> BTreeSet<String> {
        self.git(&["add", "-A"]);
        let names = self.git(&["diff", "--cached", "--name-only", "HEAD", "--", "reg"]);
        let folder = |line: &str| line.split('/').nth(1).unwrap().to_owned();
        names.lines().map(folder).filter(|f| f != "toolsets" && f != "registry.lock").collect()
    }
}

fn ids(found: &Value) -> BTreeSet<String> {
    found["tools"].as_array().unwrap().iter().map(|t| t["tool_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_change_touches_what_git_says() {
    let place = Place::new();
    assert_eq!(
        place.run("affected --since HEAD --registry reg").out,
        "Nothing in the registry changed since HEAD.\n"
    );
    place.definition("in.json", "refund", 50);
    let steps: [(&str, &dyn Fn()); 5] = [
        ("a changelog", &|| place.file("reg/send/changelog.md", "# send\n")),
        ("a new version", &|| {
            assert_eq!(
                place.run("contract add in.json --registry reg --tool-id refund --version 1.1.0").code,
                0
            );
        }),
        ("a case", &|| place.file("reg/lookup/contracts/golden/found.yaml", "case_id: other\n")),
        ("a lock", &|| assert_eq!(place.run("contract freeze --all --registry reg").code, 0)),
        ("a file outside", &|| place.file("README.md", "other\n")),
    ];
    for (what, step) in steps {
        step();
        let found = place.affected("HEAD");
        assert_eq!(ids(&found), place.touched_by_git(), "{what}");
    }
    assert_snapshot!(place.run("affected --since HEAD --registry reg").out, @r"
    3 tools touched since HEAD: 3 cases, 1 toolset.

    lookup  changed, but not what it promises
      case       lookup/contracts/golden/found.yaml (changed)

    refund  changed
      contracts  + refund@1.1.0
      see        lastcall diff refund@1.0.0 refund@1.1.0
      toolsets   support-1
      case       refund/contracts/golden/whole.yaml
      case       refund/contracts/regression/old_prompt.yaml
      file       refund/schemas/v1.1.0.json (added)
      file       refund/tool.yaml (changed)

    send  changed, but not what it promises
      file       send/changelog.md (added)

    Toolsets
      support-1 pins refund@1.0.0
    ");

    // the same against a copy of the folder, and against a commit that is not the last one
    let by_commit = place.affected("HEAD");
    place.git(&["worktree", "add", "-q", "copy", "HEAD"]);
    assert_eq!(place.affected("copy/reg")["tools"], by_commit["tools"]);
    place.git(&["worktree", "remove", "copy"]);
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "second"]);
    assert_eq!(place.affected("HEAD~1")["tools"], by_commit["tools"]);
    assert_eq!(ids(&place.affected("HEAD")), BTreeSet::new());
}

#[test]
fn only_what_changed_itself_runs_when_the_promise_stands() {
    let place = Place::new();
    place.file("reg/refund/contracts/golden/whole.yaml", "case_id: whole2\n");
    let found = place.affected("HEAD");
    let tool = &found["tools"][0];
    assert_eq!(
        (tool["promise"].as_bool(), tool["cases"].as_array().unwrap().len()),
        (Some(false), 1),
        "{tool}"
    );
    assert_eq!(found["toolsets"], json!([]), "what is pinned is as it was");
    // a definition that changed in place: every case, and the toolset that pins it
    place.definition("reg/refund/schemas/v1.0.0.json", "refund", 7);
    let found = place.affected("HEAD");
    let tool = &found["tools"][0];
    assert_eq!(tool["contracts_changed"], json!(["refund@1.0.0"]));
    assert_eq!(tool["cases"].as_array().unwrap().len(), 2);
    assert_eq!(found["toolsets"][0]["broken_pins"], json!(["refund@1.0.0"]), "{found}");
    // a tool that is gone
    std::fs::remove_dir_all(place.dir.path().join("reg/send")).unwrap();
    let found = place.affected("HEAD");
    let gone = found["tools"].as_array().unwrap().iter().find(|t| t["tool_id"] == "send").unwrap();
    assert_eq!((&gone["change"], &gone["contracts_removed"]), (&json!("removed"), &json!(["send@1.0.0"])));
    assert!(gone["toolsets"] == json!(["night-1"]), "{gone}");
}

#[test]
fn what_cannot_be_asked() {
    let place = Place::new();
    for (line, code, says) in [
        ("affected --since nowhere --registry reg", 2, "git knows no commit of that name"),
        ("affected --since --registry --registry reg", 2, "--since"),
        ("affected --since HEAD --registry absent", 2, "no such folder"),
        ("affected --registry reg", 2, "--since"),
    ] {
        let said = place.run(line);
        assert_eq!(said.code, code, "{line}: {}", said.err);
        assert!(said.err.contains(says), "{line}: {}", said.err);
    }
    place.file("reg/refund/tool.yaml", "tool_id: [\n");
    assert_eq!(place.run("affected --since HEAD --registry reg").code, 2, "a broken registry is told");
    place.git(&["commit", "-qam", "broken"]);
    place.git(&["checkout", "-q", "HEAD~1", "--", "reg"]);
    let found = place.affected("HEAD");
    assert!(found["notes"][0].as_str().unwrap().contains("does not hold together"), "{found}");
    assert_eq!(ids(&found), BTreeSet::from(["refund".to_owned()]), "files are compared all the same");
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::create_dir(elsewhere.path().join("reg")).unwrap();
    let said = answer(
        lastcall().current_dir(elsewhere.path()).env("GIT_CEILING_DIRECTORIES", elsewhere.path()).args([
            "affected",
            "--since",
            "HEAD",
            "--registry",
            "reg",
        ]),
    );
    assert!(said.code == 2 && said.err.contains("no git repository"), "{}", said.err);
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The case and the toolset that the examples show are what `affected` reads.
#[test]
fn the_examples_have_a_case_and_a_toolset() {
    let place = Place::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/agent-tools");
    let copied =
        Command::new("cp").arg("-r").arg(&examples).arg(place.dir.path().join("agent-tools")).status();
    assert!(copied.expect("cp starts").success());
    let schema = place.dir.path().join("agent-tools/refund.create_request/tool.yaml");
    std::fs::write(&schema, text(&schema).replace("retryable: true", "retryable: false")).unwrap();
    let line = format!("affected --since {} --format json", examples.display());
    let found: Value = serde_json::from_str(&place.run(&line).out).unwrap();
    let tool = &found["tools"][0];
    assert_eq!(tool["tool_id"], "refund.create_request", "{found}");
    assert_eq!(tool["cases"][0]["suite"], "golden", "{found}");
    assert_eq!(tool["toolsets"], json!(["support"]), "{found}");
    let said = place.run(
        "diff agent-tools/toolsets/support.yaml agent-tools/toolsets/support.yaml --registry agent-tools",
    );
    assert!(said.code == 0 && said.out.contains("3 tools"), "{} {}", said.out, said.err);
}

#[test]
fn a_correction_says_what_it_corrects() {
    let place = Place::new();
    let reg = place.dir.path().join("reg");
    assert_eq!(place.run("contract freeze --all --registry reg").code, 0);
    let (lock, before) = (text(&reg.join("registry.lock")), text(&reg.join("refund/schemas/v1.0.0.json")));
    place.definition("fixed.json", "refund", 90);
    let correct = "contract correct refund@1.0.0 fixed.json --registry reg";
    assert_eq!(place.run(&format!("{correct} --dry-run")).code, 0);
    assert!(!reg.join("refund/schemas/v1.0.1.json").exists(), "a dry run writes nothing");
    let said = place.run(correct);
    assert!(said.code == 0 && said.out.starts_with("refund@1.0.1 sha256:"), "{} {}", said.out, said.err);
    assert_eq!(text(&reg.join("refund/schemas/v1.0.1.json")), text(&place.dir.path().join("fixed.json")));
    assert_eq!(text(&reg.join("refund/schemas/v1.0.0.json")), before, "what was published stays");
    assert_eq!(text(&reg.join("registry.lock")), lock);
    assert!(text(&reg.join("refund/tool.yaml")).contains("corrects: \"1.0.0\""));
    let said = place.run(correct);
    assert!(said.code == 0 && said.err.starts_with("there already"), "said once more: {}", said.err);
    let list = place.run("contract list --registry reg").out;
    assert!(list.contains("corrected by refund@1.0.1") && list.contains("corrects refund@1.0.0"), "{list}");
    let show: Value =
        serde_json::from_str(&place.run("contract show refund@1.0.0 --registry reg --format json").out)
            .unwrap();
    assert_eq!((&show["corrected_by"], &show["corrects"]), (&json!("refund@1.0.1"), &Value::Null));

    place.definition("other.json", "refund", 80);
    place.definition("same.json", "lookup", 100);
    for (line, says) in [
        ("contract correct lookup@1.0.0 same.json --registry reg", "nothing to correct"),
        ("contract correct refund@1.0.1 other.json --version 1.0.0 --registry reg", "not newer"),
        ("contract correct refnd@1.0.0 other.json --registry reg", "Perhaps `refund@1.0.0` was meant"),
        ("contract correct refund@1.0.0 absent.json --registry reg", "absent.json"),
    ] {
        let said = place.run(line);
        assert!(said.code == 2 && said.err.contains(says), "{line}: {} {}", said.code, said.err);
    }
    // corrections are a chain: a second one takes the next free version and corrects the first
    let said = place.run("contract correct refund@1.0.0 other.json --registry reg");
    assert!(said.code == 0 && said.out.starts_with("refund@1.0.2 sha256:"), "{} {}", said.out, said.err);
    assert!(said.err.contains("refund@1.0.0 is corrected by refund@1.0.1 already"), "{}", said.err);
    let list = place.run("contract list --registry reg").out;
    assert!(list.contains("corrected by refund@1.0.2") && list.contains("corrects refund@1.0.1"), "{list}");
    for line in ["refund@1.0.0 other.json", "refund@1.0.0 fixed.json", "refund@1.0.1 other.json"] {
        let said = place.run(&format!("contract correct {line} --registry reg"));
        assert!(said.code == 0 && said.err.contains("there already"), "{line} once more: {}", said.err);
    }
    place.definition("third.json", "refund", 70);
    let said = place.run("contract correct refund@1.0.0 third.json --version 1.4.0 --registry reg");
    assert!(said.code == 0 && said.out.starts_with("refund@1.4.0 sha256:"), "{} {}", said.out, said.err);
    // by hand, wrongly
    for (wrong, says) in [("9.9.9", "which this tool does not have"), ("1.0.2", "which is not older")] {
        let path = reg.join("refund/tool.yaml");
        let good = text(&path);
        std::fs::write(&path, good.replace("corrects: \"1.0.0\"", &format!("corrects: \"{wrong}\"")))
            .unwrap();
        let said = place.run("contract list --registry reg");
        assert!(said.code == 2 && said.err.contains(says) && said.err.contains("tool.yaml:"), "{}", said.err);
        std::fs::write(&path, good).unwrap();
    }
}
