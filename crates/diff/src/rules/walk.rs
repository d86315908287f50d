//! The walk over two schemas: which rule sees which change where.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use serde_json::Value;

use super::keywords;
use super::raw::{Edit, Effect, Raw};
use super::view::{BRANCHES, Locations, View, address, branches_declare};
use crate::change::ChangeKind as Kind;
use crate::doc::SchemaDoc;
use crate::places::same_but_for_text;
use crate::pointer::join;

/// Changes that are told of one side.
pub(super) const MAX_RAWS: usize = 4_096;
const MAX_DEPTH: usize = 128;
const MAX_NODES: usize = 100_000;
/// Places at which one pair of shared definitions is looked at: beyond, its changes are told already.
const MAX_VISITS: u32 = 64;
/// Changes that carry edits, so that they can be looked at alone; see `judge`.
const MAX_EDITED: usize = 96;
/// How often a pair of nodes may stand on one path.
const UNROLLED: usize = 2;

/// Every change between two schemas, in the order of the walk. `old` is the side whose values have to be taken. Where a
/// limit was hit, the last one says so.
pub(super) fn changes(old: &SchemaDoc, new: &SchemaDoc) -> Vec<Raw> {
    let mut walk = Walk {
        old,
        new,
        old_at: Locations::new(old.root()),
        new_at: Locations::new(new.root()),
        raws: Vec::new(),
        known: HashMap::new(),
        edited: 0,
        visits: HashMap::new(),
        around: Vec::new(),
        stack: Vec::new(),
        budget: MAX_NODES,
        cut: None,
    };
    walk.node(&[old.root()], &[new.root()], "", 0);
    if let Some(at) = walk.cut.take() {
        walk.raws.push(cut_off(at));
    }
    walk.raws
}

/// What says that the walk did not see everything; `pointer` is where it stopped first.
pub(super) fn cut_off(pointer: String) -> Raw {
    Raw {
        kind: Kind::CutOff,
        pointer,
        old_location: None,
        new_location: None,
        old: None,
        new: None,
        effect: Effect::Either,
        keyword: "",
        edits: Vec::new(),
        place: None,
        rename: None,
        values: 1,
    }
}

/// A schema that says nothing.
fn nothing() -> &'static Value {
    static NOTHING: LazyLock<Value> = LazyLock::new(|| Value::Object(serde_json::Map::new()));
    &NOTHING
}

/// Whether a reference stands somewhere in it.
fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|key| map.contains_key(*key))
                || map.values().any(refers)
        }
        Value::Array(list) => list.iter().any(refers),
        _ => false,
    }
}

/// A pair of node sets, by address.
type Pair = (Vec<usize>, Vec<usize>);

/// Where one keyword stands: the node and the keyword's value.
type Standing<'a, 'l> = &'l [(&'a Value, &'a Value)];

pub(super) struct Walk<'a> {
    pub old: &'a SchemaDoc,
    pub new: &'a SchemaDoc,
    pub old_at: Locations<'a>,
    pub new_at: Locations<'a>,
    raws: Vec<Raw>,
    /// Where the changes of a kind at a pointer stand in `raws`.
    known: HashMap<(Kind, String), Vec<usize>>,
    edited: usize,
    visits: HashMap<Pair, u32>,
    /// While alternatives and conditions are looked at: the pointer that they speak of and the new nodes around them.
    around: Vec<(String, Vec<&'a Value>)>,
    stack: Vec<Pair>,
    budget: usize,
    /// Where a limit was hit first.
    cut: Option<String>,
}

/// One place on both sides.
pub(super) struct Place<'a, 'p> {
    pub o: &'p View<'a>,
    pub n: &'p View<'a>,
    pub pointer: &'p str,
    /// The nodes as the parent names them, before references are followed.
    pub start: (&'p [&'a Value], &'p [&'a Value]),
}

impl<'a> Walk<'a> {
    pub fn push(&mut self, raw: Raw) {
        let same = |r: &Raw| {
            (r.kind, &r.pointer, &r.old_location, &r.new_location, &r.old, &r.new)
                == (raw.kind, &raw.pointer, &raw.old_location, &raw.new_location, &raw.old, &raw.new)
        };
        let key = (raw.kind, raw.pointer.clone());
        if self.known.get(&key).is_some_and(|at| at.iter().filter_map(|i| self.raws.get(*i)).any(same)) {
            return;
        }
        if self.raws.len() >= MAX_RAWS {
            self.cut_at(&raw.pointer);
            return;
        }
        self.edited += usize::from(!raw.edits.is_empty());
        self.known.entry(key).or_default().push(self.raws.len());
        self.raws.push(raw);
    }

