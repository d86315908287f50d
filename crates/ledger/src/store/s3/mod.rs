//! A bucket of an S3-compatible store, through `object_store`. What races is decided by conditional create
//! (`If-None-Match: *`); a store that ignores it is found by a probe before the first write, and refused.
//!
//! Repeating is done here and not by the client, which cannot tell a create that surely did nothing from one whose answer
//! was lost: the first is asked again, the second is [`StoreError::Ambiguous`], so that [`super::settle`] reads the
//! place. Reads, files with a name of their own and deletions may be repeated after either.

mod answer;
mod config;
mod watch;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use self::answer::{Failure, failure};
pub use self::config::S3Config;
use self::watch::{chain_of, watched};
use super::{Created, Location, Store, StoreError, failed, location};

/// A name that no chain and no file has. The object stays: the next process needs one request and not two.
const PROBE: &str = "probe/conditional-create.txt";
const PROBE_TEXT: &str =
    "lastcall asks here whether this store refuses to create what stands already. It may be removed.\n";

/// The slowest upload for which a request's time-out leaves room, in bytes a second.
const SLOWEST_UPLOAD: u64 = 256 << 10;
/// A server that never answered at all is asked again for this long, and three times at least: its name may be wrong.
const FIRST_CONTACT: (Duration, u32) = (Duration::from_secs(10), 3);
/// A writer whose clock is further off the store's stops: `at` of its entries would push those of all others.
const CLOCKS_APART: i64 = 60;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A bucket of an S3-compatible store.
pub struct S3Store {
    inner: AmazonS3,
    config: S3Config,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    answered: AtomicBool,
    /// How far this machine's clock is before the server's, in seconds, as the last answer said.
    ahead: AtomicI64,
    requests: AtomicU64,
    probed: Mutex<bool>,
}

enum Broken {
    Error(object_store::Error),
    Silent,
}

impl From<object_store::Error> for Broken {
    fn from(error: object_store::Error) -> Self {
        Self::Error(error)
    }
}

impl From<tokio::time::error::Elapsed> for Broken {
    fn from(_: tokio::time::error::Elapsed) -> Self {
        Self::Silent
    }
}

impl S3Store {
    /// Makes the client; no request is made. The error names the variable that is missing.
    pub fn open(config: S3Config) -> Result<Self, StoreError> {
        let place = format!("s3://{}", config.bucket);
        let inner = config.client().map_err(|what| failed(&place, what))?;
        // A thread of its own serves the connections: between two calls nobody else would.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("lastcall-s3")
            .enable_all()
            .build()
            .map_err(|e| failed(&place, e))?;
        Ok(Self {
            inner,
            config,
            runtime: Some(runtime),
            answered: AtomicBool::new(false),
            ahead: AtomicI64::new(0),
            requests: AtomicU64::new(0),
            probed: Mutex::new(false),
        })
    }

