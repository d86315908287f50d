//! Erasure, expiry and garbage, over a store in memory that can be stopped, made unclear or entered by somebody else at
//! every single step. What holds at the end: what was to go is in no file, everything else is as it was recorded.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lastcall_contract::{Contract, Definition, Pick};
use lastcall_diff::Rng;
use lastcall_ledger::control::Control;
use lastcall_ledger::entry::FileKind;
use lastcall_ledger::erasure::{Erased, Expiry, Request, Selection, erase, expire};
use lastcall_ledger::gc::{Why, gc};
use lastcall_ledger::store::{Bytes, Created, MemoryStore, Store, StoreError};
use lastcall_ledger::verify::{Outcome, verify};
use lastcall_ledger::{Ledger, LedgerClock, LedgerError};
use lastcall_record::{Limits, RunOptions, run_file};
use lastcall_tests::observe;

// ---------------------------------------------------------------------------------------------------- store

/// What happens at one operation of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It dies before the operation.
    DiesBefore,
    /// It dies after it, without an answer.
    DiesAfter,
    /// It gets no clear answer to a create that took effect.
    UnclearDone,
    /// It gets no clear answer to a create that did not.
    UnclearNotDone,
    /// Somebody else does their whole work in front of it.
    Entered,
}

type Visit = Box<dyn FnOnce() + Send>;

/// One process's view of the store.
struct Stepped {
    inner: MemoryStore,
    steps: AtomicUsize,
    at: usize,
    fault: Option<Fault>,
    visit: Mutex<Option<Visit>>,
}

impl Stepped {
    fn new(inner: &MemoryStore, at: usize, fault: Option<Fault>) -> Arc<Self> {
        let (steps, visit) = (AtomicUsize::new(0), Mutex::new(None));
        Arc::new(Self { inner: inner.clone(), steps, at, fault, visit })
    }

    fn entered(inner: &MemoryStore, at: usize, visit: Visit) -> Arc<Self> {
        let (steps, visit) = (AtomicUsize::new(0), Mutex::new(Some(visit)));
        Arc::new(Self { inner: inner.clone(), steps, at, fault: Some(Fault::Entered), visit })
    }

    fn taken(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }

    fn ledger(self: &Arc<Self>) -> Result<Ledger, LedgerError> {
        Ledger::open_in(self.clone(), "stepped")
    }

    fn step<T>(
        &self,
        path: &str,
        creates: bool,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let step = self.steps.fetch_add(1, Ordering::SeqCst);
        let dead = || StoreError::Failed { path: path.to_owned(), what: "died".to_owned() };
        let unclear = || StoreError::Ambiguous { path: path.to_owned(), what: "timed out".to_owned() };
        match self.fault {
            Some(Fault::DiesBefore) if step >= self.at => Err(dead()),
            Some(Fault::DiesAfter) if step > self.at => Err(dead()),
            Some(Fault::DiesAfter) if step == self.at => work().and(Err(dead())),
            Some(Fault::UnclearDone) if step == self.at && creates => work().and(Err(unclear())),
            Some(Fault::UnclearNotDone) if step == self.at && creates => Err(unclear()),
            Some(Fault::Entered) if step == self.at => {
                let visit = self.visit.lock().unwrap().take();
                if let Some(visit) = visit {
                    visit();
                }
                work()
            }
            _ => work(),
        }
    }
}

impl Store for Stepped {
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        self.step(path, true, || self.inner.create(path, bytes))
    }
    fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        self.step(path, false, || {
            assert!(self.inner.get(path)?.is_none(), "a data file was written over: {path}");
            self.inner.put(path, bytes)
        })
    }
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.step(path, false, || self.inner.get(path))
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.step(prefix, false, || self.inner.list(prefix))
    }
    fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.step(path, false, || self.inner.delete(path))
    }
}

// ---------------------------------------------------------------------------------------------------- a record

/// One call, as it was fed in.
#[derive(Clone, Debug)]
struct Fed {
    call_id: String,
    session: String,
    agent: &'static str,
    secret: String,
}

#[derive(Clone)]
struct World {
    store: MemoryStore,
    calls: Vec<Fed>,
    /// Text and the call id that it names.
    dead: Vec<(String, Option<String>)>,
}

