//! Where the schemas of a document lie: resources, anchors, and what a reference names. Never leaves the document.

use std::collections::HashMap;

use lastcall_contract::{Draft, ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_TABLES};
use serde_json::{Map, Value};

/// The base of a document without `$id`.
const NO_BASE: &str = "json-schema:///";

/// A schema and the resource in which it lies.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub node: &'a Value,
    pub resource: usize,
}

impl Place<'_> {
    /// Two places are one when they are the same node of the document.
    pub fn address(&self) -> usize {
        std::ptr::from_ref(self.node).addr()
    }
}

/// The schemas of one document.
pub(super) struct Index<'a> {
    pub root: &'a Value,
    pub draft: Draft,
    /// `$dynamicRef` or `$recursiveRef` occurs: what a schema means depends on the way to it.
    pub dynamic: bool,
    /// Address of a schema → its resource and its number in the order of the walk.
    nodes: HashMap<usize, (usize, usize)>,
    /// URI and root of every resource.
    resources: Vec<(String, &'a Value)>,
    anchors: HashMap<(usize, &'a str), &'a Value>,
    dynamic_anchors: HashMap<(usize, &'a str), &'a Value>,
}

impl<'a> Index<'a> {
    /// Walks the document.
    pub fn new(root: &'a Value, draft: Draft) -> Self {
        let mut index = Self {
            root,
            draft,
            dynamic: false,
            nodes: HashMap::new(),
            resources: vec![(NO_BASE.to_owned(), root)],
            anchors: HashMap::new(),
            dynamic_anchors: HashMap::new(),
        };
        index.walk(root);
        index
    }

    pub fn root_place(&self) -> Place<'a> {
        Place { node: self.root, resource: self.resource_of(self.root, 0) }
    }

    /// Whether what stands beside a `$ref` is ignored.
    pub fn ref_stands_alone(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }

    /// Whether a dynamic reference, perhaps one of a meta-schema, could find something here.
    pub fn has_dynamic_anchors(&self) -> bool {
        !self.dynamic_anchors.is_empty()
    }

    /// The number of a schema in the order of the walk.
    pub fn number(&self, place: Place<'_>) -> Option<usize> {
        self.nodes.get(&place.address()).map(|(_, number)| *number)
    }

    /// A schema directly below one.
    pub fn below(&self, parent: Place<'a>, node: &'a Value) -> Place<'a> {
        Place { node, resource: self.resource_of(node, parent.resource) }
    }

    fn resource_of(&self, node: &Value, otherwise: usize) -> usize {
        self.nodes.get(&std::ptr::from_ref(node).addr()).map_or(otherwise, |(resource, _)| *resource)
    }

    fn walk(&mut self, root: &'a Value) {
        let mut stack = vec![(root, 0)];
        while let Some((node, resource)) = stack.pop() {
            let resource = match node {
                Value::Object(map) => self.identify(node, map, resource),
                _ => resource,
            };
            let number = self.nodes.len();
            self.nodes.insert(std::ptr::from_ref(node).addr(), (resource, number));
            let Value::Object(map) = node else { continue };
            for (key, child) in map {
                let key = key.as_str();
                match child {
                    Value::Object(_) | Value::Bool(_) if ONE_SCHEMA.contains(&key) => {
                        stack.push((child, resource))
                    }
                    Value::Array(list) if SCHEMA_LISTS.contains(&key) => {
                        stack.extend(list.iter().map(|item| (item, resource)));
                    }
                    Value::Object(members) if SCHEMA_TABLES.contains(&key) => {
                        let schemas = members.values().filter(|m| m.is_object() || m.is_boolean());
                        stack.extend(schemas.map(|member| (member, resource)));
                    }
                    Value::String(_) if key == "$dynamicRef" || key == "$recursiveRef" => self.dynamic = true,
                    _ => {}
                }
            }
        }
    }

    /// Records what a schema calls itself; answers its resource.
    fn identify(&mut self, node: &'a Value, map: &'a Map<String, Value>, resource: usize) -> usize {
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        let mut resource = resource;
        let own = text(if self.draft == Draft::Draft4 { "id" } else { "$id" });
        if let Some(own) = own
            && !(self.ref_stands_alone() && map.contains_key("$ref"))
        {
            match own.strip_prefix('#') {
                Some(anchor) if self.ref_stands_alone() => {
                    self.anchors.insert((resource, anchor), node);
                }
                _ => {
                    if let Some(uri) = self.absolute(resource, own) {
                        let (uri, _) = uri.split_once('#').unwrap_or((&uri, ""));
                        if std::ptr::eq(node, self.root) {
                            self.resources[0] = (uri.to_owned(), node);
                            resource = 0;
                        } else {
                            self.resources.push((uri.to_owned(), node));
                            resource = self.resources.len() - 1;
                        }
                    }
                }
            }
        }
        if let Some(anchor) = text("$anchor") {
            self.anchors.insert((resource, anchor), node);
        }
        if let Some(anchor) = text("$dynamicAnchor") {
            self.anchors.insert((resource, anchor), node);
            self.dynamic_anchors.insert((resource, anchor), node);
        }
        resource
    }

    fn absolute(&self, resource: usize, reference: &str) -> Option<String> {
        let (base, _) = self.resources.get(resource)?;
        let base = jsonschema::uri::from_str(base).ok()?;
        jsonschema::uri::resolve_against(&base.borrow(), reference).ok().map(|uri| uri.as_str().to_owned())
    }

    /// What a reference written at `from` names, as if it were static.
    pub fn resolve(&self, from: Place<'a>, reference: &str) -> Option<Place<'a>> {
        let (resource, fragment) = match reference.strip_prefix('#') {
            Some(fragment) => (from.resource, percent_decoded(fragment)?),
            None => {
                let uri = self.absolute(from.resource, reference)?;
                let (uri, fragment) = uri.split_once('#').unwrap_or((&uri, ""));
                (self.resources.iter().position(|(own, _)| own == uri)?, percent_decoded(fragment)?)
            }
        };
        let (_, root) = self.resources.get(resource)?;
        let mut place = Place { node: root, resource };
        if fragment.is_empty() {
            return Some(place);
        }
        if !fragment.starts_with('/') {
            let node = self.anchors.get(&(resource, fragment.as_str()))?;
            return Some(Place { node, resource: self.resource_of(node, resource) });
        }
        for token in crate::pointer::tokens(&fragment) {
            let node = match place.node {
                Value::Object(map) => map.get(&token)?,
                Value::Array(list) => list.get(token.parse::<usize>().ok()?)?,
                _ => return None,
            };
            place = Place { node, resource: self.resource_of(node, place.resource) };
        }
        Some(place)
    }

    /// What a `$dynamicRef` names when these resources were entered before, the outermost first.
    pub fn resolve_dynamic(&self, from: Place<'a>, reference: &str, scope: &[usize]) -> Option<Place<'a>> {
        let initial = self.resolve(from, reference)?;
        let (_, anchor) = reference.split_once('#')?;
        let bookend = self.dynamic_anchors.get(&(initial.resource, anchor));
        if anchor.starts_with('/') || !bookend.is_some_and(|node| std::ptr::eq(*node, initial.node)) {
            return Some(initial);
        }
        let outermost = scope.iter().find_map(|resource| {
            let node = self.dynamic_anchors.get(&(*resource, anchor))?;
            Some(Place { node, resource: *resource })
        });
        Some(outermost.unwrap_or(initial))
    }

    /// What `$recursiveRef: "#"` names; `None` where the document has several resources.
    pub fn resolve_recursive(&self) -> Option<Place<'a>> {
        (self.resources.len() == 1).then(|| self.root_place())
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
