//! What an export of one tool holds, derived from the chains and the newest index entry: by who writes it, and by who
//! verifies it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lastcall_contract::Digest;
use lastcall_event::Day;
use serde::Serialize;

use crate::chain::Read;
use crate::control::{Control, Pair};
use crate::entry::{Chunk, FileKind, FileRef};
use crate::erasure::Superseded;
use crate::error::LedgerError;
use crate::index::{DayEntry, DayFile, IndexBody, each_day, index_entry, read_facts};
use crate::ledger::Ledger;
use crate::names::{Chain, signature_path};

/// What of a ledger belongs to one tool, beside the chains.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// The tool.
    pub(crate) tool: String,
    /// Objects.
    pub(crate) objects: BTreeSet<Digest>,
    /// Day files by path: those that the tool's daily facts name, older revisions too.
    pub(crate) days: BTreeMap<String, DayFile>,
    /// The newest revision of each day.
    pub(crate) newest: Vec<DayEntry>,
    /// What is left behind.
    pub(crate) left: Left,
}

/// What an export leaves behind, in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Results files: they hold other tools' rows.
    pub results: u64,
    /// Calls files: raw arguments.
    pub calls: u64,
    /// Dead files: raw bytes of no known tool.
    pub dead: u64,
    /// Objects that the chains name: of other tools, and of earlier index entries.
    pub objects: u64,
}

impl Left {
    /// Counts the files of a chunk of which something stands.
    pub(crate) fn chunk(&mut self, chunk: &Chunk, superseded: &Superseded) {
        let stands = |file: &&FileRef| !superseded.standing(file).is_ok_and(|now| now.file.is_none());
        for file in chunk.files.iter().filter(stands) {
            let slot = match file.kind {
                FileKind::Calls => &mut self.calls,
                FileKind::Results => &mut self.results,
                FileKind::Dead => &mut self.dead,
            };
            *slot += 1;
        }
    }

    /// A file with the tool's own calls is there.
    pub(crate) fn take_calls(&mut self) {
        self.calls = self.calls.saturating_sub(1);
    }

    /// By folder, with what they hold; `with_arguments`: the tool's proven calls are there.
    pub fn each(&self, with_arguments: bool) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
        let calls = match with_arguments {
            true => "calls of other tools, or that no day proves, alone",
            false => "raw arguments, and other tools' calls",
        };
        [
            ("results", self.results, "other tools' rows; the tool's own stand in its day files"),
            ("calls", self.calls, calls),
            ("dead", self.dead, "raw bytes of which nobody knows the tool"),
            ("objects", self.objects, "what other tools, and earlier index entries, rest on"),
        ]
        .into_iter()
        .filter(|(_, files, _)| *files > 0)
    }
}

fn of_pair(pair: &Pair) -> Vec<&Digest> {
    vec![&pair.current_digest, &pair.candidate_digest, &pair.config_digest]
}

/// The objects that a control entry names.
pub(crate) fn objects_of(control: &Control) -> Vec<&Digest> {
    match control {
        Control::Observe { pair } => of_pair(pair),
        Control::Register { plan, pair, trial, diff, .. } => {
            let mut named = of_pair(pair);
            named.push(plan);
            named.extend(trial.iter().chain(diff));
            named
        }
        Control::Plant { list, .. } => vec![list],
        Control::Verdict { document, .. } => vec![document],
        _ => Vec::new(),
    }
}

/// Says of control entries, given in order, whose they are.
#[derive(Default)]
pub(crate) struct Whose {
    registrations: HashMap<u64, String>,
}

impl Whose {
    /// The tool of the next entry; `None`: it is about no tool.
    pub(crate) fn next(&mut self, seq: u64, control: &Control) -> Option<String> {
        match control {
            Control::Observe { pair } => Some(pair.tool_id.clone()),
            Control::Register { pair, .. } => {
                self.registrations.insert(seq, pair.tool_id.clone());
                Some(pair.tool_id.clone())
            }
            Control::Plant { tool_id, .. } | Control::Unobserve { tool_id, .. } => Some(tool_id.clone()),
            Control::Verdict { registration, .. } | Control::EndWindow { registration, .. } => {
                self.registrations.get(registration).cloned()
            }
            _ => None,
        }
    }
}

