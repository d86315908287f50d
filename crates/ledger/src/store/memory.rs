//! A store in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{Created, Store, StoreError};

/// A store in memory; clones share it. For tests and the simulation.
#[derive(Clone, Default)]
pub struct MemoryStore {
    files: Arc<Mutex<BTreeMap<String, Bytes>>>,
}

impl MemoryStore {
    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
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

    fn list_after(&self, folder: &str, name: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let start = format!("{folder}/");
        let files = self.files();
        let behind = files.range(format!("{start}{name}")..).map(|(path, _)| path);
        let names = behind.map_while(|path| path.strip_prefix(&start));
        let names = names.filter(|found| !found.contains('/') && *found > name);
        Ok(names.take(limit).map(str::to_owned).collect())
    }

    fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.files().remove(path);
        Ok(())
    }
}
