//! Adding a definition: which files to write, decided before one is written. The definition goes in byte for byte;
//! an existing `tool.yaml` keeps its comments, and what comes out is read again before it is accepted.

use super::ids::{is_tool_id, is_version};
use super::{Registry, RegistryError, RegistryFiles, RiskLevel, SideEffect};
use crate::document::{Document, Pick};
use crate::error::shown;
use crate::{Contract, Source};

/// What is to be added.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    /// Label of the file that is added, for errors.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// The tool's stable id; the provider-facing name when `None`.
    pub tool_id: Option<&'a str>,
    /// The version; `1.0.0` for a new tool when `None`, needed for a known one.
    pub version: Option<&'a str>,
    /// Which tool of the file, or the name for a bare schema.
    pub name: Option<&'a str>,
    /// Whose shape.
    pub source: Option<Source>,
    /// The version of this tool that the new one corrects.
    pub corrects: Option<&'a str>,
    /// What a call does to the world.
    pub side_effect: Option<SideEffect>,
    /// How much harm a wrong call can do.
    pub risk_level: Option<RiskLevel>,
}

/// One file to be written, relative to the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWrite {
    /// Path below the registry's root.
    pub path: String,
    /// The whole new content.
    pub text: String,
}

/// What adding comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Addition {
    /// The contract as the registry will have it.
    pub contract: Contract,
    /// The files to write, in this order; empty when all is there already.
    pub writes: Vec<FileWrite>,
}

impl Registry {
    /// Decides what adding a definition writes. `files` is the registry as it is; nothing is changed.
    ///
    /// # Errors
    /// The definition or the registry is wrong, the version exists with another content (then a frozen one is named
    /// with both digests), or a stated fact contradicts `tool.yaml`.
    pub fn plan_addition(files: &RegistryFiles, request: &Request<'_>) -> Result<Addition, RegistryError> {
        let registry = Self::read_checked(files)?;
        let refused = |mut e: crate::DefinitionError| {
            if e.kind == crate::DefinitionErrorKind::SeveralTools && request.name.is_none() {
                e.next = "Name one with `--name NAME`".to_owned();
            }
            let place = if e.pointer.is_empty() { e.file } else { format!("{} at {}", e.file, e.pointer) };
            RegistryError::one(place, e.message, e.next)
        };
        let document = Document::parse(request.file, request.text).map_err(refused)?;
        let pick = Pick { name: request.name, source: request.source };
        let definition = document.definition(pick).map_err(refused)?;

        let (source, name) = (definition.source, definition.name.clone());
        let tool_id = request.tool_id.unwrap_or(&name);
        if !is_tool_id(tool_id) {
            let message = format!("`{}` cannot be a tool id", shown(tool_id));
            let next = "Give `--tool-id` with letters, digits, `.`, `_` and `-`, at most 128, and no two dots in a row";
            return Err(RegistryError::one(request.file, message, next));
        }
        let known = registry.tool(tool_id);
        let version = match (request.version, known.and_then(|t| t.latest())) {
            (Some(version), _) => version,
            (None, None) => "1.0.0",
            (None, Some(latest)) => {
                let message =
                    format!("`{tool_id}` is in the registry already, newest version {}", latest.version);
                return Err(RegistryError::one(
                    request.file,
                    message,
                    "Say which version this is: `--version X.Y.Z`",
                ));
            }
        };
        if !is_version(version) {
            let message = format!("`{}` cannot be a version", shown(version));
            return Err(RegistryError::one(request.file, message, "Write for instance 2.1.0"));
        }
        if let Some(corrects) = request.corrects {
            correctable(tool_id, version, corrects, known)
                .map_err(|(message, next)| RegistryError::one(request.file, message, next))?;
        }
        // The file of a single definition is kept to the byte; out of a list, the element's own text.
        let text = if document.is_single() { request.text.to_owned() } else { definition.verbatim.clone() };
        let contract = Contract::new(format!("{tool_id}@{version}"), definition);

        if let Some(present) = known.and_then(|t| t.version(version)) {
            same_facts(tool_id, known, request)?;
            let corrects = request.corrects.map(|v| format!("{tool_id}@{v}"));
            if corrects.is_some() && present.corrects != corrects {
                let message = format!("{} is there already and does not say what it corrects", contract.id);
                let next = "Take another `--version`, or add `corrects:` to its entry by hand";
                return Err(RegistryError::one(format!("{tool_id}/tool.yaml"), message, next));
            }
            if present.contract.digest == contract.digest {
                return Ok(Addition { contract, writes: Vec::new() });
            }
            let frozen = registry.lock().get(&contract.id).is_some();
            let message = format!(
                "{} is {}{} and this definition is {}",
                contract.id,
                if frozen { "frozen as " } else { "in the registry as " },
                present.contract.digest,
                contract.digest
            );
            let next = "Publish it as a new version: `--version NEW`";
            return Err(RegistryError::one(&present.file, message, next));
        }

        let schema = FileWrite { path: format!("{tool_id}/schemas/v{version}.json"), text };
        // a file that no version names is of nobody's making here: never written over
        if files.get(&schema.path).is_some_and(|there| *there != schema.text) {
            let message =
                format!("this file is there already, and no version {version} of `{tool_id}` names it");
            let next = "Remove it, name it in tool.yaml, or take another `--version`";
            return Err(RegistryError::one(&schema.path, message, next));
        }
        let tool_path = format!("{tool_id}/tool.yaml");
        let named = (source == Source::JsonSchema).then_some(name.as_str());
        let entry = entry_text(version, source, named, request.corrects);
        let tool = match (known, files.get(&tool_path)) {
            (Some(_), None) => {
                let message = format!("`{tool_id}` stands in a flat entry, which describes one version");
                let next = format!("Move it to {tool_path} with a list `versions`, then add again");
                return Err(RegistryError::one(request.file, message, next));
            }
            (None, _) => new_tool(tool_id, &entry, request),
            (Some(_), Some(present)) => {
                same_facts(tool_id, known, request)?;
                let with_facts = with_facts(present, known, request);
                with_entry(&with_facts, &entry).ok_or_else(|| {
                    let by_hand = flow_entry(version, source, named, request.corrects);
                    let next = format!("Write the file {} and add `{by_hand}` there by hand", schema.path);
                    let message = "`versions` is not written as a list with one `- ` a version";
                    RegistryError::one(&tool_path, message, next)
                })?
            }
        };
        let writes = vec![schema, FileWrite { path: tool_path.clone(), text: tool }];

        // What was written has to read back as what was meant, and nothing else may have changed.
        let mut after = files.clone();
        for write in &writes {
            after.insert(write.path.clone(), write.text.clone());
        }
        let reread = Self::read_checked(&after)?;
        let corrected = reread.tool(tool_id).and_then(|t| t.version(version)?.corrects.clone());
        let corrects = request.corrects.map(|v| format!("{tool_id}@{v}"));
        let kept =
            registry.contracts().all(|c| reread.contract(&c.id).is_some_and(|now| now.digest == c.digest));
        let added = reread.contract(&contract.id).is_some_and(|now| now.digest == contract.digest);
        if !kept || !added || corrected != corrects {
            let by_hand = flow_entry(version, source, named, request.corrects);
            let next = format!("Add `{by_hand}` under `versions` by hand");
            return Err(RegistryError::one(
                &tool_path,
                "the new version cannot be written without harm",
                next,
            ));
        }
        Ok(Addition { contract, writes })
    }
}

