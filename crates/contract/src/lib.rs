//! What a tool promises: definitions, import, digests, registry, lock.
//!
//! Pure: everything works on text and values that a caller has read. Nothing here opens a file.

mod applicators;
mod definition;
mod digest;
mod document;
mod error;
mod gemini;
mod number;
mod pattern;
pub mod registry;
mod rounded;
mod schema;

pub use applicators::{ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_TABLES};
pub use definition::{Definition, Draft, Source};
pub use digest::{Digest, DigestBasis};
pub use document::{Document, MAX_DEFINITION_BYTES, MAX_DEPTH, MAX_DOCUMENT_BYTES, Pick, strict_json};
pub use error::{DefinitionError, DefinitionErrorKind, SchemaError, nearest};
pub use number::{Decimal, is_precise};
pub use registry::{
    ErrorCode, Registry, RegistryError, RegistryFiles, RiskLevel, SideEffect, Tool, ToolVersion,
};
pub use rounded::rounded_numbers;
pub use schema::{
    BACKTRACK_LIMIT, PatternEngine, check_schema, validator_for, validator_of, validator_with_formats,
};

/// One immutable version of one tool: the whole definition that the provider was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// `tool_id@version`.
    pub id: String,
    /// SHA-256 over the definition; `basis` says over which bytes.
    pub digest: Digest,
    /// Over which bytes the digest was taken.
    pub basis: DigestBasis,
    /// What the provider was given.
    pub definition: Definition,
}

impl Contract {
    /// A contract of this id; the digest is computed.
    pub fn new(id: impl Into<String>, definition: Definition) -> Self {
        let (digest, basis) = Digest::of_document(&definition.document, &definition.verbatim);
        Self { id: id.into(), digest, basis, definition }
    }
}
