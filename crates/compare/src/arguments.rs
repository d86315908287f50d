//! Effective arguments of both sides, after normalization (comparison.md section 4). Raw before normalized: this runs
//! after validation and records each rule that turned a difference into agreement.

use std::collections::BTreeSet;

use chrono::DateTime;
use lastcall_contract::Decimal;
use lastcall_diff::{escape, join, tokens};
use serde_json::Value;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::category::Category;
use crate::config::Runtime;
use crate::declared::conjuncts_default;
use crate::literal::Literal;
use crate::pair::PreparedPair;
use crate::side::Side;

/// Compares what current acts on with what the candidate says it acted on.
pub(crate) struct ArgumentComparison<'p> {
    pair: &'p PreparedPair,
    /// The call's arguments as parsed, to find which nodes speak of a place.
    arguments: &'p Value,
    /// Fields that something else explains; nothing is reported at or below them.
    explained: &'p [String],
    /// Differences.
    pub found: Vec<(String, Category)>,
    /// Rules that turned a difference into agreement.
    pub rules: BTreeSet<&'static str>,
}

impl<'p> ArgumentComparison<'p> {
    pub fn new(pair: &'p PreparedPair, arguments: &'p Value, explained: &'p [String]) -> Self {
        Self { pair, arguments, explained, found: Vec::new(), rules: BTreeSet::new() }
    }

    pub fn compare(&mut self, current: &Literal<'_>, candidate: &Literal<'_>) {
        self.value(current, candidate, "");
    }

    fn is_explained(&self, pointer: &str) -> bool {
        self.explained.iter().any(|e| {
            !e.is_empty()
                && (pointer == e || pointer.strip_prefix(e.as_str()).is_some_and(|r| r.starts_with('/')))
        })
    }

    fn report(&mut self, pointer: &str, category: Category) {
        if !self.is_explained(pointer) {
            self.found.push((pointer.to_owned(), category));
        }
    }

    fn value(&mut self, a: &Literal<'_>, b: &Literal<'_>, pointer: &str) {
        match (a, b) {
            (Literal::Object(x), Literal::Object(y)) => {
                for (key, value) in x {
                    let at = join(pointer, key);
                    match y.get(key) {
                        Some(other) => self.value(value, other, &at),
                        None => self.dropped(value, &at),
                    }
                }
                for (key, value) in y.iter().filter(|(k, _)| !x.contains_key(*k)) {
                    self.added(value, &join(pointer, key));
                }
            }
            (Literal::List(x), Literal::List(y)) => self.lists(x, y, pointer),
            _ => {
                if !self.equal(a, b, pointer) {
                    self.report(pointer, Category::ArgumentChanged);
                }
            }
        }
    }

    fn dropped(&mut self, value: &Literal<'_>, at: &str) {
        let runtime = self.pair.normalization.runtimes.candidate;
        self.only_one(value, at, &self.pair.candidate, runtime, Category::ArgumentDropped);
    }

    fn added(&mut self, value: &Literal<'_>, at: &str) {
        let runtime = self.pair.normalization.runtimes.current;
        self.only_one(value, at, &self.pair.current, runtime, Category::ArgumentAdded);
    }

    /// A value that one side has; `other` is the side that leaves it out, with what its runtime declares.
    fn only_one(
        &mut self,
        value: &Literal<'_>,
        at: &str,
        other: &Side,
        runtime: Runtime,
        category: Category,
    ) {
        let null = runtime.absent_is_null || self.pair.normalization.absent_is_null.has(at);
        if *value == Literal::Null && null {
            self.rules.insert("absent_is_null");
        } else if self.is_shared_default(value, at) {
            self.rules.insert("same_default");
        } else if runtime.fills_defaults
            && let Some(filled) = self.default_at(other, at)
        {
            // it acts on its default, which is a value like any other
            match Literal::parse(&filled) {
                Some(filled) if self.equal(value, &filled, at) => {
                    self.rules.insert("fills_defaults");
                }
                _ => self.report(at, Category::ArgumentChanged),
            }
        } else {
            self.report(at, category);
        }
    }

    /// Absent equals the default only where both declare the same one.
    fn is_shared_default(&self, value: &Literal<'_>, at: &str) -> bool {
        let (a, b) = (self.default_at(&self.pair.current, at), self.default_at(&self.pair.candidate, at));
        match (a.as_deref().and_then(Literal::parse), b.as_deref().and_then(Literal::parse)) {
            (Some(a), Some(b)) => a.same(&b) && a.same(value),
            _ => false,
        }
    }

    /// The default that a side declares at a place, as JSON text.
    fn default_at(&self, side: &Side, at: &str) -> Option<String> {
        let path: Vec<String> = tokens(at).collect();
        conjuncts_default(&side.doc, &side.at(self.arguments, &path)).map(Value::to_string)
    }

