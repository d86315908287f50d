//! `lastcall ledger compact`: folds closed days, so that reading does not grow with the ledger's age.

use std::path::Path;

use lastcall_decision::grouped;
use lastcall_ledger::index::{Compacted, compact};

use super::{Format, of_ledger, open};
use crate::ui::Exit;

/// Runs it.
pub fn run(dir: &Path, format: Format) -> anyhow::Result<Exit> {
    let ledger = open(dir)?;
    let bar = super::super::run::progress::spinner("compacting");
    let done = compact(&ledger, &mut |what| bar.message(what)).map_err(of_ledger)?;
    bar.clear();
    match format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&done)?),
        Format::Text => print!("{}", text(&done)),
    }
    Ok(Exit::Yes)
}

fn text(done: &Compacted) -> String {
    let head = match (done.head, &done.digest) {
        (Some(seq), Some(digest)) => format!("index entry {seq}, {digest}"),
        _ => "none".to_owned(),
    };
    if done.entries == 0 {
        return format!("nothing new since the last time; nothing was written\nhead: {head}\n");
    }
    let revised = match done.revised {
        0 => String::new(),
        n => format!(", {} of them again because late calls came", grouped(n)),
    };
    format!(
        "folded {} entries: {} tool days{revised}, {} rows in {} files, {} bytes\nhead: {head}\n",
        grouped(done.folded),
        grouped(done.days),
        grouped(done.rows),
        grouped(done.files),
        grouped(done.bytes),
    )
}
