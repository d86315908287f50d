//! `--dry-run`: what would be done with the calls of each tool. Nothing is read of a topic, called or written.

use std::fmt::Write as _;

use lastcall_mirror::Mirror;

/// A line for each tool and candidate.
pub fn dry(mirror: &Mirror, upstream: &str, output: &str) -> String {
    let mut out = format!("dry run: calls of {upstream} would become rows of {output}\n");
    for line in mirror.plan() {
        let _ = writeln!(out, "  {line}");
    }
    out.push_str("nothing was read, called or written\n");
    out
}
