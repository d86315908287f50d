//! `lastcall decide`: READY, NOT_READY, INSUFFICIENT or ERROR, with the evidence. It reads the ledger, and appends the
//! verdict unless asked not to.

mod values;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use lastcall_decision::{Answer, Question, Verdict, canonical_json, decide, decide_after_cutover, nearest};
use lastcall_ledger::Ledger;
use lastcall_ledger::control::Control;
use lastcall_ledger::window::{Record, Subject};
use lastcall_report::{fleet_page, fleet_text, to_json, verdict_page, verdict_text};

use super::ledger::{of_ledger, open};
use crate::ui::{Exit, style, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  lastcall decide search --ledger ledger\n  \
    lastcall decide search --ledger ledger --explain\n  \
    lastcall decide --all --ledger ledger --format html --out report.html\n\n\
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
    /// How to answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the answer to this file, and its text to standard output.
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
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
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
    let mut verdicts = answers(&record, &subjects, question)?;
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
    print(&args, &verdicts)?;
    let worst = verdicts.iter().map(|v| v.verdict).max_by_key(|a| a.rank());
    Ok(exit(worst.unwrap_or(Answer::Insufficient)))
}

/// The verdicts on these subjects, in their order.
///
/// # Errors
/// Something that the index names is missing or altered; the command ends with 4.
pub fn answers(record: &Record, subjects: &[Subject], question: Question) -> anyhow::Result<Vec<Verdict>> {
    let inputs = record.gather(subjects).map_err(|e| with_exit(Exit::Error, e.to_string()))?;
    let answer = |input| match question {
        Question::Cutover => decide(input),
        other => decide_after_cutover(input, other),
    };
    Ok(inputs.iter().map(answer).collect())
}

/// Decides on every tool of a ledger and appends the verdicts: for `demo`.
pub fn decide_all(ledger: Ledger) -> anyhow::Result<Vec<Verdict>> {
    let record = Record::read(ledger).map_err(|e| with_exit(Exit::Error, e.to_string()))?;
    let verdicts = answers(&record, &record.subjects(), Question::Cutover)?;
    for verdict in &verdicts {
        append(&record, verdict)?;
    }
    Ok(verdicts)
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

fn print(args: &Args, verdicts: &[Verdict]) -> anyhow::Result<()> {
    let one = if args.all { None } else { verdicts.first() };
    let text = |style| {
        let text = match one {
            Some(v) => verdict_text(v, args.explain, style),
            None if args.explain => {
                let each: Vec<String> = verdicts.iter().map(|v| verdict_text(v, true, style)).collect();
                format!("{}\n{}", fleet_text(verdicts, style), each.join("\n\n"))
            }
            None => fleet_text(verdicts, style),
        };
        here(&text, &args.ledger.display().to_string())
    };
    let document = match args.format {
        Format::Text => None,
        Format::Json => Some(match one {
            Some(v) => to_json(v)?,
            None => to_json(&verdicts)?,
        }),
        Format::Html => Some(match one {
            Some(v) => verdict_page(v),
            None => fleet_page("May new calls go to the candidates?", verdicts),
        }),
    };
    let Some(path) = &args.out else {
        match document {
            Some(document) => print!("{document}"),
            None => print!("{}", text(style())),
        }
        return Ok(());
    };
    let document = document.unwrap_or_else(|| text(lastcall_report::Style::default()));
    std::fs::write(path, document).with_context(|| format!("cannot write {}", path.display()))?;
    print!("{}", text(style()));
    tell!("written: {}", path.display());
    Ok(())
}
