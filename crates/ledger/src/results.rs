//! The results files: one row per (call, pair) under one epoch. Pointers, categories, hashes; no values.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, StructBuilder, TimestampMillisecondBuilder,
    UInt16Builder,
};
use arrow_array::{
    Array, BooleanArray, Date32Array, FixedSizeBinaryArray, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray, TimestampMillisecondArray, UInt16Array,
};
use arrow_schema::{DataType, Field, Fields};
use bytes::Bytes;
use lastcall_compare::{Category, Comparison, ComparisonResult, Discrepancy, Evidence, Reason, Severity};
use lastcall_event::{Day, Fidelity, Status, Suppression, Timestamp};

use crate::direct::{Few, Hashes};
use crate::error::LedgerError;
use crate::files::{self, BATCH, FileBytes, Output, columns, utc_builder, utc_ms};
use crate::rows::{Position, ResultRow};
use crate::wire;

fn discrepancy_fields() -> Fields {
    Fields::from(vec![
        Field::new("field", DataType::Utf8, false),
        Field::new("category", DataType::Utf8, false),
        Field::new("severity", DataType::Utf8, false),
        Field::new("refused", DataType::Boolean, false),
        Field::new("keyword", DataType::Utf8, true),
        Field::new("location", DataType::Utf8, true),
        Field::new("note", DataType::Utf8, true),
    ])
}

fn item(dtype: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", dtype, false))
}

fn list(dtype: DataType) -> DataType {
    DataType::List(item(dtype))
}

columns!(Columns {
    partition: Few = Few::integers(), DataType::Int32, false, Few;
    offset: Int64Builder = Int64Builder::new(), DataType::Int64, false, Ascending;
    index: Few = Few::integers(), DataType::Int32, false, Few;
    ts: TimestampMillisecondBuilder = utc_builder(), utc_ms(), false, Ascending;
    day: Few = Few::integers(), DataType::Date32, false, Filter;
    call_key: Hashes = Hashes::new(), DataType::FixedSizeBinary(16), false, Random;
    tool_id: Few = Few::texts(), DataType::Utf8, false, Filter;
    current: Few = Few::texts(), DataType::Utf8, false, Few;
    candidate: Few = Few::texts(), DataType::Utf8, false, Few;
    epoch: Few = Few::texts(), DataType::Utf8, false, Few;
    session_key: Hashes = Hashes::nullable(), DataType::FixedSizeBinary(16), true, Random;
    agent: Few = Few::texts(), DataType::Utf8, true, Few;
    cohort: Few = Few::texts(), DataType::Utf8, true, Few;
    result: Few = Few::texts(), DataType::Utf8, false, Filter;
    reason: Few = Few::texts(), DataType::Utf8, true, Few;
    severity: Few = Few::texts(), DataType::Utf8, true, Few;
    refused: BooleanBuilder = BooleanBuilder::new(), DataType::Boolean, false, Few;
    fidelity: Few = Few::texts(), DataType::Utf8, false, Few;
    evidence_validation: BooleanBuilder = BooleanBuilder::new(), DataType::Boolean, false, Few;
    evidence_arguments: BooleanBuilder = BooleanBuilder::new(), DataType::Boolean, false, Few;
    evidence_outcome: BooleanBuilder = BooleanBuilder::new(), DataType::Boolean, false, Few;
    suppression: Few = Few::texts(), DataType::Utf8, true, Few;
    candidate_status: Few = Few::texts(), DataType::Utf8, true, Few;
    discrepancies: ListBuilder<StructBuilder> =
        ListBuilder::new(StructBuilder::from_fields(discrepancy_fields(), 0))
            .with_field(item(DataType::Struct(discrepancy_fields()))),
        list(DataType::Struct(discrepancy_fields())), false, Few;
    rules: ListBuilder<StringBuilder> = ListBuilder::new(StringBuilder::new()).with_field(item(DataType::Utf8)),
        list(DataType::Utf8), false, Few;
    places_touched: ListBuilder<UInt16Builder> =
        ListBuilder::new(UInt16Builder::new()).with_field(item(DataType::UInt16)),
        list(DataType::UInt16), false, Few;
    places_disagreed: ListBuilder<UInt16Builder> =
        ListBuilder::new(UInt16Builder::new()).with_field(item(DataType::UInt16)),
        list(DataType::UInt16), false, Few;
    commitment: Hashes = Hashes::new(), DataType::FixedSizeBinary(32), false, Random;
});

