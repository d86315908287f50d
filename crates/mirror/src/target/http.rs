//! A candidate behind HTTP. Redirects are not followed and proxies of the environment are not used: both could lead to
//! production.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use tokio::time::Instant;

use super::{Ask, Identity};
use crate::answer::{Exchange, Failure, said};
use crate::row::string;
use crate::settings::Secret;

/// How long an offer is believed before the candidate is asked again.
pub(crate) const BELIEVED: Duration = Duration::from_secs(30);
/// How long a candidate that offered nothing is left alone.
pub(crate) const ASKED_AGAIN: Duration = Duration::from_secs(5);
/// The longest list of modes.
const MAX_OFFER: usize = 64 << 10;

/// A client for every endpoint. Servers close idle connections, many after 5 seconds: it does so before.
pub(crate) fn client() -> Result<Client, reqwest::Error> {
    // an error says that there is a provider already, which is as good
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_secs(10))
        .pool_idle_timeout(Duration::from_secs(4))
        .user_agent(concat!("lastcall-mirror/", env!("CARGO_PKG_VERSION")))
        .build()
}

pub(crate) struct Http {
    client: Client,
    url: Url,
    headers: HeaderMap,
    /// What follows the arguments in a request, up to the call's id.
    tail: String,
    offer: Mutex<Option<(Instant, bool)>>,
}

/// What a candidate says it can do: `{"lastcall": 1, "modes": ["dry_run"]}`.
#[derive(Deserialize)]
pub(crate) struct Offer {
    lastcall: u64,
    pub modes: Vec<String>,
}

impl Offer {
    /// Whether it knows this mode.
    pub fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|m| m == mode)
    }
}

/// Reads an offer.
pub(crate) fn offer(text: &[u8]) -> Option<Offer> {
    let offer: Offer = serde_json::from_str(std::str::from_utf8(text).ok()?).ok()?;
    (offer.lastcall == 1).then_some(offer)
}

/// What follows the arguments in a request of the candidates' protocol, up to the call's id.
pub(crate) fn tail(identity: &Identity) -> String {
    let mut tail = format!(r#","mode":"{}","tool":"#, identity.mode);
    string(&mut tail, &identity.tool);
    tail.push_str(r#","contract":"#);
    string(&mut tail, &identity.contract);
    tail.push_str(r#","call_id":"#);
    tail
}

/// A request of the candidates' protocol. The arguments stand in it as they came.
pub(crate) fn request(ask: &Ask<'_>, tail: &str) -> String {
    let mut body = String::with_capacity(ask.arguments.len() + tail.len() + ask.call_id.len() + 24);
    body.push_str(r#"{"arguments":"#);
    body.push_str(ask.arguments);
    body.push_str(tail);
    string(&mut body, ask.call_id);
    body.push('}');
    body
}

/// Headers that the settings state. Names and values were checked there, so none is left out.
pub(crate) fn header_map(headers: &[(String, Secret)]) -> HeaderMap {
    let mut out = HeaderMap::new();
    for (name, value) in headers {
        if let (Ok(name), Ok(mut value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&value.0)) {
            value.set_sensitive(true);
            out.insert(name, value);
        }
    }
    out
}

impl Http {
    pub fn new(client: Client, url: Url, headers: HeaderMap, identity: &Identity) -> Self {
        let mut headers = headers;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { client, url, headers, tail: tail(identity), offer: Mutex::new(None) }
    }

    pub async fn exchange(&self, ask: &Ask<'_>, offered: Option<&'static str>, limit: usize) -> Exchange {
        if let Some(mode) = offered
            && !self.offers(mode).await?
        {
            return Err(Failure::NotOffered);
        }
        let ended = self.call(ask, limit).await;
        if ended.is_err() {
            // whoever answers next may be another build
            *self.offer() = None;
        }
        ended
    }

    fn offer(&self) -> std::sync::MutexGuard<'_, Option<(Instant, bool)>> {
        self.offer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether the endpoint offers a mode.
    async fn offers(&self, mode: &str) -> Result<bool, Failure> {
        if let Some((until, offered)) = *self.offer()
            && Instant::now() < until
        {
            return Ok(offered);
        }
        let offered = self.ask_offer().await?.is_some_and(|offer| offer.has(mode));
        let until = Instant::now() + if offered { BELIEVED } else { ASKED_AGAIN };
        *self.offer() = Some((until, offered));
        Ok(offered)
    }

    /// What the endpoint offers; `None`: it answers, and offers nothing.
    pub async fn ask_offer(&self) -> Result<Option<Offer>, Failure> {
        let request = self.client.get(self.url.clone()).headers(self.headers.clone());
        let mut response = request.send().await.map_err(|error| failure(&error))?;
        match response.status() {
            StatusCode::OK => match body(&mut response, MAX_OFFER).await {
                Ok(text) => Ok(offer(&text)),
                Err(Failure::AnswerTooLarge | Failure::NotAnAnswer) => Ok(None),
                Err(failure) => Err(failure),
            },
            StatusCode::TOO_MANY_REQUESTS => Err(Failure::TooMany),
            status if status.is_server_error() => Err(Failure::Http(status.as_u16())),
            _ => Ok(None),
        }
    }

    async fn call(&self, ask: &Ask<'_>, limit: usize) -> Exchange {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone());
        let sent = request.body(request_body(ask, &self.tail)).send().await;
        let mut response = sent.map_err(|error| failure(&error))?;
        let status = response.status();
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(Failure::TooMany);
        }
        if !status.is_success() && !status.is_client_error() {
            return Err(Failure::Http(status.as_u16()));
        }
        let text = body(&mut response, limit).await;
        if status.is_success() {
            return said(&text?, ask.call_id).ok_or(Failure::NotAnAnswer);
        }
        // a refusal may come with its HTTP status, but nothing that went well does
        let refused = text.ok().and_then(|text| said(&text, ask.call_id));
        refused.filter(|said| said.status != lastcall_event::Status::Ok).ok_or(Failure::Http(status.as_u16()))
    }
}

fn request_body(ask: &Ask<'_>, tail: &str) -> Bytes {
    request(ask, tail).into()
}

/// Why an exchange failed.
pub(crate) fn failure(error: &reqwest::Error) -> Failure {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            if error.is_parse() || error.is_parse_too_large() {
                return Failure::NotAnAnswer;
            }
            if error.is_timeout() {
                return Failure::TimedOut;
            }
        }
        source = error.source();
    }
    match error.is_timeout() && !error.is_connect() {
        true => Failure::TimedOut,
        false if error.is_body() || error.is_decode() => Failure::AnswerCut,
        false => Failure::Connection,
    }
}

/// The body of a response, no longer than `limit` bytes.
pub(crate) async fn body(response: &mut Response, limit: usize) -> Result<Bytes, Failure> {
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(Failure::AnswerTooLarge);
    }
    let cut = |error: reqwest::Error| match failure(&error) {
        Failure::Connection => Failure::AnswerCut,
        other => other,
    };
    let Some(first) = response.chunk().await.map_err(cut)? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(Failure::AnswerTooLarge);
    }
    let Some(second) = response.chunk().await.map_err(cut)? else { return Ok(first) };
    let mut whole = Vec::with_capacity(first.len() + second.len());
    whole.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(chunk) = next {
        if whole.len() + chunk.len() > limit {
            return Err(Failure::AnswerTooLarge);
        }
        whole.extend_from_slice(&chunk);
        next = response.chunk().await.map_err(cut)?;
    }
    Ok(whole.into())
}
