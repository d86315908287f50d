//! A dry run: everything is read and compared, and what would be written stays in memory. The record itself is not touched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lastcall_ledger::store::{Created, Store, StoreError};
use lastcall_ledger::{Ledger, LedgerError};

/// Reads what is there, and keeps what is written to itself. Of data files only the names are kept: nobody reads them again.
struct Overlay {
    base: Arc<dyn Store>,
    written: Mutex<BTreeMap<String, Bytes>>,
}

const DATA: [&str; 3] = ["calls/", "results/", "dead/"];

impl Overlay {
    fn written(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, path: &str, bytes: &Bytes) {
        let kept =
            if DATA.iter().any(|folder| path.starts_with(folder)) { Bytes::new() } else { bytes.clone() };
        self.written().insert(path.to_owned(), kept);
    }
}

impl Store for Overlay {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        if self.get(path)?.is_some() {
            return Ok(Created::Exists);
        }
        self.keep(path, bytes);
        Ok(Created::Yes)
    }

    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.keep(path, bytes);
        Ok(())
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        if let Some(bytes) = self.written().get(path) {
            return Ok(Some(bytes.clone()));
        }
        self.base.get(path)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let mut all = self.base.list(prefix)?;
        let folder = format!("{}/", prefix.trim_end_matches('/'));
        all.extend(self.written().keys().filter(|path| path.starts_with(&folder)).cloned());
        all.sort();
        all.dedup();
        Ok(all)
    }

    fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.written().remove(path);
        Ok(())
    }
}

/// The same ledger, of which nothing changes whatever is written.
///
/// # Errors
/// The ledger cannot be read.
pub fn dry(ledger: &Ledger) -> Result<Ledger, LedgerError> {
    let overlay = Overlay { base: ledger.store().clone(), written: Mutex::default() };
    Ledger::open_in(Arc::new(overlay), ledger.place())
}
