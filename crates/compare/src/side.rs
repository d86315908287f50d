//! One side of a pair, prepared: its validators, its document, and which nodes of it speak of a place in a value.

use std::collections::HashMap;

use jsonschema::{PatternOptions, Validator, ValidatorMap};
use lastcall_contract::{BACKTRACK_LIMIT, Contract, Definition, PatternEngine, SCHEMA_TABLES, validator_for};
use lastcall_diff::{SchemaDoc, escape};
use serde_json::Value;

use crate::checked::Checked;
use crate::pair::PrepareError;

/// A contract, ready to judge calls.
pub(crate) struct Side {
    pub id: String,
    pub doc: SchemaDoc,
    pub input: Checked,
    pub output: Option<(SchemaDoc, Checked)>,
    /// Validators of every subschema by `#/…` pointer: which branch of a union applies. Only where there are unions.
    branches: Option<ValidatorMap>,
    /// Address of a node in the document → its pointer, for `branches`.
    pointers: HashMap<usize, String>,
    /// patternProperties: expression → a validator of strings.
    patterns: HashMap<String, Validator>,
    /// Expressions that may give up where the validator would not show it (under `not` and the like).
    pub hidden: Vec<Validator>,
    /// A union leads back to itself: deep values are refused without an explanation.
    pub recursive_unions: bool,
}

/// Nodes that apply to one value.
pub(crate) type Nodes<'a> = Vec<&'a Value>;

const BRANCH_KEYS: [&str; 3] = ["anyOf", "oneOf", "if"];

