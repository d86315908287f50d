//! A trial as a page: how many calls would be refused or changed, where, by whom, and the worst of them.

use lastcall_decision::{grouped, percent_of};
use maud::{Markup, html};

use super::page::{page, pointer};
use crate::trial::{TryBurnIn, TryReport, TryScoredDay};

/// A trial as a self-contained page.
pub fn try_page(t: &TryReport) -> String {
    let (class, word) = badge(t);
    let body = html! {
        header {
            p.kicker { "Which of these calls would the changed definition refuse or change? · " (t.old) " → " (t.new) }
            div.top {
                h1 { (t.tool) }
                span class=(class) { (word) }
            }
            p.headline { (t.headline()) }
            @if !t.notes.is_empty() { ul.flags { @for n in &t.notes { li { (n) } } } }
        }
        section { (figures(t)) }
        section { h2 { "What differs" } (categories(t)) }
        @if !t.worst.is_empty() { section { h2 { "The worst calls" } (worst(t)) } }
        @if !t.callers.is_empty() || !t.days.is_empty() { section.two { (callers(t)) (days(t)) } }
        @if let Some(b) = &t.burn_in { section { h2 { "Had this been a burn-in" } (burn_in(b)) } }
        section { h2 { "Not claimed" } ul.plain {
            li { "A trial is never a verdict: nothing was fixed before these calls were seen." }
            li { "Calls of " (t.source) " alone were looked at." }
        } }
    };
    page(&format!("{}: {}", t.tool, t.headline()), &body)
}

/// The class and the word that a reader sees first. What is unknown is never green.
fn badge(t: &TryReport) -> (&'static str, &'static str) {
    let unsure = "verdict insufficient";
    if t.refused > 0 {
        ("verdict not-ready", "WOULD BREAK")
    } else if t.changed > 0 {
        (unsure, "WOULD CHANGE")
    } else if t.calls == 0 {
        (unsure, "NO CALLS")
    } else if t.compared() == 0 || t.unresolved > 0 || t.undecodable > 0 {
        (unsure, "NOT ALL JUDGED")
    } else if t.output_changed {
        (unsure, "ARGUMENTS FIT")
    } else {
        ("verdict ready", "NO CALL AFFECTED")
    }
}

fn figures(t: &TryReport) -> Markup {
    let share = |n: u64| percent_of(n, t.compared());
    html! {
        dl.facts {
            div { dt { "Compared" } dd { (grouped(t.compared())) small { (grouped(t.calls)) " calls from " (t.source) } } }
            div { dt { "Would be refused" } dd { (grouped(t.refused)) small { (share(t.refused)) } } }
            div { dt { "Would be changed" } dd { (grouped(t.changed)) small { (share(t.changed)) } } }
            div { dt { "Agreed" } dd { (grouped(t.agreed)) small { (share(t.agreed)) } } }
            div { dt { "Could not be judged" } dd { (grouped(t.unresolved + t.undecodable)) small { @if t.undecodable > 0 { (grouped(t.undecodable)) " of them could not be read" } @else { "unknown is never agreement" } } } }
        }
        @if let Some(rest) = t.beside() { p.soft style="margin-top:.6rem" { "Beside these: " (rest) "." } }
        @if !t.reasons.is_empty() {
            p.soft style="margin-top:.6rem" { @for (i, (r, n)) in t.reasons.iter().enumerate() { @if i > 0 { ", " } code { (r) } " " (grouped(*n)) } }
        }
    }
}

fn categories(t: &TryReport) -> Markup {
    if t.categories.is_empty() {
        let none = match (t.output_changed, t.compared()) {
            (true, _) => {
                "No difference in the arguments of these calls. The output schema changed: `lastcall diff` says what that breaks."
            }
            (false, 0) => "No call was compared.",
            (false, _) => "No difference was found.",
        };
        return html! { div.card { p.empty { (none) } } };
    }
    html! {
        div.card.scroll tabindex="0" role="region" aria-label="Categories" {
            table {
                thead { tr {
                    th scope="col" { "Severity" } th scope="col" { "Category" } th scope="col" { "Where" }
                    th.n scope="col" { "Calls" } th.n scope="col" { "Refused" } th scope="col" { "Schema" }
                } }
                tbody { @for c in &t.categories { tr {
                    td { span class=(format!("sev {}", severity(&c.severity))) { (c.severity) } }
                    td { code { (c.category) } }
                    td { (pointer(&c.pointer)) }
                    td.n { (grouped(c.calls)) } td.n.zero[c.refused == 0] { (grouped(c.refused)) }
                    td {
                        @if let Some(l) = &c.location { code { (l) } } @else if let Some(k) = &c.keyword { code { (k) } }
                        @if let Some(n) = &c.note { div.example { (n) } }
                    }
                } } }
            }
        }
    }
}

