//! Numbers that reading made one: integers beyond 64 bits and decimals beyond a double. Two schemas that differ in them
//! alone look the same to every question asked of the values that were read; here the literals are held side by side.

use std::collections::{BTreeMap, BTreeSet};

use lastcall_contract::{Decimal, Definition, SCHEMA_LISTS, SCHEMA_TABLES, rounded_numbers};
use serde_json::Value;

use super::raw::{Effect, Raw};
use crate::change::ChangeKind as Kind;
use crate::pointer::{join, join_name, tokens};

/// Literals by their place in one schema.
pub(super) type Literals = BTreeMap<String, String>;

/// What the literals of two schemas say.
#[derive(Default)]
pub(super) struct Rounded {
    /// Every difference that reading hides.
    pub raws: Vec<Raw>,
    /// One of them is in a keyword that decides which values are accepted: then no proof stands.
    pub decides: bool,
    /// The doubles that such literals were read as: no witness may rest on one.
    doubles: Vec<f64>,
}

/// The literals of a definition's schemas that reading changed: of the arguments and of the result.
pub(super) fn literals(definition: &Definition) -> (Literals, Literals) {
    let all = rounded_numbers(&definition.verbatim);
    let below = |prefix: &str| {
        let part = all.iter().filter_map(|(at, literal)| Some((at.strip_prefix(prefix)?, literal)));
        part.filter(|(at, _)| at.starts_with('/')).map(|(at, l)| (at.to_owned(), l.clone())).collect()
    };
    if all.is_empty() {
        return Default::default();
    }
    (below(&definition.input_pointer()), definition.output_pointer().map(|at| below(&at)).unwrap_or_default())
}

/// The doubles that literals of a definition's arguments were read as and that decide which calls are taken.
pub(crate) fn doubles(definition: &Definition) -> Vec<f64> {
    let literals = literals(definition).0;
    let side = (&definition.input_schema, &literals);
    Rounded::of(side, side).doubles
}

impl Rounded {
    /// Of two schemas and their literals; old and new as values flow.
    pub fn of(old: (&Value, &Literals), new: (&Value, &Literals)) -> Self {
        let mut rounded = Self::default();
        let places: BTreeSet<&String> = old.1.keys().chain(new.1.keys()).collect();
        for at in places {
            let read = |side: (&Value, &Literals)| side.0.pointer(at).and_then(Value::as_f64);
            let written = |side: (&Value, &Literals)| {
                let number = side.0.pointer(at).filter(|v| v.is_number());
                side.1.get(at).cloned().or_else(|| number.map(Value::to_string))
            };
            let place = Place::of(at);
            let hidden = match (read(old).zip(written(old)), read(new).zip(written(new))) {
                (Some((a, x)), Some((b, y))) => a == b && !Decimal::same(&x, &y),
                // It may stand elsewhere: what was read as this double is not known to be this number.
                (Some((a, _)), None) => old.1.contains_key(at) && holds(new.0, a),
                (None, Some((b, _))) => new.1.contains_key(at) && holds(old.0, b),
                (None, None) => false,
            };
            if !place.annotates {
                let sides = [old, new].into_iter().filter(|side| side.1.contains_key(at));
                rounded.doubles.extend(sides.filter_map(read));
            }
            if hidden {
                rounded.decides |= !place.annotates;
                rounded.raws.push(place.raw(at, written(old), written(new)));
            }
        }
        rounded
    }

    /// Whether a value has a number that another literal was read as.
    pub fn touches(&self, value: &Value) -> bool {
        !self.doubles.is_empty() && self.doubles.iter().any(|double| holds(value, *double))
    }
}

/// Where in a value a place of a schema speaks; `None` inside a shared definition, which may stand in many places.
pub(super) fn instance_of(at: &str) -> Option<String> {
    (!tokens(at).any(|t| t == "$defs" || t == "definitions")).then(|| Place::of(at).pointer)
}

/// Whether a number anywhere in a value is this double.
pub(crate) fn holds(value: &Value, double: f64) -> bool {
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        match value {
            Value::Number(number) if number.as_f64() == Some(double) => return true,
            Value::Array(items) => stack.extend(items),
            Value::Object(map) => stack.extend(map.values()),
            _ => {}
        }
    }
    false
}

/// A place in a schema.
struct Place {
    /// Where in a value.
    pointer: String,
    keyword: String,
    /// It stands in a default or in examples: no validator looks at it.
    annotates: bool,
}

impl Place {
    fn of(at: &str) -> Self {
        let mut place = Self { pointer: String::new(), keyword: String::new(), annotates: false };
        let mut all = tokens(at).peekable();
        while let Some(key) = all.next() {
            if matches!(key.as_str(), "default" | "examples" | "example") {
                place.annotates = true;
            }
            if SCHEMA_TABLES.contains(&key.as_str()) {
                let name = all.next().unwrap_or_default();
                match key.as_str() {
                    "properties" => place.pointer = join_name(&place.pointer, &name),
                    "patternProperties" => place.pointer = join(&place.pointer, "*"),
                    _ => {}
                }
                continue;
            }
            match key.as_str() {
                "prefixItems" => {
                    place.pointer = join(&place.pointer, &all.next().unwrap_or_default());
                }
                "items" => {
                    let position = all.next_if(|token| token.bytes().all(|b| b.is_ascii_digit()));
                    place.pointer = join(&place.pointer, position.as_deref().unwrap_or("*"));
                }
                list if SCHEMA_LISTS.contains(&list) => _ = all.next(),
                "additionalItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedItems"
                | "unevaluatedProperties" => place.pointer = join(&place.pointer, "*"),
                "not" | "if" | "then" | "else" => {}
                _ => {
                    // A keyword; what follows is its value.
                    place.keyword = key;
                    break;
                }
            }
        }
        place
    }

    fn raw(self, at: &str, old: Option<String>, new: Option<String>) -> Raw {
        let number = |literal: Option<String>| literal.map(Value::String);
        let kind = match (self.annotates, self.keyword.as_str()) {
            (true, "default") => Kind::DefaultChanged,
            (true, _) => Kind::ExamplesChanged,
            (false, _) => Kind::KeywordChanged,
        };
        Raw {
            kind,
            pointer: self.pointer,
            old_location: Some(at.to_owned()),
            new_location: Some(at.to_owned()),
            old: number(old),
            new: number(new),
            effect: if self.annotates { Effect::Text } else { Effect::Either },
            keyword: known(&self.keyword),
            edits: Vec::new(),
            place: None,
            rename: None,
            values: 1,
        }
    }
}

fn known(keyword: &str) -> &'static str {
    const NUMERIC: [&str; 8] = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "enum",
        "const",
        "default",
    ];
    NUMERIC.into_iter().find(|known| *known == keyword).unwrap_or("")
}
