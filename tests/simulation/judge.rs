//! What the stand-in for the comparator says.

use lastcall_compare::{Category, Comparison, ComparisonResult, Reason};
use lastcall_event::CallRecord;
use lastcall_tests::chance::Rng;
use lastcall_tests::stand_in::{agreement, discrepancy};

/// A function of call and candidate.
pub fn verdict_of(id: u64, candidate: &str) -> Comparison {
    let first = u64::from(candidate.as_bytes()[0]);
    let mut rng = Rng(id.wrapping_mul(0x1000_0000_01b3) ^ candidate.len() as u64 ^ first);
    let one = |category: Category, refused: bool| {
        discrepancy(category, category.default_severity(), refused, "/id")
    };
    let mut c = agreement(rng.chance(50), rng.chance(20));
    if rng.chance(20) {
        c.rules.push("nfc");
    }
    if rng.chance(60) {
        c.touched = vec![0, 2];
    }
    match rng.below(6) {
        0 => c.discrepancies = vec![one(Category::ArgumentAdded, false)],
        1 => {
            c.result = ComparisonResult::Disagreed;
            let twice = one(Category::TypeChanged, true);
            c.discrepancies = vec![twice.clone(), twice, one(Category::RangeTightened, false)];
            c.disagreed_at = c.touched.clone();
        }
        2 => {
            c.result = ComparisonResult::Disagreed;
            c.discrepancies = vec![one(Category::ArgumentChanged, false)];
        }
        3 => (c.result, c.reason) = (ComparisonResult::Unresolved, Some(Reason::Undecided)),
        4 => (c.result, c.reason) = (ComparisonResult::Excluded, Some(Reason::Widened)),
        _ => {}
    }
    c
}

/// The same, as recorders ask.
pub fn says(call: &CallRecord<'_>, candidate: &str) -> Comparison {
    verdict_of(call.call_id[1..].parse().unwrap(), candidate)
}
