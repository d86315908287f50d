//! The store as verify reads it: a file that cannot be read is a finding, and the rest is still checked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{Finding, Outcome};
use crate::store::{Created, Store, StoreError};

/// What cannot be read, by path.
type Broken = BTreeMap<String, (Outcome, String)>;

/// A store that takes what cannot be read for missing, and remembers why. Nothing is written through it.
pub(super) struct Lenient {
    inner: Arc<dyn Store>,
    broken: Mutex<Broken>,
}

impl Lenient {
    pub(super) fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, broken: Mutex::default() }
    }

    fn broken(&self) -> MutexGuard<'_, Broken> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take<T>(&self, read: Result<T, StoreError>, nothing: T) -> Result<T, StoreError> {
        let (path, broken) = match read {
            Err(StoreError::Odd { path, what }) => (path, (Outcome::Altered, what)),
            Err(StoreError::Unreadable { path, what }) => {
                (path, (Outcome::CannotCheck, format!("it cannot be read: {what}")))
            }
            other => return other,
        };
        self.broken().insert(path, broken);
        Ok(nothing)
    }

    /// Says of what was found missing that it stands there and cannot be read, and of what nobody said anything.
    pub(super) fn say(&self, findings: &mut Vec<Finding>) {
        let mut broken = std::mem::take(&mut *self.broken());
        let mut said = Vec::new();
        for finding in findings.iter_mut() {
            if let Some((outcome, what)) = broken.get(&finding.place) {
                (finding.outcome, finding.what) = (*outcome, what.clone());
                said.push(finding.place.clone());
            }
        }
        said.iter().for_each(|place| drop(broken.remove(place)));
        findings.extend(broken.into_iter().map(|(place, (outcome, what))| Finding {
            outcome,
            place,
            record: None,
            what,
        }));
    }
}

impl Store for Lenient {
    fn create(&self, path: &str, _: &Bytes) -> Result<Created, StoreError> {
        self.put(path, &Bytes::new()).map(|()| Created::Exists)
    }

    fn put(&self, path: &str, _: &Bytes) -> Result<(), StoreError> {
        Err(StoreError::Sealed { what: format!("{path}: verify writes nothing") })
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.take(self.inner.get(path), None)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.take(self.inner.list(prefix), Vec::new())
    }

    fn list_after(&self, folder: &str, name: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.take(self.inner.list_after(folder, name, limit), Vec::new())
    }

    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.take(self.inner.folders(folder), Vec::new())
    }

    fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.put(path, &Bytes::new())
    }
}
