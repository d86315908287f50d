//! Candidates that are slow, die, lie, answer garbage, or never end. What they are is what the row says; never agreement.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lastcall_compare::{ComparisonResult, PairConfig, PreparedPair, compare};
use lastcall_event::Status;
use lastcall_mirror::{Mirror, Stand, row};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::*;

const LIMITS: &str =
    "[defaults]\ntimeout = \"60s\"\nmax_answer = \"64KiB\"\nbreaker = {failures = 1000, pause = \"1s\"}\n";

fn asking(at: impl std::fmt::Display) -> Mirror {
    mirror(&format!(
        "{LIMITS}{}",
        one("t.read", &format!("suppression = \"replica\", http = \"http://{at}/\""))
    ))
}

fn briefly(at: impl std::fmt::Display) -> Mirror {
    let limits = LIMITS.replace("60s", "400ms");
    mirror(&format!(
        "{limits}{}",
        one("t.read", &format!("suppression = \"replica\", http = \"http://{at}/\""))
    ))
}

/// What the row comes to under the comparison.
async fn judged(mirror: &Mirror) -> (String, ComparisonResult) {
    let text = record("t.read", "c1", &json!({}));
    let call_of = call(&text);
    let replayed = mirror.replay(&call_of).await;
    let row = row(Some(&text), &call_of, Stand { from: 0, to: 1, through: None }, &replayed);
    let registry = registry();
    let side = |id: &str| registry.contract(id).unwrap().clone();
    let pair = PreparedPair::new(&side("t.read@1"), &side("t.read@2"), &PairConfig::default()).unwrap();
    (told(&replayed.candidates[0]), compare(&pair, &call(&row)).result)
}

#[tokio::test]
async fn a_good_candidate_agrees() {
    let (url, _) = good().await;
    let (told, result) =
        judged(&mirror(&one("t.read", &format!("suppression = \"replica\", http = \"{url}\"")))).await;
    assert_eq!((told.as_str(), result), ("ok - replica", ComparisonResult::Agreed));
}

