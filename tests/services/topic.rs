//! What the tests of `lastcall-record` write to a topic, and read from a ledger.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use lastcall_compare::PairConfig;
use lastcall_contract::{Contract, Definition, Pick};
use lastcall_event::Timestamp;
use lastcall_ledger::entry::Balance;
use lastcall_ledger::tally::Sums;
use lastcall_ledger::{Ledger, LedgerClock, system_now};
use lastcall_tests::{Answer, answer, binary, observe};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode;
use serde_json::{Value, json};
use tempfile::TempDir;

use lastcall_tests::services::broker::Broker;

pub const TOPIC: &str = "mirrored-calls";
pub const OLD: &str = r#"{"name":"search","description":"Search.","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"unit":{"type":"string","enum":["c","f","k"]}},"required":["q"]}}"#;
pub const NEW: &str = r#"{"name":"search","description":"Search.","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"unit":{"type":"string","enum":["c","f"]}},"required":["q"]}}"#;
pub const WIDE: &str = r#"{"name":"search","description":"Search.","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"unit":{"type":"string"}},"required":["q"]}}"#;
const SECOND: Duration = Duration::from_secs(1);

/// What a ledger says of a topic, without what may differ between two ledgers of the same records.
#[derive(PartialEq)]
pub struct Recorded {
    /// Every row, sorted.
    pub rows: Vec<String>,
    /// The tallies.
    pub sums: Sums,
    /// The counts.
    pub balance: Balance,
}

/// Reads it all. Within a partition the chunks must join.
pub fn recorded(ledger: &Ledger) -> Recorded {
    let mut recorded = Recorded { rows: Vec::new(), sums: Sums::default(), balance: Balance::default() };
    for partition in ledger.partitions().unwrap() {
        let mut next = None;
        for (seq, chunk) in partition.chunks() {
            assert!(next.is_none_or(|next| chunk.range.follows(next)), "chunk {seq} does not join");
            next = Some(chunk.range.next);
            assert!(chunk.balance.holds(), "chunk {seq}");
            recorded.balance.add(&chunk.balance);
            recorded.sums.add(chunk);
            let rows = &mut recorded.rows;
            ledger
                .for_each_result(chunk, |mut row| {
                    row.commitment = [0; 32];
                    rows.push(format!("{row:?}"));
                })
                .unwrap();
            ledger
                .for_each_call(chunk, |mut row| {
                    row.salt = [0; 16];
                    rows.push(format!("{row:?}"));
                })
                .unwrap();
            ledger
                .for_each_dead(chunk, |mut row| {
                    row.received = None;
                    rows.push(format!("{row:?}"));
                })
                .unwrap();
        }
    }
    recorded.rows.sort();
    recorded
}

/// A version of the tool.
pub fn contract(text: &str, version: u32) -> Contract {
    let definition = Definition::from_text("definition", text, Pick::default()).unwrap();
    Contract::new(format!("search@{version}"), definition)
}

/// Prepares a ledger: the topic as its source, one pair observed.
pub fn prepare(ledger: &Ledger) {
    ledger
        .append_control(lastcall_ledger::control::Control::Source {
            name: TOPIC.to_owned(),
            role: lastcall_ledger::control::Role::ToolCalls,
            source_kind: lastcall_ledger::control::SourceKind::Topic,
            preset: lastcall_event::Preset::default(),
            lateness_ms: 3_600_000,
            map: None,
        })
        .unwrap();
    observe(ledger, &contract(OLD, 1), &contract(NEW, 2), &PairConfig::default());
}

/// A call, made now.
pub fn call(number: usize) -> Value {
    call_at(number, system_now())
}

