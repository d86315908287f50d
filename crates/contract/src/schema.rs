//! What a schema must be before anything is compared with it: of a known draft, valid, closed in itself, an object at
//! its root, and finite to evaluate. Also the one way in which Lastcall compiles a schema, so that no two parts of it
//! judge differently. Never fetches anything.

use std::collections::{BTreeMap, HashMap};

use jsonschema::PatternOptions;
use jsonschema::error::ValidationErrorKind;
use jsonschema::json::{Json, SerdeJson};
use serde_json::{Map, Value};

use crate::applicators::{ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_TABLES};
use crate::definition::Draft;
use crate::error::{DefinitionErrorKind as Kind, SchemaError, escape, shown};
use crate::pattern::{place_of, unusable};

/// How often a backtracking pattern may go back for one value. About two milliseconds; at the limit the answer is
/// "unknown", never a refusal.
pub const BACKTRACK_LIMIT: usize = 50_000;

/// How many checks of one and the same value a schema may expand to through `$ref`, `allOf`, `anyOf` and the like.
const MAX_EXPANSION: u64 = 100_000;

/// Through how many `$ref`, `allOf` and the like one value may be handed on: validation recurses there.
const MAX_CHAIN: u32 = 200;

/// What a schema comes to for one value: how many checks, through how many steps at most.
#[derive(Clone, Copy)]
struct Expansion {
    checks: u64,
    height: u32,
}

impl Expansion {
    const ONE: Self = Self { checks: 1, height: 1 };

    fn add(&mut self, child: Self) {
        self.checks = self.checks.saturating_add(child.checks);
        self.height = self.height.max(child.height.saturating_add(1));
    }
}

/// Which engine the patterns of a schema run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternEngine {
    /// Linear in the length of the value; never gives up.
    Linear,
    /// Look-around or backreferences: may reach [`BACKTRACK_LIMIT`], after which nothing is known.
    Backtracking,
}

/// Compiles a schema the way every part of Lastcall does: offline, `format` asserted whatever the draft says, the
/// linear pattern engine, and the backtracking one (with [`BACKTRACK_LIMIT`]) only where a pattern needs it.
///
/// `draft` is the default: a `$schema` at the root takes precedence.
///
/// # Errors
/// Unknown draft, invalid schema, a reference that cannot be resolved.
pub fn validator_for(schema: &Value, draft: Draft) -> Result<jsonschema::Validator, SchemaError> {
    validator_of::<SerdeJson>(schema, draft).map(|(validator, _)| validator)
}

/// As [`validator_for`], for values of another form than `serde_json`'s, and which engine the patterns run on.
///
/// # Errors
/// As [`validator_for`].
pub fn validator_of<F: Json>(
    schema: &Value,
    draft: Draft,
) -> Result<(jsonschema::Validator<F>, PatternEngine), SchemaError> {
    validator_with_formats(schema, draft, true)
}

/// As [`validator_of`]; `formats` says whether `format` is asserted. Lastcall asserts it everywhere; this is for
/// questions about other readings of a schema.
///
/// # Errors
/// As [`validator_for`].
pub fn validator_with_formats<F: Json>(
    schema: &Value,
    draft: Draft,
    formats: bool,
) -> Result<(jsonschema::Validator<F>, PatternEngine), SchemaError> {
    let draft = Draft::of_schema(schema, draft)?;
    let options = jsonschema::options_for::<F>()
        .with_draft(draft.to_jsonschema())
        .offline()
        .should_validate_formats(formats);
    match options.clone().with_pattern_options(PatternOptions::regex()).build(schema) {
        Ok(validator) => Ok((validator, PatternEngine::Linear)),
        Err(_) => options
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT))
            .build(schema)
            .map(|validator| (validator, PatternEngine::Backtracking))
            .map_err(|error| not_compiled(&error, schema)),
    }
}