impl Side {
    pub fn prepare(contract: &Contract) -> Result<Self, PrepareError> {
        let definition: &Definition = &contract.definition;
        let refuse = |part: &'static str| {
            let contract = contract.id.clone();
            move |error: lastcall_contract::SchemaError| PrepareError::Schema {
                contract,
                part,
                message: error.to_string(),
            }
        };
        let schema = &definition.input_schema;
        let (input, engine) = Checked::new(schema, definition.draft).map_err(refuse("input schema"))?;
        let output = match &definition.output_schema {
            None => None,
            Some(schema) => {
                let (checked, _) = Checked::new(schema, definition.draft).map_err(refuse("output schema"))?;
                Some((SchemaDoc::of_draft(schema.clone(), definition.draft), checked))
            }
        };
        let doc = SchemaDoc::of_draft(schema.clone(), definition.draft);
        let mut found = Found::default();
        found.walk(doc.root(), false, false);
        let branches = if found.unions {
            let options = jsonschema::options()
                .with_draft(definition.draft.to_jsonschema())
                .offline()
                .should_validate_formats(true)
                .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT));
            options.build_map(schema).ok()
        } else {
            None
        };
        let pattern = |expression: &String| {
            let schema = serde_json::json!({ "pattern": expression });
            Some((expression.clone(), validator_for(&schema, definition.draft).ok()?))
        };
        let patterns = found.property_patterns.iter().filter_map(pattern).collect();
        let hidden = if engine == PatternEngine::Backtracking {
            found.hidden_patterns.iter().filter_map(pattern).map(|(_, v)| v).collect()
        } else {
            Vec::new()
        };
        Ok(Self {
            recursive_unions: found.unions && recursive_unions(&doc),
            id: contract.id.clone(),
            pointers: if branches.is_some() { addresses(doc.root()) } else { HashMap::new() },
            doc,
            input,
            output,
            branches,
            patterns,
            hidden,
        })
    }

    /// Everything that applies to `value` besides what was asked: references, `allOf`, the branches of unions that
    /// the value satisfies (all of them if it satisfies none), the chosen side of `if`, dependent schemas.
    pub fn applying<'a>(&'a self, nodes: &[&'a Value], value: &Value) -> Nodes<'a> {
        let mut out = Vec::with_capacity(nodes.len() + 2);
        let mut queue: Vec<&'a Value> = nodes.to_vec();
        queue.reverse();
        while let Some(node) = queue.pop() {
            let before = out.len();
            self.doc.conjuncts(node, &mut out);
            let new: Vec<&'a Value> = out.get(before..).unwrap_or_default().to_vec();
            for node in new {
                self.push_branches(node, value, &mut queue);
            }
            if out.len() > 4096 {
                break; // a hostile schema; what is left out is then "not declared" and never excuses anything
            }
        }
        out
    }

    fn push_branches<'a>(&'a self, node: &'a Value, value: &Value, queue: &mut Vec<&'a Value>) {
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = node.get(key) {
                let fits: Vec<&Value> = branches.iter().filter(|b| self.accepts(b, value)).collect();
                if fits.is_empty() { queue.extend(branches.iter()) } else { queue.extend(fits) }
            }
        }
        if let Some(condition) = node.get("if") {
            let side = if self.accepts(condition, value) {
                queue.push(condition);
                "then"
            } else {
                "else"
            };
            queue.extend(node.get(side));
        }
        for key in ["dependentSchemas", "dependencies"] {
            if let (Some(Value::Object(table)), Value::Object(members)) = (node.get(key), value) {
                queue.extend(
                    table.iter().filter(|(k, v)| v.is_object() && members.contains_key(*k)).map(|(_, v)| v),
                );
            }
        }
    }

    fn accepts(&self, node: &Value, value: &Value) -> bool {
        let pointer = self.pointers.get(&std::ptr::from_ref(node).addr());
        let validator = pointer.and_then(|p| self.branches.as_ref()?.get(p));
        validator.is_none_or(|v| v.is_valid(value))
    }

    /// Nodes of a member of an object to whose value `nodes` (already closed under [`Self::applying`]) apply.
    pub fn member<'a>(&'a self, nodes: &[&'a Value], key: &str) -> Nodes<'a> {
        let mut out: Nodes<'a> = Vec::new();
        for node in nodes {
            let mut named = false;
            if let Some(child) = node.get("properties").and_then(|p| p.get(key)) {
                out.push(child);
                named = true;
            }
            if let Some(Value::Object(table)) = node.get("patternProperties") {
                for (expression, child) in table {
                    if self.pattern_matches(expression, key) {
                        out.push(child);
                        named = true;
                    }
                }
            }
            if !named {
                out.extend(node.get("additionalProperties"));
            }
        }
        if out.is_empty() {
            out.extend(nodes.iter().filter_map(|n| n.get("unevaluatedProperties")));
        }
        out
    }

    /// Nodes of an item of a list.
    pub fn item<'a>(&'a self, nodes: &[&'a Value], index: usize) -> Nodes<'a> {
        let mut out: Nodes<'a> = Vec::new();
        for node in nodes {
            let (tuple, rest) = match (node.get("prefixItems"), node.get("items")) {
                (Some(Value::Array(tuple)), rest) => (Some(tuple), rest),
                (_, Some(Value::Array(tuple))) => (Some(tuple), node.get("additionalItems")),
                (_, rest) => (None, rest),
            };
            match tuple.and_then(|t| t.get(index)) {
                Some(child) => out.push(child),
                None => out.extend(rest),
            }
        }
        if out.is_empty() {
            out.extend(nodes.iter().filter_map(|n| n.get("unevaluatedItems")));
        }
        out
    }

    /// Everything that could ever speak of the value at `tokens`: every branch, also of `not`, `if` and `contains`.
    pub fn anything_at<'a>(&'a self, root: &Value, tokens: &[String]) -> Nodes<'a> {
        let mut nodes = self.every_branch(vec![self.doc.root()]);
        let mut value = Some(root);
        for token in tokens {
            let mut children = self.member(&nodes, token);
            if let (Some(Value::Array(_)), Ok(index)) = (value, token.parse::<usize>()) {
                children = self.item(&nodes, index);
                children.extend(nodes.iter().filter_map(|n| n.get("contains")));
            }
            value = match value {
                Some(Value::Object(members)) => members.get(token.as_str()),
                Some(Value::Array(items)) => token.parse::<usize>().ok().and_then(|i| items.get(i)),
                _ => None,
            };
            nodes = self.every_branch(children);
        }
        nodes
    }

    fn every_branch<'a>(&'a self, mut queue: Vec<&'a Value>) -> Nodes<'a> {
        let mut out = Vec::new();
        while let Some(node) = queue.pop() {
            let before = out.len();
            self.doc.conjuncts(node, &mut out);
            for node in out.get(before..).unwrap_or_default() {
                for key in ["anyOf", "oneOf"] {
                    queue.extend(node.get(key).and_then(Value::as_array).into_iter().flatten());
                }
                queue.extend(["if", "then", "else", "not"].iter().filter_map(|k| node.get(*k)));
                for key in ["dependentSchemas", "dependencies"] {
                    let table = node.get(key).and_then(Value::as_object);
                    queue.extend(table.into_iter().flat_map(|t| t.values()).filter(|v| v.is_object()));
                }
            }
            if out.len() > 4096 {
                break;
            }
        }
        out
    }

    /// Named in `properties`, or matched by a `patternProperties`.
    pub fn declares(&self, nodes: &[&Value], key: &str) -> bool {
        nodes.iter().any(|node| {
            node.get("properties").is_some_and(|p| p.get(key).is_some())
                || node
                    .get("patternProperties")
                    .and_then(Value::as_object)
                    .is_some_and(|table| table.keys().any(|expression| self.pattern_matches(expression, key)))
        })
    }

    fn pattern_matches(&self, expression: &str, key: &str) -> bool {
        self.patterns.get(expression).is_some_and(|v| v.is_valid(&Value::String(key.to_owned())))
    }

    /// Nodes that apply to the value at `tokens` below `root`; empty where the value has no such place.
    pub fn at<'a>(&'a self, root: &Value, tokens: &[String]) -> Nodes<'a> {
        let mut value = root;
        let mut nodes = self.applying(&[self.doc.root()], value);
        for token in tokens {
            let (children, next) = match value {
                Value::Object(members) => (self.member(&nodes, token), members.get(token.as_str())),
                Value::Array(items) => match token.parse::<usize>() {
                    Ok(index) => (self.item(&nodes, index), items.get(index)),
                    Err(_) => return Vec::new(),
                },
                _ => return Vec::new(),
            };
            match next {
                Some(next) => {
                    nodes = self.applying(&children, next);
                    value = next;
                }
                // the place is absent: only what holds whatever stands there
                None => {
                    let mut out = Vec::new();
                    children.iter().for_each(|c| self.doc.conjuncts(c, &mut out));
                    return out;
                }
            }
        }
        nodes
    }
}

