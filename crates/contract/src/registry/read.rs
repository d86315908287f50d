//! From files to a registry: collects every fact with its place, so that two places that disagree are both named.
//! Never stops at the first problem.

use std::collections::{BTreeMap, BTreeSet};

use serde_saphyr::Spanned;

use super::files::{self, OwnerFile, ToolFile, VersionEntry};
use super::ids::{is_tool_id, is_version, join, version_fits, version_order};
use super::lock::{LOCK_FILE, Lock};
use super::{Problem, Registry, RegistryError, RegistryFiles, RiskLevel, SideEffect, Tool, ToolVersion};
use crate::document::Pick;
use crate::error::shown;
use crate::{Contract, Definition, Source};

/// A fact and the place that states it.
type Fact<T> = Option<(T, String)>;

/// What the files say about one tool so far.
#[derive(Default)]
struct Facts {
    risk_level: Fact<RiskLevel>,
    side_effect: Fact<SideEffect>,
    runtime: Fact<String>,
    owner: Fact<String>,
    domains: Fact<Vec<String>>,
    consumers: Fact<Vec<String>>,
    errors: Fact<Vec<files::ErrorCode>>,
    compatibility: Fact<files::Compatibility>,
    lint_allow: Vec<(String, String)>,
    contact: Option<String>,
    approvers: Vec<String>,
    folder: Option<String>,
    changelog: Option<String>,
    versions: BTreeMap<String, Entry>,
    /// Place of the first file that names the tool.
    place: String,
    /// Whether an entry was refused: its problem is told, "no version" would only repeat it.
    refused: bool,
}

struct Entry {
    file: String,
    place: String,
    source: Option<Source>,
    name: Option<String>,
    deprecated: Option<bool>,
    /// The version that this one corrects, and the place that says so.
    corrects: Fact<String>,
    aliases: Vec<(String, String)>,
}

pub(super) fn read(files: &RegistryFiles) -> Result<Registry, RegistryError> {
    let mut problems = Vec::new();
    let mut notes = Vec::new();
    let mut tools: BTreeMap<String, Facts> = BTreeMap::new();

    for (path, text) in files {
        let segments: Vec<&str> = path.split('/').collect();
        match segments.as_slice() {
            [folder, "tool.yaml"] => tool_file(files, path, text, Some(folder), &mut tools, &mut problems),
            [name] if name.ends_with(".yaml") || name.ends_with(".yml") => {
                tool_file(files, path, text, None, &mut tools, &mut problems);
            }
            _ => {}
        }
    }
    orphan_folders(files, &mut problems);

    let mut registry = Registry::default();
    for (tool_id, facts) in tools {
        if let Some(tool) = finish(files, &tool_id, facts, &mut registry.aliases, &mut problems, &mut notes) {
            registry.tools.insert(tool_id, tool);
        }
    }
    for (alias, target) in &registry.aliases {
        if registry.contracts().any(|c| c.id == *alias) {
            let message = format!("the alias `{}` of {target} is the id of another contract", shown(alias));
            problems.push(Problem::new("registry", message, "Choose another alias"));
        }
    }
    match files.get(LOCK_FILE).map(|text| Lock::parse(text)) {
        Some(Ok(lock)) => registry.lock = lock,
        Some(Err(error)) => problems.extend(error.problems),
        None => {}
    }
    registry.notes = notes;
    if problems.is_empty() { Ok(registry) } else { Err(RegistryError { problems }) }
}

/// Folders that look like a tool's but have no `tool.yaml`.
fn orphan_folders(files: &RegistryFiles, problems: &mut Vec<Problem>) {
    let folders: BTreeSet<&str> = files
        .keys()
        .filter_map(|path| {
            let (folder, rest) = path.split_once('/')?;
            rest.starts_with("schemas/").then_some(folder)
        })
        .collect();
    for folder in folders {
        if !files.contains_key(&format!("{folder}/tool.yaml")) {
            problems.push(Problem::new(
                format!("{folder}/"),
                "there are schemas here but no tool.yaml",
                format!("Write {folder}/tool.yaml, or use `lastcall contract add`"),
            ));
        }
    }
}

/// Sets a fact, or reports that another place says otherwise.
fn state<T: PartialEq>(
    slot: &mut Fact<T>,
    key: &str,
    path: &str,
    stated: Option<Spanned<T>>,
    problems: &mut Vec<Problem>,
) {
    let Some(stated) = stated else { return };
    let place = at(path, &stated);
    match slot {
        None => *slot = Some((stated.value, place)),
        Some((known, _)) if *known == stated.value => {}
        Some((_, other)) => problems.push(Problem::new(
            place,
            format!("`{key}` contradicts {other}"),
            "Keep the fact in one of the two places",
        )),
    }
}

