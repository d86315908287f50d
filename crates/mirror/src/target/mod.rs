//! What is asked: an HTTP endpoint, an MCP server, a command.

mod backoff;
mod command;
pub(crate) mod http;
mod mcp;
mod process;
mod stub;

pub(crate) use command::Command;
pub(crate) use http::Http;
pub(crate) use mcp::{Listed, Mcp};
pub(crate) use stub::Stub;

use crate::answer::{Exchange, Failure};
use crate::settings::Limits;

/// One call, as a candidate gets it.
pub(crate) struct Ask<'a> {
    /// The exact JSON text of the arguments: one object.
    pub arguments: &'a str,
    pub call_id: &'a str,
}

/// What every candidate is told of itself.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub mode: &'static str,
    /// The provider-facing name.
    pub tool: String,
    pub contract: String,
}

/// Something that runs calls. Only an [`Executor`](crate::suppress::Executor) can use it.
pub struct Target {
    kind: Kind,
}

enum Kind {
    Http(Box<Http>),
    Mcp(Mcp),
    Command(Box<Command>),
    None,
}

impl From<Http> for Target {
    fn from(http: Http) -> Self {
        Self { kind: Kind::Http(Box::new(http)) }
    }
}

impl From<Mcp> for Target {
    fn from(mcp: Mcp) -> Self {
        Self { kind: Kind::Mcp(mcp) }
    }
}

impl From<Command> for Target {
    fn from(command: Command) -> Self {
        Self { kind: Kind::Command(Box::new(command)) }
    }
}

/// What a target says of itself without running anything.
pub(crate) struct Offered {
    pub modes: Vec<String>,
    /// The tools that an MCP server lists, and the name that is asked for.
    pub tools: Option<(Vec<Listed>, String)>,
}

impl Target {
    pub(crate) fn none() -> Self {
        Self { kind: Kind::None }
    }

    /// One exchange; `offered` names a mode that the candidate must have said it knows before anything is sent.
    pub(crate) async fn exchange(
        &self,
        ask: &Ask<'_>,
        offered: Option<&'static str>,
        limits: &Limits,
    ) -> Exchange {
        let most = limits.max_answer;
        match &self.kind {
            Kind::Http(http) => http.exchange(ask, offered, most).await,
            Kind::Mcp(mcp) => mcp.exchange(ask, offered, most).await,
            Kind::Command(command) => command.exchange(ask, offered, most, limits.concurrency).await,
            Kind::None => Err(Failure::Process),
        }
    }

    /// What it offers. Runs no call.
    pub(crate) async fn offered(&self) -> Result<Offered, Failure> {
        let (modes, tools) = match &self.kind {
            Kind::Http(http) => (http.ask_offer().await?.map(|offer| offer.modes), None),
            Kind::Command(command) => (command.ask_offer().await?.map(|offer| offer.modes), None),
            Kind::Mcp(mcp) => {
                let (tools, modes) = mcp.listed().await?;
                (Some(modes), Some((tools, mcp.tool().to_owned())))
            }
            Kind::None => return Err(Failure::Process),
        };
        Ok(Offered { modes: modes.unwrap_or_default(), tools })
    }
}
