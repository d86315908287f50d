//! `make bench-kafka`: `lastcall-record` on a real broker beside consuming alone, beside parsing into `serde_json::Value`,
//! beside a Python consumer and a Kafka Streams topology that only count. Alternating runs, medians and ratios, written to
//! `target/figures/kafka.json`. Never asserts a time: machines are shared and noisy.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lastcall_benches::input;
use lastcall_benches::measure::{Used, median, run, together};
use lastcall_event::Timestamp;
use lastcall_ledger::Ledger;
use lastcall_tests::services::broker::Broker;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::{Value, json};

const TOPIC: &str = "bench";
const PARTITIONS: i32 = 6;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["consume", brokers] => consume(brokers, false),
        ["parse", brokers] => consume(brokers, true),
        [] => bench(),
        _ => bail!("usage: kafka | kafka consume BROKERS | kafka parse BROKERS"),
    }
}

/// The limits: every record polled, and, if asked for, parsed into a `serde_json::Value`.
fn consume(brokers: &str, parse: bool) -> Result<()> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "peer")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("fetch.queue.backoff.ms", "5")
        .create()?;
    let mut all = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        all.add_partition_offset(TOPIC, partition, Offset::Beginning)?;
    }
    consumer.assign(&all)?;
    let (mut ends, mut records, mut members) = (0, 0u64, 0usize);
    while ends < PARTITIONS {
        match consumer.poll(Duration::from_secs(1)) {
            None => {}
            Some(Err(KafkaError::PartitionEOF(_))) => ends += 1,
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(message)) => {
                let value = message.payload().unwrap_or_default();
                records += 1;
                members += match parse {
                    true => {
                        serde_json::from_slice::<Value>(value)?.as_object().map_or(0, serde_json::Map::len)
                    }
                    false => value.len(),
                };
            }
        }
    }
    println!("{records} records, {members}");
    Ok(())
}

fn produce(broker: &Broker, events: &Path) -> Result<()> {
    let producer: ThreadedProducer<_> = ClientConfig::new()
        .set("bootstrap.servers", &broker.address)
        .set("linger.ms", "20")
        .set("batch.size", "262144")
        .set("queue.buffering.max.messages", "50000")
        .create()?;
    let lines = std::io::BufReader::with_capacity(1 << 20, std::fs::File::open(events)?).lines();
    for (number, line) in lines.enumerate() {
        let line = line?;
        // Each message as old as its call: nothing is off the clock.
        let value: Value = serde_json::from_str(&line)?;
        let at = value["ts"].as_str().and_then(Timestamp::parse).context("an event without a time")?;
        let partition = i32::try_from(number / 20 % PARTITIONS as usize)?;
        let record = BaseRecord::<(), str>::to(TOPIC).payload(&line).partition(partition).timestamp(at.0);
        let mut sent = producer.send(record);
        while let Err((_, record)) = sent {
            std::thread::sleep(Duration::from_millis(20));
            sent = producer.send(record);
        }
    }
    producer.flush(Duration::from_secs(120))?;
    Ok(())
}

fn bench() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let data = std::env::var_os("LASTCALL_DATA").map_or(root.join("../shared/data"), PathBuf::from);
    if !data.join("calls.jsonl").exists() {
        println!(
            "bench-kafka: skipped, the real calls are not here (set LASTCALL_DATA to the folder with calls.jsonl)"
        );
        return Ok(());
    }
    let Some(broker) = Broker::start() else {
        println!("bench-kafka: skipped, no broker");
        return Ok(());
    };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let dir = target.join("bench");
    std::fs::create_dir_all(&dir)?;
    let wanted =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (count, rounds) = (wanted("LASTCALL_BENCH_EVENTS", 300_000), wanted("LASTCALL_BENCH_ROUNDS", 5));
    let made = input::make(&data, &dir, count)?;
    println!("input: {} events of {} bytes on average, {} definitions", made.events, made.mean, made.pairs);
    broker.topic(TOPIC, PARTITIONS, &[("retention.ms", "-1")]);
    produce(&broker, &made.events_file)?;
    let python = python(&dir);
    let streams = streams(&root, &dir);
    let me = std::env::current_exe()?;
    let lastcall = target.join("release/lastcall");
    let recorder = target.join("release/lastcall-record");
    let record = |ledger: &Path, group: &str, from: &str| {
        let mut command = Command::new(&recorder);
        command.arg("--ledger").arg(ledger).args(["--brokers", &broker.address, "--from", from]);
        command.args(["--once", "--group", group]);
        command
    };
    let [mut raw, mut parse, mut one, mut two, mut peer]: [Vec<Used>; 5] = Default::default();
    let mut warm = Vec::new();
    for round in 0..rounds {
        raw.push(run(Command::new(&me).args(["consume", &broker.address]))?);
        parse.push(run(Command::new(&me).args(["parse", &broker.address]))?);
        let ledger = dir.join(format!("kafka-{round}"));
        fresh(&lastcall, &made.ledger, &ledger)?;
        one.push(run(&mut record(&ledger, &format!("one-{round}"), "earliest"))?);
        recorded(&ledger, made.events)?;
        fresh(&lastcall, &made.ledger, &ledger)?;
        let group = format!("two-{round}");
        two.push(together(vec![record(&ledger, &group, "earliest"), record(&ledger, &group, "earliest")])?);
        recorded(&ledger, made.events)?;
        std::fs::remove_dir_all(&ledger)?;
        if let Some(python) = &python {
            let job = root.join("benches/peers/consume.py");
            peer.push(run(Command::new(python)
                .arg(job)
                .args([&broker.address, TOPIC])
                .arg(&made.contracts_file))?);
        }
        if let Some(classes) = &streams {
            warm.push(streamed(classes, &broker, &made.contracts_file, &dir)?);
        }
    }
    // Preparing the pairs is done once, whatever the number of events.
    let idle = idle(&lastcall, &record, &made, &dir)?;
    let events = made.events as f64;
    let per_event = |used: &[Used]| median(used.iter().map(|u| u.cpu_s)) * 1e6 / events;
    let (raw_us, parse_us, peer_us) = (per_event(&raw), per_event(&parse), per_event(&peer));
    let (one_us, two_us) =
        (per_event(&one) - idle * 1e6 / events, per_event(&two) - 2.0 * idle * 1e6 / events);
    let warm_us = median(warm);
    let round2 = |x: f64| (x * 100.0).round() / 100.0;
    let told = |x: f64| x.is_finite().then(|| round2(x));
    let figures = json!({
        "events": made.events, "bytes_per_event": made.mean, "definitions": made.pairs, "rounds": rounds,
        "events_per_s": (events / median(one.iter().map(|u| u.wall_s))).round(),
        "cpu_us_per_event": round2(one_us), "start_cpu_s": round2(idle),
        "raw_us_per_event": round2(raw_us), "parse_us_per_event": round2(parse_us),
        "streams_us_per_event": told(warm_us), "python_us_per_event": told(peer_us),
        "ratio_to_raw": round2(one_us / raw_us), "ratio_to_parse": round2(one_us / parse_us),
        "ratio_to_streams": told(one_us / warm_us), "ratio_to_python": told(one_us / peer_us),
        "cpu_two_over_one": round2(two_us / one_us),
        "peak_rss_mib": one.iter().chain(&two).map(|u| u.peak_mib).max(),
    });
    let out = target.join("figures");
    std::fs::create_dir_all(&out)?;
    std::fs::write(out.join("kafka.json"), format!("{figures:#}\n"))?;
    println!("{figures:#}");
    Ok(())
}

