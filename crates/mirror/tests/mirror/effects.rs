//! Effects that must not happen, counted.

use lastcall_event::Status;
use serde_json::json;

use crate::common::*;

const SUPPRESSIONS: [&str; 8] =
    ["", "replica", "snapshot", "dry_run", "sandbox", "stub", "not_executed", "live"];

fn endpoints(url: &str) -> Vec<String> {
    vec![
        format!("http = \"{url}\""),
        format!("mcp = \"{url}\""),
        format!("mcp_command = [\"curl\", \"-s\", \"-d\", \"x\", \"{url}\"]"),
        format!("command = [\"curl\", \"-s\", \"-d\", \"x\", \"{url}\"]"),
        "stub = true".to_owned(),
    ]
}

fn asks(suppression: &str, endpoint: &str) -> String {
    match suppression {
        "" => endpoint.to_owned(),
        other => format!("suppression = \"{other}\", {endpoint}"),
    }
}

/// Whatever the configuration says: it is refused, or nothing is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_sends_is_never_run() {
    let (url, counted) = good().await;
    for tool in ["t.send", "t.silent"] {
        for suppression in SUPPRESSIONS {
            for endpoint in endpoints(&url) {
                let text = one(tool, &asks(suppression, &endpoint));
                let refused = lastcall_mirror::Settings::parse(&text, "mirror.toml")
                    .and_then(|settings| lastcall_mirror::Mirror::new(&registry(), &settings));
                let error = refused.expect_err("an endpoint for a tool that sends").to_string();
                if suppression != "live" {
                    assert!(
                        error.contains(tool) && error.contains("send") && error.contains("never executed"),
                        "{error}"
                    );
                }
                let rerun = format!(
                    "[tools.\"{tool}\"]\nrerun = {{share = 1.0, {}}}\n",
                    asks(suppression, &endpoint)
                );
                if let Ok(settings) = lastcall_mirror::Settings::parse(&rerun, "mirror.toml") {
                    assert!(lastcall_mirror::Mirror::new(&registry(), &settings).is_err(), "{rerun}");
                }
            }
        }
        for endpoint in ["suppression = \"not_executed\"", "stub = false"] {
            let mirror = mirror(
                &(one(tool, endpoint)
                    + &one("t.read", &format!("suppression = \"replica\", http = \"{url}\""))),
            );
            for n in 0..5_000 {
                let text = record(tool, &format!("c{n}"), &json!({}));
                let replayed = mirror.replay(&call(&text)).await;
                assert_eq!(told(&replayed.candidates[0]), "not_run - not_executed");
                assert!(replayed.current_rerun.is_none());
            }
        }
    }
    assert_eq!(counted.hits(), 0);
}

#[test]
fn only_the_registry_says_what_a_tool_does() {
    let refusals = [
        ("t.read", "dry_run"),
        ("t.read", "sandbox"),
        ("t.read", "not_executed"),
        ("t.read", "stub"),
        ("t.write", "replica"),
        ("t.write", "snapshot"),
        ("t.write", "not_executed"),
        ("t.write", "stub"),
    ];
    for (tool, suppression) in refusals {
        let text = one(tool, &format!("suppression = \"{suppression}\", http = \"http://127.0.0.1:1/\""));
        let error = try_mirror(&text).unwrap_err().to_string();
        let effect = tool.trim_start_matches("t.");
        let asked = format!(
            "mirror.toml:2: `{tool}@2`: {suppression} was asked for, and the side effect of `{tool}` is `{effect}`, which allows "
        );
        assert!(error.starts_with(&asked), "{error}");
    }
    // nor may a tool that reads be a way to one that sends, by the name that a server knows it by
    for (tool, name, effect) in
        [("t.read", "t_send", "send"), ("t.read", "t_put", "write"), ("t.write", "t_silent", "send")]
    {
        let suppression = if tool == "t.read" { "replica" } else { "sandbox" };
        let text = one(
            tool,
            &format!("suppression = \"{suppression}\", mcp = \"http://127.0.0.1:1/\", name = \"{name}\""),
        );
        let error = try_mirror(&text).unwrap_err().to_string();
        assert!(
            error.contains("by `name` the call would go to `t.") && error.contains(&format!("`{effect}`")),
            "{error}"
        );
    }
    // a file cannot say it
    let text = "[tools.\"t.send\"]\nside_effect = \"read\"\n";
    assert!(lastcall_mirror::Settings::parse(text, "m").is_err());
}

