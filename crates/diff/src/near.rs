//! When two names are near: equal but for case and separators, one inside the other, or similar to 0.8.

/// Comparison.md section 8, Limits. Similarity is 1 − Levenshtein distance / longer length, over characters.
pub fn names_are_near(a: &str, b: &str) -> bool {
    let (a, b) = (folded(a), folded(b));
    if a.is_empty() || b.is_empty() {
        return false;
    }
    if a == b {
        return true;
    }
    let (short, long) = if a.len() <= b.len() { (&a, &b) } else { (&b, &a) };
    if long.windows(short.len()).any(|w| w == &short[..]) {
        return true;
    }
    if long.len() > 256 {
        return false; // hostile names: the quadratic distance is not worth it
    }
    let distance = levenshtein(&a, &b);
    // 1 - distance/len >= 4/5, in integers
    distance * 5 <= long.len()
}

fn folded(name: &str) -> Vec<char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

pub(crate) fn levenshtein(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The same with two neighbours that changed places as one edit (optimal string alignment): what a hand mistypes.
pub(crate) fn typing_distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            let mut cost = (row[j] + usize::from(ca != cb)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *ca == b[j - 1] && a[i - 1] == *cb {
                cost = cost.min(before[j - 1] + 1);
            }
            next.push(cost);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_changed_places_are_one_edit() {
        let of = |a: &str, b: &str| {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            (typing_distance(&a, &b), levenshtein(&a, &b))
        };
        assert_eq!(of("tilte", "title"), (1, 2));
        assert_eq!(of("descripiton", "description"), (1, 2));
        for (a, b) in [("", "abc"), ("kitten", "sitting"), ("same", "same"), ("abc", "cab")] {
            assert_eq!(of(a, b).0, of(a, b).1, "{a} {b}: no neighbours changed places");
        }
    }

    #[test]
    fn near_and_far() {
        for (a, b) in [
            ("customer_id", "customerId"),
            ("assignee", "assignee_id"),
            ("colour", "color"),
            ("reason", "reason_code"),
        ] {
            assert!(names_are_near(a, b) && names_are_near(b, a), "{a} {b}");
        }
        for (a, b) in [("assignee", "owner"), ("to", "recipient"), ("", "x"), ("limit", "count")] {
            assert!(!names_are_near(a, b) && !names_are_near(b, a), "{a} {b}");
        }
    }
}
