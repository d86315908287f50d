//! `lastcall plan plant`: calls with a known fault. Their ids are committed to the control chain first; then they are
//! appended to a file that is a source. Nothing else makes a call a planted one.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lastcall_compare::{Category, PairConfig, PreparedPair, compare};
use lastcall_contract::{Contract, Definition, Digest, Pick};
use lastcall_decision::canonical_json;
use lastcall_event::{Preset, Record, Timestamp, decode};
use lastcall_ledger::control::{Control, Pair};
use lastcall_ledger::window::{Expect, PlantList, PlantedCall};
use lastcall_ledger::{Ledger, random_hex};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::ledger::{of_ledger, open};
use super::{observed_pair, read_text};
use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall plan plant search --sample call.json --to calls.jsonl --ledger ledger\n  \
    lastcall plan plant search --calls plants.jsonl --to calls.jsonl --ledger ledger\n\n\
    --calls has one {\"call\": {…}, \"expect\": {\"category\": …, \"severity\": …}} a line; without `expect` it is a\n\
    synthetic call, of which nothing is expected. Each call gets a new call_id, and the ids are committed to the\n\
    control chain before the first line is appended.")]
pub struct Args {
    /// The tool; its pair has to be observed.
    tool: String,
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    #[arg(long, env = "LASTCALL_LEDGER", value_name = "DIR")]
    ledger: PathBuf,
    /// Which candidate, where several are observed.
    #[arg(long, value_name = "CONTRACT")]
    candidate: Option<String>,
    /// Calls with what is expected of them, JSON Lines.
    #[arg(long, value_name = "FILE", required_unless_present = "sample")]
    calls: Option<PathBuf>,
    /// A call that both contracts accept; faults are made of it by what the pair changes.
    #[arg(long, value_name = "FILE", conflicts_with = "calls")]
    sample: Option<PathBuf>,
    /// The file to append to: one that `lastcall run` reads.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// The calls' time [now; in a simulated ledger the calls' own].
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,
    /// Show the calls and write nothing.
    #[arg(long)]
    dry_run: bool,
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "a time such as 2026-06-01T09:30:00Z".to_owned())
}

/// A line of the `--calls` file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    call: Map<String, Value>,
    #[serde(default)]
    expect: Option<Expect>,
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let ledger = open(&args.ledger)?;
    let control = ledger.control_now().map_err(of_ledger)?;
    let pair = observed_pair(&control, &args.tool, args.candidate.as_deref())?;
    let (current, candidate, config) = contracts(&ledger, &pair)?;
    let prepared = PreparedPair::new(&current, &candidate, &config)?;
    let mut lines = match (&args.calls, &args.sample) {
        (Some(path), _) => read_lines(path)?,
        (None, Some(path)) => faults(path, &current.definition, &candidate.definition, &config)?,
        (None, None) => bail!("give --calls FILE or --sample FILE"),
    };
    let mut list = PlantList::default();
    let mut text = String::new();
    for (i, line) in lines.iter_mut().enumerate() {
        let what = format!("call {}", i + 1);
        complete(line, &what, args, &pair, ledger.system_now())?;
        let call_id = format!("call_{}", random_hex(12)?);
        line.call.insert("call_id".to_owned(), json!(call_id));
        let json = Value::Object(line.call.clone()).to_string();
        check(&prepared, &json, line.expect, &what)?;
        list.calls.push(PlantedCall { call_id, expect: line.expect });
        text.push_str(&json);
        text.push('\n');
    }
    if list.calls.is_empty() {
        bail!("there is no call to plant");
    }
    if args.dry_run {
        print!("{text}");
        return Ok(Exit::Yes);
    }
    // The file is opened before the commitment, so that a folder that does not exist commits nothing.
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&args.to)
        .with_context(|| format!("{} cannot be appended to", args.to.display()))?;
    let digest = ledger.put_object(&canonical_json(&list)?).map_err(of_ledger)?;
    let count = list.calls.len() as u64;
    let entry = Control::Plant {
        tool_id: pair.tool_id.clone(),
        candidate: pair.candidate.clone(),
        list: digest,
        count,
    };
    let (seq, _) = ledger.append_control(entry).map_err(of_ledger)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(|| {
        format!(
            "{} could not be written; control entry {seq} commits calls that never came",
            args.to.display()
        )
    })?;
    println!(
        "planted {count} calls of `{}` in {}, committed by control entry {seq}",
        pair.tool_id,
        args.to.display()
    );
    for call in &list.calls {
        match call.expect {
            Some(e) => println!("  {} has to come back as {}/{}", call.call_id, e.category, e.severity),
            None => println!("  {} is synthetic", call.call_id),
        }
    }
    println!("next: lastcall run --ledger {} {}", args.ledger.display(), args.to.display());
    println!("days close only when that file too was read past their end; with --final it holds none open");
    Ok(Exit::Yes)
}

