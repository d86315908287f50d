//! The places of a schema and the goals at each: read once, used to build calls and to see what a call covers.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use serde_json::{Map as Object, Value, json};

use super::edges::{self, Edge};
use super::{Goal, GoalKind};
use crate::doc::SchemaDoc;
use crate::places::{allowed, properties, required, types};
use crate::pointer::{escape, join, join_name};

/// Places at which one shared definition is gone through where there are many goals already.
const MAX_VISITS: u32 = 12;
const MANY_GOALS: usize = 1_000;
/// More goals than this are not listed.
const MAX_GOALS: usize = 4_000;
/// Nesting of places.
const MAX_DEPTH: usize = 24;
/// Longer strings and lists are not made.
pub(super) const MAX_TEXT: u64 = 10_000;
pub(super) const MAX_LIST: u64 = 256;

/// How a place hangs under its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The arguments.
    Root,
    /// The same value, with one branch taken.
    Same(Test),
    /// This property.
    Name(String),
    /// Any item.
    Item,
    /// The item at this index.
    Index(usize),
    /// A key that no property declares.
    Open,
    /// A key that this expression matches.
    Matching(String),
}

/// When a value takes a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// Pointer of the schema that decides.
    pub pointer: String,
    /// Whether it has to accept.
    pub accepts: bool,
}

/// One place.
#[derive(Debug)]
pub(super) struct Place {
    pub parent: Option<usize>,
    pub step: Step,
    pub pattern: String,
    /// The schema of this place with the branches taken so far and references followed at its top.
    pub schema: Value,
    pub children: Vec<usize>,
    pub goals: Vec<usize>,
}

/// A goal, where it is, and what it needs beyond its text.
#[derive(Debug)]
pub(super) struct Target {
    pub place: usize,
    pub need: Need,
}

/// What has to be true of the value at the place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Need {
    /// Nothing: being there is enough.
    There,
    /// The object lacks this key.
    Without(String),
    /// This value.
    Equal(Value),
    /// A value of this type.
    Typed(String),
    /// A number at this edge.
    Edge(Edge),
    /// A number that is not zero.
    NotZero,
    /// A string of so many characters.
    Length(u64),
    /// A list of so many items.
    Items(u64),
}

/// Places and goals of one schema.
#[derive(Debug, Default)]
pub(super) struct Map {
    pub places: Vec<Place>,
    pub goals: Vec<Goal>,
    pub targets: Vec<Target>,
    pub cut: bool,
}

struct Walk<'a> {
    doc: &'a SchemaDoc,
    /// Address of a node → its pointer in the document.
    pointers: HashMap<usize, String>,
    map: Map,
    /// The nodes of the places on the way here.
    stack: Vec<Vec<usize>>,
    /// How often the same nodes were gone through, whoever refers to them.
    visits: HashMap<Vec<usize>, u32>,
}

/// The unions that were decided: (address of the node, keyword).
type Chosen = Vec<(usize, &'static str)>;

fn address(node: &Value) -> usize {
    std::ptr::from_ref(node).addr()
}

impl Map {
    /// Reads a document.
    pub(super) fn of(doc: &SchemaDoc) -> Self {
        let mut pointers = HashMap::new();
        index(doc.root(), &mut String::new(), &mut pointers);
        let mut walk =
            Walk { doc, pointers, map: Self::default(), stack: Vec::new(), visits: HashMap::new() };
        // arguments are an object, also where the schema takes more
        let object = doc.root().get("type").is_some_and(|t| t == "object");
        let nodes: &[&Value] = if object { &[doc.root()] } else { &[doc.root(), of_objects()] };
        walk.enter(nodes, None, Step::Root, String::new());
        walk.map
    }
}

/// What every call's arguments are.
pub(super) fn of_objects() -> &'static Value {
    static OBJECT: LazyLock<Value> = LazyLock::new(|| json!({"type": "object"}));
    &OBJECT
}

fn index(node: &Value, pointer: &mut String, out: &mut HashMap<usize, String>) {
    out.insert(address(node), pointer.clone());
    let mut below = |token: &str, child: &Value| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&escape(token));
        index(child, pointer, out);
        pointer.truncate(length);
    };
    match node {
        Value::Object(map) => map.iter().for_each(|(key, child)| below(key, child)),
        Value::Array(items) => items.iter().enumerate().for_each(|(i, child)| below(&i.to_string(), child)),
        _ => {}
    }
}

impl<'a> Walk<'a> {
    fn pointer(&self, node: &Value) -> String {
        self.pointers.get(&address(node)).cloned().unwrap_or_default()
    }

