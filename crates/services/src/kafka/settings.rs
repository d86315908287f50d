//! librdkafka's settings: ours, then the user's, then those that nobody may change.

use std::collections::BTreeMap;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;

/// Settings that the record rests on. Changing one would lose or repeat records unseen.
const FIXED: [(&str, &str, &str); 7] = [
    ("enable.auto.commit", "false", "the ledger says where reading goes on"),
    ("enable.auto.offset.store", "false", "the ledger says where reading goes on"),
    ("auto.offset.reset", "error", "a position outside the topic is never passed over in silence"),
    ("isolation.level", "read_committed", "records of aborted transactions were never written"),
    ("enable.partition.eof", "true", "a day closes when its partition was read to the end"),
    ("partition.assignment.strategy", "cooperative-sticky", "partitions are given and taken one by one"),
    ("group.protocol", "classic", "assignments are looked at before they are taken"),
];

/// Named by flags of their own.
const OTHERWISE: [(&str, &str); 4] = [
    ("bootstrap.servers", "--brokers"),
    ("metadata.broker.list", "--brokers"),
    ("group.id", "--group"),
    ("group.instance.id", "--instance"),
];

/// What is good for reading events of some kilobytes on one thread; a user may change it.
const DEFAULTS: [(&str, &str); 10] = [
    ("client.id", "lastcall"),
    // A partition that is added is found within half a minute.
    ("topic.metadata.refresh.interval.ms", "30000"),
    // The default of 1,000 ms stalls a fast reader each time that the queue was full.
    ("fetch.queue.backoff.ms", "5"),
    ("fetch.wait.max.ms", "100"),
    ("fetch.min.bytes", "65536"),
    // Prefetch times partitions would eat gigabytes on a backlog.
    ("queued.min.messages", "20000"),
    ("queued.max.messages.kbytes", "32768"),
    ("fetch.message.max.bytes", "1048576"),
    (SESSION, "45000"),
    ("socket.keepalive.enable", "true"),
];

const SESSION: &str = "session.timeout.ms";

/// A name with one of these may stand for something that must not be shown.
const SECRET: [&str; 8] =
    ["pass", "secret", "token", "key", "oauthbearer", "assertion", "credential", "jaas"];

/// What an error of Kafka's client says, without the value of a setting: it may be a password.
pub fn said(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, what, key, _) => {
            // The library's text may end with the value.
            let what =
                what.split(&format!("\"{key}\"")).next().unwrap_or_default().trim_end_matches([' ', ':']);
            format!("the setting {key} is refused: {what}")
        }
        other => other.to_string(),
    }
}

/// Why settings were refused.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// `-X` without `=`. What was given is not repeated: it may hold a password.
    #[error("-X: a setting is KEY=VALUE, for example -X security.protocol=SSL")]
    NoValue,
    /// Brokers that are none.
    #[error("--brokers {0}: brokers are HOST:PORT, separated by commas")]
    Brokers(String),
    /// One that the record rests on.
    #[error("-X {key}: it is always {value} here, since {why}")]
    Fixed {
        /// The setting.
        key: String,
        /// What it is.
        value: &'static str,
        /// Why.
        why: &'static str,
    },
    /// One that has a flag.
    #[error("-X {key}: give it with {flag}")]
    HasFlag {
        /// The setting.
        key: String,
        /// Its flag.
        flag: &'static str,
    },
}

/// Where the brokers are and how they are spoken to.
#[derive(Clone, Debug)]
pub struct Settings {
    brokers: String,
    user: BTreeMap<String, String>,
}

