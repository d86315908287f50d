//! `lastcall ledger init | source | redact | verify | compact | head | files | erase | expire | gc`: the record itself.

mod compact;
mod erase;
mod gc;
pub mod redaction;
mod source;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use lastcall_contract::Digest;
use lastcall_ledger::control::{Role, SourceKind};
use lastcall_ledger::entry::FileKind;
use lastcall_ledger::store::Location;
use lastcall_ledger::verify::{Outcome, Verification, verify_with};
use lastcall_ledger::{Ledger, LedgerClock, LedgerError};
use serde_json::json;

use redaction::RedactionArgs;

use super::preset::{MapArgs, PresetArg};
use crate::ui::{Exit, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(
    after_help = "Example: lastcall ledger init ledger && lastcall run --ledger ledger calls.jsonl && \
    lastcall ledger verify ledger"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make an empty ledger in a folder or a bucket.
    #[command(
        after_help = "Examples:\n  lastcall ledger init ledger\n  lastcall ledger init s3://bucket/ledger"
    )]
    Init {
        /// A folder, which is made if it is absent, or s3://BUCKET/PREFIX.
        dir: PathBuf,
        /// Where time comes from: the system, or `clock` records in the input (verdicts then say SIMULATED).
        #[arg(long, value_enum, default_value = "system")]
        clock: Clock,
    },
    /// Register a stream that will be read.
    #[command(after_help = "Examples:\n  \
        lastcall ledger source ledger orders.jsonl --role mirrored-calls --lateness 2h\n  \
        lastcall ledger source ledger traces.jsonl --role tool-calls --preset otlp-json\n  \
        lastcall ledger source ledger audit.jsonl --role tool-calls --map audit.toml")]
    Source {
        /// The ledger: a folder, or s3://BUCKET/PREFIX.
        dir: PathBuf,
        /// The source's name; for a file, its file name.
        name: String,
        /// What its records are taken for.
        #[arg(long, value_enum)]
        role: RoleArg,
        /// What kind of stream it is.
        #[arg(long, value_enum, default_value = "file")]
        kind: Kind,
        /// How its messages are read.
        #[arg(
            long,
            value_enum,
            default_value = "native",
            default_value_if("map", clap::builder::ArgPredicate::IsPresent, "map")
        )]
        preset: PresetArg,
        #[command(flatten)]
        map: MapArgs,
        /// How long after its end a day stays open: 90s, 30m, 1h, 2d.
        #[arg(long, default_value = "1h", value_parser = super::run::duration)]
        lateness: i64,
        #[command(flatten)]
        redaction: RedactionArgs,
    },
    /// Show or change what of a source's records is not kept.
    #[command(
        after_help = "Example: lastcall ledger redact ledger orders.jsonl --redact /arguments/email=hash \
        --redaction-key redaction.key\n\nWithout a rule it shows the rules that hold."
    )]
    Redact {
        /// The ledger.
        dir: PathBuf,
        /// The source's name.
        source: String,
        #[command(flatten)]
        redaction: RedactionArgs,
        /// Keep everything again.
        #[arg(long)]
        none: bool,
    },
    /// Check every chain, file and count.
    #[command(after_help = "Examples:\n  lastcall ledger verify ledger\n  \
        lastcall ledger verify ledger --head $(cat kept-head)\n\n\
        With a head that was kept elsewhere, nothing before it can have been removed or written anew unseen.\n\
        Exit codes: 0 intact, 1 altered or truncated, 3 incomplete or cannot check.")]
    Verify {
        /// The ledger: a folder, or s3://BUCKET/PREFIX.
        dir: PathBuf,
        /// A head that was kept elsewhere, as `lastcall ledger head` prints it.
        #[arg(long, value_name = "DIGEST", value_parser = head_digest)]
        head: Option<Digest>,
        /// How to answer.
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Fold closed days into compacted files and daily facts, so that reading stays as quick as on the first day.
    #[command(after_help = "Example: lastcall ledger compact ledger\n\n\
        It changes no answer, and may run at any time, beside recorders and beside itself. With nothing new it writes\n\
        nothing.")]
    Compact {
        /// The ledger.
        dir: PathBuf,
        /// How to answer.
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Print the head: the digest of the newest index entry, to be kept elsewhere.
    #[command(after_help = "Example: lastcall ledger head ledger > kept-head\n\n\
        Exit codes: 0 printed, 3 the ledger has no index yet (`lastcall ledger compact` writes one).")]
    Head {
        /// The ledger: a folder, or s3://BUCKET/PREFIX.
        dir: PathBuf,
        /// How to answer.
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// List exactly the committed data files, for DuckDB, Polars, Spark or ClickHouse.
    #[command(after_help = "Example: lastcall ledger files ledger --kind results\n\n\
        A glob over results/ would also read files that no entry names (of a run that was stopped).")]
    Files {
        /// The ledger: a folder, or s3://BUCKET/PREFIX.
        dir: PathBuf,
        /// Only files of this kind.
        #[arg(long, value_enum)]
        kind: Option<KindArg>,
        /// How to answer.
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Take somebody's calls out of the record, and say so in it.
    Erase(erase::EraseArgs),
    /// Let files with raw calls and dead letters pass out of the record.
    Expire(erase::ExpireArgs),
    /// Remove files that belong to nothing. Changes nothing unless --delete is given.
    #[command(after_help = "Example: lastcall ledger gc ledger\n\n\
        Removed is what an erasure or an expiry superseded, and what no entry names and none can name any more.")]
    Gc {
        /// The ledger.
        dir: PathBuf,
        /// Remove it.
        #[arg(long)]
        delete: bool,
        /// How to answer.
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Clock {
    System,
    Simulated,
}

/// Roles, as arguments.
#[derive(Clone, Copy, ValueEnum)]
pub enum RoleArg {
    /// Production calls alone.
    ToolCalls,
    /// Calls with what the mirror's candidates made of them.
    MirroredCalls,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::ToolCalls => Self::ToolCalls,
            RoleArg::MirroredCalls => Self::MirroredCalls,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    File,
    Stdin,
    Topic,
}

#[derive(Clone, Copy, ValueEnum)]
enum KindArg {
    Calls,
    Results,
    Dead,
}

/// How answers are printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::Init { dir, clock } => init(&dir, clock),
        Command::Source { dir, name, role, kind, preset, map, lateness, redaction } => {
            let kind = match kind {
                Kind::File => SourceKind::File,
                Kind::Stdin => SourceKind::Stdin,
                Kind::Topic => SourceKind::Topic,
            };
            let (_, text) = map.resolve(Some(preset.into()))?;
            let read = source::Reading { preset: preset.into(), map: text };
            source::register(&dir, &name, role.into(), kind, &read, lateness, &redaction)
        }
        Command::Redact { dir, source, redaction, none } => {
            redaction::redact(&dir, &source, &redaction, none)
        }
        Command::Erase(args) => erase::run_erase(&args),
        Command::Expire(args) => erase::run_expire(&args),
        Command::Gc { dir, delete, format } => gc::run(&dir, delete, format),
        Command::Verify { dir, head, format } => check(&dir, head.as_ref(), format),
        Command::Head { dir, format } => show_head(&dir, format),
        Command::Compact { dir, format } => compact::run(&dir, format),
        Command::Files { dir, kind, format } => files(&dir, kind, format),
    }
}

/// Opens a ledger in a folder or a bucket; an altered record ends the command with 4.
pub fn open(place: &Path) -> anyhow::Result<Ledger> {
    Ledger::open_at(&location(place)?).map_err(of_ledger)
}

fn location(place: &Path) -> anyhow::Result<Location> {
    Location::of(place).map_err(|what| with_exit(Exit::Usage, what))
}

/// An error of a ledger with the exit code that it asks for.
pub fn of_ledger(error: LedgerError) -> anyhow::Error {
    match error {
        LedgerError::Altered { .. } | LedgerError::Missing { .. } => {
            with_exit(Exit::Error, error.to_string())
        }
        other => other.into(),
    }
}

fn init(dir: &Path, clock: Clock) -> anyhow::Result<Exit> {
    let clock = match clock {
        Clock::System => LedgerClock::System,
        Clock::Simulated => LedgerClock::Simulated,
    };
    let ledger = Ledger::init_at(&location(dir)?, clock)?;
    println!("{}: a new ledger, id {}", ledger.place(), ledger.meta().id);
    if clock == LedgerClock::Simulated {
        println!("its time comes from `clock` records; verdicts from it say SIMULATED");
    }
    Ok(Exit::Yes)
}

/// Reads a head as it is given on the command line.
fn head_digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text.trim()).ok_or_else(|| {
        "a head is `sha256:` and 64 hex digits, as `lastcall ledger head DIR` prints it".to_owned()
    })
}

/// Prints the head alone, so that it can be kept elsewhere.
fn show_head(dir: &Path, format: Format) -> anyhow::Result<Exit> {
    let ledger = open(dir)?;
    let Some(head) = ledger.head().map_err(of_ledger)? else {
        tell!(
            "the ledger has no index yet, so it has no head; `lastcall ledger compact {}` writes one",
            dir.display()
        );
        return Ok(Exit::Insufficient);
    };
    let (seq, at) = (head.entry.seq, head.entry.at.to_string());
    match format {
        Format::Json => println!("{}", json!({ "head": head.digest, "seq": seq, "at": at })),
        Format::Text => println!("{}", head.digest),
    }
    Ok(Exit::Yes)
}

fn check(dir: &Path, head: Option<&Digest>, format: Format) -> anyhow::Result<Exit> {
    let ledger = open(dir)?;
    let bar = super::run::progress::spinner("verifying");
    let report = verify_with(&ledger, head, &mut |path| bar.message(path)).map_err(of_ledger)?;
    bar.clear();
    match format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&report)?),
        Format::Text => print!("{}", text(&report)),
    }
    Ok(match report.outcome {
        Outcome::Intact => Exit::Yes,
        Outcome::Altered | Outcome::Truncated => Exit::No,
        Outcome::Incomplete | Outcome::CannotCheck => Exit::Insufficient,
    })
}

