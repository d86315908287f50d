//! The registry's folder on disk, read whole. Who writes to it holds it and reads it back; that is the command's.

use std::path::{Path, PathBuf};

use lastcall_contract::registry::{LOCK_FILE, wants_file};
use lastcall_contract::{MAX_DOCUMENT_BYTES, Registry, RegistryError, RegistryFiles};

/// More files than this are no registry.
const MAX_FILES: usize = 100_000;
/// Folders nest no deeper than this.
const MAX_FOLDERS: usize = 8;

/// Why a folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system says why.
    #[error("{}: cannot be read", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    /// It is not UTF-8.
    #[error("{}: {what}; save the file as UTF-8", .place.display())]
    NoText {
        /// The file.
        place: PathBuf,
        /// What it is.
        what: &'static str,
        /// Where.
        #[source]
        error: std::string::FromUtf8Error,
    },
    /// It is not there, or too large.
    #[error("{0}")]
    Refused(String),
    /// What its files say does not fit together.
    #[error("the registry {} does not hold together", .0.display())]
    Registry(PathBuf, #[source] RegistryError),
    /// Frozen contracts changed; one line each.
    #[error("{0}")]
    Drift(String),
}

/// A registry's texts by path, and what is worth telling of the folder, a line each.
#[derive(Debug, Default)]
pub struct Folder {
    /// The texts.
    pub files: RegistryFiles,
    /// Symbolic links, which are not followed.
    pub notes: Vec<String>,
}

/// The texts of a registry's folder: what makes the contracts.
///
/// # Errors
/// There is no such folder, or something in it cannot be read.
pub fn files(dir: &Path) -> Result<Folder, FolderError> {
    walk(dir, wants_file)
}

/// The same with cases, fixtures, adapters and toolsets.
///
/// # Errors
/// As [`files`].
pub fn every_file(dir: &Path) -> Result<Folder, FolderError> {
    walk(dir, is_text)
}

/// Whether a file of a registry's folder is text that belongs to it.
pub fn is_text(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default();
    let text = path == LOCK_FILE || matches!(ending, "yaml" | "yml" | "json" | "md");
    text && path.split('/').count() <= MAX_FOLDERS + 1
        && !path.split('/').any(|segment| segment.starts_with('.'))
}

/// A registry from its files.
///
/// # Errors
/// Anything in them is wrong; each problem on its own line with place and next step.
pub fn parse(dir: &Path, files: &RegistryFiles) -> Result<Registry, FolderError> {
    Registry::read(files).map_err(|error| FolderError::Registry(dir.to_owned(), error))
}

/// That no frozen contract changed: what relies on contracts asks first.
///
/// # Errors
/// One did; a line each.
pub fn unchanged(dir: &Path, registry: &Registry) -> Result<(), FolderError> {
    let drift = registry.drift();
    if drift.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = drift.iter().map(|drift| format!("{}: {drift}", dir.display())).collect();
    Err(FolderError::Drift(lines.join("\n")))
}

/// A folder that is there.
///
/// # Errors
/// It is not; the message says how to name it.
pub fn must_be_there(dir: &Path) -> Result<(), FolderError> {
    if dir.is_dir() {
        return Ok(());
    }
    Err(FolderError::Refused(format!(
        "{}: no such folder. Name the registry with --registry DIR or LASTCALL_REGISTRY; \
         `lastcall contract add FILE` begins a new one",
        dir.display()
    )))
}

fn walk(dir: &Path, wanted: fn(&str) -> bool) -> Result<Folder, FolderError> {
    must_be_there(dir)?;
    let failed = |place: &Path, error| FolderError::Read(place.to_owned(), error);
    let mut found = Folder::default();
    let mut stack = vec![(dir.to_path_buf(), String::new(), 0usize)];
    while let Some((folder, prefix, depth)) = stack.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|error| failed(&folder, error))? {
            let entry = entry.map_err(|error| failed(&folder, error))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let kind = entry.file_type().map_err(|error| failed(&entry.path(), error))?;
            if kind.is_dir() {
                if depth < MAX_FOLDERS && wanted(&format!("{path}/x.json")) {
                    stack.push((entry.path(), path, depth + 1));
                }
            } else if wanted(&path) {
                if kind.is_symlink() {
                    found
                        .notes
                        .push(format!("{} is a symbolic link and is not read", entry.path().display()));
                    continue;
                }
                if found.files.len() >= MAX_FILES {
                    let what = format!("{}: more than {MAX_FILES} files, this is no registry", dir.display());
                    return Err(FolderError::Refused(what));
                }
                found.files.insert(path, text(&entry.path())?);
            }
        }
    }
    Ok(found)
}

/// The text of a file, up to the size of a document.
///
/// # Errors
/// It cannot be read, is larger, or is no UTF-8.
pub fn text(path: &Path) -> Result<String, FolderError> {
    let failed = |error| FolderError::Read(path.to_owned(), error);
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if usize::try_from(size).unwrap_or(usize::MAX) > MAX_DOCUMENT_BYTES {
        let what =
            format!("{}: {size} bytes, more than {MAX_DOCUMENT_BYTES}; split the file", path.display());
        return Err(FolderError::Refused(what));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let utf16 = matches!(bytes.as_slice(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
    let what = if utf16 { "UTF-16, not UTF-8" } else { "not UTF-8" };
    String::from_utf8(bytes).map_err(|error| FolderError::NoText { place: path.to_owned(), what, error })
}
