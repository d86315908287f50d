//! The command line and the file of `--config`: flag over environment over file over default.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use lastcall_event::Timestamp;
use lastcall_services::kafka::{From, Settings};
use lastcall_services::process::{self, plain, within};
use serde::Deserialize;

/// Trace events from Kafka topics into the ledger: each record exactly once, whatever fails.
#[derive(Parser)]
#[command(name = "lastcall-record", version, args_conflicts_with_subcommands = false)]
#[command(after_help = "Examples:\n  \
    lastcall ledger source ledger mirrored-calls --kind topic --role mirrored-calls\n  \
    lastcall-record --ledger ledger --brokers localhost:9092 --probe\n  \
    lastcall-record --ledger ledger --brokers localhost:9092 --from earliest\n  \
    lastcall-record --config pipelines/kafka.toml\n  \
    lastcall-record --ledger s3://bucket/ledger -b kafka:9093 -X security.protocol=SSL -X ssl.ca.location=ca.pem\n\n\
    The ledger says where reading goes on; the group's offsets are written for lag tools and never read. Several may\n\
    run in one group. SIGTERM and SIGINT close what is open and end with 0; a second one ends at once with 130.\n\
    Exit codes: 0 ended as told, 2 usage or configuration, 4 the record or the topic does not fit, 75 a service is away.")]
