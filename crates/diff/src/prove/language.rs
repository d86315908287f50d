//! Sets of strings: whether some string matches these patterns and none of those, within bounds of length.
//!
//! Patterns are read as the validation library reads them. The search runs all of them side by side, one character class
//! at a time; characters that no pattern tells apart are tried once.

use std::collections::{BTreeMap, HashSet};

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// States of one pattern.
const MAX_STATES: usize = 800;
/// Ranges of characters of one pattern.
const MAX_RANGES: usize = 6_000;
/// Character classes that are tried from one combined state.
const MAX_CLASSES: usize = 400;
/// Length up to which a search goes step by step.
const MAX_LEVEL: u64 = 600;

type Ranges = Vec<(char, char)>;

enum State {
    Char(Ranges, u32),
    Split(Vec<u32>),
    Start(u32),
    End(u32),
    Match,
}

/// A pattern that is searched for anywhere in a string.
pub(super) struct Pattern {
    states: Vec<State>,
    start: u32,
    ranges: usize,
}

impl Pattern {
    /// `None`: look-around, back references and other things that this does not model.
    pub fn parse(pattern: &str) -> Option<Self> {
        if pattern.len() > 2_000 {
            return None;
        }
        let translated = jsonschema_regex::to_rust_regex(pattern).ok()?;
        let hir = regex_syntax::ParserBuilder::new().nest_limit(60).build().parse(&translated).ok()?;
        let mut made = Self { states: vec![State::Match], start: 0, ranges: 0 };
        made.start = made.add(&hir, 0)?;
        Some(made)
    }

    /// Exactly these strings.
    pub fn exactly<'s>(texts: impl Iterator<Item = &'s str>) -> Option<Self> {
        let mut made = Self { states: vec![State::Match], start: 0, ranges: 0 };
        let mut starts = Vec::new();
        for text in texts {
            let mut next = made.push(State::End(0))?;
            for c in text.chars().rev() {
                next = made.push(State::Char(vec![(c, c)], next))?;
            }
            starts.push(made.push(State::Start(next))?);
        }
        made.start = made.push(State::Split(starts))?;
        Some(made)
    }

    fn push(&mut self, state: State) -> Option<u32> {
        if let State::Char(ranges, _) = &state {
            self.ranges += ranges.len();
        }
        if self.states.len() >= MAX_STATES || self.ranges > MAX_RANGES {
            return None;
        }
        self.states.push(state);
        u32::try_from(self.states.len() - 1).ok()
    }

    /// States that read `hir` and go on at `next`; built from the end.
    fn add(&mut self, hir: &Hir, next: u32) -> Option<u32> {
        match hir.kind() {
            HirKind::Empty => Some(next),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                text.chars().rev().try_fold(next, |next, c| self.push(State::Char(vec![(c, c)], next)))
            }
            HirKind::Class(Class::Unicode(class)) => {
                let ranges = class.ranges().iter().map(|r| (r.start(), r.end())).collect();
                self.push(State::Char(ranges, next))
            }
            HirKind::Class(Class::Bytes(class)) => {
                let ranges = class
                    .ranges()
                    .iter()
                    .map(|r| (r.end() < 128).then(|| (char::from(r.start()), char::from(r.end()))));
                let ranges = ranges.collect::<Option<_>>()?;
                self.push(State::Char(ranges, next))
            }
            HirKind::Look(Look::Start) => self.push(State::Start(next)),
            HirKind::Look(Look::End) => self.push(State::End(next)),
            HirKind::Look(_) => None,
            HirKind::Capture(capture) => self.add(&capture.sub, next),
            HirKind::Concat(parts) => parts.iter().rev().try_fold(next, |next, part| self.add(part, next)),
            HirKind::Alternation(parts) => {
                let starts = parts.iter().map(|part| self.add(part, next)).collect::<Option<Vec<_>>>()?;
                self.push(State::Split(starts))
            }
            HirKind::Repetition(repeat) => {
                let mut start = match repeat.max {
                    None => {
                        let again = self.push(State::Split(vec![next]))?;
                        let body = self.add(&repeat.sub, again)?;
                        if let Some(State::Split(ways)) = self.states.get_mut(again as usize) {
                            ways.push(body);
                        }
                        again
                    }
                    Some(max) => {
                        let mut at = next;
                        for _ in repeat.min..max {
                            let body = self.add(&repeat.sub, at)?;
                            at = self.push(State::Split(vec![body, next]))?;
                        }
                        at
                    }
                };
                for _ in 0..repeat.min {
                    start = self.add(&repeat.sub, start)?;
                }
                Some(start)
            }
        }
    }

    /// Adds a state and those that follow it without reading.
    fn close(&self, state: u32, first: bool, last: bool, run: &mut Run) {
        let mut stack = vec![state];
        while let Some(state) = stack.pop() {
            if run.states.contains(&state) {
                continue;
            }
            match self.states.get(state as usize) {
                Some(State::Match) => run.matched = true,
                Some(State::Split(ways)) => {
                    run.states.push(state);
                    stack.extend(ways);
                }
                Some(State::Start(next)) if first => stack.push(*next),
                Some(State::End(next)) => {
                    run.states.push(state);
                    if last {
                        stack.push(*next);
                    }
                }
                Some(State::Char(..)) => run.states.push(state),
                Some(State::Start(_)) | None => {}
            }
        }
    }

    fn begin(&self) -> Run {
        let mut run = Run::default();
        self.close(self.start, true, false, &mut run);
        run.settle()
    }

    fn step(&self, run: &Run, c: char) -> Run {
        if run.matched {
            return run.clone();
        }
        let mut after = Run::default();
        for state in &run.states {
            if let Some(State::Char(ranges, next)) = self.states.get(*state as usize)
                && within(ranges, c)
            {
                self.close(*next, false, false, &mut after);
            }
        }
        self.close(self.start, false, false, &mut after);
        after.settle()
    }

    /// Whether the pattern is found when the string ends here.
    fn accepts(&self, run: &Run, first: bool) -> bool {
        if run.matched {
            return true;
        }
        let mut end = Run::default();
        for state in &run.states {
            if matches!(self.states.get(*state as usize), Some(State::End(_))) {
                self.close(*state, first, true, &mut end);
            }
        }
        end.matched
    }
}

