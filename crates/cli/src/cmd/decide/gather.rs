//! From the ledger to the plain facts that a verdict rests on. One pass over the chunks for all tools; it reads and
//! never writes, and it never decides.

use std::collections::{BTreeMap, HashMap};

use lastcall_decision::{
    CheckResult, DayCounts, EarlierWindow, Expectation, PairFacts, Place, Plan, PlanFacts, Problem,
    ReasonCode, RegistrationFacts, Row, Tail, Tally, WindowInput, closed_days,
};
use lastcall_event::{Day, Timestamp};
use lastcall_ledger::control::{Control, Pair};
use lastcall_ledger::days::{DayState, DayStates, PartitionDays, ReadThrough};
use lastcall_ledger::entry::Chunk;
use lastcall_ledger::rows::ResultRow;
use lastcall_ledger::state::{ControlState, Plant, Registration};
use lastcall_ledger::{Ledger, LedgerError, PartitionChain};

use super::super::plan::plant::PlantList;

/// One tool, and for a cohort of its own that cohort.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// Tool.
    pub tool_id: String,
    /// Its latest registration, open ones first.
    pub registration: Option<Registration>,
    /// The registered pair, else the observed one.
    pub pair: Option<Pair>,
}

/// The control chain and every partition chain, read and checked.
pub struct Record {
    /// The ledger.
    pub ledger: Ledger,
    /// The control chain.
    pub control: ControlState,
    /// The partition chains.
    pub chains: Vec<PartitionChain>,
}

impl Record {
    /// Reads the chains.
    pub fn read(ledger: Ledger) -> Result<Self, LedgerError> {
        let control = ledger.control()?;
        let chains = ledger.partitions()?;
        // The rule came before the evidence only if the entry that the evidence names is the one that stands there.
        for chain in &chains {
            for read in &chain.entries {
                let named = read.entry.body.control();
                if !control.agrees(named) {
                    let what = format!(
                        "control entry {} is not the one that it names: the control chain was rewritten",
                        named.seq
                    );
                    return Err(LedgerError::altered(&chain.chain().entry_path(read.entry.seq), what));
                }
            }
        }
        Ok(Self { ledger, control, chains })
    }

    /// Every tool that is registered or observed, by name; a tool with several cohorts once for each.
    pub fn subjects(&self) -> Vec<Subject> {
        let mut latest: BTreeMap<(String, Option<String>), Registration> = BTreeMap::new();
        for r in &self.control.registrations {
            let slot = latest.entry((r.pair.tool_id.clone(), r.cohort.clone()));
            slot.and_modify(|known| {
                if known.end.is_some() || r.end.is_none() {
                    *known = r.clone();
                }
            })
            .or_insert_with(|| r.clone());
        }
        let mut out: Vec<Subject> = latest
            .into_iter()
            .map(|((tool_id, _), r)| Subject { tool_id, pair: Some(r.pair.clone()), registration: Some(r) })
            .collect();
        for observed in &self.control.observed {
            let tool_id = &observed.pair.tool_id;
            if !out.iter().any(|s| s.tool_id == *tool_id) {
                let pair = Some(observed.pair.clone());
                out.push(Subject { tool_id: tool_id.clone(), registration: None, pair });
            }
        }
        out.sort_by(|a, b| {
            let cohort = |s: &Subject| s.registration.as_ref().and_then(|r| r.cohort.clone());
            a.tool_id.cmp(&b.tool_id).then_with(|| cohort(a).cmp(&cohort(b)))
        });
        out
    }

    /// The facts of each subject, in the same order.
    pub fn gather(&self, subjects: &[Subject]) -> Vec<WindowInput> {
        let mut windows: Vec<Gathering<'_>> = subjects.iter().map(|s| Gathering::new(self, s)).collect();
        let mut by_epoch: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, window) in windows.iter().enumerate() {
            if let Some(pair) = &window.subject.pair {
                by_epoch.entry(pair.epoch.as_str().to_owned()).or_default().push(i);
            }
        }
        for chain in &self.chains {
            for (_, chunk) in chain.chunks() {
                self.take(chain, chunk, &by_epoch, &mut windows);
            }
        }
        windows.into_iter().map(|w| w.finish(self)).collect()
    }

    fn take(
        &self,
        chain: &PartitionChain,
        chunk: &Chunk,
        by_epoch: &HashMap<String, Vec<usize>>,
        windows: &mut [Gathering<'_>],
    ) {
        for window in windows.iter_mut() {
            window.rows_here.clear();
        }
        let wanted = chunk.tallies.iter().any(|t| by_epoch.contains_key(t.epoch.as_str()));
        if wanted {
            let read = self.ledger.for_each_result(chunk, |row| {
                for i in by_epoch.get(&row.epoch).into_iter().flatten() {
                    if let Some(window) = windows.get_mut(*i) {
                        window.row(&chain.source, chunk.control.seq, &row);
                    }
                }
            });
            if let Err(error) = read {
                // A file holds rows of several tools: it is in the way of those whose rows it holds.
                for window in windows.iter_mut().filter(|w| w.reads(&chain.source) && w.has_rows_in(chunk)) {
                    window.problems.push(problem_of(&error));
                }
                return;
            }
        }
        for window in windows.iter_mut().filter(|w| w.reads(&chain.source)) {
            window.chunk(chain, chunk);
        }
    }
}