/// One row, borrowed: nothing is copied before it is in its column.
#[derive(Clone, Copy, Debug)]
pub struct ResultRef<'a> {
    /// Where the call was read.
    pub position: Position,
    /// The call's own time.
    pub ts: Timestamp,
    /// First 16 bytes of SHA-256 over the call id.
    pub call_key: &'a [u8; 16],
    /// Stands for tool, contracts and epoch, which are the same wherever it is the same in a file.
    pub pair: usize,
    /// Tool.
    pub tool_id: &'a str,
    /// Current contract id.
    pub current: &'a str,
    /// Candidate contract id.
    pub candidate: &'a str,
    /// Digest of the epoch.
    pub epoch: &'a str,
    /// First 16 bytes of SHA-256 over the session id, else run, else trace.
    pub session_key: Option<&'a [u8; 16]>,
    /// Agent.
    pub agent: Option<&'a str>,
    /// Cohort.
    pub cohort: Option<&'a str>,
    /// What the comparison said.
    pub comparison: &'a Comparison,
    /// Fidelity of the arguments.
    pub fidelity: Fidelity,
    /// How the candidate's effect was suppressed; `None`: there was no candidate row.
    pub suppression: Option<Suppression>,
    /// The candidate's status.
    pub candidate_status: Option<Status>,
    /// SHA-256 over salt and call.
    pub commitment: &'a [u8; 32],
}

/// Writes a results file in memory.
pub struct ResultsWriter {
    columns: Columns,
    /// What a pair's names have become in their columns.
    named: Vec<Option<Named>>,
    gathered: usize,
    output: Output,
}

impl Default for ResultsWriter {
    fn default() -> Self {
        let output = Output::new(Columns::schema(), properties());
        Self { columns: Columns::new(), named: Vec::new(), gathered: 0, output }
    }
}

fn properties() -> parquet::file::properties::WriterProperties {
    files::properties(Columns::SHAPES)
}

fn odd(e: impl std::fmt::Display) -> LedgerError {
    LedgerError::unreadable("a results row", e)
}

impl ResultsWriter {
    /// Adds one row.
    pub fn append(&mut self, row: &ResultRef<'_>) -> Result<(), LedgerError> {
        self.columns.append(row, &mut self.named).map_err(odd)?;
        for d in &row.comparison.discrepancies {
            append_discrepancy(self.columns.discrepancies.values(), d)?;
        }
        self.columns.discrepancies.append(true);
        self.gathered += 1;
        if self.gathered >= BATCH { self.flush() } else { Ok(()) }
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
        self.output.held() + own + self.gathered * 64
    }

    /// The file; `None` when there is no row. The writer is empty afterwards.
    pub fn finish(&mut self) -> Result<Option<FileBytes>, LedgerError> {
        self.flush()?;
        self.named.clear();
        self.output.finish_with(self.columns.own())
    }

    /// Takes back the memory of a file that was written.
    pub fn reuse(&mut self, memory: Bytes) {
        self.output.reuse(memory);
    }
}

/// Indices into the dictionaries of tool, current, candidate and epoch.
#[derive(Clone, Copy)]
struct Named([u32; 4]);

impl Columns {
    /// Tool, contracts and epoch: four texts of a file's thousands of pairs, looked up once for each of them.
    fn append_pair(
        &mut self,
        row: &ResultRef<'_>,
        named: &mut Vec<Option<Named>>,
    ) -> parquet::errors::Result<()> {
        if let Some(Some(Named([tool_id, current, candidate, epoch]))) = named.get(row.pair) {
            self.tool_id.append_known(*tool_id);
            self.current.append_known(*current);
            self.candidate.append_known(*candidate);
            self.epoch.append_known(*epoch);
            return Ok(());
        }
        self.tool_id.append_value(row.tool_id)?;
        self.current.append_value(row.current)?;
        self.candidate.append_value(row.candidate)?;
        self.epoch.append_value(row.epoch)?;
        if named.len() <= row.pair {
            named.resize(row.pair + 1, None);
        }
        if let Some(named) = named.get_mut(row.pair) {
            let columns = [&self.tool_id, &self.current, &self.candidate, &self.epoch];
            *named = Some(Named(columns.map(Few::last)));
        }
        Ok(())
    }

