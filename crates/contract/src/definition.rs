//! One tool definition as a provider writes it, and what Lastcall reads from it. Nothing is guessed: a definition that
//! cannot be read for certain is refused with the place and the next step.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::document::{Document, Pick};
use crate::error::{DefinitionError, DefinitionErrorKind as Kind, SchemaError, shown};
use crate::{gemini, schema};

/// Whose shape a definition has.
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
    /// No provider's: `{name, description, parameters}` with plain JSON Schema.
    Neutral,
    /// A JSON Schema of the arguments alone; the name comes from elsewhere.
    JsonSchema,
}

impl Source {
    /// Every source, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Mcp,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Neutral,
        Self::JsonSchema,
    ];

    /// The word for it, snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Neutral => "neutral",
            Self::JsonSchema => "json_schema",
        }
    }

    /// Reads the word; `-` counts as `_`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.replace('-', "_");
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }

    /// The draft of a schema that names none.
    pub fn default_draft(self) -> Draft {
        match self {
            Self::Mcp
            | Self::OpenaiChat
            | Self::OpenaiResponses
            | Self::Anthropic
            | Self::Gemini
            | Self::Neutral
            | Self::JsonSchema => Draft::Draft202012,
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
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

impl Draft {
    /// `draft-04` … `2020-12`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft4 => "draft-04",
            Self::Draft6 => "draft-06",
            Self::Draft7 => "draft-07",
            Self::Draft201909 => "2019-09",
            Self::Draft202012 => "2020-12",
        }
    }

    /// The draft that a `$schema` names; `http` or `https`, with or without a trailing `#`.
    pub fn from_schema_uri(uri: &str) -> Option<Self> {
        match jsonschema::Draft::from_schema_uri(uri) {
            jsonschema::Draft::Draft4 => Some(Self::Draft4),
            jsonschema::Draft::Draft6 => Some(Self::Draft6),
            jsonschema::Draft::Draft7 => Some(Self::Draft7),
            jsonschema::Draft::Draft201909 => Some(Self::Draft201909),
            jsonschema::Draft::Draft202012 => Some(Self::Draft202012),
            _ => None,
        }
    }

    /// The same draft in the validation library's words.
    pub fn to_jsonschema(self) -> jsonschema::Draft {
        match self {
            Self::Draft4 => jsonschema::Draft::Draft4,
            Self::Draft6 => jsonschema::Draft::Draft6,
            Self::Draft7 => jsonschema::Draft::Draft7,
            Self::Draft201909 => jsonschema::Draft::Draft201909,
            Self::Draft202012 => jsonschema::Draft::Draft202012,
        }
    }

    /// The draft of this schema: what its `$schema` names, else `default`.
    ///
    /// # Errors
    /// `$schema` is no string, or names a draft that is not known.
    pub fn of_schema(schema: &Value, default: Self) -> Result<Self, SchemaError> {
        match schema.get("$schema") {
            None => Ok(default),
            Some(Value::String(uri)) => {
                Self::from_schema_uri(uri).ok_or_else(|| Self::unknown(uri, String::new()))
            }
            Some(other) => Err(Self::unknown(&other.to_string(), String::new())),
        }
    }

    pub(crate) fn unknown(uri: &str, at: String) -> SchemaError {
        SchemaError {
            pointer: format!("{at}/$schema"),
            kind: Kind::UnknownDraft,
            message: format!("unknown draft `{}`", shown(uri)),
            next: "Known are draft-04, draft-06, draft-07, 2019-09 and 2020-12, for instance \
                   `https://json-schema.org/draft/2020-12/schema`; without `$schema` the source decides"
                .to_owned(),
        }
    }
}

impl std::fmt::Display for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
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
    /// Whose shape the document has.
    pub source: Source,
    /// The draft of the input schema: `$schema`, else by source.
    pub draft: Draft,
    /// The draft of the output schema, by the same rule; equal to `draft` when there is none.
    pub output_draft: Draft,
    /// The document, as parsed.
    pub document: Value,
    /// The document, byte for byte.
    pub verbatim: String,
    /// Where it stands in its file: a JSON Pointer, empty when it is the whole file.
    pub pointer: String,
}

