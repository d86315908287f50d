//! Lists: what every item must satisfy by its position, and items that have to be there.
//!
//! A goal names items that some list must have: the first `minItems`, one that breaks an `items`, several that satisfy a
//! `contains`. Each is put at a position that exists already or at a new one; where no way of placing them works, there
//! is no list.

use serde_json::Value;

use super::choices::State;
use super::{Outcome, Solver};
use crate::prove::ir::{self, Kind, Literal, N, Types};

/// Positions that are told apart.
const MAX_POSITIONS: usize = 40;
/// Items that are named for one goal.
const MAX_SLOTS: usize = 48;
/// Ways of placing that are tried for one goal.
const MAX_WAYS: u32 = 400;

/// What is demanded of a list.
struct List<'s> {
    min: u64,
    max: u64,
    unique: bool,
    repeated: bool,
    every: Vec<(&'s [N], &'s N)>,
    broken: Vec<(&'s [N], &'s N)>,
    counts: Vec<(&'s N, u64, Option<u64>)>,
    /// Positions below this one are told apart.
    positions: usize,
}

/// An item that is there.
#[derive(Clone)]
struct Slot {
    position: usize,
    literals: Vec<Literal>,
    /// Contained on demand: by the number of the count.
    counted: Vec<usize>,
}

/// Something that one item has to do.
#[derive(Clone, Copy)]
enum Demand {
    Breaks(usize),
    Counts(usize),
}

impl<'s> List<'s> {
    fn of(state: &'s State) -> Self {
        let mut list = Self {
            min: 0,
            max: u64::MAX,
            unique: false,
            repeated: false,
            every: Vec::new(),
            broken: Vec::new(),
            counts: Vec::new(),
            positions: 0,
        };
        for fact in &state.facts {
            match (&fact.node.kind, fact.holds) {
                (Kind::MinItems(n), true) => list.min = list.min.max(*n),
                (Kind::MinItems(n), false) => list.max = list.max.min(n.saturating_sub(1)),
                (Kind::MaxItems(n), true) => list.max = list.max.min(*n),
                (Kind::MaxItems(n), false) => list.min = list.min.max(n.saturating_add(1)),
                (Kind::Unique, true) => list.unique = true,
                (Kind::Unique, false) => list.repeated = true,
                (Kind::Items { prefix, rest }, true) => list.every.push((prefix, rest)),
                (Kind::Items { prefix, rest }, false) => list.broken.push((prefix, rest)),
                (Kind::Contains { item, min, max }, true) => list.counts.push((item, *min, *max)),
                _ => {}
            }
        }
        if list.repeated {
            list.min = list.min.max(2);
        }
        for (_, min, _) in &list.counts {
            list.min = list.min.max(*min);
        }
        if !list.broken.is_empty() {
            list.min = list.min.max(1);
        }
        list.positions =
            list.every.iter().chain(&list.broken).map(|(prefix, _)| prefix.len()).max().unwrap_or(0);
        list
    }

    /// What every item at a position must satisfy.
    fn base(&self, position: usize) -> Vec<Literal> {
        self.every.iter().map(|(prefix, rest)| Literal::yes(prefix.get(position).unwrap_or(rest))).collect()
    }
}

