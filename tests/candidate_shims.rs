//! The shims of `examples/candidate`: they keep to the protocol, whatever comes, and run nothing that they were not asked for
//! in a mode that they implement.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shim {
    Python,
    Node,
}

/// A candidate that does what its arguments say.
struct Candidate {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: TempDir,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The shims that this machine can run.
fn shims() -> Vec<Shim> {
    [(Shim::Python, "python3"), (Shim::Node, "node")]
        .into_iter()
        .filter(|(shim, program)| {
            let there = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
            if !there {
                let required = std::env::var("LASTCALL_SERVICES").is_ok_and(|v| v == "required");
                assert!(!required, "{program} is not here");
                eprintln!("SKIPPED: {shim:?}: {program} is not here");
            }
            there
        })
        .map(|(shim, _)| shim)
        .collect()
}

fn command(shim: Shim) -> Command {
    let fixtures = root().join("tests/fixtures/candidates");
    let shims = root().join("examples/candidate");
    let mut command = match shim {
        Shim::Python => Command::new("python3"),
        Shim::Node => Command::new("node"),
    };
    match shim {
        Shim::Python => {
            command.arg("-B").arg(fixtures.join("odd.py")).env("PYTHONPATH", shims.join("python"))
        }
        Shim::Node => {
            command.arg(fixtures.join("odd.mjs")).env("SHIM", shims.join("typescript/candidate.mjs"))
        }
    };
    command
}

impl Candidate {
    fn start(shim: Shim, args: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let effects = folder.path().join("effects");
        std::fs::write(&effects, "").unwrap();
        let mut child = command(shim)
            .args(args)
            .env("EFFECTS", effects)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output), folder }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// How often the tool was run.
    fn effects(&self) -> u64 {
        std::fs::metadata(self.folder.path().join("effects")).unwrap().len()
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a tool did, and what its answer has to be.
fn behaviours(shim: Shim) -> Vec<(Value, Value)> {
    let (broken, endless) = match shim {
        Shim::Python => ("RuntimeError", "ValueError"),
        Shim::Node => ("SyntaxError", "TypeError"),
    };
    let failed = |class: &str| json!({"status": "platform_error", "error_class": class});
    vec![
        (json!({"do": "mode"}), json!({"status": "ok", "result": "replica"})),
        (json!({"do": "echo", "value": "\u{1f600}\n"}), json!({"status": "ok", "result": "\u{1f600}\n"})),
        (json!({"do": "print"}), json!({"status": "ok", "result": "printed"})),
        (
            json!({"do": "answer"}),
            json!({"status": "ok", "result": 7, "arguments": {"used": true}, "partial": true}),
        ),
        (json!({"do": "none"}), json!({"status": "ok"})),
        (json!(null), json!({"status": "ok", "result": null})),
        (
            json!({"do": "invalid"}),
            json!({"status": "invalid_arguments", "error_class": "InvalidArguments", "error_code": "WHY"}),
        ),
        (json!({"do": "business"}), json!({"status": "business_error", "error_class": "BusinessError"})),
        (
            json!({"do": "limited"}),
            json!({"status": "rate_limited", "error_class": "ToolError", "error_code": "7"}),
        ),
        (json!({"do": "timeout"}), json!({"status": "timeout", "error_class": "TimeoutError"})),
        (json!({"do": "broken"}), failed(broken)),
        (json!({"do": "unwritable"}), failed("TypeError")),
        (json!({"do": "endless"}), failed(endless)),
    ]
}

fn call(arguments: &Value, mode: &str) -> Vec<u8> {
    json!({"arguments": arguments, "mode": mode, "tool": "odd", "contract": "odd@2", "call_id": "c"})
        .to_string()
        .into_bytes()
}

/// What is no call, and how HTTP refuses it.
fn hostile() -> Vec<(&'static str, Vec<u8>, u16)> {
    let mut large = b"{\"mode\":\"replica\",\"arguments\":\"".to_vec();
    large.resize(10 << 20, b'x');
    vec![
        ("text", b"production".to_vec(), 400),
        ("half of it", b"{\"arguments\": {}, \"mode\": \"repl".to_vec(), 400),
        ("no object", b"[1]".to_vec(), 400),
        ("null", b"null".to_vec(), 400),
        ("no UTF-8", b"{\"arguments\": \"\xff\xfe\", \"mode\": \"replica\"}".to_vec(), 400),
        ("no arguments", b"{\"mode\": \"replica\"}".to_vec(), 400),
        ("no mode", b"{\"arguments\": {}}".to_vec(), 400),
        ("a mode that is none", b"{\"arguments\": {}, \"mode\": {\"replica\": 1}}".to_vec(), 400),
        ("an unknown mode", call(&json!({}), "production"), 422),
        ("an empty mode", call(&json!({}), ""), 422),
        ("a mode that it does not implement", call(&json!({}), "sandbox"), 422),
        ("a mode of every object", call(&json!({}), "constructor"), 422),
        ("10 MiB", large, 413),
    ]
}

fn http(address: &str, request: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // Whoever refuses early closes early: what could not be sent or read is no answer.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    let code = text.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let at = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    Some((code, answer.split_off(at + 4)))
}

fn post(address: &str, body: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    http(address, &request)
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(bytes)))
}

