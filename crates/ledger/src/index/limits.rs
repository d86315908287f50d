//! How much one index entry takes in.

/// How much one index entry takes in. It changes no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactLimits {
    /// Entries of one partition chain, beyond what the index knows: a long record is folded in several steps.
    pub step: usize,
    /// A chunk with so many entries behind it is folded even if a day of it is open.
    pub behind: usize,
    /// Rows that are held in memory at once.
    pub rows: u64,
    /// Days that the newest daily facts of a tool keep; more are handed to an object of their own.
    pub days: usize,
}

impl Default for CompactLimits {
    fn default() -> Self {
        Self { step: 4096, behind: 1024, rows: 200_000, days: 96 }
    }
}
