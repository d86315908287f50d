//! `lastcall ledger erase` and `expire`: what is not kept any longer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lastcall_event::Day;
use lastcall_ledger::Ledger;
use lastcall_ledger::entry::FileKind;
use lastcall_ledger::erasure::{Erased, Expired, Expiry, Request, Selection, erase, expire};
use lastcall_record::RedactionKey;
use serde_json::json;

use super::{Format, of_ledger, open, redaction};
use crate::ui::Exit;

/// Arguments of `erase`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  lastcall ledger erase ledger --session 7f3a --reason TICKET-81 --dry-run\n  \
    lastcall ledger erase ledger --call-ids ids.txt && lastcall ledger gc ledger --delete\n\n\
    Ids given on the command line stand in the shell's history and in the list of processes; a file, or `-` for\n\
    standard input, does not. The record says how many calls were erased, never whose."
)]
pub struct EraseArgs {
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    dir: PathBuf,
    /// The call with this id.
    #[arg(long = "call-id", value_name = "ID")]
    call_ids: Vec<String>,
    /// Every call of this session: its session id, else its run id, else its trace id.
    #[arg(long = "session", value_name = "ID")]
    sessions: Vec<String>,
    /// Every call of this agent.
    #[arg(long = "agent", value_name = "ID")]
    agents: Vec<String>,
    /// A file of call ids, one a line; `-` is standard input.
    #[arg(long = "call-ids", value_name = "FILE")]
    call_id_file: Option<PathBuf>,
    /// A file of sessions, one a line.
    #[arg(long = "sessions", value_name = "FILE")]
    session_file: Option<PathBuf>,
    /// A file of agents, one a line.
    #[arg(long = "agents", value_name = "FILE")]
    agent_file: Option<PathBuf>,
    /// Why: a ticket's number, for example. It stands in the record for ever and must not name anybody.
    #[arg(long)]
    reason: Option<String>,
    /// Say how many calls in which files, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// The file of the ledger's redaction key: sessions and agents that a redaction hides are found by their hashes.
    #[arg(long, env = "LASTCALL_REDACTION_KEY", hide_env_values = true, value_name = "FILE")]
    redaction_key: Vec<PathBuf>,
    /// How to answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Arguments of `expire`.
#[derive(clap::Args)]
#[command(
    after_help = "Example: lastcall ledger expire ledger --older-than 90d && lastcall ledger gc ledger --delete\n\n\
    Whole files expire: one that holds newer calls too waits for its newest. Results have no values and stay. The latest\n\
    day for --before is today, UTC, by the ledger's clock."
)]
#[command(group(clap::ArgGroup::new("age").required(true).args(["before", "older_than"])))]
pub struct ExpireArgs {
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    dir: PathBuf,
    /// What was recorded, or happened, before this UTC day.
    #[arg(long, value_name = "DAY", value_parser = day)]
    before: Option<Day>,
    /// What is older than this many days: 90d.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    older_than: Option<i32>,
    /// Only files of this kind [both].
    #[arg(long, value_enum)]
    kind: Vec<ExpireKind>,
    /// Say which files would expire, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// What expires.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExpireKind {
    Calls,
    Dead,
}

fn day(text: &str) -> Result<Day, String> {
    Day::parse(text).ok_or_else(|| format!("`{text}` is no day; write 2026-06-01"))
}

fn days(text: &str) -> Result<i32, String> {
    let number = text.strip_suffix('d').and_then(|n| n.parse::<i32>().ok());
    number
        .filter(|n| (0..=36_500).contains(n))
        .ok_or_else(|| format!("`{text}` is no number of days; write 90d"))
}

/// Ids given one by one and in a file.
fn ids(given: &[String], file: Option<&Path>) -> anyhow::Result<BTreeSet<String>> {
    let mut ids: BTreeSet<String> = given.iter().cloned().collect();
    if let Some(path) = file {
        let text = if path == Path::new("-") {
            std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?
        } else {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?
        };
        // A byte order mark and spaces around an id come from editors and tables; no id has them.
        let text = text.trim_start_matches('\u{feff}');
        ids.extend(text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned));
    }
    Ok(ids)
}

