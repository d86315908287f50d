//! Numbers by their decimal value, from the literal: no double in between (comparison.md sections 1 and 4).

/// Digits of a factor up to which a product is taken: the work is quadratic.
const MAX_FACTOR_DIGITS: usize = 1000;

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

    /// Nothing.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Exact product; `None` beyond [`MAX_FACTOR_DIGITS`] digits of a factor.
    pub fn times(&self, other: &Self) -> Option<Self> {
        if self.digits.len() > MAX_FACTOR_DIGITS || other.digits.len() > MAX_FACTOR_DIGITS {
            return None;
        }
        let mut sums = vec![0u32; self.digits.len() + other.digits.len()];
        for (i, a) in self.digits.iter().enumerate() {
            for (j, b) in other.digits.iter().enumerate() {
                if let Some(sum) = sums.get_mut(i + j + 1) {
                    *sum += u32::from(*a) * u32::from(*b);
                }
            }
        }
        let mut carry = 0;
        for sum in sums.iter_mut().rev() {
            carry += *sum;
            *sum = carry % 10;
            carry /= 10;
        }
        let digits: Vec<u8> = sums.iter().filter_map(|d| u8::try_from(*d).ok()).collect();
        let leading = digits.iter().take_while(|d| **d == 0).count();
        let trailing = digits.iter().rev().take_while(|d| **d == 0).count();
        if leading == digits.len() {
            return Some(Self { negative: false, digits: Vec::new(), exponent: 0 });
        }
        let exponent =
            self.exponent.checked_add(other.exponent)?.checked_sub(i64::try_from(leading).ok()?)?;
        let digits = digits.get(leading..digits.len() - trailing)?.to_vec();
        Some(Self { negative: self.negative != other.negative, digits, exponent })
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
#[allow(clippy::unwrap_used)]
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
    fn products_are_exact() {
        let decimal = |text: &str| Decimal::parse(text).unwrap();
        for (a, b, product) in [
            ("19.99", "100", "1999"),
            ("0.1", "0.2", "0.02"),
            ("-5", "0.001", "-0.005"),
            ("999", "999", "998001"),
            ("0", "1000", "0"),
            ("9007199254740993", "3", "27021597764222979"),
        ] {
            assert_eq!(decimal(a).times(&decimal(b)), Some(decimal(product)), "{a} {b}");
        }
        // against integers of the machine
        for a in [1i128, -7, 10, 123, 99_999, 1_000_001] {
            for b in [1i128, 12, 500, -98_765] {
                let product = decimal(&(a * b).to_string());
                assert_eq!(decimal(&a.to_string()).times(&decimal(&b.to_string())), Some(product), "{a} {b}");
            }
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
