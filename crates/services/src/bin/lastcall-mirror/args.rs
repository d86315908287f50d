//! The command line and the file of `--config`: flag over environment over file over default.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Parser;
use lastcall_event::Preset;
use lastcall_event::source::{Decoder, Map};
use lastcall_services::kafka::{From, Settings};
use lastcall_services::mirror::File;
use lastcall_services::process::{self, within};

/// Each production call against the candidates of its tool, with effects suppressed: one row a call, in order.
#[derive(Parser)]
#[command(name = "lastcall-mirror", version)]
#[command(after_help = "Examples:\n  \
    lastcall-mirror --config mirror.toml --registry agent-tools --dry-run\n  \
    lastcall-mirror --config mirror.toml --registry agent-tools --probe --from latest\n  \
    lastcall-mirror --config mirror.toml --registry agent-tools --from latest\n  \
    lastcall-mirror --config mirror.toml -b kafka:9093 -X security.protocol=SSL -X ssl.ca.location=ca.pem\n\n\
    The file names topics, tools and candidates; pipelines/mirror.toml is one. Its tables `defaults` and `tools` are looked\n\
    at again while it runs. The output says where mirroring goes on; the group's offsets are written for lag tools and never\n\
    read. Several may run in one group. SIGTERM and SIGINT finish what is under way and end with 0; a second one ends at once\n\
    with 130.\n\
    Exit codes: 0 ended as told, 2 usage or configuration, 4 the topics do not fit, 75 a service is away.")]
pub struct Args {
    /// The file with topics, tools, candidates; a flag or a variable wins over it.
    #[arg(long, env = "LASTCALL_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The registry's folder: contracts, and what their tools do to the world.
    #[arg(long, env = "LASTCALL_REGISTRY", value_name = "DIR")]
    pub registry: Option<PathBuf>,
    /// Kafka's brokers.
    #[arg(short, long, env = "LASTCALL_BROKERS", value_name = "HOST:PORT,…")]
    pub brokers: Option<String>,
    /// Any setting of librdkafka; may be repeated.
    #[arg(short = 'X', value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// The consumer group [lastcall-mirror].
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// A name for static membership: a restart within the session keeps its partitions.
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
    /// Where a first deployment begins: earliest, latest, or an offset. Later starts go on where the output ends.
    #[arg(long, value_parser = process::from, value_name = "WHERE")]
    pub from: Option<From>,
    /// Where /health/live, /health/ready, /metrics and /state answer [127.0.0.1:9465; none with --once].
    #[arg(long, value_name = "HOST:PORT", value_parser = process::place)]
    pub listen: Option<SocketAddr>,
    /// End when everything that was there at the start is mirrored and acknowledged.
    #[arg(long)]
    pub once: bool,
    /// Say what would be done with the calls of each tool, and end.
    #[arg(long)]
    pub dry_run: bool,
    /// Ask for everything that a start needs, and end.
    #[arg(long, conflicts_with_all = ["dry_run", "once"])]
    pub probe: bool,
    /// Print the settings of librdkafka, secrets masked, and end.
    #[arg(long)]
    pub print_config: bool,
    /// Memory of what waits, is under way or is not acknowledged, together [64].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(8..=65536))]
    pub memory: Option<u32>,
    /// An idle partition says this often at most how far it is mirrored [60].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86400))]
    pub heartbeat: Option<u32>,
    /// The ledger is a simulated one: clock records move time. Without it they are copied and move nothing.
    #[arg(long)]
    pub simulated: bool,
    /// Seconds between two looks at the ends of partitions.
    #[arg(long, default_value_t = 10, hide = true)]
    pub look: u64,
}

/// The command line with what the file says.
pub struct Given {
    /// The command line.
    pub args: Args,
    /// The file.
    pub file: File,
    /// Its place and text.
    pub place: (PathBuf, String),
}

