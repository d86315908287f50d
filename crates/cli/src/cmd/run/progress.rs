//! Progress bars: on stderr, and only if it is a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar, or nothing.
pub struct Progress(Option<ProgressBar>);

fn bar(template: &str, tick: bool) -> Progress {
    if !std::io::stderr().is_terminal() {
        return Progress(None);
    }
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    if tick {
        bar.enable_steady_tick(std::time::Duration::from_millis(100));
    }
    Progress(Some(bar))
}

/// A bar over the bytes of a file.
pub fn bytes() -> Progress {
    bar("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {msg}", false)
}

/// A bar over things that are counted, with what is being looked at.
pub fn counted() -> Progress {
    bar("{bar:40} {pos}/{len} {wide_msg}", false)
}

/// A line that says what is being looked at.
pub fn spinner(what: &'static str) -> Progress {
    let progress = bar("{spinner} {prefix} {wide_msg}", true);
    if let Some(bar) = &progress.0 {
        bar.set_prefix(what);
    }
    progress
}

impl Progress {
    /// Moves the bar.
    pub fn at(&self, bytes: u64, total: Option<u64>, records: u64) {
        let Some(bar) = &self.0 else { return };
        if let Some(total) = total {
            bar.set_length(total);
        }
        bar.set_position(bytes);
        bar.set_message(format!("{records} records"));
    }

    /// Moves the bar, and says what is being looked at.
    pub fn step(&self, done: u64, total: u64, what: &str) {
        let Some(bar) = &self.0 else { return };
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(what.to_owned());
    }

    /// Says what is being looked at.
    pub fn message(&self, text: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(text.to_owned());
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
