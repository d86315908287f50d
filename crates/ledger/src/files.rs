//! What the Parquet files share: how columns are encoded, how rows become bytes, how batches are read back.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use lastcall_contract::Digest;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

use crate::entry::FileRef;
use crate::error::LedgerError;
use crate::store::Store;

/// How a column's values look: decides dictionary, statistics and compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Few distinct values: dictionary.
    Few,
    /// Ids and free text: no dictionary; LZ4, since compressing them with zstd cost a sixth of the whole run for a
    /// third fewer bytes.
    Text,
    /// Ascending numbers: delta encoding, statistics.
    Ascending,
    /// Random bytes: no dictionary, not compressed.
    Random,
    /// Few distinct values that readers filter by: dictionary and statistics.
    Filter,
}

/// The writer's properties for a list of columns.
pub(crate) fn properties(shapes: &[(&'static str, Shape)]) -> WriterProperties {
    let zstd = ZstdLevel::try_new(1).map_or(Compression::SNAPPY, Compression::ZSTD);
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("lastcall ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(zstd)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_data_page_size_limit(PAGE)
        .set_max_row_group_row_count(Some(1 << 20));
    for (name, shape) in shapes {
        let column = ColumnPath::from(*name);
        builder = match shape {
            Shape::Few => builder,
            Shape::Text => builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_compression(column, Compression::LZ4_RAW),
            Shape::Random => builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_compression(column, Compression::UNCOMPRESSED),
            Shape::Ascending => builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_statistics_enabled(column, EnabledStatistics::Chunk),
            Shape::Filter => builder.set_column_statistics_enabled(column, EnabledStatistics::Chunk),
        };
    }
    builder.build()
}

/// The bytes of a finished data file.
#[derive(Clone, Debug)]
pub struct FileBytes {
    /// The bytes.
    pub bytes: Bytes,
    /// Digest of the bytes.
    pub sha256: Digest,
    /// Rows.
    pub rows: u64,
}

/// A Parquet file that grows in memory, batch by batch.
pub(crate) struct Output {
    writer: Option<ArrowWriter<Vec<u8>>>,
    schema: SchemaRef,
    properties: WriterProperties,
    rows: u64,
}

impl Output {
    pub(crate) fn new(schema: SchemaRef, properties: WriterProperties) -> Self {
        Self { writer: None, schema, properties, rows: 0 }
    }

    pub(crate) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), LedgerError> {
        let fail = |e: &dyn std::fmt::Display| LedgerError::unreadable("a data file", e);
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(|e| fail(&e))?;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let options = ArrowWriterOptions::new().with_properties(self.properties.clone());
                let made = ArrowWriter::try_new_with_options(Vec::new(), self.schema.clone(), options);
                none.insert(made.map_err(|e| fail(&e))?)
            }
        };
        self.rows += batch.num_rows() as u64;
        writer.write(&batch).map_err(|e| fail(&e))
    }

    /// Bytes that it holds in memory, about.
    pub(crate) fn held(&self) -> usize {
        self.writer.as_ref().map_or(0, |writer| writer.memory_size() + writer.inner().len())
    }

    /// The file; `None` when no row was written.
    pub(crate) fn finish(&mut self) -> Result<Option<FileBytes>, LedgerError> {
        let Some(mut writer) = self.writer.take() else { return Ok(None) };
        // the pages are copied to the file's end only now: once, not again and again while it grows
        let pages = writer.memory_size();
        writer.inner_mut().reserve(pages);
        let rows = std::mem::take(&mut self.rows);
        let bytes = writer.into_inner().map_err(|e| LedgerError::unreadable("a data file", e))?;
        let sha256 = Digest::of(&bytes);
        Ok(Some(FileBytes { bytes: Bytes::from(bytes), sha256, rows }))
    }
}

/// Reads a file that an entry names, after checking length and digest.
pub(crate) fn checked(store: &dyn Store, file: &FileRef) -> Result<Bytes, LedgerError> {
    let Some(bytes) = store.get(&file.path)? else {
        return Err(LedgerError::Missing { place: file.path.clone() });
    };
    if bytes.len() as u64 != file.bytes {
        let what = format!("it has {} bytes, its entry says {}", bytes.len(), file.bytes);
        return Err(LedgerError::altered(&file.path, what));
    }
    if Digest::of(&bytes) != file.sha256 {
        return Err(LedgerError::altered(&file.path, "its SHA-256 is not the one in its entry"));
    }
    Ok(bytes)
}

