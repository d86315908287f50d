//! Changes of a call that make a candidate disagree in a stated way.

use serde_json::{Number, Value};

use super::schema::{items_of, properties_of, property, required_of};
use super::text::word;
use super::values::{Generator, MAX_DEPTH};
use super::{Aim, Rng};

/// One change of a call: put this value there, or take the property away.
pub(super) struct Edit {
    path: Vec<Step>,
    name: String,
    value: Option<Value>,
}

/// One step into a value.
#[derive(Clone)]
enum Step {
    Key(String),
    Index(usize),
}

impl Edit {
    /// The call with this change made; `None` where the place is not there.
    pub(super) fn apply(self, call: &Value) -> Option<Value> {
        let mut call = call.clone();
        let parent = descend(&mut call, &self.path)?.as_object_mut()?;
        match self.value {
            Some(value) => parent.insert(self.name, value),
            None => parent.remove(&self.name),
        };
        Some(call)
    }
}

/// Collects the edits of one call that may show the aim. One generator, so one budget, for all of them.
pub(super) struct Mutation<'a> {
    current: &'a Value,
    candidate: &'a Value,
    aim: Aim,
    make: Generator<'a>,
    path: Vec<Step>,
    edits: Vec<Edit>,
    objects: u32,
}

impl<'a> Mutation<'a> {
    /// Edits of `call`, in the order of the schema's places.
    pub(super) fn edits(
        current: &'a Value,
        candidate: &'a Value,
        aim: Aim,
        call: &Value,
        rng: &mut Rng,
    ) -> Vec<Edit> {
        let make = Generator::new(current).with_optional(0.8);
        let mut mutation =
            Self { current, candidate, aim, make, path: Vec::new(), edits: Vec::new(), objects: 0 };
        mutation.object(call, current, candidate, rng);
        mutation.edits
    }

    fn put(&mut self, name: &str, value: Value) {
        self.edits.push(Edit { path: self.path.clone(), name: name.to_owned(), value: Some(value) });
    }

    fn omit(&mut self, name: &str) {
        self.edits.push(Edit { path: self.path.clone(), name: name.to_owned(), value: None });
    }

    /// Up to `n` values that current's schema gives for this argument.
    fn fresh(&mut self, n: usize, name: &str, old: &Value, rng: &mut Rng) {
        for _ in 0..n {
            if let Some(value) = self.make.at(old, name, rng, 1) {
                self.put(name, value);
            }
        }
    }

    /// Edits of an object and of what lies in it.
    fn object(&mut self, value: &Value, current: &Value, candidate: &Value, rng: &mut Rng) {
        let Some(object) = value.as_object() else { return };
        self.objects += 1;
        if self.path.len() > MAX_DEPTH || self.edits.len() > 400 || self.objects > 64 {
            return;
        }
        let old_required = required_of(self.current, current);
        let new_required = required_of(self.candidate, candidate);
        match self.aim {
            Aim::RequiredAdded | Aim::RequiredNullableAdded => {
                new_required.iter().filter(|n| !old_required.contains(n)).for_each(|n| self.omit(n));
            }
            Aim::UndeclaredRefused => self.put("trace_note", Value::String(word(rng))),
            _ => {}
        }
        for (name, old) in &properties_of(self.current, current) {
            let new = property(self.candidate, candidate, name);
            self.property(name, old, new.as_ref(), rng);
            let Some(new) = new else { continue };
            match object.get(name) {
                Some(child) => self.inside(name, child, old, &new, rng),
                // An object or list that the call does not carry yet is put there; the next attempt may edit it.
                None => {
                    if let Some(made) = self.make.at(old, name, rng, 1)
                        && (made.is_object() || made.is_array())
                    {
                        self.put(name, made);
                    }
                }
            }
        }
    }

