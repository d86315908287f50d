//! Rules of one place: text, defaults, types, listed values, bounds, patterns, formats.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::Value;

use super::raw::{Effect, Raw};
use super::units;
use super::view::View;
use super::walk::{Place, Walk};
use crate::change::{ChangeKind as Kind, RenameHint};
use crate::places::same_but_for_text;
use crate::prove::Num;

/// Values of one list that are told one by one.
const MAX_VALUES: usize = 32;
/// Values that are listed where many are told as one change.
const SHOWN_VALUES: usize = 20;

/// Whether two values are the same for JSON: `1` and `1.0` are one number.
fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) if x.is_f64() != y.is_f64() => {
            // Exact only where a double holds every whole number.
            const EXACT: f64 = 9_007_199_254_740_992.0;
            matches!((x.as_f64(), y.as_f64()), (Some(x), Some(y)) if x == y && x.abs() <= EXACT)
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(v, w)| same_value(v, w))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, v)| y.get(k).is_some_and(|w| same_value(v, w)))
        }
        _ => a == b,
    }
}

/// Whether both sides say the same under a keyword, text apart.
pub(super) fn same(place: &Place<'_, '_>, key: &str) -> bool {
    let (old, new) = (place.o.get(key), place.n.get(key));
    old.len() == new.len() && old.iter().zip(&new).all(|((_, a), (_, b))| same_but_for_text(a, b))
}

/// Whether a place took values of this type on one side only: then the type tells it, and keywords that speak of that type
/// alone add nothing.
pub(super) fn came_or_went(place: &Place<'_, '_>, kind: &str) -> bool {
    let takes = |view: &View<'_>| match kind {
        "number" => view.types().contains("number") || view.types().contains("integer"),
        kind => view.types().contains(kind),
    };
    takes(place.o) != takes(place.n)
}

/// What a keyword's appearing or vanishing does.
pub(super) fn appears(place: &Place<'_, '_>, key: &str) -> Effect {
    match (place.o.get(key).is_empty(), place.n.get(key).is_empty()) {
        (true, false) => Effect::Narrows,
        (false, true) => Effect::Widens,
        _ => Effect::Either,
    }
}

/// Titles, descriptions, examples, deprecation, defaults.
pub(super) fn text<'a>(walk: &mut Walk<'a>, place: &Place<'a, '_>) {
    for (key, kind) in [
        ("title", Kind::TitleChanged),
        ("description", Kind::DescriptionChanged),
        ("examples", Kind::ExamplesChanged),
        ("example", Kind::ExamplesChanged),
        ("deprecated", Kind::DeprecationChanged),
        ("$comment", Kind::DescriptionChanged),
    ] {
        if place.o.first(key) != place.n.first(key) {
            walk.keyword(place, kind, key, Effect::Text);
        }
    }
    let words = |view: &View<'a>| view.first("description").and_then(Value::as_str);
    if let (Some(old), Some(new)) = (words(place.o), words(place.n))
        && let Some((from, to)) = units::changed_in_text(old, new)
    {
        walk.keyword(place, Kind::UnitChanged, "description", Effect::Text);
        walk.state_last(Kind::UnitChanged, Value::from(from), Value::from(to));
    }
    let kind = match (place.o.first("default"), place.n.first("default")) {
        (None, Some(_)) => Kind::DefaultAdded,
        (Some(_), None) => Kind::DefaultRemoved,
        (Some(a), Some(b)) if !same_value(a, b) => Kind::DefaultChanged,
        _ => return,
    };
    walk.keyword(place, kind, "default", Effect::Text);
}

