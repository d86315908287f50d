//! Numbers by their decimal value, from the literal: no double in between (comparison.md sections 1 and 4).

/// A decimal as sign, significant digits (no leading or trailing zero) and exponent: `0.digits × 10^exponent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Reads a JSON number literal. `None` when it is none, or its exponent is beyond 18 digits.
    pub fn parse(literal: &str) -> Option<Self> {
        let (negative, rest) = match literal.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, literal),
        };
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (rest.get(..at)?, rest.get(at + 1..)?.parse::<i64>().ok()?),
            None => (rest, 0),
        };
        if exponent.unsigned_abs() > 1_000_000_000_000_000_000 {
            return None;
        }
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return None;
        }
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
        let leading = all.iter().take_while(|d| **d == 0).count();
        let trailing = all.iter().rev().take_while(|d| **d == 0).count();
        if leading == all.len() {
            return Some(Self { negative: false, digits: Vec::new(), exponent: 0 }); // -0 is 0
        }
        let exponent =
            exponent.checked_add(i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?)?;
        Some(Self { negative, digits: all.get(leading..all.len() - trailing)?.to_vec(), exponent })
    }

    /// Equal in value.
    pub fn same(a: &str, b: &str) -> bool {
        match (Self::parse(a), Self::parse(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a == b,
        }
    }
}

/// Whether the literal has, by value, its double's shortest decimal: then validation, which sees doubles, sees the
/// number that the call carries. A literal that no double can hold is not precise.
pub fn is_precise(literal: &str) -> bool {
    let digits = literal.bytes().take_while(|b| !matches!(b, b'e' | b'E')).filter(u8::is_ascii_digit).count();
    if digits <= 15 && !literal.contains(['e', 'E']) {
        return true; // DBL_DIG: every decimal of 15 digits survives the way through a double
    }
    match literal.parse::<f64>() {
        Ok(double) if double.is_finite() => Decimal::same(literal, &format!("{double:e}")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_by_value() {
        for (a, b) in
            [("1", "1.0"), ("1", "1e0"), ("100", "1E2"), ("-0", "0.0"), ("19.90", "19.9"), ("0.001", "1e-3")]
        {
            assert!(Decimal::same(a, b), "{a} {b}");
        }
        for (a, b) in [("9007199254740993", "9007199254740992"), ("1", "-1"), ("0.1", "0.10000000000000001")]
        {
            assert!(!Decimal::same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn precision_is_the_shortest_decimal() {
        for literal in
            ["1.0", "1e2", "19.90", "0.30000000000000004", "9007199254740992", "0", "5e-324", "1e308"]
        {
            assert!(is_precise(literal), "{literal}");
        }
        for literal in
            ["9007199254740993", "0.1000000000000000055", "1e400", "1e-400", "123456789012345678901"]
        {
            assert!(!is_precise(literal), "{literal}");
        }
    }
}
