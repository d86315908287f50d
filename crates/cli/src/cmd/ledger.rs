//! `lastcall ledger init | source | redact | verify | compact | keygen | head | export | show | files | erase | expire |
//! gc`: the record itself.

mod compact;
mod erase;
mod export;
mod files;
mod gc;
mod key_file;
pub mod redaction;
mod show;
mod sign;
mod source;
mod verify;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use lastcall_ledger::control::{Role, SourceKind};
use lastcall_ledger::store::{self, Location};
use lastcall_ledger::verify::Opened;
use lastcall_ledger::{Ledger, LedgerClock, LedgerError};

use redaction::RedactionArgs;

use super::preset::{MapArgs, PresetArg};
use crate::ui::{Exit, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(
    after_help = "Example: lastcall ledger init ledger && lastcall run --ledger ledger calls.jsonl && \
    lastcall ledger verify ledger\n\n\
    <DIR> is the ledger, a folder or s3://BUCKET/PREFIX, and the first argument of each; LASTCALL_LEDGER is for `run`,\n\
    `plan`, `decide`, `status` and `try`. verify, head, show, files and decide take an export too."
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
        --redaction-key redaction.key\n\nWithout a rule it shows the rules that hold. Given rules add to them; one with the \
        same tool and pointer\ntakes the place of the one that stood there, and =keep takes it away. The rules that then hold \
        are printed."
    )]
    Redact {
        /// The ledger: a folder, or s3://BUCKET/PREFIX.
        dir: PathBuf,
        /// The source's name.
        source: String,
        #[command(flatten)]
        redaction: RedactionArgs,
        /// Take every rule away: everything is kept again.
        #[arg(long)]
        none: bool,
    },
    /// Check every chain, file and count.
    Verify(verify::Args),
    /// Fold closed days into compacted files and daily facts, so that reading stays as quick as on the first day.
    #[command(after_help = "Example: lastcall ledger compact ledger\n\n\
        It changes no answer, and may run at any time, beside recorders and beside itself. With nothing new it writes\n\
        nothing.\n\n\
        Signed: lastcall ledger compact ledger --key head.key")]
    Compact {
        /// The ledger: a folder, or s3://BUCKET/PREFIX.
        dir: PathBuf,
        /// Sign the newest index entry with this key (see `keygen`).
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// How to answer.
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Make a key that heads are signed with.
    #[command(
        after_help = "Example: lastcall ledger keygen head.key && lastcall ledger compact ledger --key head.key\n\n\
        The private key goes to FILE, which only its owner can read, and is never printed; the public key to FILE.pub.\n\
        Keep FILE where the ledger's owners cannot read it, and FILE.pub where they cannot write."
    )]
    Keygen {
        /// Where the private key is written, outside of every ledger; nothing must stand there.
        file: PathBuf,
    },
    /// Print the head: the digest of the newest index entry, to be kept elsewhere.
    Head(sign::HeadArgs),
    /// Copy what one tool's verdicts rest on into a small ledger of its own.
    Export(export::ExportArgs),
    /// Show what a ledger holds: a summary, or result by result as JSON Lines with hashes.
    Show(show::ShowArgs),
    /// List exactly the committed data files, for DuckDB, Polars, Spark or ClickHouse.
    #[command(after_help = "Example: lastcall ledger files ledger --kind results\n\n\
        A glob over results/ would also read files that no entry names (of a run that was stopped). Of compacted days\n\
        (kind days) the newest revision alone is listed: days repeat what results say, with repeats taken out.")]
    Files {
        /// The ledger: a folder, or s3://BUCKET/PREFIX.
        dir: PathBuf,
        /// Only files of this kind.
        #[arg(long, value_enum)]
        kind: Option<files::KindArg>,
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
        /// The ledger: a folder, or s3://BUCKET/PREFIX.
        dir: PathBuf,
        /// Remove it.
        #[arg(long)]
        delete: bool,
        /// No recorder, erasure or expiry runs on this ledger, here or elsewhere, and none that was stopped goes on: then
        /// nothing is in flight, and files of runs that were stopped are garbage too.
        #[arg(long)]
        no_recorder_runs: bool,
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
        Command::Gc { dir, delete, no_recorder_runs, format } => {
            gc::run(&dir, delete, no_recorder_runs, format)
        }
        Command::Verify(args) => verify::run(&args),
        Command::Keygen { file } => sign::keygen(&file),
        Command::Head(args) => sign::head(&args),
        Command::Compact { dir, key, format } => compact::run(&dir, key.as_deref(), format),
        Command::Export(args) => export::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Files { dir, kind, format } => files::run(&dir, kind, format),
    }
}

/// Opens a ledger in a folder or a bucket; an altered record ends the command with 4.
pub fn open(place: &Path) -> anyhow::Result<Ledger> {
    Ledger::open_at(&location(place)?).map_err(of_ledger)
}

/// Opens a ledger that is to be verified, whatever became of the files at its root.
fn open_broken(place: &Path) -> anyhow::Result<Opened> {
    let location = location(place)?;
    let shown = location.to_string();
    match &location {
        Location::Folder(folder) if !folder.is_dir() => Err(LedgerError::NotALedger(shown).into()),
        _ => Opened::in_store(store::open(&location).map_err(LedgerError::from)?, &shown).map_err(of_ledger),
    }
}

fn location(place: &Path) -> anyhow::Result<Location> {
    Location::of(place).map_err(|what| with_exit(Exit::Usage, what))
}

/// Refuses a tool that an export does not hold.
///
/// # Errors
/// The ledger is the export of another tool.
pub fn only_exported(ledger: &Ledger, tool: &str) -> anyhow::Result<()> {
    match ledger.export() {
        Some(mark) if mark.tool != tool => Err(with_exit(
            Exit::Usage,
            format!(
                "{} is an export of `{}`: what `{tool}` rests on was left behind; ask the ledger that it came from",
                ledger.place(),
                mark.tool
            ),
        )),
        _ => Ok(()),
    }
}

/// An error of a ledger with the exit code that it asks for.
pub fn of_ledger(error: LedgerError) -> anyhow::Error {
    match error.is_of_record() {
        true => with_exit(Exit::Error, error.to_string()),
        false => error.into(),
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
