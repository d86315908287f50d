//! What `lastcall try` found: which calls of a file, a folder or a ledger a changed definition would refuse or change.
//! Never a verdict: nothing was fixed before these calls were seen.

use std::collections::BTreeMap;

use lastcall_event::Day;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the document's shape.
pub const TRY_FORMAT: u32 = 1;

/// The whole trial. `calls = agreed + disagreed + both_rejected + excluded + unresolved`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryReport {
    /// Version of this shape: 1.
    pub format: u32,
    /// The epoch: pair, configuration and comparator version. Results of the same epoch can be held together.
    pub epoch: String,
    /// The tool, as the old definition names it.
    pub tool: String,
    /// The old definition: a contract id or a file.
    pub old: String,
    /// The new definition.
    pub new: String,
    /// Where the calls came from.
    pub source: String,
    /// Calls that were compared or could have been.
    pub calls: u64,
    /// Calls of the source that are of other tools.
    pub other_calls: u64,
    /// Calls of this tool that name another contract than the old one, left out.
    #[serde(default)]
    pub other_contract: u64,
    /// Repeats of a call id within a day under the same contract, left out.
    #[serde(default)]
    pub repeats: u64,
    /// Records that could not be decoded.
    pub undecodable: u64,
    /// No difference of warn or block.
    pub agreed: u64,
    /// A difference of warn or block.
    pub disagreed: u64,
    /// Of these, refused by the new definition.
    pub refused: u64,
    /// Of these, accepted, but read otherwise.
    pub changed: u64,
    /// Refused by both.
    pub both_rejected: u64,
    /// Left out by a rule.
    pub excluded: u64,
    /// Nobody can say.
    pub unresolved: u64,
    /// Calls by reason, of those both rejected, excluded or unresolved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, u64>,
    /// By category and pointer, the worst first.
    pub categories: Vec<TryCategory>,
    /// By agent, prompt version and model, the most affected first; empty where no call names any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<TryCaller>,
    /// By UTC day; empty where no call has a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<TryDay>,
    /// The worst calls, at most a few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<TryExample>,
    /// Normalization rules that turned a difference into agreement → calls.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, u64>,
    /// The output schema is another one: what callers receive may break, and no call's arguments show that.
    #[serde(default)]
    pub output_changed: bool,
    /// What a burn-in over these days would have said, where a tier or plan was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_in: Option<TryBurnIn>,
    /// Remarks, such as that no outcome was compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One category at one pointer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryCategory {
    /// Category.
    pub category: String,
    /// `block`, `warn` or `info`.
    pub severity: String,
    /// Pointer into the arguments or the result.
    pub pointer: String,
    /// Schema keyword, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// Pointer into the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// What else is known, such as the likely new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Calls.
    pub calls: u64,
    /// Of these, refused for it.
    pub refused: u64,
}

/// Whoever made calls: an agent with a prompt version and a model, as far as the calls name them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryCaller {
    /// Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Prompt version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_version: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Calls.
    pub calls: u64,
    /// Of these, refused.
    pub refused: u64,
    /// Of these, accepted, but read otherwise.
    pub changed: u64,
}

/// One UTC day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryDay {
    /// The day.
    #[schemars(with = "String")]
    pub day: Day,
    /// Compared calls.
    pub compared: u64,
    /// Disagreements.
    pub disagreed: u64,
    /// Of these, refused.
    pub refused: u64,
    /// Disagreements with a difference of severity block.
    pub blocks: u64,
    /// Calls of that day that nobody can judge.
    pub unresolved: u64,
}

/// What a burn-in over these calls would have said, had it been registered before the first of them. Never a verdict,
/// and the word for a passed burn-in is never used: nothing was fixed beforehand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryBurnIn {
    /// The plan's tier.
    pub tier: String,
    /// B, such as `1 %`.
    pub ceiling: String,
    /// Compared calls that the plan asks for.
    pub min_calls: u64,
    /// Compared calls of the days that it would have scored.
    pub compared: u64,
    /// One sentence.
    pub says: String,
    /// The days that it would have scored, without holes.
    pub days: Vec<TryScoredDay>,
    /// Its checks, in their order.
    pub checks: Vec<TryCheck>,
}

