//! Witness search: recorded values, examples, boundary values, mutations, generated values.

use serde_json::{Map, Value};

use super::shrink::shrink;
use super::witness::Question;
use super::{Options, Witness};
use crate::{Generator, Rng, WitnessFrom};

/// Values that are tried while shrinking one witness.
const SHRINKING: u32 = 300;
/// Values collected from one pair, at most.
const POOL: usize = 400;

/// The first recorded value that refutes.
pub(super) fn recorded(question: &Question<'_>, options: &Options<'_>) -> Option<Witness> {
    let value = options.recorded.iter().find(|value| question.refuted_by(value))?;
    Some(question.witness(value.clone(), WitnessFrom::Recorded))
}

/// A witness among at most `options.tries` values, shrunk.
pub(super) fn search(question: &Question<'_>, options: &Options<'_>) -> Option<Witness> {
    let mut pool = Pool::default();
    pool.read(question.sub.schema(), 0);
    pool.read(question.sup.schema(), 0);
    let mut rng = Rng::new(options.seed).fork("witness");
    let mut tries = question.affordable(options.tries);
    let mut spend = |value: &Value| {
        if tries == 0 {
            return false;
        }
        tries -= 1;
        question.refuted_by(value)
    };
    let found = (|| {
        if let Some(value) = pool.values.iter().take(200).find(|value| spend(value)) {
            return Some((value.clone(), WitnessFrom::Example));
        }
        let mut bases = Vec::new();
        for (i, optional) in [0.0, 1.0, 0.5, 0.5, 0.8, 0.2, 0.5, 0.5].into_iter().enumerate() {
            let schema = if i % 4 == 3 { question.sup.schema() } else { question.sub.schema() };
            if let Some(value) = Generator::new(schema).with_optional(optional).value(&mut rng) {
                if spend(&value) {
                    return Some((value, WitnessFrom::Generated));
                }
                bases.push(value);
            }
        }
        for i in 0..question.affordable(options.tries) {
            let base = if i % 4 == 0 {
                Generator::new(question.sub.schema()).value(&mut rng)
            } else {
                rng.pick(&bases).or_else(|| rng.pick(&pool.values)).cloned()
            };
            let mut value = base.unwrap_or(Value::Null);
            pool.mutate(&mut value, &mut rng, 0);
            if spend(&value) {
                return Some((value, WitnessFrom::Boundary));
            }
        }
        None
    })();
    let (value, from) = found?;
    Some(shrunk(question, value, from))
}

/// The witness for a value that refutes, made small.
pub(super) fn shrunk(question: &Question<'_>, value: Value, from: WitnessFrom) -> Witness {
    let checks = question.affordable(SHRINKING);
    question.witness(shrink(value, checks, &mut |v| question.refuted_by(v)), from)
}

/// A witness among values of a schema of the difference.
pub(super) fn subtracted(
    question: &Question<'_>,
    difference: &Value,
    options: &Options<'_>,
) -> Option<Witness> {
    let mut rng = Rng::new(options.seed).fork("subtracted");
    let found = (0..question.affordable(options.tries.min(20)))
        .filter_map(|_| Generator::new(difference).value(&mut rng))
        .find(|value| question.refuted_by(value))?;
    Some(shrunk(question, found, WitnessFrom::Subtracted))
}

/// Values and names that the two schemas mention, and values around their bounds.
#[derive(Default)]
struct Pool {
    values: Vec<Value>,
    names: Vec<String>,
}

impl Pool {
    fn add(&mut self, value: Value) {
        if self.values.len() < POOL && !self.values.contains(&value) {
            self.values.push(value);
        }
    }

    fn read(&mut self, schema: &Value, depth: usize) {
        if depth == 0 {
            for value in [Value::Null, Value::from(0), Value::from(""), Value::from(true)] {
                self.add(value);
            }
            self.add(Value::Array(Vec::new()));
            self.add(Value::Object(Map::new()));
        }
        if depth > 64 || self.values.len() >= POOL {
            return;
        }
        match schema {
            Value::Object(map) => {
                for (key, value) in map {
                    match (key.as_str(), value) {
                        ("const" | "default", value) => self.add(value.clone()),
                        ("enum" | "examples", Value::Array(list)) => {
                            list.iter().for_each(|v| self.add(v.clone()))
                        }
                        (
                            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                            Value::Object(table),
                        ) => {
                            for (name, schema) in table {
                                if key == "properties"
                                    && !self.names.contains(name)
                                    && self.names.len() < POOL
                                {
                                    self.names.push(name.clone());
                                }
                                self.read(schema, depth + 1);
                            }
                        }
                        (_, Value::Number(number)) => self.around(key, number),
                        (_, other) => self.read(other, depth + 1),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|item| self.read(item, depth + 1)),
            Value::String(name) if depth > 0 && self.names.len() < POOL && !self.names.contains(name) => {
                self.names.push(name.clone());
            }
            _ => {}
        }
    }

    /// Values at, below and above a bound.
    fn around(&mut self, key: &str, number: &serde_json::Number) {
        let count = number.as_u64().filter(|n| *n < 64).and_then(|n| usize::try_from(n).ok());
        match (key, count) {
            ("minLength" | "maxLength", Some(n)) => {
                for n in [n, n + 1, n.saturating_sub(1)] {
                    self.add(Value::String("x".repeat(n)));
                }
            }
            ("minItems" | "maxItems" | "minContains" | "maxContains", Some(n)) => {
                for n in [n, n + 1, n.saturating_sub(1)] {
                    self.add(Value::Array((0..n).map(Value::from).collect()));
                }
            }
            ("minProperties" | "maxProperties", Some(n)) => {
                for n in [n, n + 1, n.saturating_sub(1)] {
                    self.add(Value::Object((0..n).map(|i| (format!("k{i}"), Value::from(i))).collect()));
                }
            }
            _ => {
                self.add(Value::Number(number.clone()));
                if let Some(n) = number.as_i64() {
                    self.add(Value::from(n.saturating_add(1)));
                    self.add(Value::from(n.saturating_sub(1)));
                } else if let Some(n) = number.as_f64() {
                    self.add(Value::from(n + 1.0));
                    self.add(Value::from(n - 1.0));
                }
            }
        }
    }

    /// Changes one part of a value.
    fn mutate(&self, value: &mut Value, rng: &mut Rng, depth: usize) {
        let here = depth > 8 || rng.chance(0.3);
        match value {
            Value::Object(map) if !here || rng.chance(0.5) => {
                let names: Vec<String> = map.keys().cloned().collect();
                match (rng.below(4), rng.pick(&names)) {
                    (0, Some(name)) => {
                        map.remove(name);
                    }
                    (1, _) => {
                        let name = rng.pick(&self.names).cloned().unwrap_or_else(|| "extra".to_owned());
                        map.insert(name, rng.pick(&self.values).cloned().unwrap_or_default());
                    }
                    (_, Some(name)) => {
                        if let Some(member) = map.get_mut(name) {
                            self.mutate(member, rng, depth + 1);
                        }
                    }
                    _ => {}
                }
            }
            Value::Array(items) if !here || rng.chance(0.5) => {
                let at = usize::try_from(rng.below(items.len() as u64)).unwrap_or(0);
                match (rng.below(4), items.is_empty()) {
                    (0, false) => {
                        items.remove(at);
                    }
                    (1, _) | (_, true) => items.push(rng.pick(&self.values).cloned().unwrap_or_default()),
                    _ => self.mutate(&mut items[at], rng, depth + 1),
                }
            }
            _ => *value = rng.pick(&self.values).cloned().unwrap_or_default(),
        }
    }
}
