//! Words: names taken apart, units, verbs, and whether a text speaks of something.

/// Letters and digits in lower case.
pub(crate) fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words of a name or text: split at anything that is no letter or digit, and at a capital after a small letter.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let turn = before.is_lowercase() && c.is_uppercase();
        if (!c.is_alphanumeric() || turn) && !word.is_empty() {
            out.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

/// Whether a text can be judged by English words: it has some, and few letters of other scripts.
pub(crate) fn is_english(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let plain = text.chars().filter(char::is_ascii_alphabetic).count();
    letters > 0 && plain * 10 >= letters * 8
}

/// Whether one of these words is in the text.
pub(crate) fn speaks_of(text: &str, of: &[&str]) -> bool {
    words(text).iter().any(|w| of.contains(&w.as_str()))
}

/// Quantities that mean nothing without a unit.
pub(crate) const QUANTITIES: &[&str] = &[
    "amount",
    "price",
    "cost",
    "fee",
    "budget",
    "balance",
    "salary",
    "income",
    "payment",
    "duration",
    "timeout",
    "delay",
    "interval",
    "ttl",
    "latency",
    "distance",
    "length",
    "width",
    "height",
    "depth",
    "radius",
    "weight",
    "mass",
    "temperature",
    "speed",
    "velocity",
    "pressure",
    "volume",
    "area",
    "altitude",
    "elevation",
    "frequency",
    "voltage",
    "power",
    "energy",
    "size",
];

/// Words that state a unit, or that the number is a plain count.
pub(crate) const UNITS: &[&str] = &[
    "ms",
    "millis",
    "millisecond",
    "milliseconds",
    "s",
    "sec",
    "secs",
    "second",
    "seconds",
    "min",
    "mins",
    "minute",
    "minutes",
    "h",
    "hr",
    "hrs",
    "hour",
    "hours",
    "day",
    "days",
    "week",
    "weeks",
    "month",
    "months",
    "year",
    "years",
    "m",
    "meter",
    "meters",
    "metre",
    "metres",
    "km",
    "kilometer",
    "kilometers",
    "kilometre",
    "kilometres",
    "cm",
    "centimeter",
    "centimeters",
    "centimetres",
    "mm",
    "millimeter",
    "millimeters",
    "mile",
    "miles",
    "mi",
    "feet",
    "foot",
    "ft",
    "inch",
    "inches",
    "yard",
    "yards",
    "kg",
    "kilogram",
    "kilograms",
    "g",
    "gram",
    "grams",
    "lb",
    "lbs",
    "pound",
    "pounds",
    "oz",
    "ounces",
    "ton",
    "tons",
    "tonnes",
    "celsius",
    "fahrenheit",
    "kelvin",
    "degree",
    "degrees",
    "usd",
    "eur",
    "gbp",
    "jpy",
    "cny",
    "rmb",
    "inr",
    "dollar",
    "dollars",
    "euro",
    "euros",
    "cent",
    "cents",
    "currency",
    "byte",
    "bytes",
    "kb",
    "mb",
    "gb",
    "tb",
    "kib",
    "mib",
    "gib",
    "percent",
    "percentage",
    "pixel",
    "pixels",
    "px",
    "liter",
    "liters",
    "litre",
    "litres",
    "ml",
    "psi",
    "pascal",
    "pascals",
    "bar",
    "hz",
    "khz",
    "mhz",
    "watt",
    "watts",
    "kw",
    "kwh",
    "joule",
    "joules",
    "calories",
    "volt",
    "volts",
    "kmh",
    "mph",
    "knots",
    "unit",
    "units",
    "number",
    "count",
    "characters",
];

/// Names of tools that change something.
pub(crate) const CHANGES: &[&str] = &[
    "create",
    "delete",
    "remove",
    "update",
    "send",
    "refund",
    "cancel",
    "transfer",
    "pay",
    "approve",
    "grant",
    "revoke",
    "write",
    "insert",
    "drop",
    "purge",
    "publish",
    "post",
    "submit",
    "book",
    "buy",
    "purchase",
    "order",
    "charge",
    "withdraw",
    "deposit",
    "assign",
    "merge",
    "close",
    "reset",
    "disable",
    "enable",
    "terminate",
    "execute",
    "deploy",
    "schedule",
];

/// Words that speak of who may do something.
pub(crate) const PERMISSIONS: &[&str] = &[
    "permission",
    "permissions",
    "permitted",
    "role",
    "roles",
    "scope",
    "scopes",
    "approval",
    "approve",
    "approved",
    "approver",
    "approves",
    "authorized",
    "authorised",
    "authorization",
    "authenticated",
    "admin",
    "administrator",
    "owner",
    "consent",
    "confirm",
    "confirmation",
    "privilege",
    "privileges",
    "access",
    "allowed",
    "entitled",
];

/// Names that say nothing.
pub(crate) const VAGUE: &[&str] = &[
    "data",
    "value",
    "val",
    "info",
    "information",
    "obj",
    "object",
    "item",
    "thing",
    "param",
    "params",
    "arg",
    "args",
    "input",
    "tmp",
    "temp",
    "misc",
    "stuff",
    "foo",
    "bar",
    "field",
    "content1",
    "var",
    "details1",
];

/// Domains that ask for a named sign-off, with the words that betray them.
pub(crate) const DOMAINS: &[(&str, &[&str])] = &[
    ("payments", &["pay", "payment", "payments", "refund", "charge", "invoice", "transfer", "payout"]),
    ("permissions", &["permission", "permissions", "role", "grant", "revoke", "access"]),
    ("orders", &["order", "orders", "purchase", "checkout"]),
    ("messages", &["email", "mail", "sms", "notify", "notification"]),
    ("database writes", &["insert", "upsert", "sql"]),
    ("deletion", &["delete", "purge", "drop", "erase"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_apart() {
        assert_eq!(words("perPage"), ["per", "page"]);
        assert_eq!(words("amount_cents"), ["amount", "cents"]);
        assert_eq!(words("HTTPTimeoutMs"), ["httptimeout", "ms"]);
        assert_eq!(folded("User-ID"), "userid");
        assert!(is_english("What to look for.") && !is_english("照片的URL"));
    }
}
