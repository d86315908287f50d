//! The real command over a bucket: what it records and decides equals what it records and decides on a disk.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lastcall_diff::Rng;
use lastcall_event::Day;
use lastcall_ledger::Ledger;
use lastcall_ledger::store::Location;
use lastcall_ledger::store::s3::{S3Config, S3Store};
use lastcall_tests::content::{Content, content};
use lastcall_tests::{Answer, answer, lastcall};
use serde_json::{Value, json};
use tempfile::TempDir;

use lastcall_tests::services::moto::Moto;
use lastcall_tests::services::proxy::{Fault, Proxy};

const OLD: &str = r#"{"name":"search","description":"Search.","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"unit":{"type":"string","enum":["c","f","k"]}},"required":["q"]}}"#;
const NEW: &str = r#"{"name":"search","description":"Search.","inputSchema":{"type":"object","properties":{"q":{"type":"string"},"unit":{"type":"string","enum":["c","f"]}},"required":["q"]}}"#;
const KEY: [(&str, &str); 3] =
    [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")];

/// The command with no settings of AWS but these.
fn command(settings: &[(&str, &str)]) -> Command {
    let mut command = lastcall();
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    command.envs(settings.iter().copied());
    command
}

/// A folder with input, and a server to run against.
struct Bench {
    dir: TempDir,
    server: SocketAddr,
}

impl Bench {
    fn new(server: SocketAddr) -> Self {
        let bench = Self { dir: TempDir::new().unwrap(), server };
        let write = |name: &str, text: &str| std::fs::write(bench.dir.path().join(name), text).unwrap();
        write("old.json", OLD);
        write("new.json", NEW);
        write("policy.yaml", "burn_in: {tier: T1, profile: article, min_calls: 100}");
        write("calls.jsonl", &calls(6, 40, 2));
        bench
    }

    fn command(&self, ledger: &str, args: &[&str]) -> Command {
        let endpoint = format!("http://{}", self.server);
        let mut command = command(&KEY);
        command
            .envs([("AWS_ENDPOINT_URL", endpoint.as_str()), ("AWS_ALLOW_HTTP", "true")])
            .envs([("LASTCALL_S3_TIMEOUT", "1"), ("LASTCALL_LEDGER", ledger)])
            .current_dir(self.dir.path())
            .args(args);
        command
    }

    fn run(&self, ledger: &str, args: &[&str]) -> Answer {
        answer(&mut self.command(ledger, args))
    }

    fn ok(&self, ledger: &str, args: &[&str]) -> String {
        let said = self.run(ledger, args);
        assert_eq!(said.code, 0, "{args:?} on {ledger}: {}{}", said.out, said.err);
        said.out
    }

    /// Up to and without `run`.
    fn prepared(&self, ledger: &str) {
        self.ok(ledger, &["ledger", "init", ledger, "--clock", "simulated"]);
        self.ok(ledger, &["plan", "observe", "old.json", "new.json", "--versions", "1", "2"]);
        self.ok(ledger, &["plan", "register", "search", "--policy", "policy.yaml", "--from", "2026-06-01"]);
    }

    fn content(&self, ledger: &str) -> Content {
        let place = match Location::of(Path::new(ledger)).unwrap() {
            Location::Folder(folder) => Location::Folder(self.dir.path().join(folder)),
            bucket => bucket,
        };
        let Location::Bucket { bucket, prefix } = &place else {
            return content(&Ledger::open_at(&place).unwrap());
        };
        let mut config = S3Config::from_env(bucket, prefix).unwrap();
        let endpoint = ("AWS_ENDPOINT_URL", format!("http://{}", self.server));
        config.variables = KEY.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
        config
            .variables
            .extend([endpoint, ("AWS_ALLOW_HTTP", "true".to_owned())].map(|(n, v)| (n.to_owned(), v)));
        config.timeout = Duration::from_secs(1);
        content(&Ledger::open_in(Arc::new(S3Store::open(config).unwrap()), ledger).unwrap())
    }
}

/// `days` days of `n` calls, the first `k` of each with a value that the candidate refuses, and lines that are none.
fn calls(days: i32, n: usize, k: usize) -> String {
    let first = Day::parse("2026-06-01").unwrap();
    let mut out = String::new();
    for day in (0..days).map(|d| first.plus(d)) {
        for i in 0..n {
            let call = json!({
                "type": "tool_call", "schema_version": 1, "call_id": format!("{day}-{i}"),
                "ts": format!("{day}T10:{i:02}:00Z"), "tool_id": "search", "contract_id": "search@1",
                "arguments": {"q": "x", "unit": if i < k { "k" } else { "c" }}, "outcome": {"status": "ok"},
                "envelope": {"agent_id": "a", "session_id": format!("s{i}")}
            });
            writeln!(out, "{call}").unwrap();
        }
        writeln!(out, "{{\"type\": \"tool_call\", broken").unwrap();
        let clock = json!({"type": "clock", "schema_version": 1, "ts": format!("{}T01:00:00Z", day.plus(1))});
        writeln!(out, "{clock}").unwrap();
    }
    out
}

const RUN: [&str; 4] = ["run", "calls.jsonl", "--chunk-records", "10"];

fn equal(got: &Content, wanted: &Content) {
    assert_eq!(got.balance, wanted.balance);
    assert_eq!(got.covered, wanted.covered);
    assert!(got.sums == wanted.sums, "summed tallies differ");
    assert_eq!(got.dead, wanted.dead);
    assert!(got.calls == wanted.calls, "call rows differ");
    assert!(got.results == wanted.results, "result rows differ");
}

#[test]
fn every_command_does_over_a_bucket_what_it_does_on_a_disk() {
    let Some(moto) = Moto::start() else { return };
    moto.bucket("books");
    let bench = Bench::new(moto.address);
    let (disk, bucket) = ("led", "s3://books/team/led");
    for ledger in [disk, bucket] {
        bench.prepared(ledger);
        bench.ok(ledger, &RUN);
        assert!(bench.run(ledger, &["ledger", "init", ledger]).err.contains("is a ledger already"));
    }
    let wanted = bench.content(disk);
    assert_eq!((wanted.balance.calls, wanted.balance.dead, wanted.results.len()), (240, 6, 240));
    equal(&bench.content(bucket), &wanted);

    // The same words, but for digests, random ids and the place.
    assert_eq!(bench.ok(bucket, &["status"]), bench.ok(disk, &["status"]));
    let decided = |ledger: &str| {
        let said = bench.run(ledger, &["decide", "search", "--format", "json"]);
        let verdict: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}{}", said.out, said.err));
        (said.code, verdict)
    };
    let ((code, there), (also, here)) = (decided(bucket), decided(disk));
    assert_eq!((code, also), (1, 1), "two of forty calls a day are refused");
    for part in ["verdict", "totals", "checks", "flags", "days", "categories"] {
        assert_eq!(there[part], here[part], "{part}");
    }
    let tried = ["try", "old.json", "new.json", "--tool", "search", "--ledger"];
    let [over, on] = [bucket, disk].map(|ledger| bench.run(ledger, &[tried.as_slice(), &[ledger]].concat()));
    assert_eq!((over.code, over.out.replace(bucket, disk)), (on.code, on.out), "{}", over.err);
    let verified: Value =
        serde_json::from_str(&bench.ok(bucket, &["ledger", "verify", bucket, "--format", "json"])).unwrap();
    assert_eq!(verified["outcome"], "intact");
    let files = bench.ok(bucket, &["ledger", "files", bucket]);
    assert_eq!(files.lines().count(), bench.ok(disk, &["ledger", "files", disk]).lines().count());
    assert!(
        files.lines().all(|l| l.starts_with("s3://books/team/led/") && l.ends_with(".parquet")),
        "{files}"
    );
    assert!(bench.run(bucket, &RUN).err.contains("nothing new"), "the same file again");

    // An export from a bucket into a bucket and into a folder: the same verdict, to the byte.
    for to in ["s3://books/export", "export"] {
        let export = ["ledger", "export", bucket, "search", to, "--with-arguments"];
        bench.ok(bucket, &export);
        let asked = ["decide", "search", "--format", "json", "--dry-run", "--ledger"];
        let [there, here] = [bucket, to].map(|ledger| bench.run(ledger, &[&asked[..], &[ledger]].concat()));
        assert_eq!((there.code, there.out), (here.code, here.out), "{}{}", there.err, here.err);
        let verified = bench.run(to, &["ledger", "verify", to]);
        assert!(verified.code == 3 && verified.out.contains("exported is intact"), "{}", verified.out);
        let again = bench.run(bucket, &export);
        assert!(again.code == 2 && again.err.contains("nothing was changed"), "{}", again.err);
        assert!(bench.run(to, &["run", "calls.jsonl", "--source", "x"]).err.contains("is an export of"));
    }

    for to in ["s3://books/team/led/x", "s3://books/team", "s3://books"] {
        let said = bench.run(bucket, &["ledger", "export", bucket, "search", to]);
        assert!(said.code == 2 && said.err.contains("lies in the ledger"), "{to}: {}", said.err);
    }
    let filled = bench.run(bucket, &["ledger", "export", bucket, "search", "s3://books/export/days"]);
    assert!(filled.code == 2 && filled.err.contains("something stands there"), "{}", filled.err);

    // Another prefix of the bucket is no ledger, and nothing was written there.
    let other = bench.run("s3://books/team", &["status"]);
    assert!(other.code != 0 && other.err.contains("s3://books/team is not a ledger"), "{}", other.err);
}

