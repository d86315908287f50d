//! One window while its rows and entries are added up.

use std::collections::BTreeMap;

use lastcall_decision::{
    CheckResult, DAYS_BEYOND, DayCounts, DayTally, Expectation, PlanFacts, Problem, ReasonCode, Tallied,
    Tally, WindowInput, closed_days,
};
use lastcall_event::{CallRecord, Day};

use crate::days::DayStates;
use crate::entry::Chunk;
use crate::error::LedgerError;
use crate::ledger::PartitionChain;
use crate::rows::ResultRow;
use crate::state::{ControlState, Plant, Registration};
use crate::window::problem::{earlier, pair_facts, plan_of, problem_of, registration_facts};
use crate::window::{Older, PlantList, Record, Sighting, Subject, WindowDay, WindowFacts, ends};

/// Where a window's facts begin.
pub(crate) enum Start {
    /// Nothing is known yet.
    Nothing,
    /// With what an index entry keeps.
    Facts(Box<WindowFacts>),
}

/// One subject while its chunks are read.
pub(crate) struct Gathering<'a> {
    pub(crate) subject: &'a Subject,
    sources: Vec<String>,
    plan: Option<PlanFacts>,
    problems: Vec<Problem>,
    /// Problems of chunks, by chain and entry.
    of_chunks: BTreeMap<(String, i32, u64), Problem>,
    tally: Tally,
    states: DayStates,
    facts: Option<WindowFacts>,
}

impl<'a> Gathering<'a> {
    pub(crate) fn new(record: &Record, subject: &'a Subject, start: Start, sightings: &[Sighting]) -> Self {
        let mut problems = Vec::new();
        let registration = subject.registration.as_ref();
        let plan = registration.and_then(|r| match plan_of(&record.ledger, r) {
            Ok(plan) => Some(plan),
            Err(problem) => {
                problems.push(problem);
                None
            }
        });
        let sources: Vec<String> = match registration {
            Some(r) => record.control.sources_of(r).iter().map(|s| s.name.clone()).collect(),
            None => record.control.sources.keys().cloned().collect(),
        };
        let mut expected: Vec<Expectation> = Vec::new();
        for (plant, own) in plants_of(&record.control, subject) {
            match PlantList::read(&record.ledger, plant) {
                Ok(list) if own => expected.extend(list.expectations(plant.seq)),
                // another candidate's plants are left out of D, and nothing is expected of them here
                Ok(list) => {
                    expected.extend(list.expectations(plant.seq).map(|e| Expectation { expect: None, ..e }));
                }
                Err(problem) => problems.push(problem),
            }
        }
        // The verdict is about these definitions: they have to be the ones that were fixed.
        if let Some(pair) = &subject.pair {
            for digest in [&pair.current_digest, &pair.candidate_digest, &pair.config_digest] {
                if let Err(error) = record.ledger.object(digest) {
                    problems.push(problem_of(&error));
                }
            }
        }
        let facts = match start {
            Start::Facts(facts) => Some(*facts),
            Start::Nothing => blank(subject, plan.as_ref()),
        };
        let mut gathering = Self {
            subject,
            states: ends::states(record, &sources),
            sources,
            plan,
            problems,
            of_chunks: BTreeMap::new(),
            tally: Tally::new(expected),
            facts,
        };
        for sighting in sightings {
            gathering.sighted(sighting);
        }
        gathering
    }

    pub(crate) fn reads(&self, source: &str) -> bool {
        self.sources.iter().any(|s| s == source)
    }

    fn is_ours(&self, cohort: Option<&str>) -> bool {
        let wanted = self.subject.registration.as_ref().and_then(|r| r.cohort.as_deref());
        wanted.is_none_or(|wanted| cohort == Some(wanted))
    }

    /// Whether calls recorded under this control entry take part at all: without a registration only those since the
    /// pair is observed.
    fn takes(&self, control: u64) -> bool {
        self.subject.registration.is_some() || control >= self.subject.since
    }

    /// Whether a chunk recorded under this control entry holds scored evidence.
    fn observed(&self, control: u64) -> bool {
        self.subject
            .registration
            .as_ref()
            .is_none_or(|r| control >= r.seq && r.end.as_ref().is_none_or(|end| control < end.seq))
    }

    pub(crate) fn is_inside(&self, day: Day) -> bool {
        let inside = self.facts.as_ref().and_then(|facts| facts.inside);
        inside.is_none_or(|(first, last)| day >= first && day <= last)
    }

