//! How verdicts, trials and findings are shown: text, JSON, one self-contained HTML page with inline SVG, and for
//! findings SARIF, JUnit, GitHub annotations and Markdown.
//!
//! Pure: documents in, text out. No script, no font, no picture and no address is ever loaded by a page, and all that
//! comes from a document is escaped.

mod burn_in;
mod diff;
pub mod findings;
mod html;
mod style;
mod text;
mod trial;

pub use burn_in::burn_in;
pub use diff::{
    DefinitionPlace, DiffPlaces, DiffReport, VersionStep, diff_changelog, diff_findings, diff_markdown,
    diff_text,
};
pub use html::{fleet_page, try_page, verdict_page};
pub use style::{Style, plain, plain_lines, table};
pub use text::{fleet_text, try_text, verdict_text};
pub use trial::{
    TRY_FORMAT, TryBurnIn, TryCaller, TryCategory, TryCheck, TryDay, TryExample, TryFinding, TryReport,
    TryScoredDay,
};

/// A document as pretty JSON with a newline at its end; what [`plain`] escapes is escaped in its strings.
///
/// # Errors
/// The serializer's own.
pub fn to_json<T: serde::Serialize>(document: &T) -> Result<String, serde_json::Error> {
    Ok(plain_lines(&serde_json::to_string_pretty(document)?) + "\n")
}