    /// How many requests were made, those that were repeated included.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn key(&self, path: &str) -> Result<Path, StoreError> {
        match self.config.prefix.as_str() {
            "" => location(path),
            prefix => location(&format!("{prefix}/{path}")),
        }
    }

    /// An object's path in the ledger.
    fn path(&self, key: &Path) -> Option<String> {
        match self.config.prefix.as_str() {
            "" => Some(key.to_string()),
            prefix => key.as_ref().strip_prefix(prefix)?.strip_prefix('/').map(str::to_owned),
        }
    }

    fn sorted(&self, asked: &str, listed: Result<Vec<String>, Failure>) -> Result<Vec<String>, StoreError> {
        match listed {
            Ok(mut found) => {
                found.sort();
                Ok(found)
            }
            Err(Failure::Absent) => Ok(Vec::new()),
            Err(other) => Err(self.unexpected(asked, &other)),
        }
    }

    /// One request, once.
    fn attempt<T>(&self, run: impl Future<Output = Result<T, Broken>>) -> Result<T, Failure> {
        let Some(runtime) = &self.runtime else { return Err(Failure::Refused("it is closed".to_owned())) };
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (done, seen) = runtime.block_on(watched(run));
        if seen.status.is_some() {
            self.answered.store(true, Ordering::Relaxed);
        }
        if let Some(ahead) = seen.ahead {
            self.ahead.store(ahead, Ordering::Relaxed);
        }
        done.map_err(|broken| match broken {
            Broken::Silent => {
                Failure::Unclear(format!("no answer within {} s", self.config.timeout.as_secs_f32()))
            }
            Broken::Error(error) => failure(&seen, &chain_of(&error), &self.config),
        })
    }

    /// Asks until there is a clear answer or patience ends; `unclear_too`: an unclear answer is asked again as well.
    fn repeated<T>(
        &self,
        path: &str,
        unclear_too: bool,
        mut once: impl FnMut() -> Result<T, Failure>,
    ) -> Result<Result<T, Failure>, StoreError> {
        let start = Instant::now();
        let mut times = 0;
        loop {
            let what = match once() {
                Err(Failure::NotDone(what)) => what,
                Err(Failure::Unclear(what)) if unclear_too => what,
                Err(Failure::Unclear(what)) => {
                    return Err(StoreError::Ambiguous { path: self.shown(path), what });
                }
                Err(Failure::Refused(what)) => return Err(failed(&self.shown(path), what)),
                clear => return Ok(clear),
            };
            times += 1;
            let (patience, at_least) = match self.answered.load(Ordering::Relaxed) {
                true => (self.config.patience, 1),
                false => (self.config.patience.min(FIRST_CONTACT.0), FIRST_CONTACT.1),
            };
            let waited = start.elapsed();
            if waited >= patience && times >= at_least {
                let seconds = waited.as_secs();
                let what = format!("{what}; asked {times} times in {seconds} s; run it again later");
                return Err(StoreError::Away { path: self.shown(path), what });
            }
            std::thread::sleep(pause_before(times).min(patience.saturating_sub(waited)));
        }
    }

    /// A path as people know it.
    fn shown(&self, path: &str) -> String {
        let place =
            Location::Bucket { bucket: self.config.bucket.clone(), prefix: self.config.prefix.clone() };
        place.file(path)
    }

    fn unexpected(&self, path: &str, answer: &Failure) -> StoreError {
        failed(&self.shown(path), format!("an answer that does not fit the question: {answer:?}"))
    }

    fn check_clock(&self) -> Result<(), StoreError> {
        let ahead = self.ahead.load(Ordering::Relaxed);
        if ahead.abs() <= CLOCKS_APART {
            return Ok(());
        }
        let (seconds, way) = (ahead.abs(), if ahead > 0 { "ahead of" } else { "behind" });
        let what = format!("this machine's clock is {seconds} s {way} the store's; set it right");
        Err(failed(&self.shown(""), what))
    }

    fn write(&self, key: &Path, bytes: &Bytes, mode: PutMode) -> Result<(), Failure> {
        let seconds = bytes.len() as u64 / SLOWEST_UPLOAD;
        let limit = self.config.timeout.saturating_add(Duration::from_secs(seconds));
        self.attempt(async {
            let options = PutOptions { mode, ..PutOptions::default() };
            timeout(limit, self.inner.put_opts(key, bytes.clone().into(), options)).await??;
            Ok(())
        })
    }

    fn create_unprobed(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        let key = self.key(path)?;
        match self.repeated(path, false, || self.write(&key, bytes, PutMode::Create))? {
            Ok(()) => Ok(Created::Yes),
            Err(Failure::Exists) => Ok(Created::Exists),
            Err(other) => Err(self.unexpected(path, &other)),
        }
    }

    /// What one read brings; the time-out holds for the beginning of the answer and for each piece of it.
    fn read(&self, key: &Path) -> Result<Bytes, Failure> {
        let limit = self.config.timeout;
        self.attempt(async {
            let found = timeout(limit, self.inner.get_opts(key, GetOptions::default())).await??;
            let size = usize::try_from(found.meta.size).unwrap_or_default();
            let mut pieces = found.into_stream();
            let mut first: Option<Bytes> = None;
            let mut all = Vec::new();
            while let Some(piece) = timeout(limit, pieces.next()).await? {
                match (piece?, first.take()) {
                    (piece, None) if all.is_empty() => first = Some(piece),
                    (piece, before) => {
                        if let Some(before) = before {
                            all.reserve(size.min(1 << 30));
                            all.extend_from_slice(&before);
                        }
                        all.extend_from_slice(&piece);
                    }
                }
            }
            Ok(first.unwrap_or_else(|| all.into()))
        })
    }
}

