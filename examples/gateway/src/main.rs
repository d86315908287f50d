//! A reverse proxy before an HTTP tool server or an MCP server, which records the tool calls that pass through it. Requests and
//! answers pass as they are; recording waits for nothing, holds a bounded amount of memory, and counts what it loses.

mod call;
mod held;
mod proxy;
mod sender;
mod tap;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::http::uri::{Authority, Scheme};
use axum::http::{Method, Uri};
use clap::Parser;

use call::{Envelope, Spec};
use held::Held;
use proxy::Gateway;
use sender::Sender;

/// Records the tool calls that pass between agents and a tool server.
///
/// tool-gateway --upstream http://127.0.0.1:8080 --brokers localhost:9092 --route 'POST /lookup=orders.lookup@1.0.0'
#[derive(Parser)]
#[command(name = "tool-gateway", version)]
struct Args {
    /// Where agents connect to.
    #[arg(long, default_value = "127.0.0.1:8081")]
    listen: String,
    /// The tool server, as http://HOST:PORT.
    #[arg(long)]
    upstream: Uri,
    /// Kafka's brokers.
    #[arg(short, long)]
    brokers: String,
    /// The topic of the calls.
    #[arg(long, default_value = "tool-calls")]
    topic: String,
    /// A route that is a tool: its body are the arguments, its JSON answer is the result. `METHOD PATH=TOOL@VERSION`
    #[arg(long, value_parser = route)]
    route: Vec<(Method, String, Spec)>,
    /// The path of an MCP endpoint (streamable HTTP): `tools/call` is recorded.
    #[arg(long)]
    mcp: Option<String>,
    /// The contract under which an MCP tool is offered. `NAME=TOOL@VERSION`; without it the name alone is recorded.
    #[arg(long, value_parser = name)]
    name: Vec<(String, Spec)>,
    /// Callers pass on the text that the model produced, byte for byte. Without it the arguments are recorded as reconstructed.
    #[arg(long)]
    raw: bool,
    /// The header that names the session.
    #[arg(long, default_value = "mcp-session-id")]
    session_header: String,
    /// The header that names the agent.
    #[arg(long, default_value = "x-agent-id")]
    agent_header: String,
    /// Calls that are held at most, under way ones included.
    #[arg(long, default_value_t = 10_000)]
    max_records: usize,
    /// Bytes that are held at most.
    #[arg(long, default_value_t = 64 << 20)]
    max_bytes: usize,
    /// The largest request and answer together that are recorded, in bytes.
    #[arg(long, default_value_t = 900_000)]
    max_call: usize,
    /// Seconds that the end waits for the broker.
    #[arg(long, default_value_t = 10)]
    close: u64,
    /// A setting of librdkafka. KEY=VALUE
    #[arg(short = 'X', value_parser = setting)]
    settings: Vec<(String, String)>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("KEY=VALUE is needed")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn name(text: &str) -> Result<(String, Spec), String> {
    let (name, contract) = text.rsplit_once('=').ok_or("NAME=TOOL@VERSION is needed")?;
    Ok((name.to_owned(), Spec::parse(contract)?))
}

fn route(text: &str) -> Result<(Method, String, Spec), String> {
    let (place, spec) = name(text)?;
    let (method, path) = place.split_once(' ').ok_or("METHOD PATH=TOOL@VERSION is needed")?;
    let method = method.parse().map_err(|_| format!("{method} is no method"))?;
    Ok((method, path.to_owned(), spec))
}

fn upstream(uri: &Uri) -> Result<(Scheme, Authority)> {
    let (scheme, authority) = (uri.scheme().cloned(), uri.authority().cloned());
    let scheme = scheme
        .filter(|s| *s == Scheme::HTTP)
        .context("--upstream begins with http://; TLS ends before the gateway")?;
    Ok((scheme, authority.context("--upstream needs a host")?))
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let (scheme, authority) = upstream(&args.upstream)?;
    let held = Arc::new(Held::new(args.max_records, args.max_bytes));
    let sender = Sender::start(&args.brokers, args.topic, &args.settings, &held)?;
    let gateway = Gateway {
        scheme,
        authority,
        client: proxy::client(),
        routes: args.route,
        mcp: args.mcp,
        names: Arc::new(args.name.into_iter().collect()),
        raw: args.raw,
        headers: Envelope { session: args.session_header, agent: args.agent_header },
        max_call: args.max_call,
        held,
        jobs: sender.jobs(),
    };
    let listener = tokio::net::TcpListener::bind(&args.listen)
        .await
        .with_context(|| format!("--listen {}", args.listen))?;
    println!("http://{}", listener.local_addr()?);
    let app = Router::new().fallback(proxy::forward).with_state(Arc::new(gateway));
    let wait = Duration::from_secs(args.close);
    let told = Arc::new(tokio::sync::Notify::new());
    let serving = axum::serve(listener, app).with_graceful_shutdown({
        let told = told.clone();
        async move {
            ended().await;
            told.notify_one();
        }
    });
    // An answer that does not end ends with the gateway.
    let late = async {
        told.notified().await;
        tokio::time::sleep(wait).await;
    };
    tokio::select! { served = serving.into_future() => served?, () = late => {} }
    let lost = tokio::task::spawn_blocking(move || sender.finish(wait)).await?;
    if lost > 0 {
        eprintln!("tool-gateway: {lost} calls are lost without a record: the broker did not answer");
    }
    Ok(())
}

async fn ended() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    if let Ok(mut told) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! { _ = interrupted => {}, _ = told.recv() => {} }
        return;
    }
    let _ = interrupted.await;
}
