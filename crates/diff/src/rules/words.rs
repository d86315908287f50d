//! A change in the words of whoever made it, and what to do about it.

use serde_json::Value;

use crate::change::{ChangeKind as Kind, RenameHint, Side};
use crate::pointer::{Pattern, Token};

/// What the words need to know of a change.
pub(super) struct Said<'a> {
    pub kind: Kind,
    pub side: Side,
    pub pointer: &'a str,
    pub old: Option<&'a Value>,
    pub new: Option<&'a Value>,
    pub keyword: &'a str,
    pub rename: Option<&'a RenameHint>,
    /// How many values of an `enum` it is about.
    pub values: usize,
    /// A call is refused.
    pub breaks: bool,
    /// It looks like less, and is proven to refuse nothing.
    pub idle: bool,
}

/// `lines[].unit` for `/lines/*/unit`.
pub(super) fn dotted(pointer: &str) -> String {
    let mut out = String::new();
    for token in Pattern::new(pointer).tokens() {
        match token {
            Token::Any => out.push_str("[]"),
            Token::Name(name) if !name.is_empty() && name.chars().all(|c| c.is_ascii_digit()) => {
                out.push_str(&format!("[{name}]"));
            }
            Token::Name(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
        }
    }
    out
}

/// A value as shown in a sentence.
pub(super) fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let short: String = text.chars().take(60).collect();
    if short.len() < text.len() { format!("`{short}…`") } else { format!("`{short}`") }
}

/// What a schema takes, in a few words: `one of …`, `string`, `list of string`.
pub(super) fn takes(schema: &Value) -> String {
    const MAX: usize = 6;
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let some: Vec<String> = values.iter().take(MAX).map(shown).collect();
        let more =
            if values.len() > MAX { format!(" and {} more", values.len() - MAX) } else { String::new() };
        return format!("one of {}{more}", some.join(", "));
    }
    if let Some(one) = schema.get("const") {
        return format!("always {}", shown(one));
    }
    match schema.get("type") {
        Some(Value::String(list)) if list == "array" => match schema.get("items") {
            Some(items) if items.get("type").is_some_and(Value::is_string) => {
                format!("a list of {}", types(items.get("type")))
            }
            _ => "a list".to_owned(),
        },
        stated @ Some(_) => types(stated),
        None => "any value".to_owned(),
    }
}

fn types(stated: Option<&Value>) -> String {
    match stated {
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any type".to_owned(),
    }
}

