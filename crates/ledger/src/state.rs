//! What the control chain folds to: sources, observed pairs, registrations, plants, verdicts.

use std::collections::{BTreeMap, BTreeSet};

use lastcall_contract::Digest;
use lastcall_event::{Day, Preset, Timestamp};
use serde::{Deserialize, Serialize};

use crate::chain::{Read, Tail};
use crate::control::{Control, Pair, Role, SourceKind};
use crate::entry::ControlRef;
use crate::ledger::LedgerClock;
use crate::redaction::Redaction;

/// A registered source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// Unique name.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Kind of stream.
    pub kind: SourceKind,
    /// How its messages are read.
    pub preset: Preset,
    /// Milliseconds after its end for which a day stays open.
    pub lateness_ms: i64,
    /// Digest of the map through which its messages go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<Digest>,
    /// Sequence number of its entry.
    pub seq: u64,
}

/// A pair that is observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservedPair {
    /// Sequence number of its entry.
    pub seq: u64,
    /// The pair.
    pub pair: Pair,
}

/// A registration and, if it ended, how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    /// Sequence number of its entry: its id.
    pub seq: u64,
    /// Digest of its entry.
    pub digest: Digest,
    /// When it was written.
    pub at: Timestamp,
    /// Digest of the plan, an object.
    pub plan: Digest,
    /// The pair.
    pub pair: Pair,
    /// First scored UTC day.
    pub scored_from: Day,
    /// Patterns of the sources whose calls count.
    pub sources: Vec<String>,
    /// Only this cohort's calls count.
    pub cohort: Option<String>,
    /// Who registered.
    pub by: Option<String>,
    /// Digest of the trial that was stored with it, an object.
    pub trial: Option<Digest>,
    /// Digest of the pair's diff that was stored with it, an object.
    pub diff: Option<Digest>,
    /// How its window ended.
    pub end: Option<WindowEnd>,
}

/// How a window ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowEnd {
    /// Sequence number of the `EndWindow` entry.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
}

/// A list of planted or synthetic calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plant {
    /// Sequence number of its entry.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// Tool.
    pub tool_id: String,
    /// Candidate contract id.
    pub candidate: String,
    /// Digest of the list, an object.
    pub list: Digest,
    /// How many calls.
    pub count: u64,
}

/// A verdict that was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictEntry {
    /// Sequence number of its entry.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// Sequence number of the registration.
    pub registration: u64,
    /// The verdict.
    pub verdict: String,
    /// The last closed day that it rests on.
    pub closed_through: Option<Day>,
    /// Digest of the verdict document, an object.
    pub document: Digest,
}

/// What stands before the entries that were read, where an index entry spared reading them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlBase {
    /// The last entry that is folded.
    pub tail: Tail,
    /// The ledger's id, as its genesis states it.
    pub ledger_id: String,
    /// The ledger's clock, as its genesis states it.
    pub clock: LedgerClock,
    /// The last entry that a verdict rests on.
    pub evidence: ControlRef,
}

/// The fold of the control chain up to its tail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlState {
    /// What is folded without its entries; `None`: every entry is in `entries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<ControlBase>,
    /// Every entry that was read, in order.
    #[serde(skip)]
    pub entries: Vec<Read<Control>>,
    /// Sources by name.
    pub sources: BTreeMap<String, SourceInfo>,
    /// Pairs that are observed now.
    pub observed: Vec<ObservedPair>,
    /// Every registration, in control order, ended or not.
    pub registrations: Vec<Registration>,
    /// Plants, in control order.
    pub plants: Vec<Plant>,
    /// Verdicts, in control order.
    pub verdicts: Vec<VerdictEntry>,
    /// What of which source's records is not kept, by the source's name.
    pub redactions: BTreeMap<String, Redaction>,
}

