//! One verdict as a page: headline, figures, checks, chart, table, categories, and what is not claimed.

use std::collections::{BTreeMap, BTreeSet};

use lastcall_decision::{Check, CheckResult, History, Verdict, grouped, percent_of};
use maud::{Markup, html};

use super::days::days;
use super::differs::categories;
use super::over_time::over_time;
use super::page::{Width, digest, page, tone, word};
use crate::text::{plan_line, registered_at};
use crate::verdict::{PHASES, phase, question};

/// Nothing is known beside the verdict.
pub const NO_HISTORY: &History = &History { categories: BTreeMap::new(), past: Vec::new() };

/// One decision as a self-contained page.
pub fn verdict_page(v: &Verdict, history: &History) -> String {
    linked_page(v, history, None)
}

/// The same, with a link and its words above it.
pub fn linked_page(v: &Verdict, history: &History, up: Option<(&str, &str)>) -> String {
    let body = html! {
        @if let Some((href, words)) = up { nav { a href=(href) { "← " (words) } } }
        (article(v, history, "v"))
    };
    page(&format!("{}: {}", v.tool_id, v.verdict), Width::Reading, &body)
}

/// The sections of one verdict; `id` makes its ids unique on a page.
pub fn article(v: &Verdict, history: &History, id: &str) -> Markup {
    html! {
        article id=(id) {
            (head(v))
            @if v.plan.is_some() { section { (figures(v)) } }
            @if !v.problems.is_empty() { section { h2 { "In the way" } (problems(v)) } }
            @if !v.checks.is_empty() { section { h2 { "Checks" } (checks(v)) } }
            section { h2 { "Daily disagreement rate" } (days(v, history, id)) }
            (over_time(v, history))
            section { h2 { "What differs" } (categories(v)) }
            @if !v.earlier_windows.is_empty() { section { h2 { "Earlier windows" } (earlier(v, history)) } }
            section.two {
                (readings(v))
                (fixed(v))
            }
            section.two {
                div { h2 { "Not claimed" } ul.plain { @for c in &v.not_claimed { li { (c) } } } }
                div { h2 { "Compute it again" } (again(v)) }
            }
        }
    }
}

fn head(v: &Verdict) -> Markup {
    html! {
        header {
            p.kicker { (question(v.question)) @if let Some(p) = &v.pair { " · " (p.current) " → " (p.candidate) } }
            div.top {
                h1 { (v.tool_id) }
                span class=(format!("verdict {}", tone(v.verdict))) { (word(v.verdict)) }
            }
            p.headline { (v.headline) }
            @if let Some(next) = &v.next {
                p.next { b { "What would change it: " } (next) "." }
            }
            @if let Some(day) = v.window.as_ref().and_then(|w| w.earliest_ready) {
                @if v.verdict.rank() > 0 && v.problems.is_empty() {
                    p.next { b { "Earliest READY: " } (day) ", if every call agrees until then." }
                }
            }
            (phases(v))
            @if !v.flags.is_empty() {
                ul.flags aria-label="Remarks" {
                    @for f in &v.flags { li.loud[f.id == "simulated" || f.id == "planted_missed"] { (f.text) } }
                }
            }
        }
    }
}

/// Where the tool stands on its way, the phase that it is in marked.
fn phases(v: &Verdict) -> Markup {
    let Some(now) = phase(v) else { return html! {} };
    let at = PHASES.iter().position(|p| *p == now.name).unwrap_or(0);
    html! {
        ol.phases aria-label="Phases" {
            @for (i, name) in PHASES.iter().enumerate() {
                li.done[i < at].now[i == at] aria-current=[(i == at).then_some("step")] {
                    (name) @if i == at && now.ended { ", window ended" }
                }
            }
        }
    }
}

fn figures(v: &Verdict) -> Markup {
    let t = &v.totals;
    let c = &t.counts;
    html! {
        dl.facts {
            div { dt { "D over the whole burn-in" } dd { (percent_of(c.disagreed, t.compared)) small { (grouped(c.disagreed)) " of " (grouped(t.compared)) " compared calls" } } }
            div { dt { "D, unresolved counted against it" } dd { (percent_of(c.disagreed + c.unresolved, t.compared + c.unresolved)) small { (grouped(c.unresolved)) " unresolved" } } }
            div { dt { "Blocks" } dd { (grouped(c.blocks)) small { (grouped(c.refused)) " calls refused" } } }
            @if let Some(w) = &v.window {
                div {
                    dt { "Closed scored days" }
                    dd {
                        (t.days)
                        small { @if let Some(last) = w.closed_through { (w.scored_from) " to " (last) } @else { "from " (w.scored_from) } }
                    }
                }
            }
        }
    }
}

/// Problems that are told one by one.
const PROBLEMS: usize = 20;

