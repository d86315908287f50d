//! Exposure: which changed places a call came to, and at which it disagreed (comparison.md section 6).

use lastcall_diff::{PlaceKind, Token};
use serde_json::Value;

use crate::category::{Category, Severity};
use crate::pair::PreparedPair;
use crate::tree::Tree;
use crate::types::Discrepancy;

/// Places that a call touched, and those of them at which it disagreed; indices into `PreparedPair::places`.
pub(crate) fn exposure(
    pair: &PreparedPair,
    arguments: &Tree<'_>,
    discrepancies: &[Discrepancy],
) -> (Vec<u16>, Vec<u16>) {
    let (mut touched, mut disagreed) = (Vec::new(), Vec::new());
    for (index, place) in pair.places.iter().enumerate() {
        let Ok(index) = u16::try_from(index) else { break };
        let at = |d: &Discrepancy| match place.kind {
            // shown by what the closed object refuses inside
            PlaceKind::ObjectClosed => {
                d.field.rfind('/').and_then(|i| d.field.get(..i)).is_some_and(|up| place.pattern.matches(up))
            }
            _ => place.pattern.matches(&d.field),
        };
        let hit =
            discrepancies.iter().any(|d| d.severity >= Severity::Warn && at(d) && place_shows(place.kind, d));
        if hit {
            disagreed.push(index);
        }
        if hit || touches(arguments, place.pattern.tokens(), place.kind, place.value.as_ref()) {
            touched.push(index);
        }
    }
    (touched, disagreed)
}

/// Whether a discrepancy at a place's pointer is one that this kind of change brings about.
fn place_shows(kind: PlaceKind, d: &Discrepancy) -> bool {
    use Category as C;
    match kind {
        PlaceKind::PropertyRemoved => matches!(
            d.category,
            C::RequiredRemoved
                | C::OptionalRemoved
                | C::OptionalValueLost
                | C::OptionalRenamed
                | C::RequiredRenamed
                | C::OptionalRefused
        ),
        PlaceKind::PropertyAdded => false,
        PlaceKind::RequiredAdded => matches!(d.category, C::RequiredAdded | C::RequiredNullableAdded),
        PlaceKind::TypeNarrowed => {
            matches!(d.category, C::TypeChanged | C::NullRefused | C::UnenforcedRefused)
        }
        PlaceKind::EnumValueRemoved => {
            matches!(d.category, C::EnumValueRemoved | C::EnumCaseChanged | C::UnenforcedRefused)
        }
        PlaceKind::BoundTightened => {
            matches!(d.category, C::RangeTightened | C::RefusedOther | C::UnenforcedRefused)
        }
        PlaceKind::DefaultChanged => d.category == C::DefaultChanged,
        PlaceKind::ObjectClosed => {
            matches!(d.category, C::UndeclaredRefused | C::OptionalRefused | C::RequiredRemoved)
        }
        PlaceKind::BranchChanged => d.refused,
    }
}

/// Whether a call's arguments come to a place.
fn touches(value: &Tree<'_>, path: &[Token], kind: PlaceKind, removed: Option<&Value>) -> bool {
    let Some((token, rest)) = path.split_first() else {
        return match (kind, removed) {
            (PlaceKind::EnumValueRemoved, Some(removed)) => {
                crate::declared::same_value(removed, &value.to_value())
            }
            _ => true,
        };
    };
    match (value, token) {
        (Tree::Object(members), Token::Any) => members.values().any(|v| touches(v, rest, kind, removed)),
        (Tree::Object(members), Token::Name(name)) => match members.get(name) {
            Some(child) if rest.is_empty() => match kind {
                PlaceKind::DefaultChanged => false,
                _ => touches(child, rest, kind, removed),
            },
            Some(child) => touches(child, rest, kind, removed),
            // left out: that is what touches a new requirement or another default
            None => rest.is_empty() && matches!(kind, PlaceKind::RequiredAdded | PlaceKind::DefaultChanged),
        },
        (Tree::List(items), Token::Any) => items.iter().any(|v| touches(v, rest, kind, removed)),
        (Tree::List(items), Token::Name(name)) => {
            let child = name.parse::<usize>().ok().and_then(|i| items.get(i));
            child.is_some_and(|v| touches(v, rest, kind, removed))
        }
        _ => false,
    }
}
