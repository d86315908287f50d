//! Runs the comparator again on the calls that a ledger keeps, and holds what it says against what was recorded.
//!
//! Each call is judged under the pairs that the control chain named when it was recorded, by the same function that the
//! recorder called. What was erased, has expired or is hidden by a redaction cannot be judged again: it is counted, so that
//! whoever reads the answer sees how much it covers.

use std::collections::{BTreeMap, HashMap};

use lastcall_compare::{Comparison, Reason};
use lastcall_event::CallRecord;
use lastcall_ledger::chain::read_entry;
use lastcall_ledger::control::{Control, Pair};
use lastcall_ledger::entry::Chunk;
use lastcall_ledger::index::for_each_day_row;
use lastcall_ledger::names::Chain;
use lastcall_ledger::rows::{CallRow, Position, ResultRow};
use lastcall_ledger::show::days;
use lastcall_ledger::state::ControlState;
use lastcall_ledger::window::Record;
use lastcall_ledger::{Ledger, LedgerError};
use serde::Serialize;

use crate::judge::{Judge, Judged, PairError, Pairs};

/// So many differences are told one by one.
const TOLD: usize = 20;

/// A result that the comparator does not give again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The chain of the call.
    pub chain: String,
    /// Its offset, and its index in the message where that is not 0.
    pub position: String,
    /// Candidate contract id.
    pub candidate: String,
    /// What is recorded and what the comparator says, in columns of the results file; no value of the call.
    pub what: String,
}

/// What came of it. `results = same + different + the sum of not_compared`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recompared {
    /// Results that are recorded.
    pub results: u64,
    /// Compared again, and the same.
    pub same: u64,
    /// Compared again, and not the same.
    pub different: u64,
    /// Results that the comparator gives and that are not recorded.
    pub absent: u64,
    /// Not compared again, by reason.
    pub not_compared: BTreeMap<String, u64>,
    /// The first differences.
    pub differences: Vec<Difference>,
}

impl Recompared {
    /// Whether everything that could be compared again came out the same.
    pub fn holds(&self) -> bool {
        self.different == 0 && self.absent == 0
    }

    fn skip(&mut self, reason: &str, results: u64) {
        if results > 0 {
            *self.not_compared.entry(reason.to_owned()).or_default() += results;
        }
    }

    fn differ(&mut self, call: &Call<'_>, pair: &Pair, what: String) {
        if self.differences.len() < TOLD {
            let Position { offset, index, .. } = call.row.position;
            let position =
                if index == 0 { format!("offset {offset}") } else { format!("offset {offset}/{index}") };
            let candidate = pair.candidate.clone();
            self.differences.push(Difference { chain: call.chain.to_owned(), position, candidate, what });
        }
    }
}

const GONE: &str = "erased or expired";
const LEFT: &str = "left behind by the export";
const REDACTED: &str = "redacted";
const UNREADABLE: &str = "cannot be read";

/// A recorded result's place: source, position, epoch.
type Key = (String, Position, String);

/// One call, about to be judged again.
struct Call<'a> {
    chain: &'a str,
    source: &'a str,
    /// The source's records were redacted when it was recorded.
    redacting: bool,
    row: &'a CallRow,
}

/// Runs the comparator again on every call that is kept; `each` is told how many chunks are done, of how many.
///
/// # Errors
/// The store failed, or the chains do not hold together: `verify` says where.
pub fn recompare(ledger: &Ledger, each: &mut dyn FnMut(u64, u64)) -> Result<Recompared, LedgerError> {
    let chains = ledger.partitions()?;
    let total = chains.iter().map(|chain| chain.chunks().count() as u64).sum();
    let mut again =
        Again { ledger, states: states(ledger)?, prepared: HashMap::new(), out: Recompared::default() };
    let mut exported = exported(ledger)?;
    let mut done = 0;
    for chain in &chains {
        let name = chain.chain().to_string();
        for (_, chunk) in chain.chunks() {
            each(done, total);
            done += 1;
            let mut own = HashMap::new();
            let rows = match &mut exported {
                Some(rows) => rows,
                None => &mut own,
            };
            again.chunk(&name, &chain.source, chunk, rows)?;
            if exported.is_none() {
                again.out.skip(GONE, own.len() as u64);
            }
        }
    }
    if let Some(rows) = exported {
        let with = ledger.export().is_some_and(|mark| mark.with_arguments);
        again.out.results += rows.len() as u64;
        again.out.skip(if with { GONE } else { LEFT }, rows.len() as u64);
    }
    Ok(again.out)
}

