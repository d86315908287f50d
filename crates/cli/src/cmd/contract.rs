//! `lastcall contract`: the registry's folder on disk. Reads it whole before it writes, writes by rename, and never
//! writes anything that it did not read back first.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lastcall_contract::registry::{LOCK_FILE, Request, wants_file};
use lastcall_contract::{
    MAX_DOCUMENT_BYTES, Registry, RegistryFiles, RiskLevel, SideEffect, Source, Tool, ToolVersion,
};
use serde_json::{Value, json};

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

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
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
    /// Every contract on one line.
    #[command(after_help = "Example:\n  lastcall contract list --format json | jq '.contracts[].id'\n\n\
        Exit codes: 0 fine, 1 a frozen definition changed, 2 could not run.")]
    List(List),
    /// One contract in full.
    #[command(after_help = "Examples:\n  lastcall contract show refund.create_request@2.1.0\n  \
        lastcall contract show refund_tool.v1 --format json\n\n\
        Exit codes: 0 fine, 1 this contract is frozen and changed, 2 could not run.")]
    Show(Show),
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

#[derive(clap::Args)]
struct List {
    /// Text for people, JSON for programs.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    at: Where,
}

#[derive(clap::Args)]
struct Show {
    /// Contract id, or an alias.
    id: String,
    /// Text for people, JSON for programs.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
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
        Command::List(args) => list(&args),
        Command::Show(args) => show(&args),
    }
}

/// Reads a registry for a command that relies on its contracts: a frozen contract that changed is an error (exit 1).
///
/// # Errors
/// The folder cannot be read, or anything in it is wrong; each problem on its own line with place and next step.
pub fn load_registry(dir: &Path) -> anyhow::Result<Registry> {
    let registry = read(dir)?;
    let drift = registry.drift();
    if drift.is_empty() {
        return Ok(registry);
    }
    let lines: Vec<String> = drift.iter().map(ToString::to_string).collect();
    Err(with_exit(Exit::No, lines.join("\n")))
}

/// Reads a registry, drift or not.
fn read(dir: &Path) -> anyhow::Result<Registry> {
    let registry = parse(dir, &read_files(dir)?)?;
    for note in registry.notes() {
        eprintln!("note: {note}");
    }
    Ok(registry)
}

fn parse(dir: &Path, files: &RegistryFiles) -> anyhow::Result<Registry> {
    Registry::read(files)
        .map_err(anyhow::Error::new)
        .with_context(|| format!("the registry {} does not hold together", dir.display()))
}

/// More files than this are no registry.
const MAX_FILES: usize = 100_000;
/// Folders nest no deeper than this.
const MAX_FOLDERS: usize = 8;

/// The texts of a registry's folder. Symbolic links are not followed.
pub fn read_files(dir: &Path) -> anyhow::Result<RegistryFiles> {
    if !dir.is_dir() {
        bail!(
            "{}: no such folder. Name the registry with --registry DIR or LASTCALL_REGISTRY; \
             `lastcall contract add FILE` begins a new one",
            dir.display()
        );
    }
    let mut files = RegistryFiles::new();
    let mut stack = vec![(dir.to_path_buf(), String::new(), 0usize)];
    while let Some((folder, prefix, depth)) = stack.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("{}: cannot be read", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("{}: cannot be read", folder.display()))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let kind =
                entry.file_type().with_context(|| format!("{}: cannot be read", entry.path().display()))?;
            if kind.is_dir() {
                if depth < MAX_FOLDERS && wants_file(&format!("{path}/x.json")) {
                    stack.push((entry.path(), path, depth + 1));
                }
            } else if wants_file(&path) {
                if kind.is_symlink() {
                    eprintln!("note: {} is a symbolic link and is not read", entry.path().display());
                    continue;
                }
                if files.len() >= MAX_FILES {
                    bail!("{}: more than {MAX_FILES} files, this is no registry", dir.display());
                }
                files.insert(path, read_text(&entry.path())?);
            }
        }
    }
    Ok(files)
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    let size = std::fs::metadata(path).with_context(|| format!("{}: cannot be read", path.display()))?.len();
    if usize::try_from(size).unwrap_or(usize::MAX) > MAX_DOCUMENT_BYTES {
        bail!("{}: {size} bytes, more than {MAX_DOCUMENT_BYTES}; split the file", path.display());
    }
    let bytes = std::fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    String::from_utf8(bytes).with_context(|| format!("{}: not UTF-8; save the file as UTF-8", path.display()))
}

