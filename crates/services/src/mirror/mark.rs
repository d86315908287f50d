//! Where a partition of the output stands after one of its messages: a header on each of them.

use std::fmt;

/// The header's name.
pub const HEADER: &str = "lastcall-upstream";

/// Where a partition of the output stands: `STATED/RESUME/FIRST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The largest `upstream.to` that any row of the partition states: the next row's `upstream.from`.
    pub stated: i64,
    /// The upstream offset at which a mirror goes on. Never below `stated`.
    pub resume: i64,
    /// How many partitions the topics had when they were first mirrored: one that came later begins with its first record.
    pub first: i32,
}

impl Mark {
    /// Reads the header's value; `None`: no mirror wrote this.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut numbers = std::str::from_utf8(value).ok()?.split('/');
        let mark = Self {
            stated: numbers.next()?.parse().ok()?,
            resume: numbers.next()?.parse().ok()?,
            first: numbers.next()?.parse().ok()?,
        };
        let fits =
            numbers.next().is_none() && 0 <= mark.stated && mark.stated <= mark.resume && 0 < mark.first;
        fits.then_some(mark)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.stated, self.resume, self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mirror_wrote_is_read_and_nothing_else_is() {
        let mark = Mark { stated: 3, resume: 17, first: 6 };
        assert_eq!(Mark::parse(mark.to_string().as_bytes()), Some(mark));
        for odd in
            ["", "3", "3/17", "3/17/6/1", "18/17/6", "-1/17/6", "3/17/0", "3/ 17/6", "3/x/6", "3/17/6\n"]
        {
            assert_eq!(Mark::parse(odd.as_bytes()), None, "{odd}");
        }
        assert_eq!(Mark::parse(b"3/17/\xff"), None);
    }
}
