//! Values for one goal, and the whole call around a value.

use std::cell::Cell;

use serde_json::{Map as Object, Value, json};

use super::goals::{MAX_LIST, MAX_TEXT, Map, Need, Step};
use super::text::of_length;
use crate::generate::{Generator, Rng};

/// A value at a goal's place; `None` inside: the key is left out.
pub(super) type Leaf = Option<Value>;

/// Builds values for the places of one schema.
pub(super) struct Make<'a> {
    pub map: &'a Map,
    pub root: &'a Value,
    /// Schema nodes looked at so far.
    pub work: &'a Cell<u64>,
}

impl Make<'_> {
    /// A value for a schema, unchecked.
    pub(super) fn at(&self, schema: &Value, name: &str, optional: f64, rng: &mut Rng) -> Option<Value> {
        let generator = Generator::new(self.root).with_optional(optional);
        let made = generator.at(schema, name, rng, 1);
        self.work.set(self.work.get() + generator.visited());
        made
    }

    /// The name of the property that a place is, or lies in.
    fn name(&self, place: usize) -> &str {
        match self.map.places.get(place) {
            Some(at) => match (&at.step, at.parent) {
                (Step::Name(name), _) => name,
                (_, Some(parent)) => self.name(parent),
                _ => "",
            },
            None => "",
        }
    }

    /// A value that meets the goal, unchecked.
    ///
    /// # Errors
    /// Why there is none, one clause.
    pub(super) fn leaf(&self, goal: usize, rng: &mut Rng) -> Result<Leaf, String> {
        let Some(target) = self.map.targets.get(goal) else { return Err("no such goal".to_owned()) };
        let Some(place) = self.map.places.get(target.place) else { return Err("no such place".to_owned()) };
        let name = self.name(target.place);
        let with = |more: Value| json!({"allOf": [more, place.schema]});
        let made = match &target.need {
            Need::Without(_) => return Ok(None),
            Need::Equal(value) => Some(value.clone()),
            Need::There => self.at(&place.schema, name, 0.5, rng),
            Need::Typed(kind) => self.at(&with(json!({"type": kind})), name, 0.5, rng),
            Need::NotZero => (0..8)
                .find_map(|_| self.at(&place.schema, name, 0.5, rng).filter(|v| v.as_f64() != Some(0.0))),
            Need::Edge(edge) => {
                return edge
                    .nearest
                    .clone()
                    .map(Some)
                    .ok_or_else(|| "no number lies between the bounds there".to_owned());
            }
            Need::Length(n) if *n > MAX_TEXT => {
                return Err(format!("texts longer than {MAX_TEXT} characters are not made"));
            }
            Need::Items(n) if *n > MAX_LIST => {
                return Err(format!("lists longer than {MAX_LIST} items are not made"));
            }
            Need::Length(n) => self.text(&place.schema, *n as usize, name, rng).map(Value::String),
            Need::Items(n) => {
                let exact = with(json!({"type": "array", "minItems": n, "maxItems": n}));
                self.at(&exact, name, 0.3, rng).filter(|v| v.as_array().is_some_and(|l| l.len() as u64 == *n))
            }
        };
        made.map(Some).ok_or_else(|| match &target.need {
            Need::NotZero => "no number but zero was found within its bounds".to_owned(),
            _ => "no value can be built for its schema".to_owned(),
        })
    }

    /// A text of this length for a schema.
    fn text(&self, schema: &Value, length: usize, name: &str, rng: &mut Rng) -> Option<String> {
        let pattern = stated(schema, "pattern");
        if let Some(pattern) = pattern
            && let Some(text) = of_length(pattern, length, rng)
        {
            return Some(text);
        }
        let format = stated(schema, "format");
        let fits = |text: &String| text.chars().count() == length;
        if pattern.is_some() || format.is_some() {
            let exact =
                json!({"allOf": [{"type": "string", "minLength": length, "maxLength": length}, schema]});
            let made = (0..40).find_map(|_| match self.at(&exact, name, 0.0, rng) {
                Some(Value::String(text)) if fits(&text) => Some(text),
                _ => None,
            });
            return made.or_else(|| padded(format?, length));
        }
        let made = match self.at(&json!({"type": "string"}), name, 0.0, rng) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let letters = made.chars().filter(|c| c.is_ascii_alphanumeric()).chain(std::iter::repeat('x'));
        Some(letters.take(length).collect())
    }

    /// The call around a value at a goal's place, unchecked.
    pub(super) fn around(
        &self,
        place: usize,
        leaf: &Leaf,
        need: &Need,
        optional: f64,
        rng: &mut Rng,
    ) -> Option<Value> {
        let mut value = match (leaf, need) {
            (Some(value), _) => value.clone(),
            (None, Need::Without(name)) => {
                let mut made = self.at(&self.map.places.get(place)?.schema, "", optional, rng)?;
                made.as_object_mut()?.remove(name);
                made
            }
            (None, _) => return None,
        };
        let mut at = place;
        // the place whose schema makes the surroundings: the last one on the way up at the same value
        loop {
            let here = self.map.places.get(at)?;
            let Some(mut parent) = here.parent else { return Some(value) };
            if matches!(here.step, Step::Same(_)) {
                at = parent;
                continue;
            }
            // the innermost branch at the parent's value decides; `parent` is that one already
            let schema = &self.map.places.get(parent)?.schema;
            let name = self.name(parent);
            value = match &here.step {
                Step::Name(key) => self.object(schema, name, key, value, optional, rng)?,
                Step::Open => {
                    let key = match stated_schema(schema, "propertyNames") {
                        Some(names) => {
                            let text = json!({"allOf": [{"type": "string"}, names]});
                            self.at(&text, "", 0.0, rng)?.as_str()?.to_owned()
                        }
                        None => format!("key_{}", rng.below(1000)),
                    };
                    self.object(schema, name, &key, value, optional, rng)?
                }
                Step::Matching(expression) => {
                    let key = (1..24).find_map(|n| of_length(expression, n, rng))?;
                    self.object(schema, name, &key, value, optional, rng)?
                }
                Step::Item => {
                    let listed = json!({"allOf": [{"type": "array"}, schema]});
                    let mut list = self.at(&listed, name, optional, rng)?;
                    let list = list.as_array_mut()?;
                    let siblings = &self.map.places.get(parent)?.children;
                    let skip = siblings
                        .iter()
                        .filter_map(|c| match self.map.places.get(*c)?.step {
                            Step::Index(n) => Some(n + 1),
                            _ => None,
                        })
                        .max()
                        .unwrap_or(0);
                    match list.get_mut(skip) {
                        Some(slot) => *slot = value,
                        None => list.push(value),
                    }
                    Value::Array(list.clone())
                }
                Step::Index(n) => {
                    let listed = json!({"allOf": [{"type": "array", "minItems": n + 1}, schema]});
                    let mut list = self.at(&listed, name, optional, rng)?;
                    *list.as_array_mut()?.get_mut(*n)? = value;
                    list
                }
                Step::Root | Step::Same(_) => return Some(value),
            };
            while let Some(up) = self.map.places.get(parent) {
                match (&up.step, up.parent) {
                    (Step::Same(_), Some(above)) => parent = above,
                    _ => break,
                }
            }
            at = parent;
        }
    }

    fn object(
        &self,
        schema: &Value,
        name: &str,
        key: &str,
        value: Value,
        optional: f64,
        rng: &mut Rng,
    ) -> Option<Value> {
        let typed = json!({"allOf": [{"type": "object"}, schema]});
        let mut made: Object<String, Value> = match self.at(&typed, name, optional, rng) {
            Some(Value::Object(map)) => map,
            _ => return None,
        };
        made.insert(key.to_owned(), value);
        Some(Value::Object(made))
    }
}

