//! Text that changed where no value is spoken of by itself: in alternatives of constants, under `contains`, `propertyNames`
//! or `dependentSchemas`, beside a `$ref` that counts alone. No validator sees it, and the model reads it.

use std::collections::HashSet;

use lastcall_contract::{ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_TABLES};
use serde_json::{Map, Value};

use super::raw::{Effect, Raw};
use super::rounded::instance_of;
use super::walk::{MAX_RAWS, cut_off};
use crate::change::ChangeKind as Kind;
use crate::doc::SchemaDoc;
use crate::pointer::{escape, join};

/// What is read as text, and what its change is called.
const TEXT: [(&str, Kind); 6] = [
    ("title", Kind::TitleChanged),
    ("description", Kind::DescriptionChanged),
    ("examples", Kind::ExamplesChanged),
    ("example", Kind::ExamplesChanged),
    ("deprecated", Kind::DeprecationChanged),
    ("$comment", Kind::DescriptionChanged),
];

/// Adds the changes of text that are not among `raws`, by place in the two documents.
pub(super) fn untold(old: &SchemaDoc, new: &SchemaDoc, raws: &mut Vec<Raw>) {
    let mut told = HashSet::new();
    let mut whole = HashSet::new();
    for raw in raws.iter() {
        for at in [&raw.old_location, &raw.new_location].into_iter().flatten() {
            told.insert(at.clone());
            if !raw.keyword.is_empty() && at.ends_with(&format!("/{}", raw.keyword)) {
                whole.insert(at.clone());
            }
        }
        if let Kind::PropertyAdded | Kind::PropertyRemoved | Kind::PropertyDropped | Kind::RequiredAdded =
            raw.kind
        {
            whole.extend(raw.old_location.iter().filter(|_| raw.new.is_none()).cloned());
            whole.extend(raw.new_location.iter().filter(|_| raw.old.is_none()).cloned());
        }
    }
    let mut walk =
        Walk { doc: (old, new), told, whole, found: Vec::new(), room: MAX_RAWS.saturating_sub(raws.len()) };
    walk.node(old.root(), new.root(), &mut String::new());
    let cut = walk.room == 0 && !raws.iter().any(|raw| raw.kind == Kind::CutOff);
    raws.append(&mut walk.found);
    if cut {
        raws.push(cut_off(String::new()));
    }
}

struct Walk<'a> {
    doc: (&'a SchemaDoc, &'a SchemaDoc),
    /// Places of changes that are told.
    told: HashSet<String>,
    /// Places of changes that show all that is below them.
    whole: HashSet<String>,
    found: Vec<Raw>,
    /// Changes that may still be told.
    room: usize,
}

impl Walk<'_> {
    fn node(&mut self, old: &Value, new: &Value, at: &mut String) {
        let (Some(a), Some(b)) = (old.as_object(), new.as_object()) else { return };
        if old == new || self.whole.contains(at.as_str()) || self.room == 0 {
            return;
        }
        for (key, kind) in TEXT {
            self.text(key, kind, (a, b), at);
        }
        if self.doc.0.stands_alone(old) && self.doc.1.stands_alone(new) {
            self.text("default", Kind::DescriptionChanged, (a, b), at);
        }
        for (key, x) in a {
            let Some(y) = b.get(key) else { continue };
            let length = at.len();
            at.push('/');
            at.push_str(&escape(key));
            if !self.whole.contains(at.as_str()) {
                self.below(key, x, y, at);
            }
            at.truncate(length);
        }
    }

    fn below(&mut self, key: &str, x: &Value, y: &Value, at: &mut String) {
        let mut child = |walk: &mut Self, token: &str, x: &Value, y: &Value| {
            let length = at.len();
            at.push('/');
            at.push_str(&escape(token));
            walk.node(x, y, at);
            at.truncate(length);
        };
        match (x, y) {
            (Value::Object(x), Value::Object(y)) if SCHEMA_TABLES.contains(&key) => {
                for (name, one) in x {
                    if let Some(other) = y.get(name) {
                        child(self, name, one, other);
                    }
                }
            }
            (Value::Array(x), Value::Array(y)) if SCHEMA_LISTS.contains(&key) || key == "items" => {
                // constants are known by their value, wherever they stand
                let constant = |v: &Value| v.get("const").cloned();
                for (i, one) in x.iter().enumerate() {
                    let other = match constant(one) {
                        Some(value) => y.iter().find(|v| constant(v).as_ref() == Some(&value)),
                        None => y.get(i).filter(|_| x.len() == y.len()),
                    };
                    if let Some(other) = other {
                        child(self, &i.to_string(), one, other);
                    }
                }
            }
            _ if ONE_SCHEMA.contains(&key) => self.node(x, y, at),
            _ => {}
        }
    }

    fn text(
        &mut self,
        key: &'static str,
        kind: Kind,
        (a, b): (&Map<String, Value>, &Map<String, Value>),
        at: &str,
    ) {
        let (old, new) = (a.get(key), b.get(key));
        let place = join(at, key);
        if old == new || self.told.contains(&place) || self.room == 0 {
            return;
        }
        self.room -= 1;
        self.found.push(Raw {
            kind,
            pointer: instance_of(at).unwrap_or_default(),
            old_location: Some(if old.is_some() { place.clone() } else { at.to_owned() }),
            new_location: Some(if new.is_some() { place } else { at.to_owned() }),
            old: old.cloned(),
            new: new.cloned(),
            effect: Effect::Text,
            keyword: key,
            edits: Vec::new(),
            place: None,
            rename: None,
            values: 1,
        });
    }
}
