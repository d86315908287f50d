//! Entries of the control chain and the state they fold to.

use std::collections::BTreeMap;

use lastcall_contract::Digest;
use lastcall_event::{Day, Preset, Timestamp};
use serde::{Deserialize, Serialize};

use crate::entry::FileRef;
use crate::ledger::LedgerClock;
use crate::redaction::Redaction;

/// What a source's records are taken for. Exclusive within a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Production calls alone: every call is `not_executed`.
    ToolCalls,
    /// Calls with what the mirror's candidates made of them.
    MirroredCalls,
}

/// What kind of stream a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A file of JSON Lines.
    File,
    /// One standard input.
    Stdin,
    /// A topic on a cluster.
    Topic,
}

/// A (current, candidate) pair under one epoch. All definitions and the configuration are objects of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Tool.
    pub tool_id: String,
    /// Current contract id, `tool_id@version`.
    pub current: String,
    /// Digest of the current definition, an object of the ledger.
    pub current_digest: Digest,
    /// Candidate contract id.
    pub candidate: String,
    /// Digest of the candidate definition, an object of the ledger.
    pub candidate_digest: Digest,
    /// Digest of the pair's configuration (renames, normalization, severity map, adapter), an object of the ledger.
    pub config_digest: Digest,
    /// Digest of the epoch: pair, configuration and comparator version.
    pub epoch: Digest,
    /// The comparator version of the epoch.
    pub comparator: u32,
}

/// One entry of the control chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Control {
    /// The first entry of the chain.
    Genesis {
        /// The ledger's id.
        ledger_id: String,
        /// Where its time comes from: `ledger.json` alone could be edited unseen.
        clock: LedgerClock,
    },
    /// A stream that is read.
    Source {
        /// Unique name.
        name: String,
        /// Role.
        role: Role,
        /// Kind of stream.
        source_kind: SourceKind,
        /// How its messages are read.
        preset: Preset,
        /// Milliseconds after its end for which a day stays open.
        lateness_ms: i64,
        /// Digest of the map through which its messages go, an object of the ledger: of a named preset that of the build
        /// which registered it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<Digest>,
    },
    /// Compare this pair from now on; nothing is scored by it.
    Observe {
        /// The pair.
        pair: Pair,
    },
    /// Stop comparing this pair.
    Unobserve {
        /// Tool.
        tool_id: String,
        /// Candidate contract id.
        candidate: String,
    },
    /// Fixes the rule before the evidence.
    Register {
        /// Digest of the plan, an object of the ledger.
        plan: Digest,
        /// The pair.
        pair: Pair,
        /// First scored UTC day.
        scored_from: Day,
        /// Names of the sources whose calls count (`*` at the end matches any rest).
        sources: Vec<String>,
        /// Only this cohort's calls count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cohort: Option<String>,
        /// Who registered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Digest of what a trial over archived calls showed beforehand, an object of the ledger. It decides nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trial: Option<Digest>,
        /// Digest of the diff of the pair, an object of the ledger. It decides nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<Digest>,
    },
    /// Ends a registration's window.
    EndWindow {
        /// Sequence number of its `Register` entry.
        registration: u64,
        /// Why.
        reason: String,
    },
    /// Call ids of planted faults or synthetic calls, committed before they are produced.
    Plant {
        /// Tool.
        tool_id: String,
        /// Candidate contract id.
        candidate: String,
        /// Digest of the list, an object of the ledger.
        list: Digest,
        /// How many calls.
        count: u64,
    },
    /// A verdict that was given.
    Verdict {
        /// Sequence number of the registration.
        registration: u64,
        /// `READY`, `NOT_READY`, `INSUFFICIENT` or `ERROR`.
        verdict: String,
        /// The last closed day that it rests on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        closed_through: Option<Day>,
        /// Digest of the verdict document, an object of the ledger.
        document: Digest,
    },
    /// What of a source's records is not kept from now on. It may stand before the source itself.
    Redact {
        /// The source's name.
        source: String,
        /// The rules; absent: everything is kept again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redaction: Option<Redaction>,
    },
    /// Calls and dead letters were taken out at somebody's request. Nothing here says whose: no id, no hash of one.
    Erase {
        /// How many ids were asked for.
        ids: u64,
        /// The files that held them, each with what stands in its place.
        files: Vec<Replaced>,
        /// Why, in the words of who asked: a ticket's number, for example.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Whole files passed their retention.
    Expire {
        /// Everything in them was recorded, or happened, before this UTC day.
        before: Day,
        /// The files.
        files: Vec<FileRef>,
    },
}

/// A data file that another one supersedes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// What stood there.
    pub old: FileRef,
    /// What stands there now; absent: no row is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<FileRef>,
    /// Rows of `old` that are not in `new`.
    pub erased: u64,
    /// The same by tool, of a calls file: without it nobody could tell in an export whose calls are gone. Absent in entries of
    /// older builds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, u64>,
}

/// What every entry of every chain carries around its body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry<B> {
    /// Sequence number in its chain, from 0.
    pub seq: u64,
    /// Digest of the predecessor's bytes; `None` for the first.
    pub previous: Option<Digest>,
    /// Random id of the writer (32 hex digits).
    pub writer: String,
    /// The latest of the writer's clock, the predecessor's `at` and the named control entry's.
    pub at: Timestamp,
    /// The body.
    pub body: B,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Entries from before trials were stored are read, and written again to the byte: their digests stand in chains.
    #[test]
    fn a_registration_from_before_trials_keeps_its_bytes() {
        let digest = Digest::of(b"x");
        let pair = Pair {
            tool_id: "t".to_owned(),
            current: "t@1".to_owned(),
            current_digest: digest.clone(),
            candidate: "t@2".to_owned(),
            candidate_digest: digest.clone(),
            config_digest: digest.clone(),
            epoch: digest.clone(),
            comparator: 1,
        };
        let before = format!(
            r#"{{"kind":"register","plan":"{}","pair":{},"scored_from":"2026-06-01","sources":["*"],"by":"ana"}}"#,
            digest.as_str(),
            serde_json::to_string(&pair).unwrap()
        );
        let read: Control = serde_json::from_str(&before).unwrap();
        assert!(matches!(&read, Control::Register { trial: None, diff: None, .. }), "{read:?}");
        assert_eq!(serde_json::to_string(&read).unwrap(), before);
    }
}
