//! The keywords of one schema object, each for the drafts that know it.

use std::sync::Arc;

use lastcall_contract::Draft;
use serde_json::{Map, Value};

use super::{Compiler, checks};
use crate::prove::index::Place;
use crate::prove::ir::{self, Kind, N, Types};
use crate::prove::number::Num;

type Object = Map<String, Value>;

const DEPENDENCIES: &str = "`dependencies` is applied by some validators of this draft and ignored by others; write \
                            `dependentRequired` or `dependentSchemas`";
const WRITTEN: &str =
    "`integer` takes 1.0 in some validators of draft-04 and not in others; name a newer draft in `$schema`";

impl<'a> Compiler<'a> {
    /// Adds what each keyword demands.
    pub(super) fn keywords(&mut self, place: Place<'a>, map: &'a Object, parts: &mut Vec<N>) {
        let draft = self.index.draft;
        let modern = matches!(draft, Draft::Draft201909 | Draft::Draft202012);
        self.values(map, parts);
        self.numbers(place, map, parts);
        self.strings(map, parts);
        self.lists(place, map, parts);
        self.objects(place, map, parts);
        self.combined(place, map, parts);
        if modern {
            if let Some(below) = map.get("unevaluatedItems") {
                parts.push(self.unevaluated_items(place, below));
            }
            if let Some(below) = map.get("unevaluatedProperties") {
                parts.push(self.unevaluated_members(place, below));
            }
        }
    }

    fn knows(&self, first: Draft) -> bool {
        let rank = |draft| match draft {
            Draft::Draft4 => 4,
            Draft::Draft6 => 6,
            Draft::Draft7 => 7,
            Draft::Draft201909 => 19,
            Draft::Draft202012 => 20,
        };
        rank(first) <= rank(self.index.draft)
    }

    fn values(&mut self, map: &'a Object, parts: &mut Vec<N>) {
        if let Some(types) = map.get("type") {
            let names: Vec<&str> = match types {
                Value::String(name) => vec![name.as_str()],
                Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            };
            let types = names.iter().filter_map(|n| Types::named(n)).fold(Types(0), Types::or);
            parts.push(ir::of_types(types));
            if self.index.draft == Draft::Draft4 && names.contains(&"integer") && !names.contains(&"number") {
                // Draft-04 does not take 1.0 for an integer; validators of all drafts do.
                let written = ir::opaque(
                    ir::identity(&["written as an integer"]),
                    Arc::new(|value| Some(value.is_i64() || value.is_u64())),
                );
                let written = self.contested(&written, &ir::truth(true), WRITTEN);
                parts.push(ir::or(vec![ir::of_types(Types::WHOLE.not()), written]));
            }
        }
        if let Some(Value::Array(values)) = map.get("enum") {
            parts.push(ir::of_values(values));
        }
        if let Some(value) = map.get("const")
            && self.knows(Draft::Draft6)
        {
            parts.push(ir::of_values(std::slice::from_ref(value)));
        }
    }

    fn numbers(&mut self, place: Place<'a>, map: &'a Object, parts: &mut Vec<N>) {
        let number = |key: &str| map.get(key).and_then(Value::as_number).map(Num::of);
        let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
        let old = self.index.draft == Draft::Draft4;
        if let Some(bound) = number("minimum") {
            parts.push(ir::least(bound, old && flag("exclusiveMinimum")));
        }
        if let Some(bound) = number("maximum") {
            parts.push(ir::most(bound, old && flag("exclusiveMaximum")));
        }
        if !old {
            parts.extend(number("exclusiveMinimum").map(|bound| ir::least(bound, true)));
            parts.extend(number("exclusiveMaximum").map(|bound| ir::most(bound, true)));
        }
        if let Some(factor) = map.get("multipleOf").and_then(Value::as_number) {
            if Num::of(factor).as_f64() > 0.0 {
                parts.push(ir::multiple_of(factor));
            } else {
                parts.push(self.unknown(place, "multipleOf"));
            }
        }
    }

    /// A count that a keyword gives: whole, not negative.
    fn amount(map: &Object, key: &str) -> Option<u64> {
        let Num::Whole(n) = Num::of(map.get(key)?.as_number()?) else { return Some(u64::MAX) };
        Some(u64::try_from(n).unwrap_or(u64::MAX))
    }

    fn strings(&mut self, map: &'a Object, parts: &mut Vec<N>) {
        let draft = self.index.draft;
        parts.extend(Self::amount(map, "minLength").map(|n| ir::count("minLength", n, Kind::MinLength)));
        parts.extend(Self::amount(map, "maxLength").map(|n| ir::count("maxLength", n, Kind::MaxLength)));
        if let Some(pattern) = map.get("pattern").and_then(Value::as_str) {
            let check = self.pattern_check(pattern);
            parts.push(ir::pattern(pattern, check));
        }
        if let Some(format @ Value::String(name)) = map.get("format")
            && self.formats
            && checks::asserts_format(name, draft)
        {
            let old = name == "hostname" && matches!(draft, Draft::Draft4 | Draft::Draft6);
            let check = checks::keyword(draft, "format", format, true);
            parts.push(self.about_strings(&["format", name, if old { "draft-06" } else { "" }], check));
        }
        if matches!(draft, Draft::Draft6 | Draft::Draft7) {
            for key in ["contentEncoding", "contentMediaType"] {
                if let Some(value) = map.get(key) {
                    let check = checks::keyword(draft, key, value, false);
                    parts.push(self.about_strings(&["content", key, &value.to_string()], check));
                }
            }
        }
    }

