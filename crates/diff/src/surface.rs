//! Two whole surfaces: which tool is which, what became of each, and the whole.

mod similar;

use std::collections::BTreeMap;

use lastcall_contract::Contract;
use serde_json::Value;

use crate::change::{Change, ChangeKind as Kind, RenameHint, Side};
use crate::class::{Backing, Bump, Class, Handling};
use crate::prove::Operand;
use crate::report::{ContractDiff, DiffOptions, SurfaceDiff, ToolDiff, ToolFacts, ToolStatus};
use crate::rules::{any_call, by_rule, diff_contracts};
use similar::{merged_into, similarity};

/// One tool of a surface.
#[derive(Clone, Debug)]
pub struct SurfaceTool {
    /// The provider-facing name, also of a definition that cannot be read; its place where it has none.
    pub name: String,
    /// The contract, or why it cannot be read.
    pub contract: Result<Contract, String>,
    /// What is known beside the definition.
    pub facts: ToolFacts,
    /// Arguments of its recorded calls, on the old side.
    pub recorded: Vec<Value>,
}

/// What changed from one surface to the other. Tools are matched by name; then those that are left over by likeness, one
/// to one, and several to one. An unreadable tool is reported and hides no other. Facts and recorded
/// calls come from the tools; those in `options` are not used.
pub fn diff_surfaces(old: &[SurfaceTool], new: &[SurfaceTool], options: &DiffOptions<'_>) -> SurfaceDiff {
    let mut tools = Vec::new();
    let (mut gone, mut come): (Vec<&SurfaceTool>, Vec<&SurfaceTool>) = (Vec::new(), Vec::new());
    let by_name: BTreeMap<&str, &SurfaceTool> = new.iter().rev().map(|t| (t.name.as_str(), t)).collect();
    for tool in old {
        match by_name.get(tool.name.as_str()) {
            Some(other) => tools.push(kept(tool, other, options)),
            None => gone.push(tool),
        }
    }
    come.extend(new.iter().filter(|tool| !old.iter().any(|o| o.name == tool.name)));
    // first the merges into a new tool that are clearer than any rename of their parts
    let targets = come.clone();
    tools.extend(merged(&mut gone, &mut come, &targets, true, options));
    tools.extend(renamed(&mut gone, &mut come, options));
    tools.extend(merged(&mut gone, &mut come, &new.iter().collect::<Vec<_>>(), false, options));
    tools.extend(gone.into_iter().map(|tool| removed(tool, options)));
    tools.extend(come.into_iter().map(added));
    let key =
        |tool: &ToolDiff| (tool.new_name.clone().or_else(|| tool.old_names.first().cloned()), tool.status);
    tools.sort_by_key(key);
    let class = tools.iter().map(|t| t.class).max().unwrap_or_default();
    let visible = |t: &ToolDiff| {
        t.change.as_ref().is_some_and(|c| c.model_visible) || t.diffs.iter().any(|d| d.model_visible)
    };
    SurfaceDiff {
        class,
        bump: tools.iter().map(|t| t.bump).max().unwrap_or_default(),
        handling: tools.iter().map(|t| t.handling).max().unwrap_or_default(),
        model_visible: tools.iter().any(visible),
        sentence: sentence(class, &tools),
        tools,
    }
}

fn sentence(class: Class, tools: &[ToolDiff]) -> String {
    let count = |status| tools.iter().filter(|t| t.status == status).count();
    let changed = tools.iter().filter(|t| t.status == ToolStatus::Kept && t.bump > Bump::None).count();
    let parts: Vec<String> = [
        (changed, "changed"),
        (count(ToolStatus::Renamed), "renamed"),
        (count(ToolStatus::Merged), "merged"),
        (count(ToolStatus::Added), "added"),
        (count(ToolStatus::Removed), "removed"),
        (count(ToolStatus::Unreadable), "unreadable"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, word)| format!("{n} {word}"))
    .collect();
    if parts.is_empty() {
        return format!("Nothing changed in {} tools.", tools.len());
    }
    let what = if tools.len() == 1 { "tool" } else { "tools" };
    format!("{} of {} {what}; the worst is {class}.", parts.join(", "), tools.len())
}

/// Facts of two tools beside the options of the whole.
fn with_facts<'a>(old: &'a SurfaceTool, new: &SurfaceTool, options: &DiffOptions<'a>) -> DiffOptions<'a> {
    DiffOptions { old: old.facts.clone(), new: new.facts.clone(), recorded: &old.recorded, ..options.clone() }
}

