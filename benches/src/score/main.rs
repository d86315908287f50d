//! `make score`: what the diff reaches on real and constructed pairs of `../shared/data`, as tables and as
//! `target/figures/diff.json`. Each section is a file of its own: it prints its table and gives its figures.

mod containment;
mod evolution;
mod opinions;
#[path = "../../../crates/diff/tests/oracle/mod.rs"]
mod oracle;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Map, Value};

/// A section: the folder with the data → its figures, merged into one object.
type Section = fn(&Path) -> Result<Map<String, Value>>;

const SECTIONS: [(&str, Section); 3] =
    [("containment", containment::score), ("evolution", evolution::score), ("opinions", opinions::score)];

fn main() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let data = std::env::var_os("LASTCALL_DATA").map_or(root.join("../shared/data"), PathBuf::from);
    if !data.join("containment_draft2020_12.json").exists() {
        println!(
            "score: skipped, the data is not here (set LASTCALL_DATA to the folder with \
             containment_draft2020_12.json)"
        );
        return Ok(());
    }
    // `score NAME…` runs these sections only and leaves the file alone.
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut figures = Map::new();
    for (name, section) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            println!("== {name}");
            figures.extend(section(&data)?);
        }
    }
    if wanted.is_empty() {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        let out = target.join("figures");
        std::fs::create_dir_all(&out)?;
        std::fs::write(out.join("diff.json"), format!("{:#}\n", Value::Object(figures)))?;
        println!("written: target/figures/diff.json");
    }
    Ok(())
}
