//! Published schemas and examples hold together; every refusal of a message has its code and text.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::PathBuf;

use lastcall_event::{Preset, Record, decode, event_schemas};
use serde_json::Value;

fn schemas() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas/events")
}

/// `LASTCALL_WRITE_SCHEMAS=1 cargo test -p lastcall-event` writes them anew.
#[test]
fn the_published_schemas_are_those_of_the_types() {
    for (name, schema) in event_schemas() {
        let path = schemas().join(format!("{name}.schema.json"));
        let text = format!("{:#}\n", schema);
        if std::env::var_os("LASTCALL_WRITE_SCHEMAS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == text,
            "{name}.schema.json is not what the types say; see the comment above this test"
        );
    }
}

fn preset_of(name: &str) -> Preset {
    if name.starts_with("interceptor") { Preset::Interceptor } else { Preset::Native }
}

#[test]
fn every_example_validates_and_decodes() {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(schemas().join("examples")).unwrap() {
        names.push(entry.unwrap().path());
    }
    names.sort();
    assert!(names.len() >= 8);
    let all = event_schemas();
    let mut shown = String::new();
    for path in names {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let kind = name.split('-').next().unwrap();
        let (_, schema) = all.iter().find(|(n, _)| *n == kind).unwrap();
        let validator = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        let decoded = decode(text.as_bytes(), preset_of(&name)).unwrap();
        assert_eq!(decoded.unknown_fields, 0, "{name}");
        let line = match &decoded.record {
            Record::Call(call) => serde_json::to_string(call).unwrap(),
            Record::Coverage(row) => serde_json::to_string(row).unwrap(),
            Record::Loss(row) => serde_json::to_string(row).unwrap(),
            Record::Clock(at) => at.to_string(),
        };
        shown.push_str(&format!("{name}: {line}\n"));
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn refused_messages_have_codes() {
    let call = |rest: &str| {
        format!(
            r#"{{"type":"tool_call","schema_version":1,"call_id":"c","ts":"2026-06-01T00:00:00Z","tool_id":"t",{rest}}}"#
        )
    };
    let ok = r#""arguments":{},"outcome":{"status":"ok"}"#;
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("truncated", br#"{"type":"tool_call","#.to_vec()),
        ("not utf-8", vec![b'{', 0xff, b'}']),
        ("a list", b"[1,2]".to_vec()),
        ("two objects", b"{} {}".to_vec()),
        ("no type", b"{}".to_vec()),
        ("no version", br#"{"type":"clock"}"#.to_vec()),
        ("a later version", br#"{"type":"clock","schema_version":2,"ts":"2026-06-01T00:00:00Z"}"#.to_vec()),
        ("another type", br#"{"type":"secret-value","schema_version":1}"#.to_vec()),
        ("no arguments", call(r#""outcome":{"status":"ok"}"#).into_bytes()),
        (
            "both arguments",
            call(r#""arguments":{},"arguments_text":"{}","outcome":{"status":"ok"}"#).into_bytes(),
        ),
        ("no outcome", call(r#""arguments":{}"#).into_bytes()),
        ("a status of its own", call(r#""arguments":{},"outcome":{"status":"secret-value"}"#).into_bytes()),
        ("a field twice", call(&format!(r#"{ok},"call_id":"d""#)).into_bytes()),
        ("a bad time", br#"{"type":"clock","schema_version":1,"ts":"secret-value"}"#.to_vec()),
        ("a number for a string", br#"{"type":"tool_call","schema_version":1,"call_id":77}"#.to_vec()),
        (
            "candidates of a tool_call",
            call(&format!(r#"{ok},"candidates":[{{"contract_id":"t@2"}}]"#)).into_bytes(),
        ),
        ("an empty call id", call(ok).replace("\"c\"", "\"\"").into_bytes()),
        ("a loss without interval", br#"{"type":"loss","schema_version":1,"count":1}"#.to_vec()),
        ("coverage of nothing", br#"{"type":"coverage","schema_version":1}"#.to_vec()),
    ];
    let mut shown = String::new();
    for (what, bytes) in cases {
        let error = decode(&bytes, Preset::Native).expect_err(what);
        assert!(!error.to_string().contains("secret-value"), "{what}: a value in the text: {error}");
        shown.push_str(&format!("{what}: {error}\n"));
    }
    insta::assert_snapshot!(shown);
    assert!(decode(call(ok).as_bytes(), Preset::Native).is_ok());
}

#[test]
fn unknown_fields_are_counted_at_every_level() {
    let text = r#"{"type":"mirrored_call","schema_version":1,"call_id":"c","ts":"2026-06-01T00:00:00Z","tool_id":"t","x":[1],
        "arguments":{"free":1},"outcome":{"status":"ok","y":{}},"envelope":{"z":1},
        "upstream":{"from":1,"to":2,"w":0},"candidates":[{"contract_id":"t@2","v":1}],"current_rerun":{"u":1}}"#;
    assert_eq!(decode(text.as_bytes(), Preset::Native).unwrap().unknown_fields, 6);
}

#[test]
fn decoding_is_total() {
    use proptest::prelude::*;
    proptest!(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() },
        |(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..600)| {
        for preset in [Preset::Native, Preset::Interceptor] {
            let _ = decode(&bytes, preset);
        }
        let whole = std::fs::read(schemas().join("examples/mirrored_call.json")).unwrap();
        let mut edited = whole[..cut.min(whole.len())].to_vec();
        edited.extend(&bytes);
        let _ = decode(&edited, Preset::Native);
    });
}
