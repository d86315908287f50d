//! What the tests of `lastcall-mirror` share: a registry, a configuration, topics, and what stands in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use lastcall_event::Timestamp;
use lastcall_ledger::{Ledger, system_now};
use lastcall_tests::services::broker::Broker;
use lastcall_tests::{Answer, answer, binary, lastcall};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::producer::{BaseRecord, Producer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::topic::producer;

pub const UPSTREAM: &str = "tool-calls";
pub const OUTPUT: &str = "mirrored-calls";
const SECOND: Duration = Duration::from_secs(1);
/// A broker stamps a message before it appends it: on a busy machine some time before. Milliseconds.
const STAMPED: i64 = 3_000;

const OLD: &str = r#"{"name":"NAME","description":"Does.","inputSchema":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}}"#;
const NEW: &str = r#"{"name":"NAME","description":"Does.","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"limit":{"type":"integer"}},"required":["q"]}}"#;

/// A folder with a registry of three tools: `search` reads, `book` writes, `mail` sends; each has versions 1 and 2.
pub struct World {
    pub folder: TempDir,
}

impl World {
    pub fn new() -> Self {
        let world = Self { folder: TempDir::new().unwrap() };
        for (tool, effect) in [("search", "read"), ("book", "write"), ("mail", "send")] {
            for (version, text) in [("1", OLD), ("2", NEW)] {
                world.write("definition.json", &text.replace("NAME", tool));
                world.ok(&[
                    "contract",
                    "add",
                    "definition.json",
                    "--tool-id",
                    tool,
                    "--version",
                    version,
                    "--side-effect",
                    effect,
                    "--risk",
                    "low",
                    "--registry",
                    "tools",
                ]);
            }
        }
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// `lastcall`, in the folder.
    pub fn run(&self, args: &[&str]) -> Answer {
        answer(lastcall().args(args).current_dir(self.folder.path()).env("LASTCALL_LEDGER", "led"))
    }

    pub fn ok(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}{}", said.out, said.err);
        said.out
    }

    /// A ledger that reads the output topic, with `search` observed.
    pub fn ledger(&self, clock: &str, lateness: &str) -> Ledger {
        self.ok(&["ledger", "init", "led", "--clock", clock]);
        let topic = ["--kind", "topic", "--role", "mirrored-calls", "--lateness", lateness];
        self.ok(&[&["ledger", "source", "led", OUTPUT], &topic[..]].concat());
        self.ok(&["plan", "observe", "search@1", "search@2", "--registry", "tools"]);
        Ledger::open(&self.path("led")).unwrap()
    }

    /// Writes a configuration: the service's keys stand above `rest`.
    pub fn config(&self, name: &str, broker: &Broker, rest: &str) {
        let text = format!(
            "brokers = {:?}\nregistry = {:?}\nsimulated = true\n{rest}\n",
            broker.address,
            self.path("tools").to_str().unwrap()
        );
        self.write(name, &text);
    }

    /// `search` behind a URL, nothing else.
    pub fn searching(&self, name: &str, broker: &Broker, url: &str, defaults: &str) {
        let rest = format!(
            "[defaults]\n{defaults}\n[tools.search]\ncandidates = [{{contract = \"search@2\", suppression = \"replica\", \
             http = \"{url}\"}}]"
        );
        self.config(name, broker, &rest);
    }

    /// `lastcall-mirror`, with a session that is short enough for a test.
    pub fn mirror(&self, config: &str, args: &[&str]) -> Command {
        let mut command = Command::new(binary().with_file_name("lastcall-mirror"));
        command.arg("--config").arg(self.path(config)).args(["--look", "1"]);
        command.args(["-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=500"]).args(args);
        for name in ["LASTCALL_CONFIG", "LASTCALL_REGISTRY", "LASTCALL_BROKERS"] {
            command.env_remove(name);
        }
        command
    }

    pub fn once(&self, config: &str, args: &[&str]) -> Answer {
        answer(self.mirror(config, &["--once", "--from", "earliest"]).args(args))
    }

    pub fn start(&self, config: &str, args: &[&str], name: &str) -> Running {
        let common = ["--from", "earliest", "--listen", "127.0.0.1:0"];
        Running::start(self.mirror(config, &common).args(args), self.folder.path(), name)
    }

    /// `lastcall-record --once` into the ledger.
    pub fn record(&self, broker: &Broker) {
        let mut command = Command::new(binary().with_file_name("lastcall-record"));
        command.arg("--ledger").arg(self.path("led")).args(["--brokers", &broker.address, "--once"]);
        let said = answer(command.args(["--from", "earliest", "--look", "1"]));
        assert_eq!(said.code, 0, "{}", said.err);
    }
}

/// A process that runs beside the test.
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub fn start(command: &mut Command, folder: &Path, name: &str) -> Self {
        let log = folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let child = command.stderr(file).spawn().unwrap();
        Self { child, log }
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(done.unwrap().success());
    }

    /// kill -9; it must not have ended by itself.
    pub fn kill(mut self) {
        assert!(self.child.try_wait().unwrap().is_none(), "it ended by itself: {}", self.said());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn ends(mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < 90 * SECOND, "it does not end: {}", self.said());
            std::thread::sleep(SECOND / 20);
        };
        (status.code(), self.said())
    }

    /// Where health and metrics answer, once they do.
    pub fn address(&self) -> String {
        let begun = Instant::now();
        loop {
            let said = self.said();
            if let Some(at) = said.find("http://") {
                return said[at + 7..].split('/').next().unwrap().to_owned();
            }
            assert!(begun.elapsed() < 60 * SECOND, "{said}");
            std::thread::sleep(SECOND / 20);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < 120 * SECOND, "never: {what}");
        std::thread::sleep(SECOND / 20);
    }
}

