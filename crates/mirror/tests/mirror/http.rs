use std::sync::atomic::Ordering;

use lastcall_event::Status;
use serde_json::{Value, json};

use crate::common::*;

#[tokio::test]
async fn a_candidate_sees_the_raw_arguments_and_its_answer_is_kept_as_it_is() {
    let (url, counted) = counting(|_, _| {
        "{\"status\":\"ok\", \"result\": {\"total\": 1.50e1, \"big\": 123456789012345678901234567890}, \"arguments\": {\"n\": 1.0}}"
    })
    .await;
    let endpoint = format!(
        "suppression = \"replica\", http = \"{url}\", name = \"look\\\"up\", headers = {{Authorization = \"Bearer $TOKEN\"}}"
    );
    let mirror = mirror(&one("t.read", &endpoint));
    let text = r#"{"type":"tool_call","schema_version":1,"call_id":"c\"1","ts":"2026-06-01T00:00:00Z","tool_id":"t.read",
        "arguments": {"id" : "ä\u00e4", "n": 1.00, "huge": 12345678901234567890123, "id2": null},"outcome":{"status":"ok"}}"#;
    let replayed = mirror.replay(&call(text)).await;
    let answer = &replayed.candidates[0];
    assert_eq!(told(answer), "ok - replica");
    assert_eq!(answer.executed, Some(true));
    assert_eq!(
        answer.result.as_deref(),
        Some("{\"total\": 1.50e1, \"big\": 123456789012345678901234567890}")
    );
    assert_eq!(answer.arguments.as_deref(), Some("{\"n\": 1.0}"));
    let (headers, body) = counted.last.lock().unwrap().clone();
    assert_eq!(headers["authorization"], "Bearer s3cret");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(
        std::str::from_utf8(&body).unwrap(),
        r#"{"arguments":{"id" : "ä\u00e4", "n": 1.00, "huge": 12345678901234567890123, "id2": null},"mode":"replica","tool":"look\"up","contract":"t.read@2","call_id":"c\"1"}"#
    );
}

#[tokio::test]
async fn every_status_of_the_protocol_is_taken() {
    for status in [
        "ok",
        "invalid_arguments",
        "business_error",
        "permission_denied",
        "rate_limited",
        "timeout",
        "platform_error",
    ] {
        let (url, _) = counting(move |_, _| {
            json!({"status": status, "error_code": "e", "error_class": "k", "call_id": "c1"}).to_string()
        })
        .await;
        let mirror = mirror(&one("t.read", &format!("suppression = \"replica\", http = \"{url}\"")));
        let answer = answer(&mirror, "t.read").await;
        assert_eq!(answer.status.as_str(), status);
        assert_eq!((answer.error_code.as_deref(), answer.error_class.as_deref()), (Some("e"), Some("k")));
        assert_eq!(answer.executed, Some(matches!(status, "ok" | "business_error")));
    }
}

#[tokio::test]
async fn what_the_model_did_not_send_as_an_object_is_not_run() {
    let (url, counted) = good().await;
    let mirror = mirror(&one("t.read", &format!("suppression = \"replica\", http = \"{url}\"")));
    for (more, class) in [
        (json!({"arguments": null, "arguments_text": "{\"id\": "}), "arguments_not_json"),
        (json!({"arguments": null, "arguments_text": "{} , \"mode\": 1"}), "arguments_not_json"),
        (json!({"arguments": null, "arguments_text": "[1]"}), "arguments_not_object"),
        (json!({"arguments": "x"}), "arguments_not_object"),
        (json!({"fidelity": "normalized"}), "normalized"),
        (json!({"fidelity": "not_captured"}), "not_captured"),
    ] {
        let answer = replay_with(&mirror, "t.read", &more).await.candidates.remove(0);
        assert_eq!(told(&answer), format!("not_run {class} not_executed"));
        assert_eq!(answer.executed, Some(false));
    }
    assert_eq!(counted.hits(), 0);
    let more = json!({"arguments": null, "arguments_text": " {\"id\": \"a\"}\n"});
    assert_eq!(told(&replay_with(&mirror, "t.read", &more).await.candidates[0]), "ok - replica");
}