/// A ledger with every pair observed, and the topic as its source.
fn fresh(lastcall: &Path, from: &Path, to: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(to);
    if !Command::new("cp").arg("-a").arg(from).arg(to).status()?.success() {
        bail!("{} cannot be copied", from.display());
    }
    let mut command = Command::new(lastcall);
    command.args(["ledger", "source"]).arg(to).args([TOPIC, "--kind", "topic", "--role", "mirrored-calls"]);
    run(&mut command).map(|_| ())
}

/// What was recorded is every event, once.
fn recorded(ledger: &Path, events: u64) -> Result<()> {
    let partitions = Ledger::open(ledger)?.partitions()?;
    let chunks = partitions.iter().flat_map(|partition| partition.chunks());
    let calls: u64 = chunks.map(|(_, chunk)| chunk.balance.calls).sum();
    anyhow::ensure!(calls == events, "{calls} calls are recorded, {events} were written");
    Ok(())
}

/// CPU seconds of a recorder that finds nothing to read.
fn idle(
    lastcall: &Path,
    record: &impl Fn(&Path, &str, &str) -> Command,
    made: &input::Made,
    dir: &Path,
) -> Result<f64> {
    let ledger = dir.join("kafka-idle");
    let mut all = Vec::new();
    for n in 0..3 {
        fresh(lastcall, &made.ledger, &ledger)?;
        all.push(run(&mut record(&ledger, &format!("idle-{n}"), "latest"))?.cpu_s);
    }
    std::fs::remove_dir_all(&ledger)?;
    Ok(median(all))
}

/// A Python with the peer's libraries in a folder of its own, or nothing where it cannot be had.
fn python(dir: &Path) -> Option<PathBuf> {
    let (venv, packages) = (dir.join("venv-kafka"), ["orjson", "jsonschema-rs", "confluent-kafka"]);
    let python = venv.join("bin/python");
    let quiet = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    let has = || quiet(Command::new(&python).args(["-c", "import orjson, jsonschema_rs, confluent_kafka"]));
    let made = has()
        || quiet(Command::new("python3").arg("-m").arg("venv").arg(&venv))
            && quiet(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(packages))
            && has();
    if !made {
        println!("bench-kafka: the Python peer is left out (no python3 with venv, or no registry)");
    }
    made.then_some(python)
}

/// The Kafka Streams peer, built: its class path; nothing where Maven or Java is missing.
fn streams(root: &Path, dir: &Path) -> Option<String> {
    let (pom, out) = (root.join("benches/peers/streams/pom.xml"), dir.join("streams"));
    let done = Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(pom)
        .args(["compile", "dependency:copy-dependencies", "-DincludeScope=runtime"])
        .arg(format!("-DbuildDirectory={}", out.display()))
        .arg(format!("-DoutputDirectory={}", out.join("lib").display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    if !done.is_ok_and(|status| status.success()) {
        println!("bench-kafka: the Kafka Streams peer is left out (no Maven, or no registry)");
        return None;
    }
    Some(format!("{}:{}/*", out.join("classes").display(), out.join("lib").display()))
}

fn streamed(classes: &str, broker: &Broker, contracts: &Path, dir: &Path) -> Result<f64> {
    let begun = Instant::now();
    let out = Command::new("java")
        .args(["-cp", classes, "Count", &broker.address, TOPIC])
        .arg(contracts)
        .arg(dir)
        .stderr(Stdio::null())
        .output()?;
    let said: Value = serde_json::from_slice(&out.stdout).with_context(|| {
        format!("the Kafka Streams peer ended with {} after {:?}", out.status, begun.elapsed())
    })?;
    said["warm_us"].as_f64().context("it did not say how long an event took")
}
