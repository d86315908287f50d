//! The pages of one column as they come to stand in a file, written past Arrow: what is gathered is encoded once, into
//! memory that is used again.

use std::io::Write;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter as _};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::files::PAGE;
use crate::runs;

/// The compression of columns with few distinct values.
pub(crate) fn zstd() -> Compression {
    ZstdLevel::try_new(1).map_or(Compression::SNAPPY, Compression::ZSTD)
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> ParquetError {
    ParquetError::External(Box::new(error))
}

/// Compresses pages, one after another in the same memory.
#[derive(Default)]
pub(crate) struct Packer {
    packed: Vec<u8>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Packer {
    fn pack<'a>(&'a mut self, body: &'a [u8], compression: Compression) -> Result<&'a [u8]> {
        match compression {
            Compression::LZ4_RAW => {
                let most = lz4_flex::block::get_maximum_output_size(body.len());
                if self.packed.len() < most {
                    self.packed.resize(most, 0);
                }
                let length = lz4_flex::block::compress_into(body, &mut self.packed).map_err(failed)?;
                Ok(self.packed.get(..length).unwrap_or_default())
            }
            Compression::ZSTD(level) => {
                let zstd = match &mut self.zstd {
                    Some(zstd) => zstd,
                    none => none.insert(zstd::bulk::Compressor::new(level.compression_level())?),
                };
                self.packed.clear();
                self.packed.reserve(zstd::zstd_safe::compress_bound(body.len()));
                zstd.compress_to_buffer(body, &mut self.packed)?;
                Ok(&self.packed)
            }
            _ => Ok(body),
        }
    }
}

/// The pages of one column of one row group; used again for the next one, so that its memory is touched once.
pub(crate) struct Pages {
    compression: Compression,
    encodings: Vec<Encoding>,
    values: u64,
    uncompressed: usize,
    /// Length of the dictionary's page, which comes first.
    dictionary: Option<usize>,
    written: TrackedWrite<Vec<u8>>,
}

impl Pages {
    pub(crate) fn new(compression: Compression) -> Self {
        Self {
            compression,
            encodings: vec![Encoding::RLE],
            values: 0,
            uncompressed: 0,
            dictionary: None,
            written: TrackedWrite::new(Vec::new()),
        }
    }

    /// Bytes held in memory.
    pub(crate) fn held(&self) -> usize {
        self.written.inner().len()
    }

    /// Adds a page of data: levels, where the column has them, and values. `count` counts nulls too.
    pub(crate) fn data(
        &mut self,
        body: &[u8],
        count: u32,
        encoding: Encoding,
        packer: &mut Packer,
    ) -> Result<()> {
        let page = |buf| Page::DataPage {
            buf,
            num_values: count,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.values += u64::from(count);
        self.write(body, encoding, page, packer).map(|_| ())
    }

    /// Adds the dictionary, in plain encoding; before any data.
    pub(crate) fn dictionary(&mut self, body: &[u8], count: u32, packer: &mut Packer) -> Result<()> {
        let page = |buf| Page::DictionaryPage {
            buf,
            num_values: count,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        self.dictionary = Some(self.write(body, Encoding::PLAIN, page, packer)?);
        Ok(())
    }

    fn write(
        &mut self,
        body: &[u8],
        encoding: Encoding,
        page: impl FnOnce(Bytes) -> Page,
        packer: &mut Packer,
    ) -> Result<usize> {
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
        let packed = Bytes::copy_from_slice(packer.pack(body, self.compression)?);
        let page = CompressedPage::new(page(packed), body.len());
        let spec = SerializedPageWriter::new(&mut self.written).write_page(page)?;
        self.uncompressed += spec.uncompressed_size;
        Ok(spec.compressed_size)
    }

    /// Appends the column to a row group; no page is left.
    pub(crate) fn append_to<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        column: ColumnDescPtr,
        statistics: Option<Statistics>,
    ) -> Result<()> {
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.written.flush().map_err(failed)?;
        let pages = Bytes::from(std::mem::take(self.written.inner_mut()));
        let bytes = pages.len() as u64;
        let values = std::mem::take(&mut self.values);
        let uncompressed = std::mem::take(&mut self.uncompressed) as u64;
        let dictionary = self.dictionary.take();
        let encodings = std::mem::replace(&mut self.encodings, vec![Encoding::RLE]);
        let mut metadata = ColumnChunkMetaData::builder(column)
            .set_compression(self.compression)
            .set_encodings(encodings)
            .set_num_values(count(values))
            .set_total_compressed_size(count(bytes))
            .set_total_uncompressed_size(count(uncompressed))
            .set_data_page_offset(count(dictionary.unwrap_or(0) as u64))
            .set_dictionary_page_offset(dictionary.map(|_| 0));
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: bytes,
            rows_written: values,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        group.append_column(&pages, close)?;
        // Nobody else holds them: the vector comes back as it was.
        let mut memory = Vec::from(pages);
        memory.clear();
        *self.written.inner_mut() = memory;
        Ok(())
    }
}

/// Values of a page: below [`PAGE`] bytes whatever the width of an index.
pub(crate) const VALUES: usize = PAGE / 4;

/// A page in plain encoding that is being filled.
pub(crate) struct Plain {
    /// Whether each value is there; `None`: the column has no nulls.
    there: Option<Vec<bool>>,
    values: Vec<u8>,
    count: usize,
}

impl Plain {
    pub(crate) fn new(nullable: bool) -> Self {
        Self { there: nullable.then(Vec::new), values: Vec::new(), count: 0 }
    }

    pub(crate) fn append(&mut self, value: Option<&[u8]>, with_length: bool) -> Result<()> {
        if let Some(there) = &mut self.there {
            there.push(value.is_some());
        }
        self.count += 1;
        if let Some(value) = value {
            if with_length {
                self.values.extend_from_slice(&length(value)?);
            }
            self.values.extend_from_slice(value);
        }
        Ok(())
    }

    /// Bytes of its values.
    pub(crate) fn held(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.values.len() >= PAGE || self.count >= VALUES
    }

    pub(crate) fn flush(&mut self, pages: &mut Pages, packer: &mut Packer) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let n = count(std::mem::take(&mut self.count))?;
        match &mut self.there {
            None => pages.data(&self.values, n, Encoding::PLAIN, packer)?,
            Some(there) => {
                let mut body = Vec::with_capacity(self.values.len() + 16);
                levels(there.drain(..), &mut body)?;
                body.extend_from_slice(&self.values);
                pages.data(&body, n, Encoding::PLAIN, packer)?;
            }
        }
        self.values.clear();
        Ok(())
    }
}

/// Definition levels, with their length before them.
pub(crate) fn levels(there: impl Iterator<Item = bool>, body: &mut Vec<u8>) -> Result<()> {
    let all: Vec<u32> = there.map(u32::from).collect();
    let mut encoded = Vec::new();
    runs::encode(&all, 1, &mut encoded);
    body.extend_from_slice(&length(&encoded)?);
    body.extend_from_slice(&encoded);
    Ok(())
}

pub(crate) fn length(bytes: &[u8]) -> Result<[u8; 4]> {
    u32::try_from(bytes.len()).map(u32::to_le_bytes).map_err(|_| too_much())
}

pub(crate) fn count(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| too_much())
}

pub(crate) fn too_much() -> ParquetError {
    ParquetError::General("a column with more than 4 GiB, or a value of that".to_owned())
}