fn text(report: &Verification) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for finding in &report.findings {
        let record = finding.record.as_ref().map(|r| format!(" ({r})")).unwrap_or_default();
        let _ = writeln!(out, "{}: {}{record}: {}", finding.outcome.as_str(), finding.place, finding.what);
    }
    for chain in &report.chains {
        let tail = chain.tail.as_ref().map(|d| format!(", tail {d}")).unwrap_or_default();
        let _ = writeln!(out, "chain {}: {} entries{tail}", chain.chain, chain.entries);
    }
    let gone = if report.gone.is_empty() { String::new() } else { format!(", {}", report.gone) };
    let _ = writeln!(
        out,
        "{}{gone}: {} entries, {} objects, {} files, {} rows, {} bytes checked",
        report.outcome.as_str(),
        report.entries,
        report.objects,
        report.files,
        report.rows,
        report.bytes
    );
    let _ = writeln!(out, "{}", report.not_excluded);
    out
}

fn files(dir: &Path, kind: Option<KindArg>, format: Format) -> anyhow::Result<Exit> {
    let place = location(dir)?;
    let ledger = Ledger::open_at(&place).map_err(of_ledger)?;
    let kind = kind.map(|kind| match kind {
        KindArg::Calls => FileKind::Calls,
        KindArg::Results => FileKind::Results,
        KindArg::Dead => FileKind::Dead,
    });
    let mut listed = Vec::new();
    let superseded = ledger.superseded().map_err(of_ledger)?;
    for chain in ledger.partitions().map_err(of_ledger)? {
        for (_, chunk) in chain.chunks() {
            for file in chunk.files.iter().filter(|f| kind.is_none_or(|k| k == f.kind)) {
                listed.extend(superseded.standing(file).map_err(of_ledger)?.file);
            }
        }
    }
    match format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&json!({ "files": listed }))?),
        Format::Text => {
            for file in &listed {
                println!("{}", place.file(&file.path));
            }
        }
    }
    Ok(Exit::Yes)
}