fn problems(v: &Verdict) -> Markup {
    let rest: BTreeSet<&str> = v.problems.iter().skip(PROBLEMS).map(|p| p.reason.as_str()).collect();
    html! {
        ul.checks.card {
            @for p in v.problems.iter().take(PROBLEMS) {
                li {
                    (result(p.result))
                    span.id { code { (p.reason) } }
                    span.held { (p.text) }
                    @if let Some(next) = &p.next { p { "→ " (next) } }
                }
            }
            @if let (Some(p), false) = (v.problems.get(PROBLEMS), rest.is_empty()) {
                li {
                    (result(p.result))
                    span.id {}
                    span.held { (v.problems.len() - PROBLEMS) " more: " @for (i, code) in rest.iter().enumerate() { @if i > 0 { ", " } code { (code) } } }
                }
            }
        }
    }
}

fn result(r: CheckResult) -> Markup {
    let class = match r {
        CheckResult::Pass => "result pass",
        CheckResult::Fail => "result fail",
        CheckResult::Insufficient | CheckResult::Unknown => "result lacking",
        CheckResult::Error => "result broken",
    };
    html! { span class=(class) { (r.as_str()) } }
}

fn checks(v: &Verdict) -> Markup {
    html! { ul.checks.card { @for c in &v.checks { (check(c)) } } }
}

fn check(c: &Check) -> Markup {
    html! {
        li {
            (result(c.result))
            span.id { (c.id) code { (c.reason) } }
            span.held { (c.value) " " span { "· asked " (c.threshold) } }
            @if c.result != CheckResult::Pass { p { (c.text) } }
            @if let Some(next) = &c.next { p { "→ " (next) "." } }
            p.rule { "Rule: " (c.formula) "." }
        }
    }
}

fn readings(v: &Verdict) -> Markup {
    let p = &v.planted;
    html! {
        div {
            h2 { "Other readings of the same record" }
            @if v.sensitivity.is_empty() {
                p.soft { "No unresolved call, no normalization rule and no changed severity: nothing to read otherwise." }
            } @else {
                ul.plain {
                    @for s in &v.sensitivity {
                        li { strong class=(tone(s.verdict)) { (word(s.verdict)) } " with " (s.text) "." }
                    }
                }
            }
            @if !v.normalization.is_empty() {
                p.soft style="margin-top:.6rem" {
                    "Calls that agree only after a rule: "
                    @for (i, (rule, n)) in v.normalization.iter().enumerate() { @if i > 0 { ", " } code { (rule) } " " (grouped(*n)) }
                    "."
                }
            }
            p.soft style="margin-top:.6rem" {
                "Outcome observed on both sides: " (grouped(v.evidence.outcome)) " of " (grouped(v.evidence.compared)) " compared calls. "
                "Planted faults: "
                @if p.committed == 0 && p.seen == 0 { "none." } @else { (p.committed) " committed, " (p.seen) " came back, " (p.missed) " missed." }
                @if v.calls_outside > 0 { " Calls outside the window, which take no part: " (grouped(v.calls_outside)) "." }
            }
        }
    }
}

fn fixed(v: &Verdict) -> Markup {
    html! {
        div {
            h2 { "Fixed beforehand" }
            dl.kv {
                @if let Some(r) = &v.registration {
                    dt { "Registered" } dd { "entry " (r.seq) (registered_at(r.at)) @if let Some(by) = &r.by { " by " (by) } }
                    dt { "Scores" } dd { "from " (r.scored_from) ", sources " (r.sources.join(", ")) @if let Some(c) = &r.cohort { ", cohort " (c) } }
                }
                @if let Some(p) = &v.plan { dt { "Plan" } dd { (plan_line(v)) " " (digest(p.digest.as_str())) } }
                @if let Some(p) = &v.pair {
                    dt { "Current" } dd { (p.current) " " (digest(p.current_digest.as_str())) }
                    dt { "Candidate" } dd { (p.candidate) " " (digest(p.candidate_digest.as_str())) }
                    dt { "Epoch" } dd { "comparator " (p.comparator) " " (digest(p.epoch.as_str())) }
                }
            }
        }
    }
}

fn earlier(v: &Verdict, history: &History) -> Markup {
    let ended_on = |seq: u64| history.past.iter().find(|p| p.registration == seq).and_then(|p| p.ended_on);
    html! {
        div.card.scroll tabindex="0" role="region" aria-label="Earlier windows" {
            table {
                thead { tr {
                    th scope="col" { "Registration" } th scope="col" { "Candidate" } th scope="col" { "Scored from" }
                    th scope="col" { "Last verdict" } th scope="col" { "How it ended" }
                } }
                tbody { @for w in &v.earlier_windows { tr {
                    th scope="row" { (w.registration) }
                    td { (w.candidate) }
                    td.nowrap { (w.scored_from) }
                    td.nowrap { (w.verdict.as_deref().unwrap_or("none")) }
                    td { (w.ended) @if let Some(day) = ended_on(w.registration) { span.soft { ", " (day) } } }
                } } }
            }
        }
    }
}

fn again(v: &Verdict) -> Markup {
    html! {
        pre { code { (v.recompute) } }
        @if !v.tails.is_empty() {
            p.soft style="margin-top:.5rem" {
                "It read "
                @for (i, t) in v.tails.iter().enumerate() { @if i > 0 { ", " } (t.chain) " up to " (t.seq) " " (digest(t.digest.as_str())) }
                "."
            }
        }
    }
}
