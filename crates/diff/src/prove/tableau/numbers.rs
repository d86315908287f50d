//! Numbers: a range, multiples, and what is excluded.

use std::cmp::Ordering;

use serde_json::Value;

use super::choices::State;
use super::{Outcome, Solver};
use crate::prove::ir::Kind;
use crate::prove::number::{EXACT, Num, aligned, decimal, doubles_beside, gcd, is_dyadic, whole};

/// Numbers of a range up to which each is tried.
const FEW: i128 = 64;

/// What is demanded of a number.
#[derive(Default)]
struct Range {
    /// The bound, and whether it is excluded.
    low: Option<(Num, bool)>,
    high: Option<(Num, bool)>,
    multiple: Vec<Num>,
    not_multiple: Vec<Num>,
}

impl Range {
    fn of(state: &State) -> Self {
        let mut range = Self::default();
        for fact in &state.facts {
            match (&fact.node.kind, fact.holds) {
                (Kind::Least { bound, exclusive }, true) => range.above(*bound, *exclusive),
                (Kind::Least { bound, exclusive }, false) => range.below(*bound, !*exclusive),
                (Kind::Most { bound, exclusive }, true) => range.below(*bound, *exclusive),
                (Kind::Most { bound, exclusive }, false) => range.above(*bound, !*exclusive),
                (Kind::MultipleOf(factor), true) => range.multiple.push(Num::of(factor)),
                (Kind::MultipleOf(factor), false) => range.not_multiple.push(Num::of(factor)),
                _ => {}
            }
        }
        range
    }

    fn above(&mut self, bound: Num, exclusive: bool) {
        let tighter = self.low.is_none_or(|(low, open)| match bound.compare(low) {
            Ordering::Greater => true,
            Ordering::Equal => exclusive && !open,
            Ordering::Less => false,
        });
        if tighter {
            self.low = Some((bound, exclusive));
        }
    }

    fn below(&mut self, bound: Num, exclusive: bool) {
        let tighter = self.high.is_none_or(|(high, open)| match bound.compare(high) {
            Ordering::Less => true,
            Ordering::Equal => exclusive && !open,
            Ordering::Greater => false,
        });
        if tighter {
            self.high = Some((bound, exclusive));
        }
    }

    /// Whether no number is in it; `None` where one is for validators that read numbers as doubles.
    fn is_empty(&self) -> Option<bool> {
        let (Some((low, low_open)), Some((high, high_open))) = (self.low, self.high) else {
            return Some(false);
        };
        match low.compare(high) {
            Ordering::Greater => (low_open || high_open || low.as_f64() != high.as_f64()).then_some(true),
            Ordering::Equal => Some(low_open || high_open),
            Ordering::Less => Some(false),
        }
    }
}

/// The step between the whole numbers that are multiples of `factor`.
fn whole_step(factor: Num) -> Option<i128> {
    let (digits, places) = decimal(factor)?;
    Some((digits / gcd(digits, 10i128.checked_pow(places)?)).abs()).filter(|step| *step > 0)
}

