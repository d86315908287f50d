//! Names, and counts by name: a few names each, sorted, in one small allocation. An entry holds tens of thousands of
//! them.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name that stands in many counts: one text, shared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name(Arc<str>);

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d).map(|text| Self(text.into()))
    }
}

/// Name → count, ascending by name; in JSON an object.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NamedCounts(Vec<(Cow<'static, str>, u64)>);

impl NamedCounts {
    /// No name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The count of a name, if it stands there.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.at(name).ok().and_then(|at| self.0.get(at)).map(|(_, n)| *n)
    }

    /// Adds another's counts.
    pub fn add_all(&mut self, more: &Self) {
        more.0.iter().for_each(|(name, n)| self.add(name.clone(), *n));
    }

    /// Names and counts, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, n)| (&**name, *n))
    }

    /// Adds to a name's count.
    pub fn add(&mut self, name: impl Into<Cow<'static, str>>, n: u64) {
        let name = name.into();
        match self.at(&name) {
            Ok(at) => {
                if let Some((_, sum)) = self.0.get_mut(at) {
                    *sum += n;
                }
            }
            Err(at) => self.0.insert(at, (name, n)),
        }
    }

    fn at(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }
}

impl<N: Into<Cow<'static, str>>> FromIterator<(N, u64)> for NamedCounts {
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(all: I) -> Self {
        let mut out = Self::default();
        all.into_iter().for_each(|(name, n)| out.add(name, n));
        out
    }
}

impl Serialize for NamedCounts {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for NamedCounts {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = NamedCounts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of counts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedCounts, A::Error> {
                let mut out = NamedCounts::default();
                while let Some((name, n)) = map.next_entry::<String, u64>()? {
                    if out.get(&name).is_some() {
                        return Err(serde::de::Error::custom(format!("`{name}` is counted twice")));
                    }
                    out.add(name, n);
                }
                Ok(out)
            }
        }
        d.deserialize_map(V)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn as_a_map_would() {
        let names = ["raw", "b", "a", "raw", "c", "a", "a"];
        let mut map: BTreeMap<String, u64> = BTreeMap::new();
        let mut counts = NamedCounts::default();
        for (i, name) in names.into_iter().enumerate() {
            *map.entry(name.to_owned()).or_default() += i as u64;
            counts.add(name, i as u64);
        }
        assert_eq!(serde_json::to_string(&counts).unwrap(), serde_json::to_string(&map).unwrap());
        let back: NamedCounts = serde_json::from_str(&serde_json::to_string(&map).unwrap()).unwrap();
        assert_eq!(back, counts);
        assert_eq!(counts.get("raw"), Some(3));
        assert!(serde_json::from_str::<NamedCounts>(r#"{"a":1,"a":2}"#).is_err());
    }
}
