//! What topics do over the years: transactions, holes, deletion, retention, more partitions, large and empty messages; and
//! what a recorder does that stood still.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lastcall_compare::{PairConfig, Reason};
use lastcall_event::{Day, Timestamp};
use lastcall_ledger::{Ledger, system_now};
use lastcall_tests::observe;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminOptions, NewPartitions};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};
use tempfile::TempDir;

use crate::topic::{
    Running, TOPIC, WIDE, call, call_at, chains, contract, intact, on_disk, once, produce, producer, record,
    recorded, send, until,
};
use lastcall_tests::services::broker::{Broker, wait};

const SECOND: Duration = Duration::from_secs(1);

fn transactional(broker: &Broker, id: &str) -> ThreadedProducer<DefaultProducerContext> {
    let producer: ThreadedProducer<_> = ClientConfig::new()
        .set("bootstrap.servers", &broker.address)
        .set("transactional.id", id)
        .set("transaction.timeout.ms", "60000")
        .create()
        .unwrap();
    producer.init_transactions(10 * SECOND).unwrap();
    producer
}

fn within(producer: &ThreadedProducer<DefaultProducerContext>, partition: i32, values: &[String]) {
    producer.begin_transaction().unwrap();
    for value in values {
        let record = BaseRecord::<(), str>::to(TOPIC).payload(value).partition(partition);
        producer.send(record).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(10 * SECOND).unwrap();
}

fn calls(from: usize, count: usize) -> Vec<String> {
    (from..from + count).map(|number| call(number).to_string()).collect()
}

/// Transactions, tombstones, a message of 10 MB, poison, and partitions that come later: everything that is a record is in the
/// ledger once, and what was aborted never was.
#[test]
fn whatever_a_topic_holds_is_recorded_or_said_to_be_dead() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 2, &[("max.message.bytes", "20000000")]);
    send(&broker, 0, calls(0, 50));
    let transaction = transactional(&broker, "t1");
    within(&transaction, 0, &calls(100, 20));
    transaction.commit_transaction(10 * SECOND).unwrap();
    within(&transaction, 0, &calls(200, 30));
    transaction.abort_transaction(10 * SECOND).unwrap();
    let plain = producer(&broker);
    let tombstone = BaseRecord::<str, str>::to(TOPIC).key("k").partition(0);
    plain.send(tombstone).map_err(|(error, _)| error).unwrap();
    let mut large = call(300);
    large["arguments"]["q"] = "x".repeat(10 << 20).into();
    let large = large.to_string();
    plain.send(BaseRecord::<(), str>::to(TOPIC).payload(&large).partition(0)).map_err(|(e, _)| e).unwrap();
    for poison in [&b"\xff\xfe\x00"[..], b"{", b"[]", b"{\"type\":\"tool_call\"}"] {
        let record = BaseRecord::<(), [u8]>::to(TOPIC).payload(poison).partition(1);
        plain.send(record).map_err(|(error, _)| error).unwrap();
    }
    plain.flush(30 * SECOND).unwrap();
    send(&broker, 1, calls(400, 40));
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    let said = once(&broker, &path, &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let first = recorded(&ledger);
    assert_eq!((first.balance.calls, first.balance.dead, first.balance.blank), (50 + 20 + 1 + 40, 4, 1));
    let aborted: Vec<String> = (200..230).map(|number| format!("call-{number}\"")).collect();
    let found = |row: &String| aborted.iter().any(|id| row.contains(id.as_str()));
    assert!(!first.rows.iter().any(found), "what was aborted never was");
    assert!(first.rows.iter().any(|row| row.contains("call-300") && row.len() > 10 << 20));

    let more = NewPartitions::new(TOPIC, 4);
    wait(broker.admin().create_partitions([&more], &AdminOptions::new())).unwrap();
    let begun = Instant::now();
    while broker.partitions(TOPIC) < 4 {
        assert!(begun.elapsed() < 30 * SECOND);
        std::thread::sleep(SECOND / 10);
    }
    send(&broker, 3, calls(500, 10));
    // An open transaction hides its records, and holds up nothing else; a run to the end waits for it, and says so.
    within(&transaction, 1, &calls(600, 5));
    let waiting =
        Running::start(record(&broker, &path, &["--once"]).args(["--chunk-age", "1"]), folder.path(), "w");
    until("what is committed is recorded", || recorded(&ledger).balance.calls == first.balance.calls + 10);
    intact(&path);
    until("it says what it waits for", || waiting.said().contains("an open transaction"));
    transaction.commit_transaction(10 * SECOND).unwrap();
    assert_eq!(waiting.ends().0, Some(0));
    assert_eq!(recorded(&ledger).balance.calls, first.balance.calls + 15);
    intact(&path);
    println!(
        "recorded: 3 transactions (one aborted), a tombstone, 10 MiB in one message, 4 of poison, 2 more partitions"
    );
}