/// The definitions and the configuration of an observed pair, from the ledger's objects.
///
/// # Errors
/// One of them is missing or altered.
pub fn contracts(ledger: &Ledger, pair: &Pair) -> anyhow::Result<(Contract, Contract, PairConfig)> {
    let contract = |id: &str, digest: &Digest| -> anyhow::Result<Contract> {
        let text = String::from_utf8(ledger.object(digest).map_err(of_ledger)?)?;
        let named = Pick { name: Some(id.split('@').next().unwrap_or(id)), source: None };
        let definition = Definition::from_text(id, &text, Pick::default())
            .or_else(|error| Definition::from_text(id, &text, named).map_err(|_| error))?;
        Ok(Contract::new(id, definition))
    };
    let config = serde_json::from_slice(&ledger.object(&pair.config_digest).map_err(of_ledger)?)?;
    Ok((
        contract(&pair.current, &pair.current_digest)?,
        contract(&pair.candidate, &pair.candidate_digest)?,
        config,
    ))
}

fn read_lines(path: &Path) -> anyhow::Result<Vec<Line>> {
    let text = read_text(path)?;
    let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    lines
        .map(|(i, l)| {
            serde_json::from_str(l).with_context(|| {
                format!("{}:{}: not a {{\"call\": …, \"expect\": …}} line", path.display(), i + 1)
            })
        })
        .collect()
}

/// Fills in what a record needs and a person need not write: type, version, tool, contract, outcome, time.
fn complete(
    line: &mut Line,
    what: &str,
    args: &Args,
    pair: &Pair,
    now: Option<Timestamp>,
) -> anyhow::Result<()> {
    let call = &mut line.call;
    let kind = if call.contains_key("candidates") { "mirrored_call" } else { "tool_call" };
    call.entry("type").or_insert_with(|| json!(kind));
    call.entry("schema_version").or_insert_with(|| json!(1));
    call.entry("outcome").or_insert_with(|| json!({"status": "ok"}));
    for (key, wanted) in [("tool_id", &pair.tool_id), ("contract_id", &pair.current)] {
        let found = call.entry(key).or_insert_with(|| json!(wanted));
        if *found != json!(wanted) {
            bail!("{what}: its `{key}` is {found}, the pair's is \"{wanted}\"; it would not be compared");
        }
    }
    match (args.at.or(now), call.contains_key("ts")) {
        (Some(at), _) => {
            call.insert("ts".to_owned(), json!(at));
        }
        (None, true) => {}
        (None, false) => bail!("{what} has no `ts`, and a simulated ledger has no now; say --at TIME"),
    }
    Ok(())
}

