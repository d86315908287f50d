//! From what passed to records of Lastcall's own: schemas/events/tool_call.schema.json.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::held::Room;

/// A tool and the contract that agents were given.
#[derive(Clone, Debug)]
pub struct Spec {
    pub tool: String,
    pub contract: Option<String>,
}

impl Spec {
    /// Reads `TOOL@VERSION`, or `TOOL` where the version is not known.
    pub fn parse(text: &str) -> Result<Self, String> {
        let tool = text.split('@').next().unwrap_or_default();
        if tool.is_empty() {
            return Err(format!("{text} is no TOOL@VERSION"));
        }
        Ok(Self { tool: tool.to_owned(), contract: text.contains('@').then(|| text.to_owned()) })
    }
}

/// The headers that say who calls.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub session: String,
    pub agent: String,
}

/// Where a call came from: a route that is a tool, or an MCP endpoint with many.
#[derive(Clone, Debug)]
pub struct Source {
    pub spec: Option<Spec>,
    pub names: Option<Arc<BTreeMap<String, Spec>>>,
    pub raw: bool,
    pub envelope: Envelope,
}

impl Source {
    /// Whether every request is a call.
    pub fn is_route(&self) -> bool {
        self.spec.is_some()
    }

    /// The tool, where it is known without reading the call.
    pub fn tool(&self) -> Option<&str> {
        self.spec.as_ref().map(|spec| spec.tool.as_str())
    }
}

/// What came back.
pub struct Answer {
    pub status: Option<u16>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub whole: bool,
}

/// A call that has passed.
pub struct Job {
    pub room: Arc<Room>,
    pub source: Source,
    pub headers: HeaderMap,
    pub at: i64,
    pub latency_ms: f64,
    /// `None`: it was not read to its end.
    pub request: Option<Vec<u8>>,
    pub answer: Answer,
}

impl Job {
    /// The request's body, where it is whole and text.
    fn text(&self) -> Option<&str> {
        self.request.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }
}

/// A record on its way.
pub struct Record {
    pub tool: String,
    pub key: String,
    pub value: String,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    r#type: &'static str,
    schema_version: u8,
    call_id: String,
    ts: String,
    tool_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    contract_id: Option<&'a str>,
    #[serde(flatten)]
    arguments: Arguments<'a>,
    fidelity: &'static str,
    outcome: Outcome<'a>,
    envelope: BTreeMap<&'static str, &'a str>,
}

#[derive(Serialize)]
enum Arguments<'a> {
    #[serde(rename = "arguments_text")]
    Text(&'a str),
    #[serde(rename = "arguments")]
    None(()),
}

#[derive(Serialize, Default)]
struct Outcome<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_class: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    latency_ms: f64,
}

