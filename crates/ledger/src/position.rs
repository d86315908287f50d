//! Positions in a source and the half-open ranges that chunks cover. The only place where an offset is moved.

use serde::{Deserialize, Serialize};

/// A partition of a source; 0 for files and standard inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partition(pub i32);

/// Where a record stands: Kafka's offset, or the byte offset of a line (in the uncompressed text).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(pub i64);

/// Where reading goes on: everything before it was processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NextOffset(pub i64);

impl Offset {
    /// Where reading goes on after a record that takes up this many offsets: 1 in a topic, its bytes in a file.
    /// `None` when the sum does not fit.
    pub fn after(self, length: u64) -> Option<NextOffset> {
        i64::try_from(length).ok().and_then(|length| self.0.checked_add(length)).map(NextOffset)
    }
}

impl NextOffset {
    /// The offset that is read next.
    pub fn offset(self) -> Offset {
        Offset(self.0)
    }
}

/// The offsets `[first, next)` of a chunk or a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Where it begins: the predecessor's `next`.
    pub first: NextOffset,
    /// Where it ends: not part of it.
    pub next: NextOffset,
}

impl Range {
    /// Whether the record at this offset belongs to it.
    pub fn contains(&self, offset: Offset) -> bool {
        self.first.0 <= offset.0 && offset.0 < self.next.0
    }

    /// Whether it begins exactly where `before` ended, and does not run backwards.
    pub fn follows(&self, before: NextOffset) -> bool {
        self.first == before && self.next >= self.first
    }

    /// Whether it covers nothing.
    pub fn is_empty(&self) -> bool {
        self.next <= self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_without_hole_or_overlap() {
        let range = Range { first: NextOffset(3), next: NextOffset(7) };
        assert!(range.follows(NextOffset(3)));
        assert!(!range.follows(NextOffset(2)) && !range.follows(NextOffset(4)));
        assert!(range.contains(Offset(3)) && range.contains(Offset(6)));
        assert!(!range.contains(Offset(2)) && !range.contains(Offset(7)));
        assert!(!Range { first: NextOffset(3), next: NextOffset(2) }.follows(NextOffset(3)));
        assert_eq!(Offset(5).after(1), Some(NextOffset(6)));
        assert_eq!(Offset(i64::MAX).after(1), None);
    }
}
