//! The results of a ledger, one after another, in bounded memory: compacted days first, then what is not folded yet.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use lastcall_event::Day;

use crate::error::LedgerError;
use crate::index::{DayEntry, each_day, for_each_day_row};
use crate::ledger::Ledger;
use crate::rows::ResultRow;
use crate::window::Record;

/// Which results are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this tool's.
    pub tool: Option<String>,
    /// Only of this UTC day and later ones.
    pub from: Option<Day>,
    /// Only of this UTC day and earlier ones.
    pub to: Option<Day>,
}

impl Filter {
    fn takes(&self, tool: &str, day: Day) -> bool {
        self.tool.as_deref().is_none_or(|wanted| wanted == tool)
            && self.from.is_none_or(|from| day >= from)
            && self.to.is_none_or(|to| day <= to)
    }
}

/// One result.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The row.
    pub row: &'a ResultRow,
    /// The source that brought it.
    pub source: &'a str,
    /// How many rows said the same of the call.
    pub repeats: u64,
    /// It is a planted or synthetic call, as far as days are compacted.
    pub planted: bool,
}

/// The newest revision of each day of a tool, ascending.
///
/// # Errors
/// The tool's daily facts are missing, altered or unreadable.
pub fn days(record: &Record, tool: &str) -> Result<Vec<DayEntry>, LedgerError> {
    let mut days = Vec::new();
    if let Some(facts) = record.facts_of(tool)? {
        each_day(&record.ledger, &facts, |entry, newest| days.extend(newest.then(|| entry.clone())), |_| {})?;
    }
    days.sort_by(|a, b| (a.day, &a.epoch).cmp(&(b.day, &b.epoch)));
    Ok(days)
}

/// The tools that have anything in the record, by name; in an export its tool alone.
pub fn tools(record: &Record) -> BTreeSet<String> {
    if let Some(mark) = record.ledger.export() {
        return BTreeSet::from([mark.tool.clone()]);
    }
    let mut tools: BTreeSet<String> = record.subjects().into_iter().map(|s| s.tool_id).collect();
    tools.extend(record.head.iter().flat_map(|head| head.entry.body.tools.keys().cloned()));
    for (_, chunk) in record.chains.iter().flat_map(|chain| chain.chunks()) {
        tools.extend(chunk.calls.iter().map(|c| c.tool.to_string()));
    }
    tools
}

/// Gives every result that is wanted to `each`, until it breaks: by tool, day, epoch and place, and behind them those that
/// are not folded, chain by chain. The same record gives the same order.
///
/// # Errors
/// Something is missing, altered or unreadable; the tool is not the one of an export.
pub fn each_result(
    ledger: &Ledger,
    filter: &Filter,
    each: &mut dyn FnMut(Shown<'_>) -> ControlFlow<()>,
) -> Result<(), LedgerError> {
    let record = Record::read(ledger.clone())?;
    let mut going = ControlFlow::Continue(());
    for tool in tools(&record) {
        for entry in days(&record, &tool)?.iter().filter(|entry| filter.takes(&tool, entry.day)) {
            for_each_day_row(ledger, entry, &mut |_, _| true, &mut |row| {
                if going.is_continue() {
                    let (source, repeats, planted) = (&row.source, row.repeats, row.planted);
                    going = each(Shown { row: &row.row, source, repeats, planted });
                }
            })?;
            if going.is_break() {
                return Ok(());
            }
        }
    }
    for chain in &record.chains {
        for (_, chunk) in chain.chunks() {
            if !chunk.tallies.iter().any(|t| filter.takes(&t.tool, t.day)) {
                continue;
            }
            ledger.for_each_result(chunk, |row| {
                if going.is_continue() && filter.takes(&row.tool_id, row.day) {
                    going = each(Shown { row: &row, source: &chain.source, repeats: 1, planted: false });
                }
            })?;
            if going.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}
