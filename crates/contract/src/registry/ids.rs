//! Names that become ids and paths: what a tool id, a version and a path may look like, and how versions are ordered.
//! Never lets a name from data step out of its folder.

use std::cmp::Ordering;

/// The folder of toolsets in a registry's root; no tool may be called so.
pub(crate) const TOOLSETS: &str = "toolsets";

/// Whether this may be a tool id, and so the name of a folder: ASCII letters, digits, `.`, `_`, `-`, at most 128
/// bytes, not beginning or ending with a dot, no two dots in a row.
pub fn is_tool_id(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !text.is_empty()
        && text.len() <= 128
        && text.bytes().all(fits)
        && !text.starts_with(['.', '-'])
        && !text.ends_with('.')
        && !text.contains("..")
        && text != TOOLSETS
}

/// Whether this may be a version: as a tool id, `+` allowed, beginning with a letter or digit, at most 64 bytes.
pub fn is_version(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && is_tool_id(&text.replace('+', "-"))
}

/// A path inside a folder: `/` between segments, none of them empty, `.` or `..`, no backslash, no colon, no control
/// character. Answers the path below `folder`.
pub(crate) fn join(folder: &str, path: &str) -> Option<String> {
    let fits = |segment: &str| {
        !segment.is_empty()
            && segment != "."
            && segment != ".."
            && !segment.chars().any(|c| c == '\\' || c == ':' || c.is_control())
    };
    let path = path.strip_prefix("./").unwrap_or(path);
    (path.len() <= 512 && path.split('/').all(fits))
        .then(|| if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") })
}

/// Whether a version fits a pattern such as `2.0.x`, `1.x`, `*` or `2.1.0`.
pub fn version_fits(pattern: &str, version: &str) -> bool {
    let mut parts = version.split('.');
    for wanted in pattern.trim().split('.') {
        if matches!(wanted, "x" | "X" | "*") {
            return true;
        }
        if parts.next() != Some(wanted) {
            return false;
        }
    }
    parts.next().is_none()
}

/// Orders versions: numeric segments by value, a pre-release (`-…`) before its release, anything else by its bytes.
pub fn version_order(a: &str, b: &str) -> Ordering {
    let split = |v: &str| -> (Vec<String>, Option<String>) {
        let without_build = v.split('+').next().unwrap_or_default();
        match without_build.split_once('-') {
            Some((main, pre)) => (main.split('.').map(str::to_owned).collect(), Some(pre.to_owned())),
            None => (without_build.split('.').map(str::to_owned).collect(), None),
        }
    };
    let segment = |x: &str, y: &str| match (x.parse::<u64>(), y.parse::<u64>()) {
        (Ok(x), Ok(y)) => x.cmp(&y),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => x.cmp(y),
    };
    let ((main_a, pre_a), (main_b, pre_b)) = (split(a), split(b));
    for (x, y) in main_a.iter().zip(&main_b) {
        let order = segment(x, y);
        if order != Ordering::Equal {
            return order;
        }
    }
    let pre = match (&pre_a, &pre_b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(x), Some(y)) => x
            .split('.')
            .zip(y.split('.'))
            .map(|(x, y)| segment(x, y))
            .find(|o| *o != Ordering::Equal)
            .unwrap_or_else(|| x.len().cmp(&y.len())),
    };
    main_a.len().cmp(&main_b.len()).then(pre).then_with(|| a.cmp(b))
}