/// A day that a burn-in would have scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryScoredDay {
    /// The day.
    #[schemars(with = "String")]
    pub day: Day,
    /// Compared calls.
    pub compared: u64,
    /// Disagreements.
    pub disagreed: u64,
    /// Whether D would have been below B; `None`: no compared call, so nobody knows.
    pub below: Option<bool>,
}

/// One check of a burn-in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryCheck {
    /// Id: `ceiling`, `min_calls`, `final_block_free`, `decay`, `days`.
    pub id: String,
    /// `passed`, `failed`, or `lacked` where the calls are too few to say.
    pub would_have: String,
    /// What it saw.
    pub value: String,
    /// What it asks.
    pub threshold: String,
    /// A sentence.
    pub text: String,
}

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryExample {
    /// The call's id.
    pub call_id: String,
    /// Where it stands: `calls.jsonl:17`.
    pub place: String,
    /// Its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its prompt version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_version: Option<String>,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub day: Option<Day>,
    /// Its differences.
    pub findings: Vec<TryFinding>,
}

/// One difference in one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryFinding {
    /// Category.
    pub category: String,
    /// `block`, `warn` or `info`.
    pub severity: String,
    /// Pointer.
    pub pointer: String,
    /// The call was refused for it.
    pub refused: bool,
    /// Schema keyword.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// Pointer into the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// What else is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The value at the pointer as JSON text; only where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl TryReport {
    /// Compared calls.
    pub fn compared(&self) -> u64 {
        self.agreed.saturating_add(self.disagreed)
    }

    /// Whether a call would be refused or changed.
    pub fn something_would_change(&self) -> bool {
        self.disagreed > 0
    }

    /// Whether there were calls and not one of them agreed: a burn-in of such calls cannot pass.
    pub fn no_call_could_pass(&self) -> bool {
        self.calls > 0 && self.agreed == 0
    }

    /// What else the source held, in words; `None`: nothing.
    pub fn beside(&self) -> Option<String> {
        let rest: Vec<String> = [
            (self.both_rejected, "refused by both"),
            (self.excluded, "left out by a rule"),
            (self.unresolved, "could not be judged"),
            (self.other_contract, "of another contract"),
            (self.repeats, if self.repeats == 1 { "repeat of a call id" } else { "repeats of call ids" }),
            (self.other_calls, "of other tools"),
            (self.undecodable, "could not be read"),
        ]
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {what}", lastcall_decision::grouped(*n)))
        .collect();
        (!rest.is_empty()).then(|| rest.join(", "))
    }

    /// The JSON Schema of the document, pretty-printed: the content of `schemas/try.schema.json`.
    ///
    /// # Errors
    /// The serializer's own.
    pub fn schema_text() -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(&schemars::schema_for!(Self))? + "\n")
    }

    /// One sentence.
    pub fn headline(&self) -> String {
        use lastcall_decision::grouped;
        let calls = |n: u64| format!("{} {}", grouped(n), if n == 1 { "call" } else { "calls" });
        let unknown = match self.unresolved {
            0 => String::new(),
            n => format!(" {} could not be judged.", calls(n)),
        };
        if self.calls == 0 {
            return format!("No call of {} was found.", self.tool);
        }
        if self.compared() == 0 {
            return format!("None of {} could be compared.{unknown}", calls(self.calls));
        }
        if self.disagreed == 0 {
            let output = match self.output_changed {
                true => " The output schema changed: `lastcall diff` says what that breaks.",
                false => "",
            };
            return format!(
                "None of {} would be refused or changed.{unknown}{output}",
                calls(self.compared())
            );
        }
        format!(
            "{} of {} would be refused, {} changed.{unknown}",
            grouped(self.refused),
            calls(self.compared()),
            grouped(self.changed)
        )
    }
}
