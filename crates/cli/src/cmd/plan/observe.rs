//! `lastcall plan observe OLD NEW`: puts both definitions and the configuration into the ledger and names the pair.

use std::path::{Path, PathBuf};

use anyhow::bail;
use lastcall_compare::{COMPARATOR_VERSION, PairConfig, PreparedPair, config_bytes, config_digest};
use lastcall_contract::{Contract, Document, Pick, Registry};
use lastcall_ledger::LedgerError;
use lastcall_ledger::control::{Control, Pair};

use super::super::contract::load_registry;
use super::super::ledger::{of_ledger, open};
use super::super::pair_config;
use super::{RegistryArg, definition_bytes, read_text};
use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall plan observe search@1.0.0 search@2.0.0 --registry agent-tools --ledger ledger\n  \
    lastcall plan observe old.json new.json --tool search --versions 1.0.0 2.0.0 --ledger ledger\n\n\
    More than one candidate of a tool may be observed at once. Observing a candidate again replaces its pair.")]
pub struct Args {
    /// The current contract: tool_id@version of the registry, or a definition file.
    old: String,
    /// The candidate.
    new: String,
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    #[arg(long, env = "LASTCALL_LEDGER", value_name = "DIR")]
    ledger: PathBuf,
    #[command(flatten)]
    registry: RegistryArg,
    /// Declared renames, normalization and severity map, as YAML or JSON.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// With files: the tool's id in the calls [the definition's name].
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// With files: the versions of both; 1 and 2 if absent, as `simulate` writes them.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    versions: Option<Vec<String>>,
    /// Check everything and write nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let registry = match &args.registry.registry {
        Some(dir) => Some(load_registry(dir)?),
        None => None,
    };
    let version = |i: usize, default: &str| {
        args.versions.as_ref().and_then(|v| v.get(i)).cloned().unwrap_or_else(|| default.to_owned())
    };
    let old = contract(args, &args.old, registry.as_ref(), &version(0, "1"))?;
    let new = contract(args, &args.new, registry.as_ref(), &version(1, "2"))?;
    let (Some(tool_id), Some(new_tool)) = (tool_of(&old.id), tool_of(&new.id)) else {
        bail!("{} and {} are no contract ids; they are written tool_id@version", old.id, new.id);
    };
    if tool_id != new_tool {
        bail!("{} and {} are contracts of two tools; a pair is two versions of one", old.id, new.id);
    }
    if old.id == new.id {
        bail!(
            "{} is both current and candidate; with files, name the versions by --versions OLD NEW",
            old.id
        );
    }
    let config = config(args, registry.as_ref(), tool_id)?;
    let prepared = PreparedPair::new(&old, &new, &config)?;
    let pair = Pair {
        tool_id: tool_id.to_owned(),
        current: old.id.clone(),
        current_digest: old.digest.clone(),
        candidate: new.id.clone(),
        candidate_digest: new.digest.clone(),
        config_digest: config_digest(&config),
        epoch: prepared.epoch().clone(),
        comparator: COMPARATOR_VERSION,
    };
    let places = prepared.places().len();
    if prepared.places_cut() {
        tell!(
            "note: the arguments change at more places than are told apart; exposure is counted for the first {places} of \
             them. Split the candidate into smaller steps to see it for all"
        );
    }
    if !args.dry_run {
        let ledger = open(&args.ledger)?;
        ledger.put_object(&definition_bytes(&old)?).map_err(of_ledger)?;
        ledger.put_object(&definition_bytes(&new)?).map_err(of_ledger)?;
        ledger.put_object(&config_bytes(&config)).map_err(of_ledger)?;
        let control = ledger.control_now().map_err(of_ledger)?;
        if control.observed.iter().any(|o| o.pair == pair) {
            println!("{} → {} is observed already, nothing was written", pair.current, pair.candidate);
            return Ok(Exit::Yes);
        }
        let scored = control.registrations.iter().find(|r| {
            r.end.is_none()
                && r.pair.tool_id == pair.tool_id
                && r.pair.candidate == pair.candidate
                && r.pair != pair
        });
        if let Some(r) = scored {
            tell!(
                "note: registration {} goes on scoring the pair that it fixed; `lastcall plan register {tool_id} \
                 --replace` scores this one",
                r.seq
            );
        }
        ledger
            .append_control_with(|_| Ok::<_, LedgerError>(Control::Observe { pair: pair.clone() }))
            .map_err(of_ledger)?;
    }
    println!(
        "observing {} → {}: {}{places} changed places, epoch {}",
        pair.current,
        pair.candidate,
        if prepared.places_cut() { "more than " } else { "" },
        pair.epoch.short()
    );
    let (read, ledger) = (super::reading(&args.ledger), args.ledger.display());
    println!("next: lastcall plan register {tool_id} --ledger {ledger}, or first look at its calls: {read}");
    Ok(Exit::Yes)
}

fn tool_of(id: &str) -> Option<&str> {
    id.rsplit_once('@').map(|(tool, _)| tool)
}

fn contract(
    args: &Args,
    given: &str,
    registry: Option<&Registry>,
    version: &str,
) -> anyhow::Result<Contract> {
    let path = Path::new(given);
    if path.is_file() {
        let text = read_text(path)?;
        let document = Document::parse(given, &text)?;
        let name = args.tool.as_deref().filter(|t| document.names().contains(t));
        let bare = if document.names() == [""] { args.tool.as_deref() } else { None };
        let pick = Pick { name: name.or(bare), source: None };
        let definition = document.definition(pick).map_err(crate::ui::with_tool_flag)?;
        let tool = args.tool.clone().unwrap_or_else(|| definition.name.clone());
        return Ok(Contract::new(format!("{tool}@{version}"), definition));
    }
    let Some(registry) = registry else {
        bail!(
            "{given} is no file; to take it from a registry, name that with --registry DIR or LASTCALL_REGISTRY"
        );
    };
    let (_, version) = registry.resolve(given)?;
    Ok(version.contract.clone())
}

/// The configuration file, else the registry's `normalization.yaml`, else nothing.
fn config(args: &Args, registry: Option<&Registry>, tool_id: &str) -> anyhow::Result<PairConfig> {
    match (&args.config, registry, &args.registry.registry) {
        (Some(path), ..) => pair_config::from_file(path),
        (None, Some(registry), Some(dir)) => pair_config::from_registry(registry, dir, tool_id),
        _ => Ok(PairConfig::default()),
    }
}