pub fn topics(broker: &Broker, partitions: i32) {
    broker.topic(UPSTREAM, partitions, &[("message.timestamp.type", "LogAppendTime")]);
    broker.topic(OUTPUT, partitions, &[]);
}

/// A call of `search`, made now.
pub fn call(number: usize) -> Value {
    call_at(number, system_now(), "search")
}

pub fn call_at(number: usize, ts: Timestamp, tool: &str) -> Value {
    json!({
        "type": "tool_call", "schema_version": 1, "call_id": format!("call-{number}"),
        "ts": ts, "tool_id": tool, "contract_id": format!("{tool}@1"),
        "arguments": {"q": format!("q{number}")},
        "outcome": {"status": "ok", "result": {"found": number}},
        "envelope": {"agent_id": format!("agent-{}", number % 3), "session_id": format!("s{}", number / 4)}
    })
}

pub fn clock(ts: Timestamp) -> Value {
    json!({"type": "clock", "schema_version": 1, "ts": ts})
}

/// The number of the call that a candidate is asked about.
pub fn number(body: &Value) -> u64 {
    let text = body["call_id"].as_str().unwrap_or_default();
    text.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or_default()
}

/// Writes values to a topic, and waits for the broker.
pub fn put<'a>(broker: &Broker, topic: &str, values: impl IntoIterator<Item = (i32, &'a [u8])>) {
    let producer = producer(broker);
    for (partition, value) in values {
        let record = BaseRecord::<(), [u8]>::to(topic).payload(value).partition(partition);
        let mut sent = producer.send(record);
        while let Err((_, record)) = sent {
            std::thread::sleep(SECOND / 50);
            sent = producer.send(record);
        }
    }
    producer.flush(60 * SECOND).unwrap();
}

/// Calls, to partitions by turns.
pub fn feed(broker: &Broker, from: usize, count: usize, partitions: i32) {
    let values: Vec<(i32, Vec<u8>)> = (from..from + count)
        .map(|n| (i32::try_from(n).unwrap() % partitions, call(n).to_string().into_bytes()))
        .collect();
    put(broker, UPSTREAM, values.iter().map(|(partition, value)| (*partition, value.as_slice())));
}

/// A message as it stands in a topic.
pub struct Stands {
    pub offset: i64,
    pub time: Option<i64>,
    pub value: Vec<u8>,
    pub json: Option<Value>,
    pub mark: Option<String>,
}

/// Everything that stands in a topic, by partition, in order; of transactions what was committed.
pub fn stands(broker: &Broker, topic: &str) -> Vec<Vec<Stands>> {
    let partitions = i32::try_from(broker.partitions(topic)).unwrap();
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &broker.address)
        .set("group.id", "oracle")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("isolation.level", "read_committed")
        .create()
        .unwrap();
    let mut all = TopicPartitionList::new();
    for partition in 0..partitions {
        all.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&all).unwrap();
    let mut out: Vec<Vec<Stands>> = (0..partitions).map(|_| Vec::new()).collect();
    let mut ends = BTreeSet::new();
    let begun = Instant::now();
    while ends.len() < out.len() {
        assert!(begun.elapsed() < 120 * SECOND, "topic {topic} cannot be read to its end");
        match consumer.poll(SECOND) {
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                ends.insert(partition);
            }
            Some(Ok(message)) => {
                let value = message.payload().unwrap_or_default().to_vec();
                let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
                let mark = headers.filter(|h| h.key == "lastcall-upstream").last().and_then(|h| h.value);
                out[message.partition() as usize].push(Stands {
                    offset: message.offset(),
                    time: message.timestamp().to_millis(),
                    json: serde_json::from_slice(&value).ok(),
                    value,
                    mark: mark.map(|mark| String::from_utf8_lossy(mark).into_owned()),
                });
            }
            _ => {}
        }
    }
    out
}

