//! A real Apache Kafka, one node, from Maven artefacts, which the test fetches by itself and keeps under `target/`. It says
//! so when it skips; `LASTCALL_SERVICES=required` makes that a failure, `LASTCALL_TEST_BROKERS` names another cluster.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use tempfile::TempDir;

const POM: &str = include_str!("kafka/pom.xml");
const LOG: &str = include_str!("kafka/log4j2.properties");

/// A running broker; it ends with the test.
pub struct Broker {
    node: Option<Node>,
    /// What clients are given.
    pub address: String,
}

struct Node {
    data: TempDir,
    lib: PathBuf,
    child: Child,
}

impl Broker {
    /// Starts one; `None`, with a message, where Java, Maven or the artefacts are missing.
    pub fn start() -> Option<Self> {
        if let Ok(address) = std::env::var("LASTCALL_TEST_BROKERS") {
            return Some(Self { node: None, address });
        }
        let lib = match libraries() {
            Ok(lib) => lib,
            Err(why) if std::env::var("LASTCALL_SERVICES").is_ok_and(|v| v == "required") => panic!("{why}"),
            Err(why) => {
                eprintln!("SKIPPED: no Kafka to test against: {why}");
                return None;
            }
        };
        let data = TempDir::new().unwrap();
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (port, controller) = (free(), free());
        let address = format!("127.0.0.1:{port}");
        let properties = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://{address},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://{address}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             controller.listener.names=CONTROLLER\ninter.broker.listener.name=PLAINTEXT\nlog.dirs={}\n\
             auto.create.topics.enable=false\ndefault.replication.factor=1\noffsets.topic.replication.factor=1\n\
             offsets.topic.num.partitions=4\ntransaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\ntransaction.state.log.num.partitions=4\n\
             share.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1\n\
             group.initial.rebalance.delay.ms=0\nbroker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500\n\
             group.min.session.timeout.ms=1000\nmessage.max.bytes=20971520\nlog.retention.check.interval.ms=500\n\
             log.cleaner.backoff.ms=200\nlog.initial.task.delay.ms=200\n",
            data.path().join("log").display()
        );
        std::fs::write(data.path().join("server.properties"), properties).unwrap();
        let formatted = java(&lib)
            .args(["-Xmx128m", "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", "format"])
            .args(["--ignore-formatted", "-t", "kfAAAAAAAAAAAAAAAAAAAA", "-c"])
            .arg(data.path().join("server.properties"))
            .output()
            .unwrap();
        assert!(formatted.status.success(), "{}", String::from_utf8_lossy(&formatted.stderr));
        let child = serve(&lib, data.path());
        let broker = Self { node: Some(Node { data, lib, child }), address };
        broker.ready();
        Some(broker)
    }

    fn ready(&self) {
        let client: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", &self.address)
            .set("log_level", "0")
            .create()
            .unwrap();
        let begun = Instant::now();
        while client.fetch_metadata(None, Duration::from_secs(1)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(120), "the broker does not answer: {}", self.log());
        }
    }

    fn log(&self) -> String {
        let text = self.node.as_ref().map(|n| std::fs::read_to_string(n.data.path().join("out")));
        text.and_then(Result::ok).unwrap_or_default()
    }

    /// kill -9. Another cluster, which the environment named, is left alone: then this answers `false`.
    pub fn kill(&mut self) -> bool {
        let Some(node) = &mut self.node else { return false };
        node.child.kill().unwrap();
        node.child.wait().unwrap();
        true
    }

    /// Sends a signal to it: `STOP` has it stand still, `CONT` go on. Another cluster is left alone.
    pub fn signal(&self, name: &str) {
        if let Some(node) = &self.node {
            let done =
                Command::new("kill").args([&format!("-{name}"), &node.child.id().to_string()]).status();
            assert!(done.unwrap().success());
        }
    }

    /// kill -9 and a start on the same data. Another cluster, which the environment named, is left alone.
    pub fn kill_and_restart(&mut self) {
        if let Some(node) = &mut self.node {
            node.child.kill().unwrap();
            node.child.wait().unwrap();
            node.child = serve(&node.lib, node.data.path());
            self.ready();
        }
    }

    /// Makes a topic; settings as `name=value`.
    pub fn topic(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
        for (key, value) in settings {
            topic = topic.set(key, value);
        }
        let done = wait(self.admin().create_topics([&topic], &AdminOptions::new()));
        done.unwrap()[0].clone().unwrap();
        let client: BaseConsumer =
            ClientConfig::new().set("bootstrap.servers", &self.address).create().unwrap();
        let begun = Instant::now();
        while client.fetch_watermarks(name, partitions - 1, Duration::from_secs(1)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "topic {name} does not appear");
        }
    }

    /// How many partitions a topic has; none: 0.
    pub fn partitions(&self, topic: &str) -> usize {
        let client: BaseConsumer =
            ClientConfig::new().set("bootstrap.servers", &self.address).create().unwrap();
        let metadata = client.fetch_metadata(Some(topic), Duration::from_secs(5)).unwrap();
        metadata.topics().iter().filter(|t| t.error().is_none()).map(|t| t.partitions().len()).sum()
    }

    /// Deletes a topic, and waits until it is gone.
    pub fn delete(&self, topic: &str) {
        wait(self.admin().delete_topics(&[topic], &AdminOptions::new())).unwrap();
        let begun = Instant::now();
        while self.partitions(topic) > 0 {
            assert!(begun.elapsed() < Duration::from_secs(30), "topic {topic} does not go");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A client for what brokers are told to do.
    pub fn admin(&self) -> AdminClient<DefaultClientContext> {
        ClientConfig::new().set("bootstrap.servers", &self.address).create().unwrap()
    }
}

/// Waits for an answer of the admin client.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(node) = &mut self.node {
            let _ = node.child.kill();
            let _ = node.child.wait();
        }
    }
}

