//! `lastcall ledger export`: what one tool's verdicts rest on, as a small ledger of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastcall_decision::grouped;
use lastcall_ledger::LedgerError;
use lastcall_ledger::export::{Exported, check, export_signed};
use lastcall_ledger::store::{self, LocalStore, Location, Store};

use super::sign::signing_key;
use super::{Format, location, of_ledger, open};
use crate::ui::{Exit, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  lastcall ledger export ledger search search-export\n  \
    lastcall ledger export s3://bucket/ledger search search-export --with-arguments\n\n\
    `verify` and `decide` work on the folder as on a ledger, and `decide` gives the same verdict to the byte. The ledger\n\
    is compacted first, with --key signed: give it where compactions of this ledger are signed. What else the ledger holds\n\
    is left behind: verify says `cannot check` of it (exit 3; with --exported 0).\n\n\
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
    /// Sign the head that it rests on with this key (see `keygen`).
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// How to answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Runs it.
pub fn run(args: &ExportArgs) -> anyhow::Result<Exit> {
    let key = args.key.as_deref().map(|key| signing_key(key, &args.ledger)).transpose()?;
    let ledger = open(&args.ledger)?;
    let place = location(&args.dir)?;
    check(&ledger, &args.tool).map_err(of_ledger)?;
    apart(&location(&args.ledger)?, &place)?;
    let (target, made) = target(&place)?;
    let bar = super::super::run::progress::spinner("exporting");
    let each = &mut |what: &str| bar.message(what);
    let done = export_signed(&ledger, &args.tool, &*target, args.with_arguments, key.as_ref(), each);
    bar.clear();
    let done = match done {
        Ok(done) => done,
        Err(error) => {
            // A folder that was made for nothing; with anything in it, it stays.
            if let Some(made) = made {
                let _ = std::fs::remove_dir(made);
            }
            let of_store = matches!(error, LedgerError::Store(_));
            let error = of_ledger(error);
            let what = "an export compacts the ledger first, so both have to be written";
            return Err(if of_store { error.context(what) } else { error });
        }
    };
    if let Some(signer) = &done.unsigned {
        tell!(
            "warning: the export compacted {}, and index entry {} is not signed, as the one before it was, with the key {}: \
             `lastcall ledger head {} --key FILE` signs it; export anew then, or with --key FILE in the first place",
            ledger.place(),
            done.mark.index.seq,
            signer.fingerprint(),
            args.ledger.display()
        );
    }
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&done)?),
        Format::Text => print!("{}", text(&done, &place)),
    }
    Ok(Exit::Yes)
}

/// Refuses a target in the ledger, or one in which the ledger lies.
fn apart(ledger: &Location, target: &Location) -> anyhow::Result<()> {
    let within = match (ledger, target) {
        (Location::Folder(ledger), Location::Folder(target)) => {
            // What is not there yet cannot be asked where it lies: its parents can.
            let there = target.ancestors().find_map(|at| {
                let at = if at.as_os_str().is_empty() { Path::new(".") } else { at };
                Some((at.canonicalize().ok()?, at == target))
            });
            match (ledger.canonicalize(), there) {
                (Ok(ledger), Some((at, whole))) => {
                    at.starts_with(&ledger) || whole && ledger.starts_with(&at)
                }
                _ => false,
            }
        }
        (Location::Bucket { bucket, prefix }, Location::Bucket { bucket: to_bucket, prefix: to_prefix }) => {
            let below = |a: &str, b: &str| b.is_empty() || a == b || a.starts_with(&format!("{b}/"));
            bucket == to_bucket && (below(to_prefix, prefix) || below(prefix, to_prefix))
        }
        _ => false,
    };
    if within {
        return Err(with_exit(
            Exit::Usage,
            format!(
                "{target} lies in the ledger {ledger}, or the ledger in it; an export goes elsewhere; nothing was changed"
            ),
        ));
    }
    Ok(())
}

/// The target, and the folder that had to be made for it.
fn target(place: &Location) -> anyhow::Result<(Arc<dyn Store>, Option<&Path>)> {
    let Location::Folder(folder) = place else {
        let store = store::open(place)?;
        // What the check of conditional writes leaves is no file of anybody.
        if store.list("")?.iter().any(|path| !path.starts_with("probe/")) {
            return Err(with_exit(
                Exit::Usage,
                format!(
                    "{place}: something stands there; an export goes under a new prefix; nothing was changed"
                ),
            ));
        }
        return Ok((store, None));
    };
    let refused =
        |what: String| with_exit(Exit::Usage, format!("{}: {what}; nothing was changed", folder.display()));
    if is_filled(folder).map_err(|e| refused(e.to_string()))? {
        return Err(refused(
            "something stands there; an export goes into a new or an empty folder".to_owned(),
        ));
    }
    let made = (!folder.exists()).then_some(folder.as_path());
    std::fs::create_dir_all(folder).map_err(|e| refused(e.to_string()))?;
    Ok((Arc::new(LocalStore::open(folder)?), made))
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
    if let Some(signer) = &done.signer {
        let _ = writeln!(out, "signed with the key {}", signer.fingerprint());
    }
    let _ = writeln!(out, "left behind:");
    for (folder, files, why) in done.left.each(mark.with_arguments) {
        let _ = writeln!(out, "  {folder:<8} {:>9} {} with {why}", grouped(files), noun(files));
    }
    let _ = writeln!(
        out,
        "The chains are whole, since each entry names the one before it: they show the other tools' names and counts, and no \
         value.\nnext: lastcall ledger verify {place}"
    );
    out
}
