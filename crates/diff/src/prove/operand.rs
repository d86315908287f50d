//! A schema prepared for many questions.

use std::borrow::Cow;

use jsonschema::Validator;
use lastcall_contract::{Draft, PatternEngine, SchemaError, check_schema, validator_with_formats};
use serde_json::Value;

use super::compile::Compiler;
use super::declared::Declared;
use super::eval::holds;
use super::fill::{self, Filled};
use super::index::Index;
use super::ir::N;

/// Nesting of a document beyond which nothing is asked about it.
const MAX_NESTING: usize = 200;

/// Why a schema cannot be asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandError {
    /// JSON Pointer into the schema; empty for its root.
    pub pointer: String,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl std::fmt::Display for OperandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.pointer.is_empty() { "the schema's root" } else { &self.pointer };
        write!(f, "{place}: {}", self.message)
    }
}

impl std::error::Error for OperandError {}

impl From<SchemaError> for OperandError {
    fn from(error: SchemaError) -> Self {
        Self { pointer: error.pointer, message: format!("{}. {}", error.message, error.next) }
    }
}

/// A schema prepared once for many questions: document, draft, validators.
pub struct Operand {
    schema: Value,
    draft: Draft,
    formats: bool,
    validator: Validator,
    engine: PatternEngine,
    meaning: N,
    /// A keyword occurs that validators read in two ways: which, and what to write instead.
    contested: Option<&'static str>,
    /// What a runtime fills before it validates.
    filled: Option<Filled>,
    /// When a value is declared.
    declared: N,
    /// Everything in it is modelled.
    modelled: bool,
    /// JSON nodes of the document.
    size: usize,
    /// What references back lead to.
    _kept: Vec<N>,
}

impl Operand {
    /// Prepares a schema; `format` is asserted, as everywhere in Lastcall. `draft` is the default: `$schema` at the root
    /// takes precedence.
    ///
    /// # Errors
    /// The schema is invalid, of an unknown draft, refers outside itself, never ends for some value, or is nested
    /// deeper than 200 levels.
    pub fn new(schema: &Value, draft: Draft) -> Result<Self, OperandError> {
        Self::with_formats(schema, draft, true)
    }

    /// As [`Operand::new`]; `formats` says whether `format` is asserted.
    ///
    /// # Errors
    /// As [`Operand::new`].
    pub fn with_formats(schema: &Value, draft: Draft, formats: bool) -> Result<Self, OperandError> {
        Self::build(schema, draft, formats, false)
    }

    /// As [`Operand::new`], for a runtime that fills declared defaults before it validates: a value is accepted where
    /// the filled value is valid. Filled are absent members that `properties` declares with a default, directly or
    /// through `$ref` and `allOf`, wherever their parent is there.
    ///
    /// # Errors
    /// As [`Operand::new`].
    pub fn filling(schema: &Value, draft: Draft) -> Result<Self, OperandError> {
        Self::build(schema, draft, true, true)
    }

    fn build(schema: &Value, draft: Draft, formats: bool, fills: bool) -> Result<Self, OperandError> {
        let (nesting, size) = extent(schema);
        if nesting > MAX_NESTING {
            return Err(OperandError {
                pointer: String::new(),
                message: format!("nested deeper than {MAX_NESTING} levels. Move parts into `$defs`"),
            });
        }
        check_schema(schema, draft)?;
        let draft = Draft::of_schema(schema, draft)?;
        let (validator, engine) = validator_with_formats(schema, draft, formats)?;
        let index = Index::new(schema, draft);
        let mut compiler = Compiler::new(&index, formats);
        let meaning = compiler.schema(index.root_place());
        let declared = Declared::new(&mut compiler).whole();
        let filled = if fills { fill::filled(&mut compiler, &meaning) } else { None };
        let cut = filled.as_ref().is_some_and(|filled| filled.cut);
        let contested = compiler.contested;
        Ok(Self {
            schema: schema.clone(),
            draft,
            formats,
            validator,
            engine,
            meaning,
            filled,
            contested,
            declared,
            modelled: !compiler.gaps && !cut,
            size,
            _kept: compiler.into_kept(),
        })
    }

    /// The schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Its draft.
    pub fn draft(&self) -> Draft {
        self.draft
    }

    /// Whether `format` is asserted.
    pub fn formats(&self) -> bool {
        self.formats
    }

    /// Whether the schema accepts this value.
    pub fn accepts(&self, value: &Value) -> bool {
        self.validator.is_valid(&self.seen(value))
    }

    /// The value that is validated: filled, where the runtime fills.
    pub fn seen<'v>(&self, value: &'v Value) -> Cow<'v, Value> {
        match &self.filled {
            None => Cow::Borrowed(value),
            Some(filled) => {
                let mut value = value.clone();
                filled.fill.apply(&mut value);
                Cow::Owned(value)
            }
        }
    }

    /// A keyword that validators read in two ways: which, and what to write instead.
    pub(super) fn contested(&self) -> Option<&'static str> {
        self.contested
    }

    /// Whether defaults are filled.
    pub(super) fn fills(&self) -> bool {
        self.filled.is_some()
    }

    /// Whether defaults are filled that are not known.
    pub(super) fn fills_unknown(&self) -> bool {
        self.filled.as_ref().is_some_and(|filled| filled.cut)
    }

    /// Defaults that would be filled and that their own schema refuses: where, a JSON Pointer into the value with `*`
    /// for items, and the default.
    pub fn refused_defaults(&self) -> &[(String, Value)] {
        self.filled.as_ref().map_or(&[], |filled| &filled.refused)
    }

    /// The validator.
    pub(crate) fn validator(&self) -> &Validator {
        &self.validator
    }

    /// Whether a refusal may only mean that a pattern gave up.
    pub(super) fn may_give_up(&self) -> bool {
        self.engine == PatternEngine::Backtracking
    }

    /// Whether everything in it is modelled: no keyword and no reference had to be left open.
    pub(super) fn is_modelled(&self) -> bool {
        self.modelled
    }

    /// JSON nodes of the document.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// What the schema means.
    pub(super) fn meaning(&self) -> &N {
        self.filled.as_ref().map_or(&self.meaning, |filled| &filled.meaning)
    }

    /// When a value is declared.
    pub(super) fn declared(&self) -> &N {
        &self.declared
    }

    /// See [`super::declared_by`].
    pub(super) fn declares(&self, value: &Value) -> bool {
        holds(&self.declared, value) == Some(true)
    }
}

/// Levels of nesting and number of nodes, counted without recursion.
fn extent(schema: &Value) -> (usize, usize) {
    let (mut deepest, mut size) = (0, 0);
    let mut stack = vec![(schema, 0)];
    while let Some((value, depth)) = stack.pop() {
        deepest = deepest.max(depth);
        size += 1;
        match value {
            Value::Object(map) => stack.extend(map.values().map(|v| (v, depth + 1))),
            Value::Array(list) => stack.extend(list.iter().map(|v| (v, depth + 1))),
            _ => {}
        }
    }
    (deepest, size)
}
