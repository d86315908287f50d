//! The calls files: what arrived, and the salts of the commitments. Personal data, with a retention of its own.

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, FixedSizeBinaryBuilder, Float64Builder, Int32Builder, Int64Builder,
    StringBuilder, TimestampMillisecondBuilder,
};
use arrow_array::{
    Array, BooleanArray, Date32Array, FixedSizeBinaryArray, Float64Array, Int32Array, Int64Array,
    StringArray, TimestampMillisecondArray,
};
use arrow_schema::DataType;
use bytes::Bytes;
use lastcall_event::{CallRecord, Day, Text, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::error::LedgerError;
use crate::files::{
    self, BATCH, FileBytes, Output, columns, name_builder, text_builder, utc_builder, utc_ms,
};
use crate::rows::{CallRow, ENVELOPE, Position};
use crate::wire;

const BATCH_BYTES: usize = 2 << 20;

columns!(Columns {
    partition: Int32Builder = Int32Builder::new(), DataType::Int32, false, Few;
    offset: Int64Builder = Int64Builder::new(), DataType::Int64, false, Ascending;
    index: Int32Builder = Int32Builder::new(), DataType::Int32, false, Few;
    ts: TimestampMillisecondBuilder = utc_builder(), utc_ms(), false, Ascending;
    day: Date32Builder = Date32Builder::new(), DataType::Date32, false, Filter;
    call_id: StringBuilder = text_builder(), DataType::Utf8, false, Text;
    call_key: FixedSizeBinaryBuilder = FixedSizeBinaryBuilder::new(16), DataType::FixedSizeBinary(16), false, Random;
    tool_id: StringBuilder = name_builder(), DataType::Utf8, false, Filter;
    contract_id: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    contract_digest: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    fidelity: StringBuilder = name_builder(), DataType::Utf8, false, Few;
    arguments: StringBuilder = text_builder(), DataType::Utf8, false, Text;
    arguments_is_text: BooleanBuilder = BooleanBuilder::new(), DataType::Boolean, false, Few;
    status: StringBuilder = name_builder(), DataType::Utf8, false, Few;
    executed: BooleanBuilder = BooleanBuilder::new(), DataType::Boolean, true, Few;
    error_code: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    error_class: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    result: StringBuilder = text_builder(), DataType::Utf8, true, Text;
    result_keys: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    partial: BooleanBuilder = BooleanBuilder::new(), DataType::Boolean, true, Few;
    latency_ms: Float64Builder = Float64Builder::new(), DataType::Float64, true, Text;
    agent_id: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    agent_version: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    prompt_version: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    model: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    delegation: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    run_id: StringBuilder = text_builder(), DataType::Utf8, true, Text;
    tool_call_id: StringBuilder = text_builder(), DataType::Utf8, true, Text;
    session_id: StringBuilder = text_builder(), DataType::Utf8, true, Text;
    cohort: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    trace_id: StringBuilder = text_builder(), DataType::Utf8, true, Text;
    span_id: StringBuilder = text_builder(), DataType::Utf8, true, Text;
    policy_version: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    policy_decision: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    policy_reason: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    side_effect_outcome: StringBuilder = name_builder(), DataType::Utf8, true, Few;
    candidates: StringBuilder = text_builder(), DataType::Utf8, true, Text;
    current_rerun: StringBuilder = text_builder(), DataType::Utf8, true, Text;
    upstream_from: Int64Builder = Int64Builder::new(), DataType::Int64, true, Ascending;
    upstream_to: Int64Builder = Int64Builder::new(), DataType::Int64, true, Ascending;
    upstream_through: TimestampMillisecondBuilder = utc_builder(), utc_ms(), true, Ascending;
    salt: FixedSizeBinaryBuilder = FixedSizeBinaryBuilder::new(16), DataType::FixedSizeBinary(16), false, Random;
});

/// What a commitment is computed over: salt, then every column from `ts` to `upstream_through` but `day` and
/// `call_key` (which follow from others). An absent value is one byte 0; a present one is a byte 1, its length in
/// bytes as a 64-bit little-endian number, its bytes. Numbers are 8 bytes little-endian, flags one byte.
#[derive(Default)]
struct Preimage(Vec<u8>);

impl Preimage {
    fn begin(&mut self, salt: &[u8; 16]) {
        self.0.clear();
        self.0.extend_from_slice(salt);
    }
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.push(1);
        self.0.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }
    fn text<'a>(&mut self, text: Option<&'a str>) -> Option<&'a str> {
        match text {
            Some(text) => self.bytes(text.as_bytes()),
            None => self.0.push(0),
        }
        text
    }
    fn number(&mut self, number: Option<i64>) -> Option<i64> {
        match number {
            Some(number) => self.bytes(&number.to_le_bytes()),
            None => self.0.push(0),
        }
        number
    }
    fn real(&mut self, number: Option<f64>) -> Option<f64> {
        self.number(number.map(|n| i64::from_le_bytes(n.to_le_bytes())));
        number
    }
    fn flag(&mut self, flag: Option<bool>) -> Option<bool> {
        match flag {
            Some(flag) => self.bytes(&[u8::from(flag)]),
            None => self.0.push(0),
        }
        flag
    }
    fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }
}

