//! Paths inside a ledger. Every name that comes from data is percent-encoded. Nothing that
//! counts is found by listing: names are listed to find what is missing.

use lastcall_contract::Digest;
use lastcall_event::Day;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::LedgerError;
use crate::position::Partition;

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// Leaves room for partition, sequence number, nonce and suffix in a file name of 255 bytes.
const MAX_ENCODED: usize = 180;

/// The immutable description of the ledger.
pub const META: &str = "ledger.json";

/// The folder of all chains.
pub(crate) const CHAINS: &str = "chains";

/// A chain of entries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Chain {
    /// Sources, pairs, registrations, plants, verdicts.
    Control,
    /// Summaries of all of it; the newest names every chain's tail, and its digest is the ledger's head.
    Index,
    /// What was recorded of one partition of one source.
    Partition {
        /// The source's name.
        source: String,
        /// The partition.
        partition: Partition,
    },
}

impl Chain {
    /// The chain of one partition.
    pub fn partition(source: &str, partition: Partition) -> Self {
        Self::Partition { source: source.to_owned(), partition }
    }

    /// Reads a chain's name, as it stands in verdicts; `None`: no chain has that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "control" => Some(Self::Control),
            "index" => Some(Self::Index),
            _ => {
                let (source, partition) = name.rsplit_once('/')?;
                Some(Self::partition(source, Partition(partition.parse().ok()?)))
            }
        }
    }

    /// The chain of a folder below that of all chains, by its two parts; `None`: no chain has that folder.
    pub(crate) fn of_folder(source: &str, partition: &str) -> Option<Self> {
        let name = percent_decode_str(source).decode_utf8().ok()?;
        let chain = Self::partition(&name, Partition(partition.parse().ok()?));
        (chain.folder() == format!("{CHAINS}/{source}/{partition}")).then_some(chain)
    }

    /// The folder of its entries.
    pub fn folder(&self) -> String {
        match self {
            Self::Control => format!("{CHAINS}/control"),
            Self::Index => format!("{CHAINS}/index"),
            Self::Partition { source, partition } => format!("{CHAINS}/{}/{}", encode(source), partition.0),
        }
    }

    /// The name of one entry in it.
    pub(crate) fn entry_name(&self, seq: u64) -> String {
        format!("{seq:020}.json")
    }

    /// The path of one entry.
    pub fn entry_path(&self, seq: u64) -> String {
        format!("{}/{}", self.folder(), self.entry_name(seq))
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Control => f.write_str("control"),
            Self::Index => f.write_str("index"),
            Self::Partition { source, partition } => write!(f, "{source}/{}", partition.0),
        }
    }
}

/// The path of the signature of an index entry.
pub fn signature_path(seq: u64) -> String {
    format!("chains/index/{seq:020}.sig")
}

/// The name of a source as part of a path.
pub fn encode(name: &str) -> String {
    let text = utf8_percent_encode(name, KEPT).to_string();
    match text.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => text,
    }
}

/// Refuses names that cannot name a source: empty, too long, or the name of another chain.
pub fn check_source_name(name: &str) -> Result<(), LedgerError> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name == "control" || name == "index" {
        "the ledger has a chain of that name"
    } else if encode(name).len() > MAX_ENCODED {
        "it is longer than 180 bytes after percent-encoding"
    } else if name.chars().any(odd) {
        "it has control characters, which would change what is shown around it"
    } else if name.contains('*') {
        "`*` stands for any rest where a registration names sources"
    } else {
        return Ok(());
    };
    let shown: String =
        name.chars().map(|c| if odd(c) { c.escape_default().to_string() } else { c.to_string() }).collect();
    Err(LedgerError::Refused(format!("`{shown}` cannot name a source: {why}; choose another name")))
}

/// A character that moves the cursor, starts a line, or turns text around.
fn odd(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The path of an object.
pub fn object_path(digest: &Digest) -> String {
    format!("objects/{}", digest.hex())
}

/// The path of a data file: kind, chain, sequence number and a nonce, so that no two writers share one.
pub fn data_path(folder: &str, source: &str, partition: Partition, seq: u64, nonce: &str) -> String {
    format!("{folder}/{}-{}-{seq:020}-{nonce}.parquet", encode(source), partition.0)
}

/// The path of a data file that a control entry names: one that stands in the place of another.
pub fn replaced_path(folder: &str, seq: u64, nonce: &str) -> String {
    format!("{folder}/control-{seq:020}-{nonce}.parquet")
}

/// Which entry a data file belongs to, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    /// The name of the source as it stands in paths, and the partition; `None`: the control chain.
    pub chain: Option<(&'a str, Partition)>,
    /// Sequence number of the entry.
    pub seq: u64,
}

/// Reads the name of a data file, from the right; `None`: it is no such name.
pub fn parse_data_path(path: &str) -> Option<Named<'_>> {
    let name = path.rsplit_once('/')?.1.strip_suffix(".parquet")?;
    let (rest, nonce) = name.rsplit_once('-')?;
    let (rest, seq) = rest.rsplit_once('-')?;
    let seq = parse_seq(seq).filter(|_| is_nonce(nonce))?;
    if rest == "control" {
        return Some(Named { chain: None, seq });
    }
    let (source, partition) = rest.rsplit_once('-')?;
    Some(Named { chain: Some((source, Partition(partition.parse().ok()?))), seq })
}

