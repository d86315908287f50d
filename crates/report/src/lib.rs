//! How verdicts and trials are shown: text, JSON, and one self-contained HTML page with inline SVG.
//!
//! Pure: documents in, text out. No script, no font, no picture and no address is ever loaded by a page, and all that
//! comes from a document is escaped.

mod html;
mod style;
mod text;
mod trial;

pub use html::{fleet_page, try_page, verdict_page};
pub use style::{Style, table};
pub use text::{fleet_text, try_text, verdict_text};
pub use trial::{TryAgent, TryCategory, TryDay, TryExample, TryFinding, TryReport};

/// A document as pretty JSON with a newline at its end.
///
/// # Errors
/// The serializer's own.
pub fn to_json<T: serde::Serialize>(document: &T) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}
