//! `lastcall demo`: three tools over fourteen simulated days, from nothing to verdicts and a report. It runs the same
//! commands as a user would, and shows them; the registry is in the binary, so that it works anywhere.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Parser, ValueEnum};
use lastcall_compare::Category;
use lastcall_contract::{Registry, RegistryFiles, Tool};
use lastcall_decision::{Answer, Verdict};
use lastcall_event::{Day, Status};

use super::simulate::make::{self, DayShape, Shape, Traffic};
use super::simulate::{days, effect_of, table};
use crate::ui::{Exit, style, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  lastcall demo --out target/demo\n\n\
    It writes report.html, verdict.json, ledger/, calls.jsonl and agent-tools/ into the folder. The calls are made up,\n\
    and the ledger's time comes from them: its verdicts say SIMULATED.\n\n\
    Exit codes: 0 the three verdicts are as they should be, 4 they are not.")]
pub struct Args {
    /// Where everything is written; an earlier demo there is replaced.
    #[arg(long, value_name = "DIR", default_value = "target/demo")]
    out: PathBuf,
    /// Show the report in the browser.
    #[arg(long, value_enum, default_value = "no")]
    open: Open,
    /// The same seed gives the same calls.
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Open {
    Yes,
    No,
}

/// The tools and what the demo promises of each.
const PROMISED: [(&str, Answer); 3] = [
    ("orders.lookup", Answer::Ready),
    ("refund.create_request", Answer::NotReady),
    ("sms.send", Answer::Insufficient),
];
const FIRST_DAY: &str = "2026-06-01";
/// Marks a folder that an earlier demo made, and that this one may replace.
const MARK: &str = ".lastcall-demo";

macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../examples/agent-tools/", $path)))),*]
    };
}

/// The registry of `examples/agent-tools`.
const REGISTRY: &[(&str, &str)] = embedded![
    "registry.lock",
    "orders.lookup/tool.yaml",
    "orders.lookup/owner.yaml",
    "orders.lookup/release-policy.yaml",
    "orders.lookup/changelog.md",
    "orders.lookup/schemas/v1.0.0.json",
    "orders.lookup/schemas/v2.0.0.json",
    "refund.create_request/tool.yaml",
    "refund.create_request/owner.yaml",
    "refund.create_request/release-policy.yaml",
    "refund.create_request/changelog.md",
    "refund.create_request/schemas/v1.0.0.json",
    "refund.create_request/schemas/v2.0.0.json",
    "sms.send/tool.yaml",
    "sms.send/owner.yaml",
    "sms.send/release-policy.yaml",
    "sms.send/changelog.md",
    "sms.send/schemas/v1.0.0.json",
    "sms.send/schemas/v2.0.0.json",
];

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let out = &args.out;
    prepare(out)?;
    let at = |name: &str| out.join(name);
    let text = |name: &str| at(name).display().to_string();

    let files: RegistryFiles = REGISTRY.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
    for (path, text) in &files {
        let path = at("agent-tools").join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        write(&path, text)?;
    }
    let registry = Registry::read_checked(&files)?;

    println!("A mirror would have written these calls; here they are made up (seed {}):\n", args.seed);
    let calls = at("calls.jsonl");
    let file = std::fs::File::create(&calls).with_context(|| format!("cannot write {}", calls.display()))?;
    let mut file = BufWriter::new(file);
    let made = make::write(&shape(&registry, args.seed)?, &mut file)?;
    file.flush().with_context(|| format!("cannot write {}", calls.display()))?;
    print!("{}", table(&made));

    let (ledger, agent_tools) = (text("ledger"), text("agent-tools"));
    command(&["ledger", "init", &ledger, "--clock", "simulated"])?;
    for (tool, _) in PROMISED {
        let (old, new) = (format!("{tool}@1.0.0"), format!("{tool}@2.0.0"));
        command(&["plan", "observe", &old, &new, "--registry", &agent_tools, "--ledger", &ledger])?;
        command(&[
            "plan",
            "register",
            tool,
            "--from",
            FIRST_DAY,
            "--registry",
            &agent_tools,
            "--ledger",
            &ledger,
        ])?;
    }
    command(&["run", "--ledger", &ledger, &text("calls.jsonl")])?;

    println!("\n$ lastcall decide --all --ledger {ledger}");
    let verdicts = super::decide::decide_all(super::ledger::open(&at("ledger"))?)?;
    let page = at("report.html");
    write(&page, &lastcall_report::fleet_page("Three tools, fourteen simulated days", &verdicts))?;
    write(&at("verdict.json"), &lastcall_report::to_json(&verdicts)?)?;
    print!("{}", lastcall_report::fleet_text(&verdicts, style()));
    println!("\nreport:  {}\nverdict: {}\nledger:  {ledger}", page.display(), text("verdict.json"));
    println!("next:    lastcall decide refund.create_request --ledger {ledger} --explain");
    if args.open == Open::Yes {
        browse(&page);
    }
    as_promised(&verdicts)
}

