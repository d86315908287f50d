//! `lastcall-record` as a service: health, metrics, probe, dry run, planting, replay, its file of settings.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use lastcall_ledger::window::Record;
use lastcall_tests::{answer, binary, run};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::topic::{Running, TOPIC, call, on_disk, once, produce, record, recorded, send, until};
use lastcall_tests::services::broker::Broker;

/// An HTTP GET: status and body.
pub fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let body = text.split_once("\r\n\r\n").unwrap().1.to_owned();
    (status, body)
}

fn sample(metrics: &str, start: &str) -> f64 {
    let line =
        metrics.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn health_metrics_and_state_say_what_is_so() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 2, &[]);
    produce(&broker, 0, 300, 2);
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    let log = folder.path().join("log");
    let settings = folder.path().join("record.toml");
    let text = format!(
        "ledger = {path:?}\nbrokers = {:?}\nfrom = \"earliest\"\nlisten = \"127.0.0.1:0\"\nchunk_age = 1\n\
         [librdkafka]\n\"session.timeout.ms\" = 6000\n",
        broker.address
    );
    std::fs::write(&settings, text).unwrap();
    let mut child = Command::new(binary().with_file_name("lastcall-record"))
        .arg("--config")
        .arg(&settings)
        .args(["--look", "1"])
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let said = || std::fs::read_to_string(&log).unwrap();
    let address = loop {
        if let Some(at) = said().find("http://") {
            break said()[at + 7..].split('/').next().unwrap().to_owned();
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{}", said());
        std::thread::sleep(Duration::from_millis(50));
    };
    while recorded(&ledger).balance.read < 300 || get(&address, "/health/ready").0 != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", said());
        std::thread::sleep(Duration::from_millis(200));
    }
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(get(&address, "/health/live"), (200, "ok\n".to_owned()));
    assert_eq!(get(&address, "/nothing").0, 404);
    let metrics = get(&address, "/metrics").1;
    let source = format!("source=\"{TOPIC}\"");
    assert_eq!(sample(&metrics, &format!("lastcall_record_records_total{{{source}}}")), 300.0);
    let dead: f64 = metrics
        .lines()
        .filter(|l| l.starts_with("lastcall_record_dead_letters_total{"))
        .map(|l| l.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert_eq!(dead, 3.0);
    assert_eq!(sample(&metrics, "lastcall_record_partitions"), 2.0);
    for partition in 0..2 {
        let lag = format!("lastcall_record_lag{{{source},partition=\"{partition}\"}}");
        assert_eq!(sample(&metrics, &lag), 0.0);
    }
    let state: Value = serde_json::from_str(&get(&address, "/state").1).unwrap();
    assert_eq!(state["service"], "lastcall-record");
    assert_eq!(state["ledger"], ledger.meta().id.as_str());
    let partitions = state["partitions"].as_array().unwrap();
    assert!(partitions.iter().all(|p| p["recorded"] == 150 && p["end"] == 150 && p["lag"] == 0), "{state:#}");
    // A second one finds the port taken where it was asked for.
    let second = answer(record(&broker, &path, &["--listen", &address]).args(["--once"]));
    assert!(second.code == 2 && second.err.contains("--listen"), "{} {}", second.code, second.err);
    let done = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(done.success());
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", said());
}

