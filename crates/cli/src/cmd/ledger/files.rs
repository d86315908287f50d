//! `lastcall ledger files`: what entries name, and nothing else.

use std::path::Path;

use clap::ValueEnum;
use lastcall_ledger::Ledger;
use lastcall_ledger::entry::FileKind;
use lastcall_ledger::index::each_named_day;
use serde_json::{Value, json};

use super::{Format, location, of_ledger};
use crate::ui::Exit;

/// Kinds of files, as arguments.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KindArg {
    /// Records as they arrived. Personal data.
    Calls,
    /// One row per (call, pair).
    Results,
    /// What could not be decoded. Personal data.
    Dead,
    /// Compacted days, repeats taken out.
    Days,
}

impl KindArg {
    fn of(kind: FileKind) -> Self {
        match kind {
            FileKind::Calls => Self::Calls,
            FileKind::Results => Self::Results,
            FileKind::Dead => Self::Dead,
        }
    }
}

/// Runs it.
pub fn run(dir: &Path, kind: Option<KindArg>, format: Format) -> anyhow::Result<Exit> {
    let place = location(dir)?;
    let ledger = Ledger::open_at(&place).map_err(of_ledger)?;
    let wanted = |this: KindArg| kind.is_none_or(|kind| kind == this);
    let mut listed: Vec<(String, Value)> = Vec::new();
    if kind != Some(KindArg::Days) {
        let superseded = ledger.superseded().map_err(of_ledger)?;
        for chain in ledger.partitions().map_err(of_ledger)? {
            for (_, chunk) in chain.chunks() {
                for file in chunk.files.iter().filter(|f| wanted(KindArg::of(f.kind))) {
                    let file = match ledger.export() {
                        None => superseded.standing(file).map_err(of_ledger)?.file,
                        Some(mark) if mark.with_arguments && file.kind == FileKind::Calls => {
                            ledger.exported_calls(file).map_err(of_ledger)?.map(|(file, _)| file)
                        }
                        Some(_) => None,
                    };
                    let Some(file) = file else { continue };
                    let shown = serde_json::to_value(&file)?;
                    listed.push((file.path, shown));
                }
            }
        }
    }
    if wanted(KindArg::Days)
        && let Some(head) = ledger.head().map_err(of_ledger)?
    {
        each_named_day(&ledger, &head.entry.body, |_, entry, newest| {
            for file in entry.files.iter().filter(|_| newest) {
                let shown = json!({
                    "kind": "days", "path": file.path, "sha256": file.sha256, "bytes": file.bytes, "rows": file.rows,
                });
                listed.push((file.path.clone(), shown));
            }
        })
        .map_err(of_ledger)?;
    }
    if let Some(mark) = ledger.export() {
        tell!(
            "an export of `{}`: results, dead letters and other tools' calls were left behind; its results stand in days/",
            mark.tool
        );
    }
    match format {
        Format::Json => {
            let files: Vec<Value> = listed.into_iter().map(|(_, shown)| shown).collect();
            println!("{}", serde_json::to_string_pretty(&json!({ "files": files }))?);
        }
        Format::Text => listed.iter().for_each(|(path, _)| println!("{}", place.file(path))),
    }
    Ok(Exit::Yes)
}
