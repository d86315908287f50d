//! Every kind of change fires once, and a near miss stays silent. A kind without a row fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod rows;

use common::{changes, diff};
use lastcall_diff::{Backing, Change, ChangeKind as Kind, Class};
use rows::rows;

#[test]
fn every_kind_fires_once_and_its_near_miss_stays_silent() {
    let mut wrong = Vec::new();
    for row in rows() {
        let told = diff(&row.fires.0, &row.fires.1);
        let all: Vec<(Kind, Class)> = changes(&told).iter().map(|c| (c.kind, c.class)).collect();
        let own: Vec<Class> = all.iter().filter(|(kind, _)| *kind == row.kind).map(|(_, c)| *c).collect();
        if own != [row.class] {
            wrong.push(format!("{} as {}: told {all:?}", row.kind, row.class));
        }
        let quiet = diff(&row.silent.0, &row.silent.1);
        if changes(&quiet).iter().any(|c| c.kind == row.kind) {
            wrong.push(format!("{}: its near miss is told", row.kind));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_kind_has_a_row() {
    let rows = rows();
    for kind in Kind::ALL {
        assert_eq!(rows.iter().filter(|row| row.kind == *kind).count(), 1, "{kind}");
    }
}

fn backed(change: &Change) -> bool {
    match change.class {
        Class::Breaking => change.backed_by == Backing::Witness && change.witness.is_some(),
        Class::Compatible => change.backed_by == Backing::Proof,
        Class::NeedsReview => change.backed_by == Backing::Nothing,
        Class::UsuallyCompatible | Class::HighRisk => change.backed_by != Backing::Nothing,
    }
}

#[test]
fn what_backs_a_class_is_there() {
    for row in rows() {
        for (old, new) in [&row.fires, &row.silent] {
            for change in changes(&diff(old, new)) {
                assert!(backed(change), "{} of {}: {change:?}", change.kind, row.kind);
                let text = &change.sentence;
                assert!(text.ends_with('.') && !text.contains("..") && text.len() > 10, "{text}");
            }
        }
    }
}
