//! Daily D as inline SVG: one bar a day, the ceiling and its fraction as lines, a mark where a window begins. Never drawn
//! alone: a table with the same figures stands beside it.

use lastcall_decision::{DayLine, DayState, grouped, percent_of};
use maud::{Markup, html};

use super::timeline::{Band, Segment, short};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 236.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 30.0;
/// Room for a day's label.
const LABEL: f64 = 42.0;

/// The narrowest bar that has a whisker up to D_worst: closer, they would hide the bars.
const WHISKER: f64 = 4.0;

/// One column: a day of a window, or days between two windows that are left out.
enum Column<'a> {
    Day(usize, &'a DayLine),
    Gap,
}

/// What is drawn of a day: its measure, the part of it that are blocks, and its worst case.
struct Bar {
    measure: f64,
    blocks: f64,
    worst: f64,
}

fn bar(line: &DayLine, by_day: bool) -> Bar {
    let c = &line.counts;
    let share = |k: u64, n: u64| if n == 0 { 0.0 } else { k as f64 / n as f64 };
    if by_day {
        Bar {
            measure: share(c.disagreed, line.compared),
            blocks: share(c.blocks, line.compared),
            worst: share(c.disagreed + c.unresolved, line.compared + c.unresolved),
        }
    } else {
        let k = c.disagreed as f64;
        Bar { measure: k, blocks: c.blocks as f64, worst: k }
    }
}

/// B and its decay fraction on a window's axis, and both as text.
fn limits(s: &Segment<'_>) -> (f64, f64, String, String) {
    let (b, half) = (s.plan.ceiling, s.plan.decay_ceiling());
    if s.by_day() {
        (b.to_f64(), half.to_f64(), format!("B {}", b.percent()), half.percent())
    } else {
        let n = s.compared;
        (b.to_f64() * n as f64, half.to_f64() * n as f64, format!("B {}", b.of(n)), half.of(n))
    }
}

/// One decimal more than the eye needs, and the same on every machine.
fn at(x: f64) -> String {
    format!("{x:.1}")
}

/// Where things stand.
struct Frame {
    step: f64,
    wide: f64,
    high: f64,
    top: f64,
}

impl Frame {
    fn x(&self, column: usize) -> f64 {
        LEFT + self.step * column as f64
    }

    fn middle(&self, column: usize) -> f64 {
        self.x(column) + self.step / 2.0
    }

    fn y(&self, value: f64) -> f64 {
        self.top + (FLOOR - self.top) * (1.0 - (value / self.high).clamp(0.0, 1.0))
    }
}

const FLOOR: f64 = HEIGHT - BOTTOM;

