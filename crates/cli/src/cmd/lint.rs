//! `lastcall lint`: a definition, a list of tools or a registry against the rules; `--fix` where that is safe.

mod fix;
mod gather;
mod show;

use std::path::PathBuf;

use anyhow::bail;
use lastcall_diff::lint::{Found, Profile, Rule, Severity};

use crate::ui::{Exit, Format};
use gather::Batch;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall lint tool.json\n  \
    lastcall lint tools-list.json --fail-on warning --format github\n  \
    lastcall lint agent-tools --level warning\n  \
    lastcall lint tool.json --provider openai-strict --provider gemini\n  \
    lastcall lint tool.json --fix\n  \
    lastcall lint --explain unit-unstated\n\n\
    In a registry, tool.yaml may allow a rule to be broken:\n    \
    lint:\n      allow:\n        - default-unstated: the runtime documents it\n\n\
    Exit codes: 0 no finding that counts (see --fail-on), 1 there is one, 2 could not run,\n\
    or a file could not be read and nothing that was read has a finding that counts.")]
pub struct Args {
    /// Definitions (MCP, OpenAI, Anthropic, Gemini, a JSON Schema, a list of tools), registry folders, `-` for standard
    /// input.
    #[arg(required_unless_present_any = ["rules", "explain"])]
    paths: Vec<PathBuf>,
    /// Requirements of a provider, besides those that a definition asks for itself.
    #[arg(long, value_parser = parse_profile, value_name = "openai-strict|anthropic-strict|gemini")]
    provider: Vec<Profile>,
    /// Look for these rules only (ids or names, with commas between them).
    #[arg(long, value_parser = parse_rule, value_name = "RULE", value_delimiter = ',')]
    only: Vec<&'static Rule>,
    /// Leave these rules out (ids or names, with commas between them).
    #[arg(long, value_parser = parse_rule, value_name = "RULE", value_delimiter = ',')]
    skip: Vec<&'static Rule>,
    /// Show findings from this severity on.
    #[arg(long, value_enum, default_value = "note")]
    level: Level,
    /// Which findings make the exit code 1.
    #[arg(long, value_enum, default_value = "error")]
    fail_on: Level,
    /// How to answer on standard output.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Mend what is safe to mend, in the file; never a frozen contract.
    #[arg(long)]
    fix: bool,
    /// With --fix: say what would change and write nothing.
    #[arg(long, requires = "fix")]
    dry_run: bool,
    /// Explain one rule (id or name).
    #[arg(long, value_parser = parse_rule, value_name = "RULE")]
    explain: Option<&'static Rule>,
    /// List every rule.
    #[arg(long)]
    rules: bool,
}

/// How often `--fix` looks again; each mend takes its finding away, so few are needed.
const ROUNDS: usize = 8;

/// A severity on the command line.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    Note,
    Warning,
    Error,
}

impl Level {
    fn severity(self) -> Severity {
        match self {
            Self::Note => Severity::Note,
            Self::Warning => Severity::Warning,
            Self::Error => Severity::Error,
        }
    }
}

fn parse_profile(text: &str) -> Result<Profile, String> {
    Profile::parse(text).ok_or_else(|| {
        let known: Vec<&str> = Profile::ALL.iter().map(|p| p.as_str()).collect();
        format!("known are {}", known.join(", "))
    })
}

fn parse_rule(text: &str) -> Result<&'static Rule, String> {
    Rule::find(text).ok_or_else(|| "no such rule; `lastcall lint --rules` lists them".to_owned())
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    if args.rules {
        print!("{}", show::rules());
        return Ok(Exit::Yes);
    }
    if let Some(rule) = args.explain {
        print!("{}", show::explanation(rule));
        return Ok(Exit::Yes);
    }
    let mut batch = gather(&args)?;
    if batch.subjects.is_empty() && batch.unread.len() == args.paths.len() {
        // nothing at all was looked at: the last one ends the command, those before are told
        if let Some((_, last)) = batch.unread.pop() {
            batch.unread.iter().for_each(|(_, error)| crate::ui::explain(error));
            return Err(last);
        }
    }
    batch.unread.iter().for_each(|(_, error)| crate::ui::explain(error));
    if args.fix {
        let mut mended = fix::Mended::default();
        // what is mended may uncover what can be mended: until nothing is left
        for _ in 0..ROUNDS {
            if !fix::fix(&batch, args.dry_run, &mut mended)? {
                break;
            }
            batch = gather(&args)?;
        }
        mended.tell(args.dry_run);
    }
    show::print(&batch, &args)?;
    let counts = |f: &&Found| f.severity >= args.fail_on.severity();
    Ok(if batch.found.iter().any(|f| counts(&f)) {
        Exit::No
    } else if batch.unread.is_empty() {
        Exit::Yes
    } else {
        Exit::Usage
    })
}

fn gather(args: &Args) -> anyhow::Result<Batch> {
    if args.fix && args.paths.iter().any(|p| p.as_os_str() == "-") {
        bail!("--fix writes files, and standard input is none; give a path");
    }
    let mut batch = Batch::default();
    for path in &args.paths {
        if let Err(error) = batch.read(path, &args.provider) {
            batch.unread.push((path.display().to_string(), error));
        }
    }
    batch.found.retain(|f| {
        let named = |list: &[&'static Rule]| list.iter().any(|r| r.id == f.rule.id);
        (args.only.is_empty() || named(&args.only)) && !named(&args.skip)
    });
    Ok(batch)
}
