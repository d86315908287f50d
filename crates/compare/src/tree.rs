//! The arguments of a call as a tree that borrows its texts from the record. The validation library reads it as it is;
//! only a call that has to be explained is copied into a `serde_json::Value`.

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp};
use serde_json::{Number, Value};

/// A JSON value.
#[derive(Clone, Debug)]
pub enum Tree<'a> {
    /// null.
    Null,
    /// true or false.
    Bool(bool),
    /// A 64-bit integer or a double.
    Number(Number),
    /// A string; borrowed where it has no escape.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Tree<'a>>),
    /// An object.
    Object(Members<'a>),
}

/// A name and its value.
type Member<'a> = (Cow<'a, str>, Tree<'a>);

/// The members of an object, each name once.
#[derive(Clone, Debug)]
pub struct Members<'a>(Vec<Member<'a>>);

impl<'a> Members<'a> {
    /// Up to so many members a name is looked for from the first to the last.
    const SCANNED: usize = 16;

    /// Of members whose names all differ.
    pub(crate) fn new(mut members: Vec<Member<'a>>) -> Self {
        if members.len() > Self::SCANNED {
            members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        }
        Self(members)
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Tree<'a>> {
        if self.0.len() > Self::SCANNED {
            let at = self.0.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
            return self.0.get(at).map(|(_, value)| value);
        }
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The values.
    pub fn values(&self) -> impl Iterator<Item = &Tree<'a>> {
        self.0.iter().map(|(_, value)| value)
    }
}

impl Tree<'_> {
    /// A copy that borrows nothing.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(*b),
            Self::Number(n) => Value::Number(n.clone()),
            Self::Text(text) => Value::String(text.clone().into_owned()),
            Self::List(items) => Value::Array(items.iter().map(Tree::to_value).collect()),
            Self::Object(Members(members)) => {
                Value::Object(members.iter().map(|(k, v)| (k.clone().into_owned(), v.to_value())).collect())
            }
        }
    }
}

/// The validation library's name for values of this form.
pub struct Trees;

impl Json for Trees {
    type Node<'a> = &'a Tree<'a>;
    type PreparedKey = String;
    type StringBuffer = ();

    // as for the library's own form: a lookup costs about as much as two steps over all members
    const KEYS_PER_LOOKUP: usize = 2;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(Self::Node<'_>) -> T) -> T {
        f(&Tree::Text(Cow::Borrowed(string)))
    }
}

impl<'a> Node<'a, Trees> for &'a Tree<'a> {
    type Object = &'a Members<'a>;
    type Array = &'a [Tree<'a>];
    type Number = &'a Number;

    fn as_object(&self) -> Option<&'a Members<'a>> {
        match self {
            Tree::Object(members) => Some(members),
            _ => None,
        }
    }
    fn as_array(&self) -> Option<&'a [Tree<'a>]> {
        match self {
            Tree::List(items) => Some(items),
            _ => None,
        }
    }
    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            Tree::Text(text) => Some(Cow::Borrowed(text)),
            _ => None,
        }
    }
    fn as_number(&self) -> Option<&'a Number> {
        match self {
            Tree::Number(number) => Some(number),
            _ => None,
        }
    }
    fn as_boolean(&self) -> Option<bool> {
        match self {
            Tree::Bool(b) => Some(*b),
            _ => None,
        }
    }
    fn is_null(&self) -> bool {
        matches!(self, Tree::Null)
    }
    fn json_type(&self) -> JsonType {
        match self {
            Tree::Null => JsonType::Null,
            Tree::Bool(_) => JsonType::Boolean,
            Tree::Number(_) => JsonType::Number,
            Tree::Text(_) => JsonType::String,
            Tree::List(_) => JsonType::Array,
            Tree::Object(_) => JsonType::Object,
        }
    }
    fn equals_value(&self, expected: &Value) -> bool {
        match (self, expected) {
            (Tree::Text(text), Value::String(other)) => text == other,
            (Tree::Number(number), Value::Number(other)) => cmp::equal_numbers(number, other),
            (Tree::Bool(b), Value::Bool(other)) => b == other,
            (Tree::Null, Value::Null) => true,
            (Tree::List(_), Value::Array(_)) | (Tree::Object(_), Value::Object(_)) => {
                cmp::equal(&Tree::to_value(self), expected)
            }
            _ => false,
        }
    }
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(Tree::to_value(self))
    }
    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref::<Tree<'a>>(self).addr()))
    }
}

