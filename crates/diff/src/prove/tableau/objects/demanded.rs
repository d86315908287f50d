//! What is demanded of an object, read from the facts of a goal.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::prove::eval::holds;
use crate::prove::ir::{Check, Kind, Literal, N, Node};
use crate::prove::tableau::choices::State;

type Names<'s> = &'s [(Arc<str>, N)];
type Patterns<'s> = &'s [(Arc<str>, N, Check)];

/// One `properties`, `patternProperties`, `additionalProperties`.
#[derive(Clone, Copy)]
pub(super) struct Members<'s> {
    pub names: Names<'s>,
    pub patterns: Patterns<'s>,
    pub rest: &'s N,
}

/// What is demanded of an object.
pub(super) struct Object<'s> {
    pub min: u64,
    pub max: u64,
    pub required: BTreeSet<&'s str>,
    pub absent: BTreeSet<&'s str>,
    pub every: Vec<Members<'s>>,
    pub broken: Vec<Members<'s>>,
    pub names: Vec<&'s N>,
    pub bad_names: Vec<&'s N>,
    /// Every name that is mentioned.
    pub mentioned: BTreeSet<&'s str>,
    /// Every pattern that is mentioned.
    pub patterns: Vec<Arc<str>>,
}

/// A name that is not mentioned: which patterns it matches, and an example of it.
#[derive(Clone)]
pub(super) struct Class {
    /// By the number of the pattern; `None`: not told apart.
    pub matches: Vec<Option<bool>>,
    pub literals: Vec<Literal>,
    pub example: Option<String>,
}

impl<'s> Object<'s> {
    pub(super) fn of(state: &'s State) -> Self {
        let mut object = Self {
            min: 0,
            max: u64::MAX,
            required: BTreeSet::new(),
            absent: BTreeSet::new(),
            every: Vec::new(),
            broken: Vec::new(),
            names: Vec::new(),
            bad_names: Vec::new(),
            mentioned: BTreeSet::new(),
            patterns: Vec::new(),
        };
        for fact in &state.facts {
            object.add(fact);
        }
        object.mentioned.extend(object.required.iter().chain(&object.absent));
        object
    }

    pub(super) fn add(&mut self, fact: &'s Literal) {
        match (&fact.node.kind, fact.holds) {
            (Kind::MinProperties(n), true) => self.min = self.min.max(*n),
            (Kind::MinProperties(n), false) => self.max = self.max.min(n.saturating_sub(1)),
            (Kind::MaxProperties(n), true) => self.max = self.max.min(*n),
            (Kind::MaxProperties(n), false) => self.min = self.min.max(n.saturating_add(1)),
            (Kind::Required(name), true) => _ = self.required.insert(name),
            (Kind::Required(name), false) => _ = self.absent.insert(name),
            (Kind::Members { names, patterns, rest }, holds) => {
                self.mentioned.extend(names.iter().map(|(name, _)| &**name));
                for (text, ..) in patterns {
                    if !self.patterns.contains(text) {
                        self.patterns.push(text.clone());
                    }
                }
                let members = Members { names, patterns, rest };
                if holds { self.every.push(members) } else { self.broken.push(members) }
            }
            (Kind::Names(node), true) => {
                self.names.push(node);
                self.mention_values(node);
            }
            (Kind::Names(node), false) => {
                self.bad_names.push(node);
                self.mention_values(node);
            }
            _ => {}
        }
    }

    /// Names that a schema of names lists.
    pub(super) fn mention_values(&mut self, node: &'s Node) {
        match &node.kind {
            Kind::Enum(values) => self.mentioned.extend(values.iter().take(500).filter_map(Value::as_str)),
            Kind::And(parts) | Kind::Or(parts) => parts.iter().for_each(|part| self.mention_values(part)),
            Kind::Not(part) => self.mention_values(part),
            _ => {}
        }
    }

    /// The nodes of `members` that speak of this mentioned name, and whether that is all of them.
    pub(super) fn speak_of_name(members: Members<'s>, name: &str) -> (Vec<&'s N>, bool) {
        let mut nodes = Vec::new();
        if let Ok(i) = members.names.binary_search_by(|(n, _)| (**n).cmp(name)) {
            nodes.extend(members.names.get(i).map(|(_, node)| node));
        }
        let mut sure = true;
        let key = Value::String(name.to_owned());
        for (_, node, check) in members.patterns {
            match check(&key) {
                Some(true) => nodes.push(node),
                Some(false) => {}
                None => sure = false,
            }
        }
        if nodes.is_empty() && sure {
            nodes.push(members.rest);
        }
        (nodes, sure)
    }

    /// The same for a name of a class.
    pub(super) fn speak_of_class(&self, members: Members<'s>, class: &Class) -> (Vec<&'s N>, bool) {
        let mut nodes = Vec::new();
        let mut sure = true;
        for (text, node, _) in members.patterns {
            let at = self.patterns.iter().position(|t| t == text);
            match at.and_then(|at| class.matches.get(at).copied().flatten()) {
                Some(true) => nodes.push(node),
                Some(false) => {}
                None => sure = false,
            }
        }
        if nodes.is_empty() && sure {
            nodes.push(members.rest);
        }
        (nodes, sure)
    }

    /// What the member of this name must satisfy; `None`: there can be no such member.
    pub(super) fn base_of_name(&self, name: &str) -> Option<Vec<Literal>> {
        let key = Value::String(name.to_owned());
        if self.absent.contains(name) || self.names.iter().any(|node| holds(node, &key) == Some(false)) {
            return None;
        }
        let spoken = self.every.iter().flat_map(|members| Self::speak_of_name(*members, name).0);
        Some(spoken.map(Literal::yes).collect())
    }

    pub(super) fn base_of_class(&self, class: &Class) -> Vec<Literal> {
        let spoken = self.every.iter().flat_map(|members| self.speak_of_class(*members, class).0);
        spoken.map(Literal::yes).collect()
    }
}

impl Object<'_> {
    pub(super) fn check(&self, text: &Arc<str>) -> Check {
        let found = self.every.iter().chain(&self.broken).flat_map(|m| m.patterns).find(|(t, ..)| t == text);
        found.map_or_else(|| Arc::new(|_: &Value| None) as Check, |(.., check)| check.clone())
    }
}
