//! The calls of one tool, each proven by the commitment that stands in its row of a day file.
//!
//! A calls file of an export bears the name that the chunk gives its own, and holds the tool's rows alone: its digest is in
//! no chain, its rows are in all of them, by their commitments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::{BooleanArray, FixedSizeBinaryArray, Int32Array, Int64Array, StringArray};
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use lastcall_event::Day;

use crate::calls;
use crate::entry::{Chunk, FileRef};
use crate::error::LedgerError;
use crate::export::ExportedCalls;
use crate::export::held::{Held, days_of_tool};
use crate::files::{self, Output};
use crate::index::{DayEntry, for_each_day_row};
use crate::ledger::Ledger;
use crate::rows::{CallRow, Position};

/// Rows of days that are kept while chunks are gone through, by place and commitment.
const KEPT: usize = 2_000_000;

type Commitment = [u8; 32];

/// One row of a day: source, place, commitment. Sorted.
type Row = (Arc<str>, Position, Commitment);

/// The commitments of a tool's calls, by chunk.
pub(crate) struct Arguments {
    ledger: Ledger,
    tool: String,
    entries: BTreeMap<Day, Vec<DayEntry>>,
    days: BTreeMap<Day, Vec<Row>>,
}

impl Arguments {
    pub(crate) fn new(ledger: &Ledger, held: &Held) -> Self {
        let mut entries: BTreeMap<Day, Vec<DayEntry>> = BTreeMap::new();
        held.newest.iter().for_each(|entry| entries.entry(entry.day).or_default().push(entry.clone()));
        Self { ledger: ledger.clone(), tool: held.tool.clone(), entries, days: BTreeMap::new() }
    }

    /// The places of the tool's calls in a chunk that a day file names, with their commitments.
    ///
    /// # Errors
    /// A day file is missing or altered, or two rows of one call commit to different things.
    pub(crate) fn of_chunk(
        &mut self,
        source: &str,
        partition: i32,
        chunk: &Chunk,
    ) -> Result<BTreeMap<Position, Commitment>, LedgerError> {
        let days = days_of_tool(chunk, &self.tool);
        let mut found = BTreeMap::new();
        for day in &days {
            self.load(*day, &days)?;
            let rows = self.days.get(day).map_or(&[][..], Vec::as_slice);
            let from = Position { partition, offset: chunk.range.first.0, index: i32::MIN };
            let first = rows.partition_point(|(s, at, _)| (&**s, *at) < (source, from));
            let ours = rows.iter().skip(first).take_while(|(s, at, _)| {
                **s == *source && at.partition == partition && at.offset < chunk.range.next.0
            });
            for (_, at, commitment) in ours {
                if *found.entry(*at).or_insert(*commitment) != *commitment {
                    let what =
                        format!("two rows commit to different calls at offset {} of {source}", at.offset);
                    return Err(LedgerError::altered(&self.place(*day), what));
                }
            }
        }
        Ok(found)
    }

    fn place(&self, day: Day) -> String {
        let file = self.entries.get(&day).into_iter().flatten().find_map(|entry| entry.files.first());
        file.map_or_else(|| format!("days/{day}"), |file| file.path.clone())
    }

    /// Reads a day's rows, unless they are there; other days make room.
    fn load(&mut self, day: Day, needed: &BTreeSet<Day>) -> Result<(), LedgerError> {
        if self.days.contains_key(&day) {
            return Ok(());
        }
        let mut rows: Vec<Row> = Vec::new();
        let mut last: Arc<str> = "".into();
        for entry in self.entries.get(&day).into_iter().flatten() {
            for_each_day_row(&self.ledger, entry, &mut |_, _| true, &mut |row| {
                if *last != *row.source {
                    last = row.source.as_str().into();
                }
                rows.push((last.clone(), row.row.position, row.row.commitment));
            })?;
        }
        rows.sort();
        rows.dedup();
        let mut held: usize = rows.len() + self.days.values().map(Vec::len).sum::<usize>();
        while held > KEPT {
            let Some(old) = self.days.keys().find(|kept| !needed.contains(kept)).copied() else { break };
            held -= self.days.remove(&old).map_or(0, |rows| rows.len());
        }
        self.days.insert(day, rows);
        Ok(())
    }

