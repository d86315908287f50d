//! The calls files: what arrived, and the salts of the commitments. Personal data, with a retention of its own.

use arrow_array::builder::{Int64Builder, TimestampMillisecondBuilder};
use arrow_array::{
    Array, Date32Array, FixedSizeBinaryArray, Int32Array, Int64Array, StringArray, TimestampMillisecondArray,
};
use arrow_schema::DataType;
use bytes::Bytes;
use lastcall_event::{CallRecord, Day, Preset, Record, Timestamp, decode};
use sha2::{Digest as _, Sha256};

use crate::direct::{Few, Hashes, Texts};
use crate::error::LedgerError;
use crate::files::{self, BATCH, FileBytes, Output, columns, utc_builder, utc_ms};
use crate::rows::{CallRow, Position};
use crate::wire;

columns!(Columns {
    partition: Few = Few::integers(), DataType::Int32, false, Few;
    offset: Int64Builder = Int64Builder::new(), DataType::Int64, false, Ascending;
    index: Few = Few::integers(), DataType::Int32, false, Few;
    ts: TimestampMillisecondBuilder = utc_builder(), utc_ms(), false, Ascending;
    day: Few = Few::integers(), DataType::Date32, false, Filter;
    call_id: Texts = Texts::new(), DataType::Utf8, false, Text;
    call_key: Hashes = Hashes::new(), DataType::FixedSizeBinary(16), false, Random;
    tool_id: Few = Few::texts(), DataType::Utf8, false, Filter;
    contract_id: Few = Few::texts(), DataType::Utf8, true, Few;
    contract_digest: Few = Few::texts(), DataType::Utf8, true, Few;
    fidelity: Few = Few::texts(), DataType::Utf8, false, Few;
    status: Few = Few::texts(), DataType::Utf8, false, Few;
    agent_id: Few = Few::texts(), DataType::Utf8, true, Few;
    agent_version: Few = Few::texts(), DataType::Utf8, true, Few;
    prompt_version: Few = Few::texts(), DataType::Utf8, true, Few;
    model: Few = Few::texts(), DataType::Utf8, true, Few;
    run_id: Texts = Texts::nullable(), DataType::Utf8, true, Text;
    session_id: Texts = Texts::nullable(), DataType::Utf8, true, Text;
    trace_id: Texts = Texts::nullable(), DataType::Utf8, true, Text;
    cohort: Few = Few::texts(), DataType::Utf8, true, Few;
    preset: Few = Few::texts(), DataType::Utf8, false, Few;
    record: Texts = Texts::new(), DataType::Utf8, false, Text;
    salt: Hashes = Hashes::new(), DataType::FixedSizeBinary(16), false, Random;
});

/// The commitment of a call: SHA-256 over the salt and then the bytes of `record`.
pub fn commitment(salt: &[u8; 16], record: &str) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(record.as_bytes()).finalize().into()
}

/// One call, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct CallRef<'a> {
    /// Where it was read.
    pub position: Position,
    /// First 16 bytes of SHA-256 over the call id.
    pub call_key: &'a [u8; 16],
    /// Its time: what it says, or, where that is off, its message's.
    pub ts: Timestamp,
    /// The call as read.
    pub call: &'a CallRecord<'a>,
    /// How `record` is read.
    pub preset: Preset,
    /// The text of the record as it arrived (after redaction).
    pub record: &'a str,
    /// The salt of the commitment.
    pub salt: &'a [u8; 16],
}

/// Writes a calls file in memory.
pub struct CallsWriter {
    columns: Columns,
    gathered: usize,
    output: Output,
}

impl Default for CallsWriter {
    fn default() -> Self {
        Self {
            columns: Columns::new(),
            gathered: 0,
            output: Output::new(Columns::schema(), files::properties(Columns::SHAPES)),
        }
    }
}

fn odd(e: impl std::fmt::Display) -> LedgerError {
    LedgerError::unreadable("a calls row", e)
}

impl CallsWriter {
    /// Adds one call and answers its commitment.
    pub fn append(&mut self, row: &CallRef<'_>) -> Result<[u8; 32], LedgerError> {
        self.columns.append(row).map_err(odd)?;
        self.gathered += 1;
        if self.gathered >= BATCH {
            self.flush()?;
        }
        Ok(commitment(row.salt, row.record))
    }

