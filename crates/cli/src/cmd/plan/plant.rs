//! `lastcall plan plant`: calls with a known fault. Their ids are committed to the control chain first; then they are
//! appended to a file that is a source. Nothing else makes a call a planted one.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use lastcall_event::Timestamp;
use lastcall_record::plant::{Planted, Planting};

use super::super::ledger::{of_ledger, open};
use super::{observed_pair, read_text};
use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall plan plant search --sample call.json --to calls.jsonl --ledger ledger\n  \
    lastcall plan plant search --calls plants.jsonl --to calls.jsonl --ledger ledger\n\n\
    --calls has one {\"call\": {…}, \"expect\": {\"category\": …, \"severity\": …}} a line; without `expect` it is a\n\
    synthetic call, of which nothing is expected. Each call gets a new call_id, and the ids are committed to the\n\
    control chain before the first line is appended.")]
pub struct Args {
    /// The tool; its pair has to be observed.
    tool: String,
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    #[arg(long, env = "LASTCALL_LEDGER", value_name = "DIR")]
    ledger: PathBuf,
    /// Which candidate, where several are observed.
    #[arg(long, value_name = "CONTRACT")]
    candidate: Option<String>,
    /// Calls with what is expected of them, JSON Lines.
    #[arg(long, value_name = "FILE", required_unless_present = "sample")]
    calls: Option<PathBuf>,
    /// A call that both contracts accept; faults are made of it by what the pair changes.
    #[arg(long, value_name = "FILE", conflicts_with = "calls")]
    sample: Option<PathBuf>,
    /// The file to append to: one that `lastcall run` reads.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// The calls' time [now; in a simulated ledger the calls' own].
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,
    /// Show the calls and write nothing.
    #[arg(long)]
    dry_run: bool,
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "a time such as 2026-06-01T09:30:00Z".to_owned())
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let ledger = open(&args.ledger)?;
    let control = ledger.control_now().map_err(of_ledger)?;
    let pair = observed_pair(&control, &args.tool, args.candidate.as_deref())?;
    let Some(path) = args.calls.as_ref().or(args.sample.as_ref()) else {
        bail!("give --calls FILE or --sample FILE")
    };
    let (text, place) = (read_text(path)?, path.display().to_string());
    let from = match args.calls {
        Some(_) => Planted::Calls(&text, &place),
        None => Planted::Sample(&text, &place),
    };
    let planting = Planting::new(&ledger, &pair, from, args.at.or(ledger.system_now()))?;
    let text: String = planting.records.iter().flat_map(|record| [record, "\n"]).collect();
    if args.dry_run {
        print!("{text}");
        return Ok(Exit::Yes);
    }
    // The file is opened before the commitment, so that a folder that does not exist commits nothing.
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&args.to)
        .with_context(|| format!("{} cannot be appended to", args.to.display()))?;
    let seq = planting.commit(&ledger, &pair).map_err(of_ledger)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(|| {
        format!(
            "{} could not be written; control entry {seq} commits calls that never came",
            args.to.display()
        )
    })?;
    println!(
        "planted {} calls of `{}` in {}, committed by control entry {seq}",
        planting.records.len(),
        pair.tool_id,
        args.to.display()
    );
    for call in &planting.list.calls {
        match call.expect {
            Some(e) => println!("  {} has to come back as {}/{}", call.call_id, e.category, e.severity),
            None => println!("  {} is synthetic", call.call_id),
        }
    }
    println!("next: lastcall run --ledger {} {}", args.ledger.display(), args.to.display());
    println!("days close only when that file too was read past their end; with --final it holds none open");
    Ok(Exit::Yes)
}
