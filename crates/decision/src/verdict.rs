//! The verdict document: everything that a reader needs to follow, doubt and recompute an answer. It holds no time
//! of decision and no machine's name, so the same record gives the same bytes.

use std::collections::BTreeMap;

use lastcall_contract::Digest;
use lastcall_event::{Day, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::{Plan, Profile};
use crate::reason::ReasonCode;
use crate::tally::{CategoryFacts, PlantedFacts};

/// Version of the document's shape.
pub const VERDICT_FORMAT: u32 = 1;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Answer {
    /// Every check passes.
    Ready,
    /// Evidence violates a check.
    NotReady,
    /// Something is missing, too small, open or silent.
    Insufficient,
    /// It could not be computed, or the record was altered.
    Error,
}

impl Answer {
    /// The name in every report and in the control chain.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "READY",
            Self::NotReady => "NOT_READY",
            Self::Insufficient => "INSUFFICIENT",
            Self::Error => "ERROR",
        }
    }

    /// The command's exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ready => 0,
            Self::NotReady => 1,
            Self::Insufficient => 3,
            Self::Error => 4,
        }
    }

    /// 0 for READY, up to 3 for ERROR: the worst of several is the largest.
    pub fn rank(self) -> u8 {
        match self {
            Self::Ready => 0,
            Self::Insufficient => 1,
            Self::NotReady => 2,
            Self::Error => 3,
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// May new calls go to the candidate?
    Cutover,
    /// May the old version be switched off?
    Retire,
    /// May its decoder be removed?
    Delete,
}

impl Question {
    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cutover => "cutover",
            Self::Retire => "retire",
            Self::Delete => "delete",
        }
    }
}

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckResult {
    /// It holds.
    Pass,
    /// Evidence violates it.
    Fail,
    /// Too little to say.
    Insufficient,
    /// It could not be computed.
    Error,
    /// It was not asked.
    Unknown,
}

impl CheckResult {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Insufficient => "insufficient",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }
}

/// One check: what was found, what it was held against, and what would change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Stable id, such as `ceiling`.
    pub id: String,
    /// Result.
    pub result: CheckResult,
    /// Reason code.
    pub reason: ReasonCode,
    /// What was found.
    pub value: String,
    /// What it was held against.
    pub threshold: String,
    /// How both are computed.
    pub formula: String,
    /// One sentence.
    pub text: String,
    /// What would change it, where it does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Something outside the checks that keeps a verdict from being READY.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// `insufficient` or `error`.
    pub result: CheckResult,
    /// Reason code.
    pub reason: ReasonCode,
    /// What is wrong and where.
    pub text: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A remark that stands beside the headline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flag {
    /// Stable id: `simulated`, `arguments_only`, `reconstructed`, `map_lowered`, `planted_missed`, `unresolved`, `late`.
    pub id: String,
    /// A few words.
    pub text: String,
}

/// Both contracts and the epoch under which they were compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairFacts {
    /// Current contract id.
    pub current: String,
    /// Digest of its definition.
    #[schemars(with = "String")]
    pub current_digest: Digest,
    /// Candidate contract id.
    pub candidate: String,
    /// Digest of its definition.
    #[schemars(with = "String")]
    pub candidate_digest: Digest,
    /// Digest of the pair's configuration: renames, normalization, severity map.
    #[schemars(with = "String")]
    pub config_digest: Digest,
    /// Digest of the epoch.
    #[schemars(with = "String")]
    pub epoch: Digest,
    /// Comparator version.
    pub comparator: u32,
}

/// The control entry that fixed the rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegistrationFacts {
    /// Its sequence number in the control chain.
    pub seq: u64,
    /// When it was written.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// First scored UTC day.
    #[schemars(with = "String")]
    pub scored_from: Day,
    /// Sources whose calls count.
    pub sources: Vec<String>,
    /// Only this cohort's calls count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort: Option<String>,
    /// Why its window was ended, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// The plan and its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanFacts {
    /// Digest of the plan's object.
    #[schemars(with = "String")]
    pub digest: Digest,
    /// Its values.
    pub values: Plan,
}

/// What a day is to the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DayState {
    /// Closed, scored, and one of the counted days.
    Counted,
    /// Closed and scored, before the counted days.
    Scored,
    /// Scored, but not closed: it takes no part.
    Open,
    /// After the last day that the plan scores.
    Beyond,
}

impl DayState {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Scored => "scored",
            Self::Open => "open",
            Self::Beyond => "beyond",
        }
    }
}

/// One line of the daily table. `calls = agreed + disagreed + both_rejected + excluded + unresolved + duplicate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DayLine {
    /// UTC day.
    #[schemars(with = "String")]
    pub day: Day,
    /// What it is to the rule.
    pub state: DayState,
    /// Compared calls.
    pub compared: u64,
    /// Disagreed over compared, at most eight decimals; null without a compared call.
    pub d: Option<f64>,
    /// (Disagreed and unresolved) over (compared and unresolved).
    pub d_worst: Option<f64>,
    /// The counts.
    #[serde(flatten)]
    pub counts: crate::tally::DayCounts,
}

/// Sums over the closed scored days.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Closed scored days.
    pub days: u64,
    /// Compared calls.
    pub compared: u64,
    /// D over the whole burn-in.
    pub d: Option<f64>,
    /// D_worst over the whole burn-in.
    pub d_worst: Option<f64>,
    /// The counts.
    #[serde(flatten)]
    pub counts: crate::tally::DayCounts,
}

