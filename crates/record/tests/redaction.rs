//! Redaction: what a rule hides is written nowhere, what no rule touches keeps its bytes, and the comparison is the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use lastcall_compare::{COMPARATOR_VERSION, PairConfig, PreparedPair, config_bytes};
use lastcall_contract::{Contract, Definition, Pick};
use lastcall_event::Preset;
use lastcall_ledger::control::{Control, Pair};
use lastcall_ledger::position::Partition;
use lastcall_ledger::redaction::{Redaction, RedactionRule};
use lastcall_ledger::rows::{CallRow, DeadRow, ResultRow};
use lastcall_ledger::store::{MemoryStore, Store};
use lastcall_ledger::verify::{Outcome, verify};
use lastcall_ledger::{Ledger, LedgerClock};
use lastcall_record::{RedactionKey, Redactor, RunError, RunOptions, run_file};
use proptest::prelude::*;
use serde_json::{Value, json};

const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn key() -> RedactionKey {
    RedactionKey::of(SECRET, "a ledger").unwrap()
}

fn redaction(rules: &[&str], key: &RedactionKey) -> Redaction {
    let rules = rules.iter().map(|rule| RedactionRule::parse(rule).unwrap()).collect();
    Redaction { rules, key: key.fingerprint() }
}

fn redactor(rules: &[&str], preset: Preset) -> Redactor {
    Redactor::new(&redaction(rules, &key()), preset, key()).unwrap().unwrap()
}

/// A record with these fields beside what every call has.
fn call(more: &str) -> String {
    format!(
        r#"{{"type":"mirrored_call","schema_version":1,"call_id":"c1","ts":"2026-06-01T10:00:00Z","tool_id":"t",{more},"outcome":{{"status":"ok"}}}}"#
    )
}

/// HMAC-SHA-256 as RFC 2104 writes it, over SHA-256 alone: shares no code with the product's.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let sha = |bytes: Vec<u8>| -> Vec<u8> {
        let digest = lastcall_contract::Digest::of(&bytes);
        digest
            .hex()
            .as_bytes()
            .chunks(2)
            .map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap())
            .collect()
    };
    let block = |pad: u8| -> Vec<u8> { (0..64).map(|i| key.get(i).copied().unwrap_or(0) ^ pad).collect() };
    let inner = sha([block(0x36), message.to_vec()].concat());
    sha([block(0x5c), inner].concat())
}

#[test]
fn a_hash_is_a_keyed_one_that_anybody_with_the_key_can_make() {
    let secret: Vec<u8> = (0..32).collect();
    let ledger_key = hmac(&secret, b"lastcall redaction 1\0a ledger");
    let digest = hmac(&ledger_key, b"text\0ana@example.com");
    let expected = format!("hmac:{}", lastcall_ledger::hex(&digest[..16]));
    assert_eq!(key().of_text("ana@example.com"), expected);
    let other = RedactionKey::of(SECRET, "another ledger").unwrap();
    assert_ne!(other.of_text("ana@example.com"), expected, "two ledgers cannot be joined");
    assert_ne!(other.fingerprint(), key().fingerprint());
    assert!(!format!("{:?}", key()).contains(&SECRET[..8]));
    for odd in ["", "00", &SECRET[1..], &SECRET.replace('0', "x")] {
        assert_eq!(RedactionKey::of(odd, "a ledger").unwrap_err(), "a redaction key is 64 hex digits");
    }
}

