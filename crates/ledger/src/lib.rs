//! What was recorded: chains of small entries, Parquet files, and the reading of both.

pub mod control;
pub mod rows;
