//! The recorder of one partition: a pure state machine. Records, positions and answers go in, with the clock; what is
//! to be written comes out. It opens no file, reads no clock, and draws no randomness of its own.

mod mapped;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use lastcall_compare::{COMPARATOR_VERSION, Comparison, Reason};
use lastcall_event::source::{Decoder, Message};
use lastcall_event::{CallRecord, Decoded, Record, Timestamp, Upstream};
use lastcall_ledger::chain::{Append, Tail};
use lastcall_ledger::entry::{
    Balance, Build, Chunk, CoverageCount, FileKind, FileRef, Fingerprint, LastRecord, LossCount,
    PartitionBody, Progress, UpstreamProgress,
};
use lastcall_ledger::names::data_path;
use lastcall_ledger::position::{NextOffset, Offset, Range};
use lastcall_ledger::rows::Position;
use lastcall_ledger::{CallRef, CallsWriter, DeadRef, DeadWriter, ResultRef, ResultsWriter, hex};
use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_128;

use crate::judge::Judged;
use crate::redact::MARK;
use crate::step::{Action, Commit, Config, Incoming, Input, Limits, Random, RecordError, Spec};
use crate::tallies::Tallies;

/// The chunk that is being filled.
struct Open {
    first: NextOffset,
    since: Timestamp,
    balance: Balance,
    unknown_fields: u64,
    dead_reasons: BTreeMap<&'static str, u64>,
    tallies: Tallies,
    coverage: Vec<CoverageCount>,
    losses: Vec<LossCount>,
    oldest: Option<Timestamp>,
    newest: Option<Timestamp>,
    last: Option<(Offset, Option<Timestamp>)>,
    raw_bytes: u64,
    checked_at: u64,
}

/// The recorder of one partition.
pub struct Recorder {
    spec: Spec,
    limits: Limits,
    config: Config,
    next_config: Option<Box<Config>>,
    tail: Option<Tail>,
    /// Where the partition stands after everything that was taken in, committed or not.
    progress: Option<Progress>,
    open: Option<Open>,
    in_flight: bool,
    due: bool,
    heartbeat: bool,
    calls: CallsWriter,
    results: ResultsWriter,
    dead: DeadWriter,
    last_bytes: Vec<u8>,
    prefix: Option<u128>,
    judged: Vec<Judged>,
    random: Random,
    salts: Vec<u8>,
    repeated: u64,
    /// Where the first dead letter stands, and why it is one.
    first_dead: Option<String>,
    /// Reads the messages of a mapped source.
    decoder: Option<Arc<Decoder>>,
    /// The time of the message that is being read; none where calls' own times are not held against it.
    message_time: Option<Timestamp>,
    /// When the record is read; none in a simulated ledger.
    read_at: Option<Timestamp>,
}

const SALTS: usize = 4096;
/// Raw bytes after which the memory that a chunk holds is measured again.
const MEASURE: u64 = 1 << 20;

impl Recorder {
    /// A recorder without an assignment.
    pub fn new(spec: Spec, limits: Limits, config: Config, random: Random) -> Self {
        Self {
            spec,
            limits,
            config,
            next_config: None,
            tail: None,
            progress: None,
            open: None,
            in_flight: false,
            due: false,
            heartbeat: false,
            calls: CallsWriter::default(),
            results: ResultsWriter::default(),
            dead: DeadWriter::default(),
            last_bytes: Vec::new(),
            prefix: None,
            judged: Vec::new(),
            random,
            salts: Vec::new(),
            repeated: 0,
            first_dead: None,
            decoder: None,
            message_time: None,
            read_at: None,
        }
    }

    /// Reads messages through a map.
    #[must_use]
    pub fn reading(mut self, decoder: Option<Decoder>) -> Self {
        self.decoder = decoder.map(Arc::new);
        self
    }

    /// Where reading goes on: everything before was taken in, committed or not.
    pub fn next(&self) -> Option<NextOffset> {
        self.progress.as_ref().map(|p| p.next)
    }

    /// Bytes that the open chunk holds in memory, about.
    pub fn held(&mut self) -> usize {
        self.calls.held() + self.results.held() + self.dead.held()
    }

    /// The control entry under which the next chunk opens.
    pub fn control(&self) -> u64 {
        self.next_config.as_ref().map_or(self.config.control.seq, |config| config.control.seq)
    }

