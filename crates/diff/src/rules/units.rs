//! Units in names and descriptions: another unit under the same argument is a change that no validator sees.

/// (dimension, unit, words in prose, last word of a name).
type Unit = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const UNITS: [Unit; 33] = [
    ("time", "nanoseconds", &["nanoseconds", "nanosecond"], &["ns", "nanos", "nanoseconds"]),
    ("time", "microseconds", &["microseconds", "microsecond"], &["us", "micros", "microseconds"]),
    (
        "time",
        "milliseconds",
        &["milliseconds", "millisecond", "millis", "ms"],
        &["ms", "millis", "milliseconds"],
    ),
    ("time", "seconds", &["seconds", "secs"], &["s", "sec", "secs", "seconds"]),
    ("time", "minutes", &["minutes", "mins"], &["min", "mins", "minutes"]),
    ("time", "hours", &["hours", "hrs"], &["h", "hr", "hrs", "hours"]),
    ("time", "days", &["days"], &["d", "days"]),
    ("time", "weeks", &["weeks"], &["weeks"]),
    ("time", "months", &["months"], &["months"]),
    ("size", "bits", &["bits"], &["bits"]),
    ("size", "bytes", &["bytes"], &["bytes"]),
    ("size", "kilobytes", &["kilobytes", "kb", "kib", "kibibytes"], &["kb", "kib", "kilobytes"]),
    ("size", "megabytes", &["megabytes", "mb", "mib", "mebibytes"], &["mb", "mib", "megabytes"]),
    ("size", "gigabytes", &["gigabytes", "gb", "gib", "gibibytes"], &["gb", "gib", "gigabytes"]),
    ("money", "cents", &["cents", "pence", "pennies"], &["cents", "pence"]),
    ("money", "dollars", &["dollars", "usd"], &["dollars", "usd"]),
    ("money", "euros", &["euros", "eur"], &["euros", "eur"]),
    ("money", "pounds sterling", &["sterling", "gbp"], &["gbp"]),
    ("length", "millimetres", &["millimetres", "millimeters", "mm"], &["mm"]),
    ("length", "centimetres", &["centimetres", "centimeters", "cm"], &["cm"]),
    ("length", "metres", &["metres", "meters"], &["m", "metres", "meters"]),
    ("length", "kilometres", &["kilometres", "kilometers", "km"], &["km"]),
    ("length", "miles", &["miles"], &["miles", "mi"]),
    ("length", "feet", &["feet"], &["ft", "feet"]),
    ("length", "inches", &["inches"], &["inches"]),
    ("length", "pixels", &["pixels", "px"], &["px", "pixels"]),
    ("mass", "grams", &["grams"], &["g", "grams"]),
    ("mass", "kilograms", &["kilograms", "kg"], &["kg"]),
    ("mass", "pounds", &["lbs", "pounds"], &["lb", "lbs"]),
    ("temperature", "celsius", &["celsius"], &["celsius"]),
    ("temperature", "fahrenheit", &["fahrenheit"], &["fahrenheit"]),
    ("share", "percent", &["percent", "percentage"], &["percent", "pct"]),
    ("share", "fraction", &["fraction", "ratio"], &["fraction", "ratio"]),
];

/// The units that two texts state, when every unit of one dimension gave way to another: `(seconds, milliseconds)`.
pub(super) fn changed_in_text(old: &str, new: &str) -> Option<(&'static str, &'static str)> {
    let (old, new) = (units_of(old), units_of(new));
    old.iter().find_map(|(dimension, from)| {
        let others: Vec<&str> = new.iter().filter(|(d, _)| d == dimension).map(|(_, unit)| *unit).collect();
        let to = new.iter().find(|(d, _)| d == dimension)?.1;
        let kept = old.iter().any(|(d, unit)| d == dimension && others.contains(unit));
        (!kept).then_some((*from, to))
    })
}

fn units_of(text: &str) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase) {
        for (dimension, unit, words, _) in UNITS {
            if words.contains(&word.as_str()) && !found.contains(&(dimension, unit)) {
                found.push((dimension, unit));
            }
        }
    }
    found
}

/// The units of two names that differ in their unit alone: `timeout_s`, `timeout_ms`.
pub(super) fn changed_in_name(old: &str, new: &str) -> Option<(&'static str, &'static str)> {
    let ((stem, from), (other, to)) = (stem_and_unit(old)?, stem_and_unit(new)?);
    (stem == other && from.0 == to.0 && from.1 != to.1).then_some((from.1, to.1))
}

fn stem_and_unit(name: &str) -> Option<(String, (&'static str, &'static str))> {
    let mut words = words(name);
    let last = words.pop()?;
    if words.is_empty() {
        return None;
    }
    let unit = UNITS.iter().find(|(_, _, _, suffixes)| suffixes.contains(&last.as_str()))?;
    Some((words.join("_"), (unit.0, unit.1)))
}

/// The words of a name in snake, kebab or camel case, in lower case.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut last_lower = false;
    for c in name.chars() {
        let fresh = !c.is_alphanumeric();
        if fresh || (c.is_uppercase() && last_lower) || out.is_empty() {
            out.push(String::new());
        }
        if !fresh && let Some(word) = out.last_mut() {
            word.extend(c.to_lowercase());
        }
        last_lower = c.is_lowercase() || c.is_numeric();
    }
    out.retain(|word| !word.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_names_and_texts() {
        assert_eq!(changed_in_name("timeout_s", "timeout_ms"), Some(("seconds", "milliseconds")));
        assert_eq!(changed_in_name("timeoutSeconds", "timeoutMs"), Some(("seconds", "milliseconds")));
        assert_eq!(changed_in_name("items", "terms"), None);
        assert_eq!(changed_in_name("delay_ms", "timeout_s"), None);
        let changed = changed_in_text("Timeout in seconds.", "Timeout in milliseconds");
        assert_eq!(changed, Some(("seconds", "milliseconds")));
        assert_eq!(changed_in_text("in seconds", "in seconds, at most 5 minutes"), None);
        assert_eq!(changed_in_text("the second one", "in milliseconds"), None);
        assert_eq!(words("listPullRequests_v2"), ["list", "pull", "requests", "v2"]);
    }
}
