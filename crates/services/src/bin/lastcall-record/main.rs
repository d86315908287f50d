//! `lastcall-record`: parse, start, map the end to an exit code.

mod args;
mod told;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use lastcall_ledger::store::{Location, StoreError};
use lastcall_ledger::{Ledger, LedgerError, random_hex, system_now};
use lastcall_record::plant::Planted;
use lastcall_record::{Limits, RedactionKey};
use lastcall_services::record::{Options, Telemetry, dry, plant, probe, replay, run};
use lastcall_services::telemetry::About;
use lastcall_services::{Stop, checked, process};

use args::{Args, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

fn main() -> ExitCode {
    match Args::parse().with_file().and_then(|args| start(&args)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lastcall-record: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Stop>() {
        Some(stop) => stop.exit_code(),
        None => match error.downcast_ref::<LedgerError>() {
            Some(error) if error.is_of_record() => 4,
            Some(LedgerError::Store(StoreError::Away { .. } | StoreError::Ambiguous { .. })) => 75,
            _ => 2,
        },
    }
}

fn start(args: &Args) -> anyhow::Result<ExitCode> {
    if args.print_config {
        args.settings()?.masked().iter().for_each(|line| println!("{line}"));
        return Ok(ExitCode::SUCCESS);
    }
    let place = Location::of(args.ledger()?).map_err(|what| anyhow::anyhow!(what))?;
    let ledger = Ledger::open_at(&place)?;
    match &args.command {
        Some(command) => other(args, command, &ledger),
        None => record(args, &ledger),
    }
}

fn record(args: &Args, ledger: &Ledger) -> anyhow::Result<ExitCode> {
    let options = options(args, ledger)?;
    if args.probe {
        let (text, code) = checked::told(&probe::probe(ledger, &options));
        print!("{text}");
        return Ok(ExitCode::from(code));
    }
    let stop = process::stopped()?;
    if args.listen.is_some() || !options.once {
        process::listen("lastcall-record", args.listen, LISTEN, options.telemetry.clone())?;
    }
    let copy = if args.dry_run { Some(dry::dry(ledger)?) } else { None };
    let say = |line: &str| eprintln!("lastcall-record: {line}");
    let summary = run(copy.as_ref().unwrap_or(ledger), &options, &stop, say)?;
    if args.dry_run {
        print!("{}", told::dry(&summary));
    } else {
        eprintln!("lastcall-record: {}", told::summary(&summary));
    }
    Ok(ExitCode::SUCCESS)
}

fn options(args: &Args, ledger: &Ledger) -> anyhow::Result<Options> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut group = args.group.clone().unwrap_or_else(|| "lastcall-record".to_owned());
    if args.dry_run {
        // Another member of the group would take partitions from those who record.
        group = format!("{group}-dry-run-{}", random_hex(4)?);
    }
    let age = Duration::from_secs(u64::from(args.chunk_age.unwrap_or(300)));
    let about = About {
        service: "lastcall-record",
        version: env!("CARGO_PKG_VERSION"),
        ledger: Some(ledger.meta().id.to_string()),
        topics: None,
        group: group.clone(),
        started: system_now(),
    };
    Ok(Options {
        settings: args.settings()?,
        group,
        instance: args.instance.clone().filter(|_| !args.dry_run),
        sources: args.sources.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
        from: args.from,
        accept_gap: args.accept_gap.clone(),
        key: args.redaction_key.as_deref().map(|path| key(path, ledger)).transpose()?,
        once: args.once || args.dry_run,
        limits: Limits {
            age_ms: i64::try_from(age.as_millis())?,
            records: args.chunk_records.unwrap_or(u64::MAX),
            ..Limits::default()
        },
        budget: args.memory.unwrap_or(96) as usize * (1 << 20),
        workers: args.workers.map_or(cores.min(4), usize::from),
        look: Duration::from_secs(args.look),
        telemetry: Arc::new(Telemetry::new(about, age)),
        hints: !args.dry_run,
    })
}

fn key(path: &Path, ledger: &Ledger) -> anyhow::Result<RedactionKey> {
    let secret = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the redaction key {}", path.display()))?;
    RedactionKey::of(&secret, &ledger.meta().id).map_err(|what| anyhow::anyhow!("{}: {what}", path.display()))
}

fn other(args: &Args, command: &Command, ledger: &Ledger) -> anyhow::Result<ExitCode> {
    match command {
        Command::Plant { tool, topic, candidate, calls, sample, at, dry_run } => {
            let path = calls.as_ref().or(sample.as_ref()).context("give --calls FILE or --sample FILE")?;
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            let place = path.display().to_string();
            let from = match calls {
                Some(_) => Planted::Calls(&text, &place),
                None => Planted::Sample(&text, &place),
            };
            let (candidate, at) = (candidate.as_deref(), *at);
            let request = plant::Request { tool, candidate, topic, from, at, dry: *dry_run };
            let done = plant::plant(ledger, &args.settings()?, &request)?;
            print!("{}", told::plant(&done, tool, topic));
        }
        Command::Replay { source, reason, to, all, dry_run } => {
            let (reason, to) = (reason.as_deref(), to.as_deref());
            let request = replay::Request { source, reason, to, all: *all, dry: *dry_run };
            let done = replay::replay(ledger, &args.settings()?, &request)?;
            print!("{}", told::replay(&done, to.unwrap_or(source), *dry_run));
        }
    }
    Ok(ExitCode::SUCCESS)
}
