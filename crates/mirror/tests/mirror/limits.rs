//! Concurrency, rate, time-out, breaker, switch, sampling, age; and changing them while calls run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::any;
use lastcall_event::Status;
use lastcall_mirror::Mirror;
use serde_json::json;

use crate::common::*;

/// A candidate that takes its time and knows how many calls it had at once.
async fn slow(time: Duration) -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counting, highest) = (Arc::clone(&now), Arc::clone(&most));
    let handler = move || {
        let (counting, highest) = (Arc::clone(&counting), Arc::clone(&highest));
        async move {
            let at_once = counting.fetch_add(1, Ordering::SeqCst) + 1;
            highest.fetch_max(at_once, Ordering::SeqCst);
            tokio::time::sleep(time).await;
            counting.fetch_sub(1, Ordering::SeqCst);
            r#"{"status":"ok"}"#
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(any(handler))).await.unwrap() });
    (url, now, most)
}

fn with(limits: &str, url: &str) -> String {
    format!(
        "[defaults]\n{limits}\n{}",
        one("t.read", &format!("suppression = \"replica\", http = \"{url}\""))
    )
}

async fn many(mirror: &Mirror, n: usize) -> Vec<Status> {
    let calls: Vec<_> = (0..n).map(|_| answer(mirror, "t.read")).collect();
    futures_util::future::join_all(calls).await.into_iter().map(|answer| answer.status).collect()
}

#[tokio::test]
async fn no_more_calls_at_once_than_allowed_also_after_a_change() {
    let (url, _, most) = slow(Duration::from_millis(30)).await;
    let mirror = mirror(&with("concurrency = 5", &url));
    let take = || most.swap(0, Ordering::SeqCst);
    assert!(many(&mirror, 60).await.iter().all(|status| *status == Status::Ok));
    assert_eq!(take(), 5);
    for n in [2, 9, 1, 16, 3] {
        // while calls run
        let (statuses, ()) = tokio::join!(many(&mirror, 40), async {
            tokio::time::sleep(Duration::from_millis(15)).await;
            mirror.update(&settings(&with(&format!("concurrency = {n}"), &url))).unwrap();
        });
        assert!(statuses.iter().all(|status| *status == Status::Ok));
        take();
        many(&mirror, 40).await;
        assert_eq!(take(), n, "after a change to {n}");
    }
}

#[tokio::test]
async fn calls_over_the_rate_wait_and_a_new_rate_holds_for_those_that_wait() {
    let (url, counted) = good().await;
    let mirror = mirror(&with("rate = 100", &url));
    let began = Instant::now();
    many(&mirror, 30).await;
    assert!(began.elapsed() >= Duration::from_millis(280), "30 calls at 100 a second take no less");
    mirror.update(&settings(&with("rate = 0.01", &url))).unwrap();
    let before = counted.posts();
    let ((), statuses) = tokio::join!(
        async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(counted.posts() <= before + 1);
            mirror.update(&settings(&with("", &url))).unwrap();
        },
        many(&mirror, 20)
    );
    assert!(statuses.iter().all(|status| *status == Status::Ok));
}

#[tokio::test]
async fn the_switch_holds_at_once_also_for_calls_that_wait() {
    let (url, counted) = good().await;
    let mirror = mirror(&with("rate = 0.01", &url));
    let ((), statuses) = tokio::join!(
        async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            mirror.update(&settings(&with("on = false", &url))).unwrap();
        },
        many(&mirror, 40)
    );
    let ran = statuses.iter().filter(|status| **status == Status::Ok).count();
    assert!(ran <= 1 && statuses.iter().all(|s| matches!(s, Status::Ok | Status::NotRun)), "{statuses:?}");
    assert_eq!(counted.posts(), ran);
    assert_eq!(told(&answer(&mirror, "t.read").await), "not_run switched_off not_executed");
    assert!(!mirror.counts()[0].on);
    mirror.update(&settings(&with("", &url))).unwrap();
    assert_eq!(answer(&mirror, "t.read").await.status, Status::Ok);
    // one tool on its own
    let own = with("on = false", &url) + "on = true\n";
    mirror.update(&settings(&own)).unwrap();
    assert_eq!(answer(&mirror, "t.read").await.status, Status::Ok);
}