const AGENTS: [&str; 3] = ["agent-one", "agent-two", "agent-three"];

fn random_word(rng: &mut Rng) -> String {
    (0..24).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}

fn line(fed: &Fed, n: usize) -> String {
    let named = if n.is_multiple_of(3) { "run_id" } else { "session_id" };
    format!(
        r#"{{"type":"tool_call","schema_version":1,"call_id":"{}","ts":"2020-06-0{}T10:00:00Z","tool_id":"search","contract_id":"search@1","arguments":{{"query":"{}","limit":{}}},"outcome":{{"status":"ok"}},"envelope":{{"agent_id":"{}","{named}":"{}"}}}}"#,
        fed.call_id,
        1 + n % 3,
        fed.secret,
        n % 70,
        fed.agent,
        fed.session
    )
}

fn fed(rng: &mut Rng) -> Fed {
    Fed {
        call_id: random_word(rng),
        session: format!("{}/{}", random_word(rng), rng.below(9)),
        agent: AGENTS[rng.below(3) as usize],
        secret: random_word(rng),
    }
}

fn record(ledger: &Ledger, source: &str, text: &str, chunk: u64) -> Result<(), lastcall_record::RunError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let options = RunOptions {
        source: Some(source.to_owned()),
        limits: Limits { records: chunk, ..Limits::default() },
        ..RunOptions::default()
    };
    run_file(ledger, file.path(), &options, &mut |_| {}).map(drop)
}

