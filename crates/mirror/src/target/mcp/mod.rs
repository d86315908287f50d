//! A candidate that is an MCP server. The client is ours and small: it hands arguments and results on as the text that they
//! are (invariant 9), which a library's typed messages cannot, holds no more than the settings allow, and repeats nothing.

mod http;
mod rpc;
mod said;
mod sse;
mod stdio;

use std::sync::{Arc, Mutex, PoisonError};

use reqwest::header::HeaderMap;
use reqwest::{Client, Url};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use self::http::Posts;
use self::rpc::{HELLO, INITIALIZED, MAX_MESSAGE, Reply, Server, hello, list, server};
use self::stdio::Pipe;
use super::backoff::Backoff;
use super::http::BELIEVED;
use super::process::Program;
use super::{Ask, Identity};
use crate::answer::{Exchange, Failure};
use crate::row::string;
use crate::settings::Secret;

/// Pages of `tools/list` that are read.
const PAGES: usize = 50;

pub(crate) struct Mcp {
    place: Arc<Place>,
    /// What stands before and after the arguments in a call.
    around: (String, String),
    tool: String,
    session: Mutex<Option<Coming>>,
    backoff: Arc<Backoff>,
}

/// A session, once it stands. `None`: it is being made.
type Coming = watch::Receiver<Option<Result<Arc<Session>, Failure>>>;

/// Where the server is.
enum Place {
    Http(Client, Url, HeaderMap),
    Process(Program),
}

/// A server that was said hello to.
struct Session {
    wire: Wire,
    server: Server,
    since: Instant,
}

enum Wire {
    Posts(Posts),
    Pipe(Pipe),
}

/// A tool as a server lists it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    pub name: String,
    #[serde(default)]
    pub input_schema: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Listed>,
    #[serde(default)]
    next_cursor: Option<String>,
}

impl Mcp {
    pub fn http(client: Client, url: Url, headers: HeaderMap, identity: &Identity) -> Self {
        Self::new(Place::Http(client, url, headers), identity)
    }

    pub fn process(argv: Vec<String>, env: Vec<(String, Secret)>, identity: &Identity) -> Self {
        Self::new(Place::Process(Program { argv, env }), identity)
    }

