//! `make bench-mirror`: an HTTP candidate behind `lastcall-mirror` on a real broker, beside a plain load generator that asks the
//! same candidate with the same client library and as many requests at once. Alternating runs, medians, written to
//! `target/figures/mirror.json`. Never asserts a time: machines are shared and noisy.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::routing::post;
use lastcall_benches::measure::{Used, median, run};
use lastcall_event::Timestamp;
use lastcall_ledger::system_now;
use lastcall_tests::services::broker::Broker;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};
use serde_json::{Value, json};
use tokio::runtime::Builder;

const UPSTREAM: &str = "tool-calls";
const PARTITIONS: i32 = 6;
const CONCURRENCY: usize = 64;
/// What the candidate takes for a call, milliseconds.
const SERVICE: [u64; 2] = [5, 0];

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["candidate", file] => candidate(Path::new(file)),
        ["generate", url, count] => generate(url, count.parse()?),
        [] => bench(),
        _ => bail!("usage: mirror | mirror candidate PORT-FILE | mirror generate URL COUNT"),
    }
}

/// The candidate: answers `/5` after five milliseconds, `/0` at once.
fn candidate(file: &Path) -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut routes = Router::new();
        for wait in SERVICE {
            routes = routes.route(&format!("/{wait}"), post(answer).with_state(wait));
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        std::fs::write(file, listener.local_addr()?.to_string())?;
        axum::serve(listener, routes).await?;
        Ok(())
    })
}

