//! Exact decimals between 0 and 1: a ceiling written as `0.01` is one hundredth, not the nearest double.
//! Nothing here rounds before it compares.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A decimal `digits / 10^scale`, at most 15 significant digits and 15 decimals, so that its JSON number (a double)
/// reads back as the same decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    digits: u64,
    scale: u32,
}

const MAX_DIGITS: u32 = 15;

impl Ratio {
    /// `digits / 10^scale`, reduced. `None` when it has more than 15 digits or decimals.
    pub fn new(digits: u64, scale: u32) -> Option<Self> {
        let (mut digits, mut scale) = (digits, scale);
        while scale > 0 && digits.is_multiple_of(10) {
            digits /= 10;
            scale -= 1;
        }
        (scale <= MAX_DIGITS && digits < 10u64.pow(MAX_DIGITS)).then_some(Self { digits, scale })
    }

    /// Reads a plain or scientific decimal (`0.01`, `1e-2`, `1`). `None`: it is negative, no decimal, or too long.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((m, e)) => (m, e.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut digits = 0u64;
        for c in whole.chars().chain(fraction.chars()) {
            digits = digits.checked_mul(10)?.checked_add(u64::from(c.to_digit(10)?))?;
        }
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        if digits == 0 {
            return Self::new(0, 0);
        }
        if scale < 0 {
            let factor = 10u64.checked_pow(scale.unsigned_abs())?;
            return Self::new(digits.checked_mul(factor)?, 0);
        }
        // Trailing zeros go before the power of ten is held against the limit.
        let mut scale = u32::try_from(scale).ok()?;
        while scale > 0 && digits.is_multiple_of(10) {
            digits /= 10;
            scale -= 1;
        }
        Self::new(digits, scale)
    }

    /// 0.
    pub fn zero() -> Self {
        Self { digits: 0, scale: 0 }
    }

    /// Number of decimals.
    pub fn decimals(self) -> u32 {
        self.scale
    }

    /// Whether it is 0.
    pub fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Whether it is at most 1.
    pub fn at_most_one(self) -> bool {
        u128::from(self.digits) <= self.denominator()
    }

    /// Whether it is below 1.
    pub fn below_one(self) -> bool {
        u128::from(self.digits) < self.denominator()
    }

    fn denominator(self) -> u128 {
        10u128.pow(self.scale)
    }

    /// The product of both; `None` when it has too many digits.
    pub fn times(self, other: Self) -> Option<Self> {
        let digits = u64::try_from(u128::from(self.digits) * u128::from(other.digits)).ok()?;
        Self::new(digits, self.scale + other.scale)
    }

    /// Whether `k < self · n`, exactly. (k and n below 2^64 and 15 digits on either side: no overflow in 128 bits.)
    pub fn exceeds(self, k: u64, n: u64) -> bool {
        u128::from(k) * self.denominator() < u128::from(self.digits) * u128::from(n)
    }

    /// `self · n` as an exact decimal text: 0.01 of 40,050 is `400.5`.
    pub fn of(self, n: u64) -> String {
        decimal(u128::from(self.digits) * u128::from(n), self.scale)
    }

    /// As per cent, exactly, without trailing zeros: `1 %`, `0.25 %`.
    pub fn percent(self) -> String {
        format!("{} %", decimal(u128::from(self.digits) * 100, self.scale))
    }

    /// The nearest double. For drawing only; nothing decides on it.
    pub fn to_f64(self) -> f64 {
        self.digits as f64 / 10f64.powi(i32::try_from(self.scale).unwrap_or(0))
    }
}

/// `digits / 10^scale` without trailing zeros.
fn decimal(mut digits: u128, mut scale: u32) -> String {
    while scale > 0 && digits.is_multiple_of(10) {
        digits /= 10;
        scale -= 1;
    }
    let power = 10u128.pow(scale);
    let whole = grouped(u64::try_from(digits / power).unwrap_or(u64::MAX));
    if scale == 0 {
        return whole;
    }
    format!("{whole}.{:0width$}", digits % power, width = scale as usize)
}