#[tokio::test]
async fn a_write_is_not_sent_to_whoever_ignores_the_dry_run() {
    type Reply = (axum::http::StatusCode, String);
    let offers: [(u16, &str); 9] = [
        (200, ""),
        (200, "{}"),
        (200, "{\"status\":\"ok\"}"),
        (200, r#"{"lastcall":1,"modes":[]}"#),
        (200, r#"{"lastcall":1,"modes":["sandbox","DRY_RUN"]}"#),
        (200, r#"{"lastcall":2,"modes":["dry_run"]}"#),
        (404, r#"{"lastcall":1,"modes":["dry_run"]}"#),
        (405, ""),
        (302, r#"{"lastcall":1,"modes":["dry_run"]}"#),
    ];
    for (status, text) in offers {
        let (url, counted) = counting(move |_, _| -> Reply {
            (axum::http::StatusCode::from_u16(status).unwrap(), text.to_owned())
        })
        .await;
        let mirror = mirror(&one("t.write", &format!("suppression = \"dry_run\", http = \"{url}\"")));
        for _ in 0..3 {
            let answer = answer(&mirror, "t.write").await;
            assert_eq!(told(&answer), "unavailable dry_run_not_offered not_executed", "{status} {text}");
            assert_eq!(answer.executed, Some(false));
        }
        assert_eq!(counted.posts(), 0);
        assert_eq!(mirror.counts()[0].by_class, [("dry_run_not_offered", 3)]);
        assert!(!mirror.counts()[0].open);
    }
}

/// A server that knows the modes: nothing is written but where nothing was suppressed.
#[tokio::test]
async fn a_write_under_each_suppression_writes_nothing() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&writes);
    let (url, server) = counting(move |method, body| {
        if *method == axum::http::Method::GET {
            return r#"{"lastcall":1,"modes":["dry_run","sandbox"]}"#;
        }
        let ask: serde_json::Value = serde_json::from_slice(body).unwrap();
        if !matches!(ask["mode"].as_str(), Some("dry_run" | "sandbox")) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        r#"{"status":"ok"}"#
    })
    .await;
    for suppression in ["dry_run", "sandbox"] {
        let mirror = mirror(&one("t.write", &format!("suppression = \"{suppression}\", http = \"{url}\"")));
        for _ in 0..20 {
            assert_eq!(told(&answer(&mirror, "t.write").await), format!("ok - {suppression}"));
        }
    }
    assert_eq!(told(&answer(&mirror(&one("t.write", "stub = true")), "t.write").await), "ok - stub");
    assert_eq!(server.posts(), 40);
    assert_eq!(writes.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (production, hits) = good().await;
    for status in [301, 302, 303, 307, 308] {
        let to = production.clone();
        let (url, counted) = counting(move |method, _| {
            let code = if *method == axum::http::Method::GET { 200 } else { status };
            let code = axum::http::StatusCode::from_u16(code).unwrap();
            (code, [("location", to.clone())], r#"{"lastcall":1,"modes":["dry_run"]}"#)
        })
        .await;
        for (tool, suppression) in [("t.read", "replica"), ("t.write", "dry_run")] {
            let mirror = mirror(&one(tool, &format!("suppression = \"{suppression}\", http = \"{url}\"")));
            let answer = answer(&mirror, tool).await;
            assert_eq!(told(&answer), format!("unavailable http_{status} {suppression}"));
        }
        assert_eq!(counted.posts(), 2);
    }
    assert_eq!(hits.hits(), 0);
}

#[tokio::test]
async fn tools_that_the_settings_do_not_name_have_no_candidate() {
    let mirror = mirror(&one("t.write", "stub = true"));
    let replayed = replay(&mirror, "t.read").await;
    assert!(replayed.candidates.is_empty());
    assert_eq!(answer(&mirror, "t.write").await.status, Status::Ok);
}
