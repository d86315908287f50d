//! The second opinion: `boon`, a validator that shares no code with the one that Lastcall uses.

#![allow(clippy::unwrap_used)]

use lastcall_contract::Draft;
use serde_json::Value;

/// A schema, compiled by `boon`.
pub struct Oracle {
    schemas: boon::Schemas,
    index: boon::SchemaIndex,
}

impl Oracle {
    /// `None`: it does not take the schema.
    pub fn new(schema: &Value, draft: Draft, formats: bool) -> Option<Self> {
        let mut compiler = boon::Compiler::new();
        compiler.set_default_draft(match draft {
            Draft::Draft4 => boon::Draft::V4,
            Draft::Draft6 => boon::Draft::V6,
            Draft::Draft7 => boon::Draft::V7,
            Draft::Draft201909 => boon::Draft::V2019_09,
            Draft::Draft202012 => boon::Draft::V2020_12,
        });
        if formats {
            compiler.enable_format_assertions();
        }
        compiler.add_resource("urn:lastcall:oracle", schema.clone()).ok()?;
        let mut schemas = boon::Schemas::new();
        let index = compiler.compile("urn:lastcall:oracle", &mut schemas).ok()?;
        Some(Self { schemas, index })
    }

    /// Whether the schema accepts the value.
    pub fn accepts(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }
}