/// Only our own words become class names.
fn severity(text: &str) -> &'static str {
    match text {
        "block" => "block",
        "warn" => "warn",
        _ => "info",
    }
}

fn worst(t: &TryReport) -> Markup {
    html! {
        ul.checks.card { @for e in &t.worst { li style="grid-template-columns:1fr" {
            span { span.id { (e.place) } @if !e.call_id.is_empty() { " " code { (e.call_id) } } @for n in [&e.agent, &e.prompt_version, &e.model].into_iter().flatten() { span.soft { " · " (n) } } @if let Some(d) = &e.day { span.soft { " · " (d) } } }
            @for f in &e.findings {
                p style="grid-column:1" {
                    span class=(format!("sev {}", severity(&f.severity))) { (f.severity) } " " code { (f.category) } " at " (pointer(&f.pointer))
                    @if let Some(v) = &f.value { " = " code { (v) } }
                    @if f.refused { span.soft { ", refused" } }
                    @if let Some(n) = &f.note { span.soft { ". " (n) } }
                }
            }
        } } }
    }
}

fn callers(t: &TryReport) -> Markup {
    let name = |n: &Option<String>| n.clone().unwrap_or_else(|| "-".to_owned());
    html! { @if !t.callers.is_empty() { div {
        h2 { "By caller" }
        div.card.scroll { table {
            thead { tr { th scope="col" { "Agent" } th scope="col" { "Prompt" } th scope="col" { "Model" } th.n scope="col" { "Calls" } th.n scope="col" { "Refused" } th.n scope="col" { "Changed" } } }
            tbody { @for c in &t.callers { tr {
                td { (name(&c.agent)) } td { (name(&c.prompt_version)) } td { (name(&c.model)) }
                td.n { (grouped(c.calls)) } td.n.zero[c.refused == 0] { (grouped(c.refused)) } td.n.zero[c.changed == 0] { (grouped(c.changed)) }
            } } }
        } }
    } } }
}

fn burn_in(b: &TryBurnIn) -> Markup {
    let below = |d: &TryScoredDay| match d.below {
        Some(true) => "below",
        Some(false) => "not below",
        None => "unknown",
    };
    html! {
        p { (b.says) }
        @if !b.days.is_empty() {
            div.card.scroll tabindex="0" role="region" aria-label="Checks of a burn-in" { table {
                thead { tr { th scope="col" { "Check" } th scope="col" { "Would have" } th scope="col" { "Saw" } th scope="col" { "Asks" } } }
                tbody { @for c in &b.checks { tr {
                    td { code { (c.id) } } td { (c.would_have) } td { (c.value) div.example { (c.text) } } td { (c.threshold) }
                } } }
            } }
            div.card.scroll tabindex="0" role="region" aria-label="Days of a burn-in" style="margin-top:.8rem" { table {
                thead { tr { th scope="col" { "Day (UTC)" } th.n scope="col" { "Compared" } th.n scope="col" { "Disagreed" } th.n scope="col" { "D" } th scope="col" { "Against " (b.ceiling) } } }
                tbody { @for d in &b.days { tr { td.nowrap { (d.day) } td.n { (grouped(d.compared)) } td.n { (grouped(d.disagreed)) } td.n { (percent_of(d.disagreed, d.compared)) } td { (below(d)) } } } }
            } }
        }
    }
}

fn days(t: &TryReport) -> Markup {
    html! { @if !t.days.is_empty() { div {
        h2 { "By day" }
        div.card.scroll { table {
            thead { tr { th scope="col" { "Day (UTC)" } th.n scope="col" { "Compared" } th.n scope="col" { "Disagreed" } th.n scope="col" { "D" } th.n scope="col" { "Refused" } } }
            tbody { @for d in &t.days { tr { td.nowrap { (d.day) } td.n { (grouped(d.compared)) } td.n { (grouped(d.disagreed)) } td.n { (percent_of(d.disagreed, d.compared)) } td.n.zero[d.refused == 0] { (grouped(d.refused)) } } } }
        } }
    } } }
}
