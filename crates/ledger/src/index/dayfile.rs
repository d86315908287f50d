//! Files of compacted rows: the columns of results, and what taking out duplicates decided.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use lastcall_event::Day;

use crate::error::LedgerError;
use crate::files::{self, FileBytes, Output, Shape};
use crate::index::{DayEntry, DayFile};
use crate::ledger::Ledger;
use crate::results;
use crate::rows::ResultRow;

/// The columns behind those of results.
pub(crate) const MORE: [(&str, Shape); 5] = [
    ("source", Shape::Few),
    ("control", Shape::Few),
    ("repeats", Shape::Few),
    ("planted", Shape::Few),
    ("counted", Shape::Filter),
];

/// One row of a day file.
#[derive(Clone, Debug, PartialEq)]
pub struct DayRow {
    /// The row as results have it; of repeats that say the same the earliest.
    pub row: ResultRow,
    /// The source.
    pub source: String,
    /// The control entry under which it was recorded.
    pub control: u64,
    /// How many rows said the same.
    pub repeats: u64,
    /// It is a planted or synthetic call.
    pub planted: bool,
    /// It is the row that counts for its call, when every source and control entry counts.
    pub counted: bool,
}

/// The schema of day files.
pub(crate) fn schema() -> SchemaRef {
    let mut fields: Vec<Arc<Field>> = results::schema().fields().iter().cloned().collect();
    let types = [DataType::Utf8, DataType::Int64, DataType::Int64, DataType::Boolean, DataType::Boolean];
    fields.extend(MORE.iter().zip(types).map(|((name, _), dtype)| Arc::new(Field::new(*name, dtype, false))));
    Arc::new(Schema::new(fields))
}

/// What is added to the columns of results.
#[derive(Default)]
pub(crate) struct More {
    pub(crate) source: Vec<Arc<str>>,
    pub(crate) control: Vec<i64>,
    pub(crate) repeats: Vec<i64>,
    pub(crate) planted: Vec<bool>,
    pub(crate) counted: Vec<bool>,
}

/// The bytes of a day file from the columns of results and what is added to them; `None` without rows.
pub(crate) fn write(rows: &RecordBatch, more: More) -> Result<Option<FileBytes>, LedgerError> {
    if rows.num_rows() == 0 {
        return Ok(None);
    }
    let shapes: Vec<(&'static str, Shape)> = results::shapes().iter().chain(&MORE).copied().collect();
    let mut output = Output::new(schema(), files::properties(&shapes));
    let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
    let source: StringArray = more.source.iter().map(|s| Some(&**s)).collect();
    columns.push(Arc::new(source));
    columns.push(Arc::new(Int64Array::from(more.control)));
    columns.push(Arc::new(Int64Array::from(more.repeats)));
    columns.push(Arc::new(BooleanArray::from(more.planted)));
    columns.push(Arc::new(BooleanArray::from(more.counted)));
    output.write(&columns)?;
    output.finish()
}

/// The bytes of a day file; length and digest are checked.
pub(crate) fn bytes(ledger: &Ledger, file: &DayFile) -> Result<Bytes, LedgerError> {
    files::checked_as(&**ledger.store(), &file.path, file.bytes, &file.sha256)
}

/// Reads a day file whose length and digest are checked; how many rows it has.
pub(crate) fn read_day_file(ledger: &Ledger, file: &DayFile) -> Result<u64, LedgerError> {
    let mut rows = 0;
    for_each_batch(&file.path, bytes(ledger, file)?, &mut |_, _| true, &mut |_, found| {
        rows += found.len() as u64;
        Ok(())
    })?;
    Ok(rows)
}

/// Takes a batch: the columns of results, and the rows with their places in it.
type EachBatch<'a> = dyn FnMut(&RecordBatch, Vec<(usize, DayRow)>) -> Result<(), LedgerError> + 'a;

/// Calls `each` with the rows of a day's files that `hold` lets pass by their key, and the columns of results beside.
pub(crate) fn for_each_day_batch(
    ledger: &Ledger,
    entry: &DayEntry,
    hold: &mut dyn FnMut(Day, &[u8]) -> bool,
    each: &mut EachBatch<'_>,
) -> Result<(), LedgerError> {
    for file in &entry.files {
        let bytes = bytes(ledger, file)?;
        for_each_batch(&file.path, bytes, hold, each)?;
    }
    Ok(())
}

/// The same for one file whose bytes were checked.
pub(crate) fn for_each_batch(
    path: &str,
    bytes: Bytes,
    hold: &mut dyn FnMut(Day, &[u8]) -> bool,
    each: &mut EachBatch<'_>,
) -> Result<(), LedgerError> {
    let width = results::schema().fields().len();
    files::for_each_batch(path, bytes, &schema(), |batch| {
        let results: Vec<usize> = (0..width).collect();
        let results = batch.project(&results).map_err(|e| LedgerError::unreadable(path, e))?;
        let source = files::column::<StringArray>(path, batch, "source")?;
        let control = files::column::<Int64Array>(path, batch, "control")?;
        let repeats = files::column::<Int64Array>(path, batch, "repeats")?;
        let planted = files::column::<BooleanArray>(path, batch, "planted")?;
        let counted = files::column::<BooleanArray>(path, batch, "counted")?;
        let mut rows = Vec::new();
        results::picked(
            path,
            &results,
            |day, key, _| hold(day, key),
            |at, row| {
                rows.push((
                    at,
                    DayRow {
                        row,
                        source: source.value(at).to_owned(),
                        control: u64::try_from(control.value(at)).unwrap_or_default(),
                        repeats: u64::try_from(repeats.value(at)).unwrap_or_default(),
                        planted: planted.value(at),
                        counted: counted.value(at),
                    },
                ));
                Ok(())
            },
        )?;
        each(&results, rows)
    })
}

/// Calls `each` with every compacted row of a day, as its entry names the files.
pub fn for_each_day_row(
    ledger: &Ledger,
    entry: &DayEntry,
    hold: &mut dyn FnMut(Day, &[u8]) -> bool,
    each: &mut dyn FnMut(&DayRow),
) -> Result<(), LedgerError> {
    for_each_day_batch(ledger, entry, hold, &mut |_, rows| {
        rows.iter().for_each(|(_, row)| each(row));
        Ok(())
    })
}