impl Solver<'_> {
    /// Whole numbers.
    pub(super) fn wholes(&mut self, state: &State) -> Outcome {
        let range = Range::of(state);
        match range.is_empty() {
            Some(true) => return Outcome::None,
            Some(false) => {}
            None => return Outcome::Open(range.high.and_then(|(bound, _)| bound.value())),
        }
        let low = range.low.map(|(bound, open)| match bound {
            Num::Whole(n) => n.checked_add(i128::from(open)),
            bound => bound.ceil(),
        });
        let high = range.high.map(|(bound, open)| match bound {
            Num::Whole(n) => n.checked_sub(i128::from(open)),
            bound => bound.floor(),
        });
        // Bounds beyond 128 bits do not narrow anything here.
        let (low, high) = (low.flatten(), high.flatten());
        let mut step = 1i128;
        for factor in &range.multiple {
            let Some(own) = whole_step(*factor) else { continue };
            let Some(common) = (step / gcd(step, own)).checked_mul(own) else { continue };
            step = common;
        }
        let excluded: Vec<i128> = range.not_multiple.iter().filter_map(|f| whole_step(*f)).collect();
        if excluded.iter().any(|other| step % other == 0) {
            return Outcome::None; // every multiple of the one is one of the other
        }
        let first = low.map(|low| low.div_euclid(step) + i128::from(low.rem_euclid(step) != 0));
        let last = high.map(|high| high.div_euclid(step));
        if let (Some(first), Some(last)) = (first, last) {
            if first > last {
                let exact = |n: Option<i128>| n.is_none_or(|n| n.abs() < EXACT as i128);
                return match step == 1 || exact(low) && exact(high) {
                    true => Outcome::None,
                    // A number that is read as its neighbour may be a multiple.
                    false => Outcome::Open(low.and_then(whole)),
                };
            }
            if last - first <= FEW {
                let all: Option<Vec<Value>> =
                    (first..=last).map(|k| k.checked_mul(step).and_then(whole)).collect();
                if let Some(all) = all {
                    return self.finite(state, all.iter());
                }
            }
        }
        let start = first.or(last).unwrap_or(0);
        let direction = if first.is_some() || last.is_none() { 1 } else { -1 };
        let near = (0..40).map(|i| start + direction * i);
        let ends = last.into_iter().flat_map(|last| (0..20).map(move |i| last - i));
        // Beside and far beyond a large bound, where every validator sees the difference.
        let far = [first.and_then(|f| f.checked_mul(4)), last.and_then(|l| l.checked_mul(4))];
        let middle = first.zip(last).and_then(|(first, last)| first.checked_add(last)).map(|sum| sum / 2);
        let beside = low.into_iter().chain(high).flat_map(doubles_beside).map(|n| n.div_euclid(step));
        let zero = [0, 1, -1, 7].into_iter().chain(far.into_iter().flatten()).chain(middle).chain(beside);
        let values = zero
            .filter(|k| first.is_none_or(|f| *k >= f) && last.is_none_or(|l| *k <= l))
            .chain(near)
            .chain(ends)
            .filter_map(|k| k.checked_mul(step).and_then(whole));
        self.candidates(state, values)
    }

    /// Numbers that are not whole.
    pub(super) fn fractions(&mut self, state: &State) -> Outcome {
        let range = Range::of(state);
        if range.is_empty() != Some(false) || range.multiple.iter().any(|factor| factor.is_whole()) {
            return Outcome::None;
        }
        if let (Some((low, _)), Some((high, _))) = (range.low, range.high)
            && low.compare(high) == Ordering::Equal
        {
            return match low.value().filter(|_| !low.is_whole()) {
                Some(value) => self.finite(state, [value].iter()),
                None => Outcome::None,
            };
        }
        // Of 0.3 and 0.1 that holds for decimals only: 0.3 is left to be found, and to be disputed.
        let divides = |a: Num, b: Num| {
            aligned(a, b)
                .is_some_and(|(x, y)| y != 0 && x % y == 0 && (is_dyadic(a) && is_dyadic(b) || x == y))
        };
        if range.multiple.iter().any(|a| range.not_multiple.iter().any(|b| divides(*a, *b))) {
            return Outcome::None;
        }
        let (low, high) = match (range.low, range.high) {
            (Some((low, _)), Some((high, _))) => (low.as_f64(), high.as_f64()),
            (Some((low, _)), None) => (low.as_f64(), low.as_f64() + 2.0),
            (None, Some((high, _))) => (high.as_f64() - 2.0, high.as_f64()),
            (None, None) => (-1.0, 2.0),
        };
        let mut values: Vec<f64> = Vec::new();
        for factor in &range.multiple {
            let factor = factor.as_f64();
            values.extend((0..20).map(|i| ((low / factor).ceil() + f64::from(i)) * factor));
        }
        let width = high - low;
        values.extend([
            low,
            high,
            low + width / 2.0,
            low + width / 4.0,
            low + width / 3.0,
            low + width * 0.9,
        ]);
        values.extend([low.floor() + 0.5, low.floor() + 1.5, high.floor() - 0.5, 0.5, 0.1, low + 1e-3]);
        let values: Vec<Value> = values
            .into_iter()
            .filter(|v| v.is_finite())
            .flat_map(|v| [(v * 1e3).round() / 1e3, v]) // few decimals first: validators agree on those
            .filter(|v| v.fract() != 0.0)
            .filter_map(|v| Num::of_float(v).value())
            .collect();
        self.candidates(state, values.into_iter())
    }
}