/// A ledger's error as a problem of a verdict.
pub fn problem_of(error: &LedgerError) -> Problem {
    let reason = match error.is_altered() {
        true => ReasonCode::RecordAltered,
        false => ReasonCode::RecordIncomplete,
    };
    let said = error.to_string();
    let mut chars = said.chars();
    let mut text: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    if !text.ends_with('.') {
        text.push('.');
    }
    Problem { result: CheckResult::Error, reason, text, next: Some("lastcall ledger verify DIR".to_owned()) }
}

/// One subject while its chunks are read.
struct Gathering<'a> {
    subject: &'a Subject,
    sources: Vec<String>,
    plan: Option<PlanFacts>,
    problems: Vec<Problem>,
    tally: Tally,
    /// Rows of the chunk at hand, by day.
    rows_here: BTreeMap<Day, u64>,
    unobserved: BTreeMap<Day, u64>,
    lost: BTreeMap<Day, u64>,
    coverage: BTreeMap<Day, u64>,
}

impl<'a> Gathering<'a> {
    fn new(record: &Record, subject: &'a Subject) -> Self {
        let mut problems = Vec::new();
        let registration = subject.registration.as_ref();
        let plan = registration.and_then(|r| match plan_of(&record.ledger, r) {
            Ok(plan) => Some(plan),
            Err(problem) => {
                problems.push(problem);
                None
            }
        });
        let sources = match registration {
            Some(r) => record.control.sources_of(r).iter().map(|s| s.name.clone()).collect(),
            None => record.control.sources.keys().cloned().collect(),
        };
        let mut expected = Vec::new();
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
        let expected: Vec<Expectation> = expected;
        Self {
            subject,
            sources,
            plan,
            problems,
            tally: Tally::new(expected),
            rows_here: BTreeMap::new(),
            unobserved: BTreeMap::new(),
            lost: BTreeMap::new(),
            coverage: BTreeMap::new(),
        }
    }

    fn reads(&self, source: &str) -> bool {
        self.sources.iter().any(|s| s == source)
    }

    fn has_rows_in(&self, chunk: &Chunk) -> bool {
        self.subject.pair.as_ref().is_some_and(|p| chunk.tallies.iter().any(|t| t.epoch == p.epoch))
    }

    fn cohort(&self) -> Option<&str> {
        self.subject.registration.as_ref().and_then(|r| r.cohort.as_deref())
    }

    fn is_ours(&self, cohort: Option<&str>) -> bool {
        self.cohort().is_none_or(|wanted| cohort == Some(wanted))
    }

    /// Whether a chunk recorded under this control entry holds scored evidence.
    fn observed(&self, control: u64) -> bool {
        self.subject
            .registration
            .as_ref()
            .is_none_or(|r| control >= r.seq && r.end.as_ref().is_none_or(|end| control < end.seq))
    }

    fn row(&mut self, source: &str, control: u64, row: &ResultRow) {
        if !self.reads(source) || row.tool_id != self.subject.tool_id {
            return;
        }
        *self.rows_here.entry(row.day).or_default() += 1;
        if !self.is_ours(row.cohort.as_deref()) {
            return;
        }
        self.tally.add(&Row {
            place: Place {
                source: source.to_owned(),
                partition: row.position.partition,
                offset: row.position.offset,
                index: row.position.index,
            },
            day: row.day,
            call_key: row.call_key,
            control,
            observed: self.observed(control),
            result: row.result,
            reason: row.reason,
            severity: row.severity,
            refused: row.refused,
            fidelity: row.fidelity,
            evidence: row.evidence,
            discrepancies: &row.discrepancies,
            rules: &row.rules,
        });
    }