#[test]
fn rules_do_what_they_say_and_leave_the_rest_byte_for_byte() {
    let hashed = |text: &str| format!("\"{}\"", key().of_text(text));
    let cases: Vec<(&[&str], String, Option<String>)> = vec![
        // nothing of it in the record: not touched, white space and all
        (&["/arguments/email=hash"], call(r#" "arguments" : { "n" : 1.0 } "#), None),
        (&["/arguments/email=keep", "/arguments/x=hash"], call(r#""arguments":{"email":"a"}"#), None),
        (&["other:/arguments/email=hash"], call(r#""arguments":{"email":"a"}"#), None),
        (
            &["t:/arguments/email=hash"],
            call(r#""arguments":{"email":"a@b.c","n":1.00,"big":123456789012345678901}"#),
            Some(call(&format!(
                r#""arguments":{{"email":{},"n":1.00,"big":123456789012345678901}}"#,
                hashed("a@b.c")
            ))),
        ),
        // a key under any escape, and twice
        (
            &["/arguments/email=drop"],
            call(r#""arguments":{"e\u006dail":"a","n":1,"email":"b"}"#),
            Some(call(r#""arguments":{"n":1}"#)),
        ),
        (&["/arguments/a~1b=drop"], call(r#""arguments":{"a/b":1}"#), Some(call(r#""arguments":{}"#))),
        // any key, any index; what is kept within
        (
            &["/arguments/*=drop", "/arguments/order=keep"],
            call(r#""arguments":{"order":7,"email":"a","deep":{"x":1}}"#),
            Some(call(r#""arguments":{"order":7}"#)),
        ),
        (
            &["/arguments/people/*/name=hash"],
            call(r#""arguments":{"people":[{"name":"ana","n":1},{"n":2},{"name":"bo"}]}"#),
            Some(call(&format!(
                r#""arguments":{{"people":[{{"name":{},"n":1}},{{"n":2}},{{"name":{}}}]}}"#,
                hashed("ana"),
                hashed("bo")
            ))),
        ),
        // wherever the record repeats the arguments
        (
            &["/arguments/email=drop"],
            call(
                r#""arguments":{"email":"a"},"candidates":[{"contract_id":"t@2","arguments":{"email":"a","m":1}}],"current_rerun":{"contract_id":"t@1","arguments":{"email":"a"}}"#,
            ),
            Some(call(
                r#""arguments":{},"candidates":[{"contract_id":"t@2","arguments":{"m":1}}],"current_rerun":{"contract_id":"t@1","arguments":{}}"#,
            )),
        ),
        // the text of arguments
        (
            &["/arguments/email=drop"],
            call(r#""arguments_text":"{\"email\": \"a\", \"n\": 1}""#),
            Some(call(r#""arguments_text":"{\"n\":1}""#)),
        ),
        (
            &["/arguments/email=drop"],
            call(r#""arguments_text":"{\"email\": \"a""#),
            Some(call(&format!(r#""arguments_text":{}"#, hashed("{\"email\": \"a")))),
        ),
        // another shape than the rule expects: a list of them, or the value itself
        (
            &["/arguments/customer/email=drop"],
            call(r#""arguments":{"customer":[{"email":"a","n":1}]}"#),
            Some(call(r#""arguments":{"customer":[{"n":1}]}"#)),
        ),
        (
            &["/arguments/customer/email=drop"],
            call(r#""arguments":{"customer":"a@b.c"}"#),
            Some(call(&format!(r#""arguments":{{"customer":{}}}"#, hashed("a@b.c")))),
        ),
        (
            &["/arguments/email=hash"],
            call(r#""arguments":"{\"email\":\"a\"}""#),
            Some(call(&format!(r#""arguments":{}"#, hashed("{\"email\":\"a\"}")))),
        ),
        // null is the absence of a value; the fields that must stay are passed over
        (&["/arguments/email=hash"], call(r#""arguments":{"email":null}"#), None),
        (
            &["/envelope/*=drop"],
            call(r#""arguments":{},"envelope":{"cohort":"eu","session_id":"s","delegation":["x"]}"#),
            Some(call(r#""arguments":{},"envelope":{"cohort":"eu"}"#)),
        ),
        (
            &["/envelope/delegation/*=hash"],
            call(r#""arguments":{},"envelope":{"delegation":["ana"]}"#),
            Some(call(&format!(r#""arguments":{{}},"envelope":{{"delegation":[{}]}}"#, hashed("ana")))),
        ),
        // a field that this build does not know
        (&["/who=drop"], call(r#""arguments":{},"who":{"name":"ana"}"#), Some(call(r#""arguments":{}"#))),
    ];
    for (rules, record, expected) in cases {
        let got = redactor(rules, Preset::Native).record("t", &record);
        let pointer = |rule: &str| rule.split('=').next().unwrap().trim_start_matches("t:").to_owned();
        let expected = expected.map(|text| {
            let body = text.strip_suffix('}').unwrap().to_owned();
            format!("{body},\"redacted\":[{:?}]}}", pointer(rules[0]))
        });
        assert_eq!(got, expected, "{rules:?} on {record}");
        if let Some(text) = got {
            lastcall_event::decode(text.as_bytes(), Preset::Native).unwrap();
        }
    }
    let interceptor = r#"{"trace_id":"x","tool_id":"t","current_version":"1","candidate_version":"2","ts":"2026-06-01T10:00:00Z","raw_args":{"email":"a"},"current_args":{"email":"a"},"candidate_args":{"email":"a"},"outcome":"ok","candidate_error":"ValidationError: 'a@b.c' is no mail"}"#;
    let got = redactor(&["/arguments/email=drop", "/candidate_error=hash"], Preset::Interceptor)
        .record("t", interceptor)
        .unwrap();
    assert!(got.contains(r#""raw_args":{},"current_args":{},"candidate_args":{}"#), "{got}");
    assert!(got.contains(r#""candidate_error":"ValidationError: hmac:"#) && !got.contains("a@b.c"), "{got}");
}

const OLD: &str = r#"{"name":"refund","inputSchema":{"type":"object","properties":{
    "order":{"type":"string"},"email":{"type":"string"},"amount":{"type":"number"},
    "contacts":{"type":"object","additionalProperties":{"type":"object"}}},"required":["order"]}}"#;
const NEW: &str = r#"{"name":"refund","inputSchema":{"type":"object","properties":{
    "order":{"type":"string"},"email":{"type":"string","maxLength":12},"amount":{"type":"number","maximum":50},
    "contacts":{"type":"object","additionalProperties":{"type":"object","properties":{"age":{"type":"integer"}}}}},
    "required":["order"]}}"#;

struct Setup {
    dir: tempfile::TempDir,
    store: MemoryStore,
    ledger: Ledger,
}

impl Setup {
    fn new() -> Self {
        let store = MemoryStore::default();
        let ledger = Ledger::init_in(Arc::new(store.clone()), LedgerClock::System, "memory").unwrap();
        let contract = |id: &str, text: &str| {
            Contract::new(id, Definition::from_text(id, text, Pick::default()).unwrap())
        };
        let config = PairConfig::default();
        let prepared =
            PreparedPair::new(&contract("refund@1", OLD), &contract("refund@2", NEW), &config).unwrap();
        let pair = Pair {
            tool_id: "refund".to_owned(),
            current: "refund@1".to_owned(),
            current_digest: ledger.put_object(OLD.as_bytes()).unwrap(),
            candidate: "refund@2".to_owned(),
            candidate_digest: ledger.put_object(NEW.as_bytes()).unwrap(),
            config_digest: ledger.put_object(&config_bytes(&config)).unwrap(),
            epoch: prepared.epoch().clone(),
            comparator: COMPARATOR_VERSION,
        };
        ledger.append_control(Control::Observe { pair }).unwrap();
        Self { dir: tempfile::tempdir().unwrap(), store, ledger }
    }

    fn key(&self) -> RedactionKey {
        RedactionKey::of(SECRET, &self.ledger.meta().id).unwrap()
    }

    fn run(&self, name: &str, text: &str, rules: &[&str], key: Option<RedactionKey>) -> Result<(), RunError> {
        let file = self.dir.path().join(name);
        fs::write(&file, text).unwrap();
        let redaction = (!rules.is_empty()).then(|| redaction(rules, &self.key()));
        let options = RunOptions { redaction, key, ..RunOptions::default() };
        run_file(&self.ledger, &file, &options, &mut |_| {}).map(drop)
    }

    fn rows(&self, source: &str) -> (Vec<CallRow>, Vec<ResultRow>, Vec<DeadRow>) {
        let (mut calls, mut results, mut dead) = (Vec::new(), Vec::new(), Vec::new());
        for (_, chunk) in self.ledger.partition(source, Partition(0)).unwrap().chunks() {
            self.ledger.for_each_call(chunk, |row| calls.push(row)).unwrap();
            self.ledger.for_each_result(chunk, |row| results.push(row)).unwrap();
            self.ledger.for_each_dead(chunk, |row| dead.push(row)).unwrap();
        }
        let report = verify(&self.ledger, &mut |_| {}).unwrap();
        assert_eq!(report.outcome, Outcome::Intact, "{:?}", report.findings);
        (calls, results, dead)
    }

    /// Everything that was written: raw bytes, and rows.
    fn said(&self, sources: &[&str]) -> String {
        let mut out = String::new();
        for folder in ["chains", "objects", "calls", "results", "dead"] {
            for path in self.store.list(folder).unwrap() {
                out += &String::from_utf8_lossy(&self.store.get(&path).unwrap().unwrap());
            }
        }
        for source in sources {
            let (calls, results, dead) = self.rows(source);
            out += &format!("{calls:?}{results:?}");
            dead.iter().for_each(|row| out += &String::from_utf8_lossy(&row.bytes));
        }
        out
    }
}

fn refund(n: usize, arguments: &Value) -> String {
    json!({
        "type": "mirrored_call", "schema_version": 1, "call_id": format!("c{n}"), "ts": "2026-06-01T10:00:00Z",
        "tool_id": "refund", "contract_id": "refund@1", "arguments": arguments,
        "outcome": {"status": "ok", "result": {"to": "ana@example.com"}},
        "envelope": {"agent_id": "a1", "cohort": "eu", "session_id": "ana"},
        "candidates": [{"contract_id": "refund@2", "input": "raw", "status": "not_run", "arguments": arguments}],
    })
    .to_string()
        + "\n"
}

fn input() -> String {
    refund(1, &json!({"order": "o1", "email": "ana@example.com", "amount": 7}))
        + &refund(2, &json!({"order": "o2", "email": "bo@x.org", "amount": 70}))
        + &refund(
            3,
            &json!({"order": "o3", "email": "ana@example.com", "contacts": {"ana@example.com": {"age": "old"}}}),
        )
        + "{\"type\":\"mirrored_call\",\"arguments\":{\"email\":\"ana@example.com\"}}\n"
        + "{\"type\":\"mirrored_call\",\"arguments\":{\"email\":\"ana@exam\n"
}

const RULES: [&str; 5] = [
    "/arguments/email=hash",
    "/arguments/contacts/*=drop",
    "/outcome/result/to=drop",
    "/envelope/session_id=hash",
    "/candidates/*/result=drop",
];

/// What a row of results says, without what is made from the stored record.
fn compared(rows: &[ResultRow]) -> Vec<String> {
    rows.iter()
        .map(|row| {
            let mut row = row.clone();
            (row.commitment, row.session_key) = ([0; 32], None);
            format!("{row:?}")
        })
        .collect()
}

#[test]
fn what_is_hidden_is_written_nowhere_and_compared_all_the_same() {
    let plain = Setup::new();
    plain.run("calls", &input(), &[], None).unwrap();
    let said = plain.said(&["calls"]);
    for word in ["ana@example.com", "bo@x.org"] {
        assert!(said.contains(word), "the search can find it");
    }
    let hidden = Setup::new();
    hidden.run("calls", &input(), &RULES, Some(hidden.key())).unwrap();
    let said = hidden.said(&["calls"]);
    for word in ["ana@example.com", "bo@x.org", "ana@exam", "\"ana\"", SECRET] {
        assert!(!said.contains(word), "{word}");
    }
    let (calls, results, dead) = hidden.rows("calls");
    let (_, plain_results, plain_dead) = plain.rows("calls");
    // The one pointer that a rule's `*` reaches is hidden too; everything else was compared as it arrived.
    let mut expected = compared(&plain_results);
    assert!(expected[2].contains("/contacts/ana@example.com/age"), "{}", expected[2]);
    expected[2] = expected[2].replace("/contacts/ana@example.com/age", "/contacts/*");
    assert_eq!(compared(&results), expected);
    assert_eq!(results.len(), 3);
    // Equality is still visible: the same person in two calls, another one in the third; sessions are told apart.
    let email =
        |row: &CallRow| serde_json::from_str::<Value>(&row.record).unwrap()["arguments"]["email"].clone();
    assert_eq!(email(&calls[0]), json!(hidden.key().of_text("ana@example.com")));
    assert_eq!(email(&calls[0]), email(&calls[2]));
    assert_ne!(email(&calls[0]), email(&calls[1]));
    assert_eq!(calls[0].session_id.as_deref(), Some(hidden.key().of_text("ana").as_str()));
    assert!(results[0].session_key.is_some() && results[0].session_key == results[1].session_key);
    assert_ne!(results[0].session_key, plain_results[0].session_key, "nor can the session be tried out");
    assert!(calls.iter().all(CallRow::is_redacted));
    // A dead letter keeps its place, length and reason, and a hash.
    assert_eq!(dead.len(), 2);
    for (row, was) in dead.iter().zip(&plain_dead) {
        assert_eq!(
            (row.position, row.length, &row.reason),
            (was.position, was.bytes.len() as i64, &was.reason)
        );
        assert!(row.bytes.starts_with(b"hmac:") && row.bytes.len() == 37);
    }
    // No unkeyed hash over what arrived stands in the entries.
    let chain = hidden.ledger.partition("calls", Partition(0)).unwrap();
    let fingerprint = &chain.progress().unwrap().fingerprint;
    assert!(fingerprint.prefix.as_ref().unwrap().starts_with("hmac:"), "{fingerprint:?}");
    assert!(fingerprint.last.as_ref().unwrap().hash.starts_with("hmac:"), "{fingerprint:?}");
}

#[test]
fn a_source_with_a_redaction_is_recorded_with_its_key_or_not_at_all() {
    let setup = Setup::new();
    let (one, more) = (input(), input() + &refund(9, &json!({"order": "o9", "email": "cy@x.org"})));
    setup.run("calls", &one, &RULES, Some(setup.key())).unwrap();
    let entries = || setup.ledger.partition("calls", Partition(0)).unwrap().entries.len();
    let stood = entries();
    let says = |result: Result<(), RunError>| result.unwrap_err().to_string();
    assert!(says(setup.run("calls", &more, &[], None)).contains("--redaction-key"));
    let other = RedactionKey::of(&SECRET.replace("00", "ff"), &setup.ledger.meta().id).unwrap();
    assert!(says(setup.run("calls", &more, &[], Some(other))).contains("give the key that they began with"));
    assert!(
        says(setup.run("calls", &more, &["/arguments/email=drop"], Some(setup.key())))
            .contains("ledger redact")
    );
    assert_eq!(entries(), stood, "nothing was recorded");
    // With the key it goes on where it stood, and still notices a replaced file.
    let replaced = more.replacen("o1", "o0", 1);
    assert!(says(setup.run("calls", &replaced, &[], Some(setup.key()))).contains("bytes differ"));
    setup.run("calls", &more, &[], Some(setup.key())).unwrap();
    let (calls, ..) = setup.rows("calls");
    assert_eq!(calls.len(), 4);
    assert!(!setup.said(&["calls"]).contains("cy@x.org"));
    // A new redaction holds from its control entry on; taken away, everything is kept again, and resuming still works.
    setup.ledger.redact("calls", None).unwrap().unwrap();
    let last = more.clone() + &refund(10, &json!({"order": "o10", "email": "di@x.org"}));
    setup.run("calls", &last, &[], Some(setup.key())).unwrap();
    assert!(setup.said(&["calls"]).contains("di@x.org"));
    assert_eq!(setup.ledger.redact("calls", None).unwrap(), None, "it stands so already");
}

#[test]
fn a_refused_rule_registers_nothing() {
    let setup = Setup::new();
    let error = setup.run("calls", &input(), &["/call_id=hash"], Some(setup.key())).unwrap_err();
    assert!(error.to_string().contains("must stay as it is"), "{error}");
    let control = setup.ledger.control().unwrap();
    assert!(control.sources.is_empty() && control.redactions.is_empty());
}

/// Any JSON, with a word that must not come through at the places that the rules name.
fn tree(depth: u32) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        "[a-z \"\\\\é]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(depth, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c~/*0-9]{0,2}", inner, 0..4)
                .prop_map(|map: BTreeMap<String, Value>| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever stands at a place that a rule names is gone, and what stands elsewhere is as it was.
    #[test]
    fn any_value_at_a_named_place_is_gone(at in tree(3), beside in tree(3), below in tree(2), drop in any::<bool>()) {
        let secret = "qqqqqqqqqqqq";
        let planted = |v: &Value| json!({"v": v, "s": secret});
        let arguments = json!({
            "named": planted(&at), "beside": beside,
            "list": [{"x": planted(&below), "k": 1}, planted(&below)],
        });
        let action = if drop { "drop" } else { "hash" };
        let rules = [format!("/arguments/named={action}"), format!("/arguments/list/*/x={action}"),
            format!("/arguments/list/1={action}"), format!("/candidates/*/result={action}")];
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let result = planted(&at).to_string();
        for record in [
            call(&format!(r#""arguments":{arguments},"candidates":[{{"contract_id":"t@2","arguments":{arguments},"result":{result}}}]"#)),
            call(&format!(r#""arguments_text":{}"#, Value::from(arguments.to_string()))),
        ] {
            let text = redactor(&rules, Preset::Native).record("t", &record).unwrap();
            prop_assert!(!text.contains(secret), "{}", text);
            let decoded = lastcall_event::decode(text.as_bytes(), Preset::Native).unwrap();
            let lastcall_event::Record::Call(stored) = decoded.record else { panic!() };
            let of = stored.arguments.get().map(str::to_owned).or_else(|| stored.arguments_text.as_ref().map(|t| t.to_string()));
            let kept: Value = serde_json::from_str(&of.unwrap()).unwrap();
            prop_assert_eq!(&kept["beside"], &beside);
            prop_assert_eq!(&kept["list"][0]["k"], &json!(1));
            prop_assert_eq!(kept.get("named").is_none(), drop);
            // Once more changes nothing that a drop left; a hash of a hash is another text, and is never made.
            if drop {
                prop_assert_eq!(redactor(&rules, Preset::Native).record("t", &text), None);
            }
        }
    }
}

/// A boolean or a number where the rule expects something around it may be what the rule is about; null is nothing.
#[test]
fn what_has_another_shape_is_hidden_whatever_it_is() {
    let rules = ["/arguments/consent/given=hash", "/arguments/list/given=drop"];
    let redactor = redactor(&rules, Preset::Native);
    for value in ["true", "false", "7", "\"yes\""] {
        let record = call(&format!(
            r#""arguments":{{"consent":{value},"list":[{value},{{"given":{value}}}],"other":{value}}}"#
        ));
        let got = redactor.record("t", &record).unwrap();
        let got: Value = serde_json::from_str(&got).unwrap();
        let arguments = &got["arguments"];
        assert!(arguments["consent"].as_str().unwrap().starts_with("hmac:"), "{got}");
        assert!(arguments["list"][0].as_str().unwrap().starts_with("hmac:"), "{got}");
        assert_eq!(arguments["list"][1], json!({}));
        assert_eq!(arguments["other"], serde_json::from_str::<Value>(value).unwrap());
    }
    assert_eq!(redactor.record("t", &call(r#""arguments":{"consent":null,"list":[null]}"#)), None);
}

/// Rules that come while a chunk is open hold for it: it is dropped, and read again.
#[test]
fn a_rule_that_comes_while_a_file_is_read_holds_for_the_open_chunk() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::init(&dir.path().join("ledger"), LedgerClock::System).unwrap();
    let file = dir.path().join("calls.jsonl");
    let lines: Vec<String> = (0..1000)
        .map(|n| {
            let record = call(&format!(r#""arguments":{{"email":"ana{n}@secret.example"}}"#));
            record.replace("\"c1\"", &format!("\"c{n}\""))
        })
        .collect();
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let key = RedactionKey::of(SECRET, &ledger.meta().id).unwrap();
    let options = RunOptions { key: Some(key.clone()), ..RunOptions::default() };
    let mut asked = false;
    let summary = run_file(&ledger, &file, &options, &mut |stage| {
        if !asked && stage.records > 200 {
            asked = true;
            ledger.redact("calls.jsonl", Some(redaction(&["/arguments/email=hash"], &key))).unwrap();
        }
    })
    .unwrap();
    assert!(asked);
    assert_eq!(summary.balance.calls, 1000);
    let chain = ledger.partition("calls.jsonl", Partition(0)).unwrap();
    let mut calls = 0;
    for (_, chunk) in chain.chunks() {
        ledger
            .for_each_call(chunk, |row: CallRow| {
                calls += 1;
                assert!(!row.record.contains("secret.example"), "{}", row.record);
            })
            .unwrap();
    }
    assert_eq!(calls, 1000);
    for path in ledger.store().list("calls").unwrap() {
        let bytes = ledger.store().get(&path).unwrap().unwrap();
        assert!(!bytes.windows(14).any(|w| w == b"secret.example"), "{path}");
    }
    assert_eq!(verify(&ledger, &mut |_| {}).unwrap().outcome, Outcome::Intact);
}
