//! Rules of an object: properties, required names, open keys.

use std::collections::BTreeMap;

use lastcall_contract::Draft;
use serde_json::{Value, json};

use super::keywords;
use super::raw::{Edit, Effect, Raw};
use super::view::View;
use super::walk::{Place, Walk};
use crate::change::ChangeKind as Kind;
use crate::pointer::{join, join_name};
use crate::prove::{Answer, Model, Operand, Options, contains};

/// Declared properties by name.
type Declared<'a> = BTreeMap<&'a str, Vec<&'a Value>>;

/// Whether every name of a pattern is one of these patterns' too; not shown counts as no.
fn covered(pattern: &str, others: &[&str]) -> bool {
    if others.is_empty() {
        return false;
    }
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    let any = json!({"anyOf": others.iter().map(|other| text(other)).collect::<Vec<_>>()});
    let operand = |schema: &Value| Operand::new(schema, Draft::Draft202012).ok();
    match (operand(&text(pattern)), operand(&any)) {
        (Some(old), Some(new)) => contains(&old, &new, Model::Open, &Options::default()) == Answer::Proven,
        _ => false,
    }
}

impl<'a> Walk<'a> {
    /// Properties, required names and open keys.
    pub(super) fn object(&mut self, place: &Place<'a, '_>, depth: usize) {
        let (o, n) = (place.o, place.n);
        let (old_props, new_props) = (o.properties(), n.properties());
        let (old_required, new_required) = (o.required(), n.required());
        for (name, old) in &old_props {
            let at = join_name(place.pointer, name);
            match new_props.get(name) {
                Some(new) => self.node(old, new, &at, depth + 1),
                None if crate::places::matched_by_pattern(&n.nodes(), name) => {}
                None if n.branch_declares(self.new, name) => {}
                None if self.declared_around(place.pointer, name) => {}
                None => {
                    let kind = if n.closed() { Kind::PropertyRemoved } else { Kind::PropertyDropped };
                    let edits = if kind == Kind::PropertyRemoved {
                        self.without(old, name, place, old_required.contains(name))
                    } else {
                        Vec::new()
                    };
                    let raw = Raw {
                        kind,
                        pointer: at,
                        old_location: old.first().map(|v| self.old_at.of(v)),
                        new_location: self.own(place).1,
                        old: old.first().map(|v| (*v).clone()),
                        new: None,
                        effect: Effect::Narrows,
                        keyword: "properties",
                        edits,
                        place: None,
                        rename: None,
                        values: 1,
                    };
                    self.push(raw);
                }
            }
        }
        for (name, new) in new_props.iter().filter(|(name, _)| !old_props.contains_key(*name)) {
            if new_required.contains(name) && !old_required.contains(name) {
                continue; // told as a new required property
            }
            if crate::places::matched_by_pattern(&o.nodes(), name) || o.branch_declares(self.old, name) {
                continue;
            }
            let raw = Raw {
                kind: Kind::PropertyAdded,
                pointer: join_name(place.pointer, name),
                old_location: self.own(place).0,
                new_location: new.first().map(|v| self.new_at.of(v)),
                old: None,
                new: new.first().map(|v| (*v).clone()),
                effect: Effect::Widens,
                keyword: "properties",
                edits: self.with(new, name, place),
                place: None,
                rename: None,
                values: 1,
            };
            self.push(raw);
        }
        for name in new_required.difference(&old_required) {
            self.required(place, name, Kind::RequiredAdded, (&old_props, &new_props));
        }
        for name in old_required.difference(&new_required) {
            if new_props.contains_key(name) || !old_props.contains_key(name) {
                self.required(place, name, Kind::RequiredRemoved, (&old_props, &new_props));
            }
        }
        self.open_keys(place, depth);
    }

    fn required(
        &mut self,
        place: &Place<'a, '_>,
        name: &str,
        kind: Kind,
        (old, new): (&Declared<'a>, &Declared<'a>),
    ) {
        let added = kind == Kind::RequiredAdded;
        let nodes = if self.may_edit() { place.o.nodes() } else { Vec::new() };
        let mut edits = Vec::new();
        for node in &nodes {
            let list = node.get("required").and_then(Value::as_array);
            if list.is_some_and(|l| l.iter().any(|v| v == name)) {
                let kept = list.into_iter().flatten().filter(|v| *v != name).cloned().collect();
                edits.push(self.edit_at(node, "required", Some(Value::Array(kept))));
            }
        }
        if let (true, Some(node)) = (added, nodes.last()) {
            let mut list = node.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            list.push(Value::from(name));
            edits.push(self.edit_at(node, "required", Some(Value::Array(list))));
        }
        let raw = Raw {
            kind,
            pointer: join_name(place.pointer, name),
            old_location: old
                .get(name)
                .and_then(|l| l.first())
                .map(|v| self.old_at.of(v))
                .or(self.own(place).0),
            new_location: new
                .get(name)
                .and_then(|l| l.first())
                .map(|v| self.new_at.of(v))
                .or(self.own(place).1),
            old: old.get(name).and_then(|l| l.first()).map(|v| (*v).clone()),
            new: new.get(name).and_then(|l| l.first()).map(|v| (*v).clone()),
            effect: if added { Effect::Narrows } else { Effect::Widens },
            keyword: "required",
            edits,
            place: None,
            rename: None,
            values: 1,
        };
        self.push(raw);
    }

    fn edit_at(&self, node: &Value, key: &str, value: Option<Value>) -> Edit {
        Edit { at: self.old_at.of(node), key: key.to_owned(), value }
    }