impl World {
    /// Some calls in several chunks, a few sessions with several calls, and dead letters of which some name a call.
    fn new(seed: u64, count: usize, chunk: u64) -> Self {
        let mut rng = Rng::new(seed);
        let store = MemoryStore::default();
        let ledger = Ledger::init_in(Arc::new(store.clone()), LedgerClock::System, "memory").unwrap();
        let contract = |id: &str, most: u32| {
            let text = format!(
                r#"{{"name":"search","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string"}},"limit":{{"type":"integer","maximum":{most}}}}}}}}}"#
            );
            Contract::new(id, Definition::from_text(id, &text, Pick::default()).unwrap())
        };
        observe(&ledger, &contract("search@1", 100), &contract("search@2", 50), &Default::default());
        let (mut calls, mut dead, mut text): (Vec<Fed>, Vec<_>, String) =
            (Vec::new(), Vec::new(), String::new());
        for n in 0..count {
            let mut call = fed(&mut rng);
            if let Some(earlier) = calls.get(n.wrapping_sub(2)).filter(|_| rng.below(3) == 0) {
                call.session.clone_from(&earlier.session);
            }
            text += &(line(&call, n) + "\n");
            match rng.below(6) {
                0 => {
                    // cut off behind the id
                    let broken = format!(r#"{{"type":"tool_call","call_id":"{}"#, call.call_id);
                    text += &(broken.clone() + "\n");
                    dead.push((broken, Some(call.call_id.clone())));
                }
                1 => {
                    let broken = format!(r#"{{"type":"other","note":"{}"}}"#, random_word(&mut rng));
                    text += &(broken.clone() + "\n");
                    dead.push((broken, None));
                }
                _ => {}
            }
            calls.push(call);
        }
        record(&ledger, "calls", &text, chunk).unwrap();
        Self { store, calls, dead }
    }

    fn ledger(&self) -> Ledger {
        Ledger::open_in(Arc::new(self.store.clone()), "memory").unwrap()
    }

    /// The same bytes in a store of their own.
    fn copy(&self) -> Self {
        let store = MemoryStore::default();
        for folder in ["chains", "objects", "calls", "results", "dead"] {
            for path in self.store.list(folder).unwrap() {
                store.overwrite(&path, self.store.get(&path).unwrap().unwrap());
            }
        }
        store.overwrite("ledger.json", self.store.get("ledger.json").unwrap().unwrap());
        Self { store, ..self.clone() }
    }

    /// Everything that the record holds, as text: entries, objects, and every row of every file that now stands.
    fn said(&self) -> String {
        use std::fmt::Write as _;
        let ledger = self.ledger();
        let mut out = String::new();
        for folder in ["chains", "objects"] {
            for path in self.store.list(folder).unwrap() {
                out += &String::from_utf8_lossy(&self.store.get(&path).unwrap().unwrap());
            }
        }
        for chain in ledger.partitions().unwrap() {
            for (_, chunk) in chain.chunks() {
                for file in &chunk.files {
                    if let Some(file) = ledger.standing(file).unwrap().file {
                        out += &String::from_utf8_lossy(&ledger.file(&file).unwrap());
                    }
                }
                ledger.for_each_call(chunk, |row| write!(out, "{row:?}").unwrap()).unwrap();
                ledger.for_each_result(chunk, |row| write!(out, "{row:?}").unwrap()).unwrap();
                ledger.for_each_dead(chunk, |row| out += &String::from_utf8_lossy(&row.bytes)).unwrap();
            }
        }
        out
    }

    /// Every byte of every file of the store.
    fn everything(&self) -> Vec<(String, Bytes)> {
        ["chains", "objects", "calls", "results", "dead"]
            .iter()
            .flat_map(|folder| self.store.list(folder).unwrap())
            .map(|path| (path.clone(), self.store.get(&path).unwrap().unwrap()))
            .collect()
    }

    /// What must hold once these calls are erased, and only these. Answers the verification's words.
    fn check(&self, gone: &BTreeSet<String>) -> String {
        let ledger = self.ledger();
        let mut calls: BTreeMap<String, String> = BTreeMap::new();
        let (mut dead, mut results) = (Vec::new(), 0);
        for chain in ledger.partitions().unwrap().iter().filter(|c| c.source == "calls") {
            for (_, chunk) in chain.chunks() {
                ledger
                    .for_each_call(chunk, |row| {
                        assert!(calls.insert(row.call_id.clone(), row.record.clone()).is_none());
                    })
                    .unwrap();
                ledger.for_each_dead(chunk, |row| dead.push(String::from_utf8(row.bytes).unwrap())).unwrap();
                ledger.for_each_result(chunk, |_| results += 1).unwrap();
            }
        }
        let left: BTreeMap<String, String> = self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| !gone.contains(&call.call_id))
            .map(|(n, call)| (call.call_id.clone(), line(call, n)))
            .collect();
        assert_eq!(calls, left, "every other call is there, byte for byte");
        let names_one = |id: &Option<String>| id.as_ref().is_some_and(|id| gone.contains(id));
        let left: Vec<String> =
            self.dead.iter().filter(|(_, id)| !names_one(id)).map(|(text, _)| text.clone()).collect();
        assert_eq!(dead, left, "every other dead letter is there");
        assert_eq!(results, self.calls.len(), "results hold no value and stay");
        let report = verify(&ledger, &mut |_| {}).unwrap();
        assert_eq!(report.outcome, Outcome::Intact, "{:?}", report.findings);
        assert_eq!(report.gone.erased_calls, gone.len() as u64);
        report.gone.to_string()
    }

    /// The bytes that must be nowhere once these calls are erased.
    fn words(&self, gone: &BTreeSet<String>) -> Vec<String> {
        let of = |call: &Fed| [call.call_id.clone(), call.secret.clone()];
        let is_gone = |call: &&Fed| gone.contains(&call.call_id);
        let mut words: Vec<String> = self.calls.iter().filter(is_gone).flat_map(of).collect();
        // A session's id goes with its last call.
        for call in self.calls.iter().filter(is_gone) {
            let others = self.calls.iter().any(|c| c.session == call.session && !gone.contains(&c.call_id));
            words.extend((!others).then(|| call.session.clone()));
        }
        words
    }

    /// The calls that a selection means, said once more in the test's own words.
    fn meant(&self, selection: &Selection) -> BTreeSet<String> {
        let meant = |call: &&Fed| {
            selection.call_ids.contains(&call.call_id)
                || selection.sessions.contains(&call.session)
                || selection.agents.contains(call.agent)
        };
        self.calls.iter().filter(meant).map(|call| call.call_id.clone()).collect()
    }
}

fn request(selection: &Selection) -> Request {
    let asked = selection.len() as u64;
    Request { selection: selection.clone(), asked, reason: Some("TICKET-7".to_owned()), dry_run: false }
}

fn calls(ids: &[&str]) -> Selection {
    Selection { call_ids: ids.iter().map(|id| (*id).to_owned()).collect(), ..Selection::default() }
}

fn contains(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|w| w == word.as_bytes())
}

