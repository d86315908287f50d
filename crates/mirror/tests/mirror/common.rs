//! A registry, calls, and servers that count.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::any;
use lastcall_contract::{Registry, RegistryFiles};
use lastcall_event::{CallRecord, Preset, Record, decode_text};
use lastcall_mirror::{Answer, Mirror, Replayed, Settings, SettingsError};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Tools that read, write, send, do not say what they do, and write idempotently.
pub fn registry() -> Registry {
    let mut files = RegistryFiles::new();
    let schema = json!({"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["id"]});
    let output = json!({"type": "object", "properties": {"total": {"type": "integer", "minimum": 3}},
        "required": ["total"]});
    for (tool, stated) in [
        ("t.read", "side_effect: read\n"),
        ("t.write", "side_effect: write\n"),
        ("t.put", "side_effect: write\n"),
        ("t.send", "side_effect: send\n"),
        ("t.silent", ""),
    ] {
        let mut versions = String::new();
        for version in ["1", "2"] {
            let definition = json!({"name": tool.replace('.', "_"), "description": "A tool.", "inputSchema": schema,
                "outputSchema": output, "annotations": {"idempotentHint": tool == "t.put"}});
            files.insert(format!("{tool}/schemas/v{version}.json"), definition.to_string());
            versions +=
                &format!("  - {{version: \"{version}\", schema: schemas/v{version}.json, source: mcp}}\n");
        }
        files.insert(
            format!("{tool}/tool.yaml"),
            format!("tool_id: {tool}\nrisk_level: low\n{stated}versions:\n{versions}"),
        );
    }
    Registry::read(&files).expect("the registry reads")
}

pub fn settings(text: &str) -> Settings {
    Settings::parse_with(text, "mirror.toml", &|name| (name == "TOKEN").then(|| "s3cret".to_owned())).unwrap()
}

pub fn try_mirror(text: &str) -> Result<Mirror, SettingsError> {
    Mirror::new(&registry(), &settings(text))
}

pub fn mirror(text: &str) -> Mirror {
    try_mirror(text).unwrap_or_else(|error| panic!("{error}"))
}

/// One candidate of one tool.
pub fn one(tool: &str, endpoint: &str) -> String {
    format!("[tools.\"{tool}\"]\ncandidates = [{{contract = \"{tool}@2\", {endpoint}}}]\n")
}

/// A call's text.
pub fn record(tool: &str, id: &str, more: &Value) -> String {
    let mut call = json!({"type": "tool_call", "schema_version": 1, "call_id": id, "ts": "2026-06-01T00:00:00Z",
        "tool_id": tool, "contract_id": format!("{tool}@1"), "arguments": {"id": "a"},
        "outcome": {"status": "ok", "executed": true, "result": {"total": 7}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        match value {
            Value::Null => drop(call.as_object_mut().unwrap().remove(key)),
            value => call[key] = value.clone(),
        }
    }
    call.to_string()
}

pub fn call(text: &str) -> CallRecord<'_> {
    match decode_text(text, Preset::Native).expect("a record").record {
        Record::Call(call) => *call,
        other => panic!("no call: {other:?}"),
    }
}

/// Replays a plain call of a tool.
pub async fn replay(mirror: &Mirror, tool: &str) -> Replayed {
    replay_with(mirror, tool, &json!({})).await
}

pub async fn replay_with(mirror: &Mirror, tool: &str, more: &Value) -> Replayed {
    mirror.replay(&call(&record(tool, "c1", more))).await
}

pub async fn answer(mirror: &Mirror, tool: &str) -> Answer {
    replay(mirror, tool).await.candidates.remove(0)
}

/// `status class suppression`.
pub fn told(answer: &Answer) -> String {
    let class = answer.error_class.as_deref().unwrap_or("-");
    let suppression = serde_json::to_value(answer.suppression).unwrap();
    format!("{} {class} {}", answer.status.as_str(), suppression.as_str().unwrap())
}

#[derive(Clone, Default)]
pub struct Counted {
    pub gets: Arc<AtomicUsize>,
    pub posts: Arc<AtomicUsize>,
    pub last: Arc<std::sync::Mutex<(axum::http::HeaderMap, Bytes)>>,
}

impl Counted {
    pub fn hits(&self) -> usize {
        self.gets.load(Ordering::SeqCst) + self.posts.load(Ordering::SeqCst)
    }
    pub fn posts(&self) -> usize {
        self.posts.load(Ordering::SeqCst)
    }
}

/// A server that counts, and answers by `answer`: of a GET with no body, of a POST with its body.
pub async fn counting<R: IntoResponse + 'static>(
    answer: impl Fn(&axum::http::Method, &Bytes) -> R + Clone + Send + Sync + 'static,
) -> (String, Counted) {
    let counted = Counted::default();
    let handler = move |State(counted): State<Counted>,
                        method: axum::http::Method,
                        headers: axum::http::HeaderMap,
                        body: Bytes| {
        let answer = answer.clone();
        async move {
            let counter = if method == axum::http::Method::GET { &counted.gets } else { &counted.posts };
            counter.fetch_add(1, Ordering::SeqCst);
            let response = answer(&method, &body);
            *counted.last.lock().unwrap() = (headers, body);
            response
        }
    };
    let app = Router::new().fallback(any(handler)).with_state(counted.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (format!("http://{at}/call"), counted)
}

/// A good candidate that offers everything.
pub async fn good() -> (String, Counted) {
    counting(|method, _| match *method {
        axum::http::Method::GET => r#"{"lastcall":1,"modes":["dry_run"]}"#,
        _ => r#"{"status":"ok","result":{"total":7},"arguments":{"id":"a"}}"#,
    })
    .await
}

/// A server on a bare socket: `serve` gets each connection after its first request was read.
pub async fn raw<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(TcpStream) -> F + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let hits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&hits);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut seen = Vec::new();
            let mut piece = [0; 4096];
            while !seen.ends_with(b"\"c1\"}") {
                match socket.read(&mut piece).await {
                    Ok(n) if n > 0 => seen.extend_from_slice(&piece[..n]),
                    _ => break,
                }
            }
            tokio::spawn(serve(socket));
        }
    });
    (at, hits)
}

/// Writes and closes.
pub async fn write(socket: &mut TcpStream, text: &[u8]) {
    let _ = socket.write_all(text).await;
}
