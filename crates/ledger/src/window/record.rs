//! The record that verdicts are about, read from the newest index entry on.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use lastcall_contract::Digest;
use lastcall_decision::WindowInput;
use lastcall_event::Day;

use crate::chain::Read;
use crate::entry::{Chunk, ControlRef};
use crate::error::LedgerError;
use crate::index::{Current, DailyFacts, DayEntry, IndexBody, find_days, read_facts};
use crate::ledger::{Ledger, PartitionChain};
use crate::names::Chain;
use crate::rows::ResultRow;
use crate::state::ControlState;
use crate::verify::Ahead;
use crate::window::gathering::{Start, inside, plants_of};
use crate::window::problem::plan_of;
use crate::window::{Gathering, Pass, PlantList, Rows, Subject, WindowFacts, read_rows};

/// Rows that are held in memory at once: what a table of 2^19 calls takes without growing. With twice as many the command
/// came to 471 MiB over 10 million results.
pub(crate) const BUDGET: u64 = 450_000;

/// The control chain and every partition chain, read and checked from the newest index entry on.
pub struct Record {
    /// The ledger.
    pub ledger: Ledger,
    /// The newest index entry; `None`: everything was read from the genesis.
    pub head: Option<Read<IndexBody>>,
    /// The control chain.
    pub control: ControlState,
    /// The partition chains.
    pub chains: Vec<PartitionChain>,
    budget: u64,
}

impl Record {
    /// Reads the chains from the newest index entry on.
    pub fn read(ledger: Ledger) -> Result<Self, LedgerError> {
        let current = ledger.current()?;
        Self::of(ledger, current)
    }

    /// Reads the chains from their genesis, whatever the index says.
    pub fn from_genesis(ledger: Ledger) -> Result<Self, LedgerError> {
        let current = ledger.from_genesis()?;
        Self::of(ledger, current)
    }

    pub(crate) fn of(ledger: Ledger, current: Current) -> Result<Self, LedgerError> {
        let Current { head, control, chains } = current;
        // The rule came before the evidence only if the entry that the evidence names is the one that stands there.
        let mut checked: HashSet<ControlRef> = HashSet::new();
        for chain in &chains {
            for read in &chain.entries {
                let named = read.entry.body.control();
                if checked.contains(named) {
                    continue;
                }
                if !ledger.check_control(&control, named)? {
                    let what = format!(
                        "control entry {} is not the one that it names: the control chain was rewritten",
                        named.seq
                    );
                    return Err(LedgerError::altered(&chain.chain().entry_path(read.entry.seq), what));
                }
                checked.insert(named.clone());
            }
        }
        Ok(Self { ledger, head, control, chains, budget: BUDGET })
    }

    /// Holds no more than about so many rows in memory at once.
    #[must_use]
    pub fn with_budget(self, rows: u64) -> Self {
        Self { budget: rows, ..self }
    }

    /// Every tool that is registered or observed, by name; a tool with several cohorts once for each. In an export its
    /// tool alone.
    pub fn subjects(&self) -> Vec<Subject> {
        let mut subjects = self.control.subjects();
        if let Some(mark) = self.ledger.export() {
            subjects.retain(|s| s.tool_id == mark.tool);
        }
        subjects
    }

    /// The newest entry, if it lies in the future of this machine's clock.
    pub fn ahead(&self) -> Option<Ahead> {
        let control = self.control.tail().map(|tail| (tail.at, Chain::Control.entry_path(tail.seq)));
        let head = self.head.as_ref().map(Read::tail);
        let head = head.map(|tail| (tail.at, Chain::Index.entry_path(tail.seq)));
        let of = |chain: &PartitionChain| Some((chain.tail()?, chain.chain()));
        let partitions = self.chains.iter().filter_map(of).map(|(t, chain)| (t.at, chain.entry_path(t.seq)));
        let (at, place) = partitions.chain(control).chain(head).max()?;
        Ahead::of(&self.ledger, at, place)
    }