#[tokio::test]
async fn a_candidate_that_fails_is_left_alone_and_tried_again() {
    let broken = Arc::new(AtomicUsize::new(1));
    let state = Arc::clone(&broken);
    let (url, counted) = counting(move |_, _| match state.load(Ordering::SeqCst) {
        0 => (axum::http::StatusCode::OK, r#"{"status":"ok"}"#),
        _ => (axum::http::StatusCode::INTERNAL_SERVER_ERROR, ""),
    })
    .await;
    let mirror = mirror(&with("breaker = {failures = 4, pause = \"1s\"}", &url));
    for n in 0..20 {
        let class =
            if n < 4 { "unavailable http_500 replica" } else { "unavailable circuit_open not_executed" };
        assert_eq!(told(&answer(&mirror, "t.read").await), class, "{n}");
    }
    assert_eq!(counted.posts(), 4);
    assert!(mirror.counts()[0].open);
    tokio::time::sleep(Duration::from_millis(1050)).await;
    many(&mirror, 10).await;
    assert_eq!(counted.posts(), 5, "one call a pause");
    broken.store(0, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(1050)).await;
    assert_eq!(answer(&mirror, "t.read").await.status, Status::Ok);
    assert!(many(&mirror, 10).await.iter().all(|status| *status == Status::Ok));
    assert!(!mirror.counts()[0].open);
}

#[tokio::test]
async fn sampling_goes_by_session_and_is_exact_at_its_ends() {
    let (url, counted) = good().await;
    let mirror = mirror(&with("sample = 0.3", &url));
    let in_session = |n: usize| json!({"envelope": {"session_id": format!("s{n}")}});
    let mut taken = Vec::new();
    for n in 0..500 {
        let answer = replay_with(&mirror, "t.read", &in_session(n)).await.candidates.remove(0);
        match answer.status {
            Status::Ok => taken.push(n),
            _ => assert_eq!(told(&answer), "sampled_out - not_executed"),
        }
    }
    assert!((110..190).contains(&taken.len()), "{} of 500", taken.len());
    for n in 0..500 {
        let status = replay_with(&mirror, "t.read", &in_session(n)).await.candidates[0].status;
        assert_eq!(status == Status::Ok, taken.contains(&n), "a session is in the sample or not");
    }
    assert_eq!(counted.posts(), 2 * taken.len());
    for (share, status) in [("0", Status::SampledOut), ("1", Status::Ok)] {
        mirror.update(&settings(&with(&format!("sample = {share}"), &url))).unwrap();
        for n in 0..200 {
            assert_eq!(replay_with(&mirror, "t.read", &in_session(n)).await.candidates[0].status, status);
        }
    }
}

#[tokio::test]
async fn a_call_that_waited_too_long_is_shed() {
    let (url, counted) = good().await;
    let mirror = mirror(&with("max_age = \"10m\"", &url));
    assert_eq!(told(&answer(&mirror, "t.read").await), "shed max_age not_executed");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let fresh = lastcall_event::Timestamp(i64::try_from(now).unwrap()).to_string();
    let status = replay_with(&mirror, "t.read", &json!({"ts": fresh})).await.candidates[0].status;
    assert_eq!((status, counted.posts()), (Status::Ok, 1));
}

#[tokio::test]
async fn only_limits_change_while_calls_run() {
    let (url, _) = good().await;
    let mirror = mirror(&with("concurrency = 2", &url));
    let lines = |text: &str| mirror.update(&settings(text)).unwrap_err().to_string();
    let other = with("concurrency = 9", "http://127.0.0.1:1/");
    assert_eq!(
        lines(&other),
        "mirror.toml:3: `candidates` of `t.read` changed. Start lastcall-mirror again to take it over; until then everything stays as it was."
    );
    let other = with("concurrency = 9", &url).replace("replica", "snapshot");
    assert!(lines(&other).contains("`candidates` of `t.read` changed"));
    let more = with("concurrency = 9", &url)
        + "rerun = {suppression = \"replica\", http = \"http://127.0.0.1:1/\"}\n";
    assert!(lines(&more).contains("`rerun` of `t.read` changed"));
    let more = with("concurrency = 9", &url) + &one("t.write", "stub = true");
    assert!(lines(&more).contains("the table of `t.write` changed"));
    assert!(lines("").contains("the table of `t.read` is gone"));
    // nothing of a refused change was taken over; a moved line is no change
    let (slow_url, _, most) = slow(Duration::from_millis(5)).await;
    let mirror = crate::common::mirror(&with("concurrency = 2", &slow_url));
    assert!(mirror.update(&settings(&with("concurrency = 9", &url))).is_err());
    many(&mirror, 20).await;
    assert_eq!(most.load(Ordering::SeqCst), 2);
    mirror.update(&settings(&format!("# a comment\n\n{}", with("concurrency = 3", &slow_url)))).unwrap();
}

#[tokio::test]
async fn a_replay_that_is_dropped_leaves_its_place() {
    let (url, _, _) = slow(Duration::from_secs(600)).await;
    let (quick, _) = good().await;
    let text = with("concurrency = 2\ntimeout = \"1h\"", &url) + &one("t.write", "stub = true");
    let mirror = mirror(&text);
    for _ in 0..10 {
        let dropped = tokio::time::timeout(Duration::from_millis(30), answer(&mirror, "t.read")).await;
        assert!(dropped.is_err());
    }
    assert_eq!(mirror.counts()[0].waiting, 0);
    let mirror = crate::common::mirror(&with("concurrency = 1", &quick));
    assert_eq!(answer(&mirror, "t.read").await.status, Status::Ok);
}