/// A topic under the same name is another one: by its end, or by its last record.
#[test]
fn a_topic_that_was_made_again_is_refused() {
    let Some(broker) = Broker::start() else { return };
    for (records, said) in [(40, "the topic ends at 40"), (120, "is not the one that was recorded")] {
        broker.topic(TOPIC, 1, &[]);
        send(&broker, 0, calls(0, 100));
        let folder = TempDir::new().unwrap();
        let (ledger, path) = on_disk(&folder, "led");
        assert_eq!(once(&broker, &path, &[]).code, 0);
        let before = recorded(&ledger);
        broker.delete(TOPIC);
        broker.topic(TOPIC, 1, &[]);
        send(&broker, 0, calls(1000, records));
        let again = once(&broker, &path, &[]);
        assert_eq!(again.code, 4, "{}", again.err);
        assert!(again.err.contains(said) && again.err.contains("another source"), "{}", again.err);
        assert!(recorded(&ledger) == before, "nothing was added");
        broker.delete(TOPIC);
    }
}

/// Also where the old topic's last offset is a hole in the new one: a marker of a transaction stands there.
#[test]
fn a_topic_that_was_made_again_is_refused_where_a_marker_stands_at_the_old_end() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 1, &[]);
    send(&broker, 0, calls(0, 5));
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    assert_eq!(once(&broker, &path, &[]).code, 0);
    broker.delete(TOPIC);
    broker.topic(TOPIC, 1, &[]);
    let transaction = transactional(&broker, "t");
    within(&transaction, 0, &calls(100, 4));
    transaction.commit_transaction(10 * SECOND).unwrap();
    send(&broker, 0, calls(200, 6));
    let again = once(&broker, &path, &[]);
    assert_eq!(again.code, 4, "{}", again.err);
    assert!(again.err.contains("the record at offset 4 is not the one"), "{}", again.err);
    assert_eq!(recorded(&ledger).balance.read, 5, "nothing was added");
}

/// A source begins where it is told to in every partition that was there, however many; one that comes later with its first.
#[test]
fn a_source_begins_where_it_is_told_to_in_every_partition() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 20, &[]);
    for partition in 0..20 {
        send(&broker, partition, calls(partition as usize * 5, 5));
    }
    let folder = TempDir::new().unwrap();
    for (name, from, wanted) in [("latest", "latest", 0), ("three", "3", 40)] {
        let (ledger, path) = on_disk(&folder, name);
        let mut command = Command::new(lastcall_tests::binary().with_file_name("lastcall-record"));
        command.args([
            "--ledger",
            &path,
            "--brokers",
            &broker.address,
            "--from",
            from,
            "--once",
            "--look",
            "1",
        ]);
        let said = lastcall_tests::answer(&mut command);
        assert_eq!((said.code, recorded(&ledger).balance.read), (0, wanted), "{}", said.err);
    }
}