    /// A value that a rename moved: normalized as its old place says, reported at its new one.
    pub fn moved(&mut self, ours: &Literal<'_>, theirs: &Literal<'_>, from: &str, to: &str) {
        if !ours.same(theirs) && !self.equal(ours, theirs, from) {
            self.found.push((to.to_owned(), Category::ArgumentChanged));
        }
    }

    /// Where a unit is declared the same number is another quantity: looks at these places only.
    pub fn units(&mut self, current: &Literal<'_>, candidate: &Literal<'_>, pointer: &str) {
        match (current, candidate) {
            (Literal::Object(x), Literal::Object(y)) => {
                for (key, value) in x {
                    if let Some(other) = y.get(key) {
                        self.units(value, other, &join(pointer, key));
                    }
                }
            }
            (Literal::List(x), Literal::List(y)) => {
                x.iter()
                    .zip(y)
                    .enumerate()
                    .for_each(|(i, (a, b))| self.units(a, b, &join(pointer, &i.to_string())));
            }
            (Literal::Number(_), Literal::Number(_)) if self.pair.normalization.factor(pointer).is_some() => {
                self.value(current, candidate, pointer);
            }
            _ => {}
        }
    }

    fn lists(&mut self, x: &[Literal<'_>], y: &[Literal<'_>], pointer: &str) {
        if x.len() != y.len() {
            return self.report(pointer, Category::ArgumentChanged);
        }
        let in_order = x.iter().zip(y).all(|(a, b)| a.same(b));
        if !in_order && self.same_items(x, y, pointer) {
            if self.pair.normalization.unordered.has(pointer) {
                self.rules.insert("unordered");
            } else {
                self.report(pointer, Category::ArgumentChanged);
            }
            return;
        }
        for (i, (a, b)) in x.iter().zip(y).enumerate() {
            self.value(a, b, &join(pointer, &i.to_string()));
        }
    }

    /// Equal after normalization; the rule that made it so is recorded.
    fn equal(&mut self, a: &Literal<'_>, b: &Literal<'_>, pointer: &str) -> bool {
        let n = &self.pair.normalization;
        match (a, b) {
            (Literal::Number(x), Literal::Number(y)) => {
                if let Some(factor) = n.factor(pointer) {
                    let there = Decimal::parse(x).and_then(|x| x.times(factor));
                    let same = there.is_some() && there == Decimal::parse(y);
                    if same && !Decimal::same(x, y) {
                        self.rules.insert("units");
                    }
                    return same;
                }
                let same = Decimal::same(x, y);
                if same && x != y {
                    self.rules.insert("number_identity");
                }
                same
            }
            (Literal::Text(x), Literal::Text(y)) => {
                if x == y {
                    return true;
                }
                if !n.verbatim.has(pointer) {
                    if nfc(x) == nfc(y) {
                        self.rules.insert("unicode_nfc");
                        return true;
                    }
                    if collapsed(&nfc(x)) == collapsed(&nfc(y)) {
                        self.rules.insert("white_space");
                        return true;
                    }
                }
                let (x, y) = (collapsed(&nfc(x)), collapsed(&nfc(y)));
                if n.enum_case.has(pointer) && x.to_lowercase() == y.to_lowercase() {
                    self.rules.insert("enum_case");
                    return true;
                }
                let instant = |s: &str| {
                    DateTime::parse_from_rfc3339(s).ok().map(|t| (t.timestamp(), t.timestamp_subsec_nanos()))
                };
                if n.dates.has(pointer) && instant(&x).is_some() && instant(&x) == instant(&y) {
                    self.rules.insert("dates");
                    return true;
                }
                let same_amount = match (amount(&x), amount(&y)) {
                    (Some((c, v)), Some((d, w))) => c == d && Decimal::same(&v, &w),
                    _ => false,
                };
                if n.currency.has(pointer) && same_amount {
                    self.rules.insert("currency");
                    return true;
                }
                if n.numeric_strings.has(pointer) && is_number(&x) && is_number(&y) && Decimal::same(&x, &y) {
                    self.rules.insert("numeric_strings");
                    return true;
                }
                false
            }
            (Literal::Text(text), Literal::Number(number))
            | (Literal::Number(number), Literal::Text(text)) => {
                let text = text.trim();
                let same = is_number(text)
                    && Decimal::same(text, number)
                    && (n.numeric_strings.has(pointer) || self.takes_string_and_number(pointer));
                if same {
                    self.rules.insert("numeric_strings");
                }
                same || self.coerced(a, b, pointer)
            }
            (Literal::Text(_), Literal::Bool(_)) | (Literal::Bool(_), Literal::Text(_)) => {
                self.coerced(a, b, pointer)
            }
            _ => a == b,
        }
    }