async fn answer(State(wait): State<u64>, body: Bytes) -> ([(header::HeaderName, &'static str); 1], String) {
    if wait > 0 {
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = json!({"status": "ok", "call_id": asked["call_id"], "result": result()});
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string())
}

fn result() -> Value {
    json!({"found": 3, "items": [{"id": 1, "title": "one"}, {"id": 2, "title": "two"}, {"id": 3, "title": "three"}]})
}

fn arguments(number: u64) -> Value {
    json!({"q": format!("query {number}"), "limit": number % 50})
}

/// The plain load generator: as many requests at once as the mirror may have, nothing else.
fn generate(url: &str, count: u64) -> Result<()> {
    // The client wants a provider even where it speaks plain HTTP alone; a second one changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(CONCURRENCY)
            .build()?;
        let next = Arc::new(AtomicU64::new(0));
        let tasks: Vec<_> = (0..CONCURRENCY)
            .map(|_| {
                let (client, next, url) = (client.clone(), next.clone(), url.to_owned());
                tokio::spawn(async move {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return Ok::<(), anyhow::Error>(());
                        }
                        let body = json!({"arguments": arguments(number), "mode": "replica", "tool": "search",
                            "contract": "search@2", "call_id": format!("call-{number}")});
                        let sent = client
                            .post(&url)
                            .header("content-type", "application/json")
                            .body(body.to_string());
                        let text = sent.send().await?.error_for_status()?.bytes().await?;
                        ensure!(text.len() > 20, "no answer");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        Ok(())
    })
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn bench() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let Some(broker) = Broker::start() else {
        println!("bench-mirror: skipped, no broker");
        return Ok(());
    };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let dir = target.join("bench/mirror");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let wanted =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (count, rounds) = (wanted("LASTCALL_BENCH_CALLS", 50_000), wanted("LASTCALL_BENCH_ROUNDS", 5));
    broker.topic(UPSTREAM, PARTITIONS, &[("retention.ms", "-1")]);
    produce(&broker, count)?;
    registry(&target.join("release/lastcall"), &dir)?;
    let me = std::env::current_exe()?;
    let place = dir.join("address");
    let _server = Server(Command::new(&me).arg("candidate").arg(&place).stdout(Stdio::null()).spawn()?);
    let begun = Instant::now();
    let address = loop {
        match std::fs::read_to_string(&place) {
            Ok(address) if !address.is_empty() => break address,
            _ if begun.elapsed() > Duration::from_secs(10) => bail!("the candidate does not start"),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut figures =
        json!({"calls": count, "rounds": rounds, "concurrency": CONCURRENCY, "partitions": PARTITIONS});
    let mut peak = 0;
    for wait in SERVICE {
        let url = format!("http://{address}/{wait}");
        let [mut plain, mut mirrored, mut idle]: [Vec<Used>; 3] = Default::default();
        for round in 0..rounds {
            plain.push(run(Command::new(&me).args(["generate", &url, &count.to_string()]))?);
            let output = format!("rows-{wait}-{round}");
            broker.topic(&output, PARTITIONS, &[]);
            let mirror = |group: &str| mirror(&target, &dir, &broker, &output, &url, group);
            mirrored.push(run(&mut mirror(&format!("g-{wait}-{round}"))?)?);
            ensure!(written(&broker, &output)? >= count as i64, "a call has no row");
            // Joining a group and finding that nothing is left is done once, whatever the number of calls.
            idle.push(run(&mut mirror(&format!("i-{wait}-{round}"))?)?);
            broker.delete(&output);
        }
        let start = median(idle.iter().map(|u| u.wall_s));
        let wall = |used: &[Used]| median(used.iter().map(|u| u.wall_s));
        let (theirs, ours) = (count as f64 / wall(&plain), count as f64 / (wall(&mirrored) - start));
        let cpu = |used: &[Used]| median(used.iter().map(|u| u.cpu_s)) * 1e6 / count as f64;
        peak = peak.max(mirrored.iter().map(|u| u.peak_mib).max().unwrap_or_default());
        let round2 = |x: f64| (x * 100.0).round() / 100.0;
        let of = json!({
            "calls_per_s": ours.round(), "generator_calls_per_s": theirs.round(), "ratio_to_generator": round2(ours / theirs),
            "start_s": round2(start), "cpu_us_per_call": round2(cpu(&mirrored)), "generator_cpu_us_per_call": round2(cpu(&plain)),
        });
        if wait == SERVICE[0] {
            for name in ["calls_per_s", "ratio_to_generator"] {
                figures[name] = of[name].clone();
            }
        }
        figures[format!("service_{wait}_ms")] = of;
    }
    figures["peak_rss_mib"] = peak.into();
    let out = target.join("figures");
    std::fs::create_dir_all(&out)?;
    std::fs::write(out.join("mirror.json"), format!("{figures:#}\n"))?;
    println!("{figures:#}");
    Ok(())
}

fn mirror(
    target: &Path,
    dir: &Path,
    broker: &Broker,
    output: &str,
    url: &str,
    group: &str,
) -> Result<Command> {
    let config = dir.join(format!("{group}.toml"));
    let text = format!(
        "brokers = {:?}\nregistry = {:?}\nto = {output:?}\n[defaults]\nconcurrency = {CONCURRENCY}\n[tools.search]\n\
         candidates = [{{contract = \"search@2\", suppression = \"replica\", http = {url:?}}}]\n",
        broker.address,
        dir.join("tools").display().to_string(),
    );
    std::fs::write(&config, text)?;
    let mut command = Command::new(target.join("release/lastcall-mirror"));
    command
        .arg("--config")
        .arg(config)
        .args(["--once", "--from", "earliest", "--group", group, "--look", "1"]);
    Ok(command)
}

fn registry(lastcall: &Path, dir: &Path) -> Result<()> {
    for version in ["1", "2"] {
        let definition = json!({"name": "search", "description": "Searches.", "inputSchema": {"type": "object",
            "properties": {"q": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["q"]}});
        let file = dir.join("definition.json");
        std::fs::write(&file, definition.to_string())?;
        let mut command = Command::new(lastcall);
        command.args(["contract", "add"]).arg(file).args(["--tool-id", "search", "--version", version]);
        run(command.args(["--side-effect", "read", "--risk", "low", "--registry"]).arg(dir.join("tools")))?;
    }
    Ok(())
}

fn produce(broker: &Broker, count: u64) -> Result<()> {
    let producer: ThreadedProducer<_> =
        ClientConfig::new().set("bootstrap.servers", &broker.address).set("linger.ms", "20").create()?;
    let now: Timestamp = system_now();
    for number in 0..count {
        let call = json!({"type": "tool_call", "schema_version": 1, "call_id": format!("call-{number}"), "ts": now,
            "tool_id": "search", "contract_id": "search@1", "arguments": arguments(number),
            "outcome": {"status": "ok", "executed": true, "result": result(), "latency_ms": 12},
            "envelope": {"agent_id": format!("agent-{}", number % 7), "session_id": format!("s-{}", number / 3),
                "run_id": format!("run-{}", number / 20), "model": "m-large", "cohort": "eu"}})
        .to_string();
        let partition = i32::try_from(number / 20 % PARTITIONS as u64)?;
        let mut sent = producer.send(BaseRecord::<(), str>::to(UPSTREAM).payload(&call).partition(partition));
        while let Err((_, record)) = sent {
            std::thread::sleep(Duration::from_millis(20));
            sent = producer.send(record);
        }
    }
    producer.flush(Duration::from_secs(60))?;
    Ok(())
}

fn written(broker: &Broker, topic: &str) -> Result<i64> {
    let client: BaseConsumer = ClientConfig::new().set("bootstrap.servers", &broker.address).create()?;
    let mut sum = 0;
    for partition in 0..PARTITIONS {
        sum += client.fetch_watermarks(topic, partition, Duration::from_secs(10)).context("the output")?.1;
    }
    Ok(sum)
}
