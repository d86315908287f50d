//! A goal being taken apart: what is settled, and the choices that are still open.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use crate::prove::eval::settled_equal;
use crate::prove::ir::{self, Kind, Literal, N, Types};

/// Branches of a `oneOf` up to which it is taken apart exactly.
const MAX_ONE: usize = 24;
/// Nodes below a literal that are looked at to see whether it is decided already.
const GLANCE: u32 = 4;

/// Ways of which one has to be gone; each is a conjunction.
pub(super) type Choice = Vec<Vec<Literal>>;

/// One way through a goal.
#[derive(Clone)]
pub(super) struct State {
    /// The whole goal.
    pub goal: Rc<Vec<Literal>>,
    /// It is about the value that was asked about, not about a part of it.
    pub outermost: bool,
    pub types: Types,
    /// Only these values are left.
    pub values: Option<Arc<Vec<Value>>>,
    /// What is left to the theory of one type.
    pub facts: Vec<Literal>,
    choices: Vec<Choice>,
    seen: BTreeMap<u128, bool>,
}

impl State {
    pub fn new(goal: &[Literal], outermost: bool) -> Self {
        Self {
            goal: Rc::new(goal.to_vec()),
            outermost,
            types: Types::ALL,
            values: None,
            facts: Vec::new(),
            choices: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    /// How much there is to copy and to look at.
    pub fn size(&self) -> usize {
        self.seen.len() + self.facts.len() + self.choices.iter().map(Vec::len).sum::<usize>()
    }

    /// Adds literals and what follows from them. `false`: they contradict what is there.
    pub fn add_all(&mut self, literals: impl Iterator<Item = Literal>) -> bool {
        let mut todo: Vec<Literal> = literals.collect();
        while let Some(literal) = todo.pop() {
            match self.seen.insert(literal.node.id, literal.holds) {
                Some(held) if held == literal.holds => continue,
                Some(_) => return false,
                None => {}
            }
            if !self.add(literal, &mut todo) || self.types.is_empty() {
                return false;
            }
        }
        self.values.as_ref().is_none_or(|values| !values.is_empty())
    }

    fn add(&mut self, literal: Literal, todo: &mut Vec<Literal>) -> bool {
        let Literal { node, holds } = &literal;
        match (&node.kind, holds) {
            (Kind::True, holds) => return *holds,
            (Kind::False, holds) => return !*holds,
            (Kind::And(parts), true) => todo.extend(parts.iter().map(Literal::yes)),
            (Kind::And(parts), false) => {
                self.choices.push(parts.iter().map(|p| vec![Literal::no(p)]).collect())
            }
            (Kind::Or(parts), true) => {
                self.choices.push(parts.iter().map(|p| vec![Literal::yes(p)]).collect())
            }
            (Kind::Or(parts), false) => todo.extend(parts.iter().map(Literal::no)),
            (Kind::Not(part), holds) => todo.push(Literal { node: part.clone(), holds: !holds }),
            (Kind::One(parts), holds) => self.one(parts, *holds),
            (Kind::Types(types), holds) => {
                self.types = self.types.and(if *holds { *types } else { types.not() });
            }
            (Kind::Enum(values), true) => {
                let left: Vec<Value> = match &self.values {
                    Some(known) => {
                        let may_be = |a: &Value| values.iter().any(|b| settled_equal(a, b) != Some(false));
                        known.iter().filter(|a| may_be(a)).cloned().collect()
                    }
                    None => values.iter().cloned().collect(),
                };
                self.values = Some(Arc::new(left));
            }
            (Kind::Link(link), holds) => {
                todo.extend(link.get().map(|node| Literal { node, holds: *holds }));
            }
            (Kind::Contains { item, min, max }, false) => {
                self.types = self.types.and(Types::ARRAY);
                let mut ways = Vec::new();
                if *min > 0 {
                    ways.push(vec![Literal::yes(&ir::contains(item.clone(), 0, Some(min - 1)))]);
                }
                if let Some(more) = max.and_then(|max| max.checked_add(1)) {
                    ways.push(vec![Literal::yes(&ir::contains(item.clone(), more, None))]);
                }
                self.choices.push(ways);
            }
            (Kind::Enum(_) | Kind::Opaque(_) | Kind::Contested, _) => self.facts.push(literal),
            (kind, true) => {
                if about(kind).meets(self.types) {
                    self.facts.push(literal);
                }
            }
            (kind, false) => {
                self.types = self.types.and(about(kind));
                self.facts.push(literal);
            }
        }
        true
    }

    fn one(&mut self, parts: &[N], holds: bool) {
        if parts.len() > MAX_ONE {
            if holds {
                self.choices.push(parts.iter().map(|part| vec![Literal::yes(part)]).collect());
            }
            return; // weaker than it is
        }
        let with = |chosen: &[usize], others: bool| -> Vec<Literal> {
            let rest = parts.iter().enumerate().filter(|(i, _)| others && !chosen.contains(i));
            let rest = rest.map(|(_, part)| Literal::no(part));
            chosen.iter().filter_map(|i| parts.get(*i)).map(Literal::yes).chain(rest).collect()
        };
        let mut ways = Vec::new();
        if holds {
            ways.extend((0..parts.len()).map(|i| with(&[i], true)));
        } else {
            ways.push(with(&[], true));
            for i in 0..parts.len() {
                ways.extend((0..i).map(|j| with(&[j, i], false)));
            }
        }
        self.choices.push(ways);
    }

    /// Takes out of the choices what is decided already. `false`: a choice has no way left.
    pub fn propagate(&mut self) -> bool {
        self.facts.retain(|fact| match fact.node.kind {
            Kind::Enum(_) | Kind::Opaque(_) | Kind::Contested => true,
            ref kind => about(kind).meets(self.types),
        });
        loop {
            let mut forced = Vec::new();
            let mut open = Vec::new();
            for mut choice in std::mem::take(&mut self.choices) {
                let mut free = false;
                choice.retain_mut(|way| {
                    let mut possible = true;
                    way.retain(|literal| match self.glance(&literal.node, GLANCE) {
                        Some(held) if held == literal.holds => false,
                        Some(_) => {
                            possible = false;
                            true
                        }
                        None => true,
                    });
                    free |= possible && way.is_empty();
                    possible
                });
                match choice.len() {
                    _ if free => {}
                    0 => return false,
                    1 => forced.extend(choice.pop().into_iter().flatten()),
                    _ => open.push(choice),
                }
            }
            self.choices = open;
            if forced.is_empty() {
                return true;
            }
            if !self.add_all(forced.into_iter()) {
                return false;
            }
        }
    }

    /// The choice with the fewest ways.
    pub fn take_choice(&mut self) -> Option<Choice> {
        let at = (0..self.choices.len()).min_by_key(|i| self.choices.get(*i).map_or(0, Vec::len))?;
        Some(self.choices.swap_remove(at))
    }

    /// Whether the node is known to hold, or not to hold, from what is there.
    fn glance(&self, node: &N, depth: u32) -> Option<bool> {
        if let Some(held) = self.seen.get(&node.id) {
            return Some(*held);
        }
        match &node.kind {
            Kind::True => Some(true),
            Kind::False => Some(false),
            Kind::Not(part) => self.glance(part, depth).map(|held| !held),
            Kind::Types(types) if !types.meets(self.types) => Some(false),
            Kind::Types(types) => self.types.and(types.not()).is_empty().then_some(true),
            Kind::Enum(values) => (!values.iter().take(200).any(|v| self.types.meets(Types::of(v)))
                && values.len() <= 200)
                .then_some(false),
            Kind::And(_) | Kind::Or(_) if depth == 0 => None,
            Kind::And(parts) => self.glance_all(parts, depth, true),
            Kind::Or(parts) => self.glance_all(parts, depth, false),
            Kind::One(_) | Kind::Link(_) | Kind::Opaque(_) | Kind::Contested => None,
            kind => (!about(kind).meets(self.types)).then_some(true),
        }
    }

    /// `and`: all parts; otherwise any of them.
    fn glance_all(&self, parts: &[N], depth: u32, and: bool) -> Option<bool> {
        let mut known = true;
        for part in parts {
            match self.glance(part, depth - 1) {
                Some(held) if held != and => return Some(held),
                Some(_) => {}
                None => known = false,
            }
        }
        known.then_some(and)
    }
}

/// The types that a node can refuse.
fn about(kind: &Kind) -> Types {
    match kind {
        Kind::Least { .. } | Kind::Most { .. } | Kind::MultipleOf(_) => Types::WHOLE.or(Types::FRACTION),
        Kind::MinLength(_) | Kind::MaxLength(_) | Kind::Pattern(..) => Types::STRING,
        Kind::MinItems(_) | Kind::MaxItems(_) | Kind::Unique | Kind::Items { .. } | Kind::Contains { .. } => {
            Types::ARRAY
        }
        Kind::MinProperties(_)
        | Kind::MaxProperties(_)
        | Kind::Required(_)
        | Kind::Members { .. }
        | Kind::Names(_) => Types::OBJECT,
        _ => Types::ALL,
    }
}
