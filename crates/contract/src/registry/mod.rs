//! The registry: one folder a tool, each fact in one file. Works on texts that the caller has read.
//! Missing risk or side effect counts as the strictest; a contradiction is an error that names both places.

mod add;
mod affected;
mod files;
mod ids;
mod lock;
mod read;

use std::collections::BTreeMap;

pub use add::{Addition, FileWrite, Request};
pub use affected::{Affected, AffectedCase, AffectedTool, AffectedToolset, Change, FileChange, affected};
pub use files::{Compatibility, ErrorCode, RiskLevel, SideEffect};
pub use ids::{is_tool_id, is_version, version_fits, version_order};
pub use lock::{Drift, LOCK_FILE, Lock};

use crate::Contract;
use crate::error::{nearest, shown};

/// The texts of a registry: path relative to its root, `/` between segments → content.
pub type RegistryFiles = BTreeMap<String, String>;

/// Whether the registry wants to see the file at this path; lets a caller skip cases, fixtures and the like.
pub fn wants_file(path: &str) -> bool {
    let skipped = |(depth, segment): (usize, &str)| match depth {
        0 => segment.starts_with('.') || segment == ids::TOOLSETS,
        1 => segment.starts_with('.') || matches!(segment, "contracts" | "fixtures" | "adapters"),
        _ => segment.starts_with('.'),
    };
    let ending = path.rsplit('.').next().unwrap_or_default();
    path == LOCK_FILE
        || (matches!(ending, "yaml" | "yml" | "json" | "md") && !path.split('/').enumerate().any(skipped))
}

/// One thing that is wrong in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File, with line and column where there are any, or with a JSON Pointer.
    pub place: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub next: String,
}

impl Problem {
    pub(crate) fn new(place: impl Into<String>, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into(), next: next.into() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}. {}.", self.place, self.message, self.next)
    }
}

/// Everything that is wrong in a registry, one a line, in the order of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryError {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl RegistryError {
    pub(crate) fn one(place: impl Into<String>, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { problems: vec![Problem::new(place, message, next)] }
    }
}

impl std::fmt::Display for RegistryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for RegistryError {}

/// One version of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolVersion {
    /// The version.
    pub version: String,
    /// The contract; its id is `tool_id@version`.
    pub contract: Contract,
    /// The definition's file, relative to the registry.
    pub file: String,
    /// Whether it is deprecated, by itself or by a pattern.
    pub deprecated: bool,
    /// The id of the older contract of this tool that it corrects.
    pub corrects: Option<String>,
    /// Further ids under which it is known.
    pub aliases: Vec<String>,
}

/// One tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The stable id.
    pub tool_id: String,
    /// The stated risk, else `critical`.
    pub risk_level: RiskLevel,
    /// The stated side effect, else `send`.
    pub side_effect: SideEffect,
    /// Whether risk and side effect were stated, in this order.
    pub stated: (bool, bool),
    /// Where the handler runs.
    pub runtime: Option<String>,
    /// Who owns it.
    pub owner: Option<String>,
    /// How to reach the owner.
    pub contact: Option<String>,
    /// Who may approve a release.
    pub approvers: Vec<String>,
    /// Domains that ask for a named sign-off.
    pub domains: Vec<String>,
    /// The agents known to use it.
    pub consumers: Vec<String>,
    /// Its error codes.
    pub errors: Vec<ErrorCode>,
    /// What the owner claims; not believed.
    pub compatibility: Compatibility,
    /// Its versions, oldest first.
    pub versions: Vec<ToolVersion>,
    /// Text of `release-policy.yaml`.
    pub release_policy: Option<String>,
    /// Text of `normalization.yaml`.
    pub normalization: Option<String>,
    /// Text of `changelog.md`.
    pub changelog: Option<String>,
    /// Lint rules that the owner allows to be broken, each with its reason.
    pub lint_allow: Vec<(String, String)>,
}

impl Tool {
    /// The version of this name.
    pub fn version(&self, version: &str) -> Option<&ToolVersion> {
        self.versions.iter().find(|v| v.version == version)
    }

    /// The newest version that says it corrects this one.
    pub fn correction_of(&self, version: &str) -> Option<&ToolVersion> {
        let id = format!("{}@{version}", self.tool_id);
        self.versions.iter().rev().find(|v| v.corrects.as_ref() == Some(&id))
    }

    /// The newest version.
    pub fn latest(&self) -> Option<&ToolVersion> {
        self.versions.last()
    }
}

/// A registry that was read whole and holds together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    tools: BTreeMap<String, Tool>,
    aliases: BTreeMap<String, String>,
    lock: Lock,
    notes: Vec<String>,
}

impl Registry {
    /// Reads a registry. Drift against the lock is not an error here; see [`Registry::drift`].
    ///
    /// # Errors
    /// Everything that is wrong, not only the first thing.
    pub fn read(files: &RegistryFiles) -> Result<Self, RegistryError> {
        read::read(files)
    }

