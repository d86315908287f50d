//! An MCP server behind streamable HTTP: each message is a POST, its reply JSON or a stream of events.

use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};

use super::rpc::{Message, Reply, message, request};
use super::sse::Events;
use crate::answer::Failure;
use crate::target::http::{body, failure};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A session with a server.
pub(super) struct Posts {
    client: Client,
    url: Url,
    headers: HeaderMap,
    next: AtomicU64,
}

impl Posts {
    /// A client that said nothing yet.
    pub fn new(client: Client, url: Url, headers: &HeaderMap) -> Self {
        let mut headers = headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        Self { client, url, headers, next: AtomicU64::new(0) }
    }

    /// Speaks this version from here on.
    pub fn speak(&mut self, version: &str) {
        if let Ok(version) = HeaderValue::from_str(version) {
            self.headers.insert(PROTOCOL, version);
        }
    }

    async fn post(&self, text: String) -> Result<Response, Failure> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(text);
        let response = request.send().await.map_err(|error| failure(&error))?;
        match response.status() {
            StatusCode::TOO_MANY_REQUESTS => Err(Failure::TooMany),
            status if status.is_success() => Ok(response),
            status => Err(Failure::Http(status.as_u16())),
        }
    }

    /// Sends a message that has no reply.
    pub async fn send(&self, text: String) -> Result<(), Failure> {
        self.post(text).await.map(drop)
    }

    /// The first request, whose response names the session.
    pub async fn hello(&mut self, params: &str, limit: usize) -> Result<Reply, Failure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut response = self.post(request(id, "initialize", params)).await?;
        if let Some(session) = response.headers().get(&SESSION) {
            self.headers.insert(SESSION, session.clone());
        }
        self.reply(id, &mut response, limit).await
    }

    /// One request and its reply.
    pub async fn ask(&self, method: &str, params: &str, limit: usize) -> Result<Reply, Failure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut response = self.post(request(id, method, params)).await?;
        self.reply(id, &mut response, limit).await
    }

    async fn reply(&self, id: u64, response: &mut Response, limit: usize) -> Result<Reply, Failure> {
        // a message is its result and little else
        let limit = limit.saturating_add(4096);
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
            return match message(&body(response, limit).await?) {
                Some(Message::Reply(replied, reply)) if replied == id => Ok(reply),
                _ => Err(Failure::NotAnAnswer),
            };
        }
        let mut events = Events::new(limit);
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Err(Failure::AnswerCut),
                Err(error) => {
                    return Err(match failure(&error) {
                        Failure::Connection => Failure::AnswerCut,
                        other => other,
                    });
                }
            };
            for data in events.read(&chunk)? {
                match message(&data) {
                    Some(Message::Reply(replied, reply)) if replied == id => return Ok(reply),
                    Some(Message::Asked(answer)) => self.send(answer).await?,
                    Some(_) => {}
                    None => return Err(Failure::NotAnAnswer),
                }
            }
        }
    }
}