// ---------------------------------------------------------------------------------------------------- tests

/// Any selection over any record: what was to go is in no file that the record names, after `gc` in none at all.
#[test]
fn what_is_erased_is_in_no_file() {
    let (mut found_before, mut erased) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(1000 + seed);
        let chunk = 2 + rng.below(9);
        let world = World::new(seed, 4 + rng.below(20) as usize, chunk);
        let mut selection = Selection::default();
        for _ in 0..1 + rng.below(4) {
            let call = &world.calls[rng.below(world.calls.len() as u64) as usize];
            match rng.below(3) {
                0 => selection.sessions.insert(call.session.clone()),
                1 if rng.below(4) == 0 => selection.agents.insert(call.agent.to_owned()),
                _ => selection.call_ids.insert(call.call_id.clone()),
            };
        }
        let gone = world.meant(&selection);
        let words = world.words(&gone);
        let before = world.said();
        for word in &words {
            assert!(before.contains(word.as_str()), "the search can find it");
            found_before += usize::from(world.everything().iter().any(|(_, bytes)| contains(bytes, word)));
        }
        let ledger = world.ledger();
        let dry = erase(&ledger, &Request { dry_run: true, ..request(&selection) }).unwrap();
        assert!(dry.entries.is_empty());
        assert_eq!(world.said(), before, "a dry run changes nothing");
        let done = erase(&ledger, &request(&selection)).unwrap();
        assert_eq!(done.rows(FileKind::Calls), gone.len() as u64);
        assert_eq!(
            dry.files.iter().map(|f| (&f.old.path, f.erased)).collect::<Vec<_>>(),
            done.files.iter().map(|f| (&f.old.path, f.erased)).collect::<Vec<_>>(),
            "the dry run says what is done"
        );
        erased += gone.len();
        world.check(&gone);
        let after = world.said();
        for word in &words {
            assert!(!after.contains(word.as_str()), "seed {seed}: {word} is still said");
        }
        gc(&ledger, true, &mut |_| {}).unwrap();
        world.check(&gone);
        for (path, bytes) in world.everything() {
            for word in &words {
                assert!(!contains(&bytes, word), "seed {seed}: {word} is still in {path}");
            }
        }
        let again = erase(&ledger, &request(&selection)).unwrap();
        assert!(again.files.is_empty() && again.entries.is_empty(), "a second time finds nothing");
    }
    assert!(found_before > 100 && erased > 100, "{found_before} words stood in raw bytes, {erased} calls");
}

/// The entry says how many and where, never whose; what an erasure is asked for is checked before anything happens.
#[test]
fn the_entry_names_nobody() {
    let world = World::new(3, 12, 4);
    let ledger = world.ledger();
    let id = world.calls[0].call_id.clone();
    let refused = |request: Request| erase(&ledger, &request).unwrap_err().to_string();
    assert!(refused(request(&Selection::default())).contains("nothing to erase"));
    assert!(refused(request(&calls(&[""]))).contains("none of them empty"));
    let reason = Some(format!("asked for by {id}"));
    assert!(refused(Request { reason, ..request(&calls(&[&id])) }).contains("would stand in the record"));
    let done = erase(&ledger, &request(&calls(&[&id, "of another ledger"]))).unwrap();
    let control = ledger.control().unwrap();
    let entry = &control.entries[done.entries[0] as usize];
    let Control::Erase { ids, files, reason } = &entry.entry.body else { panic!("{entry:?}") };
    assert_eq!((*ids, reason.as_deref()), (2, Some("TICKET-7")));
    let calls: Vec<_> = files.iter().filter(|f| f.old.kind == FileKind::Calls).collect();
    let [file] = calls.as_slice() else { panic!("{files:?}") };
    let new = file.new.as_ref().unwrap();
    assert_eq!((file.old.rows, new.rows, file.erased), (new.rows + 1, file.old.rows - 1, 1));
    let text = serde_json::to_string(&entry.entry.body).unwrap();
    let hash = lastcall_contract::Digest::of(id.as_bytes());
    assert!(!text.contains(&id) && !text.contains(&hash.hex()[..16]), "neither the id nor its hash");
}

