//! Stores for measuring: one that counts what is read, one that writes a folder without waiting for the disk.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lastcall_ledger::store::{Bytes, Created, Store, StoreError};

/// Counts reading requests and their bytes; clones share the counts.
#[derive(Clone)]
pub struct Counted {
    inner: Arc<dyn Store>,
    requests: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl Counted {
    /// Around a store.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, requests: Arc::default(), bytes: Arc::default() }
    }

    /// Requests and bytes so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl Store for Counted {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.create(path, bytes)
    }
    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.put(path, bytes)
    }
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        let found = self.inner.get(path)?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(found.as_ref().map_or(0, |b| b.len() as u64), Ordering::Relaxed);
        Ok(found)
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.list(prefix)
    }
    fn list_after(&self, folder: &str, name: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.list_after(folder, name, limit)
    }
    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.folders(folder)
    }
    fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.inner.delete(path)
    }
}

/// A folder that is not synced: for data that is made to be measured.
pub struct Folder(PathBuf);

impl Folder {
    /// In a folder that exists.
    pub fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    fn write(&self, path: &str, bytes: &Bytes, new: bool) -> Result<Created, StoreError> {
        let failed = |e: std::io::Error| StoreError::Failed { path: path.to_owned(), what: e.to_string() };
        let file = self.0.join(path);
        if new && file.exists() {
            return Ok(Created::Exists);
        }
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(file, bytes).map_err(failed)?;
        Ok(Created::Yes)
    }
}

impl Store for Folder {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        self.write(path, bytes, true)
    }
    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.write(path, bytes, false).map(|_| ())
    }
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        match std::fs::read(self.0.join(path)) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::Failed { path: path.to_owned(), what: error.to_string() }),
        }
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let mut paths = Vec::new();
        let mut folders = vec![prefix.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(self.0.join(&folder)).into_iter().flatten().flatten() {
                let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
                if entry.path().is_dir() { folders.push(path) } else { paths.push(path) }
            }
        }
        paths.sort();
        Ok(paths)
    }
    fn delete(&self, path: &str) -> Result<(), StoreError> {
        std::fs::remove_file(self.0.join(path))
            .map_err(|e| StoreError::Failed { path: path.to_owned(), what: e.to_string() })
    }
}