    fn flush(&mut self) -> Result<(), LedgerError> {
        let rows = std::mem::take(&mut self.gathered);
        if rows == 0 {
            return Ok(());
        }
        let batch = self.columns.batch();
        self.output.write_some(rows, batch.iter().map(Option::as_ref))
    }

    /// Bytes held in memory, about.
    pub fn held(&mut self) -> usize {
        let own: usize = self.columns.own().iter().flatten().map(|(_, column)| column.held()).sum();
        self.output.held() + own + self.gathered * 16
    }

    /// The file; `None` when there is no row. The writer is empty afterwards.
    pub fn finish(&mut self) -> Result<Option<FileBytes>, LedgerError> {
        self.flush()?;
        self.output.finish_with(self.columns.own())
    }

    /// Takes back the memory of a file that was written.
    pub fn reuse(&mut self, memory: Bytes) {
        self.output.reuse(memory);
    }
}

impl Columns {
    fn append(&mut self, row: &CallRef<'_>) -> parquet::errors::Result<()> {
        let (call, e) = (row.call, &row.call.envelope);
        self.partition.append_integer(row.position.partition)?;
        self.offset.append_value(row.position.offset);
        self.index.append_integer(row.position.index)?;
        self.ts.append_value(row.ts.0);
        self.day.append_integer(row.ts.day().0)?;
        self.call_id.append_value(&call.call_id)?;
        self.call_key.append_value(row.call_key)?;
        self.tool_id.append_value(&call.tool_id)?;
        self.contract_id.append_option(call.contract_id.as_deref())?;
        self.contract_digest.append_option(call.contract_digest.as_deref())?;
        self.fidelity.append_value(wire::fidelity(call.fidelity))?;
        self.status.append_value(call.outcome.status.as_str())?;
        self.agent_id.append_option(e.agent_id.as_deref())?;
        self.agent_version.append_option(e.agent_version.as_deref())?;
        self.prompt_version.append_option(e.prompt_version.as_deref())?;
        self.model.append_option(e.model.as_deref())?;
        self.run_id.append_option(e.run_id.as_deref())?;
        self.session_id.append_option(e.session_id.as_deref())?;
        self.trace_id.append_option(e.trace_id.as_deref())?;
        self.cohort.append_option(e.cohort.as_deref())?;
        self.preset.append_value(row.preset.as_str())?;
        self.salt.append_value(row.salt)?;
        self.record.append_value(row.record)
    }
}

impl CallRow {
    /// SHA-256 over the salt and the record, as the results file states it.
    pub fn commitment(&self) -> [u8; 32] {
        commitment(&self.salt, &self.record)
    }

    /// Whether something that a comparison reads was hidden or left out of the record before it was stored: what a
    /// contract makes of such a call cannot be said any more.
    pub fn is_redacted(&self) -> bool {
        #[derive(serde::Deserialize)]
        struct Marked {
            #[serde(default)]
            redacted: Option<Vec<String>>,
        }
        if !self.record.contains("\"redacted\"") {
            return false;
        }
        const COMPARED: [&str; 9] = [
            "arguments",
            "arguments_text",
            "outcome",
            "candidates",
            "current_rerun",
            "raw_args",
            "current_args",
            "candidate_args",
            "candidate_error",
        ];
        let first = |pointer: &String| pointer.split('/').nth(1).is_some_and(|f| COMPARED.contains(&f));
        match serde_json::from_str::<Marked>(&self.record) {
            Ok(marked) => marked.redacted.is_some_and(|pointers| pointers.iter().any(first)),
            // A producer's own field of that name, or both: who can say what is missing?
            Err(_) => true,
        }
    }

    /// The call, read again from its record.
    ///
    /// # Errors
    /// The record is not what the columns say it is.
    pub fn decode(&self) -> Result<CallRecord<'_>, LedgerError> {
        match decode(self.record.as_bytes(), self.preset).map(|d| d.record) {
            Ok(Record::Call(call)) => Ok(*call),
            Ok(_) => Err(odd("its record is no call")),
            Err(error) => Err(odd(error)),
        }
    }
}

