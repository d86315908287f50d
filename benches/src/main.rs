//! `make bench`: `lastcall run` beside parsing the same events into `serde_json::Value` and beside a Python job that
//! only counts. Alternating runs on one machine, medians and ratios, written to `target/figures/run.json`.
//! Never asserts a time: machines are shared and noisy.

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use lastcall_benches::input;
use lastcall_benches::measure::{Used, median, run};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["parse", file] => parse(Path::new(file)),
        ["repeat", file, times] => repeat(Path::new(file), times.parse()?),
        [] => bench(),
        _ => bail!("usage: bench | bench parse FILE | bench repeat FILE TIMES"),
    }
}

/// The limit: every event into a `serde_json::Value`, and nothing else.
fn parse(file: &Path) -> Result<()> {
    let mut reader = BufReader::with_capacity(256 << 10, std::fs::File::open(file)?);
    let (mut line, mut events, mut depth) = (Vec::new(), 0u64, 0usize);
    while reader.read_until(b'\n', &mut line)? > 0 {
        let value: Value = serde_json::from_slice(&line)?;
        depth += value.as_object().map_or(0, serde_json::Map::len); // the tree is used
        events += 1;
        line.clear();
    }
    println!("{events} events, {depth} members");
    Ok(())
}

/// The file again and again on standard output, for inputs larger than a disk should hold.
fn repeat(file: &Path, times: u64) -> Result<()> {
    let bytes = std::fs::read(file)?;
    let mut out = std::io::stdout().lock();
    for _ in 0..times {
        out.write_all(&bytes)?;
    }
    Ok(())
}

fn bench() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let data = match std::env::var_os("LASTCALL_DATA") {
        Some(dir) => PathBuf::from(dir),
        None => root.join("../shared/data"),
    };
    if !data.join("calls.jsonl").exists() {
        println!(
            "bench: skipped, the real calls are not here (set LASTCALL_DATA to the folder with calls.jsonl)"
        );
        return Ok(());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let dir = target.join("bench");
    std::fs::create_dir_all(&dir)?;
    let count: u64 =
        std::env::var("LASTCALL_BENCH_EVENTS").ok().and_then(|v| v.parse().ok()).unwrap_or(200_000);
    let rounds: usize = std::env::var("LASTCALL_BENCH_ROUNDS").ok().and_then(|v| v.parse().ok()).unwrap_or(5);
    let lastcall = target.join("release/lastcall");
    if !lastcall.exists() {
        bail!("{} is not there; `make bench` builds it first", lastcall.display());
    }
    let made = input::make(&data, &dir, count)?;
    println!("input: {} events of {} bytes on average, {} definitions", made.events, made.mean, made.pairs);
    let python = python(&dir);

    let me = std::env::current_exe()?;
    let (mut parse, mut record, mut peer): (Vec<Used>, Vec<Used>, Vec<Used>) = Default::default();
    for round in 0..rounds {
        parse.push(run(Command::new(&me).arg("parse").arg(&made.events_file))?);
        let ledger = dir.join(format!("ledger-{round}"));
        let _ = std::fs::remove_dir_all(&ledger);
        copy(&made.ledger, &ledger)?;
        let mut command = Command::new(&lastcall);
        command.arg("run").arg("--ledger").arg(&ledger).arg("--final").arg(&made.events_file);
        record.push(run(&mut command)?);
        std::fs::remove_dir_all(&ledger)?;
        if let Some(python) = &python {
            let job = root.join("benches/peers/job.py");
            peer.push(run(Command::new(python).arg(job).arg(&made.contracts_file).arg(&made.events_file))?);
        }
    }
    let idle = idle(&lastcall, &made, &dir)?;
    let large = large(&lastcall, &me, &made, &dir)?;
    let per_event = |used: &[Used]| median(used.iter().map(|u| u.cpu_s)) * 1e6 / made.events as f64;
    let (parse_us, whole_us, peer_us) = (per_event(&parse), per_event(&record), per_event(&peer));
    // preparing 2,071 pairs is done once, whatever the number of events
    let run_us = whole_us - idle * 1e6 / made.events as f64;
    let wall = median(record.iter().map(|u| u.wall_s));
    let figures = json!({
        "events": made.events,
        "bytes_per_event": made.mean,
        "definitions": made.pairs,
        "rounds": rounds,
        "events_per_s": (made.events as f64 / wall).round(),
        "cpu_us_per_event": round2(run_us),
        "cpu_us_per_event_with_start": round2(whole_us),
        "start_cpu_s": round2(idle),
        "parse_us_per_event": round2(parse_us),
        "ratio_to_parse": round2(run_us / parse_us),
        "python_us_per_event": peer_us.is_finite().then(|| round2(peer_us)),
        "ratio_to_python": peer_us.is_finite().then(|| round2(run_us / peer_us)),
        "peak_rss_mib": record.iter().map(|u| u.peak_mib).max(),
        "large": large,
    });
    let out = target.join("figures");
    std::fs::create_dir_all(&out)?;
    std::fs::write(out.join("run.json"), format!("{figures:#}\n"))?;
    println!("{figures:#}");
    Ok(())
}

