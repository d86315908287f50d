//! Rows into counts: duplicates, the worst row of a conflict, planted calls, the balance.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use lastcall_compare::{Category, ComparisonResult, Discrepancy, Evidence, Reason, Severity};
use lastcall_decision::{Expectation, Place, Row, Tallied, Tally};
use lastcall_event::{Day, Fidelity};
use proptest::prelude::*;

const DAY: Day = Day(20_605);

#[derive(Clone, Debug)]
struct Case {
    key: u8,
    day: i32,
    offset: i64,
    result: ComparisonResult,
    observed: bool,
    discrepancies: Vec<Discrepancy>,
    rules: Vec<String>,
}

fn found(category: Category, severity: Severity, refused: bool, field: &str) -> Discrepancy {
    Discrepancy {
        field: field.to_owned(),
        category,
        severity,
        refused,
        keyword: Some("enum".to_owned()),
        location: Some("/properties/x/enum".to_owned()),
        note: None,
    }
}

fn case(key: u8, offset: i64, result: ComparisonResult) -> Case {
    Case { key, day: 0, offset, result, observed: true, discrepancies: Vec::new(), rules: Vec::new() }
}

fn with(mut case: Case, discrepancies: Vec<Discrepancy>) -> Case {
    case.discrepancies = discrepancies;
    case
}

fn tally(cases: &[Case], expected: Vec<Expectation>) -> Tallied {
    let mut tally = Tally::new(expected);
    for c in cases {
        tally.add(&Row {
            place: Place { source: "calls".to_owned(), partition: 0, offset: c.offset, index: 0 },
            day: DAY.plus(c.day),
            call_key: [c.key; 16],
            control: 7,
            observed: c.observed,
            result: c.result,
            reason: match c.result {
                ComparisonResult::Unresolved => Some(Reason::Shed),
                ComparisonResult::Excluded => Some(Reason::Widened),
                _ => None,
            },
            severity: c.discrepancies.iter().map(|d| d.severity).max(),
            refused: c.discrepancies.iter().any(|d| d.refused),
            fidelity: Fidelity::Raw,
            evidence: Evidence { validation: true, arguments: true, outcome: c.offset % 2 == 0 },
            discrepancies: &c.discrepancies,
            rules: &c.rules,
        });
    }
    tally.finish(DAY, Some(DAY.plus(6)))
}

#[test]
fn a_conflict_counts_with_its_worst_row() {
    use ComparisonResult::{Agreed, BothRejected, Disagreed, Excluded, Unresolved};
    let warn = || vec![found(Category::RangeTightened, Severity::Warn, false, "/x")];
    let refused = || vec![found(Category::RangeTightened, Severity::Warn, true, "/x")];
    // From the best to the worst; each beats all before it, in whatever order they come.
    let order = [
        case(1, 0, Agreed),
        case(1, 1, Excluded),
        case(1, 2, BothRejected),
        case(1, 3, Unresolved),
        with(case(1, 4, Disagreed), warn()),
        with(case(1, 5, Disagreed), refused()),
    ];
    for worse in 1..order.len() {
        for better in 0..worse {
            for pair in [[better, worse], [worse, better]] {
                let rows = pair.map(|i| order[i].clone());
                let counts = tally(&rows, vec![]).days.remove(&DAY).unwrap();
                let alone = tally(&[order[worse].clone()], vec![]).days.remove(&DAY).unwrap();
                assert_eq!((counts.duplicate, counts.conflicts, counts.calls), (1, 1, 2));
                assert_eq!(counts.disagreed, alone.disagreed);
                assert_eq!(counts.refused, alone.refused);
                assert_eq!(counts.reasons, alone.reasons);
                assert_eq!(counts.accounted(), counts.calls);
            }
        }
    }
}

#[test]
fn a_repeat_that_says_the_same_is_no_conflict() {
    let rows = [case(1, 0, ComparisonResult::Agreed), case(1, 9, ComparisonResult::Agreed)];
    let counts = tally(&rows, vec![]).days.remove(&DAY).unwrap();
    assert_eq!((counts.agreed, counts.duplicate, counts.conflicts), (1, 1, 0));
}

#[test]
fn the_same_call_id_on_another_day_is_another_call() {
    let mut next = case(1, 9, ComparisonResult::Agreed);
    next.day = 1;
    let tallied = tally(&[case(1, 0, ComparisonResult::Agreed), next], vec![]);
    assert!(tallied.days.values().all(|d| d.agreed == 1 && d.duplicate == 0));
    assert_eq!(tallied.days.len(), 2);
}

#[test]
fn what_was_recorded_outside_the_registration_is_unresolved() {
    let mut row = with(
        case(1, 0, ComparisonResult::Disagreed),
        vec![found(Category::TypeChanged, Severity::Block, true, "/x")],
    );
    row.observed = false;
    let tallied = tally(&[row], vec![]);
    let counts = &tallied.days[&DAY];
    assert_eq!((counts.unresolved, counts.disagreed, counts.blocks), (1, 0, 0));
    assert_eq!(counts.reasons["not_observed"], 1);
    assert!(tallied.categories.is_empty());
}