/// A stated side effect or risk has to agree with what `tool.yaml` states.
fn same_facts(
    tool_id: &str,
    known: Option<&super::Tool>,
    request: &Request<'_>,
) -> Result<(), RegistryError> {
    let Some(tool) = known else { return Ok(()) };
    let other = |key: &str, here: &str, asked: &str| {
        let message = format!("`{key}` is `{here}` here, and `{asked}` was asked for");
        RegistryError::one(format!("{tool_id}/tool.yaml"), message, "Change the file if the fact has changed")
    };
    match (tool.stated, request.risk_level, request.side_effect) {
        ((true, _), Some(asked), _) if asked != tool.risk_level => {
            Err(other("risk_level", tool.risk_level.as_str(), asked.as_str()))
        }
        ((_, true), _, Some(asked)) if asked != tool.side_effect => {
            Err(other("side_effect", tool.side_effect.as_str(), asked.as_str()))
        }
        _ => Ok(()),
    }
}

/// A correction needs an older version of the same tool with another definition.
fn correctable(
    tool_id: &str,
    version: &str,
    corrects: &str,
    known: Option<&super::Tool>,
) -> Result<(), (String, String)> {
    let Some(tool) = known.filter(|t| t.version(corrects).is_some()) else {
        return Err((
            format!("there is no `{tool_id}@{}` to correct", shown(corrects)),
            "`lastcall contract list` shows what there is".to_owned(),
        ));
    };
    if super::version_order(corrects, version) != std::cmp::Ordering::Less {
        return Err((
            format!("version {version} cannot correct {corrects}: it is not newer"),
            format!("Take a version after {corrects}"),
        ));
    }
    match tool.correction_of(corrects).filter(|other| other.version != version) {
        Some(other) => Err((
            format!("`{tool_id}@{corrects}` is corrected by {} already", other.contract.id),
            format!("Correct that one: `lastcall contract correct {} FILE`", other.contract.id),
        )),
        None => Ok(()),
    }
}

