//! Traffics that are written down: their pair, days and disagreements.

use std::path::Path;

use anyhow::Context;
use lastcall_compare::Category;
use lastcall_contract::{Definition, Pick};
use lastcall_event::{Day, Status};
use serde_json::json;

use super::make::{DayShape, Effect, Shape, Traffic};

/// Disagreements a day of the worked example.
const WORKED_EXAMPLE: [u64; 14] = [410, 380, 350, 300, 220, 180, 140, 110, 90, 70, 60, 50, 40, 30];
/// Its calls over the fourteen days.
const WORKED_CALLS: u64 = 40_000;

/// A refund whose free-text reason became a code, under a new tool name, with an optional note. Both objects are
/// closed: every call of the old tool is refused by the new one, which is what an adapter is for.
pub fn refund(from: Day, seed: u64) -> anyhow::Result<Shape> {
    let current = json!({
        "type": "function", "name": "refund_order", "strict": true,
        "description": "Give the money for a paid order back.",
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["order_id", "reason"],
            "properties": {
                "order_id": {"type": "string", "description": "The order to refund."},
                "reason": {"type": "string", "description": "Why, in the customer's words."}
            }
        }
    });
    let candidate = json!({
        "type": "function", "name": "request_refund", "strict": true,
        "description": "Ask for a refund of a paid order.",
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["order_id", "reason_code"],
            "properties": {
                "order_id": {"type": "string", "description": "The order to refund."},
                "reason_code": {"type": "string", "enum": ["duplicate", "faulty", "other"]},
                "note": {"type": "string", "description": "What else the customer said."}
            }
        }
    });
    let days = vec![DayShape { calls: 40, showing: vec![(Category::RequiredRemoved, 40)] }; 14];
    one(
        "refund_tool",
        "refund_tool@1",
        "refund_tool@2",
        &current,
        &candidate,
        Effect::Write,
        days,
        from,
        seed,
    )
}

/// 40,000 calls over fourteen days, evenly spread, with the daily disagreements of the worked example: notes that are
/// longer than the candidate allows, which are warnings.
pub fn worked_example(from: Day, seed: u64) -> anyhow::Result<Shape> {
    let definition = |most: u32| {
        json!({
            "name": "place_order", "description": "Place an order for a customer.",
            "inputSchema": {
                "type": "object", "required": ["customer_id", "sku"],
                "properties": {
                    "customer_id": {"type": "string"},
                    "sku": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
                    "quantity": {"type": "integer", "minimum": 1, "maximum": 20},
                    "note": {"type": "string", "maxLength": most}
                }
            }
        })
    };
    let days = WORKED_EXAMPLE
        .iter()
        .zip(even(WORKED_CALLS, 14))
        .map(|(n, calls)| DayShape { calls, showing: vec![(Category::RangeTightened, *n)] })
        .collect();
    one(
        "shop.place_order",
        "shop.place_order@1",
        "shop.place_order@2",
        &definition(400),
        &definition(120),
        Effect::Write,
        days,
        from,
        seed,
    )
}

/// `total` in `parts` that differ by one at most.
fn even(total: u64, parts: u64) -> Vec<u64> {
    (0..parts).map(|i| total * (i + 1) / parts - total * i / parts).collect()
}

#[allow(clippy::too_many_arguments)]
fn one(
    tool_id: &str,
    current_id: &str,
    candidate_id: &str,
    current: &serde_json::Value,
    candidate: &serde_json::Value,
    effect: Effect,
    days: Vec<DayShape>,
    from: Day,
    seed: u64,
) -> anyhow::Result<Shape> {
    Ok(Shape {
        tools: vec![Traffic {
            tool_id: tool_id.to_owned(),
            current_id: current_id.to_owned(),
            candidate_id: candidate_id.to_owned(),
            current: Definition::from_value(current)?,
            candidate: Definition::from_value(candidate)?,
            effect,
            days,
            sessions: 1.3,
            agents: 4,
            outcomes: vec![(Status::Ok, 1.0)],
        }],
        from,
        seed,
        lateness_ms: 3_600_000,
        mirrored: false,
    })
}

/// One definition out of a file.
pub fn read_definition(path: &Path) -> anyhow::Result<Definition> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read {}; is it there, and is it UTF-8 text?", path.display()))?;
    Ok(Definition::from_text(&path.display().to_string(), &text, Pick::default())?)
}
