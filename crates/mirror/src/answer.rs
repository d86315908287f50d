//! What a candidate said, or why it said nothing.

use std::borrow::Cow;
use std::sync::Arc;

use lastcall_event::{Json, Status, Suppression};
use serde::Deserialize;

/// What the candidates made of one call.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// One a candidate of the tool, in the order of the settings.
    pub candidates: Vec<Answer>,
    /// The current version, run again beside them.
    pub current_rerun: Option<Answer>,
}

impl Replayed {
    /// The same without what candidates answered, for a row that is too large to be written: whoever answered is then
    /// `unavailable`, class `answer_too_large`. The rerun is left out.
    #[must_use]
    pub fn lightened(mut self) -> Self {
        self.current_rerun = None;
        for answer in &mut self.candidates {
            if answer.result.is_some() || answer.arguments.is_some() {
                answer.fail(&Failure::AnswerTooLarge);
            }
        }
        self
    }

    /// Bytes that it holds, about.
    pub fn bytes(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let answers = self.candidates.iter().chain(&self.current_rerun);
        answers.map(|a| size_of::<Answer>() + of(&a.result) + of(&a.arguments)).sum()
    }
}

/// What one candidate made of a call: a row's `candidates` entry.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The candidate's contract id.
    pub contract: Arc<str>,
    /// Whether it ran; `None`: nobody knows, or the status says it.
    pub executed: Option<bool>,
    /// How it ended.
    pub status: Status,
    /// JSON text of the arguments that it says it used.
    pub arguments: Option<String>,
    /// Its own error code.
    pub error_code: Option<String>,
    /// The class of the error: its own, or the mirror's (`http_503`, `not_an_answer`, …).
    pub error_class: Option<Cow<'static, str>>,
    /// JSON text of its result.
    pub result: Option<String>,
    /// The result is a part.
    pub partial: Option<bool>,
    /// How the effect was kept from happening. `not_executed`: nothing was sent.
    pub suppression: Suppression,
    /// Milliseconds from sending to the end of the answer.
    pub latency_ms: Option<f64>,
}

impl Answer {
    /// Nothing was sent.
    pub(crate) fn unsent(contract: &Arc<str>, status: Status, class: Option<&'static str>) -> Self {
        Self {
            contract: Arc::clone(contract),
            executed: Some(false),
            status,
            arguments: None,
            error_code: None,
            error_class: class.map(Cow::Borrowed),
            result: None,
            partial: None,
            suppression: Suppression::NotExecuted,
            latency_ms: None,
        }
    }

    fn fail(&mut self, failure: &Failure) {
        (self.status, self.error_class) = (failure.status(), failure.class());
        (self.executed, self.partial) = (None, None);
        (self.arguments, self.result, self.error_code) = (None, None, None);
    }

    /// What came of an exchange.
    pub(crate) fn of(contract: &Arc<str>, suppression: Suppression, exchange: Exchange) -> Self {
        let mut answer = Self { suppression, ..Self::unsent(contract, Status::NotRun, None) };
        match exchange {
            Ok(said) => {
                answer.status = said.status;
                answer.executed = Some(said.ran && matches!(said.status, Status::Ok | Status::BusinessError));
                answer.arguments = said.arguments;
                answer.error_code = said.error_code;
                answer.error_class = said.error_class.map(Cow::Owned);
                answer.result = said.result;
                answer.partial = said.partial;
            }
            Err(failure) => {
                answer.fail(&failure);
                if !failure.was_sent() {
                    (answer.executed, answer.suppression) = (Some(false), Suppression::NotExecuted);
                }
            }
        }
        answer
    }
}

/// What came of one exchange.
pub(crate) type Exchange = Result<Said, Failure>;

/// What a candidate said.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub status: Status,
    /// A candidate ran; a stub does not.
    pub ran: bool,
    pub arguments: Option<String>,
    pub error_code: Option<String>,
    pub error_class: Option<String>,
    pub result: Option<String>,
    pub partial: Option<bool>,
}

