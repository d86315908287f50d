//! Whether a node holds of a value: the second validation, which shares no code with the library's validator.

use std::cmp::Ordering;

use serde_json::Value;

use super::ir::{Kind, Literal, N, Node, Types};
use super::number::{Num, is_multiple, settled_order};

/// Nodes that one evaluation may visit.
const STEPS: u32 = 200_000;
/// Nodes through which one value may be handed on, and levels of nesting.
const MAX_DEPTH: u32 = 600;

/// Whether the node holds of the value. `None`: it is not known.
pub(super) fn holds(node: &N, value: &Value) -> Option<bool> {
    Evaluation::new().node(node, value)
}

/// What the second validation says of a value.
pub(super) struct Judged {
    /// Whether all of the literals hold. `None`: it is not known.
    pub answer: Option<bool>,
    /// On the way was a number or a keyword that correct validators read differently. An answer stands all the same: it
    /// does not depend on it.
    pub disputed: bool,
    /// Nodes that were visited.
    pub visited: usize,
}

/// Whether all of these hold.
pub(super) fn all_hold(literals: &[Literal], value: &Value) -> Judged {
    let mut evaluation = Evaluation::new();
    let answer = every(literals.iter().map(|l| evaluation.node(&l.node, value).map(|held| held == l.holds)));
    let visited = STEPS.saturating_sub(evaluation.left) as usize;
    Judged { answer, disputed: evaluation.disputed, visited }
}

struct Evaluation {
    left: u32,
    depth: u32,
    disputed: bool,
}

/// Conjunction of three-valued answers.
fn every(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = true;
    for answer in answers {
        match answer {
            Some(false) => return Some(false),
            Some(true) => {}
            None => known = false,
        }
    }
    known.then_some(true)
}

/// Disjunction of three-valued answers.
fn any(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    every(answers.map(|answer| answer.map(|a| !a))).map(|a| !a)
}

/// Equality of JSON values as JSON Schema sees it: `1` and `1.0` are one number. `None` where validators may differ,
/// because two numbers in them are one as doubles.
pub(super) fn settled_equal(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            settled_order(Num::of(a), Num::of(b)).map(|order| order == Ordering::Equal)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            every(a.iter().zip(b).map(|(a, b)| settled_equal(a, b)))
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            every(a.iter().map(|(k, v)| b.get(k).map_or(Some(false), |w| settled_equal(v, w))))
        }
        (Value::Array(_) | Value::Object(_), _) => Some(false),
        _ => Some(a == b),
    }
}

impl Evaluation {
    fn new() -> Self {
        Self { left: STEPS, depth: 0, disputed: false }
    }

    /// An answer that is `None` where validators differ.
    fn settled(&mut self, answer: Option<bool>) -> Option<bool> {
        self.disputed |= answer.is_none();
        answer
    }

