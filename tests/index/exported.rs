//! Exports of a made-up ledger, wherever it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use lastcall_ledger::Ledger;
use lastcall_ledger::control::Control;
use lastcall_ledger::export::export;
use lastcall_ledger::store::{MemoryStore, Store};
use lastcall_ledger::verify::verify;
use lastcall_ledger::window::Record;
use lastcall_tests::answers::same_verdicts;

use crate::world::World;

impl World {
    /// An export of each tool: with open days, late and planted calls, windows that begin in the past. On it every verdict
    /// is the source's, to the byte; it holds no results; a second one has the same bytes.
    pub fn export(&mut self) {
        let store = self.store.clone();
        let open = || Ledger::open_in(Arc::new(store.clone()), "memory").unwrap();
        let whole = Record::from_genesis(open()).unwrap();
        let subjects = whole.subjects();
        let tools: BTreeSet<String> = subjects.iter().map(|s| s.tool_id.clone()).collect();
        for tool in tools {
            let with_arguments = self.rng.chance(50);
            let copy = || {
                let target = MemoryStore::default();
                let done = export(&open(), &tool, &target, with_arguments, &mut |_| {}).unwrap();
                (target, done)
            };
            let (target, done) = copy();
            let files = everything(&target);
            assert_eq!(files, everything(&copy().0), "a second export has the same bytes");
            assert!(!files.keys().any(|path| path.starts_with("results/") || path.starts_with("dead/")));
            let ours: Vec<_> = subjects.iter().filter(|s| s.tool_id == tool).cloned().collect();
            let exported = Ledger::open_in(Arc::new(target.clone()), "export").unwrap();
            let record = Record::read(exported.clone()).unwrap().with_budget(1 + self.rng.below(50));
            assert_eq!(record.subjects(), ours);
            for _ in 0..same_verdicts(&record, &whole, &ours) {
                self.hit("a verdict on an export");
            }
            let report = verify(&exported, &mut |_| {}).unwrap();
            let check = report.export.as_ref().unwrap();
            assert!(check.intact, "{:?}", report.findings);
            assert_eq!(check.left, done.left);
            if let Some(calls) = done.calls {
                assert_eq!((check.calls, check.calls_gone), (calls.calls, calls.gone));
                for _ in 0..calls.calls {
                    self.hit("a call in an export proven");
                }
            }
            let end = Control::EndWindow { registration: 0, reason: String::new() };
            assert!(exported.append_control(end).is_err());
            assert_eq!(files, everything(&target), "nobody wrote to it");
            self.hit("an export");
        }
    }
}

fn everything(store: &MemoryStore) -> BTreeMap<String, Bytes> {
    let folders = ["chains", "objects", "days", "calls", "results", "dead"];
    let listed = folders.iter().flat_map(|folder| store.list(folder).unwrap());
    let paths = listed.chain(["ledger.json".to_owned(), "export.json".to_owned()]);
    paths.map(|path| (path.clone(), store.get(&path).unwrap().unwrap())).collect()
}
