//! A data file without some of its rows: every other row keeps its bytes, its place and its salt.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::{Array, BinaryArray, BooleanArray, StringArray};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::select::{Finder, Selection};
use crate::entry::FileKind;
use crate::error::LedgerError;
use crate::files::{self, FileBytes, Output, Shape};
use crate::{calls, dead};

const ROWS: usize = 4096;

/// What a file becomes without the rows that were picked.
pub(crate) struct Rewritten {
    /// The file; `None`: no row is left.
    pub file: Option<FileBytes>,
    /// Rows that are not in it.
    pub erased: u64,
    /// The same by tool, of a calls file.
    pub tools: BTreeMap<String, u64>,
}

/// Which rows of a file are picked.
pub(crate) struct Picker<'a> {
    selection: &'a Selection,
    finder: Finder,
}

impl<'a> Picker<'a> {
    pub(crate) fn new(selection: &'a Selection) -> Result<Self, LedgerError> {
        Ok(Self { selection, finder: Finder::new(selection.ids())? })
    }

    /// Looks for these call ids in raw bytes too: those of the calls that are picked.
    pub(crate) fn look_for(&mut self, call_ids: &BTreeSet<String>) -> Result<(), LedgerError> {
        let ids = self.selection.ids().chain(call_ids.iter().map(String::as_str));
        self.finder = Finder::new(ids)?;
        Ok(())
    }

    /// Whether raw bytes name one of the ids.
    pub(crate) fn finds(&self, bytes: &[u8]) -> bool {
        self.finder.finds(bytes)
    }

    /// How many rows of a file are picked; `each` is told the call ids of those of a calls file. Reads only the columns
    /// that say so.
    pub(crate) fn count(
        &self,
        kind: FileKind,
        path: &str,
        bytes: Bytes,
        each: &mut dyn FnMut(&str),
    ) -> Result<u64, LedgerError> {
        let fail = |e: &dyn std::fmt::Display| LedgerError::unreadable(path, e);
        let columns: &[&str] = match kind {
            FileKind::Calls => &["call_id", "agent_id", "session_id", "run_id", "trace_id"],
            FileKind::Dead => &["bytes"],
            FileKind::Results => return Ok(0),
        };
        let open = || {
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)?;
            let mask = ProjectionMask::columns(reader.parquet_schema(), columns.iter().copied());
            reader.with_projection(mask).with_batch_size(ROWS).build()
        };
        let mut reader = files::calmly(path, open)?.map_err(|e| fail(&e))?;
        let mut picked = 0;
        while let Some(batch) = files::calmly(path, || reader.next())? {
            let batch = batch.map_err(|e| fail(&e))?;
            let keep = self.keep(kind, path, &batch)?;
            picked += keep.false_count() as u64;
            if kind == FileKind::Calls {
                let ids: &StringArray = files::column(path, &batch, "call_id")?;
                (0..keep.len()).filter(|row| !keep.value(*row)).for_each(|row| each(ids.value(row)));
            }
        }
        Ok(picked)
    }

    /// The file without the rows that are picked.
    pub(crate) fn rewrite(&self, kind: FileKind, path: &str, bytes: Bytes) -> Result<Rewritten, LedgerError> {
        let (schema, shapes): (SchemaRef, &[(&'static str, Shape)]) = match kind {
            FileKind::Calls => (calls::Columns::schema(), calls::Columns::SHAPES),
            FileKind::Dead => (dead::Columns::schema(), dead::Columns::SHAPES),
            FileKind::Results => return Err(LedgerError::unreadable(path, "results are never rewritten")),
        };
        let mut output = Output::new(Arc::clone(&schema), files::properties(shapes));
        let (mut erased, mut tools) = (0, BTreeMap::new());
        files::for_each_batch(path, bytes, &schema, |batch| {
            let keep = self.keep(kind, path, batch)?;
            erased += keep.false_count() as u64;
            if kind == FileKind::Calls && keep.false_count() > 0 {
                let tool: &StringArray = files::column(path, batch, "tool_id")?;
                for row in (0..keep.len()).filter(|row| !keep.value(*row)) {
                    *tools.entry(tool.value(row).to_owned()).or_default() += 1;
                }
            }
            let kept = filter_record_batch(batch, &keep).map_err(|e| LedgerError::unreadable(path, e))?;
            if kept.num_rows() > 0 { output.write(kept.columns()) } else { Ok(()) }
        })?;
        Ok(Rewritten { file: output.finish()?, erased, tools })
    }

    fn keep(
        &self,
        kind: FileKind,
        path: &str,
        batch: &arrow_array::RecordBatch,
    ) -> Result<BooleanArray, LedgerError> {
        if kind == FileKind::Dead {
            let bytes: &BinaryArray = files::column(path, batch, "bytes")?;
            return Ok((0..batch.num_rows()).map(|row| Some(!self.finder.finds(bytes.value(row)))).collect());
        }
        let strings = |name: &str| files::column::<StringArray>(path, batch, name);
        let (call_id, agent) = (strings("call_id")?, strings("agent_id")?);
        let units = [strings("session_id")?, strings("run_id")?, strings("trace_id")?];
        let keep = |row: usize| {
            let unit = units.iter().find(|column| column.is_valid(row)).map(|column| column.value(row));
            let agent = agent.is_valid(row).then(|| agent.value(row));
            Some(!self.selection.picks(call_id.value(row), unit, agent))
        };
        Ok((0..batch.num_rows()).map(keep).collect())
    }
}