fn compared(old: &SurfaceTool, new: &SurfaceTool, options: &DiffOptions<'_>) -> Result<ContractDiff, String> {
    let (a, b) = match (&old.contract, &new.contract) {
        (Err(why), _) => return Err(format!("old `{}`: {why}", old.name)),
        (_, Err(why)) => return Err(format!("new `{}`: {why}", new.name)),
        (Ok(a), Ok(b)) => (a, b),
    };
    diff_contracts(a, b, &with_facts(old, new, options)).map_err(|error| format!("`{}`: {error}", new.name))
}

fn of_diff(
    status: ToolStatus,
    old: &SurfaceTool,
    new: &SurfaceTool,
    diff: Result<ContractDiff, String>,
) -> ToolDiff {
    let mut tool = ToolDiff {
        status,
        old_names: vec![old.name.clone()],
        new_name: Some(new.name.clone()),
        class: Class::NeedsReview,
        bump: Bump::Major,
        handling: Handling::Replay,
        rename: None,
        diffs: Vec::new(),
        change: None,
        error: None,
    };
    match diff {
        Ok(diff) => {
            (tool.class, tool.bump, tool.handling) = (diff.class, diff.bump, diff.handling);
            tool.diffs.push(diff);
        }
        Err(error) => {
            tool.status = ToolStatus::Unreadable;
            tool.error = Some(error);
        }
    }
    tool
}

fn kept(old: &SurfaceTool, new: &SurfaceTool, options: &DiffOptions<'_>) -> ToolDiff {
    of_diff(ToolStatus::Kept, old, new, compared(old, new, options))
}

/// Likely renames among what is left over: each the other's best, and clearly.
fn renamed<'a>(
    gone: &mut Vec<&'a SurfaceTool>,
    come: &mut Vec<&'a SurfaceTool>,
    options: &DiffOptions<'_>,
) -> Vec<ToolDiff> {
    let mut scores = Vec::new();
    for (i, old) in gone.iter().enumerate() {
        for (j, new) in come.iter().enumerate() {
            if let (Ok(a), Ok(b)) = (&old.contract, &new.contract)
                && let Some((score, evidence)) = similarity(&a.definition, &b.definition)
            {
                scores.push((score, i, j, evidence));
            }
        }
    }
    scores.sort_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    // Of each new tool the two old ones that are most like it.
    let mut likest: BTreeMap<usize, Vec<(u32, usize)>> = BTreeMap::new();
    for (score, i, j, _) in &scores {
        let best = likest.entry(*j).or_default();
        if best.len() < 2 {
            best.push((*score, *i));
        }
    }
    let mut out = Vec::new();
    let (mut olds, mut news) = (Vec::new(), Vec::new());
    for (score, i, j, evidence) in &scores {
        // Two old tools that look alike enough to be the same new one are a merge, not a rename.
        let rival = likest.get(j).is_some_and(|best| best.iter().any(|(s, a)| a != i && s + 10 > *score));
        if olds.contains(i) || news.contains(j) || rival {
            continue;
        }
        olds.push(*i);
        news.push(*j);
        let (old, new) = (gone[*i], come[*j]);
        let mut tool = of_diff(ToolStatus::Renamed, old, new, compared(old, new, options));
        tool.rename =
            Some(RenameHint { from: old.name.clone(), to: new.name.clone(), evidence: evidence.clone() });
        if let Some(change) =
            tool.diffs.iter_mut().flat_map(|d| &mut d.changes).find(|c| c.kind == Kind::ToolRenamed)
        {
            change.rename.clone_from(&tool.rename);
        }
        out.push(tool);
    }
    let left = |list: &mut Vec<&'a SurfaceTool>, taken: &[usize]| {
        let mut i = 0;
        list.retain(|_| {
            i += 1;
            !taken.contains(&(i - 1))
        });
    };
    left(gone, &olds);
    left(come, &news);
    out
}

