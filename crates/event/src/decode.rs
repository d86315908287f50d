//! From the bytes of one message to one record. Every refusal has a reason code and says what to do.

use crate::provider::provider;
use crate::record::{
    CallRecord, Candidate, CandidateInput, Coverage, Fidelity, InterceptorWire, Loss, Outcome, Record,
    SniffWire, Status, Suppression, Text, Wire,
};

/// Which shape the messages of a source have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Lastcall's own records: `type`, `schema_version: 1`.
    #[default]
    Native,
    /// The interceptor record of **cutting**: `trace_id`, `current_version`, `current_args`, ….
    Interceptor,
    /// A provider's tool call or a plain log line; for `lastcall try` alone, since such a line has no outcome.
    Provider,
    /// OTLP traces in JSON, as the OpenTelemetry Collector writes them.
    OtlpJson,
    /// OTLP traces in protobuf, as the OpenTelemetry Collector writes them.
    OtlpProto,
    /// CloudEvents, structured or binary.
    #[serde(rename = "cloudevents")]
    CloudEvents,
    /// Any JSON, by a map that the user wrote.
    Map,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 7] = [
        Self::Native,
        Self::Interceptor,
        Self::Provider,
        Self::OtlpJson,
        Self::OtlpProto,
        Self::CloudEvents,
        Self::Map,
    ];

    /// How the records of such a source are stored: what a map made is a record of Lastcall's own.
    pub fn stored(self) -> Self {
        if self.is_mapped() { Self::Native } else { self }
    }

    /// Whether its messages go through a [map](crate::source::Map).
    pub fn is_mapped(self) -> bool {
        matches!(self, Self::OtlpJson | Self::OtlpProto | Self::CloudEvents | Self::Map)
    }

    /// The name on the wire and in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Interceptor => "interceptor",
            Self::Provider => "provider",
            Self::OtlpJson => "otlp_json",
            Self::OtlpProto => "otlp_proto",
            Self::CloudEvents => "cloudevents",
            Self::Map => "map",
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.as_str() == name)
    }

    /// Which preset a line most likely has: by its marks, else [`Preset::Provider`].
    pub fn sniff(bytes: &[u8]) -> Self {
        let Ok(marks) = serde_json::from_slice::<SniffWire<'_>>(bytes) else { return Self::Native };
        if !marks.schema_version.is_none() {
            Self::Native
        } else if !marks.trace_id.is_none() && !marks.current_version.is_none() {
            Self::Interceptor
        } else {
            Self::Provider
        }
    }
}

/// A decoded record and how many of its fields this build does not know.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    /// The record.
    pub record: Record<'a>,
    /// Unknown fields, at every level.
    pub unknown_fields: u32,
}

/// Why a message became a dead letter. The code is stable; the text carries no value of the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct DecodeError {
    /// `not_utf8`, `not_json`, `not_a_record`, `unknown_type`, `unknown_version`, `missing_field`, `bad_field`; of mapped
    /// sources also `not_protobuf`, `bad_framing`, `avro`.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: String,
}

/// The longest id, in bytes: ids stand in every count.
const MAX_ID_BYTES: usize = 1024;

/// A control character; plain ASCII is told without decoding it.
fn has_control(id: &str) -> bool {
    let plain = id.bytes().fold(true, |plain, b| plain & matches!(b, b' '..=b'~'));
    !plain && id.chars().any(char::is_control)
}

pub(crate) fn fail<T>(code: &'static str, message: impl Into<String>) -> Result<T, DecodeError> {
    Err(DecodeError { code, message: message.into() })
}

fn need<T>(value: Option<T>, field: &str, kind: &str) -> Result<T, DecodeError> {
    match value {
        Some(value) => Ok(value),
        None => {
            let article = if kind.starts_with('i') { "an" } else { "a" };
            fail("missing_field", format!("{article} {kind} needs `{field}`; add it in the producer"))
        }
    }
}

/// serde's message without the value that it quotes: dead letters' reasons are not personal data.
pub(crate) fn masked(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let kind = text.split(['`', '"', ':']).next().unwrap_or("").trim_end();
    let kept =
        if text.starts_with("duplicate field") || text.starts_with("unknown variant") { text } else { kind };
    let kept = if kept.starts_with("unknown variant") {
        match kept.split_once(", expected") {
            Some((_, expected)) => format!("unknown value, expected{expected}"),
            None => "unknown value".to_owned(),
        }
    } else {
        kept.to_owned()
    };
    format!("{kept} at column {}", error.column())
}

/// Reads one message.
pub fn decode<'a>(bytes: &'a [u8], preset: Preset) -> Result<Decoded<'a>, DecodeError> {
    decode_text(text(bytes)?, preset)
}