    /// What a chunk's entry says beside its rows: its own counts of them, calls without a row, losses, coverage.
    fn chunk(&mut self, chain: &PartitionChain, chunk: &Chunk) {
        let Some(pair) = &self.subject.pair else { return };
        let tool = &self.subject.tool_id;
        let told: u64 = chunk.tallies.iter().filter(|t| t.epoch == pair.epoch).map(|t| t.counts.rows()).sum();
        let found: u64 = self.rows_here.values().sum();
        if told != found {
            self.problems.push(Problem {
                result: CheckResult::Error,
                reason: ReasonCode::RecordAltered,
                text: format!(
                    "The chunk of {}/{} from position {} counts {told} results of {tool}, and its file has {found}.",
                    chain.source, chain.partition.0, chunk.range.first.0
                ),
                next: Some("lastcall ledger verify DIR".to_owned()),
            });
        }
        let mut calls: BTreeMap<Day, u64> = BTreeMap::new();
        for count in chunk.calls.iter().filter(|c| *c.tool == **tool) {
            if count.contract.as_ref().is_none_or(|c| **c == *pair.current) {
                *calls.entry(count.day).or_default() += count.calls;
            }
        }
        // A call without a row was recorded while nobody observed the pair. With a cohort, only where every call has
        // no row can it be told whose it was.
        for (day, n) in calls {
            let rows = self.rows_here.get(&day).copied().unwrap_or_default();
            let ours = match self.cohort() {
                None => n.saturating_sub(rows),
                Some(_) if rows > 0 => 0,
                Some(cohort) => chunk
                    .calls
                    .iter()
                    .filter(|c| *c.tool == **tool && c.day == day && c.cohort.as_deref() == Some(cohort))
                    .filter(|c| c.contract.as_ref().is_none_or(|c| **c == *pair.current))
                    .map(|c| c.calls)
                    .sum(),
            };
            if ours > 0 {
                *self.unobserved.entry(day).or_default() += ours;
            }
        }
        for loss in chunk.losses.iter().filter(|l| l.tool.as_ref().is_none_or(|t| t == tool)) {
            // On which of its days they were lost nobody knows: they count on each, as what is unknown does.
            let last = loss.to.day().0.max(loss.from.day().0).min(loss.from.day().0.saturating_add(400));
            for day in loss.from.day().0..=last {
                let sum = self.lost.entry(Day(day)).or_default();
                *sum = sum.saturating_add(loss.count);
            }
        }
        for count in chunk.coverage.iter().filter(|c| c.tool == *tool) {
            let sum = self.coverage.entry(count.hour.day()).or_default();
            *sum = sum.saturating_add(count.count);
        }
    }

    fn finish(self, record: &Record) -> WindowInput {
        let registration = self.subject.registration.as_ref();
        let mut input = WindowInput {
            tool_id: self.subject.tool_id.clone(),
            pair: self.subject.pair.as_ref().map(pair_facts),
            registration: registration.map(registration_facts),
            plan: self.plan,
            earlier_windows: earlier(&record.control, &self.subject.tool_id, registration),
            tails: tails(record, &self.sources),
            simulated: record.ledger.is_simulated(),
            problems: self.problems,
            ..WindowInput::default()
        };
        let first = registration.map_or(Day(i32::MIN), |r| r.scored_from);
        let mut last = None;
        if let (Some(r), Some(plan)) = (registration, &input.plan) {
            (input.closed_through, input.open_because) =
                closed_through(record, &self.sources, r, &plan.values);
            input.late = late_calls(record, &self.sources, r);
            input.problems.extend(incomplete(record, &self.sources, r));
            last = closed_days(&plan.values, r.scored_from, input.closed_through).last().copied();
        }
        // Without a registration nothing is scored, and what was seen so far is shown.
        let tallied =
            self.tally.finish(first, if registration.is_some() { last } else { Some(Day(i32::MAX)) });
        input.days = tallied.days;
        input.categories = tallied.categories;
        input.normalization = tallied.rules;
        input.planted = tallied.planted;
        for (day, n) in self.unobserved {
            add_unresolved(&mut input.days, day, n, "not_observed");
        }
        for (day, n) in self.lost {
            add_unresolved(&mut input.days, day, n, "lost");
        }
        if !self.coverage.is_empty() {
            let inside = |d: &Day| *d >= first && last.is_some_and(|last| *d <= last);
            input.production_calls = Some(
                self.coverage.iter().filter(|(d, _)| inside(d)).fold(0, |sum, (_, n)| sum.saturating_add(*n)),
            );
        }
        input
    }
}

fn add_unresolved(days: &mut BTreeMap<Day, DayCounts>, day: Day, n: u64, reason: &str) {
    days.entry(day).or_default().add_unresolved(n, reason);
}

