//! What candidates say of themselves, without a call.

use std::time::Duration;

use lastcall_event::Suppression;

use crate::answer::Failure;
use crate::mirror::Mirror;
use crate::suppress::Runner;
use crate::tool::Candidate;

/// How long a candidate has to say what it offers.
const PATIENCE: Duration = Duration::from_secs(15);

/// What was found of one candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The tool.
    pub tool: String,
    /// The candidate's contract; of a rerun without one `current`.
    pub contract: String,
    /// It is the current version, run again.
    pub rerun: bool,
    /// What is asked: `http URL`, `mcp URL`, `command PROGRAM`, `stub`, `nothing`. Holds no secret.
    pub asked: String,
    /// How the effect is kept from happening.
    pub suppression: Suppression,
    /// Modes that it offers.
    pub modes: Vec<String>,
    /// It was reached, or there is nothing to be reached.
    pub reached: bool,
    /// Calls of it would be run.
    pub fits: bool,
    /// What is wrong, or worth knowing, one sentence each; what to do stands in it.
    pub notes: Vec<String>,
}

impl Mirror {
    /// Asks every candidate what it offers; runs no call. By tool, candidates in the order of the settings.
    pub async fn probe(&self) -> Vec<Probed> {
        let mut out = Vec::new();
        let mut tools: Vec<_> = self.tools.values().collect();
        tools.sort_by(|a, b| a.id.cmp(&b.id));
        for tool in tools {
            let rerun = tool.rerun.as_ref().map(|rerun| (&rerun.candidate, true));
            for (candidate, rerun) in tool.candidates.iter().map(|c| (c, false)).chain(rerun) {
                out.push(self.probed(&tool.id, candidate, rerun).await);
            }
        }
        out
    }

    async fn probed(&self, tool: &str, candidate: &Candidate, rerun: bool) -> Probed {
        let mut probed = Probed {
            tool: tool.to_owned(),
            contract: candidate.shown.clone(),
            rerun,
            asked: candidate.asked.clone(),
            suppression: candidate.runner.suppression(),
            modes: Vec::new(),
            reached: true,
            fits: true,
            notes: Vec::new(),
        };
        let Some(target) = candidate.runner.target() else { return probed };
        let said = tokio::time::timeout(PATIENCE, target.offered()).await;
        let offered = match said.unwrap_or(Err(Failure::TimedOut)) {
            Ok(offered) => offered,
            Err(failure) => {
                (probed.reached, probed.fits) = (false, false);
                let next = match failure {
                    Failure::Process => {
                        "it did not start, or ended before it answered: run it by hand to see why"
                    }
                    Failure::Connection => {
                        "start it, or correct its address; an https address needs a server that speaks TLS"
                    }
                    _ => "start it, or correct its address",
                };
                let class = failure.class().unwrap_or_default();
                probed.notes.push(format!("not reached ({class}): {next}"));
                return probed;
            }
        };
        probed.modes = offered.modes;
        if matches!(candidate.runner, Runner::DryRun(_)) && !probed.modes.iter().any(|m| m == "dry_run") {
            probed.fits = false;
            probed.notes.push(
                "does not offer dry_run, so nothing is sent to it: let it answer with {\"lastcall\": 1, \"modes\": \
                 [\"dry_run\"]} once it keeps the effect from happening, or use sandbox or stub"
                    .to_owned(),
            );
        }
        let mode = candidate.runner.suppression();
        let mode = serde_json::to_value(mode).ok().and_then(|mode| mode.as_str().map(str::to_owned));
        if let Some(mode) =
            mode.filter(|mode| mode != "dry_run" && offered.tools.is_none() && !probed.modes.is_empty())
            && !probed.modes.contains(&mode)
        {
            probed.notes.push(format!(
                "offers {} and not {mode}: a shim refuses calls in a mode that it does not offer",
                probed.modes.join(", ")
            ));
        }
        if let Some((tools, name)) = offered.tools {
            match tools.iter().find(|listed| listed.name == name) {
                None => {
                    probed.fits = false;
                    probed.notes.push(format!(
                        "lists no tool `{name}`: say by `name` how the server calls it, one of {}",
                        names(tools.iter().map(|listed| listed.name.as_str()))
                    ));
                }
                Some(listed) if candidate.schema.as_ref().is_some_and(|s| *s != listed.input_schema) => {
                    probed.notes.push(
                        "its inputSchema is not that of the contract in the registry: another version runs there, or \
                         the contract was not taken from it"
                            .to_owned(),
                    );
                }
                Some(_) => {}
            }
        }
        probed
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = names.collect();
    let more = all.len().saturating_sub(10);
    all.truncate(10);
    match (all.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => all.join(", "),
        (false, more) => format!("{}, and {more} more", all.join(", ")),
    }
}