/// `40000` as `40,000`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `k/n` as per cent with three decimals, rounded half up from integers; `–` where n is 0.
pub fn percent_of(k: u64, n: u64) -> String {
    if n == 0 {
        return "–".to_owned();
    }
    let thousandths = (u128::from(k) * 200_000 + u128::from(n)) / (u128::from(n) * 2);
    format!("{}.{:03} %", thousandths / 1000, thousandths % 1000)
}

/// `k/n` as a JSON number with at most eight decimals, rounded half up from integers: the same on every machine.
pub fn rate_of(k: u64, n: u64) -> Option<f64> {
    if n == 0 {
        return None;
    }
    let scaled = (u128::from(k) * 200_000_000 + u128::from(n)) / (u128::from(n) * 2);
    Some(scaled as f64 / 1e8)
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&decimal(u128::from(self.digits), self.scale))
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.scale == 0 { s.serialize_u64(self.digits) } else { s.serialize_f64(self.to_f64()) }
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl de::Visitor<'_> for V {
            type Value = Ratio;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a decimal of at most 15 digits, such as 0.01")
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Ratio, E> {
                Ratio::new(v, 0).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(v), &self))
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Ratio, E> {
                let wrong = || E::invalid_value(de::Unexpected::Signed(v), &self);
                Ratio::new(u64::try_from(v).map_err(|_| wrong())?, 0).ok_or_else(wrong)
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Ratio, E> {
                // The shortest decimal of a double is what was written, up to 15 digits.
                Ratio::parse(&format!("{v}")).ok_or_else(|| E::invalid_value(de::Unexpected::Float(v), &self))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Ratio, E> {
                Ratio::parse(v).ok_or_else(|| E::invalid_value(de::Unexpected::Str(v), &self))
            }
        }
        d.deserialize_any(V)
    }
}

impl schemars::JsonSchema for Ratio {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ratio".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "number", "minimum": 0,
            "description": "An exact decimal of at most 15 digits."
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_read_exactly() {
        for (text, shown) in
            [("0.01", "0.01"), ("1e-2", "0.01"), (".010", "0.01"), ("1", "1"), ("0", "0"), ("2.50", "2.5")]
        {
            assert_eq!(Ratio::parse(text).unwrap().to_string(), shown, "{text}");
        }
        for text in ["", ".", "-0.1", "0.1x", "1e99", "1e-99", "0.1234567890123456", "nan"] {
            assert_eq!(Ratio::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_boundary_is_exact() {
        let b = Ratio::parse("0.01").unwrap();
        assert!(b.exceeds(4, 500));
        assert!(!b.exceeds(5, 500)); // exactly B is not below B
        assert!(b.exceeds(u64::MAX / 100, u64::MAX));
        assert!(!b.exceeds(u64::MAX / 100 + 1, u64::MAX));
        assert_eq!(b.of(40_050), "400.5");
        assert_eq!(b.percent(), "1 %");
    }

    #[test]
    fn rates_are_printed_from_integers() {
        assert_eq!(percent_of(1, 3), "33.333 %");
        assert_eq!(percent_of(2, 3), "66.667 %");
        assert_eq!(percent_of(1, 2_000_000), "0.000 %");
        assert_eq!(percent_of(1, 200_000), "0.001 %"); // half up
        assert_eq!(percent_of(0, 0), "–");
        assert_eq!(rate_of(2430, 40_000), Some(0.06075));
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(999), "999");
    }

    proptest! {
        #[test]
        fn json_round_trips(digits in 0u64..1_000_000_000_000_000, scale in 0u32..=15) {
            let ratio = Ratio::new(digits, scale).unwrap();
            let json = serde_json::to_string(&ratio).unwrap();
            prop_assert_eq!(serde_json::from_str::<Ratio>(&json).unwrap(), ratio);
            prop_assert_eq!(Ratio::parse(&ratio.to_string().replace(',', "")).unwrap(), ratio);
        }
    }
}
