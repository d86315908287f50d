//! `lastcall try OLD NEW CALLS`: which calls a changed definition would refuse or change. No registry, no plan, no
//! ledger; never READY.

mod archive;
mod counts;
pub mod files;
pub mod left_out;
mod pieces;
mod reading;
mod trial;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lastcall_compare::{PairConfig, PreparedPair};
use lastcall_contract::{Contract, Document, Pick, Registry};
use lastcall_decision::Plan;
use lastcall_event::Preset;

pub use counts::Showing;
pub use reading::Reading;
pub use trial::Trial;

use super::ledger::open;
use super::preset::MapArgs;
use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall try old-tool.json new-tool.json calls.jsonl\n  \
    lastcall try tools-v1.json tools-v2.json traces/ --tool search_issues --tier T2 --html report.html\n  \
    lastcall try search@1.0.0 search@2.0.0 --ledger ledger\n  \
    zcat calls.jsonl.gz | lastcall try old.json new.json -\n  \
    lastcall try old.json new.json audit.jsonl --map audit.toml\n\n\
    A call is one JSON object a line: Lastcall's tool_call or mirrored_call, the interceptor's record, a batch of OTLP\n\
    traces, a CloudEvent, an OpenAI, Anthropic, Gemini or MCP tool call, or just {\"name\": …, \"arguments\": {…}}. Plain, gzip or zstd. In a .json file\n\
    also indented, or as one list. The answer is never a verdict: nothing was fixed before these calls were seen.\n\n\
    Exit codes: 0 nothing would be refused or changed, 1 something would, 2 could not run, or every call is of another\n\
    tool, 3 no call was found at all, or some could not be read or judged and none is known to break.")]
pub struct Args {
    /// The old definition: a file (MCP, OpenAI, Anthropic, Gemini, a JSON Schema), or tool_id@version of a registry.
    old: String,
    /// The new definition.
    new: String,
    /// The calls: a file, a folder (with the folders in it) of .jsonl, .ndjson and .json files, or `-` for standard
    /// input.
    #[arg(required_unless_present = "ledger", conflicts_with = "ledger")]
    calls: Option<PathBuf>,
    /// The archived calls of a ledger instead: a folder, or s3://BUCKET/PREFIX.
    #[arg(long, value_name = "DIR")]
    ledger: Option<PathBuf>,
    /// Which tool: its name in a file of several definitions, and its id in the calls.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Where tool_id@version is looked up.
    #[arg(long, value_name = "DIR", env = "LASTCALL_REGISTRY", default_value = "agent-tools")]
    registry: PathBuf,
    /// Declared renames, normalization and severity map, as JSON or YAML [of a registry: its normalization.yaml].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say too what a burn-in of this tier over these days would have said.
    #[arg(long, value_name = "TIER", value_parser = ["T1", "T2", "T3", "T4", "T5"], ignore_case = true)]
    tier: Option<String>,
    /// How the lines are read; found out line by line if absent.
    #[arg(long, value_enum, conflicts_with = "ledger")]
    preset: Option<TryPreset>,
    #[command(flatten)]
    map: MapArgs,
    /// How to answer on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the report as one HTML page too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How many of the worst calls to show.
    #[arg(long, value_name = "N", default_value_t = 5)]
    examples: usize,
    /// Show the values of arguments. They may be personal data.
    #[arg(long)]
    show_values: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Html,
}

/// A preset on the command line: those of sources, and what providers write.
#[derive(Clone, Copy, clap::ValueEnum)]
enum TryPreset {
    Native,
    Interceptor,
    Provider,
    OtlpJson,
    OtlpProto,
    Cloudevents,
    Map,
}

