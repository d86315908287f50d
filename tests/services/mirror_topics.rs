//! What topics hold and what becomes of it: markers of transactions, holes, poison, more partitions, retention; a mirror that
//! stopped at noon; settings that change while it runs; health and metrics.

use std::time::Duration;

use lastcall_event::{Day, Timestamp};
use lastcall_ledger::system_now;
use lastcall_tests::services::broker::{Broker, wait};
use rdkafka::admin::{AdminOptions, NewPartitions};
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::{Value, json};

use crate::candidate::{Candidate, Reply, found};
use crate::kafka_service::get;
use crate::mirror::{
    OUTPUT, UPSTREAM, World, call, call_at, clock, feed, honest, id, missing, number, put, stands, topics,
    until,
};
use crate::topic::producer;

const SECOND: Duration = Duration::from_secs(1);

fn answering() -> Candidate {
    Candidate::start(|asked| Reply::Answer(found(number(&asked.body))))
}

fn bytes(values: impl IntoIterator<Item = Value>) -> Vec<Vec<u8>> {
    values.into_iter().map(|value| value.to_string().into_bytes()).collect()
}

fn into(broker: &Broker, topic: &str, partition: i32, values: &[Vec<u8>]) {
    put(broker, topic, values.iter().map(|value| (partition, value.as_slice())));
}

/// Transactions, holes, tombstones, poison, a producer's own records, planted calls in the output: everything is mirrored or
/// passed on, the rows join over what is no record, and a second run goes on behind the last row.
#[test]
fn whatever_a_topic_holds_is_mirrored_or_passed_on() {
    let Some(broker) = Broker::start() else { return };
    topics(&broker, 2);
    let world = World::new();
    let ledger = world.ledger("system", "1h");
    let candidate = answering();
    world.searching("mirror.toml", &broker, &candidate.url("/"), "");
    into(&broker, UPSTREAM, 0, &bytes((0..20).map(call)));
    let transaction: ThreadedProducer<_> = ClientConfig::new()
        .set("bootstrap.servers", &broker.address)
        .set("transactional.id", "t")
        .create()
        .unwrap();
    transaction.init_transactions(10 * SECOND).unwrap();
    for (from, commits) in [(100, true), (200, false), (300, true)] {
        transaction.begin_transaction().unwrap();
        for value in bytes((from..from + 10).map(call)) {
            transaction
                .send(BaseRecord::<(), [u8]>::to(UPSTREAM).payload(&value).partition(0))
                .map_err(|(e, _)| e)
                .unwrap();
        }
        transaction.flush(10 * SECOND).unwrap();
        match commits {
            true => transaction.commit_transaction(10 * SECOND).unwrap(),
            false => transaction.abort_transaction(10 * SECOND).unwrap(),
        }
    }
    let plain = producer(&broker);
    plain.send(BaseRecord::<str, str>::to(UPSTREAM).key("k").partition(1)).map_err(|(e, _)| e).unwrap();
    plain.flush(10 * SECOND).unwrap();
    let poison: [&[u8]; 4] = [b"\xff\xfe\x00", b"{", b"[]", b"{\"type\":\"tool_call\"}"];
    put(&broker, UPSTREAM, poison.map(|value| (1, value)));
    let loss = json!({"type": "loss", "schema_version": 1, "tool_id": "search", "count": 3,
        "interval": {"from": "2026-06-01T00:00:00Z", "to": "2026-06-01T00:01:00Z"}});
    let counted = json!({"type": "coverage", "schema_version": 1, "tool_id": "search", "hour": "2026-06-01T00:00:00Z",
        "count": 7, "through": "2026-06-01T01:00:00Z"});
    into(&broker, UPSTREAM, 1, &bytes([loss.clone(), counted.clone()]));
    into(&broker, UPSTREAM, 1, &bytes((400..410).map(call)));

    let none = world.mirror("mirror.toml", &["--once"]).output().unwrap();
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(none.status.code() == Some(2) && said.contains("--from earliest"), "{said}");
    let first = world.once("mirror.toml", &[]);
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(first.err.contains("wrote 50 rows") && first.err.contains("4 dead"), "{}", first.err);
    assert_eq!(honest(&broker), 0, "no row twice");
    let here = stands(&broker, OUTPUT);
    for value in poison {
        assert_eq!(here[1].iter().filter(|s| s.value == value).count(), 1, "byte for byte");
    }
    for copied in [&loss, &counted] {
        assert_eq!(here[1].iter().filter(|s| s.value == copied.to_string().as_bytes()).count(), 1);
    }
    let aborted =
        |s: &&crate::mirror::Stands| id(s).is_some_and(|id| id.starts_with("call-2") && id.len() == 8);
    assert_eq!(here[0].iter().filter(aborted).count(), 0, "what was aborted never was");
    assert!(here.iter().flatten().all(|s| s.mark.is_some()));

    // What no mirror wrote stands at the end of the output: markers, and calls that somebody planted.
    into(&broker, OUTPUT, 0, &bytes((900..1100).map(call)));
    transaction.begin_transaction().unwrap();
    let planted = call(1200).to_string();
    transaction
        .send(BaseRecord::<(), str>::to(OUTPUT).payload(&planted).partition(1))
        .map_err(|(e, _)| e)
        .unwrap();
    transaction.flush(10 * SECOND).unwrap();
    transaction.commit_transaction(10 * SECOND).unwrap();
    feed(&broker, 500, 20, 2);
    let again = world.once("mirror.toml", &[]);
    assert!(again.code == 0 && again.err.contains("wrote 20 rows"), "{}", again.err);
    assert_eq!(candidate.count("/").came, 70, "nothing is called twice");
    world.record(&broker);
    assert_eq!(missing(&ledger), 0);
    let balance =
        ledger.partitions().unwrap().iter().flat_map(|p| p.chunks()).fold((0, 0, 0), |sum, (_, c)| {
            (sum.0 + c.balance.calls, sum.1 + c.balance.dead, sum.2 + c.balance.loss)
        });
    assert_eq!(balance, (70 + 201, 4, 1));
}

