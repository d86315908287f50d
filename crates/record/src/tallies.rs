//! The counts of one open chunk. Keys are interned, so that counting a call allocates nothing.

use ahash::AHashMap as HashMap;

use lastcall_compare::{Category, Comparison, ComparisonResult, Reason, Severity};
use lastcall_contract::Digest;
use lastcall_event::{CallRecord, Day, Fidelity};
use lastcall_ledger::control::Pair;
use lastcall_ledger::named::Name;
use lastcall_ledger::tally::{CallCount, Counts, Exposure, Tally, category_key};
use lastcall_ledger::wire;

/// An interned text; 0 stands for none.
type Id = u32;

#[derive(Default)]
struct Interner {
    ids: HashMap<Name, Id>,
    texts: Vec<Name>,
}

impl Interner {
    fn id(&mut self, text: Option<&str>) -> Id {
        let Some(text) = text else { return 0 };
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let text: Name = text.into();
        self.texts.push(text.clone());
        let id = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.ids.insert(text, id);
        id
    }

    fn text(&self, id: Id) -> Option<Name> {
        let index = usize::try_from(id).ok()?.checked_sub(1)?;
        self.texts.get(index).cloned()
    }
}

/// The ids of a call's key, made once and used for every pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    day: Day,
    tool: Id,
    cohort: Id,
    agent: Id,
}

#[derive(Default)]
struct Cell {
    results: [u64; 5],
    block_or_refused: u64,
    categories: Vec<((Category, Severity), u64)>,
    reasons: Vec<(Reason, u64)>,
    evidence: [u64; 3],
    fidelity: [u64; 4],
    rules: Vec<(&'static str, u64)>,
}

fn bump<K: PartialEq>(counts: &mut Vec<(K, u64)>, key: K) {
    match counts.iter_mut().find(|(k, _)| *k == key) {
        Some((_, n)) => *n += 1,
        None => counts.push((key, 1)),
    }
}

fn bump_at(counts: &mut [u64], index: usize) {
    if let Some(n) = counts.get_mut(index) {
        *n += 1;
    }
}

/// Counts of one open chunk.
#[derive(Default)]
pub(crate) struct Tallies {
    interner: Interner,
    /// (key, contract) → (calls, digest mismatches).
    calls: HashMap<(Key, Id), (u64, u64)>,
    /// (key, index of the pair).
    cells: HashMap<(Key, usize), Cell>,
    /// (day, index of the pair, place) → (touched, disagreed).
    exposure: HashMap<(Day, usize, u16), (u64, u64)>,
}

impl Tallies {
    /// How many cells there are: the size of the entry.
    pub(crate) fn cells(&self) -> usize {
        self.calls.len() + self.cells.len() + self.exposure.len() / 4
    }

    /// Counts a call on a day; the key serves for its comparisons.
    pub(crate) fn call(&mut self, call: &CallRecord<'_>, day: Day, mismatch: bool) -> Key {
        let key = Key {
            day,
            tool: self.interner.id(Some(&call.tool_id)),
            cohort: self.interner.id(call.envelope.cohort.as_deref()),
            agent: self.interner.id(call.envelope.agent_id.as_deref()),
        };
        let contract = self.interner.id(call.contract_id.as_deref());
        let count = self.calls.entry((key, contract)).or_default();
        count.0 += 1;
        count.1 += u64::from(mismatch);
        key
    }

