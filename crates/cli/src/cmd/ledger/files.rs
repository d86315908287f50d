//! `lastcall ledger files`: exactly the files that entries name.

use std::path::Path;

use lastcall_ledger::Ledger;
use lastcall_ledger::entry::FileKind;
use serde_json::json;

use super::{Format, KindArg, location, of_ledger};
use crate::ui::Exit;

/// Runs it.
pub fn run(dir: &Path, kind: Option<KindArg>, format: Format) -> anyhow::Result<Exit> {
    let place = location(dir)?;
    let ledger = Ledger::open_at(&place).map_err(of_ledger)?;
    let kind = kind.map(|kind| match kind {
        KindArg::Calls => FileKind::Calls,
        KindArg::Results => FileKind::Results,
        KindArg::Dead => FileKind::Dead,
    });
    let mut listed = Vec::new();
    let superseded = ledger.superseded().map_err(of_ledger)?;
    for chain in ledger.partitions().map_err(of_ledger)? {
        for (_, chunk) in chain.chunks() {
            for file in chunk.files.iter().filter(|f| kind.is_none_or(|k| k == f.kind)) {
                match ledger.export() {
                    None => listed.extend(superseded.standing(file).map_err(of_ledger)?.file),
                    Some(mark) if mark.with_arguments && file.kind == FileKind::Calls => {
                        listed.extend(ledger.exported_calls(file).map_err(of_ledger)?.map(|(file, _)| file));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    if let Some(mark) = ledger.export() {
        tell!(
            "an export of `{}`: results, dead letters and other tools' calls were left behind; its results stand in days/",
            mark.tool
        );
    }
    match format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&json!({ "files": listed }))?),
        Format::Text => {
            for file in &listed {
                println!("{}", place.file(&file.path));
            }
        }
    }
    Ok(Exit::Yes)
}
