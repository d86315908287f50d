//! Near names, for hints in messages. Never used to accept anything.

/// The name among `known` that is at most a third of its letters away; ties go to the first.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(64).map(|c| c.to_ascii_lowercase()).collect();
    known
        .into_iter()
        .map(|k| (distance(&name, &k.chars().take(64).collect::<Vec<_>>()), k))
        .filter(|(d, k)| *d <= k.chars().count().div_ceil(3))
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Levenshtein distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b) {
            let here = (diagonal + usize::from(x != y)).min(*cell + 1).min(left + 1);
            diagonal = std::mem::replace(cell, here);
            left = here;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_near_or_absent() {
        let keys = ["ceiling", "ceiling_basis", "counted_days", "min_calls"];
        assert_eq!(nearest("celing", keys), Some("ceiling"));
        assert_eq!(nearest("min_call", keys), Some("min_calls"));
        assert_eq!(nearest("counteddays", keys), Some("counted_days"));
        assert_eq!(nearest("zebra", keys), None);
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(distance(&chars(""), &chars("abc")), 3);
    }
}
