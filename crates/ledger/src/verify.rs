//! Checks everything that the record says against itself. Reads only, repairs nothing, never stops at the first find.

mod head;
pub mod index;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use lastcall_compare::{ComparisonResult, Severity};
use lastcall_contract::Digest;
use lastcall_event::{Day, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::chain::{self, Read, Tail};
use crate::control::{Control, Entry, Pair};
use crate::entry::{Chunk, FileKind, FileRef, PartitionBody};
use crate::erasure::{Gone, Superseded};
use crate::error::LedgerError;
use crate::ledger::{Ledger, breaks, hex};
use crate::names::{self, Chain};
use crate::position::{Offset, Partition};
use crate::rows::{Position, ResultRow};
use crate::tally::{CallKey, Counts, TallyKey, category_key};
use crate::{calls, dead, results, wire};

/// What verify answers. The order is that of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Something is not what was written.
    Altered,
    /// Something was cut off.
    Truncated,
    /// Something that the record names is missing.
    Incomplete,
    /// Something could not be read or is unknown to this build.
    CannotCheck,
    /// Everything fits.
    Intact,
}

impl Outcome {
    /// Its name in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Altered => "altered",
            Self::Truncated => "truncated",
            Self::Incomplete => "incomplete",
            Self::CannotCheck => "cannot check",
            Self::Intact => "intact",
        }
    }
}

/// One thing that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Of which kind.
    pub outcome: Outcome,
    /// The path in the ledger.
    pub place: String,
    /// The chain and entry, or the row, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// What does not fit.
    pub what: String,
}

/// A chain's length and tail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainEnd {
    /// The chain.
    pub chain: String,
    /// Its entries.
    pub entries: u64,
    /// Digest of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<Digest>,
}

/// What was checked, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The worst of the findings.
    pub outcome: Outcome,
    /// Everything that does not fit.
    pub findings: Vec<Finding>,
    /// The chains.
    pub chains: Vec<ChainEnd>,
    /// Entries read.
    pub entries: u64,
    /// Data files read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
    /// Objects read.
    pub objects: u64,
    /// What was erased and what expired, as the control chain says.
    pub gone: Gone,
    /// What cannot be excluded whatever the outcome.
    pub not_excluded: String,
}

/// Said by every verification as long as no head is kept elsewhere.
pub const NOT_EXCLUDED: &str = "Without a head that is kept elsewhere it cannot be excluded that whole entries at the \
     end of a chain were removed or written anew.";

struct Verifier<'a> {
    ledger: &'a Ledger,
    report: Verification,
    control: Vec<Read<Control>>,
    each: &'a mut dyn FnMut(&str),
    /// Digest of every entry that was read, by chain and sequence number.
    digests: HashMap<(String, u64), Digest>,
    superseded: Superseded,
    /// Paths that chunks name.
    named: HashSet<String>,
}

/// Checks a ledger. `each` is told every path before it is read, for a progress bar.
///
/// # Errors
/// The store failed.
pub fn verify(ledger: &Ledger, each: &mut dyn FnMut(&str)) -> Result<Verification, LedgerError> {
    verify_with(ledger, None, each)
}

/// As [`verify`], with a head that was kept elsewhere: the digest of an index entry.
///
/// # Errors
/// The store failed.
pub fn verify_with(
    ledger: &Ledger,
    head: Option<&Digest>,
    each: &mut dyn FnMut(&str),
) -> Result<Verification, LedgerError> {
    let report = Verification {
        outcome: Outcome::Intact,
        findings: Vec::new(),
        chains: Vec::new(),
        entries: 0,
        files: 0,
        bytes: 0,
        rows: 0,
        objects: 0,
        gone: Gone::default(),
        not_excluded: NOT_EXCLUDED.to_owned(),
    };
    let mut verifier = Verifier {
        ledger,
        report,
        control: Vec::new(),
        digests: HashMap::new(),
        each,
        superseded: Superseded::default(),
        named: HashSet::new(),
    };
    verifier.control()?;
    verifier.control.iter().for_each(|read| verifier.superseded.push(&read.entry));
    verifier.objects()?;
    let sources: BTreeSet<String> = verifier
        .control
        .iter()
        .filter_map(|read| match &read.entry.body {
            Control::Source { name, .. } => Some(name.clone()),
            _ => None,
        })
        .collect();
    for source in sources {
        verifier.source(&source)?;
    }
    verifier.verdicts()?;
    verifier.erasures();
    verifier.index()?;
    if let Some(head) = head {
        verifier.head(head);
    }
    let mut report = verifier.report;
    report.outcome = report.findings.iter().map(|f| f.outcome).min().unwrap_or(Outcome::Intact);
    Ok(report)
}

