//! `lastcall contract`: the registry's folder on disk. Reads it whole before it writes, writes by rename, and never
//! writes anything that it did not read back first.

mod correct;
mod disk;
mod show;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use lastcall_contract::registry::{Addition, LOCK_FILE, Request};
use lastcall_contract::{Registry, RegistryFiles, RiskLevel, SideEffect, Source};

use disk::read;
pub use disk::{
    is_read_only, is_registry_text, load_registry, parse, read_every_file, read_files, read_stdin, read_text,
    write_file,
};

use crate::ui::{Exit, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  lastcall contract list --registry examples/agent-tools")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// Where the registry is.
#[derive(clap::Args)]
struct Where {
    /// The registry's folder.
    #[arg(long, value_name = "DIR", env = "LASTCALL_REGISTRY", default_value = "agent-tools")]
    registry: PathBuf,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Add a definition from a provider's file: writes schemas/ and tool.yaml, the definition byte for byte.
    #[command(
        disable_version_flag = true,
        after_help = "Examples:\n  \
        lastcall contract add refund.json --tool-id refund.create_request --version 2.1.0 --side-effect write --risk high\n  \
        lastcall contract add tools-list.json --name search_issues --dry-run\n\n\
        Exit codes: 0 added or there already, 2 could not."
    )]
    Add(Add),
    /// Freeze contracts: from then on a changed definition under the same id is an error.
    #[command(
        disable_version_flag = true,
        after_help = "Examples:\n  \
        lastcall contract freeze refund.create_request@2.1.0\n  \
        lastcall contract freeze --all\n  \
        lastcall contract freeze --all --check      in CI: writes nothing\n\n\
        Exit codes: 0 frozen, 1 a frozen definition changed (with --check: or one is not frozen yet), 2 could not run."
    )]
    Freeze(Freeze),
    /// Publish a fixed version of a contract, which says what it corrects. The old version stays as it was.
    #[command(
        disable_version_flag = true,
        after_help = "Examples:\n  \
        lastcall contract correct refund.create_request@2.1.0 fixed.json              becomes 2.1.1\n  \
        lastcall contract correct refund_tool.v2 fixed.json --version 3.0.0 --dry-run\n\n\
        Exit codes: 0 published or there already, 2 could not."
    )]
    Correct(correct::Correct),
    /// Every contract on one line.
    #[command(after_help = "Example:\n  lastcall contract list --format json | jq '.contracts[].id'\n\n\
        Exit codes: 0 fine, 1 a frozen definition changed, 2 could not run.")]
    List(show::List),
    /// One contract in full.
    #[command(after_help = "Examples:\n  lastcall contract show refund.create_request@2.1.0\n  \
        lastcall contract show refund_tool.v1 --format json\n\n\
        Exit codes: 0 fine, 1 this contract is frozen and changed, 2 could not run.")]
    Show(show::Show),
}

#[derive(clap::Args)]
struct Add {
    /// A definition of MCP, OpenAI, Anthropic or Gemini, a list of them, or a JSON Schema; `-` reads standard input.
    file: PathBuf,
    #[command(flatten)]
    at: Where,
    /// The tool's stable id; the provider-facing name if absent.
    #[arg(long, value_name = "ID")]
    tool_id: Option<String>,
    /// The version; 1.0.0 for a new tool if absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Which tool of the file, or the name for a bare JSON Schema.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Whose shape the file has; found out if absent.
    #[arg(long, value_parser = parse_source, value_name = "mcp|openai-chat|openai-responses|anthropic|gemini|neutral|json-schema")]
    source: Option<Source>,
    /// What a call does to the world; missing in tool.yaml counts as send.
    #[arg(long, value_parser = parse_effect, value_name = "read|write|send")]
    side_effect: Option<SideEffect>,
    /// How much harm a wrong call can do; missing in tool.yaml counts as critical.
    #[arg(long, value_parser = parse_risk, value_name = "low|medium|high|critical")]
    risk: Option<RiskLevel>,
    /// Say what would be written and write nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args)]
struct Freeze {
    /// Contract ids, or aliases.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,
    /// Every contract of the registry.
    #[arg(long)]
    all: bool,
    /// Write nothing; exit 1 if a frozen definition changed or one of these is not frozen.
    #[arg(long)]
    check: bool,
    /// Say what would be frozen and write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    at: Where,
}

fn parse_source(text: &str) -> Result<Source, String> {
    Source::parse(text).ok_or_else(|| {
        let known: Vec<String> = Source::ALL.iter().map(|s| s.as_str().replace('_', "-")).collect();
        format!("known sources are {}", known.join(", "))
    })
}

fn parse_effect(text: &str) -> Result<SideEffect, String> {
    SideEffect::parse(text).ok_or_else(|| "one of read, write, send".to_owned())
}

fn parse_risk(text: &str) -> Result<RiskLevel, String> {
    RiskLevel::parse(text).ok_or_else(|| "one of low, medium, high, critical".to_owned())
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::Add(args) => add(&args),
        Command::Freeze(args) => freeze(&args),
        Command::Correct(args) => correct::correct(&args),
        Command::List(args) => show::list(&args),
        Command::Show(args) => show::show(&args),
    }
}

