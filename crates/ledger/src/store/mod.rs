//! Where the bytes of a ledger lie: a local folder, or memory for tests. The rest of the code knows no file.

mod local;
mod memory;

pub use bytes::Bytes;
pub use local::LocalStore;
pub use memory::MemoryStore;

/// What came of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// It was made, and is durable.
    Yes,
    /// Something stands there already.
    Exists,
}

/// An error of a store.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Nobody knows whether the write took effect: read the place to find out.
    #[error("{path}: no clear answer ({what})")]
    Ambiguous {
        /// The path.
        path: String,
        /// What was answered.
        what: String,
    },
    /// It failed.
    #[error("{path}: {what}")]
    Failed {
        /// The path.
        path: String,
        /// What was answered.
        what: String,
    },
}

/// The operations on which a ledger rests. Blocking; a successful write is durable.
pub trait Store: Send + Sync {
    /// Writes only where nothing stands: the one primitive that decides races.
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError>;
    /// Writes a file whose name nobody else can have.
    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError>;
    /// Reads; `None` where nothing stands.
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError>;
    /// Every path below a folder, sorted. For garbage collection and tests: reading never lists.
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError>;
    /// Removes a file, durably; none there is no error. For erasure and garbage collection alone: no other code
    /// removes anything.
    fn delete(&self, path: &str) -> Result<(), StoreError>;
}

fn failed(path: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed { path: path.to_owned(), what: error.to_string() }
}

fn location(path: &str) -> Result<object_store::path::Path, StoreError> {
    object_store::path::Path::parse(path).map_err(|e| failed(path, e))
}
