//! A candidate that is a command: long-lived processes, one JSON line in, one JSON line out.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::http::{ASKED_AGAIN, Offer, offer, request, tail};
use super::process::{Lines, Process, Program, line};
use super::{Ask, Identity};
use crate::answer::{Exchange, Failure, on_one_line, said_by_name};
use crate::settings::Secret;

/// The longest first line of a process, in which it says what it offers.
const MAX_OFFER: usize = 64 << 10;

pub(crate) struct Command {
    program: Program,
    tail: String,
    /// Processes that wait for a call.
    idle: Mutex<Vec<Running>>,
    backoff: Backoff,
    /// Until then it is not asked again: it did not offer the mode.
    refused: Mutex<Option<Instant>>,
}

struct Running {
    _process: Process,
    stdin: ChildStdin,
    lines: Lines,
    /// It has not answered yet, so its first line may be an offer.
    fresh: bool,
    buffer: Vec<u8>,
}

/// A process that is at work; one that is dropped before it answered has failed.
struct AtWork<'a> {
    command: &'a Command,
    running: Option<Running>,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.command.backoff.failed();
        }
    }
}

impl Command {
    pub fn new(argv: Vec<String>, env: Vec<(String, Secret)>, identity: &Identity) -> Self {
        Self {
            program: Program { argv, env },
            tail: tail(identity),
            idle: Mutex::new(Vec::new()),
            backoff: Backoff::default(),
            refused: Mutex::new(None),
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Running>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One exchange. `most`: how many processes may wait for the next.
    pub async fn exchange(
        &self,
        ask: &Ask<'_>,
        offered: Option<&'static str>,
        limit: usize,
        most: usize,
    ) -> Exchange {
        if offered.is_some() && self.refused().is_some_and(|until| Instant::now() < until) {
            return Err(Failure::NotOffered);
        }
        let running = match self.waiting() {
            Some(running) => running,
            None if self.backoff.is_over() => self.start()?,
            None => return Err(Failure::Process),
        };
        let mut work = AtWork { command: self, running: Some(running) };
        let Some(running) = &mut work.running else { return Err(Failure::Process) };
        if running.fresh
            && let Some(mode) = offered
        {
            let first = line(&mut running.lines, &mut running.buffer, MAX_OFFER).await;
            let offers = match first {
                Ok(()) => offer(&running.buffer).is_some_and(|offer| offer.has(mode)),
                Err(Failure::AnswerTooLarge) => false,
                Err(failure) => return Err(failure),
            };
            if !offers {
                *self.refused() = Some(Instant::now() + ASKED_AGAIN);
                return Err(Failure::NotOffered);
            }
            running.fresh = false;
        }
        running.ask(ask, &self.tail, limit).await?;
        let said = said_by_name(&running.buffer, ask.call_id).ok_or(Failure::NotAnAnswer)?;
        self.backoff.went_well();
        let mut idle = self.idle();
        if let Some(running) = work.running.take()
            && idle.len() < most
        {
            idle.push(running);
        }
        Ok(said)
    }

    /// What a process of it says first, if it says that within 5 seconds.
    pub async fn ask_offer(&self) -> Result<Option<Offer>, Failure> {
        let mut running = self.start()?;
        let first = line(&mut running.lines, &mut running.buffer, MAX_OFFER);
        match tokio::time::timeout(Duration::from_secs(5), first).await {
            Ok(Ok(())) => Ok(offer(&running.buffer)),
            Ok(Err(Failure::AnswerTooLarge)) | Err(_) => Ok(None),
            Ok(Err(failure)) => Err(failure),
        }
    }

    fn start(&self) -> Result<Running, Failure> {
        let (process, stdin, lines) = self.program.start().inspect_err(|_| self.backoff.failed())?;
        Ok(Running { _process: process, stdin, lines, fresh: true, buffer: Vec::new() })
    }

    /// A process that waits and is silent. One that said something unasked would answer the next call with it.
    fn waiting(&self) -> Option<Running> {
        loop {
            let mut running = self.idle().pop()?;
            if running.lines.fill_buf().now_or_never().is_none() {
                return Some(running);
            }
            self.backoff.failed();
        }
    }
}

impl Running {
    /// Asks and waits for a line.
    async fn ask(&mut self, ask: &Ask<'_>, tail: &str, limit: usize) -> Result<(), Failure> {
        let mut question = on_one_line(&request(ask, tail));
        question.push('\n');
        let Self { stdin, lines, buffer, fresh, .. } = self;
        let write = async {
            let written = stdin.write_all(question.as_bytes()).await;
            written.and(stdin.flush().await).map_err(|_| Failure::Process)
        };
        // both at once: a process may answer before it has read everything
        let read = async {
            line(lines, buffer, limit).await?;
            if *fresh && offer(buffer).is_some() {
                line(lines, buffer, limit).await?;
            }
            Ok(())
        };
        futures_util::future::try_join(write, read).await?;
        *fresh = false;
        Ok(())
    }
}