/// A schema that is valid, and that the validation library cannot compile.
fn not_compiled(error: &jsonschema::ValidationError<'_>, schema: &Value) -> SchemaError {
    let at = error.schema_path().to_string();
    match error.instance().as_ref() {
        Value::String(pattern) if is_about_a_pattern(error) => {
            // Behind a reference the library names the way there, not the place.
            let there = |at: &String| schema.pointer(at).is_some();
            let pointer = Some(at).filter(there).or_else(|| place_of(pattern, schema)).unwrap_or_default();
            unusable(pattern, pointer)
        }
        _ => invalid(error),
    }
}

fn is_about_a_pattern(error: &jsonschema::ValidationError<'_>) -> bool {
    matches!(error.kind(), ValidationErrorKind::Format { format } if format == "regex")
}

/// Whether a schema can be judged at all: known draft, valid under its meta-schema, closed in itself but for the
/// meta-schemas of the drafts, which the validator knows by heart, and finite to evaluate for any value. Any JSON value may
/// be the schema's subject, not only an object.
///
/// # Errors
/// The first thing that does not hold, with its place.
pub fn check_schema(schema: &Value, draft: Draft) -> Result<(), SchemaError> {
    sound(schema, draft, false, true).map(|_| ())
}

/// Everything that has to hold of a schema in a definition. `object` asks for a root that can accept an object.
pub(crate) fn check(schema: &Value, draft: Draft, object: bool) -> Result<(), SchemaError> {
    let graph = sound(schema, draft, object, false)?;
    if object && !graph.accepts_object(0, 0) {
        return Err(SchemaError {
            pointer: if schema.get("type").is_some() { "/type".to_owned() } else { String::new() },
            kind: Kind::NotAnObjectSchema,
            message: "this schema cannot accept an object, and the arguments of a call are an object"
                .to_owned(),
            next: "Set `\"type\": \"object\"` and put the arguments under `properties`".to_owned(),
        });
    }
    validator_for(schema, graph.draft).map(|_| ())
}

fn sound(schema: &Value, draft: Draft, object: bool, meta_schemas: bool) -> Result<Graph<'_>, SchemaError> {
    let draft = Draft::of_schema(schema, draft)?;
    if !schema.is_object() && (object || !schema.is_boolean()) {
        return Err(SchemaError {
            pointer: String::new(),
            kind: if object { Kind::NotAnObjectSchema } else { Kind::InvalidSchema },
            message: format!("a schema is an object, this is {}", kind_of(schema)),
            next: "Write `{\"type\": \"object\", \"properties\": {…}}`".to_owned(),
        });
    }
    meta(schema, draft)?;
    let graph = Graph::read(schema, draft, meta_schemas)?;
    graph.finite()?;
    Ok(graph)
}

/// Validates against the meta-schema of the draft.
fn meta(schema: &Value, draft: Draft) -> Result<(), SchemaError> {
    let validator = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validator(),
        Draft::Draft6 => jsonschema::draft6::meta::validator(),
        Draft::Draft7 => jsonschema::draft7::meta::validator(),
        Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
        Draft::Draft202012 => jsonschema::draft202012::meta::validator(),
    };
    if validator.is_valid(schema) {
        return Ok(());
    }
    // The deepest place says most; the order of errors is fixed, so is the choice.
    let depth = |error: &jsonschema::ValidationError<'_>| error.instance_path().as_str().matches('/').count();
    let mut worst: Option<jsonschema::ValidationError<'_>> = None;
    for error in validator.iter_errors(schema).take(64) {
        let deeper = worst.as_ref().is_none_or(|w| depth(&error) > depth(w));
        if deeper {
            worst = Some(error);
        }
    }
    match worst {
        Some(error) => Err(invalid(&error)),
        None => Ok(()),
    }
}

