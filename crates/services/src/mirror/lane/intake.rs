//! The intake of a lane: decodes what was polled, admits it as the budget allows, starts replays.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use lastcall_event::{CallRecord, Fidelity, Json, Preset, RawValue, Record, Timestamp, decode_text};
use lastcall_mirror::Stand;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Sender, UnboundedReceiver};
use tokio::time::{MissedTickBehavior, interval};

use super::{Built, Common, Entry, Message, Replay, TICK, ToLane, What, kib};
use crate::mirror::mark::Mark;
use crate::mirror::parts::Part;

/// What a call is taken to need of the budget before its answer is known; then what its row has.
const RESERVE: usize = 256 << 10;

/// The first half of a lane.
pub(super) struct Intake {
    common: Common,
    /// After the last message that was handed on.
    mark: Mark,
    /// Where the next upstream record is expected.
    position: i64,
    /// The last clock record, once there was one.
    clock: Option<Timestamp>,
    /// When a partition last said how far it is mirrored.
    said: Instant,
    queued: Arc<AtomicUsize>,
    turn: Sender<Entry>,
}

impl Intake {
    pub fn new(common: Common, mark: Mark, queued: Arc<AtomicUsize>, turn: Sender<Entry>) -> Self {
        Self { common, mark, position: mark.resume, clock: None, said: Instant::now(), queued, turn }
    }

    /// Works until nothing more comes. What is under way then is the other half's.
    pub async fn run(mut self, mut inbox: UnboundedReceiver<ToLane>, fresh: bool) {
        // Nobody listens any more where this ends: the other task has said why.
        let _ = self.work(&mut inbox, fresh).await;
    }

    async fn work(&mut self, inbox: &mut UnboundedReceiver<ToLane>, fresh: bool) -> Option<()> {
        if fresh {
            // Says where the partition begins: what was lost before its first call is then seen.
            self.cover().await?;
        }
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                told = inbox.recv() => match told? {
                    ToLane::Message(message) => {
                        self.queued.fetch_sub(message.size(), Ordering::Relaxed);
                        if !self.common.shared.draining.load(Ordering::Relaxed) {
                            self.message(message).await?;
                        }
                    }
                    ToLane::Barrier { next, at } => {
                        self.position = self.position.max(next);
                        if !self.common.shared.draining.load(Ordering::Relaxed) {
                            self.turn.send(Entry::Barrier { next, at }).await.ok()?;
                        }
                    }
                    ToLane::Close => return Some(()),
                },
                _ = tick.tick() => self.idle(inbox).await?,
            }
        }
    }

    /// Where nothing is under way, and more is known to be complete than any message states: says so.
    async fn idle(&mut self, inbox: &UnboundedReceiver<ToLane>) -> Option<()> {
        let common = &self.common;
        let idle = inbox.is_empty() && common.open.load(Ordering::SeqCst) == 0;
        let through = self.clock.map_or(common.through.load(Ordering::SeqCst), |clock| clock.0);
        let moved = through > common.shown.load(Ordering::SeqCst);
        if idle && moved && self.said.elapsed() >= common.shared.heartbeat {
            self.cover().await?;
        }
        Some(())
    }

    async fn cover(&mut self) -> Option<()> {
        self.said = Instant::now();
        let stand = Stand { from: self.mark.stated, to: self.position, through: None };
        self.mark = Mark { stated: self.position, resume: self.position, ..self.mark };
        self.out(What::Cover(stand), None, None).await
    }

    async fn message(&mut self, message: Message) -> Option<()> {
        let parts = self.common.shared.reading.parts(&message.value, message.outer.as_ref());
        let Message { offset, time, .. } = message;
        let next = offset.saturating_add(1);
        self.position = next;
        let count = parts.len();
        for (index, part) in parts.into_iter().enumerate() {
            // A mirror that goes on behind this part of the message reads the message again, unless it is the last.
            let after = if index + 1 == count { next } else { offset };
            self.mark.resume = self.mark.resume.max(after);
            match part {
                Part::Copy { bytes, kind, clock } => {
                    let bytes = cut(bytes, self.common.shared.output.max_bytes);
                    let permit = self.admit(bytes.len()).await?;
                    self.clock = self.clock.max(clock.filter(|_| self.common.shared.simulated));
                    self.out(What::Plain(bytes, kind.as_str()), time, Some(permit)).await?;
                }
                Part::Call(text) => {
                    let mut permit = self.admit(text.len() + RESERVE).await?;
                    let from = self.mark.stated.min(after);
                    self.mark.stated = self.mark.stated.max(after);
                    let (common, clock) = (self.common.clone(), self.clock);
                    let replay = Replay(tokio::spawn(async move {
                        let built = build(&common, &text, from, after, clock).await?;
                        // The budget holds from now on what the row has.
                        let more = permit.num_permits().saturating_sub(kib(built.text.len()) as usize);
                        drop(permit.split(more));
                        Some((built, permit))
                    }));
                    self.out(What::Row(replay), time, None).await?;
                }
            }
        }
        Some(())
    }

    /// Waits until the budget has room.
    async fn admit(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let shared = &self.common.shared;
        // One that is larger than all of it has it to itself.
        let permit = shared.budget.clone().acquire_many_owned(kib(bytes).min(shared.total)).await.ok();
        shared.held();
        permit
    }

    async fn out(
        &self,
        what: What,
        time: Option<Timestamp>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Option<()> {
        self.common.open.fetch_add(1, Ordering::SeqCst);
        self.common.shared.telemetry.own().in_flight.inc();
        let entry = Entry::Out { what, mark: self.mark, time, clock: self.clock, permit };
        self.turn.send(entry).await.ok()
    }
}

