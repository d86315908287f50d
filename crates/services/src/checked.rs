//! What `--probe` asked for, and how it is told.

use std::fmt::Write as _;

use crate::Stop;

/// One thing that was asked for: what it is called, and what was answered.
pub struct Checked {
    /// What was asked.
    pub what: String,
    /// The answer, or why not.
    pub answer: Result<String, Stop>,
}

/// What was asked for, on a line each, and the exit code: that of the first thing that failed.
pub fn told(all: &[Checked]) -> (String, u8) {
    let (mut out, mut code) = (String::new(), 0);
    for Checked { what, answer } in all {
        match answer {
            Ok(said) => {
                let _ = writeln!(out, "ok      {what}: {said}");
            }
            Err(stop) => {
                let _ = writeln!(out, "FAILED  {what}: {stop}");
                code = if code == 0 { stop.exit_code() } else { code };
            }
        }
    }
    (out, code)
}
