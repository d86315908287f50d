//! From a shape (how many calls a day, how many of them show what) to records. Deterministic by seed: the same shape
//! gives the same bytes. Every call is checked by the comparator before it is written: a call that does not show what
//! it was made for is never written.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, bail};
use lastcall_compare::Category;
use lastcall_contract::Definition;
use lastcall_diff::{Aim, Rng};
use lastcall_event::{Day, Status, Suppression, Timestamp};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::judge::Judge;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// Calls that were made for one purpose are used again, with this many different ones in turn.
const VARIETY: usize = 64;

/// What a tool does to the world: decides how a mirror suppresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Mirrored against a replica.
    Read,
    /// Mirrored as a dry run.
    Write,
    /// Never executed by a mirror.
    Send,
}

impl Effect {
    fn suppression(self) -> Suppression {
        match self {
            Self::Read => Suppression::Replica,
            Self::Write => Suppression::DryRun,
            Self::Send => Suppression::NotExecuted,
        }
    }
}

/// One day of one tool: how many calls, and how many of them show each category. The rest shows nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DayShape {
    /// Calls of the day.
    pub calls: u64,
    /// Calls that show a category; a call shows one at most.
    pub showing: Vec<(Category, u64)>,
}

/// The traffic of one tool.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Tool.
    pub tool_id: String,
    /// Current contract id.
    pub current_id: String,
    /// Candidate contract id.
    pub candidate_id: String,
    /// Current definition.
    pub current: Definition,
    /// Candidate definition.
    pub candidate: Definition,
    /// What the tool does to the world.
    pub effect: Effect,
    /// One entry a day, from the first day on.
    pub days: Vec<DayShape>,
    /// Mean calls a session.
    pub sessions: f64,
    /// How many agents call the tool.
    pub agents: u64,
    /// How production ends the calls, with shares that sum to 1.
    pub outcomes: Vec<(Status, f64)>,
}

/// Everything that one file holds.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The tools, whose calls are merged by time.
    pub tools: Vec<Traffic>,
    /// First UTC day.
    pub from: Day,
    /// Seed.
    pub seed: u64,
    /// How long after its end a day stays open.
    pub lateness_ms: i64,
    /// Write `mirrored_call` records instead of `tool_call`.
    pub mirrored: bool,
}

/// What was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Made {
    /// (tool, what the calls show, how many), sorted.
    pub rows: Vec<(String, String, u64)>,
    /// Call records.
    pub calls: u64,
    /// Clock records.
    pub clocks: u64,
    /// Coverage records: what a mirror sends while it is idle.
    pub coverage: u64,
}

/// Spreads `rate * calls` over days: after each day the total so far is the rate times the calls so far, rounded half
/// up. So no day is off by more than one, and the total by no more than a half.
pub fn spread(rate: f64, calls: &[u64]) -> Vec<u64> {
    let (mut sum, mut given) = (0u64, 0u64);
    calls
        .iter()
        .map(|n| {
            sum += n;
            let target = ((rate * sum as f64 + 0.5).floor().max(0.0) as u64).min(sum);
            let today = target.saturating_sub(given).min(*n);
            given += today;
            today
        })
        .collect()
}

#[derive(Serialize)]
struct CallLine<'a> {
    r#type: &'static str,
    schema_version: u32,
    call_id: String,
    ts: Timestamp,
    tool_id: &'a str,
    contract_id: &'a str,
    arguments: &'a Value,
    fidelity: &'static str,
    outcome: Value,
    envelope: EnvelopeLine<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<UpstreamLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<[Value; 1]>,
}

#[derive(Serialize)]
struct EnvelopeLine<'a> {
    agent_id: &'a str,
    session_id: &'a str,
    run_id: &'a str,
}

#[derive(Serialize)]
struct UpstreamLine {
    from: u64,
    to: u64,
    through: Timestamp,
}

#[derive(Serialize)]
struct ClockLine {
    r#type: &'static str,
    schema_version: u32,
    ts: Timestamp,
}

#[derive(Serialize)]
struct CoverageLine {
    r#type: &'static str,
    schema_version: u32,
    upstream: UpstreamLine,
}

