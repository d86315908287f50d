//! One file or one standard input into a ledger: registers the source, resumes where its chain ends, reads to the end.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use lastcall_compare::ComparisonResult;
use lastcall_event::{Preset, Record, Timestamp};
use lastcall_ledger::chain::Append;
use lastcall_ledger::control::{Control, Role, SourceKind};
use lastcall_ledger::days::DEFAULT_LATENESS_MS;
use lastcall_ledger::entry::{Balance, ControlRef, PartitionBody};
use lastcall_ledger::index::PartitionEnd;
use lastcall_ledger::position::{NextOffset, Partition};
use lastcall_ledger::redaction::Redaction;
use lastcall_ledger::state::{ControlState, SourceInfo};
use lastcall_ledger::tally::Counts;
use lastcall_ledger::{Ledger, LedgerError, names, random_hex, system_now};

use crate::commit::{Assigned, Committer};
use crate::judge::{PairError, Pairs};
use crate::lines::LineReader;
use crate::recorder::Recorder;
use crate::redact::{MARK, RedactionKey, Redactor};
use crate::step::{Action, Config, Incoming, Input, Limits, RecordError, Spec};

/// How often another writer may be faster before the run gives up.
const ATTEMPTS: usize = 100;
/// Records between two looks at the clock and the progress bar.
const LOOK: u64 = 256;
/// Lines that are looked at to find out whether a file holds mirrored calls.
const PEEK: usize = 200;

/// What to read, and how.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The source's name; the file's name if not given.
    pub source: Option<String>,
    /// How messages are read; that of the registered source, else native.
    pub preset: Option<Preset>,
    /// What a new source is taken for; found from its first calls if not given.
    pub role: Option<Role>,
    /// Lateness of a new source in milliseconds.
    pub lateness_ms: Option<i64>,
    /// Nothing will ever follow: the last line counts without an end, and every day closes.
    pub is_final: bool,
    /// When chunks close.
    pub limits: Limits,
    /// The longest line that is read whole.
    pub line_limit: Option<usize>,
    /// What of a new source's records is not kept.
    pub redaction: Option<Redaction>,
    /// The key of the ledger's redactions; needed by a source that has one.
    pub key: Option<RedactionKey>,
}

/// How far a run is, for a progress bar.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Bytes taken from the file.
    pub bytes: u64,
    /// The file's length, where known.
    pub total: Option<u64>,
    /// Records taken in.
    pub records: u64,
}

/// What a run added.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The source's name.
    pub source: String,
    /// The source was registered by this run.
    pub registered: bool,
    /// Where reading began.
    pub from: i64,
    /// Where it ended.
    pub to: i64,
    /// Chunks added.
    pub chunks: u64,
    /// Heartbeats added.
    pub heartbeats: u64,
    /// The balanced counts of what was added.
    pub balance: Balance,
    /// Fields that this build does not know.
    pub unknown_fields: u64,
    /// Dead letters by reason code.
    pub dead_reasons: BTreeMap<String, u64>,
    /// Where the first of them stands, and why it is one.
    pub first_dead: Option<String>,
    /// Results by tool; a tool that no pair compares has only calls.
    pub tools: BTreeMap<String, ToolSummary>,
    /// Bytes of a last line that has no end yet and was left for later.
    pub waiting: u64,
    /// The source is complete.
    pub is_final: bool,
    /// Clock records were read in a ledger that takes time from the system.
    pub clocks_ignored: u64,
}

/// What a run added for one tool.
#[derive(Clone, Debug, Default)]
pub struct ToolSummary {
    /// Calls.
    pub calls: u64,
    /// Results, over all pairs.
    pub counts: Counts,
}

impl Summary {
    /// Nothing was added.
    pub fn is_empty(&self) -> bool {
        self.chunks == 0 && self.heartbeats == 0
    }

    fn add(&mut self, body: &PartitionBody) {
        let Some(chunk) = body.chunk() else {
            self.heartbeats += 1;
            return;
        };
        self.chunks += 1;
        self.balance.add(&chunk.balance);
        self.unknown_fields += chunk.unknown_fields;
        for (code, n) in &chunk.dead_reasons {
            *self.dead_reasons.entry(code.clone()).or_default() += n;
        }
        for count in &chunk.calls {
            self.count(&count.tool, |tool| tool.calls += count.calls);
        }
        for tally in &chunk.tallies {
            self.count(&tally.tool, |tool| tool.counts.add(&tally.counts));
        }
    }