    /// A new place with nothing decided; answers its index, or `None` where the walk ends.
    fn enter(
        &mut self,
        nodes: &[&'a Value],
        parent: Option<usize>,
        step: Step,
        pattern: String,
    ) -> Option<usize> {
        let mut all = Vec::new();
        nodes.iter().for_each(|node| self.doc.conjuncts(node, &mut all));
        let refused = nodes.iter().any(|n| **n == Value::Bool(false));
        self.place(&all, &all, &Vec::new(), Spot { parent, step, pattern, refused })
    }

    /// `fresh`: the nodes whose keywords make goals here; the others made theirs at the place above.
    fn place(
        &mut self,
        all: &[&'a Value],
        fresh: &[&'a Value],
        chosen: &Chosen,
        Spot { parent, step, pattern, refused }: Spot,
    ) -> Option<usize> {
        let mut here: Vec<usize> = all.iter().map(|n| address(n)).collect();
        here.sort_unstable();
        if self.stack.len() >= MAX_DEPTH || (!here.is_empty() && self.stack.contains(&here)) {
            return None; // recursion: its goals stand at the first place
        }
        let refers_only = |n: &Value| n.as_object().is_some_and(|m| m.len() == 1 && m.contains_key("$ref"));
        let mut itself: Vec<usize> = all.iter().filter(|n| !refers_only(n)).map(|n| address(n)).collect();
        itself.sort_unstable();
        if !itself.is_empty() {
            let visits = self.visits.entry(itself).or_insert(0);
            *visits += 1;
            if *visits > MAX_VISITS && self.map.goals.len() > MANY_GOALS {
                self.map.cut = true;
                return None; // shared: its goals stand at the first places
            }
        }
        if self.map.goals.len() >= MAX_GOALS {
            self.map.cut = true;
            return None;
        }
        let schema = if refused { Value::Bool(false) } else { narrowed(all, chosen) };
        let id = self.map.places.len();
        let place = Place { parent, step, pattern, schema, children: Vec::new(), goals: Vec::new() };
        self.map.places.push(place);
        if let Some(parent) = parent {
            self.map.places[parent].children.push(id);
        }
        self.stack.push(here);
        self.values(id, all, fresh);
        self.members(id, all, fresh);
        self.unions(id, all, fresh, chosen);
        self.stack.pop();
        Some(id)
    }

    fn goal(
        &mut self,
        place: usize,
        pointer: String,
        kind: GoalKind,
        detail: Option<String>,
        location: String,
        need: Need,
    ) {
        if self.map.goals.len() >= MAX_GOALS {
            self.map.cut = true;
            return;
        }
        self.map.places[place].goals.push(self.map.goals.len());
        self.map.goals.push(Goal { pointer, kind, detail, location });
        self.map.targets.push(Target { place, need });
    }

    /// Goals of the value itself.
    fn values(&mut self, id: usize, all: &[&'a Value], fresh: &[&'a Value]) {
        let has = |keys: &[&str]| fresh.iter().find(|n| keys.iter().any(|k| n.get(*k).is_some())).copied();
        let pattern = self.map.places[id].pattern.clone();
        let kinds = types(all);
        let add = |walk: &mut Self, kind, detail: Option<String>, node: &Value, need| {
            walk.goal(id, pattern.clone(), kind, detail, walk.pointer(node), need);
        };
        if let Some(node) = has(&["enum", "const"]) {
            for value in allowed(all).unwrap_or_default() {
                let kind = if value.is_null() { GoalKind::Null } else { GoalKind::Value };
                let detail = (!value.is_null()).then(|| value.to_string());
                add(self, kind, detail, node, Need::Equal(value.clone()));
            }
            return;
        }
        if allowed(all).is_some() {
            return;
        }
        if let Some(node) = has(&["type"]) {
            let several = kinds.len() > 1 && fresh.iter().any(|n| n.get("type").is_some_and(Value::is_array));
            for kind in &kinds {
                match *kind {
                    // `number` stands for both
                    "integer" if kinds.contains("number") => continue,
                    "null" => add(self, GoalKind::Null, None, node, Need::Equal(Value::Null)),
                    _ if several => {
                        let detail = Some(json!(kind).to_string());
                        add(self, GoalKind::Type, detail, node, Need::Typed((*kind).to_owned()));
                    }
                    _ => {}
                }
            }
            if kinds.contains("boolean") {
                for value in [false, true] {
                    add(self, GoalKind::Value, Some(value.to_string()), node, Need::Equal(value.into()));
                }
            }
        }
        if kinds.contains("integer") {
            let whole = !kinds.contains("number");
            let (low, high) = edges::of(all, whole);
            for (kind, edge, keys) in [
                (GoalKind::Minimum, low, ["minimum", "exclusiveMinimum"]),
                (GoalKind::Maximum, high, ["maximum", "exclusiveMaximum"]),
            ] {
                if let (Some(edge), Some(node)) = (edge, has(&keys)) {
                    let detail = Some(edge.bound.to_string());
                    add(self, kind, detail, node, Need::Edge(edge));
                }
            }
            if let Some(node) = has(&["multipleOf"]) {
                let detail = node.get("multipleOf").map(Value::to_string);
                add(self, GoalKind::MultipleOf, detail, node, Need::NotZero);
            }
        }
        let count = |key: &str, largest: bool| {
            let stated = all.iter().filter_map(|n| n.get(key)?.as_f64()).map(|n| n as u64);
            if largest { stated.max() } else { stated.min() }
        };
        for (kind, of, key, largest) in [
            (GoalKind::MinLength, "string", "minLength", true),
            (GoalKind::MaxLength, "string", "maxLength", false),
            (GoalKind::MinItems, "array", "minItems", true),
            (GoalKind::MaxItems, "array", "maxItems", false),
        ] {
            if let (Some(n), Some(node), true) = (count(key, largest), has(&[key]), kinds.contains(of)) {
                let need = if of == "string" { Need::Length(n) } else { Need::Items(n) };
                add(self, kind, Some(n.to_string()), node, need);
            }
        }
    }

    /// Properties, open keys and items.
    fn members(&mut self, id: usize, all: &[&'a Value], fresh: &[&'a Value]) {
        let kinds = types(all);
        if allowed(all).is_some() {
            return; // the listed values say all
        }
        let pattern = self.map.places[id].pattern.clone();
        if kinds.contains("object") {
            let (everything, required) = (properties(all), required(all));
            for name in properties(fresh).keys() {
                let Some(nodes) = everything.get(name) else { continue };
                let at = join_name(&pattern, name);
                let location = nodes.first().map(|n| self.pointer(n)).unwrap_or_default();
                let needed = required.contains(name);
                let Some(child) = self.enter(nodes, Some(id), Step::Name((*name).to_owned()), at.clone())
                else {
                    // a recursive place still has its own presence
                    self.leaf(id, nodes, name, &at, needed, &location);
                    continue;
                };
                let kind = if needed { GoalKind::Required } else { GoalKind::Optional };
                self.goal(child, at.clone(), kind, None, location.clone(), Need::There);
                if !needed {
                    let need = Need::Without((*name).to_owned());
                    self.goal(id, at, GoalKind::Omitted, None, location, need);
                }
            }
            let star = join(&pattern, "*");
            for node in fresh {
                if let Some(open) = node.get("additionalProperties").filter(|v| v.is_object()) {
                    let child = self.enter(&[open], Some(id), Step::Open, star.clone());
                    self.open(child, &star, open);
                }
                for (expression, schema) in
                    node.get("patternProperties").and_then(Value::as_object).into_iter().flatten()
                {
                    let step = Step::Matching(expression.clone());
                    let child = self.enter(&[schema], Some(id), step, star.clone());
                    self.open(child, &star, schema);
                }
            }
        }
        if kinds.contains("array") {
            for node in fresh {
                let items = node.get("items");
                let listed = node.get("prefixItems").or(items).and_then(Value::as_array);
                for (i, schema) in listed.into_iter().flatten().enumerate().take(64) {
                    self.enter(&[schema], Some(id), Step::Index(i), join(&pattern, &i.to_string()));
                }
                let rest =
                    if items.is_some_and(Value::is_array) { node.get("additionalItems") } else { items };
                if let Some(schema) = rest.filter(|v| v.is_object()) {
                    self.enter(&[schema], Some(id), Step::Item, join(&pattern, "*"));
                }
            }
        }
    }

    fn open(&mut self, child: Option<usize>, star: &str, schema: &Value) {
        if let Some(child) = child {
            let location = self.pointer(schema);
            self.goal(child, star.to_owned(), GoalKind::OpenKey, None, location, Need::There);
        }
    }

    /// A property whose inside was listed above: being there and being left out only.
    fn leaf(&mut self, id: usize, nodes: &[&'a Value], name: &str, at: &str, needed: bool, location: &str) {
        if self.map.cut {
            return;
        }
        let child = self.map.places.len();
        let mut all = Vec::new();
        nodes.iter().for_each(|node| self.doc.conjuncts(node, &mut all));
        self.map.places.push(Place {
            parent: Some(id),
            step: Step::Name(name.to_owned()),
            pattern: at.to_owned(),
            schema: narrowed(&all, &Vec::new()),
            children: Vec::new(),
            goals: Vec::new(),
        });
        self.map.places[id].children.push(child);
        let kind = if needed { GoalKind::Required } else { GoalKind::Optional };
        self.goal(child, at.to_owned(), kind, None, location.to_owned(), Need::There);
        if !needed {
            let need = Need::Without(name.to_owned());
            self.goal(id, at.to_owned(), GoalKind::Omitted, None, location.to_owned(), need);
        }
    }

    /// One place more for each branch.
    fn unions(&mut self, id: usize, all: &[&'a Value], fresh: &[&'a Value], chosen: &Chosen) {
        if allowed(all).is_some() {
            return;
        }
        for node in fresh {
            for key in ["anyOf", "oneOf"] {
                let branches = node.get(key).and_then(Value::as_array);
                for (i, branch) in branches.into_iter().flatten().enumerate().take(256) {
                    let way = Way { node, key, taken: &[branch], decides: branch, accepts: true };
                    self.branch(id, all, chosen, &way, i.to_string());
                }
            }
            if let Some(condition) = node.get("if") {
                if let Some(then) = node.get("then") {
                    let detail = "\"then\"".to_owned();
                    let way =
                        Way { node, key: "if", taken: &[then, condition], decides: condition, accepts: true };
                    self.branch(id, all, chosen, &way, detail);
                }
                if let Some(otherwise) = node.get("else") {
                    let detail = "\"else\"".to_owned();
                    let way =
                        Way { node, key: "if", taken: &[otherwise], decides: condition, accepts: false };
                    self.branch(id, all, chosen, &way, detail);
                }
            }
        }
    }

    fn branch(&mut self, id: usize, all: &[&'a Value], chosen: &Chosen, way: &Way<'a, '_>, detail: String) {
        let Way { node, key, taken, decides, accepts } = *way;
        let mut fresh = Vec::new();
        taken.iter().for_each(|branch| self.doc.conjuncts(branch, &mut fresh));
        let mut chosen = chosen.clone();
        chosen.push((address(node), key));
        // what was taken last stands first: the generator lets the first statement of a type win
        let mut together = fresh.clone();
        together.extend(all.iter().filter(|n| !fresh.iter().any(|f| std::ptr::eq(*f, **n))));
        let pattern = self.map.places[id].pattern.clone();
        let step = Step::Same(Test { pointer: self.pointer(decides), accepts });
        let refused = taken.iter().any(|t| **t == Value::Bool(false));
        let place = self.place(
            &together,
            &fresh,
            &chosen,
            Spot { parent: Some(id), step, pattern: pattern.clone(), refused },
        );
        if let Some(place) = place {
            let location = self.pointer(taken.first().copied().unwrap_or(node));
            self.goal(place, pattern, GoalKind::Branch, Some(detail), location, Need::There);
        }
    }
}

/// Where a place lies and how one comes to it.
struct Spot {
    parent: Option<usize>,
    step: Step,
    pattern: String,
    /// No value stands there.
    refused: bool,
}

/// One way through a union or a condition: the keyword, the schemas that then hold, and the one that decides it.
struct Way<'a, 't> {
    node: &'a Value,
    key: &'static str,
    taken: &'t [&'a Value],
    decides: &'a Value,
    /// What the deciding schema has to say.
    accepts: bool,
}

/// The nodes as one schema: references and `allOf` are followed already, decided unions are gone.
fn narrowed(nodes: &[&Value], chosen: &Chosen) -> Value {
    let mut seen = BTreeSet::new();
    let parts: Vec<Value> = nodes
        .iter()
        .filter(|node| seen.insert(address(node)))
        .filter_map(|node| {
            let mut map: Object<String, Value> = node.as_object()?.clone();
            for key in ["$ref", "$dynamicRef", "$recursiveRef", "allOf", "$defs", "definitions"] {
                map.remove(key);
            }
            for (_, key) in chosen.iter().filter(|(at, _)| *at == address(node)) {
                map.remove(*key);
            }
            Some(Value::Object(map))
        })
        .collect();
    match parts.len() {
        1 => parts.into_iter().next().unwrap_or(Value::Bool(true)),
        _ => json!({"allOf": parts}),
    }
}
