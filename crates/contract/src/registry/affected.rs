//! What a change of a registry touches: tools, contracts, cases, toolsets. Compares two states of its files; never asks
//! which of them is right.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{Registry, RegistryError, RegistryFiles, Tool, ids, wants_file};

/// What became of a file or a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// New.
    Added,
    /// Another content.
    Changed,
    /// Gone.
    Removed,
}

impl Change {
    /// `added`, `changed` or `removed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }

    fn between<T: PartialEq>(old: Option<&T>, new: Option<&T>) -> Option<Self> {
        match (old, new) {
            (None, Some(_)) => Some(Self::Added),
            (Some(_), None) => Some(Self::Removed),
            (Some(old), Some(new)) if old != new => Some(Self::Changed),
            _ => None,
        }
    }
}

/// One file that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Relative to the registry.
    pub path: String,
    /// What became of it.
    pub change: Change,
}

/// A case that has to run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AffectedCase {
    /// Relative to the registry.
    pub path: String,
    /// `golden`, `regression`, `shadow` or `fixtures`.
    pub suite: String,
    /// What became of the case itself; `None` when it is as it was, and its tool is not.
    pub change: Option<Change>,
}

/// A tool that the change touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AffectedTool {
    /// Its id.
    pub tool_id: String,
    /// What became of it.
    pub change: Change,
    /// Whether what it promises changed (contracts, facts, adapters, normalization), not only what stands beside it.
    pub promise: bool,
    /// Contract ids that are new.
    pub contracts_added: Vec<String>,
    /// Contract ids whose definition is another. For a frozen contract that is an error.
    pub contracts_changed: Vec<String>,
    /// Contract ids that are gone.
    pub contracts_removed: Vec<String>,
    /// The newest version before and after.
    pub latest: (Option<String>, Option<String>),
    /// The cases to run: all of its cases when its promise changed, else those that changed themselves.
    pub cases: Vec<AffectedCase>,
    /// Toolsets that pin one of its contracts.
    pub toolsets: Vec<String>,
    /// The agents known to use it.
    pub consumers: Vec<String>,
    /// Its owner.
    pub owner: Option<String>,
    /// The files in its folder that changed.
    pub files: Vec<FileChange>,
}

/// A toolset that the change touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AffectedToolset {
    /// Its id.
    pub toolset_id: String,
    /// Its file.
    pub path: String,
    /// What became of the toolset itself.
    pub change: Option<Change>,
    /// What it pins of the tools that are touched, contract ids.
    pub pins: Vec<String>,
    /// Of these, what changed under it or is gone.
    pub broken_pins: Vec<String>,
}

/// Everything that a change touches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Affected {
    /// Tools, by id.
    pub tools: Vec<AffectedTool>,
    /// Toolsets, by file.
    pub toolsets: Vec<AffectedToolset>,
    /// Changed files that belong to no tool and no toolset.
    pub other: Vec<FileChange>,
    /// What could not be told, one sentence each.
    pub notes: Vec<String>,
}

