//! What the mains of all services share: signals, the place of health and metrics, words of command lines and files.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use serde::de::DeserializeOwned;

use crate::kafka::From;
use crate::telemetry::{Told, server};

/// Set by SIGTERM and SIGINT; the second one ends the process at once, with 130.
///
/// # Errors
/// The system does not let signals be handled.
pub fn stopped() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Serves health and metrics: where nobody asked for them, a port that is taken by another service is no reason to stop.
///
/// # Errors
/// The place that was asked for cannot be used.
pub fn listen(
    service: &str,
    asked: Option<SocketAddr>,
    default: SocketAddr,
    telemetry: Arc<dyn Told>,
) -> anyhow::Result<()> {
    let address = asked.unwrap_or(default);
    match server::start(address, telemetry) {
        Ok(bound) => eprintln!("{service}: health and metrics at http://{bound}/"),
        Err(error) if asked.is_none() => {
            eprintln!(
                "{service}: no health and metrics: {address} cannot be used ({error}); another place: --listen"
            );
        }
        Err(error) => return Err(error).with_context(|| format!("--listen {address}: it cannot be used")),
    }
    Ok(())
}

/// The value of `--from`.
///
/// # Errors
/// It is none.
pub fn from(text: &str) -> Result<From, String> {
    From::parse(text)
}

/// The value of `--listen`.
///
/// # Errors
/// It is no place.
pub fn place(text: &str) -> Result<SocketAddr, String> {
    let found = text
        .to_socket_addrs()
        .map_err(|error| format!("a place is HOST:PORT, such as 127.0.0.1:9464 ({error})"))?;
    let found: Vec<SocketAddr> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| "this name has no address".to_owned())
}

/// A file of `--config`, read.
///
/// # Errors
/// It is no TOML, or says something that no setting is. Never with the line itself: a password may stand in it.
pub fn file<T: DeserializeOwned>(text: &str, path: &Path) -> anyhow::Result<T> {
    toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map_or(1, |before| before.matches('\n').count() + 1);
        anyhow::anyhow!("{}:{line}: {}", path.display(), error.message())
    })
}

/// A value of a file as a flag would have it.
pub fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A number of a file that has to lie in a range.
///
/// # Errors
/// It does not.
pub fn within(
    value: Option<u32>,
    name: &str,
    range: RangeInclusive<u32>,
    path: &Path,
) -> anyhow::Result<Option<u32>> {
    match value {
        Some(value) if !range.contains(&value) => {
            bail!("{}: `{name}` is {value}, and has to lie in {range:?}", path.display())
        }
        fine => Ok(fine),
    }
}