    fn new(place: Place, identity: &Identity) -> Self {
        let mut before = r#"{"name":"#.to_owned();
        string(&mut before, &identity.tool);
        before.push_str(r#","arguments":"#);
        let after = format!(r#","_meta":{{"lastcall.dev/mode":"{}"}}}}"#, identity.mode);
        Self {
            place: Arc::new(place),
            around: (before, after),
            tool: identity.tool.clone(),
            session: Mutex::new(None),
            backoff: Arc::default(),
        }
    }

    pub fn tool(&self) -> &str {
        &self.tool
    }

    pub async fn exchange(&self, ask: &Ask<'_>, offered: Option<&'static str>, limit: usize) -> Exchange {
        let (before, after) = &self.around;
        let mut params = String::with_capacity(before.len() + ask.arguments.len() + after.len());
        params.push_str(before);
        params.push_str(ask.arguments);
        params.push_str(after);
        let mut session = self.session().await?;
        // what a server behind an address offers is asked anew from time to time: another build may answer there
        if offered.is_some() && session.is_remote() && session.since.elapsed() > BELIEVED {
            self.forget(&session);
            session = self.session().await?;
        }
        // at most once again: a server that does not know the session has not run the call
        for again in [true, false] {
            if offered.is_some_and(|mode| !session.server.modes.iter().any(|m| m == mode)) {
                return Err(Failure::NotOffered);
            }
            match session.ask("tools/call", &params, limit).await {
                Err(Failure::Http(400 | 404)) if again => {
                    self.forget(&session);
                    session = self.session().await?;
                }
                Err(failure) => {
                    if session.has_ended() {
                        self.forget(&session);
                        self.backoff.failed();
                    } else if offered.is_some() && session.is_remote() {
                        self.forget(&session);
                    }
                    return Err(failure);
                }
                Ok(reply) => {
                    self.backoff.went_well();
                    return said::said(reply);
                }
            }
        }
        Err(Failure::Http(404))
    }

    /// The tools that the server lists, and whether it offers a mode.
    pub async fn listed(&self) -> Result<(Vec<Listed>, Vec<String>), Failure> {
        let session = self.session().await?;
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES {
            let reply = session.ask("tools/list", &list(cursor.as_deref()), MAX_MESSAGE).await?;
            let Reply::Result(text) = reply else { return Err(Failure::Rpc) };
            let page: Page = serde_json::from_str(&text).map_err(|_| Failure::NotAnAnswer)?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok((tools, session.server.modes.clone()))
    }

    fn forget(&self, session: &Arc<Session>) {
        let mut held = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = held.as_ref().is_some_and(
            |coming| matches!(&*coming.borrow(), Some(Ok(known)) if Arc::ptr_eq(known, session)),
        );
        if is_same {
            *held = None;
        }
    }

    /// The session that stands, or one that is made now. Making it goes on though this call stops waiting.
    async fn session(&self) -> Result<Arc<Session>, Failure> {
        let mut coming = self.coming()?;
        let made = coming.wait_for(Option::is_some).await.map_err(|_| Failure::Connection)?;
        made.clone().unwrap_or(Err(Failure::Connection))
    }

    fn coming(&self) -> Result<Coming, Failure> {
        let mut held = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(coming) = &*held {
            let known = coming.borrow().clone();
            match known {
                None => return Ok(coming.clone()),
                Some(Ok(session)) if !session.has_ended() => return Ok(coming.clone()),
                Some(Ok(_)) => self.backoff.failed(),
                Some(Err(failure)) if !self.backoff.is_over() => return Err(failure),
                Some(Err(_)) => {}
            }
        }
        if !self.backoff.is_over() {
            return Err(Failure::Process);
        }
        let (sender, receiver) = watch::channel(None);
        let (place, backoff) = (Arc::clone(&self.place), Arc::clone(&self.backoff));
        tokio::spawn(async move {
            let made = tokio::time::timeout(HELLO, place.meet()).await;
            let made = made.unwrap_or(Err(Failure::TimedOut));
            if made.is_err() {
                backoff.failed();
            }
            let _ = sender.send(Some(made.map(Arc::new)));
        });
        *held = Some(receiver.clone());
        Ok(receiver)
    }
}

impl Place {
    /// Says hello.
    async fn meet(&self) -> Result<Session, Failure> {
        match self {
            Self::Http(client, url, headers) => {
                let mut posts = Posts::new(client.clone(), url.clone(), headers);
                let server = server(posts.hello(&hello(), MAX_MESSAGE).await?)?;
                posts.speak(&server.version);
                posts.send(INITIALIZED.to_owned()).await?;
                Ok(Session { wire: Wire::Posts(posts), server, since: Instant::now() })
            }
            Self::Process(program) => {
                let pipe = Pipe::start(program)?;
                let server = server(pipe.ask("initialize", &hello(), MAX_MESSAGE).await?)?;
                pipe.send(INITIALIZED.to_owned()).await?;
                Ok(Session { wire: Wire::Pipe(pipe), server, since: Instant::now() })
            }
        }
    }
}

impl Session {
    async fn ask(&self, method: &str, params: &str, limit: usize) -> Result<Reply, Failure> {
        match &self.wire {
            Wire::Posts(posts) => posts.ask(method, params, limit).await,
            Wire::Pipe(pipe) => pipe.ask(method, params, limit).await,
        }
    }

    fn is_remote(&self) -> bool {
        matches!(self.wire, Wire::Posts(_))
    }

    fn has_ended(&self) -> bool {
        match &self.wire {
            Wire::Posts(_) => false,
            Wire::Pipe(pipe) => pipe.has_ended(),
        }
    }
}
