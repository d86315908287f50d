//! What a tool promises: definitions, import, digests, registry, lock.
//!
//! Pure: everything works on text and values that a caller has read. Nothing here opens a file.

mod definition;
mod digest;

pub use definition::{Definition, DefinitionError, Draft, Source};
pub use digest::Digest;

/// One immutable version of one tool: the whole definition that the provider was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// `tool_id@version`.
    pub id: String,
    /// SHA-256 over the definition in RFC 8785 form (or over its raw bytes, see [`Digest`]).
    pub digest: Digest,
    /// What the provider was given.
    pub definition: Definition,
}
