//! Inputs that benchmarks share.
