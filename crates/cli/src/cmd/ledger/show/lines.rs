//! Lines with hashes: one a result, and one behind each batch of them.

use std::io::{self, Write};

use lastcall_compare::Discrepancy;
use lastcall_ledger::show::Shown;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// One result, by the field names that people keep such records under.
#[derive(Serialize)]
struct Line<'a> {
    /// The first 16 bytes of SHA-256 over the call id: results hold no id.
    trace_id: String,
    tool_id: &'a str,
    current_version: &'a str,
    candidate_version: &'a str,
    ts: String,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    discrepancies: Vec<Difference<'a>>,
    /// How many rows said the same of the call.
    #[serde(skip_serializing_if = "is_one")]
    repeats: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    planted: bool,
    day: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands references
fn is_one(n: &u64) -> bool {
    *n == 1
}

#[derive(Serialize)]
struct Difference<'a> {
    field: &'a str,
    category: &'static str,
    severity: &'static str,
}

impl<'a> From<&'a Discrepancy> for Difference<'a> {
    fn from(d: &'a Discrepancy) -> Self {
        Self { field: &d.field, category: d.category.as_str(), severity: d.severity.as_str() }
    }
}

/// What stands behind a batch.
#[derive(Serialize)]
struct Batch<'a> {
    batch: u64,
    lines: u64,
    /// SHA-256 over the batch's lines as they stand, with their ends of line.
    content: String,
    /// The hash of the batch line before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<&'a str>,
    /// Nothing follows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    last: bool,
}

/// Writes lines, and a batch line behind every so many.
pub struct Lines<W> {
    out: W,
    size: u64,
    content: Sha256,
    lines: u64,
    batch: u64,
    previous: Option<String>,
}

impl<W: Write> Lines<W> {
    /// With batches of so many lines.
    pub fn new(out: W, size: u64) -> Self {
        Self { out, size: size.max(1), content: Sha256::new(), lines: 0, batch: 0, previous: None }
    }

    /// Writes a result.
    pub fn result(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        if self.lines == self.size {
            self.close(false)?;
        }
        let row = shown.row;
        let line = Line {
            trace_id: lastcall_ledger::hex(&row.call_key),
            tool_id: &row.tool_id,
            current_version: version(&row.tool_id, &row.current),
            candidate_version: version(&row.tool_id, &row.candidate),
            ts: row.ts.to_string(),
            result: row.result.as_str(),
            reason: row.reason.map(|reason| reason.as_str()),
            discrepancies: row.discrepancies.iter().map(Difference::from).collect(),
            repeats: shown.repeats,
            planted: shown.planted,
            day: row.day.to_string(),
        };
        let (text, _) = hashed(&line)?;
        self.content.update(text.as_bytes());
        self.lines += 1;
        self.out.write_all(text.as_bytes())
    }

    /// Writes the last batch line.
    pub fn end(mut self) -> io::Result<W> {
        self.close(true)?;
        Ok(self.out)
    }

    fn close(&mut self, last: bool) -> io::Result<()> {
        self.batch += 1;
        let content = named(std::mem::take(&mut self.content));
        let previous = self.previous.as_deref();
        let (text, hash) = hashed(&Batch { batch: self.batch, lines: self.lines, content, previous, last })?;
        self.previous = Some(hash);
        self.lines = 0;
        self.out.write_all(text.as_bytes())
    }
}

/// The version in a contract id of a tool.
fn version<'a>(tool: &str, contract: &'a str) -> &'a str {
    contract.strip_prefix(tool).and_then(|rest| rest.strip_prefix('@')).unwrap_or(contract)
}

fn named(sum: Sha256) -> String {
    format!("sha256:{}", lastcall_ledger::hex(&sum.finalize()))
}

/// An object as one line, with the hash of itself as its last member.
fn hashed<T: Serialize>(value: &T) -> io::Result<(String, String)> {
    let text = serde_json::to_string(value)?;
    let hash = named(Sha256::new().chain_update(text.as_bytes()));
    let open = text.strip_suffix('}').unwrap_or(&text);
    Ok((format!("{open},\"hash\":\"{hash}\"}}\n"), hash))
}
