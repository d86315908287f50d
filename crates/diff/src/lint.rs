//! Lint: what a definition, a list of tools or a registry leaves unsaid, says twice or cannot mean.
//!
//! Pure. Each rule has an id, a severity, a reason and a next step; where no machine can judge, the rule says "ask the
//! owner". Nothing here proves a change harmless: that is the diff's work.

mod checklist;
mod compat;
mod edit;
mod keywords;
mod nodes;
mod pattern;
mod provider;
mod registry;
mod rules;
mod shapes;
mod text;
mod values;
mod words;

use lastcall_contract::{Definition, DefinitionError, SideEffect};
use serde_json::Value;

use crate::doc::SchemaDoc;

pub use crate::profile::Profile;
pub use checklist::{Ask, CHECKLISTS, Covered, List};
pub use edit::{Edit, apply};
pub use registry::{lint_registry, problem_place};
pub use rules::{Group, RULES, Rule, RuleId, Severity};

/// One finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The rule.
    pub rule: &'static Rule,
    /// How bad it is here; never worse than the rule's own.
    pub severity: Severity,
    /// The tool or contract.
    pub subject: String,
    /// The file, relative to the registry; empty for the file that was given.
    pub file: String,
    /// JSON Pointer into that file.
    pub pointer: String,
    /// Line in the file, where no pointer leads to it.
    pub line: Option<u32>,
    /// What is the matter, one sentence without its full stop.
    pub message: String,
    /// What to do, one sentence without its full stop.
    pub fix: String,
    /// The textual change that mends it, where that is safe.
    pub edits: Vec<Edit>,
}

/// What is known about a tool besides its definition.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// What the registry states about its side effect.
    pub side_effect: Option<SideEffect>,
    /// It stands in a registry: `not-in-registry` stays silent.
    pub registered: bool,
    /// Providers whose requirements apply, besides those that the definition asks for itself.
    pub profiles: Vec<Profile>,
}

/// Collects findings about one definition.
pub(crate) struct Report<'a> {
    subject: &'a str,
    file: &'a str,
    /// Pointer of the definition in its file.
    at: &'a str,
    pub(crate) found: Vec<Found>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(subject: &'a str, file: &'a str, at: &'a str) -> Self {
        Self { subject, file, at, found: Vec::new() }
    }

    pub(crate) fn add(&mut self, id: RuleId, pointer: &str, message: impl Into<String>) -> &mut Found {
        let rule = id.rule();
        self.found.push(Found {
            rule,
            severity: rule.severity,
            subject: self.subject.to_owned(),
            file: self.file.to_owned(),
            pointer: format!("{}{pointer}", self.at),
            line: None,
            message: message.into(),
            fix: rule.fix.to_owned(),
            edits: Vec::new(),
        });
        // just pushed, so there is one
        let last = self.found.len() - 1;
        &mut self.found[last]
    }
}

/// Lints one definition. Findings are in the order of the rules, then of the places.
pub fn lint_definition(definition: &Definition, known: &Known) -> Vec<Found> {
    let mut report = Report::new(&definition.name, "", &definition.pointer);
    let doc = SchemaDoc::of_draft(definition.input_schema.clone(), definition.draft);
    let read = nodes::Read::new(definition, &doc);
    text::check(&read, known, &mut report);
    keywords::check(&read, &mut report);
    values::check(&read, &mut report);
    shapes::check(&read, &mut report);
    pattern::check(&read, &mut report);
    provider::check(&read, &known.profiles, &mut report);
    if !known.registered {
        report.add(
            RuleId::NotInRegistry,
            "",
            "this definition stands in no registry: no stable id, version, owner, risk level or error codes are known",
        );
    }
    for found in &mut report.found {
        let edits = std::mem::take(&mut found.edits);
        found.edits = edits.into_iter().map(|edit| edit.below(&definition.pointer)).collect();
    }
    sorted(report.found)
}

/// Lints what several tools of one list say together.
pub fn lint_list(names: &[(&str, &str)]) -> Vec<Found> {
    let mut found = Vec::new();
    for (n, (name, pointer)) in names.iter().enumerate().filter(|(_, (name, _))| !name.is_empty()) {
        let mut report = Report::new(name, "", pointer);
        for (other, _) in names.iter().take(n) {
            if other == name {
                report.add(RuleId::ToolNameRepeated, "/name", format!("two tools have the name `{name}`"));
                break;
            }
            if words::folded(other) == words::folded(name) {
                let message = format!("`{name}` and `{other}` differ in spelling only");
                report.add(RuleId::NamesDifferInSpelling, "/name", message);
                break;
            }
        }
        found.extend(report.found);
    }
    found
}

/// The finding for a definition that cannot be read at all.
pub fn unreadable(error: &DefinitionError, subject: &str) -> Found {
    let mut report = Report::new(subject, "", "");
    report.add(RuleId::UnreadableDefinition, &error.pointer, error.message.clone()).fix = error.next.clone();
    report.found.swap_remove(0)
}

fn sorted(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by(|a, b| {
        a.file
            .cmp(&b.file)
            .then_with(|| a.rule.id.cmp(b.rule.id))
            .then_with(|| a.pointer.cmp(&b.pointer))
            .then_with(|| a.message.cmp(&b.message))
    });
    found.dedup();
    found
}

/// A value for a message: at most 60 characters.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(59).collect::<String>() + "…" }
}

/// Names for a message: at most six.
pub(crate) fn listed(names: &[&str]) -> String {
    let mut out: Vec<String> = names.iter().take(6).map(|n| format!("`{n}`")).collect();
    if names.len() > 6 {
        out.push(format!("{} more", names.len() - 6));
    }
    out.join(", ")
}