fn add(args: &Add) -> anyhow::Result<Exit> {
    let (label, text) = given(&args.file)?;
    let dir = &args.at.registry;
    let request = Request {
        file: &label,
        text: &text,
        tool_id: args.tool_id.as_deref(),
        version: args.version.as_deref(),
        name: args.name.as_deref(),
        source: args.source,
        side_effect: args.side_effect,
        risk_level: args.risk,
        corrects: None,
    };
    let nothing = || format!("nothing was added to the registry {}", dir.display());
    if let Some(version) = args.version.as_deref().filter(|v| !is_semver(v)) {
        tell!(
            "warning: {version} is no X.Y.Z: `lastcall diff --require-bump` and `lastcall contract correct` need three numbers"
        );
    }
    if !dir.exists() {
        let addition = Registry::plan_addition(&RegistryFiles::new(), &request)
            .map_err(anyhow::Error::new)
            .with_context(nothing)?;
        if args.dry_run {
            return write(&args.at, &addition, true);
        }
        std::fs::create_dir_all(dir).with_context(|| format!("{}: cannot be made", dir.display()))?;
    }
    let _held = (!args.dry_run).then(|| disk::hold(dir)).transpose()?;
    let addition = Registry::plan_addition(&read_files(dir)?, &request)
        .map_err(anyhow::Error::new)
        .with_context(nothing)?;
    write(&args.at, &addition, args.dry_run)
}

/// Whether a version is three numbers, perhaps with what SemVer takes behind them.
pub fn is_semver(version: &str) -> bool {
    let main = version.split(['-', '+']).next().unwrap_or_default();
    main.split('.').count() == 3 && main.split('.').all(|part| part.parse::<u64>().is_ok())
}

/// A file's label and text; `-` is standard input.
fn given(file: &std::path::Path) -> anyhow::Result<(String, String)> {
    if file.as_os_str() == "-" {
        return Ok(("standard input".to_owned(), read_stdin()?));
    }
    Ok((file.display().to_string(), read_text(file)?))
}

/// Writes what an addition comes to, or says what it would write.
fn write(at: &Where, addition: &Addition, dry_run: bool) -> anyhow::Result<Exit> {
    let dir = &at.registry;
    let contract = &addition.contract;
    let about = format!(
        "{} {} ({}, {})",
        contract.id, contract.digest, contract.definition.source, contract.definition.draft
    );
    if addition.writes.is_empty() {
        tell!("there already: {about}");
        return Ok(Exit::Yes);
    }
    for write in &addition.writes {
        let path = dir.join(&write.path);
        if disk::is_linked(dir, &write.path) {
            bail!(
                "{}: a symbolic link, which a registry does not read; put the file itself there",
                path.display()
            );
        }
        if dry_run {
            tell!("would write {}", path.display());
        } else {
            write_file(&path, &write.text)?;
            tell!("wrote {}", path.display());
        }
    }
    println!("{about}");
    if !dry_run {
        tell!("next: lastcall contract freeze {}", contract.id);
    }
    Ok(Exit::Yes)
}