fn at<T>(path: &str, spanned: &Spanned<T>) -> String {
    format!("{path}:{}", spanned.referenced.line())
}

/// One `tool.yaml` (with its folder) or flat entry.
fn tool_file(
    files: &RegistryFiles,
    path: &str,
    text: &str,
    folder: Option<&str>,
    tools: &mut BTreeMap<String, Facts>,
    problems: &mut Vec<Problem>,
) {
    let file: ToolFile = match files::read(path, text) {
        Ok(file) => file,
        Err(problem) => return problems.push(problem),
    };
    let (tool_id, place) = match (&file.tool_id, folder) {
        (Some(id), _) => (id.value.clone(), at(path, id)),
        (None, Some(folder)) => (folder.to_owned(), path.to_owned()),
        (None, None) => {
            return problems.push(Problem::new(
                path,
                "`tool_id` is missing",
                "Add the stable id of the tool",
            ));
        }
    };
    if !is_tool_id(&tool_id) {
        let message = format!("`{}` cannot be a tool id", shown(&tool_id));
        return problems.push(Problem::new(
            place,
            message,
            "Use letters, digits, `.`, `_` and `-`, at most 128, and no two dots in a row",
        ));
    }
    if let Some(folder) = folder.filter(|folder| *folder != tool_id) {
        let message = format!("`tool_id` is `{tool_id}` but the folder is `{}`", shown(folder));
        return problems.push(Problem::new(
            place,
            message,
            "Rename one of the two: a tool's folder has its id",
        ));
    }
    let facts = tools.entry(tool_id).or_default();
    if facts.place.is_empty() {
        facts.place = path.to_owned();
    }
    state(&mut facts.risk_level, "risk_level", path, file.risk_level, problems);
    state(&mut facts.side_effect, "side_effect", path, file.side_effect, problems);
    state(&mut facts.runtime, "runtime", path, file.runtime, problems);
    state(&mut facts.owner, "owner", path, file.owner, problems);
    state(&mut facts.domains, "domains", path, file.domains, problems);
    state(&mut facts.consumers, "consumers", path, file.consumers, problems);
    state(&mut facts.errors, "errors", path, file.errors, problems);
    state(&mut facts.compatibility, "compatibility", path, file.compatibility, problems);
    facts.lint_allow.extend(file.lint.into_iter().flat_map(|lint| lint.allow).flatten());
    if let Some((rule, _)) = facts.lint_allow.iter().find(|(_, reason)| reason.trim().is_empty()) {
        let message = format!("`lint: allow` names `{}` without a reason", shown(rule));
        problems.push(Problem::new(path, message, "Write `- RULE: the reason`"));
    }
    if let Some(folder) = folder {
        facts.folder = Some(folder.to_owned());
        let owner_path = format!("{folder}/owner.yaml");
        if let Some(text) = files.get(&owner_path) {
            match files::read::<OwnerFile>(&owner_path, text) {
                Ok(owner) => {
                    state(&mut facts.owner, "owner", &owner_path, Some(owner.owner), problems);
                    facts.contact = owner.contact;
                    facts.approvers = owner.approvers;
                }
                Err(problem) => problems.push(problem),
            }
        }
    }
    if let Some(stated) = file.changelog {
        changelog(files, path, folder.unwrap_or_default(), &stated, facts, problems);
    }
    let unlisted = file.versions.is_none() && file.version.is_none();
    let before = problems.len();
    for entry in file.versions.unwrap_or_default() {
        version_entry(files, path, folder.unwrap_or_default(), entry, facts, problems);
    }
    match (file.version, file.schema_file) {
        (Some(version), schema) => {
            let entry = VersionEntry {
                version,
                schema,
                source: None,
                name: None,
                deprecated: None,
                corrects: None,
                aliases: Vec::new(),
            };
            version_entry(files, path, folder.unwrap_or_default(), entry, facts, problems);
        }
        (None, Some(schema)) => problems.push(Problem::new(
            at(path, &schema),
            "`schema_file` without `version`",
            "Add the version that it defines",
        )),
        (None, None) => {}
    }
    facts.refused |= problems.len() > before;
    if let Some(folder) = folder.filter(|_| unlisted) {
        derived(files, path, folder, facts);
    }
}

