//! `lastcall simulate`: calls for a pair, with a stated true rate per category and a seed. Byte-identical for the same
//! flags. What it writes is made up; a ledger with a simulated clock reads it.

pub mod judge;
pub mod make;
pub mod scenarios;

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::ValueEnum;
use lastcall_compare::Category;
use lastcall_contract::{Definition, Registry, SideEffect};
use lastcall_event::{Day, Status};

use crate::ui::Exit;
use make::{DayShape, Effect, Made, Shape, Traffic, spread};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall simulate refund.create_request@1.0.0 refund.create_request@2.0.0 --registry agent-tools \\\n      \
    --days 14 --calls-per-day 500 --rate required_added=0.02 --seed 7 --from 2026-06-01 --out calls.jsonl\n  \
    lastcall simulate old.json new.json --rate enum_value_removed=0.005 > calls.jsonl\n  \
    lastcall simulate --scenario worked-example --out calls.jsonl --definitions pair\n\n\
    A rate is spread so that after each day the calls so far that show the category are the rate times the calls so\n\
    far, rounded half up.")]
pub struct Args {
    /// Current contract: an id of the registry, or a file with one definition.
    old: Option<String>,
    /// Candidate contract: an id of the registry, or a file with one definition.
    new: Option<String>,
    /// A traffic that is written down: its pair, days and disagreements.
    #[arg(long, value_enum, conflicts_with_all = ["old", "new", "registry", "rate", "days", "calls_per_day"])]
    scenario: Option<Scenario>,
    /// The registry that OLD and NEW are ids of.
    #[arg(long, value_name = "DIR")]
    registry: Option<PathBuf>,
    /// The tool id in the calls; default: from the contract id, else the definition's name.
    #[arg(long)]
    tool: Option<String>,
    /// read, write or send: how --mirrored suppresses the effect. Default: the registry's, else read.
    #[arg(long)]
    side_effect: Option<String>,
    /// Simulated days.
    #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(u32).range(1..=3660))]
    days: u32,
    /// Calls a day.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    calls_per_day: u64,
    /// True rate of a category: CATEGORY=SHARE, may be repeated. A call shows one category at most.
    #[arg(long, value_name = "CATEGORY=SHARE", value_parser = parse_rate)]
    rate: Vec<(Category, f64)>,
    /// Mean calls a session.
    #[arg(long, default_value_t = 1.3)]
    sessions: f64,
    /// How many agents call.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    agents: u64,
    /// The same seed gives the same bytes.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// First UTC day.
    #[arg(long, default_value = "2026-06-01", value_parser = parse_day)]
    from: Day,
    /// How production ends the calls: STATUS=SHARE,… with shares that sum to 1.
    #[arg(long, default_value = "ok=1", value_parser = parse_outcomes)]
    outcomes: Outcomes,
    /// How long after its end a day stays open; the last clock record lies behind it.
    #[arg(long, default_value = "1h", value_parser = parse_duration)]
    lateness: DurationMs,
    /// Write mirrored_call records, with what the candidate made of each call under suppression.
    #[arg(long)]
    mirrored: bool,
    /// Write here instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also write the pair's two definitions, old.json and new.json, into this folder.
    #[arg(long, value_name = "DIR")]
    definitions: Option<PathBuf>,
}

/// A written-down traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// A refund tool whose free-text reason became a code under a new name: every call shows it.
    Refund,
    /// 40,000 calls over 14 days whose disagreements fall from 410 to 30 a day.
    WorkedExample,
}

/// Shares of statuses.
#[derive(Clone, Debug)]
pub struct Outcomes(Vec<(Status, f64)>);

/// Milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct DurationMs(i64);

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let shape = match args.scenario {
        Some(Scenario::Refund) => scenarios::refund(args.from, args.seed)?,
        Some(Scenario::WorkedExample) => scenarios::worked_example(args.from, args.seed)?,
        None => Shape { tools: vec![pair(&args)?], ..empty(&args) },
    };
    let shape = Shape { mirrored: args.mirrored, lateness_ms: args.lateness.0, ..shape };
    if let (Some(dir), Some(traffic)) = (&args.definitions, shape.tools.first()) {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        for (name, definition) in [("old.json", &traffic.current), ("new.json", &traffic.candidate)] {
            let path = dir.join(name);
            let text = serde_json::to_string_pretty(&definition.document)?;
            std::fs::write(&path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    let made = match &args.out {
        Some(path) => {
            let file = std::fs::File::create(path).with_context(|| {
                format!("cannot write {}; is its folder there, and may you write to it?", path.display())
            })?;
            let mut out = BufWriter::new(file);
            let made = make::write(&shape, &mut out)?;
            out.flush().with_context(|| format!("cannot write {}", path.display()))?;
            made
        }
        None => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            let made = make::write(&shape, &mut out)?;
            out.flush().context("cannot write to standard output")?;
            made
        }
    };
    eprint!("{}", table(&made));
    Ok(Exit::Yes)
}

/// What was made, per tool and category.
pub fn table(made: &Made) -> String {
    let wide = made.rows.iter().map(|(tool, ..)| tool.len()).max().unwrap_or(4).max(4);
    let mut text = format!("{:<wide$}  {:<28} {:>9}\n", "tool", "calls that show", "calls");
    for (tool, shows, n) in &made.rows {
        text.push_str(&format!("{tool:<wide$}  {shows:<28} {n:>9}\n"));
    }
    text.push_str(&format!("{} calls, {} clock records", made.calls, made.clocks));
    if made.coverage > 0 {
        text.push_str(&format!(", {} coverage records of an idle mirror", made.coverage));
    }
    text.push('\n');
    text
}

fn empty(args: &Args) -> Shape {
    Shape {
        tools: Vec::new(),
        from: args.from,
        seed: args.seed,
        lateness_ms: args.lateness.0,
        mirrored: args.mirrored,
    }
}

/// The traffic of any pair.
fn pair(args: &Args) -> anyhow::Result<Traffic> {
    let (Some(old), Some(new)) = (&args.old, &args.new) else {
        bail!("name the pair, OLD and NEW, or a --scenario");
    };
    if !args.sessions.is_finite() || args.sessions < 1.0 {
        bail!("--sessions is a mean number of calls, at least 1");
    }
    let registry = args.registry.as_deref().map(super::contract::load_registry).transpose()?;
    let (current_id, current, stated) = side(old, "1", registry.as_ref())?;
    let (candidate_id, candidate, _) = side(new, "2", registry.as_ref())?;
    let tool_id = args
        .tool
        .clone()
        .or_else(|| Some(current_id.rsplit_once('@')?.0.to_owned()))
        .unwrap_or_else(|| current.name.clone());
    let effect = match &args.side_effect {
        Some(text) => match SideEffect::parse(text) {
            Some(effect) => effect,
            None => bail!("--side-effect {text}: it is read, write or send"),
        },
        None => stated.unwrap_or(SideEffect::Read),
    };
    let calls = vec![args.calls_per_day; args.days as usize];
    Ok(Traffic {
        tool_id,
        current_id,
        candidate_id,
        current,
        candidate,
        effect: effect_of(effect),
        days: days(&calls, &args.rate),
        sessions: args.sessions,
        agents: args.agents,
        outcomes: args.outcomes.0.clone(),
    })
}

/// How a mirror suppresses a tool of this side effect.
pub fn effect_of(side_effect: SideEffect) -> Effect {
    match side_effect {
        SideEffect::Read => Effect::Read,
        SideEffect::Write => Effect::Write,
        SideEffect::Send => Effect::Send,
    }
}

/// One shape a day, with each rate spread over them.
pub fn days(calls: &[u64], rates: &[(Category, f64)]) -> Vec<DayShape> {
    let spreads: Vec<(Category, Vec<u64>)> =
        rates.iter().map(|(c, rate)| (*c, spread(*rate, calls))).collect();
    calls
        .iter()
        .enumerate()
        .map(|(i, calls)| DayShape {
            calls: *calls,
            showing: spreads.iter().map(|(c, days)| (*c, days.get(i).copied().unwrap_or(0))).collect(),
        })
        .collect()
}

/// A contract by id, or a definition by file.
fn side(
    text: &str,
    version: &str,
    registry: Option<&Registry>,
) -> anyhow::Result<(String, Definition, Option<SideEffect>)> {
    if let Some(registry) = registry {
        let (tool, found) = registry.resolve(text).with_context(|| format!("looking for {text}"))?;
        return Ok((found.contract.id.clone(), found.contract.definition.clone(), Some(tool.side_effect)));
    }
    let path = std::path::Path::new(text);
    if !path.is_file() {
        bail!("{text} is no file; to name a contract by its id, add --registry DIR");
    }
    let definition = scenarios::read_definition(path)?;
    Ok((format!("{}@{version}", definition.name), definition, None))
}

fn parse_rate(text: &str) -> Result<(Category, f64), String> {
    let (name, share) = text.split_once('=').ok_or("write CATEGORY=SHARE, such as required_added=0.02")?;
    let category = Category::parse(name.trim()).ok_or_else(|| {
        let known: Vec<&str> = Category::ALL.iter().map(|c| c.as_str()).collect();
        format!("no category is called {name}; there are {}", known.join(", "))
    })?;
    Ok((category, parse_share(share)?))
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("{text}: a share lies between 0 and 1")),
    }
}

fn parse_day(text: &str) -> Result<Day, String> {
    Day::parse(text).ok_or_else(|| format!("{text}: write a day as YYYY-MM-DD"))
}

fn parse_outcomes(text: &str) -> Result<Outcomes, String> {
    const KNOWN: [Status; 6] = [
        Status::Ok,
        Status::BusinessError,
        Status::PermissionDenied,
        Status::RateLimited,
        Status::Timeout,
        Status::PlatformError,
    ];
    let mut shares = Vec::new();
    for part in text.split(',') {
        let (name, share) =
            part.split_once('=').ok_or("write STATUS=SHARE,…, such as ok=0.97,business_error=0.03")?;
        let status = KNOWN.into_iter().find(|s| s.as_str() == name.trim()).ok_or_else(|| {
            let known: Vec<&str> = KNOWN.iter().map(|s| s.as_str()).collect();
            format!("{name}: production ends a simulated call by one of {}", known.join(", "))
        })?;
        shares.push((status, parse_share(share)?));
    }
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    if (sum - 1.0).abs() > 1e-9 {
        return Err(format!("the shares sum to {sum}; they have to sum to 1"));
    }
    Ok(Outcomes(shares))
}

fn parse_duration(text: &str) -> Result<DurationMs, String> {
    let unit = |suffix: &str, ms: i64| {
        let number: i64 = text.strip_suffix(suffix)?.trim().parse().ok()?;
        (0..=100_000).contains(&number).then_some(number * ms)
    };
    unit("h", 3_600_000)
        .or_else(|| unit("d", 86_400_000))
        .or_else(|| unit("m", 60_000))
        .map(DurationMs)
        .ok_or_else(|| format!("{text}: write 30m, 1h or 2d"))
}
