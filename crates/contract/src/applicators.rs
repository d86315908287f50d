//! Which keywords of JSON Schema hold schemas, in every draft: what a walk over a schema follows. Anything else is data.

/// Keywords whose value is one schema (`items` in some drafts a list, `extends` only in draft 3).
pub const ONE_SCHEMA: [&str; 13] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "extends",
];

/// Keywords whose value is a list of schemas.
pub const SCHEMA_LISTS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];

/// Keywords whose value is a table of schemas: below them the keys are names, not keywords.
pub const SCHEMA_TABLES: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];
