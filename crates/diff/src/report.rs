//! What a diff answers: for one contract, for one schema, for a whole surface. Data only; rendering is elsewhere.

use lastcall_contract::{ErrorCode, RiskLevel, SideEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::change::{Change, ChangeKind, RenameHint, WitnessCall};
use crate::class::{Bump, Class, Handling};

/// Which way values flow through a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Callers send: every value of the old schema has to fit the new one.
    Input,
    /// Callers receive: every value of the new schema has to fit the old one.
    Output,
}

impl Direction {
    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "input" => Some(Self::Input),
            "output" => Some(Self::Output),
            _ => None,
        }
    }
}

/// One of three answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactAnswer {
    /// No value is refused: proven.
    Proven,
    /// A value is refused: attached.
    Refuted,
    /// Neither.
    Unknown,
}

/// Whether every value of one model that flows today is taken tomorrow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// The answer.
    pub answer: FactAnswer,
    /// The value that refutes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<WitnessCall>,
    /// Why it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The two facts that are kept apart: only the first makes `breaking`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Over what callers send: declared properties only.
    pub declared: Fact,
    /// Over what they could send: undeclared properties of open objects too.
    pub open: Fact,
    /// The same the other way round over the open model, where both ways are proven the schemas accept the same values.
    pub reverse: Fact,
}

impl Facts {
    /// Proven to accept exactly the same values.
    pub fn same_values(&self) -> bool {
        self.open.answer == FactAnswer::Proven && self.reverse.answer == FactAnswer::Proven
    }
}

/// What `tool.yaml` knows of a tool and a schema cannot say. The default is what is known of a bare definition: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFacts {
    /// The risk, where one is stated or has to be assumed.
    pub risk_level: Option<RiskLevel>,
    /// What a call does to the world.
    pub side_effect: Option<SideEffect>,
    /// Domains that ask for a named sign-off.
    pub domains: Vec<String>,
    /// The agents known to use it.
    pub consumers: Vec<String>,
    /// Its error codes.
    pub errors: Vec<ErrorCode>,
    /// Runs, queues or checkpoints that still hold calls of the old contract.
    pub historical_sessions: bool,
}

/// What a diff is told beside the two contracts.
#[derive(Clone, Debug, Default)]
pub struct DiffOptions<'a> {
    /// Facts about the old version.
    pub old: ToolFacts,
    /// Facts about the new version.
    pub new: ToolFacts,
    /// Recorded arguments (input) of the old contract: tried first as witnesses, and counted.
    pub recorded: &'a [Value],
    /// The runtime, old and new, fills declared defaults before it validates: what counts is whether the filled call is
    /// accepted (see [`crate::Operand::filling`]). A new required argument with a default is then `high_risk`, not
    /// `breaking`, where that is proven.
    pub fills_defaults: bool,
    /// Seed of the generated values; the same seed gives the same diff.
    pub seed: u64,
}

/// The diff of two contracts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractDiff {
    /// Id of the old contract, or the tool's name where there is no id.
    pub old: String,
    /// Id of the new contract, or the tool's name where there is no id.
    pub new: String,
    /// The greatest class of the changes.
    pub class: Class,
    /// The version step that the whole asks for.
    pub bump: Bump,
    /// What to do before it goes live.
    pub handling: Handling,
    /// Whether the model reads something that changed.
    pub model_visible: bool,
    /// The whole in one sentence.
    pub sentence: String,
    /// Why a major is demanded beyond the changes themselves, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub major_because: Vec<String>,
    /// Both facts over the arguments.
    pub input: Facts,
    /// Both facts over the result, where both contracts declare one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Facts>,
    /// Every change, worst first.
    pub changes: Vec<Change>,
    /// What only the owner can answer, one question each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
    /// Worth knowing, no change: risks of the open model and the like.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How many recorded calls were tried.
    pub recorded: u64,
    /// How many of them the old contract takes and the new one refuses.
    pub recorded_refused: u64,
}

impl ContractDiff {
    /// Every witness in it, those of the facts too.
    pub fn witnesses_mut(&mut self) -> impl Iterator<Item = &mut WitnessCall> {
        let facts = [Some(&mut self.input), self.output.as_mut()].into_iter().flatten();
        let facts = facts.flat_map(|f| [&mut f.declared, &mut f.open, &mut f.reverse]);
        facts
            .filter_map(|fact| fact.witness.as_mut())
            .chain(self.changes.iter_mut().filter_map(|change| change.witness.as_mut()))
    }

    /// The call that breaks, where one does: of the worst change that has one.
    pub fn witness(&self) -> Option<&WitnessCall> {
        self.changes.iter().find_map(|change| change.witness.as_ref())
    }

    /// Whether the class rests on a proof that no declared value is refused, in both directions of flow, and everything
    /// was compared.
    pub fn proven(&self) -> bool {
        let proven = |facts: &Facts| facts.declared.answer == FactAnswer::Proven;
        let cut = self.changes.iter().any(|change| change.kind == ChangeKind::CutOff);
        !cut && proven(&self.input) && self.output.as_ref().is_none_or(proven)
    }
}

/// What became of a tool of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// On both sides under one name.
    Kept,
    /// On both sides, under another name (inferred: see `rename`).
    Renamed,
    /// Several old tools became one.
    Merged,
    /// Only on the new side.
    Added,
    /// Only on the old side.
    Removed,
    /// One side cannot be read: see `error`.
    Unreadable,
}

/// One tool of a surface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDiff {
    /// What became of it.
    pub status: ToolStatus,
    /// Its old names: none for an added tool, several for a merged one.
    pub old_names: Vec<String>,
    /// Its new name; none for a removed tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// Its class. An unreadable tool needs review.
    pub class: Class,
    /// Its version step.
    pub bump: Bump,
    /// What to do before it goes live.
    pub handling: Handling,
    /// Why the two are taken for one tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rename: Option<RenameHint>,
    /// The changes inside, one diff for each old tool; empty for added, removed and unreadable tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<ContractDiff>,
    /// The change of the surface itself (added, removed, renamed, merged); absent for a kept tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Why it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The diff of two surfaces: `tools/list` documents or toolsets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SurfaceDiff {
    /// The greatest class of the tools.
    pub class: Class,
    /// The greatest version step.
    pub bump: Bump,
    /// The greatest handling.
    pub handling: Handling,
    /// Whether a model reads something that changed.
    pub model_visible: bool,
    /// The whole in one sentence.
    pub sentence: String,
    /// Every tool, by name.
    pub tools: Vec<ToolDiff>,
}
