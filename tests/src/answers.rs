//! The index changes no answer: what is read from it on is what is read from the genesis.

use std::collections::BTreeMap;

use lastcall_decision::{DayCounts, Question, WindowInput, canonical_json, decide, decide_after_cutover};
use lastcall_event::{Day, Timestamp};
use lastcall_ledger::Ledger;
use lastcall_ledger::window::{Record, Subject};

/// Asserts it for every subject, clock and control state of a ledger, to the byte; how many verdicts were compared.
/// `budget`: rows that the reading from the index holds at once.
pub fn same_answers(open: impl Fn() -> Ledger, budget: u64) -> u64 {
    let now = Record::read(open()).unwrap().with_budget(budget);
    let whole = Record::from_genesis(open()).unwrap();
    let subjects = whole.subjects();
    assert_eq!(now.subjects(), subjects);
    let ledger = open();
    assert_eq!(ledger.control_now().unwrap().fold(), ledger.control().unwrap().fold());
    if ledger.is_simulated() {
        assert_eq!(ledger.now().unwrap(), clock_of(&whole));
    }
    same_verdicts(&now, &whole, &subjects)
}

/// Asserts that two readings say the same of these subjects, to the byte; how many they are.
pub fn same_verdicts(a: &Record, b: &Record, subjects: &[Subject]) -> u64 {
    let (mut a, mut b) = (a.gather(subjects).unwrap(), b.gather(subjects).unwrap());
    a.iter_mut().chain(&mut b).for_each(sum_days);
    let mut verdicts = 0;
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(format!("{a:#?}"), format!("{b:#?}"));
        for question in [Question::Cutover, Question::Retire, Question::Delete] {
            let answer = |input| match question {
                Question::Cutover => decide(input),
                other => decide_after_cutover(input, other),
            };
            assert_eq!(canonical_json(&answer(a)).unwrap(), canonical_json(&answer(b)).unwrap());
        }
        verdicts += 1;
    }
    verdicts
}

/// Without a registration nothing but the sum of all days is shown, and old days are kept as a sum.
fn sum_days(input: &mut WindowInput) {
    if input.registration.is_none() && !input.days.is_empty() {
        let mut sum = DayCounts::default();
        input.days.values().for_each(|counts| sum.add(counts));
        input.days = BTreeMap::from([(Day(0), sum)]);
    }
}

fn clock_of(record: &Record) -> Option<Timestamp> {
    record.chains.iter().map(|c| c.progress().and_then(|p| p.clock)).min().flatten()
}