/// The plants of a subject's tool, and whether they were planted for its own candidate: those of another are no
/// production calls either.
fn plants_of<'c>(control: &'c ControlState, subject: &Subject) -> Vec<(&'c Plant, bool)> {
    let candidate = subject.pair.as_ref().map(|p| p.candidate.as_str());
    let own = |p: &'c Plant| (p, Some(p.candidate.as_str()) == candidate);
    let mut plants: Vec<_> =
        control.plants.iter().filter(|p| p.tool_id == subject.tool_id).map(own).collect();
    plants.sort_by_key(|(_, own)| *own); // where both name a call, what is expected of one's own holds
    plants
}

fn plan_of(ledger: &Ledger, r: &Registration) -> Result<PlanFacts, Problem> {
    let bytes = ledger.object(&r.plan).map_err(|e| problem_of(&e))?;
    let values = Plan::from_object(&bytes).map_err(|e| Problem {
        result: CheckResult::Error,
        reason: ReasonCode::PlanUnreadable,
        text: format!("The plan of registration {} cannot be read by this build: {e}.", r.seq),
        next: Some("take the lastcall that registered it, or register again".to_owned()),
    })?;
    if values.profile != lastcall_decision::Profile::Article {
        return Err(Problem {
            result: CheckResult::Error,
            reason: ReasonCode::PlanUnreadable,
            text: format!("The plan of registration {} asks for a profile that this build lacks.", r.seq),
            next: Some(
                "take the lastcall that registered it, or register a plan with `profile: article`".to_owned(),
            ),
        });
    }
    Ok(PlanFacts { digest: r.plan.clone(), values })
}

/// A pair as verdicts show it.
pub fn pair_facts(pair: &Pair) -> PairFacts {
    PairFacts {
        current: pair.current.clone(),
        current_digest: pair.current_digest.clone(),
        candidate: pair.candidate.clone(),
        candidate_digest: pair.candidate_digest.clone(),
        config_digest: pair.config_digest.clone(),
        epoch: pair.epoch.clone(),
        comparator: pair.comparator,
    }
}

fn registration_facts(r: &Registration) -> RegistrationFacts {
    RegistrationFacts {
        seq: r.seq,
        at: r.at,
        by: r.by.clone(),
        scored_from: r.scored_from,
        sources: r.sources.clone(),
        cohort: r.cohort.clone(),
        ended: r.end.as_ref().map(|e| e.reason.clone()),
    }
}

fn earlier(control: &ControlState, tool: &str, now: Option<&Registration>) -> Vec<EarlierWindow> {
    let before = |r: &&Registration| r.pair.tool_id == tool && now.is_some_and(|n| r.seq < n.seq);
    let window = |r: &Registration| EarlierWindow {
        registration: r.seq,
        candidate: r.pair.candidate.clone(),
        scored_from: r.scored_from,
        plan: r.plan.clone(),
        ended: r.end.as_ref().map_or_else(|| "not ended".to_owned(), |e| e.reason.clone()),
        verdict: control.verdicts.iter().rev().find(|v| v.registration == r.seq).map(|v| v.verdict.clone()),
    };
    control.registrations.iter().filter(before).map(window).collect()
}

/// The ends of the chains that the verdict reads. Verdict entries rest on the record and are no part of it, so the
/// same record gives the same document however often it was decided on; an erasure or an expiry takes nothing that a
/// verdict reads, and changes none.
fn tails(record: &Record, sources: &[String]) -> Vec<Tail> {
    let outside = |body: &Control| {
        matches!(body, Control::Verdict { .. } | Control::Erase { .. } | Control::Expire { .. })
    };
    let control = record.control.entries.iter().rev().find(|r| !outside(&r.entry.body));
    let mut out: Vec<Tail> = control
        .map(|r| Tail { chain: "control".to_owned(), seq: r.entry.seq, digest: r.digest.clone() })
        .into_iter()
        .collect();
    let mut partitions: Vec<Tail> = record
        .chains
        .iter()
        .filter(|c| sources.contains(&c.source))
        .filter_map(|c| {
            let tail = c.tail()?;
            let chain = format!("{}/{}", c.source, c.partition.0);
            Some(Tail { chain, seq: tail.seq, digest: tail.digest })
        })
        .collect();
    partitions.sort();
    out.extend(partitions);
    out
}

