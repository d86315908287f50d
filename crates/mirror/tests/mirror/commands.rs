//! Commands: long-lived processes, one JSON line in, one out.

use std::path::{Path, PathBuf};

use lastcall_event::Status;
use lastcall_mirror::Mirror;
use serde_json::json;
use tempfile::TempDir;

use crate::common::*;

/// A command that says its number of calls and its process; each start and each call leaves a line in `log`.
const HEAD: &str = r#"
import json, os, sys, time
log = open(sys.argv[1], "a")
log.write("start\n"); log.flush()
def call(line):
    log.write("call\n"); log.flush()
    return json.loads(line)
def say(answer):
    sys.stdout.write(answer if isinstance(answer, str) else json.dumps(answer)); sys.stdout.write("\n"); sys.stdout.flush()
"#;
const PLAIN: &str = r#"
for line in sys.stdin:
    ask = call(line)
    say({"status": "ok", "result": {"total": 7, "pid": os.getpid(), "mode": ask["mode"]}, "call_id": ask["call_id"]})
"#;

struct Script {
    folder: TempDir,
}

impl Script {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tool.py"), format!("{HEAD}{text}")).unwrap();
        Self { folder }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn count(&self, what: &str) -> usize {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        log.lines().filter(|line| *line == what).count()
    }

    fn mirror(&self, tool: &str, suppression: &str, defaults: &str) -> Mirror {
        let script = self.folder.path().join("tool.py");
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let argv = json!(["python3", text(&script), text(&self.log())]);
        let endpoint = format!("suppression = \"{suppression}\", command = {argv}");
        mirror(&format!("[defaults]\n{defaults}\n{}", one(tool, &endpoint)))
    }
}

#[tokio::test]
async fn a_process_answers_one_call_after_the_other() {
    let script = Script::new(PLAIN);
    let mirror = script.mirror("t.read", "replica", "concurrency = 1");
    let mut results = Vec::new();
    for _ in 0..20 {
        let answer = answer(&mirror, "t.read").await;
        assert_eq!(told(&answer), "ok - replica");
        results.push(answer.result.unwrap());
    }
    results.dedup();
    assert_eq!(results.len(), 1, "one process: {results:?}");
    assert_eq!((script.count("start"), script.count("call")), (1, 20));
}

#[tokio::test]
async fn no_more_processes_than_calls_at_once() {
    let script =
        Script::new("for line in sys.stdin:\n    call(line); time.sleep(0.02); say({'status': 'ok'})\n");
    let mirror = script.mirror("t.read", "replica", "concurrency = 3");
    let calls: Vec<_> = (0..30).map(|_| answer(&mirror, "t.read")).collect();
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.status == Status::Ok));
    assert!(script.count("start") <= 3, "{}", script.count("start"));
    assert_eq!(script.count("call"), 30);
}

#[tokio::test]
async fn a_command_offers_the_dry_run_in_its_first_line_or_gets_no_call() {
    let offering = Script::new(&format!("say({{'lastcall': 1, 'modes': ['dry_run']}})\n{PLAIN}"));
    let mirror = offering.mirror("t.write", "dry_run", "");
    for _ in 0..5 {
        assert_eq!(told(&answer(&mirror, "t.write").await), "ok - dry_run");
    }
    // an offer does no harm where none is needed
    assert_eq!(told(&answer(&offering.mirror("t.write", "sandbox", ""), "t.write").await), "ok - sandbox");
    for first in [
        "say({'lastcall': 1, 'modes': ['sandbox']})",
        "say('hello')",
        "say({'status': 'ok'})",
        "say('x' * 100000)",
    ] {
        let script = Script::new(&format!("{first}\n{PLAIN}"));
        let mirror = script.mirror("t.write", "dry_run", "");
        for _ in 0..3 {
            let answer = answer(&mirror, "t.write").await;
            assert_eq!(told(&answer), "unavailable dry_run_not_offered not_executed", "{first}");
        }
        assert_eq!(script.count("call"), 0, "{first}");
    }
    // silent: it waits for a call that does not come
    let script = Script::new(PLAIN);
    let mirror = script.mirror("t.write", "dry_run", "timeout = \"700ms\"");
    assert_eq!(answer(&mirror, "t.write").await.status, Status::TimedOut);
    assert_eq!(script.count("call"), 0);
}

