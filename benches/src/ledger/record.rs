//! A record that is made, not read: chunks of calls with repeats, in the product's own files and entries.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use lastcall_compare::{Category, Comparison, ComparisonResult, Discrepancy, Evidence, Severity};
use lastcall_contract::Digest;
use lastcall_decision::{Plan, Question, canonical_json, decide};
use lastcall_event::{Day, Fidelity, Preset, Timestamp};
use lastcall_ledger::chain::{Append, Tail, append};
use lastcall_ledger::control::{Control, Pair, Role, SourceKind};
use lastcall_ledger::entry::{
    Balance, Build, Chunk, ControlRef, FileKind, FileRef, Fingerprint, PartitionBody, Progress,
};
use lastcall_ledger::named::NamedCounts;
use lastcall_ledger::names::{Chain, data_path};
use lastcall_ledger::position::{NextOffset, Partition, Range};
use lastcall_ledger::rows::Position;
use lastcall_ledger::tally::{CallCount, Counts, Tally, category_key};
use lastcall_ledger::window::Record;
use lastcall_ledger::{Ledger, ResultRef, ResultsWriter};

/// Chunks of five minutes.
pub const CHUNKS_A_DAY: u64 = 288;
/// The first day.
pub const FIRST_DAY: Day = Day(20_605);
/// The source.
pub const SOURCE: &str = "calls.jsonl";
const TOOL: &str = "search";
const DAY_MS: u64 = 86_400_000;
/// One call in so many comes twice.
const REPEAT: u64 = 100;

/// Makes chunks.
pub struct Maker {
    ledger: Ledger,
    chain: Chain,
    tail: Tail,
    control: ControlRef,
    pair: Pair,
    calls: u64,
    chunks_a_day: u64,
    made: u64,
    seed: u64,
}

impl Maker {
    /// Registers the source, observes the pair, begins the chain.
    pub fn begin(ledger: Ledger, calls: u64) -> Result<Self> {
        let object = ledger.put_object(b"{}")?;
        ledger.append_control(Control::Source {
            name: SOURCE.to_owned(),
            role: Role::ToolCalls,
            source_kind: SourceKind::File,
            preset: Preset::Native,
            lateness_ms: 0,
            map: None,
        })?;
        let pair = Pair {
            tool_id: TOOL.to_owned(),
            current: format!("{TOOL}@1"),
            current_digest: object.clone(),
            candidate: format!("{TOOL}@2"),
            candidate_digest: object.clone(),
            config_digest: object,
            epoch: Digest::of(b"epoch"),
            comparator: 1,
        };
        let (seq, digest) = ledger.append_control(Control::Observe { pair: pair.clone() })?;
        let control = ControlRef { seq, digest };
        let chain = Chain::partition(SOURCE, Partition(0));
        let genesis = PartitionBody::Genesis {
            source: SOURCE.to_owned(),
            partition: 0,
            source_kind: SourceKind::File,
            location: SOURCE.to_owned(),
            control: control.clone(),
            progress: progress(0, FIRST_DAY.start()),
            build: build(),
        };
        let won = append(&**ledger.store(), &chain, None, "bench", FIRST_DAY.start(), None, &genesis)?;
        let Append::Won(tail) = won else { bail!("another writer") };
        let (made, seed) = (0, 7);
        Ok(Self { ledger, chain, tail, control, pair, calls, chunks_a_day: CHUNKS_A_DAY, made, seed })
    }

    /// Spreads so many chunks over so many days.
    pub fn spread(&mut self, chunks: u64, days: u64) {
        self.chunks_a_day = chunks.div_ceil(days).max(1);
    }

    /// Ends the open window and begins another.
    pub fn register(&mut self, from: Day) -> Result<()> {
        let plan = Plan::parse("burn_in:\n  profile: article\n  tier: T1\n", "release-policy.yaml")?;
        let plan = self.ledger.put_object(&plan.canonical()?)?;
        let state = self.ledger.control_now()?;
        if let Some(open) = state.registrations.iter().find(|r| r.end.is_none()) {
            let reason = "the next one begins".to_owned();
            self.ledger.append_control(Control::EndWindow { registration: open.seq, reason })?;
        }
        let (seq, digest) = self.ledger.append_control(Control::Register {
            plan,
            pair: self.pair.clone(),
            scored_from: from,
            sources: vec!["*".to_owned()],
            cohort: None,
            by: None,
            trial: None,
            diff: None,
        })?;
        self.control = ControlRef { seq, digest };
        Ok(())
    }

    /// Records a verdict, as `lastcall decide` does.
    pub fn decide(&mut self) -> Result<()> {
        let record = Record::read(self.ledger.clone())?;
        let inputs = record.gather(&record.subjects())?;
        for verdict in inputs.iter().map(decide) {
            let Some(registration) = &verdict.registration else { continue };
            anyhow::ensure!(
                verdict.question == Question::Cutover && verdict.problems.is_empty(),
                "{verdict:?}"
            );
            let document = self.ledger.put_object(&canonical_json(&verdict)?)?;
            self.ledger.append_control(Control::Verdict {
                registration: registration.seq,
                verdict: verdict.verdict.as_str().to_owned(),
                closed_through: verdict.window.as_ref().and_then(|w| w.closed_through),
                document,
            })?;
        }
        Ok(())
    }

    fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }

    /// One chunk: its results file, then its entry.
    pub fn chunk(&mut self) -> Result<()> {
        let day = FIRST_DAY.plus(i32::try_from(self.made / self.chunks_a_day)?);
        let within = self.made % self.chunks_a_day;
        let step = DAY_MS / self.chunks_a_day;
        let start = day.start().0 + i64::try_from(within * step)?;
        let first = i64::try_from(self.made * self.calls)?;
        let mut results = ResultsWriter::default();
        let (agreed, disagreed) =
            (comparison(ComparisonResult::Agreed), comparison(ComparisonResult::Disagreed));
        let mut counts = Counts::default();
        let mut last_key = [0u8; 16];
        for n in 0..self.calls {
            let random = self.random();
            if n == 0 || !random.is_multiple_of(REPEAT) {
                last_key = self.key();
            }
            let differs = random.is_multiple_of(997);
            let said = if differs { &disagreed } else { &agreed };
            if differs {
                counts.disagreed += 1
            } else {
                counts.agreed += 1
            }
            let session = self.key();
            results.append(&ResultRef {
                position: Position { partition: 0, offset: first + i64::try_from(n)?, index: 0 },
                ts: Timestamp(start + i64::try_from(n * step / self.calls.max(1))?),
                call_key: &last_key,
                pair: 0,
                tool_id: TOOL,
                current: &self.pair.current,
                candidate: &self.pair.candidate,
                epoch: self.pair.epoch.as_str(),
                session_key: Some(&session),
                agent: Some("agent"),
                cohort: Some(if random.is_multiple_of(3) { "eu" } else { "us" }),
                comparison: said,
                fidelity: Fidelity::Raw,
                suppression: None,
                candidate_status: None,
                commitment: &[7; 32],
            })?;
        }
        let file = results.finish()?.context("a chunk has rows")?;
        let seq = self.tail.seq + 1;
        let path = data_path("results", SOURCE, Partition(0), seq, "00");
        self.ledger.store().put(&path, &file.bytes)?;
        let files = vec![FileRef {
            kind: FileKind::Results,
            path,
            sha256: file.sha256,
            bytes: file.bytes.len() as u64,
            rows: file.rows,
        }];
        let next = first + i64::try_from(self.calls)?;
        let clock = Timestamp(start + i64::try_from(step)?);
        let body = PartitionBody::Chunk(Box::new(self.body(day, first, next, clock, files, counts)));
        let won = append(&**self.ledger.store(), &self.chain, Some(&self.tail), "bench", clock, None, &body)?;
        let Append::Won(tail) = won else { bail!("another writer") };
        self.tail = tail;
        self.made += 1;
        Ok(())
    }

    fn key(&mut self) -> [u8; 16] {
        let (a, b) = (self.random(), self.random());
        let mut key = [0u8; 16];
        key[..8].copy_from_slice(&a.to_be_bytes());
        key[8..].copy_from_slice(&b.to_be_bytes());
        key
    }

    fn body(
        &self,
        day: Day,
        first: i64,
        next: i64,
        clock: Timestamp,
        files: Vec<FileRef>,
        mut counts: Counts,
    ) -> Chunk {
        let one = |name: &'static str, n: u64| NamedCounts::from_iter([(name, n)]);
        counts.block_or_refused = counts.disagreed;
        counts.evidence = one("validation", self.calls);
        counts.fidelity = one("raw", self.calls);
        if counts.disagreed > 0 {
            let key = category_key(Category::EnumValueRemoved, Severity::Block);
            counts.categories = NamedCounts::from_iter([(key, counts.disagreed)]);
        }
        Chunk {
            range: Range { first: NextOffset(first), next: NextOffset(next) },
            control: self.control.clone(),
            progress: progress(next, clock),
            files,
            balance: Balance { read: self.calls, calls: self.calls, ..Balance::default() },
            unknown_fields: 0,
            dead_reasons: BTreeMap::new(),
            calls: vec![CallCount {
                day,
                tool: TOOL.into(),
                contract: None,
                cohort: None,
                agent: Some("agent".into()),
                calls: self.calls,
                digest_mismatch: 0,
            }],
            tallies: vec![Tally {
                day,
                tool: TOOL.into(),
                epoch: self.pair.epoch.clone(),
                cohort: None,
                agent: Some("agent".into()),
                counts,
            }],
            exposure: Vec::new(),
            coverage: Vec::new(),
            losses: Vec::new(),
            oldest: None,
            newest: Some(clock),
            build: build(),
        }
    }
}

fn build() -> Build {
    Build { lastcall: "bench".to_owned(), comparator: 1 }
}

fn progress(next: i64, clock: Timestamp) -> Progress {
    Progress {
        next: NextOffset(next),
        partitions: 1,
        fingerprint: Fingerprint::default(),
        read_through: None,
        is_final: false,
        clock: Some(clock),
        upstream: None,
        coverage_through: None,
    }
}

fn comparison(result: ComparisonResult) -> Comparison {
    let found = Discrepancy {
        field: "/kind".to_owned(),
        category: Category::EnumValueRemoved,
        severity: Severity::Block,
        refused: true,
        keyword: Some("enum".to_owned()),
        location: Some("/properties/kind/enum".to_owned()),
        note: None,
    };
    let disagreed = result == ComparisonResult::Disagreed;
    Comparison {
        result,
        reason: None,
        discrepancies: if disagreed { vec![found] } else { Vec::new() },
        evidence: Evidence { validation: true, arguments: false, outcome: false },
        rules: Vec::new(),
        touched: Vec::new(),
        disagreed_at: Vec::new(),
    }
}