    fn node(&mut self, node: &Node, value: &Value) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let answer = self.kind(&node.kind, value);
        self.depth -= 1;
        answer
    }

    fn kind(&mut self, kind: &Kind, value: &Value) -> Option<bool> {
        match kind {
            Kind::True => Some(true),
            Kind::False => Some(false),
            Kind::And(parts) => every(parts.iter().map(|part| self.node(part, value))),
            Kind::Or(parts) => any(parts.iter().map(|part| self.node(part, value))),
            Kind::Not(part) => self.node(part, value).map(|held| !held),
            Kind::One(parts) => self.one(parts, value),
            Kind::Types(types) => Some(types.meets(Types::of(value))),
            Kind::Enum(values) => self.settled(any(values.iter().map(|v| settled_equal(v, value)))),
            Kind::Contested => self.settled(None),
            Kind::Link(link) => self.node(&*link.get()?, value),
            Kind::Opaque(check) => check(value),
            _ => match value {
                Value::Number(number) => self.settled(number_kind(kind, Num::of(number))),
                Value::String(text) => string_kind(kind, text, value),
                Value::Array(items) => self.array(kind, items),
                Value::Object(map) => self.object(kind, map),
                Value::Null | Value::Bool(_) => Some(true),
            },
        }
    }

    fn one(&mut self, parts: &[N], value: &Value) -> Option<bool> {
        let (mut held, mut unknown) = (0, false);
        for part in parts {
            match self.node(part, value) {
                Some(true) => held += 1,
                Some(false) => {}
                None => unknown = true,
            }
        }
        if held > 1 {
            Some(false)
        } else if unknown {
            None
        } else {
            Some(held == 1)
        }
    }

    fn array(&mut self, kind: &Kind, items: &[Value]) -> Option<bool> {
        let length = items.len() as u64;
        match kind {
            Kind::MinItems(n) => Some(length >= *n),
            Kind::MaxItems(n) => Some(length <= *n),
            Kind::Unique => {
                self.left = self.left.checked_sub(u32::try_from(length * length / 8).ok()?)?;
                let pairs =
                    items.iter().enumerate().flat_map(|(i, a)| items.iter().take(i).map(move |b| (a, b)));
                self.settled(every(pairs.map(|(a, b)| settled_equal(a, b).map(|equal| !equal))))
            }
            Kind::Items { prefix, rest } => every(
                items.iter().enumerate().map(|(i, item)| self.node(prefix.get(i).unwrap_or(rest), item)),
            ),
            Kind::Contains { item, min, max } => {
                let (mut held, mut unknown) = (0u64, 0u64);
                for value in items {
                    match self.node(item, value) {
                        Some(true) => held += 1,
                        Some(false) => {}
                        None => unknown += 1,
                    }
                }
                let most = max.unwrap_or(u64::MAX);
                if held > most || held + unknown < *min {
                    Some(false)
                } else {
                    (held >= *min && held + unknown <= most).then_some(true)
                }
            }
            _ => Some(true),
        }
    }

    fn object(&mut self, kind: &Kind, map: &serde_json::Map<String, Value>) -> Option<bool> {
        let length = map.len() as u64;
        match kind {
            Kind::MinProperties(n) => Some(length >= *n),
            Kind::MaxProperties(n) => Some(length <= *n),
            Kind::Required(name) => Some(map.contains_key(&**name)),
            Kind::Names(node) => every(map.keys().map(|name| self.node(node, &Value::String(name.clone())))),
            Kind::Members { names, patterns, rest } => every(map.iter().map(|(name, value)| {
                let named = names.binary_search_by(|(n, _)| (**n).cmp(name.as_str())).ok();
                let mut spoken = named.is_some();
                let mut answer =
                    named.and_then(|i| names.get(i)).map_or(Some(true), |(_, n)| self.node(n, value));
                if patterns.is_empty() && !spoken {
                    return self.node(rest, value);
                }
                let key = Value::String(name.clone());
                let mut unsure = false;
                for (_, node, check) in patterns {
                    match check(&key) {
                        Some(true) => {
                            spoken = true;
                            answer = every([answer, self.node(node, value)].into_iter());
                        }
                        Some(false) => {}
                        None => unsure = true,
                    }
                }
                match (spoken, unsure) {
                    (true, false) => answer,
                    (false, false) => self.node(rest, value),
                    (_, true) => answer.filter(|a| !a),
                }
            })),
            _ => Some(true),
        }
    }
}

fn number_kind(kind: &Kind, number: Num) -> Option<bool> {
    match kind {
        Kind::Least { bound, exclusive } => {
            let order = settled_order(number, *bound)?;
            Some(order == Ordering::Greater || order == Ordering::Equal && !exclusive)
        }
        Kind::Most { bound, exclusive } => {
            let order = settled_order(number, *bound)?;
            Some(order == Ordering::Less || order == Ordering::Equal && !exclusive)
        }
        Kind::MultipleOf(factor) => is_multiple(number, Num::of(factor)),
        _ => Some(true),
    }
}

fn string_kind(kind: &Kind, text: &str, value: &Value) -> Option<bool> {
    let length = || text.chars().count() as u64;
    match kind {
        Kind::MinLength(n) => Some(length() >= *n),
        Kind::MaxLength(n) => Some(length() <= *n),
        Kind::Pattern(_, check) => check(value),
        _ => Some(true),
    }
}