/// An eraser that dies, or gets no clear answer, at any step: the record holds, and the same command ends the work.
#[test]
fn an_eraser_may_die_at_any_step() {
    let world = World::new(8, 14, 4);
    let selection = Selection {
        call_ids: [world.calls[1].call_id.clone(), world.calls[9].call_id.clone()].into(),
        sessions: [world.calls[4].session.clone()].into(),
        agents: BTreeSet::new(),
    };
    let gone = world.meant(&selection);
    let counted = Stepped::new(&world.copy().store, 0, None);
    erase(&counted.ledger().unwrap(), &request(&selection)).unwrap();
    let steps = counted.taken();
    assert!(steps > 40, "{steps}");
    let (mut died, mut carried) = (0, 0);
    for fault in [Fault::DiesBefore, Fault::DiesAfter, Fault::UnclearDone, Fault::UnclearNotDone] {
        for at in 0..steps {
            let world = world.copy();
            let store = Stepped::new(&world.store, at, Some(fault));
            match store.ledger().and_then(|ledger| erase(&ledger, &request(&selection))) {
                Ok(_) => carried += 1,
                Err(_) => died += 1,
            }
            let report = verify(&world.ledger(), &mut |_| {}).unwrap();
            assert_eq!(report.outcome, Outcome::Intact, "{fault:?} at {at}: {:?}", report.findings);
            erase(&world.ledger(), &request(&selection)).unwrap();
            world.check(&gone);
            gc(&world.ledger(), true, &mut |_| {}).unwrap();
            world.check(&gone);
            for word in world.words(&gone) {
                let in_one = world.everything().iter().any(|(_, bytes)| contains(bytes, &word));
                assert!(!in_one, "{fault:?} at {at}: {word} is still there");
            }
        }
    }
    println!("{} runs of {steps} steps: {died} died, {carried} came to their end", 4 * steps);
    assert!(died > 0 && carried > 0);
}

/// A whole second process at every step of the first.
fn entered(
    world: &World,
    first: &dyn Fn(&Ledger),
    second: fn(&World),
    holds: &dyn Fn(&World, usize),
) -> usize {
    let counted = Stepped::new(&world.copy().store, usize::MAX, None);
    first(&counted.ledger().unwrap());
    let steps = counted.taken();
    for at in 0..steps {
        let world = world.copy();
        let other = world.clone();
        let store = Stepped::entered(&world.store, at, Box::new(move || second(&other)));
        first(&store.ledger().unwrap());
        holds(&world, at);
    }
    steps
}

#[test]
fn two_erasers_race() {
    let world = World::new(21, 14, 5);
    let mine = Selection { agents: ["agent-one".to_owned()].into(), ..Selection::default() };
    fn theirs(world: &World) -> Selection {
        let session = world.calls[3].session.clone();
        let ids = [2, 3, 7, 11].map(|n: usize| world.calls[n].call_id.clone());
        Selection { call_ids: ids.into(), sessions: [session].into(), ..Selection::default() }
    }
    let mut both = world.meant(&mine);
    both.extend(world.meant(&theirs(&world)));
    let steps = entered(
        &world,
        &|ledger| drop(erase(ledger, &request(&mine)).unwrap()),
        |world| drop(erase(&world.ledger(), &request(&theirs(world))).unwrap()),
        &|world, _| {
            world.check(&both);
            let lost = gc(&world.ledger(), true, &mut |_| {}).unwrap();
            assert!(lost.left.is_empty(), "{:?}", lost.left);
            world.check(&both);
            for word in world.words(&both) {
                assert!(!world.everything().iter().any(|(_, bytes)| contains(bytes, &word)));
            }
        },
    );
    println!("{steps} interleavings");
    // The same request twice at once erases once.
    let gone = world.meant(&mine);
    entered(
        &world,
        &|ledger| drop(erase(ledger, &request(&mine)).unwrap()),
        |world| {
            let mine = Selection { agents: ["agent-one".to_owned()].into(), ..Selection::default() };
            drop(erase(&world.ledger(), &request(&mine)).unwrap());
        },
        &|world, _| drop(world.check(&gone)),
    );
}

