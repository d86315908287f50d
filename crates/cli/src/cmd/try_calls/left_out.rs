//! Which calls of a tool are not counted, and what is said of them: the same for a file, a folder and a ledger.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use lastcall_event::{CallRecord, Day, NO_TIME};

/// Call ids up to which repeats are told apart: beyond, memory counts more.
const MAX_KEYS: usize = 4_000_000;

/// What was left out of one tool's calls, and why.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Calls that name another contract than the current one.
    pub other_contract: u64,
    /// Repeats of a call id within a day, under the same contract.
    pub repeats: u64,
    /// Call ids that repeat.
    repeated_ids: u64,
    /// Planted faults and synthetic calls.
    pub planted: u64,
    /// Calls of which something that is compared was hidden before they were stored.
    pub redacted: u64,
    /// Calls of any tool that were erased or whose files expired.
    pub gone: u64,
    /// Calls too many to look for repeats of.
    unchecked: u64,
    /// A hash of contract, day and call id; whether it came again.
    seen: HashMap<u64, bool>,
    hasher: RandomState,
}

impl LeftOut {
    /// Whether this call counts: it names no other contract than `current`, and its id is not one that this day had
    /// already. A call without an id always is one of its own.
    pub fn takes(&mut self, current: Option<&str>, call: &CallRecord<'_>) -> bool {
        let day = (call.ts != NO_TIME).then(|| call.ts.day());
        self.takes_parts(current, call.contract_id.as_deref(), day, &call.call_id)
    }

    /// The same of a call that is not decoded yet.
    pub fn takes_parts(
        &mut self,
        current: Option<&str>,
        contract: Option<&str>,
        day: Option<Day>,
        call_id: &str,
    ) -> bool {
        if let (Some(current), Some(contract)) = (current, contract)
            && current != contract
            && !contract.ends_with(CallRecord::UNKNOWN_CONTRACT)
        {
            self.other_contract += 1;
            return false;
        }
        if call_id.is_empty() {
            return true;
        }
        // a call that names no contract is taken for one of the current
        let key = self.hasher.hash_one((contract.or(current), day.map(|d| d.0), call_id));
        if let Some(again) = self.seen.get_mut(&key) {
            self.repeated_ids += u64::from(!std::mem::replace(again, true));
            self.repeats += 1;
            return false;
        }
        if self.seen.len() < MAX_KEYS {
            self.seen.insert(key, false);
        } else {
            self.unchecked += 1;
        }
        true
    }

    /// One sentence for each that is not zero.
    pub fn notes(&self, current: Option<&str>) -> Vec<String> {
        let current = current.unwrap_or_default();
        let calls = |n: u64, one: &str, more: &str| match n {
            1 => format!("1 call {one}"),
            n => format!("{n} calls {more}"),
        };
        let mut out = Vec::new();
        if self.other_contract > 0 {
            let what = calls(self.other_contract, "names", "name");
            let verb = if self.other_contract == 1 { "was" } else { "were" };
            out.push(format!("{what} another contract than {current} and {verb} left out"));
        }
        match (self.repeats, self.repeated_ids) {
            (0, _) => {}
            (1, _) => out.push("1 repeat of a call id was left out".to_owned()),
            (n, 1) => out.push(format!("{n} repeats of one call id were left out")),
            (n, ids) => out.push(format!("{n} repeats of {ids} call ids were left out")),
        }
        if self.planted > 0 {
            let (n, what) = (self.planted, if self.planted == 1 { "call was" } else { "calls were" });
            out.push(format!("{n} planted {what} left out"));
        }
        if self.redacted > 0 {
            let what = calls(self.redacted, "was", "were");
            out.push(format!("{what} left out: the source's redaction hides what would be compared"));
        }
        if self.gone > 0 {
            let what = calls(
                self.gone,
                "of this ledger, of whichever tool, is",
                "of this ledger, of whichever tool, are",
            );
            out.push(format!("{what} erased or expired and could not be tried"));
        }
        if self.unchecked > 0 {
            let what = calls(self.unchecked, "was", "were");
            out.push(format!("{what} not checked for repeats, since there are so many"));
        }
        out
    }
}
