//! `--redact`, `--redaction`, `--redaction-key` and `lastcall ledger redact`: what of a source's records is not kept.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lastcall_event::Preset;
use lastcall_ledger::Ledger;
use lastcall_ledger::redaction::{Redaction, RedactionRule};
use lastcall_record::RedactionKey;
use serde::Deserialize;

use super::{of_ledger, open};
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
    /// The file of the key that hashes are made with. It must not lie in the ledger; made if it is absent and rules are
    /// given.
    #[arg(long, env = "LASTCALL_REDACTION_KEY", value_name = "FILE")]
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
        if !path.exists() {
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
        let Some(path) = &self.redaction_key else { return Ok(None) };
        let shown = path.display();
        let secret = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the redaction key {shown}"))?;
        if let (Ok(key), Ok(dir)) = (path.canonicalize(), dir.canonicalize())
            && key.starts_with(dir)
        {
            bail!(
                "the redaction key {shown} lies in the ledger: whoever had the one would have the other; move it"
            );
        }
        let key = RedactionKey::of(&secret, &ledger.meta().id)
            .map_err(|what| anyhow::anyhow!("{shown}: {what}"))?;
        Ok(Some(key))
    }
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
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).with_context(|| format!("cannot make the key {}", path.display()))?;
    let secret = lastcall_ledger::random_hex(32).map_err(of_ledger)?;
    file.write_all(format!("{secret}\n").as_bytes())?;
    file.sync_all()?;
    Ok(())
}

/// `lastcall ledger redact`.
pub fn redact(dir: &Path, source: &str, args: &RedactionArgs, none: bool) -> anyhow::Result<Exit> {
    let ledger = open(dir)?;
    if args.is_empty() && !none {
        return show(&ledger, source);
    }
    if !args.is_empty() && none {
        bail!("--none takes every rule away; give it alone");
    }
    let control = ledger.control().map_err(of_ledger)?;
    let Some(info) = control.sources.get(source) else {
        bail!(
            "there is no source `{source}`; `lastcall ledger source {} {source} --redact …` registers it",
            dir.display()
        );
    };
    let redaction = args.redaction(dir, &ledger, info.preset)?;
    match (ledger.redact(source, redaction).map_err(of_ledger)?, none) {
        (None, _) => println!("source `{source}` is redacted so already"),
        (Some(seq), true) => println!("source `{source}` is kept whole from now on (control entry {seq})"),
        (Some(seq), false) => println!(
            "source `{source}` is redacted from now on (control entry {seq}). A recorder that reads a file drops its open chunk \
             and reads it again under these rules; one that reads standard input cannot, and its open chunk keeps what it read"
        ),
    }
    Ok(Exit::Yes)
}

fn show(ledger: &Ledger, source: &str) -> anyhow::Result<Exit> {
    let control = ledger.control().map_err(of_ledger)?;
    match control.redactions.get(source) {
        None => println!("source `{source}` is kept whole"),
        Some(redaction) => {
            println!("source `{source}`, key {}:", redaction.key);
            redaction.rules.iter().for_each(|rule| println!("  {rule}"));
        }
    }
    Ok(Exit::Yes)
}