/// Plants nothing that the comparator would not report as expected: that would be a false alarm to come.
fn check(prepared: &PreparedPair, json: &str, expect: Option<Expect>, what: &str) -> anyhow::Result<()> {
    let decoded = decode(json.as_bytes(), Preset::Native).with_context(|| format!("{what} is no record"))?;
    let Record::Call(call) = decoded.record else { bail!("{what} is no call") };
    let Some(expect) = expect else { return Ok(()) };
    let comparison = compare(prepared, &call);
    let found = comparison
        .discrepancies
        .iter()
        .any(|d| d.category == expect.category && d.severity == expect.severity);
    if found {
        return Ok(());
    }
    let said: Vec<String> =
        comparison.discrepancies.iter().map(|d| format!("{}/{}", d.category, d.severity)).collect();
    let said = if said.is_empty() { comparison.result.as_str().to_owned() } else { said.join(", ") };
    bail!(
        "{what} is expected to be {}/{}, and this build finds {said}; correct `expect` or the call",
        expect.category,
        expect.severity
    )
}

/// Faults made of a sample: what the two schemas say differs at the top level decides, not the comparator. Each is
/// the sample with one argument changed.
fn faults(path: &Path, old: &Definition, new: &Definition, config: &PairConfig) -> anyhow::Result<Vec<Line>> {
    let sample: Map<String, Value> = serde_json::from_str(&read_text(path)?)
        .with_context(|| format!("{}: not one call as a JSON object", path.display()))?;
    let Some(arguments) = sample.get("arguments").and_then(Value::as_object) else {
        bail!("{}: `arguments` has to be an object", path.display());
    };
    let severity =
        |c: Category| config.map.severities.get(&c).copied().unwrap_or_else(|| c.default_severity());
    let mut out = Vec::new();
    let mut fault = |category: Category, arguments: Map<String, Value>| {
        let mut call = sample.clone();
        call.insert("arguments".to_owned(), Value::Object(arguments));
        out.push(Line { call, expect: Some(Expect { category, severity: severity(category) }) });
    };
    let required = |d: &Definition, name: &str| {
        let list = d.input_schema.get("required").and_then(Value::as_array);
        list.is_some_and(|l| l.iter().any(|n| n == name))
    };
    let empty = Map::new();
    let properties = |d: &Definition| d.input_schema.get("properties").and_then(Value::as_object).cloned();
    let (was, is) = (properties(old), properties(new));
    let (was, is) = (was.as_ref().unwrap_or(&empty), is.as_ref().unwrap_or(&empty));
    for (name, schema) in is {
        if required(new, name) && !required(old, name) && was.contains_key(name) {
            let mut less = arguments.clone();
            less.remove(name);
            fault(Category::RequiredAdded, less);
        }
        if required(new, name) && !was.contains_key(name) {
            fault(Category::RequiredAdded, without(arguments, name));
        }
        let Some(before) = was.get(name) else { continue };
        let gone = values(before).into_iter().find(|v| !values(schema).contains(v));
        if let (Some(gone), false) = (gone, values(schema).is_empty()) {
            fault(Category::EnumValueRemoved, with(arguments, name, gone));
        }
        if let (Some(a), Some(b)) = (kind(before), kind(schema))
            && a != b
            && (a, b) != ("integer", "number")
            && let Some(value) = value_of(a)
        {
            fault(Category::TypeChanged, with(arguments, name, value));
        }
    }
    if out.is_empty() {
        bail!(
            "no fault can be made of {}: the pair requires no new argument and changes no type or enum at the top \
             level; write them by hand with --calls",
            path.display()
        );
    }
    Ok(out)
}

fn with(arguments: &Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    let mut out = arguments.clone();
    out.insert(name.to_owned(), value);
    out
}

fn without(arguments: &Map<String, Value>, name: &str) -> Map<String, Value> {
    let mut out = arguments.clone();
    out.remove(name);
    out
}

/// The values of an enum.
fn values(schema: &Value) -> Vec<Value> {
    schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The one type of a schema.
fn kind(schema: &Value) -> Option<&str> {
    schema.get("type").and_then(Value::as_str)
}

/// A value of a type that no other type accepts.
fn value_of(kind: &str) -> Option<Value> {
    Some(match kind {
        "string" => json!("planted"),
        "integer" => json!(7),
        "number" => json!(7.5),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => return None,
    })
}
