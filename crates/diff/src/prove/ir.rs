//! What a schema means, without its spelling: a graph of nodes in which equal content has an equal identity.
//!
//! A node speaks of one value. A node about one type (`MinLength`, `Items` …) is true of values of any other type, as
//! the keywords of JSON Schema are. Annotations do not appear; references are followed while compiling.

mod make;

use std::sync::{Arc, OnceLock, Weak};

use serde_json::{Number, Value};

pub(super) use make::{
    and, contains, contested, count, identity, is_false, is_true, items, least, link, members, most,
    multiple_of, names, not, of_types, of_values, one, opaque, or, pattern, required, truth, unique,
};

use super::number::Num;

/// A node, shared.
pub(super) type N = Arc<Node>;

/// Types of values as a set. Numbers are split into whole ones (`1`, `1.0`) and others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(pub u8);

impl Types {
    pub const NULL: Self = Self(1);
    pub const BOOLEAN: Self = Self(2);
    pub const WHOLE: Self = Self(4);
    pub const FRACTION: Self = Self(8);
    pub const STRING: Self = Self(16);
    pub const ARRAY: Self = Self(32);
    pub const OBJECT: Self = Self(64);
    pub const ALL: Self = Self(127);
    /// Every single type.
    pub const EACH: [Self; 7] =
        [Self::NULL, Self::BOOLEAN, Self::WHOLE, Self::FRACTION, Self::STRING, Self::ARRAY, Self::OBJECT];

    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn not(self) -> Self {
        Self(!self.0 & 127)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if Num::of(number).is_whole() => Self::WHOLE,
            Value::Number(_) => Self::FRACTION,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// By the name that the keyword `type` uses.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::WHOLE,
            "number" => Self::WHOLE.or(Self::FRACTION),
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }
}

/// Checks a value where the node itself is not modelled.
pub(super) type Check = Arc<dyn Fn(&Value) -> Option<bool> + Send + Sync>;

/// The target of a reference that leads back to where compiling came from. Weak: whoever compiles keeps the target.
#[derive(Default)]
pub(super) struct Link(OnceLock<Weak<Node>>);

impl Link {
    pub fn set(&self, target: &N) {
        let _ = self.0.set(Arc::downgrade(target));
    }

    pub fn get(&self) -> Option<N> {
        self.0.get()?.upgrade()
    }
}

/// What a node demands.
pub(super) enum Kind {
    True,
    False,
    And(Vec<N>),
    Or(Vec<N>),
    Not(N),
    /// Exactly one of these.
    One(Vec<N>),
    Types(Types),
    /// One of these values, numbers in canonical form.
    Enum(Arc<Vec<Value>>),
    /// At least this number; more than it where `exclusive`.
    Least {
        bound: Num,
        exclusive: bool,
    },
    Most {
        bound: Num,
        exclusive: bool,
    },
    MultipleOf(Number),
    MinLength(u64),
    MaxLength(u64),
    Pattern(Arc<str>, Check),
    MinItems(u64),
    MaxItems(u64),
    Unique,
    Items {
        prefix: Vec<N>,
        rest: N,
    },
    /// Between `min` and `max` items satisfy `item`.
    Contains {
        item: N,
        min: u64,
        max: Option<u64>,
    },
    MinProperties(u64),
    MaxProperties(u64),
    Required(Arc<str>),
    /// Members by name, by pattern, and those that neither speaks of.
    Members {
        names: Vec<(Arc<str>, N)>,
        patterns: Vec<(Arc<str>, N, Check)>,
        rest: N,
    },
    Names(N),
    Link(Arc<Link>),
    /// Not modelled. It may be told from its negation by identity, and checked on a value.
    Opaque(Check),
    /// A demand that some validators make and others do not.
    Contested,
}

/// A node and its identity.
pub(super) struct Node {
    /// Equal content has an equal identity, whatever its spelling and its document.
    pub id: u128,
    pub kind: Kind,
}

/// A node with a sign: it holds, or it does not.
#[derive(Clone)]
pub(super) struct Literal {
    pub node: N,
    pub holds: bool,
}

impl Literal {
    pub fn yes(node: &N) -> Self {
        Self { node: node.clone(), holds: true }
    }

    pub fn no(node: &N) -> Self {
        Self { node: node.clone(), holds: false }
    }

    pub fn key(&self) -> (u128, bool) {
        (self.node.id, self.holds)
    }
}
