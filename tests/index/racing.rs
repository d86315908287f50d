//! Compactions that race, crash and fold in steps of any size.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use lastcall_ledger::Ledger;
use lastcall_ledger::index::{CompactLimits, compact_within};
use lastcall_ledger::store::{Bytes, Created, MemoryStore, Store, StoreError};

use crate::world::World;

/// A compactor's view of the store: another one may be faster just before its append, and it may die at any write.
struct Racing {
    inner: MemoryStore,
    /// Runs just before the next index entry is created.
    rival: Mutex<Option<(Ledger, CompactLimits)>>,
    /// Writes until it dies; negative: never.
    left: AtomicI64,
    raced: AtomicBool,
}

impl Racing {
    fn write(&self, path: &str) -> Result<(), StoreError> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.left.store(0, Ordering::Relaxed);
            return Err(StoreError::Failed { path: path.to_owned(), what: "crashed".to_owned() });
        }
        Ok(())
    }
}

impl Store for Racing {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        self.write(path)?;
        if path.starts_with("chains/index/")
            && let Some((rival, limits)) = self.rival.lock().unwrap().take()
        {
            compact_within(&rival, limits, &mut |_| {}).unwrap();
            self.raced.store(true, Ordering::Relaxed);
        }
        self.inner.create(path, bytes)
    }
    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.write(path)?;
        assert!(self.inner.get(path)?.is_none(), "a data file was written over: {path}");
        self.inner.put(path, bytes)
    }
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(path)
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.inner.list(prefix)
    }
    fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.inner.delete(path)
    }
}

impl World {
    pub fn limits(&mut self) -> CompactLimits {
        CompactLimits {
            step: 1 + self.rng.below(12) as usize,
            behind: self.rng.below(30) as usize,
            rows: 1 + self.rng.below(40),
            days: 1 + self.rng.below(9) as usize,
        }
    }

    pub fn compact(&mut self) {
        let limits = self.limits();
        let racing = Arc::new(Racing {
            inner: self.store.clone(),
            rival: Mutex::new(None),
            left: AtomicI64::new(-1),
            raced: AtomicBool::new(false),
        });
        if self.rng.chance(30) {
            let rival = Ledger::open_in(Arc::new(self.store.clone()), "memory").unwrap();
            *racing.rival.lock().unwrap() = Some((rival, self.limits()));
        }
        let dies = self.rng.chance(25);
        if dies {
            racing.left.store(self.rng.below(12) as i64, Ordering::Relaxed);
        }
        let ledger = Ledger::open_in(racing.clone(), "memory").unwrap();
        match compact_within(&ledger, limits, &mut |_| {}) {
            Ok(done) => {
                if racing.raced.load(Ordering::Relaxed) && done.lost > 0 {
                    self.hit("a compactor lost");
                }
                if done.revised > 0 {
                    self.hit("a day was revised");
                }
                if done.folded > 0 {
                    self.hit("entries were folded");
                }
                let again = compact_within(&ledger, limits, &mut |_| {}).unwrap();
                assert_eq!((again.entries, again.files), (0, 0), "nothing was new");
            }
            Err(error) => {
                assert!(dies, "{error}");
                self.hit("a compactor died");
            }
        }
    }
}
