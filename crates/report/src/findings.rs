//! What a check found, in the one form that every machine format shows: SARIF, JUnit, GitHub annotations, Markdown.
//! `lastcall lint` and `lastcall diff` both speak it. Knows nothing of how a finding was made.

mod github;
mod junit;
mod markdown;
mod region;
mod sarif;

use std::collections::BTreeMap;

pub use github::github;
pub use junit::junit;
pub use markdown::{code, markdown, prose, text as markdown_text, within};
pub use region::{Region, regions};
pub use sarif::sarif;

/// How bad a finding is, the mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Worth knowing.
    Note,
    /// Worth a look before release.
    Warning,
    /// Stands in the way.
    Error,
}

impl Level {
    /// `note`, `warning` or `error`: SARIF's words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A rule: what is looked for, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable id, for instance `required_added`.
    pub id: String,
    /// One sentence.
    pub summary: String,
    /// Why it matters and what to do, in a few sentences.
    pub help: String,
    /// The level where nothing else is said.
    pub level: Level,
}

/// One finding at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's id.
    pub rule: String,
    /// How bad it is here.
    pub level: Level,
    /// What was checked: a tool's name or a contract id; a [`Subject`] has the same.
    pub subject: String,
    /// The file, as the user named it; empty when it came from no file.
    pub file: String,
    /// JSON Pointer into that file; empty for the whole of it.
    pub pointer: String,
    /// Where that is in the text; [`Findings::locate`] fills it in.
    pub region: Option<Region>,
    /// What is the matter, in one sentence or two.
    pub message: String,
    /// What to do, when there is something.
    pub fix: Option<String>,
}

/// How the check of one subject ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing stands in the way.
    Passed,
    /// Something does.
    Failed {
        /// One word for it, for instance `breaking`.
        kind: String,
        /// One sentence.
        message: String,
    },
    /// It could not be checked.
    CouldNotRun {
        /// Place, what is wrong, next step.
        message: String,
    },
}

/// One thing that was checked, also when nothing was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// A tool's name or a contract id.
    pub name: String,
    /// Its file; empty when it came from no file.
    pub file: String,
    /// How it ended.
    pub outcome: Outcome,
}

/// Everything that one run of a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The command, for instance `diff`.
    pub command: String,
    /// One sentence over everything.
    pub headline: String,
    /// What was checked, in order.
    pub subjects: Vec<Subject>,
    /// The rules that findings name.
    pub rules: Vec<Rule>,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Findings {
    /// Fills in where each finding stands in the text of its file; `texts` is file → text. A pointer that is not in
    /// the text gets the place of its nearest parent that is.
    pub fn locate(&mut self, texts: &BTreeMap<String, String>) {
        for (file, text) in texts {
            let (at, pointers): (Vec<usize>, Vec<&str>) = self
                .findings
                .iter()
                .enumerate()
                .filter(|(_, finding)| finding.file == *file)
                .map(|(n, finding)| (n, finding.pointer.as_str()))
                .unzip();
            for (n, region) in at.into_iter().zip(regions(text, &pointers)) {
                if let Some(finding) = self.findings.get_mut(n) {
                    finding.region = Some(region);
                }
            }
        }
    }

    /// The same with [`crate::plain`] text and names, for formats that show them as they are. Files and pointers
    /// keep what they name: SARIF writes both in ways of its own.
    fn plain(&self) -> Self {
        use crate::plain;
        let mut all = self.clone();
        all.headline = plain(&all.headline);
        for subject in &mut all.subjects {
            subject.name = plain(&subject.name);
            match &mut subject.outcome {
                Outcome::Passed => {}
                Outcome::Failed { message, .. } | Outcome::CouldNotRun { message } => {
                    *message = plain(message)
                }
            }
        }
        for finding in &mut all.findings {
            finding.subject = plain(&finding.subject);
            finding.message = plain(&finding.message);
            finding.fix = finding.fix.as_deref().map(plain);
        }
        all
    }

    /// The findings, the worst first, then by file, place and rule.
    pub fn worst_first(&self) -> Vec<&Finding> {
        let mut all: Vec<&Finding> = self.findings.iter().collect();
        all.sort_by(|a, b| {
            let place = |f: &Finding| f.region.map_or((0, 0), |r| (r.line, r.column));
            b.level
                .cmp(&a.level)
                .then_with(|| a.file.cmp(&b.file))
                .then_with(|| place(a).cmp(&place(b)))
                .then_with(|| a.pointer.cmp(&b.pointer))
                .then_with(|| a.rule.cmp(&b.rule))
        });
        all
    }
}

impl Finding {
    /// The message and what to do, as one text.
    pub fn full_message(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{} {}", sentence(&self.message), sentence(fix)),
            None => sentence(&self.message),
        }
    }
}

/// The text with a full stop at its end, unless it ends a sentence already.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    let ended = text.is_empty() || text.ends_with(['.', '!', '?', ':', '}']);
    if ended { text.to_owned() } else { format!("{text}.") }
}
