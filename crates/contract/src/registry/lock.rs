//! `registry.lock`: contract id → digest of what was frozen, sorted, one a line. Never rewrites a digest.

use std::collections::BTreeMap;

use super::{Problem, RegistryError};
use crate::error::shown;
use crate::{Contract, Digest};

/// The file's name in the registry's root.
pub const LOCK_FILE: &str = "registry.lock";

const HEAD: &str = "# Frozen contracts: id, digest of the definition. Written by `lastcall contract freeze`.\n\
                    # A line never changes; a changed definition is a new version.\n";

/// What was frozen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    entries: BTreeMap<String, Digest>,
}

/// A frozen contract that is no longer what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Contract id.
    pub id: String,
    /// The definition's file, if the registry still lists the contract.
    pub file: Option<String>,
    /// The digest in the lock.
    pub frozen: Digest,
    /// The digest of what is there now; `None` when the contract is gone.
    pub found: Option<Digest>,
}

impl Drift {
    /// The same as a problem: place, both digests, next step.
    pub fn to_problem(&self) -> Problem {
        match (&self.found, &self.file) {
            (Some(found), Some(file)) => Problem::new(
                file.as_str(),
                format!("contract {} is frozen as {} but this file is now {found}", self.id, self.frozen),
                "Restore the file, and publish the change as a new version: \
                 `lastcall contract add FILE --version NEW`",
            ),
            _ => Problem::new(
                LOCK_FILE,
                format!(
                    "contract {} is frozen as {} but the registry no longer has it",
                    self.id, self.frozen
                ),
                "Restore its file and its entry in `versions`; to stop using it, mark it `deprecated: true`",
            ),
        }
    }
}

impl std::fmt::Display for Drift {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_problem().fmt(f)
    }
}

impl Lock {
    /// Reads the file. Comments (`#`) and blank lines do not count.
    ///
    /// # Errors
    /// A line that is not `ID DIGEST`, an id twice; each with its line.
    pub fn parse(text: &str) -> Result<Self, RegistryError> {
        let mut lock = Self::default();
        let mut problems = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("{LOCK_FILE}:{}", n + 1);
            let mut words = line.split_whitespace();
            let entry = match (words.next(), words.next().and_then(Digest::parse), words.next()) {
                (Some(id), Some(digest), None) => Some((id, digest)),
                _ => None,
            };
            match entry {
                None => problems.push(Problem::new(
                    place,
                    format!("`{}` is not `ID sha256:…`", shown(line)),
                    "Restore the file from version control; after a merge keep both sides' lines",
                )),
                Some((id, digest)) => {
                    if lock.entries.get(id).is_some_and(|known| *known != digest) {
                        let message = format!("`{}` stands here twice with different digests", shown(id));
                        problems.push(Problem::new(place, message, "Keep the line that was published first"));
                    } else {
                        lock.entries.insert(id.to_owned(), digest);
                    }
                }
            }
        }
        if problems.is_empty() { Ok(lock) } else { Err(RegistryError { problems }) }
    }

    /// The file's text: stable, sorted by id.
    pub fn to_text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (id, digest) in &self.entries {
            text.push_str(&format!("{id} {digest}\n"));
        }
        text
    }

    /// The frozen digest of this id.
    pub fn get(&self, id: &str) -> Option<&Digest> {
        self.entries.get(id)
    }

    /// Every frozen id and digest, sorted by id.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Digest)> {
        self.entries.iter().map(|(id, digest)| (id.as_str(), digest))
    }

    /// Freezes a contract; true if it was not frozen before.
    ///
    /// # Errors
    /// It is frozen with another digest; `file` names its definition.
    pub fn freeze(&mut self, contract: &Contract, file: &str) -> Result<bool, Drift> {
        match self.entries.get(&contract.id) {
            None => {
                self.entries.insert(contract.id.clone(), contract.digest.clone());
                Ok(true)
            }
            Some(frozen) if *frozen == contract.digest => Ok(false),
            Some(frozen) => Err(Drift {
                id: contract.id.clone(),
                file: Some(file.to_owned()),
                frozen: frozen.clone(),
                found: Some(contract.digest.clone()),
            }),
        }
    }
}
