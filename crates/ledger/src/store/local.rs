//! A folder on a local disk.

use std::io::ErrorKind;
use std::path::Path;

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, PutMode, PutOptions};

use super::{Created, Store, StoreError, disk_failed, failed, location};

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
            Err(error) => Err(disk_failed(path, &error)),
        }
    }

    fn file(&self, path: &str) -> Result<std::path::PathBuf, StoreError> {
        self.inner.path_to_filesystem(&location(path)?).map_err(|e| failed(path, e))
    }

    /// The names in a folder that `keep` keeps, sorted; none where there is no folder.
    fn names(
        &self,
        folder: &str,
        keep: impl Fn(&str, &std::fs::DirEntry) -> bool,
    ) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        let entries = match std::fs::read_dir(self.file(folder)?) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(names),
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return Err(StoreError::Odd { path: folder.to_owned(), what: "it is no folder".to_owned() });
            }
            Err(error) => {
                return Err(unreadable(disk_failed(folder, &error)));
            }
        };
        for entry in entries {
            let entry = entry.map_err(|e| failed(folder, e))?;
            // No file of a ledger has another name.
            let Ok(name) = entry.file_name().into_string() else { continue };
            if keep(&name, &entry) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
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
        let file = self.file(path)?;
        // A pipe would be waited for.
        let read = || match std::fs::metadata(&file)?.is_file() {
            true => std::fs::read(&file).map(Some),
            false => Ok(None),
        };
        match read() {
            Ok(Some(bytes)) => Ok(Some(bytes.into())),
            Ok(None) => Err(StoreError::Odd {
                path: path.to_owned(),
                what: "what stands there is no file".to_owned(),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                let what = "a folder that it lies in is no folder".to_owned();
                Err(StoreError::Odd { path: path.to_owned(), what })
            }
            Err(error) => Err(unreadable(disk_failed(path, &error))),
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
                .map_err(|e| disk_failed(prefix, &e))?;
            paths.extend(found.objects.into_iter().map(|o| o.location.to_string()));
            pending.extend(found.common_prefixes);
        }
        paths.sort();
        Ok(paths)
    }

    /// Reads the folder itself, as [`Self::get`] does: names alone, no file is asked for its length.
    fn list_after(&self, folder: &str, name: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let mut names = self.names(folder, |found, _| found > name)?;
        names.truncate(limit);
        Ok(names)
    }

    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.names(folder, |_, entry| entry.path().is_dir())
    }

    /// The file's folder is synced too: what an erasure removed does not come back after a power cut.
    fn delete(&self, path: &str) -> Result<(), StoreError> {
        let file = self.file(path)?;
        match std::fs::remove_file(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(disk_failed(path, &error)),
        }
        #[cfg(unix)]
        if let Some(folder) = file.parent() {
            std::fs::File::open(folder).and_then(|f| f.sync_all()).map_err(|e| disk_failed(path, &e))?;
        }
        Ok(())
    }
}

/// One file, or folder, that cannot be read; others may.
fn unreadable(error: StoreError) -> StoreError {
    match error {
        StoreError::Failed { path, what } => StoreError::Unreadable { path, what },
        other => other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io;

    use super::*;

    /// What the system says of a disk stands below what the library says of it.
    #[test]
    fn a_full_disk_and_a_closed_one_are_named() {
        let told = |kind: ErrorKind| {
            let error = object_store::Error::Generic {
                store: "LocalFileSystem",
                source: io::Error::from(kind).into(),
            };
            disk_failed("calls/x.parquet", &error)
        };
        let full = told(ErrorKind::StorageFull);
        assert!(matches!(full, StoreError::Away { .. }) && full.to_string().contains("is full; make room"));
        for (kind, says) in [
            (ErrorKind::ReadOnlyFilesystem, "mounted to be read only"),
            (ErrorKind::PermissionDenied, "owner and mode"),
        ] {
            let told = told(kind);
            assert!(matches!(told, StoreError::Failed { .. }));
            assert!(
                told.to_string().starts_with("calls/x.parquet: ") && told.to_string().contains(says),
                "{told}"
            );
        }
        assert!(told(ErrorKind::NotADirectory).to_string().contains("LocalFileSystem"));
    }
}
