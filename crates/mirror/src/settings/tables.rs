//! The tables of `mirror.toml`.

use std::time::Duration;

use lastcall_event::Suppression;
use toml::de::{DeTable, DeValue};

use super::read::{Reader, Value};
use super::{
    BREAKER_KEYS, CANDIDATE_KEYS, CandidateSettings, Endpoint, EndpointKind, LIMIT_KEYS, RERUN_KEYS,
    RerunSettings, Settings, SettingsError, Stated, TOOL_KEYS, ToolSettings,
};

/// The largest file: 4 MiB.
const MAX_BYTES: usize = 4 << 20;
/// Names of suppressions that a file may ask for.
pub(crate) const SUPPRESSIONS: [(&str, Suppression); 6] = [
    ("replica", Suppression::Replica),
    ("snapshot", Suppression::Snapshot),
    ("dry_run", Suppression::DryRun),
    ("sandbox", Suppression::Sandbox),
    ("stub", Suppression::Stub),
    ("not_executed", Suppression::NotExecuted),
];
const SHORTEST: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

pub(super) fn settings(
    text: &str,
    place: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, SettingsError> {
    if text.len() > MAX_BYTES {
        return Err(SettingsError(format!("{place}: larger than {} MiB. Split it.", MAX_BYTES >> 20)));
    }
    let mut reader = Reader { place, text, env, problems: Vec::new() };
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| reader.line(&span));
        SettingsError(format!("{place}:{line}: no TOML: {}. Correct that line.", error.message()))
    })?;
    let mut out = Settings { place: place.to_owned(), ..Settings::default() };
    for (key, value) in document.get_ref() {
        match key.get_ref().as_ref() {
            "defaults" => {
                let Some(table) = reader.table(value, "defaults") else { continue };
                reader.keys(table, "[defaults]", &LIMIT_KEYS);
                out.defaults = stated(&mut reader, table, "defaults");
            }
            "tools" => {
                for (id, value) in reader.table(value, "tools").into_iter().flatten() {
                    let at = format!("tools.\"{}\"", id.get_ref());
                    let Some(table) = reader.table(value, &at) else { continue };
                    let mut tool = tool(&mut reader, table, &at);
                    tool.line = reader.line(&id.span());
                    out.tools.insert(id.get_ref().to_string(), tool);
                }
            }
            _ => {}
        }
    }
    if reader.problems.is_empty() { Ok(out) } else { Err(SettingsError(reader.problems.join("\n"))) }
}

fn stated(reader: &mut Reader<'_>, table: &DeTable<'_>, at: &str) -> Stated {
    let mut out = Stated::default();
    for (key, value) in table {
        let key = key.get_ref().as_ref();
        let at = &format!("{at}.{key}");
        match key {
            "on" => out.on = reader.boolean(value, at),
            "concurrency" => out.concurrency = reader.whole(value, at, (1, 4096)).map(|n| n as usize),
            "rate" => {
                let fits = |n: f64| n > 0.0 && n <= 1e6;
                out.rate = reader.number(value, at, fits, "calls a second, above 0 and at most 1000000");
            }
            "timeout" => out.timeout = reader.duration(value, at, (SHORTEST, HOUR)),
            "sample" => out.sample = share(reader, value, at),
            "max_age" => out.max_age = reader.duration(value, at, (SHORTEST, HOUR * 24 * 366)),
            "retries" => out.retries = reader.whole(value, at, (0, 10)).map(|n| n as u32),
            "max_answer" => out.max_answer = reader.size(value, at, (64, 64 << 20)),
            "breaker" => {
                let Some(table) = reader.table(value, at) else { continue };
                reader.keys(table, &format!("`{at}`"), &BREAKER_KEYS);
                if let Some(value) = table.get("failures") {
                    out.failures =
                        reader.whole(value, &format!("{at}.failures"), (1, 1_000_000)).map(|n| n as u32);
                }
                if let Some(value) = table.get("pause") {
                    out.pause = reader.duration(value, &format!("{at}.pause"), (SHORTEST, HOUR * 24));
                }
            }
            _ => {}
        }
    }
    out
}

fn share(reader: &mut Reader<'_>, value: &Value<'_>, at: &str) -> Option<f64> {
    reader.number(value, at, |n| (0.0..=1.0).contains(&n), "a share from 0 to 1")
}

fn tool(reader: &mut Reader<'_>, table: &DeTable<'_>, at: &str) -> ToolSettings {
    let known: Vec<&str> = TOOL_KEYS.into_iter().chain(LIMIT_KEYS).collect();
    reader.keys(table, &format!("[{at}]"), &known);
    let mut out = ToolSettings { stated: stated(reader, table, at), ..ToolSettings::default() };
    if let Some(value) = table.get("candidates") {
        match value.get_ref() {
            DeValue::Array(items) => {
                for item in items {
                    if let Some(candidate) = candidate(reader, item, &format!("{at}.candidates")) {
                        out.candidates.push(candidate);
                    }
                }
            }
            _ => reader.wrong(
                &value.span(),
                &format!("`{at}.candidates` is no list"),
                "Write it as [{ contract = \"ID\", … }]",
            ),
        }
    }
    if let Some(value) = table.get("rerun") {
        out.rerun = rerun(reader, value, &format!("{at}.rerun"));
    }
    out
}