fn more_calls(n: usize) -> String {
    let mut rng = Rng::new(77);
    (0..n).map(|n| line(&Fed { agent: "agent-one", ..fed(&mut rng) }, n) + "\n").collect()
}

/// A recorder that appends beside an eraser, and the other way round.
#[test]
fn an_eraser_and_a_recorder_run_beside_each_other() {
    let world = World::new(5, 10, 4);
    let mine = Selection { agents: ["agent-one".to_owned()].into(), ..Selection::default() };
    let gone = world.meant(&mine);
    let holds = |world: &World, _| {
        // What was recorded before stays erased; what the recorder held then is found by the same command again.
        let ledger = world.ledger();
        let report = verify(&ledger, &mut |_| {}).unwrap();
        assert_eq!(report.outcome, Outcome::Intact, "{:?}", report.findings);
        let chain = ledger.partition("more", lastcall_ledger::position::Partition(0)).unwrap();
        let recorded: u64 = chain.chunks().map(|(_, chunk)| chunk.balance.calls).sum();
        assert_eq!(recorded, 6, "the recorder recorded every call");
        erase(&ledger, &request(&mine)).unwrap();
        let mut left = 0;
        for chain in ledger.partitions().unwrap() {
            for (_, chunk) in chain.chunks() {
                ledger
                    .for_each_call(chunk, |row| {
                        left += usize::from(row.agent_id.as_deref() == Some("agent-one"))
                    })
                    .unwrap();
            }
        }
        assert_eq!(left, 0);
        let report = verify(&ledger, &mut |_| {}).unwrap();
        assert_eq!(report.outcome, Outcome::Intact, "{:?}", report.findings);
        assert_eq!(report.gone.erased_calls, gone.len() as u64 + 6);
    };
    let during_erasure = entered(
        &world,
        &|ledger| drop(erase(ledger, &request(&mine)).unwrap()),
        |world| record(&world.ledger(), "more", &more_calls(6), 2).unwrap(),
        &holds,
    );
    let during_recording = entered(
        &world,
        &|ledger| record(ledger, "more", &more_calls(6), 2).unwrap(),
        |world| {
            let mine = Selection { agents: ["agent-one".to_owned()].into(), ..Selection::default() };
            drop(erase(&world.ledger(), &request(&mine)).unwrap());
        },
        &holds,
    );
    println!("{during_erasure} and {during_recording} interleavings");
}

/// `gc --delete` at any step of a recorder or an eraser harms neither.
#[test]
fn gc_harms_nobody_who_runs_beside_it() {
    let world = World::new(13, 10, 4);
    let collect = |world: &World| drop(gc(&world.ledger(), true, &mut |_| {}).unwrap());
    let mine = Selection { agents: ["agent-two".to_owned()].into(), ..Selection::default() };
    let gone = world.meant(&mine);
    entered(&world, &|ledger| drop(erase(ledger, &request(&mine)).unwrap()), collect, &|world, _| {
        drop(world.check(&gone))
    });
    let nobody = BTreeSet::new();
    entered(&world, &|ledger| record(ledger, "more", &more_calls(6), 2).unwrap(), collect, &|world, at| {
        world.check(&nobody);
        let chain = world.ledger().partition("more", lastcall_ledger::position::Partition(0)).unwrap();
        assert_eq!(chain.chunks().map(|(_, c)| c.balance.calls).sum::<u64>(), 6, "at {at}");
    });
}

