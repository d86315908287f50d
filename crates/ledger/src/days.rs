//! Which days are closed, per partition and over all: pure. A day closes at the first entry up to which everything
//! of it can have been read, and never reopens.

use lastcall_event::{Day, Timestamp};

use crate::control::Entry;
use crate::entry::{PartitionBody, Progress};
use crate::index::ClosedThrough;
use crate::ledger::{LedgerClock, PartitionChain};
use crate::position::Partition;
use crate::state::ControlState;

/// Milliseconds after its end for which a day stays open unless a source declares otherwise: one hour.
pub const DEFAULT_LATENESS_MS: i64 = 3_600_000;

/// The first and the last day that can be written, and so that a call can lie on: 0000-01-01 and 9999-12-31.
const FIRST_DAY: Day = Day(-719_528);
const LAST_DAY: Day = Day(2_932_896);

/// How far an entry shows that its partition was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadThrough {
    /// Nobody knows.
    Unknown,
    /// Everything up to this moment of ledger time.
    Until(Timestamp),
    /// Everything that will ever be (`--final`).
    ForEver,
}

impl ReadThrough {
    /// What an entry's progress shows under a ledger's clock.
    pub fn of(progress: &Progress, clock: LedgerClock) -> Self {
        if progress.is_final {
            // What the mirror does not know of its upstream, the end of its output does not show.
            return match progress.upstream.and_then(|u| u.through) {
                Some(through) => Self::Until(through),
                None => Self::ForEver,
            };
        }
        let own = match clock {
            LedgerClock::System => progress.read_through,
            LedgerClock::Simulated => progress.clock,
        };
        // Mirrored calls: no further than the mirror knows its own upstream.
        let upstream = progress.upstream.map(|u| u.through);
        let bound = match upstream {
            Some(through) => own.min(through),
            None => own,
        };
        bound.map_or(Self::Unknown, Self::Until)
    }

    /// Whether the mirror's knowledge of its upstream is what bounds [`Self::of`], and not how far its output was read.
    pub fn is_of_mirror(progress: &Progress, clock: LedgerClock) -> bool {
        let Some(upstream) = progress.upstream else { return false };
        let own = match clock {
            _ if progress.is_final => return upstream.through.is_some(),
            LedgerClock::System => progress.read_through,
            LedgerClock::Simulated => progress.clock,
        };
        own.is_some() && upstream.through <= own
    }

    /// The last day that it closes: whose end and the declared lateness it passes.
    pub fn last_closed(self, lateness_ms: i64) -> Option<Day> {
        let day = match self {
            Self::Unknown => return None,
            Self::Until(t) => Timestamp(t.0.saturating_sub(lateness_ms)).day().plus(-1),
            Self::ForEver => LAST_DAY,
        };
        (day >= FIRST_DAY).then_some(day.min(LAST_DAY))
    }

    /// Whether it passes the day's end and the declared lateness.
    pub fn closes(self, day: Day, lateness_ms: i64) -> bool {
        match self {
            Self::Unknown => false,
            Self::Until(t) => t.0 >= day.end().0.saturating_add(lateness_ms),
            Self::ForEver => true,
        }
    }
}

/// What the days need to know of one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionDays {
    /// Source.
    pub source: String,
    /// Partition.
    pub partition: Partition,
    /// Lateness of the source.
    pub lateness_ms: i64,
    /// Which entries closed days, ascending by both.
    closed: Vec<ClosedThrough>,
    /// Per entry: sequence number, how far it was read. Of those that an index entry folded only the last.
    steps: Vec<(u64, ReadThrough)>,
    /// At the last of them it is the mirror that knows no more.
    mirror: bool,
}

