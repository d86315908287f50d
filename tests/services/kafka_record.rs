//! The real `lastcall-record` on a real Kafka: each record exactly once, whatever is killed, races or comes back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lastcall_ledger::store::Location;
use lastcall_ledger::store::s3::{S3Config, S3Store};
use lastcall_ledger::{Ledger, LedgerClock};
use lastcall_tests::services::moto::Moto;
use lastcall_tests::services::proxy::{Fault, Proxy};
use lastcall_tests::{answer, binary};
use tempfile::TempDir;

use crate::topic::{TOPIC, on_disk, once, prepare, produce, record, recorded};
use lastcall_tests::services::broker::Broker;

#[test]
fn a_topic_is_recorded_once_and_a_second_run_adds_nothing() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(TOPIC, 6, &[]);
    produce(&broker, 0, 3_000, 6);
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    let without = answer(Command::new(binary().with_file_name("lastcall-record")).args([
        "--ledger",
        &path,
        "--brokers",
        &broker.address,
        "--once",
    ]));
    assert_eq!(without.code, 2, "{}", without.err);
    assert!(without.err.contains("--from earliest"), "{}", without.err);
    let said = once(&broker, &path, &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let first = recorded(&ledger);
    assert_eq!((first.balance.read, first.balance.dead, first.balance.calls), (3_000, 30, 2_970));
    let again = once(&broker, &path, &[]);
    assert!(again.code == 0 && again.err.contains("read 0:"), "{}", again.err);
    assert!(recorded(&ledger) == first, "a second run adds nothing");
    produce(&broker, 3_000, 600, 6);
    assert_eq!(once(&broker, &path, &[]).code, 0);
    assert_eq!(recorded(&ledger).balance.read, 3_600);
    let verified = lastcall_tests::run(&["ledger", "verify", &path]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}

/// A recorder that is running.
struct Member {
    child: Child,
    key: &'static str,
    group: &'static str,
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a kill waits for: a write of this kind by this member, before or after it took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    BeforeFile,
    AfterFile,
    BeforeEntry,
    AfterEntry,
}

const STEPS: [Step; 4] = [Step::BeforeFile, Step::AfterFile, Step::BeforeEntry, Step::AfterEntry];

#[derive(Default)]
struct Armed {
    wanted: Option<(Step, &'static str)>,
    hit: bool,
}

/// Over a bucket, since there every step of an append is a request that can be seen from outside.
#[test]
fn killed_at_every_step_of_an_append_and_racing_it_equals_a_clean_pass() {
    let full = std::env::var_os("LASTCALL_PROVE").is_some();
    let (records, rounds) = if full { (200_000, 12) } else { (6_000, 2) };
    let (Some(mut broker), Some(moto)) = (Broker::start(), Moto::start()) else { return };
    moto.bucket("books");
    broker.topic(TOPIC, 6, &[]);
    produce(&broker, 0, records / 2, 6);
    let armed = Arc::new(Mutex::new(Armed::default()));
    let proxy = Proxy::start(moto.address, {
        let armed = armed.clone();
        move |asked| {
            let mut armed = armed.lock().unwrap();
            let Some((step, key)) = armed.wanted.filter(|_| asked.method == "PUT") else {
                return Fault::None;
            };
            let entry = asked.path.contains(&format!("/chains/{TOPIC}/"));
            let file = !asked.path.contains("/chains/") && !asked.path.contains("/objects/");
            if asked.credential != Some(key) || armed.hit {
                return Fault::None;
            }
            let fault = match step {
                Step::BeforeFile if file => Fault::Silent,
                Step::AfterFile if file => Fault::DoneButSilent,
                Step::BeforeEntry if entry => Fault::Silent,
                Step::AfterEntry if entry => Fault::DoneButSilent,
                _ => return Fault::None,
            };
            armed.hit = true;
            fault
        }
    });
    let bucket = "s3://books/led";
    let ledger = bucket_ledger(moto.address, bucket);
    prepare(&ledger);
    let logs = TempDir::new().unwrap();
    let said = |key: &str| std::fs::read_to_string(logs.path().join(key)).unwrap();
    let start = |broker: &Broker, key: &'static str, group: &'static str| Member {
        child: record(broker, bucket, &["--chunk-records", "40", "--group", group])
            .envs([("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", "x"), ("AWS_REGION", "us-east-1")])
            .env("AWS_ENDPOINT_URL", format!("http://{}", proxy.address))
            .envs([("AWS_ALLOW_HTTP", "true"), ("LASTCALL_S3_TIMEOUT", "5")])
            .stderr(File::options().create(true).append(true).open(logs.path().join(key)).unwrap())
            .spawn()
            .unwrap(),
        key,
        group,
    };
    // Two groups read all partitions beside each other: each append is a race.
    let mut members = [start(&broker, "one", "g1"), start(&broker, "two", "g2")];
    let mut kills: BTreeMap<Step, usize> = BTreeMap::new();
    let mut written = records / 2;
    let turns = rounds * STEPS.len();
    for (turn, step) in STEPS.iter().copied().cycle().take(turns).enumerate() {
        let who = turn % 2;
        *armed.lock().unwrap() = Armed { wanted: Some((step, members[who].key)), hit: false };
        let more = records.saturating_sub(written) / (turns - turn);
        produce(&broker, written, more, 6);
        written += more;
        if turn == turns / 2 {
            broker.kill_and_restart();
        }
        let begun = Instant::now();
        let mut fed = Instant::now();
        while !armed.lock().unwrap().hit && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
            // The other one may have recorded all of it: there is more to write while nothing is hit.
            if fed.elapsed() > Duration::from_secs(1) {
                fed = Instant::now();
                produce(&broker, written, 300, 6);
                written += 300;
            }
        }
        if armed.lock().unwrap().hit {
            // What is done although it is not answered is done by now.
            std::thread::sleep(Duration::from_millis(100));
            *kills.entry(step).or_default() += 1;
        }
        let (key, group) = (members[who].key, members[who].group);
        assert!(members[who].child.try_wait().unwrap().is_none(), "{key} ended by itself: {}", said(key));
        members[who].child.kill().unwrap();
        members[who].child.wait().unwrap();
        members[who] = start(&broker, key, group);
    }
    *armed.lock().unwrap() = Armed::default();
    for member in &mut members {
        member.child.kill().unwrap();
        member.child.wait().unwrap();
    }
    let rest = answer(
        record(&broker, bucket, &["--once", "--group", "g3"])
            .envs([("AWS_ACCESS_KEY_ID", "three"), ("AWS_SECRET_ACCESS_KEY", "x")])
            .envs([("AWS_REGION", "us-east-1"), ("AWS_ALLOW_HTTP", "true")])
            .env("AWS_ENDPOINT_URL", format!("http://{}", moto.address)),
    );
    assert_eq!(rest.code, 0, "{}", rest.err);
    let folder = TempDir::new().unwrap();
    let (clean, path) = on_disk(&folder, "clean");
    assert_eq!(once(&broker, &path, &[]).code, 0);
    let (got, wanted) = (recorded(&ledger), recorded(&clean));
    let mut told = String::new();
    for step in STEPS {
        write!(told, " {step:?} {}", kills.get(&step).copied().unwrap_or_default()).unwrap();
    }
    println!(
        "{written} records over 6 partitions, two recorders racing, the broker killed once; kills by step:{told}"
    );
    assert_eq!(wanted.balance.read, written as u64);
    assert_eq!(got.balance, wanted.balance);
    assert!(got.sums == wanted.sums, "summed tallies differ");
    assert!(got.rows == wanted.rows, "rows differ");
    assert!(STEPS.iter().all(|step| kills.contains_key(step)), "a step was never hit:{told}");
    let verified = lastcall_ledger::verify::verify(&ledger, &mut |_| {}).unwrap();
    assert!(verified.findings.is_empty(), "{:?}", verified.findings);
}

fn bucket_ledger(server: SocketAddr, place: &str) -> Ledger {
    let Location::Bucket { bucket, prefix } = Location::of(Path::new(place)).unwrap() else {
        panic!("{place}")
    };
    let mut config = S3Config::from_env(&bucket, &prefix).unwrap();
    let endpoint = format!("http://{server}");
    let variables = [
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", &endpoint),
        ("AWS_ALLOW_HTTP", "true"),
    ];
    config.variables = variables.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
    Ledger::init_in(Arc::new(S3Store::open(config).unwrap()), LedgerClock::System, place).unwrap()
}
