//! The subsets of JSON Schema that providers' strict modes take: one table for the diff and for lint. Sources: the
//! providers' SDKs and documentation as of 2026; what only third parties document is marked in the guide.

use serde_json::Value;

/// A provider's set of requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// OpenAI with `strict: true`.
    OpenaiStrict,
    /// Anthropic with `strict: true`.
    AnthropicStrict,
    /// Gemini's `parameters`.
    Gemini,
}

/// Keywords outside OpenAI's strict subset.
const OPENAI_OUTSIDE: [&str; 9] =
    ["allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"];

/// Keywords outside Anthropic's strict subset.
const ANTHROPIC_OUTSIDE: [&str; 7] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"];

/// Keywords of the subset of OpenAPI that Gemini's `parameters` takes.
const GEMINI: [&str; 28] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "properties",
    "required",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "pattern",
    "anyOf",
    "default",
    "example",
    "propertyOrdering",
    "prefixItems",
    "additionalProperties",
    "$defs",
    "$ref",
    "defs",
    "ref",
];

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::OpenaiStrict, Self::AnthropicStrict, Self::Gemini];

    /// `openai-strict`, `anthropic-strict`, `gemini`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiStrict => "openai-strict",
            Self::AnthropicStrict => "anthropic-strict",
            Self::Gemini => "gemini",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.as_str() == text)
    }

    /// As a sentence names it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::OpenaiStrict => "OpenAI's strict mode",
            Self::AnthropicStrict => "Anthropic's strict mode",
            Self::Gemini => "Gemini's `parameters`",
        }
    }

    /// Whether a keyword with this value may stand in a schema.
    pub(crate) fn takes(self, key: &str, value: &Value) -> bool {
        match self {
            Self::OpenaiStrict => !OPENAI_OUTSIDE.contains(&key),
            Self::AnthropicStrict => {
                !ANTHROPIC_OUTSIDE.contains(&key)
                    && (key != "minItems" || value.as_f64().is_none_or(|n| n <= 1.0))
            }
            // a field that does not repeat: a list, be it of one type and `null`, is refused
            Self::Gemini if key == "type" => !value.is_array(),
            Self::Gemini => GEMINI.contains(&key) || key.starts_with("x-"),
        }
    }

    /// Whether each object has to refuse further arguments.
    pub(crate) fn closes_objects(self) -> bool {
        self != Self::Gemini
    }
}
