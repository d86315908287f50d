//! A stub: nothing runs. It validates by the candidate's input schema and makes a result of its output schema up.

use jsonschema::Validator;
use lastcall_contract::{Contract, SchemaError, validator_for};
use lastcall_diff::{Rng, valid};
use lastcall_event::Status;
use serde_json::Value;

use super::Ask;
use crate::answer::Said;

pub(crate) struct Stub {
    input: Validator,
    /// The answer to every call that the schema takes.
    result: Option<String>,
}

impl Stub {
    /// A stub of this contract. Its result satisfies the output schema; where none was found there is none.
    pub fn new(contract: &Contract) -> Result<Self, SchemaError> {
        let definition = &contract.definition;
        let input = validator_for(&definition.input_schema, definition.draft)?;
        let result = match &definition.output_schema {
            Some(schema) => {
                let output = validator_for(schema, definition.output_draft)?;
                valid(schema, &mut Rng::new(1), &mut |value| output.is_valid(value)).map(|v| v.to_string())
            }
            None => None,
        };
        Ok(Self { input, result })
    }

    /// What the schema says of a call. A validator that gives up refuses here; the comparison asks its own.
    pub fn answer(&self, ask: &Ask<'_>) -> Said {
        let taken =
            serde_json::from_str::<Value>(ask.arguments).is_ok_and(|value| self.input.is_valid(&value));
        match taken {
            true => Said { status: Status::Ok, result: self.result.clone(), ..Said::default() },
            false => Said { status: Status::InvalidArguments, ..Said::default() },
        }
    }
}
