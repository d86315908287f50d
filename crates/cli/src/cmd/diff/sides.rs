//! One side of a diff: from a file, a registry, git or standard input to tools or a schema. Nothing is guessed: what
//! cannot be read says what it could have been.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use lastcall_contract::{Contract, Definition, Document, Draft, Tool, ToolVersion};
use lastcall_diff::{Direction, SurfaceTool, ToolFacts};
use lastcall_report::DefinitionPlace;
use serde_json::Value;

use super::facts_of;
use crate::cmd::contract;

/// What a side has.
pub enum What {
    /// A JSON Schema alone.
    Schema(Value),
    /// Tools, each with what is wrong with it; `single`: the side is one tool, not a list that has one.
    Tools { tools: Vec<SurfaceTool>, single: bool },
}

/// One side.
pub struct Side {
    /// As the user named it.
    pub label: String,
    /// What it has.
    pub what: What,
    /// The file and its text, where there is a file.
    pub text: Option<(String, String)>,
    /// The tool of the registry.
    registered: Option<(String, String, Vec<String>)>,
}

/// Reads one side. `side` is `old` or `new`, for messages.
pub fn load(given: &str, side: &str, registry: &Path) -> anyhow::Result<Side> {
    let path = Path::new(given);
    if given == "-" {
        return parse("standard input", contract::read_stdin()?, None);
    }
    if path.is_dir() {
        bail!("the {side} side: {given} is a folder; give a file, or tool_id@version of a registry");
    }
    if path.exists() && path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
        let (id, tools) = super::toolset::read(given, &contract::read_text(path)?, registry)?;
        let what = What::Tools { tools, single: false };
        return Ok(Side { label: id, what, text: None, registered: None });
    }
    if path.exists() {
        return parse(given, contract::read_text(path)?, Some(given));
    }
    if let Some((revision, rest)) = given.split_once(':') {
        let contract_id = rest.contains('@') && !rest.contains('/') && !rest.ends_with(".json");
        return match contract_id {
            true => registered_at(revision, rest, registry),
            false => parse(given, committed(given, revision, rest)?, None),
        };
    }
    let perhaps_a_tool = registry.is_dir() && !given.contains('/') && !given.ends_with(".json");
    if given.contains('@') || given.contains(".v") || perhaps_a_tool {
        return registered(given, registry);
    }
    bail!(
        "the {side} side: cannot read {given}. Give a file, tool_id@version of a registry (--registry DIR), \
         or REV:PATH or REV:tool_id@version of git"
    )
}

/// A file as a commit has it.
fn committed(given: &str, revision: &str, file: &str) -> anyhow::Result<String> {
    if revision.is_empty() || revision.starts_with('-') {
        bail!("{given}: no such file, and `{revision}` is no revision of git");
    }
    // relative to here, as people type it, unless they say otherwise
    let object = if file.starts_with('/') { given.to_owned() } else { format!("{revision}:./{file}") };
    let done = Command::new("git")
        .args(["show", &object])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{given}: no such file, and git cannot be started"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("{given}: no such file, and git says: {}", said.lines().next().unwrap_or_default());
    }
    String::from_utf8(done.stdout).with_context(|| format!("{given}: not UTF-8"))
}

/// A contract of the registry. A frozen contract that changed is an error, and not exit code 1: that is an answer here.
fn registered(id: &str, dir: &Path) -> anyhow::Result<Side> {
    let registry = contract::load_registry(dir).map_err(|e| anyhow::anyhow!("{e:#}"))?;
    let (tool, version) = registry.resolve(id)?;
    let file = dir.join(&version.file);
    let text = contract::read_text(&file)?;
    Ok(of_registry(tool, version, version.contract.id.clone(), Some((file.display().to_string(), text))))
}

/// The same as a commit has it, with the tool.yaml of that commit.
fn registered_at(revision: &str, id: &str, dir: &Path) -> anyhow::Result<Side> {
    let files = crate::cmd::affected::at_commit(dir, revision, revision)?;
    let registry = contract::parse(dir, &files).with_context(|| format!("at {revision}"))?;
    if let [drift, ..] = registry.drift().as_slice() {
        bail!("at {revision}: {drift}");
    }
    let (tool, version) = registry.resolve(id).with_context(|| format!("at {revision}"))?;
    Ok(of_registry(tool, version, format!("{revision}:{}", version.contract.id), None))
}

fn of_registry(tool: &Tool, version: &ToolVersion, label: String, text: Option<(String, String)>) -> Side {
    let tools = vec![SurfaceTool {
        name: version.contract.definition.name.clone(),
        contract: Ok(version.contract.clone()),
        facts: facts_of(tool),
        recorded: Vec::new(),
    }];
    Side {
        label,
        what: What::Tools { tools, single: true },
        text,
        registered: Some((tool.tool_id.clone(), version.version.clone(), tool.consumers.clone())),
    }
}

fn parse(label: &str, text: String, file: Option<&str>) -> anyhow::Result<Side> {
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let what = read(label, &text)?;
    let text = file.map(|file| (file.to_owned(), text));
    Ok(Side { label: label.to_owned(), what, text, registered: None })
}

