//! Columns that rows are written into without an Arrow array between: half of what a run spent on its files went into
//! building those, hashing every value again, and allocating both anew for every batch.

use ahash::AHashMap as HashMap;
use arrow_array::ArrayRef;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnDescPtr;

use crate::files::{Gather, Shape};
use crate::pages::{Packer, Pages, Plain, VALUES, count, length, levels, too_much, zstd};
use crate::runs;

/// The row group of a file that grows in memory.
pub(crate) type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// A column that holds its own rows.
pub(crate) trait Direct: Send {
    /// Bytes held in memory, about.
    fn held(&self) -> usize;

    /// Appends the rows to a row group; the column is empty afterwards, and keeps its memory.
    fn append_to(
        &mut self,
        group: &mut Group<'_>,
        column: ColumnDescPtr,
        shape: Shape,
        packer: &mut Packer,
    ) -> Result<()>;
}

macro_rules! gather {
    ($($column:ident)*) => {
        $(impl Gather for $column {
            fn batch(&mut self) -> Option<ArrayRef> {
                None
            }
            fn own(&mut self) -> Option<&mut dyn Direct> {
                Some(self)
            }
        })*
    };
}
gather!(Few Texts Hashes);

/// A dictionary of more bytes is written out, value by value.
const DICTIONARY: usize = 1 << 20;
/// In place of an index: null.
const NULL: u32 = u32::MAX;

/// A column of few distinct texts or 32-bit integers: a dictionary and indices into it.
pub(crate) struct Few {
    integers: bool,
    /// The distinct values in plain encoding, and where each ends.
    dictionary: Vec<u8>,
    ends: Vec<usize>,
    known: HashMap<Box<[u8]>, u32>,
    /// One a row.
    indices: Vec<u32>,
    last: u32,
}

impl Few {
    fn new(integers: bool) -> Self {
        Self {
            integers,
            dictionary: Vec::new(),
            ends: Vec::new(),
            known: HashMap::new(),
            indices: Vec::new(),
            last: NULL,
        }
    }

    /// Of texts.
    pub(crate) fn texts() -> Self {
        Self::new(false)
    }

    /// Of 32-bit integers.
    pub(crate) fn integers() -> Self {
        Self::new(true)
    }

    fn prefix(&self) -> usize {
        if self.integers { 0 } else { 4 }
    }

    /// The value at an index, without its length.
    fn value(&self, index: u32) -> Option<&[u8]> {
        let at = index as usize;
        let begin = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.dictionary.get(begin + self.prefix()..*self.ends.get(at)?)
    }

    /// Adds the value at an index, as [`Self::last`] told it.
    pub(crate) fn append_known(&mut self, index: u32) {
        self.last = index;
        self.indices.push(index);
    }

    /// The index of the value that was added last.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    fn append(&mut self, value: &[u8]) -> Result<()> {
        if self.value(self.last) != Some(value) {
            self.last = match self.known.get(value) {
                Some(index) => *index,
                None => self.learn(value)?,
            };
        }
        self.indices.push(self.last);
        Ok(())
    }

    fn learn(&mut self, value: &[u8]) -> Result<u32> {
        let index = u32::try_from(self.ends.len()).map_err(|_| too_much())?;
        if !self.integers {
            self.dictionary.extend_from_slice(&length(value)?);
        }
        self.dictionary.extend_from_slice(value);
        self.ends.push(self.dictionary.len());
        self.known.insert(value.into(), index);
        Ok(index)
    }

    /// Adds a text.
    pub(crate) fn append_value(&mut self, text: &str) -> Result<()> {
        self.append(text.as_bytes())
    }

    /// Adds a text or null.
    pub(crate) fn append_option(&mut self, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) => self.append(text.as_bytes()),
            None => {
                self.indices.push(NULL);
                Ok(())
            }
        }
    }

    /// Adds an integer.
    pub(crate) fn append_integer(&mut self, n: i32) -> Result<()> {
        self.append(&n.to_le_bytes())
    }

    /// The least and the largest value.
    fn statistics(&self) -> Statistics {
        let nulls = Some(self.indices.iter().filter(|index| **index == NULL).count() as u64);
        let values = || (0..self.ends.len()).filter_map(|index| self.value(index as u32));
        if self.integers {
            let numbers = || values().filter_map(|v| v.try_into().ok()).map(i32::from_le_bytes);
            return Statistics::int32(numbers().min(), numbers().max(), None, nulls, false);
        }
        let owned = |value: Option<&[u8]>| value.map(|v| ByteArray::from(v.to_vec()));
        Statistics::byte_array(owned(values().min()), owned(values().max()), None, nulls, false)
    }

    /// The indices, page by page.
    fn write_indices(&self, nullable: bool, pages: &mut Pages, packer: &mut Packer) -> Result<()> {
        pages.dictionary(&self.dictionary, count(self.ends.len())?, packer)?;
        let width = runs::width(self.ends.len());
        let mut body = Vec::new();
        for indices in self.indices.chunks(VALUES) {
            body.clear();
            if nullable {
                levels(indices.iter().map(|index| *index != NULL), &mut body)?;
            }
            body.push(width);
            if indices.contains(&NULL) {
                let there: Vec<u32> = indices.iter().copied().filter(|index| *index != NULL).collect();
                runs::encode(&there, width, &mut body);
            } else {
                runs::encode(indices, width, &mut body);
            }
            pages.data(&body, count(indices.len())?, Encoding::RLE_DICTIONARY, packer)?;
        }
        Ok(())
    }

    /// Every value itself, for a column that turned out to have many.
    fn write_values(&self, nullable: bool, pages: &mut Pages, packer: &mut Packer) -> Result<()> {
        let mut page = Plain::new(nullable);
        for index in &self.indices {
            page.append(self.value(*index), self.prefix() > 0)?;
            if page.is_full() {
                page.flush(pages, packer)?;
            }
        }
        page.flush(pages, packer)
    }
}