    /// All but the discrepancies.
    fn append(&mut self, row: &ResultRef<'_>, named: &mut Vec<Option<Named>>) -> parquet::errors::Result<()> {
        let comparison = row.comparison;
        self.partition.append_integer(row.position.partition)?;
        self.offset.append_value(row.position.offset);
        self.index.append_integer(row.position.index)?;
        self.ts.append_value(row.ts.0);
        self.day.append_integer(row.ts.day().0)?;
        self.call_key.append_value(row.call_key)?;
        self.append_pair(row, named)?;
        self.session_key.append_option(row.session_key.map(<[u8; 16]>::as_slice))?;
        self.agent.append_option(row.agent)?;
        self.cohort.append_option(row.cohort)?;
        self.result.append_value(comparison.result.as_str())?;
        self.reason.append_option(comparison.reason.map(Reason::as_str))?;
        self.severity.append_option(comparison.severity().map(Severity::as_str))?;
        self.refused.append_value(comparison.refused());
        self.fidelity.append_value(wire::fidelity(row.fidelity))?;
        self.evidence_validation.append_value(comparison.evidence.validation);
        self.evidence_arguments.append_value(comparison.evidence.arguments);
        self.evidence_outcome.append_value(comparison.evidence.outcome);
        self.suppression.append_option(row.suppression.map(wire::suppression))?;
        self.candidate_status.append_option(row.candidate_status.map(Status::as_str))?;
        for rule in &comparison.rules {
            self.rules.values().append_value(rule);
        }
        self.rules.append(true);
        self.places_touched.values().append_slice(&comparison.touched);
        self.places_touched.append(true);
        self.places_disagreed.values().append_slice(&comparison.disagreed_at);
        self.places_disagreed.append(true);
        self.commitment.append_value(row.commitment)
    }
}

fn append_discrepancy(row: &mut StructBuilder, d: &Discrepancy) -> Result<(), LedgerError> {
    let texts = [
        (0, Some(d.field.as_str())),
        (1, Some(d.category.as_str())),
        (2, Some(d.severity.as_str())),
        (4, d.keyword.as_deref()),
        (5, d.location.as_deref()),
        (6, d.note.as_deref()),
    ];
    for (index, text) in texts {
        row.field_builder::<StringBuilder>(index).ok_or_else(|| odd("no such field"))?.append_option(text);
    }
    row.field_builder::<BooleanBuilder>(3).ok_or_else(|| odd("no such field"))?.append_value(d.refused);
    row.append(true);
    Ok(())
}

/// Calls `each` with every row of a results file whose bytes were checked.
pub(crate) fn for_each_row(
    path: &str,
    bytes: Bytes,
    mut each: impl FnMut(ResultRow) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    files::for_each_batch(path, bytes, &Columns::schema(), |batch| {
        let view = View::new(path, batch)?;
        (0..batch.num_rows()).try_for_each(|row| each(view.row(row)?))
    })
}

/// The schema of results files.
pub(crate) fn schema() -> arrow_schema::SchemaRef {
    Columns::schema()
}

/// How the columns of results files look.
pub(crate) fn shapes() -> &'static [(&'static str, files::Shape)] {
    Columns::SHAPES
}

/// Calls `each` with those rows of a batch that `hold` lets pass by day, call key and epoch, and where they stand in it.
pub(crate) fn picked(
    path: &str,
    batch: &RecordBatch,
    mut hold: impl FnMut(Day, &[u8], &str) -> bool,
    mut each: impl FnMut(usize, ResultRow) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    let view = View::new(path, batch)?;
    for at in 0..batch.num_rows() {
        if hold(Day(view.day.value(at)), view.call_key.value(at), view.epoch.value(at)) {
            each(at, view.row(at)?)?;
        }
    }
    Ok(())
}

/// Which rows are wanted, by day, call key and epoch.
pub(crate) type Hold = Box<dyn FnMut(Day, &[u8], &str) -> bool + Send>;

