//! What a child process used: CPU from the kernel's account of children, peak memory from /proc while it runs.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::resource::{UsageWho, getrusage};

/// What one run used.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// User and system time, seconds.
    pub cpu_s: f64,
    /// Wall time, seconds.
    pub wall_s: f64,
    /// Largest resident set seen, MiB (0 where the kernel does not tell).
    pub peak_mib: u64,
}

fn children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Result<Used> {
    let before = children()?;
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut peak = 0;
    let status = loop {
        peak = peak.max(high_water(child.id()));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let wall_s = start.elapsed().as_secs_f64();
    if !status.success() {
        let mut text = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut text)?;
        }
        bail!("{command:?} ended with {status}: {text}");
    }
    Ok(Used { cpu_s: children()? - before, wall_s, peak_mib: peak / 1024 })
}

/// The middle value; of an even number the lower middle. NaN for none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.into_iter().collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// Runs commands beside each other to their ends: CPU of all, wall time of the longest, the largest of their peaks.
pub fn together(commands: Vec<Command>) -> Result<Used> {
    let before = children()?;
    let start = Instant::now();
    let mut running = Vec::new();
    for mut command in commands {
        running.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    }
    let mut peak = 0;
    let mut statuses = Vec::new();
    while !running.is_empty() {
        let mut still = Vec::new();
        for mut child in running {
            peak = peak.max(high_water(child.id()));
            match child.try_wait()? {
                Some(status) => statuses.push(status),
                None => still.push(child),
            }
        }
        running = still;
        std::thread::sleep(Duration::from_millis(5));
    }
    if let Some(status) = statuses.iter().find(|status| !status.success()) {
        bail!("one of them ended with {status}");
    }
    Ok(Used { cpu_s: children()? - before, wall_s: start.elapsed().as_secs_f64(), peak_mib: peak / 1024 })
}

/// KiB of the largest resident set that a process had so far.
fn high_water(pid: u32) -> u64 {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return 0 };
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").trim().parse().ok()).unwrap_or(0)
}
