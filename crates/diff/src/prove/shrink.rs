//! Makes a witness small: fewer members and items, shorter strings, smaller numbers, while it still is one.

use serde_json::Value;

/// The smallest value found that `holds` still accepts, in a fixed order of at most `checks` attempts.
pub(super) fn shrink(mut value: Value, checks: u32, holds: &mut dyn FnMut(&Value) -> bool) -> Value {
    let mut left = checks;
    loop {
        let mut smaller = None;
        for candidate in candidates(&value) {
            if left == 0 {
                return value;
            }
            left -= 1;
            if holds(&candidate) {
                smaller = Some(candidate);
                break;
            }
        }
        match smaller {
            Some(candidate) => value = candidate,
            None => return value,
        }
    }
}

/// Values with one part less, the boldest first.
fn candidates(value: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    match value {
        Value::Object(map) => {
            for name in map.keys() {
                let mut less = map.clone();
                less.remove(name);
                out.push(Value::Object(less));
            }
            for (name, member) in map {
                for smaller in candidates(member) {
                    let mut with = map.clone();
                    with.insert(name.clone(), smaller);
                    out.push(Value::Object(with));
                }
            }
        }
        Value::Array(items) => {
            for i in 0..items.len() {
                let mut less = items.clone();
                less.remove(i);
                out.push(Value::Array(less));
            }
            for (i, item) in items.iter().enumerate() {
                for smaller in candidates(item) {
                    let mut with = items.clone();
                    with[i] = smaller;
                    out.push(Value::Array(with));
                }
            }
        }
        Value::String(text) => {
            let length = text.chars().count();
            for keep in [0, length / 2, length.saturating_sub(1)] {
                if keep < length {
                    out.push(Value::String(text.chars().take(keep).collect()));
                }
            }
        }
        Value::Number(number) => {
            if let Some(n) = number.as_i64() {
                out.extend([0, n / 2, n - n.signum()].into_iter().filter(|m| *m != n).map(Value::from));
            } else if let Some(n) = number.as_f64() {
                out.extend([0.0, n.trunc()].into_iter().filter(|m| *m != n).map(Value::from));
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
    out
}
