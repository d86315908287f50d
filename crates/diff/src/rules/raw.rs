//! A change as the walk finds it, before it is judged.

use serde_json::Value;

use crate::change::ChangeKind;

/// What a change does to the accepted values, as far as the rule can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Fewer.
    Narrows,
    /// More.
    Widens,
    /// Fewer, more or others.
    Either,
    /// None: no validator sees it.
    Text,
}

/// One edit of the old document that makes this change alone: the key of the object at `at` is set or removed.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub at: String,
    pub key: String,
    pub value: Option<Value>,
}

/// A change that was found. "Old" is always the side whose values have to be taken.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub kind: ChangeKind,
    /// Instance pointer; `*` for any list index or open key.
    pub pointer: String,
    pub old_location: Option<String>,
    pub new_location: Option<String>,
    pub old: Option<Value>,
    pub new: Option<Value>,
    pub effect: Effect,
    /// The keyword that changed.
    pub keyword: &'static str,
    /// The change alone; empty where it cannot be told apart.
    pub edits: Vec<Edit>,
    /// The place as a whole: its location in the old document and what the new one says there.
    pub place: Option<(String, Value)>,
    /// A likely new name, or the other spelling of an enum value.
    pub rename: Option<crate::change::RenameHint>,
    /// Of an `enum`, how many values the change is about; `old` or `new` lists the first of them where it is not one.
    pub values: usize,
}
