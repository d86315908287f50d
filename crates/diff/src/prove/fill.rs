//! A runtime that fills declared defaults before it validates: the value it sees, and when it accepts one.
//!
//! Filled are absent members that `properties` declares with a default, directly or through `$ref` and `allOf`, at the
//! root and wherever the parent is there. Defaults inside alternatives and conditions are not filled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::compile::Compiler;
use super::eval::holds;
use super::index::Place;
use super::ir::{self, Kind, N};

/// Levels of a value that are filled.
const MAX_LEVELS: usize = 8;
/// Places of one document that are looked at.
const MAX_PLACES: usize = 2_000;
/// Nodes within nodes that are rewritten.
const MAX_DEPTH: usize = 100;
/// Defaults of one object up to which a count of members is rewritten exactly.
const MAX_COUNTED: usize = 4;

/// The defaults of one place and of the places below it.
#[derive(Clone, Debug, Default)]
pub(super) struct Fill {
    defaults: BTreeMap<String, Value>,
    below: BTreeMap<String, Fill>,
    items: Option<Box<Fill>>,
}

impl Fill {
    fn is_empty(&self) -> bool {
        self.defaults.is_empty() && self.below.is_empty() && self.items.is_none()
    }

    /// The value that is validated.
    pub fn apply(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                for (name, default) in &self.defaults {
                    map.entry(name.as_str()).or_insert_with(|| default.clone());
                }
                for (name, fill) in &self.below {
                    map.get_mut(name).into_iter().for_each(|member| fill.apply(member));
                }
            }
            Value::Array(items) => {
                self.items.iter().for_each(|fill| items.iter_mut().for_each(|item| fill.apply(item)));
            }
            _ => {}
        }
    }

    fn applied(&self, value: &Value) -> Value {
        let mut value = value.clone();
        self.apply(&mut value);
        value
    }
}

/// A document's defaults, and what accepts a value exactly if the document accepts it once it is filled.
pub(super) struct Filled {
    pub fill: Arc<Fill>,
    pub meaning: N,
    /// Not every default was read: nothing can be said.
    pub cut: bool,
    /// Where a default stands that its own schema refuses, a JSON Pointer into the value with `*` for items; with it.
    pub refused: Vec<(String, Value)>,
}

/// Reads the defaults of a document that means `meaning`. `None`: nothing is filled.
pub(super) fn filled(compiler: &mut Compiler<'_>, meaning: &N) -> Option<Filled> {
    let root = compiler.index.root_place();
    if !mentions_default(root.node) {
        return None;
    }
    let mut reader = Reader { compiler, left: MAX_PLACES, cut: false, refused: Vec::new() };
    let fill = reader.place(vec![root], "", 0);
    let (cut, refused) = (reader.cut, reader.refused);
    if fill.is_empty() && !cut {
        return None;
    }
    let fill = Arc::new(fill);
    let meaning = if cut {
        let id = ir::identity(&["cut", &compiler.document().to_string()]);
        ir::opaque(id, Arc::new(|_| None))
    } else {
        rewritten(meaning, &fill, 0)
    };
    Some(Filled { fill, meaning, cut, refused })
}

