//! `--require-bump`: whether the step between two version numbers is as big as the changes ask for.

use anyhow::bail;
use lastcall_contract::registry::version_order;
use lastcall_diff::Bump;
use lastcall_report::VersionStep;

use super::sides::Side;

/// Holds the step between two contracts of one tool against what the changes ask for.
///
/// # Errors
/// A side is no contract of a registry, they are of two tools, or a version is no X.Y.Z.
pub fn check(before: &Side, after: &Side, wanted: Bump) -> anyhow::Result<VersionStep> {
    let (Some((tool, old)), Some((other, new))) = (before.version(), after.version()) else {
        bail!("--require-bump needs two contract ids, tool_id@version: a file has no version number");
    };
    if tool != other {
        bail!("--require-bump needs two versions of one tool, not {} and {}", before.label, after.label);
    }
    let (Some(a), Some(b)) = (numbers(old), numbers(new)) else {
        bail!("--require-bump reads versions X.Y.Z, not {old} and {new}");
    };
    let step = if a == b { to_release(a, old, new) } else { step(a, b) };
    let enough = step >= wanted;
    let said = match (step, wanted) {
        (Bump::None, Bump::None) if old == new => format!("{new} is the same version"),
        (Bump::None, _) => format!("{new} is not after {old}"),
        (step, _) => format!("{new} is a {step} step from {old}"),
    };
    let [major, minor, patch] = if to_release(a, old, &released(a)) >= wanted { a } else { least(a, wanted) };
    let least = (!enough).then(|| format!("{major}.{minor}.{patch}"));
    let sentence = match &least {
        None => format!("{said}, and the changes ask for {}", asked(wanted)),
        Some(least) => {
            format!("{said}, but the changes ask for {}: publish it as {least} or later", asked(wanted))
        }
    };
    Ok(VersionStep { made: step, asked: wanted, enough, least, sentence })
}

fn asked(bump: Bump) -> String {
    match bump {
        Bump::None => "no step".to_owned(),
        bump => format!("a {bump} step"),
    }
}

fn numbers(version: &str) -> Option<[u64; 3]> {
    let main = version.split(['-', '+']).next()?;
    let parts: Option<Vec<u64>> = main.split('.').map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

fn released([major, minor, patch]: [u64; 3]) -> String {
    format!("{major}.{minor}.{patch}")
}

/// The step from a pre-release of X.Y.Z to a later one or to X.Y.Z itself: as big as X.Y.Z is after what was released
/// before it, since a pre-release promises nothing yet (SemVer, 9 and 11).
fn to_release(main: [u64; 3], old: &str, new: &str) -> Bump {
    let without_build = |v: &str| v.split('+').next().unwrap_or_default().to_owned();
    if version_order(&without_build(old), &without_build(new)) != std::cmp::Ordering::Less {
        return Bump::None;
    }
    match main {
        [0, _, 0] | [_, 0, 0] => Bump::Major,
        [0, _, _] | [_, _, 0] => Bump::Minor,
        _ => Bump::Patch,
    }
}

/// The step from one version to another. Below 1.0.0 the second number counts as the first one and the third as the
/// second, as Cargo and npm read it: SemVer promises nothing there.
fn step(a: [u64; 3], b: [u64; 3]) -> Bump {
    if b <= a {
        return Bump::None;
    }
    let first = (0..3).find(|n| a[*n] != b[*n]).unwrap_or(2);
    match (first, a[0]) {
        (0, _) | (1, 0) => Bump::Major,
        (1, _) | (2, 0) => Bump::Minor,
        _ => Bump::Patch,
    }
}

/// The smallest version that is such a step.
fn least(a: [u64; 3], wanted: Bump) -> [u64; 3] {
    let [major, minor, patch] = a;
    match (wanted, major) {
        (Bump::Major, 0) => [0, minor.saturating_add(1), 0],
        (Bump::Major, _) => [major.saturating_add(1), 0, 0],
        (Bump::Minor, 1..) => [major, minor.saturating_add(1), 0],
        _ => [major, minor, patch.saturating_add(1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest version that is asked for is a step of that size, and the one before it is not.
    #[test]
    fn the_least_version_is_enough() {
        for a in [[0, 0, 1], [0, 3, 9], [1, 0, 0], [2, 9, 9], [10, 0, 3]] {
            for wanted in [Bump::Patch, Bump::Minor, Bump::Major] {
                assert!(step(a, least(a, wanted)) >= wanted, "{a:?} {wanted}");
            }
            assert_eq!(step(a, a), Bump::None);
            assert_eq!(step(least(a, Bump::Major), a), Bump::None, "backwards is no step");
        }
        assert_eq!(step([1, 2, 3], [1, 2, 4]), Bump::Patch);
        assert_eq!(step([1, 9, 9], [1, 10, 0]), Bump::Minor);
        assert_eq!(step([0, 1, 0], [0, 2, 0]), Bump::Major);
        for (old, new, wanted) in [
            ("2.0.0-rc.1", "2.0.0", Bump::Major),
            ("2.0.0-rc.2", "2.0.0-rc.10", Bump::Major),
            ("2.1.0-rc.1", "2.1.0", Bump::Minor),
            ("2.1.1-rc.1", "2.1.1+build", Bump::Patch),
            ("0.3.1-a", "0.3.1", Bump::Minor),
            ("2.0.0", "2.0.0-rc.1", Bump::None),
            ("2.0.0-rc.1", "2.0.0-rc.1+build", Bump::None),
        ] {
            assert_eq!(numbers(old).map(|main| to_release(main, old, new)), Some(wanted), "{old} {new}");
        }
        assert_eq!((numbers("1.2"), numbers("1.2.3-rc.1")), (None, Some([1, 2, 3])));
    }
}
