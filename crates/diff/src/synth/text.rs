//! A text of exactly so many characters that an expression matches.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use crate::generate::Rng;

/// Lengths beyond this are only reached by repeating one character.
const MAX: usize = 600;
/// Steps of the search.
const BUDGET: u32 = 400_000;

/// `None`: the expression cannot be read, or no text of that length is found. The caller checks the text.
pub(crate) fn of_length(pattern: &str, length: usize, rng: &mut Rng) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let looks = hir.properties();
    let (open_start, open_end) =
        (!looks.look_set_prefix().contains(Look::Start), !looks.look_set_suffix().contains(Look::End));
    let mut search = Search { budget: BUDGET };
    let shortest = search.lengths(&hir, length.min(MAX))?;
    // an expression without an anchor may stand anywhere in the text
    let own = (0..shortest.len()).rev().find(|n| {
        shortest.get(*n) == Some(&true) && (*n == length || ((open_start || open_end) && *n <= length))
    });
    let Some(own) = own else { return repeated(&hir, length) };
    let mut text = String::new();
    search.write(&hir, own, rng, &mut text)?;
    let pad = "x".repeat(length.checked_sub(text.chars().count())?);
    Some(if open_end { text + &pad } else { pad + &text })
}

/// `^[a-z]+$` and the like, at any length: literals around one repeated class.
fn repeated(hir: &Hir, length: usize) -> Option<String> {
    let parts: Vec<&Hir> = match hir.kind() {
        HirKind::Concat(parts) => parts.iter().collect(),
        _ => vec![hir],
    };
    let fixed: usize = parts.iter().filter_map(|p| p.properties().minimum_len()).sum();
    let mut text = String::new();
    let mut open = true;
    for part in parts {
        match part.kind() {
            HirKind::Look(_) | HirKind::Empty => {}
            HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(class) => text.push(a_char(class, &mut Rng::new(0))?),
            HirKind::Repetition(r) => {
                let HirKind::Class(class) = r.sub.kind() else { return None };
                let least = r.min as usize;
                let most = r.max.map_or(usize::MAX, |m| m as usize);
                let room =
                    if open { least.saturating_add(length.saturating_sub(fixed)).min(most) } else { least };
                open = open && room == least;
                text.extend(std::iter::repeat_n(a_char(class, &mut Rng::new(0))?, room));
            }
            _ => return None,
        }
    }
    (text.chars().count() == length).then_some(text)
}

struct Search {
    budget: u32,
}

