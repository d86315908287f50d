//! From settings to tools: what may be run is decided here, by the registry's side effect.

use std::sync::Arc;

use lastcall_contract::{Contract, Registry, SideEffect, Tool as Registered, nearest};
use lastcall_event::Suppression;

use crate::gate::Gate;
use crate::settings::{Endpoint, EndpointKind, RerunSettings, Settings, ToolSettings};
use crate::suppress::{Runner, allowed};
use crate::target::{Command, Http, Identity, Mcp, Stub, Target, http};
use crate::tool::{Candidate, Rerun, Tool};

/// Retries were asked for where the same call may not be made again.
pub(crate) fn no_retries(place: &str, line: usize, id: &str) -> String {
    format!(
        "{place}:{line}: `retries` of `{id}`: the tool is not declared idempotent. Write 0, or state in its \
         definition that it is (annotations.idempotentHint)."
    )
}

/// Makes tools of settings, and gathers what is wrong.
pub(crate) struct Builder<'a> {
    registry: &'a Registry,
    settings: &'a Settings,
    client: Option<reqwest::Client>,
    pub problems: Vec<String>,
}

impl<'a> Builder<'a> {
    pub fn new(registry: &'a Registry, settings: &'a Settings) -> Self {
        Self { registry, settings, client: None, problems: Vec::new() }
    }

    fn wrong(&mut self, line: usize, message: String) {
        self.problems.push(format!("{}:{line}: {message}", self.settings.place));
    }

    /// The tool of one table; `None`: something is wrong.
    pub fn tool(&mut self, id: &str, stated: &ToolSettings) -> Option<Tool> {
        let registry = self.registry;
        let Some(tool) = registry.tool(id) else {
            let ids: Vec<&str> = registry.tools().map(|tool| tool.tool_id.as_str()).collect();
            let next = match nearest(id, &ids) {
                Some(near) => format!("Perhaps `{near}` was meant"),
                None => "`lastcall contract list` shows what there is".to_owned(),
            };
            self.wrong(stated.line, format!("the registry has no tool `{}`. {next}.", shown(id)));
            return None;
        };
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut idempotent = tool.side_effect == SideEffect::Read;
        let mut hinted = !stated.candidates.is_empty();
        for candidate in &stated.candidates {
            let (owner, version) = match registry.resolve(&candidate.contract) {
                Ok(found) => found,
                Err(error) => {
                    self.wrong(candidate.line, error.to_string());
                    continue;
                }
            };
            let contract = &version.contract;
            if owner.tool_id != id {
                let message = format!(
                    "`{}` is a contract of `{}`, not of `{id}`. Name one of `{id}`, or move it there.",
                    contract.id, owner.tool_id
                );
                self.wrong(candidate.line, message);
                continue;
            }
            if candidates.iter().any(|known| *known.contract == *contract.id) {
                self.wrong(candidate.line, format!("`{}` stands here twice. Remove one.", contract.id));
                continue;
            }
            let annotations = contract.definition.annotations.as_ref();
            let hint = annotations.and_then(|a| a.get("idempotentHint")).and_then(serde_json::Value::as_bool);
            hinted &= hint == Some(true);
            let name = &contract.definition.name;
            let asked = Asked {
                line: candidate.line,
                tool: id,
                effect: (tool.side_effect, tool.stated.1),
                suppression: candidate.suppression,
                contract: &contract.id,
                name,
            };
            let runner = match &candidate.endpoint {
                Some(Endpoint { kind: EndpointKind::Stub, .. }) => self.stub(&asked, contract),
                endpoint => self.runner(&asked, endpoint.as_ref()),
            };
            if let Some(runner) = runner {
                let mut made = candidate_of(&contract.id, runner, candidate.endpoint.as_ref());
                made.schema = Some(contract.definition.input_schema.clone());
                candidates.push(made);
            }
        }
        idempotent |= hinted;
        if !idempotent && stated.stated.retries.is_some_and(|n| n > 0) {
            self.problems.push(no_retries(&self.settings.place, stated.line, id));
        }
        let rerun = match &stated.rerun {
            Some(rerun) => self.rerun(tool, rerun),
            None => None,
        };
        let gate = Gate::new(self.settings.limits(id));
        Some(Tool { id: id.to_owned(), candidates, rerun, gate, idempotent })
    }