fn as_promised(verdicts: &[Verdict]) -> anyhow::Result<Exit> {
    for (tool, promised) in PROMISED {
        let found = verdicts.iter().find(|v| v.tool_id == tool).map(|v| v.verdict);
        if found != Some(promised) {
            let found = found.map_or("no verdict", Answer::as_str);
            return Err(with_exit(
                Exit::Error,
                format!(
                    "the demo promises {} for {tool} and got {found}; please report this",
                    promised.as_str()
                ),
            ));
        }
    }
    Ok(Exit::Yes)
}

/// An empty folder with the mark; only what an earlier demo wrote is removed.
fn prepare(out: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let filled =
        std::fs::read_dir(out).with_context(|| format!("cannot read {}", out.display()))?.next().is_some();
    if filled && !out.join(MARK).is_file() {
        bail!("{} holds files that no demo wrote; name another folder with --out", out.display());
    }
    for folder in ["ledger", "agent-tools"] {
        let folder = out.join(folder);
        if folder.is_dir() {
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
    }
    write(&out.join(MARK), "Made by `lastcall demo`, which replaces what lies here.\n")
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Fourteen days of the three tools, as a mirror would have recorded them.
fn shape(registry: &Registry, seed: u64) -> anyhow::Result<Shape> {
    // A candidate that failed in its first days, was fixed, and now differs in the type of one key now and then.
    let lookups = [
        (9, 0),
        (6, 0),
        (4, 0),
        (2, 0),
        (1, 1),
        (0, 1),
        (0, 1),
        (0, 0),
        (0, 1),
        (0, 0),
        (0, 1),
        (0, 1),
        (0, 0),
        (0, 1),
    ]
    .map(|(failed, other_type)| DayShape {
        calls: 320,
        showing: vec![(Category::CandidateError, failed), (Category::OutcomeTypeChanged, other_type)],
    });
    let refunds = days(&[90; 14], &[(Category::RequiredAdded, 0.06), (Category::EnumValueRemoved, 0.015)]);
    let messages = days(&[12; 14], &[]);
    let tools = [lookups.to_vec(), refunds, messages];
    let mut traffic = Vec::new();
    for ((tool, _), days) in PROMISED.into_iter().zip(tools) {
        let tool = registry.tool(tool).with_context(|| format!("the demo's registry has no {tool}"))?;
        traffic.push(one(tool, days)?);
    }
    let from = Day::parse(FIRST_DAY).context("the first day is no day")?;
    Ok(Shape { tools: traffic, from, seed, lateness_ms: 3_600_000, mirrored: true })
}

fn one(tool: &Tool, days: Vec<DayShape>) -> anyhow::Result<Traffic> {
    let version = |v: &str| tool.version(v).with_context(|| format!("{} has no version {v}", tool.tool_id));
    let (old, new) = (&version("1.0.0")?.contract, &version("2.0.0")?.contract);
    Ok(Traffic {
        tool_id: tool.tool_id.clone(),
        current_id: old.id.clone(),
        candidate_id: new.id.clone(),
        current: old.definition.clone(),
        candidate: new.definition.clone(),
        effect: effect_of(tool.side_effect),
        days,
        sessions: 1.3,
        agents: 3,
        outcomes: vec![(Status::Ok, 0.97), (Status::BusinessError, 0.03)],
    })
}

/// The commands that the demo runs, parsed as the command line parses them.
#[derive(Parser)]
#[command(name = "lastcall")]
enum Step {
    Ledger(super::ledger::Args),
    Plan(super::plan::Args),
    Run(super::run::Args),
}

fn command(words: &[&str]) -> anyhow::Result<()> {
    println!("\n$ lastcall {}", words.join(" "));
    let step = Step::try_parse_from(std::iter::once("lastcall").chain(words.iter().copied()))?;
    let exit = match step {
        Step::Ledger(args) => super::ledger::run(args)?,
        Step::Plan(args) => super::plan::run(args)?,
        Step::Run(args) => super::run::run(args)?,
    };
    if exit != Exit::Yes {
        return Err(with_exit(exit, format!("`lastcall {}` did not succeed", words.join(" "))));
    }
    Ok(())
}

/// Best effort: a machine without a browser still has the page.
fn browse(page: &Path) {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    if std::process::Command::new(opener).arg(page).spawn().is_err() {
        tell!("note: no browser could be started; open {} yourself", page.display());
    }
}
