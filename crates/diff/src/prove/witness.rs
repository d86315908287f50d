//! A value that refutes a containment, and the two validations that confirm it.

use std::cell::Cell;

use jsonschema::error::ValidationErrorKind;
use serde::Serialize;
use serde_json::Value;

use super::eval::all_hold;
use super::ir::Literal;
use super::{Model, Operand};
use crate::WitnessFrom;

/// Work in units of one JSON node that one question may spend on judging values.
const WORK: usize = 300_000;

/// A value that `sub` accepts and `sup` refuses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Witness {
    /// The value, shrunk (a recorded one is kept as it was sent).
    pub value: Value,
    /// Where it came from.
    pub from: WitnessFrom,
    /// The keyword of `sup` that refuses it.
    pub keyword: String,
    /// Where in the value, a JSON Pointer.
    pub pointer: String,
    /// Where in `sup` the keyword stands, a JSON Pointer; empty where the whole schema refuses.
    pub location: String,
}

/// One question.
pub(super) struct Question<'a> {
    pub sub: &'a Operand,
    pub sup: &'a Operand,
    pub model: Model,
    /// A value was found that refutes for some validators and not for others.
    disputed: Cell<bool>,
}

impl<'a> Question<'a> {
    pub fn new(sub: &'a Operand, sup: &'a Operand, model: Model) -> Self {
        Self { sub, sup, model, disputed: Cell::new(false) }
    }

    /// Whether a value was found that refutes for some validators and not for others.
    pub fn disputed(&self) -> bool {
        self.disputed.get()
    }

    /// Notes that this value, which may refute, does so for some validators only.
    pub fn note(&self, value: &Value) {
        let goal = [Literal::yes(self.sub.meaning()), Literal::no(self.sup.meaning())];
        let judged = all_hold(&goal, value);
        self.disputed.set(self.disputed() || judged.answer.is_none() && judged.disputed);
    }

    /// Whether the value refutes the containment in this model: the validators of both schemas say so, the second
    /// validation does not contradict, and no other correct validator would.
    pub fn refuted_by(&self, value: &Value) -> bool {
        if self.sub.fills_unknown() || self.sup.fills_unknown() {
            return false;
        }
        if !self.sub.accepts(value)
            || self.sup.accepts(value)
            || self.model == Model::Declared && !self.sub.declares(value)
        {
            return false;
        }
        let goal = [Literal::yes(self.sub.meaning()), Literal::no(self.sup.meaning())];
        let judged = all_hold(&goal, value);
        match judged.answer {
            Some(agrees) => agrees,
            None if judged.disputed || self.sub.contested().is_some() || self.sup.contested().is_some() => {
                self.disputed.set(true);
                false
            }
            // No witness without the second opinion: on what is not modelled the library alone can err.
            None => false,
        }
    }

    /// How many values may be judged: large schemas are slow to judge by.
    pub fn affordable(&self, wanted: u32) -> u32 {
        let size = self.sub.size() + self.sup.size();
        wanted.min(u32::try_from(WORK / size.max(1)).unwrap_or(u32::MAX).max(8))
    }

    /// The witness for a value that refutes: of its refusals the deepest, and of those the first.
    pub fn witness(&self, value: Value, from: WitnessFrom) -> Witness {
        let mut best: Option<(usize, String, String, String)> = None;
        for error in self.sup.validator().iter_errors(&self.sup.seen(&value)).take(64) {
            let pointer = error.instance_path().as_str();
            let depth = pointer.matches('/').count();
            if best.as_ref().is_none_or(|(d, ..)| depth > *d) {
                let location = error.schema_path().as_str().to_owned();
                best = Some((depth, error.kind().keyword().to_owned(), pointer.to_owned(), location));
            }
        }
        let (_, keyword, pointer, location) = best.unwrap_or_default();
        Witness { value, from, keyword, pointer, location }
    }
}

pub(super) fn gave_up(error: &jsonschema::ValidationError<'_>) -> bool {
    matches!(error.kind(), ValidationErrorKind::BacktrackLimitExceeded { .. })
}

/// Whether a value is accepted by `sub`, refused by `sup` and belongs to the model.
pub fn is_witness(sub: &Operand, sup: &Operand, model: Model, value: &Value) -> bool {
    Question::new(sub, sup, model).refuted_by(value)
}
