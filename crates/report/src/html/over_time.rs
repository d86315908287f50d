//! Categories over time: one strip a category on the days of the window, and the same figures as a table.

use lastcall_decision::{CategoryFacts, DailyCategories, DayLine, History, Verdict, grouped};
use maud::{Markup, html};

use super::timeline::short;

/// Categories that have a strip.
const STRIPS: usize = 12;
/// From the floor up.
const SEVERITIES: [&str; 3] = ["block", "warn", "info"];
const HIGH: f64 = 30.0;

/// One strip a category; empty where nothing is known by day.
pub fn over_time(v: &Verdict, history: &History) -> Markup {
    let shown: Vec<&CategoryFacts> = v.categories.iter().take(STRIPS).collect();
    let known = v.days.iter().any(|d| history.categories.contains_key(&d.day));
    let (Some(first), Some(last), true, false) = (v.days.first(), v.days.last(), known, shown.is_empty())
    else {
        return html! {};
    };
    html! {
        section {
            h2 { "Differences over time" }
            div.card {
                div.scroll tabindex="0" role="region" aria-label="Differences over time" {
                    table.strips {
                        thead { tr {
                            th scope="col" { "Category" }
                            th scope="col" { div.axis-ends { span { (short(first.day)) } span { (short(last.day)) } } }
                            th.n scope="col" { "Most a day" }
                        } }
                        tbody { @for c in &shown { (row(c, &v.days, &history.categories)) } }
                    }
                }
                @if v.categories.len() > shown.len() {
                    p.empty { (v.categories.len() - shown.len()) " more categories are listed below." }
                }
                div.legend {
                    @for s in SEVERITIES { span { i class=(format!("i-{s}")) {} (s) } }
                    span { "Calls a day, each strip on its own scale" }
                }
                details { summary { "The same by day as a table" } (table(&shown, &v.days, &history.categories)) }
            }
        }
    }
}

fn counts(category: &str, line: &DayLine, daily: &DailyCategories) -> [u64; 3] {
    let day = daily.get(&line.day);
    SEVERITIES.map(|s| day.and_then(|found| found.get(&format!("{category}/{s}"))).copied().unwrap_or(0))
}

fn row(c: &CategoryFacts, days: &[DayLine], daily: &DailyCategories) -> Markup {
    let each: Vec<[u64; 3]> = days.iter().map(|d| counts(&c.category, d, daily)).collect();
    let sums = || each.iter().map(|n| n.iter().fold(0u64, |sum, n| sum.saturating_add(*n)));
    let most = sums().max().unwrap_or(0);
    let on = sums().filter(|n| *n > 0).count();
    let peak = sums().position(|n| n == most && n > 0).and_then(|i| days.get(i));
    let told = format!("{}: on {on} of {} days", c.category, days.len());
    html! {
        tr {
            th scope="row" { code { (c.category) } }
            td { svg viewBox=(format!("0 0 {} {HIGH}", days.len() * 10)) preserveAspectRatio="none" role="img" aria-label=(told) {
                @for (i, n) in each.iter().enumerate() { (stack(i, n, most)) }
                rect class="axis-fill" x="0" y=(HIGH - 0.7) width=(days.len() * 10) height="0.7" {}
            } }
            td.n { (grouped(most)) @if let Some(peak) = peak { div.soft { (short(peak.day)) } } }
        }
    }
}

fn stack(column: usize, n: &[u64; 3], most: u64) -> Markup {
    let scale = HIGH / most.max(1) as f64;
    let mut floor = HIGH;
    let parts: Vec<(f64, f64, &str)> = n
        .iter()
        .zip(SEVERITIES)
        .filter(|(n, _)| **n > 0)
        .map(|(n, s)| {
            let high = (*n as f64 * scale).max(1.2);
            floor = (floor - high).max(0.0);
            (floor, high, s)
        })
        .collect();
    html! {
        @for (y, high, s) in parts {
            rect class=(format!("s-{s}")) x=(column * 10 + 1) y=(format!("{y:.1}")) width="8" height=(format!("{high:.1}")) {}
        }
    }
}

fn table(shown: &[&CategoryFacts], days: &[DayLine], daily: &DailyCategories) -> Markup {
    let found = |d: &&DayLine| daily.contains_key(&d.day);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Differences by day" {
            table.daily {
                thead { tr {
                    th scope="col" { "Day" }
                    @for c in shown { th.n scope="col" { code { (c.category) } } }
                } }
                tbody { @for d in days.iter().filter(found) { tr {
                    th.nowrap scope="row" { (d.day) }
                    @for c in shown {
                        @let n = counts(&c.category, d, daily).iter().fold(0u64, |sum, n| sum.saturating_add(*n));
                        td.n.zero[n == 0] { (grouped(n)) }
                    }
                } } }
            }
        }
    }
}
