//! From paths to findings.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use lastcall_contract::registry::{LOCK_FILE, Lock};
use lastcall_contract::{Contract, Definition, Document, Pick, Registry, RegistryFiles};
use lastcall_diff::lint::{
    Found, Known, Profile, lint_definition, lint_list, lint_registry, problem_place, unreadable,
};

use super::super::contract::{read_files, read_stdin, read_text};

/// Everything that was looked at.
#[derive(Default)]
pub(super) struct Batch {
    /// The findings; `file` is the path as the user named it.
    pub found: Vec<Found>,
    /// File → text.
    pub texts: BTreeMap<String, String>,
    /// (tool or contract, file).
    pub subjects: Vec<(String, String)>,
    /// File → the frozen contract that it defines.
    pub frozen: BTreeMap<String, Frozen>,
    /// What could not be read at all, and why.
    pub unread: Vec<(String, anyhow::Error)>,
    /// Findings that tool.yaml allows.
    pub allowed: usize,
}

/// A frozen contract.
pub(super) struct Frozen {
    pub id: String,
    /// The folder of its registry, as it is shown.
    pub registry: String,
}

impl Batch {
    /// Reads a definition's file, a registry's folder or standard input, and lints it.
    pub(super) fn read(&mut self, path: &Path, profiles: &[Profile]) -> anyhow::Result<()> {
        if path.is_dir() {
            return self.registry(path, profiles);
        }
        let (label, text) = if path.as_os_str() == "-" {
            ("stdin".to_owned(), read_stdin()?)
        } else {
            (path.display().to_string(), read_text(path)?)
        };
        let document = Document::parse(&label, &text)?;
        let known = Known { profiles: profiles.to_vec(), ..Known::default() };
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("schema");
        let bare = document.names() == [""];
        let read: Vec<_> = if bare {
            vec![document.definition(Pick { name: Some(stem), source: None })]
        } else {
            document.definitions(None)
        };
        let names: Vec<String> = document.names().iter().map(|n| (*n).to_owned()).collect();
        let lock = lock_above(path);
        let mut pointers: Vec<(String, String)> = Vec::new();
        for (n, definition) in read.into_iter().enumerate() {
            let name = names.get(n).filter(|n| !n.is_empty()).cloned().unwrap_or_else(|| stem.to_owned());
            self.subjects.push((name.clone(), label.clone()));
            match definition {
                Ok(definition) => {
                    let frozen = lock.as_ref().and_then(|(lock, registry)| {
                        Some(Frozen { id: frozen_as(lock, &definition)?, registry: registry.clone() })
                    });
                    let known = Known { registered: frozen.is_some(), ..known.clone() };
                    let found = lint_definition(&definition, &known);
                    self.found.extend(found.into_iter().map(|f| Found { file: label.clone(), ..f }));
                    if let Some(frozen) = frozen {
                        self.frozen.insert(label.clone(), frozen);
                    }
                    pointers.push((definition.name.clone(), definition.pointer.clone()));
                }
                Err(error) => self.found.push(Found { file: label.clone(), ..unreadable(&error, &name) }),
            }
        }
        let listed: Vec<(&str, &str)> = pointers.iter().map(|(n, p)| (n.as_str(), p.as_str())).collect();
        self.found.extend(lint_list(&listed).into_iter().map(|f| Found { file: label.clone(), ..f }));
        self.texts.insert(label, text);
        Ok(())
    }

    fn registry(&mut self, dir: &Path, profiles: &[Profile]) -> anyhow::Result<()> {
        let files: RegistryFiles = read_files(dir)?;
        let named = |file: &str| dir.join(file).display().to_string();
        let before = self.found.len();
        match Registry::read(&files) {
            Ok(registry) if registry.tools().next().is_none() => {
                anyhow::bail!(
                    "{}: no tool in this folder; `lastcall contract add FILE` begins a registry",
                    dir.display()
                );
            }
            Ok(registry) => {
                let (found, allowed) = lint_registry(&files, &registry, profiles);
                self.found.extend(found);
                self.allowed += allowed;
                for tool in registry.tools() {
                    self.subjects.push((tool.tool_id.clone(), String::new()));
                    for version in &tool.versions {
                        self.subjects.push((version.contract.id.clone(), named(&version.file)));
                        if registry.lock().get(&version.contract.id).is_some() {
                            let frozen = Frozen {
                                id: version.contract.id.clone(),
                                registry: dir.display().to_string(),
                            };
                            self.frozen.insert(named(&version.file), frozen);
                        }
                    }
                }
            }
            Err(error) => {
                self.subjects.push(("registry".to_owned(), dir.display().to_string()));
                self.found.extend(error.problems.iter().map(problem_place));
            }
        }
        for found in self.found.iter_mut().skip(before) {
            if !found.file.is_empty() {
                found.file = named(&found.file);
            }
        }
        self.texts.extend(files.into_iter().map(|(file, text)| (named(&file), text)));
        Ok(())
    }
}

/// The lock of the registry in which a file lies, looked for in the folders above it, and that folder.
fn lock_above(path: &Path) -> Option<(Lock, String)> {
    let path = path.canonicalize().ok()?;
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
    path.ancestors().skip(1).take(4).find_map(|dir| {
        let text = std::fs::read_to_string(dir.join(LOCK_FILE)).ok()?;
        let shown = here.as_ref().and_then(|here| dir.strip_prefix(here).ok()).unwrap_or(dir);
        let shown = if shown.as_os_str().is_empty() { Path::new(".") } else { shown };
        Some((Lock::parse(&text).ok()?, shown.display().to_string()))
    })
}

/// The frozen contract that has this digest.
fn frozen_as(lock: &Lock, definition: &Definition) -> Option<String> {
    let digest = Contract::new("", definition.clone()).digest;
    lock.iter().find(|(_, frozen)| **frozen == digest).map(|(id, _)| id.to_owned())
}

/// A file as it stands on disk now.
pub(super) fn again(file: &str) -> anyhow::Result<String> {
    read_text(Path::new(file)).with_context(|| format!("{file}: cannot be read again"))
}