/// The records of a call that has passed. One that is no call gives none.
pub fn records(job: &Job) -> serde_json::Result<Vec<Record>> {
    match &job.source.spec {
        Some(spec) => Ok(vec![record(job, spec, job.text(), outcome(job))?]),
        None => mcp(job),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn record(
    job: &Job,
    spec: &Spec,
    arguments: Option<&str>,
    outcome: Outcome<'_>,
) -> serde_json::Result<Record> {
    let mut envelope = BTreeMap::new();
    let session = header(&job.headers, &job.source.envelope.session);
    envelope.extend(session.map(|session| ("session_id", session)));
    envelope.extend(header(&job.headers, &job.source.envelope.agent).map(|agent| ("agent_id", agent)));
    let trace: Vec<&str> = header(&job.headers, "traceparent").unwrap_or_default().split('-').collect();
    if let [_, trace, span, _] = trace[..] {
        envelope.extend([("trace_id", trace), ("span_id", span)]);
    }
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|e| serde::ser::Error::custom(e.to_string()))?;
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let call = ToolCall {
        r#type: "tool_call",
        schema_version: 1,
        call_id: id.clone(),
        ts: moment(job.at),
        tool_id: &spec.tool,
        contract_id: spec.contract.as_deref(),
        arguments: arguments.map_or(Arguments::None(()), Arguments::Text),
        fidelity: match arguments {
            None => "not_captured",
            Some(_) if job.source.raw => "raw",
            Some(_) => "reconstructed",
        },
        outcome: Outcome { latency_ms: job.latency_ms, ..outcome },
        envelope,
    };
    let key = session.map_or(id, str::to_owned);
    Ok(Record { tool: spec.tool.clone(), key, value: serde_json::to_string(&call)? })
}

/// RFC 3339 of microseconds since 1970.
pub fn moment(at: i64) -> String {
    DateTime::from_timestamp_micros(at).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// What the HTTP status says. `None`: it answered.
fn failure(answer: &Answer) -> Option<Outcome<'static>> {
    let status = match answer.status {
        None if answer.whole => {
            return Some(Outcome {
                status: "platform_error",
                error_class: Some("connection"),
                ..Outcome::default()
            });
        }
        None => "unknown",
        Some(_) if !answer.whole => "unknown",
        Some(200..300) => return None,
        Some(400 | 422) => "invalid_arguments",
        Some(401 | 403) => "permission_denied",
        Some(408 | 504) => "timeout",
        Some(429) => "rate_limited",
        Some(400..500) => "business_error",
        Some(500..) => "platform_error",
        Some(_) => "unknown",
    };
    let error_code = answer.status.filter(|_| answer.whole).map(|code| format!("http_{code}"));
    Some(Outcome { status, error_code, ..Outcome::default() })
}

/// The answer as JSON, where it is that, and not compressed.
fn json(answer: &Answer) -> Option<&RawValue> {
    let kind =
        answer.headers.get(CONTENT_TYPE)?.to_str().ok()?.split(';').next()?.trim().to_ascii_lowercase();
    let plain = !answer.headers.contains_key(CONTENT_ENCODING);
    let json = plain && (kind == "application/json" || kind.ends_with("+json"));
    json.then(|| serde_json::from_slice(&answer.body).ok()).flatten()
}

fn outcome(job: &Job) -> Outcome<'_> {
    failure(&job.answer).unwrap_or_else(|| Outcome {
        status: "ok",
        result: json(&job.answer),
        ..Outcome::default()
    })
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    code: i64,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(rename = "isError", default)]
    is_error: bool,
    #[serde(borrow, default)]
    content: Vec<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

/// One JSON-RPC message, or a batch of them.
fn messages(text: &str) -> Vec<Message<'_>> {
    match serde_json::from_str(text) {
        Ok(batch) => batch,
        Err(_) => serde_json::from_str(text).into_iter().collect(),
    }
}

/// The data of server-sent events.
fn events(text: &str) -> Vec<String> {
    let mut events = vec![String::new()];
    for line in text.lines() {
        match (line.strip_prefix("data:"), events.last_mut()) {
            (Some(data), Some(event)) => event.extend([data.strip_prefix(' ').unwrap_or(data), "\n"]),
            _ if line.is_empty() => events.push(String::new()),
            _ => {}
        }
    }
    events
}

