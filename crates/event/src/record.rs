//! The record types. Borrowed from the bytes that arrived; owned only where a string carried an escape.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::time::Timestamp;

/// A JSON string: borrowed where it has no escape.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> serde::de::Visitor<'de> for V {
            type Value = Cow<'de, str>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(v))
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(v.to_owned()))
            }
        }
        d.deserialize_str(V).map(Self)
    }
}

impl JsonSchema for Text<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "string", "format": "date-time",
            "description": "RFC 3339 with an offset, for example 2026-06-01T09:30:00Z."
        })
    }
}

/// How faithful the arguments are to what the model produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// The exact text or value that the model produced.
    #[default]
    Raw,
    /// Rebuilt from another form (OTLP attributes, for example): counted, and named in the headline.
    Reconstructed,
    /// The producer normalized the arguments before it recorded them: says nothing about what the model sent.
    Normalized,
    /// The producer did not record the arguments; `arguments` is then `null`.
    NotCaptured,
}

/// How a call ended. The last five are of candidates only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It gave a result.
    Ok,
    /// The tool refused the arguments.
    InvalidArguments,
    /// The business said no.
    BusinessError,
    /// The caller may not do that.
    PermissionDenied,
    /// Too many calls.
    RateLimited,
    /// The tool itself timed out.
    Timeout,
    /// The tool failed.
    PlatformError,
    /// The producer does not know.
    #[default]
    Unknown,
    /// The mirror stopped waiting.
    TimedOut,
    /// The mirror left it out under load.
    Shed,
    /// The candidate's endpoint could not be reached, or answered HTTP 5xx.
    Unavailable,
    /// The plan's sampling left it out.
    SampledOut,
    /// Not executed, by configuration.
    NotRun,
}

impl Status {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::InvalidArguments => "invalid_arguments",
            Self::BusinessError => "business_error",
            Self::PermissionDenied => "permission_denied",
            Self::RateLimited => "rate_limited",
            Self::Timeout => "timeout",
            Self::PlatformError => "platform_error",
            Self::Unknown => "unknown",
            Self::TimedOut => "timed_out",
            Self::Shed => "shed",
            Self::Unavailable => "unavailable",
            Self::SampledOut => "sampled_out",
            Self::NotRun => "not_run",
        }
    }
}

/// How the mirror kept the effect from happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Suppression {
    /// Read from a replica.
    Replica,
    /// Read from a snapshot.
    Snapshot,
    /// The candidate's own dry run.
    DryRun,
    /// A sandbox tenant.
    Sandbox,
    /// A stub that validates and makes a result up.
    Stub,
    /// Not executed at all.
    #[default]
    NotExecuted,
}

/// What the candidate was fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CandidateInput {
    /// The raw arguments that the model produced.
    #[default]
    Raw,
    /// What the declared adapter made of them.
    Adapted,
}

