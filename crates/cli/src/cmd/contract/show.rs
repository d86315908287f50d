//! `lastcall contract list` and `show`.

use std::io::Write as _;

use lastcall_contract::{Registry, Tool, ToolVersion};
use serde_json::{Value, json};

use super::{Where, disk};
use crate::ui::Exit;

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Arguments of `contract list`.
#[derive(clap::Args)]
pub struct List {
    /// Text for people, JSON for programs.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    at: Where,
}

/// Arguments of `contract show`.
#[derive(clap::Args)]
pub struct Show {
    /// Contract id, or an alias.
    id: String,
    /// Text for people, JSON for programs.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    at: Where,
}

/// One line a contract.
pub fn list(args: &List) -> anyhow::Result<Exit> {
    let registry = disk::read(&args.at.registry)?;
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
                        remarks(tool, version).join(", "),
                    ]);
                }
            }
            print!("{}", table(&rows));
        }
    }
    for drift in &drift {
        tell!("error: {drift}");
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

/// What is to be known of a version before it is used.
fn remarks(tool: &Tool, version: &ToolVersion) -> Vec<String> {
    let mut remarks = Vec::new();
    if version.deprecated {
        remarks.push("deprecated".to_owned());
    }
    if let Some(corrects) = &version.corrects {
        remarks.push(format!("corrects {corrects}"));
    }
    if let Some(correction) = tool.correction_of(&version.version) {
        remarks.push(format!("corrected by {}", correction.contract.id));
    }
    remarks
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
        "corrects": version.corrects,
        "corrected_by": tool.correction_of(&version.version).map(|v| v.contract.id.as_str()),
        "side_effect": tool.side_effect.as_str(),
        "risk_level": tool.risk_level.as_str(),
        "source": contract.definition.source.as_str(),
        "draft": contract.definition.draft.as_str(),
        "file": version.file,
    })
}

/// One contract in full.
pub fn show(args: &Show) -> anyhow::Result<Exit> {
    let registry = disk::read(&args.at.registry)?;
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
    let remarks = remarks(tool, version);
    if !remarks.is_empty() {
        rows.push(["remarks".to_owned(), remarks.join(", ")]);
    }
    format!("{}\n{}\n", table(&rows), definition.verbatim.trim_end())
}

/// Columns padded with spaces; control characters in a cell are shown escaped.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| lastcall_report::plain(cell)).collect()).collect();
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
