//! `lastcall ledger verify`: whether the record is what was written.

use std::path::PathBuf;

use lastcall_decision::{grouped, percent_of};
use lastcall_ledger::Ledger;
use lastcall_ledger::sign::{KeptHead, PublicKey};
use lastcall_ledger::verify::{Asked, Outcome, Verification, verify_opened};
use lastcall_record::recompare::{Recompared, recompare};
use lastcall_report::plain;

use super::sign::{kept_heads, public_key};
use super::{Format, of_ledger, open_broken};
use crate::ui::{Exit, with_exit};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  lastcall ledger verify ledger\n  \
    lastcall ledger verify ledger --head $(cat kept-head) --public-key head.key.pub\n  \
    lastcall ledger verify ledger --head june.json --head july.json\n\n\
    With a head that was kept elsewhere, nothing before it can have been removed or written anew unseen. Several heads\n\
    have to be of one chain. With a public key the newest head has to be signed with it; with several, with one of them.\n\
    Of an export, what was left behind cannot be checked: an untouched one ends with 3, and says that the rest is intact.\n\
    With --exported only what was exported counts, and it ends with 0.\n\
    With --recompare the comparator runs again on every call that is kept: lastcall ledger verify ledger --recompare\n\
    Exit codes: 0 intact, 1 altered or truncated, 3 incomplete, unsigned or cannot check.")]
pub struct Args {
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    dir: PathBuf,
    /// A head that was kept elsewhere: a digest, or a file with what `lastcall ledger head` or `compact` printed (text or
    /// JSON), one head a line. Repeat it for more.
    #[arg(long = "head", value_name = "DIGEST|FILE")]
    heads: Vec<String>,
    /// The public key of whoever signs the heads: a file, or the key itself. Repeat it where a key gave way to another.
    #[arg(long = "public-key", value_name = "FILE|KEY")]
    public_keys: Vec<String>,
    /// Of an export: only what was exported counts, and what was left behind is no finding.
    #[arg(long)]
    exported: bool,
    /// Run the comparator again on every call that is kept, hold what it says against what is recorded, and say how much of
    /// the record that covers.
    #[arg(long)]
    recompare: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    // Not while the arguments are read: what is refused there is repeated, and it may be a private key.
    let keys: Vec<PublicKey> = args
        .public_keys
        .iter()
        .map(|key| public_key(key).map_err(|what| with_exit(Exit::Usage, format!("--public-key: {what}"))))
        .collect::<anyhow::Result<_>>()?;
    let heads: Vec<Vec<KeptHead>> = args
        .heads
        .iter()
        .map(|head| kept_heads(head).map_err(|what| with_exit(Exit::Usage, format!("--head: {what}"))))
        .collect::<anyhow::Result<_>>()?;
    let heads = heads.concat();
    let opened = open_broken(&args.dir)?;
    let ledger = &opened.ledger;
    if args.exported && ledger.export().is_none() {
        let what =
            format!("{} is no export, but a ledger itself: verify it without --exported", ledger.place());
        return Err(with_exit(Exit::Usage, what));
    }
    for head in &heads {
        let check = |id: &str| head.check(id, &keys);
        // `ledger.json` may be what was altered: then that is what is found.
        check(&ledger.meta().id)
            .or_else(|what| opened.genesis.as_deref().map_or(Err(what), check))
            .map_err(|what| with_exit(Exit::Usage, what))?;
    }
    let asked = Asked { heads, keys, exported: args.exported };
    let ledger = ledger.clone();
    let bar = super::super::run::progress::counted();
    let report = verify_opened(opened, &asked, &mut |step| bar.step(step.done, step.total, step.path));
    bar.clear();
    let report = report.map_err(of_ledger)?;
    let again = args.recompare.then(|| recompared(&ledger)).transpose()?;
    match args.format {
        Format::Json => {
            let mut shown = serde_json::to_value(&report)?;
            if let (Some(again), Some(fields)) = (&again, shown.as_object_mut()) {
                fields.insert("recompared".to_owned(), serde_json::to_value(again)?);
            }
            println!("{}", serde_json::to_string_pretty(&shown)?);
        }
        Format::Text => {
            print!("{}", text(&report));
            again.iter().for_each(|again| print!("{}", again_text(again)));
        }
    }
    if again.is_some_and(|again| !again.holds()) {
        return Ok(Exit::No);
    }
    Ok(match report.outcome {
        Outcome::Intact => Exit::Yes,
        Outcome::Altered | Outcome::Truncated => Exit::No,
        Outcome::Incomplete | Outcome::Unsigned | Outcome::CannotCheck => Exit::Insufficient,
    })
}

