//! Strings: readable ones by a property's name, formats, and texts for simple patterns.

use super::Rng;

const WORDS: [&str; 24] = [
    "amber", "basket", "cedar", "delta", "ember", "fjord", "garnet", "harbor", "indigo", "juniper", "kettle",
    "lantern", "meadow", "nectar", "orchid", "pepper", "quartz", "raven", "saffron", "timber", "umber",
    "velvet", "willow", "zephyr",
];

pub(super) fn word(rng: &mut Rng) -> String {
    rng.pick(&WORDS).copied().unwrap_or("amber").to_owned()
}

/// A string that looks a little like what the property is for. Never a real person's data.
pub(super) fn readable(name: &str, rng: &mut Rng) -> String {
    let name = name.to_ascii_lowercase();
    if name == "id" || name.ends_with("_id") || name.ends_with("id") && name.len() > 4 {
        let head = name.chars().next().unwrap_or('x').to_ascii_uppercase();
        return format!("{head}-{:05}", rng.below(100_000));
    }
    if name.contains("phone") || name == "to" {
        return format!("+1555010{:04}", rng.below(10_000));
    }
    if name.contains("email") {
        return format!("{}{}@example.com", word(rng), rng.below(1000));
    }
    let words = 1 + rng.below(3);
    (0..words).map(|_| word(rng)).collect::<Vec<_>>().join(" ")
}

pub(super) fn format_text(format: &str, rng: &mut Rng) -> Option<String> {
    let date = |rng: &mut Rng| {
        format!("20{:02}-{:02}-{:02}", 20 + rng.below(10), 1 + rng.below(12), 1 + rng.below(28))
    };
    let time = |rng: &mut Rng| format!("{:02}:{:02}:{:02}", rng.below(24), rng.below(60), rng.below(60));
    Some(match format {
        "date" => date(rng),
        "time" => format!("{}Z", time(rng)),
        "date-time" => format!("{}T{}Z", date(rng), time(rng)),
        "duration" => format!("PT{}H", 1 + rng.below(48)),
        "email" | "idn-email" => format!("{}{}@example.com", word(rng), rng.below(1000)),
        "hostname" | "idn-hostname" => format!("{}.example.com", word(rng)),
        "ipv4" => format!("192.0.2.{}", rng.below(256)),
        "ipv6" => format!("2001:db8::{:x}", 1 + rng.below(65_535)),
        "uri" | "uri-reference" | "iri" | "iri-reference" | "url" => {
            format!("https://example.com/{}/{}", word(rng), rng.below(10_000))
        }
        "uri-template" => format!("https://example.com/{{{}}}", word(rng)),
        "uuid" => {
            let (a, b) = (rng.next(), rng.next());
            format!(
                "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
                a >> 32,
                (a >> 16) & 0xffff,
                a & 0xfff,
                (b >> 48) & 0xfff,
                b & 0xffff_ffff_ffff
            )
        }
        "json-pointer" => format!("/{}", word(rng)),
        "regex" => format!("^{}$", word(rng)),
        _ => return None,
    })
}

/// One string of each format that a validator may assert, and a few that are of none.
pub(crate) fn format_examples() -> impl Iterator<Item = &'static str> {
    [
        "2024-02-29",
        "12:30:00Z",
        "2024-02-29T12:30:00Z",
        "PT12H",
        "amber@example.com",
        "amber.example.com",
        "192.0.2.1",
        "2001:db8::1",
        "https://example.com/amber",
        "/amber",
        "0/amber",
        "{amber}",
        "00000000-0000-4000-8000-000000000000",
        "^amber$",
        "1",
        "",
        "not of any format: \\ [ {",
    ]
    .into_iter()
}

/// A text that a simple pattern matches: literals, `.`, `\d \w \s`, classes, groups with alternatives, and the
/// quantifiers `? * + {n} {n,} {n,m}`. `None` for anything else (look-around, back references, \p …).
pub(super) fn pattern_text(pattern: &str, rng: &mut Rng) -> Option<String> {
    let chars: Vec<char> = pattern.chars().collect();
    if chars.len() > 500 {
        return None;
    }
    let mut parser = PatternParser { chars: &chars, at: 0, depth: 0, steps: 0 };
    let mut out = String::new();
    parser.alternatives(rng, Some(&mut out))?;
    (parser.at == chars.len()).then_some(out)
}

pub(super) struct PatternParser<'p> {
    chars: &'p [char],
    at: usize,
    depth: usize,
    steps: u32,
}