    /// Whether a record's bytes are those that an entry names as its last; one whose hash was made with a key that is not
    /// here cannot be told.
    pub fn knows(&self, last: &LastRecord, bytes: &[u8]) -> bool {
        let hash = xxh3_128(bytes);
        match (&self.config.redactor, last.hash.starts_with(MARK)) {
            (Some(redactor), true) => redactor.of_hash(hash) == last.hash,
            (None, true) => true,
            (_, false) => format!("{hash:032x}") == last.hash,
        }
    }

    /// Whether an append is in flight.
    pub fn in_flight(&self) -> bool {
        self.in_flight
    }

    /// Whether nothing is open, in flight or waiting to be written.
    pub fn is_idle(&self) -> bool {
        self.open.is_none() && !self.in_flight && !self.heartbeat
    }

    /// Records that were delivered again and passed over.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Where the first record stands that could not be decoded, and why; no value of it.
    pub fn first_dead(&self) -> Option<&str> {
        self.first_dead.as_deref()
    }

    /// Takes back the memory of files that were written: the next chunk is made in it.
    pub fn reuse(&mut self, files: Vec<(FileKind, Bytes)>) {
        for (kind, memory) in files {
            match kind {
                FileKind::Calls => self.calls.reuse(memory),
                FileKind::Results => self.results.reuse(memory),
                FileKind::Dead => {}
            }
        }
    }

    /// One step. `now` is the system's clock: the age of chunks, and in a system ledger the time of entries.
    pub fn step(&mut self, input: Input<'_>, now: Timestamp) -> Result<Vec<Action>, RecordError> {
        let mut actions = Vec::new();
        match input {
            Input::Assigned { tail, progress } => {
                self.drop_all();
                self.tail = Some(tail);
                self.progress = Some(progress);
            }
            Input::Lost => self.drop_all(),
            Input::Configured(config) => {
                self.next_config = Some(config);
                self.due |= self.open.is_some();
            }
            Input::Record(incoming) => self.record(&incoming, now)?,
            Input::Barrier { next, prefix, read_through, is_final } => {
                self.barrier(next, prefix, read_through, is_final)?;
            }
            Input::Tick => {}
            Input::Partitions(count) => {
                if let Some(progress) = &mut self.progress {
                    progress.partitions = progress.partitions.max(count);
                }
            }
            Input::Close => self.due |= self.open.is_some(),
            Input::Appended(answer) => match (answer, self.in_flight) {
                (_, false) => return Err(self.out_of_order("an answer without an append")),
                (Append::Won(tail), true) => {
                    self.in_flight = false;
                    self.tail = Some(tail);
                }
                (Append::Lost, true) => {
                    self.drop_all();
                    actions.push(Action::Reassign);
                }
            },
        }
        if let Some(open) = &self.open {
            self.due |= now.0.saturating_sub(open.since.0) >= self.limits.age_ms;
        }
        if !self.in_flight {
            if self.due && self.open.is_some() {
                actions.push(self.close(now)?);
            } else if self.heartbeat && self.open.is_none() {
                actions.push(self.beat(now)?);
            }
        }
        Ok(actions)
    }

    fn out_of_order(&self, what: &'static str) -> RecordError {
        RecordError::OutOfOrder(self.spec.source.clone(), what)
    }

    fn hole(&self, expected: NextOffset, found: i64) -> RecordError {
        RecordError::Hole {
            source_name: self.spec.source.clone(),
            partition: self.spec.partition.0,
            expected: expected.0,
            found,
        }
    }

    fn drop_all(&mut self) {
        if self.open.take().is_some() {
            self.calls = CallsWriter::default();
            self.results = ResultsWriter::default();
            self.dead = DeadWriter::default();
        }
        self.tail = None;
        self.progress = None;
        self.prefix = None;
        self.in_flight = false;
        self.due = false;
        self.heartbeat = false;
    }

    /// Opens a chunk under the newest configuration.
    fn open(&mut self, first: NextOffset, now: Timestamp) -> &mut Open {
        if self.open.is_none()
            && let Some(config) = self.next_config.take()
        {
            self.config = *config;
        }
        self.open.get_or_insert_with(|| Open {
            first,
            since: now,
            balance: Balance::default(),
            unknown_fields: 0,
            dead_reasons: BTreeMap::new(),
            tallies: Tallies::default(),
            coverage: Vec::new(),
            losses: Vec::new(),
            oldest: None,
            newest: None,
            last: None,
            raw_bytes: 0,
            checked_at: 0,
        })
    }

