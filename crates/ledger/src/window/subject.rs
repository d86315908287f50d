//! What verdicts are about: tools, and cohorts with windows of their own.

use std::collections::BTreeMap;

use lastcall_contract::Digest;

use crate::control::Pair;
use crate::state::{ControlState, Registration};

/// One tool, and for a cohort of its own that cohort.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// Tool.
    pub tool_id: String,
    /// Its latest registration, open ones first.
    pub registration: Option<Registration>,
    /// The registered pair, else the observed one.
    pub pair: Option<Pair>,
    /// The control entry from which on calls count: the registration, else the observation.
    pub since: u64,
}

impl Subject {
    /// What its daily facts are kept under.
    pub fn key(&self) -> Option<(Option<u64>, &Digest)> {
        let pair = self.pair.as_ref()?;
        Some((self.registration.as_ref().map(|r| r.seq), &pair.epoch))
    }

    fn registered(r: &Registration) -> Self {
        Self {
            tool_id: r.pair.tool_id.clone(),
            pair: Some(r.pair.clone()),
            since: r.seq,
            registration: Some(r.clone()),
        }
    }
}

impl ControlState {
    /// Every tool that is registered or observed, by name; a tool with several cohorts once for each.
    pub fn subjects(&self) -> Vec<Subject> {
        let mut latest: BTreeMap<(&str, Option<&str>), &Registration> = BTreeMap::new();
        for r in &self.registrations {
            let slot = latest.entry((&r.pair.tool_id, r.cohort.as_deref()));
            slot.and_modify(|known| {
                if known.end.is_some() || r.end.is_none() {
                    *known = r;
                }
            })
            .or_insert(r);
        }
        let mut out: Vec<Subject> = latest.into_values().map(Subject::registered).collect();
        for observed in self.observed_alone() {
            if !out.iter().any(|s| s.tool_id == observed.tool_id) {
                out.push(observed);
            }
        }
        out.sort_by(|a, b| {
            let cohort = |s: &Subject| s.registration.as_ref().and_then(|r| r.cohort.clone());
            a.tool_id.cmp(&b.tool_id).then_with(|| cohort(a).cmp(&cohort(b)))
        });
        out
    }

    /// Everything that may be asked for later without a new control entry about it: the subjects, every open window,
    /// every observed pair of a tool without one.
    pub(crate) fn kept_subjects(&self) -> Vec<Subject> {
        let mut out = self.subjects();
        let open = self.registrations.iter().filter(|r| r.end.is_none()).map(Subject::registered);
        for subject in open.chain(self.observed_alone()) {
            if !out.iter().any(|s| s.key() == subject.key()) {
                out.push(subject);
            }
        }
        out
    }

    fn observed_alone(&self) -> impl Iterator<Item = Subject> {
        let registered = |tool: &str| self.registrations.iter().any(|r| r.pair.tool_id == tool);
        self.observed.iter().filter(move |o| !registered(&o.pair.tool_id)).map(|o| Subject {
            tool_id: o.pair.tool_id.clone(),
            registration: None,
            pair: Some(o.pair.clone()),
            since: o.seq,
        })
    }
}
