//! The `lastcall` command: parse, dispatch, map errors to exit codes. One file per subcommand in `cmd/`.

#[macro_use]
mod ui;
mod cmd;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// May the old version of this tool's contract be retired? Lastcall answers with evidence.
#[derive(Parser)]
#[command(name = "lastcall", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "First look:   lastcall try old-tool.json new-tool.json calls.jsonl\n\
    Whole story:  lastcall demo\n\n\
    Exit codes: 0 yes, 1 no (NOT_READY, something would be refused or changed), 2 usage or configuration,\n\
    3 insufficient or incomplete, 4 could not be computed or the record was altered, 75 a service is away.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Which of these calls would a changed definition refuse or change?
    Try(cmd::try_calls::Args),
    /// What changed between two contracts or surfaces, how bad it is, and the call that breaks.
    Diff(cmd::diff::Args),
    /// What a definition or a registry leaves unsaid or cannot mean, by rules; --fix where safe.
    Lint(cmd::lint::Args),
    /// Calls that cover a contract: every field, enum value, edge of a range, branch and null.
    Synth(cmd::synth::Args),
    /// The registry of contracts: add, freeze, list, show, correct.
    Contract(cmd::contract::Args),
    /// Which tools, cases and toolsets a change of the registry touches.
    Affected(cmd::affected::Args),
    /// The ledger: init, source, redact, verify, compact, keygen, head, export, show, files, erase, expire, gc.
    Ledger(cmd::ledger::Args),
    /// The rule: observe, register, show, plant.
    Plan(cmd::plan::Args),
    /// Read calls from a file or standard input into the ledger.
    Run(cmd::run::Args),
    /// READY, NOT_READY, INSUFFICIENT or ERROR, with the evidence.
    Decide(cmd::decide::Args),
    /// Every tool on one line, or one tool in full.
    Status(cmd::status::Args),
    /// Make calls for a pair, with a stated true rate per category.
    Simulate(cmd::simulate::Args),
    /// Three tools over fourteen simulated days, from nothing to verdicts and a report.
    Demo(cmd::demo::Args),
    /// Completions for a shell.
    #[command(after_help = "Example:\n  lastcall completions bash > lastcall.bash && source lastcall.bash")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Man pages, one file per command, into a folder.
    #[command(after_help = "Example:\n  lastcall man man1 && man ./man1/lastcall.1")]
    Man {
        /// The folder; made if it is absent.
        dir: std::path::PathBuf,
    },
}

fn main() -> ExitCode {
    ui::end_quietly_on_a_closed_pipe();
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Try(args) => cmd::try_calls::run(args),
        Command::Diff(args) => cmd::diff::run(args),
        Command::Lint(args) => cmd::lint::run(args),
        Command::Synth(args) => cmd::synth::run(args),
        Command::Contract(args) => cmd::contract::run(args),
        Command::Affected(args) => cmd::affected::run(args),
        Command::Ledger(args) => cmd::ledger::run(args),
        Command::Plan(args) => cmd::plan::run(args),
        Command::Run(args) => cmd::run::run(args),
        Command::Decide(args) => cmd::decide::run(args),
        Command::Status(args) => cmd::status::run(args),
        Command::Simulate(args) => cmd::simulate::run(args),
        Command::Demo(args) => cmd::demo::run(args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "lastcall", &mut std::io::stdout());
            Ok(ui::Exit::Yes)
        }
        Command::Man { dir } => ui::man_pages(Cli::command(), &dir),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            ui::explain(&error);
            ui::Exit::of_error(&error).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags that clash, names that repeat: clap finds them only when asked.
    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