    fn lists(&mut self, place: Place<'a>, map: &'a Object, parts: &mut Vec<N>) {
        parts.extend(Self::amount(map, "minItems").map(|n| ir::count("minItems", n, Kind::MinItems)));
        parts.extend(Self::amount(map, "maxItems").map(|n| ir::count("maxItems", n, Kind::MaxItems)));
        if map.get("uniqueItems").and_then(Value::as_bool) == Some(true) {
            parts.push(ir::unique());
        }
        let (prefix, rest) = if self.index.draft == Draft::Draft202012 {
            (map.get("prefixItems").and_then(Value::as_array), map.get("items"))
        } else {
            match map.get("items") {
                Some(Value::Array(list)) => (Some(list), map.get("additionalItems")),
                items => (None, items),
            }
        };
        if prefix.is_some() || rest.is_some() {
            let prefix = prefix.into_iter().flatten().map(|item| self.child(place, item)).collect();
            let rest = rest.map_or_else(|| ir::truth(true), |rest| self.child(place, rest));
            parts.push(ir::items(prefix, rest));
        }
        if let Some(item) = map.get("contains")
            && self.knows(Draft::Draft6)
        {
            let item = self.child(place, item);
            let counted = self.knows(Draft::Draft201909);
            let min = Self::amount(map, "minContains").filter(|_| counted).unwrap_or(1);
            let max = Self::amount(map, "maxContains").filter(|_| counted);
            parts.push(ir::contains(item, min, max));
        }
    }

    fn objects(&mut self, place: Place<'a>, map: &'a Object, parts: &mut Vec<N>) {
        parts.extend(
            Self::amount(map, "minProperties").map(|n| ir::count("minProperties", n, Kind::MinProperties)),
        );
        parts.extend(
            Self::amount(map, "maxProperties").map(|n| ir::count("maxProperties", n, Kind::MaxProperties)),
        );
        for name in map.get("required").and_then(Value::as_array).into_iter().flatten() {
            parts.extend(name.as_str().map(ir::required));
        }
        let table = |key: &str| map.get(key).and_then(Value::as_object).into_iter().flatten();
        let names =
            table("properties").map(|(name, node)| (Arc::from(name.as_str()), self.child(place, node)));
        let names: Vec<(Arc<str>, N)> = names.collect();
        let mut patterns = Vec::new();
        for (pattern, node) in table("patternProperties") {
            let check = self.pattern_check(pattern);
            patterns.push((Arc::from(pattern.as_str()), self.child(place, node), check));
        }
        let rest = map.get("additionalProperties");
        let rest = rest.map_or_else(|| ir::truth(true), |rest| self.child(place, rest));
        parts.push(ir::members(names, patterns, rest));
        if let Some(node) = map.get("propertyNames")
            && self.knows(Draft::Draft6)
        {
            parts.push(ir::names(self.child(place, node)));
        }
        let modern = self.knows(Draft::Draft201909);
        for (key, known) in
            [("dependencies", true), ("dependentRequired", modern), ("dependentSchemas", modern)]
        {
            if !known {
                continue;
            }
            for (name, needed) in table(key) {
                let then = match needed {
                    Value::Array(list) => {
                        ir::and(list.iter().filter_map(Value::as_str).map(ir::required).collect())
                    }
                    schema => {
                        let schema = self.child(place, schema);
                        ir::or(vec![ir::of_types(Types::OBJECT.not()), schema])
                    }
                };
                let demand = ir::or(vec![ir::not(&ir::required(name)), then]);
                let contested = key == "dependencies" && modern;
                parts.push(match contested {
                    true => self.contested(&demand, &ir::truth(true), DEPENDENCIES),
                    false => demand,
                });
            }
        }
    }

    fn combined(&mut self, place: Place<'a>, map: &'a Object, parts: &mut Vec<N>) {
        let mut list = |key: &str| -> Option<Vec<N>> {
            let branches = map.get(key)?.as_array()?;
            Some(branches.iter().map(|branch| self.child(place, branch)).collect())
        };
        parts.extend(list("allOf").map(ir::and));
        parts.extend(list("anyOf").map(ir::or));
        parts.extend(list("oneOf").map(ir::one));
        if let Some(node) = map.get("not") {
            parts.push(ir::not(&self.child(place, node)));
        }
        if let Some(condition) = map.get("if")
            && self.knows(Draft::Draft7)
        {
            let condition = self.child(place, condition);
            if let Some(then) = map.get("then") {
                parts.push(ir::or(vec![ir::not(&condition), self.child(place, then)]));
            }
            if let Some(otherwise) = map.get("else") {
                parts.push(ir::or(vec![condition, self.child(place, otherwise)]));
            }
        }
    }
}