/// Whether a record is a call, and its id.
pub fn id(stands: &Stands) -> Option<&str> {
    let json = stands.json.as_ref()?;
    let kind = json["type"].as_str()?;
    matches!(kind, "tool_call" | "mirrored_call").then(|| json["call_id"].as_str())?
}

/// What the output says of its upstream, held against the upstream, without any code of the product: rows join and state no
/// position twice over, stand in the upstream's order, none is missing, and no message says that the upstream is complete through a
/// moment before everything that was there by then has its row. Answers how many rows there are more than calls.
pub fn honest(broker: &Broker) -> usize {
    let (upstream, output) = (stands(broker, UPSTREAM), stands(broker, OUTPUT));
    let mut more = 0;
    assert_eq!(upstream.len(), output.len());
    for (partition, (there, here)) in upstream.iter().zip(&output).enumerate() {
        let mut wanted: BTreeMap<&str, &Stands> = there.iter().filter_map(|s| Some((id(s)?, s))).collect();
        let calls = wanted.len();
        let rows = here.iter().filter(|s| id(s).is_some()).count();
        let mut to = None::<i64>;
        // A system's time is the broker's; a simulated one's is that of the clocks before it.
        let clocks: Vec<(i64, i64)> = there
            .iter()
            .filter(|s| s.json.as_ref().is_some_and(|j| j["type"] == "clock"))
            .map(|s| (millis(&s.json.as_ref().unwrap()["ts"]), s.offset))
            .collect();
        for row in here {
            let Some(json) = &row.json else { continue };
            let through = match json["type"].as_str() {
                Some("clock") => Some(millis(&json["ts"])),
                _ => Some(&json["upstream"]["through"]).filter(|t| t.is_string()).map(millis),
            };
            if let Some(through) = through {
                let early = wanted.values().find(|call| match clocks.iter().find(|(at, _)| *at == through) {
                    Some((_, offset)) => call.offset < *offset,
                    None => call.time.unwrap() + STAMPED < through,
                });
                let ahead = early.map(|call| (id(call), through - call.time.unwrap_or_default()));
                assert!(
                    early.is_none(),
                    "partition {partition}, offset {}: complete through {through}, and a call has no row yet: {ahead:?} ms before \
                     that; the message is {} of {:?} with {:?}",
                    row.offset,
                    json["type"],
                    row.time,
                    row.mark
                );
            }
            if let Some(upstream) = json.get("upstream") {
                let (from, until) = (upstream["from"].as_i64().unwrap(), upstream["to"].as_i64().unwrap());
                assert!(from <= until, "partition {partition}: [{from}, {until})");
                if let Some(to) = to {
                    assert!(from <= to, "partition {partition}: nobody stands for [{to}, {from})");
                }
                to = to.max(Some(until));
            }
            if let Some(id) = id(row) {
                wanted.remove(id);
                assert_eq!(json["type"], "mirrored_call", "{json}");
            }
        }
        assert!(wanted.is_empty(), "partition {partition}: {} calls have no row", wanted.len());
        more += rows - calls;
    }
    more
}

fn millis(value: &Value) -> i64 {
    Timestamp::parse(value.as_str().unwrap()).unwrap().0
}

/// Upstream positions that the ledger misses, over all partitions.
pub fn missing(ledger: &Ledger) -> u64 {
    let partitions = ledger.partitions().unwrap();
    partitions.iter().filter_map(|p| p.progress()?.upstream).map(|upstream| upstream.missing).sum()
}

/// The ids of the calls in the ledger, and how many rows there are.
pub fn ids(ledger: &Ledger) -> (BTreeSet<String>, usize) {
    let (mut ids, mut rows) = (BTreeSet::new(), 0);
    for partition in ledger.partitions().unwrap() {
        for (_, chunk) in partition.chunks() {
            ledger
                .for_each_call(chunk, |row| {
                    rows += 1;
                    ids.insert(row.call_id.clone());
                })
                .unwrap();
        }
    }
    (ids, rows)
}