/// A message's time that no record can state is none, and a broker that is away does not keep the recorder from ending.
#[test]
fn odd_times_and_a_broker_that_is_away_end_nothing_but_what_they_should() {
    let Some(mut broker) = Broker::start() else { return };
    broker.topic(
        TOPIC,
        6,
        &[("message.timestamp.after.max.ms", "9223372036854775807"), ("retention.ms", "-1")],
    );
    let plain = producer(&broker);
    for (number, time) in [-62_200_000_000_000, 253_402_300_800_000].into_iter().enumerate() {
        let value = call(number).to_string();
        let record = BaseRecord::<(), str>::to(TOPIC).payload(&value).partition(0).timestamp(time);
        plain.send(record).map_err(|(error, _)| error).unwrap();
    }
    plain.flush(10 * SECOND).unwrap();
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    assert_eq!(once(&broker, &path, &[]).code, 0);
    assert_eq!(recorded(&ledger).balance.calls, 2);
    intact(&path);
    let running =
        Running::start(&mut record(&broker, &path, &["--listen", "127.0.0.1:0"]), folder.path(), "r");
    until("it runs", || running.said().contains("http://"));
    std::thread::sleep(8 * SECOND);
    if broker.kill() {
        std::thread::sleep(3 * SECOND);
        let begun = Instant::now();
        running.signal("TERM");
        let (code, said) = running.ends();
        assert_eq!(code, Some(0), "{said}");
        println!("with the broker away it ended within {} s", begun.elapsed().as_secs());
        assert!(begun.elapsed() < 30 * SECOND, "{said}");
    }
}

/// A ledger that is moved away while it runs is not made anew.
#[test]
fn a_ledger_that_was_moved_away_ends_the_recorder() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 1, &[]);
    send(&broker, 0, calls(0, 20));
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    let mut command = record(&broker, &path, &["--listen", "127.0.0.1:0", "--chunk-age", "1"]);
    let running = Running::start(&mut command, folder.path(), "r");
    until("it records", || recorded(&ledger).balance.read == 20);
    std::fs::rename(&path, folder.path().join("moved")).unwrap();
    send(&broker, 0, calls(20, 20));
    let (code, said) = running.ends();
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("led/ledger.json"), "{said}");
    assert!(!Path::new(&path).exists(), "nothing was made in its place");
}

/// Retention took records before they were recorded: it stops, and goes on only with a reason, which the record keeps.
#[test]
fn a_gap_is_refused_until_somebody_says_why() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 1, &[]);
    send(&broker, 0, calls(0, 100));
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    assert_eq!(once(&broker, &path, &[]).code, 0);
    send(&broker, 0, calls(100, 100));
    let mut upto = TopicPartitionList::new();
    upto.add_partition_offset(TOPIC, 0, Offset::Offset(150)).unwrap();
    wait(broker.admin().delete_records(&upto, &AdminOptions::new())).unwrap();
    let said = once(&broker, &path, &[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("50 records are gone") && said.err.contains("--accept-gap"), "{}", said.err);
    let accepted = once(&broker, &path, &["--accept-gap", "the disk was full"]);
    assert_eq!(accepted.code, 0, "{}", accepted.err);
    let whole: Vec<String> = chains(&ledger);
    assert!(whole.iter().any(|entry| entry.contains("the disk was full")), "{whole:?}");
    let balance = ledger.partitions().unwrap()[0].chunks().map(|(_, chunk)| chunk.balance.calls).sum::<u64>();
    assert_eq!(balance, 150);
    intact(&path);
}

/// A compacted topic has holes, and that is all.
#[test]
fn compaction_leaves_holes_and_nothing_else() {
    let Some(broker) = Broker::start() else { return };
    let settings = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "100"),
        ("min.cleanable.dirty.ratio", "0.001"),
        ("max.compaction.lag.ms", "100"),
    ];
    broker.topic(TOPIC, 1, &settings);
    let keyed = |from: usize, count: usize| {
        let producer = producer(&broker);
        for number in from..from + count {
            let (key, value) = (format!("k{}", number % 7), call(number).to_string());
            let record = BaseRecord::to(TOPIC).key(&key).payload(&value).partition(0);
            producer.send(record).map_err(|(error, _)| error).unwrap();
        }
        producer.flush(30 * SECOND).unwrap();
    };
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    keyed(0, 100);
    assert_eq!(once(&broker, &path, &[]).code, 0);
    // Among them the last record that was recorded: nothing is there any more by which the topic could be recognized.
    let begun = Instant::now();
    let mut written = 100;
    let left = loop {
        std::thread::sleep(SECOND);
        keyed(written, 7);
        written += 7;
        let (probe, place) = on_disk(&folder, &format!("probe{written}"));
        assert_eq!(once(&broker, &place, &[]).code, 0);
        let left = recorded(&probe).balance.calls as usize;
        if left < written - 60 {
            break left;
        }
        assert!(begun.elapsed() < 60 * SECOND, "the broker compacted nothing: {left} of {written}");
    };
    let said = once(&broker, &path, &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let all = recorded(&ledger);
    assert!(all.balance.calls >= 100 && all.balance.dead == 0 && all.balance.calls <= written as u64);
    intact(&path);
    println!("{left} of {written} records were left by compaction, {} had been recorded", all.balance.calls);
}