/// Standard input, up to the same size as a file. What is longer is refused by the parser, by its length.
fn read_stdin() -> anyhow::Result<String> {
    let limit = u64::try_from(MAX_DOCUMENT_BYTES).unwrap_or(u64::MAX);
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(limit.saturating_add(1))
        .read_to_string(&mut text)
        .context("standard input: cannot be read as UTF-8")?;
    Ok(text)
}

fn add(args: &Add) -> anyhow::Result<Exit> {
    let (label, text) = if args.file.as_os_str() == "-" {
        ("standard input".to_owned(), read_stdin()?)
    } else {
        (args.file.display().to_string(), read_text(&args.file)?)
    };
    let dir = &args.at.registry;
    let files = if dir.exists() { read_files(dir)? } else { RegistryFiles::new() };
    let request = Request {
        file: &label,
        text: &text,
        tool_id: args.tool_id.as_deref(),
        version: args.version.as_deref(),
        name: args.name.as_deref(),
        source: args.source,
        side_effect: args.side_effect,
        risk_level: args.risk,
    };
    let addition = Registry::plan_addition(&files, &request)?;
    let contract = &addition.contract;
    let about = format!(
        "{} {} ({}, {})",
        contract.id, contract.digest, contract.definition.source, contract.definition.draft
    );
    if addition.writes.is_empty() {
        eprintln!("there already: {about}");
        return Ok(Exit::Yes);
    }
    for write in &addition.writes {
        let path = dir.join(&write.path);
        if args.dry_run {
            eprintln!("would write {}", path.display());
        } else {
            write_file(&path, &write.text)?;
            eprintln!("wrote {}", path.display());
        }
    }
    println!("{about}");
    if !args.dry_run {
        eprintln!("next: lastcall contract freeze {}", contract.id);
    }
    Ok(Exit::Yes)
}

/// Writes beside, then renames over: a reader sees the old file or the new one.
fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let failed = || format!("{}: cannot be written", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(failed)?;
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("file");
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let written = std::fs::File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    });
    if written.is_err() {
        // What is left of a failed write; its own failure changes nothing.
        drop(std::fs::remove_file(&beside));
    }
    written.with_context(failed)
}

fn freeze(args: &Freeze) -> anyhow::Result<Exit> {
    let dir = &args.at.registry;
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
            eprintln!("not frozen: {id}. Run `lastcall contract freeze {id}`.");
        }
        return Ok(if new.is_empty() { Exit::Yes } else { Exit::No });
    }
    let path = dir.join(LOCK_FILE);
    for id in &new {
        eprintln!("{} {id}", if args.dry_run { "would freeze" } else { "frozen" });
    }
    if new.is_empty() {
        eprintln!("all frozen already");
    } else if !args.dry_run {
        write_file(&path, &lock.to_text())?;
        eprintln!("wrote {}", path.display());
    }
    Ok(Exit::Yes)
}

fn list(args: &List) -> anyhow::Result<Exit> {
    let registry = read(&args.at.registry)?;
    let drift = registry.drift();
    match args.format {
        Format::Json => {
            let contracts: Vec<Value> = registry
                .tools()
                .flat_map(|tool| tool.versions.iter().map(move |version| (tool, version)))
                .map(|(tool, version)| summary(&registry, tool, version))
                .collect();
            let drift: Vec<Value> = drift
                .iter()
                .map(|d| json!({"id": d.id, "file": d.file, "frozen": d.frozen, "found": d.found}))
                .collect();
            print_json(&json!({"contracts": contracts, "drift": drift}))?;
        }
        Format::Text => {
            let mut rows = vec![
                ["CONTRACT", "DIGEST", "FROZEN", "EFFECT", "RISK", "SOURCE", "DRAFT", ""].map(str::to_owned),
            ];
            for tool in registry.tools() {
                for version in &tool.versions {
                    let contract = &version.contract;
                    rows.push([
                        contract.id.clone(),
                        contract.digest.short().to_owned(),
                        frozen(&registry, version).to_owned(),
                        tool.side_effect.as_str().to_owned(),
                        tool.risk_level.as_str().to_owned(),
                        contract.definition.source.to_string(),
                        contract.definition.draft.to_string(),
                        if version.deprecated { "deprecated".to_owned() } else { String::new() },
                    ]);
                }
            }
            print!("{}", table(&rows));
        }
    }
    for drift in &drift {
        eprintln!("error: {drift}");
    }
    Ok(if drift.is_empty() { Exit::Yes } else { Exit::No })
}