/// A refusal by the validation library, in our words.
fn invalid(error: &jsonschema::ValidationError<'_>) -> SchemaError {
    let pointer = error.instance_path().to_string();
    let keyword = pointer.rsplit('/').next().unwrap_or_default().to_owned();
    let value = error.instance();
    let text = shown(&value.to_string());
    let (message, next) = match (keyword.as_str(), value.as_ref()) {
        ("type", _) => (
            format!("{text} is not a JSON Schema type"),
            "Types are array, boolean, integer, null, number, object, string, in lower case".to_owned(),
        ),
        ("required", Value::Bool(_)) => (
            "`required` is a list of property names beside `properties`, not a flag inside one".to_owned(),
            "Move the name into the `required` list of the enclosing object".to_owned(),
        ),
        (_, Value::String(pattern)) if is_about_a_pattern(error) => return unusable(pattern, pointer),
        _ => (shown(&error.to_string()), "Correct the schema at that place".to_owned()),
    };
    SchemaError { pointer, kind: Kind::InvalidSchema, message, next }
}

/// What a JSON value is, with its article.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// How a subschema hangs under its parent.
#[derive(Clone)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Member(&'a str, &'a str),
    Item(&'a str, usize),
    /// Reached by a reference into a place that is no subschema by itself.
    Pointed(String),
}

struct Node<'a> {
    value: &'a Value,
    parent: usize,
    step: Step<'a>,
    /// Index into `Graph::bases`.
    base: usize,
    /// Subschemas that apply to the same value, references included.
    in_place: Vec<usize>,
}

struct Reference<'a> {
    from: usize,
    keyword: &'static str,
    target: &'a str,
}