/// The chart; `id` makes its ids unique on a page. Empty without a day.
pub fn daily(segments: &[Segment<'_>], id: &str) -> Markup {
    let Some(current) = segments.last() else { return html! {} };
    let columns = columns(segments);
    let (ceiling, fraction, ceiling_text, fraction_text) = limits(current);
    let days = || {
        columns.iter().enumerate().filter_map(|(i, c)| match c {
            Column::Day(s, line) => Some((i, *s, *line)),
            Column::Gap => None,
        })
    };
    let measures = days().map(|(_, _, line)| bar(line, current.by_day()).measure);
    let ceilings = segments.iter().map(|s| limits(s).0 * 1.3);
    let high = measures.chain(ceilings).fold(f64::MIN_POSITIVE, f64::max) * 1.08;
    let step = (WIDTH - LEFT - RIGHT) / columns.len() as f64;
    let wide = (step * 0.62).clamp(0.8, 40.0);
    let frame = Frame { step, wide, high, top: if segments.len() > 1 { 34.0 } else { 18.0 } };
    let every = (LABEL / step).ceil().max(1.0) as usize;
    // The last day is always named; a label that would touch it is left out.
    let named =
        |i: usize| i + 1 == columns.len() || (i % every == 0 && i + every < columns.len() + every / 2);
    let half_label = frame.y(fraction) - frame.y(ceiling) > 13.0;
    let what =
        if current.by_day() { "D, the share of compared calls that disagreed" } else { "disagreements" };
    html! {
        svg viewBox=(format!("0 0 {} {}", at(WIDTH), at(HEIGHT))) role="img" aria-labelledby=(format!("{id}-t {id}-d")) {
            title id=(format!("{id}-t")) { "Daily " (what) ", held against the ceiling" }
            desc id=(format!("{id}-d")) { (describe(current, &ceiling_text)) }
            defs {
                pattern id=(format!("{id}-h")) width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    line class="hatch" x1="0" y1="0" x2="0" y2="6" stroke-width="2" {}
                }
            }
            line class="axis" x1=(at(LEFT)) x2=(at(WIDTH - RIGHT)) y1=(at(FLOOR)) y2=(at(FLOOR)) {}
            @for (i, s, line) in days() {
                (one(line, bar(line, current.by_day()), &frame, i, frame.y(ceiling), s + 1 == segments.len(), id))
                @if named(i) { text x=(at(frame.middle(i).min(WIDTH - 17.0))) y=(at(FLOOR + 18.0)) text-anchor="middle" { (short(line.day)) } }
            }
            @for (i, _) in columns.iter().enumerate().filter(|(_, c)| matches!(c, Column::Gap)) {
                text x=(at(frame.middle(i))) y=(at(FLOOR - 4.0)) text-anchor="middle" { title { "days of no window" } "⋯" }
            }
            @for (s, segment) in segments.iter().enumerate() {
                (lines(segment, s, &columns, &frame, segments.len() > 1))
            }
            @if wide >= 16.0 {
                @for (i, _, line) in days().filter(|(_, _, line)| line.compared > 0) {
                    text class="count" x=(at(frame.middle(i))) y=(at(frame.y(bar(line, current.by_day()).measure) - 5.0)) text-anchor="middle" { (grouped(line.counts.disagreed)) }
                }
            }
            text class="strong" x=(at(LEFT - 8.0)) y=(at(frame.y(ceiling) + 4.0)) text-anchor="end" { (ceiling_text) }
            @if half_label {
                text x=(at(LEFT - 8.0)) y=(at(frame.y(fraction) + 4.0)) text-anchor="end" { (fraction_text) }
            }
        }
    }
}

/// Whether a whisker shows where D_worst lies.
pub fn has_whiskers(segments: &[Segment<'_>]) -> bool {
    let n = columns(segments).len().max(1) as f64;
    let unresolved = |line: &&DayLine| line.counts.unresolved > 0;
    (WIDTH - LEFT - RIGHT) / n * 0.62 >= WHISKER
        && segments.iter().flat_map(|s| &s.days).any(|d| unresolved(d))
}

fn columns<'a>(segments: &[Segment<'a>]) -> Vec<Column<'a>> {
    let mut out = Vec::new();
    let mut last = None;
    for (s, segment) in segments.iter().enumerate() {
        for line in &segment.days {
            if last.is_some_and(|last: lastcall_event::Day| line.day > last.plus(1)) {
                out.push(Column::Gap);
            }
            last = Some(line.day);
            out.push(Column::Day(s, line));
        }
    }
    out
}

/// B and its fraction over one window's days, and where several are drawn the mark at which it begins.
fn lines(segment: &Segment<'_>, s: usize, columns: &[Column<'_>], frame: &Frame, marked: bool) -> Markup {
    let ours = |c: &Column<'_>| matches!(c, Column::Day(of, _) if *of == s);
    let (Some(first), Some(last)) = (columns.iter().position(ours), columns.iter().rposition(ours)) else {
        return html! {};
    };
    let (from, to) = (frame.x(first), frame.x(last + 1));
    let (ceiling, fraction, ..) = limits(segment);
    html! {
        line class="limit" x1=(at(from)) x2=(at(to)) y1=(at(frame.y(ceiling))) y2=(at(frame.y(ceiling))) {}
        line class="half" x1=(at(from)) x2=(at(to)) y1=(at(frame.y(fraction))) y2=(at(frame.y(fraction))) {}
        @if marked {
            line class="mark" x1=(at(from)) x2=(at(from)) y1="14" y2=(at(FLOOR)) {}
            @if let Some(seq) = segment.registration {
                text class="strong" x=(at(from + 4.0)) y="22" {
                    @if to - from > 96.0 { "registration " } (seq)
                }
            }
        }
    }
}

