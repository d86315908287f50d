//! What `lastcall diff` answers, as one document, and how it is shown: text, Markdown, findings, a changelog entry.

mod changelog;
mod findings;
mod markdown;
mod text;

use lastcall_diff::{
    Bump, Change, Class, ContractDiff, Fact, FactAnswer, SurfaceDiff, ToolDiff, ToolStatus, WitnessCall,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use changelog::diff_changelog;
pub use findings::{DefinitionPlace, DiffPlaces, diff_findings};
pub use markdown::diff_markdown;
pub use text::diff_text;

/// The step between two version numbers, held against what the changes ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionStep {
    /// The step that was made; `none`: not a later version.
    pub made: Bump,
    /// The step that the changes ask for.
    pub asked: Bump,
    /// Whether it is big enough.
    pub enough: bool,
    /// The smallest version that is, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<String>,
    /// The same in words.
    pub sentence: String,
}

/// The whole answer: one tool, or every tool of two surfaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffReport {
    /// 1.
    pub schema_version: u32,
    /// What was asked about, as the user named it.
    pub old: String,
    /// And against what.
    pub new: String,
    /// The answer.
    #[serde(flatten)]
    pub surface: SurfaceDiff,
    /// Whether the step between the two version numbers is as big as the changes ask for, where that was asked
    /// (`--require-bump`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_step: Option<VersionStep>,
    /// The `lastcall try` command that asks the same of recorded calls, where there is one. Not part of the document.
    #[serde(skip)]
    pub try_command: Option<String>,
}

impl DiffReport {
    /// The answer for two surfaces.
    pub fn of_surfaces(old: &str, new: &str, surface: SurfaceDiff) -> Self {
        Self {
            schema_version: 1,
            old: old.to_owned(),
            new: new.to_owned(),
            surface,
            version_step: None,
            try_command: None,
        }
    }

    /// The answer for one pair; `names` are the tool's names on both sides.
    pub fn of_pair(old: &str, new: &str, names: (&str, &str), diff: ContractDiff) -> Self {
        let tool = ToolDiff {
            status: ToolStatus::Kept,
            old_names: vec![names.0.to_owned()],
            new_name: Some(names.1.to_owned()),
            class: diff.class,
            bump: diff.bump,
            handling: diff.handling,
            rename: None,
            change: None,
            error: None,
            diffs: Vec::new(),
        };
        let surface = SurfaceDiff {
            class: diff.class,
            bump: diff.bump,
            handling: diff.handling,
            model_visible: diff.model_visible,
            sentence: diff.sentence.clone(),
            tools: vec![ToolDiff { diffs: vec![diff], ..tool }],
        };
        let try_command = Some(format!("lastcall try {old} {new} CALLS"));
        Self { try_command, ..Self::of_surfaces(old, new, surface) }
    }

    /// The JSON Schema of the document, pretty-printed: the content of `schemas/diff.schema.json`.
    ///
    /// # Errors
    /// The serializer's own.
    pub fn json_schema() -> Result<String, serde_json::Error> {
        let mut schema = schemars::schema_for!(Self).to_value();
        if let Some(map) = schema.as_object_mut() {
            map.insert("title".to_owned(), json!("What lastcall diff answers"));
        }
        crate::to_json(&schema)
    }

    /// Whether nothing that is known stands in the way.
    pub fn passes(&self) -> bool {
        self.surface.class.passes()
    }

    /// Whether a tool could not be read.
    pub fn unreadable(&self) -> bool {
        self.surface.tools.iter().any(|tool| tool.status == ToolStatus::Unreadable)
    }

    /// Whether a tool that could be read stands in the way.
    pub fn known_to_fail(&self) -> bool {
        self.surface.tools.iter().any(|tool| tool.status != ToolStatus::Unreadable && !tool.class.passes())
    }

    /// Whether this is one pair, not two surfaces.
    fn is_pair(&self) -> bool {
        matches!(self.surface.tools.as_slice(), [one] if one.change.is_none() && one.diffs.len() == 1)
    }
}

/// What a tool is called: its new name, else its old one; an arrow where they differ.
fn name_of(tool: &ToolDiff) -> String {
    let old = tool.old_names.join(" + ");
    match &tool.new_name {
        Some(new) if old.is_empty() || old == *new => new.clone(),
        Some(new) => format!("{old} → {new}"),
        None => old,
    }
}

/// The changes of a tool: of the surface itself, then inside, in order.
fn changes(tool: &ToolDiff) -> impl Iterator<Item = &Change> {
    tool.change.iter().chain(tool.diffs.iter().flat_map(|diff| &diff.changes))
}

/// A class as people say it.
pub(crate) fn class_words(class: Class) -> &'static str {
    match class {
        Class::Compatible => "compatible",
        Class::UsuallyCompatible => "usually compatible",
        Class::HighRisk => "high risk",
        Class::NeedsReview => "needs review",
        Class::Breaking => "breaking",
    }
}

/// What a tool's status means, for those that are not simply kept.
fn status_words(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Kept => "kept",
        ToolStatus::Renamed => "probably renamed",
        ToolStatus::Merged => "probably merged",
        ToolStatus::Added => "added",
        ToolStatus::Removed => "removed",
        ToolStatus::Unreadable => "cannot be read",
    }
}

/// The call as one line of JSON that `lastcall try` reads; a result or a bare schema's value as it is. A recorded call
/// whose values are not to be shown is named by its place.
fn pasted(witness: &WitnessCall) -> String {
    match (&witness.name, &witness.value) {
        // by hand: a reader looks for the name first
        (Some(name), Some(value)) => format!("{{\"name\":{},\"arguments\":{value}}}", json!(name)),
        (None, Some(value)) => value.to_string(),
        (_, None) => witness.place.clone().unwrap_or_else(|| "a recorded call".to_owned()),
    }
}

