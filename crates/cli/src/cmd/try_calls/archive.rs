//! The archived calls of a ledger: those of one tool, as the chains name them.

use std::collections::HashSet;

use lastcall_ledger::entry::FileKind;
use lastcall_ledger::rows::CallRow;
use lastcall_ledger::window::PlantList;
use lastcall_ledger::{Ledger, LedgerError};

use super::left_out::LeftOut;

/// Gives each archived call of the tool once to `each`, with its place. Answers what was left out of them, and how many
/// calls are of other tools.
///
/// `current`: only calls under this contract, or under none. Files are read one at a time.
///
/// # Errors
/// A chain or a file is missing or altered, or a list of planted calls cannot be read.
pub fn for_each_call(
    ledger: &Ledger,
    tool: &str,
    current: Option<&str>,
    mut each: impl FnMut(&CallRow, &str),
) -> anyhow::Result<(LeftOut, u64)> {
    let (mut left, mut other_tools) = (LeftOut::default(), 0);
    let planted = planted(ledger, tool)?;
    let superseded = ledger.superseded()?;
    for chain in ledger.partitions()? {
        let source = chain.source.clone();
        for (_, chunk) in chain.chunks() {
            for file in chunk.files.iter().filter(|f| f.kind == FileKind::Calls) {
                let standing = superseded.standing(file)?;
                left.gone += standing.erased + standing.expired;
            }
            ledger.for_each_call(chunk, |row| {
                if row.tool_id != tool {
                    other_tools += 1;
                } else if planted.contains(&row.call_id) {
                    left.planted += 1;
                } else if left.takes_parts(
                    current,
                    row.contract_id.as_deref(),
                    Some(row.day),
                    &format!("{:032x}", u128::from_le_bytes(row.call_key)),
                ) {
                    if row.is_redacted() {
                        left.redacted += 1;
                        return;
                    }
                    let place = format!("{source}/{}@{}", row.position.partition, row.position.offset);
                    each(&row, &place);
                }
            })?;
        }
    }
    Ok((left, other_tools))
}

/// The ids of everything that was planted for a tool, whichever candidate it was for.
fn planted(ledger: &Ledger, tool: &str) -> anyhow::Result<HashSet<String>> {
    let control = ledger.control_now()?;
    let mut out = HashSet::new();
    for plant in control.plants.iter().filter(|p| p.tool_id == tool) {
        let list = PlantList::read(ledger, plant).map_err(|problem| anyhow::anyhow!("{}", problem.text))?;
        out.extend(list.calls.into_iter().map(|c| c.call_id));
    }
    Ok(out)
}

/// A ledger error, as it is told: with the ledger's place.
pub fn told(ledger: &Ledger, error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<LedgerError>() {
        Ok(error) => super::super::ledger::of_ledger(error),
        Err(error) => error.context(format!("the archive of {}", ledger.place())),
    }
}