/// Runs `erase`.
pub fn run_erase(args: &EraseArgs) -> anyhow::Result<Exit> {
    let from_stdin = [&args.call_id_file, &args.session_file, &args.agent_file];
    if from_stdin.iter().filter(|f| f.as_deref() == Some(Path::new("-"))).count() > 1 {
        bail!("standard input is read once: give the other ids as a file");
    }
    let mut selection = Selection {
        call_ids: ids(&args.call_ids, args.call_id_file.as_deref())?,
        sessions: ids(&args.sessions, args.session_file.as_deref())?,
        agents: ids(&args.agents, args.agent_file.as_deref())?,
    };
    let asked = selection.len() as u64;
    let ledger = open(&args.dir)?;
    if !selection.sessions.is_empty() || !selection.agents.is_empty() || !args.redaction_key.is_empty() {
        hide(&mut selection, args, &ledger)?;
    }
    let request = Request { selection, asked, reason: args.reason.clone(), dry_run: args.dry_run };
    let done = erase(&ledger, &request).map_err(of_ledger)?;
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&erased_json(&done, args.dry_run))?),
        Format::Text => print!("{}", erased_text(&done, args)),
    }
    Ok(Exit::Yes)
}

/// Adds the hashes that a redaction put in the place of the sessions and agents.
fn hide(selection: &mut Selection, args: &EraseArgs, ledger: &Ledger) -> anyhow::Result<()> {
    let keys: Vec<RedactionKey> = args
        .redaction_key
        .iter()
        .map(|path| redaction::read(path, &args.dir, ledger))
        .collect::<anyhow::Result<_>>()?;
    let superseded = ledger.superseded().map_err(of_ledger)?;
    let given: Vec<String> = keys.iter().map(RedactionKey::fingerprint).collect();
    let known = superseded.keys();
    if let Some(other) = given.iter().find(|key| !known.is_empty() && !known.contains(*key)) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        bail!(
            "the redaction key is {other}, and the hashes of this ledger are made with {}: with another key nothing is \
             found; give that one's file with --redaction-key",
            known.join(" and ")
        );
    }
    let asked = !selection.sessions.is_empty() || !selection.agents.is_empty();
    if let Some(missing) = known.iter().find(|key| !given.contains(key))
        && asked
        && superseded.hides_ids()
    {
        bail!(
            "a source of this ledger hides ids behind hashes, and without the key {missing} such calls cannot be found: name \
             its file with --redaction-key (repeat it where the ledger has several keys)"
        );
    }
    for ids in [&mut selection.sessions, &mut selection.agents] {
        let hidden: Vec<String> =
            ids.iter().flat_map(|id| keys.iter().map(move |key| key.of_text(id))).collect();
        ids.extend(hidden);
    }
    Ok(())
}

fn erased_json(done: &Erased, dry_run: bool) -> serde_json::Value {
    let files: Vec<serde_json::Value> =
        done.files.iter().map(|f| json!({ "old": f.old, "new": f.new, "erased": f.erased })).collect();
    json!({
        "dry_run": dry_run,
        "calls": done.rows(FileKind::Calls),
        "dead": done.rows(FileKind::Dead),
        "files": files,
        "control_entries": done.entries,
        "objects_that_name_an_id": done.objects,
        "chunks": done.chunks,
        "unnamed": done.unnamed.iter().map(|(path, rows)| json!({
            "path": path,
            "rows": (*rows < u64::MAX).then_some(rows),
        })).collect::<Vec<_>>(),
        "expired_calls": done.expired,
        "call_ids_not_found": done.unknown,
    })
}

/// Ids that are listed one by one.
const SHOWN: usize = 10;

fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn erased_text(done: &Erased, args: &EraseArgs) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for file in &done.files {
        let _ = writeln!(out, "{}: {} of {} rows", file.old.path, file.erased, file.old.rows);
    }
    let rows = format!(
        "{} and {} in {}",
        counted(done.rows(FileKind::Calls), "call"),
        counted(done.rows(FileKind::Dead), "dead letter"),
        counted(done.files.len() as u64, "file")
    );
    if done.files.is_empty() {
        let _ = writeln!(out, "nothing of it is in the {} of this ledger", counted(done.chunks, "chunk"));
    } else if args.dry_run {
        let _ = writeln!(out, "{rows} would be erased; nothing was changed");
    } else {
        let entries: Vec<String> = done.entries.iter().map(u64::to_string).collect();
        let _ = writeln!(out, "{rows} are erased (control entry {})", entries.join(", "));
        let dir = args.dir.display();
        let _ = writeln!(out, "next: `lastcall ledger gc {dir} --delete` removes the files that held them");
    }
    if !done.unknown.is_empty() {
        let shown: Vec<&str> = done.unknown.iter().take(SHOWN).map(String::as_str).collect();
        let more = if done.unknown.len() > SHOWN { ", … (--format json lists all)" } else { "" };
        let _ = writeln!(
            out,
            "no call of this ledger has {}: {}{more}",
            counted(done.unknown.len() as u64, "call id"),
            lastcall_report::plain(&shown.join(", "))
        );
    }
    for object in &done.objects {
        let _ = writeln!(
            out,
            "{object} names one of the ids and stays: an entry names it by its digest (a list of planted calls, a \
             trial of an older build)"
        );
    }
    for (path, rows) in &done.unnamed {
        let holds = match *rows {
            u64::MAX => "it cannot be read".to_owned(),
            rows => format!("{} of it", counted(rows, "row")),
        };
        let _ = writeln!(
            out,
            "{path}: {holds}, and no entry names it: of a run that was stopped, or in flight. `lastcall ledger gc {} --delete` \
             removes it, with --no-recorder-runs where its run never came to an entry",
            args.dir.display()
        );
    }
    if done.expired > 0
        && done.dead > 0
        && !(args.sessions.is_empty()
            && args.agents.is_empty()
            && args.session_file.is_none()
            && args.agent_file.is_none())
    {
        let _ = writeln!(
            out,
            "{} expired, and whose they were nobody can say: a dead letter that names such a call's id and neither session \
             nor agent is not found by these. Name the call ids, or let dead letters expire too (`expire --kind dead`)",
            if done.expired == 1 { "1 call has".to_owned() } else { format!("{} calls have", done.expired) }
        );
    }
    if !args.dry_run {
        out.push_str(
            "A recorder that runs may still hold such records in an open chunk: give the same command again when its \
             chunks have closed: at the latest five minutes after their first record, when it goes on reading or ends.\n",
        );
    }
    out
}

/// Runs `expire`.
pub fn run_expire(args: &ExpireArgs) -> anyhow::Result<Exit> {
    let ledger = open(&args.dir)?;
    let before = match (args.before, args.older_than) {
        (Some(day), _) => day,
        (None, Some(days)) => match ledger.now().map_err(of_ledger)? {
            Some(now) => now.day().plus(-days),
            None => bail!("this simulated ledger has no time yet: name the day with --before"),
        },
        (None, None) => bail!("name a day with --before, or an age with --older-than"),
    };
    let kinds = match args.kind.as_slice() {
        [] => vec![FileKind::Calls, FileKind::Dead],
        some => some
            .iter()
            .map(|kind| match kind {
                ExpireKind::Calls => FileKind::Calls,
                ExpireKind::Dead => FileKind::Dead,
            })
            .collect(),
    };
    let done = expire(&ledger, &Expiry { before, kinds, dry_run: args.dry_run }).map_err(of_ledger)?;
    match args.format {
        Format::Json => {
            let kept: Vec<serde_json::Value> =
                done.kept.iter().map(|k| json!({ "file": k.file, "newest": k.newest })).collect();
            let out = json!({
                "dry_run": args.dry_run,
                "before": before,
                "calls": done.rows(FileKind::Calls),
                "dead": done.rows(FileKind::Dead),
                "files": done.files,
                "waiting": kept,
                "control_entries": done.entries,
            });
            println!("{}", serde_json::to_string_pretty(&out)?);
        }
        Format::Text => print!("{}", expired_text(&done, args, before)),
    }
    Ok(Exit::Yes)
}

fn expired_text(done: &Expired, args: &ExpireArgs, before: Day) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for file in &done.files {
        let _ = writeln!(out, "{}: {} rows", file.path, file.rows);
    }
    let rows = format!(
        "{} and {} in {}",
        counted(done.rows(FileKind::Calls), "call"),
        counted(done.rows(FileKind::Dead), "dead letter"),
        counted(done.files.len() as u64, "file")
    );
    if done.files.is_empty() {
        let _ = writeln!(out, "no file is wholly from before {before}");
    } else if args.dry_run {
        let _ = writeln!(out, "{rows} would expire; nothing was changed");
    } else {
        let entries: Vec<String> = done.entries.iter().map(u64::to_string).collect();
        let _ =
            writeln!(out, "{rows} from before {before} are expired (control entry {})", entries.join(", "));
        let _ = writeln!(out, "next: `lastcall ledger gc {} --delete` removes the files", args.dir.display());
    }
    if done.rows(FileKind::Calls) > 0 && args.kind.as_slice() == [ExpireKind::Calls] {
        out.push_str(
            "Dead letters that name one of these calls by its id alone can no longer be erased by session or agent: let them \
             expire too (`--kind dead`), or erase by call id.\n",
        );
    }
    if let Some(newest) = done.kept.iter().map(|k| k.newest).max() {
        let _ = writeln!(
            out,
            "{} with older calls wait for their newest, the last of {newest}",
            counted(done.kept.len() as u64, "file")
        );
    }
    out
}
