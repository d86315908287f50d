//! The store itself: what each answer of a server and each fault of a network comes to.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lastcall_diff::Rng;
use lastcall_event::Timestamp;
use lastcall_ledger::chain::{self, Append, Tail};
use lastcall_ledger::control::Control;
use lastcall_ledger::names::Chain;
use lastcall_ledger::store::s3::{S3Config, S3Store};
use lastcall_ledger::store::{Bytes, Created, Store, StoreError};
use lastcall_ledger::{Ledger, LedgerClock, LedgerError};

use lastcall_tests::services::moto::Moto;
use lastcall_tests::services::proxy::{Asked, Fault, Proxy};

/// How long a request waits for its answer in these tests.
const TIMEOUT: Duration = Duration::from_millis(400);
const SECRET: &str = "a-secret-that-no-message-shows";

fn config(address: std::net::SocketAddr, bucket: &str, prefix: &str) -> S3Config {
    let variables = [
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    S3Config {
        bucket: bucket.to_owned(),
        prefix: prefix.to_owned(),
        variables: variables.map(|(n, v)| (n.to_owned(), v)).into(),
        timeout: TIMEOUT,
        patience: Duration::from_secs(30),
    }
}

/// A store without faults. The time-out is long: a busy machine is none.
fn store(moto: &Moto, prefix: &str) -> S3Store {
    S3Store::open(S3Config { timeout: Duration::from_secs(20), ..config(moto.address, "books", prefix) })
        .unwrap()
}

fn started() -> Option<Moto> {
    let moto = Moto::start()?;
    moto.bucket("books");
    Some(moto)
}

fn body(text: &str) -> Control {
    Control::Genesis { ledger_id: text.to_owned(), clock: LedgerClock::System }
}

fn append(store: &dyn Store, previous: Option<&Tail>, writer: &str) -> Result<Append, LedgerError> {
    chain::append(store, &Chain::Control, previous, writer, Timestamp(1), None, &body(writer))
}

#[test]
fn a_bucket_is_a_store() {
    let Some(moto) = started() else { return };
    let (a, b) = (store(&moto, "a/ledger"), store(&moto, ""));
    let odd = "chains/a%2Fb%20%C3%A9/0/1.json";
    assert_eq!(a.get(odd).unwrap(), None);
    assert_eq!(a.requests(), 1, "a reader pays no probe");
    assert_eq!(a.create(odd, &Bytes::from("1")).unwrap(), Created::Yes);
    assert_eq!(a.requests(), 4, "the first probe of a place takes two requests");
    assert_eq!(a.create(odd, &Bytes::from("2")).unwrap(), Created::Exists);
    assert_eq!(a.requests(), 5, "once in a process");
    assert_eq!(a.get(odd).unwrap().as_deref(), Some(b"1".as_slice()));
    let again = store(&moto, "a/ledger");
    assert_eq!(again.create(odd, &Bytes::from("2")).unwrap(), Created::Exists);
    assert_eq!(again.requests(), 2, "a later process probes with one");

    let large = Bytes::from((0..3_000_000u32).map(|i| (i * 7 % 251) as u8).collect::<Vec<u8>>());
    a.put("calls/large.parquet", &large).unwrap();
    a.put("calls/empty.parquet", &Bytes::new()).unwrap();
    assert!(a.get("calls/large.parquet").unwrap() == Some(large));
    assert_eq!(a.get("calls/empty.parquet").unwrap().as_deref(), Some(b"".as_slice()));
    assert_eq!(a.list("calls").unwrap(), ["calls/empty.parquet", "calls/large.parquet"]);
    assert_eq!(a.list("chains").unwrap(), [odd]);
    assert_eq!(b.list("calls").unwrap(), [""; 0], "another prefix is another ledger");
    assert_eq!(b.get("a/ledger/calls/empty.parquet").unwrap().as_deref(), Some(b"".as_slice()));
    assert_eq!(b.list("a/ledger/probe").unwrap(), ["a/ledger/probe/conditional-create.txt"]);
    a.delete("calls/large.parquet").unwrap();
    a.delete("calls/large.parquet").unwrap();
    assert_eq!(a.get("calls/large.parquet").unwrap(), None);
    assert!(a.get("../x").is_err());
    // More than one page of a listing.
    for n in 0..1_005 {
        b.put(&format!("many/{n:04}"), &Bytes::from("x")).unwrap();
    }
    assert_eq!(b.list("many").unwrap().len(), 1_005);
}

#[test]
fn a_store_that_ignores_the_condition_is_refused() {
    let Some(moto) = started() else { return };
    let proxy = Proxy::start(moto.address, |_| Fault::Unconditional);
    let store = S3Store::open(config(proxy.address, "books", "x")).unwrap();
    let text = store.create("chains/control/0.json", &Bytes::from("1")).unwrap_err().to_string();
    assert!(text.contains("If-None-Match") && text.contains("Use a store"), "{text}");
    assert!(store.put("calls/x.parquet", &Bytes::from("1")).is_err());
    assert_eq!(store.get("chains/control/0.json").unwrap(), None, "reading is allowed");
    let there = self::store(&moto, "x");
    assert!(there.list("chains").unwrap().is_empty() && there.list("calls").unwrap().is_empty());
    let ledger = Ledger::init_in(Arc::new(store), LedgerClock::System, "s3://books/x");
    assert!(matches!(ledger.err(), Some(LedgerError::Store(StoreError::Failed { .. }))));
}

#[test]
fn a_writer_whose_clock_is_off_stops_and_a_reader_does_not() {
    let Some(moto) = started() else { return };
    let proxy = Proxy::start(moto.address, |_| Fault::OtherHour);
    let store = S3Store::open(config(proxy.address, "books", "x")).unwrap();
    let text = store.put("calls/x.parquet", &Bytes::from("1")).unwrap_err().to_string();
    assert!(text.contains("ahead of the store's"), "{text}");
    assert_eq!(store.get("calls/x.parquet").unwrap(), None);
}

/// The faults of one request.
const FAULTS: [Fault; 14] = [
    Fault::Slow(Duration::from_millis(100)),
    Fault::Answers(500, "InternalError"),
    Fault::Answers(503, "SlowDown"),
    Fault::Answers(429, "TooManyRequests"),
    Fault::Answers(409, "ConditionalRequestConflict"),
    Fault::Answers(502, "BadGateway"),
    Fault::DoneButAnswers(500, "InternalError"),
    Fault::DoneButAnswers(504, "GatewayTimeout"),
    Fault::Silent,
    Fault::DoneButSilent,
    Fault::DoneLater(Duration::from_millis(600)),
    Fault::Cut,
    Fault::DoneButCut,
    Fault::CutInside,
];

/// A proxy whose requests suffer one fault as long as `left` says so, if `hits` says yes to them.
fn with(
    moto: &Moto,
    fault: Fault,
    hits: impl Fn(&Asked) -> bool + Send + Sync + 'static,
) -> (Proxy, Arc<AtomicUsize>) {
    let left = Arc::new(AtomicUsize::new(0));
    let shared = left.clone();
    let proxy = Proxy::start(moto.address, move |asked| {
        let hit = hits(asked)
            && shared.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        if hit { fault } else { Fault::None }
    });
    (proxy, left)
}

#[test]
fn an_append_survives_every_fault_and_loses_only_to_a_rival() {
    let Some(moto) = started() else { return };
    let settled = Duration::from_millis(700);
    for (n, fault) in FAULTS.into_iter().enumerate() {
        let (proxy, left) = with(&moto, fault, |asked| asked.path.contains("/control/"));
        for times in [1, 3] {
            let prefix = format!("append/{n}/{times}");
            let store = S3Store::open(config(proxy.address, "books", &prefix)).unwrap();
            store.probe().unwrap();
            left.store(times, Ordering::SeqCst);
            let won = append(&store, None, "w").unwrap();
            assert!(matches!(won, Append::Won(_)), "{fault:?} {times} times: {won:?}");
            // What is still on its way must change nothing.
            std::thread::sleep(if matches!(fault, Fault::DoneLater(_)) { settled } else { Duration::ZERO });
            left.store(0, Ordering::SeqCst);
            let there = self::store(&moto, &prefix);
            let read = chain::read_from::<Control>(&there, &Chain::Control, None).unwrap();
            assert_eq!(read.len(), 1, "{fault:?}");
            assert_eq!(Append::Won(read[0].tail()), won, "{fault:?}");
        }
        // A rival's entry stands there already, whatever the answer says.
        let prefix = format!("append/{n}/rival");
        let there = self::store(&moto, &prefix);
        assert!(matches!(append(&there, None, "rival").unwrap(), Append::Won(_)));
        let store = S3Store::open(config(proxy.address, "books", &prefix)).unwrap();
        store.probe().unwrap();
        left.store(1, Ordering::SeqCst);
        assert_eq!(append(&store, None, "w").unwrap(), Append::Lost, "{fault:?}");
        let read = chain::read_from::<Control>(&there, &Chain::Control, None).unwrap();
        assert_eq!(read[0].entry.writer, "rival", "{fault:?}");
    }
}

#[test]
fn the_other_operations_survive_every_fault() {
    let Some(moto) = started() else { return };
    let text = Bytes::from("0123456789".repeat(10_000));
    for (n, fault) in FAULTS.into_iter().enumerate() {
        let (proxy, left) = with(&moto, fault, |_| true);
        let prefix = format!("other/{n}");
        let store = S3Store::open(config(proxy.address, "books", &prefix)).unwrap();
        left.store(2, Ordering::SeqCst);
        store.probe().unwrap();
        let next = |what: &str| {
            let missed = left.swap(2, Ordering::SeqCst);
            // What is only late needs no second request.
            let wanted = usize::from(matches!(fault, Fault::Slow(_)) && missed > 0);
            assert_eq!(missed, wanted, "{fault:?} did not reach what was before {what}");
        };
        next("put");
        store.put("calls/1.parquet", &text).unwrap();
        next("get");
        assert!(store.get("calls/1.parquet").unwrap().as_ref() == Some(&text), "{fault:?}");
        next("list");
        assert_eq!(store.list("calls").unwrap(), ["calls/1.parquet"], "{fault:?}");
        next("object");
        let store = Arc::new(store);
        let ledger = Ledger::init_in(store.clone(), LedgerClock::System, "s3").unwrap();
        next("init");
        let digest = ledger.put_object(b"an object").unwrap();
        next("put_object");
        assert_eq!(ledger.put_object(b"an object").unwrap(), digest);
        assert_eq!(ledger.object(&digest).unwrap(), b"an object");
        left.store(2, Ordering::SeqCst);
        store.delete("calls/1.parquet").unwrap();
        left.store(0, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(10));
        if !matches!(fault, Fault::DoneLater(_)) {
            assert_eq!(store.get("calls/1.parquet").unwrap(), None, "{fault:?}");
        }
        let opened = Ledger::open_in(store, "s3").unwrap();
        assert_eq!(opened.control().unwrap().entries.len(), 1, "{fault:?}: one genesis");
        let again = Ledger::init_in(Arc::new(self::store(&moto, &prefix)), LedgerClock::System, "s3");
        assert!(matches!(again.err(), Some(LedgerError::AlreadyALedger(_))), "{fault:?}");
    }
}

#[test]
fn two_writers_race_for_each_place_and_one_wins() {
    const ENTRIES: u64 = 60;
    const PERCENT: u64 = 25;
    let Some(moto) = started() else { return };
    let seed = std::env::var("LASTCALL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| {
        u64::from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos())
    });
    let rng = Mutex::new(Rng::new(seed));
    let proxy = Proxy::start(moto.address, move |_| {
        let mut rng = rng.lock().unwrap();
        if rng.below(100) < PERCENT { FAULTS[rng.below(FAULTS.len() as u64) as usize] } else { Fault::None }
    });
    let address = proxy.address;
    // Each waits a little until the other is about to write the same entry.
    let about: Arc<[AtomicU64; 2]> = Arc::default();
    let writers = ["a", "b"].map(|name| {
        let about = about.clone();
        std::thread::spawn(move || {
            let (me, other) = if name == "a" { (0, 1) } else { (1, 0) };
            let store = S3Store::open(config(address, "books", "race")).unwrap();
            let (mut wins, mut losses) = (Vec::new(), 0u64);
            let mut tail: Option<Tail> = None;
            loop {
                // Both append after the same entry: who lost reads what the other wrote.
                // With no look for holes in between: the closer the two are, the more often they meet.
                let next = |tail: &Option<Tail>| tail.as_ref().map_or(0, |tail| tail.seq + 1);
                while let Some(read) =
                    chain::read_entry::<Control>(&store, &Chain::Control, next(&tail)).unwrap()
                {
                    tail = Some(read.tail());
                }
                if tail.as_ref().is_some_and(|t| t.seq + 1 >= ENTRIES) {
                    return (wins, losses);
                }
                about[me].store(next(&tail), Ordering::SeqCst);
                let begun = Instant::now();
                while about[other].load(Ordering::SeqCst) < next(&tail) && begun.elapsed().as_millis() < 200 {
                    std::thread::yield_now();
                }
                match append(&store, tail.as_ref(), name).unwrap() {
                    Append::Won(won) => wins.push(won.seq),
                    Append::Lost => losses += 1,
                }
            }
        })
    });
    let [(a, lost_a), (b, lost_b)] = writers.map(|w| w.join().unwrap());
    let there = store(&moto, "race");
    let read = chain::read_from::<Control>(&there, &Chain::Control, None).unwrap();
    assert_eq!(read.len() as u64, ENTRIES, "seed {seed}");
    for entry in &read {
        let seq = entry.entry.seq;
        let winners: Vec<&str> =
            [("a", &a), ("b", &b)].iter().filter(|(_, w)| w.contains(&seq)).map(|(n, _)| *n).collect();
        assert_eq!(winners, [entry.entry.writer.as_str()], "entry {seq}, seed {seed}");
    }
    let hits = proxy.hits();
    println!(
        "{ENTRIES} places: {} to a, {} to b; {} lost; LASTCALL_SEED={seed}; requests by fault {hits:?}",
        a.len(),
        b.len(),
        lost_a + lost_b
    );
    assert!(lost_a + lost_b > ENTRIES / 10, "too few races: {lost_a} and {lost_b}");
    assert!(hits.len() >= 8, "too few kinds of faults: {hits:?}");
}

