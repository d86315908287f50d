//! `--redact`, `--redaction`, `--redaction-key` and `lastcall ledger redact`: what of a source's records is not kept.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lastcall_event::Preset;
use lastcall_ledger::Ledger;
use lastcall_ledger::redaction::{Redacted, Redaction, RedactionRule};
use lastcall_ledger::state::ControlState;
use lastcall_record::RedactionKey;
use serde::Deserialize;

use super::{key_file, of_ledger, open};
use crate::ui::Exit;

/// How a source's redaction is named on the command line.
#[derive(Clone, clap::Args)]
pub struct RedactionArgs {
    /// Hide or leave out a value before anything is written: [TOOL:]/pointer=keep|hash|drop. `*` stands for any key or
    /// index. Repeat it for more rules.
    #[arg(long, value_name = "RULE", value_parser = RedactionRule::parse)]
    redact: Vec<RedactionRule>,
    /// The rules in a YAML file: a list `redact` of {tool, pointer, action}.
    #[arg(long, value_name = "FILE")]
    redaction: Option<PathBuf>,
    #[command(flatten)]
    key: KeyArgs,
}

/// Where the key of a ledger's redactions lies.
#[derive(Clone, clap::Args)]
pub struct KeyArgs {
    /// The file of the key that hashes are made with: one a ledger, outside of it. Made with the ledger's first rules, if
    /// it is absent.
    #[arg(long, env = "LASTCALL_REDACTION_KEY", hide_env_values = true, value_name = "FILE")]
    redaction_key: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    redact: Vec<RedactionRule>,
}

impl RedactionArgs {
    /// The redaction that the arguments name, for records of this preset; `None` without a rule. A key that is absent is
    /// made.
    pub fn redaction(
        &self,
        dir: &Path,
        ledger: &Ledger,
        preset: Preset,
    ) -> anyhow::Result<Option<Redaction>> {
        let mut rules = self.redact.clone();
        if let Some(path) = &self.redaction {
            let shown = path.display();
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
            let file: File = serde_saphyr::from_str(&text)
                .map_err(|error| anyhow::anyhow!("{shown}: {error}"))
                .with_context(|| {
                    format!("{shown} is no list of rules: redact: [{{pointer, action, tool?}}]")
                })?;
            rules.extend(file.redact);
        }
        if rules.is_empty() {
            return Ok(None);
        }
        let Some(path) = &self.key.redaction_key else {
            bail!(
                "a redaction needs a key that is kept outside the ledger: name its file with --redaction-key or \
                 LASTCALL_REDACTION_KEY (a new one is made)"
            );
        };
        let mut redaction = Redaction { rules, key: String::new() };
        redaction.check(preset)?;
        if !path.exists() && !key_file::is_private(&path.to_string_lossy()) {
            if let Some(known) = ledger.redaction_keys().map_err(of_ledger)?.first() {
                bail!(
                    "there is no key {}, and none was made: the hashes of this ledger are made with the key {known}, and a \
                     ledger has one; name that key's file with --redaction-key or LASTCALL_REDACTION_KEY",
                    path.display()
                );
            }
            outside(path.parent().unwrap_or(path), dir, path)?;
            make(path)?;
            eprintln!(
                "{}: a new key. Keep it: without it the sources cannot be recorded further",
                path.display()
            );
        }
        redaction.key = self.key(dir, ledger)?.map(|key| key.fingerprint()).unwrap_or_default();
        Ok(Some(redaction))
    }

    /// The key, if one is named.
    pub fn key(&self, dir: &Path, ledger: &Ledger) -> anyhow::Result<Option<RedactionKey>> {
        self.key.key(dir, ledger)
    }

    /// No rule is named.
    fn is_empty(&self) -> bool {
        self.redact.is_empty() && self.redaction.is_none()
    }
}

impl KeyArgs {
    /// The key, if one is named.
    pub fn key(&self, dir: &Path, ledger: &Ledger) -> anyhow::Result<Option<RedactionKey>> {
        self.redaction_key.as_deref().map(|path| read(path, dir, ledger)).transpose()
    }
}

/// Reads a key from its file.
pub fn read(path: &Path, dir: &Path, ledger: &Ledger) -> anyhow::Result<RedactionKey> {
    let make = "name the file of the key that the ledger began with";
    key_file::private(path, dir, "the redaction key", make, |text| RedactionKey::of(text, &ledger.meta().id))
}

