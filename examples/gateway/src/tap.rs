//! Copies what passes, in both directions, up to a limit. What passes is not held up and not changed.

use std::pin::Pin;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderMap;
use hyper::body::{Frame, SizeHint};

use crate::call::{Answer, Job, Source};
use crate::held::{Held, Room, now};

const MARK: &[u8] = b"\"tools/call\"";

/// Which direction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// To the tool.
    Request,
    /// Back to the agent.
    Answer,
}

/// One call as it passes. Told once to the sender: when its answer ended, or was given up.
pub struct Call {
    inner: Mutex<Inner>,
    source: Source,
    headers: HeaderMap,
    at: i64,
    begun: Instant,
    max: usize,
    held: Arc<Held>,
    jobs: Sender<Job>,
}

#[derive(Default)]
struct Inner {
    room: Option<Room>,
    request: Vec<u8>,
    /// The end of the request so far, and whether it named a tool call: what has no room is looked at as it passes.
    tail: Vec<u8>,
    names_call: bool,
    whole: bool,
    answer: Vec<u8>,
    status: Option<u16>,
    answer_headers: HeaderMap,
    told: bool,
}

impl Call {
    /// Begins to watch a request.
    pub fn new(
        source: Source,
        headers: HeaderMap,
        max: usize,
        held: &Arc<Held>,
        jobs: &Sender<Job>,
    ) -> Arc<Self> {
        let inner = Inner { room: held.room(), ..Inner::default() };
        let (held, jobs) = (held.clone(), jobs.clone());
        Arc::new(Self {
            inner: Mutex::new(inner),
            source,
            headers,
            at: now(),
            begun: Instant::now(),
            max,
            held,
            jobs,
        })
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, side: Side, bytes: &[u8]) {
        let mut inner = self.inner();
        if side == Side::Request && !inner.names_call {
            inner.tail.extend_from_slice(bytes);
            inner.names_call = inner.tail.windows(MARK.len()).any(|w| w == MARK);
            let gone = inner.tail.len().saturating_sub(MARK.len() - 1);
            inner.tail.drain(..gone);
        }
        let fits = inner.request.len() + inner.answer.len() + bytes.len() <= self.max;
        if fits && inner.room.as_mut().is_some_and(|room| room.grow(bytes.len())) {
            let to = if side == Side::Request { &mut inner.request } else { &mut inner.answer };
            to.extend_from_slice(bytes);
        } else {
            (inner.request, inner.answer, inner.room) = (Vec::new(), Vec::new(), None);
        }
    }

    fn ended(&self, side: Side) {
        if side == Side::Request {
            self.inner().whole = true;
        } else {
            self.tell(true);
        }
    }

    /// Notes the head of the answer.
    pub fn answered(&self, status: u16, headers: &HeaderMap) {
        let mut inner = self.inner();
        (inner.status, inner.answer_headers) = (Some(status), headers.clone());
    }

    /// Hands the call to the sender. `whole`: the answer came to its end, or there is none for a reason of its own.
    pub fn tell(&self, whole: bool) {
        let mut inner = {
            let mut inner = self.inner();
            if inner.told {
                return;
            }
            std::mem::replace(&mut *inner, Inner { told: true, ..Inner::default() })
        };
        // A request that was not read to its end may have been a call: nobody knows.
        let a_call = self.source.is_route() || inner.names_call || !inner.whole;
        let Some(room) = inner.room.take().filter(|_| self.source.is_route() || inner.whole) else {
            if a_call {
                self.held.lose(self.source.tool(), self.at);
            }
            return;
        };
        let job = Job {
            room: Arc::new(room),
            source: self.source.clone(),
            headers: self.headers.clone(),
            at: self.at,
            latency_ms: self.begun.elapsed().as_secs_f64() * 1e3,
            request: inner.whole.then_some(inner.request),
            answer: Answer { status: inner.status, headers: inner.answer_headers, body: inner.answer, whole },
        };
        if let Err(lost) = self.jobs.send(job) {
            self.held.lose(lost.0.source.tool(), self.at);
        }
    }
}

/// A body that is watched.
pub struct Tap {
    body: Body,
    call: Arc<Call>,
    side: Side,
}

impl Tap {
    /// Watches a body.
    pub fn body(body: Body, call: &Arc<Call>, side: Side) -> Body {
        if body.is_end_stream() {
            call.ended(side);
        }
        Body::new(Self { body, call: call.clone(), side })
    }
}

impl HttpBody for Tap {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(frame) = &polled {
            if let Some(bytes) = frame.as_ref().and_then(|f| f.as_ref().ok()).and_then(Frame::data_ref) {
                self.call.pass(self.side, bytes);
            }
            if frame.is_none() || self.body.is_end_stream() {
                self.call.ended(self.side);
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        if self.side == Side::Answer {
            self.call.tell(false);
        }
    }
}

impl Drop for Call {
    /// An agent that went away before there was an answer.
    fn drop(&mut self) {
        self.tell(false);
    }
}
