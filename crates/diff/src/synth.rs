//! Calls that cover a contract: every field, enum value, edge of a range, branch of a union and null, in few calls.
//!
//! Pure and deterministic by seed. The goals are read from the schema; for each one a call is built, the calls are
//! merged while they stay valid, and what a call covers is read back from the call, never assumed. A goal that no valid
//! call reaches is listed with its reason.

mod cover;
mod edges;
mod goals;
mod make;
mod merge;
mod text;

use lastcall_contract::{Definition, Draft, SchemaError, validator_for};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::doc::SchemaDoc;
use cover::Tests;
pub(crate) use cover::part;
use goals::Map;
pub(crate) use text::of_length;

/// What a goal asks of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalKind {
    /// A required property is carried.
    Required,
    /// An optional property is carried.
    Optional,
    /// An optional property is left out of an object that is there.
    Omitted,
    /// This value of an `enum`, a `const` or a boolean.
    Value,
    /// This one of several types.
    Type,
    /// null.
    Null,
    /// The smallest number: the bound, or what lies nearest to it (`exclusiveMinimum`, `multipleOf`, integers).
    Minimum,
    /// The largest number, by the same rule.
    Maximum,
    /// A multiple that is not zero.
    MultipleOf,
    /// The shortest string.
    MinLength,
    /// The longest string.
    MaxLength,
    /// The fewest items.
    MinItems,
    /// The most items.
    MaxItems,
    /// This branch of `anyOf` or `oneOf`, `then` or `else`.
    Branch,
    /// A key that no property declares, where its values have a schema.
    OpenKey,
}

impl GoalKind {
    /// The word for it, snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
            Self::Omitted => "omitted",
            Self::Value => "value",
            Self::Type => "type",
            Self::Null => "null",
            Self::Minimum => "minimum",
            Self::Maximum => "maximum",
            Self::MultipleOf => "multiple_of",
            Self::MinLength => "min_length",
            Self::MaxLength => "max_length",
            Self::MinItems => "min_items",
            Self::MaxItems => "max_items",
            Self::Branch => "branch",
            Self::OpenKey => "open_key",
        }
    }
}

/// One thing that a call can show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Where in the arguments: a JSON Pointer, `*` for any list index or open key.
    pub pointer: String,
    /// What is asked.
    pub kind: GoalKind,
    /// The value, the bound or the branch, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The schema node that asks, as a JSON Pointer into the schema.
    pub location: String,
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pointer = if self.pointer.is_empty() { "(root)" } else { &self.pointer };
        write!(f, "{pointer} {}", self.kind.as_str())?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(f, " {detail}"))
    }
}

/// One generated call.
#[derive(Clone, Debug, PartialEq)]
pub struct SynthCall {
    /// The arguments: an object that the schema accepts.
    pub arguments: Value,
    /// The goals that it covers: indices into [`Synthesis::goals`], ascending.
    pub covers: Vec<usize>,
}

/// A goal that no call reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// Index into [`Synthesis::goals`].
    pub goal: usize,
    /// Why, one clause.
    pub reason: String,
}

/// The calls for one schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthesis {
    /// Every goal, in the order of the schema's places.
    pub goals: Vec<Goal>,
    /// The calls; each adds at least one goal to those before it.
    pub calls: Vec<SynthCall>,
    /// What no call covers.
    pub unreached: Vec<Unreached>,
    /// The schema is so large that not every goal was listed or tried.
    pub cut: bool,
}

/// Makes the calls for the arguments of a contract. The same schema and seed give the same calls on every machine.
///
/// # Errors
/// The schema does not compile.
pub fn synthesize(schema: &Value, draft: Draft, seed: u64) -> Result<Synthesis, SchemaError> {
    with_care(schema, draft, seed, &[])
}

/// The same for a definition. Where its schema has numbers that neither 64 bits nor a double hold, no call has the
/// number that they were read as: whether the schema takes it is not known.
///
/// # Errors
/// The schema does not compile.
pub fn synthesize_definition(definition: &Definition, seed: u64) -> Result<Synthesis, SchemaError> {
    with_care(&definition.input_schema, definition.draft, seed, &crate::rules::doubles(definition))
}