#[tokio::test]
async fn whatever_a_command_does_wrong_costs_its_process_and_nothing_else() {
    for (text, told_of) in [
        ("for line in sys.stdin:\n    call(line); say('garbage')\n", "unavailable not_an_answer replica"),
        (
            "for line in sys.stdin:\n    call(line); say('x' * 3000000)\n",
            "unavailable answer_too_large replica",
        ),
        ("while True: sys.stdout.write('x' * 65536)\n", "unavailable answer_too_large replica"),
        ("for line in sys.stdin:\n    call(line); sys.exit(3)\n", "unavailable process replica"),
        ("sys.exit(1)\n", "unavailable process replica"),
        ("for line in sys.stdin:\n    call(line); time.sleep(60)\n", "timed_out timed_out replica"),
        (
            "for line in sys.stdin:\n    call(line); say({'status': 'ok', 'call_id': 'other'})\n",
            "unavailable not_an_answer replica",
        ),
    ] {
        let script = Script::new(text);
        let timeout = if told_of.starts_with("timed_out") { "2s" } else { "60s" };
        let mirror = script.mirror("t.read", "replica", &format!("timeout = \"{timeout}\""));
        assert_eq!(told(&answer(&mirror, "t.read").await), told_of, "{text}");
    }
    let nowhere = mirror(&one("t.read", "suppression = \"replica\", command = [\"/no/such/program\"]"));
    assert_eq!(told(&answer(&nowhere, "t.read").await), "unavailable process replica");
}

/// Two lines for one call: the second must not become the answer to the next.
#[tokio::test]
async fn a_line_too_many_is_no_answer_to_the_next_call() {
    let script = Script::new(
        "for line in sys.stdin:\n    ask = call(line); say({'status': 'ok', 'result': ask['call_id']}); say({'status': 'ok', 'result': 'stale'})\n",
    );
    let mirror = script.mirror("t.read", "replica", "concurrency = 1");
    for n in 0..5 {
        let id = format!("c{n}");
        let text = record("t.read", &id, &json!({}));
        let answer = mirror.replay(&call(&text)).await.candidates.remove(0);
        if answer.status == Status::Ok {
            assert_eq!(answer.result, Some(format!("\"{id}\"")));
        }
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    }
    assert!(script.count("start") > 1);
}

#[tokio::test]
async fn a_child_sees_what_the_settings_give_it_and_no_more() {
    let script = Script::new(
        "for line in sys.stdin:\n    call(line); say({'status': 'ok', 'result': sorted(os.environ)})\n",
    );
    let path = script.folder.path().join("tool.py");
    let argv = json!(["python3", path.to_str().unwrap(), script.log().to_str().unwrap()]);
    let mirror = mirror(&one(
        "t.read",
        &format!("suppression = \"replica\", command = {argv}, env = {{KEY = \"$TOKEN\"}}"),
    ));
    let names = answer(&mirror, "t.read").await.result.unwrap();
    assert!(names.contains("\"KEY\"") && names.contains("\"PATH\""), "{names}");
    assert!(!names.contains("CARGO"), "{names}");
    assert!(!format!("{mirror:?}").contains("s3cret"));
}

#[tokio::test]
async fn what_a_command_started_ends_with_it() {
    let script = Script::new(
        "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\nlog.write('pid %d\\n' % child.pid); log.flush()\n\
         for line in sys.stdin:\n    call(line); time.sleep(60)\n",
    );
    let mirror = script.mirror("t.read", "replica", "timeout = \"8s\"");
    assert_eq!(answer(&mirror, "t.read").await.status, Status::TimedOut);
    let log = std::fs::read_to_string(script.log()).unwrap();
    let pid = log.lines().find_map(|line| line.strip_prefix("pid ")).unwrap().to_owned();
    let gone = || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    for _ in 0..100 {
        if gone() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the child's child {pid} lives");
}
