//! Tool calls as providers and plain logs write them: OpenAI (Chat and Responses), Anthropic, Gemini, MCP requests,
//! or simply a name and arguments. For a first look: such a line has no outcome, and often no time.

use crate::decode::{DecodeError, Decoded, fail, parse};
use serde_json::value::RawValue;

use crate::record::{
    CallRecord, Envelope, Json, MessageWire, Outcome, ProviderInner, ProviderWire, Record, Status, Text,
};
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

/// The tool calls inside a provider's message, response or request body, each as its text: `tool_calls`, content blocks
/// of type `tool_use`, output items of type `function_call`, parts with a `functionCall`, and these inside `choices`,
/// `message`, `messages`, `candidates`, `content`, `response` and `body`. Empty where the line is a call itself, or none.
pub fn calls_in(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
        collect(raw.get(), 0, &mut out);
    }
    out
}

fn collect<'a>(text: &'a str, depth: u8, out: &mut Vec<&'a str>) {
    if depth > 6 || out.len() > 10_000 {
        return;
    }
    if text.starts_with('[') {
        for item in serde_json::from_str::<Vec<&'a RawValue>>(text).unwrap_or_default() {
            block(item.get(), depth, out);
        }
        return;
    }
    let Ok(message) = serde_json::from_str::<MessageWire<'a>>(text) else { return };
    if let Some(calls) = message.tool_calls.get() {
        let list = serde_json::from_str::<Vec<&'a RawValue>>(calls).unwrap_or_default();
        out.extend(list.into_iter().map(RawValue::get));
    }
    let inside = [
        message.content,
        message.output,
        message.parts,
        message.choices,
        message.message,
        message.messages,
        message.candidates,
        message.response,
        message.body,
    ];
    for text in inside.into_iter().filter_map(|json| json.get()) {
        if text.starts_with(['{', '[']) {
            collect(text, depth + 1, out);
        }
    }
}

/// One element of a list: a call block, or something that has calls inside.
fn block<'a>(text: &'a str, depth: u8, out: &mut Vec<&'a str>) {
    let Ok(wire) = serde_json::from_str::<MessageWire<'a>>(text) else { return };
    let is_call = matches!(wire.kind.get(), Some("\"tool_use\"" | "\"function_call\""))
        || !wire.function_call.is_none();
    if is_call { out.push(text) } else { collect(text, depth + 1, out) }
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
