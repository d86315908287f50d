//! Daily D as inline SVG: one bar a day, the ceiling and its fraction as lines. Never drawn alone: a table with the
//! same figures stands beside it.

use lastcall_decision::{CeilingBasis, DayLine, DayState, Plan, Verdict, grouped, percent_of};
use maud::{Markup, html};

const HEIGHT: f64 = 236.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 30.0;

/// What is drawn of a day: its measure, the part of it that are blocks, and its worst case.
struct Bar<'a> {
    line: &'a DayLine,
    measure: f64,
    blocks: f64,
    worst: f64,
}

/// The scale of the vertical axis and its two lines.
struct Scale {
    ceiling: f64,
    ceiling_text: String,
    fraction: f64,
    fraction_text: String,
    by_day: bool,
}

fn scale(plan: &Plan, compared: u64) -> Scale {
    let (b, half) = (plan.ceiling, plan.decay_ceiling());
    match plan.ceiling_basis {
        CeilingBasis::Day => Scale {
            ceiling: b.to_f64(),
            ceiling_text: format!("B {}", b.percent()),
            fraction: half.to_f64(),
            fraction_text: half.percent(),
            by_day: true,
        },
        CeilingBasis::Window => Scale {
            ceiling: b.to_f64() * compared as f64,
            ceiling_text: format!("B {}", b.of(compared)),
            fraction: half.to_f64() * compared as f64,
            fraction_text: half.of(compared),
            by_day: false,
        },
    }
}

fn bar<'a>(line: &'a DayLine, by_day: bool) -> Bar<'a> {
    let c = &line.counts;
    let share = |k: u64, n: u64| if n == 0 { 0.0 } else { k as f64 / n as f64 };
    if by_day {
        Bar {
            line,
            measure: share(c.disagreed, line.compared),
            blocks: share(c.blocks, line.compared),
            worst: share(c.disagreed + c.unresolved, line.compared + c.unresolved),
        }
    } else {
        let k = c.disagreed as f64;
        Bar { line, measure: k, blocks: c.blocks as f64, worst: k }
    }
}

/// `06-01`.
fn short(day: &str) -> &str {
    day.get(5..).unwrap_or(day)
}

/// One decimal more than the eye needs, and the same on every machine.
fn at(x: f64) -> String {
    format!("{x:.1}")
}

/// The chart; `id` makes its ids unique on a page. Empty without a plan or a day.
pub fn daily(v: &Verdict, id: &str) -> Markup {
    let (Some(plan), false) = (&v.plan, v.days.is_empty()) else { return html! {} };
    let scale = scale(&plan.values, v.totals.compared);
    let bars: Vec<Bar<'_>> = v.days.iter().map(|d| bar(d, scale.by_day)).collect();
    let step = match bars.len() {
        0..=16 => 54.0,
        17..=31 => 34.0,
        _ => 22.0,
    };
    let width = (LEFT + RIGHT + step * bars.len() as f64).max(1000.0);
    let step = (width - LEFT - RIGHT) / bars.len() as f64;
    let high = bars.iter().map(|b| b.measure).fold(scale.ceiling * 1.3, f64::max) * 1.08;
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (value / high).clamp(0.0, 1.0));
    let floor = HEIGHT - BOTTOM;
    let wide = (step * 0.62).min(40.0);
    let every = if bars.len() <= 31 { 1 } else { 7 };
    let right = width - RIGHT;
    // The fraction's label would lie on the ceiling's where both are near the floor.
    let apart = y(scale.fraction) - y(scale.ceiling) > 13.0;
    let what = if scale.by_day { "D, the share of compared calls that disagreed" } else { "disagreements" };
    html! {
        svg viewBox=(format!("0 0 {} {}", at(width), at(HEIGHT))) role="img" aria-labelledby=(format!("{id}-t {id}-d")) {
            title id=(format!("{id}-t")) { "Daily " (what) ", held against the ceiling" }
            desc id=(format!("{id}-d")) { (describe(v, &scale)) }
            defs {
                pattern id=(format!("{id}-h")) width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    line class="hatch" x1="0" y1="0" x2="0" y2="6" stroke-width="2" {}
                }
            }
            line class="axis" x1=(at(LEFT)) x2=(at(right)) y1=(at(floor)) y2=(at(floor)) {}
            @for (i, b) in bars.iter().enumerate() {
                (one(b, LEFT + step * (i as f64 + 0.5), wide, floor, y(scale.ceiling), &y, id))
                @if i % every == 0 || i + 1 == bars.len() {
                    text x=(at(LEFT + step * (i as f64 + 0.5))) y=(at(floor + 18.0)) text-anchor="middle" { (short(&b.line.day.to_string())) }
                }
            }
            line class="limit" x1=(at(LEFT)) x2=(at(right)) y1=(at(y(scale.ceiling))) y2=(at(y(scale.ceiling))) {}
            line class="half" x1=(at(LEFT)) x2=(at(right)) y1=(at(y(scale.fraction))) y2=(at(y(scale.fraction))) {}
            @if wide >= 16.0 {
                @for (i, b) in bars.iter().enumerate().filter(|(_, b)| b.line.compared > 0) {
                    text class="count" x=(at(LEFT + step * (i as f64 + 0.5))) y=(at(y(b.measure) - 5.0)) text-anchor="middle" { (grouped(b.line.counts.disagreed)) }
                }
            }
            text class="strong" x=(at(LEFT - 8.0)) y=(at(y(scale.ceiling) + 4.0)) text-anchor="end" { (scale.ceiling_text) }
            @if apart {
                text x=(at(LEFT - 8.0)) y=(at(y(scale.fraction) + 4.0)) text-anchor="end" { (scale.fraction_text) }
            }
        }
    }
}

