#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! Real definitions: every one imports, or is refused with a kind, a pointer and a next step; both are counted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lastcall_contract::{Definition, DefinitionError, Pick, Source};
use serde_json::Value;

fn folder() -> Option<PathBuf> {
    let dir = std::env::var_os("LASTCALL_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let found = dir.join("schemas.jsonl").is_file();
    if !found {
        println!("skipped: no real definitions in {} (set LASTCALL_DATA)", dir.display());
    }
    found.then_some(dir)
}

#[derive(Default)]
struct Count {
    read: usize,
    by_source: BTreeMap<&'static str, usize>,
    refused: BTreeMap<&'static str, Vec<String>>,
}

impl Count {
    fn add(&mut self, result: Result<Definition, DefinitionError>) {
        match result {
            Ok(definition) => {
                self.read += 1;
                *self.by_source.entry(definition.source.as_str()).or_default() += 1;
                assert_ne!(definition.source, Source::JsonSchema);
            }
            Err(error) => {
                assert!(!error.file.is_empty() && !error.message.is_empty() && !error.next.is_empty());
                self.refused.entry(error.kind.code()).or_default().push(error.to_string());
            }
        }
    }

    fn print(&self, name: &str) -> usize {
        let refused: usize = self.refused.values().map(Vec::len).sum();
        println!("{name}: {} read {:?}, {refused} refused", self.read, self.by_source);
        for (kind, errors) in &self.refused {
            println!("  {kind}: {}", errors.len());
            for error in errors.iter().take(5) {
                println!("    {error}");
            }
        }
        self.read + refused
    }
}

#[test]
fn every_real_definition_imports_or_says_why() {
    let Some(dir) = folder() else { return };
    let (mut schemas, mut evolution) = (Count::default(), Count::default());
    for (n, line) in std::fs::read_to_string(dir.join("schemas.jsonl")).unwrap().lines().enumerate() {
        schemas.add(Definition::from_text(&format!("schemas.jsonl:{}", n + 1), line, Pick::default()));
    }
    for (n, line) in std::fs::read_to_string(dir.join("evolution.jsonl")).unwrap().lines().enumerate() {
        let change: Value = serde_json::from_str(line).unwrap();
        for side in ["old", "new"] {
            let label = format!("evolution.jsonl:{}:{side}", n + 1);
            evolution.add(Definition::from_text(&label, &change[side].to_string(), Pick::default()));
        }
    }
    assert_eq!(schemas.print("schemas.jsonl"), 2071);
    assert_eq!(evolution.print("evolution.jsonl"), 902);
}