    fn rerun(&mut self, tool: &Registered, rerun: &RerunSettings) -> Option<Rerun> {
        let id = &tool.tool_id;
        if tool.side_effect != SideEffect::Read {
            let message = format!(
                "`rerun` of `{id}`: only tools that read are run again, and its side effect is {}. Remove it.",
                effect_text((tool.side_effect, tool.stated.1))
            );
            self.wrong(rerun.line, message);
            return None;
        }
        let version = match &rerun.contract {
            None => tool.latest(),
            Some(contract) => match self.registry.resolve(contract) {
                Ok((owner, version)) if owner.tool_id == *id => Some(version),
                Ok((owner, _)) => {
                    let message = format!(
                        "`{}` is a contract of `{}`, not of `{id}`. Name one of `{id}`.",
                        shown(contract),
                        owner.tool_id
                    );
                    self.wrong(rerun.line, message);
                    return None;
                }
                Err(error) => {
                    self.wrong(rerun.line, error.to_string());
                    return None;
                }
            },
        };
        let version = version?;
        let contract = rerun.contract.is_some().then(|| version.contract.id.clone());
        let asked = Asked {
            line: rerun.line,
            tool: id,
            effect: (tool.side_effect, tool.stated.1),
            suppression: rerun.suppression,
            contract: contract.as_deref().unwrap_or(""),
            name: &version.contract.definition.name,
        };
        let runner = self.runner(&asked, Some(&rerun.endpoint))?;
        let mut candidate =
            candidate_of(contract.as_deref().unwrap_or_default(), runner, Some(&rerun.endpoint));
        candidate.shown = contract.clone().unwrap_or_else(|| "current".to_owned());
        candidate.schema = rerun.contract.is_some().then(|| version.contract.definition.input_schema.clone());
        Some(Rerun { share: rerun.share, contract, candidate })
    }

    fn stub(&mut self, asked: &Asked<'_>, contract: &Contract) -> Option<Runner> {
        let may = asked.effect.0 != SideEffect::Send;
        if !may || asked.suppression.is_some_and(|s| s != Suppression::Stub) {
            return self.refused(asked, "a stub");
        }
        match Stub::new(contract) {
            Ok(stub) => Some(Runner::Stub(stub)),
            Err(error) => {
                self.wrong(
                    asked.line,
                    format!("no stub of `{}`: {}. {}.", contract.id, error.message, error.next),
                );
                None
            }
        }
    }

    fn runner(&mut self, asked: &Asked<'_>, endpoint: Option<&Endpoint>) -> Option<Runner> {
        let Some(endpoint) = endpoint else {
            return match asked.suppression {
                None | Some(Suppression::NotExecuted) => Some(Runner::Nothing),
                Some(other) => {
                    let message = format!(
                        "`{}` asks for {} and says not what is asked. Add one of http, mcp, mcp_command, command, \
                         stub, or leave `suppression` out: then the schema alone judges.",
                        asked.contract,
                        suppression_name(other)
                    );
                    self.wrong(asked.line, message);
                    None
                }
            };
        };
        if asked.effect.0 == SideEffect::Send {
            return self.refused(asked, &endpoint.kind.to_string());
        }
        if let Some(name) = &endpoint.name
            && let Some(other) = self.stricter(asked, name)
        {
            let message = format!(
                "`{}`: by `name` the call would go to `{}`, whose side effect is {}, not to `{}`. Name a tool that does \
                 no more than this one.",
                asked.contract,
                other.tool_id,
                effect_text((other.side_effect, other.stated.1)),
                asked.tool
            );
            self.wrong(asked.line, message);
            return None;
        }
        let Some(suppression) = asked.suppression else {
            let message = format!(
                "{} of `{}` without `suppression`: its side effect is {}. Say how the effect is kept from happening, \
                 one of {}.",
                endpoint.kind,
                asked.tool,
                effect_text(asked.effect),
                allowed(asked.effect.0)
            );
            self.wrong(asked.line, message);
            return None;
        };
        let client = match self.client() {
            Ok(client) => client,
            Err(message) => {
                self.wrong(asked.line, message);
                return None;
            }
        };
        let target = |mode: &'static str| target(endpoint, asked, mode, client);
        match Runner::of(asked.effect.0, suppression, target) {
            Some(runner) => Some(runner),
            None => self.refused(asked, suppression_name(suppression)),
        }
    }

