//! Second opinions: 63 pairs of jsoncompat and 32 changes of MCP tools from mcp-covenant. Where we differ, the reason
//! stands in `opinions.toml`; a difference without a reason, or a reason without a difference, is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use lastcall_contract::{Contract, Definition, Draft};
use lastcall_diff::{
    Bump, ContractDiff, DiffOptions, Direction, FactAnswer, SurfaceTool, ToolFacts, diff_schemas,
    diff_surfaces,
};
use serde_json::{Map, Value, json};

const REASONS: &str = include_str!("opinions.toml");

/// Prints every difference with its reason.
pub fn score(data: &Path) -> Result<Map<String, Value>> {
    let reasons: BTreeMap<String, String> = toml::from_str(REASONS).context("opinions.toml")?;
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut unexplained = Vec::new();
    let mut differ = |id: String, theirs: String, ours: String| {
        let reason = reasons.get(&id).map(String::as_str);
        println!("  {id}: theirs {theirs}, ours {ours}: {}", reason.unwrap_or("NO REASON"));
        if reason.is_none() {
            unexplained.push(id.clone());
        }
        used.insert(id);
    };
    let pairs = jsoncompat(data, &mut differ)?;
    let surfaces = covenant(data, &mut differ)?;
    let stale: Vec<&String> = reasons.keys().filter(|id| !used.contains(*id)).collect();
    println!("  {pairs} answers of jsoncompat and {surfaces} of mcp-covenant; {} differences", used.len());
    if !unexplained.is_empty() || !stale.is_empty() {
        bail!("opinions: without a reason {unexplained:?}; reasons without a difference {stale:?}");
    }
    let figures = json!({"answers": pairs + surfaces, "differences": used.len(), "unexplained": 0});
    Ok(Map::from_iter([("opinions".to_owned(), figures)]))
}

fn cases(data: &Path, file: &str) -> Result<Vec<Value>> {
    let document: Value = serde_json::from_slice(&std::fs::read(data.join(file))?)?;
    document["cases"].as_array().cloned().context("no cases")
}

/// `old_subset_new` is our declared fact of arguments, `new_subset_old` the open one of results.
fn jsoncompat(data: &Path, differ: &mut dyn FnMut(String, String, String)) -> Result<u64> {
    let mut answers = 0;
    for case in cases(data, "jsoncompat_backcompat.json")? {
        let id = case["id"].as_str().context("no id")?;
        for (key, direction) in [("old_subset_new", Direction::Input), ("new_subset_old", Direction::Output)]
        {
            let Some(theirs) = case["expect"][key].as_bool() else { continue };
            answers += 1;
            let diff = diff_schemas(
                &case["old"],
                &case["new"],
                Draft::Draft202012,
                direction,
                &DiffOptions::default(),
            );
            let ours = match &diff {
                Ok(diff) => facts(diff, direction),
                Err(error) => format!("error: {error}"),
            };
            let same = ours == if theirs { "contained" } else { "not contained" };
            if !same {
                let theirs = if theirs { "contained" } else { "not contained" };
                differ(format!("jsoncompat/{id}/{key}"), theirs.to_owned(), ours);
            }
        }
    }
    Ok(answers)
}

fn facts(diff: &ContractDiff, direction: Direction) -> String {
    let answer = match direction {
        Direction::Input => Some(diff.input.declared.answer),
        Direction::Output => diff.output.as_ref().map(|f| f.open.answer),
    };
    match answer {
        Some(FactAnswer::Proven) => "contained",
        Some(FactAnswer::Refuted) => "not contained",
        _ => "unknown",
    }
    .to_owned()
}

/// Their greatest severity against our bump: Breaking is major, Minor minor, Patch patch.
fn covenant(data: &Path, differ: &mut dyn FnMut(String, String, String)) -> Result<u64> {
    let mut answers = 0;
    for case in cases(data, "mcp_covenant_surface.json")? {
        let id = case["id"].as_str().context("no id")?;
        let (Some(old), Some(new)) = (case["old"]["tools"].as_array(), case["new"]["tools"].as_array())
        else {
            continue; // prompts and resources
        };
        answers += 1;
        let stated = case["expect"]["code_severities"].as_array().cloned().unwrap_or_default();
        let theirs = stated.iter().filter_map(Value::as_str).map(bump).max().unwrap_or_default();
        let diff = diff_surfaces(&surface(old), &surface(new), &DiffOptions::default());
        if diff.bump != theirs {
            differ(format!("covenant/{id}"), theirs.to_string(), diff.bump.to_string());
        }
    }
    Ok(answers)
}

fn bump(severity: &str) -> Bump {
    match severity {
        "Breaking" => Bump::Major,
        "Minor" => Bump::Minor,
        "Patch" => Bump::Patch,
        _ => Bump::None,
    }
}

/// A missing input schema is how that tool writes "none".
fn surface(tools: &[Value]) -> Vec<SurfaceTool> {
    let read = |tool: &Value| {
        let mut tool = tool.clone();
        if tool.get("inputSchema").is_none() {
            tool["inputSchema"] = json!({"type": "object"});
        }
        let name = tool["name"].as_str().unwrap_or_default().to_owned();
        let contract = Definition::from_value(&tool).map(|d| Contract::new(name.clone(), d));
        SurfaceTool {
            name,
            contract: contract.map_err(|e| e.to_string()),
            facts: ToolFacts::default(),
            recorded: Vec::new(),
        }
    };
    tools.iter().map(read).collect()
}