fn recompared(ledger: &Ledger) -> anyhow::Result<Recompared> {
    let bar = super::super::run::progress::counted();
    let again = recompare(ledger, &mut |done, total| bar.step(done, total, "comparing again"));
    bar.clear();
    again.map_err(of_ledger)
}

fn again_text(again: &Recompared) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for d in &again.differences {
        let (chain, candidate) = (plain(&d.chain), plain(&d.candidate));
        let _ = writeln!(out, "compared again: {chain}, {}, {candidate}: {}", d.position, d.what);
    }
    let told = again.differences.len() as u64;
    if again.different + again.absent > told {
        let _ = writeln!(out, "compared again: {} more differ", again.different + again.absent - told);
    }
    let compared = again.same + again.different;
    let _ = writeln!(
        out,
        "compared again: {} of {} results ({}): {} the same, {} not, {} that are not recorded",
        grouped(compared),
        grouped(again.results),
        percent_of(compared, again.results),
        grouped(again.same),
        grouped(again.different),
        grouped(again.absent),
    );
    for (reason, count) in &again.not_compared {
        let _ = writeln!(out, "  not compared again: {}, {reason}", grouped(*count));
    }
    out
}

fn text(report: &Verification) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for finding in &report.findings {
        let record = finding.record.as_ref().map(|r| format!(" ({})", plain(r))).unwrap_or_default();
        let (place, what) = (plain(&finding.place), plain(&finding.what));
        let _ = writeln!(out, "{}: {place}{record}: {what}", finding.outcome.as_str());
    }
    for chain in &report.chains {
        let tail = chain.tail.as_ref().map(|d| format!(", tail {d}")).unwrap_or_default();
        let grew = if chain.grew { "; it has grown since, and that was not looked at" } else { "" };
        let _ = writeln!(out, "chain {}: {} entries{tail}{grew}", plain(&chain.chain), chain.entries);
    }
    let gone = if report.gone.is_empty() { String::new() } else { format!(", {}", report.gone) };
    let signatures = match report.signatures {
        0 => String::new(),
        1 => ", 1 signature".to_owned(),
        n => format!(", {n} signatures"),
    };
    let _ = writeln!(
        out,
        "{}{gone}: {} entries, {} objects, {} files, {} rows, {} bytes{signatures} checked",
        report.outcome.as_str(),
        report.entries,
        report.objects,
        report.files,
        report.rows,
        report.bytes
    );
    if let Some(export) = &report.export {
        let calls = match (export.with_arguments, export.calls_gone) {
            (false, _) => String::new(),
            (true, 0) => format!(", with {} calls, each proven by its commitment", export.calls),
            (true, gone) => {
                let unsaid = match export.calls_unsaid {
                    0 => String::new(),
                    unsaid => format!(
                        " (of which tool, an erasure by an older build does not say: up to {unsaid} may have been taken out of \
                         this export instead, which the ledger that it came from can tell)"
                    ),
                };
                format!(
                    ", with {} calls, each proven by its commitment; {gone} more were erased or expired{unsaid}",
                    export.calls
                )
            }
        };
        let _ = match export.intact {
            true => writeln!(
                out,
                "An export of `{}` as of index entry {}{calls}: everything that was exported is intact. What was left behind \
                 can be checked in the ledger that it came from.",
                plain(&export.tool),
                export.index
            ),
            false => {
                writeln!(
                    out,
                    "An export of `{}`: it is not as it was exported; see above.",
                    plain(&export.tool)
                )
            }
        };
    }
    if let Some(ahead) = &report.ahead {
        let _ = writeln!(out, "{}", plain(&ahead.to_string()));
    }
    let _ = writeln!(out, "{}", report.not_excluded);
    out
}
