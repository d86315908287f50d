//! `lastcall decide`: READY, NOT_READY, INSUFFICIENT or ERROR, with the evidence. It reads the ledger, and appends the
//! verdict unless asked not to.

mod show;
mod values;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use lastcall_decision::{
    Answer, History, Question, Verdict, WindowInput, canonical_json, decide, decide_after_cutover, nearest,
};
use lastcall_ledger::Ledger;
use lastcall_ledger::control::Control;
use lastcall_ledger::window::{Record, Subject};

use super::ledger::{of_ledger, open};
use crate::ui::{Exit, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  lastcall decide search --ledger ledger\n  \
    lastcall decide search --ledger ledger --explain\n  \
    lastcall decide --all --ledger ledger --format html --out report.html\n  \
    lastcall decide --all --ledger ledger --format html --out board/\n  \
    lastcall decide --all --ledger ledger --format junit --out verdicts.xml\n\n\
    Exit codes: 0 READY, 1 NOT_READY, 3 INSUFFICIENT, 4 ERROR; 2 usage or configuration.\n\
    --all exits with the worst, in the order 4, 1, 3, 0.")]
pub struct Args {
    /// The tool.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    tool: Option<String>,
    /// Every tool that is registered or observed.
    #[arg(long)]
    all: bool,
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    #[arg(long, env = "LASTCALL_LEDGER", value_name = "DIR")]
    ledger: PathBuf,
    /// May new calls go to the candidate, the old version be switched off, its decoder be removed?
    #[arg(long = "for", value_enum, default_value = "cutover")]
    question: QuestionArg,
    /// Only the window of this cohort.
    #[arg(long, value_name = "NAME")]
    cohort: Option<String>,
    /// Everything: days, categories, balance, other readings, earlier windows, what is not claimed.
    #[arg(long)]
    explain: bool,
    /// How to answer. `markdown` is also appended to the file that GITHUB_STEP_SUMMARY names.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the answer to this file, and its text to standard output. With `--all --format html` a folder (`board/`) gets
    /// index.html and a page for each tool.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Show the values at the examples' pointers. They may be personal data; the recorded verdict never has them.
    #[arg(long)]
    show_values: bool,
    /// Record nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum QuestionArg {
    Cutover,
    Retire,
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Html,
    Markdown,
    Junit,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    show::check(&args)?;
    let ledger = open(&args.ledger)?;
    let record = Record::read(ledger).map_err(|e| with_exit(Exit::Error, e.to_string()))?;
    if let Some(tool) = &args.tool {
        super::ledger::only_exported(&record.ledger, tool)?;
    }
    let subjects = chosen(&record, &args)?;
    let question = match args.question {
        QuestionArg::Cutover => Question::Cutover,
        QuestionArg::Retire => Question::Retire,
        QuestionArg::Delete => Question::Delete,
    };
    let inputs = gather(&record, &subjects)?;
    let mut verdicts = judged(&inputs, question);
    if let (Some(mark), false) = (record.ledger.export(), args.dry_run) {
        tell!("an export of `{}`: the verdict is not recorded in it", mark.tool);
    } else if !args.dry_run && question == Question::Cutover {
        for verdict in &verdicts {
            append(&record, verdict)?;
        }
    }
    if args.show_values {
        for verdict in &mut verdicts {
            values::fill(&record, verdict)?;
        }
    }
    let histories = match args.format {
        Format::Html => histories(&record, &subjects, &inputs),
        _ => Vec::new(),
    };
    show::show(&args, &verdicts, &histories)?;
    let worst = verdicts.iter().map(|v| v.verdict).max_by_key(|a| a.rank());
    Ok(exit(worst.unwrap_or(Answer::Insufficient)))
}

/// The verdicts on these subjects, in their order.
///
/// # Errors
/// Something that the index names is missing or altered; the command ends with 4.
pub fn answers(record: &Record, subjects: &[Subject], question: Question) -> anyhow::Result<Vec<Verdict>> {
    Ok(judged(&gather(record, subjects)?, question))
}

fn gather(record: &Record, subjects: &[Subject]) -> anyhow::Result<Vec<WindowInput>> {
    record.gather(subjects).map_err(|e| with_exit(Exit::Error, e.to_string()))
}

fn judged(inputs: &[WindowInput], question: Question) -> Vec<Verdict> {
    let answer = |input| match question {
        Question::Cutover => decide(input),
        other => decide_after_cutover(input, other),
    };
    inputs.iter().map(answer).collect()
}

fn histories(record: &Record, subjects: &[Subject], inputs: &[WindowInput]) -> Vec<History> {
    subjects.iter().zip(inputs).map(|(subject, input)| record.history(subject, input)).collect()
}

/// Decides on every tool of a ledger and appends the verdicts, with what a page shows beside them: for `demo`.
pub fn decide_all(ledger: Ledger) -> anyhow::Result<(Vec<Verdict>, Vec<History>)> {
    let record = Record::read(ledger).map_err(|e| with_exit(Exit::Error, e.to_string()))?;
    let subjects = record.subjects();
    let inputs = gather(&record, &subjects)?;
    let verdicts = judged(&inputs, Question::Cutover);
    for verdict in &verdicts {
        append(&record, verdict)?;
    }
    Ok((verdicts, histories(&record, &subjects, &inputs)))
}

/// Commands with the ledger's place. A verdict document says DIR: it is the same wherever the ledger lies.
pub fn here(text: &str, place: &str) -> String {
    text.replace("--ledger DIR", &format!("--ledger {place}"))
        .replace("ledger verify DIR", &format!("ledger verify {place}"))
}

/// The exit code of an answer.
pub fn exit(answer: Answer) -> Exit {
    match answer {
        Answer::Ready => Exit::Yes,
        Answer::NotReady => Exit::No,
        Answer::Insufficient => Exit::Insufficient,
        Answer::Error => Exit::Error,
    }
}

fn chosen(record: &Record, args: &Args) -> anyhow::Result<Vec<Subject>> {
    let all = record.subjects();
    let cohort = |s: &Subject| s.registration.as_ref().and_then(|r| r.cohort.clone());
    let fits = |s: &Subject| args.cohort.is_none() || cohort(s) == args.cohort;
    let Some(tool) = &args.tool else {
        let found: Vec<Subject> = all.into_iter().filter(fits).collect();
        if found.is_empty() {
            bail!(
                "{} has no registered or observed tool{}; begin with `lastcall plan observe OLD NEW --ledger {}`",
                record.ledger.place(),
                args.cohort.as_ref().map_or_else(String::new, |c| format!(" of cohort `{c}`")),
                args.ledger.display()
            );
        }
        return Ok(found);
    };
    subject(&all, tool, args.cohort.as_deref()).map(|s| vec![s])
}

/// The one subject of a tool.
pub fn subject(all: &[Subject], tool: &str, cohort: Option<&str>) -> anyhow::Result<Subject> {
    let of = |s: &&Subject| s.registration.as_ref().and_then(|r| r.cohort.as_deref()).map(str::to_owned);
    let found: Vec<&Subject> = all.iter().filter(|s| s.tool_id == tool).collect();
    match (found.as_slice(), cohort) {
        ([], _) => match nearest(tool, all.iter().map(|s| s.tool_id.as_str())) {
            Some(near) => bail!("no tool `{tool}` is registered or observed; did you mean `{near}`?"),
            None => bail!(
                "no tool `{tool}` is registered or observed; begin with `lastcall plan observe OLD NEW`"
            ),
        },
        ([one], None) => Ok((*one).clone()),
        (several, cohort) => {
            let fitting = several.iter().find(|s| of(s).as_deref() == cohort);
            let names: Vec<String> =
                several.iter().map(|s| of(s).unwrap_or_else(|| "every cohort".to_owned())).collect();
            let what = format!("`{tool}` has windows of: {}; choose one with --cohort", names.join(", "));
            fitting.map(|s| (*s).clone()).with_context(|| what)
        }
    }
}

/// Records a verdict: its document as an object, an entry that names it. The same document is not recorded twice.
fn append(record: &Record, verdict: &Verdict) -> anyhow::Result<()> {
    let Some(registration) = &verdict.registration else { return Ok(()) };
    let document = record.ledger.put_object(&canonical_json(verdict)?).map_err(of_ledger)?;
    let last = record.control.verdicts.iter().rev().find(|v| v.registration == registration.seq);
    if last.is_some_and(|v| v.document == document) {
        return Ok(());
    }
    let entry = Control::Verdict {
        registration: registration.seq,
        verdict: verdict.verdict.as_str().to_owned(),
        closed_through: verdict.window.as_ref().and_then(|w| w.closed_through),
        document,
    };
    record.ledger.append_control(entry).map_err(of_ledger)?;
    Ok(())
}
