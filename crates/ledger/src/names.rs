//! Paths inside a ledger. Every name that comes from data is percent-encoded; nothing is found by listing.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::LedgerError;
use crate::position::Partition;

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// Leaves room for partition, sequence number, nonce and suffix in a file name of 255 bytes.
const MAX_ENCODED: usize = 180;

/// The immutable description of the ledger.
pub const META: &str = "ledger.json";

/// A chain of entries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Chain {
    /// Sources, pairs, registrations, plants, verdicts.
    Control,
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

    /// The path of one entry.
    pub fn entry_path(&self, seq: u64) -> String {
        match self {
            Self::Control => format!("chains/control/{seq:020}.json"),
            Self::Partition { source, partition } => {
                format!("chains/{}/{}/{seq:020}.json", encode(source), partition.0)
            }
        }
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Control => f.write_str("control"),
            Self::Partition { source, partition } => write!(f, "{source}/{}", partition.0),
        }
    }
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
    } else if name.contains('*') {
        "`*` stands for any rest where a registration names sources"
    } else {
        return Ok(());
    };
    Err(LedgerError::Refused(format!("`{name}` cannot name a source: {why}; choose another name")))
}

/// The path of an object.
pub fn object_path(digest: &lastcall_contract::Digest) -> String {
    format!("objects/{}", digest.hex())
}

/// The path of a data file: kind, chain, sequence number and a nonce, so that no two writers share one.
pub fn data_path(folder: &str, source: &str, partition: Partition, seq: u64, nonce: &str) -> String {
    format!("{folder}/{}-{}-{seq:020}-{nonce}.parquet", encode(source), partition.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_folder() {
        for name in ["..", ".", "../x", "a/b", "a\\b", "é", "a b", "x\0y", ".hidden"] {
            let encoded = encode(name);
            assert!(!encoded.starts_with('.') && !encoded.contains('/'), "{name} {encoded}");
            assert!(encoded.bytes().all(|b| b.is_ascii_graphic() && b != b'\\'), "{name} {encoded}");
        }
        assert!(check_source_name("control").is_err());
        assert!(check_source_name("").is_err());
        assert!(check_source_name(&"é".repeat(100)).is_err());
        assert!(check_source_name("orders.jsonl").is_ok());
    }
}
