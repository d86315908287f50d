//! Several verdicts on one page: an index that links to each tool's sections below it.

use lastcall_decision::{Answer, Verdict, grouped, percent_of};
use maud::{Markup, html};

use super::chart;
use super::page::{page, tone, word};
use super::verdict::article;

/// All verdicts as one self-contained page: the worst first.
pub fn fleet_page(title: &str, verdicts: &[Verdict]) -> String {
    let mut order: Vec<(usize, &Verdict)> = verdicts.iter().enumerate().collect();
    order.sort_by_key(|(i, v)| (std::cmp::Reverse(v.verdict.rank()), *i));
    let body = html! {
        header {
            p.kicker { "May new calls go to the candidates?" }
            div.top { h1 { (title) } }
            div.counts {
                @for answer in [Answer::Error, Answer::NotReady, Answer::Insufficient, Answer::Ready] {
                    @let n = verdicts.iter().filter(|v| v.verdict == answer).count();
                    @if n > 0 { span class=(tone(answer)) { b { (n) } (word(answer)) } }
                }
            }
        }
        section {
            h2 { "Tools" }
            @if verdicts.is_empty() { div.card { p.empty { "No tool is registered yet." } } } @else { (index(&order)) }
        }
        @for (i, v) in &order { (article(v, &format!("t{i}"))) }
    };
    page(title, &html! { (body) })
}

fn index(order: &[(usize, &Verdict)]) -> Markup {
    html! {
        div.card.scroll tabindex="0" role="region" aria-label="All tools" {
            table.fleet {
                thead { tr {
                    th scope="col" { "Tool" } th scope="col" { "Verdict" } th scope="col" { "Daily D" } th.n scope="col" { "D" }
                    th.n scope="col" { "Compared" } th.n scope="col" { "Days" } th scope="col" { "Why" }
                } }
                tbody { @for (i, v) in order { tr {
                    td { a href=(format!("#t{i}")) { (v.tool_id) } @if let Some(p) = &v.pair { div.example { (p.candidate) } } }
                    td { span class=(format!("verdict small {}", tone(v.verdict))) { (word(v.verdict)) } }
                    td { (chart::spark(v)) }
                    td.n { (percent_of(v.totals.counts.disagreed, v.totals.compared)) }
                    td.n { (grouped(v.totals.compared)) }
                    td.n { (v.totals.days) }
                    td { (why(v)) }
                } } }
            }
        }
    }
}

fn why(v: &Verdict) -> Markup {
    if let Some(p) = v.problems.first() {
        return html! { (p.text) };
    }
    html! { @match v.leading_check() { Some(c) => { (c.text) }, None => { "Every check passes." } } }
}
