//! Verdicts as GitHub-flavoured Markdown, for a comment on a pull request or a step's summary: escaped, and bounded.

use std::collections::BTreeSet;

use lastcall_decision::{Answer, CategoryFacts, CheckResult, DayState, Verdict, grouped, percent_of};

use super::{leading, phase_name, question};
use crate::findings::{cell, code, markdown_text, within};

/// What GitHub takes as one comment, in characters; no document of this module has more bytes.
pub const MARKDOWN_LIMIT: usize = 65_536;

/// Days that are listed, the last ones.
const DAYS: usize = 31;
/// Rows of a table whose rows come from outside.
const ROWS: usize = 20;
/// Tools that are listed.
const TOOLS: usize = 200;
/// Characters of a text in a line or a cell.
const CHARS: usize = 400;

/// One verdict: the answer, why, a table of checks, the days, what would change it, what is not claimed.
pub fn verdict_markdown(v: &Verdict) -> String {
    within(&one(v), MARKDOWN_LIMIT)
}

/// Several: a table with one row a tool, the worst first, then each that is not READY as far as there is room.
pub fn fleet_markdown(verdicts: &[Verdict]) -> String {
    let mut order: Vec<&Verdict> = verdicts.iter().collect();
    order.sort_by_key(|v| std::cmp::Reverse(v.verdict.rank()));
    let mut counts: Vec<String> = Vec::new();
    for answer in [Answer::Error, Answer::NotReady, Answer::Insufficient, Answer::Ready] {
        let n = order.iter().filter(|v| v.verdict == answer).count();
        if n > 0 {
            counts.push(format!("{n} {}", word(answer)));
        }
    }
    let counts = if counts.is_empty() { "no tool is registered yet".to_owned() } else { counts.join(", ") };
    let mut out = format!("### lastcall decide: {counts}\n");
    if order.is_empty() {
        return out;
    }
    out.push_str("\n| | tool | candidate | days | compared | D | why |\n| --- | --- | --- | ---: | ---: | ---: | --- |\n");
    for v in order.iter().take(TOOLS) {
        let candidate = v.pair.as_ref().map_or_else(|| "–".to_owned(), |p| name(&p.candidate));
        out.push_str(&row(&[
            format!("{} {}", mark(v.verdict), word(v.verdict)),
            tool(v),
            candidate,
            v.totals.days.to_string(),
            grouped(v.totals.compared),
            percent_of(v.totals.counts.disagreed, v.totals.compared),
            leading(v).0.map_or_else(|| "every check passes".to_owned(), |c| code(c.as_str())),
        ]));
    }
    left_out(&mut out, order.len(), TOOLS, "tools");
    let open: Vec<&&Verdict> = order.iter().filter(|v| v.verdict != Answer::Ready).collect();
    let mut told = 0;
    for v in &open {
        let section = format!("\n{}", one(v));
        if out.len() + section.len() + CHARS > MARKDOWN_LIMIT {
            break;
        }
        out.push_str(&section);
        told += 1;
    }
    left_out(&mut out, open.len(), told, "tools are not told in full");
    within(&out, MARKDOWN_LIMIT)
}

fn one(v: &Verdict) -> String {
    let mut out = format!("### {} {}: {}\n\n", mark(v.verdict), tool(v), word(v.verdict));
    let pair =
        v.pair.as_ref().map_or(String::new(), |p| format!(" {} → {}", name(&p.current), name(&p.candidate)));
    out.push_str(&format!("*{}*{pair}, {}\n\n", question(v.question), phase_name(v)));
    out.push_str(&format!("**Answer:** {}\n", words(&v.headline)));
    if let Some(code_) = leading(v).0 {
        out.push_str(&format!("\n**Reason:** {}\n", code(code_.as_str())));
    }
    if let Some(next) = &v.next {
        out.push_str(&format!("\n**What would change it:** {}\n", words(next)));
    }
    if let Some(day) = v.window.as_ref().and_then(|w| w.earliest_ready)
        && v.verdict != Answer::Ready
        && v.problems.is_empty()
    {
        out.push_str(&format!("\n**Earliest READY:** {day}, if every call agrees until then\n"));
    }
    if !v.flags.is_empty() {
        let flags: Vec<String> = v.flags.iter().map(|f| words(&f.text)).collect();
        out.push_str(&format!("\n**Remarks:** {}\n", flags.join(" · ")));
    }
    checks(&mut out, v);
    details(&mut out, &days_title(v), &days(v));
    details(&mut out, "What differs", &categories(v));
    let claims: String = v.not_claimed.iter().map(|c| format!("* {}\n", words(c))).collect();
    details(&mut out, "What is not claimed", &claims);
    out.push_str(&format!("\nCompute it again: {}\n", name(&v.recompute)));
    out
}