/// What recorders compared under, from which control entry on.
struct State {
    seq: u64,
    pairs: Vec<Pair>,
    redacting: Vec<String>,
}

/// The control chain read anew from its genesis: the folded state knows only what holds now.
fn states(ledger: &Ledger) -> Result<Vec<State>, LedgerError> {
    let mut state = ControlState::default();
    let mut out: Vec<State> = Vec::new();
    let mut seq = 0;
    while let Some(read) = read_entry::<Control>(&**ledger.store(), &Chain::Control, seq)? {
        state.push(read);
        state.entries.clear();
        let pairs = state.active_pairs();
        let redacting: Vec<String> = state.redactions.keys().cloned().collect();
        if out.last().is_none_or(|last| last.pairs != pairs || last.redacting != redacting) {
            out.push(State { seq, pairs, redacting });
        }
        seq += 1;
    }
    Ok(out)
}

/// The results of an export stand in its day files; `None`: it is no export.
fn exported(ledger: &Ledger) -> Result<Option<HashMap<Key, ResultRow>>, LedgerError> {
    let Some(mark) = ledger.export() else { return Ok(None) };
    let record = Record::read(ledger.clone())?;
    let mut rows = HashMap::new();
    for entry in days(&record, &mark.tool)? {
        for_each_day_row(ledger, &entry, &mut |_, _| true, &mut |row| {
            let key = (row.source.clone(), row.row.position, row.row.epoch.clone());
            rows.insert(key, row.row.clone());
        })?;
    }
    Ok(Some(rows))
}

struct Again<'a> {
    ledger: &'a Ledger,
    states: Vec<State>,
    /// By epoch; `Err`: this build cannot compare under it, and why.
    prepared: HashMap<String, Result<Pairs, String>>,
    out: Recompared,
}

