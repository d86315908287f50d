//! `lastcall affected --since REF`: what a change of the registry touches. Reads git, never writes to it.

use std::io::{BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use lastcall_contract::registry::{Affected, AffectedTool, affected};
use lastcall_contract::{MAX_DOCUMENT_BYTES, RegistryFiles};
use serde_json::json;

use super::contract::read_every_file;
use crate::ui::Exit;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    lastcall affected --since main\n  \
    lastcall affected --since HEAD~1 --format json | jq -r '.tools[].cases[].path'\n  \
    lastcall affected --since ../last-release/agent-tools --registry agent-tools\n\n\
    The registry as it stands, uncommitted files too, is held against the commit or folder that --since names.\n\n\
    Exit codes: 0 answered, whether something is touched or not, 2 could not run.")]
pub struct Args {
    /// The state before the change: a commit, branch or tag, or the folder of another copy of the registry.
    #[arg(long, value_name = "REF|DIR")]
    since: String,
    /// The registry's folder.
    #[arg(long, value_name = "DIR", env = "LASTCALL_REGISTRY", default_value = "agent-tools")]
    registry: PathBuf,
    /// Text for people, JSON for programs.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let new = read_every_file(&args.registry)?;
    let folder = Path::new(&args.since);
    let old = if folder.is_dir() {
        read_every_file(folder)?
    } else {
        at_commit(&args.registry, &args.since, &format!("--since {}", args.since))?
    };
    let found = affected(&old, &new)
        .map_err(anyhow::Error::new)
        .with_context(|| format!("the registry {} does not hold together", args.registry.display()))?;
    match args.format {
        Format::Json => {
            let mut document = json!({"schema_version": 1, "since": args.since});
            if let (Some(map), Some(rest)) =
                (document.as_object_mut(), serde_json::to_value(&found)?.as_object())
            {
                map.extend(rest.clone());
            }
            print!("{}", lastcall_report::to_json(&document)?);
        }
        Format::Text => {
            print!("{}", text(&found, &args.since, crate::ui::style()));
            for note in &found.notes {
                tell!("note: {note}");
            }
        }
    }
    Ok(Exit::Yes)
}

fn text(found: &Affected, since: &str, style: lastcall_report::Style) -> String {
    let plain = lastcall_report::plain;
    let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let cases: usize = found.tools.iter().map(|tool| tool.cases.len()).sum();
    if found.tools.is_empty() && found.toolsets.is_empty() && found.other.is_empty() {
        return format!("Nothing in the registry changed since {}.\n", plain(since));
    }
    let mut out = format!(
        "{} touched since {}: {}, {}.\n",
        count(found.tools.len(), "tool"),
        plain(since),
        count(cases, "case"),
        count(found.toolsets.len(), "toolset")
    );
    for tool in &found.tools {
        out.push_str(&format!("\n{}  {}\n", style.bold(&plain(&tool.tool_id)), headline(tool)));
        let mut line = |word: &str, what: String| {
            if !what.is_empty() {
                out.push_str(&format!("  {word:<10} {}\n", plain(&what)));
            }
        };
        let signed =
            |sign: char, ids: &[String]| ids.iter().map(|id| format!("{sign} {id}")).collect::<Vec<_>>();
        let contracts = [
            signed('+', &tool.contracts_added),
            signed('~', &tool.contracts_changed),
            signed('-', &tool.contracts_removed),
        ];
        line("contracts", contracts.concat().join(", "));
        if let (Some(old), Some(new)) = &tool.latest
            && old != new
        {
            line("see", format!("lastcall diff {old} {new}"));
        }
        line("toolsets", tool.toolsets.join(", "));
        line("agents", tool.consumers.join(", "));
        line("owner", tool.owner.clone().unwrap_or_default());
        for case in &tool.cases {
            let change = case.change.map(|c| format!(" ({})", c.as_str())).unwrap_or_default();
            line("case", format!("{}{change}", case.path));
        }
        for file in tool.files.iter().filter(|f| !tool.cases.iter().any(|case| case.path == f.path)) {
            line("file", format!("{} ({})", file.path, file.change.as_str()));
        }
    }
    if !found.toolsets.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Toolsets")));
    }
    for set in &found.toolsets {
        let change = set.change.map(|c| format!(" ({})", c.as_str())).unwrap_or_default();
        let broken = match set.broken_pins.as_slice() {
            [] => String::new(),
            pins => format!("; changed or gone: {}", pins.join(", ")),
        };
        let pins = if set.pins.is_empty() { String::new() } else { format!(" pins {}", set.pins.join(", ")) };
        out.push_str(&format!("  {}\n", plain(&format!("{}{change}{pins}{broken}", set.toolset_id))));
    }
    for file in &found.other {
        out.push_str(&format!("\nof no tool: {} ({})\n", plain(&file.path), file.change.as_str()));
    }
    out
}

