//! Time as Lastcall counts it: UTC milliseconds, and the UTC day of a call's own time (invariant 10).

use chrono::{DateTime, Datelike, NaiveDate, SecondsFormat, TimeZone, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

/// A UTC day: days since 1970-01-01. Written `YYYY-MM-DD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Day(pub i32);

const MS_PER_DAY: i64 = 86_400_000;
/// How far a call may lie after its message's timestamp.
const AHEAD_MS: i64 = 5 * 60_000;
/// How far a call may lie before its message's timestamp.
const BEHIND_MS: i64 = 7 * MS_PER_DAY;
/// 0000-01-01T00:00:00Z.
const FIRST_MS: i64 = -62_167_219_200_000;
/// 9999-12-31T23:59:59.999Z.
const LAST_MS: i64 = 253_402_300_799_999;

impl Timestamp {
    /// Reads RFC 3339 with an offset (`Z` or `±hh:mm`). `None` when it is anything else, or before year 0 or after 9999.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(fast) = parse_utc(text.as_bytes()) {
            return Some(fast);
        }
        let at = DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis();
        // by its UTC moment: what is read has to be written and read again
        (FIRST_MS..=LAST_MS).contains(&at).then_some(Self(at))
    }

    /// From milliseconds, within the years that can be written and read again: 0 to 9999.
    pub fn of_millis(millis: i64) -> Option<Self> {
        (FIRST_MS..=LAST_MS).contains(&millis).then_some(Self(millis))
    }

    /// Whether a call that claims this moment cannot have come in a message of the other: more than 5 minutes before it
    /// was made, or more than 7 days after. A clock is wrong then, and the call counts on its message's day.
    pub fn is_off(self, message: Self) -> bool {
        let after = self.0.saturating_sub(message.0);
        !(-BEHIND_MS..=AHEAD_MS).contains(&after)
    }

    /// The UTC day this moment lies in.
    pub fn day(self) -> Day {
        Day(i32::try_from(self.0.div_euclid(MS_PER_DAY)).unwrap_or(if self.0 < 0 {
            i32::MIN
        } else {
            i32::MAX
        }))
    }
}

/// The common form `YYYY-MM-DDTHH:MM:SS[.fff…]Z` without going through chrono; anything unusual is left to it.
fn parse_utc(b: &[u8]) -> Option<Timestamp> {
    fn two(b: &[u8], at: usize) -> Option<i64> {
        let (a, c) = (b[at].wrapping_sub(b'0'), b[at + 1].wrapping_sub(b'0'));
        (a < 10 && c < 10).then(|| i64::from(a) * 10 + i64::from(c))
    }
    if b.len() < 20 || b.last() != Some(&b'Z') {
        return None;
    }
    let fixed = b[4] == b'-' && b[7] == b'-' && b[10] == b'T' && b[13] == b':' && b[16] == b':';
    if !fixed {
        return None;
    }
    let year = two(b, 0)? * 100 + two(b, 2)?;
    let (month, day) = (two(b, 5)?, two(b, 8)?);
    let (hour, minute, second) = (two(b, 11)?, two(b, 14)?, two(b, 17)?);
    if !(1..=12).contains(&month) || !(1..=28).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None; // days 29 to 31 and leap seconds: chrono knows
    }
    let mut ms = 0i64;
    match b[19] {
        b'Z' if b.len() == 20 => {}
        b'.' if b.len() > 21 => {
            let mut scale = 100;
            for &digit in &b[20..b.len() - 1] {
                let digit = digit.wrapping_sub(b'0');
                if digit > 9 {
                    return None;
                }
                ms += i64::from(digit) * scale;
                scale /= 10;
            }
        }
        _ => return None,
    }
    // Days from civil: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y - era * 400;
    let doy = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    let days = era * 146_097 + doe - 719_468;
    Some(Timestamp(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + ms))
}

impl Day {
    /// Reads `YYYY-MM-DD`.
    pub fn parse(text: &str) -> Option<Self> {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        let start = Utc.from_utc_datetime(&date.and_hms_opt(0, 0, 0)?).timestamp_millis();
        (FIRST_MS..=LAST_MS).contains(&start).then(|| Timestamp(start).day())
    }

