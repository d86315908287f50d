//! The places of a record as redaction sees them: what must stay so that a record can be read, counted and found again,
//! and where arguments and results stand.

use crate::decode::Preset;

/// What may become of the value at one place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing: without it the record could not be read, counted or found again.
    Fixed,
    /// Any JSON that the record can do without.
    Free,
    /// Any JSON that the record must have: it may be hidden, not left out. Below it everything is free.
    Needed,
    /// A text that the record can do without.
    Text,
    /// A text that holds the JSON text of arguments: rules for the arguments reach into it.
    Encoded,
    /// A text whose part before the first colon names a class, which stays.
    Classed,
    /// An object of known fields; a field that this build does not know is free.
    Record(&'static [(&'static str, Place)]),
    /// A list of such places.
    List(&'static Place),
}

use Place::{Classed, Encoded, Fixed, Free, List, Needed, Record, Text};

const TEXTS: Place = List(&Text);

const ENVELOPE: Place = Record(&[
    ("agent_id", Text),
    ("agent_version", Text),
    ("prompt_version", Text),
    ("model", Text),
    ("delegation", TEXTS),
    ("run_id", Text),
    ("tool_call_id", Text),
    ("session_id", Text),
    // registrations choose calls by it
    ("cohort", Fixed),
    ("trace_id", Text),
    ("span_id", Text),
    ("policy_version", Text),
    ("policy_decision", Text),
    ("policy_reason", Text),
    ("side_effect_outcome", Text),
]);

const OUTCOME: Place = Record(&[
    ("status", Fixed),
    ("executed", Fixed),
    ("error_code", Text),
    ("error_class", Text),
    ("result", Free),
    ("result_keys", TEXTS),
    ("partial", Fixed),
    ("latency_ms", Fixed),
]);

const CANDIDATE: Place = Record(&[
    ("contract_id", Fixed),
    ("input", Fixed),
    ("executed", Fixed),
    ("status", Fixed),
    ("arguments", Free),
    ("error_code", Text),
    ("error_class", Text),
    ("result", Free),
    ("result_keys", TEXTS),
    ("partial", Fixed),
    ("suppression", Fixed),
    ("latency_ms", Fixed),
]);

const NATIVE: Place = Record(&[
    ("type", Fixed),
    ("schema_version", Fixed),
    ("call_id", Fixed),
    ("ts", Fixed),
    ("tool_id", Fixed),
    ("contract_id", Fixed),
    ("contract_digest", Fixed),
    ("arguments", Needed),
    ("arguments_text", Encoded),
    ("fidelity", Fixed),
    ("outcome", OUTCOME),
    ("envelope", ENVELOPE),
    ("upstream", Fixed),
    ("candidates", List(&CANDIDATE)),
    ("current_rerun", CANDIDATE),
    ("hour", Fixed),
    ("count", Fixed),
    ("through", Fixed),
    ("interval", Fixed),
]);

const INTERCEPTOR: Place = Record(&[
    // the call's id
    ("trace_id", Fixed),
    ("tool_id", Fixed),
    ("current_version", Fixed),
    ("candidate_version", Fixed),
    ("ts", Fixed),
    ("raw_args", Needed),
    ("current_args", Needed),
    ("outcome", Fixed),
    ("candidate_args", Free),
    ("candidate_status", Fixed),
    // a validator's message quotes what it refused
    ("candidate_error", Classed),
    ("discrepancies", Free),
    ("envelope", ENVELOPE),
]);

/// Where the record repeats a call's arguments; `*` stands for any index.
const NATIVE_ARGUMENTS: &[&[&str]] = &[
    &["arguments"],
    &["arguments_text"],
    &["candidates", "*", "arguments"],
    &["current_rerun", "arguments"],
];
const INTERCEPTOR_ARGUMENTS: &[&[&str]] = &[&["raw_args"], &["current_args"], &["candidate_args"]];
const NATIVE_RESULTS: &[&[&str]] =
    &[&["outcome", "result"], &["candidates", "*", "result"], &["current_rerun", "result"]];

impl Preset {
    /// The places of a record of this preset.
    pub fn places(self) -> Place {
        match self {
            Self::Native => NATIVE,
            Self::Interceptor => INTERCEPTOR,
            // The ledger does not take such lines.
            Self::Provider => Record(&[]),
            // What a map made.
            Self::OtlpJson | Self::OtlpProto | Self::CloudEvents | Self::Map => NATIVE,
        }
    }

    /// Where such a record holds a call's arguments. A path of keys; `*` stands for any index.
    pub fn argument_places(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Native => NATIVE_ARGUMENTS,
            Self::Interceptor => INTERCEPTOR_ARGUMENTS,
            Self::Provider => &[],
            Self::OtlpJson | Self::OtlpProto | Self::CloudEvents | Self::Map => NATIVE_ARGUMENTS,
        }
    }

    /// Where such a record holds results, as [`Self::argument_places`].
    pub fn result_places(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Native => NATIVE_RESULTS,
            Self::Interceptor | Self::Provider => &[],
            Self::OtlpJson | Self::OtlpProto | Self::CloudEvents | Self::Map => NATIVE_RESULTS,
        }
    }
}

impl Place {
    /// The place of a member. Below a value of any JSON everything is free; below a text nothing is.
    pub fn member(self, key: &str) -> Self {
        match self {
            Record(fields) => fields.iter().find(|(name, _)| *name == key).map_or(Free, |(_, place)| *place),
            Free | Needed | Encoded => Free,
            List(_) | Fixed | Text | Classed => Fixed,
        }
    }

    /// The place of an item.
    pub fn item(self) -> Self {
        match self {
            List(item) => *item,
            Free | Needed | Encoded => Free,
            Record(_) | Fixed | Text | Classed => Fixed,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    /// The fields of a generated schema's object, through references.
    fn fields(schema: &serde_json::Value, of: &serde_json::Value) -> Vec<String> {
        let target = of["$ref"].as_str().map(|r| schema.pointer(r.trim_start_matches('#')).unwrap());
        target.unwrap_or(of)["properties"].as_object().unwrap().keys().cloned().collect()
    }

    /// A field that the events gain and this table does not know would be free: it must be decided here.
    #[test]
    fn every_field_of_the_published_schemas_has_a_place() {
        let schemas = crate::event_schemas();
        let schema = |name: &str| schemas.iter().find(|(n, _)| *n == name).unwrap().1.clone();
        let known = |place: Place| -> Vec<&str> {
            let Record(fields) = place else { panic!("no record") };
            fields.iter().map(|(name, _)| *name).collect()
        };
        let mirrored = schema("mirrored_call");
        let interceptor = schema("interceptor");
        let at = |pointer: &str| mirrored.pointer(pointer).unwrap().clone();
        for (has, place) in [
            (fields(&mirrored, &mirrored), NATIVE),
            (fields(&mirrored, &at("/$defs/Outcome")), OUTCOME),
            (fields(&mirrored, &at("/$defs/Envelope")), ENVELOPE),
            (fields(&mirrored, &at("/$defs/Candidate")), CANDIDATE),
            (fields(&interceptor, &interceptor), INTERCEPTOR),
        ] {
            assert!(has.len() > 5);
            for name in has {
                assert!(known(place).contains(&name.as_str()), "{name} has no place");
            }
        }
    }
}
