//! A trial: every call of a source under one pair, counted. Used by `try`, and by `plan register`, which stores it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use lastcall_compare::{PreparedPair, compare};
use lastcall_contract::{Contract, Definition};
use lastcall_decision::Plan;
use lastcall_diff::same_but_for_text;
use lastcall_event::source::{Decoder, Item, Message, Nobody};
use lastcall_event::{CallRecord, Preset, Record, Text, calls_in, decode};
use lastcall_ledger::Ledger;
use lastcall_report::TryReport;

use super::counts::{Counts, Showing, Told};
use super::left_out::LeftOut;
use super::reading::Reading;
use super::{archive, files};

/// What is tried, and how much of it is told.
pub struct Trial<'a> {
    /// The pair.
    pub pair: &'a PreparedPair,
    /// Its current contract.
    pub old: &'a Contract,
    /// Its candidate.
    pub new: &'a Contract,
    /// How the two are named in the report.
    pub labels: (&'a str, &'a str),
    /// The tool's id in the calls, where it is not the name.
    pub tool: Option<&'a str>,
    /// The old one's id, where it is a contract with an id of its own: a call names it by this id, or means another.
    pub current: Option<&'a str>,
    /// The new one is a contract with an id of its own too.
    pub candidate_registered: bool,
    /// How much of each call is shown.
    pub showing: Showing,
    /// What a burn-in would have been held against.
    pub plan: Option<&'a Plan>,
}

/// What has been read so far.
struct Seen<'a> {
    trial: &'a Trial<'a>,
    /// The ids that may be the tool's.
    wanted: Vec<String>,
    by_tool: BTreeMap<String, PerTool>,
    /// Reason code → how many, and the first.
    undecodable: BTreeMap<&'static str, (u64, String)>,
    others: u64,
    /// Rows of another candidate, which were not taken.
    foreign_rows: u64,
}

/// The calls of one tool id.
#[derive(Default)]
struct PerTool {
    counts: Counts,
    left: LeftOut,
}

impl PerTool {
    /// All of them, counted or not.
    fn total(&self) -> u64 {
        self.counts.calls + self.left.other_contract + self.left.repeats
    }
}

/// Tools that are counted apart; hostile ids beyond share a row.
const MAX_TOOLS: usize = 256;