/// A recorder that is frozen past its session, with an open chunk in its hands, while another takes its partitions over: it
/// writes nothing of that, says why, and goes on.
#[test]
fn a_recorder_that_stood_still_writes_nothing_of_what_it_held() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 4, &[]);
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    produce(&broker, 0, 400, 4);
    // Chunks that never close by themselves: everything is in its hands.
    let listen = ["--listen", "127.0.0.1:0"];
    let frozen =
        Running::start(record(&broker, &path, &listen).args(["--chunk-age", "3600"]), folder.path(), "a");
    let address = || {
        let said = frozen.said();
        let at = said.find("http://").map(|at| at + 7)?;
        said[at..].split('/').next().map(str::to_owned)
    };
    until("it polls everything", || {
        let Some(address) = address() else { return false };
        let state = crate::kafka_service::get(&address, "/state").1;
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        let partitions = state["partitions"].as_array().unwrap();
        partitions.len() == 4 && partitions.iter().all(|p| p["polled"] == 100)
    });
    assert_eq!(recorded(&ledger).balance.read, 0);
    frozen.signal("STOP");
    let other = Running::start(
        record(&broker, &path, &listen).args(["--chunk-records", "20", "--chunk-age", "2"]),
        folder.path(),
        "b",
    );
    until("the other records everything", || recorded(&ledger).balance.read == 400);
    let theirs = |entry: &&String| !entry.contains("\"kind\":\"heartbeat\"");
    let entries = chains(&ledger).iter().filter(theirs).count();
    frozen.signal("CONT");
    until("it says that it stood still", || frozen.said().contains("stood still for"));
    std::thread::sleep(2 * SECOND);
    assert_eq!(chains(&ledger).iter().filter(theirs).count(), entries, "it wrote something");
    assert_eq!(recorded(&ledger).balance.read, 400);
    produce(&broker, 400, 100, 4);
    frozen.signal("TERM");
    let (code, said) = frozen.ends();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("none of it is written"), "{said}");
    until("the rest is recorded", || recorded(&ledger).balance.read == 500);
    other.signal("TERM");
    assert_eq!(other.ends().0, Some(0));
    let (clean, place) = on_disk(&folder, "clean");
    assert_eq!(once(&broker, &place, &[]).code, 0);
    let (got, wanted) = (recorded(&ledger), recorded(&clean));
    assert!(got.rows == wanted.rows && got.balance == wanted.balance, "not what a clean pass records");
    intact(&path);
}

fn closed(ledger: &Ledger, day: Day) -> Vec<bool> {
    let end = Timestamp(i64::from(day.0 + 1) * 86_400_000 + 3_600_000);
    let partitions = ledger.partitions().unwrap();
    partitions.iter().map(|p| p.progress().and_then(|at| at.read_through) >= Some(end)).collect()
}

