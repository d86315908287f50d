//! `unevaluatedItems` and `unevaluatedProperties`, rewritten away: which items and members are evaluated is known from the
//! text once it is known which conditional subschemas hold. For every set of conditions that may fail to hold, the
//! remaining ones decide, so the keyword becomes "one of these conditions, or this `items`/`properties`".

use std::collections::BTreeSet;
use std::sync::Arc;

use lastcall_contract::Draft;
use serde_json::Value;

use super::Compiler;
use crate::prove::index::Place;
use crate::prove::ir::{self, N, Types};

/// Conditions beyond which the rewriting would be too large.
const MAX_CONDITIONS: usize = 6;
const CONTAINS: &str = "`unevaluatedItems` beside `contains` means one thing in draft 2019-09 and another in 2020-12, and some \
                        validators do not tell them apart; say with `items` what the other items may be";
/// Subschemas of the same value that are looked at.
const MAX_SUBSCHEMAS: usize = 200;

/// One way in which the conditions may stand, and what is then evaluated.
type Case<'a> = (Vec<N>, Vec<Evaluated<'a>>);

/// What is evaluated under a condition.
#[derive(Default)]
struct Evaluated<'a> {
    /// All of these hold.
    conditions: Vec<N>,
    all: bool,
    names: BTreeSet<&'a str>,
    patterns: BTreeSet<&'a str>,
    prefix: usize,
    /// Items that satisfy one of these are evaluated.
    contained: Vec<N>,
    /// Items that satisfy one of these are evaluated for some validators.
    perhaps: Vec<N>,
}

/// A walk over the subschemas that speak of the same value.
struct Walk<'a> {
    items: bool,
    found: Vec<Evaluated<'a>>,
    way: Vec<usize>,
    left: usize,
}

impl<'a> Compiler<'a> {
    /// `unevaluatedProperties: below` of the schema at `place`.
    pub(super) fn unevaluated_members(&mut self, place: Place<'a>, below: &'a Value) -> N {
        let rest = self.child(place, below);
        let Some(cases) = self.cases(place, false) else { return self.not_rewritten(place) };
        let mut parts = Vec::new();
        for (otherwise, evaluated) in cases {
            if evaluated.iter().any(|e| e.all) {
                continue;
            }
            let names: BTreeSet<&str> = evaluated.iter().flat_map(|e| e.names.iter().copied()).collect();
            let patterns: BTreeSet<&str> =
                evaluated.iter().flat_map(|e| e.patterns.iter().copied()).collect();
            let names = names.into_iter().map(|name| (Arc::from(name), ir::truth(true))).collect();
            let patterns = patterns
                .into_iter()
                .map(|p| (Arc::from(p), ir::truth(true), self.pattern_check(p)))
                .collect();
            let mut branches = otherwise;
            branches.push(ir::members(names, patterns, rest.clone()));
            parts.push(ir::or(branches));
        }
        ir::and(parts)
    }

    /// `unevaluatedItems: below` of the schema at `place`.
    pub(super) fn unevaluated_items(&mut self, place: Place<'a>, below: &'a Value) -> N {
        let rest = self.child(place, below);
        let Some(cases) = self.cases(place, true) else {
            // There may be one on the way.
            if self.index.draft == Draft::Draft201909 && self.index.root.to_string().contains("\"contains\"")
            {
                self.contested = Some(CONTAINS);
            }
            return self.not_rewritten(place);
        };
        let (mut strict, mut lax) = (Vec::new(), Vec::new());
        for (otherwise, evaluated) in cases {
            if evaluated.iter().any(|e| e.all) {
                continue;
            }
            let prefix = evaluated.iter().map(|e| e.prefix).max().unwrap_or(0);
            let mut allowed: Vec<N> = evaluated.iter().flat_map(|e| e.contained.iter().cloned()).collect();
            allowed.push(rest.clone());
            let with = |allowed: Vec<N>| {
                let mut branches = otherwise.clone();
                branches.push(ir::items(vec![ir::truth(true); prefix], ir::or(allowed)));
                ir::or(branches)
            };
            strict.push(with(allowed.clone()));
            allowed.extend(evaluated.iter().flat_map(|e| e.perhaps.iter().cloned()));
            lax.push(with(allowed));
        }
        self.contested(&ir::and(strict), &ir::and(lax), CONTAINS)
    }

    fn not_rewritten(&mut self, place: Place<'a>) -> N {
        let text = place.node.to_string();
        if ["$ref", "$dynamicRef", "$recursiveRef", "$id"].iter().any(|key| text.contains(key)) {
            return self.unknown(place, "unevaluated");
        }
        // Without references the text says everything.
        self.gaps = true;
        ir::opaque(ir::identity(&["unevaluated", &text, self.index.draft.as_str()]), Arc::new(|_| None))
    }

