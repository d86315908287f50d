//! From single calls to few: a call for each goal, merged while the result stays valid and shows more.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cover::Tests;
use super::goals::{Map, Need, Step, of_objects};
use super::make::{Leaf, Make};
use super::{GoalKind, SynthCall, Synthesis, Unreached};
use crate::generate::Rng;
use crate::pointer::Pattern;

/// Attempts at the call of one goal.
const TRIES: usize = 24;
/// Attempts at merging, in all.
const MERGES: usize = 60_000;
/// Work at the calls of the goals, and as much again at merging them, in schema nodes and places looked at.
const WORK: u64 = 4_000_000;
/// Why a goal was not tried.
const TOO_LARGE: &str = "not tried: the schema is so large that the work allowed was used up before";

/// What the work needs.
pub(super) struct Merge<'a> {
    pub map: &'a Map,
    pub tests: &'a Tests,
    pub validator: &'a jsonschema::Validator,
    pub root: &'a Value,
    /// What numbers that no double holds were read as.
    pub rounded: &'a [f64],
    pub work: &'a Cell<u64>,
}

/// The call of one goal by itself, and what was put at its place.
struct Donor {
    call: Value,
    leaf: Leaf,
}

impl Merge<'_> {
    /// The calls for every goal.
    pub(super) fn run(&self, seed: u64) -> Synthesis {
        let mut rng = Rng::new(seed);
        let (mut donors, mut unreached) = (Vec::new(), Vec::new());
        let mut cut = self.map.cut;
        for goal in 0..self.map.goals.len() {
            if self.work.get() > WORK {
                cut = true;
                donors.push(None);
                unreached.push(Unreached { goal, reason: TOO_LARGE.to_owned() });
                continue;
            }
            let mut own = rng.fork(&format!("goal {goal}"));
            match self.donor(goal, &mut own) {
                Ok(donor) => donors.push(Some(donor)),
                Err(reason) => {
                    donors.push(None);
                    unreached.push(Unreached { goal, reason });
                }
            }
        }
        let mut open: BTreeSet<usize> =
            donors.iter().enumerate().filter(|(_, d)| d.is_some()).map(|(g, _)| g).collect();
        let mut calls: Vec<(Value, Vec<bool>)> = Vec::new();
        if self.map.goals.is_empty()
            && let Some(call) = self.plain(&mut rng)
        {
            calls.push((call, Vec::new()));
        }
        let mut budget = MERGES;
        self.work.set(0);
        while let Some(first) = open.first().copied() {
            if self.work.get() > WORK {
                cut = true;
                unreached
                    .extend(open.iter().map(|goal| Unreached { goal: *goal, reason: TOO_LARGE.to_owned() }));
                break;
            }
            let Some(Some(donor)) = donors.get(first) else { break };
            let mut call = donor.call.clone();
            let mut covered = self.covered(&call);
            // places that show one listed value: another one there would only take its turn
            let mut taken: BTreeSet<&str> = BTreeSet::new();
            taken.extend(self.listed(first));
            for goal in &open {
                let done = covered.get(*goal) == Some(&true);
                let listed = self.listed(*goal);
                let spent = budget == 0 || self.work.get() > WORK;
                if done || spent || listed.is_some_and(|p| taken.contains(p) && !p.contains('*')) {
                    continue;
                }
                budget -= 1;
                let Some(Some(donor)) = donors.get(*goal) else { continue };
                let Some(merged) = self.put(&call, *goal, donor) else { continue };
                if merged == call || !self.accepts(&merged) {
                    continue;
                }
                let now = self.covered(&merged);
                let has = |seen: &[bool], goal: &usize| seen.get(*goal) == Some(&true);
                let lost = open.iter().any(|g| has(&covered, g) && !has(&now, g));
                if !lost && open.iter().any(|g| has(&now, g) && !has(&covered, g)) {
                    (call, covered) = (merged, now);
                    taken.extend(listed);
                }
            }
            // a merge loses nothing, so the first goal is among them and this ends
            open.retain(|g| *g != first && covered.get(*g) != Some(&true));
            calls.push((call, covered));
        }
        let calls = self.without_spare(calls);
        // A goal that was given up may be shown by a call that was made for another.
        unreached.retain(|u| !calls.iter().any(|c| c.covers.binary_search(&u.goal).is_ok()));
        unreached.sort_by_key(|u| u.goal);
        Synthesis { goals: self.map.goals.clone(), calls, unreached, cut }
    }

    /// Whether a call is taken, and has no number that is not known to be the one that it was read from.
    fn accepts(&self, call: &Value) -> bool {
        self.validator.is_valid(call) && !self.is_rounded(call)
    }

    fn is_rounded(&self, call: &Value) -> bool {
        self.rounded.iter().any(|double| crate::rules::holds(call, *double))
    }

    fn covered(&self, call: &Value) -> Vec<bool> {
        self.work.set(self.work.get() + (self.map.places.len() + self.map.goals.len()) as u64);
        self.tests.covered(self.map, call)
    }

    /// The place of a goal that asks for one listed value.
    fn listed(&self, goal: usize) -> Option<&str> {
        let goal = self.map.goals.get(goal)?;
        matches!(goal.kind, GoalKind::Value | GoalKind::Null).then_some(goal.pointer.as_str())
    }

    /// Any valid call.
    fn plain(&self, rng: &mut Rng) -> Option<Value> {
        let object = json!({"allOf": [of_objects(), self.root]});
        let make = Make { map: self.map, root: self.root, work: self.work };
        (0..TRIES).find_map(|attempt| {
            let optional = if attempt < TRIES / 2 { 0.5 } else { 0.0 };
            make.at(&object, "", optional, rng).filter(|call| call.is_object() && self.accepts(call))
        })
    }

    /// A valid call that shows the goal, or why there is none.
    fn donor(&self, goal: usize, rng: &mut Rng) -> Result<Donor, String> {
        let Some(target) = self.map.targets.get(goal) else { return Err("no such goal".to_owned()) };
        let make = Make { map: self.map, root: self.root, work: self.work };
        let mut reason = None;
        // what is refused at the goal's own place says more than what is refused elsewhere
        let own = Pattern::new(self.map.places.get(target.place).map_or("", |place| place.pattern.as_str()));
        for attempt in 0..TRIES {
            let leaf = make.leaf(goal, rng)?;
            let optional = [0.0, 0.4, 0.0, 0.8][attempt % 4];
            let Some(call) = make.around(target.place, &leaf, &target.need, optional, rng) else {
                reason.get_or_insert("no call can be built around it".to_owned());
                continue;
            };
            self.work.set(self.work.get() + self.map.places.len() as u64);
            if !self.validator.is_valid(&call) {
                let errors: Vec<_> = self.validator.iter_errors(&call).take(32).collect();
                let here = errors.iter().find(|e| own.matches(e.instance_path().as_str()));
                if let Some(error) = here.or(errors.first()) {
                    let at = error.instance_path().to_string();
                    let at = if at.is_empty() { "the call".to_owned() } else { at };
                    let why = format!("{at} is refused by {}", error.schema_path());
                    reason = Some(match here {
                        Some(_) => why,
                        None => format!("no valid call was found around it: {why}"),
                    });
                }
            } else if self.is_rounded(&call) {
                reason = Some(
                    "a number beyond 64 bits decides there, and no call can be shown to keep to it"
                        .to_owned(),
                );
            } else if self.tests.covered(self.map, &call).get(goal) == Some(&true) {
                return Ok(Donor { call, leaf });
            } else {
                reason = Some("no valid value shows it: another part of the schema decides here".to_owned());
            }
        }
        Err(reason.unwrap_or_else(|| "no value found".to_owned()))
    }

    /// The call with the goal's value put where the goal is; what is missing on the way comes from the donor.
    fn put(&self, call: &Value, goal: usize, donor: &Donor) -> Option<Value> {
        let target = self.map.targets.get(goal)?;
        let mut way = Vec::new();
        let mut at = Some(target.place);
        while let Some(place) = at {
            way.push(place);
            at = self.map.places.get(place)?.parent;
        }
        way.reverse();
        let mut out = call.clone();
        let mut here = &mut out;
        let mut from = &donor.call;
        for place in way {
            match &self.map.places.get(place)?.step {
                Step::Root => {}
                Step::Same(_) => {
                    if !self.tests.enters(self.map, place, here) {
                        *here = from.clone();
                        return Some(out);
                    }
                }
                Step::Name(name) => {
                    from = from.get(name)?;
                    let map = here.as_object_mut()?;
                    if !map.contains_key(name) {
                        map.insert(name.clone(), from.clone());
                        return Some(out);
                    }
                    here = map.get_mut(name)?;
                }
                Step::Index(n) => {
                    if here.get(*n).is_none() {
                        *here = from.clone();
                        return Some(out);
                    }
                    from = from.get(*n)?;
                    here = here.get_mut(*n)?;
                }
                // one item more, so that those before keep what they show
                Step::Item => {
                    let all = from.as_array()?;
                    let list = here.as_array_mut()?;
                    let shown = all.iter().find(|item| !list.contains(item)).or(all.first())?;
                    list.push(shown.clone());
                    return Some(out);
                }
                Step::Open | Step::Matching(_) => {
                    let map = here.as_object_mut()?;
                    for (key, value) in from.as_object()? {
                        map.entry(key.clone()).or_insert_with(|| value.clone());
                    }
                    return Some(out);
                }
            }
        }
        match (&donor.leaf, &target.need) {
            (Some(value), _) => *here = value.clone(),
            (None, Need::Without(name)) => {
                here.as_object_mut()?.remove(name)?;
            }
            (None, _) => return None,
        }
        Some(out)
    }

    /// Takes away calls that show nothing that another does not.
    fn without_spare(&self, calls: Vec<(Value, Vec<bool>)>) -> Vec<SynthCall> {
        let mut times = vec![0usize; self.map.goals.len()];
        let each = |covered: &[bool]| {
            covered.iter().enumerate().filter(|(_, c)| **c).map(|(g, _)| g).collect::<Vec<usize>>()
        };
        let mut calls: Vec<SynthCall> =
            calls.into_iter().map(|(arguments, c)| SynthCall { arguments, covers: each(&c) }).collect();
        for goal in calls.iter().flat_map(|c| &c.covers) {
            if let Some(n) = times.get_mut(*goal) {
                *n += 1;
            }
        }
        for i in (0..calls.len()).rev() {
            let spare = calls.len() > 1
                && calls
                    .get(i)
                    .is_some_and(|c| c.covers.iter().all(|g| times.get(*g).is_some_and(|n| *n > 1)));
            if spare {
                for goal in calls.remove(i).covers {
                    if let Some(n) = times.get_mut(goal) {
                        *n -= 1;
                    }
                }
            }
        }
        calls
    }
}