    fn record(&mut self, incoming: &Incoming<'_>, now: Timestamp) -> Result<(), RecordError> {
        let Incoming { offset, next, bytes, length, .. } = *incoming;
        let Some(expected) = self.next() else {
            return Err(self.out_of_order("a record without an assignment"));
        };
        if offset.0 < expected.0 {
            self.repeated += 1;
            return Ok(());
        }
        if next.0 <= offset.0 || (self.spec.dense && offset != expected.offset()) {
            return Err(self.hole(expected, offset.0));
        }
        self.open(expected, now);
        let received = self.clock(now);
        self.message_time = incoming.time.filter(|_| !self.spec.simulated);
        self.read_at = (!self.spec.simulated).then_some(now);
        let position = Position { partition: self.spec.partition.0, offset: offset.0, index: 0 };
        let mut read = 1;
        if incoming.too_long {
            let message =
                format!("the record has {length} bytes, more than the limit; its first part is kept here");
            self.dead(position, bytes, length, "too_long", &message, received)?;
        } else if incoming.cut_off {
            let message = format!("the input ends after {length} bytes of this message");
            self.dead(position, bytes, length, "cut_off", &message, received)?;
        } else if bytes.iter().all(u8::is_ascii_whitespace) {
            self.count(|b| {
                b.other += 1;
                b.blank += 1;
            });
        } else if let Some(decoder) = self.decoder.clone() {
            let message = Message { key: incoming.key, headers: incoming.headers, value: bytes };
            read = self.mapped(&decoder, position, &message, received)?;
        } else {
            let (text, preset) = (lastcall_event::text(bytes), self.spec.preset);
            match text.and_then(|text| Ok((text, lastcall_event::decode_text(text, preset)?))) {
                Ok((text, decoded)) => {
                    if let Some(open) = &mut self.open {
                        open.unknown_fields += u64::from(decoded.unknown_fields);
                    }
                    let redacted = self.redacted(&decoded.record, text);
                    let stored = redacted.as_ref().map(|text| lastcall_event::decode_text(text, preset));
                    match (&redacted, stored) {
                        (None, _) => self.decoded(position, &decoded.record, None, text)?,
                        (Some(text), Some(Ok(Decoded { record: Record::Call(stored), .. }))) => {
                            self.decoded(position, &decoded.record, Some(&stored), text)?;
                        }
                        _ => {
                            let message = "what is left of it under the source's redaction cannot be read";
                            self.dead(position, bytes, length, "not_redacted", message, received)?;
                        }
                    }
                }
                Err(error) => self.dead(position, bytes, length, error.code, &error.message, received)?,
            }
        }
        self.last_bytes.clear();
        self.last_bytes.extend_from_slice(bytes);
        self.prefix = incoming.prefix.or(self.prefix);
        if let Some(progress) = &mut self.progress {
            progress.next = next;
        }
        self.count(|b| b.read += read);
        self.measure(offset, incoming.time, length);
        Ok(())
    }

    fn count(&mut self, add: impl FnOnce(&mut Balance)) {
        if let Some(open) = &mut self.open {
            add(&mut open.balance);
        }
    }

    /// Notes the last record and whether the chunk has grown past a limit.
    fn measure(&mut self, offset: Offset, time: Option<Timestamp>, length: u64) {
        let Some(open) = &mut self.open else { return };
        open.last = Some((offset, time));
        open.raw_bytes += length;
        self.due |= open.balance.read >= self.limits.records || open.tallies.cells() >= self.limits.cells;
        if open.raw_bytes - open.checked_at >= MEASURE {
            open.checked_at = open.raw_bytes;
            self.due |= self.calls.held() + self.results.held() + self.dead.held() >= self.limits.bytes;
        }
    }

    /// The writer's own clock, as entries state it.
    fn clock(&self, now: Timestamp) -> Option<Timestamp> {
        if self.spec.simulated { self.progress.as_ref().and_then(|p| p.clock) } else { Some(now) }
    }