fn with_care(schema: &Value, draft: Draft, seed: u64, rounded: &[f64]) -> Result<Synthesis, SchemaError> {
    let validator = validator_for(schema, draft)?;
    let doc = SchemaDoc::of_draft(schema.clone(), Draft::of_schema(schema, draft)?);
    let map = Map::of(&doc);
    let tests = Tests::new(&map, schema, draft);
    let work = std::cell::Cell::new(0);
    Ok(merge::Merge { map: &map, tests: &tests, validator: &validator, root: schema, rounded, work: &work }
        .run(seed))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn calls(schema: &Value) -> Synthesis {
        synthesize(schema, Draft::Draft202012, 1).unwrap()
    }

    #[test]
    fn a_small_contract_is_covered_in_few_calls() {
        let schema = json!({"type": "object", "required": ["id"], "additionalProperties": false, "properties": {
            "id": {"type": "string", "pattern": "^ord_[a-z0-9]{6,20}$", "maxLength": 12},
            "state": {"enum": ["open", "closed", "gone"]},
            "n": {"type": ["integer", "null"], "minimum": 1, "exclusiveMaximum": 100},
            "lines": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "object",
                "required": ["sku"], "properties": {"sku": {"type": "string", "minLength": 2},
                "unit": {"anyOf": [{"type": "null"}, {"enum": ["kg", "g"]}]}}}}}});
        let made = calls(&schema);
        assert_eq!(made.unreached, []);
        assert!(made.calls.len() <= 5, "{} calls", made.calls.len());
        let n: Vec<&Value> = made.calls.iter().filter_map(|c| c.arguments.get("n")).collect();
        for wanted in [json!(1), json!(99), Value::Null] {
            assert!(n.contains(&&wanted), "{wanted} in {n:?}");
        }
        let lengths: Vec<usize> =
            made.calls.iter().filter_map(|c| c.arguments["id"].as_str()).map(str::len).collect();
        assert!(lengths.contains(&12), "{lengths:?}");
        assert_eq!(made, calls(&schema), "one seed, one answer");
    }

    #[test]
    fn what_cannot_be_reached_says_why() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "integer", "minimum": 5, "maximum": 4}, "b": {"enum": ["x", 7], "type": "string"}}});
        let made = calls(&schema);
        let why: Vec<String> =
            made.unreached.iter().map(|u| format!("{}: {}", made.goals[u.goal], u.reason)).collect();
        assert!(why.iter().any(|w| w.starts_with("/a optional: ")), "{why:?}");
        assert!(why.iter().any(|w| w.starts_with("/b value 7: ")), "{why:?}");
        assert!(!why.iter().any(|w| w.starts_with("/b value \"x\"")), "{why:?}");
    }

    #[test]
    fn hostile_schemas_end() {
        for schema in [
            json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}),
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1_000_000_000u64}}}),
            json!({"type": "object", "properties": {"a": {"type": "array", "minItems": 4_000_000_000u64}}}),
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["a"]}]}),
            json!({"type": "object", "properties": {"a": {"multipleOf": 1e-300, "minimum": -1e300}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": false}}),
        ] {
            let made = calls(&schema);
            assert!(made.calls.len() <= made.goals.len());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Every call is valid and says truthfully that it carries a named property.
        #[test]
        fn every_call_is_valid(low in -50i64..50, width in 0i64..50, step in 1i64..7, required in any::<bool>(),
                               least in 0u64..4, seed in any::<u64>()) {
            let schema = json!({"type": "object", "required": if required { vec!["n"] } else { vec![] }, "properties": {
                "n": {"type": "integer", "minimum": low, "maximum": low + width, "multipleOf": step},
                "s": {"type": ["string", "null"], "minLength": least, "maxLength": least + 2},
                "u": {"oneOf": [{"type": "array", "items": {"type": "boolean"}, "minItems": least}, {"const": 3}]}}});
            let validator = validator_for(&schema, Draft::Draft202012).unwrap();
            let made = synthesize(&schema, Draft::Draft202012, seed).unwrap();
            for call in &made.calls {
                prop_assert!(validator.is_valid(&call.arguments), "{}", call.arguments);
                let carried = |n: &str| call.arguments.get(n).is_some();
                for goal in call.covers.iter().map(|g| &made.goals[*g]) {
                    let name = goal.pointer.split('/').nth(1).unwrap_or_default();
                    prop_assert_eq!(goal.kind != GoalKind::Omitted, carried(name), "{}: {}", goal, call.arguments);
                }
            }
            // zero is a multiple of everything: it shows nothing of `multipleOf`
            let reachable = (low..=low + width).any(|n| n % step == 0 && n != 0);
            prop_assert_eq!(made.unreached.is_empty(), reachable, "{:?}", made.unreached);
        }
    }
}