/// A compacted upstream has holes, also before and behind its records, which the rows join over.
#[test]
fn holes_of_compaction_are_vouched_for() {
    let Some(broker) = Broker::start() else { return };
    let compacts = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "100"),
        ("min.cleanable.dirty.ratio", "0.001"),
        ("max.compaction.lag.ms", "100"),
        ("message.timestamp.type", "LogAppendTime"),
    ];
    broker.topic(UPSTREAM, 1, &compacts);
    broker.topic(OUTPUT, 1, &[]);
    let world = World::new();
    let ledger = world.ledger("system", "1h");
    let candidate = answering();
    world.searching("mirror.toml", &broker, &candidate.url("/"), "");
    let producer = producer(&broker);
    let keyed = |from: usize, count: usize| {
        for n in from..from + count {
            let (key, value) = (format!("k{}", n % 7), call(n).to_string());
            let record = BaseRecord::to(UPSTREAM).key(&key).payload(&value).partition(0);
            producer.send(record).map_err(|(e, _)| e).unwrap();
        }
        producer.flush(30 * SECOND).unwrap();
    };
    let mut sent = 0;
    until("the broker compacts", || {
        keyed(sent, 20);
        sent += 20;
        std::thread::sleep(SECOND / 2);
        stands(&broker, UPSTREAM)[0].len() + 30 < sent
    });
    let first = world.once("mirror.toml", &[]);
    assert_eq!(first.code, 0, "{}", first.err);
    let rows = |broker: &Broker| stands(broker, OUTPUT)[0].iter().filter(|s| id(s).is_some()).count();
    let some = rows(&broker);
    keyed(sent, 40);
    // What it had mirrored last may be gone by now.
    std::thread::sleep(2 * SECOND);
    assert_eq!(world.once("mirror.toml", &[]).code, 0);
    assert!(some < sent && rows(&broker) > some, "{some} of {sent}");
    honest(&broker);
    world.record(&broker);
    assert_eq!(missing(&ledger), 0);
}