impl Said {
    pub fn not_run() -> Self {
        Self { status: Status::NotRun, ..Self::default() }
    }
}

/// Why a candidate was not observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection, or it broke before an answer began.
    Connection,
    /// What came is no answer of the protocol.
    NotAnAnswer,
    /// The answer ended before its end.
    AnswerCut,
    /// It is longer than the settings allow.
    AnswerTooLarge,
    /// An HTTP status that is none of an answer.
    Http(u16),
    /// HTTP 429, or the protocol's word for it.
    TooMany,
    /// The mirror stopped waiting.
    TimedOut,
    /// The candidate does not offer the mode: nothing was sent.
    NotOffered,
    /// It failed too often: nothing was sent.
    CircuitOpen,
    /// An MCP server does not know the tool.
    UnknownTool,
    /// A JSON-RPC error that no other class names.
    Rpc,
    /// The process could not be started, or ended.
    Process,
}

impl Failure {
    pub fn status(self) -> Status {
        match self {
            Self::TooMany => Status::RateLimited,
            Self::TimedOut => Status::TimedOut,
            _ => Status::Unavailable,
        }
    }

    /// The class as a row names it.
    pub fn class(self) -> Option<Cow<'static, str>> {
        match self {
            Self::Http(status) => Some(format!("http_{status}").into()),
            other => Some(other.label().into()),
        }
    }

    /// The class as a metric names it: one of a fixed list.
    pub fn label(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::NotAnAnswer => "not_an_answer",
            Self::AnswerCut => "answer_cut",
            Self::AnswerTooLarge => "answer_too_large",
            Self::Http(500..=599) => "http_5xx",
            Self::Http(400..=499) => "http_4xx",
            Self::Http(300..=399) => "http_3xx",
            Self::Http(_) => "http_other",
            Self::TooMany => "rate_limited",
            Self::TimedOut => "timed_out",
            Self::NotOffered => "dry_run_not_offered",
            Self::CircuitOpen => "circuit_open",
            Self::UnknownTool => "unknown_tool",
            Self::Rpc => "rpc_error",
            Self::Process => "process",
        }
    }

    /// Something may have come to the candidate.
    pub fn was_sent(self) -> bool {
        !matches!(self, Self::NotOffered | Self::CircuitOpen)
    }

    /// Worth another try, where the tool allows it.
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            Self::Connection | Self::AnswerCut | Self::TooMany | Self::Process | Self::Http(500..=599)
        )
    }

    /// Counts against the candidate's health.
    pub fn is_bad(self) -> bool {
        !matches!(self, Self::TooMany | Self::NotOffered | Self::CircuitOpen)
    }
}

/// The longest error code or class.
const MAX_CODE: usize = 256;

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow, default)]
    call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Json<'a>,
    #[serde(borrow, default)]
    result: Json<'a>,
    #[serde(borrow, default)]
    error_code: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    error_class: Option<Cow<'a, str>>,
    #[serde(default)]
    partial: Option<bool>,
}

/// Reads an answer of the candidates' protocol to the call of this id. One that says it answers another is none.
pub(crate) fn said(bytes: &[u8], call_id: &str) -> Option<Said> {
    read(bytes, call_id, false)
}

/// The same of whoever answers several calls one after another: the answer has to name its call.
pub(crate) fn said_by_name(bytes: &[u8], call_id: &str) -> Option<Said> {
    read(bytes, call_id, true)
}