/// Declares a record struct with a reader that counts unknown fields instead of failing on them, and that refuses
/// a field given twice.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident<$lt:lifetime> { $($(#[$fmeta:meta])* $field:ident : $ty:ty = $key:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, Serialize, JsonSchema)]
        pub struct $name<$lt> {
            $($(#[$fmeta])* #[serde(rename = $key)] pub $field: $ty,)*
            /// Fields that this build does not know. Not on the wire.
            #[serde(skip)]
            pub unknown_fields: u32,
            #[serde(skip)]
            #[doc(hidden)]
            pub marker: std::marker::PhantomData<&$lt ()>,
        }

        impl<'de: $lt, $lt> Deserialize<'de> for $name<$lt> {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                #[allow(non_camel_case_types)]
                #[derive(Clone, Copy)]
                enum Field { $($field,)* Other }
                struct FieldVisitor;
                impl serde::de::Visitor<'_> for FieldVisitor {
                    type Value = Field;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a field name")
                    }
                    fn visit_str<E>(self, v: &str) -> Result<Field, E> {
                        Ok(match v { $($key => Field::$field,)* _ => Field::Other })
                    }
                }
                struct FieldSeed;
                impl<'de> serde::de::DeserializeSeed<'de> for FieldSeed {
                    type Value = Field;
                    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Field, D::Error> {
                        d.deserialize_identifier(FieldVisitor)
                    }
                }
                struct V<$lt>(std::marker::PhantomData<&$lt ()>);
                impl<'de: $lt, $lt> serde::de::Visitor<'de> for V<$lt> {
                    type Value = $name<$lt>;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let mut out = $name::default();
                        let mut seen = 0u64;
                        while let Some(field) = map.next_key_seed(FieldSeed)? {
                            match field {
                                $(Field::$field => {
                                    if seen & (1 << (Field::$field as u8)) != 0 {
                                        return Err(serde::de::Error::duplicate_field($key));
                                    }
                                    seen |= 1 << (Field::$field as u8);
                                    out.$field = map.next_value()?;
                                })*
                                Field::Other => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                    out.unknown_fields += 1;
                                }
                            }
                        }
                        Ok(out)
                    }
                }
                d.deserialize_map(V(std::marker::PhantomData))
            }
        }
    };
}

/// An exact piece of JSON text, or nothing. `null` is a piece of JSON text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json<'a>(pub Option<&'a RawValue>);

impl<'a> Json<'a> {
    /// The text, if there is one.
    pub fn get(&self) -> Option<&'a str> {
        self.0.map(RawValue::get)
    }
    /// Nothing there.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(d).map(|raw| Self(Some(raw)))
    }
}

impl JsonSchema for Json<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!(true)
    }
}

record! {
    /// How a call ended, as the producer recorded it.
    Outcome<'a> {
        /// Status.
        status: Status = "status",
        /// Whether the tool ran the call. Absent: `ok` and `business_error` mean yes, any other status no.
        #[serde(skip_serializing_if = "Option::is_none")]
        executed: Option<bool> = "executed",
        /// The tool's own error code.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_code: Option<Text<'a>> = "error_code",
        /// The class of the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_class: Option<Text<'a>> = "error_class",
        /// The result, as it was.
        #[serde(skip_serializing_if = "Json::is_none")]
        result: Json<'a> = "result",
        /// The result's top-level keys alone, where the producer keeps no results.
        #[serde(skip_serializing_if = "Option::is_none")]
        result_keys: Option<Vec<Text<'a>>> = "result_keys",
        /// The result is a part or a page.
        #[serde(skip_serializing_if = "Option::is_none")]
        partial: Option<bool> = "partial",
        /// Milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        latency_ms: Option<f64> = "latency_ms",
    }
}

impl Outcome<'_> {
    /// Whether production executed the call (settled reading: comparison.md section 8).
    pub fn was_executed(&self) -> bool {
        self.executed.unwrap_or(matches!(self.status, Status::Ok | Status::BusinessError))
    }
}

record! {
    /// Who called, under which authority: the audit envelope.
    Envelope<'a> {
        /// The agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<Text<'a>> = "agent_id",
        /// Its version.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_version: Option<Text<'a>> = "agent_version",
        /// The version of its prompt.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_version: Option<Text<'a>> = "prompt_version",
        /// The model.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<Text<'a>> = "model",
        /// On whose behalf, outermost first.
        #[serde(skip_serializing_if = "Option::is_none")]
        delegation: Option<Vec<Text<'a>>> = "delegation",
        /// The run.
        #[serde(skip_serializing_if = "Option::is_none")]
        run_id: Option<Text<'a>> = "run_id",
        /// The provider's id of the tool call.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<Text<'a>> = "tool_call_id",
        /// The session: the unit of the statistics.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<Text<'a>> = "session_id",
        /// The cohort of callers.
        #[serde(skip_serializing_if = "Option::is_none")]
        cohort: Option<Text<'a>> = "cohort",
        /// Trace.
        #[serde(skip_serializing_if = "Option::is_none")]
        trace_id: Option<Text<'a>> = "trace_id",
        /// Span.
        #[serde(skip_serializing_if = "Option::is_none")]
        span_id: Option<Text<'a>> = "span_id",
        /// The policy under which the call was allowed.
        #[serde(skip_serializing_if = "Option::is_none")]
        policy_version: Option<Text<'a>> = "policy_version",
        /// The policy's decision.
        #[serde(skip_serializing_if = "Option::is_none")]
        policy_decision: Option<Text<'a>> = "policy_decision",
        /// The decision's reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        policy_reason: Option<Text<'a>> = "policy_reason",
        /// What became of the side effect.
        #[serde(skip_serializing_if = "Option::is_none")]
        side_effect_outcome: Option<Text<'a>> = "side_effect_outcome",
    }
}

