//! Making nodes: each has the identity of its content, and what is plainly true, false or the same is said in one form.

use std::sync::Arc;

use serde_json::{Number, Value};
use xxhash_rust::xxh3::Xxh3;

use super::{Check, Kind, Link, N, Node, Types};
use crate::prove::number::{Num, canonical};

struct Hasher(Xxh3);

impl Hasher {
    fn new(tag: &str) -> Self {
        let mut hasher = Self(Xxh3::new());
        hasher.text(tag);
        hasher
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn number(&mut self, n: u64) -> &mut Self {
        self.bytes(&n.to_le_bytes())
    }

    fn node(&mut self, node: &N) -> &mut Self {
        self.bytes(&node.id.to_le_bytes())
    }

    fn with(mut self, kind: Kind) -> N {
        let id = self.end();
        Arc::new(Node { id, kind })
    }

    fn end(&mut self) -> u128 {
        self.0.digest128()
    }
}

/// The identity of a text, for nodes that are not modelled.
pub(in crate::prove) fn identity(parts: &[&str]) -> u128 {
    let mut hasher = Hasher::new("text");
    for part in parts {
        hasher.text(part);
    }
    hasher.end()
}

pub(in crate::prove) fn truth(value: bool) -> N {
    if value { Hasher::new("true").with(Kind::True) } else { Hasher::new("false").with(Kind::False) }
}

pub(in crate::prove) fn is_true(node: &N) -> bool {
    matches!(node.kind, Kind::True)
}

pub(in crate::prove) fn is_false(node: &N) -> bool {
    matches!(node.kind, Kind::False)
}

/// Parts in the order of their identities, each once.
fn sorted(mut parts: Vec<N>) -> Vec<N> {
    parts.sort_by_key(|part| part.id);
    parts.dedup_by_key(|part| part.id);
    parts
}

pub(in crate::prove) fn and(parts: Vec<N>) -> N {
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match &part.kind {
            Kind::True => {}
            Kind::False => return truth(false),
            Kind::And(inner) => flat.extend(inner.iter().cloned()),
            _ => flat.push(part),
        }
    }
    let mut flat = sorted(flat);
    match flat.len() {
        0 => truth(true),
        1 => flat.remove(0),
        _ => {
            let mut hasher = Hasher::new("and");
            flat.iter().for_each(|part| _ = hasher.node(part));
            hasher.with(Kind::And(flat))
        }
    }
}

pub(in crate::prove) fn or(parts: Vec<N>) -> N {
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match &part.kind {
            Kind::False => {}
            Kind::True => return truth(true),
            Kind::Or(inner) => flat.extend(inner.iter().cloned()),
            _ => flat.push(part),
        }
    }
    let mut flat = sorted(flat);
    match flat.len() {
        0 => truth(false),
        1 => flat.remove(0),
        _ => {
            let mut hasher = Hasher::new("or");
            flat.iter().for_each(|part| _ = hasher.node(part));
            hasher.with(Kind::Or(flat))
        }
    }
}

pub(in crate::prove) fn not(node: &N) -> N {
    match &node.kind {
        Kind::True => truth(false),
        Kind::False => truth(true),
        Kind::Not(inner) => inner.clone(),
        Kind::Types(types) => of_types(types.not()),
        _ => {
            let mut hasher = Hasher::new("not");
            hasher.node(node);
            hasher.with(Kind::Not(node.clone()))
        }
    }
}

pub(in crate::prove) fn one(parts: Vec<N>) -> N {
    let mut parts: Vec<N> = parts.into_iter().filter(|part| !is_false(part)).collect();
    parts.sort_by_key(|part| part.id); // not deduplicated: two equal branches refuse each other
    match parts.len() {
        0 => truth(false),
        1 => parts.remove(0),
        _ => {
            let mut hasher = Hasher::new("one");
            parts.iter().for_each(|part| _ = hasher.node(part));
            hasher.with(Kind::One(parts))
        }
    }
}

pub(in crate::prove) fn of_types(types: Types) -> N {
    match types {
        Types::ALL => truth(true),
        Types(0) => truth(false),
        types => {
            let mut hasher = Hasher::new("types");
            hasher.number(u64::from(types.0));
            hasher.with(Kind::Types(types))
        }
    }
}

/// One of these values.
pub(in crate::prove) fn of_values(values: &[Value]) -> N {
    let mut keyed: Vec<(String, Value)> = values
        .iter()
        .map(|value| {
            let value = canonical(value);
            (value.to_string(), value)
        })
        .collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed.dedup_by(|a, b| a.0 == b.0);
    if keyed.is_empty() {
        return truth(false);
    }
    let mut hasher = Hasher::new("enum");
    keyed.iter().for_each(|(text, _)| _ = hasher.text(text));
    hasher.with(Kind::Enum(Arc::new(keyed.into_iter().map(|(_, value)| value).collect())))
}

