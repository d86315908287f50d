//! One side of a pair, prepared: its validators, its document, and which nodes of it speak of a place in a value.

use std::collections::HashMap;

use jsonschema::{PatternOptions, Validator, ValidatorMap};
use lastcall_contract::{BACKTRACK_LIMIT, Contract, Definition, PatternEngine, validator_and_engine, validator_for};
use lastcall_diff::{SchemaDoc, escape};
use serde_json::Value;

use crate::pair::PrepareError;

/// A contract, ready to judge calls.
pub(crate) struct Side {
    pub id: String,
    pub doc: SchemaDoc,
    pub validator: Validator,
    pub output: Option<(SchemaDoc, Validator)>,
    /// Validators of every subschema by `#/…` pointer: which branch of a union applies. Only where there are unions.
    branches: Option<ValidatorMap>,
    /// Address of a node in the document → its pointer, for `branches`.
    pointers: HashMap<usize, String>,
    /// patternProperties: expression → a validator of strings.
    patterns: HashMap<String, Validator>,
    /// Expressions that may give up where the validator would not show it (under `not` and the like).
    pub hidden: Vec<Validator>,
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
        let (validator, engine) = validator_and_engine(schema, definition.draft).map_err(refuse("input schema"))?;
        let output = match &definition.output_schema {
            None => None,
            Some(schema) => {
                let validator = validator_for(schema, definition.draft).map_err(refuse("output schema"))?;
                Some((SchemaDoc::new(schema.clone()), validator))
            }
        };
        let doc = SchemaDoc::new(schema.clone());
        let mut found = Found::default();
        found.walk(doc.root(), &mut String::new(), false);
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
            id: contract.id.clone(),
            pointers: if branches.is_some() { addresses(doc.root()) } else { HashMap::new() },
            doc,
            validator,
            output,
            branches,
            patterns,
            hidden,
        })
    }

    /// Expressions of patternProperties, sorted.
    pub fn has_patterns(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.patterns.keys().map(String::as_str).collect();
        all.sort_unstable();
        all
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
                queue.extend(table.iter().filter(|(k, v)| v.is_object() && members.contains_key(*k)).map(|(_, v)| v));
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
        out
    }

    /// Named in `properties`, or matched by a `patternProperties`.
    pub fn declares(&self, nodes: &[&Value], key: &str) -> bool {
        nodes.iter().any(|node| {
            node.get("properties").is_some_and(|p| p.get(key).is_some())
                || node.get("patternProperties").and_then(Value::as_object).is_some_and(|table| {
                    table.keys().any(|expression| self.pattern_matches(expression, key))
                })
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
        (typed && (node.get("enum").is_none() || listed)) || (listed && node.get("type").is_none()) || constant || nested
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
    /// `hidden`: below a keyword that swallows the error of a pattern which gave up.
    fn walk(&mut self, node: &Value, pointer: &mut String, hidden: bool) {
        let Value::Object(members) = node else {
            if let Value::Array(items) = node {
                items.iter().for_each(|v| self.walk(v, pointer, hidden));
            }
            return;
        };
        self.unions |= BRANCH_KEYS.iter().any(|k| members.contains_key(*k));
        for (key, child) in members {
            match key.as_str() {
                "enum" | "const" | "default" | "examples" => continue,
                "pattern" if hidden => self.hidden_patterns.extend(child.as_str().map(str::to_owned)),
                "patternProperties" => {
                    let expressions = child.as_object().into_iter().flat_map(|t| t.keys());
                    for expression in expressions {
                        self.property_patterns.push(expression.clone());
                        self.hidden_patterns.push(expression.clone());
                    }
                }
                _ => {}
            }
            let swallows =
                matches!(key.as_str(), "not" | "if" | "oneOf" | "anyOf" | "contains" | "propertyNames" | "unevaluatedProperties");
            self.walk(child, pointer, hidden || swallows);
        }
    }
}
