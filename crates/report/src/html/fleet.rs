//! Several verdicts: the heat map with one row a tool, on one page with every tool's sections or as a folder of pages.

use std::collections::BTreeSet;

use lastcall_contract::Digest;
use lastcall_decision::{Answer, History, Verdict, grouped, percent_of};
use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::heat::{Axis, legend, strip};
use super::page::{Width, page, tone, word};
use super::verdict::{NO_HISTORY, article, linked_page};
use crate::verdict::leading;

/// What stays as it is in a file's name, and in a link.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
const LINKED: &AsciiSet = &KEPT.remove(b'/');
/// Bytes of a name before it is cut and told apart by a digest.
const MAX_NAME: usize = 160;

/// One verdict with what stands beside it, and where its page or section is.
struct Row<'a> {
    verdict: &'a Verdict,
    history: &'a History,
    href: String,
}

/// One page of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardPage {
    /// Its path in the folder, percent-encoded, `/` between the parts.
    pub path: String,
    /// The page.
    pub html: String,
}

/// All verdicts as one self-contained page: the worst first. `histories` are in the order of the verdicts; one that is
/// missing is empty.
pub fn fleet_page(title: &str, verdicts: &[Verdict], histories: &[History]) -> String {
    let rows: Vec<Row<'_>> = rows(verdicts, histories, |i, _| format!("#t{i}"));
    let body = html! {
        (index(title, &rows))
        @for row in &rows { (article(row.verdict, row.history, row.href.trim_start_matches('#'))) }
    };
    page(title, Width::Wide, &body)
}

/// All verdicts as a folder: `index.html` last, so that it names no page that is not written yet, and before it one page a
/// tool below `tools/`.
pub fn board(title: &str, verdicts: &[Verdict], histories: &[History]) -> Vec<BoardPage> {
    let names = names(verdicts);
    let name = |i: usize| names.get(i).map_or("", String::as_str);
    let link = |i: usize, _: &Verdict| utf8_percent_encode(name(i), LINKED).to_string();
    let rows: Vec<Row<'_>> = rows(verdicts, histories, link);
    let mut out: Vec<BoardPage> = verdicts
        .iter()
        .enumerate()
        .map(|(i, v)| BoardPage {
            path: name(i).to_owned(),
            html: linked_page(v, histories.get(i).unwrap_or(NO_HISTORY), Some(("../index.html", title))),
        })
        .collect();
    out.push(BoardPage {
        path: "index.html".to_owned(),
        html: page(title, Width::Wide, &index(title, &rows)),
    });
    out
}

fn rows<'a>(
    verdicts: &'a [Verdict],
    histories: &'a [History],
    href: impl Fn(usize, &Verdict) -> String,
) -> Vec<Row<'a>> {
    let mut order: Vec<(usize, &Verdict)> = verdicts.iter().enumerate().collect();
    order.sort_by_key(|(i, v)| (std::cmp::Reverse(v.verdict.rank()), *i));
    let row = |(i, verdict): (usize, &'a Verdict)| Row {
        verdict,
        history: histories.get(i).unwrap_or(NO_HISTORY),
        href: href(i, verdict),
    };
    order.into_iter().map(row).collect()
}

/// A path for each verdict's page. No two are the same, also where a file system does not tell `A` from `a`.
fn names(verdicts: &[Verdict]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut out = Vec::new();
    for (i, v) in verdicts.iter().enumerate() {
        let encode = |text: &str| utf8_percent_encode(text, KEPT).to_string();
        let mut name = encode(&v.tool_id);
        if let Some(cohort) = v.registration.as_ref().and_then(|r| r.cohort.as_ref()) {
            name = format!("{name}@{}", encode(cohort));
        }
        if let Some(rest) = name.strip_prefix('.') {
            name = format!("%2E{rest}");
        }
        let digest = Digest::of(name.as_bytes());
        let mark: String = digest.hex().chars().take(12).collect();
        if name.is_empty() || name.len() > MAX_NAME {
            let cut: String = name.chars().take(MAX_NAME).collect();
            name = format!("{cut}~{mark}");
        }
        if !taken.insert(name.to_lowercase()) {
            name = format!("{name}~{mark}");
            if !taken.insert(name.to_lowercase()) {
                name = format!("{name}~{i}");
                taken.insert(name.to_lowercase());
            }
        }
        out.push(format!("tools/{name}.html"));
    }
    out
}

fn index(title: &str, rows: &[Row<'_>]) -> Markup {
    html! {
        header {
            p.kicker { "May new calls go to the candidates?" }
            div.top {
                h1 { (title) }
                div.counts {
                    @for answer in [Answer::Error, Answer::NotReady, Answer::Insufficient, Answer::Ready] {
                        @let n = rows.iter().filter(|r| r.verdict.verdict == answer).count();
                        @if n > 0 { span class=(tone(answer)) { b { (n) } (word(answer)) } }
                    }
                }
            }
        }
        section.fleet {
            h2 { "Tools" }
            @if rows.is_empty() { div.card { p.empty { "No tool is registered yet." } } } @else { (map(rows)) }
        }
    }
}

fn map(rows: &[Row<'_>]) -> Markup {
    let axis = Axis::of(rows.iter().map(|r| (r.verdict, r.history)));
    html! {
        div.card {
            div.scroll tabindex="0" role="region" aria-label="All tools" {
                table.fleet {
                    thead { tr {
                        th scope="col" { "Tool" } th scope="col" { "Verdict" }
                        th scope="col" { "Daily D against B" @if let Some(axis) = axis { (axis.labels()) } }
                        th.n scope="col" { "D" } th.n.wide scope="col" { "Compared" } th.n.wide scope="col" { "Days" } th scope="col" { "Why" }
                    } }
                    tbody { @for r in rows { (row(r, axis)) } }
                }
            }
            @if axis.is_some() { (legend()) }
        }
    }
}

fn row(r: &Row<'_>, axis: Option<Axis>) -> Markup {
    let v = r.verdict;
    let (code, text) = leading(v);
    html! {
        tr {
            th scope="row" { a href=(r.href) { (v.tool_id) } (candidate(v)) }
            td { span class=(format!("verdict small {}", tone(v.verdict))) { (word(v.verdict)) } }
            td.strip { @match axis { Some(axis) => { (strip(v, r.history, axis)) }, None => { span.soft { "–" } } } }
            td.n { (percent_of(v.totals.counts.disagreed, v.totals.compared)) }
            td.n.wide { (grouped(v.totals.compared)) }
            td.n.wide { (v.totals.days) }
            td.why title=(text) { @match code { Some(code) => { code { (code) } }, None => { "every check passes" } } }
        }
    }
}

/// The candidate's version, or its whole id where it has another name; and the cohort.
fn candidate(v: &Verdict) -> Markup {
    let id = v.pair.as_ref().map(|p| p.candidate.as_str());
    let version =
        id.map(|id| id.strip_prefix(v.tool_id.as_str()).filter(|v| v.starts_with('@')).unwrap_or(id));
    let cohort = v.registration.as_ref().and_then(|r| r.cohort.as_ref());
    html! {
        @if let Some(version) = version { span.soft { " " (version) } }
        @if let Some(cohort) = cohort { span.soft { " [" (cohort) "]" } }
    }
}
