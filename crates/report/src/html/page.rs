//! The shell that every page shares: head, style sheet, foot.

use lastcall_decision::Answer;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Nothing but the page's own style is ever loaded.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = include_str!("page.css");

/// A whole page.
pub fn page(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (body) }
                footer { "Lastcall. Days are UTC days of the calls' own time. D = disagreed / compared." }
            }
        }
    }
    .into_string()
}

/// The class that gives a verdict its colour.
pub fn tone(answer: Answer) -> &'static str {
    match answer {
        Answer::Ready => "ready",
        Answer::NotReady => "not-ready",
        Answer::Insufficient => "insufficient",
        Answer::Error => "error",
    }
}

/// A verdict's word as people read it.
pub fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::NotReady => "NOT READY",
        other => other.as_str(),
    }
}

/// A JSON Pointer in code; the empty one in words.
pub fn pointer(text: &str) -> Markup {
    html! { @if text.is_empty() { em { "the whole" } } @else { code { (text) } } }
}

/// A digest that shows its first digits and holds the rest in its title.
pub fn digest(text: &str) -> Markup {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    let short: String = hex.chars().take(12).collect();
    html! { code.digest title=(text) { (short) } }
}
