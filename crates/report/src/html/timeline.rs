//! The days that a page draws: those of the window, and before them those of earlier windows.

use lastcall_decision::{CeilingBasis, DayLine, DayState, History, Plan, Verdict};
use lastcall_event::Day;

/// Days of earlier windows that are drawn, the last ones.
const BEFORE: usize = 60;

/// The days of one window, in order.
pub struct Segment<'a> {
    /// Sequence number of its registration.
    pub registration: Option<u64>,
    /// Its plan.
    pub plan: &'a Plan,
    /// Its compared calls: what a ceiling over the whole window is held against.
    pub compared: u64,
    /// Its days.
    pub days: Vec<&'a DayLine>,
}

/// The windows that are drawn, the one that the verdict is about last. Empty without a plan or a day.
pub fn segments<'a>(v: &'a Verdict, history: &'a History) -> Vec<Segment<'a>> {
    let Some(current) = segment(v).filter(|s| !s.days.is_empty()) else { return Vec::new() };
    let (mut out, mut room) = (Vec::new(), BEFORE);
    let mut until = current.days.first().map(|d| d.day);
    for past in history.past.iter().rev() {
        let Some(mut earlier) = past.last.as_ref().and_then(segment) else { continue };
        if earlier.by_day() != current.by_day() {
            continue; // another measure has no place on the same axis
        }
        let drawn = |d: &&DayLine| {
            let stood = past.ended_on.is_none_or(|end| d.day <= end);
            stood && until.is_some_and(|until| d.day < until) && d.state != DayState::Beyond
        };
        earlier.days.retain(drawn);
        let skip = earlier.days.len().saturating_sub(room);
        earlier.days.drain(..skip);
        let Some(first) = earlier.days.first() else { continue };
        until = Some(first.day);
        room -= earlier.days.len();
        out.push(earlier);
    }
    out.reverse();
    out.push(current);
    out
}

fn segment(v: &Verdict) -> Option<Segment<'_>> {
    let plan = &v.plan.as_ref()?.values;
    let registration = v.registration.as_ref().map(|r| r.seq);
    Some(Segment { registration, plan, compared: v.totals.compared, days: v.days.iter().collect() })
}

impl Segment<'_> {
    /// Whether a day's own rate is held against the ceiling, not its count against the whole window's.
    pub fn by_day(&self) -> bool {
        self.plan.ceiling_basis == CeilingBasis::Day
    }

    /// What a day is held against: `k` of how many calls.
    fn held(&self, line: &DayLine) -> (u64, u64) {
        (line.counts.disagreed, if self.by_day() { line.compared } else { self.compared })
    }

    /// How a day stands against the ceiling.
    pub fn band(&self, line: &DayLine) -> Band {
        let (k, n) = self.held(line);
        if matches!(line.state, DayState::Open | DayState::Beyond) {
            Band::Open
        } else if line.compared == 0 {
            Band::Silent
        } else if !self.plan.ceiling.exceeds(k, n) {
            Band::Over
        } else if !self.plan.decay_ceiling().exceeds(k, n) {
            Band::Near
        } else if k > 0 {
            Band::Low
        } else {
            Band::Clean
        }
    }
}

/// How D of a day stands against the ceiling B and the fraction of it that decay asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Band {
    /// At or above B.
    Over,
    /// From the fraction of B up to B.
    Near,
    /// Below the fraction of B.
    Low,
    /// No call disagreed.
    Clean,
    /// No compared call.
    Silent,
    /// Not closed, or behind the window.
    Open,
}

impl Band {
    /// Every band, the worst first.
    pub const ALL: [Self; 6] = [Self::Over, Self::Near, Self::Low, Self::Clean, Self::Silent, Self::Open];

    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Over => "at or above B",
            Self::Near => "below B, not below its decay fraction",
            Self::Low => "below the decay fraction",
            Self::Clean => "no disagreement",
            Self::Silent => "no compared call",
            Self::Open => "not closed or not scored",
        }
    }
}

/// `06-01`.
pub fn short(day: Day) -> String {
    day.to_string().get(5..).unwrap_or_default().to_owned()
}