/// A call that has its place in a day but no line yet.
struct Planned {
    ts: Timestamp,
    tool: usize,
    shows: Option<Category>,
    agent: String,
    session: String,
    call_id: String,
}

/// Writes the records of `shape`, day by day.
pub fn write(shape: &Shape, out: &mut dyn Write) -> anyhow::Result<Made> {
    let seeds = Rng::new(shape.seed);
    let mut makers = Vec::new();
    for traffic in &shape.tools {
        makers.push(Maker::new(traffic, seeds.fork(&traffic.tool_id), shape.mirrored)?);
    }
    let days = shape.tools.iter().map(|t| t.days.len()).max().unwrap_or(0);
    let mut made = Made::default();
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut clocks = Clocks { next: shape.from.start().0, mirrored: shape.mirrored, calls_before: 0 };
    let mut numbers = vec![0u64; shape.tools.len()];
    for index in 0..days {
        let start = shape.from.plus(i32::try_from(index)?).start().0;
        let mut planned = Vec::new();
        for (tool, (traffic, number)) in shape.tools.iter().zip(&mut numbers).enumerate() {
            let mut rng = seeds.fork(&format!("day {index} of {}", traffic.tool_id));
            plan_day(shape, tool, traffic, index, start, number, &mut rng, &mut planned)?;
        }
        planned.sort_by(|a, b| (a.ts, a.tool, &a.call_id).cmp(&(b.ts, b.tool, &b.call_id)));
        for call in planned {
            clocks.up_to(call.ts.0, out, &mut made)?;
            let (Some(traffic), Some(maker)) = (shape.tools.get(call.tool), makers.get_mut(call.tool)) else {
                bail!("a call without a tool");
            };
            let label = call.shows.map_or("nothing", Category::as_str);
            maker.line(traffic, &call, made.calls, out)?;
            *counts.entry((traffic.tool_id.clone(), label.to_owned())).or_default() += 1;
            made.calls += 1;
        }
    }
    let end = shape.from.plus(i32::try_from(days)?).start().0 + shape.lateness_ms;
    clocks.up_to(end, out, &mut made)?;
    clocks.write(Timestamp(end + 60_000), out, &mut made)?;
    made.rows = counts.into_iter().map(|((tool, shows), n)| (tool, shows, n)).collect();
    Ok(made)
}

/// The clock records, one an hour. A mirror that had no call since the last one says how far it knows its upstream
/// complete, so that the days of an idle stream close too.
struct Clocks {
    next: i64,
    mirrored: bool,
    calls_before: u64,
}

impl Clocks {
    fn up_to(&mut self, ts: i64, out: &mut dyn Write, made: &mut Made) -> anyhow::Result<()> {
        while self.next <= ts {
            self.write(Timestamp(self.next), out, made)?;
            self.next += HOUR_MS;
        }
        Ok(())
    }