pub struct Args {
    /// A file with these settings; a flag or a variable wins over it.
    #[arg(long, env = "LASTCALL_CONFIG", value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    #[arg(long, env = "LASTCALL_LEDGER", value_name = "DIR", global = true)]
    pub ledger: Option<PathBuf>,
    /// Kafka's brokers.
    #[arg(short, long, env = "LASTCALL_BROKERS", value_name = "HOST:PORT,…", global = true)]
    pub brokers: Option<String>,
    /// Any setting of librdkafka; may be repeated.
    #[arg(short = 'X', value_name = "KEY=VALUE", global = true)]
    pub settings: Vec<String>,
    /// A source to record, which is a topic; may be repeated. Default: every topic that the ledger has as a source.
    #[arg(long = "source", value_name = "TOPIC")]
    pub sources: Vec<String>,
    /// The consumer group [lastcall-record].
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// A name for static membership: a restart within the session keeps its partitions.
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
    /// Where a source begins that nobody has recorded: earliest, latest, or an offset.
    #[arg(long, value_parser = process::from, value_name = "WHERE")]
    pub from: Option<From>,
    /// Pass over a range that the topic no longer has, and have the record say so, with this reason.
    #[arg(long, value_name = "WHY")]
    pub accept_gap: Option<String>,
    /// The file of the key of the ledger's redactions.
    #[arg(long, env = "LASTCALL_REDACTION_KEY", value_name = "FILE")]
    pub redaction_key: Option<PathBuf>,
    /// Where /health/live, /health/ready, /metrics and /state answer [127.0.0.1:9464; none with --once].
    #[arg(long, value_name = "HOST:PORT", value_parser = process::place)]
    pub listen: Option<SocketAddr>,
    /// End when everything that was there at the start is recorded.
    #[arg(long)]
    pub once: bool,
    /// Read and compare what is there, say what would be recorded, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Ask for everything that a start needs, and end.
    #[arg(long, conflicts_with_all = ["dry_run", "once"])]
    pub probe: bool,
    /// Print the settings of librdkafka, secrets masked, and end.
    #[arg(long)]
    pub print_config: bool,
    /// Close a chunk after this long [300].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub chunk_age: Option<u32>,
    /// Memory of all open chunks together [96].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(8..=65536))]
    pub memory: Option<u32>,
    /// Close a chunk after this many records.
    #[arg(long, hide = true)]
    pub chunk_records: Option<u64>,
    /// Seconds between two looks at the ends of partitions and the control chain.
    #[arg(long, default_value_t = 10, hide = true)]
    pub look: u64,
    /// Threads that compare; default: one a core, at most four.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: Option<u16>,
    /// Something else than recording.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Something else than recording.
#[derive(Subcommand)]
pub enum Command {
    /// Write calls with a known fault into a topic: they have to come back as disagreements, and never enter D.
    #[command(after_help = "Example: lastcall-record plant search --topic tool-calls --sample call.json \
        --ledger ledger --brokers localhost:9092\n\n\
        --calls has one {\"call\": {…}, \"expect\": {\"category\": …, \"severity\": …}} a line; without `expect` it is a\n\
        synthetic call, of which nothing is expected. Each gets a new call_id, and the ids are committed to the control\n\
        chain before the first is written.")]
    Plant {
        /// The tool; its pair has to be observed.
        tool: String,
        /// The topic: a source of the ledger.
        #[arg(long, value_name = "TOPIC")]
        topic: String,
        /// Which candidate, where several are observed.
        #[arg(long, value_name = "CONTRACT")]
        candidate: Option<String>,
        /// Calls with what is expected of them, JSON Lines.
        #[arg(long, value_name = "FILE", required_unless_present = "sample")]
        calls: Option<PathBuf>,
        /// A call that both contracts accept; faults are made of it by what the pair changes.
        #[arg(long, value_name = "FILE", conflicts_with = "calls")]
        sample: Option<PathBuf>,
        /// The calls' time [now].
        #[arg(long, value_name = "TIME", value_parser = time)]
        at: Option<Timestamp>,
        /// Show the calls and write nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Write dead letters into their topic again, after what made them dead was mended.
    #[command(after_help = "Examples:\n  \
        lastcall-record replay mirrored-calls --dry-run --ledger ledger --brokers localhost:9092\n  \
        lastcall-record replay mirrored-calls --reason missing_field --ledger ledger --brokers localhost:9092\n\n\
        Those that this build cannot read either are left, and so are those of which the record has not every byte.\n\
        Replaying twice is safe: a call counts once, by its call id.")]
    Replay {
        /// The source that they came from.
        source: String,
        /// Those of this reason alone, as `lastcall run` and the metrics name it.
        #[arg(long, value_name = "REASON")]
        reason: Option<String>,
        /// Another topic that is a source [the source itself].
        #[arg(long, value_name = "TOPIC")]
        to: Option<String>,
        /// Those too that this build cannot read.
        #[arg(long)]
        all: bool,
        /// Say what would be replayed and write nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "a time such as 2026-06-01T09:30:00Z".to_owned())
}

/// A file of `--config`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    ledger: Option<PathBuf>,
    brokers: Option<String>,
    #[serde(default)]
    sources: Vec<String>,
    group: Option<String>,
    instance: Option<String>,
    from: Option<toml::Value>,
    redaction_key: Option<PathBuf>,
    listen: Option<String>,
    chunk_age: Option<u32>,
    memory: Option<u32>,
    workers: Option<u16>,
    #[serde(default)]
    librdkafka: BTreeMap<String, toml::Value>,
}

impl Args {
    /// Takes from the file what neither a flag nor a variable says. Paths in it are relative to where it is started, as those
    /// of flags are.
    ///
    /// # Errors
    /// The file cannot be read, or says something that no setting is.
    pub fn with_file(mut self) -> anyhow::Result<Self> {
        let Some(path) = self.config.clone() else { return Ok(self) };
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file: File = process::file(&text, &path)?;
        self.ledger = self.ledger.or(file.ledger);
        self.brokers = self.brokers.or(file.brokers);
        if self.sources.is_empty() {
            self.sources = file.sources;
        }
        self.group = self.group.or(file.group);
        self.instance = self.instance.or(file.instance);
        if let (None, Some(value)) = (self.from, file.from) {
            let said = plain(&value);
            self.from = Some(process::from(&said).map_err(|what| {
                anyhow::anyhow!("{}: `from` is {said}, and has to be {what}", path.display())
            })?);
        }
        self.redaction_key = self.redaction_key.or(file.redaction_key);
        // A short run beside a recorder with the same file takes no place from it.
        let serves = !self.once && !self.dry_run && self.command.is_none();
        if let (None, Some(text), true) = (self.listen, file.listen, serves) {
            let found = process::place(&text)
                .map_err(|what| anyhow::anyhow!("{}: `listen`: {what}", path.display()))?;
            self.listen = Some(found);
        }
        self.chunk_age = within(self.chunk_age.or(file.chunk_age), "chunk_age", 1..=3600, &path)?;
        self.memory = within(self.memory.or(file.memory), "memory", 8..=65536, &path)?;
        let workers = self.workers.or(file.workers).map(u32::from);
        self.workers = within(workers, "workers", 1..=64, &path)?.map(u16::try_from).transpose()?;
        let mut settings: Vec<String> =
            file.librdkafka.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect();
        settings.append(&mut self.settings); // the later one wins
        self.settings = settings;
        Ok(self)
    }

    /// The ledger's place.
    ///
    /// # Errors
    /// None is named.
    pub fn ledger(&self) -> anyhow::Result<&Path> {
        match &self.ledger {
            Some(ledger) => Ok(ledger),
            None => {
                bail!("name the ledger: --ledger DIR, LASTCALL_LEDGER, or `ledger` in the file of --config")
            }
        }
    }

    /// How the brokers are spoken to.
    ///
    /// # Errors
    /// None are named, or a setting is refused.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let Some(brokers) = &self.brokers else {
            bail!(
                "name Kafka's brokers: --brokers HOST:PORT, LASTCALL_BROKERS, or `brokers` in the file of --config"
            )
        };
        Ok(Settings::new(brokers, &self.settings)?)
    }
}