impl Again<'_> {
    /// Judges the calls of a chunk again; their results are taken out of `rows`.
    fn chunk(
        &mut self,
        chain: &str,
        source: &str,
        chunk: &Chunk,
        rows: &mut HashMap<Key, ResultRow>,
    ) -> Result<(), LedgerError> {
        let state = self.states.iter().rposition(|state| state.seq <= chunk.control.seq);
        let Some(state) = state.and_then(|at| self.states.get(at)) else { return Ok(()) };
        let (pairs, redacting) = (state.pairs.clone(), state.redacting.iter().any(|name| name == source));
        for pair in &pairs {
            self.prepare(pair)?;
        }
        if self.ledger.export().is_none() {
            let mut count = 0;
            let read = self.ledger.for_each_result(chunk, |row| {
                count += 1;
                rows.insert((source.to_owned(), row.position, row.epoch.clone()), row);
            });
            self.out.results += count;
            if let Err(error) = read {
                rows.clear();
                self.out.skip(UNREADABLE, count);
                return unless_broken(error);
            }
            // Two results in one place: which of them is the call's?
            self.out.different += count - rows.len() as u64;
        }
        let ledger = self.ledger;
        let read = ledger.for_each_call(chunk, |row| {
            let call = Call { chain, source, redacting, row: &row };
            self.call(&call, &pairs, rows);
        });
        match read {
            Ok(()) => Ok(()),
            Err(error) => {
                let left = rows.len() as u64;
                if ledger.export().is_none() {
                    rows.clear();
                    self.out.skip(UNREADABLE, left);
                }
                unless_broken(error)
            }
        }
    }

    fn prepare(&mut self, pair: &Pair) -> Result<(), LedgerError> {
        let epoch = pair.epoch.as_str();
        if self.prepared.contains_key(epoch) {
            return Ok(());
        }
        let prepared = match Pairs::prepare(self.ledger, vec![pair.clone()]) {
            Err(PairError::Ledger(LedgerError::Store(error))) => return Err(error.into()),
            Err(PairError::Comparator { theirs, .. }) => {
                Err(format!("comparator version {theirs} is not this build's"))
            }
            Err(_) => Err("its pair cannot be prepared".to_owned()),
            Ok(pairs) => Ok(pairs),
        };
        self.prepared.insert(epoch.to_owned(), prepared);
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>, pairs: &[Pair], rows: &mut HashMap<Key, ResultRow>) {
        let exported = self.ledger.export().is_some();
        let mut judged: Vec<Judged> = Vec::new();
        for pair in pairs.iter().filter(|pair| pair.tool_id == call.row.tool_id) {
            let key = (call.source.to_owned(), call.row.position, pair.epoch.as_str().to_owned());
            let recorded = rows.remove(&key);
            let found = u64::from(recorded.is_some());
            self.out.results += if exported { found } else { 0 };
            let record = match (self.prepared.get(pair.epoch.as_str()), call.row.decode()) {
                (Some(Err(why)), _) => {
                    let why = why.clone();
                    self.out.skip(&why, found);
                    continue;
                }
                (_, Err(_)) => {
                    self.out.skip(UNREADABLE, found);
                    continue;
                }
                (None, _) => continue,
                (Some(Ok(_)), Ok(_)) if call.row.is_redacted() => {
                    self.out.skip(REDACTED, found);
                    continue;
                }
                (Some(Ok(pairs)), Ok(record)) => {
                    judged.clear();
                    pairs.judge(&record, &mut judged);
                    record
                }
            };
            let said = judged.pop().map(|judged| under_clock(judged.comparison, &record, call.row));
            self.hold(call, pair, recorded.as_ref(), said.as_ref());
        }
    }

    fn hold(
        &mut self,
        call: &Call<'_>,
        pair: &Pair,
        recorded: Option<&ResultRow>,
        said: Option<&Comparison>,
    ) {
        match (recorded, said) {
            (None, None) => {}
            (None, Some(said)) => {
                self.out.absent += 1;
                let what = format!("no result is recorded, the comparator says {}", said.result.as_str());
                self.out.differ(call, pair, what);
            }
            (Some(recorded), None) => {
                self.out.different += 1;
                let what = format!(
                    "recorded is {}, and the call is not one that the pair compares",
                    recorded.result.as_str()
                );
                self.out.differ(call, pair, what);
            }
            (Some(recorded), Some(said)) => match differing(recorded, said) {
                columns if columns.is_empty() => self.out.same += 1,
                // A redaction masks pointers that show what it hides.
                columns if call.redacting && columns == ["discrepancies"] => self.out.skip(REDACTED, 1),
                columns => {
                    self.out.different += 1;
                    let what = format!(
                        "recorded is {}, the comparator says {}; they differ in {}",
                        recorded.result.as_str(),
                        said.result.as_str(),
                        columns.join(", ")
                    );
                    self.out.differ(call, pair, what);
                }
            },
        }
    }
}

/// A broken file or entry is what `verify` tells; a store that fails ends everything.
fn unless_broken(error: LedgerError) -> Result<(), LedgerError> {
    match error {
        LedgerError::Store(error) => Err(error.into()),
        _ => Ok(()),
    }
}

/// A call whose own time lies far from its message's is filed under the message's, and unresolved.
fn under_clock(said: Comparison, call: &CallRecord<'_>, row: &CallRow) -> Comparison {
    if row.ts != call.ts && call.ts.is_off(row.ts) { Comparison::unresolved(Reason::Clock) } else { said }
}

/// The columns in which a recorded result is not what the comparator says.
fn differing(recorded: &ResultRow, said: &Comparison) -> Vec<&'static str> {
    let same = [
        ("result", recorded.result == said.result),
        ("reason", recorded.reason == said.reason),
        ("severity", recorded.severity == said.severity()),
        ("refused", recorded.refused == said.refused()),
        ("evidence", recorded.evidence == said.evidence),
        ("discrepancies", recorded.discrepancies == said.discrepancies),
        ("rules", recorded.rules == said.rules),
        ("places_touched", recorded.places_touched == said.touched),
        ("places_disagreed", recorded.places_disagreed == said.disagreed_at),
    ];
    same.into_iter().filter(|(_, same)| !same).map(|(column, _)| column).collect()
}
