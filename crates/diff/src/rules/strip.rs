//! A schema without its text, and one document with a few edits of another.

use lastcall_contract::SCHEMA_TABLES;
use serde_json::{Map, Value};

use super::raw::Edit;

const TEXT: [&str; 6] = ["title", "description", "examples", "$comment", "deprecated", "default"];
const DATA: [&str; 3] = ["enum", "const", "required"];

/// The schema without annotations: no validator sees the difference.
pub(super) fn without_text(schema: &Value) -> Value {
    strip(schema, false, 0)
}

/// `in_table`: the keys are names.
fn strip(node: &Value, in_table: bool, depth: usize) -> Value {
    if depth > 256 {
        return node.clone();
    }
    match node {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| in_table || !TEXT.contains(&key.as_str()));
            let kept = kept.map(|(key, child)| {
                let data = !in_table && DATA.contains(&key.as_str());
                let table = !in_table && SCHEMA_TABLES.contains(&key.as_str());
                (key.clone(), if data { child.clone() } else { strip(child, table, depth + 1) })
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(|v| strip(v, false, depth + 1)).collect()),
        other => other.clone(),
    }
}

/// `document` after these edits. Definitions that a value refers to come from `from`, under the same name. `None`: an
/// edit has no place, or a definition of that name says something else.
pub(super) fn edited(document: &Value, edits: &[Edit], from: &Value) -> Option<Value> {
    let mut out = document.clone();
    for edit in edits {
        let place = out.pointer_mut(&edit.at)?.as_object_mut()?;
        match &edit.value {
            Some(value) => place.insert(edit.key.clone(), value.clone()),
            None => place.remove(&edit.key),
        };
    }
    for value in edits.iter().filter_map(|edit| edit.value.as_ref()) {
        import(&mut out, value, from)?;
    }
    Some(out)
}

/// `document` with the value at `pointer` replaced.
pub(super) fn replaced(document: &Value, pointer: &str, value: &Value, from: &Value) -> Option<Value> {
    let mut out = document.clone();
    *out.pointer_mut(pointer)? = value.clone();
    import(&mut out, value, from)?;
    Some(out)
}

/// Brings the definitions that `value` refers to.
fn import(document: &mut Value, value: &Value, from: &Value) -> Option<()> {
    let mut open = vec![value];
    let mut done: Vec<&str> = Vec::new();
    while let Some(node) = open.pop() {
        match node {
            Value::Object(map) => {
                for (key, child) in map {
                    if !key.starts_with('$') || !key.ends_with("ef") {
                        open.push(child);
                        continue;
                    }
                    let target = child.as_str()?;
                    if done.contains(&target) {
                        continue;
                    }
                    done.push(target);
                    let (table, name) = target.strip_prefix("#/")?.split_once('/')?;
                    if !matches!(table, "$defs" | "definitions") || name.contains(['/', '~', '%']) {
                        return None;
                    }
                    let definition = from.get(table)?.get(name)?;
                    let tables = document.as_object_mut()?;
                    let into = tables.entry(table).or_insert_with(|| Value::Object(Map::new()));
                    let known = into.as_object_mut()?.entry(name).or_insert_with(|| definition.clone());
                    if known != definition {
                        return None;
                    }
                    open.push(definition);
                }
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_goes_and_names_and_data_stay() {
        let schema = json!({"title": "t", "default": 1, "properties": {"title": {"description": "d", "type": "string"}},
            "enum": [{"description": "kept"}]});
        let bare = json!({"properties": {"title": {"type": "string"}}, "enum": [{"description": "kept"}]});
        assert_eq!(without_text(&schema), bare);
    }

    #[test]
    fn definitions_come_along_or_nothing_does() {
        let from = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}}});
        let edit =
            Edit { at: String::new(), key: "items".to_owned(), value: Some(json!({"$ref": "#/$defs/a"})) };
        let out = edited(&json!({}), std::slice::from_ref(&edit), &from);
        assert_eq!(out, Some(json!({"items": {"$ref": "#/$defs/a"}, "$defs": from["$defs"]})));
        assert_eq!(edited(&json!({"$defs": {"a": true}}), &[edit], &from), None);
    }
}
