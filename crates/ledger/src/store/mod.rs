//! Where the bytes of a ledger lie: a local folder, a bucket of an S3-compatible store (feature `s3`), or memory for
//! tests. The rest of the code knows no file.

mod local;
mod location;
mod memory;
#[cfg(feature = "s3")]
pub mod s3;

use std::sync::Arc;

pub use bytes::Bytes;
pub use local::LocalStore;
pub use location::Location;
pub use memory::MemoryStore;

/// How often one create is asked again when nobody can say whether it took effect.
const ATTEMPTS: u32 = 32;

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
    /// The store could not be reached, or did not get well in time: the same command may do it later.
    #[error("{path}: {what}")]
    Away {
        /// The path.
        path: String,
        /// What was answered.
        what: String,
    },
    /// Nothing is written here, on purpose.
    #[error("{what}")]
    Sealed {
        /// Why, and the next step.
        what: String,
    },
    /// What stands at a place is no file, or no file can have that name: no ledger wrote it.
    #[error("{path}: {what}")]
    Odd {
        /// The path.
        path: String,
        /// What is odd.
        what: String,
    },
    /// This one file cannot be read; others may.
    #[error("{path}: {what}")]
    Unreadable {
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
    /// Every path below a folder, sorted. For garbage collection, verify and tests.
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError>;
    /// The names of the files in a folder that sort behind one (empty: all), sorted, no more than so many. One request: it
    /// shows whether an entry stands behind a hole in its chain.
    fn list_after(&self, folder: &str, name: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let start = format!("{folder}/");
        let mut names: Vec<String> = self
            .list(folder)?
            .iter()
            .filter_map(|path| Some(path.strip_prefix(&start)?.to_owned()))
            .collect();
        names.retain(|found| !found.contains('/') && found.as_str() > name);
        names.truncate(limit);
        Ok(names)
    }
    /// The names of the folders in a folder, sorted.
    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let start = format!("{folder}/");
        let names = self.list(folder)?;
        let names =
            names.iter().filter_map(|path| Some(path.strip_prefix(&start)?.split_once('/')?.0.to_owned()));
        Ok(names.collect::<std::collections::BTreeSet<_>>().into_iter().collect())
    }
    /// Removes a file, durably; none there is no error. For erasure and garbage collection alone: no other code
    /// removes anything.
    fn delete(&self, path: &str) -> Result<(), StoreError>;
    /// Checks, once, that writing is safe here: that a second create of one place is refused. A command that will write
    /// asks before it works; a store that needs the check makes it before its first write in any case.
    fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// Waits before the same is asked for the `attempt`-th time (from 1) after an unclear answer.
    fn pause(&self, _attempt: u32) {}
}

/// Creates, and finds out what stands there then: whether it is these bytes. An unclear answer is settled by reading the
/// place: the same bytes are ours (or as good as ours), other bytes are another's, and where none stand the identical
/// bytes are put again. A store that repeats a create by itself can find its own earlier one: no writer may take
/// [`Created::Exists`] for another's without reading.
pub fn settle(store: &dyn Store, path: &str, bytes: &Bytes) -> Result<bool, StoreError> {
    let mut last = None;
    for attempt in 1..=ATTEMPTS {
        match store.create(path, bytes) {
            Ok(Created::Yes) => return Ok(true),
            Ok(Created::Exists) => {}
            Err(error @ StoreError::Ambiguous { .. }) => {
                last = Some(error);
                store.pause(attempt);
            }
            Err(error) => return Err(error),
        }
        match store.get(path) {
            Ok(Some(there)) => return Ok(there == *bytes),
            Ok(None) => {}
            Err(error @ StoreError::Ambiguous { .. }) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| failed(path, "it is there and not there in turn")))
}

/// Opens the store at a place. A folder must exist.
pub fn open(location: &Location) -> Result<Arc<dyn Store>, StoreError> {
    match location {
        Location::Folder(folder) => Ok(Arc::new(LocalStore::open(folder)?)),
        #[cfg(feature = "s3")]
        Location::Bucket { bucket, prefix } => {
            let config =
                s3::S3Config::from_env(bucket, prefix).map_err(|e| failed(&location.to_string(), e))?;
            Ok(Arc::new(s3::S3Store::open(config)?))
        }
        #[cfg(not(feature = "s3"))]
        Location::Bucket { .. } => Err(failed(
            &location.to_string(),
            "this build knows no object storage: build with the feature `s3`",
        )),
    }
}

/// An error of a disk: what it is about, and what to do.
fn disk_failed(path: &str, error: &(dyn std::error::Error + 'static)) -> StoreError {
    use std::io::ErrorKind;
    let mut cause = Some(error);
    while let Some(at) = cause {
        let what = match at.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                let what = "the disk, or what may be used of it, is full; make room, and give the command again: it goes on \
                            where it stopped";
                return StoreError::Away { path: path.to_owned(), what: what.to_owned() };
            }
            Some(ErrorKind::ReadOnlyFilesystem) => "it lies on a file system that is mounted to be read only",
            Some(ErrorKind::PermissionDenied) => {
                "this user may not read or write it; look at its owner and mode, and at those of its folders"
            }
            _ => {
                cause = at.source();
                continue;
            }
        };
        return failed(path, what);
    }
    failed(path, error)
}

fn failed(path: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed { path: path.to_owned(), what: error.to_string() }
}

fn location(path: &str) -> Result<object_store::path::Path, StoreError> {
    object_store::path::Path::parse(path).map_err(|e| StoreError::Odd {
        path: path.to_owned(),
        what: format!("no file of a ledger has that name ({e})"),
    })
}
