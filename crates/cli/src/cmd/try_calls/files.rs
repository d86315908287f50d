//! Which files hold calls, and their records one by one: lines, or the values of a `.json` document.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lastcall_record::lines::LineReader;

use super::super::run::progress;
use super::pieces::Pieces;

/// Names that hold calls, before `.gz` or `.zst`.
const ENDS: [&str; 3] = [".jsonl", ".ndjson", ".json"];
/// More files than this, or deeper folders, are no folder of traces.
const MAX_FILES: usize = 100_000;
const MAX_FOLDERS: usize = 32;

/// The files of a folder and of the folders in it, sorted; or the one file, or standard input.
///
/// # Errors
/// A folder cannot be listed, holds no such file, or is too large.
pub fn list(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path.as_os_str() == "-" || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut out = Vec::new();
    let mut folders = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            // links to folders are not followed: they may lead in circles
            if kind.is_dir() {
                if depth >= MAX_FOLDERS {
                    bail!("{}: folders nest more than {MAX_FOLDERS} deep", path.display());
                }
                folders.push((path, depth + 1));
            } else if holds_calls(&path) && path.is_file() {
                out.push(path);
            }
            if out.len() > MAX_FILES {
                bail!("{}: more than {MAX_FILES} files; name a smaller folder", folder.display());
            }
        }
    }
    out.sort();
    if out.is_empty() {
        bail!("{}: no .jsonl, .ndjson or .json file in this folder (plain, .gz or .zst)", path.display());
    }
    Ok(out)
}

fn plain_name(path: &Path) -> String {
    let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    name.to_owned()
}

fn holds_calls(path: &Path) -> bool {
    let name = plain_name(path);
    ENDS.iter().any(|end| name.ends_with(end))
}

/// How a file is called in messages.
pub fn label(path: &Path) -> String {
    if path.as_os_str() == "-" { "stdin".to_owned() } else { path.display().to_string() }
}

/// Gives each record of a file, with the number of its line, to `each`; `None` for one that is too long. `framed`: a file
/// of messages, each with its length before it.
///
/// # Errors
/// The file cannot be read, or not to its end.
pub fn for_each_record(
    path: &Path,
    framed: bool,
    mut each: impl FnMut(Option<&[u8]>, u64),
) -> io::Result<()> {
    let stdin = path.as_os_str() == "-";
    let reader = if stdin { LineReader::stdin()? } else { LineReader::open(path)? };
    let mut number = 0u64;
    if plain_name(path).ends_with(".json") && !framed {
        let mut pieces = Pieces::new(reader.into_input());
        while let Some(piece) = pieces.next_piece()? {
            each((!piece.too_long).then_some(piece.bytes), piece.line);
        }
        return Ok(());
    }
    let mut reader = reader.with_final(true);
    let bar = progress::bytes();
    loop {
        if number.is_multiple_of(1024) {
            bar.at(reader.consumed(), reader.total(), number);
        }
        let line = if framed { reader.next_frame()? } else { reader.next_line()? };
        let Some(line) = line else { break };
        number += 1;
        if framed && !line.terminated {
            let what = format!("it ends within message {number}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        if line.too_long {
            each(None, number);
        } else if framed || !line.bytes.iter().all(u8::is_ascii_whitespace) {
            each(Some(line.bytes), number);
        }
    }
    bar.clear();
    Ok(())
}
