//! Candidates of every tool, ready to be run.

use std::collections::HashMap;

use lastcall_contract::Registry;
use lastcall_event::CallRecord;

use crate::answer::Replayed;
use crate::builder::{Builder, no_retries};
use crate::counts::CandidateCounts;
use crate::settings::{CandidateSettings, RerunSettings, Settings, SettingsError, ToolSettings};
use crate::tool::Tool;

/// Candidates of every tool, ready to be run. Shared by all partitions.
pub struct Mirror {
    pub(crate) tools: HashMap<String, Tool>,
    /// What it was made from: what may not change while it runs.
    settings: Settings,
}

impl Mirror {
    /// Decides how the effect of every tool is suppressed. Reads no file and opens no connection.
    ///
    /// # Errors
    /// A tool or contract that the registry lacks, or a suppression that the tool's side effect does not allow.
    pub fn new(registry: &Registry, settings: &Settings) -> Result<Self, SettingsError> {
        let mut builder = Builder::new(registry, settings);
        let mut tools = HashMap::new();
        for (id, stated) in &settings.tools {
            if let Some(tool) = builder.tool(id, stated) {
                tools.insert(id.clone(), tool);
            }
        }
        if builder.problems.is_empty() {
            Ok(Self { tools, settings: settings.clone() })
        } else {
            Err(SettingsError(builder.problems.join("\n")))
        }
    }

    /// Takes new switches, rates and limits over, while calls are under way.
    ///
    /// # Errors
    /// Candidates, endpoints or suppressions changed: those need a restart. Nothing is taken over then.
    pub fn update(&self, settings: &Settings) -> Result<(), SettingsError> {
        let mut problems = Vec::new();
        let changed = |line: usize, id: &str, what: &str| {
            format!(
                "{}:{line}: {what} of `{id}` changed. Start lastcall-mirror again to take it over; until then \
                 everything stays as it was.",
                settings.place
            )
        };
        for (id, new) in &settings.tools {
            match self.settings.tools.get(id) {
                None => problems.push(changed(new.line, id, "the table")),
                Some(old) if !same_candidates(old, new) => {
                    problems.push(changed(new.line, id, "`candidates`"));
                }
                Some(old) if !same_rerun(old, new) => problems.push(changed(new.line, id, "`rerun`")),
                Some(_) => {
                    let retries = new.stated.retries.is_some_and(|n| n > 0);
                    if retries && self.tools.get(id).is_some_and(|tool| !tool.idempotent) {
                        problems.push(no_retries(&settings.place, new.line, id));
                    }
                }
            }
        }
        for id in self.settings.tools.keys().filter(|id| !settings.tools.contains_key(*id)) {
            problems.push(format!(
                "{}: the table of `{id}` is gone. Start lastcall-mirror again to leave the tool out, or write `on = \
                 false` in it.",
                settings.place
            ));
        }
        if !problems.is_empty() {
            return Err(SettingsError(problems.join("\n")));
        }
        for (id, tool) in &self.tools {
            tool.gate.update(settings.limits(id));
        }
        Ok(())
    }

    /// Runs a call against its tool's candidates. Never fails and always ends: what went wrong is what the answer says.
    pub async fn replay(&self, call: &CallRecord<'_>) -> Replayed {
        match self.tools.get(&*call.tool_id) {
            Some(tool) => tool.replay(call).await,
            None => Replayed::default(),
        }
    }

    /// What was counted, by tool and candidate.
    pub fn counts(&self) -> Vec<CandidateCounts> {
        let mut counts: Vec<_> = self.tools.values().flat_map(Tool::counts).collect();
        counts.sort_by(|a, b| (&a.tool, a.rerun, &a.contract).cmp(&(&b.tool, b.rerun, &b.contract)));
        counts
    }
}

impl std::fmt::Debug for Mirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mirror").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The same apart from where they stand in the file.
fn same_candidates(old: &ToolSettings, new: &ToolSettings) -> bool {
    let placeless = |tool: &ToolSettings| -> Vec<_> {
        tool.candidates.iter().map(|c| CandidateSettings { line: 0, ..c.clone() }).collect()
    };
    placeless(old) == placeless(new)
}

fn same_rerun(old: &ToolSettings, new: &ToolSettings) -> bool {
    let placeless = |tool: &ToolSettings| tool.rerun.clone().map(|rerun| RerunSettings { line: 0, ..rerun });
    placeless(old) == placeless(new)
}