    fn dead(
        &mut self,
        position: Position,
        bytes: &[u8],
        length: u64,
        code: &'static str,
        message: &str,
        received: Option<Timestamp>,
    ) -> Result<(), RecordError> {
        let hidden = self.config.redactor.as_ref().map(|redactor| redactor.dead(bytes));
        let bytes = hidden.as_deref().unwrap_or(bytes);
        self.dead.append(&DeadRef { position, bytes, length, reason: code, message, received })?;
        self.first_dead.get_or_insert_with(|| match position.index {
            0 => format!("at byte {}: {message}", position.offset),
            index => format!("at byte {}, record {} in it: {message}", position.offset, i64::from(index) + 1),
        });
        if let Some(open) = &mut self.open {
            open.balance.dead += 1;
            *open.dead_reasons.entry(code).or_default() += 1;
        }
        Ok(())
    }

    /// A call's text as it is stored, where the source's redaction touches it.
    fn redacted(&self, record: &Record<'_>, text: &str) -> Option<String> {
        let (Some(redactor), Record::Call(call)) = (&self.config.redactor, record) else { return None };
        redactor.record(&call.tool_id, text)
    }

    /// `stored`: the call under the source's redaction, where that touches it; `text`: the text that is stored.
    fn decoded(
        &mut self,
        position: Position,
        record: &Record<'_>,
        stored: Option<&CallRecord<'_>>,
        text: &str,
    ) -> Result<(), RecordError> {
        match record {
            Record::Call(call) => return self.call(position, call, stored.unwrap_or(call), text),
            Record::Coverage(row) => {
                self.count(|b| {
                    b.other += 1;
                    b.coverage += 1;
                });
                if let (Some(open), Some(tool), Some(hour), Some(count)) =
                    (&mut self.open, &row.tool_id, row.hour, row.count)
                {
                    open.coverage.push(CoverageCount { tool: (**tool).to_owned(), hour, count });
                }
                if let Some(progress) = &mut self.progress {
                    progress.coverage_through = progress.coverage_through.max(row.through);
                }
                self.upstream(row.upstream.as_ref());
            }
            Record::Loss(row) => {
                self.count(|b| {
                    b.other += 1;
                    b.loss += 1;
                });
                if let Some(open) = &mut self.open {
                    open.losses.push(LossCount {
                        tool: row.tool_id.as_deref().map(str::to_owned),
                        from: row.interval.from,
                        to: row.interval.to,
                        count: row.count,
                    });
                }
            }
            Record::Clock(at) => {
                self.count(|b| {
                    b.other += 1;
                    b.clock += 1;
                });
                // Time never runs backwards; in a system ledger clock records move nothing.
                if let Some(progress) = self.progress.as_mut().filter(|_| self.spec.simulated) {
                    progress.clock = progress.clock.max(Some(*at));
                }
            }
        }
        Ok(())
    }

    /// Mirrored rows join upstream: what is missing between them is counted, repeats collapse.
    fn upstream(&mut self, row: Option<&Upstream<'_>>) {
        let (Some(row), Some(progress)) = (row, &mut self.progress) else { return };
        if row.to < row.from {
            return;
        }
        // Nobody knows what is still to come, whatever a row states.
        let through = row.through.map(|at| self.read_at.map_or(at, |now| at.min(now)));
        progress.upstream = Some(match progress.upstream {
            None => UpstreamProgress { from: row.from, to: row.to, through, missing: 0 },
            Some(seen) => UpstreamProgress {
                from: seen.from,
                to: seen.to.max(row.to),
                through: seen.through.max(through),
                missing: seen
                    .missing
                    .saturating_add(u64::try_from(row.from.saturating_sub(seen.to)).unwrap_or(0)),
            },
        });
    }