/// Whether one of the nodes requires the key.
pub(crate) fn requires(nodes: &[&Value], key: &str) -> bool {
    nodes.iter().filter_map(|n| n.get("required")?.as_array()).flatten().any(|k| k.as_str() == Some(key))
}

/// The declared default of a property, if the nodes declare one.
pub(crate) fn default_of<'a>(nodes: &[&'a Value]) -> Option<&'a Value> {
    nodes.iter().find_map(|n| n.get("default"))
}

/// Whether the nodes say in so many words that null is allowed: strict mode's form of "optional".
pub(crate) fn names_null(doc: &SchemaDoc, nodes: &[&Value]) -> bool {
    let mut all = Vec::new();
    nodes.iter().for_each(|n| doc.conjuncts(n, &mut all));
    all.iter().any(|node| {
        let typed = match node.get("type") {
            Some(Value::String(t)) => t == "null",
            Some(Value::Array(list)) => list.iter().any(|t| t == "null"),
            _ => false,
        };
        let listed = node.get("enum").and_then(Value::as_array).is_some_and(|l| l.contains(&Value::Null));
        let constant = node.get("const") == Some(&Value::Null);
        let nested = ["anyOf", "oneOf"].iter().any(|key| {
            let branches = node.get(*key).and_then(Value::as_array);
            branches.is_some_and(|b| b.iter().any(|branch| names_null(doc, &[branch])))
        });
        (typed && (node.get("enum").is_none() || listed))
            || (listed && node.get("type").is_none())
            || constant
            || nested
    })
}