record! {
    /// Which upstream positions a mirrored row stands for.
    Upstream<'a> {
        /// First upstream position.
        from: i64 = "from",
        /// One past the last.
        to: i64 = "to",
        /// How far in time the mirror knows its upstream complete.
        #[serde(skip_serializing_if = "Option::is_none")]
        through: Option<Timestamp> = "through",
    }
}

record! {
    /// What one candidate made of the call.
    Candidate<'a> {
        /// The candidate's contract, `tool_id@version`.
        contract_id: Text<'a> = "contract_id",
        /// What it was fed.
        input: CandidateInput = "input",
        /// Whether it ran under suppression.
        #[serde(skip_serializing_if = "Option::is_none")]
        executed: Option<bool> = "executed",
        /// How it ended.
        status: Status = "status",
        /// The arguments that the candidate says it used (or, adapted, that the adapter made).
        #[serde(skip_serializing_if = "Json::is_none")]
        arguments: Json<'a> = "arguments",
        /// The candidate's own error code.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_code: Option<Text<'a>> = "error_code",
        /// The class of the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_class: Option<Text<'a>> = "error_class",
        /// The result, as it was.
        #[serde(skip_serializing_if = "Json::is_none")]
        result: Json<'a> = "result",
        /// The result's top-level keys alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        result_keys: Option<Vec<Text<'a>>> = "result_keys",
        /// The result is a part or a page.
        #[serde(skip_serializing_if = "Option::is_none")]
        partial: Option<bool> = "partial",
        /// How the effect was kept from happening.
        suppression: Suppression = "suppression",
        /// Milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        latency_ms: Option<f64> = "latency_ms",
    }
}

record! {
    /// One production tool call, and in a `mirrored_call` what candidates made of it.
    CallRecord<'a> {
        /// Unique per attempt.
        call_id: Text<'a> = "call_id",
        /// The call's own time.
        ts: Timestamp = "ts",
        /// The stable id of the tool.
        tool_id: Text<'a> = "tool_id",
        /// The contract that production used, `tool_id@version`.
        #[serde(skip_serializing_if = "Option::is_none")]
        contract_id: Option<Text<'a>> = "contract_id",
        /// Its digest as the producer knows it.
        #[serde(skip_serializing_if = "Option::is_none")]
        contract_digest: Option<Text<'a>> = "contract_digest",
        /// The arguments as a JSON value.
        #[serde(skip_serializing_if = "Json::is_none")]
        arguments: Json<'a> = "arguments",
        /// The exact argument string, where the provider sends one.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments_text: Option<Text<'a>> = "arguments_text",
        /// How faithful the arguments are.
        fidelity: Fidelity = "fidelity",
        /// How the call ended.
        outcome: Outcome<'a> = "outcome",
        /// Who called.
        envelope: Envelope<'a> = "envelope",
        /// In a mirrored call: its place upstream.
        #[serde(skip_serializing_if = "Option::is_none")]
        upstream: Option<Upstream<'a>> = "upstream",
        /// In a mirrored call: what each candidate made of it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        candidates: Vec<Candidate<'a>> = "candidates",
        /// The current version run again on the same replica.
        #[serde(skip_serializing_if = "Option::is_none")]
        current_rerun: Option<Candidate<'a>> = "current_rerun",
        /// It came as a `mirrored_call`: a candidate without a row is then missing, not left out on purpose. Not on
        /// the wire under this name.
        #[serde(skip)]
        #[schemars(skip)]
        mirrored: bool = "\u{0}mirrored",
    }
}