/// What lies between two states of a registry. Both hold every file, cases and toolsets too.
///
/// # Errors
/// The new state does not hold together. An old state that does not is a note, and contracts are then not compared.
pub fn affected(old: &RegistryFiles, new: &RegistryFiles) -> Result<Affected, RegistryError> {
    let wanted = |files: &RegistryFiles| -> RegistryFiles {
        files.iter().filter(|(p, _)| wants_file(p)).map(|(p, t)| (p.clone(), t.clone())).collect()
    };
    let after = Registry::read(&wanted(new))?;
    let mut out = Affected::default();
    let before = match Registry::read(&wanted(old)) {
        Ok(before) => Some(before),
        Err(error) => {
            let first = error.problems.first().map(ToString::to_string).unwrap_or_default();
            out.notes.push(format!(
                "the old state does not hold together, so contracts are compared by their files only: {first}"
            ));
            None
        }
    };
    let mut by_folder: BTreeMap<&str, Vec<FileChange>> = BTreeMap::new();
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for path in paths {
        if let Some(change) = Change::between(old.get(path), new.get(path)) {
            let folder = path.split_once('/').map_or("", |(folder, _)| folder);
            by_folder.entry(folder).or_default().push(FileChange { path: path.clone(), change });
        }
    }
    let tool_ids: BTreeSet<&str> = before
        .iter()
        .flat_map(Registry::tools)
        .chain(after.tools())
        .map(|tool| tool.tool_id.as_str())
        .collect();
    let sets = toolsets(old, new, &after, before.as_ref(), &mut out.notes);
    for tool_id in tool_ids {
        let files = by_folder.remove(tool_id).unwrap_or_default();
        let was = before.as_ref().and_then(|r| r.tool(tool_id));
        let tool = tool(tool_id, was, after.tool(tool_id), before.is_some(), files, new);
        out.tools.extend(tool);
    }
    for set in sets {
        let touched: Vec<&mut AffectedTool> = out
            .tools
            .iter_mut()
            .filter(|tool| tool.promise && set.pins.iter().any(|id| of_tool(id, &tool.tool_id)))
            .collect();
        if touched.is_empty() && set.change.is_none() {
            continue;
        }
        let ids: Vec<String> = touched.iter().map(|tool| tool.tool_id.clone()).collect();
        let mut broken = Vec::new();
        for tool in touched {
            tool.toolsets.push(set.toolset_id.clone());
            broken.extend(tool.contracts_changed.iter().chain(&tool.contracts_removed).cloned());
        }
        let pins: Vec<String> =
            set.pins.into_iter().filter(|pin| ids.iter().any(|id| of_tool(pin, id))).collect();
        let broken_pins = pins.iter().filter(|pin| broken.contains(pin)).cloned().collect();
        out.toolsets.push(AffectedToolset { pins, broken_pins, ..set });
    }
    let known = |change: &FileChange| change.path.starts_with("toolsets/") || change.path == super::LOCK_FILE;
    out.other = by_folder.into_values().flatten().filter(|change| !known(change)).collect();
    Ok(out)
}

fn of_tool(contract: &str, tool_id: &str) -> bool {
    contract.rsplit_once('@').is_some_and(|(tool, _)| tool == tool_id)
}

fn tool(
    tool_id: &str,
    was: Option<&Tool>,
    is: Option<&Tool>,
    compared: bool,
    files: Vec<FileChange>,
    new: &RegistryFiles,
) -> Option<AffectedTool> {
    // what stands beside the promise does not change it
    let promise = |tool: Option<&Tool>| {
        tool.map(|tool| Tool {
            changelog: None,
            release_policy: None,
            contact: None,
            approvers: Vec::new(),
            ..tool.clone()
        })
    };
    let inside = |change: &FileChange, folder: &str| {
        change.path.strip_prefix(tool_id).is_some_and(|rest| rest.starts_with(folder))
    };
    let beside = |change: &FileChange| {
        ["/contracts/", "/fixtures/", "/changelog.md", "/owner.yaml", "/release-policy.yaml"]
            .iter()
            .any(|folder| inside(change, folder))
    };
    let adapted = files.iter().any(|change| inside(change, "/adapters/"));
    let promised = match compared {
        true => promise(was) != promise(is),
        false => files.iter().any(|change| !beside(change)),
    };
    if !promised && files.is_empty() {
        return None;
    }
    let change = match (compared, was, is) {
        (true, None, Some(_)) => Change::Added,
        (true, Some(_), None) => Change::Removed,
        _ => Change::Changed,
    };
    let digests = |tool: Option<&Tool>| -> BTreeMap<String, String> {
        let versions = tool.map(|t| t.versions.as_slice()).unwrap_or_default();
        versions.iter().map(|v| (v.contract.id.clone(), v.contract.digest.to_string())).collect()
    };
    let (before, after) = (digests(was), digests(is));
    let ids: BTreeSet<&String> = before.keys().chain(after.keys()).filter(|_| compared).collect();
    let of = |wanted: Change| -> Vec<String> {
        let fits = |id: &&&String| Change::between(before.get(**id), after.get(**id)) == Some(wanted);
        ids.iter().filter(fits).map(|id| (*id).clone()).collect()
    };
    let latest = |tool: Option<&Tool>| tool.and_then(Tool::latest).map(|v| v.contract.id.clone());
    let known = is.or(was);
    Some(AffectedTool {
        tool_id: tool_id.to_owned(),
        change,
        promise: promised || adapted,
        contracts_added: of(Change::Added),
        contracts_changed: of(Change::Changed),
        contracts_removed: of(Change::Removed),
        latest: (latest(was), latest(is)),
        cases: cases(tool_id, promised || adapted, &files, new),
        toolsets: Vec::new(),
        consumers: known.map(|t| t.consumers.clone()).unwrap_or_default(),
        owner: known.and_then(|t| t.owner.clone()),
        files,
    })
}