impl ControlState {
    /// Takes in the next entry. Entries are trusted to be in order: the chain was checked while it was read.
    pub fn push(&mut self, read: Read<Control>) {
        let (seq, at) = (read.entry.seq, read.entry.at);
        match read.entry.body.clone() {
            Control::Genesis { .. } => {}
            Control::Source { name, role, source_kind, preset, lateness_ms, map } => {
                let info =
                    SourceInfo { name: name.clone(), role, kind: source_kind, preset, lateness_ms, map, seq };
                // The first one holds: a name means one stream for ever.
                self.sources.entry(name).or_insert(info);
            }
            Control::Observe { pair } => {
                self.observed.retain(|o| !same_candidate(&o.pair, &pair.tool_id, &pair.candidate));
                self.observed.push(ObservedPair { seq, pair });
            }
            Control::Unobserve { tool_id, candidate } => {
                self.observed.retain(|o| !same_candidate(&o.pair, &tool_id, &candidate));
            }
            Control::Register { plan, pair, scored_from, sources, cohort, by, trial, diff } => {
                self.registrations.push(Registration {
                    seq,
                    digest: read.digest.clone(),
                    at,
                    plan,
                    pair,
                    scored_from,
                    sources,
                    cohort,
                    by,
                    trial,
                    diff,
                    end: None,
                });
            }
            Control::EndWindow { registration, reason } => {
                if let Some(found) = self.registrations.iter_mut().find(|r| r.seq == registration)
                    && found.end.is_none()
                {
                    found.end = Some(WindowEnd { seq, at, reason });
                }
            }
            Control::Plant { tool_id, candidate, list, count } => {
                self.plants.push(Plant { seq, at, tool_id, candidate, list, count });
            }
            Control::Verdict { registration, verdict, closed_through, document } => {
                self.verdicts.push(VerdictEntry { seq, at, registration, verdict, closed_through, document });
            }
            Control::Redact { source, redaction: Some(redaction) } => {
                self.redactions.insert(source, redaction);
            }
            Control::Redact { source, redaction: None } => {
                self.redactions.remove(&source);
            }
            // Of files alone: `erasure::Superseded` folds these.
            Control::Erase { .. } | Control::Expire { .. } => {}
        }
        self.entries.push(read);
    }

