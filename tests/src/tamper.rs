//! Every way to tamper with a ledger's directory, enumerated from the directory itself, and whether verify names it.
//!
//! Which files belong to the record is read from its text (which path and which digest stands anywhere), with no code of
//! the ledger's own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lastcall_ledger::Ledger;
use lastcall_ledger::store::{Bytes, Created, Store, StoreError};
use lastcall_ledger::verify::{Asked, Finding, Outcome, Verification, verify_with};

pub use crate::forge::forge;

/// A ledger's files by path.
pub type Files = BTreeMap<String, Bytes>;
/// What stands at some paths instead; `None`: nothing.
pub type Changes = BTreeMap<String, Option<Bytes>>;

/// Reads a folder whole.
pub fn load(dir: &Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("it lies in the folder").to_str().expect("UTF-8");
                files.insert(name.to_owned(), std::fs::read(&path).expect("it can be read").into());
            }
        }
    }
    files
}

/// Writes changes into a folder.
pub fn write(dir: &Path, changes: &Changes) {
    for (path, bytes) in changes {
        let path = dir.join(path);
        match bytes {
            Some(bytes) => {
                std::fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("it can be made");
                std::fs::write(path, bytes).expect("it can be written");
            }
            None => std::fs::remove_file(path).expect("it can be removed"),
        }
    }
}

/// A ledger with some files changed; nothing is copied, and nothing can be written.
pub struct Overlay {
    /// What stands there.
    pub base: Arc<Files>,
    /// What was changed.
    pub changes: Changes,
}

impl Store for Overlay {
    fn create(&self, path: &str, _: &Bytes) -> Result<Created, StoreError> {
        Err(StoreError::Failed { path: path.to_owned(), what: "verify writes nothing".to_owned() })
    }
    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.create(path, bytes).map(|_| ())
    }
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(match self.changes.get(path) {
            Some(changed) => changed.clone(),
            None => self.base.get(path).cloned(),
        })
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let folder = format!("{prefix}/");
        let mut paths: BTreeSet<&String> = self.base.keys().chain(self.changes.keys()).collect();
        paths.retain(|p| p.starts_with(&folder) && !matches!(self.changes.get(*p), Some(None)));
        Ok(paths.into_iter().cloned().collect())
    }
    fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.create(path, &Bytes::new()).map(|_| ())
    }
}

/// One way to tamper.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// Which kind.
    pub category: &'static str,
    /// What was done, and where.
    pub what: String,
    /// What stands there then.
    pub changes: Changes,
    /// A finding has to name one of these.
    pub named: Vec<String>,
}

/// What belongs to the record.
#[derive(Clone, Debug, Default)]
pub struct Belonging {
    /// Files that a change of has to be found.
    pub named: BTreeSet<String>,
    /// Files that an erasure or an expiry took out of the record.
    pub superseded: BTreeMap<String, Option<String>>,
    /// Files that nothing names.
    pub orphans: BTreeSet<String>,
}

/// Sorts the files of a directory by what its text says of them.
pub fn belonging(files: &Files) -> Belonging {
    let mut out = Belonging::default();
    let text: String = files
        .iter()
        .filter(|(path, _)| path.starts_with("chains/") || path.starts_with("objects/"))
        .filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok())
        .collect();
    for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with("chains/control/")) {
        let entry: serde_json::Value =
            serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{path}: {e}"));
        for file in entry["body"]["files"].as_array().into_iter().flatten() {
            let old = file["old"]["path"].as_str().or(file["path"].as_str()).expect("a file has a path");
            let new = file["new"]["path"].as_str().map(str::to_owned);
            out.superseded.insert(old.to_owned(), new);
        }
    }
    for path in files.keys() {
        let is_named = match path.split_once('/') {
            None => path == "ledger.json",
            Some(("chains", _)) => true,
            Some(("objects", hex)) => text.contains(&format!("sha256:{hex}")),
            Some(_) => text.contains(&format!("\"{path}\"")),
        };
        if out.superseded.contains_key(path) {
            continue;
        }
        if is_named {
            out.named.insert(path.clone())
        } else {
            out.orphans.insert(path.clone())
        };
    }
    out
}

fn flipped(bytes: &Bytes, at: usize) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes.into()
}