/// A range that retention took before it was mirrored is missing, and the ledger says so; an output that would lose rows is refused.
#[test]
fn what_is_gone_is_missing() {
    let Some(broker) = Broker::start() else { return };
    topics(&broker, 1);
    let world = World::new();
    let ledger = world.ledger("system", "1h");
    let candidate = answering();
    world.searching("mirror.toml", &broker, &candidate.url("/"), "");
    feed(&broker, 0, 50, 1);
    assert_eq!(world.once("mirror.toml", &[]).code, 0);
    feed(&broker, 50, 50, 1);
    let mut upto = TopicPartitionList::new();
    upto.add_partition_offset(UPSTREAM, 0, Offset::Offset(80)).unwrap();
    wait(broker.admin().delete_records(&upto, &AdminOptions::new())).unwrap();
    let said = world.once("mirror.toml", &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("30 records are gone"), "{}", said.err);
    world.record(&broker);
    assert_eq!(missing(&ledger), 30);
    broker.topic("compacted", 1, &[("cleanup.policy", "compact")]);
    world.config("odd.toml", &broker, "to = \"compacted\"\nfrom = \"tool-calls\"");
    let odd = world.once("odd.toml", &[]);
    assert!(odd.code == 4 && odd.err.contains("is compacted"), "{}", odd.err);
}

/// Topics of different sizes are refused; a partition that comes later, in both, is mirrored from its first record.
#[test]
fn partitions_are_added_to_both_or_it_says_so() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(UPSTREAM, 2, &[("message.timestamp.type", "LogAppendTime")]);
    broker.topic(OUTPUT, 1, &[]);
    let world = World::new();
    let candidate = answering();
    world.searching("mirror.toml", &broker, &candidate.url("/"), "");
    let add = |topic: &str, count: usize| {
        wait(broker.admin().create_partitions([&NewPartitions::new(topic, count)], &AdminOptions::new()))
            .unwrap();
        until("the partition is there", || broker.partitions(topic) == count);
    };
    let odd = world.once("mirror.toml", &[]);
    assert_eq!(odd.code, 4, "{}", odd.err);
    assert!(odd.err.contains("`tool-calls` has 2 partitions and `mirrored-calls` 1"), "{}", odd.err);
    assert!(odd.err.contains("--topic mirrored-calls --partitions 2"), "{}", odd.err);
    add(OUTPUT, 2);
    feed(&broker, 0, 40, 2);
    // Nobody mirrors what lies before; what comes later is all of it.
    let latest = world.mirror("mirror.toml", &["--once", "--from", "latest"]).output().unwrap();
    assert_eq!(latest.status.code(), Some(0), "{}", String::from_utf8_lossy(&latest.stderr));
    add(UPSTREAM, 3);
    add(OUTPUT, 3);
    into(&broker, UPSTREAM, 2, &bytes((100..110).map(call)));
    into(&broker, UPSTREAM, 0, &bytes((200..205).map(call)));
    let later = world.mirror("mirror.toml", &["--once", "--from", "latest"]).output().unwrap();
    let said = String::from_utf8_lossy(&later.stderr);
    assert!(later.status.success() && said.contains("wrote 15 rows"), "{said}");
    let deleted = world.mirror("mirror.toml", &["--once"]).output().unwrap();
    assert!(deleted.status.success());
    broker.delete(UPSTREAM);
    broker.topic(UPSTREAM, 3, &[]);
    let anew = world.once("mirror.toml", &[]);
    assert!(anew.code == 4 && anew.err.contains("was deleted and made again"), "{} {}", anew.code, anew.err);
}

/// A clock record is no news of the time where nobody said that time is simulated, and a message that the output cannot take
/// stops nothing: the call is counted, and what it said is not.
#[test]
fn a_clock_moves_no_real_time_and_a_large_message_stops_nothing() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(UPSTREAM, 1, &[("max.message.bytes", "2000000")]);
    broker.topic(OUTPUT, 1, &[("max.message.bytes", "60000")]);
    let world = World::new();
    let candidate = answering();
    world.searching("simulated.toml", &broker, &candidate.url("/"), "");
    let text = std::fs::read_to_string(world.path("simulated.toml")).unwrap();
    world.write("mirror.toml", &text.replace("simulated = true\n", ""));
    let ahead = system_now().day().plus(90).start();
    let large = |number: usize, bytes: usize| {
        let mut call = call(number);
        call["arguments"]["q"] = "x".repeat(bytes).into();
        call
    };
    let messages = [call(0), clock(ahead), call(1), large(2, 59_400), large(3, 150_000), call(4)];
    into(&broker, UPSTREAM, 0, &bytes(messages));
    put(&broker, UPSTREAM, [(0, "[".repeat(100_000).as_bytes()), (0, call(5).to_string().as_bytes())]);
    let done = world.once("mirror.toml", &[]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("wrote 6 rows") && done.err.contains("1 dead"), "{}", done.err);
    assert!(done.err.contains("search search@2: "), "{}", done.err);
    let rows: Vec<Value> = stands(&broker, OUTPUT).remove(0).into_iter().filter_map(|s| s.json).collect();
    let now = system_now().to_string();
    let through: Vec<&str> = rows.iter().filter_map(|row| row["upstream"]["through"].as_str()).collect();
    assert!(!through.is_empty() && through.iter().all(|at| *at <= now.as_str()), "{through:?}");
    let of = |number: usize| rows.iter().find(|row| row["call_id"] == format!("call-{number}")).unwrap();
    for number in [2, 3] {
        let row = of(number);
        assert_eq!((&row["fidelity"], &row["arguments"]), (&json!("not_captured"), &Value::Null), "{number}");
    }
    assert_eq!(of(5)["candidates"][0]["status"], "ok", "what stands behind is mirrored");
}