fn headline(tool: &AffectedTool) -> String {
    let beside = if tool.promise { "" } else { ", but not what it promises" };
    format!("{}{beside}", tool.change.as_str())
}

/// The registry's files as a commit has them; none when the folder was not there yet. `given` is what the user wrote.
pub fn at_commit(dir: &Path, reference: &str, given: &str) -> anyhow::Result<RegistryFiles> {
    if reference.is_empty() || reference.starts_with('-') {
        bail!("{given}: no commit and no folder");
    }
    let commit = format!("{reference}^{{commit}}");
    if git(dir, &["rev-parse", "--git-dir"]).is_err() {
        bail!(
            "{given}: no such folder, and {} is in no git repository. \
             Name a folder with another copy of the registry",
            dir.display()
        );
    }
    let Ok(commit) = git(dir, &["rev-parse", "--verify", "--quiet", &commit]) else {
        bail!(
            "{given}: no such folder, and git knows no commit of that name. \
             In CI fetch it first: git fetch origin {reference}"
        );
    };
    let commit = String::from_utf8_lossy(&commit).trim().to_owned();
    let listing = git(dir, &["ls-tree", "-r", "-z", &commit])?;
    let mut wanted: Vec<(String, String)> = Vec::new();
    for entry in listing.split(|b| *b == 0) {
        let Ok(entry) = std::str::from_utf8(entry) else { continue };
        let Some((about, path)) = entry.split_once('\t') else { continue };
        let mut words = about.split(' ');
        let (mode, kind, object) = (words.next(), words.next(), words.next());
        let file = mode.is_some_and(|mode| mode.starts_with("100")) && kind == Some("blob");
        if let (true, Some(object), true) = (file, object, super::contract::is_registry_text(path)) {
            wanted.push((path.to_owned(), object.to_owned()));
        }
    }
    blobs(dir, wanted)
}

/// The texts of these objects. What was not UTF-8 then is left out: it counts as added.
fn blobs(dir: &Path, wanted: Vec<(String, String)>) -> anyhow::Result<RegistryFiles> {
    let mut child = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("git cannot be started")?;
    let (Some(mut ask), Some(answer)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("git cat-file: no pipes");
    };
    let objects: Vec<String> = wanted.iter().map(|(_, object)| object.clone()).collect();
    // a thread of its own: both pipes may be full
    let asking = std::thread::spawn(move || objects.iter().try_for_each(|object| writeln!(ask, "{object}")));
    let mut answer = std::io::BufReader::new(answer);
    let mut files = RegistryFiles::new();
    for (path, object) in wanted {
        let mut head = String::new();
        answer.read_line(&mut head).context("git cat-file: no answer")?;
        let size: usize =
            head.trim_end().rsplit(' ').next().and_then(|size| size.parse().ok()).with_context(|| {
                format!("git cat-file: {path} ({object}) cannot be read: {}", head.trim_end())
            })?;
        if size > MAX_DOCUMENT_BYTES {
            bail!("{path}: {size} bytes, more than {MAX_DOCUMENT_BYTES}; split the file");
        }
        let mut bytes = vec![0; size + 1];
        answer.read_exact(&mut bytes).context("git cat-file: the answer ends early")?;
        bytes.pop();
        if let Ok(text) = String::from_utf8(bytes) {
            files.insert(path, text);
        }
    }
    drop(asking.join());
    child.wait().context("git cat-file")?;
    Ok(files)
}

/// What git answers; its own words where it fails.
fn git(dir: &Path, words: &[&str]) -> anyhow::Result<Vec<u8>> {
    let done = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .context("git cannot be started; without it give --since a folder")?;
    if !done.status.success() {
        bail!("git {}: {}", words.join(" "), String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(done.stdout)
}