    fn write(&mut self, ts: Timestamp, out: &mut dyn Write, made: &mut Made) -> anyhow::Result<()> {
        if self.mirrored && made.calls == self.calls_before {
            let upstream = UpstreamLine { from: made.calls, to: made.calls, through: ts };
            serde_json::to_writer(
                &mut *out,
                &CoverageLine { r#type: "coverage", schema_version: 1, upstream },
            )?;
            out.write_all(b"\n")?;
            made.coverage += 1;
        }
        self.calls_before = made.calls;
        serde_json::to_writer(&mut *out, &ClockLine { r#type: "clock", schema_version: 1, ts })?;
        out.write_all(b"\n")?;
        made.clocks += 1;
        Ok(())
    }
}

/// Places one tool's calls of one day: evenly spread with a jitter, sessions of neighbours, categories at random.
#[allow(clippy::too_many_arguments)]
fn plan_day(
    shape: &Shape,
    tool: usize,
    traffic: &Traffic,
    index: usize,
    start: i64,
    number: &mut u64,
    rng: &mut Rng,
    planned: &mut Vec<Planned>,
) -> anyhow::Result<()> {
    let Some(day) = traffic.days.get(index).filter(|d| d.calls > 0) else { return Ok(()) };
    let mut shows: Vec<Option<Category>> = Vec::new();
    for (category, n) in &day.showing {
        shows.extend(std::iter::repeat_n(Some(*category), usize::try_from(*n)?));
    }
    let calls = usize::try_from(day.calls)?;
    if shows.len() > calls {
        bail!(
            "{}, day {}: {} calls are to show something but the day has {calls}; lower the rates",
            traffic.tool_id,
            index + 1,
            shows.len()
        );
    }
    shows.resize(calls, None);
    rng.shuffle(&mut shows);
    let gap = DAY_MS / i64::try_from(day.calls)?;
    let go_on = 1.0 - 1.0 / traffic.sessions.max(1.0);
    let (mut session, mut agent, mut sessions) = (String::new(), String::new(), 0u64);
    for (i, shows) in shows.into_iter().enumerate() {
        if session.is_empty() || !rng.chance(go_on) {
            sessions += 1;
            session = format!("{}-{}-{index}-{sessions}", traffic.tool_id, shape.seed);
            agent = format!("agent-{}", 1 + rng.below(traffic.agents.max(1)));
        }
        let jitter = rng.below(u64::try_from(gap.max(1))?) as i64;
        planned.push(Planned {
            ts: Timestamp(start + i as i64 * gap + jitter),
            tool,
            shows,
            agent: agent.clone(),
            session: session.clone(),
            call_id: format!("{}-{}-{number:07}", traffic.tool_id, shape.seed),
        });
        *number += 1;
    }
    Ok(())
}

/// Categories of outcomes that [`candidate_answer`] can show.
const SHOWN_BY_OUTCOMES: [Category; 7] = [
    Category::CandidateError,
    Category::OutcomeStatusChanged,
    Category::OutcomeRecovered,
    Category::OutcomeErrorChanged,
    Category::OutcomeKeyRemoved,
    Category::OutcomeTypeChanged,
    Category::OutcomeKeyAdded,
];

fn known_outcomes() -> String {
    SHOWN_BY_OUTCOMES.map(Category::as_str).join(", ")
}

/// Makes the lines of one tool.
struct Maker {
    judge: Judge,
    rng: Rng,
    mirrored: bool,
    agreeing: Pool,
    showing: BTreeMap<Category, Pool>,
    base: Option<Value>,
}

/// Arguments made for one purpose.
#[derive(Default)]
struct Pool {
    calls: Vec<Value>,
    next: usize,
}

impl Maker {
    fn new(traffic: &Traffic, rng: Rng, mirrored: bool) -> anyhow::Result<Self> {
        let judge = Judge::new(traffic)
            .with_context(|| format!("preparing {} against {}", traffic.current_id, traffic.candidate_id))?;
        let mut maker =
            Self { judge, rng, mirrored, agreeing: Pool::default(), showing: BTreeMap::new(), base: None };
        maker.try_all(traffic)?;
        Ok(maker)
    }

    /// One call of each kind, before anything is written: what cannot be made is found here.
    fn try_all(&mut self, traffic: &Traffic) -> anyhow::Result<()> {
        for day in &traffic.days {
            let shown: u64 = day.showing.iter().map(|(_, n)| n).sum();
            if shown < day.calls && self.agreeing.calls.is_empty() {
                self.arguments(traffic, None)?;
            }
            for (category, _) in day.showing.iter().filter(|(_, n)| *n > 0) {
                if Aim::parse(category.as_str()).is_some() {
                    if !self.showing.contains_key(category) {
                        self.arguments(traffic, Some(*category))?;
                    }
                } else if !self.mirrored {
                    bail!("{category} is seen in outcomes: it needs --mirrored");
                } else if traffic.effect == Effect::Send {
                    bail!(
                        "{category}: {} sends, so a mirror never executes it and no outcome of it can differ",
                        traffic.tool_id
                    );
                } else if !SHOWN_BY_OUTCOMES.contains(category) {
                    bail!(
                        "{category} cannot be simulated; these can, beside those of arguments: {}",
                        known_outcomes()
                    );
                }
            }
        }
        Ok(())
    }

    /// Arguments for a call that shows this, in turn out of a pool of different ones.
    fn arguments(&mut self, traffic: &Traffic, shows: Option<Category>) -> anyhow::Result<Value> {
        let argument = shows.and_then(|c| Aim::parse(c.as_str()).map(|aim| (c, aim)));
        let Some((category, aim)) = argument else {
            if self.agreeing.calls.len() < VARIETY {
                let made = self.make_agreeing(traffic)?;
                self.base = Some(made.clone());
                self.agreeing.calls.push(made.clone());
                return Ok(made);
            }
            return self.agreeing.turn().context("no call was made");
        };
        let full = self.showing.get(&category).is_some_and(|p| p.calls.len() >= VARIETY);
        if !full {
            let made = self.make_showing(traffic, category, aim)?;
            self.showing.entry(category).or_default().calls.push(made.clone());
            return Ok(made);
        }
        self.showing.get_mut(&category).and_then(Pool::turn).context("no call was made")
    }

    fn make_agreeing(&mut self, traffic: &Traffic) -> anyhow::Result<Value> {
        let judge = &self.judge;
        let (old, new) = (&traffic.current.input_schema, &traffic.candidate.input_schema);
        lastcall_diff::agreeing(old, new, &mut self.rng, &mut |call| judge.agrees(call)).with_context(|| {
            format!(
                "no call was found that {} and {} both take without a difference: either every call of this pair shows \
                 one (then state --rate CATEGORY=1), or the schemas are beyond the generator (add `examples` to them)",
                traffic.current_id, traffic.candidate_id
            )
        })
    }

    fn make_showing(&mut self, traffic: &Traffic, category: Category, aim: Aim) -> anyhow::Result<Value> {
        if self.base.is_none() {
            self.base = self.make_agreeing(traffic).ok();
        }
        let judge = &self.judge;
        let (old, new) = (&traffic.current.input_schema, &traffic.candidate.input_schema);
        let base = self.base.as_ref();
        let mut only = |call: &Value| judge.shows(call, category, true);
        let mut also = |call: &Value| judge.shows(call, category, false);
        // First a call that shows this alone; some pairs cannot help showing two things at once.
        lastcall_diff::showing(old, new, aim, base, &mut self.rng, &mut only)
            .or_else(|| lastcall_diff::showing(old, new, aim, base, &mut self.rng, &mut also))
            .with_context(|| {
                format!(
                    "no call was found that {} takes and that shows {category} under {}: look at what changed with \
                     `lastcall try`, and name a category of this pair",
                    traffic.current_id, traffic.candidate_id
                )
            })
    }

    fn line(&mut self, traffic: &Traffic, call: &Planned, n: u64, out: &mut dyn Write) -> anyhow::Result<()> {
        let arguments = self.arguments(traffic, call.shows)?;
        let outcome_aim = call.shows.filter(|c| Aim::parse(c.as_str()).is_none());
        let status = match outcome_aim {
            Some(Category::OutcomeRecovered | Category::OutcomeErrorChanged) => Status::BusinessError,
            Some(_) => Status::Ok,
            None => draw(&traffic.outcomes, &mut self.rng),
        };
        let result = self.result(traffic);
        let mut outcome = answer(status, &result);
        outcome.insert("latency_ms".to_owned(), json!(20 + self.rng.below(400)));
        let candidates = self.mirrored.then(|| {
            let mut row = Map::new();
            row.insert("contract_id".to_owned(), json!(traffic.candidate_id));
            row.insert("input".to_owned(), json!("raw"));
            row.insert("suppression".to_owned(), json!(traffic.effect.suppression()));
            let run = traffic.effect != Effect::Send;
            let refused = !self.judge.candidate_accepts(&arguments);
            let answered = if !run || matches!(status, Status::RateLimited | Status::Timeout) {
                answer(Status::NotRun, &Value::Null)
            } else if refused {
                answer(Status::InvalidArguments, &Value::Null)
            } else {
                candidate_answer(outcome_aim, status, &result)
            };
            row.extend(answered);
            [Value::Object(row)]
        });
        let line = CallLine {
            r#type: if self.mirrored { "mirrored_call" } else { "tool_call" },
            schema_version: 1,
            call_id: call.call_id.clone(),
            ts: call.ts,
            tool_id: &traffic.tool_id,
            contract_id: &traffic.current_id,
            arguments: &arguments,
            fidelity: "raw",
            outcome: Value::Object(outcome),
            envelope: EnvelopeLine {
                agent_id: &call.agent,
                session_id: &call.session,
                run_id: &call.session,
            },
            upstream: self.mirrored.then_some(UpstreamLine { from: n, to: n + 1, through: call.ts }),
            candidates,
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
        Ok(())
    }

    /// A result that current's output schema accepts, or a small one where there is none.
    fn result(&mut self, traffic: &Traffic) -> Value {
        let declared = traffic.current.output_schema.as_ref().and_then(|schema| {
            let judge = &self.judge;
            lastcall_diff::valid(schema, &mut self.rng, &mut |v| judge.output_accepts(v))
        });
        declared.unwrap_or_else(
            || json!({"reference": format!("R-{:06}", self.rng.below(1_000_000)), "state": "done"}),
        )
    }
}

impl Pool {
    fn turn(&mut self) -> Option<Value> {
        let call = self.calls.get(self.next % self.calls.len().max(1)).cloned();
        self.next += 1;
        call
    }
}

fn draw(outcomes: &[(Status, f64)], rng: &mut Rng) -> Status {
    let mut left = (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
    for (status, share) in outcomes {
        if left < *share {
            return *status;
        }
        left -= share;
    }
    outcomes.first().map_or(Status::Ok, |(status, _)| *status)
}

/// The outcome fields for a status.
fn answer(status: Status, result: &Value) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("status".to_owned(), json!(status));
    out.insert("executed".to_owned(), json!(matches!(status, Status::Ok | Status::BusinessError)));
    match status {
        Status::Ok => {
            out.insert("result".to_owned(), result.clone());
        }
        Status::BusinessError => {
            out.insert("error_code".to_owned(), json!("NOT_ALLOWED"));
        }
        Status::PlatformError => {
            out.insert("error_class".to_owned(), json!("InternalError"));
        }
        _ => {}
    }
    out
}

/// What the candidate answers where its outcome is to differ in this way; without one, what production answered.
fn candidate_answer(aim: Option<Category>, status: Status, result: &Value) -> Map<String, Value> {
    let mut changed = result.clone();
    let first = result.as_object().and_then(|o| o.keys().next().cloned());
    match (aim, changed.as_object_mut(), first) {
        (Some(Category::CandidateError), ..) => answer(Status::PlatformError, result),
        (Some(Category::OutcomeStatusChanged), ..) => answer(Status::PermissionDenied, result),
        (Some(Category::OutcomeRecovered), ..) => answer(Status::Ok, result),
        (Some(Category::OutcomeErrorChanged), ..) => {
            let mut out = answer(status, result);
            out.insert("error_code".to_owned(), json!("NOT_FOUND"));
            out
        }
        (Some(Category::OutcomeKeyRemoved), Some(object), Some(key)) => {
            object.remove(&key);
            answer(status, &changed)
        }
        (Some(Category::OutcomeTypeChanged), Some(object), Some(key)) => {
            let other =
                if object.get(&key).is_some_and(Value::is_string) { json!(7) } else { json!("seven") };
            object.insert(key, other);
            answer(status, &changed)
        }
        (Some(Category::OutcomeKeyAdded), Some(object), _) => {
            object.insert("added_key".to_owned(), json!(true));
            answer(status, &changed)
        }
        _ => answer(status, result),
    }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn rates_are_spread_to_within_one_a_day_and_a_half_in_all() {
        for rate in [0.0, 0.001, 0.0049, 0.02, 1.0 / 3.0, 1.0] {
            for per_day in [1u64, 7, 500, 2857] {
                let calls = vec![per_day; 14];
                let days = spread(rate, &calls);
                let total: u64 = days.iter().sum();
                assert!(
                    (total as f64 - rate * (14 * per_day) as f64).abs() <= 0.5 + 1e-9,
                    "{rate} {per_day}"
                );
                for n in days {
                    assert!((n as f64 - rate * per_day as f64).abs() < 1.0 + 1e-9, "{rate} {per_day}");
                    assert!(n <= per_day);
                }
            }
        }
    }
}