/// Types, `null`, listed values and bounds.
pub(super) fn values<'a>(walk: &mut Walk<'a>, place: &Place<'a, '_>) {
    types(walk, place);
    listed(walk, place);
    let [number, string, array, object] =
        ["number", "string", "array", "object"].map(|kind| came_or_went(place, kind));
    for (low, key, exclusive) in
        [(true, "minimum", "exclusiveMinimum"), (false, "maximum", "exclusiveMaximum")]
    {
        if !number {
            bound(walk, place, low, key, exclusive);
        }
    }
    for (low, key, told) in [
        (true, "minLength", string),
        (false, "maxLength", string),
        (true, "minItems", array),
        (false, "maxItems", array),
        (true, "minProperties", object),
        (false, "maxProperties", object),
        (true, "minContains", array),
        (false, "maxContains", array),
    ] {
        if told {
            continue;
        }
        let strictest = |view: &View<'a>| {
            let all = view.get(key).into_iter().filter_map(|(_, v)| v.as_f64());
            all.reduce(|a, b| if low { a.max(b) } else { a.min(b) })
        };
        let (old, new) = (strictest(place.o), strictest(place.n));
        if old != new {
            let tighter = match (old, new) {
                (None, _) => true,
                (_, None) => false,
                (Some(a), Some(b)) => (b > a) == low,
            };
            let (kind, effect) = if tighter {
                (Kind::SizeTightened, Effect::Narrows)
            } else {
                (Kind::SizeLoosened, Effect::Widens)
            };
            walk.keyword(place, kind, key, effect);
        }
    }
    if !number && !same(place, "multipleOf") {
        let effect = appears(place, "multipleOf");
        let kind = if effect == Effect::Widens { Kind::RangeLoosened } else { Kind::RangeTightened };
        walk.keyword(place, kind, "multipleOf", effect);
    }
    for (key, kind) in [("pattern", Kind::PatternChanged), ("format", Kind::FormatChanged)] {
        if !string && !same(place, key) {
            walk.keyword(place, kind, key, appears(place, key));
        }
    }
    let unique = |view: &View<'a>| view.get("uniqueItems").iter().any(|(_, v)| **v == Value::Bool(true));
    match (unique(place.o), unique(place.n)) {
        _ if array => {}
        (false, true) => walk.keyword(place, Kind::UniqueRequired, "uniqueItems", Effect::Narrows),
        (true, false) => walk.keyword(place, Kind::UniqueDropped, "uniqueItems", Effect::Widens),
        _ => {}
    }
}

fn types<'a>(walk: &mut Walk<'a>, place: &Place<'a, '_>) {
    let (o, n) = (place.o, place.n);
    let lists = |view: &View<'a>| view.allowed().is_some();
    let said = |view: &View<'a>| view.states_types() || lists(view);
    let (old, new) = (o.types(), n.types());
    // A list that appears or vanishes tells it itself.
    let explained =
        (lists(o) && lists(n)) || (lists(n) && new.is_subset(&old)) || (lists(o) && old.is_subset(&new));
    if old != new && !explained {
        let (kind, effect) = if old.is_subset(&new) {
            (Kind::TypeWidened, Effect::Widens)
        } else if new.is_subset(&old) {
            (Kind::TypeNarrowed, Effect::Narrows)
        } else {
            (Kind::TypeChanged, Effect::Either)
        };
        walk.keyword(place, kind, "type", effect);
    }
    // Where one side takes anything, the type itself tells it.
    if said(o) && said(n) {
        match (o.null(), n.null()) {
            (true, false) => walk.keyword(place, Kind::NullRefused, "type", Effect::Narrows),
            (false, true) => walk.keyword(place, Kind::NullAllowed, "type", Effect::Widens),
            _ => {}
        }
    }
}

