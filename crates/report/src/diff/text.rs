//! The diff for terminals: the class first, then what is known, each change, the call that breaks, what to do.

use lastcall_diff::{Change, Class, ContractDiff, Side, SurfaceDiff, ToolDiff, ToolStatus};

use super::{
    DiffReport, class_words, demands, fact_words, locations, name_of, next_step, origin, pasted, refusals,
    status_words, values, without_class, witnesses, worst_first,
};
use crate::style::{Style, plain, table};

/// The whole answer as text.
pub fn diff_text(report: &DiffReport, style: Style) -> String {
    let mut out = String::new();
    let surface = &report.surface;
    match surface.tools.as_slice() {
        [tool] if report.is_pair() => {
            line(&mut out, &head(tool, surface.class, style));
            line(&mut out, &plain(without_class(&surface.sentence, surface.class)));
            line(&mut out, &style.dim(&plain(&format!("{} → {}", report.old, report.new))));
            inside(&mut out, tool, style);
        }
        tools => {
            let all = format!("{} {}", tools.len(), if tools.len() == 1 { "tool" } else { "tools" });
            line(&mut out, &format!("{}  {}", class(surface.class, style), style.bold(&all)));
            line(&mut out, &plain(&surface.sentence));
            line(&mut out, &style.dim(&plain(&format!("{} → {}", report.old, report.new))));
            overview(&mut out, surface, style);
            for tool in worst_first(surface).into_iter().filter(|tool| worth_a_section(tool)) {
                line(&mut out, "");
                line(&mut out, &head(tool, tool.class, style));
                inside(&mut out, tool, style);
            }
        }
    }
    line(&mut out, "");
    line(&mut out, &format!("{} {}", style.bold("asks for:"), demands(surface.bump, surface.handling)));
    line(&mut out, &format!("{} {}", style.bold("next:"), plain(&next_step(report))));
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

fn class(class: Class, style: Style) -> String {
    style.class(class, &class_words(class).to_uppercase())
}

fn head(tool: &ToolDiff, worst: Class, style: Style) -> String {
    let visible = tool.diffs.iter().any(|d| d.model_visible)
        || tool.change.as_ref().is_some_and(|change| change.model_visible);
    let flag = if visible { style.dim("  [the model reads it]") } else { String::new() };
    format!("{}  {}{flag}", class(worst, style), style.bold(&plain(&name_of(tool))))
}

fn worth_a_section(tool: &ToolDiff) -> bool {
    tool.status == ToolStatus::Unreadable || super::changes(tool).next().is_some()
}

/// Every tool on one line; those in which nothing changed are only counted.
fn overview(out: &mut String, surface: &SurfaceDiff, style: Style) {
    let mut rows = Vec::new();
    for tool in worst_first(surface).into_iter().filter(|tool| worth_a_section(tool)) {
        let n = super::changes(tool).count();
        rows.push(vec![
            class_words(tool.class).to_owned(),
            plain(&name_of(tool)),
            status_words(tool.status).to_owned(),
            format!("{n} {}", if n == 1 { "change" } else { "changes" }),
        ]);
    }
    let quiet = surface.tools.len() - rows.len();
    if !rows.is_empty() {
        line(out, "");
        out.push_str(&table(&rows, &[], "  "));
    }
    if quiet > 0 {
        let text = format!("  {quiet} unchanged {}", if quiet == 1 { "tool" } else { "tools" });
        line(out, &style.dim(&text));
    }
}

fn inside(out: &mut String, tool: &ToolDiff, style: Style) {
    if let Some(error) = &tool.error {
        line(out, &format!("  {}", plain(error)));
    }
    if let Some(hint) = &tool.rename {
        line(
            out,
            &format!(
                "  `{}` is probably `{}` now: {}",
                plain(&hint.from),
                plain(&hint.to),
                plain(&hint.evidence)
            ),
        );
    }
    if let Some(change) = &tool.change {
        section(out, "The tool", style);
        one(out, change, style);
    }
    for diff in &tool.diffs {
        if tool.diffs.len() > 1 {
            line(out, "");
            line(out, &style.bold(&plain(&format!("{} → {}", diff.old, diff.new))));
        }
        contract(out, diff, style);
    }
    let calls = witnesses(tool);
    if let Some(first) = calls.first().and_then(|same| same.first()) {
        let what = if first.name.is_some() { "call" } else { "value" };
        let title = match calls.len() {
            1 => format!("A {what} that is refused now"),
            _ => format!("Refused now, a {what} each"),
        };
        section(out, &title, style);
    }
    for same in &calls {
        let Some(witness) = same.first() else { continue };
        line(out, &format!("  {}", plain(&pasted(witness))));
        line(out, &style.dim(&plain(&format!("    {}; {}", refusals(same), origin(witness)))));
    }
    for diff in &tool.diffs {
        list(out, "Ask the owner", &diff.questions, style);
        list(out, "A major version, because", &diff.major_because, style);
        list(out, "Notes", &diff.notes, style);
    }
}

fn section(out: &mut String, title: &str, style: Style) {
    line(out, "");
    line(out, &style.bold(title));
}

fn contract(out: &mut String, diff: &ContractDiff, style: Style) {
    if diff.changes.is_empty() {
        return;
    }
    section(out, "What is known", style);
    let mut rows = vec![
        vec!["calls with declared arguments".to_owned(), fact_words(&diff.input.declared, "call")],
        vec!["calls with any arguments".to_owned(), fact_words(&diff.input.open, "call")],
    ];
    if let Some(output) = &diff.output {
        rows.push(vec!["results".to_owned(), fact_words(&output.declared, "result")]);
    }
    if diff.recorded > 0 {
        let refused = format!("{} of {} refused", diff.recorded_refused, diff.recorded);
        rows.push(vec!["recorded calls".to_owned(), refused]);
    }
    let rows: Vec<Vec<String>> = rows.iter().map(|r| r.iter().map(|c| plain(c)).collect()).collect();
    out.push_str(&table(&rows, &[], "  "));

    section(out, "What changed", style);
    for change in &diff.changes {
        one(out, change, style);
    }
}

fn list(out: &mut String, title: &str, items: &[String], style: Style) {
    if !items.is_empty() {
        section(out, title, style);
        for item in items {
            line(out, &format!("  - {}", plain(item)));
        }
    }
}

/// One change: its sentence, then where, from what to what, and what backs it.
fn one(out: &mut String, change: &Change, style: Style) {
    let word = style.class(change.class, class_words(change.class));
    line(out, &format!("  {word}: {}", plain(&change.sentence)));
    let mut facts = vec![change.kind.as_str().to_owned()];
    if !change.pointer.is_empty() {
        facts.push(format!("{} {}", change.side.as_str(), change.pointer));
    }
    if change.side != Side::Definition {
        facts.extend(locations(change).map(|at| format!("schema {at}")));
    }
    facts.push(match (change.backed_by, change.recorded_refused) {
        (backing, Some(n)) if n > 0 => format!("backed by {backing}, {n} recorded calls refused"),
        (backing, _) => format!("backed by {backing}"),
    });
    line(out, &style.dim(&format!("    {}", plain(&facts.join(", ")))));
    if let Some(values) = values(change) {
        line(out, &style.dim(&format!("    {}", plain(&values))));
    }
    if let Some(fix) = &change.fix {
        line(out, &format!("    fix: {}", plain(fix)));
    }
}