#[tokio::test]
async fn current_runs_again_on_a_share_of_sessions() {
    let (url, candidate) = good().await;
    let (again, current) = good().await;
    let text = format!(
        "[tools.\"t.read\"]\ncandidates = [{{contract = \"t.read@2\", suppression = \"replica\", http = \"{url}\"}}]\n\
         rerun = {{share = 0.25, contract = \"t.read@1\", suppression = \"replica\", http = \"{again}\"}}\n"
    );
    let mirror = mirror(&text);
    let mut rerun = 0;
    for n in 0..400 {
        let more = json!({"envelope": {"session_id": format!("s{n}")}});
        let replayed = replay_with(&mirror, "t.read", &more).await;
        if let Some(answer) = replayed.current_rerun {
            rerun += 1;
            assert_eq!((&*answer.contract, told(&answer).as_str()), ("t.read@1", "ok - replica"));
        }
    }
    assert_eq!(candidate.posts(), 400);
    assert_eq!(current.posts(), rerun);
    assert!((70..130).contains(&rerun), "{rerun} of 400");
    // of another contract than the one that runs there: nothing to say of its noise
    let other = json!({"contract_id": "t.read@2", "envelope": {"session_id": "s0"}});
    for n in 0..50 {
        let mut other = other.clone();
        other["envelope"]["session_id"] = json!(format!("s{n}"));
        assert!(replay_with(&mirror, "t.read", &other).await.current_rerun.is_none());
    }
}

#[tokio::test]
async fn a_stub_validates_and_answers_by_the_output_schema() {
    for tool in ["t.read", "t.write"] {
        let mirror = mirror(&one(tool, "stub = true"));
        let taken = answer(&mirror, tool).await;
        assert_eq!(told(&taken), "ok - stub");
        assert_eq!(taken.executed, Some(false));
        let result: Value = serde_json::from_str(taken.result.as_deref().unwrap()).unwrap();
        assert!(result["total"].as_i64().unwrap() >= 3, "{result}");
        let refused = replay_with(&mirror, tool, &json!({"arguments": {"n": 1}})).await;
        assert_eq!(told(&refused.candidates[0]), "invalid_arguments - stub");
    }
}

#[tokio::test]
async fn a_keep_alive_connection_is_used_again() {
    let (url, counted) = good().await;
    let mirror = mirror(&one("t.read", &format!("suppression = \"snapshot\", http = \"{url}\"")));
    for _ in 0..50 {
        assert_eq!(answer(&mirror, "t.read").await.status, Status::Ok);
    }
    assert_eq!(counted.posts(), 50);
    let counts = &mirror.counts()[0];
    assert_eq!((counts.tool.as_str(), counts.contract.as_str()), ("t.read", "t.read@2"));
    assert_eq!(counts.by_status, [(Status::Ok, 50)]);
    assert_eq!((counts.exchanges, counts.timed, counts.by_class.len()), (50, 50, 0));
    assert!(counts.seconds > 0.0);
}

