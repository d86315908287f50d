//! The dead files: what could not be decoded, byte for byte, with its position and reason. Personal data.

use arrow_array::builder::{
    BinaryBuilder, Int32Builder, Int64Builder, StringBuilder, TimestampMillisecondBuilder,
};
use arrow_array::{Array, BinaryArray, Int32Array, Int64Array, StringArray, TimestampMillisecondArray};
use arrow_schema::DataType;
use bytes::Bytes;
use lastcall_event::Timestamp;

use crate::error::LedgerError;
use crate::files::{self, FileBytes, Output, columns, utc_builder, utc_ms};
use crate::rows::{DeadRow, Position};

const BATCH: usize = 256;
const BATCH_BYTES: usize = 2 << 20;

columns!(Columns {
    partition: Int32Builder = Int32Builder::new(), DataType::Int32, false, Few;
    offset: Int64Builder = Int64Builder::new(), DataType::Int64, false, Ascending;
    index: Int32Builder = Int32Builder::new(), DataType::Int32, false, Few;
    bytes: BinaryBuilder = BinaryBuilder::new(), DataType::Binary, false, Text;
    length: Int64Builder = Int64Builder::new(), DataType::Int64, false, Few;
    reason: StringBuilder = StringBuilder::new(), DataType::Utf8, false, Filter;
    message: StringBuilder = StringBuilder::new(), DataType::Utf8, false, Few;
    received: TimestampMillisecondBuilder = utc_builder(), utc_ms(), true, Ascending;
});

/// One dead letter, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct DeadRef<'a> {
    /// Where it was read.
    pub position: Position,
    /// Its bytes (of `too_long`: the first part).
    pub bytes: &'a [u8],
    /// How many bytes it had.
    pub length: u64,
    /// Reason code.
    pub reason: &'a str,
    /// What is wrong and what to do.
    pub message: &'a str,
    /// Ledger time at which it was read.
    pub received: Option<Timestamp>,
}

/// Writes a dead file in memory.
pub struct DeadWriter {
    columns: Columns,
    gathered: usize,
    gathered_bytes: usize,
    output: Output,
}

impl Default for DeadWriter {
    fn default() -> Self {
        let output = Output::new(Columns::schema(), files::properties(Columns::SHAPES));
        Self { columns: Columns::new(), gathered: 0, gathered_bytes: 0, output }
    }
}

impl DeadWriter {
    /// Adds one row.
    pub fn append(&mut self, row: &DeadRef<'_>) -> Result<(), LedgerError> {
        let c = &mut self.columns;
        c.partition.append_value(row.position.partition);
        c.offset.append_value(row.position.offset);
        c.index.append_value(row.position.index);
        c.bytes.append_value(row.bytes);
        c.length.append_value(i64::try_from(row.length).unwrap_or(i64::MAX));
        c.reason.append_value(row.reason);
        c.message.append_value(row.message);
        c.received.append_option(row.received.map(|t| t.0));
        self.gathered += 1;
        self.gathered_bytes += row.bytes.len();
        if self.gathered >= BATCH || self.gathered_bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), LedgerError> {
        let rows = std::mem::take(&mut self.gathered);
        if rows == 0 {
            return Ok(());
        }
        self.gathered_bytes = 0;
        let batch = self.columns.batch();
        self.output.write_some(rows, batch.iter().map(Option::as_ref))
    }

    /// Bytes held in memory, about.
    pub fn held(&self) -> usize {
        self.output.held() + self.gathered_bytes
    }

    /// The file; `None` when there is no row. The writer is empty afterwards.
    pub fn finish(&mut self) -> Result<Option<FileBytes>, LedgerError> {
        self.flush()?;
        self.output.finish_with(self.columns.own())
    }
}

/// Calls `each` with every row of a dead file whose bytes were checked.
pub(crate) fn for_each_row(
    path: &str,
    bytes: Bytes,
    mut each: impl FnMut(DeadRow) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    files::for_each_batch(path, bytes, &Columns::schema(), |batch| {
        let partition: &Int32Array = files::column(path, batch, "partition")?;
        let offset: &Int64Array = files::column(path, batch, "offset")?;
        let index: &Int32Array = files::column(path, batch, "index")?;
        let bytes: &BinaryArray = files::column(path, batch, "bytes")?;
        let length: &Int64Array = files::column(path, batch, "length")?;
        let reason: &StringArray = files::column(path, batch, "reason")?;
        let message: &StringArray = files::column(path, batch, "message")?;
        let received: &TimestampMillisecondArray = files::column(path, batch, "received")?;
        (0..batch.num_rows()).try_for_each(|row| {
            each(DeadRow {
                position: Position {
                    partition: partition.value(row),
                    offset: offset.value(row),
                    index: index.value(row),
                },
                bytes: bytes.value(row).to_vec(),
                length: length.value(row),
                reason: reason.value(row).to_owned(),
                message: message.value(row).to_owned(),
                received: received.is_valid(row).then(|| Timestamp(received.value(row))),
            })
        })
    })
}
