//! The chapter "Mirror without touching anything", as it stands: its settings, its commands in their order, against a real
//! broker, with the example's agent and the example's candidate. What it shows is what is printed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lastcall_tests::services::broker::Broker;
use lastcall_tests::services::python::environment;
use lastcall_tests::{answer, binary};
use serde_json::Value;

use crate::interceptor::{PYTHON, messages};

struct Candidate(Child);

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The example's candidate, and its address.
fn candidate(root: &Path, program: &str, script: &str) -> (Candidate, String) {
    let mut child = Command::new(program)
        .arg(root.join("examples/candidate").join(script))
        .args(["--http", "0"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Candidate(child), line.trim().to_owned())
}

/// The blocks of a kind (`""` are commands).
fn blocks(page: &str, kind: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut within = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), within) {
            (Some(opened), None) => {
                within = Some(opened == kind);
                blocks.extend((opened == kind).then(String::new));
            }
            (Some(_), Some(_)) => within = None,
            (None, Some(true)) => blocks.last_mut().unwrap().extend([line, "\n"]),
            _ => {}
        }
    }
    blocks
}

#[test]
fn the_chapter_on_the_mirror_runs_as_it_stands() {
    let Some(python) = environment(PYTHON, "the chapter on the mirror is not run") else { return };
    let Some(broker) = Broker::start() else { return };
    for topic in ["tool-calls", "mirrored-calls"] {
        broker.topic(topic, 3, &[]);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap();
    let page = std::fs::read_to_string(root.join("docs/src/mirror.md")).unwrap();
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("examples"), place.path().join("examples")).unwrap();
    let (_candidate, address) = candidate(&root, "python3", "python/example.py");
    let here = |text: &str| {
        text.replace("localhost:9092", &broker.address).replace("http://127.0.0.1:8080/", &address)
    };
    let settings =
        blocks(&page, "toml").into_iter().find(|block| block.starts_with("# mirror.toml")).unwrap();
    std::fs::write(place.path().join("mirror.toml"), here(&settings)).unwrap();

    let (mut printed, mut ran) = (String::new(), Vec::new());
    for line in blocks(&page, "").iter().flat_map(|block| block.lines()) {
        let line = here(line);
        let (program, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let program: PathBuf = match program {
            "lastcall" | "lastcall-mirror" | "lastcall-record" => binary().with_file_name(program),
            "python3" if rest.contains("interceptor") => python.clone(),
            _ => continue,
        };
        let said = answer(
            Command::new(program)
                .args(rest.split_whitespace())
                .current_dir(place.path())
                .env("NO_COLOR", "1")
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .env("PYTHONPATH", root.join("examples/interceptor")),
        );
        let wanted = if rest.starts_with("decide") { 3 } else { 0 };
        assert_eq!(said.code, wanted, "{line}: {}{}", said.out, said.err);
        printed += &format!("{}{}\n", said.out, said.err);
        ran.push(line);
    }
    assert!(ran.len() > 10, "{ran:?}");

    // Ids, times, counts of heartbeats and the partitions of sessions are of each run its own.
    let mut shown = 0;
    for line in blocks(&page, "text").iter().flat_map(|block| block.lines()) {
        let own = [
            "wrote 400 rows",
            "read 406",
            "brokers 127",
            "messages of at most",
            "tool-calls/",
            "2026-12",
            "e.g.",
            "►",
            "agent",
            "│",
            "lastcall",
            "interceptor",
            "topic tool",
            "topic mirrored-calls ─",
        ];
        if line.trim().is_empty() || own.iter().any(|part| line.contains(part)) {
            continue;
        }
        assert!(printed.contains(&here(line)), "the chapter shows what is not printed: {line}\n{printed}");
        shown += 1;
    }
    assert!(shown > 8, "{shown}");
    assert!(printed.contains("wrote 400 rows") && printed.contains(": 400 calls, 0 dead"), "{printed}");

    let rows: Vec<Value> = messages(&broker, "mirrored-calls", 3)
        .iter()
        .map(|(_, bytes)| serde_json::from_slice(bytes).unwrap())
        .collect();
    let calls: Vec<&Value> = rows.iter().filter(|row| row["type"] == "mirrored_call").collect();
    assert_eq!(calls.len(), 400);
    let odd = |row: &&&Value| row["candidates"][0]["result"]["total_cents"].is_string();
    assert_eq!(calls.iter().filter(odd).count(), 127, "the candidate's fault");
    println!("{} commands of the chapter ran; {shown} lines of output are as it shows", ran.len());
}