impl Said<'_> {
    fn output(&self) -> bool {
        self.side == Side::Output
    }

    /// `the argument `x``, `the result field `x``, `the object of arguments`.
    fn it(&self) -> String {
        match (self.pointer.is_empty(), self.output()) {
            (true, false) => "the object of arguments".to_owned(),
            (true, true) => "the result".to_owned(),
            (false, false) => format!("the argument `{}`", dotted(self.pointer)),
            (false, true) => format!("the result field `{}`", dotted(self.pointer)),
        }
    }

    /// The sentence, with a capital and a full stop.
    pub fn sentence(&self) -> String {
        let mut text = self.clause();
        if self.idle {
            let what = if self.output() { "no result" } else { "no call" };
            text.push_str(&format!(", and {what} is refused for it"));
        }
        if let Some(hint) = self.rename.filter(|_| self.hinted()) {
            let other = if self.pointer == hint.from { &hint.to } else { &hint.from };
            let verb = if self.pointer == hint.from {
                "is probably its new name"
            } else {
                "was probably its old name"
            };
            text.push_str(&format!("; `{}` {verb} ({})", dotted(other), hint.evidence));
        }
        let mut chars = text.chars();
        let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
        format!("{first}{}.", chars.as_str())
    }

    fn hinted(&self) -> bool {
        matches!(
            self.kind,
            Kind::PropertyAdded | Kind::PropertyRemoved | Kind::PropertyDropped | Kind::RequiredAdded
        )
    }

    fn clause(&self) -> String {
        let it = self.it();
        let old = || self.old.map_or_else(|| "none".to_owned(), shown);
        let new = || self.new.map_or_else(|| "none".to_owned(), shown);
        let name = || format!("`{}`", dotted(self.pointer));
        let noun = if self.output() { "result field" } else { "argument" };
        let of = if self.pointer.is_empty() && !self.output() {
            "the schema of the arguments".to_owned()
        } else {
            it.clone()
        };
        match self.kind {
            Kind::PropertyAdded => {
                let kind = self.new.map(takes).unwrap_or_default();
                let optional = if self.output() { "new" } else { "new optional" };
                format!("a {optional} {noun} {} was added: {kind}", name())
            }
            Kind::PropertyRemoved if self.output() => format!("{it} was removed: who reads it finds nothing"),
            Kind::PropertyRemoved => format!("{it} was removed, and a call that still sends it is refused"),
            Kind::PropertyDropped if self.keyword == "patternProperties" => {
                format!(
                    "the properties of a pattern ({name}) are no longer declared but still accepted: their values are \
                     lost without an error",
                    name = name()
                )
            }
            Kind::PropertyDropped => {
                format!("{it} is no longer declared but still accepted: its value is lost without an error")
            }
            Kind::RequiredAdded if self.old.is_none() && self.output() => {
                format!("the result always has a new field {}", name())
            }
            Kind::RequiredAdded if self.old.is_none() => {
                let kind = self.new.map(|v| format!(": {}", takes(v))).unwrap_or_default();
                format!("a new required argument {} was added{kind}", name())
            }
            Kind::RequiredAdded if self.output() => format!("{it} is always there now"),
            Kind::RequiredAdded => format!("{it} became required"),
            Kind::RequiredRemoved if self.output() => format!("{it} may be missing now"),
            Kind::RequiredRemoved => format!("{it} became optional"),
            Kind::TypeWidened => {
                format!("{it} takes more types: {} became {}", types(self.old), types(self.new))
            }
            Kind::TypeNarrowed => {
                format!("{it} takes fewer types: {} became {}", types(self.old), types(self.new))
            }
            Kind::TypeChanged => {
                format!("the type of {it} changed from {} to {}", types(self.old), types(self.new))
            }
            Kind::NullAllowed => format!("{it} may be `null` now"),
            Kind::NullRefused => format!("{it} may no longer be `null`"),
            Kind::EnumAdded => match self.new {
                Some(list @ Value::Array(_)) => {
                    format!("{it} took any value and takes {} now", takes(&serde_json::json!({"enum": list})))
                }
                _ => format!("{it} took any value and takes listed values now"),
            },
            Kind::EnumDropped => format!("{it} took listed values and takes any now"),
            Kind::EnumValueAdded | Kind::EnumValueRemoved if self.values > 1 => {
                let listed = self.old.or(self.new).and_then(Value::as_array);
                let some: Vec<String> = listed.into_iter().flatten().take(6).map(shown).collect();
                let more = self.values.saturating_sub(some.len());
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                let verb = if self.kind == Kind::EnumValueAdded { "takes" } else { "no longer takes" };
                format!("{it} {verb} {} values: {}{more}", self.values, some.join(", "))
            }
            Kind::EnumValueAdded => format!("{it} takes one more value: {}", new()),
            Kind::EnumValueRemoved => format!("{it} no longer takes the value {}", old()),
            Kind::EnumValueRecased => format!("{it} writes the value {} as {} now", old(), new()),
            Kind::EnumReordered => format!("the values of {it} are listed in another order"),
            Kind::ConstChanged => match (self.old, self.new) {
                (Some(_), Some(_)) => format!("{it} had to be {} and has to be {} now", old(), new()),
                (None, _) => format!("{it} has to be {} now", new()),
                (_, None) => format!("{it} no longer has to be {}", old()),
            },
            Kind::RangeTightened | Kind::RangeLoosened | Kind::SizeTightened | Kind::SizeLoosened => {
                let less = matches!(self.kind, Kind::RangeTightened | Kind::SizeTightened);
                let verb = match (self.idle, less) {
                    (true, _) => "has another limit",
                    (false, true) => "takes less",
                    (false, false) => "takes more",
                };
                format!("{it} {verb}: `{}` went from {} to {}", self.keyword, old(), new())
            }
            Kind::PatternChanged | Kind::FormatChanged => match (self.old, self.new) {
                (None, _) => format!("{it} has to match the {} {} now", self.keyword, new()),
                (_, None) => format!("{it} no longer has to match the {} {}", self.keyword, old()),
                _ => format!("the {} of {it} changed from {} to {}", self.keyword, old(), new()),
            },
            Kind::UniqueRequired => format!("the items of {it} have to differ now"),
            Kind::UniqueDropped => format!("the items of {it} may repeat now"),
            Kind::ItemsChanged => format!("what the items of {it} may be changed (`{}`)", self.keyword),
            Kind::ObjectClosed => format!("{of} no longer takes undeclared properties"),
            Kind::ObjectOpened => format!("{of} takes undeclared properties now"),
            Kind::OpenKeysChanged => {
                format!("what undeclared properties of {it} may be changed (`{}`)", self.keyword)
            }
            Kind::BranchesChanged => {
                format!("the alternatives or conditions of {of} changed (`{}`)", self.keyword)
            }
            Kind::KeywordChanged => match (self.old, self.new) {
                (None, None) => format!("{of} changed in a way that no rule names"),
                (Some(_), Some(_)) => format!("{of} says {} where it said {}", new(), old()),
                (None, _) => format!("{of} says {} now", new()),
                (_, None) => format!("{of} no longer says {}", old()),
            },
            Kind::DraftChanged => format!("{of} names the draft {} where it named {}", new(), old()),
            Kind::Rewritten => format!("{of} is written otherwise and takes the same values"),
            Kind::CutOff => format!(
                "the schemas go on at {it} beyond what is compared: what lies there was not looked at"
            ),
            Kind::RefusedOtherwise if self.output() => {
                "the new tool can return a result that the old schema refuses".to_owned()
            }
            Kind::RefusedOtherwise => "a call that the old schema takes is refused by the new one".to_owned(),
            Kind::DefaultAdded => format!("{it} has the default {} now", new()),
            Kind::DefaultRemoved => format!("{it} no longer has the default {}", old()),
            Kind::DefaultChanged => format!("the default of {it} changed from {} to {}", old(), new()),
            Kind::UnitChanged => match self.rename {
                Some(hint) => format!(
                    "`{}` became `{}`: its unit changed from {} to {}",
                    dotted(&hint.from),
                    dotted(&hint.to),
                    plain(self.old),
                    plain(self.new)
                ),
                None => format!("the unit of {it} changed from {} to {}", plain(self.old), plain(self.new)),
            },
            Kind::DeprecationChanged => match self.new {
                Some(Value::Bool(true)) => format!("{it} is marked deprecated"),
                _ => format!("{it} is no longer marked deprecated"),
            },
            Kind::TitleChanged | Kind::DescriptionChanged | Kind::ExamplesChanged => {
                let what = match self.kind {
                    Kind::TitleChanged => "title",
                    Kind::DescriptionChanged => "description",
                    _ => "examples",
                };
                let what = match self.keyword {
                    "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => "text of an alternative",
                    "$comment" => "comment",
                    _ => what,
                };
                match (self.old, self.new) {
                    (None, _) => format!("the {what} of {of} was added"),
                    (_, None) => format!("the {what} of {of} was removed"),
                    _ => format!("the {what} of {of} changed"),
                }
            }
            _ => self.kind.meaning().trim().trim_end_matches('.').to_owned(),
        }
    }

    /// How to avoid the break, one sentence.
    pub fn fix(&self) -> Option<String> {
        let name = dotted(self.pointer);
        Some(match self.kind {
            Kind::RequiredAdded if self.breaks && !self.output() => format!(
                "Leave `{name}` optional for a version, or fill it in an adapter for calls of the old contract"
            ),
            Kind::PropertyRemoved if self.breaks => match self.rename {
                Some(hint) => format!(
                    "Take `{}` beside `{}` for a version, or rename it in an adapter",
                    dotted(&hint.from),
                    dotted(&hint.to)
                ),
                None => format!("Keep `{name}` declared and ignored until no caller sends it"),
            },
            Kind::PropertyDropped => match self.rename {
                Some(hint) => {
                    format!("Rename `{}` to `{}` in an adapter", dotted(&hint.from), dotted(&hint.to))
                }
                None => format!("Keep `{name}` declared until no caller sends it"),
            },
            Kind::PropertyRemoved | Kind::RequiredRemoved if self.output() => {
                format!("Keep returning `{name}` until no reader needs it")
            }
            Kind::EnumValueRecased => "Take both spellings for a version, or map it in an adapter".to_owned(),
            Kind::EnumValueRemoved if self.breaks => {
                "Keep the value for a version, or map it in an adapter".to_owned()
            }
            Kind::UnitChanged => {
                "Convert it in an adapter; better, give the new unit a name of its own".to_owned()
            }
            Kind::DefaultAdded | Kind::DefaultRemoved | Kind::DefaultChanged => {
                "State the old default in an adapter for calls of the old contract".to_owned()
            }
            Kind::TypeNarrowed | Kind::TypeChanged if self.breaks => {
                "Take the old type too for a version, or convert it in an adapter".to_owned()
            }
            Kind::NullRefused if self.breaks => {
                "Take `null` for a version, or drop it in an adapter".to_owned()
            }
            _ if self.breaks && self.output() => {
                "Return what the old schema takes until every reader knows the new one".to_owned()
            }
            _ if self.breaks => {
                "Take the old values too for a version, or adapt calls of the old contract".to_owned()
            }
            _ => return None,
        })
    }
}

fn plain(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or("none")
}
