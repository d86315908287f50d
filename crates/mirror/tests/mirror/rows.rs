//! A row is the call's own text with what the mirror adds.

use std::sync::Arc;

use lastcall_event::{CallRecord, Preset, RawValue, Record, Status, Suppression, Timestamp, decode_text};
use lastcall_mirror::{Answer, Replayed, Stand, coverage, row};
use proptest::prelude::*;
use serde_json::json;

use crate::common::{call, record};

fn answer(contract: &str, status: Status) -> Answer {
    Answer {
        contract: Arc::from(contract),
        executed: Some(true),
        status,
        arguments: Some("{\"id\": 1.0}".to_owned()),
        error_code: Some("e\"1".to_owned()),
        error_class: Some("k".into()),
        result: Some("{\"a\":[1e2, \"\\u00e4\"]}".to_owned()),
        partial: Some(false),
        suppression: Suppression::Replica,
        latency_ms: Some(1.23456),
    }
}

const STAND: Stand = Stand { from: 41, to: 42, through: Some(Timestamp(1_780_000_000_123)) };

#[test]
fn a_row_is_kept_text_and_what_the_mirror_adds() {
    let text = "{\"extra\" : [1.0,  {\"b\":1,\"a\":2}], \"schema_version\":1, \"call_id\":\"c\\u0031\", \"ts\":\"2026-06-01T00:00:00+02:00\",\
        \"tool_id\":\"t\", \"arguments\": {\"id\" : 1e0 , \"x\":\"\\/\"}, \"outcome\":{\"status\":\"ok\",\"new\":1}, \"type\":\"tool_call\"}";
    let replayed = Replayed {
        candidates: vec![answer("t@2", Status::Ok)],
        current_rerun: Some(answer("t@1", Status::Ok)),
    };
    let written = row(Some(text), &call(text), STAND, &replayed);
    let added = r#"{"contract_id":"t@2","input":"raw","executed":true,"status":"ok","error_code":"e\"1","error_class":"k","arguments":{"id": 1.0},"result":{"a":[1e2, "\u00e4"]},"partial":false,"suppression":"replica","latency_ms":1.235}"#;
    assert_eq!(
        written,
        format!(
            "{{\"type\":\"mirrored_call\",\"extra\":[1.0,  {{\"b\":1,\"a\":2}}],\"schema_version\":1,\"call_id\":\"c\\u0031\",\"ts\":\"2026-06-01T00:00:00+02:00\",\
             \"tool_id\":\"t\",\"arguments\":{{\"id\" : 1e0 , \"x\":\"\\/\"}},\"outcome\":{{\"status\":\"ok\",\"new\":1}},\
             \"upstream\":{{\"from\":41,\"to\":42,\"through\":\"2026-05-28T20:26:40.123Z\"}},\"candidates\":[{added}],\"current_rerun\":{}}}",
            added.replace("t@2", "t@1")
        )
    );
    let decoded = call(&written);
    assert_eq!(decoded.candidates[0].error_code.as_deref(), Some("e\"1"));
    assert_eq!(decoded.upstream.as_ref().map(|u| (u.from, u.to, u.through)), Some((41, 42, STAND.through)));
}

#[test]
fn a_coverage_row_says_how_far() {
    let text = coverage(STAND);
    assert_eq!(
        text,
        "{\"type\":\"coverage\",\"schema_version\":1,\"upstream\":{\"from\":41,\"to\":42,\"through\":\"2026-05-28T20:26:40.123Z\"}}"
    );
    let Record::Coverage(row) = decode_text(&text, Preset::Native).unwrap().record else { panic!() };
    assert_eq!(row.upstream.map(|u| (u.from, u.to)), Some((41, 42)));
    let text = coverage(Stand { through: None, ..STAND });
    assert!(decode_text(&text, Preset::Native).is_ok() && !text.contains("through"));
}

