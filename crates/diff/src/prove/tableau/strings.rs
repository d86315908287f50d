//! Strings: a range of lengths, patterns, and what is excluded.

use std::rc::Rc;

use serde_json::Value;

use super::choices::State;
use super::{Outcome, Solver};
use crate::generate::format_examples;
use crate::prove::ir::Kind;
use crate::prove::language::{Found, Pattern};

/// Strings that are tried for one goal.
const WANT: usize = 6;
/// Longest string that is made.
const LONGEST: u64 = 5_000;

impl Solver<'_> {
    pub(super) fn strings(&mut self, state: &State) -> Outcome {
        let (mut min, mut max) = (0u64, None::<u64>);
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        let mut excluded: Vec<&str> = Vec::new();
        let mut opaque = false;
        for fact in &state.facts {
            match (&fact.node.kind, fact.holds) {
                (Kind::MinLength(n), true) => min = min.max(*n),
                (Kind::MaxLength(n), false) => min = min.max(n.saturating_add(1)),
                (Kind::MaxLength(n), true) => max = Some(max.map_or(*n, |max| max.min(*n))),
                (Kind::MinLength(n), false) => {
                    let below = n.saturating_sub(1);
                    max = Some(max.map_or(below, |max| max.min(below)));
                }
                (Kind::Pattern(text, _), holds) => match self.pattern(text) {
                    Some(pattern) if holds => yes.push(pattern),
                    Some(pattern) => no.push(pattern),
                    None => {}
                },
                (Kind::Enum(values), false) => excluded.extend(values.iter().filter_map(Value::as_str)),
                (Kind::Opaque(_), _) => opaque = true,
                _ => {}
            }
        }
        if max.is_some_and(|max| min > max) {
            return Outcome::None;
        }
        if max == Some(0) {
            return self.finite(state, [Value::from("")].iter());
        }
        let mut outcome = Outcome::Open(None);
        if opaque {
            // A format, perhaps: strings of every format.
            outcome = self.candidates(state, format_examples().map(Value::from));
            if matches!(outcome, Outcome::Model(_)) {
                return outcome;
            }
        }
        excluded.retain(|text| text.len() < 200);
        if excluded.len() <= 60
            && !excluded.is_empty()
            && let Some(pattern) = Pattern::exactly(excluded.iter().copied())
        {
            no.push(Rc::new(pattern));
        }
        if yes.is_empty() && no.is_empty() {
            if min > LONGEST {
                return outcome;
            }
            let length = usize::try_from(min).unwrap_or(0);
            let longer = usize::try_from(max.unwrap_or(min + 3).min(min + 3)).unwrap_or(0);
            let texts = ["a", "0", "é", "A-", " "]
                .into_iter()
                .flat_map(|unit| [length, longer].map(|n| unit.chars().cycle().take(n).collect::<String>()));
            return outcome.or(self.candidates(state, texts.map(Value::from)));
        }
        let yes: Vec<&Pattern> = yes.iter().map(Rc::as_ref).collect();
        let no: Vec<&Pattern> = no.iter().map(Rc::as_ref).collect();
        match self.find(&yes, &no, min, max, WANT) {
            Found::Nothing => Outcome::None,
            Found::Unknown => outcome,
            Found::Strings(texts) => outcome.or(self.candidates(state, texts.into_iter().map(Value::from))),
        }
    }
}
