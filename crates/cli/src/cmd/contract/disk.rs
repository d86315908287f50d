//! The registry's folder on disk: who writes to it holds it, and writes by rename. How it is read: [`folder`].

use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use lastcall_contract::{MAX_DOCUMENT_BYTES, Registry, RegistryFiles};
use lastcall_record::registry as folder;
pub use lastcall_record::registry::is_text as is_registry_text;

use crate::ui::{Exit, with_exit};

/// Reads a registry for a command that relies on its contracts: a frozen contract that changed is an error (exit 1).
///
/// # Errors
/// The folder cannot be read, or anything in it is wrong; each problem on its own line with place and next step.
pub fn load_registry(dir: &Path) -> anyhow::Result<Registry> {
    let registry = read(dir)?;
    match folder::unchanged(dir, &registry) {
        Ok(()) => Ok(registry),
        Err(drift) => Err(with_exit(Exit::No, drift.to_string())),
    }
}

/// Reads a registry, drift or not.
pub fn read(dir: &Path) -> anyhow::Result<Registry> {
    let registry = parse(dir, &read_files(dir)?)?;
    for note in registry.notes() {
        tell!("note: {note}");
    }
    Ok(registry)
}

/// Reads a registry from its files.
pub fn parse(dir: &Path, files: &RegistryFiles) -> anyhow::Result<Registry> {
    Ok(folder::parse(dir, files)?)
}

/// The texts of a registry's folder: what makes the contracts. Symbolic links are not followed.
pub fn read_files(dir: &Path) -> anyhow::Result<RegistryFiles> {
    Ok(noted(folder::files(dir)?))
}

/// The same with cases, fixtures, adapters and toolsets.
pub fn read_every_file(dir: &Path) -> anyhow::Result<RegistryFiles> {
    Ok(noted(folder::every_file(dir)?))
}

fn noted(found: folder::Folder) -> RegistryFiles {
    for note in &found.notes {
        tell!("note: {note}");
    }
    found.files
}

/// A registry's folder that one command at a time may write to.
pub struct Held {
    /// The lock is on the open file: the system lets go of it when the command ends, however it ends.
    _open: std::fs::File,
}

/// Waits until no other command writes to the registry. What is read after that is what will be there at writing.
///
/// # Errors
/// There is no such folder, or it cannot be locked.
pub fn hold(dir: &Path) -> anyhow::Result<Held> {
    folder::must_be_there(dir)?;
    // the folder itself, so that nothing is left in it; where that cannot be locked, a hidden file
    let ways: [fn(&Path) -> std::io::Result<std::fs::File>; 2] =
        [|dir| std::fs::File::open(dir), |dir| std::fs::File::create(dir.join(".lock"))];
    let mut failed = None;
    for open in ways {
        let tried = open(dir).and_then(|file| match file.try_lock() {
            Ok(()) => Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => {
                tell!("waiting: another command writes to {}", dir.display());
                file.lock().map(|()| file)
            }
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        });
        match tried {
            Ok(open) => return Ok(Held { _open: open }),
            Err(error) => failed = Some(error),
        }
    }
    let reason = failed.map(anyhow::Error::new).unwrap_or_else(|| anyhow::anyhow!("unknown reason"));
    Err(reason.context(format!("{}: cannot be locked against other commands", dir.display())))
}

/// The text of a file, up to the size of a document.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    Ok(folder::text(path)?)
}

/// Standard input, up to the same size as a file. What is longer is refused by the parser, by its length.
pub fn read_stdin() -> anyhow::Result<String> {
    let limit = u64::try_from(MAX_DOCUMENT_BYTES).unwrap_or(u64::MAX);
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(limit.saturating_add(1))
        .read_to_string(&mut text)
        .context("standard input: cannot be read as UTF-8")?;
    Ok(text)
}

/// Whether the file is there and nobody may write to it.
pub fn is_read_only(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().readonly())
}

/// Whether a file below a folder is reached through a symbolic link.
pub fn is_linked(dir: &Path, path: &str) -> bool {
    let mut at = dir.to_path_buf();
    path.split('/').any(|name| {
        at.push(name);
        at.is_symlink()
    })
}

/// Removes what a writer that was killed left beside this file. Who still writes holds its own.
fn sweep(folder: &Path, name: &str) {
    let beside = format!(".{name}.");
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let process = found.to_str().and_then(|found| found.strip_prefix(&beside));
        let left = process.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
        if left && std::fs::File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            // A failure leaves what was left before; the next write tries again.
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

/// Writes beside, then renames over: a reader sees the old file or the new one. A file that was there keeps its mode; a
/// read-only one is refused. A symbolic link stays; what it leads to is written.
pub fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let real = path.is_symlink().then(|| path.canonicalize()).transpose();
    let real = real.with_context(|| format!("{}: the symbolic link leads nowhere", path.display()))?;
    let path = real.as_deref().unwrap_or(path);
    if is_read_only(path) {
        bail!("{}: is read-only and was not written; make it writable first", path.display());
    }
    let mode = std::fs::metadata(path).ok().map(|found| found.permissions());
    let failed = || format!("{}: cannot be written", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(failed)?;
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("file");
    sweep(folder, name);
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let written = std::fs::File::create(&beside).and_then(|mut file| {
        // Where files cannot be locked, nobody finds this one held, and it is only at risk while two write at once.
        drop(file.try_lock());
        file.write_all(text.as_bytes())?;
        if let Some(mode) = mode {
            file.set_permissions(mode)?;
        }
        file.sync_all()?;
        std::fs::rename(&beside, path)
    });
    if written.is_err() {
        // What is left of a failed write; its own failure changes nothing.
        drop(std::fs::remove_file(&beside));
    }
    written.with_context(failed)
}