    /// Whether a runtime that declares it makes the candidate's value of the call's.
    fn coerced(&mut self, a: &Literal<'_>, b: &Literal<'_>, pointer: &str) -> bool {
        let runtimes = self.pair.normalization.runtimes;
        let sides = [
            (&self.pair.current, runtimes.current.coerces),
            (&self.pair.candidate, runtimes.candidate.coerces),
        ];
        let made = sides.iter().any(|(side, declared)| {
            let nodes = if *declared { nodes_at(side, self.arguments, pointer) } else { None };
            nodes.is_some_and(|nodes| {
                let takes = |name: &str| accepts_type(side, &nodes, name);
                match (a, b) {
                    (Literal::Text(text), Literal::Number(number)) => {
                        takes("number")
                            && !takes("string")
                            && is_number(text.trim())
                            && Decimal::same(text.trim(), number)
                    }
                    (Literal::Text(text), Literal::Bool(value)) => {
                        takes("boolean") && !takes("string") && text.trim().parse::<bool>() == Ok(*value)
                    }
                    (Literal::Number(number), Literal::Text(text)) => {
                        takes("string") && !takes("number") && *number == text.as_ref()
                    }
                    (Literal::Bool(value), Literal::Text(text)) => {
                        takes("string") && !takes("boolean") && value.to_string() == text.as_ref()
                    }
                    _ => false,
                }
            })
        });
        if made {
            self.rules.insert("coerces");
        }
        made
    }

    /// Whether current accepts both a string and a number at the place.
    fn takes_string_and_number(&self, pointer: &str) -> bool {
        let current = &self.pair.current;
        nodes_at(current, self.arguments, pointer).is_some_and(|nodes| {
            accepts_type(current, &nodes, "string") && accepts_type(current, &nodes, "number")
        })
    }

    /// The same items, each as often, in another order: strings as they are after normalization.
    fn same_items(&self, x: &[Literal<'_>], y: &[Literal<'_>], pointer: &str) -> bool {
        let verbatim = self.pair.normalization.verbatim.has(pointer);
        let text = |s: &str| if verbatim { s.to_owned() } else { collapsed(&nfc(s)) };
        let sorted = |list: &[Literal<'_>]| {
            let mut keys: Vec<String> = list.iter().map(|v| v.key(&text)).collect();
            let in_order = keys.clone();
            keys.sort_unstable();
            (keys, in_order)
        };
        let ((a, a_order), (b, b_order)) = (sorted(x), sorted(y));
        a == b && a_order != b_order
    }
}

/// What a side says of a place, whatever value stands there.
fn nodes_at<'a>(side: &'a Side, arguments: &Value, pointer: &str) -> Option<Vec<&'a Value>> {
    let path: Vec<String> = tokens(pointer).collect();
    let (last, up) = path.split_last()?;
    let parent = side.at(arguments, up);
    let of_list = arguments.pointer(&up.iter().map(|t| format!("/{}", escape(t))).collect::<String>());
    Some(match (of_list, last.parse::<usize>()) {
        (Some(Value::Array(_)), Ok(index)) => side.item(&parent, index),
        _ => side.member(&parent, last),
    })
}

/// Whether every one of the nodes lets a type in: its `type`, and one branch at least of each union.
fn accepts_type(side: &Side, nodes: &[&Value], name: &str) -> bool {
    fn one(side: &Side, node: &Value, name: &str, depth: usize) -> bool {
        let mut all = Vec::new();
        side.doc.conjuncts(node, &mut all);
        let fits = |t: &str| t == name || (name == "number" && t == "integer");
        depth < 16
            && all.iter().all(|node| {
                let typed = match node.get("type") {
                    Some(Value::String(t)) => fits(t),
                    Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).any(fits),
                    _ => true,
                };
                typed
                    && ["anyOf", "oneOf"].iter().all(|key| {
                        let branches = node.get(*key).and_then(Value::as_array);
                        branches.is_none_or(|b| b.iter().any(|branch| one(side, branch, name, depth + 1)))
                    })
            })
    }
    nodes.iter().all(|node| one(side, node, name, 0))
}

fn nfc(text: &str) -> std::borrow::Cow<'_, str> {
    if is_nfc(text) { text.into() } else { text.nfc().collect::<String>().into() }
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A JSON number literal, and nothing around it.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let leading_zero = matches!(digits, [b'0', b'0'..=b'9', ..]); // 007 is a code, not a number
    digits.first().is_some_and(u8::is_ascii_digit) && !leading_zero && Decimal::parse(text).is_some()
}

/// `EUR 12.50`, `12.50 EUR`, `EUR12.50`: an ISO 4217 code before or after a decimal; nothing else.
fn amount(text: &str) -> Option<(String, String)> {
    let is_code = |c: &str| c.len() == 3 && c.bytes().all(|b| b.is_ascii_uppercase());
    let (head, tail) = (text.get(..3)?, text.get(3..)?);
    if is_code(head) && is_number(tail.trim()) {
        return Some((head.to_owned(), tail.trim().to_owned()));
    }
    let at = text.len().checked_sub(3)?;
    let (head, tail) = (text.get(..at)?, text.get(at..)?);
    (is_code(tail) && is_number(head.trim())).then(|| (tail.to_owned(), head.trim().to_owned()))
}