/// Whether the word stands there as a key.
fn mentions_default(schema: &Value) -> bool {
    let mut stack = vec![schema];
    while let Some(node) = stack.pop() {
        match node {
            Value::Object(map) if map.contains_key("default") => return true,
            Value::Object(map) => stack.extend(map.values()),
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
    false
}

struct Reader<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    left: usize,
    /// Not everything was read.
    cut: bool,
    refused: Vec<(String, Value)>,
}

impl<'a> Reader<'_, 'a> {
    /// The defaults of a value of which these schemas speak.
    fn place(&mut self, places: Vec<Place<'a>>, pointer: &str, level: usize) -> Fill {
        let mut speaking = Vec::new();
        places.into_iter().for_each(|place| self.conjuncts(place, &mut speaking));
        let mut fill = Fill::default();
        if level >= MAX_LEVELS || self.left < speaking.len() {
            self.cut |= !speaking.is_empty();
            return fill;
        }
        self.left -= speaking.len();
        let mut members: BTreeMap<&'a str, Vec<Place<'a>>> = BTreeMap::new();
        let mut items = Vec::new();
        for place in &speaking {
            for (name, node) in place.node.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                members.entry(name).or_default().push(self.compiler.index.below(*place, node));
            }
            let node = place.node.get("items").filter(|_| place.node.get("prefixItems").is_none());
            items.extend(node.filter(|n| n.is_object()).map(|n| self.compiler.index.below(*place, n)));
        }
        for (name, places) in members {
            let at = crate::pointer::join_name(pointer, name);
            let below = self.place(places.clone(), &at, level + 1);
            let mut all = Vec::new();
            places.iter().for_each(|place| self.conjuncts(*place, &mut all));
            if let Some(default) = all.iter().find_map(|place| place.node.get("default")) {
                let default = below.applied(default);
                let mut refuses =
                    |place: &Place<'a>| holds(&self.compiler.schema(*place), &default) == Some(false);
                if places.iter().any(&mut refuses) {
                    self.refused.push((at, default.clone()));
                }
                fill.defaults.insert(name.to_owned(), default);
            }
            if !below.is_empty() {
                fill.below.insert(name.to_owned(), below);
            }
        }
        if !items.is_empty() {
            let below = self.place(items, &crate::pointer::join(pointer, "*"), level + 1);
            fill.items = Some(Box::new(below)).filter(|below| !below.is_empty());
        }
        fill
    }

    /// The schema, what it refers to, and the parts of its `allOf`.
    fn conjuncts(&self, place: Place<'a>, out: &mut Vec<Place<'a>>) {
        if !place.node.is_object() || out.iter().any(|p| p.address() == place.address()) || out.len() > 200 {
            return;
        }
        let index = self.compiler.index;
        let reference = place.node.get("$ref").and_then(Value::as_str);
        if reference.is_none() || !index.ref_stands_alone() {
            out.push(place);
        }
        if let Some(target) = reference.and_then(|reference| index.resolve(place, reference)) {
            self.conjuncts(target, out);
        }
        if reference.is_none() || !index.ref_stands_alone() {
            let parts = place.node.get("allOf").and_then(Value::as_array).into_iter().flatten();
            parts.for_each(|part| self.conjuncts(index.below(place, part), out));
        }
    }
}

/// A node that holds of a value exactly if `node` holds of the filled value.
fn rewritten(node: &N, fill: &Arc<Fill>, depth: usize) -> N {
    if fill.is_empty() {
        return node.clone();
    }
    let checked = || {
        let id = ir::identity(&["filled", &node.id.to_string(), &format!("{fill:?}")]);
        let (node, fill) = (node.clone(), fill.clone());
        ir::opaque(id, Arc::new(move |value| holds(&node, &fill.applied(value))))
    };
    if depth > MAX_DEPTH {
        return checked();
    }
    let below = |node: &N, fill: &Fill| rewritten(node, &Arc::new(fill.clone()), depth + 1);
    let each = |parts: &[N]| parts.iter().map(|part| rewritten(part, fill, depth + 1)).collect::<Vec<_>>();
    match &node.kind {
        Kind::And(parts) => ir::and(each(parts)),
        Kind::Or(parts) => ir::or(each(parts)),
        Kind::One(parts) => ir::one(each(parts)),
        Kind::Not(part) => ir::not(&rewritten(part, fill, depth + 1)),
        Kind::Link(link) => link.get().map_or_else(checked, |target| rewritten(&target, fill, depth + 1)),
        Kind::Enum(values) if values.iter().any(|v| v.is_object() || v.is_array()) => checked(),
        Kind::Opaque(_) | Kind::Contested => checked(),
        Kind::Required(name) if fill.defaults.contains_key(&**name) => ir::truth(true),
        Kind::MinProperties(least) => counted(fill, |there| {
            ir::count("minProperties", least.saturating_sub(there), Kind::MinProperties)
        })
        .unwrap_or_else(checked),
        Kind::MaxProperties(most) => counted(fill, |there| match most.checked_sub(there) {
            Some(left) => ir::count("maxProperties", left, Kind::MaxProperties),
            None => ir::of_types(ir::Types::OBJECT.not()),
        })
        .unwrap_or_else(checked),
        Kind::Names(names) => demanded(
            node.clone(),
            fill.defaults.keys().map(|name| (name, holds(names, &Value::from(name.as_str())))),
        )
        .unwrap_or_else(checked),
        Kind::Items { prefix, rest } => match &fill.items {
            Some(fill) => ir::items(prefix.iter().map(|n| below(n, fill)).collect(), below(rest, fill)),
            None => node.clone(),
        },
        Kind::Contains { item, min, max } => match &fill.items {
            Some(fill) => ir::contains(below(item, fill), *min, *max),
            None => node.clone(),
        },
        Kind::Unique if fill.items.is_some() => checked(),
        Kind::Members { names, patterns, rest } => {
            members(fill, (names, patterns, rest), &below).unwrap_or_else(checked)
        }
        _ => node.clone(),
    }
}