/// Writes a calls file in memory.
pub struct CallsWriter {
    columns: Columns,
    gathered: usize,
    gathered_bytes: usize,
    output: Output,
    preimage: Preimage,
    scratch: Vec<u8>,
}

impl Default for CallsWriter {
    fn default() -> Self {
        Self {
            columns: Columns::new(),
            gathered: 0,
            gathered_bytes: 0,
            output: Output::new(Columns::schema(), files::properties(Columns::SHAPES)),
            preimage: Preimage::default(),
            scratch: Vec::new(),
        }
    }
}

fn odd(e: impl std::fmt::Display) -> LedgerError {
    LedgerError::unreadable("a calls row", e)
}

/// A value as JSON text in a buffer that is used again.
fn json<'a, T: serde::Serialize>(scratch: &'a mut Vec<u8>, value: &T) -> Result<&'a str, LedgerError> {
    scratch.clear();
    serde_json::to_writer(&mut *scratch, value).map_err(odd)?;
    std::str::from_utf8(scratch).map_err(odd)
}

fn plain<'a>(text: &'a Option<Text<'_>>) -> Option<&'a str> {
    text.as_deref()
}

impl CallsWriter {
    /// Adds one call and answers its commitment: SHA-256 over the salt and the row.
    pub fn append(
        &mut self,
        position: Position,
        call_key: &[u8; 16],
        call: &CallRecord<'_>,
        salt: &[u8; 16],
    ) -> Result<[u8; 32], LedgerError> {
        let (c, p, scratch) = (&mut self.columns, &mut self.preimage, &mut self.scratch);
        let (o, e) = (&call.outcome, &call.envelope);
        p.begin(salt);
        c.partition.append_value(position.partition);
        c.offset.append_value(position.offset);
        c.index.append_value(position.index);
        p.number(Some(call.ts.0));
        c.ts.append_value(call.ts.0);
        c.day.append_value(call.ts.day().0);
        p.text(Some(&call.call_id));
        c.call_id.append_value(&*call.call_id);
        c.call_key.append_value(call_key).map_err(odd)?;
        p.text(Some(&call.tool_id));
        c.tool_id.append_value(&*call.tool_id);
        c.contract_id.append_option(p.text(plain(&call.contract_id)));
        c.contract_digest.append_option(p.text(plain(&call.contract_digest)));
        let fidelity = wire::fidelity(call.fidelity);
        p.text(Some(fidelity));
        c.fidelity.append_value(fidelity);
        let (arguments, is_text) = match &call.arguments_text {
            Some(text) => (&**text, true),
            None => (call.arguments.get().unwrap_or("null"), false),
        };
        p.text(Some(arguments));
        c.arguments.append_value(arguments);
        p.flag(Some(is_text));
        c.arguments_is_text.append_value(is_text);
        p.text(Some(o.status.as_str()));
        c.status.append_value(o.status.as_str());
        c.executed.append_option(p.flag(o.executed));
        c.error_code.append_option(p.text(plain(&o.error_code)));
        c.error_class.append_option(p.text(plain(&o.error_class)));
        c.result.append_option(p.text(o.result.get()));
        let keys = o.result_keys.as_ref().map(|keys| json(scratch, keys)).transpose()?;
        c.result_keys.append_option(p.text(keys));
        c.partial.append_option(p.flag(o.partial));
        c.latency_ms.append_option(p.real(o.latency_ms));
        c.agent_id.append_option(p.text(plain(&e.agent_id)));
        c.agent_version.append_option(p.text(plain(&e.agent_version)));
        c.prompt_version.append_option(p.text(plain(&e.prompt_version)));
        c.model.append_option(p.text(plain(&e.model)));
        let delegation = e.delegation.as_ref().map(|list| json(scratch, list)).transpose()?;
        c.delegation.append_option(p.text(delegation));
        c.run_id.append_option(p.text(plain(&e.run_id)));
        c.tool_call_id.append_option(p.text(plain(&e.tool_call_id)));
        c.session_id.append_option(p.text(plain(&e.session_id)));
        c.cohort.append_option(p.text(plain(&e.cohort)));
        c.trace_id.append_option(p.text(plain(&e.trace_id)));
        c.span_id.append_option(p.text(plain(&e.span_id)));
        c.policy_version.append_option(p.text(plain(&e.policy_version)));
        c.policy_decision.append_option(p.text(plain(&e.policy_decision)));
        c.policy_reason.append_option(p.text(plain(&e.policy_reason)));
        c.side_effect_outcome.append_option(p.text(plain(&e.side_effect_outcome)));
        let candidates = match call.candidates_text.get() {
            Some(text) => Some(text),
            None if call.candidates.is_empty() => None,
            None => Some(json(scratch, &call.candidates)?),
        };
        let mut held = arguments.len() + o.result.get().map_or(0, str::len) + candidates.map_or(0, str::len);
        c.candidates.append_option(p.text(candidates));
        let rerun = call.current_rerun.as_ref().map(|rerun| json(scratch, rerun)).transpose()?;
        held += rerun.map_or(0, str::len);
        c.current_rerun.append_option(p.text(rerun));
        let upstream = call.upstream.as_ref();
        c.upstream_from.append_option(p.number(upstream.map(|u| u.from)));
        c.upstream_to.append_option(p.number(upstream.map(|u| u.to)));
        c.upstream_through.append_option(p.number(upstream.and_then(|u| u.through).map(|t| t.0)));
        c.salt.append_value(salt).map_err(odd)?;
        let commitment = p.digest();
        self.gathered += 1;
        self.gathered_bytes += held;
        if self.gathered >= BATCH || self.gathered_bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(commitment)
    }