fn checks(out: &mut String, v: &Verdict) {
    if v.problems.is_empty() && v.checks.is_empty() {
        return;
    }
    out.push_str("\n| | check | found | asked | reason | what would change it |\n| --- | --- | --- | --- | --- | --- |\n");
    for p in v.problems.iter().take(ROWS) {
        out.push_str(&row(&[
            result(p.result),
            String::new(),
            words(&p.text),
            String::new(),
            code(p.reason.as_str()),
            p.next.as_deref().map(words).unwrap_or_default(),
        ]));
    }
    for c in &v.checks {
        out.push_str(&row(&[
            result(c.result),
            name(&c.id),
            words(&c.value),
            words(&c.threshold),
            code(c.reason.as_str()),
            c.next.as_deref().map(words).unwrap_or_default(),
        ]));
    }
    let rest: BTreeSet<&str> = v.problems.iter().skip(ROWS).map(|p| p.reason.as_str()).collect();
    if !rest.is_empty() {
        let rest: Vec<String> = rest.into_iter().map(code).collect();
        out.push_str(&format!("\n… {} more in the way: {}\n", v.problems.len() - ROWS, rest.join(", ")));
    }
}

fn days_title(v: &Verdict) -> String {
    let t = &v.totals;
    format!(
        "Days: {} closed, D {} ({} of {})",
        t.days,
        percent_of(t.counts.disagreed, t.compared),
        grouped(t.counts.disagreed),
        grouped(t.compared)
    )
}

fn days(v: &Verdict) -> String {
    if v.days.is_empty() {
        return String::new();
    }
    let mut out = String::from("| day | | compared | disagreed | D | D worst | blocks | unresolved |\n");
    out.push_str("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    let skip = v.days.len().saturating_sub(DAYS);
    for d in v.days.iter().skip(skip) {
        let c = &d.counts;
        let open = matches!(d.state, DayState::Open | DayState::Beyond);
        out.push_str(&row(&[
            d.day.to_string(),
            if open { format!("*{}*", d.state.as_str()) } else { d.state.as_str().to_owned() },
            grouped(d.compared),
            grouped(c.disagreed),
            percent_of(c.disagreed, d.compared),
            percent_of(c.disagreed.saturating_add(c.unresolved), d.compared.saturating_add(c.unresolved)),
            grouped(c.blocks),
            grouped(c.unresolved),
        ]));
    }
    left_out(&mut out, v.days.len(), DAYS, "days before these");
    out
}

fn categories(v: &Verdict) -> String {
    if v.categories.is_empty() {
        return String::new();
    }
    let mut out =
        String::from("| category | calls | refused | seen | where |\n| --- | --- | ---: | --- | --- |\n");
    for c in v.categories.iter().take(ROWS) {
        out.push_str(&row(&[
            name(&c.category),
            severities(c),
            grouped(c.refused),
            format!("{} to {}", c.first_seen, c.last_seen),
            places(c),
        ]));
    }
    left_out(&mut out, v.categories.len(), ROWS, "categories");
    out
}

fn severities(c: &CategoryFacts) -> String {
    let each = [("block", c.block), ("warn", c.warn), ("info", c.info)];
    let told: Vec<String> =
        each.iter().filter(|(_, n)| *n > 0).map(|(s, n)| format!("{} {s}", grouped(*n))).collect();
    told.join(", ")
}

fn places(c: &CategoryFacts) -> String {
    let place = |pointer: &str| if pointer.is_empty() { "the whole".to_owned() } else { name(pointer) };
    let mut told: Vec<String> = c.fields.iter().map(|f| place(&f.pointer)).collect();
    let more = c.distinct_fields.saturating_sub(c.fields.len() as u64);
    if more > 0 {
        told.push(format!("{more} more"));
    }
    told.join(", ")
}

/// A part that a reader unfolds.
fn details(out: &mut String, title: &str, body: &str) {
    if !body.is_empty() {
        out.push_str(&format!("\n<details><summary>{title}</summary>\n\n{body}\n</details>\n"));
    }
}

fn left_out(out: &mut String, all: usize, shown: usize, what: &str) {
    if all > shown {
        out.push_str(&format!("\n… {} more {what}\n", all - shown));
    }
}

fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|c| cell(c)).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn tool(v: &Verdict) -> String {
    match v.registration.as_ref().and_then(|r| r.cohort.as_deref()) {
        Some(cohort) => format!("{} of cohort {}", name(&v.tool_id), name(cohort)),
        None => name(&v.tool_id),
    }
}

/// A name from outside: a code span, so that nothing in it is markup, a mention or a link.
fn name(text: &str) -> String {
    code(&clip(text))
}

/// A sentence that may hold names from outside: nothing in it is markup, and nothing in it becomes a link by itself.
fn words(text: &str) -> String {
    markdown_text(&clip(text)).replace("://", ":\u{200b}//").replace("www.", "www\u{200b}.")
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::NotReady => "NOT READY",
        other => other.as_str(),
    }
}

fn mark(answer: Answer) -> &'static str {
    match answer {
        Answer::Ready => "✅",
        Answer::NotReady => "❌",
        Answer::Insufficient => "❔",
        Answer::Error => "⚠️",
    }
}

fn result(result: CheckResult) -> String {
    let mark = match result {
        CheckResult::Pass => "✅",
        CheckResult::Fail => "❌",
        CheckResult::Insufficient | CheckResult::Unknown => "❔",
        CheckResult::Error => "⚠️",
    };
    format!("{mark} {}", result.as_str())
}
