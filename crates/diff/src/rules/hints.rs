//! Likely new names: shown beside a removal and an addition.

use serde_json::Value;

use super::raw::{Effect, Raw};
use super::units;
use super::view::type_of;
use crate::change::{ChangeKind as Kind, RenameHint};
use crate::doc::SchemaDoc;
use crate::near::names_are_near;
use crate::places::same_but_for_text;
use crate::pointer::tokens;
use crate::rename::inferred_renames;

/// Beyond so many pairs nothing is guessed.
const MAX_PAIRS: usize = 2_500;

/// Puts a hint on each removal and addition that look like one argument, and tells a unit that changed with the name.
pub(super) fn renames(raws: &mut Vec<Raw>, old: &SchemaDoc, new: &SchemaDoc) {
    let gone = |raw: &Raw| matches!(raw.kind, Kind::PropertyRemoved | Kind::PropertyDropped);
    let come = |raw: &Raw| {
        raw.kind == Kind::PropertyAdded
            || (raw.kind == Kind::RequiredAdded && raw.old.is_none() && raw.new.is_some())
    };
    let pairs = raws.iter().filter(|r| gone(r)).count() * raws.iter().filter(|r| come(r)).count();
    if pairs == 0 || pairs > MAX_PAIRS {
        return;
    }
    let evident = inferred_renames(old, new);
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    for (i, from) in raws.iter().enumerate().filter(|(_, raw)| gone(raw)) {
        for (j, to) in raws.iter().enumerate().filter(|(_, raw)| come(raw)) {
            if parent(&from.pointer) != parent(&to.pointer) {
                continue;
            }
            let siblings = |is: &dyn Fn(&Raw) -> bool| {
                raws.iter().filter(|r| is(r) && parent(&r.pointer) == parent(&from.pointer)).count()
            };
            let only = siblings(&gone) == 1 && siblings(&come) == 1;
            let known = evident.iter().find(|r| r.rename.from == from.pointer && r.rename.to == to.pointer);
            if let Some(evidence) = evidence(from, to, known.map(|r| r.evidence), only) {
                found.push((i, j, evidence));
            }
        }
    }
    let mut units_found = Vec::new();
    for (i, j, evidence) in &found {
        let alone = |n: usize, m: usize| found.iter().filter(|(a, b, _)| *a == n || *b == m).count() == 1;
        if !alone(*i, *j) {
            continue;
        }
        let hint = RenameHint {
            from: raws[*i].pointer.clone(),
            to: raws[*j].pointer.clone(),
            evidence: evidence.clone(),
        };
        if let Some((from, to)) = units::changed_in_name(&name(&hint.from), &name(&hint.to)) {
            units_found.push(Raw {
                kind: Kind::UnitChanged,
                old: Some(Value::from(from)),
                new: Some(Value::from(to)),
                old_location: raws[*i].old_location.clone(),
                effect: Effect::Text,
                edits: Vec::new(),
                rename: Some(hint.clone()),
                ..raws[*j].clone()
            });
        }
        raws[*i].rename = Some(hint.clone());
        raws[*j].rename = Some(hint);
    }
    raws.extend(units_found);
}

fn evidence(from: &Raw, to: &Raw, known: Option<&str>, only: bool) -> Option<String> {
    let (Some(old), Some(new)) = (&from.old, &to.new) else { return None };
    let near = names_are_near(&name(&from.pointer), &name(&to.pointer));
    let same = same_but_for_text(old, new);
    if let Some(known) = known {
        return Some(format!("same schema, {known}"));
    }
    match (near, same, only) {
        (true, true, _) => Some("same schema, near name".to_owned()),
        (true, false, _) => Some(format!("near name, both {}", common_type(old, new)?)),
        (false, true, true) => {
            Some("the only one that went and the only one that came, same schema".to_owned())
        }
        _ => None,
    }
}

/// The plural of a type that both schemas state.
fn common_type(old: &Value, new: &Value) -> Option<&'static str> {
    let types = |schema: &Value| -> Vec<String> {
        match (schema.get("type"), schema.get("enum").and_then(Value::as_array)) {
            (Some(Value::String(one)), _) => vec![one.clone()],
            (Some(Value::Array(list)), _) => {
                list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
            }
            (_, Some(values)) => values.iter().map(|v| type_of(v).to_owned()).collect(),
            _ => Vec::new(),
        }
    };
    let (old, new) = (types(old), types(new));
    [
        ("string", "strings"),
        ("integer", "integers"),
        ("number", "numbers"),
        ("boolean", "booleans"),
        ("array", "lists"),
        ("object", "objects"),
    ]
    .into_iter()
    .find(|(t, _)| old.iter().any(|o| o == t) && new.iter().any(|n| n == t))
    .map(|(_, plural)| plural)
}

fn parent(pointer: &str) -> &str {
    pointer.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn name(pointer: &str) -> String {
    tokens(pointer).last().unwrap_or_default()
}