/// What a stopped recorder left is garbage once another entry stands in its place, and not before.
#[test]
fn only_what_no_entry_can_ever_name_is_garbage() {
    let world = World::new(2, 6, 3);
    let text: String = world.calls.iter().enumerate().map(|(n, call)| line(call, n) + "\n").collect();
    // The recorder of another source dies before its append.
    let count = Stepped::new(&world.copy().store, 0, None);
    record(&count.ledger().unwrap(), "more", &text, 100).unwrap();
    let kept = world.ledger();
    let before = gc(&kept, false, &mut |_| {}).unwrap();
    assert!(before.garbage.is_empty() && before.left.is_empty(), "{before:?}");
    let mut waited = 0;
    for at in 0..count.taken() {
        let world = world.copy();
        let dying = Stepped::new(&world.store, at, Some(Fault::DiesBefore));
        let _ = dying.ledger().map(|ledger| record(&ledger, "more", &text, 100));
        let found = gc(&world.ledger(), true, &mut |_| {}).unwrap();
        assert!(found.garbage.is_empty(), "its entry does not stand: {:?}", found.garbage);
        waited += found.left.len();
        assert!(found.left.iter().all(|left| left.why.contains("in flight")), "{:?}", found.left);
        record(&world.ledger(), "more", &text, 100).unwrap();
        let again = gc(&world.ledger(), true, &mut |_| {}).unwrap();
        assert_eq!(again.garbage.len(), found.left.len(), "now another entry stands there");
        assert!(again.garbage.iter().all(|g| matches!(g.why, Why::NotNamed { .. })));
        assert!(again.left.is_empty());
        world.check(&BTreeSet::new());
    }
    assert!(waited > 0);
    // Names that no lastcall writes, and sources that are not registered, stay.
    for path in ["calls/notes.txt", "calls/strange-0-00000000000000000001-0123456789abcdef.parquet"] {
        world.store.overwrite(path, Bytes::from_static(b"x"));
    }
    let found = gc(&world.ledger(), true, &mut |_| {}).unwrap();
    assert_eq!((found.garbage.len(), found.left.len()), (0, 2), "{found:?}");
    // From a record that does not hold nothing is removed.
    let broken = world.copy();
    broken.store.remove("chains/calls/0/00000000000000000001.json");
    assert!(gc(&broken.ledger(), true, &mut |_| {}).is_err());
    // An old file stays while what stands in its place is not whole.
    let torn = world.copy();
    let done = erase(&torn.ledger(), &request(&calls(&[&torn.calls[0].call_id]))).unwrap();
    let file = done.files.iter().find(|f| f.old.kind == FileKind::Calls).unwrap();
    torn.store.remove(&file.new.as_ref().unwrap().path);
    let found = gc(&torn.ledger(), true, &mut |_| {}).unwrap();
    assert!(found.left.iter().any(|left| left.path == file.old.path), "{found:?}");
    assert!(torn.store.get(&file.old.path).unwrap().is_some());
}

/// Whole files pass their retention, by the day of recording or of their newest call; the record stays checkable.
#[test]
fn files_expire_whole() {
    let world = World::new(31, 12, 4);
    let ledger = world.ledger();
    let day = |text: &str| lastcall_event::Day::parse(text).unwrap();
    let kinds = vec![FileKind::Calls, FileKind::Dead];
    let at = |before: &str| Expiry { before: day(before), kinds: kinds.clone(), dry_run: false };
    // The calls are of the first three days of June 2020 in every chunk; they were recorded now.
    let none = expire(&ledger, &at("2020-06-01")).unwrap();
    assert!(none.files.is_empty() && none.kept.is_empty(), "{none:?}");
    let waiting = expire(&ledger, &at("2020-06-02")).unwrap();
    assert!(
        waiting.files.iter().all(|f| f.kind == FileKind::Calls),
        "dead letters go by when they were recorded"
    );
    assert!(!waiting.kept.is_empty(), "files with a newer call wait");
    let future = Expiry { before: day("2226-01-01"), ..at("2020-06-02") };
    assert!(expire(&ledger, &future).unwrap_err().to_string().contains("future"));
    let dry = expire(&ledger, &Expiry { dry_run: true, ..at("2020-06-04") }).unwrap();
    let done = expire(&ledger, &at("2020-06-04")).unwrap();
    assert_eq!(dry.files, done.files);
    let expired = done.rows(FileKind::Calls) + waiting.rows(FileKind::Calls);
    assert_eq!(expired, world.calls.len() as u64, "every call is older");
    let report = verify(&ledger, &mut |_| {}).unwrap();
    assert_eq!(report.outcome, Outcome::Intact, "{:?}", report.findings);
    assert_eq!(report.gone.to_string(), "12 calls expired");
    gc(&ledger, true, &mut |_| {}).unwrap();
    assert!(world.store.list("calls").unwrap().is_empty(), "no calls file is left");
    assert_eq!(verify(&ledger, &mut |_| {}).unwrap().outcome, Outcome::Intact);
    let again = expire(&ledger, &at("2020-06-04")).unwrap();
    assert!(again.files.is_empty() && again.entries.is_empty());
    let erased: Erased = erase(&ledger, &request(&calls(&[&world.calls[0].call_id]))).unwrap();
    assert!(
        erased.files.iter().all(|f| f.old.kind == FileKind::Dead),
        "nothing is left to erase of the calls"
    );
}