/// Where a pattern stands after some characters.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Run {
    states: Vec<u32>,
    /// Found already: what follows does not matter.
    matched: bool,
}

impl Run {
    fn settle(mut self) -> Self {
        if self.matched {
            self.states.clear();
        } else {
            self.states.sort_unstable();
        }
        self
    }
}

fn within(ranges: &Ranges, c: char) -> bool {
    ranges
        .binary_search_by(|(low, high)| {
            if *high < c {
                std::cmp::Ordering::Less
            } else if *low > c {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Equal
            }
        })
        .is_ok()
}

/// What a search found.
pub(super) enum Found {
    /// No string does.
    Nothing,
    /// These do; there may be others.
    Strings(Vec<String>),
    /// The search was too large.
    Unknown,
}

/// Up to `want` strings that every pattern of `yes` and none of `no` is found in, of a length within `bounds`, for at most
/// `work` comparisons, which are taken off.
pub(super) fn find(
    yes: &[&Pattern],
    no: &[&Pattern],
    bounds: (u64, Option<u64>),
    want: usize,
    work: &mut usize,
) -> Found {
    let (min, max) = bounds;
    let all: Vec<&Pattern> = yes.iter().chain(no).copied().collect();
    let mut level: Vec<(Vec<Run>, usize)> = vec![(all.iter().map(|p| p.begin()).collect(), 0)];
    // Every string that was reached: its last character and the string before it.
    let mut strings: Vec<Option<(char, usize)>> = vec![None];
    let mut seen: HashSet<Vec<Run>> = HashSet::new();
    let mut found = Vec::new();
    for length in 0u64.. {
        if level.is_empty() || max.is_some_and(|max| length > max) {
            return if found.is_empty() { Found::Nothing } else { Found::Strings(found) };
        }
        if length > MAX_LEVEL {
            break;
        }
        let mut next: Vec<(Vec<Run>, usize)> = Vec::new();
        let mut next_seen: HashSet<Vec<Run>> = HashSet::new();
        for (runs, string) in level {
            let states: usize = runs.iter().map(|run| 1 + run.states.len()).sum();
            *work = work.saturating_sub(states);
            if *work == 0 {
                return if found.is_empty() { Found::Unknown } else { Found::Strings(found) };
            }
            let accepted =
                |i: usize| all.get(i).zip(runs.get(i)).is_some_and(|(p, run)| p.accepts(run, length == 0));
            if length >= min && (0..all.len()).all(|i| accepted(i) == (i < yes.len())) {
                found.push(spell(&strings, string));
                if found.len() >= want {
                    return Found::Strings(found);
                }
            }
            // A pattern that must not be found and was: nothing that follows helps.
            if runs.iter().skip(yes.len()).any(|run| run.matched) {
                continue;
            }
            let Some(classes) = classes(&all, &runs, work) else { return Found::Unknown };
            // Following a state looks through those that are there already.
            *work = work.saturating_sub(classes.len() * states * (4 + states / 16));
            for c in classes {
                let after: Vec<Run> = all.iter().zip(&runs).map(|(p, run)| p.step(run, c)).collect();
                let fresh = if length + 1 >= min {
                    seen.insert(after.clone())
                } else {
                    next_seen.insert(after.clone())
                };
                if fresh {
                    strings.push(Some((c, string)));
                    next.push((after, strings.len() - 1));
                }
            }
        }
        level = next;
    }
    if found.is_empty() { Found::Unknown } else { Found::Strings(found) }
}