fn kind(path: &str) -> &str {
    let end = if path.starts_with("chains/") { path.rfind('/') } else { path.find('/') };
    end.map_or(path, |end| &path[..end])
}

/// What can be done to single files: a flipped byte at the start, in the middle and at the end, truncation, deletion,
/// an older version where there is one, a swap with the next file of its kind.
pub fn of_files(files: &Files, belonging: &Belonging) -> Vec<Mutation> {
    let mut out = Vec::new();
    let mut add = |category, what: String, changes: Vec<(&String, Option<Bytes>)>| {
        let changes: Changes = changes.into_iter().map(|(path, bytes)| (path.clone(), bytes)).collect();
        if changes.iter().any(|(path, bytes)| files.get(path) != bytes.as_ref()) {
            let named = changes.keys().cloned().collect();
            out.push(Mutation { category, what, changes, named });
        }
    };
    let older: BTreeMap<&String, &String> =
        belonging.superseded.iter().filter_map(|(old, new)| Some((new.as_ref()?, old))).collect();
    for path in &belonging.named {
        let bytes = &files[path];
        let last = bytes.len() - 1;
        for (place, at) in [("start", 0), ("middle", last / 2), ("end", last)] {
            add("flipped byte", format!("{path}: {place}"), vec![(path, Some(flipped(bytes, at)))]);
        }
        for (how, length) in [("one byte", last), ("half", bytes.len() / 2), ("all", 0)] {
            let cut = bytes.slice(..length);
            add("truncation", format!("{path}: {how} is gone"), vec![(path, Some(cut))]);
        }
        add("deletion", path.clone(), vec![(path, None)]);
        let mut versions: Vec<&String> = older.get(path).into_iter().copied().collect();
        // Another revision of a day; another entry or signature of a chain: its file name differs by a number alone.
        let suffix = path.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        if path.starts_with("days/") || path.starts_with("chains/") {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let others = files.keys().filter(|p| p.rsplit_once('/').is_some_and(|(f, _)| f == folder));
            versions.extend(others.filter(|p| p.ends_with(suffix) && *p < path));
        }
        for version in versions.into_iter().filter(|v| files.contains_key(*v)) {
            let what = format!("{path}: by {version}");
            add("older version", what, vec![(path, Some(files[version].clone()))]);
        }
        let next = belonging
            .named
            .range(path.clone()..)
            .skip(1)
            .find(|p| kind(p) == kind(path) && p.ends_with(suffix));
        if let Some(next) = next {
            let changes = vec![(path, Some(files[next].clone())), (next, Some(bytes.clone()))];
            add("swap with a neighbour", format!("{path} and {next}"), changes);
        }
    }
    out
}

/// The entries of every chain, by its folder, in order.
pub fn chains(files: &Files) -> BTreeMap<String, Vec<String>> {
    let mut chains: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files.keys().filter(|p| p.starts_with("chains/") && p.ends_with(".json")) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        chains.entry(folder.to_owned()).or_default().push(path.clone());
    }
    chains
}

