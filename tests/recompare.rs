//! `ledger verify --recompare`: the comparator runs again on what is kept, and says how much that covers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::PathBuf;

use lastcall_compare::ComparisonResult;
use lastcall_event::{CallRecord, Preset, Timestamp};
use lastcall_ledger::Ledger;
use lastcall_ledger::chain::Append;
use lastcall_ledger::control::{Pair, SourceKind};
use lastcall_ledger::entry::ControlRef;
use lastcall_ledger::position::{NextOffset, Offset, Partition};
use lastcall_record::{
    Action, Committer, Config, Incoming, Input, Judge, Judged, Limits, Pairs, Recorder, Spec,
};
use lastcall_tests::chance::Rng;
use lastcall_tests::{Answer, answer, lastcall};
use serde_json::{Value, json};

struct Place(tempfile::TempDir);

impl Place {
    /// Tool `t`: the candidate refuses a letter, and wants another type of `n`.
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let tool = |letters: Value, n: &str| {
            let schema = json!({"type": "object", "properties": {"l": {"enum": letters}, "n": {"type": n}}});
            json!({"name": "t", "inputSchema": schema}).to_string()
        };
        place.write("old.json", tool(json!(["a", "b", "c"]), "integer"));
        place.write("new.json", tool(json!(["a", "b"]), "integer"));
        place.write("policy.yaml", "burn_in: {tier: T1, profile: article}\n");
        place.ok("ledger init led --clock simulated");
        place.ok("plan observe old.json new.json --tool t --ledger led");
        place.ok("plan register t --policy policy.yaml --from 2026-06-01 --ledger led");
        place
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, line: &str) -> Answer {
        answer(lastcall().args(line.split(' ')).current_dir(self.0.path()))
    }

    fn ok(&self, line: &str) -> Answer {
        let done = self.run(line);
        assert_eq!(done.code, 0, "{line}: {}{}", done.out, done.err);
        done
    }

    /// What `--recompare` answers, with its exit code; the sums hold whatever it is.
    fn again(&self, ledger: &str) -> (i32, Value) {
        let done = self.run(&format!("ledger verify {ledger} --recompare --format json"));
        let said: Value =
            serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{}{}", done.out, done.err));
        let again = said["recompared"].clone();
        let skipped: u64 =
            again["not_compared"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        let count = |key: &str| again[key].as_u64().unwrap();
        assert_eq!(count("results"), count("same") + count("different") + skipped, "{again}");
        (done.code, again)
    }
}

const CALLS: u64 = 120;

