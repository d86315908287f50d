//! The file of the configuration, `mirror.toml`, and its changes while the service runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context as _;
use lastcall_event::Preset;
use lastcall_mirror::Settings;
use serde::Deserialize;

use super::lane::Shared;
use crate::process::{self, plain};

/// Between two looks at the file.
const LOOK: Duration = Duration::from_secs(1);

/// What a file says of the service itself. Its tables `defaults` and `tools` are the candidates'.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The registry's folder.
    pub registry: Option<PathBuf>,
    /// Kafka's brokers.
    pub brokers: Option<String>,
    /// The topic that is read.
    pub from: Option<String>,
    /// The topic that is written.
    pub to: Option<String>,
    /// How messages are read.
    pub preset: Option<Preset>,
    /// The file of the map of preset `map`.
    pub map: Option<PathBuf>,
    /// The consumer group.
    pub group: Option<String>,
    /// For static membership.
    pub instance: Option<String>,
    /// Where health and metrics answer.
    pub listen: Option<String>,
    /// MiB of the budget.
    pub memory: Option<u32>,
    /// Seconds.
    pub heartbeat: Option<u32>,
    /// Clock records move time.
    pub simulated: Option<bool>,
    /// Any setting of librdkafka.
    #[serde(default)]
    pub librdkafka: BTreeMap<String, toml::Value>,
    #[serde(default)]
    defaults: Option<toml::Value>,
    #[serde(default)]
    tools: BTreeMap<String, toml::Value>,
}

impl File {
    /// Reads a file; its text, too, from which the candidates' part is read.
    ///
    /// # Errors
    /// It cannot be read, or says something that no setting is.
    pub fn read(path: &Path) -> anyhow::Result<(Self, String)> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok((process::file(&text, path)?, text))
    }

    /// The contracts that stand as candidates.
    pub fn candidates(&self) -> BTreeSet<String> {
        let listed = |tool: &toml::Value| tool.get("candidates").and_then(toml::Value::as_array).cloned();
        let each = self.tools.values().filter_map(listed).flatten();
        each.filter_map(|one| one.get("contract").and_then(toml::Value::as_str).map(str::to_owned)).collect()
    }

    /// The settings of librdkafka as `-X` would have them.
    pub fn librdkafka(&self) -> Vec<String> {
        self.librdkafka.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect()
    }

    /// The same without what may change while the service runs.
    fn fixed(&self) -> Self {
        Self { defaults: None, tools: BTreeMap::new(), ..self.clone() }
    }
}

/// Takes changes of the file over until `stop`. What cannot be taken over leaves everything as it is, and is said.
pub(super) struct Watch<'a> {
    pub path: &'a Path,
    pub shared: Arc<Shared>,
    pub say: fn(&str),
}

impl Watch<'_> {
    /// Says which candidates are left alone since they fail, and which answer again.
    fn circuits(&self, open: &mut BTreeSet<String>) {
        for count in self.shared.mirror.counts() {
            let rerun = if count.rerun { "rerun of " } else { "" };
            let name = format!("{} {rerun}{}", count.tool, count.contract);
            if count.open && !open.contains(&name) {
                let classes = count.by_class.iter().map(|(class, n)| format!("{n} {class}"));
                let classes = classes.collect::<Vec<_>>().join(", ");
                (self.say)(&format!(
                    "{name}: fails again and again ({classes} since the start), so its calls are `unavailable`, and one a \
                     pause is tried"
                ));
                open.insert(name);
            } else if !count.open && open.remove(&name) {
                (self.say)(&format!("{name}: answers again"));
            }
        }
    }

    /// `text`: the file as it was at the start.
    pub fn run(&self, mut text: String, stop: &Receiver<()>) {
        let place = self.path.display().to_string();
        let Ok(first) = process::file::<File>(&text, self.path) else { return };
        let fixed = first.fixed();
        let own = self.shared.telemetry.own();
        let (mut away, mut open) = (0u32, BTreeSet::new());
        while matches!(stop.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout)) {
            self.circuits(&mut open);
            let now = match std::fs::read_to_string(self.path) {
                Ok(now) => now,
                Err(error) => {
                    // Somebody may be writing it: once is no news.
                    away = away.saturating_add(1);
                    if away == 2 {
                        own.refused.set(1);
                        (self.say)(&format!(
                            "{place}: it cannot be read ({error}): no switch in it can be turned; the settings stay as \
                             they were"
                        ));
                    }
                    continue;
                }
            };
            if std::mem::take(&mut away) >= 2 {
                own.refused.set(0);
                (self.say)(&format!("{place}: it can be read again"));
            }
            if now == text {
                continue;
            }
            let answer = process::file::<File>(&now, self.path).and_then(|file| {
                if file.fixed() != fixed {
                    anyhow::bail!(
                        "{place}: something other than `defaults` and `tools` changed; that needs a restart"
                    );
                }
                let settings = Settings::parse(&now, &place)?;
                Ok(self.shared.mirror.update(&settings)?)
            });
            text = now;
            match answer {
                Ok(()) => {
                    own.reloads.inc();
                    own.refused.set(0);
                    (self.say)(&format!("{place}: taken over"));
                }
                Err(error) => {
                    own.refused.set(1);
                    (self.say)(&format!(
                        "{error:#}\n{place}: not taken over; the settings stay as they were"
                    ));
                }
            }
        }
    }
}