#[test]
fn a_run_killed_over_and_over_on_a_bad_network_records_everything_once() {
    const KILLS: u64 = 10;
    let Some(moto) = Moto::start() else { return };
    moto.bucket("books");
    let seed = std::env::var("LASTCALL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| {
        u64::from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos())
    });
    println!("LASTCALL_SEED={seed} repeats these moments");
    let rng = Mutex::new(Rng::new(seed));
    let faults = [
        Fault::Slow(Duration::from_millis(100)),
        Fault::Answers(500, "InternalError"),
        Fault::Answers(503, "SlowDown"),
        Fault::Answers(409, "ConditionalRequestConflict"),
        Fault::DoneButAnswers(500, "InternalError"),
        Fault::Cut,
        Fault::DoneButCut,
        Fault::CutInside,
        Fault::DoneButSilent,
        Fault::DoneLater(Duration::from_millis(1200)),
    ];
    let proxy = Proxy::start(moto.address, move |_| {
        let mut rng = rng.lock().unwrap();
        if rng.below(100) >= 8 {
            return Fault::None;
        }
        // What costs a whole time-out is rarer.
        let kinds = if rng.below(5) == 0 { faults.len() } else { faults.len() - 2 };
        faults[rng.below(kinds as u64) as usize]
    });
    let bench = Bench::new(proxy.address);
    let (disk, bucket) = ("led", "s3://books/led");
    bench.prepared(disk);
    bench.ok(disk, &RUN);
    bench.prepared(bucket);
    let direct = Bench { server: moto.address, dir: bench.dir };
    let bench = Bench::new(proxy.address);
    // How long a run takes: on a ledger of its own.
    bench.prepared("s3://books/timed");
    let begun = Instant::now();
    bench.ok("s3://books/timed", &RUN);
    let whole = begun.elapsed();

    let mut moments = Rng::new(seed ^ 1);
    let entries = |of: &Content| of.covered.1;
    let (mut before, mut grown, mut finished) = (0, 0, 0);
    let mut then = 0;
    for _ in 0..KILLS {
        let mut child =
            bench.command(bucket, &RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let most = u64::try_from(whole.as_micros()).unwrap() / 4;
        std::thread::sleep(Duration::from_micros(moments.below(most.max(1))));
        let early = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        let now = entries(&direct.content(bucket));
        assert!(now >= then, "an entry is never taken back");
        match (early, now > then) {
            (true, _) => finished += 1,
            (_, true) => grown += 1,
            _ => before += 1,
        }
        then = now;
    }
    bench.ok(bucket, &RUN);
    println!(
        "a run takes {whole:.2?}; {KILLS} kills: {grown} after a commit, {before} before one, {finished} came too late; \
         requests by fault {:?}",
        proxy.hits()
    );
    equal(&direct.content(bucket), &direct.content(disk));
    let verified = direct.run(bucket, &["ledger", "verify", bucket]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    assert!(grown > 0 && finished < KILLS, "no kill landed inside a run");
}

#[test]
fn tls_trusts_what_it_is_told_to_trust_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let Some(moto) = Moto::start_secure(folder.path(), "books") else { return };
    let endpoint = format!("https://{}", moto.address);
    let mut settings = KEY.to_vec();
    settings.push(("AWS_ENDPOINT_URL", &endpoint));
    let init = ["ledger", "init", "s3://books/led"];
    let said = answer(command(&settings).args(init));
    assert!(said.code != 0 && said.err.contains("AWS_CA_BUNDLE"), "{}{}", said.out, said.err);
    let said = answer(command(&settings).env("AWS_CA_BUNDLE", folder.path().join("none.pem")).args(init));
    assert!(said.code != 0 && said.err.contains("none.pem"), "{}{}", said.out, said.err);
    let said = answer(command(&settings).env("AWS_CA_BUNDLE", folder.path().join("ca.pem")).args(init));
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

#[test]
fn what_is_missing_is_named_before_a_request_is_made() {
    let told = |settings: &[(&str, &str)], ledger: &str| {
        let said = answer(command(settings).args(["status", "--ledger", ledger]));
        assert_eq!(said.code, 2, "{}{}", said.out, said.err);
        said.err
    };
    let local = ("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    for (settings, ledger, named) in [
        (vec![], "s3://books/led", "AWS_REGION is not set"),
        (vec![KEY[0], KEY[2]], "s3://books/led", "AWS_SECRET_ACCESS_KEY is not"),
        (vec![KEY[1], KEY[2]], "s3://books/led", "AWS_ACCESS_KEY_ID is not"),
        (
            vec![local, ("AWS_ALLOW_HTTP", "1")],
            "s3://books/led",
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set",
        ),
        (vec![KEY[0], KEY[1], local], "s3://books/led", "AWS_ALLOW_HTTP=true"),
        (KEY.to_vec(), "s3://", "s3://BUCKET/PREFIX"),
        (KEY.to_vec(), "gs://books/led", "S3-compatible"),
    ] {
        let err = told(&settings, ledger);
        assert!(err.contains(named), "{settings:?}: {err}");
    }
    // Nobody listens at port 9 of this machine: that is no mistake in the command.
    let settings = [KEY[0], KEY[1], local, ("AWS_ALLOW_HTTP", "1"), ("LASTCALL_S3_PATIENCE", "1")];
    let said = answer(command(&settings).args(["status", "--ledger", "s3://books/led"]));
    assert!(said.code == 75 && said.err.contains("cannot be reached"), "{} {}", said.code, said.err);
    let said = answer(command(&settings).env("LASTCALL_S3_PATIENCE", "soon").args([
        "status",
        "--ledger",
        "s3://b/led",
    ]));
    assert!(said.code == 2 && said.err.contains("LASTCALL_S3_PATIENCE"), "{} {}", said.code, said.err);
}
