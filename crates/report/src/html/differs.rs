//! What the two contracts differ in: a row a category, with places and one call.

use lastcall_decision::{CategoryFacts, Verdict, grouped};
use maud::{Markup, html};

use super::days::cell;
use super::page::pointer;

fn severities(c: &CategoryFacts) -> Markup {
    let each = [("block", c.block), ("warn", c.warn), ("info", c.info)];
    html! {
        @for (i, (name, n)) in each.iter().filter(|(_, n)| *n > 0).enumerate() {
            @if i > 0 { br; }
            span class=(format!("sev {name}")) { (grouped(*n)) " " (name) }
        }
    }
}

/// The categories over the closed scored days.
pub fn categories(v: &Verdict) -> Markup {
    if v.categories.is_empty() {
        return html! { div.card { p.empty { "No difference was found on a closed scored day." } } };
    }
    html! {
        div.card.scroll tabindex="0" role="region" aria-label="Categories" {
            table.differs {
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
