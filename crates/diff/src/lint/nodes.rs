//! The schema nodes of a definition, each once, with what stands around it.

use std::collections::BTreeMap;

use lastcall_contract::{Decimal, Definition, Draft, Source, rounded_numbers};
use serde_json::{Map, Value};

use crate::doc::SchemaDoc;
use crate::places::{allowed, properties, required, types};
use crate::pointer::escape;

/// Nodes beyond this are not looked at.
const MAX_NODES: usize = 20_000;

/// Where a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The arguments, or the result.
    Root,
    /// A declared property.
    Property(String),
    /// Items of a list, values of open keys.
    Member,
    /// A branch of `anyOf` or `oneOf`.
    Branch,
    /// A part of `allOf`, `not`, `if`, `then`, `else` or a dependency.
    Part,
    /// A reusable definition.
    Definition,
}

/// One node.
pub(crate) struct Node<'a> {
    pub map: &'a Map<String, Value>,
    pub value: &'a Value,
    /// Pointer in the definition.
    pub pointer: String,
    /// Pointer in the schema.
    pub inside: String,
    pub role: Role,
    pub parent: Option<usize>,
}

impl Node<'_> {
    /// The property's name.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.role {
            Role::Property(name) => Some(name),
            _ => None,
        }
    }

    /// A text keyword.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.map.get(key).and_then(Value::as_str)
    }
}

/// A definition with the nodes of its input schema.
pub(crate) struct Read<'a> {
    pub definition: &'a Definition,
    pub doc: &'a SchemaDoc,
    pub draft: Draft,
    /// Pointer of the body: `/function` for OpenAI Chat.
    pub body: &'static str,
    /// Pointer of the input schema in the definition.
    pub schema_at: String,
    pub nodes: Vec<Node<'a>>,
    /// Numbers that reading changed: pointer in the definition → as it is written.
    pub rounded: BTreeMap<String, String>,
}

impl<'a> Read<'a> {
    pub(crate) fn new(definition: &'a Definition, doc: &'a SchemaDoc) -> Self {
        let (body, schema_at) = places(definition);
        let draft = definition.draft;
        let rounded = rounded_numbers(&definition.verbatim);
        let mut read = Self { definition, doc, draft, body, schema_at, nodes: Vec::new(), rounded };
        read.walk(doc.root(), String::new(), Role::Root, None, 0);
        read
    }

    fn walk(&mut self, value: &'a Value, inside: String, role: Role, parent: Option<usize>, depth: usize) {
        let Some(map) = value.as_object() else { return };
        if self.nodes.len() >= MAX_NODES || depth > 96 {
            return;
        }
        let id = self.nodes.len();
        let pointer = format!("{}{inside}", self.schema_at);
        self.nodes.push(Node { map, value, pointer, inside: inside.clone(), role, parent });
        for (key, child) in map {
            let at = format!("{inside}/{}", escape(key));
            let table = |role: fn(&str) -> Role| {
                let entries = child.as_object().into_iter().flatten();
                entries.map(|(name, v)| (v, format!("{at}/{}", escape(name)), role(name))).collect::<Vec<_>>()
            };
            let list = |role: &Role| {
                let entries = child.as_array().into_iter().flatten().enumerate();
                entries.map(|(i, v)| (v, format!("{at}/{i}"), role.clone())).collect::<Vec<_>>()
            };
            let below = match key.as_str() {
                "properties" => table(|name| Role::Property(name.to_owned())),
                "patternProperties" => table(|_| Role::Member),
                "$defs" | "definitions" => table(|_| Role::Definition),
                "dependentSchemas" | "dependencies" => table(|_| Role::Part),
                "anyOf" | "oneOf" => list(&Role::Branch),
                "allOf" => list(&Role::Part),
                "prefixItems" => list(&Role::Member),
                "items" if child.is_array() => list(&Role::Member),
                "items"
                | "additionalProperties"
                | "additionalItems"
                | "contains"
                | "unevaluatedItems"
                | "unevaluatedProperties" => vec![(child, at.clone(), Role::Member)],
                "not" | "if" | "then" | "else" => vec![(child, at.clone(), Role::Part)],
                _ => Vec::new(),
            };
            for (child, at, role) in below {
                self.walk(child, at, role, Some(id), depth + 1);
            }
        }
    }

    /// Whether two values that read the same, at these places of the definition, are also written the same.
    pub(crate) fn written_alike(&self, one: &str, other: &str) -> bool {
        if self.rounded.is_empty() {
            return true;
        }
        let numbers = |at: &str| -> Vec<(String, &str)> {
            let below = self.rounded.range(at.to_owned()..).take_while(|(p, _)| p.starts_with(at));
            let below =
                below.filter_map(|(p, literal)| Some((p.strip_prefix(at)?.to_owned(), literal.as_str())));
            below.filter(|(p, _)| p.is_empty() || p.starts_with('/')).collect()
        };
        let (a, b) = (numbers(one), numbers(other));
        a.len() == b.len() && a.iter().zip(&b).all(|((p, x), (q, y))| p == q && Decimal::same(x, y))
    }

    /// The node and all that applies with it.
    pub(crate) fn together(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut all = Vec::new();
        self.doc.conjuncts(value, &mut all);
        all
    }

    /// The types that a node allows, references followed.
    pub(crate) fn types(&self, value: &'a Value) -> std::collections::BTreeSet<&'static str> {
        types(&self.together(value))
    }

    /// Whether a type is stated, here or behind a reference.
    pub(crate) fn typed(&self, value: &'a Value) -> bool {
        self.together(value).iter().any(|v| v.get("type").is_some())
    }

    /// The listed values, references followed.
    pub(crate) fn listed(&self, value: &'a Value) -> Option<Vec<&'a Value>> {
        allowed(&self.together(value))
    }

    /// The declared properties of an object, references and `allOf` followed.
    pub(crate) fn properties(&self, value: &'a Value) -> Vec<(&'a str, &'a Value)> {
        let nodes = self.together(value);
        properties(&nodes).into_iter().filter_map(|(name, v)| Some((name, *v.first()?))).collect()
    }

    /// The required names of an object.
    pub(crate) fn required(&self, value: &'a Value) -> Vec<&'a str> {
        required(&self.together(value)).into_iter().collect()
    }

    /// The description of a node: its own, else that behind its reference.
    pub(crate) fn description(&self, value: &'a Value) -> &'a str {
        self.together(value)
            .iter()
            .find_map(|v| v.get("description").and_then(Value::as_str))
            .map_or("", str::trim)
    }

    /// Whether the property that this node is must be given.
    pub(crate) fn is_required(&self, node: &Node<'a>) -> bool {
        let (Some(name), Some(parent)) = (node.name(), node.parent.and_then(|p| self.nodes.get(p))) else {
            return false;
        };
        self.required(parent.value).contains(&name)
    }
}

/// Where body and input schema stand in the document.
pub(crate) fn places(definition: &Definition) -> (&'static str, String) {
    let document = &definition.document;
    if definition.source == Source::JsonSchema {
        return ("", String::new());
    }
    let chat =
        definition.source == Source::OpenaiChat && document.get("function").is_some_and(Value::is_object);
    let body = if chat { "/function" } else { "" };
    let keys =
        ["inputSchema", "input_schema", "parametersJsonSchema", "parameters_json_schema", "parameters"];
    let inner = document.pointer(body).unwrap_or(document);
    let key = keys.into_iter().find(|key| inner.get(*key).is_some()).unwrap_or("parameters");
    (body, format!("{body}/{key}"))
}