impl Direct for Few {
    fn held(&self) -> usize {
        2 * self.dictionary.len() + self.indices.len() * 4
    }

    fn append_to(
        &mut self,
        group: &mut Group<'_>,
        column: ColumnDescPtr,
        shape: Shape,
        packer: &mut Packer,
    ) -> Result<()> {
        let mut pages = Pages::new(zstd());
        let nullable = column.max_def_level() > 0;
        if self.dictionary.len() > DICTIONARY {
            self.write_values(nullable, &mut pages, packer)?;
        } else {
            self.write_indices(nullable, &mut pages, packer)?;
        }
        let statistics = (shape == Shape::Filter).then(|| self.statistics());
        self.dictionary.clear();
        self.ends.clear();
        self.known.clear();
        self.indices.clear();
        self.last = NULL;
        pages.append_to(group, column, statistics)
    }
}

/// A column of texts: ids, or whole records. Each is copied once, into a page that is compressed when it is full.
pub(crate) struct Texts {
    page: Plain,
    pages: Pages,
    packer: Packer,
}

impl Texts {
    fn with(nullable: bool) -> Self {
        let pages = Pages::new(Compression::LZ4_RAW);
        Self { page: Plain::new(nullable), pages, packer: Packer::default() }
    }

    /// None of them null.
    pub(crate) fn new() -> Self {
        Self::with(false)
    }

    /// Some of them null.
    pub(crate) fn nullable() -> Self {
        Self::with(true)
    }

    /// Adds a text.
    pub(crate) fn append_value(&mut self, text: &str) -> Result<()> {
        self.append_option(Some(text))
    }

    /// Adds a text or null.
    pub(crate) fn append_option(&mut self, text: Option<&str>) -> Result<()> {
        self.page.append(text.map(str::as_bytes), true)?;
        if self.page.is_full() { self.page.flush(&mut self.pages, &mut self.packer) } else { Ok(()) }
    }
}

impl Direct for Texts {
    fn held(&self) -> usize {
        self.page.held() + self.pages.held()
    }

    fn append_to(
        &mut self,
        group: &mut Group<'_>,
        column: ColumnDescPtr,
        _: Shape,
        _: &mut Packer,
    ) -> Result<()> {
        self.page.flush(&mut self.pages, &mut self.packer)?;
        self.pages.append_to(group, column, None)
    }
}

/// A column of hashes: so many random bytes a row, not compressed.
pub(crate) struct Hashes {
    page: Plain,
    pages: Pages,
}

impl Hashes {
    fn with(nullable: bool) -> Self {
        Self { page: Plain::new(nullable), pages: Pages::new(Compression::UNCOMPRESSED) }
    }

    /// None of them null.
    pub(crate) fn new() -> Self {
        Self::with(false)
    }

    /// Some of them null.
    pub(crate) fn nullable() -> Self {
        Self::with(true)
    }

    /// Adds a hash, of the column's length.
    pub(crate) fn append_value(&mut self, hash: &[u8]) -> Result<()> {
        self.append_option(Some(hash))
    }

    /// Adds a hash or null.
    pub(crate) fn append_option(&mut self, hash: Option<&[u8]>) -> Result<()> {
        self.page.append(hash, false)?;
        if self.page.is_full() { self.page.flush(&mut self.pages, &mut Packer::default()) } else { Ok(()) }
    }
}

impl Direct for Hashes {
    fn held(&self) -> usize {
        self.page.held() + self.pages.held()
    }

    fn append_to(
        &mut self,
        group: &mut Group<'_>,
        column: ColumnDescPtr,
        _: Shape,
        packer: &mut Packer,
    ) -> Result<()> {
        self.page.flush(&mut self.pages, packer)?;
        self.pages.append_to(group, column, None)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
