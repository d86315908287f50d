//! Where a chain is cut when it is folded, and what stands on either side.

use std::collections::{BTreeMap, BTreeSet};

use lastcall_event::Day;

use crate::chain::Read;
use crate::days::PartitionDays;
use crate::entry::{Chunk, PartitionBody};
use crate::error::LedgerError;
use crate::index::OpenDay;
use crate::index::groups::PlantedKeys;
use crate::ledger::{LedgerClock, PartitionChain};
use crate::state::ControlState;
use crate::window::{PlantList, Record};

/// The keys of every planted call of these tools.
pub(crate) fn planted(record: &Record, tools: &BTreeSet<&str>) -> Result<PlantedKeys, LedgerError> {
    let mut keys = PlantedKeys::new();
    for plant in record.control.plants.iter().filter(|p| tools.contains(p.tool_id.as_str())) {
        let list = PlantList::read(&record.ledger, plant).map_err(|problem| {
            LedgerError::unreadable(&crate::names::object_path(&plant.list), problem.text)
        })?;
        let of_tool = keys.entry(plant.tool_id.clone()).or_default();
        for call in list.expectations(plant.seq) {
            let first = of_tool.entry(call.call_key).or_insert(plant.seq);
            *first = (*first).min(plant.seq);
        }
    }
    Ok(keys)
}

pub(crate) fn days_of(chain: &PartitionChain, control: &ControlState, clock: LedgerClock) -> PartitionDays {
    let lateness = control.sources.get(&chain.source).map_or(0, |source| source.lateness_ms);
    PartitionDays::new(chain, lateness, clock)
}

/// How many of a chain's entries are folded: those up to the first of which a day is open, unless many stand behind it.
pub(crate) fn cut(
    chain: &PartitionChain,
    control: &ControlState,
    clock: LedgerClock,
    behind: usize,
) -> usize {
    let closed = days_of(chain, control, clock).closed_through();
    let total = chain.entries.len();
    let stays = |(at, read): &(usize, &Read<PartitionBody>)| {
        let open = |chunk: &Chunk| {
            let calls = chunk.calls.iter().map(|c| c.day);
            calls.chain(chunk.tallies.iter().map(|t| t.day)).any(|day| closed.is_none_or(|c| day > c))
        };
        total - at <= behind && read.entry.body.chunk().is_some_and(open)
    };
    chain.entries.iter().enumerate().find(stays).map_or(total, |(at, _)| at)
}

/// Days on which calls lie that these entries hold.
pub(crate) fn open_days<'a>(entries: impl Iterator<Item = &'a Read<PartitionBody>>) -> Vec<OpenDay> {
    let mut open: BTreeMap<Day, (u64, u64)> = BTreeMap::new();
    for chunk in entries.filter_map(|read| read.entry.body.chunk()) {
        let mut days: BTreeMap<Day, u64> = BTreeMap::new();
        chunk.calls.iter().for_each(|c| *days.entry(c.day).or_default() += c.calls);
        for (day, calls) in days {
            let sum = open.entry(day).or_default();
            *sum = (sum.0 + calls, sum.1 + 1);
        }
    }
    open.into_iter().map(|(day, (calls, entries))| OpenDay { day, calls, entries }).collect()
}

/// The last day of which chunks say something, by tool; and the last on which calls of unknown tools were lost.
pub(crate) fn newest_days<'a>(
    chunks: impl Iterator<Item = &'a Chunk>,
) -> (BTreeMap<String, Day>, Option<Day>) {
    let mut tools: BTreeMap<String, Day> = BTreeMap::new();
    let mut lost = None;
    let mut add = |tool: &str, day: Day| match tools.get_mut(tool) {
        Some(newest) => *newest = (*newest).max(day),
        None => {
            tools.insert(tool.to_owned(), day);
        }
    };
    for chunk in chunks {
        chunk.calls.iter().for_each(|c| add(&c.tool, c.day));
        chunk.tallies.iter().for_each(|t| add(&t.tool, t.day));
        chunk.coverage.iter().for_each(|c| add(&c.tool, c.hour.day()));
        for loss in &chunk.losses {
            match (loss.tool.as_deref(), loss.days().next_back()) {
                (Some(tool), Some(day)) => add(tool, day),
                (None, day) => lost = lost.max(day),
                _ => {}
            }
        }
    }
    (tools, lost)
}