/// Several old tools that one new tool takes over; `clearly`: none of them is as much like another new one.
fn merged<'a>(
    gone: &mut Vec<&'a SurfaceTool>,
    come: &mut Vec<&'a SurfaceTool>,
    targets: &[&'a SurfaceTool],
    clearly: bool,
    options: &DiffOptions<'_>,
) -> Vec<ToolDiff> {
    let alike = |a: &SurfaceTool, b: &SurfaceTool| match (&a.contract, &b.contract) {
        (Ok(a), Ok(b)) => similarity(&a.definition, &b.definition).map_or(0, |(score, _)| score),
        _ => 0,
    };
    let mut out = Vec::new();
    for target in targets.iter().copied() {
        let Ok(b) = &target.contract else { continue };
        let parts: Vec<(&'a SurfaceTool, String)> = gone
            .iter()
            .filter_map(|tool| {
                let a = tool.contract.as_ref().ok()?;
                let why = merged_into(&a.definition, &b.definition)?;
                let moved = clearly
                    && come.iter().any(|other| {
                        let score = alike(tool, other);
                        other.name != target.name && score > 0 && score >= alike(tool, target)
                    });
                (!moved).then_some((*tool, why))
            })
            .collect();
        if parts.len() < 2 {
            continue;
        }
        let names: Vec<String> = parts.iter().map(|(tool, _)| tool.name.clone()).collect();
        let mut tool = of_diff(ToolStatus::Merged, parts[0].0, target, compared(parts[0].0, target, options));
        for (part, _) in &parts[1..] {
            match compared(part, target, options) {
                Ok(diff) => {
                    tool.class = tool.class.max(diff.class);
                    tool.bump = tool.bump.max(diff.bump);
                    tool.handling = tool.handling.max(diff.handling);
                    tool.diffs.push(diff);
                }
                Err(error) => tool.error = Some(error),
            }
        }
        let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
        let sentence = format!("{} became one tool, `{}`.", quoted.join(", "), target.name);
        let values = (Some(Value::from(names.clone())), Some(Value::from(target.name.as_str())));
        let mut change =
            by_rule(Kind::ToolsMerged, Side::Definition, "/name", values, Class::Breaking, sentence);
        change.fix =
            Some("Keep the old names as aliases, or let adapters set what tells them apart".to_owned());
        settle(&mut change, parts[0].0, options);
        tool.rename = Some(RenameHint {
            from: names.join(", "),
            to: target.name.clone(),
            evidence: parts[0].1.clone(),
        });
        change.rename.clone_from(&tool.rename);
        tool.class = tool.class.max(change.class);
        tool.bump = Bump::Major;
        tool.handling = tool.handling.max(change.handling);
        tool.change = Some(change);
        tool.old_names = names;
        gone.retain(|g| !tool.old_names.contains(&g.name));
        come.retain(|c| c.name != target.name);
        out.push(tool);
    }
    out
}

/// A call of the tool that is no longer answered; without one it needs review.
fn settle(change: &mut Change, tool: &SurfaceTool, options: &DiffOptions<'_>) {
    let call = tool.contract.as_ref().ok().and_then(|contract| {
        let definition = &contract.definition;
        let input = Operand::new(&definition.input_schema, definition.draft).ok()?;
        any_call(contract, &input, options.seed)
    });
    (change.class, change.backed_by) = match call {
        Some(_) => (Class::Breaking, Backing::Witness),
        None => (Class::NeedsReview, Backing::Nothing),
    };
    change.witness = call;
}

fn removed(tool: &SurfaceTool, options: &DiffOptions<'_>) -> ToolDiff {
    let sentence = format!("The tool `{}` was removed: a call of it finds no tool.", tool.name);
    let values = (Some(Value::from(tool.name.as_str())), None);
    let mut change = by_rule(Kind::ToolRemoved, Side::Definition, "/name", values, Class::Breaking, sentence);
    change.fix = Some("Keep it until no run can come back with it, or name its successor".to_owned());
    settle(&mut change, tool, options);
    alone(ToolStatus::Removed, vec![tool.name.clone()], None, change, tool)
}

fn added(tool: &SurfaceTool) -> ToolDiff {
    let sentence = format!("The tool `{}` is new.", tool.name);
    let values = (None, Some(Value::from(tool.name.as_str())));
    let class = Class::UsuallyCompatible;
    let change = by_rule(Kind::ToolAdded, Side::Definition, "/name", values, class, sentence);
    alone(ToolStatus::Added, Vec::new(), Some(tool.name.clone()), change, tool)
}

fn alone(
    status: ToolStatus,
    old_names: Vec<String>,
    new_name: Option<String>,
    change: Change,
    tool: &SurfaceTool,
) -> ToolDiff {
    let error = tool.contract.as_ref().err().cloned();
    let unread = error.is_some();
    ToolDiff {
        status: if unread { ToolStatus::Unreadable } else { status },
        old_names,
        new_name,
        class: if unread { change.class.max(Class::NeedsReview) } else { change.class },
        bump: if unread { Bump::Major } else { change.bump },
        handling: change.handling,
        rename: None,
        diffs: Vec::new(),
        change: Some(change),
        error,
    }
}