/// The keys of a version's entry in `versions`, in order.
fn entry_keys(
    version: &str,
    source: Source,
    name: Option<&str>,
    corrects: Option<&str>,
) -> Vec<(&'static str, String)> {
    let mut keys = vec![
        ("version", quoted(version)),
        ("schema", format!("schemas/v{version}.json")),
        ("source", source.to_string()),
    ];
    keys.extend(name.map(|name| ("name", quoted(name))));
    keys.extend(corrects.map(|corrects| ("corrects", quoted(corrects))));
    keys
}

fn entry_text(version: &str, source: Source, name: Option<&str>, corrects: Option<&str>) -> String {
    let keys = entry_keys(version, source, name, corrects);
    let line = |(n, (key, value)): (usize, &(&str, String))| {
        format!("  {} {key}: {value}\n", if n == 0 { "-" } else { " " })
    };
    keys.iter().enumerate().map(line).collect()
}

/// The same entry on one line, for a message.
fn flow_entry(version: &str, source: Source, name: Option<&str>, corrects: Option<&str>) -> String {
    let keys = entry_keys(version, source, name, corrects);
    let parts: Vec<String> = keys.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    format!("{{{}}}", parts.join(", "))
}

/// A YAML scalar that is read back as this string. JSON strings are YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn new_tool(tool_id: &str, entry: &str, request: &Request<'_>) -> String {
    let mut text = format!("tool_id: {}\n", quoted(tool_id));
    match request.risk_level {
        Some(risk) => text.push_str(&format!("risk_level: {}\n", risk.as_str())),
        None => text.push_str("# risk_level: low | medium | high | critical; missing counts as critical\n"),
    }
    match request.side_effect {
        Some(effect) => text.push_str(&format!("side_effect: {}\n", effect.as_str())),
        None => text.push_str("# side_effect: read | write | send; missing counts as send\n"),
    }
    text.push_str("versions:\n");
    text.push_str(entry);
    text
}

/// Facts that were asked for and that the file does not state yet, at its head.
fn with_facts(present: &str, known: Option<&super::Tool>, request: &Request<'_>) -> String {
    let (risk, effect) = known.map_or((true, true), |t| t.stated);
    let mut head = String::new();
    if let (false, Some(asked)) = (risk, request.risk_level) {
        head.push_str(&format!("risk_level: {}\n", asked.as_str()));
    }
    if let (false, Some(asked)) = (effect, request.side_effect) {
        head.push_str(&format!("side_effect: {}\n", asked.as_str()));
    }
    if head.is_empty() {
        return present.to_owned();
    }
    let mut out = String::new();
    let mut head = Some(head.replace('\n', line_end(present)));
    for line in present.split_inclusive('\n') {
        // Before the first line that is neither comment nor document start.
        let body = !line.trim().is_empty() && !line.starts_with('#') && !line.starts_with("---");
        if let (true, Some(head)) = (body, head.take_if(|_| body)) {
            out.push_str(&head);
        }
        out.push_str(line);
    }
    out
}

/// How the lines of a file end.
fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The file with one more entry at the end of its `versions` block; `None` if there is no such block to extend.
fn with_entry(present: &str, entry: &str) -> Option<String> {
    let lines: Vec<&str> = present.split_inclusive('\n').collect();
    let Some(start) = lines.iter().position(|l| l.trim_end() == "versions:") else {
        // No list: every schema file is a version by itself, and the new file is enough, unless it has more to say.
        let listed = lines.iter().any(|l| l.starts_with("versions") || l.starts_with("version:"));
        return (!listed && !entry.contains(" corrects: ")).then(|| present.to_owned());
    };
    let mut end = start + 1;
    let mut indent = None;
    for (n, line) in lines.iter().enumerate().skip(start + 1) {
        let body = line.trim_start_matches(' ');
        if body.trim().is_empty() || body.starts_with('#') {
            continue;
        }
        let depth = line.len() - body.len();
        match indent {
            None if body.starts_with("- ") => indent = Some(depth),
            None => return None,
            Some(own) if depth > own || (depth == own && body.starts_with("- ")) => {}
            Some(_) => break,
        }
        end = n + 1;
    }
    let indent = indent?;
    let mut out: String = lines.get(..end)?.concat();
    if !out.ends_with('\n') {
        out.push_str(line_end(present));
    }
    for line in entry.lines() {
        out.push_str(&" ".repeat(indent));
        out.push_str(line.get(2..).unwrap_or_default());
        out.push_str(line_end(present));
    }
    out.push_str(&lines.get(end..)?.concat());
    Some(out)
}