/// Calls `each` with the rows of a results file whose bytes were checked, batch by batch, to be read by [`picked`].
/// `hold` says by day, call key and epoch which rows are wanted; `None`: all of them.
pub(crate) fn for_each_batch(
    path: &str,
    bytes: Bytes,
    hold: Option<Hold>,
    each: impl FnMut(&RecordBatch) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    let keep = hold.map(|mut hold| files::Keep {
        columns: &["day", "call_key", "epoch"],
        rows: Box::new(move |batch| {
            let columns = (
                files::column::<Date32Array>("", batch, "day"),
                files::column::<FixedSizeBinaryArray>("", batch, "call_key"),
                files::column::<StringArray>("", batch, "epoch"),
            );
            // The schema was checked: columns of another type do not come here.
            let (Ok(day), Ok(key), Ok(epoch)) = columns else {
                return BooleanArray::from(vec![true; batch.num_rows()]);
            };
            (0..batch.num_rows())
                .map(|at| Some(hold(Day(day.value(at)), key.value(at), epoch.value(at))))
                .collect()
        }),
    });
    files::for_each_kept_batch(path, bytes, &Columns::schema(), keep, each)
}

struct View<'a> {
    path: &'a str,
    partition: &'a Int32Array,
    offset: &'a Int64Array,
    index: &'a Int32Array,
    ts: &'a TimestampMillisecondArray,
    day: &'a Date32Array,
    call_key: &'a FixedSizeBinaryArray,
    tool_id: &'a StringArray,
    current: &'a StringArray,
    candidate: &'a StringArray,
    epoch: &'a StringArray,
    session_key: &'a FixedSizeBinaryArray,
    agent: &'a StringArray,
    cohort: &'a StringArray,
    result: &'a StringArray,
    reason: &'a StringArray,
    severity: &'a StringArray,
    refused: &'a BooleanArray,
    fidelity: &'a StringArray,
    evidence: [&'a BooleanArray; 3],
    suppression: &'a StringArray,
    candidate_status: &'a StringArray,
    discrepancies: &'a ListArray,
    rules: &'a ListArray,
    places_touched: &'a ListArray,
    places_disagreed: &'a ListArray,
    commitment: &'a FixedSizeBinaryArray,
}

impl<'a> View<'a> {
    fn new(path: &'a str, batch: &'a RecordBatch) -> Result<Self, LedgerError> {
        Ok(Self {
            path,
            partition: files::column(path, batch, "partition")?,
            offset: files::column(path, batch, "offset")?,
            index: files::column(path, batch, "index")?,
            ts: files::column(path, batch, "ts")?,
            day: files::column(path, batch, "day")?,
            call_key: files::column(path, batch, "call_key")?,
            tool_id: files::column(path, batch, "tool_id")?,
            current: files::column(path, batch, "current")?,
            candidate: files::column(path, batch, "candidate")?,
            epoch: files::column(path, batch, "epoch")?,
            session_key: files::column(path, batch, "session_key")?,
            agent: files::column(path, batch, "agent")?,
            cohort: files::column(path, batch, "cohort")?,
            result: files::column(path, batch, "result")?,
            reason: files::column(path, batch, "reason")?,
            severity: files::column(path, batch, "severity")?,
            refused: files::column(path, batch, "refused")?,
            fidelity: files::column(path, batch, "fidelity")?,
            evidence: [
                files::column(path, batch, "evidence_validation")?,
                files::column(path, batch, "evidence_arguments")?,
                files::column(path, batch, "evidence_outcome")?,
            ],
            suppression: files::column(path, batch, "suppression")?,
            candidate_status: files::column(path, batch, "candidate_status")?,
            discrepancies: files::column(path, batch, "discrepancies")?,
            rules: files::column(path, batch, "rules")?,
            places_touched: files::column(path, batch, "places_touched")?,
            places_disagreed: files::column(path, batch, "places_disagreed")?,
            commitment: files::column(path, batch, "commitment")?,
        })
    }

    fn known<T>(&self, column: &str, text: &str, value: Option<T>) -> Result<T, LedgerError> {
        value.ok_or_else(|| {
            LedgerError::unreadable(
                self.path,
                format!("column `{column}` holds `{text}`, which this build does not know"),
            )
        })
    }