/// Keywords by which a JSON Schema is known.
const SCHEMA_KEYWORDS: [&str; 8] =
    ["$schema", "properties", "allOf", "anyOf", "oneOf", "$ref", "$defs", "required"];

impl Definition {
    /// Reads one definition from a file's text; `file` is the label that errors carry.
    ///
    /// # Errors
    /// See [`DefinitionError`].
    pub fn from_text(file: &str, text: &str, pick: Pick<'_>) -> Result<Self, DefinitionError> {
        Document::parse(file, text)?.definition(pick)
    }

    /// Reads one definition that was parsed already. Its `verbatim` is then the compact form of the value.
    ///
    /// # Errors
    /// See [`DefinitionError`]; the file is called `definition`.
    pub fn from_value(document: &Value) -> Result<Self, DefinitionError> {
        Self::from_text("definition", &document.to_string(), Pick::default())
    }

    /// Where the schema of the arguments stands in the document, as a JSON Pointer: `/inputSchema`,
    /// `/function/parameters`; empty for a bare schema. The document itself stands at [`Definition::pointer`] in its file.
    pub fn input_pointer(&self) -> String {
        if self.source == Source::JsonSchema {
            return String::new();
        }
        let (body, inner) = self.body();
        format!("{inner}/{}", body.and_then(schema_key).unwrap_or("parameters"))
    }

    /// Where the schema of the result stands in the document, if there is one.
    pub fn output_pointer(&self) -> Option<String> {
        let (body, inner) = self.body();
        self.output_schema.as_ref()?;
        output_key(self.source, body?).map(|key| format!("{inner}/{key}"))
    }

    /// The object that carries name, description and schemas, and its pointer.
    fn body(&self) -> (Option<&Map<String, Value>>, &'static str) {
        match (self.source, self.document.get("function").and_then(Value::as_object)) {
            (Source::OpenaiChat, Some(function)) => (Some(function), "/function"),
            _ => (self.document.as_object(), ""),
        }
    }

    /// The name that a definition carries, whatever its shape.
    pub(crate) fn name_of(value: &Value) -> Option<&str> {
        let named =
            if value.get("function").is_some_and(Value::is_object) { value.get("function")? } else { value };
        named.get("name")?.as_str()
    }

    /// Whether a value is meant as a tool's definition and not as a bare schema. `name` is no keyword of JSON Schema.
    pub(crate) fn looks_like_tool(value: &Value) -> bool {
        let Some(map) = value.as_object() else { return false };
        map.get("name").is_some_and(Value::is_string)
            || map.get("function").is_some_and(Value::is_object)
            || map.get("type").is_some_and(|kind| kind == "function")
            || schema_key(map).is_some()
    }

    /// A schema alone: no name, no wrapping key, and keywords of JSON Schema.
    pub(crate) fn is_bare_schema(value: &Value) -> bool {
        let Some(map) = value.as_object() else { return false };
        let typed = map.get("type").is_some_and(|t| t != "function");
        !map.get("name").is_some_and(Value::is_string)
            && schema_key(map).is_none()
            && !map.contains_key("function")
            && (typed || SCHEMA_KEYWORDS.iter().any(|k| map.contains_key(*k)))
    }

