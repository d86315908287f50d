//! Whether a whole schema lies in the subset of JSON Schema that a provider takes.

use serde_json::Value;

use crate::profile::Profile;

impl Profile {
    /// Why a schema does not fit: the place and the reason. `None`: it fits.
    pub(super) fn refuses(self, schema: &Value) -> Option<(String, String)> {
        if self == Self::OpenaiStrict && schema.get("anyOf").is_some() {
            return Some((String::new(), "`anyOf` at the root".to_owned()));
        }
        let mut limits = Limits::default();
        let found = self.node(schema, &mut String::new(), 0, &mut limits);
        let over = |n: usize, max: usize, what: &str| {
            (n > max).then(|| (String::new(), format!("{n} {what}, {max} are taken")))
        };
        match self {
            Self::OpenaiStrict => found
                .or_else(|| over(limits.properties, 5_000, "properties"))
                .or_else(|| over(limits.values, 1_000, "enum values"))
                .or_else(|| over(limits.depth, 10, "levels")),
            _ => found,
        }
    }

    fn node(
        self,
        node: &Value,
        at: &mut String,
        depth: usize,
        limits: &mut Limits,
    ) -> Option<(String, String)> {
        let map = node.as_object()?;
        if depth > 64 {
            return Some((at.clone(), "nested too deep".to_owned()));
        }
        limits.values += map.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        for (key, value) in map {
            if !self.takes(key, value) {
                return Some((format!("{at}/{key}"), format!("`{key}`")));
            }
        }
        let properties = map.get("properties").and_then(Value::as_object);
        let object = map.get("type").is_some_and(|t| t == "object") || properties.is_some();
        if object && self.closes_objects() {
            if map.get("additionalProperties") != Some(&Value::Bool(false)) {
                return Some((at.clone(), "an object without `additionalProperties: false`".to_owned()));
            }
            let required = map.get("required").and_then(Value::as_array);
            let missing = properties
                .into_iter()
                .flat_map(|p| p.keys())
                .find(|name| !required.is_some_and(|list| list.iter().any(|v| v == *name)));
            if let (Self::OpenaiStrict, Some(name)) = (self, missing) {
                return Some((at.clone(), format!("`{name}` is not in `required`")));
            }
        }
        limits.depth = limits.depth.max(depth / 2);
        let length = at.len();
        for (key, child) in map {
            let children: Vec<(String, &Value)> = match (key.as_str(), child) {
                ("properties" | "$defs" | "definitions", Value::Object(table)) => {
                    if key == "properties" {
                        limits.properties += table.len();
                    }
                    table.iter().map(|(name, v)| (format!("/{key}/{}", crate::escape(name)), v)).collect()
                }
                ("items", Value::Object(_)) => vec![(format!("/{key}"), child)],
                ("anyOf" | "prefixItems", Value::Array(list)) => {
                    list.iter().enumerate().map(|(i, v)| (format!("/{key}/{i}"), v)).collect()
                }
                _ => Vec::new(),
            };
            for (step, child) in children {
                at.push_str(&step);
                let found = self.node(child, at, depth + 1, limits);
                at.truncate(length);
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}

#[derive(Default)]
struct Limits {
    properties: usize,
    values: usize,
    depth: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_each_subset_takes() {
        let strict = json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"],
            "additionalProperties": false});
        for subset in [Profile::OpenaiStrict, Profile::AnthropicStrict] {
            assert_eq!(subset.refuses(&strict), None, "{subset:?}");
        }
        let mut optional = strict.clone();
        optional["required"] = json!([]);
        assert!(Profile::OpenaiStrict.refuses(&optional).is_some());
        assert_eq!(Profile::AnthropicStrict.refuses(&optional), None);
        let mut bounded = strict.clone();
        bounded["properties"]["a"]["maxLength"] = json!(3);
        assert!(
            Profile::AnthropicStrict.refuses(&bounded).is_some_and(|(at, _)| at == "/properties/a/maxLength")
        );
        // as lint's table has it: the client's `Schema` knows `additionalProperties`
        let mut single = strict.clone();
        single["properties"]["a"]["type"] = json!("string");
        assert_eq!(Profile::Gemini.refuses(&single), None);
        // a list of types is none of Gemini's: it names one and says `nullable`
        assert!(Profile::Gemini.refuses(&strict).is_some_and(|(at, _)| at == "/properties/a/type"));
        for (key, value) in
            [("oneOf", json!([true])), ("type", json!(["string", "integer"])), ("const", json!(1))]
        {
            let mut outside = single.clone();
            outside["properties"]["a"][key] = value;
            let place = format!("/properties/a/{key}");
            assert!(Profile::Gemini.refuses(&outside).is_some_and(|(at, _)| at == place), "{key}");
        }
    }
}