    fn sighted(&mut self, sighting: &Sighting) {
        let of_pair = self.subject.pair.as_ref().is_some_and(|pair| pair.epoch == sighting.epoch);
        if of_pair
            && self.reads(&sighting.source)
            && self.is_ours(sighting.cohort.as_deref())
            && self.takes(sighting.control)
        {
            let mut key = [0u8; 16];
            for (i, byte) in key.iter_mut().enumerate() {
                let digits = sighting.call_key.get(2 * i..2 * i + 2);
                *byte = digits.and_then(|d| u8::from_str_radix(d, 16).ok()).unwrap_or(0);
            }
            self.tally.plant(key, sighting.control, || sighting.found.clone());
        }
    }

    /// Rows of this day come once more, from its day file: what the facts say of them is dropped.
    pub(crate) fn reload(&mut self, day: Day) {
        if self.is_inside(day)
            && let Some(kept) = self.facts.as_mut().and_then(|facts| facts.days.get_mut(&day))
        {
            kept.tally = DayTally::default();
        }
    }

    /// Adds one row of the pair under its epoch. `again`: it was added before, and comes once more from a day file.
    pub(crate) fn row(&mut self, source: &str, control: u64, row: &ResultRow, times: u64, again: bool) {
        let skip = !self.reads(source)
            || row.tool_id != self.subject.tool_id
            || !self.is_ours(row.cohort.as_deref())
            || !self.takes(control);
        if skip || self.tally.plant(row.call_key, control, || row.found()) {
            return;
        }
        if !self.is_inside(row.day) {
            if !again {
                self.outside(row.day, control, times);
            }
            return;
        }
        let observed = self.observed(control);
        self.tally.count(&row.as_tally_row(source, control, observed), times);
    }

    /// Calls of other days count only while the window stands.
    fn outside(&mut self, day: Day, control: u64, calls: u64) {
        if let Some(facts) = self.facts.as_mut().filter(|facts| control >= facts.since) {
            facts.outside.add(day, calls);
        }
    }

    /// The rows so far are all that there are of their calls.
    pub(crate) fn settle(&mut self) {
        let days = self.tally.take_days();
        let Some(facts) = &mut self.facts else { return };
        for (day, tally) in days {
            facts.days.entry(day).or_default().tally.add(&tally);
        }
    }

    pub(crate) fn has_rows_in(&self, chunk: &Chunk) -> bool {
        self.subject.pair.as_ref().is_some_and(|p| chunk.tallies.iter().any(|t| t.epoch == p.epoch))
    }

    /// A chunk's results could not be read.
    pub(crate) fn failed(&mut self, chain: &PartitionChain, seq: u64, error: &LedgerError) {
        let key = (chain.source.clone(), chain.partition.0, seq);
        self.of_chunks.entry(key).or_insert_with(|| problem_of(error));
    }

    /// The entry counts other results than its file has.
    pub(crate) fn miscounted(
        &mut self,
        chain: &PartitionChain,
        seq: u64,
        chunk: &Chunk,
        told: u64,
        found: u64,
    ) {
        let problem = Problem {
            result: CheckResult::Error,
            reason: ReasonCode::RecordAltered,
            text: format!(
                "The chunk of {}/{} from position {} counts {told} results of {}, and its file has {found}.",
                chain.source, chain.partition.0, chunk.range.first.0, self.subject.tool_id
            ),
            next: Some("lastcall ledger verify DIR".to_owned()),
        };
        self.of_chunks.insert((chain.source.clone(), chain.partition.0, seq), problem);
    }