    /// Counts for a tool; its name is copied once.
    fn count(&mut self, tool: &str, add: impl FnOnce(&mut ToolSummary)) {
        match self.tools.get_mut(tool) {
            Some(summary) => add(summary),
            None => add(self.tools.entry(tool.to_owned()).or_default()),
        }
    }

    /// Rows by result, over all tools.
    pub fn results(&self) -> [(ComparisonResult, u64); 5] {
        let mut all = Counts::default();
        self.tools.values().for_each(|tool| all.add(&tool.counts));
        let of = |result| match result {
            ComparisonResult::Agreed => all.agreed,
            ComparisonResult::Disagreed => all.disagreed,
            ComparisonResult::BothRejected => all.both_rejected,
            ComparisonResult::Excluded => all.excluded,
            ComparisonResult::Unresolved => all.unresolved,
        };
        ComparisonResult::ALL.map(|result| (result, of(result)))
    }
}

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Reading failed.
    #[error("{place}: {error}")]
    Read {
        /// The file.
        place: String,
        /// Why.
        error: io::Error,
    },
    /// The file is not the one that was recorded.
    #[error(
        "{place} is not the file that source `{name}` recorded: {what}. A recorded file may only grow. If this is \
         another file, give it a name of its own with --source"
    )]
    Replaced {
        /// The file.
        place: String,
        /// The source.
        name: String,
        /// What differs.
        what: String,
    },
    /// More came after `--final`.
    #[error(
        "source `{0}` was read with --final: nothing may follow, and its days are closed for ever. Give what follows as \
         another file, or under another name with --source"
    )]
    AfterFinal(String),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A pair.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// The recorder.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The source is registered otherwise.
    #[error("{0}")]
    Source(String),
}

/// Reads a file from where its chain ends to its end.
pub fn run_file(
    ledger: &Ledger,
    path: &Path,
    options: &RunOptions,
    stage: &mut dyn FnMut(Stage),
) -> Result<Summary, RunError> {
    let place = path.display().to_string();
    let read = |error| RunError::Read { place: place.clone(), error };
    let about = std::fs::metadata(path).map_err(read)?;
    if !about.is_file() && !about.is_dir() {
        let what = "it is no regular file: it cannot be read twice; `-` reads standard input";
        return Err(read(io::Error::new(io::ErrorKind::InvalidInput, what)));
    }
    let name = match &options.source {
        Some(name) => name.clone(),
        None => path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    let role = match options.role {
        Some(role) => role,
        None => guess_role(path, options.preset.unwrap_or_default()).map_err(read)?,
    };
    let location = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut run = Run::new(ledger, &name, &location, SourceKind::File, role, options)?;
    for _ in 0..ATTEMPTS {
        let mut lines = LineReader::open(path).map_err(read)?.with_hash().with_final(options.is_final);
        if let Some(limit) = options.line_limit {
            lines = lines.with_limit(limit);
        }
        let assigned = run.assign()?;
        run.recognize(&place, &mut lines, &assigned)?;
        if run.read(&place, &mut lines, assigned, stage)? == Ended::AtEnd {
            return Ok(run.summary);
        }
    }
    Err(LedgerError::Contended(name).into())
}

/// Reads standard input to its end: always a new source, and final.
pub fn run_stdin(
    ledger: &Ledger,
    options: &RunOptions,
    stage: &mut dyn FnMut(Stage),
) -> Result<Summary, RunError> {
    let read = |error| RunError::Read { place: "standard input".to_owned(), error };
    let name = match &options.source {
        Some(name) => name.clone(),
        None => {
            let at = ledger.system_now().map(|t| format!("{}-", t.to_string().replace([':', '.'], "")));
            format!("stdin-{}{}", at.unwrap_or_default(), random_hex(4)?)
        }
    };
    let options = RunOptions { is_final: true, ..options.clone() };
    let role = options.role.unwrap_or(Role::MirroredCalls);
    let mut run = Run::new(ledger, &name, "-", SourceKind::Stdin, role, &options)?;
    let assigned = run.assign()?;
    if assigned.progress.next != NextOffset(0) || !run.registered_now {
        return Err(RunError::Source(format!(
            "source `{name}` was read before, and a standard input cannot be resumed: give this one a name of its own"
        )));
    }
    let mut lines = LineReader::stdin().map_err(read)?.with_hash().with_final(true);
    if let Some(limit) = options.line_limit {
        lines = lines.with_limit(limit);
    }
    match run.read("standard input", &mut lines, assigned, stage)? {
        Ended::AtEnd => Ok(run.summary),
        Ended::Faster => Err(RunError::Source(format!(
            "another process records source `{name}` too; a standard input has one reader: name another source"
        ))),
    }
}

/// A file is mirrored calls if one of its first calls carries candidates or an upstream position.
fn guess_role(path: &Path, preset: Preset) -> io::Result<Role> {
    let mut lines = LineReader::open(path)?;
    for _ in 0..PEEK {
        let Some(line) = lines.next_line()? else { break };
        if let Ok(decoded) = lastcall_event::decode(line.bytes, preset)
            && let Record::Call(call) = &decoded.record
        {
            let mirrored = !call.candidates.is_empty() || call.upstream.is_some();
            return Ok(if mirrored { Role::MirroredCalls } else { Role::ToolCalls });
        }
    }
    Ok(Role::ToolCalls)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Everything was read and appended.
    AtEnd,
    /// Another writer was faster: begin again at its tail.
    Faster,
}

struct Run<'a> {
    ledger: &'a Ledger,
    control: ControlState,
    info: SourceInfo,
    location: String,
    options: RunOptions,
    registered_now: bool,
    /// The control chain has grown, and the recorder was not told yet.
    grown: bool,
    /// Where the index says that the partition ended.
    known: Option<PartitionEnd>,
    summary: Summary,
}

