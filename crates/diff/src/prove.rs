//! Containment of JSON Schemas in three values: proven, refuted by a value, unknown.
//!
//! Pure and deterministic by seed. A proof is only claimed for what is modelled; a refutation only with a value that two
//! independent validations judge alike. Counts bound every step, never a clock.

mod compile;
mod declared;
mod eval;
mod fill;
mod index;
mod ir;
mod language;
mod library;
mod number;
mod operand;
mod search;
mod shrink;
mod tableau;
mod witness;

use serde_json::Value;

use crate::WitnessFrom;
use ir::Literal;
use library::Library;
pub(crate) use number::Num;
pub use operand::{Operand, OperandError};
use tableau::{Outcome, Solver};
pub use witness::{Witness, is_witness};

/// Steps of the prover for one question.
const STEPS: u32 = 20_000;
/// Values that are tried although a proof was found: what guards against a wrong one.
const NET: u32 = 24;

/// Which values the question ranges over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// Values whose object members are all declared by `sub`: what callers send. See [`declared_by`].
    Declared,
    /// Every value.
    Open,
}

/// What is known about "every value that `sub` accepts is accepted by `sup`".
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It holds for every value of the model.
    Proven,
    /// It does not: this value is accepted by `sub` and refused by `sup`.
    Refuted(Box<Witness>),
    /// Neither was shown.
    Unknown {
        /// What stood in the way, for a reader.
        why: String,
    },
}

impl Answer {
    /// The witness of a refutation.
    pub fn witness(&self) -> Option<&Witness> {
        match self {
            Self::Refuted(witness) => Some(witness),
            Self::Proven | Self::Unknown { .. } => None,
        }
    }
}

/// How a question is answered.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The same seed gives the same answer.
    pub seed: u64,
    /// Values that are tried as witnesses where nothing was proven, at most.
    pub tries: u32,
    /// Values that callers have really sent: tried first, the first one that is refused is the witness.
    pub recorded: &'a [Value],
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { seed: 1, tries: 250, recorded: &[] }
    }
}

/// Is every value of the model that `sub` accepts also accepted by `sup`? The drafts may differ.
pub fn contains(sub: &Operand, sup: &Operand, model: Model, options: &Options<'_>) -> Answer {
    let question = witness::Question::new(sub, sup, model);
    if let Some(witness) = search::recorded(&question, options) {
        return Answer::Refuted(Box::new(witness));
    }
    if sub.meaning().id == sup.meaning().id {
        return Answer::Proven;
    }
    let mut goal = vec![Literal::yes(sub.meaning()), Literal::no(sup.meaning())];
    if model == Model::Declared {
        goal.push(Literal::yes(sub.declared()));
    }
    let mut confirm = |value: &Value| question.refuted_by(value);
    let mut solver = Solver::new(STEPS, &mut confirm, (sub.size() + sup.size()) / 16);
    let (proven, tries) = match solver.decide(&goal) {
        Outcome::Model(value) => {
            return Answer::Refuted(Box::new(search::shrunk(&question, value, WitnessFrom::Proof)));
        }
        Outcome::None => (true, NET.min(options.tries)),
        Outcome::Open(value) => {
            value.iter().for_each(|value| question.note(value));
            (false, options.tries)
        }
    };
    if let Some(witness) = search::search(&question, &Options { tries, ..*options }) {
        return Answer::Refuted(Box::new(witness));
    }
    if proven {
        return Answer::Proven;
    }
    let library = Library::new(sub, sup);
    if let Some(library) = &library {
        if !question.disputed() && library.covers() {
            return Answer::Proven;
        }
        let witness = library.difference().and_then(|d| search::subtracted(&question, &d, options));
        if let Some(witness) = witness {
            return Answer::Refuted(Box::new(witness));
        }
    }
    let why = if let Some(why) = sub.contested().or(sup.contested()) {
        why
    } else if question.disputed() {
        "validators differ on the numbers that would tell the schemas apart: some read every number as a double, some as a \
         decimal; keep bounds and values within 2^53, and steps such as 0.1 out of `multipleOf`"
    } else if !sub.is_modelled() || !sup.is_modelled() {
        "a keyword or reference of the schemas is not modelled"
    } else if solver.exhausted() {
        "the schemas are too large to decide within the budget"
    } else {
        "no proof and no witness was found"
    };
    Answer::Unknown { why: why.to_owned() }
}

/// Whether every object member of `value` is declared where `sub` speaks of it: under `properties`, by a pattern of
/// `patternProperties`, or by an `additionalProperties` that is a schema. A nested place about whose members the schema
/// says nothing declares all of them; the root declares only what it lists. A value equal to one that `enum` or `const`
/// lists there is declared whole.
pub fn declared_by(sub: &Operand, value: &Value) -> bool {
    sub.declares(value)
}
