//! Sees each answer of the server before `object_store` makes its own error of it, which no longer tells a refusal from
//! an answer that nobody can be sure of.

use std::sync::{Arc, Mutex, PoisonError};

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

tokio::task_local! {
    static SEEN: Arc<Mutex<Seen>>;
}

/// What came of the last request of an attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Whom it went to; empty if none was sent.
    pub host: String,
    /// The status of the answer.
    pub status: Option<u16>,
    /// The error's code in the answer's body.
    pub code: Option<String>,
    /// The error's text in the answer's body.
    pub message: Option<String>,
    /// The bucket's region, where the answer names it.
    pub region: Option<String>,
    /// How far this machine's clock is before the server's, in seconds.
    pub ahead: Option<i64>,
    /// Why there is no answer.
    pub silence: Option<(HttpErrorKind, String)>,
}

/// Runs an attempt, and hands back what was seen of it.
pub(super) async fn watched<T>(attempt: impl Future<Output = T>) -> (T, Seen) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let done = SEEN.scope(seen.clone(), attempt).await;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (done, seen)
}

fn note(change: impl FnOnce(&mut Seen)) {
    // Outside an attempt nobody wants to know.
    let _ = SEEN.try_with(|seen| change(&mut seen.lock().unwrap_or_else(PoisonError::into_inner)));
}

/// Makes clients that take notes.
#[derive(Debug)]
pub(super) struct WatchedConnector;

impl HttpConnector for WatchedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Watched(ReqwestConnector::default().connect(options)?)))
    }
}

#[derive(Debug)]
struct Watched(HttpClient);

#[async_trait::async_trait]
impl HttpService for Watched {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        note(|seen| *seen = Seen { host, ..Seen::default() });
        let response = match self.0.execute(request).await {
            Ok(response) => response,
            Err(error) => {
                note(|seen| seen.silence = Some((error.kind(), chain_of(&error))));
                return Err(error);
            }
        };
        let date = response.headers().get("date").and_then(|v| v.to_str().ok());
        let ahead = date.and_then(|d| ahead_of(d, crate::ledger::system_now().0.div_euclid(1000)));
        note(|seen| {
            seen.status = Some(response.status().as_u16());
            seen.ahead = ahead;
        });
        if response.status().is_success() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let body = body.bytes().await?;
        let text = String::from_utf8_lossy(&body);
        note(|seen| {
            seen.code = tagged(&text, "Code");
            seen.message = tagged(&text, "Message");
            let region = parts.headers.get("x-amz-bucket-region").and_then(|v| v.to_str().ok());
            seen.region = region.map(str::to_owned).or_else(|| tagged(&text, "Region"));
        });
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

/// How far a time (Unix seconds) is before the one that an answer's `Date` states.
fn ahead_of(date: &str, now: i64) -> Option<i64> {
    let date = chrono::DateTime::parse_from_rfc2822(date).ok()?;
    Some(now.saturating_sub(date.timestamp()))
}

/// The text of the first element of a name, in an error document of S3 (no attributes, no nesting).
fn tagged(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    let plain = inner.chars().filter(|c| !c.is_control()).take(300).collect::<String>();
    (!plain.is_empty()).then_some(plain)
}

/// An error and its causes, without what the one before said already.
pub(super) fn chain_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{ahead_of, tagged};

    #[test]
    fn the_server_s_clock_is_read() {
        assert_eq!(ahead_of("Tue, 01 Dec 2026 06:00:00 GMT", 1_796_104_800 + 7), Some(7));
        assert_eq!(ahead_of("Tue, 01 Dec 2026 06:00:00 GMT", 1_796_104_800 - 90), Some(-90));
        assert_eq!(ahead_of("yesterday", 0), None);
    }

    #[test]
    fn an_error_document_is_read() {
        let text =
            "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Message>Reduce\nyour rate</Message></Error>";
        assert_eq!(tagged(text, "Code").as_deref(), Some("SlowDown"));
        assert_eq!(tagged(text, "Message").as_deref(), Some("Reduceyour rate"));
        for text in ["", "<Code>", "<Code></Code>", "</Code><Code>x", "busy"] {
            assert_eq!(tagged(text, "Code"), None, "{text}");
        }
    }
}