/// Calls `each` with every batch of a file whose schema must be `schema`.
pub(crate) fn for_each_batch(
    path: &str,
    bytes: Bytes,
    schema: &SchemaRef,
    mut each: impl FnMut(&RecordBatch) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    let fail = |e: &dyn std::fmt::Display| LedgerError::unreadable(path, e);
    let options = ArrowReaderOptions::new();
    let metadata = ArrowReaderMetadata::load(&bytes, options).map_err(|e| fail(&e))?;
    if metadata.schema().fields() != schema.fields() {
        return Err(fail(&"its columns are not those of schemas/parquet.md; another version wrote it"));
    }
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata)
        .with_batch_size(4096)
        .build()
        .map_err(|e| fail(&e))?;
    for batch in reader {
        each(&batch.map_err(|e| fail(&e))?)?;
    }
    Ok(())
}

/// One column of a batch as the array type that the schema says.
pub(crate) fn column<'a, T: Array + 'static>(
    path: &str,
    batch: &'a RecordBatch,
    name: &str,
) -> Result<&'a T, LedgerError> {
    batch
        .column_by_name(name)
        .and_then(|array| array.as_any().downcast_ref::<T>())
        .ok_or_else(|| LedgerError::unreadable(path, format!("column `{name}` is absent or of another type")))
}

/// Declares a set of Arrow builders, one a column, with their schema.
macro_rules! columns {
    ($name:ident { $($field:ident: $builder:ty = $make:expr, $dtype:expr, $null:expr, $shape:ident;)* }) => {
        pub(crate) struct $name { $(pub(crate) $field: $builder,)* }

        impl $name {
            pub(crate) fn new() -> Self {
                Self { $($field: $make,)* }
            }

            pub(crate) fn schema() -> arrow_schema::SchemaRef {
                std::sync::Arc::new(arrow_schema::Schema::new(vec![
                    $(arrow_schema::Field::new(stringify!($field), $dtype, $null),)*
                ]))
            }

            pub(crate) const SHAPES: &'static [(&'static str, crate::files::Shape)] =
                &[$((stringify!($field), crate::files::Shape::$shape),)*];

            /// The gathered batch; the builders begin anew with room for another one.
            pub(crate) fn finish(&mut self) -> Vec<arrow_array::ArrayRef> {
                let mut full = std::mem::replace(self, Self::new());
                vec![$(std::sync::Arc::new(full.$field.finish()) as arrow_array::ArrayRef,)*]
            }
        }
    };
}
pub(crate) use columns;

/// `timestamp(ms, UTC)`.
pub(crate) fn utc_ms() -> arrow_schema::DataType {
    arrow_schema::DataType::Timestamp(arrow_schema::TimeUnit::Millisecond, Some(Arc::from("UTC")))
}

/// Bytes of a page before compression: what is gathered, encoded and compressed stays in the processor's cache.
const PAGE: usize = 256 << 10;

/// Rows that are gathered before they are encoded.
pub(crate) const BATCH: usize = 512;

/// Bytes of records that are gathered before they are encoded.
pub(crate) const BATCH_BYTES: usize = 512 << 10;

/// A builder of whole records, with room for a batch: growing from nothing each time costs more than the room.
pub(crate) fn record_builder() -> arrow_array::builder::StringBuilder {
    arrow_array::builder::StringBuilder::with_capacity(BATCH, BATCH_BYTES + (64 << 10))
}

/// A builder of ids, with room for a batch.
pub(crate) fn text_builder() -> arrow_array::builder::StringBuilder {
    arrow_array::builder::StringBuilder::with_capacity(BATCH, 32 << 10)
}

/// A builder of short names, with room for a batch.
pub(crate) fn name_builder() -> arrow_array::builder::StringBuilder {
    arrow_array::builder::StringBuilder::with_capacity(BATCH, 16 << 10)
}

/// A builder of `timestamp(ms, UTC)`.
pub(crate) fn utc_builder() -> arrow_array::builder::TimestampMillisecondBuilder {
    arrow_array::builder::TimestampMillisecondBuilder::new().with_data_type(utc_ms())
}