    /// The first moment of the day.
    pub fn start(self) -> Timestamp {
        Timestamp(i64::from(self.0) * MS_PER_DAY)
    }

    /// The first moment of the next day: days are half open.
    pub fn end(self) -> Timestamp {
        self.plus(1).start()
    }

    /// The day this many days later (or earlier).
    pub fn plus(self, days: i32) -> Self {
        Self(self.0.saturating_add(days))
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match Utc.timestamp_millis_opt(self.0).single() {
            Some(at) => f.write_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true)),
            None => write!(f, "{} ms", self.0),
        }
    }
}

/// `YYYY-MM-DD` of the years 0 to 9999: entries hold a day in every count, and chrono's way costs ten times as much.
fn four_digits(date: NaiveDate) -> Option<[u8; 10]> {
    let year = u32::try_from(date.year()).ok().filter(|year| *year < 10_000)?;
    let digit = |n: u32| b'0' + (n % 10) as u8;
    let (month, day) = (date.month(), date.day());
    Some([
        digit(year / 1000),
        digit(year / 100),
        digit(year / 10),
        digit(year),
        b'-',
        digit(month / 10),
        digit(month),
        b'-',
        digit(day / 10),
        digit(day),
    ])
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match NaiveDate::from_num_days_from_ce_opt(self.0.saturating_add(719_163)) {
            Some(date) => match four_digits(date) {
                Some(text) => f.write_str(std::str::from_utf8(&text).unwrap_or_default()),
                None => write!(f, "{}", date.format("%Y-%m-%d")),
            },
            None => write!(f, "day {}", self.0),
        }
    }
}

macro_rules! as_text {
    ($type:ty, $what:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                <$type>::parse(&text).ok_or_else(|| serde::de::Error::custom(format_args!($what, text)))
            }
        }
    };
}
as_text!(Timestamp, "not an RFC 3339 time with an offset (Z or an hour difference) `{}`");
as_text!(Day, "not a day such as 2026-06-01 `{}`");

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_agrees_with_chrono() {
        for text in [
            "2026-06-01T09:30:00Z",
            "2026-06-01T09:30:00.5Z",
            "2026-02-28T23:59:59.999999Z",
            "2000-02-29T00:00:00Z",
            "1969-12-31T23:59:59.001Z",
            "0001-01-01T00:00:00Z",
            "2026-12-31T23:59:59+02:00",
        ] {
            let chrono = DateTime::parse_from_rfc3339(text).map(|t| t.timestamp_millis()).ok();
            assert_eq!(Timestamp::parse(text).map(|t| t.0), chrono, "{text}");
        }
        for text in
            ["2026-06-01", "2026-06-01T09:30:00", "2026-13-01T00:00:00Z", "2026-06-31T00:00:00Z", "", "Z"]
        {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_read_can_be_written_and_read_again() {
        for text in ["9999-12-31T23:59:59-05:00", "0000-01-01T00:00:00+05:00", "-0001-01-01T00:00:00Z"] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
        for text in ["9999-12-31T23:59:59.999Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59+05:00"] {
            let read = Timestamp::parse(text).unwrap();
            assert_eq!(Timestamp::parse(&read.to_string()), Some(read), "{text}");
            assert_eq!(Day::parse(&read.day().to_string()), Some(read.day()), "{text}");
        }
        for text in ["+10000-01-01", "-0001-01-01"] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }

    #[test]
    fn days_are_written_as_chrono_writes_them() {
        for day in (-800_000..3_000_000).step_by(97) {
            let date = NaiveDate::from_num_days_from_ce_opt(day + 719_163).unwrap();
            assert_eq!(Day(day).to_string(), date.format("%Y-%m-%d").to_string());
        }
    }

    #[test]
    fn days_round_trip() {
        for text in ["2026-06-01", "1970-01-01", "1969-12-31", "2024-02-29"] {
            assert_eq!(Day::parse(text).map(|d| d.to_string()).as_deref(), Some(text));
        }
        assert_eq!(
            Timestamp::parse("2026-06-01T23:59:59.999Z").map(Timestamp::day),
            Day::parse("2026-06-01")
        );
        assert_eq!(
            Timestamp::parse("2026-06-02T00:30:00+02:00").map(Timestamp::day),
            Day::parse("2026-06-01")
        );
    }
}