/// A changelog that is named: the folder's own `changelog.md` is one, a second one contradicts it.
fn changelog(
    files: &RegistryFiles,
    path: &str,
    folder: &str,
    stated: &Spanned<String>,
    facts: &mut Facts,
    problems: &mut Vec<Problem>,
) {
    let own = format!("{folder}/changelog.md");
    let found = [join(folder, &stated.value), join("", &stated.value)].into_iter().flatten();
    let found: Vec<String> = found.filter(|p| files.contains_key(p)).collect();
    if let Some(other) = found.first().filter(|p| **p != own && files.contains_key(&own)) {
        let message = format!("`changelog` is {other}, and there is {own} too");
        problems.push(Problem::new(at(path, stated), message, "Keep one changelog"));
    }
    facts.changelog = found.first().and_then(|p| files.get(p)).cloned();
}

/// Where a schema file is: beside the entry, else below the registry's root.
fn schema_path(
    files: &RegistryFiles,
    folder: &str,
    stated: &str,
) -> Result<String, (&'static str, &'static str)> {
    let (Some(beside), Some(below)) = (join(folder, stated), join("", stated)) else {
        return Err((
            "is no path inside the registry",
            "Write it relative to this file, with `/` and without `..`",
        ));
    };
    [beside, below]
        .into_iter()
        .find(|p| files.contains_key(p))
        .ok_or(("does not exist", "Restore the file or correct the path"))
}

fn version_entry(
    files: &RegistryFiles,
    path: &str,
    folder: &str,
    entry: VersionEntry,
    facts: &mut Facts,
    problems: &mut Vec<Problem>,
) {
    let place = at(path, &entry.version);
    let version = entry.version.value;
    if !is_version(&version) {
        let message = format!("`{}` cannot be a version", shown(&version));
        let next =
            "Write for instance 2.1.0: letters, digits, `.`, `-`, `+`, beginning with a letter or digit";
        return problems.push(Problem::new(place, message, next));
    }
    let (stated, schema_place) = match &entry.schema {
        Some(schema) => (schema.value.clone(), at(path, schema)),
        None => (format!("schemas/v{version}.json"), place.clone()),
    };
    let file = match schema_path(files, folder, &stated) {
        Ok(file) => file,
        Err((what, next)) => {
            let message = format!("the schema file `{}` of version {version} {what}", shown(&stated));
            return problems.push(Problem::new(schema_place, message, next));
        }
    };
    let source = match &entry.source {
        None => None,
        Some(word) => match Source::parse(&word.value) {
            Some(source) => Some(source),
            None => {
                let known: Vec<&str> = Source::ALL.iter().map(|s| s.as_str()).collect();
                let message = format!("unknown source `{}`", shown(&word.value));
                let next = format!("Known are {}", known.join(", "));
                return problems.push(Problem::new(at(path, word), message, next));
            }
        },
    };
    let aliases = entry.aliases.iter().map(|a| (a.value.clone(), at(path, a))).collect();
    let corrects = entry.corrects.as_ref().map(|c| (c.value.clone(), at(path, c)));
    let new =
        Entry { file, place, source, name: entry.name, deprecated: entry.deprecated, corrects, aliases };
    if let Some(known) = facts.versions.get(&version) {
        if known.file != new.file || known.place.starts_with(path) && known.place != new.place {
            let message = format!("version {version} is also stated at {}", known.place);
            problems.push(Problem::new(new.place, message, "Keep one entry for each version"));
        }
        return;
    }
    facts.versions.insert(version, new);
}

/// Without `versions` each `schemas/vX.json` is version X.
fn derived(files: &RegistryFiles, path: &str, folder: &str, facts: &mut Facts) {
    let prefix = format!("{folder}/schemas/v");
    for file in files.keys().filter(|p| p.starts_with(&prefix)) {
        let Some(version) = file.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".json")) else {
            continue;
        };
        if is_version(version) && !facts.versions.contains_key(version) {
            let entry = Entry {
                file: file.clone(),
                place: path.to_owned(),
                source: None,
                name: None,
                deprecated: None,
                corrects: None,
                aliases: Vec::new(),
            };
            facts.versions.insert(version.to_owned(), entry);
        }
    }
}