impl PartitionDays {
    /// From the entries of a partition chain, and what stands before them.
    pub fn new(chain: &PartitionChain, lateness_ms: i64, clock: LedgerClock) -> Self {
        let mut days = Self {
            source: chain.source.clone(),
            partition: chain.partition,
            lateness_ms,
            closed: Vec::new(),
            steps: Vec::new(),
            mirror: chain.progress().is_some_and(|progress| ReadThrough::is_of_mirror(progress, clock)),
        };
        if let Some(folded) = &chain.folded {
            days.closed = folded.closed.clone();
            days.steps.push((folded.tail.seq, ReadThrough::of(&folded.progress, clock)));
        }
        for read in &chain.entries {
            let progress = read.entry.body.progress();
            days.steps.push((read.entry.seq, ReadThrough::of(progress, clock)));
            days.closed.extend(closes(days.closed.last(), &read.entry, lateness_ms, clock));
        }
        days
    }

    /// The entry that closed the day, and the source's partition count there. Of days whose closing is folded, an
    /// entry that had closed it at the latest.
    pub fn closing(&self, day: Day) -> Option<(u64, i32)> {
        self.closed.iter().find(|c| c.through >= day).map(|c| (c.seq, c.partitions))
    }

    /// The closed days as an index entry keeps them: runs with the same partition count are one.
    pub fn folded(&self) -> Vec<ClosedThrough> {
        merged(&self.closed)
    }

    /// The last day that is closed.
    pub fn closed_through(&self) -> Option<Day> {
        self.closed.last().map(|c| c.through)
    }

    /// The accounting day of a call of `day` that entry `seq` recorded: its own day or, where an earlier entry had
    /// closed that, the first day then open.
    pub fn accounting_day(&self, seq: u64, day: Day) -> Day {
        let earlier = self.steps.iter().rev().find(|(s, _)| *s < seq).map(|(_, read)| *read);
        match earlier {
            Some(ReadThrough::Until(t)) if ReadThrough::Until(t).closes(day, self.lateness_ms) => {
                // The last day that t closes is the one whose end and lateness lie at or before t.
                Timestamp(t.0.saturating_sub(self.lateness_ms)).day()
            }
            _ => day,
        }
    }

    /// Whether an earlier entry had closed the day of a call that entry `seq` recorded.
    pub fn is_late(&self, seq: u64, day: Day) -> bool {
        self.closing(day).is_some_and(|(closed, _)| closed < seq)
    }

    /// How far it was read so far.
    pub fn read_through(&self) -> ReadThrough {
        self.steps.last().map_or(ReadThrough::Unknown, |(_, read)| *read)
    }
}

/// What a partition's entry closes beyond what was closed before it, if anything.
pub(crate) fn closes(
    last: Option<&ClosedThrough>,
    entry: &Entry<PartitionBody>,
    lateness_ms: i64,
    clock: LedgerClock,
) -> Option<ClosedThrough> {
    let progress = entry.body.progress();
    // In a system ledger no day closes before it is over, not even by `--final`.
    let over = match clock {
        LedgerClock::System => entry.at.day().plus(-1),
        LedgerClock::Simulated => LAST_DAY,
    };
    let through = ReadThrough::of(progress, clock).last_closed(lateness_ms)?.min(over);
    let more = last.is_none_or(|c| c.through < through);
    more.then_some(ClosedThrough { through, seq: entry.seq, partitions: progress.partitions })
}

/// Runs with the same partition count as one, as an index entry keeps them.
pub(crate) fn merged(closed: &[ClosedThrough]) -> Vec<ClosedThrough> {
    let mut out: Vec<ClosedThrough> = Vec::new();
    for closed in closed {
        match out.last_mut() {
            Some(last) if last.partitions == closed.partitions => *last = *closed,
            _ => out.push(*closed),
        }
    }
    out
}

/// Why a day is open.
#[derive(Clone, Debug, PartialEq)]
pub enum OpenBecause {
    /// No source is named, or none by that name is registered.
    NoSource(String),
    /// The partition has not begun.
    NoGenesis(String, Partition),
    /// It was read only so far.
    ReadOnly {
        /// Source.
        source: String,
        /// Partition.
        partition: Partition,
        /// So far.
        through: ReadThrough,
        /// It has to be read this far.
        needed: Timestamp,
        /// Its rows were read further: it is the mirror that knows its upstream only so far.
        mirror: bool,
    },
}

