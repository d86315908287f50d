//! What `jsonschema::canonical` says. Its "no" is never used, its "yes" only where it is known to be sound, and of the
//! difference that it computes only values that refute.

use jsonschema::canonical::{CanonicalSchema, Containment};
use serde_json::Value;

use super::Operand;

/// JSON nodes of both schemas up to which it is asked: it has no budget of its own for every step.
const MAX_SIZE: usize = 250;

/// Its view of one question.
pub(super) struct Library {
    sub: CanonicalSchema,
    sup: CanonicalSchema,
    sound: bool,
}

impl Library {
    /// `None`: it is not asked.
    pub fn new(sub: &Operand, sup: &Operand) -> Option<Self> {
        if sub.draft() != sup.draft()
            || sub.formats() != sup.formats()
            || sub.size() + sup.size() > MAX_SIZE
            || sub.may_give_up()
            || sup.may_give_up()
            || sub.contested().is_some()
            || sup.contested().is_some()
            || sub.fills()
            || sup.fills()
        {
            return None;
        }
        let canonical = |operand: &Operand| {
            jsonschema::canonical::options()
                .with_draft(operand.draft().to_jsonschema())
                .offline()
                .should_validate_formats(operand.formats())
                .canonicalize(operand.schema())
                .ok()
        };
        let sound = modelled(sub) && modelled(sup);
        Some(Self { sub: canonical(sub)?, sup: canonical(sup)?, sound })
    }

    /// Whether it proves the containment.
    pub fn covers(&self) -> bool {
        self.sound && matches!(self.sup.covers(&self.sub), Ok(Containment::Yes))
    }

    /// A schema of the values that `sub` accepts and `sup` does not.
    pub fn difference(&self) -> Option<Value> {
        self.sub.subtract(&self.sup).ok().map(|difference| difference.to_json_schema())
    }
}

/// References, items and `unevaluated*` are where its "yes" was seen to be wrong.
fn modelled(operand: &Operand) -> bool {
    let weak = [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "unevaluatedItems",
        "unevaluatedProperties",
        "items",
        "prefixItems",
        "contains",
    ];
    let mut stack = vec![operand.schema()];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(map) => {
                if weak.into_iter().any(|key| map.contains_key(key)) {
                    return false;
                }
                stack.extend(map.values());
            }
            Value::Array(list) => stack.extend(list),
            _ => {}
        }
    }
    true
}
