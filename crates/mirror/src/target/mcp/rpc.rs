//! JSON-RPC messages of MCP, as text. Arguments and results stay the exact text that came: a library's typed message would
//! make doubles of their numbers.

use std::borrow::Cow;
use std::time::Duration;

use lastcall_event::Json;
use serde::Deserialize;

use crate::answer::Failure;
use crate::row::string;

/// How long a server may take to start and to say hello.
pub(super) const HELLO: Duration = Duration::from_secs(60);
/// The version that is asked for.
pub(super) const VERSION: &str = "2025-06-18";
/// Versions that are understood: what is used of them is the same.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The longest message beside answers to calls.
pub(super) const MAX_MESSAGE: usize = 4 << 20;

/// What came for a request.
pub(super) enum Reply {
    /// The result's text.
    Result(String),
    /// An error.
    Error { code: i64, message: String },
}

/// One message, read as far as it has to be.
pub(super) enum Message {
    Reply(u64, Reply),
    /// The server asks; the text is what to answer.
    Asked(String),
    /// A notification, or what nobody waits for.
    Other,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    id: Json<'a>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    result: Json<'a>,
    #[serde(borrow, default)]
    error: Option<Error<'a>>,
}

#[derive(Deserialize)]
struct Error<'a> {
    code: i64,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
}

/// Reads a message; `None`: it is none.
pub(super) fn message(text: &[u8]) -> Option<Message> {
    let wire: Wire<'_> = serde_json::from_str(std::str::from_utf8(text).ok()?).ok()?;
    let id = wire.id.get().filter(|id| *id != "null");
    Some(match (id, wire.method) {
        (Some(id), Some(method)) => Message::Asked(answer(id, &method)),
        (None, _) => Message::Other,
        (Some(id), None) => {
            let Ok(id) = id.parse() else { return Some(Message::Other) };
            match (wire.error, wire.result.get()) {
                (Some(error), _) => {
                    Message::Reply(id, Reply::Error { code: error.code, message: error.message.into_owned() })
                }
                (None, Some(result)) => Message::Reply(id, Reply::Result(result.to_owned())),
                (None, None) => return None,
            }
        }
    })
}

/// What a server's request is answered with: a ping with a pong, anything else with "not here".
fn answer(id: &str, method: &str) -> String {
    match method {
        "ping" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
        _ => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"not offered"}}}}"#),
    }
}

pub(super) fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(super) fn cancelled(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"timed out"}}}}"#
    )
}

pub(super) fn hello() -> String {
    format!(
        r#"{{"protocolVersion":"{VERSION}","capabilities":{{}},"clientInfo":{{"name":"lastcall-mirror","version":"{}"}}}}"#,
        env!("CARGO_PKG_VERSION")
    )
}

/// `tools/list` from a cursor on.
pub(super) fn list(cursor: Option<&str>) -> String {
    let mut params = "{".to_owned();
    if let Some(cursor) = cursor {
        params.push_str(r#""cursor":"#);
        string(&mut params, cursor);
    }
    params.push('}');
    params
}

/// What a server said of itself.
#[derive(Debug)]
pub(super) struct Server {
    pub version: String,
    /// Modes that it offers by the experimental capability `lastcall.dev/modes`.
    pub modes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hello {
    protocol_version: String,
    #[serde(default)]
    capabilities: Capabilities,
}

#[derive(Deserialize, Default)]
struct Capabilities {
    #[serde(default)]
    experimental: Option<Experimental>,
}

#[derive(Deserialize, Default)]
struct Experimental {
    #[serde(rename = "lastcall.dev/modes", default)]
    modes: Option<Modes>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Modes {
    List(Vec<String>),
    Object { modes: Vec<String> },
    Other(serde::de::IgnoredAny),
}

/// Reads the answer to `initialize`.
pub(super) fn server(reply: Reply) -> Result<Server, Failure> {
    let Reply::Result(text) = reply else { return Err(Failure::Rpc) };
    let hello: Hello = serde_json::from_str(&text).map_err(|_| Failure::NotAnAnswer)?;
    if !VERSIONS.contains(&hello.protocol_version.as_str()) {
        return Err(Failure::NotAnAnswer);
    }
    let modes = match hello.capabilities.experimental.and_then(|e| e.modes) {
        Some(Modes::List(modes) | Modes::Object { modes }) => modes,
        Some(Modes::Other(_)) | None => Vec::new(),
    };
    Ok(Server { version: hello.protocol_version, modes })
}