fn read(bytes: &[u8], call_id: &str, by_name: bool) -> Option<Said> {
    let wire: Wire<'_> = serde_json::from_str(std::str::from_utf8(bytes).ok()?).ok()?;
    if by_name && wire.call_id.is_none() {
        return None;
    }
    if wire.call_id.is_some_and(|id| id != call_id) {
        return None;
    }
    let status = match wire.status.as_ref() {
        "ok" => Status::Ok,
        "invalid_arguments" => Status::InvalidArguments,
        "business_error" => Status::BusinessError,
        "permission_denied" => Status::PermissionDenied,
        "rate_limited" => Status::RateLimited,
        "timeout" => Status::Timeout,
        "platform_error" => Status::PlatformError,
        // `unknown` too: a candidate that was run has to say how it ended
        _ => return None,
    };
    let code = |text: Option<Cow<'_, str>>| match text {
        Some(text) if text.len() > MAX_CODE || text.chars().any(char::is_control) => Err(()),
        text => Ok(text.map(Cow::into_owned).filter(|text| !text.is_empty())),
    };
    let arguments = match wire.arguments.get() {
        None | Some("null") => None,
        Some(text) if text.starts_with('{') => Some(on_one_line(text)),
        Some(_) => return None,
    };
    Some(Said {
        status,
        ran: true,
        arguments,
        error_code: code(wire.error_code).ok()?,
        error_class: code(wire.error_class).ok()?,
        result: wire.result.get().map(on_one_line),
        partial: wire.partial,
    })
}

/// JSON text without line breaks, so that a row stays a line; they stand only between tokens.
pub(crate) fn on_one_line(json: &str) -> String {
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_none() {
        return json.to_owned();
    }
    json.chars().filter(|c| !matches!(c, '\n' | '\r')).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn said(bytes: &[u8]) -> Option<Said> {
        super::said(bytes, "c1")
    }

    #[test]
    fn an_answer_is_read_as_it_is() {
        let text = br#"{"status":"ok","result":{"total":1.0,"ids":[1, 2]},"arguments":{"b":1,"a":2e3},"partial":true,"trace":"x","call_id":"c1"}"#;
        let said = said(text).unwrap();
        assert_eq!(said.status, Status::Ok);
        assert_eq!(said.result.as_deref(), Some(r#"{"total":1.0,"ids":[1, 2]}"#));
        assert_eq!(said.arguments.as_deref(), Some(r#"{"b":1,"a":2e3}"#));
        assert_eq!(said.partial, Some(true));
    }

    #[test]
    fn what_is_no_answer_is_none() {
        let long = format!(r#"{{"status":"ok","error_code":"{}"}}"#, "x".repeat(257));
        for text in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"status":1}"#,
            r#"{"status":"OK"}"#,
            r#"{"status":"healthy"}"#,
            r#"{"status":"unknown"}"#,
            r#"{"status":"not_run"}"#,
            r#"{"status":"sampled_out"}"#,
            r#"{"status":"shed"}"#,
            r#"{"status":"timed_out"}"#,
            r#"{"status":"unavailable"}"#,
            r#"{"status":"ok","status":"ok"}"#,
            r#"{"status":"ok","result":1,"result":2}"#,
            r#"{"status":"ok"} {}"#,
            r#"{"status":"ok","result":}"#,
            r#"{"status":"ok","arguments":[]}"#,
            r#"{"status":"ok","partial":"yes"}"#,
            r#"{"status":"ok","call_id":"c2"}"#,
            "<html>ok</html>",
            "\u{feff}{\"status\":\"ok\"}",
            &long,
        ] {
            assert_eq!(said(text.as_bytes()), None, "{text}");
        }
        assert_eq!(said(b"{\"status\":\"ok\",\"result\":\"\xff\"}"), None);
    }

    #[test]
    fn a_result_of_null_is_a_result_and_arguments_of_null_are_none() {
        let said = said(br#"{"status":"ok","result":null,"arguments":null,"error_code":null}"#).unwrap();
        assert_eq!((said.result.as_deref(), said.arguments, said.error_code), (Some("null"), None, None));
    }

    #[test]
    fn line_breaks_between_tokens_go() {
        let said = said(b"{\n\"status\": \"ok\",\r\n \"result\": {\n \"a\\n\": 1\n}\n}").unwrap();
        assert_eq!(said.result.as_deref(), Some("{ \"a\\n\": 1}"));
    }
}