impl Trial<'_> {
    /// Tries the calls of a file, a folder or standard input.
    ///
    /// # Errors
    /// Nothing can be read, or no call is of the tool while there are others.
    pub fn of_files(&self, path: &Path, reading: &Reading) -> anyhow::Result<TryReport> {
        let mut seen = self.seen();
        let files = files::list(path)?;
        let (several, mut broken) = (files.len() > 1, Vec::new());
        for file in &files {
            let label = files::label(file);
            let read = files::for_each_record(file, reading.is_framed(), |bytes, number| {
                seen.record(bytes, reading, &label, number);
            });
            if let Err(error) = read {
                if !several {
                    return Err(error).with_context(|| format!("cannot read {label}"));
                }
                broken.push(format!("{label} could not be read to its end: {error}"));
            }
        }
        if several && broken.len() == files.len() {
            bail!(
                "none of {} files can be read; the first: {}",
                files.len(),
                broken.first().map_or("", |b| b)
            );
        }
        let Seen { by_tool, undecodable, others, foreign_rows, .. } = seen;
        let (PerTool { counts, left }, other_calls, mut notes) = self.choose(by_tool)?;
        notes.extend(left.notes(self.current));
        notes.extend(text_changes(&self.old.definition, &self.new.definition));
        for (code, (count, first)) in &undecodable {
            notes.push(format!("could not be decoded ({code}): {count}; the first: {first}"));
        }
        let unread = broken.len() as u64;
        notes.extend(broken);
        if others > 0 {
            notes.push(format!(
                "{others} records are no calls (clock, coverage, loss, other spans or events)"
            ));
        }
        notes.extend(self.foreign(foreign_rows));
        let undecodable = undecodable.values().map(|(n, _)| n).sum::<u64>() + unread;
        let source = path.display().to_string();
        Ok(self.told(counts, &left, Told { source, other_calls, undecodable, notes, ..Told::default() }))
    }

    /// Tries the archived calls of a ledger: those of the tool, each call id once, without what was planted.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn of_ledger(&self, ledger: &Ledger) -> anyhow::Result<TryReport> {
        let id = |contract: &Contract| contract.id.rsplit_once('@').map(|(tool, _)| tool.to_owned());
        let tool = match self.tool {
            Some(tool) => tool.to_owned(),
            None => id(self.old).unwrap_or_else(|| self.old.definition.name.clone()),
        };
        let current = self.current;
        let mut seen = self.seen();
        let mut unreadable = 0;
        let (left, other_calls) =
            archive::for_each_call(ledger, &tool, current, |row, place| match row.decode() {
                Ok(call) => seen.call(call, place),
                Err(_) => unreadable += 1,
            })
            .map_err(|error| archive::told(ledger, error))?;
        let Seen { mut by_tool, foreign_rows, .. } = seen;
        let mut notes = left.notes(current);
        if unreadable > 0 {
            notes.push(format!(
                "{unreadable} archived records are no calls any more; `lastcall ledger verify`"
            ));
        }
        notes.extend(text_changes(&self.old.definition, &self.new.definition));
        notes.extend(self.foreign(foreign_rows));
        let counts = by_tool.remove(&tool).unwrap_or_default().counts;
        // A call of which something is hidden could not be read as it was: not known to pass.
        let (source, undecodable) = (format!("ledger {}", ledger.place()), unreadable + left.redacted);
        Ok(self.told(counts, &left, Told { source, other_calls, undecodable, notes, ..Told::default() }))
    }

    fn seen(&self) -> Seen<'_> {
        Seen {
            trial: self,
            wanted: self.wanted(),
            by_tool: BTreeMap::new(),
            undecodable: BTreeMap::new(),
            others: 0,
            foreign_rows: 0,
        }
    }

    fn foreign(&self, rows: u64) -> Option<String> {
        let what = "calls were mirrored to other candidates; of these only the arguments were held against";
        (rows > 0).then(|| format!("{rows} {what} {}", self.new.id))
    }

    /// The report: what was read beside the calls (`read`), with the pair and what was left out.
    fn told(&self, counts: Counts, left: &LeftOut, read: Told) -> TryReport {
        let told = Told {
            tool: self.old.definition.name.clone(),
            old: self.labels.0.to_owned(),
            new: self.labels.1.to_owned(),
            epoch: self.pair.epoch().as_str().to_owned(),
            other_contract: left.other_contract,
            repeats: left.repeats,
            output_changed: self.old.definition.output_schema != self.new.definition.output_schema,
            ..read
        };
        counts.report(told, self.plan)
    }

    /// The ids under which calls of the tool are looked for, the first found first. The old name before the new one:
    /// calls under a new name are none of the old contract.
    fn wanted(&self) -> Vec<String> {
        let (old, new) = (&self.old.definition.name, &self.new.definition.name);
        let of_id = self.current.and_then(|id| id.rsplit_once('@')).map(|(tool, _)| tool.to_owned());
        match self.tool {
            Some(tool) => vec![tool.to_owned()],
            None => of_id.into_iter().chain([old.clone(), new.clone()]).collect(),
        }
    }

    /// The calls of the tool that was asked for; else of the definitions' names; else of the only tool there is.
    fn choose(&self, mut by_tool: BTreeMap<String, PerTool>) -> anyhow::Result<(PerTool, u64, Vec<String>)> {
        let (old, new) = (&self.old.definition.name, &self.new.definition.name);
        let wanted = self.wanted();
        let total: u64 = by_tool.values().map(PerTool::total).sum();
        let mut notes = Vec::new();
        let found: Vec<String> = wanted.iter().filter(|w| by_tool.contains_key(*w)).cloned().collect();
        let chosen = match (found.as_slice(), by_tool.len()) {
            ([], 0) => None,
            ([], _) => {
                let mut names: Vec<&str> = by_tool.keys().map(String::as_str).take(12).collect();
                names.sort_unstable();
                bail!(
                    "no call of {} among {total} calls; the calls are of: {}. If one of these is the same tool, name it with --tool",
                    wanted.first().map_or("", String::as_str),
                    names.join(", ")
                );
            }
            ([first, ..], _) => {
                if first == new && first != old && self.tool.is_none() {
                    notes.push(format!("no call of {old}; taken are those of {first}, the new name"));
                }
                Some(first.clone())
            }
        };
        let chosen = chosen.and_then(|name| by_tool.remove(&name)).unwrap_or_default();
        let other_calls = total - chosen.total();
        Ok((chosen, other_calls, notes))
    }
}