/// A call that says when it was made.
pub fn call_at(number: usize, ts: Timestamp) -> Value {
    json!({
        "type": "tool_call", "schema_version": 1, "call_id": format!("call-{number}"),
        "ts": ts, "tool_id": "search", "contract_id": "search@1",
        "arguments": {"q": "x", "unit": if number.is_multiple_of(13) { "k" } else { "c" }},
        "outcome": {"status": "ok"},
        "envelope": {"agent_id": format!("agent-{}", number % 3), "session_id": format!("s{}", number / 4)}
    })
}

/// A producer.
pub fn producer(broker: &Broker) -> ThreadedProducer<DefaultProducerContext> {
    ClientConfig::new()
        .set("bootstrap.servers", &broker.address)
        .set("enable.idempotence", "true")
        .set("message.max.bytes", "20000000")
        .create()
        .unwrap()
}

/// Writes values into one partition.
pub fn send(broker: &Broker, partition: i32, values: impl IntoIterator<Item = String>) {
    let producer = producer(broker);
    for value in values {
        put(&producer, partition, &value);
    }
    producer.flush(Duration::from_secs(60)).unwrap();
}

fn put(producer: &ThreadedProducer<DefaultProducerContext>, partition: i32, value: &str) {
    let record = BaseRecord::<(), str>::to(TOPIC).payload(value).partition(partition);
    let mut sent = producer.send(record);
    while let Err((error, record)) = sent {
        assert_eq!(error.rdkafka_error_code(), Some(RDKafkaErrorCode::QueueFull));
        std::thread::sleep(Duration::from_millis(20));
        sent = producer.send(record);
    }
}

/// Writes `count` records, one in a hundred broken; partitions by turns.
pub fn produce(broker: &Broker, from: usize, count: usize, partitions: i32) {
    let producer = producer(broker);
    for number in from..from + count {
        let mut text = call(number).to_string();
        if number % 100 == 99 {
            text.truncate(40);
        }
        put(&producer, i32::try_from(number).unwrap() % partitions, &text);
    }
    producer.flush(Duration::from_secs(60)).unwrap();
}

/// `lastcall-record`, with a session that is short enough for a test.
pub fn record(broker: &Broker, ledger: &str, args: &[&str]) -> Command {
    let mut command = Command::new(binary().with_file_name("lastcall-record"));
    command.args(["--ledger", ledger, "--brokers", &broker.address, "--from", "earliest", "--look", "1"]);
    command.args(["-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=500"]);
    command.args(args).env_remove("LASTCALL_LEDGER").env_remove("LASTCALL_BROKERS");
    command
}

pub fn once(broker: &Broker, ledger: &str, args: &[&str]) -> Answer {
    answer(record(broker, ledger, args).args(["--once", "--chunk-records", "500"]))
}

pub fn on_disk(folder: &TempDir, name: &str) -> (Ledger, String) {
    let path = folder.path().join(name);
    let ledger = Ledger::init(&path, LedgerClock::System).unwrap();
    prepare(&ledger);
    (ledger, path.to_str().unwrap().to_owned())
}

/// The ledger is intact.
pub fn intact(path: &str) {
    let said = lastcall_tests::run(&["ledger", "verify", path]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

/// Every entry of every chain.
pub fn chains(ledger: &Ledger) -> Vec<String> {
    let paths = ledger.store().list("chains").unwrap();
    let text =
        |path: &String| String::from_utf8(ledger.store().get(path).unwrap().unwrap().to_vec()).unwrap();
    paths.iter().map(text).collect()
}

/// A recorder that is running; it ends with the test.
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub fn start(command: &mut Command, folder: &Path, name: &str) -> Self {
        let log = folder.join(format!("{name}.log"));
        let child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        Self { child, log }
    }

    /// What it has said.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(done.unwrap().success());
    }

    /// Waits for its end: exit code, and what it said.
    pub fn ends(mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < 60 * SECOND, "it does not end: {}", self.said());
            std::thread::sleep(SECOND / 20);
        };
        (status.code(), self.said())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < 90 * SECOND, "never: {what}");
        std::thread::sleep(SECOND / 5);
    }
}