impl Verifier<'_> {
    /// Whether the head that was kept elsewhere stands in the index.
    fn head(&mut self, head: &Digest) {
        let place = Chain::Index.to_string();
        match head::find_head(self.ledger, head) {
            Ok(Some(seq)) => {
                self.report.not_excluded = format!(
                    "The head that was kept elsewhere is index entry {seq}: up to there nothing was removed or written \
                     anew. Of what came after it that cannot be excluded without a newer head."
                );
            }
            Ok(None) => {
                let what = "no index entry has the digest of the head that was kept elsewhere: since it was kept, entries \
                            were removed or written anew (or it is the head of another ledger)";
                self.find(Outcome::Altered, &place, Some(head.to_string()), what);
            }
            Err(error) => self.find_error(&place, error),
        }
    }

    fn find(&mut self, outcome: Outcome, place: &str, record: Option<String>, what: impl Into<String>) {
        self.report.findings.push(Finding { outcome, place: place.to_owned(), record, what: what.into() });
    }

    /// Sorts an error of reading into a finding.
    fn find_error(&mut self, place: &str, error: LedgerError) {
        match error {
            LedgerError::Altered { place, what } => self.find(Outcome::Altered, &place, None, what),
            LedgerError::Missing { place } => self.find(Outcome::Incomplete, &place, None, "it is missing"),
            other => self.find(Outcome::CannotCheck, place, None, other.to_string()),
        }
    }

    /// Reads a chain as far as it goes, and reports what does not join.
    fn chain<B: DeserializeOwned>(&mut self, chain: &Chain) -> Result<Vec<Read<B>>, LedgerError> {
        let store = self.ledger.store().clone();
        let mut entries: Vec<Read<B>> = Vec::new();
        let mut before: Option<Tail> = None;
        let mut seq = 0u64;
        loop {
            let path = chain.entry_path(seq);
            (self.each)(&path);
            let Some(bytes) = store.get(&path)? else { break };
            self.report.entries += 1;
            let digest = Digest::of(&bytes);
            let record = Some(format!("{chain} entry {seq}"));
            match serde_json::from_slice::<Entry<B>>(&bytes) {
                Ok(entry) => {
                    let read = Read { entry, digest: digest.clone() };
                    if read.entry.seq != seq {
                        let what = format!("the entry says that it is entry {}", read.entry.seq);
                        self.find(Outcome::Altered, &path, record.clone(), what);
                    } else if let Err(LedgerError::Altered { what, .. }) =
                        chain::joins(chain, before.as_ref(), &read)
                    {
                        self.find(Outcome::Altered, &path, record.clone(), what);
                    }
                    self.digests.insert((chain.to_string(), seq), digest.clone());
                    before = Some(Tail { seq, digest, at: read.entry.at });
                    entries.push(read);
                }
                Err(error) if error.is_eof() => {
                    self.find(Outcome::Truncated, &path, record, "the entry is cut off");
                    before = Some(Tail { seq, digest, at: Timestamp(i64::MIN) });
                }
                Err(error) => {
                    let shaped = serde_json::from_slice::<Entry<serde_json::Value>>(&bytes).is_ok();
                    let (outcome, what) = if shaped {
                        (Outcome::CannotCheck, format!("this build does not know its body: {error}"))
                    } else {
                        (Outcome::Altered, format!("it is not an entry: {error}"))
                    };
                    self.find(outcome, &path, record, what);
                    before = Some(Tail { seq, digest, at: Timestamp(i64::MIN) });
                }
            }
            seq = seq.saturating_add(1);
        }
        if let Some(behind) = chain::behind_a_hole(&*store, chain, seq, seq)? {
            let what = format!("it is missing, and entry {behind} stands behind it");
            self.find(
                Outcome::Incomplete,
                &chain.entry_path(seq),
                Some(format!("{chain} entry {seq}")),
                what,
            );
        }
        let tail = before.map(|tail| tail.digest);
        self.report.chains.push(ChainEnd { chain: chain.to_string(), entries: seq, tail });
        Ok(entries)
    }

    fn control(&mut self) -> Result<(), LedgerError> {
        self.control = self.chain::<Control>(&Chain::Control)?;
        let path = Chain::Control.entry_path(0);
        let genesis = self.control.first().map(|read| read.entry.body.clone());
        match genesis {
            Some(Control::Genesis { ledger_id, clock }) if ledger_id == self.ledger.meta().id => {
                if clock != self.ledger.meta().clock {
                    let what = "its `clock` is not the one that the ledger's genesis states";
                    self.find(Outcome::Altered, names::META, None, what);
                }
            }
            Some(_) => self.find(Outcome::Altered, &path, None, "it is not the genesis of this ledger"),
            None => self.find(Outcome::Incomplete, &path, None, "the control chain has no genesis"),
        }
        Ok(())
    }

    /// Every object that the control chain names.
    fn objects(&mut self) -> Result<(), LedgerError> {
        let pair =
            |p: &Pair| vec![p.current_digest.clone(), p.candidate_digest.clone(), p.config_digest.clone()];
        let mut named: BTreeMap<Digest, u64> = BTreeMap::new();
        for read in &self.control {
            let digests = match &read.entry.body {
                Control::Source { map: Some(map), .. } => vec![map.clone()],
                Control::Observe { pair: p } => pair(p),
                Control::Register { plan, pair: p, trial, diff, .. } => {
                    let mut digests = pair(p);
                    digests.push(plan.clone());
                    digests.extend(trial.iter().chain(diff).cloned());
                    digests
                }
                Control::Plant { list, .. } => vec![list.clone()],
                Control::Verdict { document, .. } => vec![document.clone()],
                _ => Vec::new(),
            };
            for digest in digests {
                named.entry(digest).or_insert(read.entry.seq);
            }
        }
        for (digest, seq) in named {
            let path = names::object_path(&digest);
            (self.each)(&path);
            self.report.objects += 1;
            let record = Some(format!("named by control entry {seq}"));
            match self.ledger.store().get(&path)? {
                None => self.find(Outcome::Incomplete, &path, record, "the object is missing"),
                Some(bytes) if Digest::of(&bytes) != digest => {
                    self.find(Outcome::Altered, &path, record, "its SHA-256 is not its name");
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Each recorded verdict names the tails that it read: they have to stand in the chains as they were.
    fn verdicts(&mut self) -> Result<(), LedgerError> {
        #[derive(serde::Deserialize)]
        struct Document {
            #[serde(default)]
            tails: Vec<NamedTail>,
        }
        #[derive(serde::Deserialize)]
        struct NamedTail {
            chain: String,
            seq: u64,
            digest: Digest,
        }
        let named: Vec<(u64, Digest)> = self
            .control
            .iter()
            .filter_map(|read| match &read.entry.body {
                Control::Verdict { document, .. } => Some((read.entry.seq, document.clone())),
                _ => None,
            })
            .collect();
        for (seq, digest) in named {
            let Some(bytes) = self.ledger.store().get(&names::object_path(&digest))? else { continue };
            let Ok(document) = serde_json::from_slice::<Document>(&bytes) else { continue };
            for tail in document.tails {
                let there = self.digests.get(&(tail.chain.clone(), tail.seq));
                let what = match there {
                    Some(there) if *there == tail.digest => continue,
                    Some(_) => "it is not the entry that a recorded verdict rests on",
                    None => "it is missing, and a recorded verdict rests on it",
                };
                let record = Some(format!("the verdict of control entry {seq}"));
                self.find(Outcome::Altered, &format!("{} entry {}", tail.chain, tail.seq), record, what);
            }
        }
        Ok(())
    }

    /// The index against the chains, the days against the chunks.
    fn index(&mut self) -> Result<(), LedgerError> {
        let index = index::check_index(self.ledger, self.each)?;
        self.report.findings.extend(index.findings);
        self.report.chains.extend(index.chain);
        self.report.entries += index.entries;
        self.report.files += index.files;
        self.report.bytes += index.bytes;
        self.report.rows += index.rows;
        self.report.objects += index.objects;
        Ok(())
    }

    fn source(&mut self, source: &str) -> Result<(), LedgerError> {
        let mut known = 1;
        let mut number = 0;
        while number < known {
            let chain = Chain::partition(source, Partition(number));
            let entries = self.chain::<PartitionBody>(&chain)?;
            known = entries.iter().map(|r| r.entry.body.progress().partitions).fold(known, i32::max);
            self.partition(&chain, Partition(number), &entries)?;
            number += 1;
        }
        Ok(())
    }

    fn partition(
        &mut self,
        chain: &Chain,
        partition: Partition,
        entries: &[Read<PartitionBody>],
    ) -> Result<(), LedgerError> {
        let mut before: Option<(u64, &PartitionBody)> = None;
        for read in entries {
            let (seq, body) = (read.entry.seq, &read.entry.body);
            let path = chain.entry_path(seq);
            let record = format!("{chain} entry {seq}");
            // After an unreadable entry the next one cannot be held against its predecessor.
            let adjacent = before.is_some_and(|(s, _)| s + 1 == seq) || seq == 0;
            if adjacent && let Some(what) = breaks(before.map(|(_, body)| body), body) {
                self.find(Outcome::Altered, &path, Some(record.clone()), what);
            }
            let named = body.control();
            let there = self.control.iter().find(|c| c.entry.seq == named.seq);
            match there.map(|c| (c.digest == named.digest, c.entry.at)) {
                None => {
                    let what = format!("the control chain has no entry {}, which this one names", named.seq);
                    self.find(Outcome::Truncated, &path, Some(record.clone()), what);
                }
                Some((false, _)) => {
                    let what = format!("it names control entry {} by another digest", named.seq);
                    self.find(Outcome::Altered, &path, Some(record.clone()), what);
                }
                Some((true, at)) if read.entry.at < at => {
                    let what = format!("its time is before that of control entry {}", named.seq);
                    self.find(Outcome::Altered, &path, Some(record.clone()), what);
                }
                Some(_) => {}
            }
            if let Some(chunk) = body.chunk() {
                self.chunk(&path, &record, partition, chunk)?;
            }
            before = Some((seq, body));
        }
        Ok(())
    }

    fn chunk(
        &mut self,
        path: &str,
        record: &str,
        partition: Partition,
        chunk: &Chunk,
    ) -> Result<(), LedgerError> {
        let mut counted = Counted { partition, ..Counted::default() };
        let mut whole = true;
        for named in &chunk.files {
            self.named.insert(named.path.clone());
            let standing = match self.superseded.standing(named) {
                Ok(standing) => standing,
                Err(error) => {
                    whole = false;
                    counted.without_calls |= named.kind == FileKind::Calls;
                    self.find_error(&named.path, error);
                    continue;
                }
            };
            self.report.gone.add(named.kind, &standing);
            counted.gone(named.kind, standing.erased + standing.expired);
            let Some(file) = &standing.file else { continue };
            (self.each)(&file.path);
            self.report.files += 1;
            let Some(bytes) = self.bytes(file, record)? else {
                whole = false;
                counted.without_calls |= file.kind == FileKind::Calls;
                continue;
            };
            self.report.bytes += file.bytes;
            let rows = match file.kind {
                FileKind::Calls => counted.calls(&file.path, bytes, chunk),
                FileKind::Results => counted.results(&file.path, bytes, chunk),
                FileKind::Dead => counted.dead(&file.path, bytes, chunk),
            };
            match rows {
                Ok(rows) if rows == file.rows => self.report.rows += rows,
                Ok(rows) => {
                    let what = format!("it has {rows} rows, its entry says {}", file.rows);
                    self.find(Outcome::Altered, &file.path, Some(record.to_owned()), what);
                }
                Err(error) => {
                    whole = false;
                    counted.without_calls |= file.kind == FileKind::Calls;
                    self.find_error(&file.path, error);
                }
            }
        }
        if whole && let Some(what) = counted.differs(chunk) {
            self.find(Outcome::Altered, path, Some(record.to_owned()), what);
        }
        Ok(())
    }

    /// Erasures that fit no chunk, and files that two entries supersede.
    fn erasures(&mut self) {
        let mut odd: Vec<(u64, String)> = self.superseded.twice().to_vec();
        let known: HashSet<&str> = self.superseded.written().map(|(_, file)| file.path.as_str()).collect();
        let nowhere = self
            .superseded
            .replaced()
            .filter(|(_, path)| !self.named.contains(*path) && !known.contains(path));
        odd.extend(nowhere.map(|(seq, path)| (seq, path.to_owned())));
        odd.sort();
        for (seq, path) in odd {
            let record = Some(format!("control entry {seq}"));
            let what = "it is superseded there, and it is no file that stood in the record then";
            self.find(Outcome::Altered, &path, record, what);
        }
    }

    /// A file's bytes, if they are those that the entry names.
    fn bytes(&mut self, file: &FileRef, record: &str) -> Result<Option<bytes::Bytes>, LedgerError> {
        let record = Some(record.to_owned());
        let Some(bytes) = self.ledger.store().get(&file.path)? else {
            self.find(Outcome::Incomplete, &file.path, record, "the file is missing");
            return Ok(None);
        };
        let length = bytes.len() as u64;
        if length < file.bytes {
            let what = format!("it has {length} bytes, its entry says {}", file.bytes);
            self.find(Outcome::Truncated, &file.path, record, what);
        } else if length > file.bytes || Digest::of(&bytes) != file.sha256 {
            self.find(Outcome::Altered, &file.path, record, "its SHA-256 is not the one in its entry");
        } else {
            return Ok(Some(bytes));
        }
        Ok(None)
    }
}

/// What the files of one chunk hold, counted from their rows.
#[derive(Default)]
struct Counted {
    partition: Partition,
    /// The calls file is not there or not readable: commitments cannot be held against it.
    without_calls: bool,
    /// Calls and dead letters that were erased or expired: so many may be missing, and must be.
    gone: [u64; 2],
    calls: u64,
    dead: u64,
    dead_reasons: BTreeMap<String, u64>,
    by_call: BTreeMap<CallKey, u64>,
    commitments: HashMap<Position, [u8; 32]>,
    tallies: BTreeMap<TallyKey, Counts>,
    exposure: BTreeMap<(Day, Digest, u16), (u64, u64)>,
}

impl Counted {
    fn gone(&mut self, kind: FileKind, rows: u64) {
        match kind {
            FileKind::Calls => self.gone[0] += rows,
            FileKind::Dead => self.gone[1] += rows,
            FileKind::Results => {}
        }
    }

    /// Positions lie in the chunk's range and ascend.
    fn place(
        &self,
        path: &str,
        chunk: &Chunk,
        last: &mut Option<Position>,
        at: Position,
        repeats: bool,
    ) -> Result<(), LedgerError> {
        let ascends = last.is_none_or(|before| before < at || (repeats && before == at));
        if at.partition != self.partition.0 || !chunk.range.contains(Offset(at.offset)) || !ascends {
            let what = format!("the row at offset {} does not belong there", at.offset);
            return Err(LedgerError::altered(path, what));
        }
        *last = Some(at);
        Ok(())
    }

    fn calls(&mut self, path: &str, bytes: bytes::Bytes, chunk: &Chunk) -> Result<u64, LedgerError> {
        let (mut rows, mut last) = (0u64, None);
        calls::for_each_row(path, bytes, |row| {
            self.place(path, chunk, &mut last, row.position, false)?;
            if row.day != row.ts.day() {
                let what = format!("the row at offset {} has another day than its time", row.position.offset);
                return Err(LedgerError::altered(path, what));
            }
            let key = (
                row.day,
                row.tool_id.clone(),
                row.contract_id.clone(),
                row.cohort.clone(),
                row.agent_id.clone(),
            );
            *self.by_call.entry(key).or_default() += 1;
            self.commitments.insert(row.position, row.commitment());
            rows += 1;
            Ok(())
        })?;
        self.calls += rows;
        Ok(rows)
    }

    fn results(&mut self, path: &str, bytes: bytes::Bytes, chunk: &Chunk) -> Result<u64, LedgerError> {
        let (mut rows, mut last) = (0u64, None);
        results::for_each_row(path, bytes, |row| {
            self.place(path, chunk, &mut last, row.position, true)?;
            if row.day != row.ts.day() {
                let what = format!("the row at offset {} has another day than its time", row.position.offset);
                return Err(LedgerError::altered(path, what));
            }
            match self.commitments.get(&row.position) {
                Some(commitment) if *commitment == row.commitment => {}
                None if self.without_calls || self.gone[0] > 0 => {}
                Some(_) => {
                    let what = format!(
                        "the row at offset {} commits to {}, which is not the call in the calls file",
                        row.position.offset,
                        hex(&row.commitment)
                    );
                    return Err(LedgerError::altered(path, what));
                }
                None => {
                    let what =
                        format!("the row at offset {} has no call in the calls file", row.position.offset);
                    return Err(LedgerError::altered(path, what));
                }
            }
            let Some(epoch) = Digest::parse(&row.epoch) else {
                return Err(LedgerError::altered(path, "an epoch is not a digest"));
            };
            let key = (row.day, row.tool_id.clone(), epoch.clone(), row.cohort.clone(), row.agent.clone());
            count(self.tallies.entry(key).or_default(), &row);
            if matches!(row.result, ComparisonResult::Agreed | ComparisonResult::Disagreed) {
                for place in &row.places_touched {
                    self.exposure.entry((row.day, epoch.clone(), *place)).or_default().0 += 1;
                }
                for place in &row.places_disagreed {
                    self.exposure.entry((row.day, epoch.clone(), *place)).or_default().1 += 1;
                }
            }
            rows += 1;
            Ok(())
        })?;
        Ok(rows)
    }

    fn dead(&mut self, path: &str, bytes: bytes::Bytes, chunk: &Chunk) -> Result<u64, LedgerError> {
        let (mut rows, mut last) = (0u64, None);
        dead::for_each_row(path, bytes, |row| {
            self.place(path, chunk, &mut last, row.position, false)?;
            *self.dead_reasons.entry(row.reason).or_default() += 1;
            rows += 1;
            Ok(())
        })?;
        self.dead += rows;
        Ok(rows)
    }

    /// What of the entry's counts is not what the rows say.
    fn differs(&self, chunk: &Chunk) -> Option<String> {
        let by_call: BTreeMap<CallKey, u64> = chunk.calls.iter().map(|c| (c.key(), c.calls)).collect();
        let tallies: BTreeMap<TallyKey, Counts> =
            chunk.tallies.iter().map(|t| (t.key(), t.counts.clone())).collect();
        let exposure: BTreeMap<(Day, Digest, u16), (u64, u64)> = chunk
            .exposure
            .iter()
            .map(|e| ((e.day, e.epoch.clone(), e.place), (e.touched, e.disagreed)))
            .collect();
        let [calls_gone, dead_gone] = self.gone;
        // What is gone cannot be counted any more: what is left is a part of what the entry counts.
        let within = |rows: &BTreeMap<CallKey, u64>| {
            rows.iter().all(|(key, n)| by_call.get(key).is_some_and(|all| n <= all))
        };
        let dead_within =
            self.dead_reasons.iter().all(|(r, n)| chunk.dead_reasons.get(r).is_some_and(|all| n <= all));
        let what = if self.calls + calls_gone != chunk.balance.calls {
            "the number of calls"
        } else if self.dead + dead_gone != chunk.balance.dead
            || (dead_gone == 0 && self.dead_reasons != chunk.dead_reasons)
            || !dead_within
        {
            "the number of dead letters"
        } else if (calls_gone == 0 && self.by_call != by_call) || !within(&self.by_call) {
            "the call counts by day, tool, contract, cohort and agent"
        } else if self.tallies != tallies {
            "the tallies"
        } else if self.exposure != exposure {
            "the exposure of changed places"
        } else {
            return None;
        };
        Some(format!("{what} in the entry differ from the rows of its files"))
    }
}

/// Adds one row to the counts.
fn count(counts: &mut Counts, row: &ResultRow) {
    match row.result {
        ComparisonResult::Agreed => counts.agreed += 1,
        ComparisonResult::Disagreed => counts.disagreed += 1,
        ComparisonResult::BothRejected => counts.both_rejected += 1,
        ComparisonResult::Excluded => counts.excluded += 1,
        ComparisonResult::Unresolved => counts.unresolved += 1,
    }
    let blocked = row.discrepancies.iter().any(|d| d.refused || d.severity == Severity::Block);
    if row.result == ComparisonResult::Disagreed && blocked {
        counts.block_or_refused += 1;
    }
    let keys: BTreeSet<String> =
        row.discrepancies.iter().map(|d| category_key(d.category, d.severity)).collect();
    keys.into_iter().for_each(|key| counts.categories.add(key, 1));
    if let Some(reason) = row.reason {
        counts.reasons.add(reason.as_str(), 1);
    }
    if matches!(row.result, ComparisonResult::Agreed | ComparisonResult::Disagreed) {
        let levels = [
            (row.evidence.validation, "validation"),
            (row.evidence.arguments, "arguments"),
            (row.evidence.outcome, "outcome"),
        ];
        levels.iter().filter(|(on, _)| *on).for_each(|(_, name)| counts.evidence.add(*name, 1));
    }
    counts.fidelity.add(wire::fidelity(row.fidelity), 1);
    row.rules.iter().for_each(|rule| counts.rules.add(rule.clone(), 1));
}