    /// Reads one entry of a document. `raw` is its exact text.
    pub(crate) fn read(
        file: &str,
        at: &str,
        value: &Value,
        raw: &str,
        pick: Pick<'_>,
    ) -> Result<Self, DefinitionError> {
        let place = Place { file, at };
        let Some(map) = value.as_object() else {
            let message = format!("a tool definition is an object, this is {}", schema::kind_of(value));
            return Err(place.refuse("", Kind::NotADefinition, message, SHAPES));
        };
        let source = place.source(map, pick.source)?;
        let (body, inner) = match (source, map.get("function").and_then(Value::as_object)) {
            (Source::OpenaiChat, Some(function)) => (function, "/function"),
            _ => (map, ""),
        };
        let name = if source == Source::JsonSchema {
            pick.name.map(str::to_owned).ok_or_else(|| {
                let message = "a JSON Schema without a name".to_owned();
                place.refuse("", Kind::Nameless, message, "Give the tool's name beside it")
            })?
        } else {
            place.name(body, inner)?
        };
        let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
        let (input, input_at) = match (source, schema_key(body)) {
            (Source::JsonSchema, _) => (value.clone(), String::new()),
            (_, Some(key)) => {
                let given = body.get(key).cloned().unwrap_or_default();
                // `null` for the parameters is how two SDKs write "none".
                let given =
                    if given.is_null() && key == "parameters" { json!({"type": "object"}) } else { given };
                let translate = source == Source::Gemini && key == "parameters";
                let input = if translate { gemini::translate(&given) } else { given };
                (input, format!("{inner}/{key}"))
            }
            (_, None) => (json!({"type": "object", "properties": {}}), format!("{inner}/parameters")),
        };
        let output = output_key(source, body).and_then(|key| Some((key, body.get(key)?)));
        let output = output.filter(|(_, schema)| !schema.is_null()).map(|(key, schema)| {
            let translated = if key == "response" { gemini::translate(schema) } else { schema.clone() };
            (translated, format!("{inner}/{key}"))
        });

        let default = source.default_draft();
        let within = |error: SchemaError, below: &str| error.within(file, &format!("{at}{below}"));
        let draft = Draft::of_schema(&input, default).map_err(|e| within(e, &input_at))?;
        schema::check(&input, draft, true).map_err(|e| within(e, &input_at))?;
        let mut output_draft = draft;
        if let Some((schema, below)) = &output {
            output_draft = Draft::of_schema(schema, default).map_err(|e| within(e, below))?;
            schema::check(schema, output_draft, false).map_err(|e| within(e, below))?;
        }
        Ok(Self {
            name,
            title: if source == Source::JsonSchema { None } else { text("title") },
            description: text("description"),
            input_schema: input,
            output_schema: output.map(|(schema, _)| schema),
            strict: body.get("strict").and_then(Value::as_bool),
            annotations: body.get("annotations").filter(|a| a.is_object()).cloned(),
            source,
            draft,
            output_draft,
            document: value.clone(),
            verbatim: raw.to_owned(),
            pointer: at.to_owned(),
        })
    }
}

const SHAPES: &str = "Give an MCP tool (`inputSchema`), an OpenAI function (`parameters`), an Anthropic tool \
                      (`input_schema`), a Gemini function declaration, or a JSON Schema with a name";

/// The key under which a body carries the schema of its arguments.
fn schema_key(body: &Map<String, Value>) -> Option<&'static str> {
    ["inputSchema", "input_schema", "parametersJsonSchema", "parameters_json_schema", "parameters"]
        .into_iter()
        .find(|key| body.contains_key(*key))
}

/// The key under which a source carries the schema of its result.
fn output_key(source: Source, body: &Map<String, Value>) -> Option<&'static str> {
    let keys: &[&'static str] = match source {
        Source::JsonSchema => &[],
        Source::Gemini => &["responseJsonSchema", "response_json_schema", "response"],
        _ => &["outputSchema", "output_schema"],
    };
    keys.iter().find(|key| body.contains_key(**key)).copied()
}

struct Place<'a> {
    file: &'a str,
    at: &'a str,
}

