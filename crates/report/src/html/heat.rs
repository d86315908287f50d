//! The fleet's heat map: a row a tool, a cell a day. A cell says by its height and shape what it says by its colour.

use std::collections::BTreeMap;

use lastcall_decision::{DayLine, History, Verdict, percent_of};
use lastcall_event::Day;
use maud::{Markup, html};

use super::timeline::{Band, Segment, segments, short};

/// Days that are shown, the last ones.
const DAYS: i32 = 56;

/// The days that every row shares.
#[derive(Clone, Copy)]
pub struct Axis {
    first: Day,
    last: Day,
}

impl Axis {
    /// Over the days of all verdicts; `None` where there is none.
    pub fn of<'a>(rows: impl Iterator<Item = (&'a Verdict, &'a History)>) -> Option<Self> {
        let mut out: Option<Self> = None;
        for (v, history) in rows {
            for s in segments(v, history) {
                let (Some(first), Some(last)) = (s.days.first(), s.days.last()) else { continue };
                let known = out.get_or_insert(Self { first: first.day, last: last.day });
                (known.first, known.last) = (known.first.min(first.day), known.last.max(last.day));
            }
        }
        out.map(|a| Self { first: a.first.max(a.last.plus(1 - DAYS)), last: a.last })
    }

    fn days(self) -> i32 {
        (self.last.0 - self.first.0).saturating_add(1)
    }

    /// The first and the last day, and some between, at their places.
    pub fn labels(self) -> Markup {
        let n = self.days();
        let every = match n {
            0..=9 => n.max(1),
            10..=24 => 7,
            _ => 14,
        };
        // A label needs the room of about an eighth of the axis.
        let clear = |i: &i32| (n - 1 - i) * 8 >= n;
        let inner: Vec<i32> = (1..).map(|k| k * every).take_while(|i| *i < n).filter(clear).collect();
        let place = |i: i32| format!("left:{:.2}%", (f64::from(i) + 0.5) * 100.0 / f64::from(n));
        html! {
            div.axis-days {
                span.first { (short(self.first)) }
                @for i in inner { span style=(place(i)) { (short(self.first.plus(i))) } }
                @if n > 1 { span.last { (short(self.last)) } }
            }
        }
    }
}

/// One row's cells.
pub fn strip(v: &Verdict, history: &History, axis: Axis) -> Markup {
    let windows = segments(v, history);
    let mut days: Vec<(i32, &DayLine, &Segment<'_>, Band)> = Vec::new();
    let mut begins: Vec<i32> = Vec::new();
    for s in &windows {
        let inside = |d: &&DayLine| d.day >= axis.first && d.day <= axis.last;
        let before = days.len();
        days.extend(s.days.iter().copied().filter(inside).map(|d| (d.day.0 - axis.first.0, d, s, s.band(d))));
        if let (true, Some((column, ..))) = (windows.len() > 1, days.get(before)) {
            begins.push(*column);
        }
    }
    if days.is_empty() {
        return html! { span.soft { "–" } };
    }
    let mut n: BTreeMap<Band, usize> = BTreeMap::new();
    days.iter().for_each(|(.., band)| *n.entry(*band).or_default() += 1);
    let told: Vec<String> = n.iter().map(|(band, n)| format!("{n} {}", band.word())).collect();
    let told = format!("{} days: {}", days.len(), told.join(", "));
    html! {
        svg.heat viewBox=(format!("0 0 {} 20", axis.days() * 10)) preserveAspectRatio="none" role="img" aria-label=(told) {
            @for (column, line, segment, band) in &days {
                g { title { (tip(line, segment, *band)) } (cell(*column * 10, *band)) }
            }
            @for column in begins { rect class="mark-fill" x=(column * 10 - 1) y="0" width="2" height="20" {} }
        }
    }
}

fn tip(line: &DayLine, s: &Segment<'_>, band: Band) -> String {
    format!(
        "{}: D {} ({} of {}), {}; B {}",
        line.day,
        percent_of(line.counts.disagreed, line.compared),
        line.counts.disagreed,
        line.compared,
        band.word(),
        s.plan.ceiling.percent()
    )
}

/// A cell of ten by twenty.
fn cell(x: i32, band: Band) -> Markup {
    let fill = |class: &str, y: i32, high: i32| html! { rect class=(class) x=(x + 1) y=(y) width="8" height=(high) {} };
    html! {
        @match band {
            Band::Over => { (fill("h-over", 0, 8)) (fill("h-over", 10, 10)) }
            Band::Near => { (fill("h-none", 0, 20)) (fill("h-day", 8, 12)) }
            Band::Low => { (fill("h-none", 0, 20)) (fill("h-day", 14, 6)) }
            Band::Clean => { (fill("h-none", 0, 20)) (fill("h-day", 18, 2)) }
            Band::Silent => { rect class="h-silent" x=(x + 2) y="9" width="6" height="2" {} }
            Band::Open => { rect class="h-open" x=(x + 2) y="1" width="6" height="18" {} }
        }
    }
}

/// What the cells mean.
pub fn legend() -> Markup {
    html! {
        div.legend {
            @for band in Band::ALL {
                span { svg.key viewBox="0 0 10 20" aria-hidden="true" focusable="false" { (cell(0, band)) } (band.word()) }
            }
        }
    }
}
