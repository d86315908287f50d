//! Redaction: what of a record is hidden or left out before anything is written. Pure. The comparison sees the record
//! as it arrived; everything that is stored is made from what comes out here.

mod key;
mod mask;
mod members;

use std::borrow::Cow;
use std::fmt::Write as _;

use lastcall_compare::Discrepancy;
use lastcall_event::{Place, Preset, RawValue};
use lastcall_ledger::LedgerError;
use lastcall_ledger::redaction::{Redaction, Step, Treatment};
use lastcall_ledger::state::matches;

pub use key::{MARK, RedactionKey};
use mask::{below, masked};
use members::Members;

/// One path of a rule.
#[derive(Clone, Debug)]
struct Path {
    tool: Option<String>,
    steps: Vec<Step>,
    action: Treatment,
    /// As the rule says it.
    said: String,
}

/// A rule on its way down: what is left of its path.
#[derive(Clone, Copy)]
struct Active<'a> {
    path: &'a Path,
    at: usize,
}

impl<'a> Active<'a> {
    fn rest(&self) -> Option<&'a Step> {
        self.path.steps.get(self.at)
    }

    fn down(mut self) -> Self {
        self.at += 1;
        self
    }
}

/// Applies the rules of one source.
#[derive(Clone, Debug)]
pub struct Redactor {
    paths: Vec<Path>,
    /// Rules for pointers into arguments, and into results, as discrepancies state them.
    arguments: Vec<Path>,
    results: Vec<Path>,
    preset: Preset,
    key: RedactionKey,
}

/// What became of a value.
enum Change {
    Same,
    Dropped,
    Now(String),
}

/// Which rules did something.
#[derive(Default)]
struct Applied<'a>(Vec<&'a str>);

impl<'a> Applied<'a> {
    fn note(&mut self, said: &'a str) {
        if !self.0.contains(&said) {
            self.0.push(said);
        }
    }
}

impl Redactor {
    /// The rules of a source, ready. `None`: they keep everything.
    ///
    /// # Errors
    /// A rule is refused, or the key is not the one that the source's hashes are made with.
    pub fn new(
        redaction: &Redaction,
        preset: Preset,
        key: RedactionKey,
    ) -> Result<Option<Self>, LedgerError> {
        redaction.check(preset)?;
        if key.fingerprint() != redaction.key {
            return Err(LedgerError::Refused(format!(
                "the redaction key is {}, and this source's hashes are made with {}: give the key that they began with",
                key.fingerprint(),
                redaction.key
            )));
        }
        let mut paths = Vec::new();
        for rule in &redaction.rules {
            for steps in rule.paths(preset)? {
                let (tool, action, said) = (rule.tool.clone(), rule.action, rule.pointer.clone());
                paths.push(Path { tool, steps, action, said });
            }
        }
        let below = |places: &[&[&str]]| -> Vec<Path> {
            places.iter().flat_map(|place| paths.iter().filter_map(|path| below(path, place))).collect()
        };
        let (arguments, results) = (below(preset.argument_places()), below(preset.result_places()));
        Ok(redaction.redacts().then_some(Self { paths, arguments, results, preset, key }))
    }

    /// The record as it is stored; `None`: no rule touches it, and it is stored byte for byte.
    ///
    /// What a rule touched is written anew, with the field `redacted` beside it, which names the rules' pointers;
    /// everything else keeps its text.
    pub fn record(&self, tool: &str, record: &str) -> Option<String> {
        let of_tool = |path: &&Path| path.tool.as_deref().is_none_or(|pattern| matches(pattern, tool));
        let active: Vec<Active<'_>> =
            self.paths.iter().filter(of_tool).map(|path| Active { path, at: 0 }).collect();
        let mut applied = Applied::default();
        let changed = self.value(record, self.preset.places(), &active, None, &mut applied);
        let Change::Now(mut text) = changed else { return None };
        let named = serde_json::to_string(&applied.0).unwrap_or_default();
        if text.pop() == Some('}') {
            let comma = if text.ends_with('{') { "" } else { "," };
            let _ = write!(text, "{comma}\"redacted\":{named}}}");
        }
        Some(text)
    }