type Named = (Arc<str>, N);
type Patterned = (Arc<str>, N, ir::Check);

/// `Members` of the filled value. `None`: what a pattern says is not known, or it speaks of a member that is filled below.
fn members(
    fill: &Fill,
    (names, patterns, rest): (&[Named], &[Patterned], &N),
    below: &dyn Fn(&N, &Fill) -> N,
) -> Option<N> {
    let mut named: BTreeMap<Arc<str>, N> = names.iter().cloned().collect();
    // What is said of a member by its name, or by what is left; and by patterns.
    let said = |name: &str| -> Option<(Option<N>, Vec<N>)> {
        let mut matching = Vec::new();
        for (_, node, check) in patterns {
            if check(&Value::from(name))? {
                matching.push(node.clone());
            }
        }
        let own = names.iter().find(|(n, _)| **n == *name).map(|(_, node)| node.clone());
        let own = own.or_else(|| matching.is_empty().then(|| rest.clone()));
        Some((own, matching))
    };
    for (name, fill) in &fill.below {
        let (own, matching) = said(name)?;
        if !matching.is_empty() {
            return None;
        }
        named.insert(name.as_str().into(), below(&own?, fill));
    }
    let mut answers = Vec::new();
    for (name, default) in &fill.defaults {
        let (own, matching) = said(name)?;
        let all = ir::and(own.into_iter().chain(matching).collect());
        answers.push((name, holds(&all, default)));
    }
    let node = ir::members(named.into_iter().collect(), patterns.to_vec(), rest.clone());
    demanded(node, answers.into_iter())
}

/// The node, and every member there whose default is refused: without the member it would be filled.
fn demanded<'n>(node: N, answers: impl Iterator<Item = (&'n String, Option<bool>)>) -> Option<N> {
    let mut parts = vec![node];
    for (name, accepted) in answers {
        if !accepted? {
            parts.push(ir::required(name));
        }
    }
    Some(ir::and(parts))
}

/// A count of members where as many more are there as are filled: `of` says what is asked of the value as it is. `None`:
/// too many ways.
fn counted(fill: &Fill, of: impl Fn(u64) -> N) -> Option<N> {
    let names: Vec<&String> = fill.defaults.keys().collect();
    if names.len() > MAX_COUNTED {
        return None;
    }
    let mut ways = Vec::new();
    for set in 0..1usize << names.len() {
        let absent: BTreeSet<usize> = (0..names.len()).filter(|i| set >> i & 1 == 1).collect();
        let mut parts = vec![of(absent.len() as u64)];
        for (i, name) in names.iter().enumerate() {
            let there = ir::required(name);
            parts.push(if absent.contains(&i) { ir::not(&there) } else { there });
        }
        ways.push(ir::and(parts));
    }
    Some(ir::or(ways))
}