fn one(
    b: &Bar<'_>,
    middle: f64,
    wide: f64,
    floor: f64,
    ceiling: f64,
    y: &dyn Fn(f64) -> f64,
    id: &str,
) -> Markup {
    let line = b.line;
    let open = matches!(line.state, DayState::Open | DayState::Beyond);
    let class = match line.state {
        DayState::Counted => "bar counted",
        DayState::Scored => "bar",
        DayState::Open | DayState::Beyond => "bar open",
    };
    let fill = open.then(|| format!("url(#{id}-h)"));
    let x = middle - wide / 2.0;
    let (top, blocks) = (y(b.measure), y(b.blocks));
    let silent = line.compared == 0;
    // The whisker of D_worst stands at the bar's edge, so that it never crosses the count.
    let edge = x + wide - 5.0;
    // A silent day is named above the lines where these lie near the floor.
    let label = if floor - ceiling < 34.0 { ceiling - 5.0 } else { floor - 7.0 };
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
                line class="silent" x1=(at(x)) x2=(at(x + wide)) y1=(at(floor - 1.0)) y2=(at(floor - 1.0)) stroke-dasharray="3 3" {}
                text x=(at(middle)) y=(at(label)) text-anchor="middle" { @if open { "open" } @else { "none" } }
            } @else {
                // A bar of no height still shows that the day was there.
                rect class=(class) x=(at(x)) y=(at(top.min(floor - 1.0))) width=(at(wide)) height=(at((floor - top).max(1.0))) style=[fill.as_ref().map(|f| format!("fill:{f}"))] {}
                @if line.counts.blocks > 0 && !open {
                    rect class="block" x=(at(x)) y=(at(blocks.min(floor - 1.5))) width=(at(wide)) height=(at((floor - blocks).max(1.5))) {}
                }
                @if b.worst > b.measure {
                    line class="worst" x1=(at(edge)) x2=(at(edge)) y1=(at(top)) y2=(at(y(b.worst))) {}
                    line class="worst" x1=(at(edge - 4.0)) x2=(at(edge + 4.0)) y1=(at(y(b.worst))) y2=(at(y(b.worst))) {}
                }
            }
        }
    }
}

fn describe(v: &Verdict, scale: &Scale) -> String {
    let over = v.days.iter().filter(|d| matches!(d.state, DayState::Counted));
    let over: Vec<String> =
        over.filter(|d| bar(d, scale.by_day).measure >= scale.ceiling).map(|d| d.day.to_string()).collect();
    let over = match over.is_empty() {
        true => "no counted day reaches it".to_owned(),
        false => format!("reached on {}", over.join(", ")),
    };
    format!(
        "{} days; ceiling {}; {over}. The table below has every figure.",
        v.days.len(),
        scale.ceiling_text
    )
}

/// A small chart for one row of the fleet: bars and the ceiling, without text.
pub fn spark(v: &Verdict) -> Markup {
    let (Some(plan), false) = (&v.plan, v.days.is_empty()) else { return html! { span.soft { "–" } } };
    let scale = scale(&plan.values, v.totals.compared);
    let bars: Vec<Bar<'_>> = v.days.iter().map(|d| bar(d, scale.by_day)).collect();
    let step = 136.0 / bars.len() as f64;
    let high = bars.iter().map(|b| b.measure).fold(scale.ceiling * 1.5, f64::max);
    let y = |value: f64| 1.0 + 26.0 * (1.0 - (value / high).clamp(0.0, 1.0));
    html! {
        svg viewBox="0 0 136 28" aria-hidden="true" focusable="false" {
            @for (i, b) in bars.iter().enumerate() {
                @let class = if b.line.state == DayState::Counted { "bar counted" } else { "bar" };
                @let top = y(b.measure).min(26.0);
                rect class=(class) x=(at(step * i as f64)) y=(at(top)) width=(at((step - 1.0).max(1.0))) height=(at(27.0 - top)) {}
            }
            line class="limit" x1="0" x2="136" y1=(at(y(scale.ceiling))) y2=(at(y(scale.ceiling))) {}
        }
    }
}