impl<'a> Object<'a, Trees> for &'a Members<'a> {
    type Node = &'a Tree<'a>;
    type MemberName = &'a str;
    type MembersIter =
        std::iter::Map<std::slice::Iter<'a, Member<'a>>, fn(&'a Member<'a>) -> (&'a str, &'a Tree<'a>)>;

    fn len(&self) -> usize {
        self.0.len()
    }
    fn get(&self, key: &String) -> Option<&'a Tree<'a>> {
        Members::get(self, key)
    }
    fn members(&self) -> Self::MembersIter {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

impl<'a> Array<'a, Trees> for &'a [Tree<'a>] {
    type Node = &'a Tree<'a>;
    type ElementsIter = std::slice::Iter<'a, Tree<'a>>;

    fn len(&self) -> usize {
        <[Tree<'a>]>::len(self)
    }
    fn elements(&self) -> Self::ElementsIter {
        self.iter()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::sync::LazyLock;

    use jsonschema::Validator;
    use lastcall_contract::{Draft, validator_for, validator_of};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::parse::parse_value;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3i64..12).prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-20i32..20).prop_map(|n| json!(f64::from(n) / 4.0)),
            any::<f64>().prop_filter_map("JSON knows no such number", |n| (n.is_finite()).then(|| json!(n))),
            "[a-c\u{e9}\"\\\\\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 24, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"\\\\]{0,3}", inner, 0..24)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn schemas() -> Vec<Value> {
        vec![
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                "required": ["a"], "additionalProperties": false}),
            json!({"required": ["a", "b"], "minProperties": 2, "maxProperties": 9}),
            json!({"required": ["a", "b", "c", "aa"]}),
            json!({"patternProperties": {"^a": {"type": ["number", "null"]}}, "propertyNames": {"maxLength": 2}}),
            json!({"enum": [1, 2.0, "a", null, [1], {"a": 1}, true]}),
            json!({"const": {"a": [1.0, null]}}),
            json!({"type": "array", "uniqueItems": true, "maxItems": 3, "items": {"type": "number"}}),
            json!({"contains": {"type": "string"}, "prefixItems": [{"type": "integer"}], "unevaluatedItems": false}),
            json!({"oneOf": [{"type": "integer"}, {"type": "number", "multipleOf": 0.5}, {"maxLength": 3}]}),
            json!({"anyOf": [{"minimum": 3, "exclusiveMaximum": 9}, {"pattern": "^a"}, {"minLength": 2}]}),
            json!({"if": {"required": ["a"]}, "then": {"dependentRequired": {"b": ["c"]}}, "else": {"not": {"type": "null"}}}),
            json!({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": {"type": "boolean"}}),
            json!({"$defs": {"n": {"properties": {"a": {"$ref": "#/$defs/n"}}, "type": ["object", "integer", "string"]}},
                "$ref": "#/$defs/n"}),
            json!({"format": "date"}),
        ]
    }

    /// In the newest draft and, where it is one there, in the oldest.
    static COMPILED: LazyLock<Vec<(Value, Validator<Trees>, Validator)>> = LazyLock::new(|| {
        let both = |schema: Value| {
            let old = validator_for(&schema, Draft::Draft4).is_ok();
            let drafts = [Some(Draft::Draft202012), old.then_some(Draft::Draft4)];
            drafts.into_iter().flatten().map(move |draft| {
                let (trees, _) = validator_of::<Trees>(&schema, draft).unwrap();
                (schema.clone(), trees, validator_for(&schema, draft).unwrap())
            })
        };
        schemas().into_iter().flat_map(both).collect()
    });

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// The tree is the value, and every schema says the same of both.
        #[test]
        fn as_the_value(value in value()) {
            let text = value.to_string();
            let parsed = parse_value(&text).unwrap();
            let known: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(parsed.value(), &known);
            for (schema, trees, values) in &*COMPILED {
                prop_assert_eq!(trees.is_valid(&parsed.tree), values.is_valid(&known), "{} {}", schema, text);
            }
        }
    }

    #[test]
    fn names_are_found_however_many_there_are() {
        for n in [0, 1, 15, 16, 17, 400] {
            let text =
                format!("{{{}}}", (0..n).map(|i| format!("\"k{i}\":{i}")).collect::<Vec<_>>().join(","));
            let parsed = parse_value(&text).unwrap();
            let Tree::Object(members) = &parsed.tree else { panic!("an object") };
            for i in 0..n {
                assert_eq!(members.get(&format!("k{i}")).map(Tree::to_value), Some(Value::from(i)));
            }
            assert!(members.get("other").is_none());
        }
    }
}