    /// `call` is compared, `stored` is written.
    fn call(
        &mut self,
        position: Position,
        call: &CallRecord<'_>,
        stored: &CallRecord<'_>,
        record: &str,
    ) -> Result<(), RecordError> {
        let salt = self.salt()?;
        let call_key = first16(call.call_id.as_bytes());
        let envelope = &stored.envelope;
        let unit = envelope.session_id.as_ref().or(envelope.run_id.as_ref()).or(envelope.trace_id.as_ref());
        let session_key = unit.map(|text| first16(text.as_bytes()));
        let preset = self.spec.preset.stored();
        let off = self.message_time.filter(|message| call.ts.is_off(*message));
        let ts = off.unwrap_or(call.ts);
        let commitment = self.calls.append(&CallRef {
            position,
            call_key: &call_key,
            ts,
            call: stored,
            preset,
            record,
            salt: &salt,
        })?;
        self.judged.clear();
        let judge = &self.config.judge;
        judge.judge(call, &mut self.judged);
        if off.is_some() {
            self.judged.iter_mut().for_each(|j| j.comparison = Comparison::unresolved(Reason::Clock));
        }
        if let Some(redactor) = &self.config.redactor {
            let mask = |j: &mut Judged| redactor.mask(&call.tool_id, &mut j.comparison.discrepancies);
            self.judged.iter_mut().for_each(mask);
        }
        self.upstream(call.upstream.as_ref());
        let Some(open) = &mut self.open else { return Ok(()) };
        let pairs = self.config.judge.pairs();
        let mismatch = match &call.contract_digest {
            None => false,
            Some(stated) => self.judged.iter().any(|j| !self.config.judge.is_current(j.pair, stated)),
        };
        let key = open.tallies.call(stored, ts.day(), mismatch);
        for judged in &self.judged {
            let Some(pair) = pairs.get(judged.pair) else { continue };
            open.tallies.comparison(key, judged.pair, call.fidelity, &judged.comparison);
            let candidate = call.candidates.iter().find(|c| *c.contract_id == *pair.candidate);
            self.results.append(&ResultRef {
                position,
                ts,
                call_key: &call_key,
                pair: judged.pair,
                tool_id: &call.tool_id,
                current: &pair.current,
                candidate: &pair.candidate,
                epoch: pair.epoch.as_str(),
                session_key: session_key.as_ref(),
                agent: envelope.agent_id.as_deref(),
                cohort: envelope.cohort.as_deref(),
                comparison: &judged.comparison,
                fidelity: call.fidelity,
                suppression: candidate.map(|c| c.suppression),
                candidate_status: candidate.map(|c| c.status),
                commitment: &commitment,
            })?;
        }
        open.balance.calls += 1;
        open.oldest = Some(open.oldest.map_or(ts, |t| t.min(ts)));
        open.newest = Some(open.newest.map_or(ts, |t| t.max(ts)));
        Ok(())
    }

    fn barrier(
        &mut self,
        next: NextOffset,
        prefix: Option<u128>,
        read_through: Option<Timestamp>,
        is_final: bool,
    ) -> Result<(), RecordError> {
        let (dense, lateness) = (self.spec.dense, self.spec.lateness_ms);
        let Some(progress) = &mut self.progress else {
            return Err(self.out_of_order("a position without an assignment"));
        };
        if (dense && next != progress.next) || next < progress.next {
            let expected = progress.next;
            return Err(self.hole(expected, next.0));
        }
        // A topic's gaps before the position belong to what is open; without it they wait for the next chunk.
        if self.open.is_some() {
            progress.next = next;
        }
        self.prefix = prefix.or(self.prefix);
        let read_through = read_through.filter(|_| !self.spec.simulated);
        let needed = needs_heartbeat(progress, read_through, is_final, lateness);
        progress.read_through = progress.read_through.max(read_through);
        progress.is_final |= is_final;
        self.heartbeat |= needed && self.open.is_none();
        Ok(())
    }

    fn build(&self) -> Build {
        Build { lastcall: env!("CARGO_PKG_VERSION").to_owned(), comparator: COMPARATOR_VERSION }
    }

    fn commit(
        &mut self,
        body: PartitionBody,
        files: Vec<(String, Bytes)>,
        previous: Tail,
        now: Timestamp,
    ) -> Action {
        self.in_flight = true;
        // A simulated partition without a clock has no time of its own: its predecessor's and the control entry's hold.
        let now = self.clock(now).unwrap_or(previous.at);
        Action::Commit(Box::new(Commit { previous, body, files, now, floor: self.config.at }))
    }

    fn beat(&mut self, now: Timestamp) -> Result<Action, RecordError> {
        self.heartbeat = false;
        if let Some(config) = self.next_config.take() {
            self.config = *config;
        }
        self.note_prefix();
        let (Some(previous), Some(progress)) = (self.tail.clone(), self.progress.clone()) else {
            return Err(self.out_of_order("a heartbeat without an assignment"));
        };
        let body =
            PartitionBody::Heartbeat { control: self.config.control.clone(), progress, build: self.build() };
        Ok(self.commit(body, Vec::new(), previous, now))
    }