fn freeze(args: &Freeze) -> anyhow::Result<Exit> {
    let dir = &args.at.registry;
    let writes = !args.check && !args.dry_run;
    let _held = writes.then(|| disk::hold(dir)).transpose()?;
    let registry = read(dir)?;
    let drift = registry.drift();
    if !drift.is_empty() {
        let lines: Vec<String> = drift.iter().map(ToString::to_string).collect();
        return Err(with_exit(Exit::No, lines.join("\n")));
    }
    let ids: Vec<&str> = if args.all {
        registry.contracts().map(|c| c.id.as_str()).collect()
    } else {
        args.ids.iter().map(String::as_str).collect()
    };
    let (lock, new) = registry.freeze(&ids)?;
    if args.check {
        for id in &new {
            tell!("not frozen: {id}. Run `lastcall contract freeze {id}`.");
        }
        return Ok(if new.is_empty() { Exit::Yes } else { Exit::No });
    }
    let path = dir.join(LOCK_FILE);
    if disk::is_linked(dir, LOCK_FILE) {
        bail!(
            "{}: a symbolic link, which a registry does not read; put the file itself there",
            path.display()
        );
    }
    for id in &new {
        tell!("{} {id}", if args.dry_run { "would freeze" } else { "frozen" });
    }
    if new.is_empty() {
        tell!("all frozen already");
    } else if !args.dry_run {
        write_file(&path, &lock.to_text())?;
        tell!("wrote {}", path.display());
    }
    Ok(Exit::Yes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(subcommand)]
        command: Command,
    }

    fn lastcall(dir: &Path, words: &[&str]) -> anyhow::Result<Exit> {
        let at = dir.join("agent-tools").display().to_string();
        let all = ["contract"].iter().chain(words).copied().chain(["--registry", at.as_str()]);
        run(Args { command: Cli::try_parse_from(all)?.command })
    }

    #[test]
    fn add_freeze_change_on_disk() {
        let dir = std::env::temp_dir().join(format!("lastcall-contract-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("t.json");
        let text = "{ \"name\": \"t\",\r\n \"inputSchema\": {\"type\": \"object\"} }\n";
        std::fs::write(&file, text).unwrap();
        let file = file.display().to_string();

        assert_eq!(lastcall(&dir, &["add", &file, "--dry-run"]).unwrap(), Exit::Yes);
        assert!(!dir.join("agent-tools").exists(), "a dry run writes nothing");
        assert_eq!(lastcall(&dir, &["add", &file]).unwrap(), Exit::Yes);
        let schema = dir.join("agent-tools/t/schemas/v1.0.0.json");
        assert_eq!(std::fs::read_to_string(&schema).unwrap(), text, "byte for byte");
        assert_eq!(lastcall(&dir, &["freeze", "--all", "--check"]).unwrap(), Exit::No);
        assert_eq!(lastcall(&dir, &["freeze", "t.v1"]).unwrap(), Exit::Yes);
        assert_eq!(lastcall(&dir, &["freeze", "--all", "--check"]).unwrap(), Exit::Yes);
        let registry = load_registry(&dir.join("agent-tools")).unwrap();
        assert_eq!(registry.contract("t@1.0.0").unwrap().definition.name, "t");

        std::fs::write(&schema, text.replace("object", "array")).unwrap();
        let broken = lastcall(&dir, &["list"]).unwrap_err();
        assert_eq!(Exit::of_error(&broken), Exit::Usage, "an invalid definition is no drift: {broken:#}");
        std::fs::write(&schema, text.replace("{\"type\"", "{\"title\": \"x\", \"type\"")).unwrap();
        assert_eq!(lastcall(&dir, &["list"]).unwrap(), Exit::No);
        assert_eq!(lastcall(&dir, &["show", "t.v1", "--format", "json"]).unwrap(), Exit::No);
        let error = load_registry(&dir.join("agent-tools")).unwrap_err();
        assert_eq!(Exit::of_error(&error), Exit::No);
        assert!(
            error.to_string().contains("t@1.0.0")
                && error.to_string().contains("publish the change as a new version")
        );
        assert!(lastcall(&dir, &["add", &file, "--tool-id", "../t"]).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
