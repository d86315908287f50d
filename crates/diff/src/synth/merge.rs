//! From single calls to few: a call for each goal, merged while the result stays valid and shows more.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cover::Tests;
use super::goals::{Map, Need, Step};
use super::make::{Leaf, Make};
use super::{GoalKind, SynthCall, Synthesis, Unreached};
use crate::generate::Rng;

/// Attempts at the call of one goal.
const TRIES: usize = 24;
/// Attempts at merging, in all.
const MERGES: usize = 60_000;

/// What the work needs.
pub(super) struct Merge<'a> {
    pub map: &'a Map,
    pub tests: &'a Tests,
    pub validator: &'a jsonschema::Validator,
    pub root: &'a Value,
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
        for goal in 0..self.map.goals.len() {
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
        while let Some(first) = open.first().copied() {
            let Some(Some(donor)) = donors.get(first) else { break };
            let mut call = donor.call.clone();
            let mut covered = self.tests.covered(self.map, &call);
            // places that show one listed value: another one there would only take its turn
            let mut taken: BTreeSet<&str> = BTreeSet::new();
            taken.extend(self.listed(first));
            for goal in &open {
                let done = covered.get(*goal) == Some(&true);
                let listed = self.listed(*goal);
                if done || budget == 0 || listed.is_some_and(|p| taken.contains(p) && !p.contains('*')) {
                    continue;
                }
                budget -= 1;
                let Some(Some(donor)) = donors.get(*goal) else { continue };
                let Some(merged) = self.put(&call, *goal, donor) else { continue };
                if merged == call || !self.validator.is_valid(&merged) {
                    continue;
                }
                let now = self.tests.covered(self.map, &merged);
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
        Synthesis { goals: self.map.goals.clone(), calls, unreached, cut: self.map.cut }
    }

    /// The place of a goal that asks for one listed value.
    fn listed(&self, goal: usize) -> Option<&str> {
        let goal = self.map.goals.get(goal)?;
        matches!(goal.kind, GoalKind::Value | GoalKind::Null).then_some(goal.pointer.as_str())
    }

    /// Any valid call.
    fn plain(&self, rng: &mut Rng) -> Option<Value> {
        crate::generate::valid(self.root, rng, &mut |call| self.validator.is_valid(call))
    }

    /// A valid call that shows the goal, or why there is none.
    fn donor(&self, goal: usize, rng: &mut Rng) -> Result<Donor, String> {
        let Some(target) = self.map.targets.get(goal) else { return Err("no such goal".to_owned()) };
        let make = Make { map: self.map, root: self.root };
        let mut reason = None;
        for attempt in 0..TRIES {
            let leaf = make.leaf(goal, rng)?;
            let optional = [0.0, 0.4, 0.0, 0.8][attempt % 4];
            let Some(call) = make.around(target.place, &leaf, &target.need, optional, rng) else {
                reason.get_or_insert("no call can be built around it".to_owned());
                continue;
            };
            if let Err(error) = self.validator.validate(&call) {
                let at = error.instance_path().to_string();
                let at = if at.is_empty() { "the call".to_owned() } else { at };
                reason = Some(format!("{at} is refused by {}", error.schema_path()));
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
