//! `lastcall-mirror`: parse, start, map the end to an exit code.

mod args;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use lastcall_ledger::system_now;
use lastcall_mirror::{Mirror, Settings};
use lastcall_record::registry;
use lastcall_services::mirror::{Options, Reading, Telemetry, dry, probe, run};
use lastcall_services::telemetry::About;
use lastcall_services::{Stop, checked, process};

use args::{Args, Given};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NAME: &str = "lastcall-mirror";
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9465);

fn main() -> ExitCode {
    match Args::parse().with_file().and_then(|given| start(&given)) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::from(error.downcast_ref::<Stop>().map_or(2, Stop::exit_code))
        }
    }
}

fn say(text: &str) {
    for line in text.lines() {
        eprintln!("{NAME}: {line}");
    }
}

fn start(given: &Given) -> anyhow::Result<ExitCode> {
    if given.args.print_config {
        given.settings()?.masked().iter().for_each(|line| println!("{line}"));
        return Ok(ExitCode::SUCCESS);
    }
    let dir = given.registry()?;
    let folder = registry::files(dir)?;
    folder.notes.iter().for_each(|note| say(&format!("note: {note}")));
    let registry = registry::parse(dir, &folder.files)?;
    registry::unchanged(dir, &registry)?;
    let (path, text) = &given.place;
    let mirror = Mirror::new(&registry, &Settings::parse(text, &path.display().to_string())?)?;
    let (upstream, output) = given.topics()?;
    if given.args.dry_run {
        print!("{}", dry(&mirror, &upstream, &output));
        return Ok(ExitCode::SUCCESS);
    }
    let (preset, decoder) = given.reading()?;
    let reading = Reading::new(preset, decoder, &registry, &given.candidates());
    let options = options(given, upstream, output)?;
    if given.args.probe {
        let (text, code) = checked::told(&probe(&mirror, &options));
        print!("{text}");
        return Ok(ExitCode::from(code));
    }
    let stop = process::stopped()?;
    if given.args.listen.is_some() || !options.once {
        process::listen(NAME, given.args.listen, LISTEN, options.telemetry.clone())?;
    }
    let summary = run(Arc::new(mirror), reading, &options, &stop, say)?;
    say(&summary.to_string());
    Ok(ExitCode::SUCCESS)
}

fn options(given: &Given, upstream: String, output: String) -> anyhow::Result<Options> {
    let args = &given.args;
    let group = args.group.clone().unwrap_or_else(|| NAME.to_owned());
    let about = About {
        service: NAME,
        version: env!("CARGO_PKG_VERSION"),
        ledger: None,
        topics: Some((upstream.clone(), output.clone())),
        group: group.clone(),
        started: system_now(),
    };
    Ok(Options {
        settings: given.settings()?,
        group,
        instance: args.instance.clone(),
        upstream,
        output,
        from: args.from,
        file: given.place.clone(),
        once: args.once,
        memory: args.memory.unwrap_or(64) as usize * (1 << 20),
        heartbeat: Duration::from_secs(u64::from(args.heartbeat.unwrap_or(60))),
        simulated: args.simulated,
        look: Duration::from_secs(args.look),
        telemetry: Arc::new(Telemetry::new(about, Duration::ZERO)),
    })
}
