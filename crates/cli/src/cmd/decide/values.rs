//! The values at the examples' pointers, for `--show-values` alone. They are personal data: a recorded verdict and a
//! page never have them unless they were asked for.

use anyhow::Context as _;
use lastcall_decision::{Example, Verdict};
use lastcall_ledger::LedgerError;
use lastcall_ledger::position::Offset;
use lastcall_ledger::position::Partition;
use lastcall_ledger::rows::CallRow;
use lastcall_ledger::window::Record;
use serde_json::Value;

use super::super::ledger::of_ledger;

/// Longer values are cut.
const MAX_CHARS: usize = 200;

/// Reads the call of each category's example, and puts the value at its pointer beside it.
pub fn fill(record: &Record, verdict: &mut Verdict) -> anyhow::Result<()> {
    for category in &mut verdict.categories {
        let of_result = category.category.starts_with("out");
        category.example.value = Some(value(record, &category.example, of_result)?);
    }
    Ok(())
}

fn value(record: &Record, example: &Example, of_result: bool) -> anyhow::Result<String> {
    let place = &example.place;
    let partition = Partition(place.partition);
    let chunk = record.ledger.chunk_at(&place.source, partition, Offset(place.offset)).map_err(of_ledger)?;
    let Some(chunk) = chunk else { return Ok("(the call is not in this ledger)".to_owned()) };
    let mut found: Option<CallRow> = None;
    let read = record.ledger.for_each_call(&chunk, |row| {
        if row.position.offset == place.offset && row.position.index == place.index {
            found = Some(row);
        }
    });
    match read {
        Err(LedgerError::LeftBehind { .. }) => {
            return Ok("(left behind by the export; export --with-arguments keeps it)".to_owned());
        }
        read => read.map_err(of_ledger).with_context(|| {
            format!("the call at {}/{} offset {}", place.source, place.partition, place.offset)
        })?,
    };
    let Some(row) = found else { return Ok("(the call was erased, or its file expired)".to_owned()) };
    let call = row.decode().map_err(of_ledger)?;
    let text = match (of_result, &call.arguments_text) {
        (true, _) => call.outcome.result.get().unwrap_or_default(),
        (false, Some(text)) => text,
        (false, None) => call.arguments.get().unwrap_or_default(),
    };
    let document: Value = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(_) => return Ok("(not JSON)".to_owned()),
    };
    Ok(match document.pointer(&example.pointer) {
        Some(value) => shorten(&value.to_string()),
        None => "(absent)".to_owned(),
    })
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