/// Yesterday closes in a partition when everything up to its end was read: an idle partition says so, an open transaction
/// holds it open, and a call whose clock is off counts on its message's day. Calls that come late are still recorded.
#[test]
fn a_day_closes_when_it_was_read_to_its_end_and_not_before() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 3, &[]);
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    let now = system_now();
    let hour = 3_600_000;
    // Two days ago: its end and the lateness of an hour have passed whatever the clock says now.
    let day = now.day().plus(-2);
    let noon = Timestamp(i64::from(day.0) * 86_400_000 + 12 * hour);
    send(&broker, 0, (0..20).map(|n| call_at(n, noon).to_string()));
    let transaction = transactional(&broker, "open");
    within(&transaction, 1, &[call_at(100, noon).to_string()]);
    // Partition 2 is idle.
    let running = Running::start(
        record(&broker, &path, &["--listen", "127.0.0.1:0"]).args(["--chunk-age", "1"]),
        folder.path(),
        "r",
    );
    until("the others close", || {
        let closed = closed(&ledger, day);
        closed.len() == 3 && closed[0] && closed[2]
    });
    std::thread::sleep(3 * SECOND);
    assert_eq!(closed(&ledger, day), [true, false, true], "an open transaction may hold calls of that day");
    transaction.commit_transaction(10 * SECOND).unwrap();
    until("its end closes it", || closed(&ledger, day) == [true, true, true]);
    let off = [call_at(201, Timestamp(now.0 + 5 * hour)), call_at(202, Timestamp(now.0 - 8 * 24 * hour))];
    let fine = [call_at(203, Timestamp(now.0 - 5 * hour)), call_at(204, noon)];
    send(&broker, 2, off.iter().chain(&fine).map(ToString::to_string));
    until("they are recorded", || recorded(&ledger).balance.calls == 25);
    running.signal("TERM");
    assert_eq!(running.ends().0, Some(0));
    let mut reasons = Vec::new();
    for partition in ledger.partitions().unwrap() {
        for (_, chunk) in partition.chunks() {
            ledger.for_each_result(chunk, |row| reasons.push((row.reason, row.day))).unwrap();
        }
    }
    let clock: Vec<Day> =
        reasons.iter().filter(|(r, _)| *r == Some(Reason::Clock)).map(|(_, day)| *day).collect();
    assert_eq!(clock.len(), 2, "{reasons:?}");
    assert!(clock.iter().all(|on| (now.day().0..=now.day().0 + 1).contains(&on.0)), "on the message's day");
    assert_eq!(
        reasons.iter().filter(|(reason, on)| reason.is_none() && *on == day).count(),
        22,
        "late ones too"
    );
    assert_eq!(closed(&ledger, day), [true, true, true], "a day never opens again");
    intact(&path);
}

/// Candidates that are observed while recorders run: results from some record on, each chunk under one configuration; of what
/// lies before, nothing is said.
#[test]
fn a_candidate_that_comes_while_recorders_run_is_compared_from_then_on() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 2, &[]);
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    let started = |name: &str, group: &str| {
        let mut command = record(&broker, &path, &["--listen", "127.0.0.1:0", "--group", group]);
        Running::start(command.args(["--chunk-age", "1", "--chunk-records", "25"]), folder.path(), name)
    };
    produce(&broker, 0, 200, 2);
    // Two groups race for every append; one of them stands still while the control chain grows.
    let (lagging, other) = (started("a", "g1"), started("b", "g2"));
    until("the first part", || recorded(&ledger).balance.read == 200);
    lagging.signal("STOP");
    observe(&ledger, &contract(crate::topic::OLD, 1), &contract(WIDE, 3), &PairConfig::default());
    let seq = ledger.control().unwrap().entries.last().unwrap().entry.seq;
    std::thread::sleep(4 * SECOND);
    produce(&broker, 200, 200, 2);
    until("the second part", || recorded(&ledger).balance.read == 400);
    lagging.signal("CONT");
    produce(&broker, 400, 200, 2);
    until("the third part", || recorded(&ledger).balance.read == 600);
    for one in [lagging, other] {
        one.signal("TERM");
        let (code, said) = one.ends();
        assert_eq!(code, Some(0), "{said}");
    }
    let (mut before, mut after) = (0, 0);
    for partition in ledger.partitions().unwrap() {
        let mut last = 0;
        for (_, chunk) in partition.chunks() {
            assert!(chunk.control.seq >= last, "a recorder that was behind wrote after one that was not");
            last = chunk.control.seq;
            let mut epochs = std::collections::BTreeSet::new();
            let mut rows = 0;
            ledger
                .for_each_result(chunk, |row| {
                    epochs.insert((row.candidate.clone(), row.epoch.clone()));
                    rows += 1;
                })
                .unwrap();
            let wanted = if chunk.control.seq >= seq { 2 } else { 1 };
            assert_eq!(epochs.len(), wanted, "{epochs:?}");
            assert_eq!(rows, chunk.balance.calls * wanted as u64);
            if wanted == 1 { before += chunk.balance.calls } else { after += chunk.balance.calls }
        }
    }
    assert!(before >= 190 && after >= 340, "{before} {after}");
    println!("{before} calls before the candidate was observed, {after} with it");
    intact(&path);
}
