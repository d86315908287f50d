//! `/health/live`, `/health/ready`, `/metrics`, `/state` over HTTP.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;

use super::Told;

/// Connections at once: whoever opens more waits, and takes nothing from the service.
const CONNECTIONS: usize = 32;
/// For a request and its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers at an address from now on, on a thread of its own, as long as the process lives; the address, with the port
/// that was found where port 0 was asked for.
///
/// # Errors
/// The address cannot be used.
pub fn start(address: SocketAddr, telemetry: Arc<dyn Told>) -> io::Result<SocketAddr> {
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
    std::thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || runtime.block_on(serve(listener, routes)))?;
    Ok(bound)
}

async fn serve(listener: TcpListener, routes: Router) -> io::Result<Infallible> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = free.clone().acquire_owned().await else {
            return Err(io::Error::other("nobody closes the semaphore"));
        };
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptor is free: one may be soon.
            tokio::time::sleep(Duration::from_millis(200)).await;
            continue;
        };
        let service = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            let connection =
                http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(PATIENCE, connection).await;
            drop(permit);
        });
    }
}

fn healthy(against: &[String]) -> impl IntoResponse + use<> {
    match against {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        reasons => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", reasons.join("\n"))),
    }
}

async fn live(State(telemetry): State<Arc<dyn Told>>) -> impl IntoResponse {
    healthy(&telemetry.not_live())
}

async fn ready(State(telemetry): State<Arc<dyn Told>>) -> impl IntoResponse {
    healthy(&telemetry.not_ready())
}

async fn metrics(State(telemetry): State<Arc<dyn Told>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], telemetry.metrics())
}

async fn state(State(telemetry): State<Arc<dyn Told>>) -> impl IntoResponse {
    match telemetry.state() {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
