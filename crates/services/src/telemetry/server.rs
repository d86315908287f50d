//! `/health/live`, `/health/ready`, `/metrics`, `/state` over HTTP.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::runtime::Builder;

use super::Telemetry;

/// Answers at an address from now on, on a thread of its own, as long as the process lives; the address, with the port
/// that was found where port 0 was asked for.
///
/// # Errors
/// The address cannot be used.
pub fn start(address: SocketAddr, telemetry: Arc<Telemetry>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let routes = Router::new()
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/metrics", get(metrics))
        .route("/state", get(state))
        .with_state(telemetry);
    std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            axum::serve(listener, routes).await
        })
    })?;
    Ok(bound)
}

fn healthy(against: &[String]) -> impl IntoResponse + use<> {
    match against {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        reasons => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", reasons.join("\n"))),
    }
}

async fn live(State(telemetry): State<Arc<Telemetry>>) -> impl IntoResponse {
    healthy(&telemetry.state().not_live)
}

async fn ready(State(telemetry): State<Arc<Telemetry>>) -> impl IntoResponse {
    healthy(&telemetry.state().not_ready)
}

async fn metrics(State(telemetry): State<Arc<Telemetry>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], telemetry.metrics())
}

async fn state(State(telemetry): State<Arc<Telemetry>>) -> impl IntoResponse {
    match serde_json::to_string_pretty(&telemetry.state()) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
