//! GitHub-flavoured Markdown, for a step summary or a comment: escaped, so that no name from a definition becomes markup or
//! a mention, and cut at a size that the reader's upload takes.

use super::{Findings, Outcome};

/// The findings as one section: headline, a line for what could not be checked, a table of findings.
pub fn markdown(all: &Findings) -> String {
    let mut out = format!("### lastcall {}\n\n{}\n", all.command, prose(&all.headline));
    for subject in &all.subjects {
        if let Outcome::CouldNotRun { message } = &subject.outcome {
            out.push_str(&format!(
                "\n**{} could not be checked**: {}\n",
                code(&subject.name),
                prose(message)
            ));
        }
    }
    if all.findings.is_empty() {
        return out;
    }
    out.push_str("\n| | rule | where | what |\n| --- | --- | --- | --- |\n");
    for finding in all.worst_first() {
        let at = match finding.region {
            Some(region) if !finding.file.is_empty() => format!("{}:{}", finding.file, region.line),
            _ => finding.file.clone(),
        };
        let at = [at, finding.pointer.clone()].into_iter().filter(|part| !part.is_empty());
        let at: Vec<String> = at.map(|part| cell(&code(&part))).collect();
        out.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            finding.level.as_str(),
            cell(&code(&finding.rule)),
            at.join(" "),
            cell(&prose(&format!("`{}`: {}", finding.subject, finding.full_message())))
        ));
    }
    out
}

/// Text in which nothing is markup: punctuation escaped, one line, control characters escaped, no mention.
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in crate::plain(&one_line(text)).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '#' | '&' => {
                out.push('\\');
                out.push(c);
            }
            // a mention or a reference needs the character to stand alone
            '@' => out.push_str("@\u{200b}"),
            c => out.push(c),
        }
    }
    out
}

/// Breaks and tabs as blanks.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

/// A message of ours: what stands between backticks becomes a code span, the rest plain text.
pub fn prose(message: &str) -> String {
    let mut parts: Vec<&str> = message.split('`').collect();
    // an odd backtick is no quote
    let open = if parts.len().is_multiple_of(2) { parts.pop() } else { None };
    let mut out = String::new();
    for (n, part) in parts.iter().enumerate() {
        match n % 2 {
            1 if !part.is_empty() => out.push_str(&code(part)),
            1 => {}
            _ => out.push_str(&text(part)),
        }
    }
    if let Some(open) = open {
        out.push_str("\\`");
        out.push_str(&text(open));
    }
    out
}

/// The text as a code span, whatever backticks are in it; one line.
pub fn code(text: &str) -> String {
    let clean = crate::plain(&one_line(text));
    let (mut longest, mut run) = (0usize, 0usize);
    for c in clean.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let pad =
        if clean.starts_with('`') || clean.ends_with('`') || clean.trim().is_empty() { " " } else { "" };
    format!("{fence}{pad}{clean}{pad}{fence}")
}

/// In a table a pipe ends the cell even inside code.
fn cell(text: &str) -> String {
    text.replace("\\|", "|").replace('|', "\\|")
}

/// The document cut at whole lines to at most `limit` bytes, with a line that says how many are left out.
pub fn within(document: &str, limit: usize) -> String {
    if document.len() <= limit {
        return document.to_owned();
    }
    const ROOM: usize = 64;
    let mut out = String::new();
    let mut lines = document.split_inclusive('\n');
    let mut left_out = 0usize;
    for line in lines.by_ref() {
        if out.len() + line.len() + ROOM > limit {
            left_out = 1;
            break;
        }
        out.push_str(line);
    }
    left_out += lines.count();
    let note = format!("\n… {left_out} more lines\n");
    if out.len() + note.len() <= limit {
        out.push_str(&note);
    }
    out
}