/// The window's days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// First scored day.
    #[schemars(with = "String")]
    pub scored_from: Day,
    /// The last day that the plan scores.
    #[schemars(with = "String")]
    pub scored_to: Day,
    /// The last closed scored day.
    #[schemars(with = "Option<String>")]
    pub closed_through: Option<Day>,
    /// The first counted day.
    #[schemars(with = "Option<String>")]
    pub counted_from: Option<Day>,
    /// Why the next day is not closed, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_because: Option<String>,
    /// The first day whose close could make the verdict READY, if every call agrees until then.
    #[schemars(with = "Option<String>")]
    pub earliest_ready: Option<Day>,
}

/// On how many compared calls each kind of evidence rests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceCounts {
    /// Compared calls: both schemas were asked, and the arguments compared.
    pub compared: u64,
    /// Of these, the outcome was observed on both sides.
    pub outcome: u64,
    /// Of these, the arguments were rebuilt from another form.
    pub reconstructed: u64,
}

/// The verdict under another reading of the same record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sensitivity {
    /// `d_worst`, `without_normalization` or `default_map`.
    pub id: String,
    /// What is read otherwise.
    pub text: String,
    /// The verdict under it.
    pub verdict: Answer,
}

/// An earlier registration of this tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierWindow {
    /// Sequence number of its registration.
    pub registration: u64,
    /// Candidate contract id.
    pub candidate: String,
    /// First scored day.
    #[schemars(with = "String")]
    pub scored_from: Day,
    /// Digest of its plan.
    #[schemars(with = "String")]
    pub plan: Digest,
    /// How it ended.
    pub ended: String,
    /// The last verdict that was given in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
}

/// The end of a chain as this verdict read it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// `control`, or `source/partition`.
    pub chain: String,
    /// Sequence number of its last entry.
    pub seq: u64,
    /// Digest of that entry's bytes.
    #[schemars(with = "String")]
    pub digest: Digest,
}

/// The verdict document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Version of the document's shape.
    pub format: u32,
    /// Tool.
    pub tool_id: String,
    /// What was asked.
    pub question: Question,
    /// The answer.
    pub verdict: Answer,
    /// Which rule judged.
    pub profile: Profile,
    /// One sentence.
    pub headline: String,
    /// Remarks beside the headline.
    pub flags: Vec<Flag>,
    /// What would change the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The checks, in the order of the rule.
    pub checks: Vec<Check>,
    /// What keeps it from READY outside the checks.
    pub problems: Vec<Problem>,
    /// Both contracts and the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairFacts>,
    /// The registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<RegistrationFacts>,
    /// The plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanFacts>,
    /// The window's days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Sums over the closed scored days.
    pub totals: Totals,
    /// Every day of the window up to the last one with a call, silent days too.
    pub days: Vec<DayLine>,
    /// Calls before the window's first day or after its last: they take no part.
    pub calls_outside: u64,
    /// Calls that production made on the closed scored days, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub production_calls: Option<u64>,
    /// Categories over the closed scored days.
    pub categories: Vec<CategoryFacts>,
    /// Normalization rules that turned a difference into agreement → calls.
    pub normalization: BTreeMap<String, u64>,
    /// Evidence.
    pub evidence: EvidenceCounts,
    /// The verdict under other readings.
    pub sensitivity: Vec<Sensitivity>,
    /// Planted faults and synthetic calls.
    pub planted: PlantedFacts,
    /// Earlier registrations of the tool.
    pub earlier_windows: Vec<EarlierWindow>,
    /// The chains that were read, and how far.
    pub tails: Vec<Tail>,
    /// The ledger takes its time from the input.
    pub simulated: bool,
    /// Calls that were recorded when their day was closed already; they count on their own day.
    pub late: u64,
    /// What the answer does not say.
    pub not_claimed: Vec<String>,
    /// How to compute the same document again.
    pub recompute: String,
}

impl Verdict {
    /// The JSON Schema of the document, pretty-printed: the content of `schemas/verdict.schema.json`.
    ///
    /// # Errors
    /// The serializer's own.
    pub fn schema_text() -> Result<String, serde_json::Error> {
        let schema = schemars::schema_for!(Self);
        Ok(serde_json::to_string_pretty(&schema)? + "\n")
    }

    /// The check that decides the answer and is told first; `None` where every check passes. Among insufficient
    /// ones it is what usually takes longest.
    pub fn leading_check(&self) -> Option<&Check> {
        let severity = |r: CheckResult| match r {
            CheckResult::Error => 0,
            CheckResult::Fail => 1,
            CheckResult::Insufficient => 2,
            CheckResult::Unknown => 3,
            CheckResult::Pass => 4,
        };
        let order = |c: &Check| match c.id.as_str() {
            _ if c.result != CheckResult::Insufficient => 0,
            _ if c.reason == ReasonCode::NoClosedDay => 0,
            "min_calls" => 1,
            "days" => 2,
            _ => 3,
        };
        let open = self.checks.iter().filter(|c| c.result != CheckResult::Pass);
        open.min_by_key(|c| (severity(c.result), order(c)))
    }

    /// The check with this id.
    pub fn check(&self, id: &str) -> Option<&Check> {
        self.checks.iter().find(|c| c.id == id)
    }
}
