//! Objects: members by name, members of which only the patterns they match are known, and members that have to be there.
//!
//! Names that a goal mentions are told apart one by one; all others by the set of patterns they match. A goal names
//! members that some object must have: required ones, one that breaks a `properties`, one whose name breaks a
//! `propertyNames`. Each is a mentioned name or a class of others; where no way works, there is no object.

mod demanded;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::choices::State;
use super::{Outcome, Solver};
use crate::prove::eval::holds;
use crate::prove::ir::{self, Literal, Types};
use demanded::{Class, Object};

/// Patterns up to which every set of them is told apart.
const MAX_PATTERNS: usize = 5;
/// Ways of placing that are tried for one goal.
const MAX_WAYS: u32 = 2_000;

/// A member that is there.
#[derive(Clone)]
struct Member {
    name: Option<String>,
    /// The class of a name that is not mentioned.
    class: Option<usize>,
    literals: Vec<Literal>,
}

#[derive(Clone, Copy)]
enum Demand {
    Breaks(usize),
    BadName(usize),
}

/// Where a demand is met: a mentioned name, a member of a class that is there, or a new one.
enum Spot<'s> {
    Named(&'s str),
    There(usize),
    New(usize, Option<String>),
}

impl Solver<'_> {
    pub(super) fn objects(&mut self, state: &State) -> Outcome {
        let object = Object::of(state);
        if object.required.intersection(&object.absent).next().is_some() {
            return Outcome::None;
        }
        if object.required.len() as u64 > object.max || object.min > object.max {
            return Outcome::None;
        }
        let mut members = Vec::new();
        for name in &object.required {
            let Some(literals) = object.base_of_name(name) else { return Outcome::None };
            if self.decide(&literals).is_none() {
                return Outcome::None;
            }
            members.push(Member { name: Some((*name).to_owned()), class: None, literals });
        }
        if object.max == 0 {
            return self.finite(state, [Value::Object(Map::new())].iter());
        }
        let needs_more = object.min > members.len() as u64;
        let classes = if object.broken.is_empty() && object.bad_names.is_empty() && !needs_more {
            Vec::new()
        } else {
            self.classes(&object)
        };
        if needs_more && object.broken.is_empty() && object.bad_names.is_empty() {
            // With demands, this is asked of each way that meets them.
            if let Some(none) = self.too_few(&object, &classes, members.len()) {
                return none;
            }
        }
        let demands: Vec<Demand> = (0..object.bad_names.len())
            .map(Demand::BadName)
            .chain((0..object.broken.len()).map(Demand::Breaks))
            .collect();
        let mut ways = MAX_WAYS;
        self.meet(state, &object, &classes, members, &demands, &mut ways)
    }

    /// The classes of names that are not mentioned. One that is left out has no names.
    fn classes(&mut self, object: &Object<'_>) -> Vec<Class> {
        let patterns = object.patterns.len();
        let told_apart = patterns <= MAX_PATTERNS;
        let mentioned: Vec<Value> = object.mentioned.iter().map(|name| Value::from(*name)).collect();
        let mut classes = Vec::new();
        for set in 0..if told_apart { 1usize << patterns } else { 1 } {
            let matches: Vec<Option<bool>> =
                (0..patterns).map(|i| told_apart.then_some(set >> i & 1 == 1)).collect();
            let mut literals = vec![Literal::yes(&ir::of_types(Types::STRING))];
            literals.extend(object.names.iter().map(|node| Literal::yes(node)));
            if !mentioned.is_empty() {
                literals.push(Literal::no(&ir::of_values(&mentioned)));
            }
            for (text, matched) in object.patterns.iter().zip(&matches) {
                if let Some(holds) = matched {
                    let check = object.check(text);
                    literals.push(Literal { node: ir::pattern(text, check), holds: *holds });
                }
            }
            match self.decide(&literals) {
                Outcome::None => {}
                outcome => {
                    let example = outcome.value().and_then(|v| v.as_str().map(str::to_owned));
                    classes.push(Class { matches, literals, example });
                }
            }
        }
        classes
    }

    /// More members are needed than there can be. `None`: there may be enough.
    fn too_few(&mut self, object: &Object<'_>, classes: &[Class], there: usize) -> Option<Outcome> {
        for class in classes {
            if !self.decide(&object.base_of_class(class)).is_none() {
                return None;
            }
        }
        let mut possible = there as u64;
        for name in &object.mentioned {
            if possible >= object.min {
                return None;
            }
            if !object.required.contains(name)
                && let Some(literals) = object.base_of_name(name)
                && !self.decide(&literals).is_none()
            {
                possible += 1;
            }
        }
        (possible < object.min).then_some(Outcome::None)
    }

    /// Meets the demands one after the other.
    fn meet(
        &mut self,
        state: &State,
        object: &Object<'_>,
        classes: &[Class],
        members: Vec<Member>,
        demands: &[Demand],
        ways: &mut u32,
    ) -> Outcome {
        if *ways == 0 || !self.step(1) {
            return Outcome::Open(None);
        }
        *ways -= 1;
        if members.len() as u64 > object.max {
            return Outcome::None;
        }
        let Some((demand, later)) = demands.split_first() else {
            if (members.len() as u64) < object.min
                && (!object.broken.is_empty() || !object.bad_names.is_empty())
                && let Some(none) = self.too_few_beside(object, classes, &members)
            {
                return none;
            }
            return self.shown(state, object, classes, &members);
        };
        let mut outcome = Outcome::None;
        for (spot, more) in self.spots(object, classes, &members, *demand) {
            let Some(members) = self.with(object, classes, &members, &spot, more) else { continue };
            outcome = outcome.or(self.meet(state, object, classes, members, later, ways));
            if matches!(outcome, Outcome::Model(_)) {
                break;
            }
        }
        outcome
    }

    fn too_few_beside(
        &mut self,
        object: &Object<'_>,
        classes: &[Class],
        members: &[Member],
    ) -> Option<Outcome> {
        // Members of classes may be among those counted, so count from the required ones.
        let others = members.iter().filter(|m| m.class.is_some()).count();
        if others > 0 {
            return None;
        }
        self.too_few(object, classes, object.required.len())
    }

    /// Everywhere a demand could be met, with what the value there must satisfy then.
    fn spots<'s>(
        &mut self,
        object: &Object<'s>,
        classes: &[Class],
        members: &[Member],
        demand: Demand,
    ) -> Vec<(Spot<'s>, Option<Literal>)> {
        let mut spots = Vec::new();
        match demand {
            Demand::Breaks(i) => {
                let Some(broken) = object.broken.get(i).copied() else { return spots };
                for name in &object.mentioned {
                    let (nodes, sure) = Object::speak_of_name(broken, name);
                    spots.extend(nodes.iter().map(|node| (Spot::Named(name), Some(Literal::no(node)))));
                    if !sure {
                        spots.push((Spot::Named(name), None));
                    }
                }
                for (c, class) in classes.iter().enumerate() {
                    let (nodes, sure) = object.speak_of_class(broken, class);
                    let mut breaking: Vec<Option<Literal>> =
                        nodes.iter().map(|node| Some(Literal::no(node))).collect();
                    if !sure {
                        breaking.push(None);
                    }
                    for literal in breaking {
                        let there = members.iter().enumerate().filter(|(_, m)| m.class == Some(c));
                        spots.extend(there.map(|(at, _)| (Spot::There(at), literal.clone())));
                        spots.push((Spot::New(c, class.example.clone()), literal));
                    }
                }
            }
            Demand::BadName(i) => {
                let Some(bad) = object.bad_names.get(i) else { return spots };
                for name in &object.mentioned {
                    if holds(bad, &Value::from(*name)) != Some(true) {
                        spots.push((Spot::Named(name), None));
                    }
                }
                for (c, class) in classes.iter().enumerate() {
                    let mut literals = class.literals.clone();
                    literals.push(Literal::no(bad));
                    let outcome = self.decide(&literals);
                    if outcome.is_none() {
                        continue;
                    }
                    let there = members.iter().enumerate().filter(|(_, m)| m.class == Some(c));
                    spots.extend(there.map(|(at, _)| (Spot::There(at), None)));
                    let example = outcome.value().and_then(|v| v.as_str().map(str::to_owned));
                    spots.push((Spot::New(c, example), None));
                }
            }
        }
        spots
    }

    /// The members with one more demand met; `None`: its value is impossible.
    fn with(
        &mut self,
        object: &Object<'_>,
        classes: &[Class],
        members: &[Member],
        spot: &Spot<'_>,
        more: Option<Literal>,
    ) -> Option<Vec<Member>> {
        let (at, mut member) = match spot {
            Spot::There(at) => (*at, members.get(*at)?.clone()),
            Spot::Named(name) => match members.iter().position(|m| m.name.as_deref() == Some(*name)) {
                Some(at) => (at, members.get(at)?.clone()),
                None => {
                    let literals = object.base_of_name(name)?;
                    (members.len(), Member { name: Some((*name).to_owned()), class: None, literals })
                }
            },
            Spot::New(class, name) => {
                let literals = object.base_of_class(classes.get(*class)?);
                (members.len(), Member { name: name.clone(), class: Some(*class), literals })
            }
        };
        member.literals.extend(more);
        if self.decide(&member.literals).is_none() {
            return None;
        }
        self.step(members.len() / 8);
        let mut members = members.to_vec();
        match members.get_mut(at) {
            Some(there) => *there = member,
            None => members.push(member),
        }
        Some(members)
    }

    /// An object with these members, to be checked.
    fn shown(
        &mut self,
        state: &State,
        object: &Object<'_>,
        classes: &[Class],
        members: &[Member],
    ) -> Outcome {
        let mut made: BTreeMap<String, Value> = BTreeMap::new();
        for member in members {
            let Some(value) = self.decide(&member.literals).value() else { return Outcome::Open(None) };
            let Some(name) = &member.name else { return Outcome::Open(None) };
            let name = match made.contains_key(name) {
                false => name.clone(),
                true => match self.another_name(classes, member, &made) {
                    Some(name) => name,
                    None => return Outcome::Open(None),
                },
            };
            made.insert(name, value);
        }
        // Fill up to the least number, from names that are mentioned, then from classes.
        let wanted = usize::try_from(object.min).unwrap_or(usize::MAX);
        if wanted > 200 {
            return Outcome::Open(None);
        }
        for name in &object.mentioned {
            if made.len() >= wanted {
                break;
            }
            if !made.contains_key(*name)
                && let Some(value) = object.base_of_name(name).and_then(|l| self.decide(&l).value())
            {
                made.insert((*name).to_owned(), value);
            }
        }
        for (c, class) in classes.iter().enumerate() {
            while made.len() < wanted {
                let literals = object.base_of_class(class);
                let member = Member { name: None, class: Some(c), literals };
                let value = self.decide(&member.literals).value();
                let (Some(name), Some(value)) = (self.another_name(classes, &member, &made), value) else {
                    break;
                };
                made.insert(name, value);
            }
        }
        self.candidates(state, [Value::Object(made.into_iter().collect())].into_iter())
    }

    /// A name of the member's class that is not taken yet.
    fn another_name(
        &mut self,
        classes: &[Class],
        member: &Member,
        taken: &BTreeMap<String, Value>,
    ) -> Option<String> {
        let mut literals = classes.get(member.class?)?.literals.clone();
        let taken: Vec<Value> = taken.keys().map(|name| Value::from(name.as_str())).collect();
        literals.push(Literal::no(&ir::of_values(&taken)));
        self.decide(&literals).value()?.as_str().map(str::to_owned)
    }
}