/// Doubling, up to a limit, with half of it left to chance so that writers that collided do not collide again.
fn pause_before(attempt: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST_PAUSE);
    let mut random = [0u8; 2];
    // Without chance the pause is whole.
    let chance =
        getrandom::fill(&mut random).map_or(1.0, |()| f64::from(u16::from_le_bytes(random)) / 65536.0);
    doubled.mul_f64(0.5 + chance / 2.0)
}

impl Store for S3Store {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        self.probe()?;
        self.create_unprobed(path, bytes)
    }

    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.probe()?;
        let key = self.key(path)?;
        match self.repeated(path, true, || self.write(&key, bytes, PutMode::Overwrite))? {
            Ok(()) => Ok(()),
            Err(other) => Err(self.unexpected(path, &other)),
        }
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        let key = self.key(path)?;
        match self.repeated(path, true, || self.read(&key))? {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Failure::Absent) => Ok(None),
            Err(other) => Err(self.unexpected(path, &other)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let key = self.key(prefix)?;
        let limit = self.config.timeout;
        let listed = self.repeated(prefix, true, || {
            self.attempt(async {
                let mut paths = Vec::new();
                let mut found = self.inner.list(Some(&key));
                while let Some(object) = timeout(limit, found.next()).await? {
                    paths.extend(self.path(&object?.location));
                }
                Ok(paths)
            })
        })?;
        self.sorted(prefix, listed)
    }

    fn list_after(&self, folder: &str, name: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let key = self.key(folder)?;
        // Before every name of a file: an offset is needed, and no name is empty.
        let offset = self.key(&format!("{folder}/{}", if name.is_empty() { "!" } else { name }))?;
        let start = format!("{folder}/");
        let limit = self.config.timeout;
        let listed = self.repeated(folder, true, || {
            self.attempt(async {
                let mut names = Vec::new();
                let mut found = self.inner.list_with_offset(Some(&key), &offset);
                while names.len() < most
                    && let Some(object) = timeout(limit, found.next()).await?
                {
                    let path = self.path(&object?.location);
                    let name = path.as_deref().and_then(|path| path.strip_prefix(&start));
                    names.extend(name.filter(|name| !name.contains('/')).map(str::to_owned));
                }
                Ok(names)
            })
        })?;
        self.sorted(folder, listed)
    }

    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let key = self.key(folder)?;
        let limit = self.config.timeout;
        let listed = self.repeated(folder, true, || {
            self.attempt(async {
                let found = timeout(limit, self.inner.list_with_delimiter(Some(&key))).await??;
                let names =
                    found.common_prefixes.iter().filter_map(|path| path.filename().map(str::to_owned));
                Ok(names.collect())
            })
        })?;
        self.sorted(folder, listed)
    }

    fn delete(&self, path: &str) -> Result<(), StoreError> {
        let key = self.key(path)?;
        let limit = self.config.timeout;
        let gone = self.repeated(path, true, || {
            self.attempt(async {
                timeout(limit, self.inner.delete(&key)).await??;
                Ok(())
            })
        })?;
        match gone {
            Ok(()) | Err(Failure::Absent) => Ok(()),
            Err(other) => Err(self.unexpected(path, &other)),
        }
    }

    /// One request where the probe's object stands already, two or three the first time.
    fn probe(&self) -> Result<(), StoreError> {
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        if *probed {
            return Ok(());
        }
        let text = Bytes::from_static(PROBE_TEXT.as_bytes());
        let start = Instant::now();
        // The first one may make it; then it stands, and the next must be refused.
        let (mut made, mut attempt) = (0, 0);
        while made < 2 {
            match self.create_unprobed(PROBE, &text) {
                Ok(Created::Exists) => {
                    self.check_clock()?;
                    *probed = true;
                    return Ok(());
                }
                Ok(Created::Yes) => made += 1,
                Err(StoreError::Ambiguous { .. }) if start.elapsed() < self.config.patience => {
                    attempt += 1;
                    self.pause(attempt);
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed(
            &format!("s3://{}", self.config.bucket),
            "this store ignores `If-None-Match: *`: it overwrote an object that it was to create only if absent, and two \
             writers would lose each other's record. Nothing was written but the probe. Use a store or a version that \
             has conditional writes (AWS S3 has them), or a folder on a disk",
        ))
    }

    fn pause(&self, attempt: u32) {
        std::thread::sleep(pause_before(attempt));
    }
}

/// Connections and look-ups under way are not waited for.
impl Drop for S3Store {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