    /// What is kept of a record that could not be decoded: no rule can be applied to what cannot be read.
    pub fn dead(&self, bytes: &[u8]) -> Vec<u8> {
        self.key.of_bytes(bytes).into_bytes()
    }

    /// See [`RedactionKey::of_hash`].
    pub fn of_hash(&self, hash: u128) -> String {
        self.key.of_hash(hash)
    }

    /// Hides keys that are values in the pointers of discrepancies: what a rule's `*` matched below the names of the
    /// arguments is written `*`, and what stands below a hidden value is cut off.
    pub fn mask(&self, tool: &str, discrepancies: &mut [Discrepancy]) {
        for d in discrepancies {
            let of_result = d.category.as_str().starts_with("out");
            let paths = if of_result { &self.results } else { &self.arguments };
            if let Some(masked) = masked(paths, tool, &d.field) {
                d.field = masked;
                d.note = None;
            }
        }
    }

    fn value<'a>(
        &'a self,
        raw: &str,
        place: Place,
        active: &[Active<'a>],
        inherited: Option<&'a Path>,
        applied: &mut Applied<'a>,
    ) -> Change {
        let ends = active.iter().filter(|a| a.rest().is_none()).map(|a| a.path);
        let here = ends.max_by_key(|path| rank(path)).or(inherited);
        let deeper: Vec<Active<'_>> = active.iter().filter(|a| a.rest().is_some()).copied().collect();
        if deeper.is_empty() {
            return self.treat(raw, place, here, applied);
        }
        match raw.trim_start().as_bytes().first() {
            Some(b'{') => self.object(raw, place, &deeper, here, applied),
            Some(b'[') => self.list(raw, place, &deeper, here, applied),
            Some(b'"') if place == Place::Encoded => self.encoded(raw, &deeper, here, applied),
            // Null is the absence of a value.
            Some(b'n') => self.treat(raw, place, here, applied),
            // A value where the rule expects something around it: it may be what the rule is about.
            _ => match deeper.iter().map(|a| a.path).find(|path| path.action != Treatment::Keep) {
                Some(path) if matches!(place, Place::Free | Place::Needed | Place::Encoded) => {
                    applied.note(&path.said);
                    self.hide(raw)
                }
                _ => self.treat(raw, place, here, applied),
            },
        }
    }

