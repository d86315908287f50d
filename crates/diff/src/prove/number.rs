//! Numbers compared exactly, and where validators that calculate with doubles would disagree.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// Whole floats below this become integers: every one of them is exact.
pub(super) const EXACT: f64 = 9_007_199_254_740_992.0;

/// A finite number: an integer of 64 bits, signed or not, or a double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Num {
    Whole(i128),
    Float(f64),
}

impl Num {
    pub fn of(number: &Number) -> Self {
        if let Some(n) = number.as_i64() {
            return Self::Whole(i128::from(n));
        }
        if let Some(n) = number.as_u64() {
            return Self::Whole(i128::from(n));
        }
        Self::of_float(number.as_f64().unwrap_or_default())
    }

    pub fn of_float(float: f64) -> Self {
        // 2^126: above, a double is kept as it is. Every whole double converts exactly.
        if float.fract() == 0.0 && float.abs() < 8.5e37 {
            Self::Whole(float as i128)
        } else {
            Self::Float(float)
        }
    }

    pub fn is_whole(self) -> bool {
        match self {
            Self::Whole(_) => true,
            Self::Float(float) => float.fract() == 0.0,
        }
    }

    pub fn as_f64(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Float(float) => float,
        }
    }

    /// Exact order.
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(&b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(&b),
            (Self::Whole(a), Self::Float(b)) => Self::whole_and_float(a, b),
            (Self::Float(a), Self::Whole(b)) => Self::whole_and_float(b, a).reverse(),
        }
    }

    fn whole_and_float(whole: i128, float: f64) -> Ordering {
        if float.abs() >= 8.5e37 {
            return if float > 0.0 { Ordering::Less } else { Ordering::Greater };
        }
        // A fraction lies between two whole numbers.
        let floor = float.floor() as i128;
        if whole <= floor { Ordering::Less } else { Ordering::Greater }
    }

    /// The greatest whole number not above it; `None` beyond 128 bits.
    pub fn floor(self) -> Option<i128> {
        match self {
            Self::Whole(n) => Some(n),
            Self::Float(float) => (float.abs() < 8.5e37).then(|| float.floor() as i128),
        }
    }

    /// The smallest whole number not below it; `None` beyond 128 bits.
    pub fn ceil(self) -> Option<i128> {
        match self {
            Self::Whole(n) => Some(n),
            Self::Float(float) => (float.abs() < 8.5e37).then(|| float.ceil() as i128),
        }
    }

    /// As a JSON number.
    pub fn value(self) -> Option<Value> {
        match self {
            Self::Whole(n) => whole(n),
            Self::Float(float) => Number::from_f64(float).map(Value::Number),
        }
    }
}

impl std::fmt::Display for Num {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(n) => write!(f, "{n}"),
            Self::Float(float) => write!(f, "{float:e}"),
        }
    }
}

/// A whole number as JSON; beyond 64 bits only where a double says it exactly.
pub(super) fn whole(n: i128) -> Option<Value> {
    if let Ok(n) = i64::try_from(n) {
        return Some(Value::from(n));
    }
    if let Ok(n) = u64::try_from(n) {
        return Some(Value::from(n));
    }
    let float = n as f64;
    (float.abs() < 8.5e37 && float as i128 == n).then(|| Value::from(float))
}

/// A decimal as `digits / 10^places`, of the text that the number prints as.
pub(super) fn decimal(number: Num) -> Option<(i128, u32)> {
    match number {
        Num::Whole(n) => Some((n, 0)),
        Num::Float(float) => {
            let text = format!("{float:e}");
            let (mantissa, exponent) = text.split_once('e')?;
            let exponent: i32 = exponent.parse().ok()?;
            let (head, tail) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let digits: i128 = format!("{head}{tail}").parse().ok()?;
            let places = i32::try_from(tail.len()).ok()?.checked_sub(exponent)?;
            if places <= 0 {
                let factor = 10i128.checked_pow(u32::try_from(-places).ok()?)?;
                return Some((digits.checked_mul(factor)?, 0));
            }
            (places <= 30).then_some((digits, u32::try_from(places).ok()?))
        }
    }
}

/// Whether the number as a decimal is what its double holds, as with 1.5 and unlike 0.1.
pub(super) fn is_dyadic(number: Num) -> bool {
    decimal(number).is_some_and(|(digits, places)| {
        5i128.checked_pow(places).is_some_and(|fives| digits % fives == 0 && digits.abs() < EXACT as i128)
    })
}

/// Both numbers over one power of ten.
pub(super) fn aligned(a: Num, b: Num) -> Option<(i128, i128)> {
    let ((a, a_places), (b, b_places)) = (decimal(a)?, decimal(b)?);
    let places = a_places.max(b_places);
    Some((
        a.checked_mul(10i128.checked_pow(places - a_places)?)?,
        b.checked_mul(10i128.checked_pow(places - b_places)?)?,
    ))
}

/// Whether `value` is a whole multiple of `factor`. `None` where validators may differ: those that calculate with decimals
/// and those that divide doubles, for which 0.3 is no multiple of 0.1.
pub(super) fn is_multiple(value: Num, factor: Num) -> Option<bool> {
    let quotient = value.as_f64() / factor.as_f64();
    let (value, factor) = aligned(value, factor)?;
    if factor == 0 || value.abs() >= EXACT as i128 || factor >= EXACT as i128 {
        return None;
    }
    let held = value % factor == 0;
    (held == (quotient.fract() == 0.0)).then_some(held)
}

/// The order of two numbers; `None` where validators may differ, because as doubles they are one.
pub(super) fn settled_order(a: Num, b: Num) -> Option<Ordering> {
    let order = a.compare(b);
    (order == Ordering::Equal || a.as_f64() != b.as_f64()).then_some(order)
}

/// The doubles around a whole number beyond those of which every one is a double.
pub(super) fn doubles_beside(n: i128) -> impl Iterator<Item = i128> {
    let (mut up, mut down) = (n as f64, n as f64);
    let near = if n.abs() >= EXACT as i128 { 3 } else { 0 };
    (0..near).flat_map(move |_| {
        (up, down) = (up.next_up(), down.next_down());
        [up as i128, down as i128]
    })
}

pub(super) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(1).max(1)
}

/// The value with every whole float written as an integer, where that is exact.
pub(super) fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => {
                Value::from(float as i64)
            }
            Some(float) if number.is_f64() && float.fract() == 0.0 => {
                Num::of_float(float).value().unwrap_or_else(|| value.clone())
            }
            _ => value.clone(),
        },
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(k, v)| (k.clone(), canonical(v))).collect::<Map<_, _>>())
        }
        _ => value.clone(),
    }
}
