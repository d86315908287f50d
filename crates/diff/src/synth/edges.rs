//! The edges of a range of numbers.

use serde_json::{Number, Value};

/// One edge: the bound as written, the admissible number nearest to it, and how near counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edge {
    pub bound: Value,
    /// `None`: no number is admissible there.
    pub nearest: Option<Value>,
    at: f64,
    tolerance: f64,
}

impl Edge {
    /// Whether this number stands at the edge.
    pub(super) fn holds(&self, value: &Value) -> bool {
        value.as_f64().is_some_and(|n| (n - self.at).abs() <= self.tolerance)
    }
}

/// One bound: its value, whether it is excluded, and as it is written.
type Bound<'a> = (f64, bool, &'a Value);

/// Lower and upper edge of the numbers that all these nodes accept.
pub(super) fn of(nodes: &[&Value], whole: bool) -> (Option<Edge>, Option<Edge>) {
    let mut low: Option<Bound<'_>> = None;
    let mut high: Option<Bound<'_>> = None;
    let mut factors: Vec<f64> = Vec::new();
    for node in nodes {
        let number = |key: &str| node.get(key).and_then(|v| Some((v.as_f64()?, v)));
        let flag = |key: &str| node.get(key).and_then(Value::as_bool).unwrap_or(false);
        let lower = number("minimum").map(|(n, v)| (n, flag("exclusiveMinimum"), v));
        for (n, excluded, v) in lower.into_iter().chain(number("exclusiveMinimum").map(|(n, v)| (n, true, v)))
        {
            if low.is_none_or(|(m, e, _)| n > m || (n == m && excluded && !e)) {
                low = Some((n, excluded, v));
            }
        }
        let upper = number("maximum").map(|(n, v)| (n, flag("exclusiveMaximum"), v));
        for (n, excluded, v) in upper.into_iter().chain(number("exclusiveMaximum").map(|(n, v)| (n, true, v)))
        {
            if high.is_none_or(|(m, e, _)| n < m || (n == m && excluded && !e)) {
                high = Some((n, excluded, v));
            }
        }
        factors.extend(number("multipleOf").map(|(n, _)| n).filter(|n| *n > 0.0));
    }
    // several factors: the largest is tried, the validator judges
    let factor = factors.into_iter().reduce(f64::max).or(whole.then_some(1.0));
    let edge = |bound: Bound<'_>, up: f64, other: Option<Bound<'_>>| {
        let (n, excluded, written) = bound;
        let scale = n.abs().max(1.0);
        let nearest = match factor {
            Some(factor) => {
                let mut k = if up > 0.0 { (n / factor).ceil() } else { (n / factor).floor() };
                if excluded && k * factor == n {
                    k += up;
                }
                exact(k * factor)
            }
            None if !excluded => Some(written.clone()),
            None => {
                let gap = other.map_or(0.01 * scale, |(m, _, _)| ((m - n).abs() / 2.0).min(0.01 * scale));
                exact(n + up * gap)
            }
        };
        let at = nearest.as_ref().and_then(Value::as_f64).unwrap_or(n);
        let inside = other.is_none_or(|(m, e, _)| {
            let room = (m - at) * up;
            room > 0.0 || (room == 0.0 && !e)
        });
        let loose = factor.is_none() && excluded;
        let tolerance = if loose { (at - n).abs() } else { 1e-9 * scale };
        Edge { bound: written.clone(), nearest: nearest.filter(|_| inside), at, tolerance }
    };
    (low.map(|b| edge(b, 1.0, high)), high.map(|b| edge(b, -1.0, low)))
}

/// A number, written without a point where it is whole.
fn exact(value: f64) -> Option<Value> {
    if value.fract() == 0.0 && value.abs() < 9.0e15 {
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}
