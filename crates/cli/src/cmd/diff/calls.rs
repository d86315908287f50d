//! Recorded calls for a diff: the arguments of each tool, read as `lastcall try` reads them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use lastcall_event::{Preset, Record, calls_in, decode};
use serde_json::Value;

use crate::cmd::try_calls::files;

/// Arguments by the tool id that the calls carry.
pub struct Recorded {
    label: String,
    by_tool: BTreeMap<String, Vec<Value>>,
}

/// Reads a file, a folder with the folders in it, or standard input. What is no call, or has no arguments that can be read, is
/// counted and told on standard error.
pub fn read(path: &Path) -> anyhow::Result<Recorded> {
    let mut recorded = Recorded { label: path.display().to_string(), by_tool: BTreeMap::new() };
    let mut unread = 0u64;
    for file in files::list(path)? {
        let read = files::for_each_record(&file, |bytes, _| {
            let Some(bytes) = bytes else {
                unread += 1; // too long
                return;
            };
            let preset = Preset::sniff(bytes);
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let inside = if preset == Preset::Provider { calls_in(text) } else { Vec::new() };
            if inside.is_empty() {
                unread += u64::from(!recorded.take_line(bytes, preset));
            }
            for call in inside {
                unread += u64::from(!recorded.take_line(call.as_bytes(), preset));
            }
        });
        read.with_context(|| format!("cannot read {}", files::label(&file)))?;
    }
    if unread > 0 {
        tell!(
            "note: {}: {unread} records are no calls, or cannot be read; `lastcall try` says which",
            recorded.label
        );
    }
    Ok(recorded)
}

impl Recorded {
    fn take_line(&mut self, bytes: &[u8], preset: Preset) -> bool {
        let Ok(decoded) = decode(bytes, preset) else { return false };
        let Record::Call(call) = decoded.record else { return false };
        let Ok(parsed) = lastcall_compare::parse_call(&call) else { return false };
        self.by_tool.entry(call.tool_id.to_string()).or_default().push(parsed.tree.to_value());
        true
    }

    /// The arguments of the calls of the first of these names that has any; with `any`, of the only tool there is.
    ///
    /// # Errors
    /// There are calls, and none of such a name.
    pub fn of(mut self, names: &[String], any: bool) -> anyhow::Result<Vec<Value>> {
        if let Some(found) = names.iter().find_map(|name| self.by_tool.remove(name)) {
            return Ok(found);
        }
        if any && names.is_empty() && self.by_tool.len() <= 1 {
            return Ok(self.by_tool.into_values().next().unwrap_or_default());
        }
        if self.by_tool.is_empty() {
            bail!("{}: no call in it", self.label);
        }
        let known: Vec<&str> = self.by_tool.keys().map(String::as_str).take(12).collect();
        bail!(
            "{}: no call of {}; the calls are of: {}. If one of these is the same tool, name it with --tool",
            self.label,
            names.first().map_or("one tool", String::as_str),
            known.join(", ")
        )
    }

    /// The arguments of the calls of this name.
    pub fn take(&mut self, name: &str) -> Vec<Value> {
        self.by_tool.remove(name).unwrap_or_default()
    }
}