/// A simulated ledger: clocks are copied in their order. The mirror stops at noon of the second day; the day stays open,
/// and the verdict says which partition, and why.
#[test]
fn a_mirror_that_stopped_at_noon_keeps_the_day_open_and_says_so() {
    let Some(broker) = Broker::start() else { return };
    topics(&broker, 2);
    let world = World::new();
    world.ledger("simulated", "1h");
    world.write("policy.yaml", "burn_in: {tier: T1, profile: article, min_calls: 10, counted_days: 3}");
    world.ok(&["plan", "register", "search", "--policy", "policy.yaml", "--from", "2026-06-01"]);
    let candidate = answering();
    world.searching("mirror.toml", &broker, &candidate.url("/"), "");
    let first = Day::parse("2026-06-01").unwrap();
    let hour = |hours: i64| Timestamp(i64::from(first.0) * 86_400_000 + hours * 3_600_000);
    for (hours, from) in [(10, 0), (34, 100)] {
        for partition in 0..2usize {
            let calls = (from..from + 20).map(|n| call_at(n * 2 + partition, hour(hours), "search"));
            let clocks = [clock(hour(hours + 2))];
            into(&broker, UPSTREAM, partition as i32, &bytes(calls.chain(clocks)));
        }
    }
    // The clock behind the first day, so that it closes; noon of the second is hour 36.
    let said = world.once("mirror.toml", &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    honest(&broker);
    // The output's own time goes on, as it does in a system ledger while the mirror is down.
    for partition in 0..2 {
        into(&broker, OUTPUT, partition, &bytes([clock(hour(90))]));
    }
    world.record(&broker);
    let said = world.run(&["decide", "search", "--format", "json", "--dry-run"]);
    let verdict: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}{}", said.out, said.err));
    assert_eq!(verdict["window"]["closed_through"], "2026-06-01", "{verdict:#}");
    let why = verdict["window"]["open_because"].as_str().unwrap();
    assert!(
        why.contains("mirrored-calls/0: the mirror knows its upstream only through 2026-06-02T12:00:00.000Z")
            && why.contains("mirrored-calls/1"),
        "{why}"
    );
    let status = world.run(&["status", "search"]);
    assert!(
        status.out.contains("the mirror knows its upstream only through 2026-06-02T12:00"),
        "{}",
        status.out
    );
    // Started again, with what came since, it closes.
    for partition in 0..2 {
        into(&broker, UPSTREAM, partition, &bytes([clock(hour(90))]));
    }
    assert_eq!(world.once("mirror.toml", &[]).code, 0);
    world.record(&broker);
    let said = world.run(&["decide", "search", "--format", "json", "--dry-run"]);
    let verdict: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(verdict["window"]["closed_through"], "2026-06-03", "{verdict:#}");
}

