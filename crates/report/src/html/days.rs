//! The days: the chart of daily D, and every figure as a table.

use lastcall_decision::{DayLine, DayState, History, Verdict, grouped, percent_of};
use maud::{Markup, html};

use super::chart;
use super::timeline::segments;

/// A longer table is folded at first.
const OPEN: usize = 62;

/// The chart, its legend and the table.
pub fn days(v: &Verdict, history: &History, id: &str) -> Markup {
    if v.days.is_empty() {
        return html! { div.card { p.empty { "No scored day has a call yet." } } };
    }
    let windows = segments(v, history);
    let has = |f: &dyn Fn(&DayLine) -> bool| windows.iter().flat_map(|w| &w.days).any(|d| f(d));
    html! {
        div.card {
            div.chart.scroll tabindex="0" role="region" aria-label="Chart of daily D" { (chart::daily(&windows, id)) }
            div.legend {
                span { i.i-counted {} "counted day" }
                @if windows.len() > 1 || has(&|d| d.state == DayState::Scored) { span { i.i-scored {} (if windows.len() > 1 { "scored before these, or in an earlier window" } else { "scored before these" }) } }
                @if has(&|d| d.state == DayState::Open) { span { i.i-open {} "open, takes no part" } }
                @if has(&|d| d.counts.blocks > 0) { span { i.i-block {} "with a block" } }
                span { i.i-limit {} "ceiling B" }
                @if let Some(p) = &v.plan { span { i.i-half {} "decay: " (p.values.decay.fraction.percent()) " of B" } }
                @if windows.len() > 1 { span { i.i-mark {} "a window begins: pair, plan or configuration changed" } }
                @if chart::has_whiskers(&windows) { span { "┬ up to D_worst" } }
            }
            details open[v.days.len() <= OPEN] { summary { "Every day as a table" } (table(v)) }
        }
    }
}

/// A count; zero is set back.
pub fn cell(n: u64) -> Markup {
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