/// What can be done to chains as such: an entry taken out or doubled with the rest moved up or down, two neighbours
/// reordered, the tail repeated, the end cut off, a hole of any size.
pub fn of_chains(files: &Files) -> Vec<Mutation> {
    let mut out = Vec::new();
    for (chain, entries) in chains(files) {
        let next = format!("{chain}/{:020}.json", entries.len());
        let contents: Vec<Bytes> = entries.iter().map(|path| files[path].clone()).collect();
        let mut add = |category, what: String, contents: Vec<Bytes>, named: std::ops::Range<usize>| {
            let paths = entries.iter().chain([&next]);
            let mut contents = contents.into_iter();
            let changes: Changes = paths.map(|path| (path.clone(), contents.next())).collect();
            let changes: Changes =
                changes.into_iter().filter(|(path, bytes)| files.get(path) != bytes.as_ref()).collect();
            let named = entries.iter().chain([&next]).skip(named.start).take(named.len()).cloned().collect();
            out.push(Mutation { category, what, changes, named });
        };
        for at in 0..entries.len() {
            let mut without = contents.clone();
            without.remove(at);
            add("entry taken out", format!("{}, the rest moves up", entries[at]), without, at..at + 2);
            let mut twice = contents.clone();
            twice.insert(at, contents[at].clone());
            add("entry doubled", format!("{}, the rest moves down", entries[at]), twice, at..at + 2);
            if at + 1 < entries.len() {
                let mut reordered = contents.clone();
                reordered.swap(at, at + 1);
                add("neighbours reordered", format!("{} and the next", entries[at]), reordered, at..at + 2);
            }
        }
        let mut again = contents.clone();
        again.push(contents[contents.len() - 1].clone());
        add("entry doubled", format!("{chain}: the tail once more"), again, entries.len()..entries.len() + 1);
        let lengths: BTreeSet<usize> = [entries.len() - 1, entries.len() / 2, 1, 0].into();
        for length in lengths.into_iter().filter(|length| *length < entries.len()) {
            let what = format!("{chain}: {} of {} entries are left", length, entries.len());
            let mut cut = contents.clone();
            cut.truncate(length);
            // Whatever is missing may be named: the first that is, or the one that others name.
            add("end cut off", what, cut, length..entries.len());
        }
        for from in 0..entries.len() {
            for length in [1, 2, 3, 4, 5, 7, 9, 12] {
                let gone = entries.iter().skip(from).take(length);
                if from + length >= entries.len() {
                    continue;
                }
                let what = format!("{}: {length} are gone, others stand behind", entries[from]);
                let changes = gone.clone().map(|path| (path.clone(), None)).collect();
                out.push(Mutation { category: "hole", what, changes, named: gone.cloned().collect() });
            }
        }
        for far in [1, 3, 50] {
            let stray = format!("{chain}/{:020}.json", entries.len() + far);
            let changes = Changes::from([(stray, Some(contents[0].clone()))]);
            let what = format!("{chain}: an entry {far} behind the next");
            out.push(Mutation { category: "hole", what, changes, named: vec![next.clone()] });
        }
    }
    out
}

/// What came of one mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// A finding names it.
    Named,
    /// Something was found, and nothing of what was changed is named.
    Unnamed(String),
    /// Nothing was found, and the report says that it cannot be excluded.
    NotExcluded,
    /// Nothing was found.
    Missed,
}

/// Verifies the directory as it is.
pub fn verified(files: &Arc<Files>, changes: Changes, asked: &Asked) -> Result<Verification, String> {
    let overlay = Overlay { base: files.clone(), changes };
    let ledger = Ledger::open_in(Arc::new(overlay), "memory").map_err(|e| e.to_string())?;
    verify_with(&ledger, asked, &mut |_| {}).map_err(|e| e.to_string())
}

/// Verifies the directory with one change. `before` are the findings of the untouched one.
pub fn try_one(files: &Arc<Files>, mutation: &Mutation, asked: &Asked, before: &[Finding]) -> Came {
    let names = |text: &str| mutation.named.iter().any(|path| text.contains(path.as_str()));
    let report = match verified(files, mutation.changes.clone(), asked) {
        Ok(report) => report,
        Err(error) if names(&error) => return Came::Named,
        Err(error) => return Came::Unnamed(error),
    };
    let new: Vec<&Finding> = report.findings.iter().filter(|f| !before.contains(f)).collect();
    let said = |f: &Finding| format!("{} {} {}", f.place, f.record.clone().unwrap_or_default(), f.what);
    if new.iter().any(|f| f.outcome != Outcome::Intact && names(&said(f))) {
        return Came::Named;
    }
    match new.first() {
        Some(finding) => Came::Unnamed(said(finding)),
        None if report.not_excluded.contains("cannot be excluded") => Came::NotExcluded,
        None => Came::Missed,
    }
}

/// Tries every mutation, on every core; what came of each, in order.
pub fn try_all(files: &Arc<Files>, mutations: &[Mutation], asked: &Asked) -> Vec<Came> {
    let before = verified(files, Changes::new(), asked).expect("the untouched ledger can be read").findings;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(mutation) = mutations.get(at) else { return done };
            done.push((at, try_one(files, mutation, asked, &before)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let mut came: Vec<(usize, Came)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no worker panics")).collect()
    });
    came.sort_by_key(|(at, _)| *at);
    came.into_iter().map(|(_, came)| came).collect()
}