/// A keyword of a place's schema, wherever it stands among the parts.
fn stated<'v>(schema: &'v Value, key: &str) -> Option<&'v str> {
    schema.get(key).and_then(Value::as_str).or_else(|| {
        schema.get("allOf")?.as_array()?.iter().find_map(|part| part.get(key).and_then(Value::as_str))
    })
}

/// A schema under a keyword of a place's schema, wherever it stands among the parts.
fn stated_schema<'v>(schema: &'v Value, key: &str) -> Option<&'v Value> {
    let own = schema.get(key).filter(|v| v.is_object());
    own.or_else(|| {
        schema.get("allOf")?.as_array()?.iter().find_map(|part| part.get(key).filter(|v| v.is_object()))
    })
}

/// A text of a format with exactly this length, where the format has room for padding.
fn padded(format: &str, length: usize) -> Option<String> {
    let (head, tail) = match format {
        "uri" | "url" | "iri" | "uri-reference" | "iri-reference" => ("https://example.com/", ""),
        "email" | "idn-email" => ("", "@example.com"),
        "hostname" | "idn-hostname" => ("", ".example.com"),
        _ => return None,
    };
    let room = length.checked_sub(head.len() + tail.len()).filter(|n| *n > 0)?;
    (tail.is_empty() || room <= 60).then(|| format!("{head}{}{tail}", "x".repeat(room)))
}