    /// A tool of the registry that providers know by this name, and that does more than the one that is asked for.
    fn stricter(&self, asked: &Asked<'_>, name: &str) -> Option<&'a Registered> {
        let registry = self.registry;
        let is_named = |tool: &Registered| tool.versions.iter().any(|v| v.contract.definition.name == name);
        let rank = |effect: SideEffect| match effect {
            SideEffect::Read => 0,
            SideEffect::Write => 1,
            SideEffect::Send => 2,
        };
        registry.tools().find(|tool| {
            tool.tool_id != asked.tool && rank(tool.side_effect) > rank(asked.effect.0) && is_named(tool)
        })
    }

    fn client(&mut self) -> Result<reqwest::Client, String> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let client = http::client().map_err(|error| {
            format!("no HTTP client: {}. Look at the system's certificates.", error.without_url())
        })?;
        self.client = Some(client.clone());
        Ok(client)
    }

    fn refused(&mut self, asked: &Asked<'_>, what: &str) -> Option<Runner> {
        let message = format!(
            "`{}`: {what} was asked for, and the side effect of `{}` is {}, which allows {}. Correct the candidate, or \
             leave its endpoint out: then the schema alone judges.",
            asked.contract,
            asked.tool,
            effect_text(asked.effect),
            allowed(asked.effect.0)
        );
        self.wrong(asked.line, message);
        None
    }
}

struct Asked<'a> {
    line: usize,
    tool: &'a str,
    /// And whether it was stated.
    effect: (SideEffect, bool),
    suppression: Option<Suppression>,
    contract: &'a str,
    name: &'a str,
}

fn target(endpoint: &Endpoint, asked: &Asked<'_>, mode: &'static str, client: reqwest::Client) -> Target {
    let identity = Identity {
        mode,
        tool: endpoint.name.clone().unwrap_or_else(|| asked.name.to_owned()),
        contract: asked.contract.to_owned(),
    };
    let headers = http::header_map(&endpoint.headers);
    match &endpoint.kind {
        EndpointKind::Http(url) => Http::new(client, url.clone(), headers, &identity).into(),
        EndpointKind::Mcp(url) => Mcp::http(client, url.clone(), headers, &identity).into(),
        EndpointKind::McpCommand(argv) => Mcp::process(argv.clone(), endpoint.env.clone(), &identity).into(),
        EndpointKind::Command(argv) => Command::new(argv.clone(), endpoint.env.clone(), &identity).into(),
        // a stub is made of the contract, before this
        EndpointKind::Stub => Target::none(),
    }
}

fn candidate_of(contract: &str, runner: Runner, endpoint: Option<&Endpoint>) -> Candidate {
    Candidate {
        contract: Arc::from(contract),
        runner,
        breaker: Default::default(),
        tally: Default::default(),
        shown: contract.to_owned(),
        asked: endpoint.map_or_else(|| "nothing".to_owned(), |endpoint| endpoint.kind.to_string()),
        schema: None,
    }
}

fn effect_text(effect: (SideEffect, bool)) -> String {
    match effect {
        (effect, true) => format!("`{}`", effect.as_str()),
        (effect, false) => format!("not stated, so `{}`", effect.as_str()),
    }
}

fn suppression_name(suppression: Suppression) -> &'static str {
    let known = crate::settings::SUPPRESSIONS.iter().find(|(_, s)| *s == suppression);
    known.map_or("not_executed", |(name, _)| name)
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}