#[test]
fn every_status_and_suppression_is_read_again() {
    let text = record("t", "c", &json!({}));
    for status in [
        Status::Ok,
        Status::InvalidArguments,
        Status::BusinessError,
        Status::PermissionDenied,
        Status::RateLimited,
        Status::Timeout,
        Status::PlatformError,
        Status::Unknown,
        Status::TimedOut,
        Status::Shed,
        Status::Unavailable,
        Status::SampledOut,
        Status::NotRun,
    ] {
        for suppression in [
            Suppression::Replica,
            Suppression::Snapshot,
            Suppression::DryRun,
            Suppression::Sandbox,
            Suppression::Stub,
            Suppression::NotExecuted,
        ] {
            let replayed = Replayed {
                candidates: vec![Answer { suppression, ..answer("t@2", status) }],
                current_rerun: None,
            };
            let written = row(Some(&text), &call(&text), STAND, &replayed);
            let candidate = &call(&written).candidates[0];
            assert_eq!((candidate.status, candidate.suppression), (status, suppression));
        }
    }
}

#[test]
fn a_row_that_is_too_large_can_be_lightened() {
    let replayed = Replayed {
        candidates: vec![answer("t@2", Status::Ok)],
        current_rerun: Some(answer("t@1", Status::Ok)),
    };
    let light = replayed.lightened();
    assert!(light.current_rerun.is_none());
    let answer = &light.candidates[0];
    assert_eq!(
        (answer.status, answer.error_class.as_deref()),
        (Status::Unavailable, Some("answer_too_large"))
    );
    assert!(answer.result.is_none() && answer.arguments.is_none());
}

/// JSON text in odd forms.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        prop::sample::select(vec![
            "0",
            "-0.0",
            "1.0",
            "1e5",
            "1E-7",
            "123456789012345678901234567890",
            "0.1000"
        ])
        .prop_map(str::to_owned),
        string_text(),
    ];
    let space = prop::sample::select(vec!["", " ", "\n", "\t\r\n"]);
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let pairs = prop::collection::vec((string_text(), inner.clone()), 0..4);
        prop_oneof![
            (prop::collection::vec(inner, 0..4), space.clone())
                .prop_map(|(items, space)| format!("[{space}{}{space}]", items.join(&format!("{space},")))),
            (pairs, space.clone()).prop_map(|(pairs, space)| {
                let pairs: Vec<String> =
                    pairs.iter().map(|(k, v)| format!("{k}{space}:{space}{v}")).collect();
                format!("{{{space}{}{space}}}", pairs.join(","))
            }),
        ]
    })
}

fn escaped(text: &str, every: usize) -> String {
    let mut out = "\"".to_owned();
    for (n, c) in text.chars().enumerate() {
        let must = matches!(c, '"' | '\\') || c < ' ';
        if must || (every > 0 && n % every == 0) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out += &format!("\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out + "\""
}

fn string_text() -> impl Strategy<Value = String> {
    (prop::string::string_regex("[a-zä\"\\\\\u{1}\u{1F600} ]{0,8}").unwrap(), 0usize..4)
        .prop_map(|(text, every)| escaped(&text, every))
}

/// Fields of a native record, in any order, some that no build knows, keys escaped or not.
fn records() -> impl Strategy<Value = String> {
    let unknown =
        prop::collection::vec((prop::string::string_regex("x[a-zä\" ]{0,6}").unwrap(), json_text()), 0..4);
    let flags = prop::collection::vec(any::<bool>(), 8);
    (
        json_text(),
        json_text(),
        unknown,
        flags,
        prop::collection::vec(0usize..3, 32),
        any::<u64>(),
        json_text(),
    )
        .prop_map(|(arguments, result, unknown, flags, escapes, order, deep)| {
            let mirrored = flags[0];
            let mut fields: Vec<(String, String)> = vec![
                ("type".into(), if mirrored { "\"mirrored_call\"".into() } else { "\"tool_call\"".into() }),
                ("schema_version".into(), "1".into()),
                ("call_id".into(), escaped("c 1ä", escapes[31])),
                ("ts".into(), "\"2026-06-01T09:30:00.5+02:00\"".into()),
                ("tool_id".into(), "\"t\"".into()),
                ("outcome".into(), format!("{{\"status\":\"ok\",\"result\":{result},\"later\":{deep}}}")),
            ];
            match flags[1] {
                true => fields.push(("arguments".into(), arguments)),
                false => fields.push(("arguments_text".into(), escaped(&arguments, escapes[30]))),
            }
            if flags[2] {
                fields.push((
                    "envelope".into(),
                    "{\"session_id\":\"s\\u00e4\",\"delegation\":[\"a\"],\"odd\":1}".into(),
                ));
            }
            if flags[3] {
                fields.push(("fidelity".into(), "\"reconstructed\"".into()));
            }
            if mirrored {
                fields.push((
                    "candidates".into(),
                    "[{\"contract_id\":\"t@9\",\"status\":\"ok\",\"z\":1}]".into(),
                ));
                fields.push(("upstream".into(), "{\"from\":1,\"to\":2}".into()));
            }
            if flags[4] {
                fields.push(("current_rerun".into(), "{\"contract_id\":\"t@9\",\"status\":\"ok\"}".into()));
            }
            fields.extend(unknown);
            let len = fields.len() as u64;
            fields.rotate_left((order % len) as usize);
            if order % 3 == 0 {
                fields.reverse();
            }
            let space = ["", " ", "\n "][escapes[29]];
            let texts: Vec<String> = fields
                .iter()
                .zip(&escapes)
                .map(|((key, value), every)| format!("{}{space}:{value}", escaped(key, *every)))
                .collect();
            format!("{{{}}}", texts.join(&format!("{space},")))
        })
}

/// Top-level fields as they stand, without those that the mirror says.
fn kept(text: &str) -> Vec<(String, String)> {
    struct Pairs(Vec<(String, String)>);
    impl<'de> serde::Deserialize<'de> for Pairs {
        fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            struct V;
            impl<'de> serde::de::Visitor<'de> for V {
                type Value = Pairs;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                    let mut out = Vec::new();
                    while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                        out.push((key, value.get().to_owned()));
                    }
                    Ok(Pairs(out))
                }
            }
            d.deserialize_map(V)
        }
    }
    let Pairs(pairs) = serde_json::from_str(text).unwrap();
    let own = ["type", "upstream", "candidates", "current_rerun"];
    pairs.into_iter().filter(|(key, _)| !own.contains(&key.as_str())).collect()
}