#[tokio::test]
async fn a_call_is_tried_again_only_where_that_is_declared() {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    for (tool, tries) in [("t.read", 3), ("t.put", 3), ("t.write", 1)] {
        let n = Arc::new(AtomicUsize::new(0));
        let (url, counted) = counting(move |method, _| {
            let offered = (axum::http::StatusCode::OK, r#"{"lastcall":1,"modes":["dry_run"]}"#);
            match *method {
                axum::http::Method::GET => offered,
                _ if n.fetch_add(1, Ordering::SeqCst) < 2 => (axum::http::StatusCode::BAD_GATEWAY, ""),
                _ => (axum::http::StatusCode::OK, r#"{"status":"ok"}"#),
            }
        })
        .await;
        let suppression = if tool == "t.read" { "replica" } else { "dry_run" };
        let text = one(tool, &format!("suppression = \"{suppression}\", http = \"{url}\""));
        let mirror = mirror(&format!("[defaults]\nretries = 3\n{text}"));
        let status = answer(&mirror, tool).await.status;
        assert_eq!(counted.posts(), tries, "{tool}");
        assert_eq!(status, if tries == 3 { Status::Ok } else { Status::Unavailable }, "{tool}");
    }
    let text = one("t.write", "stub = true") + "retries = 1\n";
    let error = try_mirror(&text).unwrap_err().to_string();
    assert_eq!(
        error,
        "mirror.toml:1: `retries` of `t.write`: the tool is not declared idempotent. Write 0, or state in its \
         definition that it is (annotations.idempotentHint)."
    );
}

#[tokio::test]
async fn a_probe_says_what_is_there_and_runs_nothing() {
    let (url, counted) = good().await;
    let (plain, also) = counting(|_, _| "hello").await;
    let text = one("t.write", &format!("suppression = \"dry_run\", http = \"{url}?key=s3cret\""))
        + &one("t.put", &format!("suppression = \"dry_run\", http = \"{plain}\""))
        + &one("t.read", "suppression = \"replica\", http = \"http://127.0.0.1:1/\"")
        + &one("t.send", "suppression = \"not_executed\"");
    let probed = mirror(&text).probe().await;
    let lines: Vec<String> = probed
        .iter()
        .map(|p| format!("{} {} {} {:?} {}", p.contract, p.asked, p.fits, p.modes, p.notes.join("; ")))
        .collect();
    assert_eq!(lines[0], format!("t.put@2 http {plain} false [] {}", probed[0].notes[0]));
    assert!(probed[0].notes[0].starts_with("does not offer dry_run"), "{:?}", probed[0]);
    assert!(
        lines[1].starts_with("t.read@2 http http://127.0.0.1:1/ false [] not reached (connection)"),
        "{}",
        lines[1]
    );
    assert_eq!(lines[2], "t.send@2 nothing true [] ");
    assert_eq!(lines[3], format!("t.write@2 http {url} true [\"dry_run\"] "));
    assert_eq!((counted.posts(), also.posts()), (0, 0));
    assert!(!format!("{probed:?}").contains("s3cret"));
}

/// A replica that moved on since production read it: the call is left out, not held against the candidate.
#[tokio::test]
async fn what_differs_for_the_current_version_too_is_the_environment() {
    use lastcall_compare::{ComparisonResult, PairConfig, PreparedPair, Reason, compare};
    let (moved, _) = counting(|_, _| r#"{"status":"ok","result":{"total":"seven","more":1}}"#).await;
    let registry = registry();
    let side = |id: &str| registry.contract(id).unwrap().clone();
    let pair = PreparedPair::new(&side("t.read@1"), &side("t.read@2"), &PairConfig::default()).unwrap();
    let plain = one("t.read", &format!("suppression = \"replica\", http = \"{moved}\""));
    let rerun = format!("rerun = {{suppression = \"replica\", http = \"{moved}\"}}\n");
    let text = record("t.read", "c1", &json!({}));
    for (settings, result, reason) in [
        (plain.clone(), ComparisonResult::Disagreed, None),
        (plain + &rerun, ComparisonResult::Excluded, Some(Reason::Unstable)),
    ] {
        let replayed = mirror(&settings).replay(&call(&text)).await;
        let stand = lastcall_mirror::Stand { from: 0, to: 1, through: None };
        let row = lastcall_mirror::row(Some(&text), &call(&text), stand, &replayed);
        let compared = compare(&pair, &call(&row));
        assert_eq!((compared.result, compared.reason), (result, reason));
    }
}