/// What a text has: a bare schema, one tool, or a list of tools, which may be empty.
pub fn read(label: &str, text: &str) -> anyhow::Result<What> {
    let document = Document::parse_list(label, text)?;
    if let Some(schema) = document.schema()? {
        return Ok(What::Schema(schema.clone()));
    }
    let names = document.names();
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, at) in names.iter().zip(document.pointers()).filter(|(name, _)| !name.is_empty()) {
        places.entry(name).or_default().push(at);
    }
    let mut tools = Vec::new();
    for (n, (name, definition)) in names.iter().zip(document.definitions(None)).enumerate() {
        let definition = match places.get(name).map(Vec::as_slice) {
            Some([first, .., last]) if tools.iter().all(|tool: &SurfaceTool| tool.name != *name) => {
                let times = places.get(name).map(Vec::len).unwrap_or_default();
                let times = if times == 2 { "twice".to_owned() } else { format!("{times} times") };
                Err(format!(
                    "{label}: `{name}` stands {times}, at {first} and {last}, and a model is given one of them. \
                     Remove one, or give it a name of its own."
                ))
            }
            Some([_, _, ..]) => continue,
            _ => definition.map_err(|e| e.to_string()),
        };
        tools.push(surface_tool(n, name, definition));
    }
    Ok(What::Tools { tools, single: document.is_single() })
}

/// A tool of a document; its number where it has no name.
fn surface_tool(n: usize, name: &str, definition: Result<Definition, String>) -> SurfaceTool {
    SurfaceTool {
        name: if name.is_empty() { format!("tool {}", n + 1) } else { name.to_owned() },
        contract: definition.map(|d| Contract::new(d.name.clone(), d)),
        facts: ToolFacts::default(),
        recorded: Vec::new(),
    }
}

impl Side {
    /// The tools; none where the side is a schema.
    pub fn tools(&self) -> &[SurfaceTool] {
        match &self.what {
            What::Tools { tools, .. } => tools,
            What::Schema(_) => &[],
        }
    }

    /// Whether it is a schema alone.
    pub fn is_schema(&self) -> bool {
        matches!(self.what, What::Schema(_))
    }

    /// The schema of a bare schema, or of a single tool in this direction.
    pub fn schema(&self, direction: Direction) -> Option<(&Value, Draft)> {
        schema_of(&self.what, direction)
    }

    /// Why there is no schema in this direction, as the end of a sentence.
    pub fn no_schema(&self, direction: Direction) -> String {
        let label = &self.label;
        match (&self.what, self.tools()) {
            (What::Tools { single: true, .. }, [SurfaceTool { contract: Err(why), .. }]) => why.clone(),
            (What::Tools { single: true, .. }, _) if direction == Direction::Output => {
                format!("{label} is a tool that declares no schema of its result")
            }
            (_, tools) => format!(
                "{label} is a list of {}: name the tool with --tool",
                crate::ui::count(tools.len(), "tool")
            ),
        }
    }

    /// The tool id, of a contract of a registry.
    pub fn tool_id(&self) -> Option<&str> {
        self.registered.as_ref().map(|(tool, ..)| tool.as_str())
    }

    /// Tool id and version, of a contract of a registry.
    pub fn version(&self) -> Option<(&str, &str)> {
        self.registered.as_ref().map(|(tool, version, _)| (tool.as_str(), version.as_str()))
    }

    /// The contract's own id, where the side is a contract of a registry as it stands or as a commit has it.
    pub fn contract_id(&self) -> Option<&str> {
        let [tool] = self.tools() else { return None };
        self.registered.as_ref().and(tool.contract.as_ref().ok()).map(|contract| contract.id.as_str())
    }

    /// Whether `lastcall try` can read it too: a file, or a contract of the registry as it stands.
    pub fn can_be_tried(&self) -> bool {
        self.text.is_some()
    }

    /// The agents known to use it.
    pub fn consumers(&self) -> &[String] {
        self.registered.as_ref().map(|(.., consumers)| consumers.as_slice()).unwrap_or_default()
    }

    /// The side with only the tool of this name, where it has several.
    pub fn picked(mut self, name: Option<&str>) -> anyhow::Result<Self> {
        let Some(name) = name else { return Ok(self) };
        let What::Tools { tools, single } = &mut self.what else { return Ok(self) };
        if *single {
            return Ok(self);
        }
        if !tools.iter().any(|tool| tool.name == name) {
            let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).take(12).collect();
            names.sort_unstable();
            if names.is_empty() {
                bail!("{}: no tool {name}; it has none", self.label);
            }
            bail!("{}: no tool {name}; there is {}", self.label, names.join(", "));
        }
        tools.retain(|tool| tool.name == name);
        tools.truncate(1);
        *single = true;
        Ok(self)
    }

    /// Where each tool and its schemas stand in the file.
    pub fn places(&self) -> BTreeMap<String, DefinitionPlace> {
        let Some((file, _)) = &self.text else { return BTreeMap::new() };
        if self.is_schema() {
            let place = DefinitionPlace {
                file: file.clone(),
                output: Some(String::new()),
                ..DefinitionPlace::default()
            };
            return BTreeMap::from([("schema".to_owned(), place)]);
        }
        let place = |tool: &SurfaceTool| {
            let file = file.clone();
            match &tool.contract {
                Err(_) => DefinitionPlace { file, ..DefinitionPlace::default() },
                Ok(contract) => {
                    let d = &contract.definition;
                    DefinitionPlace {
                        file,
                        definition: d.pointer.clone(),
                        input: format!("{}{}", d.pointer, d.input_pointer()),
                        output: d.output_pointer().map(|at| format!("{}{at}", d.pointer)),
                    }
                }
            }
        };
        self.tools().iter().map(|tool| (tool.name.clone(), place(tool))).collect()
    }
}

/// The schema that flows in this direction.
pub fn schema_of(what: &What, direction: Direction) -> Option<(&Value, Draft)> {
    match what {
        What::Schema(schema) => Some((schema, Draft::Draft202012)),
        What::Tools { tools, single: true } => {
            let definition = &tools.first()?.contract.as_ref().ok()?.definition;
            match direction {
                Direction::Input => Some((&definition.input_schema, definition.draft)),
                Direction::Output => definition.output_schema.as_ref().map(|s| (s, definition.output_draft)),
            }
        }
        What::Tools { .. } => None,
    }
}
