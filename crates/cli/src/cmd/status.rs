//! `lastcall status`: every tool on one line, or one tool in full. It only reads, and records no verdict.

use std::path::PathBuf;

use clap::ValueEnum;
use lastcall_decision::{Answer, DayCounts, Question, Verdict, grouped, percent_of};
use lastcall_ledger::window::{Record, Subject};
use lastcall_report::{plain, to_json, verdict_text};
use serde::Serialize;

use super::decide::{answers, here, subject};
use super::ledger::open;
use crate::ui::{Exit, style, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  lastcall status --ledger ledger\n  lastcall status search --ledger ledger\n\n\
    It exits 0 whatever the tools' verdicts are, but 4 where one is ERROR; `lastcall decide` says them by its exit code."
)]
pub struct Args {
    /// One tool in full; without it every tool on one line.
    tool: Option<String>,
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    #[arg(long, env = "LASTCALL_LEDGER", value_name = "DIR")]
    ledger: PathBuf,
    /// Only the window of this cohort.
    #[arg(long, value_name = "NAME", requires = "tool")]
    cohort: Option<String>,
    /// How to answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// One tool on one line.
#[derive(Serialize)]
struct Line {
    tool: String,
    phase: &'static str,
    candidate: Option<String>,
    cohort: Option<String>,
    verdict: Answer,
    closed_days: u64,
    counted_days: Option<u32>,
    closed_through: Option<String>,
    compared: u64,
    disagreed: u64,
    unresolved: u64,
    next: String,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let ledger = open(&args.ledger)?;
    let record = Record::read(ledger).map_err(|e| with_exit(Exit::Error, e.to_string()))?;
    if let Some(tool) = &args.tool {
        super::ledger::only_exported(&record.ledger, tool)?;
    }
    if let Some(ahead) = record.ahead() {
        eprintln!("warning: {}", plain(&ahead.to_string()));
    }
    let all = record.subjects();
    match &args.tool {
        Some(tool) => one(&record, &subject(&all, tool, args.cohort.as_deref())?, args.format),
        None => fleet(&record, &all, args.format),
    }
}

fn fleet(record: &Record, all: &[Subject], format: Format) -> anyhow::Result<Exit> {
    let inputs = record.gather(all).map_err(|e| with_exit(Exit::Error, e.to_string()))?;
    let lines: Vec<Line> = inputs
        .iter()
        .zip(all)
        .map(|(input, s)| {
            let verdict = lastcall_decision::decide(input);
            let mut counts = verdict.totals.counts.clone();
            if s.registration.is_none() {
                counts = DayCounts::default();
                input.days.values().for_each(|d| counts.add(d));
            }
            line(s, &verdict, &counts, record.ledger.place())
        })
        .collect();
    let exit = exit(lines.iter().map(|line| line.verdict));
    if format == Format::Json {
        print!("{}", to_json(&lines)?);
        return Ok(exit);
    }
    if lines.is_empty() {
        println!("no tool is observed yet");
        println!("next: lastcall plan observe OLD NEW --ledger {}", record.ledger.place());
        return Ok(Exit::Yes);
    }
    print!("{}", table(&lines));
    Ok(exit)
}

/// Verdicts are for `decide` to say; that one could not be computed, or the record was altered, is said by both.
fn exit(mut verdicts: impl Iterator<Item = Answer>) -> Exit {
    if verdicts.any(|verdict| verdict == Answer::Error) { Exit::Error } else { Exit::Yes }
}

fn line(s: &Subject, v: &Verdict, counts: &DayCounts, place: &str) -> Line {
    let phase = match &s.registration {
        None => "observed",
        Some(r) if r.end.is_some() => "ended",
        Some(_) => "scored",
    };
    let next = match v.verdict {
        Answer::Ready => format!("lastcall decide {} --ledger {place}", s.tool_id),
        _ => here(v.next.as_deref().unwrap_or_default(), place),
    };
    let open = v.window.as_ref().and_then(|w| w.open_because.clone());
    Line {
        tool: s.tool_id.clone(),
        phase,
        candidate: s.pair.as_ref().map(|p| p.candidate.clone()),
        cohort: s.registration.as_ref().and_then(|r| r.cohort.clone()),
        verdict: v.verdict,
        closed_days: v.totals.days,
        counted_days: v.plan.as_ref().map(|p| p.values.counted_days),
        closed_through: v.window.as_ref().and_then(|w| w.closed_through).map(|d| d.to_string()),
        compared: counts.compared(),
        disagreed: counts.disagreed,
        unresolved: counts.unresolved,
        next: match (next.is_empty(), open) {
            (true, Some(why)) => why,
            _ => next,
        },
    }
}

/// Longer reasons are cut: a tool is one line.
const NEXT_CHARS: usize = 90;

fn table(lines: &[Line]) -> String {
    let head = ["tool", "phase", "verdict", "days", "calls", "D", "unresolved", "next"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    for l in lines {
        let days = l.counted_days.map_or_else(|| "–".to_owned(), |n| format!("{} of {n}", l.closed_days));
        let tool = l.cohort.as_ref().map_or_else(|| l.tool.clone(), |c| format!("{} [{c}]", l.tool));
        rows.push(vec![
            tool,
            l.phase.to_owned(),
            l.verdict.as_str().to_owned(),
            days,
            grouped(l.compared),
            percent_of(l.disagreed, l.compared),
            grouped(l.unresolved),
            cut(&l.next),
        ]);
    }
    lastcall_report::table(&rows, &[false, false, false, true, true, true, true, false], "")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(NEXT_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}

fn one(record: &Record, s: &Subject, format: Format) -> anyhow::Result<Exit> {
    let verdicts = answers(record, std::slice::from_ref(s), Question::Cutover)?;
    let Some(verdict) = verdicts.first() else { return Ok(Exit::Yes) };
    let exit = exit(std::iter::once(verdict.verdict));
    if format == Format::Json {
        print!("{}", to_json(verdict)?);
        return Ok(exit);
    }
    print!("{}", here(&verdict_text(verdict, true, style()), record.ledger.place()));
    let style = style();
    println!("\n{}", style.bold("Sources"));
    for source in record.control.sources.values() {
        println!(
            "  {}, control entry {}, days close {} s after their end",
            source.name,
            source.seq,
            source.lateness_ms / 1000
        );
    }
    if let Some(why) = verdict.window.as_ref().and_then(|w| w.open_because.as_ref()) {
        println!("\n{}\n  {why}", style.bold("The next day is open because"));
    }
    Ok(exit)
}
