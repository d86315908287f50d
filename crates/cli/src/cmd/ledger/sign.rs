//! `lastcall ledger keygen` and `head`: keys, signatures, and heads that are kept elsewhere.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lastcall_contract::Digest;
use lastcall_ledger::sign::{KeptHead, PublicKey, SigningKey, sign_head, signature_of};

use super::{Format, of_ledger, open};
use crate::ui::Exit;

/// Arguments of `head`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  lastcall ledger head ledger > kept-head\n  \
    lastcall ledger head ledger --key head.key --format json > kept-head.json\n\n\
    Keep it where the ledger's owners cannot write, and give it to `lastcall ledger verify ledger --head kept-head.json`.\n\
    Exit codes: 0 printed, 3 the ledger has no index yet (`lastcall ledger compact` writes one).")]
pub struct HeadArgs {
    /// The ledger: a folder, or s3://BUCKET/PREFIX.
    dir: PathBuf,
    /// Sign it with this key first; signing again changes nothing.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// How to answer: the digest alone, or with number, time, ledger and signature.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Prints the head alone, so that it can be kept elsewhere.
pub fn head(args: &HeadArgs) -> anyhow::Result<Exit> {
    let key = args.key.as_deref().map(|key| signing_key(key, &args.dir)).transpose()?;
    let ledger = open(&args.dir)?;
    let signed = key.map(|key| sign_head(&ledger, &key)).transpose().map_err(of_ledger)?;
    let head = match signed {
        Some(signed) => signed.map(|(head, signature)| (head, Some(signature))),
        None => match ledger.head().map_err(of_ledger)? {
            Some(head) => {
                let signature = match args.format {
                    Format::Json => signature_of(&ledger, head.entry.seq).map_err(of_ledger)?,
                    Format::Text => None,
                };
                Some((head, signature))
            }
            None => None,
        },
    };
    let Some((head, signature)) = head else {
        tell!(
            "the ledger has no index yet, so it has no head; `lastcall ledger compact {}` writes one",
            args.dir.display()
        );
        return Ok(Exit::Insufficient);
    };
    match args.format {
        Format::Text => println!("{}", head.digest),
        Format::Json => {
            let kept = KeptHead {
                head: head.digest,
                seq: Some(head.entry.seq),
                at: Some(head.entry.at.to_string()),
                ledger: Some(ledger.meta().id.clone()),
                signature,
            };
            println!("{}", serde_json::to_string(&kept)?);
        }
    }
    Ok(Exit::Yes)
}

/// Makes a key: the private half in a file that only its owner can read, the public half beside it.
pub fn keygen(path: &Path) -> anyhow::Result<Exit> {
    let public_path = PathBuf::from(format!("{}.pub", path.display()));
    if public_path.exists() {
        bail!("{} stands there already; nothing was written, choose another name", public_path.display());
    }
    let (key, secret) = SigningKey::generate().map_err(of_ledger)?;
    write_new(path, secret.as_bytes(), true)?;
    write_new(&public_path, format!("{}\n", key.public()).as_bytes(), false)?;
    println!("{}: a new private key; keep it where nobody else can read it", path.display());
    println!("{}: {}", public_path.display(), key.public());
    println!("fingerprint: {}", key.public().fingerprint());
    Ok(Exit::Yes)
}

/// Writes a file that does not stand there yet.
fn write_new(path: &Path, bytes: &[u8], secret: bool) -> anyhow::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if secret { 0o600 } else { 0o644 });
    let mut file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            bail!(
                "{} stands there already, and a key is never written over; choose another name",
                path.display()
            )
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
    };
    file.write_all(bytes).with_context(|| format!("cannot write {}", path.display()))?;
    file.sync_all().with_context(|| format!("cannot write {}", path.display()))
}

/// Reads a key to sign with. Refused: one that others can read, and one that lies in the ledger.
pub fn signing_key(path: &Path, ledger: &Path) -> anyhow::Result<SigningKey> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("cannot read the key {shown}; `lastcall ledger keygen {shown}` makes one")
    })?;
    let key = SigningKey::parse(&text).map_err(|what| anyhow::anyhow!("{shown}: {what}"))?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path)?);
        if mode & 0o077 != 0 {
            bail!(
                "{shown}: others than its owner can use this key (mode {:o}); `chmod 600 {shown}`, or make a new one if \
                 somebody may have read it",
                mode & 0o777
            );
        }
    }
    if let (Ok(key), Ok(ledger)) = (path.canonicalize(), ledger.canonicalize())
        && key.starts_with(ledger)
    {
        bail!("the key {shown} lies in the ledger: whoever writes the one could sign it; keep it elsewhere");
    }
    Ok(key)
}

/// A public key as an argument: a file, or the key itself.
pub fn public_key(text: &str) -> Result<PublicKey, String> {
    if let Ok(key) = PublicKey::parse(text) {
        return Ok(key);
    }
    match std::fs::read_to_string(text) {
        Ok(read) => PublicKey::parse(&read),
        Err(_) => Err("it is neither a public key nor a file that can be read".to_owned()),
    }
}

/// A head as an argument: a digest, or a file with what `lastcall ledger head` printed.
pub fn kept_head(text: &str) -> Result<KeptHead, String> {
    let digest = |text: &str| {
        let head = Digest::parse(text.trim())?;
        Some(KeptHead { head, seq: None, at: None, ledger: None, signature: None })
    };
    if let Some(head) = digest(text) {
        return Ok(head);
    }
    let what =
        "a head is `sha256:` and 64 hex digits, or a file with what `lastcall ledger head DIR` printed";
    let read = std::fs::read_to_string(text).map_err(|_| what.to_owned())?;
    match digest(&read) {
        Some(head) => Ok(head),
        None => serde_json::from_str(&read).map_err(|error| format!("{what}; this file is neither: {error}")),
    }
}
