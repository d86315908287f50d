//! Passes requests on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONNECTION, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use axum::http::uri::{Authority, Scheme};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::call::{Envelope, Job, Source, Spec};
use crate::held::Held;
use crate::tap::{Call, Side, Tap};

/// What the gateway knows.
pub struct Gateway {
    pub scheme: Scheme,
    pub authority: Authority,
    pub client: Client<HttpConnector, Body>,
    pub routes: Vec<(Method, String, Spec)>,
    pub mcp: Option<String>,
    pub names: Arc<BTreeMap<String, Spec>>,
    pub raw: bool,
    pub headers: Envelope,
    pub max_call: usize,
    pub held: Arc<Held>,
    pub jobs: Sender<Job>,
}

/// A client that keeps connections and follows no redirect.
pub fn client() -> Client<HttpConnector, Body> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(connector)
}

impl Gateway {
    fn source(&self, request: &Request<Body>) -> Option<Source> {
        let path = request.uri().path();
        let route =
            |(method, route, _): &&(Method, String, Spec)| request.method() == method && path == route;
        let source = |mcp, spec| Source { spec, names: mcp, raw: self.raw, envelope: self.headers.clone() };
        if let Some((_, _, spec)) = self.routes.iter().find(route) {
            return Some(source(None, Some(spec.clone())));
        }
        let mcp = self.mcp.as_deref() == Some(path) && request.method() == Method::POST;
        mcp.then(|| source(Some(self.names.clone()), None))
    }
}

/// Passes a request on, and its answer back.
pub async fn forward(State(gateway): State<Arc<Gateway>>, mut request: Request<Body>) -> Response<Body> {
    let call = gateway.source(&request).map(|source| {
        Call::new(source, request.headers().clone(), gateway.max_call, &gateway.held, &gateway.jobs)
    });
    let mut parts = request.uri().clone().into_parts();
    (parts.scheme, parts.authority) = (Some(gateway.scheme.clone()), Some(gateway.authority.clone()));
    let Ok(uri) = Uri::from_parts(parts) else {
        return refusal(StatusCode::BAD_REQUEST, "the path is none\n");
    };
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_11;
    hop_by_hop(request.headers_mut());
    if let Some(call) = &call {
        request = request.map(|body| Tap::body(body, call, Side::Request));
    }
    match gateway.client.request(request).await {
        Ok(answer) => {
            let mut answer = answer.map(Body::new);
            if let Some(call) = &call {
                call.answered(answer.status().as_u16(), answer.headers());
                answer = answer.map(|body| Tap::body(body, call, Side::Answer));
            }
            hop_by_hop(answer.headers_mut());
            answer
        }
        Err(_) => {
            if let Some(call) = &call {
                call.tell(true);
            }
            refusal(StatusCode::BAD_GATEWAY, "the tool server does not answer\n")
        }
    }
}

fn refusal(code: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = code;
    answer
}

/// Headers that are of one connection alone (RFC 9110, 7.6.1).
fn hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let fixed = [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE];
    let more = ["keep-alive", "proxy-connection"].map(HeaderName::from_static);
    for name in named.iter().chain(&fixed).chain(&more) {
        headers.remove(name);
    }
}
