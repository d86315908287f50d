//! Files that hold keys and heads: read with a limit, and never shown. A key that is given in the place of its file's
//! name is recognized, and not repeated in a message.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// No key, and no list of heads, is longer.
const MAX_BYTES: u64 = 64 << 10;

/// The text of a small regular file.
///
/// # Errors
/// It is something else, or longer, or cannot be read; the error has its kind, for "no such file".
pub fn small(path: &Path) -> std::io::Result<String> {
    let other = |what: String| std::io::Error::new(std::io::ErrorKind::InvalidInput, what);
    // Asked before it is opened: opening a pipe waits for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(other("it is no regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(other(format!("it is longer than {} KiB", MAX_BYTES >> 10)));
    }
    String::from_utf8(bytes).map_err(|_| other("it is no text".to_owned()))
}

/// Whether a text is, or begins with, a private key.
pub fn is_private(text: &str) -> bool {
    let text = text.trim();
    let digits = text.rsplit_once(':').map_or(text, |(_, digits)| digits);
    text.starts_with("ed25519-private")
        || digits.len() == 64 && !text.contains("public") && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The private key of a file that its owner alone can read, outside of the ledger.
///
/// # Errors
/// It is the key itself, or no such file; the text never has what was given if that is a key.
pub fn private<K>(
    path: &Path,
    ledger: &Path,
    kind: &str,
    make: &str,
    parse: impl Fn(&str) -> Result<K, String>,
) -> anyhow::Result<K> {
    if is_private(&path.to_string_lossy()) {
        bail!(
            "what was given as {kind} is the key itself, and not the name of its file. It may stand in the shell's history \
             and in the list of processes now: make a new one, and give its file"
        );
    }
    let shown = path.display();
    let text = small(path).with_context(|| match path.exists() {
        true => format!("cannot read {kind} {shown}"),
        false => format!("cannot read {kind} {shown}; {make}"),
    })?;
    let key = parse(&text).map_err(|what| anyhow::anyhow!("{shown}: {what}"))?;
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
    if let (Ok(at), Ok(ledger)) = (path.canonicalize(), ledger.canonicalize())
        && at.starts_with(ledger)
    {
        bail!(
            "{kind} {shown} lies in the ledger: whoever had the one would have the other; keep it elsewhere"
        );
    }
    Ok(key)
}

/// The ledger in which a new file would lie.
pub fn ledger_around(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find(|at| at.join("ledger.json").is_file()).map(Path::to_owned)
}

/// A new file; what stands there stays, and nothing is left of a file that could not be written.
///
/// # Errors
/// Something stands there, or it cannot be written.
pub fn write_new(path: &Path, bytes: &[u8], secret: bool) -> anyhow::Result<()> {
    use std::io::Write as _;
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
    if let Err(error) = file.write_all(bytes).and_then(|()| file.sync_all()) {
        // What we made ourselves, and is no whole key.
        let _ = std::fs::remove_file(path);
        return Err(error).with_context(|| format!("cannot write {}; nothing is left of it", path.display()));
    }
    Ok(())
}
