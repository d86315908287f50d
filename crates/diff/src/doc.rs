//! A schema document and its references: which nodes speak of a place. Never leaves the document.

use std::collections::{HashMap, HashSet};

use lastcall_contract::{Draft, SCHEMA_TABLES};
use serde_json::Value;

/// A schema with an index of its anchors and embedded resources.
#[derive(Clone, Debug)]
pub struct SchemaDoc {
    root: Value,
    /// `$anchor`, `$dynamicAnchor`, `$id` and draft-04's `id` → JSON Pointer of the node that declares it.
    names: HashMap<String, String>,
    /// Drafts up to 07: what stands beside a `$ref` does not count.
    ref_stands_alone: bool,
}

impl SchemaDoc {
    /// Indexes a document of draft 2019-09 or later.
    pub fn new(root: Value) -> Self {
        let mut names = HashMap::new();
        index(&root, &mut String::new(), &mut names, false, 0);
        Self { root, names, ref_stands_alone: false }
    }

    /// Indexes a document of this draft.
    pub fn of_draft(root: Value, draft: Draft) -> Self {
        let ref_stands_alone = matches!(draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7);
        Self { ref_stands_alone, ..Self::new(root) }
    }

    /// The document.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// The node that a `$ref` names, when it lies in this document.
    pub fn resolve(&self, reference: &str) -> Option<&Value> {
        if reference == "#" || reference.is_empty() {
            return Some(&self.root);
        }
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let start = if base.is_empty() { &self.root } else { self.root.pointer(self.names.get(base)?)? };
        if fragment.is_empty() {
            return Some(start);
        }
        if fragment.starts_with('/') {
            return start.pointer(&percent_decoded(fragment));
        }
        self.root.pointer(self.names.get(&format!("#{fragment}"))?)
    }

    /// The reference of a node, followed: `$ref`, `$dynamicRef` (as if static) or `$recursiveRef` (the root).
    pub fn reference<'a>(&'a self, node: &'a Value) -> Option<&'a Value> {
        if let Some(target) = node.get("$ref").or_else(|| node.get("$dynamicRef")).and_then(Value::as_str) {
            return self.resolve(target);
        }
        node.get("$recursiveRef").map(|_| &self.root)
    }

    /// Whether what stands beside this node's `$ref` does not count.
    pub fn stands_alone(&self, node: &Value) -> bool {
        self.ref_stands_alone && node.get("$ref").is_some()
    }

    /// The node and everything that applies with it wherever it applies: references and `allOf`, recursively.
    /// In document order, each node once, however long the chain of references: the document is the only bound.
    pub fn conjuncts<'a>(&'a self, node: &'a Value, out: &mut Vec<&'a Value>) {
        let address = |node: &Value| std::ptr::from_ref(node).addr();
        let mut seen: HashSet<usize> = out.iter().map(|known| address(known)).collect();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if !node.is_object() || !seen.insert(address(node)) {
                continue;
            }
            let target = self.reference(node);
            if self.stands_alone(node) {
                open.extend(target);
                continue;
            }
            out.push(node);
            // The last one pushed is looked at first.
            open.extend(node.get("allOf").and_then(Value::as_array).into_iter().flatten().rev());
            open.extend(target);
        }
    }
}

/// `in_table`: the keys of this object are names.
fn index(
    node: &Value,
    pointer: &mut String,
    names: &mut HashMap<String, String>,
    in_table: bool,
    depth: usize,
) {
    if depth > 128 {
        return;
    }
    match node {
        Value::Object(map) => {
            if !in_table {
                for (key, prefix) in [("$anchor", "#"), ("$dynamicAnchor", "#"), ("$id", ""), ("id", "")] {
                    if let Some(Value::String(name)) = map.get(key) {
                        names.entry(format!("{prefix}{name}")).or_insert_with(|| pointer.clone());
                    }
                }
            }
            for (key, child) in map {
                if !in_table && matches!(key.as_str(), "enum" | "const" | "default" | "examples") {
                    continue; // data, not schema
                }
                let length = pointer.len();
                pointer.push('/');
                pointer.push_str(&crate::pointer::escape(key));
                index(child, pointer, names, !in_table && SCHEMA_TABLES.contains(&key.as_str()), depth + 1);
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (i, child) in items.iter().enumerate() {
                let length = pointer.len();
                pointer.push_str(&format!("/{i}"));
                index(child, pointer, names, false, depth + 1);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

fn percent_decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = bytes.get(i + 1..i + 3).and_then(|h| std::str::from_utf8(h).ok());
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) if bytes[i] == b'%' => {
                out.push(byte);
                i += 3;
            }
            _ => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_stay_inside() {
        let doc = SchemaDoc::new(json!({
            "$defs": {"a": {"$anchor": "here", "type": "string"}, "b": {"$id": "urn:b", "$defs": {"c d": true}}},
            "allOf": [{"$ref": "#/$defs/a"}], "$ref": "#"
        }));
        assert_eq!(doc.resolve("#here"), doc.resolve("#/$defs/a"));
        assert_eq!(doc.resolve("urn:b#/$defs/c%20d"), Some(&json!(true)));
        assert_eq!(doc.resolve("other.json#/x"), None);
        let mut nodes = Vec::new();
        doc.conjuncts(doc.root(), &mut nodes);
        assert_eq!(nodes.len(), 3, "the root once although it refers to itself");
    }
}