/// Switches and limits change while it runs; what needs a restart is refused, and a metric shows it.
#[test]
fn switches_change_while_it_runs_and_the_rest_is_refused() {
    let Some(broker) = Broker::start() else { return };
    topics(&broker, 1);
    let world = World::new();
    let candidate = answering();
    world.searching("mirror.toml", &broker, &candidate.url("/"), "on = true");
    let running = world.start("mirror.toml", &["--heartbeat", "1"], "m");
    let address = running.address();
    let status = |n: usize| -> Option<String> {
        let wanted = format!("call-{n}");
        let here = stands(&broker, OUTPUT);
        let row = here.iter().flatten().find(|s| id(s) == Some(&wanted))?;
        row.json.as_ref()?["candidates"][0]["status"].as_str().map(str::to_owned)
    };
    feed(&broker, 0, 1, 1);
    until("the first is run", || status(0).as_deref() == Some("ok"));
    world.searching("mirror.toml", &broker, &candidate.url("/"), "on = false");
    until("it is taken over", || running.said().contains("taken over"));
    feed(&broker, 1, 1, 1);
    until("the second is not run", || status(1).as_deref() == Some("not_run"));
    let refused = |wanted: &str| {
        let metrics = get(&address, "/metrics").1;
        metrics.contains(&format!("lastcall_mirror_configuration_refused {wanted}\n"))
    };
    assert!(refused("0"));
    for (url, defaults, said) in [
        ("/elsewhere", "on = true", "changed. Start lastcall-mirror again"),
        ("/", "on = \"yes\"", "neither true nor false"),
        ("/", "on = true\n[", "not taken over"),
    ] {
        world.searching("mirror.toml", &broker, &candidate.url(url), defaults);
        until(said, || running.said().contains(said) && refused("1"));
    }
    feed(&broker, 2, 1, 1);
    until("nothing changed", || status(2).as_deref() == Some("not_run"));
    world.searching("mirror.toml", &broker, &candidate.url("/"), "on = true");
    until("mended", || refused("0"));
    feed(&broker, 3, 1, 1);
    until("it is on again", || status(3).as_deref() == Some("ok"));
    assert_eq!(candidate.count("/elsewhere").came, 0);

    // Health, state and metrics; an idle partition says how far it is mirrored.
    until("it is ready", || get(&address, "/health/ready").0 == 200);
    assert_eq!(get(&address, "/health/live"), (200, "ok\n".to_owned()));
    until("everything has its row", || {
        let state: Value = serde_json::from_str(&get(&address, "/state").1).unwrap();
        state["partitions"][0]["mirrored"] == 4 && state["partitions"][0]["through"].is_string()
    });
    let metrics = get(&address, "/metrics").1;
    for line in [
        "lastcall_mirror_messages_total{kind=\"call\"} 4",
        "lastcall_mirror_answers_total{tool=\"search\",contract=\"search@2\",status=\"ok\"} 2",
        "lastcall_mirror_in_flight 0",
        "lastcall_mirror_lag{source=\"tool-calls\",partition=\"0\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let covers = || stands(&broker, OUTPUT)[0].iter().filter(|s| id(s).is_none()).count();
    let before = covers();
    until("an idle partition says how far it is", || covers() > before + 1);
    honest(&broker);
    let second =
        world.mirror("mirror.toml", &["--once", "--group", "o", "--listen", &address]).output().unwrap();
    assert!(second.status.code() == Some(2), "{}", String::from_utf8_lossy(&second.stderr));
    running.signal("TERM");
    let (code, said) = running.ends();
    assert!(code == Some(0) && said.contains("wrote 4 rows"), "{said}");
}

/// A message of more calls than one keeps its rows together, also under a preset that goes through a map.
#[test]
fn mapped_messages_become_native_rows() {
    let Some(broker) = Broker::start() else { return };
    topics(&broker, 1);
    let world = World::new();
    let ledger = world.ledger("system", "1h");
    let candidate = answering();
    world.write("map.toml", "format = 1\neach = \"/calls\"\n[call]\ncall_id = \"/id\"\nts = \"/at\"\ntool_id = \"/tool\"\narguments = \"/input\"\n[outcome]\nstatus = \"/state\"\nresult = \"/result\"\n");
    let rest = format!(
        "preset = \"map\"\nmap = {:?}\n[tools.search]\ncandidates = [{{contract = \"search@2\", suppression = \"snapshot\", \
         http = \"{}\"}}]",
        world.path("map.toml").to_str().unwrap(),
        candidate.url("/")
    );
    world.config("mirror.toml", &broker, &rest);
    let one = |n: usize| {
        json!({"id": format!("call-{n}"), "at": lastcall_ledger::system_now(), "tool": "search",
        "input": {"q": "x"}, "state": "ok", "result": {"found": n}})
    };
    let values = bytes([
        json!({"calls": [one(1), one(2), one(3)]}),
        json!({"calls": []}),
        json!({"calls": [one(4)]}),
        json!({"else": 1}),
    ]);
    into(&broker, UPSTREAM, 0, &values);
    let said = world.once("mirror.toml", &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let here = stands(&broker, OUTPUT);
    let upstream: Vec<(i64, i64, String)> = here[0]
        .iter()
        .filter(|s| id(s).is_some())
        .map(|s| {
            let json = s.json.as_ref().unwrap();
            assert_eq!(json["contract_id"], "search@1", "the one contract that is no candidate");
            assert_eq!(json["candidates"][0]["status"], "ok");
            let at = |name: &str| json["upstream"][name].as_i64().unwrap();
            (at("from"), at("to"), s.mark.clone().unwrap())
        })
        .collect();
    let wanted = [(0, 0, "0/0/1"), (0, 0, "0/0/1"), (0, 1, "1/1/1"), (1, 3, "3/3/1")];
    assert_eq!(upstream, wanted.map(|(from, to, mark)| (from, to, mark.to_owned())));
    world.record(&broker);
    assert_eq!(missing(&ledger), 0);
}

/// A row that is larger than the output takes is written without the candidate's answer, and says so; nothing waits behind it.
#[test]
fn a_row_that_is_too_large_says_so_and_holds_up_nothing() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(UPSTREAM, 1, &[("message.timestamp.type", "LogAppendTime")]);
    broker.topic(OUTPUT, 1, &[("max.message.bytes", "100000")]);
    let world = World::new();
    let candidate = Candidate::start(|asked| match number(&asked.body) {
        1 => Reply::Answer(json!({"status": "ok", "result": "x".repeat(200_000)})),
        n => Reply::Answer(found(n)),
    });
    world.searching("mirror.toml", &broker, &candidate.url("/"), "");
    into(&broker, UPSTREAM, 0, &bytes((0..3).map(call)));
    let said = world.once("mirror.toml", &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    honest(&broker);
    let here = stands(&broker, OUTPUT);
    let rows: Vec<&Value> =
        here[0].iter().filter(|s| id(s).is_some()).filter_map(|s| s.json.as_ref()).collect();
    let of =
        |row: &Value| (row["candidates"][0]["status"].clone(), row["candidates"][0]["error_class"].clone());
    assert_eq!(of(rows[1]), (json!("unavailable"), json!("answer_too_large")));
    assert_eq!((of(rows[0]).0, of(rows[2]).0), (json!("ok"), json!("ok")));
}

/// What a start needs is asked for, what would be done is said, and nothing is written.
#[test]
fn probe_and_dry_run_call_nothing_and_write_nothing() {
    let Some(broker) = Broker::start() else { return };
    topics(&broker, 2);
    let world = World::new();
    let candidate = answering();
    world.searching("mirror.toml", &broker, &candidate.url("/"), "rate = 50");
    feed(&broker, 0, 10, 2);
    let told = |args: &[&str]| {
        let done = world.mirror("mirror.toml", args).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let (code, out) = told(&["--dry-run"]);
    assert_eq!(code, Some(0), "{out}");
    for said in ["search@2", "replica", "50 a second", "nothing was read, called or written"] {
        assert!(out.contains(said), "{said}: {out}");
    }
    let (code, out) = told(&["--probe"]);
    assert_eq!(code, Some(2), "{out}");
    assert!(out.contains("was never mirrored"), "{out}");
    let (code, out) = told(&["--probe", "--from", "earliest"]);
    assert_eq!(code, Some(0), "{out}");
    for said in [
        "search@2: http",
        "cluster",
        "topic mirrored-calls: 2 partitions",
        "tool-calls/1: holds [0, 5), begins at 0",
    ] {
        assert!(out.contains(said), "{said}: {out}");
    }
    assert!(stands(&broker, OUTPUT).iter().all(Vec::is_empty));
    let (code, out) = told(&["--print-config", "-X", "sasl.password=hunter2"]);
    assert!(code == Some(0) && out.contains("sasl.password=***") && !out.contains("hunter2"), "{out}");
    let away = world.mirror("mirror.toml", &["--probe", "--brokers", "127.0.0.1:1"]).output().unwrap();
    assert_eq!(away.status.code(), Some(75));
}
