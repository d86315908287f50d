//! The table of every kind of change: a pair that shows it, and a near miss.

#![allow(clippy::unwrap_used)]

use lastcall_diff::{ChangeKind as Kind, Class};
use serde_json::{Value, json};

/// A surface of one tool with these keys beside its name.
fn tool(keys: Value) -> Value {
    let mut tool =
        json!({"name": "t", "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}}});
    tool.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    json!([tool])
}

/// A tool whose arguments have this schema beside `type: object`.
fn root(mut schema: Value) -> Value {
    schema["type"] = json!("object");
    tool(json!({"inputSchema": schema}))
}

/// A tool with one optional argument `x`.
fn x(schema: Value) -> Value {
    root(json!({"properties": {"x": schema}}))
}

/// Properties by number.
fn many(names: std::ops::Range<u32>) -> Value {
    names.map(|n| (format!("p{n}"), json!({"type": "string"}))).collect::<serde_json::Map<_, _>>().into()
}

fn errors(error: Value) -> Value {
    tool(json!({"errors": [error]}))
}

pub struct Row {
    pub kind: Kind,
    /// The class where it fires.
    pub class: Class,
    /// Old and new: the kind is told once.
    pub fires: (Value, Value),
    /// Old and new: the kind is not told.
    pub silent: (Value, Value),
}

fn row(kind: Kind, class: Class, fires: (Value, Value), silent: (Value, Value)) -> Row {
    Row { kind, class, fires, silent }
}

/// Tools, results, errors.
fn definition_rows() -> Vec<Row> {
    use Class::{Breaking, Compatible, HighRisk, UsuallyCompatible};
    let plain = || tool(json!({}));
    let part = |name: &str| {
        let properties = json!({"repo": {"type": "string"}, "issue": {"type": "integer"}});
        json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
    };
    let merged = || {
        let mut tool = part("issue_read");
        tool["inputSchema"]["properties"]["method"] = json!({"enum": ["comments", "labels"]});
        json!([tool])
    };
    let strict = |required: Value| {
        json!([{"type": "function", "name": "t", "strict": true, "parameters": {"type": "object",
            "additionalProperties": false, "required": required,
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}}])
    };
    let draft = |uri: &str| root(json!({"$schema": uri, "properties": {"x": {"type": "string"}}}));
    let hint = |value: Value| tool(json!({"annotations": value}));
    let result = || tool(json!({"outputSchema": {"type": "object"}}));
    vec![
        row(
            Kind::ToolRenamed,
            Breaking,
            (plain(), tool(json!({"name": "tt"}))),
            (plain(), json!([{"name": "other", "inputSchema": {"type": "object", "properties": {"q": {}}}}])),
        ),
        row(Kind::ToolAdded, UsuallyCompatible, (json!([]), plain()), (plain(), plain())),
        row(Kind::ToolRemoved, Breaking, (plain(), json!([])), (json!([]), plain())),
        row(
            Kind::ToolsMerged,
            Breaking,
            (json!([part("issue_comments"), part("issue_labels")]), merged()),
            (json!([part("issue_comments"), part("pull_request")]), merged()),
        ),
        row(
            Kind::ProviderChanged,
            UsuallyCompatible,
            (plain(), json!([{"name": "t", "input_schema": plain()[0]["inputSchema"]}])),
            (plain(), plain()),
        ),
        row(
            Kind::StrictChanged,
            HighRisk,
            (tool(json!({"strict": true})), tool(json!({"strict": false}))),
            (tool(json!({"strict": true})), tool(json!({"strict": true}))),
        ),
        row(
            Kind::ProviderSubsetLeft,
            HighRisk,
            (strict(json!(["a", "b"])), strict(json!(["a"]))),
            (strict(json!(["a", "b"])), strict(json!(["b", "a"]))),
        ),
        row(
            Kind::AnnotationChanged,
            HighRisk,
            (hint(json!({"readOnlyHint": true})), hint(json!({"readOnlyHint": false}))),
            (hint(json!({"title": "a"})), hint(json!({"title": "b"}))),
        ),
        row(
            Kind::DraftChanged,
            Compatible,
            (
                draft("http://json-schema.org/draft-07/schema#"),
                draft("https://json-schema.org/draft/2020-12/schema"),
            ),
            (plain(), draft("https://json-schema.org/draft/2020-12/schema")),
        ),
        row(Kind::OutputSchemaAdded, UsuallyCompatible, (plain(), result()), (result(), result())),
        row(Kind::OutputSchemaRemoved, HighRisk, (result(), plain()), (plain(), result())),
        row(
            Kind::ErrorAdded,
            UsuallyCompatible,
            (plain(), errors(json!({"code": "E"}))),
            (errors(json!({"code": "E"})), errors(json!({"code": "E"}))),
        ),
        row(
            Kind::ErrorRemoved,
            HighRisk,
            (errors(json!({"code": "E"})), plain()),
            (plain(), errors(json!({"code": "E"}))),
        ),
        row(
            Kind::ErrorCategoryChanged,
            HighRisk,
            (
                errors(json!({"code": "E", "category": "business"})),
                errors(json!({"code": "E", "category": "platform"})),
            ),
            (
                errors(json!({"code": "E", "category": "business"})),
                errors(json!({"code": "F", "category": "platform"})),
            ),
        ),
        row(
            Kind::ErrorRetryChanged,
            HighRisk,
            (
                errors(json!({"code": "E", "retryable": true})),
                errors(json!({"code": "E", "retryable": false})),
            ),
            (
                errors(json!({"code": "E", "retryable": true})),
                errors(json!({"code": "E", "retryable": true, "category": "c"})),
            ),
        ),
        row(
            Kind::TitleChanged,
            UsuallyCompatible,
            (tool(json!({"title": "a"})), tool(json!({"title": "b"}))),
            (tool(json!({"description": "a"})), tool(json!({"description": "b"}))),
        ),
    ]
}

/// Rows about the schema of one argument: old, new, silent old, silent new.
fn argument_rows() -> Vec<Row> {
    use Class::{Breaking, Compatible, HighRisk, NeedsReview, UsuallyCompatible};
    let rows: Vec<(Kind, Class, [Value; 4])> = vec![
        (
            Kind::DescriptionChanged,
            UsuallyCompatible,
            [
                json!({"description": "a"}),
                json!({"description": "b"}),
                json!({"properties": {"description": {}}}),
                json!({"properties": {"description": {"type": "null"}}}),
            ],
        ),
        (
            Kind::ExamplesChanged,
            UsuallyCompatible,
            [
                json!({"examples": ["a"]}),
                json!({"examples": ["b"]}),
                json!({"examples": ["a"]}),
                json!({"examples": ["a"], "title": "a"}),
            ],
        ),
        (
            Kind::DeprecationChanged,
            UsuallyCompatible,
            [json!({}), json!({"deprecated": true}), json!({}), json!({"description": "deprecated"})],
        ),
        (
            Kind::UnitChanged,
            HighRisk,
            [
                json!({"description": "Wait in seconds"}),
                json!({"description": "Wait in milliseconds"}),
                json!({"description": "Wait in seconds"}),
                json!({"description": "In seconds (5 minutes at most)"}),
            ],
        ),
        (
            Kind::DefaultAdded,
            HighRisk,
            [json!({}), json!({"default": "a"}), json!({"default": "a"}), json!({"default": "b"})],
        ),
        (
            Kind::DefaultRemoved,
            HighRisk,
            [json!({"default": "a"}), json!({}), json!({"properties": {"default": {}}}), json!({})],
        ),
        (
            Kind::DefaultChanged,
            HighRisk,
            [json!({"default": 1}), json!({"default": 2}), json!({}), json!({"default": 2})],
        ),
        (
            Kind::TypeWidened,
            Compatible,
            [
                json!({"type": "integer"}),
                json!({"type": "number"}),
                json!({"type": "string"}),
                json!({"type": ["string"]}),
            ],
        ),
        (
            Kind::TypeNarrowed,
            Breaking,
            [
                json!({"type": ["string", "integer"]}),
                json!({"type": "string"}),
                json!({"type": ["string", "integer"]}),
                json!({"type": ["integer", "string"]}),
            ],
        ),
        (
            Kind::TypeChanged,
            Breaking,
            [
                json!({"type": "string"}),
                json!({"type": "integer"}),
                json!({"type": "integer"}),
                json!({"type": "number"}),
            ],
        ),
        (
            Kind::NullAllowed,
            Compatible,
            [
                json!({"type": "string"}),
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
                json!({"type": ["string", "null"]}),
                json!({"oneOf": [{"type": "null"}, {"type": "string"}]}),
            ],
        ),
        (
            Kind::NullRefused,
            Breaking,
            [
                json!({"type": ["string", "null"]}),
                json!({"type": "string"}),
                json!({"anyOf": [{"type": "string"}, {"const": null}]}),
                json!({"type": ["null", "string"]}),
            ],
        ),
        (
            Kind::EnumAdded,
            Breaking,
            [
                json!({"type": "string"}),
                json!({"type": "string", "enum": ["a"]}),
                json!({"enum": ["a"]}),
                json!({"type": "string", "enum": ["a"]}),
            ],
        ),
        (
            Kind::EnumDropped,
            Compatible,
            [
                json!({"type": "string", "enum": ["a"]}),
                json!({"type": "string"}),
                json!({"enum": ["a"]}),
                json!({"oneOf": [{"const": "a", "description": "the a"}]}),
            ],
        ),
        (
            Kind::EnumValueAdded,
            Compatible,
            [
                json!({"enum": ["a"]}),
                json!({"enum": ["a", "b"]}),
                json!({"enum": ["a", "b"]}),
                json!({"enum": ["b", "a"]}),
            ],
        ),
        (
            Kind::EnumValueRemoved,
            Breaking,
            [
                json!({"enum": ["a", "b"]}),
                json!({"enum": ["a"]}),
                json!({"enum": ["a", "b"]}),
                json!({"enum": ["a", "B"]}),
            ],
        ),
        (
            Kind::EnumValueRecased,
            Breaking,
            [
                json!({"enum": ["low"]}),
                json!({"enum": ["LOW"]}),
                json!({"enum": ["low"]}),
                json!({"enum": ["low", "LOW"]}),
            ],
        ),
        (
            Kind::EnumReordered,
            UsuallyCompatible,
            [
                json!({"enum": ["a", "b"]}),
                json!({"enum": ["b", "a"]}),
                json!({"enum": ["a", "b"]}),
                json!({"enum": ["b", "a", "c"]}),
            ],
        ),
        (
            Kind::ConstChanged,
            Breaking,
            [json!({"const": "a"}), json!({"const": "b"}), json!({"const": "a"}), json!({"enum": ["a"]})],
        ),
        (
            Kind::RangeTightened,
            Breaking,
            [
                json!({"type": "integer"}),
                json!({"type": "integer", "maximum": 100}),
                json!({"type": "integer", "minimum": 1}),
                json!({"type": "integer", "exclusiveMinimum": 0}),
            ],
        ),
        (
            Kind::RangeLoosened,
            Compatible,
            [
                json!({"type": "number", "exclusiveMinimum": 0}),
                json!({"type": "number", "minimum": 0}),
                json!({"type": "number", "minimum": 0}),
                json!({"type": "number", "minimum": 0.0}),
            ],
        ),
        (
            Kind::SizeTightened,
            Breaking,
            [
                json!({"type": "string"}),
                json!({"type": "string", "maxLength": 3}),
                json!({"type": "string", "maxLength": 3}),
                json!({"type": "string", "maxLength": 4}),
            ],
        ),
        (
            Kind::SizeLoosened,
            Compatible,
            [
                json!({"type": "array", "minItems": 1}),
                json!({"type": "array"}),
                json!({"type": "array"}),
                json!({"type": "array", "minItems": 1}),
            ],
        ),
        (
            Kind::PatternChanged,
            Breaking,
            [
                json!({"type": "string"}),
                json!({"type": "string", "pattern": "^a+$"}),
                json!({"properties": {"pattern": {"type": "string"}}}),
                json!({"properties": {"pattern": {"type": "integer"}}}),
            ],
        ),
        (
            Kind::FormatChanged,
            Breaking,
            [
                json!({"type": "string"}),
                json!({"type": "string", "format": "date"}),
                json!({"type": "string", "format": "date"}),
                json!({"type": ["string"], "format": "date"}),
            ],
        ),
        (
            Kind::UniqueRequired,
            Breaking,
            [
                json!({"type": "array"}),
                json!({"type": "array", "uniqueItems": true}),
                json!({"type": "array"}),
                json!({"type": "array", "uniqueItems": false}),
            ],
        ),
        (
            Kind::UniqueDropped,
            Compatible,
            [
                json!({"type": "array", "uniqueItems": true}),
                json!({"type": "array"}),
                json!({"type": "array", "uniqueItems": false}),
                json!({"type": "array"}),
            ],
        ),
        (
            Kind::ItemsChanged,
            Breaking,
            [
                json!({"type": "array"}),
                json!({"type": "array", "items": {"type": "string"}}),
                json!({"type": "array", "items": {}}),
                json!({"type": "array"}),
            ],
        ),
        (
            Kind::OpenKeysChanged,
            Breaking,
            [
                json!({"type": "object"}),
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                json!({"type": "object", "additionalProperties": {"type": "string", "title": "a"}}),
            ],
        ),
        // Two alternatives that are one: `oneOf` then takes none, and no rule sees it.
        (
            Kind::RefusedOtherwise,
            Breaking,
            [
                json!({"enum": ["a"]}),
                json!({"oneOf": [{"const": "a"}, {"const": "a"}]}),
                json!({"enum": ["a"]}),
                json!({"anyOf": [{"const": "a"}, {"const": "a"}]}),
            ],
        ),
        (
            Kind::CutOff,
            NeedsReview,
            [
                json!({"type": "object", "properties": many(0..4_100)}),
                json!({"type": "object", "properties": many(5_000..9_100)}),
                json!({"type": "object", "properties": many(0..400)}),
                json!({"type": "object", "properties": many(0..401)}),
            ],
        ),
        (
            Kind::KeywordChanged,
            UsuallyCompatible,
            [
                json!({"type": "string"}),
                json!({"type": "string", "x-hint": 1}),
                json!({"properties": {"x-hint": {"type": "string"}}}),
                json!({"properties": {"x-hint": {"type": "integer"}}}),
            ],
        ),
    ];
    rows.into_iter().map(|(kind, class, [a, b, c, d])| row(kind, class, (x(a), x(b)), (x(c), x(d)))).collect()
}

/// Rows about the object of the arguments.
fn object_rows() -> Vec<Row> {
    use Class::{Breaking, Compatible, HighRisk, UsuallyCompatible};
    let s = || json!({"type": "string"});
    let one = || json!({"properties": {"x": {"type": "string"}}});
    let required = || json!({"properties": {"x": {"type": "string"}}, "required": ["x"]});
    let closed = || json!({"properties": {"x": {"type": "string"}}, "additionalProperties": false});
    let rows: Vec<(Kind, Class, [Value; 4])> = vec![
        (
            Kind::PropertyAdded,
            Compatible,
            [
                one(),
                json!({"properties": {"x": s(), "y": s()}}),
                one(),
                json!({"properties": {"x": s(), "y": s()}, "required": ["y"]}),
            ],
        ),
        (Kind::PropertyRemoved, Breaking, [one(), json!({"additionalProperties": false}), one(), json!({})]),
        (Kind::PropertyDropped, HighRisk, [one(), json!({}), one(), json!({"allOf": [one()]})]),
        (Kind::RequiredAdded, Breaking, [one(), required(), required(), one()]),
        (Kind::RequiredRemoved, Compatible, [required(), one(), one(), required()]),
        (
            Kind::ObjectClosed,
            UsuallyCompatible,
            [one(), closed(), one(), json!({"properties": {"x": s()}, "additionalProperties": true})],
        ),
        (
            Kind::ObjectOpened,
            Compatible,
            [closed(), one(), closed(), json!({"properties": {"x": s()}, "unevaluatedProperties": false})],
        ),
        (
            Kind::BranchesChanged,
            Breaking,
            [
                one(),
                json!({"properties": {"x": s()}, "not": {"required": ["x"]}}),
                json!({"anyOf": [{"title": "a"}, {"required": ["x"]}]}),
                json!({"anyOf": [{"title": "b"}, {"required": ["x"]}]}),
            ],
        ),
        (
            Kind::Rewritten,
            Compatible,
            [
                one(),
                json!({"properties": {"x": {"$ref": "#/$defs/text"}}, "$defs": {"text": {"type": "string"}}}),
                one(),
                json!({"properties": {"x": {"type": "integer"}}}),
            ],
        ),
    ];
    rows.into_iter()
        .map(|(kind, class, [a, b, c, d])| row(kind, class, (root(a), root(b)), (root(c), root(d))))
        .collect()
}

/// One row for every kind.
pub fn rows() -> Vec<Row> {
    [definition_rows(), argument_rows(), object_rows()].into_iter().flatten().collect()
}