/// What refuses the call.
fn refusal(witness: &WitnessCall) -> String {
    if witness.keyword == "name" {
        return "no tool has this name any more".to_owned();
    }
    let at = if witness.pointer.is_empty() { String::new() } else { format!(" at `{}`", witness.pointer) };
    let location =
        if witness.location.is_empty() { String::new() } else { format!(" (`{}`)", witness.location) };
    format!("refused{at} by `{}`{location}", witness.keyword)
}

/// Where a witness comes from, in words.
fn origin(witness: &WitnessCall) -> String {
    use lastcall_diff::WitnessFrom as From;
    let said = match witness.from {
        From::Recorded if witness.value.is_none() => {
            "a recorded call; its values are shown with --show-values"
        }
        From::Recorded => match &witness.place {
            Some(place) => return format!("a recorded call, {place}"),
            None => "a recorded call",
        },
        From::Proof | From::Subtracted => "found by the proof",
        From::Example => "from a value that one of the schemas names",
        From::Boundary => "a value at a limit of one of the schemas",
        From::Generated => "made from the schema",
    };
    said.to_owned()
}

/// Distinct calls that are refused, of the worst changes, at most a few; each with everything that refuses it.
fn witnesses(tool: &ToolDiff) -> Vec<Vec<&WitnessCall>> {
    const MOST: usize = 3;
    let mut out: Vec<Vec<&WitnessCall>> = Vec::new();
    for witness in changes(tool).filter_map(|change| change.witness.as_ref()) {
        let full = out.len() >= MOST;
        let known = out.iter_mut().find(|seen| seen.first().is_some_and(|s| pasted(s) == pasted(witness)));
        match known {
            Some(seen) if seen.iter().any(|s| refusal(s) == refusal(witness)) => {}
            Some(seen) => seen.push(witness),
            None if full => {}
            None => out.push(vec![witness]),
        }
    }
    out
}

/// Everything that refuses one call.
fn refusals(same: &[&WitnessCall]) -> String {
    same.iter().map(|witness| refusal(witness)).collect::<Vec<_>>().join("; ")
}

/// The sentence without the class in front, where the class stands beside it.
fn without_class(sentence: &str, class: Class) -> &str {
    let words = class_words(class);
    let rest = sentence
        .get(words.len()..)
        .filter(|_| sentence.get(..words.len()).is_some_and(|head| head.eq_ignore_ascii_case(words)));
    rest.and_then(|rest| rest.strip_prefix(": ")).unwrap_or(sentence)
}

/// The tools, the worst first.
fn worst_first(surface: &SurfaceDiff) -> Vec<&ToolDiff> {
    let mut tools: Vec<&ToolDiff> = surface.tools.iter().collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.class));
    tools
}

/// A fact in words: what is known over one model.
fn fact_words(fact: &Fact, what: &str) -> String {
    match fact.answer {
        FactAnswer::Proven => format!("proven: no {what} is refused"),
        FactAnswer::Refuted => format!("a {what} is refused"),
        FactAnswer::Unknown => match &fact.why {
            Some(why) => format!("unknown: {why}"),
            None => "unknown: neither a proof nor a witness was found".to_owned(),
        },
    }
}

/// A value on one line, cut.
fn short(value: &Value) -> String {
    const MOST: usize = 80;
    let text = value.to_string();
    let kept: String = text.chars().take(MOST).collect();
    if kept.len() < text.len() { format!("{kept}…") } else { text }
}

/// Old and new value of a change, where they differ as far as they are shown.
fn values(change: &Change) -> Option<String> {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if short(old) == short(new) => None,
        (Some(old), Some(new)) => Some(format!("{} → {}", short(old), short(new))),
        (Some(old), None) => Some(format!("{} → nothing", short(old))),
        (None, Some(new)) => Some(format!("nothing → {}", short(new))),
        (None, None) => None,
    }
}

/// The places in both documents, one if they are the same. The root says nothing.
fn locations(change: &Change) -> Option<String> {
    let some = |at: &Option<String>| at.clone().filter(|at| !at.is_empty());
    match (some(&change.old_location), some(&change.new_location)) {
        (Some(old), Some(new)) if old == new => Some(old),
        (Some(old), Some(new)) => Some(format!("{old} → {new}")),
        (Some(old), None) => Some(format!("{old} (old)")),
        (None, Some(new)) => Some(format!("{new} (new)")),
        (None, None) => None,
    }
}

/// The step that fits the answer.
fn next_step(report: &DiffReport) -> String {
    let tried: u64 = report.surface.tools.iter().flat_map(|t| &t.diffs).map(|d| d.recorded).sum();
    let calls = if tried > 0 {
        String::new()
    } else {
        let command = report.try_command.as_deref().filter(|_| report.is_pair()).unwrap_or("lastcall try");
        format!("`{command}` shows which recorded calls it meets; ")
    };
    match report.surface.class {
        Class::Breaking => format!(
            "{calls}publish it beside the old version, and let `lastcall decide` say when the old one can go"
        ),
        Class::NeedsReview if report.unreadable() => {
            "mend what cannot be read, and ask again; what was read is answered above".to_owned()
        }
        Class::NeedsReview => {
            format!("{calls}ask the owner to look at what is neither proven nor refuted")
        }
        Class::HighRisk => format!("{calls}replay them before it goes live, and ask the owner"),
        Class::UsuallyCompatible | Class::Compatible => match report.surface.bump {
            Bump::None => "nothing to do".to_owned(),
            bump => format!("publish it as a {bump} version"),
        },
    }
}

/// One sentence on version and handling.
fn demands(bump: Bump, handling: lastcall_diff::Handling) -> String {
    format!("version step {bump}; {}", handling.in_words())
}
