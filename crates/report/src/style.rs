//! Colour for terminals, and columns. Never writes an escape code where colour is off.

use lastcall_decision::{Answer, CheckResult};
use lastcall_diff::Class;

/// Whether text may carry colour.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Write ANSI escape codes.
    pub color: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Strong.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Beside the point.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// A verdict in its colour.
    pub fn answer(self, answer: Answer, text: &str) -> String {
        self.paint(
            match answer {
                Answer::Ready => "1;32",
                Answer::NotReady => "1;31",
                Answer::Insufficient => "1;33",
                Answer::Error => "1;35",
            },
            text,
        )
    }

    /// A class of change in its colour.
    pub fn class(self, class: Class, text: &str) -> String {
        self.paint(
            match class {
                Class::Compatible | Class::UsuallyCompatible => "1;32",
                Class::HighRisk | Class::NeedsReview => "1;33",
                Class::Breaking => "1;31",
            },
            text,
        )
    }

    /// A check's result in its colour.
    pub fn result(self, result: CheckResult, text: &str) -> String {
        self.paint(
            match result {
                CheckResult::Pass => "32",
                CheckResult::Fail => "31",
                CheckResult::Insufficient => "33",
                CheckResult::Error => "35",
                CheckResult::Unknown => "2",
            },
            text,
        )
    }
}

/// Text from outside on one line, with everything that could steer a terminal, a log or a reader's eye written as JSON
/// writes it (`\u001b`): control characters, line separators, what turns the direction of writing round, invisible tags,
/// and code points that are no characters (XML forbids two of them). A JSON text stays the same value.
pub fn plain(text: &str) -> String {
    escaped(text, false)
}

/// As [`plain`], but line feeds stay.
pub fn plain_lines(text: &str) -> String {
    escaped(text, true)
}

fn escaped(text: &str, lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) && !(lines && c == '\n') {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// Unicode's `Bidi_Control`, separators of lines and paragraphs, the byte order mark, tags and noncharacters, and controls.
fn steers(c: char) -> bool {
    let nonchar = matches!(u32::from(c), 0xfdd0..=0xfdef) || u32::from(c) & 0xfffe == 0xfffe;
    let bidi =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control()
        || bidi
        || nonchar
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Pads to a width in characters; never cuts.
pub fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

/// Pads on the left to a width in characters; never cuts.
pub fn pad_left(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{}{text}", " ".repeat(missing))
}

/// Lines of aligned columns; `right` says which columns are aligned to the right. No trailing blanks.
pub fn table(rows: &[Vec<String>], right: &[bool], indent: &str) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, width))| {
            match right.get(i).copied().unwrap_or(false) {
                true => pad_left(cell, *width),
                false => pad(cell, *width),
            }
        });
        let line = format!("{indent}{}", cells.collect::<Vec<_>>().join("  "));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
