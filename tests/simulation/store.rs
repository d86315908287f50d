//! One process's view of the store: it fails, dies and answers unclearly; what it wrote stays.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use lastcall_ledger::store::{Bytes, Created, MemoryStore, Store, StoreError};
use lastcall_tests::chance::Rng;

use crate::hands::{Beside, Turns};
use crate::steps::{Fate, Point, Step, hit, met};

/// What is wrong with the store itself: such a record must not pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Broken {
    /// A second create overwrites.
    CreateOverwrites,
    /// A second create says that it won.
    CreateSaysYes,
    /// Every fifth data file is lost.
    PutLoses,
}

/// What lies under the faults: memory, a folder, or a bucket.
#[derive(Clone)]
pub enum Under {
    Memory(MemoryStore),
    Real(Arc<dyn Store>),
}

impl Under {
    fn store(&self) -> &dyn Store {
        match self {
            Self::Memory(store) => store,
            Self::Real(store) => &**store,
        }
    }

    fn overwrite(&self, path: &str, bytes: Bytes) {
        match self {
            Self::Memory(store) => store.overwrite(path, bytes),
            Self::Real(_) => unreachable!("only memory is broken on purpose"),
        }
    }
}

impl Store for Under {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        self.store().create(path, bytes)
    }

    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.store().put(path, bytes)
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.store().get(path)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.store().list(prefix)
    }

    fn list_after(&self, folder: &str, name: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.store().list_after(folder, name, limit)
    }

    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.store().folders(folder)
    }

    fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.store().delete(path)
    }

    fn pause(&self, attempt: u32) {
        self.store().pause(attempt);
    }
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Recorder,
    Compactor,
    Eraser,
    Expirer,
    Collector,
}

/// Entries whose answer was lost, and which take effect later.
pub type Late = Arc<Mutex<Vec<(String, Bytes)>>>;

pub struct Faults {
    pub rng: Rng,
    pub percent: u64,
    pub late: Late,
}

pub struct FaultyStore {
    pub inner: Under,
    pub who: Who,
    pub broken: Option<Broken>,
    faults: Mutex<Faults>,
    dead: AtomicBool,
    /// Whether anything went wrong that was meant to.
    hurt: AtomicBool,
    /// Where a process waits for its turn before each operation; recorders have none.
    pub turns: Option<Arc<Turns>>,
    /// Who goes on while a recorder is inside an operation.
    beside: Option<Arc<Beside>>,
}

fn crashed(path: &str) -> StoreError {
    StoreError::Failed { path: path.to_owned(), what: "crashed".to_owned() }
}

fn unclear(path: &str) -> StoreError {
    StoreError::Ambiguous { path: path.to_owned(), what: "timed out".to_owned() }
}

fn is_genesis(path: &str) -> bool {
    path.ends_with("/00000000000000000000.json")
}

impl FaultyStore {
    pub fn recorder(inner: Under, broken: Option<Broken>, faults: Faults, beside: Arc<Beside>) -> Self {
        Self::new(inner, Who::Recorder, broken, faults, None, Some(beside))
    }

    pub fn hand(inner: Under, who: Who, broken: Option<Broken>, faults: Faults, turns: Arc<Turns>) -> Self {
        Self::new(inner, who, broken, faults, Some(turns), None)
    }

    fn new(
        inner: Under,
        who: Who,
        broken: Option<Broken>,
        faults: Faults,
        turns: Option<Arc<Turns>>,
        beside: Option<Arc<Beside>>,
    ) -> Self {
        let (dead, hurt) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { inner, who, broken, faults: Mutex::new(faults), dead, hurt, turns, beside }
    }

