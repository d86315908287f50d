//! The mirror against real servers on the loopback, whose effects are counted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod commands;
mod common;
mod effects;
mod hostile;
mod http;
mod limits;
mod mcp;
mod npm;
mod rows;
mod settings;
mod types;
