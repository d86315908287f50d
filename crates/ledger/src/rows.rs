//! Rows of the Parquet files. `schemas/parquet.md` documents every column.

use lastcall_compare::{ComparisonResult, Discrepancy, Evidence, Reason, Severity};
use lastcall_event::{Day, Fidelity, Preset, Status, Suppression, Timestamp};

/// Where a record stands in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Partition of the source (0 for files).
    pub partition: i32,
    /// Offset: Kafka's, or the byte offset in a file.
    pub offset: i64,
    /// Index in the message (0 but for batches).
    pub index: i32,
}

/// One row of a results file: one (call, pair) under one epoch. No value of the call.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRow {
    /// Where the call was read.
    pub position: Position,
    /// The call's own time.
    pub ts: Timestamp,
    /// Its UTC day.
    pub day: Day,
    /// First 16 bytes of SHA-256 over the call id.
    pub call_key: [u8; 16],
    /// Tool.
    pub tool_id: String,
    /// Current contract id.
    pub current: String,
    /// Candidate contract id.
    pub candidate: String,
    /// Digest of the epoch, `sha256:…`.
    pub epoch: String,
    /// First 16 bytes of SHA-256 over the session id (else run, else trace); `None`: none of them.
    pub session_key: Option<[u8; 16]>,
    /// Agent.
    pub agent: Option<String>,
    /// Cohort.
    pub cohort: Option<String>,
    /// Result.
    pub result: ComparisonResult,
    /// Why.
    pub reason: Option<Reason>,
    /// Worst severity among the discrepancies.
    pub severity: Option<Severity>,
    /// The candidate refused the call.
    pub refused: bool,
    /// Fidelity of the arguments.
    pub fidelity: Fidelity,
    /// Levels of evidence.
    pub evidence: Evidence,
    /// How the candidate's effect was suppressed; `None`: there was no candidate row.
    pub suppression: Option<Suppression>,
    /// The candidate's status.
    pub candidate_status: Option<Status>,
    /// Differences.
    pub discrepancies: Vec<Discrepancy>,
    /// Normalization rules that turned a difference into agreement.
    pub rules: Vec<String>,
    /// Changed places that the call touched.
    pub places_touched: Vec<u16>,
    /// Those at which it disagreed.
    pub places_disagreed: Vec<u16>,
    /// SHA-256 over salt and redacted call.
    pub commitment: [u8; 32],
}

/// One row of a calls file: what arrived, after redaction. Personal data.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRow {
    /// Where the call was read.
    pub position: Position,
    /// The call's own time.
    pub ts: Timestamp,
    /// Its UTC day.
    pub day: Day,
    /// The call id.
    pub call_id: String,
    /// First 16 bytes of SHA-256 over the call id.
    pub call_key: [u8; 16],
    /// Tool.
    pub tool_id: String,
    /// The contract that production used, as far as stated.
    pub contract_id: Option<String>,
    /// Its digest as the producer knows it.
    pub contract_digest: Option<String>,
    /// Fidelity of the arguments.
    pub fidelity: Fidelity,
    /// How the call ended.
    pub status: Status,
    /// The agent.
    pub agent_id: Option<String>,
    /// Its version.
    pub agent_version: Option<String>,
    /// The version of its prompt.
    pub prompt_version: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The run.
    pub run_id: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// The trace.
    pub trace_id: Option<String>,
    /// The cohort.
    pub cohort: Option<String>,
    /// How `record` is read.
    pub preset: Preset,
    /// The record as it arrived, byte for byte (after redaction): arguments, outcome, envelope, candidates.
    pub record: String,
    /// The salt of the commitment.
    pub salt: [u8; 16],
}

/// One row of a dead file: a record that could not be decoded. Personal data.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadRow {
    /// Where it was read.
    pub position: Position,
    /// Its bytes, without the line's end; the first part alone for `too_long`.
    pub bytes: Vec<u8>,
    /// How many bytes it had.
    pub length: i64,
    /// Reason code.
    pub reason: String,
    /// What is wrong and what to do.
    pub message: String,
    /// Ledger time at which it was read; `None` in a simulated ledger before the first clock.
    pub received: Option<Timestamp>,
}