impl Seen<'_> {
    fn record(&mut self, bytes: Option<&[u8]>, reading: &Reading, label: &str, number: u64) {
        let place = || format!("{label}:{number}");
        let Some(bytes) = bytes else {
            self.undecodable.entry("too_long").or_insert_with(|| (0, place())).0 += 1;
            return;
        };
        if let Some(decoder) = reading.decoder(bytes) {
            return self.mapped(decoder, bytes, &place());
        }
        let preset = reading.preset(bytes);
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let inside = if preset == Preset::Provider { calls_in(text) } else { Vec::new() };
        if inside.is_empty() {
            self.line(bytes, preset, &place());
        }
        for call in inside {
            self.line(call.as_bytes(), preset, &place());
        }
    }

    /// A message that goes through a map: each record in it by itself.
    fn mapped(&mut self, decoder: &Decoder, bytes: &[u8], place: &str) {
        for (index, item) in decoder.decode(&Message::of(bytes), &Nobody).iter().enumerate() {
            let place = if index == 0 { place.to_owned() } else { format!("{place}#{}", index + 1) };
            match item {
                Item::Record { text, .. } => self.line(text.as_bytes(), Preset::Native, &place),
                Item::Other => self.others += 1,
                Item::Dead { error, .. } => {
                    let text = || format!("{place}: {}", error.message);
                    self.undecodable.entry(error.code).or_insert_with(|| (0, text())).0 += 1;
                }
            }
        }
    }

    fn line(&mut self, bytes: &[u8], preset: Preset, place: &str) {
        match decode(bytes, preset).map(|decoded| decoded.record) {
            Ok(Record::Call(call)) if self.takes(&call) => self.call(*call, place),
            Ok(Record::Call(_)) => {}
            Ok(_) => self.others += 1,
            Err(error) if error.code == "not_a_call" => self.others += 1,
            Err(error) => {
                let list = bytes.trim_ascii_start().first() == Some(&b'[');
                let hint = if list { "; name the file .json, or make lines with jq -c '.[]'" } else { "" };
                let text = || format!("{place}: {}{hint}", error.message);
                self.undecodable.entry(error.code).or_insert_with(|| (0, text())).0 += 1;
            }
        }
    }

    /// Whether a call counts. Those of other tools are only counted, so nothing is kept of them.
    fn takes(&mut self, call: &CallRecord<'_>) -> bool {
        if !self.wanted.iter().any(|name| *name == *call.tool_id) {
            return true;
        }
        let of_tool = self.by_tool.entry(call.tool_id.to_string()).or_default();
        of_tool.left.takes(self.trial.current, call)
    }

    fn call(&mut self, mut call: CallRecord<'_>, place: &str) {
        let candidate = self.trial.pair.candidate_id();
        if self.trial.current.is_some() && self.trial.candidate_registered {
            if !call.candidates.is_empty() && !call.candidates.iter().any(|c| *c.contract_id == *candidate) {
                // what another candidate made of it says nothing about this one
                call.candidates.clear();
                call.mirrored = false;
                self.foreign_rows += 1;
            }
        } else if let [only] = call.candidates.as_mut_slice() {
            only.contract_id = Text::from(candidate.to_owned());
        }
        if !self.by_tool.contains_key(&*call.tool_id) && self.by_tool.len() < MAX_TOOLS {
            self.by_tool.insert(call.tool_id.to_string(), PerTool::default());
        }
        let key = if self.by_tool.contains_key(&*call.tool_id) { &*call.tool_id } else { "(more tools)" };
        let got = compare(self.trial.pair, &call);
        let of_tool = self.by_tool.entry(key.to_owned()).or_default();
        of_tool.counts.add(self.trial.showing, &call, &got, place);
    }
}

/// What the model or a reader of results sees and a replay of arguments does not show.
fn text_changes(old: &Definition, new: &Definition) -> Vec<String> {
    let mut parts = Vec::new();
    if old.name != new.name {
        parts.push(format!("the name ({} → {})", old.name, new.name));
    }
    if old.description != new.description || old.title != new.title {
        parts.push("the description".to_owned());
    }
    if old.input_schema != new.input_schema && same_but_for_text(&old.input_schema, &new.input_schema) {
        parts.push("the text of arguments".to_owned());
    }
    if old.annotations != new.annotations {
        parts.push("the annotations".to_owned());
    }
    let mut notes = Vec::new();
    if old.output_schema != new.output_schema {
        notes.push("also changed: the output schema; see `lastcall diff`".to_owned());
    }
    if parts.is_empty() {
        return notes;
    }
    notes.push(format!(
        "also changed: {}; calls that models made from the old text say nothing about that",
        parts.join(", ")
    ));
    notes
}
