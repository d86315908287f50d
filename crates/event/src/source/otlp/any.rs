//! OTLP's AnyValue, from either encoding, and what it is in JSON.

use std::borrow::Cow;

use base64::Engine as _;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::record::Text;

use super::super::node::Node;

/// Levels of lists and maps that are rebuilt; a call's arguments have at most 128.
const MAX_DEPTH: usize = 128;

/// A value of an attribute.
#[derive(Clone, Debug, Default)]
pub(super) enum Any<'a> {
    /// Nothing was set.
    #[default]
    Empty,
    Text(Cow<'a, str>),
    Bool(bool),
    Int(i64),
    Double(f64),
    List(Vec<Any<'a>>),
    Map(Vec<(Cow<'a, str>, Any<'a>)>),
    Bytes(Vec<u8>),
}

impl<'a> Any<'a> {
    /// The value as a document has it.
    pub(super) fn node(self) -> Result<Option<Node<'a>>, &'static str> {
        Ok(match self {
            Self::Empty => None,
            Self::Text(text) => Some(Node::Text(text)),
            other => {
                let mut json = String::new();
                other.write(&mut json, 0)?;
                Some(Node::Made(json))
            }
        })
    }

    /// The value in JSON. Keys that stand twice stay twice: the comparison says what becomes of such arguments.
    fn write(&self, to: &mut String, depth: usize) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("an attribute nests more than 128 levels deep");
        }
        match self {
            Self::Empty => to.push_str("null"),
            Self::Text(text) => quote(text, to),
            Self::Bool(b) => to.push_str(if *b { "true" } else { "false" }),
            Self::Int(n) => to.push_str(&n.to_string()),
            Self::Double(n) if n.is_finite() => to.push_str(&serde_json::to_string(n).unwrap_or_default()),
            Self::Double(_) => return Err("an attribute holds a number that JSON has not (NaN or Infinity)"),
            Self::Bytes(bytes) => quote(&base64::engine::general_purpose::STANDARD.encode(bytes), to),
            Self::List(items) => {
                to.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        to.push(',');
                    }
                    item.write(to, depth + 1)?;
                }
                to.push(']');
            }
            Self::Map(members) => {
                to.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        to.push(',');
                    }
                    quote(key, to);
                    to.push(':');
                    value.write(to, depth + 1)?;
                }
                to.push('}');
            }
        }
        Ok(())
    }
}

fn quote(text: &str, to: &mut String) {
    to.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// A 64-bit number: a string in OTLP's JSON, a number in that of some producers.
#[derive(Clone, Debug, Default)]
pub(super) struct Number<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Number<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(d)?.get();
        match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str::<Text<'de>>(raw)
                .map(|Text(text)| Self(text))
                .map_err(|_| serde::de::Error::custom("a number is expected")),
            Some(b'-' | b'0'..=b'9') => Ok(Self(Cow::Borrowed(raw))),
            Some(b'n') => Ok(Self::default()),
            _ => Err(serde::de::Error::custom("a number is expected")),
        }
    }
}

/// An object, and nothing else: a derived reader would take a list for one, field by field.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for V<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Object)
            }
        }
        d.deserialize_map(V(std::marker::PhantomData))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyValueWire<'a> {
    #[serde(borrow, default)]
    pub(super) key: Text<'a>,
    #[serde(borrow, default)]
    pub(super) value: Option<Object<AnyWire<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AnyWire<'a> {
    #[serde(borrow)]
    string_value: Option<Text<'a>>,
    bool_value: Option<bool>,
    #[serde(borrow)]
    int_value: Option<Number<'a>>,
    #[serde(borrow)]
    double_value: Option<Number<'a>>,
    #[serde(borrow)]
    array_value: Option<Object<ListWire<'a>>>,
    #[serde(borrow)]
    kvlist_value: Option<Object<MapWire<'a>>>,
    #[serde(borrow)]
    bytes_value: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListWire<'a> {
    #[serde(borrow)]
    values: Vec<Object<AnyWire<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MapWire<'a> {
    #[serde(borrow)]
    values: Vec<Object<KeyValueWire<'a>>>,
}

impl<'a> AnyWire<'a> {
    /// The value; the error says what is wrong with it.
    pub(super) fn any(self) -> Result<Any<'a>, &'static str> {
        if let Some(Text(text)) = self.string_value {
            return Ok(Any::Text(text));
        }
        if let Some(b) = self.bool_value {
            return Ok(Any::Bool(b));
        }
        if let Some(Number(text)) = self.int_value {
            return text.parse().map(Any::Int).map_err(|_| "`intValue` is no whole number of 64 bits");
        }
        if let Some(Number(text)) = self.double_value {
            return text.parse().map(Any::Double).map_err(|_| "`doubleValue` is no number");
        }
        if let Some(Text(text)) = self.bytes_value {
            let bytes = base64::engine::general_purpose::STANDARD.decode(&*text);
            return bytes.map(Any::Bytes).map_err(|_| "`bytesValue` is no base64");
        }
        if let Some(Object(list)) = self.array_value {
            return Ok(Any::List(
                list.values.into_iter().map(|item| item.0.any()).collect::<Result<_, _>>()?,
            ));
        }
        if let Some(Object(map)) = self.kvlist_value {
            return Ok(Any::Map(map.values.into_iter().map(|pair| pair.0.pair()).collect::<Result<_, _>>()?));
        }
        Ok(Any::Empty)
    }
}

impl<'a> KeyValueWire<'a> {
    pub(super) fn pair(self) -> Result<(Cow<'a, str>, Any<'a>), &'static str> {
        Ok((self.key.0, self.value.unwrap_or_default().0.any()?))
    }
}
