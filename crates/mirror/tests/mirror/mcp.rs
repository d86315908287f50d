//! MCP servers over stdio and streamable HTTP. The servers here speak the protocol by hand, so that they can break it; real
//! ones from npm stand in npm.rs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use lastcall_event::Status;
use lastcall_mirror::Mirror;
use serde_json::{Value, json};

use crate::common::*;

/// A server on standard input and output; `on_call` says what it does with a call.
fn stdio(
    on_call: &str,
    modes: &str,
    tool: &str,
    suppression: &str,
    defaults: &str,
) -> (tempfile::TempDir, Mirror) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.py");
    let text = format!(
        r#"
import json, os, sys, time
log = open(sys.argv[1], "a")
log.write("start\n"); log.flush()
def say(message):
    sys.stdout.write(message if isinstance(message, str) else json.dumps(dict(message, jsonrpc="2.0"))); sys.stdout.write("\n"); sys.stdout.flush()
for line in sys.stdin:
    ask = json.loads(line)
    method, i = ask.get("method"), ask.get("id")
    if method == "initialize":
        say({{"method": "notifications/message", "params": {{"level": "info", "data": "hello"}}}})
        say({{"id": i, "result": {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}, "experimental": {modes}}}, "serverInfo": {{"name": "s", "version": "1"}}}}}})
    elif method == "tools/call":
        log.write("call " + line); log.flush()
        name, arguments = ask["params"]["name"], ask["params"]["arguments"]
        {on_call}
    elif method == "notifications/cancelled":
        log.write("cancelled\n"); log.flush()
    elif method is None:
        log.write("reply " + line); log.flush()
"#
    );
    std::fs::write(&script, text).unwrap();
    let log = folder.path().join("log");
    let argv = json!(["python3", script.to_str().unwrap(), log.to_str().unwrap()]);
    let endpoint = format!("suppression = \"{suppression}\", mcp_command = {argv}");
    let mirror = mirror(&format!("[defaults]\n{defaults}\n{}", one(tool, &endpoint)));
    (folder, mirror)
}

fn log(folder: &tempfile::TempDir) -> String {
    std::fs::read_to_string(folder.path().join("log")).unwrap_or_default()
}

fn lines(folder: &tempfile::TempDir, begin: &str) -> usize {
    log(folder).lines().filter(|line| line.starts_with(begin)).count()
}

const ECHO: &str =
    r#"say('{"jsonrpc":"2.0","id":%d,"result":{"content":[], "structuredContent": {"total": 1.50}}}' % i)"#;

#[tokio::test]
async fn a_server_on_stdio_gets_the_raw_arguments_and_its_result_is_kept() {
    let (folder, mirror) = stdio(ECHO, "{}", "t.read", "replica", "");
    let text = r#"{"type":"tool_call","schema_version":1,"call_id":"c1","ts":"2026-06-01T00:00:00Z","tool_id":"t.read",
        "arguments": {"n": 12345678901234567890123, "id" : 1.00},"outcome":{"status":"ok"}}"#;
    let replayed = mirror.replay(&call(text)).await;
    assert_eq!(told(&replayed.candidates[0]), "ok - replica");
    assert_eq!(
        replayed.candidates[0].result.as_deref(),
        Some(r#"{"content":[], "structuredContent": {"total": 1.50}}"#)
    );
    let seen = log(&folder);
    assert!(
        seen.contains(r#""params":{"name":"t_read","arguments":{"n": 12345678901234567890123, "id" : 1.00},"_meta":{"lastcall.dev/mode":"replica"}}"#),
        "{seen}"
    );
    let calls: Vec<_> = (0..50).map(|_| answer(&mirror, "t.read")).collect();
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.status == Status::Ok));
    assert_eq!((lines(&folder, "start"), lines(&folder, "call")), (1, 51));
}

