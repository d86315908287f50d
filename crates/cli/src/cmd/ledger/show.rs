//! `lastcall ledger show`: what a ledger holds, as a summary, or result by result as JSON Lines with hashes.

mod lines;

use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::bail;
use lastcall_compare::Category;
use lastcall_decision::{DayCounts, grouped, nearest, percent_of};
use lastcall_event::Day;
use lastcall_ledger::Ledger;
use lastcall_ledger::show::{Filter, days, each_result, tools};
use lastcall_ledger::window::Record;
use serde_json::{Value, json};

use super::{Format, of_ledger, open};
use crate::ui::Exit;
use lines::Lines;

/// Arguments.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  lastcall ledger show ledger\n  lastcall ledger show ledger search --jsonl\n  \
    lastcall ledger show ledger search --jsonl --day 2026-06-01..2026-06-07 --category type_changed --limit 20\n\n\
    One line a result: no value of any call, its id as a hash. Every line ends with its hash: SHA-256 over the line as it\n\
    stands without `,\"hash\":…`. Behind every 1,000 lines, and at the end, a line with `batch` hashes them together and\n\
    names the batch before it."
)]
pub struct ShowArgs {
    /// The ledger, or an export: a folder, or s3://BUCKET/PREFIX.
    ledger: PathBuf,
    /// Only this tool.
    tool: Option<String>,
    /// One line a result, as JSON, each with its hash.
    #[arg(long)]
    jsonl: bool,
    /// Only results of this UTC day, or of DAY..DAY.
    #[arg(long, value_name = "DAY[..DAY]", value_parser = span, requires = "jsonl")]
    day: Option<(Day, Day)>,
    /// Only results that differ in this category; an unknown one is answered with all that there are.
    #[arg(long, value_parser = category, requires = "jsonl")]
    category: Option<Category>,
    /// No more than so many results.
    #[arg(long, value_name = "N", requires = "jsonl")]
    limit: Option<u64>,
    /// Lines in a batch.
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "jsonl", value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// How the summary is answered.
    #[arg(long, value_enum, default_value = "text", conflicts_with = "jsonl")]
    format: Format,
}

fn span(text: &str) -> Result<(Day, Day), String> {
    let day = |text: &str| Day::parse(text).ok_or_else(|| format!("`{text}` is no day; write 2026-06-01"));
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    match (day(from)?, day(to)?) {
        (from, to) if from <= to => Ok((from, to)),
        _ => Err(format!("`{text}` ends before it begins")),
    }
}

fn category(text: &str) -> Result<Category, String> {
    Category::parse(text).ok_or_else(|| {
        let near = nearest(text, Category::ALL.iter().map(|c| c.as_str()));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        match hint.is_empty() {
            true => {
                let all: Vec<&str> = Category::ALL.iter().map(|c| c.as_str()).collect();
                format!("`{text}` is no category; there are {}", all.join(", "))
            }
            false => format!("`{text}` is no category{hint}"),
        }
    })
}

/// Runs it.
pub fn run(args: &ShowArgs) -> anyhow::Result<Exit> {
    let ledger = open(&args.ledger)?;
    let record = Record::read(ledger.clone()).map_err(of_ledger)?;
    let known = tools(&record);
    if let Some(tool) = args.tool.as_ref().filter(|tool| !known.contains(*tool)) {
        super::only_exported(&ledger, tool)?;
        match nearest(tool, known.iter().map(String::as_str)) {
            Some(near) => {
                bail!("no call and no pair of `{tool}` stands in {}; did you mean `{near}`?", ledger.place())
            }
            None => bail!("no call and no pair of `{tool}` stands in {}", ledger.place()),
        }
    }
    if args.jsonl {
        return jsonl(&ledger, args);
    }
    let summary = summary(&record, args.tool.as_deref())?;
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&summary)?),
        Format::Text => print!("{}", text(&summary, &args.ledger)),
    }
    Ok(Exit::Yes)
}