fn spell(strings: &[Option<(char, usize)>], mut at: usize) -> String {
    let mut text = Vec::new();
    while let Some(Some((c, before))) = strings.get(at) {
        text.push(*c);
        at = *before;
    }
    text.iter().rev().collect()
}

/// One character of each class that the patterns tell apart from where they stand.
fn classes(patterns: &[&Pattern], runs: &[Run], work: &mut usize) -> Option<Vec<char>> {
    let mut ranges: Vec<&Ranges> = Vec::new();
    for (pattern, run) in patterns.iter().zip(runs) {
        if run.matched {
            continue;
        }
        for state in &run.states {
            if let Some(State::Char(own, _)) = pattern.states.get(*state as usize)
                && !ranges.contains(&own)
            {
                ranges.push(own);
            }
        }
    }
    if ranges.len() > 128 {
        return None;
    }
    *work = work.saturating_sub(ranges.iter().map(|own| own.len() * 2).sum::<usize>() * ranges.len());
    let after = |c: char| match c {
        '\u{D7FF}' => Some('\u{E000}'),
        c => char::from_u32(u32::from(c) + 1),
    };
    let pretty = ['a', 'b', 'x', '0', '1', 'A', ' ', '-', '_', '.', 'é'];
    let edges = ranges.iter().flat_map(|own| own.iter()).flat_map(|(low, high)| [Some(*low), after(*high)]);
    let mut chosen: BTreeMap<u128, char> = BTreeMap::new();
    for c in pretty.into_iter().chain(edges.flatten()).chain(['\0']) {
        let signature =
            ranges.iter().enumerate().fold(0u128, |bits, (i, own)| bits | u128::from(within(own, c)) << i);
        chosen.entry(signature).or_insert(c);
        if chosen.len() > MAX_CLASSES {
            return None;
        }
    }
    Some(chosen.into_values().collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn search(yes: &[&str], no: &[&str], min: u64, max: Option<u64>) -> Found {
        let parse =
            |list: &[&str]| -> Vec<Pattern> { list.iter().map(|p| Pattern::parse(p).unwrap()).collect() };
        let (yes, no) = (parse(yes), parse(no));
        let (yes, no): (Vec<_>, Vec<_>) = (yes.iter().collect(), no.iter().collect());
        find(&yes, &no, (min, max), 3, &mut 200_000)
    }

    #[test]
    fn inclusion_of_patterns() {
        let empty = |yes: &[&str], no: &[&str]| matches!(search(yes, no, 0, None), Found::Nothing);
        assert!(empty(&["^[a-c]+$"], &["^[a-z]*$"]));
        assert!(!empty(&["^[a-z]*$"], &["^[a-c]+$"]));
        assert!(empty(&["^foo"], &["fo"]));
        assert!(empty(&["^a{3}$"], &["^a{2,4}$"]));
        assert!(!empty(&["^a{3}"], &["^a{2,4}$"]));
        assert!(empty(&["^$"], &[""]));
        assert!(empty(&["^a", "^b"], &[]));
        assert!(empty(&[r"^\d+$"], &["^[0-9]+$"]));
        assert!(empty(&[r"^\p{Lu}$"], &[r"^\p{L}$"]));
        assert!(matches!(search(&["^[a-z]{5,}$"], &[], 0, Some(4)), Found::Nothing));
        assert!(matches!(search(&["^.{0,3}$"], &[], 4, None), Found::Nothing));
        assert!(Pattern::parse("(?=a)b").is_none());
    }

    #[test]
    fn what_is_found_matches() {
        for (yes, no) in [("^x-[0-9]+$", "^x-0"), ("a|b$", "^a"), ("(ab)+", "abab"), (r"\s", r"^\s*$")] {
            let Found::Strings(strings) = search(&[yes], &[no], 3, Some(9)) else { panic!("{yes} {no}") };
            let is = |p: &str, s: &str| {
                jsonschema::is_valid(&serde_json::json!({"pattern": p}), &serde_json::Value::from(s))
            };
            for string in strings {
                assert!(is(yes, &string) && !is(no, &string) && (3..=9).contains(&string.chars().count()));
            }
        }
    }
}
