//! Pointers of discrepancies, without the keys that are values.

use lastcall_ledger::redaction::{Step, Treatment};
use lastcall_ledger::state::matches;

use super::{Path, rank};

/// What is left of a path below a place, if it leads through it.
pub(super) fn below(path: &Path, place: &[&str]) -> Option<Path> {
    let (head, rest) = path.steps.split_at_checked(place.len())?;
    let leads = head.iter().zip(place).all(|(step, key)| match step {
        Step::Any => true,
        Step::Key(step) => *key == "*" || step == key,
    });
    leads.then(|| Path { steps: rest.to_vec(), ..path.clone() })
}

/// A pointer with what the rules hide; `None`: they hide nothing of it.
pub(super) fn masked(paths: &[Path], tool: &str, field: &str) -> Option<String> {
    let tokens: Vec<&str> = field.strip_prefix('/').map_or(Vec::new(), |rest| rest.split('/').collect());
    let key = |token: &str| token.replace("~1", "/").replace("~0", "~");
    let fits = |path: &&Path| {
        path.tool.as_deref().is_none_or(|pattern| matches(pattern, tool))
            && path.steps.iter().zip(&tokens).all(|(step, token)| match step {
                Step::Any => true,
                Step::Key(wanted) => *wanted == key(token),
            })
    };
    let fitting: Vec<&Path> = paths.iter().filter(fits).collect();
    let whole = fitting.iter().filter(|path| path.steps.len() <= tokens.len());
    if whole.max_by_key(|path| rank(path)).is_some_and(|path| path.action == Treatment::Keep) {
        return None;
    }
    let (mut out, mut cut) = (tokens.clone(), tokens.len());
    for path in fitting.iter().filter(|path| path.action != Treatment::Keep) {
        // The first step names an argument: it is the tool's word, not somebody's.
        cut = cut.min(path.steps.len().max(1));
        for (token, step) in out.iter_mut().zip(&path.steps).skip(1) {
            if *step == Step::Any {
                *token = "*";
            }
        }
    }
    out.truncate(cut);
    let masked: String = out.iter().map(|token| format!("/{token}")).collect();
    (masked != field).then_some(masked)
}