fn round2(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

/// CPU seconds of `lastcall run` over an empty file: the pairs are prepared, nothing is read.
fn idle(lastcall: &Path, made: &input::Made, dir: &Path) -> Result<f64> {
    let empty = dir.join("empty.jsonl");
    std::fs::write(&empty, b"")?;
    let mut all = Vec::new();
    for _ in 0..3 {
        let ledger = dir.join("ledger-idle");
        let _ = std::fs::remove_dir_all(&ledger);
        copy(&made.ledger, &ledger)?;
        let mut command = Command::new(lastcall);
        command.arg("run").arg("--ledger").arg(&ledger).arg("--final").arg(&empty);
        all.push(run(&mut command)?.cpu_s);
        std::fs::remove_dir_all(&ledger)?;
    }
    Ok(median(all))
}

/// Peak memory on an input of LASTCALL_BENCH_GB gigabytes (0: not measured), through standard input.
fn large(lastcall: &Path, me: &Path, made: &input::Made, dir: &Path) -> Result<Value> {
    let gigabytes: f64 = std::env::var("LASTCALL_BENCH_GB").ok().and_then(|v| v.parse().ok()).unwrap_or(0.0);
    if gigabytes <= 0.0 {
        return Ok(Value::Null);
    }
    let size = std::fs::metadata(&made.events_file)?.len();
    let times = (gigabytes * 1e9 / size as f64).ceil() as u64;
    let ledger = dir.join("ledger-large");
    let _ = std::fs::remove_dir_all(&ledger);
    copy(&made.ledger, &ledger)?;
    let mut feeder = Command::new(me)
        .arg("repeat")
        .arg(&made.events_file)
        .arg(times.to_string())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut command = Command::new(lastcall);
    command.arg("run").arg("--ledger").arg(&ledger).arg("--final").arg("-");
    command.stdin(feeder.stdout.take().context("the feeder has no output")?);
    let used = run(&mut command)?;
    feeder.wait()?;
    std::fs::remove_dir_all(&ledger)?;
    Ok(json!({ "bytes": size * times, "events": made.events * times, "peak_rss_mib": used.peak_mib,
        "wall_s": round2(used.wall_s) }))
}

/// A Python with orjson and jsonschema-rs in a folder of its own, or nothing where it cannot be had.
fn python(dir: &Path) -> Option<PathBuf> {
    let venv = dir.join("venv");
    let python = venv.join("bin/python");
    let has = |p: &Path| {
        let mut command = Command::new(p);
        command.args(["-c", "import orjson, jsonschema_rs"]).stderr(Stdio::null());
        command.status().is_ok_and(|s| s.success())
    };
    if !has(&python) {
        let quiet = |command: &mut Command| {
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
        };
        let made = quiet(Command::new("python3").arg("-m").arg("venv").arg(&venv))
            && quiet(Command::new(&python).args(["-m", "pip", "install", "-q", "orjson", "jsonschema-rs"]));
        if !made || !has(&python) {
            println!("bench: the Python peer is left out (no python3 with venv, or no registry)");
            return None;
        }
    }
    Some(python)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
