//! What candidates do behind the service: noise of the environment, slow, dying and lying ones, and tools that send.

use std::time::Duration;

use lastcall_event::{Day, Timestamp};
use lastcall_tests::services::broker::Broker;
use serde_json::{Value, json};

use crate::candidate::{Candidate, Reply, found};
use crate::kafka_service::get;
use crate::mirror::{
    OUTPUT, UPSTREAM, World, call, call_at, clock, feed, honest, id, number, put, stands, topics, until,
};

const SECOND: Duration = Duration::from_secs(1);

/// A replica whose data moved since production read it: the current version, run again, differs from itself. Such a call is
/// excluded, and a candidate that is perfect over a noisy tool still becomes READY.
#[test]
fn a_perfect_candidate_over_a_noisy_tool_becomes_ready() {
    let Some(broker) = Broker::start() else { return };
    topics(&broker, 2);
    let world = World::new();
    world.ledger("simulated", "1h");
    world.write("policy.yaml", "burn_in: {tier: T1, profile: article, min_calls: 200, counted_days: 5}");
    world.ok(&["plan", "register", "search", "--policy", "policy.yaml", "--from", "2026-06-01"]);
    // One in eighty has lost a key by now; of half of those the candidate still sees the old state.
    let moved = |n: u64| n.is_multiple_of(80);
    let candidate = Candidate::start(move |asked| {
        let n = number(&asked.body);
        let seen = moved(n) && (asked.path == "/current" || n.is_multiple_of(160));
        let result = if seen { json!({"found": n}) } else { json!({"found": n, "note": "open"}) };
        Reply::Answer(json!({"status": "ok", "result": result}))
    });
    let rest = format!(
        "[tools.search]\ncandidates = [{{contract = \"search@2\", suppression = \"replica\", http = \"{}\"}}]\n\
         rerun = {{share = 1.0, suppression = \"replica\", http = \"{}\"}}",
        candidate.url("/candidate"),
        candidate.url("/current")
    );
    world.config("mirror.toml", &broker, &rest);
    let first = Day::parse("2026-06-01").unwrap();
    let (days, a_day) = (6usize, 160usize);
    let mut values = Vec::new();
    for day in 0..days {
        let start = i64::from(first.0 + day as i32) * 86_400_000;
        for n in day * a_day..(day + 1) * a_day {
            let mut call = call_at(n, Timestamp(start + 36_000_000 + n as i64 * 1000), "search");
            call["outcome"]["result"] = json!({"found": n, "note": "open"});
            values.push(((n % 2) as i32, call.to_string().into_bytes()));
        }
        let end = clock(Timestamp(start + 25 * 3_600_000)).to_string().into_bytes();
        values.extend((0..2).map(|p| (p, end.clone())));
    }
    put(&broker, UPSTREAM, values.iter().map(|(p, value)| (*p, value.as_slice())));
    let said = world.once("mirror.toml", &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    honest(&broker);
    world.record(&broker);
    let said = world.run(&["decide", "search", "--format", "json", "--dry-run"]);
    let verdict: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}{}", said.out, said.err));
    let of = |name: &str| verdict["totals"][name].as_u64().unwrap() as usize;
    let noisy = days * a_day / 80;
    assert_eq!((of("calls"), of("disagreed")), (days * a_day, 0), "{verdict:#}");
    assert_eq!((of("excluded"), of("agreed")), (noisy, days * a_day - noisy), "{verdict:#}");
    assert_eq!(verdict["totals"]["reasons"]["unstable"], noisy, "{verdict:#}");
    assert_eq!((said.code, verdict["verdict"].as_str()), (0, Some("READY")), "{verdict:#}");
    println!("{noisy} of {} calls excluded as unstable, {}", days * a_day, verdict["verdict"]);
}