    /// For every set of conditions that is left out: those conditions, and what the others evaluate.
    fn cases(&mut self, place: Place<'a>, items: bool) -> Option<Vec<Case<'a>>> {
        let mut walk = Walk { items, found: Vec::new(), way: Vec::new(), left: MAX_SUBSCHEMAS };
        self.evaluated(place, &[], true, &mut walk)?;
        let mut conditions: Vec<N> = Vec::new();
        let mut found = Vec::new();
        for evaluated in walk.found {
            let condition = ir::and(evaluated.conditions.clone());
            if ir::is_false(&condition) {
                continue;
            }
            if !ir::is_true(&condition) && !conditions.iter().any(|c| c.id == condition.id) {
                conditions.push(condition.clone());
            }
            found.push((condition, evaluated));
        }
        if conditions.len() > MAX_CONDITIONS {
            return None;
        }
        let mut cases = Vec::new();
        for held in 0..1usize << conditions.len() {
            let holds =
                |id: u128| conditions.iter().position(|c| c.id == id).is_none_or(|i| held >> i & 1 == 1);
            let otherwise: Vec<N> = conditions.iter().filter(|c| !holds(c.id)).cloned().collect();
            let evaluated = found.iter().filter(|(condition, _)| holds(condition.id)).map(|(_, e)| e.copy());
            cases.push((otherwise, evaluated.collect()));
        }
        Some(cases)
    }

    /// Collects what the schema at `place` and the subschemas that apply in place evaluate. `own`: this is the schema
    /// whose `unevaluated…` is rewritten. `None`: it cannot be said.
    fn evaluated(
        &mut self,
        place: Place<'a>,
        conditions: &[N],
        own: bool,
        walk: &mut Walk<'a>,
    ) -> Option<()> {
        let Value::Object(map) = place.node else { return Some(()) };
        walk.left = walk.left.checked_sub(1)?;
        if walk.way.len() > 40 || walk.way.contains(&place.address()) {
            return None;
        }
        walk.way.push(place.address());
        let entered = self.index.dynamic && !self.scope.contains(&place.resource);
        if entered {
            self.scope.push(place.resource);
        }
        let found =
            if walk.items { self.evaluated_items(place, own) } else { self.evaluated_members(place, own) };
        let below = found.and_then(|found| {
            walk.found.push(Evaluated { conditions: conditions.to_vec(), ..found });
            self.evaluated_below(place, map, conditions, walk)
        });
        if entered {
            self.scope.pop();
        }
        walk.way.pop();
        below
    }

    fn evaluated_below(
        &mut self,
        place: Place<'a>,
        map: &'a serde_json::Map<String, Value>,
        conditions: &[N],
        walk: &mut Walk<'a>,
    ) -> Option<()> {
        let with = |more: N| {
            let mut all = conditions.to_vec();
            all.push(more);
            all
        };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let target = self.index.resolve(place, reference)?;
            self.evaluated(target, conditions, false, walk)?;
        }
        if let Some(target) = self.dynamic_target(place, map) {
            self.evaluated(target?, conditions, false, walk)?;
        }
        for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.evaluated(self.index.below(place, part), conditions, false, walk)?;
        }
        for key in ["anyOf", "oneOf"] {
            for part in map.get(key).and_then(Value::as_array).into_iter().flatten() {
                let branch = self.child(place, part);
                self.evaluated(self.index.below(place, part), &with(branch), false, walk)?;
            }
        }
        if let Some(part) = map.get("if") {
            let condition = self.child(place, part);
            self.evaluated(self.index.below(place, part), &with(condition.clone()), false, walk)?;
            if let Some(then) = map.get("then") {
                self.evaluated(self.index.below(place, then), &with(condition.clone()), false, walk)?;
            }
            if let Some(otherwise) = map.get("else") {
                self.evaluated(self.index.below(place, otherwise), &with(ir::not(&condition)), false, walk)?;
            }
        }
        for (name, part) in map.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten() {
            // `Required` says nothing of other types, and there nothing is evaluated.
            let there = ir::and(vec![ir::of_types(Types::OBJECT), ir::required(name)]);
            self.evaluated(self.index.below(place, part), &with(there), false, walk)?;
        }
        if map
            .get("dependencies")
            .and_then(Value::as_object)
            .is_some_and(|d| d.values().any(Value::is_object))
        {
            return None; // a keyword of older drafts: whether it evaluates is not settled
        }
        Some(())
    }

    fn evaluated_members(&mut self, place: Place<'a>, own: bool) -> Option<Evaluated<'a>> {
        let map = place.node.as_object()?;
        let names = |key: &str| map.get(key).and_then(Value::as_object).into_iter().flat_map(|m| m.keys());
        Some(Evaluated {
            all: map.contains_key("additionalProperties")
                || !own && map.contains_key("unevaluatedProperties"),
            names: names("properties").map(String::as_str).collect(),
            patterns: names("patternProperties").map(String::as_str).collect(),
            ..Evaluated::default()
        })
    }

    fn evaluated_items(&mut self, place: Place<'a>, own: bool) -> Option<Evaluated<'a>> {
        let map = place.node.as_object()?;
        let mut found =
            Evaluated { all: !own && map.contains_key("unevaluatedItems"), ..Evaluated::default() };
        if self.index.draft == Draft::Draft202012 {
            found.all |= map.contains_key("items");
            found.prefix = map.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
            if let Some(item) = map.get("contains") {
                found.contained.push(self.child(place, item));
            }
        } else {
            match map.get("items") {
                Some(Value::Array(list)) => {
                    found.prefix = list.len();
                    found.all |= map.contains_key("additionalItems");
                }
                Some(_) => found.all = true,
                None => {}
            }
            if let Some(item) = map.get("contains") {
                // Draft 2019-09 leaves such items unevaluated, 2020-12 does not. Some validators do one thing in both.
                found.perhaps.push(self.child(place, item));
            }
        }
        (found.prefix <= 200).then_some(found)
    }
}

impl<'a> Evaluated<'a> {
    /// The same without its conditions.
    fn copy(&self) -> Evaluated<'a> {
        Evaluated {
            conditions: Vec::new(),
            all: self.all,
            names: self.names.clone(),
            patterns: self.patterns.clone(),
            prefix: self.prefix,
            contained: self.contained.clone(),
            perhaps: self.perhaps.clone(),
        }
    }
}