impl PatternParser<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    /// Alternatives up to `)` or the end; one of them is written.
    fn alternatives(&mut self, rng: &mut Rng, out: Option<&mut String>) -> Option<()> {
        self.depth += 1;
        if self.depth > 24 {
            return None;
        }
        let mut texts = Vec::new();
        loop {
            let mut text = String::new();
            while let Some(c) = self.peek() {
                if c == '|' || c == ')' {
                    break;
                }
                self.piece(rng, &mut text)?;
            }
            texts.push(text);
            if self.peek() == Some('|') {
                self.at += 1;
            } else {
                break;
            }
        }
        self.depth -= 1;
        if let Some(out) = out {
            out.push_str(rng.pick(&texts)?);
        }
        Some(())
    }

    /// One atom with its quantifier, written.
    fn piece(&mut self, rng: &mut Rng, out: &mut String) -> Option<()> {
        self.steps += 1;
        if self.steps > 20_000 {
            return None;
        }
        if matches!(self.peek()?, '^' | '$') {
            self.at += 1;
            return Some(());
        }
        let start = self.at;
        let mut once = String::new();
        self.atom(rng, &mut once)?;
        let end = self.at;
        let (least, most) = self.quantifier()?;
        let after = self.at;
        let times = least + rng.below(most - least + 1);
        if out.len() as u64 + times > 4096 {
            return None;
        }
        for _ in 0..times {
            self.at = start;
            self.atom(rng, out)?;
            if self.at != end {
                return None;
            }
        }
        self.at = after;
        Some(())
    }

    fn quantifier(&mut self) -> Option<(u64, u64)> {
        let range = match self.peek() {
            Some('?') => (0, 1),
            Some('*') => (0, 4),
            Some('+') => (1, 5),
            Some('{') => {
                let close = self.chars.get(self.at..)?.iter().position(|c| *c == '}')? + self.at;
                let body: String = self.chars.get(self.at + 1..close)?.iter().collect();
                self.at = close;
                match body.split_once(',') {
                    None => {
                        let n = body.parse().ok()?;
                        (n, n)
                    }
                    Some((least, "")) => {
                        let n: u64 = least.parse().ok()?;
                        (n, n.saturating_add(3))
                    }
                    Some((least, most)) => (least.parse().ok()?, most.parse().ok()?),
                }
            }
            _ => return Some((1, 1)),
        };
        self.at += 1;
        if self.peek() == Some('?') {
            self.at += 1; // lazy: the same texts match
        }
        (range.0 <= range.1 && range.0 <= 1000).then_some((range.0, range.1.min(range.0 + 32)))
    }

    pub fn atom(&mut self, rng: &mut Rng, out: &mut String) -> Option<()> {
        match self.take()? {
            '(' => {
                if self.peek() == Some('?') {
                    // Only (?:…): no names, no look-around.
                    if self.chars.get(self.at + 1) != Some(&':') {
                        return None;
                    }
                    self.at += 2;
                }
                self.alternatives(rng, Some(out))?;
                (self.take()? == ')').then_some(())
            }
            '[' => {
                let set = self.class()?;
                out.push(*rng.pick(&set)?);
                Some(())
            }
            '.' => {
                out.push(*rng.pick(&['a', 'b', 'k', 'x', '7'])?);
                Some(())
            }
            '\\' => {
                let set = escape(self.take()?)?;
                out.push(*rng.pick(&set)?);
                Some(())
            }
            '*' | '+' | '?' | '{' | '}' | ')' | '|' => None,
            c => {
                out.push(c);
                Some(())
            }
        }
    }

    fn class(&mut self) -> Option<Vec<char>> {
        let negated = self.peek() == Some('^');
        if negated {
            self.at += 1;
        }
        let mut set: Vec<char> = Vec::new();
        let mut first = true;
        loop {
            let c = self.take()?;
            if c == ']' && !first {
                break;
            }
            first = false;
            let chars = if c == '\\' { escape(self.take()?)? } else { vec![c] };
            let range = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|c| *c != ']');
            match (chars.as_slice(), range) {
                ([low], true) => {
                    self.at += 1;
                    let high = match self.take()? {
                        '\\' => *escape(self.take()?)?.first()?,
                        c => c,
                    };
                    if (high as u32) < (*low as u32) {
                        return None;
                    }
                    set.extend((*low..=high).take(200));
                }
                _ => set.extend(chars),
            }
        }
        if negated {
            set = ('a'..='z').chain('0'..='9').filter(|c| !set.contains(c)).collect();
        }
        (!set.is_empty()).then_some(set)
    }
}

/// The characters for an escape; `None` for classes that this subset does not know.
pub(super) fn escape(c: char) -> Option<Vec<char>> {
    Some(match c {
        'd' => ('0'..='9').collect(),
        'w' => ('a'..='z').chain('0'..='9').collect(),
        's' => vec![' '],
        'n' => vec!['\n'],
        't' => vec!['\t'],
        'r' => vec!['\r'],
        c if c.is_ascii_alphanumeric() => return None,
        c => vec![c],
    })
}