/// Behind the service each odd candidate leaves rows that say what it was, none is agreement, production's topic is read on, and
/// memory stays bounded.
#[test]
fn slow_dying_and_lying_candidates_leave_rows_that_say_so() {
    let Some(broker) = Broker::start() else { return };
    topics(&broker, 1);
    let world = World::new();
    world.ledger("system", "1h");
    let candidate = Candidate::start(|asked| match number(&asked.body) % 8 {
        0 => Reply::After(30 * SECOND, found(0)),
        1 => Reply::Gone,
        2 => Reply::Status(200, "<html>".to_owned()),
        3 => Reply::Endless(64 << 10),
        4 => Reply::Status(503, String::new()),
        5 => Reply::Answer(json!({"status": "shed"})),
        6 => Reply::Answer(json!({"status": "ok", "result": "x".repeat(900 << 10)})),
        _ => Reply::Answer(json!({"status": "ok", "result": "x".repeat(3 << 20)})),
    });
    let limits = "timeout = \"1s\"\nconcurrency = 64\nbreaker = {failures = 1000000, pause = \"1s\"}";
    world.searching("mirror.toml", &broker, &candidate.url("/"), limits);
    let running = world.start("mirror.toml", &["--memory", "32"], "m");
    let address = running.address();
    let calls = 800;
    feed(&broker, 0, calls, 1);
    let mut peak = 0;
    let done = || {
        let metrics = get(&address, "/metrics").1;
        metrics.contains(&format!("lastcall_mirror_messages_total{{kind=\"call\"}} {calls}\n"))
    };
    until("every call has its row", || {
        peak = peak.max(resident(running.id()));
        done()
    });
    running.signal("TERM");
    assert_eq!(running.ends().0, Some(0));
    honest(&broker);
    let here = stands(&broker, OUTPUT);
    for row in here[0].iter().filter(|s| id(s).is_some()) {
        let json = row.json.as_ref().unwrap();
        let candidate = &json["candidates"][0];
        let (status, class) = (candidate["status"].as_str().unwrap(), candidate["error_class"].as_str());
        let kind = number(json) % 8;
        let wanted = match kind {
            0 | 3 => matches!((status, class), ("timed_out", _) | ("unavailable", Some("answer_too_large"))),
            1 => (status, class) == ("unavailable", Some("connection")),
            2 | 5 => (status, class) == ("unavailable", Some("not_an_answer")),
            4 => (status, class) == ("unavailable", Some("http_503")),
            6 => matches!((status, class), ("ok", None)),
            _ => (status, class) == ("unavailable", Some("answer_too_large")),
        };
        assert!(wanted, "{kind}: {candidate}");
    }
    world.record(&broker);
    let mut agreed = 0;
    let ledger = lastcall_ledger::Ledger::open(&world.path("led")).unwrap();
    for partition in ledger.partitions().unwrap() {
        for (_, chunk) in partition.chunks() {
            ledger
                .for_each_result(chunk, |row| {
                    agreed += usize::from(format!("{row:?}").contains("result: Agreed"))
                })
                .unwrap();
        }
    }
    assert_eq!(agreed, 0, "silence is no agreement");
    println!("{calls} calls to a candidate that does what it should not: at most {peak} MiB resident");
    assert!(peak < 256, "{peak} MiB");
}

/// MiB of a process.
fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|kib| kib.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// A tool that sends is asked nothing: with an endpoint it refuses to start, without one its rows say so.
#[test]
fn a_tool_that_sends_is_never_asked() {
    let Some(broker) = Broker::start() else { return };
    topics(&broker, 3);
    let world = World::new();
    let candidate = Candidate::start(|asked| Reply::Answer(found(number(&asked.body))));
    for suppression in ["replica", "snapshot", "dry_run", "sandbox", "stub", "not_executed"] {
        for endpoint in
            [format!("http = \"{}\"", candidate.url("/")), format!("mcp = \"{}\"", candidate.url("/"))]
        {
            let rest = format!(
                "[tools.mail]\ncandidates = [{{contract = \"mail@2\", suppression = \"{suppression}\", {endpoint}}}]"
            );
            world.config("mirror.toml", &broker, &rest);
            let said = world.once("mirror.toml", &[]);
            assert!(said.code == 2 && said.err.contains("mail"), "{suppression}: {} {}", said.code, said.err);
        }
    }
    let rest = format!(
        "[tools.mail]\ncandidates = [{{contract = \"mail@2\"}}]\n[tools.search]\ncandidates = [{{contract = \"search@2\", \
         suppression = \"replica\", http = \"{}\"}}]",
        candidate.url("/search")
    );
    world.config("mirror.toml", &broker, &rest);
    let count = if std::env::var_os("LASTCALL_PROVE").is_some() { 10_000 } else { 2_000 };
    let now = lastcall_ledger::system_now();
    let values: Vec<Vec<u8>> = (0..count).map(|n| call_at(n, now, "mail").to_string().into_bytes()).collect();
    put(&broker, UPSTREAM, values.iter().enumerate().map(|(n, value)| ((n % 3) as i32, value.as_slice())));
    put(&broker, UPSTREAM, [(0, call(count).to_string().as_bytes())]);
    let said = world.once("mirror.toml", &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!((candidate.count("/").came, candidate.count("/search").came), (0, 1));
    let here = stands(&broker, OUTPUT);
    let rows = here.iter().flatten().filter(|s| id(s).is_some());
    let mail = rows.filter(|s| s.json.as_ref().is_some_and(|j| j["tool_id"] == "mail"));
    let told = mail.inspect(|s| {
        let candidate = &s.json.as_ref().unwrap()["candidates"][0];
        assert_eq!(
            (&candidate["status"], &candidate["suppression"]),
            (&json!("not_run"), &json!("not_executed"))
        );
    });
    assert_eq!(told.count(), count);
    println!("{count} calls of a tool that sends: {} requests", candidate.count("/").came);
}