/// The text of a message.
pub fn text(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).or_else(|error| {
        let message = match bytes {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                "UTF-16 text, by its byte order mark; events are UTF-8 JSON: save the file as UTF-8"
                    .to_owned()
            }
            _ => format!("byte {} is not UTF-8; events are UTF-8 JSON", error.valid_up_to()),
        };
        fail("not_utf8", message)
    })
}

/// Reads the text of one message.
pub fn decode_text<'a>(text: &'a str, preset: Preset) -> Result<Decoded<'a>, DecodeError> {
    match preset {
        Preset::Native => native(parse(text)?),
        Preset::Interceptor => interceptor(parse(text)?),
        Preset::Provider => provider(text),
        // a message of these may hold many records
        Preset::OtlpJson | Preset::OtlpProto | Preset::CloudEvents | Preset::Map => {
            fail("not_a_record", "messages of this preset are read with its map")
        }
    }
}

pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, DecodeError> {
    serde_json::from_str(text).or_else(|error| match error.classify() {
        serde_json::error::Category::Data => {
            let is_object = text.trim_start().starts_with('{');
            let code = if is_object { "bad_field" } else { "not_a_record" };
            fail(code, format!("{}; see schemas/events for the shape of a record", masked(&error)))
        }
        _ => fail("not_json", format!("{}; one JSON object a message is expected", masked(&error))),
    })
}

