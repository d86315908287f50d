//! A toolset as a side: `toolset_id` and exactly one contract a tool, each looked up in the registry.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use lastcall_contract::Registry;
use lastcall_diff::SurfaceTool;
use serde::Deserialize;

use super::facts_of;
use crate::cmd::contract;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Toolset {
    toolset_id: String,
    contracts: Contracts,
}

/// `[refund@1.0.0]` or `{refund: 1.0.0}`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Contracts {
    Ids(Vec<String>),
    Versions(BTreeMap<String, String>),
}

/// The toolset's id and its tools, in order.
///
/// # Errors
/// Not YAML of this form, a contract that the registry does not have, a tool with two contracts.
pub fn read(label: &str, text: &str, registry: &Path) -> anyhow::Result<(String, Vec<SurfaceTool>)> {
    let set: Toolset = serde_saphyr::from_str(text).with_context(|| {
        format!(
            "{label}: not a toolset; write `toolset_id: NAME` and `contracts: [tool_id@version, …]` or \
             `contracts: {{tool_id: version}}`"
        )
    })?;
    let ids: Vec<String> = match set.contracts {
        Contracts::Ids(ids) => ids,
        Contracts::Versions(map) => map
            .into_iter()
            .map(|(tool, version)| if version.contains('@') { version } else { format!("{tool}@{version}") })
            .collect(),
    };
    let registry: Registry = contract::load_registry(registry).map_err(|e| anyhow::anyhow!("{e:#}"))?;
    let mut by_tool: BTreeMap<String, String> = BTreeMap::new();
    let mut tools = Vec::new();
    for id in ids {
        let (tool, version) = registry.resolve(&id).with_context(|| format!("{label}: {id}"))?;
        if let Some(other) = by_tool.insert(tool.tool_id.clone(), version.contract.id.clone()) {
            bail!(
                "{label}: {other} and {} are of one tool; a toolset has one contract a tool",
                version.contract.id
            );
        }
        tools.push(SurfaceTool {
            name: version.contract.definition.name.clone(),
            contract: Ok(version.contract.clone()),
            facts: facts_of(tool),
            recorded: Vec::new(),
        });
    }
    Ok((set.toolset_id, tools))
}
