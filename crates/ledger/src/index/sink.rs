//! Takes every row: into the windows, and into day files.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use lastcall_contract::Digest;
use lastcall_event::Day;

use crate::entry::Chunk;
use crate::error::LedgerError;
use crate::index::groups::Groups;
use crate::ledger::PartitionChain;
use crate::rows::ResultRow;
use crate::window::{Pass, PlacedRow, Rows, Windows};

/// Takes every row.
pub(crate) struct Compactor<'a, 'b> {
    windows: Windows<'a>,
    groups: Groups<'b>,
    failed: Option<LedgerError>,
}

impl<'a, 'b> Compactor<'a, 'b> {
    pub(crate) fn new(windows: Windows<'a>, groups: Groups<'b>) -> Self {
        Self { windows, groups, failed: None }
    }

    /// What came of it.
    ///
    /// # Errors
    /// A chunk's results could not be read, or are not those that its entry counts.
    pub(crate) fn done(self) -> Result<(Windows<'a>, Groups<'b>), LedgerError> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok((self.windows, self.groups)),
        }
    }
}

impl Rows for Compactor<'_, '_> {
    fn wants(&self, _: &str) -> bool {
        true
    }

    fn reload(&mut self, epoch: &Digest, day: Day) {
        self.windows.reload(epoch, day);
    }

    fn row(&mut self, source: &str, control: u64, row: &ResultRow, times: u64, again: bool) {
        self.windows.row(source, control, row, times, again);
    }

    fn batch(
        &mut self,
        source: &str,
        control: u64,
        batch: &RecordBatch,
        rows: Vec<PlacedRow>,
    ) -> Result<(), LedgerError> {
        self.groups.take(source, control, batch, rows)
    }

    fn end(&mut self, pass: &Pass) -> Result<(), LedgerError> {
        self.windows.end(pass)?;
        self.groups.end(pass)
    }

    fn failed(&mut self, _: &PartitionChain, _: u64, _: &Chunk, error: LedgerError) {
        self.failed.get_or_insert(error);
    }

    fn chunk(&mut self, chain: &PartitionChain, seq: u64, chunk: &Chunk, found: &HashMap<Digest, u64>) {
        let mut told: HashMap<&Digest, u64> = HashMap::new();
        for tally in &chunk.tallies {
            *told.entry(&tally.epoch).or_default() += tally.counts.rows();
        }
        let differs = told.iter().any(|(epoch, n)| found.get(*epoch).copied().unwrap_or(0) != *n);
        if differs {
            let place = chain.chain().entry_path(seq);
            self.failed
                .get_or_insert(LedgerError::altered(&place, "it counts other results than its file has"));
        }
        self.windows.chunk(chain, seq, chunk, found);
    }
}