pub(in crate::prove) fn least(bound: Num, exclusive: bool) -> N {
    let mut hasher = Hasher::new("least");
    hasher.text(&bound.to_string()).number(u64::from(exclusive));
    hasher.with(Kind::Least { bound, exclusive })
}

pub(in crate::prove) fn most(bound: Num, exclusive: bool) -> N {
    let mut hasher = Hasher::new("most");
    hasher.text(&bound.to_string()).number(u64::from(exclusive));
    hasher.with(Kind::Most { bound, exclusive })
}

pub(in crate::prove) fn multiple_of(factor: &Number) -> N {
    let mut hasher = Hasher::new("multiple");
    hasher.text(&canonical(&Value::Number(factor.clone())).to_string());
    hasher.with(Kind::MultipleOf(factor.clone()))
}

/// A count: `minLength` and its like.
pub(in crate::prove) fn count(tag: &str, n: u64, kind: fn(u64) -> Kind) -> N {
    if n == 0 && tag.starts_with("min") {
        return truth(true);
    }
    let mut hasher = Hasher::new(tag);
    hasher.number(n);
    hasher.with(kind(n))
}

pub(in crate::prove) fn pattern(text: &str, check: Check) -> N {
    let mut hasher = Hasher::new("pattern");
    hasher.text(text);
    hasher.with(Kind::Pattern(text.into(), check))
}

pub(in crate::prove) fn unique() -> N {
    Hasher::new("unique").with(Kind::Unique)
}

pub(in crate::prove) fn items(mut prefix: Vec<N>, rest: N) -> N {
    while prefix.last().is_some_and(|last| last.id == rest.id) {
        prefix.pop();
    }
    if prefix.is_empty() && is_true(&rest) {
        return truth(true);
    }
    let mut hasher = Hasher::new("items");
    prefix.iter().for_each(|part| _ = hasher.node(part));
    hasher.node(&rest);
    hasher.with(Kind::Items { prefix, rest })
}

pub(in crate::prove) fn contains(item: N, min: u64, max: Option<u64>) -> N {
    if min == 0 && max.is_none() {
        return truth(true);
    }
    let mut hasher = Hasher::new("contains");
    hasher.node(&item).number(min).text(&format!("{max:?}"));
    hasher.with(Kind::Contains { item, min, max })
}

pub(in crate::prove) fn required(name: &str) -> N {
    let mut hasher = Hasher::new("required");
    hasher.text(name);
    hasher.with(Kind::Required(name.into()))
}

pub(in crate::prove) fn members(
    mut names: Vec<(Arc<str>, N)>,
    mut patterns: Vec<(Arc<str>, N, Check)>,
    rest: N,
) -> N {
    names.sort_by(|a, b| a.0.cmp(&b.0));
    patterns.sort_by(|a, b| a.0.cmp(&b.0));
    if is_true(&rest) {
        // What is not spoken of is free, so a name or pattern that allows everything says nothing.
        names.retain(|(_, node)| !is_true(node));
        patterns.retain(|(_, node, _)| !is_true(node));
        if names.is_empty() && patterns.is_empty() {
            return truth(true);
        }
    }
    let mut hasher = Hasher::new("members");
    hasher.number(names.len() as u64);
    names.iter().for_each(|(name, node)| _ = hasher.text(name).node(node));
    patterns.iter().for_each(|(pattern, node, _)| _ = hasher.text(pattern).node(node));
    hasher.node(&rest);
    hasher.with(Kind::Members { names, patterns, rest })
}

pub(in crate::prove) fn names(node: N) -> N {
    if is_true(&node) {
        return node;
    }
    let mut hasher = Hasher::new("names");
    hasher.node(&node);
    hasher.with(Kind::Names(node))
}

/// A reference back; `id` is that of its document and place.
pub(in crate::prove) fn link(id: u128, link: Arc<Link>) -> N {
    Arc::new(Node { id, kind: Kind::Link(link) })
}

pub(in crate::prove) fn opaque(id: u128, check: Check) -> N {
    Arc::new(Node { id, kind: Kind::Opaque(check) })
}

/// What both readings of a keyword demand, where validators read it in two ways: `strict` holds only of values of which
/// `lax` holds. Of values between them nothing is known.
pub(in crate::prove) fn contested(strict: &N, lax: &N) -> N {
    let mut hasher = Hasher::new("contested");
    hasher.node(strict).node(lax);
    or(vec![strict.clone(), and(vec![lax.clone(), hasher.with(Kind::Contested)])])
}
