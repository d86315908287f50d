//! A file with tool definitions: one tool, a list in any provider's wrapping, a JSON-RPC answer, a bare schema.
//! Finds the tools and keeps the exact text of each. Never changes a byte of it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use crate::definition::{Definition, Source};
use crate::error::{DefinitionError, DefinitionErrorKind as Kind, escape, nearest, shown};

/// The largest file that is read, in bytes: a `tools/list` of thousands of tools.
pub const MAX_DOCUMENT_BYTES: usize = 16 << 20;
/// The largest single definition, in bytes.
pub const MAX_DEFINITION_BYTES: usize = 1 << 20;
/// How deep a document may nest.
pub const MAX_DEPTH: usize = 96;

/// Which tool of a document, and how to read it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pick<'a> {
    /// The provider-facing name of the tool that is wanted; needed when there are several. Also the name that a bare
    /// JSON Schema is given.
    pub name: Option<&'a str>,
    /// Whose shape the definition has; found out when `None`.
    pub source: Option<Source>,
}

/// A file that was parsed and in which the tools were found. Nothing in them has been judged yet.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
    entries: Vec<Entry>,
    /// Whether the whole file is one definition.
    single: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    pointer: String,
    raw: String,
    value: Value,
    gemini: bool,
}

impl Document {
    /// Parses `text`; `file` is the label that errors carry.
    ///
    /// # Errors
    /// Not JSON, a key twice in one object, too big, too deep, no tool in it.
    pub fn parse(file: &str, text: &str) -> Result<Self, DefinitionError> {
        let document = Self::parse_list(file, text)?;
        if document.entries.is_empty() {
            return Err(DefinitionError {
                file: file.to_owned(),
                pointer: String::new(),
                kind: Kind::NotADefinition,
                message: "no tool in this document".to_owned(),
                next: "Give it at least one definition".to_owned(),
            });
        }
        Ok(document)
    }

    /// As [`Document::parse`]; a list may be empty.
    ///
    /// # Errors
    /// Not JSON, a key twice in one object, too big, too deep, a JSON-RPC error.
    pub fn parse_list(file: &str, text: &str) -> Result<Self, DefinitionError> {
        let refuse = |pointer: String, kind, message: String, next: &str| DefinitionError {
            file: file.to_owned(),
            pointer,
            kind,
            message,
            next: next.to_owned(),
        };
        let text = without_mark(text);
        if text.len() > MAX_DOCUMENT_BYTES {
            let message = format!("{} bytes, more than {MAX_DOCUMENT_BYTES}", text.len());
            return Err(refuse(String::new(), Kind::TooBig, message, "Split the file by tool"));
        }
        if depth_of(text) > MAX_DEPTH {
            let message = format!("nested deeper than {MAX_DEPTH}");
            return Err(refuse(
                String::new(),
                Kind::TooDeep,
                message,
                "Flatten the schema with `$defs` and `$ref`",
            ));
        }
        let value = strict_json(file, text)?;
        let whole: &RawValue = serde_json::from_str(text).map_err(|e| {
            refuse(String::new(), Kind::NotJson, format!("not JSON: {e}"), "Correct the file")
        })?;
        let mut found = Vec::new();
        unwrap(&value, whole, String::new(), false, &mut found);
        let single = matches!(found.as_slice(), [one] if one.pointer.is_empty());
        if let (true, Some(error)) = (value.get("jsonrpc").is_some(), value.get("error")) {
            let message = format!("a JSON-RPC error, not a list of tools: {}", shown(&error.to_string()));
            return Err(refuse("/error".to_owned(), Kind::NotADefinition, message, "Ask the server again"));
        }
        Ok(Self { file: file.to_owned(), entries: found, single })
    }

