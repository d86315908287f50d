//! What a call covers, read back from the call.

use lastcall_contract::{Draft, validator_for};
use serde_json::{Map as Object, Value, json};

use super::goals::{Map, Need, Step};

/// The name under which the schema stands inside a test of one of its parts.
const WHOLE: &str = "urn:lastcall:whole";

/// A compiled test for each place that a value enters under a condition.
pub(super) struct Tests {
    validators: Vec<Option<jsonschema::Validator>>,
}

impl Tests {
    /// Compiles the tests. A part that does not compile alone is never entered.
    pub(super) fn new(map: &Map, schema: &Value, draft: Draft) -> Self {
        let validators = map.places.iter().map(|place| match &place.step {
            Step::Same(test) => validator_for(&part(schema, draft, &test.pointer), draft).ok(),
            Step::Matching(expression) => validator_for(&json!({"pattern": expression}), draft).ok(),
            _ => None,
        });
        Self { validators: validators.collect() }
    }

    /// Whether a value enters this place, which stands at the same value as its parent.
    pub(super) fn enters(&self, map: &Map, place: usize, value: &Value) -> bool {
        let (Some(at), Some(Some(validator))) = (map.places.get(place), self.validators.get(place)) else {
            return false;
        };
        match &at.step {
            Step::Same(test) => validator.is_valid(value) == test.accepts,
            _ => validator.is_valid(value),
        }
    }

    /// Which goals a call covers, by index.
    pub(super) fn covered(&self, map: &Map, call: &Value) -> Vec<bool> {
        let mut seen = vec![false; map.goals.len()];
        self.mark(map, 0, call, &mut seen);
        seen
    }

    fn mark(&self, map: &Map, id: usize, value: &Value, seen: &mut [bool]) {
        let Some(place) = map.places.get(id) else { return };
        for goal in &place.goals {
            let met = map.targets.get(*goal).is_some_and(|target| meets(&target.need, value));
            if let Some(slot) = seen.get_mut(*goal) {
                *slot |= met;
            }
        }
        for child in &place.children {
            match map.places.get(*child).map(|c| &c.step) {
                Some(Step::Same(_)) if self.enters(map, *child, value) => self.mark(map, *child, value, seen),
                Some(Step::Name(name)) => {
                    if let Some(value) = value.get(name) {
                        self.mark(map, *child, value, seen);
                    }
                }
                Some(Step::Index(n)) => {
                    if let Some(value) = value.get(*n) {
                        self.mark(map, *child, value, seen);
                    }
                }
                Some(Step::Item) => {
                    let first = place.children.iter().filter_map(|c| index_of(map, *c)).max();
                    let skip = first.map_or(0, |n| n + 1);
                    for value in value.as_array().into_iter().flatten().skip(skip) {
                        self.mark(map, *child, value, seen);
                    }
                }
                Some(Step::Open) => {
                    let declared = |key: &str| {
                        place.children.iter().any(|c| match map.places.get(*c).map(|p| &p.step) {
                            Some(Step::Name(name)) => name == key,
                            Some(Step::Matching(_)) => self.enters(map, *c, &Value::from(key)),
                            _ => false,
                        })
                    };
                    for (key, value) in value.as_object().into_iter().flatten() {
                        if !declared(key) {
                            self.mark(map, *child, value, seen);
                        }
                    }
                }
                Some(Step::Matching(_)) => {
                    for (key, value) in value.as_object().into_iter().flatten() {
                        if self.enters(map, *child, &Value::from(key.as_str())) {
                            self.mark(map, *child, value, seen);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn index_of(map: &Map, place: usize) -> Option<usize> {
    match map.places.get(place)?.step {
        Step::Index(n) => Some(n),
        _ => None,
    }
}

/// Whether a value at the goal's place shows what is needed.
pub(super) fn meets(need: &Need, value: &Value) -> bool {
    match need {
        Need::There => true,
        Need::Without(name) => value.as_object().is_some_and(|map| !map.contains_key(name)),
        Need::Equal(wanted) => same(value, wanted),
        Need::Typed(kind) => match (kind.as_str(), value) {
            ("integer", Value::Number(n)) => {
                n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|f| f.fract() == 0.0)
            }
            ("number", Value::Number(_))
            | ("string", Value::String(_))
            | ("boolean", Value::Bool(_))
            | ("array", Value::Array(_))
            | ("object", Value::Object(_))
            | ("null", Value::Null) => true,
            _ => false,
        },
        Need::Edge(edge) => edge.holds(value),
        Need::NotZero => value.as_f64().is_some_and(|n| n != 0.0),
        Need::Length(n) => value.as_str().is_some_and(|s| s.chars().count() as u64 == *n),
        Need::Items(n) => value.as_array().is_some_and(|list| list.len() as u64 == *n),
    }
}

/// Equality of JSON Schema: 1 and 1.0 are the same number.
fn same(a: &Value, b: &Value) -> bool {
    a == b || (a.is_number() && b.is_number() && a.as_f64() == b.as_f64())
}

/// A schema that is the part of another at this pointer, with all that the part refers to.
pub(crate) fn part(schema: &Value, draft: Draft, pointer: &str) -> Value {
    let Some(map) = schema.as_object() else { return schema.clone() };
    let mut whole: Object<String, Value> = map.clone();
    let stated = whole.remove("$schema");
    let key = if draft == Draft::Draft4 { "id" } else { "$id" };
    let name = whole.get(key).and_then(Value::as_str).unwrap_or(WHOLE).trim_end_matches('#').to_owned();
    whole.insert(key.to_owned(), Value::from(name.as_str()));
    let table =
        if matches!(draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7) { "definitions" } else { "$defs" };
    let fragment = pointer.replace('%', "%25").replace('"', "%22").replace(' ', "%20");
    let mut out = json!({table: {"whole": whole}, "allOf": [{"$ref": format!("{name}#{fragment}")}]});
    if let (Some(stated), Some(out)) = (stated, out.as_object_mut()) {
        out.insert("$schema".to_owned(), stated);
    }
    out
}
