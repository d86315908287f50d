//! The interceptor of `examples/interceptor` before a real broker that goes away: no call waits for it, what is held has a
//! limit, and every call that was made is a record or stands in the count of a loss.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lastcall_event::{Preset, Record, decode};
use lastcall_tests::services::broker::Broker;
use lastcall_tests::services::python::{Environment, environment};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use serde_json::Value;

/// Python with the client that the interceptor needs.
pub const PYTHON: Environment =
    Environment { name: "confluent-kafka-2.16.1", packages: &["confluent-kafka==2.16.1"] };
const TOPIC: &str = "tool-calls";
const PARTITIONS: i32 = 3;
const SECOND: Duration = Duration::from_secs(1);

/// Every message of a topic, with its partition.
pub fn messages(broker: &Broker, topic: &str, partitions: i32) -> Vec<(i32, Vec<u8>)> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &broker.address)
        .set("group.id", "nobody")
        .set("enable.auto.commit", "false")
        .create()
        .unwrap();
    let mut wanted = 0;
    let mut assigned = TopicPartitionList::new();
    for partition in 0..partitions {
        let (low, high) = consumer.fetch_watermarks(topic, partition, 10 * SECOND).unwrap();
        wanted += usize::try_from(high - low).unwrap();
        assigned.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&assigned).unwrap();
    let (begun, mut found) = (Instant::now(), Vec::new());
    while found.len() < wanted {
        assert!(begun.elapsed() < 120 * SECOND, "{} of {wanted} messages of {topic}", found.len());
        if let Some(message) = consumer.poll(SECOND / 10) {
            let message = message.unwrap();
            found.push((message.partition(), message.payload().unwrap_or_default().to_vec()));
        }
    }
    found
}

/// What producers left in a topic.
#[derive(Default)]
pub struct Produced {
    /// Calls by id.
    pub calls: BTreeSet<String>,
    /// Calls by tool.
    pub by_tool: BTreeMap<String, u64>,
    /// Losses by tool.
    pub lost: BTreeMap<String, u64>,
    /// Every call, as it was written.
    pub rows: Vec<Value>,
}

impl Produced {
    /// Reads a topic: every message is a record of Lastcall's own, no call stands twice, no session in two partitions.
    pub fn of(broker: &Broker, topic: &str, partitions: i32) -> Self {
        let mut produced = Self::default();
        let mut places = BTreeMap::new();
        for (partition, bytes) in messages(broker, topic, partitions) {
            let decoded = decode(&bytes, Preset::Native).unwrap();
            assert_eq!(decoded.unknown_fields, 0, "{}", String::from_utf8_lossy(&bytes));
            match decoded.record {
                Record::Call(call) => {
                    if let Some(session) = &call.envelope.session_id {
                        let place = *places.entry(session.to_string()).or_insert(partition);
                        assert_eq!(place, partition, "session {} in two partitions", session.0);
                    }
                    assert!(produced.calls.insert(call.call_id.to_string()), "call {} twice", call.call_id.0);
                    *produced.by_tool.entry(call.tool_id.to_string()).or_default() += 1;
                    produced.rows.push(serde_json::from_slice(&bytes).unwrap());
                }
                Record::Loss(loss) => {
                    assert!(loss.interval.from <= loss.interval.to);
                    assert_eq!(loss.interval.from.day(), loss.interval.to.day(), "it counts on one day");
                    let tool = loss.tool_id.as_deref().unwrap_or_default().to_owned();
                    *produced.lost.entry(tool).or_default() += loss.count;
                }
                other => panic!("{other:?}"),
            }
        }
        produced
    }

    /// Calls that the losses count.
    pub fn losses(&self) -> u64 {
        self.lost.values().sum()
    }
}

#[test]
fn its_own_tests_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/interceptor");
    let done = Command::new("python3")
        .args(["-B", "-m", "unittest", "discover", "-s", "tests", "-t", "."])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A broker that freezes, dies and comes back under load; a child that is forked meanwhile.
#[test]
fn a_broker_that_goes_away_holds_up_no_call_and_every_loss_is_counted() {
    let Some(python) = environment(PYTHON, "the interceptor is not run against a broker") else { return };
    let Some(mut broker) = Broker::start() else { return };
    broker.topic(TOPIC, PARTITIONS, &[]);
    let away = if std::env::var("LASTCALL_PROVE").is_ok() { 60 * SECOND } else { 10 * SECOND };

    let mut load = Command::new(python)
        .args(["-B", "-m", "tests.load", &broker.address, TOPIC])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/interceptor"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = load.stdin.take().unwrap();
    let mut output = BufReader::new(load.stdout.take().unwrap()).lines();
    let mut say = |line: &str| {
        writeln!(input, "{line}").unwrap();
        output.next().expect("it answers").unwrap()
    };
    sleep(4 * SECOND);
    say("phase away");
    broker.signal("STOP");
    sleep(away / 2);
    if broker.kill() {
        say("fork");
        sleep(away / 2);
        broker.kill_and_restart();
    }
    say("phase after");
    sleep(4 * SECOND);
    say("stop");
    let told: Value = serde_json::from_str(&say("close")).unwrap();
    assert!(load.wait().unwrap().success());

    let number = |name: &str| told[name].as_u64().unwrap_or_else(|| panic!("{name}: {told}"));
    println!("without, with, in ms; p50: {}", told["p50_ms"]);
    println!("without, with, in ms; p99.9: {}", told["p999_ms"]);
    let produced = Produced::of(&broker, TOPIC, PARTITIONS);
    println!(
        "{} s away: {} calls made, {} records, {} lost by their count; held at most {} records, {} of {} bytes; peak MiB {}",
        away.as_secs(),
        number("made"),
        produced.calls.len(),
        produced.losses(),
        number("peak_held"),
        number("peak_bytes"),
        number("limit_bytes"),
        told["resident_mib"],
    );
    assert_eq!(
        number("made"),
        produced.calls.len() as u64 + produced.losses(),
        "made = records + losses: {told}"
    );
    assert!(number("peak_held") <= number("limit_records") && number("peak_bytes") <= number("limit_bytes"));
    assert_eq!((told["closed"].as_bool(), number("closed_children")), (Some(true), number("children")));
    assert_eq!(number("taken"), number("delivered"), "what the queue took was written");
    if std::env::var("LASTCALL_TEST_BROKERS").is_err() {
        // Calls went on long after there was no room: none of them can have waited for it.
        assert_eq!(number("peak_held"), number("limit_records"));
        assert!(told["served"]["away"].as_u64().unwrap() > 2 * number("limit_records"), "{told}");
        assert!(produced.losses() > 0 && produced.lost.len() == 2, "{:?}", produced.lost);
        assert_eq!(told["lost"].as_object().unwrap().keys().collect::<Vec<_>>(), ["no_room"]);
    }
}
