//! `lastcall run`: calls from a file or standard input into the ledger.

pub mod progress;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use lastcall_compare::ComparisonResult;
use lastcall_record::{RunError, RunOptions, Stage, Summary, run_file, run_stdin};
use serde_json::{Value, json};

use super::ledger::redaction::RedactionArgs;
use super::ledger::{PresetArg, RoleArg, of_ledger, open};
use crate::ui::{Exit, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  lastcall run --ledger ledger calls.jsonl\n  \
    zstdcat calls.jsonl.zst | lastcall run --ledger ledger --source calls-june -\n\n\
    The same command again goes on where the last one stopped, even one that was killed: nothing is recorded twice.\n\
    A last line without an end waits for the rest of it, unless --final says that nothing will follow.")]
pub struct Args {
    /// JSON Lines, plain or packed with gzip or zstd; `-` reads standard input, which is a new source every time.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The ledger: a folder, or s3://BUCKET/PREFIX (see `lastcall ledger init`).
    #[arg(long, env = "LASTCALL_LEDGER", value_name = "DIR")]
    ledger: PathBuf,
    /// The source's name; the file's name if not given. Registered if it is new.
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// How the messages of a new source are read [native].
    #[arg(long, value_enum)]
    preset: Option<PresetArg>,
    /// What a new source is taken for; found from its first calls if not given.
    #[arg(long, value_enum)]
    role: Option<RoleArg>,
    /// How long after its end a day of a new source stays open: 90s, 30m, 1h, 2d [1h].
    #[arg(long, value_parser = duration)]
    lateness: Option<i64>,
    #[command(flatten)]
    redaction: RedactionArgs,
    /// Nothing will ever follow: the last line counts, and every day closes.
    #[arg(long = "final")]
    is_final: bool,
    /// Read to the end and stop; following a growing file comes with the services.
    #[arg(long, value_enum, default_value = "no")]
    follow: Follow,
    /// Close a chunk at this many MiB in memory.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024), hide = true)]
    chunk_mib: u32,
    /// Close a chunk after this many records.
    #[arg(long, hide = true)]
    chunk_records: Option<u64>,
    /// How the summary is printed: text on stderr, or JSON on stdout.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Follow {
    No,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Reads a duration such as 90s, 30m, 1h or 2d, in milliseconds.
pub fn duration(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{text}` is not a duration; write 90s, 30m, 1h or 2d");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(at);
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let unit = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).filter(|ms| *ms <= 366 * 86_400_000).ok_or_else(wrong)
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let Follow::No = args.follow;
    let ledger = open(&args.ledger)?;
    ledger.probe()?;
    let mut options = RunOptions {
        source: args.source,
        preset: args.preset.map(Into::into),
        role: args.role.map(Into::into),
        lateness_ms: args.lateness,
        is_final: args.is_final,
        redaction: args.redaction.redaction(
            &args.ledger,
            &ledger,
            args.preset.map(Into::into).unwrap_or_default(),
        )?,
        key: args.redaction.key(&args.ledger, &ledger)?,
        ..RunOptions::default()
    };
    options.limits.bytes = (args.chunk_mib as usize) << 20;
    if let Some(records) = args.chunk_records {
        options.limits.records = records.max(1);
    }
    let bar = progress::bytes();
    let mut stage = |stage: Stage| bar.at(stage.bytes, stage.total, stage.records);
    let done = if args.file == Path::new("-") {
        run_stdin(&ledger, &options, &mut stage)
    } else {
        run_file(&ledger, &args.file, &options, &mut stage)
    };
    bar.clear();
    let summary = done.map_err(failed)?;
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&as_json(&summary))?),
        Format::Text => eprint!("{}", as_text(&summary, ledger.place())),
    }
    Ok(Exit::Yes)
}

fn failed(error: RunError) -> anyhow::Error {
    match error {
        RunError::Ledger(error) => of_ledger(error),
        RunError::Replaced { .. } => with_exit(Exit::Usage, error.to_string()),
        other => other.into(),
    }
}

fn as_json(summary: &Summary) -> Value {
    let tools: serde_json::Map<String, Value> = summary
        .tools
        .iter()
        .map(|(tool, s)| (tool.clone(), json!({ "calls": s.calls, "results": s.counts })))
        .collect();
    json!({
        "source": summary.source,
        "registered": summary.registered,
        "from": summary.from,
        "to": summary.to,
        "chunks": summary.chunks,
        "heartbeats": summary.heartbeats,
        "added": !summary.is_empty(),
        "balance": summary.balance,
        "unknown_fields": summary.unknown_fields,
        "dead_reasons": summary.dead_reasons,
        "first_dead": summary.first_dead,
        "tools": tools,
        "waiting_bytes": summary.waiting,
        "final": summary.is_final,
        "clocks_ignored": summary.clocks_ignored,
    })
}

/// Tools that are listed one by one.
const LISTED: usize = 20;

fn as_text(summary: &Summary, place: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    let b = &summary.balance;
    if summary.registered {
        let _ = writeln!(out, "source `{}` is new", summary.source);
    }
    if summary.chunks == 0 {
        let _ = writeln!(
            out,
            "nothing new: source `{}` is recorded up to byte {}{}",
            summary.source,
            summary.to,
            if summary.heartbeats > 0 { "; noted that it was read to its end" } else { "" }
        );
    } else {
        let _ = writeln!(
            out,
            "read {}: {} calls, {} dead, {} other, in {} chunk{}",
            b.read,
            b.calls,
            b.dead,
            b.other,
            summary.chunks,
            if summary.chunks == 1 { "" } else { "s" }
        );
        for (code, n) in &summary.dead_reasons {
            let _ = writeln!(out, "  dead: {n} {code} (lastcall ledger files {place} --kind dead)");
        }
        if let Some(first) = &summary.first_dead {
            let _ = writeln!(out, "  the first: {}", lastcall_report::plain(first));
        }
        if summary.dead_reasons.keys().any(|code| code == "missing_field") {
            let _ = writeln!(
                out,
                "  lines of a provider, or just a name and arguments, are for `lastcall try`; `run` needs tool_call events \
                 (schemas/events). Put mended lines into a file of another name"
            );
        }
        if b.dead == b.read && b.read > 0 {
            let what = if b.read == 1 { "the only record" } else { "every record" };
            let _ = writeln!(out, "warning: {what} is dead: nothing of this source is in the record");
        }
        if summary.unknown_fields > 0 {
            let _ = writeln!(out, "  {} fields that this build does not know", summary.unknown_fields);
        }
        if summary.clocks_ignored > 0 {
            let _ = writeln!(
                out,
                "  {} clock records ignored: this ledger's time is the system's (ledger init --clock simulated)",
                summary.clocks_ignored
            );
        }
        if !summary.tools.is_empty() {
            out.push_str(&by_tool(summary));
        }
    }
    if summary.waiting > 0 {
        let _ = writeln!(
            out,
            "the last line ({} bytes) has no end yet and waits for it; --final takes it as it is",
            summary.waiting
        );
    }
    out
}

fn by_tool(summary: &Summary) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    let width = summary.tools.keys().take(LISTED).map(|t| t.chars().count()).max().unwrap_or(0).clamp(4, 40);
    let _ = write!(out, "  {:width$}  {:>10}", "tool", "calls");
    for result in ComparisonResult::ALL {
        let _ = write!(out, "  {:>13}", result.as_str());
    }
    out.push('\n');
    let mut not_compared = 0u64;
    for (index, (tool, s)) in summary.tools.iter().enumerate() {
        not_compared += u64::from(s.counts.rows() == 0);
        if index >= LISTED {
            continue;
        }
        let _ = write!(out, "  {tool:width$}  {:>10}", s.calls);
        for n in [
            s.counts.agreed,
            s.counts.disagreed,
            s.counts.both_rejected,
            s.counts.excluded,
            s.counts.unresolved,
        ] {
            let _ = write!(out, "  {n:>13}");
        }
        out.push('\n');
    }
    if summary.tools.len() > LISTED {
        let _ = writeln!(out, "  and {} more tools (--format json lists all)", summary.tools.len() - LISTED);
    }
    if not_compared > 0 {
        let _ = writeln!(
            out,
            "  {not_compared} tool{} with no observed pair: counted, not compared (lastcall plan observe)",
            if not_compared == 1 { "" } else { "s" }
        );
    }
    out
}