record! {
    /// Call counts of a producer that has no mirror, or (with `upstream`) an idle mirror's position.
    Coverage<'a> {
        /// The tool; absent in an idle mirror's row.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_id: Option<Text<'a>> = "tool_id",
        /// Start of the hour that is counted.
        #[serde(skip_serializing_if = "Option::is_none")]
        hour: Option<Timestamp> = "hour",
        /// Calls of the tool in that hour.
        #[serde(skip_serializing_if = "Option::is_none")]
        count: Option<u64> = "count",
        /// How far in time the producer's counts are complete.
        #[serde(skip_serializing_if = "Option::is_none")]
        through: Option<Timestamp> = "through",
        /// An idle mirror's position.
        #[serde(skip_serializing_if = "Option::is_none")]
        upstream: Option<Upstream<'a>> = "upstream",
    }
}

record! {
    /// What an interceptor had to drop: unresolved calls.
    Loss<'a> {
        /// The tool; absent when the interceptor does not know.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_id: Option<Text<'a>> = "tool_id",
        /// Calls dropped.
        count: u64 = "count",
        /// From when to when.
        interval: Interval<'a> = "interval",
    }
}

record! {
    /// A half-open interval of time.
    Interval<'a> {
        /// First moment.
        from: Timestamp = "from",
        /// One past the last.
        to: Timestamp = "to",
    }
}

record! {
    /// Moves a simulated ledger's time.
    Clock<'a> {
        /// The new time.
        ts: Timestamp = "ts",
    }
}

/// One decoded record.
#[derive(Clone, Debug)]
pub enum Record<'a> {
    /// `tool_call` or `mirrored_call`.
    Call(Box<CallRecord<'a>>),
    /// `coverage`.
    Coverage(Coverage<'a>),
    /// `loss`.
    Loss(Loss<'a>),
    /// `clock`.
    Clock(Timestamp),
}

impl CallRecord<'_> {
    /// What stands behind the tool's id in the contract id of a call whose contract is one of several: nobody knows which.
    pub const UNKNOWN_CONTRACT: &'static str = "@?";

    /// The call was made under one of the tool's contracts, and nobody knows which.
    pub fn contract_is_unknown(&self) -> bool {
        self.contract_id.as_ref().is_some_and(|id| id.ends_with(Self::UNKNOWN_CONTRACT))
    }

    /// Unknown fields at every level.
    pub fn unknown_total(&self) -> u32 {
        let candidate = |c: &Candidate<'_>| c.unknown_fields;
        self.unknown_fields
            + self.outcome.unknown_fields
            + self.envelope.unknown_fields
            + self.upstream.as_ref().map_or(0, |u| u.unknown_fields)
            + self.candidates.iter().map(candidate).sum::<u32>()
            + self.current_rerun.as_ref().map_or(0, candidate)
    }
}

record! {
    /// Every field of every type, so that one pass reads a record whose `type` comes last.
    Wire<'a> {
        kind: Option<Text<'a>> = "type",
        schema_version: Option<u64> = "schema_version",
        call_id: Option<Text<'a>> = "call_id",
        ts: Option<Timestamp> = "ts",
        tool_id: Option<Text<'a>> = "tool_id",
        contract_id: Option<Text<'a>> = "contract_id",
        contract_digest: Option<Text<'a>> = "contract_digest",
        arguments: Json<'a> = "arguments",
        arguments_text: Option<Text<'a>> = "arguments_text",
        fidelity: Option<Fidelity> = "fidelity",
        outcome: Option<Outcome<'a>> = "outcome",
        envelope: Option<Envelope<'a>> = "envelope",
        upstream: Option<Upstream<'a>> = "upstream",
        candidates: Option<Vec<Candidate<'a>>> = "candidates",
        current_rerun: Option<Candidate<'a>> = "current_rerun",
        hour: Option<Timestamp> = "hour",
        count: Option<u64> = "count",
        through: Option<Timestamp> = "through",
        interval: Option<Interval<'a>> = "interval",
    }
}

