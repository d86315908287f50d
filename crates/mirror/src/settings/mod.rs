//! What `mirror.toml` says of tools and their candidates. The service's own keys stand beside these tables and are the
//! service's to check.

mod limits;
mod read;
mod tables;

use std::collections::BTreeMap;

use lastcall_event::Suppression;

pub(crate) use limits::Stated;
pub use limits::{Breaker, Limits};
pub(crate) use tables::SUPPRESSIONS;

/// Keys of `[defaults]`, and those of `[tools."ID"]` that mean the same there.
pub const LIMIT_KEYS: [&str; 9] =
    ["on", "concurrency", "rate", "timeout", "sample", "max_age", "retries", "breaker", "max_answer"];
/// Further keys of `[tools."ID"]`.
pub const TOOL_KEYS: [&str; 2] = ["candidates", "rerun"];
/// Keys of one of `candidates`.
pub const CANDIDATE_KEYS: [&str; 10] =
    ["contract", "suppression", "http", "mcp", "mcp_command", "command", "stub", "name", "headers", "env"];
/// Keys of `rerun`.
pub const RERUN_KEYS: [&str; 10] =
    ["share", "contract", "suppression", "http", "mcp", "mcp_command", "command", "name", "headers", "env"];
/// Keys of `breaker`.
pub const BREAKER_KEYS: [&str; 2] = ["failures", "pause"];

/// What `mirror.toml` says of tools and their candidates. Prints no secret.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub(crate) place: String,
    pub(crate) defaults: Stated,
    pub(crate) tools: BTreeMap<String, ToolSettings>,
}

/// Why settings are refused: names the file, the place in it and the next step; one line a problem.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

/// One `[tools."ID"]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolSettings {
    pub line: usize,
    pub stated: Stated,
    pub candidates: Vec<CandidateSettings>,
    pub rerun: Option<RerunSettings>,
}

/// One of `candidates`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CandidateSettings {
    pub line: usize,
    pub contract: String,
    pub suppression: Option<Suppression>,
    pub endpoint: Option<Endpoint>,
}

/// `rerun`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RerunSettings {
    pub line: usize,
    pub share: f64,
    pub contract: Option<String>,
    pub suppression: Option<Suppression>,
    pub endpoint: Endpoint,
}

/// What is asked, and how.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Endpoint {
    pub kind: EndpointKind,
    /// The name by which the endpoint knows the tool, where it is not the contract's.
    pub name: Option<String>,
    pub headers: Vec<(String, Secret)>,
    pub env: Vec<(String, Secret)>,
}

/// The four protocols, and the stub, which is none.
#[derive(Clone, PartialEq)]
pub(crate) enum EndpointKind {
    Http(reqwest::Url),
    Mcp(reqwest::Url),
    McpCommand(Vec<String>),
    Command(Vec<String>),
    Stub,
}

impl EndpointKind {
    /// The key that says so.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Mcp(_) => "mcp",
            Self::McpCommand(_) => "mcp_command",
            Self::Command(_) => "command",
            Self::Stub => "stub",
        }
    }
}

/// A URL without its query and a command without its arguments: both may hold keys.
impl std::fmt::Display for EndpointKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http(url) | Self::Mcp(url) => {
                let shown = url.as_str().split(['?', '#']).next().unwrap_or_default();
                write!(f, "{} {shown}", self.key())
            }
            Self::McpCommand(argv) | Self::Command(argv) => {
                write!(f, "{} {}", self.key(), argv.first().map_or("", String::as_str))
            }
            Self::Stub => f.write_str("stub"),
        }
    }
}

impl std::fmt::Debug for EndpointKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// A value that is never printed.
#[derive(Clone, PartialEq)]
pub(crate) struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl Settings {
    /// Reads the tables `[defaults]` and `[tools."TOOL"]` of a `mirror.toml`; `$NAME` in headers and `env` comes from the
    /// environment of this process. `place` is the file's name in messages.
    ///
    /// # Errors
    /// It is no TOML, or says something that no setting is.
    pub fn parse(text: &str, place: &str) -> Result<Self, SettingsError> {
        Self::parse_with(text, place, &|name| std::env::var(name).ok())
    }

    /// As [`Settings::parse`], with another environment.
    ///
    /// # Errors
    /// As [`Settings::parse`].
    pub fn parse_with(
        text: &str,
        place: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        tables::settings(text, place, env)
    }

    /// The tools that it names.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// What holds for a tool: its own table over `[defaults]` over what the build says.
    pub fn limits(&self, tool_id: &str) -> Limits {
        let mut limits = Limits::default();
        self.defaults.over(&mut limits);
        if let Some(tool) = self.tools.get(tool_id) {
            tool.stated.over(&mut limits);
        }
        limits
    }
}