impl Args {
    /// Takes from the file what neither a flag nor a variable says. Paths in it are relative to where it is started, as those
    /// of flags are.
    ///
    /// # Errors
    /// There is none, or it says something that no setting is.
    pub fn with_file(mut self) -> anyhow::Result<Given> {
        let Some(path) = self.config.clone() else {
            bail!(
                "name the file with topics, tools and candidates: --config FILE or LASTCALL_CONFIG; \
                 pipelines/mirror.toml is one"
            )
        };
        let (file, text) = File::read(&path)?;
        self.registry = self.registry.or_else(|| file.registry.clone());
        self.brokers = self.brokers.or_else(|| file.brokers.clone());
        self.group = self.group.or_else(|| file.group.clone());
        self.instance = self.instance.or_else(|| file.instance.clone());
        // A short run beside a mirror with the same file takes no place from it.
        if let (None, Some(text), false) = (self.listen, &file.listen, self.once) {
            let found = process::place(text)
                .map_err(|what| anyhow::anyhow!("{}: `listen`: {what}", path.display()))?;
            self.listen = Some(found);
        }
        self.memory = within(self.memory.or(file.memory), "memory", 8..=65536, &path)?;
        self.heartbeat = within(self.heartbeat.or(file.heartbeat), "heartbeat", 1..=86400, &path)?;
        self.simulated |= file.simulated == Some(true);
        let mut settings = file.librdkafka();
        settings.append(&mut self.settings); // the later one wins
        self.settings = settings;
        Ok(Given { args: self, file, place: (path, text) })
    }
}

impl Given {
    /// The registry's folder.
    ///
    /// # Errors
    /// None is named.
    pub fn registry(&self) -> anyhow::Result<&Path> {
        match &self.args.registry {
            Some(registry) => Ok(registry),
            None => bail!(
                "name the registry: --registry DIR, LASTCALL_REGISTRY, or `registry` in the file of --config"
            ),
        }
    }

    /// How the brokers are spoken to.
    ///
    /// # Errors
    /// None are named, or a setting is refused.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let Some(brokers) = &self.args.brokers else {
            bail!(
                "name Kafka's brokers: --brokers HOST:PORT, LASTCALL_BROKERS, or `brokers` in the file of --config"
            )
        };
        Ok(Settings::new(brokers, &self.args.settings)?)
    }

    /// The topics that are read and written.
    ///
    /// # Errors
    /// They are one.
    pub fn topics(&self) -> anyhow::Result<(String, String)> {
        let or = |name: &Option<String>, default: &str| name.clone().unwrap_or_else(|| default.to_owned());
        let (from, to) = (or(&self.file.from, "tool-calls"), or(&self.file.to, "mirrored-calls"));
        if from == to {
            bail!("{}: `from` and `to` are the same topic, {from}", self.place.0.display());
        }
        Ok((from, to))
    }

    /// How the upstream topic is read: its preset, and the decoder of one that goes through a map.
    ///
    /// # Errors
    /// The preset has no outcome, or the map cannot be read.
    pub fn reading(&self) -> anyhow::Result<(Preset, Option<Decoder>)> {
        let preset =
            self.file.preset.unwrap_or(if self.file.map.is_some() { Preset::Map } else { Preset::Native });
        if preset == Preset::Provider {
            bail!(
                "{}: a provider's line has no outcome, and cannot be mirrored; `lastcall try` reads it",
                self.place.0.display()
            );
        }
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read the map {}", path.display()))
        };
        let given = self.file.map.as_ref().map(read).transpose()?;
        let text = lastcall_record::map_text(preset, given.as_deref())
            .with_context(|| self.place.0.display().to_string())?;
        let map = text.map(|text| Map::parse(&text)).transpose()?;
        Ok((preset, map.map(Decoder::new)))
    }

    /// The contracts that stand as candidates.
    pub fn candidates(&self) -> BTreeSet<String> {
        self.file.candidates()
    }
}
