//! The other half of a lane: sends rows in their order, and hears of their acknowledgements.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use lastcall_event::Timestamp;
use lastcall_mirror::Stand;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Built, Common, Entry, NEVER, Replay, TICK, What};
use crate::Stop;
use crate::mirror::mark::Mark;
use crate::mirror::output::{Delivered, Outgoing};

/// Messages that are sent and not acknowledged.
const UNACKNOWLEDGED: usize = 2048;

/// A message that the broker has not acknowledged, or a barrier behind such.
enum Sent {
    Message { number: u64, done: bool, mark: Mark, kind: &'static str, _permit: Option<OwnedSemaphorePermit> },
    Barrier { next: i64, at: Timestamp },
}

/// The second half of a lane.
pub(super) struct Emit {
    common: Common,
    /// After the last message that was sent.
    mark: Mark,
    position: i64,
    clock: Option<Timestamp>,
    sent: VecDeque<Sent>,
    number: u64,
    receipts: UnboundedSender<Delivered>,
    delivered: Option<UnboundedReceiver<Delivered>>,
    done: Arc<AtomicI64>,
    closed: Arc<AtomicBool>,
}

impl Emit {
    pub fn new(common: Common, mark: Mark, done: Arc<AtomicI64>, closed: Arc<AtomicBool>) -> Self {
        let (receipts, delivered) = unbounded_channel();
        Self {
            common,
            mark,
            position: mark.resume,
            clock: None,
            sent: VecDeque::new(),
            number: 0,
            receipts,
            delivered: Some(delivered),
            done,
            closed,
        }
    }

    /// Works until nothing more comes and everything is acknowledged.
    pub async fn run(mut self, window: Receiver<Entry>) {
        let Some(delivered) = self.delivered.take() else { return };
        if let Err(stop) = self.work(window, delivered).await {
            let _ = self.common.shared.failed.send(stop);
        }
    }

    async fn work(
        &mut self,
        mut window: Receiver<Entry>,
        mut delivered: UnboundedReceiver<Delivered>,
    ) -> Result<(), Stop> {
        let (mut current, mut over) = (None, false);
        loop {
            let open = !over && self.sent.len() < UNACKNOWLEDGED;
            tokio::select! {
                biased;
                Some((number, answer)) = delivered.recv(), if !self.sent.is_empty() => {
                    let next = self.mark.resume;
                    answer.map_err(|error| self.common.stop(error, next))?;
                    self.acknowledged(number);
                }
                ready = next(&mut current, &mut window), if open => match ready? {
                    Some((entry, built)) => self.entry(entry, built).await?,
                    None => over = true,
                },
            }
            if over && self.sent.is_empty() {
                // Nothing is under way any more, and nothing comes.
                let through = self.clock.or_else(|| self.common.through()).map_or(NEVER, |at| at.0);
                if through <= self.common.shown.load(Ordering::SeqCst) {
                    self.closed.store(true, Ordering::SeqCst);
                    return Ok(());
                }
                let stand = Stand { from: self.mark.stated, to: self.position, through: None };
                let mark = Mark { stated: self.position, resume: self.position, ..self.mark };
                let (what, time, permit) = (What::Cover(stand), None, None);
                self.common.open.fetch_add(1, Ordering::SeqCst);
                self.common.shared.telemetry.own().in_flight.inc();
                self.entry(Entry::Out { what, mark, time, clock: self.clock, permit }, None).await?;
            }
        }
    }

    async fn entry(
        &mut self,
        entry: Entry,
        built: Option<(Built, OwnedSemaphorePermit)>,
    ) -> Result<(), Stop> {
        let (what, mark, time, clock, permit) = match entry {
            Entry::Barrier { next, at } => {
                self.position = self.position.max(next);
                self.sent.push_back(Sent::Barrier { next, at });
                self.settle();
                return Ok(());
            }
            Entry::Out { what, mark, time, clock, permit } => (what, mark, time, clock, permit),
        };
        let (text, kind, through, permit) = match (what, built) {
            (What::Row(_), Some((Built { text, through }, permit))) => {
                (text.into_bytes(), "call", through, Some(permit))
            }
            (What::Row(_), None) => return Err(Stop::Thread("a replay")),
            (What::Plain(bytes, kind), _) => (bytes, kind, None, permit),
            (What::Cover(stand), _) => {
                let through = clock.or_else(|| self.common.through());
                let text = lastcall_mirror::coverage(Stand { through, ..stand });
                (text.into_bytes(), "coverage", through, permit)
            }
        };
        // A process that stood still is no member of its group any more: it writes nothing of what it held.
        while !self.common.shared.pulse.allows(self.common.generation) {
            tokio::time::sleep(TICK / 10).await;
        }
        self.number += 1;
        let partition = self.common.key.partition;
        let message = Outgoing { partition, value: &text, mark, time };
        let handed = self.common.shared.output.send(self.number, &message, &self.receipts).await;
        handed.map_err(|error| self.common.stop(error, mark.resume))?;
        if let Some(at) = through {
            self.common.shown.fetch_max(at.0, Ordering::SeqCst);
        }
        (self.mark, self.clock) = (mark, clock);
        self.position = self.position.max(mark.resume);
        self.sent.push_back(Sent::Message { number: self.number, done: false, mark, kind, _permit: permit });
        Ok(())
    }

    /// The broker has this one.
    fn acknowledged(&mut self, acknowledged: u64) {
        for sent in &mut self.sent {
            match sent {
                Sent::Message { number, done, .. } if *number == acknowledged => {
                    *done = true;
                    break;
                }
                _ => {}
            }
        }
        self.settle();
    }

    /// What is acknowledged from the front on is done.
    fn settle(&mut self) {
        let shared = &self.common.shared;
        let mut next = None;
        while let Some(sent) = self.sent.front() {
            match sent {
                Sent::Message { done: false, .. } => break,
                Sent::Message { mark, kind, .. } => {
                    next = Some(mark.resume);
                    shared.telemetry.own().acknowledged(kind);
                    shared.telemetry.own().in_flight.dec();
                    self.common.open.fetch_sub(1, Ordering::SeqCst);
                }
                Sent::Barrier { next: barrier, at } => {
                    next = next.max(Some(*barrier));
                    self.common.settled(*at);
                }
            }
            self.sent.pop_front();
        }
        if let Some(next) = next {
            self.done.fetch_max(next, Ordering::SeqCst);
            shared.telemetry.done(&self.common.key, next);
            shared.held();
        }
    }
}

/// The next entry in its turn, with its row where it has one; `None`: no more come.
async fn next(
    current: &mut Option<Entry>,
    window: &mut Receiver<Entry>,
) -> Result<Option<(Entry, Option<(Built, OwnedSemaphorePermit)>)>, Stop> {
    if current.is_none() {
        *current = window.recv().await;
    }
    let built = match current {
        Some(Entry::Out { what: What::Row(Replay(task)), .. }) => {
            Some(task.await.ok().flatten().ok_or(Stop::Thread("a replay"))?)
        }
        _ => None,
    };
    Ok(current.take().map(|entry| (entry, built)))
}