/// Nobody makes calls disappear under the name of an erasure.
#[test]
fn a_false_erasure_is_found() {
    let world = World::new(17, 12, 4);
    let done = erase(&world.ledger(), &request(&calls(&[&world.calls[5].call_id]))).unwrap();
    let seq = done.entries[0];
    let file = done.files.iter().find(|f| f.old.kind == FileKind::Calls).unwrap().clone();
    let new = file.new.clone().unwrap();
    let entry_path = format!("chains/control/{seq:020}.json");
    let entry = world.store.get(&entry_path).unwrap().unwrap();
    let outcome = |world: &World| {
        let report = verify(&world.ledger(), &mut |_| {}).unwrap();
        (report.outcome, format!("{:?}", report.findings))
    };
    let with_entry = |change: &dyn Fn(&mut serde_json::Value)| {
        let world = world.copy();
        let mut value: serde_json::Value = serde_json::from_slice(&entry).unwrap();
        change(&mut value["body"]);
        world.store.overwrite(&entry_path, Bytes::from(serde_json::to_vec(&value).unwrap()));
        world
    };
    assert_eq!(outcome(&world).0, Outcome::Intact);
    for (what, changed) in [
        ("more rows than the entry says", with_entry(&|body| body["files"][0]["erased"] = 2.into())),
        (
            "another tool",
            with_entry(&|body| {
                let calls = body["files"].as_array_mut().unwrap().iter_mut().find(|f| f["tools"].is_object());
                let tools = calls.unwrap()["tools"].as_object_mut().unwrap();
                let n = tools.iter().next().map(|(tool, n)| (tool.clone(), n.clone())).unwrap();
                tools.remove(&n.0);
                tools.insert("other".to_owned(), n.1);
            }),
        ),
        ("another file", with_entry(&|body| body["files"][0]["old"]["path"] = "calls/none.parquet".into())),
        ("another digest", with_entry(&|body| body["files"][0]["old"]["bytes"] = 1.into())),
        ("nothing left", with_entry(&|body| drop(body["files"][0].as_object_mut().unwrap().remove("new")))),
        (
            "twice",
            with_entry(&|body| {
                let first = body["files"][0].clone();
                body["files"].as_array_mut().unwrap().push(first);
            }),
        ),
    ] {
        let (outcome, findings) = outcome(&changed);
        assert_eq!(outcome, Outcome::Altered, "{what}: {findings}");
    }
    // The rewritten file itself, altered, cut and lost.
    let bytes = world.store.get(&new.path).unwrap().unwrap();
    let flipped = world.copy();
    let mut odd = bytes.to_vec();
    odd[40] ^= 1;
    flipped.store.overwrite(&new.path, Bytes::from(odd));
    assert_eq!(outcome(&flipped).0, Outcome::Altered);
    let cut = world.copy();
    cut.store.overwrite(&new.path, bytes.slice(..bytes.len() / 2));
    assert_eq!(outcome(&cut).0, Outcome::Truncated);
    let lost = world.copy();
    lost.store.remove(&new.path);
    assert_eq!(outcome(&lost).0, Outcome::Incomplete);
    // The old one is no part of the record any more.
    let old = world.copy();
    old.store.remove(&file.old.path);
    assert_eq!(outcome(&old).0, Outcome::Intact);
}