/// The subschemas of one document and how they refer to each other. Places are kept as parent links: a pointer is only
/// written when a message needs it, so that hostile key lengths do not multiply.
struct Graph<'a> {
    draft: Draft,
    /// References to the meta-schemas of the drafts are let through.
    meta_schemas: bool,
    nodes: Vec<Node<'a>>,
    bases: Vec<String>,
    /// Address of a value → its node.
    index: HashMap<usize, usize>,
    /// Absolute URI without fragment → node.
    resources: BTreeMap<String, usize>,
    /// (base, name) → node.
    anchors: BTreeMap<(String, &'a str), usize>,
    dynamic: Vec<(&'a str, usize)>,
    references: Vec<Reference<'a>>,
}

/// The base of a document without `$id`. Nothing resolves to it from outside.
const NO_BASE: &str = "json-schema:///";

const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"];

impl<'a> Graph<'a> {
    fn read(schema: &'a Value, draft: Draft, meta_schemas: bool) -> Result<Self, SchemaError> {
        let mut graph = Graph {
            draft,
            meta_schemas,
            nodes: Vec::new(),
            bases: vec![NO_BASE.to_owned()],
            index: HashMap::new(),
            resources: BTreeMap::new(),
            anchors: BTreeMap::new(),
            dynamic: Vec::new(),
            references: Vec::new(),
        };
        graph.resources.insert(NO_BASE.to_owned(), 0);
        graph.walk(schema, 0, Step::Root, 0)?;
        let mut done = 0;
        while done < graph.references.len() {
            graph.follow(schema, done)?;
            done += 1;
        }
        // A dynamic reference may land on any anchor of its name.
        let dynamic: Vec<(usize, usize)> = graph
            .references
            .iter()
            .filter(|r| r.keyword == "$dynamicRef")
            .flat_map(|r| {
                let name = r.target.rsplit('#').next().unwrap_or_default();
                graph.dynamic.iter().filter(move |(n, _)| *n == name).map(move |(_, to)| (r.from, *to))
            })
            .collect();
        for (from, to) in dynamic {
            graph.link(from, to);
        }
        Ok(graph)
    }

    fn link(&mut self, from: usize, to: usize) {
        if let Some(node) = self.nodes.get_mut(from) {
            node.in_place.push(to);
        }
    }

    /// Walks a schema and all below it, without recursion.
    fn walk(
        &mut self,
        root: &'a Value,
        parent: usize,
        step: Step<'a>,
        base: usize,
    ) -> Result<(), SchemaError> {
        let mut stack = vec![(root, parent, step, base, false)];
        while let Some((value, parent, step, base, in_place)) = stack.pop() {
            let id = self.nodes.len();
            self.nodes.push(Node { value, parent, step, base, in_place: Vec::new() });
            self.index.insert(std::ptr::from_ref(value).addr(), id);
            if in_place {
                self.link(parent, id);
            }
            let Some(map) = value.as_object() else { continue };
            let base = self.identify(map, id, base)?;
            if let Some(node) = self.nodes.get_mut(id) {
                node.base = base;
            }
            for (key, child) in map {
                if let Some(key) = ONE_SCHEMA.into_iter().find(|k| k == key)
                    && (child.is_object() || child.is_boolean())
                {
                    stack.push((child, id, Step::Key(key), base, IN_PLACE.contains(&key)));
                }
                if let (Some(key), Value::Array(items)) = (SCHEMA_LISTS.into_iter().find(|k| k == key), child)
                {
                    for (n, item) in items.iter().enumerate() {
                        stack.push((item, id, Step::Item(key, n), base, IN_PLACE.contains(&key)));
                    }
                }
                if let (Some(key), Value::Object(members)) =
                    (SCHEMA_TABLES.into_iter().find(|k| k == key), child)
                {
                    for (name, member) in members {
                        if member.is_object() || member.is_boolean() {
                            stack.push((member, id, Step::Member(key, name), base, IN_PLACE.contains(&key)));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Records what a schema object calls itself and what it refers to; answers the base that holds inside it.
    fn identify(
        &mut self,
        map: &'a Map<String, Value>,
        id: usize,
        base: usize,
    ) -> Result<usize, SchemaError> {
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        if let Some(uri) = text("$schema")
            && Draft::from_schema_uri(uri).is_none()
        {
            return Err(Draft::unknown(uri, self.pointer(id)));
        }
        let classic = matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7);
        let mut base = base;
        let id_key = if self.draft == Draft::Draft4 { "id" } else { "$id" };
        // Up to draft-07 everything beside a `$ref` is ignored.
        if let Some(own) = text(id_key)
            && !(classic && text("$ref").is_some())
        {
            if let (true, Some(anchor)) = (classic, own.strip_prefix('#')) {
                self.anchors.insert((self.base(base).to_owned(), anchor), id);
            } else {
                base = self.rebase(id, id_key, own, base)?;
            }
        }
        let here = self.base(base).to_owned();
        for key in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = text(key) {
                self.anchors.insert((here.clone(), name), id);
                if key == "$dynamicAnchor" {
                    self.dynamic.push((name, id));
                }
            }
        }
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(target) = text(keyword) {
                self.references.push(Reference { from: id, keyword, target });
            }
        }
        Ok(base)
    }

    /// A `$id`: the new base inside this schema.
    fn rebase(&mut self, id: usize, key: &str, own: &str, base: usize) -> Result<usize, SchemaError> {
        let refuse = |graph: &Self, message: String, next: &str| {
            Err(SchemaError {
                pointer: format!("{}/{key}", graph.pointer(id)),
                kind: Kind::InvalidSchema,
                message,
                next: next.to_owned(),
            })
        };
        let Some(uri) = resolve(self.base(base), own) else {
            return refuse(self, format!("`{}` is not a URI reference", shown(own)), "Correct or remove it");
        };
        let uri = without_fragment(&uri).to_owned();
        if is_specification(&uri) {
            let message = format!("`{}` claims to be a meta-schema", shown(own));
            return refuse(self, message, "Give the schema an identifier of its own, or none");
        }
        if self.resources.get(&uri).is_some_and(|other| *other != id) {
            let message = format!("`{}` is the identifier of another schema in this document", shown(own));
            return refuse(self, message, "Give each schema its own identifier");
        }
        self.resources.insert(uri.clone(), id);
        self.bases.push(uri);
        Ok(self.bases.len() - 1)
    }

    /// Resolves one reference inside the document and walks a target that was not seen yet.
    fn follow(&mut self, schema: &'a Value, n: usize) -> Result<(), SchemaError> {
        let Some(&Reference { from, keyword, target }) = self.references.get(n) else { return Ok(()) };
        let refuse = |graph: &Self, kind, message: String, next: &str| {
            let pointer = format!("{}/{keyword}", graph.pointer(from));
            Err(SchemaError { pointer, kind, message, next: next.to_owned() })
        };
        let base = self.nodes.get(from).map_or(0, |node| node.base);
        let Some(uri) = resolve(self.base(base), target) else {
            let message = format!("`{}` is not a URI reference", shown(target));
            return refuse(self, Kind::InvalidSchema, message, "Write `#/$defs/NAME`");
        };
        let (document, fragment) = uri.split_once('#').unwrap_or((uri.as_str(), ""));
        let Some(&resource) = self.resources.get(document) else {
            if self.meta_schemas && keyword == "$ref" && is_specification(document) {
                return Ok(());
            }
            let message = format!("`{keyword}` leaves the document: `{}`", shown(target));
            let next = "Copy the schema under `$defs` and refer to it as `#/$defs/NAME`; nothing is fetched";
            return refuse(self, Kind::ExternalRef, message, next);
        };
        let nowhere = format!("`{keyword}` points to nothing: `{}`", shown(target));
        let root = if resource == 0 { schema } else { self.nodes.get(resource).map_or(schema, |n| n.value) };
        let to = if fragment.is_empty() {
            resource
        } else if fragment.starts_with('/') {
            let value = percent_decode(fragment).and_then(|pointer| root.pointer(&pointer));
            let Some(value) = value.filter(|v| v.is_object() || v.is_boolean()) else {
                return refuse(
                    self,
                    Kind::InvalidSchema,
                    nowhere,
                    "Define it under `$defs` or correct the name",
                );
            };
            match self.index.get(&std::ptr::from_ref(value).addr()) {
                Some(to) => *to,
                None => {
                    let to = self.nodes.len();
                    let base = self.nodes.get(resource).map_or(0, |node| node.base);
                    self.walk(value, resource, Step::Pointed(fragment.to_owned()), base)?;
                    to
                }
            }
        } else {
            match self.anchors.get(&(document.to_owned(), fragment)) {
                Some(to) => *to,
                None => {
                    let next = "Define that `$anchor` or correct the name";
                    return refuse(self, Kind::InvalidSchema, nowhere, next);
                }
            }
        };
        self.link(from, to);
        Ok(())
    }

    fn base(&self, n: usize) -> &str {
        self.bases.get(n).map_or(NO_BASE, String::as_str)
    }

    /// The JSON Pointer of a node.
    fn pointer(&self, id: usize) -> String {
        let mut parts = Vec::new();
        let mut at = id;
        while let Some(node) = self.nodes.get(at) {
            match &node.step {
                Step::Root => break,
                Step::Key(key) => parts.push(format!("/{}", escape(key))),
                Step::Member(key, name) => parts.push(format!("/{}/{}", escape(key), escape(name))),
                Step::Item(key, n) => parts.push(format!("/{}/{n}", escape(key))),
                Step::Pointed(pointer) => parts.push(pointer.clone()),
            }
            at = node.parent;
        }
        parts.reverse();
        parts.concat()
    }

    /// Refuses a schema that applies itself to the same value without end, or nearly so.
    fn finite(&self) -> Result<(), SchemaError> {
        // None: not seen; Some(None): being expanded; Some(Some(_)): expanded.
        let mut known: Vec<Option<Option<Expansion>>> = vec![None; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut stack = vec![(start, 0usize, Expansion::ONE)];
            while let Some((id, next, so_far)) = stack.pop() {
                let state = known.get(id).copied().flatten();
                if let (0, Some(state)) = (next, state) {
                    let Some(done) = state else { return Err(self.endless(id)) };
                    if let Some(parent) = stack.last_mut() {
                        parent.2.add(done);
                    }
                    continue;
                }
                if let Some(slot) = known.get_mut(id) {
                    *slot = Some(None);
                }
                if let Some(child) = self.nodes.get(id).and_then(|node| node.in_place.get(next)) {
                    stack.push((id, next + 1, so_far));
                    stack.push((*child, 0, Expansion::ONE));
                    continue;
                }
                if so_far.checks > MAX_EXPANSION || so_far.height > MAX_CHAIN {
                    return Err(SchemaError {
                        pointer: self.pointer(id),
                        kind: Kind::TooDeep,
                        message: format!(
                            "this schema checks one value more than {MAX_EXPANSION} times or through more than \
                             {MAX_CHAIN} steps"
                        ),
                        next: "Use fewer nested `$ref`, `allOf`, `anyOf` and `oneOf`".to_owned(),
                    });
                }
                if let Some(slot) = known.get_mut(id) {
                    *slot = Some(Some(so_far));
                }
                if let Some(parent) = stack.last_mut() {
                    parent.2.add(so_far);
                }
            }
        }
        Ok(())
    }

    fn endless(&self, id: usize) -> SchemaError {
        SchemaError {
            pointer: self.pointer(id),
            kind: Kind::InvalidSchema,
            message: "this schema refers to itself for the same value, without end".to_owned(),
            next: "A schema may refer to itself below `properties`, `items` and the like only".to_owned(),
        }
    }

    /// Whether an object could pass, judged by `type`, `const` and `enum` alone, through references.
    fn accepts_object(&self, id: usize, depth: usize) -> bool {
        let Some(node) = self.nodes.get(id) else { return true };
        let Some(map) = node.value.as_object() else { return node.value != &Value::Bool(false) };
        // `finite` has shown that this ends; the limit guards the stack.
        if depth > 64 {
            return true;
        }
        let classic_ref = matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
            && map.get("$ref").is_some_and(Value::is_string);
        if !classic_ref {
            let typed = match map.get("type") {
                Some(Value::String(t)) => t == "object",
                Some(Value::Array(types)) => types.iter().any(|t| t == "object"),
                _ => true,
            };
            let constant = map.get("const").is_none_or(Value::is_object);
            let listed =
                map.get("enum").and_then(Value::as_array).is_none_or(|v| v.iter().any(Value::is_object));
            if !typed || !constant || !listed {
                return false;
            }
        }
        let under = |keyword: &str| -> Vec<bool> {
            node.in_place
                .iter()
                .filter(|child| {
                    self.nodes.get(**child).is_some_and(|c| {
                        c.parent == id && matches!(c.step, Step::Item(key, _) if key == keyword)
                    })
                })
                .map(|child| self.accepts_object(*child, depth + 1))
                .collect()
        };
        let referred = node
            .in_place
            .iter()
            .filter(|child| {
                self.nodes.get(**child).is_some_and(|c| {
                    c.parent != id || matches!(c.step, Step::Member("$defs" | "definitions", _))
                })
            })
            .all(|child| self.accepts_object(*child, depth + 1));
        let any = |keyword: &str| {
            let all = under(keyword);
            all.is_empty() || all.contains(&true)
        };
        referred && !under("allOf").contains(&false) && any("anyOf") && any("oneOf")
    }
}

/// Whether a URI lies where the meta-schemas lie; the validation library knows those by heart.
fn is_specification(uri: &str) -> bool {
    let rest = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://")).unwrap_or(uri);
    rest.starts_with("json-schema.org/")
}

fn without_fragment(uri: &str) -> &str {
    uri.split_once('#').map_or(uri, |(document, _)| document)
}

fn resolve(base: &str, reference: &str) -> Option<String> {
    let base = jsonschema::uri::from_str(base).ok()?;
    jsonschema::uri::resolve_against(&base.borrow(), reference).ok().map(|uri| uri.as_str().to_owned())
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