fn java(lib: &Path) -> Command {
    let mut command = Command::new("java");
    command.arg("-cp").arg(format!("{}/*", lib.display())).stdin(Stdio::null());
    command
}

fn serve(lib: &Path, data: &Path) -> Child {
    let out = File::options().create(true).append(true).open(data.join("out")).unwrap();
    java(lib)
        .args(["-Xms192m", "-Xmx384m", "-XX:TieredStopAtLevel=1"])
        .arg(format!("-Dlog4j2.configurationFile={}", lib.with_file_name("log4j2.properties").display()))
        .arg("kafka.Kafka")
        .arg(data.join("server.properties"))
        .stdout(out.try_clone().unwrap())
        .stderr(out)
        .spawn()
        .unwrap()
}

/// The broker's libraries, fetched at the first call.
fn libraries() -> Result<PathBuf, String> {
    static FETCHED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    FETCHED.get_or_init(fetch).clone()
}

fn fetch() -> Result<PathBuf, String> {
    // target/<profile>/deps/<test> → target/tmp
    let test = std::env::current_exe().map_err(|e| e.to_string())?;
    let target = test.ancestors().nth(3).ok_or("the test lies in no target folder")?;
    let folder = target.join("tmp/kafka-4.4.0");
    let (lib, done) = (folder.join("lib"), folder.join("installed"));
    if done.is_file() {
        return Ok(lib);
    }
    let failed = |what: &str, why: &dyn std::fmt::Display| format!("{what}: {why}");
    Command::new("java").arg("-version").output().map_err(|e| failed("java", &e))?;
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|e| failed("its folder", &e))?;
    for (name, text) in [("pom.xml", POM), ("log4j2.properties", LOG)] {
        std::fs::write(folder.join(name), text).map_err(|e| failed(name, &e))?;
    }
    let fetched = Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(folder.join("pom.xml"))
        .args(["dependency:copy-dependencies", "-DincludeScope=runtime"])
        .arg(format!("-DoutputDirectory={}", lib.display()))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failed("mvn", &e))?;
    if !fetched.status.success() {
        return Err(failed("mvn", &String::from_utf8_lossy(&fetched.stdout).trim().replace('\n', " ")));
    }
    std::fs::write(done, "4.4.0").map_err(|e| failed("a mark", &e))?;
    Ok(lib)
}
