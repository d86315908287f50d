//! `lastcall diff OLD NEW`: what changed between two contracts or two surfaces, how bad it is, and what backs that.

mod batch;
mod bump;
mod calls;
mod sides;
mod toolset;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lastcall_diff::{
    DiffOptions, Direction, SurfaceTool, ToolFacts, diff_contracts, diff_schemas, diff_surfaces,
};
use lastcall_report::findings::{github, junit, sarif};
use lastcall_report::{
    DiffPlaces, DiffReport, Style, diff_changelog, diff_findings, diff_markdown, diff_text,
};

use crate::ui::{Exit, Format};
use sides::{Side, What};

/// The registry's folder where none is named.
const DEFAULT_REGISTRY: &str = "agent-tools";

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall diff old-tool.json new-tool.json\n  \
    lastcall diff tools-v1.json tools-v2.json --format markdown --out diff.md\n  \
    lastcall diff refund@2.0.0 refund@2.1.0 --calls calls.jsonl\n  \
    lastcall diff refund@2.0.0 refund@2.1.0 --require-bump\n  \
    lastcall diff main:refund@2.0.0 refund@2.0.0\n  \
    lastcall diff main:tools.json tools.json --format sarif --out diff.sarif\n  \
    lastcall diff --batch pairs.jsonl > answers.jsonl\n\n\
    Exit codes: 0 compatible or usually compatible, 1 high risk, needs review or breaking,\n\
    2 could not run, or a tool or line could not be read and nothing that was read is worse, or no call of --calls is of\n\
    the tool.\n\
    With --require-bump: 1 the new version's number is too small a step, else 0.")]