/// Calls over four days, one in three refused by the candidate; the mail address of each is its own.
fn calls() -> Vec<String> {
    let mut lines: Vec<String> = (0..CALLS)
        .map(|n| {
            let letter = ["a", "b", "c"][(n % 3) as usize];
            json!({"type": "tool_call", "schema_version": 1, "call_id": format!("c{n}"), "tool_id": "t",
                "contract_id": "t@1", "ts": format!("2026-06-{:02}T10:00:00Z", n / 30 + 1),
                "arguments": {"l": letter, "n": n, "mail": format!("m{n}@x.test")}, "outcome": {"status": "ok"},
                "envelope": {"session_id": format!("s{n}")}})
            .to_string()
        })
        .collect();
    lines.push(r#"{"type":"clock","schema_version":1,"ts":"2026-06-07T00:00:00Z"}"#.to_owned());
    lines
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Judges as the product does, but for calls whose number it is told: what they break, it keeps to itself.
struct Liar {
    honest: Pairs,
    about: fn(u64) -> bool,
}

impl Judge for Liar {
    fn pairs(&self) -> &[Pair] {
        self.honest.pairs()
    }

    fn judge(&self, call: &CallRecord<'_>, out: &mut Vec<Judged>) {
        self.honest.judge(call, out);
        if (self.about)(call.call_id[1..].parse().unwrap()) {
            for judged in out {
                judged.comparison.result = ComparisonResult::Agreed;
                judged.comparison.discrepancies.clear();
                judged.comparison.disagreed_at.clear();
            }
        }
    }
}

/// Records the lines as the product's recorder does, judged by somebody else.
fn record(ledger: &Ledger, lines: &[String], about: fn(u64) -> bool) {
    let control = ledger.control().unwrap();
    let tail = control.tail().unwrap();
    let honest = Pairs::prepare(ledger, control.active_pairs()).unwrap();
    let named = ControlRef { seq: tail.seq, digest: tail.digest };
    let config = || {
        let honest = Pairs::prepare(ledger, control.active_pairs()).unwrap();
        Config {
            control: named.clone(),
            at: tail.at,
            judge: Box::new(Liar { honest, about }),
            redactor: None,
        }
    };
    drop(honest);
    let spec = Spec {
        source: "calls.jsonl".to_owned(),
        partition: Partition(0),
        preset: Preset::Native,
        dense: true,
        simulated: true,
        lateness_ms: 3_600_000,
    };
    let limits = Limits { records: 50, age_ms: i64::MAX, ..Limits::default() };
    let mut recorder = Recorder::new(spec, limits, config(), Rng(1).salts());
    let committer = Committer::new(&**ledger.store(), "calls.jsonl", Partition(0), "w");
    committer.begin(SourceKind::File, "x", &named, tail.at, tail.at).unwrap();
    let assigned = committer.assigned().unwrap().unwrap();
    let now = Timestamp(0);
    recorder.step(Input::Configured(Box::new(config())), now).unwrap();
    recorder.step(Input::Assigned { tail: assigned.tail, progress: assigned.progress }, now).unwrap();
    let act = |recorder: &mut Recorder, mut actions: Vec<Action>| {
        while let Some(action) = actions.pop() {
            let Action::Commit(commit) = action else { panic!("nobody else writes") };
            let answer = committer.commit(&commit).unwrap();
            assert!(matches!(answer, Append::Won(_)));
            actions.extend(recorder.step(Input::Appended(answer), now).unwrap());
        }
    };
    let mut at = 0;
    for line in lines {
        let next = at + line.len() as i64 + 1;
        let input = Input::Record(Incoming {
            offset: Offset(at),
            next: NextOffset(next),
            bytes: line.as_bytes(),
            length: line.len() as u64,
            too_long: false,
            key: None,
            headers: &[],
            cut_off: false,
            prefix: None,
            time: None,
        });
        at = next;
        let actions = recorder.step(input, now).unwrap();
        act(&mut recorder, actions);
    }
    let end = NextOffset(at);
    let mut actions = recorder
        .step(Input::Barrier { next: end, prefix: None, read_through: None, is_final: true }, now)
        .unwrap();
    actions.extend(recorder.step(Input::Close, now).unwrap());
    act(&mut recorder, actions);
}

#[test]
fn an_honest_record_comes_out_the_same_and_is_covered_whole() {
    let place = Place::new();
    place.write("calls.jsonl", text(&calls()));
    place.ok("run --ledger led calls.jsonl");
    let (code, again) = place.again("led");
    assert_eq!((code, &again["same"], &again["results"]), (0, &json!(CALLS), &json!(CALLS)), "{again}");
    assert_eq!((&again["different"], &again["absent"]), (&json!(0), &json!(0)));
    place.ok("ledger compact led");
    assert_eq!(place.again("led"), (0, again), "the index changes nothing");
    let said = place.ok("ledger verify led --recompare");
    assert!(
        said.out.contains("compared again: 120 of 120 results (100.000 %): 120 the same, 0 not"),
        "{}",
        said.out
    );
}

#[test]
fn a_record_that_fits_in_itself_and_lies_is_found_by_comparing_again_alone() {
    let about: fn(u64) -> bool = |n| n % 7 == 0;
    let lies = (0..CALLS).filter(|n| about(*n) && n % 3 == 2).count();
    let place = Place::new();
    place.ok("ledger source led calls.jsonl --role tool-calls");
    record(&Ledger::open(&place.path("led")).unwrap(), &calls(), about);
    assert_eq!(place.run("ledger verify led").code, 0, "its sums, hashes and chains fit");
    let (code, again) = place.again("led");
    assert_eq!((code, &again["different"]), (1, &json!(lies)), "{again}");
    assert_eq!(again["same"], json!(CALLS as usize - lies));
    let told = &again["differences"][0];
    assert_eq!((&told["chain"], &told["candidate"]), (&json!("calls.jsonl/0"), &json!("t@2")), "{told}");
    let what = told["what"].as_str().unwrap();
    assert!(
        what.starts_with("recorded is agreed, the comparator says disagreed; they differ in result"),
        "{what}"
    );
    // The near miss: the same recorder, lying about nothing that matters.
    let place = Place::new();
    place.ok("ledger source led calls.jsonl --role tool-calls");
    record(&Ledger::open(&place.path("led")).unwrap(), &calls(), |n| n % 3 != 2);
    assert_eq!(place.again("led").1["different"], json!(0));
}

#[test]
fn what_is_gone_is_not_covered_and_said() {
    let place = Place::new();
    place.write("calls.jsonl", text(&calls()));
    place.ok("run --ledger led calls.jsonl");
    place.ok("ledger erase led --session s5");
    place.ok("ledger erase led --session s6");
    let (code, again) = place.again("led");
    assert_eq!((code, &again["same"]), (0, &json!(CALLS - 2)), "{again}");
    assert_eq!(again["not_compared"], json!({"erased or expired": 2}));
}

#[test]
fn what_a_redaction_hides_is_not_covered_and_the_rest_is() {
    let place = Place::new();
    let mut lines = calls();
    // A call without the hidden argument is kept as it came.
    let without: Value = serde_json::from_str(&lines[3]).unwrap();
    let mut without = without;
    without["arguments"].as_object_mut().unwrap().remove("mail");
    lines[3] = without.to_string();
    place.write("calls.jsonl", text(&lines));
    place.ok(
        "ledger source led calls.jsonl --role tool-calls --redact /arguments/mail=drop --redaction-key k",
    );
    place.ok("run --ledger led --redaction-key k calls.jsonl");
    let (code, again) = place.again("led");
    assert_eq!((code, &again["same"], &again["different"]), (0, &json!(1), &json!(0)), "{again}");
    assert_eq!(again["not_compared"], json!({"redacted": CALLS - 1}));
}

#[test]
fn an_export_covers_what_it_holds() {
    let place = Place::new();
    place.write("calls.jsonl", text(&calls()));
    place.ok("run --ledger led calls.jsonl --final");
    place.ok("ledger export led t with --with-arguments");
    place.ok("ledger export led t without");
    let (_, again) = place.again("with");
    assert_eq!((&again["same"], &again["not_compared"]), (&json!(CALLS), &json!({})), "{again}");
    let (_, again) = place.again("without");
    assert_eq!((&again["same"], &again["different"], &again["absent"]), (&json!(0), &json!(0), &json!(0)));
    assert_eq!(again["not_compared"], json!({"left behind by the export": CALLS}));
}

#[test]
fn a_broken_file_is_a_finding_of_verify_and_the_rest_is_compared_again() {
    let place = Place::new();
    let lines = calls();
    place.write("calls.jsonl", text(&lines[..60]));
    place.ok("run --ledger led calls.jsonl");
    place.write("calls.jsonl", text(&lines));
    place.ok("run --ledger led calls.jsonl");
    let files = place.ok("ledger files led --kind calls");
    let first = files.out.lines().find(|line| line.contains("calls/")).unwrap();
    let name = first.split_whitespace().find(|word| word.contains("calls/")).unwrap();
    let path = place.path("led").join(&name[name.find("calls/").unwrap()..]);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (code, again) = place.again("led");
    assert_eq!((code, &again["not_compared"]), (1, &json!({"cannot be read": 60})), "{again}");
    assert_eq!(again["same"], json!(60));
}