/// The id of the contract that a version corrects: an older version of the same tool, by version or id.
fn corrected(
    tool_id: &str,
    version: &str,
    entry: &Entry,
    versions: &BTreeMap<String, Entry>,
    problems: &mut Vec<Problem>,
) -> Option<String> {
    let (stated, place) = entry.corrects.as_ref()?;
    let wanted = stated.strip_prefix(tool_id).and_then(|rest| rest.strip_prefix('@')).unwrap_or(stated);
    if !versions.contains_key(wanted) {
        let message =
            format!("version {version} corrects `{}`, which this tool does not have", shown(stated));
        problems.push(Problem::new(place, message, "Name a version of this tool"));
        return None;
    }
    if version_order(wanted, version) != std::cmp::Ordering::Less {
        let message = format!("version {version} corrects {wanted}, which is not older");
        problems.push(Problem::new(place, message, "A correction is a later version"));
        return None;
    }
    Some(format!("{tool_id}@{wanted}"))
}

/// Reads the definitions and closes one tool.
fn finish(
    files: &RegistryFiles,
    tool_id: &str,
    facts: Facts,
    aliases: &mut BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<String>,
) -> Option<Tool> {
    if facts.versions.is_empty() && facts.refused {
        return None;
    }
    if facts.versions.is_empty() {
        let next = format!("Add one: `lastcall contract add FILE --tool-id {tool_id} --version 1.0.0`");
        problems.push(Problem::new(facts.place, format!("tool `{tool_id}` has no version"), next));
        return None;
    }
    let compatibility = facts.compatibility.map(|(c, _)| c).unwrap_or_default();
    let mut versions = Vec::new();
    for (version, entry) in &facts.versions {
        let id = format!("{tool_id}@{version}");
        let by_pattern = compatibility.deprecated_versions.iter().any(|p| version_fits(p, version));
        if by_pattern && entry.deprecated == Some(false) {
            let message =
                format!("version {version} is `deprecated: false`, but `deprecated_versions` covers it");
            problems.push(Problem::new(&entry.place, message, "Correct one of the two"));
        }
        for (alias, place) in &entry.aliases {
            let taken = aliases.get(alias).filter(|other| **other != id);
            if let Some(other) = taken {
                let message = format!("the alias `{}` already names {other}", shown(alias));
                problems.push(Problem::new(place, message, "An alias names one contract"));
            }
            aliases.entry(alias.clone()).or_insert_with(|| id.clone());
        }
        let corrects = corrected(tool_id, version, entry, &facts.versions, problems);
        let text = files.get(&entry.file).map(String::as_str).unwrap_or_default();
        let pick = Pick { name: entry.name.as_deref(), source: entry.source };
        match Definition::from_text(&entry.file, text, pick) {
            Ok(definition) => versions.push(ToolVersion {
                version: version.clone(),
                contract: Contract::new(id, definition),
                file: entry.file.clone(),
                deprecated: entry.deprecated.unwrap_or(by_pattern),
                corrects,
                aliases: entry.aliases.iter().map(|(alias, _)| alias.clone()).collect(),
            }),
            Err(error) => {
                let place = if error.pointer.is_empty() {
                    error.file
                } else {
                    format!("{} at {}", error.file, error.pointer)
                };
                problems.push(Problem::new(place, error.message, error.next));
            }
        }
    }
    versions.sort_by(|a, b| version_order(&a.version, &b.version));
    if let Some(folder) = &facts.folder {
        let prefix = format!("{folder}/schemas/");
        let listed: BTreeSet<&str> = facts.versions.values().map(|e| e.file.as_str()).collect();
        for file in files.keys().filter(|p| p.starts_with(&prefix) && !listed.contains(p.as_str())) {
            notes.push(format!("{file} is in no `versions` of {folder}/tool.yaml and is not read"));
        }
    }
    let own = |name: &str| facts.folder.as_ref().and_then(|f| files.get(&format!("{f}/{name}"))).cloned();
    Some(Tool {
        tool_id: tool_id.to_owned(),
        stated: (facts.risk_level.is_some(), facts.side_effect.is_some()),
        risk_level: facts.risk_level.map_or(RiskLevel::Critical, |(v, _)| v),
        side_effect: facts.side_effect.map_or(SideEffect::Send, |(v, _)| v),
        runtime: facts.runtime.map(|(v, _)| v),
        owner: facts.owner.map(|(v, _)| v),
        contact: facts.contact,
        approvers: facts.approvers,
        domains: facts.domains.map(|(v, _)| v).unwrap_or_default(),
        consumers: facts.consumers.map(|(v, _)| v).unwrap_or_default(),
        errors: facts.errors.map(|(v, _)| v).unwrap_or_default(),
        compatibility,
        versions,
        release_policy: own("release-policy.yaml"),
        normalization: own("normalization.yaml"),
        changelog: facts.changelog.or_else(|| own("changelog.md")),
        lint_allow: facts.lint_allow,
    })
}
