//! The index chain: that it joins and never falls, and everything that its entries name.

use lastcall_contract::Digest;

use super::recount::Recount;
use super::references::By;
use super::{Outcome, Verifier};
use crate::chain::Read;
use crate::control::Entry;
use crate::error::LedgerError;
use crate::index::{DayEntry, IndexBody, each_day, read_day_file, read_facts};
use crate::names::{self, Chain};

impl Verifier<'_> {
    /// The index chain's tail; which control entry its newest entry names is remembered.
    pub(super) fn index_bound(&mut self) -> Result<Option<u64>, LedgerError> {
        let bound = self.bound(&Chain::Index)?;
        if let Some(seq) = bound
            && let Some(bytes) = self.ledger.store().get(&Chain::Index.entry_path(seq))?
            && let Ok(entry) = serde_json::from_slice::<Entry<IndexBody>>(&bytes)
        {
            self.control.index_tail = Some(entry.body.control.tail.seq);
        }
        Ok(bound)
    }

    /// Every entry of the index chain, and what it names.
    pub(super) fn index_chain(&mut self, bound: Option<u64>) -> Result<(), LedgerError> {
        let mut before: Option<Read<IndexBody>> = None;
        self.stream::<IndexBody>(&Chain::Index, bound, &mut |this, seq, read| {
            let path = Chain::Index.entry_path(seq);
            let Some(mut read) = read else {
                before = None;
                return Ok(());
            };
            match read.entry.body.known(seq) {
                Ok(body) => read.entry.body = body,
                Err(error) => {
                    before = None;
                    return this.find_error(&path, Some(format!("index entry {seq}")), error);
                }
            }
            let body = &read.entry.body;
            if let Some(chain) = before.as_ref().and_then(|b| body.falls_behind(&b.entry.body)) {
                let what = format!("the tail of chain {chain} falls");
                this.find(Outcome::Altered, &path, Some(format!("index entry {seq}")), what);
            }
            for (chain, tail) in body.tails() {
                this.refer(chain, tail.seq, tail.digest, By::Index(seq));
            }
            for at in &body.partitions {
                if let Some(folded) = &at.folded {
                    this.refer(at.chain(), folded.tail.seq, folded.tail.digest.clone(), By::Index(seq));
                }
            }
            this.is_head(seq, &read.digest);
            this.signature(seq, &read)?;
            this.index_entry(seq, body)?;
            before = Some(read);
            Ok(())
        })?;
        self.signatures(bound)?;
        let newest = before.filter(|read| Some(read.entry.seq) == bound);
        if let Some(newest) = newest
            && let Some(control) = self.control.at_index.take()
        {
            let folded = newest.entry.body.partitions.iter().filter_map(|p| p.folded.as_ref());
            self.total += folded.map(|folded| folded.tail.seq.saturating_add(1)).sum::<u64>();
            self.recount = Some(Recount::new(newest, control, self.ledger.meta().clock));
        }
        Ok(())
    }

    /// The objects and day files that one entry names.
    fn index_entry(&mut self, seq: u64, body: &IndexBody) -> Result<(), LedgerError> {
        let named = || format!("named by index entry {seq}");
        self.object(&body.control.state, named)?;
        for (tool, at) in &body.tools {
            let Some(digest) = &at.facts else { continue };
            if self.object(digest, named)?.is_none() {
                continue;
            }
            if let Err(error) = self.facts(seq, digest, tool) {
                self.find_error(&names::object_path(digest), Some(named()), error)?;
            }
        }
        Ok(())
    }

    /// The day files that a tool's daily facts name, old revisions too.
    fn facts(&mut self, seq: u64, digest: &Digest, tool: &str) -> Result<(), LedgerError> {
        let facts = read_facts(self.ledger, digest, tool)?;
        let mut days: Vec<DayEntry> = Vec::new();
        let mut objects: Vec<Digest> = Vec::new();
        // What is older and was looked at already is named by the entry before this one.
        let known = |object: &Digest| self.objects.contains(object);
        let older = facts.previous.as_ref().filter(|older| !known(&older.digest)).is_some();
        match older {
            true => each_day(
                self.ledger,
                &facts,
                |entry, _| days.push(entry.clone()),
                |object| objects.push(object.clone()),
            )?,
            false => days.clone_from(&facts.days),
        }
        for object in objects {
            self.object(&object, || format!("named by index entry {seq}"))?;
        }
        for file in days.iter().flat_map(|entry| &entry.files) {
            if self.day_files.get(&file.path).is_some_and(|known| *known == file.sha256) {
                continue;
            }
            self.day_files.insert(file.path.clone(), file.sha256.clone());
            self.tell(&file.path);
            self.report.files += 1;
            let record = Some(format!("named by index entry {seq}"));
            match read_day_file(self.ledger, file) {
                Ok(rows) if rows == file.rows => {
                    self.report.rows += rows;
                    self.report.bytes += file.bytes;
                }
                Ok(rows) => {
                    let what = format!("it has {rows} rows, the daily facts say {}", file.rows);
                    self.find(Outcome::Altered, &file.path, record, what);
                }
                Err(error) => self.find_error(&file.path, record, error)?,
            }
        }
        Ok(())
    }
}
