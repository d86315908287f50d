//! `lastcall-record`: parse, start, map the end to an exit code.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use lastcall_ledger::store::{Location, StoreError};
use lastcall_ledger::{Ledger, LedgerError};
use lastcall_record::{Limits, RedactionKey};
use lastcall_services::kafka::Settings;
use lastcall_services::record::assign::From;
use lastcall_services::record::{Options, Stop, Summary, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Trace events from Kafka topics into the ledger: each record exactly once, whatever fails.
#[derive(Parser)]
#[command(name = "lastcall-record", version)]
#[command(after_help = "Examples:\n  \
    lastcall ledger source ledger mirrored-calls --kind topic --role mirrored-calls\n  \
    lastcall-record --ledger ledger --brokers localhost:9092 --from earliest\n  \
    lastcall-record --ledger s3://bucket/ledger --brokers kafka:9093 -X security.protocol=SSL -X ssl.ca.location=ca.pem\n\n\
    The ledger says where reading goes on; the group's offsets are written for lag tools and never read. Several may\n\
    run in one group. SIGTERM and SIGINT close what is open and end with 0.\n\
    Exit codes: 0 ended as told, 2 usage or configuration, 4 the record or the topic does not fit, 75 a service is away.")]
struct Args {
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    #[arg(long, env = "LASTCALL_LEDGER", value_name = "DIR")]
    ledger: PathBuf,
    /// Kafka's brokers.
    #[arg(short, long, env = "LASTCALL_BROKERS", value_name = "HOST:PORT,…")]
    brokers: String,
    /// A source to record, which is a topic; may be repeated. Default: every topic that the ledger has as a source.
    #[arg(long = "source", value_name = "TOPIC")]
    sources: Vec<String>,
    /// The consumer group.
    #[arg(long, default_value = "lastcall-record")]
    group: String,
    /// A name for static membership: a restart within the session keeps its partitions.
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// Where a source begins that nobody has recorded: earliest, latest, or an offset.
    #[arg(long, value_parser = from, value_name = "WHERE")]
    from: Option<From>,
    /// Pass over a range that the topic no longer has, and have the record say so, with this reason.
    #[arg(long, value_name = "WHY")]
    accept_gap: Option<String>,
    /// Any setting of librdkafka; may be repeated.
    #[arg(short = 'X', value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// The file of the key of the ledger's redactions.
    #[arg(long, env = "LASTCALL_REDACTION_KEY", value_name = "FILE")]
    redaction_key: Option<PathBuf>,
    /// End when everything that was there at the start is recorded.
    #[arg(long)]
    once: bool,
    /// Print the settings of librdkafka, secrets masked, and end.
    #[arg(long)]
    print_config: bool,
    /// Close a chunk after this long.
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    chunk_age: u32,
    /// Memory of all open chunks together.
    #[arg(long, default_value_t = 96, value_name = "MIB", value_parser = clap::value_parser!(u32).range(8..=65536))]
    memory: u32,
    /// Close a chunk after this many records.
    #[arg(long, hide = true)]
    chunk_records: Option<u64>,
    /// Seconds between two looks at the ends of partitions and the control chain.
    #[arg(long, default_value_t = 10, hide = true)]
    look: u64,
    /// Threads that compare; default: one a core, at most four.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Option<u16>,
}

fn from(text: &str) -> Result<From, String> {
    match text {
        "earliest" => Ok(From::Earliest),
        "latest" => Ok(From::Latest),
        _ => text.parse().map(From::Offset).map_err(|_| "earliest, latest, or an offset".to_owned()),
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    match record(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lastcall-record: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    let of_ledger = |error: &LedgerError| match error {
        LedgerError::Altered { .. } | LedgerError::Missing { .. } => 4,
        LedgerError::Store(StoreError::Away { .. } | StoreError::Ambiguous { .. }) => 75,
        _ => 2,
    };
    match error.downcast_ref::<Stop>() {
        Some(Stop::Ledger(error)) => of_ledger(error),
        Some(Stop::Topic(_) | Stop::Record(_) | Stop::Pair(_) | Stop::Thread(_)) => 4,
        Some(Stop::Kafka { .. }) => 75,
        Some(Stop::Usage(_)) => 2,
        None => error.downcast_ref::<LedgerError>().map_or(2, of_ledger),
    }
}

fn record(args: &Args) -> anyhow::Result<()> {
    let settings = Settings::new(&args.brokers, &args.settings)?;
    if args.print_config {
        settings.masked().iter().for_each(|line| println!("{line}"));
        return Ok(());
    }
    let place = Location::of(&args.ledger).map_err(|what| anyhow::anyhow!(what))?;
    let ledger = Ledger::open_at(&place)?;
    let key = match &args.redaction_key {
        None => None,
        Some(path) => {
            let secret = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the redaction key {}", path.display()))?;
            let key = RedactionKey::of(&secret, &ledger.meta().id);
            Some(key.map_err(|what| anyhow::anyhow!("{}: {what}", path.display()))?)
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        // The second one ends at once.
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let options = Options {
        settings,
        group: args.group.clone(),
        instance: args.instance.clone(),
        sources: args.sources.clone(),
        from: args.from,
        accept_gap: args.accept_gap.clone(),
        key,
        once: args.once,
        limits: Limits {
            age_ms: i64::from(args.chunk_age) * 1000,
            records: args.chunk_records.unwrap_or(u64::MAX),
            ..Limits::default()
        },
        budget: args.memory as usize * (1 << 20),
        workers: args.workers.map_or(cores.min(4), usize::from),
        look: Duration::from_secs(args.look),
    };
    let summary = run(&ledger, &options, &stop, |line| eprintln!("lastcall-record: {line}"))?;
    eprintln!("lastcall-record: {}", told(&summary));
    Ok(())
}

fn told(summary: &Summary) -> String {
    let balance = &summary.balance;
    format!(
        "read {}: {} calls, {} dead, {} other, in {} chunks and {} heartbeats; {} appends lost to others, {} rebalances, \
         {} partitions at the end",
        balance.read,
        balance.calls,
        balance.dead,
        balance.other,
        summary.chunks,
        summary.heartbeats,
        summary.lost,
        summary.rebalances,
        summary.partitions,
    )
}