    /// The old object without a property: not declared, not required, and refused.
    fn without(&self, old: &[&'a Value], name: &str, place: &Place<'a, '_>, required: bool) -> Vec<Edit> {
        let mut edits = Vec::new();
        if !self.may_edit() {
            return edits;
        }
        for node in place.o.nodes() {
            if let Some(table) = node.get("properties").filter(|t| t.get(name).is_some()) {
                edits.push(self.edit_at(table, name, None));
            }
            if let Some(list) = node.get("required").and_then(Value::as_array).filter(|_| required) {
                let kept = list.iter().filter(|v| *v != name).cloned().collect();
                edits.push(self.edit_at(node, "required", Some(Value::Array(kept))));
            }
        }
        if !place.o.closed()
            && let (1, Some(node)) = (old.len(), place.o.nodes().last())
        {
            edits.push(self.edit_at(node, "additionalProperties", Some(Value::Bool(false))));
        }
        edits
    }

    /// The old object with one more property.
    fn with(&self, new: &[&'a Value], name: &str, place: &Place<'a, '_>) -> Vec<Edit> {
        let ([one], Some(node), true) = (new, place.o.nodes().last().copied(), self.may_edit()) else {
            return Vec::new();
        };
        match node.get("properties") {
            Some(table) => vec![self.edit_at(table, name, Some((*one).clone()))],
            None => {
                let table = Value::Object([(name.to_owned(), (*one).clone())].into_iter().collect());
                vec![self.edit_at(node, "properties", Some(table))]
            }
        }
    }

    /// Properties of a pattern that the new side does not declare and still takes.
    fn pattern_dropped(&mut self, place: &Place<'a, '_>, pattern: &str, old: &[&'a Value], new: &[&str]) {
        let says =
            |key: &str| place.n.get(key).iter().any(|(_, v)| v.as_object().is_some_and(|m| !m.is_empty()));
        let elsewhere = says("additionalProperties") || says("unevaluatedProperties");
        if place.n.closed() || elsewhere || covered(pattern, new) {
            return;
        }
        let raw = Raw {
            kind: Kind::PropertyDropped,
            pointer: join(place.pointer, "*"),
            old_location: old.first().map(|v| self.old_at.of(v)),
            new_location: self.own(place).1,
            old: old.first().map(|v| (*v).clone()),
            new: None,
            effect: Effect::Narrows,
            keyword: "patternProperties",
            edits: Vec::new(),
            place: None,
            rename: None,
            values: 1,
        };
        self.push(raw);
    }

    /// Undeclared properties.
    fn open_keys(&mut self, place: &Place<'a, '_>, depth: usize) {
        let (closed_before, closed_now) = (place.o.closed(), place.n.closed());
        let below = join(place.pointer, "*");
        for key in ["additionalProperties", "unevaluatedProperties"] {
            let (old, new) = (place.o.get(key), place.n.get(key));
            let schemas = |list: &[(&'a Value, &'a Value)]| -> Vec<&'a Value> {
                list.iter()
                    .map(|(_, v)| *v)
                    .filter(|v| v.as_object().is_some_and(|m| !m.is_empty()))
                    .collect()
            };
            let (a, b) = (schemas(&old), schemas(&new));
            match (a.is_empty(), b.is_empty()) {
                (false, false) => self.node(&a, &b, &below, depth + 1),
                (true, true) => {
                    let shut =
                        |list: &[(&'a Value, &'a Value)]| list.iter().any(|(_, v)| **v == Value::Bool(false));
                    match (shut(&old), shut(&new)) {
                        (false, true) if !closed_before => {
                            self.keyword(place, Kind::ObjectClosed, key, Effect::Narrows);
                        }
                        (true, false) if !closed_now => {
                            self.keyword(place, Kind::ObjectOpened, key, Effect::Widens);
                        }
                        _ => {}
                    }
                }
                _ if closed_now && !closed_before => {
                    self.keyword(place, Kind::ObjectClosed, key, Effect::Narrows);
                }
                (true, false) => {
                    let effect = if closed_before { Effect::Widens } else { Effect::Narrows };
                    self.keyword(place, Kind::OpenKeysChanged, key, effect);
                }
                (false, true) => self.keyword(place, Kind::OpenKeysChanged, key, Effect::Widens),
            }
        }
        let tables = |view: &View<'a>| {
            let mut map: BTreeMap<&'a str, Vec<&'a Value>> = BTreeMap::new();
            for (_, table) in view.get("patternProperties") {
                for (pattern, node) in table.as_object().into_iter().flatten() {
                    map.entry(pattern).or_default().push(node);
                }
            }
            map
        };
        let (old, new) = (tables(place.o), tables(place.n));
        for (pattern, nodes) in &old {
            if let Some(others) = new.get(pattern) {
                self.node(nodes, others, &below, depth + 1);
            }
        }
        for (pattern, nodes) in old.iter().filter(|(pattern, _)| !new.contains_key(*pattern)) {
            self.pattern_dropped(place, pattern, nodes, &new.keys().copied().collect::<Vec<_>>());
        }
        if old.keys().ne(new.keys()) {
            self.keyword(place, Kind::OpenKeysChanged, "patternProperties", Effect::Either);
        }
        if !keywords::same(place, "propertyNames") {
            self.keyword(
                place,
                Kind::OpenKeysChanged,
                "propertyNames",
                keywords::appears(place, "propertyNames"),
            );
        }
    }
}
