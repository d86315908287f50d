//! Surfaces from JSON.

#![allow(dead_code, clippy::unwrap_used)]

use lastcall_contract::{Contract, Definition};
use lastcall_diff::{Change, DiffOptions, SurfaceDiff, SurfaceTool, ToolFacts, diff_surfaces};
use serde_json::{Value, json};

/// The contract of one definition.
pub fn contract(tool: &Value) -> Contract {
    let definition = Definition::from_value(tool).unwrap();
    Contract::new(definition.name.clone(), definition)
}

/// A surface: tools with, beside the definition, `errors` as in `tool.yaml`.
pub fn surface(tools: &Value) -> Vec<SurfaceTool> {
    let read = |tool: &Value| {
        let mut tool = tool.clone();
        let errors = tool.as_object_mut().unwrap().remove("errors").unwrap_or(json!([]));
        let facts = ToolFacts { errors: serde_json::from_value(errors).unwrap(), ..ToolFacts::default() };
        let contract = contract(&tool);
        SurfaceTool {
            name: contract.definition.name.clone(),
            contract: Ok(contract),
            facts,
            recorded: Vec::new(),
        }
    };
    tools.as_array().unwrap().iter().map(read).collect()
}

pub fn diff(old: &Value, new: &Value) -> SurfaceDiff {
    diff_surfaces(&surface(old), &surface(new), &DiffOptions::default())
}

/// Every change of a surface.
pub fn changes(diff: &SurfaceDiff) -> Vec<&Change> {
    diff.tools.iter().flat_map(|t| t.change.iter().chain(t.diffs.iter().flat_map(|d| &d.changes))).collect()
}