record! {
    /// The record that the interceptor of **cutting** enqueues, with `raw_args` beside it.
    InterceptorWire<'a> {
        trace_id: Option<Text<'a>> = "trace_id",
        tool_id: Option<Text<'a>> = "tool_id",
        current_version: Option<Text<'a>> = "current_version",
        candidate_version: Option<Text<'a>> = "candidate_version",
        ts: Option<Timestamp> = "ts",
        raw_args: Json<'a> = "raw_args",
        current_args: Json<'a> = "current_args",
        outcome: Option<Text<'a>> = "outcome",
        candidate_args: Json<'a> = "candidate_args",
        candidate_status: Option<Text<'a>> = "candidate_status",
        candidate_error: Option<Text<'a>> = "candidate_error",
        discrepancies: Json<'a> = "discrepancies",
        envelope: Option<Envelope<'a>> = "envelope",
    }
}

record! {
    /// Where providers put a call's name and arguments.
    ProviderInner<'a> {
        id: Json<'a> = "id",
        name: Option<Text<'a>> = "name",
        arguments: Json<'a> = "arguments",
        args: Json<'a> = "args",
    }
}

record! {
    /// A provider's tool call, or a plain log line. Scalars are read leniently.
    ProviderWire<'a> {
        id: Json<'a> = "id",
        method: Option<Text<'a>> = "method",
        call_id: Json<'a> = "call_id",
        tool_call_id: Json<'a> = "tool_call_id",
        name: Option<Text<'a>> = "name",
        tool: Option<Text<'a>> = "tool",
        tool_name: Option<Text<'a>> = "tool_name",
        tool_id: Option<Text<'a>> = "tool_id",
        arguments: Json<'a> = "arguments",
        raw_arguments: Json<'a> = "raw_arguments",
        args: Json<'a> = "args",
        input: Json<'a> = "input",
        function: Option<ProviderInner<'a>> = "function",
        params: Option<ProviderInner<'a>> = "params",
        function_call: Option<ProviderInner<'a>> = "functionCall",
        legacy_call: Option<ProviderInner<'a>> = "function_call",
        tool_call: Option<ProviderInner<'a>> = "tool_call",
        ts: Json<'a> = "ts",
        timestamp: Json<'a> = "timestamp",
        time: Json<'a> = "time",
        created_at: Json<'a> = "created_at",
        agent: Json<'a> = "agent",
        agent_id: Json<'a> = "agent_id",
        session: Json<'a> = "session",
        session_id: Json<'a> = "session_id",
        model: Json<'a> = "model",
        result: Json<'a> = "result",
        is_error: Option<bool> = "is_error",
    }
}

record! {
    /// Where providers' messages and responses keep tool calls.
    MessageWire<'a> {
        kind: Json<'a> = "type",
        tool_calls: Json<'a> = "tool_calls",
        content: Json<'a> = "content",
        output: Json<'a> = "output",
        parts: Json<'a> = "parts",
        choices: Json<'a> = "choices",
        message: Json<'a> = "message",
        messages: Json<'a> = "messages",
        candidates: Json<'a> = "candidates",
        response: Json<'a> = "response",
        body: Json<'a> = "body",
        function_call: Json<'a> = "functionCall",
    }
}

record! {
    /// What tells the presets apart.
    SniffWire<'a> {
        schema_version: Json<'a> = "schema_version",
        trace_id: Json<'a> = "trace_id",
        current_version: Json<'a> = "current_version",
    }
}