/// Calls `each` with every row of a calls file whose bytes were checked.
pub(crate) fn for_each_row(
    path: &str,
    bytes: Bytes,
    mut each: impl FnMut(CallRow) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    files::for_each_batch(path, bytes, &Columns::schema(), |batch| {
        let strings = |name: &str| files::column::<StringArray>(path, batch, name);
        let fixed = |name: &str| files::column::<FixedSizeBinaryArray>(path, batch, name);
        let partition: &Int32Array = files::column(path, batch, "partition")?;
        let offset: &Int64Array = files::column(path, batch, "offset")?;
        let index: &Int32Array = files::column(path, batch, "index")?;
        let day: &Date32Array = files::column(path, batch, "day")?;
        let ts: &TimestampMillisecondArray = files::column(path, batch, "ts")?;
        let (salt, key) = (fixed("salt")?, fixed("call_key")?);
        let (call_id, tool_id, record) = (strings("call_id")?, strings("tool_id")?, strings("record")?);
        let (contract_id, contract_digest) = (strings("contract_id")?, strings("contract_digest")?);
        let (fidelity, status, preset) = (strings("fidelity")?, strings("status")?, strings("preset")?);
        let (agent_id, agent_version) = (strings("agent_id")?, strings("agent_version")?);
        let (prompt_version, model) = (strings("prompt_version")?, strings("model")?);
        let (run_id, session_id) = (strings("run_id")?, strings("session_id")?);
        let (trace_id, cohort) = (strings("trace_id")?, strings("cohort")?);
        let unknown =
            |name: &str| LedgerError::unreadable(path, format!("column `{name}` holds an unknown name"));
        (0..batch.num_rows()).try_for_each(|row| {
            let text = |array: &StringArray| array.is_valid(row).then(|| array.value(row).to_owned());
            each(CallRow {
                position: Position {
                    partition: partition.value(row),
                    offset: offset.value(row),
                    index: index.value(row),
                },
                ts: Timestamp(ts.value(row)),
                day: Day(day.value(row)),
                call_id: call_id.value(row).to_owned(),
                call_key: key.value(row).try_into().unwrap_or_default(),
                tool_id: tool_id.value(row).to_owned(),
                contract_id: text(contract_id),
                contract_digest: text(contract_digest),
                fidelity: wire::parse_fidelity(fidelity.value(row)).ok_or_else(|| unknown("fidelity"))?,
                status: wire::parse_status(status.value(row)).ok_or_else(|| unknown("status"))?,
                agent_id: text(agent_id),
                agent_version: text(agent_version),
                prompt_version: text(prompt_version),
                model: text(model),
                run_id: text(run_id),
                session_id: text(session_id),
                trace_id: text(trace_id),
                cohort: text(cohort),
                preset: Preset::parse(preset.value(row)).ok_or_else(|| unknown("preset"))?,
                record: record.value(row).to_owned(),
                salt: salt.value(row).try_into().unwrap_or_default(),
            })
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use lastcall_event::Record;

    /// Whatever was changed in a file that no digest was held against: rows or an error, and never an end of the program.
    #[test]
    fn one_changed_byte_ends_nothing() {
        let mut calls = CallsWriter::default();
        for offset in 0..40 {
            let text = format!(
                r#"{{"type":"tool_call","schema_version":1,"call_id":"c{offset}","ts":"2026-06-01T10:00:00Z","tool_id":"t","arguments":{{}},"outcome":{{"status":"ok"}}}}"#
            );
            let decoded = decode(text.as_bytes(), Preset::Native).unwrap();
            let Record::Call(call) = &decoded.record else { panic!("no call") };
            let position = Position { partition: 0, offset, index: 0 };
            let preset = Preset::Native;
            let row = CallRef {
                position,
                call_key: &[1; 16],
                ts: call.ts,
                call,
                preset,
                record: &text,
                salt: &[7; 16],
            };
            calls.append(&row).unwrap();
        }
        let whole = calls.finish().unwrap().unwrap().bytes;
        let mut seed = 1u64;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).unwrap() % below
        };
        let mut broken = 0;
        for _ in 0..4000 {
            let mut bytes = whole.to_vec();
            // Half of them near the end, where the file says what it holds.
            let from = if next(2) == 0 { bytes.len().saturating_sub(3000) } else { 0 };
            let at = from + next(bytes.len() - from);
            bytes[at] = u8::try_from(next(256)).unwrap();
            broken += u32::from(for_each_row("x", bytes.into(), |_| Ok(())).is_err());
        }
        assert!(broken > 500, "{broken}");
    }
}