#[test]
fn probe_and_dry_run_write_nothing() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 2, &[]);
    produce(&broker, 0, 200, 2);
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    let files = || ledger.store().list("").map(|all| all.len()).unwrap_or_default();
    let before = (files(), recorded(&ledger).balance);
    let probe = answer(&mut record(&broker, &path, &["--probe"]));
    assert_eq!(probe.code, 0, "{}{}", probe.out, probe.err);
    for said in ["cluster", "1 are ready", &format!("{TOPIC}/1: holds [0, 100), begins at 0")] {
        assert!(probe.out.contains(said), "{said}: {}", probe.out);
    }
    let dry = answer(&mut record(&broker, &path, &["--dry-run"]));
    assert_eq!(dry.code, 0, "{}{}", dry.out, dry.err);
    for said in
        ["200 records of 2 partitions", "198 calls, 2 dead letters", "disagreed: ", "nothing was written"]
    {
        assert!(dry.out.contains(said), "{said}: {}", dry.out);
    }
    assert!((files(), recorded(&ledger).balance) == before);
    assert_eq!(once(&broker, &path, &[]).code, 0);
    let compared = dry.out.lines().find(|l| l.contains("disagreed")).unwrap().rsplit(' ').next().unwrap();
    let rows = recorded(&ledger).rows.iter().filter(|row| row.contains("result: Disagreed")).count();
    assert_eq!(compared, rows.to_string(), "what a dry run says comes about");
    let away = answer(Command::new(binary().with_file_name("lastcall-record")).args([
        "--ledger",
        &path,
        "--brokers",
        "127.0.0.1:1",
        "--probe",
    ]));
    assert_eq!(away.code, 75, "{}{}", away.out, away.err);
    assert!(away.out.contains("FAILED  brokers 127.0.0.1:1"), "{}", away.out);
    let none = answer(&mut record(&broker, &path, &["--source", "nothing", "--probe"]));
    assert!(none.code == 2 && none.out.contains("source `nothing` is not registered"), "{}", none.out);
}

/// The last entry of a chain, as it stands on disk.
fn last_entry(path: &str, chain: &str) -> PathBuf {
    let folder = Path::new(path).join("chains").join(chain);
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).max().unwrap()
}

/// An entry that was cut off is an altered record, found at the start or while it runs: 4, and nothing is written behind it.
#[test]
fn an_entry_that_was_cut_off_ends_the_recorder_with_4() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 1, &[]);
    produce(&broker, 0, 100, 1);
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    assert_eq!(once(&broker, &path, &[]).code, 0);
    for chain in [format!("{TOPIC}/0"), "control".to_owned()] {
        let place = last_entry(&path, &chain);
        let whole = std::fs::read(&place).unwrap();
        std::fs::write(&place, &whole[..whole.len() / 2]).unwrap();
        for mode in ["--once", "--probe", "--dry-run"] {
            let said = answer(&mut record(&broker, &path, &[mode]));
            assert_eq!(said.code, 4, "{chain} {mode}: {}{}", said.out, said.err);
            let text = said.out + &said.err;
            assert!(
                text.contains("the record was altered") && text.contains(&chain),
                "{chain} {mode}: {text}"
            );
        }
        std::fs::write(&place, &whole).unwrap();
    }
    let mut command = record(&broker, &path, &["--listen", "127.0.0.1:0", "--chunk-age", "1"]);
    let running = Running::start(&mut command, folder.path(), "r");
    produce(&broker, 100, 100, 1);
    until("it records", || recorded(&ledger).balance.read == 200);
    let seq = ledger.control().unwrap().entries.last().unwrap().entry.seq;
    let next = Path::new(&path).join("chains/control").join(format!("{:020}.json", seq + 1));
    std::fs::write(&next, "{\"seq\":").unwrap();
    produce(&broker, 200, 100, 1);
    let (code, said) = running.ends();
    assert!(code == Some(4) && said.contains("the record was altered"), "{code:?} {said}");
    std::fs::remove_file(next).unwrap();
    assert_eq!(recorded(&ledger).balance.read, 200, "nothing more was written");
}

const MAP: &str = r#"
format = 1
[when]
"/event" = "done"
[call]
call_id = "/id"
ts = "/at"
tool_id = "/tool"
arguments = "/input"
[outcome]
status = "/state"
"#;

