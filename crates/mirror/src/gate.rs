//! How many calls of a tool run at once, and how fast they follow each other. Both may change while calls wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

use crate::settings::Limits;

pub(crate) struct Gate {
    limits: watch::Sender<Arc<Limits>>,
    slots: Semaphore,
    /// Slots that are taken and, once free, not given out again.
    surplus: AtomicUsize,
    /// When the next call may follow.
    next: Mutex<Option<Instant>>,
    waiting: AtomicUsize,
}

/// A place among the calls that run.
pub(crate) struct Place<'a> {
    gate: &'a Gate,
    permit: Option<SemaphorePermit<'a>>,
    pub limits: Arc<Limits>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let taken = self.gate.surplus.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if taken.is_ok()
            && let Some(permit) = self.permit.take()
        {
            permit.forget();
        }
    }
}

/// Counts one that waits, also where it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gate {
    pub fn new(limits: Limits) -> Self {
        Self {
            slots: Semaphore::new(limits.concurrency),
            limits: watch::Sender::new(Arc::new(limits)),
            surplus: AtomicUsize::new(0),
            next: Mutex::new(None),
            waiting: AtomicUsize::new(0),
        }
    }

    pub fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.limits.borrow())
    }

    /// Calls that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Takes new limits over. Calls that run go on as they began.
    pub fn update(&self, limits: Limits) {
        self.limits.send_if_modified(|old| {
            if **old == limits {
                return false;
            }
            if old.rate != limits.rate {
                *self.next.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
            }
            let (was, is) = (old.concurrency, limits.concurrency);
            if is > was {
                let mut more = is - was;
                while more > 0
                    && self
                        .surplus
                        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                        .is_ok()
                {
                    more -= 1;
                }
                self.slots.add_permits(more);
            } else {
                let fewer = was - is;
                let forgotten = self.slots.forget_permits(fewer);
                self.surplus.fetch_add(fewer - forgotten, Ordering::SeqCst);
            }
            *old = Arc::new(limits);
            true
        });
    }

    /// Waits until a call may run, or until `leaves` says of the limits in force that it need not.
    pub async fn enter(&self, leaves: impl Fn(&Limits) -> bool) -> Place<'_> {
        let limits = self.limits();
        if limits.rate.is_none()
            && !leaves(&limits)
            && let Ok(permit) = self.slots.try_acquire()
        {
            return Place { gate: self, permit: Some(permit), limits };
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        let mut changes = self.limits.subscribe();
        let permit = loop {
            if leaves(&self.limits.borrow()) {
                break None;
            }
            if let Ok(permit) = self.slots.try_acquire() {
                break Some(permit);
            }
            tokio::select! {
                permit = self.slots.acquire() => break permit.ok(),
                _ = changes.changed() => {}
            }
        };
        let mut place = Place { gate: self, permit, limits: self.limits() };
        if place.permit.is_none() {
            return place;
        }
        loop {
            changes.mark_unchanged();
            place.limits = self.limits();
            if leaves(&place.limits) {
                return place;
            }
            let Some(rate) = place.limits.rate else { return place };
            let Some(at) = self.turn(rate) else { return place };
            tokio::select! {
                () = tokio::time::sleep_until(at) => return place,
                _ = changes.changed() => {}
            }
        }
    }

    /// When the call may go; `None`: now.
    fn turn(&self, rate: f64) -> Option<Instant> {
        let step = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX);
        let now = Instant::now();
        let mut next = self.next.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let at = next.filter(|next| *next > now).unwrap_or(now);
        // turns are handed out a day ahead at most: whoever waits longer is woken by a change, or is shed
        let limit = now + Duration::from_secs(86_400);
        *next = Some(at.checked_add(step).filter(|then| *then < limit).unwrap_or(limit));
        (at > now).then_some(at)
    }
}
