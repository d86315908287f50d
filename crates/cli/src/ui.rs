//! What every subcommand shares: exit codes, error text, man pages. JSON goes to stdout, messages to stderr.

use std::process::ExitCode;

/// The forms in which findings are answered.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Text,
    Json,
    Markdown,
    Sarif,
    Junit,
    Github,
}

/// The exit codes of the command line: an interface, tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: yes, clean, READY, intact.
    Yes,
    /// 1: no: NOT_READY, altered, something would be refused or changed.
    No,
    /// 2: usage or configuration.
    Usage,
    /// 3: INSUFFICIENT, incomplete, cannot check.
    Insufficient,
    /// 4: ERROR: could not be computed, or the record was altered.
    Error,
    /// 75: a service could not be reached, or did not get well in time.
    Away,
}

impl Exit {
    /// An error that reached `main`: what its source asked for with [`with_exit`], else 2 (could not run).
    pub fn of_error(error: &anyhow::Error) -> Self {
        use lastcall_ledger::LedgerError;
        use lastcall_ledger::store::StoreError;
        if let Some(failed) = error.chain().find_map(|e| e.downcast_ref::<Failed>()) {
            return failed.exit;
        }
        match error.chain().find_map(|e| e.downcast_ref::<LedgerError>()) {
            Some(error) if error.is_of_record() => Self::Error,
            Some(LedgerError::LeftBehind { .. }) => Self::Insufficient,
            Some(LedgerError::Store(StoreError::Away { .. } | StoreError::Ambiguous { .. })) => Self::Away,
            _ => Self::Usage,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Yes => 0u8,
            Exit::No => 1,
            Exit::Usage => 2,
            Exit::Insufficient => 3,
            Exit::Error => 4,
            Exit::Away => 75,
        })
    }
}

/// An error with an exit code of its own.
#[derive(Debug)]
pub struct Failed {
    exit: Exit,
    message: String,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failed {}

/// An error that ends the command with this exit code.
pub fn with_exit(exit: Exit, message: impl Into<String>) -> anyhow::Error {
    Failed { exit, message: message.into() }.into()
}

/// `eprintln!` for text that may carry names from outside: see [`tell`].
macro_rules! tell {
    ($($words:tt)*) => {
        $crate::ui::tell(&format!($($words)*))
    };
}

/// Writes to stderr what no name in it can turn into an escape code, or into a line that a CI service takes for a command:
/// [`lastcall_report::plain`], and a bar before each further line.
pub fn tell(text: &str) {
    let lines: Vec<String> = text.lines().map(lastcall_report::plain).collect();
    eprintln!("{}", lines.join("\n  | "));
}

/// Prints an error and its causes to stderr.
pub fn explain(error: &anyhow::Error) {
    tell!("error: {error}");
    for cause in error.chain().skip(1) {
        tell!("  because: {cause}");
    }
}

/// What is wrong with a document, with the flag by which one of its tools is named.
pub fn with_tool_flag(mut error: lastcall_contract::DefinitionError) -> lastcall_contract::DefinitionError {
    if error.kind == lastcall_contract::DefinitionErrorKind::SeveralTools {
        error.next = "Name one with `--tool NAME`".to_owned();
    }
    error
}

/// A number with its noun.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Writes one man page per command.
pub fn man_pages(command: clap::Command, dir: &std::path::Path) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(command, dir)?;
    println!("{}", dir.display());
    Ok(Exit::Yes)
}

/// GitHub takes at most this much from one step; beyond it, it takes nothing.
const STEP_SUMMARY_BYTES: u64 = 1024 * 1024;

/// Appends to the summary of a GitHub Actions step, cut to what GitHub takes. Nothing where the command runs elsewhere.
///
/// # Errors
/// The file that `GITHUB_STEP_SUMMARY` names cannot be written.
pub fn append_step_summary(markdown: &str) -> anyhow::Result<()> {
    use std::io::Write as _;

    use anyhow::Context as _;
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = std::path::PathBuf::from(path);
    let failed = || format!("GITHUB_STEP_SUMMARY: cannot write {}", path.display());
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path).with_context(failed)?;
    let there = file.metadata().with_context(failed)?.len();
    let room = usize::try_from(STEP_SUMMARY_BYTES.saturating_sub(there)).unwrap_or(0);
    let text = lastcall_report::findings::within(markdown, room);
    file.write_all(text.as_bytes()).with_context(failed)
}

/// Colour: on a terminal, and not where `NO_COLOR` is set.
pub fn style() -> lastcall_report::Style {
    use std::io::IsTerminal as _;
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    lastcall_report::Style { color: wanted && std::io::stdout().is_terminal() }
}

/// `lastcall … | head`: the reader is gone, nobody is to be told. The standard library's print macros panic then; this
/// ends the process as a signal would, with 128 + SIGPIPE. A full disk behind standard output is an error of its own.
pub fn end_quietly_on_a_closed_pipe() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>().map_or("", String::as_str);
        let printing =
            text.starts_with("failed printing to stdout") || text.contains("failed to write completion file");
        if printing && text.contains("Broken pipe") {
            std::process::exit(141);
        }
        if printing {
            let why = text.rsplit(": ").next().unwrap_or_default();
            eprintln!("error: cannot write to standard output: {why}");
            std::process::exit(2);
        }
        usual(info);
    }));
}
