//! `--fix`: the textual changes that the findings carry. A file is written only when the changed text can be read again
//! and every finding that carried a change is gone.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use lastcall_contract::{Document, Pick};
use lastcall_diff::lint::{Edit, apply};

use super::super::contract::{is_read_only, write_file};
use super::gather::{Batch, again};

/// Mends the files of a batch; answers whether anything was written.
pub(super) fn fix(batch: &Batch, dry_run: bool) -> anyhow::Result<bool> {
    let mut by_file: BTreeMap<&str, (Vec<Edit>, usize)> = BTreeMap::new();
    for found in batch.found.iter().filter(|f| !f.edits.is_empty()) {
        let entry = by_file.entry(&found.file).or_default();
        entry.0.extend(found.edits.iter().cloned());
        entry.1 += 1;
    }
    let mut wrote = false;
    for (file, (edits, findings)) in by_file {
        if let Some(frozen) = batch.frozen.get(file) {
            tell!(
                "not mended: {file} is the frozen contract {0}. Publish the corrected definition as a new version: \
                 `lastcall contract correct {0} FILE --registry {1}`.",
                frozen.id,
                frozen.registry
            );
            continue;
        }
        if is_read_only(Path::new(file)) {
            tell!("not mended: {file} is read-only; make it writable first");
            continue;
        }
        let before = again(file)?;
        if batch.texts.get(file) != Some(&before) {
            bail!("{file} was changed while lint looked at it; run it again");
        }
        let Some(after) = apply(&before, &edits) else {
            bail!("{file}: the place of a finding was not found in the text; nothing was written");
        };
        let document = Document::parse(file, &after)?;
        let bare = document.names() == [""];
        let read = if bare {
            vec![document.definition(Pick { name: Some("schema"), source: None })]
        } else {
            document.definitions(None)
        };
        if let Some(Err(error)) = read.into_iter().find(Result::is_err)
            && !batch.found.iter().any(|f| f.file == file && f.rule.name == "unreadable-definition")
        {
            bail!("the mended text could not be read, nothing was written: {error}");
        }
        let what = if findings == 1 { "finding" } else { "findings" };
        if dry_run {
            tell!("would mend {findings} {what} in {file}");
        } else {
            write_file(Path::new(file), &after)?;
            tell!("mended {findings} {what} in {file}");
            wrote = true;
        }
    }
    Ok(wrote)
}
