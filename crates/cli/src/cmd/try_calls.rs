//! `lastcall try OLD NEW CALLS`: which calls a changed definition would refuse or change. No registry, no plan, no
//! ledger; never READY.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lastcall_compare::{Comparison, ComparisonResult, PairConfig, PreparedPair, Severity, compare};
use lastcall_contract::{Contract, Definition, Document, Pick};
use lastcall_diff::same_but_for_text;
use lastcall_event::{CallRecord, Day, NO_TIME, Preset, Record, Text, calls_in, decode};
use lastcall_record::lines::LineReader;
use lastcall_report::{TryAgent, TryCategory, TryDay, TryExample, TryFinding, TryReport};

use super::run::progress;
use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall try old-tool.json new-tool.json calls.jsonl\n  \
    lastcall try tools-v1.json tools-v2.json traces/ --tool search_issues --html report.html\n  \
    zcat calls.jsonl.gz | lastcall try old.json new.json -\n\n\
    A call is one JSON object a line: Lastcall's tool_call or mirrored_call, the interceptor's record, an OpenAI,\n\
    Anthropic, Gemini or MCP tool call, or just {\"name\": …, \"arguments\": {…}}. Plain, gzip or zstd.\n\n\
    Exit codes: 0 nothing would be refused or changed, 1 something would, 2 could not run,\n\
    3 no call was found, or some could not be read or judged and none is known to break.")]
pub struct Args {
    /// The old definition: a file (MCP, OpenAI, Anthropic, Gemini, a JSON Schema), or tool_id@version of a registry.
    old: String,
    /// The new definition.
    new: String,
    /// The calls: a file, a folder of .jsonl files, or `-` for standard input.
    calls: PathBuf,
    /// Which tool: its name in a file of several definitions, and its id in the calls.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Where tool_id@version is looked up.
    #[arg(long, value_name = "DIR", env = "LASTCALL_REGISTRY", default_value = "agent-tools")]
    registry: PathBuf,
    /// Declared renames, normalization and severity map, as JSON or YAML.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How the lines are read; found out line by line if absent.
    #[arg(long, value_enum)]
    preset: Option<PresetArg>,
    /// How to answer on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the report as one HTML page too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How many of the worst calls to show.
    #[arg(long, value_name = "N", default_value_t = 5)]
    examples: usize,
    /// Show the values of arguments. They may be personal data.
    #[arg(long)]
    show_values: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Html,
}

/// A preset on the command line.
#[derive(Clone, Copy, clap::ValueEnum)]
enum PresetArg {
    Native,
    Interceptor,
    Provider,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let old = contract(&args.old, args.tool.as_deref(), &args.registry, "old")?;
    let new = contract(&args.new, args.tool.as_deref(), &args.registry, "new")?;
    let config = match &args.config {
        Some(path) => read_config(path)?,
        None => PairConfig::default(),
    };
    let pair = PreparedPair::new(&old, &new, &config)?;
    let report = collect(&args, &pair, &old.definition, &new.definition)?;
    if let Some(path) = &args.html {
        std::fs::write(path, lastcall_report::try_page(&report))
            .with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("report: {}", path.display());
    }
    match args.format {
        Format::Text => print!("{}", lastcall_report::try_text(&report, crate::ui::style())),
        Format::Json => print!("{}", lastcall_report::to_json(&report)?),
        Format::Html => print!("{}", lastcall_report::try_page(&report)),
    }
    Ok(if report.something_would_change() {
        Exit::No
    } else if report.unresolved > 0 || report.undecodable > 0 || report.compared() == 0 {
        Exit::Insufficient
    } else {
        Exit::Yes
    })
}

/// A definition from a file, or a contract of the registry.
fn contract(given: &str, tool: Option<&str>, registry: &Path, side: &str) -> anyhow::Result<Contract> {
    let path = Path::new(given);
    if !path.exists() && given.contains('@') {
        // drift would be exit code 1, which here says that something would break
        let registry = super::contract::load_registry(registry).map_err(|e| anyhow::anyhow!("{e:#}"))?;
        return match registry.contract(given) {
            Some(contract) => Ok(contract.clone()),
            None => {
                bail!("no contract {given} in the registry; `lastcall contract list` shows what there is")
            }
        };
    }
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("the {side} definition: cannot read {given}; give a file or tool_id@version")
    })?;
    let document = Document::parse(given, &text)?;
    let name = tool.filter(|t| document.names().contains(t));
    let bare =
        if document.names() == [""] { tool.or(path.file_stem().and_then(|s| s.to_str())) } else { None };
    let definition = document.definition(Pick { name: name.or(bare), source: None })?;
    let id = format!("{}@{side}", definition.name);
    Ok(Contract::new(id, definition))
}