#[tokio::test]
async fn what_a_hostile_server_answers_is_unresolved() {
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    let good = r#"{"status":"ok","result":{"total":7}}"#;
    let framed = |body: &str| format!("{OK}content-length: {}\r\n\r\n{body}", body.len());
    let many = (0..100_000).map(|n| format!("x-{n}: y\r\n")).collect::<String>();
    let long = format!("x-long: {}\r\n", "y".repeat(2 << 20));
    let cases: Vec<(&str, String)> = vec![
        ("connection", String::new()),
        ("not_an_answer", "SSH-2.0-OpenSSH_9.9\r\n".to_owned()),
        ("not_an_answer", "\u{0}\u{1}\u{2}\r\n\r\n".to_owned()),
        ("not_an_answer", format!("{OK}{many}\r\n{good}")),
        ("not_an_answer", format!("{OK}{long}\r\n{good}")),
        ("answer_cut", format!("{OK}content-length: 4000\r\n\r\n{good}")),
        ("answer_cut", format!("{OK}transfer-encoding: chunked\r\n\r\n5\r\n{{\"sta")),
        ("answer_cut", format!("{OK}transfer-encoding: chunked\r\n\r\nzz\r\n{good}")),
        ("not_an_answer", format!("{OK}content-length: 10\r\n\r\n{good}")),
        ("answer_too_large", format!("{OK}content-length: 5368709120\r\n\r\n{good}")),
        ("not_an_answer", format!("{OK}content-length: -1\r\n\r\n{good}")),
        ("not_an_answer", format!("{OK}content-length: 36\r\ncontent-length: 37\r\n\r\n{good}")),
        ("answer_too_large", framed(&format!(r#"{{"status":"ok","result":"{}"}}"#, "x".repeat(70_000)))),
        ("not_an_answer", framed("")),
        ("not_an_answer", framed("garbage")),
        ("not_an_answer", framed("<!doctype html><p>Welcome to production")),
        ("not_an_answer", framed("{}")),
        ("not_an_answer", framed(r#"{"status":"healthy"}"#)),
        ("not_an_answer", framed(r#"{"status":"unknown"}"#)),
        ("not_an_answer", framed(r#"{"status":"not_run"}"#)),
        ("not_an_answer", framed(r#"{"status":"sampled_out"}"#)),
        ("not_an_answer", framed(r#"{"status":"ok","call_id":"another"}"#)),
        ("not_an_answer", framed(&good.replace("ok", "ok\\u0000"))),
        ("not_an_answer", framed(&format!("{}{}", "[".repeat(30_000), "]".repeat(30_000)))),
        ("not_an_answer", "HTTP/1.1 204 No Content\r\n\r\n".to_owned()),
        (
            "http_302",
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n".to_owned(),
        ),
        ("http_404", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned()),
        ("http_404", format!("HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\n\r\n{good}", good.len())),
        ("http_500", format!("HTTP/1.1 500 Oops\r\ncontent-length: {}\r\n\r\n{good}", good.len())),
        ("http_503", "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".to_owned()),
        ("http_599", "HTTP/1.1 599 Odd\r\ncontent-length: 0\r\n\r\n".to_owned()),
        ("rate_limited", "HTTP/1.1 429 Slow\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n".to_owned()),
        ("rate_limited", framed(r#"{"status":"rate_limited","error_class":"rate_limited"}"#)),
        ("timeout", framed(r#"{"status":"timeout","error_class":"timeout"}"#)),
    ];
    for (class, text) in cases {
        let shown: String = text.chars().take(90).collect();
        let (at, hits) = raw(move |mut socket: TcpStream| {
            let text = text.clone();
            async move {
                write(&mut socket, text.as_bytes()).await;
                let _ = socket.shutdown().await;
                // what the client still sends is read, so that closing is no reset
                let mut rest = [0; 1024];
                while socket.read(&mut rest).await.is_ok_and(|n| n > 0) {}
            }
        })
        .await;
        let mirror = asking(at);
        let (told, result) = judged(&mirror).await;
        let status = match class {
            "rate_limited" | "timeout" => class,
            _ => "unavailable",
        };
        assert_eq!(told, format!("{status} {class} replica"), "{shown}");
        assert_eq!(result, ComparisonResult::Unresolved, "{shown}");
        assert_eq!(hits.load(Ordering::SeqCst), 1, "asked once: {shown}");
    }
}

#[tokio::test]
async fn a_candidate_that_is_not_there_or_resets_is_unavailable() {
    let (told, result) = judged(&asking("127.0.0.1:1")).await;
    assert_eq!((told.as_str(), result), ("unavailable connection replica", ComparisonResult::Unresolved));
    let (at, _) = raw(|socket: TcpStream| async move {
        let _ = socket.set_zero_linger();
        drop(socket);
    })
    .await;
    let (told, result) = judged(&asking(at)).await;
    assert_eq!((told.as_str(), result), ("unavailable connection replica", ComparisonResult::Unresolved));
}

/// Slow before the answer, drip by drip in the head, in the body, and a connection that is never closed.
#[tokio::test]
async fn whoever_does_not_end_is_timed_out() {
    for begin in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"status\":\"ok\"",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n{\"status\":\"ok\"}",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        for drip in ["", "x", "1\r\n \r\n", "HTTP/1.1 100 Continue\r\n\r\n"] {
            let (at, _) = raw(move |mut socket: TcpStream| async move {
                write(&mut socket, begin.as_bytes()).await;
                loop {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    if !drip.is_empty() && socket.write_all(drip.as_bytes()).await.is_err() {
                        return;
                    }
                }
            })
            .await;
            let mirror = briefly(at);
            let (told, result) = judged(&mirror).await;
            // some drips are no HTTP, which is as good
            let ends = [
                "timed_out timed_out replica",
                "unavailable not_an_answer replica",
                "unavailable answer_cut replica",
            ];
            assert!(ends.contains(&told.as_str()), "{begin:?} {drip:?}: {told}");
            assert!(!drip.is_empty() || told == ends[0], "{begin:?}: {told}");
            assert_eq!(result, ComparisonResult::Unresolved);
        }
    }
}

/// 5 GB, chunked, with a length that fits, and without any end: what is read stays below 8 MiB.
#[tokio::test]
async fn of_an_endless_answer_little_is_read() {
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5368709120\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n140000000\r\n",
    ] {
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let (at, _) = raw(move |mut socket: TcpStream| {
            let counted = Arc::clone(&counted);
            async move {
                write(&mut socket, head.as_bytes()).await;
                write(&mut socket, b"{\"status\":\"ok\",\"result\":\"").await;
                let piece = [b'x'; 65_536];
                for _ in 0..(5u64 << 30) / 65_536 {
                    if socket.write_all(&piece).await.is_err() {
                        return;
                    }
                    counted.fetch_add(65_536, Ordering::SeqCst);
                }
            }
        })
        .await;
        let (told, result) = judged(&asking(at)).await;
        assert_eq!(
            (told.as_str(), result),
            ("unavailable answer_too_large replica", ComparisonResult::Unresolved)
        );
        // socket buffers of both sides are in it
        let sent = sent.load(Ordering::SeqCst);
        assert!(sent < 16 << 20, "{sent} bytes were taken");
    }
}

#[tokio::test]
async fn deep_and_odd_results_are_kept_and_never_break_the_row() {
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let results = [deep.as_str(), "\"\\ud800\"", "1e999", "{\"a\":1,\"a\":2}", "-0.0", "\"\\u0000\"", "null"];
    for result in results {
        let text = format!("{{\"status\":\"ok\",\"result\":{result}}}");
        let (url, _) = counting(move |_, _| text.clone()).await;
        let mirror = mirror(&one("t.read", &format!("suppression = \"replica\", http = \"{url}\"")));
        let text = record("t.read", "c1", &json!({}));
        let call_of = call(&text);
        let replayed = mirror.replay(&call_of).await;
        assert_eq!(replayed.candidates[0].status, Status::Ok);
        let row = row(Some(&text), &call_of, Stand { from: 0, to: 1, through: None }, &replayed);
        assert_eq!(call(&row).candidates[0].result.get(), Some(result));
        let (_, result) = judged(&mirror).await;
        assert_ne!(result, ComparisonResult::Agreed);
    }
}

/// Whatever bytes a candidate answers with: agreement only where they are an answer that says `ok`, by a reader that shares no
/// code with the mirror's.
#[tokio::test]
async fn no_garbage_agrees() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let good =
        r#"{"status":"ok","result":{"total":7},"arguments":{"id":"a"},"error_code":null,"call_id":"c1"}"#;
    let next = Arc::new(std::sync::Mutex::new(Vec::<u8>::new()));
    let served = Arc::clone(&next);
    let (url, _) = counting(move |_, _| served.lock().unwrap().clone()).await;
    let mirror = mirror(&format!(
        "{LIMITS}{}",
        one("t.read", &format!("suppression = \"replica\", http = \"{url}\""))
    ));
    let edit = (0..good.len(), 0usize..6, proptest::prelude::any::<u8>());
    let edits = proptest::collection::vec(edit, 0..4);
    let mut runner = TestRunner::deterministic();
    let mut agreed = 0;
    for _ in 0..1500 {
        let mut bytes = good.as_bytes().to_vec();
        for (at, what, byte) in edits.new_tree(&mut runner).unwrap().current() {
            let at = at.min(bytes.len().saturating_sub(1));
            match what {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                3 if at < bytes.len() => bytes[at] = byte,
                4 => bytes.insert(at, b"{}[]:,\"\\ "[usize::from(byte) % 9]),
                _ => {
                    let piece = bytes[at..].to_vec();
                    bytes.extend(piece);
                }
            }
        }
        *next.lock().unwrap() = bytes.clone();
        let (told, result) = judged(&mirror).await;
        if result == ComparisonResult::Agreed {
            agreed += 1;
            let read: serde_json::Value = serde_json::from_slice(&bytes).expect("an agreement is JSON");
            assert_eq!(read["status"], "ok", "{told}");
        }
        if told.starts_with("unavailable") {
            assert_eq!(result, ComparisonResult::Unresolved);
        }
    }
    assert!(agreed > 100 && agreed < 1200, "{agreed} of 1500 agreed");
}