/// The path of a file of compacted results: one tool under one epoch on one day, and the index entry that names it.
pub fn day_path(day: Day, tool: &str, epoch: &Digest, seq: u64, nonce: &str) -> String {
    format!("days/{day}/{}/{}/{seq:020}-{nonce}.parquet", short(tool), epoch.hex())
}

/// The index entry that a file of compacted results belongs to, by its name; `None`: it is no such name.
pub fn parse_day_path(path: &str) -> Option<u64> {
    let parts: Vec<&str> = path.split('/').collect();
    let ["days", day, _, epoch, name] = parts.as_slice() else { return None };
    let (seq, nonce) = name.strip_suffix(".parquet")?.split_once('-')?;
    let known = Day::parse(day).is_some() && epoch.len() == 64 && is_hex(epoch) && is_nonce(nonce);
    if known { parse_seq(seq) } else { None }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_nonce(text: &str) -> bool {
    text.len() == 16 && is_hex(text)
}

/// The number of an entry, from its name in its chain's folder; `None`: it is no entry.
pub(crate) fn parse_entry_name(name: &str) -> Option<u64> {
    parse_seq(name.strip_suffix(".json")?)
}

fn parse_seq(text: &str) -> Option<u64> {
    (text.len() == 20 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

/// A name of any length as one part of a path: long ones are cut and told apart by their digest.
fn short(name: &str) -> String {
    let encoded = encode(name);
    if encoded.len() <= MAX_ENCODED {
        return encoded;
    }
    let start: String = encoded.chars().take(MAX_ENCODED - 70).collect();
    format!("{start}~{}", Digest::of(name.as_bytes()).hex())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_data_file_says_which_entry_names_it() {
        let nonce = "0123456789abcdef";
        for source in ["calls.jsonl", "control-0", "a-1-00000000000000000007", "é/-"] {
            let path = data_path("calls", source, Partition(12), 7, nonce);
            let named = parse_data_path(&path).unwrap();
            assert_eq!(named, Named { chain: Some((&encode(source), Partition(12))), seq: 7 });
        }
        let path = replaced_path("dead", 41, nonce);
        assert_eq!(parse_data_path(&path), Some(Named { chain: None, seq: 41 }));
        for odd in
            ["calls/x.parquet", "calls/control-1-0123456789abcdef.parquet", "calls/a-b-7-8.parquet", "x"]
        {
            assert_eq!(parse_data_path(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_name_of_a_day_file_says_which_index_entry_names_it() {
        let nonce = "0123456789abcdef";
        for tool in ["search", "a/b-7", "days"] {
            let path = day_path(Day(20_605), tool, &Digest::of(b"e"), 41, nonce);
            assert_eq!(parse_day_path(&path), Some(41), "{path}");
            assert_eq!(parse_day_path(&path.replace("days/", "calls/")), None);
            assert_eq!(parse_day_path(&path.replace("2026", "2o26")), None);
            assert_eq!(parse_day_path(&path.replace(nonce, "x")), None);
            assert_eq!(parse_day_path(&path.replace(".parquet", ".parquet#1")), None);
        }
    }

    #[test]
    fn no_name_leaves_its_folder() {
        for name in ["..", ".", "../x", "a/b", "a\\b", "é", "a b", "x\0y", ".hidden"] {
            let encoded = encode(name);
            assert!(!encoded.starts_with('.') && !encoded.contains('/'), "{name} {encoded}");
            assert!(encoded.bytes().all(|b| b.is_ascii_graphic() && b != b'\\'), "{name} {encoded}");
        }
        let long = day_path(Day(20_605), &"é/".repeat(400), &Digest::of(b"e"), 7, "00ff");
        assert!(long.split('/').all(|part| part.len() <= 255) && long.split('/').count() == 5, "{long}");
        assert!(check_source_name("control").is_err());
        assert!(check_source_name("index").is_err());
        assert!(check_source_name("").is_err());
        assert!(check_source_name(&"é".repeat(100)).is_err());
        assert!(check_source_name("orders.jsonl").is_ok());
    }
}
