//! `lastcall ledger keygen` and `head`: keys, signatures, and heads that are kept elsewhere.

use std::path::{Path, PathBuf};

use anyhow::bail;
use lastcall_contract::Digest;
use lastcall_ledger::sign::{KeptHead, PublicKey, SigningKey, sign_head, signature_of};

use super::key_file::{self, write_new};
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
    let shown = path.display();
    if path.to_string_lossy().contains("://") {
        bail!(
            "{shown}: a key is a file on the machine of who signs, never in a bucket; give a path such as head.key"
        );
    }
    if let Some(ledger) = key_file::ledger_around(path) {
        bail!(
            "{shown} lies in the ledger {}: whoever writes the one could sign it; keep the key elsewhere",
            ledger.display()
        );
    }
    let mut public_path = path.as_os_str().to_owned();
    public_path.push(".pub");
    let public_path = PathBuf::from(public_path);
    if public_path.exists() {
        bail!("{} stands there already; nothing was written, choose another name", public_path.display());
    }
    let (key, secret) = SigningKey::generate().map_err(of_ledger)?;
    write_new(path, secret.as_bytes(), true)?;
    if let Err(error) = write_new(&public_path, format!("{}\n", key.public()).as_bytes(), false) {
        // Both or none: nobody has used it yet.
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    println!("{shown}: a new private key; keep it where nobody else can read it");
    println!("{}: {}", public_path.display(), key.public());
    println!("fingerprint: {}", key.public().fingerprint());
    Ok(Exit::Yes)
}

/// Reads a key to sign with. Refused: one that others can read, and one that lies in the ledger.
pub fn signing_key(path: &Path, ledger: &Path) -> anyhow::Result<SigningKey> {
    let make = "`lastcall ledger keygen FILE` makes one";
    key_file::private(path, ledger, "the signing key", make, SigningKey::parse)
}

/// A public key as an argument: a file, or the key itself.
pub fn public_key(text: &str) -> Result<PublicKey, String> {
    match PublicKey::parse(text) {
        Ok(key) => return Ok(key),
        Err(what) if key_file::is_private(text) => return Err(what),
        Err(_) => {}
    }
    match key_file::small(Path::new(text)) {
        Ok(read) => PublicKey::parse(&read),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err("it is neither a public key nor a file that can be read: there is no such file".to_owned())
        }
        Err(error) => Err(format!("it is neither a public key nor a file that can be read: {error}")),
    }
}

/// A head as an argument: a digest, or a file with what `lastcall ledger head` printed, once or line by line.
///
/// # Errors
/// It is none; what was given is not repeated, since it may be a key.
pub fn kept_heads(text: &str) -> Result<Vec<KeptHead>, String> {
    if let Some(head) = by_digest(text) {
        return Ok(vec![head]);
    }
    if key_file::is_private(text) {
        return Err("what was given as a head looks like a private key. It may stand in the shell's history and in the list \
                    of processes now: make a new one. A head is `sha256:` and 64 hex digits, or a file"
            .to_owned());
    }
    let what = "a head is `sha256:` and 64 hex digits, or a file with what `lastcall ledger head` printed";
    let read = match key_file::small(Path::new(text)) {
        Ok(read) => read,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(format!("there is no such file, and it is no digest either: {what}"));
        }
        Err(error) => return Err(format!("the file cannot be read: {error}; {what}")),
    };
    let read = read.trim_start_matches('\u{feff}').trim();
    if read.is_empty() {
        return Err(format!("the file is empty: no head was kept in it; {what}"));
    }
    // One document, which may have several lines.
    if let Ok(head) = serde_json::from_str(read) {
        return Ok(vec![head]);
    }
    let mut heads = Vec::new();
    for (n, line) in read.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match by_digest(line).or_else(|| serde_json::from_str(line).ok()) {
            Some(head) => heads.push(head),
            None => return Err(format!("line {} of the file is no head: {what}", n + 1)),
        }
    }
    Ok(heads)
}

fn by_digest(text: &str) -> Option<KeptHead> {
    let head = Digest::parse(text.trim())?;
    Some(KeptHead { head, seq: None, at: None, ledger: None, signature: None })
}
