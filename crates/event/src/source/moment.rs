//! Times as other people write them.

use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, NaiveDateTime};

use crate::time::Timestamp;

/// How a time is written.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) enum Format {
    /// RFC 3339 with an offset.
    #[default]
    Rfc3339,
    /// A number of units since 1970; so many units make a second.
    Unix(i128),
    /// strftime; UTC where it names no offset.
    Pattern(String),
}

impl Format {
    /// Reads a name, or a pattern with `%`.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "rfc3339" => Self::Rfc3339,
            "unix_s" => Self::Unix(1),
            "unix_ms" => Self::Unix(1_000),
            "unix_us" => Self::Unix(1_000_000),
            "unix_ns" => Self::Unix(1_000_000_000),
            pattern if pattern.contains('%') => {
                if StrftimeItems::new(pattern).any(|item| matches!(item, Item::Error)) {
                    return Err(format!("`{pattern}` is no strftime pattern"));
                }
                Self::Pattern(pattern.to_owned())
            }
            _ => {
                return Err(format!(
                    "`{name}` is no format; use rfc3339, unix_s, unix_ms, unix_us, unix_ns, or a pattern such as \
                     %Y-%m-%d %H:%M:%S%.f"
                ));
            }
        })
    }

    /// Reads a time; the error is what is wrong, without the value.
    pub(super) fn read(&self, text: &str) -> Result<Timestamp, &'static str> {
        const RANGE: &str = "is no time between the years 0 and 9999";
        let at = match self {
            Self::Rfc3339 => {
                return Timestamp::parse(text)
                    .ok_or("is no RFC 3339 time with an offset (Z or an hour difference)");
            }
            Self::Unix(per_second) => match milliseconds(text, *per_second)? {
                0 => return Err("is 0, which is what a producer writes that has no time"),
                ms => Timestamp(ms),
            },
            Self::Pattern(pattern) => Timestamp(
                DateTime::parse_from_str(text, pattern)
                    .map(|at| at.timestamp_millis())
                    .or_else(|_| {
                        NaiveDateTime::parse_from_str(text, pattern).map(|at| at.and_utc().timestamp_millis())
                    })
                    .map_err(|_| "does not fit the map's pattern")?,
            ),
        };
        // what is read has to be written and read again
        if Timestamp::parse(&at.to_string()) == Some(at) { Ok(at) } else { Err(RANGE) }
    }
}

/// Whole milliseconds, rounded down; exact for what is written without an exponent.
fn milliseconds(text: &str, per_second: i128) -> Result<i64, &'static str> {
    const WHAT: &str = "is no number";
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let plain = whole.strip_prefix('-').unwrap_or(whole);
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if plain.is_empty() || plain.len() > 30 || !digits(plain) || !digits(fraction) {
        let number: f64 = text.parse().map_err(|_| WHAT)?;
        let ms = (number / per_second as f64 * 1000.0).floor();
        return if ms.abs() < 9e15 { Ok(ms as i64) } else { Err("is too far away") };
    }
    // nanoseconds of the unit are exact enough for milliseconds of any of them
    let mut units: i128 = plain.parse().map_err(|_| WHAT)?;
    let mut scale = 1i128;
    for digit in fraction.bytes().take(6) {
        units = units * 10 + i128::from(digit - b'0');
        scale *= 10;
    }
    if whole.starts_with('-') {
        units = -units;
    }
    let ms = (units * 1000).div_euclid(per_second * scale);
    i64::try_from(ms).map_err(|_| "is too far away")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_millisecond() {
        let read = |format: &str, text: &str| {
            Format::parse(format).unwrap().read(text).map(|t| t.to_string()).map_err(str::to_owned)
        };
        for (format, text, wanted) in [
            ("rfc3339", "2026-06-01T11:30:00.25+02:00", "2026-06-01T09:30:00.250Z"),
            ("unix_s", "1780306200", "2026-06-01T09:30:00.000Z"),
            ("unix_s", "1780306200.2509", "2026-06-01T09:30:00.250Z"),
            ("unix_s", "1.7803062e9", "2026-06-01T09:30:00.000Z"),
            ("unix_ms", "1780306200250", "2026-06-01T09:30:00.250Z"),
            ("unix_us", "1780306200250999", "2026-06-01T09:30:00.250Z"),
            ("unix_ns", "1780306200250999999", "2026-06-01T09:30:00.250Z"),
            ("unix_s", "-1", "1969-12-31T23:59:59.000Z"),
            ("%Y-%m-%d %H:%M:%S%.f", "2026-06-01 09:30:00.250000", "2026-06-01T09:30:00.250Z"),
            ("%d.%m.%Y %H:%M:%S %z", "01.06.2026 11:30:00 +0200", "2026-06-01T09:30:00.000Z"),
        ] {
            assert_eq!(read(format, text), Ok(wanted.to_owned()), "{format} {text}");
        }
        for (format, text) in [
            ("unix_ns", "0"),
            ("unix_ms", ""),
            ("unix_ms", "-"),
            ("unix_ms", "1e400"),
            ("unix_s", "NaN"),
            ("unix_s", "99999999999999999999999999999999999999999"),
            ("unix_s", "253402300800"),
            ("rfc3339", "2026-06-01"),
            ("%Y", "2026"),
        ] {
            assert!(read(format, text).is_err(), "{format} {text}");
        }
        assert!(Format::parse("seconds").is_err() && Format::parse("%Q").is_err());
    }
}