    /// What a chunk's entry says beside its rows: calls without a row, losses, coverage, late and odd ones.
    pub(crate) fn chunk(&mut self, chain: &PartitionChain, seq: u64, chunk: &Chunk) {
        let Some(pair) = &self.subject.pair else { return };
        let control = chunk.control.seq;
        if !self.reads(&chain.source) || !self.takes(control) {
            return;
        }
        let tool = &self.subject.tool_id;
        let of_tool = |c: &&crate::tally::CallCount| *c.tool == **tool;
        let of_pair = |c: &&crate::tally::CallCount| {
            // under an unknown one of the tool's contracts: every pair has a row of it
            let ours = |c: &str| c == &*pair.current || c.ends_with(CallRecord::UNKNOWN_CONTRACT);
            *c.tool == **tool && c.contract.as_ref().is_none_or(|c| ours(c))
        };
        let mut rows: BTreeMap<Day, u64> = BTreeMap::new();
        for tally in chunk.tallies.iter().filter(|t| t.epoch == pair.epoch) {
            *rows.entry(tally.day).or_default() += tally.counts.rows();
        }
        let mut calls: BTreeMap<Day, u64> = BTreeMap::new();
        for count in chunk.calls.iter().filter(of_pair) {
            *calls.entry(count.day).or_default() += count.calls;
        }
        // A call without a row was recorded while nobody observed the pair. With a cohort, only where every call has
        // no row can it be told whose it was.
        let cohort = self.subject.registration.as_ref().and_then(|r| r.cohort.as_deref());
        let mut unobserved: Vec<(Day, u64)> = Vec::new();
        for (day, n) in calls {
            let rows = rows.get(&day).copied().unwrap_or_default();
            let ours = match cohort {
                None => n.saturating_sub(rows),
                Some(_) if rows > 0 => 0,
                Some(cohort) => {
                    let same =
                        |c: &&crate::tally::CallCount| c.day == day && c.cohort.as_deref() == Some(cohort);
                    chunk.calls.iter().filter(of_pair).filter(same).map(|c| c.calls).sum()
                }
            };
            unobserved.push((day, ours));
        }
        let mut lost: Vec<(Day, u64)> = Vec::new();
        for loss in chunk.losses.iter().filter(|l| l.tool.as_ref().is_none_or(|t| t == tool)) {
            lost.extend(loss.days().map(|day| (day, loss.count)));
        }
        let scored_from = self.subject.registration.as_ref().map(|r| r.scored_from);
        let mut mismatch = 0u64;
        let mut late = 0u64;
        if let Some(from) = scored_from {
            let odd = chunk.calls.iter().filter(of_tool).filter(|c| c.day >= from);
            mismatch = odd.fold(0, |sum, c| sum.saturating_add(c.digest_mismatch));
            if let Some(days) = self.states.partition(&chain.source, chain.partition) {
                let ours = chunk.tallies.iter().filter(|t| t.epoch == pair.epoch && t.day >= from);
                late = ours.filter(|t| days.is_late(seq, t.day)).map(|t| t.counts.rows()).sum();
            }
        }
        for (day, n) in unobserved {
            self.beside(day, control, n, |kept| kept.unobserved = kept.unobserved.saturating_add(n));
        }
        for (day, n) in lost {
            self.beside(day, control, n, |kept| kept.lost = kept.lost.saturating_add(n));
        }
        for count in chunk.coverage.iter().filter(|c| c.tool == self.subject.tool_id) {
            let day = count.hour.day();
            if self.is_inside(day)
                && let Some(facts) = &mut self.facts
            {
                let kept = facts.days.entry(day).or_default();
                kept.coverage = Some(kept.coverage.unwrap_or(0).saturating_add(count.count));
            }
        }
        if let Some(facts) = &mut self.facts {
            facts.mismatch = facts.mismatch.saturating_add(mismatch);
            facts.late = facts.late.saturating_add(late);
        }
    }

    fn beside(&mut self, day: Day, control: u64, n: u64, add: impl FnOnce(&mut WindowDay)) {
        if n == 0 {
            return;
        }
        if !self.is_inside(day) {
            return self.outside(day, control, n);
        }
        if let Some(facts) = &mut self.facts {
            add(facts.days.entry(day).or_default());
        }
    }

    /// What the next index entry keeps; `None` without a pair, or where something of the record could not be read.
    /// Without a registration only so many days are kept one by one.
    pub(crate) fn into_facts(self, kept: usize) -> Option<WindowFacts> {
        if !self.of_chunks.is_empty() {
            return None;
        }
        let mut facts = self.facts?;
        if facts.inside.is_none() {
            while facts.days.len() > kept {
                let Some((day, sum)) = facts.days.pop_first() else { break };
                match &mut facts.older {
                    Some(older) => {
                        older.through = older.through.max(day);
                        older.sum.add(&sum);
                    }
                    None => facts.older = Some(Older { through: day, sum }),
                }
            }
        }
        Some(facts)
    }