impl<'a> Run<'a> {
    fn new(
        ledger: &'a Ledger,
        name: &str,
        location: &str,
        kind: SourceKind,
        role: Role,
        options: &RunOptions,
    ) -> Result<Self, RunError> {
        names::check_source_name(name)?;
        let head = ledger.head()?;
        let mut control = ledger.control_since(head.as_ref())?;
        let known =
            head.and_then(|head| head.entry.body.partition(name, Partition(0)).map(PartitionEnd::from));
        if let Some(key) = &options.key {
            ledger.check_redaction_key(&control, &key.fingerprint())?;
        }
        let registered_now = !control.sources.contains_key(name);
        if registered_now {
            ledger.check_sources(&control)?;
            // Before the source: nobody can record it without.
            if let Some(redaction) = &options.redaction {
                redaction.check(options.preset.unwrap_or_default())?;
                ledger.redact(name, Some(redaction.clone()))?;
            }
            let made = Control::Source {
                name: name.to_owned(),
                role,
                source_kind: kind,
                preset: options.preset.unwrap_or_default(),
                lateness_ms: options.lateness_ms.unwrap_or(DEFAULT_LATENESS_MS),
            };
            let done = ledger.append_control_with(|state| {
                if state.sources.contains_key(name) {
                    return Err(LedgerError::Refused(format!(
                        "source `{name}` was just registered by another run"
                    )));
                }
                Ok(made.clone())
            });
            match done {
                Ok(_) | Err(LedgerError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
            ledger.follow_control(&mut control)?;
        }
        let Some(info) = control.sources.get(name).cloned() else {
            return Err(RunError::Source(format!("source `{name}` is not registered")));
        };
        if info.kind != kind {
            return Err(RunError::Source(format!(
                "source `{name}` is registered as {:?}, and this is {kind:?}: name another source",
                info.kind
            )));
        }
        if options.preset.is_some_and(|preset| preset != info.preset) {
            return Err(RunError::Source(format!(
                "source `{name}` is registered with preset {:?}: leave --preset out, or name another source",
                info.preset
            )));
        }
        if options.redaction.is_some() && options.redaction.as_ref() != control.redactions.get(name) {
            return Err(RunError::Source(format!(
                "source `{name}` is registered with another redaction: leave --redact out, or change it with \
                 `lastcall ledger redact`"
            )));
        }
        let summary =
            Summary { source: name.to_owned(), registered: registered_now, from: -1, ..Summary::default() };
        let run = Self {
            ledger,
            control,
            info,
            location: location.to_owned(),
            options: options.clone(),
            registered_now,
            grown: false,
            known,
            summary,
        };
        // Before anything is read: another key would look like another file.
        run.redactor()?;
        Ok(run)
    }

    fn committer(&self) -> Committer<'a> {
        Committer::new(&**self.ledger.store(), &self.info.name, Partition(0), self.ledger.writer())
            .knowing(self.known.clone())
    }

    fn control_ref(&self) -> Result<(ControlRef, Timestamp), RunError> {
        let tail = self
            .control
            .tail()
            .ok_or_else(|| LedgerError::Missing { place: names::Chain::Control.entry_path(0) })?;
        Ok((ControlRef { seq: tail.seq, digest: tail.digest }, tail.at))
    }

    /// Reads where the partition stands, beginning it if nobody has; then catches up with the control chain.
    fn assign(&mut self) -> Result<Assigned, RunError> {
        let committer = self.committer();
        let assigned = match committer.assigned()? {
            Some(assigned) => assigned,
            None => {
                self.ledger.follow_control(&mut self.control)?;
                let (control, at) = self.control_ref()?;
                let now = self.ledger.system_now().unwrap_or(at);
                committer.begin(self.info.kind, &self.location, &control, at, now)?;
                committer.assigned()?.ok_or_else(|| LedgerError::Missing {
                    place: names::Chain::partition(&self.info.name, Partition(0)).entry_path(0),
                })?
            }
        };
        self.ledger.follow_control(&mut self.control)?;
        if self.control_ref()?.0.seq < assigned.control.seq {
            let place = names::Chain::Control.entry_path(assigned.control.seq);
            return Err(LedgerError::Missing { place }.into());
        }
        if !self.ledger.check_control(&self.control, &assigned.control)? {
            let place = names::Chain::Control.entry_path(assigned.control.seq);
            return Err(LedgerError::altered(&place, "it is not the entry that the record names").into());
        }
        if self.summary.from < 0 {
            self.summary.from = assigned.progress.next.0;
        }
        self.summary.to = assigned.progress.next.0;
        self.summary.is_final = assigned.progress.is_final;
        Ok(assigned)
    }

    /// Skips what is recorded, making sure that it is what was recorded.
    fn recognize(&self, place: &str, lines: &mut LineReader, assigned: &Assigned) -> Result<(), RunError> {
        let next = assigned.progress.next;
        let replaced =
            |what: String| RunError::Replaced { place: place.to_owned(), name: self.info.name.clone(), what };
        let read = |error| RunError::Read { place: place.to_owned(), error };
        if !lines.skip_to(next).map_err(read)? {
            let has = lines.position().0;
            return Err(replaced(format!("it has {has} bytes of text, and {} were recorded", next.0)));
        }
        let recorded = assigned.progress.fingerprint.prefix.as_ref();
        let hidden = recorded.is_some_and(|hash| hash.starts_with(MARK));
        let hash = match (hidden, &self.options.key) {
            (false, _) => lines.prefix().map(|hash| format!("{hash:032x}")),
            (true, Some(key)) => lines.prefix().map(|hash| key.of_hash(hash)),
            (true, None) => return Err(self.needs_key_once()),
        };
        match recorded {
            Some(recorded) if next.0 > 0 && hash.as_ref() != Some(recorded) => {
                let mut what = format!("its first {} bytes differ", next.0);
                if hidden && self.ledger.redaction_keys()?.len() > 1 {
                    what.push_str(", or their hash was made with another of this ledger's keys");
                }
                Err(replaced(what))
            }
            _ => Ok(()),
        }
    }

    fn config(&self) -> Result<Config, RunError> {
        let (control, at) = self.control_ref()?;
        let judge = Box::new(Pairs::prepare(self.ledger, self.control.active_pairs())?);
        Ok(Config { control, at, judge, redactor: self.redactor()? })
    }

    fn redactor(&self) -> Result<Option<Redactor>, RunError> {
        match (self.control.redactions.get(&self.info.name), &self.options.key) {
            (None, _) => Ok(None),
            (Some(redaction), Some(key)) => Ok(Redactor::new(redaction, self.info.preset, key.clone())?),
            (Some(_), None) => Err(self.needs_key()),
        }
    }

    /// Everything is kept again, but what stands of the file was hashed while it was not.
    fn needs_key_once(&self) -> RunError {
        RunError::Source(format!(
            "source `{}` is kept whole again, but what was recorded of it before was not: the hash by which its file is \
             recognized was made with the redaction key. Name the key's file once more with --redaction-key or \
             LASTCALL_REDACTION_KEY",
            self.info.name
        ))
    }

    fn needs_key(&self) -> RunError {
        RunError::Source(format!(
            "source `{}` has a redaction, and nothing of it is recorded without the key: name its file with \
             --redaction-key or LASTCALL_REDACTION_KEY",
            self.info.name
        ))
    }

    fn read(
        &mut self,
        place: &str,
        lines: &mut LineReader,
        assigned: Assigned,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Ended, RunError> {
        let spec = Spec {
            source: self.info.name.clone(),
            partition: Partition(0),
            preset: self.info.preset,
            dense: true,
            simulated: self.ledger.is_simulated(),
            lateness_ms: self.info.lateness_ms,
        };
        let random = Box::new(|to: &mut [u8]| fill_random(to));
        let mut recorder = Recorder::new(spec, self.options.limits, self.config()?, random);
        let (tail, progress) = (assigned.tail, assigned.progress);
        let was_final = progress.is_final;
        let mut prefix = lines.prefix();
        recorder.step(Input::Assigned { tail, progress }, system_now())?;
        let mut now = system_now();
        let mut records = 0u64;
        // The end counts from a moment before the read that found it: what came in between is not in it.
        let mut end_since: Option<Timestamp> = None;
        loop {
            let line =
                lines.next_line().map_err(|error| RunError::Read { place: place.to_owned(), error })?;
            let Some(line) = line else {
                if end_since.is_some() {
                    break;
                }
                end_since = Some(system_now());
                continue;
            };
            end_since = None;
            if !line.terminated && !self.options.is_final {
                self.summary.waiting = line.length;
                break;
            }
            if was_final {
                return Err(RunError::AfterFinal(self.info.name.clone()));
            }
            prefix = line.prefix;
            let incoming = Incoming {
                offset: line.offset,
                next: line.next,
                bytes: line.bytes,
                length: line.length,
                too_long: line.too_long,
                prefix,
                time: None,
            };
            let actions = recorder.step(Input::Record(incoming), now)?;
            records += 1;
            if !actions.is_empty() && self.act(&mut recorder, actions)? == Ended::Faster {
                return Ok(Ended::Faster);
            }
            if records.is_multiple_of(LOOK) {
                now = system_now();
                stage(Stage { bytes: lines.consumed(), total: lines.total(), records });
            }
        }
        stage(Stage { bytes: lines.consumed(), total: lines.total(), records });
        let Some(next) = recorder.next() else { return Ok(Ended::Faster) };
        let now = system_now();
        // With a line still waiting for its end the file was not read to its end.
        let read_through = end_since.filter(|_| !self.ledger.is_simulated());
        let is_final = self.options.is_final;
        let mut actions = recorder.step(Input::Barrier { next, prefix, read_through, is_final }, now)?;
        actions.extend(recorder.step(Input::Close, now)?);
        let ended = self.act(&mut recorder, actions)?;
        if self.summary.first_dead.is_none() {
            self.summary.first_dead = recorder.first_dead().map(str::to_owned);
        }
        Ok(ended)
    }

    /// Whether the source's rules were changed since the chunk that is to be appended was opened: it is dropped, and read
    /// again under the new ones. A standard input cannot be read again.
    fn is_redacted_otherwise(&mut self) -> Result<bool, RunError> {
        if self.info.kind == SourceKind::Stdin {
            return Ok(false);
        }
        let before = self.control.redactions.get(&self.info.name).cloned();
        let grown = self.ledger.poll_control(&mut self.control)?;
        self.grown |= grown;
        Ok(grown && self.control.redactions.get(&self.info.name) != before.as_ref())
    }

    /// Does what the recorder asks for, until it asks for nothing.
    fn act(&mut self, recorder: &mut Recorder, actions: Vec<Action>) -> Result<Ended, RunError> {
        let committer = self.committer();
        let mut pending = actions;
        while let Some(action) = pending.pop() {
            let Action::Commit(commit) = action else { return Ok(Ended::Faster) };
            if self.is_redacted_otherwise()? {
                return Ok(Ended::Faster);
            }
            let answer = committer.commit(&commit)?;
            if let Append::Won(_) = &answer {
                self.summary.add(&commit.body);
                self.summary.to = commit.body.progress().next.0;
                self.summary.is_final = commit.body.progress().is_final;
                if !self.ledger.is_simulated() {
                    self.summary.clocks_ignored = self.summary.balance.clock;
                }
            }
            drop(commit);
            pending.extend(recorder.step(Input::Appended(answer), system_now())?);
            // Before the next chunk opens: whoever is behind the control chain catches up first.
            if self.ledger.poll_control(&mut self.control)? | std::mem::take(&mut self.grown) {
                let config = Box::new(self.config()?);
                pending.extend(recorder.step(Input::Configured(config), system_now())?);
            }
        }
        Ok(Ended::AtEnd)
    }
}

fn fill_random(to: &mut [u8]) -> Result<(), String> {
    lastcall_ledger::fill_random(to).map_err(|e| e.to_string())
}
