//! `--fix`: the textual changes that the findings carry. A file is written only when the changed text can be read again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::bail;
use lastcall_contract::{Document, Pick};
use lastcall_diff::lint::{Edit, Found, apply};

use super::super::contract::{is_read_only, write_file};
use super::gather::{Batch, again};

/// What was mended so far, over all rounds.
#[derive(Default)]
pub(super) struct Mended {
    /// File → findings.
    files: BTreeMap<String, usize>,
    /// What was said of a file that stays as it is.
    left: BTreeSet<String>,
}

impl Mended {
    /// Says it.
    pub(super) fn tell(&self, dry_run: bool) {
        let word = if dry_run { "would mend" } else { "mended" };
        for (file, findings) in &self.files {
            tell!("{word} {} in {file}", crate::ui::count(*findings, "finding"));
        }
    }

    fn leave(&mut self, why: String) {
        if self.left.insert(why.clone()) {
            tell!("{why}");
        }
    }
}

/// Mends the files of a batch; answers whether anything was written.
pub(super) fn fix(batch: &Batch, dry_run: bool, mended: &mut Mended) -> anyhow::Result<bool> {
    let mut by_file: BTreeMap<&str, Vec<&Found>> = BTreeMap::new();
    for found in batch.found.iter().filter(|f| !f.edits.is_empty()) {
        by_file.entry(&found.file).or_default().push(found);
    }
    let mut wrote = false;
    for (file, found) in by_file {
        if let Some(frozen) = batch.frozen.get(file) {
            mended.leave(format!(
                "not mended: {file} is the frozen contract {0}. Publish the corrected definition as a new version: \
                 `lastcall contract correct {0} FILE --registry {1}`.",
                frozen.id, frozen.registry
            ));
            continue;
        }
        if is_read_only(Path::new(file)) {
            mended.leave(format!("not mended: {file} is read-only; make it writable first"));
            continue;
        }
        let before = again(file)?;
        if batch.texts.get(file) != Some(&before) {
            bail!("{file} was changed while lint looked at it; run it again");
        }
        let broken = batch.found.iter().any(|f| f.file == file && f.rule.name == "unreadable-definition");
        let reads = |after: &str| broken || unreadable(file, after).is_none();
        let all: Vec<Edit> = found.iter().flat_map(|f| f.edits.iter().cloned()).collect();
        let (after, findings) = match apply(&before, &all).filter(|after| reads(after)) {
            Some(after) => (after, found.len()),
            // one of them stands in the way of the others
            None => one_by_one(&before, &found, reads, mended),
        };
        if findings == 0 || after == before {
            continue;
        }
        *mended.files.entry(file.to_owned()).or_default() += findings;
        if !dry_run {
            write_file(Path::new(file), &after)?;
            wrote = true;
        }
    }
    Ok(wrote)
}

/// As many findings as go together, in their order; the others are told.
fn one_by_one(
    before: &str,
    found: &[&Found],
    reads: impl Fn(&str) -> bool,
    mended: &mut Mended,
) -> (String, usize) {
    let (mut kept, mut text, mut findings): (Vec<Edit>, String, usize) = (Vec::new(), before.to_owned(), 0);
    for one in found {
        let with: Vec<Edit> = kept.iter().chain(&one.edits).cloned().collect();
        match apply(before, &with).filter(|after| reads(after)) {
            Some(after) => (kept, text, findings) = (with, after, findings + 1),
            None => mended.leave(format!(
                "not mended: {} at {}: {}; the text would not be read again. Mend it by hand",
                one.file, one.pointer, one.message
            )),
        }
    }
    (text, findings)
}

/// Why a text cannot be read as definitions.
fn unreadable(file: &str, text: &str) -> Option<String> {
    let document = match Document::parse(file, text) {
        Ok(document) => document,
        Err(error) => return Some(error.to_string()),
    };
    let read = if document.names() == [""] {
        vec![document.definition(Pick { name: Some("schema"), source: None })]
    } else {
        document.definitions(None)
    };
    read.into_iter().find_map(Result::err).map(|error| error.to_string())
}
