//! `lastcall ledger export`: what one tool's verdicts rest on, as a small ledger of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastcall_decision::grouped;
use lastcall_ledger::export::{Exported, export};
use lastcall_ledger::store::{self, LocalStore, Location, Store};

use super::{Format, location, of_ledger, open};
use crate::ui::{Exit, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  lastcall ledger export ledger search search-export\n  \
    lastcall ledger export s3://bucket/ledger search search-export --with-arguments\n\n\
    `verify` and `decide` work on the folder as on a ledger, and `decide` gives the same verdict to the byte. The ledger\n\
    is compacted first. What else it holds is left behind: verify says `cannot check` of it (exit 3).\n\n\
    Exit codes: 0 written, 2 refused, 4 something that the tool needs is missing or altered.")]
pub struct ExportArgs {
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    ledger: PathBuf,
    /// The tool.
    tool: String,
    /// A folder that is new or empty, or s3://BUCKET/PREFIX.
    dir: PathBuf,
    /// The tool's calls too, with arguments and outcomes: personal data. Each is proven by its commitment.
    #[arg(long)]
    with_arguments: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Runs it.
pub fn run(args: &ExportArgs) -> anyhow::Result<Exit> {
    let ledger = open(&args.ledger)?;
    let place = location(&args.dir)?;
    let target = target(&place)?;
    let bar = super::super::run::progress::spinner("exporting");
    let done = export(&ledger, &args.tool, &*target, args.with_arguments, &mut |what| bar.message(what));
    bar.clear();
    let done = done.map_err(of_ledger)?;
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&done)?),
        Format::Text => print!("{}", text(&done, &place)),
    }
    Ok(Exit::Yes)
}

fn target(place: &Location) -> anyhow::Result<Arc<dyn Store>> {
    let Location::Folder(folder) = place else { return Ok(store::open(place)?) };
    let refused =
        |what: String| with_exit(Exit::Usage, format!("{}: {what}; nothing was changed", folder.display()));
    if is_filled(folder).map_err(|e| refused(e.to_string()))? {
        return Err(refused(
            "something stands there; an export goes into a new or an empty folder".to_owned(),
        ));
    }
    std::fs::create_dir_all(folder).map_err(|e| refused(e.to_string()))?;
    Ok(Arc::new(LocalStore::open(folder)?))
}

fn is_filled(folder: &Path) -> std::io::Result<bool> {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn noun(files: u64) -> &'static str {
    if files == 1 { "file" } else { "files" }
}

fn text(done: &Exported, place: &Location) -> String {
    use std::fmt::Write as _;
    let mark = &done.mark;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{place}: what the verdicts of `{}` rest on, as of index entry {} ({})",
        mark.tool, mark.index.seq, mark.index.digest
    );
    for (folder, copied) in &mark.copied {
        let _ = writeln!(
            out,
            "  {folder:<8} {:>9} {:<5} {:>14} bytes",
            grouped(copied.files),
            noun(copied.files),
            grouped(copied.bytes)
        );
    }
    if let Some(calls) = &done.calls {
        let _ = writeln!(
            out,
            "  {} calls with arguments, each proven by its commitment; {} were erased or expired; {} are repeats or were \
             never compared, and were left out",
            grouped(calls.calls),
            grouped(calls.gone),
            grouped(calls.unproven)
        );
    }
    let _ = writeln!(out, "left behind:");
    for (folder, files, why) in done.left.each() {
        let _ = writeln!(out, "  {folder:<8} {:>9} {} with {why}", grouped(files), noun(files));
    }
    let _ = writeln!(
        out,
        "The chains are whole, since each entry names the one before it: they show the other tools' names and counts, and no \
         value.\nnext: lastcall ledger verify {place}"
    );
    out
}
