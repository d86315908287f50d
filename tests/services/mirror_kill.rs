//! The real `lastcall-mirror` on a real Kafka, killed at every step of a row, racing and frozen: each call has its row, in
//! order, is counted once, and no moment is called complete before it is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lastcall_event::{Day, Timestamp};
use lastcall_tests::services::broker::Broker;
use serde_json::Value;

use crate::candidate::{Candidate, Gate, Reply, found};
use crate::kafka_service::get;
use crate::mirror::{
    OUTPUT, Running, UPSTREAM, World, call, call_at, clock, honest, ids, missing, number, put, stands,
    topics, until,
};

/// What a kill waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The candidate has not answered: the call is in flight.
    InFlight,
    /// It has answered, and the row waits for its turn behind another call.
    BeforeSend,
    /// The row was sent, and the broker has not answered.
    SentNotAcknowledged,
    /// Rows were acknowledged, more are on their way.
    Acknowledged,
}

const STEPS: [Step; 4] = [Step::InFlight, Step::BeforeSend, Step::SentNotAcknowledged, Step::Acknowledged];
const PARTITIONS: i32 = 3;
const SECOND: Duration = Duration::from_secs(1);

/// Requests of one mirror are all held, or one in thirteen.
#[derive(Default)]
struct Gates {
    all: Gate,
    some: Gate,
}

/// What is to be written: partition and value, in order.
type Messages = Vec<(i32, Vec<u8>)>;

fn system(calls: usize) -> Messages {
    // Their own time is when they are written.
    (0..calls).map(|n| (partition(n), call(n).to_string().into_bytes())).collect()
}

/// Three days of calls, a clock in every partition behind each.
fn simulated(calls: usize) -> Messages {
    let first = Day::parse("2026-06-01").unwrap();
    let mut out = Messages::new();
    for day in 0..3usize {
        let start = i64::from(first.0 + day as i32) * 86_400_000;
        for n in day * calls / 3..(day + 1) * calls / 3 {
            let call = call_at(n, Timestamp(start + 3_600_000 + n as i64), "search");
            out.push((partition(n), call.to_string().into_bytes()));
        }
        let end = Timestamp(start + 25 * 3_600_000);
        out.extend((0..PARTITIONS).map(|p| (p, clock(end).to_string().into_bytes())));
    }
    out
}

fn partition(number: usize) -> i32 {
    i32::try_from(number).unwrap() % PARTITIONS
}

struct Member {
    name: &'static str,
    path: String,
    running: Option<Running>,
    gates: Arc<Gates>,
}