impl std::fmt::Display for OpenBecause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSource(name) => write!(f, "no source `{name}` is registered"),
            Self::NoGenesis(source, partition) => {
                write!(f, "{source}/{} has not been read yet; run `lastcall run`", partition.0)
            }
            Self::ReadOnly { source, partition, through, needed, mirror: true } => {
                write!(f, "{source}/{}: the mirror knows its upstream only ", partition.0)?;
                match through {
                    ReadThrough::Until(t) => write!(f, "through {t}")?,
                    _ => f.write_str("to no known time")?,
                }
                write!(f, ", the day closes at {needed}; look whether lastcall-mirror runs")
            }
            Self::ReadOnly { source, partition, through, needed, mirror: false } => {
                write!(f, "{source}/{} is read ", partition.0)?;
                match through {
                    ReadThrough::Until(t) => write!(f, "through {t}")?,
                    _ => f.write_str("to no known time")?,
                }
                write!(f, ", the day closes at {needed}")
            }
        }
    }
}

/// A day over all sources.
#[derive(Clone, Debug, PartialEq)]
pub enum DayState {
    /// Nothing of it can come any more; a call that comes nevertheless is late.
    Closed,
    /// It may grow.
    Open(Vec<OpenBecause>),
}

/// Which days are closed in a set of sources.
#[derive(Clone, Debug, PartialEq)]
pub struct DayStates {
    names: Vec<String>,
    unknown: Vec<String>,
    /// Per partition that has a genesis.
    pub partitions: Vec<PartitionDays>,
    lateness: Vec<(String, i64)>,
}

impl DayStates {
    /// From the entries of partition chains. `sources` are the names of a window's sources.
    pub fn new(
        control: &ControlState,
        chains: &[PartitionChain],
        sources: &[&str],
        clock: LedgerClock,
    ) -> Self {
        let mut states =
            Self { names: Vec::new(), unknown: Vec::new(), partitions: Vec::new(), lateness: Vec::new() };
        for name in sources {
            let Some(info) = control.sources.get(*name) else {
                states.unknown.push((*name).to_owned());
                continue;
            };
            states.names.push(info.name.clone());
            states.lateness.push((info.name.clone(), info.lateness_ms));
            let of_source = chains.iter().filter(|c| c.source == info.name && c.tail().is_some());
            states.partitions.extend(of_source.map(|c| PartitionDays::new(c, info.lateness_ms, clock)));
        }
        states
    }

    /// One partition's days.
    pub fn partition(&self, source: &str, partition: Partition) -> Option<&PartitionDays> {
        self.partitions.iter().find(|p| p.source == source && p.partition == partition)
    }

    /// Whether a day is closed over all sources, and if not, why.
    pub fn state(&self, day: Day) -> DayState {
        let mut why: Vec<OpenBecause> = self.unknown.iter().cloned().map(OpenBecause::NoSource).collect();
        if self.names.is_empty() && why.is_empty() {
            why.push(OpenBecause::NoSource("*".to_owned()));
        }
        for (name, lateness_ms) in &self.lateness {
            let mut wanted = 1;
            for p in self.partitions.iter().filter(|p| p.source == *name) {
                match p.closing(day) {
                    Some((_, partitions)) => wanted = wanted.max(partitions),
                    None => why.push(OpenBecause::ReadOnly {
                        source: name.clone(),
                        partition: p.partition,
                        through: p.read_through(),
                        needed: Timestamp(day.end().0.saturating_add(*lateness_ms)),
                        mirror: p.mirror,
                    }),
                }
            }
            let missing = (0..wanted).map(Partition).filter(|n| self.partition(name, *n).is_none());
            why.extend(missing.map(|n| OpenBecause::NoGenesis(name.clone(), n)));
        }
        if why.is_empty() { DayState::Closed } else { DayState::Open(why) }
    }

    /// Whether a day is closed over all sources.
    pub fn is_closed(&self, day: Day) -> bool {
        self.state(day) == DayState::Closed
    }
}