/// `enum`, `const` and alternatives of constants.
fn listed<'a>(walk: &mut Walk<'a>, place: &Place<'a, '_>) {
    let one = |view: &View<'a>| view.get("const").first().map(|(_, v)| *v);
    let (old_const, new_const) = (one(place.o), one(place.n));
    let (old, new) = match (place.o.allowed(), place.n.allowed()) {
        (None, None) => return,
        (None, Some(_)) if new_const.is_some() => {
            return walk.keyword(place, Kind::ConstChanged, "const", Effect::Narrows);
        }
        (Some(_), None) if old_const.is_some() => {
            return walk.keyword(place, Kind::ConstChanged, "const", Effect::Widens);
        }
        (None, Some(_)) => return walk.keyword(place, Kind::EnumAdded, "enum", Effect::Narrows),
        (Some(_), None) => return walk.keyword(place, Kind::EnumDropped, "enum", Effect::Widens),
        (Some(old), Some(new)) => (old, new),
    };
    if let (Some(a), Some(b)) = (old_const, new_const) {
        if a != b {
            walk.keyword(place, Kind::ConstChanged, "const", Effect::Either);
        }
        return;
    }
    let (before, now): (HashSet<&Value>, HashSet<&Value>) =
        (old.iter().copied().collect(), new.iter().copied().collect());
    let gone: Vec<&Value> = old.iter().filter(|v| !now.contains(*v)).copied().collect();
    let come: Vec<&Value> = new.iter().filter(|v| !before.contains(*v)).copied().collect();
    if gone.len() + come.len() > MAX_VALUES {
        many(walk, place, Kind::EnumValueRemoved, &gone);
        return many(walk, place, Kind::EnumValueAdded, &come);
    }
    let lower = |v: &Value| v.as_str().map(str::to_lowercase);
    for value in &gone {
        let recased = come.iter().find(|v| lower(v).is_some() && lower(v) == lower(value));
        let kind = if recased.is_some() { Kind::EnumValueRecased } else { Kind::EnumValueRemoved };
        let mut raw = of_value(walk, place, kind, Effect::Narrows);
        raw.old = Some((*value).clone());
        raw.new = recased.map(|v| (*v).clone());
        raw.edits = walk.edit(place, &["enum"]);
        for edit in &mut raw.edits {
            let left = place.o.get("enum").first().and_then(|(_, v)| v.as_array());
            edit.value = left.map(|l| Value::Array(l.iter().filter(|v| v != value).cloned().collect()));
        }
        raw.rename = recased.map(|to| RenameHint {
            from: value.to_string(),
            to: to.to_string(),
            evidence: "the same letters in another case".to_owned(),
        });
        walk.push(raw);
    }
    for value in &come {
        let mut raw = of_value(walk, place, Kind::EnumValueAdded, Effect::Widens);
        raw.new = Some((*value).clone());
        raw.edits = walk.edit(place, &["enum"]);
        for edit in &mut raw.edits {
            let more = place.o.get("enum").first().and_then(|(_, v)| v.as_array());
            edit.value = more.map(|l| Value::Array(l.iter().chain([*value]).cloned().collect()));
        }
        walk.push(raw);
    }
    if gone.is_empty() && come.is_empty() && old != new {
        walk.keyword(place, Kind::EnumReordered, "enum", Effect::Text);
    }
}

/// Many values of one list, told as one change: its old or new value is the list of the first of them.
fn many<'a>(walk: &mut Walk<'a>, place: &Place<'a, '_>, kind: Kind, values: &[&Value]) {
    if values.is_empty() {
        return;
    }
    let removed = kind == Kind::EnumValueRemoved;
    let mut raw = of_value(walk, place, kind, if removed { Effect::Narrows } else { Effect::Widens });
    let some = Value::Array(values.iter().take(SHOWN_VALUES).map(|v| (*v).clone()).collect());
    (raw.old, raw.new) = if removed { (Some(some), None) } else { (None, Some(some)) };
    raw.values = values.len();
    raw.edits = walk.edit(place, &["enum"]);
    let known: HashSet<&Value> = values.iter().copied().collect();
    for edit in &mut raw.edits {
        let list = place.o.get("enum").first().and_then(|(_, v)| v.as_array());
        edit.value = list.map(|list| {
            let kept = list.iter().filter(|v| !removed || !known.contains(v));
            let more = values.iter().copied().filter(|_| !removed);
            Value::Array(kept.chain(more).cloned().collect())
        });
    }
    walk.push(raw);
}

fn of_value<'a>(walk: &Walk<'a>, place: &Place<'a, '_>, kind: Kind, effect: Effect) -> Raw {
    let (old, new) = (place.o.get("enum"), place.n.get("enum"));
    Raw {
        kind,
        pointer: place.pointer.to_owned(),
        old_location: old.first().map(|(_, v)| walk.old_at.of(v)).or_else(|| walk.own(place).0),
        new_location: new.first().map(|(_, v)| walk.new_at.of(v)).or_else(|| walk.own(place).1),
        old: None,
        new: None,
        effect,
        keyword: "enum",
        edits: Vec::new(),
        place: walk.whole(place),
        rename: None,
        values: 1,
    }
}