    /// The names of the tools, in order; a tool without one is `""`.
    pub fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|e| Definition::name_of(&e.value).unwrap_or_default()).collect()
    }

    /// Where each tool stands in the file, in order: JSON Pointers.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|e| e.pointer.as_str())
    }

    /// The whole file as a bare JSON Schema; `None` where it holds tools. `true`, `false` and `{}` are schemas.
    ///
    /// # Errors
    /// An object that is no tool and has no keyword of JSON Schema, or only such that other formats have too; a schema of
    /// more than [`MAX_DEFINITION_BYTES`].
    pub fn schema(&self) -> Result<Option<&Value>, DefinitionError> {
        let [entry] = self.entries.as_slice() else { return Ok(None) };
        let value = &entry.value;
        if !self.single || Definition::looks_like_tool(value) {
            return Ok(None);
        }
        self.fits(entry)?;
        match value.as_object() {
            Some(map) if !is_schema(map) => Err(DefinitionError {
                file: self.file.clone(),
                pointer: String::new(),
                kind: Kind::NotADefinition,
                message: format!(
                    "neither a tool nor a JSON Schema; its keys are {}",
                    listed(&map.keys().map(String::as_str).collect::<Vec<_>>())
                ),
                next: "Give a tool (MCP `inputSchema`, OpenAI or Gemini `parameters`, Anthropic `input_schema`), a list \
                       of tools (an array, `tools`, `functionDeclarations`, a JSON-RPC `result`), or a JSON Schema"
                    .to_owned(),
            }),
            _ => Ok(Some(value)),
        }
    }

    /// Whether the whole file is one definition, so that its text is the definition's own.
    pub fn is_single(&self) -> bool {
        self.single
    }

    /// Reads the tool that `pick` names, or the only one.
    ///
    /// # Errors
    /// Several tools and none named, no tool of that name, or whatever is wrong with that tool.
    pub fn definition(&self, pick: Pick<'_>) -> Result<Definition, DefinitionError> {
        let refuse = |kind, message: String, next: String| DefinitionError {
            file: self.file.clone(),
            pointer: String::new(),
            kind,
            message,
            next,
        };
        let names = self.names();
        let entry = match (self.entries.as_slice(), pick.name) {
            ([only], None) => only,
            // a bare schema, or what is no tool at all, and is told so
            ([only], Some(_))
                if Definition::is_bare_schema(&only.value) || Definition::name_of(&only.value).is_none() =>
            {
                only
            }
            (_, None) => {
                let message = format!("{} tools in this document: {}", names.len(), listed(&names));
                return Err(refuse(Kind::SeveralTools, message, "Say which one by its name".to_owned()));
            }
            (all, Some(name)) => {
                let mut fitting =
                    all.iter().filter(|e| Definition::name_of(&e.value).is_some_and(|n| n == name));
                match (fitting.next(), fitting.next()) {
                    (Some(entry), None) => entry,
                    (Some(_), Some(_)) => {
                        let message = format!("two tools of the name `{}`", shown(name));
                        return Err(refuse(Kind::SeveralTools, message, "Remove one of them".to_owned()));
                    }
                    (None, _) => {
                        let message = format!("no tool `{}`; there is {}", shown(name), listed(&names));
                        let next = match nearest(name, &names) {
                            Some(near) => format!("Perhaps `{}` was meant", shown(near)),
                            None => "Give one of these names".to_owned(),
                        };
                        return Err(refuse(Kind::NoSuchTool, message, next));
                    }
                }
            }
        };
        self.read(entry, pick)
    }

    /// Reads every tool, each with its own result, in order.
    pub fn definitions(&self, source: Option<Source>) -> Vec<Result<Definition, DefinitionError>> {
        self.entries.iter().map(|entry| self.read(entry, Pick { name: None, source })).collect()
    }

    /// Whether one definition is small enough to be looked at.
    fn fits(&self, entry: &Entry) -> Result<(), DefinitionError> {
        if entry.raw.len() > MAX_DEFINITION_BYTES {
            return Err(DefinitionError {
                file: self.file.clone(),
                pointer: entry.pointer.clone(),
                kind: Kind::TooBig,
                message: format!(
                    "a definition of {} bytes, more than {MAX_DEFINITION_BYTES}",
                    entry.raw.len()
                ),
                next: "A model cannot read that; shorten it".to_owned(),
            });
        }
        Ok(())
    }

    fn read(&self, entry: &Entry, pick: Pick<'_>) -> Result<Definition, DefinitionError> {
        self.fits(entry)?;
        let source = pick.source.or(entry.gemini.then_some(Source::Gemini));
        Definition::read(&self.file, &entry.pointer, &entry.value, &entry.raw, Pick { source, ..pick })
    }
}

/// Names for a message, the first twelve.
fn listed(names: &[&str]) -> String {
    let mut out: Vec<String> = names.iter().take(12).map(|n| format!("`{}`", shown(n))).collect();
    if names.len() > 12 {
        out.push(format!("{} more", names.len() - 12));
    }
    out.join(", ")
}

/// Goes through the wrappings down to the tools.
fn unwrap(value: &Value, raw: &RawValue, pointer: String, gemini: bool, out: &mut Vec<Entry>) {
    match value {
        Value::Array(items) => {
            let raws: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
            for (n, (item, raw)) in items.iter().zip(raws).enumerate() {
                unwrap(item, raw, format!("{pointer}/{n}"), gemini, out);
            }
        }
        Value::Object(map) => {
            let wrapping = wrapping(map);
            let inner: BTreeMap<String, &RawValue> = match wrapping {
                Some(_) => serde_json::from_str(raw.get()).unwrap_or_default(),
                None => BTreeMap::new(),
            };
            match wrapping.and_then(|(key, g)| Some((key, g, map.get(key)?, *inner.get(key)?))) {
                Some((key, g, value, raw)) => {
                    unwrap(value, raw, format!("{pointer}/{}", escape(key)), gemini || g, out);
                }
                None => out.push(Entry { pointer, raw: raw.get().to_owned(), value: value.clone(), gemini }),
            }
        }
        _ => out.push(Entry { pointer, raw: raw.get().to_owned(), value: value.clone(), gemini }),
    }
}