/// What of a ledger belongs to a tool, as an index entry and the control chain up to it say.
///
/// # Errors
/// The control chain or the tool's daily facts are missing, altered or unreadable.
pub(crate) fn held(ledger: &Ledger, tool: &str, head: &Read<IndexBody>) -> Result<Held, LedgerError> {
    let mut held = named(ledger, tool, head)?;
    held.read_facts(ledger, &head.entry.body)?;
    Ok(held)
}

/// The same as far as the control chain and the index entry themselves say it: without days and older facts.
///
/// # Errors
/// One of the two chains is missing, altered or unreadable.
pub(crate) fn named(ledger: &Ledger, tool: &str, head: &Read<IndexBody>) -> Result<Held, LedgerError> {
    let (last, head) = (head.entry.seq, &head.entry.body);
    let mut held = Held { tool: tool.to_owned(), ..Held::default() };
    let mut others: BTreeSet<Digest> = BTreeSet::new();
    let mut whose = Whose::default();
    for read in &ledger.control()?.entries {
        if read.entry.seq > head.control.tail.seq {
            break;
        }
        let ours = whose.next(read.entry.seq, &read.entry.body).as_deref() == Some(tool);
        let to = if ours { &mut held.objects } else { &mut others };
        to.extend(objects_of(&read.entry.body).into_iter().cloned());
    }
    held.objects.insert(head.control.state.clone());
    held.objects.extend(head.tools.get(tool).and_then(|at| at.facts.clone()));
    for seq in 0..=last {
        let Some(read) = index_entry(&**ledger.store(), seq)? else { break };
        others.insert(read.entry.body.control.state.clone());
        others.extend(read.entry.body.tools.into_values().filter_map(|at| at.facts));
    }
    held.left.objects = others.difference(&held.objects).count() as u64;
    Ok(held)
}

impl Held {
    /// Takes in what the tool's daily facts name.
    ///
    /// # Errors
    /// One of them is missing, altered or unreadable.
    pub(crate) fn read_facts(&mut self, ledger: &Ledger, head: &IndexBody) -> Result<(), LedgerError> {
        let Some(digest) = head.tools.get(&self.tool).and_then(|at| at.facts.as_ref()) else { return Ok(()) };
        let facts = read_facts(ledger, digest, &self.tool)?;
        let (days, newest, objects) = (&mut self.days, &mut self.newest, &mut self.objects);
        each_day(
            ledger,
            &facts,
            |entry, is_newest| {
                days.extend(entry.files.iter().map(|file| (file.path.clone(), file.clone())));
                newest.extend(is_newest.then(|| entry.clone()));
            },
            |object| {
                objects.insert(object.clone());
            },
        )?;
        self.newest.sort_by(|a, b| (a.day, &a.epoch).cmp(&(b.day, &b.epoch)));
        Ok(())
    }

    /// Whether a file belongs into the folder, apart from the chains' entries and the calls.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.days.contains_key(path)
            || path
                .strip_prefix("objects/")
                .and_then(|hex| Digest::parse(&format!("sha256:{hex}")))
                .is_some_and(|digest| self.objects.contains(&digest))
    }
}

/// The days on which a chunk has results of a tool.
pub(crate) fn days_of_tool(chunk: &Chunk, tool: &str) -> BTreeSet<Day> {
    chunk.tallies.iter().filter(|t| *t.tool == *tool).map(|t| t.day).collect()
}

/// The paths of a chain's entries up to a tail, as a test of one path.
pub(crate) fn is_entry(path: &str, chain: &Chain, tail: u64) -> bool {
    let folder = chain.entry_path(0);
    let folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
    path.strip_prefix(folder)
        .and_then(|rest| rest.strip_prefix('/')?.strip_suffix(".json")?.parse::<u64>().ok())
        .is_some_and(|seq| seq <= tail && chain.entry_path(seq) == path)
}

/// Whether a path is that of the signature of an index entry up to one.
pub(crate) fn is_signature(path: &str, last: u64) -> bool {
    let seq =
        path.strip_prefix("chains/index/").and_then(|rest| rest.strip_suffix(".sig")?.parse::<u64>().ok());
    seq.is_some_and(|seq| seq <= last && signature_path(seq) == path)
}
