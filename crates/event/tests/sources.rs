//! Other people's records through their maps: what real SDKs and exporters emitted, and what nobody should.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::PathBuf;

use base64::Engine as _;
use lastcall_event::source::{
    Decoder, Found, Header, Item, Map, Message, Nobody, Resolve, Resolved, map_schema, sniff,
};
use lastcall_event::{Preset, Record, decode};
use serde_json::{Value, json};

fn fixture(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/sources");
    std::fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn decoder(preset: Preset) -> Decoder {
    Decoder::new(Map::parse(Map::text_of(preset).unwrap()).unwrap())
}

/// Each item: the native record as JSON, `other`, or `dead: CODE`. Every record must decode.
fn shown(items: &[Item<'_>]) -> Vec<Value> {
    let one = |item: &Item<'_>| match item {
        Item::Other => json!("other"),
        Item::Dead { error, .. } => json!(format!("dead: {}", error.code)),
        Item::Record { text, .. } => match decode(text.as_bytes(), Preset::Native) {
            Ok(_) => serde_json::from_str(text).unwrap(),
            Err(error) => json!(format!("dead: {}", error.code)),
        },
    };
    items.iter().map(one).collect()
}

fn read(preset: Preset, value: &[u8]) -> Vec<Value> {
    shown(&decoder(preset).decode(&Message::of(value), &Nobody))
}

fn calls(items: &[Value]) -> Vec<&Value> {
    items.iter().filter(|i| i.is_object()).collect()
}

/// What emit_otlp.py says that it emits; here it is said again by hand.
#[test]
fn what_the_opentelemetry_sdk_posts_is_read() {
    let items = read(Preset::OtlpProto, &fixture("otlp.pb"));
    assert_eq!(items.len(), 7, "an agent's span, a chat's and five tools");
    assert_eq!(items.iter().filter(|i| **i == json!("other")).count(), 2);
    let calls = calls(&items);
    assert_eq!(
        calls[0]["arguments"],
        json!({"order_id": "A-1001", "quantity": 2, "exact": 1.5, "include": ["lines", "state"]})
    );
    assert_eq!(calls[1]["arguments"], json!({"order_id": "A-1002", "deep": {"a": {"b": [1, {"c": true}]}}}));
    assert_eq!(calls[0]["outcome"]["result"], json!({"state": "shipped"}));
    let of = |pointer: &str| -> Vec<&str> {
        calls.iter().map(|c| c.pointer(pointer).and_then(Value::as_str).unwrap_or("-")).collect()
    };
    assert_eq!(of("/tool_id"), ["lookup_order"; 5]);
    assert_eq!(of("/outcome/status"), ["ok", "ok", "invalid_arguments", "timeout", "ok"]);
    assert_eq!(of("/outcome/error_class"), ["-", "-", "pydantic.ValidationError", "httpx.ReadTimeout", "-"]);
    let made = "reconstructed";
    assert_eq!(of("/fidelity"), [made, made, made, made, "not_captured"]);
    assert_eq!(of("/envelope/session_id"), ["conv-9"; 5]);
    assert_eq!(of("/envelope/agent_id"), ["support-agent"; 5]);
    for (index, call) in calls.iter().enumerate() {
        let id = format!("call-{}", index + 1);
        let trace = call["envelope"]["trace_id"].as_str().unwrap();
        assert!(trace.len() == 32 && trace.bytes().all(|b| b.is_ascii_hexdigit()));
        assert_eq!(call["envelope"]["tool_call_id"], json!(id));
        assert_eq!(call["call_id"], json!(format!("{trace}/{id}")));
        assert!(call["outcome"]["latency_ms"].as_f64().unwrap() >= 0.0);
        assert!(call["ts"].as_str().unwrap().starts_with("20"));
    }
    let text = read(Preset::OtlpProto, &fixture("otlp-text.pb"));
    let first = text.iter().find(|i| i.is_object()).unwrap();
    let exact = r#"{"order_id": "A-1001", "quantity": 2, "exact": 1.5, "include": ["lines", "state"]}"#;
    assert_eq!((&first["arguments_text"], &first["fidelity"]), (&json!(exact), &json!("raw")));
    assert_eq!(first["outcome"]["result"], json!({"state": "shipped"}), "a text that holds JSON");
}

/// The Collector's Go marshaler wrote the JSON, Python's SDK the protobuf: both say the same.
#[test]
fn both_encodings_of_a_batch_give_the_same_records() {
    let lines = String::from_utf8(fixture("otlp.jsonl")).unwrap();
    let mut seen = 0;
    for (line, name) in lines.lines().zip(["otlp.pb", "otlp-text.pb"]) {
        let (json, proto) =
            (read(Preset::OtlpJson, line.as_bytes()), read(Preset::OtlpProto, &fixture(name)));
        assert_eq!(json, proto, "{name}");
        seen += json.len();
        assert_eq!(sniff(line.as_bytes()), Some(Preset::OtlpJson));
    }
    assert_eq!(seen, 14);
    println!("{seen} of 14 spans are the same from JSON and from protobuf");
}

#[test]
fn cloudevents_of_the_sdk_are_read_in_both_forms() {
    let messages: Vec<Value> = serde_json::from_slice(&fixture("cloudevents-kafka.json")).unwrap();
    let unpack = |v: &Value| base64::engine::general_purpose::STANDARD.decode(v.as_str().unwrap()).unwrap();
    let mut forms: Vec<Vec<Value>> = Vec::new();
    for form in ["structured", "binary"] {
        let mut all = Vec::new();
        for message in messages.iter().filter(|m| m["form"] == json!(form)) {
            let headers: Vec<(String, Vec<u8>)> = message["headers"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| (name.clone(), unpack(value)))
                .collect();
            let headers: Vec<Header<'_>> =
                headers.iter().map(|(name, value)| Header { name, value }).collect();
            let value = unpack(&message["value"]);
            let message = Message { key: None, headers: &headers, value: &value };
            all.extend(shown(&decoder(Preset::CloudEvents).decode(&message, &Nobody)));
        }
        forms.push(all);
    }
    assert_eq!(forms[0], forms[1], "structured and binary");
    let lines = String::from_utf8(fixture("cloudevents.jsonl")).unwrap();
    let of_lines: Vec<Value> = lines.lines().flat_map(|l| read(Preset::CloudEvents, l.as_bytes())).collect();
    assert_eq!(forms[0], of_lines, "and as lines of a file");
    assert_eq!(of_lines.len(), 4);
    let [own, named, other, text] = of_lines.as_slice() else { panic!() };
    assert_eq!((&own["call_id"], &own["ts"]), (&json!("c-1"), &json!("2026-06-01T09:30:00Z")));
    assert_eq!(named["call_id"], json!("%2Fagents%2Fsupport/e-2"), "source and id together are unique");
    assert_eq!(named["ts"], json!("2026-06-01T09:30:00.250Z"));
    assert_eq!(named["arguments"], json!({"order_id": "A-1001", "quantity": 2}));
    assert_eq!(named["envelope"], json!({"agent_id": "support", "session_id": "s-9"}));
    assert_eq!(*other, json!("other"));
    assert_eq!(text["arguments_text"], json!(r#"{"order_id": "A-1", "quantity": 1.0}"#));
    assert!(lines.lines().all(|l| sniff(l.as_bytes()) == Some(Preset::CloudEvents)));
}

/// Data in base64 gives the same record as data in JSON.
#[test]
fn packed_data_is_the_same_data() {
    let data = r#"{"tool_id":"t","arguments":{"a":1.00},"outcome":{"status":"ok"}}"#;
    let packed = base64::engine::general_purpose::STANDARD.encode(data);
    let event = |data: &str| {
        format!(
            r#"{{"specversion":"1.0","id":"1","source":"s","type":"x.tool_call","time":"2026-06-01T00:00:00Z",{data}}}"#
        )
    };
    let texts: Vec<String> =
        [event(&format!("\"data\":{data}")), event(&format!("\"data_base64\":\"{packed}\""))]
            .iter()
            .map(|text| {
                match decoder(Preset::CloudEvents).decode(&Message::of(text.as_bytes()), &Nobody).as_slice() {
                    [Item::Record { text, .. }] => text.to_string(),
                    other => panic!("{other:?}"),
                }
            })
            .collect();
    assert_eq!(texts[0], texts[1]);
    assert!(texts[0].contains(r#""arguments":{"a":1.00}"#), "exact: {}", texts[0]);
}

const MAP: &str = r#"
format = 1
[call]
call_id = "/id"
ts = "/at"
tool_id = "/tool"
arguments = "/input"
[outcome]
status = "/status"
"#;

#[test]
fn schema_registry_framing_of_confluents_serializers_is_stripped() {
    let map = Decoder::new(Map::parse(MAP).unwrap());
    let framed = fixture("registry-json.bin");
    assert_eq!(framed[0], 0);
    let items = shown(&map.decode(&Message::of(&framed), &Nobody));
    assert_eq!(items[0]["arguments"], json!({"order_id": "A-1001"}));
    assert_eq!(items[0]["origin"], json!({"schema_id": 1}));

    let mut framed = read(Preset::OtlpProto, &fixture("registry-proto.bin"));
    let plain = read(Preset::OtlpProto, &fixture("otlp.pb"));
    for item in framed.iter_mut().filter(|i| i.is_object()) {
        assert!(item["origin"]["schema_id"].as_u64().is_some());
        item.as_object_mut().unwrap().remove("origin");
    }
    assert_eq!(framed, plain);

    let avro = fixture("registry-avro.bin");
    let items = map.decode(&Message::of(&avro), &Nobody);
    let [Item::Dead { bytes, error }] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!((error.code, &**bytes), ("avro", &*avro));
    assert!(error.message.contains("Avro") && error.message.contains("schema 2"), "{error}");
}

/// A batch in which one span is broken loses that span alone, which is kept with its index.
#[test]
fn a_broken_span_does_not_take_its_batch_along() {
    let line = fixture("otlp.jsonl");
    let mut batch: Value = serde_json::from_slice(line.split(|b| *b == b'\n').next().unwrap()).unwrap();
    let spans = batch.pointer_mut("/resourceSpans/0/scopeSpans/0/spans").unwrap().as_array_mut().unwrap();
    let whole = spans.len();
    spans[2]["startTimeUnixNano"] = json!(true);
    spans[3]["traceId"] = json!("SWzLTz+/ZECF98w3spcJN0==");
    spans[4]["startTimeUnixNano"] = json!("0");
    let text = serde_json::to_string(&batch).unwrap();
    let items = decoder(Preset::OtlpJson).decode(&Message::of(text.as_bytes()), &Nobody);
    let codes = shown(&items);
    assert_eq!(codes.len(), whole);
    for index in 2..5 {
        assert_eq!(codes[index], json!("dead: bad_field"), "{index}");
        let Item::Dead { bytes, error } = &items[index] else { panic!() };
        let kept: Value = serde_json::from_slice(bytes).unwrap();
        assert_eq!(kept, batch["resourceSpans"][0]["scopeSpans"][0]["spans"][index], "{error}");
    }
    assert_eq!(codes.iter().filter(|i| i.is_object()).count(), 2);

    // the same in protobuf: bytes of a span overwritten with what is no field
    let proto = fixture("otlp.pb");
    let at = proto.windows(7).position(|w| w == b"call-2\x1a".as_slice() || w == b"call-2J").unwrap();
    let name = proto[..at].windows(25).rposition(|w| w == b"execute_tool lookup_order").unwrap();
    let mut broken = proto.clone();
    broken[name] = 0xff; // the span's name is no UTF-8 any more
    let items = read(Preset::OtlpProto, &broken);
    assert_eq!(items.iter().filter(|i| **i == json!("dead: not_protobuf")).count(), 1, "{items:?}");
    assert_eq!((items.len(), calls(&items).len()), (7, 4));
}

struct Tools;

impl Resolve for Tools {
    fn resolve(&self, name: &str) -> Resolved {
        match name {
            "lookup_order" => Resolved::One {
                tool_id: "orders.lookup".to_owned(),
                contract_id: "orders.lookup@1".to_owned(),
            },
            "search" => Resolved::Contracts { tool_id: "web.search".to_owned() },
            "send" => Resolved::Tools,
            _ => Resolved::Nothing,
        }
    }
}

#[test]
fn a_contract_is_found_by_the_tools_name_or_said_to_be_unknown() {
    let map =
        Decoder::new(
            Map::parse(&MAP.replace(
                "[outcome]",
                "contract_version = \"/version\"\ncontract_id = \"/contract\"\n[outcome]",
            ))
            .unwrap(),
        );
    let got = |extra: &str, tool: &str| {
        let text = format!(
            r#"{{"id":"1","at":"2026-06-01T00:00:00Z","tool":"{tool}","input":{{}},"status":"success"{extra}}}"#
        );
        let items = map.decode(&Message::of(text.as_bytes()), &Tools);
        let [Item::Record { text, contract, .. }] = items.as_slice() else { panic!("{items:?}") };
        let value: Value = serde_json::from_str(text).unwrap();
        (value["tool_id"].clone(), value["contract_id"].clone(), value["origin"].clone(), *contract)
    };
    let by_name = json!({"tool_name": "lookup_order", "contract": "by_name"});
    assert_eq!(
        got("", "lookup_order"),
        (json!("orders.lookup"), json!("orders.lookup@1"), by_name, Some(Found::One))
    );
    assert_eq!(
        got(r#","version":"7""#, "lookup_order"),
        (json!("orders.lookup"), json!("orders.lookup@7"), json!({"tool_name": "lookup_order"}), None)
    );
    assert_eq!(
        got(r#","contract":"orders.lookup@3""#, "whatever"),
        (json!("orders.lookup"), json!("orders.lookup@3"), json!({"tool_name": "whatever"}), None)
    );
    let several = json!({"tool_name": "search", "contract": "several"});
    assert_eq!(
        got("", "search"),
        (json!("web.search"), json!("web.search@?"), several, Some(Found::Several))
    );
    assert_eq!(
        got("", "send"),
        (json!("send"), Value::Null, json!({"contract": "several"}), Some(Found::Several))
    );
    assert_eq!(got("", "none"), (json!("none"), Value::Null, Value::Null, Some(Found::Nothing)));
}

#[test]
fn maps_do_what_they_say() {
    let map = r#"
format = 1
input = "json"
each = "/batch/events"
[[when]]
"/kind" = "tool*"
"/input" = { exists = true }
[[when]]
"/kind" = ["retry"]
[call]
call_id = { join = ["/run", "/n", ["/attempt", { const = "1" }]] }
ts = [{ path = "/t", format = "unix_ms" }, { path = "/date", format = "%d.%m.%Y %H:%M" }]
tool_id = "/tool/name"
contract_version = "/tool/version"
arguments = ["/input", { const = {} }]
fidelity = { path = "/how", values = { "verbatim" = "raw", "*" = "reconstructed" } }
[outcome]
status = { path = "/state", values = { "DONE" = "ok", "*refused*" = "invalid_arguments" }, otherwise = "unknown" }
result = { path = "/output", text = "json" }
executed = "/ran"
latency_ms = "/took"
[envelope]
agent_id = "/who"
delegation = "/for"
"#;
    let text = r#"{"batch":{"events":[
      {"kind":"tool_result","run":"r/1","n":3,"t":1780306200250,"tool":{"name":"a","version":2},"input":{"x": 1.0},
       "how":"verbatim","state":"done","output":"[1, 2]","ran":true,"took":4,"who":"ana","for":["u","v"]},
      {"kind":"retry","run":"r","n":"4","attempt":2,"date":"01.06.2026 09:30","tool":{"name":"a","version":"3"},
       "state":"Was refused.","output":"plain"},
      {"kind":"tool_result"},
      {"kind":"retry","run":"r","n":5,"t":"x","tool":{"name":"a"}},
      17, {"kind":"retry","kind":"retry"}]}}"#;
    let items = shown(&Decoder::new(Map::parse(map).unwrap()).decode(&Message::of(text.as_bytes()), &Nobody));
    assert_eq!(
        items[0],
        json!({"type": "tool_call", "schema_version": 1, "call_id": "r%2F1/3/1", "ts": "2026-06-01T09:30:00.250Z",
            "tool_id": "a", "contract_id": "a@2", "arguments": {"x": 1.0}, "fidelity": "raw",
            "outcome": {"status": "ok", "executed": true, "result": [1, 2], "latency_ms": 4.0},
            "envelope": {"agent_id": "ana", "delegation": ["u", "v"]}})
    );
    assert_eq!(items[1]["call_id"], json!("r/4/2"));
    assert_eq!(items[1]["ts"], json!("2026-06-01T09:30:00.000Z"));
    assert_eq!((&items[1]["arguments"], &items[1]["outcome"]["result"]), (&json!({}), &json!("plain")));
    assert_eq!(items[1]["outcome"]["status"], json!("invalid_arguments"));
    assert_eq!(
        items[2..],
        [json!("other"), json!("dead: bad_field"), json!("dead: not_a_record"), json!("dead: bad_field")]
    );
}

#[test]
fn what_a_map_cannot_mean_is_refused_with_its_place() {
    let with = |from: &str, to: &str| {
        assert!(MAP.contains(from), "{from}");
        Map::parse(&MAP.replacen(from, to, 1)).map(|_| ()).unwrap_err().to_string()
    };
    for (from, to, wanted) in [
        ("format = 1", "format = 2", "`format`"),
        ("format = 1", "format = 1\ninput = \"xml\"", "`input`: is one of json"),
        ("format = 1", "format = 1\nfilter = 1", "`filter`: is not known"),
        ("format = 1", "format = 1\ninput = \"otlp-json\"\neach = \"/x\"", "`each`: is for input json alone"),
        ("format = 1", "format = 1\n[when]\n\"/a\" = { exist = true }", "`when./a`: only { exists"),
        ("call_id = \"/id\"", "call_id = \"id\"", "`call.call_id`: `id` is no path"),
        ("call_id = \"/id\"", "", "`call.call_id`: is needed"),
        ("call_id = \"/id\"", "call_id = { path = \"/a\", const = 1 }", "exactly one of"),
        ("call_id = \"/id\"", "call_id = { pfad = \"/a\" }", "exactly one of"),
        ("call_id = \"/id\"", "call_id = []", "the list is empty"),
        (
            "ts = \"/at\"",
            "ts = { path = \"/at\", format = \"seconds\" }",
            "`call.ts.format`: `seconds` is no format",
        ),
        ("ts = \"/at\"", "time = \"/at\"", "`call.time`: is not known; known are call_id, ts"),
        ("status = \"/status\"", "status = { const = \"fine\" }", "`fine` is not one of ok"),
        ("status = \"/status\"", "status = { path = \"/s\", otherwise = \"ok\" }", "goes with `values`"),
        ("status = \"/status\"", "status = ", "line 9"),
    ] {
        let got = with(from, to);
        assert!(got.contains(wanted), "{to}: {got}");
    }
}

/// `LASTCALL_WRITE_SCHEMAS=1 cargo test -p lastcall-event` writes it anew.
#[test]
fn the_published_schema_is_that_of_the_reader() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas/map.schema.json");
    let text = format!("{:#}\n", map_schema());
    if std::env::var_os("LASTCALL_WRITE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap_or_default() == text, "see the comment above this test");
    let validator = jsonschema::validator_for(&map_schema()).unwrap();
    let as_json = |text: &str| serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap();
    for preset in Preset::ALL {
        let Some(text) = Map::text_of(preset) else { continue };
        assert!(validator.is_valid(&as_json(text)), "{}", preset.as_str());
    }
    assert!(validator.is_valid(&as_json(MAP)));
    assert!(!validator.is_valid(&as_json(&MAP.replace("tool_id = \"/tool\"", "tool = \"/tool\""))));
    let (a, b) = (Map::text_of(Preset::OtlpJson).unwrap(), Map::text_of(Preset::OtlpProto).unwrap());
    assert_eq!(a.replace("input = \"otlp-json\"", "input = \"otlp-proto\""), b, "one map, two encodings");
}

/// A span in JSON, its parts replaced.
fn span(with: &[(&str, Value)]) -> String {
    let mut span = json!({
        "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7", "name": "execute_tool t", "kind": 1,
        "startTimeUnixNano": "1780306200250000000", "endTimeUnixNano": "1780306200291000000", "status": {},
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
            {"key": "gen_ai.tool.name", "value": {"stringValue": "t"}},
            {"key": "gen_ai.tool.call.arguments", "value": {"stringValue": "{}"}}]
    });
    for (pointer, value) in with {
        match pointer.strip_prefix('+') {
            Some(_) => span["attributes"].as_array_mut().unwrap().push(value.clone()),
            None => *span.pointer_mut(pointer).unwrap() = value.clone(),
        }
    }
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).to_string()
}

#[test]
fn hostile_spans_end_clearly() {
    let deep = |n: usize| {
        let mut value = json!({"intValue": "1"});
        for _ in 0..n {
            value = json!({"arrayValue": {"values": [value]}});
        }
        value
    };
    let at = "/attributes/2/value";
    let cases: Vec<(&str, String, &str)> = vec![
        ("plain", span(&[]), "raw"),
        ("time 0", span(&[("/startTimeUnixNano", json!("0"))]), "dead: bad_field"),
        ("no time", span(&[("/startTimeUnixNano", json!(""))]), "dead: missing_field"),
        (
            "time beyond",
            span(&[("/startTimeUnixNano", json!("99999999999999999999999999"))]),
            "dead: bad_field",
        ),
        ("negative time", span(&[("/startTimeUnixNano", json!("-99999999999999999999"))]), "dead: bad_field"),
        ("time as a number", span(&[("/startTimeUnixNano", json!(1780306200250000000u64))]), "raw"),
        ("time as a list", span(&[("/startTimeUnixNano", json!([]))]), "dead: bad_field"),
        ("ids in base64", span(&[("/traceId", json!("S/kvNXezTaajzpKdDg5HNg=="))]), "dead: bad_field"),
        ("ids of zeros", span(&[("/traceId", json!("0".repeat(32)))]), "dead: missing_field"),
        ("ids in capitals", span(&[("/traceId", json!("4BF92F3577B34DA6A3CE929D0E0E4736"))]), "raw"),
        ("no name", span(&[("/attributes/1/value", json!({}))]), "dead: missing_field"),
        ("name of another type", span(&[("/attributes/1/value", json!({"intValue": "7"}))]), "raw"),
        (
            "name as a list",
            span(&[("/attributes/1/value", json!({"arrayValue": {"values": []}}))]),
            "dead: bad_field",
        ),
        (
            "an attribute twice",
            span(&[("+", json!({"key": "gen_ai.tool.name", "value": {"stringValue": "u"}}))]),
            "dead: bad_field",
        ),
        ("another attribute twice", span(&[("+", json!({"key": "x"})), ("+", json!({"key": "x"}))]), "raw"),
        ("no arguments", span(&[(at, json!({}))]), "not_captured"),
        ("arguments null", span(&[(at, Value::Null)]), "not_captured"),
        (
            "arguments in a map",
            span(&[(at, json!({"kvlistValue": {"values": [{"key": "a", "value": {"intValue": 1}}]}}))]),
            "reconstructed",
        ),
        ("an empty map", span(&[(at, json!({"kvlistValue": {}}))]), "reconstructed"),
        (
            "NaN",
            span(&[(
                at,
                json!({"kvlistValue": {"values": [{"key": "a", "value": {"doubleValue": "NaN"}}]}}),
            )]),
            "dead: bad_field",
        ),
        (
            "too large an integer",
            span(&[(at, json!({"intValue": "9223372036854775808"}))]),
            "dead: bad_field",
        ),
        ("bytes", span(&[(at, json!({"bytesValue": "AAE="}))]), "reconstructed"),
        ("bytes that are none", span(&[(at, json!({"bytesValue": "?"}))]), "dead: bad_field"),
        ("nested 30", span(&[(at, deep(30))]), "reconstructed"),
        ("status by name", span(&[("/status", json!({"code": "STATUS_CODE_ERROR"}))]), "raw"),
        ("attributes of another type", span(&[("/attributes", json!({}))]), "dead: bad_field"),
        (
            "a span that is a text",
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":["x"]}]}]}"#.to_owned(),
            "dead: not_a_record",
        ),
        (
            "a scope that is a number",
            r#"{"resourceSpans":[{"scopeSpans":[7]}]}"#.to_owned(),
            "dead: not_a_record",
        ),
        (
            "spans that are an object",
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":{}}]}]}"#.to_owned(),
            "dead: bad_field",
        ),
        ("resources that are an object", r#"{"resourceSpans":{}}"#.to_owned(), "dead: bad_field"),
        ("a batch twice", r#"{"resourceSpans":[],"resourceSpans":[]}"#.to_owned(), "dead: bad_field"),
        (
            "a span as a list of its fields",
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[["4bf92f3577b34da6a3ce929d0e0e4736"]]}]}]}"#
                .to_owned(),
            "dead: not_a_record",
        ),
        ("a value as a list", span(&[(at, json!(["x"]))]), "dead: bad_field"),
        ("nothing", "{}".to_owned(), "other"),
        ("an empty batch", r#"{"resourceSpans":[]}"#.to_owned(), "other"),
        ("logs", r#"{"resourceLogs":[{}]}"#.to_owned(), "other"),
        ("another object", r#"{"spans":[]}"#.to_owned(), "dead: missing_field"),
        ("a list", "[]".to_owned(), "dead: not_a_record"),
        ("no JSON", "{".to_owned(), "dead: not_json"),
        ("nothing at all", String::new(), "dead: not_json"),
    ];
    for (what, text, wanted) in &cases {
        let items = read(Preset::OtlpJson, text.as_bytes());
        let got = items[0].as_str().or(items[0]["fidelity"].as_str());
        assert_eq!((items.len(), got), (1, Some(*wanted)), "{what}: {items:?}");
    }
    // deeper than a reader should follow: dead by itself, whatever the code
    let text = span(&[]).replace(
        "{\"stringValue\":\"{}\"}",
        &format!("{}{}", "{\"arrayValue\":{\"values\":[".repeat(5_000), "]}}".repeat(5_000)),
    );
    assert!(read(Preset::OtlpJson, text.as_bytes())[0].as_str().unwrap().starts_with("dead"));
    assert_eq!(read(Preset::OtlpJson, &[b'{', 0xff, b'}'])[0], json!("dead: not_utf8"));
    println!("{} of {} hostile batches end as stated", cases.len(), cases.len());
}

#[test]
fn large_arguments_and_many_attributes_pass() {
    let long = "x".repeat(10 << 20);
    let items = read(
        Preset::OtlpJson,
        span(&[("/attributes/2/value", json!({"stringValue": format!("{{\"a\":\"{long}\"}}")}))]).as_bytes(),
    );
    assert_eq!(items[0]["arguments_text"].as_str().unwrap().len(), long.len() + 8);
    let many: Vec<Value> =
        (0..100_000).map(|i| json!({"key": format!("k{i}"), "value": {"intValue": "1"}})).collect();
    let mut batch: Value = serde_json::from_str(&span(&[])).unwrap();
    let attributes = batch.pointer_mut("/resourceSpans/0/scopeSpans/0/spans/0/attributes").unwrap();
    attributes.as_array_mut().unwrap().extend(many);
    let items = read(Preset::OtlpJson, batch.to_string().as_bytes());
    assert_eq!(items[0]["fidelity"], json!("raw"));
}

#[test]
fn hostile_protobuf_ends_clearly() {
    let whole = fixture("otlp.pb");
    let (mut dead, mut shorter) = (0, 0);
    for cut in 0..whole.len() {
        let items = read(Preset::OtlpProto, &whole[..cut]);
        assert!(!items.is_empty());
        dead += usize::from(items == [json!("dead: not_protobuf")]);
        shorter += usize::from(items == [json!("other")]);
    }
    // a batch has one resource here: wherever it is cut, it is not whole
    assert_eq!((dead, shorter), (whole.len() - 1, 1), "only nothing at all is an empty batch");
    println!("{dead} of {} cuts of a batch are dead, and the empty one is empty", whole.len());
    assert_eq!(read(Preset::OtlpProto, b"{\"resourceSpans\":[]}"), [json!("dead: not_protobuf")]);
    // a hundred thousand levels of lists in one attribute
    let mut value = vec![0x18, 0x01];
    for _ in 0..2_000 {
        for tag in [0x0a, 0x2a] {
            let mut outer = vec![tag];
            let mut n = value.len();
            while n >= 0x80 {
                outer.push((n as u8 & 0x7f) | 0x80);
                n >>= 7;
            }
            outer.push(n as u8);
            outer.extend(&value);
            value = outer;
        }
    }
    let field = |tag: u8, body: &[u8]| {
        let mut out = vec![tag];
        let mut n = body.len();
        while n >= 0x80 {
            out.push((n as u8 & 0x7f) | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
        out.extend(body);
        out
    };
    let key = field(0x0a, b"gen_ai.tool.call.arguments");
    let attribute = [key, field(0x12, &value)].concat();
    let span = field(0x4a, &attribute);
    let batch = field(0x0a, &field(0x12, &field(0x12, &span)));
    assert_eq!(read(Preset::OtlpProto, &batch), [json!("dead: not_protobuf")]);
}

/// Whatever arrives, every byte of it ends as a record that decodes, as other, or as dead; nothing panics, and a message is
/// never lost.
#[test]
fn decoding_is_total() {
    use proptest::prelude::*;
    let presets = [Preset::OtlpJson, Preset::OtlpProto, Preset::CloudEvents];
    let mut decoders: Vec<Decoder> = presets.iter().map(|p| decoder(*p)).collect();
    decoders.push(Decoder::new(Map::parse(MAP).unwrap()));
    let seeds = [
        fixture("otlp.jsonl"),
        fixture("otlp.pb"),
        fixture("otlp-text.pb"),
        fixture("cloudevents.jsonl").split(|b| *b == b'\n').next().unwrap().to_vec(),
        fixture("registry-json.bin"),
        fixture("registry-proto.bin"),
        fixture("registry-avro.bin"),
    ];
    let line = seeds[0].split(|b| *b == b'\n').next().unwrap().to_vec();
    let config = ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(noise in prop::collection::vec(any::<u8>(), 0..60), seed in 0usize..8, at in any::<prop::sample::Index>(), keep in any::<bool>())| {
        let mut bytes = if seed == 7 { noise.clone() } else if seed == 0 { line.clone() } else { seeds[seed].clone() };
        if seed < 7 {
            let at = at.index(bytes.len());
            let to = if keep { (at + noise.len()).min(bytes.len()) } else { bytes.len() };
            bytes.splice(at..to, noise.iter().copied());
        }
        for decoder in &decoders {
            let headers = [Header { name: "ce_specversion", value: b"1.0" }, Header { name: "content-type", value: &noise }];
            for message in [Message::of(&bytes), Message { key: Some(&noise), headers: &headers, value: &bytes }] {
                let items = decoder.decode(&message, &Nobody);
                prop_assert!(!items.is_empty());
                for item in &items {
                    if let Item::Record { text, .. } = item
                        && let Ok(decoded) = decode(text.as_bytes(), Preset::Native)
                        && let Record::Call(call) = decoded.record {
                            prop_assert!(!call.call_id.is_empty());
                    }
                }
            }
        }
    });
}