fn same_call(a: &CallRecord<'_>) -> String {
    let call = CallRecord { upstream: None, candidates: Vec::new(), current_rerun: None, ..a.clone() };
    format!(
        "{} {} {}",
        serde_json::to_string(&call).unwrap(),
        call.outcome.unknown_fields,
        call.envelope.unknown_fields
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_row_of_any_native_record_says_what_the_record_said(text in records()) {
        let before = call(&text);
        let replayed = Replayed { candidates: vec![answer("t@2", Status::Ok), answer("t@3", Status::Shed)], current_rerun: None };
        let written = row(Some(&text), &before, STAND, &replayed);
        prop_assert_eq!(kept(&written), kept(&text));
        let decoded = decode_text(&written, Preset::Native).unwrap();
        let Record::Call(after) = &decoded.record else { panic!() };
        prop_assert_eq!(same_call(after), same_call(&before));
        prop_assert!(after.mirrored);
        prop_assert_eq!(after.unknown_fields, before.unknown_fields);
        let ids: Vec<&str> = after.candidates.iter().map(|c| &*c.contract_id).collect();
        prop_assert_eq!(ids, ["t@2", "t@3"]);
        prop_assert!(after.current_rerun.is_none());
        // a row is a record again, and mirrored twice says the same
        let again = row(Some(&written), after, STAND, &replayed);
        prop_assert_eq!(&again, &written);
    }

    #[test]
    fn a_row_of_another_preset_is_written_from_the_call(text in records()) {
        let before = call(&text);
        let written = row(None, &before, STAND, &Replayed::default());
        let after = call(&written);
        let known = |c: &CallRecord<'_>| {
            serde_json::to_string(&CallRecord { upstream: None, candidates: Vec::new(), current_rerun: None, ..c.clone() }).unwrap()
        };
        prop_assert_eq!(known(&after), known(&before));
        prop_assert!(after.mirrored && after.candidates.is_empty() && after.upstream.is_some());
    }
}

#[test]
fn a_huge_record_is_kept() {
    let big = format!("{{\"id\":\"{}\"}}", "x".repeat(20 << 20));
    let text = record("t", "c", &json!({})).replace("{\"id\":\"a\"}", &big);
    let written = row(Some(&text), &call(&text), STAND, &Replayed::default());
    assert_eq!(call(&written).arguments.get().map(str::len), Some(big.len()));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = record("t", "c", &json!({})).replace("{\"id\":\"a\"}", &deep);
    let written = row(Some(&text), &call(&text), STAND, &Replayed::default());
    assert_eq!(call(&written).arguments.get(), Some(deep.as_str()));
}