    /// Does what the rule says to a whole value.
    fn treat<'a>(
        &'a self,
        raw: &str,
        place: Place,
        rule: Option<&'a Path>,
        applied: &mut Applied<'a>,
    ) -> Change {
        let Some(rule) = rule.filter(|rule| rule.action != Treatment::Keep) else { return Change::Same };
        let change = match (place, rule.action) {
            (Place::Fixed | Place::Record(_), _) => Change::Same,
            (Place::List(Place::Text), Treatment::Hash) | (Place::List(Place::Record(_)), _) => {
                return self.list(raw, place, &[], Some(rule), applied);
            }
            (Place::Classed, _) => self.classed(raw),
            (Place::Needed, Treatment::Drop) => self.hide(raw),
            (_, Treatment::Drop) => Change::Dropped,
            _ => self.hide(raw),
        };
        if !matches!(change, Change::Same) {
            applied.note(&rule.said);
        }
        change
    }

    fn object<'a>(
        &'a self,
        raw: &str,
        place: Place,
        active: &[Active<'a>],
        inherited: Option<&'a Path>,
        applied: &mut Applied<'a>,
    ) -> Change {
        let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(raw) else {
            return self.hide(raw);
        };
        let (mut out, mut changed) = (String::with_capacity(raw.len()), false);
        for (key, value) in &members {
            let down: Vec<Active<'_>> = active
                .iter()
                .filter(|a| match a.rest() {
                    Some(Step::Any) => true,
                    Some(Step::Key(wanted)) => **key == **wanted,
                    None => false,
                })
                .map(|a| a.down())
                .collect();
            let change = self.value(value.get(), place.member(key), &down, inherited, applied);
            changed |= !matches!(change, Change::Same);
            let text = match &change {
                Change::Dropped => continue,
                Change::Same => value.get(),
                Change::Now(text) => text,
            };
            let key = serde_json::to_string(key).unwrap_or_default();
            let _ = write!(out, "{}{key}:{text}", if out.is_empty() { '{' } else { ',' });
        }
        if !changed {
            return Change::Same;
        }
        out.push_str(if out.is_empty() { "{}" } else { "}" });
        Change::Now(out)
    }

    fn list<'a>(
        &'a self,
        raw: &str,
        place: Place,
        active: &[Active<'a>],
        inherited: Option<&'a Path>,
        applied: &mut Applied<'a>,
    ) -> Change {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) else { return self.hide(raw) };
        let (mut out, mut changed) = (String::with_capacity(raw.len()), false);
        for (index, item) in items.iter().enumerate() {
            let index = index.to_string();
            let down: Vec<Active<'_>> = active
                .iter()
                .filter_map(|a| match a.rest()? {
                    Step::Any => Some(a.down()),
                    Step::Key(key) if *key == index => Some(a.down()),
                    Step::Key(key) if key.bytes().all(|b| b.is_ascii_digit()) => None,
                    // A list where the rule expects an object: of each of its items.
                    Step::Key(_) => Some(*a),
                })
                .collect();
            let change = self.value(item.get(), place.item(), &down, inherited, applied);
            changed |= !matches!(change, Change::Same);
            let text = match &change {
                Change::Dropped => continue,
                Change::Same => item.get(),
                Change::Now(text) => text,
            };
            let _ = write!(out, "{}{text}", if out.is_empty() { '[' } else { ',' });
        }
        if !changed {
            return Change::Same;
        }
        out.push_str(if out.is_empty() { "[]" } else { "]" });
        Change::Now(out)
    }

    /// The text of arguments, as a provider sends it: the rules hold for what is in it. One that is no JSON is hidden
    /// whole.
    fn encoded<'a>(
        &'a self,
        raw: &str,
        active: &[Active<'a>],
        inherited: Option<&'a Path>,
        applied: &mut Applied<'a>,
    ) -> Change {
        let cut = || active.iter().map(|a| a.path).find(|path| path.action != Treatment::Keep);
        let inner: Option<String> = serde_json::from_str(raw).ok();
        match inner.filter(|inner| serde_json::from_str::<&RawValue>(inner).is_ok()) {
            Some(inner) => match self.value(&inner, Place::Needed, active, inherited, applied) {
                Change::Now(text) => Change::Now(serde_json::to_string(&text).unwrap_or_default()),
                other => other,
            },
            None => match cut() {
                Some(path) => {
                    applied.note(&path.said);
                    self.hide(raw)
                }
                None => self.treat(raw, Place::Text, inherited, applied),
            },
        }
    }

    /// A text up to its first colon, and a hash of the rest.
    fn classed(&self, raw: &str) -> Change {
        let Ok(text) = serde_json::from_str::<String>(raw) else { return self.hide(raw) };
        let (class, rest) = text.split_once(':').unwrap_or(("", &text));
        // A class is one word; anything else is already what the error says.
        let (class, rest) =
            if class.contains(char::is_whitespace) { ("", text.as_str()) } else { (class, rest) };
        let hidden = format!("{class}: {}", self.key.of_text(rest));
        Change::Now(serde_json::to_string(&hidden).unwrap_or_default())
    }

    /// The hash of a value, as a JSON text. Null stays: it is the absence of a value.
    fn hide(&self, raw: &str) -> Change {
        let raw = raw.trim();
        if raw == "null" {
            return Change::Same;
        }
        let hidden = match serde_json::from_str::<Cow<'_, str>>(raw) {
            Ok(text) => self.key.of_text(&text),
            Err(_) => self.key.hidden(&[b"json\0", raw.as_bytes()]),
        };
        Change::Now(format!("\"{hidden}\""))
    }
}

/// Which of two rules is more precise: more steps, then a key before a `*`, then one for a tool.
fn rank(path: &Path) -> (usize, Vec<bool>, bool) {
    (path.steps.len(), path.steps.iter().map(|s| *s != Step::Any).collect(), path.tool.is_some())
}
