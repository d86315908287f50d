//! A proposed entry for a tool's `changelog.md`: what changed for those who call it, worst first. A proposal: the owner
//! knows what a schema does not say.

use lastcall_diff::{Change, Class, ContractDiff, ToolDiff};

use super::{DiffReport, class_words, name_of, pasted};
use crate::findings::{code, prose};

/// The entry: a heading with the new version, one line on who has to act, the changes, the migration, the open questions.
/// `consumers` are the agents known to use the tool.
pub fn diff_changelog(report: &DiffReport, consumers: &[String]) -> String {
    let mut out = String::new();
    for tool in &report.surface.tools {
        if super::changes(tool).next().is_none() {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("## {}\n", heading(report, tool)));
        out.push_str(&format!(
            "\nRisk: {}. {}.\n",
            class_words(tool.class),
            capital(tool.handling.in_words())
        ));
        if let Some(change) = &tool.change {
            out.push('\n');
            one(&mut out, change);
        }
        for diff in &tool.diffs {
            entry(&mut out, diff);
        }
        if !consumers.is_empty() && !tool.class.passes() {
            let names: Vec<String> = consumers.iter().map(|name| code(name)).collect();
            out.push_str(&format!("\nKnown to call it: {}.\n", names.join(", ")));
        }
    }
    if out.is_empty() { "Nothing changed: no entry.\n".to_owned() } else { out }
}

/// The new version where there is one, else the tool.
fn heading(report: &DiffReport, tool: &ToolDiff) -> String {
    let version = match (report.is_pair(), report.new.rsplit_once('@')) {
        (true, Some((_, version))) if !version.contains(['/', ' ']) => Some(version.to_owned()),
        _ => None,
    };
    version.unwrap_or_else(|| code(&name_of(tool)))
}

fn entry(out: &mut String, diff: &ContractDiff) {
    if diff.changes.is_empty() {
        return;
    }
    out.push('\n');
    for change in &diff.changes {
        one(out, change);
    }
    if let Some(witness) = diff.witness() {
        out.push_str(&format!("\nRefused from now on, for instance: {}\n", code(&pasted(witness))));
    }
    if !diff.questions.is_empty() {
        out.push_str("\nTo be answered by the owner before publishing:\n\n");
        diff.questions.iter().for_each(|question| out.push_str(&format!("- {}\n", prose(question))));
    }
}

fn one(out: &mut String, change: &Change) {
    let mark = match change.class {
        class if class >= Class::HighRisk => format!("**{}**: ", class_words(class)),
        _ => String::new(),
    };
    let fix =
        change.fix.as_ref().map(|fix| format!(" {}.", prose(fix.trim_end_matches('.')))).unwrap_or_default();
    out.push_str(&format!("- {mark}{}{fix}\n", prose(&change.sentence)));
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}