    /// Edits of one declared argument. `new` is `None` where the candidate does not declare it.
    fn property(&mut self, name: &str, old: &Value, new: Option<&Value>, rng: &mut Rng) {
        let default = old.get("default");
        match (new, self.aim) {
            (None, Aim::OptionalRemoved) => {
                if let Some(default) = default {
                    self.put(name, default.clone());
                }
            }
            (
                None,
                Aim::RequiredRemoved
                | Aim::OptionalRenamed
                | Aim::RequiredRenamed
                | Aim::OptionalValueLost
                | Aim::OptionalRefused,
            ) => {
                self.fresh(3, name, old, rng);
            }
            (Some(new), Aim::DefaultChanged) if new.get("default") != default => self.omit(name),
            (Some(_), Aim::NullRefused) => self.put(name, Value::Null),
            (Some(new), Aim::EnumValueRemoved | Aim::EnumCaseChanged) => {
                for value in removed_values(old, new, self.aim == Aim::EnumCaseChanged) {
                    self.put(name, value);
                }
                if allowed(new).is_some() && allowed(old).is_none() && self.aim == Aim::EnumValueRemoved {
                    self.put(name, Value::String(word(rng)));
                }
            }
            (Some(new), Aim::RangeTightened) => {
                for value in beyond(old, new, rng) {
                    self.put(name, value);
                }
                self.fresh(4, name, old, rng);
            }
            (Some(_), Aim::TypeChanged | Aim::CombinationRefused | Aim::RefusedOther) => {
                self.fresh(4, name, old, rng);
                self.omit(name);
            }
            _ => {}
        }
    }

    /// Edits below one argument that the call carries.
    fn inside(&mut self, name: &str, child: &Value, old: &Value, new: &Value, rng: &mut Rng) {
        self.path.push(Step::Key(name.to_owned()));
        self.object(child, old, new, rng);
        if let (Some(items), Some(old_item), Some(new_item)) =
            (child.as_array(), items_of(self.current, old), items_of(self.candidate, new))
        {
            for (i, item) in items.iter().enumerate().take(4) {
                self.path.push(Step::Index(i));
                self.object(item, &old_item, &new_item, rng);
                self.path.pop();
            }
        }
        self.path.pop();
    }
}

fn descend<'v>(value: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |at, step| match step {
        Step::Key(key) => at.get_mut(key),
        Step::Index(i) => at.get_mut(i),
    })
}

/// The values that `enum` or `const` allow.
fn allowed(schema: &Value) -> Option<Vec<Value>> {
    if let Some(value) = schema.get("const") {
        return Some(vec![value.clone()]);
    }
    schema.get("enum").and_then(Value::as_array).cloned()
}

fn removed_values(old: &Value, new: &Value, only_case: bool) -> Vec<Value> {
    let (Some(before), Some(after)) = (allowed(old), allowed(new)) else { return Vec::new() };
    let folded = |v: &Value| v.as_str().map(str::to_lowercase);
    before
        .into_iter()
        .filter(|v| !after.contains(v))
        .filter(|v| {
            let near = folded(v).is_some_and(|f| after.iter().any(|a| folded(a).as_ref() == Some(&f)));
            near == only_case
        })
        .collect()
}

/// Values just past the candidate's bounds.
fn beyond(old: &Value, new: &Value, rng: &mut Rng) -> Vec<Value> {
    let mut out = Vec::new();
    let count = |key: &str| new.get(key).and_then(Value::as_u64).filter(|n| *n < 100_000);
    if new.get("maxLength") != old.get("maxLength")
        && let Some(most) = count("maxLength")
    {
        let room =
            old.get("maxLength").and_then(Value::as_u64).map_or(40, |m| m.saturating_sub(most)).min(40);
        let extra = 1 + rng.below(room.max(1));
        let mut text = String::new();
        while (text.chars().count() as u64) < most + extra {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&word(rng));
        }
        let mut text: String = text.chars().take((most + extra) as usize).collect();
        if text.ends_with(' ') {
            text.pop();
            text.push('x');
        }
        out.push(Value::String(text));
    }
    if new.get("minLength") != old.get("minLength")
        && let Some(least) = count("minLength").filter(|n| *n > 0)
    {
        out.push(Value::String(word(rng).chars().cycle().take(least as usize - 1).collect()));
    }
    for (key, step) in [("maximum", 1i64), ("exclusiveMaximum", 0), ("minimum", -1), ("exclusiveMinimum", 0)]
    {
        if new.get(key) == old.get(key) {
            continue;
        }
        if let Some(bound) = new.get(key).and_then(Value::as_i64) {
            out.push(Value::from(bound.saturating_add(step)));
        } else if let Some(bound) = new.get(key).and_then(Value::as_f64) {
            out.extend(Number::from_f64((bound + step as f64).round()).map(Value::Number));
        }
    }
    if let Some(factor) = new.get("multipleOf").and_then(Value::as_i64).filter(|f| *f > 1) {
        out.push(Value::from(factor.saturating_mul(1 + rng.below(9) as i64).saturating_add(1)));
    }
    out
}