    fn optional<T>(
        &self,
        column: &str,
        array: &StringArray,
        row: usize,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, LedgerError> {
        match text(array, row) {
            Some(name) => self.known(column, name, read(name)).map(Some),
            None => Ok(None),
        }
    }

    fn row(&self, row: usize) -> Result<ResultRow, LedgerError> {
        let evidence = |i: usize| self.evidence.get(i).is_some_and(|array| array.value(row));
        let result = self.result.value(row);
        let fidelity = self.fidelity.value(row);
        Ok(ResultRow {
            position: Position {
                partition: self.partition.value(row),
                offset: self.offset.value(row),
                index: self.index.value(row),
            },
            ts: Timestamp(self.ts.value(row)),
            day: Day(self.day.value(row)),
            call_key: fixed(self.call_key.value(row)),
            tool_id: self.tool_id.value(row).to_owned(),
            current: self.current.value(row).to_owned(),
            candidate: self.candidate.value(row).to_owned(),
            epoch: self.epoch.value(row).to_owned(),
            session_key: self.session_key.is_valid(row).then(|| fixed(self.session_key.value(row))),
            agent: text(self.agent, row).map(str::to_owned),
            cohort: text(self.cohort, row).map(str::to_owned),
            result: self.known("result", result, ComparisonResult::parse(result))?,
            reason: self.optional("reason", self.reason, row, Reason::parse)?,
            severity: self.optional("severity", self.severity, row, wire::parse_severity)?,
            refused: self.refused.value(row),
            fidelity: self.known("fidelity", fidelity, wire::parse_fidelity(fidelity))?,
            evidence: Evidence { validation: evidence(0), arguments: evidence(1), outcome: evidence(2) },
            suppression: self.optional("suppression", self.suppression, row, wire::parse_suppression)?,
            candidate_status: self.optional(
                "candidate_status",
                self.candidate_status,
                row,
                wire::parse_status,
            )?,
            discrepancies: self.discrepancies(row)?,
            rules: strings(&self.rules.value(row)),
            places_touched: places(&self.places_touched.value(row)),
            places_disagreed: places(&self.places_disagreed.value(row)),
            commitment: fixed(self.commitment.value(row)),
        })
    }

    fn discrepancies(&self, row: usize) -> Result<Vec<Discrepancy>, LedgerError> {
        let list = self.discrepancies.value(row);
        if list.is_empty() {
            return Ok(Vec::new());
        }
        let unreadable = || LedgerError::unreadable(self.path, "column `discrepancies` has another shape");
        let rows = list.as_any().downcast_ref::<StructArray>().ok_or_else(unreadable)?;
        let texts = |name: &str| {
            rows.column_by_name(name)
                .and_then(|a| a.as_any().downcast_ref::<StringArray>())
                .ok_or_else(unreadable)
        };
        let refused = rows
            .column_by_name("refused")
            .and_then(|a| a.as_any().downcast_ref::<BooleanArray>())
            .ok_or_else(unreadable)?;
        let (field, category, severity) = (texts("field")?, texts("category")?, texts("severity")?);
        let (keyword, location, note) = (texts("keyword")?, texts("location")?, texts("note")?);
        let owned = |array: &StringArray, i: usize| text(array, i).map(str::to_owned);
        (0..rows.len())
            .map(|i| {
                let (c, s) = (category.value(i), severity.value(i));
                Ok(Discrepancy {
                    field: field.value(i).to_owned(),
                    category: self.known("category", c, Category::parse(c))?,
                    severity: self.known("severity", s, wire::parse_severity(s))?,
                    refused: refused.value(i),
                    keyword: owned(keyword, i),
                    location: owned(location, i),
                    note: owned(note, i),
                })
            })
            .collect()
    }
}

fn text(array: &StringArray, row: usize) -> Option<&str> {
    array.is_valid(row).then(|| array.value(row))
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

fn strings(array: &arrow_array::ArrayRef) -> Vec<String> {
    let Some(array) = array.as_any().downcast_ref::<StringArray>() else { return Vec::new() };
    array.iter().flatten().map(str::to_owned).collect()
}

fn places(array: &arrow_array::ArrayRef) -> Vec<u16> {
    let Some(array) = array.as_any().downcast_ref::<UInt16Array>() else { return Vec::new() };
    array.values().to_vec()
}
