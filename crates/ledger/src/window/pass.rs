//! Reading rows in bounded memory: some days at a time, and of a large day only some of its calls.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use lastcall_contract::Digest;
use lastcall_event::Day;

use crate::entry::{Chunk, FileKind};
use crate::error::LedgerError;
use crate::index::{DayEntry, DayRow, for_each_day_batch};
use crate::ledger::{Ledger, PartitionChain};
use crate::results;
use crate::rows::ResultRow;

/// The calls that one pass over the rows holds in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Of these days.
    pub(crate) days: BTreeSet<Day>,
    /// Those whose key falls into this bucket,
    pub(crate) bucket: u32,
    /// of so many.
    pub(crate) buckets: u32,
}

impl Pass {
    /// Whether a call is held. Keys are parts of SHA-256: their first bits spread evenly.
    pub(crate) fn holds(&self, day: Day, key: &[u8]) -> bool {
        self.days.contains(&day) && (self.buckets == 1 || bucket_of(key, self.buckets) == self.bucket)
    }
}

/// The bucket of a key; buckets ascend with keys.
pub(crate) fn bucket_of(key: &[u8], buckets: u32) -> u32 {
    let first = key.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    u32::try_from((u128::from(first) * u128::from(buckets)) >> 64).unwrap_or(0)
}

/// Passes that hold no more than about `budget` rows each: whole days together, larger days in buckets.
pub(crate) fn passes(rows: &BTreeMap<Day, u64>, budget: u64) -> Vec<Pass> {
    let budget = budget.max(1);
    let mut out: Vec<Pass> = Vec::new();
    let mut held = 0u64;
    for (day, rows) in rows {
        if *rows > budget {
            let buckets = u32::try_from(rows.div_ceil(budget)).unwrap_or(u32::MAX);
            let days = BTreeSet::from([*day]);
            out.extend((0..buckets).map(|bucket| Pass { days: days.clone(), bucket, buckets }));
            held = u64::MAX; // the next day begins a pass of its own
            continue;
        }
        held = held.saturating_add(*rows);
        match out.last_mut().filter(|_| held <= budget) {
            Some(pass) => {
                pass.days.insert(*day);
            }
            None => {
                held = *rows;
                out.push(Pass { days: BTreeSet::from([*day]), bucket: 0, buckets: 1 });
            }
        }
    }
    out
}

/// A row with its place in a batch, and how often it stood there.
pub(crate) type PlacedRow = (usize, ResultRow, u64);

/// Who takes rows.
pub(crate) trait Rows {
    /// Whether rows of this epoch are wanted.
    fn wants(&self, epoch: &str) -> bool;
    /// Rows of this day, which were taken in before, come once more from its day file.
    fn reload(&mut self, epoch: &Digest, day: Day);
    /// One row, as often as it stood there.
    fn row(&mut self, source: &str, control: u64, row: &ResultRow, times: u64, again: bool);
    /// The same rows once more, as they stand in a batch of results columns; only who writes files wants them.
    ///
    /// # Errors
    /// They cannot be kept.
    fn batch(
        &mut self,
        _source: &str,
        _control: u64,
        _batch: &RecordBatch,
        _rows: Vec<PlacedRow>,
    ) -> Result<(), LedgerError> {
        Ok(())
    }
    /// Every row of the pass was given.
    fn end(&mut self, pass: &Pass) -> Result<(), LedgerError>;
    /// A chunk's results could not be read.
    fn failed(&mut self, chain: &PartitionChain, seq: u64, chunk: &Chunk, error: LedgerError);
    /// A chunk of which every row was given, with how many there were by epoch.
    fn chunk(&mut self, chain: &PartitionChain, seq: u64, chunk: &Chunk, found: &HashMap<Digest, u64>);
}

/// Takes a chunk: the chain's number, the chain, the entry's sequence number, the chunk.
pub(crate) type EachChunk<'a> =
    dyn FnMut(usize, &PartitionChain, u64, &Chunk) -> Result<(), LedgerError> + 'a;

