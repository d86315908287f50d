//! Makes a witness small: fewer members and items, shorter strings, smaller numbers, while it still is one.

use serde_json::Value;

/// The smallest value found that `holds` still accepts, in a fixed order of at most `checks` attempts.
pub(super) fn shrink(mut value: Value, checks: u32, holds: &mut dyn FnMut(&Value) -> bool) -> Value {
    let mut left = checks;
    loop {
        let mut smaller = None;
        each_smaller(&value, &mut |candidate| {
            if left == 0 {
                return true;
            }
            left -= 1;
            let held = holds(&candidate);
            smaller = held.then_some(candidate);
            held
        });
        match smaller {
            Some(candidate) => value = candidate,
            None => return value,
        }
    }
}

/// Gives values with one part less, the boldest first, until `enough` says so; answers whether it did.
fn each_smaller(value: &Value, enough: &mut dyn FnMut(Value) -> bool) -> bool {
    match value {
        Value::Object(map) => {
            let without = |name: &String| {
                let mut less = map.clone();
                less.remove(name);
                Value::Object(less)
            };
            map.keys().any(|name| enough(without(name)))
                || map.iter().any(|(name, member)| {
                    each_smaller(member, &mut |smaller| {
                        let mut with = map.clone();
                        with.insert(name.clone(), smaller);
                        enough(Value::Object(with))
                    })
                })
        }
        Value::Array(items) => {
            let without = |i: usize| {
                let mut less = items.clone();
                less.remove(i);
                Value::Array(less)
            };
            (0..items.len()).any(|i| enough(without(i)))
                || items.iter().enumerate().any(|(i, item)| {
                    each_smaller(item, &mut |smaller| {
                        let mut with = items.clone();
                        with[i] = smaller;
                        enough(Value::Array(with))
                    })
                })
        }
        Value::String(text) => {
            let length = text.chars().count();
            let shorter = [0, length / 2, length.saturating_sub(1)].into_iter().filter(|keep| *keep < length);
            shorter
                .map(|keep| text.chars().take(keep).collect::<String>())
                .any(|text| enough(Value::String(text)))
        }
        Value::Number(number) => {
            if let Some(n) = number.as_i64() {
                let nearer = [0, n / 2, n - n.signum()].into_iter().filter(|m| *m != n);
                nearer.map(Value::from).any(&mut *enough)
            } else if let Some(n) = number.as_f64() {
                [0.0, n.trunc()].into_iter().filter(|m| *m != n).map(Value::from).any(&mut *enough)
            } else {
                false
            }
        }
        Value::Null | Value::Bool(_) => false,
    }
}