impl Settings {
    /// Brokers as `HOST:PORT,…`, and the `KEY=VALUE` of each `-X`.
    ///
    /// # Errors
    /// A setting that is none, or that may not be changed.
    pub fn new(brokers: &str, extra: &[String]) -> Result<Self, SettingsError> {
        let fits = |broker: &str| {
            let address = broker.trim().rsplit_once("://").map_or(broker.trim(), |(_, address)| address);
            let host_and_port = address.rsplit_once(':').unwrap_or((address, "9092"));
            let host = host_and_port.0.trim_start_matches('[').trim_end_matches(']');
            let bracketed = address.starts_with('[');
            !host.is_empty() && (bracketed || !host.contains(':')) && host_and_port.1.parse::<u16>().is_ok()
        };
        if !brokers.split(',').all(fits) {
            return Err(SettingsError::Brokers(brokers.to_owned()));
        }
        let mut user = BTreeMap::new();
        for setting in extra {
            let (key, value) = setting.split_once('=').ok_or(SettingsError::NoValue)?;
            let key = key.trim().to_owned();
            if let Some((_, value, why)) = FIXED.iter().find(|(fixed, _, _)| *fixed == key) {
                return Err(SettingsError::Fixed { key, value, why });
            }
            if let Some((_, flag)) = OTHERWISE.iter().find(|(name, _)| *name == key) {
                return Err(SettingsError::HasFlag { key, flag });
            }
            user.insert(key, value.to_owned());
        }
        Ok(Self { brokers: brokers.to_owned(), user })
    }

    /// The brokers.
    pub fn brokers(&self) -> &str {
        &self.brokers
    }

    /// After how many milliseconds without a sign of life the group gives a member's partitions to others.
    pub fn session_ms(&self) -> u64 {
        let ours = DEFAULTS.iter().find(|(key, _)| *key == SESSION).map(|(_, value)| *value);
        let set = self.user.get(SESSION).map(String::as_str).or(ours);
        set.and_then(|value| value.parse().ok()).unwrap_or(45_000)
    }

    /// For a member of a group.
    pub fn consumer(&self, group: &str, instance: Option<&str>) -> ClientConfig {
        let mut config = self.plain();
        config.set("group.id", group);
        if let Some(instance) = instance {
            config.set("group.instance.id", instance);
        }
        for (key, value, _) in FIXED {
            config.set(key, value);
        }
        config
    }

    /// For a client that asks and does not consume.
    pub fn plain(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (key, value) in DEFAULTS {
            config.set(key, value);
        }
        for (key, value) in &self.user {
            config.set(key, value);
        }
        config.set("bootstrap.servers", &self.brokers);
        config
    }

    /// Every setting as `key=value`, what is secret masked.
    pub fn masked(&self) -> Vec<String> {
        let secret = |key: &str| {
            let key = key.to_ascii_lowercase();
            let known =
                DEFAULTS.iter().any(|(ours, _)| *ours == key) || FIXED.iter().any(|(ours, ..)| *ours == key);
            !known && SECRET.iter().any(|word| key.contains(word))
        };
        let mut all: BTreeMap<&str, &str> = DEFAULTS.into_iter().collect();
        all.extend(self.user.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        all.extend(FIXED.iter().map(|(key, value, _)| (*key, *value)));
        all.insert("bootstrap.servers", &self.brokers);
        all.into_iter()
            .map(|(key, value)| format!("{key}={}", if secret(key) { "***" } else { value }))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(setting: &str) -> String {
        Settings::new("b:9092", &[setting.to_owned()])
            .map(|_| String::new())
            .unwrap_or_else(|e| e.to_string())
    }

    #[test]
    fn what_the_record_rests_on_cannot_be_changed() {
        assert!(refused("enable.auto.commit=true").contains("the ledger says where reading goes on"));
        assert!(refused("auto.offset.reset=latest").contains("always error here"));
        assert!(refused("group.id=x").contains("--group"));
        assert!(refused("nonsense").contains("KEY=VALUE"));
        assert_eq!(refused("fetch.wait.max.ms=10"), "");
    }

    #[test]
    fn secrets_are_masked_and_the_users_setting_wins() {
        let extra = ["sasl.password=hunter2", "client.id=mine"].map(str::to_owned);
        let masked = Settings::new("b:9092", &extra).map(|s| s.masked()).unwrap_or_default();
        assert!(
            masked.contains(&"sasl.password=***".to_owned()) && masked.contains(&"client.id=mine".to_owned())
        );
        assert!(!masked.iter().any(|line| line.contains("hunter2")));
    }
}
