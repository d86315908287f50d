//! What the Parquet files share: how columns are encoded, how rows become bytes, how batches are read back.

use std::sync::Arc;

use arrow_array::builder::ArrayBuilder;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use lastcall_contract::Digest;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowFilter,
};
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::arrow::{ArrowSchemaConverter, ProjectionMask, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use crate::direct::Direct;
use crate::entry::FileRef;
use crate::error::LedgerError;
use crate::pages::{Packer, zstd};
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
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("lastcall ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(zstd())
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

/// A Parquet file that grows in memory, batch by batch: one row group.
pub(crate) struct Output {
    open: Option<OpenFile>,
    schema: SchemaRef,
    properties: WriterProperties,
    rows: u64,
    packer: Packer,
    /// Of the file before.
    memory: Vec<u8>,
}

struct OpenFile {
    file: SerializedFileWriter<Vec<u8>>,
    columns: Vec<ArrowColumnWriter>,
}

fn unwritable(e: impl std::fmt::Display) -> LedgerError {
    LedgerError::unreadable("a data file", e)
}

impl Output {
    pub(crate) fn new(schema: SchemaRef, mut properties: WriterProperties) -> Self {
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        Self { open: None, schema, properties, rows: 0, packer: Packer::default(), memory: Vec::new() }
    }

    fn open(&mut self) -> Result<&mut OpenFile, LedgerError> {
        match &mut self.open {
            Some(open) => Ok(open),
            none => {
                let parquet = ArrowSchemaConverter::new().convert(&self.schema).map_err(unwritable)?;
                let properties = Arc::new(self.properties.clone());
                let memory = std::mem::take(&mut self.memory);
                let file = SerializedFileWriter::new(memory, parquet.root_schema_ptr(), properties)
                    .map_err(unwritable)?;
                let factory = ArrowRowGroupWriterFactory::new(&file, self.schema.clone());
                let columns = factory.create_column_writers(0).map_err(unwritable)?;
                Ok(none.insert(OpenFile { file, columns }))
            }
        }
    }

    /// Adds rows, all of their columns.
    pub(crate) fn write(&mut self, columns: &[ArrayRef]) -> Result<(), LedgerError> {
        let rows = columns.first().map_or(0, |column| column.len());
        self.write_some(rows, columns.iter().map(Some))
    }

    /// Adds rows without those columns that hold their own.
    pub(crate) fn write_some<'a>(
        &mut self,
        rows: usize,
        columns: impl Iterator<Item = Option<&'a ArrayRef>>,
    ) -> Result<(), LedgerError> {
        let schema = self.schema.clone();
        self.rows += rows as u64;
        let mut writers = self.open()?.columns.iter_mut();
        for (field, array) in schema.fields().iter().zip(columns) {
            let Some(array) = array else {
                writers.next();
                continue;
            };
            for leaf in compute_leaves(field, array).map_err(unwritable)? {
                let writer =
                    writers.next().ok_or_else(|| unwritable("it has more columns than its schema"))?;
                writer.write(&leaf).map_err(unwritable)?;
            }
        }
        Ok(())
    }

    /// Bytes that it holds in memory, about.
    pub(crate) fn held(&self) -> usize {
        let columns =
            |open: &OpenFile| open.columns.iter().map(ArrowColumnWriter::memory_size).sum::<usize>();
        self.open.as_ref().map_or(0, columns)
    }

    /// Takes back the memory of a file that was written, if nobody else holds it: tens of megabytes that the system
    /// would have to clear again for the next one.
    pub(crate) fn reuse(&mut self, memory: Bytes) {
        if memory.is_unique() {
            self.memory = Vec::from(memory);
            self.memory.clear();
        }
    }

    /// The file; `None` when no row was written.
    pub(crate) fn finish(&mut self) -> Result<Option<FileBytes>, LedgerError> {
        self.finish_with(Vec::new())
    }

    /// The same with the columns that hold their own rows, by place in the schema.
    pub(crate) fn finish_with(&mut self, own: Own<'_>) -> Result<Option<FileBytes>, LedgerError> {
        let held = self.held() + own.iter().flatten().map(|(_, column)| column.held()).sum::<usize>();
        let Some(OpenFile { mut file, columns }) = self.open.take() else {
            return Ok(None);
        };
        // The pages are copied to the file's end only now: once, not again and again while it grows. A buffer that is
        // too small is not grown, which would copy all of it; the next file may be a little larger.
        let buffer = file.inner_mut();
        if buffer.capacity() - buffer.len() < held {
            let mut larger = Vec::with_capacity(buffer.len() + held + held / 8);
            larger.extend_from_slice(buffer);
            *buffer = larger;
        }
        let rows = std::mem::take(&mut self.rows);
        let leaves = file.schema_descr().columns().to_vec();
        let mut own = own;
        let mut group = file.next_row_group().map_err(unwritable)?;
        for (writer, leaf) in columns.into_iter().zip(leaves) {
            let root = leaf.path().parts().first().and_then(|name| self.schema.index_of(name).ok());
            if let Some((shape, column)) = root.and_then(|index| own.get_mut(index)?.as_mut()) {
                column.append_to(&mut group, leaf, *shape, &mut self.packer).map_err(unwritable)?;
            } else {
                let chunk = writer.close().map_err(unwritable)?;
                chunk.append_to_row_group(&mut group).map_err(unwritable)?;
            }
        }
        group.close().map_err(unwritable)?;
        let bytes = file.into_inner().map_err(unwritable)?;
        let sha256 = Digest::of(&bytes);
        Ok(Some(FileBytes { bytes: Bytes::from(bytes), sha256, rows }))
    }
}

/// Columns that hold their own rows, by place in the schema; `None`: one that goes through Arrow.
pub(crate) type Own<'a> = Vec<Option<(Shape, &'a mut dyn Direct)>>;