#[test]
fn a_no_is_told_at_once_with_the_next_step() {
    let Some(moto) = started() else { return };
    let told = |store: S3Store| {
        let begun = std::time::Instant::now();
        let text = store.get("ledger.json").unwrap_err().to_string();
        assert!(begun.elapsed() < Duration::from_secs(10), "{text}");
        assert!(!text.contains(SECRET), "{text}");
        text
    };
    let absent = told(S3Store::open(config(moto.address, "no-such-bucket", "x")).unwrap());
    assert!(absent.contains("there is no bucket `no-such-bucket`"), "{absent}");
    for (status, code, step) in [
        (403, "AccessDenied", "s3:ListBucket"),
        (403, "RequestTimeTooSkewed", "clock"),
        (403, "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
        (301, "PermanentRedirect", "AWS_REGION=eu-west-3"),
        (400, "ExpiredToken", "AWS_SESSION_TOKEN"),
    ] {
        let proxy = Proxy::start(moto.address, move |_| Fault::Answers(status, code));
        let text = told(S3Store::open(config(proxy.address, "books", "x")).unwrap());
        assert!(text.contains(step), "{text}");
    }
    // Nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = S3Config { patience: Duration::from_secs(1), ..config(port, "books", "x") };
    let text = told(S3Store::open(nobody).unwrap());
    assert!(text.contains("cannot be reached (AWS_ENDPOINT_URL)"), "{text}");
    // A server that never gets well: bounded, and it says how often it was asked.
    let proxy = Proxy::start(moto.address, |_| Fault::Answers(503, "SlowDown"));
    let sick = S3Config { patience: Duration::from_secs(1), ..config(proxy.address, "books", "x") };
    let text = told(S3Store::open(sick).unwrap());
    assert!(text.contains("SlowDown") && text.contains("asked"), "{text}");
    let proxy = Proxy::start(moto.address, |_| Fault::Silent);
    let mute = S3Config { patience: Duration::from_secs(1), ..config(proxy.address, "books", "x") };
    let text = told(S3Store::open(mute).unwrap());
    assert!(text.contains("no answer within 0.4 s"), "{text}");
}