fn read_config(path: &Path) -> anyhow::Result<PairConfig> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("{}: not a pair configuration", path.display()))
}

/// Everything that is counted for one tool id of the calls.
#[derive(Default)]
struct Counts {
    calls: u64,
    refused: u64,
    results: [u64; 5],
    reasons: BTreeMap<String, u64>,
    categories: BTreeMap<(String, String), TryCategory>,
    agents: BTreeMap<String, TryAgent>,
    days: BTreeMap<Day, TryDay>,
    rules: BTreeMap<String, u64>,
    worst: Vec<(Rank, TryExample)>,
    outcomes: u64,
    reconstructed: u64,
}

/// How bad a call is: refused with a block, a block, refused, then the number of differences.
type Rank = (bool, Severity, usize);

fn collect(
    args: &Args,
    pair: &PreparedPair,
    old: &Definition,
    new: &Definition,
) -> anyhow::Result<TryReport> {
    let mut seen = Seen { args, pair, by_tool: BTreeMap::new(), undecodable: BTreeMap::new(), others: 0 };
    let place = |label: &str, number: u64| format!("{label}:{number}");
    for file in files(&args.calls)? {
        let label = if file.as_os_str() == "-" { "stdin".to_owned() } else { file.display().to_string() };
        let reader = if label == "stdin" { LineReader::stdin() } else { LineReader::open(&file) };
        let mut reader = reader.with_context(|| format!("cannot read {label}"))?.with_final(true);
        let bar = progress::bytes();
        let mut number = 0u64;
        loop {
            if number.is_multiple_of(1024) {
                bar.at(reader.consumed(), reader.total(), number);
            }
            let Some(line) =
                reader.next_line().with_context(|| format!("{label}: reading line {}", number + 1))?
            else {
                break;
            };
            number += 1;
            let (bytes, too_long) = (line.bytes, line.too_long);
            if bytes.iter().all(u8::is_ascii_whitespace) && !too_long {
                continue;
            }
            let preset = match args.preset {
                Some(PresetArg::Native) => Preset::Native,
                Some(PresetArg::Interceptor) => Preset::Interceptor,
                Some(PresetArg::Provider) => Preset::Provider,
                None => Preset::sniff(bytes),
            };
            if too_long {
                seen.undecodable.entry("too_long").or_insert_with(|| (0, place(&label, number))).0 += 1;
                continue;
            }
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let inside = if preset == Preset::Provider { calls_in(text) } else { Vec::new() };
            if inside.is_empty() {
                seen.line(bytes, preset, &place(&label, number));
            }
            for call in inside {
                seen.line(call.as_bytes(), preset, &place(&label, number));
            }
        }
        bar.clear();
    }
    let Seen { by_tool, undecodable, others, .. } = seen;
    let (counts, other_calls, mut notes) = choose(args, by_tool, old, new)?;
    notes.extend(text_changes(old, new));
    for (code, (count, first)) in &undecodable {
        notes.push(format!("could not be decoded ({code}): {count}; the first: {first}"));
    }
    if others > 0 {
        notes.push(format!("{others} records are no calls (clock, coverage, loss)"));
    }
    let undecodable = undecodable.values().map(|(n, _)| n).sum();
    Ok(counts.report(args, old, other_calls, undecodable, notes))
}

/// What has been read so far.
struct Seen<'a> {
    args: &'a Args,
    pair: &'a PreparedPair,
    by_tool: BTreeMap<String, Counts>,
    /// Reason code → how many, and the first.
    undecodable: BTreeMap<&'static str, (u64, String)>,
    others: u64,
}

impl Seen<'_> {
    fn line(&mut self, bytes: &[u8], preset: Preset, place: &str) {
        let decoded = match decode(bytes, preset) {
            Ok(decoded) => decoded,
            Err(error) if error.code == "not_a_call" => {
                self.others += 1;
                return;
            }
            Err(error) => {
                let list = bytes.trim_ascii_start().first() == Some(&b'[');
                let hint = if list { "; a JSON array becomes lines with jq -c '.[]'" } else { "" };
                let text = || format!("{place}: {}{hint}", error.message);
                self.undecodable.entry(error.code).or_insert_with(|| (0, text())).0 += 1;
                return;
            }
        };
        let Record::Call(mut call) = decoded.record else {
            self.others += 1;
            return;
        };
        if let [only] = call.candidates.as_mut_slice() {
            only.contract_id = Text::from(self.pair.candidate_id().to_owned());
        }
        if !self.by_tool.contains_key(&*call.tool_id) && self.by_tool.len() < 256 {
            self.by_tool.insert(call.tool_id.to_string(), Counts::default());
        }
        // hostile ids beyond that share a row
        let key = if self.by_tool.contains_key(&*call.tool_id) { &*call.tool_id } else { "(more tools)" };
        let counts = self.by_tool.entry(key.to_owned()).or_default();
        counts.add(self.args, &call, &compare(self.pair, &call), place);
    }
}