/// `yes`, `no` or `CHANGED`.
fn frozen(registry: &Registry, version: &ToolVersion) -> &'static str {
    match registry.lock().get(&version.contract.id) {
        None => "no",
        Some(digest) if *digest == version.contract.digest => "yes",
        Some(_) => "CHANGED",
    }
}

fn summary(registry: &Registry, tool: &Tool, version: &ToolVersion) -> Value {
    let contract = &version.contract;
    json!({
        "id": contract.id,
        "tool_id": tool.tool_id,
        "version": version.version,
        "aliases": version.aliases,
        "name": contract.definition.name,
        "digest": contract.digest,
        "digest_basis": contract.basis.as_str(),
        "frozen": frozen(registry, version) != "no",
        "changed": frozen(registry, version) == "CHANGED",
        "deprecated": version.deprecated,
        "side_effect": tool.side_effect.as_str(),
        "risk_level": tool.risk_level.as_str(),
        "source": contract.definition.source.as_str(),
        "draft": contract.definition.draft.as_str(),
        "file": version.file,
    })
}

fn show(args: &Show) -> anyhow::Result<Exit> {
    let registry = read(&args.at.registry)?;
    let (tool, version) = registry.resolve(&args.id)?;
    let definition = &version.contract.definition;
    match args.format {
        Format::Json => {
            let mut value = summary(&registry, tool, version);
            if let Some(map) = value.as_object_mut() {
                let rest = json!({
                    "title": definition.title,
                    "description": definition.description,
                    "strict": definition.strict,
                    "annotations": definition.annotations,
                    "input_schema": definition.input_schema,
                    "output_schema": definition.output_schema,
                    "document": definition.document,
                    "owner": tool.owner,
                    "domains": tool.domains,
                    "consumers": tool.consumers,
                    "errors": tool.errors,
                });
                map.extend(rest.as_object().cloned().unwrap_or_default());
            }
            print_json(&value)?;
        }
        Format::Text => print!("{}", page(&registry, tool, version)),
    }
    Ok(if frozen(&registry, version) == "CHANGED" { Exit::No } else { Exit::Yes })
}

fn page(registry: &Registry, tool: &Tool, version: &ToolVersion) -> String {
    let (contract, definition) = (&version.contract, &version.contract.definition);
    let unstated = |stated: bool| if stated { "" } else { " (not stated: the strictest)" };
    let mut rows = vec![
        ["contract".to_owned(), contract.id.clone()],
        ["name".to_owned(), definition.name.clone()],
        ["digest".to_owned(), format!("{} ({})", contract.digest, contract.basis.as_str())],
        ["frozen".to_owned(), frozen(registry, version).to_owned()],
        ["source".to_owned(), format!("{}, {}", definition.source, definition.draft)],
        ["side effect".to_owned(), format!("{}{}", tool.side_effect.as_str(), unstated(tool.stated.1))],
        ["risk".to_owned(), format!("{}{}", tool.risk_level.as_str(), unstated(tool.stated.0))],
        ["file".to_owned(), version.file.clone()],
    ];
    if let Some(owner) = &tool.owner {
        rows.push(["owner".to_owned(), owner.clone()]);
    }
    for (key, values) in
        [("domains", &tool.domains), ("consumers", &tool.consumers), ("aliases", &version.aliases)]
    {
        if !values.is_empty() {
            rows.push([key.to_owned(), values.join(", ")]);
        }
    }
    if version.deprecated {
        rows.push(["deprecated".to_owned(), "yes".to_owned()]);
    }
    format!("{}\n{}\n", table(&rows), definition.verbatim.trim_end())
}

/// Columns padded with spaces; control characters in a cell are shown escaped.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let clean = |cell: &String| -> String {
        cell.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(clean).collect()).collect();
    let width = |n: usize| {
        rows.iter().filter_map(|row| row.get(n)).map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

fn print_json(value: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
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