    fn close(&mut self, now: Timestamp) -> Result<Action, RecordError> {
        self.due = false;
        self.heartbeat = false;
        let (Some(open), Some(tail)) = (self.open.take(), self.tail.clone()) else {
            return Err(self.out_of_order("a chunk without an assignment"));
        };
        let seq = tail.seq.saturating_add(1);
        let mut nonce = [0u8; 8];
        (self.random)(&mut nonce).map_err(RecordError::Random)?;
        let nonce = hex(&nonce);
        let mut named = Vec::new();
        let mut files = Vec::new();
        for kind in FileKind::ALL {
            let file = match kind {
                FileKind::Calls => self.calls.finish(),
                FileKind::Results => self.results.finish(),
                FileKind::Dead => self.dead.finish(),
            }?;
            let Some(file) = file else { continue };
            let path = data_path(kind.as_str(), &self.spec.source, self.spec.partition, seq, &nonce);
            let bytes = file.bytes.len() as u64;
            named.push(FileRef { kind, path: path.clone(), sha256: file.sha256, bytes, rows: file.rows });
            files.push((path, file.bytes));
        }
        let (calls, tallies, exposure) = open.tallies.finish(self.config.judge.pairs());
        let build = self.build();
        self.note_prefix();
        let last_hash = self.of_hash(xxh3_128(&self.last_bytes));
        let Some(progress) = &mut self.progress else {
            return Err(self.out_of_order("a chunk without an assignment"));
        };
        progress.fingerprint.last =
            open.last.map(|(offset, time)| LastRecord { offset, time, hash: last_hash.clone() });
        let chunk = Chunk {
            range: Range { first: open.first, next: progress.next },
            control: self.config.control.clone(),
            progress: progress.clone(),
            files: named,
            balance: open.balance,
            unknown_fields: open.unknown_fields,
            dead_reasons: open.dead_reasons.into_iter().map(|(code, n)| (code.to_owned(), n)).collect(),
            calls,
            tallies,
            exposure,
            coverage: open.coverage,
            losses: open.losses,
            oldest: open.oldest,
            newest: open.newest,
            build,
        };
        Ok(self.commit(PartitionBody::Chunk(Box::new(chunk)), files, tail, now))
    }

    fn note_prefix(&mut self) {
        let prefix = self.prefix.map(|prefix| self.of_hash(prefix));
        if let (Some(prefix), Some(progress)) = (prefix, &mut self.progress) {
            progress.fingerprint.prefix = Some(prefix);
        }
    }

    /// A hash over the text as it arrived, as entries state it.
    fn of_hash(&self, hash: u128) -> String {
        match &self.config.redactor {
            Some(redactor) => redactor.of_hash(hash),
            None => format!("{hash:032x}"),
        }
    }

    fn salt(&mut self) -> Result<[u8; 16], RecordError> {
        if self.salts.len() < 16 {
            self.salts.resize(SALTS, 0);
            (self.random)(&mut self.salts).map_err(RecordError::Random)?;
        }
        let at = self.salts.len() - 16;
        let salt = self.salts.get(at..).and_then(|s| s.try_into().ok()).unwrap_or_default();
        self.salts.truncate(at);
        Ok(salt)
    }
}

/// The first 16 bytes of SHA-256.
fn first16(bytes: &[u8]) -> [u8; 16] {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// Whether a new time of reading closes a day that the last one did not: an idle partition then says so, once.
fn needs_heartbeat(
    was: &Progress,
    read_through: Option<Timestamp>,
    is_final: bool,
    lateness_ms: i64,
) -> bool {
    let closed = |t: Timestamp| Timestamp(t.0.saturating_sub(lateness_ms)).day();
    if was.is_final {
        return false;
    }
    match (was.read_through, read_through) {
        _ if is_final => true,
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(was), Some(now)) => closed(now) > closed(was),
    }
}

/// The progress of a partition that begins at an offset.
pub fn beginning(next: NextOffset, partitions: i32) -> Progress {
    Progress {
        next,
        partitions,
        fingerprint: Fingerprint::default(),
        read_through: None,
        is_final: false,
        clock: None,
        upstream: None,
        coverage_through: None,
    }
}
