//! Generated calls: argument objects that a schema accepts, and calls that show one stated kind of change of a pair.
//!
//! Pure and deterministic by seed. It never claims that a call is valid: whoever asks checks each one with a validator
//! of its own (the `accepts` and `shows` functions), and gets `None` where nothing was found.

mod mutate;
mod schema;
mod text;
mod values;

use serde_json::Value;

use mutate::Mutation;
use schema::{properties_of, property, required_of};
pub(crate) use text::format_examples;
pub use values::Generator;

/// Attempts of [`valid`] and [`showing`] at one call.
const TRIES: usize = 60;

/// A small pseudo-random generator: SplitMix64 (Steele, Lea and Flood, 2014). The same seed gives the same numbers on
/// every machine. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for one purpose, so that one more draw here changes nothing there.
    pub fn fork(&self, purpose: &str) -> Self {
        let mut state = self.0 ^ 0x5EED_0F1A_57CA_1100;
        for byte in purpose.bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        let mut forked = Self(state);
        forked.next();
        forked
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; 0 where `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { ((u128::from(self.next()) * u128::from(n)) >> 64) as u64 }
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        (self.next() >> 11) as f64 / ((1u64 << 53) as f64) < p
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(usize::try_from(self.below(items.len() as u64)).ok()?)
    }

    /// The items in another order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

/// The kind of disagreement that a generated call is to show. Names are those of the comparator's categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Aim {
    RequiredRemoved,
    RequiredAdded,
    TypeChanged,
    EnumValueRemoved,
    RangeTightened,
    OptionalRenamed,
    OptionalRemoved,
    OptionalValueLost,
    RequiredRenamed,
    RequiredNullableAdded,
    OptionalRefused,
    UndeclaredRefused,
    NullRefused,
    EnumCaseChanged,
    DefaultChanged,
    CombinationRefused,
    RefusedOther,
}

impl Aim {
    /// Every aim.
    pub const ALL: [Self; 17] = [
        Self::RequiredRemoved,
        Self::RequiredAdded,
        Self::TypeChanged,
        Self::EnumValueRemoved,
        Self::RangeTightened,
        Self::OptionalRenamed,
        Self::OptionalRemoved,
        Self::OptionalValueLost,
        Self::RequiredRenamed,
        Self::RequiredNullableAdded,
        Self::OptionalRefused,
        Self::UndeclaredRefused,
        Self::NullRefused,
        Self::EnumCaseChanged,
        Self::DefaultChanged,
        Self::CombinationRefused,
        Self::RefusedOther,
    ];

    /// The category's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequiredRemoved => "required_removed",
            Self::RequiredAdded => "required_added",
            Self::TypeChanged => "type_changed",
            Self::EnumValueRemoved => "enum_value_removed",
            Self::RangeTightened => "range_tightened",
            Self::OptionalRenamed => "optional_renamed",
            Self::OptionalRemoved => "optional_removed",
            Self::OptionalValueLost => "optional_value_lost",
            Self::RequiredRenamed => "required_renamed",
            Self::RequiredNullableAdded => "required_nullable_added",
            Self::OptionalRefused => "optional_refused",
            Self::UndeclaredRefused => "undeclared_refused",
            Self::NullRefused => "null_refused",
            Self::EnumCaseChanged => "enum_case_changed",
            Self::DefaultChanged => "default_changed",
            Self::CombinationRefused => "combination_refused",
            Self::RefusedOther => "refused_other",
        }
    }

    /// Reads a category's name; `None` for categories that no argument alone can show.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|aim| aim.as_str() == name)
    }
}

/// A value for `schema` that `accepts` confirms. `None`: none was found in the attempts allowed.
pub fn valid(schema: &Value, rng: &mut Rng, accepts: &mut dyn FnMut(&Value) -> bool) -> Option<Value> {
    (0..TRIES).find_map(|i| {
        let optional = if i < TRIES / 2 { 0.5 } else { 0.0 };
        Generator::new(schema).with_optional(optional).value(rng).filter(|v| v.is_object() && accepts(v))
    })
}

/// A call of the pair without any difference, confirmed by `agrees`: built from the candidate's schema, optional
/// arguments only where both declare them, those with another default always.
pub fn agreeing(
    current: &Value,
    candidate: &Value,
    rng: &mut Rng,
    agrees: &mut dyn FnMut(&Value) -> bool,
) -> Option<Value> {
    let declared = |schema: &Value, name: &str| property(schema, schema, name).is_some();
    for attempt in 0..TRIES {
        let Some(Value::Object(mut call)) =
            Generator::new(candidate).with_optional(if attempt < 40 { 0.5 } else { 0.0 }).value(rng)
        else {
            continue;
        };
        let required = required_of(candidate, candidate);
        call.retain(|name, _| declared(current, name) || required.contains(name));
        for (name, schema) in properties_of(candidate, candidate) {
            let other = property(current, current, &name);
            let defaults_differ = other.as_ref().is_some_and(|o| o.get("default") != schema.get("default"));
            if defaults_differ
                && !call.contains_key(&name)
                && let Some(value) = Generator::new(candidate).at(&schema, &name, rng, 1)
            {
                call.insert(name, value);
            }
        }
        for name in required_of(current, current) {
            if !call.contains_key(&name)
                && let Some(schema) = property(current, current, &name)
                && let Some(value) = Generator::new(current).at(&schema, &name, rng, 1)
            {
                call.insert(name, value);
            }
        }
        // A stricter bound of current: take its own value for one argument after the other.
        let call = Value::Object(call);
        if agrees(&call) {
            return Some(call);
        }
        let mut mixed = call;
        for (name, schema) in properties_of(current, current) {
            if mixed.get(&name).is_some()
                && let Some(value) = Generator::new(current).at(&schema, &name, rng, 1)
                && let Some(object) = mixed.as_object_mut()
            {
                object.insert(name, value);
                if agrees(&mixed) {
                    return Some(mixed);
                }
            }
        }
    }
    None
}

/// A call that the current contract takes and that shows `aim` under the candidate, confirmed by `shows`. `base` is a
/// call of the pair without a difference, where there is one: the result then differs from it in one place.
pub fn showing(
    current: &Value,
    candidate: &Value,
    aim: Aim,
    base: Option<&Value>,
    rng: &mut Rng,
    shows: &mut dyn FnMut(&Value) -> bool,
) -> Option<Value> {
    for attempt in 0..TRIES {
        let start = match base {
            Some(base) if attempt % 3 != 2 => base.clone(),
            _ => match Generator::new(current).value(rng) {
                Some(value) => value,
                None => continue,
            },
        };
        let mut edits = Mutation::edits(current, candidate, aim, &start, rng);
        rng.shuffle(&mut edits);
        if let Some(call) = edits.into_iter().filter_map(|edit| edit.apply(&start)).find(|call| shows(call)) {
            return Some(call);
        }
        if shows(&start) {
            return Some(start);
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use serde_json::json;

    use super::text::pattern_text;
    use super::*;

    #[test]
    fn one_seed_gives_one_call() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "integer", "minimum": 3, "maximum": 9},
            "c": {"type": "array", "items": {"enum": ["x", "y"]}}}, "required": ["a", "b"]});
        let make = |seed| {
            let mut rng = Rng::new(seed);
            (0..20).map(|_| Generator::new(&schema).value(&mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(make(7), make(7));
        assert_ne!(make(7), make(8));
        for value in make(7) {
            let b = value.unwrap()["b"].as_i64().unwrap();
            assert!((3..=9).contains(&b));
        }
    }

    #[test]
    fn simple_patterns_are_built_and_others_are_given_up() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let text = pattern_text(r"^[A-Z]{2}-\d{3,5}(x|yy)?$", &mut rng).unwrap();
            let (head, rest) = text.split_at(3);
            assert!(head[..2].chars().all(|c| c.is_ascii_uppercase()) && head.ends_with('-'), "{text}");
            let digits = rest.chars().take_while(char::is_ascii_digit).count();
            assert!((3..=5).contains(&digits), "{text}");
            assert!(["", "x", "yy"].contains(&&rest[digits..]), "{text}");
        }
        for hard in [r"(?=a)b", r"\p{L}+", r"(a)\1", "(", "a)", "[a", "*a"] {
            assert_eq!(pattern_text(hard, &mut rng), None, "{hard}");
        }
    }

    #[test]
    fn hostile_schemas_end() {
        let mut rng = Rng::new(3);
        for schema in [
            json!({"$ref": "#"}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"type": "string", "minLength": 18_446_744_073_709_551_615u64}),
            json!({"type": "array", "minItems": 4_000_000_000u64, "items": {"type": "null"}}),
            json!({"type": "integer", "minimum": 1e308, "maximum": -1e308}),
            json!({"type": "string", "pattern": "a{1000000}"}),
            json!({"type": "string", "pattern": "((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+"}),
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}),
            json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"},
                "d": {"$ref": "#"}, "e": {"$ref": "#"}, "f": {"$ref": "#"}, "g": {"$ref": "#"}}}),
            json!({"type": 7, "properties": []}),
            json!(false),
        ] {
            let _ = Generator::new(&schema).value(&mut rng);
            let _ = showing(&schema, &schema, Aim::TypeChanged, None, &mut rng, &mut |_| false);
        }
    }

    #[test]
    fn a_mutation_reaches_its_aim() {
        let current = json!({"type": "object", "required": ["order_id"], "properties": {
            "order_id": {"type": "string"}, "reason": {"enum": ["a", "b", "Late"]},
            "note": {"type": "string", "maxLength": 400}, "items": {"type": "array", "items": {
                "type": "object", "properties": {"kind": {"enum": ["k", "l"]}}, "required": ["kind"]}}}});
        let candidate = json!({"type": "object", "required": ["order_id", "reason"], "properties": {
            "order_id": {"type": "string"}, "reason": {"enum": ["a", "late"]},
            "note": {"type": "string", "maxLength": 20}, "items": {"type": "array", "items": {
                "type": "object", "properties": {"kind": {"enum": ["k"]}}, "required": ["kind"]}}}});
        let mut rng = Rng::new(5);
        let mut find = |aim: Aim, shows: &mut dyn FnMut(&Value) -> bool| {
            showing(
                &current,
                &candidate,
                aim,
                Some(&json!({"order_id": "O-1", "reason": "a"})),
                &mut rng,
                shows,
            )
        };
        assert!(find(Aim::RequiredAdded, &mut |c| c.get("reason").is_none()).is_some());
        assert!(find(Aim::EnumValueRemoved, &mut |c| c.get("reason") == Some(&json!("b"))).is_some());
        assert!(find(Aim::EnumCaseChanged, &mut |c| c.get("reason") == Some(&json!("Late"))).is_some());
        assert!(
            find(Aim::RangeTightened, &mut |c| {
                c.get("note").and_then(Value::as_str).is_some_and(|n| n.chars().count() > 20)
            })
            .is_some()
        );
        let deep = find(Aim::EnumValueRemoved, &mut |c| c.pointer("/items/0/kind") == Some(&json!("l")));
        assert!(deep.is_some());
    }
}
