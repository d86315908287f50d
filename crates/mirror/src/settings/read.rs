//! Strict reading of TOML: every problem with its line, what is known there, and what to do.

use std::ops::Range;
use std::time::Duration;

use lastcall_contract::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Secret;

/// Keys that the service reads, at the top of the file.
const OF_THE_SERVICE: [&str; 9] =
    ["registry", "brokers", "from", "to", "preset", "map", "group", "instance", "simulated"];

/// A value with its place in the text.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// Gathers what is wrong.
pub(super) struct Reader<'a> {
    pub place: &'a str,
    pub text: &'a str,
    pub env: &'a dyn Fn(&str) -> Option<String>,
    pub problems: Vec<String>,
}

impl Reader<'_> {
    /// The line on which a span begins, from 1.
    pub fn line(&self, span: &Range<usize>) -> usize {
        self.text.get(..span.start).map_or(0, |before| before.matches('\n').count()) + 1
    }

    pub fn wrong(&mut self, span: &Range<usize>, message: &str, next: &str) {
        let line = self.line(span);
        self.problems.push(format!("{}:{line}: {message}. {next}.", self.place));
    }

    /// Complains of every key that is not known.
    pub fn keys(&mut self, table: &DeTable<'_>, at: &str, known: &[&str]) {
        for (key, value) in table.iter().filter(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            let name: String = key.get_ref().chars().filter(|c| !c.is_control()).take(80).collect();
            let quoted = |at: &str| {
                at.strip_prefix("[tools.\"").and_then(|rest| rest.strip_suffix("\"]")).map(str::to_owned)
            };
            let is_table = value.get_ref().as_table().is_some();
            if let Some(id) = quoted(at).filter(|_| is_table) {
                let next = format!("An id with a point in it stands in quotes: [tools.\"{id}.{name}\"]");
                self.wrong(&key.span(), &format!("unknown key `{name}` in {at}"), &next);
                continue;
            }
            if OF_THE_SERVICE.contains(&name.as_str()) {
                let next = format!("`{name}` is the service's: write it above the first table");
                self.wrong(&key.span(), &format!("unknown key `{name}` in {at}"), &next);
                continue;
            }
            let next = match nearest(&name, known) {
                Some(near) => format!("Perhaps `{near}` was meant; known are {}", known.join(", ")),
                None => format!("Known are {}", known.join(", ")),
            };
            self.wrong(&key.span(), &format!("unknown key `{name}` in {at}"), &next);
        }
    }

    pub fn table<'v, 'a>(&mut self, value: &'v Value<'a>, at: &str) -> Option<&'v DeTable<'a>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong(&value.span(), &format!("`{at}` is no table"), "Write it as { key = value }");
        }
        table
    }

    pub fn boolean(&mut self, value: &Value<'_>, at: &str) -> Option<bool> {
        let found = value.get_ref().as_bool();
        if found.is_none() {
            self.wrong(&value.span(), &format!("`{at}` is neither true nor false"), "Write one of them");
        }
        found
    }

    pub fn string(&mut self, value: &Value<'_>, at: &str) -> Option<String> {
        let found = value.get_ref().as_str().filter(|s| !s.is_empty() && !s.contains('\0'));
        if found.is_none() {
            self.wrong(&value.span(), &format!("`{at}` is no text"), "Write it in quotes");
        }
        found.map(str::to_owned)
    }

    /// A whole number within these bounds.
    pub fn whole(&mut self, value: &Value<'_>, at: &str, bounds: (u64, u64)) -> Option<u64> {
        let found = match value.get_ref() {
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok(),
            _ => None,
        };
        let found = found.filter(|n| (bounds.0..=bounds.1).contains(n));
        if found.is_none() {
            let next = format!("Write a whole number from {} to {}", bounds.0, bounds.1);
            self.wrong(&value.span(), &format!("`{at}` is out of bounds, or no whole number"), &next);
        }
        found
    }

    /// A number that `fits`; `what` says which do.
    pub fn number(&mut self, value: &Value<'_>, at: &str, fits: fn(f64) -> bool, what: &str) -> Option<f64> {
        let found = match value.get_ref() {
            DeValue::Integer(n) => n.as_str().parse().ok(),
            DeValue::Float(n) => n.as_str().parse().ok(),
            _ => None,
        };
        let found = found.filter(|n: &f64| n.is_finite() && fits(*n));
        if found.is_none() {
            self.wrong(&value.span(), &format!("`{at}` is no such number"), &format!("Write {what}"));
        }
        found
    }

    /// A duration: a whole number and `ms`, `s`, `m` or `h`, within these bounds.
    pub fn duration(
        &mut self,
        value: &Value<'_>,
        at: &str,
        bounds: (Duration, Duration),
    ) -> Option<Duration> {
        const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
        let found = value.get_ref().as_str().and_then(|text| amount(text, &UNITS)).map(Duration::from_millis);
        let found = found.filter(|d| (bounds.0..=bounds.1).contains(d));
        if found.is_none() {
            let next = format!(
                "Write it as \"500ms\", \"10s\", \"5m\" or \"1h\", from {:?} to {:?}",
                bounds.0, bounds.1
            );
            self.wrong(&value.span(), &format!("`{at}` is no such duration"), &next);
        }
        found
    }

    /// A size: a whole number of bytes, or one with `KiB` or `MiB`.
    pub fn size(&mut self, value: &Value<'_>, at: &str, bounds: (u64, u64)) -> Option<usize> {
        let found = match value.get_ref() {
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok(),
            DeValue::String(text) => amount(text, &[("KiB", 1 << 10), ("MiB", 1 << 20)]),
            _ => None,
        };
        let found = found.filter(|n| (bounds.0..=bounds.1).contains(n));
        if found.is_none() {
            let next = format!("Write bytes, or \"64KiB\" or \"1MiB\", from {} to {}", bounds.0, bounds.1);
            self.wrong(&value.span(), &format!("`{at}` is no such size"), &next);
        }
        found.and_then(|n| usize::try_from(n).ok())
    }

    /// A program and its arguments.
    pub fn argv(&mut self, value: &Value<'_>, at: &str) -> Option<Vec<String>> {
        let texts =
            |item: &Value<'_>| item.get_ref().as_str().filter(|s| !s.contains('\0')).map(str::to_owned);
        let found: Option<Vec<String>> =
            value.get_ref().as_array().and_then(|items| items.iter().map(texts).collect());
        let found = found.filter(|argv| argv.first().is_some_and(|program| !program.is_empty()));
        if found.is_none() {
            self.wrong(
                &value.span(),
                &format!("`{at}` is no list of a program and its arguments"),
                "Write it as [\"program\", \"argument\"]; no shell reads it",
            );
        }
        found
    }

    /// An http or https address without a user's name or password in it.
    pub fn url(&mut self, value: &Value<'_>, at: &str) -> Option<reqwest::Url> {
        let text = self.string(value, at)?;
        match reqwest::Url::parse(&text) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => {
                self.wrong(&value.span(), &format!("`{at}` is no http or https address"), "Write one");
                None
            }
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                self.wrong(
                    &value.span(),
                    &format!("`{at}` carries a user or a password"),
                    "Put it into `headers`, from the environment: { Authorization = \"Basic $NAME\" }",
                );
                None
            }
            Ok(url) => Some(url),
            Err(_) => {
                let next = "Write it as \"http://host:port/path\"";
                self.wrong(&value.span(), &format!("`{at}` is no address"), next);
                None
            }
        }
    }

    /// Names and values, `$NAME` and `${NAME}` taken from the environment, `$$` a dollar sign.
    pub fn secrets(
        &mut self,
        value: &Value<'_>,
        at: &str,
        is_name: fn(&str) -> bool,
    ) -> Option<Vec<(String, Secret)>> {
        let mut out = Vec::new();
        for (key, value) in self.table(value, at)? {
            let name = key.get_ref().as_ref();
            let place = format!("{at}.{name}");
            if !is_name(name) {
                self.wrong(&key.span(), &format!("`{place}` is no possible name"), "Write another");
                continue;
            }
            let Some(text) = self.string(value, &place) else { continue };
            match filled(&text, self.env) {
                Ok(text) if !text.contains(['\n', '\r', '\0']) => out.push((name.to_owned(), Secret(text))),
                Ok(_) => self.wrong(&value.span(), &format!("`{place}` holds a line break"), "Remove it"),
                Err(missing) => {
                    let missing: String = missing.chars().filter(|c| !c.is_control()).take(80).collect();
                    let message =
                        format!("`{place}` needs the environment variable `{missing}`, which is not set");
                    self.wrong(&value.span(), &message, "Set it for this process; `$$` means a dollar sign");
                }
            }
        }
        Some(out)
    }
}

fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// The text with variables filled in.
fn filled(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let (name, after) = match after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            Some(found) => found,
            None => {
                let end = after.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
                after.split_at_checked(end).unwrap_or((after, ""))
            }
        };
        out.push_str(&env(name).filter(|_| !name.is_empty()).ok_or_else(|| name.to_owned())?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}