impl Solver<'_> {
    pub(super) fn arrays(&mut self, state: &State) -> Outcome {
        let mut list = List::of(state);
        if list.min > list.max {
            return Outcome::None;
        }
        if list.positions > MAX_POSITIONS {
            return Outcome::Open(None);
        }
        // Where nothing can stand, the list ends.
        for position in 0..=list.positions {
            if position as u64 >= list.max {
                break;
            }
            if self.decide(&list.base(position)).is_none() {
                list.max = list.max.min(position as u64);
                break;
            }
        }
        if list.min > list.max || list.unique && self.too_few_values(&list) {
            return Outcome::None;
        }
        if list.max == 0 {
            return self.finite(state, [Value::Array(Vec::new())].iter());
        }
        let named = usize::try_from(list.min).unwrap_or(usize::MAX).min(list.positions + 8);
        let slots: Vec<Slot> = (0..named)
            .map(|position| Slot { position, literals: list.base(position), counted: Vec::new() })
            .collect();
        let mut demands: Vec<Demand> = (0..list.broken.len()).map(Demand::Breaks).collect();
        for (i, (_, min, _)) in list.counts.iter().enumerate() {
            if *min > 8 {
                return Outcome::Open(None);
            }
            demands.extend((0..*min).map(|_| Demand::Counts(i)));
        }
        let mut ways = MAX_WAYS;
        self.place(state, &list, slots, &demands, &mut ways)
    }

    /// Unique items of which there are fewer values than items.
    fn too_few_values(&self, list: &List<'_>) -> bool {
        let mut all: Vec<Value> = Vec::new();
        let last = list.positions.min(usize::try_from(list.min).unwrap_or(usize::MAX));
        for position in 0..=last {
            if position as u64 >= list.min {
                break;
            }
            let Some(values) = few_values(&list.base(position)) else { return false };
            all.extend(values);
        }
        all.sort_by_cached_key(Value::to_string);
        all.dedup();
        list.min > 0 && (all.len() as u64) < list.min
    }

    /// Meets the demands one after the other.
    fn place(
        &mut self,
        state: &State,
        list: &List<'_>,
        slots: Vec<Slot>,
        demands: &[Demand],
        ways: &mut u32,
    ) -> Outcome {
        if *ways == 0 || slots.len() > MAX_SLOTS || !self.step(1) {
            return Outcome::Open(None);
        }
        *ways -= 1;
        let Some((demand, later)) = demands.split_first() else {
            return self.filled(state, list, slots, ways);
        };
        let mut outcome = Outcome::None;
        let next = slots.len();
        // At a position that is there; at each new one that is told apart; at one beyond.
        let ends = (next..=list.positions.max(next)).collect::<Vec<_>>();
        for at in (0..next).chain(ends) {
            if at as u64 >= list.max {
                continue;
            }
            let mut slots = slots.clone();
            for position in next..=at {
                slots.push(Slot { position, literals: list.base(position), counted: Vec::new() });
            }
            let Some(slot) = slots.get_mut(at) else { continue };
            match demand {
                Demand::Breaks(i) => {
                    let Some((prefix, rest)) = list.broken.get(*i) else { continue };
                    slot.literals.push(Literal::no(prefix.get(slot.position).unwrap_or(rest)));
                }
                Demand::Counts(i) => {
                    if slot.counted.contains(i) {
                        continue;
                    }
                    let Some((item, ..)) = list.counts.get(*i) else { continue };
                    // The items of one count are interchangeable: take them from left to right.
                    slot.counted.push(*i);
                    slot.literals.push(Literal::yes(item));
                    if slots.iter().skip(at + 1).any(|s| s.counted.contains(i)) {
                        continue;
                    }
                }
            }
            let possible = slots.get(at).is_some_and(|s| !self.decide(&s.literals).is_none());
            if possible {
                outcome = outcome.or(self.place(state, list, slots, later, ways));
                if matches!(outcome, Outcome::Model(_)) {
                    break;
                }
            }
        }
        outcome
    }

    /// Every demand is met: counts from above, repeated items, and a list to show for it.
    fn filled(&mut self, state: &State, list: &List<'_>, slots: Vec<Slot>, ways: &mut u32) -> Outcome {
        // What could be chosen of each item so that counts stay low: only for the list that is shown.
        let mut chosen = slots.clone();
        for (item, _, max) in &list.counts {
            let Some(max) = max else { continue };
            let no = Literal::no(item);
            let without =
                |literals: &[Literal]| literals.iter().cloned().chain([no.clone()]).collect::<Vec<_>>();
            let mut forced = 0;
            for (slot, chosen) in slots.iter().zip(&mut chosen) {
                if self.decide(&without(&slot.literals)).is_none() {
                    forced += 1;
                } else if !slot.literals.iter().any(|l| l.holds && l.node.id == item.id) {
                    chosen.literals.push(no.clone());
                }
            }
            if forced > *max {
                return Outcome::None;
            }
            // Items beyond the named ones, where all of them satisfy the count.
            let more = list.min.saturating_sub(slots.len() as u64);
            if more > 0
                && slots.len() >= list.positions
                && forced.saturating_add(more) > *max
                && self.decide(&without(&list.base(slots.len()))).is_none()
            {
                return Outcome::None;
            }
        }
        if list.repeated {
            return self.repeated(state, list, &slots, ways);
        }
        self.built(state, list, &chosen, None)
    }

    /// Two items are equal.
    fn repeated(&mut self, state: &State, list: &List<'_>, slots: &[Slot], ways: &mut u32) -> Outcome {
        let mut outcome = Outcome::None;
        let last =
            (list.positions + 2).max(slots.len() + 2).min(usize::try_from(list.max).unwrap_or(usize::MAX));
        for second in 1..last {
            for first in 0..second {
                if *ways == 0 || !self.step(1) {
                    return outcome.or(Outcome::Open(None));
                }
                *ways -= 1;
                let mut slots = slots.to_vec();
                for position in slots.len()..=second {
                    slots.push(Slot { position, literals: list.base(position), counted: Vec::new() });
                }
                let mut both: Vec<Literal> = Vec::new();
                for at in [first, second] {
                    both.extend(slots.get(at).into_iter().flat_map(|s| s.literals.iter().cloned()));
                }
                if self.decide(&both).is_none() {
                    continue;
                }
                for at in [first, second] {
                    if let Some(slot) = slots.get_mut(at) {
                        slot.literals = both.clone();
                    }
                }
                outcome = outcome.or(self.built(state, list, &slots, Some((first, second))));
                if matches!(outcome, Outcome::Model(_)) {
                    return outcome;
                }
            }
        }
        outcome
    }

    /// A list with these items, to be checked.
    fn built(
        &mut self,
        state: &State,
        list: &List<'_>,
        slots: &[Slot],
        equal: Option<(usize, usize)>,
    ) -> Outcome {
        let mut items: Vec<Value> = Vec::new();
        let wanted = usize::try_from(list.min).unwrap_or(usize::MAX).max(slots.len());
        if wanted > 1_000 {
            return Outcome::Open(None);
        }
        for at in 0..wanted {
            let mut literals = slots.get(at).map_or_else(|| list.base(at), |slot| slot.literals.clone());
            if list.unique && !items.is_empty() {
                literals.push(Literal::no(&ir::of_values(&items)));
            }
            let item = match equal {
                Some((first, second)) if at == second => items.get(first).cloned(),
                _ => self.decide(&literals).value(),
            };
            // Nothing here is not "no list": another choice might do.
            let Some(item) = item else { return Outcome::Open(None) };
            items.push(item);
        }
        self.candidates(state, [Value::Array(items)].into_iter())
    }
}

/// The values that can satisfy these literals, where a literal alone says that they are few.
fn few_values(literals: &[Literal]) -> Option<Vec<Value>> {
    let mut todo: Vec<&Literal> = literals.iter().collect();
    let mut flat = Vec::new();
    let mut budget = 200;
    while let Some(literal) = todo.pop() {
        budget -= 1;
        if budget == 0 {
            return None;
        }
        match (&literal.node.kind, literal.holds) {
            (Kind::Enum(values), true) => return Some(values.to_vec()),
            (Kind::Types(types), true) if types.and(Types::NULL.or(Types::BOOLEAN)) == *types => {
                let mut values = Vec::new();
                if types.meets(Types::NULL) {
                    values.push(Value::Null);
                }
                if types.meets(Types::BOOLEAN) {
                    values.extend([Value::Bool(false), Value::Bool(true)]);
                }
                return Some(values);
            }
            (Kind::And(parts), true) => flat.extend(parts.iter().map(Literal::yes)),
            _ => {}
        }
        if todo.is_empty() && !flat.is_empty() {
            return few_values(&flat);
        }
    }
    None
}
