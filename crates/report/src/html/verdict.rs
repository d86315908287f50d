//! One verdict as a page: headline, figures, checks, chart, table, categories, and what is not claimed.

use lastcall_decision::{CategoryFacts, Check, CheckResult, DayLine, DayState, Verdict, grouped, percent_of};
use maud::{Markup, html};

use super::chart;
use super::page::{digest, page, pointer, tone, word};
use crate::text::{plan_line, registered_at};

/// One decision as a self-contained page.
pub fn verdict_page(v: &Verdict) -> String {
    page(&format!("{}: {}", v.tool_id, v.verdict), &article(v, "v"))
}

/// The sections of one verdict; `id` makes its ids unique on a page.
pub fn article(v: &Verdict, id: &str) -> Markup {
    html! {
        article id=(id) {
            (head(v))
            @if v.plan.is_some() { section { (figures(v)) } }
            @if !v.problems.is_empty() { section { h2 { "In the way" } (problems(v)) } }
            @if !v.checks.is_empty() { section { h2 { "Checks" } (checks(v)) } }
            section { h2 { "Daily disagreement rate" } (days(v, id)) }
            section { h2 { "What differs" } (categories(v)) }
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
    let question = match v.question.as_str() {
        "cutover" => "May new calls go to the candidate?",
        "retire" => "May the old version be switched off?",
        _ => "May the old version's decoder be removed?",
    };
    html! {
        header {
            p.kicker { (question) @if let Some(p) = &v.pair { " · " (p.current) " → " (p.candidate) } }
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
            @if !v.flags.is_empty() {
                ul.flags aria-label="Remarks" {
                    @for f in &v.flags { li.loud[f.id == "simulated" || f.id == "planted_missed"] { (f.text) } }
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

fn problems(v: &Verdict) -> Markup {
    html! {
        ul.checks.card {
            @for p in &v.problems {
                li {
                    (result(p.result))
                    span.id { (p.reason) }
                    span.held { (p.text) }
                    @if let Some(next) = &p.next { p { "→ " (next) } }
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
            span.id title=(c.reason.as_str()) { (c.id) }
            span.held { (c.value) " " span { "· asked " (c.threshold) } }
            @if c.result != CheckResult::Pass { p { (c.text) } }
            @if let Some(next) = &c.next { p { "→ " (next) "." } }
            p.rule { "Rule: " (c.formula) "." }
        }
    }
}

fn days(v: &Verdict, id: &str) -> Markup {
    if v.days.is_empty() {
        return html! { div.card { p.empty { "No scored day has a call yet." } } };
    }
    let has = |f: &dyn Fn(&DayLine) -> bool| v.days.iter().any(f);
    html! {
        div.card {
            div.chart.scroll tabindex="0" role="region" aria-label="Chart of daily D" { (chart::daily(v, id)) }
            div.legend {
                span { i.i-counted {} "counted day" }
                @if has(&|d| d.state == DayState::Scored) { span { i.i-scored {} "scored before these" } }
                @if has(&|d| d.state == DayState::Open) { span { i.i-open {} "open, takes no part" } }
                @if has(&|d| d.counts.blocks > 0) { span { i.i-block {} "with a block" } }
                span { i.i-limit {} "ceiling B" }
                span { i.i-half {} "decay" }
                @if has(&|d| d.counts.unresolved > 0) { span { "┬ up to D_worst" } }
            }
            details open { summary { "Every day as a table" } (table(v)) }
        }
    }
}

fn cell(n: u64) -> Markup {
    html! { td.n.zero[n == 0] { (grouped(n)) } }
}

fn table(v: &Verdict) -> Markup {
    let plan = v.plan.as_ref().map(|p| &p.values);
    let over = |d: &DayLine| {
        let by_day = plan.is_some_and(|p| p.ceiling_basis == lastcall_decision::CeilingBasis::Day);
        let counted = matches!(d.state, DayState::Counted | DayState::Scored);
        counted
            && by_day
            && d.compared > 0
            && plan.is_some_and(|p| !p.ceiling.exceeds(d.counts.disagreed, d.compared))
    };
    let open = |d: &DayLine| matches!(d.state, DayState::Open | DayState::Beyond);
    let t = &v.totals.counts;
    html! {
        div.scroll tabindex="0" role="region" aria-label="Daily table" {
            table.daily {
                thead { tr {
                    th scope="col" { "Day" } th scope="col" { "State" }
                    th.n scope="col" { "Compared" } th.n scope="col" { "Disagreed" } th.n scope="col" { "D" } th.n scope="col" { "D worst" }
                    th.n scope="col" { "Blocks" } th.n scope="col" { "Both rejected" } th.n scope="col" { "Excluded" }
                    th.n scope="col" { "Unresolved" } th.n scope="col" { "Duplicate" } th.n scope="col" { "Calls" }
                } }
                tbody {
                    @for d in &v.days {
                        @let c = &d.counts;
                        tr.over[over(d)].open[open(d)] {
                            td.nowrap { (d.day) } td { (d.state.as_str()) }
                            (cell(d.compared)) (cell(c.disagreed))
                            td.n.d { (percent_of(c.disagreed, d.compared)) }
                            td.n { (percent_of(c.disagreed + c.unresolved, d.compared + c.unresolved)) }
                            (cell(c.blocks)) (cell(c.both_rejected)) (cell(c.excluded)) (cell(c.unresolved)) (cell(c.duplicate)) (cell(c.calls))
                        }
                    }
                }
                tfoot { tr {
                    td { "Closed" } td { (v.totals.days) " days" }
                    td.n { (grouped(v.totals.compared)) } td.n { (grouped(t.disagreed)) }
                    td.n { (percent_of(t.disagreed, v.totals.compared)) }
                    td.n { (percent_of(t.disagreed + t.unresolved, v.totals.compared + t.unresolved)) }
                    td.n { (grouped(t.blocks)) } td.n { (grouped(t.both_rejected)) } td.n { (grouped(t.excluded)) }
                    td.n { (grouped(t.unresolved)) } td.n { (grouped(t.duplicate)) } td.n { (grouped(t.calls)) }
                } }
            }
        }
    }
}

fn severities(c: &CategoryFacts) -> Markup {
    let each = [("block", c.block), ("warn", c.warn), ("info", c.info)];
    html! {
        @for (i, (name, n)) in each.iter().filter(|(_, n)| *n > 0).enumerate() {
            @if i > 0 { br; }
            span class=(format!("sev {name}")) { (grouped(*n)) " " (name) }
        }
    }
}

fn categories(v: &Verdict) -> Markup {
    if v.categories.is_empty() {
        return html! { div.card { p.empty { "No difference was found on a closed scored day." } } };
    }
    html! {
        div.card.scroll tabindex="0" role="region" aria-label="Categories" {
            table {
                thead { tr {
                    th scope="col" { "Category" } th scope="col" { "Calls" } th.n scope="col" { "Refused" }
                    th scope="col" { "Seen" } th scope="col" { "Where, and one example" }
                } }
                tbody { @for c in &v.categories { tr {
                    td.cat { code { (c.category) } }
                    td.nowrap { (severities(c)) }
                    (cell(c.refused))
                    td.nowrap { (c.first_seen) @if c.last_seen != c.first_seen { br; (c.last_seen) } }
                    td { (example(c)) }
                } } }
            }
        }
    }
}

fn example(c: &CategoryFacts) -> Markup {
    let e = &c.example;
    html! {
        @for (i, f) in c.fields.iter().enumerate() {
            @if i > 0 { ", " }
            (pointer(&f.pointer)) span.soft { " " (grouped(f.calls)) }
        }
        @if c.distinct_fields > c.fields.len() as u64 { span.soft { " and " (c.distinct_fields - c.fields.len() as u64) " more" } }
        div.example {
            "e.g. " (pointer(&e.pointer))
            @if let Some(k) = &e.keyword { ", " code { (k) } }
            @if let Some(l) = &e.location { " at " code { (l) } }
            ", " (e.day) ", " (e.place.source) "/" (e.place.partition) " offset " (e.place.offset)
            @if let Some(n) = &e.note { ". " (n) }
            @if let Some(value) = &e.value { div { "value " code { (value) } } }
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
                @for w in &v.earlier_windows {
                    dt { "Earlier" }
                    dd { (w.candidate) " from " (w.scored_from) ": " (w.verdict.as_deref().unwrap_or("no verdict")) ", " (w.ended) }
                }
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
