//! What a library asserts of bytes that anybody may have written is no error of this program.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside such a library.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a step of a library that panics on odd bytes; `None`: it did, and nothing is printed. What the step may change must not be
/// used after that.
pub fn calmly<T>(step: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !INSIDE.get() {
                before(info);
            }
        }));
    });
    INSIDE.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(step));
    INSIDE.set(false);
    done.ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_or_is_nothing() {
        assert_eq!(calmly(|| 1), Some(1));
        assert_eq!(calmly(|| "x".parse::<u8>().unwrap()), None);
        assert_eq!(calmly(|| 2), Some(2));
    }
}