fn native(wire: Wire<'_>) -> Result<Decoded<'_>, DecodeError> {
    let Some(kind) = wire.kind.as_deref() else {
        return fail(
            "missing_field",
            "a record needs `type` (tool_call, mirrored_call, coverage, loss or clock); \
             for another producer's records name its preset",
        );
    };
    match wire.schema_version {
        Some(1) => {}
        Some(other) => {
            return fail(
                "unknown_version",
                format!("schema_version {other} is not known to this build; it reads 1"),
            );
        }
        None => return fail("missing_field", "a record needs `schema_version: 1`"),
    }
    let unknown = wire.unknown_fields;
    match kind {
        "tool_call" | "mirrored_call" => {
            let call = CallRecord {
                call_id: need(wire.call_id, "call_id", kind)?,
                ts: need(wire.ts, "ts", kind)?,
                tool_id: need(wire.tool_id, "tool_id", kind)?,
                contract_id: wire.contract_id,
                contract_digest: wire.contract_digest,
                arguments: wire.arguments,
                arguments_text: wire.arguments_text,
                fidelity: wire.fidelity.unwrap_or_default(),
                outcome: need(wire.outcome, "outcome", kind)?,
                envelope: wire.envelope.unwrap_or_default(),
                upstream: wire.upstream,
                candidates: wire.candidates.unwrap_or_default(),
                current_rerun: wire.current_rerun,
                mirrored: kind == "mirrored_call",
                unknown_fields: unknown,
                ..CallRecord::default()
            };
            if call.call_id.is_empty() || call.tool_id.is_empty() {
                return fail(
                    "missing_field",
                    format!("a {kind} needs a `call_id` and a `tool_id` that are not empty"),
                );
            }
            let e = &call.envelope;
            let ids = [
                ("call_id", Some(&call.call_id)),
                ("tool_id", Some(&call.tool_id)),
                ("contract_id", call.contract_id.as_ref()),
                ("contract_digest", call.contract_digest.as_ref()),
                ("agent_id", e.agent_id.as_ref()),
                ("cohort", e.cohort.as_ref()),
                ("session_id", e.session_id.as_ref()),
                ("run_id", e.run_id.as_ref()),
                ("trace_id", e.trace_id.as_ref()),
            ];
            for (field, id) in ids {
                let Some(id) = id else { continue };
                if id.len() > MAX_ID_BYTES {
                    return fail(
                        "bad_field",
                        format!("`{field}` is longer than {MAX_ID_BYTES} bytes; an id is short"),
                    );
                }
                if has_control(id) {
                    return fail(
                        "bad_field",
                        format!("`{field}` holds a control character; an id is printable"),
                    );
                }
            }
            if call.arguments.is_none() && call.arguments_text.is_none() {
                return fail(
                    "missing_field",
                    format!(
                        "a {kind} needs `arguments` or `arguments_text`; a call without arguments sends {{}}"
                    ),
                );
            }
            if !call.arguments.is_none() && call.arguments_text.is_some() {
                return fail(
                    "bad_field",
                    format!(
                        "a {kind} carries `arguments` or `arguments_text`, not both: which one did the tool see?"
                    ),
                );
            }
            if kind == "tool_call" && !call.candidates.is_empty() {
                return fail("bad_field", "a tool_call has no `candidates`; that is a mirrored_call");
            }
            if call.candidates.iter().any(|c| c.contract_id.is_empty()) {
                return fail("missing_field", "each of `candidates` needs a `contract_id`");
            }
            let unknown_fields = call.unknown_total();
            Ok(Decoded { record: Record::Call(Box::new(call)), unknown_fields })
        }
        "coverage" => {
            let row = Coverage {
                tool_id: wire.tool_id,
                hour: wire.hour,
                count: wire.count,
                through: wire.through,
                upstream: wire.upstream,
                ..Coverage::default()
            };
            let counts = row.tool_id.is_some() && row.hour.is_some() && row.count.is_some();
            if !counts && row.upstream.is_none() {
                return fail(
                    "missing_field",
                    "a coverage record needs `tool_id`, `hour` and `count`, or `upstream`",
                );
            }
            Ok(Decoded { record: Record::Coverage(row), unknown_fields: unknown })
        }
        "loss" => {
            let row = Loss {
                tool_id: wire.tool_id,
                count: need(wire.count, "count", "loss")?,
                interval: need(wire.interval, "interval", "loss")?,
                ..Loss::default()
            };
            Ok(Decoded { record: Record::Loss(row), unknown_fields: unknown })
        }
        "clock" => {
            Ok(Decoded { record: Record::Clock(need(wire.ts, "ts", "clock")?), unknown_fields: unknown })
        }
        _ => fail(
            "unknown_type",
            "`type` is not one that this build reads: tool_call, mirrored_call, coverage, loss, clock",
        ),
    }
}

fn interceptor(wire: InterceptorWire<'_>) -> Result<Decoded<'_>, DecodeError> {
    const KIND: &str = "interceptor record";
    let tool_id = need(wire.tool_id, "tool_id", KIND)?;
    let trace_id = need(wire.trace_id, "trace_id", KIND)?;
    let version = need(wire.current_version, "current_version", KIND)?;
    let (arguments, fidelity) = match (wire.raw_args.is_none(), wire.current_args.is_none()) {
        (false, _) => (wire.raw_args, Fidelity::Raw),
        (true, false) => (wire.current_args, Fidelity::Normalized),
        (true, true) => {
            return fail("missing_field", "an interceptor record needs `raw_args` or `current_args`");
        }
    };
    let status = status_of(&need(wire.outcome, "outcome", KIND)?);
    let mut candidates = Vec::new();
    if let Some(candidate_version) = &wire.candidate_version {
        let mut candidate = Candidate {
            contract_id: Text::from(format!("{}@{}", &*tool_id, &**candidate_version)),
            input: CandidateInput::Raw,
            suppression: Suppression::DryRun,
            ..Candidate::default()
        };
        if let Some(error) = wire.candidate_error {
            let class = error.split(':').next().unwrap_or("").trim().to_owned();
            candidate.status =
                if names_a_refusal(&class) { Status::InvalidArguments } else { Status::PlatformError };
            candidate.error_class = Some(Text::from(class));
            candidate.executed = Some(false);
        } else {
            candidate.status = wire.candidate_status.as_deref().map_or(Status::Unknown, status_of);
            candidate.executed = Some(matches!(candidate.status, Status::Ok | Status::BusinessError));
            candidate.arguments = wire.candidate_args;
        }
        candidates.push(candidate);
    }
    let mut envelope = wire.envelope.unwrap_or_default();
    if envelope.trace_id.is_none() {
        envelope.trace_id = Some(trace_id.clone());
    }
    let call = CallRecord {
        call_id: trace_id,
        ts: need(wire.ts, "ts", KIND)?,
        contract_id: Some(Text::from(format!("{}@{}", &*tool_id, &*version))),
        tool_id,
        arguments,
        fidelity,
        outcome: Outcome { status, ..Outcome::default() },
        envelope,
        candidates,
        unknown_fields: wire.unknown_fields,
        ..CallRecord::default()
    };
    let unknown_fields = call.unknown_total();
    Ok(Decoded { record: Record::Call(Box::new(call)), unknown_fields })
}

/// Statuses of other people's records: our own names and the usual synonyms; anything else is unknown.
pub(crate) fn status_of(text: &str) -> Status {
    match text.to_ascii_lowercase().as_str() {
        "ok" | "success" | "succeeded" | "completed" => Status::Ok,
        "invalid_arguments" | "invalid_params" | "validation_error" => Status::InvalidArguments,
        "business_error" | "rejected" => Status::BusinessError,
        "permission_denied" | "forbidden" | "unauthorized" => Status::PermissionDenied,
        "rate_limited" | "throttled" => Status::RateLimited,
        "timeout" => Status::Timeout,
        "platform_error" | "internal_error" => Status::PlatformError,
        "timed_out" => Status::TimedOut,
        "shed" => Status::Shed,
        "unavailable" => Status::Unavailable,
        "sampled_out" => Status::SampledOut,
        "not_run" => Status::NotRun,
        _ => Status::Unknown,
    }
}

/// Exception classes by which validators say that arguments were refused.
fn names_a_refusal(class: &str) -> bool {
    let class = class.to_ascii_lowercase();
    ["validation", "invalidargument", "invalidparam", "schemaerror"].iter().any(|part| class.contains(part))
}
