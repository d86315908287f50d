//! What the reply to `tools/call` says in Lastcall's words.

use lastcall_event::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::rpc::Reply;
use crate::answer::{Exchange, Failure, Said, on_one_line};

const INVALID_PARAMS: i64 = -32602;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Result<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
}

#[derive(Deserialize)]
struct Text {
    #[serde(default)]
    text: String,
}

/// Reads the reply.
pub(super) fn said(reply: Reply) -> Exchange {
    match reply {
        Reply::Error { code, message } => match refusal(&message) {
            Some(Refusal::UnknownTool) => Err(Failure::UnknownTool),
            _ if code == INVALID_PARAMS => Ok(refused()),
            _ => Err(Failure::Rpc),
        },
        Reply::Result(text) => {
            let result: Result<'_> = serde_json::from_str(&text).map_err(|_| Failure::NotAnAnswer)?;
            let (content, structured) = (result.content.as_deref(), result.structured_content);
            if content.is_none() && structured.is_none_or(|value| !value.get().starts_with('{')) {
                return Err(Failure::NotAnAnswer);
            }
            if result.is_error != Some(true) {
                let result = Some(on_one_line(&text));
                return Ok(Said { status: Status::Ok, ran: true, result, ..Said::default() });
            }
            let first = content
                .and_then(<[_]>::first)
                .and_then(|block| serde_json::from_str::<Text>(block.get()).ok());
            match first.and_then(|block| refusal(&block.text)) {
                Some(Refusal::UnknownTool) => Err(Failure::UnknownTool),
                Some(Refusal::Arguments) => Ok(Said { result: Some(on_one_line(&text)), ..refused() }),
                Some(Refusal::Output) => Ok(Said {
                    status: Status::PlatformError,
                    ran: true,
                    error_class: Some("output_schema".to_owned()),
                    ..Said::default()
                }),
                None => {
                    let result = Some(on_one_line(&text));
                    Ok(Said { status: Status::BusinessError, ran: true, result, ..Said::default() })
                }
            }
        }
    }
}

fn refused() -> Said {
    Said { status: Status::InvalidArguments, ran: true, ..Said::default() }
}

enum Refusal {
    Arguments,
    UnknownTool,
    /// The server holds its own result against the output schema.
    Output,
}

/// How SDKs say that arguments were refused or a tool is not there. By the texts of the TypeScript and Python SDKs.
fn refusal(text: &str) -> Option<Refusal> {
    let text = text.trim_start();
    let coded = text.strip_prefix("MCP error -32602");
    let rest = coded.map_or(text, |rest| rest.trim_start_matches([':', ' ']));
    let lower: String = rest.chars().take(256).collect::<String>().to_ascii_lowercase();
    let names_a_tool =
        lower.starts_with("tool ") && (lower.contains("not found") || lower.contains("disabled"));
    if lower.starts_with("unknown tool") || names_a_tool {
        return Some(Refusal::UnknownTool);
    }
    if lower.starts_with("output validation error") {
        return Some(Refusal::Output);
    }
    // FastMCP: `Error executing tool NAME: 1 validation error for NAMEArguments`
    let python = lower.starts_with("error executing tool")
        && lower.lines().next().is_some_and(|l| l.contains(" validation error") && l.ends_with("arguments"));
    (coded.is_some() || lower.starts_with("input validation error") || python).then_some(Refusal::Arguments)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(text: &str) -> std::result::Result<Status, Failure> {
        said(Reply::Result(text.to_owned())).map(|said| said.status)
    }

    #[test]
    fn results_say_what_they_are() {
        let text =
            |text: &str| format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}"#);
        assert_eq!(of(r#"{"content":[]}"#), Ok(Status::Ok));
        assert_eq!(of(r#"{"structuredContent":{"a":1}}"#), Ok(Status::Ok));
        assert_eq!(of(r#"{}"#), Err(Failure::NotAnAnswer));
        assert_eq!(of(r#"{"content":null,"structuredContent":1}"#), Err(Failure::NotAnAnswer));
        assert_eq!(of(r#"[]"#), Err(Failure::NotAnAnswer));
        assert_eq!(of(r#"{"content":[],"isError":true}"#), Ok(Status::BusinessError));
        assert_eq!(of(&text("no such order")), Ok(Status::BusinessError));
        assert_eq!(
            of(&text("MCP error -32602: Input validation error: Invalid arguments for tool x")),
            Ok(Status::InvalidArguments)
        );
        assert_eq!(
            of(&text("Input validation error: 'a' is a required property")),
            Ok(Status::InvalidArguments)
        );
        assert_eq!(
            of(&text(r"Error executing tool add: 1 validation error for addArguments\na\n  Field required")),
            Ok(Status::InvalidArguments)
        );
        assert_eq!(of(&text("MCP error -32602: Tool x not found")), Err(Failure::UnknownTool));
        assert_eq!(of(&text("Unknown tool: x")), Err(Failure::UnknownTool));
        assert_eq!(
            of(&text("MCP error -32602: Output validation error: Tool x has an output schema")),
            Ok(Status::PlatformError)
        );
    }

    #[test]
    fn errors_say_what_they_are() {
        let of = |code, message: &str| {
            said(Reply::Error { code, message: message.to_owned() }).map(|said| said.status)
        };
        assert_eq!(of(-32602, "Invalid params"), Ok(Status::InvalidArguments));
        assert_eq!(of(-32602, "Unknown tool: x"), Err(Failure::UnknownTool));
        assert_eq!(of(-32602, "MCP error -32602: Tool x not found"), Err(Failure::UnknownTool));
        assert_eq!(of(-32603, "Internal error"), Err(Failure::Rpc));
        assert_eq!(of(-32601, "Method not found"), Err(Failure::Rpc));
    }
}