/// Kills mirrors at each step while `messages` flow; what is left to do is done by one that runs to the end.
fn killed(world: &World, broker: &mut Broker, names: &[&'static str], messages: &Messages) {
    let rounds = if std::env::var_os("LASTCALL_PROVE").is_some() { 8 } else { 2 };
    topics(broker, PARTITIONS);
    let gates: BTreeMap<&'static str, Arc<Gates>> =
        names.iter().chain(&["rest"]).map(|name| (*name, Arc::default())).collect();
    let told = gates.clone();
    let candidate = Candidate::start(move |asked| {
        // Each start has a path of its own, so that its requests are counted apart: /NAME/TURN.
        let name = asked.path.split('/').nth(1).unwrap_or_default();
        let number = number(&asked.body);
        if let Some(gates) = told.get(name) {
            gates.all.pass();
            if number.is_multiple_of(13) {
                gates.some.pass();
            }
        }
        Reply::After(SECOND / 200, found(number))
    });
    // It is fed once it has its partitions: the session of the one that was killed has to end first.
    let start = |member: &mut Member, broker: &Broker, turn: usize| {
        let name = member.name;
        member.path = format!("/{name}/{turn}");
        world.searching(name, broker, &candidate.url(&member.path), "concurrency = 8");
        let args = ["--group", name, "--heartbeat", "1", "-X", "session.timeout.ms=4000"];
        let running = world.start(name, &args, &format!("{name}-{turn}"));
        let address = running.address();
        until("it has its partitions", || get(&address, "/state").1.matches("\"mirrored\"").count() == 3);
        member.running = Some(running);
    };
    let mut members: Vec<Member> = names
        .iter()
        .map(|name| Member { name, path: String::new(), running: None, gates: gates[name].clone() })
        .collect();
    members.iter_mut().for_each(|member| start(member, broker, 0));
    let turns = rounds * STEPS.len();
    let mut kills: BTreeMap<Step, usize> = BTreeMap::new();
    let mut fed = 0;
    for (turn, step) in STEPS.iter().copied().cycle().take(turns).enumerate() {
        if turn == turns / 2 {
            broker.kill_and_restart();
            // Whoever comes back first would do all of it.
            let back = lastcall_ledger::system_now();
            members.iter().for_each(|member| knows(member, back));
        }
        let member = &mut members[turn % names.len()];
        let path = member.path.clone();
        let gates = member.gates.clone();
        let until_there = messages.len() * (turn + 1) / turns;
        let before = candidate.count(&path);
        let address = member.running.as_ref().unwrap().address();
        gates.all.close(matches!(step, Step::InFlight | Step::SentNotAcknowledged));
        gates.some.close(step == Step::BeforeSend);
        put(broker, UPSTREAM, messages[fed..until_there].iter().map(|(p, value)| (*p, value.as_slice())));
        fed = until_there;
        let hit = within(90 * SECOND, || match step {
            Step::InFlight => gates.all.held() > 0,
            Step::BeforeSend => {
                let now = candidate.count(&path);
                // Every place is held: what else was answered waits behind one of them.
                now.answered > before.answered + 5 && gates.some.held() >= 8
            }
            Step::SentNotAcknowledged => gates.all.held() >= 4,
            Step::Acknowledged => acknowledged(&address) > 20,
        });
        let hit = hit && (step != Step::SentNotAcknowledged || unanswered(broker, &candidate, &path, &gates));
        let running = member.running.take().unwrap();
        running.kill();
        if step == Step::SentNotAcknowledged {
            broker.signal("CONT");
        }
        gates.all.close(false);
        gates.some.close(false);
        *kills.entry(step).or_default() += usize::from(hit);
        start(member, broker, turn + 1);
    }
    members.iter_mut().for_each(|member| member.running.take().unwrap().kill());
    world.searching("rest", broker, &candidate.url("/rest"), "concurrency = 64");
    let rest = world.once("rest", &["--group", "rest"]);
    assert_eq!(rest.code, 0, "{}", rest.err);
    let more = honest(broker);
    let mut said = String::new();
    for step in STEPS {
        write!(said, " {step:?} {}", kills.get(&step).copied().unwrap_or_default()).unwrap();
    }
    println!(
        "{} messages over {PARTITIONS} partitions, {} mirrors at once, the broker killed once; kills by step:{said}; {more} rows \
         were repeated",
        messages.len(),
        names.len()
    );
    for step in STEPS {
        assert!(kills.get(&step).is_some_and(|n| *n > 0), "no kill hit {step:?}:{said}");
    }
}

/// The broker stands still; the candidate answers calls that were held, and their rows go to a broker that does not answer.
fn unanswered(broker: &Broker, candidate: &Candidate, path: &str, gates: &Gates) -> bool {
    broker.signal("STOP");
    let before = candidate.count(path);
    gates.all.close(false);
    let answered = within(10 * SECOND, || candidate.count(path).answered >= before.answered + 8);
    // From the answer to the socket.
    std::thread::sleep(SECOND / 5);
    answered
}

/// Waits until a mirror knows its upstream complete through a moment.
fn knows(member: &Member, moment: Timestamp) {
    let running = member.running.as_ref().unwrap();
    let address = running.address();
    let begun = Instant::now();
    until("it knows its upstream again", || {
        let text = get(&address, "/state").1;
        assert!(begun.elapsed() < 100 * SECOND, "{}{text}", running.said());
        let state: Value = serde_json::from_str(&text).unwrap();
        let partitions = state["partitions"].as_array().unwrap();
        let through = |p: &Value| p["through"].as_str().and_then(Timestamp::parse);
        partitions.len() == 3 && partitions.iter().all(|p| through(p) > Some(moment))
    });
}

/// Rows that this mirror wrote and heard of.
fn acknowledged(address: &str) -> u64 {
    let metrics = get(address, "/metrics").1;
    let line = metrics.lines().find_map(|l| l.strip_prefix("lastcall_mirror_messages_total{kind=\"call\"} "));
    line.and_then(|n| n.parse().ok()).unwrap_or_default()
}

fn within(time: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < time {
        if holds() {
            return true;
        }
        std::thread::sleep(SECOND / 100);
    }
    false
}

fn calls() -> usize {
    if std::env::var_os("LASTCALL_PROVE").is_some() { 50_000 } else { 3_000 }
}

#[test]
fn killed_at_every_step_and_racing_every_call_has_its_row_once() {
    let Some(mut broker) = Broker::start() else { return };
    let world = World::new();
    let ledger = world.ledger("system", "1h");
    let calls = calls();
    killed(&world, &mut broker, &["one", "two"], &system(calls));
    world.record(&broker);
    let (ids, rows) = ids(&ledger);
    assert_eq!(ids.len(), calls, "each call is counted");
    assert!(rows >= calls);
    assert_eq!(missing(&ledger), 0);
    let verified = world.run(&["ledger", "verify", "led"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}

#[test]
fn killed_at_every_step_each_call_counts_once_and_no_day_closes_too_early() {
    let Some(mut broker) = Broker::start() else { return };
    let world = World::new();
    let ledger = world.ledger("simulated", "1h");
    world.write("policy.yaml", "burn_in: {tier: T1, profile: article, min_calls: 100, counted_days: 3}");
    world.ok(&["plan", "register", "search", "--policy", "policy.yaml", "--from", "2026-06-01"]);
    let calls = calls();
    killed(&world, &mut broker, &["one"], &simulated(calls));
    world.record(&broker);
    assert_eq!(missing(&ledger), 0);
    let said = world.run(&["decide", "search", "--format", "json", "--dry-run"]);
    let verdict: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}{}", said.out, said.err));
    let totals = &verdict["totals"];
    let of = |name: &str| totals[name].as_u64().unwrap() as usize;
    assert_eq!(of("calls") - of("duplicate"), calls, "{totals:#}");
    assert_eq!(of("agreed"), calls, "{totals:#}");
    assert_eq!((of("days"), verdict["late"].as_u64()), (3, Some(0)), "{verdict:#}");
    assert_eq!(verdict["verdict"], "READY", "{verdict:#}");
}

/// A mirror that is frozen past its session, with calls in its hands, while another takes its partitions over: it writes no row
/// of those, says why, and goes on where the output ends.
#[test]
fn a_mirror_that_stood_still_writes_nothing_of_what_it_held() {
    let Some(broker) = Broker::start() else { return };
    topics(&broker, PARTITIONS);
    let world = World::new();
    let gates: Arc<Gates> = Arc::default();
    let held = gates.clone();
    let candidate = Candidate::start(move |asked| {
        if asked.path == "/frozen" {
            held.all.pass();
        }
        Reply::Answer(found(number(&asked.body)))
    });
    world.searching("frozen", &broker, &candidate.url("/frozen"), "timeout = \"60s\"");
    world.searching("other", &broker, &candidate.url("/other"), "timeout = \"60s\"");
    gates.all.close(true);
    let messages = system(300);
    put(&broker, UPSTREAM, messages.iter().map(|(p, value)| (*p, value.as_slice())));
    let frozen = world.start("frozen", &["--group", "g"], "frozen");
    until("calls are in its hands", || gates.all.held() >= 16);
    frozen.signal("STOP");
    let other = world.start("other", &["--group", "g"], "other");
    // Beside the rows stands what says where each partition begins.
    let rows = || stands(&broker, OUTPUT).iter().flatten().filter(|s| crate::mirror::id(s).is_some()).count();
    until("the other mirrors everything", || rows() == 300);
    gates.all.close(false);
    frozen.signal("CONT");
    until("it says that it stood still", || frozen.said().contains("stood still for"));
    std::thread::sleep(2 * SECOND);
    assert_eq!(rows(), 300, "it wrote a row");
    let more: Messages = (300..400).map(|n| (partition(n), call(n).to_string().into_bytes())).collect();
    put(&broker, UPSTREAM, more.iter().map(|(p, value)| (*p, value.as_slice())));
    until("both go on", || rows() >= 400);
    for one in [frozen, other] {
        one.signal("TERM");
        let (code, said) = one.ends();
        assert_eq!(code, Some(0), "{said}");
    }
    honest(&broker);
}

/// A broker that is killed and comes back: calls that were under way get their rows, and it goes on by itself.
#[test]
fn a_broker_that_was_killed_is_waited_for() {
    let Some(mut broker) = Broker::start() else { return };
    topics(&broker, PARTITIONS);
    let world = World::new();
    let candidate = Candidate::start(|asked| Reply::After(SECOND / 50, found(number(&asked.body))));
    world.searching("mirror.toml", &broker, &candidate.url("/"), "concurrency = 8");
    let running = world.start("mirror.toml", &[], "m");
    let address = running.address();
    let messages = system(600);
    let feed = |broker: &Broker, range: std::ops::Range<usize>| {
        put(broker, UPSTREAM, messages[range].iter().map(|(p, value)| (*p, value.as_slice())));
    };
    feed(&broker, 0..300);
    until("some are mirrored", || acknowledged(&address) > 50);
    broker.kill_and_restart();
    feed(&broker, 300..600);
    let begun = Instant::now();
    let rows = || stands(&broker, OUTPUT).iter().flatten().filter(|s| crate::mirror::id(s).is_some()).count();
    until("all have their rows", || rows() >= 600);
    println!("all rows {} s after the broker was back", begun.elapsed().as_secs());
    running.signal("TERM");
    assert_eq!(running.ends().0, Some(0));
    println!("{} rows were repeated", honest(&broker));
}