/// Chunks that can be gone through several times, always in the same order.
pub(crate) trait Chunks {
    /// Calls `each` with every chunk that may hold rows of these days; `None`: with every chunk.
    ///
    /// # Errors
    /// An entry could not be read, or `each` said so.
    fn each(&mut self, days: Option<&BTreeSet<Day>>, each: &mut EachChunk<'_>) -> Result<(), LedgerError>;
}

impl Chunks for &[PartitionChain] {
    fn each(&mut self, _: Option<&BTreeSet<Day>>, each: &mut EachChunk<'_>) -> Result<(), LedgerError> {
        for (i, chain) in self.iter().enumerate() {
            chain.chunks().try_for_each(|(seq, chunk)| each(i, chain, seq, chunk))?;
        }
        Ok(())
    }
}

/// Rows that were found, by chunk: the epoch's number and how many. Small, since it is kept for every chunk.
type Found = HashMap<(usize, u64), Vec<(usize, u64)>>;

/// Gives every row of the chains' chunks, and of the day files that come once more, pass by pass.
pub(crate) fn read_rows(
    ledger: &Ledger,
    chains: &mut dyn Chunks,
    again: &[(String, DayEntry)],
    budget: u64,
    to: &mut dyn Rows,
) -> Result<(), LedgerError> {
    let mut rows: BTreeMap<Day, u64> = BTreeMap::new();
    for (_, entry) in again {
        to.reload(&entry.epoch, entry.day);
        *rows.entry(entry.day).or_default() += entry.files.iter().map(|f| f.rows).sum::<u64>();
    }
    chains.each(None, &mut |_, _, _, chunk| {
        for tally in chunk.tallies.iter().filter(|t| to.wants(t.epoch.as_str())) {
            *rows.entry(tally.day).or_default() += tally.counts.rows();
        }
        Ok(())
    })?;
    let mut epochs: Vec<Digest> = Vec::new();
    let mut found = Found::new();
    let mut failed: HashSet<(usize, u64)> = HashSet::new();
    for pass in passes(&rows, budget) {
        for (_, entry) in again.iter().filter(|(_, entry)| pass.days.contains(&entry.day)) {
            for_each_day_batch(ledger, entry, &mut |day, key| pass.holds(day, key), &mut |batch, rows| {
                give(to, batch, rows, true)
            })?;
        }
        chains.each(Some(&pass.days), &mut |i, chain, seq, chunk| {
            let wanted =
                chunk.tallies.iter().any(|t| pass.days.contains(&t.day) && to.wants(t.epoch.as_str()));
            if !wanted || failed.contains(&(i, seq)) {
                return Ok(());
            }
            let mut counts: HashMap<Digest, u64> = HashMap::new();
            if let Err(error) = read_chunk(ledger, chain, chunk, &pass, &mut counts, to) {
                failed.insert((i, seq));
                to.failed(chain, seq, chunk, error);
                return Ok(());
            }
            let kept = found.entry((i, seq)).or_default();
            for (epoch, n) in counts {
                let number = epochs.iter().position(|known| *known == epoch).unwrap_or_else(|| {
                    epochs.push(epoch);
                    epochs.len() - 1
                });
                match kept.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, sum)) => *sum += n,
                    None => kept.push((number, n)),
                }
            }
            Ok(())
        })?;
        to.end(&pass)?;
    }
    chains.each(None, &mut |i, chain, seq, chunk| {
        if !failed.contains(&(i, seq)) {
            let counts = found.get(&(i, seq)).into_iter().flatten();
            let counts = counts.filter_map(|(epoch, n)| Some((epochs.get(*epoch)?.clone(), *n)));
            to.chunk(chain, seq, chunk, &counts.collect());
        }
        Ok(())
    })
}

