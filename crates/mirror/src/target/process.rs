//! A child process that is asked by lines on its standard input and answers by lines on its standard output.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::answer::Failure;
use crate::settings::Secret;

/// What of this process's environment a child sees. Not the rest: it may hold passwords of the broker.
const INHERITED: [&str; 9] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "TEMP", "SystemRoot"];

/// A program, its arguments and its environment.
#[derive(Clone)]
pub(super) struct Program {
    pub argv: Vec<String>,
    pub env: Vec<(String, Secret)>,
}

/// A running child, killed with everything that it started once this is dropped.
pub(super) struct Process(Child);

pub(super) type Lines = BufReader<ChildStdout>;

impl Program {
    /// Starts it. What it says on standard error is not kept: it may hold values of arguments.
    pub fn start(&self) -> Result<(Process, ChildStdin, Lines), Failure> {
        let (program, arguments) = self.argv.split_first().ok_or(Failure::Process)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().kill_on_drop(true).process_group(0);
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(self.env.iter().map(|(name, value)| (name, &value.0)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|_| Failure::Process)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let process = Process(child);
        let (stdin, stdout) = pipes.ok_or(Failure::Process)?;
        Ok((process, stdin, BufReader::new(stdout)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // no id: it has ended and was waited for, so the number may be another's
        let group = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Reads up to a line's end, which is not part of it; no more than `limit` bytes are held. The end of the stream is
/// [`Failure::Process`].
pub(super) async fn line(
    from: &mut (impl AsyncBufRead + Unpin),
    into: &mut Vec<u8>,
    limit: usize,
) -> Result<(), Failure> {
    into.clear();
    loop {
        let held = from.fill_buf().await.map_err(|_| Failure::Process)?;
        if held.is_empty() {
            return Err(Failure::Process);
        }
        let end = memchr::memchr(b'\n', held);
        let part = held.get(..end.unwrap_or(held.len())).unwrap_or_default();
        if into.len() + part.len() > limit {
            return Err(Failure::AnswerTooLarge);
        }
        into.extend_from_slice(part);
        let used = part.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}
