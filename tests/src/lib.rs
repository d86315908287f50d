//! Helpers that tests across crates share.