    pub(crate) fn finish(self, record: &Record) -> WindowInput {
        let registration = self.subject.registration.as_ref();
        let facts = self.facts;
        let mut input = WindowInput {
            tool_id: self.subject.tool_id.clone(),
            pair: self.subject.pair.as_ref().map(pair_facts),
            registration: registration.map(registration_facts),
            plan: self.plan,
            earlier_windows: earlier(&record.control, &self.subject.tool_id, registration),
            tails: ends::tails(record, &self.sources),
            simulated: record.ledger.is_simulated(),
            problems: self.problems,
            ..WindowInput::default()
        };
        input.problems.extend(self.of_chunks.into_values());
        let first = registration.map_or(Day(i32::MIN), |r| r.scored_from);
        let mut last = None;
        if let (Some(r), Some(plan)) = (registration, &input.plan) {
            (input.closed_through, input.open_because) =
                ends::closed_through(record, &self.sources, &self.states, r, &plan.values);
            input.late = facts.as_ref().map_or(0, |facts| facts.late);
            let mismatch = facts.as_ref().map_or(0, |facts| facts.mismatch);
            input.problems.extend(ends::incomplete(record, &self.sources, r, mismatch));
            last = closed_days(&plan.values, r.scored_from, input.closed_through).last().copied();
        }
        // Without a registration nothing is scored, and what was seen so far is shown.
        let until = if registration.is_some() { last } else { Some(Day(i32::MAX)) };
        let planted = self.tally.planted();
        let Some(facts) = facts else {
            input.planted = planted;
            return input;
        };
        input.outside = facts.outside;
        let older = facts.older.as_ref().map(|older| (older.through, &older.sum));
        let days = || facts.days.iter().map(|(day, kept)| (*day, kept)).chain(older);
        let tallied = Tallied::of(days().map(|(day, kept)| (day, &kept.tally)), first, until, planted);
        input.days = tallied.days;
        input.categories = tallied.categories;
        input.normalization = tallied.rules;
        input.planted = tallied.planted;
        let mut production: Option<u64> = None;
        for (day, kept) in days() {
            let counts = input.days.entry(day).or_default();
            counts.add_unresolved(kept.unobserved, "not_observed");
            counts.add_unresolved(kept.lost, "lost");
            if let Some(n) = kept.coverage {
                let scored = day >= first && last.is_some_and(|last| day <= last);
                production = Some(production.unwrap_or(0).saturating_add(if scored { n } else { 0 }));
            }
        }
        input.days.retain(|_, counts| *counts != DayCounts::default());
        input.production_calls = production;
        input
    }
}

/// The days of a window that are kept one by one.
pub(crate) fn inside(r: &Registration, plan: Option<&PlanFacts>) -> (Day, Day) {
    let scored = plan.map_or(1, |plan| i32::try_from(plan.values.max_scored_days).unwrap_or(i32::MAX));
    (r.scored_from, r.scored_from.plus(scored.saturating_sub(1)).plus(DAYS_BEYOND))
}

fn blank(subject: &Subject, plan: Option<&PlanFacts>) -> Option<WindowFacts> {
    let pair = subject.pair.as_ref()?;
    let registration = subject.registration.as_ref();
    Some(WindowFacts {
        registration: registration.map(|r| r.seq),
        epoch: pair.epoch.clone(),
        current: pair.current.clone(),
        candidate: pair.candidate.clone(),
        comparator: pair.comparator,
        cohort: registration.and_then(|r| r.cohort.clone()),
        plan: registration.map(|r| r.plan.clone()),
        ceiling: plan.map(|plan| plan.values.ceiling),
        since: subject.since,
        inside: registration.map(|r| inside(r, plan)),
        days: BTreeMap::new(),
        older: None,
        outside: lastcall_decision::Outside::default(),
        mismatch: 0,
        late: 0,
    })
}

/// The plants of a subject's tool, and whether they were planted for its own candidate: those of another are no
/// production calls either.
pub(crate) fn plants_of<'c>(control: &'c ControlState, subject: &Subject) -> Vec<(&'c Plant, bool)> {
    let candidate = subject.pair.as_ref().map(|p| p.candidate.as_str());
    let own = |p: &'c Plant| (p, Some(p.candidate.as_str()) == candidate);
    let mut plants: Vec<_> =
        control.plants.iter().filter(|p| p.tool_id == subject.tool_id).map(own).collect();
    plants.sort_by_key(|(_, own)| *own); // where both name a call, what is expected of one's own holds
    plants
}