/// The key under which an object wraps tools, and whether that wrapping is Gemini's.
fn wrapping(map: &Map<String, Value>) -> Option<(&'static str, bool)> {
    let array = |key: &str| map.get(key).is_some_and(Value::is_array);
    if array("tools") {
        return Some(("tools", false));
    }
    for key in ["functionDeclarations", "function_declarations"] {
        if array(key) {
            return Some((key, true));
        }
    }
    map.get("result")?.get("tools")?.is_array().then_some(("result", false))
}

/// How deep brackets nest outside strings. Linear, without recursion: it stands before any parser that recurses.
fn depth_of(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0usize, false, false);
    for byte in text.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Keywords that no other format of tools has: one of them makes an object a schema.
const OWN_KEYWORDS: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Keywords that other formats have too, or that say nothing of values.
const OTHER_KEYWORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$id",
    "$recursiveAnchor",
    "$schema",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "format",
    "id",
    "nullable",
    "readOnly",
    "title",
    "writeOnly",
    "xml",
];

/// Whether an object is a JSON Schema of any draft: it has a keyword of its own, or nothing that is none.
fn is_schema(map: &Map<String, Value>) -> bool {
    let own = |key: &String| OWN_KEYWORDS.contains(&key.as_str());
    let other = |key: &String| OTHER_KEYWORDS.contains(&key.as_str()) || key.starts_with("x-");
    map.keys().any(own) || map.keys().all(other)
}

/// A text without the byte order mark that some editors put before UTF-8.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The value of a JSON text; `file` is the label that errors carry. Nesting is limited by the parser. A byte order mark
/// before the text does not count.
///
/// # Errors
/// Not JSON, a number beyond what a double holds, a key twice in one object.
pub fn strict_json(file: &str, text: &str) -> Result<Value, DefinitionError> {
    let refuse = |pointer, kind, message, next: &str| DefinitionError {
        file: file.to_owned(),
        pointer,
        kind,
        message,
        next: next.to_owned(),
    };
    parse_strict(without_mark(text)).map_err(|fault| match fault {
        Fault::Duplicate(pointer) => refuse(
            pointer,
            Kind::DuplicateKey,
            "this key stands twice in its object, and readers disagree about which one counts".to_owned(),
            "Remove one of them",
        ),
        Fault::Range { line, column } => refuse(
            String::new(),
            Kind::NumberTooLarge,
            format!("a number beyond 1.8e308 at line {line} column {column}: valid JSON, and more than a double holds"),
            "Write a smaller number, or leave the bound out",
        ),
        Fault::Syntax(message) => {
            refuse(String::new(), Kind::NotJson, format!("not JSON: {message}"), "Correct the file")
        }
    })
}

/// How serde_json begins to say it; a number of its own has no category there.
const OUT_OF_RANGE: &str = "number out of range";

enum Fault {
    Duplicate(String),
    /// A number that no double holds.
    Range {
        line: usize,
        column: usize,
    },
    Syntax(String),
}

/// Parses JSON and refuses an object that has a key twice.
fn parse_strict(text: &str) -> Result<Value, Fault> {
    let mut state = Strict { path: Vec::new(), duplicate: None };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = Node(&mut state).deserialize(&mut deserializer).and_then(|v| deserializer.end().map(|()| v));
    match (parsed, state.duplicate) {
        (_, Some(pointer)) => Err(Fault::Duplicate(pointer)),
        (Ok(value), None) => Ok(value),
        (Err(error), None) if error.to_string().starts_with(OUT_OF_RANGE) => {
            Err(Fault::Range { line: error.line(), column: error.column() })
        }
        (Err(error), None) => Err(Fault::Syntax(error.to_string())),
    }
}

struct Strict {
    path: Vec<String>,
    duplicate: Option<String>,
}

struct Node<'s>(&'s mut Strict);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            self.0.path.push(items.len().to_string());
            let item = access.next_element_seed(Node(self.0));
            let Some(item) = item? else { break };
            self.0.path.pop();
            items.push(item);
        }
        self.0.path.pop();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.0.path.push(escape(&key));
            if map.contains_key(&key) {
                self.0.duplicate = Some(format!("/{}", self.0.path.join("/")));
                return Err(A::Error::custom("duplicate key"));
            }
            let value = access.next_value_seed(Node(self.0))?;
            self.0.path.pop();
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