    /// The tool's rows of a calls file that a chunk names, as a file of their own; `None`: none is left.
    ///
    /// # Errors
    /// A file is missing or altered, a call is not what a day's row commits to, or one is gone without an erasure.
    pub(crate) fn of_tool(
        &mut self,
        source: &str,
        partition: i32,
        chunk: &Chunk,
        file: &FileRef,
        counts: &mut ExportedCalls,
    ) -> Result<Option<Bytes>, LedgerError> {
        let proven = self.of_chunk(source, partition, chunk)?;
        let standing = self.ledger.standing(file)?;
        let gone = standing.gone_of(&self.tool);
        let (mut found, mut unproven) = (0u64, 0u64);
        let mut output = Output::new(calls::Columns::schema(), files::properties(calls::Columns::SHAPES));
        if let Some((file, bytes)) = self.ledger.standing_bytes(file)? {
            let path = &file.path;
            files::for_each_batch(path, bytes, &calls::Columns::schema(), |batch| {
                let tool: &StringArray = files::column(path, batch, "tool_id")?;
                let partition: &Int32Array = files::column(path, batch, "partition")?;
                let offset: &Int64Array = files::column(path, batch, "offset")?;
                let index: &Int32Array = files::column(path, batch, "index")?;
                let record: &StringArray = files::column(path, batch, "record")?;
                let salt: &FixedSizeBinaryArray = files::column(path, batch, "salt")?;
                let mut keep = Vec::with_capacity(batch.num_rows());
                for row in 0..batch.num_rows() {
                    let at = Position {
                        partition: partition.value(row),
                        offset: offset.value(row),
                        index: index.value(row),
                    };
                    let ours = tool.value(row) == self.tool;
                    let proof = proven.get(&at).filter(|_| ours);
                    if let Some(proof) = proof {
                        let salt = salt.value(row).try_into().unwrap_or_default();
                        if calls::commitment(&salt, record.value(row)) != *proof {
                            let what =
                                format!("the call at offset {} is not what its result commits to", at.offset);
                            return Err(LedgerError::altered(path, what));
                        }
                        found += 1;
                    }
                    unproven += u64::from(ours && proof.is_none());
                    keep.push(proof.is_some());
                }
                let kept = filter_record_batch(batch, &BooleanArray::from(keep))
                    .map_err(|e| LedgerError::unreadable(path, e))?;
                if kept.num_rows() > 0 { output.write(kept.columns()) } else { Ok(()) }
            })?;
        }
        let missing = (proven.len() as u64).saturating_sub(found);
        if missing > gone {
            let what =
                format!("{missing} calls are not in it that results name, and {gone} were erased or expired");
            return Err(LedgerError::altered(&file.path, what));
        }
        counts.calls += found;
        counts.gone += missing;
        counts.unproven += unproven;
        Ok(output.finish()?.map(|file| file.bytes))
    }
}

/// Whether the columns of a call say what its record says: the commitment covers the record alone.
pub(crate) fn check_row(path: &str, row: &CallRow) -> Result<(), LedgerError> {
    let call = row.decode()?;
    let e = &call.envelope;
    let text = |own: &Option<String>, said: Option<&str>| own.as_deref() == said;
    let same = row.call_id == *call.call_id
        && row.call_key == crate::window::call_key(&call.call_id)
        && row.tool_id == *call.tool_id
        && (row.ts == call.ts || call.ts.is_off(row.ts))
        && row.day == row.ts.day()
        && row.fidelity == call.fidelity
        && row.status == call.outcome.status
        && text(&row.contract_id, call.contract_id.as_deref())
        && text(&row.contract_digest, call.contract_digest.as_deref())
        && text(&row.agent_id, e.agent_id.as_deref())
        && text(&row.agent_version, e.agent_version.as_deref())
        && text(&row.prompt_version, e.prompt_version.as_deref())
        && text(&row.model, e.model.as_deref())
        && text(&row.run_id, e.run_id.as_deref())
        && text(&row.session_id, e.session_id.as_deref())
        && text(&row.trace_id, e.trace_id.as_deref())
        && text(&row.cohort, e.cohort.as_deref());
    if same {
        return Ok(());
    }
    let what = format!("the row at offset {} says something else than its record", row.position.offset);
    Err(LedgerError::altered(path, what))
}
