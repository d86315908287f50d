//! An MCP server as a child process: one JSON-RPC message a line, calls beside each other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::rpc::{MAX_MESSAGE, Message, Reply, cancelled, message, request};
use crate::answer::Failure;
use crate::target::process::{Lines, Program, line};

/// Lines that wait to be written.
const QUEUE: usize = 64;
/// After so many calls in a row without a word the server is started again.
const SILENT: u32 = 3;

/// A connection to a running server. Once it is dropped the server is killed.
pub(super) struct Pipe {
    shared: Arc<Shared>,
    lines: mpsc::Sender<String>,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    next: AtomicU64,
    /// The longest line that is held.
    limit: AtomicUsize,
    silent: AtomicU32,
}

#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, oneshot::Sender<Result<Reply, Failure>>>,
    /// Why nothing comes any more.
    ended: Option<Failure>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, why: Failure) {
        let mut waiting = self.waiting();
        waiting.ended.get_or_insert(why);
        for (_, call) in waiting.calls.drain() {
            let _ = call.send(Err(why));
        }
    }
}

/// A call that waits. Dropped before its answer came, it is cancelled.
struct Call<'a> {
    pipe: &'a Pipe,
    id: u64,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let unanswered = self.pipe.shared.waiting().calls.remove(&self.id).is_some();
        if unanswered {
            let _ = self.pipe.lines.try_send(cancelled(self.id));
            if self.pipe.shared.silent.fetch_add(1, Ordering::Relaxed) + 1 >= SILENT {
                self.pipe.shared.end(Failure::Process);
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Pipe {
    /// Starts the server. Needs a runtime.
    pub fn start(program: &Program) -> Result<Self, Failure> {
        let (process, stdin, lines) = program.start()?;
        let shared = Arc::new(Shared { limit: MAX_MESSAGE.into(), ..Shared::default() });
        let (sender, receiver) = mpsc::channel(QUEUE);
        let (writing, reading) = (Arc::clone(&shared), Arc::clone(&shared));
        let pongs = sender.clone();
        let tasks = [
            tokio::spawn(async move {
                write(stdin, receiver).await;
                writing.end(Failure::Process);
            }),
            tokio::spawn(async move {
                let why = read(lines, &reading, &pongs).await;
                reading.end(why);
                drop(process);
            }),
        ];
        Ok(Self { shared, lines: sender, tasks })
    }

    /// Nothing comes any more.
    pub fn has_ended(&self) -> bool {
        self.shared.waiting().ended.is_some()
    }

    /// One request and its reply.
    pub async fn ask(&self, method: &str, params: &str, limit: usize) -> Result<Reply, Failure> {
        self.shared.limit.fetch_max(limit, Ordering::Relaxed);
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.shared.waiting();
            if let Some(why) = waiting.ended {
                return Err(why);
            }
            waiting.calls.insert(id, sender);
        }
        let _call = Call { pipe: self, id };
        self.send(request(id, method, params)).await?;
        let reply = receiver.await.unwrap_or(Err(Failure::Process))?;
        match &reply {
            Reply::Result(text) if text.len() > limit => Err(Failure::AnswerTooLarge),
            _ => Ok(reply),
        }
    }

    /// Sends a line.
    pub async fn send(&self, line: String) -> Result<(), Failure> {
        self.lines.send(line).await.map_err(|_| Failure::Process)
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line = crate::answer::on_one_line(&line);
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read(mut lines: Lines, shared: &Shared, pongs: &mpsc::Sender<String>) -> Failure {
    let mut buffer = Vec::new();
    loop {
        // a message is its result and little else
        let limit = shared.limit.load(Ordering::Relaxed).saturating_add(4096);
        if let Err(why) = line(&mut lines, &mut buffer, limit).await {
            return why;
        }
        if buffer.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match message(&buffer) {
            None => return Failure::NotAnAnswer,
            Some(Message::Other) => {}
            // a server that asks faster than it reads is not answered
            Some(Message::Asked(answer)) => drop(pongs.try_send(answer)),
            Some(Message::Reply(id, reply)) => {
                shared.silent.store(0, Ordering::Relaxed);
                let call = shared.waiting().calls.remove(&id);
                if let Some(call) = call {
                    let _ = call.send(Ok(reply));
                }
            }
        }
        buffer.shrink_to(1 << 20);
    }
}
