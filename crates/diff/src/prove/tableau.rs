//! Is there a value of which all of these literals hold? Goals are taken apart until one type and no choice is left; what
//! remains is decided per type. "None" is a proof. Everything that is not modelled only ever weakens a goal, so a proof
//! stands; a value that is found is checked against the goal itself.
//!
//! A goal about a part of a value that equals a goal about the whole has no smallest value, so no value at all: that is
//! how recursion ends.

mod arrays;
mod choices;
mod numbers;
mod objects;
mod strings;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use super::eval::all_hold;
use super::ir::{Literal, Types};
use super::language::{Found, Pattern, find};
use choices::State;

/// Goals within goals.
const MAX_DEPTH: usize = 60;
/// Branches within branches, over all goals: what bounds the stack.
const MAX_FRAMES: usize = 260;
/// Work that one search for strings may do, in comparisons.
const WORK: usize = 200_000;
/// Values of a finite goal that are tried.
const MAX_VALUES: usize = 4_000;

/// What is known of a goal.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// No value satisfies it.
    None,
    /// Not known; perhaps this value.
    Open(Option<Value>),
    /// This value satisfies it.
    Model(Value),
}

impl Outcome {
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    pub fn value(self) -> Option<Value> {
        match self {
            Self::None => None,
            Self::Open(value) => value,
            Self::Model(value) => Some(value),
        }
    }

    /// The outcome of either of two ways to satisfy a goal.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (model @ Self::Model(_), _) | (_, model @ Self::Model(_)) => model,
            (Self::None, other) | (other, Self::None) => other,
            (open @ Self::Open(Some(_)), _) | (_, open) => open,
        }
    }
}

type Goal = Vec<(u128, bool)>;

/// Decides goals within a budget.
pub(super) struct Solver<'c> {
    /// Steps that are left.
    steps: u32,
    /// Whether a value satisfies the outermost goal in truth, and what asking costs.
    confirm: &'c mut dyn FnMut(&Value) -> bool,
    confirm_cost: usize,
    /// Goals being decided, by the order in which they were begun.
    begun: HashMap<Goal, usize>,
    known: HashMap<Goal, Outcome>,
    /// Goals without a value as long as the goal that was begun at this depth has none: kept while that one is being
    /// decided, so that schemas that refer to each other are not gone through path by path.
    resting: HashMap<Goal, usize>,
    /// The keys of `resting`, in the order in which they came.
    rested: Vec<Goal>,
    patterns: HashMap<Arc<str>, Option<Rc<Pattern>>>,
    /// The outermost goal whose failure was assumed.
    assumed: usize,
    frames: usize,
}

impl<'c> Solver<'c> {
    pub fn new(steps: u32, confirm: &'c mut dyn FnMut(&Value) -> bool, confirm_cost: usize) -> Self {
        Self {
            steps,
            confirm,
            confirm_cost,
            begun: HashMap::new(),
            known: HashMap::new(),
            resting: HashMap::new(),
            rested: Vec::new(),
            patterns: HashMap::new(),
            assumed: usize::MAX,
            frames: 0,
        }
    }

    /// Whether the budget was used up.
    pub fn exhausted(&self) -> bool {
        self.steps == 0
    }

    fn step(&mut self, cost: usize) -> bool {
        let cost = u32::try_from(cost).unwrap_or(u32::MAX);
        self.steps = self.steps.saturating_sub(cost);
        self.steps > 0
    }

    /// Decides a goal.
    pub fn decide(&mut self, literals: &[Literal]) -> Outcome {
        let mut goal: Goal = literals.iter().map(Literal::key).collect();
        goal.sort_unstable();
        goal.dedup();
        if let Some(known) = self.known.get(&goal) {
            return known.clone();
        }
        if let Some(begun) = self.begun.get(&goal) {
            self.assumed = self.assumed.min(*begun);
            return Outcome::None;
        }
        if let Some(on) = self.resting.get(&goal) {
            self.assumed = self.assumed.min(*on);
            return Outcome::None;
        }
        let own = self.begun.len();
        if !self.step(1) || own >= MAX_DEPTH {
            return Outcome::Open(None);
        }
        self.begun.insert(goal.clone(), own);
        let rested = self.rested.len();
        let before = std::mem::replace(&mut self.assumed, usize::MAX);
        let mut state = State::new(literals, own == 0);
        let outcome = match state.add_all(literals.iter().cloned()) {
            true => self.by_type(state),
            false => Outcome::None,
        };
        self.begun.remove(&goal);
        let assumed = std::mem::replace(&mut self.assumed, before);
        if outcome.is_none() && assumed < own {
            // It rests on a goal that is still being decided, and so does what rested on it.
            self.assumed = self.assumed.min(assumed);
            for later in self.rested.iter().skip(rested) {
                if let Some(on) = self.resting.get_mut(later).filter(|on| **on >= own) {
                    *on = assumed;
                }
            }
            self.resting.insert(goal.clone(), assumed);
            self.rested.push(goal);
        } else {
            // Proven, so what rested on it is proven too; or not, so nothing may rest on it.
            for later in self.rested.split_off(rested) {
                self.resting.remove(&later);
                if outcome.is_none() {
                    self.known.insert(later, Outcome::None);
                }
            }
            self.known.insert(goal, outcome.clone());
        }
        outcome
    }

