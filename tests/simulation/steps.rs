//! What happened, counted: every step of every process with the deaths and unclear answers on it, and what came of
//! races. A run in which something never happened proves nothing about it.

use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// Only the sound store's runs are counted.
    pub static COUNTED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

macro_rules! steps {
    ($($name:ident = $text:literal;)*) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        pub enum Step { $($name,)* }
        const STEP_NAMES: &[&str] = &[$($text,)*];
    };
}

steps! {
    crash_idle = "recorder died between two steps";
    crash_in_flight = "recorder died with an append not begun";
    ambiguous_late_landed = "a late append lands";
    ambiguous_late_refused = "a late append finds its place taken";
    race_lost = "append lost to another recorder";
    race_lost_with_open = "append lost with the next chunk open";
    genesis_lost = "genesis lost to another recorder";
    delivered_twice = "record delivered twice";
    passed_over = "record passed over";
    revoked_open = "partition revoked with a chunk open";
    revoked_in_flight = "partition revoked with an append in flight";
    clock_back = "clock moved back";
    control_grew = "control chain grew";
    registered = "window began";
    configured_open = "configuration changed with a chunk open";
    behind_control = "writer behind the control chain";
    heartbeat = "heartbeat written";
    closed_by_records = "chunk closed by its limit";
    closed_by_age = "chunk closed by age";
    closed_by_end = "chunk closed by the end of input";
    gap_at_end = "position beyond the last record";
    garbage = "file that no entry names";
    garbage_day = "day file that no index entry names";
    simulated = "simulated ledger";
    beside = "another process went on inside a recorder's append";
    folded = "entries were folded";
    revised = "a day was revised";
    compaction_lost = "compactor read again after a lost race";
    erased = "calls were erased by id";
    erased_session = "calls were erased by session";
    erased_later = "an erased call was recorded again";
    expired = "files expired";
    collected = "garbage was removed";
    collected_day = "a day file was removed";
    collected_superseded = "an erased or expired file was removed";
    left_in_flight = "garbage left because it may be in flight";
}

static STEPS: [AtomicU64; STEP_NAMES.len()] = [const { AtomicU64::new(0) }; STEP_NAMES.len()];

/// Counts one.
pub fn hit(step: Step) {
    if COUNTED.get() {
        STEPS[step as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// What can happen at an operation on the store.
#[derive(Clone, Copy, PartialEq)]
pub enum Fate {
    Reached,
    /// The process died before it, after it without an answer.
    Before,
    After,
    /// It got no clear answer: the write took effect, did not, takes effect later.
    Done,
    NotDone,
    Later,
    /// It got no clear answer to a read.
    Unread,
    /// Another's bytes stand there.
    Lost,
}

const FATES: [(&str, Fate); 8] = [
    ("reached", Fate::Reached),
    ("died before", Fate::Before),
    ("died after", Fate::After),
    ("unclear, done", Fate::Done),
    ("not done", Fate::NotDone),
    ("later", Fate::Later),
    ("unread", Fate::Unread),
    ("lost", Fate::Lost),
];

use Fate::{After, Before, Done, Later, Lost, NotDone, Reached, Unread};
const FILE: &[Fate] = &[Reached, Before, After];
const ENTRY: &[Fate] = &[Reached, Before, After, Done, NotDone, Later, Lost];
const OBJECT: &[Fate] = &[Reached, Before, After, Done, NotDone];
const READ: &[Fate] = &[Reached, Before, Unread];
const LIST: &[Fate] = &[Reached, Before];

macro_rules! points {
    ($($name:ident = $text:literal $fates:ident;)*) => {
        /// A step of a process's path through the store.
        #[derive(Clone, Copy)]
        pub enum Point { $($name,)* }
        const POINTS: &[(&str, &[Fate])] = &[$(($text, $fates),)*];
    };
}

points! {
    RecorderRead = "recorder: reading" READ;
    RecorderCalls = "recorder: calls file" FILE;
    RecorderResults = "recorder: results file" FILE;
    RecorderDead = "recorder: dead file" FILE;
    RecorderGenesis = "recorder: genesis" ENTRY;
    RecorderEntry = "recorder: entry" ENTRY;
    CompactorRead = "compactor: reading" READ;
    CompactorDay = "compactor: day file" FILE;
    CompactorObject = "compactor: object" OBJECT;
    CompactorEntry = "compactor: index entry" ENTRY;
    EraserRead = "eraser: reading" READ;
    EraserFile = "eraser: file without the calls" FILE;
    EraserEntry = "eraser: control entry" ENTRY;
    EraserList = "eraser: listing objects" LIST;
    ExpirerRead = "expirer: reading" READ;
    ExpirerEntry = "expirer: control entry" ENTRY;
    CollectorList = "gc: listing" LIST;
    CollectorRead = "gc: reading" READ;
    CollectorDelete = "gc: removing" FILE;
}

static FATES_MET: [[AtomicU64; FATES.len()]; POINTS.len()] =
    [const { [const { AtomicU64::new(0) }; FATES.len()] }; POINTS.len()];

/// Counts what happened at an operation.
pub fn met(point: Point, fate: Fate) {
    if COUNTED.get() {
        FATES_MET[point as usize][fate as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Prints every count; what never happened.
pub fn print() -> Vec<String> {
    let mut never = Vec::new();
    for ((name, fates), counts) in POINTS.iter().zip(&FATES_MET) {
        let mut line = Vec::new();
        for (what, fate) in FATES.iter().filter(|(_, fate)| fates.contains(fate)) {
            let n = counts[*fate as usize].load(Ordering::Relaxed);
            line.push(format!("{what} {n}"));
            if n == 0 {
                never.push(format!("{name}, {what}"));
            }
        }
        println!("{name:<32} {}", line.join(", "));
    }
    for (name, hits) in STEP_NAMES.iter().zip(&STEPS) {
        let hits = hits.load(Ordering::Relaxed);
        println!("{hits:>10}  {name}");
        if hits == 0 {
            never.push((*name).to_owned());
        }
    }
    never
}