#[test]
fn planted_and_synthetic_calls_never_enter_the_counts() {
    let expect = |key: u8, expect| Expectation { committed: 7, call_key: [key; 16], expect };
    let fault = Some((Category::EnumValueRemoved, Severity::Block));
    let hit = with(
        case(1, 0, ComparisonResult::Disagreed),
        vec![found(Category::EnumValueRemoved, Severity::Block, true, "/x")],
    );
    let lowered = with(
        case(2, 1, ComparisonResult::Disagreed),
        vec![found(Category::EnumValueRemoved, Severity::Warn, true, "/x")],
    );
    let rows = [hit, lowered, case(4, 3, ComparisonResult::Agreed), case(9, 4, ComparisonResult::Agreed)];
    let tallied = tally(&rows, vec![expect(1, fault), expect(2, fault), expect(3, fault), expect(4, None)]);
    let planted = &tallied.planted;
    assert_eq!((planted.committed, planted.seen, planted.missed, planted.synthetic), (3, 2, 1, 1));
    assert_eq!(planted.missed_as["enum_value_removed/block"], 1);
    assert_eq!(tallied.days[&DAY].calls, 1, "only the call that nobody planted");
    assert!(tallied.categories.is_empty());
}

#[test]
fn what_was_recorded_before_its_commitment_is_an_ordinary_call() {
    let late = Expectation { committed: 8, call_key: [1; 16], expect: None };
    let tallied = tally(&[case(1, 0, ComparisonResult::Agreed)], vec![late]);
    assert_eq!((tallied.days[&DAY].agreed, tallied.planted.synthetic), (1, 0));
}

#[test]
fn a_category_counts_calls_and_shows_the_worst_one() {
    let enumv = Category::EnumValueRemoved;
    let mut rows = vec![
        with(case(1, 40, ComparisonResult::Agreed), vec![found(enumv, Severity::Info, false, "/a")]),
        with(
            case(2, 30, ComparisonResult::Disagreed),
            vec![found(enumv, Severity::Warn, false, "/a"), found(enumv, Severity::Block, true, "/b")],
        ),
        with(case(3, 20, ComparisonResult::Disagreed), vec![found(enumv, Severity::Block, true, "/b")]),
    ];
    rows[0].day = 2;
    rows[1].day = 1;
    rows[2].day = 1;
    let mut late = rows[2].clone();
    late.key = 8;
    late.day = 9; // after the closed days
    rows.push(late);
    let tallied = tally(&rows, vec![]);
    let [only] = &tallied.categories[..] else { panic!("{:?}", tallied.categories) };
    assert_eq!((only.block, only.warn, only.info, only.refused), (2, 0, 1, 2));
    assert_eq!((only.first_seen, only.last_seen), (DAY.plus(1), DAY.plus(2)));
    assert_eq!((only.example.pointer.as_str(), only.example.place.offset), ("/b", 20));
    let fields: Vec<(&str, u64)> = only.fields.iter().map(|f| (f.pointer.as_str(), f.calls)).collect();
    assert_eq!(fields, [("/a", 2), ("/b", 2)]);
}

fn any_case() -> impl Strategy<Value = Case> {
    let severity = prop_oneof![Just(Severity::Info), Just(Severity::Warn), Just(Severity::Block)];
    let category = prop_oneof![
        Just(Category::TypeChanged),
        Just(Category::RangeTightened),
        Just(Category::DefaultChanged)
    ];
    let one = (category, severity, any::<bool>(), prop_oneof![Just("/a"), Just("/b")])
        .prop_map(|(c, s, r, f)| found(c, s, r, f));
    let result = proptest::sample::select(ComparisonResult::ALL.to_vec());
    (0u8..6, 0i32..3, result, any::<bool>(), proptest::collection::vec(one, 0..3), any::<bool>()).prop_map(
        |(key, day, result, observed, discrepancies, rule)| Case {
            key,
            day,
            offset: 0,
            result,
            observed,
            discrepancies,
            rules: if rule { vec!["trimmed".to_owned()] } else { vec![] },
        },
    )
}

proptest! {
    /// The balance holds whatever arrives, and the order of reading changes nothing.
    #[test]
    fn balanced_and_independent_of_order(
        mut cases in proptest::collection::vec(any_case(), 0..40),
        seed in any::<u64>(),
    ) {
        for (i, c) in cases.iter_mut().enumerate() {
            c.offset = i as i64;
        }
        let once = tally(&cases, vec![]);
        let rows: u64 = once.days.values().map(|d| d.calls).sum();
        prop_assert_eq!(rows, cases.len() as u64);
        for day in once.days.values() {
            prop_assert_eq!(day.calls, day.accounted());
        }
        let mut shuffled = cases.clone();
        shuffled.sort_by_key(|c| (c.offset as u64).wrapping_mul(seed | 1));
        let again = tally(&shuffled, vec![]);
        prop_assert_eq!(again.days, once.days);
        prop_assert_eq!(again.categories, once.categories);
        prop_assert_eq!(again.rules, once.rules);
    }
}