fn mcp(job: &Job) -> serde_json::Result<Vec<Record>> {
    let text = job.text().unwrap_or_default();
    let answer = std::str::from_utf8(&job.answer.body).unwrap_or_default();
    let streamed = job
        .answer
        .headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let bodies = if streamed { events(answer) } else { vec![answer.to_owned()] };
    let answers: Vec<Message<'_>> = bodies.iter().flat_map(|body| messages(body)).collect();
    let mut records = Vec::new();
    for message in messages(text).iter().filter(|m| m.method.as_deref() == Some("tools/call")) {
        let Some(params) = message.params.and_then(|p| serde_json::from_str::<Params<'_>>(p.get()).ok())
        else {
            continue;
        };
        let named = job.source.names.as_ref().and_then(|names| names.get(&*params.name));
        let spec =
            named.cloned().unwrap_or_else(|| Spec { tool: params.name.clone().into_owned(), contract: None });
        let id = message.id.map(RawValue::get);
        let told =
            answers.iter().find(|a| a.method.is_none() && id.is_some() && a.id.map(RawValue::get) == id);
        // An answer that came is one, even where the stream after it did not end.
        let outcome = match told {
            Some(told) => read(told),
            None => failure(&job.answer).unwrap_or(Outcome { status: "unknown", ..Outcome::default() }),
        };
        records.push(record(job, &spec, Some(params.arguments.map_or("{}", RawValue::get)), outcome)?);
    }
    Ok(records)
}

/// The outcome of an MCP call: servers say that arguments are invalid by a code, or by a text that begins with it.
fn read<'a>(told: &Message<'a>) -> Outcome<'a> {
    if let Some(Failure { code }) = told.error {
        let status = if code == -32602 { "invalid_arguments" } else { "platform_error" };
        return Outcome { status, error_code: Some(code.to_string()), ..Outcome::default() };
    }
    let result = told.result.and_then(|result| serde_json::from_str::<CallResult<'_>>(result.get()).ok());
    let status = match &result {
        None => "unknown",
        Some(result) if !result.is_error => "ok",
        Some(result) => {
            let text = result.content.first().and_then(|c| c.text.as_deref()).unwrap_or_default();
            let invalid =
                ["MCP error -32602", "Input validation error"].iter().any(|mark| text.starts_with(mark));
            if invalid { "invalid_arguments" } else { "business_error" }
        }
    };
    Outcome { status, result: told.result, ..Outcome::default() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::held::Held;

    fn mcp_job(request: &str, kind: &str, answer: &str) -> Vec<Value> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        let job = Job {
            room: Arc::new(Arc::new(Held::new(1, 1 << 20)).room().unwrap()),
            source: Source {
                spec: None,
                names: Some(Arc::default()),
                raw: true,
                envelope: Envelope { session: "s".into(), agent: "a".into() },
            },
            headers: HeaderMap::new(),
            at: 0,
            latency_ms: 1.0,
            request: Some(request.into()),
            answer: Answer { status: Some(200), headers, body: answer.into(), whole: true },
        };
        records(&job).unwrap().iter().map(|r| serde_json::from_str(&r.value).unwrap()).collect()
    }

    #[test]
    fn a_batch_is_several_calls_and_answers_are_found_by_id() {
        let call = |id: &str, name: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{"n":1e2}}}}}}"#
            )
        };
        let request = format!("[{},{},{}]", call("1", "a"), call("\"1\"", "b"), call("2", "c"));
        let answer = r#"[{"id":"1","error":{"code":-32602}},{"id":1,"result":{"content":[]}}]"#;
        let rows = mcp_job(&request, "application/json", answer);
        let told: Vec<_> = rows
            .iter()
            .map(|r| (r["tool_id"].as_str().unwrap(), r["outcome"]["status"].as_str().unwrap()))
            .collect();
        assert_eq!(told, [("a", "ok"), ("b", "invalid_arguments"), ("c", "unknown")]);
        assert!(rows.iter().all(|r| r["arguments_text"] == r#"{"n":1e2}"#));
    }

    #[test]
    fn events_may_be_broken_over_lines_and_hold_other_things() {
        let request = r#"{"id":7,"method":"tools/call","params":{"name":"a"}}"#;
        let answer = ": hello\r\nid: 1\r\ndata:\r\n\r\ndata: {\"id\":7,\r\ndata: \"result\":{\"isError\":true}}\r\n\r\ndata: x";
        let rows = mcp_job(request, "text/event-stream; charset=utf-8", answer);
        assert_eq!(rows[0]["outcome"]["status"], "business_error");
        assert_eq!(rows[0]["arguments_text"], "{}");
        for odd in ["", "null", "[[", r#"{"method":"tools/call"}"#, r#"{"method":"tools/list","id":1}"#] {
            assert!(mcp_job(odd, "application/json", "{}").is_empty(), "{odd}");
        }
    }
}