/// A call of which the arguments and the result do not fit into the output.
fn without_values<'c>(call: &CallRecord<'c>) -> CallRecord<'c> {
    let mut call = call.clone();
    (call.arguments, call.arguments_text) = (Json(Some(RawValue::NULL)), None);
    call.fidelity = Fidelity::NotCaptured;
    (call.outcome.result, call.outcome.result_keys) = (Json(None), None);
    call
}

/// What is copied, as far as the output takes it; a part of a record is none, and becomes a dead letter.
fn cut(mut bytes: Vec<u8>, most: usize) -> Vec<u8> {
    if bytes.len() > most {
        bytes.truncate(most);
        if decode_text(&String::from_utf8_lossy(&bytes), Preset::Native).is_ok() {
            bytes = b"too large for the output".to_vec();
        }
    }
    bytes
}

/// Replays a call and writes its row. `None`: the text is no call, which the intake has looked at.
async fn build(common: &Common, text: &str, from: i64, to: i64, clock: Option<Timestamp>) -> Option<Built> {
    let shared = &common.shared;
    let preset = shared.reading.stored();
    let Ok(Record::Call(call)) = decode_text(text, preset).map(|decoded| decoded.record) else { return None };
    let begun = Instant::now();
    let replayed = shared.mirror.replay(&call).await;
    shared.telemetry.own().replay_seconds.observe(begun.elapsed().as_secs_f64());
    let through = clock.or_else(|| common.through());
    let stand = Stand { from, to, through };
    let record = (preset == Preset::Native).then_some(text);
    let mut row = lastcall_mirror::row(record, &call, stand, &replayed);
    if row.len() > shared.output.max_bytes {
        // What the candidate answered is left out, and the row says so: it is then no evidence of anything.
        let light = replayed.lightened();
        row = lastcall_mirror::row(record, &call, stand, &light);
        if row.len() > shared.output.max_bytes {
            // The call itself is too large: that it was made is kept, what it said is not, so it is unresolved.
            row = lastcall_mirror::row(None, &without_values(&call), stand, &light);
        }
    }
    Some(Built { text: row, through })
}