impl From<TryPreset> for Preset {
    fn from(given: TryPreset) -> Self {
        match given {
            TryPreset::Native => Self::Native,
            TryPreset::Interceptor => Self::Interceptor,
            TryPreset::Provider => Self::Provider,
            TryPreset::OtlpJson => Self::OtlpJson,
            TryPreset::OtlpProto => Self::OtlpProto,
            TryPreset::Cloudevents => Self::CloudEvents,
            TryPreset::Map => Self::Map,
        }
    }
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let registry = match named(&args.old) || named(&args.new) {
        true => Some(load(&args.registry)?),
        false => None,
    };
    let of = |given: &str, side: &str| match registry.as_ref().filter(|_| named(given)) {
        Some(registry) => registered(registry, &args.registry, given),
        None => from_file(given, args.tool.as_deref(), side),
    };
    let (old, new) = (of(&args.old, "old")?, of(&args.new, "new")?);
    let config = match (&args.config, registry.as_ref().zip(args.old.rsplit_once('@'))) {
        (Some(path), _) => super::pair_config::from_file(path)?,
        (None, Some((registry, (tool_id, _)))) if named(&args.old) => {
            super::pair_config::from_registry(registry, &args.registry, tool_id)?
        }
        _ => PairConfig::default(),
    };
    let pair = PreparedPair::new(&old, &new, &config)?;
    let plan = match &args.tier {
        Some(tier) => Some(tier_plan(tier)?),
        None => None,
    };
    let trial = Trial {
        pair: &pair,
        old: &old,
        new: &new,
        labels: (&args.old, &args.new),
        tool: args.tool.as_deref(),
        current: named(&args.old).then_some(old.id.as_str()),
        candidate_registered: named(&args.new),
        showing: Showing { examples: args.examples, values: args.show_values },
        plan: plan.as_ref(),
    };
    let (preset, map) = args.map.resolve(args.preset.map(Preset::from))?;
    let reading = Reading::of(preset, map.as_deref())?;
    let report = match (&args.ledger, &args.calls) {
        (Some(dir), _) => trial.of_ledger(&open(dir)?)?,
        (None, Some(calls)) => trial.of_files(calls, &reading)?,
        (None, None) => bail!("name the calls: a file, a folder, `-`, or --ledger DIR"),
    };
    if let Some(path) = &args.html {
        std::fs::write(path, lastcall_report::try_page(&report))
            .with_context(|| format!("cannot write {}", path.display()))?;
        tell!("report: {}", path.display());
    }
    match args.format {
        Format::Text => print!("{}", lastcall_report::try_text(&report, crate::ui::style())),
        Format::Json => print!("{}", lastcall_report::to_json(&report)?),
        Format::Html => print!("{}", lastcall_report::try_page(&report)),
    }
    Ok(if report.something_would_change() {
        Exit::No
    } else if report.unresolved > 0 || report.undecodable > 0 || report.compared() == 0 {
        Exit::Insufficient
    } else {
        Exit::Yes
    })
}

/// The plan of a tier, with nothing else set.
fn tier_plan(tier: &str) -> anyhow::Result<Plan> {
    let text = format!("burn_in: {{tier: {}, profile: article}}", tier.to_uppercase());
    Ok(Plan::parse(&text, "--tier")?)
}

/// Whether this names a contract of the registry, not a file.
fn named(given: &str) -> bool {
    !Path::new(given).exists() && given.contains('@')
}

/// Reads the registry. Drift would be exit code 1, which here says that something would break.
fn load(dir: &Path) -> anyhow::Result<Registry> {
    super::contract::load_registry(dir).map_err(|e| anyhow::anyhow!("{e:#}"))
}

/// A definition from a file, or a contract of the registry.
pub(super) fn contract(
    given: &str,
    tool: Option<&str>,
    registry: &Path,
    side: &str,
) -> anyhow::Result<Contract> {
    if named(given) { registered(&load(registry)?, registry, given) } else { from_file(given, tool, side) }
}

/// A contract of the registry.
fn registered(registry: &Registry, dir: &Path, given: &str) -> anyhow::Result<Contract> {
    match registry.contract(given) {
        Some(contract) => Ok(contract.clone()),
        None => bail!(
            "no contract {given} in the registry {0}; `lastcall contract list --registry {0}` shows what there is",
            dir.display()
        ),
    }
}

/// A definition from a file.
fn from_file(given: &str, tool: Option<&str>, side: &str) -> anyhow::Result<Contract> {
    let path = Path::new(given);
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("the {side} definition: cannot read {given}; give a file or tool_id@version")
    })?;
    let document = Document::parse(given, &text)?;
    let name = tool.filter(|t| document.names().contains(t));
    let bare =
        if document.names() == [""] { tool.or(path.file_stem().and_then(|s| s.to_str())) } else { None };
    let pick = Pick { name: name.or(bare), source: None };
    let definition = document.definition(pick).map_err(crate::ui::with_tool_flag)?;
    let id = format!("{}@{side}", definition.name);
    Ok(Contract::new(id, definition))
}
