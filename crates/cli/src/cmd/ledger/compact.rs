//! `lastcall ledger compact`: folds closed days, so that reading does not grow with the ledger's age.

use std::path::Path;

use lastcall_decision::grouped;
use lastcall_ledger::index::{Compacted, compact, compact_signed};

use super::sign::signing_key;
use super::{Format, of_ledger, open};
use crate::ui::Exit;

/// Runs it.
pub fn run(dir: &Path, key: Option<&Path>, format: Format) -> anyhow::Result<Exit> {
    let key = key.map(|key| signing_key(key, dir)).transpose()?;
    let ledger = open(dir)?;
    let bar = super::super::run::progress::spinner("compacting");
    let each = &mut |what: &str| bar.message(what);
    let done = match &key {
        Some(key) => compact_signed(&ledger, key, each),
        None => compact(&ledger, each),
    }
    .map_err(of_ledger)?;
    bar.clear();
    match format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&done)?),
        Format::Text => {
            print!("{}", text(&done));
            if let (Some(key), true) = (&key, done.head.is_some()) {
                println!("signed with the key {}", key.public().fingerprint());
            }
        }
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
