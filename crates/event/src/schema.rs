//! The published JSON Schemas of the records, generated from the types.

use serde_json::{Value, json};

use crate::record::{CallRecord, Clock, Coverage, InterceptorWire, Loss};

/// (name, schema) of every record type that Lastcall reads, in the order of the guide. JSON Schema 2020-12.
pub fn event_schemas() -> Vec<(&'static str, Value)> {
    let call = |name| {
        let mut schema = published(schemars::schema_for!(CallRecord<'static>).to_value(), name);
        schema["anyOf"] = json!([{ "required": ["arguments"] }, { "required": ["arguments_text"] }]);
        if name == "tool_call" {
            for key in ["candidates", "upstream", "current_rerun"] {
                remove(&mut schema, &["properties"], key);
            }
        }
        (name, schema)
    };
    let simple = |name, schema: schemars::Schema| (name, published(schema.to_value(), name));
    let mut interceptor = schemars::schema_for!(InterceptorWire<'static>).to_value();
    interceptor["title"] = json!("interceptor");
    interceptor["required"] = json!(["trace_id", "tool_id", "current_version", "ts", "outcome"]);
    vec![
        call("tool_call"),
        call("mirrored_call"),
        simple("coverage", schemars::schema_for!(Coverage<'static>)),
        simple("loss", schemars::schema_for!(Loss<'static>)),
        simple("clock", schemars::schema_for!(Clock<'static>)),
        ("interceptor", interceptor),
    ]
}

/// Adds `type` and `schema_version`, and takes what has a default out of `required`.
fn published(mut schema: Value, name: &str) -> Value {
    const DEFAULTED: [&str; 7] =
        ["fidelity", "envelope", "candidates", "input", "suppression", "result", "arguments"];
    relax(&mut schema, &DEFAULTED);
    schema["title"] = json!(name);
    schema["properties"]["type"] = json!({ "const": name });
    schema["properties"]["schema_version"] = json!({ "const": 1 });
    let mut required = vec![json!("type"), json!("schema_version")];
    required.extend(schema["required"].as_array().cloned().unwrap_or_default());
    schema["required"] = Value::Array(required);
    schema
}

fn relax(node: &mut Value, names: &[&str]) {
    match node {
        Value::Object(members) => {
            if let Some(Value::Array(required)) = members.get_mut("required") {
                required.retain(|r| !r.as_str().is_some_and(|r| names.contains(&r)));
                if required.is_empty() {
                    members.remove("required");
                }
            }
            members.values_mut().for_each(|v| relax(v, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|v| relax(v, names)),
        _ => {}
    }
}

fn remove(schema: &mut Value, path: &[&str], key: &str) {
    let mut node = schema;
    for step in path {
        match node.get_mut(*step) {
            Some(next) => node = next,
            None => return,
        }
    }
    if let Value::Object(members) = node {
        members.remove(key);
    }
}