fn candidate(reader: &mut Reader<'_>, value: &Value<'_>, at: &str) -> Option<CandidateSettings> {
    let table = reader.table(value, at)?;
    reader.keys(table, &format!("`{at}`"), &CANDIDATE_KEYS);
    let Some(contract) = table.get("contract") else {
        reader.wrong(
            &value.span(),
            &format!("a candidate in `{at}` without `contract`"),
            "Say which contract it is: contract = \"TOOL@VERSION\"",
        );
        return None;
    };
    let contract = reader.string(contract, &format!("{at}.contract"))?;
    Some(CandidateSettings {
        line: reader.line(&value.span()),
        contract,
        suppression: suppression(reader, table, at),
        endpoint: endpoint(reader, table, value, at),
    })
}

fn rerun(reader: &mut Reader<'_>, value: &Value<'_>, at: &str) -> Option<RerunSettings> {
    let table = reader.table(value, at)?;
    reader.keys(table, &format!("`{at}`"), &RERUN_KEYS);
    let contract = match table.get("contract") {
        Some(value) => Some(reader.string(value, &format!("{at}.contract"))?),
        None => None,
    };
    let share = match table.get("share") {
        Some(value) => share(reader, value, &format!("{at}.share"))?,
        None => 1.0,
    };
    let suppression = suppression(reader, table, at);
    let before = reader.problems.len();
    let endpoint = endpoint(reader, table, value, at);
    if endpoint.is_none() && reader.problems.len() == before {
        reader.wrong(
            &value.span(),
            &format!("`{at}` says not where the current version runs"),
            "Add one of http, mcp, mcp_command, command",
        );
    }
    Some(RerunSettings {
        line: reader.line(&value.span()),
        share,
        contract,
        suppression,
        endpoint: endpoint?,
    })
}

fn suppression(reader: &mut Reader<'_>, table: &DeTable<'_>, at: &str) -> Option<Suppression> {
    let value = table.get("suppression")?;
    let text = reader.string(value, &format!("{at}.suppression"))?;
    let found = SUPPRESSIONS.iter().find(|(name, _)| *name == text).map(|(_, s)| *s);
    if found.is_none() {
        let names: Vec<&str> = SUPPRESSIONS.iter().map(|(name, _)| *name).collect();
        let next = match lastcall_contract::nearest(&text, &names) {
            Some(near) => format!("Perhaps `{near}` was meant; known are {}", names.join(", ")),
            None => format!("Known are {}", names.join(", ")),
        };
        reader.wrong(&value.span(), &format!("unknown suppression in `{at}`"), &next);
    }
    found
}

/// What is asked; `None` also where nothing is.
fn endpoint(reader: &mut Reader<'_>, table: &DeTable<'_>, whole: &Value<'_>, at: &str) -> Option<Endpoint> {
    let mut kinds = Vec::new();
    for key in ["http", "mcp", "mcp_command", "command", "stub"] {
        let Some(value) = table.get(key) else { continue };
        let place = format!("{at}.{key}");
        kinds.push(match key {
            "http" => EndpointKind::Http(reader.url(value, &place)?),
            "mcp" => EndpointKind::Mcp(reader.url(value, &place)?),
            "mcp_command" => EndpointKind::McpCommand(reader.argv(value, &place)?),
            "command" => EndpointKind::Command(reader.argv(value, &place)?),
            _ => match reader.boolean(value, &place)? {
                true => EndpointKind::Stub,
                false => continue,
            },
        });
    }
    if kinds.len() > 1 {
        let keys: Vec<&str> = kinds.iter().map(EndpointKind::key).collect();
        let message = format!("`{at}` says more than one of {}", keys.join(", "));
        reader.wrong(&whole.span(), &message, "Keep one");
        return None;
    }
    let name = match table.get("name") {
        Some(value) => Some(reader.string(value, &format!("{at}.name"))?),
        None => None,
    };
    let mut pairs = |key: &str, is_name: fn(&str) -> bool| match table.get(key) {
        Some(value) => reader.secrets(value, &format!("{at}.{key}"), is_name),
        None => Some(Vec::new()),
    };
    let headers = pairs("headers", |name| {
        let framing = ["host", "content-length", "transfer-encoding", "connection", "content-type"];
        name.parse::<reqwest::header::HeaderName>().is_ok_and(|name| !framing.contains(&name.as_str()))
    })?;
    let env = pairs("env", |name| !name.is_empty() && !name.contains(['=', '\0']))?;
    let kind = match kinds.pop() {
        Some(kind) => kind,
        None => {
            if let Some(key) = ["name", "headers", "env"].into_iter().find(|key| table.contains_key(*key)) {
                let message = format!("`{at}.{key}` without anything that is asked");
                reader.wrong(&whole.span(), &message, "Add one of http, mcp, mcp_command, command, stub");
            }
            return None;
        }
    };
    let by_http = matches!(kind, EndpointKind::Http(_) | EndpointKind::Mcp(_));
    let by_process = matches!(kind, EndpointKind::McpCommand(_) | EndpointKind::Command(_));
    for (key, has, fits) in [("headers", !headers.is_empty(), by_http), ("env", !env.is_empty(), by_process)]
    {
        if has && !fits {
            let message = format!("`{at}.{key}` means nothing beside `{}`", kind.key());
            reader.wrong(&whole.span(), &message, "Remove it");
        }
    }
    Some(Endpoint { kind, name, headers, env })
}
