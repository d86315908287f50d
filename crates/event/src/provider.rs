//! Tool calls as providers and plain logs write them: OpenAI (Chat and Responses), Anthropic, Gemini, MCP requests,
//! or simply a name and arguments. For a first look: such a line has no outcome, and often no time.

use crate::decode::{DecodeError, Decoded, fail, parse};
use crate::record::{CallRecord, Envelope, Json, Outcome, ProviderInner, ProviderWire, Record, Status, Text};
use crate::time::Timestamp;

/// Reads one line. `place` becomes the call id where the line has none.
pub(crate) fn provider(text: &str) -> Result<Decoded<'_>, DecodeError> {
    let wire: ProviderWire<'_> = parse(text)?;
    let inner: ProviderInner<'_> =
        wire.function.or(wire.params).or(wire.function_call).or(wire.tool_call).unwrap_or_default();
    let names = [inner.name, wire.name, wire.tool, wire.tool_name, wire.tool_id];
    let Some(name) = names.into_iter().flatten().find(|t| !t.is_empty()) else {
        return fail(
            "missing_field",
            "no tool name: a line needs `name` (or `tool`, `tool_id`, `function.name`, `params.name`) and `arguments`",
        );
    };
    let given = [inner.arguments, inner.args, wire.arguments, wire.args, wire.input, wire.raw_arguments];
    let Some(arguments) = given.into_iter().find(|a| a.get().is_some_and(|t| t != "null")) else {
        return fail(
            "missing_field",
            "no arguments: a line needs `arguments` (or `input`, `args`, `function.arguments`, `params.arguments`)",
        );
    };
    let (value, exact) = match arguments.get() {
        Some(text) if text.starts_with('"') => (Json(None), Some(parse::<Text<'_>>(text)?)),
        _ => (arguments, None),
    };
    let id = [wire.call_id, wire.tool_call_id, inner.id].into_iter().flatten().find(|t| !t.is_empty());
    let id = id.map(|t| t.to_string()).or_else(|| {
        let text = wire.id.get()?;
        Some(text.trim_matches('"').to_owned())
    });
    let ts = [wire.ts, wire.timestamp, wire.time, wire.created_at].into_iter().flatten();
    let ts = ts.filter_map(|t| Timestamp::parse(&t)).next();
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
            agent_id: wire.agent_id.or(wire.agent),
            session_id: wire.session_id.or(wire.session),
            model: wire.model,
            ..Envelope::default()
        },
        ..CallRecord::default()
    };
    Ok(Decoded { record: Record::Call(Box::new(call)), unknown_fields: wire.unknown_fields })
}

/// The time of a line that states none. Only the `provider` preset gives it, and only `try` reads that preset.
pub const NO_TIME: Timestamp = Timestamp(i64::MIN);
