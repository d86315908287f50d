//! The control chain: what it folds to, which objects it names, what its verdicts rest on.

use std::collections::{BTreeMap, HashMap, HashSet};

use lastcall_contract::Digest;
use lastcall_event::{Day, Timestamp};
use serde::Deserialize;

use super::references::By;
use super::{Outcome, Verifier, length};
use crate::chain::Read;
use crate::control::Control;
use crate::error::LedgerError;
use crate::export::held::objects_of;
use crate::names::{self, Chain};
use crate::state::ControlState;

/// How many entries are kept before they are folded.
const FOLD: usize = 256;

/// What is kept of the control chain.
#[derive(Default)]
pub(super) struct Seen {
    /// Digest and time of every entry.
    entries: HashMap<u64, (Digest, Timestamp)>,
    /// How many places were read.
    read: u64,
    /// What they fold to.
    pub(super) state: ControlState,
    /// The control entry that the newest index entry names as its tail.
    pub(super) index_tail: Option<u64>,
    /// What the entries up to there fold to.
    pub(super) at_index: Option<ControlState>,
    /// Entries of which it was said that others name them wrongly.
    pub(super) complained: HashSet<u64>,
    /// By source: how many partitions had their tails fixed, and how many entries tell of.
    pub(super) partitions: BTreeMap<String, (i32, i32)>,
}

impl Seen {
    /// Digest and time of an entry; the outer `None`: it lies behind what was read.
    pub(super) fn entry(&self, seq: u64) -> Option<Option<&(Digest, Timestamp)>> {
        (seq < self.read).then(|| self.entries.get(&seq))
    }

    /// How many places were read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    fn fold(&mut self) {
        if self.state.entries.len() >= FOLD
            && let Some(folded) = self.state.fold()
        {
            self.state = folded;
        }
    }
}

/// What a verdict document says that can be held against the record.
#[derive(Deserialize)]
struct Document {
    verdict: String,
    tails: Vec<NamedTail>,
    #[serde(default)]
    window: Option<Window>,
    #[serde(default)]
    registration: Option<Registered>,
}

#[derive(Deserialize)]
struct Window {
    #[serde(default)]
    closed_through: Option<Day>,
}

#[derive(Deserialize)]
struct Registered {
    seq: u64,
}

#[derive(Deserialize)]
struct NamedTail {
    chain: String,
    seq: u64,
    digest: Digest,
}

impl Verifier<'_> {
    /// The control chain up to its tail, with everything that it names.
    pub(super) fn control_chain(&mut self, bound: Option<u64>) -> Result<(), LedgerError> {
        self.stream::<Control>(&Chain::Control, bound, &mut |this, seq, read| {
            let Some(read) = read else {
                let there = this.ledger.store().get(&Chain::Control.entry_path(seq))?;
                let there = there.map(|bytes| (seq, (Digest::of(&bytes), Timestamp(i64::MIN))));
                this.control.entries.extend(there);
                return Ok(());
            };
            this.control.entries.insert(seq, (read.digest.clone(), read.entry.at));
            this.control_entry(seq, &read)?;
            this.superseded.push(&read.entry);
            this.control.state.push(read);
            if this.control.index_tail == Some(seq) {
                this.control.at_index = this.control.state.fold();
            }
            this.control.fold();
            Ok(())
        })?;
        self.control.read = length(bound);
        self.unnamed = self.superseded.replaced().map(|(_, path)| path.to_owned()).collect();
        if bound.is_none() {
            self.missing(&Chain::Control.entry_path(0), None, "the control chain has no genesis");
        }
        Ok(())
    }

    fn control_entry(&mut self, seq: u64, read: &Read<Control>) -> Result<(), LedgerError> {
        let path = Chain::Control.entry_path(seq);
        let record = Some(format!("control entry {seq}"));
        let digests: Vec<Digest> = match &read.entry.body {
            Control::Genesis { ledger_id, clock } => {
                let meta = self.ledger.meta();
                let what = if *ledger_id != meta.id {
                    "its `id` is not the one that the ledger's genesis states: one of the two was altered"
                } else if *clock != meta.clock {
                    "its `clock` is not the one that the ledger's genesis states"
                } else {
                    ""
                };
                if !what.is_empty() {
                    self.find(Outcome::Altered, names::META, Some(format!("{path} states it")), what);
                }
                if seq > 0 {
                    self.find(Outcome::Altered, &path, record, "a second genesis");
                }
                return Ok(());
            }
            control => objects_of(control).into_iter().cloned().collect(),
        };
        if seq == 0 {
            self.find(Outcome::Altered, &path, record.clone(), "it is not the genesis of this ledger");
        }
        for digest in digests {
            let bytes = self.object(&digest, || format!("named by control entry {seq}"))?;
            if let (Control::Verdict { .. }, Some(bytes)) = (&read.entry.body, bytes) {
                self.verdict(seq, read, &digest, &bytes);
            }
        }
        Ok(())
    }

    /// An object; its bytes, if they are what its name says and nobody looked at it before.
    pub(super) fn object(
        &mut self,
        digest: &Digest,
        named: impl Fn() -> String,
    ) -> Result<Option<Vec<u8>>, LedgerError> {
        if self.is_left_behind(digest) || !self.objects.insert(digest.clone()) {
            return Ok(None);
        }
        let path = names::object_path(digest);
        self.tell(&path);
        self.report.objects += 1;
        match self.ledger.store().get(&path)? {
            None => self.missing(&path, Some(named()), "the object is missing"),
            Some(bytes) if Digest::of(&bytes) != *digest => {
                self.find(Outcome::Altered, &path, Some(named()), "its SHA-256 is not its name");
            }
            Some(bytes) => return Ok(Some(bytes.to_vec())),
        }
        Ok(None)
    }

    /// A verdict's document says what its entry says, and names the tails that it read: they have to stand in the chains
    /// as they were.
    fn verdict(&mut self, seq: u64, read: &Read<Control>, digest: &Digest, bytes: &[u8]) {
        let Control::Verdict { registration, verdict, closed_through, .. } = &read.entry.body else { return };
        let place = names::object_path(digest);
        let record = Some(format!("named by control entry {seq}"));
        let document = match serde_json::from_slice::<Document>(bytes) {
            Ok(document) => document,
            Err(error) => {
                let what = format!("it is no verdict document that this build knows: {error}");
                return self.find(Outcome::CannotCheck, &place, record, what);
            }
        };
        let same = document.verdict == *verdict
            && document.registration.is_some_and(|r| r.seq == *registration)
            && document.window.and_then(|w| w.closed_through) == *closed_through;
        if !same {
            let what = format!("it does not say what {} says of it", Chain::Control.entry_path(seq));
            self.find(Outcome::Altered, &place, record.clone(), what);
        }
        for tail in document.tails {
            match Chain::parse(&tail.chain) {
                Some(chain) => self.refer(chain, tail.seq, tail.digest, By::Verdict(seq)),
                None => {
                    self.find(Outcome::Altered, &place, record.clone(), "it names a chain that no ledger has")
                }
            }
        }
    }
}
