//! Recorded calls for a diff: the arguments of each tool, read as `lastcall try` reads them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use lastcall_diff::{ContractDiff, WitnessFrom};
use lastcall_event::{Day, NO_TIME, Preset, Record, calls_in, decode};
use serde_json::Value;

use crate::cmd::try_calls::files;
use crate::cmd::try_calls::left_out::LeftOut;

/// Calls by the tool id that they carry.
pub struct Recorded {
    label: String,
    by_tool: BTreeMap<String, Vec<Call>>,
}

struct Call {
    contract_id: Option<String>,
    day: Option<Day>,
    call_id: String,
    place: String,
    arguments: Value,
}

/// The calls of one tool: their arguments, and beside each where it stands.
#[derive(Default)]
pub struct OfTool {
    /// The arguments.
    pub values: Vec<Value>,
    places: Vec<String>,
}

/// Reads a file, a folder with the folders in it, or standard input. What is no call, or has no arguments that can be read, is
/// counted and told on standard error.
pub fn read(path: &Path) -> anyhow::Result<Recorded> {
    let mut recorded = Recorded { label: path.display().to_string(), by_tool: BTreeMap::new() };
    let mut unread = 0u64;
    for file in files::list(path)? {
        let label = files::label(&file);
        let read = files::for_each_record(&file, false, |bytes, number| {
            let Some(bytes) = bytes else {
                unread += 1; // too long
                return;
            };
            let place = || format!("{label}:{number}");
            let preset = Preset::sniff(bytes);
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let inside = if preset == Preset::Provider { calls_in(text) } else { Vec::new() };
            if inside.is_empty() {
                unread += u64::from(!recorded.take_line(bytes, preset, place()));
            }
            for call in inside {
                unread += u64::from(!recorded.take_line(call.as_bytes(), preset, place()));
            }
        });
        read.with_context(|| format!("cannot read {label}"))?;
    }
    if unread > 0 {
        let what = if unread == 1 { "record is no call, or" } else { "records are no calls, or" };
        tell!("note: {}: {unread} {what} cannot be read; `lastcall try` says which", recorded.label);
    }
    Ok(recorded)
}

impl Recorded {
    fn take_line(&mut self, bytes: &[u8], preset: Preset, place: String) -> bool {
        let Ok(decoded) = decode(bytes, preset) else { return false };
        let Record::Call(call) = decoded.record else { return false };
        let Ok(parsed) = lastcall_compare::parse_call(&call) else { return false };
        self.by_tool.entry(call.tool_id.to_string()).or_default().push(Call {
            contract_id: call.contract_id.as_deref().map(str::to_owned),
            day: (call.ts != NO_TIME).then(|| call.ts.day()),
            call_id: call.call_id.to_string(),
            place,
            arguments: parsed.tree.to_value(),
        });
        true
    }

    /// The calls of the first of these names that has any; with `any`, of the only tool there is. Left out, and told on
    /// standard error: calls that name another contract than `current`, and repeats of a call id.
    ///
    /// # Errors
    /// There are calls, and none of such a name.
    pub fn of(mut self, names: &[String], any: bool, current: Option<&str>) -> anyhow::Result<OfTool> {
        if names.iter().any(|name| self.by_tool.contains_key(name)) {
            return Ok(self.take(names, current));
        }
        if any && names.is_empty() && self.by_tool.len() <= 1 {
            let only: Vec<String> = self.by_tool.keys().cloned().collect();
            return Ok(self.take(&only, current));
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

    /// The calls of the first of these names that has any; none is no error.
    pub fn take(&mut self, names: &[String], current: Option<&str>) -> OfTool {
        let Some(name) = names.iter().find(|name| self.by_tool.contains_key(*name)) else {
            return OfTool::default();
        };
        let (mut out, mut left) = (OfTool::default(), LeftOut::default());
        for call in self.by_tool.remove(name).unwrap_or_default() {
            if left.takes_parts(current, call.contract_id.as_deref(), call.day, &call.call_id) {
                out.values.push(call.arguments);
                let id = if call.call_id.is_empty() { "" } else { ", call_id " };
                out.places.push(format!("{}{id}{}", call.place, call.call_id));
            }
        }
        for note in left.notes(current) {
            tell!("note: {}: {name}: {note}", self.label);
        }
        out
    }
}

/// Says at each recorded call of a diff where it stands among these calls, and takes its values away unless they are to be
/// shown.
pub fn mark(diff: &mut ContractDiff, of: &[&OfTool], show_values: bool) {
    for witness in diff.witnesses_mut().filter(|w| w.from == WitnessFrom::Recorded) {
        let mut all = of.iter().flat_map(|calls| calls.values.iter().zip(&calls.places));
        let found = all.find(|(value, _)| Some(*value) == witness.value.as_ref());
        witness.place = found.map(|(_, place)| place.clone());
        if !show_values {
            witness.value = None;
        }
    }
}
