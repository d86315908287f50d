//! The processes beside the recorders: two that compact, two that erase, one that lets files expire, one that removes
//! garbage. Each is the product's own command in a thread, and one alone moves at a time: it waits before every
//! operation on the store until the seed says how many more it may do.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use lastcall_event::Day;
use lastcall_ledger::entry::FileKind;
use lastcall_ledger::erasure::{Erased, Expired, Expiry, Request, Selection, erase, expire};
use lastcall_ledger::gc::{Collected, gc};
use lastcall_ledger::index::{CompactLimits, Compacted, compact_within};
use lastcall_ledger::{Ledger, LedgerError};

use crate::steps::COUNTED;
use crate::store::{FaultyStore, Who};

/// Who stands beside the recorders.
pub const HANDS: [Who; 6] =
    [Who::Compactor, Who::Compactor, Who::Eraser, Who::Eraser, Who::Expirer, Who::Collector];

#[derive(Default)]
struct State {
    left: u64,
    waits: bool,
    over: bool,
    free: bool,
}

/// One process's turns.
#[derive(Default)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Before an operation: waits until one is granted.
    pub fn wait(&self) {
        let mut state = self.state();
        while state.left == 0 && !state.free {
            state.waits = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap();
        }
        state.waits = false;
        state.left = state.left.saturating_sub(1);
    }

    /// Lets it do so many operations, and waits until it has; whether it came to its end.
    fn grant(&self, operations: u64) -> bool {
        let mut state = self.state();
        (state.left, state.waits) = (operations, false);
        self.changed.notify_all();
        while !state.waits && !state.over {
            state = self.changed.wait(state).unwrap();
        }
        state.over
    }

    /// Lets it run to its end.
    fn free(&self) {
        self.state().free = true;
        self.changed.notify_all();
    }
}

/// Tells that a thread has ended, however it did.
struct Over(Arc<Turns>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.state().over = true;
        self.0.changed.notify_all();
    }
}

/// The processes that now run, for whoever lets them go on in the middle of something else.
#[derive(Default)]
pub struct Beside(Mutex<Vec<Arc<Turns>>>);

impl Beside {
    /// Lets one of them do so many operations; whether there is one.
    pub fn go_on(&self, which: u64, operations: u64) -> bool {
        let running = self.0.lock().unwrap();
        let Some(at) = which.checked_rem(running.len() as u64) else { return false };
        !running[at as usize].grant(operations)
    }
}

/// What a process is to do.
pub enum Task {
    Compact(CompactLimits),
    Erase(Selection),
    Expire(Day),
    Collect,
}

impl Task {
    pub fn run(&self, ledger: &Ledger) -> Result<Done, LedgerError> {
        Ok(match self {
            Self::Compact(limits) => Done::Compacted(compact_within(ledger, *limits, &mut |_| {})?),
            Self::Erase(selection) => {
                Done::Erased(erase(ledger, &request(selection))?, !selection.sessions.is_empty())
            }
            Self::Expire(before) => Done::Expired(expire(ledger, &expiry(*before))?),
            Self::Collect => Done::Collected(gc(ledger, true, &mut |_| {})?),
        })
    }
}

pub fn request(selection: &Selection) -> Request {
    let asked = selection.len() as u64;
    Request { asked, selection: selection.clone(), reason: None, dry_run: false }
}

pub fn expiry(before: Day) -> Expiry {
    Expiry { before, kinds: vec![FileKind::Calls, FileKind::Dead], dry_run: false }
}

/// What it did.
pub enum Done {
    Compacted(Compacted),
    /// And whether it was asked for by session.
    Erased(Erased, bool),
    Expired(Expired),
    Collected(Collected),
}

/// A process that runs.
pub struct Hand {
    store: Arc<FaultyStore>,
    turns: Arc<Turns>,
    beside: Arc<Beside>,
    thread: Option<JoinHandle<Result<Done, LedgerError>>>,
}

impl Hand {
    /// Begins one; it does nothing before its first turn.
    pub fn begin(store: Arc<FaultyStore>, task: Task, beside: &Arc<Beside>) -> Self {
        let turns = store.turns.clone().expect("a process beside the recorders has turns");
        beside.0.lock().unwrap().push(turns.clone());
        let (over, of_thread, counted) = (Over(turns.clone()), store.clone(), COUNTED.get());
        let thread = std::thread::spawn(move || {
            let _over = over;
            COUNTED.set(counted);
            let ledger = Ledger::open_in(of_thread, "sim")?;
            task.run(&ledger)
        });
        Self { store, turns, beside: beside.clone(), thread: Some(thread) }
    }

    /// Lets it do so many operations; whether it came to its end.
    pub fn go_on(&self, operations: u64) -> bool {
        self.turns.grant(operations)
    }

    /// What it came to, and whether something was done to it.
    pub fn end(mut self) -> (Result<Done, LedgerError>, bool) {
        self.turns.free();
        let thread = self.thread.take().expect("it ends once");
        match thread.join() {
            Ok(done) => (done, self.store.hurt()),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Hand {
    /// Killed where it stands.
    fn drop(&mut self) {
        self.beside.0.lock().unwrap().retain(|turns| !Arc::ptr_eq(turns, &self.turns));
        if let Some(thread) = self.thread.take() {
            self.store.kill();
            self.turns.free();
            drop(std::panic::catch_unwind(AssertUnwindSafe(|| thread.join())));
        }
    }
}