/// Refuses a key in the ledger: whoever had the one would have the other.
fn outside(place: &Path, dir: &Path, key: &Path) -> anyhow::Result<()> {
    let place = if place == Path::new("") { Path::new(".") } else { place };
    if let (Ok(place), Ok(dir)) = (place.canonicalize(), dir.canonicalize())
        && place.starts_with(dir)
    {
        bail!(
            "the redaction key {} lies in the ledger: whoever had the one would have the other; keep it elsewhere",
            key.display()
        );
    }
    Ok(())
}

/// Writes a new key that only its owner can read.
fn make(path: &Path) -> anyhow::Result<()> {
    let secret = lastcall_ledger::random_hex(32).map_err(of_ledger)?;
    key_file::write_new(path, format!("{secret}\n").as_bytes(), true)
}

/// `lastcall ledger redact`.
pub fn redact(dir: &Path, source: &str, args: &RedactionArgs, none: bool) -> anyhow::Result<Exit> {
    let ledger = open(dir)?;
    if args.is_empty() && !none {
        return show(dir, &ledger, source);
    }
    if !args.is_empty() && none {
        bail!("--none takes every rule away; give it alone");
    }
    let control = ledger.control_now().map_err(of_ledger)?;
    let Some(info) = control.sources.get(source) else { return Err(no_source(dir, source, &control)) };
    let given = args.redaction(dir, &ledger, info.preset)?;
    let next = |stood: Option<&Redaction>| given.as_ref().and_then(|given| Redaction::with(stood, given));
    let done = ledger.redact_with(source, next).map_err(of_ledger)?;
    print!("{}", changed(source, &done));
    if done.seq.is_some() && done.after.is_some() {
        eprintln!(
            "A recorder that reads a file or a topic drops its open chunk and reads it again under these rules; one that reads standard \
             input cannot, and its open chunk keeps what it read."
        );
    }
    Ok(Exit::Yes)
}

/// The rules that hold now, each with what was before.
fn changed(source: &str, done: &Redacted) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    let rules = |redaction: &Option<Redaction>| redaction.as_ref().map_or(Vec::new(), |r| r.rules.clone());
    let (before, after) = (rules(&done.before), rules(&done.after));
    let _ = match (done.seq, &done.after) {
        (None, None) => writeln!(out, "source `{source}` is kept whole already"),
        (None, Some(now)) => writeln!(out, "source `{source}` is redacted so already, key {}:", now.key),
        (Some(seq), None) => {
            writeln!(out, "source `{source}` is kept whole from now on (control entry {seq})")
        }
        (Some(seq), Some(now)) => {
            writeln!(out, "source `{source}` is redacted from now on (control entry {seq}), key {}:", now.key)
        }
    };
    for rule in &after {
        let note = match before.iter().find(|was| was.same_place(rule)) {
            None => " (new)".to_owned(),
            Some(was) if was.action != rule.action => format!(" (was {})", was.action.as_str()),
            Some(_) => String::new(),
        };
        let _ = writeln!(out, "  {rule}{note}");
    }
    for was in before.iter().filter(|was| !after.iter().any(|rule| rule.same_place(was))) {
        let _ = writeln!(out, "taken away: {was}");
    }
    out
}

fn show(dir: &Path, ledger: &Ledger, source: &str) -> anyhow::Result<Exit> {
    let control = ledger.control_now().map_err(of_ledger)?;
    match control.redactions.get(source) {
        None if !control.sources.contains_key(source) => return Err(no_source(dir, source, &control)),
        None => println!("source `{source}` is kept whole"),
        Some(redaction) => {
            println!("source `{source}`, key {}:", redaction.key);
            redaction.rules.iter().for_each(|rule| println!("  {rule}"));
        }
    }
    Ok(Exit::Yes)
}

fn no_source(dir: &Path, source: &str, control: &ControlState) -> anyhow::Error {
    let names: Vec<&str> = control.sources.keys().take(10).map(String::as_str).collect();
    let has = match names.as_slice() {
        [] => "the ledger has none yet".to_owned(),
        names => {
            format!("it has {}{}", names.join(", "), if control.sources.len() > 10 { ", …" } else { "" })
        }
    };
    anyhow::anyhow!(
        "there is no source `{source}` in {}: {has}; `lastcall ledger source {} {source} --role ROLE --redact …` registers \
         it",
        dir.display(),
        dir.display()
    )
}
