//! A compiled schema. Trees are asked; the library's own values are only explained to, by a validator that is compiled
//! at the first refusal.

use std::sync::OnceLock;

use jsonschema::Validator;
use lastcall_contract::{Draft, PatternEngine, SchemaError, validator_for, validator_of};
use lastcall_diff::SchemaDoc;
use serde_json::Value;

use crate::tree::{Tree, Trees};

/// A schema, ready to judge.
pub(crate) struct Checked {
    draft: Draft,
    accepts: Validator<Trees>,
    explains: OnceLock<Option<Validator>>,
}

impl Checked {
    /// Compiles a schema, and says which engine its patterns run on.
    pub fn new(schema: &Value, draft: Draft) -> Result<(Self, PatternEngine), SchemaError> {
        let (accepts, engine) = validator_of::<Trees>(schema, draft)?;
        Ok((Self { draft, accepts, explains: OnceLock::new() }, engine))
    }

    /// Whether the schema accepts a value.
    pub fn accepts(&self, tree: &Tree<'_>) -> bool {
        self.accepts.is_valid(tree)
    }

    /// The validator that says why; `doc` is the schema. It compiles whenever the schema did.
    pub fn explains(&self, doc: &SchemaDoc) -> Option<&Validator> {
        self.explains.get_or_init(|| validator_for(doc.root(), self.draft).ok()).as_ref()
    }
}
