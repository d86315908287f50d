//! The diff as GitHub-flavoured Markdown, for a comment or a step summary. Nothing from a definition becomes markup.

use lastcall_diff::{Change, ContractDiff, ToolStatus};

use super::{
    DiffReport, class_words, demands, fact_words, name_of, next_step, origin, pasted, refusals, status_words,
    values, without_class, witnesses, worst_first,
};
use crate::findings::{code, markdown_text as text, prose};

/// The whole answer as Markdown, the table of tools before the details, the worst first, so that a cut loses least.
pub fn diff_markdown(report: &DiffReport) -> String {
    let surface = &report.surface;
    let mut out = format!(
        "### lastcall diff: {}\n\n{}\n\n{} → {}\n",
        class_words(surface.class),
        prose(without_class(&surface.sentence, surface.class)),
        code(&report.old),
        code(&report.new)
    );
    out.push_str(&format!(
        "\n**Asks for**: {}.\n\n**Next**: {}.\n",
        demands(surface.bump, surface.handling),
        prose(&next_step(report))
    ));
    if let Some(step) = &report.version_step {
        out.push_str(&format!("\n**Version**: {}.\n", prose(&step.sentence)));
    }
    let tools = worst_first(surface);
    if !report.is_pair() {
        out.push_str("\n| tool | class | step | |\n| --- | --- | --- | --- |\n");
        for tool in &tools {
            out.push_str(&format!(
                "| {} | {} | {} | {} |\n",
                code(&name_of(tool)).replace('|', "\\|"),
                class_words(tool.class),
                tool.bump,
                status_words(tool.status)
            ));
        }
    }
    for tool in tools {
        let quiet = super::changes(tool).next().is_none() && tool.status != ToolStatus::Unreadable;
        if quiet {
            continue;
        }
        if !report.is_pair() {
            out.push_str(&format!("\n#### {}: {}\n", code(&name_of(tool)), class_words(tool.class)));
        }
        if let Some(error) = &tool.error {
            out.push_str(&format!("\n{}\n", prose(error)));
        }
        if let Some(change) = &tool.change {
            out.push('\n');
            one(&mut out, change);
        }
        for diff in &tool.diffs {
            contract(&mut out, diff);
        }
        for same in witnesses(tool) {
            let Some(witness) = same.first() else { continue };
            let why = format!("Refused now, {} ({})", origin(witness), refusals(&same));
            let call = pasted(witness);
            let call = if witness.value.is_some() { fenced(&call) } else { code(&call) };
            out.push_str(&format!("\n{}:\n\n{call}\n", prose(&why)));
        }
        tool.diffs.iter().for_each(|diff| known(&mut out, diff));
    }
    out
}

fn contract(out: &mut String, diff: &ContractDiff) {
    if diff.changes.is_empty() {
        return;
    }
    out.push('\n');
    diff.changes.iter().for_each(|change| one(out, change));
}

fn known(out: &mut String, diff: &ContractDiff) {
    if diff.changes.is_empty() {
        return;
    }
    out.push_str(&format!(
        "\n- calls with declared arguments: {}\n",
        prose(&fact_words(&diff.input.declared, "call"))
    ));
    out.push_str(&format!("- calls with any arguments: {}\n", prose(&fact_words(&diff.input.open, "call"))));
    if let Some(output) = &diff.output {
        out.push_str(&format!("- results: {}\n", prose(&fact_words(&output.declared, "result"))));
    }
    if diff.recorded > 0 {
        out.push_str(&format!("- recorded calls: {} of {} refused\n", diff.recorded_refused, diff.recorded));
    }
    for (title, items) in [
        ("Ask the owner", &diff.questions),
        ("A major version, because", &diff.major_because),
        ("Notes", &diff.notes),
    ] {
        if !items.is_empty() {
            out.push_str(&format!("\n{title}:\n\n"));
            items.iter().for_each(|item| out.push_str(&format!("- {}\n", prose(item))));
        }
    }
}

fn one(out: &mut String, change: &Change) {
    out.push_str(&format!("- **{}**: {}", class_words(change.class), prose(&change.sentence)));
    if !change.pointer.is_empty() {
        out.push_str(&format!(" {} {}", text(change.side.as_str()), code(&change.pointer)));
    }
    if let Some(values) = values(change) {
        out.push_str(&format!(" {}", code(&values)));
    }
    out.push_str(&format!(" ({}, backed by {})", code(change.kind.as_str()), change.backed_by));
    if let Some(fix) = &change.fix {
        out.push_str(&format!(" {}", prose(fix)));
    }
    out.push('\n');
}

/// One line of JSON in a fence that nothing in it can close.
fn fenced(json: &str) -> String {
    let json = &crate::plain(json);
    let mut fence = "```".to_owned();
    while json.contains(fence.as_str()) {
        fence.push('`');
    }
    format!("{fence}json\n{json}\n{fence}")
}