fn one(
    line: &DayLine,
    b: Bar,
    frame: &Frame,
    column: usize,
    ceiling: f64,
    current: bool,
    id: &str,
) -> Markup {
    let open = matches!(line.state, DayState::Open | DayState::Beyond);
    let class = match line.state {
        DayState::Open | DayState::Beyond => "bar open",
        DayState::Counted if current => "bar counted",
        DayState::Counted | DayState::Scored => "bar",
    };
    let fill = open.then(|| format!("url(#{id}-h)"));
    let (middle, wide) = (frame.middle(column), frame.wide);
    let x = middle - wide / 2.0;
    let (top, blocks) = (frame.y(b.measure), frame.y(b.blocks));
    let silent = line.compared == 0;
    // The whisker of D_worst stands at the bar's edge, so that it never crosses the count.
    let reach = (wide / 2.0).min(4.0);
    let edge = x + wide - reach - wide.min(1.0);
    // A silent day is named above the lines where these lie near the floor.
    let label = if FLOOR - ceiling < 34.0 { ceiling - 5.0 } else { FLOOR - 7.0 };
    let tip = format!(
        "{}: {} of {} compared calls disagreed ({}), {} with a block{}",
        line.day,
        grouped(line.counts.disagreed),
        grouped(line.compared),
        percent_of(line.counts.disagreed, line.compared),
        grouped(line.counts.blocks),
        if open { ", not closed" } else { "" }
    );
    html! {
        g {
            title { (tip) }
            @if silent {
                line class="silent" x1=(at(x)) x2=(at(x + wide)) y1=(at(FLOOR - 1.0)) y2=(at(FLOOR - 1.0)) stroke-dasharray="3 3" {}
                @if wide >= 16.0 { text x=(at(middle)) y=(at(label)) text-anchor="middle" { @if open { "open" } @else { "none" } } }
            } @else {
                // A bar of no height still shows that the day was there.
                rect class=(class) x=(at(x)) y=(at(top.min(FLOOR - 1.0))) width=(at(wide)) height=(at((FLOOR - top).max(1.0))) style=[fill.as_ref().map(|f| format!("fill:{f}"))] {}
                @if line.counts.blocks > 0 && !open {
                    rect class="block" x=(at(x)) y=(at(blocks.min(FLOOR - 1.5))) width=(at(wide)) height=(at((FLOOR - blocks).max(1.5))) {}
                }
                @if b.worst > b.measure && wide >= WHISKER {
                    line class="worst" x1=(at(edge)) x2=(at(edge)) y1=(at(top)) y2=(at(frame.y(b.worst))) {}
                    line class="worst" x1=(at(edge - reach)) x2=(at(edge + reach)) y1=(at(frame.y(b.worst))) y2=(at(frame.y(b.worst))) {}
                }
            }
        }
    }
}

/// Days that are named one by one where they reach the ceiling.
const NAMED: usize = 14;

fn describe(current: &Segment<'_>, ceiling: &str) -> String {
    let counted = current.days.iter().filter(|d| d.state == DayState::Counted);
    let over: Vec<String> =
        counted.filter(|d| current.band(d) == Band::Over).map(|d| d.day.to_string()).collect();
    let over = match over.len() {
        0 => "no counted day reaches it".to_owned(),
        1..=NAMED => format!("reached on {}", over.join(", ")),
        n => format!("reached on {n} counted days"),
    };
    format!("{} days; ceiling {ceiling}; {over}. The table below has every figure.", current.days.len())
}