/// What the model reads and a replay does not show: these calls were made from the old text.
fn text_changes(old: &Definition, new: &Definition) -> Vec<String> {
    let mut parts = Vec::new();
    if old.name != new.name {
        parts.push(format!("the name ({} → {})", old.name, new.name));
    }
    if old.description != new.description || old.title != new.title {
        parts.push("the description".to_owned());
    }
    if old.input_schema != new.input_schema && same_but_for_text(&old.input_schema, &new.input_schema) {
        parts.push("the text of arguments".to_owned());
    }
    if old.annotations != new.annotations {
        parts.push("the annotations".to_owned());
    }
    if parts.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "also changed: {}; calls that models made from the old text say nothing about that",
        parts.join(", ")
    )]
}

/// The files of a folder, sorted, or the one file, or standard input.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path.as_os_str() == "-" || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut out = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let fits = [".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".jsonl.zst", ".ndjson.zst"];
        if fits.iter().any(|end| name.ends_with(end)) && path.is_file() {
            out.push(path);
        }
    }
    out.sort();
    if out.is_empty() {
        bail!("{}: no .jsonl or .ndjson file in this folder (plain, .gz or .zst)", path.display());
    }
    Ok(out)
}

/// The calls of the tool that was asked for; else of the definitions' names; else of the only tool there is.
fn choose(
    args: &Args,
    mut by_tool: BTreeMap<String, Counts>,
    old: &Definition,
    new: &Definition,
) -> anyhow::Result<(Counts, u64, Vec<String>)> {
    let of_id = |given: &str| given.split_once('@').map(|(tool, _)| tool.to_owned());
    // the old name before the new one: calls under a new name are none of the old contract
    let wanted: Vec<String> = match &args.tool {
        Some(tool) => vec![tool.clone()],
        None => of_id(&args.old).into_iter().chain([old.name.clone(), new.name.clone()]).collect(),
    };
    let total: u64 = by_tool.values().map(|c| c.calls).sum();
    let mut notes = Vec::new();
    let found: Vec<String> = wanted.iter().filter(|w| by_tool.contains_key(*w)).cloned().collect();
    let chosen = match (found.as_slice(), by_tool.len()) {
        ([], 0) => None,
        ([], _) => {
            let mut names: Vec<&str> = by_tool.keys().map(String::as_str).take(12).collect();
            names.sort_unstable();
            bail!(
                "no call of {} among {total} calls; the calls are of: {}. If one of these is the same tool, name it with --tool",
                wanted.first().map_or("", String::as_str),
                names.join(", ")
            );
        }
        ([first, ..], _) => {
            if *first == new.name && *first != old.name && args.tool.is_none() {
                notes.push(format!("no call of {}; taken are those of {first}, the new name", old.name));
            }
            Some(first.clone())
        }
    };
    let counts = chosen.and_then(|name| by_tool.remove(&name)).unwrap_or_default();
    let other_calls = total - counts.calls;
    Ok((counts, other_calls, notes))
}

impl Counts {
    fn add(&mut self, args: &Args, call: &CallRecord<'_>, got: &Comparison, place: &str) {
        self.calls += 1;
        if let Some(n) = self.results.get_mut(got.result as usize) {
            *n += 1;
        }
        self.outcomes += u64::from(got.evidence.outcome);
        self.reconstructed += u64::from(call.fidelity == lastcall_event::Fidelity::Reconstructed);
        if let Some(reason) = got.reason {
            *self.reasons.entry(reason.as_str().to_owned()).or_default() += 1;
        }
        for rule in &got.rules {
            *self.rules.entry((*rule).to_owned()).or_default() += 1;
        }
        let disagreed = got.result == ComparisonResult::Disagreed;
        let (refused, changed) = (disagreed && got.refused(), disagreed && !got.refused());
        self.refused += u64::from(refused);
        for d in &got.discrepancies {
            let key = (d.category.as_str().to_owned(), without_indices(&d.field));
            let row = self.categories.entry(key.clone()).or_insert_with(|| TryCategory {
                category: key.0,
                severity: d.severity.as_str().to_owned(),
                pointer: key.1,
                keyword: d.keyword.clone(),
                location: d.location.clone(),
                note: d.note.clone(),
                ..TryCategory::default()
            });
            row.calls += 1;
            row.refused += u64::from(d.refused);
        }
        if let Some(agent) = call.envelope.agent_id.as_deref() {
            let row = match self.agents.get_mut(agent) {
                Some(row) => row,
                None => self
                    .agents
                    .entry(agent.to_owned())
                    .or_insert_with(|| TryAgent { agent: agent.to_owned(), ..TryAgent::default() }),
            };
            row.calls += 1;
            row.refused += u64::from(refused);
            row.changed += u64::from(changed);
        }
        let day = (call.ts != NO_TIME).then(|| call.ts.day());
        if let Some(day) = day {
            let row = self.days.entry(day).or_insert(TryDay { day, compared: 0, disagreed: 0, refused: 0 });
            row.compared +=
                u64::from(matches!(got.result, ComparisonResult::Agreed | ComparisonResult::Disagreed));
            row.disagreed += u64::from(disagreed);
            row.refused += u64::from(refused);
        }
        if disagreed {
            self.keep_worst(args, call, got, place, day);
        }
    }