    /// Whether one more change may carry edits: copies of whole lists are not made a thousand times.
    pub fn may_edit(&self) -> bool {
        self.edited < MAX_EDITED
    }

    fn cut_at(&mut self, pointer: &str) {
        self.cut.get_or_insert_with(|| pointer.to_owned());
    }

    /// A change of one keyword of a place. `edits` make it alone; left empty where several nodes carry the keyword.
    pub fn keyword(&mut self, place: &Place<'a, '_>, kind: Kind, keyword: &'static str, effect: Effect) {
        let (old, new) = (place.o.get(keyword), place.n.get(keyword));
        let raw = Raw {
            kind,
            pointer: place.pointer.to_owned(),
            old_location: old.first().map(|(_, value)| self.old_at.of(value)).or_else(|| self.own(place).0),
            new_location: new.first().map(|(_, value)| self.new_at.of(value)).or_else(|| self.own(place).1),
            old: old.first().map(|(_, value)| (*value).clone()),
            new: new.first().map(|(_, value)| (*value).clone()),
            effect,
            keyword,
            edits: self.edit(place, &[keyword]),
            place: self.whole(place),
            rename: None,
            values: 1,
        };
        self.push(raw);
    }

    /// Other old and new values for the change that was pushed last, if it is of this kind.
    pub fn state_last(&mut self, kind: Kind, old: Value, new: Value) {
        if let Some(raw) = self.raws.last_mut().filter(|raw| raw.kind == kind) {
            (raw.old, raw.new) = (Some(old), Some(new));
        }
    }

    /// Other edits for the change that was pushed last, if it is of this kind.
    pub fn edits_of_last(&mut self, kind: Kind, edits: Vec<Edit>) {
        if let Some(raw) = self.raws.last_mut().filter(|raw| raw.kind == kind) {
            raw.edits = edits;
        }
    }

    /// Where the place itself stands on both sides.
    pub fn own(&self, place: &Place<'a, '_>) -> (Option<String>, Option<String>) {
        (
            place.start.0.first().map(|node| self.old_at.of(node)),
            place.start.1.first().map(|node| self.new_at.of(node)),
        )
    }

    /// Edits that give the old place the new one's values of these keywords.
    pub fn edit(&self, place: &Place<'a, '_>, keywords: &[&str]) -> Vec<Edit> {
        let mut edits = Vec::new();
        if !self.may_edit() {
            return edits;
        }
        for key in keywords {
            let (old, new) = (place.o.get(key), place.n.get(key));
            if old.len() > 1 || new.len() > 1 {
                return Vec::new();
            }
            let at = old.first().map(|(node, _)| *node).or_else(|| place.o.nodes().last().copied());
            let Some(at) = at else { return Vec::new() };
            let value = new.first().map(|(_, value)| (*value).clone());
            if value.is_some() || !old.is_empty() {
                edits.push(Edit { at: self.old_at.of(at), key: (*key).to_owned(), value });
            }
        }
        edits
    }

    /// The place as one edit, where it is one node below the root on both sides.
    pub fn whole(&self, place: &Place<'a, '_>) -> Option<(String, Value)> {
        match place.start {
            ([old], [new]) if self.may_edit() => {
                Some((self.old_at.of(old), (*new).clone())).filter(|(at, _)| !at.is_empty())
            }
            _ => None,
        }
    }

