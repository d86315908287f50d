//! `lastcall ledger gc`: removes what provably belongs to nothing. Dry unless `--delete` is given.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use lastcall_ledger::gc::{Why, gc_with};
use serde_json::json;

use super::{Format, of_ledger, open};
use crate::ui::Exit;

/// A write that was begun so long ago is not going on any more.
const CUT_OFF: Duration = Duration::from_secs(24 * 3600);

/// Runs it.
pub fn run(dir: &Path, delete: bool, alone: bool, format: Format) -> anyhow::Result<Exit> {
    let ledger = open(dir)?;
    let found = gc_with(&ledger, delete, alone, &mut |_| {}).map_err(of_ledger)?;
    let (cut_off, begun) = unfinished(dir)?;
    if delete {
        for path in &cut_off {
            std::fs::remove_file(dir.join(path))
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    let shown =
        |paths: &[PathBuf]| -> Vec<String> { paths.iter().map(|p| p.display().to_string()).collect() };
    if format == Format::Json {
        let mut out = serde_json::to_value(&found)?;
        out["cut_off"] = json!(shown(&cut_off));
        out["begun"] = json!(shown(&begun));
        println!("{}", serde_json::to_string_pretty(&out)?);
        return Ok(Exit::Yes);
    }
    for garbage in &found.garbage {
        match &garbage.why {
            Why::NotNamed { entry } => println!("{}: {entry} stands and does not name it", garbage.path),
            Why::Stopped { entry } => println!("{}: {entry} never came: its run was stopped", garbage.path),
            Why::Superseded { seq } => println!("{}: erased or expired by control entry {seq}", garbage.path),
        }
    }
    for path in shown(&cut_off) {
        println!("{path}: a write that was cut off more than a day ago");
    }
    for left in &found.left {
        println!("left: {}: {}", left.path, left.why);
    }
    for path in shown(&begun) {
        println!("left: {path}: a write that was begun in the last day");
    }
    let n = found.garbage.len() + cut_off.len();
    let files = if n == 1 { "file" } else { "files" };
    let personal = found.left.iter().filter(|left| left.personal).count();
    match (n, delete) {
        (0, _) if personal > 0 => {
            println!("nothing that is surely garbage; {} files belong to the record", found.kept)
        }
        (0, _) => println!("no garbage; {} files belong to the record", found.kept),
        (_, true) => println!("{n} {files} removed; {} belong to the record", found.kept),
        (_, false) => println!(
            "{n} {files} could be removed; {} belong to the record. Nothing was changed: --delete removes them",
            found.kept
        ),
    }
    if personal > 0 {
        let (files, them) = if personal == 1 { ("file", "it") } else { ("files", "them") };
        println!(
            "{personal} {files} that no entry names may hold personal data, and no erasure and no expiry reaches {them}: of a \
             run that was stopped, or in flight. When no recorder, erasure or expiry runs on this ledger, `lastcall ledger gc \
             {} --delete --no-recorder-runs` removes what such runs left",
            dir.display()
        );
    }
    println!("Objects and entries are never removed: a command that is running may be about to name one.");
    Ok(Exit::Yes)
}

/// Writes to a local disk that did not come to an end: (more than a day ago, since then). A file is written under a name
/// with `#` and a number, and gets its own name when it is whole.
fn unfinished(dir: &Path) -> anyhow::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    let mut folders: Vec<PathBuf> = ["calls", "results", "dead", "objects", "chains", "days", "states"]
        .iter()
        .map(|f| dir.join(f))
        .collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let staged = name
                .rsplit_once('#')
                .is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
            // Gone meanwhile: it came to its end.
            let Some(about) =
                Some(entry.metadata()).and_then(Result::ok).filter(|_| kind.is_file() && staged)
            else {
                continue;
            };
            let age = about.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            let relative = path.strip_prefix(dir).unwrap_or(&path).to_path_buf();
            if age.is_some_and(|age| age > CUT_OFF) { old.push(relative) } else { new.push(relative) }
        }
    }
    old.sort();
    new.sort();
    Ok((old, new))
}
