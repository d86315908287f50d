//! One column of whole records, written page by page as they come: a record is copied once, into a page that is used
//! again. The way through an Arrow array copies it into the array, into a page that grows, and into a buffer of its
//! own for each page; for the bulk of the bytes that is a tenth of a whole run.

use std::collections::VecDeque;
use std::io::{Read, Write};

use bytes::{Buf as _, Bytes};
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter as _};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::files::PAGE;

/// A column of texts, none of them null: plain encoding, LZ4_RAW.
pub(crate) struct Pages {
    /// Length (32 bits, little endian) and bytes of each text of the page that is being filled.
    page: Vec<u8>,
    compressed: Vec<u8>,
    in_page: u32,
    values: u64,
    uncompressed: usize,
    written: TrackedWrite<Blobs>,
}

impl Pages {
    pub(crate) fn new() -> Self {
        Self {
            page: Vec::with_capacity(PAGE + PAGE / 4),
            compressed: Vec::new(),
            in_page: 0,
            values: 0,
            uncompressed: 0,
            written: TrackedWrite::new(Blobs::default()),
        }
    }

    /// Adds one text.
    pub(crate) fn append(&mut self, text: &str) -> Result<()> {
        let length = u32::try_from(text.len())
            .map_err(|_| ParquetError::General("a record of more than 4 GiB".to_owned()))?;
        self.page.extend_from_slice(&length.to_le_bytes());
        self.page.extend_from_slice(text.as_bytes());
        self.in_page += 1;
        if self.page.len() >= PAGE { self.flush() } else { Ok(()) }
    }

    /// Bytes held in memory, about.
    pub(crate) fn held(&self) -> usize {
        self.page.len() + self.written.bytes_written()
    }

    fn flush(&mut self) -> Result<()> {
        if self.in_page == 0 {
            return Ok(());
        }
        let most = lz4_flex::block::get_maximum_output_size(self.page.len());
        if self.compressed.len() < most {
            self.compressed.resize(most, 0);
        }
        let length = lz4_flex::block::compress_into(&self.page, &mut self.compressed)
            .map_err(|e| ParquetError::External(Box::new(e)))?;
        let buf = Bytes::copy_from_slice(self.compressed.get(..length).unwrap_or_default());
        let page = Page::DataPage {
            buf,
            num_values: self.in_page,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let page = CompressedPage::new(page, self.page.len());
        let spec = SerializedPageWriter::new(&mut self.written).write_page(page)?;
        self.uncompressed += spec.uncompressed_size;
        self.values += u64::from(self.in_page);
        self.in_page = 0;
        self.page.clear();
        Ok(())
    }

    /// Appends the column to a row group; the writer is empty afterwards.
    pub(crate) fn append_to<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        column: ColumnDescPtr,
    ) -> Result<()> {
        self.flush()?;
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let values = std::mem::take(&mut self.values);
        let uncompressed = std::mem::take(&mut self.uncompressed) as u64;
        self.written.flush().map_err(|e| ParquetError::External(Box::new(e)))?;
        let blobs = std::mem::take(self.written.inner_mut());
        self.written = TrackedWrite::new(Blobs::default());
        let bytes = blobs.len();
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(Compression::LZ4_RAW)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE])
            .set_num_values(count(values))
            .set_total_compressed_size(count(bytes))
            .set_total_uncompressed_size(count(uncompressed))
            .set_data_page_offset(0)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes,
            rows_written: values,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        group.append_column(&blobs, close)
    }
}

/// What was written, piece by piece: nothing is moved while it grows.
#[derive(Clone, Default)]
struct Blobs(VecDeque<Bytes>);

impl Write for Blobs {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.push_back(Bytes::copy_from_slice(bytes));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Read for Blobs {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let Some(first) = self.0.front_mut() else { return Ok(0) };
        let n = first.len().min(to.len());
        first.copy_to_slice(to.get_mut(..n).unwrap_or_default());
        if first.is_empty() {
            self.0.pop_front();
        }
        Ok(n)
    }
}

impl Length for Blobs {
    fn len(&self) -> u64 {
        self.0.iter().map(|b| b.len() as u64).sum()
    }
}

impl ChunkReader for Blobs {
    type T = Self;

    fn get_read(&self, start: u64) -> Result<Self> {
        let mut all = self.clone();
        let mut skip = usize::try_from(start).unwrap_or(usize::MAX);
        while let Some(first) = all.0.front_mut() {
            let n = skip.min(first.len());
            first.advance(n);
            skip -= n;
            if !first.is_empty() {
                break;
            }
            all.0.pop_front();
        }
        Ok(all)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut out = Vec::with_capacity(length);
        self.get_read(start)?.take(length as u64).read_to_end(&mut out)?;
        Ok(out.into())
    }
}