    /// Ends the process: nothing that it asks for is answered any more.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.hurt.store(true, Ordering::Relaxed);
    }

    /// Whether something was done to this process.
    pub fn hurt(&self) -> bool {
        self.hurt.load(Ordering::Relaxed)
    }

    /// Waits for this process's turn, or lets another go on inside a recorder's operation.
    fn turn(&self, path: &str) -> Result<MutexGuard<'_, Faults>, StoreError> {
        if let Some(turns) = &self.turns {
            turns.wait();
        }
        if let Some(beside) = &self.beside {
            let mut f = self.faults.lock().unwrap();
            if f.rng.chance(6) {
                let (which, operations) = (f.rng.next(), 1 + f.rng.below(30));
                drop(f);
                if beside.go_on(which, operations) {
                    hit(Step::beside);
                }
            }
        }
        match self.dead.load(Ordering::Relaxed) {
            true => Err(crashed(path)),
            false => Ok(self.faults.lock().unwrap()),
        }
    }

    fn dies(&self, point: Point, fate: Fate, path: &str) -> StoreError {
        self.kill();
        met(point, fate);
        crashed(path)
    }

    fn unclear(&self, point: Point, fate: Fate, path: &str) -> StoreError {
        self.hurt.store(true, Ordering::Relaxed);
        met(point, fate);
        unclear(path)
    }

    fn creating(&self, path: &str) -> Point {
        match (self.who, path.split('/').next()) {
            (Who::Recorder, _) if is_genesis(path) => Point::RecorderGenesis,
            (Who::Recorder, _) => Point::RecorderEntry,
            (Who::Compactor, Some("objects")) => Point::CompactorObject,
            (Who::Compactor, _) => Point::CompactorEntry,
            (Who::Eraser, _) => Point::EraserEntry,
            (Who::Expirer, _) => Point::ExpirerEntry,
            (Who::Collector, _) => panic!("gc creates {path}"),
        }
    }

    fn putting(&self, path: &str) -> Point {
        match (self.who, path.split('/').next()) {
            (Who::Recorder, Some("calls")) => Point::RecorderCalls,
            (Who::Recorder, Some("results")) => Point::RecorderResults,
            (Who::Recorder, Some("dead")) => Point::RecorderDead,
            (Who::Compactor, Some("days")) => Point::CompactorDay,
            (Who::Eraser, Some("calls" | "dead")) => Point::EraserFile,
            (who, _) => panic!("{who:?} puts {path}"),
        }
    }

    fn reading(&self) -> Point {
        match self.who {
            Who::Recorder => Point::RecorderRead,
            Who::Compactor => Point::CompactorRead,
            Who::Eraser => Point::EraserRead,
            Who::Expirer => Point::ExpirerRead,
            Who::Collector => Point::CollectorRead,
        }
    }

    /// Dies before or after a write, so many times of a hundred.
    fn write(
        &self,
        f: &mut Faults,
        point: Point,
        path: &str,
        write: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        met(point, Fate::Reached);
        let percent = f.percent;
        if !f.rng.chance(percent) {
            return write();
        }
        if f.rng.chance(50) {
            return Err(self.dies(point, Fate::Before, path));
        }
        write()?;
        Err(self.dies(point, Fate::After, path))
    }

    /// One look at the store.
    fn read<T>(&self, path: &str, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut f = self.turn(path)?;
        let point = self.reading();
        met(point, Fate::Reached);
        // Of a recorder only what it reads of its own chain, which it reads again and again.
        let share = match self.who {
            Who::Recorder if path.starts_with("chains/src") => 10,
            Who::Recorder => 0,
            _ => 3,
        };
        let percent = f.percent;
        if f.rng.chance(percent) && f.rng.chance(share) {
            return Err(match f.rng.chance(50) {
                true => self.dies(point, Fate::Before, path),
                false => self.unclear(point, Fate::Unread, path),
            });
        }
        read()
    }
}

impl Store for FaultyStore {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        let mut f = self.turn(path)?;
        let point = self.creating(path);
        met(point, Fate::Reached);
        let percent = f.percent;
        if f.rng.chance(percent) {
            match f.rng.below(5) {
                0 => return Err(self.dies(point, Fate::Before, path)),
                1 => {
                    self.inner.create(path, bytes)?;
                    return Err(self.dies(point, Fate::After, path));
                }
                2 => {
                    self.inner.create(path, bytes)?;
                    return Err(self.unclear(point, Fate::Done, path));
                }
                3 => return Err(self.unclear(point, Fate::NotDone, path)),
                _ => {
                    f.late.lock().unwrap().push((path.to_owned(), bytes.clone()));
                    let error = self.unclear(point, Fate::Later, path);
                    // Half of the time nobody lives to ask again.
                    if f.rng.chance(50) {
                        self.kill();
                    }
                    return Err(error);
                }
            }
        }
        match self.broken {
            Some(Broken::CreateOverwrites) => {
                self.inner.overwrite(path, bytes.clone());
                return Ok(Created::Yes);
            }
            Some(Broken::CreateSaysYes) => return self.inner.create(path, bytes).map(|_| Created::Yes),
            _ => {}
        }
        let created = self.inner.create(path, bytes)?;
        if created == Created::Exists && self.inner.get(path)?.is_some_and(|there| there != *bytes) {
            met(point, Fate::Lost);
        }
        Ok(created)
    }

    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        let mut f = self.turn(path)?;
        assert!(self.inner.get(path)?.is_none(), "a data file was written over: {path}");
        let loses = self.broken == Some(Broken::PutLoses) && f.rng.chance(20);
        self.write(&mut f, self.putting(path), path, || match loses {
            true => Ok(()),
            false => self.inner.put(path, bytes),
        })
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.read(path, || self.inner.get(path))
    }

    fn list_after(&self, folder: &str, name: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.read(folder, || self.inner.list_after(folder, name, limit))
    }

    fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.read(folder, || self.inner.folders(folder))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let mut f = self.turn(prefix)?;
        let point = match self.who {
            Who::Eraser => Point::EraserList,
            Who::Collector => Point::CollectorList,
            who => panic!("{who:?} lists {prefix}"),
        };
        met(point, Fate::Reached);
        let percent = f.percent;
        if f.rng.chance(percent) && f.rng.chance(20) {
            return Err(self.dies(point, Fate::Before, prefix));
        }
        self.inner.list(prefix)
    }

    fn delete(&self, path: &str) -> Result<(), StoreError> {
        let mut f = self.turn(path)?;
        assert!(self.who == Who::Collector, "{:?} removes {path}", self.who);
        self.write(&mut f, Point::CollectorDelete, path, || self.inner.delete(path))
    }

    fn pause(&self, attempt: u32) {
        self.inner.pause(attempt);
    }
}