#[tokio::test]
async fn a_dry_run_needs_the_capability() {
    let offered = r#"{"lastcall.dev/modes": {"modes": ["dry_run"]}}"#;
    let (folder, mirror) = stdio(ECHO, offered, "t.write", "dry_run", "");
    assert_eq!(told(&answer(&mirror, "t.write").await), "ok - dry_run");
    assert!(log(&folder).contains(r#""lastcall.dev/mode":"dry_run""#));
    let not = [
        "{}",
        r#"{"lastcall.dev/modes": {}}"#,
        r#"{"lastcall.dev/modes": {"modes": ["sandbox"]}}"#,
        r#"{"lastcall.dev/modes": "dry_run"}"#,
    ];
    for modes in not {
        let (folder, mirror) = stdio(ECHO, modes, "t.write", "dry_run", "");
        for _ in 0..3 {
            assert_eq!(
                told(&answer(&mirror, "t.write").await),
                "unavailable dry_run_not_offered not_executed",
                "{modes}"
            );
        }
        assert_eq!(lines(&folder, "call"), 0);
    }
}

#[tokio::test]
async fn what_a_server_on_stdio_does_wrong_is_told_and_it_is_started_again() {
    for (on_call, expected) in [
        ("sys.exit(1)", "unavailable process replica"),
        ("say('garbage')", "unavailable not_an_answer replica"),
        ("sys.stdout.write('x' * 8000000); sys.stdout.flush()", "unavailable answer_too_large replica"),
        (r#"say({"id": i, "result": {}})"#, "unavailable not_an_answer replica"),
        (r#"say({"id": i, "error": {"code": -32603, "message": "x"}})"#, "unavailable rpc_error replica"),
        (
            r#"say({"id": i, "error": {"code": -32602, "message": "Unknown tool: t_read"}})"#,
            "unavailable unknown_tool replica",
        ),
        (r#"say({"id": i, "error": {"code": -32602, "message": "bad"}})"#, "invalid_arguments - replica"),
        (r#"say({"id": i + 7, "result": {"content": []}})"#, "timed_out timed_out replica"),
        (
            r#"say({"id": i, "result": {"content": [{"type": "text", "text": "y" * 2000000}]}})"#,
            "unavailable answer_too_large replica",
        ),
    ] {
        let timeout = if expected.starts_with("timed_out") { "8s" } else { "60s" };
        let limits = format!("timeout = \"{timeout}\"\n");
        let (folder, mirror) = stdio(on_call, "{}", "t.read", "replica", &limits);
        assert_eq!(told(&answer(&mirror, "t.read").await), expected, "{on_call}");
        assert_eq!(lines(&folder, "call"), 1);
        if on_call == "sys.exit(1)" {
            for _ in 0..3 {
                answer(&mirror, "t.read").await;
                tokio::time::sleep(std::time::Duration::from_millis(250)).await;
            }
            assert!(lines(&folder, "start") > 1);
        }
    }
}

#[tokio::test]
async fn a_server_may_ask_and_notify_while_it_answers() {
    let on_call = r#"
        for n in range(2000): say({"method": "notifications/progress", "params": {"progress": n, "data": "z" * 1000}})
        say({"id": 900, "method": "ping"}); say({"id": "s1", "method": "sampling/createMessage", "params": {}})
        say({"id": i, "result": {"content": []}})"#;
    let (folder, mirror) = stdio(on_call.trim_start(), "{}", "t.read", "replica", "");
    assert_eq!(told(&answer(&mirror, "t.read").await), "ok - replica");
    answer(&mirror, "t.read").await;
    let seen = log(&folder);
    assert!(seen.contains(r#"reply {"jsonrpc":"2.0","id":900,"result":{}}"#), "{seen}");
    assert!(seen.contains(r#""id":"s1","error":{"code":-32601"#), "{seen}");
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_and_a_silent_server_started_again() {
    let (folder, mirror) = stdio("pass", "{}", "t.read", "replica", "timeout = \"1500ms\"\n");
    for _ in 0..20 {
        answer(&mirror, "t.read").await;
        if lines(&folder, "start") >= 2 && lines(&folder, "cancelled") >= 1 {
            return;
        }
    }
    panic!("{}", log(&folder));
}

/// A server over streamable HTTP. `session`: it insists on one, and forgets it after `forgets` calls.
async fn served(
    events: bool,
    forgets: usize,
    on_call: fn(&Value) -> Value,
) -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (calls, hellos) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (calls_of, hellos_of) = (Arc::clone(&calls), Arc::clone(&hellos));
    let handler = move |headers: HeaderMap, body: String| {
        let (calls, hellos) = (Arc::clone(&calls_of), Arc::clone(&hellos_of));
        async move {
            let ask: Value = serde_json::from_str(&body).unwrap();
            let id = ask["id"].clone();
            let told = |result: Value| -> Response {
                let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
                match events {
                    true => {
                        let text = format!(
                            ": hi\nevent: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{}}}}\n\n\
                             data: {}\ndata: {}\n\n",
                            &text[..text.find(',').unwrap() + 1],
                            &text[text.find(',').unwrap() + 1..]
                        );
                        ([("content-type", "text/event-stream")], text).into_response()
                    }
                    false => ([("content-type", "application/json")], text).into_response(),
                }
            };
            if ask["method"] == "initialize" {
                let n = hellos.fetch_add(1, Ordering::SeqCst);
                let capabilities = json!({"tools": {}, "experimental": {"lastcall.dev/modes": ["dry_run"]}});
                let mut response = told(
                    json!({"protocolVersion": "2025-03-26", "capabilities": capabilities, "serverInfo": {}}),
                );
                response.headers_mut().insert("mcp-session-id", format!("s{n}").parse().unwrap());
                return response;
            }
            let session = format!("s{}", hellos.load(Ordering::SeqCst) - 1);
            let known = headers.get("mcp-session-id").is_some_and(|s| *s == *session);
            if !known || headers.get("mcp-protocol-version").is_none_or(|v| v != "2025-03-26") {
                return StatusCode::BAD_REQUEST.into_response();
            }
            if ask.get("id").is_none() {
                return StatusCode::ACCEPTED.into_response();
            }
            if ask["method"] == "tools/list" {
                return match ask["params"]["cursor"].as_str() {
                    None => told(json!({"tools": [{"name": "other", "inputSchema": {}}], "nextCursor": "2"})),
                    Some(_) => {
                        told(json!({"tools": [{"name": "t_read", "inputSchema": {"type": "object"}}]}))
                    }
                };
            }
            let n = calls.fetch_add(1, Ordering::SeqCst) + 1;
            if forgets > 0 && n % forgets == 0 {
                hellos.fetch_add(1, Ordering::SeqCst);
                return StatusCode::NOT_FOUND.into_response();
            }
            told(on_call(&ask))
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = axum::Router::new().route("/mcp", axum::routing::post(handler));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (url, calls, hellos)
}

#[tokio::test]
async fn a_server_over_http_answers_by_json_and_by_events() {
    for events in [false, true] {
        let (url, calls, hellos) =
            served(events, 0, |_| json!({"content": [], "structuredContent": {"total": 7}})).await;
        let mirror = mirror(&one("t.write", &format!("suppression = \"dry_run\", mcp = \"{url}\"")));
        let answers = futures_util::future::join_all((0..40).map(|_| answer(&mirror, "t.write"))).await;
        for answer in answers {
            assert_eq!(told(&answer), "ok - dry_run");
            assert!(answer.result.unwrap().contains("\"total\":7"));
        }
        assert_eq!((calls.load(Ordering::SeqCst), hellos.load(Ordering::SeqCst)), (40, 1));
    }
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_begun_anew() {
    let (url, _, hellos) = served(true, 5, |_| json!({"content": []})).await;
    let mirror = mirror(&one("t.read", &format!("suppression = \"replica\", mcp = \"{url}\"")));
    for _ in 0..20 {
        assert_eq!(told(&answer(&mirror, "t.read").await), "ok - replica");
    }
    assert!(hellos.load(Ordering::SeqCst) > 2);
}

#[tokio::test]
async fn a_probe_compares_what_the_server_lists_with_the_contract() {
    let (url, calls, _) = served(false, 0, |_| json!({"content": []})).await;
    let text = one("t.read", &format!("suppression = \"replica\", mcp = \"{url}\""))
        + &one("t.write", &format!("suppression = \"dry_run\", mcp = \"{url}\""));
    let probed = mirror(&text).probe().await;
    assert!(
        probed[0].fits && probed[0].notes[0].starts_with("its inputSchema is not that of the contract"),
        "{probed:?}"
    );
    assert!(
        !probed[1].fits
            && probed[1].notes[0].contains(
                "lists no tool `t_write`: say by `name` how the server calls it, one of other, t_read"
            ),
        "{probed:?}"
    );
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}