fn addresses(root: &Value) -> HashMap<usize, String> {
    fn walk(node: &Value, pointer: &str, out: &mut HashMap<usize, String>) {
        out.insert(std::ptr::from_ref(node).addr(), format!("#{pointer}"));
        match node {
            Value::Object(members) => {
                members.iter().for_each(|(k, v)| walk(v, &format!("{pointer}/{}", escape(k)), out));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, v)| walk(v, &format!("{pointer}/{i}"), out));
            }
            _ => {}
        }
    }
    let mut out = HashMap::new();
    walk(root, "", &mut out);
    out
}

#[derive(Default)]
struct Found {
    unions: bool,
    property_patterns: Vec<String>,
    hidden_patterns: Vec<String>,
}

impl Found {
    /// `in_table`: the keys of this object are names, not keywords. `hidden`: below a keyword that swallows the error
    /// of a pattern which gave up.
    fn walk(&mut self, node: &Value, in_table: bool, hidden: bool) {
        const SWALLOWS: [&str; 7] =
            ["not", "if", "oneOf", "anyOf", "contains", "propertyNames", "unevaluatedProperties"];
        let Value::Object(members) = node else {
            if let Value::Array(items) = node {
                items.iter().for_each(|v| self.walk(v, false, hidden));
            }
            return;
        };
        if in_table {
            members.values().for_each(|child| self.walk(child, false, hidden));
            return;
        }
        self.unions |= BRANCH_KEYS.iter().any(|k| members.contains_key(*k));
        for (key, child) in members {
            match key.as_str() {
                "enum" | "const" | "default" | "examples" => continue,
                "pattern" if hidden => self.hidden_patterns.extend(child.as_str().map(str::to_owned)),
                "patternProperties" => {
                    for expression in child.as_object().into_iter().flat_map(|t| t.keys()) {
                        self.property_patterns.push(expression.clone());
                        self.hidden_patterns.push(expression.clone());
                    }
                }
                _ => {}
            }
            self.walk(
                child,
                SCHEMA_TABLES.contains(&key.as_str()),
                hidden || SWALLOWS.contains(&key.as_str()),
            );
        }
    }
}

/// Whether a union leads back to itself: the errors of such a schema grow exponentially with the value's depth.
fn recursive_unions(doc: &SchemaDoc) -> bool {
    fn visit<'a>(
        doc: &'a SchemaDoc,
        node: &'a Value,
        in_union: bool,
        path: &mut Vec<(usize, bool)>,
        budget: &mut u32,
    ) -> bool {
        let id = std::ptr::from_ref(node).addr();
        if let Some(at) = path.iter().position(|(on, _)| *on == id) {
            return in_union || path.iter().skip(at).any(|(_, union)| *union);
        }
        if *budget == 0 {
            return true; // too large to say: taken as recursive
        }
        *budget -= 1;
        path.push((id, in_union));
        let found = match node {
            Value::Object(members) => {
                doc.reference(node).is_some_and(|target| visit(doc, target, false, path, budget))
                    || members
                        .iter()
                        .filter(|(k, _)| {
                            !matches!(
                                k.as_str(),
                                "enum" | "const" | "default" | "examples" | "$defs" | "definitions"
                            )
                        })
                        .any(|(k, v)| visit(doc, v, matches!(k.as_str(), "anyOf" | "oneOf"), path, budget))
            }
            Value::Array(items) => items.iter().any(|v| visit(doc, v, in_union, path, budget)),
            _ => false,
        };
        path.pop();
        found
    }
    visit(doc, doc.root(), false, &mut Vec::new(), &mut 20_000)
}
