//! The store under an export: nothing is written to it.

use std::sync::Arc;

use bytes::Bytes;

use crate::store::{Created, Store, StoreError};

/// A store that only reads.
pub(crate) struct Sealed {
    inner: Arc<dyn Store>,
    why: String,
}

impl Sealed {
    /// Over a store; the tool says whose export it is.
    pub(crate) fn new(inner: Arc<dyn Store>, tool: &str) -> Self {
        let why = format!(
            "this is an export of `{tool}`, and nothing is written to an export; give the command the ledger that it came from"
        );
        Self { inner, why }
    }

    fn refuse<T>(&self) -> Result<T, StoreError> {
        Err(StoreError::Sealed { what: self.why.clone() })
    }
}

impl Store for Sealed {
    fn create(&self, _: &str, _: &Bytes) -> Result<Created, StoreError> {
        self.refuse()
    }

    fn put(&self, _: &str, _: &Bytes) -> Result<(), StoreError> {
        self.refuse()
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(path)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.inner.list(prefix)
    }

    fn list_after(&self, folder: &str, name: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.inner.list_after(folder, name, limit)
    }

    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.inner.folders(folder)
    }

    fn delete(&self, _: &str) -> Result<(), StoreError> {
        self.refuse()
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.refuse()
    }

    fn pause(&self, attempt: u32) {
        self.inner.pause(attempt);
    }
}
