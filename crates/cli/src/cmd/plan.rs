//! `lastcall plan`: observe a pair, fix the rule for it, show what is fixed, plant faults.

mod observe;
mod plant;
mod register;
mod show;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use lastcall_contract::{Contract, DigestBasis};
use lastcall_ledger::control::{Pair, SourceKind};
use lastcall_ledger::state::ControlState;

use super::ledger::open;
use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Example, from a pair to a verdict:\n  \
    lastcall plan observe search@1.0.0 search@2.0.0 --registry agent-tools --ledger ledger\n  \
    lastcall plan register search --registry agent-tools --ledger ledger\n  \
    lastcall run --ledger ledger calls.jsonl\n  \
    lastcall decide search --ledger ledger")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare a pair from now on. Nothing is scored by it, and everything may still be changed.
    Observe(observe::Args),
    /// Fix plan and pair before the evidence: scores from the next UTC day or a later one.
    Register(register::Args),
    /// The plan that is fixed for a tool, or one that is not yet.
    Show(show::Args),
    /// Planted faults: calls that have to come back as disagreements, and never enter D.
    Plant(plant::Args),
    /// A starting tier by side effect and risk.
    #[command(after_help = "Example: lastcall plan suggest --side-effect write --risk high")]
    Suggest {
        /// read, write or send.
        #[arg(long, value_parser = ["read", "write", "send"])]
        side_effect: String,
        /// low, medium, high or critical.
        #[arg(long, value_parser = ["low", "medium", "high", "critical"])]
        risk: String,
    },
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::Observe(args) => observe::run(&args),
        Command::Register(args) => register::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Plant(args) => plant::run(&args),
        Command::Suggest { side_effect, risk } => {
            let tier = lastcall_decision::Tier::suggest(&side_effect, &risk);
            println!("burn_in: {{tier: {}, profile: article}}", tier.as_str());
            Ok(Exit::Yes)
        }
    }
}

/// Where a registry lies, for the commands that may need one.
#[derive(clap::Args)]
pub struct RegistryArg {
    /// The registry of contracts.
    #[arg(long, env = "LASTCALL_REGISTRY", value_name = "DIR")]
    registry: Option<PathBuf>,
}

/// The bytes of a definition whose SHA-256 is its digest: its object in the ledger.
pub fn definition_bytes(contract: &Contract) -> anyhow::Result<Vec<u8>> {
    match contract.basis {
        DigestBasis::Canonical => {
            let bytes = lastcall_decision::canonical_json(&contract.definition.document);
            bytes.with_context(|| format!("{}: the definition has no canonical form", contract.id))
        }
        DigestBasis::RawBytes => Ok(contract.definition.verbatim.as_bytes().to_vec()),
    }
}

/// The observed pair of a tool; with several candidates the named one.
pub fn observed_pair(control: &ControlState, tool: &str, candidate: Option<&str>) -> anyhow::Result<Pair> {
    control.observed_pair(tool, candidate).cloned().map_err(anyhow::Error::msg)
}

/// Reads a text file of at most 4 MiB.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    const LIMIT: u64 = 4 << 20;
    let shown = path.display();
    let size = std::fs::metadata(path).with_context(|| format!("{shown} cannot be read"))?.len();
    if size > LIMIT {
        bail!("{shown} has {size} bytes, more than {LIMIT}");
    }
    std::fs::read_to_string(path).with_context(|| format!("{shown} cannot be read"))
}

/// The command that reads calls: of topics where the ledger has no other source.
fn reading(place: &Path) -> String {
    let sources = open(place).ok().and_then(|ledger| ledger.control().ok()).map(|control| control.sources);
    let topics = sources.is_some_and(|sources| {
        !sources.is_empty() && sources.values().all(|source| source.kind == SourceKind::Topic)
    });
    match topics {
        true => format!("lastcall-record --ledger {} --brokers HOST:PORT", place.display()),
        false => format!("lastcall run --ledger {} calls.jsonl", place.display()),
    }
}
