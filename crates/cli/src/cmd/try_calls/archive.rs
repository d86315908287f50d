//! The archived calls of a ledger: those of one tool, as the chains name them.

use std::collections::HashSet;

use lastcall_ledger::entry::FileKind;
use lastcall_ledger::rows::CallRow;
use lastcall_ledger::window::PlantList;
use lastcall_ledger::{Ledger, LedgerError};

/// Call ids up to which repeats are told apart: beyond, memory counts more.
const MAX_KEYS: usize = 4_000_000;

/// What was left out, and why.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeftOut {
    /// Calls of other tools.
    pub other_tools: u64,
    /// Calls that name another contract than the current one.
    pub other_contract: u64,
    /// Repeats of a call id.
    pub repeats: u64,
    /// Planted faults and synthetic calls.
    pub planted: u64,
    /// Calls too many to look for repeats of.
    pub unchecked: u64,
    /// Calls of which something that is compared was hidden before they were stored.
    pub redacted: u64,
    /// Calls of any tool that were erased or whose files expired.
    pub gone: u64,
}

/// Gives each archived call of the tool once to `each`, with its place.
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
) -> anyhow::Result<LeftOut> {
    let mut left = LeftOut::default();
    let planted = planted(ledger, tool)?;
    let superseded = ledger.superseded()?;
    let mut seen: HashSet<u64> = HashSet::new();
    for chain in ledger.partitions()? {
        let source = chain.source.clone();
        for (_, chunk) in chain.chunks() {
            for file in chunk.files.iter().filter(|f| f.kind == FileKind::Calls) {
                let standing = superseded.standing(file)?;
                left.gone += standing.erased + standing.expired;
            }
            ledger.for_each_call(chunk, |row| {
                let key = u64::from_le_bytes(row.call_key.first_chunk().copied().unwrap_or_default());
                if row.tool_id != tool {
                    left.other_tools += 1;
                } else if planted.contains(&row.call_id) {
                    left.planted += 1;
                } else if current.is_some()
                    && row.contract_id.is_some()
                    && row.contract_id.as_deref() != current
                {
                    left.other_contract += 1;
                } else if seen.contains(&key) {
                    left.repeats += 1;
                } else {
                    if seen.len() < MAX_KEYS {
                        seen.insert(key);
                    } else {
                        left.unchecked += 1;
                    }
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
    Ok(left)
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

impl LeftOut {
    /// One sentence for each that is not zero.
    pub fn notes(&self, current: Option<&str>) -> Vec<String> {
        let current = current.unwrap_or_default();
        let all = [
            (self.other_contract, format!("calls name another contract than {current} and were left out")),
            (self.repeats, "repeats of a call id were left out".to_owned()),
            (self.planted, "planted calls were left out".to_owned()),
            (
                self.redacted,
                "calls were left out: the source's redaction hides what would be compared".to_owned(),
            ),
            (
                self.gone,
                "calls of this ledger, of whichever tool, are erased or expired and could not be tried"
                    .to_owned(),
            ),
            (self.unchecked, "calls could not be checked for repeats, since there are so many".to_owned()),
        ];
        all.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
    }
}

/// A ledger error, as it is told: with the ledger's place.
pub fn told(ledger: &Ledger, error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<LedgerError>() {
        Ok(error) => super::super::ledger::of_ledger(error),
        Err(error) => error.context(format!("the archive of {}", ledger.place())),
    }
}
