//! Where the bytes of a ledger lie: a local folder, or memory for tests. The rest of the code knows no file.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, PutMode, PutOptions};

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

/// The four operations on which a ledger rests. Blocking; a successful write is durable.
pub trait Store: Send + Sync {
    /// Writes only where nothing stands: the one primitive that decides races.
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError>;
    /// Writes a file whose name nobody else can have.
    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError>;
    /// Reads; `None` where nothing stands.
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError>;
    /// Every path below a folder, sorted. For garbage collection and tests: reading never lists.
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError>;
}

fn failed(path: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed { path: path.to_owned(), what: error.to_string() }
}

/// A folder on a local disk. Files and their folders are synced before a write returns.
pub struct LocalStore {
    inner: LocalFileSystem,
    runtime: tokio::runtime::Runtime,
}

impl LocalStore {
    /// Opens a folder that exists.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let shown = root.display().to_string();
        let inner = LocalFileSystem::new_with_prefix(root).map_err(|e| failed(&shown, e))?.with_fsync(true);
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| failed(&shown, e))?;
        Ok(Self { inner, runtime })
    }

    fn write(&self, path: &str, bytes: &Bytes, mode: PutMode) -> Result<Created, StoreError> {
        let location = location(path)?;
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.runtime.block_on(self.inner.put_opts(&location, bytes.clone().into(), options)) {
            Ok(_) => Ok(Created::Yes),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(Created::Exists),
            // A local disk that fails is not asked again: the process stops, and the next start reads what stands.
            Err(error) => Err(failed(path, error)),
        }
    }
}

fn location(path: &str) -> Result<object_store::path::Path, StoreError> {
    object_store::path::Path::parse(path).map_err(|e| failed(path, e))
}

impl Store for LocalStore {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        self.write(path, bytes, PutMode::Create)
    }

    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.write(path, bytes, PutMode::Overwrite).map(|_| ())
    }

    /// Reads the file itself: a ledger of thousands of pairs is thousands of small objects, and through the runtime
    /// each of them costs several switches between threads.
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        let file = self.inner.path_to_filesystem(&location(path)?).map_err(|e| failed(path, e))?;
        match std::fs::read(file) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(path, error)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let location = location(prefix)?;
        let mut pending = vec![location];
        let mut paths = Vec::new();
        while let Some(folder) = pending.pop() {
            let found = self
                .runtime
                .block_on(self.inner.list_with_delimiter(Some(&folder)))
                .map_err(|e| failed(prefix, e))?;
            paths.extend(found.objects.into_iter().map(|o| o.location.to_string()));
            pending.extend(found.common_prefixes);
        }
        paths.sort();
        Ok(paths)
    }
}

/// A store in memory; clones share it. For tests and the simulation.
#[derive(Clone, Default)]
pub struct MemoryStore {
    files: Arc<Mutex<BTreeMap<String, Bytes>>>,
}

impl MemoryStore {
    fn files(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts bytes there whatever stands there: for tests that alter a record.
    pub fn overwrite(&self, path: &str, bytes: Bytes) {
        self.files().insert(path.to_owned(), bytes);
    }

    /// Removes a file: for tests that lose one.
    pub fn remove(&self, path: &str) -> Option<Bytes> {
        self.files().remove(path)
    }
}

impl Store for MemoryStore {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        let mut files = self.files();
        if files.contains_key(path) {
            return Ok(Created::Exists);
        }
        files.insert(path.to_owned(), bytes.clone());
        Ok(Created::Yes)
    }

    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.files().insert(path.to_owned(), bytes.clone());
        Ok(())
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.files().get(path).cloned())
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let folder = format!("{prefix}/");
        Ok(self.files().keys().filter(|p| p.starts_with(&folder)).cloned().collect())
    }
}