    fn keep_worst(
        &mut self,
        args: &Args,
        call: &CallRecord<'_>,
        got: &Comparison,
        place: &str,
        day: Option<Day>,
    ) {
        let severity = got.severity().unwrap_or(Severity::Info);
        let rank = (got.refused(), severity, got.discrepancies.len());
        if self.worst.len() >= args.examples && self.worst.last().is_none_or(|(least, _)| *least >= rank) {
            return;
        }
        let arguments = lastcall_compare::parse_call(call).ok().filter(|_| args.show_values);
        let finding = |d: &lastcall_compare::Discrepancy| TryFinding {
            category: d.category.as_str().to_owned(),
            severity: d.severity.as_str().to_owned(),
            pointer: d.field.clone(),
            refused: d.refused,
            keyword: d.keyword.clone(),
            location: d.location.clone(),
            note: d.note.clone(),
            value: arguments.as_ref().and_then(|p| p.value.pointer(&d.field)).map(|v| v.to_string()),
        };
        let example = TryExample {
            call_id: call.call_id.to_string(),
            place: place.to_owned(),
            agent: call.envelope.agent_id.as_deref().map(str::to_owned),
            day,
            findings: got.discrepancies.iter().map(finding).collect(),
        };
        // the first of several equally bad calls stays: the file's order decides
        let at = self.worst.partition_point(|(r, _)| *r >= rank);
        self.worst.insert(at, (rank, example));
        self.worst.truncate(args.examples);
    }

    fn report(
        self,
        args: &Args,
        old: &Definition,
        other_calls: u64,
        undecodable: u64,
        mut notes: Vec<String>,
    ) -> TryReport {
        let result = |r: ComparisonResult| self.results.get(r as usize).copied().unwrap_or(0);
        let disagreed = result(ComparisonResult::Disagreed);
        if self.calls > 0 && self.outcomes == 0 {
            notes.push(
                "arguments only: no outcome was compared, since no candidate ran these calls".to_owned(),
            );
        }
        if self.reconstructed > 0 {
            notes.push(format!("{} calls have reconstructed arguments", self.reconstructed));
        }
        let mut categories: Vec<TryCategory> = self.categories.into_values().collect();
        let severity = |c: &TryCategory| ["block", "warn", "info"].iter().position(|s| *s == c.severity);
        categories.sort_by(|a, b| {
            severity(a).cmp(&severity(b)).then(b.calls.cmp(&a.calls)).then(a.pointer.cmp(&b.pointer))
        });
        let mut agents: Vec<TryAgent> = self.agents.into_values().collect();
        agents.sort_by(|a, b| {
            (b.refused + b.changed).cmp(&(a.refused + a.changed)).then(b.calls.cmp(&a.calls))
        });
        TryReport {
            tool: old.name.clone(),
            old: args.old.clone(),
            new: args.new.clone(),
            source: args.calls.display().to_string(),
            calls: self.calls,
            other_calls,
            undecodable,
            agreed: result(ComparisonResult::Agreed),
            disagreed,
            refused: self.refused,
            changed: disagreed - self.refused,
            both_rejected: result(ComparisonResult::BothRejected),
            excluded: result(ComparisonResult::Excluded),
            unresolved: result(ComparisonResult::Unresolved),
            reasons: self.reasons,
            categories,
            agents,
            days: self.days.into_values().collect(),
            worst: self.worst.into_iter().map(|(_, example)| example).collect(),
            rules: self.rules,
            burn_in: Vec::new(),
            notes,
        }
    }
}

/// A pointer with `*` for list indices, so that one cause is one row.
fn without_indices(pointer: &str) -> String {
    let token = |t: &str| {
        if !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()) { "*".to_owned() } else { t.to_owned() }
    };
    pointer.split('/').map(token).collect::<Vec<_>>().join("/")
}
