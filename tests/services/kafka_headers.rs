//! Messages as no client library writes them: headers whose names are no text.

use lastcall_ledger::system_now;
use lastcall_tests::run;
use lastcall_tests::services::broker::Broker;
use tempfile::TempDir;

use crate::raw::{Raw, put};
use crate::topic::{call, intact, on_disk, once, recorded};

const EVENTS: &str = "events";

/// A header whose name is no UTF-8 is left out, and no other with it: the binary form of CloudEvents is still one.
#[test]
fn an_odd_header_does_not_lose_the_others() {
    let Some(broker) = Broker::start() else { return };
    broker.topic(EVENTS, 1, &[]);
    let folder = TempDir::new().unwrap();
    let (ledger, path) = on_disk(&folder, "led");
    let args = ["ledger", "source", &path, EVENTS, "--kind", "topic", "--role", "tool-calls"];
    let said = run(&args.iter().chain(&["--preset", "cloudevents"]).copied().collect::<Vec<_>>());
    assert_eq!(said.code, 0, "{}", said.err);
    let known: [Raw<'_>; 4] = [
        (b"ce_specversion", b"1.0"),
        (b"ce_id", b"1"),
        (b"ce_type", b"tool_call"),
        (b"ce_source", b"/tests"),
    ];
    let odd: Raw<'_> = (b"\xff\xfeodd", b"x");
    let many = vec![odd; 300];
    let messages: [Vec<Raw<'_>>; 5] = [
        known.to_vec(),
        [&[odd][..], &known[..]].concat(),
        [&known[..2], &[odd, (b"", b""), odd], &known[2..]].concat(),
        [&known[..], &many].concat(),
        vec![odd],
    ];
    for (number, headers) in messages.iter().enumerate() {
        let value = call(number).to_string();
        put(&broker.address, EVENTS, 0, value.as_bytes(), headers, system_now().0);
    }
    let said = once(&broker, &path, &["--source", EVENTS]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains("panicked"), "{}", said.err);
    let all = recorded(&ledger);
    // The last one is no event: it says nothing of itself.
    assert_eq!((all.balance.calls, all.balance.dead), (4, 1), "{:?}", all.rows);
    intact(&path);
}