/// What stands in a setting is never repeated, whatever is wrong with it.
#[test]
fn secrets_are_repeated_by_no_message() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("f.toml");
    std::fs::write(&file, "brokers = \"b:9092\"\n[librdkafka]\n\"sasl.password\" = \"hunter2\n").unwrap();
    let file = file.to_str().unwrap();
    let (_, path) = on_disk(&folder, "led");
    for args in [
        vec!["-X", "sasl.passwrd=hunter2", "--probe"],
        vec!["-X", "sasl.mechanism=OAUTHBEARER", "-X", "sasl.oauthbearer.client.secret=hunter2", "--probe"],
        vec!["-X", "sasl.password hunter2", "--probe"],
        vec!["-X", "SASL.PASSWORD=hunter2", "--print-config"],
        vec!["-X", "sasl.oauthbearer.config=secretToken=hunter2", "--print-config"],
        vec!["-X", "ssl.key.pem=hunter2", "--print-config"],
        vec!["--config", file, "--print-config"],
    ] {
        let mut command = Command::new(binary().with_file_name("lastcall-record"));
        let said = answer(command.args(["--ledger", &path, "--brokers", "127.0.0.1:1"]).args(&args));
        assert!(
            !format!("{}{}", said.out, said.err).contains("hunter2"),
            "{args:?}: {}{}",
            said.out,
            said.err
        );
        if args.last() == Some(&"--probe") {
            assert_eq!(said.code, 2, "{args:?}: {}{}", said.out, said.err);
        }
    }
    for brokers in ["", "b:1:2", "b:x", ",b:1"] {
        let mut command = Command::new(binary().with_file_name("lastcall-record"));
        let said = answer(command.args(["--ledger", &path, "--brokers", brokers, "--probe"]));
        assert!(said.code == 2 && said.err.contains("HOST:PORT"), "{brokers}: {}", said.err);
    }
}

#[test]
fn planted_calls_come_back_and_dead_letters_are_replayed() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 2, &[]);
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    let sample = folder.path().join("call.json");
    std::fs::write(&sample, json!({"arguments": {"q": "x", "unit": "c"}}).to_string()).unwrap();
    let service = |args: &[&str]| {
        let mut command = Command::new(binary().with_file_name("lastcall-record"));
        answer(command.args(args).args(["--ledger", &path, "--brokers", &broker.address]))
    };
    let sample = sample.to_str().unwrap();
    let refused = service(&["plant", "search", "--topic", "nowhere", "--sample", sample]);
    assert!(refused.code == 2 && refused.err.contains("no source"), "{}", refused.err);
    let planted = service(&["plant", "search", "--topic", TOPIC, "--sample", sample]);
    assert_eq!(planted.code, 0, "{}", planted.err);
    assert!(planted.out.contains("has to come back as enum_value_removed/"), "{}", planted.out);
    send(&broker, 0, [call(1).to_string(), "{\"type\":\"tool_call\"".to_owned()]);
    assert_eq!(once(&broker, &path, &[]).code, 0);
    let rows = recorded(&ledger);
    assert_eq!((rows.balance.calls, rows.balance.dead), (2, 1));
    let record = Record::from_genesis(Ledger::clone(&ledger)).unwrap();
    assert_eq!(record.subjects().len(), 1);
    assert!(rows.rows.iter().any(|row| row.contains("EnumValueRemoved")), "the fault is seen");
    let left = service(&["replay", TOPIC, "--dry-run"]);
    assert!(
        left.code == 0 && left.out.contains("left 1: this build cannot read them"),
        "{}{}",
        left.out,
        left.err
    );
    // A source with another map reads it: what it is replayed into decides.
    let map = folder.path().join("map.toml");
    std::fs::write(&map, MAP).unwrap();
    broker.topic("other", 1, &[]);
    let map = map.to_str().unwrap();
    for (name, preset) in [("other", ["--map", map]), ("mapped", ["--map", map])] {
        let args = ["ledger", "source", &path, name, "--kind", "topic", "--role", "tool-calls"];
        let said = run(&args.iter().chain(&preset).copied().collect::<Vec<_>>());
        assert_eq!(said.code, 0, "{}", said.err);
    }
    send(&broker, 0, [json!({"event": "done", "id": "m1", "at": "2026-06-01T00:00:00Z", "tool": "search", "input": {"q": "x"}, "state": "ok"}).to_string()]);
    assert_eq!(once(&broker, &path, &["--source", TOPIC]).code, 0);
    let other = service(&["replay", TOPIC, "--to", "other"]);
    assert!(
        other.code == 0 && other.out.contains("1 dead letters replayed into topic other"),
        "{}{}",
        other.out,
        other.err
    );
    let all = service(&["replay", TOPIC, "--all", "--reason", "not_json"]);
    assert!(all.code == 0 && all.out.contains("1 dead letters replayed"), "{}{}", all.out, all.err);
    assert_eq!(once(&broker, &path, &["--source", TOPIC]).code, 0);
    assert_eq!(recorded(&ledger).balance.dead, 3, "it is dead again, and said to be");
    let verified = run(&["ledger", "verify", &path]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}

use lastcall_ledger::Ledger;
