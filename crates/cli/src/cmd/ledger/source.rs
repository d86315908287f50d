//! `lastcall ledger source`: registers a stream that will be read.

use std::path::Path;

use lastcall_event::Preset;
use lastcall_ledger::control::{Control, Role, SourceKind};
use lastcall_ledger::{LedgerError, names};
use lastcall_record::map_text;

use super::redaction::RedactionArgs;
use super::{of_ledger, open};
use crate::ui::Exit;

/// How a source's messages are read.
pub struct Reading {
    /// The preset.
    pub preset: Preset,
    /// The user's map.
    pub map: Option<String>,
}

/// Registers it.
pub fn register(
    dir: &Path,
    name: &str,
    role: Role,
    kind: SourceKind,
    read: &Reading,
    lateness_ms: i64,
    redaction: &RedactionArgs,
) -> anyhow::Result<Exit> {
    names::check_source_name(name)?;
    if kind == SourceKind::Topic && !is_topic(name) {
        anyhow::bail!(
            "`{name}` is no name that a Kafka topic can have: 1 to 249 of a-z, A-Z, 0-9, `.`, `_` and `-`, and neither `.` nor `..`"
        );
    }
    let ledger = open(dir)?;
    let preset = read.preset;
    let map = match map_text(preset, read.map.as_deref())? {
        Some(text) => Some(ledger.put_object(text.as_bytes()).map_err(of_ledger)?),
        None => None,
    };
    if !ledger.control().map_err(of_ledger)?.sources.contains_key(name)
        && let Some(redaction) = redaction.redaction(dir, &ledger, preset)?
    {
        // Before the source itself: nobody can record it without.
        ledger.redact(name, Some(redaction)).map_err(of_ledger)?;
    }
    let (seq, _) = ledger
        .append_control_with(|state| {
            if state.sources.contains_key(name) {
                return Err(LedgerError::Refused(format!(
                    "source `{name}` is registered already, and a name means one stream for ever; choose another"
                )));
            }
            let (name, map) = (name.to_owned(), map.clone());
            Ok(Control::Source { name, role, source_kind: kind, preset, lateness_ms, map })
        })
        .map_err(of_ledger)?;
    println!("source `{name}` is registered (control entry {seq})");
    Ok(Exit::Yes)
}

/// Kafka's own rule.
fn is_topic(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=249).contains(&name.len()) && name.chars().all(fits) && name != "." && name != ".."
}