    pub fn node(&mut self, old: &[&'a Value], new: &[&'a Value], pointer: &str, depth: usize) {
        if self.budget == 0 {
            return self.cut_at(pointer);
        }
        self.budget -= 1;
        let (o, n) = (View::of(self.old, old), View::of(self.new, new));
        let place = Place { o: &o, n: &n, pointer, start: (old, new) };
        if o.is_empty() || n.is_empty() {
            // `true` and `false` as schemas, or an unresolved reference
            if old != new {
                self.as_a_whole(&place);
            }
            return;
        }
        // a node that only refers says nothing itself: places that share a definition are one pair
        let refers_only =
            |node: &Value| node.as_object().is_some_and(|m| m.len() == 1 && m.contains_key("$ref"));
        let ids = |view: &View<'_>| -> Vec<usize> {
            view.nodes().into_iter().filter(|node| !refers_only(node)).map(address).collect()
        };
        let here = (ids(&o), ids(&n));
        if self.stack.iter().filter(|on| **on == here).count() >= UNROLLED {
            return;
        }
        let visits = self.visits.entry(here.clone()).or_insert(0);
        *visits += 1;
        match (*visits > MAX_VISITS, depth > MAX_DEPTH, *visits > 1) {
            // Seen: what changed in it is told, at other places.
            (true, ..) | (_, true, true) => return,
            (false, true, false) => return self.cut_at(pointer),
            (false, false, _) => {}
        }
        self.stack.push(here);
        keywords::text(self, &place);
        keywords::values(self, &place);
        self.branches(&place, depth);
        if !keywords::came_or_went(&place, "object") {
            self.object(&place, depth);
        }
        if !keywords::came_or_went(&place, "array") {
            self.list(&place, depth);
        }
        keywords::others(self, &place);
        self.stack.pop();
    }

    /// A place that is a bare `true` or `false` on one side.
    fn as_a_whole(&mut self, place: &Place<'a, '_>) {
        let never = |nodes: &[&Value]| nodes.iter().any(|v| **v == Value::Bool(false));
        let effect = match (never(place.start.0), never(place.start.1)) {
            (false, true) => Effect::Narrows,
            (true, false) => Effect::Widens,
            _ => Effect::Either,
        };
        let (old_location, new_location) = self.own(place);
        let raw = Raw {
            kind: Kind::KeywordChanged,
            pointer: place.pointer.to_owned(),
            old_location,
            new_location,
            old: place.start.0.first().map(|v| (*v).clone()),
            new: place.start.1.first().map(|v| (*v).clone()),
            effect,
            keyword: "false",
            edits: Vec::new(),
            place: self.whole(place),
            rename: None,
            values: 1,
        };
        self.push(raw);
    }

    /// Alternatives and conditions.
    fn branches(&mut self, place: &Place<'a, '_>, depth: usize) {
        for key in BRANCHES {
            let (old, new) = (place.o.get(key), place.n.get(key));
            let same = old.len() == new.len()
                && old.iter().zip(&new).all(|((_, a), (_, b))| same_but_for_text(a, b));
            if same {
                if old.iter().zip(&new).any(|((_, a), (_, b))| a != b) {
                    self.keyword(place, Kind::DescriptionChanged, key, Effect::Text);
                }
                self.referred(place, key, (&old, &new), depth);
                continue;
            }
            // As many alternatives as before: the change is inside one of them.
            if let ([(_, Value::Array(a))], [(_, Value::Array(b))]) = (&old[..], &new[..])
                && a.len() == b.len()
            {
                let before = self.raws.len();
                for (x, y) in a.iter().zip(b).filter(|(x, y)| x != y) {
                    self.node(&[x], &[y], place.pointer, depth + 1);
                }
                if self.raws.len() > before {
                    continue;
                }
            }
            self.lost_in(place, key, (&old, &new), depth);
            self.keyword(place, Kind::BranchesChanged, key, Effect::Either);
        }
    }

    /// Alternatives and conditions that are written alike and refer to definitions that may have changed.
    fn referred(
        &mut self,
        place: &Place<'a, '_>,
        key: &str,
        (old, new): (Standing<'a, '_>, Standing<'a, '_>),
        depth: usize,
    ) {
        if !old.iter().any(|(_, v)| refers(v)) {
            return;
        }
        if let ([(_, Value::Array(a))], [(_, Value::Array(b))]) = (old, new) {
            for (x, y) in a.iter().zip(b).filter(|(x, _)| refers(x)) {
                self.node(&[x], &[y], place.pointer, depth + 1);
            }
        } else {
            self.lost_in(place, key, (old, new), depth);
        }
    }

    /// What no validator sees under a keyword of alternatives or conditions that changed: values lost, other defaults.
    fn lost_in(
        &mut self,
        place: &Place<'a, '_>,
        key: &str,
        (old, new): (Standing<'a, '_>, Standing<'a, '_>),
        depth: usize,
    ) {
        let members = |list: Standing<'a, '_>, name: Option<&str>| -> Vec<&'a Value> {
            list.iter()
                .filter_map(|(_, v)| name.map_or(Some(*v), |n| v.get(n)))
                .filter(|v| v.is_object())
                .collect()
        };
        self.around.push((place.pointer.to_owned(), place.n.nodes()));
        match key {
            "if" | "then" | "else" => {
                self.silent(&members(old, None), &members(new, None), place.pointer, depth);
            }
            "dependentSchemas" | "dependencies" => {
                let names: BTreeSet<&str> = old
                    .iter()
                    .filter_map(|(_, v)| v.as_object())
                    .flat_map(|m| m.keys())
                    .map(String::as_str)
                    .collect();
                for name in names {
                    let (a, b) = (members(old, Some(name)), members(new, Some(name)));
                    self.silent(&a, &b, place.pointer, depth);
                }
            }
            "anyOf" | "oneOf" => {
                let others: Vec<&Value> = new.iter().filter_map(|(_, v)| v.as_array()).flatten().collect();
                for gone in old.iter().filter_map(|(_, v)| v.as_array()).flatten() {
                    if gone.is_object() && !others.iter().any(|v| same_but_for_text(gone, v)) {
                        self.silent(&[gone], &[], place.pointer, depth);
                    }
                }
            }
            _ => {}
        }
        self.around.pop();
    }

    /// Of the changes between two places only those that no validator sees. Nothing on the new side: only what is lost.
    pub fn silent(&mut self, old: &[&'a Value], new: &[&'a Value], pointer: &str, depth: usize) {
        if old.is_empty() {
            return;
        }
        let before = self.raws.len();
        if new.is_empty() {
            self.node(old, &[nothing()], pointer, depth + 1);
        } else {
            self.node(old, new, pointer, depth + 1);
        }
        let lost = new.is_empty();
        let kept: Vec<Raw> = self
            .raws
            .drain(before..)
            .filter(|raw| match raw.kind {
                Kind::PropertyDropped => true,
                Kind::DefaultAdded | Kind::DefaultRemoved | Kind::DefaultChanged => !lost,
                Kind::FormatChanged | Kind::UnitChanged => !lost,
                _ => false,
            })
            .collect();
        self.known.values_mut().for_each(|at| at.retain(|i| *i < before));
        kept.into_iter().for_each(|raw| self.push(raw));
    }

    /// Whether what stands around an alternative or a condition declares the property.
    pub fn declared_around(&self, pointer: &str, name: &str) -> bool {
        self.around.iter().filter(|(at, _)| at == pointer).any(|(_, nodes)| {
            crate::places::matched_by_pattern(nodes, name) || branches_declare(self.new, nodes, name)
        })
    }

    /// Items of a list.
    fn list(&mut self, place: &Place<'a, '_>, depth: usize) {
        let schemas = |view: &View<'a>, key: &str| -> Vec<&'a Value> {
            view.get(key).into_iter().map(|(_, v)| v).filter(|v| v.is_object() || v.is_boolean()).collect()
        };
        for key in ["items", "additionalItems", "unevaluatedItems"] {
            let (old, new) = (schemas(place.o, key), schemas(place.n, key));
            if !old.is_empty() && !new.is_empty() {
                self.node(&old, &new, &join(place.pointer, "*"), depth + 1);
            } else if old.is_empty() != new.is_empty() {
                let says =
                    |l: &[&Value]| l.iter().any(|v| **v != Value::Bool(true) && **v != serde_json::json!({}));
                if says(&old) || says(&new) {
                    self.keyword(place, Kind::ItemsChanged, key, keywords::appears(place, key));
                }
            }
        }
        let tuple = |view: &View<'a>| -> Vec<&'a Vec<Value>> {
            let lists =
                view.nodes().into_iter().filter_map(|v| v.get("prefixItems").or_else(|| v.get("items")));
            lists.filter_map(Value::as_array).collect()
        };
        let (old, new) = (tuple(place.o), tuple(place.n));
        match (&old[..], &new[..]) {
            ([], []) => {}
            ([a], [b]) if a.len() == b.len() => {
                for (i, (x, y)) in a.iter().zip(b.iter()).enumerate() {
                    self.node(&[x], &[y], &join(place.pointer, &i.to_string()), depth + 1);
                }
            }
            _ if old != new => {
                let key = if place.o.get("prefixItems").len() + place.n.get("prefixItems").len() > 0 {
                    "prefixItems"
                } else {
                    "items"
                };
                self.keyword(place, Kind::ItemsChanged, key, Effect::Either);
            }
            _ => {}
        }
        if !keywords::same(place, "contains") || place.o.get("contains").iter().any(|(_, v)| refers(v)) {
            let nodes = |view: &View<'a>, key: &str| -> Vec<&'a Value> {
                view.get(key).into_iter().map(|(_, v)| v).filter(|v| v.is_object()).collect()
            };
            let below = join(place.pointer, "*");
            self.around.push((below.clone(), nodes(place.n, "items")));
            self.silent(&nodes(place.o, "contains"), &nodes(place.n, "contains"), &below, depth);
            self.around.pop();
        }
        if !keywords::same(place, "contains") {
            self.keyword(place, Kind::ItemsChanged, "contains", keywords::appears(place, "contains"));
        }
    }
}