    fn flush(&mut self) -> Result<(), LedgerError> {
        if self.gathered > 0 {
            (self.gathered, self.gathered_bytes) = (0, 0);
            self.output.write(self.columns.finish())?;
        }
        Ok(())
    }

    /// Bytes held in memory, about.
    pub fn held(&self) -> usize {
        self.output.held() + self.gathered_bytes + self.gathered * 500
    }

    /// The file; `None` when there is no row. The writer is empty afterwards.
    pub fn finish(&mut self) -> Result<Option<FileBytes>, LedgerError> {
        self.flush()?;
        self.output.finish()
    }
}

impl CallRow {
    /// SHA-256 over the salt and the row, as the results file states it.
    pub fn commitment(&self) -> [u8; 32] {
        let mut p = Preimage::default();
        p.begin(&self.salt);
        p.number(Some(self.ts.0));
        p.text(Some(&self.call_id));
        p.text(Some(&self.tool_id));
        p.text(self.contract_id.as_deref());
        p.text(self.contract_digest.as_deref());
        p.text(Some(wire::fidelity(self.fidelity)));
        p.text(Some(&self.arguments));
        p.flag(Some(self.arguments_is_text));
        p.text(Some(self.status.as_str()));
        p.flag(self.executed);
        p.text(self.error_code.as_deref());
        p.text(self.error_class.as_deref());
        p.text(self.result.as_deref());
        p.text(self.result_keys.as_deref());
        p.flag(self.partial);
        p.real(self.latency_ms);
        for text in &self.envelope {
            p.text(text.as_deref());
        }
        p.text(self.candidates.as_deref());
        p.text(self.current_rerun.as_deref());
        p.number(self.upstream_from);
        p.number(self.upstream_to);
        p.number(self.upstream_through.map(|t| t.0));
        p.digest()
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
        let longs = |name: &str| files::column::<Int64Array>(path, batch, name);
        let flags = |name: &str| files::column::<BooleanArray>(path, batch, name);
        let fixed = |name: &str| files::column::<FixedSizeBinaryArray>(path, batch, name);
        let times = |name: &str| files::column::<TimestampMillisecondArray>(path, batch, name);
        let partition: &Int32Array = files::column(path, batch, "partition")?;
        let index: &Int32Array = files::column(path, batch, "index")?;
        let day: &Date32Array = files::column(path, batch, "day")?;
        let latency: &Float64Array = files::column(path, batch, "latency_ms")?;
        let (offset, ts, salt, key) = (longs("offset")?, times("ts")?, fixed("salt")?, fixed("call_key")?);
        let (call_id, tool_id) = (strings("call_id")?, strings("tool_id")?);
        let (contract_id, contract_digest) = (strings("contract_id")?, strings("contract_digest")?);
        let (fidelity, arguments, status) = (strings("fidelity")?, strings("arguments")?, strings("status")?);
        let (is_text, executed, partial) =
            (flags("arguments_is_text")?, flags("executed")?, flags("partial")?);
        let (error_code, error_class) = (strings("error_code")?, strings("error_class")?);
        let (result, result_keys) = (strings("result")?, strings("result_keys")?);
        let (candidates, rerun) = (strings("candidates")?, strings("current_rerun")?);
        let (from, to, through) =
            (longs("upstream_from")?, longs("upstream_to")?, times("upstream_through")?);
        let envelope = ENVELOPE.iter().map(|name| strings(name)).collect::<Result<Vec<_>, _>>()?;
        let unknown =
            |name: &str| LedgerError::unreadable(path, format!("column `{name}` holds an unknown name"));
        (0..batch.num_rows()).try_for_each(|row| {
            let text = |array: &StringArray| array.is_valid(row).then(|| array.value(row).to_owned());
            let flag = |array: &BooleanArray| array.is_valid(row).then(|| array.value(row));
            let long = |array: &Int64Array| array.is_valid(row).then(|| array.value(row));
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
                arguments: arguments.value(row).to_owned(),
                arguments_is_text: is_text.value(row),
                status: wire::parse_status(status.value(row)).ok_or_else(|| unknown("status"))?,
                executed: flag(executed),
                error_code: text(error_code),
                error_class: text(error_class),
                result: text(result),
                result_keys: text(result_keys),
                partial: flag(partial),
                latency_ms: latency.is_valid(row).then(|| latency.value(row)),
                envelope: envelope.iter().map(|array| text(array)).collect(),
                candidates: text(candidates),
                current_rerun: text(rerun),
                upstream_from: long(from),
                upstream_to: long(to),
                upstream_through: through.is_valid(row).then(|| Timestamp(through.value(row))),
                salt: salt.value(row).try_into().unwrap_or_default(),
            })
        })
    })
}