impl Search {
    /// `[n]`: whether a text of n characters matches, for n up to `most`.
    fn lengths(&mut self, hir: &Hir, most: usize) -> Option<Vec<bool>> {
        self.budget = self.budget.checked_sub(1)?;
        let mut out = vec![false; most + 1];
        let mut set = |n: usize| {
            if let Some(slot) = out.get_mut(n) {
                *slot = true;
            }
        };
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => set(0),
            HirKind::Literal(literal) => set(std::str::from_utf8(&literal.0).ok()?.chars().count()),
            HirKind::Class(_) => set(1),
            HirKind::Capture(capture) => return self.lengths(&capture.sub, most),
            HirKind::Alternation(parts) => {
                for part in parts {
                    let other = self.lengths(part, most)?;
                    out.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
                }
            }
            HirKind::Concat(parts) => {
                set(0);
                for part in parts {
                    let other = self.lengths(part, most)?;
                    out = self.sums(&out, &other)?;
                }
            }
            HirKind::Repetition(repetition) => {
                let one = self.lengths(&repetition.sub, most)?;
                let mut reach = vec![false; most + 1];
                if let Some(slot) = reach.first_mut() {
                    *slot = true;
                }
                let last = repetition.max.unwrap_or(u32::MAX).min(repetition.min.saturating_add(most as u32));
                for copies in 0..=last {
                    if copies >= repetition.min {
                        let before = out.clone();
                        out.iter_mut().zip(&reach).for_each(|(a, b)| *a |= *b);
                        if before == out && copies > repetition.min {
                            break;
                        }
                    }
                    reach = self.sums(&reach, &one)?;
                    if !reach.contains(&true) {
                        break;
                    }
                }
            }
        }
        Some(out)
    }

    fn sums(&mut self, a: &[bool], b: &[bool]) -> Option<Vec<bool>> {
        let mut out = vec![false; a.len()];
        for (i, _) in a.iter().enumerate().filter(|(_, x)| **x) {
            for (j, _) in b.iter().enumerate().filter(|(_, x)| **x) {
                self.budget = self.budget.checked_sub(1)?;
                if let Some(slot) = out.get_mut(i + j) {
                    *slot = true;
                }
            }
        }
        Some(out)
    }

    /// Writes a text of n characters; `lengths` said that there is one.
    fn write(&mut self, hir: &Hir, n: usize, rng: &mut Rng, out: &mut String) -> Option<()> {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => (n == 0).then_some(()),
            HirKind::Literal(literal) => {
                out.push_str(std::str::from_utf8(&literal.0).ok()?);
                Some(())
            }
            HirKind::Class(class) => {
                out.push(a_char(class, rng)?);
                Some(())
            }
            HirKind::Capture(capture) => self.write(&capture.sub, n, rng, out),
            HirKind::Alternation(parts) => {
                let mut fitting = Vec::new();
                for part in parts {
                    if self.lengths(part, n)?.get(n) == Some(&true) {
                        fitting.push(part);
                    }
                }
                let part = *rng.pick(&fitting)?;
                self.write(part, n, rng, out)
            }
            HirKind::Concat(parts) => {
                let parts: Vec<&Hir> = parts.iter().collect();
                self.sequence(&parts, n, rng, out)
            }
            HirKind::Repetition(repetition) => {
                let sub: &Hir = &repetition.sub;
                // fewest copies first: each copy then has a share of the length
                let last = repetition.max.unwrap_or(u32::MAX).min(repetition.min.saturating_add(n as u32));
                let one = self.lengths(sub, n)?;
                let mut reach: Vec<bool> = (0..=n).map(|i| i == 0).collect();
                for copies in 0..=last {
                    if copies >= repetition.min && reach.get(n) == Some(&true) {
                        return self.sequence(&vec![sub; copies as usize], n, rng, out);
                    }
                    reach = self.sums(&reach, &one)?;
                }
                None
            }
        }
    }

    /// Writes one part after the other, together n characters.
    fn sequence(&mut self, parts: &[&Hir], n: usize, rng: &mut Rng, out: &mut String) -> Option<()> {
        let mut tables = vec![(0..=n).map(|i| i == 0).collect::<Vec<bool>>()];
        let mut own: Vec<Vec<bool>> = Vec::new();
        for part in parts {
            let same = own
                .len()
                .checked_sub(1)
                .filter(|i| parts.get(*i).is_some_and(|before| std::ptr::eq(*before, *part)));
            let table = match same.and_then(|i| own.get(i)) {
                Some(table) => table.clone(),
                None => self.lengths(part, n)?,
            };
            tables.push(self.sums(tables.last()?, &table)?);
            own.push(table);
        }
        // backwards: how long each part is
        let (mut left, mut sizes) = (n, Vec::new());
        for i in (0..parts.len()).rev() {
            let (before, table) = (tables.get(i)?, own.get(i)?);
            let size =
                (0..=left).find(|s| table.get(*s) == Some(&true) && before.get(left - s) == Some(&true))?;
            sizes.push(size);
            left -= size;
        }
        sizes.reverse();
        parts.iter().zip(sizes).try_for_each(|(part, size)| self.write(part, size, rng, out))
    }
}

/// A character of the class: a letter or digit where there is one.
fn a_char(class: &Class, rng: &mut Rng) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|r| (r.start(), r.end())).collect(),
        Class::Bytes(class) => class.iter().map(|r| (char::from(r.start()), char::from(r.end()))).collect(),
    };
    let holds = |c: &char| ranges.iter().any(|(low, high)| (low..=high).contains(&c));
    let plain: Vec<char> = ('a'..='z').chain('0'..='9').chain('A'..='Z').filter(holds).collect();
    rng.pick(&plain).copied().or_else(|| ranges.first().map(|r| r.0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_length_that_is_asked() {
        let mut rng = Rng::new(1);
        for (pattern, lengths) in [
            ("^[a-z]+$", vec![1, 7, 500, 9000]),
            ("^ord_[a-z0-9]{6,20}$", vec![10, 17, 24]),
            ("^(ab|cde)*$", vec![0, 2, 5, 41]),
            ("^https?://", vec![7, 60]),
            (r"^\d{4}-\d{2}$", vec![7]),
            (r"^\p{Lu}x*$", vec![1, 5]),
        ] {
            for n in lengths {
                let text = of_length(pattern, n, &mut rng).unwrap_or_else(|| panic!("{pattern} at {n}"));
                assert_eq!(text.chars().count(), n, "{pattern}: {text}");
            }
        }
        assert_eq!(of_length("^ab$", 3, &mut rng), None);
        assert_eq!(of_length("^(ab)+$", 3, &mut rng), None);
        assert_eq!(of_length("(?=a)b", 1, &mut rng), None);
    }
}