pub struct Args {
    /// The old side: a file (a tool of any provider, a tools/list document, a JSON Schema, a toolset), tool_id@version of a
    /// registry, REV:PATH or REV:tool_id@version as a commit of git has it, or `-` for standard input.
    #[arg(required_unless_present = "batch")]
    old: Option<String>,
    /// The new side.
    #[arg(required_unless_present = "batch")]
    new: Option<String>,
    /// Pairs to answer, one JSON object a line: {"id", "old", "new"}, tools or bare schemas; `-` reads standard input.
    /// The answer has a line each: id, class, bump, proven, witness, changes.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["old", "new", "tool", "calls", "changelog", "require_bump", "format"])]
    batch: Option<PathBuf>,
    /// Only this tool, where a side has several.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Where tool_id@version is looked up.
    #[arg(long, value_name = "DIR", env = "LASTCALL_REGISTRY", default_value = DEFAULT_REGISTRY)]
    registry: PathBuf,
    /// Which way the values of bare schemas flow: what callers send, or what they receive. Tools have both.
    #[arg(long, value_enum, default_value = "input")]
    direction: DirectionArg,
    /// Recorded calls, a file or a folder as for `lastcall try`: tried first as the call that breaks, and counted.
    #[arg(long, value_name = "FILE")]
    calls: Option<PathBuf>,
    /// Show the values of recorded calls; without it their place and id. They may be personal data.
    #[arg(long, requires = "calls")]
    show_values: bool,
    /// The runtime fills declared defaults before it validates: a new required argument with a default is then high risk,
    /// not breaking, if the filled call is accepted.
    #[arg(long)]
    fills_defaults: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the answer to a file instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Propose an entry for changelog.md instead.
    #[arg(long, conflicts_with = "format")]
    changelog: bool,
    /// Exit 1 if and only if the new version's number is a smaller step than the changes ask for. Needs contract ids.
    #[arg(long)]
    require_bump: bool,
    /// Seed of generated values; the same seed gives the same answer.
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DirectionArg {
    Input,
    Output,
}

impl From<DirectionArg> for Direction {
    fn from(direction: DirectionArg) -> Self {
        match direction {
            DirectionArg::Input => Self::Input,
            DirectionArg::Output => Self::Output,
        }
    }
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    if let Some(file) = &args.batch {
        return batch::run(&args, file);
    }
    let (Some(old), Some(new)) = (&args.old, &args.new) else { bail!("give OLD and NEW, or --batch FILE") };
    if old == "-" && new == "-" {
        bail!("standard input can be one side only");
    }
    let before = sides::load(old, "old", &args.registry)?.picked(args.tool.as_deref())?;
    let after = sides::load(new, "new", &args.registry)?.picked(args.tool.as_deref())?;
    let recorded = match &args.calls {
        Some(path) => Some(calls::read(path)?),
        None => None,
    };
    let mut report = compare(&args, &before, &after, recorded)?;
    report.try_command = try_command(&args, &before, &after);
    if args.require_bump {
        report.version_step = Some(bump::check(&before, &after, report.surface.bump)?);
    }
    if args.changelog {
        emit(args.out.as_deref(), &diff_changelog(&report, after.consumers()))?;
    } else {
        render(&args, &report, &before, &after)?;
    }
    if let Some(step) = &report.version_step {
        tell!("{}", step.sentence);
        return Ok(if step.enough { Exit::Yes } else { Exit::No });
    }
    Ok(if report.known_to_fail() {
        Exit::No
    } else if report.unreadable() {
        Exit::Usage
    } else {
        Exit::Yes
    })
}

/// The command that holds recorded calls against the same two sides; none where `lastcall try` cannot read one.
fn try_command(args: &Args, before: &Side, after: &Side) -> Option<String> {
    if !(before.can_be_tried() && after.can_be_tried()) {
        return None;
    }
    let mut words = vec!["lastcall".to_owned(), "try".to_owned(), before.label.clone(), after.label.clone()];
    words.push("CALLS".to_owned());
    if let Some(tool) = &args.tool {
        words.extend(["--tool".to_owned(), tool.clone()]);
    }
    let registered = before.version().is_some() || after.version().is_some();
    if registered && args.registry != Path::new(DEFAULT_REGISTRY) {
        words.extend(["--registry".to_owned(), args.registry.display().to_string()]);
    }
    // a name that a shell would read otherwise is not put into a command
    let simple = |word: &String| word.chars().all(|c| c.is_alphanumeric() || "._-/@:+".contains(c));
    words.iter().all(simple).then(|| words.join(" "))
}

fn compare(
    args: &Args,
    before: &Side,
    after: &Side,
    recorded: Option<calls::Recorded>,
) -> anyhow::Result<DiffReport> {
    let direction = Direction::from(args.direction);
    let labels = (before.label.as_str(), after.label.as_str());
    let options =
        DiffOptions { fills_defaults: args.fills_defaults, seed: args.seed, ..DiffOptions::default() };
    if let (Some((old, draft)), Some((new, _))) = (before.schema(direction), after.schema(direction))
        && (before.is_schema() || after.is_schema())
    {
        let calls = recorded.map(|calls| calls.of(args.tool.as_slice(), true, None)).transpose()?;
        let calls = calls.unwrap_or_default();
        let options = DiffOptions { recorded: &calls.values, ..options };
        let mut diff = diff_schemas(old, new, draft, direction, &options)?;
        calls::mark(&mut diff, &[&calls], args.show_values);
        (diff.old, diff.new) = (labels.0.to_owned(), labels.1.to_owned());
        return Ok(DiffReport::of_pair(labels.0, labels.1, ("schema", "schema"), diff));
    }
    for (schema, other) in [(before, after), (after, before)] {
        if schema.is_schema() {
            bail!("{} is a bare schema, and {}", schema.label, other.no_schema(direction));
        }
    }
    let (old, new) = (before.tools(), after.tools());
    if let (What::Tools { tools: _, single: true }, What::Tools { tools: _, single: true }) =
        (&before.what, &after.what)
        && let ([old], [new]) = (old, new)
    {
        let contract = |tool: &SurfaceTool| tool.contract.clone().map_err(|e| anyhow::anyhow!("{e}"));
        let (a, b) = (contract(old)?, contract(new)?);
        let names = args.tool.iter().cloned().chain(before.tool_id().map(str::to_owned));
        let names: Vec<String> =
            names.chain([a.definition.name.clone(), b.definition.name.clone()]).collect();
        let calls = recorded.map(|calls| calls.of(&names, false, before.contract_id())).transpose()?;
        let calls = calls.unwrap_or_default();
        let facts = (old.facts.clone(), new.facts.clone());
        let options = DiffOptions { old: facts.0, new: facts.1, recorded: &calls.values, ..options };
        let mut diff = diff_contracts(&a, &b, &options)?;
        calls::mark(&mut diff, &[&calls], args.show_values);
        return Ok(DiffReport::of_pair(labels.0, labels.1, (&a.definition.name, &b.definition.name), diff));
    }
    let (mut old, mut by_tool) = (old.to_vec(), BTreeMap::new());
    if let Some(mut recorded) = recorded {
        for tool in &mut old {
            // a contract of a registry is called by its tool id, one of a file by its name
            let id = tool.contract.as_ref().ok().map(|c| c.id.as_str()).filter(|id| id.contains('@'));
            let names = id.and_then(|id| id.rsplit_once('@')).map(|(tool_id, _)| tool_id.to_owned());
            let names: Vec<String> = names.into_iter().chain([tool.name.clone()]).collect();
            let calls = recorded.take(&names, id);
            tool.recorded.clone_from(&calls.values);
            by_tool.entry(tool.name.clone()).or_insert(calls);
        }
    }
    let mut surface = diff_surfaces(&old, new, &options);
    for tool in &mut surface.tools {
        let calls: Vec<&calls::OfTool> = tool.old_names.iter().filter_map(|name| by_tool.get(name)).collect();
        tool.diffs.iter_mut().for_each(|diff| calls::mark(diff, &calls, args.show_values));
    }
    Ok(DiffReport::of_surfaces(labels.0, labels.1, surface))
}

fn render(args: &Args, report: &DiffReport, before: &Side, after: &Side) -> anyhow::Result<()> {
    let style = if args.out.is_some() { Style::default() } else { crate::ui::style() };
    let findings = || {
        let places = DiffPlaces { old: before.places(), new: after.places() };
        let mut findings = diff_findings(report, &places);
        let texts: BTreeMap<String, String> =
            [before, after].into_iter().filter_map(|side| side.text.clone()).collect();
        findings.locate(&texts);
        findings
    };
    let text = match args.format {
        Format::Text => diff_text(report, style),
        Format::Json => lastcall_report::to_json(report)?,
        Format::Markdown => diff_markdown(report),
        Format::Sarif => sarif(&findings())?,
        Format::Junit => junit(&findings()).map_err(anyhow::Error::msg)?,
        Format::Github => {
            crate::ui::append_step_summary(&diff_markdown(report))?;
            github(&findings())
        }
    };
    emit(args.out.as_deref(), &text)
}

/// To a file, or to standard output.
fn emit(out: Option<&Path>, text: &str) -> anyhow::Result<()> {
    let Some(path) = out else {
        print!("{text}");
        return Ok(());
    };
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    tell!("wrote {}", path.display());
    Ok(())
}

/// What `tool.yaml` knows of a tool.
fn facts_of(tool: &lastcall_contract::Tool) -> ToolFacts {
    ToolFacts {
        risk_level: Some(tool.risk_level),
        side_effect: Some(tool.side_effect),
        domains: tool.domains.clone(),
        consumers: tool.consumers.clone(),
        errors: tool.errors.clone(),
        historical_sessions: false,
    }
}
