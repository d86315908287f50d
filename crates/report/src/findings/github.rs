//! Workflow commands of GitHub Actions: one `::error`, `::warning` or `::notice` line for each finding, the worst first,
//! since only the first few of a step are shown.

use super::{Findings, Level, Outcome};

/// The findings as annotation lines; a subject that could not be checked is an error of its own.
pub fn github(all: &Findings) -> String {
    let mut out = String::new();
    for subject in &all.subjects {
        if let Outcome::CouldNotRun { message } = &subject.outcome {
            let title = format!("{}: could not be checked", subject.name);
            command(&mut out, "error", &file(&subject.file), &title, message);
        }
    }
    for finding in all.worst_first() {
        let word = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "notice",
        };
        let mut place = file(&finding.file);
        if let Some(r) = finding.region.filter(|_| !place.is_empty()) {
            place.extend([("line", r.line.to_string()), ("endLine", r.end_line.to_string())]);
            // columns count only within one line
            if r.line == r.end_line {
                place.extend([("col", r.column.to_string()), ("endColumn", r.end_column.to_string())]);
            }
        }
        let title = format!("{}: {}", finding.subject, finding.rule);
        command(&mut out, word, &place, &title, &finding.full_message());
    }
    out
}

fn file(name: &str) -> Vec<(&'static str, String)> {
    if name.is_empty() { Vec::new() } else { vec![("file", name.to_owned())] }
}

fn command(out: &mut String, word: &str, place: &[(&'static str, String)], title: &str, message: &str) {
    let title = ("title", title.to_owned());
    let properties: Vec<String> =
        place.iter().chain([&title]).map(|(key, value)| format!("{key}={}", property(value))).collect();
    out.push_str(&format!("::{word} {}::{}\n", properties.join(","), data(message)));
}

/// `%`, carriage return and line feed end or alter a command; other control characters have no place in a log.
fn data(text: &str) -> String {
    let lines: Vec<String> = text.split('\r').map(crate::plain_lines).collect();
    lines.join("\r").replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// In a property `:` and `,` are separators too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