    /// Counts one comparison of a call.
    pub(crate) fn comparison(&mut self, key: Key, pair: usize, fidelity: Fidelity, c: &Comparison) {
        let cell = self.cells.entry((key, pair)).or_default();
        let compared = matches!(c.result, ComparisonResult::Agreed | ComparisonResult::Disagreed);
        let slot = ComparisonResult::ALL.iter().position(|r| *r == c.result).unwrap_or(0);
        bump_at(&mut cell.results, slot);
        if let Some(reason) = c.reason {
            bump(&mut cell.reasons, reason);
        }
        let fidelity = match fidelity {
            Fidelity::Raw => 0,
            Fidelity::Reconstructed => 1,
            Fidelity::Normalized => 2,
            Fidelity::NotCaptured => 3,
        };
        bump_at(&mut cell.fidelity, fidelity);
        for (index, d) in c.discrepancies.iter().enumerate() {
            let of = |d: &lastcall_compare::Discrepancy| (d.category, d.severity);
            let counted = c.discrepancies.iter().take(index).any(|earlier| of(earlier) == of(d));
            if !counted {
                bump(&mut cell.categories, of(d));
            }
        }
        if c.result == ComparisonResult::Disagreed && (c.refused() || c.severity() == Some(Severity::Block)) {
            cell.block_or_refused += 1;
        }
        for rule in &c.rules {
            bump(&mut cell.rules, *rule);
        }
        if compared {
            let levels = [c.evidence.validation, c.evidence.arguments, c.evidence.outcome];
            for (index, on) in levels.into_iter().enumerate() {
                if on {
                    bump_at(&mut cell.evidence, index);
                }
            }
            for place in &c.touched {
                self.exposure.entry((key.day, pair, *place)).or_default().0 += 1;
            }
            for place in &c.disagreed_at {
                self.exposure.entry((key.day, pair, *place)).or_default().1 += 1;
            }
        }
    }

    /// The counts as they stand in an entry, sorted by key.
    pub(crate) fn finish(self, pairs: &[Pair]) -> (Vec<CallCount>, Vec<Tally>, Vec<Exposure>) {
        let texts = &self.interner;
        let named = |id: Id| texts.text(id).unwrap_or_default();
        let epoch = |pair: usize| pairs.get(pair).map_or_else(|| Digest::of(b""), |p| p.epoch.clone());
        let mut calls: Vec<CallCount> = self
            .calls
            .iter()
            .map(|((key, contract), (calls, mismatch))| CallCount {
                day: key.day,
                tool: named(key.tool),
                contract: texts.text(*contract),
                cohort: texts.text(key.cohort),
                agent: texts.text(key.agent),
                calls: *calls,
                digest_mismatch: *mismatch,
            })
            .collect();
        calls.sort_unstable_by(CallCount::by_key);
        let mut tallies: Vec<Tally> = self
            .cells
            .iter()
            .map(|((key, pair), cell)| Tally {
                day: key.day,
                tool: named(key.tool),
                epoch: epoch(*pair),
                cohort: texts.text(key.cohort),
                agent: texts.text(key.agent),
                counts: cell.counts(),
            })
            .collect();
        tallies.sort_unstable_by(Tally::by_key);
        let mut exposure: Vec<Exposure> = self
            .exposure
            .iter()
            .map(|((day, pair, place), (touched, disagreed))| Exposure {
                day: *day,
                epoch: epoch(*pair),
                place: *place,
                touched: *touched,
                disagreed: *disagreed,
            })
            .collect();
        exposure.sort_by(|a, b| (a.day, &a.epoch, a.place).cmp(&(b.day, &b.epoch, b.place)));
        (calls, tallies, exposure)
    }
}

impl Cell {
    fn counts(&self) -> Counts {
        let [agreed, disagreed, both_rejected, excluded, unresolved] = self.results;
        let named = |names: &[&'static str], counts: &[u64]| {
            names.iter().copied().zip(counts.iter().copied()).filter(|(_, n)| *n > 0).collect()
        };
        let fidelities =
            [Fidelity::Raw, Fidelity::Reconstructed, Fidelity::Normalized, Fidelity::NotCaptured]
                .map(wire::fidelity);
        Counts {
            agreed,
            disagreed,
            both_rejected,
            excluded,
            unresolved,
            block_or_refused: self.block_or_refused,
            categories: self.categories.iter().map(|((c, s), n)| (category_key(*c, *s), *n)).collect(),
            reasons: self.reasons.iter().map(|(r, n)| (r.as_str(), *n)).collect(),
            evidence: named(&["validation", "arguments", "outcome"], &self.evidence),
            fidelity: named(&fidelities, &self.fidelity),
            rules: self.rules.iter().copied().collect(),
        }
    }
}