impl Place<'_> {
    fn refuse(&self, below: &str, kind: Kind, message: String, next: &str) -> DefinitionError {
        DefinitionError {
            file: self.file.to_owned(),
            pointer: format!("{}{below}", self.at),
            kind,
            message,
            next: next.to_owned(),
        }
    }

    fn name(&self, body: &Map<String, Value>, inner: &str) -> Result<String, DefinitionError> {
        let at = format!("{inner}/name");
        match body.get("name") {
            Some(Value::String(name)) if name.trim().is_empty() => Err(self.refuse(
                &at,
                Kind::Nameless,
                "an empty name".to_owned(),
                "Give the tool the name that models call",
            )),
            Some(Value::String(name)) if name.len() > 256 || name.chars().any(char::is_control) => {
                let message = format!("`{}` is no name that a model can call", shown(name));
                Err(self.refuse(
                    &at,
                    Kind::Nameless,
                    message,
                    "Use at most 256 bytes and no control characters",
                ))
            }
            Some(Value::String(name)) => Ok(name.clone()),
            Some(other) => {
                let message = format!("the name is {}", schema::kind_of(other));
                Err(self.refuse(&at, Kind::Nameless, message, "Write it as a string"))
            }
            None => {
                let message = "a tool without a name".to_owned();
                Err(self.refuse(inner, Kind::Nameless, message, "Add `\"name\"`: what models call it"))
            }
        }
    }

    /// Whose shape the definition has; a stated source has to fit.
    fn source(&self, map: &Map<String, Value>, stated: Option<Source>) -> Result<Source, DefinitionError> {
        let found = self.found(map)?;
        let Some(stated) = stated else {
            return found.ok_or_else(|| self.refuse("", Kind::NotADefinition, what(map), SHAPES));
        };
        let flat = matches!(found, None | Some(Source::OpenaiResponses | Source::Gemini | Source::Neutral));
        let json_parameters =
            !map.contains_key("parametersJsonSchema") && !map.contains_key("parameters_json_schema");
        let fits = found == Some(stated)
            || match stated {
                Source::OpenaiResponses | Source::Neutral => flat && json_parameters && named(map),
                Source::Gemini => flat && named(map),
                Source::JsonSchema => found.is_none(),
                Source::Mcp | Source::OpenaiChat | Source::Anthropic => false,
            };
        if fits {
            return Ok(stated);
        }
        let message = match found {
            Some(found) => format!("this has the shape of {found}, not of {stated}"),
            None => format!("{}; {stated} was stated", what(map)),
        };
        Err(self.refuse("", Kind::NotADefinition, message, "Leave the source out, or state the right one"))
    }

    /// Whose shape this is, by its keys alone.
    fn found(&self, map: &Map<String, Value>) -> Result<Option<Source>, DefinitionError> {
        let kind = map.get("type").and_then(Value::as_str);
        if map.get("function").is_some_and(Value::is_object) {
            return Ok(Some(Source::OpenaiChat));
        }
        let key = schema_key(map);
        let several: Vec<_> = ["inputSchema", "input_schema", "parametersJsonSchema", "parameters"]
            .into_iter()
            .filter(|k| map.contains_key(*k))
            .collect();
        if let [first, second, ..] = several.as_slice() {
            let message = format!("both `{first}` and `{second}`");
            return Err(self.refuse(
                "",
                Kind::NotADefinition,
                message,
                "Keep the one that the model was given",
            ));
        }
        Ok(match key {
            Some("inputSchema") => Some(Source::Mcp),
            Some("input_schema") => Some(Source::Anthropic),
            Some("parametersJsonSchema" | "parameters_json_schema") => Some(Source::Gemini),
            Some(_) if kind == Some("function") => Some(Source::OpenaiResponses),
            Some(_) => {
                let upper = map.get("parameters").is_some_and(gemini::is_subset);
                let theirs =
                    ["response", "responseJsonSchema", "behavior"].iter().any(|k| map.contains_key(*k));
                Some(if upper || theirs { Source::Gemini } else { Source::Neutral })
            }
            None if kind == Some("function") => Some(Source::OpenaiResponses),
            None if Definition::is_bare_schema(&Value::Object(map.clone())) => Some(Source::JsonSchema),
            None => None,
        })
    }
}

fn named(map: &Map<String, Value>) -> bool {
    map.get("name").is_some_and(Value::is_string)
}

/// What an object is that is no definition.
fn what(map: &Map<String, Value>) -> String {
    match (map.get("type").and_then(Value::as_str), map.get("name").and_then(Value::as_str)) {
        (Some(kind), Some(name)) => {
            format!(
                "`{}` is a built-in tool of type `{}`: it has no schema that callers fill",
                shown(name),
                shown(kind)
            )
        }
        (None, Some(name)) => format!("`{}` has no schema of its arguments", shown(name)),
        _ => "not a tool definition".to_owned(),
    }
}
