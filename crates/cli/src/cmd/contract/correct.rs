//! `lastcall contract correct`: a fixed version beside the one that it corrects. Never touches a published definition.

use std::path::PathBuf;

use anyhow::bail;
use lastcall_contract::registry::Request;
use lastcall_contract::{Contract, Document, Pick, Registry, RegistryFiles, Tool};

use super::{Where, disk, given, write};
use crate::ui::Exit;

/// Arguments of `contract correct`.
#[derive(clap::Args)]
pub struct Correct {
    /// The contract that is wrong: its id, or an alias.
    id: String,
    /// The corrected definition; `-` reads standard input.
    file: PathBuf,
    /// The new version; the next free patch version if absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Which tool of the file, or the name for a bare JSON Schema.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Say what would be written and write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    at: Where,
}

/// Runs it.
pub fn correct(args: &Correct) -> anyhow::Result<Exit> {
    let (label, text) = given(&args.file)?;
    let _held = (!args.dry_run).then(|| disk::hold(&args.at.registry)).transpose()?;
    let files: RegistryFiles = disk::read_files(&args.at.registry)?;
    let registry: Registry = disk::parse(&args.at.registry, &files)?;
    let (tool, named) = registry.resolve(&args.id)?;
    let bare = named.contract.definition.source == lastcall_contract::Source::JsonSchema;
    let name = args.name.clone().or_else(|| bare.then(|| named.contract.definition.name.clone()));
    let given = Document::parse(&label, &text)?.definition(Pick { name: name.as_deref(), source: None })?;
    let digest = Contract::new("", given).digest;
    if digest == named.contract.digest {
        bail!("{label} is the definition of {} already; there is nothing to correct", named.contract.id);
    }
    // corrections are a chain: a contract that is corrected already has its last correction corrected
    let (mut wrong, mut version) = (named, args.version.clone());
    while let Some(there) = tool.correction_of(&wrong.version) {
        let again = match &args.version {
            Some(version) => *version == there.version,
            None => there.contract.digest == digest,
        };
        if again {
            // said once more: the same answer
            version = Some(there.version.clone());
            break;
        }
        tell!(
            "note: {} is corrected by {} already; that one is corrected now",
            wrong.contract.id,
            there.contract.id
        );
        wrong = there;
    }
    let version = match version {
        Some(version) => version,
        None => next_patch(tool, &wrong.version)?,
    };
    let request = Request {
        file: &label,
        text: &text,
        tool_id: Some(&tool.tool_id),
        version: Some(&version),
        name: name.as_deref(),
        corrects: Some(&wrong.version),
        ..Request::default()
    };
    let addition = Registry::plan_addition(&files, &request)?;
    if addition.contract.digest == wrong.contract.digest {
        bail!("{label} is the definition of {} already; there is nothing to correct", wrong.contract.id);
    }
    let done = write(&args.at, &addition, args.dry_run)?;
    if !args.dry_run {
        tell!("what it changes: lastcall diff {} {}", wrong.contract.id, addition.contract.id);
    }
    Ok(done)
}

/// The first version `X.Y.Z` after this one that is free and has the same `X.Y`.
fn next_patch(tool: &Tool, version: &str) -> anyhow::Result<String> {
    let parts: Vec<Option<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    let [Some(major), Some(minor), Some(patch)] = parts[..] else {
        bail!("{version} is no X.Y.Z: say the new version with --version");
    };
    let mut next = patch;
    loop {
        let Some(higher) = next.checked_add(1) else {
            bail!("no version after {version}: say the new one with --version");
        };
        next = higher;
        let candidate = format!("{major}.{minor}.{next}");
        if tool.version(&candidate).is_none() {
            return Ok(candidate);
        }
    }
}
