//! `lastcall plan show`: the plan that is registered for a tool, or a file's with every value resolved.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use lastcall_decision::Plan;
use lastcall_report::TryReport;

use super::super::ledger::{of_ledger, open};
use super::read_text;
use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  lastcall plan show search --ledger ledger\n  \
    lastcall plan show search --ledger ledger --trial --format json\n  \
    lastcall plan show --policy release-policy.yaml")]
pub struct Args {
    /// The tool.
    #[arg(required_unless_present = "policy")]
    tool: Option<String>,
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    #[arg(long, env = "LASTCALL_LEDGER", value_name = "DIR", required_unless_present = "policy")]
    ledger: Option<PathBuf>,
    /// A plan that is not registered yet.
    #[arg(long, value_name = "FILE", conflicts_with = "tool")]
    policy: Option<PathBuf>,
    /// What the calls showed that were tried at the last registration, instead of its plan.
    #[arg(long, conflicts_with = "policy")]
    trial: bool,
    /// How to answer: a plan is JSON as it is; a trial also text.
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    if args.format == Some(Format::Text) && !args.trial {
        bail!("a plan is shown as JSON; --format text is for --trial");
    }
    if let Some(path) = &args.policy {
        let plan = Plan::parse(&read_text(path)?, &path.display().to_string())?;
        tell!("digest {}", plan.digest()?);
        println!("{}", serde_json::to_string_pretty(&plan)?);
        return Ok(Exit::Yes);
    }
    let (Some(tool), Some(dir)) = (&args.tool, &args.ledger) else {
        bail!("name a tool and a ledger, or a file with --policy");
    };
    let ledger = open(dir)?;
    let control = ledger.control_now().map_err(of_ledger)?;
    let found: Vec<_> = control.registrations.iter().filter(|r| r.pair.tool_id == *tool).collect();
    let Some(last) = found.last() else {
        bail!("nothing is registered for `{tool}`; `lastcall plan register {tool}` fixes a plan");
    };
    for r in &found {
        let end = r.end.as_ref().map_or_else(String::new, |e| format!(", ended at {}: {}", e.at, e.reason));
        let by = r.by.as_ref().map_or_else(String::new, |b| format!(" by {b}"));
        tell!(
            "registration {} at {}{by}: {} → {}, scores from {}{end}",
            r.seq,
            r.at,
            r.pair.current,
            r.pair.candidate,
            r.scored_from
        );
    }
    if args.trial {
        let Some(digest) = &last.trial else {
            bail!("no calls were tried at registration {}; `lastcall try` tries some now", last.seq);
        };
        let bytes = ledger.object(digest).map_err(of_ledger)?;
        let report: TryReport = serde_json::from_slice(&bytes).with_context(|| {
            format!("the trial {digest} was stored by another build and is not read by this one")
        })?;
        match args.format {
            Some(Format::Json) => print!("{}", lastcall_report::to_json(&report)?),
            Some(Format::Text) | None => {
                print!("{}", lastcall_report::try_text(&report, crate::ui::style()));
            }
        }
        return Ok(Exit::Yes);
    }
    let bytes = ledger.object(&last.plan).map_err(of_ledger)?;
    let values: serde_json::Value = serde_json::from_slice(&bytes)?;
    tell!("plan of registration {}, digest {}", last.seq, last.plan);
    println!("{}", serde_json::to_string_pretty(&values)?);
    Ok(Exit::Yes)
}
