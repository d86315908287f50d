//! What the files of one chunk hold, counted from their rows: held against what its entry says.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lastcall_compare::{ComparisonResult, Severity};
use lastcall_contract::Digest;
use lastcall_event::Day;

use crate::entry::{Chunk, FileKind};
use crate::erasure::Standing;
use crate::error::LedgerError;
use crate::ledger::hex;
use crate::position::{Offset, Partition};
use crate::rows::{Position, ResultRow};
use crate::tally::{CallKey, Counts, TallyKey, category_key};
use crate::{calls, dead, results, wire};

/// What the files of one chunk hold, counted from their rows.
#[derive(Default)]
pub(super) struct Counted {
    partition: Partition,
    /// The calls file is not there or not readable: commitments cannot be held against it.
    pub(super) without_calls: bool,
    /// Calls and dead letters that were erased or expired: so many may be missing, and must be.
    gone: [u64; 2],
    /// The erased calls by tool.
    gone_by_tool: BTreeMap<String, u64>,
    /// Of some nobody says the tool: they expired, or an older build erased them.
    gone_unsaid: bool,
    calls: u64,
    dead: u64,
    dead_reasons: BTreeMap<String, u64>,
    by_call: BTreeMap<CallKey, u64>,
    commitments: HashMap<Position, [u8; 32]>,
    tallies: BTreeMap<TallyKey, Counts>,
    exposure: BTreeMap<(Day, Digest, u16), (u64, u64)>,
}

impl Counted {
    /// Nothing yet, of a chunk of this partition.
    pub(super) fn of(partition: Partition) -> Self {
        Self { partition, ..Self::default() }
    }

    pub(super) fn gone(&mut self, kind: FileKind, standing: &Standing) {
        let rows = standing.erased.saturating_add(standing.expired);
        match kind {
            FileKind::Calls => {
                self.gone[0] += rows;
                match standing.tools.as_ref().filter(|_| standing.expired == 0) {
                    Some(tools) => tools.iter().for_each(|(tool, n)| {
                        *self.gone_by_tool.entry(tool.clone()).or_default() += n;
                    }),
                    None => self.gone_unsaid = true,
                }
            }
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

    pub(super) fn calls(
        &mut self,
        path: &str,
        bytes: bytes::Bytes,
        chunk: &Chunk,
    ) -> Result<u64, LedgerError> {
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

    pub(super) fn results(
        &mut self,
        path: &str,
        bytes: bytes::Bytes,
        chunk: &Chunk,
    ) -> Result<u64, LedgerError> {
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
            count(self.tallies.entry(key).or_default(), &row, 1);
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

    pub(super) fn dead(
        &mut self,
        path: &str,
        bytes: bytes::Bytes,
        chunk: &Chunk,
    ) -> Result<u64, LedgerError> {
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

    /// Calls by tool, those that were erased included.
    fn by_tool(&self) -> BTreeMap<String, u64> {
        let mut tools = by_tool(&self.by_call);
        for (tool, n) in &self.gone_by_tool {
            *tools.entry(tool.clone()).or_default() += n;
        }
        tools
    }

    /// What of the entry's counts is not what the rows say.
    pub(super) fn differs(&self, chunk: &Chunk) -> Option<String> {
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
        } else if calls_gone > 0 && !self.gone_unsaid && self.by_tool() != by_tool(&by_call) {
            "the calls by tool, those that were erased included,"
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

/// Calls by tool.
fn by_tool(by_call: &BTreeMap<CallKey, u64>) -> BTreeMap<String, u64> {
    let mut tools = BTreeMap::new();
    for ((_, tool, ..), n) in by_call {
        *tools.entry(tool.to_string()).or_default() += n;
    }
    tools
}

/// Adds one row to the counts, as often as it came.
pub(super) fn count(counts: &mut Counts, row: &ResultRow, times: u64) {
    match row.result {
        ComparisonResult::Agreed => counts.agreed = counts.agreed.saturating_add(times),
        ComparisonResult::Disagreed => counts.disagreed = counts.disagreed.saturating_add(times),
        ComparisonResult::BothRejected => counts.both_rejected = counts.both_rejected.saturating_add(times),
        ComparisonResult::Excluded => counts.excluded = counts.excluded.saturating_add(times),
        ComparisonResult::Unresolved => counts.unresolved = counts.unresolved.saturating_add(times),
    }
    let blocked = row.discrepancies.iter().any(|d| d.refused || d.severity == Severity::Block);
    if row.result == ComparisonResult::Disagreed && blocked {
        counts.block_or_refused = counts.block_or_refused.saturating_add(times);
    }
    let keys: BTreeSet<String> =
        row.discrepancies.iter().map(|d| category_key(d.category, d.severity)).collect();
    keys.into_iter().for_each(|key| counts.categories.add(key, times));
    if let Some(reason) = row.reason {
        counts.reasons.add(reason.as_str(), times);
    }
    if matches!(row.result, ComparisonResult::Agreed | ComparisonResult::Disagreed) {
        let levels = [
            (row.evidence.validation, "validation"),
            (row.evidence.arguments, "arguments"),
            (row.evidence.outcome, "outcome"),
        ];
        levels.iter().filter(|(on, _)| *on).for_each(|(_, name)| counts.evidence.add(*name, times));
    }
    counts.fidelity.add(wire::fidelity(row.fidelity), times);
    row.rules.iter().for_each(|rule| counts.rules.add(rule.clone(), times));
}