    /// Whether the entry that a partition entry names is the one that stands in this chain. One that was not read says
    /// nothing: whoever reads it is behind, or it is folded ([`Self::is_folded`]).
    pub fn agrees(&self, named: &ControlRef) -> bool {
        if let Some(base) = self.base.as_ref().filter(|base| base.tail.seq == named.seq) {
            return base.tail.digest == named.digest;
        }
        let first = self.base.as_ref().map_or(0, |base| base.tail.seq.saturating_add(1));
        let at = named.seq.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.entries.get(at)).is_none_or(|read| read.digest == named.digest)
    }

    /// Whether a control entry stands so far back that only its fold was read.
    pub fn is_folded(&self, seq: u64) -> bool {
        self.base.as_ref().is_some_and(|base| seq < base.tail.seq)
    }

    /// The last entry; `None` for an empty chain (a ledger without its genesis).
    pub fn tail(&self) -> Option<Tail> {
        self.entries.last().map(Read::tail).or_else(|| self.base.as_ref().map(|base| base.tail.clone()))
    }

    /// The last entry that a verdict rests on. Verdicts rest on the record and are no part of it, so that the same record
    /// gives the same document however often it was decided on; an erasure or an expiry takes nothing that a verdict reads,
    /// and changes none.
    pub fn evidence(&self) -> Option<ControlRef> {
        let outside = |body: &Control| {
            matches!(body, Control::Verdict { .. } | Control::Erase { .. } | Control::Expire { .. })
        };
        let last = self.entries.iter().rev().find(|r| !outside(&r.entry.body));
        last.map(|r| ControlRef { seq: r.entry.seq, digest: r.digest.clone() })
            .or_else(|| self.base.as_ref().map(|base| base.evidence.clone()))
    }

    /// The ledger's id, as its genesis states it.
    pub fn ledger_id(&self) -> Option<&str> {
        if let Some(base) = &self.base {
            return Some(&base.ledger_id);
        }
        self.entries.first().and_then(|read| match &read.entry.body {
            Control::Genesis { ledger_id, .. } => Some(ledger_id.as_str()),
            _ => None,
        })
    }

    /// The ledger's clock, as its genesis states it.
    pub fn clock(&self) -> Option<LedgerClock> {
        if let Some(base) = &self.base {
            return Some(base.clock);
        }
        self.entries.first().and_then(|read| match &read.entry.body {
            Control::Genesis { clock, .. } => Some(*clock),
            _ => None,
        })
    }

    /// The state without its entries, as an index entry keeps it: of the verdicts only the last of each registration.
    /// `None` for an empty chain.
    pub fn fold(&self) -> Option<Self> {
        let base = ControlBase {
            tail: self.tail()?,
            ledger_id: self.ledger_id()?.to_owned(),
            clock: self.clock()?,
            evidence: self.evidence()?,
        };
        let mut folded = Self { base: Some(base), entries: Vec::new(), ..self.clone() };
        let mut seen = BTreeSet::new();
        folded.verdicts.reverse();
        folded.verdicts.retain(|verdict| seen.insert(verdict.registration));
        folded.verdicts.reverse();
        Some(folded)
    }

    /// The observed pair of a tool; with several candidates the named one.
    ///
    /// # Errors
    /// In words: none, or several, with what to do.
    pub fn observed_pair(&self, tool: &str, candidate: Option<&str>) -> Result<&Pair, String> {
        let of_tool = || self.observed.iter().map(|o| &o.pair).filter(|p| p.tool_id == tool);
        let pairs: Vec<&Pair> = of_tool().filter(|p| candidate.is_none_or(|c| p.candidate == c)).collect();
        match pairs.as_slice() {
            [one] => Ok(one),
            [] => {
                let known: Vec<&str> = of_tool().map(|p| p.candidate.as_str()).collect();
                if let (Some(candidate), false) = (candidate, known.is_empty()) {
                    return Err(format!(
                        "{candidate} is not observed for `{tool}`; observed: {}",
                        known.join(", ")
                    ));
                }
                let tools = self.observed.iter().map(|o| o.pair.tool_id.as_str());
                Err(match lastcall_decision::nearest(tool, tools) {
                    Some(near) => format!("no pair of `{tool}` is observed; did you mean `{near}`?"),
                    None => {
                        format!("no pair of `{tool}` is observed; begin with `lastcall plan observe OLD NEW`")
                    }
                })
            }
            several => {
                let names: Vec<&str> = several.iter().map(|p| p.candidate.as_str()).collect();
                Err(format!(
                    "`{tool}` has several observed candidates; say which with --candidate: {}",
                    names.join(", ")
                ))
            }
        }
    }

    /// The pairs that recorders compare now: observed ones and those of open windows, each epoch once.
    pub fn active_pairs(&self) -> Vec<Pair> {
        let windows = self.registrations.iter().filter(|r| r.end.is_none()).map(|r| &r.pair);
        let mut pairs: Vec<Pair> = Vec::new();
        for pair in windows.chain(self.observed.iter().map(|o| &o.pair)) {
            if !pairs.iter().any(|p| p.epoch == pair.epoch) {
                pairs.push(pair.clone());
            }
        }
        pairs
    }

    /// The sources that a registration names, by its patterns.
    pub fn sources_of(&self, registration: &Registration) -> Vec<&SourceInfo> {
        self.sources
            .values()
            .filter(|s| registration.sources.iter().any(|pattern| matches(pattern, &s.name)))
            .collect()
    }

    /// The registration with this sequence number.
    pub fn registration(&self, seq: u64) -> Option<&Registration> {
        self.registrations.iter().find(|r| r.seq == seq)
    }
}

fn same_candidate(pair: &Pair, tool_id: &str, candidate: &str) -> bool {
    pair.tool_id == tool_id && pair.candidate == candidate
}

/// Whether a source's name fits a pattern: `*` at the end matches any rest.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}
