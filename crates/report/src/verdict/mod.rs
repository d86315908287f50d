//! A verdict in the formats of a pull request and of CI, and what every format says in the same words.

mod junit;
mod markdown;

use lastcall_decision::{Answer, CheckResult, Question, ReasonCode, Verdict};

pub use junit::verdicts_junit;
pub use markdown::{MARKDOWN_LIMIT, fleet_markdown, verdict_markdown};

/// The phases of a tool, from the first look to the removal of the old version's decoder.
pub(crate) const PHASES: [&str; 7] =
    ["observed", "scored", "cutover", "confirming", "draining", "retired", "deleted"];

/// Where a tool stands.
pub(crate) struct Phase {
    /// One of [`PHASES`].
    pub(crate) name: &'static str,
    /// Its window was ended, and no later one scores.
    pub(crate) ended: bool,
}

/// The phase that a verdict tells of; `None` where no pair is observed. Cutovers are not recorded yet.
pub(crate) fn phase(v: &Verdict) -> Option<Phase> {
    match &v.registration {
        Some(r) => Some(Phase { name: "scored", ended: r.ended.is_some() }),
        None => v.pair.as_ref().map(|_| Phase { name: "observed", ended: false }),
    }
}

/// The phase in one word: `observed`, `scored`, or `ended` where the window was ended.
pub fn phase_name(v: &Verdict) -> &'static str {
    match phase(v) {
        Some(p) if p.ended => "ended",
        Some(p) => p.name,
        None => "observed",
    }
}

/// What is asked, in words.
pub(crate) fn question(q: Question) -> &'static str {
    match q {
        Question::Cutover => "May new calls go to the candidate?",
        Question::Retire => "May the old version be switched off?",
        Question::Delete => "May the old version's decoder be removed?",
    }
}

/// The reason that is told first, and its sentence: what the headline rests on. No code where every check passes.
pub(crate) fn leading(v: &Verdict) -> (Option<ReasonCode>, &str) {
    let wanted = match v.verdict {
        Answer::Error => CheckResult::Error,
        Answer::NotReady => CheckResult::Fail,
        Answer::Insufficient | Answer::Ready => CheckResult::Insufficient,
    };
    let problem = v.problems.iter().find(|p| p.result == wanted);
    match (problem, v.leading_check()) {
        (Some(p), _) => (Some(p.reason), &p.text),
        (None, Some(c)) => (Some(c.reason), &c.text),
        (None, None) => (None, "Every check passes."),
    }
}
