//! The gateway of `examples/gateway` between callers and a tool server that counts: what passes is what would have passed
//! without it, and every call is a record or stands in the count of a loss, with the broker there or away.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lastcall_tests::binary;
use lastcall_tests::services::broker::Broker;
use serde_json::{Value, json};

use crate::interceptor::Produced;

const TOPIC: &str = "tool-calls";
const SECOND: Duration = Duration::from_secs(1);
const LARGE: usize = 2 << 20;

/// Starts a tool server; its address, and how many tool calls it has answered.
fn tools() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = counted.clone();
            std::thread::spawn(move || while serve(&stream, &counted).is_some() {});
        }
    });
    (address, calls)
}

fn serve(stream: &TcpStream, calls: &AtomicU64) -> Option<()> {
    let mut reader = BufReader::with_capacity(1, stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let text = String::from_utf8(body).ok()?;
    let (code, headers, body) = answer(&head, &text, calls);
    let mut out =
        format!("HTTP/1.1 {code} X\r\nx-tool: yes\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n{headers}");
    if headers.contains("event-stream") {
        out += "transfer-encoding: chunked\r\n\r\n";
        for part in body.as_bytes().chunks(7) {
            out += &format!("{:x}\r\n{}\r\n", part.len(), String::from_utf8_lossy(part));
        }
        out += "0\r\n\r\n";
    } else {
        out += &format!("content-length: {}\r\n\r\n{body}", body.len());
    }
    (&*stream).write_all(out.as_bytes()).ok()
}

fn answer(head: &str, body: &str, calls: &AtomicU64) -> (u16, &'static str, String) {
    const JSON: &str = "content-type: application/json\r\n";
    let one = || calls.fetch_add(1, Ordering::AcqRel);
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    if head.starts_with("POST /lookup ") {
        one();
        match message["do"].as_str().unwrap_or_default() {
            "refuse" => (422, JSON, json!({"why": "no"}).to_string()),
            "break" => (500, "content-type: text/html\r\n", "<b>broken</b>".into()),
            "limit" => (429, "retry-after: 1\r\n", String::new()),
            "pack" => (200, "content-type: application/json\r\ncontent-encoding: gzip\r\n", "packed".into()),
            "large" => (200, JSON, format!("\"{}\"", "x".repeat(LARGE))),
            "slow" => {
                sleep(2 * SECOND);
                (200, JSON, "1".into())
            }
            _ => (200, JSON, json!({"seen": body}).to_string()),
        }
    } else if head.starts_with("POST /mcp ") && message["method"] == "tools/call" {
        one();
        let id = &message["id"];
        let result = |text: &str, failed: bool| json!({"content": [{"type": "text", "text": text}], "isError": failed});
        let told = match message["params"]["name"].as_str().unwrap_or_default() {
            "wrong" => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no"}}),
            "odd" => {
                json!({"jsonrpc": "2.0", "id": id, "result": result("Input validation error: no", true)})
            }
            "no" => json!({"jsonrpc": "2.0", "id": id, "result": result("sold out", true)}),
            _ => json!({"jsonrpc": "2.0", "id": id, "result": result("yes", false)}),
        };
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
        match message["params"]["name"].as_str() {
            Some("stream") => (
                200,
                "content-type: text/event-stream\r\n",
                format!("event: message\ndata: {progress}\n\ndata: {told}\n\n"),
            ),
            _ => (200, JSON, told.to_string()),
        }
    } else {
        (200, "content-type: text/plain\r\n", format!("no call: {body}"))
    }
}

/// Path and body of a request, and the tool and status that it is recorded under; none: it is no call.
type Asked = (&'static str, String, Option<(&'static str, &'static str)>);

fn requests() -> Vec<Asked> {
    let lookup = |text: &str, status| ("/lookup", text.to_owned(), Some(("orders.lookup", status)));
    let mcp = |name: &str, tool, status| {
        let params = json!({"name": name, "arguments": {"a": 1}});
        let text =
            json!({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}).to_string();
        ("/mcp", text, Some((tool, status)))
    };
    vec![
        lookup("{\"order_id\":  \"A-1\", \"n\": 1.0}", "ok"),
        lookup("no JSON", "ok"),
        lookup("{\"do\": \"refuse\"}", "invalid_arguments"),
        lookup("{\"do\": \"break\"}", "platform_error"),
        lookup("{\"do\": \"limit\"}", "rate_limited"),
        lookup("{\"do\": \"pack\"}", "ok"),
        mcp("named", "orders.track", "ok"),
        mcp("stream", "stream", "ok"),
        mcp("wrong", "wrong", "invalid_arguments"),
        mcp("odd", "odd", "invalid_arguments"),
        mcp("no", "no", "business_error"),
        ("/mcp", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string(), None),
        ("/health", "fine?".to_owned(), None),
    ]
}

/// Status, headers without those of one connection, body.
type Seen = (u16, Vec<String>, Vec<u8>);

fn post(address: &str, path: &str, body: &str, session: &str) -> Seen {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(60 * SECOND)).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: tools.example\r\nConnection: close\r\nX-Session: {session}\r\n\
         X-Agent-Id: support\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    // The server keeps connections: what was announced is read, and no more is waited for.
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let code = line().split(' ').nth(1).unwrap().parse().unwrap();
    let (mut headers, mut length, mut chunked) = (Vec::new(), 0, false);
    loop {
        let header = line().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        chunked |= header == "transfer-encoding: chunked";
        if !["connection:", "date:", "transfer-encoding:"].iter().any(|name| header.starts_with(name)) {
            headers.push(header);
        }
    }
    headers.sort();
    let mut body = Vec::new();
    while chunked {
        let mut size = String::new();
        reader.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut part = vec![0; size + 2];
        reader.read_exact(&mut part).unwrap();
        body.extend_from_slice(&part[..size]);
        chunked = size > 0;
    }
    if body.is_empty() {
        body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
    }
    (code, headers, body)
}

struct Gateway {
    child: Child,
    address: String,
}

impl Gateway {
    fn start(broker: &Broker, upstream: &str, args: &[&str]) -> Self {
        let mut child = Command::new(binary().with_file_name("tool-gateway"))
            .args([
                "--listen",
                "127.0.0.1:0",
                "--upstream",
                &format!("http://{upstream}"),
                "--brokers",
                &broker.address,
            ])
            .args([
                "--route",
                "POST /lookup=orders.lookup@1.0.0",
                "--mcp",
                "/mcp",
                "--name",
                "named=orders.track@3",
            ])
            .args(["--session-header", "x-session", "--close", "60"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().strip_prefix("http://").unwrap().to_owned() }
    }

    /// Ends it, as a service is ended.
    fn end(mut self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_passes_the_gateway_is_unchanged_and_recorded() {
    let Some(mut broker) = Broker::start() else { return };
    broker.topic(TOPIC, 3, &[]);
    let (server, counted) = tools();
    let gateway = Gateway::start(&broker, &server, &["--max-records", "300"]);
    let mut calls = 0;
    let mut rounds = |count: usize, name: &str| {
        for round in 0..count {
            for (path, body, recorded) in requests() {
                let session = format!("{name}-{round}");
                let through = post(&gateway.address, path, &body, &session);
                assert_eq!(through, post(&server, path, &body, &session), "{path} {body}");
                calls += u64::from(recorded.is_some());
            }
        }
        calls
    };
    rounds(20, "first");
    let large = post(&gateway.address, "/lookup", "{\"do\": \"large\"}", "large");
    assert_eq!((large.0, large.2.len()), (200, LARGE + 2));
    // An agent that goes away while its tool is at work.
    let mut leaver = TcpStream::connect(&gateway.address).unwrap();
    leaver.write_all(b"POST /lookup HTTP/1.1\r\nHost: a\r\nX-Session: gone\r\nContent-Length: 14\r\n\r\n{\"do\": \"slow\"}").unwrap();
    sleep(SECOND / 2);
    drop(leaver);
    sleep(2 * SECOND);
    let away = broker.kill();
    if away {
        rounds(60, "away");
        broker.kill_and_restart();
    }
    let made = rounds(5, "after") + 2;
    gateway.end();
    assert_eq!(
        counted.load(Ordering::Acquire),
        2 * made - 2,
        "the tools counted each call, with and without the gateway"
    );

    let produced = Produced::of(&broker, TOPIC, 3);
    let (records, lost) = (produced.calls.len() as u64, produced.losses());
    println!(
        "{made} calls through the gateway: {records} records, {lost} lost by their count {:?}",
        produced.lost
    );
    assert_eq!(made, records + lost);
    assert_eq!(lost > 1, away, "one is too large; with the broker away there is no room");
    let told = |row: &Value| {
        (row["tool_id"].as_str().unwrap().to_owned(), row["outcome"]["status"].as_str().unwrap().to_owned())
    };
    let of = |session: &str| {
        let of =
            |row: &&Value| row["envelope"]["session_id"].as_str().is_some_and(|s| s.starts_with(session));
        produced.rows.iter().filter(of).collect::<Vec<_>>()
    };
    let mut wanted = BTreeMap::new();
    for (tool, status) in requests().into_iter().filter_map(|(_, _, recorded)| recorded) {
        *wanted.entry((tool.to_owned(), status.to_owned())).or_insert(0) += 20;
    }
    let mut found = BTreeMap::new();
    for row in of("first") {
        *found.entry(told(row)).or_insert(0) += 1;
        assert_eq!(
            (row["fidelity"].as_str(), row["envelope"]["agent_id"].as_str()),
            (Some("reconstructed"), Some("support"))
        );
    }
    assert_eq!(found, wanted);
    let first = of("first-0");
    let lookup = first.iter().find(|row| row["arguments_text"] == requests()[0].1.as_str()).unwrap();
    assert_eq!(lookup["contract_id"], "orders.lookup@1.0.0");
    assert_eq!(lookup["outcome"]["result"], json!({"seen": requests()[0].1}));
    let track = first.iter().find(|row| row["tool_id"] == "orders.track").unwrap();
    assert_eq!(
        (track["contract_id"].as_str(), track["arguments_text"].as_str()),
        (Some("orders.track@3"), Some("{\"a\":1}"))
    );
    assert_eq!(track["outcome"]["result"]["content"][0]["text"], "yes");
    assert_eq!(told(of("gone")[0]).1, "unknown");
    assert!(produced.lost.get("orders.lookup").is_some_and(|n| *n >= 1), "{:?}", produced.lost);
}

/// A tool server that is not there is the caller's 502, and a record.
#[test]
fn a_tool_server_that_is_away_is_recorded() {
    let Some(broker) = Broker::start() else { return };
    broker.topic("other-calls", 1, &[]);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let gateway = Gateway::start(&broker, &nobody, &["--topic", "other-calls"]);
    assert_eq!(post(&gateway.address, "/lookup", "{}", "s").0, 502);
    let begun = Instant::now();
    gateway.end();
    assert!(begun.elapsed() < 30 * SECOND);
    let produced = Produced::of(&broker, "other-calls", 1);
    assert_eq!(produced.rows.len(), 1);
    let row = &produced.rows[0];
    assert_eq!(row["outcome"]["status"], "platform_error");
    assert_eq!(
        (row["outcome"]["error_class"].as_str(), row["fidelity"].as_str()),
        (Some("connection"), Some("not_captured")),
        "without a connection nothing is read of the request"
    );
}