/// Gives every row of day files as if it came for the first time, and then the chains' chunks without their own results: for
/// an export, which has none. Rows that say the same stand there once, with how often they came.
pub(crate) fn read_days(
    ledger: &Ledger,
    chains: &mut dyn Chunks,
    days: &[DayEntry],
    budget: u64,
    to: &mut dyn Rows,
) -> Result<(), LedgerError> {
    let mut rows: BTreeMap<Day, u64> = BTreeMap::new();
    for entry in days {
        *rows.entry(entry.day).or_default() += entry.files.iter().map(|f| f.rows).sum::<u64>();
    }
    for pass in passes(&rows, budget) {
        for entry in days.iter().filter(|entry| pass.days.contains(&entry.day)) {
            for_each_day_batch(ledger, entry, &mut |day, key| pass.holds(day, key), &mut |batch, rows| {
                give(to, batch, rows, false)
            })?;
        }
        to.end(&pass)?;
    }
    chains.each(None, &mut |_, chain, seq, chunk| {
        let mut told: HashMap<Digest, u64> = HashMap::new();
        for tally in &chunk.tallies {
            *told.entry(tally.epoch.clone()).or_default() += tally.counts.rows();
        }
        to.chunk(chain, seq, chunk, &told);
        Ok(())
    })
}

/// Rows of a day file, by source and control entry.
fn give(
    to: &mut dyn Rows,
    batch: &RecordBatch,
    rows: Vec<(usize, DayRow)>,
    again: bool,
) -> Result<(), LedgerError> {
    let mut runs: BTreeMap<(String, u64), Vec<PlacedRow>> = BTreeMap::new();
    for (at, row) in rows {
        to.row(&row.source, row.control, &row.row, row.repeats, again);
        runs.entry((row.source, row.control)).or_default().push((at, row.row, row.repeats));
    }
    runs.into_iter().try_for_each(|((source, control), rows)| to.batch(&source, control, batch, rows))
}

fn read_chunk(
    ledger: &Ledger,
    chain: &PartitionChain,
    chunk: &Chunk,
    pass: &Pass,
    counts: &mut HashMap<Digest, u64>,
    to: &mut dyn Rows,
) -> Result<(), LedgerError> {
    // Epochs are few: counted by text, and parsed once.
    let mut seen: Vec<(String, u64)> = Vec::new();
    let wanted: Arc<HashSet<String>> = Arc::new(
        chunk.tallies.iter().map(|t| t.epoch.as_str()).filter(|e| to.wants(e)).map(str::to_owned).collect(),
    );
    // A chunk of which every row is held is read as it stands.
    let whole = pass.buckets == 1
        && chunk.tallies.iter().all(|t| pass.days.contains(&t.day) && wanted.contains(t.epoch.as_str()));
    for file in chunk.files.iter().filter(|f| f.kind == FileKind::Results) {
        let bytes = ledger.file(file)?;
        let hold = |pass: Pass, wanted: Arc<HashSet<String>>| {
            move |day: Day, key: &[u8], epoch: &str| pass.holds(day, key) && wanted.contains(epoch)
        };
        let filter: Option<results::Hold> = match whole {
            true => None,
            false => Some(Box::new(hold(pass.clone(), wanted.clone()))),
        };
        results::for_each_batch(&file.path, bytes, filter, |batch| {
            let mut rows = Vec::with_capacity(batch.num_rows());
            let hold = hold(pass.clone(), wanted.clone());
            results::picked(&file.path, batch, hold, |at, row| {
                match seen.iter_mut().find(|(epoch, _)| *epoch == row.epoch) {
                    Some((_, n)) => *n += 1,
                    None => seen.push((row.epoch.clone(), 1)),
                }
                to.row(&chain.source, chunk.control.seq, &row, 1, false);
                rows.push((at, row, 1));
                Ok(())
            })?;
            to.batch(&chain.source, chunk.control.seq, batch, rows)
        })?;
    }
    for (epoch, n) in seen {
        if let Some(epoch) = Digest::parse(&epoch) {
            *counts.entry(epoch).or_default() += n;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_held_by_one_pass() {
        let rows = BTreeMap::from([(Day(1), 10), (Day(2), 90), (Day(3), 5), (Day(4), 1000), (Day(5), 3)]);
        let passes = passes(&rows, 100);
        assert_eq!(passes.len(), 2 + 10 + 1, "{passes:?}");
        for day in rows.keys() {
            for key in 0..=255u8 {
                let key = [key, 7, 9, 0, 0, 0, 0, 0, 1];
                assert_eq!(passes.iter().filter(|p| p.holds(*day, &key)).count(), 1);
            }
        }
        assert_eq!(bucket_of(&[0xff; 16], 10), 9);
        assert_eq!(bucket_of(&[0; 16], 10), 0);
    }
}