    /// As [`Registry::read`], and a frozen contract that changed is an error: for everything that relies on contracts.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn read_checked(files: &RegistryFiles) -> Result<Self, RegistryError> {
        let registry = Self::read(files)?;
        let problems: Vec<Problem> = registry.drift().iter().map(Drift::to_problem).collect();
        if problems.is_empty() { Ok(registry) } else { Err(RegistryError { problems }) }
    }

    /// The tools, by id.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values()
    }

    /// The tool of this id.
    pub fn tool(&self, tool_id: &str) -> Option<&Tool> {
        self.tools.get(tool_id)
    }

    /// Every contract, by tool id, oldest version first.
    pub fn contracts(&self) -> impl Iterator<Item = &Contract> {
        self.tools().flat_map(|tool| tool.versions.iter().map(|v| &v.contract))
    }

    /// The contract of this id or alias; `None` also when an alias fits several. See [`Registry::resolve`].
    pub fn contract(&self, id: &str) -> Option<&Contract> {
        self.resolve(id).ok().map(|(_, version)| &version.contract)
    }

    /// The tool and version that an id names: `tool_id@version`, a declared alias, `tool_id.vVERSION`, or
    /// `tool_id.vMAJOR` where only one version has that major.
    ///
    /// # Errors
    /// Nothing has that id (the nearest is named), or several do.
    pub fn resolve(&self, id: &str) -> Result<(&Tool, &ToolVersion), RegistryError> {
        let id = id.trim();
        let exact = |id: &str| {
            let (tool_id, version) = id.rsplit_once('@')?;
            let tool = self.tools.get(tool_id)?;
            Some((tool, tool.version(version)?))
        };
        if let Some(found) = exact(id).or_else(|| self.aliases.get(id).and_then(|target| exact(target))) {
            return Ok(found);
        }
        if let Some((tool_id, version)) = id.rsplit_once(".v").or_else(|| id.rsplit_once('@'))
            && let Some(tool) = self.tools.get(tool_id)
        {
            if let Some(found) = tool.version(version) {
                return Ok((tool, found));
            }
            let dotted = format!("{version}.");
            let fitting: Vec<&ToolVersion> =
                tool.versions.iter().filter(|v| v.version.starts_with(&dotted)).collect();
            match fitting.as_slice() {
                [one] => return Ok((tool, one)),
                [] => {}
                several => {
                    let ids: Vec<&str> = several.iter().map(|v| v.contract.id.as_str()).collect();
                    let message = format!("`{}` fits several contracts: {}", shown(id), ids.join(", "));
                    return Err(RegistryError::one("registry", message, "Say which one"));
                }
            }
        }
        let ids: Vec<&str> = self.contracts().map(|c| c.id.as_str()).collect();
        let next = match nearest(id, &ids) {
            Some(near) => format!("Perhaps `{near}` was meant"),
            None => match self.tools.get(id) {
                Some(tool) => {
                    let ids: Vec<&str> = tool.versions.iter().map(|v| v.contract.id.as_str()).collect();
                    format!("It is a tool; its contracts are {}", ids.join(", "))
                }
                None => "`lastcall contract list` shows what there is".to_owned(),
            },
        };
        Err(RegistryError::one("registry", format!("no contract `{}`", shown(id)), next))
    }

    /// What was frozen.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Frozen contracts that are no longer what they were, by id.
    pub fn drift(&self) -> Vec<Drift> {
        self.lock
            .iter()
            .filter_map(|(id, frozen)| {
                let now = id.rsplit_once('@').and_then(|(tool, v)| self.tools.get(tool)?.version(v));
                let found = now.map(|v| v.contract.digest.clone());
                (found.as_ref() != Some(frozen)).then(|| Drift {
                    id: id.to_owned(),
                    file: now.map(|v| v.file.clone()),
                    frozen: frozen.clone(),
                    found,
                })
            })
            .collect()
    }

    /// The lock with these contracts frozen too, and the ids that are new in it.
    ///
    /// # Errors
    /// An id that does not exist, or any frozen contract that changed.
    pub fn freeze(&self, ids: &[&str]) -> Result<(Lock, Vec<String>), RegistryError> {
        let mut problems: Vec<Problem> = self.drift().iter().map(Drift::to_problem).collect();
        let (mut lock, mut new) = (self.lock.clone(), Vec::new());
        for id in ids {
            match self.resolve(id) {
                Err(error) => problems.extend(error.problems),
                // A drift is in the list already.
                Ok((_, version)) => {
                    if lock.freeze(&version.contract, &version.file) == Ok(true) {
                        new.push(version.contract.id.clone());
                    }
                }
            }
        }
        if problems.is_empty() { Ok((lock, new)) } else { Err(RegistryError { problems }) }
    }

    /// What is worth knowing but not wrong, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}
