//! Tool calls as providers and plain logs write them: OpenAI (Chat and Responses), Anthropic, Gemini, MCP requests,
//! or simply a name and arguments. For a first look: such a line has no outcome, and often no time.

use crate::decode::{DecodeError, Decoded, fail, parse};
use crate::record::{CallRecord, Envelope, Json, Outcome, ProviderInner, ProviderWire, Record, Status, Text};
use crate::time::Timestamp;

/// Reads one line. `place` becomes the call id where the line has none.
pub(crate) fn provider(text: &str) -> Result<Decoded<'_>, DecodeError> {
    let wire: ProviderWire<'_> = parse(text)?;
    if wire.method.as_deref().is_some_and(|method| method != "tools/call") {
        return fail("not_a_call", "a JSON-RPC request that is no tools/call");
    }
    // in these shapes a call without arguments is legal
    let may_lack_arguments =
        wire.params.is_some() || wire.function_call.is_some() || wire.legacy_call.is_some();
    let inner: ProviderInner<'_> = wire
        .function
        .or(wire.params)
        .or(wire.function_call)
        .or(wire.legacy_call)
        .or(wire.tool_call)
        .unwrap_or_default();
    let names = [inner.name, wire.name, wire.tool, wire.tool_name, wire.tool_id];
    let Some(name) = names.into_iter().flatten().find(|t| !t.is_empty()) else {
        return fail(
            "missing_field",
            "no tool name: a line needs `name` (or `tool`, `tool_id`, `function.name`, `params.name`) and `arguments`",
        );
    };
    let given = [inner.arguments, inner.args, wire.arguments, wire.args, wire.input, wire.raw_arguments];
    let arguments = given.into_iter().find(|a| a.get().is_some_and(|t| t != "null"));
    let (value, exact) = match arguments {
        Some(json) => match json.get() {
            Some(text) if text.starts_with('"') => (Json(None), Some(parse::<Text<'_>>(text)?)),
            _ => (json, None),
        },
        None if may_lack_arguments => (Json(None), Some(Text::from("{}"))),
        None => {
            return fail(
                "missing_field",
                "no arguments: a line needs `arguments` (or `input`, `args`, `function.arguments`, `params.arguments`)",
            );
        }
    };
    let id = [wire.call_id, wire.tool_call_id, inner.id, wire.id].into_iter().find_map(scalar);
    let ts =
        [wire.ts, wire.timestamp, wire.time, wire.created_at].into_iter().filter_map(scalar).find_map(moment);
    let status = match wire.is_error {
        Some(false) => Status::Ok,
        Some(true) => Status::BusinessError,
        None => Status::Unknown,
    };
    let call = CallRecord {
        call_id: Text::from(id.unwrap_or_default()),
        ts: ts.unwrap_or(NO_TIME),
        tool_id: name,
        arguments: value,
        arguments_text: exact.map(|t| Text::from(t.to_string())),
        outcome: Outcome { status, result: wire.result, ..Outcome::default() },
        envelope: Envelope {
            agent_id: scalar(wire.agent_id).or_else(|| scalar(wire.agent)).map(Text::from),
            session_id: scalar(wire.session_id).or_else(|| scalar(wire.session)).map(Text::from),
            model: scalar(wire.model).map(Text::from),
            ..Envelope::default()
        },
        ..CallRecord::default()
    };
    Ok(Decoded { record: Record::Call(Box::new(call)), unknown_fields: wire.unknown_fields })
}

/// A string as it is, a number as its text; anything else says nothing.
fn scalar(json: Json<'_>) -> Option<String> {
    let text = json.get()?;
    let value = match text.bytes().next()? {
        b'"' => serde_json::from_str::<String>(text).ok()?,
        b'-' | b'0'..=b'9' => text.to_owned(),
        _ => return None,
    };
    (!value.is_empty()).then_some(value)
}

/// RFC 3339, or a Unix time in seconds or milliseconds.
fn moment(text: String) -> Option<Timestamp> {
    Timestamp::parse(&text).or_else(|| {
        let number: f64 = text.parse().ok()?;
        let ms = if number.abs() < 1e11 { number * 1000.0 } else { number };
        (ms.abs() < 1e14).then_some(Timestamp(ms as i64))
    })
}

/// The time of a line that states none. Only the `provider` preset gives it, and only `try` reads that preset.
pub const NO_TIME: Timestamp = Timestamp(i64::MIN);
