//! Earlier windows as the verdicts recorded in them say: for pages. No verdict rests on it.

use lastcall_decision::{History, PastWindow, Verdict, WindowInput};

use crate::state::Registration;
use crate::window::{Record, Subject};

/// Earlier windows that are read back, the newest ones.
const PAST: usize = 12;

impl Record {
    /// What a page shows beside the verdict on these facts. An earlier verdict that cannot be read is left out: whether
    /// the record is whole is for `verify` to say.
    pub fn history(&self, subject: &Subject, input: &WindowInput) -> History {
        let mut past = Vec::new();
        if let Some(now) = &subject.registration {
            let earlier = |r: &&Registration| {
                r.pair.tool_id == subject.tool_id && r.cohort == now.cohort && r.seq < now.seq
            };
            let windows: Vec<&Registration> = self.control.registrations.iter().filter(earlier).collect();
            let skipped = windows.len().saturating_sub(PAST);
            past.extend(windows.into_iter().skip(skipped).map(|r| PastWindow {
                registration: r.seq,
                ended_on: r.end.as_ref().map(|end| end.at.day()),
                last: self.last_verdict(r),
            }));
        }
        History { categories: input.daily_categories.clone(), past }
    }

    fn last_verdict(&self, r: &Registration) -> Option<Verdict> {
        let entry = self.control.verdicts.iter().rev().find(|v| v.registration == r.seq)?;
        let bytes = self.ledger.object(&entry.document).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}