/// An answer to the call `c`, which it has to name.
fn answer_of(bytes: &[u8]) -> Value {
    let mut answer = json_of(bytes);
    if answer.get("status").is_some() {
        assert_eq!(answer.as_object_mut().unwrap().remove("call_id"), Some(json!("c")), "{answer}");
    }
    answer
}

#[test]
fn http_candidates_keep_to_the_protocol() {
    for shim in shims() {
        let mut candidate = Candidate::start(shim, &["--http", "0"]);
        let line = candidate.line();
        let address = line.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        let hello = format!("GET /any HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let (code, body) = http(&address, hello.as_bytes()).unwrap();
        assert_eq!((code, json_of(&body)), (200, json!({"lastcall": 1, "modes": ["replica", "dry_run"]})));

        let mut run = 0;
        for (arguments, wanted) in behaviours(shim) {
            let (code, body) = post(&address, &call(&arguments, "replica")).unwrap();
            assert_eq!((code, answer_of(&body)), (200, wanted), "{shim:?}: {arguments}");
            run += 1;
        }
        let (_, body) = post(&address, &call(&json!({"do": "mode"}), "dry_run")).unwrap();
        assert_eq!(json_of(&body)["result"], "dry_run");
        run += 1;
        for (what, body, wanted) in hostile() {
            match post(&address, &body) {
                Some((code, answer)) => {
                    assert_eq!(code, wanted, "{shim:?}: {what}");
                    assert!(
                        serde_json::from_slice::<Value>(&answer).is_err(),
                        "{shim:?}: {what} is answered"
                    );
                }
                None => assert_eq!(wanted, 413, "{shim:?}: {what}: no answer"),
            }
        }
        assert_eq!(candidate.effects(), run, "{shim:?}: what was refused was not run");

        let all: Vec<_> = (0..100)
            .map(|number| {
                let address = address.clone();
                std::thread::spawn(move || {
                    let (code, body) =
                        post(&address, &call(&json!({"do": "echo", "value": number}), "replica")).unwrap();
                    match code {
                        200 => {
                            assert_eq!(answer_of(&body), json!({"status": "ok", "result": number}));
                            1
                        }
                        429 => 0,
                        _ => panic!("{code}"),
                    }
                })
            })
            .collect();
        let answered: u64 = all.into_iter().map(|one| one.join().unwrap()).sum();
        assert!(answered > 0);
        assert_eq!(candidate.effects(), run + answered, "{shim:?}");
        println!(
            "{shim:?} over HTTP: {run} calls, {} hostile ones, 100 at once: {answered} answered",
            hostile().len()
        );
    }
}

#[test]
fn command_candidates_keep_to_the_protocol() {
    for shim in shims() {
        let mut candidate = Candidate::start(shim, &[]);
        assert_eq!(
            json_of(candidate.line().as_bytes()),
            json!({"lastcall": 1, "modes": ["replica", "dry_run"]})
        );
        let mut run = 0;
        let say = |candidate: &mut Candidate, line: &[u8]| {
            candidate.input.write_all(line).unwrap();
            candidate.input.write_all(b"\n").unwrap();
            answer_of(candidate.line().as_bytes())
        };
        for (what, line, _) in hostile() {
            let answer = say(&mut candidate, &line);
            assert!(answer.get("status").is_none(), "{shim:?}: {what}: {answer}");
        }
        assert_eq!(candidate.effects(), 0, "{shim:?}");
        for (arguments, wanted) in behaviours(shim) {
            assert_eq!(say(&mut candidate, &call(&arguments, "replica")), wanted, "{shim:?}: {arguments}");
            run += 1;
        }
        let mut deep = b"{\"mode\":\"replica\",\"call_id\":\"c\",\"arguments\":".to_vec();
        deep.extend(std::iter::repeat_n(b'[', 200_000));
        deep.extend(std::iter::repeat_n(b']', 200_000));
        deep.push(b'}');
        let answer = say(&mut candidate, &deep);
        assert!(answer.get("status").is_none() || answer["status"] == "ok", "{shim:?}: {answer}");
        run += u64::from(answer.get("status").is_some());
        assert_eq!(say(&mut candidate, &call(&json!({"do": "mode"}), "dry_run"))["result"], "dry_run");
        assert_eq!(candidate.effects(), run + 1, "{shim:?}");
    }
}

#[test]
fn a_mode_that_is_none_is_refused_at_the_start() {
    for shim in shims() {
        let done = command(shim).arg("--refuse").env("EFFECTS", "unused").output().unwrap();
        assert!(!done.status.success() && done.stdout.is_empty());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains("production; they are replica, snapshot, dry_run, sandbox"), "{said}");
    }
}
