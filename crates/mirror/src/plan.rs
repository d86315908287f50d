//! What would be done with calls, said without doing it.

use lastcall_event::Suppression;

use crate::mirror::Mirror;
use crate::settings::Limits;
use crate::tool::Candidate;

impl Mirror {
    /// What is done with the calls of each tool that the settings name, by tool: a line a candidate. Holds no secret.
    pub fn plan(&self) -> Vec<String> {
        let mut tools: Vec<_> = self.tools.values().collect();
        tools.sort_by(|a, b| a.id.cmp(&b.id));
        let mut out = Vec::new();
        for tool in tools {
            let limits = tool.gate.limits();
            out.push(format!("{}: {}", tool.id, said(&limits)));
            out.extend(tool.candidates.iter().map(|candidate| format!("  {}", line(candidate))));
            if let Some(rerun) = &tool.rerun {
                let share = rerun.share * 100.0;
                out.push(format!("  rerun of {share} % of the sessions: {}", line(&rerun.candidate)));
            }
        }
        out
    }
}

fn said(limits: &Limits) -> String {
    if !limits.on {
        return "off, its rows say not_run".to_owned();
    }
    let rate = limits.rate.map_or_else(|| "no rate limit".to_owned(), |rate| format!("{rate} a second"));
    let age = limits.max_age.map_or_else(String::new, |age| format!(", shed when older than {age:?}"));
    format!(
        "{} calls at once, {rate}, {:?} for each, {} % of the sessions{age}",
        limits.concurrency,
        limits.timeout,
        limits.sample * 100.0
    )
}

fn line(candidate: &Candidate) -> String {
    let name = |suppression: Suppression| match suppression {
        Suppression::Replica => "a replica",
        Suppression::Snapshot => "a snapshot",
        Suppression::DryRun => "a dry run, once it says that it offers one",
        Suppression::Sandbox => "a sandbox",
        Suppression::Stub => "a stub",
        Suppression::NotExecuted => "",
    };
    match candidate.runner.suppression() {
        Suppression::NotExecuted => format!("{}: never executed", candidate.shown),
        suppression => format!("{}: {} as {}", candidate.shown, candidate.asked, name(suppression)),
    }
}
