//! The diff as findings in files: for SARIF, JUnit and annotations.

use std::collections::{BTreeMap, BTreeSet};

use lastcall_diff::{Change, ChangeKind, Class, Side, ToolDiff, ToolStatus};

use super::{DiffReport, name_of, pasted, refusal};
use crate::findings::{Finding, Findings, Level, Outcome, Rule, Subject};

/// Where a definition and its schemas stand in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionPlace {
    /// The file, as the user named it.
    pub file: String,
    /// JSON Pointer of the definition in the file.
    pub definition: String,
    /// JSON Pointer of the schema of the arguments in the file.
    pub input: String,
    /// JSON Pointer of the schema of the result in the file.
    pub output: Option<String>,
}

/// The places of both sides, by provider-facing name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffPlaces {
    /// Of the old definitions.
    pub old: BTreeMap<String, DefinitionPlace>,
    /// Of the new ones.
    pub new: BTreeMap<String, DefinitionPlace>,
}

/// The rule under which a version number is a finding.
const VERSION_STEP: &str = "version_step_too_small";

/// Every change that asks for something as a finding in the new file (in the old one where the tool is gone). Changes
/// that are proven compatible are none. Where the version step was asked for it alone decides: a step that is big enough
/// leaves warnings of what breaks, and passes.
pub fn diff_findings(report: &DiffReport, places: &DiffPlaces) -> Findings {
    let mut findings = Vec::new();
    let mut subjects = Vec::new();
    let announced = report.version_step.as_ref().is_some_and(|step| step.enough);
    for tool in &report.surface.tools {
        let subject = name_of(tool);
        let (place, is_new) = place(tool, places);
        let file = place.map(|p| p.file.clone()).unwrap_or_default();
        for change in super::changes(tool).filter(|change| change.class > Class::Compatible) {
            findings.push(Finding {
                rule: change.kind.as_str().to_owned(),
                level: if announced { level(change.class).min(Level::Warning) } else { level(change.class) },
                subject: subject.clone(),
                file: file.clone(),
                pointer: place.map(|p| pointer(change, p, is_new)).unwrap_or_default(),
                region: None,
                message: message(change),
                fix: change.fix.clone(),
            });
        }
        let outcome = match outcome(tool) {
            Outcome::Failed { .. } if announced => Outcome::Passed,
            outcome => outcome,
        };
        subjects.push(Subject { name: subject, file, outcome });
    }
    if let Some(step) = &report.version_step {
        let file = findings.first().map(|f: &Finding| f.file.clone()).unwrap_or_default();
        let name = "version step".to_owned();
        let mut outcome = Outcome::Passed;
        if !step.enough {
            let message = format!("{}.", step.sentence);
            findings.push(Finding {
                rule: VERSION_STEP.to_owned(),
                level: Level::Error,
                subject: name.clone(),
                file: file.clone(),
                pointer: String::new(),
                region: None,
                message: message.clone(),
                fix: None,
            });
            outcome = Outcome::Failed { kind: VERSION_STEP.to_owned(), message };
        }
        subjects.push(Subject { name, file, outcome });
    }
    let named: BTreeSet<&str> = findings.iter().map(|f| f.rule.as_str()).collect();
    let step = named.contains(VERSION_STEP).then(|| Rule {
        id: VERSION_STEP.to_owned(),
        summary: "The version number is a smaller step than the changes ask for.".to_owned(),
        help:
            "A breaking change asks for a major version, a new possibility for a minor one (--require-bump)."
                .to_owned(),
        level: Level::Error,
    });
    let kinds = ChangeKind::ALL.iter().filter(|kind| named.contains(kind.as_str())).map(|kind| rule(*kind));
    let rules = kinds.chain(step).collect();
    Findings {
        command: "diff".to_owned(),
        headline: report.surface.sentence.clone(),
        subjects,
        rules,
        findings,
    }
}

fn place<'a>(tool: &ToolDiff, places: &'a DiffPlaces) -> (Option<&'a DefinitionPlace>, bool) {
    let new = tool.new_name.as_ref().and_then(|name| places.new.get(name));
    match new {
        Some(place) => (Some(place), true),
        None => (tool.old_names.iter().find_map(|name| places.old.get(name)), false),
    }
}

/// The change's place in the file. What is gone from the new document has the pointer that it had: the nearest parent is
/// then marked.
fn pointer(change: &Change, place: &DefinitionPlace, is_new: bool) -> String {
    let at = match is_new {
        true => change.new_location.as_ref().filter(|at| !at.is_empty()).or(change.old_location.as_ref()),
        false => change.old_location.as_ref(),
    };
    let at = at.map(String::as_str).unwrap_or_default();
    let base = match change.side {
        Side::Input => &place.input,
        Side::Output => place.output.as_ref().unwrap_or(&place.definition),
        Side::Definition => &place.definition,
        // error codes stand in tool.yaml, not here
        Side::Errors => return place.definition.clone(),
    };
    format!("{base}{at}")
}

fn message(change: &Change) -> String {
    let Some(witness) = &change.witness else { return change.sentence.clone() };
    let what = match (&witness.name, &witness.value) {
        (_, None) => "recorded call",
        (Some(_), _) => "call",
        (None, _) => "value",
    };
    format!("{} A {what} that breaks: `{}`, {}", change.sentence, pasted(witness), refusal(witness))
}

fn level(class: Class) -> Level {
    match class {
        Class::Breaking => Level::Error,
        Class::NeedsReview | Class::HighRisk => Level::Warning,
        Class::UsuallyCompatible | Class::Compatible => Level::Note,
    }
}

fn outcome(tool: &ToolDiff) -> Outcome {
    if tool.status == ToolStatus::Unreadable {
        let message = tool.error.clone().unwrap_or_else(|| "it cannot be read".to_owned());
        return Outcome::CouldNotRun { message };
    }
    if tool.class.passes() {
        return Outcome::Passed;
    }
    let worst = super::changes(tool).max_by_key(|change| change.class);
    let whole = match tool.diffs.as_slice() {
        [diff] if tool.change.is_none() => Some(&diff.sentence),
        _ => worst.map(|change| &change.sentence),
    };
    Outcome::Failed { kind: tool.class.as_str().to_owned(), message: whole.cloned().unwrap_or_default() }
}

fn rule(kind: ChangeKind) -> Rule {
    Rule {
        id: kind.as_str().to_owned(),
        summary: kind.meaning().trim().to_owned(),
        help: format!(
            "{} How bad that is depends on the change: `breaking` comes with a call that is refused, `needs_review` is \
             neither proven nor refuted, `high_risk` loses or changes a meaning without a refusal.",
            kind.meaning().trim()
        ),
        level: Level::Warning,
    }
}