    /// The facts of each subject, in the same order.
    ///
    /// # Errors
    /// What the index names is missing or altered, or the store failed.
    pub fn gather(&self, subjects: &[Subject]) -> Result<Vec<WindowInput>, LedgerError> {
        let mut tools: HashMap<&str, Option<DailyFacts>> = HashMap::new();
        let mut windows: Vec<(usize, Gathering<'_>)> = Vec::new();
        let mut behind: Vec<usize> = Vec::new();
        for (i, subject) in subjects.iter().enumerate() {
            let tool = subject.tool_id.as_str();
            if !tools.contains_key(tool) {
                tools.insert(tool, self.facts_of(tool)?);
            }
            let facts = tools.get(tool).and_then(Option::as_ref);
            match self.start(subject, facts) {
                Some(start) => {
                    let sightings = facts.map_or(&[][..], |facts| &facts.planted);
                    windows.push((i, Gathering::new(self, subject, start, sightings)));
                }
                None => behind.push(i),
            }
        }
        let mut again: Vec<(String, DayEntry)> = Vec::new();
        for (tool, facts) in tools.iter().filter_map(|(tool, facts)| Some((tool, facts.as_ref()?))) {
            let touched = self.touched(tool, &windows);
            again.extend(
                find_days(&self.ledger, facts, touched)?.into_iter().map(|e| ((*tool).to_owned(), e)),
            );
        }
        let mut sink = Windows::new(windows);
        read_rows(&self.ledger, &mut self.chains.as_slice(), &again, self.budget, &mut sink)?;
        let mut inputs: Vec<Option<WindowInput>> = subjects.iter().map(|_| None).collect();
        for (i, window) in sink.windows {
            if let Some(slot) = inputs.get_mut(i) {
                *slot = Some(window.finish(self));
            }
        }
        if !behind.is_empty() {
            // What the index does not know of is read from the beginning.
            let whole = Self::from_genesis(self.ledger.clone())?.with_budget(self.budget);
            let asked: Vec<Subject> = behind.iter().filter_map(|i| subjects.get(*i)).cloned().collect();
            for (i, input) in behind.into_iter().zip(whole.gather(&asked)?) {
                if let Some(slot) = inputs.get_mut(i) {
                    *slot = Some(input);
                }
            }
        }
        Ok(inputs.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// The daily facts of a tool that the newest index entry names.
    pub(crate) fn facts_of(&self, tool: &str) -> Result<Option<DailyFacts>, LedgerError> {
        let at = self.head.as_ref().and_then(|head| head.entry.body.tools.get(tool));
        at.and_then(|at| at.facts.as_ref()).map(|digest| read_facts(&self.ledger, digest, tool)).transpose()
    }

    /// Where a subject's facts begin; `None`: the index keeps nothing that they can begin with.
    pub(crate) fn start(&self, subject: &Subject, facts: Option<&DailyFacts>) -> Option<Start> {
        let Some(head) = &self.head else { return Some(Start::Nothing) };
        let Some(key) = subject.key() else { return Some(Start::Nothing) };
        let body = &head.entry.body;
        let known_to = body.control.tail.seq;
        if self.plants_repeat(subject, known_to) {
            return None;
        }
        let kept = facts.and_then(|facts| facts.windows.iter().find(|w| (w.registration, &w.epoch) == key));
        if let Some(kept) = kept {
            return self.fits(subject, kept).then(|| Start::Facts(Box::new(kept.clone())));
        }
        if subject.since <= known_to {
            return None;
        }
        // Everything folded was recorded before: without a registration it takes no part, and with one only what lies
        // on a scored day.
        let newest = body.tools.get(&subject.tool_id).and_then(|tool| tool.newest).max(body.lost_through);
        match &subject.registration {
            Some(r) if newest.is_some_and(|newest| newest >= r.scored_from) => None,
            _ => Some(Start::Nothing),
        }
    }

    fn fits(&self, subject: &Subject, kept: &WindowFacts) -> bool {
        if kept.since != subject.since {
            return false;
        }
        let registration = subject.registration.as_ref();
        let days = registration.map(|r| inside(r, plan_of(&self.ledger, r).ok().as_ref()));
        let older = kept.older.as_ref().map(|older| older.through);
        let touches_older = |chunk: &Chunk| chunk.touches(&subject.tool_id, &kept.epoch, older);
        days == kept.inside
            && (older.is_none()
                || !self.chains.iter().flat_map(PartitionChain::chunks).any(|(_, c)| touches_older(c)))
    }

    /// Whether a plant that the index does not know of names a call that an earlier one names: the folded rows were
    /// told apart by the earlier one.
    fn plants_repeat(&self, subject: &Subject, known_to: u64) -> bool {
        let plants = plants_of(&self.control, subject);
        if plants.iter().all(|(plant, _)| plant.seq <= known_to) {
            return false;
        }
        let mut before: HashSet<[u8; 16]> = HashSet::new();
        let mut after: HashSet<[u8; 16]> = HashSet::new();
        for (plant, _) in plants {
            let Ok(list) = PlantList::read(&self.ledger, plant) else { continue };
            let keys = list.expectations(plant.seq).map(|e| e.call_key);
            if plant.seq <= known_to { before.extend(keys) } else { after.extend(keys) }
        }
        !before.is_disjoint(&after)
    }

    /// The days of a tool's epochs on which rows lie that are not folded, as far as a window keeps them.
    fn touched(&self, tool: &str, windows: &[(usize, Gathering<'_>)]) -> BTreeSet<(Day, Digest)> {
        let mut out = BTreeSet::new();
        let of_tool: Vec<&Gathering<'_>> =
            windows.iter().map(|(_, w)| w).filter(|w| w.subject.tool_id == tool).collect();
        for (_, chunk) in self.chains.iter().flat_map(PartitionChain::chunks) {
            for tally in chunk.tallies.iter().filter(|t| *t.tool == *tool) {
                let wanted = |w: &&&Gathering<'_>| {
                    let epoch = w.subject.pair.as_ref().map(|pair| &pair.epoch);
                    epoch == Some(&tally.epoch) && w.is_inside(tally.day)
                };
                if of_tool.iter().any(|w| wanted(&w)) {
                    out.insert((tally.day, tally.epoch.clone()));
                }
            }
        }
        out
    }
}

impl Chunk {
    /// Whether something of a tool or an epoch in it lies on or before a day.
    fn touches(&self, tool: &str, epoch: &Digest, through: Option<Day>) -> bool {
        let early = |day: Day| Some(day) <= through;
        self.tallies.iter().any(|t| t.epoch == *epoch && early(t.day))
            || self.calls.iter().any(|c| *c.tool == *tool && early(c.day))
            || self.coverage.iter().any(|c| c.tool == tool && early(c.hour.day()))
            || self
                .losses
                .iter()
                .any(|l| l.tool.as_ref().is_none_or(|t| t == tool) && l.days().next().is_some_and(early))
    }
}

/// Windows that take rows.
pub(crate) struct Windows<'a> {
    pub(crate) windows: Vec<(usize, Gathering<'a>)>,
    by_epoch: BTreeMap<String, Vec<usize>>,
}

impl<'a> Windows<'a> {
    pub(crate) fn new(windows: Vec<(usize, Gathering<'a>)>) -> Self {
        let mut by_epoch: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (i, (_, window)) in windows.iter().enumerate() {
            if let Some(pair) = &window.subject.pair {
                by_epoch.entry(pair.epoch.as_str().to_owned()).or_default().push(i);
            }
        }
        Self { windows, by_epoch }
    }

    fn of(&mut self, epoch: &str, mut each: impl FnMut(&mut Gathering<'a>)) {
        for i in self.by_epoch.get(epoch).into_iter().flatten() {
            if let Some((_, window)) = self.windows.get_mut(*i) {
                each(window);
            }
        }
    }
}

impl Rows for Windows<'_> {
    fn wants(&self, epoch: &str) -> bool {
        self.by_epoch.contains_key(epoch)
    }

    fn reload(&mut self, epoch: &Digest, day: Day) {
        self.of(epoch.as_str(), |window| window.reload(day));
    }

    fn row(&mut self, source: &str, control: u64, row: &ResultRow, times: u64, again: bool) {
        self.of(&row.epoch, |window| window.row(source, control, row, times, again));
    }

    fn end(&mut self, _: &Pass) -> Result<(), LedgerError> {
        self.windows.iter_mut().for_each(|(_, window)| window.settle());
        Ok(())
    }

    fn failed(&mut self, chain: &PartitionChain, seq: u64, chunk: &Chunk, error: LedgerError) {
        // A file holds rows of several tools: it is in the way of those whose rows it holds.
        for (_, window) in &mut self.windows {
            if window.reads(&chain.source) && window.has_rows_in(chunk) {
                window.failed(chain, seq, &error);
            }
        }
    }

    fn chunk(&mut self, chain: &PartitionChain, seq: u64, chunk: &Chunk, found: &HashMap<Digest, u64>) {
        for (_, window) in self.windows.iter_mut().filter(|(_, w)| w.reads(&chain.source)) {
            if let Some(pair) = &window.subject.pair {
                let ours = chunk.tallies.iter().filter(|t| t.epoch == pair.epoch);
                let told: u64 = ours.map(|t| t.counts.rows()).sum();
                let there = found.get(&pair.epoch).copied().unwrap_or_default();
                if told != there {
                    window.miscounted(chain, seq, chunk, told, there);
                }
            }
            window.chunk(chain, seq, chunk);
        }
    }
}