/// What gathers the rows of one column.
pub(crate) trait Gather {
    /// The rows since the last call; `None`: the column holds its own.
    fn batch(&mut self) -> Option<ArrayRef>;
    /// The column, if it holds its own rows.
    fn own(&mut self) -> Option<&mut dyn Direct>;
}

impl<B: ArrayBuilder> Gather for B {
    fn batch(&mut self) -> Option<ArrayRef> {
        Some(ArrayBuilder::finish(self))
    }
    fn own(&mut self) -> Option<&mut dyn Direct> {
        None
    }
}

/// Reads a file that an entry names, after checking length and digest.
pub(crate) fn checked(store: &dyn Store, file: &FileRef) -> Result<Bytes, LedgerError> {
    checked_as(store, &file.path, file.bytes, &file.sha256)
}

/// Reads a file that has to have this length and digest.
pub(crate) fn checked_as(
    store: &dyn Store,
    path: &str,
    length: u64,
    sha256: &Digest,
) -> Result<Bytes, LedgerError> {
    let Some(bytes) = store.get(path)? else {
        return Err(LedgerError::Missing { place: path.to_owned() });
    };
    if bytes.len() as u64 != length {
        let what = format!("it has {} bytes, its entry says {length}", bytes.len());
        return Err(LedgerError::altered(path, what));
    }
    if Digest::of(&bytes) != *sha256 {
        return Err(LedgerError::altered(path, "its SHA-256 is not the one in its entry"));
    }
    Ok(bytes)
}

/// Rows to keep: asked of batches that hold nothing but these columns.
pub(crate) struct Keep {
    pub(crate) columns: &'static [&'static str],
    pub(crate) rows: Box<dyn FnMut(&RecordBatch) -> BooleanArray + Send>,
}

/// Calls `each` with every batch of a file whose schema must be `schema`.
pub(crate) fn for_each_batch(
    path: &str,
    bytes: Bytes,
    schema: &SchemaRef,
    each: impl FnMut(&RecordBatch) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    for_each_kept_batch(path, bytes, schema, None, each)
}

/// The same with the rows to keep: the columns of others are not decoded.
pub(crate) fn for_each_kept_batch(
    path: &str,
    bytes: Bytes,
    schema: &SchemaRef,
    keep: Option<Keep>,
    mut each: impl FnMut(&RecordBatch) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    let fail = |e: &dyn std::fmt::Display| LedgerError::unreadable(path, e);
    // The columns are ours to say: the Arrow schema that a file carries is read by nobody.
    let options = ArrowReaderOptions::new().with_schema(schema.clone());
    let metadata = calmly(path, || ArrowReaderMetadata::load(&bytes, options))?.map_err(|e| {
        fail(&format!("its columns are not those of schemas/parquet.md ({e}); another version wrote it"))
    })?;
    if metadata.schema().fields() != schema.fields() {
        return Err(fail(&"its columns are not those of schemas/parquet.md; another version wrote it"));
    }
    let mut builder =
        ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata).with_batch_size(4096);
    if let Some(Keep { columns, mut rows }) = keep {
        let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
        let predicate = ArrowPredicateFn::new(mask, move |batch: RecordBatch| Ok(rows(&batch)));
        builder = builder.with_row_filter(RowFilter::new(vec![Box::new(predicate)]));
    }
    let mut reader = calmly(path, || builder.build())?.map_err(|e| fail(&e))?;
    while let Some(batch) = calmly(path, || reader.next())? {
        each(&batch.map_err(|e| fail(&e))?)?;
    }
    Ok(())
}

/// Runs one step of the Parquet reader, which asserts what a file that was altered breaks (a column that begins before the
/// file, say). That is a file that cannot be read.
pub(crate) fn calmly<T>(path: &str, step: impl FnOnce() -> T) -> Result<T, LedgerError> {
    crate::calm::calmly(step)
        .ok_or_else(|| LedgerError::unreadable(path, "it is no Parquet file that a ledger wrote"))
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

/// Declares what gathers the rows, one a column, with their schema.
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

            /// The gathered batch of the columns that go through Arrow.
            pub(crate) fn batch(&mut self) -> Vec<Option<arrow_array::ArrayRef>> {
                vec![$(crate::files::Gather::batch(&mut self.$field),)*]
            }

            /// The columns that hold their own rows.
            pub(crate) fn own(&mut self) -> crate::files::Own<'_> {
                vec![$(crate::files::Gather::own(&mut self.$field)
                    .map(|column| (crate::files::Shape::$shape, column)),)*]
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
pub(crate) const PAGE: usize = 256 << 10;

/// Rows that are gathered in Arrow builders before they are encoded.
pub(crate) const BATCH: usize = 2048;

/// A builder of `timestamp(ms, UTC)`.
pub(crate) fn utc_builder() -> arrow_array::builder::TimestampMillisecondBuilder {
    arrow_array::builder::TimestampMillisecondBuilder::new().with_data_type(utc_ms())
}