/// The cases of a tool: all of them, or those that changed.
fn cases(tool_id: &str, all: bool, files: &[FileChange], new: &RegistryFiles) -> Vec<AffectedCase> {
    let changed: BTreeMap<&str, Change> = files.iter().map(|c| (c.path.as_str(), c.change)).collect();
    let present = new.keys().map(String::as_str).filter(|_| all);
    let paths: BTreeSet<&str> = present.chain(changed.keys().copied()).collect();
    paths
        .into_iter()
        .filter_map(|path| {
            let below = path.strip_prefix(tool_id)?.strip_prefix('/')?;
            let suite = match below.split('/').collect::<Vec<_>>().as_slice() {
                ["contracts", suite, _] => (*suite).to_owned(),
                ["fixtures", _] => "fixtures".to_owned(),
                _ => return None,
            };
            Some(AffectedCase { path: path.to_owned(), suite, change: changed.get(path).copied() })
        })
        .collect()
}

/// Every toolset with everything that it pins.
fn toolsets(
    old: &RegistryFiles,
    new: &RegistryFiles,
    after: &Registry,
    before: Option<&Registry>,
    notes: &mut Vec<String>,
) -> Vec<AffectedToolset> {
    let paths: BTreeSet<&String> = old
        .keys()
        .chain(new.keys())
        .filter(|path| path.starts_with(&format!("{}/", ids::TOOLSETS)))
        .collect();
    let mut out = Vec::new();
    for path in paths {
        let Some(text) = new.get(path).or_else(|| old.get(path)) else { continue };
        let document: Value = match serde_saphyr::from_str(text) {
            Ok(document) => document,
            Err(error) => {
                let first = error.to_string().lines().next().unwrap_or_default().to_owned();
                notes.push(format!("{path} cannot be read, so what it pins is not known: {first}"));
                Value::Null
            }
        };
        let stem = path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
        let mut pins = BTreeSet::new();
        pinned(&document, after, before, &mut pins);
        out.push(AffectedToolset {
            toolset_id: document.get("toolset_id").and_then(Value::as_str).unwrap_or(stem).to_owned(),
            path: path.clone(),
            change: Change::between(old.get(path), new.get(path)),
            pins: pins.into_iter().collect(),
            broken_pins: Vec::new(),
        });
    }
    out
}

/// Every contract that a toolset names, as an id or an alias, or as `tool_id: version`.
fn pinned(value: &Value, after: &Registry, before: Option<&Registry>, out: &mut BTreeSet<String>) {
    let named = |id: &str| {
        let found = after.resolve(id).or_else(|e| before.ok_or(e)?.resolve(id));
        found.ok().map(|(_, version)| version.contract.id.clone())
    };
    match value {
        Value::String(text) => out.extend(named(text)),
        Value::Array(items) => items.iter().for_each(|item| pinned(item, after, before, out)),
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(version) if named(&format!("{key}@{version}")).is_some() => {
                        out.extend(named(&format!("{key}@{version}")));
                    }
                    _ => {
                        out.extend(named(key));
                        pinned(value, after, before, out);
                    }
                }
            }
        }
        _ => {}
    }
}