/// What makes the record of a window incomplete: upstream positions that the mirror left out, calls made under another
/// definition than the fixed one, calls that two roles bring twice.
fn incomplete(record: &Record, sources: &[String], r: &Registration) -> Vec<Problem> {
    let mut out = Vec::new();
    let mut problem = |text: String, next: &str| {
        out.push(Problem {
            result: CheckResult::Insufficient,
            reason: ReasonCode::RecordIncomplete,
            text,
            next: Some(next.to_owned()),
        });
    };
    let chains = || record.chains.iter().filter(|c| sources.contains(&c.source));
    for chain in chains() {
        let missing = chain.progress().and_then(|p| p.upstream).map_or(0, |u| u.missing);
        if missing > 0 {
            let text = format!(
                "{}/{}: {missing} upstream positions are in no mirrored row: nobody knows what was called there.",
                chain.source, chain.partition.0
            );
            problem(text, "find what the mirror dropped, and register again");
        }
    }
    let counts = chains().flat_map(|c| c.chunks()).flat_map(|(_, c)| &c.calls);
    let scored = counts.filter(|c| *c.tool == *r.pair.tool_id && c.day >= r.scored_from);
    let mismatch = scored.fold(0u64, |sum, c| sum.saturating_add(c.digest_mismatch));
    if mismatch > 0 {
        let text = format!(
            "{mismatch} calls state a contract digest that is not the one of {}: they were made under another definition.",
            r.pair.current
        );
        problem(text, "observe the definition that production uses, and register again");
    }
    let roles: Vec<_> =
        sources.iter().filter_map(|s| record.control.sources.get(s)).map(|s| s.role).collect();
    if roles.iter().any(|role| Some(role) != roles.first()) {
        let text = "The window reads tool-calls and mirrored-calls sources: the same calls may count twice."
            .to_owned();
        problem(text, "register again with the sources of one role: --source NAME");
    }
    out
}

/// Calls of the pair, on scored days, that were recorded when their day was closed already. They stay on their day.
fn late_calls(record: &Record, sources: &[String], r: &Registration) -> u64 {
    let names: Vec<&str> = sources.iter().map(String::as_str).collect();
    let states = DayStates::new(&record.control, &record.chains, &names, record.ledger.meta().clock);
    let mut late = 0;
    for chain in record.chains.iter().filter(|c| sources.contains(&c.source)) {
        let same = |p: &&PartitionDays| p.source == chain.source && p.partition == chain.partition;
        let Some(days) = states.partitions.iter().find(same) else { continue };
        for (seq, chunk) in chain.chunks() {
            let ours = chunk.tallies.iter().filter(|t| t.epoch == r.pair.epoch && t.day >= r.scored_from);
            late += ours.filter(|t| days.is_late(seq, t.day)).map(|t| t.counts.rows()).sum::<u64>();
        }
    }
    late
}

/// The last closed scored day, and why the next one is open.
fn closed_through(
    record: &Record,
    sources: &[String],
    r: &Registration,
    plan: &Plan,
) -> (Option<Day>, Option<String>) {
    let names: Vec<&str> = sources.iter().map(String::as_str).collect();
    let clock = record.ledger.meta().clock;
    let states = DayStates::new(&record.control, &record.chains, &names, clock);
    let end = end_of_record(record, sources, &states);
    let scored_to =
        r.scored_from.plus(i32::try_from(plan.max_scored_days).unwrap_or(i32::MAX).saturating_sub(1));
    let mut last = None;
    for day in (r.scored_from.0..=scored_to.0).map(Day) {
        if end.is_some_and(|end| day > end) {
            return (
                last,
                Some(format!("the record ends on {}, and nothing will follow", end.unwrap_or(day))),
            );
        }
        match states.state(day) {
            DayState::Closed => last = Some(day),
            DayState::Open(why) => {
                let why: Vec<String> = why.iter().take(3).map(ToString::to_string).collect();
                return (last, Some(why.join("; ")));
            }
        }
    }
    (last, None)
}

/// Where every source said that nothing will ever follow, all later days are closed too; they are no days of the
/// record, which ends with its last call or clock. `None`: more may follow.
fn end_of_record(record: &Record, sources: &[String], states: &DayStates) -> Option<Day> {
    let all_final = !states.partitions.is_empty()
        && states.partitions.iter().all(|p| p.read_through() == ReadThrough::ForEver);
    if !all_final {
        return None;
    }
    let chains = record.chains.iter().filter(|c| sources.contains(&c.source));
    let mut last: Option<Timestamp> = None;
    for chain in chains {
        last = last.max(chain.chunks().filter_map(|(_, c)| c.newest).max());
        if record.ledger.is_simulated() {
            // The day before the clock's own, which has only begun: it is one of the record if a call lies on it.
            let before = |clock: Timestamp| clock.day().plus(-1).start();
            last = last.max(chain.progress().and_then(|p| p.clock).map(before));
        }
    }
    last.map(Timestamp::day)
}
