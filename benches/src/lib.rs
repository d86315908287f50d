//! What the benchmarks share: their input, and what a run used.

pub mod input;
pub mod measure;