fn jsonl(ledger: &Ledger, args: &ShowArgs) -> anyhow::Result<Exit> {
    let (from, to) = args.day.unzip();
    let filter = Filter { tool: args.tool.clone(), from, to };
    let mut lines = Lines::new(BufWriter::new(std::io::stdout().lock()), args.batch);
    let mut failed = None;
    let mut left = args.limit.unwrap_or(u64::MAX);
    if left > 0 {
        each_result(ledger, &filter, &mut |shown| {
            if args.category.is_some_and(|c| !shown.row.discrepancies.iter().any(|d| d.category == c)) {
                return ControlFlow::Continue(());
            }
            left -= 1;
            if let Err(error) = lines.result(&shown) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .map_err(of_ledger)?;
    }
    let done = match failed {
        Some(error) => Err(error),
        None => lines.end().and_then(|mut out| out.flush()),
    };
    match done {
        // The reader has seen enough: `| head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(141),
        done => Ok(done.map(|()| Exit::Yes)?),
    }
}

/// What a ledger holds: chains, and what the tools' days come to.
fn summary(record: &Record, only: Option<&str>) -> anyhow::Result<Value> {
    let ledger = &record.ledger;
    let mut chains = Vec::new();
    if let Some(tail) = record.control.tail() {
        chains.push(json!({ "chain": "control", "entries": tail.seq + 1, "at": tail.at.to_string() }));
    }
    for chain in &record.chains {
        let Some(tail) = chain.tail() else { continue };
        let progress = chain.progress();
        chains.push(json!({
            "chain": chain.chain().to_string(),
            "entries": tail.seq + 1,
            "at": tail.at.to_string(),
            // A simulated ledger's partition is read through to its last clock record.
            "read_through": progress
                .and_then(|p| if ledger.is_simulated() { p.clock } else { p.read_through })
                .map(|t| t.to_string()),
            "final": progress.is_some_and(|p| p.is_final),
            "not_folded": chain.chunks().count(),
        }));
    }
    if let Some(head) = &record.head {
        chains.push(
            json!({ "chain": "index", "entries": head.entry.seq + 1, "at": head.entry.at.to_string() }),
        );
    }
    let subjects = record.subjects();
    let mut of_tools = Vec::new();
    for tool in tools(record).into_iter().filter(|tool| only.is_none_or(|only| only == tool)) {
        let days = days(record, &tool).map_err(of_ledger)?;
        let mut counts = DayCounts::default();
        days.iter().for_each(|day| counts.add(&day.counts));
        let mut rows = 0;
        for (_, chunk) in record.chains.iter().flat_map(|chain| chain.chunks()) {
            rows += chunk.tallies.iter().filter(|t| *t.tool == *tool).map(|t| t.counts.rows()).sum::<u64>();
        }
        let subject = subjects.iter().find(|s| s.tool_id == tool);
        let phase = match subject.map(|s| s.registration.as_ref()) {
            None => "called",
            Some(None) => "observed",
            Some(Some(r)) if r.end.is_some() => "ended",
            Some(Some(_)) => "scored",
        };
        let distinct: std::collections::BTreeSet<Day> = days.iter().map(|d| d.day).collect();
        of_tools.push(json!({
            "tool": tool,
            "phase": phase,
            "candidate": subject.and_then(|s| s.pair.as_ref()).map(|p| &p.candidate),
            "days": distinct.len(),
            "first": distinct.first().map(ToString::to_string),
            "last": distinct.last().map(ToString::to_string),
            "compared": counts.compared(),
            "disagreed": counts.disagreed,
            "unresolved": counts.unresolved,
            "not_folded": rows,
        }));
    }
    let head = record.head.as_ref().map(|h| json!({ "seq": h.entry.seq, "digest": h.digest }));
    Ok(json!({
        "id": ledger.meta().id,
        "clock": ledger.meta().clock,
        "export_of": ledger.export().map(|mark| &mark.tool),
        "with_arguments": ledger.export().map(|mark| mark.with_arguments),
        "head": head,
        "chains": chains,
        "tools": of_tools,
    }))
}

/// Longer names of tools are cut, so that a table stays one.
const NAME_CHARS: usize = 80;

fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS) {
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or_default()),
        None => name.to_owned(),
    }
}

fn text(summary: &Value, place: &Path) -> String {
    use std::fmt::Write as _;
    let said = |v: &Value| match v {
        Value::String(text) => lastcall_report::plain(text),
        Value::Null => "–".to_owned(),
        other => other.to_string(),
    };
    let number = |v: &Value| grouped(v.as_u64().unwrap_or_default());
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: ledger {}, {} clock",
        place.display(),
        said(&summary["id"]),
        said(&summary["clock"])
    );
    if let Some(tool) = summary["export_of"].as_str() {
        let with = if summary["with_arguments"] == true { "with its calls" } else { "without arguments" };
        let _ = writeln!(out, "an export of `{tool}`, {with}");
    }
    match &summary["head"] {
        Value::Null => {
            let _ = writeln!(
                out,
                "no index yet: every chunk is read each time\nnext: `lastcall ledger compact {}` folds what is closed into days, \
                 and makes the head",
                place.display()
            );
        }
        head => {
            let _ = writeln!(out, "head: index entry {}, {}", head["seq"], said(&head["digest"]));
        }
    }
    let mut rows =
        vec![["chain", "entries", "not folded", "last entry", "read through"].map(str::to_owned).to_vec()];
    for chain in summary["chains"].as_array().into_iter().flatten() {
        let through =
            if chain["final"] == true { "its end".to_owned() } else { said(&chain["read_through"]) };
        let open =
            if chain["not_folded"].is_null() { "–".to_owned() } else { number(&chain["not_folded"]) };
        rows.push(vec![said(&chain["chain"]), number(&chain["entries"]), open, said(&chain["at"]), through]);
    }
    out.push('\n');
    out.push_str(&lastcall_report::table(&rows, &[false, true, true, false, false], ""));
    let head = ["tool", "phase", "days", "from", "to", "compared", "D", "unresolved", "not folded"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for tool in summary["tools"].as_array().into_iter().flatten() {
        let count = |key: &str| tool[key].as_u64().unwrap_or_default();
        rows.push(vec![
            cut(&said(&tool["tool"])),
            said(&tool["phase"]),
            number(&tool["days"]),
            said(&tool["first"]),
            said(&tool["last"]),
            number(&tool["compared"]),
            percent_of(count("disagreed"), count("compared")),
            number(&tool["unresolved"]),
            number(&tool["not_folded"]),
        ]);
    }
    out.push('\n');
    let right = [false, false, true, false, false, true, true, true, true];
    out.push_str(&lastcall_report::table(&rows, &right, ""));
    out
}
