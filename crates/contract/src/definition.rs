//! One tool definition as a provider writes it, and what Lastcall reads from it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who wrote the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// MCP `tools/list`: `inputSchema`, `outputSchema`.
    Mcp,
    /// OpenAI Chat Completions: `{type: function, function: {…}}`.
    OpenaiChat,
    /// OpenAI Responses: flat, `parameters`.
    OpenaiResponses,
    /// Anthropic: `input_schema`.
    Anthropic,
    /// Gemini: `parameters` in the OpenAPI subset, or `parametersJsonSchema`.
    Gemini,
}

/// The JSON Schema draft under which the schemas of a definition are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Draft {
    /// Draft-04.
    #[serde(rename = "draft-04")]
    Draft4,
    /// Draft-06.
    #[serde(rename = "draft-06")]
    Draft6,
    /// Draft-07.
    #[serde(rename = "draft-07")]
    Draft7,
    /// 2019-09.
    #[serde(rename = "2019-09")]
    Draft201909,
    /// 2020-12.
    #[serde(rename = "2020-12")]
    Draft202012,
}

/// A definition as read: the parts that Lastcall compares, beside the document itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The provider-facing name.
    pub name: String,
    /// Title, if any.
    pub title: Option<String>,
    /// Description, if any.
    pub description: Option<String>,
    /// Schema of the arguments, as plain JSON Schema (Gemini's subset is translated).
    pub input_schema: Value,
    /// Schema of the result, if any.
    pub output_schema: Option<Value>,
    /// The provider's strict flag, if stated.
    pub strict: Option<bool>,
    /// MCP annotations, if any.
    pub annotations: Option<Value>,
    /// Which provider's shape the document has.
    pub source: Source,
    /// The draft: `$schema`, else by source.
    pub draft: Draft,
    /// The document, as parsed.
    pub document: Value,
}

/// Why a definition was refused.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// The document does not look like a tool definition.
    #[error("{pointer}: {message}")]
    Invalid {
        /// JSON Pointer into the document.
        pointer: String,
        /// What is wrong and what to do.
        message: String,
    },
}

impl Definition {
    /// Reads one definition.
    pub fn from_value(document: &Value) -> Result<Self, DefinitionError> {
        let name = document.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Self {
            name,
            title: None,
            description: document.get("description").and_then(Value::as_str).map(str::to_owned),
            input_schema: document
                .get("inputSchema")
                .or_else(|| document.get("parameters"))
                .cloned()
                .unwrap_or_else(|| serde_json::json!({"type": "object"})),
            output_schema: document.get("outputSchema").cloned(),
            strict: document.get("strict").and_then(Value::as_bool),
            annotations: document.get("annotations").cloned(),
            source: Source::Mcp,
            draft: Draft::Draft202012,
            document: document.clone(),
        })
    }
}