/// A lower or upper bound of numbers, in both its forms.
fn bound<'a>(
    walk: &mut Walk<'a>,
    place: &Place<'a, '_>,
    low: bool,
    key: &'static str,
    exclusive: &'static str,
) {
    let whole = |view: &View<'a>| !view.types().contains("number");
    let strictest = |view: &View<'a>| -> Option<(Num, bool)> {
        let numbers = |key: &str| {
            view.get(key).into_iter().filter_map(|(_, v)| v.as_number().map(Num::of)).collect::<Vec<_>>()
        };
        let flag = view.get(exclusive).iter().any(|(_, v)| **v == Value::Bool(true)); // draft-04
        let inclusive = numbers(key).into_iter().map(|n| (n, flag));
        let all = inclusive.chain(numbers(exclusive).into_iter().map(|n| (n, true)));
        // Of whole numbers, `> 3` is `>= 4`.
        let all = all.map(|(n, out)| match (whole(view), out, low) {
            (false, _, _) => (n, out),
            (true, true, true) => (n.floor().map_or(n, |n| Num::Whole(n + 1)), false),
            (true, true, false) => (n.ceil().map_or(n, |n| Num::Whole(n - 1)), false),
            (true, false, true) => (n.ceil().map_or(n, Num::Whole), false),
            (true, false, false) => (n.floor().map_or(n, Num::Whole), false),
        });
        all.reduce(|a, b| match b.0.compare(a.0) {
            Ordering::Equal if b.1 => b,
            Ordering::Greater if low => b,
            Ordering::Less if !low => b,
            _ => a,
        })
    };
    let (old, new) = (strictest(place.o), strictest(place.n));
    if old == new {
        return;
    }
    let tighter = match (old, new) {
        (None, _) => true,
        (_, None) => false,
        (Some((a, _)), Some((b, out))) if a == b => out,
        (Some((a, _)), Some((b, _))) => (b.compare(a) == Ordering::Greater) == low,
    };
    let (kind, effect) =
        if tighter { (Kind::RangeTightened, Effect::Narrows) } else { (Kind::RangeLoosened, Effect::Widens) };
    let count = |key: &str| place.o.get(key).len() + place.n.get(key).len();
    let shown = if count(key) == 0 { exclusive } else { key };
    let edits = walk.edit(place, &[key, exclusive]);
    walk.keyword(place, kind, shown, effect);
    walk.edits_of_last(kind, edits);
}

/// Read by a rule, or structure that a proof sees through.
const READ: [&str; 60] = [
    "$schema",
    "$id",
    "id",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$defs",
    "definitions",
    "$comment",
    "$vocabulary",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "title",
    "description",
    "examples",
    "example",
    "deprecated",
    "default",
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
    "pattern",
    "format",
    "uniqueItems",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "propertyOrdering",
];

/// Keywords that no rule reads.
pub(super) fn others<'a>(walk: &mut Walk<'a>, place: &Place<'a, '_>) {
    let mut keys: Vec<&'a str> = Vec::new();
    for node in place.o.nodes().into_iter().chain(place.n.nodes()) {
        for key in node.as_object().into_iter().flat_map(|map| map.keys()) {
            if !READ.contains(&key.as_str()) && !keys.contains(&key.as_str()) {
                keys.push(key);
            }
        }
    }
    for key in keys {
        if place.o.first(key) == place.n.first(key) {
            continue;
        }
        let (old_location, new_location) = walk.own(place);
        let raw = Raw {
            kind: Kind::KeywordChanged,
            pointer: place.pointer.to_owned(),
            old_location,
            new_location,
            old: place.o.first(key).map(|v| serde_json::json!({ key: v })),
            new: place.n.first(key).map(|v| serde_json::json!({ key: v })),
            effect: Effect::Either,
            keyword: "unknown",
            edits: walk.edit(place, &[key]),
            place: walk.whole(place),
            rename: None,
            values: 1,
        };
        walk.push(raw);
    }
}