    /// Splits by type.
    fn by_type(&mut self, state: State) -> Outcome {
        if let Some(values) = state.values.clone() {
            return self.finite(&state, values.iter());
        }
        let mut outcome = Outcome::None;
        for one in Types::EACH {
            if state.types.meets(one) {
                let mut state = state.clone();
                state.types = one;
                outcome = outcome.or(self.branch(state));
                if matches!(outcome, Outcome::Model(_)) {
                    break;
                }
            }
        }
        outcome
    }

    /// One type; takes choices until none is left.
    fn branch(&mut self, mut state: State) -> Outcome {
        if !self.step(1 + state.size() / 16) || self.frames >= MAX_FRAMES {
            return Outcome::Open(None);
        }
        if !state.propagate() {
            return Outcome::None;
        }
        if let Some(values) = state.values.clone() {
            return self.finite(&state, values.iter());
        }
        let Some(choice) = state.take_choice() else {
            return self.settled(&state);
        };
        self.frames += 1;
        let mut outcome = Outcome::None;
        for way in choice {
            if !self.step(state.size() / 32) {
                outcome = outcome.or(Outcome::Open(None));
                break;
            }
            let mut state = state.clone();
            if state.add_all(way.into_iter()) {
                outcome = outcome.or(self.branch(state));
            }
            if matches!(outcome, Outcome::Model(_)) || self.exhausted() && !outcome.is_none() {
                break;
            }
        }
        self.frames -= 1;
        outcome
    }

    /// Strings of a language, see [`find`].
    fn find(&mut self, yes: &[&Pattern], no: &[&Pattern], min: u64, max: Option<u64>, want: usize) -> Found {
        let mut work = WORK.min(self.steps as usize * 32);
        let all = work;
        let found = find(yes, no, (min, max), want, &mut work);
        if self.step((all - work) / 32) { found } else { Found::Unknown }
    }

    /// One type and no choice.
    fn settled(&mut self, state: &State) -> Outcome {
        match state.types {
            Types::NULL => self.finite(state, [Value::Null].iter()),
            Types::BOOLEAN => self.finite(state, [Value::Bool(true), Value::Bool(false)].iter()),
            Types::WHOLE => self.wholes(state),
            Types::FRACTION => self.fractions(state),
            Types::STRING => self.strings(state),
            Types::ARRAY => self.arrays(state),
            _ => self.objects(state),
        }
    }

    /// Only these values can satisfy the goal.
    fn finite<'v>(&mut self, state: &State, values: impl Iterator<Item = &'v Value>) -> Outcome {
        let mut outcome = Outcome::None;
        for (i, value) in values.enumerate() {
            if i >= MAX_VALUES || !self.step(1) {
                return outcome.or(Outcome::Open(None));
            }
            if state.types.meets(Types::of(value)) {
                outcome = outcome.or(self.judge(state, value));
                if matches!(outcome, Outcome::Model(_)) {
                    break;
                }
            }
        }
        outcome
    }

    /// Whether this value satisfies the goal.
    fn judge(&mut self, state: &State, value: &Value) -> Outcome {
        let judged = all_hold(&state.goal, value);
        let held = judged.answer;
        let asked = if state.outermost && held != Some(false) { self.confirm_cost } else { 0 };
        if !self.step(judged.visited / 32 + asked) {
            return Outcome::Open(None);
        }
        match held {
            Some(false) => Outcome::None,
            Some(true) if !state.outermost => Outcome::Model(value.clone()),
            None if !state.outermost => Outcome::Open(Some(value.clone())),
            _ if (self.confirm)(value) => Outcome::Model(value.clone()),
            _ => Outcome::Open(Some(value.clone())),
        }
    }

    /// Some values that may satisfy the goal, among others.
    fn candidates(&mut self, state: &State, values: impl Iterator<Item = Value>) -> Outcome {
        let mut outcome = Outcome::Open(None);
        for value in values {
            if !self.step(1) {
                break;
            }
            match self.judge(state, &value) {
                model @ Outcome::Model(_) => return model,
                open @ Outcome::Open(_) => outcome = outcome.or(open),
                Outcome::None => {}
            }
        }
        outcome
    }

    /// A pattern, parsed once; `None` where it is not modelled.
    fn pattern(&mut self, text: &Arc<str>) -> Option<Rc<Pattern>> {
        if let Some(known) = self.patterns.get(text) {
            return known.clone();
        }
        let parsed = Pattern::parse(text).map(Rc::new);
        self.patterns.insert(text.clone(), parsed.clone());
        parsed
    }
}
